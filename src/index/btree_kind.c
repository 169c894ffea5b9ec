/*-------------------------------------------------------------------------
 *
 * btree_kind.c
 *	  Builds of btree indexes (index_kind.h).
 *
 * The scan feeds the index's tuples, as they will lie in it.  Their keys end with the heap TID, so no two
 * are equal.  The feed marks a tuple that is exempt from uniqueness (GS_INDEX_TUPLE_EXEMPT).
 *
 * Tests: regress/index_builds, regress/index_collations
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "index/btree_writer.h"
#include "index/index_kind.h"
#include "index/index_tuple.h"

/*
 * An operator may be in several families, each with its own comparison function.  Keys follow the family that
 * gs_compat_ordering_op() finds.  That must be the index's.
 */
static bool
btree_column_order(Relation index, int i, GsIndexOrder *order)
{
	Oid			opfamily = index->rd_opfamily[i];
	Oid			opcintype = index->rd_opcintype[i];
	bool		descending = (index->rd_indoption[i] & INDOPTION_DESC) != 0;
	Oid			found_family;
	Oid			found_type;
	bool		found_descending;

	/* for polymorphic types, such as arrays and enums, the column has the real type */
	order->type = opcintype;
	if (IsPolymorphicType(opcintype) || opcintype == RECORDOID)
		order->type = TupleDescAttr(RelationGetDescr(index), i)->atttypid;
	order->collation = index->rd_indcollation[i];
	order->nulls_first = (index->rd_indoption[i] & INDOPTION_NULLS_FIRST) != 0;
	order->sort_operator = get_opfamily_member(opfamily, opcintype, opcintype,
											   descending ? BTGreaterStrategyNumber : BTLessStrategyNumber);
	return OidIsValid(order->sort_operator) &&
		gs_compat_ordering_op(order->sort_operator, &found_family, &found_type, &found_descending) &&
		found_family == opfamily && found_type == opcintype && found_descending == descending;
}

/* The feed of a btree. */
typedef struct BtreeFeed
{
	GsIndexFeed feed;
	GsTupleFormer *former;
	int			nkeys;
	bool		unique;
} BtreeFeed;

static void
btree_put(GsIndexFeed *feed, ItemPointer tid, Datum *values, bool *isnull, bool alive)
{
	BtreeFeed  *btree = (BtreeFeed *) feed;
	IndexTuple	tuple;

	if (unlikely(feed->status != GS_PUT_OK))
		return;
	tuple = gs_tuple_former_form(btree->former, values, isnull);
	if (unlikely(!alive) && btree->unique)
		tuple->t_info |= GS_INDEX_TUPLE_EXEMPT;

	for (int i = 0; i < btree->nkeys; i++)
	{
		feed->key_values[i] = values[i];
		feed->key_isnull[i] = isnull[i];
	}
	feed->key_values[btree->nkeys] = PointerGetDatum(tid);
	gs_index_feed_put(feed, tuple, tid);
}

static GsIndexFeed *
btree_feed_create(Relation index, const IndexInfo *info)
{
	BtreeFeed  *btree = palloc0(sizeof(BtreeFeed));

	btree->feed.put = btree_put;
	btree->former = gs_tuple_former_create(RelationGetDescr(index));
	btree->nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	btree->unique = info->ii_Unique;
	return &btree->feed;
}

static GsFallback
btree_write(Relation heap, Relation index, const IndexInfo *info, GsClient *client,
			const GsKeyDesc *desc, GsPageOutput *output, GsIndexWritten *written)
{
	GsBtreeWriter *writer = gs_btree_writer_begin(heap, index, info->ii_Unique, output);
	GsIndexStream *stream = gs_index_stream_begin(heap, index, info, client, desc);
	GsClientStatus status;
	IndexTuple	tuples[GS_INDEX_STREAM_TUPLES];
	int			n;

	while ((status = gs_index_stream_next(stream, tuples, &n)) == GS_CLIENT_OK && n > 0)
	{
		gs_btree_writer_add(writer, tuples, n);
		written->tuples += n;
		CHECK_FOR_INTERRUPTS();
	}
	written->settled = gs_index_stream_end(stream);
	if (status != GS_CLIENT_OK)
		return gs_index_stream_reason(stream);	/* the writer is freed with its memory context */
	gs_btree_writer_finish(writer);
	return GS_FALLBACK_NONE;
}

const GsIndexKind gs_btree_kind = {
	.access_method = BTREE_AM_OID,
	.build = btbuild,
	.has_output = true,
	.feeds_tuples = true,
	.subphases = {PROGRESS_BTREE_PHASE_INDEXBUILD_TABLESCAN, PROGRESS_BTREE_PHASE_PERFORMSORT_1,
	PROGRESS_BTREE_PHASE_LEAF_LOAD},
	.column_order = btree_column_order,
	.feed_create = btree_feed_create,
	.write = btree_write,
};
