/*-------------------------------------------------------------------------
 *
 * client_private.h
 *	  A backend's session, for the files of client/ alone.
 *
 *	  client_chunks.c	 its chunks: fed, fetched, sorted
 *	  client.c			 the session: opened, attached, closed
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_CLIENT_PRIVATE_H
#define GS_CLIENT_PRIVATE_H

#include "lib/ilist.h"
#include "storage/latch.h"
#include "utils/resowner.h"

#include "client/client.h"
#include "fault.h"

/* How long a wait lasts before the waiter looks around by itself. */
#define GS_WAIT_MS		1000

struct GsClient
{
	GsSession  *session;
	int			number;
	uint64		id;
	uint64		generation;
	bool		leader;
	bool		closed;
	MemoryContextCallback callback;
	uint64		written_blocks;	/* blocks of the session's files that pgBufferUsage has already */
	uint64		read_blocks;
	ResourceOwner owner;		/* the owner when it was opened; NULL: that owner has ended well */
	dlist_node	node;			/* in open_sessions, until it is closed */
};

static inline bool
gs_client_is_mine(const GsClient *client)
{
	return client->session->id == client->id;
}

/* Has the service worked without a break since the session was opened? */
static inline bool
gs_client_is_served(const GsClient *client)
{
	return gs_shared->alive && gs_shared->generation == client->generation;
}

/* May that service still use the session's memory?  Then only the service frees it, even if it is stuck. */
static inline bool
gs_client_is_known(const GsClient *client)
{
	return gs_shared->pid != 0 && client->generation >= gs_shared->began;
}

static inline void
gs_client_wake_service(void)
{
	Latch	   *latch = gs_shared->latch;

	GS_DELAY();
	if (latch)
		SetLatch(latch);
}

/* With the lock held: add reads and writes of the session's files to pgBufferUsage, for EXPLAIN. */
extern void gs_client_count_temp_blocks(GsClient *client);

#endif							/* GS_CLIENT_PRIVATE_H */
