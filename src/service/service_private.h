/*-------------------------------------------------------------------------
 *
 * service_private.h
 *	  The service's own state, shared by the files of the worker alone.
 *
 *	  service_worker.c	 the process: start, loop, end
 *	  service_requests.c requests of backends, and jobs that have ended
 *	  service_sort.c	 a session's steps: feeding, sorting, closing; making room
 *	  service_ranges.c	 a session that was written out: its ranges
 *	  service_feed.c	 chunks on their way to the device
 *	  service_write.c	 writing sorts out
 *	  service_load.c	 reading a range onto the device
 *	  service_memory.c	 who waits for device memory, and who is to make room
 *	  service_jobs.c	 a session's sorts on its device: opened, performed, closed
 *	  service_devices.c  the devices: opened, chosen, lost
 *	  service_role.c	 what the sorts of one role may hold
 *	  service_buffers.c	 the service's own chunks of the arena
 *	  service_served.c	 sessions, chunks and devices as the service knows them
 *
 * A file calls only files below it in this list.  To have a higher file act, it marks a session as due
 * (gs_served_mark_due()), or returns a Decision.
 *
 * Devices and threads
 *	  One thread, the main thread, serves all devices.  One is enough: calls of a device only queue
 *	  work, and each device has its own threads, which copy and sort.  Only the main thread calls
 *	  PostgreSQL, changes what this header declares, and takes GsShared->lock.  When a job ends, a
 *	  device's thread sets the job's status and calls notify.  Threads share only an atomic word and a
 *	  pipe, and need no lock.
 *
 *	  A session stays on one device from its first chunk until it is closed or the device is lost.
 *	  Sorts on a device contend for its memory, and for the turn to read a range back onto it.  All
 *	  devices share the staging memory, the buffers, and the threads for files.
 *
 *	  When a device is lost, its sessions fail (SERVED_FAILED), as they do when a file fails.  The
 *	  service tells their backends, and closes their sorts as the jobs end, even if no backend
 *	  listens.  The device stays open until the service ends.  The sorts of other devices go on.
 *
 * Buffers
 *	  Chunks of the arena that only the service uses.  A quarter is reserved for writing, so that room
 *	  can always be made.  Only one session per device reads at a time, so there is no deadlock.  Each
 *	  device is promised one buffer for writing and one for reading, so that no device waits for
 *	  another.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SERVICE_PRIVATE_H
#define GS_SERVICE_PRIVATE_H

#include "compat.h"
#include "lib/ilist.h"
#include "service/service_shmem.h"
#include "spill/spill.h"

/* Seconds until the postmaster starts a failed service again. */
#define GS_RESTART_S		2

/* A reader becomes idle this long after its last request for a page. */
#define GS_IDLE_READER_MS	1000

/*
 * At most this number of requests, or of outcomes, share one taking of the lock.  One by one, they would wait
 * for it each time.
 */
#define GS_BATCH			64

typedef struct ServedDevice
{
	bool		ready;			/* takes sorts; false: the device failed, and so do its sorts */
	GsDevice   *device;			/* NULL: it could not be opened */
	GsDeviceConfig config;		/* ordinal -1: no device has the name */
	bool		tried;			/* the attempt to open it has ended; atomic */
	GsStatus	status;			/* of that attempt */
	GsError		error;
	uint64		n_freed;		/* counts how often sorts have freed its memory */
	uint64		n_ended;		/* GsDeviceInfo.jobs_ended, when all devices moved */
	int			reading;		/* the session that reads a range (service_load.c); -1: none */
	int			n_users;		/* sessions that have a sort on it, or wait for one */
} ServedDevice;

/* Where a session stands: service_served.c draws the transitions. */
typedef enum ServedPhase
{
	SERVED_FREE,				/* no request has come */
	SERVED_FED,					/* sort receives rows, and is written out as runs when memory is short */
	SERVED_WHOLE,				/* sort holds all rows, and is performed or being performed */
	SERVED_RANGES,				/* runs hold all rows; ranges are loaded from them */
	SERVED_FILED,				/* files hold the pages of the sort or range that is being returned */
	SERVED_OVERFLOW,			/* the leader takes its rows back */
	SERVED_FAILED,				/* its rows are lost */
	SERVED_CLOSING				/* it waits until its jobs have ended */
} ServedPhase;

typedef enum WriteKind
{
	WRITE_RUN,					/* writes the rows fed so far as a run */
	WRITE_PAGES,				/* writes the pages of the session's performed sort */
	WRITE_INDEX					/* writes nothing, but sorts the index of all runs */
} WriteKind;

/* How far writing has got; service_write.c draws the transitions. */
typedef enum WritePhase
{
	OUT_NONE,
	OUT_PERFORMING,				/* a run, or the index, is being sorted */
	OUT_WRITING,
	OUT_ENDING,					/* abandoned, but some jobs have not ended yet */
	OUT_STUCK					/* a run that may not be written: its rows go back as images */
} WritePhase;

/* The sort that is being written out of a session. */
typedef struct WriteOut
{
	WritePhase	phase;
	WriteKind	kind;
	GsDeviceSort *sort;			/* WRITE_PAGES: the session's own sort */
	GsJob		job;			/* OUT_PERFORMING: the job that sorts */
	uint64		n_pages;
	uint64		asked;			/* pages requested from the device so far */
	uint64		written;
	int			busy;			/* jobs under way, its buffers' included */
} WriteOut;

/* How far a load has got.  Up to LOAD_WAITING the device holds nothing of the range. */
typedef enum LoadPhase
{
	LOAD_NONE,
	LOAD_SPLITTING,				/* the range was too large, and is being split */
	LOAD_WAITING,				/* another session reads onto the device */
	LOAD_READING,
	LOAD_PERFORMING,
	LOAD_READY,
	LOAD_ENDING					/* given up, but some jobs have not ended yet */
} LoadPhase;

/* A range on its way to the device. */
typedef struct Load
{
	LoadPhase	phase;
	uint32		range;
	bool		wanted;			/* the leader waits for it */
	bool		refused;		/* the device had no room for the next piece */
	uint64		asked_at;		/* ServedDevice.n_freed when it asked for room */
	bool		all_read;		/* every piece was requested */
	bool		too_large;		/* LOAD_ENDING: the range is split next */
	GsSpillSplit *split;		/* LOAD_SPLITTING */
	GsDeviceSort *sort;
	GsSpillReader *reader;
	bool		ties;			/* the first row has the key of the last row of the range before */
	uint64		asked;			/* pieces requested from the files */
	uint64		appended;		/* pieces given to the device */
	int			appending;		/* appends under way */
	int			busy;			/* jobs under way, its buffers' included */
	bool		performing;		/* job is under way */
	GsJob		job;
} Load;

/*
 * Why the first waiting chunk of a session is not on its device.  A refusal by the role counts only once no
 * append is under way; until then this is WAIT_NOTHING.
 */
typedef enum WaitFor
{
	WAIT_NOTHING,
	WAIT_DEVICE,				/* the device had no room for the chunk */
	WAIT_ROLE,					/* gpusort.role_memory leaves no room for the chunk */
	WAIT_RUN					/* sort must be written out as a run first */
} WaitFor;

/* The service's own state of a session; backends see its GsSession. */
typedef struct ServedSession
{
	ServedPhase phase;			/* changed by gs_served_enter() only */
	int			device;			/* the device of all its sorts; -1: none yet */
	GsDeviceSort *sort;			/* receives chunks, and returns pages once it is performed */
	int			pending;		/* jobs under way for its chunks, and perform_job */
	int			appends;		/* appends among them */
	bool		performing;		/* perform_job is under way */
	GsJob		perform_job;
	GsSessionState state;		/* what its last request had, or the answer to that; before, FREE */
	uint32		range_wanted;	/* of that request */
	bool		due;			/* gs_served_mark_due() was called */
	bool		said_refused;	/* the log says that the device refused its rows */

	/* device memory */
	uint64		n_chunks;		/* append requests so far */
	int			waiting;		/* head of the list of waiting APPENDING chunks, ordered by number */
	WaitFor		wait_for;		/* why the first of them waits, or why the next chunk will */
	uint64		asked_at;		/* ServedDevice.n_freed before the appends under way began */
	TimestampTz waits_since;	/* when the wait for device memory began; 0: no wait */
	TimestampTz limited_since;	/* when the wait for its role's memory began; 0: no wait */
	uint64		asked_bytes;	/* sum of gs_chunk_device_bytes() over jobs under way */
	TimestampTz last_used;		/* when pages became ready, or were last requested */

	/* files */
	GsSpill    *spill;			/* NULL: none */
	uint32		n_taken;		/* the leader has had this many ranges, from the first on */
	bool		no_read_ahead;	/* the device had no room to read ahead; cleared with the next range */
	bool		unwritable;		/* pages could not be written, and stay on the device */
	uint64		n_pages;		/* pages written, or being written */
	uint64	   *page_first;		/* the first row of each, as in GsSortResult; malloc'd */
	WriteOut	out;
	Load		load;
	GsSortResult done;			/* sums: n_dropped and times of closed sorts, bytes of runs */
	uint64		run_bytes;		/* bytes written in runs ... */
	uint64		run_held;		/* ... and device memory that their sorts held */

	/* for gs_served_update_active() alone */
	dlist_node	active;			/* in the list of active sessions, if next is not NULL */
	int			user_of;		/* the device that counts it among its users; -1: none */
} ServedSession;

/* The source of a page or an image that is fetched into a chunk. */
typedef enum FetchSource
{
	FROM_SORT,					/* the session's sort */
	FROM_OUT,					/* the run that could not be written */
	FROM_FILES
} FetchSource;

/* The service's own state of a chunk; backends see its GsChunk. */
typedef struct ServedChunk
{
	GsJob		job;
	bool		started;		/* the job began, and its outcome is not in the GsChunk yet */
	uint64		number;			/* an append's number in its session; a page's or image's in its source */
	FetchSource source;			/* where a page or an image comes from */
	GsSpillPiece piece;			/* describes an image; data_bytes is set only if it came from files */
} ServedChunk;

typedef enum BufferUse
{
	BUFFER_FREE,
	BUFFER_FETCHING,			/* a page comes from the device, to be written */
	BUFFER_WRITING,
	BUFFER_READING,				/* a piece comes from the files, to be appended */
	BUFFER_READ,				/* a piece waits for its turn, or for room */
	BUFFER_APPENDING
} BufferUse;

typedef struct ServiceBuffer
{
	BufferUse	use;
	int			session;
	int			device;			/* the session's device when the buffer was taken */
	uint64		number;			/* the page's or piece's number */
	GsSpillPiece piece;
	GsJob		job;
} ServiceBuffer;

extern const GsDeviceOps *gs_ops;
extern ServedDevice *gs_devices;
extern int	gs_n_devices;
extern GsSpillIo *gs_served_io;
extern ServedSession *gs_served;	/* by session number */
extern int	gs_n_served;		/* sessions from this number on are FREE */
extern ServedChunk *gs_served_chunks;	/* by chunk number */

/* Has the session failed, or is it closing?  Then nothing more is begun for it. */
static inline bool
gs_served_is_over(const ServedSession *s)
{
	return s->phase >= SERVED_FAILED;
}

/* Is a sort of it, or the index of its runs, being written out? */
static inline bool
gs_write_is_busy(const ServedSession *s)
{
	return s->out.phase != OUT_NONE && s->out.phase != OUT_STUCK;
}

/* May more be written?  Not if temp_file_limit was met, or descriptors are lacking. */
static inline bool
gs_write_is_allowed(const ServedSession *s)
{
	return s->spill == NULL || !gs_spill_has_met_limit(s->spill);
}

static inline uint64
gs_memory_held(GsDeviceSort *sort)
{
	return sort ? gs_ops->memory_held(sort) : 0;
}

/* service_served.c */
extern void gs_served_init(void);

/* Make a session FREE again.  It has no job under way, and nothing open. */
extern void gs_served_reset(int number);

/* Note a request for a session, before anything else is called for it. */
extern void gs_served_asked(int number);

/* Change a session's phase. */
extern void gs_served_enter(int number, ServedPhase phase);

/* Let the leader take its rows back, for this reason.  Does nothing if the session has failed or closes. */
extern void gs_served_overflow(int number, GsFallback reason);

/* The session's rows are lost, because a file or the device failed. */
extern void gs_served_fail(int number);

/* End its jobs on the device early. */
extern void gs_served_cancel(int number);

/* Have the session take a step, by gs_sort_advance(), before the service sleeps. */
extern void gs_served_mark_due(int number);

/* The next active session after this one, or -1 for the first; -1: there is none. */
extern int	gs_served_next(int number);

/*
 * Put the session on the list of active ones or take it off, and count it among its device's users.  Returns
 * true if nothing changed.
 */
extern bool gs_served_update_active(int number);

/* Note that the job of a chunk begins. */
extern void gs_served_start(int chunk);

/* Returns each chunk whose job has ended once, in the order in which the jobs began; -1: no more. */
extern int	gs_served_ended(void);

/* Has the session a sort on its device? */
extern bool gs_served_has_sort(int number);

/* Does it have a sort on this device, or chunks that wait for one there? */
extern bool gs_served_is_on(int number, int device);

/* service_buffers.c */
extern void gs_buffers_init(void);

/* Take a buffer for data from or to the session's device; -1: none is available now. */
extern int	gs_buffer_take(int number, BufferUse use);
extern void gs_buffer_free(int buffer);
extern ServiceBuffer *gs_buffer(int buffer);
extern char *gs_buffer_memory(int buffer);

/* The session's buffer that holds a piece, BUFFER_READ; -1: none.  Free all such buffers of the session. */
extern int	gs_buffer_find_read(int number, uint64 piece);
extern void gs_buffers_free_read(int number);

/* service_role.c */

/*
 * The device memory that a chunk will need, by estimate; and whether gpusort.role_memory of its session
 * leaves room for it.
 */
extern uint64 gs_chunk_device_bytes(int chunk);
extern bool gs_role_admits(int chunk);

/* GsSortSpec.spare_bytes for the session's sorts. */
extern uint64 gs_role_spare_bytes(int number);

/* Is the other session one of the same role, and limited? */
extern bool gs_role_is_same(int number, int other);

/* A chunk of the session was not admitted: the session waits from now on. */
extern void gs_role_wait(int number);

/* The session had to wait for its role, or make room for it. */
extern void gs_role_note(int number);

/* A session's share of its role's memory, and whether this part of the share is free. */
extern uint64 gs_role_share(int number);
extern bool gs_role_has_room(int number, double part);

/* Do chunks of the session wait for its role alone?  Have they waited longest of all in the role? */
extern bool gs_role_is_waited_for(int number);
extern bool gs_role_is_first(int number);

/* Does any session of its role wait?  -1: of any role? */
extern bool gs_role_is_short(int number);

/* service_devices.c */

/* Open the devices that the settings name.  Ends the service if none can be opened. */
extern void gs_devices_open(void (*notify) (void *arg));
extern void gs_devices_close(void);

/* Begin to pin staging memory; and when that has ended, report a failure. */
extern void gs_devices_pin_arena(void);
extern void gs_devices_note_pinned(void);

/* Log which devices sort; copy the state of the devices to shared memory. */
extern void gs_devices_report(void);
extern void gs_devices_publish(void);

/* Do all GPUs move?  A GPU moves if it has no job under way, or one has ended since the last true answer. */
extern bool gs_devices_move(void);

/* Called when the service is idle: restart it if a device should be opened again and no sort is open. */
extern void gs_devices_try_again(void);

/* Was a device lost that had been open?  The service will restart to open it again. */
extern bool gs_devices_are_lost(void);

/* The configuration was reloaded: try all failed devices again. */
extern void gs_devices_reloaded(void);

/* gpusort.device_memory has changed. */
extern void gs_devices_set_limit(void);
extern void gs_devices_trim(void);

/* Choose the device of a session that has none yet. */
extern void gs_device_assign(int number);

/* A device is lost: its sessions fail.  If it was the last one, the service ends. */
extern void gs_device_failed(int device, const GsError *error, GsStatus status);

/* Note that some memory of a device was freed. */
extern void gs_memory_note_freed(int device);

/* service_jobs.c */

/* The status of a session's job that has ended.  Notes a lost device, and rows that a device refuses. */
extern GsStatus gs_job_outcome(int number, const GsJob *job);

/* Why rows go back after a job that ended with this status. */
extern GsFallback gs_job_fallback(GsStatus status);

/*
 * Open a sort on the session's device.  has_keys: all rows will come with keys.  NULL: the device has no
 * memory; or it cannot sort such rows, and the session has overflowed; or it is lost, and the session has
 * failed or was moved to another device.
 */
extern GsDeviceSort *gs_job_open_sort(int number, bool has_keys);

/* Close a session's sort, which frees its memory, and add up its times. */
extern void gs_job_close_sort(int number, GsDeviceSort *sort);

/* Perform a sort of fed rows, dropping rows that the session need not return. */
extern void gs_job_perform(int number, GsDeviceSort *sort, GsPageFormat format, GsJob *job);

/* The result of the session's sort, or zeroes.  Asks the device, so the caller must not hold the lock. */
extern GsSortResult gs_job_result(int number);

/* With the lock held: show backends this result, and the sums over the session's closed sorts. */
extern void gs_job_note(int number, const GsSortResult *now);

/* Tell the waiting leader that its rows are sorted, or that it may take them back. */
extern void gs_leader_answer(int number);

/* With the lock held: show backends the bytes in the session's files. */
extern void gs_job_note_files(int number);

/* The same, and the times of fetches. */
extern void gs_job_note_fetches(int number, const GsSortResult *now);

/* service_memory.c */

/* Does a session wait for memory of the device?  -1: of any device? */
extern bool gs_memory_is_short(int device);

/* The bytes that a session's sorts should hold at most while others need memory. */
extern uint64 gs_memory_share(int device);

typedef enum Relief
{
	RELIEF_NONE,				/* no session waits, or none can make room */
	RELIEF_WAIT,				/* room will come by itself */
	RELIEF_RETRY,				/* memory was freed: the session tries again */
	RELIEF_LOAD,				/* the session drops the range that it read ahead */
	RELIEF_RUN,					/* the session writes its rows out as a run */
	RELIEF_PAGES,				/* the session writes its pages out */
	RELIEF_GIVE_UP				/* no session can make room: it splits its range, or overflows */
} Relief;

/* Which session makes room, and how.  service_sort.c carries it out. */
typedef struct Decision
{
	Relief		relief;
	int			session;
	bool		of_role;		/* room is short in gpusort.role_memory, not on a device */
} Decision;

/* Decide who makes room on a device. */
extern Decision gs_memory_decide(int device);

/* Decide who in a role makes room for a session whose chunks wait for the role. */
extern Decision gs_memory_decide_role(int number);

/* service_load.c */
extern void gs_load_begin(int number, uint32 range, bool wanted);
extern void gs_load_step(int number);
extern void gs_load_buffer_ended(int buffer, GsStatus status);

/* Go on with a load that was refused: memory was freed. */
extern void gs_load_retry(int number);

/* Give a load up, and split its range.  The session fails if the range cannot be split. */
extern void gs_load_shrink(int number);

/* Give a load up.  It becomes LOAD_NONE when its jobs have ended. */
extern void gs_load_cancel(int number);

/* service_write.c */

/* Begin to write out a session's sort.  False: the session has failed, or its pages stay on the device. */
extern bool gs_write_begin(int number, WriteKind kind);
extern void gs_write_step(int number);
extern void gs_write_buffer_ended(int buffer, GsStatus status);

/* When a page of a session last could not be written. */
extern TimestampTz gs_pages_failed_at;

/* Stop writing pages: the leader does not need them any more. */
extern void gs_write_abandon_pages(int number);

/* service_feed.c */

/* Serve the request to append a chunk. */
extern void gs_feed_request(int chunk);

/* An append has ended.  True: the caller takes the lock, calls gs_feed_note(), and wakes the session. */
extern bool gs_feed_ended(int chunk, GsStatus status);

/* With the lock held: note that a chunk was appended, and free it. */
extern void gs_feed_note(int chunk);

/* Append waiting chunks, or begin to write a run that is due. */
extern void gs_feed_step(int number);

/* Go on with appends that were refused: memory was freed. */
extern void gs_feed_retry(int number);

/* service_ranges.c */

/* Serve the leader, which waits for this range; all rows were fed. */
extern void gs_ranges_serve(int number, uint32 wanted);

/* Read the next range ahead, while there is room for it. */
extern void gs_ranges_read_ahead(int number);

/* service_sort.c */

/* Take a session one step further. */
extern void gs_sort_advance(int number);
extern bool gs_sort_note_ended(void);

/* Make room for the waiting sessions.  True: something was done. */
extern bool gs_sort_make_room(void);

/* Fault point: is a session in this state not to be sorted, so that a test finds it waiting? */
extern bool gs_sort_is_held_up(GsSessionState state);

/* service_requests.c */
extern bool gs_requests_serve(void);
extern bool gs_requests_note_ended(void);
extern bool gs_requests_give_up_pages(void);

#endif							/* GS_SERVICE_PRIVATE_H */
