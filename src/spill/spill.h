/*-------------------------------------------------------------------------
 *
 * spill.h
 *	  Sorted runs of a sort in temporary files, and the ranges of keys in
 *	  which they are read back.
 *
 * A sort that outgrows the device is written out in runs: each is sorted by
 * itself.  Afterwards borders cut the whole sort into ranges, each small enough
 * for the device; a range's rows of all runs are read, appended to a new sort
 * of the device, and sorted.  The ranges one after the other are the sort.
 *
 * The order
 *	  Rows of all runs are ordered by their key, then by the number of their
 *	  run, then by their place in it; so the sort is stable if runs are
 *	  numbered in the order in which their rows were appended.  A border is a
 *	  row of this order, not a key only: so even a key that all rows have is
 *	  cut into ranges of any size.
 *
 * Chunks
 *	  Runs are written and read in chunks as devices give them (GS_FORMAT_CHUNKS in
 *	  device.h): the key directly after the row, the next row at the next multiple of 8,
 *	  zeroes in between.
 *
 * Files
 *	  Some, so that several threads write at the same time.  Each is made when its
 *	  first byte is written, and its name is removed by gs_spill_close().  Rows and keys are
 *	  written in fewer bytes than they have in memory (spill_code.h).  Of each
 *	  block of some 64 kB, a sixteenth of a chunk, the first key is kept in
 *	  memory.  In a sort of more than 64 GB blocks are longer, up to a chunk (spill_runs.c).
 *
 * Jobs
 *	  Reading and writing is done by threads.  Functions that are given a
 *	  GsJob return at once; the job ends as in device.h: its status is set,
 *	  then notify called.  Memory named in the call is the job's until then.  Jobs end in
 *	  any order.  A failure is GS_INTERNAL with a message; what failed, and where,
 *	  gs_spill_failure() tells.  Where there is no memory for the job it ends in the
 *	  call, as GS_NO_MEMORY, and notify is called there.  All functions are called
 *	  from one thread.
 *
 * Nothing here knows PostgreSQL; this header is plain C11.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SPILL_H
#define GS_SPILL_H

#include <sys/types.h>

#include "device/device.h"

typedef struct GsSpillIo GsSpillIo; /* the threads, for all sorts */
typedef struct GsSpill GsSpill; /* files and runs of one sort */
typedef struct GsSpillReader GsSpillReader; /* reads one range */
typedef struct GsSpillSplit GsSpillSplit;	/* makes one smaller */

#define GS_SPILL_PATH_BYTES 1024

typedef enum GsSpillAction
{
	GS_SPILL_CREATE,
	GS_SPILL_WRITE,
	GS_SPILL_READ
} GsSpillAction;

#define GS_SPILL_ACTIONS	3

/* As messages name them: "create", "write to", "read from". */
extern const char *const gs_spill_action_names[GS_SPILL_ACTIONS];

/* Why a job failed: errno, and what was done with which file. */
typedef struct GsSpillFailure
{
	int			error_number;	/* 0: nothing has failed */
	GsSpillAction action;
	char		path[GS_SPILL_PATH_BYTES];
} GsSpillFailure;

/* The content that a read has put into a chunk; set before its job ends. */
typedef struct GsSpillPiece
{
	uint32_t	data_bytes;
	uint32_t	n_records;		/* may be 0: then there is nothing to append */
} GsSpillPiece;

/*
 * Files and their folders get these modes, less umask.  notify may be NULL; threads call it with all signals
 * blocked.  Files leave a quarter of the process's descriptors to others.  Returns NULL if memory is short,
 * or if no thread could be started.
 */
extern GsSpillIo *gs_spill_io_open(int threads, mode_t folder_mode, mode_t file_mode,
								   void (*notify) (void *arg), void *notify_arg);

/*
 * Ends the threads.  Jobs end first, and files of closed sorts are removed; sorts
 * may be closed before or afterwards.
 */
extern void gs_spill_io_close(GsSpillIo *io);

/*
 * Files will be named PATH.0 to PATH.7; there must be none.  The folder of path is
 * made where there is none.  NULL: no memory, or path is too long.
 */
extern GsSpill *gs_spill_open(GsSpillIo *io, const char *path, uint32_t chunk_bytes);

/*
 * Legal when no job of it is pending, and its readers are closed.  No file has its
 * name afterwards; a thread gives the space back, which takes time.
 */
extern void gs_spill_close(GsSpill *spill);

/* Bytes in files, from the moment when they were to be written; all that were written so far, and read. */
extern uint64_t gs_spill_bytes(const GsSpill *spill);
extern uint64_t gs_spill_bytes_written(const GsSpill *spill);
extern uint64_t gs_spill_bytes_read(const GsSpill *spill);

/*
 * No more than so many bytes in files.  A write beyond that ends as GS_NO_MEMORY, and has_met tells so
 * from then on.  The same happens where there is no descriptor for a file, which lacks_file tells as well.
 */
extern void gs_spill_limit(GsSpill *spill, uint64_t bytes);
extern bool gs_spill_has_met_limit(const GsSpill *spill);
extern bool gs_spill_lacks_file(const GsSpill *spill);

/* The first failure of any of its jobs; constant then, until pages are forgotten. */
extern const GsSpillFailure *gs_spill_failure(const GsSpill *spill);

/*
 * Runs.  The n_chunks chunks of one run are written between begin and end, each
 * once, in any order and side by side; a chunk may have no records.  begin:
 * false: no memory.  end: all writes have ended well; no run is begun where they have not.
 */
extern bool gs_spill_begin_run(GsSpill *spill, uint64_t n_chunks);
extern void gs_spill_write(GsSpill *spill, uint64_t i, const void *chunk, uint32_t n_records,
						   GsJob *job);
extern void gs_spill_end_run(GsSpill *spill);
extern uint32_t gs_spill_runs(const GsSpill *spill);

/* Chunks written, of all ended runs, by run and number, each as it was. */
extern uint64_t gs_spill_images(const GsSpill *spill);
extern void gs_spill_read_image(GsSpill *spill, uint64_t i, void *chunk, GsSpillPiece *piece,
								GsJob *job);

/*
 * Ranges.  seal: no run will be added; its job comes before all that follows.  plan: adds a range
 * after those that there are, of some budget bytes; it may come out larger, by some blocks of
 * each run.  False: no memory, or all rows are in ranges already, which
 * gs_spill_planned() tells.  A range has at least one row.
 */
extern void gs_spill_seal(GsSpill *spill, GsJob *job);
extern uint64_t gs_spill_rows(const GsSpill *spill);
extern bool gs_spill_plan(GsSpill *spill, uint64_t budget);
extern bool gs_spill_planned(const GsSpill *spill);
extern uint32_t gs_spill_ranges(const GsSpill *spill);

/*
 * Making the last range smaller, for it did not fit; what it loses is planned again.
 * Where no block begins within the range, one of each run has to be read.  begin:
 * NULL: no memory, or there is no range.  read: read the next one into chunk, which must stay until
 * the next call, once the one before has been read well.  False, and no
 * job begins: no more is needed.  end: the end of split, also in between; with carry_out the range is
 * smaller afterwards, or false: it has one row only, or no memory.
 */
extern GsSpillSplit *gs_spill_split_begin(GsSpill *spill);
extern bool gs_spill_split_read(GsSpillSplit *split, void *chunk, GsJob *job);
extern bool gs_spill_split_end(GsSpillSplit *split, bool carry_out);

/*
 * Reading a range.  next: read its next piece into chunk, in the order in which
 * pieces must be appended; false, and no job begins, when there are no more.
 * Jobs may run side by side and end in any order; one that fails is not made up
 * for.  A reader is closed when none of its jobs is pending, and before its range is
 * split.
 */
extern GsSpillReader *gs_spill_reader_open(GsSpill *spill, uint32_t range);
extern bool gs_spill_read(GsSpillReader *reader, void *chunk, GsSpillPiece *piece, GsJob *job);

/*
 * When all has been read: does the first row of the range have the same key as
 * the last one of the range before it?
 */
extern bool gs_spill_reader_ties(const GsSpillReader *reader);
extern void gs_spill_reader_close(GsSpillReader *reader);

/*
 * Pages of the device, of so many rows, in any order: for a sort that is in order
 * already.  What lies between rows and entries is not kept.  own_lengths: rows have their
 * own length in their first 4 bytes, except rows with GS_ENTRY_EXTERNAL; then what fills them up to
 * a multiple of 8 is not looked at, and comes back as zeroes.
 */
extern void gs_spill_write_page(GsSpill *spill, uint64_t page, const void *memory, uint32_t n_rows,
								bool own_lengths, GsJob *job);
extern void gs_spill_read_page(GsSpill *spill, uint64_t page, void *memory, GsJob *job);

/*
 * All pages are of no more use, and none is being written or read: their files are removed, and a failure to
 * write one is forgotten.
 */
extern void gs_spill_forget_pages(GsSpill *spill);

#ifdef GPUSORT_FAULTS
/*
 * For tests: the next such action of the sort fails, with this errno.
 */
extern void gs_spill_plant(GsSpill *spill, GsSpillAction action, int error_number);
#endif

#endif							/* GS_SPILL_H */
