/*-------------------------------------------------------------------------
 *
 * collation_order.c
 *	  Is a btree index in order?
 *
 * The leaf pages are read from left to right, and each key is compared with
 * the one before it, by the operator class's comparison under the index's
 * collation as it is now.  A page's high key is one of the keys: it comes after
 * the page's tuples and before those of the next page.  All keys of inner
 * pages are copies of leaves' high keys, so a tree whose leaves are in order so is
 * right in all levels.  (amcheck proves that they are copies; a change of order
 * cannot make them others.)  A high key may be truncated: a column that it
 * lacks, or the TID, is less than every value.
 *
 * Others may write meanwhile.  Pages are copied under a share lock, and only one
 * is locked at a time.  What happens to pages that were read does not matter, but
 * for one thing: if the page before is deleted, new tuples of its range go to the
 * next page, where they are less than the high key that we remember.  So a
 * wrong order of two pages counts only if the left one still is in use after the
 * right one was read.  Tuples never move left otherwise.  Deleted pages keep their
 * right links, and are not used again as long as our snapshot is held.
 *
 * Tests: tap/index_collation_change, tap/index_collation_repair
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/itup.h"
#include "access/nbtree.h"
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_am_d.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/sortsupport.h"

#include "compat.h"
#include "fault.h"
#include "func/collation.h"

/* A key on a leaf page. */
typedef struct Place
{
	IndexTuple	tuple;
	BlockNumber block;
	bool		high_key;
} Place;

typedef struct Walk
{
	Relation	index;
	int			n_keys;
	SortSupport keys;
	bool		has_tids;		/* equal keys are in the order of their TIDs */
	BufferAccessStrategy ring;
	MemoryContext context;		/* of what comparisons leave behind, reset for each page */
	Place		last;			/* the key before; tuple NULL: none */
} Walk;

static void
begin_walk(Walk *walk, Relation index)
{
	bool		equal_image;

	walk->index = index;
	walk->n_keys = IndexRelationGetNumberOfKeyAttributes(index);
	walk->keys = palloc0(walk->n_keys * sizeof(SortSupportData));
	walk->ring = GetAccessStrategy(BAS_BULKREAD);
	walk->context = AllocSetContextCreate(CurrentMemoryContext, "gpusort index check",
										  ALLOCSET_DEFAULT_SIZES);
	walk->last.tuple = NULL;
	_bt_metaversion(index, &walk->has_tids, &equal_image);
	for (int i = 0; i < walk->n_keys; i++)
	{
		SortSupport key = &walk->keys[i];

		key->ssup_cxt = CurrentMemoryContext;
		key->ssup_collation = index->rd_indcollation[i];
		key->ssup_nulls_first = (index->rd_indoption[i] & INDOPTION_NULLS_FIRST) != 0;
		key->ssup_attno = i + 1;
		gs_compat_index_sort_support(index, (index->rd_indoption[i] & INDOPTION_DESC) != 0, key);
	}
}

/* Copy a page. */
static void
read_page(Walk *walk, BlockNumber block, Page page)
{
	Buffer		buffer;

	CHECK_FOR_INTERRUPTS();
	buffer = ReadBufferExtended(walk->index, MAIN_FORKNUM, block, RBM_NORMAL, walk->ring);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	_bt_checkpage(walk->index, buffer);
	memcpy(page, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	if (!P_IGNORE(BTPageGetOpaque(page)) && !P_ISLEAF(BTPageGetOpaque(page)))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\": block %u is no leaf page",
						RelationGetRelationName(walk->index), block)));
}

static IndexTuple
get_tuple(Walk *walk, BlockNumber block, Page page, OffsetNumber offset)
{
	ItemId		item = PageGetItemId(page, offset);

	if (!ItemIdHasStorage(item) || ItemIdGetLength(item) < sizeof(IndexTupleData) ||
		ItemIdGetOffset(item) + ItemIdGetLength(item) > BLCKSZ - sizeof(BTPageOpaqueData))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\": item %u of block %u lies outside of its page",
						RelationGetRelationName(walk->index), offset, block)));
	return (IndexTuple) PageGetItem(page, item);
}

/* Compare neighbours: is the right one less? */
static bool
is_wrong(Walk *walk, IndexTuple left, IndexTuple right)
{
	TupleDesc	tupdesc = RelationGetDescr(walk->index);
	int			n_left = Min(BTreeTupleGetNAtts(left, walk->index), walk->n_keys);
	int			n_right = Min(BTreeTupleGetNAtts(right, walk->index), walk->n_keys);
	ItemPointer left_tid,
				right_tid;

	for (int i = 0; i < Min(n_left, n_right); i++)
	{
		bool		left_null,
					right_null;
		Datum		left_value = index_getattr(left, i + 1, tupdesc, &left_null);
		Datum		right_value = index_getattr(right, i + 1, tupdesc, &right_null);
		int			result = ApplySortComparator(left_value, left_null, right_value, right_null,
												 &walk->keys[i]);

		if (result != 0)
			return result > 0;
	}
	if (!walk->has_tids || n_left != n_right)
		return walk->has_tids && n_left > n_right;
	left_tid = BTreeTupleIsPivot(left) ? BTreeTupleGetHeapTID(left) : BTreeTupleGetMaxHeapTID(left);
	right_tid = BTreeTupleGetHeapTID(right);
	if (left_tid == NULL || right_tid == NULL)
		return left_tid != NULL;
	return ItemPointerCompare(left_tid, right_tid) > 0;
}

/* Has the page before left the tree since it was read? */
static bool
is_gone(Walk *walk, BlockNumber block)
{
	PGAlignedBlock page;

	read_page(walk, block, page.data);
	return P_IGNORE(BTPageGetOpaque((Page) page.data));
}

static char *
describe(Walk *walk, const Place *place)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
	ItemPointer tid;
	char	   *key;

	if (place->high_key)
		return psprintf("the high key of block %u", place->block);
	index_deform_tuple(place->tuple, RelationGetDescr(walk->index), values, nulls);
	/* NULL without the right to see it */
	key = BuildIndexValueDescription(walk->index, values, nulls);
	tid = BTreeTupleGetHeapTID(place->tuple);
	return psprintf("key %s%sof row (%u,%u) in block %u", key ? key : "", key ? " " : "",
					ItemPointerGetBlockNumberNoCheck(tid), ItemPointerGetOffsetNumberNoCheck(tid),
					place->block);
}

/* The next key; the text of the error if it is wrong. */
static char *
step(Walk *walk, Place next)
{
	Place	   *last = &walk->last;

	if (last->tuple != NULL && is_wrong(walk, last->tuple, next.tuple) &&
		(last->block == next.block || !is_gone(walk, last->block)))
		return psprintf("%s is followed by %s", describe(walk, last), describe(walk, &next));
	*last = next;
	return NULL;
}

/* All keys of a page. */
static char *
walk_page(Walk *walk, BlockNumber block, Page page)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	char	   *error = NULL;

	for (OffsetNumber i = P_FIRSTDATAKEY(opaque); i <= max && error == NULL; i++)
		error = step(walk, (Place){get_tuple(walk, block, page, i), block, false});
	if (!P_RIGHTMOST(opaque) && error == NULL)
		error = step(walk, (Place){get_tuple(walk, block, page, P_HIKEY), block, true});
	return error;
}

/* NULL: it is in order. */
static char *
find_wrong(Relation index)
{
	Walk		walk;
	Buffer		first = gs_compat_bt_leftmost_leaf(index);
	PGAlignedBlock *page,
			   *spare;
	BlockNumber block;
	char	   *error = NULL;

	if (!BufferIsValid(first))
		return NULL;			/* it is empty, and has no page yet */
	block = BufferGetBlockNumber(first);
	UnlockReleaseBuffer(first);

	begin_walk(&walk, index);
	page = palloc(sizeof(PGAlignedBlock));
	spare = palloc(sizeof(PGAlignedBlock));	/* holds the key before */
	while (block != P_NONE && error == NULL)
	{
		BTPageOpaque opaque;

		read_page(&walk, block, page->data);
		opaque = BTPageGetOpaque((Page) page->data);
		if (!P_IGNORE(opaque))
		{
			MemoryContext old = MemoryContextSwitchTo(walk.context);
			PGAlignedBlock *read = page;

			error = walk_page(&walk, block, page->data);
			MemoryContextSwitchTo(old);
			if (error)
				error = pstrdup(error);
			MemoryContextReset(walk.context);
			page = spare;
			spare = read;
			if (GS_FAULT("check_page"))
				DirectFunctionCall1(pg_sleep, Float8GetDatum(2.0));
		}
		block = opaque->btpo_next;
	}
	return error;
}

static GsIndexOrder
check_index(Oid oid, char **detail)
{
	/* the table first, as others lock them */
	Oid			table = IndexGetRelation(oid, true);
	Relation	index;

	*detail = NULL;
	if (!OidIsValid(table))
		return GS_ORDER_GONE;
	LockRelationOid(table, AccessShareLock);
	index = try_relation_open(oid, AccessShareLock);
	if (index == NULL)
	{
		UnlockRelationOid(table, AccessShareLock);
		return GS_ORDER_GONE;
	}
	if (index->rd_rel->relam == BTREE_AM_OID)
		*detail = find_wrong(index);
	else
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("only btree indexes can be checked")));
	relation_close(index, AccessShareLock);
	UnlockRelationOid(table, AccessShareLock);
	return *detail ? GS_ORDER_BROKEN : GS_ORDER_RIGHT;
}

GsIndexOrder
gs_index_order(Oid index, char **detail)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile GsIndexOrder order = GS_ORDER_UNKNOWN;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		order = check_index(index, detail);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		if (error->sqlerrcode == ERRCODE_QUERY_CANCELED)
			ReThrowError(error);
		*detail = error->message;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return order;
}
