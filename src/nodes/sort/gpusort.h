/*-------------------------------------------------------------------------
 *
 * gpusort.h
 *	  The node GpuSort, which stands where a Sort would.
 *
 * Its child is either any plan, or Gather over GpuSortFeed over a partial plan:
 * then the feed nodes hand the rows to the device, in the workers and the
 * leader, and return only those rows that they could not hand over.
 *
 *	  gpusort_path.c	  paths, and those for ORDER BY
 *	  gpusort_upper_path.c	paths for GROUP BY and window functions
 *	  gpusort_rivals.c	  what PostgreSQL's paths cost beyond its estimate
 *	  gpusort_join_path.c paths for merge joins
 *	  gpusort_plan.c	  plans of these paths; what they tell the executor
 *	  gpusort_keep.c	  rows that the plan above does not need
 *	  gpusort_distinct.c  paths for DISTINCT
 *	  gpusort_union.c     paths for UNION
 *	  gpusort_replace.c	  all other sorts: GpuSort in the place of Sort in finished
 *						  plans
 *	  gpusort_agg_path.c  paths for the sorts of aggregates
 *	  gpusort_agg_plan.c  aggregates that need not sort
 *	  gpusort_tlist.c	  columns that need not travel
 *	  gpusort_exec.c	  the executor's part
 *	  gpusort_reader.c	  how nodes above read its rows
 *	  gpusort_explain.c   EXPLAIN's lines
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_NODES_GPUSORT_H
#define GS_NODES_GPUSORT_H

#include "nodes/pathnodes.h"

#include "compat.h"
#include "nodes/common/gpunode.h"
#include "sort/sort.h"

#define GS_SORT_NAME	"GpuSort"

extern const GsNode gs_sort_node;

/*
 * custom_private is a list of lists, so that plans can be copied and sent to
 * workers; the enum names its members.  custom_exprs is empty, or has the number of rows and the
 * offset of a Limit above, NULL constants where it has none: what GS_PLAN_BOUND would be is known
 * when execution starts.
 */
typedef enum GsPlanItem
{
	GS_PLAN_ATTNOS,				/* IntList: columns of the child's output */
	GS_PLAN_OPERATORS,			/* OidList */
	GS_PLAN_COLLATIONS,			/* OidList */
	GS_PLAN_NULLS_FIRST,		/* IntList of bools */
	GS_PLAN_FLAGS,				/* IntList of one: GS_PLAN_FLAG_ below */
	GS_PLAN_BOUND,				/* IntList of one: rows that will be asked for at
								 * most, from the first one on; 0: not known */
	GS_PLAN_GROUP,				/* IntList of three: GsSortKeep.group_cols,
								 * group_first, group_ties */
	GS_PLAN_GROUP_ROWS,			/* IntList of one: it declines few groups (gpuchoice.h), and so
								 * many rows are expected; 0: it does not */
	GS_PLAN_Count
} GsPlanItem;

#define GS_PLAN_FLAG_RERUN	1	/* the child may be run a second time */
#define GS_PLAN_FLAG_REPEATABLE	2	/* and returns the very same rows then */
#define GS_PLAN_FLAG_UNIQUE	4	/* of rows that are equal in all sort columns, one
								 * is enough: the first */

/*
 * gpusort_agg_plan.c
 *
 * The aggregates of a finished Agg above a GpuSort are to sort nothing that is in
 * their order already.  last_node_id: the highest plan_node_id in use, and again
 * afterwards.
 */
extern void gs_agg_use_order(Agg *agg, int *last_node_id);

/* Do two aggregates with DISTINCT drop the same rows, and sort in the same order? */
extern bool gs_agg_equal_distinct(const Aggref *a, const Aggref *b);

/*
 * May an aggregate with DISTINCT be given any one of equal values: does it only
 * count them, or are equal ones the same, byte by byte?
 */
extern bool gs_agg_takes_any_equal(const Aggref *agg);

/*
 * May the user execute the functions that an aggregate's DISTINCT compares with?  Nodes check
 * that, and an Agg does not.
 */
extern bool gs_agg_may_compare(const Aggref *agg);

/*
 * May an aggregate without a sort of its own get its rows in another order?
 * PostgreSQL does that to those that it computes in parts, in parallel.
 */
extern bool gs_agg_ignores_order(const Aggref *agg);

/*
 * Does an Agg get the rows of each group from a GpuSort, in the order of these SortGroupClauses
 * over an aggregate's args?  Sets *column to the first one's, of the Agg's input.
 */
extern bool gs_agg_input_is_sorted(const Agg *agg, List *clauses, List *args,
								   AttrNumber *column);

/* gpusort_plan.c */
/*
 * The flags that a statement's subplans allow, other than init plans.  They run
 * when an expression asks for them, so they may be part of any sort's input.
 */
extern int	gs_plan_subplan_flags(PlannedStmt *stmt);

/*
 * Sort columns as custom_private, and back (palloc'd).  Of the flags, those
 * stay set that the plan below the Sort allows; in_workers: which parallel workers run.
 */
extern List *gs_plan_private(const Sort *sort, int flags, bool in_workers);
extern void gs_plan_read(const CustomScan *plan, GsSortKeys *keys, int *flags);

/*
 * The number of the key that a column of a finished GpuSort's output is, with this equality and
 * collation; -1: it is none.  keys: those of the plan.
 */
extern int	gs_plan_find_key(const CustomScan *plan, const GsSortKeys *keys, AttrNumber attno,
							 Oid equality, Oid collation);

/* The same for n columns, adding their keys' numbers to a set.  False: one of them is no key. */
extern bool gs_plan_find_keys(const CustomScan *plan, const GsSortKeys *keys, int n,
							  const AttrNumber *attnos, const Oid *equalities,
							  const Oid *collations, Bitmapset **found);

/* Does it return columns only, so that nobody notices what is not computed for some rows? */
extern bool gs_plan_returns_columns(const CustomScan *plan);

/* Which rows are needed of a plan's sort, and that these are. */
extern void gs_plan_read_keep(const CustomScan *plan, GsSortKeep *keep);
extern void gs_plan_keep_bound(CustomScan *plan, double bound);
extern void gs_plan_keep_limit(CustomScan *plan, const Limit *limit);
extern void gs_plan_keep_unique(CustomScan *plan);
extern void gs_plan_keep_group(CustomScan *plan, int cols, int first, bool ties);

/* For gpuchoice.h: the sort declines few groups.  The second one: for how many rows; 0: it does not. */
extern void gs_plan_decline_few(CustomScan *plan, double rows);
extern double gs_plan_declines_few(const CustomScan *plan);

/*
 * The order of a GpuSort's rows does not matter, only which of them are equal: sort by what
 * is quickest, with NULLs first.  The collations must be deterministic.
 */
extern void gs_plan_forget_order(CustomScan *plan);

/*
 * gpusort_exec.c: how many different rows a GpuSort has that drops equal ones, and has
 * returned one.  False: they have to be read and compared.
 */
extern bool gs_sort_node_count_distinct(PlanState *node, uint64 *count);

/* The same as gs_sort_page() and gs_sort_take(), of a GpuSort that has returned a row. */
extern bool gs_sort_node_page(const PlanState *node, GsSortPage *page);
extern void gs_sort_node_take(PlanState *node, uint32 n);

/* These of one that was begun with EXEC_FLAG_MARK. */
extern bool gs_sort_node_count_rows(const PlanState *node, uint64 *count);
extern void gs_sort_node_skip(PlanState *node, uint64 n);

/* Has it found few groups in its input, and returned no row? */
extern bool gs_sort_node_declined(const PlanState *node);

/* No row is asked for any more, unless the node is rescanned: give back what its rows take. */
extern void gs_sort_node_release(PlanState *node);

/*
 * gpusort_keep.c: have a GpuSort drop rows that its parent in a finished plan does not
 * need.  True where each row of the GpuSort is one of the parent's then: what bounds those that
 * the parent is asked for bounds the GpuSort's.
 */
extern bool gs_keep_for_parent(const Plan *parent);

/*
 * gpusort_replace.c
 *
 * Has a statement sorts that gs_plan_replace_sorts() might do something about?
 * Cheap: looks at nothing but the plans' nodes.
 */
extern bool gs_plan_has_sorts(const PlannedStmt *stmt);

/*
 * Replace the Sort nodes of all of a statement's plans where gpusort can do
 * what they do, and faster, and complete the GpuSort nodes that were made from
 * paths.  rerun: a plan of the statement may be run a second time.
 */
extern void gs_plan_replace_sorts(PlannedStmt *stmt, bool rerun);

/* gpusort_tlist.c: an expression without what changes its type or collation only. */
extern Node *gs_tlist_strip_relabel(Node *node);

/*
 * Where a column to sort by is another column of the same target list under a
 * binary-compatible type or another collation, sort by that one.  Changes
 * sort->sortColIdx.
 */
extern void gs_tlist_find_columns(Sort *sort);

/*
 * In a finished plan with a GpuSort at its top, remove columns that nobody
 * needs: neither the user nor the sort.
 */
extern void gs_tlist_drop_junk(PlannedStmt *stmt);

/* gpusort_explain.c */
extern void gs_explain_sort_keys(CustomScanState *node, List *ancestors, const GsSortKeys *keys,
								 ExplainState *es);

/* Which rows are needed. */
extern void gs_explain_sort_keep(CustomScanState *node, List *ancestors, const GsSortKeep *keep,
								 ExplainState *es);
extern void gs_explain_sort_report(const GsSortReport *report, ExplainState *es);

#endif							/* GS_NODES_GPUSORT_H */
