/*-------------------------------------------------------------------------
 *
 * gpupercentile_exec.c
 *	  The executor node GpuPercentile: percentile_disc() and percentile_cont() over rows
 *	  that come sorted.
 *
 * A percentile is the row at a place that depends on the number of rows.  So each group is read
 * twice, by mark and restore: first to count its values (the rows that are not NULL), then
 * only the rows at the wanted places.  If the Agg above needs all rows, the group is read once more.
 *
 * If all rows are one group, GpuSort knows their number, and they are not counted.
 *
 * Rows have places in their group, from 0.  NULLs stand at one end, so values are neighbours.
 *
 *		first	the row at place 0				a copy; the mark is behind it
 *		at		the place of the row read last
 *		next	the first row of the next group	a copy, found by counting; its place is n_rows
 *
 * The formulas are those of orderedsetaggs.c.
 *
 * Tests: regress/percentiles
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type_d.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "lib/qunique.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "compat.h"
#include "nodes/percentile/gpupercentile.h"
#include "nodes/read/row_match.h"
#include "nodes/sort/gpusort_exec.h"
#include "plan/plan_walk.h"

/* A value of a group's row, or between two rows. */
typedef struct Point
{
	bool		isnull;
	int64		lower;			/* numbers of values, from 0 */
	int64		upper;
	double		proportion;		/* of the way from lower to upper */
} Point;

/* One of the functions, and its result for the current group. */
typedef struct Function
{
	int			column;			/* of the scan tuple, from 0 */
	Oid			function;
	ExprState  *argument;
	bool		is_array;		/* argument and result are arrays */
	bool		is_continuous;
	int			n_points;
	Point	   *points;
	ArrayType  *array;			/* the argument of the current group */
	Datum		value;
	bool		isnull;
} Function;

typedef struct GpuPercentileState
{
	CustomScanState css;
	GsScanColumns columns;
	int			n_functions;
	Function   *functions;
	bool		plain;			/* without GROUP BY */
	bool		first_only;
	bool		rewinds;		/* the same rows may be wanted again */

	/* the column that the functions are of */
	AttrNumber	attno;
	Oid			type;
	int16		type_len;
	bool		type_byval;
	char		type_align;

	GsReader	reader;
	GsRowMatcher *matcher;		/* of the rows that are counted */
	TupleTableSlot *first;
	TupleTableSlot *next;		/* empty: there is no next group */
	MemoryContext group_context;	/* of values */

	/* of the current group */
	int64		n_rows;			/* 0: before the first group */
	int64		at;
	int64		n_returned;
	int64		n_values;
	int64		first_value;	/* its place */
	int			n_wanted;
	int64	   *wanted;			/* values that functions want, from 0; ascending, each once */
	Datum	   *datums;
	bool		done;
} GpuPercentileState;

/* All functions are of one column; call is one of them. */
static void
init_column(GpuPercentileState *state, const Aggref *call)
{
	Node	   *expr = get_sortgroupclause_expr(linitial(call->aggorder), call->args);

	state->attno = castNode(Var, gs_plan_strip_relabel(expr))->varattno;
	state->type = exprType(expr);
	get_typlenbyvalalign(state->type, &state->type_len, &state->type_byval, &state->type_align);
}

static void
init_function(GpuPercentileState *state, const List *scan_tlist, int column)
{
	const Aggref *call = castNode(Aggref, list_nth_node(TargetEntry, scan_tlist, column)->expr);
	Function   *function = &state->functions[state->n_functions++];

	function->column = column;
	function->function = call->aggfnoid;
	/* as Agg would */
	gs_compat_check_execute(function->function, GetUserId(), OBJECT_AGGREGATE);
	function->argument = ExecInitExpr(linitial(call->aggdirectargs), &state->css.ss.ps);
	function->is_array = exprType(linitial(call->aggdirectargs)) == FLOAT8ARRAYOID;
	function->is_continuous = function->function != F_PERCENTILE_DISC_FLOAT8_ANYELEMENT &&
		function->function != F_PERCENTILE_DISC__FLOAT8_ANYELEMENT;
}

static void
begin(CustomScanState *node, EState *estate, int eflags)
{
	GpuPercentileState *state = (GpuPercentileState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	List	   *private = gs_node_private(plan, GS_PERCENTILE_Count);
	List	   *options = list_nth(private, GS_PERCENTILE_OPTIONS);
	GsColumns	groups = gs_columns_read(list_nth(private, GS_PERCENTILE_GROUPS));
	TupleDesc	desc;

	Assert(!(eflags & (EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)));
	outerPlanState(node) = ExecInitNode(outerPlan(plan), estate, eflags | EXEC_FLAG_MARK);
	state->rewinds = (eflags & EXEC_FLAG_REWIND) != 0;
	desc = ExecGetResultType(outerPlanState(node));
	state->first = ExecInitExtraTupleSlot(estate, desc, &TTSOpsMinimalTuple);
	state->next = ExecInitExtraTupleSlot(estate, desc, &TTSOpsMinimalTuple);
	/* arguments are evaluated over first */
	node->ss.ps.outeropsset = true;
	node->ss.ps.outeropsfixed = true;
	node->ss.ps.outerops = &TTSOpsMinimalTuple;
	state->group_context = AllocSetContextCreate(CurrentMemoryContext, "GpuPercentile group",
												 ALLOCSET_DEFAULT_SIZES);

	state->plain = linitial_int(options) != 0;
	state->first_only = lsecond_int(options) != 0;
	gs_reader_init(&state->reader, outerPlanState(node));
	gs_scan_columns_read(&state->columns, plan);
	state->functions = palloc0(state->columns.n * sizeof(Function));
	for (int i = 0; i < state->columns.n; i++)
		if (state->columns.attnos[i] == 0)
			init_function(state, plan->custom_scan_tlist, i);
	init_column(state, castNode(Aggref, llast_node(TargetEntry, plan->custom_scan_tlist)->expr));
	gs_columns_check(&groups);
	state->matcher = gs_row_matcher_create(node, &state->reader, &groups, NULL);
}

/* Count a row of the current group. */
static void
count_row(GpuPercentileState *state, TupleTableSlot *slot)
{
	state->n_rows++;
	if (!slot_attisnull(slot, state->attno))
		state->n_values++;
	else if (state->n_values == 0)
		state->first_value++;
}

/* Count the rows of the group that begins with first, and find the next one. */
static void
count_group(GpuPercentileState *state)
{
	state->n_rows = 0;
	count_row(state, state->first);
	ExecClearTuple(state->next);
	for (;;)
	{
		TupleTableSlot *slot = gs_reader_next(&state->reader);

		CHECK_FOR_INTERRUPTS();
		if (TupIsNull(slot))
			break;
		if (gs_row_matcher_match(state->matcher, slot) == GS_OTHER_PARTITION)
		{
			ExecCopySlot(state->next, slot);
			break;
		}
		count_row(state, slot);
	}
	state->at = state->n_rows;
}

/*
 * How far a percentile is from one value to the next.  Where a compiler makes a product and a difference
 * one operation, as for arm64, the last bit depends on how they are written.  So these are written like
 * percentile_cont_final_common() and setup_pct_info(), and each stays a function.
 */
static pg_noinline double
proportion_of_one(double percentile, int64 n, int64 lower)
{
	return (percentile * (n - 1)) - lower;
}

static pg_noinline double
proportion_in_array(double percentile, int64 n)
{
	return (percentile * (n - 1)) - floor(percentile * (n - 1));
}

/* Where among the values a percentile is. */
static Point
find_point(const GpuPercentileState *state, const Function *function, double percentile)
{
	Point		point = {false, 0, 0, 0};
	int64		n = state->n_values;

	if (percentile < 0 || percentile > 1 || isnan(percentile))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("percentile value %g is not between 0 and 1", percentile)));
	if (function->is_continuous)
	{
		point.lower = (int64) floor(percentile * (n - 1));
		point.upper = (int64) ceil(percentile * (n - 1));
		point.proportion = function->is_array ? proportion_in_array(percentile, n) :
			proportion_of_one(percentile, n, point.lower);
	}
	else
	{
		point.lower = (int64) ceil(percentile * n);
		point.lower = Max(1, point.lower) - 1;
		point.upper = point.lower;
	}
	return point;
}

static void
find_array_points(const GpuPercentileState *state, Function *function, Datum argument)
{
	Datum	   *percentiles;
	bool	   *isnull;

	function->array = DatumGetArrayTypeP(argument);
	deconstruct_array(function->array, FLOAT8OID, sizeof(float8), FLOAT8PASSBYVAL,
					  TYPALIGN_DOUBLE, &percentiles, &isnull, &function->n_points);
	function->points = palloc0(function->n_points * sizeof(Point));
	for (int i = 0; i < function->n_points; i++)
	{
		function->points[i].isnull = isnull[i];
		if (!isnull[i])
			function->points[i] = find_point(state, function, DatumGetFloat8(percentiles[i]));
	}
}

/* The points that a function wants of the current group: none if the result is NULL. */
static void
find_points(GpuPercentileState *state, Function *function)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	Datum		argument;
	bool		isnull;

	function->isnull = true;
	function->n_points = 0;
	econtext->ecxt_outertuple = state->first;
	argument = ExecEvalExpr(function->argument, econtext, &isnull);
	if (isnull || (function->is_array && state->n_values == 0))
		return;
	if (function->is_array)
		find_array_points(state, function, argument);
	else
	{
		function->points = palloc(sizeof(Point));
		*function->points = find_point(state, function, DatumGetFloat8(argument));
		function->n_points = 1;
	}
	function->isnull = state->n_values == 0;
}

static int
compare_numbers(const void *a, const void *b)
{
	int64		x = *(const int64 *) a;
	int64		y = *(const int64 *) b;

	return x < y ? -1 : x > y;
}

/* The values that the functions want. */
static void
find_wanted(GpuPercentileState *state)
{
	int			n = 0;

	for (int i = 0; i < state->n_functions; i++)
		n += 2 * state->functions[i].n_points;
	state->wanted = palloc(Max(n, 1) * sizeof(int64));
	state->datums = palloc(Max(n, 1) * sizeof(Datum));
	n = 0;
	for (int i = 0; i < state->n_functions; i++)
	{
		const Function *function = &state->functions[i];

		for (int j = 0; j < function->n_points && !function->isnull; j++)
		{
			if (function->points[j].isnull)
				continue;
			state->wanted[n++] = function->points[j].lower;
			state->wanted[n++] = function->points[j].upper;
		}
	}
	qsort(state->wanted, n, sizeof(int64), compare_numbers);
	state->n_wanted = qunique(state->wanted, n, sizeof(int64), compare_numbers);
}

/* Go back to the row behind the group's first one. */
static void
go_back(GpuPercentileState *state)
{
	gs_reader_leave_page(&state->reader);
	ExecRestrPos(outerPlanState(state));
	state->at = 0;
}

/* The row at a place of the group, or the next group's first row; valid until the next call. */
static TupleTableSlot *
row_at(GpuPercentileState *state, int64 place)
{
	TupleTableSlot *slot;

	if (place == 0)
		return state->first;
	if (place <= state->at)
		go_back(state);
	if (place > state->at + 1)
	{
		gs_reader_leave_page(&state->reader);
		gs_sort_node_skip(outerPlanState(state), place - state->at - 1);
	}
	state->at = place;
	slot = gs_reader_next(&state->reader);
	if (TupIsNull(slot))
		elog(ERROR, "%s lost rows of a group", GS_PERCENTILE_NAME);
	return slot;
}

static bool
is_null_at(GpuPercentileState *state, int64 place)
{
	return slot_attisnull(row_at(state, place), state->attno);
}

/* One of two places has a NULL.  Find the first place from the lower one on that is like the upper one. */
static int64
find_change(GpuPercentileState *state, int64 low, int64 high, bool high_is_null)
{
	while (high - low > 1)
	{
		int64		middle = low + (high - low) / 2;

		CHECK_FOR_INTERRUPTS();
		if (is_null_at(state, middle) == high_is_null)
			high = middle;
		else
			low = middle;
	}
	return high;
}

/*
 * Count the values of all rows without reading them.  False: there may be several groups, the sort has
 * ended, or the sort does not know how many rows it has.
 */
static bool
count_by_place(GpuPercentileState *state)
{
	const GsSort *sort = gs_sort_node_sort(outerPlanState(state));
	uint64		n_rows;
	bool		first_is_null;
	bool		last_is_null;

	if (gs_row_matcher_has_partitions(state->matcher) || sort == NULL || !gs_sort_count_rows(sort, &n_rows))
		return false;
	ExecClearTuple(state->next);
	state->n_rows = n_rows;
	state->n_values = n_rows;
	first_is_null = is_null_at(state, 0);
	last_is_null = is_null_at(state, n_rows - 1);
	if (first_is_null && last_is_null)
		state->n_values = 0;
	else if (first_is_null)
	{
		state->first_value = find_change(state, 0, n_rows - 1, false);
		state->n_values = n_rows - state->first_value;
	}
	else if (last_is_null)
		state->n_values = find_change(state, 0, n_rows - 1, true);
	return true;
}

static void
fetch_values(GpuPercentileState *state)
{
	for (int i = 0; i < state->n_wanted; i++)
	{
		bool		isnull;
		Datum		value = slot_getattr(row_at(state, state->first_value + state->wanted[i]),
										 state->attno, &isnull);

		Assert(!isnull);
		state->datums[i] = datumCopy(value, state->type_byval, state->type_len);
	}
}

/* float8_lerp(), interval_lerp(). */
static Datum
interpolate(const Function *function, Datum lower, Datum upper, double proportion)
{
	if (function->function == F_PERCENTILE_CONT_FLOAT8_INTERVAL ||
		function->function == F_PERCENTILE_CONT__FLOAT8_INTERVAL)
	{
		Datum		difference = DirectFunctionCall2(interval_mi, upper, lower);
		Datum		part = DirectFunctionCall2(interval_mul, difference,
											   Float8GetDatumFast(proportion));

		return DirectFunctionCall2(interval_pl, part, lower);
	}
	return Float8GetDatum(DatumGetFloat8(lower) +
						  proportion * (DatumGetFloat8(upper) - DatumGetFloat8(lower)));
}

static Datum
point_value(const GpuPercentileState *state, const Function *function, const Point *point)
{
	const int64 *found = bsearch(&point->lower, state->wanted, state->n_wanted, sizeof(int64),
								 compare_numbers);
	const Datum *lower = &state->datums[found - state->wanted];

	/* upper is lower or the next value */
	if (point->upper == point->lower)
		return lower[0];
	return interpolate(function, lower[0], lower[1], point->proportion);
}

static void
set_value(const GpuPercentileState *state, Function *function)
{
	Datum	   *elements;
	bool	   *isnull;

	if (function->isnull)
		return;
	if (!function->is_array)
	{
		function->value = point_value(state, function, function->points);
		return;
	}
	if (function->n_points == 0)
	{
		function->value = PointerGetDatum(construct_empty_array(state->type));
		return;
	}
	elements = palloc(function->n_points * sizeof(Datum));
	isnull = palloc(function->n_points * sizeof(bool));
	for (int i = 0; i < function->n_points; i++)
	{
		isnull[i] = function->points[i].isnull;
		if (!isnull[i])
			elements[i] = point_value(state, function, &function->points[i]);
	}
	function->value =
		PointerGetDatum(construct_md_array(elements, isnull, ARR_NDIM(function->array),
										   ARR_DIMS(function->array),
										   ARR_LBOUND(function->array), state->type,
										   state->type_len, state->type_byval,
										   state->type_align));
}

/* Compute what the functions return for the group that begins with first. */
static void
compute_group(GpuPercentileState *state)
{
	MemoryContext old;

	gs_reader_leave_page(&state->reader);
	ExecMarkPos(outerPlanState(state));
	state->at = state->n_returned = 0;
	state->n_values = state->first_value = 0;
	if (!count_by_place(state))
		count_group(state);

	MemoryContextReset(state->group_context);
	old = MemoryContextSwitchTo(state->group_context);
	for (int i = 0; i < state->n_functions; i++)
		find_points(state, &state->functions[i]);
	find_wanted(state);
	fetch_values(state);
	for (int i = 0; i < state->n_functions; i++)
		set_value(state, &state->functions[i]);
	MemoryContextSwitchTo(old);
}

/* The first row of the next group, with the group's values; false: there is none. */
static bool
next_group(GpuPercentileState *state)
{
	if (state->n_rows == 0)
	{
		TupleTableSlot *slot = gs_reader_next(&state->reader);

		if (TupIsNull(slot))
		{
			/* without GROUP BY errors in arguments count all the same */
			MemoryContext old = MemoryContextSwitchTo(state->group_context);

			ExecClearTuple(state->first);
			for (int i = 0; state->plain && i < state->n_functions; i++)
				find_points(state, &state->functions[i]);
			MemoryContextSwitchTo(old);
			return false;
		}
		(void) gs_row_matcher_match(state->matcher, slot);
		ExecCopySlot(state->first, slot);
	}
	else if (TupIsNull(state->next))
		return false;
	else
	{
		ExecCopySlot(state->first, state->next);
		if (state->at < state->n_rows)
			(void) row_at(state, state->n_rows);
	}
	compute_group(state);
	return true;
}

/* A row of the child with the values of its group. */
static TupleTableSlot *
return_row(GpuPercentileState *state, TupleTableSlot *row)
{
	TupleTableSlot *scan = state->css.ss.ss_ScanTupleSlot;

	gs_scan_columns_set(&state->columns, row, scan);
	for (int i = 0; i < state->n_functions; i++)
	{
		const Function *function = &state->functions[i];

		scan->tts_values[function->column] = function->value;
		scan->tts_isnull[function->column] = function->isnull;
	}
	state->n_returned++;
	return ExecStoreVirtualTuple(scan);
}

static TupleTableSlot *
exec(CustomScanState *node)
{
	GpuPercentileState *state = (GpuPercentileState *) node;
	TupleTableSlot *scan = node->ss.ss_ScanTupleSlot;

	ExecClearTuple(scan);
	if (state->done)
		return scan;
	if (!state->first_only && state->n_returned < state->n_rows)
		return return_row(state, row_at(state, state->n_returned));
	if (!next_group(state))
	{
		state->done = true;
		gs_reader_reset(&state->reader);
		if (!state->rewinds)
			gs_sort_node_release(outerPlanState(node));
		return scan;
	}
	return return_row(state, state->first);
}

static void
forget_rows(GpuPercentileState *state)
{
	ExecClearTuple(state->first);
	ExecClearTuple(state->next);
	gs_reader_reset(&state->reader);
	gs_row_matcher_reset(state->matcher);
	MemoryContextReset(state->group_context);
	state->n_rows = 0;
	state->n_returned = 0;
	state->n_values = 0;
	state->done = false;
}

static void
end(CustomScanState *node)
{
	forget_rows((GpuPercentileState *) node);
	ExecEndNode(outerPlanState(node));
}

static void
rescan(CustomScanState *node)
{
	forget_rows((GpuPercentileState *) node);
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

static void
explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuPercentileState *state = (GpuPercentileState *) node;
	List	   *names = NIL;

	for (int i = 0; i < state->n_functions; i++)
		names = lappend(names, psprintf("%s()", get_func_name(state->functions[i].function)));
	ExplainPropertyList("Functions", names, es);
}

const GsNode gs_percentile_node = {
	GS_NODE(GS_PERCENTILE_NAME, GpuPercentileState),
};
