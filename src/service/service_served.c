/*-------------------------------------------------------------------------
 *
 * service_served.c
 *	  Sessions, chunks and buffers as the gpusort service knows them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "fault.h"
#include "service/service_private.h"

GsSpillIo  *gs_served_io = NULL;
ServedSession *gs_served = NULL;
int			gs_n_served = 0;
ServedChunk *gs_served_chunks = NULL;

static int *started = NULL;		/* chunks with a job under way */
static int	n_started = 0;
static ServiceBuffer *buffers = NULL;
static int	n_free_buffers = 0;
static int	n_woken = 0;
static bool busy = false;

void
gs_served_init(void)
{
	gs_served = MemoryContextAllocZero(TopMemoryContext,
									   gs_shared->n_sessions * sizeof(ServedSession));
	gs_served_chunks = MemoryContextAllocZero(TopMemoryContext,
											  gs_shared->n_chunks * sizeof(ServedChunk));
	started = MemoryContextAllocZero(TopMemoryContext, gs_shared->n_chunks * sizeof(int));
	buffers = MemoryContextAllocZero(TopMemoryContext,
									 gs_shared->n_buffers * sizeof(ServiceBuffer));
	n_free_buffers = gs_shared->n_buffers;
	for (int i = 0; i < gs_shared->n_sessions; i++)
		gs_served_reset(i);
}

/* Nothing of the session is under way, or to be closed. */
void
gs_served_reset(int number)
{
	ServedSession *s = &gs_served[number];

	if (s->woken)
		n_woken--;
	free(s->page_first);
	free(s->last_key);
	gs_key_levels_close(s->levels);
	memset(s, 0, sizeof(*s));
	s->waiting = -1;
	s->device = -1;
	while (gs_n_served > 0 && !gs_served[gs_n_served - 1].in_use)
		gs_n_served--;
}

/* Free sessions are taken last in, first out: the numbers in use are low. */
void
gs_served_asked(int number)
{
	gs_served[number].in_use = true;
	gs_n_served = Max(gs_n_served, number + 1);
}

void
gs_served_wake(int number)
{
	if (!gs_served[number].woken)
		n_woken++;
	gs_served[number].woken = true;
}

int
gs_served_woken(void)
{
	for (int i = 0; n_woken > 0 && i < gs_n_served; i++)
		if (gs_served[i].woken)
		{
			gs_served[i].woken = false;
			n_woken--;
			return i;
		}
	return -1;
}

void
gs_served_busy(void)
{
	busy = true;
}

bool
gs_served_was_busy(void)
{
	bool		was = busy;

	busy = false;
	return was;
}

void
gs_served_start(int chunk)
{
	Assert(n_started < gs_shared->n_chunks && !gs_served_chunks[chunk].started);
	gs_served_begin(&gs_served_chunks[chunk].job);
	gs_served_chunks[chunk].started = true;
	gs_served[gs_chunks[chunk].session].pending++;
	started[n_started++] = chunk;
}

const int *
gs_served_started(int *n)
{
	*n = n_started;
	return started;
}

void
gs_served_ended(int chunk)
{
	int			i = 0;

	while (started[i] != chunk)
		i++;
	memmove(&started[i], &started[i + 1], (n_started - i - 1) * sizeof(int));
	n_started--;
	gs_served_chunks[chunk].started = false;
}

void
gs_served_begin(GsJob *job)
{
	memset(job, 0, sizeof(*job));
	job->status = GS_PENDING;
}

GsStatus
gs_served_end(int device, const GsJob *job)
{
	GsStatus	status = gs_job_status(job);

	Assert(status != GS_PENDING);
	if (device == 1 && GS_FAULT("device_lost"))
	{
		GsError		error = {"fault point device_lost"};

		gs_device_failed(device, &error, GS_DEVICE_LOST);
		return GS_DEVICE_LOST;
	}
	if (status != GS_OK && status != GS_NO_MEMORY && status != GS_CANCELLED)
		gs_device_failed(device, &job->error, status);
	return status;
}

void
gs_served_use(int number, int device)
{
	GsSession  *session = &gs_sessions[number];

	gs_served[number].device = device;
	gs_lock();
	session->device = device;
	gs_unlock();
}

GsDeviceSort *
gs_served_open(int number)
{
	const GsSession *session = &gs_sessions[number];
	int			device = gs_served[number].device;
	ServedDevice *d = &gs_devices[device];
	GsDeviceSort *sort = NULL;
	GsSortSpec	spec = {0};
	GsError		error = {{0}};
	GsStatus	status;

	spec.chunk_bytes = GS_CHUNK_BYTES;
	spec.key_width = session->key_width;
	spec.engine = session->engine_wanted;
	spec.elem = session->elem;
	spec.descending = session->descending;
	spec.spare_bytes = gs_role_spare(number);
	Assert(d->state == DEVICE_READY);
	status = gs_ops->sort_open(d->device, &spec, &sort, &error);
	if (status == GS_OK)
	{
		d->n_sorts++;
		return sort;
	}

	/* a device may not know how to sort arrays, or these */
	if (status != GS_NO_MEMORY && !(status == GS_INVALID && spec.elem != GS_ELEM_NONE))
		gs_device_failed(device, &error, status);
	return NULL;
}

/* What sums over sorts have of a sort. */
static void
add_result(GsSortResult *sum, const GsSortResult *result)
{
	sum->n_dropped += result->n_dropped;
	sum->copy_in_ms += result->copy_in_ms;
	sum->sort_ms += result->sort_ms;
	sum->gather_ms += result->gather_ms;
	sum->copy_out_ms += result->copy_out_ms;
}

ServedResult
gs_served_result(int number)
{
	const ServedSession *s = &gs_served[number];
	ServedResult result = {{0}};

	Assert(!LWLockHeldByMe(gs_shared->lock));
	if (s->sort)
		gs_ops->result(s->sort, &result.now);
	add_result(&result.sum, &s->done);
	add_result(&result.sum, &result.now);
	return result;
}

void
gs_served_close(int number, GsDeviceSort *sort)
{
	int			device = gs_served[number].device;
	GsSortResult *done = &gs_served[number].done;
	GsSortResult result = {0};

	gs_ops->result(sort, &result);
	done->engine = result.engine;
	done->rounds = result.rounds;
	add_result(done, &result);
	gs_ops->sort_close(sort);
	gs_devices[device].n_sorts--;
	gs_memory_freed(device);
}

bool
gs_served_has_sort(int number)
{
	const ServedSession *s = &gs_served[number];

	return s->sort || s->out.sort || s->load.sort;
}

bool
gs_served_is_on(int number, int device)
{
	const ServedSession *s = &gs_served[number];

	return s->device == device && (s->waiting >= 0 || gs_served_has_sort(number));
}

uint64
gs_served_held(GsDeviceSort *sort)
{
	return sort ? gs_ops->memory_held(sort) : 0;
}

/*
 * Rows may be dropped where the keys tell all about them.  Keys that were cut off do
 * not tell which rows are equal.  A guessed order does not tell which rows are
 * the first ones; but equal keys are equal.
 */
void
gs_served_perform(int number, GsDeviceSort *sort, GsPageFormat format, GsJob *job)
{
	const GsSession *session = &gs_sessions[number];
	GsKeep		keep;

	gs_lock_shared();
	keep = session->keep;
	if (session->inexact > 0)
		memset(&keep, 0, sizeof(keep));
	else if (session->layout.n_parts > 0)
		keep.limit = 0;
	gs_unlock();
	gs_served_begin(job);
	gs_ops->perform(sort, format, &keep, job);
}

bool
gs_served_check(int number, GsDeviceSort *sort, const GsOrderRange *range)
{
	ServedSession *s = &gs_served[number];

	Assert(s->check == NULL);
	s->check = gs_order_check_begin(gs_devices[s->device].device, sort, &gs_sessions[number].layout, range);
#ifdef GPUSORT_FAULTS
	if (s->check && GS_FAULT("order_check_plant"))
		gs_order_check_plant(s->check, false);
	if (s->check && GS_FAULT("order_check_border"))
		gs_order_check_plant(s->check, true);
#endif
	return s->check != NULL;
}

void
gs_served_note_files(int number)
{
	const GsSpill *spill = gs_served[number].spill;
	GsSession  *session = &gs_sessions[number];

	if (spill == NULL)
		return;
	/* files do not get shorter when their contents are no longer needed */
	session->temp_bytes = Max(session->temp_bytes, gs_spill_bytes(spill));
	session->temp_written = gs_spill_bytes_written(spill);
	session->temp_read = gs_spill_bytes_read(spill);
}

void
gs_served_note_fetches(int number, const ServedResult *result)
{
	gs_sessions[number].gather_ms = result->sum.gather_ms;
	gs_sessions[number].copy_out_ms = result->sum.copy_out_ms;
	gs_served_note_files(number);
}

/*
 * Of a session that was written out n_pages and engine are those of the range
 * at hand; rows, bytes and times those of all it did.
 */
void
gs_served_note(int number, const ServedResult *result)
{
	const ServedSession *s = &gs_served[number];
	GsSession  *session = &gs_sessions[number];
	const GsSortResult *now = &result->now;

	Assert(LWLockHeldByMeInMode(gs_shared->lock, LW_EXCLUSIVE));
	session->n_pages = now->n_pages;
	session->rounds = now->rounds;
	session->n_dropped = result->sum.n_dropped;
	strlcpy(session->engine, now->engine ? now->engine : "", sizeof(session->engine));
	if (s->sealed)
	{
		session->n_rows = gs_spill_rows(s->spill);
		session->n_images = gs_spill_images(s->spill);
		session->row_bytes = s->done.row_bytes;
		session->key_bytes = s->done.key_bytes;
	}
	else
	{
		session->n_rows = now->n_rows;
		session->n_images = now->n_images;
		session->row_bytes = now->row_bytes;
		session->key_bytes = now->key_bytes;
	}
	session->copy_in_ms = result->sum.copy_in_ms;
	session->sort_ms = result->sum.sort_ms;
	gs_served_note_fetches(number, result);
}

/*
 * Buffers.  Neither those who write nor those who read may have more than
 * three quarters of them; but one of each is promised to every device.
 */

ServiceBuffer *
gs_buffer(int buffer)
{
	Assert(buffer >= 0 && buffer < gs_shared->n_buffers);
	return &buffers[buffer];
}

char *
gs_buffer_memory(int buffer)
{
	return gs_chunk_memory(gs_shared->n_chunks + buffer);
}

static bool
writes(BufferUse use)
{
	return use == BUFFER_FETCHING || use == BUFFER_WRITING;
}

int
gs_buffer_take(int number, int device, BufferUse use)
{
	bool		has[GS_MAX_DEVICES][2] = {{false}};
	int			promised = 2 * gs_n_devices;
	int			same = 0;
	int			found = -1;

	if (n_free_buffers == 0)
		return -1;
	for (int i = 0; i < gs_shared->n_buffers; i++)
	{
		const ServiceBuffer *b = &buffers[i];
		bool	   *had;

		if (b->use == BUFFER_FREE)
		{
			found = i;
			continue;
		}
		if (writes(b->use) == writes(use))
			same++;
		had = &has[b->device][writes(b->use)];
		if (!*had)
			promised--;
		*had = true;
	}
	if (has[device][writes(use)] &&
		(same >= gs_shared->n_buffers * 3 / 4 || n_free_buffers <= promised))
		return -1;
	buffers[found].use = use;
	buffers[found].session = number;
	buffers[found].device = device;
	n_free_buffers--;
	return found;
}

/* Those who could go on with one more are woken. */
void
gs_buffer_free(int buffer)
{
	Assert(buffers[buffer].use != BUFFER_FREE);
	buffers[buffer].use = BUFFER_FREE;
	n_free_buffers++;
	for (int i = 0; i < gs_n_served; i++)
		if (gs_served[i].out.sort || gs_served[i].load.phase == LOAD_READING ||
			gs_served[i].load.phase == LOAD_SPLITTING)
			gs_served_wake(i);
}

int
gs_buffer_find(int number, BufferUse use, uint64 page_or_piece)
{
	for (int i = 0; i < gs_shared->n_buffers; i++)
		if (buffers[i].use == use && buffers[i].session == number &&
			buffers[i].number == page_or_piece)
			return i;
	return -1;
}

void
gs_buffers_free_of(int number, BufferUse use)
{
	for (int i = 0; i < gs_shared->n_buffers; i++)
		if (buffers[i].use == use && buffers[i].session == number)
			gs_buffer_free(i);
}
