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
 *	  - [S]: while the session is open, only the service writes the field, with the lock.  The
 *		service reads it without the lock.  So does the leader, after it has seen, with the lock,
 *		the state that the field belongs to.
 *	  - [O]: the field is set when the session is opened, and does not change afterwards.  A process
 *		that learnt of the session with the lock may read it without.
 *
 *	  A chunk's memory belongs to the party that its state names.  Nobody else touches it.
 *
 * Chunk states and who owns the memory
 *	  FREE		   nobody; on the free list
 *	  HELD		   the backend process that took it
 *	  APPENDING	   the service: rows are on their way to the device
 *	  REJECTED	   nobody; its rows are not on the device.  The chunk is on the session's
 *				   rejected list, for the leader to take back
 *	  FETCHING	   the service; a page, an image or sorted arrays are on their way
 *				   from the device
 *	  FETCHED	   an image, or arrays: the backend that asked for it.  A page: nobody.
 *				   The leader takes it (HELD); or the service frees the chunk
 *				   when the page has lain there for a second
 *
 * README.md has the rules by which chunks and sessions are promised and shared, so that no sort waits for
 * ever.  It also says what a generation is.
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

/* A backend's request for a chunk that it holds. */
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
	uint32		data_bytes;		/* HELD to REJECTED: bytes of rows and keys */
	uint32		n_records;		/* records, or rows of the page */
	uint32		key_bytes;		/* bytes of keys that the device must make */
	GsFetchKind fetch;			/* FETCHING, FETCHED: the request */
	uint64		number;			/* FETCHING, FETCHED: the page's or image's number */
	uint64		first_row;		/* FETCHED: the page's first row, counted in its range */
	GsStatus	status;			/* FETCHED: outcome */
	uint64		request;		/* FETCHING, FETCHED: the request's number, never used twice */
	TimestampTz fetched;		/* FETCHED, a page: when it came, or its reader left it */
	bool		filling;		/* HELD: a feeder fills it in place (GsSession.filling) */
} GsChunk;

/* A role that has sessions or waits for one, and the staging memory that it holds. */
typedef struct GsStagingRole
{
	Oid			role;
	int			users;			/* sessions, and backends that wait for one; 0: not in use */
	int			sessions;
	int			chunks;			/* chunks that these sessions hold or were promised */
	dlist_head	queue;			/* tickets of backends that wait for a session, oldest first */
} GsStagingRole;

/* A backend's place in the queue for a session. */
typedef struct GsTicket
{
	uint64		number;			/* 0: the backend is not in the queue */
	int			role_number;	/* index in gs_roles */
	dlist_node	node;			/* in its role's queue */
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

/* The sort that a session is opened for. */
typedef struct GsSessionSpec
{
	GsSortSpec	sort;			/* the caller sets tuple_keys; for arrays, elem and descending */
	int			key_columns;	/* number of columns in keys */
	GsKeep		keep;			/* the rows that are needed; others may be dropped */
	bool		minimal_tuples; /* rows are minimal tuples, so each begins with its length */
	double		group_rows;		/* rows expected, if the leader has another plan for few groups
								 * (group_sample.h); else 0 */
	double		few_groups;		/* it has that for fewer groups than this */
} GsSessionSpec;

/* A session's outcome, for its leader. */
typedef struct GsSessionOutcome
{
	uint64		n_rows;
	uint64		n_dropped;		/* rows that were not kept */
	bool		counted;		/* one row of equal ones is returned, with their number (GsKeep) */
	uint64		n_images;		/* chunks that went to the device */
	uint64		table_pages;	/* pages of tables that were put whole */
	uint64		row_bytes;
	uint64		key_bytes;
	char		engine[32];
	double		copy_in_ms;		/* device time */
	double		sort_ms;
	double		gather_ms;		/* so far */
	double		copy_out_ms;	/* so far */
	uint32		n_runs;			/* written to temporary files so far; 0: none */
	uint32		n_ranges;		/* known so far */
	uint64		temp_bytes;		/* the most bytes that its files had */
	bool		limited;		/* gpusort.role_memory made it wait, or be written out */
} GsSessionOutcome;

typedef struct GsSession
{
	uint64		id;				/* never used twice */
	int			device;			/* number of its device; -1: none yet [S] */
	GsSessionState state;		/* service_memory.c reads it without the lock: the state may change right
								 * afterwards anyway */
	bool		overflow;		/* FEEDING: feeders must feed no more [S] */
	bool		failed;			/* its rows are lost: the device or a file failed [S] */
	GsSpillFailure failure;		/* how the file failed, if one did [S] */
	GsFallback	overflow_reason;	/* [S] */
	uint64		generation;		/* when the session was opened [O] */
	int			next;			/* free or request list; -1 ends it */
	bool		queued;			/* on the request list */

	/* who [O] */
	int			pid;
	Oid			database;
	Oid			user;
	Oid			role;			/* the role that the connection was made as */
	int			role_number;	/* index in gs_roles */
	TimestampTz opened;

	GsSessionSpec spec;			/* [O] */
	bool		declined;		/* a feeder found few groups: the leader will close the session */

	/* device memory that all sorts of the role may hold (service_role.c) */
	uint64		role_memory;	/* bytes; 0: no limit [O] */

	/* temporary files */
	Oid			temp_tablespace;	/* where they are made [O] */
	int64		temp_limit;		/* bytes; -1: none [O] */
	uint64		temp_written;	/* bytes, so far [S] */
	uint64		temp_read;		/* bytes, so far [S] */
	uint32		range_wanted;	/* SORTING: the range that the leader waits for */
	bool		none_aside;		/* SORTING: the leader has put no row of the sort aside */
	uint32		range;			/* SORTED: the range whose pages can be fetched [S] */
	bool		range_ties;		/* its first row has the key of the last row of
								 * the range before it [S] */

	/* chunks */
	int			reserved;
	int			filling;		/* chunks that feeders fill in place */
	int			held;			/* chunks that are not FREE and belong to it */
	int			rejected;		/* head of the list of REJECTED chunks */

	/* progress */
	uint64		rows;			/* appended, or arrays sorted, so far */
	uint64		bytes;
	uint64		inexact;		/* records with an inexact key */

	uint64		n_pages;		/* SORTED: pages of the sort, or of the range [S] */
	GsSessionOutcome outcome;	/* [S], except table_pages */

	/* wakes the session's backends; has its own lock */
	ConditionVariable cv;
} GsSession;

/* A device, for the views; numbers begin at 0. */
typedef struct GsSharedDevice
{
	bool		ready;			/* sorts go to it, while the service serves */
	char		message[GS_MESSAGE_BYTES];	/* why it is not ready, or that device_memory is too high */
	GsDeviceInfo info;			/* [S]; memory_used changes without the lock */
} GsSharedDevice;

typedef struct GsShared
{
	LWLock	   *lock;			/* constant after start-up */
	int			n_chunks;		/* constant */
	int			n_buffers;		/* constant; the service's own chunks, behind the others in the arena */
	int			n_sessions;		/* constant */
	int			n_roles_used;	/* entries of gs_roles from this one on are not in use */
	Size		arena_bytes;	/* constant */

	/* the service */
	GsServiceState state;
	uint64		generation;		/* of sessions that are opened now; 0: no service ever ran */
	uint64		began;			/* the first generation of the running service */
	bool		alive;			/* sessions of this generation are served */
	bool		stuck;			/* the service runs, but does not move: nobody is served */
	uint32		progress;		/* changes while the service and the devices move; atomic */
	int			pid;			/* 0: no service runs */
	Latch	   *latch;			/* the service's, NULL while none runs */
	TimestampTz started;
	char		device_kind[8]; /* GsDeviceOps.name: "cuda", "host" */
	char		message[GS_MESSAGE_BYTES];	/* why OFF, or the last failure */
	char		no_gpu[GS_MESSAGE_BYTES];	/* why the CPU stands in for a GPU */
	int			n_devices;		/* devices of the last service that found any */
	GsSharedDevice devices[GS_MAX_DEVICES];

	/* chunks */
	int			free_chunk;		/* head of the free list, last in first out:
								 * few pages of the arena stay in use */
	int			n_free;
	int			promised;		/* sum of max(reserved - held, 0) */
	int			n_idle_pages;	/* FETCHED pages: not taken yet, or left by their readers */
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

	/* backends that wait for a session, first come first served (gs_tickets) */
	int			n_waiting;
	uint64		next_ticket;
	TimestampTz served;			/* when one of them last got a session */

	/* wakes readers that wait for a chunk; has its own lock */
	ConditionVariable chunk_cv;
} GsShared;

/* Valid in every process once shared memory is attached; else NULL. */
extern GsShared *gs_shared;
extern GsChunk *gs_chunks;
extern GsSession *gs_sessions;
extern char *gs_arena;

/* The only way to take and to release the lock. */
#define gs_lock()			(GS_DELAY(), (void) LWLockAcquire(gs_shared->lock, LW_EXCLUSIVE))
#define gs_lock_shared()	(GS_DELAY(), (void) LWLockAcquire(gs_shared->lock, LW_SHARED))
#define gs_unlock()			(LWLockRelease(gs_shared->lock), GS_DELAY())

extern GsTicket *gs_tickets;	/* by backend, MaxBackends of them */
extern GsStagingRole *gs_roles;		/* in no order */

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

/* ---- service_staging.c: the caller holds the lock in all of these ---- */

extern int	gs_session_alloc(int feeders);	/* -1: the role may not open one now */
extern void gs_session_free(int session);	/* frees its chunks as well */

/* Change a session's promise, as far as chunks can be promised. */
extern void gs_session_reserve(GsSession *session, int reserved);

extern int	gs_chunk_take(GsSession *session);	/* -1: none may be taken now */
extern int	gs_chunk_take_for_page(GsSession *session); /* the same, for a page that a reader waits for */
extern int	gs_chunk_fill(GsSession *session);	/* the same, to fill it in place */
extern void gs_chunk_filled(int chunk); /* the chunk is not filled in place any more */
extern void gs_chunk_free(int chunk);
extern void gs_page_leave(int chunk);	/* HELD or FETCHING -> FETCHED */
extern void gs_page_take(int chunk);	/* FETCHED -> HELD */

extern GsTicket *gs_my_ticket(void);	/* this process's; its cv may be used without the lock */
extern void gs_queue_enter(void);
extern bool gs_queue_first(void);	/* is this process the next to get a session? */
extern bool gs_queue_leave(void);	/* true: this process was in the queue */

/* Release the lock, and wake processes that may go on with freed chunks or a freed session. */
extern void gs_unlock_and_wake(void);

#endif							/* GS_SERVICE_SHMEM_H */
