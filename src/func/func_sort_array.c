/*-------------------------------------------------------------------------
 *
 * func_sort_array.c
 *	  The SQL function gpu_sort_array().
 *
 * Here it is called like any function, and sorts in the calling process, also if
 * gpusort is not preloaded.  The planner takes calls for many rows out of their expressions,
 * so these never come here (nodes/arrays/gpuarrays_plan.c).
 *
 * Tests: regress/arrays
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/memutils.h"

#include "array/array_sort.h"

PG_FUNCTION_INFO_V1(gpusort_sort_array);

/* The state of a call in an expression, kept from row to row. */
typedef struct SortArrayState
{
	MemoryContext context;		/* of the sorters */
	Oid			element_type;
	GsArraySorter *sorters[2];	/* ascending, descending; NULL: none yet */
} SortArrayState;

static GsArraySorter *
get_sorter(FunctionCallInfo fcinfo, Oid element_type, bool descending)
{
	FmgrInfo   *flinfo = fcinfo->flinfo;
	SortArrayState *state = flinfo->fn_extra;

	if (state == NULL)
	{
		state = MemoryContextAllocZero(flinfo->fn_mcxt, sizeof(SortArrayState));
		state->context = AllocSetContextCreate(flinfo->fn_mcxt, "gpu_sort_array",
											   ALLOCSET_SMALL_SIZES);
		flinfo->fn_extra = state;
	}
	if (state->element_type != element_type)
	{
		state->sorters[0] = state->sorters[1] = NULL;
		MemoryContextReset(state->context);
		state->element_type = element_type;
	}
	if (state->sorters[descending] == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(state->context);

		state->sorters[descending] =
			gs_array_sorter_create(element_type, PG_GET_COLLATION(), descending);
		MemoryContextSwitchTo(old);
	}
	return state->sorters[descending];
}

/* gpu_sort_array(anyarray [, descending boolean [, nulls_first boolean]]) */
Datum
gpusort_sort_array(PG_FUNCTION_ARGS)
{
	Datum		datum = PG_GETARG_DATUM(0);
	bool		descending = PG_NARGS() > 1 && PG_GETARG_BOOL(1);
	bool		nulls_first = PG_NARGS() > 2 ? PG_GETARG_BOOL(2) : descending;
	ArrayType  *array = DatumGetArrayTypeP(datum);
	bool		in_place = (Pointer) array != DatumGetPointer(datum);

	if (gs_array_is_trivial(array))
		PG_RETURN_ARRAYTYPE_P(array);
	PG_RETURN_ARRAYTYPE_P(gs_array_sort(get_sorter(fcinfo, ARR_ELEMTYPE(array), descending),
										array, nulls_first, in_place));
}
