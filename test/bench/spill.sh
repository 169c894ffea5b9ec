#!/bin/bash
# Sorts and index builds larger than the device's memory, against PostgreSQL at
# its best and against gpusort with all of the memory, in one run.
#
#	f	real file paths and an int		BENCH_PATHS rows (default: all there are)
#	w	short random words and an int	BENCH_WORDS rows (default 10 million)
#	l	16 columns like TPC-H's lineitem	BENCH_LINES rows (default 30 million)
#	wN	words, N million rows, for N of BENCH_SIZES (default "3 10 30")
#
# Parts, of which the command line may name some:
#
#	order		ORDER BY of f and w with 300 MB
#	lineitem	ORDER BY of l with 1 GB
#	growth		time per row of wN with 2 GB
#	index		CREATE INDEX on f with 300 MB
#	memory		ORDER BY of f with 256 MB, the same for work_mem, and what the service's
#				own memory grows to; for the host device
#	sessions	16 sessions, 5 million words each, with 1 GB together
#
# Medians in ms.  "pg" is the fastest of serial and 8 workers, work_mem 64 MB and
# 8 GB; "pg def" has all settings at PostgreSQL's defaults, and "def" is gpusort
# with the same.  For the other settings see lib.sh.
set -u
. "$(dirname "$0")/lib.sh"

bench_begin "$@"
paths=${BENCH_PATHS:-10000000}
words=${BENCH_WORDS:-10000000}
lines=${BENCH_LINES:-30000000}
sizes=${BENCH_SIZES:-3 10 30}

stock="gpusort.enabled=off gpusort.index_build=off"
serial="max_parallel_workers_per_gather=0"
parallel="max_parallel_workers_per_gather=8"
gpu="gpusort.enabled=on gpusort.force=on work_mem=64MB $parallel"
defaults="parallel_setup_cost=1000 parallel_tuple_cost=0.1"

# MB; 0: the default
device_memory()
{
	local wanted=$1

	bench_sql -c "ALTER SYSTEM SET gpusort.device_memory = '${wanted}MB'" -c "SELECT pg_reload_conf()" >/dev/null
	for _ in $(seq 100); do
		[ "$(bench_sql -c "SELECT DISTINCT memory_limit >> 20 FROM gpusort_devices")" = "$wanted" ] && return
		[ "$wanted" = 0 ] && sleep 0.3 && return
		sleep 0.1
	done
	bench_die "the limit of device memory did not change"
}

stock_best()
{
	local sql=$1 best= ms settings

	for settings in "$serial work_mem=64MB" "$serial work_mem=8GB" "$parallel work_mem=64MB" "$parallel work_mem=8GB"; do
		[[ "${BENCH_SERIAL:-yes}" = no && "$settings" = "$serial"* ]] && continue
		ms=$(bench_time "$stock $settings" "$sql")
		best=$(bench_min "${best:-$ms}" "$ms")
	done
	echo "$best"
}

# What the last plan says of its temporary files
spilled()
{
	sed -n 's/^ *Temporary Files: //p' "$work/plans.log" | tail -1
}

compare()
{
	local mb=$1 sql=$2 pg pgd all capped def

	device_memory 0
	pg=$(stock_best "$sql")
	pgd=$(bench_time "$stock $defaults" "$sql")
	all=$(bench_time "$gpu" "$sql")
	device_memory "$mb"
	: >"$work/plans.log"
	capped=$(bench_time "$gpu" "$sql")
	def=$(bench_time "gpusort.enabled=on $defaults" "$sql")
	printf '%-44s | %8d %8d | %8d %8d %8d | %7s %8s | %s\n' "${sql:0:44}" "$pg" "$pgd" "$all" "$capped" "$def" \
		"$(bench_ratio "$capped" "$all")" "$(bench_ratio "$pg" "$capped")" "$(spilled)"
}

header()
{
	echo
	echo "$1"
	printf '%-44s | %8s %8s | %8s %8s %8s | %7s %8s |\n' query pg 'pg def' 'all mem' capped def '/all' 'faster'
}

if bench_wanted order || bench_wanted index || bench_wanted memory; then
	bench_load_paths f "$paths"
fi
if bench_wanted order; then
	bench_load_words w "$words"
	bench_ready
	header "300 MB of device memory"
	compare 300 'SELECT id, p FROM f ORDER BY p COLLATE "C"'
	compare 300 'SELECT id, p FROM w ORDER BY p COLLATE "C"'
	BENCH_SERIAL=no compare 300 'SELECT id, p FROM f ORDER BY p COLLATE "en_US.utf8"'
	BENCH_SERIAL=no compare 300 'SELECT id, p FROM w ORDER BY p COLLATE "en_US.utf8"'
	echo "order checked row by row against PostgreSQL's:"
	for t in f w; do
		for on in off on; do
			{ bench_settings "gpusort.enabled=$on gpusort.force=$on $parallel work_mem=8GB"
				echo "COPY (SELECT p FROM $t ORDER BY p COLLATE \"C\") TO STDOUT;"
			} | bench_sql | md5sum >"$work/$t.$on"
		done
		cmp -s "$work/$t.on" "$work/$t.off" && echo "$t: same" || echo "$t: DIFFERENT"
	done
	bench_sql -c "DROP TABLE w"
fi

if bench_wanted index; then
	printf '\n%-44s | %8s | %8s %8s | %7s %8s\n' 'CREATE INDEX, 300 MB' pg 'all mem' capped '/all' faster
	bench_sql -c "ALTER TABLE f SET (parallel_workers = 8)"
	for collation in C en_US.utf8; do
		ddl="CREATE INDEX i ON f (p COLLATE \"$collation\")"
		index_time()
		{
			for _ in $(seq "$runs"); do
				{
					bench_settings "$1 max_parallel_maintenance_workers=8 maintenance_work_mem=8GB"
					echo '\timing on'
					echo "$ddl;"
				} | bench_sql | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p'
				bench_sql -c "DROP INDEX i"
			done | bench_median
		}
		device_memory 0
		pg=$(index_time "gpusort.index_build=off")
		all=$(index_time "gpusort.index_build=on")
		device_memory 300
		capped=$(index_time "gpusort.index_build=on")
		printf '%-44s | %8d | %8d %8d | %7s %8s\n' "$ddl" "$pg" "$all" "$capped" \
			"$(bench_ratio "$capped" "$all")" "$(bench_ratio "$pg" "$capped")"
	done
fi

# kB of the service's own memory, the most that it had while a file stands
watch_service()
{
	local pid most=0 now

	pid=$(bench_sql -c "SELECT DISTINCT service_pid FROM gpusort_devices")
	while [ -e "$work/watching" ]; do
		now=$(awk '/^RssAnon/ {print $2}' "/proc/$pid/status")
		[ "$now" -le "$most" ] || most=$now
		sleep 0.05
	done
	echo "$most"
}

if bench_wanted memory; then
	sql='SELECT id, p FROM f ORDER BY p COLLATE "C"'
	bench_ready
	device_memory 256
	s=$(bench_time "$stock $serial work_mem=256MB" "$sql")
	p=$(bench_time "$stock $parallel work_mem=256MB" "$sql")
	touch "$work/watching"
	watch_service >"$work/service" &
	gs=$(bench_time "gpusort.enabled=on gpusort.force=on work_mem=256MB $serial" "$sql")
	gp=$(bench_time "gpusort.enabled=on gpusort.force=on work_mem=256MB $parallel" "$sql")
	rm "$work/watching"
	wait
	printf '\n%-30s | %8s %8s | %8s %8s | %s\n' '256 MB, f' 'pg s' 'pg p' 'ours s' 'ours p' faster
	printf '%-30s | %8d %8d | %8d %8d | %s   %s\n' "$(bench_sql -c 'SELECT count(*) FROM f') rows" "$s" "$p" "$gs" "$gp" \
		"$(bench_ratio "$(bench_min "$s" "$p")" "$(bench_min "$gs" "$gp")")" "$(spilled)"
	echo "the service's own memory, at most: $(($(cat "$work/service") / 1024)) MB"
fi

if bench_wanted lineitem; then
	bench_load_lines l "$lines"
	bench_ready
	header "1 GB of device memory"
	compare 1024 'SELECT * FROM l ORDER BY l_shipdate, l_orderkey'
	compare 1024 'SELECT * FROM l ORDER BY l_comment COLLATE "C"'
	bench_sql -c "DROP TABLE l"
fi

if bench_wanted growth; then
	printf '\n%-12s | %10s %10s\n' '2 GB' ms 'ns a row'
	bench_ready
	device_memory 2048
	for size in $sizes; do
		bench_load wn $((size * 1000000)) "id int, p text" \
			"i, substr(translate(md5(i::text), '0123456789', 'ghijklmnop'), 1, 5 + abs(hashint4(i)) % 12)"
		: >"$work/plans.log"
		ms=$(bench_time "$gpu" 'SELECT id, p FROM wn ORDER BY p COLLATE "C"')
		printf '%9d M  | %10d %10d   %s\n' "$size" "$ms" $((ms / size)) "$(spilled)"
		bench_sql -c "DROP TABLE wn"
	done
fi

if bench_wanted sessions; then
	bench_load_words ws 5000000
	bench_ready
	device_memory 1024
	all_at_once()
	{
		local began

		began=$(date +%s%N)
		for _ in $(seq 16); do
			{
				bench_settings "$1"
				echo 'EXPLAIN (ANALYZE, TIMING OFF) SELECT id, p FROM ws ORDER BY p COLLATE "C";'
			} | bench_sql >/dev/null 2>&1 &
		done
		wait
		echo $((($(date +%s%N) - began) / 1000000))
	}
	bench_sql -c "SELECT gpusort_stats_reset()" >/dev/null
	pg=$(all_at_once "$stock $serial work_mem=64MB")
	pgw=$(all_at_once "$stock $serial work_mem=1GB")
	ours=$(all_at_once "gpusort.enabled=on gpusort.force=on $serial work_mem=64MB")
	printf '\n%-40s | %8s %8s %8s | %s\n' '16 sessions, 5M words each, 1 GB' 'pg 64MB' 'pg 1GB' ours faster
	printf '%-40s | %8d %8d %8d | %s\n' 'ms for all' "$pg" "$pgw" "$ours" "$(bench_ratio "$(bench_min "$pg" "$pgw")" "$ours")"
	bench_sql -c "SELECT 'sorts ' || sorts || ', spilled ' || spilled_sorts || ', fallbacks ' || fallbacks FROM gpusort_stats"
fi
