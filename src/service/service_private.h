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
 *	  service_served.c	 sessions and chunks as the service knows them
 *
 * A file never calls one above it in this list.  It leaves word instead: it marks a session as due
 * (gs_served_mark_due()), or returns a Decision.
 *
 * Devices and threads
 *	  One thread serves all devices.  It needs no more: a device's calls only queue,
 *	  and each device has threads of its own, which copy and sort.  So none waits
 *	  for another one's.  Only the main thread calls PostgreSQL, changes what this
 *	  header declares, and takes GsShared->lock.  Other threads tell it of an end by
 *	  setting a job's status and then calling notify: an atomic word and a pipe are
 *	  all that threads share here, and there is no lock.
 *
 *	  A session is one device's from its first chunk on, until it is closed or the
 *	  device is lost.  Sorts share and contend for what is their device's: its memory, and
 *	  the turn to read a range back onto it.  All devices share the staging memory,
 *	  the buffers, and the threads for files.
 *
 *	  When a device is lost, its sessions fail like those whose files do
 *	  (SERVED_FAILED): their backends are told, and what they have on the device
 *	  is closed as its jobs end, whether a backend listens or not.  The device stays open
 *	  until the service ends, and the other devices' sorts go on.
 *
 * Buffers
 *	  Chunks of the arena that only the service uses.  A quarter of them
 *	  belongs to writing, so that room can always be made.  Only one session per device
 *	  reads at a time, so there is no deadlock.  One for writing and one for reading are
 *	  promised to each device, so that none waits for room on another one.
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

/* A reader that has not asked for a page for so long does not need its device. */
#define GS_IDLE_READER_MS	1000

typedef struct ServedDevice
{
	bool		ready;			/* sorts go to it; false: it failed, and so do its sorts */
	GsDevice   *device;			/* NULL: it could not be opened */
	GsDeviceConfig config;		/* ordinal -1: there is none of the name */
	bool		tried;			/* opening it has ended; atomic */
	GsStatus	status;			/* of that */
	GsError		error;

	uint64		n_freed;		/* how often memory was given back */
	int			reading;		/* the session that reads a range (service_load.c); -1: none */
	int			n_users;		/* sessions with something on it, or about to have */
} ServedDevice;

/* Where a session stands: service_served.c draws the transitions. */
typedef enum ServedPhase
{
	SERVED_FREE,				/* the service was asked for nothing */
	SERVED_FED,					/* rows come: into sort, and from there into runs if need be */
	SERVED_WHOLE,				/* sort has all rows; it is performed, or being so */
	SERVED_RANGES,				/* all rows are in runs: ranges are loaded */
	SERVED_FILED,				/* the pages at hand are in files */
	SERVED_OVERFLOW,			/* the rows go back to the leader */
	SERVED_FAILED,				/* of no more use */
	SERVED_CLOSING				/* until its jobs have ended */
} ServedPhase;

typedef enum WriteKind
{
	WRITE_RUN,					/* the rows fed so far, as a run */
	WRITE_PAGES,				/* pages of the session's sort, which is in order */
	WRITE_INDEX					/* no rows: the index of all runs is put in order */
} WriteKind;

/* The state of writing it; service_write.c draws the transitions. */
typedef enum WritePhase
{
	OUT_NONE,
	OUT_PERFORMING,				/* a run, or the index, is being sorted */
	OUT_WRITING,
	OUT_ENDING,					/* given up: until its jobs have ended */
	OUT_STUCK					/* a run that may not be written: its rows go back as images */
} WritePhase;

/* What is being written out of a session. */
typedef struct WriteOut
{
	WritePhase	phase;
	WriteKind	kind;
	GsDeviceSort *sort;			/* of PAGES, the session's */
	GsJob		job;			/* PERFORMING */
	uint64		n_pages;
	uint64		asked;			/* pages that a buffer was given for */
	uint64		written;
	int			busy;			/* jobs of it and its buffers */
} WriteOut;

/* Up to LOAD_WAITING nothing of the range is on a device. */
typedef enum LoadPhase
{
	LOAD_NONE,
	LOAD_SPLITTING,				/* the range was too large */
	LOAD_WAITING,				/* until no other session reads */
	LOAD_READING,
	LOAD_PERFORMING,
	LOAD_READY,
	LOAD_ENDING					/* given up: until its jobs have ended */
} LoadPhase;

/* A range on its way to the device. */
typedef struct Load
{
	LoadPhase	phase;
	uint32		range;
	bool		wanted;			/* the leader waits for it */
	bool		refused;		/* the device had no room for the next piece */
	uint64		asked_at;		/* ServedDevice.n_freed when it asked for room */
	bool		all_read;		/* every piece was asked for */
	bool		too_large;		/* ENDING: split it then */
	GsSpillSplit *split;		/* SPLITTING */
	GsDeviceSort *sort;
	GsSpillReader *reader;
	bool		ties;			/* its first row with the range before */
	uint64		asked;			/* pieces asked for */
	uint64		appended;		/* pieces given to the device */
	int			appending;		/* of them: under way */
	int			busy;			/* jobs of it and its buffers */
	bool		performing;		/* its job is under way */
	GsJob		job;
} Load;

/*
 * The reason that the first of a session's waiting chunks is not on its device.  WAIT_NOTHING also if its
 * role may not hold it while appends are under way: when these end, it is looked at again.
 */
typedef enum WaitFor
{
	WAIT_NOTHING,
	WAIT_DEVICE,				/* sort had no room for it */
	WAIT_ROLE,					/* its role may not hold it now */
	WAIT_RUN					/* sort is to be written out as a run first */
} WaitFor;

/*
 * A session as the service knows it, beside its GsSession.  Its phase says where it stands; bools say
 * what is under way, or what was found out about the range at hand.
 */
typedef struct ServedSession
{
	ServedPhase phase;			/* changed by gs_served_enter() only */
	int			device;			/* of all its sorts; -1: none yet */
	GsDeviceSort *sort;			/* takes chunks; or pages are fetched from it */
	int			pending;		/* jobs of its chunks and of performing */
	int			appends;		/* of them: appends */
	bool		performing;
	GsJob		perform_job;
	bool		due;			/* gs_served_mark_due() was called */
	bool		said_refused;	/* the log has that its device refused its rows */

	/* device memory */
	uint64		n_chunks;		/* asked to be appended, so far */
	int			waiting;		/* head of the list of chunks in APPENDING that
								 * wait, by their number */
	WaitFor		wait_for;		/* of the first of them, or of the next one that comes */
	uint64		asked_at;		/* ServedDevice.n_freed when it was given the first of the chunks
									 * under way */
	TimestampTz waits_since;	/* for room on the device; 0: it does not */
	TimestampTz limited_since;	/* for its role, until a chunk is admitted; 0: it does not */
	uint64		asked_bytes;	/* about what jobs under way will hold, by gs_chunk_device_bytes() */
	TimestampTz last_used;		/* when pages were made ready, or last asked for */

	/* what was written out */
	GsSpill    *spill;			/* NULL: nothing */
	uint32		n_taken;		/* ranges, the first ones, that the leader has had */
	bool		no_read_ahead;	/* there was no room for it, until the next range */
	bool		unwritable;		/* pages could not be written: they stay on the device */
	uint64		n_pages;		/* written, or being written */
	uint64	   *page_first;		/* of these, as in GsSortResult; malloc'd */
	WriteOut	out;
	Load		load;
	GsSortResult done;			/* sums over sorts that were closed: of n_dropped and times
								 * over these, of bytes over all runs */
	uint64		run_bytes;		/* written in runs ... */
	uint64		run_held;		/* ... and what their sorts held for them */

	/* gs_served_update_active()'s own */
	dlist_node	active;			/* in the list, if next is not NULL */
	int			user_of;		/* the device that counts it among its users; -1: none */
} ServedSession;

/* Where a chunk's fetch takes its page or image from. */
typedef enum FetchSource
{
	FROM_SORT,					/* the session's sort */
	FROM_OUT,					/* the run that could not be written */
	FROM_FILES
} FetchSource;

/* A chunk as the service knows it, beside its GsChunk. */
typedef struct ServedChunk
{
	GsJob		job;
	bool		started;		/* the job was given, and what became of it is
								 * not in the GsChunk yet */
	uint64		number;			/* among the session's appended ones; of a fetch, in its source */
	FetchSource source;			/* of a page or an image */
	GsSpillPiece piece;			/* of an image; data_bytes is set only if it was read from files */
} ServedChunk;

typedef enum BufferUse
{
	BUFFER_FREE,
	BUFFER_FETCHING,			/* from the device, to be written */
	BUFFER_WRITING,
	BUFFER_READING,				/* from the spill, to be appended */
	BUFFER_READ,				/* no job: waits for its turn, or for room */
	BUFFER_APPENDING
} BufferUse;

typedef struct ServiceBuffer
{
	BufferUse	use;
	int			session;
	int			device;			/* that it is written from, or read to */
	uint64		number;			/* of the page or piece */
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

/* Nothing more is begun for the session. */
static inline bool
gs_served_is_over(const ServedSession *s)
{
	return s->phase >= SERVED_FAILED;
}

/* Is something of it on its way out? */
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

/* Nothing of the session is under way, or to be closed: it is FREE again. */
extern void gs_served_reset(int number);

/* Something is asked for a session; to be called before anything else. */
extern void gs_served_asked(int number);

/* Change a session's phase. */
extern void gs_served_enter(int number, ServedPhase phase);

/* Its rows go back to the leader, for this reason; nothing happens to one that does not sort any more. */
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
 * Put the session on the list of active ones, or take it off, and count it among its device's users.  True:
 * nothing had to change.
 */
extern bool gs_served_update_active(int number);

/* Note that a chunk's job begins. */
extern void gs_served_start(int chunk);

/* The next chunk whose job has ended, in the order in which jobs began, once each; -1: there is none. */
extern int	gs_served_ended(void);

/* Has the session a sort on its device? */
extern bool gs_served_has_sort(int number);

/* Has it one on this device, or does it wait for one there? */
extern bool gs_served_is_on(int number, int device);

/* service_buffers.c */
extern void gs_buffers_init(void);

/*
 * A buffer for a session, for what comes from its device or goes there: -1 where none
 * may be had now.
 */
extern int	gs_buffer_take(int number, BufferUse use);
extern void gs_buffer_free(int buffer);
extern ServiceBuffer *gs_buffer(int buffer);
extern char *gs_buffer_memory(int buffer);
extern int	gs_buffer_find(int number, BufferUse use, uint64 page_or_piece);
extern void gs_buffers_free_of(int number, BufferUse use);

/* service_role.c */

/*
 * About what a chunk will hold on a device when it has been appended; and whether the role of
 * its session may hold that, beside what it holds.  Always so without gpusort.role_memory.
 */
extern uint64 gs_chunk_device_bytes(int chunk);
extern bool gs_role_admits(int chunk);

/* GsSortSpec.spare_bytes of its sorts. */
extern uint64 gs_role_spare_bytes(int number);

/* Is another one a session of the same role that has a limit? */
extern bool gs_role_is_same(int number, int other);

/* A chunk of the session was not admitted: it waits, from now on. */
extern void gs_role_wait(int number);

/* The session had to wait for its role, or make room for it. */
extern void gs_role_note(int number);

/* What a session may have of its role's memory, and whether so much of that is free. */
extern uint64 gs_role_share(int number);
extern bool gs_role_has_room(int number, double part);

/* Do chunks of the session wait for its role, and for nothing else?  Longest of all in the role? */
extern bool gs_role_is_waited_for(int number);
extern bool gs_role_is_first(int number);

/* Does any session of its role wait?  -1: of any role? */
extern bool gs_role_is_short(int number);

/* service_devices.c */

/* Open the devices that the settings name; without any, end the service. */
extern void gs_devices_open(void (*notify) (void *arg));
extern void gs_devices_close(void);

/* Begin to pin staging memory; report, once that has ended, a failure. */
extern void gs_devices_pin_arena(void);
extern void gs_devices_note_pinned(void);

/* Say in the log what sorts; show in shared memory how it is. */
extern void gs_devices_report(void);
extern void gs_devices_publish(void);

/* For when nothing else is to be done: restart if a device should be opened again and no sort is open. */
extern void gs_devices_try_again(void);

/* A device that was open is lost: it is tried again at some time. */
extern bool gs_devices_are_lost(void);

/* The configuration was reloaded: that should be so for all that failed. */
extern void gs_devices_reloaded(void);

/* gpusort.device_memory has changed. */
extern void gs_devices_set_limit(void);
extern void gs_devices_trim(void);

/* Choose the device of a session that has none yet. */
extern void gs_device_assign(int number);

/* It cannot be used any more: its sessions fail; the last one's failure ends the service. */
extern void gs_device_failed(int device, const GsError *error, GsStatus status);

/* Some memory of a device was given back. */
extern void gs_memory_note_freed(int device);

/* service_jobs.c */

/* The status of a session's job once it has ended; notes a lost device, or that it refuses the rows. */
extern GsStatus gs_job_outcome(int number, const GsJob *job);

/* Why rows go back after a job that ended so. */
extern GsFallback gs_job_fallback(GsStatus status);

/*
 * NULL: the device has no memory; or it cannot sort such rows, and then the session has overflowed; or it is
 * lost, and then the session has failed, or another device.  has_keys: the rows come with their keys.
 */
extern GsDeviceSort *gs_job_open_sort(int number, bool has_keys);

/* Close a session's sort, whose memory others may have then; note what it tells of its times. */
extern void gs_job_close_sort(int number, GsDeviceSort *sort);

/* Have a sort of the rows that a session was fed performed, and rows dropped that it need not return. */
extern void gs_job_perform(int number, GsDeviceSort *sort, GsPageFormat format, GsJob *job);

/* The result of the session's sort, or zeroes.  The device is asked, so the lock is not held. */
extern GsSortResult gs_job_result(int number);

/* With the lock held: that, and what other sorts of it add, for the session's backends. */
extern void gs_job_note(int number, const GsSortResult *now);

/* The leader's wait is over, or it may take its rows back. */
extern void gs_leader_answer(int number);

/* With the lock held: note what is in its files. */
extern void gs_job_note_files(int number);

/* The same, and the times of what was fetched. */
extern void gs_job_note_fetches(int number, const GsSortResult *now);

/* service_memory.c */

/* Does anybody wait for room on the device?  -1: on any? */
extern bool gs_memory_is_short(int device);

/* The most that a session's sorts should hold while others also want memory. */
extern uint64 gs_memory_share(int device);

typedef enum Relief
{
	RELIEF_NONE,				/* nobody waits, or nothing can be done */
	RELIEF_WAIT,				/* by waiting */
	RELIEF_RETRY,				/* some memory was given back: it tries again */
	RELIEF_LOAD,				/* give up what was read ahead */
	RELIEF_RUN,					/* write its rows out as a run */
	RELIEF_PAGES,				/* write its pages out */
	RELIEF_GIVE_UP				/* nobody can make room: the session goes on without */
} Relief;

/* Who is to make room, and how: service_sort.c carries it out. */
typedef struct Decision
{
	Relief		relief;
	int			session;
	bool		of_role;		/* for what a role may hold */
} Decision;

/* Who is to make room on a device? */
extern Decision gs_memory_decide(int device);

/* And who of its role, for a session whose chunks wait for that? */
extern Decision gs_memory_decide_role(int number);

/* service_load.c */
extern void gs_load_begin(int number, uint32 range, bool wanted);
extern void gs_load_step(int number);
extern void gs_load_buffer_ended(int buffer, GsStatus status);

/* The device has memory again: go on, if it had none. */
extern void gs_load_retry(int number);

/* Give a load up, and make its range smaller; the session fails where it cannot be. */
extern void gs_load_shrink(int number);

/* Give a load up; it is LOAD_NONE once its jobs have ended. */
extern void gs_load_cancel(int number);

/* service_write.c */

/*
 * Writes out a session's sort.  Returns false if that has failed, or if its pages stay where they are.
 */
extern bool gs_write_begin(int number, WriteKind kind);
extern void gs_write_step(int number);
extern void gs_write_buffer_ended(int buffer, GsStatus status);

/* When a page of any session could not be written to its file. */
extern TimestampTz gs_pages_failed_at;

/* Files are not needed for the rows that are being written. */
extern void gs_write_abandon_pages(int number);

/* service_feed.c */

/* A chunk is to be appended. */
extern void gs_feed_request(int chunk);

/* It was, or not. */
extern void gs_feed_ended(int chunk, GsStatus status);

/* Give chunks that wait to the device, and begin to write out what is due. */
extern void gs_feed_step(int number);

/* The device has memory again: go on, if it had none. */
extern void gs_feed_retry(int number);

/* service_ranges.c */

/* All has been fed, and the leader waits for a range. */
extern void gs_ranges_serve(int number, uint32 wanted);

/* Read the next range ahead, while there is room for it. */
extern void gs_ranges_read_ahead(int number);

/* service_sort.c */
extern void gs_sort_advance(int number);
extern bool gs_sort_note_ended(void);

/* Have room made for the waiting sessions; true if anything has happened. */
extern bool gs_sort_make_room(void);

/* For tests, which want to find sorts waiting: is a session to be left alone that is to be sorted? */
extern bool gs_sort_is_held_up(GsSessionState state);

/* service_requests.c */
extern bool gs_requests_serve(void);
extern bool gs_requests_note_ended(void);
extern bool gs_requests_give_up_pages(void);

#endif							/* GS_SERVICE_PRIVATE_H */
