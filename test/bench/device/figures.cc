/*-------------------------------------------------------------------------
 *
 * figures.cc
 *	  What the papers print, in milliseconds.
 *
 * radix2013 and the sort by a comparator: Deshpande and Narayanan, HiPC 2013,
 * GTX 580, without memory setup.  Table II (t1 + t2 + t3; for the other, Thrust), and
 * what figure 4 gives as multiples.
 *
 * streaming: Thakkar and Narayanan, tables III and IV, GTX Titan with 6 GB,
 * transfers included; cpu: the best of four there, four cores.
 *
 * merge2012: the figures for the implementation of its authors that Deshpande and
 * Narayanan measured (section IV.D), the authors' own 70 million words a second
 * (abstract), and for pairs of 32 bits the rate that follows from their "4.2
 * times away from" a bound of 785 million (section 6).
 *
 * radix2011: Harada and Howes, section 4: 520 million keys a second, HD 6970.
 *
 *-------------------------------------------------------------------------
 */
#include "figures.h"

namespace bench
{

namespace
{

struct Figure
{
  const char *dataset;
  const char *engine;
  double ms;
};

constexpr double pairs_2012 = 785.45e3 / 4.2; // a millisecond
constexpr double keys_2011 = 520e3;

const Figure figures[] = {
    {"artificial-2", "radix2013", 127},
    {"artificial-4", "radix2013", 328},
    {"artificial-5", "radix2013", 113},
    {"dictcalls", "radix2013", 11},
    {"random", "radix2013", 12},
    {"words", "radix2013", 154},
    {"url", "radix2013", 782},
    {"genome", "radix2013", 445},
    {"sentences", "radix2013", 119},
    {"pc-filelist", "radix2013", 1182},

    {"artificial-2", "comparator", 2652},
    {"artificial-4", "comparator", 5699},
    {"artificial-5", "comparator", 1808},
    {"dictcalls", "comparator", 32},
    {"random", "comparator", 75},
    {"words", "comparator", 2016},
    {"url", "comparator", 8559},
    {"genome", "comparator", 14064},
    {"sentences", "comparator", 895},
    {"pc-filelist", "comparator", 9003},

    {"words/8", "radix2013", 0.4 * 154},
    {"words/4", "radix2013", 0.5 * 154},
    {"words*2", "radix2013", 2.4 * 154},
    {"words*4", "radix2013", 3.3 * 154},
    {"pc-filelist/2", "radix2013", 0.47 * 1182},
    {"pc-filelist/4", "radix2013", 0.23 * 1182},
    {"pc-filelist/8", "radix2013", 0.12 * 1182},

    {"filelist", "streaming", 692},
    {"norandom", "streaming", 12966},
    {"totalrandom", "streaming", 580},
    {"partlyrandom", "streaming", 3281},
    {"urls_large", "streaming", 9641},
    {"norandom", "streaming_dynamic", 12684},
    {"totalrandom", "streaming_dynamic", 585},
    {"partlyrandom", "streaming_dynamic", 4634},
    {"urls_large", "streaming_dynamic", 9720},
    {"filelist", "cpu", 1643},
    {"norandom", "cpu", 9705},
    {"totalrandom", "cpu", 3142},
    {"partlyrandom", "cpu", 4751},
    {"urls_large", "cpu", 4056},

    {"random", "merge2012", 27},
    {"words", "merge2012", 2100},
    {"wiki-words", "merge2012", 1000000 / 70e3},
    {"int4", "merge2012", 10000000 / pairs_2012},
    {"int4", "radix2011", 10000000 / keys_2011},
    {"int4-100M", "radix2011", 100000000 / keys_2011},
};

} // namespace

double printed_ms(const std::string &dataset, const std::string &engine)
{
  for (const Figure &figure : figures)
    if (dataset == figure.dataset && engine == figure.engine)
      return figure.ms;
  return 0;
}

} // namespace bench
