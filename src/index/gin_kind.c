/*-------------------------------------------------------------------------
 *
 * gin_kind.c
 *	  Builds of GIN indexes (index_kind.h).
 *
 * The scan extracts the entries of each value, as ginExtractEntries() does.  It feeds each entry as a tuple
 * with the heap TID (its form: gin_writer.h).  The device sorts the tuples by column, key and TID.  This
 * replaces ginbuild()'s tree in memory, and sorting the entries of each value.
 *
 * Keys are compared by the operator class's function, or else by that of the key type's btree class.  Where
 * both are the same function, src/key can write the keys.  The functions of tsvector and of jsonb compare
 * bytes.
 *
 * If equal keys of a value can differ in bytes, ginExtractEntries() itself is called: it chooses the key that
 * becomes an entry.
 *
 * Tests: regress/index_gin
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/gin_private.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_collation_d.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "compat.h"
#include "index/gin_writer.h"
#include "index/index_kind.h"
#include "index/index_tuple.h"
#include "key/key_types.h"
#include "sort/sort_rows.h"

/* The feed of a GIN index. */
typedef struct GinFeed
{
	GsIndexFeed feed;
	GinState	state;
	MemoryContext scratch;		/* reset after each row */
	GsTupleFormer *formers[INDEX_MAX_KEYS]; /* form each column's entries */
	bool		choose[INDEX_MAX_KEYS]; /* have ginExtractEntries() choose among equal keys of a value */
	int			first_key;		/* feed.key_values[first_key] is the first column's key */
} GinFeed;

static bool
gin_column_order(Relation index, int i, GsIndexOrder *order)
{
	Oid			compare = index_getprocid(index, i + 1, GIN_COMPARE_PROC);
	TypeCacheEntry *entry;

	if (compare == F_GIN_CMP_TSLEXEME || compare == F_GIN_COMPARE_JSONB)
	{
		*order = (GsIndexOrder){TEXTOID, TextLessOperator, C_COLLATION_OID, false};
		return true;
	}
	order->type = TupleDescAttr(RelationGetDescr(index), i)->atttypid;
	entry = lookup_type_cache(order->type, TYPECACHE_LT_OPR | TYPECACHE_CMP_PROC);
	order->sort_operator = entry->lt_opr;
	/* as in initGinState() */
	if (type_is_collatable(order->type))
		order->collation = OidIsValid(index->rd_indcollation[i]) ? index->rd_indcollation[i] :
			DEFAULT_COLLATION_OID;
	return OidIsValid(entry->lt_opr) && (!OidIsValid(compare) || compare == entry->cmp_proc);
}

/* Do equal keys of a column have the same image? */
static bool
equal_image(Relation index, int i)
{
	GsIndexOrder order = {0};
	TypeCacheEntry *entry;

	(void) gin_column_order(index, i, &order);
	entry = lookup_type_cache(order.type, TYPECACHE_BTREE_OPFAMILY);
	return gs_key_equal_image(entry->btree_opf, entry->btree_opintype, order.collation);
}

/* Feed an entry of the i'th column. */
static void
put_entry(GinFeed *gin, int i, ItemPointer tid, Datum key, GinNullCategory category)
{
	int			at = gin->first_key + i;
	Datum		values[2] = {Int16GetDatum(i + 1), key};
	bool		isnull[2] = {false, false};
	IndexTuple	tuple;

	/* a value may have millions of keys */
	CHECK_FOR_INTERRUPTS();
	if (likely(category == GIN_CAT_NORM_KEY))
	{
		int			skip = gin->state.oneCol ? 1 : 0;

		tuple = gs_tuple_former_form(gin->formers[i], values + skip, isnull + skip);
	}
	else
		tuple = GinFormTuple(&gin->state, i + 1, (Datum) 0, category, NULL, 0, 0, true);
	gin->feed.key_values[0] = Int16GetDatum(i + 1); /* if there is one column: overwritten */
	gin->feed.key_values[at] = key;
	gin->feed.key_isnull[at] = category != GIN_CAT_NORM_KEY;
	gs_index_feed_put(&gin->feed, tuple, tid);
	gin->feed.key_isnull[at] = true;
}

/* Feed the entries of a value; mirrors ginExtractEntries(). */
static void
put_value(GinFeed *gin, int i, ItemPointer tid, Datum value, bool isnull)
{
	Datum	   *keys;
	bool	   *nulls = NULL;
	bool		has_null = false;
	int32		n = 0;

	if (gin->choose[i])
	{
		GinNullCategory *categories;

		keys = ginExtractEntries(&gin->state, i + 1, value, isnull, &n, &categories);
		for (int32 k = 0; k < n && gin->feed.status == GS_PUT_OK; k++)
			put_entry(gin, i, tid, keys[k], categories[k]);
		return;
	}
	if (isnull)
	{
		put_entry(gin, i, tid, (Datum) 0, GIN_CAT_NULL_ITEM);
		return;
	}
	keys = (Datum *) DatumGetPointer(FunctionCall3Coll(&gin->state.extractValueFn[i],
													   gin->state.supportCollation[i], value,
													   PointerGetDatum(&n), PointerGetDatum(&nulls)));
	if (keys == NULL || n <= 0)
	{
		put_entry(gin, i, tid, (Datum) 0, GIN_CAT_EMPTY_ITEM);
		return;
	}
	for (int32 k = 0; k < n && gin->feed.status == GS_PUT_OK; k++)
		if (nulls && nulls[k])
			has_null = true;
		else
			put_entry(gin, i, tid, keys[k], GIN_CAT_NORM_KEY);
	if (has_null && gin->feed.status == GS_PUT_OK)
		put_entry(gin, i, tid, (Datum) 0, GIN_CAT_NULL_KEY);
}

static void
gin_put(GsIndexFeed *feed, ItemPointer tid, Datum *values, bool *isnull, bool alive)
{
	GinFeed    *gin = (GinFeed *) feed;
	MemoryContext old = MemoryContextSwitchTo(gin->scratch);

	feed->key_values[gin->first_key + gin->state.origTupdesc->natts] = PointerGetDatum(tid);
	for (int i = 0; i < gin->state.origTupdesc->natts && feed->status == GS_PUT_OK; i++)
		put_value(gin, i, tid, values[i], isnull[i]);
	MemoryContextSwitchTo(old);
	MemoryContextReset(gin->scratch);
}

static GsIndexFeed *
gin_feed_create(Relation index, const IndexInfo *info)
{
	GinFeed    *gin = palloc0(sizeof(GinFeed));
	int			natts;

	gin->feed.put = gin_put;
	gin->scratch = AllocSetContextCreate(CurrentMemoryContext, "gpusort gin entries",
										 ALLOCSET_DEFAULT_SIZES);
	initGinState(&gin->state, index);
	natts = gin->state.origTupdesc->natts;
	gin->first_key = gin->state.oneCol ? 0 : 1;
	for (int i = 0; i < natts; i++)
	{
		gin->choose[i] = !equal_image(index, i);
		gin->formers[i] = gs_tuple_former_create(gin->state.tupdesc[i]);
		gin->feed.key_isnull[gin->first_key + i] = true;
	}
	return &gin->feed;
}

/* Returns GS_FALLBACK_KEYS for inexact keys, with which an entry could come in two groups. */
static GsFallback
gin_write(Relation heap, Relation index, const IndexInfo *info, GsClient *client,
		  const GsKeyDesc *desc, GsPageOutput *output, GsIndexWritten *written)
{
	GsGinWriter *writer = gs_gin_writer_begin(index);
	GsRows	   *rows = gs_rows_of_session(client, true);
	GsFallback	reason = GS_FALLBACK_NONE;
	GsClientStatus status;
	IndexTuple	tuples[GS_INDEX_STREAM_TUPLES];
	const char *row;
	uint32		flags;
	int64		done = 0;

	while ((status = gs_rows_move(rows, true, &row, &flags)) == GS_CLIENT_OK && row != NULL)
	{
		int			n;

		CHECK_FOR_INTERRUPTS();
		if (unlikely(flags & GS_ENTRY_INEXACT))
		{
			reason = GS_FALLBACK_KEYS;
			break;
		}
		n = gs_index_read_page(rows, tuples);
		if (unlikely(!gs_gin_writer_add(writer, tuples, n)))
		{
			gs_key_distrust(desc, -1);
			reason = GS_FALLBACK_ORDER;
			break;
		}
		done += n;
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, done);
	}
	if (status != GS_CLIENT_OK)
		reason = GS_FALLBACK_LOST;
	gs_rows_end(rows);
	if (reason == GS_FALLBACK_NONE)
		written->tuples = gs_gin_writer_finish(writer);
	else
		gs_gin_writer_cancel(writer);
	return reason;
}

const GsIndexKind gs_gin_kind = {
	.access_method = GIN_AM_OID,
	.build = ginbuild,
	.subphases = {GS_COMPAT_GIN_PHASE_SCAN, GS_COMPAT_GIN_PHASE_SORT, GS_COMPAT_GIN_PHASE_WRITE},
	.numbers_columns = true,
	.column_order = gin_column_order,
	.feed_create = gin_feed_create,
	.write = gin_write,
};
