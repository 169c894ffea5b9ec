/*-------------------------------------------------------------------------
 *
 * gpusort_path.h
 *	  Offering the planner paths that sort by GpuSort.
 *
 * Wherever sorted rows are of use up to two paths are made (gs_offer()):
 *
 *		[what wants the order ->] GpuSort -> cheapest path
 *		[what wants the order ->] GpuSort -> Gather -> GpuSortFeed (parallel aware) -> partial path
 *
 * In the second one the rows reach the device from all processes at once and
 * none goes through Gather, whose part is to launch and join the workers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUSORT_PATH_H
#define GS_GPUSORT_PATH_H

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"

#include "guc.h"

extern const CustomPathMethods gs_sort_path_methods;
extern const CustomPathMethods gs_feed_path_methods;

typedef struct GsOffer GsOffer;

/* One place where sorted rows are of use.  Structs that begin with it add what a kind needs. */
struct GsOffer
{
	RelOptInfo *rel;			/* that the paths are for */
	List	   *pathkeys;		/* the order */
	Path	   *serial;			/* whose rows are sorted; NULL: no such path is wanted */
	Path	   *partial;		/* the same in workers, to be fed; NULL: none */
	double		rows;			/* that are sorted, */
	double		rows_back;		/* and that GpuSort returns of them */
	Cost		settling;		/* of what the keys do not tell; found by gs_sort_supports() */
	bool		in_order_too;	/* offer it for rows that are in order, too */
	bool		forced;			/* gpusort.force is on, and leaves rel no other paths */

	/* What wants the order, over a GpuSort; NULL: it cannot be made.  Not set: nothing is above it. */
	Path	   *(*above) (PlannerInfo *root, const GsOffer *offer, Path *sorted);

	/* Add the paths to rel's (gpusort_rivals.h). */
	void		(*add) (PlannerInfo *root, const GsOffer *offer, List *paths);
};

/*
 * The question to begin with, as it is cheap: may it be worth while to sort these rows for the relation?
 * forced: gpusort.force counts here, and is on.  Inline, because it is asked of each pair of tables.
 */
static inline bool
gs_offer_may_pay(const RelOptInfo *rel, const Path *input, bool forced)
{
	return input != NULL && (forced || (input->rows >= gs_guc_min_rows && enable_sort)) &&
		input->param_info == NULL && rel->pathlist != NIL && !IS_OTHER_REL(rel);
}

/* The rows to be sorted are those of input_rel, with a column for each of offer->pathkeys; all come back. */
extern void gs_offer_set_input(PlannerInfo *root, GsOffer *offer, RelOptInfo *input_rel);

/* Make the paths, where gpusort can sort so, and add them. */
extern void gs_offer(PlannerInfo *root, GsOffer *offer);

/* The GpuSorts alone, one or two.  That gpusort can sort so is known. */
extern List *gs_offer_sorts(PlannerInfo *root, const GsOffer *offer);

/* Can gpusort sort an offer's rows by its pathkeys?  If their keys are inexact, the offer is told so. */
extern bool gs_sort_supports(PlannerInfo *root, GsOffer *offer);

/* May a plan for this query be run a second time, unseen by the user, if it is not volatile? */
extern bool gs_sort_may_rerun(const Query *parse);

/* The GS_PLAN_FLAG_s that a query without subplans allows. */
extern int	gs_sort_path_flags(const PlannerInfo *root);

#endif							/* GS_GPUSORT_PATH_H */
