/*-------------------------------------------------------------------------
 *
 * sort_cost.c
 *	  What a sort by gpusort costs (sort_cost.h).
 *
 * PostgreSQL charges a sort of N rows 2 * cpu_operator_cost * N * log2(N): for
 * ten million rows 0.116 a row.  Measured there, a row of 100 bytes in a
 * serial sort takes about 0.6 us, so a unit of cost is about 5 us.
 *
 * A GpuSort costs
 *
 *		gpusort.setup_cost			a few round trips to the service: 2 ms
 *		gpusort.feed_row_cost		for each row, and once more for each
 *									FEED_WIDTH bytes of it: 100 ns
 *		gpusort.fetch_row_cost		for each row given back: 25 ns
 *
 * and nothing for the sort itself, which takes the device less time than
 * either.  Example: 10M rows of 40 bytes, one process: 400 + 10M * (0.02 *
 * 1.2 + 0.005) = 290 thousand units, against 1.16 million for Sort.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"

#include "guc.h"
#include "planner/sort_cost.h"

/* Bytes of a row that cost as much to copy as a row costs to handle. */
#define FEED_WIDTH	200.0

Cost
gs_cost_feed(double rows, int width)
{
	return rows * gs_guc_feed_row_cost * (1.0 + width / FEED_WIDTH);
}

void
gs_cost_sort(Path *path, Cost child_total, double rows, bool fed_below)
{
	path->rows = rows;
	path->startup_cost = child_total + gs_guc_setup_cost;
	if (!fed_below)
		path->startup_cost += gs_cost_feed(rows, path->pathtarget->width);
	path->total_cost = path->startup_cost + rows * gs_guc_fetch_row_cost;
}

/*
 * With a limit of K of N rows, the heap holds K rows; most rows cost one
 * comparison with its top, and about K * ln(N / K) of them enter it, for
 * log2(K) comparisons each.
 */
bool
gs_cost_prefers_heapsort(double rows, int width, double limit_tuples)
{
	double		entering;
	Cost		heapsort;
	double		bytes;

	if (limit_tuples <= 0 || limit_tuples >= rows)
		return false;
	limit_tuples = Max(limit_tuples, 1.0);
	bytes = limit_tuples * (width + 32.0);
	if (bytes > work_mem * 1024.0)
		return false;
	entering = limit_tuples * (1.0 + log(rows / limit_tuples));
	heapsort = 2.0 * cpu_operator_cost * (rows + entering * log2(limit_tuples + 1.0));
	return heapsort < gs_guc_setup_cost + gs_cost_feed(rows, width);
}
