#!/bin/bash
# Shows what gpusort does, on real data and a private server.
#
# Builds the extension as a user would, sorts file paths with stock PostgreSQL
# and with gpusort, and compares plans, times, memory and every row.  With a
# GPU the sorts run there, without one on the host device.  Touches nothing of
# the system's PostgreSQL and leaves nothing behind.
#
# Environment:
#	DEMO_ROWS=1000000		how many paths
#	DEMO_FILE=file			sort the lines of this file instead
#	PG_CONFIG, CUDA, CUDA_ARCH	as for the Makefile
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/test/lib/prerequisites.sh"
. "$root/test/lib/server.sh"
. "$root/test/lib/paths.sh"

rows=${DEMO_ROWS:-1000000}
build=$root/build/demo
MAKEFLAGS=$(echo "${MAKEFLAGS-}" | sed -E 's/(^| )-j[0-9]*//g; s/ ?--jobserver[^ ]*//g')
export MAKEFLAGS

die()
{
	echo "demo: $*" >&2
	exit 1
}

title()
{
	printf '\n== %s\n' "$*"
}

case $rows in
	''|*[!0-9]*|0) die "DEMO_ROWS must be a number of rows" ;;
esac

# ---- set-up ----

# Is there a GPU that this machine could use?
gpu_arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
	tr -d '. ' | grep -xE '[0-9]+' | sort -u | tr '\n' ' ')

check_prerequisites
make_work_dir

# Without a GPU there is nothing to compile CUDA code for
flags=(CUDA="${CUDA:-$([ -n "$gpu_arch" ] && echo auto || echo no)}")
[ -z "${CUDA_ARCH:-$gpu_arch}" ] || flags+=(CUDA_ARCH="${CUDA_ARCH:-${gpu_arch% }}")

title "Building gpusort for $("$PG_CONFIG" --version) (${flags[*]})"
mkdir -p "$build"
make_private_install || exit 1
build_and_install()
{
	make -C "$build" -f "$root/Makefile" PG_CONFIG="$PG_CONFIG" -j"$(nproc)" with_llvm=no "${flags[@]}" &&
		make -C "$build" -f "$root/Makefile" PG_CONFIG="$PG_CONFIG" with_llvm=no "${flags[@]}" \
			install DESTDIR="$work/install"
}
if ! interruptible build_and_install >"$work/build.log" 2>&1; then
	tail -30 "$work/build.log" >&2
	die "the build failed"
fi
chmod -R a+rX "$work/install"
echo "installed into a private copy of the server"

title "Data"
interruptible collect_paths "$rows" "$work/paths" || die "no file paths found"
chmod a+r "$work/paths"
echo "$(wc -l <"$work/paths") file paths in random order, $(du -h --apparent-size "$work/paths" | cut -f1)," \
	"from $(cat "$work/paths.source")"

# The GPU if there is one that works, else the host device
workers=$(($(nproc) < 8 ? $(nproc) : 8))
start_demo_server()
{
	start_server demo \
		"shared_preload_libraries = 'gpusort'" \
		"gpusort.device = $1" \
		"shared_buffers = 512MB" \
		"max_wal_size = 8GB" \
		"work_mem = 1GB" \
		"max_parallel_workers_per_gather = $workers" \
		"max_parallel_workers = $workers" \
		"jit = off" || exit 1
}

query()
{
	as_user "$bindir/psql" -XAtq -v ON_ERROR_STOP=1 "$@"
}

have_cuda_device()
{
	query -c "TABLE gpusort_devices" | grep -qi cuda
}

device=host
if [ -n "$gpu_arch" ]; then
	start_demo_server auto
	query -c "CREATE EXTENSION gpusort" || exit 1
	# the service opens its device soon after the server has started
	for _ in $(seq 50); do
		have_cuda_device && break
		sleep 0.1
	done
	if have_cuda_device; then
		device=cuda
	else
		echo "(there is a GPU, but gpusort could not use it; see its log:)"
		grep gpusort "$run/demo.log"
		stop_server demo
	fi
fi
if [ $device = host ]; then
	start_demo_server host
	query -c "CREATE EXTENSION IF NOT EXISTS gpusort" || exit 1
fi

query -c "CREATE TABLE paths (id serial, p text)" || exit 1
as_user cat "$work/paths" |
	query -c "COPY paths (p) FROM STDIN (FORMAT csv, DELIMITER E'\\x01', QUOTE E'\\x02')" || exit 1
interruptible query -c "VACUUM (ANALYZE) paths" || exit 1

# ---- the machine ----

title "Machine"
echo "CPU:    $(nproc) x $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
echo "memory: $(awk '/^MemTotal/ { printf "%.0f GB", $2 / 1048576 }' /proc/meminfo)"
if [ $device = cuda ]; then
	nvidia-smi --query-gpu=name,memory.total --format=csv,noheader | sed 's/^/GPU:    /'
else
	echo "GPU:    none that gpusort can use: the sorts run on the host device, which orders rows"
	echo "        on this CPU by the same way through the service. The times show the overhead of"
	echo "        that way, not what a GPU gains."
fi
echo
as_user "$bindir/psql" -Xq -P pager=off -c "SELECT * FROM gpusort_devices"

# ---- plans ----

select="SELECT id, p FROM paths ORDER BY p COLLATE \"C\""
stock="SET gpusort.enabled = off;"
serial="$stock SET max_parallel_workers_per_gather = 0;"
parallel="$stock SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;"
gpusort="SET gpusort.enabled = on;"
if [ $device = host ] || ! query -c "$gpusort" -c "EXPLAIN $select" | grep -q GpuSort; then
	gpusort="$gpusort SET gpusort.force = on;"
fi

title "Plans of: $select"
for how in serial parallel gpusort; do
	echo "-- ${!how}"
	query -c "${!how}" -c "EXPLAIN (COSTS OFF) $select" | sed 's/^/    /'
	echo
done
query -c "$gpusort" -c "EXPLAIN $select" | grep -q GpuSort ||
	die "PostgreSQL did not choose gpusort's plan"

# ---- times and memory ----

# Private memory, in kB, of the processes that now run a query, and of the service
private_memory()
{
	local pid kb queries=0 service=0

	for pid in $(cat /proc/"$postmaster"/task/*/children); do
		kb=$(sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status")
		case $(tr '\0' ' ' <"/proc/$pid/cmdline") in
			postgres:\ postgres\ *EXPLAIN*|postgres:\ parallel\ worker*)
				queries=$((queries + ${kb:-0})) ;;
			postgres:\ gpusort*)
				service=${kb:-0} ;;
		esac
	done
	echo "$queries $service"
} 2>/dev/null							# processes end while we look

# The best of three: sets best_ms, peak_kb and service_kb, and leaves the plan
# in $work/plan
measure()
{
	local ms queries service

	best_ms=
	peak_kb=0
	service_kb=0
	for _ in 1 2 3; do
		query -c "$1" -c "EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) $select" >"$work/plan" &
		child=$!
		while kill -0 $child 2>/dev/null; do
			read -r queries service < <(private_memory)
			[ "$queries" -le "$peak_kb" ] || peak_kb=$queries
			[ "$service" -le "$service_kb" ] || service_kb=$service
			sleep 0.02
		done
		wait $child || die "the query failed"
		child=
		ms=$(sed -n 's/^Execution Time: \([0-9]*\).*/\1/p' "$work/plan")
		[ -n "$best_ms" ] && [ "$best_ms" -le "$ms" ] || best_ms=$ms
	done
}

postmaster=$(as_user head -1 "$run/demo/postmaster.pid")
title "Times: best of 3, work_mem 1 GB"
printf '%-38s %10s %18s %14s\n' "" "" "private memory at" "the peak of"
printf '%-38s %10s %18s %14s\n' "" "time" "its processes" "the service"
stock_best=
for how in serial parallel gpusort; do
	measure "${!how}"
	case $how in
		serial) name="PostgreSQL, one process" ;;
		parallel) name="PostgreSQL, $workers parallel workers" ;;
		gpusort) name="gpusort, $device device" ;;
	esac
	if [ $how = gpusort ]; then
		printf '%-38s %7d ms %15d MB %11d MB\n' "$name" "$best_ms" $((peak_kb / 1024)) $((service_kb / 1024))
		awk -v a="$stock_best" -v b="$best_ms" 'BEGIN {
			printf "\ngpusort takes %.2f times the time of PostgreSQL at its best: it is %.1f times as fast\n",
				b / a, a / b }'
	else
		printf '%-38s %7d ms %15d MB %14s\n' "$name" "$best_ms" $((peak_kb / 1024)) -
		[ -n "$stock_best" ] && [ "$stock_best" -le "$best_ms" ] || stock_best=$best_ms
	fi
done
echo
echo "The rows lie with the service while they are sorted, in its memory or the GPU's. Besides,"
echo "gpusort's staging memory, shared by all sorts of the server, is $(query -c "SHOW gpusort.staging_memory")."
echo "Where the time went (EXPLAIN ANALYZE):"
sed 's/^/    /' "$work/plan"

# ---- proof ----

# Compares a query's rows with and without gpusort, byte by byte, as they come
compare()
{
	local query_text=$1 stock_sum gpusort_sum lines

	query -c "$gpusort" -c "EXPLAIN $query_text" | grep -q GpuSort ||
		die "PostgreSQL did not choose gpusort's plan"
	mkfifo "$work/stock.pipe" "$work/gpusort.pipe"
	query -c "$stock" -c "COPY ($query_text) TO STDOUT" |
		tee "$work/stock.pipe" | md5sum >"$work/stock.sum" &
	query -c "$gpusort" -c "COPY ($query_text) TO STDOUT" |
		tee "$work/gpusort.pipe" | tee >(wc -l >"$work/lines") | md5sum >"$work/gpusort.sum" &
	interruptible cmp "$work/stock.pipe" "$work/gpusort.pipe" || die "the orders differ"
	wait
	lines=$(cat "$work/lines")
	stock_sum=$(cut -d' ' -f1 "$work/stock.sum")
	gpusort_sum=$(cut -d' ' -f1 "$work/gpusort.sum")
	[ "$stock_sum" = "$gpusort_sum" ] && [ "$lines" -eq "$(wc -l <"$work/paths")" ] ||
		die "the orders differ"
	rm "$work/stock.pipe" "$work/gpusort.pipe"
	echo "$query_text"
	echo "    $lines rows equal one by one; md5 of PostgreSQL's rows $stock_sum,"
	echo "                                  of gpusort's            $gpusort_sum"
}

title "The order is PostgreSQL's"
compare 'SELECT p FROM paths ORDER BY p COLLATE "C"'
compare 'SELECT id, p FROM paths ORDER BY p COLLATE "C" DESC, id'

title "Counters"
as_user "$bindir/psql" -Xqx -P pager=off -c "SELECT * FROM gpusort_stats"

stop_server demo
echo "Done; server and data are removed."
