#!/bin/bash
# Many sessions on one device and on all: sorts a second, in one run.
#
# Table w has 1 million words (BENCH_WORDS).  BENCH_CLIENTS sessions (default "16 64") sort all of
# them again and again for BENCH_SECONDS (default 10), each in one process; printed are sorts a
# second by PostgreSQL, by gpusort with the first device and with all that gpusort.devices
# names (BENCH_DEVICES, default: all that there are; "0,0" opens the first one twice).  Last
# come the sorts that fell back then.
set -u
. "$(dirname "$0")/lib.sh"

bench_begin "$@"
bench_load_words w "${BENCH_WORDS:-1000000}"
bench_ready

# Restart with these devices; empty: all
use_devices()
{
	stop_server bench
	start_server bench "gpusort.devices = '$1'" || exit 1
	for _ in $(seq 300); do
		[ "$(bench_sql -c "SELECT bool_or(state = 'starting') FROM gpusort_devices")" = f ] && break
		sleep 0.1
	done
	bench_sql -c "SELECT pg_prewarm('w')" >/dev/null
}

sorts_a_second()
{
	local clients=$1 settings=$2 script=$work/sort.sql

	{
		bench_settings "$settings max_parallel_workers_per_gather=0 work_mem=64MB"
		echo 'SELECT id, p FROM w ORDER BY p COLLATE "C" OFFSET 999999999;'
	} >"$script"
	chmod a+r "$script"
	as_user "$bindir/pgbench" -n -f "$script" -c "$clients" -j "$clients" -T "${BENCH_SECONDS:-10}" 2>/dev/null |
		sed -nE 's/^tps = ([0-9.]+) .*/\1/p'
}

printf '\n%-8s %10s %10s %10s   %s\n' clients postgres 'one' 'all' 'fallbacks'
for clients in ${BENCH_CLIENTS:-16 64}; do
	use_devices 0
	pg=$(sorts_a_second "$clients" "gpusort.enabled=off")
	one=$(sorts_a_second "$clients" "gpusort.force=on")
	use_devices "${BENCH_DEVICES-}"
	bench_sql -c "SELECT gpusort_stats_reset()" >/dev/null
	all=$(sorts_a_second "$clients" "gpusort.force=on")
	printf '%-8s %10.1f %10.1f %10.1f   %s\n' "$clients" "$pg" "$one" "$all" "$(bench_sql -c "SELECT fallback_reasons FROM gpusort_stats")"
done
