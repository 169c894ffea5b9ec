/*-------------------------------------------------------------------------
 *
 * service_shmem.h
 *	  What backends and the gpusort service share: the staging arena, its
 *	  chunks, the sessions, and the service's own state.
 *
 * Locking
 *	  GsShared->lock (an LWLock) protects every field of GsShared,
 *	  GsChunk and GsSession below, except where a field's comment says
 *	  otherwise.  It is held for a few loads and stores only, never while
 *	  waiting, copying or calling a device.  These are the exceptions:
 *
 *	  - Fields marked [S] only the service writes, with the lock, as long as the
 *		session is open.  It reads them without; so does the leader, once it has seen
 *		the state that they tell of.
 *	  - Fields marked [O] are set when the session is opened, and are constant then.
 *		Whoever has heard of the session by the lock reads them without.
 *
 *	  A chunk's memory belongs to the party that its state names and is touched by
 *	  nobody else.
 *
 * Chunk states and who owns the memory
 *	  FREE		   nobody; on the free list
 *	  HELD		   the backend process that took it
 *	  APPENDING	   the service: rows are on their way to the device
 *	  REJECTED	   nobody; its rows did not get onto the device.  On the
 *				   session's rejected list, for the leader to take back
 *	  FETCHING	   the service: what GsFetchKind says is on its way from the
 *				   device
 *	  FETCHED	   an image, or arrays: the backend that asked for it.  A page: nobody.
 *				   The leader takes it (HELD); or the service gives the chunk up,
 *				   when the page has lain there for a second
 *
 * README.md says by which rules chunks and sessions are promised and shared, so that no sort waits for
 * another one for ever, and what a generation is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SERVICE_SHMEM_H
#define GS_SERVICE_SHMEM_H

#include "datatype/timestamp.h"
#include "delay.h"
#include "device/device.h"
#include "gpusort.h"
#include "guc.h"
#include "lib/ilist.h"
#include "spill/spill.h"
#include "stats.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "storage/lwlock.h"

/* The least number of chunks in the arena. */
#define GS_MIN_CHUNKS	4

/* Sessions for each chunk: a session that returns rows mostly holds no chunk. */
#define GS_SESSIONS_PER_CHUNK	4

/* Buffers promised to every device: one to write from, one to read into */
#define GS_DEVICE_BUFFERS	2

typedef enum GsServiceState
{
	GS_SERVICE_STARTING = 0,	/* not yet up, or being restarted */
	GS_SERVICE_READY,
	GS_SERVICE_OFF				/* will not come up: see message */
} GsServiceState;

typedef enum GsChunkState
{
	GS_CHUNK_FREE = 0,
	GS_CHUNK_HELD,
	GS_CHUNK_APPENDING,
	GS_CHUNK_REJECTED,
	GS_CHUNK_FETCHING,
	GS_CHUNK_FETCHED
} GsChunkState;

/* What a backend asks for in a chunk that it holds. */
typedef enum GsFetchKind
{
	GS_FETCH_PAGE,				/* a page of sorted rows */
	GS_FETCH_IMAGE,				/* a chunk as it was appended */
	GS_FETCH_ARRAYS				/* the chunk's own arrays, sorted in place */
} GsFetchKind;

typedef struct GsChunk
{
	GsChunkState state;
	int			session;		/* owning session's number, -1 where FREE */
	int			next;			/* free, request or rejected list; -1 ends it */
	uint32		data_bytes;		/* of rows and keys, while HELD..REJECTED */
	uint32		n_records;		/* records, or rows of the page */
	uint32		key_bytes;		/* of the keys that the device has to make */
	GsFetchKind fetch;			/* FETCHING, FETCHED: what was asked for */
	uint64		number;			/* FETCHING, FETCHED: of the page or image */
	uint64		first_row;		/* FETCHED: of a page, counted in its range */
	GsStatus	status;			/* FETCHED: outcome */
	uint64		request;		/* FETCHING, FETCHED: when it was asked for; never used twice */
	TimestampTz fetched;		/* FETCHED, a page: when it came, or was left */
	bool		filling;		/* HELD: one of the session's filling */
} GsChunk;

/* The share of staging memory that the sorts of a role have. */
typedef struct GsShare
{
	Oid			role;
	int			users;			/* sessions, and backends that wait for one; 0: not in use */
	int			sessions;
	int			chunks;			/* that these hold or were promised */
	dlist_head	queue;			/* tickets of backends that wait for a session, oldest first */
} GsShare;

/* A backend's place in the queue for a session. */
typedef struct GsTicket
{
	uint64		number;			/* 0: it is not in it */
	int			share;			/* its role's */
	dlist_node	node;			/* in the share's queue */
	ConditionVariable cv;		/* wakes the backend; has its own lock */
} GsTicket;

typedef enum GsSessionState
{
	GS_SESSION_FREE = 0,
	GS_SESSION_FEEDING,			/* chunks are appended */
	GS_SESSION_ARRAYS,			/* chunks of arrays are sorted, one by one */
	GS_SESSION_SORTING,			/* the leader asked for perform, or a range */
	GS_SESSION_SORTED,			/* pages can be fetched */
	GS_SESSION_OVERFLOW,		/* no device memory: images can be fetched */
	GS_SESSION_CLOSING			/* the service will free it */
} GsSessionState;

/* The purpose of a session. */
typedef struct GsSessionSpec
{
	GsSortSpec	sort;			/* set by its caller: how the device makes keys that feeders leave to it; or
								 * elem and descending, of arrays */
	int			key_columns;	/* number of columns in keys */
	GsKeep		keep;			/* other rows may be dropped, as far as keys show which these are */
	bool		minimal_tuples; /* rows are, so that each begins with its own length */
	double		group_rows;		/* rows expected, if the leader has another plan for few groups
								 * (group_sample.h); else 0 */
} GsSessionSpec;

/* A session's outcome, for its leader. */
typedef struct GsSessionOutcome
{
	uint64		n_rows;
	uint64		n_dropped;		/* rows that were not kept */
	bool		counted;		/* rows are one of equal ones, each with their number (GsKeep) */
	uint64		n_images;		/* chunks that went to the device */
	uint64		table_pages;	/* pages of tables whose rows were put at once */
	uint64		row_bytes;
	uint64		key_bytes;
	char		engine[32];
	double		copy_in_ms;		/* device time */
	double		sort_ms;
	double		gather_ms;		/* so far */
	double		copy_out_ms;	/* so far */
	uint32		n_runs;			/* written to temporary files so far; 0: none */
	uint32		n_ranges;		/* known so far */
	uint64		temp_bytes;		/* of files */
	bool		limited;		/* gpusort.role_memory held it up, or had it written out */
} GsSessionOutcome;

typedef struct GsSession
{
	uint64		id;				/* never used twice */
	int			device;			/* its number; -1: none yet [S] */
	GsSessionState state;		/* a step reads it once (gs_sort_advance()); who makes room for
								 * others looks at it without the lock, as it may change at once */
	bool		overflow;		/* FEEDING: feeders must feed no more [S] */
	bool		failed;			/* the session is of no more use: the device, or a file [S] */
	GsSpillFailure failure;		/* of a file, if it was one [S] */
	GsFallback	overflow_reason;	/* [S] */
	uint64		generation;		/* of the service that it was opened with [O] */
	int			next;			/* free or request list; -1 ends it */
	bool		queued;			/* on the request list */

	/* who [O] */
	int			pid;
	Oid			database;
	Oid			user;
	Oid			role;			/* that the connection was made as */
	int			share;			/* that role's */
	TimestampTz opened;

	GsSessionSpec spec;			/* what [O] */
	bool		declined;		/* a feeder found few groups: the leader will close the session */

	/* what all sorts of the role may hold on the devices (service_role.c) */
	uint64		role_memory;	/* bytes; 0: no limit [O] */

	/* temporary files [S], but range_wanted and counts_wanted */
	Oid			temp_tablespace;	/* where they are made [O] */
	int64		temp_limit;		/* bytes; -1: none [O] */
	uint64		temp_written;	/* bytes, so far [S] */
	uint64		temp_read;		/* [S] */
	uint32		range_wanted;	/* SORTING: what the leader waits for */
	bool		counts_wanted;	/* SORTING: one row of equal ones will do, with their number */
	uint32		range;			/* SORTED: the one that pages are of */
	bool		range_ties;		/* its first row has the key of the last row of
								 * the range before it */

	/* chunks */
	int			reserved;
	int			filling;		/* chunks that feeders fill in place */
	int			held;			/* chunks whose session this is */
	int			rejected;		/* head of the list of REJECTED chunks */

	/* progress */
	uint64		rows;			/* appended, or arrays sorted, so far */
	uint64		bytes;
	uint64		inexact;		/* records with an inexact key */

	uint64		n_pages;		/* SORTED: of the range, where there are ranges [S] */
	GsSessionOutcome outcome;	/* [S], but table_pages */

	/* wakes the session's backends; has its own lock */
	ConditionVariable cv;
} GsSession;

/* A device, for the views; numbers begin at 0. */
typedef struct GsSharedDevice
{
	bool		ready;			/* sorts go to it, while the service serves */
	char		message[GS_MESSAGE_BYTES];	/* why not, or that device_memory is too high */
	GsDeviceInfo info;			/* [S], but memory_used changes without the lock */
} GsSharedDevice;

typedef struct GsShared
{
	LWLock	   *lock;			/* constant after start-up */
	int			n_chunks;		/* constant */
	int			n_buffers;		/* constant; the service's own, after the
								 * chunks in the arena */
	int			n_sessions;		/* constant */
	int			n_shares_used;	/* those from this number on are not in use */
	Size		arena_bytes;	/* constant */

	/* the service */
	GsServiceState state;
	uint64		generation;		/* of the running service; 0: never ran */
	bool		alive;			/* a service of this generation serves */
	int			pid;
	Latch	   *latch;			/* the service's, NULL while none runs */
	TimestampTz started;
	char		kind[8];		/* "cuda", "host" */
	char		message[GS_MESSAGE_BYTES];	/* why OFF, or the last failure */
	char		no_gpu[GS_MESSAGE_BYTES];	/* why the CPU stands in for a GPU */
	int			n_devices;		/* of the last service that found any */
	GsSharedDevice devices[GS_MAX_DEVICES];

	/* chunks */
	int			free_chunk;		/* head of the free list, last in first out:
								 * few pages of the arena stay in use */
	int			n_free;
	int			promised;		/* sum of max(reserved - held, 0) */
	int			n_idle_pages;	/* FETCHED, and nobody has taken them yet */
	uint64		next_request;

	/* sessions */
	int			free_session;
	uint64		next_session_id;
	int			n_open;

	/* requests to the service, first in first out; head -1: none, whatever tail is */
	int			chunk_queue_head;
	int			chunk_queue_tail;
	int			session_queue_head;
	int			session_queue_tail;

	/* those who wait for a session, first come first served (gs_tickets) */
	int			n_waiting;
	uint64		next_ticket;
	TimestampTz served;			/* when one of them was given a session last */

	/* wakes readers that wait for a chunk; has its own lock */
	ConditionVariable chunk_cv;
} GsShared;

/* Valid in every process once shared memory is attached; else NULL. */
extern GsShared *gs_shared;
extern GsChunk *gs_chunks;
extern GsSession *gs_sessions;
extern char *gs_arena;

/* Nobody takes or releases the lock in another way. */
#define gs_lock()			(GS_DELAY(), (void) LWLockAcquire(gs_shared->lock, LW_EXCLUSIVE))
#define gs_lock_shared()	(GS_DELAY(), (void) LWLockAcquire(gs_shared->lock, LW_SHARED))
#define gs_unlock()			(LWLockRelease(gs_shared->lock), GS_DELAY())

extern GsTicket *gs_tickets;	/* by backend, MaxBackends of them */
extern GsShare *gs_shares;		/* in no order */

static inline char *
gs_chunk_memory(int chunk)
{
	return gs_arena + (Size) chunk * GS_CHUNK_BYTES;
}

/* ---- service_shmem.c ---- */

extern void gs_service_shmem_request(void);
extern void gs_service_shmem_startup(void);

/* There will be no service: called before shared memory is set up. */
extern void gs_service_shmem_off(const char *message);

/* Put on a request list; the caller holds the lock. */
extern void gs_session_request(int session);
extern void gs_chunk_request(int chunk);

/*
 * The path that the names of a session's temporary files begin with, so that a
 * restart of the server removes them; false: it is too long.
 */
extern bool gs_session_temp_path(char path[GS_SPILL_PATH_BYTES], Oid tablespace, int pid,
								 uint64 id);

/* ---- service_staging.c; in all of these the caller holds the lock ---- */

extern int	gs_session_alloc(int feeders);	/* -1: none to be had now */
extern void gs_session_free(int session);	/* frees its chunks as well */

/* Change a session's promise, as far as chunks can be promised. */
extern void gs_session_reserve(GsSession *session, int reserved);

extern int	gs_chunk_take(GsSession *session);	/* -1: none may be taken now */
extern int	gs_chunk_take_for_page(GsSession *session); /* the same, for a page that a reader waits for */
extern int	gs_chunk_fill(GsSession *session);	/* the same, to fill it in place */
extern void gs_chunk_filled(int chunk); /* no longer, if it was */
extern void gs_chunk_free(int chunk);
extern void gs_page_leave(int chunk);	/* HELD or FETCHING -> FETCHED */
extern void gs_page_take(int chunk);	/* FETCHED -> HELD */

extern GsTicket *gs_my_ticket(void);	/* this process's; for its cv without the lock */
extern void gs_queue_enter(void);
extern bool gs_queue_first(void);	/* does nobody wait who came before, and could go on? */
extern bool gs_queue_leave(void);	/* was this process in it? */

/* Release the lock, and wake who may go on with chunks or a session that were freed under it. */
extern void gs_unlock_and_wake(void);

#endif							/* GS_SERVICE_SHMEM_H */
