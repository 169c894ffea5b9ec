/*-------------------------------------------------------------------------
 *
 * gpuchoice_plan.c
 *	  Where a plan with GpuSort has PostgreSQL's own plan beside it (gpuchoice.h).
 *
 *		GpuChoice
 *		  -> GroupAggregate			or Unique, and what stands for them
 *			   -> GpuSort
 *		  -> HashAggregate			perhaps in two phases
 *
 * A path that sorts groups becomes a choice if three things hold (gpusort_rivals.c): PostgreSQL has a path
 * that hashes the groups, the number of groups is a guess, and that number decides which path is faster.
 *
 * Both plans are made from the same paths of the tables.  So there is no choice above a path that must
 * become a plan only once.  Such a path is that of a subquery that was planned by itself:
 * set_plan_references() would shift the numbers of its partitions twice.  Paths of extensions and foreign
 * tables may be others.  And the input must cost little before its first row, because it may be begun in
 * vain.
 *
 * Both plans return the same columns.  EXPLAIN looks for them in the outer plan.
 *
 * Tests: regress/choice
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"

#include "guc.h"
#include "nodes/sort/gpuchoice.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_path.h"
#include "plan/plan_walk.h"

/* The input may cost such a part of the rival's whole plan before it returns a row. */
#define MAX_STARTUP_PART	0.05

/* The GpuSort that rows come from. */
static CustomScan *
find_sort(Plan *plan)
{
	while (plan != NULL && !gs_node_is(plan, &gs_sort_node))
		plan = outerPlan(plan);
	return (CustomScan *) plan;
}

static bool
has_custom_path(const List *paths)
{
	ListCell   *lc;

	foreach(lc, paths)
		if (IsA(lfirst(lc), CustomPath))
			return true;
	return false;
}

/* May plans be made twice of a relation's paths? */
static bool
may_plan_twice(const RelOptInfo *rel)
{
	return (rel->reloptkind == RELOPT_JOINREL || rel->reloptkind == RELOPT_OTHER_JOINREL ||
			rel->rtekind == RTE_RELATION || rel->rtekind == RTE_VALUES || rel->rtekind == RTE_CTE ||
			rel->rtekind == RTE_RESULT) &&
		rel->subroot == NULL && rel->fdwroutine == NULL && !has_custom_path(rel->pathlist) &&
		!has_custom_path(rel->partial_pathlist);
}

/* The cost of a rival's input before its first row. */
static Cost
startup_below(const Path *path)
{
	while (IsA(path, AggPath) || IsA(path, GatherPath) || IsA(path, ProjectionPath))
	{
		if (IsA(path, AggPath))
			path = ((const AggPath *) path)->subpath;
		else if (IsA(path, GatherPath))
			path = ((const GatherPath *) path)->subpath;
		else
			path = ((const ProjectionPath *) path)->subpath;
	}
	return path->startup_cost;
}

bool
gs_choice_is_possible(PlannerInfo *root, const AggPath *rival)
{
	ListCell   *lc;

	if (gs_guc_sorts_only || !gs_sort_may_rerun(root->parse) ||
		gs_query_is_volatile(root->parse, GS_VOLATILE_BESIDE_SCANS) ||
		startup_below(&rival->path) > MAX_STARTUP_PART * rival->path.total_cost)
		return false;
	for (int i = 1; i < root->simple_rel_array_size; i++)
		if (root->simple_rel_array[i] && !may_plan_twice(root->simple_rel_array[i]))
			return false;
	foreach(lc, root->join_rel_list)
		if (!may_plan_twice(lfirst(lc)))
			return false;
	return true;
}

static AggPath *
copy_agg(const AggPath *path)
{
	AggPath    *copy = makeNode(AggPath);

	*copy = *path;
	return copy;
}

Path *
gs_choice_hashing(const AggPath *rival)
{
	/* the node that takes the rival's place may free it */
	return &copy_agg(rival)->path;
}

Path *
gs_choice_parallel(PlannerInfo *root, RelOptInfo *rel, const AggPath *rival,
				   const AggClauseCosts *final_costs)
{
	RelOptInfo *partial = fetch_upper_rel(root, UPPERREL_PARTIAL_GROUP_AGG, rel->relids);
	ListCell   *lc;

	if (!final_costs || !rel->consider_parallel || rival->aggsplit != AGGSPLIT_SIMPLE)
		return NULL;
	foreach(lc, partial->partial_pathlist)
		if (IsA(lfirst(lc), AggPath) && lfirst_node(AggPath, lc)->aggstrategy == AGG_HASHED)
		{
			Path	   *first = &copy_agg(lfirst(lc))->path;
			Path	   *gather = (Path *) create_gather_path(root, partial, first, partial->reltarget, NULL,
															 NULL);

			return (Path *) create_agg_path(root, rel, gather, rival->path.pathtarget, AGG_HASHED,
											AGGSPLIT_FINAL_DESERIAL, rival->groupClause, rival->qual,
											final_costs, rival->numGroups);
		}
	return NULL;
}

/* GpuChoice hashes fewer groups than this.  So the hash tables are made for this number. */
static void
expect_groups(Path *hashing, double groups)
{
	AggPath    *agg = (AggPath *) hashing;

	agg->numGroups = groups;
	if (IsA(agg->subpath, GatherPath) && agg->aggsplit == AGGSPLIT_FINAL_DESERIAL)
		expect_groups(((GatherPath *) agg->subpath)->subpath, groups);
}

Path *
gs_choice_path(PlannerInfo *root, const GsOffer *offer, Path *sorted, Path *hashing, double from)
{
	CustomPath *choice = makeNode(CustomPath);

	expect_groups(hashing, from);
	if (offer->wanted != NIL && pathkeys_contained_in(offer->wanted, sorted->pathkeys))
	{
		hashing = (Path *) create_sort_path(root, offer->rel, hashing, sorted->pathkeys, -1.0);
		choice->path.pathkeys = sorted->pathkeys;
	}
	choice->path.pathtype = T_CustomScan;
	choice->path.parent = offer->rel;
	choice->path.pathtarget = sorted->pathtarget;
	choice->path.rows = sorted->rows;
	choice->path.startup_cost = sorted->startup_cost;
	choice->path.total_cost = sorted->total_cost;
	gs_compat_inherit_disabled(&choice->path, sorted);
	choice->custom_paths = list_make2(sorted, hashing);
	choice->custom_private = list_make2_int((int) Min(offer->rows, INT_MAX), (int) Min(from, INT_MAX));
	choice->methods = &gs_choice_path_methods;
	return &choice->path;
}

static Plan *
plan_choice_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
				 List *children)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *sorted = linitial(children);

	*gs_plan_setting(find_sort(sorted), GS_PLAN_GROUPED_ROWS) = linitial_int(path->custom_private);
	*gs_plan_setting(find_sort(sorted), GS_PLAN_FEW_GROUPS) = lsecond_int(path->custom_private);
	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.lefttree = sorted;
	/* it may have expressions of the tables in common with the other one */
	scan->scan.plan.righttree = (Plan *) copyObjectImpl(lsecond(children));
	scan->custom_scan_tlist = (List *) copyObjectImpl(sorted->targetlist);
	scan->methods = &gs_choice_node.scan;
	return &scan->scan.plan;
}

Plan *
gs_choice_finish(GsStepContext *context, Plan *plan)
{
	Plan	   *hashed = innerPlan(plan);
	CustomScan *sort;

	if (!gs_node_is(plan, &gs_choice_node))
		return plan;
	gs_node_finish_columns((CustomScan *) plan);
	sort = find_sort(outerPlan(plan));
	if (sort && *gs_plan_setting(sort, GS_PLAN_RERUN))
		return plan;
	apply_tlist_labeling(hashed->targetlist, plan->targetlist);
	hashed->initPlan = list_concat(hashed->initPlan, plan->initPlan);
	hashed->extParam = bms_copy(plan->extParam);
	hashed->allParam = bms_copy(plan->allParam);
	return hashed;
}

const CustomPathMethods gs_choice_path_methods = {
	.CustomName = GS_CHOICE_NAME,
	.PlanCustomPath = plan_choice_path,
};
