/*-------------------------------------------------------------------------
 *
 * host_order.c
 *	  Ordering the rows of many chunks with many threads.
 *
 * Algorithm
 *	  Keys are set up from the records, each chunk as one part of the work.  One thread sorts few keys
 *	  (base/string_sort.c).  Many keys are distributed first.  A sample of their words gives up to
 *	  MAX_SPLITTERS splitters.  These divide the keys into buckets: words between two splitters, and for
 *	  each splitter the keys with just that word.  Of the latter, keys that end within the word are one
 *	  bucket, and keys that go on are another.  Keys that go on agree on eight bytes more.  So a frequent
 *	  word gives a bucket that is distributed by the bytes behind it.  Buckets too large for one thread
 *	  are distributed again, by all threads together.  The others are sorted by one thread each, the
 *	  largest first.  Every distribution first skips the bytes that all keys have in common, if that can
 *	  be more than is known.
 *
 *	  A distribution moves keys from one array to the other.  The thread that handles a bucket next copies
 *	  it back first, as it needs the bucket in its cache anyway.  So all keys end in one array.
 *
 *	  Distribution is stable.  Keys are cut into blocks, and each block counts its keys of each bucket.
 *	  The places of a bucket are given to the blocks in their order.
 *
 * Fewer rows
 *	  If only the first of equal keys or of groups are kept, each block of keys moves its kept keys to the
 *	  other array.  Then each block moves its keys back, behind those of the blocks before it.  A group's rows
 *	  are neighbours: a row is among the group's first n unless the row n places before it is in the group.
 *	  If only the first rows are kept, keys that are known to come after them are not sorted.
 *
 * Result
 *	  For each place in the order, the result has the places of the row and its key, their lengths and
 *	  flags.  It takes the memory of the second key array.  The bytes of rows in pages are summed on the
 *	  way, for host_pages.c.
 *
 * Tests: unit/plain/test_device
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "base/string_sort.h"
#include "host/host_order.h"

#define MAX_SPLITTERS 255		/* one less than a power of two */
#define N_BUCKETS (3 * (MAX_SPLITTERS + 1))
#define OVERSAMPLING 16

/* Keys in a block of a distribution. */
#define BLOCK_KEYS 32768

/* Fewer keys than these are left to one thread. */
#define SINGLE_KEYS 65536

/* Rows that one part of the result has. */
#define RESULT_ROWS (16 * GS_HOST_SUM_ROWS)

/* Records between two entries of the table that finds a row's image. */
#define FIND_SHIFT 12

/* Rows take the memory of as many keys. */
_Static_assert(sizeof(GsHostRow) <= sizeof(GsStringKey), "GsHostRow is too large");

/* Keys that agree on `depth` bytes. */
typedef struct Segment
{
	size_t		start;
	size_t		n;
	uint32_t	depth;
	bool		stale;			/* words are of an earlier depth, and equal */
	bool		moved;			/* they are in scratch */
} Segment;

typedef struct SegmentList
{
	Segment    *items;
	size_t		n;
	uint64_t	max;
} SegmentList;

typedef struct Orderer
{
	GsPool *pool;
	const int  *cancel;
	const GsHostImage *images;
	uint64_t	n_images;
	uint64_t	n;				/* rows; from keep_rows() on, kept rows */
	uint64_t   *image_first;	/* number of each image's first row, then n */
	uint64_t   *find;			/* image of row i << FIND_SHIFT, then the last */

	GsStringKey  *keys;
	GsStringKey  *scratch;
	uint16_t   *buckets;		/* of each key of the segment */

	/* The segment being distributed. */
	Segment		seg;
	GsStringKey	pivot;			/* its first key */
	uint32_t	common;			/* lowered by all threads */
	uint32_t	n_splitters;
	uint64_t	splitters[MAX_SPLITTERS];
	size_t	   *counts;			/* N_BUCKETS of each block, then places */

	/* What is kept. */
	GsKeep		keep;
	uint64_t   *kept;			/* unique, groups: the number of rows that each part of the result keeps;
								 * then the place of the first of them */
	uint64_t	top_keys[32];	/* keep.top: keys by the highest bit of their number of rows */

	/* Segments that wait to be sorted by one thread, and to be distributed. */
	SegmentList small;
	SegmentList large;

	GsPageFormat format;
	GsHostRow  *rows;
	uint64_t   *sums;
} Orderer;

static inline bool
cancelled(const Orderer *o)
{
	return o->cancel != NULL && __atomic_load_n(o->cancel, __ATOMIC_RELAXED) != 0;
}

static uint32_t
n_blocks(size_t n, size_t block)
{
	return (uint32_t) ((n + block - 1) / block);
}

/* ---- setting up ---- */

static void
set_up_keys(void *arg, uint32_t part)
{
	Orderer    *o = arg;
	const GsHostImage *image = &o->images[part];
	GsStringKey  *keys = o->keys + o->image_first[part];

	if (cancelled(o))
		return;
	for (uint32_t i = 0; i < image->n_records; i++)
	{
		const GsRecord *record = gs_host_image_record(image, i);

		gs_string_key_init(&keys[i], image->data + record->key_off, record->key_len & GS_LENGTH_MASK,
						 (uint32_t) (o->image_first[part] + i));
	}
}

/* The record of a row, given its number. */
static inline const GsRecord *
find_record(const Orderer *o, uint64_t row, const GsHostImage **image)
{
	uint64_t	low = o->find[row >> FIND_SHIFT];
	uint64_t	high = o->find[(row >> FIND_SHIFT) + 1];

	/* The last image in [low, high] that starts at or before the row. */
	while (low < high)
	{
		uint64_t	middle = low + (high - low + 1) / 2;

		if (o->image_first[middle] <= row)
			low = middle;
		else
			high = middle - 1;
	}
	*image = &o->images[low];
	return gs_host_image_record(*image, (uint32_t) (row - o->image_first[low]));
}

static bool
set_up(Orderer *o)
{
	uint64_t	n_find;
	uint64_t	image = 0;

	o->image_first = malloc((o->n_images + 1) * sizeof(uint64_t));
	if (o->image_first == NULL)
		return false;
	for (uint64_t i = 0; i < o->n_images; i++)
	{
		o->image_first[i] = o->n;
		o->n += o->images[i].n_records;
	}
	o->image_first[o->n_images] = o->n;
	if (o->n == 0)
		return true;

	n_find = ((o->n - 1) >> FIND_SHIFT) + 2;
	o->find = malloc(n_find * sizeof(uint64_t));
	o->keys = gs_allocate(o->n * sizeof(GsStringKey));
	o->scratch = gs_allocate(o->n * sizeof(GsStringKey));
	o->sums = malloc(n_blocks(o->n, GS_HOST_SUM_ROWS) * sizeof(uint64_t));
	if (o->find == NULL || o->keys == NULL || o->scratch == NULL || o->sums == NULL)
		return false;
	for (uint64_t i = 0; i + 1 < n_find; i++)
	{
		while (o->image_first[image + 1] <= i << FIND_SHIFT)
			image++;
		o->find[i] = image;
	}
	o->find[n_find - 1] = o->n_images - 1;
	return true;
}

/* ---- distribution ---- */

static bool
add_segment(SegmentList *list, const Segment *seg)
{
	if (!gs_grow((void **) &list->items, list->n + 1, &list->max, sizeof(Segment)))
		return false;
	list->items[list->n++] = *seg;
	return true;
}

/* Returns the first key of a part, a block of the segment, and sets the number of the block's keys. */
static size_t
block_start(const Orderer *o, uint32_t part, size_t *n)
{
	size_t		start = (size_t) part * BLOCK_KEYS;

	*n = o->seg.n - start < BLOCK_KEYS ? o->seg.n - start : BLOCK_KEYS;
	return o->seg.start + start;
}

/* Copies a block back, and finds how many bytes its keys have in common with the pivot. */
static void
measure_block(void *arg, uint32_t part)
{
	Orderer    *o = arg;
	size_t		n;
	size_t		start = block_start(o, part, &n);

	if (cancelled(o))
		return;
	if (o->seg.moved)
		memcpy(o->keys + start, o->scratch + start, n * sizeof(GsStringKey));
	if (o->seg.stale)
	{
		uint32_t	seen = __atomic_load_n(&o->common, __ATOMIC_RELAXED);
		uint32_t	common = gs_string_common_prefix(o->keys + start, n, &o->pivot, o->seg.depth, seen);

		while (common < seen &&
			   !__atomic_compare_exchange_n(&o->common, &seen, common, true,
											__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			;
	}
}

static void
read_block(void *arg, uint32_t part)
{
	Orderer    *o = arg;
	size_t		n;
	size_t		start = block_start(o, part, &n);

	if (!cancelled(o))
		gs_string_read_words(o->keys + start, n, o->seg.depth);
}

/* Chooses splitters: distinct words, at equal distances in a sorted sample. */
static void
choose_splitters(Orderer *o)
{
	uint64_t	sample[MAX_SPLITTERS * OVERSAMPLING];
	size_t		n_sample = sizeof(sample) / sizeof(sample[0]);
	uint64_t	state = o->seg.start + o->seg.n;

	/* one word at a random place of each of n_sample strata */
	for (size_t i = 0; i < n_sample; i++)
	{
		size_t		low = o->seg.n * i / n_sample;
		size_t		high = o->seg.n * (i + 1) / n_sample;

		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		sample[i] = o->keys[o->seg.start + low + (state >> 33) % (high - low)].word;
	}
	qsort(sample, n_sample, sizeof(uint64_t), gs_string_compare_words);
	o->n_splitters = 0;
	for (size_t i = OVERSAMPLING / 2; i < n_sample; i += OVERSAMPLING)
	{
		if (o->n_splitters == 0 || o->splitters[o->n_splitters - 1] != sample[i])
			o->splitters[o->n_splitters++] = sample[i];
	}
	for (uint32_t i = o->n_splitters; i < MAX_SPLITTERS; i++)
		o->splitters[i] = UINT64_MAX;
}

/*
 * Bucket 3 * i holds the keys that are splitter i - 1 and end within the word,
 * 3 * i + 1 those that go on, 3 * i + 2 those between it and splitter i.
 */
static inline uint32_t
find_bucket(const Orderer *o, const GsStringKey *key)
{
	const uint64_t *splitters = o->splitters;
	uint64_t	word = key->word;
	uint32_t	i = 0;

	for (uint32_t step = (MAX_SPLITTERS + 1) / 2; step > 0; step /= 2)
		i += splitters[i + step - 1] <= word ? step : 0;
	if (i > o->n_splitters)
		i = o->n_splitters;
	if (i == 0 || splitters[i - 1] != word)
		return 3 * i + 2;
	return 3 * i + (gs_string_key_class(key, o->seg.depth) == GS_STRING_GOES_ON);
}

static void
count_block(void *arg, uint32_t part)
{
	Orderer    *o = arg;
	size_t		n;
	size_t		start = block_start(o, part, &n);
	size_t	   *counts = o->counts + (size_t) part * N_BUCKETS;

	if (cancelled(o))
		return;
	memset(counts, 0, N_BUCKETS * sizeof(size_t));
	for (size_t i = start; i < start + n; i++)
	{
		uint32_t	bucket = find_bucket(o, &o->keys[i]);

		o->buckets[i] = (uint16_t) bucket;
		counts[bucket]++;
	}
}

static void
scatter_block(void *arg, uint32_t part)
{
	Orderer    *o = arg;
	size_t		n;
	size_t		start = block_start(o, part, &n);
	size_t	   *places = o->counts + (size_t) part * N_BUCKETS;

	if (cancelled(o))
		return;
	for (size_t i = start; i < start + n; i++)
		o->scratch[places[o->buckets[i]]++] = o->keys[i];
}

/* Distributes o->seg.  Its parts join the lists. */
static GsStatus
distribute(Orderer *o, size_t large)
{
	uint32_t	blocks = n_blocks(o->seg.n, BLOCK_KEYS);
	size_t		place = o->seg.start;
	size_t		starts[N_BUCKETS + 1];

	if (o->seg.stale || o->seg.moved)
	{
		o->pivot = (o->seg.moved ? o->scratch : o->keys)[o->seg.start];
		o->common = o->pivot.len;
		gs_pool_loop(o->pool, blocks, measure_block, o);
		if (o->seg.stale)
		{
			/* at depth 0, keys have the words from their setup */
			o->seg.depth = o->common;
			if (o->seg.depth > 0)
				gs_pool_loop(o->pool, blocks, read_block, o);
		}
		if (cancelled(o))
			return GS_CANCELLED;
	}
	choose_splitters(o);
	gs_pool_loop(o->pool, blocks, count_block, o);
	if (cancelled(o))
		return GS_CANCELLED;
	for (uint32_t bucket = 0; bucket < N_BUCKETS; bucket++)
	{
		starts[bucket] = place;
		for (uint32_t block = 0; block < blocks; block++)
		{
			size_t	   *count = &o->counts[(size_t) block * N_BUCKETS + bucket];
			size_t		n = *count;

			*count = place;
			place += n;
		}
	}
	starts[N_BUCKETS] = place;
	gs_pool_loop(o->pool, blocks, scatter_block, o);

	/* scratch has holes then, which nobody may take for keys */
	if (cancelled(o))
		return GS_CANCELLED;

	for (uint32_t bucket = 0; bucket < N_BUCKETS; bucket++)
	{
		Segment		part;
		bool		goes_on = bucket % 3 == 1;
		bool		divisible = bucket % 3 != 0;

		part.start = starts[bucket];
		part.n = starts[bucket + 1] - starts[bucket];
		part.depth = o->seg.depth + (goes_on ? 8 : 0);
		part.stale = goes_on;
		part.moved = true;
		if (part.n == 0)
			continue;
		if (!add_segment(divisible && part.n > large ? &o->large : &o->small, &part))
			return GS_NO_MEMORY;
	}
	return GS_OK;
}

/* Are all keys from this place on dropped?  Only known if the limit counts all keys. */
static bool
is_beyond_limit(const Orderer *o, size_t place)
{
	return o->keep.limit > 0 && !o->keep.unique && o->keep.group.first == 0 &&
		place >= o->keep.limit;
}

static void
sort_segment(void *arg, uint32_t part)
{
	Orderer    *o = arg;
	const Segment *seg = &o->small.items[part];
	GsStringKey  *keys = o->keys + seg->start;
	GsStringKey  *scratch = o->scratch + seg->start;

	if (is_beyond_limit(o, seg->start))
		return;
	if (seg->moved)
		memcpy(keys, scratch, seg->n * sizeof(GsStringKey));
	(void) gs_string_sort_at(keys, scratch, seg->n, seg->depth, seg->stale, o->cancel);
}

static int
compare_segments(const void *a, const void *b)
{
	size_t		x = ((const Segment *) a)->n;
	size_t		y = ((const Segment *) b)->n;

	return (x < y) - (x > y);
}

static GsStatus
sort_keys(Orderer *o)
{
	Segment		whole = {0, o->n, 0, true, false};
	int			threads = gs_pool_threads(o->pool);
	size_t		large = o->n / ((size_t) threads * 4);
	bool		single = threads == 1 || o->n < SINGLE_KEYS;

	if (large < SINGLE_KEYS)
		large = SINGLE_KEYS;
	if (!single)
	{
		o->counts = malloc(n_blocks(o->n, BLOCK_KEYS) * N_BUCKETS * sizeof(size_t));
		o->buckets = gs_allocate(o->n * sizeof(uint16_t));
		if (o->counts == NULL || o->buckets == NULL)
			return GS_NO_MEMORY;
	}
	if (!add_segment(single ? &o->small : &o->large, &whole))
		return GS_NO_MEMORY;
	while (o->large.n > 0)
	{
		GsStatus	status;

		o->seg = o->large.items[--o->large.n];
		if (is_beyond_limit(o, o->seg.start))
			continue;
		status = distribute(o, large);
		if (status != GS_OK)
			return status;
	}
	qsort(o->small.items, o->small.n, sizeof(Segment), compare_segments);
	gs_pool_loop(o->pool, (uint32_t) o->small.n, sort_segment, o);
	return cancelled(o) ? GS_CANCELLED : GS_OK;
}

/* ---- what is kept ---- */

/* Returns the end of the keys [*start, end) of one part of the result. */
static uint64_t
result_end(const Orderer *o, uint32_t part, uint64_t *start)
{
	*start = (uint64_t) part * RESULT_ROWS;
	return *start + RESULT_ROWS < o->n ? *start + RESULT_ROWS : o->n;
}

/* Returns the first key that is equal to this one. */
static uint64_t
find_first_equal(const Orderer *o, uint64_t place)
{
	uint64_t	low = 0;
	uint64_t	high = place;

	while (low < high)
	{
		uint64_t	middle = low + (high - low) / 2;

		if (gs_string_key_equal(&o->keys[middle], &o->keys[place]))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Returns the end of the keys that are equal to this one, the first of them. */
static uint64_t
find_end_of_equal(const Orderer *o, uint64_t place)
{
	uint64_t	low = place;
	uint64_t	high = place + 1;

	while (high < o->n && gs_string_key_equal(&o->keys[place], &o->keys[high]))
	{
		low = high;
		high += high - place;
	}
	if (high > o->n)
		high = o->n;
	while (high - low > 1)
	{
		uint64_t	middle = low + (high - low) / 2;

		if (gs_string_key_equal(&o->keys[place], &o->keys[middle]))
			low = middle;
		else
			high = middle;
	}
	return high;
}

/*
 * Writes into the first row with a key the number of rows that have it.  False: the number is out of
 * bounds, and the row is dropped.
 */
static bool
count_equal(const Orderer *o, uint64_t place)
{
	const GsHostImage *image;
	const GsRecord *record;
	uint32_t	n = (uint32_t) (find_end_of_equal(o, place) - place);

	if (n < o->keep.min_count || (o->keep.max_count > 0 && n > o->keep.max_count))
		return false;
	record = find_record(o, o->keys[place].row, &image);
	if ((record->row_len & GS_LENGTH_MASK) >= 8)
		memcpy(image->data + record->row_off + 4, &n, sizeof(n));
	return true;
}

/* Counts the part's keys by the highest bit of their number of rows. */
static void
sum_counts(void *arg, uint32_t part)
{
	Orderer    *o = arg;
	uint64_t	n_keys[32] = {0};
	uint64_t	start;
	uint64_t	end = result_end(o, part, &start);

	for (uint64_t i = start; i < end && !cancelled(o); i++)
		if (i == 0 || !gs_string_key_equal(&o->keys[i - 1], &o->keys[i]))
			n_keys[31 - __builtin_clz((uint32_t) (find_end_of_equal(o, i) - i))]++;
	for (int bit = 0; bit < 32; bit++)
		__atomic_fetch_add(&o->top_keys[bit], n_keys[bit], __ATOMIC_RELAXED);
}

/* Returns how many bytes of a key are the columns of its group. */
static uint32_t
group_bytes(const GsKeepGroup *group, const GsStringKey *k)
{
	uint32_t	at = 0;

	for (uint32_t i = 0; i < group->n_columns && at < k->len; i++)
	{
		const GsGroupColumn *column = &group->columns[i];

		if (k->key[at++] == column->null_byte)
			continue;
		if (column->n_ends == 0)
			at = column->width < k->len - at ? at + column->width : k->len;
		for (uint32_t n = 0; n < column->n_ends; n++)
		{
			const uint8_t *end = memchr(k->key + at, column->end, k->len - at);

			at = end ? (uint32_t) (end + 1 - k->key) : k->len;
		}
	}
	return at;
}

static bool
same_group(const GsKeepGroup *group, const GsStringKey *a, const GsStringKey *b)
{
	uint32_t	bytes = group_bytes(group, a);

	return bytes == group_bytes(group, b) && memcmp(a->key, b->key, bytes) == 0;
}

static bool
is_alone(const Orderer *o, uint64_t i)
{
	const GsKeepGroup *group = &o->keep.group;

	return (i == 0 || !same_group(group, &o->keys[i - 1], &o->keys[i])) &&
		(i + 1 == o->n || !same_group(group, &o->keys[i], &o->keys[i + 1]));
}

/* Moves the kept keys to the front of the part's place in scratch. */
static void
pick_keys(void *arg, uint32_t part)
{
	Orderer    *o = arg;
	const GsKeepGroup *group = &o->keep.group;
	uint64_t	start;
	uint64_t	end = result_end(o, part, &start);
	uint64_t	first_equal = find_first_equal(o, start);
	uint64_t	n = 0;

	if (cancelled(o))
		return;
	for (uint64_t i = start; i < end; i++)
	{
		bool		is_first = i == 0 || !gs_string_key_equal(&o->keys[i - 1], &o->keys[i]);
		bool		kept = is_first;

		if (is_first)
			first_equal = i;
		if (!o->keep.unique)
		{
			uint64_t	place = group->ties ? first_equal : i;

			kept = place < group->first ||
				!same_group(group, &o->keys[place - group->first], &o->keys[place]);
			kept = kept && !(group->several && is_alone(o, i));
		}
		if (kept && o->keep.counted)
			kept = count_equal(o, i);
		if (kept)
			o->scratch[start + n++] = o->keys[i];
	}
	o->kept[part] = n;
}

/* Moves the kept keys to their places. */
static void
put_keys(void *arg, uint32_t part)
{
	Orderer    *o = arg;

	if (!cancelled(o))
		memcpy(o->keys + o->kept[part], o->scratch + (uint64_t) part * RESULT_ROWS,
			   (o->kept[part + 1] - o->kept[part]) * sizeof(GsStringKey));
}

/* Leaves only the keys of kept rows.  False: no memory. */
static bool
keep_rows(Orderer *o)
{
	uint32_t	parts = n_blocks(o->n, RESULT_ROWS);

	if (o->keep.counted && o->keep.top > 0)
	{
		int			bit = 32;
		uint64_t	n = 0;

		gs_pool_loop(o->pool, parts, sum_counts, o);
		while (bit > 0 && n < o->keep.top)
			n += o->top_keys[--bit];
		o->keep.min_count = UINT32_C(1) << bit;
	}
	if (o->keep.unique || o->keep.group.first > 0)
	{
		uint64_t	place = 0;

		o->kept = calloc(parts + 1, sizeof(uint64_t));
		if (o->kept == NULL)
			return false;
		gs_pool_loop(o->pool, parts, pick_keys, o);
		for (uint32_t part = 0; part <= parts; part++)
		{
			uint64_t	n = o->kept[part];

			o->kept[part] = place;
			place += n;
		}
		gs_pool_loop(o->pool, parts, put_keys, o);
		o->n = place;
	}
	if (o->keep.limit > 0 && o->keep.limit < o->n)
		o->n = o->keep.limit;
	return true;
}

/* ---- the result ---- */

/* Finds the rows of a part of the places, and sums their lengths. */
static void
place_rows(void *arg, uint32_t part)
{
	Orderer    *o = arg;
	uint64_t	start;
	uint64_t	end = result_end(o, part, &start);

	if (cancelled(o))
		return;
	while (start < end)
	{
		uint64_t	stop = start + GS_HOST_SUM_ROWS < end ? start + GS_HOST_SUM_ROWS : end;
		uint64_t   *sum = &o->sums[start / GS_HOST_SUM_ROWS];
		const GsRecord *records[GS_HOST_SUM_ROWS];

		for (uint64_t i = start; i < stop; i++)
		{
			const GsHostImage *image;

			records[i - start] = find_record(o, o->keys[i].row, &image);
			__builtin_prefetch(records[i - start]);
			o->rows[i].row = image->data;
		}
		*sum = 0;
		for (uint64_t i = start; i < stop; i++)
		{
			const GsRecord *record = records[i - start];
			GsHostRow  *row = &o->rows[i];

			row->row += record->row_off;
			row->len = record->row_len & GS_LENGTH_MASK;
			row->flags = 0;
			row->key_len = record->key_len;
			row->key_off = (int32_t) record->key_off - (int32_t) record->row_off;
			if (i > 0 && !o->keep.unique && gs_string_key_equal(&o->keys[i - 1], &o->keys[i]))
				row->flags |= GS_ENTRY_TIE;
			if (record->key_len & GS_KEY_INEXACT)
				row->flags |= GS_ENTRY_INEXACT;
			if (record->row_len & GS_ROW_EXTERNAL)
				row->flags |= GS_ENTRY_EXTERNAL;
			*sum += gs_host_page_bytes(o->format, row);
		}
		start = stop;
	}
}

GsStatus
gs_host_order(GsPool *pool, const GsHostImage *images, uint64_t n_images,
			  GsPageFormat format, const GsKeep *keep, uint32_t chunk_bytes, const int *cancel,
			  GsHostOrder *order)
{
	Orderer    *o = calloc(1, sizeof(Orderer));
	GsHostOrder made = {.format = format};
	GsStatus	status = GS_OK;

	if (o == NULL)
		return GS_NO_MEMORY;
	o->pool = pool;
	o->cancel = cancel;
	o->images = images;
	o->n_images = n_images;
	o->format = format;
	o->keep = *keep;
	if (!set_up(o))
		status = GS_NO_MEMORY;
	else if (o->n > 0)
	{
		gs_pool_loop(pool, (uint32_t) n_images, set_up_keys, o);
		status = cancelled(o) ? GS_CANCELLED : sort_keys(o);
		if (status == GS_OK && !keep_rows(o))
			status = GS_NO_MEMORY;
		if (status == GS_OK)
		{
			o->rows = (GsHostRow *) o->scratch;
			gs_pool_loop(pool, n_blocks(o->n, RESULT_ROWS), place_rows, o);
			made.rows = o->rows;
			made.sums = o->sums;
			made.n_rows = o->n;
			if (cancelled(o))
				status = GS_CANCELLED;
			else if (!gs_host_cut_pages(&made, chunk_bytes))
				status = GS_NO_MEMORY;
		}
	}
	if (status == GS_OK)
	{
		*order = made;
		o->scratch = NULL;
		o->sums = NULL;
	}
	free(o->keys);
	free(o->image_first);
	free(o->find);
	free(o->scratch);
	free(o->buckets);
	free(o->counts);
	free(o->kept);
	free(o->small.items);
	free(o->large.items);
	free(o->sums);
	free(o);
	return status;
}
