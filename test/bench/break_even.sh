#!/bin/bash
# From how many rows on is gpusort faster than PostgreSQL?
#
#	break_even.sh [int] [C] [en_US]		the sort keys; default: all
#
# Table f has BENCH_PATHS file paths (default 1 million) and an index on id.  One session sorts
# BENCH_SIZES neighbouring rows by an int, by path COLLATE "C", and by path COLLATE "en_US.utf8",
# and does not fetch them.  Printed are the median ms of a query, planning included, of up to 15 of
# them (fewer for many rows).  PostgreSQL plans with its own costs, up to 8 workers and work_mem
# 64 MB.  gpusort sorts each time, whatever the costs say (gpusort.force, and min_rows = 0); "chosen"
# tells whether the planner, left alone, takes it.
#
# All cores are used; taskset -c 0-1 in front of the command gives it two.
# For the other settings see lib.sh.
set -u
. "$(dirname "$0")/lib.sh"

bench_begin "$@"
paths=${BENCH_PATHS:-1000000}
common="parallel_setup_cost=1000 parallel_tuple_cost=0.1 max_parallel_workers_per_gather=8 work_mem=64MB"
forced="gpusort.force=on gpusort.min_rows=0"

# ROWS KEY: the query
query()
{
	local first=$(((paths - $1) / 2))

	echo "SELECT id, p FROM f WHERE id BETWEEN $((first + 1)) AND $((first + $1)) ORDER BY $2 OFFSET 999999999;"
}

# ROWS KEY SETTINGS: median ms; a session's first query, which is a small one, does not count
measure()
{
	local times=$((600000 / $1))

	[ "$times" -le 15 ] || times=15
	[ "$times" -ge 1 ] || times=1
	{
		bench_settings "$common $3"
		query 1000 "$2"
		echo '\timing on'
		for _ in $(seq "$times"); do
			query "$1" "$2"
		done
	} | bench_sql | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | bench_median 1
}

chosen()
{
	{
		bench_settings "$common"
		echo "EXPLAIN (COSTS OFF) $(query "$1" "$2")"
	} | bench_sql | grep -q 'GpuSort)' && echo yes || echo no
}

bench_load_paths f "$paths"
bench_sql -c "CREATE INDEX f_id ON f (id)" -c "VACUUM ANALYZE f" -c "SELECT pg_prewarm('f_id')" >/dev/null
bench_ready
printf '\n%-12s %8s %10s %10s %8s %8s\n' key rows postgres gpusort faster chosen
for key in int C en_US; do
	bench_wanted "$key" || continue
	case $key in
		int) by='hashint4(id)' ;;
		C) by='p COLLATE "C"' ;;
		en_US) by='p COLLATE "en_US.utf8"' ;;
	esac
	for rows in ${BENCH_SIZES:-1000 3000 10000 20000 50000 100000 300000 1000000}; do
		[ "$rows" -le "$paths" ] || continue
		pg=$(measure "$rows" "$by" gpusort.enabled=off)
		ours=$(measure "$rows" "$by" "$forced")
		printf '%-12s %8s %10s %10s %8s %8s\n' "$key" "$rows" "$pg" "$ours" "$(bench_ratio "$pg" "$ours")" \
			"$(chosen "$rows" "$by")"
	done
done
