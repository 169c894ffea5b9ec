#!/bin/bash
# A table in several servers of one host, as postgres_fdw and Citus have it: queries, index
# builds, a shard that moves, with gpusort in all servers and without.
#
#	cluster.sh [NAME]...		only the lines whose names match, "fdw" or "citus CREATE INDEX"
#
# Citus's where there is one (test/lib/citus.sh).
# Table f has BENCH_PATHS file paths (default 1 million) and a primary key.  One server is
# asked; BENCH_SERVERS others (default 4) hold the rows: with postgres_fdw as one partition
# each, with Citus in 32 shards.  Printed are milliseconds by the clock, medians:
#
#	ORDER BY p			all rows, in the order of C and of en_US
#	DISTINCT p			all rows; with Citus each shard sorts as well
#	CREATE INDEX		in all servers at once, by the order of C and of en_US
#	move a shard		with both indexes, to another server and back by turns
#	N sessions			BENCH_CLIENTS (default 16) sort again and again for BENCH_SECONDS
#						(default 5): with postgres_fdw 30,000 neighbouring rows, with
#						Citus each shard for itself
#	50 rows				one session, neighbouring rows by their key, in order
#
# Behind these stand the sorts that the device did, in the server that was asked and in the others, of all
# runs with gpusort, and the sorts that fell back.  At the end both orders are compared ("both orders").
# Both sides choose their plans by cost.  For the other settings see lib.sh.  BENCH_RUNS (default 3) does not
# count for sessions.
#
# For a quick look, in four minutes on two cores:
#	BENCH_PATHS=100000 BENCH_RUNS=1 test/bench/cluster.sh
set -u
. "$(dirname "$0")/lib.sh"
. "$root/test/lib/citus.sh"

servers=${BENCH_SERVERS:-4}
paths=${BENCH_PATHS:-1000000}
clients=${BENCH_CLIENTS:-16}
seconds=${BENCH_SECONDS:-5}
port=5432						# of the server that is asked; those of the others follow

on()
{
	local server=$1
	shift

	PGPORT=$((port + server)) bench_sql "$@"
}

# Commands in all servers, or in those that hold the rows, at the same time
on_each()
{
	local first=$1 server pids=() pid
	shift

	for server in $(seq "$first" "$servers"); do
		on "$server" "$@" >/dev/null &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || bench_die "failed: $*"
	done
}

start_servers()
{
	local server conf pids=() pid

	conf=("client_min_messages = warning"
		"shared_buffers = $((memory_mb / 5 / (servers + 1) < 4096 ? memory_mb / 5 / (servers + 1) : 4096))MB"
		"work_mem = '256MB'" "maintenance_work_mem = '256MB'" "max_connections = $((100 + clients * 16))")
	[ "$device" != cuda ] ||
		conf+=("gpusort.device_memory = '$(($(nvidia-smi --query-gpu=memory.free --format=csv,noheader,nounits | head -1) * 3 / 4 / (servers + 1)))MB'")
	[ -n "$no_citus" ] ||
		conf+=("shared_preload_libraries = 'citus, gpusort'" "citus.node_conninfo = 'sslmode=disable'"
			"citus.local_hostname = '$run'")
	export PGHOST=$run PGUSER=postgres PGDATABASE=postgres PGPORT=$port
	PATH=$bindir:$PATH
	for server in $(seq 0 "$servers"); do
		(
			server_port=$((port + server))
			bench_start "bench$server" "${conf[@]}"
		) &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || exit 1
	done
}

# ---- the tables ----

load_fdw()
{
	local server first last pids=() pid

	on 0 -c "CREATE EXTENSION postgres_fdw" -c "CREATE TABLE f (id int, p text) PARTITION BY RANGE (id)" || exit 1
	for server in $(seq "$servers"); do
		first=$((rows * (server - 1) / servers + 1))
		last=$((rows * server / servers))
		on 0 -c "CREATE SERVER s$server FOREIGN DATA WRAPPER postgres_fdw
				OPTIONS (host '$run', port '$((port + server))', dbname 'postgres', fetch_size '50000')" \
			-c "CREATE USER MAPPING FOR postgres SERVER s$server" \
			-c "CREATE FOREIGN TABLE f$server PARTITION OF f FOR VALUES FROM ($first) TO ($((last + 1)))
				SERVER s$server OPTIONS (table_name 'f')" || exit 1
		{
			on "$server" -c "CREATE TABLE f (id int, p text)" &&
				on 0 -c "COPY (SELECT id, p FROM paths WHERE id BETWEEN $first AND $last) TO STDOUT" |
				on "$server" -c "COPY f FROM STDIN" -c "ALTER TABLE f ADD PRIMARY KEY (id)" \
					-c "VACUUM (ANALYZE, FREEZE) f" -c "SELECT pg_prewarm('f')" >/dev/null
		} &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || exit 1
	done
	on 0 -c "ANALYZE f"
}

load_citus()
{
	local server

	on_each 0 -c "CREATE DATABASE citus"
	on 0 -c "COPY (SELECT id, p FROM paths) TO STDOUT" >"$work/paths"
	export PGDATABASE=citus
	on_each 0 -c "CREATE EXTENSION citus" -c "CREATE EXTENSION pg_prewarm"
	on 0 -c "SELECT citus_set_coordinator_host('$run', $port)" >/dev/null || exit 1
	for server in $(seq "$servers"); do
		on 0 -c "SELECT citus_add_node('$run', $((port + server)))" >/dev/null || exit 1
	done
	on 0 -c "CREATE TABLE f (id int PRIMARY KEY, p text)" \
		-c "SELECT create_distributed_table('f', 'id', shard_count => 32)" >/dev/null || exit 1
	on 0 -c "COPY f FROM STDIN" <"$work/paths" || exit 1
	rm "$work/paths"
	on 0 -c "VACUUM (ANALYZE, FREEZE) f" || exit 1
	on_each 1 -c "SET citus.override_table_visibility = off" \
		-c "SELECT pg_prewarm(oid) FROM pg_class WHERE relname ~ '^f_[0-9]+$' AND relkind = 'r'"
}

# ---- timing ----

# Sorting in all servers by gpusort (on), or by PostgreSQL (off)
use_gpusort()
{
	local server

	on_each 0 -c "ALTER SYSTEM SET gpusort.enabled = $1" -c "SELECT pg_reload_conf()"
	for server in $(seq 0 "$servers"); do
		until [ "$(on "$server" -c "SHOW gpusort.enabled")" = "$1" ]; do
			sleep 0.02
		done
	done
}

# Milliseconds of a statement; before: statements that do not count.  Called as $(...), as all that
# times: a failure anywhere fails it
clock()
{
	local before=$1 sql=$2

	set -o pipefail
	for _ in $(seq "$runs"); do
		echo "$before"
		echo '\timing on'
		echo "$sql;"
		echo '\timing off'
	done | on 0 | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | bench_median
}

order_by()
{
	clock "" "SELECT id, p FROM f ORDER BY p COLLATE \"$1\" OFFSET 999999999"
}

distinct()
{
	clock "" "SELECT DISTINCT p COLLATE \"C\" FROM f OFFSET 999999999"
}

# Partitions are indexed by their servers
create_index_fdw()
{
	local begin

	set -o pipefail
	for _ in $(seq "$runs"); do
		on_each 1 -c "DROP INDEX IF EXISTS \"f_$1\""
		begin=$(date +%s%N)
		on_each 1 -c "CREATE INDEX \"f_$1\" ON f (p COLLATE \"$1\")"
		echo $((($(date +%s%N) - begin) / 1000000))
	done | bench_median
}

create_index_citus()
{
	clock "DROP INDEX IF EXISTS \"f_$1\";" "CREATE INDEX \"f_$1\" ON f (p COLLATE \"$1\")"
}

# The first shard, from where it is to the next server
move_shard()
{
	clock "CALL citus_cleanup_orphaned_resources();
		SELECT shardid, nodename, nodeport, $port + (nodeport - $port) % $servers + 1 AS target
			FROM citus_shards WHERE table_name = 'f'::regclass ORDER BY shardid LIMIT 1 \\gset" \
		"SELECT citus_move_shard_placement(:shardid, :'nodename', :nodeport, :'nodename', :target, shard_transfer_mode => 'block_writes')"
}

# SESSIONS SCRIPT: the median time of the script
sessions()
{
	local script=$work/sessions.sql logs=$run/latencies

	echo "$2" >"$script"
	chmod a+r "$script"
	rm -rf "$logs"
	as_user mkdir "$logs"
	as_user "$bindir/pgbench" -n -f "$script" -c "$1" -j "$1" -T "$seconds" -l --log-prefix="$logs/l" \
		>/dev/null 2>"$work/pgbench.err" || { cat "$work/pgbench.err" >&2; bench_die "pgbench failed"; }
	cat "$logs"/l* | awk '{print $3 / 1000}' | bench_median 2
}

some_rows()
{
	echo "\\set first random(1, $((rows - $1 + 1)))
		SELECT id, p FROM f WHERE id BETWEEN :first AND :first + $(($1 - 1)) ORDER BY p COLLATE \"C\";"
}

many_sessions_fdw()
{
	sessions "$clients" "$(some_rows 30000)"
}

many_sessions_citus()
{
	sessions "$clients" 'SELECT sum(n) FROM (SELECT row_number() OVER (PARTITION BY id ORDER BY p COLLATE "C") AS n FROM f) AS s;'
}

few_rows()
{
	sessions 1 "$(some_rows 50)"
}

# The sum of a column of gpusort_stats over some servers
stats()
{
	local column=$1 server
	shift

	for server; do
		PGDATABASE=postgres on "$server" -c "SELECT $column FROM gpusort_stats"
	done | awk '{sum += $1} END {print sum}'
}

# NAME COMMAND...: a line of the table
line()
{
	local name=$1 pg ours server
	shift

	bench_wanted "$kind $name" || return 0
	use_gpusort off
	pg=$("$@") || exit 1
	use_gpusort on
	PGDATABASE=postgres on_each 0 -c "SELECT gpusort_stats_reset()"
	ours=$("$@") || exit 1
	printf '%-6s %-24s %9s %9s %7s   %6d %6d %9d   %s\n' "$kind" "$name" "$pg" "$ours" "$(bench_ratio "$pg" "$ours")" \
		"$(stats device_sorts 0)" "$(stats device_sorts $(seq "$servers"))" "$(stats fallbacks $(seq 0 "$servers"))" \
		"$(for server in $(seq 0 "$servers"); do PGDATABASE=postgres on "$server" -c "SELECT reason FROM gpusort_stat_reasons WHERE kind = 'fallback' AND count > 0"; done |
			sort -u | paste -sd,)"
}

lines()
{
	line 'ORDER BY p, C' order_by C
	line 'ORDER BY p, en_US' order_by en_US.utf8
	line 'DISTINCT p' distinct
	line 'CREATE INDEX, C' create_index_$kind C
	line 'CREATE INDEX, en_US' create_index_$kind en_US.utf8
	[ $kind != citus ] || line 'move a shard' move_shard
	line "$clients sessions" many_sessions_$kind
	line '50 rows' few_rows
}

# Both orders, by all rows
compare()
{
	local collation on

	bench_wanted "$kind both orders" || return 0
	for collation in C en_US.utf8; do
		for on in off on; do
			use_gpusort $on
			(
				set -o pipefail
				on 0 -c "COPY (SELECT p, id FROM f ORDER BY p COLLATE \"$collation\", id) TO STDOUT" | md5sum >"$work/order.$on"
			) || bench_die "both orders: failed"
		done
		cmp -s "$work/order.on" "$work/order.off" && orders+=("$kind, $collation: same") ||
			orders+=("$kind, $collation: DIFFERENT")
	done
}

bench_install "$@"
no_citus=$(citus_missing "$PG_CONFIG")
if [ -z "$no_citus" ]; then
	install_citus "$PG_CONFIG" "$build/citus-$(pg_config_major "$PG_CONFIG")" >"$work/citus.log" 2>&1 ||
		{ tail -20 "$work/citus.log" >&2; bench_die "Citus could not be built"; }
fi
start_servers
bench_head "$@"
echo "servers: $servers, and the one that is asked; ${no_citus:-Citus $(on 0 -c "SELECT default_version FROM pg_available_extensions WHERE name = 'citus'")}"
bench_load_paths paths "$paths"
rows=$(on 0 -c "SELECT count(*) FROM paths")
bench_ready
orders=()

printf '\n%-6s %-24s %9s %9s %7s   %6s %6s %9s\n' "" "$rows paths" postgres gpusort faster asked others fallbacks
for kind in fdw citus; do
	[[ $* = *$kind* || $* != *fdw* && $* != *citus* ]] || continue
	[ $kind = fdw ] || [ -z "$no_citus" ] || continue
	load_$kind
	[ "$(on 0 -c "SELECT count(*) FROM f")" = "$rows" ] || bench_die "rows are missing"
	lines
	compare
done
echo
printf '%s\n' "${orders[@]}"
