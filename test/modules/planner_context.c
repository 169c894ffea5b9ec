/*-------------------------------------------------------------------------
 *
 * planner_context.c
 *	  For tests: a planner hook that plans in a memory context of its own, and deletes it.
 *
 * The planner's knowledge of a query is overwritten before, as if its memory were in use again.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "nodes/pathnodes.h"
#include "optimizer/planner.h"
#include "utils/memutils.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static PlannerInfo *root_seen = NULL;

static void
see_root(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel, RelOptInfo *output_rel,
		 void *extra)
{
	(void) input_rel;
	(void) output_rel;
	(void) extra;
	if (stage == UPPERREL_FINAL && root->query_level == 1)
		root_seen = root;
}

#if PG_VERSION_NUM >= 190000
#define PARAMS Query *parse, const char *text, int options, ParamListInfo params, ExplainState *es
#define ARGS parse, text, options, params, es
#else
#define PARAMS Query *parse, const char *text, int options, ParamListInfo params
#define ARGS parse, text, options, params
#endif

static PlannedStmt *
plan_in_context(PARAMS)
{
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext own = AllocSetContextCreate(outer, "planner_context", ALLOCSET_DEFAULT_SIZES);
	PlannedStmt *stmt;

	MemoryContextSwitchTo(own);
	stmt = standard_planner(ARGS);
	MemoryContextSwitchTo(outer);
	stmt = copyObject(stmt);
	memset(root_seen, 0x7f, sizeof(PlannerInfo));
	MemoryContextDelete(own);
	return stmt;
}

void
_PG_init(void)
{
	planner_hook = plan_in_context;
	create_upper_paths_hook = see_root;
}
