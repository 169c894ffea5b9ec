/*-------------------------------------------------------------------------
 *
 * sort_cost.c
 *	  What a sort by gpusort costs (sort_cost.h).
 *
 * PostgreSQL charges 2 * cpu_operator_cost * N * log2(N) for a sort of N rows.  For the 7.3 million
 * file paths of test/bench these are 834 thousand units.  One process of the machine that
 * RESULTS.md names sorts them in 5.4 s: 6.5 us a unit.
 *
 * A GpuSort costs, in the same units,
 *
 *		gpusort.setup_cost			a few round trips to the service: 2.6 ms
 *		gpusort.feed_row_cost		for each row, and once more for each
 *									FEED_WIDTH bytes of it: 65 ns
 *		gpusort.fetch_row_cost		for each row given back: 20 ns
 *
 * and nothing for the sort itself, which is faster on the device than feeding or fetching.  A sort that is
 * larger than the memory of all devices is written to temporary files and read back.  Each byte is
 * written and read once, in sequence and by several threads, so each page costs
 * seq_page_cost.  On the same machine, feeding and fetching took 60 ns a row together; the
 * settings are higher, for machines with slower memory.
 * Example: 10M rows of 40 bytes, one process: 400 + 10M * (0.01 * 1.2 + 0.003)
 * = 150 thousand units, against 1.16 million for Sort.
 *
 * A top-N heapsort costs less if rows lie in the order of the sort already.  ANALYZE finds the
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

#include "catalog/pg_statistic.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "compat.h"
#include "guc.h"
#include "plan/sort_cost.h"
#include "service/service_shmem.h"

/* Bytes of a row that cost as much to copy as a row costs to handle. */
#define FEED_WIDTH	200.0

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

/*
 * If rows are one column, passed by value, PostgreSQL sorts the bare values (nodeSort.c),
 * but its planner charges the same.  Measured, CPU time of 100,000 rows beyond the scan: 8 ms
 * for an integer, 51 for an integer with two texts, 45 for a numeric; a GpuSort took 19, 31 and 18.
 */
#define BARE_SORT_FRACTION	(1.0 / 6)

/* A hash table of this size is expected to be in the processor's caches. */
#define HASH_CACHE_BYTES	(8.0 * 1024 * 1024)
#define HASH_MISS_COST	0.03

Cost
gs_cost_feed(double rows, int width)
{
	return rows * gs_guc_feed_row_cost * (1.0 + width / FEED_WIDTH);
}

/* The cost of writing rows to temporary files and of reading them back; 0: they fit into device memory. */
static Cost
cost_spill(double rows, int width)
{
	double		limit = 0;

	/* no lock: this is an estimate, and the words change rarely */
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
gs_cost_expects_files(double rows, int width)
{
	return cost_spill(rows, width) > 0;
}

Cost
gs_cost_sort_startup(double rows_fed, double rows, int width)
{
	return gs_guc_setup_cost + gs_cost_feed(rows_fed, width) + cost_spill(rows, width) / 2;
}

Cost
gs_cost_sort(double rows_fed, double rows, int width)
{
	return gs_cost_sort_startup(rows_fed, rows, width) + cost_spill(rows, width) / 2 +
		rows * gs_guc_fetch_row_cost;
}

/*
 * A tuplesort sorts the rows of each key.  It compares as often as PostgreSQL's sort would, and needs
 * another 0.15 us for each row.  100,000 rows of an integer and jsonb, with 1, 2 and 20 rows for each
 * integer, took 43, 63 and 108 ms of CPU time by PostgreSQL, and 21, 38 and 79 with a GpuSort.
 */
Cost
gs_cost_settling(double rows, double keys)
{
	double		settled = Min(2.0 * (rows - keys), rows);

	return Max(settled, 0) * (2.0 * cpu_tuple_cost + 2.0 * cpu_operator_cost * log2(Max(rows / keys, 2.0)));
}

/* The number of threads of the host device that sort; 0: GPUs sort. */
static int
sorting_threads(void)
{
	int			threads = 0;

	/* as in cost_spill() */
	for (int i = 0; gs_shared && i < gs_shared->n_devices; i++)
		if (gs_shared->devices[i].ready)
			threads = Max(threads, gs_shared->devices[i].info.threads);
	return threads;
}

/*
 * The host device's threads sort while rows are fed, so workers gain nothing where cores are few.  On 2
 * cores, 3 million rows of (id, total) in order of total took 1.06 s, and 1.4 s of CPU time, without workers;
 * 1.12 s and 1.7 s with two.  UNION of 3.5 million integers took 0.44 and 0.6 s without, 0.47 and 0.77 s
 * with them.  So workers are charged PostgreSQL's price for a row that comes from a worker.  Where the scan
 * does most of the work, because it finds few rows, they still pay.
 */
Cost
gs_cost_workers(double rows, int workers)
{
	int			threads = sorting_threads();

	return threads > 0 && threads < 2 * (workers + 1) ? rows * parallel_tuple_cost : 0;
}

/*
 * PostgreSQL charges random_page_cost for the pages that an index leads to, as if they were on disk.
 * In memory they cost no more than in a scan: 3 million rows that lie only partly in an index's order took
 * 0.73 s by that index, and 0.78 s (1.0 s of CPU time) with a sort by the host device; by cost 405541 and
 * 172869.  A GPU gains more than that.
 */
Cost
gs_cost_by_index(Cost cost)
{
	return sorting_threads() > 0 && random_page_cost > seq_page_cost ?
		cost * seq_page_cost / random_page_cost : cost;
}

Cost
gs_cost_by_postgres(Cost cost, int n_columns, Oid type)
{
	return n_columns == 1 && get_typbyval(type) ? cost * BARE_SORT_FRACTION : cost;
}

/*
 * PostgreSQL charges 2 * cpu_operator_cost for any comparison.  In a merge each comparison calls strcoll(),
 * because there are no abbreviated keys.  Four indexes of 100,000 texts of 47 characters, merged in the order
 * of en_US.utf8, took 6 us a row more than in the order of "C".  There the whole scan took 1.1 us a row, for
 * 0.063 units.  So the difference is 0.34 units a row, or 0.17 a comparison.  A third of that is charged
 * here, because texts may be shorter.
 */
Cost
gs_cost_libc_merge(double rows, int streams)
{
	return 20.0 * cpu_operator_cost * rows * log2(Max(streams, 2));
}

/*
 * With a limit of K of N rows the heap holds K rows.  Each row is copied, as when it is fed, and compared
 * once with the heap's top.  About K * ln(N / K) rows enter the heap, for log2(K) comparisons each.
 * PostgreSQL makes the heap when there are 2 * K rows.  If work_mem is used up before, all rows are sorted,
 * perhaps in files.  If rows come in order, hardly any enters the heap, and comparisons always have the same
 * result: 250,000 rows took 6 ms in a heap of 10,000 rows, and 25 ms in a feed.
 */
bool
gs_cost_prefers_heapsort(double rows_fed, double rows, int width, double limit_tuples, double in_order)
{
	double		entering;
	Cost		heapsort;
	Cost		copying = gs_cost_feed(rows_fed, width) - gs_cost_feed(rows_fed, 0);

	if (limit_tuples <= 0 || limit_tuples >= rows_fed)
		return false;
	limit_tuples = Max(limit_tuples, 1.0);
	if (2.0 * limit_tuples * HEAPSORT_ROUNDING * (width + HEAPSORT_ROW_BYTES) > work_mem * 1024.0)
		return false;
	entering = limit_tuples * (1.0 + log(rows_fed / limit_tuples)) * (1.0 - in_order);
	heapsort = copying + 2.0 * cpu_operator_cost * (rows_fed + entering * log2(limit_tuples + 1.0));
	return heapsort < gs_cost_sort_startup(rows_fed, rows, width) +
		limit_tuples * gs_guc_fetch_row_cost;
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

double
gs_order_of_path(PlannerInfo *root, const Path *path, List *pathkeys)
{
	const PathKey *key = linitial_node(PathKey, pathkeys);
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

double
gs_order_of_plan(const PlannedStmt *stmt, const Sort *sort)
{
	const Plan *plan = &sort->plan;
	const Var  *var = (const Var *) get_tle_by_resno(plan->targetlist, sort->sortColIdx[0])->expr;

	while (IsA(var, Var) && var->varno == OUTER_VAR && (IsA(plan, Sort) || IsA(plan, Gather)))
	{
		plan = outerPlan(plan);
		var = (const Var *) get_tle_by_resno(plan->targetlist, var->varattno)->expr;
	}
	if (!IsA(var, Var) || IS_SPECIAL_VARNO(var->varno) ||
		(!IsA(plan, SeqScan) && !IsA(plan, BitmapHeapScan)))
		return 0;
	return order_of_column(rt_fetch(var->varno, stmt->rtable), var->varattno, sort->sortOperators[0]);
}

/*
 * PostgreSQL charges the same for a look-up in a hash table of a gigabyte as in one of a kilobyte.  With two
 * million rows and a table larger than the caches, each row took 0.2 to 0.4 us more: 0.03 units and above.
 * Look-ups in the part that the caches hold take no longer.  For a table larger than hash_mem, which is cut
 * into parts, PostgreSQL charges itself.
 */
Cost
gs_cost_hash_misses(double rows, double table_bytes)
{
	if (table_bytes <= HASH_CACHE_BYTES || table_bytes > get_hash_memory_limit())
		return 0;
	return rows * HASH_MISS_COST * (1.0 - HASH_CACHE_BYTES / table_bytes);
}
