/*-------------------------------------------------------------------------
 *
 * spill_code.c
 *	  Writing records in fewer bytes (spill_code.h).
 *
 * Tests: unit/plain/test_spill
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "base/string_sort.h"
#include "spill/spill_code.h"

/* The most places of a row that are copied from a source, and the fewest bytes of one. */
#define MAX_COPIES 4
#define MIN_COPY 6

/* Nothing is copied from a shorter source.  Only the first MAX_LOOK bytes of a longer one are searched. */
#define MIN_SOURCE 8
#define MAX_LOOK 2048

/* Places are searched again after this many records without them, or more. */
#define LOOK_AGAIN 16

#define LOOK_SLOTS 1024

/* The longest number is 2^31. */
#define NUMBER_BYTES 5

/* A place where a row has bytes of its source, counted from the end of the copy before. */
typedef struct Copy
{
	uint32_t	row_gap;
	uint32_t	source_gap;
} Copy;

/* A row, or a key. */
typedef struct Bytes
{
	const uint8_t *bytes;
	uint32_t	len;
} Bytes;

typedef struct Coder
{
	Bytes		row;			/* of the record before */
	Bytes		key;			/* likewise */
	uint32_t	row_len;		/* lengths as written */
	uint32_t	key_len;
	Copy		copies[MAX_COPIES];
	int			n_copies;
	int			wait;			/* records until places are searched again */
	int			next_wait;		/* twice as many if none were found */
} Coder;

static void
begin_coder(Coder *coder)
{
	static const uint8_t none[1] = {0};

	memset(coder, 0, sizeof(*coder));
	coder->row.bytes = coder->key.bytes = none;
	coder->next_wait = LOOK_AGAIN;
}

static inline uint32_t
load_4(const uint8_t *bytes)
{
	uint32_t	value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static inline uint32_t
min_len(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* The bytes of a row after the first ones. */
static inline Bytes
rest_of(Bytes row, uint32_t from)
{
	return (Bytes){row.bytes + from, row.len > from ? row.len - from : 0};
}

static inline uint32_t
shared_bytes(Bytes a, Bytes b)
{
	return gs_string_common_bytes(a.bytes, b.bytes, min_len(a.len, b.len));
}

/* The source of a row's bytes: its key, or else the row before. */
static inline Bytes
source_of(const Coder *coder, Bytes key)
{
	return key.len >= MIN_SOURCE ? key : coder->row;
}

/* ---- writing ---- */

static inline uint8_t *
put_number(uint8_t *dst, uint32_t number)
{
	for (; number >= 0x80; number >>= 7)
		*dst++ = (uint8_t) (number | 0x80);
	*dst++ = (uint8_t) number;
	return dst;
}

static inline uint8_t *
put_bytes(uint8_t *dst, const uint8_t *bytes, uint32_t n)
{
	memcpy(dst, bytes, n);
	return dst + n;
}

static inline uint32_t
look_slot(const uint8_t *bytes)
{
	return load_4(bytes) * UINT32_C(0x9e3779b1) >> 22;
}

/* Finds where a row, from `from` on, has bytes of a source. */
static void
look_for_copies(Coder *coder, Bytes row, uint32_t from, Bytes source)
{
	uint16_t	slots[LOOK_SLOTS]; /* places in the source, plus 1 */
	uint32_t	row_end = from;
	uint32_t	source_end = 0;
	uint32_t	source_len = min_len(source.len, MAX_LOOK);
	uint32_t	row_len = min_len(row.len, MAX_LOOK);

	coder->n_copies = 0;
	coder->wait = coder->next_wait;
	coder->next_wait *= 2;
	memset(slots, 0, sizeof(slots));
	for (uint32_t i = source_len - 3; i-- > 0;)
		slots[look_slot(source.bytes + i)] = (uint16_t) (i + 1);
	for (uint32_t at = from; at + MIN_COPY <= row_len && coder->n_copies < MAX_COPIES;)
	{
		uint32_t	place = slots[look_slot(row.bytes + at)];
		uint32_t	n = 0;

		if (place > source_end)
			n = gs_string_common_bytes(row.bytes + at, source.bytes + place - 1,
									 min_len(row.len - at, source.len - (place - 1)));
		if (n < MIN_COPY)
		{
			at++;
			continue;
		}
		coder->next_wait = LOOK_AGAIN;
		coder->copies[coder->n_copies++] = (Copy){at - row_end, place - 1 - source_end};
		row_end = at += n;
		source_end = place - 1 + n;
	}
}

/* Writes a row from `at` on, with copies from a source. */
static uint8_t *
put_row(Coder *coder, uint8_t *dst, Bytes row, uint32_t at, uint32_t from, Bytes source)
{
	uint32_t	row_end = from;
	uint32_t	source_end = 0;

	for (int i = 0; i < coder->n_copies; i++)
	{
		uint32_t	row_at = row_end + coder->copies[i].row_gap;
		uint32_t	source_at = source_end + coder->copies[i].source_gap;
		uint32_t	n;

		if (row_at >= row.len || source_at >= source.len)
			break;
		n = gs_string_common_bytes(row.bytes + row_at, source.bytes + source_at,
								 min_len(row.len - row_at, source.len - source_at));
		if (n == 0)
			break;
		row_end = row_at + n;
		source_end = source_at + n;
		/* the bytes shared with the row before are written already */
		if (row_at < at)
		{
			source_at += at - row_at;
			row_at = at;
		}
		if (row_end < row_at + MIN_COPY)
			continue;
		dst = put_number(dst, row_at - at);
		dst = put_bytes(dst, row.bytes + at, row_at - at);
		dst = put_number(dst, row_end - row_at);
		dst = put_number(dst, source_at);
		at = row_end;
	}
	if (at < row.len)
	{
		dst = put_number(dst, row.len - at);
		dst = put_bytes(dst, row.bytes + at, row.len - at);
	}
	return dst;
}

/* Does a row have its places for copies? */
static bool
has_copies(const Coder *coder, Bytes row, uint32_t from, Bytes source)
{
	uint32_t	row_at = from + coder->copies[0].row_gap;
	uint32_t	source_at = coder->copies[0].source_gap;

	return coder->n_copies > 0 && row_at + MIN_COPY <= row.len && source_at + MIN_COPY <= source.len &&
		memcmp(row.bytes + row_at, source.bytes + source_at, MIN_COPY) == 0;
}

/* Write a record. */
static uint8_t *
put_record(Coder *coder, uint8_t *dst, uint32_t flags, Bytes row, Bytes key)
{
	uint32_t	from = 0;
	uint32_t	shared;
	uint8_t	   *flags_at = dst++;
	Bytes		source;

	if (row.len >= sizeof(uint32_t) && row.len == load_4(row.bytes))
	{
		flags |= CODE_OWN_LENGTH;
		from = sizeof(uint32_t);
	}
	flags |= row.len == coder->row_len ? CODE_SAME_ROW_LEN : 0;
	flags |= key.len == coder->key_len ? CODE_SAME_KEY_LEN : 0;
	*flags_at = (uint8_t) flags;
	if (!(flags & CODE_SAME_ROW_LEN))
		dst = put_number(dst, row.len);
	if (!(flags & CODE_SAME_KEY_LEN))
		dst = put_number(dst, key.len);
	if (key.len > 0)
	{
		shared = shared_bytes(key, coder->key);
		dst = put_number(dst, shared);
		dst = put_bytes(dst, key.bytes + shared, key.len - shared);
	}
	if (row.len > from)
	{
		shared = shared_bytes(rest_of(row, from), rest_of(coder->row, from));
		dst = put_number(dst, shared);
		source = source_of(coder, key);
		if (source.len < MIN_SOURCE)
			coder->n_copies = 0;
		else if (!has_copies(coder, row, from, source) && coder->wait-- <= 0)
			look_for_copies(coder, row, from, source);
		dst = put_row(coder, dst, row, from + shared, from, source);
	}
	coder->row = row;
	coder->key = key;
	coder->row_len = row.len;
	coder->key_len = key.len;
	return dst;
}

size_t
gs_code_records(const char *data, const GsRecord *first, uint32_t n, uint8_t *dst)
{
	uint8_t	   *begin = dst;
	Coder		coder;

	begin_coder(&coder);
	for (uint32_t i = 0; i < n; i++)
	{
		const GsRecord *record = first - i;
		Bytes		row = {(const uint8_t *) data + record->row_off, record->row_len & GS_LENGTH_MASK};
		Bytes		key = {(const uint8_t *) data + record->key_off, record->key_len & GS_LENGTH_MASK};
		uint32_t	flags = (record->row_len & GS_ROW_EXTERNAL ? CODE_EXTERNAL : 0) |
			(record->key_len & GS_KEY_INEXACT ? CODE_INEXACT : 0);

		dst = put_record(&coder, dst, flags, row, key);
	}
	return (size_t) (dst - begin);
}

size_t
gs_code_page(const char *page, uint32_t page_bytes, uint32_t n, bool own_lengths, uint8_t *dst)
{
	uint8_t	   *begin = dst;
	uint32_t	end = page_bytes - n * (uint32_t) sizeof(uint32_t);
	Coder		coder;

	begin_coder(&coder);
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	entry = gs_page_entry(page, page_bytes, i);
		uint32_t	at = entry & ~GS_ENTRY_FLAGS;
		uint32_t	next = i + 1 < n ? gs_page_entry(page, page_bytes, i + 1) & ~GS_ENTRY_FLAGS : end;
		uint32_t	flags = (entry & GS_ENTRY_EXTERNAL ? CODE_EXTERNAL : 0) |
			(entry & GS_ENTRY_INEXACT ? CODE_INEXACT : 0) |
			(entry & GS_ENTRY_TIE ? CODE_TIE : 0);
		Bytes		row = {(const uint8_t *) page + at, next - at};

		if ((i == 0 && at != 0) || at > next || next > end)
			return 0;
		if (own_lengths && !(entry & GS_ENTRY_EXTERNAL))
		{
			/* the bytes that fill the row up are not kept */
			if (i + 1 < n && gs_round_up_8(load_4(row.bytes)) != row.len)
				return 0;
			row.len = min_len(row.len, load_4(row.bytes));
		}
		/* the entries tell only that the last row ends before them */
		else if (i + 1 == n)
			row.len = min_len(row.len, gs_max_row_bytes(page_bytes) + 8);
		dst = put_record(&coder, dst, flags, row, (Bytes){NULL, 0});
	}
	return (size_t) (dst - begin);
}

/* ---- reading ---- */

typedef struct Input
{
	const uint8_t *at;
	const uint8_t *end;
	bool		failed;
} Input;

static inline uint32_t
get_number(Input *input)
{
	uint32_t	number = 0;

	for (int shift = 0; shift < 7 * NUMBER_BYTES && input->at < input->end; shift += 7)
	{
		uint8_t		byte = *input->at++;

		number |= (uint32_t) (byte & 0x7f) << shift;
		if (byte < 0x80)
			return number;
	}
	input->failed = true;
	return 0;
}

static inline void
get_bytes(Input *input, uint8_t *dst, uint32_t n)
{
	if (n > (size_t) (input->end - input->at))
	{
		input->failed = true;
		return;
	}
	memcpy(dst, input->at, n);
	input->at += n;
}

/* Reads the number of bytes shared with what came before, and copies these bytes.  Returns the number. */
static uint32_t
get_shared(Input *input, uint8_t *dst, uint32_t len, Bytes before)
{
	uint32_t	shared = get_number(input);

	if (shared > len || shared > before.len)
		input->failed = true;
	if (input->failed)
		return len;
	memcpy(dst, before.bytes, shared);
	return shared;
}

static void
get_row(Input *input, uint8_t *row, uint32_t from, uint32_t len, Bytes before, Bytes source)
{
	uint32_t	at = from;

	at += get_shared(input, row + from, len - from, rest_of(before, from));
	while (at < len && !input->failed)
	{
		uint32_t	n = get_number(input);
		uint32_t	source_at;

		if (n > len - at)
			input->failed = true;
		if (input->failed)
			return;
		get_bytes(input, row + at, n);
		at += n;
		if (at == len)
			return;
		n = get_number(input);
		source_at = get_number(input);
		if (n > len - at || n == 0 || source_at > source.len || n > source.len - source_at)
			input->failed = true;
		if (input->failed)
			return;
		memcpy(row + at, source.bytes + source_at, n);
		at += n;
	}
}

/* Reads a record to dst, which has room bytes: the row, and the key behind it.  Sets both. */
static uint32_t
get_record(Coder *coder, Input *input, uint8_t *dst, uint32_t room, Bytes *row, Bytes *key)
{
	uint32_t	flags;
	uint32_t	from = 0;

	if (input->at == input->end)
		input->failed = true;
	flags = input->failed ? 0 : *input->at++;
	row->len = flags & CODE_SAME_ROW_LEN ? coder->row_len : get_number(input);
	key->len = flags & CODE_SAME_KEY_LEN ? coder->key_len : get_number(input);
	if (row->len > room || key->len > room - row->len ||
		((flags & CODE_OWN_LENGTH) && row->len < sizeof(uint32_t)))
		input->failed = true;
	if (input->failed)
		return 0;
	row->bytes = dst;
	key->bytes = dst + row->len;
	if (key->len > 0)
	{
		uint32_t	shared = get_shared(input, dst + row->len, key->len, coder->key);

		get_bytes(input, dst + row->len + shared, key->len - shared);
	}
	if (flags & CODE_OWN_LENGTH)
	{
		memcpy(dst, &row->len, sizeof(uint32_t));
		from = sizeof(uint32_t);
	}
	if (row->len > from && !input->failed)
		get_row(input, dst, from, row->len, coder->row, source_of(coder, *key));
	coder->row = *row;
	coder->key = *key;
	coder->row_len = row->len;
	coder->key_len = key->len;
	return flags;
}

bool
gs_decode_records(const uint8_t *src, size_t bytes, char *data, uint32_t data_bytes, uint32_t base,
				  GsRecord *first, uint32_t n)
{
	Input		input = {src, src + bytes, false};
	uint32_t	at = 0;
	Coder		coder;

	begin_coder(&coder);
	for (uint32_t i = 0; i < n; i++)
	{
		GsRecord   *record = first - i;
		Bytes		row;
		Bytes		key;
		uint32_t	flags = get_record(&coder, &input, (uint8_t *) data + at, data_bytes - at, &row, &key);
		uint32_t	end;

		if (input.failed)
			return false;
		end = at + row.len + key.len;
		record->row_off = base + at;
		record->row_len = row.len | (flags & CODE_EXTERNAL ? GS_ROW_EXTERNAL : 0);
		record->key_off = base + at + row.len;
		record->key_len = key.len | (flags & CODE_INEXACT ? GS_KEY_INEXACT : 0);
		at = gs_round_up_8(end);
		if (at > data_bytes)
			return false;
		memset(data + end, 0, at - end);
	}
	return at == data_bytes && input.at == input.end;
}

bool
gs_decode_page(const uint8_t *src, size_t bytes, char *page, uint32_t page_bytes, uint32_t n)
{
	Input		input = {src, src + bytes, false};
	uint32_t	at = 0;
	uint32_t	end;
	uint32_t   *entries = (uint32_t *) (void *) (page + page_bytes);
	Coder		coder;

	if (n > page_bytes / sizeof(uint32_t))
		return false;
	end = page_bytes - n * (uint32_t) sizeof(uint32_t);
	begin_coder(&coder);
	for (uint32_t i = 0; i < n; i++)
	{
		Bytes		row;
		Bytes		key;
		uint32_t	flags;

		if (at > end)
			return false;
		flags = get_record(&coder, &input, (uint8_t *) page + at, end - at, &row, &key);
		if (input.failed || key.len > 0)
			return false;
		*--entries = at | (flags & CODE_EXTERNAL ? GS_ENTRY_EXTERNAL : 0) |
			(flags & CODE_INEXACT ? GS_ENTRY_INEXACT : 0) | (flags & CODE_TIE ? GS_ENTRY_TIE : 0);
		for (at += row.len; at % 8 != 0 && at < end; at++)
			page[at] = 0;
	}
	return input.at == input.end;
}
