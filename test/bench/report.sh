#!/bin/bash
# What gpusort gains on this machine, in three minutes: five statements, by PostgreSQL alone and with gpusort, and a
# line to send to the project.
#
# PostgreSQL's time is the better one of serial and parallel plans; gpusort's is that of its default settings.  Times
# are milliseconds, and medians.  The rows are the same on all machines.
#
#	BENCH_ROWS=1000000		how many rows; without a GPU 500000
#
# For the other settings see lib.sh.
set -u
. "$(dirname "$0")/lib.sh"

echo "== building gpusort, and a server with data (a minute or two)"
bench_install "$@"
bench_start bench "parallel_setup_cost = 1000" "parallel_tuple_cost = 0.1" "work_mem = 1GB" "maintenance_work_mem = 1GB"
rows=${BENCH_ROWS:-$([ "$device" = cuda ] && echo 1000000 || echo 500000)}
bench_load t "$rows" "id int, p text, n numeric(12,2)" "i, '/usr/share/doc/' || md5(i::text) || '/copyright', (abs(hashint8(i)) % 10000000) / 100.0"
bench_head "$@"
bench_ready

workers=$(($(nproc) < 8 ? $(nproc) : 8))
gpu="max_parallel_workers_per_gather=$workers max_parallel_maintenance_workers=$workers"
parallel="gpusort.enabled=off $gpu parallel_setup_cost=0 parallel_tuple_cost=0"
serial="gpusort.enabled=off max_parallel_workers_per_gather=0 max_parallel_maintenance_workers=0"

# Median ms of a query, or of building an index
statement_time()
{
	case $2 in
		SELECT*) bench_time "$1" "$2" ;;
		*)
			{
				bench_settings "$1"
				for _ in $(seq "$runs"); do
					printf '%s\n' '\timing on' "$2;" '\timing off' 'DROP INDEX i;'
				done
			} | bench_sql | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | bench_median
			;;
	esac
}

echo
printf '%-44s %10s %10s %8s\n' "$rows rows" PostgreSQL gpusort factor
line=
while IFS='|' read -r name statement; do
	best=$(bench_min "$(statement_time "$serial" "$statement")" "$(statement_time "$parallel" "$statement")")
	ours=$(statement_time "$gpu" "$statement")
	printf '%-44s %10d %10d %8s\n' "$name" "$best" "$ours" "$(bench_ratio "$best" "$ours")"
	line="$line $best/$ours"
done <<-'STATEMENTS'
	ORDER BY text, by bytes|SELECT id, p FROM t ORDER BY p COLLATE "C"
	ORDER BY text, in the order of en_US|SELECT id, p FROM t ORDER BY p COLLATE "en_US.utf8"
	ORDER BY two numbers|SELECT * FROM t ORDER BY n DESC, id
	count(DISTINCT text)|SELECT count(DISTINCT p COLLATE "en_US.utf8") FROM t
	CREATE INDEX on text, in the order of en_US|CREATE INDEX i ON t (p COLLATE "en_US.utf8")
STATEMENTS
echo "sorts that fell back: $(bench_fallbacks)"
echo
echo "Send this line to the people from whom you have gpusort (.github/CONTRIBUTING.md):"
echo "gpusort $(bench_sql -c "SELECT extversion FROM pg_extension WHERE extname = 'gpusort'")" \
	"$(git -C "$root" rev-parse --short HEAD 2>/dev/null); $(bench_sql -c "SELECT string_agg(name, ', ' ORDER BY device) FROM gpusort_devices");" \
	"$(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1); $("$PG_CONFIG" --version | cut -d' ' -f1,2);" \
	"$rows rows:$line"
