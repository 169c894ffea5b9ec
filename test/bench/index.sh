#!/bin/bash
# CREATE INDEX: PostgreSQL at its best against gpusort, in one run, on the
# tables of order_by.sh:
#
#	f	real file paths and an int		BENCH_PATHS rows (default: all there are)
#	w	short random words and an int	BENCH_WORDS rows (default 10 million)
#	g	for GIN indexes, BENCH_GIN rows (default 2 million): arrays of 4 and of 20 numbers, a comment of
#		six words as text, as tsvector and in jsonb
#
# Prints a table of medians in ms.  maintenance_work_mem is 8 GB for all; 0 and 8
# are the table's parallel_workers.  PostgreSQL's best is the faster of both.  Then
# gpusort's phases in the last run, and a comparison of the indexes, page by
# page.  With BENCH_SERIAL=no PostgreSQL builds en_US indexes with workers only, as
# it takes minutes without.  For the other settings see lib.sh.
#
#	test/bench/index.sh [NAME]...		only the lines whose names match: "plain f (id)"
set -u
. "$(dirname "$0")/lib.sh"

bench_begin "$@"
bench_load_paths f "${BENCH_PATHS:-10000000}"
bench_load_words w "${BENCH_WORDS:-10000000}"
bench_load g "${BENCH_GIN:-2000000}" "id int, a int[], b bigint[], c text, v tsvector, j jsonb" \
	"i, ARRAY[abs(hashint8(i)) % 1000000, abs(hashint8(i + 1)) % 1000000, abs(hashint8(i + 2)) % 1000000, i % 100],
	(SELECT array_agg((hashint8(i * 20 + k)::bigint << 20) + k) FROM generate_series(1, 20) AS k), c,
	to_tsvector('simple', c), jsonb_build_object('id', i, 'part', abs(hashint8(i)) % 50000, 'mode', i % 7, 'comment', c)" \
	"CROSS JOIN LATERAL (SELECT string_agg(word, ' ') AS c FROM (SELECT substr(translate(md5((abs(hashint8(i * 6 + k)) % 3000)::text),
	'0123456789', 'eaiotnrslu'), 1, 3 + k % 6) AS word FROM generate_series(1, 6) AS k) AS words) AS comment"
bench_sql -c "CREATE EXTENSION amcheck" -c "CREATE EXTENSION pg_trgm" -c "CREATE EXTENSION pageinspect" || exit 1
bench_ready

common="max_parallel_maintenance_workers=8 maintenance_work_mem=8GB client_min_messages=debug1"
stock="gpusort.index_build=off $common"
gpu="gpusort.index_build=on $common"

table_workers()
{
	bench_sql -c "ALTER TABLE $1 SET (parallel_workers = $2)"
}

# Median ms of building an index, which is dropped again
build_time()
{
	local settings=$1 ddl=$2

	{
		bench_settings "$settings"
		echo '\timing on'
		for _ in $(seq "$runs"); do
			echo "$ddl;"
			echo '\timing off'
			echo 'DROP INDEX i;'
			echo '\timing on'
		done
	} | bench_sql 2>&1 | tee "$work/build.last" | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | bench_median
	grep -oE 'gpusort (built|leaves|: build).*' "$work/build.last" | tail -1 >"$work/build.line"
}

echo
printf '%-34s | %8s %8s %8s | %8s %8s | %7s %7s\n' index 'pg 0' 'pg 8' best 'ours 0' 'ours 8' faster "/pg 0"
: >"$work/lines"
while read -r kind table columns; do
	bench_wanted "$kind $table ($columns)" || continue
	ddl="CREATE $([ "$kind" = unique ] && echo UNIQUE) INDEX i ON $table USING $([ "$kind" = gin ] && echo gin || echo btree) ($columns)"
	table_workers "$table" 0
	if [[ "${BENCH_SERIAL:-yes}" = no && "$columns" = *en_US* ]]; then
		s0=
	else
		s0=$(build_time "$stock" "$ddl")
	fi
	g0=$(build_time "$gpu" "$ddl")
	table_workers "$table" 8
	s8=$(build_time "$stock" "$ddl")
	g8=$(build_time "$gpu" "$ddl")
	echo "$table ($columns): $(cat "$work/build.line")" >>"$work/lines"
	best=$(bench_min "${s0:-$s8}" "$s8")
	ours=$(bench_min "$g0" "$g8")
	printf '%-34s | %8s %8d %8d | %8d %8d | %7s %7s\n' "$kind $table ($columns)" "${s0:--}" "$s8" "$best" "$g0" "$g8" \
		"$(bench_ratio "$best" "$ours")" "$([ -n "$s0" ] && bench_ratio "$s0" "$ours" || echo -)"
done <<-'INDEXES'
	plain f p COLLATE "C"
	plain w p COLLATE "C"
	plain f p COLLATE "en_US.utf8"
	plain w p COLLATE "en_US.utf8"
	plain f (id::bigint * 7919 % 1000003)
	plain f id
	plain w p COLLATE "C", id
	unique f p COLLATE "C", id
	gin g a
	gin g b
	gin g c gin_trgm_ops
	gin g v
	gin g j
	gin g j jsonb_path_ops
INDEXES

echo
echo "phases of the last run:"
cat "$work/lines"

echo
echo "pages compared with PostgreSQL's, but for LSN and checksum:"
for columns in 'p COLLATE "C"' 'p COLLATE "en_US.utf8"'; do
	for t in f w; do
		bench_wanted "plain $t ($columns)" || continue
		{
			bench_settings "gpusort.index_build=off maintenance_work_mem=8GB"
			echo "CREATE INDEX i_stock ON $t ($columns);"
			bench_settings "gpusort.index_build=on"
			echo "CREATE INDEX i_ours ON $t ($columns);
				SELECT CASE WHEN count(*) FILTER (WHERE substring(get_raw_page('i_stock', 'main', n) FROM 11) <>
						substring(get_raw_page('i_ours', 'main', n) FROM 11)) = 0
					AND pg_relation_size('i_stock') = pg_relation_size('i_ours') THEN 'same' ELSE 'DIFFERENT' END
				FROM generate_series(0, pg_relation_size('i_ours') / 8192 - 1) AS n;
				DROP INDEX i_stock, i_ours;"
		} | bench_sql | sed "s/^/$t ($columns): /"
	done
done
