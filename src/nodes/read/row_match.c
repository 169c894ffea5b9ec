/*-------------------------------------------------------------------------
 *
 * row_match.c
 *	  Comparing each row with the one before (row_match.h).
 *
 * Rows are compared by the equality operators that PostgreSQL's node would use: first by the
 * columns of partition and order together and, if these differ, by those of the partition
 * alone.  If equal values of a column always have the same bits, the bits are compared.  A row is
 * compared with a copy of one of the peers, or of a row of the partition before.  Unlike
 * execTuplesMatchPrepare() this does not check the right to execute the operators' functions: some
 * of PostgreSQL's nodes do (gs_columns_check()), and others do not.
 *
 * Most rows need no comparison.  For most rows, a GpuSort knows whether the next row has the same
 * key before it returns that row (gs_reader_next_row()).  If all compared columns are keys of the
 * sort, rows with equal keys are equal in them.  If they are all of its keys, rows with different
 * keys differ.  One question remains for a row that is no peer: is it in the same partition?  So a
 * row is copied only if it is the first one of a partition, or the last one that the GpuSort
 * knows of.
 *
 * Tests: regress/aggregates_grouped, regress/windows_functions
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "key/key_types.h"
#include "nodes/read/row_match.h"
#include "nodes/sort/gpusort.h"

typedef struct ComparedColumn
{
	AttrNumber	attno;
	bool		byval;
	int16		len;
	Oid			collation;
	FmgrInfo	equality;		/* fn_oid InvalidOid: compare the bits */
} ComparedColumn;

/* A comparison of rows. */
struct RowComparison
{
	int			n;
	bool		calls;			/* some column needs a function */
	ComparedColumn columns[FLEXIBLE_ARRAY_MEMBER];
};

/* Is it the equality of the type's default operator class, and have equal values always the same bits? */
static bool
compares_images(Oid type, Oid equality, Oid collation)
{
	const TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_EQ_OPR | TYPECACHE_BTREE_OPFAMILY);

	return entry->eq_opr == equality &&
		gs_key_equal_image(entry->btree_opf, entry->btree_opintype, collation);
}

/* Makes a comparison by order's columns and then by partition's; NULL: there are no columns. */
static RowComparison *
make_comparison(CustomScanState *node, const GsColumns *order, const GsColumns *partition)
{
	TupleDesc	tupdesc = ExecGetResultType(outerPlanState(node));
	int			n = order->n + partition->n;
	RowComparison *comparison;

	if (n == 0)
		return NULL;
	comparison = palloc0(offsetof(RowComparison, columns) + n * sizeof(ComparedColumn));
	comparison->n = n;
	for (int i = 0; i < n; i++)
	{
		const GsColumns *columns = i < order->n ? order : partition;
		int			number = i < order->n ? i : i - order->n;
		ComparedColumn *column = &comparison->columns[i];
		Form_pg_attribute attr = TupleDescAttr(tupdesc, columns->attnos[number] - 1);

		column->attno = columns->attnos[number];
		column->byval = attr->attbyval;
		column->len = attr->attlen;
		column->collation = columns->collations[number];
		if (compares_images(attr->atttypid, columns->operators[number], column->collation))
			continue;
		fmgr_info(get_opcode(columns->operators[number]), &column->equality);
		comparison->calls = true;
	}
	return comparison;
}

/* What do the keys of a GpuSort tell about the columns? */
static void
find_keys(GsRowMatcher *matcher, const GsColumns *order, const GsColumns *partition)
{
	const CustomScan *plan = (const CustomScan *) matcher->reader->child->plan;
	Bitmapset  *found = NULL;

	matcher->equal_are_peers = matcher->reader->is_sort && order->n + partition->n > 0 &&
		gs_plan_find_keys(plan, order, &found, &matcher->others_are_not) &&
		gs_plan_find_keys(plan, partition, &found, &matcher->others_are_not);
	matcher->others_are_not &= matcher->equal_are_peers;
}

GsRowMatcher *
gs_row_matcher_create(CustomScanState *node, const GsReader *reader, const GsColumns *partition,
					  const GsColumns *order)
{
	GsRowMatcher *matcher = palloc0(sizeof(GsRowMatcher));
	EState	   *estate = node->ss.ps.state;
	TupleDesc	tupdesc = ExecGetResultType(reader->child);
	const GsColumns none = {0};

	matcher->reader = reader;
	matcher->scratch = AllocSetContextCreate(CurrentMemoryContext, "gpusort comparison", ALLOCSET_SMALL_SIZES);
	matcher->copy = ExecInitExtraTupleSlot(estate, tupdesc, &TTSOpsMinimalTuple);
	matcher->same_partition = make_comparison(node, &none, partition);
	if (order == NULL)
		order = &none;
	if (order->n > 0)
		matcher->same_peers = make_comparison(node, order, partition);
	find_keys(matcher, order, partition);
	matcher->keys_are_groups = matcher->others_are_not && matcher->same_peers == NULL;
	gs_row_matcher_reset(matcher);
	return matcher;
}

void
gs_row_matcher_reset(GsRowMatcher *matcher)
{
	matcher->begun = false;
	matcher->next = GS_NEXT_ROW_UNKNOWN;
	matcher->copy_is = COPY_IS_OTHER;
	ExecClearTuple(matcher->copy);
}

bool
gs_row_matcher_has_partitions(const GsRowMatcher *matcher)
{
	return matcher->same_partition != NULL;
}

static bool
values_match(ComparedColumn *column, Datum a, Datum b)
{
	LOCAL_FCINFO(fcinfo, 2);
	Datum		result;

	if (!OidIsValid(column->equality.fn_oid))
		return column->byval ? a == b : datum_image_eq(a, b, false, column->len);
	InitFunctionCallInfoData(*fcinfo, &column->equality, 2, column->collation, NULL, NULL);
	fcinfo->args[0] = (NullableDatum){a, false};
	fcinfo->args[1] = (NullableDatum){b, false};
	result = FunctionCallInvoke(fcinfo);
	return !fcinfo->isnull && DatumGetBool(result);
}

static bool
rows_match(const GsRowMatcher *matcher, RowComparison *comparison, TupleTableSlot *a,
		   TupleTableSlot *b)
{
	MemoryContext old = comparison->calls ? MemoryContextSwitchTo(matcher->scratch) : NULL;
	bool		match = true;

	/* in sorted rows the last column differs most often */
	for (int i = comparison->n - 1; i >= 0 && match; i--)
	{
		ComparedColumn *column = &comparison->columns[i];
		bool		a_isnull;
		bool		b_isnull;
		Datum		a_value = slot_getattr(a, column->attno, &a_isnull);
		Datum		b_value = slot_getattr(b, column->attno, &b_isnull);

		match = a_isnull == b_isnull && (a_isnull || values_match(column, a_value, b_value));
	}
	if (old)
	{
		MemoryContextSwitchTo(old);
		MemoryContextReset(matcher->scratch);
	}
	return match;
}

/* Compare a row by the columns of peers, if the keys do not tell, and by those of the partition. */
static GsRowMatch
compare(const GsRowMatcher *matcher, TupleTableSlot *slot)
{
	bool		others = matcher->next == GS_NEXT_ROW_OTHER && matcher->others_are_not;

	if (matcher->next == GS_NEXT_ROW_EQUAL)
		return GS_SAME_PEERS;
	if (others && matcher->same_peers == NULL)
		return GS_OTHER_PARTITION;
	if (!others && matcher->same_peers &&
		rows_match(matcher, matcher->same_peers, matcher->copy, slot))
		return GS_SAME_PEERS;
	if (matcher->same_partition &&
		!rows_match(matcher, matcher->same_partition, matcher->copy, slot))
		return GS_OTHER_PARTITION;
	return matcher->same_peers ? GS_SAME_PARTITION : GS_SAME_PEERS;
}

/* Keep a row that the next one will be compared with. */
void
gs_row_matcher_prepare(GsRowMatcher *matcher, TupleTableSlot *slot)
{
	GsCopyIs	needed = matcher->same_peers ? COPY_IS_PEER : COPY_IS_IN_PARTITION;

	if (matcher->next == GS_NEXT_ROW_EQUAL)
		return;
	if (matcher->next == GS_NEXT_ROW_OTHER && matcher->others_are_not)
	{
		if (matcher->same_partition == NULL || matcher->same_peers == NULL)
			return;
		needed = COPY_IS_IN_PARTITION;
	}
	if (matcher->copy_is < needed)
	{
		ExecCopySlot(matcher->copy, slot);
		matcher->copy_is = COPY_IS_PEER;
	}
}

GsRowMatch
gs_row_matcher_compare(GsRowMatcher *matcher, TupleTableSlot *slot)
{
	GsRowMatch	match = GS_OTHER_PARTITION;
	bool		compared = matcher->same_peers || matcher->same_partition;

	if (matcher->begun)
		match = compared ? compare(matcher, slot) : GS_SAME_PEERS;
	matcher->begun = true;
	if (match == GS_OTHER_PARTITION)
		matcher->copy_is = COPY_IS_OTHER;
	else if (match == GS_SAME_PARTITION && matcher->copy_is == COPY_IS_PEER)
		matcher->copy_is = COPY_IS_IN_PARTITION;
	if (matcher->equal_are_peers)
		matcher->next = gs_reader_next_row(matcher->reader);
	if (compared)
		gs_row_matcher_prepare(matcher, slot);
	return match;
}
