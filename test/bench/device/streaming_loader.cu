/*-------------------------------------------------------------------------
 *
 * streaming_loader.cu
 *	  The CPU's part of the streaming sort: columns of strings.
 *
 * A column is made in pieces.  Each thread has two buffers of pinned memory: while
 * one is copied to the device, the thread fills the other.  The paper has one
 * thread, which makes a whole column and then copies it.
 *
 *-------------------------------------------------------------------------
 */
#include "streaming_loader.cuh"

#include <algorithm>
#include <cstring>
#include <future>

namespace gpusort
{

namespace
{

constexpr u64 piece_bytes = u64{1} << 20;

static_assert(piece_bytes >= ColumnMemory::most_k + sizeof(u32), "a piece has one string at least");

struct Buffer
{
  Pinned<char> memory{piece_bytes};
  Event begin;
  Event end;
  bool copying = false;

  // Waits until its copies have ended; returns their time.
  double wait()
  {
    if (!copying)
      return 0;
    end.wait();
    copying = false;
    return elapsed_ms(begin, end);
  }
};

} // namespace

struct ColumnLoader::Worker
{
  Buffer buffers[2];
  double copy_ms = 0;
};

ColumnLoader::ColumnLoader(const HostStrings &strings, u32 threads) : strings(strings)
{
  GS_CUDA_TRY(cudaGetDevice(&device));
  for (u32 i = 0; i < std::max(threads, 1u); i++)
    workers.push_back(std::make_unique<Worker>());
}

// Copies read the workers' buffers.
ColumnLoader::~ColumnLoader()
{
  (void)cudaStreamSynchronize(stream);
}

int64_t ColumnLoader::longest_left(const u64 *entries, u32 n, u64 offset) const
{
  std::vector<std::future<u32>> longest;
  u64 threads = workers.size();
  u32 most = 0;

  for (u64 t = 0; t < threads; t++)
    longest.push_back(
        std::async(std::launch::async,
                   [=]
                   {
                     u32 most = 0;

                     for (u64 i = n * t / threads; i < n * (t + 1) / threads; i++)
                       most = std::max(most, strings.length[entries == nullptr ? i : entry_row(entries[i])]);
                     return most;
                   }));
  for (std::future<u32> &part : longest)
    most = std::max(most, part.get());
  return most < offset ? -1 : static_cast<int64_t>(most - offset);
}

void ColumnLoader::load(const u64 *entries, const Column &column)
{
  auto begin = std::chrono::steady_clock::now();
  std::vector<std::future<void>> running;

  next_piece = 0;
  for (std::unique_ptr<Worker> &worker : workers)
    running.push_back(std::async(std::launch::async, [&, this] { load_pieces(*worker, entries, column); }));
  for (std::future<void> &thread : running)
    thread.get();
  for (std::unique_ptr<Worker> &worker : workers)
  {
    sums.copy_ms += worker->copy_ms;
    worker->copy_ms = 0;
  }
  sums.load_ms += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

void ColumnLoader::load_pieces(Worker &worker, const u64 *entries, const Column &column)
{
  u64 rows_per_piece = piece_bytes / (column.k + sizeof(u32));
  u32 turn = 0;

  GS_CUDA_TRY(cudaSetDevice(device));
  while (!stopped.load(std::memory_order_relaxed))
  {
    u64 first = next_piece.fetch_add(1) * rows_per_piece;

    if (first >= column.n)
      break;

    u32 rows = static_cast<u32>(std::min<u64>(column.n - first, rows_per_piece));
    Buffer &buffer = worker.buffers[turn];
    char *chars = buffer.memory.get();
    u32 *left = reinterpret_cast<u32 *>(chars + u64{rows} * column.k);

    turn = 1 - turn;
    worker.copy_ms += buffer.wait();
    gather(entries, column, static_cast<u32>(first), static_cast<u32>(first + rows), left, chars);

    std::lock_guard<std::mutex> guard(stream_lock);

    buffer.begin.record(stream);
    GS_CUDA_TRY(cudaMemcpyAsync(column.chars + first * column.k, chars, u64{rows} * column.k,
                                cudaMemcpyHostToDevice, stream));
    GS_CUDA_TRY(
        cudaMemcpyAsync(column.left + first, left, rows * sizeof(u32), cudaMemcpyHostToDevice, stream));
    buffer.end.record(stream);
    buffer.copying = true;
    sums.copied_bytes += rows * (column.k + sizeof(u32));
  }
  for (Buffer &buffer : worker.buffers)
    worker.copy_ms += buffer.wait();
}

// What the strings of some entries have in a column.
void ColumnLoader::gather(const u64 *entries, const Column &column, u32 first, u32 end, u32 *left,
                          char *chars) const
{
  for (u32 i = first; i < end; i++, chars += column.k)
  {
    u32 row = entries == nullptr ? i : entry_row(entries[i]);
    u32 length = strings.length[row];
    u32 rest = length > column.offset ? static_cast<u32>(length - column.offset) : 0;
    u32 taken = std::min(rest, column.k);

    *left++ = rest;
    if (taken > 0)
      memcpy(chars, strings.bytes + strings.begin[row] + column.offset, taken);
    memset(chars + taken, 0, column.k - taken);
  }
}

} // namespace gpusort
