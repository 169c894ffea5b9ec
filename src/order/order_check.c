/*-------------------------------------------------------------------------
 *
 * order_check.c
 *	  Proving, and repairing, the order of sorts whose keys only guess it.
 *
 * A check passes through these phases.  Each starts jobs of the device or tasks
 * of the thread pool, and, when called again, looks which of them have ended:
 *
 *	  SCAN		The sort is cut into a few stretches, which are read side by
 *				side, buffer by buffer.  A buffer begins with the last key of
 *				the one before it, so that every pair of neighbours is in
 *				some buffer.  Threads check and repair the buffers
 *				(order_scan.c).
 *	  BOUND		Runs that reached beyond their buffer: where they end is
 *				found by probing keys, at doubling distances and then by
 *				halving, for the bytes that the run's keys begin with.
 *	  LOAD		All keys of such a run are read into memory, and ...
 *	  SORT		... sorted there; then the next run is loaded
 *				(order_repair.c).
 *	  RESCAN	Moved rows are scanned again, with the neighbours on both
 *				sides; now every inversion is fatal.
 *	  BORDERS	The first key of a range is compared with the last one of the
 *				range before (order_borders.c).
 *	  MOVE		Comes in between: rows are moved on the device.  Never while
 *				keys are fetched; and moves of runs found in SCAN are done
 *				before open runs are loaded, since an open run may contain
 *				them.
 *
 * Memory
 *	  Buffers are shared by all checks; each has a right to its part of them,
 *	  and to one at least.  Moves are carried out when MAX_MOVES have come
 *	  together.  Loading takes more memory, so one check at a time loads one run
 *	  at a time, and no run beyond MAX_RUN_KEYS and MAX_RUN_BYTES.
 *	  Only the list of what is to be scanned again grows with the sort, by
 *	  16 bytes for some hundred rows in the worst case.
 *
 * Threads
 *	  A buffer in BUFFER_PINNING or BUFFER_SCANNING and a check in PHASE_SORT belong to a thread
 *	  of the pool until it sets the state that says otherwise; all else is the
 *	  caller's thread's.
 *
 * Calls order_repair.c, order_borders.c, order_steps.c and order_scan.c, and none of them calls
 * it (order_private.h).
 *
 * Tests: unit/plain/test_key_order, tap/order_check
 *
 *-------------------------------------------------------------------------
 */
#ifdef POSTGRES_H
#error "order_check.c is plain C and must not see postgres.h"
#endif

#include <stdlib.h>

#include "device/host_machine.h"
#include "order/order_private.h"

#define MAX_THREADS		16
#define BUFFER_BYTES	((size_t) 4 << 20)

/* Stretches that a sort is cut into, and rows in each of them at least. */
#define N_STRETCHES		8
#define STRETCH_ROWS	16384

/* A job of the device has failed. */
static void
note_trouble(GsOrderCheck *check, GsStatus status, const GsError *error)
{
	gs_order_give_up(check, error->message[0] != '\0' ? error->message : gs_status_name(status));
	if (status == GS_DEVICE_LOST)
	{
		check->outcome.verdict = GS_ORDER_DEVICE_LOST;
		check->outcome.reason = *error;
	}
}

/* Nothing of the check is under way any more: give what it holds back. */
static void
finish(GsOrderCheck *check)
{
	check->phase = PHASE_DONE;
	if (!check->giving_up)
		check->outcome.verdict = GS_ORDER_PROVEN;
	else if (check->outcome.verdict != GS_ORDER_DEVICE_LOST)
		check->outcome.verdict = GS_ORDER_NOT_PROVEN;
	check->outcome.ms = gs_host_now_ms() - check->began_ms;
	if (gs_order_checker.repairing == check)
		gs_order_checker.repairing = NULL;
	gs_order_free_blocks(check);
	gs_ranges_free(&check->stretches);
	gs_ranges_free(&check->moved);
	gs_moves_free(&check->moves);
	gs_open_runs_free(&check->open);
}

static void
moved(GsOrderCheck *check)
{
	check->outcome.rows_moved += check->moves.n;
	gs_moves_free(&check->moves);
	check->phase = check->after_move;
}

/* ---- scanning ---- */

static void
run_scan(GsHostTask *task)
{
	Buffer	   *buffer = (Buffer *) task;

	gs_order_scan(&buffer->scan);
	__atomic_store_n(&buffer->state, BUFFER_SCANNED, __ATOMIC_RELEASE);
	gs_order_checker.notify(NULL);
}

/* A copy to pinned memory is faster, and pinning takes long. */
static void
run_pin(GsHostTask *task)
{
	Buffer	   *buffer = (Buffer *) task;
	GsError		error;

	(void) gs_order_checker.ops->pin(buffer->check->device, buffer->memory, BUFFER_BYTES, &error);
	__atomic_store_n(&buffer->state, BUFFER_PINNED, __ATOMIC_RELEASE);
	gs_order_checker.notify(NULL);
}

static void
submit(Buffer *buffer, BufferState state, void (*run) (GsHostTask *task))
{
	buffer->task.run = run;
	__atomic_store_n(&buffer->state, state, __ATOMIC_RELAXED);
	gs_host_pool_submit(gs_order_checker.pool, &buffer->task);
}

/* A buffer for the check; NULL where it has to wait for one. */
static Buffer *
take_buffer(GsOrderCheck *check)
{
	int			share = N_BUFFERS / gs_order_checker.n_checks;

	if (check->n_buffers >= (share > 1 ? share : 1))
		return NULL;
	for (int i = 0; i < N_BUFFERS; i++)
	{
		Buffer	   *buffer = &gs_order_checker.buffers[i];
		bool		is_new = buffer->memory == NULL;

		if (__atomic_load_n(&buffer->state, __ATOMIC_RELAXED) != BUFFER_FREE)
			continue;
		if (is_new && (buffer->memory = malloc(BUFFER_BYTES)) == NULL)
		{
			/* the buffers that there are will do */
			if (gs_order_checker.buffers[0].memory == NULL)
				gs_order_give_up(check, "out of memory");
			return NULL;
		}
		buffer->check = check;
		check->n_buffers++;
		if (!is_new)
			return buffer;
		submit(buffer, BUFFER_PINNING, run_pin);
		return NULL;
	}
	return NULL;
}

static void
return_buffer(Buffer *buffer)
{
	buffer->check->n_buffers--;
	buffer->check = NULL;
	__atomic_store_n(&buffer->state, BUFFER_FREE, __ATOMIC_RELAXED);
}

static void
fetch_stretch(GsOrderCheck *check, Buffer *buffer)
{
	buffer->range = check->stretches.items[--check->stretches.n];
	buffer->n_keys = 0;
	gs_job_begin(&buffer->job);
	__atomic_store_n(&buffer->state, BUFFER_FETCHING, __ATOMIC_RELAXED);
	gs_order_checker.ops->fetch_keys(check->sort, buffer->range.first, buffer->memory,
							gs_order_fetch_bytes(check, buffer->range.last - buffer->range.first + 1),
							&buffer->n_keys, &buffer->job);
}

/* Keys are here: see that the rest of the stretch follows, have them checked. */
static void
buffer_fetched(GsOrderCheck *check, Buffer *buffer)
{
	GsStatus	status = gs_job_status(&buffer->job);
	const GsRange *range = &buffer->range;
	uint64_t	n = range->last - range->first + 1;

	if (status != GS_OK)
		note_trouble(check, status, &buffer->job.error);
	else if (buffer->n_keys < 2)
		gs_order_give_up(check, "the device returned too few keys");
	else if (buffer->n_keys < n)
	{
		n = buffer->n_keys;
		if (!gs_ranges_push(&check->stretches, range->first + n - 1, range->last))
			gs_order_give_up(check, "out of memory");
	}
	if (check->giving_up)
	{
		return_buffer(buffer);
		return;
	}
	memset(&buffer->scan, 0, sizeof(buffer->scan));
	buffer->scan.judge = &check->judge;
	buffer->scan.pool = gs_order_checker.pool;
	buffer->scan.memory = buffer->memory;
	buffer->scan.first = range->first;
	buffer->scan.n = (uint32_t) n;
	buffer->scan.n_rows = check->n_rows;
	buffer->scan.repair = check->phase == PHASE_SCAN;
	submit(buffer, BUFFER_SCANNING, run_scan);
}

static bool
keep_scan(GsOrderCheck *check, GsOrderScan *scan)
{
	if (!gs_moves_append(&check->moves, &scan->moves))
		return false;
	for (uint64_t i = 0; i < scan->moved.n; i++)
		if (!gs_ranges_push(&check->moved, scan->moved.items[i].first, scan->moved.items[i].last))
			return false;
	for (uint64_t i = 0; i < scan->open.n; i++)
	{
		if (!gs_open_runs_add(&check->open, &scan->open.items[i]))
			return false;
		scan->open.items[i].prefix = NULL;
	}
	return true;
}

static void
buffer_scanned(GsOrderCheck *check, Buffer *buffer)
{
	if (buffer->scan.failed)
		gs_order_give_up(check, check->phase == PHASE_SCAN ?
				"neighbouring rows that cannot be repaired are out of order" :
				"rows are out of order after their repair");
	else if (!keep_scan(check, &buffer->scan))
		gs_order_give_up(check, "out of memory");
	gs_order_scan_free(&buffer->scan);
	return_buffer(buffer);
}

/* Phases SCAN and RESCAN; true if anything has happened. */
static bool
look_at_buffers(GsOrderCheck *check)
{
	bool		any = false;

	for (int i = 0; i < N_BUFFERS; i++)
	{
		Buffer	   *buffer = &gs_order_checker.buffers[i];

		if (buffer->check != check)
			continue;
		switch ((BufferState) __atomic_load_n(&buffer->state, __ATOMIC_ACQUIRE))
		{
			case BUFFER_FETCHING:
				if (gs_job_status(&buffer->job) == GS_PENDING)
					break;
				buffer_fetched(check, buffer);
				any = true;
				break;
			case BUFFER_SCANNED:
				buffer_scanned(check, buffer);
				any = true;
				break;
			case BUFFER_PINNED:
				return_buffer(buffer);
				any = true;
				break;
			case BUFFER_FREE:
			case BUFFER_PINNING:
			case BUFFER_SCANNING:
				break;
		}
	}
	return any;
}

static bool
work_scan(GsOrderCheck *check)
{
	bool		any = look_at_buffers(check);
	Buffer	   *buffer;

	while (!check->giving_up && check->stretches.n > 0 && check->moves.n < MAX_MOVES &&
		   (buffer = take_buffer(check)) != NULL)
	{
		fetch_stretch(check, buffer);
		any = true;
	}
	if (check->giving_up || check->n_buffers > 0)
		return any;

	if (check->moves.n >= MAX_MOVES)
		gs_order_move_then(check, check->phase);
	else if (check->stretches.n > 0)
		return any;				/* until other checks return their buffers */
	else if (check->phase == PHASE_RESCAN)
		check->phase = PHASE_BORDERS;
	else if (check->open.n > 0)
		gs_order_move_then(check, PHASE_BOUND);
	else if (check->moved.n > 0)
		return gs_order_begin_rescan(check);
	else
		check->phase = PHASE_BORDERS;
	return true;
}

/* ---- planted faults ---- */

#ifdef GPUSORT_FAULTS

void
gs_order_check_plant(GsOrderCheck *check, bool border)
{
	if (check->phase == PHASE_SCAN)
	{
		check->phase = PHASE_PLANT;
		check->plant_border = border;
	}
}

/* Swap the first two neighbours that are, or are not, in one run. */
static bool
work_plant(GsOrderCheck *check)
{
	const uint8_t *entry;

	if (check->blocks == NULL)
	{
		if (gs_order_make_block(check, BUFFER_BYTES))
			gs_order_fetch(check, 0, check->blocks->memory, BUFFER_BYTES);
		return true;
	}
	entry = check->blocks->memory;
	for (uint64_t i = 1; i < check->n_keys; i++)
	{
		const uint8_t *before = entry;
		uint32_t	len = gs_entry_len(before);

		entry += gs_entry_bytes(before);
		if (len == gs_entry_len(entry) &&
			memcmp(gs_entry_key(before), gs_entry_key(entry), len) == 0)
			continue;
		if ((gs_key_check_run_prefix(&check->judge.layout, gs_entry_key(before), len,
									 gs_entry_key(entry), gs_entry_len(entry)) == 0) ==
			check->plant_border)
		{
			if (!gs_moves_add(&check->moves, i - 1, i) || !gs_moves_add(&check->moves, i, i - 1))
				gs_order_give_up(check, "out of memory");
			break;
		}
	}
	gs_order_free_blocks(check);
	if (!check->giving_up)
		gs_order_move_then(check, PHASE_SCAN);
	return true;
}

#endif

/* ---- checks ---- */

void
gs_order_check_init(const GsDeviceOps *ops, void (*notify) (void *arg))
{
	memset(&gs_order_checker, 0, sizeof(gs_order_checker));
	gs_order_checker.ops = ops;
	gs_order_checker.notify = notify;
}

static bool
open_pool(void)
{
	int			cores = gs_host_cores();

	if (gs_order_checker.pool == NULL)
		gs_order_checker.pool = gs_host_pool_open(cores < MAX_THREADS ? cores : MAX_THREADS);
	return gs_order_checker.pool != NULL;
}

static bool
open_locales(GsOrderJudge *judge)
{
	for (int i = 0; i < judge->layout.n_locales; i++)
	{
		judge->locales[i] = newlocale(LC_COLLATE_MASK, judge->layout.locales[i], (locale_t) 0);
		if (judge->locales[i] == (locale_t) 0)
			return false;
	}
	return true;
}

/* Cut the sort into stretches; neighbouring ones share a row. */
static bool
begin_scan(GsOrderCheck *check)
{
	uint64_t	n = check->n_rows / STRETCH_ROWS;

	n = n < 1 ? 1 : n > N_STRETCHES ? N_STRETCHES : n;
	for (uint64_t i = n; i-- > 0;)
	{
		uint64_t	end = check->n_rows / n * (i + 1);

		if (!gs_ranges_push(&check->stretches, check->n_rows / n * i,
							i + 1 < n ? end : check->n_rows - 1))
			return false;
	}
	return true;
}

GsOrderCheck *
gs_order_check_begin(GsDevice *device, GsDeviceSort *sort, const GsKeyLayout *layout,
					 const GsOrderRange *range)
{
	GsOrderCheck *check = calloc(1, sizeof(GsOrderCheck));
	GsOrderCheck **link = &gs_order_checker.checks;
	GsSortResult result = {0};
	uint64_t	slice;

	if (check == NULL)
		return NULL;
	gs_order_checker.ops->result(sort, &result);
	check->began_ms = gs_host_now_ms();
	check->device = device;
	check->sort = sort;
	check->judge.layout = *layout;
	if (range)
	{
		check->is_range = true;
		check->range = *range;
	}
	check->n_rows = result.n_rows;
	check->phase = PHASE_SCAN;
	while (*link != NULL)
		link = &(*link)->next;
	*link = check;
	gs_order_checker.n_checks++;

	if (check->n_rows < 2 && (check->n_rows == 0 || range == NULL))
	{
		finish(check);
		return check;
	}
	check->entry_bytes = result.key_bytes / result.n_rows + sizeof(uint32_t) + 3;

	/* so that all threads have something to do */
	slice = check->n_rows * check->entry_bytes / (4 * MAX_THREADS);
	check->slice_bytes = slice < MIN_FETCH_BYTES * 4 ? MIN_FETCH_BYTES * 4 :
		slice > BUFFER_BYTES ? BUFFER_BYTES : (size_t) slice;

	if (!open_locales(&check->judge))
		gs_order_give_up(check, "the collation's locale is not to be had");
	else if (!open_pool())
		gs_order_give_up(check, "could not start a thread");
	else if (check->n_rows == 1)
		check->phase = PHASE_BORDERS;
	else if (!begin_scan(check))
		gs_order_give_up(check, "out of memory");
	return check;
}

/* Take a check a step further; true if it could be. */
static bool
work(GsOrderCheck *check)
{
	bool		proven = false;
	bool		any;

	if (check->phase == PHASE_DONE)
		return false;
	if (check->job_pending)
	{
		GsStatus	status = gs_job_status(&check->job);

		if (status == GS_PENDING)
			return false;
		check->job_pending = false;
		if (status != GS_OK)
			note_trouble(check, status, &check->job.error);
	}
	if (check->giving_up)
	{
		any = look_at_buffers(check);
		if (check->n_buffers > 0 ||
			(check->phase == PHASE_SORT &&
			 __atomic_load_n(&check->sorted, __ATOMIC_ACQUIRE) == 0))
			return any;
		finish(check);
		return true;
	}
	switch (check->phase)
	{
		case PHASE_SCAN:
		case PHASE_RESCAN:
			return work_scan(check);
		case PHASE_BOUND:
			return gs_order_work_bound(check);
		case PHASE_LOAD:
			return gs_order_work_load(check);
		case PHASE_SORT:
			return gs_order_work_sort(check);
		case PHASE_MOVE:
			moved(check);
			return true;
		case PHASE_BORDERS:
			any = gs_order_work_borders(check, &proven);
			if (proven)
				finish(check);
			return any;
		case PHASE_PLANT:
#ifdef GPUSORT_FAULTS
			return work_plant(check);
#endif
		case PHASE_DONE:
			break;
	}
	return false;
}

bool
gs_order_check_work(void)
{
	bool		any = false;

	for (GsOrderCheck *check = gs_order_checker.checks; check != NULL; check = check->next)
		while (work(check))
			any = true;
	return any;
}

void
gs_order_check_outcome(const GsOrderCheck *check, GsOrderOutcome *outcome)
{
	*outcome = check->outcome;
	if (check->phase != PHASE_DONE)
		outcome->verdict = GS_ORDER_PENDING;
}

void
gs_order_check_cancel(GsOrderCheck *check)
{
	gs_order_give_up(check, "cancelled");
}

void
gs_order_check_end(GsOrderCheck *check)
{
	GsOrderCheck **link = &gs_order_checker.checks;

	while (*link != check)
		link = &(*link)->next;
	*link = check->next;
	gs_order_checker.n_checks--;
	for (int i = 0; i < GS_KEY_MAX_LOCALES; i++)
		if (check->judge.locales[i] != (locale_t) 0)
			freelocale(check->judge.locales[i]);
	free(check->last);
	free(check);
}

void
gs_order_check_stop(void)
{
	for (GsOrderCheck *check = gs_order_checker.checks; check != NULL; check = check->next)
		gs_order_give_up(check, "the service ends");
	if (gs_order_checker.pool != NULL)
		gs_host_pool_close(gs_order_checker.pool);
	gs_order_checker.pool = NULL;
}

void
gs_order_check_free(void)
{
	while (gs_order_checker.checks != NULL)
	{
		GsOrderCheck *check = gs_order_checker.checks;

		for (int i = 0; i < N_BUFFERS; i++)
			if (gs_order_checker.buffers[i].check == check)
			{
				gs_order_scan_free(&gs_order_checker.buffers[i].scan);
				return_buffer(&gs_order_checker.buffers[i]);
			}
		finish(check);
		gs_order_check_end(check);
	}
	for (int i = 0; i < N_BUFFERS; i++)
		free(gs_order_checker.buffers[i].memory);
	memset(&gs_order_checker, 0, sizeof(gs_order_checker));
}
