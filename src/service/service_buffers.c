/*-------------------------------------------------------------------------
 *
 * service_buffers.c
 *	  Chunks of the arena that only the gpusort service uses, for temporary files.
 *
 * Neither writers nor readers may have more than three quarters of the buffers;
 * but one for each is promised to every device.
 *
 * Tests: regress/spill, tap/devices_several
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "service/service_private.h"

static ServiceBuffer *buffers = NULL;

void
gs_buffers_init(void)
{
	buffers = MemoryContextAllocZero(TopMemoryContext, gs_shared->n_buffers * sizeof(ServiceBuffer));
}

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

/* The buffers in use for writing, or for reading; of one device, or -1: of all. */
static int
count_used(int device, bool for_writing)
{
	int			n = 0;

	for (int i = 0; i < gs_shared->n_buffers; i++)
		if (buffers[i].use != BUFFER_FREE && writes(buffers[i].use) == for_writing &&
			(device < 0 || buffers[i].device == device))
			n++;
	return n;
}

/* Buffers that are promised to devices, and not taken yet. */
static int
count_promised(void)
{
	int			n = 0;

	for (int i = 0; i < gs_n_devices; i++)
		n += (count_used(i, true) == 0) + (count_used(i, false) == 0);
	return n;
}

int
gs_buffer_take(int number, BufferUse use)
{
	int			device = gs_served[number].device;
	int			n_writing = count_used(-1, true);
	int			n_reading = count_used(-1, false);
	int			n_free = gs_shared->n_buffers - n_writing - n_reading;
	int			buffer = 0;

	if (n_free == 0)
		return -1;
	if (count_used(device, writes(use)) > 0 &&
		((writes(use) ? n_writing : n_reading) >= gs_shared->n_buffers * 3 / 4 || n_free <= count_promised()))
		return -1;
	while (buffers[buffer].use != BUFFER_FREE)
		buffer++;
	buffers[buffer].use = use;
	buffers[buffer].session = number;
	buffers[buffer].device = device;
	return buffer;
}

/* Marks sessions as due that wait for a buffer. */
void
gs_buffer_free(int buffer)
{
	Assert(buffers[buffer].use != BUFFER_FREE);
	buffers[buffer].use = BUFFER_FREE;
	for (int i = -1; (i = gs_served_next(i)) >= 0;)
		if (gs_served[i].out.phase == OUT_WRITING || gs_served[i].load.phase == LOAD_READING ||
			gs_served[i].load.phase == LOAD_SPLITTING)
			gs_served_mark_due(i);
}

int
gs_buffer_find_read(int number, uint64 piece)
{
	for (int i = 0; i < gs_shared->n_buffers; i++)
		if (buffers[i].use == BUFFER_READ && buffers[i].session == number && buffers[i].number == piece)
			return i;
	return -1;
}

void
gs_buffers_free_read(int number)
{
	for (int i = 0; i < gs_shared->n_buffers; i++)
		if (buffers[i].use == BUFFER_READ && buffers[i].session == number)
			gs_buffer_free(i);
}
