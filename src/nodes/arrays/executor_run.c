/*-------------------------------------------------------------------------
 *
 * executor_run.c
 *	  How many rows the executor was asked for (executor_run.h).
 *
 * ExecutorRun() does not tell the nodes.  So its hook keeps what it was called
 * with, for as long as the call takes; calls nest, where functions run queries.
 * Rows that are not asked for by ExecutorRun() are asked for one by one, as far
 * as anybody knows: those of a WITH query that ExecutorFinish() completes.
 *
 * Tests: regress/arrays_ahead
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"

#include "compat.h"
#include "nodes/arrays/executor_run.h"

typedef struct Run
{
	const struct Run *outer;
	const EState *estate;
	bool		to_end;
	bool		once;			/* it will not be run again */
} Run;

static ExecutorRun_hook_type previous_run = NULL;
static const Run *innermost = NULL;

static void
run(gs_compat_executor_run_params)
{
	const Run	this_run = {innermost, query->estate, count == 0, gs_compat_executor_run_once};

	PG_TRY();
	{
		innermost = &this_run;
		if (previous_run)
			previous_run(gs_compat_executor_run_args);
		else
			standard_ExecutorRun(gs_compat_executor_run_args);
	}
	PG_FINALLY();
	{
		innermost = this_run.outer;
	}
	PG_END_TRY();
}

bool
gs_executor_runs_to_end(const EState *estate)
{
	return innermost != NULL && innermost->estate == estate && innermost->to_end;
}

bool
gs_executor_runs_once(const EState *estate)
{
	return gs_executor_runs_to_end(estate) && innermost->once;
}

void
gs_executor_run_init(void)
{
	previous_run = ExecutorRun_hook;
	ExecutorRun_hook = run;
}
