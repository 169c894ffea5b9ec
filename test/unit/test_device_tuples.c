/*-------------------------------------------------------------------------
 *
 * test_device_tuples.c
 *	  The conformance cases of keys that devices make from tuples.
 *
 * Random tuples of random columns are appended without keys, some among them with keys.  The keys
 * that come back must be those that src/key's encoders write.  Then tuples are damaged: the
 * device may refuse them, or make other keys, but must not read outside of them, which
 * sanitizers tell, and must remain of use.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/key/key_encode.h"
#include "key/key_icu_table.h"
#include "key/key_libc_table.h"
#include "test_device.h"

#define CHUNK_BYTES	65536
#define MAX_CHUNKS	4
#define MAX_TUPLES	(MAX_CHUNKS * (CHUNK_BYTES / 32))
#define MAX_ATTRS	20
#define MAX_VALUE	2400

/* Types of attributes: bytes (-1: varying), alignment, and how they are encoded. */
typedef struct Type
{
	int16_t		len;
	uint8_t		align;
	GsTupleKind kind;
} Type;

static const Type types[] = {
	{1, 1, GS_TUPLE_UNSIGNED}, {2, 2, GS_TUPLE_SIGNED}, {4, 4, GS_TUPLE_SIGNED},
	{8, 8, GS_TUPLE_SIGNED}, {4, 4, GS_TUPLE_UNSIGNED}, {8, 8, GS_TUPLE_UNSIGNED},
	{4, 4, GS_TUPLE_FLOAT}, {8, 8, GS_TUPLE_FLOAT}, {16, 1, GS_TUPLE_BYTES},
	{6, 4, GS_TUPLE_BYTES}, {-1, 4, GS_TUPLE_TEXT}, {-1, 4, GS_TUPLE_COLLATED}
};

/* The first so many are of fixed width. */
#define N_FIXED ((uint32_t) 10)

#define N_TYPES ((uint32_t) (sizeof(types) / sizeof(types[0])))

/* A key that is to come back. */
typedef struct Expected
{
	uint8_t    *key;
	uint32_t	len;
	uint32_t	number;
} Expected;

typedef struct Tuples
{
	GsLibcTable *table;
	GsIcuCharacters *icu;
	GsLibcScratch *scratch;
	GsTupleKeys keys;
	const Type *attrs[MAX_ATTRS];
	uint32_t	n_attrs;		/* that tuples have, or fewer */
	char		chunks[MAX_CHUNKS][CHUNK_BYTES];
	uint32_t	data_bytes[MAX_CHUNKS];
	uint32_t	n_records[MAX_CHUNKS];
	uint32_t	key_bytes[MAX_CHUNKS];
	uint32_t	n_chunks;
	Expected	expected[MAX_TUPLES];
	uint32_t	n;
} Tuples;

/* Columns of attributes, each one once at most. */
static void
make_keys(Tuples *t, TestRandom *rng)
{
	uint32_t	n_columns = 1 + test_below(rng, GS_TUPLE_COLUMNS);
	uint32_t	width = 0;
	bool		fixed = test_below(rng, 3) == 0;

	memset(&t->keys, 0, sizeof(t->keys));
	t->keys.table = test_below(rng, 2) ? &t->table->text : &t->icu->text;
	t->n_attrs = 1 + test_below(rng, MAX_ATTRS);
	if (n_columns > t->n_attrs)
		n_columns = t->n_attrs;
	for (uint32_t i = 0; i < t->n_attrs; i++)
	{
		t->attrs[i] = &types[test_below(rng, fixed ? N_FIXED : N_TYPES)];
		t->keys.attrs[i] = (GsTupleAttr){t->attrs[i]->len, t->attrs[i]->align};
	}
	for (uint32_t c = 0; c < n_columns; c++)
	{
		GsTupleColumn *column = &t->keys.columns[c];
		uint32_t	attr;
		bool		again;

		do
		{
			attr = test_below(rng, t->n_attrs);
			again = false;
			for (uint32_t i = 0; i < c; i++)
				again |= t->keys.columns[i].attr == attr;
		} while (again);
		column->attr = (uint8_t) attr;
		column->kind = (uint8_t) t->attrs[attr]->kind;
		column->null_byte = (uint8_t) test_below(rng, 2);
		column->complement = test_below(rng, 2) ? 0xff : 0;
		if (column->kind == GS_TUPLE_COLLATED && t->keys.table->kind == GS_TEXT_ICU)
			column->tail = (uint8_t) test_below(rng, c + 1 == n_columns && column->complement == 0 ? 3 : 2);
		if (column->kind == GS_TUPLE_TEXT && c + 1 == n_columns && column->complement == 0)
			column->kind = GS_TUPLE_VARLENA;
		if (attr >= t->keys.n_attrs)
			t->keys.n_attrs = (uint8_t) (attr + 1);
		width += 1 + (uint32_t) (t->attrs[attr]->len > 0 ? t->attrs[attr]->len : 1000);
	}
	t->keys.n_columns = (uint8_t) n_columns;

	/* index tuples' keys end with their TID */
	t->keys.index_tuples = n_columns < GS_TUPLE_COLUMNS && test_below(rng, 3) == 0;
	if (t->keys.index_tuples)
	{
		GsTupleColumn *column = &t->keys.columns[t->keys.n_columns++];

		*column = (GsTupleColumn){.attr = GS_TUPLE_NO_ATTR, .kind = GS_TUPLE_TID,
			.null_byte = (uint8_t) test_below(rng, 2)};
		if (column[-1].kind == GS_TUPLE_VARLENA)
			column[-1].kind = GS_TUPLE_TEXT;
		if (column[-1].tail == GS_TUPLE_LAST_TAIL)
			column[-1].tail = GS_TUPLE_TEXT_TAIL;
		width += 1 + GS_TUPLE_TID_BYTES;
	}
	if (width <= 64 && test_below(rng, 2))
		t->keys.key_width = (uint8_t) width;
}

/* A value of a fixed width, among them the awkward ones. */
static void
make_fixed(uint8_t *value, const Type *type, TestRandom *rng)
{
	static const float floats[] = {0.0f, -0.0f, 1.5f, -1.5f};
	static const double doubles[] = {0.0, -0.0, 1.5, -1.5};
	uint32_t	kind = test_below(rng, 6);

	for (int i = 0; i < type->len; i++)
		value[i] = (uint8_t) (kind == 0 ? 0 : kind == 1 ? 0xff : test_below(rng, kind == 2 ? 2 : 256));
	if (type->kind == GS_TUPLE_FLOAT && kind == 3 && type->len == 4)
		memcpy(value, &floats[test_below(rng, 4)], 4);
	if (type->kind == GS_TUPLE_FLOAT && kind == 3 && type->len == 8)
		memcpy(value, &doubles[test_below(rng, 4)], 8);
}

/* As src/key would write it. */
static void
encode_fixed(uint8_t *dst, const uint8_t *value, const Type *type)
{
	uint16_t	v2;
	uint32_t	v4;
	uint64_t	v8;
	float		f4;
	double		f8;

	if (type->kind == GS_TUPLE_BYTES || type->len == 1)
		memcpy(dst, value, (size_t) type->len);
	else if (type->kind == GS_TUPLE_FLOAT && type->len == 4)
	{
		memcpy(&f4, value, 4);
		gs_key_put_float4(dst, f4);
	}
	else if (type->kind == GS_TUPLE_FLOAT)
	{
		memcpy(&f8, value, 8);
		gs_key_put_float8(dst, f8);
	}
	else if (type->len == 2)
	{
		memcpy(&v2, value, 2);
		gs_key_put_int16(dst, (int16_t) v2);
	}
	else if (type->len == 4)
	{
		memcpy(&v4, value, 4);
		if (type->kind == GS_TUPLE_SIGNED)
			gs_key_put_int32(dst, (int32_t) v4);
		else
			gs_key_put_uint32(dst, v4);
	}
	else
	{
		memcpy(&v8, value, 8);
		if (type->kind == GS_TUPLE_SIGNED)
			gs_key_put_int64(dst, (int64_t) v8);
		else
			gs_key_put_uint64(dst, v8);
	}
}

/* Text that devices may know: of one language, or of several. */
static uint32_t
make_text(const Tuples *t, uint8_t *text, uint32_t len, TestRandom *rng)
{
	static const char *const characters[] = {
		"a", "b", "c", "l", "m", "z", "A", "L", "Z", "0", "7", "/", "-", ".", " ", "~", "$",
		"\xc4\x8d", "\xc5\x82", "\xc3\xa9", "\xd0\xb9", "\xd1\x8f", "\xce\xb1", "\xc3\x9f", "\xe2\x80\xa6",
		"\xc2\xb7", "\x01"
	};
	uint32_t	n = t->keys.table->kind == GS_TEXT_ICU ? 19 : test_below(rng, 2) ? 15 :
		(uint32_t) (sizeof(characters) / sizeof(characters[0]));
	uint32_t	used = 0;

	while (used + 3 <= len)
	{
		const char *c = characters[test_below(rng, n)];

		memcpy(text + used, c, strlen(c));
		used += (uint32_t) strlen(c);
	}
	if (gs_text_key_bound(t->keys.table, text, used) == 0)
		abort();
	return used;
}

/*
 * Write a tuple to row, and its key, as src/key would, to key.  Sets *spare to the bytes by which bounds of
 * text are longer than its keys.  Returns the tuple's bytes.
 */
static uint32_t
make_tuple(Tuples *t, uint8_t *row, uint8_t *key, uint32_t *key_len, uint32_t *spare, TestRandom *rng)
{
	static uint8_t encoded[MAX_ATTRS][MAX_VALUE];
	uint32_t	spares[MAX_ATTRS] = {0};
	uint32_t	tail_len[MAX_ATTRS] = {0};
	uint32_t	encoded_len[MAX_ATTRS];
	bool		isnull[MAX_ATTRS];
	bool		has_nulls = test_below(rng, 3) == 0;
	bool		index = t->keys.index_tuples;
	uint32_t	n_attrs = !index && test_below(rng, 4) == 0 ? test_below(rng, t->n_attrs + 1) : t->n_attrs;
	uint32_t	bitmap = index ? 8 : 15;
	uint32_t	hoff = index ? (has_nulls ? 16 : 8) : has_nulls ? (15 + (n_attrs + 7) / 8 + 7) & ~7u : 16;
	uint32_t	at = hoff;
	uint8_t		tid[GS_TUPLE_TID_BYTES];

	memset(row, 0, hoff);
	for (uint32_t i = 0; i < t->n_attrs; i++)
	{
		const Type *type = t->attrs[i];

		/* a tuple that is older than a column lacks it, which is NULL then */
		isnull[i] = i >= n_attrs || (has_nulls && test_below(rng, 3) == 0);
		if (isnull[i])
			continue;
		if (has_nulls)
			row[bitmap + i / 8] |= (uint8_t) (1 << i % 8);
		if (type->len > 0)
		{
			while (at % type->align != 0)
				row[at++] = 0;
			make_fixed(row + at, type, rng);
			encode_fixed(encoded[i], row + at, type);
			encoded_len[i] = (uint32_t) type->len;
			at += (uint32_t) type->len;
		}
		else
		{
			uint32_t	len = test_below(rng, test_below(rng, 8) == 0 ? 500 : 20);
			uint8_t		text[512];
			bool		small;

			if (type->kind == GS_TUPLE_COLLATED)
				len = make_text(t, text, len, rng);
			else
				for (uint32_t b = 0; b < len; b++)
					text[b] = (uint8_t) (1 + test_below(rng, test_below(rng, 2) ? 3 : 255));
			small = len < 126 && test_below(rng, 4) != 0;

			if (small)
				row[at++] = (uint8_t) ((len + 1) << 1 | 1);
			else
			{
				uint32_t	header = (len + 4) << 2;

				while (at % type->align != 0)
					row[at++] = 0;
				memcpy(row + at, &header, 4);
				at += 4;
			}
			memcpy(row + at, text, len);
			memcpy(encoded[i], text, len);
			encoded_len[i] = len;
			if (type->kind == GS_TUPLE_COLLATED)
			{
				size_t		written = 0;
				uint32_t	unknown;

				if (t->keys.table->kind == GS_TEXT_ICU)
					(void) gs_icu_put(t->icu, text, len, encoded[i], MAX_VALUE, &written, &unknown);
				else
					(void) gs_libc_table_put(t->table, t->scratch, text, len, encoded[i], MAX_VALUE,
											 &written);
				spares[i] = gs_text_key_bound(t->keys.table, text, len) - (uint32_t) written;
				memcpy(encoded[i] + written, text, len);
				encoded[i][written + len] = 0;
				encoded_len[i] = (uint32_t) written;
				tail_len[i] = len;
			}
			at += len;
		}
	}
	if (index)
	{
		while (at < 16 || at % 8 != 0)
			row[at++] = 0;
		for (uint32_t i = 0; i < GS_TUPLE_TID_BYTES; i++)
			row[i ^ 1] = tid[i] = (uint8_t) test_below(rng, 3);
		row[7] = has_nulls ? 0x80 : 0;
	}
	else
	{
		memcpy(row, &at, 4);
		row[10] = (uint8_t) n_attrs;
		row[12] = has_nulls;
		row[14] = (uint8_t) (hoff + 8);
	}

	*key_len = *spare = 0;
	for (uint32_t c = 0; c < t->keys.n_columns; c++)
	{
		const GsTupleColumn *column = &t->keys.columns[c];
		uint32_t	attr = column->attr;
		uint32_t	len;

		if (column->kind == GS_TUPLE_TID)
		{
			key[(*key_len)++] = column->null_byte;
			memcpy(key + *key_len, tid, sizeof(tid));
			*key_len += (uint32_t) sizeof(tid);
			continue;
		}
		len = isnull[attr] ? 0 : encoded_len[attr];

		key[(*key_len)++] = isnull[attr] ? !column->null_byte : column->null_byte;
		if (isnull[attr])
		{
			if (t->keys.key_width > 0)
				len = (uint32_t) t->attrs[attr]->len;
			memset(key + *key_len, 0, len);
		}
		else
		{
			if (column->tail != GS_TUPLE_NO_TAIL)
				len += tail_len[attr] + (column->tail == GS_TUPLE_TEXT_TAIL);
			memcpy(key + *key_len, encoded[attr], len);
			*spare += spares[attr];
			if (column->kind == GS_TUPLE_TEXT)
				key[*key_len + len++] = 0;
			if (column->complement)
				gs_key_complement(key + *key_len, len);
		}
		*key_len += len;
	}
	return at;
}

static void
make_tuples(Tuples *t, TestRandom *rng)
{
	t->n = 0;
	t->n_chunks = 1 + test_below(rng, MAX_CHUNKS);
	for (uint32_t chunk = 0; chunk < t->n_chunks; chunk++)
	{
		char	   *memory = t->chunks[chunk];
		uint32_t	used = 0;
		uint32_t	n = 0;

		t->key_bytes[chunk] = 0;
		for (;;)
		{
			uint8_t		row[MAX_ATTRS * 600];
			static uint8_t key[MAX_ATTRS * MAX_VALUE];
			uint32_t	key_len;
			uint32_t	spare;
			uint32_t	row_len = make_tuple(t, row, key, &key_len, &spare, rng);
			bool		missing = test_below(rng, 10) != 0;
			GsRecord   *record = gs_chunk_record(memory, CHUNK_BYTES, n);
			Expected   *expected = &t->expected[t->n];

			if (used + row_len + key_len + 16 + (n + 1) * sizeof(GsRecord) > CHUNK_BYTES ||
				row_len > gs_max_row_bytes(CHUNK_BYTES))
				break;
			memcpy(memory + used, row, row_len);
			*record = (GsRecord){used, row_len, 0, GS_KEY_MISSING};
			used += row_len;
			if (missing)
				t->key_bytes[chunk] += key_len + spare;
			else
			{
				memcpy(memory + used, key, key_len);
				record->key_off = used;
				record->key_len = key_len;
				used += key_len;
			}
			used = (used + 7) & ~7u;
			expected->key = malloc(key_len);
			if (expected->key == NULL)
				abort();
			memcpy(expected->key, key, key_len);
			expected->len = key_len;
			expected->number = t->n++;
			n++;
		}
		t->data_bytes[chunk] = used;
		t->n_records[chunk] = n;
	}
}

static void
free_tuples(Tuples *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		free(t->expected[i].key);
}

static int
compare_expected(const void *a, const void *b)
{
	const Expected *x = a;
	const Expected *y = b;
	int			order = memcmp(x->key, y->key, x->len < y->len ? x->len : y->len);

	if (order == 0 && x->len != y->len)
		order = x->len < y->len ? -1 : 1;
	return order != 0 ? order : x->number < y->number ? -1 : 1;
}

/* Append all chunks and perform; returns the first status other than GS_OK. */
static GsStatus
sort_tuples(TestDevice *td, const Tuples *t, GsDeviceSort **sort, GsError *error)
{
	GsSortSpec	spec = {.chunk_bytes = CHUNK_BYTES, .tuple_keys = t->keys};
	GsJob		jobs[MAX_CHUNKS + 1];
	GsStatus	status = td->ops->sort_open(td->device, &spec, sort, error);

	if (!CHECK(status == GS_OK, "sort_open: %s", error->message))
		return status;
	memset(jobs, 0, sizeof(jobs));
	for (uint32_t i = 0; i < t->n_chunks; i++)
		td->ops->append(*sort, t->chunks[i], t->data_bytes[i], t->n_records[i], t->key_bytes[i],
						&jobs[i]);
	for (uint32_t i = 0; i < t->n_chunks; i++)
	{
		test_wait(td, &jobs[i]);
		if (status != GS_OK)
			continue;
		status = gs_job_status(&jobs[i]);
		*error = jobs[i].error;
	}
	if (status != GS_OK)
		return status;
	td->ops->perform(*sort, GS_FORMAT_CHUNKS, NULL, &jobs[MAX_CHUNKS]);
	test_wait(td, &jobs[MAX_CHUNKS]);
	*error = jobs[MAX_CHUNKS].error;
	return gs_job_status(&jobs[MAX_CHUNKS]);
}

/* All keys, in order. */
static void
check_keys(TestDevice *td, Tuples *t, GsDeviceSort *sort)
{
	char	   *page = malloc(CHUNK_BYTES);
	GsSortResult result;
	uint64_t	rank = 0;

	if (page == NULL)
		abort();
	qsort(t->expected, t->n, sizeof(Expected), compare_expected);
	td->ops->result(sort, &result);
	CHECK(result.n_rows == t->n, "%llu rows of %u", (unsigned long long) result.n_rows, t->n);
	for (uint64_t i = 0; i < result.n_pages; i++)
	{
		GsJob		job = {0};
		uint32_t	n = (uint32_t) (result.page_first[i + 1] - result.page_first[i]);

		td->ops->fetch(sort, i, page, &job);
		test_wait(td, &job);
		if (!CHECK(gs_job_status(&job) == GS_OK, "fetch: %s", job.error.message))
			break;
		for (uint32_t j = 0; j < n; j++, rank++)
		{
			const Expected *expected = &t->expected[rank];
			const GsRecord *record = gs_chunk_record(page, CHUNK_BYTES, j);
			uint32_t	len = record->key_len & GS_LENGTH_MASK;

			if (!CHECK(len == expected->len && memcmp(page + record->key_off, expected->key, len) == 0,
					   "key %llu of %u, of %u bytes (%u), differs", (unsigned long long) rank, t->n,
					   len, expected->len))
			{
				free(page);
				return;
			}
		}
	}
	free(page);
}

static void
check_tuples(TestDevice *td, Tuples *t, TestRandom *rng)
{
	for (int i = 0; i < 60; i++)
	{
		GsDeviceSort *sort = NULL;
		GsError		error = {{0}};

		make_keys(t, rng);
		make_tuples(t, rng);
		if (CHECK(sort_tuples(td, t, &sort, &error) == GS_OK, "%s", error.message))
			check_keys(td, t, sort);
		if (sort)
			td->ops->sort_close(sort);
		free_tuples(t);
	}
}

/* After a refusal the caller can have the chunks that were taken back, in their order and unchanged. */
static void
check_images(TestDevice *td, const Tuples *t, GsDeviceSort *sort)
{
	char	   *dst = malloc(CHUNK_BYTES);
	uint32_t	chunk = 0;
	GsSortResult result;

	if (dst == NULL)
		abort();
	memset(&result, 0, sizeof(result));
	td->ops->result(sort, &result);
	for (uint64_t i = 0; i < result.n_images; i++, chunk++)
	{
		GsJob		job = {0};
		uint32_t	n_records = 0;

		memset(dst, 0xa5, CHUNK_BYTES);
		td->ops->fetch_image(sort, i, dst, &n_records, &job);
		test_wait(td, &job);
		if (!CHECK(gs_job_status(&job) == GS_OK, "fetch_image: %s", job.error.message))
			break;
		while (chunk < t->n_chunks && (t->n_records[chunk] != n_records ||
									   memcmp(t->chunks[chunk], dst, t->data_bytes[chunk]) != 0))
			chunk++;
		CHECK(chunk < t->n_chunks, "image %llu is no chunk", (unsigned long long) i);
	}
	free(dst);
}

static void
check_damaged(TestDevice *td, Tuples *t, TestRandom *rng)
{
	uint32_t	refused = 0;

	for (int i = 0; i < 60; i++)
	{
		GsDeviceSort *sort = NULL;
		GsError		error = {{0}};
		GsStatus	status;

		make_keys(t, rng);
		make_tuples(t, rng);
		for (uint32_t chunk = 0; chunk < t->n_chunks; chunk++)
		{
			uint32_t	n = 1 + test_below(rng, 200);

			while (n-- > 0 && t->data_bytes[chunk] > 0)
				t->chunks[chunk][test_below(rng, t->data_bytes[chunk])] = (char) test_random(rng);
			if (test_below(rng, 4) == 0)
				t->key_bytes[chunk] /= 2;
		}
		status = sort_tuples(td, t, &sort, &error);
		CHECK(status == GS_OK || status == GS_INVALID, "%s %s", gs_status_name(status),
			  error.message);
		refused += status == GS_INVALID;
		if (sort && status == GS_INVALID)
			check_images(td, t, sort);
		if (sort)
			td->ops->sort_close(sort);
		free_tuples(t);
	}
	CHECK(refused > 10, "only %u of 60 inputs were refused", refused);
}

/* Random weights of ASCII characters and of those from U+0100 to U+01FF.  Never freed, as below. */
static GsIcuCharacters *
icu_table(TestRandom *rng)
{
	static GsIcuCharacters *table = NULL;
	size_t		size = offsetof(GsIcuCharacters, pages) + sizeof(GsIcuCharacter[GS_ICU_PAGE]);

	if (table != NULL)
		return table;
	table = calloc(1, size);
	if (table == NULL)
		abort();
	table->text.kind = GS_TEXT_ICU;
	table->text.size = size;
	table->text.levels = 3;
	table->counts[0] = (GsTextCounts){0x05, 0x45, 0x21};
	table->counts[1] = (GsTextCounts){0x05, 0xc5, 0x61};
	table->page_of[1] = 1;
	for (uint32_t i = ' '; i < 128 + GS_ICU_PAGE; i++)
	{
		GsIcuCharacter *c = i < 128 ? &table->bytes[i] : &table->pages[0][i - 128];

		c->state = GS_ICU_LEARNT;
		c->n_primary = (uint8_t) test_below(rng, 4);
		for (uint32_t k = 0; k < c->n_primary; k++)
			c->primary[k] = (uint8_t) (0x10 + 0x20 * test_below(rng, 4) + k);
		c->compressed = c->n_primary > 1 && c->primary[0] < 0x40 ? c->primary[0] : 0;
		for (int k = 0; k < GS_ICU_LOWER_LEVELS; k++)
		{
			GsIcuWeights *weights = &c->lower[k];

			weights->before = (uint8_t) test_below(rng, 3);
			if (test_below(rng, 3) > 0)
				continue;
			weights->n = (uint8_t) (1 + test_below(rng, 3));
			weights->after = (uint8_t) test_below(rng, 3);
			weights->less = test_below(rng, 4) == 0;
			memset(weights->bytes, weights->less ? 3 : 0xd0, sizeof(weights->bytes));
		}
		if (i < 128 && c->n_primary > 0 && test_below(rng, 2))
		{
			memset(c->lower, 0, sizeof(c->lower));
			c->lower[0].before = c->lower[1].before = 1;
			c->state = GS_ICU_PLAIN;
		}
	}
	gs_icu_set_bounds(table);
	return table;
}

static GsLibcTable *
libc_table(void)
{
	GsLibcTable *table = NULL;
	locale_t	locale = newlocale(LC_COLLATE_MASK, "en_US.utf8", (locale_t) 0);
	const char *why = "there is no locale en_US.utf8";

	if (locale != (locale_t) 0)
	{
		table = gs_libc_table_build(locale, true, &why);
		freelocale(locale);
	}
	if (table == NULL)
	{
		printf("FAILED: %s\n", why);
		exit(1);
	}
	return table;
}

void
test_tuples_cases(TestDevice *td, uint64_t seed)
{
	TestRandom	rng = seed;
	Tuples	   *t = malloc(sizeof(Tuples));

	if (t == NULL)
		abort();
	t->table = libc_table();
	t->icu = icu_table(&rng);
	t->scratch = gs_libc_scratch_create();
	if (t->scratch == NULL)
		abort();
	if (test_begin_case("keys of tuples"))
	{
		GsDeviceInfo info = {0};

		check_tuples(td, t, &rng);
		td->ops->info(td->device, &info);
		CHECK(info.memory_used == 0, "%llu bytes used after all sorts", (unsigned long long) info.memory_used);
		test_end_case("keys of tuples");
	}
	if (test_begin_case("keys of damaged tuples"))
	{
		check_damaged(td, t, &rng);
		test_end_case("keys of damaged tuples");
	}
	free(t->scratch);
	free(t->icu);
	free(t->table);
	free(t);
}
