#!/bin/bash
# After a new glibc or ICU: finding out whether an index is in order, against
# rebuilding it all the same.  A table of real file paths, BENCH_PATHS rows (default
# 10 million), has an index under each collation.  Medians in ms:
#
#	check		gpusort_collation_check(), of this index alone
#	amcheck		bt_index_check()
#	postgres	REINDEX INDEX without gpusort, with up to 8 workers
#	gpusort		REINDEX INDEX with gpusort
#	repair		gpusort_collation_repair() of the index in a wrong order, once: check, REINDEX CONCURRENTLY and all
#
# All pages are in shared buffers.  For the other settings see lib.sh.
#
#	test/bench/collation.sh [NAME]...		only the collations whose names match
#
# For a quick look, in a minute on two cores:
#	BENCH_PATHS=100000 BENCH_RUNS=1 test/bench/collation.sh
set -u
. "$(dirname "$0")/lib.sh"

bench_begin "$@"
bench_load_paths f "${BENCH_PATHS:-10000000}"
bench_sql -c "CREATE EXTENSION amcheck" \
	-c "CREATE COLLATION libc (provider = libc, locale = 'en_US.utf8')" \
	-c "CREATE COLLATION icu (provider = icu, locale = 'en-US')" || exit 1
bench_ready
settings="maintenance_work_mem=8GB max_parallel_maintenance_workers=8 gpusort.min_rows=0"

# Median ms of a statement; with a number, of so many runs
statement_time()
{
	{
		bench_settings "$settings $1"
		echo '\timing on'
		for _ in $(seq "${3:-$runs}"); do
			echo "$2;"
		done
	} | bench_sql 2>/dev/null | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | bench_median
}

echo
printf '%-6s %8s | %8s %8s %8s %8s | %8s\n' index MB check amcheck postgres gpusort repair
for c in libc icu; do
	bench_wanted $c || continue
	bench_sql -c "SET maintenance_work_mem = '8GB'; CREATE INDEX f_p ON f (p COLLATE $c)" \
		-c "SELECT pg_prewarm('f_p')" >/dev/null || exit 1
	mb=$(bench_sql -c "SELECT pg_relation_size('f_p') >> 20")
	check=$(statement_time '' 'SELECT * FROM gpusort_collation_check(true)')
	amcheck=$(statement_time '' "SELECT bt_index_check('f_p')")
	postgres=$(statement_time gpusort.index_build=off 'REINDEX INDEX f_p')
	gpusort=$(statement_time '' 'REINDEX INDEX f_p')
	# built in the order of bytes, under a name that then means another one
	bench_sql -c "DROP INDEX f_p; CREATE INDEX f_p ON f (p COLLATE \"C\")" \
		-c "UPDATE pg_index SET indcollation = '$c'::regcollation::oid::text::oidvector WHERE indexrelid = 'f_p'::regclass" \
		-c "UPDATE pg_attribute SET attcollation = '$c'::regcollation WHERE attrelid = 'f_p'::regclass" \
		-c "UPDATE pg_collation SET collversion = '1.0' WHERE collname = '$c'" || exit 1
	repair=$(statement_time '' 'CALL gpusort_collation_repair()' 1)
	printf '%-6s %8d | %8d %8d %8d %8d | %8d\n' $c "$mb" "$check" "$amcheck" "$postgres" "$gpusort" "$repair"
	[ "$(bench_sql -c "SELECT broken FROM gpusort_collation_check(true)" 2>/dev/null)" = f ] || bench_die "it is not repaired"
	bench_sql -c "DROP INDEX f_p"
done
