/*-------------------------------------------------------------------------
 *
 * datasets.h
 *	  Keys to sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_BENCH_DATASETS_H
#define GS_BENCH_DATASETS_H

#include <cstdint>
#include <string>
#include <vector>

namespace bench
{

// n strings in one array of bytes, delimited by NUL there.
struct Strings
{
  std::vector<char> bytes;
  std::vector<uint64_t> begin; // of row i
  std::vector<uint32_t> length;

  uint64_t size() const
  {
    return begin.size();
  }
};

enum class Group
{
  strings,
  ties,
  streaming,
  fixed,
  adversaries
};

struct Dataset
{
  const char *name;
  Group group;
  uint64_t n; // as in the papers
  const char *about;
  Strings (*make)(uint64_t n, int threads);
};

extern const std::vector<Dataset> datasets;

// The lines of a file.
Strings read_lines(const char *path);

} // namespace bench

#endif // GS_BENCH_DATASETS_H
