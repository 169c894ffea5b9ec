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

#include "access/transam.h"
#include "catalog/pg_class.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "guc.h"
#include "key/key.h"
#include "plan/plan_walk.h"
#include "plan/sort_refuse.h"

/* Are refusals of the current plan shown?  Users do not expect gpusort to sort rows of catalogs. */
static bool shown = false;

void
gs_refuse_begin(const PlannedStmt *stmt)
{
	bool		catalogs = false;
	ListCell   *lc;

	shown = gs_guc_log_refusals;
	if (!shown)
		return;
	foreach(lc, stmt->rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind != RTE_RELATION || rte->relkind == RELKIND_VIEW)
			continue;
		if (rte->relid >= FirstNormalObjectId)
			return;
		catalogs = true;
	}
	shown = !catalogs;
}

int
gs_refuse_elevel(void)
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
	const GsColumns columns = {n_columns, sort->sortColIdx, sort->sortOperators, sort->collations,
							   sort->nullsFirst};
	Oid		   *types = palloc(n_columns * sizeof(Oid));
	int32	   *typmods = palloc(n_columns * sizeof(int32));

	for (int i = 0; i < n_columns; i++)
	{
		types[i] = exprType(sort_expression(sort, i));
		typmods[i] = gs_plan_row_typmod(&sort->plan, sort_expression(sort, i));
	}
	return gs_key_desc_create(&columns, types, typmods, true, refusal);
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

void
gs_refuse_sort(const Sort *sort, GsRefusal reason)
{
	char	   *detail = NULL;

	gs_stats_refusal(reason);
	if (shown && reason != GS_REFUSE_SERVICE)
	{
		int			i = refused_column(sort);

		detail = gs_refuse_detail(psprintf("Sort key %d", i + 1), exprType(sort_expression(sort, i)),
								  sort->collations[i]);
	}
	ereport(shown ? NOTICE : DEBUG1,
			(errmsg("gpusort leaves a sort to PostgreSQL: %s", gs_refusal_name(reason)),
			 detail ? errdetail_internal("%s", detail) : 0));
}

void
gs_refuse_by_cost(const Sort *sort, double rows, const char *reason)
{
	StringInfoData types;

	if (!shown)
		return;
	initStringInfo(&types);
	for (int i = 0; i < sort->numCols; i++)
		appendStringInfo(&types, "%s%s", i > 0 ? ", " : "", format_type_be(exprType(sort_expression(sort, i))));
	ereport(NOTICE,
			(errmsg("gpusort leaves a sort to PostgreSQL: %s", reason),
			 errdetail("Sort keys of type %s. Estimated rows: %.0f.", types.data, rows)));
}

void
gs_refuse_window(const char *reason)
{
	if (shown)
		ereport(NOTICE,
				(errmsg("gpusort leaves a window to PostgreSQL: %s", reason)));
}

static bool
has_sorting_aggregate(const Agg *agg)
{
	ListCell   *lc;

	foreach(lc, gs_plan_aggregates(agg))
		if (gs_compat_aggref_sorts(lfirst_node(Aggref, lc)))
			return true;
	return false;
}

void
gs_refuse_node(const Plan *plan)
{
	const Agg  *agg = (const Agg *) plan;

	if (!shown)
		return;
	if (IsA(plan, IncrementalSort))
		ereport(NOTICE,
				(errmsg("gpusort leaves a sort to PostgreSQL: it is incremental")));
	if (!IsA(plan, Agg))
		return;
	if (has_sorting_aggregate(agg))
		ereport(NOTICE,
				(errmsg("gpusort leaves a sort to PostgreSQL: it is inside an aggregate")));
	if (agg->aggstrategy == AGG_SORTED && agg->chain != NIL)
		ereport(NOTICE,
				(errmsg("gpusort leaves a sort to PostgreSQL: it is not the first of GROUPING SETS")));
	if (agg->aggstrategy == AGG_HASHED || agg->aggstrategy == AGG_MIXED)
		ereport(NOTICE,
				(errmsg("gpusort has no sort to do: PostgreSQL groups rows by hashing")));
}
