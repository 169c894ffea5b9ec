/*-------------------------------------------------------------------------
 *
 * main.cu
 *	  The benchmark of the device's engines, on data that lie there.
 *
 * Every dataset is sorted by every engine: ours, those of the papers, and the
 * merge sort that libraries use.  run.sh builds and runs it.
 *
 *-------------------------------------------------------------------------
 */
#include <cstring>
#include <thread>

#include "bench.cuh"
#include "datasets.h"

using namespace bench;
using namespace gpusort;

namespace
{

struct Section
{
  const char *name;
  const char *title;
  void (*run)(Bench &bench);
};

const Section sections[] = {
    {"strings", "Strings", run_strings},
    {"fixed", "Keys of one length", run_fixed},
    {"arrays", "Arrays", run_arrays},
    {"adversaries", "Adversaries", run_adversaries},
    {"ties", "The same strings with shorter and longer ties", run_ties},
    {"streaming", "Large sets of strings", run_streaming},
    {"capped", "Large sets of strings in host memory, and little device memory", run_capped},
};

const char *const usage = "usage: device_bench [OPTION VALUE]...\n"
                          "  --sections A,B   only these: strings, fixed, adversaries, ties, arrays,\n"
                          "                   streaming, capped\n"
                          "  --datasets A,B   only these; \"file\" is that of --file\n"
                          "  --engines A,B    only these: ours, radix2013, merge2012, radix2011, comparator;\n"
                          "                   of arrays: ours, arraysort2016, sta, cub_segmented_sort,\n"
                          "                   cub_segmented_radix; of capped: ours, streaming,\n"
                          "                   streaming_dynamic, streaming_one_loader, cpu\n"
                          "  --file PATH      sort its lines too\n"
                          "  --scale X        times the papers' numbers of rows (1)\n"
                          "  --runs N         of each cell (7)\n"
                          "  --cap SECONDS    after which a cell is not run again (2)\n"
                          "  --budget SECONDS after which no dataset is begun (none)\n"
                          "  --threads N      of the CPU (all)\n"
                          "  --cap-memory MB  that the device may hold, in capped (by the strings)\n"
                          "  --folder PATH    for files, in capped (/dev/shm)\n"
                          "  --cells PATH     write a line for each cell there\n";

std::vector<std::string> split(const char *list)
{
  std::vector<std::string> names;
  std::string rest = list;

  for (size_t comma; (comma = rest.find(',')) != std::string::npos; rest.erase(0, comma + 1))
    names.push_back(rest.substr(0, comma));
  names.push_back(rest);
  return names;
}

bool parse_option(const char *name, const char *value, Bench *bench)
{
  Options &options = bench->options;

  if (strcmp(name, "--sections") == 0)
    options.sections = split(value);
  else if (strcmp(name, "--datasets") == 0)
    options.datasets = split(value);
  else if (strcmp(name, "--engines") == 0)
    options.engines = split(value);
  else if (strcmp(name, "--file") == 0)
    options.file = value;
  else if (strcmp(name, "--scale") == 0)
    return (options.scale = atof(value)) > 0;
  else if (strcmp(name, "--runs") == 0)
    return (options.runs = atoi(value)) > 0;
  else if (strcmp(name, "--cap") == 0)
    return (options.cap_s = atof(value)) > 0;
  else if (strcmp(name, "--budget") == 0)
    return (options.budget_s = atof(value)) > 0;
  else if (strcmp(name, "--threads") == 0)
    return (options.threads = atoi(value)) > 0;
  else if (strcmp(name, "--cap-memory") == 0)
    return (options.memory_limit = static_cast<u64>(atof(value) * 1e6)) > 0;
  else if (strcmp(name, "--folder") == 0)
    options.folder = value;
  else if (strcmp(name, "--cells") == 0)
  {
    bench->cells = fopen(value, "w");
    if (bench->cells == nullptr)
      perror(value);
    return bench->cells != nullptr;
  }
  else
    return false;
  return true;
}

// Bytes read and written a millisecond by a copy far larger than any cache.
double copy_rate(const Options &options)
{
  constexpr u64 bytes = u64{2} << 30;
  Stream stream;
  Device<char> from(bytes);
  Device<char> to(bytes);
  auto copy = [&](cudaStream_t stream)
  { GS_CUDA_TRY(cudaMemcpyAsync(to.get(), from.get(), bytes, cudaMemcpyDeviceToDevice, stream)); };

  GS_CUDA_TRY(cudaMemset(from.get(), 1, bytes));
  copy(stream);
  return 2.0 * bytes / measure(options, stream, copy).median_ms;
}

void run(Bench &bench)
{
  cudaDeviceProp properties;
  int runtime = 0;

  GS_CUDA_TRY(cudaGetDeviceProperties(&properties, 0));
  GS_CUDA_TRY(cudaRuntimeGetVersion(&runtime));
  bench.copy_bytes_per_ms = copy_rate(bench.options);
  printf("%s, CUDA %d.%d; a copy reads and writes %.2f TB/s. Medians of up to %d runs.\n", properties.name,
         runtime / 1000, runtime / 10 % 100, bench.copy_bytes_per_ms / 1e9, bench.options.runs);
  for (const Section &section : sections)
  {
    if (!wanted(bench.options.sections, section.name) || !bench.time_left())
      continue;
    printf("\n## %s\n", section.title);
    section.run(bench);
  }
  if (!bench.time_left())
    printf("\nTime ran out: what is missing was not run.\n");
}

} // namespace

int main(int argc, char **argv)
{
  Bench bench = {};

  bench.options.threads = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
  for (int i = 1; i < argc; i += 2)
    if (i + 1 == argc || !parse_option(argv[i], argv[i + 1], &bench))
    {
      fputs(usage, stderr);
      return 2;
    }
  try
  {
    run(bench);
  }
  catch (const Failure &failure)
  {
    printf("\n%s: %s\n", gs_status_name(failure.status), failure.error.message);
    return 1;
  }
  if (bench.cells != nullptr)
    fclose(bench.cells);
  if (bench.wrong > 0)
    printf("\n%d results were wrong.\n", bench.wrong);
  return bench.wrong > 0;
}
