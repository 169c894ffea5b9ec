/*-------------------------------------------------------------------------
 *
 * chunk.c
 *	  Writing tuples into chunks (chunk.h).
 *
 * Every row passes here on its way to the device, and this step costs most of
 * that way.  So a tuple is written once, straight into the chunk, with no palloc
 * and no intermediate copy.
 *
 * Tests: regress/large, regress/spill
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"

#include "chunk/chunk.h"

/* Rows begin at multiples of MAXALIGN(), and device.h has flags in the low bits. */
StaticAssertDecl(MAXIMUM_ALIGNOF > GS_ENTRY_FLAGS, "rows are aligned as devices want them");

/* A row that is not too large fits into an empty chunk with any key. */
StaticAssertDecl(gs_max_row_bytes(GS_CHUNK_BYTES) + MAXIMUM_ALIGNOF + GS_KEY_MAX + sizeof(GsRecord) <
				 GS_CHUNK_BYTES, "any row and key fit into an empty chunk");
StaticAssertDecl(GS_KEY_MAX < GS_KEY_TOO_LONG && GS_KEY_MAX <= GS_LENGTH_MASK,
				 "lengths of keys are no answers, and have no flags");

void
gs_chunk_begin(GsChunkWriter *writer, char *memory)
{
	Assert(memory == (char *) MAXALIGN(memory));
	writer->memory = memory;
	writer->used = 0;
	writer->n = 0;
	writer->inexact = 0;
}

/* Bytes that rows and keys may still take once one more record is described. */
static inline uint32
room_left(const GsChunkWriter *writer)
{
	uint32		taken = writer->used + (writer->n + 1) * sizeof(GsRecord);

	return taken < GS_CHUNK_BYTES ? GS_CHUNK_BYTES - taken : 0;
}

/*
 * Write the key behind the row, which takes row_bytes at the end of what is
 * used, and describe the record.
 */
static inline GsPut
finish_record(GsChunkWriter *writer, const GsKeyDesc *desc, const Datum *values,
			  const bool *isnull, uint32 row_bytes, uint32 row_flags)
{
	uint32		key_off = writer->used + row_bytes;
	bool		inexact = false;
	uint32		key_len;
	GsRecord   *record;

	key_len = gs_key_write(desc, values, isnull, (uint8 *) writer->memory + key_off,
						   room_left(writer) - row_bytes, &inexact);
	if (unlikely(key_len == GS_KEY_NO_ROOM))
		return GS_PUT_FULL;
	if (unlikely(key_len == GS_KEY_TOO_LONG))
		return GS_PUT_NO_KEY;

	/*
	 * Keys of the longest length all count as inexact, so that keys which tie
	 * are either all inexact or all exact.  Not so those that are never cut.
	 */
	if (unlikely(key_len >= GS_KEY_MAX && !desc->whole))
	{
		inexact = true;
		writer->inexact++;
	}

	Assert(desc->fixed_width == 0 || key_len == desc->fixed_width);
	Assert(key_off + key_len + (writer->n + 1) * sizeof(GsRecord) <= GS_CHUNK_BYTES);
	record = gs_chunk_record(writer->memory, GS_CHUNK_BYTES, writer->n);
	record->row_off = writer->used;
	record->row_len = row_bytes | row_flags;
	record->key_off = key_off;
	record->key_len = key_len | (inexact ? GS_KEY_INEXACT : 0);
	writer->n++;
	writer->used = MAXALIGN(key_off + key_len);
	return GS_PUT_OK;
}

/* The same with the key of a slot's columns. */
static inline GsPut
finish_slot(GsChunkWriter *writer, const GsKeyDesc *desc, TupleTableSlot *slot,
			uint32 row_bytes, uint32 row_flags)
{
	slot_getsomeattrs(slot, desc->max_attno);
	return finish_record(writer, desc, slot->tts_values, slot->tts_isnull, row_bytes, row_flags);
}

/* Does a row of this size go in, with the shortest key? */
static inline GsPut
check_row(const GsChunkWriter *writer, Size row_bytes)
{
	if (likely(row_bytes < room_left(writer)))
		return row_bytes <= gs_max_row_bytes(GS_CHUNK_BYTES) ? GS_PUT_OK : GS_PUT_BIG;
	return row_bytes <= gs_max_row_bytes(GS_CHUNK_BYTES) ? GS_PUT_FULL : GS_PUT_BIG;
}

/* Form a minimal tuple from the slot's values, as heap_form_minimal_tuple does. */
static GsPut
put_values(GsChunkWriter *writer, const GsKeyDesc *desc, TupleTableSlot *slot)
{
	TupleDesc	tupdesc = slot->tts_tupleDescriptor;
	int			natts = tupdesc->natts;
	Size		len;
	Size		data_len;
	int			hoff;
	bool		hasnull = false;
	MinimalTuple tuple;
	GsPut		put;

	/* a join may have more, which a tuple's header has no room for */
	if (unlikely(natts > MaxTupleAttributeNumber))
		ereport(ERROR,
				(errcode(ERRCODE_TOO_MANY_COLUMNS),
				 errmsg("number of columns (%d) exceeds limit (%d)",
						natts, MaxTupleAttributeNumber)));
	slot_getallattrs(slot);
	for (int i = 0; i < natts; i++)
		if (slot->tts_isnull[i])
		{
			hasnull = true;
			break;
		}

	len = SizeofMinimalTupleHeader;
	if (hasnull)
		len += BITMAPLEN(natts);
	hoff = len = MAXALIGN(len);
	data_len = heap_compute_data_size(tupdesc, slot->tts_values, slot->tts_isnull);
	len += data_len;

	put = check_row(writer, len);
	if (unlikely(put != GS_PUT_OK))
		return put;
	tuple = (MinimalTuple) (writer->memory + writer->used);
	memset(tuple, 0, len);
	tuple->t_len = len;
	HeapTupleHeaderSetNatts(tuple, natts);
	tuple->t_hoff = hoff + MINIMAL_TUPLE_OFFSET;
	heap_fill_tuple(tupdesc, slot->tts_values, slot->tts_isnull,
					(char *) tuple + hoff, data_len, &tuple->t_infomask,
					hasnull ? tuple->t_bits : NULL);
	return finish_slot(writer, desc, slot, len, 0);
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

		/* like minimal_tuple_from_heap_tuple() */
		if (heap)
		{
			uint32		len = heap->t_len - MINIMAL_TUPLE_OFFSET;

			put = check_row(writer, len);
			if (unlikely(put != GS_PUT_OK))
				return put;
			memcpy(tuple, (char *) heap->t_data + MINIMAL_TUPLE_OFFSET, len);
			tuple->t_len = len;
			memset(tuple->mt_padding, 0, sizeof(tuple->mt_padding));
			return finish_slot(writer, desc, slot, len, 0);
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
			return finish_slot(writer, desc, slot, mintuple->t_len, 0);
		}
	}
	return put_values(writer, desc, slot);
}

static GsPut
put_bytes(GsChunkWriter *writer, const GsKeyDesc *desc, const GsPutRow *row)
{
	GsPut		put = check_row(writer, row->n_bytes);

	if (unlikely(put != GS_PUT_OK))
		return put;
	memcpy(writer->memory + writer->used, row->bytes, row->n_bytes);
	if (row->slot)
		return finish_slot(writer, desc, row->slot, row->n_bytes, row->flags);
	return finish_record(writer, desc, row->values, row->isnull, row->n_bytes, row->flags);
}

GsPut
gs_chunk_put(GsChunkWriter *writer, const GsKeyDesc *desc, const GsPutRow *row)
{
	return row->bytes ? put_bytes(writer, desc, row) : put_slot(writer, desc, row->slot);
}
