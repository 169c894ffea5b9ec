/*-------------------------------------------------------------------------
 *
 * gpuarrays_ahead.c
 *	  May rows of a plan be read before they are asked for?
 *
 * Rows are read ahead only where all of them will be asked for, so an error in one of them comes
 * anyway.  But row locks and volatile functions below run earlier, compared with what is above.  That
 * matters for row locks, which skip rows that the same command has changed; and for volatile functions
 * where others are above, for example nextval() below and currval() above.
 *
 * Storage that is damaged and memory that is short do not count: PostgreSQL
 * reads pages ahead, too.
 *
 * Tests: regress/arrays_ahead
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/optimizer.h"

#include "nodes/arrays/gpuarrays.h"
#include "plan/plan_walk.h"

/*
 * Is an expression of the node volatile, beside its target list and filter?  PostgreSQL takes no volatile one
 * as an index's condition, nor to hash or to merge by.  For a node that is not known: yes.
 */
static bool
is_volatile_node(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Agg:
		case T_Append:
		case T_BitmapAnd:
		case T_BitmapHeapScan:
		case T_BitmapIndexScan:
		case T_BitmapOr:
		case T_CteScan:
		case T_Gather:
		case T_GatherMerge:
		case T_Group:
		case T_Hash:
		case T_IncrementalSort:
		case T_IndexOnlyScan:
		case T_IndexScan:
		case T_Material:
		case T_Memoize:
		case T_MergeAppend:
		case T_NamedTuplestoreScan:
		case T_ProjectSet:
		case T_RecursiveUnion:
		case T_SeqScan:
		case T_SetOp:
		case T_Sort:
		case T_SubqueryScan:
		case T_TidRangeScan:
		case T_TidScan:
		case T_Unique:
		case T_WorkTableScan:
			return false;
		case T_SampleScan:
			return contain_volatile_functions((Node *) ((const SampleScan *) plan)->tablesample);
		case T_FunctionScan:
			return contain_volatile_functions((Node *) ((const FunctionScan *) plan)->functions);
		case T_ValuesScan:
			return contain_volatile_functions((Node *) ((const ValuesScan *) plan)->values_lists);
		case T_TableFuncScan:
			return contain_volatile_functions((Node *) ((const TableFuncScan *) plan)->tablefunc);
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
			return contain_volatile_functions((Node *) ((const Join *) plan)->joinqual);
		case T_Limit:
			return contain_volatile_functions(((const Limit *) plan)->limitOffset) ||
				contain_volatile_functions(((const Limit *) plan)->limitCount);
		case T_Result:
			return contain_volatile_functions(((const Result *) plan)->resconstantqual);
		case T_WindowAgg:
			return contain_volatile_functions((Node *) ((const WindowAgg *) plan)->runCondition) ||
				contain_volatile_functions(((const WindowAgg *) plan)->startOffset) ||
				contain_volatile_functions(((const WindowAgg *) plan)->endOffset);
		case T_CustomScan:
			return contain_volatile_functions((Node *) ((const CustomScan *) plan)->custom_scan_tlist) ||
				contain_volatile_functions((Node *) ((const CustomScan *) plan)->custom_exprs);
		default:
			return true;
	}
}

typedef struct AllRows
{
	bool		possible;
	bool		is_volatile;
} AllRows;

static void
all_rows_below(Plan **plan, void *context)
{
	AllRows    *below = context;

	below->possible = below->possible &&
		gs_ahead_all_rows(*plan, (Node *) list_make2((*plan)->targetlist, (*plan)->qual),
						  below->is_volatile);
}

bool
gs_ahead_all_rows(Plan *plan, Node *exprs, bool is_volatile)
{
	AllRows		below = {true, is_volatile};

	if (IsA(plan, LockRows) || IsA(plan, ModifyTable))
		return false;
	if (is_volatile && (contain_volatile_functions(exprs) || is_volatile_node(plan)))
		return false;
	gs_plan_visit_children(plan, all_rows_below, &below);
	return below.possible;
}
