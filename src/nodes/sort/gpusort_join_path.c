/*-------------------------------------------------------------------------
 *
 * gpusort_join_path.c
 *	  Offering merge joins over GpuSort.
 *
 * A hash join whose hash table fits into memory is hard to beat.  Where neither side
 * would fit, both are written to files in parts, and sorting them may cost less:
 *
 *		Merge Join -> GpuSort of each side, or what is in order already
 *
 * PostgreSQL makes the same path over its own Sorts, with their cost.
 *
 * Tests: regress/paths, regress/plan_sorts, tap/compat_plan_advice
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "utils/guc.h"

#include "client/client.h"
#include "compat.h"
#include "nodes/sort/gpusort_path.h"

/* Is this a join that Merge Join can do by these clauses? */
static bool
is_mergeable(JoinType jointype, const JoinPathExtraData *extra)
{
	switch (jointype)
	{
		case JOIN_INNER:
		case JOIN_LEFT:
		case JOIN_SEMI:
		case JOIN_ANTI:
			return true;
		case JOIN_FULL:
			/* no other clause may keep a row from its match */
			return list_length(extra->mergeclause_list) == list_length(extra->restrictlist);
		default:
			return false;
	}
}

/* Would a hash table of all rows be larger than hash_mem? */
static bool
exceeds_hash_memory(const RelOptInfo *rel)
{
	double		width = rel->reltarget->width + MAXALIGN(SizeofMinimalTupleHeader);

	return rel->rows * width > get_hash_memory_limit();
}

static bool
can_hash(const JoinPathExtraData *extra)
{
	ListCell   *lc;

	foreach(lc, extra->mergeclause_list)
		if (OidIsValid(lfirst_node(RestrictInfo, lc)->hashjoinoperator))
			return enable_hashjoin;
	return false;
}

/*
 * The cheapest way to a side's rows in this order; sets *sorts if that is a GpuSort.  NULL: gpusort
 * cannot sort so.
 */
static Path *
side_path(PlannerInfo *root, RelOptInfo *side, List *pathkeys, bool *sorts)
{
	Path	   *best = get_cheapest_path_for_pathkeys(side->pathlist, pathkeys, NULL, TOTAL_COST,
													  false);
	GsOffer		offer = {.rel = side, .pathkeys = pathkeys};
	ListCell   *lc;

	gs_offer_set_input(root, &offer, side);
	if (!gs_offer_complete(root, &offer))
		return NULL;
	foreach(lc, gs_offer_sorts(root, &offer))
	{
		Path	   *path = lfirst(lc);

		if (best == NULL || gs_compat_more_disabled(best, path) ||
			(path->total_cost < best->total_cost && !gs_compat_more_disabled(path, best)))
		{
			best = path;
			*sorts = true;
		}
	}
	return best;
}

void
gs_join_offer_path(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
				   RelOptInfo *innerrel, JoinType jointype, JoinPathExtraData *extra)
{
	List	   *clauses;
	List	   *outer_keys;
	List	   *inner_keys;
	Path	   *outer;
	Path	   *inner;
	bool		sorts = false;
	MergePath  *join;
	JoinCostWorkspace workspace;

	if (extra->mergeclause_list == NIL ||
		!gs_offer_may_pay(outerrel, outerrel->cheapest_total_path, false) ||
		!gs_offer_may_pay(innerrel, innerrel->cheapest_total_path, false) ||
		!is_mergeable(jointype, extra) || IS_OTHER_REL(joinrel))
		return;
	if (can_hash(extra) && (!exceeds_hash_memory(outerrel) || !exceeds_hash_memory(innerrel)))
		return;
	if (!gs_client_service_ready())
		return;

	/*
	 * PostgreSQL 19's pg_plan_advice raises an error for a custom scan below a join.  It sees plans
	 * before the Sorts of PostgreSQL's own path become GpuSorts.
	 */
	if (GetConfigOption("pg_plan_advice.advice", true, false) != NULL)
		return;

	outer_keys = select_outer_pathkeys_for_merge(root, extra->mergeclause_list, joinrel);
	clauses = find_mergeclauses_for_outer_pathkeys(root, outer_keys, extra->mergeclause_list);
	inner_keys = make_inner_pathkeys_for_merge(root, clauses, outer_keys);
	outer = side_path(root, outerrel, outer_keys, &sorts);
	inner = side_path(root, innerrel, inner_keys, &sorts);
	if (outer == NULL || inner == NULL || !sorts)
		return;
	gs_compat_initial_cost_mergejoin(root, &workspace, jointype, clauses, outer, inner, extra);
	join = gs_compat_create_mergejoin_path(root, joinrel, jointype, &workspace, extra, outer,
										   inner,
										   build_join_pathkeys(root, joinrel, jointype,
															   outer_keys),
										   clauses);
	add_path(joinrel, &join->jpath.path);
}
