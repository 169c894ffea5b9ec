/*-------------------------------------------------------------------------
 *
 * spill_runs.c
 *	  Writing sorted runs in blocks, and the index that is kept of them.
 *
 * A chunk is cut into blocks, and each is coded by itself (spill_code.h).  The blocks of a chunk are next
 * to each other in the file, so a thread reads some or all of them at once.
 *
 * The index, in memory, has each block's place and first key, and whether the row before has the same key.
 * Without this flag, finding a tie between two ranges would cost one more read (spill_read.c).  A block is
 * a sixteenth of a chunk.  It is longer if its first key is long, so that the index stays within a
 * sixty-fourth of the bytes written.  Behind 2 * DENSE_CHUNKS chunks, blocks get longer, up to whole
 * chunks: the index of 1 TB has 2.8 million blocks, and takes 0.23 GB, or 0.55 GB while it is put in order.
 * In return a range reads more at its borders.
 *
 * The chunks of a run are spread over the files, so that several threads write at the same time.
 *
 * Tests: unit/plain/test_spill
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "spill/spill_private.h"

#define BLOCKS_A_CHUNK	16
#define MIN_BLOCK_BYTES 512

/* Chunks behind n times as many, 32 GB, have blocks n times as long. */
#define DENSE_CHUNKS	32768

/* A block holds this many times its first key. */
#define BYTES_A_KEY_BYTE 64

/* ---- cutting a chunk into blocks ---- */

/* A chunk to be written, by its number in the whole sort. */
typedef struct Source
{
	GsSpillView view;
	uint32_t	data_bytes;		/* a multiple of 8 */
	uint32_t	sparse;			/* blocks are this many times as long as at the sort's start */
	uint64_t	block_bytes;	/* of a block with a short key */
} Source;

static Source
source_of(const void *chunk, uint32_t chunk_bytes, uint32_t n_records, uint64_t number)
{
	Source		source = {{chunk, gs_chunk_record((void *) (uintptr_t) chunk, chunk_bytes, 0), n_records, 0},
						  0, 1, chunk_bytes / BLOCKS_A_CHUNK};

	number /= DENSE_CHUNKS;
	if (number > 1)
		source.sparse = number < BLOCKS_A_CHUNK ? (uint32_t) number : BLOCKS_A_CHUNK;
	if (source.block_bytes < MIN_BLOCK_BYTES)
		source.block_bytes = MIN_BLOCK_BYTES;
	source.block_bytes *= source.sparse;
	if (n_records > 0)
	{
		const GsRecord *last = source.view.first - (n_records - 1);
		uint32_t	row_end = last->row_off + (last->row_len & GS_LENGTH_MASK);
		uint32_t	key_end = last->key_off + (last->key_len & GS_LENGTH_MASK);

		source.data_bytes = gs_round_up_8(row_end > key_end ? row_end : key_end);
	}
	return source;
}

/* Returns where the data of record i begin; for i = n, where they end. */
static uint32_t
source_offset(const Source *source, uint32_t i)
{
	return i < source->view.n ? (source->view.first - i)->row_off : source->data_bytes;
}

/* Bytes of the records from first to before end. */
static uint64_t
source_bytes(const Source *source, uint32_t first, uint32_t end)
{
	return source_offset(source, end) - source_offset(source, first) +
		(uint64_t) (end - first) * sizeof(GsRecord);
}

/* Returns the end of the block that begins with a record. */
static uint32_t
block_end(const Source *source, uint32_t first)
{
	uint32_t	low = first + 1;
	uint32_t	high = source->view.n;
	uint32_t	key_len;
	uint64_t	bytes;

	(void) gs_spill_view_key(&source->view, first, &key_len);
	bytes = (uint64_t) key_len * BYTES_A_KEY_BYTE * source->sparse;
	if (bytes < source->block_bytes)
		bytes = source->block_bytes;

	/* no short block at the chunk's end */
	if (source_bytes(source, first, high) <= bytes + bytes / 2)
		return high;
	while (low < high)
	{
		uint32_t	middle = low + (high - low + 1) / 2;

		if (source_bytes(source, first, middle) <= bytes)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* ---- the index ---- */

static bool
allocate_index(GsSpillChunk *chunk, const Source *source)
{
	size_t		keys_bytes = 1;
	uint32_t	key_len;

	chunk->n_blocks = 0;
	for (uint32_t i = 0; i < source->view.n; i = block_end(source, i))
	{
		(void) gs_spill_view_key(&source->view, i, &key_len);
		keys_bytes += key_len;
		chunk->n_blocks++;
	}
	(void) gs_spill_view_key(&source->view, source->view.n - 1, &key_len);
	chunk->blocks = calloc(chunk->n_blocks, sizeof(GsSpillBlock));
	chunk->keys = malloc(keys_bytes + key_len);
	return chunk->blocks != NULL && chunk->keys != NULL;
}

static uint8_t *
copy_key(uint8_t *dst, const Source *source, uint32_t i, uint32_t *len)
{
	const uint8_t *key = gs_spill_view_key(&source->view, i, len);

	memcpy(dst, key, *len);
	return dst + *len;
}

/* Makes a chunk's index, except for the parts that depend on the chunks before it. */
static bool
index_chunk(GsSpillChunk *chunk, const Source *source)
{
	uint32_t	first = 0;
	uint8_t    *next_key;

	if (!allocate_index(chunk, source))
		return false;
	next_key = chunk->keys;
	for (uint32_t i = 0; i < chunk->n_blocks; i++)
	{
		GsSpillBlock *block = &chunk->blocks[i];
		uint32_t	end = block_end(source, first);

		block->key = next_key;
		next_key = copy_key(next_key, source, first, &block->key_len);
		block->base = source_offset(source, first);
		block->data_bytes = source_offset(source, end) - block->base;
		block->n_records = end - first;
		if (first > 0)
		{
			uint32_t	len;
			const uint8_t *key = gs_spill_view_key(&source->view, first - 1, &len);

			block->repeats = gs_spill_compare_keys(key, len, block->key, block->key_len) == 0;
		}
		first = end;
	}
	chunk->last_key = next_key;
	(void) copy_key(next_key, source, source->view.n - 1, &chunk->last_key_len);
	return true;
}

static void
free_index(GsSpillChunk *chunk)
{
	free(chunk->blocks);
	free(chunk->keys);
	memset(chunk, 0, sizeof(*chunk));
}

/* ---- runs ---- */

bool
gs_spill_begin_run(GsSpill *spill, uint64_t n_chunks)
{
	if (!gs_grow((void **) &spill->runs, (uint64_t) spill->n_runs + 1, &spill->max_runs,
					  sizeof(GsSpillRun)) ||
		!gs_grow((void **) &spill->chunks, spill->n_chunks + n_chunks + 1, &spill->max_chunks,
					  sizeof(GsSpillChunk)))
		return false;
	memset(&spill->chunks[spill->n_chunks], 0, n_chunks * sizeof(GsSpillChunk));
	spill->n_writing = n_chunks;
	return true;
}

/* A thread's task: cut a chunk into blocks, code them, and write them one after the other. */
static void
write_chunk(GsSpillTask *task)
{
	GsSpillChunk *index = task->index;
	uint32_t	chunk_bytes = task->spill->chunk_bytes;
	Source		source = source_of(task->chunk, chunk_bytes, task->n_records, index - task->spill->chunks);
	const GsRecord *first = source.view.first;
	uint8_t	   *memory = gs_spill_task_scratch(task, gs_code_room(chunk_bytes));
	size_t		bytes = 0;
	uint64_t	offset;

	if (memory == NULL || task->n_records == 0)
		return;
	if (!index_chunk(index, &source))
	{
		gs_spill_task_no_memory(task);
		return;
	}
	for (uint32_t i = 0; i < index->n_blocks; i++)
	{
		GsSpillBlock *block = &index->blocks[i];
		size_t		coded = gs_code_records(task->chunk, first, block->n_records, memory + bytes);

		block->coded_bytes = (uint32_t) coded;
		bytes += coded;
		first -= block->n_records;
	}
	if (!gs_spill_task_append(task, memory, bytes, &offset))
		return;
	for (uint32_t i = 0; i < index->n_blocks; i++)
	{
		index->blocks[i].file = task->file;
		index->blocks[i].offset = offset;
		offset += index->blocks[i].coded_bytes;
	}
}

void
gs_spill_write(GsSpill *spill, uint64_t i, const void *chunk, uint32_t n_records, GsJob *job)
{
	GsSpillTask *task = gs_spill_task_begin(spill, write_chunk, job);

	if (task == NULL)
		return;
	task->chunk = (char *) (uintptr_t) chunk;
	task->n_records = n_records;
	task->index = &spill->chunks[spill->n_chunks + i];
	task->file = (uint8_t) ((spill->n_chunks + i) % GS_SPILL_STRIPES);
	gs_spill_task_submit(task);
}

void
gs_spill_end_run(GsSpill *spill)
{
	spill->n_chunks += spill->n_writing;
	spill->n_writing = 0;
	spill->runs[spill->n_runs++].end_chunk = spill->n_chunks;
}

/* ---- all runs ---- */

/* Appends the blocks of a chunk to the blocks of all chunks. */
static void
join_chunk(GsSpill *spill, GsSpillChunk *chunk, const GsSpillChunk *before, uint32_t run,
		   uint64_t *n_rows)
{
	GsSpillBlock *blocks = &spill->blocks[spill->n_blocks];

	for (uint32_t i = 0; i < chunk->n_blocks; i++)
	{
		GsSpillBlock *block = &blocks[i];

		*block = chunk->blocks[i];
		block->run = run;
		block->first_row = *n_rows;
		if (i == 0 && before != NULL)
			block->repeats = gs_spill_compare_keys(before->last_key, before->last_key_len,
												   block->key, block->key_len) == 0;
		*n_rows += block->n_records;
	}
	free(chunk->blocks);
	chunk->blocks = blocks;
	spill->n_blocks += chunk->n_blocks;
}

bool
gs_spill_join_chunks(GsSpill *spill)
{
	uint64_t	n_blocks = 0;
	uint64_t	chunk = 0;

	for (uint64_t i = 0; i < spill->n_chunks; i++)
		n_blocks += spill->chunks[i].n_blocks;
	if (n_blocks <= UINT32_MAX)
		spill->blocks = malloc((n_blocks + 1) * sizeof(GsSpillBlock));
	if (spill->blocks == NULL)
		return false;
	for (uint32_t i = 0; i < spill->n_runs; i++)
	{
		GsSpillRun *run = &spill->runs[i];
		const GsSpillChunk *before = NULL;
		uint64_t	n_rows = 0;

		run->first_block = spill->n_blocks;
		for (; chunk < run->end_chunk; chunk++)
		{
			join_chunk(spill, &spill->chunks[chunk], before, i, &n_rows);
			if (spill->chunks[chunk].n_blocks > 0)
				before = &spill->chunks[chunk];
		}
		run->n_blocks = spill->n_blocks - run->first_block;
		spill->n_rows += n_rows;
	}
	return true;
}

uint32_t
gs_spill_runs(const GsSpill *spill)
{
	return spill->n_runs;
}

uint64_t
gs_spill_rows(const GsSpill *spill)
{
	return spill->n_rows;
}

void
gs_spill_runs_free(GsSpill *spill)
{
	for (uint64_t i = 0; i < spill->n_chunks + spill->n_writing; i++)
	{
		if (spill->blocks != NULL)
			spill->chunks[i].blocks = NULL;
		free_index(&spill->chunks[i]);
	}
	free(spill->chunks);
	free(spill->blocks);
	free(spill->runs);
}
