#!/bin/bash
# Shows what gpusort does, on real data and a private server.
#
# Builds the extension as a user would and sorts file paths, arrays and an
# index with PostgreSQL alone and with gpusort: times, plans, and a check that
# the results are the same.  With a GPU the sorts run there, without one on the
# host device.  Touches nothing of the system's PostgreSQL.  What stays is the build, in build/demo,
# and packages that were missing; the last lines say how to remove them.
#
# Environment:
#	DEMO_ROWS=2000000		how many paths; without a GPU 500000
#	DEMO_FILE=file			sort the lines of this file instead
#	PG_CONFIG, CUDA, CUDA_ARCH	as for the Makefile
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/test/lib/prerequisites.sh"
. "$root/test/lib/server.sh"
. "$root/test/lib/paths.sh"

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

case ${DEMO_ROWS-1} in
	''|*[!0-9]*|0) die "DEMO_ROWS must be a number of rows" ;;
esac

# ---- set-up ----

# Is there a GPU that this machine could use?
gpu_arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
	tr -d '. ' | grep -xE '[0-9]+' | sort -u | tr '\n' ' ')

wanted_locales=en_US
check_prerequisites
make_work_dir

# Without a GPU there is nothing to compile CUDA code for
flags=(CUDA="${CUDA:-$([ -n "$gpu_arch" ] && echo auto || echo no)}")
[ -z "${CUDA_ARCH:-$gpu_arch}" ] || flags+=(CUDA_ARCH="${CUDA_ARCH:-${gpu_arch% }}")

title "Building gpusort for $("$PG_CONFIG" --version), ${flags[*]} (the first time takes a minute or more)"
mkdir -p "$build"
make_private_install || exit 1
build_and_install()
{
	make -C "$build" -f "$root/Makefile" PG_CONFIG="$PG_CONFIG" -j"$(nproc)" "${flags[@]}" &&
		make -C "$build" -f "$root/Makefile" PG_CONFIG="$PG_CONFIG" "${flags[@]}" \
			install DESTDIR="$work/install"
}
if ! interruptible build_and_install >"$work/build.log" 2>&1; then
	tail -30 "$work/build.log" >&2
	die "the build failed"
fi
chmod -R a+rX "$work/install"
echo "installed into a private copy of the server"

rows=${DEMO_ROWS:-$([ -n "$gpu_arch" ] && echo 2000000 || echo 500000)}
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
		"maintenance_work_mem = 1GB" \
		"max_worker_processes = 16" \
		"max_parallel_workers_per_gather = $workers" \
		"max_parallel_workers = $workers" \
		"max_parallel_maintenance_workers = $workers" \
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
	start_demo_server cuda
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
n_arrays=$(((rows + 4) / 5))
query -c "CREATE TABLE arrays AS
		SELECT i AS id, (SELECT array_agg(random()::float4) FROM generate_series(1, 20) WHERE i > 0) AS a
		FROM generate_series(1, $n_arrays) AS i" || exit 1
interruptible query -c "VACUUM (ANALYZE) paths" -c "VACUUM (ANALYZE) arrays" \
	-c "CREATE EXTENSION amcheck" || exit 1
echo "and $n_arrays arrays of 20 random float4"

title "Machine"
echo "CPU: $(nproc) x $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)," \
	"$(awk '/^MemTotal/ { printf "%.0f GB", $2 / 1048576 }' /proc/meminfo)"
if [ $device = cuda ]; then
	nvidia-smi --query-gpu=name,memory.total --format=csv,noheader | sed 's/^/GPU: /'
else
	echo "GPU: none that gpusort can use. Its host device sorts on this CPU, through the same"
	echo "     service. The times below do not show what a GPU gains."
fi

# ---- times ----

by_bytes='SELECT id, p FROM paths ORDER BY p COLLATE "C"'
by_language='SELECT id, p FROM paths ORDER BY p COLLATE "en_US.utf8"'
index='CREATE INDEX paths_p ON paths (p COLLATE "en_US.utf8")'
# PostgreSQL sorts arrays by a function from version 18 on
if [ "$(pg_config_major "$PG_CONFIG")" -ge 18 ]; then
	stock_function='array_sort(a)'
	stock_arrays='SELECT id, array_sort(a) FROM arrays'
else
	stock_function='array_agg(x)'
	stock_arrays='SELECT id, (SELECT array_agg(x ORDER BY x) FROM unnest(a) AS x) FROM arrays'
fi
gpusort_arrays='SELECT id, gpu_sort_array(a) FROM arrays'

stock="SET gpusort.enabled = off;"
serial="$stock SET max_parallel_workers_per_gather = 0; SET max_parallel_maintenance_workers = 0;"
parallel="$stock SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;"
gpusort="SET gpusort.enabled = on;"

uses()
{
	query -c "$gpusort" -c "EXPLAIN $2" | grep -q "$1"
}

# What a user gets is what the planner chooses
if ! uses GpuSort "$by_bytes" || ! uses GpuSort "$by_language" ||
	! uses GpuArraySort "$gpusort_arrays"; then
	gpusort="$gpusort SET gpusort.force = on;"
	forced=", forced (gpusort.force = on): of so few rows the planner would leave sorts to PostgreSQL"
fi
uses GpuSort "$by_bytes" && uses GpuSort "$by_language" && uses GpuArraySort "$gpusort_arrays" ||
	die "PostgreSQL did not choose gpusort's plans"

# One run of a statement, in milliseconds; the rows of a query stay in the server
milliseconds()
{
	local settings=$1 statement=$2

	case $statement in
		SELECT*)
			query -c "$settings" -c "EXPLAIN (ANALYZE, TIMING OFF) $statement" |
				sed -n 's/^Execution Time: \([0-9]*\).*/\1/p'
			;;
		*)
			query -c "DROP INDEX IF EXISTS paths_p" 2>/dev/null
			query -c "$settings" -c '\timing on' -c "$statement" | sed -n 's/^Time: \([0-9]*\).*/\1/p'
			;;
	esac
}

# Sets best to the better of the runs with each of the settings
best_of()
{
	local statement=$1 settings ms
	shift

	best=
	for settings; do
		interruptible milliseconds "$settings" "$statement" >"$work/ms"
		ms=$(cat "$work/ms")
		[ -n "$ms" ] || die "failed: $statement"
		[ -n "$best" ] && [ "$best" -le "$ms" ] || best=$ms
	done
	[ "$best" -gt 0 ] || best=1
}

# A line for PostgreSQL and one for gpusort, each as soon as it is known
race()
{
	local name=$1 statement=$2 gpusort_statement=${3:-$2} stock_best width=32 length

	printf '%-35s PostgreSQL ' "$name"
	best_of "$statement" "$serial" "$parallel"
	stock_best=$best
	printf '%6d ms %s\n%-35s gpusort    ' "$stock_best" "$(printf '%*s' $width '' | tr ' ' '#')" ''
	best_of "$gpusort_statement" "$gpusort" "$gpusort"
	length=$(((best * width + stock_best - 1) / stock_best))
	[ $length -le $width ] || length=$width
	printf '%6d ms %s %s times as fast\n' "$best" "$(printf '%*s' $length '' | tr ' ' '#')" \
		"$(awk -v a="$stock_best" -v b="$best" 'BEGIN { printf "%.1f", a / b }')"
}

title "Times on the $device device${forced-}: the better of two runs, PostgreSQL's without and with $workers workers"
race 'ORDER BY p COLLATE "C"' "$by_bytes"
race 'ORDER BY p COLLATE "en_US.utf8"' "$by_language"
race 'CREATE INDEX (COLLATE "en_US.utf8")' "$index"
race "$stock_function, gpu_sort_array(a)" "$stock_arrays" "$gpusort_arrays"

# ---- plans ----

title "The plan without gpusort, and with it; and where the time goes (EXPLAIN ANALYZE)"
query -c "$parallel" -c "EXPLAIN (COSTS OFF) $by_bytes" | sed 's/^/    /'
echo
query -c "$gpusort" -c "EXPLAIN (ANALYZE, COSTS OFF) $by_bytes" | sed 's/^/    /'

# ---- proof ----

# The sum of a query's rows, in the order in which they come
sum()
{
	(set -o pipefail && query -c "$1" -c "COPY ($2) TO STDOUT" | md5sum | cut -d' ' -f1) || echo "failed: $1"
}

# Are the rows the same, one by one?
same()
{
	local name=$1 statement=$2 gpusort_statement=${3:-$2}

	interruptible sum "$parallel" "$statement" >"$work/stock.sum"
	interruptible sum "$gpusort" "$gpusort_statement" >"$work/gpusort.sum"
	cmp -s "$work/stock.sum" "$work/gpusort.sum" || die "the rows differ: $name"
	printf '%-35s the same rows in the same order, md5 %s\n' "$name" "$(cat "$work/gpusort.sum")"
}

title "The results are PostgreSQL's"
same 'ORDER BY p COLLATE "C"' "$by_bytes"
same 'ORDER BY p COLLATE "en_US.utf8"' "$by_language"
same 'gpu_sort_array(a)' "$stock_arrays ORDER BY id" "$gpusort_arrays ORDER BY id"
query -c "SELECT bt_index_check('paths_p', true)" >/dev/null || die "the index is wrong"
printf '%-35s bt_index_check() finds every row, all in order\n' 'CREATE INDEX'

# ---- little device memory ----

small=16MB
title "With $small of device memory: what does not fit goes to temporary files"
query -c "ALTER SYSTEM SET gpusort.device_memory = '$small'" -c "SELECT pg_reload_conf()" >/dev/null || exit 1
for _ in $(seq 100); do
	[ "$(query -c "SELECT DISTINCT memory_limit >> 20 FROM gpusort_devices")MB" != $small ] || break
	sleep 0.1
done
query -c "$gpusort" -c "EXPLAIN (ANALYZE, COSTS OFF) $by_bytes" >"$work/plan" || exit 1
grep -E '^Custom Scan|Rows Sorted|Temporary Files|Execution Time' "$work/plan" | sed 's/^/    /'
grep -q 'Temporary Files' "$work/plan" || echo "    (these rows fit)"
same 'ORDER BY p COLLATE "C"' "$by_bytes"

echo
query -c "SELECT format('In all gpusort sorted about %s million rows in %s sorts and built %s indexes; PostgreSQL had to complete %s of these sorts.',
	round(rows / 1e6, 1), sorts, index_builds, fallbacks) FROM gpusort_stats"
stop_server demo
echo "The server and its data are removed. What stays, and what removes it:"
echo "    rm -r $build"
[ -z "$installed" ] || echo "    apt-get remove $installed"
