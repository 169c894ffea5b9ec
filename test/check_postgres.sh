#!/bin/bash
# PostgreSQL's own regression and isolation tests, with every sort and index build
# that gpusort supports forced onto it.
#
# Fetches the distribution's source package of the server's major version, and
# builds it with assertions (once, in build/postgres-MAJOR; some minutes).
# Then runs the tests and sorts the differences from the expected output
# (check_postgres.pl): plan texts, order among equal rows, and real failures.
# Fails when there are real ones, or when a process of the server crashed.
#
#	test/check_postgres.sh [regress|isolation]...	default: both
#
# Environment:
#	PG_CONFIG			the server whose major version is tested
#	POSTGRES_SOURCE		a built source tree to use instead; its installation is
#						taken from POSTGRES_PREFIX
#	MIN_ROWS=0			gpusort.min_rows: 0 sends every sort to the device
#	ENABLED=on			gpusort.enabled: with maintenance or off a difference in a plan fails, too
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/test/lib/prerequisites.sh"
. "$root/test/lib/server.sh"

suites=${*:-regress isolation}
die()
{
	echo "check-postgres: $*" >&2
	exit 1
}

check_prerequisites
major=$(pg_config_major "$PG_CONFIG")
home=$root/build/postgres-$major
source_dir=${POSTGRES_SOURCE:-$home/src}
prefix=${POSTGRES_PREFIX:-$home/install}

fetch_and_build()
{
	local options file version sources=$home/sources.list.d

	[ "$(id -u)" -eq 0 ] || die "fetching PostgreSQL's source needs root; or set POSTGRES_SOURCE and POSTGRES_PREFIX"
	# the system's sources with their keys, of source packages only, and with lists of our own
	options=(-q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$sources" -o Dir::State::Lists="$home/lists")
	mkdir -p "$home/lists/partial" "$sources"
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
		[ ! -f "$file" ] || sed -E 's/^Types:.*/Types: deb-src/; s/^deb /deb-src /' "$file" >"$sources/${file##*/}"
	done
	apt-get update -q >/dev/null &&
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
			build-essential bison flex pkg-config libreadline-dev zlib1g-dev libicu-dev dpkg-dev >/dev/null &&
		apt-get "${options[@]}" update >/dev/null ||
		return 1
	mkdir -p "$source_dir"
	(
		cd "$source_dir" &&
			for version in $(apt-cache "${options[@]}" showsrc "postgresql-$major" | sed -n 's/^Version: //p' | sort -rVu); do
				apt-get "${options[@]}" source --download-only "postgresql-$major=$version" >/dev/null && break
			done &&
			tar --strip-components=1 -xf "postgresql-${major}"_*.orig.tar.* &&
			./configure --prefix="$prefix" --with-icu --enable-cassert --enable-debug \
				CFLAGS="-O1 -g -fno-omit-frame-pointer" &&
			unset MAKELEVEL MAKEFLAGS MFLAGS && # PostgreSQL makes its headers at level 0 only
			make -s -j"$(nproc)" world-bin && make -s install-world-bin
	) >"$home/build.log" 2>&1
}

if [ ! -x "$prefix/bin/postgres" ]; then
	echo "== fetching and building PostgreSQL $major with assertions (log: $home/build.log)"
	mkdir -p "$home"
	fetch_and_build || { tail -20 "$home/build.log" >&2; die "PostgreSQL could not be built"; }
fi

PG_CONFIG=$prefix/bin/pg_config
make_work_dir
make_private_install || exit 1
build=$root/build/check-postgres
mkdir -p "$build"
flags=(FAULTS=1 CUDA="${CUDA:-no}")
MAKEFLAGS=$(echo "${MAKEFLAGS-}" | sed -E 's/(^| )-j[0-9]*//g; s/ ?--jobserver[^ ]*//g')
export MAKEFLAGS
{
	make -C "$build" -f "$root/Makefile" PG_CONFIG="$PG_CONFIG" -j"$(nproc)" "${flags[@]}" &&
		make -C "$build" -f "$root/Makefile" PG_CONFIG="$PG_CONFIG" "${flags[@]}" install DESTDIR="$work/install"
} >"$work/build.log" 2>&1 || { tail -30 "$work/build.log" >&2; die "the build failed"; }
chmod -R a+rX "$work/install"

start_server check \
	"shared_preload_libraries = 'gpusort'" \
	"gpusort.device = ${GPUSORT_TEST_DEVICE:-host}" \
	"gpusort.enabled = ${ENABLED:=on}" \
	"gpusort.force = on" \
	"gpusort.index_build = on" \
	"gpusort.min_rows = ${MIN_ROWS:-0}" \
	"max_connections = 100" || exit 1
wait_for_device check

bad=0
for suite in $suites; do
	case $suite in
		regress) dir=$source_dir/src/test/regress program=./pg_regress schedule=parallel_schedule ;;
		isolation) dir=$source_dir/src/test/isolation program=./pg_isolation_regress schedule=isolation_schedule ;;
		*) die "no such suite: $suite" ;;
	esac
	out=$run/$suite
	as_user mkdir -p "$out"
	echo "== $suite, log in build/check-postgres/$suite.log"
	# the server's files of test data are read by the server's user
	chmod -R a+rX "$source_dir/src/test" 2>/dev/null
	(cd "$dir" && as_user "$program" --inputdir=. --outputdir="$out" --bindir="$bindir" \
		--dlpath=. --host="$run" --port=5432 --user=postgres --max-concurrent-tests=20 \
		--schedule="./$schedule") >"$build/$suite.log" 2>&1
	grep -cE '^ok |\.\.\. ok ' "$build/$suite.log" | sed 's/$/ tests without any difference/'
	if [ -f "$out/regression.diffs" ]; then
		cp "$out/regression.diffs" "$build/$suite.diffs"
		ENABLED=$ENABLED perl "$root/test/check_postgres.pl" "$build/$suite.diffs" || bad=1
	elif ! grep -q 'passed' "$build/$suite.log"; then
		tail -5 "$build/$suite.log"
		bad=1
	fi
done
if as_user grep -E 'TRAP:|PANIC|was terminated by signal' "$run/check.log"; then
	bad=1
fi
exit $bad
