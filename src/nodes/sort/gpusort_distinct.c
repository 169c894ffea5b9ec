/*-------------------------------------------------------------------------
 *
 * gpusort_distinct.c
 *	  Offering GpuSort paths for a query's DISTINCT.
 *
 * At UPPERREL_DISTINCT up to two paths are added, and compete by cost with those that
 * PostgreSQL made, most of which hash:
 *
 *		Unique -> GpuSort -> cheapest path
 *		Unique -> GpuSort -> Gather -> GpuSortFeed (parallel aware) -> partial path
 *
 * In the finished plan GpuSort is told to drop equal rows (gpusort_keep.c), so few come
 * back where few are different; the cost is that of these.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"

#include "compat.h"
#include "guc.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_rivals.h"
#include "service/service_client.h"

void
gs_distinct_offer_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *distinct_rel)
{
	const Query *parse = root->parse;
	Path	   *cheapest = input_rel->cheapest_total_path;
	List	   *pathkeys = root->distinct_pathkeys;
	double		rows;
	double		rows_back;
	double		groups;
	List	   *paths = NIL;
	ListCell   *lc;

	if (pathkeys == NIL || cheapest == NULL || cheapest->param_info != NULL ||
		distinct_rel->pathlist == NIL)
		return;
	if (!gs_guc_force && (!enable_sort || cheapest->rows < gs_guc_min_rows))
		return;
	rows = cheapest->rows;
	groups = ((Path *) linitial(distinct_rel->pathlist))->rows;
	rows_back = Min(groups, rows);
	if (parse->hasDistinctOn && list_length(pathkeys) < list_length(root->sort_pathkeys))
	{
		/* the order says which row is the first one of its group; more are returned */
		pathkeys = root->sort_pathkeys;
		rows_back = rows;
	}

	if (pathkeys_contained_in(pathkeys, cheapest->pathkeys) || !gs_client_service_ready() ||
		!gs_sort_supports(pathkeys))
		return;
	foreach(lc, gs_sort_input_paths(root, distinct_rel, input_rel, pathkeys, rows_back))
		paths = lappend(paths, gs_compat_unique_path(root, distinct_rel, lfirst(lc),
													 list_length(root->distinct_pathkeys), groups));
	if (gs_guc_force)
		distinct_rel->pathlist = NIL;
	gs_add_grouped_paths(root, distinct_rel, paths, rows,
						 get_sortgrouplist_exprs(parse->distinctClause, root->processed_tlist),
						 root->sort_pathkeys, NULL);
}
