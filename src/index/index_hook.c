/*-------------------------------------------------------------------------
 *
 * index_hook.c
 *	  Where gpusort enters PostgreSQL's index builds.
 *
 * All builds of indexes end in index_build(), which calls the ambuild function
 * in the index's relcache entry: CREATE INDEX, constraints, REINDEX, CLUSTER,
 * VACUUM FULL, REPACK, ALTER TABLE, REFRESH MATERIALIZED VIEW, concurrently or
 * not.  There is no hook in it.  But just before, it asks the planner how many
 * workers to use, and plan_create_index_workers() sets up so much of a planner
 * that a hook is called for the table, get_relation_info_hook, or from
 * PostgreSQL 19 on build_simple_rel_hook, while index_build() holds the index's
 * relcache entry.  There we have the entry point to a copy of the access
 * method's functions, with gs_index_build() among them; the copy lives as long
 * as the entry and is made anew when needed.  The hook is not told which index
 * is meant, so all indexes of the table get the copy.  gs_index_build() calls the access method's own
 * function for indexes that PostgreSQL is to build.
 *
 * With max_parallel_maintenance_workers = 0 the planner returns before it calls
 * the hook, and PostgreSQL builds the index.  There is no other way in that all
 * builds take and that nobody sees:
 *	  - A higher setting while the command runs is seen by the index's functions,
 *		the query of a materialized view and event triggers.  And it may stay
 *		behind if a function that sets it as well ends with an error.
 *	  - A relcache callback runs shortly before index_build() if the command has
 *		just changed the index's catalog rows.  A concurrent build has not: a
 *		transaction before it has.  And a callback must not read catalogs, but
 *		may have to if it looks up an entry that is not open.
 *	  - object_access_hook runs for new indexes only.
 *
 * Before PostgreSQL 18, index_build() does not ask for a GIN index.  There object_access_hook serves
 * CREATE INDEX: index_create() calls it when all catalog rows are there, and makes them visible next, which
 * gives the relcache entry the access method's functions.  So the hook does that itself, and then patches
 * the entry, which keeps its functions as long as it is open.  REINDEX TABLE, CLUSTER and VACUUM FULL build
 * all indexes of a table.  The table's first btree patches the GIN indexes that come after it.
 * A concurrent build and REINDEX INDEX stay PostgreSQL's there.
 *
 * An entry that was patched in an earlier command has our function with any
 * setting.  index_refuse.c then leaves the build to PostgreSQL as well, so that the
 * choice does not depend on what the session did before.
 *
 * Tests: regress/index_builds, tap/index_concurrent
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "parser/parsetree.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "compat.h"
#include "guc.h"
#include "index/index_build.h"
#include "index/index_hook.h"
#include "index/index_kind.h"

static gs_compat_relation_hook_type previous_hook = NULL;
static object_access_hook_type previous_object_hook = NULL;

/*
 * Put our function into an index's relcache entry.  Only the index that is to be
 * built is locked, so the others are not opened as relations: a lock on them
 * might have to wait for a command that rebuilds them.  They cannot go away, by
 * the lock on their table.
 */
static void
patch_index(Oid oid)
{
	Relation	index = RelationIdGetRelation(oid);
	const GsIndexKind *kind;

	if (!RelationIsValid(index))
		return;
	kind = gs_index_kind(index->rd_rel->relam);
	if (kind && index->rd_indam->ambuild == kind->build)
	{
		IndexAmRoutine *routine = MemoryContextAlloc(index->rd_indexcxt, sizeof(IndexAmRoutine));

		/* what it replaces is in the same context, or constant */
		*routine = *index->rd_indam;
		routine->ambuild = gs_index_build;
		index->rd_indam = routine;
	}
	RelationClose(index);
}

bool
gs_has_no_query(const PlannerInfo *root)
{
	const Query *query = root->parse;

	return query->commandType == CMD_SELECT && query->jointree == NULL &&
		query->targetList == NIL && list_length(query->rtable) == 1;
}

static void
see_relation(gs_compat_relation_params)
{
	const RangeTblEntry *table = planner_rt_fetch(rel->relid, root);

	if (previous_hook)
		previous_hook(gs_compat_relation_args);
	if (!table->inh || !gs_has_no_query(root))
		return;

	/* catalogs' indexes are not looked at, as one of them may be broken */
	if (gs_guc_enabled && gs_guc_index_build && !IsCatalogRelationOid(table->relid))
	{
		Relation	heap = table_open(table->relid, NoLock);
		List	   *indexes = RelationGetIndexList(heap);
		ListCell   *lc;

		foreach(lc, indexes)
			patch_index(lfirst_oid(lc));
		list_free(indexes);
		table_close(heap, NoLock);
	}
}

/* An index has got its catalog rows; next, index_create() makes them visible and builds it. */
static void
see_object(ObjectAccessType access, Oid class, Oid object, int column, void *arg)
{
	Relation	index;
	const GsIndexKind *kind = NULL;

	if (previous_object_hook)
		previous_object_hook(access, class, object, column, arg);
	if (access != OAT_POST_CREATE || class != RelationRelationId || column != 0 ||
		!gs_guc_enabled || !gs_guc_index_build)
		return;
	index = RelationIdGetRelation(object);
	if (!RelationIsValid(index))
		return;
	if (index->rd_rel->relkind == RELKIND_INDEX && !IsCatalogRelation(index))
		kind = gs_index_kind(index->rd_rel->relam);
	RelationClose(index);
	if (kind && !gs_compat_build_asks_planner(kind->access_method))
	{
		CommandCounterIncrement();
		patch_index(object);
	}
}

void
gs_index_init(void)
{
	previous_hook = gs_compat_relation_hook;
	gs_compat_relation_hook = see_relation;
	previous_object_hook = object_access_hook;
	object_access_hook = see_object;
}
