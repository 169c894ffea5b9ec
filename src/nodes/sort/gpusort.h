/*-------------------------------------------------------------------------
 *
 * gpusort.h
 *	  The plan of the node GpuSort, which takes the place of a Sort.
 *
 * Its child is either any plan, or Gather over GpuSortFeed over a partial plan.  In the second
 * case the feed nodes hand the rows to the device, in the workers and the leader, and return
 * only rows that they could not hand over.
 *
 * A GpuSort is planned as a path
 *
 *	  gpusort_path.c		making paths and offering them
 *	  gpusort_order_path.c	ORDER BY
 *	  gpusort_upper_path.c	GROUP BY, DISTINCT, window functions
 *	  gpusort_union.c		UNION
 *	  gpusort_join_path.c	merge joins
 *	  gpusort_agg_path_15.c	aggregates with DISTINCT or ORDER BY
 *	  gpusort_rivals.c		what PostgreSQL's paths cost beyond its estimate
 *	  gpusort_plan.c		plans of these paths
 *
 * or takes the place of a Sort in a finished plan (../plan_steps.c)
 *
 *	  gpusort_replace.c		GpuSort in the place of Sort
 *	  gpusort_keep.c		rows that the plan above does not need
 *	  gpusort_tlist.c		columns that need not travel
 *	  gpusort_rerun.c		may the input be run again?
 *
 * and is executed
 *
 *	  gpusort_exec.c		the executor's part
 *	  gpusort_parallel.c	parallel mode
 *	  gpusort_explain.c		EXPLAIN's lines
 *	  gpufeed_exec.c		the executor's part of GpuSortFeed, which has no plans but a GpuSort's
 *
 * gpusort_keys.c, whose functions are declared here, reads and writes custom_private, and finds what the keys
 * tell.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_NODES_GPUSORT_H
#define GS_NODES_GPUSORT_H

#include "nodes/plannodes.h"

#include "nodes/common/gpunode.h"
#include "sort/sort.h"

#define GS_SORT_NAME	"GpuSort"
#define GS_FEED_NAME	"GpuSortFeed"

extern const GsNode gs_sort_node;
extern const GsNode gs_feed_node;

/* Inline, because it is called for all nodes of every plan. */
static inline bool
gs_is_sort_or_feed(const Plan *plan)
{
	return gs_node_is(plan, &gs_sort_node) || gs_node_is(plan, &gs_feed_node);
}

/* The GpuSortFeed below a GpuSort; NULL: there is none. */
extern CustomScan *gs_plan_feed(const CustomScan *sort);

/*
 * custom_private is a list of lists, so that plans can be copied and sent to workers.  The enum names its
 * members.  custom_exprs is empty, or has the count and the offset of a Limit above, as NULL constants if
 * they are missing.  Then the bound is computed when execution starts.
 */
typedef enum GsPlanItem
{
	GS_PLAN_COLUMNS,			/* GsColumns of the child's output, to sort by */
	GS_PLAN_SETTINGS,			/* IntList: GsPlanSetting */
	GS_PLAN_Count
} GsPlanItem;

typedef enum GsPlanSetting
{
	GS_PLAN_RERUN,				/* the child may be run a second time */
	GS_PLAN_UNIQUE,				/* GsSortKeep.unique */
	GS_PLAN_COUNTED,			/* GsSortKeep.counted */
	GS_PLAN_BOUND,				/* GsSortKeep.limit; 0: not known, or beyond INT_MAX */
	GS_PLAN_GROUP_COLS,			/* GsSortKeep.group_cols, */
	GS_PLAN_GROUP_FIRST,		/* group_first; -1: PG_UINT32_MAX, */
	GS_PLAN_GROUP_TIES,			/* group_ties, */
	GS_PLAN_GROUP_SEVERAL,		/* group_several */
	GS_PLAN_GROUPED_ROWS,		/* rows expected, if it declines few groups (gpuchoice.h); else 0 */
	GS_PLAN_FEW_GROUPS,			/* it declines fewer groups than this */
	GS_PLAN_SETTING_Count
} GsPlanSetting;

/*
 * Write custom_private for a node in the place of a Sort; read its columns (palloc'd); find the place of a
 * setting.  rerun: the nodes above the child allow that it is run again.
 */
extern List *gs_plan_write(const Sort *sort, bool rerun);
extern GsColumns gs_plan_read(const CustomScan *plan);
extern int *gs_plan_setting(const CustomScan *plan, GsPlanSetting setting);

/*
 * Find the key for a column of a finished GpuSort's output, with this equality and collation.  -1: the column
 * is no key.  The column may also be of a Unique above, which numbers its columns alike.
 */
extern int	gs_plan_find_key(const CustomScan *plan, AttrNumber attno, Oid equality, Oid collation);

/* The same for a column that an aggregate above uses in its DISTINCT or ORDER BY; args: its arguments. */
extern int	gs_plan_find_argument(const CustomScan *plan, SortGroupClause *clause, List *args);

/* The same for several columns; adds their keys to a set.  False: one is no key.  all: found all keys. */
extern bool gs_plan_find_keys(const CustomScan *plan, const GsColumns *columns, Bitmapset **found,
							  bool *all);

/* An Agg and what is below it. */
typedef struct GsAggInput
{
	const Agg  *agg;
	const Unique *unique;		/* NULL: there is none */
	const CustomScan *sort;		/* GpuSort */
	Bitmapset  *grouped;		/* the sort's keys in which rows of a group are equal */
} GsAggInput;

/* False: the Agg has two phases or hashes, or its rows do not come from a GpuSort. */
extern bool gs_agg_read_input(GsAggInput *input, const Agg *agg);

/* Are rows of a group sorted by these SortGroupClauses over an aggregate's args? */
extern bool gs_agg_is_sorted(const GsAggInput *input, List *clauses, List *args);

/*
 * Only the equality of a GpuSort's rows matters, not their order: sort texts by their bytes and, if
 * nulls_first, NULLs first.  The collations must be deterministic.
 */
extern void gs_plan_forget_order(CustomScan *plan, bool nulls_first);

/*
 * Before the feed nodes run, tell the leader's feed node the sort to feed.  NULL: all feed nodes return
 * their rows.
 */
extern void gs_feed_set_sort(PlanState *state, GsSort *sort);

/* Enter parallel mode, so that Gather launches workers.  False: ExecutePlan() has entered it already. */
extern bool gs_gather_enter_parallel_mode(PlanState *gather);
extern void gs_gather_leave_parallel_mode(PlanState *gather);

#endif							/* GS_NODES_GPUSORT_H */
