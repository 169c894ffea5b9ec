#!/bin/bash
# Set everything up and run the tests.
#
#	test/run.sh [--quick] [SUITE|SUITE/TEST]...		default: every test
#
# Suites: build, lint, unit, regress, isolation, tap, fuzz.  --quick runs the
# tests that test/parts marks as quick; without it the others follow.
#
# What is missing on the machine is installed when root (see
# lib/prerequisites.sh).  Everything is built in build/test with the fault
# points compiled in and warnings as errors; servers run in a temporary
# directory, as an ordinary user, from a private copy of PostgreSQL.  Logs and
# the files that a failed test leaves behind are in build/test/log.  What is
# under way is printed every 15 seconds.
#
# The last line is "N passed, N failed"; the exit status tells the same.
#
# Environment:
#	PG_CONFIG				the server to test with
#	CUDA, CUDA_ARCH			as in the Makefile, but by default the CUDA device is compiled only where there is
#							a GPU, for its architecture, or all tests run (without a GPU for 90)
#	GPUSORT_TEST_DEVICE		host (default) or cuda: where the servers' sorts run
#	GPUSORT_TEST_DEVICES	gpusort.devices of the servers (default 0): 0,1 for two GPUs, 0,0 for one twice.  The
#							answers of regress are those of one device
#	SANITIZE				for the unit tests' second build (default address,undefined;
#							thread is clean as well, and takes minutes)
#	FUZZ_CASES, FUZZ_SEED	how many cases of the differential tester, and from which seed; default: the cases of
#							test/parts from seed 1; of "make fuzz" 1000 from a random seed, which is printed
#	FUZZ_FIRST				the first case (default 1)
#	FUZZ_JOBS				sessions at a time (default: one for each core)
#	FUZZ_DEVICE				GPUSORT_TEST_DEVICE of "make fuzz"
#	FUZZ_DEVICE_MEMORY		gpusort.device_memory (default: of the case's batch); with 2MB most large sorts use
#							temporary files
#	UPGRADE_FROM			pg_config of the older server of tap/compat_pg_upgrade (default: the oldest packaged one;
#							without one the test is skipped)
#	MINOR_SERVER			pg_config of another minor version of PG_CONFIG's PostgreSQL, for tap/compat_minor_version
#							(default: if CI is true, lib/older_minor.sh fetches a server; without a server the test
#							is skipped)
#	CITUS_SRC				Citus's sources for tap/compat_citus (default: the server's own Citus, if it has one)
#	TEST_LIMIT				seconds for one run of pg_regress, a unit program or a TAP file (default 1200)
#	DELAYS_SEEDS, DELAYS_DEADLINE	of tap/fault_delays, see its head
#	CALLS_CASES, CALLS_SEED, CALLS_FIRST	of tap/plans_calls, see its head
#	GPUSORT_TEST_USER		who runs the servers when we are root (default postgres)
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/test/lib/prerequisites.sh"
. "$root/test/lib/server.sh"
. "$root/test/lib/citus.sh"
. "$root/test/lib/suites.sh"
. "$root/test/lib/jobs.sh"

parts="quick rest"
if [ "${1-}" = --quick ]; then
	parts=quick
	shift
fi
[ "$parts" != quick ] && [ $# -eq 0 ] && everything=yes || everything=no
[ "$everything ${CI-}" != "yes true" ] || want_arm64=yes
for name; do
	[ -n "$(list_tests | while read -r _ test; do is_wanted "$test" "$name" && echo x; done)" ] ||
		{ echo "test/parts has no such suite or test: $name" >&2; exit 2; }
done

passed=0
failed=0
started=$SECONDS
build=$root/build/test
log=$build/log
compilers=$(nproc)
device=${GPUSORT_TEST_DEVICE:-host}
SANITIZE=${SANITIZE:-address,undefined}

# Jobs that run at the same time.  One more than there are cores, as tests wait
# much; a GPU's memory is for one server at a time
workers=$(($(nproc) + 1))
[ "$device" != cuda ] || workers=1

# The caller's make is not our make's parent: keep its variables only
MAKEFLAGS=$(echo "${MAKEFLAGS-}" | sed -E 's/(^| )-j[0-9]*//g; s/ ?--jobserver[^ ]*//g')
export MAKEFLAGS

check_prerequisites
make_work_dir
mkdir -p "$log"
exec 9>"$build/lock"
if ! flock -n 9; then
	echo "== waiting for another test run in this tree to end"
	interruptible flock 9
fi
rm -rf "${log:?}"/*

if build_for_test; then
	installed=no
	for part in $parts; do
		select_jobs $part "$@"
		[ ${#jobs[@]} -gt 0 ] || continue
		case " ${jobs[*]}" in
			*" regress"*|*" isolation"*|*" tap/"*|*" fuzz/"*|*" build/installcheck"*)
				[ $installed = yes ] || install_for_test || break
				installed=yes
				;;
		esac
		echo
		echo "== $part part, $workers jobs at a time"
		run_jobs
	done
	echo
	for suite in "${!suite_ok[@]}"; do
		echo "$suite: ${suite_ok[$suite]} passed, ${suite_bad[$suite]} failed"
	done | sort
fi

echo
echo "== $((SECONDS - started)) s; logs in ${log#"$root"/}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
