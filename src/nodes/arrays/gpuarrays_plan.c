/*-------------------------------------------------------------------------
 *
 * gpuarrays_plan.c
 *	  Putting GpuArraySort into finished plans.
 *
 * A call of gpu_sort_array() may stand in any expression of any node.  Two
 * things are done about it:
 *
 *	  above	the node, call it N, passes the columns that the expression needs on
 *			to a GpuArraySort above it, which sorts the arrays, computes the
 *			expression, and filters rows where the call was in N's filter:
 *
 *				N (f(gpu_sort_array(x)), y)
 *			becomes
 *				GpuArraySort (f(sorted x), y) -> N (x, y)
 *
 *	  below	where it is N that must compute the expression, because it is an
 *			aggregate or returns sets, GpuArraySort goes between N and its
 *			child, and N refers to its columns:
 *
 *				N (sum(f(gpu_sort_array(x)))) -> child
 *			becomes
 *				N (sum(f(sorted x))) -> GpuArraySort (.., sorted x) -> child
 *
 * What makes it the same query
 *	  - An expression may evaluate a call for some rows only.  Such a call is taken out only if that does no
 *		harm (plan/array_calls.c).
 *	  - Filters keep their order, because security barriers rely on it.  The first filter with a call goes up,
 *		and so do all filters behind it.  The target list then goes up as well: it is computed only for rows
 *		that passed the filters.
 *	  - GpuArraySort reads some rows of its child ahead, and evaluates the calls' arguments then.  This is
 *		allowed where all rows will be read, or where nobody can tell the difference (may_run_ahead()).  At
 *		the top of a plan the executor knows whether all rows will be read (gpunode.h).  Other expressions
 *		are evaluated when their row is returned.
 *	  - GpuArraySort cannot read backward, mark a row, or name the row's place in a table.  So it is not put
 *		below merge joins, or where cursors need these.
 *
 * Expressions have their final form here, see plan_steps.c.
 *
 * Tests: regress/arrays_plans, regress/arrays_ahead
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "array/array_sort.h"
#include "guc.h"
#include "nodes/arrays/gpuarrays.h"
#include "nodes/sort/gpusort.h"
#include "nodes/window/gpuwindow.h"
#include "plan/array_calls.h"
#include "plan/plan_walk.h"

/* When will a node be asked for all its rows? */
typedef enum Reading
{
	READ_PARTLY,				/* never, as far as is known */
	READ_AS_QUERY,				/* where the executor runs the query to its end */
	READ_TO_END					/* always */
} Reading;

/* Where a node stands. */
typedef struct Place
{
	Reading		reading;
	bool		marked;			/* it will be marked and restored */
	bool		at_cursor;		/* a cursor may want to know where it stands */
	bool		parallel;		/* below a Gather */
} Place;

typedef struct ArrayPlanContext
{
	PlannedStmt *stmt;
	bool		for_cursor;
	bool		is_volatile;
	bool		subplans_in_order;	/* what they do must not be done earlier */
	int			last_node_id;

	/* of the node that is walked */
	Place		place;
	Plan	   *parent;			/* NULL: it is the topmost one */
} ArrayPlanContext;

/* The number of elements of an array without statistics. */
#define GUESSED_ELEMENTS	10.0

/* For may_run_ahead(). */
typedef struct Ahead
{
	bool		is_volatile;
	bool		possible;
} Ahead;

static void look_below(Plan **plan, void *ahead);

/*
 * Is it worth while?
 */

/* How many elements has the array that a call sorts? */
static double
estimate_elements(const ArrayPlanContext *context, const Plan *plan, const FuncExpr *call)
{
	const Var  *var = (const Var *) gs_array_call_array(call);
	uint32		elem_bytes = gs_elem_bytes(gs_array_elem(gs_array_call_read(call).element_type));
	int32		width = 0;

	if (IsA(var, Var) && !IS_SPECIAL_VARNO(var->varno) && var->varattno > 0)
	{
		const RangeTblEntry *rte = rt_fetch(var->varno, context->stmt->rtable);

		/* of arrays that are stored out of line only the pointer is known */
		if (rte->rtekind == RTE_RELATION)
			width = get_attavgwidth(rte->relid, var->varattno);
	}
	else
		width = plan->plan_width;
	return Max(GUESSED_ELEMENTS, (double) width / elem_bytes);
}

static bool
is_worth_while(const ArrayPlanContext *context, const Plan *plan, const List *calls)
{
	double		elements = 0;
	ListCell   *lc;

	if (gs_guc_force)
		return true;
	foreach(lc, calls)
		elements += plan->plan_rows * estimate_elements(context, plan, lfirst_node(FuncExpr, lc));
	return elements >= gs_guc_min_rows;
}

/*
 * Are a node's target list and filter all that may be volatile in it?  PostgreSQL takes no volatile
 * expression as an index's condition, nor to hash or to merge by.  Nodes that are not listed may have others.
 */
static bool
is_stable_beside(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Agg:
		case T_Append:
		case T_BitmapHeapScan:
		case T_BitmapIndexScan:
		case T_Gather:
		case T_GatherMerge:
		case T_Hash:
		case T_IndexOnlyScan:
		case T_IndexScan:
		case T_Material:
		case T_SeqScan:
		case T_Sort:
		case T_SubqueryScan:
			return true;
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
			return !gs_expr_is_volatile((Node *) ((const Join *) plan)->joinqual);
		case T_Result:
			return !gs_expr_is_volatile(((const Result *) plan)->resconstantqual);
		case T_CustomScan:
			return !gs_expr_is_volatile((Node *) ((const CustomScan *) plan)->custom_scan_tlist) &&
				!gs_expr_is_volatile((Node *) ((const CustomScan *) plan)->custom_exprs);
		default:
			return false;
	}
}

/*
 * May a plan's rows be read before they are asked for, where all of them will be?  An error in one of
 * them comes anyway.  But row locks skip rows that the same command has changed.  And of volatile functions
 * one above may tell when one below ran: currval() and nextval().  exprs: in the place of the
 * uppermost node's target list and filter.  is_volatile: the statement has volatile functions.
 *
 * Damaged storage and short memory do not count, because PostgreSQL reads pages ahead as well.
 */
static bool
may_run_ahead(Plan *plan, Node *exprs, bool is_volatile)
{
	Ahead		below = {is_volatile, true};

	if (IsA(plan, LockRows) || IsA(plan, ModifyTable) ||
		(is_volatile && (gs_expr_is_volatile(exprs) || !is_stable_beside(plan))))
		return false;
	gs_plan_visit_children(plan, look_below, &below);
	return below.possible;
}

static void
look_below(Plan **plan, void *context)
{
	Ahead	   *ahead = context;

	ahead->possible = ahead->possible &&
		may_run_ahead(*plan, (Node *) list_make2((*plan)->targetlist, (*plan)->qual), ahead->is_volatile);
}

/* May rows of a plan be read ahead, with these expressions in the place of its uppermost node's? */
static bool
may_read_ahead(const ArrayPlanContext *context, const Place *place, Plan *plan, Node *exprs)
{
	return place->reading != READ_PARTLY && !context->subplans_in_order &&
		may_run_ahead(plan, exprs, context->is_volatile);
}

/*
 * Moving expressions
 */

/* Is the node computed by the plan node below, whatever is above it? */
static bool
is_column(const Node *node)
{
	return IsA(node, Var) || IsA(node, Aggref) || IsA(node, GroupingFunc) || IsA(node, WindowFunc);
}

typedef struct ColumnsContext
{
	const List *calls;			/* not looked into */
	List	   *tlist;			/* of what was found */
} ColumnsContext;

/* Note the columns that an expression needs beside its calls. */
static bool
note_columns(Node *node, ColumnsContext *context)
{
	if (node == NULL || list_member(context->calls, node))
		return false;
	if (is_column(node))
	{
		context->tlist = add_to_flat_tlist(context->tlist, list_make1(node));
		return false;
	}
	return expression_tree_walker(node, note_columns, context);
}

/* A target list, followed by calls. */
static List *
add_calls(List *tlist, const List *calls)
{
	ListCell   *lc;

	foreach(lc, calls)
		tlist = gs_node_add_column(tlist, lfirst(lc));
	return tlist;
}

/*
 * Making the node
 */

static Plan *
make_array_sort(ArrayPlanContext *context, const Place *place, Plan *child, List *tlist,
				List *scan_tlist, int n_calls)
{
	CustomScan *scan = gs_node_make(&gs_arrays_node, child, tlist, scan_tlist, child,
									list_make2_int(n_calls, place->reading == READ_AS_QUERY));

	scan->scan.plan.parallel_aware = place->parallel;	/* to hear of the workers' arrays */
	scan->scan.plan.plan_node_id = ++context->last_node_id;
	return &scan->scan.plan;
}

/* What GpuArraySort computes as it reads a row. */
static List *
call_arguments(const List *calls)
{
	List	   *args = NIL;
	ListCell   *lc;

	foreach(lc, calls)
		args = lappend(args, gs_array_call_array(lfirst_node(FuncExpr, lc)));
	return args;
}

/*
 * Above
 */

/*
 * Find the calls of a node's filter and target list; *above is set to the
 * clauses of the filter that go up.
 */
static List *
find_calls(const Plan *plan, List **above)
{
	List	   *calls = NIL;
	ListCell   *lc;

	*above = NIL;
	foreach(lc, plan->qual)
	{
		bool		found = gs_array_calls_find(lfirst(lc), *above != NIL, false, &calls);

		if (found || *above != NIL)
			*above = lappend(*above, lfirst(lc));
	}
	foreach(lc, plan->targetlist)
		(void) gs_array_calls_find((Node *) lfirst_node(TargetEntry, lc)->expr, *above != NIL, false,
								   &calls);
	return calls;
}

static Plan *
lift_above(ArrayPlanContext *context, Plan *plan, const Place *place)
{
	List	   *clauses;
	List	   *calls = find_calls(plan, &clauses);
	List	   *child_clauses;
	ColumnsContext columns = {calls, NIL};
	List	   *kept;
	List	   *above;
	Plan	   *scan;

	if (calls == NIL || !is_worth_while(context, plan, calls))
		return plan;

	child_clauses = list_truncate(list_copy(plan->qual),
								  list_length(plan->qual) - list_length(clauses));

	/* what the node returns from now on: first what GpuArraySort passes on */
	(void) note_columns((Node *) list_make2(plan->targetlist, clauses), &columns);
	kept = list_copy(columns.tlist);
	/* then what only the calls need */
	columns.calls = NIL;
	(void) note_columns((Node *) calls, &columns);
	if (!may_read_ahead(context, place, plan,
						(Node *) list_make3(columns.tlist, child_clauses, call_arguments(calls))))
		return plan;

	above = add_calls(list_copy(kept), calls);
	scan = make_array_sort(context, place, plan, gs_node_use_columns(plan->targetlist, above, INDEX_VAR),
						   add_calls(gs_node_tlist(kept, OUTER_VAR),
									 gs_node_use_columns(calls, columns.tlist, OUTER_VAR)),
						   list_length(calls));
	scan->qual = gs_node_use_columns(clauses, above, INDEX_VAR);
	plan->qual = child_clauses;
	plan->targetlist = columns.tlist;
	scan->initPlan = plan->initPlan;
	plan->initPlan = NIL;
	return scan;
}

/*
 * Below
 */

static void
note_attnos(Bitmapset **used, const AttrNumber *attnos, int n)
{
	for (int i = 0; i < n; i++)
		*used = bms_add_member(*used, attnos[i] - FirstLowInvalidHeapAttributeNumber);
}

/* The columns of its child that a node uses, as pull_varattnos() has them. */
static Bitmapset *
used_columns(Plan *plan)
{
	Bitmapset  *used = NULL;

	pull_varattnos((Node *) plan->targetlist, OUTER_VAR, &used);
	pull_varattnos((Node *) plan->qual, OUTER_VAR, &used);
	if (IsA(plan, Agg))
		note_attnos(&used, ((Agg *) plan)->grpColIdx, ((Agg *) plan)->numCols);
	else if (IsA(plan, WindowAgg))
	{
		WindowAgg  *window = (WindowAgg *) plan;

		note_attnos(&used, window->partColIdx, window->partNumCols);
		note_attnos(&used, window->ordColIdx, window->ordNumCols);
		pull_varattnos((Node *) window->runCondition, OUTER_VAR, &used);
	}
	return used;
}

/* Find the calls that a node must get from below. */
static List *
find_calls_below(Plan *plan)
{
	List	   *calls = NIL;
	bool		filtered = plan->qual != NIL;
	ListCell   *lc;

	switch (nodeTag(plan))
	{
		case T_Agg:
			/* of several grouping sets, each has its own pass over the rows */
			if (list_length(((Agg *) plan)->groupingSets) > 1 || ((Agg *) plan)->chain != NIL)
				return NIL;
			(void) gs_array_calls_find((Node *) plan->qual, false, true, &calls);
			(void) gs_array_calls_find((Node *) plan->targetlist, false, true, &calls);
			break;
		case T_WindowAgg:
			(void) gs_array_calls_find((Node *) plan->targetlist, false, true, &calls);
			break;
		case T_Result:
			foreach(lc, plan->qual)
				(void) gs_array_calls_find(lfirst(lc), lc != list_head(plan->qual), false, &calls);
			(void) gs_array_calls_find((Node *) plan->targetlist, filtered, false, &calls);
			break;
		case T_ProjectSet:
			foreach(lc, plan->targetlist)
			{
				Node	   *expr = (Node *) lfirst_node(TargetEntry, lc)->expr;

				/* what is no set is computed once for each member of one */
				(void) gs_array_calls_find(expr, !expression_returns_set(expr), false, &calls);
			}
			break;
		default:
			break;
	}
	return calls;
}

static void
lift_below(ArrayPlanContext *context, Plan *plan, const Place *place)
{
	Plan	   *child = outerPlan(plan);
	List	   *calls = find_calls_below(plan);
	List	   *columns;
	Bitmapset  *used;
	List	   *tlist = NIL;
	List	   *scan_tlist = NIL;
	ListCell   *lc;

	if (calls == NIL || !is_worth_while(context, child, calls))
		return;
	if (!may_read_ahead(context, place, child,
						(Node *) list_make3(child->targetlist, child->qual, call_arguments(calls))))
		return;

	/* the node finds the sorted arrays behind its child's other columns */
	columns = list_copy_tail(add_calls(gs_node_tlist(child->targetlist, OUTER_VAR), calls),
							 list_length(child->targetlist));
	plan->targetlist = gs_node_use_columns(plan->targetlist, columns, OUTER_VAR);
	plan->qual = gs_node_use_columns(plan->qual, columns, OUTER_VAR);

	/* those that it does not use need not go through GpuArraySort */
	used = used_columns(plan);
	foreach(lc, child->targetlist)
	{
		TargetEntry *tle = flatCopyTargetEntry(lfirst_node(TargetEntry, lc));
		Node	   *expr = (Node *) tle->expr;

		if (bms_is_member(tle->resno - FirstLowInvalidHeapAttributeNumber, used))
		{
			scan_tlist = gs_node_add_column(scan_tlist, (Expr *) makeVarFromTargetEntry(OUTER_VAR, tle));
			tle->expr = (Expr *) makeVarFromTargetEntry(INDEX_VAR, llast(scan_tlist));
		}
		else
			tle->expr = (Expr *) makeNullConst(exprType(expr), exprTypmod(expr), exprCollation(expr));
		tlist = lappend(tlist, tle);
	}

	/* the calls' arguments are in terms of the child's columns already */
	foreach(lc, calls)
	{
		scan_tlist = gs_node_add_column(scan_tlist, lfirst(lc));
		tlist = gs_node_add_column(tlist, (Expr *) makeVarFromTargetEntry(INDEX_VAR, llast(scan_tlist)));
	}
	outerPlan(plan) = make_array_sort(context, place, child, tlist, scan_tlist, list_length(calls));
	outerPlan(plan)->extParam = bms_add_members(outerPlan(plan)->extParam, plan->extParam);
	outerPlan(plan)->allParam = bms_add_members(outerPlan(plan)->allParam, plan->allParam);
}

/*
 * The walk
 */

/* Does a node read its outer child to the end before it returns a row? */
static bool
reads_all(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_ModifyTable:
			/* one in WITH runs to its end, whoever reads what it returns */
			return ((const ModifyTable *) plan)->returningLists == NIL ||
				!((const ModifyTable *) plan)->canSetTag;
		case T_Hash:
		case T_Sort:
			return true;
		case T_Agg:
			return ((const Agg *) plan)->aggstrategy == AGG_PLAIN ||
				((const Agg *) plan)->aggstrategy == AGG_HASHED;
		case T_CustomScan:
			return gs_node_is(plan, &gs_sort_node);
		default:
			return false;
	}
}

/* Does a node that is read to the end read its children so? */
static bool
reads_as_read(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Agg:
		case T_Append:
		case T_Gather:
		case T_GatherMerge:
		case T_Group:
		case T_LockRows:
		case T_Material:
		case T_MergeAppend:
		case T_ModifyTable:
		case T_ProjectSet:
		case T_Result:
		case T_SubqueryScan:
		case T_Unique:
			return true;
		case T_Limit:
			return ((const Limit *) plan)->limitCount == NULL;
		case T_WindowAgg:
			return ((const WindowAgg *) plan)->runCondition == NIL;
		case T_CustomScan:
			return gs_node_is(plan, &gs_feed_node) ||
				(gs_node_is(plan, &gs_window_node) &&
				 gs_window_run_condition((const CustomScan *) plan) == NIL);
		default:
			return false;
	}
}

/* When is an outer child of the node, which is asked so itself, asked for all its rows? */
static Reading
reading_below(const Plan *plan, Reading reading)
{
	if (reads_all(plan))
		return READ_TO_END;
	return reads_as_read(plan) ? reading : READ_PARTLY;
}

/* Does a nested loop, read to its end, read its inner child to the end each time? */
static bool
reads_all_matches(const NestLoop *loop)
{
	return !loop->join.inner_unique &&
		(loop->join.jointype == JOIN_INNER || loop->join.jointype == JOIN_LEFT);
}

/* Does a node stand where its child stands? */
static bool
stands_with_child(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Append:
		case T_Limit:
		case T_LockRows:
		case T_MergeAppend:
		case T_Result:
		case T_SubqueryScan:
			return true;
		default:
			return false;
	}
}

/* Where a child of a node at this place stands. */
static Place
place_below(Plan *plan, Place place, Plan **child)
{
	bool		stands = stands_with_child(plan);

	if (!IsA(plan, NestLoop) || (child != &outerPlan(plan) && !reads_all_matches((NestLoop *) plan)))
		place.reading = reading_below(plan, place.reading);
	place.at_cursor &= stands;
	place.marked = (place.marked && stands) || (IsA(plan, MergeJoin) && child == &innerPlan(plan));
	place.parallel |= IsA(plan, Gather) || IsA(plan, GatherMerge);
	return place;
}

/* Put GpuArraySort around a node where it is of use. */
static Plan *
lift(ArrayPlanContext *context, Plan *plan, Place place)
{
	Place		child_place = place;

	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_SubqueryScan:
		case T_FunctionScan:
		case T_ValuesScan:
		case T_TableFuncScan:
		case T_CteScan:
		case T_NamedTuplestoreScan:
		case T_WorkTableScan:
			if (context->for_cursor && place.at_cursor)
				return plan;
			break;
		case T_Agg:
		case T_WindowAgg:
		case T_ProjectSet:
		case T_Result:
			if (outerPlan(plan) == NULL || (context->for_cursor && place.at_cursor && IsA(plan, Result)))
				return plan;
			child_place.reading = reading_below(plan, place.reading);
			lift_below(context, plan, &child_place);

			/* what these two compute, they compute from their child's columns */
			if (IsA(plan, ProjectSet) || IsA(plan, Result))
				return plan;
			/* its filters are about the columns that it returns */
			if (IsA(plan, WindowAgg) &&
				(plan->qual != NIL || ((WindowAgg *) plan)->runCondition != NIL))
				return plan;
			break;
		case T_Group:
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
		case T_Gather:
		case T_GatherMerge:
			break;
		default:
			return plan;
	}
	return lift_above(context, plan, &place);
}

static void
walk(Plan **plan, void *data)
{
	ArrayPlanContext *context = data;
	const Place above = context->place;
	Plan	   *parent = context->parent;

	if (parent)
		context->place = place_below(parent, above, plan);
	context->parent = *plan;
	gs_plan_visit_children(*plan, walk, context);
	context->parent = parent;
	if (!context->place.marked)
		*plan = lift(context, *plan, context->place);
	context->place = above;
}

/*
 * For the plan cache the planner lists all functions that are called in a plan
 * and are not built in.
 */
bool
gs_array_plan_may_have_calls(const PlannedStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, stmt->invalItems)
		if (lfirst_node(PlanInvalItem, lc)->cacheId == PROCOID)
			return true;
	return false;
}

/*
 * Must what the subplans do be done at its time?  They run when an expression
 * or a scan of a WITH query asks for it, wherever that is.
 */
static bool
subplans_are_in_order(const PlannedStmt *stmt)
{
	Ahead		ahead = {true, true};
	ListCell   *lc;

	foreach(lc, stmt->subplans)
		if (lfirst(lc) != NULL)
			look_below((Plan **) &lfirst(lc), &ahead);
	return !ahead.possible;
}

void
gs_array_plan(PlannedStmt *stmt, int cursor_options, bool is_volatile)
{
	ArrayPlanContext context = {.stmt = stmt};
	ListCell   *lc;

	context.for_cursor = (cursor_options & (CURSOR_OPT_FAST_PLAN | CURSOR_OPT_SCROLL)) != 0;
	context.is_volatile = is_volatile;
	context.subplans_in_order = is_volatile && subplans_are_in_order(stmt);
	context.last_node_id = gs_plan_last_node_id(stmt);
	context.place = (Place){.reading = READ_AS_QUERY, .at_cursor = true};
	walk(&stmt->planTree, &context);
	context.place = (Place){.reading = READ_PARTLY};
	foreach(lc, stmt->subplans)
		if (lfirst(lc) != NULL)
			walk((Plan **) &lfirst(lc), &context);
}
