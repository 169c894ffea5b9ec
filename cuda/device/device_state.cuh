/*-------------------------------------------------------------------------
 *
 * device_state.cuh
 *	  A CUDA device and its sorts, as the threads that serve them see them.
 *
 * Threads of a device
 *	  caller	  calls the functions of device.h, which only book and queue
 *				  (device_cuda.cu, device_requests.cu)
 *	  copy in	  appends; frees and trims memory when there is nothing to copy
 *				  (device_appends.cu)
 *	  copy out	  fetches: gathers pages and copies them to the host
 *				  (device_fetches.cu)
 *	  sorters	  perform; as many sorts at a time as there are sorters
 *				  (device_sorters.cu)
 *	  arrays	  sort_arrays (device_arrays.cu)
 *
 * Ownership
 *	  The protocol of device.h keeps the phases of a sort apart: while an append is pending there is no
 *	  perform, and fetches come after both.  So a sort's fields belong to the thread that serves its
 *	  phase.  The job's status and the queue's lock pass them on to the next thread.  Any thread may read
 *	  the fields for result() at any time.  The sort's lock guards these fields, or they are atomic.  A
 *	  thread that has set a job's status does not touch the job or the sort again: they may be gone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_DEVICE_STATE_CUH
#define GS_DEVICE_STATE_CUH

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "../../src/base/machine.h"
#include "device/perform.cuh"
#include "device/process.cuh"

namespace gpusort
{

enum class Call
{
  append,
  perform,
  fetch,
  fetch_image,
  sort_arrays
};

// An asynchronous call on its way to a thread.
struct Request
{
  Call call;
  GsDeviceSort *sort;
  GsJob *job;
  GsPageFormat format; // perform
  GsKeep keep;         // perform
  const void *chunk;   // append
  void *dst;           // fetches; sort_arrays: the chunk
  u64 number;          // of the page or image
  u32 data_bytes;      // append, sort_arrays
  u32 n_records;       // append, sort_arrays
  u32 key_bytes;       // append: of missing keys
  uint32_t *n_fetched; // fetch_image: its records
  const char *misuse;  // not null: how the caller broke the protocol
};

class RequestQueue
{
public:
  void push(const Request &request);
  bool try_pop(Request *request)
  {
    return try_pop_if(request, [](const Request &) { return true; });
  }

  // The first request, if there is one and it is wanted.
  template <typename Wanted>
  bool try_pop_if(Request *request, Wanted wanted)
  {
    std::lock_guard<std::mutex> guard(lock);

    if (requests.empty() || !wanted(requests.front()))
      return false;
    *request = requests.front();
    requests.pop_front();
    return true;
  }

  // Waits for a request, poke() or close().  False where the queue is closed and
  // empty.
  bool wait();

  void poke();
  void close();

private:
  std::mutex lock;
  std::condition_variable changed;
  std::deque<Request> requests;
  bool poked = false;
  bool closed = false;
};

// What the chunks of a sort have.
struct SortTotals
{
  u64 n_rows = 0;
  u64 n_images = 0;
  u64 data_bytes = 0; // with the keys that are made

  bool fit(const SortTotals &other) const
  {
    return n_rows <= other.n_rows && n_images <= other.n_images && data_bytes <= other.data_bytes;
  }
};

// A piece of device memory that has images.
struct Slab
{
  char *base;
  u64 bytes;
  u64 used;
};

// Memory in which a page is gathered for the host.
struct OutputBuffer
{
  char *memory;
  u64 batch; // the lane's batch that used it last, counted from 1; 0: none did
};

// A chunk of a batch of appends.
struct Append
{
  Request request;
  bool failed;
  Failure failure;
  ImageRef image;
  u64 bytes; // copied
};

// Appends whose copies are queued at once, with as few calls of the driver as can be.
struct AppendBatch
{
  static constexpr size_t max_appends = 8;

  Request request; // the first one's
  size_t n_appends;
  Append appends[max_appends];
  bool failed; // with all that it has
  Failure failure;
  Event copy_begin;
  Event copy_end;
};

struct AppendLane
{
  static constexpr size_t max_slots = 8;

  RequestQueue queue;
  Stream stream;
  AppendBatch slots[max_slots];
  uint64_t unwatched = 0; // of gs_machine_may_reserve
};

// A page or an image on its way out.  The first front bytes and the last end bytes are copied.
struct Fetch
{
  Request request;
  bool failed;
  Failure failure;
  const char *from; // a buffer, or the image
  u64 from_bytes;
  u64 to_bytes; // of the caller's memory
  u64 front;
  u64 end;
};

// Fetches that are copied one behind the other: pages, and at most one image behind them.
struct FetchBatch
{
  static constexpr size_t max_fetches = 8;

  Request request; // the first one's
  size_t n_fetches;
  Fetch fetches[max_fetches];
  bool failed; // with all that it has
  Failure failure;
  Event gather_begin;
  Event gather_end;
  Event copy_begin;
  Event copy_end;
};

struct FetchLane
{
  static constexpr size_t max_slots = 8;

  RequestQueue queue;
  Stream gather_stream;
  Stream copy_stream;
  FetchBatch slots[max_slots];
  u64 n_started = 0; // batches; each uses the slot behind the one before
  u64 n_finished = 0;
};

// A chunk of arrays that is being sorted, or that failed to start.
struct ArraySlot
{
  Request request;
  bool failed;
  Failure failure;
  void *memory; // on the device
  u64 reserved;
  u64 bytes;       // of the arrays
  GsEngine engine; // that sorts them
  Stream stream;
  Event begin;
  Event copied;
  Event sorted;
  Event end;
};

struct ArrayLane
{
  static constexpr size_t max_slots = 8;

  RequestQueue queue;
  ArraySlot slots[max_slots];
};

// A collation's table in the caller's memory, and in the device's until the device is closed.
struct TableCopy
{
  const GsTextTable *original;
  std::unique_ptr<void, cudaError_t (*)(void *)> copy;
};

} // namespace gpusort

struct GsDevice
{
  gpusort::PinClaim pin_claim; // goes last
  GsDeviceConfig config;
  GsDeviceInfo info = {};     // without what changes: memory_limit, memory_used
  uint64_t default_limit = 0; // of memory
  bool is_integrated = false; // its memory is the machine's
  std::atomic<bool> limit_is_default{true};
  std::unique_ptr<gpusort::DeviceMemory> memory;
  std::vector<GsDeviceSort *> sorts;
  std::vector<gpusort::TableCopy> tables;
  std::atomic<bool> trim_wanted{false};
  std::atomic<uint64_t> jobs_begun{0};
  std::atomic<uint64_t> jobs_ended{0};

  std::atomic<bool> lost{false};
  std::mutex lost_lock;
  GsError lost_error = {};

  static constexpr int n_sorters = 2;

  gpusort::AppendLane copy_in;
  gpusort::FetchLane copy_out;
  gpusort::ArrayLane arrays;
  gpusort::RequestQueue sorting;
  gpusort::Performer performers[n_sorters];
  std::vector<std::thread> threads;
};

struct GsDeviceSort
{
  GsDevice *device;
  GsSortSpec spec;
  std::atomic<bool> cancelled{false};
  bool perform_called = false; // the caller's

  // Of the appends.  Once one of them has failed (refused), all later ones fail,
  // until the caller resumes.
  std::vector<gpusort::Slab> slabs;
  std::vector<gpusort::ImageRef> images;
  gpusort::SortTotals totals;
  std::atomic<uint64_t> slab_bytes{0};
  std::atomic<uint64_t> work_bytes{0}; // reserved for what follows the appends ...
  gpusort::SortTotals booked;          // ... of a sort of this size
  bool refused = false;
  gpusort::Failure refusal = {};

  // Of perform, for the fetches.
  bool performed = false; // set under the lock
  gpusort::PerformOutput output = {};
  char *page_memory = nullptr;
  std::vector<gpusort::OutputBuffer> page_buffers;
  size_t next_buffer = 0;

  // Returns the bytes that the sort holds of the device's limit.  The reservation of a pending job is not
  // counted.
  uint64_t memory_held() const
  {
    return slab_bytes + work_bytes;
  }

  std::mutex lock;         // guards the following
  GsSortResult times = {}; // its times and images only; for arrays all of it
};

namespace gpusort
{

// The threads; each returns once its queue is closed and empty.
void run_append_lane(GsDevice *device, AppendLane *lane);
void run_fetch_lane(GsDevice *device, FetchLane *lane);
void run_sorter(GsDevice *device, Performer *performer);
void run_array_lane(GsDevice *device, ArrayLane *lane);

const Failure success = {GS_OK, {}};

// How long a thread looks for new requests before it sleeps until a job ends.
constexpr std::chrono::microseconds spin_time(100);

void check_not_lost(GsDevice *device);

// Throws if the device is lost, the caller broke the protocol, or the sort was cancelled.
void check_usable(const GsDeviceSort *sort, const Request &request);

// Hands a job's outcome to the caller.  The sort then belongs to the caller again.
void end_request(const Request &request, const Failure &outcome);

// The calls for another copy take as long as the link needs for this many bytes.
constexpr u64 max_copy_gap = u64{64} << 10;

// Copies the first front bytes and the last end bytes of memory.  If both sides are as large, and little lies
// between the two, one copy takes all.
void copy_ends(char *to, u64 to_bytes, const char *from, u64 from_bytes, u64 front, u64 end,
               cudaMemcpyKind kind, cudaStream_t stream);

// Returns the device memory that the appends reserve for the result of a sort of n_rows rows.
u64 min_output_bytes(const GsDeviceSort *sort, u64 n_rows);

// Takes the buffers for the pages of a performed sort.
void take_page_buffers(GsDeviceSort *sort, cudaStream_t stream);

// Runs f.  False: f has thrown, and *failure tells why.
template <typename F>
bool guarded(Failure *failure, F f)
{
  try
  {
    f();
    return true;
  }
  catch (const Failure &thrown)
  {
    *failure = thrown;
  }
  catch (const std::bad_alloc &)
  {
    *failure = {GS_NO_MEMORY, {"out of host memory"}};
  }
  catch (const std::exception &thrown)
  {
    *failure = {GS_INTERNAL, {}};
    snprintf(failure->error.message, sizeof failure->error.message, "%s", thrown.what());
  }
  return false;
}

// Has what the slot waits for ended, or failed?  With `sleep`, waits until it has.
template <typename Slot>
bool is_over(Slot *slot, Event *end, bool sleep)
{
  bool done = false;

  if (!slot->failed)
    slot->failed = !guarded(&slot->failure,
                            [&]
                            {
                              if (sleep)
                                GS_CUDA_TRY(cudaEventSynchronize(*end));
                              done = end->done();
                            });
  return done || slot->failed;
}

// Starts the requests of a queue, as many at a time as there are slots, so that the link to the host is never
// idle between them, and ends them in the order in which they came.  They take the slots by turns, from the
// first on: claim_buffer() in device_fetches.cu relies on it.  While it waits for the oldest it looks
// for new requests, for some time spinning.  end_of() names the event that a started one waits for; idle() is
// called where there is none. Returns once the queue is closed and empty.
template <typename Slot, size_t max_slots, typename Start, typename EndOf, typename Finish, typename Idle>
void serve_queue(RequestQueue *queue, Slot (&slots)[max_slots], Start start, EndOf end_of, Finish finish,
                 Idle idle)
{
  using clock = std::chrono::steady_clock;

  size_t first = 0; // the oldest
  size_t count = 0;
  clock::time_point sleep_after;

  for (;;)
  {
    Slot *slot = &slots[(first + count) % max_slots];

    while (count < max_slots && queue->try_pop(&slot->request))
    {
      start(slot);
      if (count++ == 0)
        sleep_after = clock::now() + spin_time;
      slot = &slots[(first + count) % max_slots];
    }
    if (count == 0)
    {
      idle();
      if (!queue->wait())
        return;
      continue;
    }

    Slot *oldest = &slots[first];

    if (!is_over(oldest, end_of(oldest), clock::now() >= sleep_after))
      continue;
    finish(oldest);
    first = (first + 1) % max_slots;
    count--;
    sleep_after = clock::now() + spin_time;
  }
}

} // namespace gpusort

#endif // GS_DEVICE_STATE_CUH
