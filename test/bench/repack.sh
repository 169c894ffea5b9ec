#!/bin/bash
# CLUSTER, REPACK USING INDEX on PostgreSQL 19: PostgreSQL by index scan and by sort against
# gpusort, in one run, on the tables of order_by.sh:
#
#	f	real file paths and an int		BENCH_PATHS rows (default 1 million)
#	w	short random words and an int	BENCH_WORDS rows (default 1 million)
#
# Prints a table of medians in ms: "copy" is until the new table is written, "all" with its
# indexes, one on the column and one on id, which brings the rows into their first order again
# before each run.  maintenance_work_mem is 8 GB for all.  All pages are in shared buffers, the best
# case of an index scan.  "default" is who copies without gpusort.force; then come gpusort's phases
# in the last run, and a comparison of the order of rows.  For the other settings see lib.sh.
#
#	test/bench/repack.sh [NAME]...		only the lines whose names match: "f p COLLATE "C""
set -u
. "$(dirname "$0")/lib.sh"

bench_begin "$@"
bench_load_paths f "${BENCH_PATHS:-1000000}"
bench_load_words w "${BENCH_WORDS:-1000000}"
bench_sql -c "CREATE UNIQUE INDEX f_id ON f (id)" -c "CREATE UNIQUE INDEX w_id ON w (id)" || exit 1
bench_ready

common="max_parallel_maintenance_workers=8 maintenance_work_mem=8GB client_min_messages=debug1"
stock="gpusort.enabled=off $common"
gpu="gpusort.enabled=on $common"

# SETTINGS TABLE: median ms of "copy" and "all"
cluster_times()
{
	local settings=$1 table=$2

	{
		for _ in $(seq "$runs"); do
			echo "RESET ALL; SET gpusort.force = on; CLUSTER $table USING ${table}_id; VACUUM (ANALYZE) $table; RESET ALL;"
			bench_settings "$settings"
			echo '\timing on'
			echo "CLUSTER VERBOSE $table USING i;"
			echo '\timing off'
		done
	} | bench_sql >"$work/cluster.last" 2>&1 || { tail "$work/cluster.last" >&2; bench_die "CLUSTER failed"; }
	echo "$(sed -n 's/^CPU:.*elapsed: \([0-9.]*\) s.*/\1/p' "$work/cluster.last" | awk '{print $1 * 1000}' | bench_median)" \
		"$(sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' "$work/cluster.last" | bench_median)"
}

# The rows of table i in their order
order_of()
{
	bench_sql -c "COPY (SELECT id FROM $1 ORDER BY ctid) TO STDOUT" | md5sum
}

echo
printf '%-24s | %8s %8s | %8s %8s | %8s %8s | %7s | %s\n' "" 'index' all sort all ours all faster default
: >"$work/lines"
: >"$work/orders"
while read -r table columns; do
	bench_wanted "$table $columns" || continue
	bench_sql -c "CREATE INDEX i ON $table ($columns)" || exit 1
	read -r index_copy index_all < <(cluster_times "$stock enable_seqscan=off" "$table")
	stock_order=$(order_of "$table")
	read -r sort_copy sort_all < <(cluster_times "$stock enable_indexscan=off" "$table")
	cluster_times "$gpu" "$table" >/dev/null
	default=$(grep -q 'gpusort sorted table' "$work/cluster.last" && echo gpusort || echo PostgreSQL)
	read -r our_copy our_all < <(cluster_times "$gpu gpusort.force=on" "$table")
	echo "$table $columns: $(grep -oE 'gpusort sorted table.*' "$work/cluster.last" | tail -1)" >>"$work/lines"
	echo "$table $columns: $([ "$(order_of "$table")" = "$stock_order" ] && echo same || echo DIFFERENT)" >>"$work/orders"
	printf '%-24s | %8d %8d | %8d %8d | %8d %8d | %7s | %s\n' "$table $columns" "$index_copy" "$index_all" \
		"$sort_copy" "$sort_all" "$our_copy" "$our_all" \
		"$(bench_ratio "$(bench_min "$index_all" "$sort_all")" "$our_all")" "$default"
	bench_sql -c "DROP INDEX i"
done <<-'INDEXES'
	f p COLLATE "C", id
	f p COLLATE "en_US.utf8", id
	w p COLLATE "C", id
	w (id::bigint * 7919 % 1000003), id
INDEXES

echo
echo "phases of the last run:"
cat "$work/lines"
echo
echo "rows compared with PostgreSQL's order:"
cat "$work/orders"
