/*-------------------------------------------------------------------------
 *
 * spill.c
 *	  A sort in temporary files: opened, and closed.
 *
 * The kernel needs seconds to drop the pages of a file of many GB.  So a thread removes files.
 *
 * Tests: unit/plain/test_spill, tap/spill_faults
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "spill/spill_private.h"

GsSpill *
gs_spill_open(GsSpillIo *io, const char *path, uint32_t chunk_bytes)
{
	GsSpill    *spill;

	if (strlen(path) >= sizeof(spill->path))
		return NULL;
	spill = calloc(1, sizeof(GsSpill));
	if (spill == NULL)
		return NULL;
	pthread_mutex_init(&spill->lock, NULL);
	spill->io = io;
	spill->chunk_bytes = chunk_bytes;
	spill->limit = UINT64_MAX;
	strcpy(spill->path, path);
	for (int i = 0; i < GS_SPILL_FILES; i++)
		spill->files[i].fd = -1;
	io->n_spills++;
	return spill;
}

static void
clean_up(GsTask *task)
{
	GsSpill    *spill = (GsSpill *) task;

	gs_spill_files_remove(spill, 0);
	gs_spill_ranges_free(spill);
	gs_spill_runs_free(spill);
	gs_spill_pages_free(spill);
	pthread_mutex_destroy(&spill->lock);
	free(spill);
}

void
gs_spill_close(GsSpill *spill)
{
	GsSpillIo  *io = spill->io;

	spill->cleanup.run = clean_up;
	io->n_spills--;
	if (io->pool != NULL)
		gs_pool_submit(io->pool, &spill->cleanup);
	else
	{
		clean_up(&spill->cleanup);
		if (io->n_spills == 0)
			free(io);
	}
}
