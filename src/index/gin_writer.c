/*-------------------------------------------------------------------------
 *
 * gin_writer.c
 *	  Writes a GIN index from entries that come in order (gin_writer.h).
 *
 * Mirrors ginbuild() (gininsert.c), which puts each of its collected entries into the entry tree once, with
 * all TIDs.  The pages are in shared buffers, and PostgreSQL's functions change them, with one exception.
 * Entries come in ascending order, so each belongs at the end of the rightmost leaf.  If it fits there,
 * with its TIDs as a posting list, append_entry() puts it into a copy of that leaf.  This is much faster
 * than a descent from the root.  If it does not fit, or needs a posting tree, the copy is put back,
 * ginEntryInsert() inserts the entry, and the rightmost leaf is looked up again.
 *
 * Nobody else sees the pages, but they may be written out at any time.  So they are changed under their lock.
 * As in ginbuild(), WAL is written when the index is complete.
 *
 * Tuples without a key are sorted by TID alone.  They belong to up to three entries: NULL keys, empty
 * values, and NULL values.  So the writer has a list of TIDs for each category, and a group of tuples
 * without a key becomes up to three entries in the end.
 *
 * Memory
 *	  The TIDs of a group's entries, 6 bytes each.  They may need up to maintenance_work_mem or a gigabyte, a
 *	  quarter of it for each category.  A longer list goes into the entry's posting tree in pieces.
 *
 * Tests: regress/index_gin
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xloginsert.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "index/gin_writer.h"
#include "index/index_tuple.h"

#define N_CATEGORIES	(GIN_CAT_NULL_ITEM + 1)

/* Longer lists do not fit into an entry: each TID takes a byte at least. */
#define MAX_INLINE_TIDS GinMaxItemSize

typedef struct TidList
{
	ItemPointerData *tids;
	uint32		n;
	uint32		room;
	bool		is_rest;		/* the entry is in the index, with a posting tree */
} TidList;

struct GsGinWriter
{
	Relation	index;
	GinState	state;
	GinStatsData stats;
	MemoryContext context;		/* holds all of this */
	MemoryContext scratch;		/* reset after each entry */
	Buffer		leaf;			/* the entry tree's rightmost; pinned */
	PGAlignedBlock page;		/* its copy, with more entries */
	IndexTuple	entry;			/* room for an entry to be appended */
	IndexTuple	first;			/* copy of the group's first tuple */
	bool		has_group;
	TidList		lists[N_CATEGORIES];	/* the group's TIDs, by category */
	double		tuples;			/* TIDs inserted so far */
};

/* As ginbuild() begins. */
static void
write_first_pages(GsGinWriter *writer)
{
	Buffer		meta = GinNewBuffer(writer->index);
	Buffer		root = GinNewBuffer(writer->index);

	START_CRIT_SECTION();
	GinInitMetabuffer(meta);
	MarkBufferDirty(meta);
	GinInitBuffer(root, GIN_LEAF);
	MarkBufferDirty(root);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(meta);
	memcpy(writer->page.data, BufferGetPage(root), BLCKSZ);
	LockBuffer(root, GIN_UNLOCK);
	writer->leaf = root;
	writer->stats.nEntryPages++;
}

GsGinWriter *
gs_gin_writer_begin(Relation index)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpusort gin writer",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GsGinWriter *writer = palloc0(sizeof(GsGinWriter));

	writer->index = index;
	writer->context = context;
	writer->scratch = AllocSetContextCreate(context, "gpusort gin entry", ALLOCSET_DEFAULT_SIZES);
	writer->first = palloc(MAXALIGN(INDEX_SIZE_MASK + 1));
	writer->entry = palloc(GinMaxItemSize);
	initGinState(&writer->state, index);
	for (int i = 0; i < N_CATEGORIES; i++)
	{
		writer->lists[i].room = 64;
		writer->lists[i].tids = palloc(writer->lists[i].room * sizeof(ItemPointerData));
	}
	write_first_pages(writer);
	MemoryContextSwitchTo(old);
	return writer;
}

/* Put the rightmost leaf's copy back. */
static void
put_leaf_back(GsGinWriter *writer)
{
	LockBuffer(writer->leaf, GIN_EXCLUSIVE);
	START_CRIT_SECTION();
	memcpy(BufferGetPage(writer->leaf), writer->page.data, BLCKSZ);
	MarkBufferDirty(writer->leaf);
	END_CRIT_SECTION();
	LockBuffer(writer->leaf, GIN_UNLOCK);
}

/* Find and copy the rightmost leaf, after the tree may have grown. */
static void
find_leaf(GsGinWriter *writer)
{
	BlockNumber block = GIN_ROOT_BLKNO;

	ReleaseBuffer(writer->leaf);
	for (;;)
	{
		Page		page;
		BlockNumber next;

		writer->leaf = ReadBuffer(writer->index, block);
		LockBuffer(writer->leaf, GIN_SHARE);
		page = BufferGetPage(writer->leaf);
		next = GinPageGetOpaque(page)->rightlink;
		if (!BlockNumberIsValid(next) && !GinPageIsLeaf(page))
		{
			ItemId		last = PageGetItemId(page, PageGetMaxOffsetNumber(page));

			next = GinGetDownlink((IndexTuple) PageGetItem(page, last));
		}
		if (!BlockNumberIsValid(next))
			memcpy(writer->page.data, page, BLCKSZ);
		LockBuffer(writer->leaf, GIN_UNLOCK);
		if (!BlockNumberIsValid(next))
			return;
		ReleaseBuffer(writer->leaf);
		block = next;
	}
}

/*
 * Append the group's entry with the list's TIDs to the rightmost leaf, like buildFreshLeafTuple() and
 * entryExecPlaceToPage().  False: it does not fit there, or needs a posting tree.
 */
static bool
append_entry(GsGinWriter *writer, const TidList *list)
{
	Page		page = writer->page.data;
	IndexTuple	entry = writer->entry;
	Size		offset = IndexTupleSize(writer->first);
	GinPostingList one = {.first = list->tids[0]};
	GinPostingList *postings = &one;
	Size		end;
	Size		size;
	bool		fits;

	if (list->n > MAX_INLINE_TIDS)
		return false;
	if (list->n > 1)
		postings = ginCompressPostingList(list->tids, list->n, GinMaxItemSize, NULL);
	end = offset + SizeOfGinPostingList(postings);
	size = MAXALIGN(end);
	/* entryIsEnoughSpace()'s rule, which counts the line pointer twice */
	fits = size <= GinMaxItemSize && PageGetFreeSpace(page) >= size + sizeof(ItemIdData);
	if (fits)
	{
		memcpy(entry, writer->first, offset);
		memcpy((char *) entry + offset, postings, end - offset);
		memset((char *) entry + end, 0, size - end);
		entry->t_info = (entry->t_info & ~INDEX_SIZE_MASK) | size;
		GinSetPostingOffset(entry, offset);
		GinSetNPosting(entry, list->n);
	}
	if (postings != &one)
		pfree(postings);
	if (!fits)
		return false;
	if (PageAddItem(page, (void *) entry, size, OffsetNumberNext(PageGetMaxOffsetNumber(page)), false,
					false) == InvalidOffsetNumber)
		elog(ERROR, "failed to add item to index page in \"%s\"",
			 RelationGetRelationName(writer->index));
	writer->stats.nEntries++;
	return true;
}

/* Insert the group's entry of a category, or a piece of its TIDs, and empty the list. */
static void
insert_entry(GsGinWriter *writer, GinNullCategory category)
{
	TidList    *list = &writer->lists[category];
	MemoryContext old;
	OffsetNumber attnum;
	Datum		key;
	GinNullCategory of_first;

	if (category != GIN_CAT_NORM_KEY || list->is_rest || !append_entry(writer, list))
	{
		old = MemoryContextSwitchTo(writer->scratch);
		attnum = gintuple_get_attrnum(&writer->state, writer->first);
		key = gintuple_get_key(&writer->state, writer->first, &of_first);
		put_leaf_back(writer);
		ginEntryInsert(&writer->state, attnum, key, category, list->tids, list->n, &writer->stats);
		find_leaf(writer);
		MemoryContextSwitchTo(old);
		MemoryContextReset(writer->scratch);
	}
	writer->tuples += list->n;
	list->n = 0;
}

/* Insert the entries of the current group. */
static void
end_group(GsGinWriter *writer)
{
	if (writer->has_group)
		for (int i = 0; i < N_CATEGORIES; i++)
		{
			if (writer->lists[i].n > 0)
				insert_entry(writer, i);
			writer->lists[i].is_rest = false;
		}
	writer->has_group = false;
}

/* Compares a tuple with the current group: 0 within it, 1 behind it, -1 before it. */
static inline int
compare_with_group(GsGinWriter *writer, IndexTuple tuple)
{
	IndexTuple	first = writer->first;
	OffsetNumber attnums[2];
	Datum		keys[2];
	GinNullCategory categories[2];

	int			order;

	if (!writer->has_group)
		return 1;
	/* entries with the same image are equal */
	if (likely(gs_index_same_image(first, tuple)))
		return 0;
	attnums[0] = gintuple_get_attrnum(&writer->state, first);
	attnums[1] = gintuple_get_attrnum(&writer->state, tuple);
	keys[0] = gintuple_get_key(&writer->state, first, &categories[0]);
	keys[1] = gintuple_get_key(&writer->state, tuple, &categories[1]);
	if (attnums[0] != attnums[1] ||
		(categories[0] == GIN_CAT_NORM_KEY) != (categories[1] == GIN_CAT_NORM_KEY))
		return 1;
	if (categories[0] != GIN_CAT_NORM_KEY)
		return 0;
	order = ginCompareEntries(&writer->state, attnums[0], keys[0], GIN_CAT_NORM_KEY,
							  keys[1], GIN_CAT_NORM_KEY);
	return order == 0 ? 0 : order < 0 ? 1 : -1;
}

/* Make room in a full list.  Its last TID stays, because the next tuple may have the same one. */
static void
make_room(GsGinWriter *writer, GinNullCategory category)
{
	TidList    *list = &writer->lists[category];
	Size		bytes = list->room * sizeof(ItemPointerData);
	ItemPointerData last = list->tids[list->n - 1];

	if (2 * bytes > Min((Size) maintenance_work_mem * 1024, MaxAllocSize) / N_CATEGORIES &&
		list->n > MAX_INLINE_TIDS + 1)
	{
		list->n--;
		insert_entry(writer, category);
		list->is_rest = true;
		list->tids[list->n++] = last;
		return;
	}
	list->room *= 2;
	list->tids = repalloc(list->tids, 2 * bytes);
}

/* Returns false if the tuple is out of order. */
static inline bool
add_tuple(GsGinWriter *writer, IndexTuple tuple)
{
	GinNullCategory category = GIN_CAT_NORM_KEY;
	int			order = compare_with_group(writer, tuple);
	TidList    *list;

	if (unlikely(order < 0))
		return false;
	if (order > 0)
	{
		end_group(writer);
		memcpy(writer->first, tuple, IndexTupleSize(tuple));
		writer->has_group = true;
	}
	if (unlikely(IndexTupleHasNulls(tuple)))
		category = GinGetNullCategory(tuple, &writer->state);
	list = &writer->lists[category];
	if (list->n > 0 && memcmp(&list->tids[list->n - 1], &tuple->t_tid, sizeof(ItemPointerData)) == 0)
		return true;
	if (unlikely(list->n == list->room))
		make_room(writer, category);
	list->tids[list->n++] = tuple->t_tid;
	return true;
}

bool
gs_gin_writer_add(GsGinWriter *writer, IndexTuple *tuples, int n)
{
	for (int i = 0; i < n; i++)
		if (!add_tuple(writer, tuples[i]))
			return false;
	return true;
}

double
gs_gin_writer_finish(GsGinWriter *writer)
{
	Relation	index = writer->index;
	double		tuples;

	end_group(writer);
	put_leaf_back(writer);
	tuples = writer->tuples;
	writer->stats.nTotalPages = RelationGetNumberOfBlocks(index);
	ginUpdateStats(index, &writer->stats, true);
	gs_gin_writer_cancel(writer);
	if (RelationNeedsWAL(index))
		log_newpage_range(index, MAIN_FORKNUM, 0, RelationGetNumberOfBlocks(index), true);
	return tuples;
}

void
gs_gin_writer_cancel(GsGinWriter *writer)
{
	ReleaseBuffer(writer->leaf);
	MemoryContextDelete(writer->context);
}
