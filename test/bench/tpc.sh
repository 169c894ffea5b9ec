#!/bin/bash
# TPC-H and TPC-DS: is any query wrong or slower because gpusort is there?
#
# DuckDB makes the data and the queries (tpc_data.py).  PostgreSQL has the primary keys of
# both benchmarks, indexes on the large tables' foreign keys, and statistics.  Each query
# runs without and with gpusort by turns; all settings are defaults, but work_mem and the
# number of workers.  Times are medians by psql's clock, of the whole query.  The answers
# are compared (tpc_compare.py).  Planning is timed alone, by EXPLAIN.
#
# Printed are the queries whose plans have a node of gpusort, or differ and so do their times,
# by more than a tenth; those whose answers differ; and sums of all.  What times of the same
# plan differ by is what else goes on.  A time of - is more than BENCH_PATIENCE.
#
#	test/bench/tpc.sh [NAME]...		only queries whose names (h01 to h22, ds01 to ds99) match
#
# Environment, beside that of lib.sh:
#	BENCH_TPCH=1, BENCH_TPCDS=1	scale factors; 0 leaves the benchmark out
#	BENCH_PATIENCE=30		seconds for a query
#	BENCH_WORK_MEM=64MB		each of these, with each of
#	BENCH_WORKERS			max_parallel_workers_per_gather; default: cores, from 2 to 8
#	BENCH_SETTINGS			more settings, "name=value" words
#	BENCH_PLANS=3			how often to time planning; 0: not at all
#	BENCH_WHEELS=folder		wheels of duckdb, duckdb-extension-tpch and -tpcds, if pip
#							has no network
#	BENCH_KEEP=folder		keeps queries, plans and answers
#
# To load scale factor 1 takes some minutes on two cores.  BENCH_SETTINGS=gpusort.force=on compares answers only.
set -u
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/tpc_load.sh"

# run_side SUITE FILE SETTINGS SIDE RUN writes plan.SIDE.N and answer.SIDE into $answers, and prints
# the ms, - if it took too long.  A session of its own: the first query of a session is slower.
run_side()
{
	local i

	{
		bench_settings "$3 search_path=$1 gpusort.enabled=$4"
		for i in $(seq 0 "$([ "$5" -gt 1 ] && echo 0 || echo "${BENCH_PLANS:-3}")"); do
			printf '\\o %s/plan.%s.%d\nEXPLAIN (COSTS OFF, SUMMARY ON)\n' "$answers" "$4" "$i"
			cat "$2"
			printf ';\n\\o\n'
		done
		printf '\\pset format csv\n\\pset tuples_only off\n\\pset null NULL\n\\o %s/answer.%s\n\\timing on\n' "$answers" "$4"
		cat "$2"
		echo ';'
	} >"$work/script"
	bench_sql -v ON_ERROR_STOP=0 <"$work/script" 2>"$work/errors" >"$work/times"
	# any other error is an answer
	! grep -q '^ERROR' "$work/errors" || cp "$work/errors" "$answers/answer.$4"
	if grep -q 'statement timeout' "$work/errors"; then
		echo -
	else
		sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' "$work/times"
	fi
}

# The least planning time of a side, without the first, which fills caches
planning_time()
{
	local i

	for i in $(seq "${BENCH_PLANS:-3}"); do
		sed -n 's/^Planning Time: \(.*\) ms/\1/p' "$answers/plan.$1.$i"
	done | sort -n | head -1
}

# compare NAME SUITE FILE SETTINGS: adds a line to $work/lines,
#	NAME postgres gpusort planning planning' answer what
compare()
{
	local run off on offs=() ons=() side what answer

	rm -f "$answers"/*
	for run in $(seq "$runs"); do
		off=$(run_side "$2" "$3" "$4" off "$run")
		on=$(run_side "$2" "$3" "$4" on "$run")
		[ "$off" = - ] || offs+=("$off")
		[ "$on" = - ] || ons+=("$on")
		[ "$off" != - ] && [ "$on" != - ] || break
	done
	for side in off on; do
		grep -v '^Planning Time' "$answers/plan.$side.0" >"$answers/plan.$side"
	done
	what=$(grep -oE 'Custom Scan \(Gpu[A-Za-z]+' "$answers/plan.on" | sed 's/.*(//' | sort | uniq -c | awk '{printf " %s*%d", $2, $1}')
	cmp -s "$answers/plan.off" "$answers/plan.on" && what="the same plan"
	answer=timeout
	[ "$off" = - ] || [ "$on" = - ] || answer=$(python3 "$here/tpc_compare.py" "$3" "$answers/answer.off" "$answers/answer.on")
	[ "$off" = - ] && off=- || off=$(printf '%s\n' "${offs[@]}" | bench_median)
	[ "$on" = - ] && on=- || on=$(printf '%s\n' "${ons[@]}" | bench_median)
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$off" "$on" "$(planning_time off)" "$(planning_time on)" "$answer" "${what# }" >>"$work/lines"
	if [ -n "${BENCH_KEEP-}" ]; then
		mkdir -p "$BENCH_KEEP/$1"
		cp "$3" "$answers"/{plan,answer}.{off,on} "$BENCH_KEEP/$1" 2>/dev/null
	fi
}

# The queries that are of interest, and sums
report()
{
	awk -F '\t' '
		function ms(t) {return t == "-" ? t : sprintf("%.0f", t)}
		function faster(a, b) {return sprintf("%.2f", b > 0 ? a / b : 0)}
		function sums(what, key)
		{
			printf "%-34s %4d queries, %7.0f and %7.0f ms in all (%s)\n", what, n[key], off[key], on[key], faster(off[key], on[key])
		}
		function add(key)
		{
			n[key]++
			if ($2 != "-" && $3 != "-")
			{
				off[key] += $2
				on[key] += $3
			}
		}
		{
			suite = $1 ~ /^ds/ ? "TPC-DS" : "TPC-H"
			timeouts = ($2 == "-") + ($3 == "-")
			ratio = !timeouts && $3 > 0 ? $2 / $3 : 1
			if ($7 ~ /Gpu/ || $6 ~ /^DIFFERENT/ || ($7 == "" && (timeouts == 1 || ratio < 0.9 || ratio > 1.1)))
				printf "%-6s %9s %9s %8s   %-10s %s\n", $1, ms($2), ms($3), timeouts ? "-" : faster($2, $3), $6, $7
			add(suite)
			add($7 ~ /Gpu/ ? suite " with gpusort" : $7 == "" ? suite " with another plan" : suite " with the same plan")
			planning_off[suite] += $4
			planning_on[suite] += $5
			sub(/^DIFFERENT.*/, "different", $6)
			sub(/^same rows.*/, "same rows", $6)
			sub(/^timeout/, timeouts == 2 ? "timed out on both" : $2 == "-" ? "timed out without gpusort" : "timed out with gpusort", $6)
			answers[$6]++
		}
		END {
			print ""
			for (suite in planning_off)
			{
				for (key in n)
					if (index(key, suite " ") == 1)
						sums(key, key)
				sums(suite, suite)
				if (planning_off[suite] > 0)
					printf "%-34s %.1f and %.1f ms (%+.1f %%)\n", suite ", planning", planning_off[suite], planning_on[suite],
						100 * (planning_on[suite] / planning_off[suite] - 1)
			}
			printf "answers:"
			for (answer in answers)
				printf "  %s %d", answer, answers[answer]
			print ""
		}' "$work/lines"
}

bench_begin "$@"
answers=$run/answers
as_user mkdir "$answers"
load
echo "loaded:  TPC-H ${BENCH_TPCH:-1}, TPC-DS ${BENCH_TPCDS:-1}, in $SECONDS s"
bench_ready

cores=$(nproc)
for workers in ${BENCH_WORKERS:-$((cores < 2 ? 2 : cores > 8 ? 8 : cores))}; do
	for memory in ${BENCH_WORK_MEM:-64MB}; do
		: >"$work/lines"
		for file in "$queries"/tpch/*.sql "$queries"/tpcds/*.sql; do
			[ -e "$file" ] || continue
			suite=$(basename "$(dirname "$file")")
			name=${suite#tpc}$(basename "$file" .sql)
			! bench_wanted "$name" || compare "$name" "$suite" "$file" "parallel_setup_cost=1000 parallel_tuple_cost=0.1
				max_parallel_workers_per_gather=$workers work_mem=$memory
				statement_timeout=$((${BENCH_PATIENCE:-30} * 1000)) ${BENCH_SETTINGS-}"
		done
		printf '\n%s workers, work_mem %s\n' "$workers" "$memory"
		printf '%-6s %9s %9s %8s   %-10s %s\n' query postgres gpusort faster answer "gpusort's plan"
		report
	done
done
echo "done in $SECONDS s"
