#!/bin/bash
# SELECT id, p FROM t ORDER BY p COLLATE "C": PostgreSQL at its best against
# gpusort, in one run, on two tables:
#
#	f	real file paths and an int		BENCH_PATHS rows (default: all there are)
#	w	short random words and an int	BENCH_WORDS rows (default 10 million)
#
# Prints a table of medians in ms; s is serial, p parallel with 8 workers
# allowed, 64 and 8G the work_mem.  PostgreSQL's best is the fastest of the
# four.  gpusort's rows are not bounded by work_mem, which is 64 MB for it.  For
# COPY PostgreSQL's parallel plan with 8 GB stands alone.  For the other
# settings see lib.sh.
#
# For a quick look, in a quarter of a minute on two cores:
#	BENCH_PATHS=100000 BENCH_WORDS=100000 BENCH_RUNS=1 test/bench/order_by.sh
set -u
. "$(dirname "$0")/lib.sh"

bench_begin "$@"
bench_load_paths f "${BENCH_PATHS:-10000000}"
bench_load_words w "${BENCH_WORDS:-10000000}"
bench_sql -c "CREATE TABLE f100k AS SELECT * FROM f LIMIT 100000" || exit 1
bench_settle f100k
bench_ready

stock="gpusort.enabled=off"
serial="max_parallel_workers_per_gather=0"
parallel="max_parallel_workers_per_gather=8"
gpu="gpusort.enabled=on gpusort.force=on work_mem=64MB"

echo
printf '%-8s %9s | %8s %8s | %8s %8s %8s %8s %8s | %8s %8s | %7s %7s\n' \
	table rows scan 'scan p' 'pg s64' 'pg s8G' 'pg p64' 'pg p8G' best 'ours s' 'ours p' faster '/scan'
for t in f w f100k; do
	sorted="SELECT id, p FROM $t ORDER BY p COLLATE \"C\""
	unsorted="SELECT id, p FROM $t"
	n=$(bench_sql -c "SELECT count(*) FROM $t")
	scan=$(bench_time "$stock $serial" "$unsorted")
	scanp=$(bench_time "$stock $parallel" "$unsorted")
	s64=$(bench_time "$stock $serial work_mem=64MB" "$sorted")
	s8g=$(bench_time "$stock $serial work_mem=8GB" "$sorted")
	p64=$(bench_time "$stock $parallel work_mem=64MB" "$sorted")
	p8g=$(bench_time "$stock $parallel work_mem=8GB" "$sorted")
	gs=$(bench_time "$gpu $serial" "$sorted")
	gp=$(bench_time "$gpu $parallel" "$sorted")
	best=$(bench_min "$s64" "$s8g" "$p64" "$p8g")
	ours=$(bench_min "$gs" "$gp")
	printf '%-8s %9d | %8d %8d | %8d %8d %8d %8d %8d | %8d %8d | %7s %7s\n' \
		"$t" "$n" "$scan" "$scanp" "$s64" "$s8g" "$p64" "$p8g" "$best" "$gs" "$gp" \
		"$(bench_ratio "$best" "$ours")" "$(bench_ratio "$ours" "$(bench_min "$scan" "$scanp")")"
done

echo
printf '%-8s | %14s %14s %14s | %9s %9s\n' "COPY" unsorted 'pg p8G' 'ours p' faster /unsorted
for t in f w; do
	sorted="SELECT id, p FROM $t ORDER BY p COLLATE \"C\""
	u=$(bench_copy_time "$stock $serial" "SELECT id, p FROM $t")
	s=$(bench_copy_time "$stock $parallel work_mem=8GB" "$sorted")
	g=$(bench_copy_time "$gpu $parallel" "$sorted")
	printf '%-8s | %14d %14d %14d | %9s %9s\n' $t "$u" "$s" "$g" "$(bench_ratio "$s" "$g")" "$(bench_ratio "$g" "$u")"
done

echo
echo "the first query of a new connection, ms (100,000 rows; three connections):"
for _ in 1 2 3; do
	{
		bench_settings "$gpu $serial"
		for _ in 1 2 3; do
			echo 'EXPLAIN (ANALYZE, TIMING OFF) SELECT id, p FROM f100k ORDER BY p COLLATE "C";'
		done
	} | bench_sql | sed -n 's/^Execution Time: \(.*\) ms/\1/p' | tr '\n' ' '
	echo
done

echo
echo "private memory of the backend while it returns the rows of w, kB above idle:"
coproc PSQL { as_user "$bindir/psql" -XAtq; }
psql_pid=$PSQL_PID
echo "SELECT pg_backend_pid();" >&"${PSQL[1]}"
read -r backend <&"${PSQL[0]}"
private_kb()
{
	awk '/^RssAnon/ {print $2}' "/proc/$backend/status"
}
idle=$(private_kb)
{
	bench_settings "$gpu $parallel"
	echo 'BEGIN; DECLARE c CURSOR FOR SELECT id, p FROM w ORDER BY p COLLATE "C";'
	echo "FETCH 1 FROM c; MOVE 1000000 FROM c; SELECT 'here';"
} >&"${PSQL[1]}"
while read -r line <&"${PSQL[0]}" && [ "$line" != here ]; do :; done
echo "$(($(private_kb) - idle))"
echo '\q' >&"${PSQL[1]}"
wait "$psql_pid" 2>/dev/null

echo
echo "order checked row by row against PostgreSQL's:"
for t in f w; do
	for on in off on; do
		{ bench_settings "gpusort.enabled=$on gpusort.force=$on $parallel work_mem=8GB"
			echo "COPY (SELECT p FROM $t ORDER BY p COLLATE \"C\") TO STDOUT;"
		} | bench_sql | md5sum >"$work/$t.$on"
	done
	cmp -s "$work/$t.on" "$work/$t.off" && echo "$t: same" || echo "$t: DIFFERENT"
done
echo
echo "last plan of each query with gpusort:"
grep -A 13 'GpuSort)' "$work/plans.log" | grep -E 'GpuSort|Device|Engine|Bytes|Rows|Workers|Chunks' | tail -9
