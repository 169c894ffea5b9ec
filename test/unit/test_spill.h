/*-------------------------------------------------------------------------
 *
 * test_spill.h
 *	  What the files of the test of spill/ share.
 *
 *	  test_spill.c		  the cases, and options
 *	  test_spill_sort.c   rows, the sort in memory, writing, reading, checking
 *	  test_spill_faults.c failures of files and of memory
 *	  test_spill_code.c	  how records are written, and files that were changed
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_SPILL_H
#define TEST_SPILL_H

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spill/spill.h"

/* ---- the program ---- */

extern int	n_passed;
extern int	n_failed;
extern char folder[64];			/* for files; empty between cases */
extern GsSpillIo *io;
extern uint64_t random_state;

extern uint32_t below(uint32_t limit);
extern uint64_t random_bits(void);
extern void *allocate(size_t bytes);

/* ---- checks ---- */

extern bool case_ok;

/* The first thing that is wrong in a case is printed. */
#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)

extern bool check(bool ok, const char *what, const char *file, int line);
extern void begin_case(const char *name);
extern void end_case(void);

/* ---- jobs ---- */

extern uint64_t n_notified;		/* read where no job is pending */
extern uint64_t n_jobs;			/* begun; of the main thread */

extern void notify(void *arg);
extern GsStatus wait_for(GsJob *job);

/* ---- rows, and the sort in memory ---- */

typedef struct Row
{
	uint8_t    *bytes;			/* the row, then its key */
	uint32_t	row_len;		/* with flags */
	uint32_t	key_len;		/* with flags */
} Row;

typedef struct Rows
{
	Row		   *items;
	uint32_t	n;
	uint32_t	max;
} Rows;

typedef enum Keys
{
	KEYS_RANDOM,				/* of all bytes, 0 to 20 of them */
	KEYS_FEW,					/* five different ones */
	KEYS_EQUAL,
	KEYS_EQUAL_BUT_ONE,
	KEYS_EMPTY,
	KEYS_PREFIXES,				/* of each other */
	KEYS_NULS,					/* of zeros and ones */
	KEYS_LONG,					/* different in their last bytes */
	KEYS_ANY_LENGTH,
	KEYS_SORTED,				/* a run's behind those of the run before */
	KEYS_REVERSED,
	KEYS_SAME_RUNS				/* all runs have the same keys */
} Keys;

#define N_KEYS	12

/* What is done with ranges. */
typedef enum Splits
{
	SPLIT_NEVER,
	SPLIT_SOMETIMES,
	SPLIT_TO_ROWS
} Splits;

typedef struct Case
{
	Keys		keys;
	uint32_t	chunk_bytes;
	uint32_t	n_runs;
	uint32_t	run_rows;		/* at most; at least 0, or all */
	bool		full_runs;
	uint32_t	max_row;
	uint64_t	budget;
	Splits		splits;
} Case;

typedef struct Chunk
{
	char	   *memory;
	uint32_t	data_bytes;
	uint32_t	n_records;
} Chunk;

typedef struct Sort
{
	Case		spec;
	Rows		rows;			/* all runs', then sorted */
	Chunk	   *chunks;			/* all runs', in order */
	uint32_t	n_chunks;
	uint32_t   *run_chunks;		/* first chunk of each run, and the end */
	GsSpill    *spill;
} Sort;

/* Make a case's rows and chunks, and sort all rows. */
extern void make_sort(Sort *sort, const Case *spec);
extern void free_sort(Sort *sort);
extern void free_rows(Rows *rows);

/* ---- the sort in files ---- */

extern void temporary_path(char *path);

/* Write a run's chunks, in any order; returns the first bad status. */
extern GsStatus write_run(Sort *sort, uint32_t run);
extern bool write_sort(Sort *sort);
extern GsStatus seal(const Sort *sort);
extern void check_images(const Sort *sort);

/* Read a range; returns the first bad status. */
extern GsStatus read_range(const Sort *sort, uint32_t range, Rows *rows, bool *ties);
extern void check_ranges(const Sort *sort);

/* Make the last range smaller; false: it cannot be. */
extern bool split_last(const Sort *sort);

/* Files in the tests' folder. */
extern uint32_t count_files(uint64_t *bytes);
extern void check_no_files(void);	/* waits until threads have removed them */
extern void close_spill(GsSpill *spill);
extern void check_failure(const GsSpill *spill, GsSpillAction action, int error_number);

/* All of a case. */
extern void run_case(const Case *spec);

/* ---- how records are written ---- */

extern void test_code(void);

/* ---- faults ---- */

extern const Case small_case;
extern uint32_t n_transfers;	/* system calls; atomic */
extern bool cut_transfers;		/* cut them short, interrupt them; atomic */
extern uint32_t n_file_calls;	/* of the main thread: files made or removed */

/* Not wrapped: they do not fail when a test has memory end. */
extern void *__real_malloc(size_t bytes);
extern void *__real_realloc(void *memory, size_t bytes);

extern void test_file_system_full(void);
extern void test_failures(void);

#endif							/* TEST_SPILL_H */
