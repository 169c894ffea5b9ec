/*-------------------------------------------------------------------------
 *
 * records.cu
 *	  Keys in every engine, dataset by dataset.
 *
 * A dataset is copied to the device once, in the form of chunks: the keys' bytes
 * as the papers have them, delimited by NUL, and a record for each row, which
 * is a key and no more.  perform's first kernel makes the array of keys and finds
 * the statistics that our engines choose by; its time is told apart, and once
 * added to ours.  From there every engine has the same: an array of addresses and
 * lengths in, an order of row numbers out, nothing copied to the host.
 *
 * Each engine runs once before it is timed.  The first one's result is checked by
 * the CPU; since just one order is right, those of the others must be the same.
 *
 * Columns of the table:
 *
 *	  of ours	 the time divided by that of our engine.  "ours, with keys" adds the kernel that
 *				 collects keys and statistics from the chunks
 *	  of bound	 divided by the time in which a copy reads and writes as many bytes as any sort must:
 *				 the bytes that tell the keys apart, 8 a row for their addresses, 4 a row for the result;
 *				 of arrays: in which all elements are copied once
 *	  of floor	 divided by the time for the bytes that tell the keys apart and one radix sort of
 *				 8-byte keys with row numbers
 *	  printed	 what the paper prints, on its hardware, for its own data
 *
 *-------------------------------------------------------------------------
 */
#include <cstring>
#include <memory>

#include "engine/engine.cuh"
#include "bench.cuh"
#include "check.h"
#include "comparator.cuh"
#include "figures.h"

namespace bench
{

using namespace gpusort;

namespace
{

const char *const ours = "ours";
const char *const comparator = "comparator";

struct Engine
{
  const char *name;
  GsEngine engine; // but for the comparator
};

const Engine engines[] = {
    {ours, GS_ENGINE_AUTO},
    {"radix2013", GS_ENGINE_RADIX2013},
    {"merge2012", GS_ENGINE_MERGE2012},
    {"radix2011", GS_ENGINE_RADIX2011},
    {comparator, GS_ENGINE_AUTO},
};

// Rows on the device, in chunks as large as records can describe.
class Rows
{
public:
  Rows(const Strings &strings)
      : n_rows(static_cast<u32>(strings.size())), bytes(strings.bytes.size() + 16), records(n_rows),
        keys(n_rows), stats_memory(1)
  {
    std::vector<GsRecord> all(n_rows);

    GS_CUDA_TRY(cudaMemcpy(bytes.get(), strings.bytes.data(), strings.bytes.size(), cudaMemcpyHostToDevice));
    for (u32 first = 0; first < n_rows;)
      first = add_image(strings, first, &all);
    records.fill(all.data());
    images.reset(new Device<ImageRef>(image_refs.size()));
    images->fill(image_refs.data());
  }

  // As perform does first.
  void build(cudaStream_t stream)
  {
    build_keys({images->get(), static_cast<u32>(image_refs.size()), n_rows, chunk_bytes, GS_FORMAT_ROWS},
               GsTupleKeys{}, keys.get(), stats_memory.get(), stream);
  }
  const KeyRef *key_refs() const
  {
    return keys.get();
  }
  RowStats stats() const
  {
    return stats_memory.read()[0];
  }

  const u32 n_rows;

private:
  static constexpr u32 chunk_bytes = u32{1} << 30; // only bounds rows, and here they are empty
  static constexpr u64 most_bytes = UINT32_MAX - 32;

  // The rows from first on, as many as are near enough to each other.
  u32 add_image(const Strings &strings, u32 first, std::vector<GsRecord> *all)
  {
    u64 begin = strings.begin[first];
    u64 end = begin;
    u32 last = first;

    for (; last < n_rows; last++)
    {
      u64 low = std::min<u64>(begin, strings.begin[last]);
      u64 high = std::max<u64>(end, strings.begin[last] + strings.length[last]);

      if (high - low > most_bytes)
        break;
      begin = low;
      end = high;
    }
    begin &= ~u64{15};
    for (u32 i = first; i < last; i++)
    {
      GsRecord &record = (*all)[first + (last - 1 - i)];

      record = {0, 0, static_cast<u32>(strings.begin[i] - begin), strings.length[i]};
    }
    image_refs.push_back({reinterpret_cast<u64>(bytes.get()) + begin,
                          reinterpret_cast<u64>(records.get() + (last - 1)), first, last - first,
                          static_cast<u32>(end - begin), 0});
    return last;
  }

  Device<char> bytes;
  Device<GsRecord> records;
  std::vector<ImageRef> image_refs;
  std::unique_ptr<Device<ImageRef>> images;
  Device<KeyRef> keys;
  Device<RowStats> stats_memory;
};

// What a dataset is, and what bounds its sort.
struct Title
{
  std::string section;
  std::string name;
  std::string about;
  u64 paper_rows; // 0: of no paper
};

class Table
{
public:
  Table(Bench &bench, const Title &title, const Strings &strings)
      : bench(bench), title(title), strings(strings), rows(strings), order(rows.n_rows), tie(rows.n_rows),
        workspace(workspace_bytes())
  {
  }

  void print()
  {
    rows.build(stream);
    GS_CUDA_TRY(cudaStreamSynchronize(stream));
    stats = rows.stats();
    if (stats.invalid != 0)
      fail(GS_INTERNAL, "the benchmark's records are invalid");
    build_ms = measure(bench.options, stream, [&](cudaStream_t stream) { rows.build(stream); }).median_ms;
    {
      RadixSortOfPairs pairs(rows.n_rows);

      pairs.run(stream);
      radix_ms = measure(bench.options, stream, [&](cudaStream_t stream) { pairs.run(stream); }).median_ms;
    }
    for (const Engine &engine : engines)
      if (wanted(bench.options.engines, engine.name))
        print_engine(engine);
    fflush(stdout);
  }

private:
  u64 workspace_bytes() const
  {
    u64 bytes = 0;

    for (const Engine &engine : engines)
      if (wanted(bench.options.engines, engine.name))
        bytes = std::max(bytes, engine.name == comparator ? comparator_workspace(rows.n_rows)
                                                          : engine_workspace(engine.engine, rows.n_rows));
    return bytes;
  }

  const char *run(const Engine &engine)
  {
    if (engine.name == comparator)
    {
      sort_by_comparator(rows.key_refs(), rows.n_rows, workspace.get(), order.get(), stream);
      return comparator;
    }

    SortContext context = {stream, side, event, counts.get(), never};

    return run_engine(context, engine.engine,
                      {rows.key_refs(), rows.n_rows, stats, workspace.get(), {order.get(), tie.get()}});
  }

  void print_head()
  {
    double bytes = 0;

    for (u32 length : strings.length)
      bytes += length;
    // The pass that collects the keys, which is not timed here, tells engines how many bytes all keys share
    bound_ms = (static_cast<double>(findings.distinguishing_bytes) + rows.n_rows * (12.0 - stats.prefix)) /
               bench.copy_bytes_per_ms;
    floor_ms = static_cast<double>(findings.distinguishing_bytes) / bench.copy_bytes_per_ms + radix_ms;
    printf(
        "\n### %s\n\n%s. %u rows, %.1f MB, %.1f %% of them distinct; ties of %.1f bytes in the mean, %llu at "
        "most.\nBound: %.3f ms for %.1f MB. Floor: %.3f ms, with a radix sort of %.3f ms. Keys and "
        "statistics: %.3f ms.\n\n",
        title.name.c_str(), title.about.c_str(), rows.n_rows, bytes / 1e6,
        100.0 * static_cast<double>(findings.distinct) / rows.n_rows, findings.mean_tie,
        static_cast<unsigned long long>(findings.most_tie), bound_ms,
        bound_ms * bench.copy_bytes_per_ms / 1e6, floor_ms, radix_ms, build_ms);
    printf("| engine | ms | from | to | M rows/s | of ours | of bound | of floor | printed, ms |\n");
    printf("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  }

  // Whether the result is right; the first one makes the table's head.
  std::string check(const Engine &engine)
  {
    std::vector<u32> ranks = order.read();
    std::vector<u8> ties = tie.read();
    std::string wrong;

    if (right_order.empty())
    {
      if (engine.name == comparator)
        std::fill(ties.begin(), ties.end(), 0);
      findings = check_order(strings, ranks, ties, bench.options.threads);
      wrong = findings.wrong;
      print_head();
      if (wrong.empty() && engine.name != comparator)
      {
        right_order.swap(ranks);
        right_ties.swap(ties);
      }
    }
    else if (ranks != right_order)
      wrong = "another order";
    else if (engine.name != comparator && ties != right_ties)
      wrong = "other ties";
    return wrong;
  }

  void print_line(const char *name, const Timing &timing, double printed)
  {
    char printed_text[16] = "";

    if (printed > 0)
      snprintf(printed_text, sizeof printed_text, printed < 100 ? "%.1f" : "%.0f", printed);
    printf("| %s | %.3f | %.3f | %.3f | %.0f | %.2f | %.1f | %.2f | %s |\n", name, timing.median_ms,
           timing.least_ms, timing.most_ms, rows.n_rows / timing.median_ms / 1e3,
           our_ms > 0 ? timing.median_ms / our_ms : 0, timing.median_ms / bound_ms,
           timing.median_ms / floor_ms, printed_text);
    if (bench.cells != nullptr)
      fprintf(bench.cells, "%s\t%s\t%u\t%s\t%.6f\t%.6f\t%.6f\t%d\t%.6f\t%.6f\t%s\n",
              title.section.c_str(), title.name.c_str(), rows.n_rows, name, timing.median_ms, timing.least_ms,
              timing.most_ms, timing.runs, bound_ms, floor_ms, printed_text);
  }

  void print_engine(const Engine &engine)
  {
    const char *name = run(engine);

    GS_CUDA_TRY(cudaStreamSynchronize(stream));
    if (engine.engine != GS_ENGINE_AUTO && strcmp(name, engine.name) != 0)
      return; // not made for these keys

    std::string wrong = check(engine);

    if (!wrong.empty())
    {
      printf("| %s | WRONG: %s |\n", engine.name, wrong.c_str());
      bench.wrong++;
      return;
    }

    Timing timing = measure(bench.options, stream, [&](cudaStream_t) { run(engine); });
    bool same_rows =
        title.paper_rows > 0 && rows.n_rows >= title.paper_rows / 100 * 99 && rows.n_rows <= title.paper_rows;

    if (engine.name == ours)
      our_ms = timing.median_ms;
    print_line(engine.name, timing, same_rows ? printed_ms(title.name, engine.name) : 0);
    if (engine.name == ours)
    {
      Timing with_keys = {timing.median_ms + build_ms, timing.least_ms + build_ms, timing.most_ms + build_ms,
                          timing.runs};

      print_line("ours, with keys", with_keys, 0);
    }
    fflush(stdout);
  }

  Bench &bench;
  const Title title;
  const Strings &strings;
  Stream stream;
  SideStreams side;
  Event event;
  Pinned<CountsMemory> counts;
  const std::atomic<bool> never{false};
  Rows rows;
  RowStats stats = {};
  Device<u32> order;
  Device<u8> tie;
  Device<char> workspace;
  Findings findings = {};
  std::vector<u32> right_order;
  std::vector<u8> right_ties;
  double build_ms = 0;
  double radix_ms = 0;
  double bound_ms = 0;
  double floor_ms = 0;
  double our_ms = 0;
};

void print_table(Bench &bench, const Title &title, const Strings &strings)
{
  // A dataset too large for this GPU is no reason to leave the others out.
  try
  {
    Table(bench, title, strings).print();
  }
  catch (const Failure &failure)
  {
    if (failure.status != GS_NO_MEMORY)
      throw;
    printf("\n### %s\n\nNot run: %s.\n", title.name.c_str(), failure.error.message);
  }
}

void run_group(Bench &bench, Group group, const char *section)
{
  for (const Dataset &dataset : datasets)
  {
    if (dataset.group != group || !wanted(bench.options.datasets, dataset.name) || !bench.time_left())
      continue;

    u64 n = std::max<u64>(static_cast<u64>(static_cast<double>(dataset.n) * bench.options.scale), 1);

    print_table(bench, {section, dataset.name, dataset.about, dataset.n},
                dataset.make(n, bench.options.threads));
  }
}

} // namespace

void run_strings(Bench &bench)
{
  if (bench.options.file != nullptr && wanted(bench.options.datasets, "file"))
    print_table(bench, {"strings", "file", "Real file paths, or what lines BENCH_FILE has", 0},
                read_lines(bench.options.file));
  run_group(bench, Group::strings, "strings");
}

void run_ties(Bench &bench)
{
  run_group(bench, Group::ties, "ties");
}

void run_streaming(Bench &bench)
{
  run_group(bench, Group::streaming, "streaming");
}

void run_fixed(Bench &bench)
{
  run_group(bench, Group::fixed, "fixed");
}

void run_adversaries(Bench &bench)
{
  run_group(bench, Group::adversaries, "adversaries");
}

} // namespace bench
