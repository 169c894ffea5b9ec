#!/bin/bash
# The same sorts by PostgreSQL, by gpusort in it, and by DuckDB, in one run: what would the user of an export
# pick?
#
# Tables f and w as in order_by.sh, which DuckDB reads from CSV files into tables of its own.  All three have
# all cores; PostgreSQL and gpusort 8 workers and work_mem 1 GB, parallel costs 0.  DuckDB compares
# text by bytes, so the others do, too.  A query that returns rows is CREATE TABLE AS in DuckDB, and
# EXPLAIN (ANALYZE, TIMING OFF) in PostgreSQL, which drops them.  "table made" is the same for all: a
# table is made, UNLOGGED in PostgreSQL.  Medians in ms, of PostgreSQL alone one run, except for "table made".
#
# pip fetches DuckDB, or takes it from the folder BENCH_WHEELS; where PYTHONPATH has it, that one is used.
#
#	test/bench/peers.sh [NAME]...		only the queries whose names match
set -u
. "$(dirname "$0")/lib.sh"

bench_begin "$@"
python3 -c 'import duckdb' 2>/dev/null || bench_python duckdb
echo "duckdb:  $(python3 -c 'import duckdb; print(duckdb.__version__)')"
bench_load_paths f "${BENCH_PATHS:-10000000}"
bench_load_words w "${BENCH_WORDS:-10000000}"
for table in f w; do
	bench_sql -c "ALTER TABLE $table SET (parallel_workers = 8)" \
		-c "COPY $table TO STDOUT (FORMAT csv)" >"$work/$table.csv" || exit 1
done
bench_ready

# DuckDB's side of a conversation: a query a line, its median comes back
coproc DUCK { python3 -u -c '
import sys, time, duckdb
runs, folder = int(sys.argv[1]), sys.argv[2]
db = duckdb.connect()
for t in "f", "w":
    db.execute(f"CREATE TABLE {t} (id int, p varchar)")
    db.execute(f"COPY {t} FROM \x27{folder}/{t}.csv\x27 (HEADER false)")
for sql in sys.stdin:
    times = []
    for _ in range(runs):
        db.execute("DROP TABLE IF EXISTS made")
        begin = time.monotonic()
        db.execute(sql).fetchall()
        times.append((time.monotonic() - begin) * 1000)
    print(round(sorted(times)[(runs - 1) // 2]))
' "$runs" "$work"; }

duckdb()
{
	local ms

	echo "$1" >&"${DUCK[1]}"
	read -r ms <&"${DUCK[0]}" || bench_die "DuckDB has ended"
	echo "$ms"
}

both="max_parallel_workers_per_gather=8 work_mem=1GB statement_timeout=$((${BENCH_PATIENCE:-60} * 1000))"

line()
{
	local pg ours

	pg=$(runs=1; bench_time "$both gpusort.enabled=off" "$2" 2>/dev/null)
	ours=$(bench_time "$both gpusort.enabled=on gpusort.force=on" "$2")
	printf '%-28s %9d %9d %9d\n' "$1" "$pg" "$ours" "$(duckdb "$3")"
}

# NAME QUERY: of rows
rows()
{
	bench_wanted "$1" || return
	line "$1" "${2//p C/p COLLATE \"C\"}" "CREATE TABLE made AS ${2//p C/p}"
}

# NAME QUERY: of one row
one()
{
	bench_wanted "$1" || return
	line "$1" "${2//p C/p COLLATE \"C\"}" "${2//p C/p}"
}

# NAME QUERY: a table
made()
{
	local sql=$2 on

	bench_wanted "$1" || return
	for on in off on; do
		{
			bench_settings "$both gpusort.enabled=$on gpusort.force=$on"
			for _ in $(seq "$runs"); do
				printf '%s\n' '\timing on' "CREATE UNLOGGED TABLE made AS ${sql//p C/p COLLATE \"C\"};" '\timing off' 'DROP TABLE made;'
			done
		} | bench_sql | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | bench_median >"$work/made.$on"
	done
	printf '%-28s %9d %9d %9d\n' "$1" "$(cat "$work/made.off")" "$(cat "$work/made.on")" \
		"$(duckdb "CREATE TABLE made AS ${sql//p C/p}")"
}

echo
printf '%-28s %9s %9s %9s\n' query postgres gpusort duckdb
for t in f w; do
	rows "$t ORDER BY p" "SELECT id, p FROM $t ORDER BY p C"
	rows "$t ORDER BY id" "SELECT id, p FROM $t ORDER BY id"
	rows "$t rank()" "SELECT id, rank() OVER (ORDER BY p C) AS r FROM $t"
	rows "$t lag(id)" "SELECT lag(id) OVER (ORDER BY p C) AS l FROM $t"
	rows "$t sum(id) OVER" "SELECT sum(id) OVER (ORDER BY p C) AS s FROM $t"
	rows "$t DISTINCT p" "SELECT DISTINCT p C AS p FROM $t"
	rows "$t GROUP BY p" "SELECT p C AS p, count(*) AS c FROM $t GROUP BY 1"
	one "$t count(DISTINCT p)" "SELECT count(DISTINCT p C) FROM $t"
	one "$t percentile_disc(p)" "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p C) FROM $t"
	made "$t table made" "SELECT id, p FROM $t"
	made "$t table made ORDER BY p" "SELECT id, p FROM $t ORDER BY p C"
done
