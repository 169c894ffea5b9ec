/*-------------------------------------------------------------------------
 *
 * sort_local.c
 *	  Rows of a sort that this process keeps and, if they stay few, sorts itself.
 *
 * The rows are kept in chunks of the device's format, so that they can go to the device as
 * whole chunks.  But the first chunk begins small and grows with its rows, because a query
 * may have hundreds of small sorts open.
 *
 * Tests: regress/keys, regress/plans
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "base/string_sort.h"
#include "guc.h"
#include "sort/sort_private.h"

/* The first chunk begins with this size, and grows by four up to GS_CHUNK_BYTES. */
#define FIRST_BYTES		4096

static void
add_chunk(GsSort *sort)
{
	GsLocalRows *local = &sort->local;
	uint32		bytes = local->n_chunks == 0 ? FIRST_BYTES : GS_CHUNK_BYTES;

	if (local->n_chunks == local->max_chunks)
	{
		int			more = Max(4, local->max_chunks * 2);

		if (local->chunks)
			local->chunks = repalloc(local->chunks, more * sizeof(GsChunkWriter));
		else
			local->chunks = MemoryContextAlloc(sort->context, more * sizeof(GsChunkWriter));
		local->max_chunks = more;
	}
	gs_chunk_begin(&local->chunks[local->n_chunks++],
				   MemoryContextAlloc(sort->context, bytes), bytes, NULL);
}

void
gs_local_grow(GsSort *sort, uint32 bytes)
{
	GsChunkWriter *chunk = &sort->local.chunks[sort->local.n_chunks - 1];
	char	   *memory;

	if (chunk->bytes >= bytes)
		return;
	memory = MemoryContextAlloc(sort->context, bytes);
	gs_chunk_copy(chunk, memory, bytes);
	pfree(chunk->memory);
	chunk->memory = memory;
	chunk->bytes = bytes;
}

void
gs_local_put(GsSort *sort, TupleTableSlot *slot)
{
	GsLocalRows *local = &sort->local;
	MemoryContext old = MemoryContextSwitchTo(sort->scratch);
	GsPutRow	row = {.slot = slot};
	GsPut		put = GS_PUT_FULL;
	GsBigStub	stub;

	while (put != GS_PUT_OK)
	{
		GsChunkWriter *chunk;

		if (local->n_chunks == 0)
			add_chunk(sort);
		chunk = &local->chunks[local->n_chunks - 1];
		put = gs_chunk_put(chunk, sort->desc, &row);
		if (put == GS_PUT_LEFT || (put == GS_PUT_BIG && !gs_stored_has_key(sort, slot)))
		{
			MemoryContextSwitchTo(old);
			MemoryContextReset(sort->scratch);
			gs_aside_put(sort, slot);
			return;
		}
		if (put == GS_PUT_BIG)
			row = gs_stored_write_big(sort, slot, &stub);
		else if (put == GS_PUT_FULL && chunk->bytes < GS_CHUNK_BYTES)
			gs_local_grow(sort, chunk->bytes * 4);
		else if (put == GS_PUT_FULL)
		{
			if (chunk->n == 0)
				elog(ERROR, "row does not fit into an empty chunk");
			add_chunk(sort);
		}
	}
	local->rows++;
	MemoryContextSwitchTo(old);
	MemoryContextReset(sort->scratch);
}

bool
gs_local_full(const GsSort *sort)
{
	const GsLocalRows *local = &sort->local;

	return local->rows >= (uint64) gs_guc_min_rows ||
		(local->n_chunks > 1 &&
		 (int64) local->n_chunks * GS_CHUNK_BYTES >= (int64) sort->work_mem_kb * 1024);
}

void
gs_local_free(GsSort *sort)
{
	for (int i = 0; i < sort->local.n_chunks; i++)
		pfree(sort->local.chunks[i].memory);
	sort->local.n_chunks = 0;
	sort->local.rows = 0;
}

static void
check_interrupts(void)
{
	CHECK_FOR_INTERRUPTS();
}

bool
gs_local_perform(GsSort *sort)
{
	GsLocalRows *local = &sort->local;
	uint64		n = local->rows;
	MemoryContext old = MemoryContextSwitchTo(sort->context);
	GsLocalRow *unsorted = MemoryContextAllocHuge(sort->context, Max(n, 1) * sizeof(GsLocalRow));
	GsLocalRow *sorted = MemoryContextAllocHuge(sort->context, Max(n, 1) * sizeof(GsLocalRow));
	GsStringKey  *keys = MemoryContextAllocHuge(sort->context, 2 * Max(n, 1) * sizeof(GsStringKey));
	uint64		row = 0;

	for (int i = 0; i < local->n_chunks; i++)
		for (uint32 j = 0; j < local->chunks[i].n; j++)
		{
			char	   *memory = local->chunks[i].memory;
			GsRecord   *record = gs_chunk_record(memory, local->chunks[i].bytes, j);

			unsorted[row] = (GsLocalRow) (memory + record->row_off) |
				(record->row_len & GS_ROW_EXTERNAL ? GS_ENTRY_EXTERNAL : 0) |
				(record->key_len & GS_KEY_INEXACT ? GS_ENTRY_INEXACT : 0);
			gs_string_key_init(&keys[row], memory + record->key_off,
							 record->key_len & GS_LENGTH_MASK, row);
			row++;
		}
	Assert(row == n);
	gs_string_sort(keys, keys + n, n, check_interrupts);
	for (uint64 i = 0; i < n; i++)
	{
		sorted[i] = unsorted[keys[i].row];
		if (i > 0 && gs_string_key_equal(&keys[i - 1], &keys[i]))
			sorted[i] |= GS_ENTRY_TIE;
	}
	pfree(keys);
	pfree(unsorted);
	if (sort->desc->has_libc && !gs_sample_local(sort, sorted, n))
	{
		pfree(sorted);
		MemoryContextSwitchTo(old);
		return false;
	}
	sort->rows = gs_rows_of_array(sorted, n);
	MemoryContextSwitchTo(old);
	return true;
}
