/*-------------------------------------------------------------------------
 *
 * client.h
 *	  A backend's side of the gpusort service.
 *
 * A session is one sort.  Its leader opens it; parallel workers attach to it
 * by its handle and may only append.  The leader's session is closed with the
 * memory context that it was opened in, at the latest: errors need no other
 * clean-up.
 *
 * All waiting calls react to query cancel, and return GS_CLIENT_LOST when the
 * service that holds the rows is gone.  Where temporary files cannot be written
 * or read, they raise an error.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_CLIENT_H
#define GS_CLIENT_H

#include "chunk/chunk.h"
#include "service/service_shmem.h"
#include "stats.h"

typedef enum GsClientStatus
{
	GS_CLIENT_OK,
	GS_CLIENT_OVERFLOW,			/* the session's overflow_reason has occurred:
								 * append no more rows */
	GS_CLIENT_LOST,				/* the rows on the device are gone */
	GS_CLIENT_DECLINED			/* gs_client_decline() was called, by any process */
} GsClientStatus;

/* Names a session to other processes; fits into a DSM segment. */
typedef struct GsSessionHandle
{
	int			number;			/* -1: none */
	uint64		id;
} GsSessionHandle;

typedef struct GsClient GsClient;

/* Would a session opened now find a service? */
extern bool gs_client_service_ready(void);

/*
 * Open a session, so that so many processes can fill chunks in place if there are
 * enough; waits for a while (gpusort.wait_timeout).  NULL where that fails, with the
 * reason.
 */
extern GsClient *gs_client_open(const GsSessionSpec *spec, int feeders, GsFallback *reason);

/*
 * Any feeder: the rows have few groups, so no more are to be fed.  Does nothing, and answers false, once
 * so many rows were appended that the rest of the sort costs less than to begin again.
 */
extern bool gs_client_decline(GsClient *client);
extern GsSessionHandle gs_client_handle(const GsClient *client);

/* For another process that is to feed; NULL where the session is gone. */
extern GsClient *gs_client_attach(GsSessionHandle handle);
extern void gs_client_close(GsClient *client);

/*
 * A chunk to fill in place, for as long as the feeder likes; -1: there is none to be
 * had now.
 */
extern int	gs_client_fill_chunk(GsClient *client);

/*
 * A chunk to be handed over at once, or for a page that the caller needs now.  A session without a promise
 * must copy the page and give the chunk back before it waits for anything but this page.
 */
extern GsClientStatus gs_client_take_chunk(GsClient *client, bool for_page, int *chunk);
extern int	gs_client_try_chunk(GsClient *client);	/* -1: none free */
extern void gs_client_give_chunk(GsClient *client, int chunk);

/* Hand a chunk over with what was written into it; it is the service's from then on. */
extern GsClientStatus gs_client_append(GsClient *client, int chunk, const GsChunkWriter *written);

/*
 * Leader: order what was appended; no feeder may append any more.  count: of rows with equal keys one will
 * do, with their number; whether it is so GsSessionOutcome.counted tells.
 */
extern GsClientStatus gs_client_perform(GsClient *client, bool count);

/*
 * Leader, after perform: have the pages of another range at hand.  Chunks that were
 * asked for before are fetched first.  Any status but OK: the rows are lost.
 */
extern GsClientStatus gs_client_open_range(GsClient *client, uint32 range);

/* Leader, after perform: outcome and statistics of the session. */
extern const GsSession *gs_client_session(const GsClient *client);

/* Of several devices the session's, as the bit 1 << number; 0: there is one only. */
extern uint32 gs_client_devices(const GsClient *client);

/* Count a sort that was performed, with its bytes; not its rows, of which the caller may have others. */
extern void gs_client_count_sort(const GsClient *client);

/* Why PostgreSQL has to sort the rows, after this answer of any call; GS_FALLBACK_NONE: it has not. */
extern GsFallback gs_client_fallback(const GsClient *client, GsClientStatus status);

/*
 * Leader: ask for a page, or after overflow for the image of an appended chunk, in a
 * chunk that the caller holds.  Returns the request's number.
 */
extern uint64 gs_client_request(GsClient *client, int chunk, GsFetchKind kind, uint64 number);

/* Wait for an image. */
extern GsClientStatus gs_client_wait(GsClient *client, int chunk);

/*
 * Wait for a page; the caller holds the chunk then.  A page that has come and is not taken
 * for a second is given up: *chunk is -1 then, and the caller does not have it any more.
 */
extern GsClientStatus gs_client_wait_page(GsClient *client, int *chunk, uint64 request);

/* The same without waiting; false: it is on its way, or was given up. */
extern bool gs_client_try_page(GsClient *client, int *chunk, uint64 request);

/* The caller may want a page again, and does not hold it meanwhile. */
extern void gs_client_leave_page(GsClient *client, int chunk);

/* Change the session's promise of chunks, as far as can be; returns what it is now. */
extern int	gs_client_promise(GsClient *client, int chunks);

/*
 * Have the arrays of a chunk that the caller holds sorted in place, and wait
 * for it; the chunk is the caller's again then.
 */
typedef enum GsArraysOutcome
{
	GS_ARRAYS_SORTED,
	GS_ARRAYS_REFUSED,			/* by the device: each is sorted, or as it was */
	GS_ARRAYS_NO_SERVICE,		/* the same; no use in asking again */
	GS_ARRAYS_LOST				/* what the chunk holds is not to be used */
} GsArraysOutcome;

extern void gs_client_sort_arrays(GsClient *client, int chunk, uint32 data_bytes,
								  uint32 n_arrays);
extern GsArraysOutcome gs_client_wait_arrays(GsClient *client, int chunk);

/* Leader, after overflow: a chunk whose rows the device refused; -1: no more. */
extern int	gs_client_take_rejected(GsClient *client);

#endif							/* GS_CLIENT_H */
