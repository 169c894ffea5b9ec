/*-------------------------------------------------------------------------
 *
 * service_load.c
 *	  Reading a range of a session's rows back onto the device.
 *
 * Pieces of all runs are read into buffers, several at a time, and appended to a new sort in their
 * order.  Then the sort is performed like any other.
 *
 * One session at a time reads onto a device.  Otherwise two sessions, each with a part of a range on
 * the device, could wait for each other.  If the device has no room, a range that is read ahead is
 * dropped.  A range that the leader waits for waits for room (service_memory.c), or is split.
 *
 * Tests: regress/spill, tap/spill_faults
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fault.h"
#include "service/service_private.h"

/* A range may hold this fraction of the session's share, so that two fit. */
#define RANGE_FRACTION 0.42

void
gs_load_begin(int number, uint32 range, bool wanted)
{
	Load	   *load = &gs_served[number].load;

	Assert(load->phase == LOAD_NONE);
	memset(load, 0, sizeof(*load));
	load->phase = LOAD_WAITING;
	load->range = range;
	load->wanted = wanted;
	gs_served_mark_due(number);
}

/* Let another session read onto the device. */
static void
stop_reading(int number)
{
	int			device = gs_served[number].device;

	if (gs_devices[device].reading != number)
		return;
	gs_devices[device].reading = -1;
	for (int i = -1; (i = gs_served_next(i)) >= 0;)
		if (gs_served[i].load.phase == LOAD_WAITING)
			gs_served_mark_due(i);
}

void
gs_load_cancel(int number)
{
	ServedSession *s = &gs_served[number];

	if (s->load.phase == LOAD_NONE || s->load.phase == LOAD_SPLITTING ||
		s->load.phase == LOAD_ENDING)
		return;
	if (s->load.sort)
		gs_ops->cancel(s->load.sort);
	s->load.phase = LOAD_ENDING;
	gs_served_mark_due(number);
}

/* The end of a load that was cancelled. */
static void
end_load(int number)
{
	ServedSession *s = &gs_served[number];
	Load	   *load = &s->load;

	if (load->busy > 0)
		return;
	gs_buffers_free_read(number);
	if (load->reader)
		gs_spill_reader_close(load->reader);
	load->reader = NULL;
	if (load->sort)
		gs_job_close_sort(number, load->sort);
	load->sort = NULL;
	load->phase = LOAD_NONE;
	load->refused = false;
	s->waits_since = 0;
	stop_reading(number);
	gs_served_mark_due(number);
	if (!load->too_large || gs_served_is_over(s))
		return;
	if (load->range >= s->n_taken && load->range + 1 == gs_spill_ranges(s->spill))
		load->split = gs_spill_split_begin(s->spill);
	if (load->split)
		load->phase = LOAD_SPLITTING;
	else
		gs_served_fail(number);
}

/* Split the range.  This reads blocks of the runs, one at a time, through a buffer. */
static void
split_range(int number)
{
	ServedSession *s = &gs_served[number];
	Load	   *load = &s->load;
	bool		usable = !gs_served_is_over(s);
	int			buffer;

	if (load->busy > 0)
		return;
	if (usable)
	{
		ServiceBuffer *b;

		buffer = gs_buffer_find_read(number, 0);
		if (buffer < 0)
			buffer = gs_buffer_take(number, BUFFER_READING);
		if (buffer < 0)
			return;
		b = gs_buffer(buffer);
		b->use = BUFFER_READING;
		b->number = 0;
		gs_job_begin(&b->job);
		if (gs_spill_split_read(load->split, gs_buffer_memory(buffer), &b->job))
		{
			load->busy++;
			return;
		}
		b->use = BUFFER_READ;
	}
	gs_buffers_free_read(number);
	if (!gs_spill_split_end(load->split, usable) && usable)
		gs_served_fail(number);
	load->split = NULL;
	load->phase = LOAD_NONE;
	gs_served_mark_due(number);
}

void
gs_load_retry(int number)
{
	Load	   *load = &gs_served[number].load;

	if (!load->refused || load->phase != LOAD_READING)
		return;
	load->refused = false;
	gs_ops->resume(load->sort);
	gs_served_mark_due(number);
}

void
gs_load_shrink(int number)
{
	gs_served[number].load.too_large = true;
	gs_load_cancel(number);
}

/* The bytes of runs that a range should have, by the session's shares of its device and of its role. */
static uint64
range_budget(int number)
{
	const ServedSession *s = &gs_served[number];
	double		held_each = s->run_bytes > 0 ? (double) s->run_held / s->run_bytes : 1;
	uint64		bytes = Min(gs_memory_share(s->device), gs_role_share(number));

	return Max((uint64) (bytes * RANGE_FRACTION / Max(held_each, 1)), 1);
}

static bool
start_reading(int number)
{
	ServedSession *s = &gs_served[number];
	Load	   *load = &s->load;

	if (load->range == gs_spill_ranges(s->spill) &&
		!gs_spill_plan(s->spill, range_budget(number)))
		return false;
	load->reader = gs_spill_reader_open(s->spill, load->range);
	load->sort = gs_job_open_sort(number, true);
	if (load->sort == NULL && load->reader)
	{
		gs_spill_reader_close(load->reader);
		load->reader = NULL;
	}
	if (load->reader == NULL)
		return false;
#ifdef GPUSORT_FAULTS
	if (GS_FAULT("spill_read"))
		gs_spill_plant(s->spill, GS_SPILL_READ, EIO);
#endif
	load->phase = LOAD_READING;
	gs_devices[s->device].reading = number;
	return true;
}

static void
read_pieces(int number)
{
	Load	   *load = &gs_served[number].load;
	int			buffer;

	while (!load->refused && !load->all_read &&
		   (buffer = gs_buffer_take(number, BUFFER_READING)) >= 0)
	{
		ServiceBuffer *b = gs_buffer(buffer);

		gs_job_begin(&b->job);
		b->number = load->asked;
		if (gs_spill_read(load->reader, gs_buffer_memory(buffer), &b->piece, &b->job))
		{
			load->asked++;
			load->busy++;
		}
		else
		{
			load->all_read = true;
			gs_buffer_free(buffer);
		}
	}
}

static void
append_pieces(int number)
{
	Load	   *load = &gs_served[number].load;
	int			buffer;

	/* after a refusal, asked_at stays: gs_memory_decide() has it retried once memory was freed since */
	if (load->appending == 0 && !load->refused)
		load->asked_at = gs_devices[gs_served[number].device].n_freed;
	while (!load->refused &&
		   (buffer = gs_buffer_find_read(number, load->appended)) >= 0)
	{
		ServiceBuffer *b = gs_buffer(buffer);

		/*
		 * If a piece before this one is refused, all pieces from there on are appended again.  So an
		 * empty piece is kept until the earlier appends have ended.
		 */
		if (b->piece.n_records == 0 && load->appending > 0)
			return;
		load->appended++;
		if (b->piece.n_records == 0)
		{
			gs_buffer_free(buffer);
			continue;
		}
		b->use = BUFFER_APPENDING;
		gs_job_begin(&b->job);
		load->busy++;
		load->appending++;
		gs_ops->append(load->sort, gs_buffer_memory(buffer), b->piece.data_bytes,
					   b->piece.n_records, 0, &b->job);
	}
}

void
gs_load_buffer_ended(int buffer, GsStatus status)
{
	ServiceBuffer *b = gs_buffer(buffer);
	int			number = b->session;
	Load	   *load = &gs_served[number].load;

	load->busy--;
	gs_served_mark_due(number);
	if (b->use == BUFFER_APPENDING)
	{
		load->appending--;
		if (load->phase != LOAD_ENDING && status == GS_NO_MEMORY)
		{
			/* the device refuses all later ones, too; appending begins again here */
			load->refused = true;
			load->appended = Min(load->appended, b->number);
			b->use = BUFFER_READ;
			return;
		}
		gs_served[number].waits_since = 0;
		if (load->phase != LOAD_ENDING && status != GS_OK)
			gs_served_fail(number);
	}
	else if (load->phase == LOAD_SPLITTING)
	{
		b->use = BUFFER_READ;
		if (status != GS_OK)
			gs_served_fail(number);
		return;
	}
	else if (load->phase != LOAD_ENDING)
	{
		if (status == GS_OK)
		{
			b->use = BUFFER_READ;
			return;
		}
		gs_served_fail(number);
	}
	gs_buffer_free(buffer);
}

/* The range is sorted. */
static void
performed(int number)
{
	Load	   *load = &gs_served[number].load;
	GsStatus	status = gs_job_outcome(number, &load->job);

	load->performing = false;
	load->busy--;
	if (load->phase == LOAD_ENDING)
		return;
	if (status != GS_OK)
	{
		if (status == GS_NO_MEMORY)
			gs_load_shrink(number);
		else
			gs_served_fail(number);
		return;
	}
	load->phase = LOAD_READY;
	gs_served_mark_due(number);
}

void
gs_load_step(int number)
{
	ServedSession *s = &gs_served[number];
	Load	   *load = &s->load;

	if (gs_served_is_over(s) && load->phase != LOAD_NONE && load->phase != LOAD_ENDING)
		gs_load_cancel(number);
	if (load->phase == LOAD_SPLITTING)
	{
		split_range(number);
		return;
	}
	if (load->performing && gs_job_status(&load->job) != GS_PENDING)
		performed(number);
	if (load->phase == LOAD_ENDING)
	{
		end_load(number);
		return;
	}
	if (load->phase == LOAD_WAITING && gs_devices[s->device].reading < 0)
	{
		int			device = s->device;

		if (!start_reading(number))
		{
			/* if the device was lost, the session may have moved to another, and reads onto that */
			if (s->device == device)
				gs_served_fail(number);
			return;
		}
	}
	if (load->phase != LOAD_READING)
		return;
	if (load->refused && !load->wanted)
	{
		s->no_read_ahead = true;
		gs_load_cancel(number);
		return;
	}
	read_pieces(number);
	append_pieces(number);
	if (!load->all_read || load->refused || load->busy > 0 || load->appended < load->asked)
		return;
	load->ties = gs_spill_reader_ties(load->reader);
	gs_spill_reader_close(load->reader);
	load->reader = NULL;
	stop_reading(number);
	load->phase = LOAD_PERFORMING;
	gs_job_begin(&load->job);
	load->performing = true;
	load->busy++;
	gs_ops->perform(load->sort, GS_FORMAT_ROWS, NULL, &load->job);
}
