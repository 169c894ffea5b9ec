/*-------------------------------------------------------------------------
 *
 * order_sort.c
 *	  Sorting the keys of a run by their full order, with many threads.
 *
 * A stable merge sort.  strcoll() takes microseconds where runs are large
 * (Hangul), and a device's order is nearly right, so everything is done to
 * compare little.  Keys of the same text stand together and in order, so it
 * is groups of them that are sorted, each by its first key.  Neighbouring
 * stretches that are in order are not merged, and of two that overlap only the
 * parts that do.
 *
 * Threads
 *	  First, leaves of LEAF groups are sorted, each by one thread.  Then
 *	  stretches are merged two by two, level by level; each merge is cut into
 *	  pieces of PIECE groups of its result, whose inputs are found by binary
 *	  search, so that all threads have work on the last level too.
 *
 * A comparison that contradicts itself can only spoil the order, which the
 * caller has to check anyway: no loop relies on more than its own bounds.
 *
 * Tests: unit/plain/test_key_order, regress/keys_libc
 *
 *-------------------------------------------------------------------------
 */
#ifdef POSTGRES_H
#error "order_sort.c is plain C and must not see postgres.h"
#endif

#include <stdlib.h>

#include "order/order_sort.h"

#define LEAF	2048
#define PIECE	(2 * LEAF)		/* no piece belongs to two merges */

typedef struct Sorting
{
	const GsOrderJudge *judge;
	const uint8_t *const *entries;
	const uint32_t *groups;		/* number of each one's first entry */
	uint32_t	n;				/* groups */
	uint32_t   *from;			/* this level's input ... */
	uint32_t   *to;				/* ... and result */
	uint32_t	width;			/* groups of a stretch of the input */
	int			failed;			/* atomic */
} Sorting;

/* What one thread compares with. */
typedef struct Comparer
{
	Sorting    *sorting;
	GsKeyCheckScratch scratch;
} Comparer;

static inline int
compare(Comparer *c, uint32_t a, uint32_t b)
{
	const Sorting *s = c->sorting;

	return gs_entry_compare(s->judge, s->entries[s->groups[a]], s->entries[s->groups[b]],
							&c->scratch);
}

static inline bool
is_over(const Sorting *s)
{
	return gs_order_stopped(s->judge) || __atomic_load_n(&s->failed, __ATOMIC_RELAXED) != 0;
}

static void
note_failure(Comparer *c)
{
	if (c->scratch.malformed)
		__atomic_store_n(&c->sorting->failed, 1, __ATOMIC_RELAXED);
}

/* How many of n keys stand before a key; those equal to it too, or not. */
static uint32_t
count_before(Comparer *c, const uint32_t *keys, uint32_t n, uint32_t key, bool equal_too)
{
	uint32_t	low = 0;
	uint32_t	high = n;

	while (low < high)
	{
		uint32_t	mid = low + (high - low) / 2;
		int			order = compare(c, keys[mid], key);

		if (order < 0 || (order == 0 && equal_too))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Merge two sorted stretches; of equal keys those of a come first. */
static void
merge(Comparer *c, const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b, uint32_t *to)
{
	uint32_t	tail = 0;

	if (n_a > 0 && n_b > 0 && compare(c, a[n_a - 1], b[0]) > 0)
	{
		uint32_t	head = count_before(c, a, n_a, b[0], true);

		memcpy(to, a, head * sizeof(*to));
		a += head;
		n_a -= head;
		to += head;
		tail = n_b;
		if (n_a > 0)
			n_b = count_before(c, b, n_b, a[n_a - 1], false);
		tail -= n_b;
		while (n_a > 0 && n_b > 0)
		{
			if (compare(c, *a, *b) <= 0)
			{
				*to++ = *a++;
				n_a--;
			}
			else
			{
				*to++ = *b++;
				n_b--;
			}
			if (((n_a ^ n_b) & 63) == 0 && is_over(c->sorting))
				break;
		}
	}
	memcpy(to, a, n_a * sizeof(*to));
	memcpy(to + n_a, b, (n_b + tail) * sizeof(*to));
}

/* Sort keys in place; spare has room for as many. */
static void
sort_leaf(Comparer *c, uint32_t *keys, uint32_t n, uint32_t *spare)
{
	uint32_t	half = n / 2;

	if (n <= 6)
	{
		for (uint32_t i = 1; i < n; i++)
		{
			uint32_t	key = keys[i];
			uint32_t	j = i;

			while (j > 0 && compare(c, keys[j - 1], key) > 0)
			{
				keys[j] = keys[j - 1];
				j--;
			}
			keys[j] = key;
		}
		return;
	}
	if (is_over(c->sorting))
		return;
	sort_leaf(c, keys, half, spare);
	sort_leaf(c, keys + half, n - half, spare);
	if (compare(c, keys[half - 1], keys[half]) <= 0)
		return;
	merge(c, keys, half, keys + half, n - half, spare);
	memcpy(keys, spare, n * sizeof(*keys));
}

static void
leaf_part(void *arg, uint32_t part)
{
	Sorting    *s = arg;
	uint32_t	first = part * LEAF;
	uint32_t	n = s->n - first < LEAF ? s->n - first : LEAF;
	uint32_t	spare[LEAF];
	Comparer	c;

	c.sorting = s;
	c.scratch.malformed = false;
	sort_leaf(&c, s->from + first, n, spare);
	note_failure(&c);
}

/*
 * Of the first k keys of a merge's result, how many come from a: the least i
 * whose a[i] does not stand before b[k - i - 1].
 */
static uint32_t
split(Comparer *c, const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b, uint32_t k)
{
	uint32_t	low = k > n_b ? k - n_b : 0;
	uint32_t	high = k < n_a ? k : n_a;

	while (low < high)
	{
		uint32_t	mid = low + (high - low) / 2;

		if (compare(c, a[mid], b[k - mid - 1]) <= 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* One piece of a level's result. */
static void
merge_part(void *arg, uint32_t part)
{
	Sorting    *s = arg;
	uint64_t	at = (uint64_t) part * PIECE;
	uint64_t	first = at / (2 * (uint64_t) s->width) * (2 * (uint64_t) s->width);
	uint64_t	left = s->n - first;
	uint32_t	n = (uint32_t) (left < 2 * (uint64_t) s->width ? left : 2 * (uint64_t) s->width);
	uint32_t	n_a = n < s->width ? n : s->width;
	uint32_t	n_b = n - n_a;
	const uint32_t *a = s->from + first;
	const uint32_t *b = a + n_a;
	uint32_t	k = (uint32_t) (at - first);
	uint32_t	k_end = n - k < PIECE ? n : k + PIECE;
	uint32_t	i = k < n_a ? k : n_a;
	uint32_t	i_end = k_end < n_a ? k_end : n_a;
	Comparer	c;

	if (is_over(s))
		return;
	c.sorting = s;
	c.scratch.malformed = false;
	if (n_b > 0 && compare(&c, a[n_a - 1], b[0]) > 0)
	{
		i = split(&c, a, n_a, b, n_b, k);
		i_end = split(&c, a, n_a, b, n_b, k_end);
	}
	if (i_end < i || k_end - i_end < k - i)
		c.scratch.malformed = true;
	else
		merge(&c, a + i, i_end - i, b + (k - i), (k_end - i_end) - (k - i), s->to + at);
	note_failure(&c);
}

/*
 * Find the groups; returns their number.  What keys of a group differ in is
 * ordered by the bytes, as they are.
 */
static uint32_t
find_groups(const GsOrderJudge *judge, const uint8_t *const *entries, uint32_t n, uint32_t *groups)
{
	uint32_t	n_groups = 0;

	for (uint32_t i = 0; i < n; i++)
		if (i == 0 ||
			!gs_key_check_same_texts(&judge->layout,
									 gs_entry_key(entries[i - 1]), gs_entry_len(entries[i - 1]),
									 gs_entry_key(entries[i]), gs_entry_len(entries[i])))
			groups[n_groups++] = i;
	groups[n_groups] = n;
	return n_groups;
}

bool
gs_order_sort(const GsOrderJudge *judge, GsHostPool *pool, const uint8_t *const *entries,
			  uint32_t n, uint32_t *order, uint32_t *spare)
{
	uint32_t   *groups = malloc(((size_t) n + 1) * sizeof(uint32_t));
	Sorting		s = {judge, entries, groups, 0, order, spare, LEAF, 0};
	uint32_t	at = 0;
	bool		over;

	if (groups == NULL)
		return false;
	s.n = find_groups(judge, entries, n, groups);
	for (uint32_t i = 0; i < s.n; i++)
		order[i] = i;
	gs_host_pool_loop(pool, (s.n + LEAF - 1) / LEAF, leaf_part, &s);

	while (s.width < s.n && !is_over(&s))
	{
		uint32_t   *swap;

		gs_host_pool_loop(pool, (s.n + PIECE - 1) / PIECE, merge_part, &s);
		swap = s.from;
		s.from = s.to;
		s.to = swap;
		s.width = s.width > UINT32_MAX / 2 ? UINT32_MAX : s.width * 2;
	}

	/* from the groups' order to their entries' */
	over = is_over(&s);
	for (uint32_t i = 0; i < s.n && !over; i++)
		for (uint32_t j = groups[s.from[i]]; j < groups[s.from[i] + 1]; j++)
			s.to[at++] = j;
	free(groups);
	if (!over && s.to != order)
		memcpy(order, s.to, n * sizeof(*order));
	return !over;
}
