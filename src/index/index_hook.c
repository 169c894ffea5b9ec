/*-------------------------------------------------------------------------
 *
 * index_hook.c
 *	  Where gpusort enters PostgreSQL's index builds.
 *
 * All builds of indexes end in index_build(), which calls the ambuild function
 * in the index's relcache entry: CREATE INDEX, constraints, REINDEX, CLUSTER,
 * VACUUM FULL, ALTER TABLE, REFRESH MATERIALIZED VIEW, concurrently or not.
 * There is no hook in it.  But just before, it asks the planner how many
 * workers to use, and plan_create_index_workers() sets up so much of a planner
 * that get_relation_info_hook is called for the table, while index_build()
 * holds the index's relcache entry.  There we put gs_index_build() into the
 * entry's copy of the access method's functions; it lives as long as the entry
 * and is made anew when needed.  The hook is not told which index is meant, so
 * all btrees of the table get it.  gs_index_build() calls btbuild() for those
 * that are not ours to build.
 *
 * With max_parallel_maintenance_workers = 0 the planner is not asked.  So for
 * the commands that build indexes it is 1 as long as they run, and the hook
 * then tells the planner that this table wants 0 workers.  The variable itself
 * is set, as these commands may commit in between, which would undo a setting
 * made in the usual way.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/nbtree.h"
#include "access/table.h"
#include "catalog/catalog.h"
#include "catalog/pg_am_d.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "optimizer/plancat.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "compat.h"
#include "guc.h"
#include "index/index_build.h"
#include "index/index_hook.h"
#include "service/service_client.h"

static get_relation_info_hook_type previous_relation_info = NULL;
static ProcessUtility_hook_type previous_utility = NULL;

/* max_parallel_maintenance_workers is 1 through us, and 0 for the user. */
static bool raised = false;

/*
 * Put our function into a btree's relcache entry.  Only the index that is to be
 * built is locked, so the others are not opened as relations: a lock on them
 * might have to wait for a command that rebuilds them.  They cannot go away, by
 * the lock on their table.
 */
static void
patch_index(Oid oid)
{
	Relation	index = RelationIdGetRelation(oid);

	if (!RelationIsValid(index))
		return;
	if (index->rd_rel->relam == BTREE_AM_OID && index->rd_indam->ambuild == btbuild)
	{
		IndexAmRoutine *routine = MemoryContextAlloc(index->rd_indexcxt, sizeof(IndexAmRoutine));

		/* what it replaces is in the same context, or constant */
		*routine = *index->rd_indam;
		routine->ambuild = gs_index_build;
		index->rd_indam = routine;
	}
	RelationClose(index);
}

/* Is this plan_create_index_workers() asking?  It has no query at all. */
static bool
is_index_build(const PlannerInfo *root, bool inhparent)
{
	const Query *query = root->parse;

	return inhparent && query->commandType == CMD_SELECT && query->jointree == NULL &&
		query->targetList == NIL && list_length(query->rtable) == 1;
}

static void
relation_info(PlannerInfo *root, Oid oid, bool inhparent, RelOptInfo *rel)
{
	if (previous_relation_info)
		previous_relation_info(root, oid, inhparent, rel);
	if (!is_index_build(root, inhparent))
		return;

	/* catalogs' indexes are not looked at, as one of them may be broken */
	if (gs_guc_enabled && gs_guc_index_build && !IsCatalogRelationOid(oid))
	{
		Relation	heap = table_open(oid, NoLock);
		List	   *indexes = RelationGetIndexList(heap);
		ListCell   *lc;

		foreach(lc, indexes)
			patch_index(lfirst_oid(lc));
		list_free(indexes);
		table_close(heap, NoLock);
	}
	if (raised)
		rel->rel_parallel_workers = 0;
}

/* May a command build indexes of tables that have rows? */
static bool
builds_indexes(Node *command)
{
	switch (nodeTag(command))
	{
		case T_IndexStmt:
		case T_ReindexStmt:
		case T_ClusterStmt:
		case T_AlterTableStmt:
		case T_RefreshMatViewStmt:
			return true;
		case T_VacuumStmt:
			{
				VacuumStmt *stmt = (VacuumStmt *) command;
				ListCell   *lc;

				/* an ordinary VACUUM would find the workers of its own */
				foreach(lc, stmt->options)
				{
					DefElem    *option = lfirst_node(DefElem, lc);

					if (strcmp(option->defname, "full") == 0 && defGetBoolean(option))
						return stmt->is_vacuumcmd;
				}
				return false;
			}
		default:
			return false;
	}
}

static void
run_utility(PlannedStmt *pstmt, const char *query_string, bool read_only_tree,
			ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *query_env,
			DestReceiver *dest, QueryCompletion *completion)
{
	if (previous_utility)
		previous_utility(pstmt, query_string, read_only_tree, context, params, query_env, dest,
						 completion);
	else
		standard_ProcessUtility(pstmt, query_string, read_only_tree, context, params, query_env,
								dest, completion);
}

static void
utility(PlannedStmt *pstmt, const char *query_string, bool read_only_tree,
		ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *query_env,
		DestReceiver *dest, QueryCompletion *completion)
{
	if (raised || max_parallel_maintenance_workers > 0 || !gs_guc_enabled || !gs_guc_index_build ||
		!gs_client_service_ready() || !builds_indexes(pstmt->utilityStmt))
	{
		run_utility(pstmt, query_string, read_only_tree, context, params, query_env, dest,
					completion);
		return;
	}

	PG_TRY();
	{
		raised = true;
		max_parallel_maintenance_workers = 1;
		run_utility(pstmt, query_string, read_only_tree, context, params, query_env, dest,
					completion);
	}
	PG_FINALLY();
	{
		raised = false;
		/* unless a function that was called has set it */
		if (max_parallel_maintenance_workers == 1)
			max_parallel_maintenance_workers = 0;
	}
	PG_END_TRY();
}

void
gs_index_init(void)
{
	previous_relation_info = get_relation_info_hook;
	get_relation_info_hook = relation_info;
	previous_utility = ProcessUtility_hook;
	ProcessUtility_hook = utility;
}
