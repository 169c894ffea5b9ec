#!/bin/bash
# Sorts of all kinds: PostgreSQL at its best against gpusort, in one run.
#
# Tables f and w as in order_by.sh; a holds float4[] of 20 elements
# (BENCH_ARRAYS rows, default 5 million), n numerics, r ranges (BENCH_RANGES rows, default 3 million),
# c composite types and jsonb (BENCH_RECORDS rows, default 3 million), g points of PostGIS (BENCH_POINTS rows,
# default 5 million), h Hangul text (BENCH_HANGUL rows, default 1 million).  PostgreSQL's best is the fastest of
# serial and parallel (8 workers allowed), each with work_mem 64 MB and 8 GB;
# where one of them takes more than BENCH_PATIENCE seconds (default 30) it is
# left out, and with BENCH_SERIAL=no the serial ones are.  Medians in ms; "-" in
# the last columns: gpusort does not take the sort.
#
#	test/bench/sorts.sh [NAME]...		only the queries whose names match
set -u
. "$(dirname "$0")/lib.sh"

bench_begin "$@"
bench_load_paths f "${BENCH_PATHS:-10000000}"
bench_load_words w "${BENCH_WORDS:-10000000}"
bench_ready

stock="gpusort.enabled=off statement_timeout=$((${BENCH_PATIENCE:-30} * 1000))"
ours="gpusort.enabled=on gpusort.force=on work_mem=64MB"

# What a median of no runs prints
measure()
{
	bench_time "$1" "$2" 2>/dev/null || true
}

row()
{
	local name=$1 extra=$2 sql=$3 best=-1 workers memory t mine=-1

	bench_wanted "$name" || return
	for workers in 0 8; do
		for memory in 64MB 8GB; do
			[ "$workers" -gt 0 ] || [ "${BENCH_SERIAL:-yes}" = yes ] || continue
			t=$(measure "$stock $extra max_parallel_workers_per_gather=$workers work_mem=$memory" "$sql")
			[ "$t" -ge 0 ] && { [ "$best" -lt 0 ] || [ "$t" -lt "$best" ]; } && best=$t
		done
		t=$(measure "$ours $extra max_parallel_workers_per_gather=$workers" "$sql")
		[ "$t" -ge 0 ] && { [ "$mine" -lt 0 ] || [ "$t" -lt "$mine" ]; } && mine=$t
	done
	if { bench_settings "$ours $extra"; echo "EXPLAIN $sql"; } | bench_sql | grep -q '(GpuSort)'; then
		printf '%-34s %9s %9s %8s\n' "$name" "$best" "$mine" "$(bench_ratio "$best" "$mine")"
	else
		printf '%-34s %9s %9s %8s\n' "$name" "$best" - -
	fi
}

echo
printf '%-34s %9s %9s %8s\n' query postgres gpusort faster
for t in f w; do
	row "$t ORDER BY p C" "" "SELECT id, p FROM $t ORDER BY p COLLATE \"C\""
	row "$t ORDER BY p C DESC, id" "" "SELECT id, p FROM $t ORDER BY p COLLATE \"C\" DESC, id"
	row "$t ORDER BY id" "" "SELECT id, p FROM $t ORDER BY id"
	row "$t ORDER BY p en_US" "" "SELECT id, p FROM $t ORDER BY p COLLATE \"en_US.utf8\""
	row "$t ORDER BY p ICU" "" "SELECT id, p FROM $t ORDER BY p COLLATE \"en-x-icu\""
	row "$t rank() OVER (ORDER BY p C)" "" "SELECT id, rank() OVER (ORDER BY p COLLATE \"C\") FROM $t"
	row "$t DISTINCT p by sort" "enable_hashagg=off" "SELECT DISTINCT p COLLATE \"C\" FROM $t"
done
row "merge join f, w" "enable_hashjoin=off enable_nestloop=off" \
	"SELECT count(*) FROM f JOIN w ON f.p COLLATE \"C\" = w.p COLLATE \"C\""

if bench_wanted "n ORDER BY numeric"; then
	bench_load n "${BENCH_NUMERICS:-10000000}" "id int, v numeric" \
		"i, (hashint4(i)::numeric * 1000 + i % 7) / 100"
	row "n ORDER BY numeric" "" "SELECT id, v FROM n ORDER BY v"
	row "n ORDER BY numeric DESC, id" "" "SELECT id, v FROM n ORDER BY v DESC, id"
fi
if bench_wanted "a ORDER BY float4[20]"; then
	bench_load a "${BENCH_ARRAYS:-5000000}" "id int, v float4[]" \
		"i, ARRAY(SELECT (hashint4(i * 20 + j) % 1000000)::float4 / 7 FROM generate_series(1, 20) AS j)"
	row "a ORDER BY float4[20]" "" "SELECT id, v FROM a ORDER BY v"
fi
if bench_wanted "h ORDER BY Hangul en_US"; then
	bench_load h "${BENCH_HANGUL:-1000000}" "id int, p text" \
		"i, (SELECT string_agg(chr(44032 + abs(hashint4(i * 8 + j)) % 11172), '') FROM generate_series(1, 8) AS j)"
	BENCH_RUNS=1 row "h ORDER BY Hangul en_US" "" "SELECT id, p FROM h ORDER BY p COLLATE \"en_US.utf8\""
	row "h ORDER BY Hangul ICU" "" "SELECT id, p FROM h ORDER BY p COLLATE \"en-x-icu\""
fi
if bench_wanted "r ORDER BY int4range"; then
	bench_load r "${BENCH_RANGES:-3000000}" "id int, v int4range, n numrange" \
		"i, int4range(abs(hashint4(i)) % 1000000, 1000000 + abs(hashint4(i + 1)) % 1000000), numrange(i % 1000, 1000 + i % 7 / 10.0)"
	row "r ORDER BY int4range" "" "SELECT id, v FROM r ORDER BY v"
	row "r ORDER BY numrange, id" "" "SELECT id, n FROM r ORDER BY n, id"
fi
# c, in a database of its own for jsonb, whose strings have the database's collation
load_records()
{
	bench_sql -c 'CREATE TYPE pair AS (i int, t text COLLATE "C")' \
		-c 'CREATE TYPE pair_us AS (i int, t text COLLATE "en_US.utf8")' || exit 1
	bench_load c "${BENCH_RECORDS:-3000000}" "id int, v pair, u pair_us, j jsonb, w tsvector" \
		"i, (abs(hashint4(i)) % 1000, md5(i::text))::pair, (abs(hashint4(i)) % 1000, md5(i::text))::pair_us,
		jsonb_build_object('n', abs(hashint4(i)) % 1000, 't', md5(i::text)), to_tsvector('simple', i::text)"
}
if bench_wanted "c ORDER BY record"; then
	load_records
	row "c ORDER BY record (int, text C)" "" "SELECT id, v FROM c ORDER BY v"
	row "c ORDER BY record (int, text en_US)" "" "SELECT id, u FROM c ORDER BY u"
	row "c ORDER BY id, tsvector" "" "SELECT id, w FROM c ORDER BY id, w"
fi
if bench_wanted "c ORDER BY jsonb"; then
	for locale in C en_US.utf8; do
		bench_sql -c "CREATE DATABASE \"records_$locale\" TEMPLATE template0 ENCODING 'UTF8' LOCALE '$locale'" || exit 1
		PGDATABASE=records_$locale
		bench_sql -c "CREATE EXTENSION gpusort" -c "CREATE EXTENSION pg_prewarm" || exit 1
		load_records
		row "c ORDER BY jsonb $locale" "" "SELECT id, j FROM c ORDER BY j"
		row "c ORDER BY jsonb -> 't' $locale" "" "SELECT id, j FROM c ORDER BY j -> 't'"
		row "c ORDER BY jsonb -> 'n' $locale" "" "SELECT id, j FROM c ORDER BY j -> 'n'"
		PGDATABASE=postgres
	done
fi
if bench_wanted "g ORDER BY geometry"; then
	if [ "$(bench_sql -c "SELECT count(*) FROM pg_available_extensions WHERE name = 'postgis'")" = 1 ]; then
		bench_sql -c "CREATE EXTENSION postgis" || exit 1
		bench_load g "${BENCH_POINTS:-5000000}" "id int, v geometry" \
			"i, ST_Point(hashint4(i) % 180000 / 1000.0, hashint4(i + 1) % 90000 / 1000.0, 4326)"
		row "g ORDER BY geometry" "" "SELECT id, v FROM g ORDER BY v"
	else
		echo "no PostGIS here: geometry was not measured"
	fi
fi
