#!/bin/bash
# Two versions of gpusort on one machine, by turns: has a change made anything slower?
#
#	test/bench/versions.sh OTHER [NAME]...
#
# OTHER is a source tree of the other version, made by "git worktree add OTHER COMMIT".  Only queries and
# index builds whose names match are run; default: all.  Both versions run on the same data, one server
# at a time, BENCH_TURNS times (default 2) by turns, each query twice a turn, with 8 workers
# and work_mem 1 GB, each index once a turn; the fastest times are printed, in ms, and their sums.
# "300 MB": device_memory.  "sessions": BENCH_SESSIONS (default 16, then 64) sort table m 8 times each, in one process.
#
# Tables f and w as in order_by.sh; m has a million words; v has BENCH_VALUES rows (default 5 million) of numeric, float8, and an
# integer of 1000 values; a has BENCH_ARRAYS rows (default 1 million) of float4[20]; l, as in spill.sh, has
# BENCH_LINES (default 1 million).  "dead": m without 30 % of its rows; "unmarked": m as loaded, no page all-visible.
# For the other settings see lib.sh.
#
# For a quick look, in a minute on two cores:
#	BENCH_PATHS=50000 BENCH_WORDS=50000 BENCH_VALUES=50000 BENCH_ARRAYS=20000 \
#		BENCH_LINES=50000 BENCH_TURNS=1 test/bench/versions.sh ../before
set -u
. "$(dirname "$0")/lib.sh"

other=$(cd "${1:?usage: versions.sh OTHER [NAME]...}" && pwd) || exit 1
shift

# Both libraries, in $work/libraries; the other one's build lies in its own tree
build_other()
{
	mkdir -p "$other/build/bench" &&
		make -C "$other/build/bench" -f "$other/Makefile" PG_CONFIG="$PG_CONFIG" -j"$(nproc)" with_llvm=no "${flags[@]}"
}
bench_install "$@"
interruptible build_other >"$work/other.log" 2>&1 || { tail -30 "$work/other.log" >&2; exit 1; }
mkdir "$work/libraries"
cp "$pkglibdir/gpusort.so" "$work/libraries/this.so"
cp "$other/build/bench/gpusort.so" "$work/libraries/other.so"
bench_start bench
bench_head "$other" "$@"

bench_load_paths f "${BENCH_PATHS:-10000000}"
bench_load_words w "${BENCH_WORDS:-10000000}"
bench_load_words m 1000000
bench_load v "${BENCH_VALUES:-5000000}" "id int, few int, amount numeric, f8 float8" \
	"i, abs(hashint4(i)) % 1000, (hashint4(i)::numeric * 1000 + i % 7) / 100, hashint4(i + 1) / 7.0"
bench_load a "${BENCH_ARRAYS:-1000000}" "id int, a float4[]" \
	"i, ARRAY(SELECT (hashint4(i * 20 + j) % 1000000)::float4 / 7 FROM generate_series(1, 20) AS j)"
bench_load_lines l "${BENCH_LINES:-1000000}"
bench_sql -c "CREATE TABLE unmarked AS SELECT * FROM m" -c "CREATE TABLE dead AS SELECT * FROM m" \
	-c "DELETE FROM dead WHERE id % 10 < 3" -c "ANALYZE unmarked, dead" || exit 1
for table in f w m v a l unmarked dead; do
	bench_sql -c "ALTER TABLE $table SET (parallel_workers = 8)" || exit 1
done
bench_ready

use_version()
{
	version=$1
	stop_server bench
	cp "$work/libraries/$1.so" "$pkglibdir/gpusort.so"
	start_server bench || exit 1
	bench_sql -c "SELECT pg_prewarm(t) FROM unnest('{f,w,m,v,a,l,unmarked,dead}'::regclass[]) AS t" >/dev/null
	until bench_sql -c "SET gpusort.force = on" -c "EXPLAIN SELECT p FROM w ORDER BY p" | grep -q GpuSort; do
		sleep 0.2
	done
}

# Run statements, and note what they took, in ms
timed()
{
	{
		bench_settings "${2-} gpusort.force=on max_parallel_workers_per_gather=8 max_parallel_maintenance_workers=8
			work_mem=1GB maintenance_work_mem=8GB statement_timeout=60s"
		cat
	} | bench_sql 2>>"$work/errors" | sed -nE 's/^(Execution )?Time: ([0-9.]*) ms.*/\2/p' >>"$work/times/$1.$version"
}

# query NAME SQL [SETTING=VALUE]
query()
{
	local name=$1 sql="EXPLAIN (ANALYZE, TIMING OFF) $2;"

	bench_wanted "$name" || return
	timed "$name" "${3-}" <<<"$sql $sql"
}

index()
{
	local name="index $1${2:+, $2 worker}"

	bench_wanted "$name" || return
	printf '%s\n' "SET max_parallel_maintenance_workers = ${2:-8};" '\timing on' "CREATE INDEX one ON $1;" \
		'\timing off' "DROP INDEX one;" | timed "$name"
}

# All sessions at once sort again and again, each in one process
sessions()
{
	local name="$1 sessions" begin=$EPOCHREALTIME

	bench_wanted "$name" || return
	{
		bench_settings "gpusort.force=on max_parallel_workers_per_gather=0"
		echo 'SELECT id, p FROM m ORDER BY p COLLATE "C" OFFSET 999999999;'
	} >"$work/sort.sql"
	chmod a+r "$work/sort.sql"
	as_user "$bindir/pgbench" -n -f "$work/sort.sql" -c "$1" -j "$1" -t 8 >/dev/null 2>>"$work/errors"
	awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN {print (b - a) * 1000}' >>"$work/times/$name.$version"
}

run_all()
{
	local t c n

	for t in f w; do
		for c in C en_US.utf8 en-x-icu; do
			query "$t ORDER BY p $c" "SELECT id, p FROM $t ORDER BY p COLLATE \"$c\""
		done
		query "$t columns read in order" "SELECT sum(id), max(octet_length(p)) FROM (SELECT id, p FROM $t ORDER BY p COLLATE \"C\" OFFSET 0) AS s"
		query "$t ORDER BY id" "SELECT id, p FROM $t ORDER BY id"
		query "$t LIMIT 100000" "SELECT id, p FROM $t ORDER BY p COLLATE \"C\" LIMIT 100000"
		query "$t count(DISTINCT p)" "SELECT count(DISTINCT p COLLATE \"C\") FROM $t"
		query "$t DISTINCT p" "SELECT DISTINCT p COLLATE \"C\" FROM $t"
		query "$t GROUP BY p" "SELECT p COLLATE \"C\", count(*) FROM $t GROUP BY 1"
		query "$t DISTINCT p en_US.utf8" "SELECT DISTINCT p COLLATE \"en_US.utf8\" FROM $t"
		query "$t GROUP BY p en_US.utf8" "SELECT p COLLATE \"en_US.utf8\", count(*) FROM $t GROUP BY 1"
		query "$t rank()" "SELECT id, rank() OVER (ORDER BY p COLLATE \"C\") FROM $t"
		query "$t lag(id)" "SELECT lag(id) OVER (ORDER BY p COLLATE \"C\") FROM $t"
		query "$t sum(id) OVER" "SELECT sum(id) OVER (ORDER BY p COLLATE \"C\") FROM $t"
		query "$t percentile_disc(p)" "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p COLLATE \"C\") FROM $t"
		index "$t (p COLLATE \"C\")"
		index "$t (id)"
	done
	index "l (l_shipdate)"
	index "l (l_shipdate)" 1
	index "l (l_partkey, l_suppkey)"
	index "l (l_comment COLLATE \"C\")"
	index "w (p COLLATE \"en_US.utf8\")"
	for n in ${BENCH_SESSIONS:-16 64}; do
		sessions "$n"
	done
	for t in m dead unmarked; do
		query "$t ORDER BY p" "SELECT id, p FROM $t ORDER BY p COLLATE \"C\""
	done
	query "m ORDER BY p SERIALIZABLE" "SELECT id, p FROM m ORDER BY p COLLATE \"C\"" default_transaction_isolation=serializable
	query "f JOIN w" "SELECT count(*) FROM f JOIN w ON f.p COLLATE \"C\" = w.p COLLATE \"C\""
	query "v ORDER BY amount" "SELECT id FROM v ORDER BY amount"
	query "v ORDER BY f8" "SELECT id, f8 FROM v ORDER BY f8"
	query "v string_agg in groups" "SELECT few, octet_length(string_agg(id::text, ',' ORDER BY f8)) FROM v GROUP BY 1"
	query "v percentile_cont in groups" "SELECT few, percentile_cont(0.5) WITHIN GROUP (ORDER BY f8) FROM v GROUP BY 1"
	query "a ORDER BY a" "SELECT id, a FROM a ORDER BY a"
	query "a gpu_sort_array(a)" "SELECT sum((gpu_sort_array(a))[7]) FROM a"
	bench_sql -c "ALTER SYSTEM SET gpusort.device_memory = '300MB'" -c "SELECT pg_reload_conf()" >/dev/null
	query "f ORDER BY p C, 300 MB" "SELECT id, p FROM f ORDER BY p COLLATE \"C\""
	query "w ORDER BY p en_US.utf8, 300 MB" "SELECT id, p FROM w ORDER BY p COLLATE \"en_US.utf8\""
	bench_sql -c "ALTER SYSTEM RESET gpusort.device_memory" -c "SELECT pg_reload_conf()" >/dev/null
}

mkdir "$work/times"
for _ in $(seq "${BENCH_TURNS:-2}"); do
	for version in other this; do
		use_version "$version"
		run_all
	done
done
sort "$work/errors" | uniq -c

fastest()
{
	sort -n "$1" | head -1
}

echo
printf '%-40s %9s %9s %8s\n' query other this 'this/other'
(
	cd "$work/times" || exit 1
	ls -1tr -- *.other | while read -r file; do
		name=${file%.other}
		echo "$name|$(fastest "$file")|$(fastest "$name.this")"
	done
) | awk -F'|' '!($2 > 0 && $3 > 0) {printf "%-40s failed\n", $1; next}
	{printf "%-40s %9d %9d %8.2f\n", $1, $2, $3, $3 / $2; other += $2; this += $3}
	END {printf "%-40s %9d %9d %8.2f\n", "sum", other, this, this / other}'
