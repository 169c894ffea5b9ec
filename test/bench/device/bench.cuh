/*-------------------------------------------------------------------------
 *
 * bench.cuh
 *	  What the parts of the device benchmark share.
 *
 *	  main.cu		 options, the table of sections, the device's own rates
 *	  records.cu	 keys in every engine, dataset by dataset
 *	  arrays.cu		 arrays in every engine that sorts them
 *	  capped.cu		 strings in host memory that the device does not hold
 *	  spilled.cc	 our way with them
 *	  cpu_sort.cc	 the CPU's
 *	  comparator.cu	 the merge sort that libraries sort strings by
 *	  datasets.cc	 strings like those of the papers, and adversaries
 *	  check.cc		 the right order, by the CPU, and what can be told of it
 *	  figures.cc	 what the papers print
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_BENCH_CUH
#define GS_BENCH_CUH

#include <algorithm>
#include <string>
#include <vector>

#include "common/common.cuh"

namespace bench
{

using gpusort::u32;
using gpusort::u64;
using gpusort::u8;

struct Options
{
  double scale = 1;                  // of the numbers of rows
  int runs = 7;                      // of each cell at most
  double cap_s = 2;                  // seconds after which a cell is not run again
  int threads = 1;                   // of the CPU
  u64 memory_limit = 0;              // bytes, in section capped; 0: by the strings
  std::string folder = "/dev/shm";   // for files
  double budget_s = 0;               // seconds after which no dataset is begun; 0: none
  const char *file = nullptr;        // whose lines are sorted too
  std::vector<std::string> sections; // empty: all
  std::vector<std::string> datasets;
  std::vector<std::string> engines;
};

struct Bench
{
  Options options;
  double copy_bytes_per_ms; // read and written, of a large copy
  FILE *cells = nullptr;    // one line a cell, for plot.py; may stay null
  int wrong = 0;            // cells whose result was
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

  bool time_left() const
  {
    std::chrono::duration<double> gone = std::chrono::steady_clock::now() - begin;

    return options.budget_s == 0 || gone.count() < options.budget_s;
  }
};

// Whether a name is among those wanted.
inline bool wanted(const std::vector<std::string> &names, const std::string &name)
{
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

struct Timing
{
  double median_ms;
  double least_ms;
  double most_ms;
  int runs;
};

// Times what run(stream) does, once it has been done before: as often as the
// options allow.
template <typename Run>
Timing measure(const Options &options, cudaStream_t stream, Run run)
{
  gpusort::Event begin;
  gpusort::Event end;
  std::vector<double> times;
  double total_ms = 0;

  while (static_cast<int>(times.size()) < options.runs && total_ms < options.cap_s * 1e3)
  {
    begin.record(stream);
    run(stream);
    end.record(stream);
    GS_CUDA_TRY(cudaEventSynchronize(end));
    times.push_back(gpusort::elapsed_ms(begin, end));
    total_ms += times.back();
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), times.back(), static_cast<int>(times.size())};
}

// Device memory for a scope.
template <typename T>
class Device
{
public:
  explicit Device(u64 count) : count(count)
  {
    GS_CUDA_TRY(cudaMalloc(reinterpret_cast<void **>(&memory), std::max<u64>(count * sizeof(T), 1)));
  }
  ~Device()
  {
    (void)cudaFree(memory);
  }
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;
  T *get() const
  {
    return memory;
  }
  // cudaMemcpy() returns when pageable memory has been read, which may be before
  // all of it is on the device; other streams would not wait for that.
  void fill(const T *from)
  {
    GS_CUDA_TRY(cudaMemcpy(memory, from, count * sizeof(T), cudaMemcpyHostToDevice));
    GS_CUDA_TRY(cudaStreamSynchronize(nullptr));
  }
  std::vector<T> read() const
  {
    std::vector<T> copy(count);

    GS_CUDA_TRY(cudaMemcpy(copy.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost));
    return copy;
  }

private:
  T *memory = nullptr;
  u64 count;
};

// ---- sections ----

void run_strings(Bench &bench);
void run_ties(Bench &bench);
void run_streaming(Bench &bench);
void run_capped(Bench &bench);
void run_fixed(Bench &bench);
void run_adversaries(Bench &bench);
void run_arrays(Bench &bench);

} // namespace bench

#endif // GS_BENCH_CUH
