#!/bin/bash
# The device's engines against those of the papers, on data that lie on the GPU:
# one table a dataset, in Markdown.
#
#	test/bench/device/run.sh [OPTION VALUE]...		see main.cu, or --help
#
# BENCH_FILE		a file whose lines are sorted too
# BENCH_OUT			folder for results.md, cells.tsv and plot.svg
#					(default: build/bench/device)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
build=$root/build/bench/device
out=${BENCH_OUT:-$build}
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc)
arguments=("$@")
[ -z "${BENCH_FILE-}" ] || arguments+=(--file "$(realpath "$BENCH_FILE")")

mkdir -p "$build" "$out"
make -s -C "$build" -f "$here/Makefile" -j"$(nproc)" NVCC="$nvcc" device_bench

status=0
{
	echo "$(date -u +%F), commit $(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown):" \
		"\`test/bench/device/run.sh${*:+ $*}\`"
	echo
	"$build/device_bench" "${arguments[@]}" --cells "$out/cells.tsv"
} | tee "$out/results.md" || status=$?
python3 "$here/plot.py" "$out/cells.tsv" >"$out/plot.svg"
exit $status
