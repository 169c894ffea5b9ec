/*-------------------------------------------------------------------------
 *
 * array_batch.c
 *	  Sorting the arrays of many rows on the device (array_batch.h).
 *
 * An array is copied once, with its header, to a place in a chunk.  Its elements are sorted there, and the
 * row that it belongs to finds it there afterwards.  Out-of-line values that are not compressed are read
 * from their TOAST table straight into the chunk.  The device gets the elements only.  NULLs are bits in an
 * array's header, and are put in their places when the array is copied.
 *
 *		chunk:	| header | elements | header | elements | ...	<- records |
 *
 * Memory
 *	  Each call has a session of the service, and a chunk of staging memory in each batch that goes to the
 *	  device.  Everything else is in the batch's context: all arrays, while they are few or there is no
 *	  device.  A batch with more than work_mem there is full.  A session is promised two chunks; further
 *	  batches wait until others have ended.
 *
 * Nothing is lost
 *	  The device sorts in place.  In a chunk that it did not sort, each array is sorted or as it was, so
 *	  this process sorts it.  Only if the device fails while it writes a chunk, the query ends with an
 *	  error.
 *
 * Tests: regress/arrays_plans, tap/arrays_faults
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "array/array_batch.h"
#include "array/array_toast.h"
#include "client/client.h"
#include "gpusort.h"
#include "guc.h"
#include "host/host_arrays.h"

/* A call of gpu_sort_array().  Each row has an array for each call. */
typedef struct Call
{
	const GsArrayCall *spec;
	GsElem		elem;
	uint32		elem_bytes;
	GsClient   *client;			/* NULL: no session yet */
	GsArraySorter *sorter;		/* for arrays that the device does not sort; NULL: none yet */
	Oid			sorter_type;
	GsToastReader *toast;		/* NULL: not needed yet */
	Size		bytes;			/* of the array in work, uncompressed and in line */
} Call;

/* A call's chunk of staging memory in a batch. */
typedef struct BatchChunk
{
	int			number;
	char	   *memory;			/* GS_CHUNK_BYTES */
	uint32		used;			/* bytes */
	uint32		n;				/* arrays to be sorted */
} BatchChunk;

struct GsArrayBatch
{
	GsArrayStream *stream;
	bool		on_device;		/* it has chunks */
	uint64		rows;
	uint64		arrays;			/* sorted in no chunk */
	MemoryContext context;		/* has the batch, and the arrays in no chunk */
	BatchChunk	chunks[FLEXIBLE_ARRAY_MEMBER];	/* one a call */
};

struct GsArrayStream
{
	MemoryContext context;
	bool		off;			/* the device is not used any more */
	uint64		elements;		/* seen so far */
	int			n_open;			/* batches begun and not ended */
	MemoryContext scratch;		/* of one call */
	void	   *sort_scratch;	/* GS_CHUNK_BYTES; NULL: not needed yet */
	GsArrayReport report;
	int			n_calls;
	Call		calls[FLEXIBLE_ARRAY_MEMBER];
};

GsArrayStream *
gs_array_stream_begin(int n_calls, const GsArrayCall *calls)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpusort arrays",
												  ALLOCSET_DEFAULT_SIZES);
	GsArrayStream *stream = MemoryContextAllocZero(context, offsetof(GsArrayStream, calls) +
												   n_calls * sizeof(Call));

	stream->context = context;
	stream->scratch = AllocSetContextCreate(context, "gpusort array", ALLOCSET_DEFAULT_SIZES);
	stream->report.fallback = GS_FALLBACK_NONE;
	stream->n_calls = n_calls;
	for (int i = 0; i < n_calls; i++)
	{
		Call	   *call = &stream->calls[i];

		call->spec = &calls[i];
		call->elem = gs_array_elem(calls[i].element_type);
		Assert(call->elem != GS_ELEM_NONE);
		call->elem_bytes = gs_elem_bytes(call->elem);
	}
	return stream;
}

static void
note_fallback(GsArrayStream *stream, GsFallback reason)
{
	if (stream->report.fallback != GS_FALLBACK_NONE)
		return;
	stream->report.fallback = reason;
	gs_stats_fallback(reason);
	ereport(DEBUG1,
			(errmsg_internal("gpusort: the process sorts the arrays instead of the device: %s",
							 gs_fallback_name(reason))));
}

/*
 * Batches
 */

/* Sessions are opened for the first batch that goes to the device, so none is in use. */
static void
close_sessions(GsArrayStream *stream)
{
	for (int i = 0; i < stream->n_calls; i++)
	{
		if (stream->calls[i].client)
			gs_client_close(stream->calls[i].client);
		stream->calls[i].client = NULL;
	}
}

/* Opens sessions for all calls.  False: one could not be opened, and none is kept. */
static bool
open_sessions(GsArrayStream *stream)
{
	for (int i = 0; i < stream->n_calls; i++)
	{
		Call	   *call = &stream->calls[i];
		GsSessionSpec spec = {.sort = {.elem = call->elem, .descending = call->spec->descending}};
		MemoryContext old;
		GsFallback	reason;

		if (call->client)
			continue;
		old = MemoryContextSwitchTo(stream->context);
		call->client = gs_client_open(&spec, 1, &reason);
		MemoryContextSwitchTo(old);
		if (call->client == NULL)
		{
			note_fallback(stream, reason);
			stream->off = true;
			close_sessions(stream);
			return false;
		}
	}
	return true;
}

/* Takes staging memory for all calls of a batch, or none. */
static bool
take_chunks(GsArrayBatch *batch)
{
	GsArrayStream *stream = batch->stream;

	for (int i = 0; i < stream->n_calls; i++)
	{
		BatchChunk *chunk = &batch->chunks[i];

		chunk->number = gs_client_try_chunk(stream->calls[i].client);
		if (chunk->number >= 0)
		{
			chunk->memory = gs_chunk_memory(chunk->number);
			chunk->used = chunk->n = 0;
			continue;
		}
		while (--i >= 0)
			gs_client_give_chunk(stream->calls[i].client, batch->chunks[i].number);
		return false;
	}
	return true;
}

GsArrayBatch *
gs_array_batch_begin(GsArrayStream *stream, bool may_use_device)
{
	MemoryContext context = AllocSetContextCreate(stream->context, "gpusort batch of arrays",
												  ALLOCSET_DEFAULT_SIZES);
	GsArrayBatch *batch = MemoryContextAllocZero(context, offsetof(GsArrayBatch, chunks) +
												 stream->n_calls * sizeof(BatchChunk));

	batch->stream = stream;
	batch->context = context;
	batch->on_device = may_use_device && !stream->off &&
		(gs_guc_force || stream->elements >= gs_guc_min_rows) && open_sessions(stream);
	if (batch->on_device && !take_chunks(batch))
	{
		if (stream->n_open > 0)
		{
			MemoryContextDelete(context);
			return NULL;
		}

		/* promised chunks are there, unless the service is gone */
		note_fallback(stream, GS_FALLBACK_LOST);
		stream->off = true;
		batch->on_device = false;
	}
	stream->n_open++;
	return batch;
}

bool
gs_array_batch_on_device(const GsArrayBatch *batch)
{
	return batch->on_device;
}

/*
 * Arrays
 */

/* VARATT_IS_SHORT() holds for pointers to out-of-line values as well. */
static inline bool
is_short(struct varlena *array)
{
	return VARATT_IS_SHORT(array) && !VARATT_IS_EXTERNAL(array);
}

/* Reads an out-of-line value that is not compressed straight to dst.  False: it is not such a value. */
static bool
fetch_plain(GsArrayStream *stream, Call *call, struct varlena *array, struct varlena *dst)
{
	struct varatt_external pointer;

	if (!VARATT_IS_EXTERNAL_ONDISK(array))
		return false;
	VARATT_EXTERNAL_GET_POINTER(pointer, array);
	if (VARATT_EXTERNAL_IS_COMPRESSED(pointer))
		return false;
	if (call->toast == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(stream->context);

		call->toast = gs_toast_reader_create();
		MemoryContextSwitchTo(old);
	}
	return gs_toast_read(call->toast, &pointer, dst);
}

/* Writes an array to a place that has room for call->bytes. */
static void
write_plain(GsArrayStream *stream, Call *call, struct varlena *array, struct varlena *dst)
{
	Size		bytes = call->bytes;

	if (is_short(array))
	{
		SET_VARSIZE(dst, bytes);
		memcpy(VARDATA(dst), VARDATA_SHORT(array), bytes - VARHDRSZ);
	}
	else if (VARATT_IS_4B_U(array))
		memcpy(dst, array, bytes);
	else if (!fetch_plain(stream, call, array, dst))
	{
		MemoryContext old = MemoryContextSwitchTo(stream->scratch);
		struct varlena *plain = detoast_attr(array);

		Assert(VARSIZE(plain) == bytes);
		memcpy(dst, plain, bytes);
		MemoryContextSwitchTo(old);
		MemoryContextReset(stream->scratch);
	}
}

/* Sorts an array in this process.  The result lives as long as the batch. */
static ArrayType *
sort_beside(GsArrayBatch *batch, Call *call, ArrayType *array, bool in_place)
{
	GsArrayStream *stream = batch->stream;
	const GsArrayCall *spec = call->spec;
	MemoryContext old;

	stream->elements += ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	if (call->sorter == NULL || call->sorter_type != ARR_ELEMTYPE(array))
	{
		old = MemoryContextSwitchTo(stream->context);
		call->sorter = gs_array_sorter_create(ARR_ELEMTYPE(array), spec->collation, spec->descending);
		call->sorter_type = ARR_ELEMTYPE(array);
		MemoryContextSwitchTo(old);
	}
	old = MemoryContextSwitchTo(batch->context);
	array = gs_array_sort(call->sorter, array, spec->nulls_first, in_place);
	MemoryContextSwitchTo(old);
	batch->arrays++;
	return array;
}

/* Copies and sorts an array for which no chunk has room. */
static ArrayType *
put_beside(GsArrayBatch *batch, Call *call, struct varlena *array)
{
	ArrayType  *copy = MemoryContextAlloc(batch->context, call->bytes);

	write_plain(batch->stream, call, array, (struct varlena *) copy);
	return gs_array_is_trivial(copy) ? copy : sort_beside(batch, call, copy, true);
}

/* Writes an array into its call's chunk, which has room, and describes its elements. */
static ArrayType *
put_into_chunk(GsArrayBatch *batch, Call *call, BatchChunk *chunk, struct varlena *array)
{
	const GsArrayCall *spec = call->spec;
	ArrayType  *copy = (ArrayType *) (chunk->memory + chunk->used);
	GsRecord   *record;
	int			n;

	write_plain(batch->stream, call, array, (struct varlena *) copy);
	if (gs_array_is_trivial(copy))
	{
		chunk->used += MAXALIGN(call->bytes);
		return copy;
	}
	if (unlikely(ARR_NDIM(copy) != 1 || ARR_ELEMTYPE(copy) != spec->element_type))
		return sort_beside(batch, call, copy, false);

	n = ARR_DIMS(copy)[0];
	if (ARR_HASNULL(copy))
		n = gs_array_place_nulls(copy, spec->nulls_first);

	/* a device may do anything with a wrong record */
	if (unlikely(ARR_DATA_OFFSET(copy) % MAXIMUM_ALIGNOF != 0 ||
				 ARR_DATA_OFFSET(copy) + (uint64) n * call->elem_bytes > call->bytes))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("array has %zu bytes, too few for its %d elements", call->bytes, n)));
	record = gs_chunk_record(chunk->memory, GS_CHUNK_BYTES, chunk->n);
	record->row_off = chunk->used + ARR_DATA_OFFSET(copy);
	record->row_len = n * call->elem_bytes;
	record->key_off = 0;
	record->key_len = 0;
	chunk->n++;
	chunk->used += MAXALIGN(call->bytes);
	batch->stream->elements += n;
	return copy;
}

/* Does a chunk have room for an array of this size? */
static inline bool
has_room(const BatchChunk *chunk, Size bytes)
{
	return chunk->used + MAXALIGN(bytes) + (chunk->n + 1) * sizeof(GsRecord) <= GS_CHUNK_BYTES;
}

bool
gs_array_batch_put(GsArrayBatch *batch, const Datum *arrays, const bool *nulls, Datum *sorted)
{
	GsArrayStream *stream = batch->stream;

	if (batch->rows > 0 && MemoryContextMemAllocated(batch->context, false) > work_mem * (Size) 1024)
		return false;
	for (int i = 0; i < stream->n_calls; i++)
	{
		if (nulls[i])
			continue;
		stream->calls[i].bytes = toast_raw_datum_size(arrays[i]);
		if (batch->on_device && batch->rows > 0 && !has_room(&batch->chunks[i], stream->calls[i].bytes))
			return false;
	}
	for (int i = 0; i < stream->n_calls; i++)
	{
		Call	   *call = &stream->calls[i];
		struct varlena *array = (struct varlena *) DatumGetPointer(arrays[i]);

		if (nulls[i])
			continue;
		if (likely(batch->on_device && has_room(&batch->chunks[i], call->bytes)))
			sorted[i] = PointerGetDatum(put_into_chunk(batch, call, &batch->chunks[i], array));
		else
			sorted[i] = PointerGetDatum(put_beside(batch, call, array));
	}
	batch->rows++;
	return true;
}

/* Sorts a chunk's arrays in this process. */
static void
sort_chunk(GsArrayStream *stream, const Call *call, const BatchChunk *chunk)
{
	if (stream->sort_scratch == NULL)
		stream->sort_scratch = MemoryContextAlloc(stream->context, GS_CHUNK_BYTES);
	for (uint32 i = 0; i < chunk->n; i++)
	{
		const GsRecord *record = gs_chunk_record(chunk->memory, GS_CHUNK_BYTES, i);

		CHECK_FOR_INTERRUPTS();
		gs_host_sort_elements(call->elem, call->spec->descending, chunk->memory + record->row_off,
							  record->row_len / call->elem_bytes, stream->sort_scratch, NULL);
	}
}

void
gs_array_batch_submit(GsArrayBatch *batch)
{
	GsArrayStream *stream = batch->stream;

	if (batch->rows == 0)
		return;
	stream->report.batches++;
	stream->report.arrays += batch->arrays;
	if (!batch->on_device)
		return;
	stream->report.device_batches++;
	for (int i = 0; i < stream->n_calls; i++)
	{
		BatchChunk *chunk = &batch->chunks[i];

		stream->report.arrays += chunk->n;
		if (chunk->n > 0)
			gs_client_sort_arrays(stream->calls[i].client, chunk->number, chunk->used, chunk->n);
	}
}

void
gs_array_batch_finish(GsArrayBatch *batch)
{
	GsArrayStream *stream = batch->stream;

	if (!batch->on_device)
		return;
	for (int i = 0; i < stream->n_calls; i++)
	{
		BatchChunk *chunk = &batch->chunks[i];

		if (chunk->n == 0)
			continue;
		switch (gs_client_wait_arrays(stream->calls[i].client, chunk->number))
		{
			case GS_ARRAYS_SORTED:
				stream->report.device_arrays += chunk->n;
				break;
			case GS_ARRAYS_REFUSED:
				note_fallback(stream, gs_client_session(stream->calls[i].client)->overflow_reason);
				sort_chunk(stream, &stream->calls[i], chunk);
				break;
			case GS_ARRAYS_NO_SERVICE:
				note_fallback(stream, GS_FALLBACK_LOST);
				stream->off = true;
				sort_chunk(stream, &stream->calls[i], chunk);
				break;
			case GS_ARRAYS_LOST:
				ereport(ERROR,
						(errcode(ERRCODE_SYSTEM_ERROR),
						 errmsg("gpusort lost its device during a sort"),
						 errdetail("The device failed while it returned sorted arrays."),
						 errhint("Retry the query.")));
		}
	}
}

void
gs_array_batch_end(GsArrayBatch *batch)
{
	GsArrayStream *stream = batch->stream;

	if (batch->on_device)
		for (int i = 0; i < stream->n_calls; i++)
			gs_client_give_chunk(stream->calls[i].client, batch->chunks[i].number);
	stream->n_open--;
	MemoryContextDelete(batch->context);
}

void
gs_array_report_add(GsArrayReport *total, const GsArrayReport *report)
{
	total->arrays += report->arrays;
	total->device_arrays += report->device_arrays;
	total->batches += report->batches;
	total->device_batches += report->device_batches;
	if (total->fallback == GS_FALLBACK_NONE)
		total->fallback = report->fallback;
	if (report->engine[0] != '\0')
		strlcpy(total->engine, report->engine, sizeof(total->engine));
	total->devices |= report->devices;
	total->copy_in_ms += report->copy_in_ms;
	total->sort_ms += report->sort_ms;
	total->copy_out_ms += report->copy_out_ms;
}

void
gs_array_stream_report(const GsArrayStream *stream, GsArrayReport *report)
{
	GsArrayReport so_far = stream->report;

	for (int i = 0; i < stream->n_calls; i++)
	{
		const GsSession *session;

		if (stream->calls[i].client == NULL)
			continue;
		session = gs_client_session(stream->calls[i].client);
		strlcpy(so_far.engine, session->outcome.engine, sizeof(so_far.engine));
		so_far.devices |= gs_client_devices(stream->calls[i].client);
		so_far.copy_in_ms += session->outcome.copy_in_ms;
		so_far.sort_ms += session->outcome.sort_ms;
		so_far.copy_out_ms += session->outcome.copy_out_ms;
	}
	gs_array_report_add(report, &so_far);
}

void
gs_array_stream_end(GsArrayStream *stream)
{
	gs_stats_count(GS_COUNT_ARRAYS, stream->report.arrays);
	gs_stats_count(GS_COUNT_DEVICE_ARRAYS, stream->report.device_arrays);
	for (int i = 0; i < stream->n_calls; i++)
		if (stream->calls[i].toast)
			gs_toast_reader_close(stream->calls[i].toast);
	MemoryContextDelete(stream->context);
}
