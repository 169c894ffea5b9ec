/*-------------------------------------------------------------------------
 *
 * capped.cu
 *	  Strings in host memory, sorted by a device that does not hold them.
 *
 * The device may hold half of the strings' bytes, or what the streaming sort takes
 * for columns of 16 bytes where that is more, unless --cap-memory says how much.  The papers'
 * devices had 1.5 and 6 GB.
 *
 * Every engine has the strings in pinned host memory, and leaves the order of their numbers
 * in host memory, with what equals the rank before.  Times are those of a clock
 * on the wall; taking memory, opening devices and pinning are not in them.
 * The first result is checked by the CPU; since just one order is right, the
 * others must be the same.
 *
 *	  ours				   runs in files and ranges of them, see spilled.cc; the files take as
 *						   much as the strings and 24 bytes for each
 *	  streaming			   streaming.cu, fixed K; it takes 58 bytes for each string and
 *						   two columns.  "not sorted": the device's memory is less
 *	  streaming_dynamic	   the same, dynamic K
 *	  streaming_one_loader the same, fixed K, one thread makes columns, as in the
 *						   paper; the others have as many as the CPU
 *	  streaming_one_loader_dynamic	the same, dynamic K
 *	  streaming_strings	   streaming_dynamic, and then the CPU copies the strings
 *						   in their order to pinned memory, as many threads at once
 *	  cpu				   a sample sort by std::sort, in as many threads
 *
 *-------------------------------------------------------------------------
 */
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <thread>

#include <unistd.h>

#include "bench.cuh"
#include "check.h"
#include "cpu_sort.h"
#include "figures.h"
#include "spilled.h"
#include "streaming.cuh"

namespace bench
{

using namespace gpusort;

namespace
{

// An order, and what is told of the way to it.
struct Result
{
  std::vector<u32> order;
  std::vector<u8> tie;
  double ms = 0;
  std::string about;
};

// Strings that are pinned for a scope.
class PinnedStrings
{
public:
  explicit PinnedStrings(const Strings &strings) : memory(const_cast<char *>(strings.bytes.data()))
  {
    if (!strings.bytes.empty())
      GS_CUDA_TRY(cudaHostRegister(memory, strings.bytes.size(), cudaHostRegisterPortable));
  }
  ~PinnedStrings()
  {
    (void)cudaHostUnregister(memory);
    (void)cudaGetLastError(); // where there was nothing to pin
  }
  PinnedStrings(const PinnedStrings &) = delete;
  PinnedStrings &operator=(const PinnedStrings &) = delete;

private:
  char *memory;
};

std::string format(const char *format, ...) __attribute__((format(printf, 1, 2)));

std::string format(const char *format, ...)
{
  char text[300];
  va_list args;

  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return text;
}

double ms_since(std::chrono::steady_clock::time_point begin)
{
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

const char *mode_name(StreamingMode mode)
{
  switch (mode)
  {
  case StreamingMode::cpu:
    return "CPU only";
  case StreamingMode::gpu:
    return "GPU only";
  default:
    return "both";
  }
}

// Pinned memory, taken once.
class PinnedBytes
{
public:
  ~PinnedBytes()
  {
    (void)cudaFreeHost(memory);
  }
  PinnedBytes() = default;
  PinnedBytes(const PinnedBytes &) = delete;
  PinnedBytes &operator=(const PinnedBytes &) = delete;
  char *take(size_t bytes)
  {
    if (memory == nullptr)
      GS_CUDA_TRY(cudaMallocHost(&memory, std::max<size_t>(bytes, 1)));
    return memory;
  }

private:
  char *memory = nullptr;
};

// Copies the strings to target, one after the other in their order.  Each thread has
// as many strings as the others, and first finds where its own begin.
void copy_in_order(const Strings &strings, const std::vector<u32> &order, int threads, char *target)
{
  size_t n = order.size();
  size_t parts = static_cast<size_t>(std::max(threads, 1));
  std::vector<size_t> part_bytes(parts);
  auto for_each_part = [&](const std::function<void(size_t part, size_t begin, size_t end)> &work)
  {
    std::vector<std::thread> workers;

    for (size_t part = 0; part < parts; part++)
      workers.emplace_back(work, part, n * part / parts, n * (part + 1) / parts);
    for (std::thread &worker : workers)
      worker.join();
  };

  for_each_part(
      [&](size_t part, size_t begin, size_t end)
      {
        size_t bytes = 0;

        for (size_t i = begin; i < end; i++)
          bytes += strings.length[order[i]];
        part_bytes[part] = bytes;
      });
  for_each_part(
      [&](size_t part, size_t begin, size_t end)
      {
        constexpr size_t ahead = 16; // strings are far apart
        char *to = target + std::accumulate(part_bytes.begin(), part_bytes.begin() + part, size_t(0));

        for (size_t i = begin; i < end; i++)
        {
          if (i + ahead < end)
            __builtin_prefetch(strings.bytes.data() + strings.begin[order[i + ahead]]);
          memcpy(to, strings.bytes.data() + strings.begin[order[i]], strings.length[order[i]]);
          to += strings.length[order[i]];
        }
      });
}

// The printed figures are those of these strings only if as many are sorted.
class CappedTable
{
public:
  CappedTable(Bench &bench, const std::string &name, const std::string &about, u64 paper_rows,
              const Strings &strings)
      : bench(bench), name(name), about(about), paper_rows(paper_rows), strings(strings), pinned(strings),
        memory_limit(bench.options.memory_limit != 0
                         ? bench.options.memory_limit
                         : std::max<u64>(strings.bytes.size() / 2,
                                         streaming_bytes(static_cast<u32>(strings.size()), 16)))
  {
  }

  void print()
  {
    print_engine("ours", [this] { return make_ours(); });
    print_engine("streaming", [this] { return make_streaming(false, bench.options.threads); });
    print_engine("streaming_dynamic", [this] { return make_streaming(true, bench.options.threads); });
    print_engine("streaming_one_loader", [this] { return make_streaming(false, 1); });
    print_engine("streaming_one_loader_dynamic", [this] { return make_streaming(true, 1); });
    print_engine("streaming_strings", [this] { return make_strings(); });
    print_engine("cpu", [this] { return make_cpu(); });
  }

private:
  using Sort = std::function<void(Result *result)>;

  Sort make_ours()
  {
    std::string path = bench.options.folder + format("/gpusort-bench-%d", static_cast<int>(getpid()));
    std::shared_ptr<SpilledSorter> sorter =
        std::make_shared<SpilledSorter>(&gs_device_cuda, memory_limit, bench.options.threads, path);

    return [this, sorter](Result *result)
    {
      auto begin = std::chrono::steady_clock::now();
      SpilledReport report = sorter->sort(strings, &result->order, &result->tie);

      result->ms = ms_since(begin);
      result->about = format("%u runs in %.0f ms; %u ranges in %.0f ms, %u splits; %.0f MB written and read; "
                             "device sorts %.1f ms",
                             report.runs, report.run_ms, report.ranges, report.range_ms, report.splits,
                             static_cast<double>(report.spilled_bytes) / 1e6, report.device_sort_ms);
    };
  }

  Sort make_streaming(bool dynamic, int loader_threads)
  {
    StreamingOptions options = {};

    options.memory_limit = memory_limit;
    options.dynamic = dynamic;
    options.loader_threads = static_cast<u32>(loader_threads);
    return [this, options](Result *result)
    {
      u32 n = static_cast<u32>(strings.size());

      result->order.resize(n);
      result->tie.resize(n);

      StreamingReport report = sort_streaming(
          {strings.bytes.data(), strings.bytes.size(), strings.begin.data(), strings.length.data(), n},
          options, result->order.data(), result->tie.data());

      result->ms = report.total_ms;
      result->about =
          format("%s; %u steps, %u rounds; K %u to %u; load %.1f ms, copy %.1f ms (%.0f MB), sort %.1f ms, "
                 "adjust %.1f ms, wait %.1f ms; setup %.1f ms",
                 mode_name(report.mode), report.steps, report.rounds, report.first_k, report.last_k,
                 report.load_ms, report.copy_ms, static_cast<double>(report.copied_bytes) / 1e6,
                 report.sort_ms, report.adjust_ms, report.wait_ms, report.setup_ms);
    };
  }

  Sort make_strings()
  {
    Sort sort = make_streaming(true, bench.options.threads);
    std::shared_ptr<PinnedBytes> memory = std::make_shared<PinnedBytes>();
    char *target = memory->take(strings.bytes.size());

    return [this, sort, memory, target](Result *result)
    {
      sort(result);

      auto begin = std::chrono::steady_clock::now();

      copy_in_order(strings, result->order, bench.options.threads, target);

      double copy_ms = ms_since(begin);

      result->ms += copy_ms;
      result->about = format("strings copied in %.1f ms", copy_ms);
    };
  }

  Sort make_cpu()
  {
    return [this](Result *result)
    {
      auto begin = std::chrono::steady_clock::now();

      sort_by_cpu(strings, bench.options.threads, &result->order, &result->tie);
      result->ms = ms_since(begin);
      result->about = format("%d threads", bench.options.threads);
    };
  }

  // Whether a result is right; the first one makes the table's head.
  std::string check(const Result &result)
  {
    if (!right.order.empty())
      return result.order != right.order ? "another order" : result.tie != right.tie ? "other ties" : "";

    Findings findings = check_order(strings, result.order, result.tie, bench.options.threads);

    if (findings.wrong.empty())
      right = result;
    print_head(findings);
    return findings.wrong;
  }

  void print_head(const Findings &findings)
  {
    double bytes = 0;

    for (u32 length : strings.length)
      bytes += length;
    printf("\n### %s, %.0f MB of device memory\n\n%s. %zu rows, %.1f MB, %.1f %% of them distinct; ties of "
           "%.1f bytes in the mean, %llu at most.\n\n",
           name.c_str(), static_cast<double>(memory_limit) / 1e6, about.c_str(),
           static_cast<size_t>(strings.size()), bytes / 1e6,
           100.0 * static_cast<double>(findings.distinct) / static_cast<double>(strings.size()),
           findings.mean_tie, static_cast<unsigned long long>(findings.most_tie));
    printf("| engine | ms | from | to | M rows/s | of ours | printed, ms | how |\n");
    printf("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n");
    has_head = true;
  }

  void print_engine(const char *engine, const std::function<Sort()> &make)
  {
    if (!wanted(bench.options.engines, engine) || !bench.time_left())
      return;
    try
    {
      run_engine(engine, make());
    }
    catch (const Failure &failure)
    {
      if (failure.status != GS_NO_MEMORY)
        throw;
      print_refusal(engine, failure.error.message);
    }
    catch (const std::runtime_error &error)
    {
      print_refusal(engine, error.what());
      bench.wrong++;
    }
    fflush(stdout);
  }

  void print_refusal(const char *engine, const char *message)
  {
    if (!has_head)
      printf("\n### %s, %.0f MB of device memory\n\n", name.c_str(), static_cast<double>(memory_limit) / 1e6);
    printf("%s%s: not sorted: %s%s\n", has_head ? "| " : "", engine, message, has_head ? " |" : "");
  }

  void run_engine(const char *engine, const Sort &sort)
  {
    std::vector<double> times;
    double total_ms = 0;
    Result result;

    sort(&result); // once before it is timed

    std::string wrong = check(result);

    if (!wrong.empty())
    {
      printf("| %s | WRONG: %s |\n", engine, wrong.c_str());
      bench.wrong++;
      return;
    }
    while (static_cast<int>(times.size()) < bench.options.runs && total_ms < bench.options.cap_s * 1e3)
    {
      sort(&result);
      times.push_back(result.ms);
      total_ms += result.ms;
    }
    std::sort(times.begin(), times.end());

    double median = times[times.size() / 2];
    double printed = strings.size() >= paper_rows / 100 * 99 && paper_rows > 0 ? printed_ms(name, engine) : 0;

    if (strcmp(engine, "ours") == 0)
      our_ms = median;
    printf("| %s | %.1f | %.1f | %.1f | %.1f | %.2f | %s | %s |\n", engine, median, times.front(),
           times.back(), static_cast<double>(strings.size()) / median / 1e3, our_ms > 0 ? median / our_ms : 0,
           printed > 0 ? format("%.0f", printed).c_str() : "", result.about.c_str());
  }

  Bench &bench;
  const std::string name;
  const std::string about;
  u64 paper_rows; // 0: of no paper
  const Strings &strings;
  PinnedStrings pinned;
  u64 memory_limit;
  Result right; // empty: none yet
  bool has_head = false;
  double our_ms = 0;
};

} // namespace

void run_capped(Bench &bench)
{
  if (bench.options.file != nullptr && wanted(bench.options.datasets, "file"))
    CappedTable(bench, "file", "Real file paths, or what lines BENCH_FILE has", 0,
                read_lines(bench.options.file))
        .print();
  for (const Dataset &dataset : datasets)
  {
    if (dataset.group != Group::streaming || !wanted(bench.options.datasets, dataset.name) ||
        !bench.time_left())
      continue;

    u64 n = std::max<u64>(static_cast<u64>(static_cast<double>(dataset.n) * bench.options.scale), 1);

    CappedTable(bench, dataset.name, dataset.about, dataset.n, dataset.make(n, bench.options.threads))
        .print();
  }
}

} // namespace bench
