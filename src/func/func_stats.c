/*-------------------------------------------------------------------------
 *
 * func_stats.c
 *	  The SQL functions behind gpusort's views.
 *
 * Tests: regress/views, tap/docs_examples
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_authid_d.h"
#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "gpusort.h"
#include "service/service_shmem.h"
#include "stats.h"

PG_FUNCTION_INFO_V1(gpusort_devices);
PG_FUNCTION_INFO_V1(gpusort_stats);
PG_FUNCTION_INFO_V1(gpusort_stat_reasons);
PG_FUNCTION_INFO_V1(gpusort_stat_times);
PG_FUNCTION_INFO_V1(gpusort_activity);
PG_FUNCTION_INFO_V1(gpusort_stats_reset);

static void
require_preloaded(void)
{
	if (gs_shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("gpusort must be loaded via shared_preload_libraries"),
				 errhint("Add gpusort to shared_preload_libraries and restart the server.")));
}

/*
 * An extension script of another version may declare other columns than this library returns.  That is an
 * error, because values would be read as the wrong types.
 */
static void
require_columns(TupleDesc tupdesc, const Oid *types, int n)
{
	bool		same = tupdesc->natts == n;

	for (int i = 0; same && i < n; i++)
		same = TupleDescAttr(tupdesc, i)->atttypid == types[i];
	if (!same)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("extension gpusort has another version than its library"),
				 errhint("Run ALTER EXTENSION gpusort UPDATE, or drop the extension and create it again.")));
}

/* For a function that returns rows of these columns. */
static ReturnSetInfo *
begin_rows(FunctionCallInfo fcinfo, const Oid *types, int n)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	require_preloaded();
	InitMaterializedSRF(fcinfo, 0);
	require_columns(rsinfo->setDesc, types, n);
	return rsinfo;
}

static Datum
text_or_null(const char *string, bool *isnull)
{
	*isnull = string[0] == '\0';
	return *isnull ? (Datum) 0 : CStringGetTextDatum(string);
}

static const char *
device_state(const GsShared *shared, const GsSharedDevice *device)
{
	if (shared->state == GS_SERVICE_OFF)
		return "off";
	if (shared->stuck)
		return "stuck";
	if (shared->state != GS_SERVICE_READY || !shared->alive)
		return "starting";
	return device->ready ? "ready" : "lost";
}

/* A row for each device; one row without a number if none was found yet. */
Datum
gpusort_devices(PG_FUNCTION_ARGS)
{
	static const Oid types[] = {
		INT4OID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, INT8OID, INT8OID, INT8OID, INT8OID,
		INT8OID, INT4OID, INT4OID, TIMESTAMPTZOID
	};
	ReturnSetInfo *rsinfo = begin_rows(fcinfo, types, lengthof(types));
	GsShared	copy;
	int			sorts[GS_MAX_DEVICES] = {0};

	gs_lock_shared();
	copy = *gs_shared;
	for (int i = 0; i < copy.n_sessions; i++)
		if (gs_sessions[i].state != GS_SESSION_FREE && gs_sessions[i].device >= 0)
			sorts[gs_sessions[i].device]++;
	gs_unlock();

	/* sorts without a device yet can only go to this one */
	if (copy.n_devices <= 1)
		sorts[0] = copy.n_open;
	for (int i = 0; i < Max(copy.n_devices, 1); i++)
	{
		const GsSharedDevice *device = &copy.devices[i];
		Datum		values[lengthof(types)];
		bool		nulls[lengthof(types)] = {0};

		values[0] = Int32GetDatum(i);
		nulls[0] = copy.n_devices == 0;
		values[1] = text_or_null(copy.device_kind, &nulls[1]);
		values[2] = text_or_null(device->info.name, &nulls[2]);
		values[3] = text_or_null(device->info.uuid, &nulls[3]);
		values[4] = CStringGetTextDatum(device_state(&copy, device));
		values[5] = text_or_null(device->message[0] ? device->message :
								 copy.message[0] ? copy.message : copy.no_gpu, &nulls[5]);
		values[6] = Int64GetDatum(device->info.memory_total);
		values[7] = Int64GetDatum(device->info.memory_limit);
		values[8] = Int64GetDatum(device->info.memory_used);
		values[9] = Int64GetDatum((int64) copy.n_chunks * GS_CHUNK_BYTES);
		values[10] = Int64GetDatum((int64) (copy.n_chunks - copy.n_free) * GS_CHUNK_BYTES);
		values[11] = Int32GetDatum(sorts[i]);
		values[12] = Int32GetDatum(copy.pid);
		nulls[12] = copy.pid == 0;
		values[13] = TimestampTzGetDatum(copy.started);
		nulls[13] = copy.started == 0;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

static int64
sum(pg_atomic_uint64 *counts, int n)
{
	int64		total = 0;

	for (int i = 0; i < n; i++)
		total += pg_atomic_read_u64(&counts[i]);
	return total;
}

static Datum
reset_time(void)
{
	return TimestampTzGetDatum((TimestampTz) pg_atomic_read_u64(&gs_stats->reset_time));
}

Datum
gpusort_stats(PG_FUNCTION_ARGS)
{
	static const Oid types[] = {
		INT8OID, INT8OID, INT8OID, INT8OID, INT8OID, INT8OID, INT8OID, INT8OID, INT8OID, INT8OID,
		INT8OID, FLOAT8OID, FLOAT8OID, FLOAT8OID, INT8OID, INT8OID, TIMESTAMPTZOID
	};
	TupleDesc	tupdesc;
	Datum		values[lengthof(types)];
	bool		nulls[lengthof(types)] = {0};
	int64		in_process;
	int64		indexes;
	int64		on_device;
	int			column = 0;

	require_preloaded();
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	require_columns(tupdesc, types, lengthof(types));
	in_process = gs_stats_sorts(GS_KIND_PROCESS);
	indexes = gs_stats_sorts(GS_KIND_INDEX);
	on_device = gs_stats_sorts(GS_KIND_DEVICE) + indexes + gs_stats_sorts(GS_KIND_TABLE);
	values[column++] = Int64GetDatum(on_device + in_process);
	values[column++] = Int64GetDatum(on_device);
	values[column++] = Int64GetDatum(in_process);
	values[column++] = Int64GetDatum(indexes);
	for (int i = 0; i < GS_COUNT_COUNTERS; i++)
	{
		uint64		count = pg_atomic_read_u64(&gs_stats->counters[i]);

		values[column++] = i < GS_COUNT_STAGING_WAIT_US ? Int64GetDatum(count) :
			Float8GetDatum(count / 1000.0);
	}
	values[column++] = Int64GetDatum(sum(gs_stats->fallbacks, GS_FALLBACK_COUNT));
	values[column++] = Int64GetDatum(sum(gs_stats->refusals, GS_REFUSE_COUNT));
	values[column++] = reset_time();
	StaticAssertStmt(4 + GS_COUNT_COUNTERS + 3 == lengthof(values), "one value for each column");
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}

static void
put_reason(ReturnSetInfo *rsinfo, const char *kind, const char *reason, pg_atomic_uint64 *count)
{
	Datum		values[] = {
		CStringGetTextDatum(kind), CStringGetTextDatum(reason),
		Int64GetDatum(pg_atomic_read_u64(count)), reset_time()
	};
	bool		nulls[lengthof(values)] = {0};

	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* A row for each reason, also where its count is zero. */
Datum
gpusort_stat_reasons(PG_FUNCTION_ARGS)
{
	static const Oid types[] = {TEXTOID, TEXTOID, INT8OID, TIMESTAMPTZOID};
	ReturnSetInfo *rsinfo = begin_rows(fcinfo, types, lengthof(types));

	for (int i = 0; i < GS_FALLBACK_COUNT; i++)
		put_reason(rsinfo, "fallback", gs_fallback_name((GsFallback) i), &gs_stats->fallbacks[i]);
	for (int i = 0; i < GS_REFUSE_COUNT; i++)
		put_reason(rsinfo, "refusal", gs_refusal_name((GsRefusal) i), &gs_stats->refusals[i]);
	return (Datum) 0;
}

static void
put_times(ReturnSetInfo *rsinfo, GsSortKind kind, int row_class, int time_class)
{
	GsTimes    *times = &gs_stats->times[kind][row_class][time_class];
	uint64		sorts = pg_atomic_read_u64(&times->sorts);
	uint64		max_rows = gs_stats_max_rows(row_class);
	uint64		max_ms = gs_stats_max_ms(time_class);
	Datum		values[] = {
		CStringGetTextDatum(gs_sort_kind_name(kind)), Int64GetDatum(max_rows), Int64GetDatum(max_ms),
		Int64GetDatum(sorts), Float8GetDatum(pg_atomic_read_u64(&times->ns) / 1e6), reset_time()
	};
	bool		nulls[lengthof(values)] = {false, max_rows == 0, max_ms == 0};

	if (sorts > 0)
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* A row for each class that has sorts. */
Datum
gpusort_stat_times(PG_FUNCTION_ARGS)
{
	static const Oid types[] = {TEXTOID, INT8OID, INT8OID, INT8OID, FLOAT8OID, TIMESTAMPTZOID};
	ReturnSetInfo *rsinfo = begin_rows(fcinfo, types, lengthof(types));

	for (int kind = 0; kind < GS_KIND_COUNT; kind++)
		for (int i = 0; i < GS_ROW_CLASSES; i++)
			for (int j = 0; j < GS_TIME_CLASSES; j++)
				put_times(rsinfo, (GsSortKind) kind, i, j);
	return (Datum) 0;
}

Datum
gpusort_stats_reset(PG_FUNCTION_ARGS)
{
	require_preloaded();
	gs_stats_reset();
	PG_RETURN_VOID();
}

/* As in pg_stat_activity, everybody sees whose session it is, but only some roles see what it does. */
static bool
may_see(const GsSession *session, Oid user)
{
	return has_privs_of_role(user, ROLE_PG_READ_ALL_STATS) || has_privs_of_role(user, session->role);
}

/* The columns of gpusort_activity that everybody sees: the first ones. */
#define ACTIVITY_PUBLIC	3

/* The state of a session, in words. */
static const char *
session_phase(const GsSession *session)
{
	const char *full = session->overflow_reason == GS_FALLBACK_ROLE ? "role full" :
		session->overflow_reason == GS_FALLBACK_FILES ? "files full" :
		session->overflow_reason == GS_FALLBACK_DESCRIPTORS ? "no files" :
		session->overflow_reason == GS_FALLBACK_REFUSED ? "rows refused" : "device full";

	switch (session->state)
	{
		case GS_SESSION_FREE:
			return "free";
		case GS_SESSION_FEEDING:
			if (session->overflow)
				return psprintf("feeding, %s", full);
			return session->outcome.n_runs > 0 ? "feeding, writing runs" : "feeding";
		case GS_SESSION_ARRAYS:
			return "sorting arrays";
		case GS_SESSION_SORTING:
			return "sorting";
		case GS_SESSION_SORTED:
			return "returning rows";
		case GS_SESSION_OVERFLOW:
			return psprintf("returning rows, %s", full);
		case GS_SESSION_CLOSING:
			return "closing";
	}
	return "unknown";
}

Datum
gpusort_activity(PG_FUNCTION_ARGS)
{
	static const Oid types[] = {
		INT4OID, OIDOID, OIDOID, INT4OID, TEXTOID, INT8OID, INT8OID, INT8OID, INT4OID, INT8OID, BOOLOID,
		TIMESTAMPTZOID
	};
	ReturnSetInfo *rsinfo = begin_rows(fcinfo, types, lengthof(types));
	int			n = 0;
	GsSession  *open;

	/* few of them are open, so most of this memory is never touched */
	open = palloc_extended(gs_shared->n_sessions * sizeof(GsSession), MCXT_ALLOC_HUGE);
	gs_lock_shared();
	for (int i = 0; i < gs_shared->n_sessions; i++)
		if (gs_sessions[i].state != GS_SESSION_FREE)
			open[n++] = gs_sessions[i];
	gs_unlock();

	for (int i = 0; i < n; i++)
	{
		Datum		values[lengthof(types)];
		bool		nulls[lengthof(types)] = {0};

		values[0] = Int32GetDatum(open[i].pid);
		values[1] = ObjectIdGetDatum(open[i].database);
		values[2] = ObjectIdGetDatum(open[i].user);
		values[3] = Int32GetDatum(open[i].device);
		nulls[3] = open[i].device < 0;
		values[4] = CStringGetTextDatum(session_phase(&open[i]));
		values[5] = Int64GetDatum(open[i].rows);
		values[6] = Int64GetDatum(open[i].bytes);
		values[7] = Int64GetDatum((int64) open[i].held * GS_CHUNK_BYTES);
		values[8] = Int32GetDatum(open[i].outcome.n_runs);
		values[9] = Int64GetDatum(open[i].outcome.temp_bytes);
		values[10] = BoolGetDatum(open[i].outcome.limited);
		values[11] = TimestampTzGetDatum(open[i].opened);
		for (int j = ACTIVITY_PUBLIC; j < (int) lengthof(types) && !may_see(&open[i], GetUserId()); j++)
			nulls[j] = true;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	pfree(open);
	return (Datum) 0;
}
