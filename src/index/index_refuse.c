/*-------------------------------------------------------------------------
 *
 * index_refuse.c
 *	  Which index builds, and copies of a table in an index's order, are left to
 *	  PostgreSQL (index_refuse.h).
 *
 * All rules are here.  For builds:
 *	  - gpusort.enabled and gpusort.index_build must be on;
 *	  - max_parallel_maintenance_workers must not be 0: then gpusort is not asked,
 *		or only by chance (index_hook.c);
 *	  - indexes of system catalogs are PostgreSQL's: it builds them while
 *		catalogs are not to be trusted, and describing keys reads catalogs
 *		(index_hook.c sees to it);
 *	  - the service must be at work;
 *	  - tables of fewer than gpusort.min_rows rows gain nothing, unless
 *		gpusort.force is on;
 *	  - keys must be able to express the order of the index.
 * The first one and the last three hold for copies of a table as well.  cluster.c has what only concerns
 * these.
 *
 * Tests: regress/index_builds, regress/refusals
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/catalog.h"
#include "miscadmin.h"
#include "optimizer/plancat.h"
#include "storage/bufmgr.h"

#include "guc.h"
#include "index/index_refuse.h"
#include "plan/sort_refuse.h"
#include "service/service_client.h"
#include "stats.h"

/* work: what would be done with the index; detail: NULL for none */
static void
report(Relation index, const char *work, const char *reason, const char *detail)
{
	ereport(gs_refuse_level(),
			(errmsg("gpusort leaves %s index \"%s\" to PostgreSQL: %s",
					work, RelationGetRelationName(index), reason),
			 detail ? errdetail_internal("%s", detail) : 0));
}

/* The first column, from 0, for which there are no keys. */
static int
refused_column(const GsIndexKind *kind, Relation index)
{
	int			ncols = 1;
	GsRefusal	refusal;

	while (ncols < IndexRelationGetNumberOfKeyAttributes(index) &&
		   kind->key_desc(index, ncols, &refusal) != NULL)
		ncols++;
	return ncols - 1;
}

static void
refuse(const GsIndexKind *kind, Relation index, const char *work, GsRefusal reason)
{
	char	   *detail = NULL;

	gs_stats_refusal(reason);
	if (gs_guc_log_refusals && reason != GS_REFUSE_SERVICE)
	{
		int			i = refused_column(kind, index);
		Form_pg_attribute column = TupleDescAttr(RelationGetDescr(index), i);

		detail = gs_refuse_detail(psprintf("Column \"%s\"", NameStr(column->attname)), column->atttypid,
								  index->rd_indcollation[i]);
	}
	report(index, work, gs_refusal_name(reason), detail);
}

static bool
is_small(Relation heap)
{
	BlockNumber blocks;
	double		rows;
	double		all_visible;

	if (gs_guc_force)
		return false;
	estimate_rel_size(heap, NULL, &blocks, &rows, &all_visible);
	return rows < gs_guc_min_rows;
}

static GsKeyDesc *
accept(const GsIndexKind *kind, Relation heap, Relation index, const char *work)
{
	GsKeyDesc  *desc;
	GsRefusal	refusal;

	/* the hooks leave those alone */
	Assert(!IsCatalogRelation(heap));
	if (is_small(heap))
	{
		/* each new table has index builds, and so has its TOAST table: there are no rows to tell of */
		if (RelationGetNumberOfBlocks(heap) > 0)
			report(index, work, "the table is small", NULL);
		return NULL;
	}
	if (!gs_client_service_ready())
	{
		refuse(kind, index, work, GS_REFUSE_SERVICE);
		return NULL;
	}
	desc = kind->key_desc(index, IndexRelationGetNumberOfKeyAttributes(index), &refusal);
	if (desc == NULL)
		refuse(kind, index, work, refusal);
	return desc;
}

GsKeyDesc *
gs_index_accept(const GsIndexKind *kind, Relation heap, Relation index)
{
	if (!gs_guc_enabled || !gs_guc_index_build || max_parallel_maintenance_workers == 0)
		return NULL;
	return accept(kind, heap, index, "the build of");
}

GsKeyDesc *
gs_index_accept_copy(Relation heap, Relation index, bool scan_is_cheaper)
{
	GsKeyDesc  *desc = accept(&gs_btree_kind, heap, index, "CLUSTER by");

	if (desc == NULL || !scan_is_cheaper)
		return desc;
	report(index, "CLUSTER by", "reading the table by the index costs less", NULL);
	return NULL;
}
