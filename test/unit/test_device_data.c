/*-------------------------------------------------------------------------
 *
 * test_device_data.c
 *	  Inputs of the device conformance suite: records with nasty keys, their
 *	  right order, and chunks written from them.
 *
 * The right order is found by a merge sort of record numbers that compares
 * the keys with memcmp and nothing else, so that it shares no idea with the
 * devices that it judges.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_device.h"

uint64_t
test_random(TestRandom *rng)
{
	uint64_t	x = (*rng += UINT64_C(0x9e3779b97f4a7c15));

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* A number in [0, limit). */
uint32_t
test_below(TestRandom *rng, uint32_t limit)
{
	return (uint32_t) (((test_random(rng) >> 32) * limit) >> 32);
}

static void *
grow(void *memory, size_t bytes)
{
	memory = realloc(memory, bytes);
	if (memory == NULL)
	{
		fprintf(stderr, "test_device: out of memory\n");
		exit(2);
	}
	return memory;
}

void
test_input_init(TestInput *in, uint32_t chunk_bytes)
{
	memset(in, 0, sizeof(*in));
	in->chunk_bytes = chunk_bytes;
	in->max_bytes = 4096;
	in->bytes = grow(NULL, in->max_bytes);
}

void
test_input_free(TestInput *in)
{
	free(in->bytes);
	free(in->records);
	free(in->order);
	memset(in, 0, sizeof(*in));
}

/* Room for more bytes; returns where they start. */
static size_t
input_bytes(TestInput *in, size_t bytes)
{
	size_t		start = in->n_bytes;

	if (start + bytes > in->max_bytes)
	{
		in->max_bytes = (start + bytes) * 2;
		in->bytes = grow(in->bytes, in->max_bytes);
	}
	in->n_bytes += bytes;
	return start;
}

static TestRecord *
input_record(TestInput *in)
{
	if (in->n == in->max)
	{
		in->max = in->max == 0 ? 64 : in->max * 2;
		in->records = grow(in->records, in->max * sizeof(TestRecord));
	}
	return &in->records[in->n++];
}

void
test_input_add_apart(TestInput *in, const void *row, uint32_t row_len,
					 const void *key, uint32_t key_len)
{
	uint32_t	row_bytes = row_len & GS_LENGTH_MASK;
	uint32_t	key_bytes = key_len & GS_LENGTH_MASK;
	size_t		start = input_bytes(in, (size_t) row_bytes + key_bytes);
	TestRecord *record = input_record(in);

	if (row_bytes > 0)
		memcpy(in->bytes + start, row, row_bytes);
	if (key_bytes > 0)
		memcpy(in->bytes + start + row_bytes, key, key_bytes);
	record->row = start;
	record->row_len = row_len;
	record->key = start + row_bytes;
	record->key_len = key_len;
}

void
test_input_add(TestInput *in, const void *key, uint32_t key_len, uint32_t tail)
{
	uint32_t	key_bytes = key_len & GS_LENGTH_MASK;
	uint32_t	row_bytes = 8 + key_bytes + tail;
	size_t		start = input_bytes(in, row_bytes);
	uint64_t	number = in->n;
	TestRecord *record = input_record(in);

	memcpy(in->bytes + start, &number, 8);
	if (key_bytes > 0)
		memcpy(in->bytes + start + 8, key, key_bytes);
	for (uint32_t i = 0; i < tail; i++)
		in->bytes[start + 8 + key_bytes + i] = (char) (number + i);
	record->row = start;
	record->row_len = row_bytes;
	record->key = start + 8;
	record->key_len = key_len;
}

int
test_key_compare(const TestInput *in, uint32_t a, uint32_t b)
{
	const TestRecord *x = &in->records[a];
	const TestRecord *y = &in->records[b];
	uint32_t	x_len = x->key_len & GS_LENGTH_MASK;
	uint32_t	y_len = y->key_len & GS_LENGTH_MASK;
	uint32_t	common = x_len < y_len ? x_len : y_len;
	int			order = common == 0 ? 0
		: memcmp(in->bytes + x->key, in->bytes + y->key, common);

	if (order != 0)
		return order;
	return (x_len > y_len) - (x_len < y_len);
}

void
test_input_finish(TestInput *in)
{
	uint32_t	n = in->n;
	uint32_t   *from = grow(NULL, ((size_t) n + 1) * sizeof(uint32_t));
	uint32_t   *to = grow(NULL, ((size_t) n + 1) * sizeof(uint32_t));

	for (uint32_t i = 0; i < n; i++)
	{
		from[i] = i;
		in->row_bytes += in->records[i].row_len & GS_LENGTH_MASK;
		in->key_bytes += in->records[i].key_len & GS_LENGTH_MASK;
	}
	for (size_t width = 1; width < n; width *= 2)
	{
		uint32_t   *swap;

		for (size_t start = 0; start < n; start += 2 * width)
		{
			size_t		middle = start + width < n ? start + width : n;
			size_t		end = middle + width < n ? middle + width : n;
			size_t		a = start;
			size_t		b = middle;

			for (size_t i = start; i < end; i++)
			{
				if (b == end || (a < middle && test_key_compare(in, from[a], from[b]) <= 0))
					to[i] = from[a++];
				else
					to[i] = from[b++];
			}
		}
		swap = from;
		from = to;
		to = swap;
	}
	free(to);
	in->order = from;
}

/*
 * Write the next chunk.  Unless the feed is plain, chunks end early or hold
 * no record now and then, rows and keys have gaps between them, keys are
 * found before or after their row, and equal keys share their bytes.
 */
void
test_feed_chunk(TestFeed *feed, char *chunk, uint32_t *data_bytes, uint32_t *n_records)
{
	const TestInput *in = feed->in;
	TestRandom *rng = &feed->rng;
	size_t		used = 0;
	uint32_t	count = 0;
	uint32_t	most = UINT32_MAX;
	uint32_t	last_key = 0;

	if (!feed->plain)
	{
		uint32_t	kind = test_below(rng, 16);

		if (kind == 0)
			most = 0;
		else if (kind < 3)
			most = 1 + test_below(rng, 50);
		if (test_below(rng, 4) == 0)
			used = test_below(rng, 64);
	}
	while (feed->next < in->n && count < most)
	{
		const TestRecord *record = &in->records[feed->next];
		uint32_t	row_len = record->row_len & GS_LENGTH_MASK;
		uint32_t	key_len = record->key_len & GS_LENGTH_MASK;
		bool		inside = record->key >= record->row &&
			record->key + key_len <= record->row + row_len;
		bool		shared = !feed->plain && !inside && count > 0 &&
			test_key_compare(in, feed->next, feed->next - 1) == 0 && test_below(rng, 2) == 0;
		bool		key_first = !feed->plain && test_below(rng, 2) == 0;
		size_t		gap = feed->plain || test_below(rng, 16) != 0 ? 0 : test_below(rng, 40);
		size_t		key_off = 0;
		size_t		row_off;
		size_t		end = used + gap;
		GsRecord   *out;

		if (!inside && !shared && key_first)
		{
			key_off = end;
			end += key_len;
		}
		row_off = (end + 7) & ~(size_t) 7;
		end = row_off + row_len;
		if (inside)
			key_off = row_off + (record->key - record->row);
		else if (shared)
			key_off = last_key;
		else if (!key_first)
		{
			key_off = end;
			end += key_len;
		}
		if (end + (count + 1) * sizeof(GsRecord) > in->chunk_bytes)
		{
			if (gap == 0 || count > 0)
				break;
			continue;			/* a lone record needs the room */
		}
		if (row_len > 0)
			memcpy(chunk + row_off, in->bytes + record->row, row_len);
		if (!inside && key_len > 0)
			memcpy(chunk + key_off, in->bytes + record->key, key_len);
		out = gs_chunk_record(chunk, in->chunk_bytes, count);
		out->row_off = (uint32_t) row_off;
		out->row_len = record->row_len;
		out->key_off = (uint32_t) key_off;
		out->key_len = record->key_len;
		last_key = (uint32_t) key_off;
		used = end;
		count++;
		feed->next++;
	}
	*data_bytes = (uint32_t) used;
	*n_records = count;
}

/* ---- generators ---- */

static void
random_bytes(TestRandom *rng, unsigned char *to, uint32_t n, uint32_t first, uint32_t symbols)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] = (unsigned char) (first + test_below(rng, symbols));
}

static void
make_none(TestInput *in, TestRandom *rng)
{
	(void) in;
	(void) rng;
}

static void
make_one(TestInput *in, TestRandom *rng)
{
	(void) rng;
	test_input_add(in, "the only one", 12, 3);
}

static void
make_empty_keys(TestInput *in, TestRandom *rng)
{
	for (int i = 0; i < 3000; i++)
		test_input_add(in, "x", test_below(rng, 3) == 0, test_below(rng, 20));
}

static void
make_all_empty(TestInput *in, TestRandom *rng)
{
	(void) rng;
	for (int i = 0; i < 5000; i++)
		test_input_add_apart(in, NULL, 0, NULL, 0);
}

/* Keys of few distinct bytes, most of them NUL, which end anywhere. */
static void
make_nul(TestInput *in, TestRandom *rng)
{
	unsigned char key[40];

	for (int i = 0; i < 20000; i++)
	{
		uint32_t	len = test_below(rng, 20);

		for (uint32_t j = 0; j < len; j++)
			key[j] = (unsigned char) (test_below(rng, 12) == 0 ? 1 : 0);
		test_input_add(in, key, len, test_below(rng, 9));
	}
}

static void
make_random(TestInput *in, TestRandom *rng)
{
	unsigned char key[64];

	for (int i = 0; i < 30000; i++)
	{
		uint32_t	len = test_below(rng, 32);

		random_bytes(rng, key, len, 0, 256);
		test_input_add(in, key, len, test_below(rng, 100));
	}
}

static void
make_two_symbols(TestInput *in, TestRandom *rng)
{
	unsigned char key[64];

	for (int i = 0; i < 30000; i++)
	{
		uint32_t	len = test_below(rng, 33);

		random_bytes(rng, key, len, 0x7f, 2);
		test_input_add(in, key, len, 0);
	}
}

static void
make_prefixes(TestInput *in, TestRandom *rng)
{
	static const char text[] = "to be, or not to be, that is the question: whether";

	for (int i = 0; i < 10000; i++)
		test_input_add(in, text, test_below(rng, sizeof(text)), test_below(rng, 9));
}

static void
make_lengths(TestInput *in, TestRandom *rng)
{
	unsigned char key[80];

	for (int round = 0; round < 40; round++)
	{
		for (uint32_t len = 0; len <= 64; len++)
		{
			random_bytes(rng, key, len, round % 2 == 0 ? 0 : 255, round % 4 < 2 ? 1 : 2);
			test_input_add(in, key, len, len % 9);
		}
	}
}

static void
make_all_equal(TestInput *in, TestRandom *rng)
{
	unsigned char key[1000];

	(void) rng;
	memset(key, 'e', sizeof(key));
	for (int i = 0; i < 4000; i++)
		test_input_add(in, key, sizeof(key), i % 24);
}

static void
make_equal_short(TestInput *in, TestRandom *rng)
{
	(void) rng;
	for (int i = 0; i < 200000; i++)
		test_input_add(in, "same", 4, 0);
}

static void
make_numbers(TestInput *in, uint32_t n, bool reversed)
{
	char		key[32];

	for (uint32_t i = 0; i < n; i++)
	{
		int			len = snprintf(key, sizeof(key), "key %09u", reversed ? n - i / 2 : i / 2);

		test_input_add(in, key, (uint32_t) len, i % 10);
	}
}

static void
make_sorted(TestInput *in, TestRandom *rng)
{
	(void) rng;
	make_numbers(in, 100000, false);
}

static void
make_reversed(TestInput *in, TestRandom *rng)
{
	(void) rng;
	make_numbers(in, 100000, true);
}

static void
make_long_prefix(TestInput *in, TestRandom *rng)
{
	unsigned char key[1040];

	memset(key, '/', sizeof(key));
	for (int i = 0; i < 4000; i++)
	{
		uint32_t	len = 1000 + test_below(rng, 40);

		random_bytes(rng, key + 1000, len - 1000, 'a', 3);
		test_input_add(in, key, len, 0);
	}
}

/* Keys that agree with one of a few up to a random place. */
static void
make_forks(TestInput *in, TestRandom *rng)
{
	static unsigned char key[700];

	for (int i = 0; i < 6000; i++)
	{
		uint32_t	len = 300 + test_below(rng, 400);
		uint32_t	fork = test_below(rng, len);

		memset(key, 'a' + (int) test_below(rng, 3), sizeof(key));
		key[fork] = (unsigned char) test_below(rng, 256);
		test_input_add(in, key, len, 0);
	}
}

static void
make_comb(TestInput *in, TestRandom *rng)
{
	static unsigned char key[3000];

	memset(key, 'a', sizeof(key));
	for (int i = 0; i < 3000; i++)
		test_input_add_apart(in, &i, sizeof(i), key, test_below(rng, sizeof(key)));
}

/* At every depth, a key or two that go another way. */
static void
make_ladder(TestInput *in, TestRandom *rng)
{
	static unsigned char key[4000];

	memset(key, 'm', sizeof(key));
	for (uint32_t len = 1; len < sizeof(key); len += 3)
	{
		unsigned char other = test_below(rng, 2) == 0 ? 'a' : 'z';

		key[len] = other;
		test_input_add_apart(in, &len, sizeof(len), key, len + 1);
		test_input_add_apart(in, &len, sizeof(len), key, len + 1);
		key[len] = 'm';
	}
}

static void
make_long_keys(TestInput *in, TestRandom *rng)
{
	static unsigned char key[8192];

	for (int i = 0; i < 600; i++)
	{
		memset(key, 'k', sizeof(key));
		if (test_below(rng, 2) == 0)
			key[8000 + test_below(rng, 192)] = (unsigned char) test_below(rng, 256);
		test_input_add_apart(in, &i, sizeof(i), key, sizeof(key) - (test_below(rng, 4) == 0));
	}
}

/* Rows from nothing to the most that is allowed, keys apart. */
static void
make_row_sizes(TestInput *in, TestRandom *rng)
{
	uint32_t	max = (uint32_t) gs_max_row_bytes(in->chunk_bytes);
	unsigned char *row = grow(NULL, max);
	unsigned char key[16];

	for (int i = 0; i < 2000; i++)
	{
		uint32_t	kind = test_below(rng, 8);
		uint32_t	row_len = kind < 2 ? 0 : kind == 2 ? max : kind == 3 ? max - test_below(rng, 9)
			: kind == 4 ? test_below(rng, max) : test_below(rng, 40);
		uint32_t	key_len = test_below(rng, sizeof(key));

		random_bytes(rng, row, row_len, 0, 256);
		random_bytes(rng, key, key_len, 'a', 3);
		test_input_add_apart(in, row, row_len, key, key_len);
	}
	free(row);
}

/* Every row as long as is allowed: the emptiest pages. */
static void
make_full_rows(TestInput *in, TestRandom *rng)
{
	uint32_t	max = (uint32_t) gs_max_row_bytes(in->chunk_bytes);
	unsigned char *row = grow(NULL, max);

	for (int i = 0; i < 100; i++)
	{
		random_bytes(rng, row, max, 0, 256);
		test_input_add_apart(in, row, max, row, 3);
	}
	free(row);
}

static void
make_flags(TestInput *in, TestRandom *rng)
{
	unsigned char key[8];
	uint64_t	row[4] = {0};

	for (int i = 0; i < 20000; i++)
	{
		uint32_t	len = test_below(rng, 4);

		random_bytes(rng, key, len, 'a', 3);
		row[0] = (uint64_t) i;
		test_input_add_apart(in, row, test_below(rng, 33) | (test_below(rng, 3) == 0 ? GS_ROW_EXTERNAL : 0),
							 key, len | (test_below(rng, 3) == 0 ? GS_KEY_INEXACT : 0));
	}
}

static void
make_paths(TestInput *in, TestRandom *rng)
{
	static const char *const names[] = {"usr", "share", "doc", "lib", "include", "python3", "src", "a",
	"linux-headers", "README", "README.md", "x86_64", "test", "tests", "main.c", "locale"};
	char		key[256];

	for (int i = 0; i < 60000; i++)
	{
		uint32_t	len = 0;
		uint32_t	parts = 1 + test_below(rng, 9);

		for (uint32_t part = 0; part < parts; part++)
		{
			uint32_t	name = test_below(rng, 16);

			len += (uint32_t) snprintf(key + len, sizeof(key) - len, "/%s",
									   names[name < test_below(rng, 16) ? name : 0]);
		}
		if (test_below(rng, 2) == 0)
			len += (uint32_t) snprintf(key + len, sizeof(key) - len, "-%u", test_below(rng, 1000));
		test_input_add(in, key, len, test_below(rng, 30));
	}
}

void
test_make_fixed(TestInput *in, uint32_t width, uint32_t n, TestRandom *rng)
{
	unsigned char key[64];
	uint32_t	symbols = test_below(rng, 2) == 0 ? 256 : 3;

	for (uint32_t i = 0; i < n; i++)
	{
		random_bytes(rng, key, width, symbols == 256 ? 0 : 'a', symbols);
		test_input_add(in, key, width | (test_below(rng, 8) == 0 ? GS_KEY_INEXACT : 0), test_below(rng, 20));
	}
}

void
test_make_words(TestInput *in, uint32_t n, TestRandom *rng)
{
	unsigned char key[32];

	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	len = 1 + test_below(rng, 14);

		random_bytes(rng, key, len, 'a', 26);
		if (len > 8 && test_below(rng, 2) == 0)
			memcpy(key, "interest", 8);
		test_input_add(in, key, len, 0);
	}
}

/* What an engine that samples keys must not overlook. */
static void
make_one_other(TestInput *in, TestRandom *rng)
{
	unsigned char key[61];
	uint32_t	other = test_below(rng, 50000);

	memset(key, 'e', sizeof(key));
	for (uint32_t i = 0; i < 50000; i++)
		test_input_add(in, key, i == other ? 61 : 60, 0);
}

/* Every length of nothing but NUL bytes, many times. */
static void
make_nul_comb(TestInput *in, TestRandom *rng)
{
	static const unsigned char key[1500];

	for (int i = 0; i < 15000; i++)
		test_input_add_apart(in, &i, sizeof(i), key, test_below(rng, sizeof(key)));
}

static void
make_long_and_short(TestInput *in, TestRandom *rng)
{
	unsigned char key[408];

	memset(key, 'q', sizeof(key));
	for (int i = 0; i < 30000; i++)
	{
		random_bytes(rng, key + 400, 8, 'a', 3);
		if (i % 2 == 0)
			test_input_add(in, key, sizeof(key), 0);
		else
			test_input_add(in, key + 400, test_below(rng, 4), 0);
	}
}

/* Families of keys that share hundreds of bytes, among keys that do not. */
static void
make_families(TestInput *in, TestRandom *rng)
{
	enum
	{
		FAMILIES = 20,
		SHARED = 300
	};
	static unsigned char family[FAMILIES][SHARED + 8];

	for (int i = 0; i < FAMILIES; i++)
		random_bytes(rng, family[i], SHARED, 0, 2);
	for (int i = 0; i < 60000; i++)
	{
		unsigned char *key = family[test_below(rng, FAMILIES)];
		uint32_t	len = test_below(rng, 8);

		random_bytes(rng, key + SHARED, len, 0, 2);
		if (test_below(rng, 3) > 0)
			test_input_add(in, key, SHARED + len, 0);
		else
			test_input_add(in, key, test_below(rng, SHARED), 0);
	}
}

/* Few symbols, most of them the same, in so many rows that a code pays. */
static void
make_uneven(TestInput *in, TestRandom *rng)
{
	unsigned char key[80];

	for (int i = 0; i < 220000; i++)
	{
		uint32_t	len = test_below(rng, 1 + test_below(rng, 80));

		for (uint32_t j = 0; j < len; j++)
			key[j] = (unsigned char) (test_below(rng, 5) == 0 ? test_below(rng, 4) : 0);
		test_input_add(in, key, len, 0);
	}
}

/* Runs of one byte, and in a few keys other bytes, which a sample may miss. */
static void
make_rare_symbols(TestInput *in, TestRandom *rng)
{
	unsigned char key[120];

	for (int i = 0; i < 220000; i++)
	{
		uint32_t	len = test_below(rng, sizeof(key));

		memset(key, 'r', sizeof(key));
		for (uint32_t j = 0; i % 1500 < 3 && j < len; j += 1 + test_below(rng, 20))
			key[j] = (unsigned char) test_below(rng, 256);
		test_input_add(in, key, len, 0);
	}
}

/*
 * Bytes of all ones, among which words of them cannot be told from what is behind
 * all; families of a few hundred rows or more that share more bytes than a sample is
 * looked at; and keys that occur from twice to thousands of times.
 */
static void
make_crowds(TestInput *in, TestRandom *rng)
{
	enum
	{
		FAMILIES = 12,
		SHARED = 400
	};
	static unsigned char family[FAMILIES][SHARED + 8];

	for (int i = 0; i < FAMILIES; i++)
		random_bytes(rng, family[i], SHARED, 'a', 2);
	for (int i = 0; i < 70000; i++)
	{
		unsigned char key[40];
		uint32_t	len = test_below(rng, sizeof(key));
		uint32_t	kind = test_below(rng, 100);

		if (kind < 30)
		{
			memset(key, 0xff, sizeof(key));
			if (len > 0 && test_below(rng, 2) == 0)
				key[test_below(rng, len)] -= (unsigned char) test_below(rng, 3);
			test_input_add(in, key, len, 0);
		}
		else if (kind < 40)
		{
			/* the first family seldom, the last one often */
			uint32_t	most = 1 + test_below(rng, 1 + test_below(rng, FAMILIES));
			uint32_t	which = FAMILIES - 1 - test_below(rng, most);

			len = test_below(rng, 8);
			random_bytes(rng, family[which] + SHARED, len, 0, 3);
			test_input_add(in, family[which], SHARED + len, 0);
		}
		else if (kind < 80)
		{
			TestRandom	choice = test_below(rng, 1 + test_below(rng, 1 + test_below(rng, 4000)));

			len = 1 + (uint32_t) choice % 37;
			random_bytes(&choice, key, len, 'a', 26);
			test_input_add(in, key, len, 0);
		}
		else
		{
			random_bytes(rng, key, len, 0, 256);
			test_input_add(in, key, len, 0);
		}
	}
}

/*
 * Keys of parts from small sets, so that many agree for a while, part after part;
 * some end within a part or, at its end, in NUL bytes.
 */
static void
make_parts(TestInput *in, TestRandom *rng)
{
	static const unsigned char lengths[] = {7, 8, 3, 14, 21, 1, 40, 5};
	unsigned char key[128];

	for (int i = 0; i < 60000; i++)
	{
		uint32_t	len = 0;

		for (size_t part = 0; part < sizeof(lengths); part++)
		{
			TestRandom	choice = part * 8 + test_below(rng, 1 + test_below(rng, 6));

			random_bytes(&choice, key + len, lengths[part], 'a', 3);
			len += lengths[part];
			if (test_below(rng, 9) == 0)
				break;
		}
		switch (test_below(rng, 6))
		{
			case 0:
				len -= test_below(rng, len);
				break;
			case 1:
				memset(key + len, 0, 3);
				len += test_below(rng, 4);
				break;
		}
		test_input_add(in, key, len, 0);
	}
}

/*
 * Keys that agree far, of few symbols, the first one mostly, and seldom of bytes
 * before, between and behind these.
 */
static void
add_few_symbols(TestInput *in, const unsigned char *symbols, uint32_t n_symbols, TestRandom *rng)
{
	unsigned char key[80];

	for (int i = 0; i < 60000; i++)
	{
		uint32_t	len = test_below(rng, 34);

		for (uint32_t k = 0; k < len; k++)
			key[k] = symbols[test_below(rng, 8) > 0 ? 0 : test_below(rng, n_symbols)];
		if (len > 0 && test_below(rng, 50) == 0)
			random_bytes(rng, key + test_below(rng, len), 1, 0, 256);
		if (test_below(rng, 40) == 0)
		{
			/* behind a first word */
			memset(key, symbols[n_symbols - 1], 30);
			len = 30 + test_below(rng, 50);
			random_bytes(rng, key + 30, len - 30, 'a', 4);
		}
		test_input_add(in, key, len, 0);
	}
}

static void
make_two_bytes(TestInput *in, TestRandom *rng)
{
	add_few_symbols(in, (const unsigned char *) "\0\1", 2, rng);
}

static void
make_three_letters(TestInput *in, TestRandom *rng)
{
	add_few_symbols(in, (const unsigned char *) "mbx", 3, rng);
}

static void
make_digits(TestInput *in, TestRandom *rng)
{
	add_few_symbols(in, (const unsigned char *) "0123456789", 10, rng);
}

static void
make_last_bytes(TestInput *in, TestRandom *rng)
{
	add_few_symbols(in, (const unsigned char *) "\377\0\376\1\375kcdefghij", 14, rng);
}

const TestGenerator test_generators[] = {
	{"no records", 65536, make_none},
	{"one record", 65536, make_one},
	{"empty keys among others", 65536, make_empty_keys},
	{"empty keys and rows only", 65536, make_all_empty},
	{"NUL bytes", 65536, make_nul},
	{"random keys", 65536, make_random},
	{"two symbols", 65536, make_two_symbols},
	{"prefixes of one text", 65536, make_prefixes},
	{"every length to 64", 65536, make_lengths},
	{"equal keys of 1000 bytes", 65536, make_all_equal},
	{"equal short keys", 1048576, make_equal_short},
	{"sorted", 1048576, make_sorted},
	{"reversed", 1048576, make_reversed},
	{"common prefix of 1000 bytes", 65536, make_long_prefix},
	{"forks at any depth", 65536, make_forks},
	{"comb", 65536, make_comb},
	{"ladder", 65536, make_ladder},
	{"keys of 8 kilobytes", 65536, make_long_keys},
	{"rows of every size", 65536, make_row_sizes},
	{"rows of the largest size", 65536, make_full_rows},
	{"flags", 65536, make_flags},
	{"paths", 262144, make_paths},
	{"one key unlike all others", 262144, make_one_other},
	{"every length of NULs", 262144, make_nul_comb},
	{"long and short keys by turns", 262144, make_long_and_short},
	{"families of keys", 262144, make_families},
	{"keys of few parts", 262144, make_parts},
	{"crowds of keys", 262144, make_crowds},
	{"uneven symbols", 1048576, make_uneven},
	{"rare symbols", 1048576, make_rare_symbols},
	{"two bytes", 1048576, make_two_bytes},
	{"three letters", 1048576, make_three_letters},
	{"digits", 1048576, make_digits},
	{"the last bytes and others", 1048576, make_last_bytes},
	{NULL, 0, NULL}
};
