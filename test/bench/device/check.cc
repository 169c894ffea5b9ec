/*-------------------------------------------------------------------------
 *
 * check.cc
 *	  The right order, by the CPU.
 *
 * Each pair of neighbours in the order is compared byte by byte: they must be in
 * order, or equal and in order of their rows; then, if every row is there
 * once, the order is the only right one.  How many bytes they share gives the
 * papers' measure of difficulty, and the bytes that have to be read: of each key
 * those that it shares with a neighbour and one more, if it has one.
 *
 *-------------------------------------------------------------------------
 */
#include "check.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

namespace bench
{

namespace
{

struct Compared
{
  uint32_t shared;
  int result;
};

Compared compare_rows(const Strings &strings, uint32_t a, uint32_t b)
{
  const uint8_t *a_bytes = reinterpret_cast<const uint8_t *>(strings.bytes.data()) + strings.begin[a];
  const uint8_t *b_bytes = reinterpret_cast<const uint8_t *>(strings.bytes.data()) + strings.begin[b];
  uint32_t least = std::min(strings.length[a], strings.length[b]);
  uint32_t at = 0;

  for (uint64_t a_word, b_word; at + 8 <= least; at += 8)
  {
    memcpy(&a_word, a_bytes + at, 8);
    memcpy(&b_word, b_bytes + at, 8);
    if (a_word != b_word)
      break;
  }
  while (at < least && a_bytes[at] == b_bytes[at])
    at++;
  if (at < least)
    return {at, a_bytes[at] < b_bytes[at] ? -1 : 1};
  return {at, strings.length[a] < strings.length[b] ? -1 : strings.length[a] > strings.length[b]};
}

} // namespace

Findings check_order(const Strings &strings, const std::vector<uint32_t> &order,
                     const std::vector<uint8_t> &tie, int threads)
{
  uint64_t n = strings.size();
  std::vector<std::atomic<uint8_t>> seen(n);
  std::vector<uint32_t> shared(n + 1, 0); // by rank i and i - 1
  Findings all = {};
  std::mutex lock;
  std::vector<std::thread> workers;
  double tie_sum = 0;

  auto in_threads = [&](auto work)
  {
    workers.clear();
    for (int t = 0; t < threads; t++)
      workers.emplace_back(work, n * static_cast<uint64_t>(t) / static_cast<uint64_t>(threads),
                           n * (static_cast<uint64_t>(t) + 1) / static_cast<uint64_t>(threads));
    for (std::thread &worker : workers)
      worker.join();
  };

  in_threads(
      [&](uint64_t begin, uint64_t end)
      {
        std::string wrong;
        uint64_t distinct = 0;

        for (uint64_t i = begin; i < end && wrong.empty(); i++)
        {
          if (order[i] >= n || seen[order[i]].exchange(1, std::memory_order_relaxed) != 0)
            wrong = "row " + std::to_string(order[i]) + " does not exist or comes twice";
          else if (i == 0)
          {
            distinct++;
            if (tie[0] != 0)
              wrong = "the first rank is a tie";
          }
          else if (order[i - 1] < n)
          {
            Compared compared = compare_rows(strings, order[i - 1], order[i]);

            shared[i] = compared.shared;
            distinct += compared.result != 0;
            if (compared.result > 0 || (compared.result == 0 && order[i - 1] > order[i]))
              wrong = "rank " + std::to_string(i) + " is out of order";
            else if ((compared.result == 0) != (tie[i] != 0))
              wrong = "rank " + std::to_string(i) + " has a wrong tie flag";
          }
        }

        std::lock_guard<std::mutex> guard(lock);

        all.distinct += distinct;
        if (all.wrong.empty())
          all.wrong = wrong;
      });
  in_threads(
      [&](uint64_t begin, uint64_t end)
      {
        uint64_t most = 0;
        uint64_t sum = 0;
        uint64_t bytes = 0;

        for (uint64_t i = begin; i < end; i++)
        {
          uint32_t longest = std::max(shared[i], shared[i + 1]);

          most = std::max<uint64_t>(most, longest);
          sum += shared[i] + shared[i + 1];
          if (order[i] < n)
            bytes += std::min(strings.length[order[i]], longest + 1);
        }

        std::lock_guard<std::mutex> guard(lock);

        all.most_tie = std::max(all.most_tie, most);
        all.distinguishing_bytes += bytes;
        tie_sum += static_cast<double>(sum);
      });
  all.mean_tie = n > 0 ? tie_sum / 2 / static_cast<double>(n) : 0;
  return all;
}

} // namespace bench
