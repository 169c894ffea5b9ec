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
 * Open a session; waits for a while (gpusort.wait_timeout).  NULL: that failed, for this reason.
 * feeders: processes that will fill chunks in place.  They get one chunk each, if there are enough.
 */
extern GsClient *gs_client_open(const GsSessionSpec *spec, int feeders, GsFallback *reason);

/*
 * Any feeder: stops the feeding, because the rows have few groups.  Returns false and changes nothing if
 * enough rows were appended that going on costs less than beginning again.
 */
extern bool gs_client_decline(GsClient *client);
extern GsSessionHandle gs_client_handle(const GsClient *client);

/* For another process that feeds.  NULL: the session is gone. */
extern GsClient *gs_client_attach(GsSessionHandle handle);
extern void gs_client_close(GsClient *client);

/* A chunk to fill in place, for as long as the feeder likes; -1: none is free now. */
extern int	gs_client_fill_chunk(GsClient *client);

/*
 * A chunk that the caller hands over at once; or, for_page, a chunk for a page that it needs now.  A session
 * without a promise must copy the page and give the chunk back before it waits for anything but this page.
 */
extern GsClientStatus gs_client_take_chunk(GsClient *client, bool for_page, int *chunk);
extern int	gs_client_try_chunk(GsClient *client);	/* -1: none free */
extern void gs_client_give_chunk(GsClient *client, int chunk);

/* Hand a chunk over with what was written into it; it is the service's from then on. */
extern GsClientStatus gs_client_append(GsClient *client, int chunk, const GsChunkWriter *written);

/*
 * Leader: sort the appended rows; no feeder may append any more.  none_aside: these are all rows of the sort.
 * GsSessionOutcome.counted tells whether equal rows were counted.
 */
extern GsClientStatus gs_client_perform(GsClient *client, bool none_aside);

/*
 * Leader, after perform: change to the pages of another range.  Pages that were requested before
 * are fetched first.  Any status but OK: the rows are lost.
 */
extern GsClientStatus gs_client_open_range(GsClient *client, uint32 range);

/* Leader, after perform: outcome and statistics of the session. */
extern const GsSession *gs_client_session(const GsClient *client);

/* The session's device as the bit 1 << number; 0: there is only one device. */
extern uint32 gs_client_devices(const GsClient *client);

/* Count a performed sort and its bytes in the statistics.  The caller counts the rows. */
extern void gs_client_count_sort(const GsClient *client);

/* Why PostgreSQL has to sort the rows after this status, or GS_FALLBACK_NONE. */
extern GsFallback gs_client_fallback(const GsClient *client, GsClientStatus status);

/*
 * Leader: ask for a page, or after overflow for the image of an appended chunk, in a
 * chunk that the caller holds.  Returns the request's number.
 */
extern uint64 gs_client_request(GsClient *client, int chunk, GsFetchKind kind, uint64 number);

/* Wait for an image. */
extern GsClientStatus gs_client_wait(GsClient *client, int chunk);

/*
 * Wait for a page; the caller holds the chunk then.  The service gives a page up that nobody takes for a
 * second: then *chunk is -1, and the caller has lost the chunk.
 */
extern GsClientStatus gs_client_wait_page(GsClient *client, int *chunk, uint64 request);

/* The same without waiting.  False: the page is on its way, or was given up. */
extern bool gs_client_try_page(GsClient *client, int *chunk, uint64 request);

/* Leave a page in its chunk: the caller may take it again, or the service gives it up. */
extern void gs_client_leave_page(GsClient *client, int chunk);

/* Change the session's promise to this number of chunks, or as many as there are; returns the promise. */
extern int	gs_client_promise(GsClient *client, int chunks);

/* Sort the arrays of a chunk in place, and wait for that.  The caller holds the chunk before and after. */
typedef enum GsArraysOutcome
{
	GS_ARRAYS_SORTED,
	GS_ARRAYS_REFUSED,			/* the device did not sort them all; each is sorted or unchanged */
	GS_ARRAYS_NO_SERVICE,		/* the same, and the service is gone */
	GS_ARRAYS_LOST				/* the contents of the chunk must not be used */
} GsArraysOutcome;

extern void gs_client_sort_arrays(GsClient *client, int chunk, uint32 data_bytes,
								  uint32 n_arrays);
extern GsArraysOutcome gs_client_wait_arrays(GsClient *client, int chunk);

/* Leader, after overflow: a REJECTED chunk, to take its rows back; -1: no more. */
extern int	gs_client_take_rejected(GsClient *client);

#endif							/* GS_CLIENT_H */
