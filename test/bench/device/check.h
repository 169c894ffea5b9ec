/*-------------------------------------------------------------------------
 *
 * check.h
 *	  Whether an order is the right one, and what it tells of the keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_BENCH_CHECK_H
#define GS_BENCH_CHECK_H

#include "datasets.h"

namespace bench
{

struct Findings
{
  std::string wrong; // empty: all is right
  uint64_t distinct;
  uint64_t most_tie;             // characters shared with a neighbour in the order
  double mean_tie;               // of both neighbours
  uint64_t distinguishing_bytes; // that any sort must read to tell all keys apart
};

// Checks that order has every row once, in order of their keys, equal ones by
// row, and that tie tells just where keys are equal.
Findings check_order(const Strings &strings, const std::vector<uint32_t> &order,
                     const std::vector<uint8_t> &tie, int threads);

} // namespace bench

#endif // GS_BENCH_CHECK_H
