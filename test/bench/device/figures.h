/*-------------------------------------------------------------------------
 *
 * figures.h
 *	  What the papers print.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_BENCH_FIGURES_H
#define GS_BENCH_FIGURES_H

#include <cstdint>
#include <string>

namespace bench
{

// The printed milliseconds of an engine for a dataset, 0 where there are none.
double printed_ms(const std::string &dataset, const std::string &engine);

} // namespace bench

#endif // GS_BENCH_FIGURES_H
