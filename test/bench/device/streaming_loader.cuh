/*-------------------------------------------------------------------------
 *
 * streaming_loader.cuh
 *	  The CPU's part of the streaming sort: columns of strings.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STREAMING_LOADER_CUH
#define GS_STREAMING_LOADER_CUH

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "streaming.cuh"

namespace gpusort
{

// Bytes from `offset` on of n strings, k of each, zeros behind a string's end.
// Strings are numbered by slots, from 0 on.
struct Column
{
  u64 offset;
  u32 n;
  u32 k;       // multiple of 8; 0: no string has bytes or its end there
  char *chars; // of slot i at i * k, in device memory
  u32 *left;   // length of each string from offset on, in device memory
};

// A column's memory on the device.
class ColumnMemory
{
public:
  static constexpr u32 most_k = 65536;
  static constexpr u64 alignment = 256;

  ColumnMemory(void *memory, u64 bytes) : memory(static_cast<char *>(memory)), bytes(bytes)
  {
  }
  // Bytes for columns of n strings, k bytes of each.
  static u64 bytes_for(u32 n, u32 k)
  {
    return left_bytes(n) + align_up<u64>(u64{n} * k, alignment);
  }
  // The widest column that fits; 0 where there is none.
  static u32 widest(u64 bytes, u32 n)
  {
    u64 fixed = left_bytes(n);

    return bytes < fixed ? 0 : static_cast<u32>(std::min<u64>((bytes - fixed) / n, most_k)) & ~u32{7};
  }
  u32 widest(u32 n) const
  {
    return widest(bytes, n);
  }
  Column column(u64 offset, u32 n, u32 k) const
  {
    return {offset, n, k, memory + left_bytes(n), reinterpret_cast<u32 *>(memory)};
  }

private:
  static u64 left_bytes(u32 n)
  {
    return align_up<u64>(u64{n} * sizeof(u32), alignment);
  }

  char *memory;
  u64 bytes;
};

// An entry of the index array: the number of a string, constant, above its slot in
// the current column.
inline u32 entry_row(u64 entry)
{
  return static_cast<u32>(entry >> 32);
}

struct LoaderTimes
{
  u64 copied_bytes = 0;
  double load_ms = 0;
  double copy_ms = 0;
};

// Makes columns and copies them to the device, in threads of its own.
class ColumnLoader
{
public:
  ColumnLoader(const HostStrings &strings, u32 threads);
  ~ColumnLoader();

  // The longest rest, from offset on, of the strings of n entries; -1 where all of
  // them end before it.  Without entries of the first n strings.
  int64_t longest_left(const u64 *entries, u32 n, u64 offset) const;

  // Loads the column of the strings of n entries, in their order, or without
  // entries of the first n strings; returns when it is on the device.
  void load(const u64 *entries, const Column &column);

  // No column is needed any more: ends load() early, in whatever thread.
  void stop()
  {
    stopped.store(true, std::memory_order_relaxed);
  }

  const LoaderTimes &times() const
  {
    return sums;
  }

private:
  struct Worker;

  void load_pieces(Worker &worker, const u64 *entries, const Column &column);
  void gather(const u64 *entries, const Column &column, u32 first, u32 end, u32 *left, char *chars) const;

  const HostStrings &strings;
  int device = 0;
  Stream stream;
  std::vector<std::unique_ptr<Worker>> workers;
  std::mutex stream_lock; // a piece's copies follow one another on the stream
  std::atomic<u64> next_piece{0};
  std::atomic<bool> stopped{false};
  LoaderTimes sums;
};

} // namespace gpusort

#endif // GS_STREAMING_LOADER_CUH
