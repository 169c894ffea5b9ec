/*-------------------------------------------------------------------------
 *
 * gpuchoice_exec.c
 *	  The executor node GpuChoice: returns the rows of one of its two plans.
 *
 * The outer plan is asked for its first row.  If the GpuSort below it has declined then, the inner
 * one is executed.  Once it was chosen, it is executed in all rescans.
 *
 * The inner plan's state is made when the plan is chosen.  A HashAggregate takes memory for all groups that
 * it expects as soon as it has a state, and JIT would compile both plans.  EXPLAIN makes a state that
 * cannot be executed; if the plan is chosen later, it is made anew.
 *
 * Tests: regress/choice
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/explain.h"
#include "executor/executor.h"

#include "nodes/sort/gpuchoice.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_exec.h"

typedef struct GpuChoiceState
{
	CustomScanState css;
	PlanState  *sort;			/* the GpuSort of the outer plan */
	PlanState  *chosen;			/* whose rows are returned; NULL: not known yet */
	int			eflags;
} GpuChoiceState;

/* Make the state of the inner plan. */
static PlanState *
begin_inner(GpuChoiceState *state, int eflags)
{
	CustomScanState *node = &state->css;
	EState	   *estate = node->ss.ps.state;
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);

	innerPlanState(node) = ExecInitNode(innerPlan(node->ss.ps.plan), estate, eflags);
	MemoryContextSwitchTo(old);
	return innerPlanState(node);
}

static void
begin(CustomScanState *node, EState *estate, int eflags)
{
	GpuChoiceState *state = (GpuChoiceState *) node;
	Plan	   *plan = node->ss.ps.plan;

	outerPlanState(node) = ExecInitNode(outerPlan(plan), estate, eflags);
	state->eflags = eflags;
	state->sort = outerPlanState(node);
	while (state->sort && !gs_node_is(state->sort->plan, &gs_sort_node))
		state->sort = outerPlanState(state->sort);
	if (state->sort == NULL)
		elog(ERROR, "malformed %s plan", GS_CHOICE_NAME);

	/* rows are in the slots of one plan or the other */
	node->ss.ps.resultopsset = true;
	node->ss.ps.resultopsfixed = false;
	node->ss.ps.resultops = NULL;
	node->ss.ps.ps_ProjInfo = NULL;
}

static TupleTableSlot *
exec(CustomScanState *node)
{
	GpuChoiceState *state = (GpuChoiceState *) node;

	if (unlikely(state->chosen == NULL))
	{
		TupleTableSlot *slot = ExecProcNode(outerPlanState(node));

		if (!gs_sort_node_declined(state->sort))
		{
			state->chosen = outerPlanState(node);
			return slot;
		}
		(void) ExecShutdownNode(outerPlanState(node));
		ExecEndNode(innerPlanState(node));
		state->chosen = begin_inner(state, state->eflags);
	}
	return ExecProcNode(state->chosen);
}

static void
end(CustomScanState *node)
{
	ExecEndNode(outerPlanState(node));
	ExecEndNode(innerPlanState(node));
}

static void
rescan(CustomScanState *node)
{
	GpuChoiceState *state = (GpuChoiceState *) node;

	if (state->chosen == outerPlanState(node))
		state->chosen = NULL;
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
	if (state->chosen && state->chosen->chgParam == NULL)
		ExecReScan(state->chosen);
}

static void
explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuChoiceState *state = (GpuChoiceState *) node;

	if (es->costs)
		ExplainPropertyInteger("Least Groups", NULL,
							   *gs_plan_setting((CustomScan *) state->sort->plan, GS_PLAN_FEW_GROUPS), es);
	if (es->analyze && state->chosen)
		ExplainPropertyText("Chosen", state->chosen == innerPlanState(node) ? "hash" : "sort", es);
	if (innerPlanState(node) == NULL)
		(void) begin_inner(state, state->eflags | EXEC_FLAG_EXPLAIN_ONLY);
}

const GsNode gs_choice_node = {
	GS_NODE(GS_CHOICE_NAME, GpuChoiceState),
};
