#!/bin/bash
# The host device against PostgreSQL where cores are few and sessions are many: is a server
# without a GPU ever slower with it, and what memory does it take?
#
#	host.sh [sorts] [index]		default: both
#
# Table f has BENCH_PATHS file paths (default 1 million) and an index on id.
#
# sorts: BENCH_CLIENTS sessions (default "1 4 16 64") sort BENCH_SIZES neighbouring rows (default
# "2000 20000 200000 1000000") by path, again and again for BENCH_SECONDS (default 4), under the
# collations C and en_US.  A case whose sessions sort more than 16 million rows together is left out.
# Both sides choose their plans by cost, with PostgreSQL's default costs and 2 workers, and work_mem
# 64 MB.  Printed are sorts a second, their ratio, the 99th percentile of their times in ms, the most
# MB that the server's processes had of their own, the service's among them, the CPU time of all of
# them in ms for each sort, and what gpusort did.
#
# index: CREATE INDEX on the path under both collations, one session, ms.
#
# All cores are used; taskset -c 0-1 in front of the command gives it two.
# For the other settings see lib.sh.
set -u
. "$(dirname "$0")/lib.sh"

export BENCH_DEVICE=host
bench_begin "$@"
paths=${BENCH_PATHS:-1000000}
common="parallel_setup_cost=1000 parallel_tuple_cost=0.1 max_parallel_workers_per_gather=2 work_mem=64MB"

# The memory of their own that the server's processes have, in MB
server_mb()
{
	local pid

	for pid in $(pgrep -P "$(head -1 "$run/bench/postmaster.pid")"); do
		cat "/proc/$pid/status" 2>/dev/null
	done | awk '/^RssAnon/ {sum += $2} END {print int(sum / 1024)}'
}

# The CPU time of the server's processes, and of those that have ended, in ms
server_cpu()
{
	local postmaster pid

	postmaster=$(head -1 "$run/bench/postmaster.pid")
	{
		awk '{print $16 + $17}' "/proc/$postmaster/stat"
		for pid in $(pgrep -P "$postmaster"); do
			awk '{print $14 + $15}' "/proc/$pid/stat" 2>/dev/null
		done
	} | awk -v tick="$(getconf CLK_TCK)" '{sum += $1} END {printf "%d\n", sum * 1000 / tick}'
}

# CLIENTS ROWS COLLATION SETTINGS: sorts a second, 99th percentile, MB, CPU time of a sort
measure()
{
	local script=$work/sort.sql logs=$run/latencies most=0 now pid tps cpu

	{
		bench_settings "$common $4"
		echo "\\set first random(1, $((paths - $2 + 1)))"
		echo "SELECT id, p FROM f WHERE id BETWEEN :first AND :first + $(($2 - 1)) ORDER BY p COLLATE \"$3\" OFFSET 999999999;"
	} >"$script"
	chmod a+r "$script"
	rm -rf "$logs"
	as_user mkdir "$logs"
	cpu=$(server_cpu)
	as_user "$bindir/pgbench" -n -f "$script" -c "$1" -j "$(nproc)" -T "${BENCH_SECONDS:-4}" \
		-l --log-prefix="$logs/l" >"$work/pgbench.out" 2>"$work/pgbench.err" &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		now=$(server_mb)
		[ "$now" -le "$most" ] || most=$now
		sleep 0.2
	done
	wait "$pid" || { cat "$work/pgbench.err" >&2; bench_die "pgbench failed"; }
	cpu=$(($(server_cpu) - cpu))
	tps=$(sed -nE 's/^tps = ([0-9.]+) .*/\1/p' "$work/pgbench.out")
	echo "$tps $(cat "$logs"/l* | awk '{print $3}' | sort -n |
		awk '{v[NR] = $1} END {printf "%.1f", v[int((NR * 99 + 99) / 100)] / 1000}') $most $(cat "$logs"/l* |
		awk -v cpu="$cpu" 'END {printf "%.1f", cpu / NR}')"
}

sorts()
{
	local rows collation clients pg pg_p99 pg_mb pg_cpu ours ours_p99 ours_mb ours_cpu

	bench_sql -c "CREATE INDEX f_id ON f (id)" -c "VACUUM ANALYZE f" -c "SELECT pg_prewarm('f_id')" >/dev/null
	printf '\n%-8s %-11s %-8s %10s %10s %7s %9s %9s %7s %7s %8s %8s   %s\n' \
		rows collation sessions pg/s gpusort/s faster 'pg p99' 'our p99' 'pg MB' 'our MB' 'pg CPU' 'our CPU' 'on the device'
	for rows in ${BENCH_SIZES:-2000 20000 200000 1000000}; do
		for collation in C en_US.utf8; do
			for clients in ${BENCH_CLIENTS:-1 4 16 64}; do
				[ $((rows * clients)) -le 16000000 ] || continue
				read -r pg pg_p99 pg_mb pg_cpu < <(measure "$clients" "$rows" "$collation" gpusort.enabled=off)
				bench_sql -c "SELECT gpusort_stats_reset()" >/dev/null
				read -r ours ours_p99 ours_mb ours_cpu < <(measure "$clients" "$rows" "$collation" gpusort.enabled=on)
				printf '%-8s %-11s %-8s %10.1f %10.1f %7s %9s %9s %7s %7s %8s %8s   %s\n' "$rows" "$collation" "$clients" \
					"$pg" "$ours" "$(bench_ratio "$ours" "$pg")" "$pg_p99" "$ours_p99" "$pg_mb" "$ours_mb" "$pg_cpu" "$ours_cpu" \
					"$(bench_sql -c "SELECT device_sorts FROM gpusort_stats"), fallbacks: $(bench_fallbacks)"
			done
		done
	done
}

index_time()
{
	{
		bench_settings "maintenance_work_mem=256MB max_parallel_maintenance_workers=2 $1"
		echo '\timing on'
		for _ in $(seq "$runs"); do
			echo "CREATE INDEX f_p ON f (p COLLATE \"$2\");"
			echo '\timing off'
			echo "DROP INDEX f_p;"
			echo '\timing on'
		done
	} | bench_sql | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | bench_median
}

indexes()
{
	local collation pg ours

	printf '\n%-24s %9s %9s %8s\n' 'CREATE INDEX' postgres gpusort faster
	for collation in C en_US.utf8; do
		pg=$(index_time gpusort.index_build=off "$collation")
		ours=$(index_time gpusort.index_build=on "$collation")
		printf '%-24s %9s %9s %8s\n' "$collation" "$pg" "$ours" "$(bench_ratio "$pg" "$ours")"
	done
}

bench_load_paths f "$paths"
bench_ready
! bench_wanted sorts || sorts
! bench_wanted index || indexes
printf '\nservice: %s MB at its peak\n' \
	"$(awk '/^VmHWM/ {print int($2 / 1024)}' "/proc/$(bench_sql -c "SELECT DISTINCT service_pid FROM gpusort_devices")/status")"
