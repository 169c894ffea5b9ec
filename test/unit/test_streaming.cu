/*-------------------------------------------------------------------------
 *
 * test_streaming.cu
 *	  The sort of strings that stay in host memory, against std::sort.
 *
 *	  test_streaming [SEED]
 *
 * Every set of strings is sorted in each mode, by columns with as little device memory
 * as the sort takes and with more.  A case prints "ok" or "not ok" and its
 * name; the last line counts both.  Without a GPU all are skipped, with success.
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "streaming.cuh"

using namespace gpusort;

namespace
{

using Random = std::mt19937_64;

u32 below(Random &random, u32 limit)
{
  return static_cast<u32>(random() % limit);
}

// Strings in one allocation, that many bytes apart from each other.
class Set
{
public:
  Set(const std::vector<std::string> &all, u32 gap)
  {
    for (const std::string &string : all)
    {
      begin.push_back(bytes.size());
      length.push_back(static_cast<u32>(string.size()));
      bytes.insert(bytes.end(), string.begin(), string.end());
      bytes.insert(bytes.end(), gap, '#');
    }
  }
  HostStrings strings() const
  {
    return {bytes.data(), bytes.size(), begin.data(), length.data(), n()};
  }
  u32 n() const
  {
    return static_cast<u32>(begin.size());
  }
  std::string_view string(u32 row) const
  {
    return {bytes.data() + begin[row], length[row]};
  }

private:
  std::vector<char> bytes;
  std::vector<uint64_t> begin;
  std::vector<u32> length;
};

unsigned n_passed;
unsigned n_failed;
bool failing;

void check(bool good, const char *what)
{
  if (good)
    return;
  printf("# %s\n", what);
  failing = true;
}

void end_case(const std::string &name)
{
  (failing ? n_failed : n_passed)++;
  printf("%s %u - %s\n", failing ? "not ok" : "ok", n_passed + n_failed, name.c_str());
  fflush(stdout);
  failing = false;
}

struct Order
{
  std::vector<u32> row;
  std::vector<u8> tie;
};

// char_traits<char> compares as unsigned bytes, a prefix before the longer string.
Order right_order(const Set &set)
{
  Order order = {std::vector<u32>(set.n()), std::vector<u8>(set.n())};

  std::iota(order.row.begin(), order.row.end(), 0);
  std::stable_sort(order.row.begin(), order.row.end(),
                   [&](u32 a, u32 b) { return set.string(a) < set.string(b); });
  for (u32 i = 1; i < set.n(); i++)
    order.tie[i] = set.string(order.row[i - 1]) == set.string(order.row[i]);
  return order;
}

StreamingReport sort_and_check(const Set &set, const Order &right, const StreamingOptions &options)
{
  Order order = {std::vector<u32>(set.n(), ~0u), std::vector<u8>(set.n(), 2)};
  StreamingReport report = sort_streaming(set.strings(), options, order.row.data(), order.tie.data());

  check(order.row == right.row, "another order");
  check(order.tie == right.tie, "other ties");
  check(report.device_bytes <= options.memory_limit, "more device memory than allowed");
  return report;
}

// The set in all modes.
void check_set(const std::string &name, const std::vector<std::string> &all)
{
  constexpr u64 plenty = u64{1} << 30;

  for (u32 gap : {0, 1})
  {
    Set set(all, gap);
    Order right = right_order(set);
    StreamingOptions options = {};

    options.memory_limit = plenty;
    options.mode = StreamingMode::cpu;
    sort_and_check(set, right, options);
    options.mode = StreamingMode::gpu;
    sort_and_check(set, right, options);
    options.mode = StreamingMode::both;
    for (u32 k : {8, 24, 56, 4096})
    {
      options.memory_limit = streaming_bytes(set.n(), k);
      options.loader_threads = 1 + k % 3;
      options.dynamic = false;

      StreamingReport fixed = sort_and_check(set, right, options);

      options.dynamic = true;

      StreamingReport dynamic = sort_and_check(set, right, options);

      check(fixed.last_k == fixed.first_k, "a fixed K that changes");
      check(dynamic.steps <= fixed.steps, "more steps with a dynamic K");
    }
  }
  end_case(name);
}

std::vector<std::string> make(u32 n, const std::function<std::string(u32)> &string)
{
  std::vector<std::string> all;

  for (u32 i = 0; i < n; i++)
    all.push_back(string(i));
  return all;
}

// A string of the given length, of bytes that are below `symbols`.
std::string random_string(Random &random, u32 length, u32 symbols)
{
  std::string string;

  while (string.size() < length)
    string.push_back(static_cast<char>(below(random, symbols)));
  return string;
}

void check_sets(Random &random)
{
  for (u32 n : {1, 2, 3, 255, 256, 257, 20000})
    check_set("random strings: " + std::to_string(n),
              make(n, [&](u32) { return random_string(random, below(random, 60), 256); }));
  check_set("empty", make(1000, [](u32) { return std::string(); }));
  check_set("one string", make(1000, [](u32) { return std::string(45, 'x'); }));
  check_set("lengths of one letter", make(3000, [&](u32) { return std::string(below(random, 90), 'x'); }));
  check_set("lengths of NUL", make(3000, [&](u32) { return std::string(below(random, 90), '\0'); }));
  check_set("mostly NUL", make(20000,
                               [&](u32)
                               {
                                 std::string string(below(random, 40), '\0');

                                 if (!string.empty() && below(random, 3) == 0)
                                   string[below(random, static_cast<u32>(string.size()))] = '\1';
                                 return string;
                               }));
  check_set("two symbols, one of them NUL",
            make(20000, [&](u32) { return random_string(random, below(random, 30), 2); }));
  check_set("an end, or NUL and more, at each place", make(20000,
                                                           [&](u32)
                                                           {
                                                             std::string string(below(random, 26), 'p');

                                                             string.append(below(random, 3), '\0');
                                                             if (below(random, 4) == 0)
                                                               string += random_string(random,
                                                                                       below(random, 12), 2);
                                                             return string;
                                                           }));
  check_set(
      "long common prefix",
      make(5000, [&](u32) { return std::string(500, 's') + random_string(random, below(random, 12), 4); }));
  check_set("one that differs in its last byte", make(2000,
                                                      [](u32 i)
                                                      {
                                                        std::string string(333, 'e');

                                                        if (i == 700)
                                                          string.back() = 'd';
                                                        return string;
                                                      }));
  check_set("groups that end at different columns",
            make(20000,
                 [&](u32)
                 {
                   u32 group = below(random, 40);

                   return std::string(group * 3, static_cast<char>('a' + group)) +
                          random_string(random, below(random, 5), 3);
                 }));
  check_set("one very long string",
            make(300, [&](u32 i) { return random_string(random, i == 7 ? 150000 : 20, 2); }));
  check_set("two very long strings", make(300,
                                          [](u32 i)
                                          {
                                            std::string string(i % 100 == 7 ? 150000 : i + 1, 'l');

                                            string.back() = i == 7 ? 'k' : 'l';
                                            return string;
                                          }));
  check_set("more segments than two bytes can number",
            make(300000,
                 [&](u32)
                 {
                   std::string string = std::to_string(100000 + below(random, 100000));

                   return string + std::string(20, '-') + random_string(random, 2, 3);
                 }));
}

// How many columns it takes.
void check_steps()
{
  Set set(make(2000, [](u32) { return std::string(100, 'x'); }), 0);
  Order right = right_order(set);
  StreamingOptions options = {};

  options.mode = StreamingMode::both;
  for (u32 k : {8, 40, 96, 104})
  {
    options.memory_limit = streaming_bytes(set.n(), k);

    StreamingReport report = sort_and_check(set, right, options);

    check(report.first_k == k, "another K");
    check(report.steps == 100 / k + 1, "another number of steps");
  }
  end_case("steps with a fixed K");

  // Half of the strings are told apart by the first 8 bytes.
  Set halves(make(4000,
                  [](u32 i)
                  {
                    std::string number = std::to_string(10000000 + i);

                    return i % 2 == 0 ? number : std::string(100, 'y') + number;
                  }),
             0);

  right = right_order(halves);
  options.memory_limit = streaming_bytes(halves.n(), 8);

  StreamingReport fixed = sort_and_check(halves, right, options);

  options.dynamic = true;

  StreamingReport dynamic = sort_and_check(halves, right, options);

  check(fixed.steps == 14, "another number of steps with a fixed K");
  check(dynamic.first_k == 8 && dynamic.last_k > 8, "a dynamic K that does not grow");
  check(dynamic.steps < fixed.steps, "as many steps with a dynamic K");
  end_case("a dynamic K grows when strings are in their places");
}

bool is_refused(const Set &set, const StreamingOptions &options)
{
  std::vector<u32> order(set.n());
  std::vector<u8> tie(set.n());

  try
  {
    sort_streaming(set.strings(), options, order.data(), tie.data());
  }
  catch (const Failure &failure)
  {
    return failure.status == GS_NO_MEMORY;
  }
  return false;
}

void check_modes(Random &random)
{
  Set set(make(5000, [&](u32) { return random_string(random, 200, 256); }), 1);
  Order right = right_order(set);
  StreamingOptions options = {};

  options.cpu_rows = 5001;
  check(sort_and_check(set, right, options).mode == StreamingMode::cpu, "few strings, and not the CPU");
  options.cpu_rows = 5000;
  options.memory_limit = streaming_bytes(set.n(), 8);
  check(sort_and_check(set, right, options).mode == StreamingMode::both, "little memory, and not both");
  options.memory_limit = u64{1} << 30;
  check(sort_and_check(set, right, options).mode == StreamingMode::gpu, "all would fit on the device");
  end_case("the mode by the paper's rule");

  options.mode = StreamingMode::both;
  options.memory_limit = streaming_bytes(set.n(), 8) - 1;
  check(is_refused(set, options), "columns in too little memory");
  options.mode = StreamingMode::gpu;
  check(is_refused(set, options), "whole strings in too little memory");
  end_case("too little memory");

  StreamingReport report = sort_streaming({}, options, nullptr, nullptr);

  check(report.steps == 0, "steps without strings");
  end_case("no strings");
}

} // namespace

int main(int argc, char **argv)
{
  Random random(argc > 1 ? strtoull(argv[1], nullptr, 10) : 1);
  int devices = 0;

  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
  {
    printf("skipped: no GPU here\n");
    return 0;
  }
  try
  {
    check_sets(random);
    check_steps();
    check_modes(random);
  }
  catch (const Failure &failure)
  {
    printf("# %s\n", failure.error.message);
    failing = true;
    end_case("the case after the last one");
  }
  printf("%u passed, %u failed\n", n_passed, n_failed);
  return n_failed > 0;
}
