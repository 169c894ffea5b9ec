# The tables of TPC-H and TPC-DS, as DuckDB makes them (tpc_data.py).  Sourced by tpc.sh and restore.sh.
#
#	load_tables		of the scale factors BENCH_TPCH and BENCH_TPCDS, without keys and indexes; and the queries, in $queries
#	load			the same with keys and indexes
#	indexes			prints the statements of tpc_indexes.sql for the schemas that there are
#
# Tables are unlogged, unless the caller sets logged=yes.

here=$root/test/bench
duckdb_version=1.5.2

# copy_in SUITE FILE: TABLE.PART.csv
copy_in()
{
	local table=${2##*/}

	bench_sql -c "\\copy $1.${table%%.*} FROM '$2' (FORMAT csv)" && rm "$2"
}

# load_part SUITE SCALE PARTS PART: a suite's only part is loaded by one process a table
load_part()
{
	local folder=$work/$1.$4 pids=() file pid

	mkdir "$folder" && python3 "$here/tpc_data.py" data "$@" "$folder" || return 1
	chmod -R a+rX "$folder"
	for file in "$folder"/*.csv; do
		copy_in "$1" "$file" &
		pids+=($!)
		[ "$3" -eq 1 ] || wait $! || return 1
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || return 1
	done
}

# load_suite SUITE SCALE PARTS
load_suite()
{
	local part pids=() pid

	mkdir "$queries/$1" && python3 "$here/tpc_data.py" queries "$1" "$queries/$1" || return 1
	{ echo "CREATE SCHEMA $1; SET search_path = $1;"; python3 "$here/tpc_data.py" schema "$1" | sed "s/${logged:+ UNLOGGED} TABLE/ TABLE/"; } | bench_sql || return 1
	for part in $(seq 0 $(($3 - 1))); do
		load_part "$1" "$2" "$3" "$part" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || return 1
	done
}

# Reads statements, one a line, and executes as many at a time as there are cores
side_by_side()
{
	local failed=$work/failed statement

	rm -f "$failed"
	while read -r statement; do
		while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
			wait -n
		done
		bench_sql -c "$statement" >/dev/null || touch "$failed" &
	done
	wait
	[ ! -e "$failed" ]
}

tables_of()
{
	bench_sql -c "SELECT format($1, schemaname, tablename) FROM pg_tables
		WHERE schemaname IN ('tpch', 'tpcds') ORDER BY pg_table_size(format('%I.%I', schemaname, tablename)::regclass) DESC"
}

# The statements of tpc_indexes.sql for the schemas that there are
indexes()
{
	grep -E " ($(bench_sql -c "SELECT string_agg(nspname, '|') FROM pg_namespace WHERE nspname IN ('tpch', 'tpcds')"))\\." \
		"$here/tpc_indexes.sql"
}

load_tables()
{
	local packages=(duckdb=="$duckdb_version") pids=() pid

	queries=$work/queries
	mkdir "$queries"
	[ "${BENCH_TPCDS:-1}" = 0 ] || packages+=(duckdb-extension-tpcds=="$duckdb_version")
	[ "${BENCH_TPCH:-1}" = 0 ] || packages+=(duckdb-extension-tpch=="$duckdb_version")
	bench_python "${packages[@]}"
	[ "${BENCH_TPCDS:-1}" = 0 ] || { load_suite tpcds "${BENCH_TPCDS:-1}" 1 & pids+=($!); }
	[ "${BENCH_TPCH:-1}" = 0 ] || { load_suite tpch "${BENCH_TPCH:-1}" "$(nproc)" & pids+=($!); }
	for pid in "${pids[@]}"; do
		wait "$pid" || bench_die "data were not loaded"
	done
	tables_of "'VACUUM (ANALYZE, FREEZE) %I.%I'" | side_by_side || bench_die "data were not loaded"
}

load()
{
	load_tables
	indexes | side_by_side && tables_of "'SELECT pg_prewarm(''%I.%I'')'" | side_by_side || bench_die "data were not loaded"
}
