/*-------------------------------------------------------------------------
 *
 * index_workers.c
 *	  Parallel workers of an index build (index_workers.h).
 *
 * This does for workers what PostgreSQL's own parallel builds do: it passes on the
 * query's text, which monitoring views show, adds their use of WAL and buffers to the
 * leader's, and shares the leader's locks (_bt_begin_parallel and
 * _bt_parallel_build_main in nbtsort.c).
 *
 * Tests: regress/index_settings, tap/index_faults
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "pgstat.h"
#include "tcop/tcopprot.h"

#include "gpusort.h"
#include "index/index_workers.h"

#define KEY_SHARED UINT64CONST(0x6770757300000001)
#define KEY_QUERY UINT64CONST(0x6770757300000002)
#define KEY_WAL_USAGE UINT64CONST(0x6770757300000003)
#define KEY_BUFFERS UINT64CONST(0x6770757300000004)

static void *
add_zeroed(ParallelContext *context, uint64 key, Size bytes)
{
	void *memory = shm_toc_allocate(context->toc, bytes);

	memset(memory, 0, bytes);
	shm_toc_insert(context->toc, key, memory);
	return memory;
}

void *
gs_index_workers_begin(GsIndexWorkers *workers, const char *function, int n, Size shared_bytes,
					   Relation heap, Relation index, bool concurrent)
{
	Size query_bytes = debug_query_string ? strlen(debug_query_string) + 1 : 0;
	Size wal_bytes = mul_size(n, sizeof(WalUsage));
	Size buffer_bytes = mul_size(n, sizeof(BufferUsage));
	ParallelContext *context;
	GsIndexTarget *target;

	EnterParallelMode();
	context = CreateParallelContext(GPUSORT_NAME, function, n);
	shm_toc_estimate_chunk(&context->estimator, shared_bytes);
	shm_toc_estimate_chunk(&context->estimator, wal_bytes);
	shm_toc_estimate_chunk(&context->estimator, buffer_bytes);
	shm_toc_estimate_keys(&context->estimator, 3);
	if (query_bytes > 0)
	{
		shm_toc_estimate_chunk(&context->estimator, query_bytes);
		shm_toc_estimate_keys(&context->estimator, 1);
	}
	InitializeParallelDSM(context);
	if (context->seg == NULL)
	{
		DestroyParallelContext(context);
		ExitParallelMode();
		return NULL;
	}

	workers->context = context;
	workers->wal_usage = add_zeroed(context, KEY_WAL_USAGE, wal_bytes);
	workers->buffer_usage = add_zeroed(context, KEY_BUFFERS, buffer_bytes);
	if (query_bytes > 0)
		memcpy(add_zeroed(context, KEY_QUERY, query_bytes), debug_query_string, query_bytes);

	target = shm_toc_allocate(context->toc, shared_bytes);
	target->heap = RelationGetRelid(heap);
	target->index = RelationGetRelid(index);
	target->concurrent = concurrent;
	target->query_id = pgstat_get_my_query_id();
	shm_toc_insert(context->toc, KEY_SHARED, target);
	return target;
}

int
gs_index_workers_launch(GsIndexWorkers *workers)
{
	LaunchParallelWorkers(workers->context);
	return workers->context->nworkers_launched;
}

void
gs_index_workers_wait(GsIndexWorkers *workers)
{
	WaitForParallelWorkersToFinish(workers->context);
	for (int i = 0; i < workers->context->nworkers_launched; i++)
		InstrAccumParallelQuery(&workers->buffer_usage[i], &workers->wal_usage[i]);
}

void
gs_index_workers_end(GsIndexWorkers *workers)
{
	DestroyParallelContext(workers->context);
	workers->context = NULL;
	ExitParallelMode();
}

static LOCKMODE
heap_lock(const GsIndexTarget *target)
{
	return target->concurrent ? ShareUpdateExclusiveLock : ShareLock;
}

static LOCKMODE
index_lock(const GsIndexTarget *target)
{
	return target->concurrent ? RowExclusiveLock : AccessExclusiveLock;
}

void *
gs_index_worker_begin(shm_toc *toc, Relation *heap, Relation *index)
{
	GsIndexTarget *target = shm_toc_lookup(toc, KEY_SHARED, false);

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	pgstat_report_query_id(target->query_id, false);
	*heap = table_open(target->heap, heap_lock(target));
	*index = index_open(target->index, index_lock(target));
	InstrStartParallelQuery();
	return target;
}

void
gs_index_worker_end(shm_toc *toc, Relation heap, Relation index)
{
	GsIndexTarget *target = shm_toc_lookup(toc, KEY_SHARED, false);
	WalUsage *wal_usage = shm_toc_lookup(toc, KEY_WAL_USAGE, false);
	BufferUsage *buffer_usage = shm_toc_lookup(toc, KEY_BUFFERS, false);

	InstrEndParallelQuery(&buffer_usage[ParallelWorkerNumber], &wal_usage[ParallelWorkerNumber]);
	index_close(index, index_lock(target));
	table_close(heap, heap_lock(target));
}
