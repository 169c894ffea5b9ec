#!/bin/bash
# Set everything up and run the tests.
#
#	test/run.sh [build|lint|unit|regress|isolation|tap|fuzz]...	default: all
#
# What is missing on the machine is installed when root (see
# lib/prerequisites.sh).  Everything is built in build/test with the fault
# points compiled in and warnings as errors; servers run in a temporary
# directory, as an ordinary user, from a private copy of PostgreSQL.  Logs and
# the files that a failed test leaves behind are in build/test/log.
#
# The last line is "N passed, N failed"; the exit status tells the same.
#
# Environment:
#	PG_CONFIG				the server to test with
#	CUDA, CUDA_ARCH			as in the Makefile, but only this machine's architecture,
#							or 90 where there is no GPU, is compiled for by default
#	GPUSORT_TEST_DEVICE		host (default) or cuda: where the servers' sorts run
#	SANITIZE				for the unit tests' second build (default address,undefined;
#							thread is clean as well, and takes minutes)
#	FUZZ_CASES, FUZZ_SEED, FUZZ_FIRST, FUZZ_JOBS	of the differential tester, see README.md
#	GPUSORT_TEST_USER		who runs the servers when we are root (default postgres)
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/test/lib/prerequisites.sh"
. "$root/test/lib/server.sh"
. "$root/test/lib/suites.sh"

suites=${*:-build lint unit regress isolation tap fuzz}
for suite in $suites; do
	case $suite in
		build|lint|unit|regress|isolation|tap|fuzz) ;;
		*) echo "no such suite: $suite" >&2; exit 2 ;;
	esac
done

passed=0
failed=0
started=$SECONDS
build=$root/build/test
log=$build/log
jobs=$(nproc)
device=${GPUSORT_TEST_DEVICE:-host}

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
	case " $suites " in
		*" regress "*|*" isolation "*|*" tap "*|*" fuzz "*) install_for_test || exit 1 ;;
	esac
	for suite in $suites; do
		run_suite "$suite"
	done
fi

echo
echo "== $((SECONDS - started)) s; logs in ${log#"$root"/}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
