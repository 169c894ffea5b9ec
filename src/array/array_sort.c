/*-------------------------------------------------------------------------
 *
 * array_sort.c
 *	  Sorting the elements of one array (array_sort.h).
 *
 * Three ways, by element type and size:
 *
 *	  - Values of one width that devices know: the bytes are sorted as numbers
 *		in place, by the host device's code.  NULLs are bits in the
 *		array's header and take no place among the values.
 *	  - Other values: by SortSupport, with abbreviated keys where the type has
 *		them, in memory.
 *	  - The same, if that would take more than work_mem: by a tuplesort.
 *
 * The slices of an array of several dimensions are values of the second kind,
 * of the array type.
 *
 * Tests: regress/arrays
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_operator.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"
#include "utils/tuplesort.h"
#include "utils/typcache.h"

#include "array/array_sort.h"
#include "compat.h"
#include "host/host_arrays.h"
#include "key/key_types.h"

/* An order of values: of the elements, or of slices. */
typedef struct ValueOrder
{
	Oid			type;			/* InvalidOid: not set up yet */
	Oid			sort_operator;
	SortSupportData ssup;
	int64		converted;		/* abbreviated keys made so far */
	int64		next_check;		/* the number of keys at which to check whether they are useful */
} ValueOrder;

struct GsArraySorter
{
	MemoryContext context;		/* of the sorter */
	Oid			element_type;
	Oid			collation;
	bool		descending;
	ArrayMetaState meta;
	GsElem		elem;
	ValueOrder	elements;
	ValueOrder	slices;
};

/* A value on its way through the sort. */
typedef struct SortItem
{
	Datum		key;			/* abbreviated, or the value itself */
	Datum		value;
} SortItem;

static inline int
compare_items(const SortItem *a, const SortItem *b, SortSupport ssup)
{
	int			order = ApplySortComparator(a->key, false, b->key, false, ssup);

	if (order == 0 && ssup->abbrev_converter)
		order = ApplySortAbbrevFullComparator(a->value, false, b->value, false, ssup);
	return order;
}

#define ST_SORT sort_items
#define ST_ELEMENT_TYPE SortItem
#define ST_COMPARE(a, b, ssup) compare_items(a, b, ssup)
#define ST_COMPARE_ARG_TYPE SortSupportData
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DECLARE
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * The input type of an operator tells what a type's btree comparison does.  It is oid for regclass and the
 * like, and the base type for domains.
 */
GsElem
gs_array_elem(Oid element_type)
{
	TypeCacheEntry *typentry = lookup_type_cache(element_type, TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);
	Oid			opfamily;
	Oid			opcintype;
	bool		descending;
	const GsKeyType *row;
	GsRefusal	refusal;

	if (!OidIsValid(typentry->lt_opr) || !OidIsValid(typentry->gt_opr) ||
		!gs_compat_ordering_op(typentry->lt_opr, &opfamily, &opcintype, &descending))
		return GS_ELEM_NONE;
	row = gs_key_type_lookup(opcintype, opfamily, &refusal);
	return row ? row->elem : GS_ELEM_NONE;
}

GsArraySorter *
gs_array_sorter_create(Oid element_type, Oid collation, bool descending)
{
	TypeCacheEntry *typentry = lookup_type_cache(element_type, TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);
	GsArraySorter *sorter;

	/* the message of array_sort(), and of a comparison of arrays */
	if (!OidIsValid(typentry->lt_opr) || !OidIsValid(typentry->gt_opr))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("could not identify a comparison function for type %s",
						format_type_be(element_type))));

	sorter = palloc0(sizeof(GsArraySorter));
	sorter->context = CurrentMemoryContext;
	sorter->element_type = element_type;
	sorter->collation = collation;
	sorter->descending = descending;
	sorter->meta.element_type = element_type;
	sorter->meta.typlen = typentry->typlen;
	sorter->meta.typbyval = typentry->typbyval;
	sorter->meta.typalign = typentry->typalign;
	sorter->elem = gs_array_elem(element_type);
	sorter->elements.sort_operator = descending ? typentry->gt_opr : typentry->lt_opr;
	return sorter;
}

/* Returns the order of elements, or of slices. */
static ValueOrder *
order_of_values(GsArraySorter *sorter, bool slices)
{
	ValueOrder *order = slices ? &sorter->slices : &sorter->elements;
	Oid			type = sorter->element_type;
	MemoryContext old;

	if (OidIsValid(order->type))
		return order;
	if (slices)
	{
		type = get_array_type(sorter->element_type);
		if (!OidIsValid(type))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("could not find array type for data type %s",
							format_type_be(sorter->element_type))));
		order->sort_operator = sorter->descending ? ARRAY_GT_OP : ARRAY_LT_OP;
	}
	order->type = type;
	order->next_check = 10;
	order->ssup.ssup_cxt = sorter->context;
	order->ssup.ssup_collation = sorter->collation;
	order->ssup.abbreviate = slices || !sorter->meta.typbyval;
	old = MemoryContextSwitchTo(sorter->context);
	PrepareSortSupportFromOrderingOp(order->sort_operator, &order->ssup);
	MemoryContextSwitchTo(old);
	return order;
}

/* Stops making abbreviated keys, as tuplesort does if they decide too little. */
static void
end_abbreviation(ValueOrder *order, SortItem *items, int n)
{
	order->ssup.comparator = order->ssup.abbrev_full_comparator;
	order->ssup.abbrev_converter = NULL;
	order->ssup.abbrev_abort = NULL;
	order->ssup.abbrev_full_comparator = NULL;
	for (int i = 0; i < n; i++)
		items[i].key = items[i].value;
}

static void
sort_in_memory(ValueOrder *order, Datum *values, int n)
{
	SortItem   *items = MemoryContextAllocHuge(CurrentMemoryContext, (Size) n * sizeof(SortItem));

	for (int i = 0; i < n; i++)
	{
		items[i].value = items[i].key = values[i];
		if (order->ssup.abbrev_converter == NULL)
			continue;
		items[i].key = order->ssup.abbrev_converter(values[i], &order->ssup);
		if (++order->converted >= order->next_check)
		{
			order->next_check *= 2;
			if (order->ssup.abbrev_abort((int) Min(order->converted, INT_MAX), &order->ssup))
				end_abbreviation(order, items, i + 1);
		}
	}
	sort_items(items, n, &order->ssup);
	for (int i = 0; i < n; i++)
		values[i] = items[i].value;
	pfree(items);
}

/* Returns copies of values that are passed by reference. */
static void
sort_by_tuplesort(const GsArraySorter *sorter, const ValueOrder *order, Datum *values, int n)
{
	Tuplesortstate *tuplesort = tuplesort_begin_datum(order->type, order->sort_operator,
													  sorter->collation, false, work_mem, NULL,
													  TUPLESORT_NONE);
	bool		isnull;

	for (int i = 0; i < n; i++)
		tuplesort_putdatum(tuplesort, values[i], false);
	tuplesort_performsort(tuplesort);
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!gs_compat_tuplesort_getdatum(tuplesort, &values[i], &isnull))
			elog(ERROR, "gpusort lost elements of an array");
	}
	tuplesort_end(tuplesort);
}

static void
sort_values(const GsArraySorter *sorter, ValueOrder *order, Datum *values, int n)
{
	if ((Size) n * sizeof(SortItem) <= work_mem * (Size) 1024)
		sort_in_memory(order, values, n);
	else
		sort_by_tuplesort(sorter, order, values, n);
}

/* Sorts an array of one dimension by comparing its elements. */
static ArrayType *
sort_elements(GsArraySorter *sorter, ArrayType *array, bool nulls_first)
{
	ValueOrder *order = order_of_values(sorter, false);
	Datum	   *values;
	bool	   *nulls;
	int			n;
	int			n_nulls = 0;
	int			first;
	ArrayType  *result;

	deconstruct_array(array, sorter->element_type, sorter->meta.typlen, sorter->meta.typbyval,
					  sorter->meta.typalign, &values, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		if (nulls[i])
			n_nulls++;
		else
			values[i - n_nulls] = values[i];
	}

	/* now the other values are in front, and NULLs are only counted */
	sort_values(sorter, order, values, n - n_nulls);
	first = nulls_first ? n_nulls : 0;
	if (nulls_first)
		memmove(values + n_nulls, values, (n - n_nulls) * sizeof(Datum));
	for (int i = 0; i < n; i++)
		nulls[i] = i < first || i >= first + n - n_nulls;

	result = construct_md_array(values, nulls, 1, ARR_DIMS(array), ARR_LBOUND(array),
								sorter->element_type, sorter->meta.typlen, sorter->meta.typbyval,
								sorter->meta.typalign);
	pfree(values);
	pfree(nulls);
	return result;
}

/* Sorts an array of several dimensions by its first dimension. */
static ArrayType *
sort_slices(GsArraySorter *sorter, ArrayType *array)
{
	ValueOrder *order = order_of_values(sorter, true);
	int			n = ARR_DIMS(array)[0];
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpusort array slices",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Datum	   *values = MemoryContextAllocHuge(context, (Size) n * sizeof(Datum));
	ArrayIterator iterator = array_create_iterator(array, ARR_NDIM(array) - 1, &sorter->meta);
	ArrayBuildStateArr *build = NULL;
	ArrayType  *result;
	int		   *bounds;
	bool		isnull;

	for (int i = 0; i < n; i++)
		if (!array_iterate(iterator, &values[i], &isnull))
			elog(ERROR, "gpusort found fewer slices than the array has");
	array_free_iterator(iterator);
	sort_values(sorter, order, values, n);
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		build = accumArrayResultArr(build, values[i], false, order->type, context);
	}
	MemoryContextSwitchTo(old);
	result = DatumGetArrayTypeP(makeArrayResultArr(build, CurrentMemoryContext, false));
	bounds = ARR_LBOUND(result);
	bounds[0] = ARR_LBOUND(array)[0];
	MemoryContextDelete(context);
	return result;
}

int
gs_array_place_nulls(ArrayType *array, bool nulls_first)
{
	int			n = ARR_DIMS(array)[0];
	uint8	   *bitmap = ARR_NULLBITMAP(array);
	int			bytes = (n + 7) / 8;
	int			values = 0;

	/* bits beyond the last element may be anything */
	for (int i = 0; i < n / 8; i++)
		values += pg_number_of_ones[bitmap[i]];
	if (n % 8)
		values += pg_number_of_ones[bitmap[n / 8] & ((1 << n % 8) - 1)];

	if (nulls_first)
	{
		memset(bitmap, 0, bytes);
		for (int i = n - values; i < n && i % 8 != 0; i++)
			bitmap[i / 8] |= 1 << i % 8;
		for (int i = (n - values + 7) / 8; i < bytes; i++)
			bitmap[i] = 0xff;
		if (n % 8)
			bitmap[n / 8] &= (1 << n % 8) - 1;
	}
	else
	{
		memset(bitmap, 0, bytes);
		memset(bitmap, 0xff, values / 8);
		if (values % 8)
			bitmap[values / 8] = (1 << values % 8) - 1;
	}
	return values;
}

static void
check_interrupts(void)
{
	CHECK_FOR_INTERRUPTS();
}

/* Sorts the values of an array of one dimension in place. */
static void
sort_bytes(const GsArraySorter *sorter, ArrayType *array, bool nulls_first)
{
	int			n = ARR_DIMS(array)[0];
	void	   *scratch;

	if (ARR_HASNULL(array))
		n = gs_array_place_nulls(array, nulls_first);
	scratch = MemoryContextAllocHuge(CurrentMemoryContext,
									 (Size) n * gs_elem_bytes(sorter->elem));
	gs_host_sort_elements(sorter->elem, sorter->descending, ARR_DATA_PTR(array), n, scratch,
						  check_interrupts);
	pfree(scratch);
}

ArrayType *
gs_array_sort(GsArraySorter *sorter, ArrayType *array, bool nulls_first, bool in_place)
{
	if (gs_array_is_trivial(array))
		return array;
	Assert(ARR_ELEMTYPE(array) == sorter->element_type);
	if (ARR_NDIM(array) > 1)
		return sort_slices(sorter, array);
	if (sorter->elem == GS_ELEM_NONE)
		return sort_elements(sorter, array, nulls_first);
	if (!in_place)
	{
		ArrayType  *copy = palloc(VARSIZE(array));

		memcpy(copy, array, VARSIZE(array));
		array = copy;
	}
	sort_bytes(sorter, array, nulls_first);
	return array;
}
