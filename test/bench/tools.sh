#!/bin/bash
# Tools that sort and build indexes: pg_repack, osm2pgsql, TimescaleDB.
#
# Each does the same with gpusort.enabled off and on, by turns, BENCH_RUNS times.  Printed are the least times in ms: of
# the whole, and, from the server's log, of its statements of one kind together.  "taken" is in how many of these
# gpusort sorted rows or built an index.  Then results are compared: the same rows on both sides, in the order asked
# for, and indexes that amcheck finds right.  A tool that is not installed is left out.
#
#	test/bench/tools.sh [NAME]...		pg_repack, osm2pgsql, timescaledb
#
# Environment, beside that of lib.sh:
#	BENCH_ROWS=3000000		rows of the tables for pg_repack and TimescaleDB
#	BENCH_NODES=2000000		nodes of the map for osm2pgsql; it has a tenth as many ways
#	BENCH_WORKERS			max_parallel_maintenance_workers; default: cores, up to 8
#	BENCH_MEMORY=1GB		maintenance_work_mem
#	BENCH_SETTINGS			more settings, "name=value" words
#
# For a quick look, in two minutes on two cores:
#	BENCH_ROWS=100000 BENCH_NODES=100000 test/bench/tools.sh
set -u
BENCH_RUNS=${BENCH_RUNS:-1}
. "$(dirname "$0")/lib.sh"

rows=${BENCH_ROWS:-3000000}
nodes=${BENCH_NODES:-2000000}
cores=$(nproc)

# offers EXTENSION: does the server have it?
offers()
{
	[ -e "$("$bindir/pg_config" --sharedir)/extension/$1.control" ]
}

# can_run TOOL EXTENSION PROGRAM: is the tool wanted, and there?
can_run()
{
	bench_wanted "$1" || return 1
	offers "$2" && command -v "$3" >/dev/null && return
	echo "$1 is left out: the extension $2 for this server, or the program $3, is not installed"
	return 1
}

# step SIDE NAME COMMAND...: adds to $work/times a line of the whole and, if it is more than one statement, one of each
# kind of statement,	NAME <tab> STATEMENTS <tab> SIDE <tab> ms <tab> sorts <tab> builds
step()
{
	local side=$1 name=$2 begin setting options
	shift 2

	options="-c gpusort.enabled=$side -c maintenance_work_mem=${BENCH_MEMORY:-1GB}"
	options+=" -c max_parallel_maintenance_workers=${BENCH_WORKERS:-$((cores < 8 ? cores : 8))}"
	for setting in ${BENCH_SETTINGS-}; do
		options+=" -c $setting"
	done
	bench_sql -c CHECKPOINT
	: >"$run/bench.log"
	begin=$EPOCHREALTIME
	PGOPTIONS=$options as_user "$@" >"$work/step.log" 2>&1 || { tail -20 "$work/step.log" >&2; bench_die "$name failed"; }
	awk -v name="$name" -v side="$side" -v begin="$begin" -v end="$EPOCHREALTIME" '
		function kind(sql)
		{
			if (sql ~ /^(CREATE TABLE|INSERT).* ORDER BY/)
				return "SELECT ... ORDER BY"
			if (sql ~ /^CREATE.*(USING GIN|_index_bucket)/)
				return "CREATE INDEX, GIN"
			if (sql ~ /^CREATE.* INDEX/ && sql !~ /USING GIST/)
				return "CREATE INDEX, btree"
			return "other"
		}
		function line(what, ms)
		{
			printf "%s\t%s\t%s\t%f\t%d\t%d\n", name, what, side, ms, sorts[what], builds[what]
		}
		function take(what, pid)
		{
			sorts[what] += sorted[pid]
			builds[what] += built[pid]
		}
		/DEBUG:  gpusort sorted/ {sorted[$1]++}
		/DEBUG:  gpusort built/ {built[$1]++}
		/LOG:  duration: .* ms  statement: / {
			what = kind(substr($0, index($0, "statement: ") + 11))
			sum[what] += $4
			take(what, $1)
			take("", $1)
			sorted[$1] = built[$1] = 0
			statements++
		}
		END {
			line("", (end - begin) * 1000)
			delete sum["other"]
			if (statements > 1)
				for (what in sum)
					line(what, sum[what])
		}' "$run/bench.log" | sort >>"$work/times"
}

# PostgreSQL alone says what the result is
judge()
{
	PGOPTIONS="-c gpusort.enabled=off" bench_sql "$@"
}

# rows_of SIDE TABLE...: the number of rows and the sum of their hashes, to $work/rows.SIDE
rows_of()
{
	local side=$1 table
	shift

	for table in "$@"; do
		echo "SELECT '$table', count(*), sum(hashtextextended(t::text, 0)) FROM $table AS t;"
	done | judge >"$work/rows.$side"
}

# places_of SIDE TABLE: the rows as they lie in the table
places_of()
{
	judge -c "COPY (SELECT * FROM $2 ORDER BY ctid) TO STDOUT" | md5sum >"$work/rows.$1"
}

# same_rows NAME [WHERE]: were they the same on both sides?
same_rows()
{
	cmp -s "$work/rows.off" "$work/rows.on" && echo "$1: same rows${2-}" >>"$work/checks" || echo "$1: DIFFERENT rows" >>"$work/checks"
}

# check_order TABLE COLUMNS
check_order()
{
	judge -c "SELECT format('%s by %s: %s rows, %s OUT OF ORDER', '$1', '$2', count(*), count(*) FILTER (WHERE wrong))
		FROM (SELECT ROW($2) < lag(ROW($2)) OVER (ORDER BY ctid) AS wrong FROM $1) AS s" | sed 's/, 0 OUT OF ORDER/, in order/' >>"$work/checks"
}

# All btree indexes of users' tables
check_btrees()
{
	judge -c "SELECT count(bt_index_check(indexrelid, true)) || ' btree indexes are right'
		FROM pg_index JOIN pg_class AS i ON i.oid = indexrelid JOIN pg_am AS a ON a.oid = i.relam JOIN pg_namespace AS n ON n.oid = i.relnamespace
		WHERE amname = 'btree' AND (nspname = 'public' OR nspname = '_timescaledb_internal')" >>"$work/checks" || bench_die "an index is wrong"
}

# use_database NAME EXTENSION...
use_database()
{
	local extension

	export PGDATABASE=postgres
	bench_sql -c "SET client_min_messages = error" -c "DROP DATABASE IF EXISTS $1" -c "CREATE DATABASE $1"
	export PGDATABASE=$1
	shift
	for extension in "$@" amcheck pg_prewarm; do
		bench_sql -c "SET client_min_messages = error" -c "CREATE EXTENSION $extension" >/dev/null || exit 1
	done
}

customers_again()
{
	bench_sql -c "SET client_min_messages = error" -c "DROP TABLE IF EXISTS customers" -c "CREATE TABLE customers (LIKE source INCLUDING ALL)" -c "INSERT INTO customers TABLE source" \
		-c "ALTER TABLE customers ADD PRIMARY KEY (name)" -c "CREATE INDEX ON customers (email)" -c "CREATE INDEX ON customers (created, id)" || exit 1
	bench_settle customers
}

# The order of the primary key, an order that no index has, and no order: only the indexes are built
bench_repack()
{
	local how side

	use_database repack pg_repack
	bench_load source "$rows" 'id bigint, name text COLLATE "en_US.utf8", city text COLLATE "en_US.utf8", email text COLLATE "en_US.utf8",
		created timestamptz, amount numeric(12,2), note text, details jsonb' \
		"i, initcap(substr(translate(md5(i::text), '0123456789', 'aeiouaeiou'), 1, 6 + i % 6)) || ' ' || i,
		initcap(substr(translate(md5((i % 9973)::text), '0123456789', 'aeiounrslt'), 1, 9)), md5((i + 1)::text) || '@example.org',
		timestamptz '2020-01-01' + abs(hashint8(i)) % 200000000 * interval '1 s', abs(hashint8(i + 1)) % 1000000 / 100.0,
		repeat('note ', i::int % 20), jsonb_build_object('kind', i % 7, 'score', i % 100)"
	for _ in $(seq "$runs"); do
		for how in "-o name" "-o city,name" "-n"; do
			for side in off on; do
				customers_again
				step $side "pg_repack $how" "$bindir/pg_repack" -d repack -t customers $how
				places_of $side customers
			done
			same_rows "pg_repack $how" " in the same places"
			check_btrees
		done
	done
}

# A map in the format OPL: a way has ten nodes of its own; three of five are buildings, the others roads.  Ids do not go with places
make_map()
{
	awk -v ways=$((nodes / 10)) '
		function hash(i) {return i * 7368787 % 2147483647 * 48271 % 2147483647}
		function fraction(i) {return hash(i) % 10007 / 10007}
		function is_building(way) {return way % 5 < 3}
		function node(id, lon, lat)
		{
			printf "n%d v1 x%.7f y%.7f%s\n", id, lon, lat, id % 20 ? "" : " Tamenity=" (id % 40 ? "school" : "cafe") ",name=Place" id
		}
		function ten_nodes(way,    k, id, lon, lat)
		{
			lon = 8 + hash(way) % side * 0.003 + fraction(way + 1) * 0.002
			lat = 48 + int(hash(way) / side) % side * 0.002 + fraction(way + 2) * 0.001
			for (k = 1; k <= 10; k++)
			{
				id = (way - 1) * 10 + k
				if (is_building(way))
					node(id, lon + 0.0002 * cos(0.62832 * k), lat + 0.0001 * sin(0.62832 * k))
				else
					node(id, lon + 0.0004 * k + 0.0001 * fraction(id), lat + 0.0002 * fraction(id + 7))
			}
		}
		function nodes_of(way,    k, list)
		{
			list = "n" (way - 1) * 10 + 1
			for (k = 2; k <= 10; k++)
				list = list ",n" (way - 1) * 10 + k
			return is_building(way) ? list ",n" (way - 1) * 10 + 1 : list
		}
		BEGIN {
			side = int(sqrt(ways)) + 1
			for (way = 1; way <= ways; way++)
				ten_nodes(way)
			for (way = 1; way <= ways; way++)
				printf "w%d v1 T%s,name=Name%d N%s\n", way, is_building(way) ? "building=yes" : "highway=residential", way % 1000, nodes_of(way)
		}' >"$run/map.opl"
	chmod a+r "$run/map.opl"
}

bench_osm2pgsql()
{
	local side

	make_map
	for _ in $(seq "$runs"); do
		for side in off on; do
			use_database osm postgis
			step $side "osm2pgsql --slim" osm2pgsql -d osm --slim --log-progress=false "$run/map.opl"
			rows_of $side planet_osm_{point,line,polygon,roads,nodes,ways}
		done
		same_rows osm2pgsql
		check_order planet_osm_point way
		check_order planet_osm_line way
		check_order planet_osm_polygon way
		check_btrees
		judge -c "SET enable_seqscan = off" -c "SELECT format('the GIN index finds %s ways of %s nodes', count(*), count(DISTINCT n))
			FROM generate_series(1, $((nodes / 10 * 10)), 997) AS n JOIN planet_osm_ways ON planet_osm_index_bucket(nodes) && ARRAY[n >> 5]::int8[]
			AND nodes && ARRAY[n]::int8[]" >>"$work/checks"
	done
	rm "$run/map.opl"
}

# A step of one statement
sql_step()
{
	step "$1" "TimescaleDB: $2" "$bindir/psql" -XAtq -v ON_ERROR_STOP=1 -c "$3"
}

bench_timescaledb()
{
	local side

	use_database timescaledb timescaledb
	bench_load source "$rows" 'time timestamptz, device text COLLATE "en_US.utf8", kind int, value float8' \
		"timestamptz '2026-01-01' + abs(hashint8(i)) % (28 * 86400) * interval '1 s', 'device ' || abs(hashint8(i + 7)) % 5000, i % 100, hashint8(i + 1)"
	for _ in $(seq "$runs"); do
		for side in off on; do
			bench_sql -c "SET client_min_messages = error" -c "DROP TABLE IF EXISTS readings" -c "CREATE TABLE readings (LIKE source)" \
				-c "SELECT create_hypertable('readings', 'time', create_default_indexes => false)" >/dev/null || exit 1
			sql_step $side "INSERT ... SELECT ... ORDER BY device, time" "INSERT INTO readings TABLE source ORDER BY device, time"
			sql_step $side "CREATE INDEX (time DESC)" "CREATE INDEX ON readings (time DESC)"
			sql_step $side "CREATE INDEX (device, time)" "CREATE INDEX by_device ON readings (device, time)"
			bench_sql -c "VACUUM (ANALYZE) readings"
			sql_step $side "CLUSTER" "CLUSTER readings USING by_device"
			sql_step $side "COPY (... ORDER BY value)" "COPY (SELECT * FROM readings ORDER BY value) TO '/dev/null'"
			bench_sql -c "ALTER TABLE readings SET (timescaledb.compress, timescaledb.compress_segmentby = 'device', timescaledb.compress_orderby = 'time')" 2>/dev/null
			[ $side = off ] || check_btrees
			sql_step $side "compress_chunk()" "SELECT compress_chunk(c) FROM show_chunks('readings') AS c"
			bench_sql -c "VACUUM (ANALYZE) readings"
			sql_step $side "compressed, COPY (... ORDER BY value)" "COPY (SELECT * FROM readings ORDER BY value) TO '/dev/null'"
			sql_step $side "compressed, COPY (... ORDER BY device, time)" "COPY (SELECT * FROM readings ORDER BY device, time) TO '/dev/null'"
			rows_of $side readings
		done
		same_rows TimescaleDB
	done
}

report()
{
	printf '\n%-58s %10s %8s %7s %6s %6s\n' "" PostgreSQL gpusort faster sorts builds
	awk -F '\t' '
		{
			row = $1 "\t" $2
			key = row "\t" $3
			if (!(row in seen))
				rows[++n] = row
			seen[row] = $5 "\t" $6
			if (!(key in least) || $4 < least[key])
				least[key] = $4
		}
		END {
			for (i = 1; i <= n; i++)
			{
				split(rows[i], name)
				split(seen[rows[i]], ours)
				off = least[rows[i] "\toff"]
				on = least[rows[i] "\ton"]
				printf "%-58s %10.0f %8.0f %7.2f %6d %6d\n", name[2] == "" ? name[1] : "  " name[2], off, on, (on > 0 ? off / on : 0),
					ours[1], ours[2]
			}
		}' "$work/times"
}

bench_install "$@"
preload=gpusort
! offers timescaledb || preload=timescaledb,gpusort
bench_start bench "shared_preload_libraries = '$preload'" "parallel_setup_cost = 1000" "parallel_tuple_cost = 0.1" \
	"log_min_messages = debug1" "log_min_duration_statement = 0" "log_line_prefix = '%p '"
bench_head "$@"
: >"$work/times"
: >"$work/checks"
bench_ready
! can_run pg_repack pg_repack "$bindir/pg_repack" || bench_repack
! can_run osm2pgsql postgis osm2pgsql || bench_osm2pgsql
! can_run timescaledb timescaledb psql || bench_timescaledb

report
echo
awk '!seen[$0]++' "$work/checks"
export PGDATABASE=postgres
echo "fallbacks: $(bench_fallbacks)"
