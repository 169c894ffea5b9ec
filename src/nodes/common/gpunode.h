/*-------------------------------------------------------------------------
 *
 * gpunode.h
 *	  What the plan nodes GpuSort, GpuSortFeed, GpuWindow, GpuPercentile,
 *	  GpuGroup, GpuChoice and GpuArraySort have in common.
 *
 * Each is a CustomScan over its child in lefttree, where PostgreSQL takes care of
 * the child in every respect: references, parameters, rescans, instrumentation,
 * EXPLAIN.  GpuChoice has a second child, in righttree.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUNODE_H
#define GS_GPUNODE_H

#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
#include "nodes/plannodes.h"

#include "key/key.h"

/* A kind of node. */
typedef struct GsNode
{
	CustomScanMethods scan;		/* first: CustomScan.methods points to it */
	CustomExecMethods exec;
	Size		state_bytes;	/* of its state, which a CustomScanState begins */
} GsNode;

/* Its name, its state, and the functions that each kind has under these names, for an initializer. */
#define GS_NODE(name, state) \
	.scan = {.CustomName = name, .CreateCustomScanState = gs_node_create_state}, \
	.exec.CustomName = name, \
	.exec.BeginCustomScan = begin, \
	.exec.ExecCustomScan = exec, \
	.exec.EndCustomScan = end, \
	.exec.ReScanCustomScan = rescan, \
	.exec.ExplainCustomScan = explain, \
	.state_bytes = sizeof(state)

/*
 * EXPLAIN's field Device.  devices: with bit i where device i was used; 0 where there is
 * one only, or none was.
 */
extern void gs_explain_device(const char *name, uint32 devices, struct ExplainState *es);

/* Does EXPLAIN show more than a few lines?  By VERBOSE or GPUSORT, and to programs. */
extern bool gs_explain_details(struct ExplainState *es);

/* custom_private; an error if it has not so many members. */
extern List *gs_node_private(const CustomScan *plan, int n);

/* Columns of a child's output that a node compares, as a member of custom_private, a list of four lists. */
extern List *gs_columns_write(const GsColumns *columns);
extern GsColumns gs_columns_read(const List *item);

/* May the user execute the functions that compare them?  Else an error, as from PostgreSQL's node. */
extern void gs_columns_check(const GsColumns *columns);

/* The columns by which a Unique, a Group or an Agg makes groups. */
extern GsColumns gs_columns_of_groups(const Plan *plan);

/* EXPLAIN's field of this name: the columns. */
extern void gs_explain_columns(const char *name, struct CustomScanState *node, List *ancestors,
							   const GsColumns *columns, struct ExplainState *es);

/* The same: the columns of its scan tuple that the node computes. */
extern void gs_explain_computed(const char *name, struct CustomScanState *node, List *ancestors,
								struct ExplainState *es);

/* The columns of a node's scan tuple, custom_scan_tlist. */
typedef struct GsScanColumns
{
	int			n;
	AttrNumber *attnos;			/* the child's column that it is; 0: the node computes it */
	AttrNumber	last;			/* of the child's; 0: there is none */
} GsScanColumns;

extern void gs_scan_columns_read(GsScanColumns *columns, const CustomScan *plan);

/*
 * The child's part of a scan tuple, from a row, which may be NULL if there is no such column.  The other
 * columns are NULL.
 */
static inline void
gs_scan_columns_set(const GsScanColumns *columns, TupleTableSlot *row, TupleTableSlot *scan)
{
	if (columns->last > 0)
		slot_getsomeattrs(row, columns->last);
	for (int i = 0; i < columns->n; i++)
	{
		AttrNumber	attno = columns->attnos[i];

		scan->tts_values[i] = attno == 0 ? (Datum) 0 : row->tts_values[attno - 1];
		scan->tts_isnull[i] = attno == 0 || row->tts_isnull[attno - 1];
	}
}

/* For GS_NODE(). */
extern Node *gs_node_create_state(CustomScan *plan);

/*
 * While it begins: set the typmods of columns of type record in the description of its scan tuple, as far
 * as the plan tells what they hold.
 */
extern void gs_node_type_records(CustomScanState *node);

/* Let the nodes know what the executor was asked for. */
extern void gs_executor_run_init(void);

/*
 * Is the query being run to its end, by what is running now?  Not where a
 * cursor fetches some rows, a PL/pgSQL loop, a SQL function that returns row by
 * row, and the like.
 */
extern bool gs_executor_runs_to_end(const EState *estate);

/*
 * And will it end then?  Not where a cursor fetches all rows; PostgreSQL 18 and later do not
 * tell that one apart.
 */
extern bool gs_executor_runs_once(const EState *estate);

/* Is a plan node of this kind?  Inline, because it is asked of all nodes of every plan. */
static inline bool
gs_node_is(const Plan *plan, const GsNode *node)
{
	return IsA(plan, CustomScan) && ((const CustomScan *) plan)->methods == &node->scan;
}

/*
 * A node for a finished plan, with the costs, parameters and number of another
 * one, and no memory in common with it.
 */
extern CustomScan *gs_node_make(const GsNode *node, const Plan *like, List *tlist,
								List *scan_tlist, Plan *child, List *private);

/* A target list that returns a scan tuple of tlist's columns as it is, and such a one of the child's. */
extern List *gs_node_index_tlist(List *tlist);
extern List *gs_node_outer_tlist(List *tlist);

/* A target list with another column; the list is changed. */
extern List *gs_node_add_column(List *tlist, Expr *expr);

/* When the child is finished: a node returns the child's first columns, as many as it has. */
extern void gs_node_finish_columns(CustomScan *plan);

/* Expressions in which what a target list computes is a column of that: a Var with this varno. */
extern List *gs_node_use_columns(List *exprs, List *tlist, int varno);

/*
 * The expressions of a finished plan as those of a node in its place, whose scan tuple has the columns
 * that they name: those of the child, and calls (PVC_INCLUDE_AGGREGATES, PVC_INCLUDE_WINDOWFUNCS).  What is
 * not among its columns yet is added to them.
 */
extern List *gs_node_use_scan_tuple(List *exprs, int calls, List **scan_tlist);

#endif							/* GS_GPUNODE_H */
