/*-------------------------------------------------------------------------
 *
 * cluster_hook.c
 *	  Where gpusort enters CLUSTER and REPACK.
 *
 * Both make a new table and have the old one's access method copy the rows:
 * relation_copy_for_cluster(), in the order of an index or as they lie.  There is
 * no hook in that.  But just before, they ask the planner whether to sort or to
 * read the rows by the index, and plan_cluster_use_sort() calls a hook for the
 * table, get_relation_info_hook, or from PostgreSQL 19 on build_simple_rel_hook.
 * There we have the old table's relcache entry, which the command holds open, point to
 * a copy of heap's functions with copy_table() among them.  copy_table() takes that
 * back first of all.  It calls heap's function for what PostgreSQL is to do.
 *
 * The entry must not stay so: others ask whether a table's functions are heap's.
 * So it is changed only within CLUSTER and REPACK, which pass ProcessUtility_hook,
 * and that takes it back when they end in whatever way.  The pointer to the entry is
 * good: either copy_table() ran, or the command failed and still holds the
 * entry, as its resources are released later.  If the entry is invalidated in between, it gets
 * heap's functions again, and may go away once it is closed.  Then forget_table() gives up, and
 * PostgreSQL copies the table.
 *
 * The planner is not asked, and so nor are we, for copies without an index, for
 * other indexes than btrees, and while enable_indexscan is off.
 *
 * Tests: regress/cluster, tap/cluster_faults
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "catalog/catalog.h"
#include "catalog/pg_class_d.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "tcop/utility.h"
#include "utils/inval.h"
#include "utils/rel.h"

#include "cluster/cluster_copy.h"
#include "compat.h"
#include "fault.h"
#include "gpusort.h"
#include "guc.h"
#include "index/index_hook.h"
#include "plan/sort_cost.h"

/* A table whose functions are ours now, and the planner's state for it. */
typedef struct TakenTable
{
	Relation	table;			/* NULL: none */
	PlannerInfo *root;
	RelOptInfo *rel;
} TakenTable;

static ProcessUtility_hook_type next_utility;
static gs_compat_relation_hook_type previous_relation_hook = NULL;
static TableAmRoutine heap_with_copy;	/* heap's functions, and copy_table() */
static bool in_command = false; /* CLUSTER or REPACK */
static TakenTable taken;

static TakenTable
give_back(void)
{
	TakenTable	was = taken;

	if (was.table)
		was.table->rd_tableam = GetHeapamTableAmRoutine();
	memset(&taken, 0, sizeof(taken));
	return was;
}

/* A relcache callback; the command still holds the entry of the table that was taken. */
static void
forget_table(Datum arg, Oid table)
{
	if (taken.table && (!OidIsValid(table) || table == RelationGetRelid(taken.table)))
		(void) give_back();
}

/*
 * Does reading the rows by the index cost less than a sort by gpusort?  PostgreSQL only compares
 * the former with its own sort.
 */
static bool
scan_is_cheaper(const TakenTable *of, Oid index)
{
	PlannerInfo *root = of->root;
	RelOptInfo *rel = of->rel;
	ListCell   *lc;

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *info = lfirst_node(IndexOptInfo, lc);
		QualCost	expressions;
		IndexPath  *by_index;
		Cost		by_sort;

		if (info->indexoid != index)
			continue;

		/* as plan_cluster_use_sort() has it; rel is filled in since */
		by_index = create_index_path(root, info, NIL, NIL, NIL, NIL, ForwardScanDirection, false,
									 NULL, 1.0, false);
		cost_qual_eval(&expressions, info->indexprs, root);
		by_sort = create_seqscan_path(root, rel, NULL, 0)->total_cost +
			expressions.startup + expressions.per_tuple * rel->rows +
			gs_cost_sort(rel->rows, rel->rows, rel->reltarget->width);
		return gs_cost_by_index(by_index->path.total_cost) <= by_sort;
	}
	return true;
}

/* relation_copy_for_cluster() of a table that was taken */
static void
copy_table(gs_compat_copy_params)
{
	TakenTable	was = give_back();

	Assert(was.table == old_heap);
	if (!gs_compat_copy_concurrent)
	{
		GsClusterCopy copy = {
			.old_heap = old_heap,
			.new_heap = new_heap,
			.index = index,
			.oldest_xmin = oldest_xmin,
			.xid_cutoff = *xid_cutoff,
			.multi_cutoff = *multi_cutoff,
			.scan_is_cheaper = !use_sort && !gs_guc_force && scan_is_cheaper(&was, RelationGetRelid(index))
		};

		if (gs_cluster_copy(&copy))
		{
			*tuples += copy.tuples;
			*vacuumed += copy.vacuumed;
			*recently_dead += copy.recently_dead;
			return;
		}
	}
	GetHeapamTableAmRoutine()->relation_copy_for_cluster(gs_compat_copy_args);
}

/* gpusort takes heaps.  Logical decoding must follow the copy of a catalog, which stays PostgreSQL's. */
static bool
can_take(Relation table)
{
	return table->rd_tableam == GetHeapamTableAmRoutine() &&
		(table->rd_rel->relkind == RELKIND_RELATION || table->rd_rel->relkind == RELKIND_MATVIEW) &&
		!IsCatalogRelation(table) && !RelationIsAccessibleInLogicalDecoding(table);
}

static void
see_relation(gs_compat_relation_params)
{
	const RangeTblEntry *entry_of = planner_rt_fetch(rel->relid, root);
	Relation	table;

	if (previous_relation_hook)
		previous_relation_hook(gs_compat_relation_args);
	if (!in_command || !gs_guc_enabled || entry_of->inh || !gs_has_no_query(root))
		return;
	Assert(taken.table == NULL);
	table = table_open(entry_of->relid, NoLock);
	if (can_take(table))
	{
		table->rd_tableam = &heap_with_copy;
		taken = (TakenTable){table, root, rel};
		if (GS_FAULT("cluster_planned"))
			elog(ERROR, "fault between the planner and the copy");
	}
	table_close(table, NoLock);
}

static void
run_utility(PlannedStmt *stmt, const char *query_string, bool read_only_tree,
			ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *environment,
			DestReceiver *dest, QueryCompletion *completion)
{
	bool		was_in_command = in_command;

	if (!gs_compat_is_cluster(stmt->utilityStmt))
	{
		next_utility(stmt, query_string, read_only_tree, context, params, environment, dest, completion);
		return;
	}
	in_command = true;
	PG_TRY();
	{
		next_utility(stmt, query_string, read_only_tree, context, params, environment, dest, completion);
	}
	PG_FINALLY();
	{
		in_command = was_in_command;
		(void) give_back();
	}
	PG_END_TRY();
}

void
gs_cluster_init(void)
{
	heap_with_copy = *GetHeapamTableAmRoutine();
	heap_with_copy.relation_copy_for_cluster = copy_table;
	previous_relation_hook = gs_compat_relation_hook;
	gs_compat_relation_hook = see_relation;
	CacheRegisterRelcacheCallback(forget_table, (Datum) 0);
	next_utility = ProcessUtility_hook ? ProcessUtility_hook : standard_ProcessUtility;
	ProcessUtility_hook = run_utility;
}
