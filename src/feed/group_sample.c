/*-------------------------------------------------------------------------
 *
 * group_sample.c
 *	  How many groups of equal keys a sort will have (group_sample.h).
 *
 * The sample has hashes of keys.  A key is chosen by its hash, and then all its rows are in the sample.  So
 * a few thousand hashes represent all rows of some chunks.
 *
 * Tests: regress/choice
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "common/hashfn.h"
#include "utils/builtins.h"

#include "feed/group_sample.h"

#define MAX_HASHES	16384

/* One key of KEYS_PER_HASH is chosen; a power of two. */
#define KEYS_PER_HASH	8

/* The first look finds few groups only if at most this part of the rows have a key of their own. */
#define MAX_ONCE_AT_FIRST	0.25

/*
 * Rows of a group are neighbours if this part of the rows that repeat a key follow it directly, beyond
 * chance.
 */
#define MIN_NEIGHBOURS	0.5

struct GsGroupSample
{
	uint64		rows;			/* rows looked at */
	uint32		last;			/* the hash of the last one */
	uint32		neighbours;		/* the number of hashes that follow the same hash */
	uint32		n;				/* hashes */
	uint32		hashes[MAX_HASHES];
};

GsGroupSample *
gs_groups_begin(void)
{
	GsGroupSample *sample = palloc(sizeof(GsGroupSample));

	memset(sample, 0, offsetof(GsGroupSample, hashes));
	return sample;
}

void
gs_groups_add(GsGroupSample *sample, const GsChunkWriter *chunk, uint32 first)
{
	for (uint32 i = first; i < chunk->n && sample->n < MAX_HASHES; i++)
	{
		const GsRecord *record = gs_chunk_record(chunk->memory, chunk->bytes, i);
		uint32		hash = hash_bytes((const unsigned char *) chunk->memory + record->key_off,
									  record->key_len & ~GS_KEY_INEXACT);

		sample->rows++;
		if (hash % KEYS_PER_HASH == 0)
		{
			sample->hashes[sample->n++] = hash;
			sample->neighbours += hash == sample->last;
		}
		sample->last = hash;
	}
}

bool
gs_groups_are_fewer(GsGroupSample *sample, double groups, double rows, bool first)
{
	double		seen = sample->rows;
	double		once = 0;
	double		more = 0;
	double		duj1;
	double		gee;
	double		repeated = sample->n;
	double		by_chance = 0;

	if (sample->rows == 0)
		return false;
	if (sample->n == 0)
		return true;
	/* an Oid is a uint32 */
	qsort(sample->hashes, sample->n, sizeof(uint32), oid_cmp);
	for (uint32 i = 0, end; i < sample->n; i = end)
	{
		for (end = i + 1; end < sample->n && sample->hashes[end] == sample->hashes[i]; end++)
			;
		repeated--;
		by_chance += (end - i) * (double) (end - i - 1) / seen;
		if (end - i == 1)
			once += KEYS_PER_HASH;
		else
			more += KEYS_PER_HASH;
	}
	rows = Max(rows, seen);
	if (sample->neighbours - by_chance > MIN_NEIGHBOURS * (repeated - by_chance))
		return (once + more) / seen * rows < groups;
	/* keys are chosen, so the estimate may exceed the number of rows */
	once = Min(once, seen);
	/* among few rows, groups of one row may be large groups, or the first of many small ones */
	if (first && once > MAX_ONCE_AT_FIRST * seen)
		return false;
	duj1 = seen * (once + more) / (seen - once + once * seen / rows);
	gee = more + once * sqrt(rows / seen);
	return Max(duj1, gee) < groups;
}
