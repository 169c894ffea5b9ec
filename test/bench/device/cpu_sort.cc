/*-------------------------------------------------------------------------
 *
 * cpu_sort.cc
 *	  Sort of strings by the CPU.
 *
 * A sorted sample gives splitters, threads move rows to the buckets between them,
 * and sort the buckets by std::sort.  Rows travel with their first 8 bytes, so that
 * most comparisons do not touch the strings.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_sort.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

namespace bench
{

namespace
{

constexpr uint64_t buckets_per_thread = 16;
constexpr uint64_t samples_per_bucket = 32;

struct Entry
{
  uint64_t word; // the first 8 bytes, the first one highest, zeros behind the end
  uint32_t row;
};

Entry make_entry(const Strings &strings, uint32_t row)
{
  uint64_t word = 0;

  memcpy(&word, strings.bytes.data() + strings.begin[row], std::min(strings.length[row], 8u));
  return {__builtin_bswap64(word), row};
}

// Of the strings, beyond what the words tell.
int compare(const Strings &strings, const Entry &a, const Entry &b)
{
  if (a.word != b.word)
    return a.word < b.word ? -1 : 1;

  uint32_t a_length = strings.length[a.row];
  uint32_t b_length = strings.length[b.row];
  uint32_t least = std::min(a_length, b_length);
  int result = least <= 8 ? 0
                          : memcmp(strings.bytes.data() + strings.begin[a.row] + 8,
                                   strings.bytes.data() + strings.begin[b.row] + 8, least - 8);

  if (result != 0)
    return result;
  return a_length < b_length ? -1 : a_length > b_length;
}

struct Less
{
  const Strings &strings;

  bool operator()(const Entry &a, const Entry &b) const
  {
    int result = compare(strings, a, b);

    return result != 0 ? result < 0 : a.row < b.row;
  }
};

void in_threads(int threads, const std::function<void(uint64_t)> &work)
{
  std::vector<std::thread> all;

  for (int t = 0; t < threads; t++)
    all.emplace_back(work, static_cast<uint64_t>(t));
  for (std::thread &thread : all)
    thread.join();
}

// Splitters of that many buckets.
std::vector<Entry> take_splitters(const Strings &strings, uint64_t n_buckets)
{
  uint64_t n_samples = std::min(strings.size(), n_buckets * samples_per_bucket);
  std::vector<Entry> samples;
  std::vector<Entry> splitters;

  for (uint64_t i = 0; i < n_samples; i++)
    samples.push_back(make_entry(strings, static_cast<uint32_t>(strings.size() * i / n_samples)));
  std::sort(samples.begin(), samples.end(), Less{strings});
  for (uint64_t b = 1; b < n_buckets && n_samples > 0; b++)
    splitters.push_back(samples[n_samples * b / n_buckets]);
  return splitters;
}

} // namespace

void sort_by_cpu(const Strings &strings, int threads, std::vector<uint32_t> *order, std::vector<uint8_t> *tie)
{
  uint64_t n = strings.size();
  uint64_t n_threads = static_cast<uint64_t>(threads);
  uint64_t n_buckets = n_threads * buckets_per_thread;
  std::vector<Entry> splitters = take_splitters(strings, n_buckets);
  std::vector<uint32_t> bucket_of(n);
  std::vector<Entry> entries(n);
  std::vector<std::vector<uint64_t>> places(n_threads, std::vector<uint64_t>(n_buckets, 0));
  std::vector<uint64_t> starts(n_buckets + 1, 0);
  std::atomic<uint64_t> next_bucket{0};
  Less less{strings};

  order->resize(n);
  tie->resize(n);
  in_threads(threads,
             [&](uint64_t t)
             {
               for (uint64_t i = n * t / n_threads; i < n * (t + 1) / n_threads; i++)
               {
                 Entry entry = make_entry(strings, static_cast<uint32_t>(i));

                 bucket_of[i] = static_cast<uint32_t>(
                     std::upper_bound(splitters.begin(), splitters.end(), entry, less) - splitters.begin());
                 places[t][bucket_of[i]]++;
               }
             });

  uint64_t sum = 0;

  for (uint64_t b = 0; b < n_buckets; b++)
  {
    starts[b] = sum;
    for (std::vector<uint64_t> &place : places)
    {
      uint64_t count = place[b];

      place[b] = sum;
      sum += count;
    }
  }
  starts[n_buckets] = sum;
  in_threads(threads,
             [&](uint64_t t)
             {
               for (uint64_t i = n * t / n_threads; i < n * (t + 1) / n_threads; i++)
                 entries[places[t][bucket_of[i]]++] = make_entry(strings, static_cast<uint32_t>(i));
             });
  in_threads(threads,
             [&](uint64_t)
             {
               for (uint64_t b; (b = next_bucket.fetch_add(1)) < n_buckets;)
                 std::sort(entries.begin() + static_cast<int64_t>(starts[b]),
                           entries.begin() + static_cast<int64_t>(starts[b + 1]), less);
             });
  in_threads(threads,
             [&](uint64_t t)
             {
               for (uint64_t i = n * t / n_threads; i < n * (t + 1) / n_threads; i++)
               {
                 (*order)[i] = entries[i].row;
                 (*tie)[i] = i > 0 && compare(strings, entries[i - 1], entries[i]) == 0;
               }
             });
}

} // namespace bench
