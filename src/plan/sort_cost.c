/*-------------------------------------------------------------------------
 *
 * sort_cost.c
 *	  How long sorts and their rivals take (sort_cost.h).
 *
 * PostgreSQL's costs do not tell a sort of texts from one of integers, nor a hash table in the caches from
 * one of a gigabyte.  So the model has times.  They were measured ("The planner's model" in RESULTS.md of
 * test/bench) with tables in memory.  The machine took 2 us for a unit of PostgreSQL's scans: 20 ns a row.
 * For what it does not know, such as a join, the model takes PostgreSQL's cost at that rate.  So settings
 * such as seq_page_cost have their effect, on both sides.
 *
 * A plan takes as long as its slowest process, and at least its processor time divided by the cores.  So the
 * host device, which sorts on threads, gains little where there are two cores, and workers gain nothing
 * there.  A GPU takes none of the cores.
 *
 * A top-N heapsort takes less if rows lie in the order of the sort already.  ANALYZE finds the
 * correlation between the order of a column and the order of rows in the table; the sort's first column is
 * looked at.  Rows that are read in order, also by a process of a parallel scan, hardly ever
 * enter the heap once it is full.
 *
 * Tests: regress/paths, regress/choice, tap/plans_host
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "base/machine.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "compat.h"
#include "guc.h"
#include "key/key_types.h"
#include "plan/plan_walk.h"
#include "plan/sort_cost.h"
#include "service/service_shmem.h"

/*
 * All times are nanoseconds, of one row if nothing else is said.  Parts that depend on the first sort column:
 */
typedef struct KeyTimes
{
	double		level;			/* PostgreSQL's sort, each of its log2(rows) levels */
	double		bare;			/* the same for rows of this column alone: for a value passed by value it
								 * sorts no rows (nodeSort.c) */
	double		compare;		/* a comparison without abbreviated keys */
	double		feed;			/* making the key in the process that feeds; 0: the device makes it */
	double		host;			/* sorting on threads of the host device */
} KeyTimes;

static const KeyTimes fixed_key = {36, 15, 10, 0, 120},	/* int, float8, dates: by value */
			abbreviated_key = {45, 40, 110, 90, 120},	/* numeric, uuid, inet */
			text_key = {55, 50, 190, 0, 60},	/* by bytes */
			icu_key = {110, 110, 350, 20, 80},
			libc_key = {200, 200, 350, 20, 80},
			other_key = {120, 120, 200, 90, 100};

/* gpusort */
#define FEED_PAGE_BYTE	0.1			/* a byte of a row that is fed by its page */
#define FEED_ROW		60.0		/* a row that is fed by itself, */
#define FEED_BYTE		0.2			/* and each byte of it */
#define GPU_ROW			3.0			/* sorting on a GPU, which is done when the last row has come */
#define HOST_TEXT_BYTE	4.5			/* sorting on threads: a byte of a text, among the first ones, */
#define HOST_TEXT_BYTES	40
#define HOST_LATE_ROW	40.0		/* and the part that is left when the last row has come */
#define FETCH_ROW		15.0
#define FETCH_BYTE		0.25
#define GROUP_ROW		10.0		/* GpuGroup reads a row, */
#define GROUP_STATE		10.0		/* and computes an aggregate whose state is passed by value */
#define SETTLE_ROW		40.0		/* beside comparisons of PostgreSQL's sort */
#define SETUP			0.8e6		/* a sort: some round trips to the service, */
#define SETUP_HOST		3.0e6		/* and starting and waiting for threads */

/* PostgreSQL */
#define HEAP_ROW		40.0		/* top-N heapsort: a copy of a row, beside comparisons, */
#define PROJECTED_ROW	40.0		/* of only the columns that are wanted */
#define HASH_ROW		120.0		/* looking a value up in a table that the caches hold, */
#define HASH_COLUMN		30.0		/* each further column, */
#define HASH_TEXT		60.0		/* each that varies in width, */
#define HASH_MISS		80.0		/* each doubling of the table beyond HASH_CACHE, */
#define HASH_MISS_LARGE	1.6			/* this many times as much if states lie outside of the table, */
#define HASH_CACHE		(512.0 * 1024)
#define HASH_GROUP		50.0		/* returning a group, */
#define HASH_FILE_ROW	300.0		/* a row that goes to files, because the table exceeds hash_mem */
#define GROUP_SORTED	30.0		/* comparing a row with the group's first one */
#define STATE			40.0		/* computing an aggregate whose state is passed by value */
#define INNER_VALUE		10.0		/* sorting values by value inside an aggregate, each level */
#define WORKER			1.0			/* waiting for a parallel worker to start and to end, and */
#define WORKER_CPU		5.0			/* its processor time for that, both in parallel_setup_cost */

/* Both.  PostgreSQL's costs take each function to be as fast as an addition. */
#define LARGE_STATE		130.0		/* computing an aggregate whose state is large, as for sum(numeric) */
#define OPERATOR		50.0
#define FUNCTION		300.0

/* A plan of gpusort's must be faster by this factor: the model may err. */
#define SURE			1.1

/* Other sessions wait for few cores.  So gpusort's plan may not take more processor time there, by SURE. */
#define FEW_CORES		4

/* The time of a row of a scan.  PostgreSQL's cost of that row then tells the time of its unit. */
#define SCAN_ROW		20.0

/*
 * Device memory for a row besides its values and a key that is as long: header, record, and memory for
 * sorting (cuda/README.md).
 */
#define DEVICE_ROW_BYTES	120.0

/*
 * Memory of tuplesort.c for a row besides its values: headers, and an element of an array.  The rounding is
 * for palloc(), which allocates powers of two, and for the array's growth.
 */
#define HEAPSORT_ROW_BYTES	56.0
#define HEAPSORT_ROUNDING	1.5

double
gs_time_of(Cost cost)
{
	return cost * SCAN_ROW / (cpu_tuple_cost > 0 ? cpu_tuple_cost : DEFAULT_CPU_TUPLE_COST);
}

Cost
gs_cost_of(double time)
{
	return time / gs_time_of(1.0);
}

/* The number of threads of the host device that sort; 0: GPUs sort. */
static int
sorting_threads(void)
{
	int			threads = 0;

	/* no lock: this is an estimate, and the words change rarely */
	for (int i = 0; gs_shared && i < gs_shared->n_devices; i++)
		if (gs_shared->devices[i].ready)
			threads = Max(threads, gs_shared->devices[i].info.threads);
	return threads;
}

static int
cores(void)
{
	static int	found = 0;
	int			threads = sorting_threads();

	if (threads > 0)
		return threads;
	if (found == 0)
		found = gs_machine_cores();
	return found;
}

static double
cpu_of_part(const GsTime *time, double fraction)
{
	double		part = time->first + fraction * (time->last - time->first);

	return time->last > 0 ? time->cpu * part / time->last : 0;
}

double
gs_time_of_part(const GsTime *time, double fraction)
{
	return Max(time->first + fraction * (time->last - time->first), cpu_of_part(time, fraction) / cores());
}

bool
gs_time_is_less(const GsTime *ours, const GsTime *theirs, double fraction)
{
	return gs_time_of_part(ours, fraction) * SURE < gs_time_of_part(theirs, fraction) &&
		(cores() > FEW_CORES || cpu_of_part(ours, fraction) < SURE * cpu_of_part(theirs, fraction));
}

static const KeyTimes *
key_times(const GsSortInput *rows)
{
	GsKeyCollator *icu;
	const GsLibcCollation *libc;

	if (get_typbyval(rows->type))
		return &fixed_key;
	if (rows->type == BYTEAOID)
		return &text_key;
	if (OidIsValid(rows->collation))
	{
		if (!gs_key_collation_lookup(rows->collation, &icu, &libc) || libc)
			return &libc_key;
		return icu ? &icu_key : &text_key;
	}
	switch (rows->type)
	{
		case NUMERICOID:
		case UUIDOID:
		case INETOID:
		case MACADDROID:
			return &abbreviated_key;
		default:
			return &other_key;
	}
}

/*
 * PostgreSQL
 */

static double
levels(double rows)
{
	return log2(Max(rows, 2.0));
}

bool
gs_sort_is_bounded(const GsSortInput *rows, double limit)
{
	return limit > 0 && limit < rows->rows &&
		2.0 * Max(limit, 1.0) * HEAPSORT_ROUNDING * (rows->width + HEAPSORT_ROW_BYTES) <= work_mem * 1024.0;
}

/*
 * With a limit of K of N rows the heap holds K rows.  Each row is copied, and compared once with the heap's
 * top.  About K * ln(N / K) rows enter the heap, for log2(K) comparisons each.  PostgreSQL makes the heap
 * when there are 2 * K rows.  If work_mem is used up before, all rows are sorted, perhaps in files.
 */
static double
time_of_sort(const GsSortInput *rows, double limit)
{
	const KeyTimes *key = key_times(rows);
	double		entering;

	if (!gs_sort_is_bounded(rows, limit))
		return rows->rows * (rows->columns == 1 ? key->bare : key->level) * levels(rows->rows);
	limit = Max(limit, 1.0);
	entering = limit * (1.0 + log(rows->rows / limit)) * (1.0 - rows->in_order);
	return rows->rows * (HEAP_ROW + (rows->projected ? PROJECTED_ROW : 0)) +
		(rows->rows + entering * levels(limit)) * key->compare;
}

void
gs_time_add_sort(GsTime *time, const GsSortInput *rows, double limit)
{
	double		own = time_of_sort(rows, limit);

	time->cpu += own;
	time->first = time->last += own;
}

double
gs_sort_factor(const GsSortInput *rows)
{
	const KeyTimes *key = key_times(rows);

	return (rows->columns == 1 ? key->bare : key->level) / gs_time_of(2.0 * cpu_operator_cost);
}

double
gs_time_comparison(const GsSortInput *rows)
{
	return key_times(rows)->compare;
}

double
gs_time_inner_sort(const GsSortInput *rows, double groups)
{
	const KeyTimes *key = key_times(rows);

	return rows->rows * levels(rows->rows / Max(groups, 1.0)) *
		(key == &fixed_key ? INNER_VALUE : key->level);
}

double
gs_time_transitions(const PlannerInfo *root, bool ours)
{
	double		time = 0;
	ListCell   *lc;

	foreach(lc, root->aggtransinfos)
	{
		const AggTransInfo *info = lfirst(lc);

		if (!info->transtypeByVal || info->aggtranstype == INTERNALOID)
			time += LARGE_STATE;
		else
			time += ours ? GROUP_STATE : STATE;
	}
	return time;
}

double
gs_time_hash(const GsHash *hash)
{
	double		bytes = hash->groups * hash->entry_bytes;
	double		row = HASH_ROW + HASH_COLUMN * (hash->columns - 1) + HASH_TEXT * hash->texts +
		hash->transitions;

	if (bytes > HASH_CACHE)
		row += HASH_MISS * log2(bytes / HASH_CACHE) * (hash->large_states ? HASH_MISS_LARGE : 1.0);
	if (bytes > get_hash_memory_limit())
		row += HASH_FILE_ROW;
	return hash->rows * row + hash->groups * HASH_GROUP;
}

double
gs_time_group(const PlannerInfo *root, double rows, bool ours)
{
	return rows * ((ours ? GROUP_ROW : GROUP_SORTED) + gs_time_transitions(root, ours));
}

double
gs_time_expressions(double rows, const List *exprs)
{
	double		time = 0;
	ListCell   *lc;

	foreach(lc, exprs)
	{
		const Node *expr = gs_plan_strip_relabel(lfirst(lc));

		if (!IsA(expr, Var) && !IsA(expr, Const))
			time += IsA(expr, FuncExpr) ? FUNCTION : OPERATOR;
	}
	return rows * time;
}

double
gs_processes(int workers)
{
	return workers + (parallel_leader_participation ? Max(1.0 - 0.3 * workers, 0) : 0);
}

void
gs_time_add_workers(GsTime *time, int workers)
{
	double		setup = gs_time_of(parallel_setup_cost);

	time->first += workers * WORKER * setup;
	time->last += workers * WORKER * setup;
	time->cpu += workers * WORKER_CPU * setup;
}

/*
 * gpusort
 */

double
gs_time_feed(const GsSortInput *rows)
{
	return gs_guc_cost_factor * rows->rows *
		(key_times(rows)->feed +
		 (rows->by_pages ? rows->width * FEED_PAGE_BYTE : FEED_ROW + rows->width * FEED_BYTE));
}

/* The cost of writing rows to temporary files and of reading them back; 0: they fit into device memory. */
static Cost
cost_of_files(double rows, int width)
{
	double		limit = 0;

	/* as in sorting_threads() */
	for (int i = 0; gs_shared && i < gs_shared->n_devices; i++)
		if (gs_shared->devices[i].ready)
			limit += gs_shared->devices[i].info.memory_limit;
	if (gs_guc_role_memory_kb > 0)
		limit = Min(limit, gs_guc_role_memory_kb * 1024.0);
	if (limit <= 0 || rows * (2.0 * width + DEVICE_ROW_BYTES) <= limit)
		return 0;
	return seq_page_cost * rows * (2.0 * width + sizeof(GsRecord)) / BLCKSZ;
}

bool
gs_expects_files(double rows, int width)
{
	return cost_of_files(rows, width) > 0;
}

GsTime
gs_time_device(GsTime fed, const GsSortInput *rows, double rows_back, double settling)
{
	int			threads = sorting_threads();
	const KeyTimes *key = key_times(rows);
	double		files = gs_time_of(cost_of_files(rows->rows, rows->width)) / 2;
	double		back = rows_back * (FETCH_ROW + FETCH_BYTE * rows->width) + settling + files;
	double		factor = gs_guc_cost_factor;
	GsTime		time = {.first = fed.last + factor * (SETUP + files), .cpu = fed.cpu};

	if (threads > 0)
	{
		double		sorting = factor * rows->rows *
			(key->host + (key == &fixed_key ? 0 : HOST_TEXT_BYTE * Min(rows->width, HOST_TEXT_BYTES)));

		/* the threads sort while rows are fed */
		time.cpu += sorting;
		time.first = Max(fed.last, time.cpu / threads) +
			factor * (SETUP_HOST + files + rows->rows * HOST_LATE_ROW / threads);
	}
	else
		time.first += factor * rows->rows * GPU_ROW;
	time.last = time.first + factor * back;
	time.cpu += factor * back;
	return time;
}

/*
 * A tuplesort sorts the rows of each key.  It compares as often as PostgreSQL's sort would.  100,000 rows of
 * an integer and jsonb, with 1, 2 and 20 rows for each integer, took 43, 63 and 108 ms of CPU time by
 * PostgreSQL, and 21, 38 and 79 with a GpuSort.
 */
double
gs_time_settling(double rows, double keys)
{
	double		settled = Max(Min(2.0 * (rows - keys), rows), 0);

	return settled * (SETTLE_ROW + other_key.level * levels(rows / keys));
}

static double
order_of_column(const RangeTblEntry *table, AttrNumber attno, Oid sort_operator)
{
	Oid			opfamily;
	Oid			opcintype;
	bool		descending;
	AttStatsSlot slot;
	HeapTuple	tuple;
	double		correlation = 0;

	if (table->rtekind != RTE_RELATION || attno <= 0 ||
		!gs_compat_ordering_op(sort_operator, &opfamily, &opcintype, &descending))
		return 0;
	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(table->relid), Int16GetDatum(attno),
							BoolGetDatum(false));
	if (!HeapTupleIsValid(tuple))
		return 0;
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_CORRELATION, InvalidOid, ATTSTATSSLOT_NUMBERS))
	{
		if (slot.nnumbers > 0)
			correlation = descending ? -slot.numbers[0] : slot.numbers[0];
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(tuple);
	return correlation > 0 ? correlation * correlation : 0;
}

static double
order_of_path(PlannerInfo *root, const Path *path, const PathKey *key)
{
	ListCell   *lc;

	if (IsA(path, ProjectionPath))
		path = ((const ProjectionPath *) path)->subpath;
	if (path->pathtype != T_SeqScan && path->pathtype != T_BitmapHeapScan)
		return 0;
	foreach(lc, key->pk_eclass->ec_members)
	{
		const EquivalenceMember *member = lfirst(lc);
		const Var  *var = (const Var *) member->em_expr;

		if (IsA(var, Var) && var->varno == path->parent->relid && var->varlevelsup == 0)
			return order_of_column(planner_rt_fetch(var->varno, root), var->varattno,
								   gs_compat_pathkey_operator(key, member->em_datatype));
	}
	return 0;
}

/* Are a path's rows a table's, which gpusort takes from its pages (gs_page_scan_create())? */
static bool
is_fed_by_pages(const Path *path)
{
	ListCell   *lc;

	if (path->pathtype == T_Append && IsA(path, AppendPath))
	{
		foreach(lc, ((const AppendPath *) path)->subpaths)
			if (!is_fed_by_pages(lfirst(lc)))
				return false;
		return true;
	}
	if (path->pathtype != T_SeqScan)
		return false;
	foreach(lc, path->pathtarget->exprs)
		if (!IsA(gs_plan_strip_relabel(lfirst(lc)), Var))
			return false;
	return true;
}

GsSortInput
gs_rows_of_path(PlannerInfo *root, const Path *path, List *pathkeys)
{
	const PathKey *key = linitial_node(PathKey, pathkeys);
	const EquivalenceMember *member = linitial(key->pk_eclass->ec_members);

	return (GsSortInput){.rows = path->rows, .width = path->pathtarget->width,
					.columns = list_length(path->pathtarget->exprs), .type = member->em_datatype,
					.collation = key->pk_eclass->ec_collation, .by_pages = is_fed_by_pages(path),
					.projected = list_length(path->pathtarget->exprs) < path->parent->max_attr,
					.in_order = order_of_path(root, path, key)};
}

GsSortInput
gs_rows_of_plan(const PlannedStmt *stmt, const Sort *sort)
{
	const Plan *plan = &sort->plan;
	const Var  *var = (const Var *) get_tle_by_resno(plan->targetlist, sort->sortColIdx[0])->expr;
	GsSortInput rows = {.rows = plan->plan_rows, .width = plan->plan_width,
						.columns = list_length(plan->targetlist), .type = exprType((const Node *) var),
						.collation = sort->collations[0]};
	ListCell   *lc;

	while (IsA(var, Var) && var->varno == OUTER_VAR && (IsA(plan, Sort) || IsA(plan, Gather)))
	{
		plan = outerPlan(plan);
		var = (const Var *) get_tle_by_resno(plan->targetlist, var->varattno)->expr;
	}
	if (IsA(var, Var) && !IS_SPECIAL_VARNO(var->varno) && (IsA(plan, SeqScan) || IsA(plan, BitmapHeapScan)))
		rows.in_order = order_of_column(rt_fetch(var->varno, stmt->rtable), var->varattno,
										sort->sortOperators[0]);
	rows.by_pages = IsA(plan, SeqScan);
	foreach(lc, plan->targetlist)
		rows.by_pages &= IsA(lfirst_node(TargetEntry, lc)->expr, Var);
	return rows;
}
