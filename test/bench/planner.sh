#!/bin/bash
# Queries for which the planner need not sort, or which sort inside of something else:
# aggregates, DISTINCT, groups, windows, LIMIT.  All by the planner's own choice.
#
# Tables f (file paths, BENCH_PATHS rows) and w (10 million words, BENCH_WORDS), as in
# order_by.sh; v has 10 million rows (BENCH_VALUES) of float8, numeric and integers with few
# values.  Each query runs with 2 and 8 workers (BENCH_WORKERS) and with work_mem 64 MB and
# 1 GB (BENCH_WORK_MEM), costs at PostgreSQL's defaults; the fastest is printed, of PostgreSQL
# and of gpusort, in ms, and what gpusort's plan has.  What takes longer than
# BENCH_PATIENCE seconds (default 30) is left out.  Results of both are compared where
# they are one row.
#
#	test/bench/planner.sh [NAME]...		only the queries whose names match
set -u
. "$(dirname "$0")/lib.sh"

bench_begin "$@"
loads=()
bench_load_paths f "${BENCH_PATHS:-10000000}" &
loads+=($!)
bench_load_words w "${BENCH_WORDS:-10000000}" &
loads+=($!)
bench_load v "${BENCH_VALUES:-10000000}" "id int, f8 float8, amount numeric, few int, name text" \
	"i, hashint4(i)::float8 / 7, (abs(hashint4(i)) % 5000000)::numeric / 100, abs(hashint4(i + 7)) % 1000, 'name ' || hashint4(i + 3) % 100000" &
loads+=($!)
for load in "${loads[@]}"; do
	wait "$load" || exit 1
done
bench_ready

costs="parallel_setup_cost=1000 parallel_tuple_cost=0.1 statement_timeout=$((${BENCH_PATIENCE:-30} * 1000))"
stock="gpusort.enabled=off $costs"
ours="gpusort.enabled=on $costs"

best()
{
	local who=$1 sql=$2 workers memory t best=-1

	for workers in ${BENCH_WORKERS:-2 8}; do
		for memory in ${BENCH_WORK_MEM:-64MB 1GB}; do
			t=$(bench_time "$who max_parallel_workers_per_gather=$workers work_mem=$memory" "$sql" 2>/dev/null || true)
			[ "$t" -ge 0 ] && { [ "$best" -lt 0 ] || [ "$t" -lt "$best" ]; } && best=$t
		done
	done
	echo "$best"
}

# The answer, where it is one row
answer()
{
	{ bench_settings "$1 max_parallel_workers_per_gather=8 work_mem=1GB"; echo "SELECT md5(x::text) FROM ($2 LIMIT 1) AS x;"; } |
		bench_sql 2>/dev/null
}

row()
{
	local name=$1 sql=$2 kind=${3:-rows} pg mine nodes same=

	bench_wanted "$name" || return
	pg=$(best "$stock" "$sql")
	mine=$(best "$ours" "$sql")
	nodes=$({ bench_settings "$ours max_parallel_workers_per_gather=8 work_mem=64MB"; echo "EXPLAIN (COSTS OFF) $sql"; } | bench_sql |
		sed -nE 's/^ *(->)? *(Custom Scan \(([A-Za-z]+)\).*|((Partial |Finalize |Parallel )?(Hash|Group|Mixed)?Aggregate|Unique|Incremental Sort|Sort|Group|WindowAgg|Merge Join|(Parallel )?Hash Join)$)/\3\4/p' |
		uniq | paste -sd' ')
	if [ "$kind" = one ] && [ "$pg" -ge 0 ]; then
		[ "$(answer "$stock" "$sql")" = "$(answer "$ours" "$sql")" ] && same="; same" || same="; NOT THE SAME"
	fi
	printf '%-48s %9s %9s %8s   %s\n' "$name" "$pg" "$mine" "$(bench_ratio "$pg" "$mine")" "$nodes$same"
}

echo
printf '%-48s %9s %9s %8s   %s\n' query postgres gpusort faster "gpusort's plan"
for t in f w; do
	for collation in C en_US.utf8; do
		row "$t count(DISTINCT p) $collation" "SELECT count(DISTINCT p COLLATE \"$collation\") FROM $t" one
	done
	# not length(), which looks at each byte of the result
	row "$t string_agg(p ORDER BY p) in 1000 groups" \
		"SELECT id % 1000, octet_length(string_agg(p, ',' ORDER BY p COLLATE \"C\")) FROM $t GROUP BY 1"
	row "$t percentile_disc(p)" "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p COLLATE \"C\") FROM $t" one
	row "$t GROUP BY p" "SELECT p COLLATE \"C\", count(*) FROM $t GROUP BY 1"
	row "$t DISTINCT p" "SELECT DISTINCT p COLLATE \"C\" FROM $t"
	row "$t ORDER BY p ICU" "SELECT id, p FROM $t ORDER BY p COLLATE \"en-x-icu\""
	for n in 100 10000 100000 1000000; do
		row "$t LIMIT $n" "SELECT id, p FROM $t ORDER BY p COLLATE \"C\" LIMIT $n"
	done
	row "$t sum(id) OVER (ORDER BY p)" "SELECT sum(id) OVER (ORDER BY p COLLATE \"C\") FROM $t"
	row "$t lag(id) OVER (ORDER BY p)" "SELECT lag(id) OVER (ORDER BY p COLLATE \"C\") FROM $t"
done
row "f UNION w" "SELECT p COLLATE \"C\" FROM f UNION SELECT p COLLATE \"C\" FROM w"
row "v percentile_cont(f8)" "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f8) FROM v" one
row "v percentile_disc(f8) in 1000 groups" "SELECT few, percentile_disc(0.5) WITHIN GROUP (ORDER BY f8) FROM v GROUP BY 1"
row "v count(DISTINCT name) in 1000 groups" "SELECT few, count(DISTINCT name COLLATE \"C\") FROM v GROUP BY few"
row "v GROUP BY few" "SELECT few, count(*) FROM v GROUP BY few"
row "v DISTINCT few" "SELECT DISTINCT few FROM v"
row "v ORDER BY amount, name en_US" "SELECT id FROM v ORDER BY amount, name COLLATE \"en_US.utf8\""
row "v row_number() <= 3 in 1000 groups" \
	"SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY few ORDER BY f8) AS r FROM v) AS x WHERE r <= 3"
row "w JOIN w on p" "SELECT count(*) FROM w AS a JOIN w AS b ON a.p COLLATE \"C\" = b.p COLLATE \"C\"" one
row "w JOIN w on p, in order" \
	"SELECT a.id FROM w AS a JOIN w AS b ON a.p COLLATE \"C\" = b.p COLLATE \"C\" ORDER BY a.p COLLATE \"C\""
