/*-------------------------------------------------------------------------
 *
 * index_tuple.c
 *	  The tuples of an index: forming them, and reading them when the device has sorted them
 *	  (index_tuple.h).
 *
 * Forming
 *	  index_form_tuple() forms tuples with values that must be fetched or compressed, and tuples that may be
 *	  too large.
 *
 * Settling
 *	  Keys end with the TID, so only inexact keys can be equal.  Tuples with equal keys, ties, are
 *	  neighbours, and each is marked inexact.  A tuplesort, of the kind that PostgreSQL uses for index builds,
 *	  sorts them.
 *
 * Uniqueness
 *	  Equal keys are neighbours, except that exempt (dead) tuples may stand between them.  So each
 *	  live tuple is compared with the last live one.  Images are compared if the operator class
 *	  says that equal values have equal images; else the values, by the index's
 *	  comparison function.
 *
 *	  PostgreSQL reports the first two equal keys that its sort happens to compare, gpusort
 *	  the first two in the index.
 *
 * Tests: regress/index_builds, regress/index_page_feed, regress/index_collations
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/nbtree.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"
#include "utils/tuplesort.h"

#include "chunk/tuple_form.h"
#include "compat.h"
#include "index/index_tuple.h"
#include "key/key_types.h"

/*
 * Forming
 */

struct GsTupleFormer
{
	TupleDesc	tupdesc;
	MemoryContext scratch;		/* holds the last tuple that index_form_tuple() formed */
	IndexTuple	tuple;			/* room for the largest tuple */
	GsFormColumn *columns;
};

GsTupleFormer *
gs_tuple_former_create(TupleDesc tupdesc)
{
	GsTupleFormer *former = palloc(sizeof(GsTupleFormer));

	former->tupdesc = tupdesc;
	former->scratch = AllocSetContextCreate(CurrentMemoryContext, "gpusort index tuple",
											ALLOCSET_DEFAULT_SIZES);
	former->tuple = palloc(MAXALIGN(INDEX_SIZE_MASK + 1));
	former->columns = gs_form_columns(tupdesc);
	return former;
}

static IndexTuple
form_by_postgres(GsTupleFormer *former, Datum *values, bool *isnull)
{
	MemoryContext old;
	IndexTuple	tuple;

	MemoryContextReset(former->scratch);
	old = MemoryContextSwitchTo(former->scratch);
	tuple = index_form_tuple(former->tupdesc, values, isnull);
	MemoryContextSwitchTo(old);
	return tuple;
}

IndexTuple
gs_tuple_former_form(GsTupleFormer *former, Datum *values, bool *isnull)
{
	IndexTuple	tuple = former->tuple;
	uint8	   *nulls = NULL;
	unsigned short info = 0;
	uint16		infomask = 0;
	char	   *at;

	for (int i = 0; i < former->tupdesc->natts && nulls == NULL; i++)
		if (unlikely(isnull[i]))
			nulls = (uint8 *) tuple + sizeof(IndexTupleData);
	if (nulls)
	{
		info = INDEX_NULL_MASK;
		memset(nulls, 0, IndexInfoFindDataOffset(info) - sizeof(IndexTupleData));
	}
	at = gs_form_data(former->tupdesc, former->columns, values, isnull, nulls, true,
					  (char *) tuple + IndexInfoFindDataOffset(info),
					  (char *) tuple + INDEX_SIZE_MASK, &infomask);
	if (unlikely(at == NULL))
		return form_by_postgres(former, values, isnull);
	if (infomask & HEAP_HASVARWIDTH)
		info |= INDEX_VAR_MASK;
	at = gs_form_pad(at, MAXIMUM_ALIGNOF);
	tuple->t_info = info | (at - (char *) tuple);
	return tuple;
}

/*
 * Reading
 */

/* How the values of a key column are compared. */
typedef struct ComparedColumn
{
	SortSupportData order;
	bool		image;			/* values are equal if their images are */
	bool		byval;
	int16		len;
} ComparedColumn;

struct GsIndexStream
{
	Relation	heap;
	Relation	index;
	TupleDesc	tupdesc;
	GsRows	   *rows;
	MemoryContext context;		/* holds all of this */

	/* settling */
	Tuplesortstate *settling;	/* the ties that are being returned; NULL: none */
	IndexTuple	first;			/* copy of the first of the ties */
	ItemPointerData *exempt;	/* those of the ties that are exempt, in order */
	int			n_exempt;
	int			max_exempt;
	uint64		settled;

	/* comparison */
	bool		unique;
	bool		nulls_not_distinct;
	const GsKeyDesc *desc;
	uint32		sampled;		/* tuples looked at for the sample, if keys hold libc text */
	GsFallback	reason;
	int			nkeys;
	ComparedColumn *columns;
	MemoryContext scratch;		/* reset after each comparison */
	IndexTuple	last;			/* copy of the last tuple not exempt */
	bool		has_last;
};

static void
init_comparison(GsIndexStream *stream)
{
	Relation	index = stream->index;

	stream->nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	stream->columns = palloc0(stream->nkeys * sizeof(ComparedColumn));
	stream->last = palloc(MAXALIGN(INDEX_SIZE_MASK + 1));
	stream->scratch = AllocSetContextCreate(stream->context, "gpusort index comparison",
											ALLOCSET_DEFAULT_SIZES);
	for (int i = 0; i < stream->nkeys; i++)
	{
		ComparedColumn *column = &stream->columns[i];
		Form_pg_attribute attr = TupleDescAttr(stream->tupdesc, i);

		column->order.ssup_cxt = stream->context;
		column->order.ssup_collation = index->rd_indcollation[i];
		column->order.ssup_nulls_first = (index->rd_indoption[i] & INDOPTION_NULLS_FIRST) != 0;
		column->order.ssup_attno = i + 1;
		gs_compat_index_sort_support(index, (index->rd_indoption[i] & INDOPTION_DESC) != 0, &column->order);
		column->byval = attr->attbyval;
		column->len = attr->attlen;
		column->image = gs_key_equal_image(index->rd_opfamily[i], index->rd_opcintype[i],
										   index->rd_indcollation[i]);
	}
}

GsIndexStream *
gs_index_stream_begin(Relation heap, Relation index, const IndexInfo *info, GsClient *client,
					  const GsKeyDesc *desc)
{
	GsIndexStream *stream = palloc0(sizeof(GsIndexStream));

	stream->heap = heap;
	stream->index = index;
	stream->tupdesc = RelationGetDescr(index);
	stream->rows = gs_rows_of_session(client, true);
	stream->context = CurrentMemoryContext;
	stream->first = palloc(MAXALIGN(INDEX_SIZE_MASK + 1));
	stream->desc = desc;
	stream->reason = GS_FALLBACK_LOST;
	stream->unique = info->ii_Unique;
	stream->nulls_not_distinct = info->ii_NullsNotDistinct;
	if (stream->unique || desc->has_libc)
		init_comparison(stream);
	return stream;
}

static int
compare_tids(const void *a, const void *b)
{
	return ItemPointerCompare((ItemPointer) a, (ItemPointer) b);
}

static void
note_exempt(GsIndexStream *stream, IndexTuple tuple)
{
	if (stream->n_exempt == stream->max_exempt)
	{
		int			more = Max(64, stream->max_exempt * 2);

		if (stream->exempt)
			stream->exempt = repalloc_huge(stream->exempt, more * sizeof(ItemPointerData));
		else
			stream->exempt = MemoryContextAlloc(stream->context, more * sizeof(ItemPointerData));
		stream->max_exempt = more;
	}
	stream->exempt[stream->n_exempt++] = tuple->t_tid;
}

/* The tuplesort forms new tuples, which lose the mark of exempt ones.  So their TIDs are noted. */
static void
put_settling(GsIndexStream *stream, IndexTuple tuple)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	if (tuple->t_info & GS_INDEX_TUPLE_EXEMPT)
		note_exempt(stream, tuple);
	index_deform_tuple(tuple, stream->tupdesc, values, isnull);
	tuplesort_putindextuplevalues(stream->settling, stream->index, &tuple->t_tid, values, isnull);
	stream->settled++;
}

/*
 * Sort an inexact tuple and its ties, which follow it, and set *tuple to NULL.  If there are no ties, *tuple
 * is a copy of the tuple.
 */
static GsClientStatus
settle_ties(GsIndexStream *stream, IndexTuple *tuple)
{
	GsClientStatus status;
	MemoryContext old;
	uint32		flags;

	/* looking at the next row may overwrite this one */
	memcpy(stream->first, *tuple, IndexTupleSize(*tuple));
	*tuple = stream->first;
	status = gs_rows_peek(stream->rows, &flags);
	if (status != GS_CLIENT_OK || !(flags & GS_ENTRY_TIE))
		return status;

	old = MemoryContextSwitchTo(stream->context);
	stream->n_exempt = 0;
	stream->settling = tuplesort_begin_index_btree(stream->heap, stream->index, false, false,
												   maintenance_work_mem, NULL, TUPLESORT_NONE);
	MemoryContextSwitchTo(old);
	put_settling(stream, stream->first);
	while (flags & GS_ENTRY_TIE)
	{
		const char *row;

		CHECK_FOR_INTERRUPTS();
		status = gs_rows_move(stream->rows, true, &row, &flags);
		if (status != GS_CLIENT_OK)
			return status;
		put_settling(stream, (IndexTuple) row);
		status = gs_rows_peek(stream->rows, &flags);
		if (status != GS_CLIENT_OK)
			return status;
	}
	tuplesort_performsort(stream->settling);
	if (stream->n_exempt > 0)
		qsort(stream->exempt, stream->n_exempt, sizeof(ItemPointerData), compare_tids);
	*tuple = NULL;
	return GS_CLIENT_OK;
}

/* Returns the next of the settled ties; NULL: there are no more. */
static IndexTuple
next_settled(GsIndexStream *stream)
{
	IndexTuple	tuple = tuplesort_getindextuple(stream->settling, true);

	if (tuple == NULL)
	{
		tuplesort_end(stream->settling);
		stream->settling = NULL;
	}
	else if (stream->n_exempt > 0 &&
			 bsearch(&tuple->t_tid, stream->exempt, stream->n_exempt, sizeof(ItemPointerData),
					 compare_tids) != NULL)
		tuple->t_info |= GS_INDEX_TUPLE_EXEMPT;
	return tuple;
}

/*
 * A quick test: do two tuples differ in their first column?  False: unknown.  Short varlenas are never
 * compressed, so their images are equal only if their bytes are.
 */
static inline bool
plainly_different(const GsIndexStream *stream, IndexTuple a, IndexTuple b)
{
	const ComparedColumn *column = &stream->columns[0];
	const char *a_value = (char *) a + IndexInfoFindDataOffset(0);
	const char *b_value = (char *) b + IndexInfoFindDataOffset(0);

	if (!column->image || ((a->t_info | b->t_info) & INDEX_NULL_MASK))
		return false;
	if (column->len > 0)
		return memcmp(a_value, b_value, column->len) != 0;
	return column->len == -1 && VARATT_IS_1B(a_value) && VARATT_IS_1B(b_value) &&
		(VARSIZE_1B(a_value) != VARSIZE_1B(b_value) ||
		 memcmp(a_value, b_value, VARSIZE_1B(a_value)) != 0);
}

static int
compare_values(GsIndexStream *stream, ComparedColumn *column, Datum a, bool a_null, Datum b, bool b_null)
{
	MemoryContext old = MemoryContextSwitchTo(stream->scratch);
	int			order = ApplySortComparator(a, a_null, b, b_null, &column->order);

	MemoryContextSwitchTo(old);
	MemoryContextReset(stream->scratch);
	return order;
}

/* Does a tuple belong behind the next one?  Sets *key, from 0, to the column that tells. */
static bool
is_behind(GsIndexStream *stream, IndexTuple tuple, IndexTuple next, int *key)
{
	for (int i = 0; i < stream->nkeys; i++)
	{
		bool		a_null;
		bool		b_null;
		Datum		a = index_getattr(tuple, i + 1, stream->tupdesc, &a_null);
		Datum		b = index_getattr(next, i + 1, stream->tupdesc, &b_null);
		int			order = compare_values(stream, &stream->columns[i], a, a_null, b, b_null);

		*key = i;
		if (order != 0)
			return order > 0;
	}
	return false;
}

/* Compares a sample of tuples with the tuples before them.  Returns false if one is out of order. */
static bool
check_sample(GsIndexStream *stream, IndexTuple *tuples, int n)
{
	int			key;

	for (int i = 0; (i = gs_key_sample(&stream->sampled, i + 1, n)) < n;)
		if (is_behind(stream, tuples[i - 1], tuples[i], &key))
		{
			gs_key_distrust(stream->desc, key);
			stream->reason = GS_FALLBACK_ORDER;
			return false;
		}
	return true;
}

/* Do two tuples violate uniqueness? */
static bool
keys_equal(GsIndexStream *stream, IndexTuple a, IndexTuple b)
{
	for (int i = 0; i < stream->nkeys; i++)
	{
		ComparedColumn *column = &stream->columns[i];
		bool		a_null;
		bool		b_null;
		Datum		a_value = index_getattr(a, i + 1, stream->tupdesc, &a_null);
		Datum		b_value = index_getattr(b, i + 1, stream->tupdesc, &b_null);

		if (a_null != b_null)
			return false;
		if (a_null)
		{
			if (!stream->nulls_not_distinct)
				return false;
		}
		else if (column->image)
		{
			if (!datum_image_eq(a_value, b_value, column->byval, column->len))
				return false;
		}
		else if (compare_values(stream, column, a_value, false, b_value, false) != 0)
			return false;
	}
	return true;
}

/* Raise the error of comparetup_index_btree(), with the values of the first of two tuples. */
static void
report_duplicate(GsIndexStream *stream, IndexTuple tuple)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	char	   *description;

	index_deform_tuple(tuple, stream->tupdesc, values, isnull);
	description = BuildIndexValueDescription(stream->index, values, isnull);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("could not create unique index \"%s\"",
					RelationGetRelationName(stream->index)),
			 description ? errdetail("Key %s is duplicated.", description) :
			 errdetail("Duplicate keys exist."),
			 errtableconstraint(stream->heap, RelationGetRelationName(stream->index))));
}

static void
check_unique(GsIndexStream *stream, IndexTuple *tuples, int n)
{
	IndexTuple	last = stream->has_last ? stream->last : NULL;

	for (int i = 0; i < n; i++)
	{
		if (unlikely(tuples[i]->t_info & GS_INDEX_TUPLE_EXEMPT))
		{
			tuples[i]->t_info &= ~GS_INDEX_TUPLE_EXEMPT;
			continue;
		}
		if (last != NULL && !plainly_different(stream, last, tuples[i]) &&
			unlikely(keys_equal(stream, last, tuples[i])))
			report_duplicate(stream, last);
		last = tuples[i];
	}
	if (last != NULL && last != stream->last)
	{
		memcpy(stream->last, last, IndexTupleSize(last));
		stream->has_last = true;
	}
}

int
gs_index_read_page(GsRows *rows, IndexTuple *tuples)
{
	uint32		bytes;
	uint32		first;
	const char *page = gs_rows_page(rows, &bytes, &first);
	int			max = Min(gs_rows_left_in_page(rows), GS_INDEX_STREAM_TUPLES);
	int			n;

	for (n = 0; n < max; n++)
	{
		uint32		entry = gs_page_entry(page, bytes, first + n);

		if (unlikely(entry & GS_ENTRY_INEXACT))
			break;
		tuples[n] = (IndexTuple) gs_page_row(page, entry);
	}
	gs_rows_advance(rows, n - 1);
	return n;
}

GsClientStatus
gs_index_stream_next(GsIndexStream *stream, IndexTuple *tuples, int *n)
{
	GsClientStatus status;
	const char *row;
	uint32		flags;

	*n = 0;
	tuples[0] = stream->settling ? next_settled(stream) : NULL;
	if (likely(tuples[0] == NULL))
	{
		status = gs_rows_move(stream->rows, true, &row, &flags);
		if (unlikely(status != GS_CLIENT_OK || row == NULL))
			return status;
		if (likely(!(flags & GS_ENTRY_INEXACT)))
			*n = gs_index_read_page(stream->rows, tuples);
		else
		{
			tuples[0] = (IndexTuple) row;
			status = settle_ties(stream, tuples);
			if (status != GS_CLIENT_OK)
				return status;
			if (tuples[0] == NULL)
				tuples[0] = next_settled(stream);
		}
	}
	*n = Max(*n, 1);
	if (stream->desc->has_libc && unlikely(!check_sample(stream, tuples, *n)))
		return GS_CLIENT_LOST;
	if (stream->unique)
		check_unique(stream, tuples, *n);
	return GS_CLIENT_OK;
}

GsFallback
gs_index_stream_reason(const GsIndexStream *stream)
{
	return stream->reason;
}

uint64
gs_index_stream_end(GsIndexStream *stream)
{
	if (stream->settling)
		tuplesort_end(stream->settling);
	gs_rows_end(stream->rows);
	return stream->settled;
}
