/*-------------------------------------------------------------------------
 *
 * datasets.cc
 *	  Strings like those of the papers, and adversaries.
 *
 * The papers' own files are gone or were never published.  These are drawn
 * so that number, bytes, and length of ties (how many characters a string shares
 * with its neighbours in the sorted order; largest and mean) come near to what
 * the papers say; the benchmark prints what they are.
 *
 * Rows are made in blocks by several threads, each block from random numbers
 * of its own: the data depend on the number of rows only.
 *
 *-------------------------------------------------------------------------
 */
#include "datasets.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <unordered_set>

namespace bench
{

namespace
{

class Random
{
public:
  explicit Random(uint64_t seed) : state(mix(seed * 0xd1342543de82ef95 + 1))
  {
  }
  uint64_t next()
  {
    return mix(state += 0x9e3779b97f4a7c15);
  }
  double uniform() // [0, 1)
  {
    return static_cast<double>(next() >> 11) * 0x1p-53;
  }
  uint32_t below(uint32_t n)
  {
    return static_cast<uint32_t>((next() >> 32) * n >> 32);
  }
  bool chance(double p)
  {
    return uniform() < p;
  }
  uint32_t between(uint32_t least, uint32_t most)
  {
    return least + below(most - least + 1);
  }
  // Number k < n about as often as 1 / (k + 1)^s.
  uint32_t zipf(uint32_t n, double s)
  {
    double u = uniform();
    double end = n + 1.0;
    double x = std::fabs(s - 1) < 1e-9 ? std::pow(end, u)
                                       : std::pow(1 + u * (std::pow(end, 1 - s) - 1), 1 / (1 - s));

    return std::min(n - 1, static_cast<uint32_t>(x) - 1);
  }
  // How often something of mean m happens before it stops.
  uint32_t geometric(double mean)
  {
    return static_cast<uint32_t>(std::log(1 - uniform()) / std::log(1 - 1 / (mean + 1)));
  }

private:
  static uint64_t mix(uint64_t z)
  {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }

  uint64_t state;
};

void in_threads(int threads, uint64_t n, const std::function<void(uint64_t)> &work)
{
  std::vector<std::thread> all;

  for (int t = 0; t < threads; t++)
    all.emplace_back(
        [=, &work]
        {
          for (uint64_t i = static_cast<uint64_t>(t); i < n; i += static_cast<uint64_t>(threads))
            work(i);
        });
  for (std::thread &thread : all)
    thread.join();
}

// One row is appended to *row.
using MakeRow = std::function<void(Random &random, uint64_t i, std::string *row)>;

Strings make_rows(uint64_t n, int threads, uint64_t seed, const MakeRow &make)
{
  constexpr uint64_t block = 1 << 15;
  uint64_t n_blocks = (n + block - 1) / block;
  std::vector<std::string> blocks(n_blocks);
  std::vector<uint64_t> starts(n_blocks + 1, 0);
  Strings strings;

  strings.begin.resize(n);
  strings.length.resize(n);
  in_threads(threads, n_blocks,
             [&](uint64_t b)
             {
               Random random(seed * 1000003 + b);
               std::string &bytes = blocks[b];

               for (uint64_t i = b * block; i < std::min(n, (b + 1) * block); i++)
               {
                 strings.begin[i] = bytes.size();
                 make(random, i, &bytes);
                 strings.length[i] = static_cast<uint32_t>(bytes.size() - strings.begin[i]);
                 bytes.push_back('\0');
               }
             });
  for (uint64_t b = 0; b < n_blocks; b++)
    starts[b + 1] = starts[b] + blocks[b].size();
  strings.bytes.resize(starts[n_blocks]);
  in_threads(threads, n_blocks,
             [&](uint64_t b)
             {
               memcpy(strings.bytes.data() + starts[b], blocks[b].data(), blocks[b].size());
               for (uint64_t i = b * block; i < std::min(n, (b + 1) * block); i++)
                 strings.begin[i] += starts[b];
               blocks[b] = std::string();
             });
  return strings;
}

// The rows in another order; their bytes stay.
void shuffle_rows(Strings *strings, uint64_t seed)
{
  Random random(seed);

  for (uint64_t i = strings->size(); i > 1; i--)
  {
    uint64_t j = random.next() % i;

    std::swap(strings->begin[i - 1], strings->begin[j]);
    std::swap(strings->length[i - 1], strings->length[j]);
  }
}

// n of the rows at least, without those that are there already, in their order.
void drop_duplicates(Strings *strings, uint64_t n, int threads)
{
  constexpr uint64_t buckets = 256;
  std::vector<uint64_t> hash(strings->size());
  std::vector<char> first(strings->size(), 0);
  uint64_t kept = 0;

  in_threads(threads, buckets,
             [&](uint64_t part)
             {
               for (uint64_t i = part; i < strings->size(); i += buckets)
               {
                 uint64_t h = 0xcbf29ce484222325;

                 for (uint32_t k = 0; k < strings->length[i]; k++)
                   h = (h ^ static_cast<uint8_t>(strings->bytes[strings->begin[i] + k])) * 0x100000001b3;
                 hash[i] = h ^ h >> 29;
               }
             });
  in_threads(threads, buckets,
             [&](uint64_t bucket)
             {
               std::vector<std::pair<uint64_t, uint64_t>> rows;

               for (uint64_t i = 0; i < strings->size(); i++)
                 if (hash[i] % buckets == bucket)
                   rows.emplace_back(hash[i], i);
               std::sort(rows.begin(), rows.end());
               for (size_t k = 0; k < rows.size(); k++)
                 first[rows[k].second] = k == 0 || rows[k - 1].first != rows[k].first;
             });
  for (uint64_t i = 0; i < strings->size() && kept < n; i++)
    if (first[i])
    {
      strings->begin[kept] = strings->begin[i];
      strings->length[kept++] = strings->length[i];
    }
  strings->begin.resize(kept);
  strings->length.resize(kept);
}

const char *const frequent_letters = "etaoinsrhldcumfpgwybvkxjqz";

void add_letters(Random &random, uint32_t n, double skew, std::string *to)
{
  for (uint32_t i = 0; i < n; i++)
    to->push_back(frequent_letters[skew > 0 ? random.zipf(26, skew) : random.below(26)]);
}

std::string letters(Random &random, uint32_t n, double skew)
{
  std::string word;

  add_letters(random, n, skew, &word);
  return word;
}

std::vector<std::string> vocabulary(Random &random, size_t n, uint32_t least, uint32_t most, double skew,
                                    bool distinct)
{
  std::vector<std::string> words;
  std::unordered_set<std::string> seen;

  while (words.size() < n)
  {
    std::string word = letters(random, random.between(least, most), skew);

    if (!distinct || seen.insert(word).second)
      words.push_back(word);
  }
  return words;
}

void add_number(uint32_t number, const char *format, std::string *to)
{
  char text[16];

  snprintf(text, sizeof text, format, number);
  *to += text;
}

// ---- Deshpande and Narayanan, table I ----

Strings make_artificial2(uint64_t n, int threads)
{
  return make_rows(n, threads, 2, [](Random &, uint64_t, std::string *row) { row->append(100, 'A'); });
}

Strings make_artificial4(uint64_t n, int threads)
{
  return make_rows(n, threads, 4,
                   [](Random &random, uint64_t, std::string *row)
                   {
                     uint32_t length = std::min(random.geometric(14.6) + 1, 99u);

                     for (uint32_t k = 0; k < length; k++)
                       row->push_back(static_cast<char>('a' + std::min(random.geometric(0.22), 8u)));
                   });
}

Strings make_artificial5(uint64_t n, int threads)
{
  return make_rows(n, threads, 5,
                   [](Random &random, uint64_t, std::string *row)
                   { row->append(random.between(1, 100), 'A'); });
}

Strings make_dictcalls(uint64_t n, int threads)
{
  Random random(6);
  std::vector<std::string> words = vocabulary(random, 60, 2, 5, 0.5, true);

  return make_rows(n, threads, 6,
                   [&](Random &random, uint64_t, std::string *row)
                   {
                     uint32_t calls = random.between(2, 8);

                     for (uint32_t k = 0; k < calls; k++)
                     {
                       *row += words[random.zipf(static_cast<uint32_t>(words.size()), 1.2)];
                       row->push_back(k + 1 < calls ? ' ' : '.');
                     }
                   });
}

Strings make_random(uint64_t n, int threads)
{
  return make_rows(n, threads, 7,
                   [](Random &random, uint64_t, std::string *row)
                   {
                     uint32_t length = random.between(92, 100);

                     for (uint32_t k = 0; k < length; k++)
                       row->push_back(static_cast<char>(random.between(33, 126)));
                   });
}

// Words of a language: morphemes, endings, numbers, capitals; and some long
// families.  All different.
Strings make_words_of(uint64_t n, int threads, double morphemes_more)
{
  static const char *const endings[] = {"s", "ed", "ing", "er", "ly", "ness"};
  Random random(8);
  std::vector<std::string> morphemes = vocabulary(random, 12000, 2, 4, 0.8, true);
  std::vector<std::string> families = vocabulary(random, 40, 30, 45, 0.3, true);

  Strings strings = make_rows(n * 24 / 10 + 100, threads, 8,
                              [&](Random &random, uint64_t, std::string *row)
                              {
                                if (random.chance(0.0004))
                                {
                                  *row += families[random.below(40)];
                                  add_letters(random, random.between(1, 5), 0.2, row);
                                  return;
                                }

                                size_t begin = row->size();
                                int count = 2 + random.chance(0.66 * morphemes_more) +
                                            random.chance(0.36 * morphemes_more) +
                                            random.chance(0.08 * morphemes_more);
                                double kind = random.uniform();

                                for (int k = 0; k < count; k++)
                                  *row += morphemes[random.zipf(12000, 1.12)];
                                if (kind < 0.25)
                                  *row += endings[random.below(6)];
                                else if (kind < 0.4)
                                  add_number(random.below(2000), "%u", row);
                                if (random.chance(0.1))
                                  (*row)[begin] = static_cast<char>((*row)[begin] - 'a' + 'A');
                              });

  drop_duplicates(&strings, n, threads);
  return strings;
}

Strings make_words(uint64_t n, int threads)
{
  return make_words_of(n, threads, 1);
}

// Drawn from a pool of addresses, the first ones more often.
Strings make_urls(uint64_t n, int threads, uint32_t pool_size, uint32_t longer)
{
  constexpr uint32_t n_hosts = 60000;
  static const char *const domains[] = {".com", ".edu", ".org", ".net", ".gov", ".co.uk", ".de"};
  Random random(9);
  std::vector<std::string> hosts;

  while (hosts.size() < n_hosts)
    hosts.push_back("http://www." + letters(random, random.between(2, 5), 0.5) +
                    domains[random.zipf(7, 1.2)]);

  Strings pool = make_rows(pool_size + pool_size / 2, threads, 9,
                           [&](Random &random, uint64_t, std::string *row)
                           {
                             uint32_t parts =
                                 longer + random.chance(0.9) + random.chance(0.2) + random.chance(0.05);

                             *row += hosts[random.zipf(n_hosts, 0.9)];
                             row->push_back('/');
                             for (uint32_t k = 0; k < parts; k++)
                             {
                               add_letters(random, random.between(2, 5), 0.5, row);
                               *row += k + 1 == parts && random.chance(0.6) ? ".html" : "/";
                             }
                             if (random.chance(0.003))
                               add_letters(random, random.between(20, longer == 0 ? 189 : 3400), 0.3, row);
                           });

  drop_duplicates(&pool, pool_size, threads);

  uint32_t distinct = static_cast<uint32_t>(pool.size());
  Strings strings = make_rows(n, threads, 10,
                              [&](Random &random, uint64_t i, std::string *row)
                              {
                                uint64_t from = i < distinct ? i : random.zipf(distinct, 0.6);

                                row->append(pool.bytes.data() + pool.begin[from], pool.length[from]);
                              });

  shuffle_rows(&strings, 11);
  return strings;
}

Strings make_url(uint64_t n, int threads)
{
  return make_urls(n, threads, static_cast<uint32_t>(std::max<uint64_t>(n * 129 / 1000, 1)), 0);
}

Strings make_genome(uint64_t n, int threads)
{
  return make_rows(n, threads, 12,
                   [](Random &random, uint64_t, std::string *row)
                   {
                     uint64_t bits = random.next();

                     for (int k = 0; k < 9; k++, bits >>= 2)
                       row->push_back("acgt"[bits & 3]);
                   });
}

Strings make_sentences_of(uint64_t n, int threads, uint32_t most_words)
{
  Random random(13);
  std::vector<std::string> words = vocabulary(random, 100, 1, 4, 0.6, false);
  std::vector<std::string> longer = vocabulary(random, 19900, 2, 9, 0.6, false);
  std::vector<std::string> openers;

  words.insert(words.end(), longer.begin(), longer.end());
  while (openers.size() < 4000)
  {
    std::string opener = words[random.zipf(300, 1.1)];

    opener[0] = static_cast<char>(opener[0] - 'a' + 'A');
    openers.push_back(opener + " " + words[random.zipf(2000, 1.0)] + " " + words[random.zipf(20000, 1.0)]);
  }
  return make_rows(n, threads, 13,
                   [&](Random &random, uint64_t, std::string *row)
                   {
                     uint32_t more = 1 + random.zipf(most_words, 0.25);

                     *row += openers[random.zipf(4000, 0.8)];
                     for (uint32_t k = 0; k < more; k++)
                     {
                       row->push_back(' ');
                       *row += words[random.zipf(20000, 1.0)];
                     }
                     row->push_back('.');
                   });
}

Strings make_sentences(uint64_t n, int threads)
{
  return make_sentences_of(n, threads, 20);
}

// A tree of directories with families of numbered files, five times, each time
// on another node.
Strings make_filelist(uint64_t n, int threads)
{
  constexpr uint32_t n_dirs = 60000;
  constexpr uint32_t n_popular = 400;
  static const char *const roots[] = {"/usr", "/home", "/opt", "/var", "/data"};
  static const char *const endings[] = {".c", ".h", ".o", ".txt", ".jpg", ".html", ".py", ""};
  Random random(14);
  std::vector<std::string> words = vocabulary(random, 3000, 3, 8, 0.5, false);
  std::vector<std::string> dirs(roots, roots + 5);
  std::vector<std::string> files;
  uint64_t n_files = (n + 4) / 5;

  while (dirs.size() < n_dirs)
  {
    uint32_t known = static_cast<uint32_t>(dirs.size());
    const std::string &parent = dirs[random.below(random.chance(0.8) ? std::min(known, n_popular) : known)];

    if (parent.size() <= 170)
      dirs.push_back(parent + "/" + words[random.zipf(3000, 0.6)]);
  }
  files.reserve(n_files);
  while (files.size() < n_files)
  {
    std::string stem = dirs[random.below(n_dirs)] + "/" + words[random.below(3000)];
    uint32_t count = 1 + random.zipf(500, 0.6);
    const char *ending = endings[random.below(8)];

    if (random.chance(0.5))
      stem += "_" + words[random.below(3000)];
    for (uint32_t k = 0; k < count && files.size() < n_files; k++)
    {
      files.push_back(stem);
      add_number(k, "%05u", &files.back());
      files.back() += ending;
    }
  }

  Strings strings = make_rows(n, threads, 14,
                              [&](Random &, uint64_t i, std::string *row)
                              {
                                add_number(static_cast<uint32_t>(i / n_files) + 1, "node%u", row);
                                *row += files[i % n_files];
                              });

  shuffle_rows(&strings, 15);
  return strings;
}

// Figure 4: ties made shorter by taking every k-th character only, or longer by
// having each one k times.
template <Strings (*make)(uint64_t, int), uint32_t every, uint32_t times>
Strings make_spread(uint64_t n, int threads)
{
  Strings from = make(n, threads);

  return make_rows(from.size(), threads, 0,
                   [&](Random &, uint64_t i, std::string *row)
                   {
                     for (uint32_t k = every - 1; k < from.length[i]; k += every)
                       row->append(times, from.bytes[from.begin[i] + k]);
                   });
}

// ---- Davidson and others ----

Strings make_wiki_words(uint64_t n, int threads)
{
  return make_words_of(n, threads, 0.3);
}

Strings make_book_sentences(uint64_t n, int threads)
{
  return make_sentences_of(n, threads, 34);
}

// ---- Thakkar and Narayanan ----

// Long names in directories that are mostly not deep.
Strings make_server_files(uint64_t n, int threads)
{
  constexpr uint32_t n_dirs = 40000;
  static const char *const endings[] = {".dat", ".log", ".jpg", ".gz", ".txt", ""};
  Random random(15);
  std::vector<std::string> words = vocabulary(random, 3000, 3, 8, 0.5, false);
  std::vector<std::string> dirs;

  while (dirs.size() < n_dirs)
  {
    std::string dir = "/home";
    uint32_t length = random.chance(0.002) ? 222 : random.between(12, 24);

    while (dir.size() < length)
      dir += "/" + words[random.zipf(3000, 0.6)];
    dirs.push_back(dir);
  }
  return make_rows(n, threads, 15,
                   [&](Random &random, uint64_t, std::string *row)
                   {
                     *row += dirs[random.zipf(n_dirs, 0.3)] + "/";
                     add_letters(random, random.between(20, 122), 0.3, row);
                     *row += endings[random.below(6)];
                   });
}

Strings make_urls_large(uint64_t n, int threads)
{
  return make_urls(n, threads, static_cast<uint32_t>(std::max<uint64_t>(n * 7 / 10, 1)), 4);
}

// Long runs of one letter.  Printed are 480 bytes a string and a mean tie of
// 78: so what follows the run is random.
Strings make_norandom(uint64_t n, int threads)
{
  return make_rows(n, threads, 16,
                   [](Random &random, uint64_t, std::string *row)
                   {
                     row->append(std::min(random.geometric(72), 1000u), 'a');
                     add_letters(random, random.between(100, 716), 0, row);
                   });
}

void add_bytes(Random &random, uint32_t n, std::string *to)
{
  for (uint32_t k = 0; k < n; k++)
    to->push_back(static_cast<char>(random.between(1, 255)));
}

Strings make_totalrandom(uint64_t n, int threads)
{
  return make_rows(n, threads, 17,
                   [](Random &random, uint64_t, std::string *row)
                   { add_bytes(random, random.between(1, 960), row); });
}

Strings make_partlyrandom(uint64_t n, int threads)
{
  Random random(18);
  std::string blocks[4];

  for (std::string &block : blocks)
    add_bytes(random, 60, &block);
  return make_rows(n, threads, 18,
                   [&](Random &random, uint64_t, std::string *row)
                   {
                     const std::string &block = blocks[random.below(4)];
                     uint32_t count = 1 + std::min(random.geometric(0.1), 7u);

                     for (uint32_t k = 0; k < count; k++)
                       *row += block;
                     add_bytes(random, random.between(200, 948), row);
                   });
}

// ---- keys of one length ----

template <uint32_t width>
Strings make_uniform(uint64_t n, int threads)
{
  return make_rows(n, threads, 20 + width,
                   [](Random &random, uint64_t, std::string *row)
                   {
                     for (uint32_t at = 0; at < width; at += 8)
                     {
                       uint64_t bits = random.next();

                       row->append(reinterpret_cast<const char *>(&bits), std::min(width - at, 8u));
                     }
                   });
}

// ---- others ----

Strings make_letters(uint64_t n, int threads)
{
  return make_rows(n, threads, 40,
                   [](Random &random, uint64_t, std::string *row)
                   { add_letters(random, random.between(5, 16), 0, row); });
}

Strings make_random16(uint64_t n, int threads)
{
  return make_rows(n, threads, 41,
                   [](Random &random, uint64_t, std::string *row) { add_bytes(random, 16, row); });
}

Strings make_shared1000(uint64_t n, int threads)
{
  std::string shared(1000, 's');

  return make_rows(n, threads, 50,
                   [&](Random &random, uint64_t, std::string *row)
                   {
                     *row += shared;
                     add_letters(random, 8, 0, row);
                   });
}

Strings make_comb(uint64_t n, int threads)
{
  Strings strings = make_rows(n, threads, 51,
                              [](Random &, uint64_t i, std::string *row) { row->append(1 + i % 1000, 'a'); });

  shuffle_rows(&strings, 51);
  return strings;
}

Strings make_one_distinct(uint64_t n, int threads)
{
  return make_rows(n, threads, 52,
                   [=](Random &, uint64_t i, std::string *row)
                   {
                     row->append(100, 'e');
                     if (i == n / 3)
                       row->back() = 'd';
                   });
}

Strings make_empty(uint64_t n, int threads)
{
  return make_rows(n, threads, 53, [](Random &, uint64_t, std::string *) {});
}

Strings make_long_short(uint64_t n, int threads)
{
  return make_rows(n, threads, 54,
                   [](Random &random, uint64_t i, std::string *row)
                   { add_letters(random, i % 2 == 0 ? 3 : 250, 0, row); });
}

Strings make_zeros(uint64_t n, int threads)
{
  return make_rows(n, threads, 55,
                   [](Random &random, uint64_t, std::string *row)
                   {
                     uint32_t length = random.between(0, 30);

                     for (uint32_t k = 0; k < length; k++)
                       row->push_back(static_cast<char>(random.chance(0.1)));
                   });
}

} // namespace

const std::vector<Dataset> datasets = {
    {"artificial-2", Group::strings, 1000000, "One string of 100 characters", make_artificial2},
    {"artificial-4", Group::strings, 10000000, "Characters a to i", make_artificial4},
    {"artificial-5", Group::strings, 1000000, "One character 1 to 100 times", make_artificial5},
    {"dictcalls", Group::strings, 100187, "Calls from a small vocabulary", make_dictcalls},
    {"random", Group::strings, 1000000, "About 100 printable characters", make_random},
    {"words", Group::strings, 10000000, "Words, all different", make_words},
    {"url", Group::strings, 10000000, "Addresses, most of them several times", make_url},
    {"genome", Group::strings, 31623000, "9 of a, c, g, t", make_genome},
    {"sentences", Group::strings, 1800000, "Sentences with frequent openings", make_sentences},
    {"pc-filelist", Group::strings, 10000000, "File paths, five times with another prefix", make_filelist},
    {"wiki-words", Group::strings, 1000000, "Short words", make_wiki_words},
    {"book-sentences", Group::strings, 1000000, "Sentences of about 98 characters", make_book_sentences},
    {"letters", Group::strings, 10000000, "5 to 16 random letters", make_letters},
    {"random16", Group::strings, 10000000, "16 random bytes", make_random16},

    {"words/8", Group::ties, 10000000, "Every 8th character of words", make_spread<make_words, 8, 1>},
    {"words/4", Group::ties, 10000000, "Every 4th character of words", make_spread<make_words, 4, 1>},
    {"words*2", Group::ties, 10000000, "Each character of words twice", make_spread<make_words, 1, 2>},
    {"words*4", Group::ties, 10000000, "Each character of words 4 times", make_spread<make_words, 1, 4>},
    {"pc-filelist/8", Group::ties, 10000000, "Every 8th character of pc-filelist",
     make_spread<make_filelist, 8, 1>},
    {"pc-filelist/4", Group::ties, 10000000, "Every 4th character of pc-filelist",
     make_spread<make_filelist, 4, 1>},
    {"pc-filelist/2", Group::ties, 10000000, "Every 2nd character of pc-filelist",
     make_spread<make_filelist, 2, 1>},

    {"filelist", Group::streaming, 10000000, "Long file names", make_server_files},
    {"urls_large", Group::streaming, 40000000, "Longer addresses", make_urls_large},
    {"norandom", Group::streaming, 10000000, "Runs of one letter, then random ones", make_norandom},
    {"totalrandom", Group::streaming, 10000000, "1 to 960 random bytes", make_totalrandom},
    {"partlyrandom", Group::streaming, 10000000, "Repeated blocks, then random bytes", make_partlyrandom},

    {"int4", Group::fixed, 10000000, "4 random bytes", make_uniform<4>},
    {"int8", Group::fixed, 10000000, "8 random bytes", make_uniform<8>},
    {"uuid", Group::fixed, 10000000, "16 random bytes", make_uniform<16>},
    {"int4-100M", Group::fixed, 100000000, "4 random bytes", make_uniform<4>},

    {"shared-1000", Group::adversaries, 10000000, "1,000 equal bytes, then 8 letters", make_shared1000},
    {"comb", Group::adversaries, 2000000, "a, aa, aaa, ... 1,000 times a", make_comb},
    {"one-distinct", Group::adversaries, 10000000, "One string of 100 characters, but once",
     make_one_distinct},
    {"empty", Group::adversaries, 10000000, "No character", make_empty},
    {"long-short", Group::adversaries, 10000000, "3 and 250 letters in turn", make_long_short},
    {"zeros", Group::adversaries, 1000000, "0 to 30 bytes, most of them NUL", make_zeros},
};

Strings read_lines(const char *path)
{
  Strings strings;
  FILE *file = fopen(path, "rb");
  size_t at = 0;

  if (file == nullptr || fseek(file, 0, SEEK_END) != 0)
  {
    perror(path);
    exit(2);
  }
  strings.bytes.resize(static_cast<size_t>(ftell(file)));
  rewind(file);
  if (fread(strings.bytes.data(), 1, strings.bytes.size(), file) != strings.bytes.size())
  {
    perror(path);
    exit(2);
  }
  fclose(file);
  while (at < strings.bytes.size())
  {
    const char *begin = strings.bytes.data() + at;
    const void *end = memchr(begin, '\n', strings.bytes.size() - at);
    size_t length = end == nullptr ? strings.bytes.size() - at
                                   : static_cast<size_t>(static_cast<const char *>(end) - begin);

    strings.begin.push_back(at);
    strings.length.push_back(static_cast<uint32_t>(length));
    at += length + 1;
  }
  return strings;
}

} // namespace bench
