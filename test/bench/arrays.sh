#!/bin/bash
# gpu_sort_array() of every row against the subselect that does the same in
# PostgreSQL, (SELECT array_agg(x ORDER BY x) FROM unnest(a) AS x), in one run:
#
#	f20		arrays of 20 float4, in the row			BENCH_SMALL rows (default 1 million)
#	f1000	arrays of 1,000 float4, out of line		BENCH_LARGE rows (default 200,000)
#
# "rows" returns each row with its sorted array; "sum" adds one element up, so
# that no row goes through Gather in parallel plans (8 workers allowed).
# Medians in ms, of the subselect in one process a single run; scan is the same query with the array as it is, "alone" is
# gpu_sort_array() in the process, without GpuArraySort.  For the other settings see
# lib.sh.
#
#	test/bench/arrays.sh [NAME]...		only the lines whose names match: "f20 rows"
set -u
. "$(dirname "$0")/lib.sh"

bench_begin "$@"
elements()
{
	echo "i, (SELECT array_agg((random() * 1000)::float4) FROM generate_series(1, $1) WHERE i > 0)"
}
bench_load f20 "${BENCH_SMALL:-1000000}" "id int, a float4[]" "$(elements 20)"
bench_load f1000 "${BENCH_LARGE:-200000}" "id int, a float4[]" "$(elements 1000)"
bench_ready

stock="gpusort.enabled=off"
ours="gpusort.enabled=on"
serial="max_parallel_workers_per_gather=0"
parallel="max_parallel_workers_per_gather=8 min_parallel_table_scan_size=0"
subselect="(SELECT array_agg(x ORDER BY x) FROM unnest(a) AS x)"

echo
printf '%-6s %-5s | %8s %8s | %8s %8s %8s %8s | %8s %8s | %8s %8s\n' \
	table query scan 'scan p' 'pg s' 'pg p' 'alone s' 'alone p' 'ours s' 'ours p' 'faster s' 'faster p'
for t in f20 f1000; do
	for query in rows sum; do
		bench_wanted "$t $query" || continue
		sql()
		{
			[ "$query" = rows ] && echo "SELECT id, $1 FROM $t" || echo "SELECT sum(($1)[7]) FROM $t"
		}
		scan=$(bench_time "$stock $serial" "$(sql a)")
		scanp=$(bench_time "$stock $parallel" "$(sql a)")
		pgs=$(runs=1; bench_time "$stock $serial" "$(sql "$subselect")")
		pgp=$(bench_time "$stock $parallel" "$(sql "$subselect")")
		as=$(bench_time "$stock $serial" "$(sql "gpu_sort_array(a)")")
		ap=$(bench_time "$stock $parallel" "$(sql "gpu_sort_array(a)")")
		gs=$(bench_time "$ours $serial" "$(sql "gpu_sort_array(a)")")
		gp=$(bench_time "$ours $parallel" "$(sql "gpu_sort_array(a)")")
		printf '%-6s %-5s | %8d %8d | %8d %8d %8d %8d | %8d %8d | %8s %8s\n' $t $query \
			"$scan" "$scanp" "$pgs" "$pgp" "$as" "$ap" "$gs" "$gp" \
			"$(bench_ratio "$pgs" "$gs")" "$(bench_ratio "$pgp" "$gp")"
	done
done

echo
echo "every array against the subselect's:"
for t in f20 f1000; do
	echo "$t: $({ bench_settings "$ours $parallel"
		echo "SELECT count(*) FROM (SELECT gpu_sort_array(a) AS s, a FROM $t OFFSET 0) t
			WHERE s IS DISTINCT FROM (SELECT array_agg(x ORDER BY x) FROM unnest(a) AS x);"; } | bench_sql) different"
done
echo
echo "last plans with GpuArraySort:"
grep -A 10 'GpuArraySort)' "$work/plans.log" | grep -E 'GpuArraySort|Device|Engine|Batches|Arrays' | tail -16
