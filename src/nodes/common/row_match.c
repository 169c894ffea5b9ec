/*-------------------------------------------------------------------------
 *
 * row_match.c
 *	  How the rows that a GpuWindow reads are related (row_match.h).
 *
 * Rows are compared by the equality operators that WindowAgg would use (nodeWindowAgg.c):
 * first by the columns of PARTITION BY and ORDER BY together, and only where they differ by
 * those of PARTITION BY alone.  A row is compared with one of the peers or the partition
 * before, of which there is a copy.
 *
 * Most rows need no comparison.  A GpuSort knows of most rows, before it returns the next
 * one, whether that has the same key (gs_reader_next_row()).  If all columns to be compared
 * are keys of the sort, rows with equal keys are equal in them; if they are all of its keys, rows
 * with different keys differ.  What is left is, where a row is not a peer, whether it is
 * in the same partition.  So a row is copied only if it is the first one of a partition, or the last
 * one that the GpuSort knows of.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "nodes/sort/gpusort.h"
#include "nodes/window/gpuwindow.h"
#include "nodes/common/row_match.h"

/* What the copied row is to the one that was returned last. */
typedef enum CopyIs
{
	COPY_IS_OTHER,				/* nothing, or there is none */
	COPY_IS_IN_PARTITION,
	COPY_IS_PEER
} CopyIs;

typedef struct ImageColumn
{
	AttrNumber	attno;
	bool		byval;
	int16		len;
} ImageColumn;

/* A comparison of rows. */
typedef struct Match
{
	ExprState  *expr;
	int			n_images;		/* > 0: instead, they are equal if these columns are bit by bit */
	ImageColumn *images;
} Match;

struct GsRelations
{
	const GsReader *reader;
	ExprContext *econtext;
	Match	   *same_peers;		/* NULL: all rows of a partition are */
	Match	   *same_partition; /* NULL: there is one partition only */

	/* of rows with equal keys, and with different ones, where the child is a GpuSort */
	bool		equal_are_peers;
	bool		others_are_not;

	bool		begun;			/* a row was returned */
	TupleTableSlot *last;		/* it */
	GsNextRow	next;			/* of the row behind it, if the keys tell anything */
	CopyIs		copy_is;
	TupleTableSlot *copy;		/* in buffer */
	MinimalTuple buffer;
	Size		buffer_bytes;
	MemoryContext context;		/* the buffer's */
	TupleTableSlot *ahead;
};

/* The columns to compare: attribute numbers, equality operators, collations. */
typedef struct Columns
{
	List	   *attnos;
	List	   *operators;
	List	   *collations;
} Columns;

/* Is it an equality of common types whose values are equal if they are so bit by bit? */
static bool
compares_images(Oid operator, Oid collation)
{
	switch (get_opcode(operator))
	{
		case F_INT2EQ:
		case F_INT4EQ:
		case F_INT8EQ:
		case F_OIDEQ:
		case F_BOOLEQ:
		case F_DATE_EQ:
		case F_TIMESTAMP_EQ:
		case F_TIMESTAMPTZ_EQ:
		case F_ENUM_EQ:
		case F_UUID_EQ:
			return true;
		case F_TEXTEQ:
			return OidIsValid(collation) && get_collation_isdeterministic(collation);
		default:
			return false;
	}
}

/* NULL: there are no columns. */
static Match *
make_match(CustomScanState *node, const Columns *columns)
{
	TupleDesc	tupdesc = ExecGetResultType(outerPlanState(node));
	int			n = list_length(columns->attnos);
	Match	   *match = palloc0(sizeof(Match));

	if (n == 0)
		return NULL;
	match->images = palloc(n * sizeof(ImageColumn));
	for (int i = 0; i < n; i++)
		if (compares_images(list_nth_oid(columns->operators, i), list_nth_oid(columns->collations, i)))
		{
			ImageColumn *image = &match->images[match->n_images++];
			AttrNumber	attno = list_nth_int(columns->attnos, i);
			Form_pg_attribute attr = TupleDescAttr(tupdesc, attno - 1);

			image->attno = attno;
			image->byval = attr->attbyval;
			image->len = attr->attlen;
		}
	if (match->n_images < n)
		match->n_images = 0;
	match->expr = gs_node_match_rows(node, columns->attnos, columns->operators, columns->collations);
	return match;
}

/* What do the keys of a GpuSort tell about the columns? */
static void
find_keys(GsRelations *relations, const Columns *columns)
{
	const CustomScan *plan = (const CustomScan *) relations->reader->child->plan;
	int			n = list_length(columns->attnos);
	Bitmapset  *found = NULL;
	GsSortKeys	keys;
	int			flags;

	if (n == 0 || !relations->reader->is_sort)
		return;
	gs_plan_read(plan, &keys, &flags);
	for (int i = 0; i < n; i++)
	{
		int			key = gs_plan_find_key(plan, &keys, list_nth_int(columns->attnos, i),
										   list_nth_oid(columns->operators, i),
										   list_nth_oid(columns->collations, i));

		if (key < 0)
			return;
		found = bms_add_member(found, key);
	}
	relations->equal_are_peers = true;
	relations->others_are_not = bms_num_members(found) == keys.ncols;
}

GsRelations *
gs_relations_create(CustomScanState *node, const GsReader *reader, List *const *lists, bool peers)
{
	GsRelations *relations = palloc0(sizeof(GsRelations));
	EState	   *estate = node->ss.ps.state;
	TupleDesc	tupdesc;
	Columns		columns = {lists[GS_WINDOW_PART_ATTNOS], lists[GS_WINDOW_PART_OPERATORS],
	lists[GS_WINDOW_PART_COLLATIONS]};

	relations->reader = reader;
	relations->econtext = CreateExprContext(estate);
	relations->context = CurrentMemoryContext;
	tupdesc = ExecGetResultType(reader->child);
	relations->copy = ExecInitExtraTupleSlot(estate, tupdesc, &TTSOpsMinimalTuple);
	relations->ahead = ExecInitExtraTupleSlot(estate, tupdesc, &TTSOpsMinimalTuple);
	relations->same_partition = make_match(node, &columns);
	if (peers && lists[GS_WINDOW_ORDER_ATTNOS] != NIL)
	{
		columns.attnos = list_concat_copy(lists[GS_WINDOW_ORDER_ATTNOS], columns.attnos);
		columns.operators = list_concat_copy(lists[GS_WINDOW_ORDER_OPERATORS], columns.operators);
		columns.collations = list_concat_copy(lists[GS_WINDOW_ORDER_COLLATIONS],
											  columns.collations);
		relations->same_peers = make_match(node, &columns);
	}
	find_keys(relations, &columns);
	gs_relations_reset(relations);
	return relations;
}

void
gs_relations_reset(GsRelations *relations)
{
	relations->begun = false;
	relations->next = GS_NEXT_ROW_UNKNOWN;
	relations->copy_is = COPY_IS_OTHER;
	ExecClearTuple(relations->copy);
	ExecClearTuple(relations->ahead);
}

bool
gs_relations_has_partitions(const GsRelations *relations)
{
	return relations->same_partition != NULL;
}

bool
gs_relations_has_peers(const GsRelations *relations)
{
	return relations->same_peers != NULL;
}

static void
keep_copy(GsRelations *relations, TupleTableSlot *slot)
{
	bool		must_free;
	MinimalTuple tuple = ExecFetchSlotMinimalTuple(slot, &must_free);

	ExecClearTuple(relations->copy);
	if (tuple->t_len > relations->buffer_bytes)
	{
		Size		bytes = Max((Size) tuple->t_len, Min(2 * relations->buffer_bytes, MaxAllocSize));

		if (relations->buffer)
			pfree(relations->buffer);
		relations->buffer = NULL;
		relations->buffer_bytes = 0;
		relations->buffer = MemoryContextAllocHuge(relations->context, bytes);
		relations->buffer_bytes = bytes;
	}
	memcpy(relations->buffer, tuple, tuple->t_len);
	if (must_free)
		pfree(tuple);
	ExecStoreMinimalTuple(relations->buffer, relations->copy, false);
	relations->copy_is = COPY_IS_PEER;
}

static bool
images_match(const Match *match, TupleTableSlot *a, TupleTableSlot *b)
{
	for (int i = 0; i < match->n_images; i++)
	{
		const ImageColumn *column = &match->images[i];
		bool		a_isnull;
		bool		b_isnull;
		Datum		a_value = slot_getattr(a, column->attno, &a_isnull);
		Datum		b_value = slot_getattr(b, column->attno, &b_isnull);

		if (a_isnull != b_isnull)
			return false;
		if (!a_isnull && !(column->byval ? a_value == b_value :
						   datum_image_eq(a_value, b_value, false, column->len)))
			return false;
	}
	return true;
}

static bool
rows_match(const GsRelations *relations, const Match *match, TupleTableSlot *a,
		   TupleTableSlot *b)
{
	if (match->n_images > 0)
		return images_match(match, a, b);
	relations->econtext->ecxt_innertuple = a;
	relations->econtext->ecxt_outertuple = b;
	return ExecQualAndReset(match->expr, relations->econtext);
}

/* Do rows that differ in their keys tell so that they are in other partitions? */
static bool
others_are_in_other_partitions(const GsRelations *relations)
{
	return relations->others_are_not && relations->same_peers == NULL;
}

/* Whether it is a peer, where that is not known; else the partition. */
static GsRowRelation
compare(const GsRelations *relations, TupleTableSlot *slot)
{
	bool		others = relations->next == GS_NEXT_ROW_OTHER && relations->others_are_not;

	if (relations->next == GS_NEXT_ROW_EQUAL)
		return GS_SAME_PEERS;
	if (others && others_are_in_other_partitions(relations))
		return GS_OTHER_PARTITION;
	if (!others && relations->same_peers &&
		rows_match(relations, relations->same_peers, relations->copy, slot))
		return GS_SAME_PEERS;
	if (relations->same_partition &&
		!rows_match(relations, relations->same_partition, relations->copy, slot))
		return GS_OTHER_PARTITION;
	return relations->same_peers ? GS_SAME_PARTITION : GS_SAME_PEERS;
}

/* Keep what the next row will be compared with. */
static void
prepare_next(GsRelations *relations, TupleTableSlot *slot)
{
	CopyIs		needed = relations->same_peers ? COPY_IS_PEER : COPY_IS_IN_PARTITION;

	relations->next = relations->equal_are_peers ? gs_reader_next_row(relations->reader) :
		GS_NEXT_ROW_UNKNOWN;
	if (relations->next == GS_NEXT_ROW_EQUAL)
		return;
	if (relations->next == GS_NEXT_ROW_OTHER && relations->others_are_not)
	{
		if (relations->same_partition == NULL || others_are_in_other_partitions(relations))
			return;
		needed = COPY_IS_IN_PARTITION;
	}
	if (relations->copy_is < needed)
		keep_copy(relations, slot);
}

GsRowRelation
gs_relations_read(GsRelations *relations, TupleTableSlot *slot)
{
	GsRowRelation relation = GS_OTHER_PARTITION;
	bool		compared = relations->same_peers || relations->same_partition;

	if (relations->begun)
		relation = compared ? compare(relations, slot) : GS_SAME_PEERS;
	relations->begun = true;
	relations->last = slot;
	if (relation == GS_OTHER_PARTITION)
		relations->copy_is = COPY_IS_OTHER;
	else if (relation == GS_SAME_PARTITION && relations->copy_is == COPY_IS_PEER)
		relations->copy_is = COPY_IS_IN_PARTITION;
	if (compared)
		prepare_next(relations, slot);
	return relation;
}

bool
gs_relations_count_peers(const GsRelations *relations, uint64 *count)
{
	*count = 0;
	if (!relations->others_are_not)
		return false;
	return relations->next == GS_NEXT_ROW_OTHER ||
		gs_reader_count_equal(relations->reader, count);
}

bool
gs_relations_look_ahead(GsRelations *relations, uint64 n, bool *same_partition)
{
	*same_partition = true;
	if (!gs_reader_look_ahead(relations->reader, n, relations->ahead))
		return false;
	if (relations->same_partition && !(n == 1 && relations->next == GS_NEXT_ROW_EQUAL))
		*same_partition = rows_match(relations, relations->same_partition, relations->last,
									 relations->ahead);
	return true;
}
