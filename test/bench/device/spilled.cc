/*-------------------------------------------------------------------------
 *
 * spilled.cc
 *	  Our sort of strings that a device's memory does not hold.
 *
 * A record's row is the number of a string, its key the string.  Chunks of them are
 * appended until the device refuses one; what it has taken is performed, fetched
 * as sorted chunks, and written to files as a run.  Afterwards the runs are read
 * back range by range of keys, and each range is sorted by itself (src/spill/spill.h).
 * A range that the device refuses is split.
 *
 * Chunks are made by several threads, and jobs of the device and of the files
 * overlap within a run and within a range; one run or range follows another.
 *
 *-------------------------------------------------------------------------
 */
#include "spilled.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <future>
#include <mutex>
#include <stdexcept>

extern "C"
{
#include "spill/spill.h"
}

namespace bench
{

namespace
{

constexpr uint32_t chunk_bytes = 4 << 20;
constexpr uint32_t row_bytes = sizeof(uint32_t);
constexpr uint32_t device_bytes_per_row = 76; // beside the chunk

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin)
{
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

[[noreturn]] void fail(const std::string &what, const char *message)
{
  throw std::runtime_error(what + ": " + message);
}

// Memory of a chunk or page, and what is done with it.
struct Slot
{
  char *memory;
  uint32_t data_bytes;
  uint32_t n_records;
  GsSpillPiece piece;
  GsJob file_job;
  GsJob device_job;
  std::future<void> packing;
};

// A device's sort for a scope.
class DeviceSort
{
public:
  DeviceSort(const GsDeviceOps *ops, GsDevice *device) : ops(ops)
  {
    GsSortSpec spec = {};
    GsError error = {};

    spec.chunk_bytes = chunk_bytes;
    if (ops->sort_open(device, &spec, &sort, &error) != GS_OK)
      fail("sort_open", error.message);
  }
  // The device's close() ends a sort whose jobs are pending.
  ~DeviceSort()
  {
    if (idle)
      ops->sort_close(sort);
  }
  DeviceSort(const DeviceSort &) = delete;
  DeviceSort &operator=(const DeviceSort &) = delete;
  operator GsDeviceSort *() const
  {
    return sort;
  }
  GsSortResult result() const
  {
    GsSortResult result = {};

    ops->result(sort, &result);
    return result;
  }

  bool idle = false; // no job of it is pending

private:
  const GsDeviceOps *ops;
  GsDeviceSort *sort = nullptr;
};

} // namespace

struct SpilledSorter::State
{
  State(const GsDeviceOps *ops, uint64_t memory_limit, int threads, const std::string &path)
      : ops(ops), path(path), memory_limit(memory_limit), in(2 * static_cast<size_t>(threads) + 2),
        out(in.size())
  {
    GsDeviceConfig config = {};
    GsError error = {};
    size_t arena_bytes = (in.size() + out.size()) * chunk_bytes;

    config.memory_limit = memory_limit;
    config.threads = threads;
    config.notify = notify;
    config.notify_arg = this;
    arena = static_cast<char *>(aligned_alloc(4096, arena_bytes));
    io = gs_spill_io_open(threads, 0700, 0600, notify, this);
    if (arena == nullptr || io == nullptr || ops->open(&config, &device, &error) != GS_OK)
    {
      close();
      fail("open", error.message);
    }
    if (ops->pin(device, arena, arena_bytes, &error) != GS_OK)
      fprintf(stderr, "memory is not pinned: %s\n", error.message);
    for (size_t i = 0; i < in.size(); i++)
    {
      in[i].memory = arena + i * chunk_bytes;
      out[i].memory = arena + (in.size() + i) * chunk_bytes;
    }
  }
  ~State()
  {
    close();
  }
  State(const State &) = delete;
  State &operator=(const State &) = delete;

  SpilledReport sort(const Strings &strings, std::vector<uint32_t> *order, std::vector<uint8_t> *tie);

private:
  static void notify(void *arg)
  {
    State *state = static_cast<State *>(arg);
    std::lock_guard<std::mutex> guard(state->lock);

    state->changed.notify_all();
  }

  // Ends all jobs first.
  void close()
  {
    for (Slot &slot : in)
      if (slot.packing.valid())
        slot.packing.wait();
    if (device != nullptr)
      ops->close(device);
    if (io != nullptr)
      gs_spill_io_close(io);
    end_reader();
    end_spill();
    free(arena);
  }
  void end_reader()
  {
    if (reader != nullptr)
      gs_spill_reader_close(reader);
    reader = nullptr;
  }
  void end_spill()
  {
    if (spill != nullptr)
      gs_spill_close(spill);
    spill = nullptr;
  }

  GsStatus wait(GsJob *job)
  {
    std::unique_lock<std::mutex> guard(lock);

    changed.wait(guard, [&] { return ended(job); });
    return gs_job_status(job);
  }
  void expect(GsJob *job, const char *what)
  {
    if (wait(job) != GS_OK)
      fail(what, job->error.message);
  }
  static bool ended(GsJob *job)
  {
    return gs_job_status(job) != GS_PENDING;
  }
  static void begin(GsJob *job)
  {
    *job = {};
    job->status = GS_PENDING;
  }
  Slot &input(uint64_t i)
  {
    return in[i % in.size()];
  }
  Slot &output(uint64_t i)
  {
    return out[i % out.size()];
  }

  void plan_chunks(const Strings &strings);
  void pack(const Strings &strings, uint64_t chunk);
  void feed_chunks(const Strings &strings, DeviceSort &sort);
  bool feed_range(DeviceSort &sort);
  void append(DeviceSort &sort, Slot *slot, uint32_t data_bytes, uint32_t n_records);
  void perform(DeviceSort &sort, GsPageFormat format);
  void write_run(DeviceSort &sort);
  void fetch_order(DeviceSort &sort, bool ties);
  void split_range();
  void sort_ranges();

  const GsDeviceOps *ops;
  std::string path;
  uint64_t memory_limit;
  GsDevice *device = nullptr;
  GsSpillIo *io = nullptr;
  GsSpill *spill = nullptr;
  GsSpillReader *reader = nullptr;
  char *arena = nullptr;
  std::mutex lock;
  std::condition_variable changed;
  std::vector<Slot> in;            // chunks to append
  std::vector<Slot> out;           // pages fetched
  std::vector<uint32_t> first_row; // of each chunk, and the number of rows
  uint64_t packing = 0;            // chunks that are packed, or being so
  uint64_t accepted = 0;           // of which sorts have taken so many
  std::vector<uint32_t> *order = nullptr;
  std::vector<uint8_t> *tie = nullptr;
  uint64_t rank = 0; // rows whose order is known
  SpilledReport report = {};
};

// Which rows a chunk takes.
void SpilledSorter::State::plan_chunks(const Strings &strings)
{
  uint64_t bytes = chunk_bytes + 1;

  first_row.clear();
  for (uint32_t i = 0; i < strings.size(); i++)
  {
    uint64_t row = (row_bytes + uint64_t{strings.length[i]} + 7) / 8 * 8 + sizeof(GsRecord);

    if (bytes + row > chunk_bytes)
    {
      first_row.push_back(i);
      bytes = 0;
    }
    bytes += row;
    if (bytes > chunk_bytes)
      fail("row " + std::to_string(i), "too long for a chunk");
  }
  first_row.push_back(static_cast<uint32_t>(strings.size()));
}

void SpilledSorter::State::pack(const Strings &strings, uint64_t chunk)
{
  Slot &slot = input(chunk);
  uint32_t used = 0;

  slot.n_records = first_row[chunk + 1] - first_row[chunk];
  for (uint32_t i = 0; i < slot.n_records; i++)
  {
    uint32_t row = first_row[chunk] + i;
    uint32_t length = strings.length[row];
    uint32_t end = used + row_bytes + length;
    uint32_t next = (end + 7) / 8 * 8;

    memcpy(slot.memory + used, &row, row_bytes);
    memcpy(slot.memory + used + row_bytes, strings.bytes.data() + strings.begin[row], length);
    memset(slot.memory + end, 0, next - end);
    *gs_chunk_record(slot.memory, chunk_bytes, i) = {used, row_bytes, used + row_bytes, length};
    used = next;
  }
  slot.data_bytes = used;
}

void SpilledSorter::State::append(DeviceSort &sort, Slot *slot, uint32_t data_bytes, uint32_t n_records)
{
  begin(&slot->device_job);
  ops->append(sort, slot->memory, data_bytes, n_records, 0, &slot->device_job);
}

// Appends chunks until there are no more or one is refused.  That one and those
// behind it stay packed, for the next sort.
void SpilledSorter::State::feed_chunks(const Strings &strings, DeviceSort &sort)
{
  uint64_t n_chunks = first_row.size() - 1;
  uint64_t appended = accepted;
  bool refused = false;

  while (!refused && accepted < n_chunks)
  {
    for (; packing < n_chunks && packing < accepted + in.size(); packing++)
    {
      uint64_t chunk = packing;

      input(chunk).packing =
          std::async(std::launch::async, [this, &strings, chunk] { pack(strings, chunk); });
    }
    if (appended < packing)
    {
      Slot &slot = input(appended++);

      if (slot.packing.valid())
        slot.packing.get();
      append(sort, &slot, slot.data_bytes, slot.n_records);
    }
    while (!refused && accepted < appended && (appended == packing || ended(&input(accepted).device_job)))
    {
      GsJob *job = &input(accepted).device_job;

      refused = wait(job) == GS_NO_MEMORY;
      if (!refused)
      {
        expect(job, "append");
        accepted++;
      }
    }
  }
  for (uint64_t i = accepted; i < appended; i++)
    wait(&input(i).device_job);
  sort.idle = true;
}

// Appends a range; false where the device refuses it.
bool SpilledSorter::State::feed_range(DeviceSort &sort)
{
  uint64_t read = 0;
  uint64_t appended = 0;
  uint64_t taken = 0;
  bool more = true;
  bool refused = false;

  while (!refused && (more || taken < read))
  {
    while (more && read < taken + in.size())
    {
      Slot &slot = input(read);

      begin(&slot.file_job);
      more = gs_spill_read(reader, slot.memory, &slot.piece, &slot.file_job);
      read += more;
    }
    if (appended < read)
    {
      Slot &slot = input(appended++);

      expect(&slot.file_job, "read");
      append(sort, &slot, slot.piece.data_bytes, slot.piece.n_records);
    }
    while (!refused && taken < appended && (appended == read || ended(&input(taken).device_job)))
    {
      GsJob *job = &input(taken).device_job;

      refused = wait(job) == GS_NO_MEMORY;
      if (!refused)
      {
        expect(job, "append");
        taken++;
      }
    }
  }
  for (uint64_t i = taken; i < appended; i++)
    wait(&input(i).device_job);
  for (uint64_t i = appended; i < read; i++)
    wait(&input(i).file_job);
  sort.idle = true;
  return !refused;
}

void SpilledSorter::State::perform(DeviceSort &sort, GsPageFormat format)
{
  GsJob job;

  begin(&job);
  ops->perform(sort, format, NULL, &job);
  expect(&job, "perform");
  report.device_sort_ms += sort.result().sort_ms;
}

// Writes the sorted chunks of a sort as a run.
void SpilledSorter::State::write_run(DeviceSort &sort)
{
  const GsSortResult result = sort.result();
  uint64_t fetching = 0;
  uint64_t writing = 0;
  uint64_t written = 0;

  sort.idle = false;
  if (!gs_spill_begin_run(spill, result.n_pages))
    fail("run", "out of memory");
  while (written < result.n_pages)
  {
    for (; fetching < result.n_pages && fetching < written + out.size(); fetching++)
    {
      begin(&output(fetching).device_job);
      ops->fetch(sort, fetching, output(fetching).memory, &output(fetching).device_job);
    }
    if (writing < fetching)
    {
      Slot &slot = output(writing);

      expect(&slot.device_job, "fetch");
      begin(&slot.file_job);
      gs_spill_write(spill, writing, slot.memory,
                     static_cast<uint32_t>(result.page_first[writing + 1] - result.page_first[writing]),
                     &slot.file_job);
      writing++;
    }
    for (; written < writing && (writing == fetching || ended(&output(written).file_job)); written++)
      expect(&output(written).file_job, "write");
  }
  sort.idle = true;
  gs_spill_end_run(spill);
  report.runs++;
}

// Takes the order from the pages of a sort, whose first row may have the key of the
// row before it.
void SpilledSorter::State::fetch_order(DeviceSort &sort, bool ties)
{
  const GsSortResult result = sort.result();
  uint64_t fetching = 0;

  sort.idle = false;
  for (uint64_t page = 0; page < result.n_pages; page++)
  {
    for (; fetching < result.n_pages && fetching < page + out.size(); fetching++)
    {
      begin(&output(fetching).device_job);
      ops->fetch(sort, fetching, output(fetching).memory, &output(fetching).device_job);
    }
    expect(&output(page).device_job, "fetch");
    for (uint64_t i = result.page_first[page]; i < result.page_first[page + 1]; i++, rank++)
    {
      const char *memory = output(page).memory;
      uint32_t entry = gs_page_entry(memory, chunk_bytes, static_cast<uint32_t>(i - result.page_first[page]));

      memcpy(&(*order)[rank], memory + (entry & ~GS_ENTRY_FLAGS), row_bytes);
      (*tie)[rank] = (entry & GS_ENTRY_TIE) != 0 || (i == 0 && ties);
    }
  }
  sort.idle = true;
}

void SpilledSorter::State::split_range()
{
  GsSpillSplit *split = gs_spill_split_begin(spill);
  std::vector<char> chunk(chunk_bytes);
  GsJob job = {};

  if (split == nullptr)
    fail("split", "out of memory");
  begin(&job);
  while (gs_spill_split_read(split, chunk.data(), &job))
  {
    expect(&job, "split");
    begin(&job);
  }
  if (!gs_spill_split_end(split, true))
    fail("split", "the device does not hold one row of each run");
}

void SpilledSorter::State::sort_ranges()
{
  GsJob job = {};

  begin(&job);
  gs_spill_seal(spill, &job);
  expect(&job, "seal");
  // the device takes more of each row than the runs have
  double bytes = static_cast<double>(gs_spill_bytes(spill)) / static_cast<double>(gs_spill_rows(spill));
  double part = bytes / (bytes + device_bytes_per_row);
  uint64_t budget = static_cast<uint64_t>(static_cast<double>(memory_limit / 8 * 7) * part);

  for (uint32_t range = 0; rank < gs_spill_rows(spill);)
  {
    DeviceSort sort(ops, device);

    if (gs_spill_ranges(spill) == range && !gs_spill_plan(spill, budget))
      fail("plan", "out of memory");
    reader = gs_spill_reader_open(spill, range);
    if (reader == nullptr)
      fail("read", "out of memory");
    if (feed_range(sort))
    {
      perform(sort, GS_FORMAT_ROWS);
      fetch_order(sort, gs_spill_reader_ties(reader));
      end_reader();
      range++;
    }
    else
    {
      end_reader();
      report.splits++;
      split_range();
    }
  }
  report.ranges = gs_spill_ranges(spill);
}

SpilledReport SpilledSorter::State::sort(const Strings &strings, std::vector<uint32_t> *order,
                                         std::vector<uint8_t> *tie)
{
  Clock::time_point begin = Clock::now();

  this->order = order;
  this->tie = tie;
  order->resize(strings.size());
  tie->resize(strings.size());
  report = {};
  packing = accepted = rank = 0;
  plan_chunks(strings);
  while (accepted < first_row.size() - 1)
  {
    uint64_t first = accepted;
    DeviceSort sort(ops, device);

    feed_chunks(strings, sort);
    if (accepted == first)
      fail("append", "the device does not hold one chunk");
    if (first == 0 && accepted == first_row.size() - 1)
    {
      perform(sort, GS_FORMAT_ROWS);
      fetch_order(sort, false);
      continue;
    }
    if (spill == nullptr)
      spill = gs_spill_open(io, path.c_str(), chunk_bytes);
    if (spill == nullptr)
      fail(path, "out of memory, or too long a path");
    perform(sort, GS_FORMAT_CHUNKS);
    write_run(sort);
  }
  report.run_ms = ms_since(begin);
  begin = Clock::now();
  if (spill != nullptr)
  {
    sort_ranges();
    report.spilled_bytes = gs_spill_bytes(spill);
    end_spill();
  }
  report.range_ms = ms_since(begin);
  return report;
}

SpilledSorter::SpilledSorter(const GsDeviceOps *ops, uint64_t memory_limit, int threads,
                             const std::string &path)
    : state(std::make_unique<State>(ops, memory_limit, threads, path))
{
}

SpilledSorter::~SpilledSorter() = default;

SpilledReport SpilledSorter::sort(const Strings &strings, std::vector<uint32_t> *order,
                                  std::vector<uint8_t> *tie)
{
  return state->sort(strings, order, tie);
}

} // namespace bench
