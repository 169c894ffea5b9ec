/*-------------------------------------------------------------------------
 *
 * gpunode.h
 *	  The common parts of the plan nodes GpuSort, GpuSortFeed, GpuWindow,
 *	  GpuPercentile, GpuGroup, GpuChoice and GpuArraySort.
 *
 * Each is a CustomScan with its child in lefttree.  There PostgreSQL takes care of the child's
 * references, parameters, rescans, instrumentation and EXPLAIN.  GpuChoice has a second child, in
 * righttree.
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
	Size		state_bytes;	/* size of its state, which begins with a CustomScanState */
} GsNode;

/* Initializes a GsNode: name, type of the state, and the functions that each kind of node has. */
#define GS_NODE(name, state) \
	.scan = {.CustomName = name, .CreateCustomScanState = gs_node_create_state}, \
	.exec.CustomName = name, \
	.exec.BeginCustomScan = begin, \
	.exec.ExecCustomScan = exec, \
	.exec.EndCustomScan = end, \
	.exec.ReScanCustomScan = rescan, \
	.exec.ExplainCustomScan = explain, \
	.state_bytes = sizeof(state)

/* EXPLAIN's field Device.  devices: bit i means that device i was used; 0: no device, or the only one. */
extern void gs_explain_device(const char *name, uint32 devices, struct ExplainState *es);

/* Does EXPLAIN show all details?  It does with VERBOSE or GPUSORT, and in formats for programs. */
extern bool gs_explain_details(struct ExplainState *es);

/* custom_private; an error if it does not have n members. */
extern List *gs_node_private(const CustomScan *plan, int n);

/* Write the columns that a node compares into a list of four lists, for custom_private; and read them. */
extern List *gs_columns_write(const GsColumns *columns);
extern GsColumns gs_columns_read(const List *item);

/* An error, as from PostgreSQL's node, if the user may not execute the functions that compare the columns. */
extern void gs_columns_check(const GsColumns *columns);

/* The columns by which a Unique, a Group or an Agg makes groups. */
extern GsColumns gs_columns_of_groups(const Plan *plan);

/* Print the columns as EXPLAIN's field of this name. */
extern void gs_explain_columns(const char *name, struct CustomScanState *node, List *ancestors,
							   const GsColumns *columns, struct ExplainState *es);

/* The same for the columns of its scan tuple that the node computes. */
extern void gs_explain_computed(const char *name, struct CustomScanState *node, List *ancestors,
								struct ExplainState *es);

/* The columns of a node's scan tuple, custom_scan_tlist. */
typedef struct GsScanColumns
{
	int			n;
	AttrNumber *attnos;			/* the child's column for each; 0: the node computes it */
	AttrNumber	last;			/* the last column of the child that is used; 0: none */
} GsScanColumns;

extern void gs_scan_columns_read(GsScanColumns *columns, const CustomScan *plan);

/*
 * Set a scan tuple's columns of the child from a row, and the other columns to NULL.  row may be NULL if no
 * column of the child is used.
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
 * When a node begins: set the typmods of columns of type record in its scan tuple's description, as far as
 * the plan shows the types of their fields.
 */
extern void gs_node_type_records(CustomScanState *node);

/* Install the hook that tells nodes how many rows the executor was asked for. */
extern void gs_executor_run_init(void);

/*
 * Does the present call of the executor run the query to its end?  It does not if a cursor fetches some
 * rows, in a PL/pgSQL loop, in a SQL function that returns row by row, and the like.
 */
extern bool gs_executor_runs_to_end(const EState *estate);

/*
 * Is this also the last call for the query?  It is not if a cursor fetches all rows.  From PostgreSQL 18 on
 * the function returns true for such a cursor as well.
 */
extern bool gs_executor_runs_once(const EState *estate);

/* Is a plan node of this kind?  Inline, because it is called for all nodes of every plan. */
static inline bool
gs_node_is(const Plan *plan, const GsNode *node)
{
	return IsA(plan, CustomScan) && ((const CustomScan *) plan)->methods == &node->scan;
}

/* Make a node for a finished plan.  Costs, parameters and number are copied from like. */
extern CustomScan *gs_node_make(const GsNode *node, const Plan *like, List *tlist,
								List *scan_tlist, Plan *child, List *private);

/* A target list of Vars for tlist's columns: INDEX_VAR, of the scan tuple; OUTER_VAR, of the child. */
extern List *gs_node_tlist(List *tlist, int varno);

/* A target list with another column; the list is changed. */
extern List *gs_node_add_column(List *tlist, Expr *expr);

/* After the child is finished: make a node's columns the first ones of the child. */
extern void gs_node_finish_columns(CustomScan *plan);

/* Replace expressions that a target list computes by Vars of that target list, with this varno. */
extern List *gs_node_use_columns(List *exprs, List *tlist, int varno);

/*
 * Rewrite expressions of a finished plan for a node in its place.  They then refer to the node's scan tuple,
 * which has the child's columns that they use, and calls (PVC_INCLUDE_AGGREGATES, PVC_INCLUDE_WINDOWFUNCS).
 * Missing columns are added to it.
 */
extern List *gs_node_use_scan_tuple(List *exprs, int calls, List **scan_tlist);

#endif							/* GS_GPUNODE_H */
