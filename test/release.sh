#!/bin/bash
# What a machine with a GPU has to run before a release, in less than 20 minutes: the device's conformance and all
# quick tests of one session or of locks, some of faults, files and memory, compute-sanitizer if it is there, and a short
# benchmark.  Prints the row for the table "Last passed on" of README.md, and ends as the tests did.
#
# Without a GPU it runs on the host device, as a trial.
#
# Environment: that of run.sh and of bench/report.sh; GPUSORT_TEST_DEVICE is cuda, or host without a GPU.
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1 | sed 's/, / (/; s/$/)/')
device=${GPUSORT_TEST_DEVICE:-$([ -n "$gpu" ] && echo cuda || echo host)}
commit=$(git -C "$root" rev-parse --short HEAD)
[ -z "$(git -C "$root" status --porcelain)" ] || commit="$commit with changes"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
status=0

GPUSORT_TEST_DEVICE=$device "$root/test/run.sh" --quick unit regress isolation \
	tap/{fault_service_lost,spill_files,index_faults,memory_device,devices_several,arrays_faults} | tee "$out/tests"
[ "${PIPESTATUS[0]}" -eq 0 ] || status=1

sanitizer=none
if [ "$device" = cuda ] && sanitize=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null); then
	echo
	echo "== compute-sanitizer, at most five minutes"
	timeout 300 "$sanitize" --error-exitcode 3 "$root/build/test/unit/test_device" cuda >"$out/sanitizer" 2>&1
	case $? in
		0) sanitizer="no errors" ;;
		124) sanitizer="no errors in 5 minutes"; ! grep -q '^========= Invalid' "$out/sanitizer" || sanitizer=errors ;;
		*) sanitizer=errors ;;
	esac
	echo "$sanitizer"
	[ "$sanitizer" != errors ] || { tail -40 "$out/sanitizer"; status=1; }
fi

echo
BENCH_DEVICE=$device BENCH_RUNS=${BENCH_RUNS:-1} "$root/test/bench/report.sh" | tee "$out/bench"
[ "${PIPESTATUS[0]}" -eq 0 ] || status=1

echo
echo "| $(date -u +%F) | $commit | ${gpu:-none} | $(sed -n 's/^== building for PostgreSQL \([^ ,]*\).*/\1/p' "$out/tests")" \
	"| $(. /etc/os-release && echo "$PRETTY_NAME"), $(uname -m), $(nproc) cores | $(tail -1 "$out/tests") | $sanitizer" \
	"| $(sed -n 's/.* rows: //p' "$out/bench" | tail -1) |"
exit $status
