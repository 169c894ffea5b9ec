/*-------------------------------------------------------------------------
 *
 * arrays.cu
 *	  Sorting the elements of many arrays, in every engine.
 *
 * The bound is to read and to write every element once, at the rate at which the
 * device copies.  Before each run the data are made anew from a copy, which is
 * not timed.  Nor is the census that ours needs: the device takes it on the host,
 * while it checks the records of a chunk.  CUB's segmented sorts find the lengths of
 * arrays themselves; they write to a second array, which the other engines do not
 * need.  After the last run every array is checked on the device: its elements must
 * be in order and have the same sum of hashes as before.
 *
 *-------------------------------------------------------------------------
 */
#include <cub/device/device_segmented_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>

#include <cstring>
#include <type_traits>

#include "engine/engine.cuh"
#include "bench.cuh"

using namespace gpusort;

namespace bench
{

namespace
{

constexpr u32 blocks = 4096;
constexpr u32 threads = 256;

__host__ __device__ inline u64 mix(u64 x)
{
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Elements uniform over 0 .. 2^31 - 1, as in the paper by Awan and Saeed, or over
// all the values of their type.
template <typename T>
__global__ void make_elements(T *data, u64 n)
{
  for (u64 i = u64{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += u64{gridDim.x} * blockDim.x)
  {
    u64 bits = mix(i);

    data[i] = std::is_same<T, long long>::value ? static_cast<T>(bits) : static_cast<T>(bits >> 33);
  }
}

template <typename T>
__device__ u64 hash_of(T x)
{
  u64 bits = 0;

  memcpy(&bits, &x, sizeof x);
  return mix(bits);
}

// Warps sum up arrays; with `sums` they compare instead, and look at the order.
template <typename T>
__global__ void sum_arrays(const T *data, const u64 *offsets, u64 n_arrays, u64 *sums, bool check,
                           u64 *n_wrong)
{
  u64 warps = u64{gridDim.x} * blockDim.x / 32;
  u32 lane = threadIdx.x % 32;

  for (u64 i = (u64{blockIdx.x} * blockDim.x + threadIdx.x) / 32; i < n_arrays; i += warps)
  {
    u64 sum = 0;
    bool wrong = false;

    for (u64 k = offsets[i] + lane; k < offsets[i + 1]; k += 32)
    {
      sum += hash_of(data[k]);
      wrong |= k > offsets[i] && data[k] < data[k - 1];
    }
    for (u32 d = 16; d >= 1; d /= 2)
      sum += __shfl_xor_sync(~0u, sum, d);
    wrong = check && (__any_sync(~0u, wrong) || sum != sums[i]);
    if (lane == 0)
    {
      if (!check)
        sums[i] = sum;
      else if (wrong)
        atomicAdd(n_wrong, 1ULL);
    }
  }
}

__global__ void make_spans(const u64 *offsets, u64 n_arrays, u32 width, ArraySpan *spans)
{
  for (u64 i = u64{blockIdx.x} * blockDim.x + threadIdx.x; i < n_arrays; i += u64{gridDim.x} * blockDim.x)
    spans[i] = {offsets[i] * width, static_cast<u32>(offsets[i + 1] - offsets[i])};
}

template <typename T>
constexpr GsElem elem_of = std::is_same<T, float>::value    ? GS_ELEM_FLOAT4
                           : std::is_same<T, double>::value ? GS_ELEM_FLOAT8
                                                            : GS_ELEM_INT8;

const char *const segmented_sort = "cub_segmented_sort";
const char *const segmented_radix = "cub_segmented_radix";

// One dataset: arrays of these lengths, and all engines on it.
template <typename T>
class ArrayTable
{
public:
  ArrayTable(Bench &bench, const std::string &name, const std::vector<u64> &host_offsets)
      : bench(bench), name(name), n_arrays(host_offsets.size() - 1), n(host_offsets.back()), original(n),
        data(n), offsets(n_arrays + 1), spans(n_arrays), sums(n_arrays), wrong(1),
        bound_ms(2.0 * static_cast<double>(n * sizeof(T)) / bench.copy_bytes_per_ms)
  {
    for (u64 i = 0; i < n_arrays; i++)
      count_array(elem_of<T>,
                  {host_offsets[i] * sizeof(T), static_cast<u32>(host_offsets[i + 1] - host_offsets[i])},
                  &census);
    offsets.fill(host_offsets.data());
    make_elements<<<blocks, threads, 0, stream>>>(original.get(), n);
    make_spans<<<blocks, threads, 0, stream>>>(offsets.get(), n_arrays, sizeof(T), spans.get());
    sum_arrays<<<blocks, threads, 0, stream>>>(original.get(), offsets.get(), n_arrays, sums.get(), false,
                                               wrong.get());
    GS_CUDA_LAUNCHED();
  }

  void print()
  {
    printf("\n### %s\n\n%llu arrays, %llu elements of %zu bytes. Bound: %.3f ms.\n\n", name.c_str(), n_arrays,
           n, sizeof(T), bound_ms);
    printf("| engine | ms | from | to | M elements/s | of ours | of bound |\n");
    printf("| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (GsEngine engine : {GS_ENGINE_AUTO, GS_ENGINE_ARRAYSORT2016, GS_ENGINE_STA})
      print_engine(engine);
    print_cub(segmented_sort,
              [&](void *temp, size_t *temp_bytes, T *sorted)
              {
                return cub::DeviceSegmentedSort::SortKeys(
                    temp, *temp_bytes, original.get(), sorted, static_cast<int64_t>(n),
                    static_cast<int64_t>(n_arrays), offsets.get(), offsets.get() + 1, stream);
              });
    print_cub(segmented_radix,
              [&](void *temp, size_t *temp_bytes, T *sorted)
              {
                return cub::DeviceSegmentedRadixSort::SortKeys(
                    temp, *temp_bytes, original.get(), sorted, static_cast<int64_t>(n),
                    static_cast<int64_t>(n_arrays), offsets.get(), offsets.get() + 1, 0,
                    static_cast<int>(sizeof(T) * 8), stream);
              });
  }

private:
  void restore()
  {
    GS_CUDA_TRY(cudaMemcpyAsync(data.get(), original.get(), n * sizeof(T), cudaMemcpyDeviceToDevice, stream));
  }

  // As measure(), on data made anew before each run.
  template <typename Run>
  Timing measure_anew(Run run)
  {
    Options once = bench.options;
    std::vector<double> times;
    double total_ms = 0;

    once.runs = 1;
    restore();
    run(stream); // loads kernels
    while (static_cast<int>(times.size()) < bench.options.runs && total_ms < bench.options.cap_s * 1e3)
    {
      restore();
      times.push_back(measure(once, stream, run).median_ms);
      total_ms += times.back();
    }
    std::sort(times.begin(), times.end());
    return {times[times.size() / 2], times.front(), times.back(), static_cast<int>(times.size())};
  }

  void print_engine(GsEngine engine)
  {
    const char *engine_name = engine == GS_ENGINE_AUTO ? "ours" : array_engine_name(engine);
    ArrayJob job = {reinterpret_cast<char *>(data.get()), spans.get(), static_cast<u32>(n_arrays), elem_of<T>,
                    false};

    if (!wanted(bench.options.engines, engine_name) || !array_engine_fits(engine, job.elem, census))
      return;

    Device<char> workspace(array_engine_workspace(engine, job.elem, census));

    print_line(engine_name,
               measure_anew([&](cudaStream_t stream)
                            { run_array_engine(engine, job, census, workspace.get(), stream); }),
               data.get());
  }

  template <typename Sort>
  void print_cub(const char *engine, Sort sort)
  {
    size_t temp_bytes = 0;

    if (!wanted(bench.options.engines, engine))
      return;
    GS_CUDA_TRY(sort(nullptr, &temp_bytes, nullptr));

    Device<T> sorted(n);
    Device<char> temp(temp_bytes);
    auto run = [&](cudaStream_t) { GS_CUDA_TRY(sort(temp.get(), &temp_bytes, sorted.get())); };

    run(stream);
    print_line(engine, measure(bench.options, stream, run), sorted.get());
  }

  void print_line(const char *engine, const Timing &timing, const T *sorted)
  {
    u64 none = 0;
    u64 n_wrong;

    wrong.fill(&none);
    sum_arrays<<<blocks, threads, 0, stream>>>(sorted, offsets.get(), n_arrays, sums.get(), true,
                                               wrong.get());
    GS_CUDA_LAUNCHED();
    GS_CUDA_TRY(cudaStreamSynchronize(stream));
    n_wrong = wrong.read()[0];
    if (n_wrong > 0)
    {
      printf("| %s | WRONG: %llu arrays |\n", engine, n_wrong);
      bench.wrong++;
      return;
    }
    if (our_ms == 0)
      our_ms = timing.median_ms;
    printf("| %s | %.3f | %.3f | %.3f | %.0f | %.2f | %.2f |\n", engine, timing.median_ms, timing.least_ms,
           timing.most_ms, static_cast<double>(n) / timing.median_ms / 1e3, timing.median_ms / our_ms,
           timing.median_ms / bound_ms);
    if (bench.cells != nullptr)
      fprintf(bench.cells, "arrays\t%s\t%llu\t%s\t%.6f\t%.6f\t%.6f\t%d\t%.6f\t%.6f\t\n", name.c_str(), n,
              engine, timing.median_ms, timing.least_ms, timing.most_ms, timing.runs, bound_ms, bound_ms);
    fflush(stdout);
  }

  Bench &bench;
  const std::string name;
  const u64 n_arrays;
  const u64 n;
  Stream stream;
  Device<T> original;
  Device<T> data;
  Device<u64> offsets;
  Device<ArraySpan> spans;
  Device<u64> sums;
  Device<u64> wrong;
  ArrayCensus census = {};
  const double bound_ms;
  double our_ms = 0;
};

template <typename T>
void print_arrays(Bench &bench, const std::string &name, const std::vector<u64> &offsets)
{
  if (!wanted(bench.options.datasets, name))
    return;
  // A dataset too large for this GPU is no reason to leave the others out.
  try
  {
    ArrayTable<T>(bench, name, offsets).print();
  }
  catch (const Failure &failure)
  {
    if (failure.status != GS_NO_MEMORY)
      throw;
    printf("\n### %s\n\nNot run: %s.\n", name.c_str(), failure.error.message);
  }
}

std::vector<u64> equal_lengths(const Bench &bench, u64 n_arrays, u64 length)
{
  u64 n = std::max<u64>(static_cast<u64>(static_cast<double>(n_arrays) * bench.options.scale), 1);
  std::vector<u64> offsets(n + 1);

  for (u64 i = 0; i <= n; i++)
    offsets[i] = i * length;
  return offsets;
}

// Lengths from 1 to longest, the number of arrays of a length falling with its
// square: so each octave of lengths has the same share of the elements.
std::vector<u64> power_law(const Bench &bench, u64 n, u64 longest)
{
  std::vector<u64> offsets(1, 0);
  u64 end = static_cast<u64>(static_cast<double>(n) * bench.options.scale);

  for (u64 i = 0; offsets.back() < end; i++)
  {
    double u = static_cast<double>(mix(i) >> 11) / static_cast<double>(u64{1} << 53);

    offsets.push_back(offsets.back() +
                      static_cast<u64>(1 / (1 - u * (1 - 1.0 / static_cast<double>(longest)))));
  }
  return offsets;
}

} // namespace

void run_arrays(Bench &bench)
{
  // Those of the paper by Awan and Saeed.
  for (u64 length : {1000, 2000, 3000, 4000})
    print_arrays<float>(bench, "float4-" + std::to_string(length), equal_lengths(bench, 200000, length));
  for (u64 length : {1000, 4000})
  {
    print_arrays<long long>(bench, "int8-" + std::to_string(length), equal_lengths(bench, 200000, length));
    print_arrays<double>(bench, "float8-" + std::to_string(length), equal_lengths(bench, 200000, length));
  }
  print_arrays<float>(bench, "float4-16", equal_lengths(bench, 10000000, 16));
  print_arrays<double>(bench, "float8-16", equal_lengths(bench, 10000000, 16));
  for (u64 length : {30, 60, 100, 250, 500, 8000, 20000, 100000, 262144})
    print_arrays<float>(bench, "float4-" + std::to_string(length),
                        equal_lengths(bench, 400000000 / length, length));
  print_arrays<float>(bench, "float4-power-1MB", power_law(bench, 400000000, (1 << 20) / 4));
  print_arrays<long long>(bench, "int8-power-1MB", power_law(bench, 200000000, (1 << 20) / 8));
}

} // namespace bench
