/*-------------------------------------------------------------------------
 *
 * chunk.c
 *	  Writing tuples into chunks (chunk.h).
 *
 * Every row passes here on its way to the device, and no other step of the feeding process takes as long.
 * So a tuple is written once, straight into the chunk, without palloc() and without a copy in between.
 *
 * Tests: regress/page_feed, regress/large, regress/spill
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"

#include "chunk/chunk.h"
#include "chunk/tuple_form.h"

/* Rows begin at multiples of MAXALIGN(), and device.h has flags in the low bits. */
StaticAssertDecl(MAXIMUM_ALIGNOF > GS_ENTRY_FLAGS, "rows are aligned as devices want them");

/* A row that is not too large fits into an empty chunk with any key. */
StaticAssertDecl(gs_max_row_bytes(GS_CHUNK_BYTES) + MAXIMUM_ALIGNOF + GS_KEY_MAX + sizeof(GsRecord) <
				 GS_CHUNK_BYTES, "any row and key fit into an empty chunk");
StaticAssertDecl(GS_KEY_MAX < GS_KEY_NONE && GS_KEY_MAX <= GS_LENGTH_MASK,
				 "lengths of keys are no answers, and have no flags");

void
gs_chunk_begin(GsChunkWriter *writer, char *memory, uint32 bytes, const GsTupleKeys *tuple_keys)
{
	Assert(memory == (char *) MAXALIGN(memory));
	writer->memory = memory;
	writer->bytes = bytes;
	writer->used = 0;
	writer->n = 0;
	writer->inexact = 0;
	writer->pages = 0;
	writer->missing = 0;
	writer->tuple_keys = tuple_keys;
}

void
gs_chunk_copy(const GsChunkWriter *writer, char *memory, uint32 bytes)
{
	Size		records = writer->n * sizeof(GsRecord);

	memcpy(memory, writer->memory, writer->used);
	memcpy(memory + bytes - records, writer->memory + writer->bytes - records, records);
}

/* Returns the bytes left for rows and keys behind one more record. */
static inline uint32
room_left(const GsChunkWriter *writer)
{
	uint32		taken = writer->used + (writer->n + 1) * sizeof(GsRecord);

	return taken < writer->bytes ? writer->bytes - taken : 0;
}

/*
 * Returns the bytes, or a few more, of a value of varying width in a key of the device; 0: the device may
 * be unable to make the key.
 */
static inline uint32
varying_bytes(const GsChunkWriter *writer, int column, const char *data, uint32 len)
{
	const GsTupleKeys *keys = writer->tuple_keys;
	uint32		bytes;

	if (keys->columns[column].kind != GS_TUPLE_COLLATED)
		return len + 1;
	/* a damaged value may tell more bytes than a row has */
	bytes = likely(len <= GS_TUPLE_MAX_BYTES) ? gs_text_key_bound(keys->table, (const uint8 *) data, len) : 0;
	return bytes == 0 || keys->columns[column].tail == GS_TUPLE_NO_TAIL ? bytes : bytes + len + 1;
}

/*
 * Returns the bytes, or a few more, of the key that the device makes of a tuple; 0: it cannot make the key.
 * That is so if a value of the key's columns is compressed or out of line, if a column before them has a
 * kind of pointer that the device does not know, if the tuple is too large, or if the device does not know
 * the text.  values are not read if all keys have the same width.
 */
static inline uint32
missing_key_bytes(const GsChunkWriter *writer, const GsKeyDesc *desc, const Datum *values,
				  const bool *isnull, uint32 row_off, uint32 row_bytes)
{
	MinimalTuple tuple = (MinimalTuple) (writer->memory + row_off);
	bool		index_tuples = writer->tuple_keys->index_tuples;
	uint32		bytes = desc->ncols;

	if (row_bytes > GS_TUPLE_MAX_BYTES)
		return 0;

	/* a device knows one kind of pointers, so see whether it can take the tuple apart */
	if (!index_tuples && unlikely((tuple->t_infomask & HEAP_HASEXTERNAL) != 0))
	{
		GsTupleValue found[GS_TUPLE_COLUMNS];

		bytes = gs_tuple_key_find(writer->tuple_keys, (const uint8 *) tuple, row_bytes, found);
		return bytes < GS_KEY_MAX ? bytes : 0;
	}
	if (desc->fixed_width > 0)
		return desc->fixed_width;
	for (int i = 0; i < desc->ncols; i++)
	{
		const GsKeyColumn *col = &desc->cols[i];
		int			at = col->attno - 1;

		if (isnull[at])
			continue;
		if (col->width > 0)
			bytes += col->width;
		else
		{
			struct varlena *value = (struct varlena *) DatumGetPointer(values[at]);
			uint32		varying;

			if (unlikely(VARATT_IS_COMPRESSED(value) || VARATT_IS_EXTERNAL(value)))
				return 0;
			/* an index tuple may contain a larger value compressed */
			if (index_tuples && unlikely(VARSIZE_ANY_EXHDR(value) > TOAST_INDEX_TARGET - VARHDRSZ))
				return 0;
			varying = varying_bytes(writer, i, VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value));
			if (unlikely(varying == 0))
				return 0;
			bytes += varying;
		}
	}
	/* collated keys are longer than text; the writer makes a key that is cut off */
	return likely(bytes < GS_KEY_MAX) ? bytes : 0;
}

/* Writes the key of the row at row_off to key_off, behind all used bytes, and describes the record. */
static inline GsPut
finish_record(GsChunkWriter *writer, const GsKeyDesc *desc, const Datum *values,
			  const bool *isnull, uint32 row_off, uint32 row_bytes, uint32 row_flags,
			  uint32 key_off)
{
	uint32		taken = key_off + (writer->n + 1) * sizeof(GsRecord);
	bool		inexact = false;
	uint32		key_len;
	GsRecord   *record;

	if (unlikely(taken > writer->bytes))
		return GS_PUT_FULL;
	key_len = gs_key_write(desc, values, isnull, (uint8 *) writer->memory + key_off,
						   writer->bytes - taken, &inexact);
	if (unlikely(key_len == GS_KEY_NO_ROOM))
		return GS_PUT_FULL;
	if (unlikely(key_len == GS_KEY_NONE))
		return GS_PUT_LEFT;

	/*
	 * All keys of the longest length count as inexact.  So keys that tie are either all inexact or all
	 * exact.
	 */
	if (unlikely(key_len >= GS_KEY_MAX))
		inexact = true;
	if (unlikely(inexact))
		writer->inexact++;

	Assert(desc->fixed_width == 0 || key_len == desc->fixed_width);
	Assert(taken + key_len <= writer->bytes);
	record = gs_chunk_record(writer->memory, writer->bytes, writer->n);
	record->row_off = row_off;
	record->row_len = row_bytes | row_flags;
	record->key_off = key_off;
	record->key_len = key_len | (inexact ? GS_KEY_INEXACT : 0);
	writer->n++;
	writer->used = MAXALIGN(key_off + key_len);
	return GS_PUT_OK;
}

/* Describes the record of a row whose key the device makes.  end: the end of the used bytes. */
static inline void
describe_missing(GsChunkWriter *writer, uint32 row_off, uint32 row_bytes, uint32 end, uint32 key_bytes)
{
	*gs_chunk_record(writer->memory, writer->bytes, writer->n) =
		(GsRecord){row_off, row_bytes, 0, GS_KEY_MISSING};
	writer->n++;
	writer->used = MAXALIGN(end);
	writer->missing += key_bytes;
}

/* Leaves the key of a tuple to the device, if it can make it. */
static inline bool
leave_key(GsChunkWriter *writer, const GsKeyDesc *desc, const Datum *values, const bool *isnull,
		  uint32 row_off, uint32 row_bytes, uint32 end)
{
	uint32		missing = missing_key_bytes(writer, desc, values, isnull, row_off, row_bytes);

	if (unlikely(missing == 0))
		return false;
	describe_missing(writer, row_off, row_bytes, end, missing);
	return true;
}

/* Writes the key of a tuple to key_off, or leaves it to the device. */
static inline GsPut
finish_tuple(GsChunkWriter *writer, const GsKeyDesc *desc, const Datum *values,
			 const bool *isnull, uint32 row_off, uint32 row_bytes, uint32 key_off)
{
	if (writer->tuple_keys &&
		likely(leave_key(writer, desc, values, isnull, row_off, row_bytes, key_off)))
		return GS_PUT_OK;
	return finish_record(writer, desc, values, isnull, row_off, row_bytes, 0, key_off);
}

/* The same for the row at the end of the used bytes, with the key of a slot's columns. */
static inline GsPut
finish_slot(GsChunkWriter *writer, const GsKeyDesc *desc, TupleTableSlot *slot,
			uint32 row_bytes)
{
	/* if all keys have the same width, the values need not be read */
	if (writer->tuple_keys && desc->fixed_width > 0 &&
		likely(leave_key(writer, desc, NULL, NULL, writer->used, row_bytes,
						 writer->used + row_bytes)))
		return GS_PUT_OK;
	slot_getsomeattrs(slot, desc->max_attno);
	return finish_tuple(writer, desc, slot->tts_values, slot->tts_isnull, writer->used, row_bytes,
						writer->used + row_bytes);
}

/* Is there room for a row of this size, with the shortest key? */
static inline GsPut
check_row(const GsChunkWriter *writer, Size row_bytes)
{
	if (likely(row_bytes < room_left(writer)))
		return row_bytes <= gs_max_row_bytes(GS_CHUNK_BYTES) ? GS_PUT_OK : GS_PUT_BIG;
	return row_bytes <= gs_max_row_bytes(GS_CHUNK_BYTES) ? GS_PUT_FULL : GS_PUT_BIG;
}

/* Forms a minimal tuple of any values, as heap_form_minimal_tuple() does. */
static GsPut
form_by_postgres(const GsChunkWriter *writer, TupleDesc tupdesc, const Datum *values,
				 const bool *isnull, uint32 header, bool hasnull)
{
	MinimalTuple tuple = (MinimalTuple) (writer->memory + writer->used);
	Size		data_len = heap_compute_data_size(tupdesc, (Datum *) values, (bool *) isnull);
	GsPut		put = check_row(writer, header + data_len);

	if (put != GS_PUT_OK)
		return put;
	memset(tuple, 0, header + data_len);
	heap_fill_tuple(tupdesc, (Datum *) values, (bool *) isnull, (char *) tuple + header, data_len,
					&tuple->t_infomask, hasnull ? tuple->t_bits : NULL);
	tuple->t_len = header + data_len;
	return GS_PUT_OK;
}

/* Forms a minimal tuple of values, and finishes its record.  columns: of tupdesc, or NULL. */
static inline GsPut
put_values(GsChunkWriter *writer, const GsKeyDesc *desc, TupleDesc tupdesc,
		   const GsFormColumn *columns, const Datum *values, const bool *isnull)
{
	int			natts = tupdesc->natts;
	MinimalTuple tuple = (MinimalTuple) (writer->memory + writer->used);
	uint32		room = Min(room_left(writer), gs_max_row_bytes(GS_CHUNK_BYTES));
	uint32		header = SizeofMinimalTupleHeader;
	bool		hasnull = false;
	char	   *end = NULL;

	/* a join may have more columns than a tuple's header can count */
	if (unlikely(natts > MaxTupleAttributeNumber))
		ereport(ERROR,
				(errcode(ERRCODE_TOO_MANY_COLUMNS),
				 errmsg("number of columns (%d) exceeds limit (%d)",
						natts, MaxTupleAttributeNumber)));
	for (int i = 0; i < natts; i++)
		if (isnull[i])
		{
			hasnull = true;
			break;
		}
	if (hasnull)
		header += BITMAPLEN(natts);
	header = MAXALIGN(header);

	if (likely(header < room))
	{
		memset(tuple, 0, header);
		end = gs_form_data(tupdesc, columns, values, isnull, hasnull ? tuple->t_bits : NULL, false,
						   (char *) tuple + header, (char *) tuple + room, &tuple->t_infomask);
	}
	if (likely(end != NULL))
		tuple->t_len = end - (char *) tuple;
	else
	{
		GsPut		put = form_by_postgres(writer, tupdesc, values, isnull, header, hasnull);

		if (put != GS_PUT_OK)
			return put;
	}
	HeapTupleHeaderSetNatts(tuple, natts);
	if (hasnull)
		tuple->t_infomask |= HEAP_HASNULL;
	tuple->t_hoff = header + MINIMAL_TUPLE_OFFSET;
	return finish_tuple(writer, desc, values, isnull, writer->used, tuple->t_len,
						writer->used + tuple->t_len);
}

/* Writes the length and the padding of a minimal tuple over the fields that a heap tuple has there. */
static inline void
set_tuple_length(MinimalTuple tuple, uint32 len)
{
	tuple->t_len = len;
	memset(tuple->mt_padding, 0, sizeof(tuple->mt_padding));
}

/* Copies a heap tuple, like minimal_tuple_from_heap_tuple(). */
static inline GsPut
copy_heap_tuple(GsChunkWriter *writer, HeapTupleHeader from, uint32 from_len)
{
	MinimalTuple tuple = (MinimalTuple) (writer->memory + writer->used);
	uint32		len = from_len - MINIMAL_TUPLE_OFFSET;
	GsPut		put = check_row(writer, len);

	if (unlikely(put != GS_PUT_OK))
		return put;
	memcpy(tuple, (char *) from + MINIMAL_TUPLE_OFFSET, len);
	set_tuple_length(tuple, len);
	return GS_PUT_OK;
}

/* Do the values of a slot's key columns end within its tuple?  In a damaged tuple they may not. */
static bool
keys_are_in_tuple(const GsKeyDesc *desc, TupleTableSlot *slot, const char *tuple, uint32 tuple_len)
{
	const char *end = tuple + tuple_len;

	if (desc->fixed_width > 0)
		return true;
	slot_getsomeattrs(slot, desc->max_attno);
	for (int i = 0; i < desc->ncols; i++)
	{
		const GsKeyColumn *col = &desc->cols[i];
		int			at = col->attno - 1;
		const char *value;

		if (col->parent || slot->tts_isnull[at] || TupleDescAttr(slot->tts_tupleDescriptor, at)->attlen != -1)
			continue;
		value = DatumGetPointer(slot->tts_values[at]);

		/* a missing value is not in the tuple */
		if (value > tuple && value < end && VARSIZE_ANY(value) > end - value)
			return false;
	}
	return true;
}

/* Writes a slot's tuple and key.  A tuple that is formed already is copied. */
static inline GsPut
put_slot(GsChunkWriter *writer, const GsKeyDesc *desc, TupleTableSlot *slot)
{
	MinimalTuple tuple = (MinimalTuple) (writer->memory + writer->used);
	GsPut		put;

	if (TTS_IS_BUFFERTUPLE(slot) || TTS_IS_HEAPTUPLE(slot))
	{
		HeapTuple	heap = ((HeapTupleTableSlot *) slot)->tuple;

		/* a damaged line pointer may tell fewer bytes than a header has */
		if (heap && likely(heap->t_len >= SizeofHeapTupleHeader))
		{
			if (unlikely(!keys_are_in_tuple(desc, slot, (char *) heap->t_data, heap->t_len)))
				return GS_PUT_LEFT;
			put = copy_heap_tuple(writer, heap->t_data, heap->t_len);
			if (unlikely(put != GS_PUT_OK))
				return put;
			return finish_slot(writer, desc, slot, tuple->t_len);
		}
	}
	else if (TTS_IS_MINIMALTUPLE(slot))
	{
		MinimalTuple mintuple = ((MinimalTupleTableSlot *) slot)->mintuple;

		if (mintuple)
		{
			if (unlikely(!keys_are_in_tuple(desc, slot, (char *) mintuple, mintuple->t_len)))
				return GS_PUT_LEFT;
			put = check_row(writer, mintuple->t_len);
			if (unlikely(put != GS_PUT_OK))
				return put;
			memcpy(tuple, mintuple, mintuple->t_len);
			return finish_slot(writer, desc, slot, mintuple->t_len);
		}
	}
	slot_getallattrs(slot);
	return put_values(writer, desc, slot->tts_tupleDescriptor, NULL, slot->tts_values, slot->tts_isnull);
}

static GsPut
put_bytes(GsChunkWriter *writer, const GsKeyDesc *desc, const GsPutRow *row)
{
	const Datum *values = row->values;
	const bool *isnull = row->isnull;
	GsPut		put = check_row(writer, row->n_bytes);

	if (unlikely(put != GS_PUT_OK))
		return put;
	memcpy(writer->memory + writer->used, row->bytes, row->n_bytes);
	if (row->slot)
	{
		slot_getsomeattrs(row->slot, desc->max_attno);
		values = row->slot->tts_values;
		isnull = row->slot->tts_isnull;
	}
	else if (writer->tuple_keys && writer->tuple_keys->index_tuples)
		return finish_tuple(writer, desc, values, isnull, writer->used, row->n_bytes,
							writer->used + row->n_bytes);
	return finish_record(writer, desc, values, isnull, writer->used, row->n_bytes, row->flags,
						 writer->used + row->n_bytes);
}

GsPut
gs_chunk_put(GsChunkWriter *writer, const GsKeyDesc *desc, const GsPutRow *row)
{
	return row->bytes ? put_bytes(writer, desc, row) : put_slot(writer, desc, row->slot);
}

/*
 * Returns the bytes of the key that the device makes of a plain tuple (tuple_map.h) with this data; 0: it
 * may be unable to.
 */
static inline uint32
plain_key_bytes(const GsChunkWriter *writer, const GsKeyDesc *desc, const GsTupleMap *map, const char *data)
{
	uint32		bytes = desc->ncols;

	if (desc->fixed_width > 0)
		return desc->fixed_width;
	for (int i = 0; i < desc->ncols; i++)
	{
		const GsKeyColumn *col = &desc->cols[i];
		int			attno = map->whole ? col->attno : map->sources[col->attno - 1];
		const char *value = data + map->offsets[attno - 1];
		uint32		varying = col->width;

		if (varying == 0)
			varying = varying_bytes(writer, i, VARDATA_1B(value), VARSIZE_1B(value) - VARHDRSZ_SHORT);
		if (unlikely(varying == 0))
			return 0;
		bytes += varying;
	}
	return likely(bytes < GS_KEY_MAX) ? bytes : 0;
}

/* Forms a minimal tuple of a plain tuple's data, as put_values() does of values.  Returns its length. */
static inline uint32
form_plain(const GsTupleMap *map, const char *data, char *row)
{
	char	   *at = row + sizeof(map->header);

	memcpy(row, &map->header, sizeof(map->header));
	for (int i = 0; i < map->tupdesc->natts; i++)
	{
		const GsFormColumn *column = &map->columns[i];
		const char *value = data + map->offsets[map->sources[i] - 1];
		uint32		size = column->len;

		if (column->len < 0)
			size = VARSIZE_1B(value);
		else
			at = gs_form_pad(at, column->align);
		if (column->byval)
			store_att_byval(at, fetch_att(value, true, column->len), column->len);
		else
			memcpy(at, value, size);
		at += size;
	}
	((MinimalTuple) row)->t_len = at - row;
	return at - row;
}

/* Puts a row whose values must be read.  If the row is the table's tuple, it is at row_off. */
static pg_noinline GsPut
put_read(GsChunkWriter *writer, const GsKeyDesc *desc, GsTupleMap *map, HeapTupleHeader tuple,
		 uint32 tuple_len, uint32 row_off, uint32 end)
{
	GsPut		put;

	if (!gs_tuple_map_read(map, tuple, tuple_len))
		return GS_PUT_LEFT;
	if (map->whole)
		put = finish_tuple(writer, desc, map->values, map->isnull, row_off,
						   tuple_len - MINIMAL_TUPLE_OFFSET, end);
	else
		put = put_values(writer, desc, map->tupdesc, map->columns, map->values, map->isnull);
	MemoryContextReset(CurrentMemoryContext);
	return put;
}

/* Puts a row that has columns of a table's tuple. */
static inline GsPut
put_columns(GsChunkWriter *writer, const GsKeyDesc *desc, GsTupleMap *map, HeapTupleHeader tuple,
			uint32 tuple_len)
{
	const char *data = writer->tuple_keys ? gs_tuple_map_find(map, tuple, tuple_len) : NULL;

	if (likely(data != NULL && map->max_plain <= room_left(writer)))
	{
		uint32		key_bytes = plain_key_bytes(writer, desc, map, data);
		uint32		row_bytes = form_plain(map, data, writer->memory + writer->used);

		if (likely(row_bytes <= GS_TUPLE_MAX_BYTES && key_bytes > 0))
		{
			describe_missing(writer, writer->used, row_bytes, writer->used + row_bytes, key_bytes);
			return GS_PUT_OK;
		}
	}
	return put_read(writer, desc, map, tuple, tuple_len, 0, 0);
}

/*
 * Puts a row that is a table's tuple.  row_off: the tuple's place in the copy of its page, where it stays;
 * 0: the tuple is copied alone.
 */
static inline GsPut
put_whole(GsChunkWriter *writer, const GsKeyDesc *desc, GsTupleMap *map, HeapTupleHeader tuple,
		  uint32 tuple_len, uint32 row_off)
{
	uint32		row_bytes = tuple_len - MINIMAL_TUPLE_OFFSET;
	uint32		end = writer->used;
	uint32		key_bytes = 0;

	if (row_off > 0)
	{
		/* keys of rows before may have taken the room of this row's record */
		if (unlikely(room_left(writer) == 0))
			return GS_PUT_FULL;
		set_tuple_length((MinimalTuple) (writer->memory + row_off), row_bytes);
	}
	else
	{
		GsPut		put = copy_heap_tuple(writer, tuple, tuple_len);

		if (unlikely(put != GS_PUT_OK))
			return put;
		row_off = writer->used;
		end = row_off + row_bytes;
	}
	/* make the key of the copy: a catalog's tuple may change itself */
	tuple = (HeapTupleHeader) (writer->memory + row_off - MINIMAL_TUPLE_OFFSET);
	if (writer->tuple_keys && likely(row_bytes <= GS_TUPLE_MAX_BYTES))
	{
		const char *data;

		if (desc->fixed_width > 0 && likely((tuple->t_infomask & HEAP_HASEXTERNAL) == 0))
			key_bytes = desc->fixed_width;
		else if ((data = gs_tuple_map_find(map, tuple, tuple_len)) != NULL)
			key_bytes = plain_key_bytes(writer, desc, map, data);
	}
	if (unlikely(key_bytes == 0))
		return put_read(writer, desc, map, tuple, tuple_len, row_off, end);
	describe_missing(writer, row_off, row_bytes, end, key_bytes);
	return GS_PUT_OK;
}

/* Do n tuples of a page, each as large as the average, fill half of it? */
static inline bool
is_dense(Page page, uint32 n)
{
	uint32		bytes = ((PageHeader) page)->pd_special - ((PageHeader) page)->pd_upper;

	return bytes * n >= BLCKSZ / 2 * PageGetMaxOffsetNumber(page);
}

/*
 * May a tuple become a row in place, in a copy of its page, by writing to its header?  Not if a damaged
 * line pointer points into another tuple.  A tuple's t_ctid points to itself, or to a newer version.  If it
 * does not point to itself, the tuple is copied alone.
 */
static inline bool
is_at_home(HeapTupleHeader tuple, BlockNumber block, OffsetNumber number)
{
	return likely(ItemPointerGetOffsetNumberNoCheck(&tuple->t_ctid) == number &&
				  ItemPointerGetBlockNumberNoCheck(&tuple->t_ctid) == block);
}

/* Is a page worth copying?  The next tuple stands for most others: at home, or not. */
static inline bool
is_worth_copying(const GsPageItems *items)
{
	ItemId		item = PageGetItemId(items->page, items->items[items->done]);

	return is_dense(items->page, items->n) && gs_item_in_page(items->page, item) &&
		is_at_home((HeapTupleHeader) PageGetItem(items->page, item), items->block, items->items[items->done]);
}

bool
gs_chunk_put_page(GsChunkWriter *writer, const GsKeyDesc *desc, GsTupleMap *map, GsPageItems *items)
{
	const Page	page = items->page;
	const BlockNumber block = items->block;
	const uint32 page_off = writer->used;
	const uint32 first = writer->n;
	const bool	copied = map->whole && items->done < items->n && is_worth_copying(items);

	if (copied)
	{
		/* all rows of the page fit, unless keys that are written here take their room */
		if (page_off + BLCKSZ + (first + items->n - items->done) * sizeof(GsRecord) > writer->bytes)
			return false;
		memcpy(writer->memory + page_off, page, BLCKSZ);
		writer->used += BLCKSZ;
	}
	for (; items->done < items->n; items->done++)
	{
		/* a line pointer does not change while the page is pinned and the tuple is visible */
		OffsetNumber number = items->items[items->done];
		ItemId		item = PageGetItemId(page, number);
		HeapTupleHeader tuple = (HeapTupleHeader) PageGetItem(page, item);
		uint32		len = ItemIdGetLength(item);
		uint32		at = page_off + ItemIdGetOffset(item);
		GsPut		put;

		if (unlikely(!gs_item_in_page(page, item)))
			put = GS_PUT_LEFT;
		else if (!map->whole)
			put = put_columns(writer, desc, map, tuple, len);
		else if (copied && is_at_home((HeapTupleHeader) (writer->memory + at), block, number))
			put = put_whole(writer, desc, map, tuple, len, at + MINIMAL_TUPLE_OFFSET);
		else
			put = put_whole(writer, desc, map, tuple, len, 0);
		if (unlikely(put == GS_PUT_FULL))
			break;
		if (unlikely(put != GS_PUT_OK))
			items->items[items->left++] = number;
	}
	if (unlikely(writer->n == first))
		writer->used = page_off;
	return items->done == items->n;
}
