/*-------------------------------------------------------------------------
 *
 * string_sort.c
 *	  A fast stable sort of byte strings on one CPU core.
 *
 * Algorithm
 *	  Strings are slow to sort because looking at one is a cache miss.  So
 *	  each key carries eight of its bytes as a word, and all the work is done
 *	  on words, until only keys with equal words are left together.
 *
 *	  A segment is neighbouring keys that agree on their first `depth` bytes and
 *	  whose words were read there.  It is sorted by (word, class), see
 *	  string_sort.h.  Then it is scanned for groups: two or more keys with equal
 *	  words that all go on.  The keys of a group agree on depth + 8 bytes at
 *	  least; the true length of their common prefix is measured, their words
 *	  are renewed after it, and the group is a segment of its own.  Measuring
 *	  the prefix reads each string once and in sequence, so equal strings of
 *	  any length cost one reading, and not a pass over all keys for every
 *	  eight bytes.
 *
 *	  Sorting a segment by word: one pass finds those that are in order
 *	  already, or strictly in reverse.  Up to INSERTION_MAX keys are sorted by
 *	  insertion, up to MERGE_MAX by merging; longer ones are distributed on
 *	  the highest byte of the words that is not the same in all, and so on
 *	  for each bucket, at most nine levels deep (eight bytes and the class).
 *
 * Pending work
 *	  A scan meets a group, and both the group and the rest of the scan
 *	  remain to be done.  The larger of the two is put on the stack and the
 *	  smaller one is done first.  What is done is therefore at most half of
 *	  what was put below it, and a stack of log2(n) entries suffices, however
 *	  deep common prefixes nest.
 *
 * Stability
 *	  Insertion, merging and distribution are stable, reversal is done only
 *	  where no two keys are equal.  A group is renewed in place, in order.
 *
 * Tests: unit/plain/test_device
 *
 *-------------------------------------------------------------------------
 */
#include "base/string_sort.h"

#define INSERTION_MAX 16
#define MERGE_MAX 256

/* Keys handled between two pauses, about a millisecond. */
#define PAUSE_INTERVAL 65536

/* Pending work halves in size with every entry; sizes are below 2^64. */
#define STACK_MAX 66

typedef struct Sorter
{
	const int  *cancel;
	void		(*pause) (void);
	size_t		until_pause;	/* keys left before the next pause */
	bool		cancelled;
} Sorter;

/* Work to be done on keys[start, end), all agreeing on `depth` bytes. */
typedef struct Pending
{
	size_t		start;
	size_t		end;
	uint32_t	depth;
	bool		is_group;		/* words equal and all go on: renew, sort, scan;
								 * else the words are in order: scan */
} Pending;

static inline bool
check_cancel(Sorter *sorter, size_t n)
{
	if (n < sorter->until_pause)
	{
		sorter->until_pause -= n;
		return sorter->cancelled;
	}
	sorter->until_pause = PAUSE_INTERVAL;
	if (sorter->pause != NULL)
		sorter->pause();
	if (sorter->cancel != NULL && __atomic_load_n(sorter->cancel, __ATOMIC_RELAXED) != 0)
		sorter->cancelled = true;
	return sorter->cancelled;
}

static inline bool
key_less(const GsStringKey *a, const GsStringKey *b, uint32_t depth)
{
	if (a->word != b->word)
		return a->word < b->word;
	return gs_string_key_class(a, depth) < gs_string_key_class(b, depth);
}

uint32_t
gs_string_common_prefix(const GsStringKey *keys, size_t n, const GsStringKey *pivot,
					  uint32_t depth, uint32_t limit)
{
	uint32_t	common = pivot->len < limit ? pivot->len : limit;

	for (size_t i = 0; i < n && common > depth; i++)
	{
		const uint8_t *key = keys[i].key;
		uint32_t	end = keys[i].len < common ? keys[i].len : common;

		if (i + 8 < n)
			__builtin_prefetch(keys[i + 8].key + depth);
		if (key == pivot->key)
			common = end;
		else if (end > depth)
			common = depth + gs_string_common_bytes(key + depth, pivot->key + depth, end - depth);
		else
			common = depth;
	}
	return common;
}

void
gs_string_read_words(GsStringKey *keys, size_t n, uint32_t depth)
{
	for (size_t i = 0; i < n; i++)
	{
		if (i + 8 < n)
			__builtin_prefetch(keys[i + 8].key + depth);
		keys[i].word = gs_string_key_word(keys[i].key, keys[i].len, depth);
	}
}

static void
insertion_sort(GsStringKey *keys, size_t n, uint32_t depth)
{
	for (size_t i = 1; i < n; i++)
	{
		GsStringKey	key = keys[i];
		size_t		j = i;

		while (j > 0 && key_less(&key, &keys[j - 1], depth))
		{
			keys[j] = keys[j - 1];
			j--;
		}
		keys[j] = key;
	}
}

/*
 * True where the keys were in order, or could be put in order by turning them
 * around.
 */
static bool
sort_presorted(GsStringKey *keys, size_t n, uint32_t depth)
{
	size_t		i = 1;

	if (key_less(&keys[1], &keys[0], depth))
	{
		while (i < n && key_less(&keys[i], &keys[i - 1], depth))
			i++;
		if (i < n)
			return false;
		for (size_t a = 0, b = n - 1; a < b; a++, b--)
		{
			GsStringKey	swap = keys[a];

			keys[a] = keys[b];
			keys[b] = swap;
		}
		return true;
	}
	while (i < n && !key_less(&keys[i], &keys[i - 1], depth))
		i++;
	return i == n;
}

/* Merge from[0, middle) and from[middle, n) into to. */
static void
merge(const GsStringKey *from, size_t middle, size_t n, GsStringKey *to, uint32_t depth)
{
	const GsStringKey *a = from;
	const GsStringKey *a_end = from + middle;
	const GsStringKey *b = a_end;
	const GsStringKey *b_end = from + n;

	if (!key_less(b, a_end - 1, depth))
	{
		memcpy(to, from, n * sizeof(GsStringKey));
		return;
	}
	while (a < a_end && b < b_end)
	{
		bool		take_b = key_less(b, a, depth);

		*to++ = take_b ? *b : *a;
		b += take_b;
		a += !take_b;
	}
	memcpy(to, a, (size_t) (a_end - a) * sizeof(GsStringKey));
	memcpy(to + (a_end - a), b, (size_t) (b_end - b) * sizeof(GsStringKey));
}

/* Sort by insertion in short runs, then merge them; the result is in keys. */
static void
merge_sort(GsStringKey *keys, GsStringKey *scratch, size_t n, uint32_t depth)
{
	GsStringKey  *from = keys;
	GsStringKey  *to = scratch;
	size_t		run = INSERTION_MAX;

	for (size_t start = 0; start < n; start += run)
		insertion_sort(keys + start, n - start < run ? n - start : run, depth);
	for (; run < n; run *= 2)
	{
		GsStringKey  *swap = from;

		for (size_t start = 0; start < n; start += 2 * run)
		{
			size_t		left = n - start;

			if (left <= run)
				memcpy(to + start, from + start, left * sizeof(GsStringKey));
			else
				merge(from + start, run, left < 2 * run ? left : 2 * run, to + start, depth);
		}
		from = to;
		to = swap;
	}
	if (from != keys)
		memcpy(keys, from, n * sizeof(GsStringKey));
}

static void sort_by_word(Sorter *sorter, GsStringKey *keys, GsStringKey *other, size_t n,
						 uint32_t depth, bool moved);

/*
 * Distribute on the highest byte that differs, of the words or, where those
 * are all equal, of the classes; then sort the buckets.
 */
static void
distribute(Sorter *sorter, GsStringKey *keys, GsStringKey *other, size_t n, uint32_t depth,
		   bool moved)
{
	const GsStringKey *from = moved ? other : keys;
	GsStringKey  *to = moved ? keys : other;
	uint64_t	differ = 0;
	size_t		counts[256] = {0};
	size_t		place = 0;
	bool		by_class;
	int			shift = 0;

	for (size_t i = 1; i < n; i++)
		differ |= from[i].word ^ from[0].word;
	by_class = differ == 0;
	if (by_class)
	{
		for (size_t i = 0; i < n; i++)
			counts[gs_string_key_class(&from[i], depth)]++;
	}
	else
	{
		shift = (63 - __builtin_clzll(differ)) & ~7;
		for (size_t i = 0; i < n; i++)
			counts[(from[i].word >> shift) & 255]++;
	}
	for (int byte = 0; byte < 256; byte++)
	{
		size_t		count = counts[byte];

		counts[byte] = place;
		place += count;
	}
	for (size_t i = 0; i < n; i++)
	{
		uint32_t	byte = by_class ? gs_string_key_class(&from[i], depth)
			: (uint32_t) (from[i].word >> shift) & 255;

		to[counts[byte]++] = from[i];
	}
	if (by_class)
	{
		if (!moved)
			memcpy(keys, other, n * sizeof(GsStringKey));
		return;
	}

	/* Each place has moved on to the end of its bucket. */
	for (int byte = 0; byte < 256; byte++)
	{
		size_t		start = byte == 0 ? 0 : counts[byte - 1];
		size_t		count = counts[byte] - start;

		if (count > 0)
			sort_by_word(sorter, keys + start, other + start, count, depth, !moved);
		if (sorter->cancelled)
			return;
	}
}

/* Sort by word.  moved: the keys are in `other`.  The result is in keys. */
static void
sort_by_word(Sorter *sorter, GsStringKey *keys, GsStringKey *other, size_t n, uint32_t depth,
			 bool moved)
{
	bool		sorted;

	if (check_cancel(sorter, n))
		return;
	sorted = n > INSERTION_MAX && sort_presorted(moved ? other : keys, n, depth);
	if (n > MERGE_MAX && !sorted)
	{
		distribute(sorter, keys, other, n, depth, moved);
		return;
	}
	if (moved)
		memcpy(keys, other, n * sizeof(GsStringKey));
	if (n <= INSERTION_MAX)
		insertion_sort(keys, n, depth);
	else if (!sorted)
		merge_sort(keys, other, n, depth);
}

/* Read the words of a group anew, after what all its keys have in common. */
static uint32_t
renew_words(GsStringKey *keys, size_t n, uint32_t depth)
{
	depth = gs_string_common_prefix(keys + 1, n - 1, &keys[0], depth, keys[0].len);
	gs_string_read_words(keys, n, depth);
	return depth;
}

/*
 * Find the first group in keys[work->start, work->end), whose words are in
 * order, and move work->start behind it.
 */
static bool
next_group(const GsStringKey *keys, Pending *work, Pending *group)
{
	size_t		i = work->start;
	size_t		end = work->end;

	while (i + 1 < end)
	{
		uint64_t	word = keys[i].word;
		size_t		start = i++;

		if (keys[i].word != word)
			continue;
		while (i < end && keys[i].word == word)
			i++;

		/* Ended keys come first; they are done. */
		while (start < i && gs_string_key_class(&keys[start], work->depth) != GS_STRING_GOES_ON)
			start++;
		if (i - start > 1)
		{
			group->start = start;
			group->end = i;
			group->depth = work->depth + 8;
			group->is_group = true;
			work->start = i;
			return true;
		}
	}
	work->start = end;
	return false;
}

static void
sort_pending(Sorter *sorter, GsStringKey *keys, GsStringKey *scratch, Pending work)
{
	Pending		stack[STACK_MAX];
	int			stacked = 0;

	if (work.end < 2)
		return;
	if (!work.is_group)
		sort_by_word(sorter, keys, scratch, work.end, work.depth, false);
	while (!sorter->cancelled)
	{
		Pending		group;

		if (work.is_group)
		{
			size_t		count = work.end - work.start;

			work.depth = renew_words(keys + work.start, count, work.depth);
			sort_by_word(sorter, keys + work.start, scratch + work.start, count, work.depth,
						 false);
			work.is_group = false;
		}
		else if (!next_group(keys, &work, &group))
		{
			if (stacked == 0)
				break;
			work = stack[--stacked];
		}
		else if (work.end - work.start < 2)
			work = group;
		else if (work.end - work.start > group.end - group.start)
		{
			stack[stacked++] = work;
			work = group;
		}
		else
			stack[stacked++] = group;
	}
}

bool
gs_string_sort_at(GsStringKey *keys, GsStringKey *scratch, size_t n, uint32_t depth,
				bool stale, const int *cancel)
{
	Sorter		sorter = {.cancel = cancel, .until_pause = PAUSE_INTERVAL};

	sort_pending(&sorter, keys, scratch, (Pending){0, n, depth, stale});
	return !sorter.cancelled;
}

void
gs_string_sort(GsStringKey *keys, GsStringKey *scratch, size_t n, void (*pause) (void))
{
	Sorter		sorter = {.pause = pause, .until_pause = PAUSE_INTERVAL};

	sort_pending(&sorter, keys, scratch, (Pending){0, n, 0, false});
}
