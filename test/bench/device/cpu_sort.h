/*-------------------------------------------------------------------------
 *
 * cpu_sort.h
 *	  Sort of strings by the CPU.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_BENCH_CPU_SORT_H
#define GS_BENCH_CPU_SORT_H

#include "datasets.h"

namespace bench
{

// The order of the strings, equal ones by row; tie tells what equals the rank before.
void sort_by_cpu(const Strings &strings, int threads, std::vector<uint32_t> *order,
                 std::vector<uint8_t> *tie);

} // namespace bench

#endif // GS_BENCH_CPU_SORT_H
