/*-------------------------------------------------------------------------
 *
 * gpuchoice.h
 *	  The node GpuChoice, which has two plans for the same groups, and executes one of them.
 *
 * The outer plan has a GpuSort; the inner plan is PostgreSQL's own, which hashes.  The number of groups
 * decides which is faster, and the planner often only guesses it: an expression without statistics is
 * assumed to be different in every row.  So the planner finds the number from which sorting is faster.
 * The GpuSort looks at its first rows, and declines if they have fewer groups (group_sample.h).  Then it
 * has returned no row yet, and the inner plan is executed.
 *
 *	  gpuchoice_plan.c	where there is a choice: paths and plans
 *	  gpuchoice_exec.c	the executor's part
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUCHOICE_H
#define GS_GPUCHOICE_H

#include "nodes/pathnodes.h"

#include "nodes/common/gpunode.h"
#include "nodes/plan_steps.h"
#include "nodes/sort/gpusort_path.h"

#define GS_CHOICE_NAME	"GpuChoice"

extern const GsNode gs_choice_node;
extern const CustomPathMethods gs_choice_path_methods;

/* May both plans be made, and may the input be begun twice? */
extern bool gs_choice_is_possible(PlannerInfo *root, const AggPath *rival);

/*
 * Paths for few groups.  The first one is a copy of the rival, PostgreSQL's path.  In the second one parallel
 * workers hash in two phases.  PostgreSQL does not make that path if it expects many groups.  final_costs:
 * costs of the second phase.  NULL: not possible.
 */
extern Path *gs_choice_hashing(const AggPath *rival);
extern Path *gs_choice_parallel(PlannerInfo *root, RelOptInfo *rel, const AggPath *rival,
								const AggClauseCosts *final_costs);

/* Make the choice.  sorted, a path above a GpuSort, is faster if there are "from" groups or more. */
extern Path *gs_choice_path(PlannerInfo *root, const GsOffer *offer, Path *sorted, Path *hashing,
							double from);

/*
 * In a finished plan: the choice, or the inner plan, if the outer one must not be begun in vain.
 */
extern Plan *gs_choice_finish(GsStepContext *context, Plan *plan);

#endif							/* GS_GPUCHOICE_H */
