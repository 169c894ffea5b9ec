/*-------------------------------------------------------------------------
 *
 * order_private.h
 *	  What the files of the order check share.
 *
 *	  order_check.c		the phases of a check, and scanning
 *	  order_repair.c	the repair of runs that reach beyond a buffer
 *	  order_borders.c	the phase of its name
 *	  order_steps.c		what the phases have in common
 *	  order_scan.c		checking the keys of one buffer
 *	  order_sort.c		sorting the keys of a run
 *	  key_check.c		the order of two keys
 *
 * Each calls only files below it in this list.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ORDER_PRIVATE_H
#define GS_ORDER_PRIVATE_H

#include <stddef.h>

#include "order/order_check.h"
#include "order/order_scan.h"

#define N_BUFFERS		16
#define MAX_MOVES		((uint64_t) 8 << 20)
#define MIN_FETCH_BYTES ((size_t) 32 << 10)

typedef enum Phase
{
	PHASE_PLANT,
	PHASE_SCAN,
	PHASE_BOUND,
	PHASE_LOAD,
	PHASE_SORT,
	PHASE_RESCAN,
	PHASE_MOVE,
	PHASE_BORDERS,
	PHASE_DONE
} Phase;

typedef enum BufferState
{
	BUFFER_FREE,
	BUFFER_PINNING,
	BUFFER_PINNED,
	BUFFER_FETCHING,
	BUFFER_SCANNING,
	BUFFER_SCANNED
} BufferState;

typedef struct Buffer
{
	GsHostTask	task;			/* must be first */
	int			state;			/* a BufferState; atomic */
	uint8_t    *memory;			/* NULL until used */
	GsOrderCheck *check;		/* whose keys are in it */
	GsRange		range;			/* what was to be read, if it fits */
	GsJob		job;
	uint64_t	n_keys;
	GsOrderScan scan;
} Buffer;

/* Memory that holds some keys of a run. */
typedef struct Block
{
	struct Block *next;
	uint8_t		memory[];
} Block;

/* How far a run reaches in one direction. */
typedef struct Bound
{
	bool		right;
	bool		halving;		/* the run's end has been passed */
	uint64_t	inside;			/* so many ranks further on is in the run */
	uint64_t	outside;		/* so many are not, or are not there */
	uint64_t	step;
} Bound;

struct GsOrderCheck
{
	GsHostTask	task;			/* must be first */
	GsOrderCheck *next;
	GsDevice   *device;			/* of the sort */
	GsDeviceSort *sort;
	GsOrderJudge judge;
	bool		is_range;
	GsOrderRange range;
	uint64_t	n_rows;
	uint64_t	entry_bytes;	/* that a key takes on average */
	size_t		slice_bytes;	/* of a large fetch */
	double		began_ms;

	Phase		phase;
	Phase		after_move;
	bool		giving_up;		/* the verdict is to be NOT_PROVEN, or worse */
	GsOrderOutcome outcome;

	/* the scans */
	GsRanges	stretches;		/* yet to be fetched; used from the end */
	int			n_buffers;		/* in use for this check */
	GsRanges	moved;			/* to be scanned again */
	GsMoves		moves;			/* to be carried out */
	GsOpenRuns	open;

	/* the one job of the other phases */
	GsJob		job;
	bool		job_pending;
	uint64_t	n_keys;			/* that it fetched */

	/* the borders of a range */
	bool		first_asked;	/* its first key was fetched, or is being */
	bool		last_asked;		/* its last one, likewise */
	uint8_t    *last;			/* an entry; malloc'd */

	/* repair of open runs */
	uint64_t	run;			/* the one in work */
	Bound		bound;
	Block	   *blocks;
	uint64_t	blocks_bytes;
	const uint8_t **entries;	/* of that run, as far as loaded */
	uint64_t	n_entries;
	uint32_t   *order;			/* and as much again to spare */
	int			sorted;			/* atomic; 1: done, -1: failed */

#ifdef GPUSORT_FAULTS
	bool		plant_border;
#endif
};

_Static_assert(offsetof(Buffer, task) == 0 && offsetof(GsOrderCheck, task) == 0,
			   "tasks are cast to what they belong to");

typedef struct GsOrderChecker
{
	const GsDeviceOps *ops;
	void		(*notify) (void *arg);
	GsHostPool *pool;			/* NULL until the first check */
	Buffer		buffers[N_BUFFERS];
	GsOrderCheck *checks;		/* oldest first */
	int			n_checks;
	GsOrderCheck *repairing;	/* the one that may load runs */
} GsOrderChecker;

extern GsOrderChecker gs_order_checker;

/* order_repair.c: the phases of these names; true if anything has happened. */
extern bool gs_order_work_bound(GsOrderCheck *check);
extern bool gs_order_work_load(GsOrderCheck *check);
extern bool gs_order_work_sort(GsOrderCheck *check);

/* order_borders.c: the phase; sets *proven where the check has ended well. */
extern bool gs_order_work_borders(GsOrderCheck *check, bool *proven);

/* order_steps.c */

/* The verdict will be NOT_PROVEN, for the first reason given. */
extern void gs_order_give_up(GsOrderCheck *check, const char *reason);

/* More memory for keys, which becomes the first block; false: there is none, and the check gives up. */
extern bool gs_order_make_block(GsOrderCheck *check, size_t bytes);

/* Begin to fetch keys as the check's one job. */
extern void gs_order_fetch(GsOrderCheck *check, uint64_t first, void *memory, size_t bytes);

/* How much to ask for, to get so many keys or a good part of them. */
extern size_t gs_order_fetch_bytes(const GsOrderCheck *check, uint64_t n_keys);

/* Carry the moves out, if there are any, then go on with a phase. */
extern void gs_order_move_then(GsOrderCheck *check, Phase phase);

/* Carry out what is left to be moved, then scan all that was. */
extern bool gs_order_begin_rescan(GsOrderCheck *check);

/* Free the memory for keys, and what points into it. */
extern void gs_order_free_blocks(GsOrderCheck *check);

#endif							/* GS_ORDER_PRIVATE_H */
