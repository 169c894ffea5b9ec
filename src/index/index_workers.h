/*-------------------------------------------------------------------------
 *
 * index_workers.h
 *	  Parallel workers of an index build, for whatever they are to do.
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

/* What they build, at the beginning of the memory that they share. */
typedef struct GsIndexTarget
{
	Oid heap;
	Oid index;
	bool concurrent; /* which locks the leader holds */
	uint64 query_id; /* 0: the server computes none */
} GsIndexTarget;

typedef struct GsIndexWorkers
{
	ParallelContext *context; /* NULL: there are none */
	WalUsage *wal_usage; /* of each worker */
	BufferUsage *buffer_usage;
} GsIndexWorkers;

/*
 * Memory of shared_bytes for n workers, with its GsIndexTarget set; function is the
 * name of their main function.  NULL, and no parallel mode, where there is no
 * shared memory.
 */
extern void *gs_index_workers_begin(GsIndexWorkers *workers, const char *function, int n,
									Size shared_bytes, Relation heap, Relation index,
									bool concurrent);

/* How many there are: fewer than asked for perhaps, or none. */
extern int gs_index_workers_launch(GsIndexWorkers *workers);

/* Wait for their end.  Their errors become ours here. */
extern void gs_index_workers_wait(GsIndexWorkers *workers);

/* Give the shared memory back. */
extern void gs_index_workers_end(GsIndexWorkers *workers);

/* The shared memory; *heap and *index are open, locked as the leader has them. */
extern void *gs_index_worker_begin(shm_toc *toc, Relation *heap, Relation *index);
extern void gs_index_worker_end(shm_toc *toc, Relation heap, Relation index);

#endif /* GS_INDEX_WORKERS_H */
