# What the benchmarks share: a private server with gpusort as users build it,
# data, and timing.  Sourced by the scripts of this folder.
#
#	bench_begin				build, install, start the server; or, where there are several,
#	bench_install, bench_start NAME CONF..., bench_head
#	bench_load_paths TABLE ROWS, bench_load_words TABLE ROWS
#	bench_load_lines TABLE ROWS		like TPC-H's lineitem
#	bench_load TABLE ROWS COLUMNS EXPRESSIONS [JOIN]	rows made by SQL, i = 1 .. ROWS
#	bench_python PACKAGE...	packages for python3, in the work directory, from pip or the wheels in BENCH_WHEELS
#	bench_ready				data are loaded: timing begins
#	bench_wanted NAME		does the command line ask for NAME?
#	bench_time SETTINGS SQL	median ms of BENCH_RUNS runs, by EXPLAIN (ANALYZE,
#							TIMING OFF); SETTINGS are "name=value" words
#	bench_open_cursors ROLE CURSORS SESSIONS SQL	open this number of cursors, fetch 10 rows of each, and leave them idle
#	bench_close_cursors		until this, which prints of each one the row that is 5,000 rows behind
#	bench_temp_mb			MB of temporary files
#	bench_service_mb		MB of the service's own memory
#	bench_copy_time SETTINGS SQL	the same for COPY (SQL) TO '/dev/null', by clock
#
# Environment:
#	BENCH_DEVICE=cuda|host	default: cuda where there is a GPU
#	BENCH_FILE=file			lines to sort instead of the distribution's paths
#	BENCH_RUNS=3
#	BENCH_BUFFERS=200MB		shared_buffers; default: a fifth of the memory, at most 8 GB
#	BENCH_LOCK=file			benchmarks that are started side by side with the same
#							file set up together, but time one after the other
#	PG_CONFIG, CUDA, CUDA_ARCH	as for the Makefile

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$root/test/lib/prerequisites.sh"
. "$root/test/lib/server.sh"
. "$root/test/lib/paths.sh"

runs=${BENCH_RUNS:-3}
MAKEFLAGS=$(echo "${MAKEFLAGS-}" | sed -E 's/(^| )-j[0-9]*//g; s/ ?--jobserver[^ ]*//g')
export MAKEFLAGS

bench_die()
{
	echo "bench: $*" >&2
	exit 1
}

bench_build()
{
	make -C "$build" -f "$root/Makefile" PG_CONFIG="$PG_CONFIG" -j"$(nproc)" "${flags[@]}" &&
		make -C "$build" -f "$root/Makefile" PG_CONFIG="$PG_CONFIG" "${flags[@]}" \
			install DESTDIR="$work/install"
}

# Build and install.  Sets device and memory_mb
bench_install()
{
	local arch

	bench_names=("$@")
	arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
		tr -d '. ' | grep -xE '[0-9]+' | sort -u | tr '\n' ' ')
	device=${BENCH_DEVICE:-$([ -n "$arch" ] && echo cuda || echo host)}
	memory_mb=$(awk '/MemTotal/ {print int($2 / 1024)}' /proc/meminfo)
	check_prerequisites
	make_work_dir
	build=$root/build/bench
	mkdir -p "$build"
	flags=(CUDA="${CUDA:-$([ -n "$arch" ] && echo auto || echo no)}")
	[ -z "${CUDA_ARCH:-$arch}" ] || flags+=(CUDA_ARCH="${CUDA_ARCH:-${arch% }}")
	make_private_install || exit 1
	interruptible bench_build >"$work/build.log" 2>&1 || { tail -30 "$work/build.log" >&2; exit 1; }
	chmod -R a+rX "$work/install"
}

# bench_start NAME CONF...: a server, with more settings of the caller's
bench_start()
{
	local name=$1
	shift

	start_server "$name" \
		"shared_preload_libraries = 'gpusort'" \
		"gpusort.device = $device" \
		"shared_buffers = ${BENCH_BUFFERS:-$((memory_mb / 5 < 8192 ? memory_mb / 5 : 8192))MB}" \
		"max_wal_size = 64GB" \
		"checkpoint_timeout = 1d" \
		"autovacuum = off" \
		"max_worker_processes = 32" \
		"max_parallel_workers = 32" \
		"parallel_setup_cost = 0" \
		"parallel_tuple_cost = 0" \
		"jit = off" "$@" || exit 1
	bench_sql -c "CREATE EXTENSION gpusort" -c "CREATE EXTENSION pg_prewarm" >/dev/null || exit 1
	for _ in $(seq 100); do
		[ "$(bench_sql -c "SELECT DISTINCT state FROM gpusort_devices")" = starting ] || break
		sleep 0.1
	done
	[ "$(bench_sql -c "SELECT DISTINCT state FROM gpusort_devices")" = ready ] || bench_die "gpusort has no device"
}

# 16 columns like TPC-H's lineitem
bench_load_lines()
{
	bench_load "$1" "$2" "l_orderkey bigint, l_partkey int, l_suppkey int, l_linenumber int, l_quantity numeric(12,2),
		l_extendedprice numeric(12,2), l_discount numeric(12,2), l_tax numeric(12,2), l_returnflag char(1),
		l_linestatus char(1), l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct char(25),
		l_shipmode char(10), l_comment varchar(44)" \
		"i / 4 * 8 + i % 4, abs(hashint8(i)) % 1000000, abs(hashint8(i + 1)) % 50000, i % 7 + 1, i % 50 + 1,
		(abs(hashint8(i)) % 10000000) / 100.0, (i % 11) / 100.0, (i % 9) / 100.0, substr('ANR', i % 3 + 1, 1),
		substr('OF', i % 2 + 1, 1), date '1992-01-02' + abs(hashint8(i / 4)) % 2526,
		date '1992-01-31' + abs(hashint8(i / 4)) % 2466, date '1992-01-04' + abs(hashint8(i / 4)) % 2554,
		(array['DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN'])[i % 4 + 1],
		(array['TRUCK', 'MAIL', 'REG AIR', 'SHIP', 'FOB', 'RAIL', 'AIR'])[i % 7 + 1],
		substr(translate(md5(i::text), '0123456789', ' aeioutnrs'), 1, 10 + abs(hashint8(i)) % 22)"
}

# What the results were measured with
bench_head()
{
	echo "date:    $(date -u +%F)   commit: ${BENCH_COMMIT:-$(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown)}"
	echo "machine: $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $((memory_mb / 1024)) GB"
	echo "server:  $("$PG_CONFIG" --version)   device: $(bench_sql -c "SELECT string_agg(name, ', ' ORDER BY device) FROM gpusort_devices")"
	echo "command: $(env | grep -E '^(BENCH_|SOAK_|CUDA)' | sort | tr '\n' ' ')$0 $*"
}

bench_begin()
{
	bench_install "$@"
	bench_start bench
	bench_head "$@"
}

bench_sql()
{
	as_user "$bindir/psql" -XAtq -v ON_ERROR_STOP=1 "$@"
}

# Why sorts fell back, and how often
bench_fallbacks()
{
	bench_sql -c "SELECT coalesce(string_agg(reason || ': ' || count, ', '), 'none') FROM gpusort_stat_reasons
		WHERE kind = 'fallback' AND count > 0"
}

# All rows are in shared buffers, with their hint bits set, before anything is timed
bench_settle()
{
	bench_sql -c "VACUUM (ANALYZE, FREEZE) $1" -c "SELECT pg_prewarm('$1')" >/dev/null
}

bench_load_paths()
{
	local table=$1 rows=$2 file=$work/$1.paths

	if [ -n "${BENCH_FILE-}" ]; then
		shuf -n "$rows" --random-source=<(yes gpusort) "$BENCH_FILE" >"$file"
	else
		interruptible collect_paths "$rows" "$file" || bench_die "no file paths found"
	fi
	chmod a+r "$file"
	bench_sql -c "CREATE TABLE $table (id int GENERATED ALWAYS AS IDENTITY, p text)" \
		-c "\\copy $table (p) FROM '$file' (FORMAT csv, DELIMITER E'\\x01', QUOTE E'\\x02')" || exit 1
	rm -f "$file"
	bench_settle "$table"
}

bench_load_words()
{
	bench_sql -c "CREATE TABLE $1 AS SELECT i AS id,
		substr(translate(md5(i::text), '0123456789', 'ghijklmnop'), 1, 5 + abs(hashint4(i)) % 12) AS p
		FROM generate_series(1, $2) AS i ORDER BY hashint4(i)" || exit 1
	bench_settle "$1"
}

# Made by one process a core, so rows lie in no particular order
bench_load()
{
	local table=$1 rows=$2 columns=$3 expressions=$4 join=${5-} parts pids=() part pid

	parts=$(nproc)
	bench_sql -c "CREATE TABLE $table ($columns)" || exit 1
	for part in $(seq 0 $((parts - 1))); do
		bench_sql -c "INSERT INTO $table SELECT $expressions
			FROM generate_series($((rows * part / parts + 1)), $((rows * (part + 1) / parts))) AS i $join" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || exit 1
	done
	bench_settle "$table"
}

bench_python()
{
	local from=()

	[ -z "${BENCH_WHEELS-}" ] || from=(--no-index --find-links "$BENCH_WHEELS")
	python3 -m pip install -q --no-deps --no-compile --only-binary=:all: --root-user-action=ignore \
		--disable-pip-version-check "${from[@]}" --target "$work/python" "$@" >"$work/pip.log" 2>&1 ||
		{ cat "$work/pip.log" >&2; bench_die "pip cannot install $*"; }
	export PYTHONPATH=$work/python
}

bench_ready()
{
	[ -n "${BENCH_LOCK-}" ] || return 0
	exec 7>"$BENCH_LOCK"
	interruptible flock 7
}

# With arguments, only what contains one of them is timed
bench_wanted()
{
	local pattern

	[ ${#bench_names[@]} -gt 0 ] || return 0
	for pattern in "${bench_names[@]}"; do
		case $1 in *"$pattern"*) return 0 ;; esac
	done
	return 1
}

bench_settings()
{
	local setting

	for setting in $1; do
		printf "SET %s = '%s';\n" "${setting%%=*}" "${setting#*=}"
	done
}

# bench_median [DECIMALS]: of the numbers read, one a line; -1 if there are none
bench_median()
{
	sort -n | awk -v format="%.${1:-0}f" '{v[NR] = $1} END {if (NR) printf format, v[int((NR + 1) / 2)]; else printf "-1"}'
}

bench_time()
{
	local settings=$1 sql=$2

	{
		bench_settings "$settings"
		for _ in $(seq "$runs"); do
			echo "EXPLAIN (ANALYZE, VERBOSE, TIMING OFF) $sql;"
		done
	} | bench_sql | tee -a "$work/plans.log" | sed -n 's/^Execution Time: \(.*\) ms/\1/p' | bench_median
}

bench_copy_time()
{
	local settings=$1 sql=$2

	{
		bench_settings "$settings"
		echo '\timing on'
		for _ in $(seq "$runs"); do
			echo "COPY ($sql) TO '/dev/null';"
		done
	} | bench_sql | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | bench_median
}

bench_open_cursors()
{
	local role=$1 cursors=$2 sessions=$3 sql=$4 session i

	mkdir "$work/cursors"
	chmod 777 "$work/cursors"
	cursor_pids=()
	for session in $(seq "$sessions"); do
		{
			echo "SET gpusort.force = on; SET max_parallel_workers_per_gather = 0; BEGIN;"
			for i in $(seq $((cursors / sessions))); do
				echo "DECLARE c$i NO SCROLL CURSOR FOR $sql; MOVE 10 FROM c$i;"
			done
			echo "\\! touch $work/cursors/open.$session; while ! [ -e $work/cursors/close ]; do sleep 0.5; done"
			for i in $(seq $((cursors / sessions))); do
				echo "MOVE 5000 FROM c$i; FETCH 1 FROM c$i;"
			done
		} | bench_sql -U "$role" >"$work/cursors/rows.$session" &
		cursor_pids+=($!)
	done
	for session in $(seq "$sessions"); do
		until [ -e "$work/cursors/open.$session" ]; do
			kill -0 "${cursor_pids[session - 1]}" 2>/dev/null || bench_die "a session with cursors has ended"
			sleep 0.2
		done
	done
}

bench_close_cursors()
{
	touch "$work/cursors/close"
	wait "${cursor_pids[@]}"
	cat "$work/cursors"/rows.*
	rm -rf "$work/cursors"
	until [ "$(bench_sql -c "SELECT count(*) FROM gpusort_activity")" = 0 ]; do
		sleep 0.1
	done
}

bench_temp_mb()
{
	as_user find "$run/bench/" -path '*pgsql_tmp*' -type f -printf '%s\n' 2>/dev/null | awk '{sum += $1} END {print int(sum / 1048576)}'
}

bench_service_mb()
{
	awk '/^RssAnon/ {print int($2 / 1024)}' "/proc/$(bench_sql -c "SELECT DISTINCT service_pid FROM gpusort_devices")/status"
}

bench_min()
{
	printf '%s\n' "$@" | sort -n | head -1
}

# Without both times, which are -1 where no run came to its end, there is no ratio
bench_ratio()
{
	awk -v a="$1" -v b="$2" 'BEGIN {if (a >= 0 && b > 0) printf "%.2f", a / b; else printf "-"}'
}
