/*-------------------------------------------------------------------------
 *
 * gpusort_replace.c
 *	  Putting GpuSort in the place of Sort nodes in finished plans.
 *
 * PostgreSQL decides on many sorts only while it makes a plan of a path: those
 * of merge joins, window functions, DISTINCT, grouping, set operations and
 * ordered appends are never offered to an extension.  So they are replaced in the finished plan:
 *
 *		Sort -> child						GpuSort -> child
 *		Gather Merge -> Sort -> partial		GpuSort -> Gather -> GpuSortFeed -> partial
 *		Sort -> Gather -> partial			the same
 *
 * The planner has assumed of a Sort that it can be rescanned, read backward,
 * and marked and restored: GpuSort can, too.  Sorts that are left alone:
 *
 *	  - a Sort in the chain of an Agg, because the executor makes no nodes of that chain
 *	  - a Sort that PostgreSQL does faster
 *
 * A GpuSort's custom_scan_tlist takes over the Sort's target list, and its own refers to that one by
 * INDEX_VAR.
 *
 * Tests: regress/plan_sorts, regress/plans
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "rewrite/rewriteManip.h"

#include "client/client.h"
#include "guc.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_steps.h"
#include "plan/plan_walk.h"
#include "plan/sort_cost.h"
#include "plan/sort_refuse.h"

/* These two return their scan tuples, of tlist's columns, as they are. */
static CustomScan *
make_sort(const Plan *like, List *tlist, Plan *child, List *private)
{
	CustomScan *scan = gs_node_make(&gs_sort_node, like, gs_node_tlist(tlist, INDEX_VAR), tlist, child,
									private);

	scan->scan.plan.initPlan = like->initPlan;
	scan->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN | CUSTOMPATH_SUPPORT_MARK_RESTORE;
	return scan;
}

static CustomScan *
make_feed(const Plan *like, List *tlist, Plan *child, List *private)
{
	CustomScan *scan = gs_node_make(&gs_feed_node, like, gs_node_tlist(tlist, INDEX_VAR), tlist, child,
									private);

	scan->scan.plan.parallel_aware = true;
	scan->scan.plan.parallel_safe = true;
	return scan;
}

/* Can gpusort do this sort?  Says so if not. */
static bool
is_possible(const Sort *sort)
{
	GsRefusal	refusal;
	const GsKeyDesc *desc = gs_sort_describe(sort, sort->numCols, &refusal);

	if (desc == NULL)
	{
		gs_refuse_sort(sort, refusal);
		return false;
	}
	/* the paths that gpusort offers for these have been compared by cost */
	if (desc->ended && !gs_guc_force)
	{
		gs_refuse_by_cost(sort, sort->plan.plan_rows, "keys would not hold all of its columns");
		return false;
	}
	if (!gs_client_service_ready())
	{
		gs_refuse_sort(sort, GS_REFUSE_SERVICE);
		return false;
	}
	return true;
}

/* Is gpusort expected to be faster?  Says so if not.  workers: each of them sorts a part of the rows. */
static bool
is_worth_while(const GsStepContext *context, const Sort *node, int workers, double bound)
{
	double		processes = gs_processes(workers);
	GsSortInput rows = gs_rows_of_plan(context->stmt, node);
	GsTime		ours = {0};
	GsTime		theirs = {0};
	const char *reason;

	if (gs_guc_force)
		return true;
	gs_time_add_sort(&theirs, &rows, bound);
	theirs.cpu *= processes;
	reason = gs_sort_is_bounded(&rows, bound) ? "a top-N sort takes less time" :
		"PostgreSQL's sort takes less time";
	ours.last = gs_time_feed(&rows);
	ours.cpu = ours.last * processes;
	rows.rows *= processes;
	ours = gs_time_device(ours, &rows, bound > 0 ? Min(bound, rows.rows) : rows.rows, 0);
	if (rows.rows < gs_guc_min_rows)
		reason = "it has fewer rows than gpusort.min_rows";
	else if (gs_time_is_less(&ours, &theirs, 1.0))
		return true;
	gs_refuse_by_cost(node, rows.rows, reason);
	return false;
}

/* Does a Gather or Gather Merge return its child's rows just as they are? */
static bool
passes_rows_on(const Plan *gather)
{
	ListCell   *lc;

	if (gather->qual != NIL ||
		list_length(gather->targetlist) != list_length(outerPlan(gather)->targetlist))
		return false;
	foreach(lc, gather->targetlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);

		if (!IsA(tle->expr, Var) || ((Var *) tle->expr)->varattno != tle->resno)
			return false;
	}
	return true;
}

Plan *
gs_sort_replace(GsStepContext *context, Plan *plan)
{
	Sort	   *sort = (Sort *) plan;
	Plan	   *child = outerPlan(sort);

	/* below a Gather Merge it is replaced with that one, or not at all */
	if ((context->parent && IsA(context->parent, GatherMerge)) ||
		!is_worth_while(context, sort, 0, context->bound.expected) || !is_possible(sort))
		return plan;
	gs_tlist_find_columns(sort);
	if (IsA(child, Gather) && !((Gather *) child)->single_copy && passes_rows_on(child))
	{
		/* the workers are there already: let them feed */
		Plan	   *partial = outerPlan(child);
		CustomScan *feed = make_feed(partial, gs_node_tlist(partial->targetlist, OUTER_VAR), partial,
									 gs_plan_write(sort, context->rerun));

		feed->scan.plan.plan_node_id = ++context->last_node_id;
		outerPlan(child) = &feed->scan.plan;
	}
	return &make_sort(plan, plan->targetlist, child, gs_plan_write(sort, context->rerun))->scan.plan;
}

Plan *
gs_sort_replace_merge(GsStepContext *context, Plan *plan)
{
	GatherMerge *merge = (GatherMerge *) plan;
	Sort	   *sort = (Sort *) outerPlan(plan);
	List	   *private;
	CustomScan *feed;
	Gather	   *gather;
	CustomScan *scan;

	if (!IsA(sort, Sort) || plan->qual != NIL || contain_subplans((Node *) plan->targetlist) ||
		!is_worth_while(context, sort, merge->num_workers, context->bound.expected) ||
		!is_possible(sort))
		return plan;
	gs_tlist_find_columns(sort);
	private = gs_plan_write(sort, context->rerun);

	feed = make_feed(&sort->plan, sort->plan.targetlist, outerPlan(sort), copyObject(private));
	feed->scan.plan.initPlan = sort->plan.initPlan;

	gather = makeNode(Gather);
	gather->plan = merge->plan;
	gather->plan.type = T_Gather;
	gather->plan.targetlist = gs_node_tlist(sort->plan.targetlist, OUTER_VAR);
	gather->plan.plan_rows = 0;
	gather->plan.initPlan = NIL;
	gather->plan.lefttree = &feed->scan.plan;
	gather->plan.extParam = bms_copy(merge->plan.extParam);
	gather->plan.allParam = bms_copy(merge->plan.allParam);
	gather->num_workers = merge->num_workers;
	gather->rescan_param = merge->rescan_param;
	gather->initParam = merge->initParam;

	/*
	 * What the merge computed of its child's columns, GpuSort does after
	 * sorting.  Where it computed nothing its target list matters all the same:
	 * at the top of a plan it has the names, and says which columns are junk.
	 */
	scan = make_sort(&merge->plan, gs_node_tlist(sort->plan.targetlist, OUTER_VAR), &gather->plan, private);
	scan->scan.plan.targetlist = copyObject(plan->targetlist);
	ChangeVarNodes((Node *) scan->scan.plan.targetlist, OUTER_VAR, INDEX_VAR, 0);
	scan->scan.plan.plan_node_id = ++context->last_node_id;
	return &scan->scan.plan;
}

/*
 * Is this a node that the steps look at more closely?  Each process may sort a part of the rows only.  A node
 * above a Sort, such as a Limit, can cost less than the Sort, so each Sort is looked at.
 */
static void
note_sort(Plan **plan, void *found)
{
	const Plan *node = *plan;

	if (IsA(node, Sort) &&
		(gs_guc_force || node->plan_rows * (max_parallel_workers_per_gather + 1) >= gs_guc_min_rows))
		*(bool *) found = true;
	gs_plan_visit_children(*plan, note_sort, found);
}

bool
gs_plan_has_sorts(PlannedStmt *stmt)
{
	bool		found = false;

	if (gs_sort_unfinished)
		return true;
	if (!enable_sort && !gs_guc_force)
		return false;
	if (gs_guc_log_refusals)	/* small sorts are reported, too */
		return true;
	gs_plan_visit_all(stmt, note_sort, &found);
	return found;
}
