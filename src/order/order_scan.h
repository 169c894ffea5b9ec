/*-------------------------------------------------------------------------
 *
 * order_scan.h
 *	  Checking the order of the keys in one buffer, and repairing what of it
 *	  can be repaired there.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ORDER_SCAN_H
#define GS_ORDER_SCAN_H

#include "order/order_sort.h"

/* Rows to be moved: rank to[i] gets the row of rank from[i]. */
typedef struct GsMoves
{
	uint64_t   *to;
	uint64_t   *from;
	uint64_t	n;
	uint64_t	room;
} GsMoves;

/* Ranks first to last, both included. */
typedef struct GsRange
{
	uint64_t	first;
	uint64_t	last;
} GsRange;

typedef struct GsRanges
{
	GsRange    *items;
	uint64_t	n;
	uint64_t	room;
} GsRanges;

/* A run with an inversion that may reach beyond the keys at hand. */
typedef struct GsOpenRun
{
	GsRange		range;			/* what of it is known */
	uint8_t    *prefix;			/* how all its keys begin; malloc'd */
	uint32_t	prefix_len;
} GsOpenRun;

typedef struct GsOpenRuns
{
	GsOpenRun  *items;
	uint64_t	n;
	uint64_t	room;
} GsOpenRuns;

/* All lists: false where memory is short, and nothing was added then. */
extern bool gs_moves_add(GsMoves *moves, uint64_t to, uint64_t from);
extern bool gs_moves_append(GsMoves *moves, const GsMoves *more);
extern void gs_moves_free(GsMoves *moves);

/* For qsort: by their first ranks. */
extern int	gs_range_compare(const void *a, const void *b);
extern bool gs_ranges_push(GsRanges *ranges, uint64_t first, uint64_t last);

/* Add a range that does not begin before the last one; close ones are joined. */
extern bool gs_ranges_add(GsRanges *ranges, uint64_t first, uint64_t last);
extern void gs_ranges_free(GsRanges *ranges);
extern bool gs_open_runs_add(GsOpenRuns *runs, const GsOpenRun *run);
extern void gs_open_runs_free(GsOpenRuns *runs);

/*
 * Note the moves that bring entries, which hold the ranks from first on, into
 * an order.
 */
extern bool gs_moves_of_order(GsMoves *moves, uint64_t first, const uint32_t *order, uint32_t n);

/* One buffer's check.  Zero it before use; free with gs_order_scan_free. */
typedef struct GsOrderScan
{
	/* in */
	const GsOrderJudge *judge;
	GsHostPool *pool;
	const uint8_t *memory;		/* as fetch_keys filled it */
	uint64_t	first;			/* rank of its first key */
	uint32_t	n;				/* keys to look at */
	uint64_t	n_rows;			/* of the whole sort */
	bool		repair;			/* else an inversion is a failure */

	/* out */
	bool		failed;			/* order cannot be proven */
	GsMoves		moves;			/* repair what can be seen whole here */
	GsRanges	moved;			/* the runs that they are in, and their
								 * neighbours */
	GsOpenRuns	open;			/* what cannot */
} GsOrderScan;

/* To be called on a thread of the pool. */
extern void gs_order_scan(GsOrderScan *scan);
extern void gs_order_scan_free(GsOrderScan *scan);

#endif							/* GS_ORDER_SCAN_H */
