/*-------------------------------------------------------------------------
 *
 * gpusort_plan.c
 *	  From GpuSort paths to GpuSort plans, and what plans tell the executor.
 *
 * A GpuSort path's child path is a SortPath over the true child.  So it is
 * PostgreSQL that makes a Sort plan of it, and thereby finds the columns to
 * sort by in the child's target list, adding what is missing; the Sort node is
 * then taken apart again.  GpuSort and GpuSortFeed return their child's target list.
 *
 * Columns that only the sort needs are kept out of the rows it carries.
 * For "SELECT id, p FROM t ORDER BY p COLLATE "C"" PostgreSQL's target list is
 * (id, p, p::text), the third column junk: the sort key, a relabelled copy of
 * the second.  Carrying it would write each p twice into every row, make the
 * scan project, and the executor take the junk out of every row at the end.
 * Sorting by the second column under the third one's collation is the same,
 * so while the plan is made the sort's columns are changed to that, and when it
 * is finished the copy is removed from the nodes between the scan and the top.
 *
 * Tests: regress/plans, regress/explain_verbose
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tsmapi.h"
#include "optimizer/planmain.h"
#include "parser/parsetree.h"

#include "nodes/sort/gpufeed.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_path.h"
#include "nodes/sort/gpusort_steps.h"
#include "plan/plan_walk.h"

/*
 * What plans allow
 */

/* What note_flags() knows of the plans above, and what it finds. */
typedef struct PlanFlags
{
	int			flags;			/* GS_PLAN_FLAG_: those that are allowed */
	bool		in_workers;		/* run by parallel workers, or perhaps so */
} PlanFlags;

/*
 * Is a volatile function called again when a FunctionScan runs again?  The query may name
 * functions that its plan does not call.  ExecReScanFunctionScan() keeps the rows of a
 * function whose arguments are the same; but each worker calls it for itself.
 */
static bool
calls_volatile_again(const FunctionScan *scan, bool in_workers)
{
	Node	   *functions = (Node *) scan->functions;

	return (in_workers || gs_plan_expr_may_change(functions)) && gs_expr_is_volatile(functions);
}

/*
 * Remove the flags that a plan does not allow.  One that locks or changes rows must
 * not run twice.  One that picks some of many rows, or a value that depends on
 * the order in which rows come, may give other rows when it runs again.
 */
static void
note_flags(Plan **plan, void *context)
{
	PlanFlags  *found = context;
	bool		in_workers = found->in_workers;

	switch (nodeTag(*plan))
	{
		case T_LockRows:
		case T_ModifyTable:
			found->flags = 0;
			break;
		case T_Limit:
		case T_Agg:
		case T_Group:
		case T_Unique:
		case T_WindowAgg:
		case T_SetOp:
		case T_ForeignScan:
			found->flags &= ~GS_PLAN_FLAG_REPEATABLE;
			break;
		case T_SampleScan:
			if (!GetTsmRoutine(((SampleScan *) *plan)->tablesample->tsmhandler)->repeatable_across_scans)
				found->flags &= ~GS_PLAN_FLAG_REPEATABLE;
			break;
		case T_FunctionScan:
			if (calls_volatile_again((FunctionScan *) *plan, in_workers))
				found->flags = 0;
			break;
		case T_Gather:
		case T_GatherMerge:
			found->in_workers = true;
			break;
		case T_CustomScan:
			if (gs_node_is(*plan, &gs_sort_node) || gs_node_is(*plan, &gs_feed_node))
				break;
			found->flags &= ~GS_PLAN_FLAG_REPEATABLE;
			if (gs_expr_is_volatile((Node *) ((CustomScan *) *plan)->custom_exprs))
				found->flags = 0;
			break;
		default:
			break;
	}
	if (found->flags != 0)
		gs_plan_visit_children(*plan, note_flags, context);
	found->in_workers = in_workers;
}

int
gs_plan_flags(Plan *plan, int flags, bool in_workers)
{
	PlanFlags	found = {flags, in_workers};

	if (flags != 0)
		note_flags(&plan, &found);
	return found.flags;
}

static void
note_init_plans(Plan **plan, void *context)
{
	Bitmapset **init_plans = context;
	ListCell   *lc;

	foreach(lc, (*plan)->initPlan)
		*init_plans = bms_add_member(*init_plans, lfirst_node(SubPlan, lc)->plan_id);
	gs_plan_visit_children(*plan, note_init_plans, context);
}

int
gs_plan_subplan_flags(PlannedStmt *stmt)
{
	int			flags = GS_PLAN_FLAG_RERUN | GS_PLAN_FLAG_REPEATABLE;
	Bitmapset  *init_plans = NULL;
	ListCell   *lc;
	int			plan_id = 0;

	if (stmt->subplans == NIL)
		return flags;
	gs_plan_visit_all(stmt, note_init_plans, &init_plans);

	/* an init plan's result is kept, and so are the rows of a WITH query */
	foreach(lc, stmt->subplans)
	{
		plan_id++;
		if (lfirst(lc) != NULL && !bms_is_member(plan_id, init_plans))
			flags = gs_plan_flags(lfirst(lc), flags, stmt->parallelModeNeeded);
	}
	return flags;
}

/*
 * Plans of paths
 */

void
gs_tlist_find_columns(Sort *sort)
{
	/* the Sort's own refers to this one, once the plan is finished */
	List	   *tlist = outerPlan(sort)->targetlist;

	Assert(list_length(tlist) == list_length(sort->plan.targetlist));
	for (int i = 0; i < sort->numCols; i++)
	{
		TargetEntry *key = get_tle_by_resno(tlist, sort->sortColIdx[i]);
		Node	   *bare;
		ListCell   *lc;

		if (key == NULL || !IsA(key->expr, RelabelType))
			continue;
		bare = gs_plan_strip_relabel((Node *) key->expr);
		foreach(lc, tlist)
		{
			TargetEntry *tle = lfirst_node(TargetEntry, lc);

			if (tle != key && !tle->resjunk && IsA(tle->expr, Var) && equal(tle->expr, bare))
			{
				sort->sortColIdx[i] = tle->resno;
				break;
			}
		}
	}
}

/*
 * A custom node that returns its child's target list as it is.
 *
 * tlist are the first columns of the child's, which may have more, to sort by.
 * gpusort_replace.c relies on that.
 */
static Plan *
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
	return &scan->scan.plan;
}

static Plan *
plan_sort_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
			   List *children)
{
	Sort	   *sort = linitial_node(Sort, children);
	Plan	   *child = outerPlan(sort);
	int			flags = linitial_int(path->custom_private);
	List	   *private;

	gs_tlist_find_columns(sort);
	private = gs_plan_private(sort, gs_plan_flags(child, flags, false));

	/* tell the feed nodes under a Gather what to sort by */
	if (IsA(child, Gather) && gs_node_is(outerPlan(child), &gs_feed_node))
		((CustomScan *) outerPlan(child))->custom_private = copyObject(private);
	return make_custom_scan(path, tlist, child, private, &gs_sort_node);
}

static Plan *
plan_feed_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
			   List *children)
{
	/* custom_private comes from the GpuSort above */
	return make_custom_scan(path, tlist, linitial(children), NIL, &gs_feed_node);
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
 * Columns at the top
 */

/* The nodes that must all lose the column, from the top down; at most five. */
static List *
nodes_to_change(Plan *plan)
{
	List	   *nodes = NIL;

	if (IsA(plan, Limit))
	{
		/* WITH TIES compares the sort's own columns */
		if (((Limit *) plan)->uniqNumCols > 0)
			return NIL;
		nodes = lappend(nodes, plan);
		plan = outerPlan(plan);
	}
	if (!gs_node_is(plan, &gs_sort_node))
		return NIL;
	nodes = lappend(nodes, plan);
	plan = outerPlan(plan);
	if (IsA(plan, Gather) && gs_node_is(outerPlan(plan), &gs_feed_node))
	{
		nodes = lappend(nodes, plan);
		plan = outerPlan(plan);
		nodes = lappend(nodes, plan);
		plan = outerPlan(plan);
	}

	/* the last one computes the column, or else could not do without it */
	if (!is_projection_capable_plan(plan) || IsA(plan, CustomScan) || IsA(plan, ForeignScan) ||
		IsA(plan, IndexOnlyScan))
		return NIL;
	return lappend(nodes, plan);
}

static bool
sorts_by(CustomScan *sort, int resno)
{
	return list_member_int(linitial(list_nth(sort->custom_private, GS_PLAN_COLUMNS)), resno);
}

/* A column whose value is that of a variable can go without anyone noticing. */
static bool
is_plain_copy(TargetEntry *tle)
{
	return IsA(tle->expr, RelabelType) && IsA(gs_plan_strip_relabel((Node *) tle->expr), Var);
}

Plan *
gs_tlist_drop_junk(GsStepContext *context, Plan *top)
{
	List	   *nodes = nodes_to_change(top);
	CustomScan *sort;

	if (nodes == NIL)
		return top;
	sort = (CustomScan *) (IsA(linitial(nodes), Limit) ? lsecond(nodes) : linitial(nodes));
	for (;;)
	{
		TargetEntry *last = llast(top->targetlist);
		ListCell   *lc;

		if (!last->resjunk || last->resno < 2 || sorts_by(sort, last->resno))
			return top;
		foreach(lc, nodes)
			if (list_length(((Plan *) lfirst(lc))->targetlist) != last->resno)
				return top;
		if (!is_plain_copy(llast(((Plan *) llast(nodes))->targetlist)))
			return top;
		foreach(lc, nodes)
		{
			Plan	   *plan = lfirst(lc);

			plan->targetlist = list_truncate(plan->targetlist, last->resno - 1);
			if (IsA(plan, CustomScan))
			{
				CustomScan *scan = (CustomScan *) plan;

				scan->custom_scan_tlist = list_truncate(scan->custom_scan_tlist, last->resno - 1);
			}
		}
	}
}
