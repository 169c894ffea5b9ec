/*-------------------------------------------------------------------------
 *
 * gpuwindow_function.h
 *	  The window functions that GpuWindow computes, other than aggregates.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUWINDOW_FUNCTION_H
#define GS_GPUWINDOW_FUNCTION_H

#include "executor/executor.h"

#include "nodes/window/gpuwindow_rows.h"

typedef enum GsWindowKind
{
	GS_WINDOW_UNKNOWN,
	GS_WINDOW_ROW_NUMBER,
	GS_WINDOW_RANK,
	GS_WINDOW_DENSE_RANK,
	GS_WINDOW_PERCENT_RANK,
	GS_WINDOW_CUME_DIST,
	GS_WINDOW_NTILE,
	GS_WINDOW_LAG,
	GS_WINDOW_LEAD,
	GS_WINDOW_FIRST_VALUE,
	GS_WINDOW_LAST_VALUE,
	GS_WINDOW_AGGREGATE
} GsWindowKind;

/* Frames from the partition's first row to .. */
typedef enum GsWindowFrame
{
	GS_FRAME_TO_ROW,			/* the current row */
	GS_FRAME_TO_PEERS,			/* its last peer */
	GS_FRAME_TO_PARTITION,		/* the partition's last row */
	GS_FRAME_OTHER				/* any other frame */
} GsWindowFrame;

/* What must be known of a row, beside itself and those before it. */
#define GS_WINDOW_NEEDS_PEERS		1	/* whether it is a peer of the row before */
#define GS_WINDOW_NEEDS_PEERS_END	2	/* its last peer */
#define GS_WINDOW_NEEDS_PARTITION	4	/* the partition's last row */
#define GS_WINDOW_NEEDS_ROWS		8	/* other rows of the partition */

extern GsWindowKind gs_window_kind(const WindowFunc *call);
extern bool gs_window_uses_frame(GsWindowKind kind);
extern int	gs_window_needs(const WindowFunc *call, GsWindowFrame frame);

/* The current row. */
typedef struct GsWindowRow
{
	TupleTableSlot *slot;
	int64		position;		/* in its partition, from 0 */
	int64		rank;
	int64		dense_rank;
	int64		frame_end;		/* the position after the frame's last row */
	int64		peers_end;		/* after its last peer, if a function needs that */
	int64		partition_end;	/* after the partition's last row; -1: not known, and not needed */
} GsWindowRow;

typedef struct GsWindowFunction
{
	GsWindowKind kind;
	int			column;			/* number in the scan tuple, from 0 */
	int			reader;			/* its reader of held rows */
	ExprState  *arg;			/* the first argument; NULL: none */
	ExprState  *offset_arg;		/* lag(), lead(): the offset, which uses no column */
	ExprState  *default_arg;
	bool		byval;			/* byval and len: of values */
	int16		len;

	/* lag(), lead(): from the current row to the row that they return; set when the scan begins */
	int64		offset;			/* 0 for other functions */
	bool		offset_isnull;

	/* first_value(): the partition's */
	Datum		value;
	bool		isnull;
	MemoryContext context;		/* of the value */

	/* ntile(): as ntile_context in windowfuncs.c */
	int32		bucket;			/* 0: the number of buckets is not known yet */
	int64		bucket_rows;	/* rows in the bucket so far */
	int64		bucket_size;
	int64		larger_buckets; /* this many first buckets have one more row; 0: none, or they are full */
} GsWindowFunction;

extern void gs_window_function_init(GsWindowFunction *function, WindowFunc *call,
									PlanState *parent);

/* Evaluate offsets, before a scan's first row is requested. */
extern void gs_window_function_begin_scan(GsWindowFunction *function, ExprContext *econtext);

/* Before the first row of a partition. */
extern void gs_window_function_begin_partition(GsWindowFunction *function);

/*
 * The value for the current row, valid until the next row is read.  Call it once for each row.  Changes
 * econtext's outer tuple.
 */
extern Datum gs_window_function_value(GsWindowFunction *function, const GsWindowRow *row,
									  GsHeldRows *held, ExprContext *econtext, bool *isnull);

#endif							/* GS_GPUWINDOW_FUNCTION_H */
