/*-------------------------------------------------------------------------
 *
 * func_collation_repair.c
 *	  The SQL procedure gpusort_collation_repair(): find the indexes that a new
 *	  version of a collation has broken, rebuild them, and record the version.
 *
 * REINDEX INDEX CONCURRENTLY consists of several transactions, and cannot run in a function.  So a
 * background worker handles each index.  It connects as the caller did, takes the caller's
 * role, and checks the index, or rebuilds it as a client would.  The caller starts one worker
 * after the other, waits, and reports.  CONCURRENTLY waits for sessions that hold a lock or a
 * snapshot, so the caller holds none meanwhile.
 *
 * Only the indexes themselves have a state.  A call goes on where an earlier call has ended, because rebuilt
 * indexes are in order.  A REINDEX CONCURRENTLY that was interrupted leaves an invalid index.  No query uses
 * it, so it does not matter here.  The user may drop it.
 *
 * Tests: tap/index_collation_change, tap/index_collation_repair
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_type_d.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "postmaster/bgworker.h"
#include "storage/dsm.h"
#include "storage/ipc.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "func/collation.h"
#include "gpusort.h"

PG_FUNCTION_INFO_V1(gpusort_collation_repair);
extern PGDLLEXPORT void gpusort_collation_worker(Datum main_arg);

typedef enum RepairResult
{
	REPAIR_NONE,				/* the worker did not finish */
	REPAIR_RIGHT,				/* in order, or dropped */
	REPAIR_BROKEN,
	REPAIR_DONE,				/* rebuilt */
	REPAIR_FAILED				/* checking or rebuilding has failed */
} RepairResult;

/* The caller's settings that workers take over. */
static const char *const settings[] = {
	"maintenance_work_mem", "max_parallel_maintenance_workers", "lock_timeout",
	"gpusort.enabled", "gpusort.index_build", "gpusort.min_rows", "gpusort.force"
};

/* A worker's order for one index, and its result; in shared memory. */
typedef struct RepairJob
{
	/* written by the caller */
	Oid			database;
	Oid			login;			/* the role that has connected */
	char		role[NAMEDATALEN];	/* the role in effect, which may have no right to connect */
	Oid			index;
	LOCKTAG		lock;			/* Repair.lock */
	bool		rebuild;		/* false: check */
	bool		concurrently;
	char		settings[lengthof(settings)][32];

	/* by the worker */
	RepairResult result;
	int			sqlstate;		/* of the error, or 0 */
	double		ms;				/* time of rebuilding */
	char		detail[4096];	/* where it is broken, or the error */
} RepairJob;

typedef struct RepairTask
{
	Oid			index;
	char	   *name;
	Datum		collations;		/* regcollation[] */
	bool		computed;		/* it is rebuilt without a check */
	RepairResult result;
} RepairTask;

typedef struct Repair
{
	bool		concurrently;
	bool		dry_run;
	LOCKTAG		lock;			/* taken because two calls at a time would wait for each other */
	dsm_segment *segment;
	RepairJob  *job;
	BackgroundWorkerHandle *worker; /* NULL: none is at work */
	int			n_tasks;
	RepairTask *tasks;
} Repair;

/* The index's name for a command; NULL: it was dropped. */
static char *
index_name(Oid index)
{
	char	   *name = get_rel_name(index);
	char	   *namespace = name ? get_namespace_name(get_rel_namespace(index)) : NULL;

	return namespace ? quote_qualified_identifier(namespace, name) : NULL;
}

/*
 * The worker
 */

/* Execute a command as if a client had sent it. */
static void
execute(const char *command)
{
	RawStmt    *raw;
	List	   *plans;
	Portal		portal;

	debug_query_string = command;
	pgstat_report_activity(STATE_RUNNING, command);
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	portal = CreatePortal("", true, true);
	MemoryContextSwitchTo(portal->portalContext);
	raw = linitial_node(RawStmt, pg_parse_query(command));
	plans = pg_plan_queries(pg_analyze_and_rewrite_fixedparams(raw, command, NULL, 0, NULL),
							command, CURSOR_OPT_PARALLEL_OK, NULL);
	PortalDefineQuery(portal, NULL, command, CreateCommandTag(raw->stmt), plans, NULL);
	PortalStart(portal, NULL, 0, InvalidSnapshot);
	gs_compat_portal_run(portal);
	MemoryContextSwitchTo(TopMemoryContext);
	PortalDrop(portal, false);
	CommitTransactionCommand();
	pgstat_report_activity(STATE_IDLE, NULL);
}

static void
check(RepairJob *job)
{
	char	   *wrong;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	(void) gs_index_check(job->index, &wrong);
	job->result = wrong ? REPAIR_BROKEN : REPAIR_RIGHT;
	if (wrong)
		strlcpy(job->detail, wrong, sizeof(job->detail));
	PopActiveSnapshot();
	CommitTransactionCommand();
}

static void
rebuild(RepairJob *job)
{
	char	   *name,
			   *command = NULL;
	instr_time	start,
				time;

	StartTransactionCommand();
	name = index_name(job->index);
	if (name)
		command = MemoryContextStrdup(
			TopMemoryContext, psprintf("REINDEX INDEX %s%s", job->concurrently ? "CONCURRENTLY " : "", name));
	CommitTransactionCommand();
	if (command == NULL)
	{
		job->result = REPAIR_RIGHT;
		return;
	}
	INSTR_TIME_SET_CURRENT(start);
	execute(command);
	INSTR_TIME_SET_CURRENT(time);
	INSTR_TIME_SUBTRACT(time, start);
	job->ms = INSTR_TIME_GET_MILLISEC(time);
	job->result = REPAIR_DONE;
}

static void
do_job(RepairJob *job)
{
	PG_TRY();
	{
		StartTransactionCommand();
		for (int i = 0; i < lengthof(settings); i++)
			SetConfigOption(settings[i], job->settings[i], PGC_USERSET, PGC_S_SESSION);
		SetConfigOption("role", job->role, PGC_USERSET, PGC_S_SESSION);
		CommitTransactionCommand();
		if (job->rebuild)
			rebuild(job);
		else
			check(job);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		/* to the server's log, as of any session; the process ends now */
		if (job->rebuild)
			EmitErrorReport();
		MemoryContextSwitchTo(TopMemoryContext);
		error = CopyErrorData();
		FlushErrorState();
		job->sqlstate = error->sqlerrcode;
		snprintf(job->detail, sizeof(job->detail), "%s%s%s", error->message,
				 error->detail ? ": " : "", error->detail ? error->detail : "");
		job->result = REPAIR_FAILED;
		AbortCurrentTransaction();
	}
	PG_END_TRY();
}

void
gpusort_collation_worker(Datum main_arg)
{
	dsm_segment *segment;
	RepairJob  *job;

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	segment = dsm_attach(DatumGetUInt32(main_arg));
	if (segment == NULL)
		return;					/* the caller has gone */
	dsm_pin_mapping(segment);
	job = dsm_segment_address(segment);
	/* PostgreSQL's warnings of a version mismatch, by each worker, say nothing new */
	SetConfigOption("log_min_messages", "error", PGC_SUSET, PGC_S_OVERRIDE);
	BackgroundWorkerInitializeConnectionByOid(job->database, job->login, 0);
	/* held until the process ends; only a later call can hold it, and then our caller has ended */
	if (job->rebuild && LockAcquire(&job->lock, RowExclusiveLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		return;
	do_job(job);
}

/*
 * The caller
 */

/*
 * The lock is a session's, because it must last over several transactions.  Nobody may wait for it, because
 * CONCURRENTLY would wait for that session.  So no other command takes it, not even pg_advisory_lock(), whose
 * last number is 1 or 2.  A worker that rebuilds holds it as well.  If the caller is cancelled, the worker
 * ends a little later, and until then the worker's locks would disturb the next call.
 */
static void
lock(Repair *repair)
{
	SET_LOCKTAG_ADVISORY(repair->lock, MyDatabaseId, 0, 0, 3);
	if (LockAcquire(&repair->lock, AccessExclusiveLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("gpusort_collation_repair() is already running in this database")));
	/* our workers' locks do not conflict with this one */
	(void) LockAcquire(&repair->lock, ShareUpdateExclusiveLock, true, true);
	LockRelease(&repair->lock, AccessExclusiveLock, true);
}

/* Called at the end, and if the caller is cancelled or its process ends. */
static void
clean_up(int code, Datum arg)
{
	Repair	   *repair = (Repair *) DatumGetPointer(arg);

	if (repair->worker)
		TerminateBackgroundWorker(repair->worker);
	dsm_detach(repair->segment);
	if (!repair->dry_run)
		LockRelease(&repair->lock, ShareUpdateExclusiveLock, true);
}

static void
start_worker(Repair *repair, Oid index, bool rebuild)
{
	RepairJob  *job = repair->job;
	BackgroundWorker worker = {0};

	memset(job, 0, sizeof(*job));
	job->database = MyDatabaseId;
	job->login = MyProc->roleId;
	strlcpy(job->role, GetUserNameFromId(GetUserId(), false), sizeof(job->role));
	job->index = index;
	job->lock = repair->lock;
	job->rebuild = rebuild;
	job->concurrently = repair->concurrently;
	for (int i = 0; i < lengthof(settings); i++)
		strlcpy(job->settings[i], GetConfigOption(settings[i], false, false), sizeof(job->settings[i]));

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, GPUSORT_NAME, sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "gpusort_collation_worker", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "gpusort collation repair", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "gpusort collation repair", sizeof(worker.bgw_type));
	worker.bgw_main_arg = UInt32GetDatum(dsm_segment_handle(repair->segment));
	worker.bgw_notify_pid = MyProcPid;
	if (!RegisterDynamicBackgroundWorker(&worker, &repair->worker))
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("could not start a background worker"),
				 errhint("Increase max_worker_processes, or call again later.")));
}

static void
report(const RepairTask *task, const RepairJob *job)
{
	switch (job->result)
	{
		case REPAIR_NONE:
			ereport(WARNING,
					(errmsg("the background worker for index %s ended early", task->name),
					 errhint("The server's log may say why.")));
			break;
		case REPAIR_RIGHT:
			ereport(DEBUG1, (errmsg_internal("index %s is in order", task->name)));
			break;
		case REPAIR_BROKEN:
			ereport(NOTICE,
					(errmsg("index %s is broken", task->name),
					 errdetail_internal("%s", job->detail)));
			break;
		case REPAIR_DONE:
			ereport(NOTICE,
					(errmsg("rebuilt index %s in %.1f ms", task->name, job->ms)));
			break;
		case REPAIR_FAILED:
			ereport(WARNING,
					(errcode(job->sqlstate),
					 errmsg("could not %s index %s", job->rebuild ? "rebuild" : "check", task->name),
					 errdetail_internal("%s", job->detail),
					 !job->rebuild
					 ? errhint("Rebuild it, and then refresh the versions of its collations.")
					 : job->sqlstate == ERRCODE_UNIQUE_VIOLATION
					 ? errhint("The broken index let duplicates in.  Remove them, and call gpusort_collation_repair() again.")
					 : job->sqlstate == ERRCODE_FEATURE_NOT_SUPPORTED && job->concurrently
					 ? errhint("Call gpusort_collation_repair(concurrently => false).") : 0));
			break;
	}
}

/* Check all indexes, or rebuild the broken ones. */
static void
run_tasks(Repair *repair, bool rebuild)
{
	for (int i = 0; i < repair->n_tasks; i++)
	{
		RepairTask *task = &repair->tasks[i];

		if (rebuild ? task->result != REPAIR_BROKEN : task->computed)
			continue;
		start_worker(repair, task->index, rebuild);
		/* CONCURRENTLY would wait for it */
		InvalidateCatalogSnapshot();
		if (WaitForBackgroundWorkerShutdown(repair->worker) == BGWH_POSTMASTER_DIED)
			proc_exit(1);
		repair->worker = NULL;
		task->result = repair->job->result;
		report(task, repair->job);
	}
}

/* List the valid indexes that depend on a collation whose version differs from the recorded one. */
static void
list_tasks(Repair *repair)
{
	gs_collation_query(gs_collation_indexes, false, (Datum) 0);
	repair->tasks = palloc0((SPI_processed + 1) * sizeof(RepairTask));
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	row = SPI_tuptable->vals[i];
		TupleDesc	tupdesc = SPI_tuptable->tupdesc;
		RepairTask *task = &repair->tasks[repair->n_tasks];
		bool		isnull;

		task->index = DatumGetObjectId(SPI_getbinval(row, tupdesc, GS_COLUMN_INDEX, &isnull));
		task->collations = PointerGetDatum(
			DatumGetArrayTypePCopy(SPI_getbinval(row, tupdesc, GS_COLUMN_COLLATIONS, &isnull)));
		task->name = index_name(task->index);
		if (task->name == NULL)
			continue;
		task->computed = DatumGetBool(SPI_getbinval(row, tupdesc, GS_COLUMN_COMPUTED, &isnull));
		task->result = task->computed ? REPAIR_BROKEN : REPAIR_NONE;
		if (DatumGetBool(SPI_getbinval(row, tupdesc, GS_COLUMN_VALID, &isnull)))
		{
			repair->n_tasks++;
			if (task->computed)
				ereport(NOTICE,
						(errmsg("index %s has to be rebuilt", task->name),
						 errdetail(GS_COLLATION_COMPUTED)));
		}
		else
			ereport(WARNING,
					(errmsg("index %s is invalid, and was not checked", task->name),
					 errdetail("A CREATE INDEX CONCURRENTLY or REINDEX CONCURRENTLY has failed, or is still running."),
					 errhint("Drop it if nothing builds it any more.")));
	}
}

/* Nothing is broken: report how many indexes were checked. */
static void
report_nothing_broken(const Repair *repair)
{
	int			n_right = 0;

	for (int i = 0; i < repair->n_tasks; i++)
	{
		n_right += repair->tasks[i].result == REPAIR_RIGHT;
		if (repair->tasks[i].result == REPAIR_BROKEN)
			return;
	}
	if (repair->n_tasks == 0)
		ereport(NOTICE,
				(errmsg("no index depends on a collation whose version differs from the one recorded")));
	else if (n_right > 0)
		ereport(NOTICE,
				(errmsg_plural("checked %d index, it is not broken", "checked %d indexes, none is broken", n_right, n_right)));
}

/* Names the objects other than indexes that were computed under the old order. */
static void
report_computed(void)
{
	gs_collation_query(gs_collation_objects, false, (Datum) 0);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	row = SPI_tuptable->vals[i];
		TupleDesc	tupdesc = SPI_tuptable->tupdesc;
		char	   *move = SPI_getvalue(row, tupdesc, GS_COLUMN_MOVE);

		ereport(WARNING,
				(errmsg("did not check %s", SPI_getvalue(row, tupdesc, GS_COLUMN_NAME)),
				 errdetail("It depends on collation %s, which keeps the version recorded.",
						   SPI_getvalue(row, tupdesc, GS_COLUMN_NAMES)),
				 move
				 ? errhint("Move its rows, as its owner, and then refresh the version of the collation: %s", move)
				 : errhint("Correct what the new order has changed, and then refresh the version of the collation.")));
	}
}

/* Records a collation's actual version if its indexes are in order, and report_computed() named nothing. */
static void
refresh_versions(const Repair *repair)
{
	ArrayBuildState *blocked = initArrayResult(OIDOID, CurrentMemoryContext, false);
	int			n_blocked = 0;
	uint64		n_recorded,
				n_refused;
	Datum		values[3];
	bool		nulls[3];

	for (int i = 0; i < repair->n_tasks; i++)
	{
		ArrayType  *collations = DatumGetArrayTypeP(repair->tasks[i].collations);

		if (repair->tasks[i].result == REPAIR_RIGHT || repair->tasks[i].result == REPAIR_DONE)
			continue;
		n_blocked++;
		for (int j = 0; j < ArrayGetNItems(ARR_NDIM(collations), ARR_DIMS(collations)); j++)
			blocked = accumArrayResult(blocked, ObjectIdGetDatum(((Oid *) ARR_DATA_PTR(collations))[j]),
									   false, OIDOID, CurrentMemoryContext);
	}
	/* PostgreSQL's command fails where no version was recorded, but the new one should be from now on */
	gs_collation_query(GS_COLLATION_VERSIONS
					   ", command (text, allowed) AS ("
					   "  SELECT format(CASE WHEN oid = 100 AND recorded IS NULL"
					   "    THEN 'UPDATE pg_database SET datcollversion = %3$L WHERE datname = %1$L'"
					   "   WHEN recorded IS NULL THEN 'UPDATE pg_collation SET collversion = %3$L WHERE oid = %4$s'"
					   "   WHEN oid = 100 THEN 'ALTER DATABASE %1$I REFRESH COLLATION VERSION'"
					   "   ELSE 'ALTER COLLATION %2$s REFRESH VERSION' END,"
					   "   current_database(), oid::regcollation, actual, oid),"
					   "   CASE WHEN recorded IS NULL THEN (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)"
					   "    ELSE pg_has_role(owner, 'USAGE') END"
					   "  FROM differing WHERE actual IS NOT NULL AND oid <> ALL ($2)"
					   "   AND oid NOT IN (SELECT coll FROM computed WHERE class <> 'pg_index'::regclass)) "
	/* there may be hundreds of ICU's, and PostgreSQL has a notice of each */
					   "SELECT 'SET LOCAL client_min_messages = warning; ' || string_agg(text, '; ') FILTER (WHERE allowed),"
					   " count(*) FILTER (WHERE allowed), count(*) FILTER (WHERE NOT allowed) FROM command",
					   false, makeArrayResult(blocked, CurrentMemoryContext));
	heap_deform_tuple(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, values, nulls);
	n_recorded = DatumGetInt64(values[1]);
	n_refused = DatumGetInt64(values[2]);
	if (n_recorded > 0)
		gs_collation_query(TextDatumGetCString(values[0]), false, (Datum) 0);
	if (n_recorded > 0)
		ereport(NOTICE,
				(errmsg_plural("recorded the new version of " UINT64_FORMAT " collation",
							   "recorded the new versions of " UINT64_FORMAT " collations", n_recorded, n_recorded)));
	if (n_refused > 0)
		ereport(WARNING,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg_plural("could not record the new version of " UINT64_FORMAT " collation",
							   "could not record the new versions of " UINT64_FORMAT " collations", n_refused, n_refused),
				 errdetail("Only its owner, or that of the database, can; where none was recorded, a superuser.")));
	if (n_blocked > 0)
		ereport(WARNING,
				(errmsg_plural("%d index is broken or was not checked, so its collations keep the versions recorded",
							   "%d indexes are broken or were not checked, so their collations keep the versions recorded",
							   n_blocked, n_blocked)));
}

/* gpusort_collation_repair([concurrently boolean [, dry_run boolean]]) */
Datum
gpusort_collation_repair(PG_FUNCTION_ARGS)
{
	Repair		repair = {0};

	for (int i = 0; i < 2; i++)
		if (PG_ARGISNULL(i))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("the arguments of gpusort_collation_repair() must not be null")));
	repair.concurrently = PG_GETARG_BOOL(0);
	repair.dry_run = PG_GETARG_BOOL(1);
	PreventCommandDuringRecovery("CALL gpusort_collation_repair()");
	if (fcinfo->context == NULL || !IsA(fcinfo->context, CallContext) ||
		castNode(CallContext, fcinfo->context)->atomic)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("gpusort_collation_repair() cannot run inside a transaction block")));

	SPI_connect_ext(SPI_OPT_NONATOMIC);
	repair.segment = dsm_create(sizeof(RepairJob), 0);
	repair.job = dsm_segment_address(repair.segment);
	if (!repair.dry_run)
		lock(&repair);
	dsm_pin_mapping(repair.segment);
	PG_ENSURE_ERROR_CLEANUP(clean_up, PointerGetDatum(&repair));
	{
		list_tasks(&repair);
		report_computed();
		SPI_commit();
		run_tasks(&repair, false);
		report_nothing_broken(&repair);
		if (!repair.dry_run)
		{
			run_tasks(&repair, true);
			refresh_versions(&repair);
		}
	}
	PG_END_ENSURE_ERROR_CLEANUP(clean_up, PointerGetDatum(&repair));
	clean_up(0, PointerGetDatum(&repair));
	SPI_finish();
	PG_RETURN_VOID();
}
