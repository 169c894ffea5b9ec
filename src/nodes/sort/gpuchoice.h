/*-------------------------------------------------------------------------
 *
 * gpuchoice.h
 *	  The node GpuChoice, which has two plans for the same groups, and executes one of them.
 *
 * The outer plan has a GpuSort; the inner plan is PostgreSQL's own, which hashes.  The number of groups
 * decides which is faster.  The planner often only guesses it: an expression without statistics is
 * assumed to be different in every row.  The GpuSort looks at its first rows, and declines if they
 * have few groups (group_sample.h).  Then it has returned no row yet, and the inner plan is executed.
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

#define GS_CHOICE_NAME	"GpuChoice"

extern const GsNode gs_choice_node;
extern const CustomPathMethods gs_choice_path_methods;

/* May both plans be made, and may the input be begun twice? */
extern bool gs_choice_is_possible(PlannerInfo *root, const AggPath *rival);

/*
 * The path for few groups: the rival, a relation's cheapest path; or parallel workers that hash in two
 * phases.  PostgreSQL does not make the latter if it expects many groups.  final_costs: costs of the second
 * phase; NULL: use the rival.
 */
extern Path *gs_choice_few(PlannerInfo *root, RelOptInfo *rel, const AggPath *rival,
						   const AggClauseCosts *final_costs);

/*
 * Make the choice between sorted, a path above a GpuSort of this many rows, and few.  wanted: the order that
 * the query's next step needs; NIL: none.
 */
extern Path *gs_choice_path(PlannerInfo *root, RelOptInfo *rel, Path *sorted, double rows,
							Path *few, List *wanted);

/*
 * In a finished plan: the choice, or the inner plan, if the outer one must not be begun in vain.
 */
extern Plan *gs_choice_finish(GsStepContext *context, Plan *plan);

#endif							/* GS_GPUCHOICE_H */
