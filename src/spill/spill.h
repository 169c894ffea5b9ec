/*-------------------------------------------------------------------------
 *
 * spill.h
 *	  Sorted runs of a sort in temporary files, and the ranges of keys in
 *	  which they are read back.
 *
 * A sort that outgrows the device is written out in runs, each sorted by itself.  Afterwards borders cut
 * the whole sort into ranges, each small enough for the device.  The rows of a range are read from all
 * runs, appended to a new sort of the device, and sorted.  The ranges one after the other are the sort.
 *
 * The order
 *	  Rows of all runs are ordered by their key, then by the number of their run, then by their place in it.
 *	  So the sort is stable if runs are numbered in the order of their appends.  A border is a row of this
 *	  order, and not only a key.  So ranges of any size are possible even if all rows have the same key.
 *
 * Chunks
 *	  Runs are written and read in chunks as devices return them (GS_FORMAT_CHUNKS in device.h): the key
 *	  directly behind the row, the next row at the next multiple of 8, zeroes in between.
 *
 * Files
 *	  A sort has several files, so that several threads write at the same time.  A file is made when its
 *	  first byte is written, and removed after gs_spill_close().  Rows and keys take fewer bytes than in
 *	  memory (spill_code.h).  The first key of each block stays in memory.  A block has some 64 kB, a
 *	  sixteenth of a chunk.  In a sort of more than 64 GB blocks are longer, up to a chunk (spill_runs.c).
 *
 * Jobs
 *	  Threads read and write.  Functions that are given a GsJob return at once.  The job ends as in
 *	  device.h: its status is set, and then notify is called.  Memory named in the call is the job's until
 *	  then.  Jobs end in any order.  A failure is GS_INTERNAL with a message; gs_spill_failure() tells what
 *	  failed, and where.  Without memory for the job it ends in the call, as GS_NO_MEMORY, and notify is
 *	  called there.  All functions are called from one thread, which never
 *	  waits for a file system.
 *
 * Nothing here knows PostgreSQL; this header is plain C11.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SPILL_H
#define GS_SPILL_H

#include <sys/types.h>

#include "device/device.h"

typedef struct GsSpillIo GsSpillIo; /* threads, shared by all sorts */
typedef struct GsSpill GsSpill; /* files and runs of one sort */
typedef struct GsSpillReader GsSpillReader; /* reads one range */
typedef struct GsSpillSplit GsSpillSplit;	/* makes a range smaller */

#define GS_SPILL_PATH_BYTES 1024

typedef enum GsSpillAction
{
	GS_SPILL_CREATE,
	GS_SPILL_WRITE,
	GS_SPILL_READ
} GsSpillAction;

#define GS_SPILL_ACTIONS	3

/* The actions in messages: "create", "write to", "read from". */
extern const char *const gs_spill_action_names[GS_SPILL_ACTIONS];

/* Why a job failed: errno, the action, and the file. */
typedef struct GsSpillFailure
{
	int			error_number;	/* 0: nothing has failed */
	GsSpillAction action;
	char		path[GS_SPILL_PATH_BYTES];
} GsSpillFailure;

/* What a read has put into a chunk.  Set before its job ends. */
typedef struct GsSpillPiece
{
	uint32_t	data_bytes;
	uint32_t	n_records;		/* 0: there is nothing to append */
} GsSpillPiece;

/*
 * Files and their folders get these modes, less umask.  notify may be NULL; threads with all signals
 * blocked call it.  Files leave a quarter of the process's descriptors to others.  NULL: memory is short,
 * or no thread could be started.
 */
extern GsSpillIo *gs_spill_io_open(int threads, mode_t folder_mode, mode_t file_mode,
								   void (*notify) (void *arg), void *notify_arg);

/*
 * Ends the threads, after all jobs have ended and files of closed sorts are removed.  Sorts may be closed
 * before or afterwards.
 */
extern void gs_spill_io_close(GsSpillIo *io);

/*
 * Files will be named PATH and a number, and must not exist yet.  The folder of path is made if it is
 * missing.  NULL: no memory, or path is too long.
 */
extern GsSpill *gs_spill_open(GsSpillIo *io, const char *path, uint32_t chunk_bytes);

/*
 * Legal if no job of the sort is pending, and its readers are closed.  A thread removes the files, which
 * takes time.
 */
extern void gs_spill_close(GsSpill *spill);

/* Bytes in files, including those being written; bytes written so far; bytes read so far. */
extern uint64_t gs_spill_bytes(const GsSpill *spill);
extern uint64_t gs_spill_bytes_written(const GsSpill *spill);
extern uint64_t gs_spill_bytes_read(const GsSpill *spill);

/*
 * Limits the bytes in files.  A write beyond the limit ends as GS_NO_MEMORY, and has_met_limit is true from
 * then on.  The same happens if no descriptor is left for a file; then lacks_file is true, too.
 */
extern void gs_spill_limit(GsSpill *spill, uint64_t bytes);
extern bool gs_spill_has_met_limit(const GsSpill *spill);
extern bool gs_spill_lacks_file(const GsSpill *spill);

/* The first failure of the sort's jobs.  It then is constant, until pages are forgotten. */
extern const GsSpillFailure *gs_spill_failure(const GsSpill *spill);

/*
 * Runs.  Between begin and end, each of the n_chunks chunks of one run is written once, in any order and at
 * the same time.  A chunk may have no records.  begin: false: no memory.  end: legal once all writes have
 * succeeded.  After a failure no run may begin.
 */
extern bool gs_spill_begin_run(GsSpill *spill, uint64_t n_chunks);
extern void gs_spill_write(GsSpill *spill, uint64_t i, const void *chunk, uint32_t n_records,
						   GsJob *job);
extern void gs_spill_end_run(GsSpill *spill);
extern uint32_t gs_spill_runs(const GsSpill *spill);

/* The chunks of all ended runs, by run and number, each as it was. */
extern uint64_t gs_spill_images(const GsSpill *spill);
extern void gs_spill_read_image(GsSpill *spill, uint64_t i, void *chunk, GsSpillPiece *piece,
								GsJob *job);

/*
 * Ranges.  seal: no more runs follow; its job ends before any function below is called.  plan: appends a
 * range of about budget bytes, plus some blocks of each run.  False: no memory, or all rows are in ranges
 * already, which gs_spill_planned() tells.  A range has at least one row.
 */
extern void gs_spill_seal(GsSpill *spill, GsJob *job);
extern uint64_t gs_spill_rows(const GsSpill *spill);
extern bool gs_spill_plan(GsSpill *spill, uint64_t budget);
extern bool gs_spill_planned(const GsSpill *spill);
extern uint32_t gs_spill_ranges(const GsSpill *spill);

/*
 * Making the last range smaller, as it did not fit.  The rows that it loses are planned again.  If no block
 * begins within the range, one block of each run must be read.  begin: NULL: no memory, or there is no
 * range.  read: reads the next block into chunk, which must stay until the next call, after the read before
 * has succeeded.  False: no job begins, as no more is needed.  end: ends the split, at any time.  With
 * carry_out the range is smaller afterwards, or false is returned: the range has only one row, or memory is
 * short.
 */
extern GsSpillSplit *gs_spill_split_begin(GsSpill *spill);
extern bool gs_spill_split_read(GsSpillSplit *split, void *chunk, GsJob *job);
extern bool gs_spill_split_end(GsSpillSplit *split, bool carry_out);

/*
 * Reading a range.  gs_spill_read() reads the next piece into chunk; pieces must be appended in this order.
 * False: no job begins, as there are no more.  Jobs may run at the same time, and end in any order.  A job
 * that fails is not repeated.  Close a reader after all of its jobs have ended, and before its range is
 * split.
 */
extern GsSpillReader *gs_spill_reader_open(GsSpill *spill, uint32_t range);
extern bool gs_spill_read(GsSpillReader *reader, void *chunk, GsSpillPiece *piece, GsJob *job);

/*
 * Valid once all has been read: does the first row of the range have the same key as the last row of the
 * range before?
 */
extern bool gs_spill_reader_ties(const GsSpillReader *reader);
extern void gs_spill_reader_close(GsSpillReader *reader);

/*
 * Pages of the device, of n_rows rows each, in any order, for a sort that is in order already.  Bytes
 * between rows and entries are lost.  own_lengths: rows begin with their own length in 4 bytes, except rows
 * with GS_ENTRY_EXTERNAL.  Then the bytes that fill a row up to a multiple of 8 are ignored, and come back
 * as zeroes.
 */
extern void gs_spill_write_page(GsSpill *spill, uint64_t page, const void *memory, uint32_t n_rows,
								bool own_lengths, GsJob *job);
extern void gs_spill_read_page(GsSpill *spill, uint64_t page, void *memory, GsJob *job);

/* Removes the files of all pages, and forgets a failure to write one.  No page is being written or read. */
extern void gs_spill_forget_pages(GsSpill *spill);

#ifdef GPUSORT_FAULTS
/*
 * For tests: the next such action of the sort fails, with this errno.
 */
extern void gs_spill_plant(GsSpill *spill, GsSpillAction action, int error_number);
#endif

#endif							/* GS_SPILL_H */
