/*-------------------------------------------------------------------------
 *
 * chunk.c
 *	  Writing tuples into chunks (chunk.h).
 *
 * Every row passes here on its way to the device, and this step costs most of
 * that way.  So a tuple is written once, straight into the chunk, with no palloc
 * and no intermediate copy.
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
StaticAssertDecl(GS_KEY_MAX < GS_KEY_TOO_LONG && GS_KEY_MAX <= GS_LENGTH_MASK,
				 "lengths of keys are no answers, and have no flags");

void
gs_chunk_begin(GsChunkWriter *writer, char *memory, const GsTupleKeys *tuple_keys)
{
	Assert(memory == (char *) MAXALIGN(memory));
	writer->memory = memory;
	writer->used = 0;
	writer->n = 0;
	writer->inexact = 0;
	writer->pages = 0;
	writer->missing = 0;
	writer->tuple_keys = tuple_keys;
}

/* Bytes that rows and keys may still take once one more record is described. */
static inline uint32
room_left(const GsChunkWriter *writer)
{
	uint32		taken = writer->used + (writer->n + 1) * sizeof(GsRecord);

	return taken < GS_CHUNK_BYTES ? GS_CHUNK_BYTES - taken : 0;
}

/*
 * The bytes, or a few more, of the key that the device can make of a tuple; 0: it cannot, as a value of
 * the key's columns is compressed or out of line, or because a column before them holds a kind of pointer
 * that the device does not know, or the tuple is too large.
 * values are not looked at where all keys have the same width.
 */
static inline uint32
missing_key_bytes(const GsChunkWriter *writer, const GsKeyDesc *desc, const Datum *values,
				  const bool *isnull, uint32 row_off, uint32 row_bytes)
{
	MinimalTuple tuple = (MinimalTuple) (writer->memory + row_off);
	uint32		bytes = desc->ncols;

	if (row_bytes > GS_TUPLE_MAX_BYTES)
		return 0;

	/* a device knows one kind of pointers, so see whether it can take the tuple apart */
	if (unlikely((tuple->t_infomask & HEAP_HASEXTERNAL) != 0))
	{
		GsTupleValue found[GS_TUPLE_COLUMNS];

		return gs_tuple_key_find(writer->tuple_keys, (const uint8 *) tuple, row_bytes, found);
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

			if (unlikely(VARATT_IS_COMPRESSED(value) || VARATT_IS_EXTERNAL(value)))
				return 0;
			bytes += VARSIZE_ANY_EXHDR(value) + 1;
		}
	}
	return bytes;
}

/*
 * Write the key of the row at row_off to key_off, behind all that is used, and describe the record.
 */
static inline GsPut
finish_record(GsChunkWriter *writer, const GsKeyDesc *desc, const Datum *values,
			  const bool *isnull, uint32 row_off, uint32 row_bytes, uint32 row_flags,
			  uint32 key_off)
{
	uint32		taken = key_off + (writer->n + 1) * sizeof(GsRecord);
	bool		inexact = false;
	uint32		key_len;
	GsRecord   *record;

	if (unlikely(taken > GS_CHUNK_BYTES))
		return GS_PUT_FULL;
	key_len = gs_key_write(desc, values, isnull, (uint8 *) writer->memory + key_off,
						   GS_CHUNK_BYTES - taken, &inexact);
	if (unlikely(key_len == GS_KEY_NO_ROOM))
		return GS_PUT_FULL;
	if (unlikely(key_len == GS_KEY_TOO_LONG))
		return GS_PUT_NO_KEY;

	/*
	 * Keys of the longest length all count as inexact, so that keys which tie
	 * are either all inexact or all exact.  Not so those that are never cut.
	 */
	if (unlikely(key_len >= GS_KEY_MAX && !desc->whole))
		inexact = true;
	if (unlikely(inexact))
		writer->inexact++;

	Assert(desc->fixed_width == 0 || key_len == desc->fixed_width);
	Assert(taken + key_len <= GS_CHUNK_BYTES);
	record = gs_chunk_record(writer->memory, GS_CHUNK_BYTES, writer->n);
	record->row_off = row_off;
	record->row_len = row_bytes | row_flags;
	record->key_off = key_off;
	record->key_len = key_len | (inexact ? GS_KEY_INEXACT : 0);
	writer->n++;
	writer->used = MAXALIGN(key_off + key_len);
	return GS_PUT_OK;
}

/*
 * Leave the key of a row that is a tuple to the device, if it can make it: describe the record
 * without a key.  What is used ends at end.
 */
static inline bool
leave_key(GsChunkWriter *writer, const GsKeyDesc *desc, const Datum *values, const bool *isnull,
		  uint32 row_off, uint32 row_bytes, uint32 end)
{
	uint32		missing = missing_key_bytes(writer, desc, values, isnull, row_off, row_bytes);
	GsRecord   *record = gs_chunk_record(writer->memory, GS_CHUNK_BYTES, writer->n);

	if (unlikely(missing == 0))
		return false;
	*record = (GsRecord){row_off, row_bytes, 0, GS_KEY_MISSING};
	writer->n++;
	writer->used = MAXALIGN(end);
	writer->missing += missing;
	return true;
}

/* Are keys left to the device without a look at the row's values? */
static inline bool
leaves_fixed_keys(const GsChunkWriter *writer, const GsKeyDesc *desc)
{
	return writer->tuple_keys && desc->fixed_width > 0;
}

/* Write the key of a row that is a tuple to key_off, or leave it to the device. */
static inline GsPut
finish_tuple(GsChunkWriter *writer, const GsKeyDesc *desc, const Datum *values,
			 const bool *isnull, uint32 row_off, uint32 row_bytes, uint32 key_off)
{
	if (writer->tuple_keys &&
		likely(leave_key(writer, desc, values, isnull, row_off, row_bytes, key_off)))
		return GS_PUT_OK;
	return finish_record(writer, desc, values, isnull, row_off, row_bytes, 0, key_off);
}

/* The same with the key of a slot's columns, of the row at the end of what is used. */
static inline GsPut
finish_slot(GsChunkWriter *writer, const GsKeyDesc *desc, TupleTableSlot *slot,
			uint32 row_bytes)
{
	if (leaves_fixed_keys(writer, desc) &&
		likely(leave_key(writer, desc, NULL, NULL, writer->used, row_bytes,
						 writer->used + row_bytes)))
		return GS_PUT_OK;
	slot_getsomeattrs(slot, desc->max_attno);
	return finish_tuple(writer, desc, slot->tts_values, slot->tts_isnull, writer->used, row_bytes,
						writer->used + row_bytes);
}

/* Does a row of this size go in, with the shortest key? */
static inline GsPut
check_row(const GsChunkWriter *writer, Size row_bytes)
{
	if (likely(row_bytes < room_left(writer)))
		return row_bytes <= gs_max_row_bytes(GS_CHUNK_BYTES) ? GS_PUT_OK : GS_PUT_BIG;
	return row_bytes <= gs_max_row_bytes(GS_CHUNK_BYTES) ? GS_PUT_FULL : GS_PUT_BIG;
}

/* Form a minimal tuple of any values, as heap_form_minimal_tuple() does. */
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

/* Form a minimal tuple from values.  columns: of tupdesc, or NULL. */
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

	/* a join may have more, which a tuple's header has no room for */
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

/* Copy a heap tuple, like minimal_tuple_from_heap_tuple(). */
static inline GsPut
copy_heap_tuple(GsChunkWriter *writer, HeapTupleHeader from, uint32 from_len, uint32 *len)
{
	MinimalTuple tuple = (MinimalTuple) (writer->memory + writer->used);
	GsPut		put;

	*len = from_len - MINIMAL_TUPLE_OFFSET;
	put = check_row(writer, *len);
	if (unlikely(put != GS_PUT_OK))
		return put;
	memcpy(tuple, (char *) from + MINIMAL_TUPLE_OFFSET, *len);
	tuple->t_len = *len;
	memset(tuple->mt_padding, 0, sizeof(tuple->mt_padding));
	return GS_PUT_OK;
}

static GsPut
put_tuple(GsChunkWriter *writer, const GsKeyDesc *desc, const GsPutRow *row)
{
	const GsTupleMap *map = row->map;
	uint32		len;
	GsPut		put;

	if (!map->whole)
		return put_values(writer, desc, map->tupdesc, map->columns, map->values, map->isnull);
	put = copy_heap_tuple(writer, row->tuple, row->tuple_len, &len);
	if (unlikely(put != GS_PUT_OK))
		return put;
	return finish_tuple(writer, desc, map->values, map->isnull, writer->used, len,
						writer->used + len);
}

/* A slot's tuple and key, copied from where the tuple lies if it is formed. */
static inline GsPut
put_slot(GsChunkWriter *writer, const GsKeyDesc *desc, TupleTableSlot *slot)
{
	MinimalTuple tuple = (MinimalTuple) (writer->memory + writer->used);
	GsPut		put;

	if (TTS_IS_BUFFERTUPLE(slot) || TTS_IS_HEAPTUPLE(slot))
	{
		HeapTuple	heap = ((HeapTupleTableSlot *) slot)->tuple;

		if (heap)
		{
			uint32		len;

			put = copy_heap_tuple(writer, heap->t_data, heap->t_len, &len);
			if (unlikely(put != GS_PUT_OK))
				return put;
			return finish_slot(writer, desc, slot, len);
		}
	}
	else if (TTS_IS_MINIMALTUPLE(slot))
	{
		MinimalTuple mintuple = ((MinimalTupleTableSlot *) slot)->mintuple;

		if (mintuple)
		{
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
	return finish_record(writer, desc, values, isnull, writer->used, row->n_bytes, row->flags,
						 writer->used + row->n_bytes);
}

GsPut
gs_chunk_put(GsChunkWriter *writer, const GsKeyDesc *desc, const GsPutRow *row)
{
	if (row->map)
		return put_tuple(writer, desc, row);
	return row->bytes ? put_bytes(writer, desc, row) : put_slot(writer, desc, row->slot);
}

GsPut
gs_chunk_put_page(GsChunkWriter *writer, const GsKeyDesc *desc, GsTupleMap *map, Page page,
				  OffsetNumber *items, uint32 n, uint32 *done, uint32 *left)
{
	uint32		page_off = writer->used;
	uint32		first = writer->n;
	char	   *copy = writer->memory + page_off;
	uint32		i;
	GsPut		put = GS_PUT_OK;

	/* all of the page's rows fit, unless keys that are written here take their room */
	if (page_off + BLCKSZ + (first + n - *done) * sizeof(GsRecord) > GS_CHUNK_BYTES)
		return GS_PUT_FULL;
	memcpy(copy, page, BLCKSZ);
	writer->used += BLCKSZ;
	for (i = *done; i < n; i++)
	{
		/* a line pointer does not change while the page is pinned and the tuple is visible */
		ItemId		item = PageGetItemId(copy, items[i]);
		uint32		row_off = page_off + ItemIdGetOffset(item) + MINIMAL_TUPLE_OFFSET;
		uint32		row_bytes = ItemIdGetLength(item) - MINIMAL_TUPLE_OFFSET;
		MinimalTuple tuple = (MinimalTuple) (writer->memory + row_off);

		/* keys written for rows before may have taken the room of this one's record */
		if (unlikely(room_left(writer) == 0))
		{
			put = GS_PUT_FULL;
			break;
		}
		/* nothing outside of the copy may be written, whatever a damaged line pointer says */
		if (unlikely(ItemIdGetOffset(item) + ItemIdGetLength(item) > BLCKSZ))
		{
			items[(*left)++] = items[i];
			continue;
		}
		tuple->t_len = row_bytes;
		memset(tuple->mt_padding, 0, sizeof(tuple->mt_padding));
		if (leaves_fixed_keys(writer, desc) &&
			likely(leave_key(writer, desc, NULL, NULL, row_off, row_bytes, writer->used)))
			continue;
		gs_tuple_map_read(map, (HeapTupleHeader) PageGetItem(copy, item));
		put = finish_tuple(writer, desc, map->values, map->isnull, row_off, row_bytes, writer->used);
		if (unlikely(put == GS_PUT_NO_KEY))
		{
			items[(*left)++] = items[i];
			put = GS_PUT_OK;
		}
		if (unlikely(put != GS_PUT_OK))
			break;
	}
	if (unlikely(writer->n == first))
		writer->used = page_off;
	*done = i;
	return put;
}
