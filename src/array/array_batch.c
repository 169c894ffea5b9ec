/*-------------------------------------------------------------------------
 *
 * array_batch.c
 *	  Sorting the arrays of many rows on the device (array_batch.h).
 *
 * An array is copied once: whole, with its header, to the place in a chunk
 * where its elements are sorted and where the row that it belongs to finds it
 * afterwards.  Out-of-line values that are not compressed are read from their
 * TOAST table straight into the chunk.  The device is told of the elements
 * only; an array's NULLs are bits in its header, put where they belong when
 * it is copied.
 *
 *		chunk:	| header | elements | header | elements | ...	<- records |
 *
 * Groups
 *	  Arrays of one kind of element and one direction share a session of the
 *	  service, and a chunk in each batch.  A row's arrays are all in one batch.
 *
 * Memory
 *	  A batch has one chunk a group, either of staging memory or, while arrays
 *	  are few or there is no device, of this process.  What is not in a chunk is
 *	  in the batch's context, and a batch that has more than work_mem there is
 *	  full.  A session is promised two chunks; further batches wait until
 *	  others have ended.
 *
 * Nothing is lost
 *	  The device sorts in place, and a chunk that it did not sort comes back with
 *	  each array sorted or as it was: it is then sorted here.  Only where the
 *	  device itself fails while it writes a chunk is there no way on but an
 *	  error.
 *
 * Tests: regress/arrays_plans, tap/arrays_faults
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "miscadmin.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"

#include "array/array_batch.h"
#include "array/array_toast.h"
#include "device/host_arrays.h"
#include "gpusort.h"
#include "guc.h"
#include "service/service_client.h"

/* Arrays of one kind of element and one direction. */
typedef struct ArrayGroup
{
	GsElem		elem;
	uint32		elem_bytes;
	bool		descending;
	GsClient   *client;			/* NULL: no session yet */
} ArrayGroup;

/* A chunk of a batch. */
typedef struct BatchChunk
{
	char	   *memory;			/* GS_CHUNK_BYTES */
	int			number;			/* in staging memory; -1: of this process */
	char	   *own_memory;		/* of this process; NULL: not needed yet */
	uint32		used;			/* bytes */
	uint32		n;				/* arrays to be sorted */
	uint32		row_used;		/* the same before the row in work */
	uint32		row_n;
} BatchChunk;

struct GsArrayBatch
{
	GsArrayStream *stream;
	bool		on_device;
	uint64		rows;
	uint64		arrays;			/* sorted otherwise than by the chunks */
	Size		extra_bytes;	/* in context */
	MemoryContext context;		/* of arrays that are in no chunk */
	GsArrayBatch *next_free;
	BatchChunk	chunks[FLEXIBLE_ARRAY_MEMBER];	/* one a group */
};

struct GsArrayStream
{
	MemoryContext context;
	int			n_calls;
	const GsArrayCall *calls;
	int		   *group_of;		/* group of each call */
	GsArraySorter **sorters;	/* of each call, for what the device does not
								 * do; NULL: none yet */
	Oid		   *sorter_types;
	GsToastReader **toast;		/* of each call; NULL: not needed yet */
	int			n_groups;
	ArrayGroup *groups;
	bool		off;			/* the device is not to be had any more */
	uint64		elements;		/* seen so far */
	int			n_open;			/* batches begun and not ended */
	GsArrayBatch *free_batches;
	MemoryContext scratch;		/* of one call */
	void	   *sort_scratch;	/* GS_CHUNK_BYTES; NULL: not needed yet */
	GsArrayReport report;
};

GsArrayStream *
gs_array_stream_begin(int n_calls, const GsArrayCall *calls)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpusort arrays",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GsArrayStream *stream = palloc0(sizeof(GsArrayStream));

	stream->context = context;
	stream->scratch = AllocSetContextCreate(context, "gpusort array", ALLOCSET_DEFAULT_SIZES);
	stream->n_calls = n_calls;
	stream->calls = calls;
	stream->group_of = palloc(n_calls * sizeof(int));
	stream->sorters = palloc0(n_calls * sizeof(GsArraySorter *));
	stream->sorter_types = palloc0(n_calls * sizeof(Oid));
	stream->toast = palloc0(n_calls * sizeof(GsToastReader *));
	stream->groups = palloc0(n_calls * sizeof(ArrayGroup));
	stream->report.fallback = GS_FALLBACK_NONE;
	for (int i = 0; i < n_calls; i++)
	{
		GsElem		elem = gs_array_elem(calls[i].element_type);
		int			group = 0;

		Assert(elem != GS_ELEM_NONE);
		while (group < stream->n_groups && (stream->groups[group].elem != elem ||
											stream->groups[group].descending != calls[i].descending))
			group++;
		if (group == stream->n_groups)
		{
			stream->groups[group].elem = elem;
			stream->groups[group].elem_bytes = gs_elem_bytes(elem);
			stream->groups[group].descending = calls[i].descending;
			stream->n_groups++;
		}
		stream->group_of[i] = group;
	}
	MemoryContextSwitchTo(old);
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

/* They are opened for the first batch that wants them, so none is in use. */
static void
close_sessions(GsArrayStream *stream)
{
	for (int i = 0; i < stream->n_groups; i++)
	{
		if (stream->groups[i].client)
			gs_client_close(stream->groups[i].client);
		stream->groups[i].client = NULL;
	}
}

/* Sessions for all groups; where there is one missing false, and none is kept. */
static bool
open_sessions(GsArrayStream *stream)
{
	for (int i = 0; i < stream->n_groups; i++)
	{
		ArrayGroup *group = &stream->groups[i];
		GsSessionSpec spec = {.sort = {.elem = group->elem, .descending = group->descending}};
		MemoryContext old;
		GsFallback	reason;

		if (group->client)
			continue;
		old = MemoryContextSwitchTo(stream->context);
		group->client = gs_client_open(&spec, 1, &reason);
		MemoryContextSwitchTo(old);
		if (group->client == NULL)
		{
			note_fallback(stream, reason);
			stream->off = true;
			close_sessions(stream);
			return false;
		}
	}
	return true;
}

/* Staging memory for all groups of a batch, or none at all. */
static bool
take_chunks(GsArrayBatch *batch)
{
	GsArrayStream *stream = batch->stream;

	for (int i = 0; i < stream->n_groups; i++)
	{
		BatchChunk *chunk = &batch->chunks[i];

		chunk->number = gs_client_try_chunk(stream->groups[i].client);
		if (chunk->number >= 0)
		{
			chunk->memory = gs_chunk_memory(chunk->number);
			continue;
		}
		while (--i >= 0)
			gs_client_give_chunk(stream->groups[i].client, batch->chunks[i].number);
		return false;
	}
	return true;
}

static GsArrayBatch *
make_batch(GsArrayStream *stream)
{
	GsArrayBatch *batch = stream->free_batches;

	if (batch)
		stream->free_batches = batch->next_free;
	else
	{
		batch = MemoryContextAllocZero(stream->context, offsetof(GsArrayBatch, chunks) +
									   stream->n_groups * sizeof(BatchChunk));
		batch->stream = stream;
		batch->context = AllocSetContextCreate(stream->context, "gpusort batch of arrays",
											   ALLOCSET_DEFAULT_SIZES);
	}
	batch->rows = 0;
	batch->arrays = 0;
	batch->extra_bytes = 0;
	for (int i = 0; i < stream->n_groups; i++)
	{
		batch->chunks[i].number = -1;
		batch->chunks[i].used = 0;
		batch->chunks[i].n = 0;
	}
	return batch;
}

static void
free_batch(GsArrayBatch *batch)
{
	batch->next_free = batch->stream->free_batches;
	batch->stream->free_batches = batch;
}

GsArrayBatch *
gs_array_batch_begin(GsArrayStream *stream, bool may_use_device)
{
	GsArrayBatch *batch = make_batch(stream);

	batch->on_device = may_use_device && !stream->off &&
		(gs_guc_force || stream->elements >= gs_guc_min_rows) && open_sessions(stream);
	if (batch->on_device && !take_chunks(batch))
	{
		if (stream->n_open > 0)
		{
			free_batch(batch);
			return NULL;
		}

		/* what is promised is there, unless the service is gone */
		note_fallback(stream, GS_FALLBACK_LOST);
		stream->off = true;
		batch->on_device = false;
	}
	if (!batch->on_device)
		for (int i = 0; i < stream->n_groups; i++)
		{
			BatchChunk *chunk = &batch->chunks[i];

			if (chunk->own_memory == NULL)
				chunk->own_memory = MemoryContextAlloc(stream->context, GS_CHUNK_BYTES);
			chunk->number = -1;
			chunk->memory = chunk->own_memory;
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

/* An array's bytes when it is no longer compressed, out of line, or expanded. */
static inline Size
plain_bytes(struct varlena *array)
{
	if (is_short(array))
		return VARSIZE_SHORT(array) - VARHDRSZ_SHORT + VARHDRSZ;
	if (VARATT_IS_4B_U(array))
		return VARSIZE_4B(array);
	return toast_raw_datum_size(PointerGetDatum(array));
}

/* An out-of-line value that is not compressed: read it straight to dst. */
static void
fetch_plain(GsArrayStream *stream, int call, struct varlena *array, struct varlena *dst)
{
	struct varatt_external pointer;

	VARATT_EXTERNAL_GET_POINTER(pointer, array);
	if (stream->toast[call] == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(stream->context);

		stream->toast[call] = gs_toast_reader_create();
		MemoryContextSwitchTo(old);
	}
	gs_toast_read(stream->toast[call], &pointer, dst);
}

static bool
is_fetched_plain(struct varlena *array)
{
	struct varatt_external pointer;

	if (!VARATT_IS_EXTERNAL_ONDISK(array))
		return false;
	VARATT_EXTERNAL_GET_POINTER(pointer, array);
	return !VARATT_EXTERNAL_IS_COMPRESSED(pointer);
}

/* Write an array to a place that has room for its plain_bytes(). */
static void
write_plain(GsArrayStream *stream, int call, struct varlena *array, struct varlena *dst,
			Size bytes)
{
	if (is_short(array))
	{
		SET_VARSIZE(dst, bytes);
		memcpy(VARDATA(dst), VARDATA_SHORT(array), bytes - VARHDRSZ);
	}
	else if (VARATT_IS_4B_U(array))
		memcpy(dst, array, bytes);
	else if (is_fetched_plain(array))
		fetch_plain(stream, call, array, dst);
	else if (VARATT_IS_EXTERNAL_EXPANDED(array))
		EOH_flatten_into(DatumGetEOHP(PointerGetDatum(array)), dst, bytes);
	else
	{
		MemoryContext old = MemoryContextSwitchTo(stream->scratch);
		struct varlena *plain = detoast_attr(array);

		Assert(VARSIZE(plain) == bytes);
		memcpy(dst, plain, bytes);
		MemoryContextSwitchTo(old);
		MemoryContextReset(stream->scratch);
	}
}

/* Sort an array here; the result lives as long as the batch. */
static ArrayType *
sort_beside(GsArrayBatch *batch, int call, ArrayType *array, bool in_place)
{
	GsArrayStream *stream = batch->stream;
	const GsArrayCall *spec = &stream->calls[call];
	MemoryContext old;

	if (stream->sorters[call] == NULL || stream->sorter_types[call] != ARR_ELEMTYPE(array))
	{
		old = MemoryContextSwitchTo(stream->context);
		stream->sorters[call] = gs_array_sorter_create(ARR_ELEMTYPE(array), spec->collation,
													   spec->descending);
		stream->sorter_types[call] = ARR_ELEMTYPE(array);
		MemoryContextSwitchTo(old);
	}
	old = MemoryContextSwitchTo(batch->context);
	array = gs_array_sort(stream->sorters[call], array, spec->nulls_first, in_place);
	MemoryContextSwitchTo(old);
	batch->extra_bytes += VARSIZE(array);
	batch->arrays++;
	return array;
}

/* An array of bytes bytes that no chunk has room for. */
static ArrayType *
put_beside(GsArrayBatch *batch, int call, struct varlena *array, Size bytes)
{
	ArrayType  *copy = MemoryContextAlloc(batch->context, bytes);

	write_plain(batch->stream, call, array, (struct varlena *) copy, bytes);
	if (gs_array_is_trivial(copy))
	{
		batch->extra_bytes += bytes;
		return copy;
	}
	return sort_beside(batch, call, copy, true);
}

/*
 * Write an array into its group's chunk and describe its elements.  The caller
 * has made sure that there is room.
 */
static ArrayType *
put_into_chunk(GsArrayBatch *batch, int call, struct varlena *array, Size bytes)
{
	GsArrayStream *stream = batch->stream;
	const GsArrayCall *spec = &stream->calls[call];
	const ArrayGroup *group = &stream->groups[stream->group_of[call]];
	BatchChunk *chunk = &batch->chunks[stream->group_of[call]];
	ArrayType  *copy = (ArrayType *) (chunk->memory + chunk->used);
	GsRecord   *record;
	int			n;

	write_plain(stream, call, array, (struct varlena *) copy, bytes);
	if (gs_array_is_trivial(copy))
	{
		chunk->used += MAXALIGN(bytes);
		return copy;
	}
	if (unlikely(ARR_NDIM(copy) != 1 || ARR_ELEMTYPE(copy) != spec->element_type))
		return sort_beside(batch, call, copy, false);

	n = ARR_DIMS(copy)[0];
	if (ARR_HASNULL(copy))
		n = gs_array_place_nulls(copy, spec->nulls_first);

	/* a device may do anything with a record that is wrong */
	if (unlikely(ARR_DATA_OFFSET(copy) % MAXIMUM_ALIGNOF != 0 ||
				 ARR_DATA_OFFSET(copy) + (uint64) n * group->elem_bytes > bytes))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("array has %zu bytes, too few for its %d elements", bytes, n)));
	record = gs_chunk_record(chunk->memory, GS_CHUNK_BYTES, chunk->n);
	record->row_off = chunk->used + ARR_DATA_OFFSET(copy);
	record->row_len = n * group->elem_bytes;
	record->key_off = 0;
	record->key_len = 0;
	chunk->n++;
	chunk->used += MAXALIGN(bytes);
	stream->elements += n;
	return copy;
}

static inline Size
room_left(const BatchChunk *chunk)
{
	Size		taken = chunk->used + (chunk->n + 1) * sizeof(GsRecord);

	return taken < GS_CHUNK_BYTES ? GS_CHUNK_BYTES - taken : 0;
}

/* Take back what was put of a row. */
static void
forget_row(GsArrayBatch *batch)
{
	for (int i = 0; i < batch->stream->n_groups; i++)
	{
		batch->chunks[i].used = batch->chunks[i].row_used;
		batch->chunks[i].n = batch->chunks[i].row_n;
	}
}

bool
gs_array_batch_put(GsArrayBatch *batch, const Datum *arrays, const bool *nulls, Datum *sorted)
{
	GsArrayStream *stream = batch->stream;

	if (batch->extra_bytes > work_mem * (Size) 1024)
		return false;
	for (int i = 0; i < stream->n_groups; i++)
	{
		batch->chunks[i].row_used = batch->chunks[i].used;
		batch->chunks[i].row_n = batch->chunks[i].n;
	}
	for (int i = 0; i < stream->n_calls; i++)
	{
		BatchChunk *chunk = &batch->chunks[stream->group_of[i]];
		struct varlena *array = (struct varlena *) DatumGetPointer(arrays[i]);
		Size		bytes;

		if (nulls[i])
			continue;
		bytes = plain_bytes(array);
		if (likely(MAXALIGN(bytes) <= room_left(chunk)))
			sorted[i] = PointerGetDatum(put_into_chunk(batch, i, array, bytes));
		else if (batch->rows == 0)
			sorted[i] = PointerGetDatum(put_beside(batch, i, array, bytes));
		else
		{
			forget_row(batch);
			return false;
		}
	}
	batch->rows++;
	return true;
}

/* Sort a chunk's arrays in this process. */
static void
sort_chunk(GsArrayStream *stream, const ArrayGroup *group, const BatchChunk *chunk)
{
	if (stream->sort_scratch == NULL)
		stream->sort_scratch = MemoryContextAlloc(stream->context, GS_CHUNK_BYTES);
	for (uint32 i = 0; i < chunk->n; i++)
	{
		const GsRecord *record = gs_chunk_record(chunk->memory, GS_CHUNK_BYTES, i);

		CHECK_FOR_INTERRUPTS();
		gs_host_sort_elements(group->elem, group->descending, chunk->memory + record->row_off,
							  record->row_len / group->elem_bytes, stream->sort_scratch, NULL);
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
	if (batch->on_device)
		stream->report.device_batches++;
	for (int i = 0; i < stream->n_groups; i++)
	{
		BatchChunk *chunk = &batch->chunks[i];

		stream->report.arrays += chunk->n;
		if (!batch->on_device)
			sort_chunk(stream, &stream->groups[i], chunk);
		else if (chunk->n > 0)
			gs_client_sort_arrays(stream->groups[i].client, chunk->number, chunk->used, chunk->n);
	}
}

void
gs_array_batch_finish(GsArrayBatch *batch)
{
	GsArrayStream *stream = batch->stream;

	if (!batch->on_device)
		return;
	for (int i = 0; i < stream->n_groups; i++)
	{
		BatchChunk *chunk = &batch->chunks[i];

		if (chunk->n == 0)
			continue;
		switch (gs_client_wait_arrays(stream->groups[i].client, chunk->number))
		{
			case GS_ARRAYS_SORTED:
				stream->report.device_arrays += chunk->n;
				break;
			case GS_ARRAYS_REFUSED:
				note_fallback(stream, gs_client_session(stream->groups[i].client)->overflow_reason);
				sort_chunk(stream, &stream->groups[i], chunk);
				break;
			case GS_ARRAYS_NO_SERVICE:
				note_fallback(stream, GS_FALLBACK_LOST);
				stream->off = true;
				sort_chunk(stream, &stream->groups[i], chunk);
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
		for (int i = 0; i < stream->n_groups; i++)
			gs_client_give_chunk(stream->groups[i].client, batch->chunks[i].number);
	MemoryContextReset(batch->context);
	stream->n_open--;
	free_batch(batch);
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

	for (int i = 0; i < stream->n_groups; i++)
	{
		const GsSession *session;

		if (stream->groups[i].client == NULL)
			continue;
		session = gs_client_session(stream->groups[i].client);
		strlcpy(so_far.engine, session->outcome.engine, sizeof(so_far.engine));
		so_far.devices |= gs_client_devices(stream->groups[i].client);
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
		if (stream->toast[i])
			gs_toast_reader_close(stream->toast[i]);
	MemoryContextDelete(stream->context);
}
