#!/bin/bash
# Several devices: many sorts at once.
#
# Table w has 1 million words (BENCH_WORDS).  BENCH_CLIENTS sessions (default "16 64") sort all of
# them again and again for BENCH_SECONDS (default 10), each in one process; printed are sorts a
# second by PostgreSQL, by gpusort with the first device and with all that gpusort.devices
# names (BENCH_DEVICES, default: all that there are; "0,0" opens the first one twice), and before them how
# often a second PostgreSQL counts the rows in the same way.  Then come, of the last: how many cores the
# server used, and the busiest thread of the service; and the sorts that fell back.
set -u
. "$(dirname "$0")/lib.sh"

bench_begin "$@"

# Restart with these devices (empty: all)
use_devices()
{
	stop_server bench
	start_server bench "gpusort.devices = '$1'" || exit 1
	for _ in $(seq 300); do
		[ "$(bench_sql -c "SELECT bool_or(state = 'starting') FROM gpusort_devices")" = f ] && break
		sleep 0.1
	done
	bench_sql -c "SELECT pg_prewarm(oid) FROM pg_class WHERE relname = 'w' AND relkind = 'r'" >/dev/null
}

sorts_a_second()
{
	local clients=$1 settings=$2 script=$work/sort.sql
	local sql=${3:-'SELECT id, p FROM w ORDER BY p COLLATE "C" OFFSET 999999999'}

	{
		bench_settings "$settings max_parallel_workers_per_gather=0 work_mem=64MB"
		echo "$sql;"
	} >"$script"
	chmod a+r "$script"
	as_user "$bindir/pgbench" -n -f "$script" -c "$clients" -j "$clients" -T "${BENCH_SECONDS:-10}" 2>/dev/null |
		sed -nE 's/^tps = ([0-9.]+) .*/\1/p'
}

# Ticks of CPU time that the server has used: the postmaster with the processes that have ended,
# and the service
server_ticks()
{
	sed -E 's/.*\) //' "/proc/$1/stat" "/proc/$2/stat" | awk '{used += $12 + $13; if (NR == 1) used += $14 + $15} END {print used}'
}

# thread_ticks SERVICE: a line "THREAD TICKS" for each of the service's threads, sorted by thread
thread_ticks()
{
	local task

	for task in "/proc/$1/task"/*; do
		sed -E 's/.*\) //' "$task/stat" 2>/dev/null | awk -v thread="${task##*/}" '{print thread, $12 + $13}'
	done | sort
}

# The cores that the server uses while all clients sort, in all and by the service's busiest thread;
# what the clients' sorts a second are goes to $work/tps
cores_used()
{
	local postmaster service began before

	postmaster=$(head -1 "$run/bench/postmaster.pid")
	service=$(bench_sql -c "SELECT DISTINCT service_pid FROM gpusort_devices")
	began=$(date +%s%N)
	before=$(server_ticks "$postmaster" "$service")
	thread_ticks "$service" >"$work/threads"
	sorts_a_second "$@" >"$work/tps"
	thread_ticks "$service" | join "$work/threads" - |
		awk -v before="$before" -v after="$(server_ticks "$postmaster" "$service")" -v hz="$(getconf CLK_TCK)" \
			-v ns=$(($(date +%s%N) - began)) '
			$3 - $2 > most {most = $3 - $2}
			END {printf "%.1f %.2f\n", (after - before) / hz / (ns / 1e9), most / hz / (ns / 1e9)}'
}

many()
{
	printf '\n%-8s %10s %10s %10s %10s %8s %8s   %s\n' clients scan postgres 'one' 'all' 'cores' 'thread' 'fallbacks'
	for clients in ${BENCH_CLIENTS:-16 64}; do
		use_devices 0
		scan=$(sorts_a_second "$clients" "gpusort.enabled=off" "SELECT count(*) FROM w WHERE p IS NOT NULL")
		pg=$(sorts_a_second "$clients" "gpusort.enabled=off")
		one=$(sorts_a_second "$clients" "gpusort.force=on")
		use_devices "${BENCH_DEVICES-}"
		bench_sql -c "SELECT gpusort_stats_reset()" >/dev/null
		cores=$(cores_used "$clients" "gpusort.force=on")
		printf '%-8s %10.1f %10.1f %10.1f %10.1f %8.1f %8.2f   %s\n' "$clients" "$scan" "$pg" "$one" "$(cat "$work/tps")" $cores "$(bench_fallbacks)"
	done
}

bench_load_words w "${BENCH_WORDS:-1000000}"
bench_ready
many
