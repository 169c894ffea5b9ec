/*-------------------------------------------------------------------------
 *
 * gpusort_order_path.c
 *	  Offering GpuSort for a query's ORDER BY.
 *
 * At UPPERREL_ORDERED GpuSort competes with PostgreSQL's Sort, Gather Merge and paths in the
 * right order.
 *
 * Tests: regress/plans, regress/explain, tap/plans_host
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"

#include "compat.h"
#include "guc.h"
#include "nodes/sort/gpusort_path.h"

/*
 * May the cheapest path be gone?  PostgreSQL adds an input path that is in the right order to ordered_rel
 * itself, and add_path() frees it if a Gather Merge is cheaper.  That cannot happen if the input is
 * no upper relation: there the Gather Merge has competed with the cheapest path before.
 */
static bool
may_be_freed(const RelOptInfo *input_rel, const RelOptInfo *ordered_rel)
{
	return IS_UPPER_REL(input_rel) && input_rel->partial_pathlist != NIL &&
		!list_member_ptr(ordered_rel->pathlist, input_rel->cheapest_total_path);
}

static void
add_ordered_paths(PlannerInfo *root, const GsOffer *offer, List *paths)
{
	PathTarget *target = root->upper_targets[UPPERREL_ORDERED];
	const Path *ours;

	gs_add_fastest(root, offer, paths);
	ours = llast(offer->rel->pathlist);
	/* a set operation has no target of its own for this step */
	if (list_member_ptr(paths, ours) && target && ours->pathtarget != target)
		offer->rel->pathlist = list_make1(apply_projection_to_path(root, offer->rel, unconstify(Path *, ours),
																   target));
}

/* The value of LIMIT or OFFSET, as far as the planner knows it; -1: it does not, 0: there is none. */
static double
estimate_limit(PlannerInfo *root, Node *expr)
{
	Node	   *estimate = expr ? estimate_expression_value(root, expr) : NULL;

	if (estimate == NULL)
		return 0;
	if (!IsA(estimate, Const))
		return -1;
	return ((Const *) estimate)->constisnull ? 0 : (double) DatumGetInt64(((Const *) estimate)->constvalue);
}

/*
 * How many rows of the query's result will be asked for; -1: perhaps all.  root->limit_tuples
 * does not tell where the query has groups, DISTINCT, windows or set operations, since it is about
 * the rows below them.
 */
static double
limit_rows(PlannerInfo *root)
{
	const Query *parse = root->parse;
	double		count = estimate_limit(root, parse->limitCount);
	double		offset = estimate_limit(root, parse->limitOffset);

	if (parse->limitCount == NULL || parse->hasTargetSRFs)
		return root->limit_tuples;
	return count > 0 && offset >= 0 ? count + offset : -1;
}

void
gs_order_offer_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *ordered_rel)
{
	Path	   *cheapest = input_rel->cheapest_total_path;
	GsOffer		offer = {.rel = ordered_rel, .pathkeys = root->sort_pathkeys, .serial = cheapest,
						 .forced = gs_guc_force, .add = add_ordered_paths};

	if (root->parse->sortClause == NIL || root->sort_pathkeys == NIL || cheapest == NULL ||
		may_be_freed(input_rel, ordered_rel) ||
		!gs_offer_may_pay(ordered_rel, cheapest, gs_guc_force) ||
		pathkeys_contained_in(root->sort_pathkeys, cheapest->pathkeys))
		return;
	offer.rows = offer.rows_back = cheapest->rows;
	offer.limit = limit_rows(root);
	if (ordered_rel->consider_parallel && input_rel->partial_pathlist != NIL)
		offer.partial = linitial(input_rel->partial_pathlist);
	gs_offer(root, &offer);
}
