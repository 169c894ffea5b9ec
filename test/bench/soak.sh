#!/bin/bash
# Many sessions that sort for a long time, with cancels and terminations; every result is
# compared with PostgreSQL's own, and at the end nothing may be held.
#
#	soak.sh
#
# soak.c says what the sessions do.  Phases: small sorts alone; the same beside large ones, with all
# that sessions do besides, twice as long; and that once more.  Printed are the number of sorts and
# their latencies in ms (p50, p99, most), after each phase the service's own memory once it is idle,
# and at the end what is held, which has to be nothing.  The exit status is 0 if all is well.
#
#	SOAK_CLIENTS=200		sessions
#	SOAK_LARGE=10			of these: sort large tables only
#	SOAK_MINUTES=10			of all phases together
#	SOAK_ROWS=1000000		of the large table
#	SOAK_THINK=1000			ms between a session's statements, on average
#	SOAK_KILL=250			ms between two sessions that are cancelled or terminated
#	SOAK_SEED=1
#	SOAK_IDLE=0				cursors of another role that are idle meanwhile, in 10 sessions
#	SOAK_CONF				more settings of the server, separated by ";": "gpusort.devices = '0,0'"
#
# For the other variables see lib.sh.
#
# For a quick look, in four minutes on two cores:
#	SOAK_CLIENTS=60 SOAK_MINUTES=3 SOAK_ROWS=300000 test/bench/soak.sh
set -u
. "$(dirname "$0")/lib.sh"

clients=${SOAK_CLIENTS:-200}
large=${SOAK_LARGE:-10}
seconds=$((${SOAK_MINUTES:-10} * 60))
idle=${SOAK_IDLE:-0}
failed=0

check()
{
	local what=$1 got=$2

	if [ "$got" = "${3:-0}" ]; then
		printf '%-50s %s\n' "$what" "$got"
	else
		printf '%-50s %s  WRONG\n' "$what" "$got"
		failed=1
	fi
}

# MB of the service's own memory once it has given back what it can
idle_memory()
{
	sleep 12
	bench_service_mb
}

# NAME SECONDS LARGE KILL
phase()
{
	interruptible as_user "$run/soak" run "$run/expected" "$1" "$clients" "$3" "$2" "${SOAK_THINK:-1000}" "$4" "${SOAK_SEED:-1}" || failed=1
}

shared_segments()
{
	as_user find "$run/bench/pg_dynshmem" -type f | wc -l
}

temp_files()
{
	as_user find "$run/bench/" -path '*pgsql_tmp*' -type f | wc -l
}

bench_begin "$@"
cc -std=gnu11 -O2 -Wall -Wextra -Werror -I"$("$PG_CONFIG" --includedir)" "$root/test/bench/soak.c" -o "$run/soak" \
	-L"$("$PG_CONFIG" --libdir)" -Wl,-rpath,"$("$PG_CONFIG" --libdir)" -lpq -lpthread || exit 1
stop_server bench
mapfile -t conf < <(tr ';' '\n' <<<"${SOAK_CONF-}")
# segments of shared memory are files of this server alone then
start_server bench "max_connections = $((clients + 30))" "dynamic_shared_memory_type = mmap" "${conf[@]}" || exit 1
wait_for_device bench

bench_sql >/dev/null <<-SQL || exit 1
	CREATE EXTENSION amcheck;
	CREATE AGGREGATE chain(bigint) (SFUNC = hashint8extended, STYPE = bigint, INITCOND = '0');
	CREATE FUNCTION words(i int) RETURNS text LANGUAGE SQL IMMUTABLE AS
		\$\$ SELECT CASE WHEN i % 50 = 0 THEN NULL ELSE CASE WHEN i % 3 = 0 THEN upper(left(md5(i::text), 6)) ELSE left(md5((i / 2)::text), 9) END || '-' || i % 1000 END \$\$;
	-- group g has 1,000 * (g + 1) rows
	CREATE TABLE s AS SELECT (row_number() OVER ())::int AS id, g, hashint4(r * 100 + g) % 5000 AS i,
			CASE WHEN r % 100 = 0 THEN 'NaN' ELSE hashint4(r) / 1e3 END::float8 AS f,
			CASE WHEN r % 100 = 1 THEN NULL ELSE hashint4(r + g) / 1e4 END::numeric AS n, words(r + g) AS t,
			ARRAY(SELECT hashint4(r + j) FROM generate_series(1, r % 30) AS j) AS a
		FROM generate_series(0, 19) AS g, generate_series(1, 1000 * (g + 1)) AS r;
	CREATE INDEX ON s (g);
	CREATE TABLE l AS SELECT r AS id, hashint4(r) % 100000 AS i, hashint4(r) / 1e3::float8 AS f, hashint4(r + 1) / 1e4::numeric AS n,
			words(r) AS t, repeat('x', r % 100) AS p
		FROM generate_series(1, ${SOAK_ROWS:-1000000}) AS r;
	SELECT format('CREATE TABLE x%s AS SELECT * FROM l WHERE id <= 50000', x) FROM generate_series(0, 7) AS x \gexec
	CREATE ROLE idle LOGIN;
	GRANT SELECT ON l TO idle;
	VACUUM ANALYZE;
SQL
as_user "$run/soak" expect "$run/expected" || exit 1
bench_sql -c "SELECT gpusort_stats_reset()" >/dev/null
service=$(bench_sql -c "SELECT DISTINCT service_pid FROM gpusort_devices")

if [ "$idle" -gt 0 ]; then
	bench_open_cursors idle "$idle" 10 "SELECT id, t, p FROM l WHERE id <= 100000 ORDER BY t COLLATE \"C\", id"
	check "cursors that fell back" "$(bench_sql -c "SELECT fallbacks FROM gpusort_stats")"
	echo "service, cursors idle: $(idle_memory) MB, device memory $(bench_sql -c "SELECT sum(memory_used)::bigint >> 20 FROM gpusort_devices") MB, temporary files $(bench_temp_mb) MB"
	check "staging memory held by idle cursors" "$(bench_sql -c "SELECT max(staging_used) FROM gpusort_devices")"
fi

printf '\n%-12s %-6s %8s %10s %10s %10s\n' phase sorts number p50 p99 most
phase alone $((seconds / 5)) 0 0
echo "service, idle: $(idle_memory) MB"
phase mixed $((seconds * 2 / 5)) "$large" "${SOAK_KILL:-250}"
if [ "$idle" -gt 0 ]; then
	echo "service, cursors idle: $(idle_memory) MB, device memory $(bench_sql -c "SELECT sum(memory_used)::bigint >> 20 FROM gpusort_devices") MB, temporary files $(bench_temp_mb) MB"
	echo "sorts that fell back so far: $(bench_fallbacks)"
	bench_close_cursors >"$work/rows"
	check "rows that idle cursors went on with" "$(wc -l <"$work/rows") $(sort -u "$work/rows" | wc -l)" "$((idle / 10 * 10)) 1"
fi
before=$(idle_memory)
segments=$(shared_segments)
echo "service, idle: $before MB"
phase mixed $((seconds * 2 / 5)) "$large" "${SOAK_KILL:-250}"
after=$(idle_memory)
echo "service, idle: $after MB"

echo
check "sorts and sessions held" "$(bench_sql -c "SELECT (SELECT sum(sorts) FROM gpusort_devices) + (SELECT count(*) FROM gpusort_activity)")"
check "device memory held" "$(bench_sql -c "SELECT sum(memory_used) FROM gpusort_devices")"
check "staging memory held" "$(bench_sql -c "SELECT max(staging_used) FROM gpusort_devices")"
check "temporary files" "$(temp_files)"
check "shared memory segments, more than before" $(($(shared_segments) > segments))
check "no sort, or no index build, was on the device" \
	"$(bench_sql -c "SELECT (device_sorts = 0)::int + (index_builds = 0)::int FROM gpusort_stats")"
check "other sessions" "$(bench_sql -c "SELECT count(*) FROM pg_stat_activity WHERE backend_type IN ('client backend', 'parallel worker') AND pid <> pg_backend_pid()")"
check "the service has the same process" "$(bench_sql -c "SELECT DISTINCT service_pid FROM gpusort_devices")" "$service"
check "crashes and warnings in the log" "$(as_user grep -cE 'PANIC|TRAP|terminated by signal|WARNING|gpusort (service ends|lost|could not)' "$run/bench.log")"
check "the service's memory has grown by more than 10 % and 32 MB" $((after > before * 11 / 10 + 32))
bench_sql -x -c "SELECT sorts, device_sorts, process_sorts, index_builds, rows, spilled_sorts, temp_bytes, limited_sorts, arrays FROM gpusort_stats"
echo "fallbacks: $(bench_fallbacks)"
if [ "$failed" != 0 ] && [ -n "${SOAK_KEEP-}" ]; then
	cp "$run/bench.log" "$SOAK_KEEP"
fi
exit "$failed"
