#!/bin/sh
# An RPM package of the last commit for one server, and the source package, in
# build/rpm.
#
# Environment:
#	PG_CONFIG=pg_config			the server
#	CUDA=auto|no				auto: with the CUDA device where nvcc is found
#	CUDA_ARCH=all				as for the Makefile
#	RPMBUILD=rpmbuild			the command, with its options: "rpmbuild --nodeps"
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -nE "s/^default_version *= *'(.*)'/\1/p" "$root/gpusort.control")
out=$root/build/rpm
config=${PG_CONFIG:-pg_config}
RPMBUILD=${RPMBUILD:-rpmbuild}

if ! command -v "${RPMBUILD%% *}" >/dev/null; then
	echo "rpm: there is no rpmbuild. Install what the build needs: rpm-build, gcc, gcc-c++, make," >&2
	echo "    libicu-devel, and the server's postgresqlNN-devel" >&2
	exit 1
fi
bindir=$("$config" --bindir)
major=$("$config" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')

# What make was told is for us, not for the makes below
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

rm -rf "$out"
mkdir -p "$out/SOURCES"
"$root/packaging/dist.sh"
cp "$root/build/dist/gpusort-$version.tar.gz" "$out/SOURCES/"
tar -xzf "$out/SOURCES/gpusort-$version.tar.gz" -O "gpusort-$version/packaging/rpm/gpusort.spec" |
	sed "s/@VERSION@/$version/" >"$out/gpusort.spec"
$RPMBUILD -ba --define "_topdir $out" --define "pgmajorversion $major" --define "pginstdir ${bindir%/bin}" \
	--define "cuda ${CUDA:-auto}" --define "cuda_arch ${CUDA_ARCH:-all}" "$out/gpusort.spec"
echo
find "$out/RPMS" "$out/SRPMS" -name '*.rpm'
