/*-------------------------------------------------------------------------
 *
 * device.h
 *	  The interface between gpusort and whatever orders its rows.
 *
 * A device takes records (a row and the key it is to be ordered by) in
 * chunks, orders them, and gives the rows back in order, page by page.  Two
 * devices implement it: "cuda" (cuda/) and "host" (src/host/host_device.c).
 * Nothing here knows PostgreSQL; this header is plain C11 and valid C++.
 *
 * The order
 *	  Keys are byte strings compared as unsigned bytes, a prefix before the
 *	  longer string (memcmp on the common length, then the length).  NUL is
 *	  a byte like any other.  Records whose keys are equal keep the order in
 *	  which they were appended: append calls in call order, records of one
 *	  chunk by their number.
 *
 * Chunks (in)
 *	  A chunk has chunk_bytes bytes.  Rows and keys lie in [0, data_bytes), anywhere and possibly
 *	  overlapping.  Rows start at multiples of 8.  The GsRecord of record i ends chunk_bytes - i * 16 bytes
 *	  into the chunk: gs_chunk_record() below.
 *
 * Pages (out)
 *	  A page has chunk_bytes bytes.  Rows lie at the front in key order, each starting at a multiple of 8.
 *	  The entry of row i is the uint32 that ends chunk_bytes - i * 4 bytes into the page: the row's offset,
 *	  with the GS_ENTRY_ flags in its three low bits.  GsSortResult.page_first tells the number of rows.
 *
 * Chunks (out)
 *	  A sort may be performed with GS_FORMAT_CHUNKS.  Then its pages are chunks as above, which can be
 *	  appended to another sort.  Rows with their keys are in key order from the front.  The row of record 0
 *	  is at offset 0.  Each key is directly behind its row, the next row is at the next multiple of 8, and
 *	  zeroes are in between.  Lengths and flags of records are unchanged.  So data_bytes of such a chunk is
 *	  the end of the last record's key.  Every chunk but the last is seven eighths full, or too full for the
 *	  next record.  Ties are not marked.  A row and its key, rounded up to a multiple of 8, must fit into a
 *	  chunk beside their record.  All do that did not overlap when they were appended.
 *
 * Fewer rows
 *	  perform can be told to keep only some rows (GsKeep): the first row of each key, or the first few rows
 *	  of each group whose keys begin with the same columns, or the first rows in order.  A limit can also be
 *	  combined with the other two.  Pages, ranks and n_rows then have the kept rows only.  Images have all
 *	  rows.  perform can also count equal keys.  Then bytes 4 to 7 of the row that is kept are the number of
 *	  rows with its key, in pages, and perhaps in its image as well.  perform can then drop rows by this
 *	  number.  Keys are compared as they are, and GS_KEY_INEXACT makes no difference.  So a caller with
 *	  inexact keys must know what it asks for.
 *
 * Calling protocol, for one sort:
 *	  1. sort_open
 *	  2. append, any number of times
 *	  3. perform, once, after every append has ended
 *	  4. result; then fetch, any page any number of times in any order
 *	  5. sort_close, when no job of the sort is pending
 *	  If an append ends with GS_NO_MEMORY, so do all later ones of that sort,
 *	  until resume.  The chunks appended before are still there, and the caller may
 *	  go on in three ways: resume appending, when there may be more memory;
 *	  perform the sort, which then has the rows of these chunks; or have them back
 *	  one by one, by fetch_image.  If perform fails, there is fetch_image only, which
 *	  is legal whenever no append or perform is pending.  GS_INVALID and GS_INTERNAL
 *	  concern one job alone.
 *
 * Memory
 *	  A device holds no more than a limit for all sorts.  An append reserves the memory of its chunk, and
 *	  the memory that perform, in either format, and the fetches of pages will take.  So memory runs out
 *	  while feeding.  A lower limit takes nothing from open sorts: their reservations stay, and further
 *	  memory is refused until enough is given back.
 *
 * Arrays
 *	  A sort opened with an elem sorts the elements of arrays instead of records.  Its calls are sort_open,
 *	  sort_arrays any number of times, and sort_close.  Nothing stays on the device.  Elements are native
 *	  values as PostgreSQL stores them, ordered as by its btree operator classes: NaN of either sign above
 *	  infinity, -0 equal to 0.  Every element keeps its bits.  Equal elements are in no particular order.
 *
 * Jobs
 *	  Functions that are given a GsJob return at once.  Their outcome arrives in the job, and the caller
 *	  keeps it alive until then.  Memory named in the call (chunk, dst) belongs to the device until the job
 *	  ends.  When a job ends, its status is set, and then config.notify is called, on a thread of the
 *	  device.  Without memory for the job, both happen in the call.  Jobs of one kind of one sort end in the
 *	  order in which they were made.  Every job ends, also after cancel, and if the device is lost.
 *
 * Threads
 *	  All functions of one GsDevice but pin are called from one thread at a time.  They only book and queue,
 *	  except open, close, pin, and sort_open with a table for the first time: these take longer.  No
 *	  function waits for another device.  Devices may run threads of their own, with all signals blocked.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_DEVICE_H
#define GS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/tuple_key.h"

#ifdef __cplusplus
extern "C"
{
#endif

typedef enum GsStatus
{
	GS_OK = 0,
	GS_PENDING,					/* job has not ended yet */
	GS_NO_DEVICE,				/* no such device, or its driver is missing */
	GS_NO_MEMORY,				/* the device memory limit would be exceeded */
	GS_CANCELLED,				/* the sort was cancelled */
	GS_DEVICE_LOST,				/* no further use of this GsDevice is possible */
	GS_INVALID,					/* the caller broke the protocol above */
	GS_INTERNAL					/* a defect of the device, which goes on with other jobs */
} GsStatus;

#define GS_MESSAGE_BYTES 160
#define GS_UUID_BYTES 48

/* What went wrong, for a log line.  The message is empty if nothing did. */
typedef struct GsError
{
	char		message[GS_MESSAGE_BYTES];
} GsError;

/* An asynchronous call's outcome.  Zero it before use. */
typedef struct GsJob
{
	int32_t		status;			/* a GsStatus; read by gs_job_status() */
	GsError		error;
} GsJob;

/* Prepares a job for a call. */
static inline void
gs_job_begin(GsJob *job)
{
	job->status = GS_PENDING;
	job->error.message[0] = '\0';
}

static inline GsStatus
gs_job_status(const GsJob *job)
{
	return (GsStatus) __atomic_load_n(&job->status, __ATOMIC_ACQUIRE);
}

/* Flags in GsRecord.row_len and GsRecord.key_len, above the length. */
#define GS_ROW_EXTERNAL		0x80000000u /* handed back as GS_ENTRY_EXTERNAL */
#define GS_KEY_INEXACT		0x80000000u /* handed back as GS_ENTRY_INEXACT */
#define GS_LENGTH_MASK		0x7fffffffu

/*
 * GsRecord.key_len of a record without a key: the device makes it from the row, as GsSortSpec.tuple_keys
 * tells.  key_off is undefined then.
 */
#define GS_KEY_MISSING		0xffffffffu

/* One record of a chunk; offsets in bytes from the chunk's start. */
typedef struct GsRecord
{
	uint32_t	row_off;		/* multiple of 8 */
	uint32_t	row_len;		/* bytes, may be 0; and GS_ROW_EXTERNAL */
	uint32_t	key_off;
	uint32_t	key_len;		/* bytes, may be 0; and GS_KEY_INEXACT */
} GsRecord;

static inline GsRecord *
gs_chunk_record(void *chunk, size_t chunk_bytes, uint32_t i)
{
	return (GsRecord *) ((char *) chunk + chunk_bytes) - (i + 1);
}

/* Flags in a page's entries. */
#define GS_ENTRY_TIE		0x1u	/* same key as the row before it, also
									 * across pages */
#define GS_ENTRY_INEXACT	0x2u	/* the record had GS_KEY_INEXACT */
#define GS_ENTRY_EXTERNAL	0x4u	/* the record had GS_ROW_EXTERNAL */
#define GS_ENTRY_FLAGS		0x7u

static inline uint32_t
gs_page_entry(const void *page, size_t page_bytes, uint32_t i)
{
	return ((const uint32_t *) ((const char *) page + page_bytes))[-(int64_t) i - 1];
}

/*
 * Returns the row of an entry, for readers that go forward.  Rows are next to each other, and come from a
 * device or another core.  So the rows that follow are fetched into the processor's caches.  Without that a
 * row's first bytes take 8 to 20 ns.
 */
static inline const char *
gs_page_row(const void *page, uint32_t entry)
{
	const char *row = (const char *) page + (entry & ~GS_ENTRY_FLAGS);

	__builtin_prefetch(row + 1024);
	return row;
}

/* The most bytes of a row.  So at most an eighth of a page stays empty. */
#define gs_max_row_bytes(chunk_bytes)	((chunk_bytes) / 8 - 16)

/* The format of a performed sort's pages. */
typedef enum GsPageFormat
{
	GS_FORMAT_ROWS = 0,			/* rows, as "Pages (out)" says */
	GS_FORMAT_CHUNKS			/* records, as "Chunks (out)" says */
} GsPageFormat;

/* The most columns of groups. */
#define GS_GROUP_COLUMNS	8

/* GsGroupColumn.null_byte of a column that no first byte ends. */
#define GS_NO_NULL_BYTE		256

/*
 * One of the columns that keys begin with.  It has a first byte.  Unless that is null_byte, either width
 * bytes follow, or the bytes up to the n_ends-th byte `end`.
 */
typedef struct GsGroupColumn
{
	uint16_t	null_byte;
	uint8_t		end;
	uint8_t		n_ends;			/* 0: width bytes follow */
	uint32_t	width;			/* or fewer, up to the key's end */
} GsGroupColumn;

/*
 * Which rows of each group are kept.  A group has the rows whose keys are equal in the first n_columns
 * columns.
 */
typedef struct GsKeepGroup
{
	uint32_t	first;			/* the number of first rows; 0: all */
	bool		ties;			/* and all rows with the key of the last of these */
	bool		several;		/* none of a group of one row */
	uint8_t		n_columns;		/* 0: all rows are one group */
	GsGroupColumn columns[GS_GROUP_COLUMNS];
} GsKeepGroup;

/* Which rows of a sort are kept. */
typedef struct GsKeep
{
	bool		unique;			/* only the first of rows with equal keys */
	bool		counted;		/* only with unique, GS_FORMAT_ROWS: a uint32 in bytes 4 to 7 of each row
								 * becomes the number of rows with its key; rows have 8 bytes or more,
								 * and do not overlap */
	uint32_t	min_count;		/* only with counted: rows with a smaller number are dropped */
	uint32_t	max_count;		/* rows with a greater number are dropped; 0: none */
	uint64_t	top;			/* only with counted, 0: not used.  min_count is then the highest power of two
								 * that the numbers of this many rows reach */
	uint64_t	limit;			/* the number of first rows, of the rows left; 0: all */
	GsKeepGroup group;			/* ignored if unique is set */
} GsKeep;

/*
 * How records, or arrays, are ordered.  All but the first are published algorithms, for comparison.
 * GS_ENGINE_AUTO takes over if a device or a build lacks an engine, or if the engine cannot order the data.
 */
typedef enum GsEngine
{
	GS_ENGINE_AUTO = 0,			/* the device chooses */
	GS_ENGINE_RADIX2013,		/* Deshpande, Narayanan */
	GS_ENGINE_MERGE2012,		/* Davidson, Tarjan, Garland, Owens */
	GS_ENGINE_RADIX2011,		/* Harada, Howes */
	GS_ENGINE_ARRAYSORT2016,	/* Awan, Saeed: arrays */
	GS_ENGINE_STA				/* their baseline: arrays */
} GsEngine;

#define GS_N_ENGINES 6

/* Elements of arrays. */
typedef enum GsElem
{
	GS_ELEM_NONE = 0,
	GS_ELEM_INT2,
	GS_ELEM_INT4,
	GS_ELEM_INT8,
	GS_ELEM_UINT1,
	GS_ELEM_UINT4,
	GS_ELEM_UINT8,
	GS_ELEM_FLOAT4,
	GS_ELEM_FLOAT8,
	GS_ELEM_BYTES16				/* 16 bytes in the order of memcmp */
} GsElem;

#define GS_N_ELEMS 10			/* GS_ELEM_NONE included */

/* Size of an element in bytes; 0 for GS_ELEM_NONE and unknown ones. */
extern uint32_t gs_elem_bytes(GsElem elem);

/*
 * open determines the default memory limit.  cuda: four fifths of the free memory.  host: a quarter of the
 * memory of the machine or its control group, and at most half of what is available.  Under the default
 * limit, appends are refused while less than a tenth of all memory is available; the device checks that
 * once for every 64 MB that are reserved.  The same holds for a GPU whose memory is the machine's.  If the
 * same device is opened several times, they share that.
 */
typedef struct GsDeviceConfig
{
	int			ordinal;		/* which device of its kind; 0 is the first */
	int			opened;			/* how often the caller opens it in all; 0: once */
	uint64_t	memory_limit;	/* bytes it may hold, at most memory_total; 0: the default */
	int			threads;		/* host: sorting threads; 0: one a core */
	void		(*notify) (void *arg);	/* a job has ended; may be NULL */
	void	   *notify_arg;
} GsDeviceConfig;

typedef struct GsDeviceInfo
{
	char		name[96];		/* "NVIDIA H200", "host, 16 threads" */
	char		uuid[GS_UUID_BYTES];	/* as nvidia-smi writes it; empty: it has none */
	int			threads;		/* that sort on the machine's cores; 0: a GPU sorts */
	uint64_t	memory_total;	/* bytes that the device has */
	uint64_t	memory_limit;	/* bytes that it may hold for sorts */
	uint64_t	memory_used;	/* bytes held by open sorts */
	uint64_t	jobs_pending;	/* a GPU, which may hang: jobs that have not ended */
	uint64_t	jobs_ended;
} GsDeviceInfo;

typedef struct GsSortSpec
{
	uint32_t	chunk_bytes;	/* size of every chunk and page; power of two */
	GsEngine	engine;
	GsElem		elem;			/* not NONE: a sort of arrays */
	bool		descending;		/* a sort of arrays */
	GsTupleKeys tuple_keys;		/* how missing keys are made; n_columns 0: no key is missing.  Its table
								 * does not change until the device is closed */
	uint64_t	spare_bytes;	/* the most memory to take ahead of what appends need;
								 * 0: the device chooses */
} GsSortSpec;

/*
 * The result of a performed sort.  page_first lives until sort_close.  A sort of arrays sets engine, times,
 * n_rows and row_bytes: the number of its arrays and their bytes.
 */
typedef struct GsSortResult
{
	uint64_t	n_rows;
	uint64_t	n_dropped;		/* rows that were not kept */
	uint64_t	n_pages;		/* 0 where there are no rows */
	const uint64_t *page_first; /* n_pages + 1 entries: number of each page's
								 * first row, then n_rows */
	uint64_t	n_images;		/* chunks appended (legal before perform too) */
	uint64_t	row_bytes;
	uint64_t	key_bytes;
	const char *engine;			/* what ordered it, for EXPLAIN; static */
	double		copy_in_ms;		/* time so far, by phase; includes preparations by the host */
	double		sort_ms;
	double		gather_ms;
	double		copy_out_ms;
} GsSortResult;

typedef struct GsDevice GsDevice;
typedef struct GsDeviceSort GsDeviceSort;

typedef struct GsDeviceOps
{
	const char *name;			/* "cuda", "host"; as in gpusort.device, at most 7 bytes */

	/* Returns the number of devices of its kind; 0: *error tells why. */
	int			(*count) (GsError *error);

	/* Returns the ordinal of the device with this UUID; -1: there is none. */
	int			(*find) (const char *uuid);

	/*
	 * Opens a device.  *device is set only with GS_OK.  A device may be opened several times, and a process
	 * may open several devices.
	 */
	GsStatus	(*open) (const GsDeviceConfig *config, GsDevice **device, GsError *error);

	/* Cancels and ends every job and sort, joins the threads, and releases everything. */
	void		(*close) (GsDevice *device);

	void		(*info) (GsDevice *device, GsDeviceInfo *info);

	/*
	 * Makes host memory fast to copy from and to, for all devices of its kind that the process has open, or
	 * will open meanwhile.  A failure only costs speed.  The memory must stay mapped until the last of
	 * these devices is closed.  Copies of it may be under way during the call, if each is inside of memory
	 * that one call pins, or of memory that no call pins.
	 */
	GsStatus	(*pin) (GsDevice *device, void *memory, size_t bytes, GsError *error);

	/*
	 * Changes GsDeviceConfig.memory_limit; 0: to the default, as open determined it.  A limit never exceeds
	 * memory_total, or nine tenths of it for the host device.
	 */
	void		(*set_memory_limit) (GsDevice *device, uint64_t bytes);

	/* Returns memory to the system that is cached beyond what open sorts hold. */
	void		(*trim) (GsDevice *device);

	GsStatus	(*sort_open) (GsDevice *device, const GsSortSpec *spec, GsDeviceSort **sort,
							  GsError *error);

	/*
	 * key_bytes is at least the bytes of the chunk's missing keys, for collated text as gs_text_key_bound()
	 * tells.  GS_INVALID: a row is not as GsSortSpec.tuple_keys tells; perform may also find that.
	 */
	void		(*append) (GsDeviceSort *sort, const void *chunk, uint32_t data_bytes,
						   uint32_t n_records, uint32_t key_bytes, GsJob *job);

	/* Allows appends again, after all appends have ended and one was refused with GS_NO_MEMORY. */
	void		(*resume) (GsDeviceSort *sort);

	/*
	 * Orders the rows.  keep NULL: all are kept.  keep need not outlive the call.  GS_INVALID: a row and
	 * its key do not fit into a chunk.
	 */
	void		(*perform) (GsDeviceSort *sort, GsPageFormat format, const GsKeep *keep,
							GsJob *job);

	/* Writes a page to dst, in the format with which the sort was performed. */
	void		(*fetch) (GsDeviceSort *sort, uint64_t page, void *dst, GsJob *job);

	/*
	 * Copies chunk i back as it was appended: data at the front, records at the end.  *n_records, their
	 * number, is set before the job ends.  key_off and key_len are undefined if the device made the key.
	 */
	void		(*fetch_image) (GsDeviceSort *sort, uint64_t i, void *dst, uint32_t *n_records,
								GsJob *job);

	/*
	 * Sorts the elements of each array of a chunk, in place.  Array i is the row of record i, whose key
	 * fields are ignored.  Arrays do not overlap, and their lengths are multiples of the element's size.
	 * If the job fails, each array is sorted or as it was.  If the device was lost, the chunk is undefined.
	 */
	void		(*sort_arrays) (GsDeviceSort *sort, void *chunk, uint32_t data_bytes,
								uint32_t n_arrays, GsJob *job);

	void		(*result) (GsDeviceSort *sort, GsSortResult *result);

	/*
	 * Returns the bytes of the device's limit that the sort holds now.  Legal at any time.  A pending job
	 * may hold more for its own time.
	 */
	uint64_t	(*memory_held) (GsDeviceSort *sort);

	/* Makes the pending jobs of a sort end soon, as GS_CANCELLED if possible. */
	void		(*cancel) (GsDeviceSort *sort);
	void		(*sort_close) (GsDeviceSort *sort);
} GsDeviceOps;

extern const GsDeviceOps gs_device_host;
#ifdef GS_WITH_CUDA
extern const GsDeviceOps gs_device_cuda;
#endif

extern const char *gs_status_name(GsStatus status);

/* The name in the setting gpusort.engine; NULL: there is no such engine. */
extern const char *gs_engine_name(GsEngine engine);

#ifdef __cplusplus
}
#endif

#endif							/* GS_DEVICE_H */
