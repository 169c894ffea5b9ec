/*-------------------------------------------------------------------------
 *
 * index_workers.h
 *	  Parallel workers of an index build: for the scan, or for writing pages.
 *
 * The leader
 *	  1. gs_index_workers_begin; fill in the shared memory
 *	  2. gs_index_workers_launch
 *	  3. gs_index_workers_wait, gs_index_workers_end
 *	  It is in parallel mode from 1 to 3.  After an error the transaction's abort
 *	  ends the workers.
 *
 * A worker's main function calls gs_index_worker_begin first and
 * gs_index_worker_end last.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_INDEX_WORKERS_H
#define GS_INDEX_WORKERS_H

#include "access/parallel.h"
#include "executor/instrument.h"
#include "utils/rel.h"

/* The index that they build, at the beginning of their shared memory. */
typedef struct GsIndexTarget
{
	Oid heap;
	Oid index;
	bool concurrent; /* the leader holds the locks of a concurrent build */
	uint64 query_id; /* 0: the server computes none */
} GsIndexTarget;

typedef struct GsIndexWorkers
{
	ParallelContext *context; /* NULL: no workers */
	WalUsage *wal_usage; /* an array, by worker */
	BufferUsage *buffer_usage;
} GsIndexWorkers;

/*
 * Shared memory of shared_bytes for n workers, with its GsIndexTarget set; function is the
 * name of their main function.  NULL, and no parallel mode: no shared memory was available.
 */
extern void *gs_index_workers_begin(GsIndexWorkers *workers, const char *function, int n,
									Size shared_bytes, Relation heap, Relation index,
									bool concurrent);

/* Returns the number of workers launched, which may be fewer than asked for, or 0. */
extern int gs_index_workers_launch(GsIndexWorkers *workers);

/* Wait until they have ended.  Their errors are raised here. */
extern void gs_index_workers_wait(GsIndexWorkers *workers);

/* Free the shared memory, and leave parallel mode. */
extern void gs_index_workers_end(GsIndexWorkers *workers);

/* The shared memory; *heap and *index are open, locked as the leader has them. */
extern void *gs_index_worker_begin(shm_toc *toc, Relation *heap, Relation *index);
extern void gs_index_worker_end(shm_toc *toc, Relation heap, Relation index);

#endif /* GS_INDEX_WORKERS_H */
