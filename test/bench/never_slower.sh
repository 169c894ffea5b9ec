#!/bin/bash
# Everyday statements with gpusort off and on: is any of them slower, or does it take more CPU time?
#
#	test/bench/never_slower.sh [NAME]...	only the statements whose "group: name" contains a NAME
#
# Groups are report, distinct, many, order, limit, window, join, sub, small, cold and sessions.
# Settings are PostgreSQL's and gpusort's defaults, except shared_buffers, and work_mem where a
# name says so.  Results go to /dev/null in the server.  Each side is a session of its own, which
# has executed the statement before, and no other one: malloc() gives memory more quickly in a process
# that sorted or hashed many rows earlier.  Off and on take turns.  A "cold" statement is the first of
# its session; "sessions" are executed by 8 sessions at once.
#
# Printed are medians for one execution, worst first: ms by the clock, ms of CPU time of all processes of the
# server, the service's among them, on / off of both, and gpusort's nodes in the plan.  A line
# begins with "!" where on takes more than 1.1 times the time or 1.3 times the CPU time, and more
# than 2 ms.
#
# Environment, besides that of lib.sh:
#	BENCH_ROWS=3000000		rows of the table r; others follow
#	BENCH_RUNS=5			a statement that takes long has fewer, but 3
#	BENCH_SESSIONS=8
#	BENCH_SECONDS=420		no statement is begun later than this after the first one; 0: no limit
#
# With 3 million rows on two cores the default limit leaves statements out, and names them: choose groups,
# or lift it.  For a quick look, in two minutes on two cores:
#	BENCH_ROWS=100000 BENCH_RUNS=1 test/bench/never_slower.sh
set -u
BENCH_RUNS=${BENCH_RUNS:-5}
. "$(dirname "$0")/lib.sh"

rows=${BENCH_ROWS:-3000000}
sessions=${BENCH_SESSIONS:-8}
patience=${BENCH_SECONDS:-420}

bench_install "$@"
bench_start bench "max_worker_processes = 8" "max_parallel_workers = 8" \
	"parallel_setup_cost = 1000" "parallel_tuple_cost = 0.1" "jit = on"
bench_head "$@"

# ---- data ----

# r: orders of a shop, c: their customers, p: products, fresh: rows that were never analyzed
bench_load r "$rows" "id int, t timestamp, status int, customer int, product int, req text, path text, uuid text, name text, total numeric, note text" \
	"i, timestamp '2024-01-01' + i * interval '10 seconds', abs(hashint4(i)) % 5, abs(hashint4(i + 1)) % 100000, abs(hashint4(i + 2)) % 1000,
	'r' || abs(hashint4(i + 3)) % 50000 || substr(md5((hashint4(i + 3) % 50000)::text), 1, 8),
	'/' || (ARRAY['home', 'srv', 'usr', 'var'])[1 + abs(hashint4(i + 4)) % 4] || '/' || (ARRAY['Lib', 'share', 'log', 'data', 'Mail'])[1 + abs(hashint4(i + 5)) % 5] || '/' || md5(hashint4(i)::text) || '.txt',
	md5(i::text)::uuid::text, chr(65 + abs(hashint4(i + 6)) % 26) || substr(md5(i::text), 1, 4 + abs(hashint4(i)) % 9),
	(abs(hashint4(i + 7)) % 1000000)::numeric / 100, repeat(md5(i::text), 1 + abs(hashint4(i + 8)) % 5)"
bench_load c $((rows / 30)) "id int, name text, region text, since date" \
	"i, 'Customer ' || hashint4(i), 'region ' || abs(hashint4(i)) % 20, date '2010-01-01' + abs(hashint4(i + 1)) % 5000"
bench_load p 1000 "id int, name text, price numeric" "i, 'product ' || i, i"
{
	for index in "r (id)" "r (t)" "r (customer)" "c (id)" "p (id)"; do
		echo "CREATE INDEX ON $index;"
	done
	echo "CREATE TABLE fresh AS SELECT id, t, status, name, total FROM r WHERE id <= $((rows / 6));"
} | bench_sql || exit 1
bench_ready

# ---- measuring ----

postmaster=$(head -1 "$run/bench/postmaster.pid")
tick=$(getconf CLK_TCK)
began=$SECONDS
left_out=()
declare -A to_session from_session

# The CPU time of the server's processes, ended ones included, in ms
server_cpu()
{
	sleep 0.02	# what a statement leaves behind
	cat /proc/[0-9]*/stat 2>/dev/null |
		awk -v p="$postmaster" -v tick="$tick" '$1 == p {sum += $16 + $17} $4 == p {sum += $14 + $15}
			END {printf "%d\n", sum * 1000 / tick}'
}

# open_session SIDE: a psql that executes what we write
open_session()
{
	local in out

	mkfifo "$work/in" "$work/out"
	PGOPTIONS="-c gpusort.enabled=$1" as_user "$bindir/psql" -XAtq -f - <"$work/in" >"$work/out" 2>>"$work/errors" &
	exec {in}>"$work/in" {out}<"$work/out"
	to_session[$1]=$in from_session[$1]=$out
	rm "$work/in" "$work/out"
}

# The later one ends first: it has inherited what the other one reads from
close_sessions()
{
	local side in out

	for side in "${!to_session[@]}"; do
		in=${to_session[$side]} out=${from_session[$side]}
		exec {in}>&- {out}<&-
	done
	wait
}

# execute_* SIDE SQL TIMES: prints a line with the ms of each
execute_here()
{
	local line n

	{
		echo '\timing on'
		for ((n = 0; n < $3; n++)); do
			echo "$2;"
		done
		echo '\timing off'
		echo '\echo done'
	} >&"${to_session[$1]}"
	while read -r line <&"${from_session[$1]}" && [ "$line" != done ]; do
		echo "$line"
	done | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p'
}

execute_cold()
{
	local n

	for ((n = 0; n < $3; n++)); do
		printf '%s\n' '\timing on' "$2;" | PGOPTIONS="-c gpusort.enabled=$1" bench_sql -f -
	done 2>>"$work/errors" | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p'
}

# The time by the clock is divided among all executions
execute_sessions()
{
	echo "$2;" | tr '\n' ' ' >"$work/session.sql"
	chmod a+r "$work/session.sql"
	PGOPTIONS="-c gpusort.enabled=$1" as_user "$bindir/pgbench" -n -f "$work/session.sql" -c "$sessions" -j 2 -t "$3" 2>>"$work/errors" |
		awk -v n=$((sessions * $3)) '/^tps = / {while (n-- > 0) print 1000 / $3}'
}

# measure HOW SIDE SQL TIMES: prints ms and CPU ms of one execution
measure()
{
	local before ms

	before=$(server_cpu)
	ms=$("execute_$1" "$2" "$3" "$4")
	echo "$ms" | awk -v cpu=$(($(server_cpu) - before)) '{sum += $1} END {printf "%f %f\n", sum / NR, cpu / NR}'
}

# statement "GROUP: NAME" SQL [SETTING=VALUE]...
statement()
{
	local name=$1 sql=$2 copy="COPY ($2) TO '/dev/null'" how side ms times count nodes
	shift 2

	bench_wanted "$name" || return
	if [ "$patience" -gt 0 ] && [ $((SECONDS - began)) -ge "$patience" ]; then
		left_out+=("$name")
		return
	fi
	case $name in cold:*) how=cold ;; sessions:*) how=sessions ;; *) how=here ;; esac
	ms=0
	close_sessions
	for side in off on; do
		: >"$work/$side.times"
		open_session $side
		bench_settings "$*" >&"${to_session[$side]}"
		ms=$("execute_$how" $side "$copy" 1 | awk -v ms="$ms" '{ms += $1} END {print ms}')
	done
	# a measurement takes 0.2 seconds or more, and all of them some 8 where 3 of each side do not take longer
	read -r times count < <(awk -v ms="$ms" -v runs="$runs" 'BEGIN {
		times = int(400 / (ms + 1)); if (times < 1) times = 1
		count = int(8000 / (times * (ms + 1))); if (count < 3) count = 3
		print times, count < runs ? count : runs}')
	for ((; count > 0; count--)); do
		for side in off on; do
			measure $how $side "$copy" "$times" >>"$work/$side.times"
		done
	done
	nodes=$({ bench_settings "$*"; echo "EXPLAIN (COSTS OFF) $sql"; } | bench_sql |
		sed -nE 's/.*Custom Scan \(([A-Za-z]+)\).*/\1/p' | uniq | paste -sd' ')
	echo "$name|$(median off 1)|$(median on 1)|$(median off 2)|$(median on 2)|${nodes:--}" >>"$work/lines"
}

# median SIDE COLUMN
median()
{
	awk -v column="$2" '{print $column}' "$work/$1.times" | bench_median 2
}

# ---- statements ----

statements()
{
	local memory n

	# few groups, which PostgreSQL cannot guess
	statement "report: CASE, sum" "SELECT CASE WHEN total < 100 THEN 'small' WHEN total < 1000 THEN 'middle' ELSE 'large' END, sum(total) FROM r GROUP BY 1"
	statement "report: substr, max" "SELECT substr(req, 1, 3), max(total) FROM r GROUP BY 1"
	statement "report: round -2" "SELECT round(total, -2), count(*) FROM r GROUP BY 1"
	statement "report: round -3, sum" "SELECT round(total, -3), sum(total) FROM r GROUP BY 1"
	statement "report: id % 10" "SELECT id % 10, count(*) FROM r GROUP BY 1"
	statement "report: left path" "SELECT left(path, 10), count(*) FROM r GROUP BY 1"
	statement "report: left path, best 5" "SELECT left(path, 10), count(*) FROM r GROUP BY 1 ORDER BY 2 DESC LIMIT 5"
	statement "report: split_part" "SELECT split_part(path, '/', 3), count(*) FROM r GROUP BY 1"
	statement "report: lower of it" "SELECT lower(split_part(path, '/', 3)), sum(total), avg(total) FROM r GROUP BY 1"
	statement "report: month, sum" "SELECT date_trunc('month', t), sum(total) FROM r GROUP BY 1 ORDER BY 1"
	statement "report: day, avg" "SELECT t::date, avg(total) FROM r GROUP BY 1 ORDER BY 1"
	statement "report: hour" "SELECT extract(hour FROM t), count(*) FROM r GROUP BY 1 ORDER BY 1"
	statement "report: hash" "SELECT hashtext(req) % 16, count(*) FROM r GROUP BY 1"
	statement "report: left uuid" "SELECT left(uuid, 1), count(*) FROM r GROUP BY 1"
	statement "report: left name, avg" "SELECT left(name, 1), count(*), avg(total) FROM r GROUP BY 1"
	statement "report: length" "SELECT length(note), count(*) FROM r GROUP BY 1"
	statement "report: month and status" "SELECT date_trunc('month', t), status, sum(total), count(*) FROM r GROUP BY 1, 2 ORDER BY 1, 2"
	statement "report: HAVING" "SELECT left(name, 2), count(*) FROM r GROUP BY 1 HAVING count(*) > 10000"
	statement "report: month, rollup" "SELECT date_trunc('month', t), status, sum(total) FROM r GROUP BY ROLLUP (1, 2)"
	statement "report: half sorted by t" "SELECT t, status, sum(total) FROM r WHERE t < '2024-02-01' GROUP BY 1, 2"
	# groups that it knows
	statement "report: status" "SELECT status, count(*), sum(total), min(total), max(total) FROM r GROUP BY 1 ORDER BY 1"
	statement "report: req" "SELECT req, count(*) FROM r GROUP BY 1"
	statement "report: customer" "SELECT customer, sum(total) FROM r GROUP BY 1"
	statement "report: customer, last" "SELECT customer, max(t), count(*) FROM r GROUP BY 1 ORDER BY 3 DESC LIMIT 20"
	statement "report: product and status" "SELECT product, status, avg(total) FROM r GROUP BY 1, 2"
	statement "report: percentile" "SELECT status, percentile_cont(0.5) WITHIN GROUP (ORDER BY total) FROM r GROUP BY 1"
	statement "report: names of a day" "SELECT status, string_agg(name, ',' ORDER BY name) FROM r WHERE t < '2024-01-02' GROUP BY 1"
	# groups without statistics
	statement "report: fresh status" "SELECT status, count(*) FROM fresh GROUP BY 1"
	statement "report: fresh name" "SELECT name, count(*) FROM fresh GROUP BY 1"
	statement "report: fresh left name" "SELECT left(name, 1), sum(total) FROM fresh GROUP BY 1"
	statement "report: fresh month" "SELECT date_trunc('month', t), count(*) FROM fresh GROUP BY 1"

	statement "distinct: id % 100" "SELECT DISTINCT id % 100 FROM r"
	statement "distinct: req" "SELECT DISTINCT req FROM r"
	statement "distinct: left path" "SELECT DISTINCT left(path, 10) FROM r"
	statement "distinct: status, product" "SELECT DISTINCT status, product FROM r"
	statement "distinct: fresh" "SELECT DISTINCT left(name, 2) FROM fresh"
	statement "distinct: count of id % 100" "SELECT count(DISTINCT id % 100) FROM r"
	statement "distinct: count of req" "SELECT count(DISTINCT req) FROM r"
	statement "distinct: count by month" "SELECT date_trunc('month', t), count(DISTINCT customer) FROM r GROUP BY 1"
	statement "distinct: count by status" "SELECT status, count(DISTINCT left(name, 2)) FROM r GROUP BY 1"
	statement "distinct: ON customer" "SELECT DISTINCT ON (customer) customer, t, total FROM r ORDER BY customer, t DESC"
	statement "distinct: UNION" "SELECT status FROM r UNION SELECT status FROM fresh"
	statement "distinct: UNION of few" "SELECT status FROM r WHERE id <= 60000 UNION SELECT status FROM r WHERE id > $((rows - 60000))"
	statement "distinct: EXCEPT" "SELECT customer FROM r EXCEPT SELECT id FROM c"

	# many groups
	statement "many: lower path" "SELECT lower(path), count(*) FROM r GROUP BY 1"
	statement "many: path" "SELECT path, count(*) FROM r GROUP BY 1"
	statement "many: DISTINCT uuid" "SELECT DISTINCT uuid FROM r"
	statement "many: count uuid" "SELECT count(DISTINCT uuid) FROM r"
	statement "many: twice" "SELECT uuid, count(*) FROM r GROUP BY 1 HAVING count(*) > 1"
	statement "many: customer and day" "SELECT customer, t::date, sum(total) FROM r GROUP BY 1, 2"
	statement "many: fresh name and id" "SELECT name, id, count(*) FROM fresh GROUP BY 1, 2"

	statement "order: total" "SELECT id, total FROM r ORDER BY total"
	statement "order: name" "SELECT id, name FROM r ORDER BY name"
	statement "order: name en_US" "SELECT id, name FROM fresh ORDER BY name COLLATE \"en_US.utf8\""
	statement "order: by index" "SELECT id, t FROM r ORDER BY t"
	statement "order: id, name" "SELECT id, name FROM r WHERE id <= 300000 ORDER BY id, name"
	statement "order: t, name" "SELECT id, name FROM r ORDER BY t, name"
	statement "order: status, t" "SELECT id, status, t FROM r ORDER BY status, t DESC"
	statement "order: wide, 64 MB" "SELECT * FROM r WHERE status = 1 ORDER BY total" work_mem=64MB

	for memory in 4MB 64MB; do
		for n in 100 5000 15000 20000 30000; do
			statement "limit: wide $n, $memory" "SELECT * FROM r ORDER BY total DESC LIMIT $n" work_mem=$memory
		done
	done
	statement "limit: narrow 10" "SELECT id FROM r ORDER BY total LIMIT 10"
	statement "limit: narrow 100000" "SELECT id, total FROM r ORDER BY total LIMIT 100000"
	statement "limit: by index" "SELECT * FROM r ORDER BY t DESC LIMIT 50"
	statement "limit: t, name" "SELECT * FROM r ORDER BY t, name LIMIT 1000"
	statement "limit: offset" "SELECT id, name FROM r ORDER BY name OFFSET 20000 LIMIT 50"

	statement "window: rank in customer" "SELECT id, rank() OVER (PARTITION BY customer ORDER BY total) FROM r WHERE status = 2"
	statement "window: first 3" "SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY product ORDER BY total DESC) AS n FROM r) AS x WHERE n <= 3"
	statement "window: running sum" "SELECT id, sum(total) OVER (ORDER BY t) FROM r WHERE status = 1"
	statement "window: share" "SELECT id, total / sum(total) OVER (PARTITION BY status) FROM r WHERE t < '2024-03-01'"
	statement "window: lag" "SELECT customer, t - lag(t) OVER (PARTITION BY customer ORDER BY t) FROM r WHERE status = 3"
	statement "window: of groups" "SELECT date_trunc('month', t), sum(sum(total)) OVER (ORDER BY date_trunc('month', t)) FROM r GROUP BY 1"

	statement "join: region" "SELECT c.region, sum(r.total) FROM r JOIN c ON c.id = r.customer GROUP BY 1"
	statement "join: product, month" "SELECT p.name, date_trunc('month', r.t), count(*) FROM r JOIN p ON p.id = r.product GROUP BY 1, 2"
	statement "join: in order" "SELECT r.id, c.name FROM r JOIN c ON c.id = r.customer WHERE r.status = 1 ORDER BY c.name, r.t"
	statement "join: last orders" "SELECT c.name, r.t, r.total FROM c JOIN r ON r.customer = c.id WHERE c.region = 'region 3' ORDER BY r.t DESC LIMIT 100"
	statement "join: one customer" "SELECT r.id, r.total FROM c JOIN r ON r.customer = c.id WHERE c.id = 77 ORDER BY r.t"
	statement "join: uuid" "SELECT count(*) FROM r AS a JOIN fresh AS b ON a.name = b.name AND a.id = b.id"
	statement "join: by year" "SELECT extract(year FROM c.since), count(DISTINCT r.customer) FROM r JOIN c ON c.id = r.customer GROUP BY 1"

	statement "sub: above mean" "SELECT count(*) FROM r WHERE total > (SELECT avg(total) FROM r)"
	statement "sub: best product" "SELECT x.product, p.name FROM (SELECT product, sum(total) AS s FROM r GROUP BY 1 ORDER BY 2 DESC LIMIT 10) AS x JOIN p ON p.id = x.product"
	statement "sub: IN groups" "SELECT count(*) FROM c WHERE id IN (SELECT customer FROM r WHERE status = 1 GROUP BY customer HAVING count(*) > 5)"
	statement "sub: EXISTS" "SELECT count(*) FROM c WHERE EXISTS (SELECT FROM r WHERE r.customer = c.id AND r.total > 9000)"
	statement "sub: lateral last" "SELECT c.id, x.t FROM c, LATERAL (SELECT t FROM r WHERE r.customer = c.id ORDER BY t DESC LIMIT 1) AS x WHERE c.id < 2000"
	statement "sub: CTE of groups" "WITH m AS MATERIALIZED (SELECT date_trunc('month', t) AS month, left(path, 4) AS root, sum(total) AS s FROM r GROUP BY 1, 2) SELECT * FROM m ORDER BY s DESC"

	for n in 1000 10000 30000 100000 300000; do
		statement "small: $n integers" "SELECT customer FROM r WHERE id <= $n ORDER BY customer"
		statement "small: $n rows by name" "SELECT id, name, note FROM r WHERE id <= $n ORDER BY name"
	done
	statement "small: groups of 20000" "SELECT lower(name), count(*) FROM r WHERE id <= 20000 GROUP BY 1"
	statement "small: DISTINCT of 50000" "SELECT DISTINCT name FROM r WHERE id <= 50000"

	statement "cold: 30000 integers" "SELECT customer FROM r WHERE id <= 30000 ORDER BY customer"
	statement "cold: 100000 by name" "SELECT id, name FROM r WHERE id <= 100000 ORDER BY name"
	statement "cold: 100000 en_US" "SELECT id, name FROM r WHERE id <= 100000 ORDER BY name COLLATE \"en_US.utf8\""
	statement "cold: one customer" "SELECT r.id, r.total FROM c JOIN r ON r.customer = c.id WHERE c.id = 77 ORDER BY r.t"
	statement "cold: month, sum" "SELECT date_trunc('month', t), sum(total) FROM r WHERE id <= 300000 GROUP BY 1"

	for n in 1000 10000 30000 100000; do
		statement "sessions: $n integers" "SELECT customer FROM r WHERE id <= $n ORDER BY customer"
	done
	statement "sessions: 30000 by name" "SELECT id, name FROM r WHERE id <= 30000 ORDER BY name"
	statement "sessions: one customer" "SELECT r.id, r.total FROM c JOIN r ON r.customer = c.id WHERE c.id = 77 ORDER BY r.t"
	statement "sessions: CASE, sum" "SELECT CASE WHEN total < 100 THEN 'small' ELSE 'large' END, sum(total) FROM r WHERE id <= 300000 GROUP BY 1"
	statement "sessions: month" "SELECT date_trunc('month', t), count(*) FROM r WHERE id <= 300000 GROUP BY 1"
	statement "sessions: DISTINCT req" "SELECT DISTINCT req FROM r WHERE id <= 300000"
	statement "sessions: wide 1000" "SELECT * FROM r WHERE id <= 300000 ORDER BY total DESC LIMIT 1000"
}

# ---- and what came of them ----

: >"$work/lines"
statements
[ ! -s "$work/errors" ] || { sort "$work/errors" | uniq -c | head -20 >&2; bench_die "statements failed"; }
echo
printf '  %-30s | %9s %9s %6s | %9s %9s %6s | %s\n' statement 'off, ms' 'on, ms' on/off 'off, CPU' 'on, CPU' on/off "gpusort's nodes"
awk -F'|' '{
	time = $2 > 0 ? $3 / $2 : 1; cpu = $4 > 0 ? $5 / $4 : 1
	over = time > 1.1 && $3 - $2 > 2 || cpu > 1.3 && $5 - $4 > 2
	printf "%f\t%s %-30s | %9.1f %9.1f %6.2f | %9.1f %9.1f %6.2f | %s\n", (time / 1.1 > cpu / 1.3 ? time / 1.1 : cpu / 1.3),
		over ? "!" : " ", $1, $2, $3, time, $4, $5, cpu, $6}' "$work/lines" | sort -rn | cut -f2
echo
echo "$(wc -l <"$work/lines") statements, $((SECONDS - began)) s"
[ ${#left_out[@]} -eq 0 ] || { echo "left out after $patience s:"; printf '	%s\n' "${left_out[@]}"; }
