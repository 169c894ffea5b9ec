/*-------------------------------------------------------------------------
 *
 * test_spill_code.c
 *	  How records are written: what is read is what was written, in how many bytes,
 *	  and bytes that were changed.
 *
 *-------------------------------------------------------------------------
 */
#include <fcntl.h>

#include "spill/spill_code.h"
#include "test_spill.h"

#define CHUNK_BYTES 65536
#define MAX_RECORDS 1000

/* A chunk that records are put into, as device.h has it. */
typedef struct Records
{
	char	   *memory;
	uint32_t	data_bytes;
	uint32_t	n;
} Records;

static uint32_t
round_up_8(uint32_t bytes)
{
	return (bytes + 7) & ~7u;
}

static Records
no_records(void)
{
	Records		records = {allocate(CHUNK_BYTES), 0, 0};

	memset(records.memory, 0, CHUNK_BYTES);
	return records;
}

static bool
put(Records *records, const void *row, uint32_t row_len, const void *key, uint32_t key_len)
{
	uint32_t	bytes = row_len + key_len;
	GsRecord   *record = gs_chunk_record(records->memory, CHUNK_BYTES, records->n);

	if (records->n == MAX_RECORDS ||
		records->data_bytes + round_up_8(bytes) + (records->n + 1) * sizeof(GsRecord) > CHUNK_BYTES)
		return false;
	record->row_off = records->data_bytes;
	record->row_len = row_len | (records->n % 5 == 1 ? GS_ROW_EXTERNAL : 0);
	record->key_off = records->data_bytes + row_len;
	record->key_len = key_len | (records->n % 7 == 2 ? GS_KEY_INEXACT : 0);
	memcpy(records->memory + records->data_bytes, row, row_len);
	memcpy(records->memory + records->data_bytes + row_len, key, key_len);
	records->data_bytes += round_up_8(bytes);
	records->n++;
	return true;
}

/* Write records, read them, and return in how many bytes. */
static size_t
there_and_back(const Records *records)
{
	static uint8_t coded[2 * CHUNK_BYTES];
	const uint32_t base = 4096;
	char	   *memory = allocate(CHUNK_BYTES);
	size_t		bytes = gs_code_records(records->memory,
								   gs_chunk_record(records->memory, CHUNK_BYTES, 0),
								   records->n, coded);
	uint8_t	   *exact = allocate(bytes);

	CHECK(bytes <= gs_code_room(CHUNK_BYTES));
	memcpy(exact, coded, bytes);
	memset(memory, 0xee, CHUNK_BYTES);
	CHECK(gs_decode_records(exact, bytes, memory, records->data_bytes, base,
							gs_chunk_record(memory, CHUNK_BYTES, 0), records->n));
	CHECK(memcmp(memory, records->memory, records->data_bytes) == 0);
	for (uint32_t i = 0; i < records->n; i++)
	{
		const GsRecord *a = gs_chunk_record(records->memory, CHUNK_BYTES, i);
		const GsRecord *b = gs_chunk_record(memory, CHUNK_BYTES, i);

		CHECK(b->row_off == a->row_off + base && b->row_len == a->row_len &&
			  b->key_off == a->key_off + base && b->key_len == a->key_len);
	}

	/* fewer bytes, or other numbers of them */
	CHECK(!gs_decode_records(exact, bytes - 1, memory, records->data_bytes, base,
							 gs_chunk_record(memory, CHUNK_BYTES, 0), records->n));
	CHECK(!gs_decode_records(exact, bytes, memory, records->data_bytes - 8, base,
							 gs_chunk_record(memory, CHUNK_BYTES, 0), records->n));
	CHECK(!gs_decode_records(exact, bytes, memory, records->data_bytes, base,
							 gs_chunk_record(memory, CHUNK_BYTES, 0), records->n - 1));

	/* bytes that were changed are noticed, or harmless */
	for (int i = 0; i < 200; i++)
	{
		size_t		at = below((uint32_t) bytes);
		uint8_t		was = exact[at];

		exact[at] = (uint8_t) random_bits();
		(void) gs_decode_records(exact, bytes, memory, records->data_bytes, base,
								 gs_chunk_record(memory, CHUNK_BYTES, 0), records->n);
		exact[at] = was;
	}
	free(exact);
	free(memory);
	return bytes;
}

/* Records of all kinds of keys and rows, those of the fixed cases included. */
static void
test_records(void)
{
	static uint8_t row[8192];
	static uint8_t key[8192];

	begin_case("records of all kinds, coded");
	for (int round = 0; round < 400 && case_ok; round++)
	{
		Records		records = no_records();
		uint32_t	max_row = below(3) == 0 ? 8000 : below(100);
		uint32_t	max_key = below(3) == 0 ? 8192 : below(100);
		uint32_t	kind = below(5);
		uint32_t	row_len;
		uint32_t	key_len;

		do
		{
			uint32_t	of = kind == 0 ? 256 : kind == 1 ? 2
													  : 1;
			uint32_t	n;

			row_len = below(max_row + 1);
			key_len = kind == 2 ? 0 : kind == 3 ? max_key
												: below(max_key + 1);
			for (uint32_t i = 0; i < row_len; i++)
				row[i] = (uint8_t) below(of);
			for (uint32_t i = 0; i < key_len; i++)
				key[i] = (uint8_t) below(of);
			if (row_len >= sizeof(row_len) && below(4) > 0)
				memcpy(row, &row_len, sizeof(row_len));

			/* some of the key in the row, here and there */
			for (uint32_t copies = below(4); copies > 0 && row_len > 40 && key_len > 40; copies--)
			{
				n = 1 + below(30);
				memcpy(row + 4 + below(row_len - 34), key + below(key_len - 30), n);
			}
		} while (put(&records, row, row_len, key, key_len));
		if (records.n > 1 && records.data_bytes >= 8)
			(void) there_and_back(&records);
		free(records.memory);
	}
	end_case();
}

/* Rows like PostgreSQL's tuples, with a number and a text: of each record most is said once. */
static void
test_bytes(void)
{
	Records		records = no_records();
	uint32_t	rows_bytes = 0;
	size_t		bytes;

	begin_case("records that are written in few bytes");
	for (uint32_t i = 0;; i++)
	{
		char		row[100] = {0};
		char		key[100];
		uint32_t	text = 20 + i % 9;
		uint32_t	len = 16 + 4 + 1 + text + 8;

		memcpy(row, &len, sizeof(len));
		row[10] = 3;
		row[14] = 16;
		for (int b = 0; b < 4; b++)
			row[16 + b] = (char) random_bits();
		row[20] = (char) (text << 1 | 1);
		key[0] = 1;
		for (uint32_t b = 0; b < text; b++)
			key[1 + b] = row[21 + b] = (char) ('a' + below(26));
		key[1 + text] = 0;
		for (uint32_t b = 0; b < 8; b++)
			row[21 + text + b] = (char) random_bits();
		if (!put(&records, row, len, key, text + 2))
			break;
		rows_bytes += len;
	}
	bytes = there_and_back(&records);

	/* of each row its fixed header is not written, nor the text twice */
	CHECK(bytes < rows_bytes);

	/* rows and keys that say the same say it once, and those like the ones before nothing */
	records.data_bytes = records.n = 0;
	while (put(&records, "0123456789abcdef0123456789abcdef", 32, "0123456789abcdef", 16))
		;
	CHECK(there_and_back(&records) < (size_t) records.n * 5 + 100);
	free(records.memory);
	end_case();
}

/* ---- pages ---- */

/* A page as devices make them; returns its number of rows. */
static uint32_t
make_page(char *page, uint32_t max_row, bool own_lengths)
{
	uint32_t   *entries = (uint32_t *) (void *) (page + CHUNK_BYTES);
	uint32_t	at = 0;
	uint32_t	n = 0;

	for (;; n++)
	{
		uint32_t	len = (own_lengths ? 8 : 0) + below(max_row);

		if (at + round_up_8(len) + (n + 1) * sizeof(uint32_t) > CHUNK_BYTES)
			break;
		for (uint32_t i = 0; i < round_up_8(len); i++)
			page[at + i] = i < len ? (char) below(3) : 0;
		if (own_lengths)
			memcpy(page + at, &len, sizeof(len));
		entries[-(int32_t) n - 1] = at | below(8);
		at += round_up_8(len);
	}
	return n;
}

static void
test_pages_coded(void)
{
	static uint8_t coded[2 * CHUNK_BYTES];
	char	   *page = allocate(CHUNK_BYTES);
	char	   *again = allocate(CHUNK_BYTES);

	begin_case("pages, coded");
	for (int round = 0; round < 100 && case_ok; round++)
	{
		bool		own_lengths = below(2) == 0;
		uint32_t	n;
		uint32_t	last;
		size_t		bytes;
		uint8_t	   *exact;

		memset(page, round % 2 == 0 ? 0 : 0xee, CHUNK_BYTES);
		n = make_page(page, 1 + below(round % 3 == 0 ? 8000 : 100), own_lengths);
		last = gs_page_entry(page, CHUNK_BYTES, n - 1) & ~GS_ENTRY_FLAGS;
		bytes = gs_code_page(page, CHUNK_BYTES, n, own_lengths, coded);
		CHECK(bytes > 0 && bytes <= gs_code_room(CHUNK_BYTES));
		exact = allocate(bytes);
		memcpy(exact, coded, bytes);
		if (own_lengths && !(gs_page_entry(page, CHUNK_BYTES, n - 1) & GS_ENTRY_EXTERNAL))
		{
			/* what lies behind the last row is not looked at */
			uint32_t	end = last + round_up_8(*(uint32_t *) (void *) (page + last));

			memset(page + end, 0x55, CHUNK_BYTES - end - 4 * n);
			CHECK(gs_code_page(page, CHUNK_BYTES, n, true, coded) == bytes &&
				  memcmp(coded, exact, bytes) == 0);
		}
		memset(again, 0x77, CHUNK_BYTES);
		CHECK(gs_decode_page(exact, bytes, again, CHUNK_BYTES, n));
		CHECK(memcmp(again, page, last) == 0);
		if (own_lengths)
			CHECK(memcmp(again + last, page + last, *(uint32_t *) (void *) (page + last)) == 0);
		CHECK(memcmp(again + CHUNK_BYTES - 4 * n, page + CHUNK_BYTES - 4 * n, 4 * n) == 0);
		CHECK(!gs_decode_page(exact, bytes - 1, again, CHUNK_BYTES, n));
		CHECK(!gs_decode_page(exact, bytes, again, CHUNK_BYTES, n + 1));
		for (int i = 0; i < 100; i++)
		{
			exact[below((uint32_t) bytes)] = (uint8_t) random_bits();
			(void) gs_decode_page(exact, bytes, again, CHUNK_BYTES, n);
		}
		free(exact);
	}

	/* rows in another order are not for it */
	((uint32_t *) (void *) (page + CHUNK_BYTES))[-1] = 64;
	CHECK(gs_code_page(page, CHUNK_BYTES, 2, false, coded) == 0);
	free(page);
	free(again);
	end_case();
}

/* ---- files ---- */

/* A file that somebody has written to: an error, as where it cannot be read. */
static void
test_changed_file(void)
{
	Sort		sort;
	Rows		rows = {NULL, 0, 0};
	char		path[GS_SPILL_PATH_BYTES];
	char		file[GS_SPILL_PATH_BYTES + 8];
	uint8_t		bytes[64];
	bool		ties;
	int			fd;

	begin_case("a file that was changed");
	make_sort(&sort, &small_case);
	temporary_path(path);
	sort.spill = gs_spill_open(io, path, small_case.chunk_bytes);
	if (CHECK(write_run(&sort, 0) == GS_OK))
	{
		memset(bytes, 0xff, sizeof(bytes));
		snprintf(file, sizeof(file), "%s.0", path);
		fd = open(file, O_RDWR);
		CHECK(fd >= 0 && pwrite(fd, bytes, sizeof(bytes), 0) == sizeof(bytes));
		close(fd);
		CHECK(seal(&sort) == GS_OK);
		CHECK(gs_spill_plan(sort.spill, UINT64_MAX));
		CHECK(read_range(&sort, 0, &rows, &ties) == GS_INTERNAL);
		check_failure(sort.spill, GS_SPILL_READ, EIO);
	}
	close_spill(sort.spill);
	free_rows(&rows);
	free_sort(&sort);
	end_case();
}

/* No more bytes than allowed. */
static void
test_limit(void)
{
	Sort		sort;
	char		path[GS_SPILL_PATH_BYTES];
	uint64_t	bytes;

	begin_case("a limit of bytes");
	make_sort(&sort, &small_case);
	temporary_path(path);
	sort.spill = gs_spill_open(io, path, small_case.chunk_bytes);
	CHECK(write_run(&sort, 0) == GS_OK);
	bytes = gs_spill_bytes(sort.spill);
	CHECK(gs_spill_bytes_written(sort.spill) == bytes);
	gs_spill_limit(sort.spill, bytes + bytes / 2);
	CHECK(!gs_spill_has_met_limit(sort.spill));
	CHECK(write_run(&sort, 1) == GS_NO_MEMORY);
	CHECK(gs_spill_has_met_limit(sort.spill));
	CHECK(gs_spill_failure(sort.spill)->error_number == 0);
	CHECK(gs_spill_bytes(sort.spill) <= bytes + bytes / 2);
	close_spill(sort.spill);
	free_sort(&sort);
	end_case();
}

void
test_code(void)
{
	test_records();
	test_bytes();
	test_pages_coded();
	test_changed_file();
	test_limit();
}
