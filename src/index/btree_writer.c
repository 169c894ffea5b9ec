/*-------------------------------------------------------------------------
 *
 * btree_writer.c
 *	  Writes a btree from index tuples that come in order (btree_writer.h).
 *
 * What is written
 *	  The same blocks as PostgreSQL's nbtsort.c writes, byte by byte, so every
 *	  rule of where a page ends is that file's (_bt_load, _bt_buildadd,
 *	  _bt_uppershutdown, and _bt_dedup_save_htid of nbtdedup.c):
 *
 *	  - A leaf is full when the next tuple would not leave room for the heap TID that
 *		the high key may need.  It is also full when less space is free than fillfactor
 *		demands and it has two tuples.  In the second test the last tuple's posting
 *		list counts as free, because it will not be part of the high key.
 *	  - A full page's last item moves to the next page, as its first one.  The part that
 *		tells it from its predecessor stays as the high key.
 *	  - The high key is also the low key of the next page.  With a downlink it
 *		becomes an item one level up.  Above the leaves, the first item of each page
 *		has no key.
 *	  - Blocks are numbered in the order in which pages are begun.  Block 0 is the metapage.
 *	  - Equal tuples are merged into a posting list of at most a tenth of a
 *		page, if all columns' types allow it and the caller does not
 *		check uniqueness.
 *
 *	  Even unused bytes are the same, which remain in a page's free space when its high
 *	  key is cut down or its line pointers are moved.  So two files can be compared.
 *
 * A leaf in work
 *
 *		| header | - | lp | lp | lp |   ...   | item 3 | item 2 | item 1 | special |
 *								    ^ lower   ^ upper
 *
 *	  The first line pointer is kept for the high key.  The last page of a level has no
 *	  high key; in the end its line pointers are moved by one place.
 *	  Until the page is done, lower and upper are only in the Level.
 *
 * The way of a tuple
 *	  A tuple is copied once, to its place on the leaf.  The next tuple is compared with it
 *	  there, in the processor's cache.  While equal tuples arrive, only their heap TIDs are
 *	  collected.  When another tuple arrives, the item becomes a posting list in place, by
 *	  moving it down (seal_posting).  If the list does not fit where the tuple alone
 *	  did, the item is taken off again, the page is finished, and the list goes onto the
 *	  next page.  PostgreSQL puts it there at once, because it adds nothing before the
 *	  list is complete.
 *
 *	  Tuples are equal if the images of their key values are equal (_bt_keep_natts_fast).
 *	  That is so if all bytes of the tuples are equal.
 *
 *	  Checking for interrupts, reporting progress and writing the header are done once for
 *	  each page, not for each tuple.
 *
 * One process
 *	  lays pages out.  This takes some 70 instructions for a tuple, because many tuples come at a time.
 *	  Logging and writing take several times as long, so workers do that meanwhile (page_output.c).
 *	  Laying pages out in several processes would gain little: it takes hardly longer than fetching
 *	  the tuples from the device.
 *
 * Tests: regress/index_builds, regress/index_pages
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "compat.h"
#include "index/btree_writer.h"
#include "index/index_tuple.h"
#include "key/key_encode.h"

/* Space for the heap TID that a high key may have to hold. */
#define HEAP_TID_SPACE		MAXALIGN(sizeof(ItemPointerData))

/* A posting list and its line pointer take at most a tenth of a page. */
#define POSTING_MAX			(MAXALIGN_DOWN(BLCKSZ * 10 / 100) - sizeof(ItemIdData))

/*
 * The page in work of one level.  Offsets into it are signed, as differences
 * of them may be negative.
 */
typedef struct Level
{
	struct Level *parent;		/* NULL: this is the top so far */
	uint32		level;			/* 0: leaves */
	BlockNumber blkno;
	char	   *page;			/* NULL: no item has come yet */
	int			lower;			/* where the next line pointer goes */
	int			upper;			/* where the last item begins */
	OffsetNumber last;			/* the last item's offset number */
	int			last_posting;	/* bytes of the last item's posting list */
	int			soft_limit;		/* end the page if less is free */
	IndexTuple	low_key;		/* the page's low key, in a buffer of BLCKSZ */
} Level;

struct GsBtreeWriter
{
	Relation	heap;
	Relation	index;
	GsPageOutput *output;		/* where pages go */
	MemoryContext context;		/* of all that belongs to the writer */
	MemoryContext page_context; /* reset with each page */
	BTScanInsert scankey;

	uint64		n_tuples;
	BlockNumber n_blocks;		/* numbered so far */
	int			item_max;		/* larger items are tested by _bt_check_third_page() */
	Level		leaf;

	/* merging equal tuples into the last item of the leaf */
	bool		deduplicate;
	int			n_tids;			/* TIDs of the last item; 0: there is no item */
	ItemPointerData tids[POSTING_MAX / sizeof(ItemPointerData)];
};

static inline ItemId
line_pointer(Level *level, OffsetNumber offset)
{
	return PageGetItemId((Page) level->page, offset);
}

static inline IndexTuple
last_item(Level *level)
{
	return (IndexTuple) (level->page + level->upper);
}

/* The free bytes of a page, as PageGetFreeSpace(). */
static inline int
free_space(const Level *level)
{
	return level->upper - level->lower - (int) sizeof(ItemIdData);
}

/* Begin a page, with the next block number.  The caller keeps the page before. */
static void
begin_page(GsBtreeWriter *writer, Level *level)
{
	BTPageOpaque opaque;

	level->page = (char *) gs_page_output_alloc(writer->output);
	level->blkno = writer->n_blocks++;
	_bt_pageinit((Page) level->page, BLCKSZ);
	opaque = BTPageGetOpaque((Page) level->page);
	opaque->btpo_prev = P_NONE;
	opaque->btpo_next = P_NONE;
	opaque->btpo_level = level->level;
	opaque->btpo_flags = level->level == 0 ? BTP_LEAF : 0;
	opaque->btpo_cycleid = 0;

	level->lower = SizeOfPageHeaderData + sizeof(ItemIdData);
	level->upper = ((PageHeader) level->page)->pd_special;
	level->last = P_HIKEY;
}

/* A level's first page: its low key is below all keys. */
static void
begin_level(GsBtreeWriter *writer, Level *level, uint32 number)
{
	level->parent = NULL;
	level->level = number;
	level->last_posting = 0;
	if (number == 0)
		level->soft_limit = BTGetTargetPageFreeSpace(writer->index);
	else
		level->soft_limit = BLCKSZ * (100 - BTREE_NONLEAF_FILLFACTOR) / 100;

	level->low_key = MemoryContextAlloc(writer->context, BLCKSZ);
	memset(level->low_key, 0, sizeof(IndexTupleData));
	level->low_key->t_info = sizeof(IndexTupleData);
	BTreeTupleSetNAtts(level->low_key, 0, false);
	begin_page(writer, level);
}

static inline void
set_line_pointer(ItemId place, int off, int size)
{
	/* one store; ItemIdSetNormal() changes the fields one by one */
	*place = (ItemIdData){.lp_off = off, .lp_flags = LP_NORMAL, .lp_len = size};
}

/* Make room for an item of this size, which fits. */
static inline IndexTuple
add_space(Level *level, int size)
{
	level->upper -= size;
	level->last++;
	set_line_pointer((ItemId) (level->page + level->lower), level->upper, size);
	level->lower += sizeof(ItemIdData);
	return last_item(level);
}

/* Above the leaves, the first item of a page has a downlink, but no key. */
static inline void
add_downlink_only(Level *level, IndexTuple from)
{
	IndexTuple	item = add_space(level, sizeof(IndexTupleData));

	item->t_tid = from->t_tid;
	item->t_info = sizeof(IndexTupleData);
	BTreeTupleSetNAtts(item, 0, false);
}

static void
write_page(GsBtreeWriter *writer, char *page, BlockNumber blkno, int lower, int upper)
{
	((PageHeader) page)->pd_lower = lower;
	((PageHeader) page)->pd_upper = upper;
	gs_page_output_write(writer->output, blkno, (Page) page);
}

static void add_pivot(GsBtreeWriter *writer, Level *level, IndexTuple pivot);

/* Put a downlink to the level's page into the level above. */
static void
add_to_parent(GsBtreeWriter *writer, Level *level, BlockNumber blkno)
{
	Assert(BTreeTupleGetNAtts(level->low_key, writer->index) <=
		   IndexRelationGetNumberOfKeyAttributes(writer->index));

	BTreeTupleSetDownLink(level->low_key, blkno);
	add_pivot(writer, level->parent, level->low_key);
}

/*
 * Replace the last item of a full leaf, which was copied to the next leaf, by the
 * part that the high key needs.  Returns the high key.
 */
static IndexTuple
make_high_key(GsBtreeWriter *writer, Level *full)
{
	ItemId		place = line_pointer(full, P_HIKEY);
	ItemId		left = line_pointer(full, OffsetNumberPrev(full->last));
	MemoryContext caller = MemoryContextSwitchTo(writer->page_context);
	IndexTuple	key;
	int			size;

	key = _bt_truncate(writer->index,
					   (IndexTuple) PageGetItem((Page) full->page, left),
					   last_item(full), writer->scankey);
	size = MAXALIGN(IndexTupleSize(key));

	/* the key may be larger by the heap TID; there is room for that */
	full->upper += (int) ItemIdGetLength(place) - size;
	Assert(full->lower <= full->upper);
	set_line_pointer(place, full->upper, size);
	memcpy(full->page + full->upper, key, size);

	MemoryContextSwitchTo(caller);
	MemoryContextReset(writer->page_context);
	return last_item(full);
}

/* End the level's page, and begin the next one with its last item. */
static void
finish_page(GsBtreeWriter *writer, Level *level)
{
	Level		full = *level;
	ItemId		moved;
	IndexTuple	high_key;

	Assert(full.last > P_FIRSTKEY);
	begin_page(writer, level);
	if (level->level == 0)
	{
		int			size = ItemIdGetLength(line_pointer(&full, full.last));

		gs_key_copy((uint8 *) add_space(level, size), (const uint8 *) last_item(&full), size);
	}
	else
		add_downlink_only(level, last_item(&full));

	/* The item becomes the high key, and its line pointer is free space */
	moved = line_pointer(&full, full.last);
	*line_pointer(&full, P_HIKEY) = *moved;
	ItemIdSetUnused(moved);
	full.lower -= sizeof(ItemIdData);

	high_key = level->level == 0 ? make_high_key(writer, &full) : last_item(&full);

	if (level->parent == NULL)
	{
		Level	   *parent = MemoryContextAlloc(writer->context, sizeof(Level));

		begin_level(writer, parent, level->level + 1);
		level->parent = parent;
	}
	add_to_parent(writer, level, full.blkno);
	memcpy(level->low_key, high_key, IndexTupleSize(high_key));

	BTPageGetOpaque((Page) full.page)->btpo_next = level->blkno;
	BTPageGetOpaque((Page) level->page)->btpo_prev = full.blkno;
	write_page(writer, full.page, full.blkno, full.lower, full.upper);

	if (level->level == 0)
	{
		CHECK_FOR_INTERRUPTS();
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, writer->n_tuples);
	}
}

/* Must the page end before an item of this size, and spare_size more? */
static inline bool
is_full(const Level *level, int size, int spare_size)
{
	int			space = free_space(level);

	return space < size + spare_size ||
		(space + level->last_posting < level->soft_limit && level->last > P_FIRSTKEY);
}

/* Add an item to a level above the leaves. */
static void
add_pivot(GsBtreeWriter *writer, Level *level, IndexTuple pivot)
{
	int			size = MAXALIGN(IndexTupleSize(pivot));

	if (unlikely(size > writer->item_max))
		_bt_check_third_page(writer->index, writer->heap, false, (Page) level->page, pivot);

	if (is_full(level, size, 0))
		finish_page(writer, level);
	if (level->last == P_HIKEY)
		add_downlink_only(level, pivot);
	else
		gs_key_copy((uint8 *) add_space(level, size), (const uint8 *) pivot, size);
}

/*
 * If the tuple is equal to the last item and there is room in its posting
 * list, note its heap TID there.  Otherwise the tuple will be the next base.
 */
static inline bool
merge_tuple(GsBtreeWriter *writer, IndexTuple itup)
{
	IndexTuple	base = last_item(&writer->leaf);
	int			size = IndexTupleSize(base);

	if (!gs_index_same_image(base, itup) &&
		_bt_keep_natts_fast(writer->index, base, itup) <=
		IndexRelationGetNumberOfKeyAttributes(writer->index))
		return false;
	if (MAXALIGN(size + (writer->n_tids + 1) * sizeof(ItemPointerData)) > POSTING_MAX)
		return false;
	writer->tids[writer->n_tids++] = itup->t_tid;
	return true;
}

/* Make the last item one with a posting list of all heap TIDs noted. */
static void
seal_posting(GsBtreeWriter *writer)
{
	Level	   *leaf = &writer->leaf;
	int			base_size = IndexTupleSize(last_item(leaf));
	int			tids_size = writer->n_tids * sizeof(ItemPointerData);
	int			size = MAXALIGN(base_size + tids_size);
	char		base[POSTING_MAX];
	IndexTuple	item;

	/* Take the item off the page, and leave no trace of it there */
	memcpy(base, last_item(leaf), base_size);
	memset(last_item(leaf), 0, base_size);
	leaf->upper += base_size;
	ItemIdSetUnused(line_pointer(leaf, leaf->last));
	leaf->lower -= sizeof(ItemIdData);
	leaf->last--;

	/* The tuple alone did fit, so fillfactor wants no new page */
	if (free_space(leaf) < size + (int) HEAP_TID_SPACE)
		finish_page(writer, leaf);

	item = add_space(leaf, size);
	memcpy(item, base, base_size);
	memcpy((char *) item + base_size, writer->tids, tids_size);
	memset((char *) item + base_size + tids_size, 0, size - base_size - tids_size);
	item->t_info = (item->t_info & ~INDEX_SIZE_MASK) | size;
	BTreeTupleSetPosting(item, writer->n_tids, base_size);
	leaf->last_posting = size - base_size;
	writer->n_tids = 0;
}

GsBtreeWriter *
gs_btree_writer_begin(Relation heap, Relation index, bool unique, GsPageOutput *output)
{
	MemoryContext context;
	MemoryContext caller;
	GsBtreeWriter *writer;
	PGAlignedBlock block;

	context = AllocSetContextCreate(CurrentMemoryContext, "gpusort btree writer",
									ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(context);
	writer = palloc0(sizeof(GsBtreeWriter));
	writer->heap = heap;
	writer->index = index;
	writer->output = output;
	writer->context = context;
	writer->page_context = AllocSetContextCreate(context, "gpusort btree page",
												 ALLOCSET_DEFAULT_SIZES);
	writer->scankey = _bt_mkscankey(index, NULL);
	MemoryContextSwitchTo(caller);

	/* without a metapage _bt_mkscankey() cannot know */
	writer->scankey->allequalimage = _bt_allequalimage(index, true);
	writer->deduplicate = writer->scankey->allequalimage && !unique &&
		BTGetDeduplicateItems(index);
	writer->n_blocks = BTREE_METAPAGE + 1;

	_bt_pageinit((Page) block.data, BLCKSZ);
	writer->item_max = gs_compat_btree_item_max((Page) block.data);
	return writer;
}

static inline void
add_tuple(GsBtreeWriter *writer, IndexTuple itup)
{
	Level	   *leaf = &writer->leaf;
	int			size = MAXALIGN(IndexTupleSize(itup));

	if (writer->deduplicate)
	{
		if (writer->n_tids > 0 && merge_tuple(writer, itup))
			return;
		if (writer->n_tids > 1)
			seal_posting(writer);
		writer->tids[0] = itup->t_tid;
		writer->n_tids = 1;
	}

	if (unlikely(size > writer->item_max))
		_bt_check_third_page(writer->index, writer->heap, true, (Page) leaf->page, itup);

	if (unlikely(is_full(leaf, size, HEAP_TID_SPACE)))
		finish_page(writer, leaf);
	gs_key_copy((uint8 *) add_space(leaf, size), (const uint8 *) itup, size);
	leaf->last_posting = 0;
}

void
gs_btree_writer_add(GsBtreeWriter *writer, IndexTuple *tuples, int n)
{
	if (writer->n_tuples == 0)
		begin_level(writer, &writer->leaf, 0);
	writer->n_tuples += n;
	for (int i = 0; i < n; i++)
		add_tuple(writer, tuples[i]);
}

/*
 * The last page of a level has no high key, so its line pointers move by one place.  The last one's bytes
 * remain in the free space.
 */
static void
drop_high_key(Level *level)
{
	memmove(line_pointer(level, P_HIKEY), line_pointer(level, P_FIRSTKEY),
			(level->last - P_HIKEY) * sizeof(ItemIdData));
	level->lower -= sizeof(ItemIdData);
}

void
gs_btree_writer_finish(GsBtreeWriter *writer)
{
	BlockNumber root = P_NONE;
	uint32		root_level = 0;
	Page		metapage;

	if (writer->n_tids > 1)
		seal_posting(writer);

	if (writer->n_tuples > 0)
	{
		for (Level *level = &writer->leaf; level != NULL; level = level->parent)
		{
			if (level->parent != NULL)
				add_to_parent(writer, level, level->blkno);
			else
			{
				BTPageGetOpaque((Page) level->page)->btpo_flags |= BTP_ROOT;
				root = level->blkno;
				root_level = level->level;
			}
			drop_high_key(level);
			write_page(writer, level->page, level->blkno, level->lower, level->upper);
		}
	}

	metapage = gs_page_output_alloc(writer->output);
	_bt_initmetapage(metapage, root, root_level, writer->scankey->allequalimage);
	gs_page_output_write(writer->output, BTREE_METAPAGE, metapage);
	gs_page_output_end(writer->output);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, writer->n_tuples);

	MemoryContextDelete(writer->context);
}
