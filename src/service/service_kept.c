/*-------------------------------------------------------------------------
 *
 * service_kept.c
 *	  Runs of a session that stay on their devices.
 *
 * Such a run is a sort that was performed to chunks.  Its session's spill knows it as
 * a run like others, and asks the device for its chunks where ranges and images are read.
 * The sort is closed with the session, or once the run has been moved to files
 * (service_write.c), or when the session has failed; but never while a fetch of it is
 * under way.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "service/service_private.h"

void
gs_kept_add(int number, int device, GsDeviceSort *sort)
{
	ServedSession *s = &gs_served[number];
	KeptRun    *kept = &s->kept[s->n_kept];

	Assert(s->n_kept < GS_MAX_DEVICES);
	s->n_kept++;
	kept->sort = sort;
	kept->device = device;
	kept->run = gs_spill_runs(s->spill) - 1;
	kept->fetches = 0;
}

KeptRun *
gs_kept_find(int number, uint32 run)
{
	ServedSession *s = &gs_served[number];

	for (int i = 0; i < s->n_kept; i++)
		if (s->kept[i].run == run)
			return &s->kept[i];
	return NULL;
}

KeptRun *
gs_kept_on(int number, int device)
{
	ServedSession *s = &gs_served[number];
	KeptRun    *largest = NULL;

	for (int i = 0; i < s->n_kept; i++)
		if (s->kept[i].device == device &&
			(largest == NULL || gs_served_held(s->kept[i].sort) > gs_served_held(largest->sort)))
			largest = &s->kept[i];
	return largest;
}

uint64
gs_kept_bytes(int number, int device)
{
	const ServedSession *s = &gs_served[number];
	uint64		bytes = 0;

	for (int i = 0; i < s->n_kept; i++)
		if (device < 0 || s->kept[i].device == device)
			bytes += gs_served_held(s->kept[i].sort);
	return bytes;
}

void
gs_kept_fetch(int number, const GsSpillPiece *piece)
{
	if (piece->sort)
		gs_kept_find(number, piece->run)->fetches++;
}

GsStatus
gs_kept_fetched(int number, const GsSpillPiece *piece, const GsJob *job)
{
	KeptRun    *kept = gs_kept_find(number, piece->run);

	Assert(kept->sort == piece->sort && kept->fetches > 0);
	kept->fetches--;
	gs_served_wake(number);
	return gs_served_end(kept->device, job);
}

void
gs_kept_close(int number, KeptRun *kept)
{
	ServedSession *s = &gs_served[number];

	Assert(kept->fetches == 0);
	gs_served_close(number, kept->device, kept->sort);
	*kept = s->kept[--s->n_kept];
}

bool
gs_kept_close_all(int number)
{
	ServedSession *s = &gs_served[number];

	for (int i = s->n_kept - 1; i >= 0; i--)
	{
		KeptRun    *kept = &s->kept[i];

		gs_ops->cancel(kept->sort);
		if (kept->fetches == 0 && kept->sort != s->out.sort)
			gs_kept_close(number, kept);
	}
	return s->n_kept == 0;
}
