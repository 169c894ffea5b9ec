/*-------------------------------------------------------------------------
 *
 * order_check.c
 *	  Proving, and repairing, the order of sorts whose keys only guess it.
 *
 * A check passes through these phases, each of which starts jobs of the
 * device or tasks of the thread pool and looks, when called again, for those
 * that have ended:
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
 *	  SORT		... sorted there; then the next run is loaded.
 *	  RESCAN	What was moved is scanned again, with the neighbours on both
 *				sides; now every inversion is fatal.
 *	  MOVE		Comes in between: rows are moved on the device.  Never while
 *				keys are fetched; and moves of runs found in SCAN are done
 *				before open runs are loaded, since an open run may contain
 *				them.
 *
 * Memory
 *	  Buffers are shared by all checks; each has a right to its part of them,
 *	  and to one at least.  Moves are carried out when MAX_MOVES have come
 *	  together.  Loading takes more memory, so one check at a time does it, of
 *	  one run at a time, and of none beyond MAX_RUN_KEYS and MAX_RUN_BYTES.
 *	  Only the list of what is to be scanned again grows with the sort, by
 *	  16 bytes for some hundred rows in the worst case.
 *
 * Threads
 *	  A buffer in BUFFER_SCANNING and a check in PHASE_SORT belong to a thread
 *	  of the pool until it sets the state that says otherwise; all else is the
 *	  caller's thread's.
 *
 *-------------------------------------------------------------------------
 */
#ifdef POSTGRES_H
#error "order_check.c is plain C and must not see postgres.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "service/order_check.h"
#include "service/order_scan.h"

#define MAX_THREADS		16
#define N_BUFFERS		16
#define BUFFER_BYTES	((size_t) 4 << 20)
#define MIN_FETCH_BYTES ((size_t) 32 << 10)
#define PROBE_BYTES		((size_t) 32 << 10)

/* Stretches that a sort is cut into, and rows in each of them at least. */
#define N_STRETCHES		8
#define STRETCH_ROWS	16384

#define MAX_MOVES		((uint64_t) 8 << 20)
#define MAX_RUN_KEYS	((uint64_t) 16 << 20)
#define MAX_RUN_BYTES	((uint64_t) 1 << 30)

typedef enum Phase
{
	PHASE_PLANT,
	PHASE_SCAN,
	PHASE_BOUND,
	PHASE_LOAD,
	PHASE_SORT,
	PHASE_RESCAN,
	PHASE_MOVE,
	PHASE_DONE
} Phase;

typedef enum BufferState
{
	BUFFER_FREE,
	BUFFER_FETCHING,
	BUFFER_SCANNING,
	BUFFER_SCANNED
} BufferState;

typedef struct Buffer
{
	GsHostTask	task;			/* must be first */
	int			state;			/* a BufferState; atomic */
	uint8_t    *memory;			/* NULL until used */
	GsOrderCheck *check;		/* whose keys are in it */
	GsRange		range;			/* what was to be read, if it fits */
	GsJob		job;
	uint64_t	n_keys;
	GsOrderScan scan;
} Buffer;

/* Memory that holds some keys of a run. */
typedef struct Block
{
	struct Block *next;
	uint8_t		memory[];
} Block;

/* How far a run reaches in one direction. */
typedef struct Bound
{
	bool		right;
	bool		halving;		/* the run's end has been passed */
	uint64_t	inside;			/* so many ranks further on is in the run */
	uint64_t	outside;		/* so many are not, or are not there */
	uint64_t	step;
} Bound;

struct GsOrderCheck
{
	GsHostTask	task;			/* must be first */
	GsOrderCheck *next;
	GsDeviceSort *sort;
	GsOrderJudge judge;
	uint64_t	n_rows;
	uint64_t	entry_bytes;	/* that a key takes on average */
	size_t		slice_bytes;	/* of a large fetch */
	double		began_ms;

	Phase		phase;
	Phase		after_move;
	bool		giving_up;		/* the verdict is to be NOT_PROVEN, or worse */
	GsOrderOutcome outcome;

	/* the scans */
	GsRanges	stretches;		/* yet to be fetched; used from the end */
	int			n_buffers;		/* in use for this check */
	GsRanges	moved;			/* to be scanned again */
	GsMoves		moves;			/* to be carried out */
	GsOpenRuns	open;

	/* the one job of the other phases */
	GsJob		job;
	bool		job_pending;
	uint64_t	n_keys;			/* that it fetched */

	/* repair of open runs */
	uint64_t	run;			/* the one in work */
	Bound		bound;
	Block	   *blocks;
	uint64_t	blocks_bytes;
	const uint8_t **entries;	/* of that run, as far as loaded */
	uint64_t	n_entries;
	uint32_t   *order;			/* and as much again to spare */
	int			sorted;			/* atomic; 1: done, -1: failed */

#ifdef GPUSORT_FAULTS
	bool		plant_border;
#endif
};

static struct
{
	const GsDeviceOps *ops;
	GsDevice   *device;
	void		(*notify) (void *arg);
	void	   *notify_arg;
	GsHostPool *pool;			/* NULL until the first check */
	Buffer		buffers[N_BUFFERS];
	GsOrderCheck *checks;		/* oldest first */
	int			n_checks;
	GsOrderCheck *repairing;	/* the one that may load runs */
} checker;

static double
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec * 1e3 + (double) now.tv_nsec / 1e6;
}

static void
give_up(GsOrderCheck *check, const char *reason)
{
	if (check->giving_up)
		return;
	check->giving_up = true;
	snprintf(check->outcome.reason.message, sizeof(check->outcome.reason.message), "%s", reason);
	__atomic_store_n(&check->judge.stop, 1, __ATOMIC_RELAXED);
}

/* A job of the device has failed. */
static void
note_trouble(GsOrderCheck *check, GsStatus status, const GsError *error)
{
	give_up(check, error->message[0] != '\0' ? error->message : gs_status_name(status));
	if (status == GS_DEVICE_LOST)
	{
		check->outcome.verdict = GS_ORDER_DEVICE_LOST;
		check->outcome.reason = *error;
	}
}

static void
free_blocks(GsOrderCheck *check)
{
	while (check->blocks != NULL)
	{
		Block	   *block = check->blocks;

		check->blocks = block->next;
		free(block);
	}
	check->blocks_bytes = 0;
	free(check->entries);
	free(check->order);
	check->entries = NULL;
	check->order = NULL;
	check->n_entries = 0;
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
	check->outcome.ms = now_ms() - check->began_ms;
	if (checker.repairing == check)
		checker.repairing = NULL;
	free_blocks(check);
	gs_ranges_free(&check->stretches);
	gs_ranges_free(&check->moved);
	gs_moves_free(&check->moves);
	gs_open_runs_free(&check->open);
}

/* ---- the one job ---- */

static void
begin_job(GsOrderCheck *check)
{
	memset(&check->job, 0, sizeof(check->job));
	check->job.status = GS_PENDING;
	check->job_pending = true;
}

static void
fetch(GsOrderCheck *check, uint64_t first, void *memory, size_t bytes)
{
	begin_job(check);
	checker.ops->fetch_keys(check->sort, first, memory, bytes, &check->n_keys, &check->job);
}

/* Carry the moves out, if there are any, then go on with a phase. */
static void
move_then(GsOrderCheck *check, Phase phase)
{
	if (check->moves.n == 0)
	{
		check->phase = phase;
		return;
	}
	check->phase = PHASE_MOVE;
	check->after_move = phase;
	begin_job(check);
	checker.ops->reorder(check->sort, check->moves.to, check->moves.from, check->moves.n,
						 &check->job);
}

static void
moved(GsOrderCheck *check)
{
	check->outcome.rows_moved += check->moves.n;
	gs_moves_free(&check->moves);
	check->phase = check->after_move;
}

/* How much to ask for, to get so many keys or a good part of them. */
static size_t
fetch_bytes(const GsOrderCheck *check, uint64_t n_keys)
{
	uint64_t	bytes = MIN_FETCH_BYTES + n_keys * (check->entry_bytes + check->entry_bytes / 4);

	return bytes < check->slice_bytes ? (size_t) bytes : check->slice_bytes;
}

/* ---- scanning ---- */

static void
run_scan(GsHostTask *task)
{
	Buffer	   *buffer = (Buffer *) task;

	gs_order_scan(&buffer->scan);
	__atomic_store_n(&buffer->state, BUFFER_SCANNED, __ATOMIC_RELEASE);
	checker.notify(checker.notify_arg);
}

/* A buffer for the check; NULL where it has to wait for one. */
static Buffer *
take_buffer(GsOrderCheck *check)
{
	int			share = N_BUFFERS / checker.n_checks;

	if (check->n_buffers >= (share > 1 ? share : 1))
		return NULL;
	for (int i = 0; i < N_BUFFERS; i++)
	{
		Buffer	   *buffer = &checker.buffers[i];
		GsError		error;

		if (__atomic_load_n(&buffer->state, __ATOMIC_RELAXED) != BUFFER_FREE)
			continue;
		if (buffer->memory == NULL)
		{
			buffer->memory = malloc(BUFFER_BYTES);
			if (buffer->memory == NULL)
			{
				/* the buffers that there are will do */
				if (checker.buffers[0].memory == NULL)
					give_up(check, "out of memory");
				return NULL;
			}
			/* only makes it faster */
			(void) checker.ops->pin(checker.device, buffer->memory, BUFFER_BYTES, &error);
		}
		buffer->check = check;
		check->n_buffers++;
		return buffer;
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
	memset(&buffer->job, 0, sizeof(buffer->job));
	buffer->job.status = GS_PENDING;
	__atomic_store_n(&buffer->state, BUFFER_FETCHING, __ATOMIC_RELAXED);
	checker.ops->fetch_keys(check->sort, buffer->range.first, buffer->memory,
							fetch_bytes(check, buffer->range.last - buffer->range.first + 1),
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
		give_up(check, "the device returned too few keys");
	else if (buffer->n_keys < n)
	{
		n = buffer->n_keys;
		if (!gs_ranges_push(&check->stretches, range->first + n - 1, range->last))
			give_up(check, "out of memory");
	}
	if (check->giving_up)
	{
		return_buffer(buffer);
		return;
	}
	memset(&buffer->scan, 0, sizeof(buffer->scan));
	buffer->scan.judge = &check->judge;
	buffer->scan.pool = checker.pool;
	buffer->scan.memory = buffer->memory;
	buffer->scan.first = range->first;
	buffer->scan.n = (uint32_t) n;
	buffer->scan.n_rows = check->n_rows;
	buffer->scan.repair = check->phase == PHASE_SCAN;
	buffer->task.run = run_scan;
	__atomic_store_n(&buffer->state, BUFFER_SCANNING, __ATOMIC_RELAXED);
	gs_host_pool_submit(checker.pool, &buffer->task);
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
		give_up(check, check->phase == PHASE_SCAN ?
				"neighbouring rows that cannot be repaired are out of order" :
				"rows are out of order after their repair");
	else if (!keep_scan(check, &buffer->scan))
		give_up(check, "out of memory");
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
		Buffer	   *buffer = &checker.buffers[i];

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
			case BUFFER_FREE:
			case BUFFER_SCANNING:
				break;
		}
	}
	return any;
}

static bool begin_rescan(GsOrderCheck *check);

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
		move_then(check, check->phase);
	else if (check->stretches.n > 0)
		return any;				/* until other checks return their buffers */
	else if (check->phase == PHASE_RESCAN)
		finish(check);
	else if (check->open.n > 0)
		move_then(check, PHASE_BOUND);
	else if (check->moved.n > 0)
		return begin_rescan(check);
	else
		finish(check);
	return true;
}

static int
compare_ranges(const void *a, const void *b)
{
	const GsRange *x = a;
	const GsRange *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

/* Carry out what is left to be moved, then scan all that was. */
static bool
begin_rescan(GsOrderCheck *check)
{
	GsRanges	joined = {0};

	qsort(check->moved.items, check->moved.n, sizeof(GsRange), compare_ranges);
	for (uint64_t i = 0; i < check->moved.n; i++)
		if (!gs_ranges_add(&joined, check->moved.items[i].first, check->moved.items[i].last))
			give_up(check, "out of memory");
	gs_ranges_free(&check->moved);
	gs_ranges_free(&check->stretches);
	check->stretches = joined;
	if (!check->giving_up)
		move_then(check, PHASE_RESCAN);
	return true;
}

/* ---- open runs ---- */

static int
compare_open_runs(const void *a, const void *b)
{
	const GsOpenRun *x = a;
	const GsOpenRun *y = b;
	int			order = compare_ranges(&x->range, &y->range);

	/* of those that begin together the larger one comes first */
	return order != 0 ? order : (x->prefix_len > y->prefix_len) - (x->prefix_len < y->prefix_len);
}

/*
 * Sort the open runs, and make one of those that overlap.  Two that share a
 * key are the same run, or the one with the longer prefix lies in the other.
 */
static void
join_open_runs(GsOpenRuns *runs)
{
	uint64_t	n = 0;

	qsort(runs->items, runs->n, sizeof(GsOpenRun), compare_open_runs);
	for (uint64_t i = 0; i < runs->n; i++)
	{
		GsOpenRun  *run = &runs->items[i];

		while (n > 0 && runs->items[n - 1].range.last >= run->range.first)
		{
			GsOpenRun  *last = &runs->items[n - 1];

			if (run->range.first > last->range.first)
				run->range.first = last->range.first;
			if (run->range.last < last->range.last)
				run->range.last = last->range.last;
			if (run->prefix_len > last->prefix_len)
			{
				uint8_t    *prefix = run->prefix;

				run->prefix = last->prefix;
				run->prefix_len = last->prefix_len;
				last->prefix = prefix;
			}
			free(last->prefix);
			last->prefix = NULL;
			n--;
		}
		if (n != i)
		{
			runs->items[n] = *run;
			run->prefix = NULL;
		}
		n++;
	}
	runs->n = n;
}

static void
begin_bound(GsOrderCheck *check, bool right)
{
	const GsRange *range = &check->open.items[check->run].range;

	check->bound.right = right;
	check->bound.halving = false;
	check->bound.inside = 0;
	check->bound.outside = right ? check->n_rows - range->last : range->first + 1;
	check->bound.step = 1;
}

/* Is the key that was probed in the run? */
static void
note_probe(GsOrderCheck *check)
{
	const GsOpenRun *run = &check->open.items[check->run];
	Bound	   *bound = &check->bound;
	uint64_t	at = bound->inside + bound->step;

	if (check->n_keys == 0)
		give_up(check, "the device returned too few keys");
	else if (gs_entry_has_prefix(check->blocks->memory, run->prefix, run->prefix_len))
	{
		bound->inside = at;
		bound->step *= 2;
	}
	else
	{
		bound->outside = at;
		bound->halving = true;
	}
}

static bool
work_bound(GsOrderCheck *check)
{
	Bound	   *bound = &check->bound;
	GsRange    *range;

	if (checker.repairing != check)
	{
		if (checker.repairing != NULL)
			return false;
		checker.repairing = check;
		join_open_runs(&check->open);
		check->blocks = malloc(sizeof(Block) + PROBE_BYTES);
		if (check->blocks == NULL)
		{
			give_up(check, "out of memory");
			return true;
		}
		check->blocks->next = NULL;
		check->run = 0;
		begin_bound(check, false);
	}
	else
		note_probe(check);

	while (!check->giving_up)
	{
		uint64_t	left = bound->outside - bound->inside;

		range = &check->open.items[check->run].range;
		if (left > 1)
		{
			if (bound->halving || bound->step >= left)
				bound->step = left / 2;
			fetch(check, bound->right ? range->last + bound->inside + bound->step :
				  range->first - bound->inside - bound->step,
				  check->blocks->memory, PROBE_BYTES);
			break;
		}
		if (!bound->right)
		{
			range->first -= bound->inside;
			begin_bound(check, true);
			continue;
		}
		range->last += bound->inside;
		if (++check->run == check->open.n)
		{
			free_blocks(check);
			join_open_runs(&check->open);
			check->run = 0;
			check->phase = PHASE_LOAD;
			break;
		}
		begin_bound(check, false);
	}
	return true;
}

/* Note the keys that have arrived; they are all of one run. */
static void
note_loaded(GsOrderCheck *check)
{
	const GsOpenRun *run = &check->open.items[check->run];
	uint64_t	count = run->range.last - run->range.first + 1;
	const uint8_t *entry = check->blocks->memory;

	if (check->n_keys == 0)
		give_up(check, "the device returned too few keys");
	for (uint64_t i = 0; i < check->n_keys && check->n_entries < count; i++)
	{
		if (!gs_entry_has_prefix(entry, run->prefix, run->prefix_len))
		{
			give_up(check, "the keys of a run do not stand together");
			return;
		}
		check->entries[check->n_entries++] = entry;
		entry += gs_entry_bytes(entry);
	}
}

static void
run_sort(GsHostTask *task)
{
	GsOrderCheck *check = (GsOrderCheck *) task;
	uint32_t	n = (uint32_t) check->n_entries;
	bool		sorted = gs_order_sort(&check->judge, checker.pool, check->entries, n,
									   check->order, check->order + n);

	__atomic_store_n(&check->sorted, sorted ? 1 : -1, __ATOMIC_RELEASE);
	checker.notify(checker.notify_arg);
}

/* Read the next keys of the run in work, or have it sorted. */
static bool
work_load(GsOrderCheck *check)
{
	const GsRange *range = &check->open.items[check->run].range;
	uint64_t	count = range->last - range->first + 1;
	size_t		bytes;
	Block	   *block;

	if (check->entries == NULL)
	{
		if (count > MAX_RUN_KEYS)
		{
			give_up(check, "too many rows differ in details of their text only");
			return true;
		}
		check->entries = malloc(count * sizeof(*check->entries));
		check->order = malloc(2 * count * sizeof(*check->order));
		if (check->entries == NULL || check->order == NULL)
		{
			give_up(check, "out of memory");
			return true;
		}
	}
	else
		note_loaded(check);
	if (check->giving_up)
		return true;

	if (check->n_entries == count)
	{
		check->phase = PHASE_SORT;
		check->sorted = 0;
		check->task.run = run_sort;
		gs_host_pool_submit(checker.pool, &check->task);
		return true;
	}
	bytes = fetch_bytes(check, count - check->n_entries);
	block = check->blocks_bytes + bytes <= MAX_RUN_BYTES ? malloc(sizeof(Block) + bytes) : NULL;
	if (block == NULL)
	{
		give_up(check, "too many rows differ in details of their text only");
		return true;
	}
	block->next = check->blocks;
	check->blocks = block;
	check->blocks_bytes += bytes;
	fetch(check, range->first + check->n_entries, block->memory, bytes);
	return true;
}

static bool
work_sort(GsOrderCheck *check)
{
	const GsRange *range = &check->open.items[check->run].range;
	int			sorted = __atomic_load_n(&check->sorted, __ATOMIC_ACQUIRE);

	if (sorted == 0)
		return false;
	if (sorted < 0)
		give_up(check, "rows could not be repaired");
	else if (!gs_moves_of_order(&check->moves, range->first, check->order,
								(uint32_t) check->n_entries) ||
			 !gs_ranges_push(&check->moved, range->first > 0 ? range->first - 1 : 0,
							 range->last + 1 < check->n_rows ? range->last + 1 : range->last))
		give_up(check, "out of memory");
	free_blocks(check);
	check->phase = PHASE_LOAD;
	if (check->giving_up)
		return true;
	if (++check->run == check->open.n)
	{
		checker.repairing = NULL;
		return begin_rescan(check);
	}
	if (check->moves.n >= MAX_MOVES)
		move_then(check, PHASE_LOAD);
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
		check->blocks = malloc(sizeof(Block) + BUFFER_BYTES);
		if (check->blocks == NULL)
		{
			give_up(check, "out of memory");
			return true;
		}
		check->blocks->next = NULL;
		fetch(check, 0, check->blocks->memory, BUFFER_BYTES);
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
				give_up(check, "out of memory");
			break;
		}
	}
	free_blocks(check);
	if (!check->giving_up)
		move_then(check, PHASE_SCAN);
	return true;
}

#endif

/* ---- checks ---- */

void
gs_order_check_init(const GsDeviceOps *ops, GsDevice *device, void (*notify) (void *arg),
					void *notify_arg)
{
	memset(&checker, 0, sizeof(checker));
	checker.ops = ops;
	checker.device = device;
	checker.notify = notify;
	checker.notify_arg = notify_arg;
}

static bool
open_pool(void)
{
	long		cores = sysconf(_SC_NPROCESSORS_ONLN);

	if (checker.pool == NULL)
		checker.pool = gs_host_pool_open(cores < 1 ? 1 : cores > MAX_THREADS ? MAX_THREADS : (int) cores);
	return checker.pool != NULL;
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
gs_order_check_begin(GsDeviceSort *sort, const GsKeyLayout *layout)
{
	GsOrderCheck *check = calloc(1, sizeof(GsOrderCheck));
	GsOrderCheck **link = &checker.checks;
	GsSortResult result = {0};
	uint64_t	slice;

	if (check == NULL)
		return NULL;
	checker.ops->result(sort, &result);
	check->began_ms = now_ms();
	check->sort = sort;
	check->judge.layout = *layout;
	check->n_rows = result.n_rows;
	check->phase = PHASE_SCAN;
	while (*link != NULL)
		link = &(*link)->next;
	*link = check;
	checker.n_checks++;

	if (check->n_rows < 2)
	{
		finish(check);
		return check;
	}
	check->entry_bytes = result.key_bytes / result.n_rows + sizeof(uint32_t) + 3;

	/* so that all threads have something to do */
	slice = check->n_rows * check->entry_bytes / (4 * MAX_THREADS);
	check->slice_bytes = slice < MIN_FETCH_BYTES * 4 ? MIN_FETCH_BYTES * 4 :
		slice > BUFFER_BYTES ? BUFFER_BYTES : (size_t) slice;

	check->judge.locale = newlocale(LC_COLLATE_MASK, check->judge.layout.locale, (locale_t) 0);
	if (check->judge.locale == (locale_t) 0)
		give_up(check, "the collation's locale is not to be had");
	else if (!open_pool())
		give_up(check, "could not start a thread");
	else if (!begin_scan(check))
		give_up(check, "out of memory");
	return check;
}

/* Take a check a step further; true if it could be. */
static bool
work(GsOrderCheck *check)
{
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
		bool		any = look_at_buffers(check);

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
			return work_bound(check);
		case PHASE_LOAD:
			return work_load(check);
		case PHASE_SORT:
			return work_sort(check);
		case PHASE_MOVE:
			moved(check);
			return true;
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

	for (GsOrderCheck *check = checker.checks; check != NULL; check = check->next)
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
	give_up(check, "cancelled");
}

void
gs_order_check_end(GsOrderCheck *check)
{
	GsOrderCheck **link = &checker.checks;

	while (*link != check)
		link = &(*link)->next;
	*link = check->next;
	checker.n_checks--;
	if (check->judge.locale != (locale_t) 0)
		freelocale(check->judge.locale);
	free(check);
}

void
gs_order_check_stop(void)
{
	for (GsOrderCheck *check = checker.checks; check != NULL; check = check->next)
		give_up(check, "the service ends");
	if (checker.pool != NULL)
		gs_host_pool_close(checker.pool);
	checker.pool = NULL;
}

void
gs_order_check_free(void)
{
	while (checker.checks != NULL)
	{
		GsOrderCheck *check = checker.checks;

		for (int i = 0; i < N_BUFFERS; i++)
			if (checker.buffers[i].check == check)
			{
				gs_order_scan_free(&checker.buffers[i].scan);
				return_buffer(&checker.buffers[i]);
			}
		finish(check);
		gs_order_check_end(check);
	}
	for (int i = 0; i < N_BUFFERS; i++)
		free(checker.buffers[i].memory);
	memset(&checker, 0, sizeof(checker));
}
