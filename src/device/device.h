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
 *	  chunk_bytes bytes.  Rows and keys lie in [0, data_bytes), anywhere and
 *	  possibly overlapping, rows starting at multiples of 8.  Record i is
 *	  described by the GsRecord that ends chunk_bytes - i * 16 bytes into
 *	  the chunk: gs_chunk_record() below.
 *
 * Pages (out)
 *	  chunk_bytes bytes.  Rows from the front, each starting at a multiple of
 *	  8; row i's entry is the uint32 that ends chunk_bytes - i * 4 bytes into
 *	  the page: the row's offset with the GS_ENTRY_ flags in its three low
 *	  bits.  A page is filled with rows in key order; its number of rows
 *	  follows from GsSortResult.page_first.
 *
 * Chunks (out)
 *	  A sort may be performed with GS_FORMAT_CHUNKS.  Its pages are then chunks
 *	  as above, which can be appended to another sort: rows with their keys, in
 *	  key order from the front.  The row of record 0 is at offset 0.  Each key
 *	  lies directly behind its row, and the next row at the next multiple of 8;
 *	  bytes in between are zeroes.  Lengths and flags of records are as they
 *	  were.  So data_bytes of such a chunk is where the last record's key ends.
 *	  All chunks but the last are full to seven eighths or have no room for the
 *	  next record.  Ties are not marked.  A row and its key, up to a multiple of 8, must fit
 *	  into a chunk beside their record: all do that did not overlap when they
 *	  were appended.
 *
 * Fewer rows
 *	  perform can be told to keep only some rows (GsKeep): of rows with equal
 *	  keys the first, or of rows whose keys begin with the same columns the first few,
 *	  or the first rows in order, or the first of those.  Pages,
 *	  ranks and n_rows are then of the rows kept alone.  Images have all rows.
 *	  It can also be told to count equal keys: the row that is kept of them then has their number
 *	  in its bytes 4 to 7, in pages, and perhaps in its image as well.  It can then drop
 *	  rows by this number.
 *	  Keys are compared as they are: whether GS_KEY_INEXACT is set makes no
 *	  difference, so a caller with such keys has to know what it asks for.
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
 *	  A device holds no more than a limit for all sorts.  An append reserves,
 *	  beside the memory of its chunk, what perform in either format and the
 *	  fetches of pages will take: running out of memory is noticed while feeding.
 *	  A lower limit takes nothing from open sorts: what they have reserved is
 *	  theirs, and further memory is refused until enough is given back.
 *
 * Arrays
 *	  A sort opened with an elem sorts the elements of arrays instead of
 *	  records: sort_open, sort_arrays any number of times, sort_close; nothing
 *	  stays on the device.  Elements are native values as PostgreSQL stores
 *	  them, ordered as its btree operator classes do: NaN of either sign above
 *	  infinity, -0 equal to 0.  Every element keeps its bits; equal ones are
 *	  in no particular order.
 *
 * Jobs
 *	  Functions that are given a GsJob return at once; their outcome arrives
 *	  in it, and the caller keeps it alive until then.  Memory named in the
 *	  call (chunk, dst) belongs to the device until the job ends.  When a job
 *	  ends its status is set, then config.notify is called, on a thread of the
 *	  device's own, or, where there is no memory for the job, in the call.  Jobs of
 *	  one kind of one sort end in the order they were made.  Every job ends, also
 *	  after cancel and when the device is lost.
 *
 * Threads
 *	  All functions of one GsDevice but pin are called from one thread at a time.  Only
 *	  open, close, pin, and sort_open with a table that no open sort has, take
 *	  longer than it takes to book and to queue, and none waits for another device.
 *	  Devices may run threads of their own, with all signals blocked.
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

/* What went wrong, for a log line; an empty message where nothing did. */
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

/* Before a job is given. */
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
 * GsRecord.key_len where there is no key: the device makes it from the row, as
 * GsSortSpec.tuple_keys says.  The key's offset does not matter then.
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
 * The row of an entry, for readers that go on forward.  Rows lie one after the other, and come from a
 * device or another core.  So those that follow are fetched into the processor's caches, which does not do
 * that soon enough by itself: without this a row's first bytes take 8 to 20 ns.
 */
static inline const char *
gs_page_row(const void *page, uint32_t entry)
{
	const char *row = (const char *) page + (entry & ~GS_ENTRY_FLAGS);

	__builtin_prefetch(row + 1024);
	return row;
}

/*
 * The most bytes that a row may have: with it, an eighth of a page at most
 * stays empty.
 */
#define gs_max_row_bytes(chunk_bytes)	((chunk_bytes) / 8 - 16)

/* What the pages of a performed sort are. */
typedef enum GsPageFormat
{
	GS_FORMAT_ROWS = 0,			/* rows, as "Pages (out)" says */
	GS_FORMAT_CHUNKS			/* records, as "Chunks (out)" says */
} GsPageFormat;

/* The most columns that groups have. */
#define GS_GROUP_COLUMNS	8

/* GsGroupColumn.null_byte where no first byte ends the column. */
#define GS_NO_NULL_BYTE		256

/*
 * One of the columns that keys begin with: a first byte and then, unless that is
 * null_byte, either a number of bytes, or those up to the n_ends-th byte `end`.
 */
typedef struct GsGroupColumn
{
	uint16_t	null_byte;
	uint8_t		end;
	uint8_t		n_ends;			/* 0: there are `width` bytes */
	uint32_t	width;			/* or those up to the end of the key, if they are fewer */
} GsGroupColumn;

/* Which rows of each group: rows whose keys are equal in the first n_columns columns. */
typedef struct GsKeepGroup
{
	uint32_t	first;			/* the number of first rows; 0: all */
	bool		ties;			/* and all whose keys are equal to that of the last of these */
	uint8_t		n_columns;		/* 0: all rows are one group */
	GsGroupColumn columns[GS_GROUP_COLUMNS];
} GsKeepGroup;

/* Which rows of a sort are kept. */
typedef struct GsKeep
{
	bool		unique;			/* of rows with equal keys, the first one only */
	bool		counted;		/* only with unique, GS_FORMAT_ROWS: a uint32 in bytes 4 to 7 of each row
								 * becomes the number of rows with its key; rows have 8 bytes or more,
								 * and do not overlap */
	uint32_t	min_count;		/* only with counted: the least number of a row that is kept */
	uint32_t	max_count;		/* and the greatest; 0: any */
	uint64_t	top;			/* only with counted, 0: not used.  min_count is then the highest power of two
								 * that the numbers of this many rows reach */
	uint64_t	limit;			/* the number of first rows of what is left; 0: all */
	GsKeepGroup group;			/* not looked at where unique is set */
} GsKeep;

/*
 * How records, or arrays, are ordered.  All but the first are published
 * algorithms, kept for comparison: an engine that a device or a build does not
 * have, or that cannot order what it is given, leaves it to GS_ENGINE_AUTO.
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
 * The default memory limit is found when the device is opened.  cuda: four fifths
 * of what is free.  host: a quarter of the memory of the machine or its control
 * group, and no more than half of what is available; and while less than a tenth
 * of all memory is available, appends are refused (the device looks once for
 * every 64 MB that are reserved); the same for a GPU whose memory is the machine's.  Where
 * the same device is opened several times, each has its part of that.
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
	int			threads;		/* that sort on the machine's own cores; 0: a GPU sorts */
	uint64_t	memory_total;	/* bytes that the device has */
	uint64_t	memory_limit;	/* bytes that it may hold for sorts */
	uint64_t	memory_used;	/* bytes held by open sorts */
} GsDeviceInfo;

typedef struct GsSortSpec
{
	uint32_t	chunk_bytes;	/* size of every chunk and page; power of two */
	GsEngine	engine;
	GsElem		elem;			/* not NONE: a sort of arrays */
	bool		descending;		/* a sort of arrays */
	GsTupleKeys tuple_keys;		/* how missing keys are made; n_columns 0: none is missing.  What it points
								 * to does not change until the device is closed */
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
	double		copy_in_ms;		/* time so far, by phase; what the host prepares for it is included */
	double		sort_ms;
	double		gather_ms;
	double		copy_out_ms;
} GsSortResult;

typedef struct GsDevice GsDevice;
typedef struct GsDeviceSort GsDeviceSort;

typedef struct GsDeviceOps
{
	const char *name;			/* "cuda", "host" */

	/* How many devices of its kind there are; 0: none, and *error tells why. */
	int			(*count) (GsError *error);

	/* The ordinal of the one that has this UUID; -1: none has. */
	int			(*find) (const char *uuid);

	/*
	 * Open a device; *device is set only where GS_OK is returned.  A device may be
	 * opened several times, and several devices by one process.
	 */
	GsStatus	(*open) (const GsDeviceConfig *config, GsDevice **device, GsError *error);

	/* Cancel and end every job and sort, join the threads, release all. */
	void		(*close) (GsDevice *device);

	void		(*info) (GsDevice *device, GsDeviceInfo *info);

	/*
	 * Make host memory fast to copy from and to, for all devices of its kind that
	 * the process has open or will open while one is; a failure is no reason not to
	 * go on.  It must stay mapped until the last of them is closed.  Meanwhile copies of it may be under
	 * way, each from or to memory that is pinned as a whole by a call, or not.
	 */
	GsStatus	(*pin) (GsDevice *device, void *memory, size_t bytes, GsError *error);

	/*
	 * Change GsDeviceConfig.memory_limit; 0: to the default, as it was found by
	 * open.  A limit is never more than memory_total, of the host device nine tenths
	 * of that.
	 */
	void		(*set_memory_limit) (GsDevice *device, uint64_t bytes);

	/* Give memory cached beyond what open sorts hold back to the system. */
	void		(*trim) (GsDevice *device);

	GsStatus	(*sort_open) (GsDevice *device, const GsSortSpec *spec, GsDeviceSort **sort,
							  GsError *error);

	/*
	 * key_bytes is no less than what the chunk's missing keys take in all, with text by a table as
	 * gs_text_key_bound() says.  GS_INVALID: a row
	 * is not what GsSortSpec.tuple_keys says; perform may also tell it.
	 */
	void		(*append) (GsDeviceSort *sort, const void *chunk, uint32_t data_bytes,
						   uint32_t n_records, uint32_t key_bytes, GsJob *job);

	/* After appends that ended with GS_NO_MEMORY, all of them: try again. */
	void		(*resume) (GsDeviceSort *sort);

	/*
	 * Order the rows; keep is NULL where all are kept, and need not outlive the
	 * call.  GS_INVALID: a row and its key do not fit into a chunk.
	 */
	void		(*perform) (GsDeviceSort *sort, GsPageFormat format, const GsKeep *keep,
							GsJob *job);

	/* Write a page, in the format that the sort was performed in, to dst. */
	void		(*fetch) (GsDeviceSort *sort, uint64_t page, void *dst, GsJob *job);

	/*
	 * Copy back chunk i as it was appended: data at the front, records at the
	 * end.  *n_records, their number, is set before the job ends.  Records of missing
	 * keys may have any key_off and key_len.
	 */
	void		(*fetch_image) (GsDeviceSort *sort, uint64_t i, void *dst, uint32_t *n_records,
								GsJob *job);

	/*
	 * Sort the elements of each array of a chunk, in place.  Array i is the
	 * row of record i, whose key fields do not matter; arrays do not overlap,
	 * and their lengths are multiples of the element's size.  A job that fails
	 * leaves any of the arrays sorted or as they were, or, where the device was
	 * lost, nothing that can be relied on.
	 */
	void		(*sort_arrays) (GsDeviceSort *sort, void *chunk, uint32_t data_bytes,
								uint32_t n_arrays, GsJob *job);

	void		(*result) (GsDeviceSort *sort, GsSortResult *result);

	/*
	 * Bytes of the device's limit that the sort holds now, at any time.  May leave out
	 * what a pending job takes and gives back.
	 */
	uint64_t	(*memory_held) (GsDeviceSort *sort);

	/* Make the pending jobs of a sort end soon, as GS_CANCELLED if they can. */
	void		(*cancel) (GsDeviceSort *sort);
	void		(*sort_close) (GsDeviceSort *sort);
} GsDeviceOps;

extern const GsDeviceOps gs_device_host;
#ifdef GS_WITH_CUDA
extern const GsDeviceOps gs_device_cuda;
#endif

extern const char *gs_status_name(GsStatus status);

/* As in the setting gpusort.engine; NULL where there is no such engine. */
extern const char *gs_engine_name(GsEngine engine);

#ifdef __cplusplus
}
#endif

#endif							/* GS_DEVICE_H */
