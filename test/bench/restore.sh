#!/bin/bash
# The keys and indexes of TPC-H, as a restore builds them: one after the other, and by pg_restore -j 8.
#
# The tables are logged, in shared buffers, frozen and analyzed.  Sides take turns, BENCH_RUNS times: PostgreSQL alone, gpusort.
# Printed are the least times, in ms.  For the other settings see lib.sh.
#
#	test/bench/restore.sh
#
#	BENCH_TPCH=1				scale factor
#	BENCH_WORKERS=8				max_parallel_maintenance_workers
#	BENCH_WHEELS=folder			as for tpc.sh
set -u
BENCH_RUNS=${BENCH_RUNS:-1}
export BENCH_TPCDS=0
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/tpc_load.sh"

bench_begin "$@"
logged=yes
load_tables
tables_of "'SELECT pg_prewarm(''%I.%I'')'" | side_by_side || bench_die "data were not loaded"
echo "loaded:  TPC-H ${BENCH_TPCH:-1}, in $SECONDS s"
bench_ready

drop_all()
{
	bench_sql <<-'SQL'
		SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) FROM pg_constraint
			WHERE connamespace = 'tpch'::regnamespace AND contype = 'p' \gexec
		SELECT format('DROP INDEX %s', indexrelid::regclass) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
			WHERE relnamespace = 'tpch'::regnamespace \gexec
		CHECKPOINT;
	SQL
}

# build HOW SIDE: adds a line "HOW SIDE ms" to $work/times
build()
{
	local begin

	drop_all
	export PGOPTIONS="-c gpusort.index_build=$2 -c max_parallel_maintenance_workers=${BENCH_WORKERS:-8} -c maintenance_work_mem=1GB"
	begin=$EPOCHREALTIME
	case $1 in
		turn) indexes | sed 's/$/;/' | bench_sql ;;
		restore) as_user "$bindir/pg_restore" -j 8 -d postgres "$run/dump" ;;
	esac || bench_die "indexes were not built"
	echo "$1 $2 $begin $EPOCHREALTIME" | awk '{print $1, $2, int(($4 - $3) * 1000)}' >>"$work/times"
	unset PGOPTIONS
}

indexes | side_by_side || bench_die "indexes were not built"
as_user "$bindir/pg_dump" -Fc --section=post-data -n tpch -f "$run/dump" postgres || exit 1
for _ in $(seq "$runs"); do
	for how in turn restore; do
		for side in off on; do
			build $how $side
		done
	done
done

least()
{
	awk -v how="$1" -v side="$2" '$1 == how && $2 == side {print $3}' "$work/times" | sort -n | head -1
}

echo
printf '%-20s %9s %9s %7s\n' "$(indexes | wc -l) indexes" PostgreSQL gpusort faster
printf '%-20s %9d %9d %7s\n' "one after the other" "$(least turn off)" "$(least turn on)" "$(bench_ratio "$(least turn off)" "$(least turn on)")" \
	"pg_restore -j 8" "$(least restore off)" "$(least restore on)" "$(bench_ratio "$(least restore off)" "$(least restore on)")"
