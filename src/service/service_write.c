/*-------------------------------------------------------------------------
 *
 * service_write.c
 *	  Writing sorts out of the device's memory, into temporary files.
 *
 * A session's sort is written out in one of these ways:
 *
 *	  as a run	  While the session is fed.  The sort's pages are chunks of rows and keys, to be
 *				  read back by ranges.  It stops being the session's sort when writing begins.
 *	  as pages	  While rows are being returned.  The pages of rows go to files unchanged.  Fetches
 *				  are answered by the device until all pages are written, then from the files.
 *	  as an index When all runs are written.  Writes no rows, but sorts the index of the runs, so that
 *				  they can be cut into ranges.
 *
 * Pages come into buffers, several at a time, and are written from there.  The sort is closed when
 * all are written.
 *
 *	  NONE -> PERFORMING	 a run begins		   NONE -> WRITING	  pages begin
 *	  PERFORMING -> WRITING  it is sorted		   NONE -> PERFORMING -> NONE  an index
 *	  WRITING -> NONE		 all pages are written
 *	  WRITING -> ENDING		 a page could not be written, or is not needed any more
 *	  ENDING -> NONE		 its jobs have ended: the sort still has the pages
 *	  ENDING -> STUCK		 the jobs of a run have ended that met temp_file_limit: its rows go back
 *							 to the leader from the device, as images
 *	  any -> ENDING, NONE	 the session fails, or closes
 *
 * Tests: regress/spill, tap/spill_faults
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "fault.h"
#include "service/service_private.h"

TimestampTz gs_pages_failed_at = 0;

static bool
open_spill(int number)
{
	ServedSession *s = &gs_served[number];
	const GsSession *session = &gs_sessions[number];
	char		path[GS_SPILL_PATH_BYTES];

	if (!gs_session_temp_path(path, session->temp_tablespace, session->pid, session->id))
		return false;
	s->spill = gs_spill_open(gs_served_io, path, GS_CHUNK_BYTES);
	if (s->spill == NULL)
		return false;
	if (session->temp_limit >= 0)
		gs_spill_limit(s->spill, session->temp_limit);
#ifdef GPUSORT_FAULTS
	if (GS_FAULT("spill_create"))
		gs_spill_plant(s->spill, GS_SPILL_CREATE, EACCES);
#endif
	return true;
}

/* Ask the device for pages, one for each free buffer. */
static void
fetch_pages(int number)
{
	ServedSession *s = &gs_served[number];
	WriteOut   *out = &s->out;
	int			buffer;

	while (out->asked < out->n_pages &&
		   (buffer = gs_buffer_take(number, BUFFER_FETCHING)) >= 0)
	{
		ServiceBuffer *b = gs_buffer(buffer);

		b->number = out->asked++;
		gs_job_begin(&b->job);
		out->busy++;
		gs_ops->fetch(out->sort, b->number, gs_buffer_memory(buffer), &b->job);
	}
}

/* Note which rows each page holds.  False: no memory. */
static bool
note_pages(ServedSession *s, const GsSortResult *result)
{
	uint64	   *grown = realloc(s->page_first, (result->n_pages + 1) * sizeof(uint64));

	if (grown == NULL)
		return false;
	for (uint64 i = 0; i <= result->n_pages; i++)
		grown[i] = result->n_pages > 0 ? result->page_first[i] : 0;
	s->page_first = grown;
	s->n_pages = result->n_pages;
	return true;
}

/* The sort is in order: begin with its pages.  False: no memory. */
static bool
begin_pages(int number)
{
	ServedSession *s = &gs_served[number];
	WriteOut   *out = &s->out;
	GsSortResult result = {0};

	out->phase = OUT_WRITING;
	gs_ops->result(out->sort, &result);
	out->n_pages = result.n_pages;
	if (out->kind != WRITE_RUN)
		return note_pages(s, &result);
	s->done.row_bytes += result.row_bytes;
	s->done.key_bytes += result.key_bytes;
	s->run_held += gs_memory_held(out->sort);
	s->run_bytes += result.row_bytes + result.key_bytes +
		(result.n_rows + result.n_dropped) * sizeof(GsRecord);
	return gs_spill_begin_run(s->spill, result.n_pages);
}

/* Pages of a sort stay where they are; else the session has failed. */
static bool
cannot_begin(int number)
{
	ServedSession *s = &gs_served[number];

	if (s->out.kind == WRITE_PAGES)
	{
		memset(&s->out, 0, sizeof(s->out));
		s->unwritable = true;
	}
	else
		gs_served_fail(number);
	return false;
}

bool
gs_write_begin(int number, WriteKind kind)
{
	ServedSession *s = &gs_served[number];
	WriteOut   *out = &s->out;

	Assert(out->phase == OUT_NONE && !gs_served_is_over(s));
	memset(out, 0, sizeof(*out));
	out->kind = kind;
	if (s->spill == NULL && !open_spill(number))
		return cannot_begin(number);
	gs_served_mark_due(number);
	switch (kind)
	{
		case WRITE_RUN:
			out->sort = s->sort;
			s->sort = NULL;
			out->phase = OUT_PERFORMING;
			out->busy++;
			gs_job_perform(number, out->sort, GS_FORMAT_CHUNKS, &out->job);
			return true;
		case WRITE_INDEX:
			out->phase = OUT_PERFORMING;
			out->busy++;
			gs_job_begin(&out->job);
			gs_spill_seal(s->spill, &out->job);
			return true;
		case WRITE_PAGES:
			/* nobody asks for the pages of an earlier range any more */
			gs_spill_forget_pages(s->spill);
			out->sort = s->sort;
			break;
	}
	return begin_pages(number) || cannot_begin(number);
}

/* The runs can be cut into ranges. */
static void
index_performed(int number)
{
	ServedSession *s = &gs_served[number];
	GsStatus	status = gs_job_status(&s->out.job);

	memset(&s->out, 0, sizeof(s->out));
	gs_served_mark_due(number);
	if (status != GS_OK)
		gs_served_fail(number);
	else if (s->phase == SERVED_FED)
		gs_served_enter(number, SERVED_RANGES);
}

/* A run has been sorted. */
static void
run_performed(int number)
{
	ServedSession *s = &gs_served[number];
	GsStatus	status = gs_job_outcome(number, &s->out.job);

	s->out.busy--;
	s->out.phase = OUT_ENDING;
	if (gs_served_is_over(s))
		return;
	gs_memory_note_freed(s->device);	/* performing a sort needs memory for a while */
	if (status != GS_OK || !begin_pages(number))
		gs_served_fail(number);
}

static void
note_spill(int number)
{
	gs_lock();
	gs_sessions[number].outcome.n_runs = gs_spill_runs(gs_served[number].spill);
	gs_job_note_files(number);
	gs_unlock();
}

static void
close_out(int number)
{
	ServedSession *s = &gs_served[number];

	gs_job_close_sort(number, s->out.sort);
	if (s->sort == s->out.sort)
		s->sort = NULL;
	memset(&s->out, 0, sizeof(s->out));
	gs_served_mark_due(number);
}

/* All has been written. */
static void
written(int number)
{
	ServedSession *s = &gs_served[number];

	switch (s->out.kind)
	{
		case WRITE_RUN:
			gs_spill_end_run(s->spill);
			break;
		case WRITE_INDEX:
			break;
		case WRITE_PAGES:
			/* until fetches under way have ended, the sort on the device stays open */
			if (s->phase != SERVED_FILED)
				gs_served_enter(number, SERVED_FILED);
			if (s->pending > 0)
				return;
			break;
	}
	close_out(number);
	note_spill(number);
}

/*
 * temp_file_limit was met, or no file descriptor is left.  The rows go back to the leader, whose own sort
 * may need fewer bytes in files, or none.
 */
static void
meet_limit(int number)
{
	gs_served[number].out.phase = OUT_ENDING;
	gs_load_cancel(number);
	gs_served_overflow(number, gs_spill_lacks_file(gs_served[number].spill) ? GS_FALLBACK_DESCRIPTORS :
					   GS_FALLBACK_FILES);
}

/* All jobs of an abandoned write have ended.  Files of pages are removed. */
static void
given_up(int number)
{
	ServedSession *s = &gs_served[number];

	if (s->phase == SERVED_FAILED && s->pending > 0)
		return;
	if (s->out.kind == WRITE_PAGES)
	{
		gs_spill_forget_pages(s->spill);

		/* its rows stay where they are, unless the session has failed: then sort is closed */
		memset(&s->out, 0, sizeof(s->out));
		gs_served_mark_due(number);
	}
	else if (s->phase == SERVED_FAILED)
		close_out(number);
	else
	{
		s->out.phase = OUT_STUCK;
		gs_served_mark_due(number);
	}
}

void
gs_write_abandon_pages(int number)
{
	WriteOut   *out = &gs_served[number].out;

	if (out->phase == OUT_WRITING)
		out->phase = OUT_ENDING;
}

void
gs_write_step(int number)
{
	ServedSession *s = &gs_served[number];
	WriteOut   *out = &s->out;

	if (out->phase == OUT_PERFORMING && gs_job_status(&out->job) != GS_PENDING)
	{
		if (out->kind == WRITE_INDEX)
			index_performed(number);
		else
			run_performed(number);
	}
	if (s->phase == SERVED_CLOSING)
		return;
	if (s->phase == SERVED_FAILED && (out->phase == OUT_WRITING || out->phase == OUT_STUCK))
		out->phase = OUT_ENDING;
	if (out->phase == OUT_ENDING && out->busy == 0)
		given_up(number);
	if (out->phase != OUT_WRITING)
		return;
	fetch_pages(number);
	if (out->written == out->n_pages)
		written(number);
}

/* A page has come, and is to be written. */
static void
write_page(int buffer)
{
	ServiceBuffer *b = gs_buffer(buffer);
	ServedSession *s = &gs_served[b->session];
	WriteOut   *out = &s->out;
	char	   *memory = gs_buffer_memory(buffer);
	GsSortResult result = {0};

	b->use = BUFFER_WRITING;
	gs_job_begin(&b->job);
	out->busy++;
#ifdef GPUSORT_FAULTS
	if (out->kind == WRITE_RUN ? GS_FAULT("spill_write") : GS_FAULT("spill_page"))
		gs_spill_plant(s->spill, GS_SPILL_WRITE, ENOSPC);
#endif
	if (out->kind == WRITE_RUN)
	{
		gs_ops->result(out->sort, &result);
		gs_spill_write(s->spill, b->number, memory,
					   (uint32) (result.page_first[b->number + 1] - result.page_first[b->number]),
					   &b->job);
		return;
	}
	gs_spill_write_page(s->spill, b->number, memory,
						(uint32) (s->page_first[b->number + 1] - s->page_first[b->number]),
						gs_sessions[b->session].spec.minimal_tuples, &b->job);
}

/* A page could not be written. */
static void
note_unwritable(int number, const GsError *error)
{
	gs_pages_failed_at = GetCurrentTimestamp();
	ereport(LOG,
			(errmsg("gpusort keeps the rows of a cursor of process %d in memory: %s",
					gs_sessions[number].pid, error->message),
			 errdetail("For a minute no cursor's rows are written to files.")));
}

void
gs_write_buffer_ended(int buffer, GsStatus status)
{
	ServiceBuffer *b = gs_buffer(buffer);
	int			number = b->session;
	ServedSession *s = &gs_served[number];

	s->out.busy--;
	if (b->use == BUFFER_FETCHING && status == GS_OK && !gs_served_is_over(s) &&
		s->out.phase == OUT_WRITING)
	{
		write_page(buffer);
		return;
	}
	if (b->use == BUFFER_WRITING && status == GS_OK)
		s->out.written++;
	else if (s->out.kind == WRITE_PAGES || s->out.phase == OUT_ENDING)
	{
		s->out.phase = OUT_ENDING;
		if (b->use == BUFFER_WRITING && status == GS_INTERNAL && !s->unwritable)
			note_unwritable(number, &b->job.error);
		s->unwritable |= status != GS_OK;
	}
	else if (b->use == BUFFER_WRITING && status == GS_NO_MEMORY && gs_spill_has_met_limit(s->spill))
		meet_limit(number);
	else
		gs_served_fail(number);
	gs_buffer_free(buffer);
	gs_served_mark_due(number);
}
