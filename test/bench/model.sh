#!/bin/bash
# The times of the planner's model (src/plan/sort_cost.c), measured: small queries that have little but one of its parts, over a
# table of 100,000 and one of a million rows (BENCH_SIZES) that lie in memory.  PostgreSQL and gpusort, each without workers and
# with two; ns of a row.  Differences between lines, and between sizes, are the model's constants.
#
#	test/bench/model.sh [NAME]...		only the queries whose names match
#
# BENCH_DEVICE=host measures without the GPU; taskset -c 0,1 in front of it, on two cores.
set -u
. "$(dirname "$0")/lib.sh"

bench_begin "$@"
for n in ${BENCH_SIZES:-100000 1000000}; do
	bench_load "m$n" "$n" "id int, g1 int, g2 int, g3 int, g4 int, t3 text, t4 text, v bigint, n numeric" \
		"i, h % 10, h % 1000, h % 30000, h % ($n / 4), 'user' || h % 30000 || '@example.org',
		'user' || h % ($n / 4) || '@example.org', h * 7 % 1000003, (h % 1000000) / 100.0" \
		"CROSS JOIN LATERAL (SELECT abs(hashint4(i * 13))::bigint AS h) AS hashes"
done
bench_ready

row()
{
	local name=$1 n who workers t line

	bench_wanted "$name" || return
	for n in ${BENCH_SIZES:-100000 1000000}; do
		line=
		for who in gpusort.enabled=off "gpusort.force=on gpusort.min_rows=0"; do
			for workers in 0 2; do
				t=$(bench_time "$who max_parallel_workers_per_gather=$workers work_mem=64MB" "${2//TABLE/m$n}")
				line+=$(awk -v t="$t" -v n="$n" 'BEGIN {printf " %12d", t < 0 ? -1 : t * 1e6 / n}')
			done
		done
		printf '%-28s %9d%s\n' "$name" "$n" "$line"
	done
}

printf '%-28s %9s %12s %12s %12s %12s\n' query rows postgres workers gpusort workers
row "scan" "SELECT * FROM TABLE"
row "scan, condition" "SELECT * FROM TABLE WHERE v < 0"
row "hash 10" "SELECT g1, count(*) FROM TABLE GROUP BY 1"
row "hash 1000" "SELECT g2, count(*) FROM TABLE GROUP BY 1"
row "hash 30000" "SELECT g3, count(*) FROM TABLE GROUP BY 1"
row "hash many" "SELECT g4, count(*) FROM TABLE GROUP BY 1"
row "hash many, three states" "SELECT g4, count(*), max(v), sum(g1) FROM TABLE GROUP BY 1"
row "hash many, numeric" "SELECT g4, sum(n) FROM TABLE GROUP BY 1"
row "hash many texts" "SELECT t4, count(*) FROM TABLE GROUP BY 1"
row "hash a function" "SELECT left(t3, 6), count(*) FROM TABLE GROUP BY 1"
row "distinct 1000" "SELECT DISTINCT g2 FROM TABLE"
row "distinct many" "SELECT DISTINCT g4 FROM TABLE"
row "sort a bare int" "SELECT g4 FROM TABLE ORDER BY g4"
row "sort ints" "SELECT g4, id FROM TABLE ORDER BY g4"
row "sort numeric" "SELECT n, id FROM TABLE ORDER BY n"
row "sort text C" "SELECT t4, id FROM TABLE ORDER BY t4 COLLATE \"C\""
row "sort text en_US" "SELECT t4, id FROM TABLE ORDER BY t4 COLLATE \"en_US.utf8\""
row "heap int" "SELECT v, id FROM TABLE ORDER BY v LIMIT 10"
row "heap all columns" "SELECT * FROM TABLE ORDER BY v LIMIT 10"
row "heap numeric" "SELECT n, id FROM TABLE ORDER BY n LIMIT 10"
row "heap text C" "SELECT t4, id FROM TABLE ORDER BY t4 COLLATE \"C\" LIMIT 10"
row "heap text en_US" "SELECT t4, id FROM TABLE ORDER BY t4 COLLATE \"en_US.utf8\" LIMIT 10"
row "count(DISTINCT int)" "SELECT count(DISTINCT g4) FROM TABLE"
row "count(DISTINCT text)" "SELECT count(DISTINCT t4) FROM TABLE"
row "percentile" "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY v) FROM TABLE"
