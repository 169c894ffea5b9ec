/*-------------------------------------------------------------------------
 *
 * childless_scan.c
 *	  For tests: scans of another extension, CustomPaths that have no path below.
 *
 * Once the library is loaded, all tables whose names begin with "childless" are scanned so.
 * The scan returns the rows as a sequential scan does.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "nodes/extensible.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

typedef struct ChildlessState
{
	CustomScanState css;
	SysScanDesc scan;
} ChildlessState;

static set_rel_pathlist_hook_type previous_hook = NULL;

/* ---- executor ---- */

static void
begin(CustomScanState *node, EState *estate, int eflags)
{
	ChildlessState *state = (ChildlessState *) node;

	(void) eflags;
	state->scan = systable_beginscan(node->ss.ss_currentRelation, InvalidOid, false,
									 estate->es_snapshot, 0, NULL);
}

static TupleTableSlot *
next_row(ScanState *node)
{
	HeapTuple	tuple = systable_getnext(((ChildlessState *) node)->scan);

	if (!HeapTupleIsValid(tuple))
		return ExecClearTuple(node->ss_ScanTupleSlot);
	ExecForceStoreHeapTuple(tuple, node->ss_ScanTupleSlot, false);
	return node->ss_ScanTupleSlot;
}

static bool
recheck_row(ScanState *node, TupleTableSlot *slot)
{
	(void) node;
	(void) slot;
	return true;
}

static TupleTableSlot *
exec(CustomScanState *node)
{
	return ExecScan(&node->ss, next_row, recheck_row);
}

static void
end(CustomScanState *node)
{
	systable_endscan(((ChildlessState *) node)->scan);
}

static void
rescan(CustomScanState *node)
{
	end(node);
	begin(node, node->ss.ps.state, 0);
	ExecScanReScan(&node->ss);
}

static const CustomExecMethods exec_methods = {
	.CustomName = "ChildlessScan",
	.BeginCustomScan = begin,
	.ExecCustomScan = exec,
	.EndCustomScan = end,
	.ReScanCustomScan = rescan,
};

static Node *
create_state(CustomScan *plan)
{
	ChildlessState *state = palloc0(sizeof(ChildlessState));

	(void) plan;
	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &exec_methods;
	return (Node *) state;
}

static const CustomScanMethods scan_methods = {
	.CustomName = "ChildlessScan",
	.CreateCustomScanState = create_state,
};

/* ---- planner ---- */

static Plan *
plan_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
		  List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);

	(void) root;
	(void) path;
	(void) custom_plans;
	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = extract_actual_clauses(clauses, false);
	scan->scan.scanrelid = rel->relid;
	scan->methods = &scan_methods;
	return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {
	.CustomName = "ChildlessScan",
	.PlanCustomPath = plan_path,
};

/* Take the place of all other scans. */
static void
set_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	CustomPath *path;

	if (previous_hook)
		previous_hook(root, rel, rti, rte);
	if (rte->rtekind != RTE_RELATION || rel->lateral_relids != NULL || rel->pathlist == NIL ||
		strncmp(get_rel_name(rte->relid), "childless", strlen("childless")) != 0)
		return;
	path = makeNode(CustomPath);
	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = rel->reltarget;
	path->path.rows = rel->rows;
	path->path.total_cost = ((const Path *) linitial(rel->pathlist))->total_cost;
	path->methods = &path_methods;
	rel->pathlist = list_make1(path);
	rel->partial_pathlist = NIL;
}

void
_PG_init(void)
{
	RegisterCustomScanMethods(&scan_methods);
	previous_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = set_pathlist;
}
