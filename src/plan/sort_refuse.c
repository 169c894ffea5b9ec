/*-------------------------------------------------------------------------
 *
 * sort_refuse.c
 *	  Saying why a sort is left to PostgreSQL (sort_refuse.h).
 *
 * Tests: regress/refusals
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

#include "compat.h"
#include "guc.h"
#include "key/key.h"
#include "plan/plan_walk.h"
#include "plan/sort_refuse.h"

int
gs_refuse_level(void)
{
	return gs_guc_log_refusals ? NOTICE : DEBUG1;
}

char *
gs_refuse_detail(const char *column, Oid type, Oid collation)
{
	if (!OidIsValid(collation))
		return psprintf("%s is of type %s.", column, format_type_be(type));
	return psprintf("%s is of type %s under collation \"%s\".", column, format_type_be(type),
					get_collation_name(collation));
}

/* The expression that a Sort's column i holds. */
static Node *
sort_expression(const Sort *sort, int i)
{
	return (Node *) get_tle_by_resno(sort->plan.targetlist, sort->sortColIdx[i])->expr;
}

const GsKeyDesc *
gs_sort_describe(const Sort *sort, int n_columns, GsRefusal *refusal)
{
	Oid		   *types = palloc(n_columns * sizeof(Oid));
	int32	   *typmods = palloc(n_columns * sizeof(int32));

	for (int i = 0; i < n_columns; i++)
	{
		types[i] = exprType(sort_expression(sort, i));
		typmods[i] = gs_plan_row_typmod(&sort->plan, sort_expression(sort, i));
	}
	return gs_key_desc_create(n_columns, sort->sortColIdx, sort->sortOperators, sort->collations,
							  sort->nullsFirst, types, typmods, true, refusal);
}

/* The first column with which gpusort cannot do the sort. */
static int
refused_column(const Sort *sort)
{
	int			n = 1;
	GsRefusal	refusal;

	while (n < sort->numCols && gs_sort_describe(sort, n, &refusal) != NULL)
		n++;
	return n - 1;
}

static void
note_work_table(Plan **plan, void *found)
{
	if (IsA(*plan, WorkTableScan))
		*(bool *) found = true;
	gs_plan_visit_children(*plan, note_work_table, found);
}

/* How to print expressions of a Sort; NIL where only EXPLAIN can. */
static List *
deparse_context(const PlannedStmt *stmt, const Sort *sort)
{
	Plan	   *plan = unconstify(Plan *, &sort->plan);
	bool		work_table = false;
	List	   *names;

	/* its columns are found from the RecursiveUnion above */
	note_work_table(&plan, &work_table);
	if (work_table)
		return NIL;
	names = select_rtable_names_for_explain(stmt->rtable,
											bms_add_range(NULL, 1, list_length(stmt->rtable)));
	return set_deparse_context_plan(deparse_context_for_plan_tree(unconstify(PlannedStmt *, stmt),
																  names),
									plan, NIL);
}

/* A Sort's column i as EXPLAIN prints it, always with the table's name. */
static char *
column_text(const Sort *sort, List *context, int i)
{
	if (context == NIL)
		return psprintf("column %d", sort->sortColIdx[i]);
	return deparse_expression(sort_expression(sort, i), context, true, true);
}

void
gs_refuse_sort(const PlannedStmt *stmt, const Sort *sort, GsRefusal reason)
{
	char	   *detail = NULL;

	gs_stats_refusal(reason);
	if (gs_guc_log_refusals && reason != GS_REFUSE_SERVICE)
	{
		int			i = refused_column(sort);
		char	   *column = column_text(sort, deparse_context(stmt, sort), i);

		detail = gs_refuse_detail(psprintf("Sort key %s", column), exprType(sort_expression(sort, i)),
								  sort->collations[i]);
	}
	ereport(gs_refuse_level(),
			(errmsg("gpusort leaves a sort to PostgreSQL: %s", gs_refusal_name(reason)),
			 detail ? errdetail_internal("%s", detail) : 0));
}

void
gs_decline_sort(const PlannedStmt *stmt, const Sort *sort, double rows, const char *reason)
{
	List	   *context;
	StringInfoData keys;

	if (!gs_guc_log_refusals)
		return;
	context = deparse_context(stmt, sort);
	initStringInfo(&keys);
	for (int i = 0; i < sort->numCols; i++)
		appendStringInfo(&keys, "%s%s", i > 0 ? ", " : "", column_text(sort, context, i));
	ereport(NOTICE,
			(errmsg("gpusort leaves a sort to PostgreSQL: %s", reason),
			 errdetail("Sort key: %s. Estimated rows: %.0f.", keys.data, rows)));
}

void
gs_decline_window(const char *reason)
{
	if (gs_guc_log_refusals)
		ereport(NOTICE,
				(errmsg("gpusort leaves a window to PostgreSQL: %s", reason)));
}

static bool
has_sorting_aggregate(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Aggref) && gs_compat_aggref_sorts((Aggref *) node))
		return true;
	return expression_tree_walker(node, has_sorting_aggregate, context);
}

void
gs_decline_node(const Plan *plan)
{
	const Agg  *agg = (const Agg *) plan;

	if (!gs_guc_log_refusals)
		return;
	if (IsA(plan, IncrementalSort))
		ereport(NOTICE,
				(errmsg("gpusort leaves a sort to PostgreSQL: it is incremental")));
	if (!IsA(plan, Agg))
		return;
	if (has_sorting_aggregate((Node *) plan->targetlist, NULL) ||
		has_sorting_aggregate((Node *) plan->qual, NULL))
		ereport(NOTICE,
				(errmsg("gpusort leaves a sort to PostgreSQL: it is inside an aggregate")));
	if (agg->aggstrategy == AGG_SORTED && agg->chain != NIL)
		ereport(NOTICE,
				(errmsg("gpusort leaves a sort to PostgreSQL: it is not the first of GROUPING SETS")));
	if (agg->aggstrategy == AGG_HASHED || agg->aggstrategy == AGG_MIXED)
		ereport(NOTICE,
				(errmsg("gpusort has no sort to do: PostgreSQL groups rows by hashing")));
}
