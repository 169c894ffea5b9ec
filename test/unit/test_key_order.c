/*-------------------------------------------------------------------------
 *
 * test_key_order.c
 *	  The order check: rows that a device has ordered by keys of libc text come
 *	  out in the text's order, or the check does not say so.
 *
 * Each case makes rows whose keys hold random texts, has the host device sort
 * them, disturbs the result in some way, lets the check run, and then reads
 * all pages: texts must ascend as strcoll() and strcmp() have it, equal rows
 * keep the order in which they were appended, and tie flags must be right.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <time.h>

#include "device/device.h"
#include "order/order_check.h"
#include "order/order_sort.h"
#include "test_key_libc.h"

#define CHUNK_BYTES		((uint32_t) 1 << 20)
#define MAX_TEXTS		2

typedef struct Row
{
	uint32_t	number;			/* as appended */
	char		text[MAX_TEXTS][TEST_TEXT_BYTES];
} Row;

typedef struct Case
{
	const char *name;
	uint32_t	n;
	uint8_t		n_texts;
	bool		desc;			/* the first text */
	uint32_t	pieces;			/* in a text, at most */
	const char *prefix;			/* of the first text */
	bool		hangul;			/* texts with an empty level 1 */
	bool		array;			/* the texts are elements of one array */
} Case;

static const GsDeviceOps *host = &gs_device_host;
static GsDeviceOps ops;			/* the host's, with functions replaced */
static GsDevice *device;
static GsStatus reorder_status; /* what reorder is to end with */
static uint64_t rows_reordered;
static locale_t locale;
static const char *locale_name;
static int	n_passed;
static int	n_failed;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint64_t n_notified;

static void
notify(void *arg)
{
	(void) arg;
	pthread_mutex_lock(&lock);
	n_notified++;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
}

static uint64_t
notified(void)
{
	uint64_t	n;

	pthread_mutex_lock(&lock);
	n = n_notified;
	pthread_mutex_unlock(&lock);
	return n;
}

static void
wait_notified(uint64_t before)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 90;
	pthread_mutex_lock(&lock);
	while (n_notified == before)
		if (pthread_cond_timedwait(&changed, &lock, &until) != 0)
		{
			printf("not ok - nothing happened for a minute and a half\n");
			exit(1);
		}
	pthread_mutex_unlock(&lock);
}

static GsStatus
wait_job(GsJob *job)
{
	for (;;)
	{
		uint64_t	before = notified();

		if (gs_job_status(job) != GS_PENDING)
			return gs_job_status(job);
		wait_notified(before);
	}
}

static void
report(const char *name, const char *what, bool ok)
{
	printf("%s - %s, %s\n", ok ? "ok" : "not ok", name, what);
	if (ok)
		n_passed++;
	else
		n_failed++;
}

static void
failing_reorder(GsDeviceSort *sort, const uint64_t *to, const uint64_t *from, uint64_t n, GsJob *job)
{
	rows_reordered += n;
	if (reorder_status == GS_OK)
	{
		host->reorder(sort, to, from, n, job);
		return;
	}
	strcpy(job->error.message, "as the test wants it");
	__atomic_store_n(&job->status, (int32_t) reorder_status, __ATOMIC_RELEASE);
	notify(NULL);
}

/* ---- sorts ---- */

static void
make_layout(const Case *c, GsKeyLayout *layout)
{
	memset(layout, 0, sizeof(*layout));
	layout->n_parts = c->array ? 1 : c->n_texts;
	layout->n_locales = 1;
	strcpy(layout->locales[0], locale_name);
	layout->parts[0].kind = GS_PART_LIBC;
	layout->parts[0].desc = c->desc;
	layout->parts[0].depth = c->array ? 1 : 0;
	layout->parts[1].kind = GS_PART_LIBC;
}

static void
make_row(const Case *c, Row *row, uint32_t number)
{
	memset(row, 0, sizeof(*row));
	row->number = number;
	for (int i = 0; i < c->n_texts; i++)
	{
		char	   *text = row->text[i];

		if (c->hangul)
		{
			/* no two the same, as reverse() must not turn equal ones round */
			uint32_t	bits = number * UINT32_C(0x9e3779b1);

			for (uint32_t j = 0; j < 4; j++, bits <<= 8)
			{
				text[3 * j] = (char) 0xea;
				text[3 * j + 1] = (char) (0xb0 + (bits >> 28));
				text[3 * j + 2] = (char) (0x80 + (bits >> 24 & 15));
			}
		}
		else
			test_make_text(text, c->pieces, i == 0 ? TEST_N_PIECES : 12);
		if (i == 0 && c->prefix != NULL)
		{
			char		whole[2 * TEST_TEXT_BYTES];

			snprintf(whole, sizeof(whole), "%s%s", c->prefix, text);
			if (strlen(whole) < TEST_TEXT_BYTES)
				strcpy(text, whole);
		}
	}
}

/* Returns its bytes. */
static uint32_t
put_key(const Case *c, const Row *row, uint8_t *key)
{
	uint32_t	len = 0;

	if (!c->array)
	{
		for (int i = 0; i < c->n_texts; i++)
			len += test_put_libc(key + len, locale, row->text[i], i == 0 && c->desc, false);
		return len;
	}
	key[len++] = gs_key_null_byte(false, false);
	for (int i = 0; i < c->n_texts; i++)
		len += test_put_element(key + len, locale, row->text[i]);
	len += test_put_array_end(key + len, 1, c->n_texts, 1);
	if (c->desc)
		gs_key_complement(key + 1, len - 1);
	return len;
}

static bool
append(GsDeviceSort *sort, const char *chunk, uint32_t used, uint32_t n)
{
	GsJob		job = {0};

	host->append(sort, chunk, used, n, 0, &job);
	return wait_job(&job) == GS_OK;
}

/* Open a sort of the case's rows and perform it. */
static GsDeviceSort *
make_sort(const Case *c, bool inexact)
{
	GsSortSpec	spec = {.chunk_bytes = CHUNK_BYTES};
	GsDeviceSort *sort = NULL;
	GsError		error;
	GsJob		job = {0};
	char	   *chunk = aligned_alloc(4096, CHUNK_BYTES);
	uint32_t	used = 0;
	uint32_t	n = 0;
	bool		ok = host->sort_open(device, &spec, &sort, &error) == GS_OK;

	/* the same rows whatever was tested before */
	test_random_state = UINT64_C(0x9e3779b97f4a7c15);
	for (uint32_t i = 0; i < c->n && ok; i++)
	{
		Row			row;
		uint8_t		key[MAX_TEXTS * TEST_KEY_BYTES];
		uint32_t	key_len;
		GsRecord   *record;

		make_row(c, &row, i);
		key_len = put_key(c, &row, key);
		if (used + sizeof(row) + key_len + 8 + (n + 1) * sizeof(GsRecord) > CHUNK_BYTES)
		{
			ok &= append(sort, chunk, used, n);
			used = n = 0;
		}
		record = gs_chunk_record(chunk, CHUNK_BYTES, n++);
		record->row_off = used;
		record->row_len = sizeof(row);
		record->key_off = used + sizeof(row);
		record->key_len = key_len | (inexact && i == c->n / 2 ? GS_KEY_INEXACT : 0);
		memcpy(chunk + used, &row, sizeof(row));
		memcpy(chunk + used + sizeof(row), key, key_len);
		used = (used + (uint32_t) sizeof(row) + key_len + 7) & ~UINT32_C(7);
	}
	ok = ok && (n == 0 || append(sort, chunk, used, n));
	host->perform(sort, GS_FORMAT_ROWS, NULL, &job);
	ok &= wait_job(&job) == GS_OK;
	free(chunk);
	if (!ok)
	{
		printf("not ok - could not sort on the host device: %s\n", job.error.message);
		exit(1);
	}
	return sort;
}

static int
compare_rows(const Case *c, const Row *a, const Row *b)
{
	for (int i = 0; i < c->n_texts; i++)
	{
		int			order = test_compare_texts(locale, a->text[i], b->text[i]);

		if (order != 0)
			return c->desc && (i == 0 || c->array) ? -order : order;
	}
	return 0;
}

/* Read all pages: is every row there, in its place? */
static bool
is_in_order(const Case *c, GsDeviceSort *sort)
{
	GsSortResult result;
	char	   *page = aligned_alloc(4096, CHUNK_BYTES);
	bool	   *seen = calloc(c->n + 1, sizeof(bool));
	Row			previous;
	bool		ok = true;

	host->result(sort, &result);
	ok &= result.n_rows == c->n;
	for (uint64_t p = 0; p < result.n_pages && ok; p++)
	{
		GsJob		job = {0};
		uint64_t	first = result.page_first[p];

		host->fetch(sort, p, page, &job);
		ok &= wait_job(&job) == GS_OK;
		for (uint64_t i = first; i < result.page_first[p + 1] && ok; i++)
		{
			uint32_t	entry = gs_page_entry(page, CHUNK_BYTES, (uint32_t) (i - first));
			bool		tie = (entry & GS_ENTRY_TIE) != 0;
			Row			row;

			memcpy(&row, page + (entry & ~GS_ENTRY_FLAGS), sizeof(row));
			ok &= row.number < c->n && !seen[row.number];
			if (ok)
				seen[row.number] = true;
			if (i > 0)
			{
				int			order = compare_rows(c, &previous, &row);

				ok &= order < 0 || (order == 0 && previous.number < row.number);
				ok &= tie == (order == 0);
			}
			previous = row;
		}
	}
	free(seen);
	free(page);
	return ok;
}

static void
run_checks(GsOrderCheck **checks, int n, GsOrderOutcome *outcomes)
{
	for (;;)
	{
		uint64_t	before = notified();
		bool		pending = false;

		while (gs_order_check_work())
			;
		for (int i = 0; i < n; i++)
		{
			gs_order_check_outcome(checks[i], &outcomes[i]);
			pending |= outcomes[i].verdict == GS_ORDER_PENDING;
		}
		if (!pending)
			break;
		wait_notified(before);
	}
	for (int i = 0; i < n; i++)
		gs_order_check_end(checks[i]);
}

/* ---- cases ---- */

typedef enum Disturbance
{
	NOTHING,
	PLANT,
	PLANT_BORDER,
	REVERSE,
	INEXACT,
	NO_LOCALE,
	NO_MEMORY,
	LOST,
	CANCEL
} Disturbance;

/* Turn the whole sort round; all its keys are one run. */
static void
reverse(const Case *c, GsDeviceSort *sort)
{
	uint64_t   *to = malloc(c->n * sizeof(uint64_t));
	uint64_t   *from = malloc(c->n * sizeof(uint64_t));
	GsJob		job = {0};

	for (uint64_t i = 0; i < c->n; i++)
	{
		to[i] = i;
		from[i] = c->n - 1 - i;
	}
	host->reorder(sort, to, from, c->n, &job);
	(void) wait_job(&job);
	free(to);
	free(from);
}

static void
test_case(const Case *c, Disturbance disturbance, GsVerdict wanted, bool moves)
{
	GsDeviceSort *sort = make_sort(c, disturbance == INEXACT);
	GsKeyLayout layout;
	GsOrderCheck *check;
	GsOrderOutcome outcome;
	char		name[128];

	make_layout(c, &layout);
	rows_reordered = 0;
	reorder_status = GS_OK;
	if (disturbance == REVERSE)
		reverse(c, sort);
	if (disturbance == NO_LOCALE)
		strcpy(layout.locales[0], "xx_XX.UTF-8");
	if (disturbance == NO_MEMORY)
		reorder_status = GS_NO_MEMORY;
	if (disturbance == LOST)
		reorder_status = GS_DEVICE_LOST;

	check = gs_order_check_begin(device, sort, &layout, NULL);
	if (disturbance == PLANT || disturbance == PLANT_BORDER)
		gs_order_check_plant(check, disturbance == PLANT_BORDER);
	if (disturbance == CANCEL)
	{
		for (int i = 0; i < 3; i++)
		{
			uint64_t	before = notified();

			if (!gs_order_check_work())
				wait_notified(before);
		}
		gs_order_check_cancel(check);
		host->cancel(sort);
	}
	run_checks(&check, 1, &outcome);
	if (outcome.verdict != wanted || outcome.verdict == GS_ORDER_PROVEN)
		snprintf(name, sizeof(name), "verdict %d (%.60s), %u moved, %.0f ms", (int) outcome.verdict,
				 outcome.reason.message, (unsigned) outcome.rows_moved, outcome.ms);
	else
		snprintf(name, sizeof(name), "%.100s", outcome.reason.message);
	report(c->name, name, outcome.verdict == wanted);
	if (outcome.verdict == GS_ORDER_PROVEN)
	{
		report(c->name, "in order", is_in_order(c, sort));
		report(c->name, "moved what was reported",
			   outcome.rows_moved == rows_reordered && (rows_reordered > 0) == moves);
	}
	host->sort_close(sort);
}

/* Several at once, so that they share the buffers and wait for one another. */
static void
test_together(const Case *cases, int n)
{
	GsDeviceSort *sorts[8];
	GsOrderCheck *checks[8];
	GsOrderOutcome outcomes[8];
	bool		ok = true;

	reorder_status = GS_OK;
	for (int i = 0; i < n; i++)
	{
		sorts[i] = make_sort(&cases[i], false);
		if (cases[i].hangul)
			reverse(&cases[i], sorts[i]);
	}
	for (int i = 0; i < n; i++)
	{
		GsKeyLayout layout;

		make_layout(&cases[i], &layout);
		checks[i] = gs_order_check_begin(device, sorts[i], &layout, NULL);
	}
	run_checks(checks, n, outcomes);
	for (int i = 0; i < n; i++)
	{
		ok &= outcomes[i].verdict == GS_ORDER_PROVEN && is_in_order(&cases[i], sorts[i]);
		host->sort_close(sorts[i]);
	}
	report("together", "all in order", ok);
}

/* An entry of the sort's keys, malloc'd. */
static uint8_t *
fetch_entry(GsDeviceSort *sort, uint64_t rank)
{
	size_t		bytes = 4 + GS_KEY_CHECK_TEXT_BYTES;
	uint8_t    *entry = malloc(bytes);
	uint64_t	n_keys;
	GsJob		job = {0};

	host->fetch_keys(sort, rank, entry, bytes, &n_keys, &job);
	(void) wait_job(&job);
	return entry;
}

/* A range without rows is in order, and has no last key. */
static void
test_empty_range(const Case *c)
{
	GsDeviceSort *sort = make_sort(c, false);
	GsOrderRange range = {"before", 6};
	GsOrderOutcome outcome;
	GsOrderCheck *check;
	GsKeyLayout layout;
	uint32_t	len;

	make_layout(c, &layout);
	check = gs_order_check_begin(device, sort, &layout, &range);
	gs_order_check_outcome(check, &outcome);
	report(c->name, "range", outcome.verdict == GS_ORDER_PROVEN && gs_order_check_last(check, &len) == NULL);
	gs_order_check_end(check);
	host->sort_close(sort);
}

/* One range of a larger sort must begin after the last key of the one before. */
static void
test_range(const Case *c)
{
	GsDeviceSort *sort = make_sort(c, false);
	GsKeyLayout layout;
	GsOrderCheck *check;
	GsOrderOutcome outcome;
	uint8_t    *keys[2];		/* the first one, and the last one */
	bool		same;

	make_layout(c, &layout);
	reorder_status = GS_OK;
	check = gs_order_check_begin(device, sort, &layout, NULL);
	run_checks(&check, 1, &outcome);
	keys[0] = fetch_entry(sort, 0);
	keys[1] = fetch_entry(sort, c->n - 1);
	same = gs_entry_len(keys[0]) == gs_entry_len(keys[1]) &&
		memcmp(keys[0], keys[1], gs_entry_bytes(keys[0])) == 0;
	for (int before = 0; before < 3; before++)
	{
		/* 0: none, 1: the first key, 2: the last one */
		GsOrderRange range = {0};
		bool		wanted = before != 2 || same;
		bool		right;
		uint32_t	len;
		char		name[64];

		if (before > 0)
		{
			range.before = gs_entry_key(keys[before - 1]);
			range.before_len = gs_entry_len(keys[before - 1]);
		}
		check = gs_order_check_begin(device, sort, &layout, &range);
		while (gs_order_check_outcome(check, &outcome), outcome.verdict == GS_ORDER_PENDING)
		{
			uint64_t	seen = notified();

			if (!gs_order_check_work())
				wait_notified(seen);
		}
		right = outcome.verdict == (wanted ? GS_ORDER_PROVEN : GS_ORDER_NOT_PROVEN);
		if (outcome.verdict == GS_ORDER_PROVEN)
		{
			const void *last = gs_order_check_last(check, &len);

			right &= len == gs_entry_len(keys[1]) && memcmp(last, gs_entry_key(keys[1]), len) == 0;
		}
		gs_order_check_end(check);
		snprintf(name, sizeof(name), "range behind key %d", before);
		report(c->name, name, right);
	}
	free(keys[0]);
	free(keys[1]);
	host->sort_close(sort);
}

/* The device is closed while a check is under way. */
static void
test_end(const Case *c)
{
	GsDeviceSort *sort = make_sort(c, false);
	GsKeyLayout layout;

	make_layout(c, &layout);
	(void) gs_order_check_begin(device, sort, &layout, NULL);
	(void) gs_order_check_work();
	gs_order_check_stop();
	host->close(device);
	gs_order_check_free();
	report("end", "in the midst of a check", true);
}

int
main(void)
{
	/* name, rows, texts, desc, pieces, prefix, hangul, array */
	const Case	empty = {"no rows", 0, 1, false, 3, NULL, false, false};
	const Case	one = {"one row", 1, 1, false, 3, NULL, false, false};
	const Case	two = {"two rows", 2, 1, false, 3, NULL, false, false};
	const Case	small = {"small runs", 60000, 1, false, 6, NULL, false, false};
	const Case	desc = {"descending", 60000, 1, true, 6, NULL, false, false};
	const Case	dense = {"few texts", 50000, 1, false, 2, NULL, false, false};
	const Case	texts = {"two texts", 60000, 2, true, 3, NULL, false, false};
	const Case	same = {"one level 1, two texts", 40000, 2, false, 1, "same", false, false};
	const Case	hangul = {"one large run", 12000, 1, false, 0, NULL, true, false};
	const Case	hangul_desc = {"one large run, descending", 6000, 1, true, 0, NULL, true, false};
	const Case	array = {"array", 60000, 2, false, 3, NULL, false, true};
	const Case	array_desc = {"array, descending", 60000, 2, true, 3, NULL, false, true};
	const Case	array_same = {"array, one level 1 of the first", 40000, 2, false, 1, "same", false, true};
	const Case	array_hangul = {"array, one large run", 3000, 2, true, 0, NULL, true, true};
	const Case	together[] = {small, hangul_desc, texts, dense, array_hangul, two, array};
	GsDeviceConfig config = {0};
	GsError		error = {{0}};

	config.memory_limit = (uint64_t) 2 << 30;
	config.threads = 2;
	config.notify = notify;
	if (host->open(&config, &device, &error) != GS_OK)
	{
		printf("not ok - no host device: %s\n", error.message);
		return 1;
	}
	ops = *host;
	ops.reorder = failing_reorder;
	locale = test_open_locale(&locale_name);
	gs_order_check_init(&ops, notify);

	test_case(&empty, NOTHING, GS_ORDER_PROVEN, false);
	test_case(&one, NOTHING, GS_ORDER_PROVEN, false);
	test_case(&two, NOTHING, GS_ORDER_PROVEN, false);
	test_case(&small, NOTHING, GS_ORDER_PROVEN, true);
	test_case(&desc, NOTHING, GS_ORDER_PROVEN, true);
	test_case(&dense, NOTHING, GS_ORDER_PROVEN, true);
	test_case(&texts, NOTHING, GS_ORDER_PROVEN, true);
	test_case(&same, NOTHING, GS_ORDER_PROVEN, true);
	test_case(&hangul, NOTHING, GS_ORDER_PROVEN, false);
	test_case(&hangul, REVERSE, GS_ORDER_PROVEN, true);
	test_case(&hangul_desc, REVERSE, GS_ORDER_PROVEN, true);
	test_case(&array, NOTHING, GS_ORDER_PROVEN, true);
	test_case(&array_desc, NOTHING, GS_ORDER_PROVEN, true);
	test_case(&array_same, NOTHING, GS_ORDER_PROVEN, true);
	test_case(&array_hangul, REVERSE, GS_ORDER_PROVEN, true);
	test_case(&dense, PLANT, GS_ORDER_PROVEN, true);
	test_case(&array, PLANT, GS_ORDER_PROVEN, true);
	test_case(&two, PLANT_BORDER, GS_ORDER_NOT_PROVEN, true);
	test_case(&small, PLANT_BORDER, GS_ORDER_NOT_PROVEN, true);
	test_case(&texts, PLANT_BORDER, GS_ORDER_NOT_PROVEN, true);
	test_case(&array_desc, PLANT_BORDER, GS_ORDER_NOT_PROVEN, true);
	test_case(&small, INEXACT, GS_ORDER_PROVEN, true);
	test_case(&small, NO_LOCALE, GS_ORDER_NOT_PROVEN, true);
	test_case(&dense, NO_MEMORY, GS_ORDER_NOT_PROVEN, true);
	test_case(&dense, LOST, GS_ORDER_DEVICE_LOST, true);
	test_case(&hangul, CANCEL, GS_ORDER_NOT_PROVEN, true);
	test_empty_range(&empty);
	test_range(&one);
	test_range(&two);
	test_range(&small);
	test_range(&hangul_desc);
	test_together(together, 7);
	test_end(&hangul);

	freelocale(locale);
	printf("%d passed, %d failed\n", n_passed, n_failed);
	return n_failed == 0 ? 0 : 1;
}
