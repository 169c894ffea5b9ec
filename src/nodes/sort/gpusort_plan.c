/*-------------------------------------------------------------------------
 *
 * gpusort_plan.c
 *	  From GpuSort paths to GpuSort plans.
 *
 * A GpuSort path's child path is a SortPath over the true child.  So it is
 * PostgreSQL that makes a Sort plan of it, and thereby finds the columns to
 * sort by in the child's target list, adding what is missing; the Sort node is
 * then taken apart again.  GpuSort and GpuSortFeed return their child's target list.
 *
 * Tests: regress/plans, regress/explain_verbose
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_path.h"
#include "nodes/sort/gpusort_steps.h"

bool		gs_sort_unfinished = false;

/*
 * A custom node that returns its child's target list as it is.
 *
 * tlist are the first columns of the child's, which may have more, to sort by.
 * gs_sort_finish() relies on that.
 */
static CustomScan *
make_custom_scan(CustomPath *path, List *tlist, Plan *child, List *private,
				 const GsNode *node)
{
	CustomScan *scan = makeNode(CustomScan);
	ListCell   *ours;
	ListCell   *childs;

	if (list_length(tlist) > list_length(child->targetlist))
		elog(ERROR, "%s plan has more columns than its child", node->scan.CustomName);
	forboth(ours, tlist, childs, child->targetlist)
		if (!equal(lfirst_node(TargetEntry, ours)->expr, lfirst_node(TargetEntry, childs)->expr))
			elog(ERROR, "columns of a %s plan are not those of its child", node->scan.CustomName);

	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.lefttree = child;
	scan->flags = path->flags;
	scan->custom_private = private;
	scan->custom_scan_tlist = copyObject(child->targetlist);
	scan->methods = &node->scan;
	return scan;
}

static Plan *
plan_sort_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
			   List *children)
{
	Sort	   *sort = linitial_node(Sort, children);
	CustomScan *scan;
	CustomScan *feed;

	gs_sort_unfinished = true;
	gs_tlist_find_columns(sort);
	scan = make_custom_scan(path, tlist, outerPlan(sort), gs_plan_write(sort, 0), &gs_sort_node);
	feed = gs_plan_feed(scan);
	if (feed)
		feed->custom_private = copyObject(scan->custom_private);
	return &scan->scan.plan;
}

static Plan *
plan_feed_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
			   List *children)
{
	/* custom_private comes from the GpuSort above */
	return &make_custom_scan(path, tlist, linitial(children), NIL, &gs_feed_node)->scan.plan;
}

const CustomPathMethods gs_sort_path_methods = {
	.CustomName = GS_SORT_NAME,
	.PlanCustomPath = plan_sort_path,
};

const CustomPathMethods gs_feed_path_methods = {
	.CustomName = GS_FEED_NAME,
	.PlanCustomPath = plan_feed_path,
};

/*
 * A GpuSort made from a path has its child's unfinished target list, which EXPLAIN cannot print in every
 * case (above set operations), and whose columns were found by looking for equal expressions: but two
 * calls of random() are equal and have two values.  Its columns are the child's first ones.  Also, only the
 * finished plan tells what is above and below, and so whether its child may be run again.
 */
Plan *
gs_sort_finish(GsStepContext *context, Plan *plan)
{
	if (!gs_is_sort_or_feed(plan))
		return plan;
	gs_node_finish_columns((CustomScan *) plan);
	*gs_plan_setting((CustomScan *) plan, GS_PLAN_RERUN) =
		context->rerun && gs_plan_may_rerun(outerPlan(plan));
	return plan;
}
