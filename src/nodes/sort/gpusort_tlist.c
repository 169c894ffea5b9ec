/*-------------------------------------------------------------------------
 *
 * gpusort_tlist.c
 *	  Columns that only a sort needs are kept out of the rows it carries.
 *
 * For "SELECT id, p FROM t ORDER BY p COLLATE "C"" PostgreSQL's target list is
 * (id, p, p::text).  The third column is junk: the sort key, a relabelled copy of
 * the second column.  With it each row has p twice, the scan must project, and the
 * executor must take the junk out of every row at the end.  Sorting by the second
 * column under the third one's collation gives the same order.  So the sort's
 * columns are changed to that while the plan is made.  In the finished plan the
 * copy is removed from the nodes between the scan and the top.
 *
 * Tests: regress/plans, regress/explain_verbose
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/planmain.h"
#include "parser/parsetree.h"

#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_steps.h"
#include "plan/plan_walk.h"

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

/* The nodes that must all lose the column, from the top down; at most five. */
static List *
nodes_to_change(Plan *plan)
{
	List	   *nodes = NIL;
	CustomScan *feed;

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
	feed = gs_plan_feed((CustomScan *) plan);
	if (feed)
		nodes = lappend(lappend(nodes, outerPlan(plan)), feed);
	plan = outerPlan(feed ? &feed->scan.plan : plan);

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
