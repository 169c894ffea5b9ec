# The suites of test/run.sh.  Each job prints what it found and adds to passed
# and failed.  What they need from run.sh: root, build, log, part, compilers, device.

suite_limit_s=${TEST_LIMIT:-1200}	# for one run of pg_regress, unit program or TAP file

# Add to the totals, and say of what, if that failed
count()
{
	passed=$((passed + $2))
	failed=$((failed + $3))
	[ "$3" -eq 0 ] || echo "$1: $2 passed, $3 failed"
}

# Run a job of jobs.sh, with the names of its tests
run_job()
{
	local job=$1
	shift

	case $job in
		build/production) suite_build ;;
		build/dist) suite_dist ;;
		build/arm64) suite_arm64 ;;
		build/installcheck) suite_installcheck ;;
		lint/*) suite_lint ;;
		unit/*) suite_unit "${job#*/}" "$@" ;;
		regress) suite_regress "$@" ;;
		isolation) suite_isolation "$@" ;;
		tap/*) suite_tap "${job#*/}" ;;
		fuzz/*) suite_fuzz "${job#*/}" ;;
		*) echo "no such test"; count "$job" 0 1 ;;
	esac
}

# Tests passed and failed, as a program reported them, into ok and bad:
# "N passed, N failed", or TAP, or nothing but its exit status
read_counts()
{
	local file=$1 status=$2 line

	line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$file" | tail -1)
	if [ -n "$line" ]; then
		ok=${line%% *}
		bad=$(echo "$line" | sed -E 's/^[0-9]+ passed, ([0-9]+) failed.*/\1/')
	else
		ok=$(grep -cE '^ok\b' "$file")
		bad=$(grep -cE '^not ok\b' "$file")
		[ $((ok + bad)) -gt 0 ] || grep -qiE '^(1\.\.0|skipped)' "$file" || ok=$((status == 0))
	fi
	[ "$status" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
}

# ---- building ----

make_gpusort()
{
	local dir=$1
	shift

	mkdir -p "$dir"
	interruptible make -C "$dir" -f "$root/Makefile" PG_CONFIG="$PG_CONFIG" "$@"
}

# Print a failed build's messages without the commands
show_build_errors()
{
	grep -vE '^(make|rm|ar|mkdir|[^ ]*(gcc|nvcc|clang)[^ ]*) ' "$1" | tail -60
}

# Of this machine's GPU.  One will do for the tests: all of them take many minutes
gpu_architecture()
{
	nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
		tr -d '. ' | grep -xE '[0-9]+' | sort -un | head -1
}

say_built()
{
	echo "building, now at $(tail -1 "$log/build.log" | grep -oE '[^ /]+\.cu?$' || echo linking)"
}

# What the tests run: fault points, the papers' algorithms, all warnings.  Where no GPU
# is, no test runs the CUDA device, and only a run of all tests compiles it.
build_for_test()
{
	local arch cuda=${CUDA:-auto} status

	arch=$(gpu_architecture)
	[ -n "$arch" ] || [ $everything = yes ] || [ "$cuda" != auto ] || cuda=no
	build_flags=(FAULTS=1 PAPERS=yes WERROR=1 CUDA="$cuda" CUDA_ARCH="${CUDA_ARCH:-${arch:-90}}")

	echo "== building for $("$PG_CONFIG" --version), ${build_flags[*]}"
	begin_progress say_built
	make_gpusort "$build" -j"$compilers" "${build_flags[@]}" >"$log/build.log" 2>&1
	status=$?
	end_progress
	if [ $status -ne 0 ]; then
		show_build_errors "$log/build.log"
		count "test build" 0 1
		return 1
	fi
	with_cuda=no
	if grep -q GS_WITH_CUDA "$build/gpusort.flags"; then
		with_cuda=yes
		nvcc=$(sed -n 's/.* | \([^ ]*\) .*/\1/p' "$build/gpusort.flags")
	fi
	echo "CUDA device compiled: $with_cuda"
}

# Libraries that tests load; PostgreSQL's makefiles do not build them anew for another server
install_test_modules()
{
	rm -rf "$build/modules"
	mkdir "$build/modules"
	make -C "$build/modules" -f "$root/test/modules/Makefile" VPATH="$root/test/modules" \
		PG_CONFIG="$PG_CONFIG" with_llvm=no COPT=-Werror DESTDIR="$work/install" install
}

install_for_test()
{
	if ! make_private_install ||
		! make_gpusort "$build" install DESTDIR="$work/install" "${build_flags[@]}" \
			>"$log/install.log" 2>&1; then
		tail -20 "$log/install.log"
		count "test installation" 0 1
		return 1
	fi
	if ! install_test_modules >>"$log/install.log" 2>&1; then
		tail -20 "$log/install.log"
		count "test libraries" 0 1
		return 1
	fi
	chmod -R a+rX "$work/install"

	cp "$root/test/gpusort.conf" "$work/gpusort.conf"
	echo "gpusort.device = $device" >>"$work/gpusort.conf"
	echo "gpusort.devices = '${GPUSORT_TEST_DEVICES-0}'" >>"$work/gpusort.conf"
	chmod a+r "$work/gpusort.conf"

	# where the TAP tests run
	mkdir -p "$run/tap"
	cp -r "$root/test/t" "$root/README.md" "$root/docs" "$root/packaging" "$run/tap/"
	cp "$root/test/fuzz/FuzzRandom.pm" "$run/tap/t/"
	if ! (cd "$build" && "$root/packaging/docker/extension_tree.sh" "$run/tap/image" PG_CONFIG="$PG_CONFIG" "${build_flags[@]}") \
		>>"$log/install.log" 2>&1; then
		tail -20 "$log/install.log"
		count "files of the extension image" 0 1
		return 1
	fi
	[ -z "$server_user" ] || chown -R "$server_user:" "$run/tap"
}

# The production build without CUDA lacks the settings of test builds; its installation, and that nothing is left of that
suite_build()
{
	local dir=$root/build/production

	if make_gpusort "$dir" -j"$compilers" CUDA=no WERROR=1 >"$log/production.log" 2>&1 &&
		! grep -qE 'gpusort\.(engine|fault)' "$dir/gpusort.so" &&
		make_gpusort "$dir" install CUDA=no WERROR=1 DESTDIR="$work/production" \
			>>"$log/production.log" 2>&1 && [ -n "$(find "$work/production" -name 'gpusort*')" ] &&
		make_gpusort "$dir" uninstall CUDA=no WERROR=1 DESTDIR="$work/production" \
			>>"$log/production.log" 2>&1 && [ -z "$(find "$work/production" -name '*gpusort*' ! -type d)" ]; then
		count build 4 0
	else
		show_build_errors "$log/production.log"
		count build 1 1
	fi
}

# The archive of "make dist" builds and installs, without optimization to save time
suite_dist()
{
	local version dir=$work/dist

	if [ ! -e "$root/.git" ]; then
		echo "no git repository to make an archive of"
		count build 1 0
		return
	fi
	version=$(sed -nE "s/^default_version *= *'(.*)'/\1/p" "$root/gpusort.control")
	mkdir -p "$dir"
	if "$root/packaging/dist.sh" >"$log/dist.log" 2>&1 &&
		tar -C "$dir" -xzf "$root/build/dist/gpusort-$version.tar.gz" >>"$log/dist.log" 2>&1 &&
		interruptible make -C "$dir/gpusort-$version" install PG_CONFIG="$PG_CONFIG" -j"$compilers" CUDA=no COPT=-O0 \
			DESTDIR="$dir/install" >>"$log/dist.log" 2>&1 &&
		[ -e "$dir/install$("$PG_CONFIG" --pkglibdir)/gpusort.so" ] &&
		[ -e "$dir/install$("$PG_CONFIG" --sharedir)/extension/gpusort.control" ] &&
		[ -e "$dir/gpusort-$version/docs/settings.md" ]; then
		count build 1 0
	else
		show_build_errors "$log/dist.log"
		count build 0 1
	fi
}

# What cannot be compiled, or run, for arm64 here.  The server's headers are those of this machine
arm64_missing()
{
	if [ "$(uname -m)" = aarch64 ]; then
		echo "this machine is arm64, and the other tests are for it"
	elif [ -n "$(missing_arm64_packages)" ]; then
		echo "on Debian apt-get install" $(missing_arm64_packages)
	fi
}

# The library for arm64, linked, without optimization to save time.  Of the CUDA device what runs on the CPU:
# kernels are the same for every processor.  So are the toolkit's headers
suite_arm64()
{
	local missing dir=$root/build/arm64 toolkit include cross=(CC=aarch64-linux-gnu-gcc WERROR=1 COPT=-O0)

	missing=$(arm64_missing)
	if [ -n "$missing" ]; then
		echo "build/arm64 is skipped: $missing"
		return
	fi
	if make_gpusort "$dir" -j"$compilers" "${cross[@]}" CUDA=no >"$log/arm64.log" 2>&1 &&
		aarch64-linux-gnu-readelf -h "$dir/gpusort.so" | grep -q 'Machine:.*AArch64'; then
		count build/arm64 1 0
	else
		show_build_errors "$log/arm64.log"
		count build/arm64 0 1
	fi
	[ $with_cuda = yes ] || return
	toolkit=$("$nvcc" --dryrun -c -o /dev/null "$root/Makefile" -x cu 2>&1 | sed -n 's/^#\$ TOP=//p')
	include=$(dirname "$(find -L "$toolkit" -name cuda_runtime.h | head -1)")
	if NVCC_CCBIN=aarch64-linux-gnu-g++ make_gpusort "$dir-cuda" -j"$compilers" "${cross[@]}" CUDA=yes NVCC="$nvcc" \
		NVCCFLAGS="-O0 -std=c++17 -I$root/src -I$root/cuda -isystem $include/cccl -isystem $include \
			-gencode arch=compute_75,code=compute_75 -Xcompiler -fPIC,-Wall,-Wextra -Werror all-warnings" \
		src/service/service_devices.o $(cd "$root" && ls cuda/device/*.cu | sed 's/cu$/o/') >"$log/arm64-cuda.log" 2>&1; then
		count build/arm64 1 0
	else
		show_build_errors "$log/arm64-cuda.log"
		count build/arm64 0 1
	fi
}

# "make installcheck" on a server that preloads gpusort, and on one that does not
suite_installcheck()
{
	local name conf=("shared_preload_libraries = gpusort") dir=$work/installcheck result

	for name in installcheck_preloaded installcheck_not_preloaded; do
		start_server "$name" "${conf[@]}" || { count build 0 1; return; }
		if make_gpusort "$dir" installcheck "${build_flags[@]}" bindir="$bindir" >"$log/$name.log" 2>&1; then
			count build 1 0
		else
			cat "$log/$name.log" "$dir/build/installcheck/regression.diffs"
			count build 0 1
		fi
		# pg_regress accepts either answer
		result=$dir/build/installcheck/results/installcheck.out
		if [ "$(grep -c '^The server does not preload gpusort' "$result")" -eq $((1 - ${#conf[@]})) ]; then
			count build 1 0
		else
			count build 0 1
		fi
		stop_server "$name"
		conf=()
	done
}

# ---- suites without a server ----

suite_lint()
{
	interruptible "$root/test/lib/lint.sh" "$build" >"$log/lint.log" 2>&1
	read_counts "$log/lint.log" $?
	cat "$log/lint.log"
	count lint "$ok" "$bad"
}

# Programs of the unit tests, built plain, sanitized, or for arm64 to run under an emulator
suite_unit()
{
	# SANITIZE of the environment or of make's command line is for the sanitized build alone
	local variant=$1 dir=$build/unit program engine options=(SANITIZE=) programs=() emulator=() missing only
	shift

	for program; do
		case $with_cuda/$program in
			*/engines) programs+=(test_device) ;;
			no/test_streaming) ;;
			*) programs+=("$program") ;;
		esac
	done
	[ ${#programs[@]} -gt 0 ] || return

	if [ "$variant" = sanitized ]; then
		dir=$build/unit-${SANITIZE/,/-}
		options=(SANITIZE="$SANITIZE")
	elif [ "$variant" = arm64 ]; then
		missing=$(arm64_missing)
		if [ -n "$missing" ]; then
			echo "unit/arm64 is skipped: $missing"
			return
		fi
		dir=$build/unit-arm64
		options+=(CC=aarch64-linux-gnu-gcc)
		emulator=(qemu-aarch64 -L /usr/aarch64-linux-gnu)
	elif [ $with_cuda = yes ]; then
		options+=(CUDA_ARCHIVE="$build/cuda/libgpusort_cuda.a" NVCC="$nvcc")
	fi
	mkdir -p "$dir"
	if ! interruptible make -f "$root/test/unit/Makefile" -j"$compilers" -C "$dir" "${options[@]}" \
		"${programs[@]}" >"$log/unit-build-$variant.log" 2>&1; then
		show_build_errors "$log/unit-build-$variant.log"
		count "unit/$variant" 0 1
		return
	fi

	for program; do
		case $variant/$program in
			plain/engines)
				[ $with_cuda = no ] || for engine in radix2013 merge2012 radix2011; do
					run_unit "$dir/test_device" cuda --engine $engine
				done
				;;
			plain/test_streaming)
				[ $with_cuda = no ] || run_unit "$dir/test_streaming"
				;;
			# an emulator takes four to nine times as long: a minute for all of arm64
			arm64/test_device)
				for only in "keys of tuples" "interleaved" "chunks: cancel"; do
					run_unit "$dir/test_device" host --only "$only"
				done
				;;
			arm64/test_spill)
				run_unit "$dir/test_spill" --cases 0
				;;
			*/test_device)
				run_unit "$dir/test_device" host
				[ "$variant" != plain ] || [ $with_cuda = no ] || run_unit "$dir/test_device" cuda
				;;
			*)
				run_unit "$dir/$program"
				;;
		esac
	done
}

run_unit()
{
	local name start=$SECONDS status output

	name="$(basename "$(dirname "$1")")/$(basename "$1")${2:+ ${*:2}}"
	output=$log/$(echo "$name" | tr '/ ' '--').log
	# glibc 2.36's newlocale() does not free what it makes of LOCPATH, where the system lacks locales
	LSAN_OPTIONS=suppressions="$root/test/lib/lsan_suppressions" UBSAN_OPTIONS=print_stacktrace=1 \
		interruptible timeout -k 10 $suite_limit_s "${emulator[@]}" "$@" >"$output" 2>&1
	status=$?
	read_counts "$output" $status
	count "$name" "$ok" "$bad"
	if [ "$bad" -gt 0 ]; then
		echo "not ok - $name: $ok passed, $bad failed, exit status $status"
		grep -vE '^ok\b' "$output" | tail -40
	elif [ "$ok" -eq 0 ]; then
		echo "ok - $name: skipped ($(tail -1 "$output"))"
	else
		echo "ok - $name: $ok passed ($((SECONDS - start)) s)"
	fi
}

# ---- suites with a server ----

suite_regress()
{
	run_regress regress sql "$(pgxs_root "$PG_CONFIG")/src/test/regress/pg_regress" "$@"
}

suite_isolation()
{
	run_regress isolation specs \
		"$(pgxs_root "$PG_CONFIG")/src/test/isolation/pg_isolation_regress" "$@"
}

# pg_regress and its isolation twin: inputs and answers are copied to where
# the server's user can read and write
run_regress()
{
	local suite=$1 inputs=$2 driver=$3 dir=$run/$1 out=$log/$1-$part status total
	shift 3
	local tests=("$@")

	rm -rf "${dir:?}"
	mkdir -p "$dir/$inputs" "$dir/expected"
	cp "$root/test/$inputs"/* "$dir/$inputs/"
	cp "$root"/expected/*.out "$dir/expected/" 2>/dev/null
	# a test without an answer fails, and must not end the run
	for name in "${tests[@]}"; do
		[ -e "$dir/expected/$name.out" ] || : >"$dir/expected/$name.out"
	done
	[ -z "$server_user" ] || chown -R "$server_user:" "$dir"

	if ! start_server "$suite-$part-server" "include '$work/gpusort.conf'"; then
		count "$suite" 0 ${#tests[@]}
		return
	fi
	wait_for_device "$suite-$part-server"
	cd "$dir" || exit 1
	interruptible as_user timeout -k 10 $suite_limit_s "$driver" \
		--inputdir="$dir" --outputdir="$dir" --bindir="$bindir" \
		--host="$PGHOST" --port="$PGPORT" --user="$PGUSER" --dbname="gpusort_$suite" \
		--load-extension=gpusort --max-concurrent-tests=4 "${tests[@]}" >"$out.log" 2>&1
	status=$?
	cd "$work" || exit 1
	stop_server "$suite-$part-server"

	mkdir -p "$out"
	cp -r "$dir/results" "$run/$suite-$part-server.log" "$out/" 2>/dev/null
	grep -E '\.\.\. |^(not )?ok ' "$out.log"

	# "All 3 tests passed." or "1 of 3 tests failed."; from 16 on after a "#"
	total=$(sed -nE 's/^[# ]*(All|[0-9]+ of) ([0-9]+) tests? .*/\2/p' "$out.log" | tail -1)
	bad=$(sed -nE 's/^[# ]*([0-9]+) of [0-9]+ tests? failed.*/\1/p' "$out.log" | tail -1)
	if [ -z "$total" ]; then
		tail -20 "$out.log"
		total=${#tests[@]}
		bad=$total
	elif [ "${bad:-0}" -gt 0 ]; then
		cp "$dir/regression.diffs" "$out/"
		head -150 "$dir/regression.diffs"
		echo "(results and diffs are in ${out#"$root"/})"
	elif [ $status -ne 0 ]; then
		bad=1
	fi
	count "$suite" $((total - ${bad:-0})) "${bad:-0}"
	check_server_log "$suite" "$run/$suite-$part-server.log"
}

# A crash may hide behind tests that pass
check_server_log()
{
	if grep -E 'PANIC:|TRAP:|was terminated by signal|AddressSanitizer|runtime error:' "$2"; then
		count "$1 server log" 0 1
	else
		count "$1 server log" 1 0
	fi
}

# The test of pg_upgrade: an older server, with gpusort in the same private
# installation.  Prints its folder, or nothing where there is none.
install_older_server()
{
	local major config dir older=${UPGRADE_FROM-} older_flags

	major=$(pg_config_major "$PG_CONFIG")
	for config in ${older:-$(ls -d /usr/lib/postgresql/*/bin/pg_config 2>/dev/null | sort -t/ -k5 -n)}; do
		pg_config_usable "$config" && [ "$(pg_config_major "$config")" -lt "$major" ] || continue
		dir=$root/build/older-$(pg_config_major "$config")
		older_flags=("${build_flags[@]}")
		[ $with_cuda = no ] || older_flags+=(CUDA=yes CUDA_ARCHIVE="$build/cuda/libgpusort_cuda.a")
		copy_server "$config" &&
			PG_CONFIG=$config make_gpusort "$dir" -j"$compilers" "${older_flags[@]}" >"$log/older.log" 2>&1 &&
			PG_CONFIG=$config make_gpusort "$dir" install "${older_flags[@]}" DESTDIR="$work/install" >>"$log/older.log" 2>&1 &&
			chmod -R a+rX "$work/install" || return 1
		dirname "$work/install$("$config" --bindir)"
		return
	done
	[ -z "$older" ]
}

# Installs two servers for the test of minor versions: MINOR_SERVER's and PG_CONFIG's, each with the library built for
# the other server.  Prints their folders, or nothing if there is no other server.
install_minor_servers()
{
	local dir=$root/build/minor flags=("${build_flags[@]}")

	[ -n "${MINOR_SERVER-}" ] || [ "${CI-}" != true ] ||
		local MINOR_SERVER=$("$root/test/lib/older_minor.sh" "$PG_CONFIG" "$root/build/minor-server")
	[ -n "${MINOR_SERVER-}" ] || return 0
	pg_config_usable "$MINOR_SERVER" && [ "$(pg_config_major "$MINOR_SERVER")" -eq "$(pg_config_major "$PG_CONFIG")" ] || return 1
	[ $with_cuda = no ] || flags+=(CUDA=yes CUDA_ARCHIVE="$build/cuda/libgpusort_cuda.a")
	PG_CONFIG=$MINOR_SERVER make_gpusort "$dir" -j"$compilers" "${flags[@]}" >"$log/minor.log" 2>&1 &&
		install_minor_server "$MINOR_SERVER" "$PG_CONFIG" "$build" "${build_flags[@]}" &&
		install_minor_server "$PG_CONFIG" "$MINOR_SERVER" "$dir" "${flags[@]}"
}

# Copies the first server to a folder, with the library built for the second server
install_minor_server()
{
	local server=$1 dir=$3 work=$work/minor$(pg_config_number "$1")
	local PG_CONFIG=$2
	shift 3

	copy_server "$server" &&
		make_gpusort "$dir" install "$@" DESTDIR="$work/install" pkglibdir="$("$server" --pkglibdir)" \
			datadir="$("$server" --sharedir)" >>"$log/minor.log" 2>&1 &&
		chmod -R a+rX "$work" && dirname "$work/install$("$server" --bindir)"
}

# One file of test/t.  Files that run at the same time share a directory: ports are reserved there
suite_tap()
{
	local name=$1 dir=$run/tap perl_dir older= minor= no_citus= status ok bad

	perl_dir=$(pgxs_root "$PG_CONFIG")/src/test/perl
	if [ ! -e "$perl_dir/PostgreSQL/Test/Cluster.pm" ]; then
		echo "this PostgreSQL came without its Perl modules for tests ($perl_dir)"
		count "$name" 0 1
		return
	fi

	mkdir -p "$log/tap"
	if [ "$name" = compat_pg_upgrade ] && ! older=$(install_older_server); then
		echo "gpusort could not be built for the older server${UPGRADE_FROM:+ of $UPGRADE_FROM}"
		[ ! -e "$log/older.log" ] || show_build_errors "$log/older.log"
		count "$name" 0 1
		return
	fi
	if [ "$name" = compat_minor_version ] && ! minor=$(install_minor_servers); then
		echo "gpusort could not be built for another minor version${MINOR_SERVER:+, of $MINOR_SERVER}"
		[ ! -e "$log/minor.log" ] || show_build_errors "$log/minor.log"
		count "$name" 0 1
		return
	fi
	if [ "$name" = compat_citus ]; then
		no_citus=$(citus_missing "$PG_CONFIG")
		if [ -z "$no_citus" ] &&
			! install_citus "$PG_CONFIG" "$build/citus-$(pg_config_major "$PG_CONFIG")" >"$log/citus.log" 2>&1; then
			echo "Citus could not be built${CITUS_SRC:+ of $CITUS_SRC}"
			show_build_errors "$log/citus.log"
			count "$name" 0 1
			return
		fi
	fi
	cd "$dir" || exit 1
	interruptible as_user env PATH="$bindir:$PATH" PERL5LIB="$dir/t:${PERL5LIB-}" \
		TESTDIR="$dir" TESTDATADIR="$dir/tmp_check" TESTLOGDIR="$dir/tmp_check/log" \
		TEMP_CONFIG="$work/gpusort.conf" GPUSORT_TEST_DEVICE="$device" GPUSORT_OLDER_SERVER="$older" \
		GPUSORT_MINOR_SERVERS="$minor" GPUSORT_NO_CITUS="$no_citus" \
		PG_REGRESS="$(pgxs_root "$PG_CONFIG")/src/test/regress/pg_regress" \
		timeout -k 10 $suite_limit_s prove --verbose -I "$perl_dir" "t/$name.pl" \
		>"$log/tap/$name.log" 2>&1
	status=$?
	cd "$work" || exit 1
	read_counts "$log/tap/$name.log" $status
	[ "$bad" -eq 0 ] || grep -vE '^ok\b' "$log/tap/$name.log" | tail -60
	sed -nE "s/^t\/.*\. skipped: /$name is skipped: /p" "$log/tap/$name.log"
	mkdir -p "$log/tap/servers"
	cp -r "$dir/tmp_check/log"/*"$name"* "$log/tap/servers" 2>/dev/null
	count "$name" "$ok" "$bad"
}

# ---- the differential tester ----

fuzz_batch=250					# cases that one server lives for

# Settings and the database's locale, for the batch that a case belongs to:
# memory in plenty, little staging memory, little device memory, no waiting for it
fuzz_conditions()
{
	fuzz_locale="LOCALE 'en_US.UTF-8'"
	fuzz_conf=()
	case $(($1 % 4)) in
		1)
			fuzz_locale="LOCALE 'C'"
			fuzz_conf=("gpusort.staging_memory = '8MB'" "gpusort.wait_timeout = '100ms'"
				"gpusort.host_threads = 1")
			;;
		2)
			fuzz_locale="LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'und'"
			fuzz_conf=("gpusort.device_memory = '2MB'")
			;;
		3)
			fuzz_conf=("gpusort.staging_memory = '16MB'" "gpusort.wait_timeout = 0")
			;;
	esac
	[ -z "${FUZZ_DEVICE_MEMORY-}" ] || fuzz_conf+=("gpusort.device_memory = '$FUZZ_DEVICE_MEMORY'")
}

# Cases FIRST-LAST
suite_fuzz()
{
	local first=${1%-*} end=$((${1#*-} + 1)) seed=${FUZZ_SEED:-1} sessions=${FUZZ_JOBS:-$compilers}
	local dir=$log/fuzz name ok bad

	[ "$seed" != random ] || seed=$((RANDOM * 32768 + RANDOM))
	echo "seed $seed, cases $first to $((end - 1)), $sessions at a time"
	mkdir -p "$dir"
	while [ "$first" -lt "$end" ]; do
		local batch=$(((first - 1) / fuzz_batch)) n
		n=$(((batch + 1) * fuzz_batch - first + 1))
		[ $((first + n)) -le "$end" ] || n=$((end - first))
		name=fuzz-server-$batch-$first

		fuzz_conditions $batch
		if ! start_server "$name" "include '$work/gpusort.conf'" "${fuzz_conf[@]}" \
			"statement_timeout = '120s'" "synchronize_seqscans = off" "max_connections = 100" \
			"max_worker_processes = 64" "max_parallel_workers = 48" "log_min_error_statement = panic"; then
			count fuzz 0 1
			return
		fi
		wait_for_device "$name"
		if ! psql -Xqc "CREATE DATABASE fuzz TEMPLATE template0 ENCODING 'UTF8' $fuzz_locale" 2>"$dir/database.log"; then
			# a server without ICU
			psql -Xqc "CREATE DATABASE fuzz TEMPLATE template0 ENCODING 'UTF8' LOCALE 'en_US.UTF-8'"
		fi
		PGDATABASE=fuzz interruptible perl "$root/test/fuzz/fuzz.pl" --seed "$seed" --first "$first" \
			--count "$n" --jobs "$sessions" --log "$dir" >"$dir/batch-$batch-$first.log" 2>&1
		read_counts "$dir/batch-$batch-$first.log" $?
		grep -vE '^[0-9]+ passed' "$dir/batch-$batch-$first.log"
		cp "$run/$name.log" "$dir/"
		stop_server "$name"
		count "fuzz, cases from $first on" "$ok" "$bad"
		check_server_log "$name" "$dir/$name.log"
		rm -rf "${run:?}/$name"
		first=$((first + n))
	done
	# of all cases of this run, also those of a part before
	perl "$root/test/fuzz/fuzz.pl" --summary "$dir" >"$dir/summary.log" 2>&1
	read_counts "$dir/summary.log" $?
	grep -vE '^[0-9]+ passed' "$dir/summary.log"
	count "fuzz, coverage" "$ok" "$bad"
	[ "$failed" -eq 0 ] || echo "again: make fuzz FUZZ_SEED=$seed FUZZ_FIRST=<case> FUZZ_CASES=1"
}
