#!/bin/bash
# Sorts of few rows beside work that should not hold them up.
#
#	beside.sh [alone|spill|cursors]...
#
# One session sorts BENCH_FEW rows (default 30000) on the device, again and again, and each sort is timed: "alone" BENCH_SORTS
# times (default 1000); beside sorts of BENCH_ROWS rows (default 5000000, of some 150 bytes) that spill into temporary files
# (once BENCH_SETTINGS, which are "name=value" words of its session, then with a libc collation), until these end;
# and BENCH_SORTS times beside BENCH_CURSORS idle cursors (default 900) in BENCH_SESSIONS sessions (default 30).  Printed are
# the number of sorts, the median, the 99th percentile and the slowest in ms, how many fell back, and MB of temporary files.
#
# Device memory is BENCH_MEMORY (default 256MB).  BENCH_CONF has more settings of the server, separated by ";".  For the
# other variables see lib.sh.
set -u
. "$(dirname "$0")/lib.sh"

cursors=${BENCH_CURSORS:-900}
sessions=${BENCH_SESSIONS:-30}

bench_install "$@"
mapfile -t conf < <(tr ';' '\n' <<<"${BENCH_CONF-}")
bench_start bench "max_connections = $((sessions + 20))" "gpusort.device_memory = ${BENCH_MEMORY:-256MB}" \
	"gpusort.staging_memory = ${BENCH_STAGING:-512MB}" "${conf[@]}"
bench_head "$@"
bench_load few "${BENCH_FEW:-30000}" "id int, k text, v int" "i, md5(i::text), hashint4(i)"
! bench_wanted spill ||
	bench_load many "${BENCH_ROWS:-5000000}" "id int, k text, v text" "i, md5(i::text), repeat(md5((i * 7)::text), 3)"
bench_sql -c "CREATE ROLE hog LOGIN" -c "CREATE ROLE other LOGIN" -c "GRANT SELECT ON few TO hog, other" \
	-c "CREATE FUNCTION sort_times(n int) RETURNS SETOF float8 LANGUAGE plpgsql AS \$\$
		DECLARE
			began timestamptz;
		BEGIN
			FOR i IN 1 .. n LOOP
				began := clock_timestamp();
				PERFORM count(*) FROM (SELECT id, k, v FROM few ORDER BY k COLLATE \"C\" OFFSET 0) AS s;
				RETURN NEXT extract(epoch FROM clock_timestamp() - began) * 1000;
			END LOOP;
		END\$\$"

# time_sorts N: the time of each, one a line
time_sorts()
{
	PGUSER=other bench_sql -c "SET gpusort.force = on" -c "SET gpusort.min_rows = 0" -c "SET max_parallel_workers_per_gather = 0" \
		-c "SELECT sort_times($1)"
}

# report NAME: of the times read
report()
{
	sort -n >"$work/times"
	printf '%-24s %8s %8s %8s %8s  %9s %8s\n' "$1" \
		$(awk '{v[NR] = $1} END {printf "%d %.2f %.2f %.2f", NR, v[int((NR + 1) / 2)], v[int(NR * 0.99 + 0.99)], v[NR]}' "$work/times") \
		$(bench_sql -F ' ' -c "SELECT fallbacks, temp_bytes >> 20 FROM gpusort_stats")
	bench_sql -c "SELECT gpusort_stats_reset()" >/dev/null
}

# beside_spill NAME COLLATION
beside_spill()
{
	local pid

	{
		bench_settings "gpusort.force=on ${BENCH_SETTINGS-}"
		echo "COPY (SELECT * FROM many ORDER BY k COLLATE \"$2\") TO '/dev/null';"
	} | bench_sql >/dev/null &
	pid=$!
	while kill -0 $pid 2>/dev/null; do
		time_sorts 20
	done | report "$1"
}

printf '\n%-24s %8s %8s %8s %8s  %9s %8s\n' beside sorts median 99% slowest fallbacks files
time_sorts 20 >/dev/null
bench_sql -c "SELECT gpusort_stats_reset()" >/dev/null
! bench_wanted alone || time_sorts "${BENCH_SORTS:-1000}" | report nothing
if bench_wanted spill; then
	beside_spill "a sort in files" C
	beside_spill "a sort in files, libc" "$(bench_sql -c "SELECT collname FROM pg_collation
		WHERE collname IN ('en_US.utf8', 'C.utf8') ORDER BY collname DESC LIMIT 1")"
fi
if bench_wanted cursors; then
	bench_open_cursors hog "$cursors" "$sessions" "SELECT id, k, v FROM few WHERE id <= 10000 ORDER BY k COLLATE \"C\""
	sleep 2
	time_sorts "${BENCH_SORTS:-1000}" | report "$cursors idle cursors"
	bench_close_cursors >/dev/null
fi
