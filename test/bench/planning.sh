#!/bin/bash
# What gpusort costs statements that have nothing for it: instructions that a
# backend executes for one statement, simple protocol, planning and execution
# together, without and with gpusort in shared_preload_libraries:
#
#	point		a row by primary key, as pgbench -S
#	join		five tables, by indexes, few rows
#	ordered		the same with ORDER BY
#
# The server runs under valgrind's callgrind.  Each statement is executed N times
# by one session and 2 N times by another: the difference, divided by N, is
# free of what a session executes once.  Device: host, all defaults; the extension exists.
#
# Environment: BENCH_POINTS=2000, BENCH_JOINS=200 (N); for others see lib.sh.
#
#	test/bench/planning.sh [NAME]...
#
# It needs valgrind, and takes four minutes on two cores, or less with the name of a statement.  Repeated
# counts differ by up to 0.3 per cent on a busy machine.
set -u
BENCH_DEVICE=host
. "$(dirname "$0")/lib.sh"

command -v valgrind >/dev/null || bench_die "valgrind is missing: apt-get install valgrind"
bench_begin "$@"

joined="SELECT c.name, o.placed, i.amount, p.name FROM regions r JOIN customers c ON c.region = r.id
	JOIN orders o ON o.customer = c.id JOIN items i ON i.order_id = o.id JOIN products p ON p.id = i.product
	WHERE c.id = 42 AND r.name <> 'region 11' AND i.amount > 2 AND p.price < 900"
declare -A statements=(
	[point]="SELECT abalance FROM pgbench_accounts WHERE aid = 42"
	[join]=$joined
	[ordered]="$joined ORDER BY o.placed, p.name"
)

bench_load pgbench_accounts 100000 "aid int, bid int, abalance int, filler char(84)" "i, 1, 0, ''"
bench_load regions 10 "id int, name text" "i, 'region ' || i"
bench_load customers 1000 "id int, region int, name text" "i, 1 + i % 10, 'customer ' || i"
bench_load products 1000 "id int, price int, name text" "i, i, 'product ' || i"
bench_load orders 20000 "id int, customer int, placed date" "i, 1 + i % 1000, date '2024-01-01' + i % 365"
bench_load items 60000 "order_id int, product int, amount int" "1 + i % 20000, 1 + i % 997, i % 10"
bench_sql -c "ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid)" \
	-c "ALTER TABLE regions ADD PRIMARY KEY (id)" -c "ALTER TABLE customers ADD PRIMARY KEY (id)" \
	-c "ALTER TABLE products ADD PRIMARY KEY (id)" -c "ALTER TABLE orders ADD PRIMARY KEY (id)" \
	-c "CREATE INDEX ON orders (customer)" -c "CREATE INDEX ON items (order_id)" \
	-c "VACUUM (ANALYZE, FREEZE)" || exit 1
bench_ready
stop_server bench || exit 1

# pg_ctl starts this in the place of postgres
as_user mkdir "$run/counts"
cat >"$work/postgres-callgrind" <<-CONF
	#!/bin/sh
	exec valgrind --tool=callgrind --quiet --zero-before=PostgresMain \\
		--callgrind-out-file='$run/counts/%p' --log-file='$run/counts/%p.log' '$bindir/postgres' "\$@"
CONF
chmod 755 "$work/postgres-callgrind"

# start_counting LIBRARIES: the server, with the settings that bench_begin changed as they are by default
start_counting()
{
	printf '%s\n' "shared_preload_libraries = '$1'" "shared_buffers = 128MB" "max_worker_processes = 8" \
		"max_parallel_workers = 8" "parallel_setup_cost = 1000" "parallel_tuple_cost = 0.1" |
		as_user tee -a "$run/bench/postgresql.conf" >/dev/null
	rm -rf "$run/counting.log" "$run/counts"/*
	as_user "$bindir/pg_ctl" -D "$run/bench" -l "$run/counting.log" -w -t 300 \
		-p "$work/postgres-callgrind" start >/dev/null 2>&1 ||
		{ cat "$run/counting.log" >&2; bench_die "the server does not start under valgrind"; }
	# the first session after a start fills caches on disk for all others
	bench_sql -c "SELECT count(*) FROM pg_class" >/dev/null || exit 1
	[ -n "$1" ] || return
	wait_for_device counting
	[ "$(bench_sql -c "SELECT DISTINCT state FROM gpusort_devices")" = ready ] || bench_die "gpusort has no device"
}

# instructions SQL N: of a session that executes SQL N times
instructions()
{
	local pid count

	pid=$({
		echo "SELECT pg_backend_pid();"
		for _ in $(seq "$2"); do
			echo "${1//$'\n'/ };"
		done
	} | bench_sql -f - | sed -n 1p)
	# callgrind writes it when the backend has ended
	for _ in $(seq 600); do
		count=$(sed -n 's/^totals: //p' "$run/counts/$pid" 2>/dev/null)
		[ -z "$count" ] || break
		sleep 0.1
	done
	echo "${count:-0}"
}

declare -A counted
for libraries in '' gpusort; do
	start_counting "$libraries"
	for name in point join ordered; do
		bench_wanted $name || continue
		[ $name = point ] && n=${BENCH_POINTS:-2000} || n=${BENCH_JOINS:-200}
		once=$(instructions "${statements[$name]}" "$n")
		twice=$(instructions "${statements[$name]}" $((2 * n)))
		[ "$once" -gt 0 ] && [ "$twice" -gt "$once" ] || bench_die "no instructions were counted"
		counted[$name/$libraries]=$(((twice - once) / n))
	done
	stop_server bench || exit 1
done

echo
printf '%-8s | %10s %10s | %8s %8s\n' statement without with more 'per cent'
for name in point join ordered; do
	bench_wanted $name || continue
	without=${counted[$name/]} with=${counted[$name/gpusort]}
	printf '%-8s | %10d %10d | %8d %8s\n' $name "$without" "$with" $((with - without)) \
		"$(awk -v a="$without" -v b="$with" 'BEGIN {printf "%.2f", 100 * (b - a) / a}')"
done
