#!/bin/bash
# Idle cursors of one role, and a sort of another one beside them.
#
#	idle_cursors.sh
#
# A role opens BENCH_CURSORS cursors (default 500) in BENCH_SESSIONS sessions (default 20), each over a sort of
# BENCH_CURSOR_ROWS rows (default 100000), moves 10 rows on in each, and then does nothing.  Another role sorts BENCH_ROWS rows
# (default 500000) before, meanwhile, and once the cursors are closed.  Printed are the median of BENCH_RUNS
# times in ms, by PostgreSQL and by gpusort, how many sorts fell back, what of staging memory and device memory
# is held, the service's own memory, and that of temporary files, all of them in MB.
#
# BENCH_CONF has more settings of the server, separated by ";": "gpusort.device_memory = '1GB'".  For the other
# variables see lib.sh.
#
# For a quick look, in two minutes on two cores:
#	BENCH_CURSORS=100 BENCH_RUNS=1 test/bench/idle_cursors.sh
set -u
. "$(dirname "$0")/lib.sh"

cursors=${BENCH_CURSORS:-500}
sessions=${BENCH_SESSIONS:-20}
query='SELECT id, k, v FROM rows ORDER BY k COLLATE "C"'

bench_install "$@"
mapfile -t conf < <(tr ';' '\n' <<<"${BENCH_CONF-}")
bench_start bench "max_connections = $((sessions + 20))" "${conf[@]}"
bench_head "$@"
bench_load rows "${BENCH_ROWS:-500000}" "id int, k text, v int" "i, md5(i::text), hashint4(i)"
bench_sql -c "CREATE ROLE hog LOGIN" -c "CREATE ROLE other LOGIN" -c "GRANT SELECT ON rows TO hog, other"

sort_ms()
{
	PGUSER=other bench_time "gpusort.enabled=$1 gpusort.force=$1 max_parallel_workers_per_gather=2" "$query"
}

report()
{
	local on

	bench_sql -c "SELECT gpusort_stats_reset()" >/dev/null
	on=$(sort_ms on)
	printf '%-12s %8s %8s %9s %8s %8s %8s %8s %8s\n' "$1" "$on" "$(sort_ms off)" \
		$(bench_sql -F ' ' -c "SELECT fallbacks, (SELECT max(staging_used) >> 20 FROM gpusort_devices),
			(SELECT sum(memory_used)::bigint >> 20 FROM gpusort_devices) FROM gpusort_stats") "$(bench_service_mb)" "$(bench_temp_mb)" \
		"$(bench_sql -c "SELECT count(*) FROM gpusort_activity")"
}

printf '\n%-12s %8s %8s %9s %8s %8s %8s %8s %8s\n' cursors gpusort off fallbacks staging device service files sorts
report none
bench_sql -c "SELECT gpusort_stats_reset()" >/dev/null
bench_open_cursors hog "$cursors" "$sessions" \
	"SELECT id, k, v FROM rows WHERE id <= ${BENCH_CURSOR_ROWS:-100000} ORDER BY k COLLATE \"C\""
sleep 12
echo "cursors that fell back: $(bench_fallbacks)"
report "$cursors idle"
report "$cursors idle"
bench_close_cursors >"$work/rows"
echo "cursors that went on: $(wc -l <"$work/rows"), with different rows: $(sort -u "$work/rows" | wc -l)"
sleep 12
report closed
