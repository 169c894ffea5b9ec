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
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "index/btree_writer.h"
#include "index/index_kind.h"
#include "index/index_tuple.h"

/*
 * The sort operator of a key column.  An operator may be in several families, each with its own
 * comparison function.  Keys follow the family that gs_compat_ordering_op() finds.  That must be the index's.
 */
static bool
column_operator(Relation index, int i, bool descending, Oid *sort_operator)
{
	Oid			opfamily = index->rd_opfamily[i];
	Oid			opcintype = index->rd_opcintype[i];
	Oid			found_family;
	Oid			found_type;
	bool		found_descending;

	*sort_operator = get_opfamily_member(opfamily, opcintype, opcintype,
										 descending ? BTGreaterStrategyNumber : BTLessStrategyNumber);
	return OidIsValid(*sort_operator) &&
		gs_compat_ordering_op(*sort_operator, &found_family, &found_type, &found_descending) &&
		found_family == opfamily && found_type == opcintype && found_descending == descending;
}

/* The index's first ncols columns, then the heap TID as a column of number ncols + 1. */
static GsKeyDesc *
btree_key_desc(Relation index, int ncols, GsRefusal *refusal)
{
	AttrNumber	attnos[INDEX_MAX_KEYS + 1];
	Oid			operators[INDEX_MAX_KEYS + 1];
	Oid			collations[INDEX_MAX_KEYS + 1];
	bool		nulls_first[INDEX_MAX_KEYS + 1];
	Oid			types[INDEX_MAX_KEYS + 1];

	for (int i = 0; i < ncols; i++)
	{
		int16		option = index->rd_indoption[i];

		if (!column_operator(index, i, (option & INDOPTION_DESC) != 0, &operators[i]))
		{
			*refusal = GS_REFUSE_OPCLASS;
			return NULL;
		}
		attnos[i] = i + 1;
		collations[i] = index->rd_indcollation[i];
		nulls_first[i] = (option & INDOPTION_NULLS_FIRST) != 0;

		/* for polymorphic types, such as arrays and enums, the column has the real type */
		types[i] = index->rd_opcintype[i];
		if (IsPolymorphicType(types[i]) || types[i] == RECORDOID)
			types[i] = TupleDescAttr(RelationGetDescr(index), i)->atttypid;
	}
	attnos[ncols] = ncols + 1;
	operators[ncols] = TIDLessOperator;
	collations[ncols] = InvalidOid;
	nulls_first[ncols] = false;
	types[ncols] = TIDOID;
	return gs_key_desc_create(&(GsColumns){ncols + 1, attnos, operators, collations, nulls_first}, types,
							  NULL, false, refusal);
}

/* The feed of a btree. */
typedef struct BtreeFeed
{
	GsIndexFeed feed;
	GsTupleFormer *former;
	int			nkeys;
	bool		unique;
	GsPutRow	row;			/* its key is made of the values below: the key columns and the TID */
	Datum		key_values[INDEX_MAX_KEYS + 1];
	bool		key_isnull[INDEX_MAX_KEYS + 1];
} BtreeFeed;

static void
btree_put(GsIndexFeed *feed, ItemPointer tid, Datum *values, bool *isnull, bool alive)
{
	BtreeFeed  *btree = (BtreeFeed *) feed;
	IndexTuple	tuple;

	if (unlikely(feed->status != GS_PUT_OK))
		return;
	tuple = gs_tuple_former_form(btree->former, values, isnull);
	tuple->t_tid = *tid;
	if (unlikely(!alive) && btree->unique)
		tuple->t_info |= GS_INDEX_TUPLE_EXEMPT;

	for (int i = 0; i < btree->nkeys; i++)
	{
		btree->key_values[i] = values[i];
		btree->key_isnull[i] = isnull[i];
	}
	btree->key_values[btree->nkeys] = PointerGetDatum(tid);
	btree->row.bytes = tuple;
	btree->row.n_bytes = IndexTupleSize(tuple);
	feed->status = gs_feeder_put(feed->feeder, &btree->row);
	feed->tuples += 1;
}

static GsIndexFeed *
btree_feed_create(Relation index, const IndexInfo *info)
{
	BtreeFeed  *btree = palloc0(sizeof(BtreeFeed));

	btree->feed.put = btree_put;
	btree->former = gs_tuple_former_create(RelationGetDescr(index));
	btree->nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	btree->unique = info->ii_Unique;
	btree->row.values = btree->key_values;
	btree->row.isnull = btree->key_isnull;
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
	.key_desc = btree_key_desc,
	.feed_create = btree_feed_create,
	.write = btree_write,
};
