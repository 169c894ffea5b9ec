/*-------------------------------------------------------------------------
 *
 * spill_private.h
 *	  What the files of spill/ share.
 *
 *	  spill.c		  a sort is opened and closed
 *	  spill_ranges.c  borders between ranges: planning, splitting
 *	  spill_runs.c	  writing runs in blocks, and their index
 *	  spill_read.c	  reading ranges, images and blocks, cut where borders cut runs
 *	  spill_pages.c	  writing and reading pages
 *	  spill_io.c	  threads, files, transfers, how jobs end
 *	  spill_code.c	  how records are written
 *
 * Each file calls only files below it in this list.  Everything belongs to the calling thread, except the
 * things that a GsSpillTask names: they belong to a thread of the pool while the task runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SPILL_PRIVATE_H
#define GS_SPILL_PRIVATE_H

#include <pthread.h>
#include <string.h>

#include "base/machine.h"
#include "base/threads.h"
#include "spill/spill.h"
#include "spill/spill_code.h"

/* ---- files, and what is done with them ---- */

/* Several threads write at the same time, and an inode has one lock. */
#define GS_SPILL_STRIPES	4
#define GS_SPILL_FILES		(2 * GS_SPILL_STRIPES)	/* of chunks, then of pages */

typedef struct GsSpillFile
{
	int			fd;				/* -1: not made yet */
	uint64_t	bytes;			/* including those being written; atomic */
} GsSpillFile;

/* Working memory of a thread. */
typedef struct GsSpillScratch
{
	struct GsSpillScratch *next;
	size_t		bytes;
	uint8_t		memory[];
} GsSpillScratch;

struct GsSpillIo
{
	GsPool *pool;			/* NULL: closed */
	void		(*notify) (void *arg);
	void	   *notify_arg;
	mode_t		folder_mode;
	mode_t		file_mode;
	int			max_fd;			/* the greatest descriptor of files; the system gives the lowest free one,
								 * so a greater one means that few are left for others */
	uint32_t	n_spills;		/* open sorts; the last one frees a closed io */
	pthread_mutex_t scratch_lock;
	GsSpillScratch *scratch;	/* not in use */
};

/* ---- runs ---- */

/* Records that are read together.  spill_code.h tells their form in the file. */
typedef struct GsSpillBlock
{
	const uint8_t *key;			/* of its first record */
	uint64_t	offset;			/* in the file; set by the thread that writes */
	uint32_t	coded_bytes;	/* there; likewise */
	uint64_t	first_row;		/* number of its first record in the run */
	uint32_t	run;
	uint32_t	key_len;		/* without flags */
	uint32_t	data_bytes;		/* a multiple of 8 */
	uint32_t	n_records;		/* at least 1 */
	uint32_t	base;			/* offset of its data in the chunk; offsets in records count from the
								 * chunk's start */
	uint8_t		file;
	bool		repeats;		/* the record before it in the run has the same
								 * key */
} GsSpillBlock;

/* The bytes of a block in a chunk. */
static inline uint64_t
gs_spill_block_bytes(const GsSpillBlock *block)
{
	return block->data_bytes + (uint64_t) block->n_records * sizeof(GsRecord);
}

typedef struct GsSpillChunk
{
	uint32_t	n_blocks;		/* 0: no records */
	GsSpillBlock *blocks;		/* owned; once sealed, a part of GsSpill.blocks */
	uint8_t    *keys;			/* first keys of the blocks, then last_key */
	const uint8_t *last_key;	/* of the last record */
	uint32_t	last_key_len;
} GsSpillChunk;

typedef struct GsSpillRun
{
	uint64_t	end_chunk;		/* the one behind its last */
	uint32_t	first_block;	/* once sealed */
	uint32_t	n_blocks;
} GsSpillRun;

/* ---- pages ---- */

/* Where a page is.  The thread that writes sets it. */
typedef struct GsSpillPage
{
	uint64_t	offset;
	uint32_t	coded_bytes;	/* equal to the bytes of a page: it is not coded */
	uint32_t	n_rows;
	uint8_t		file;
} GsSpillPage;

/* ---- ranges ---- */

/* A border is a row.  The row itself and all rows behind it in the order are above the border. */
typedef struct GsSpillBorder
{
	const uint8_t *key;
	uint32_t	key_len;
	uint32_t	run;
	uint64_t	row;			/* its number in the run */
	uint32_t	block;			/* that it is in */
	bool		repeats;		/* the row before it in the run has the same key */
	uint8_t    *own_key;		/* malloc'd key; NULL: it is the block's */
} GsSpillBorder;

/* Which record of a block is the first above a border. */
typedef enum GsSpillCutKind
{
	GS_CUT_START,				/* its first */
	GS_CUT_RECORD,				/* the record with number `record` */
	GS_CUT_AT_KEY,				/* the first whose key is no less than the
								 * border's, or none */
	GS_CUT_AFTER_KEY			/* the first whose key is greater, or none */
} GsSpillCutKind;

/* Where a border cuts a run. */
typedef struct GsSpillCut
{
	GsSpillCutKind kind;
	uint32_t	block;			/* one after the run's last: above all of it */
	uint32_t	record;
	uint32_t	key_len;
	const uint8_t *key;
} GsSpillCut;

/* A block in memory. */
typedef struct GsSpillView
{
	const char *data;
	const GsRecord *first;		/* record i is first[-i] */
	uint32_t	n;
	uint32_t	base;
} GsSpillView;

struct GsSpill
{
	GsTask	cleanup;		/* must be first */
	GsSpillIo  *io;
	uint32_t	chunk_bytes;
	GsSpillFile files[GS_SPILL_FILES];
	char		path[GS_SPILL_PATH_BYTES - 12]; /* without number */

	uint32_t	n_forgotten;	/* times that pages were forgotten */

	pthread_mutex_t lock;		/* to set failure, to make files, to add to their bytes */
	bool		has_failed;		/* atomic; once set, failure is constant */
	GsSpillFailure failure;
	uint64_t	limit;			/* of files' bytes */
	bool		has_met_limit;	/* atomic */
	bool		lacks_file;		/* there is no descriptor for one; atomic */
	uint64_t	written;		/* bytes; atomic */
	uint64_t	read;			/* likewise */
#ifdef GPUSORT_FAULTS
	int			planted[GS_SPILL_ACTIONS];	/* atomic: errno, once */
#endif

	GsSpillChunk *chunks;		/* of ended runs, then of the run begun */
	uint64_t	n_chunks;
	uint64_t	n_writing;
	uint64_t	max_chunks;
	GsSpillRun *runs;
	uint32_t	n_runs;
	uint64_t	max_runs;

	/* Once sealed: all blocks, and their numbers in the order of their first rows. */
	GsSpillBlock *blocks;		/* NULL: not sealed */
	uint32_t	n_blocks;
	uint64_t	n_rows;
	uint32_t   *order;			/* n_blocks */
	uint64_t   *bytes_before;	/* n_blocks + 1: sums in that order */

	GsSpillBorder *borders;		/* the border above each range; the last range of all has none */
	uint32_t	n_ranges;
	uint64_t	max_ranges;
	bool		is_planned;		/* the last range has no border above */

	GsSpillPage **pages;		/* NULL: not written */
	uint64_t	n_pages;
	uint64_t	max_pages;
};

/* A block that a task reads. */
typedef struct GsSpillPart
{
	GsSpillBlock block;			/* a copy, as the index may move */
	char	   *data;			/* where its data go */
	GsRecord   *first;			/* record i is first[-i] */
	GsSpillCut	low;			/* records before it are dropped */
	GsSpillCut	high;			/* records from it on are dropped; GS_CUT_START: none */
} GsSpillPart;

/* A job on its way.  It is freed when it has ended. */
typedef struct GsSpillTask
{
	GsTask	task;			/* must be first */
	GsSpill    *spill;
	GsJob	   *job;
	void		(*work) (struct GsSpillTask *task); /* what a thread does */
	GsStatus	status;			/* the job's outcome */
	GsSpillAction action;		/* INTERNAL: what failed */
	int			error_number;
	uint8_t		file;			/* the file written to, or the file that failed */
	GsSpillScratch *scratch;
	GsSpillPage *page;
	bool		own_lengths;	/* of its rows */
	GsSpillChunk *index;		/* of the chunk that is written, and its records */
	uint32_t	n_records;
	char	   *chunk;			/* written from, or read to */
	GsSpillPiece *piece;		/* NULL: the blocks are not cut and joined to a chunk */
	bool	   *ties;			/* atomic */
	GsSpillPart *parts;
	uint32_t	n_parts;
	uint64_t	max_parts;
} GsSpillTask;

/* ---- spill_io.c ---- */

/* NULL: no memory, and the job has ended. */
extern GsSpillTask *gs_spill_task_begin(GsSpill *spill, void (*work)(GsSpillTask *task), GsJob *job);

/* Adds a part, zeroed.  NULL: no memory.  The parts before it may move. */
extern GsSpillPart *gs_spill_task_part(GsSpillTask *task);
extern void gs_spill_task_submit(GsSpillTask *task);

/* Makes a task fail, before it is submitted or in its thread.  It must be submitted all the same. */
extern void gs_spill_task_no_memory(GsSpillTask *task);

/*
 * A thread's task calls these.  False, or NULL: the task has failed, and returns.  scratch: returns memory
 * until the task ends; legal once.  append: writes at the end of the task's file, or, if that cannot
 * be made, of another one, which then is the task's; sets *offset.  read:
 * reads from a file.  corrupt: the bytes read are not those written.
 */
extern uint8_t *gs_spill_task_scratch(GsSpillTask *task, size_t bytes);
extern bool gs_spill_task_append(GsSpillTask *task, const void *memory, size_t bytes, uint64_t *offset);
extern bool gs_spill_task_read(GsSpillTask *task, uint8_t file, uint64_t offset, void *memory,
							   size_t bytes);
extern void gs_spill_task_corrupt(GsSpillTask *task, uint8_t file);

/* Removes a sort's files, from this one on, which takes time. */
extern void gs_spill_files_remove(const GsSpill *spill, uint8_t first);

/* ---- spill_pages.c ---- */

extern void gs_spill_pages_free(GsSpill *spill);

/* ---- spill_runs.c ---- */

/* Moves the blocks of all runs into one array.  False: no memory. */
extern bool gs_spill_join_chunks(GsSpill *spill);
extern void gs_spill_runs_free(GsSpill *spill);

/* ---- spill_ranges.c ---- */

extern void gs_spill_ranges_free(GsSpill *spill);

/* ---- spill_read.c ---- */

/* Reads a block.  *view tells its place once the job has ended. */
extern void gs_spill_read_block(GsSpill *spill, uint32_t block, void *chunk, GsSpillView *view,
								GsJob *job);

/* Returns where the border below or above a range cuts a run. */
extern GsSpillCut gs_spill_cut_low(const GsSpill *spill, uint32_t range, uint32_t run);
extern GsSpillCut gs_spill_cut_high(const GsSpill *spill, uint32_t range, uint32_t run);

/* Returns the first record above the cut, of the block that is cut; view->n: none. */
extern uint32_t gs_spill_cut_record(const GsSpillCut *cut, const GsSpillView *view);

/* ---- keys ---- */

static inline int
gs_spill_compare_keys(const uint8_t *a, uint32_t a_len, const uint8_t *b, uint32_t b_len)
{
	int			order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

static inline const uint8_t *
gs_spill_view_key(const GsSpillView *view, uint32_t i, uint32_t *len)
{
	const GsRecord *record = view->first - i;

	*len = record->key_len & GS_LENGTH_MASK;
	return (const uint8_t *) view->data + (record->key_off - view->base);
}

static inline bool
gs_spill_view_key_is(const GsSpillView *view, uint32_t i, const uint8_t *key, uint32_t key_len)
{
	uint32_t	len;
	const uint8_t *other = gs_spill_view_key(view, i, &len);

	return len == key_len && memcmp(other, key, len) == 0;
}

#endif							/* GS_SPILL_PRIVATE_H */
