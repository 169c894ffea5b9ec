#!/bin/sh
# Debian packages of the last commit, in build/deb: one for each PostgreSQL
# whose postgresql-server-dev package is installed, and the source package.
#
# Environment:
#	CUDA=auto|no				auto: with the CUDA device where nvcc is found
#	CUDA_ARCH=all				as for the Makefile
#	PG_SUPPORTED_VERSIONS		for these servers: "15 17"
#	DEB_BUILD_OPTIONS=nocheck	does not run the packages' test
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -nE "s/^default_version *= *'(.*)'/\1/p" "$root/gpusort.control")
out=$root/build/deb

for tool in dpkg-buildpackage dh pg_buildext; do
	if ! command -v $tool >/dev/null; then
		echo "deb: there is no $tool. Install what the build needs:" >&2
		echo "    apt-get install build-essential debhelper libicu-dev postgresql-server-dev-all" >&2
		exit 1
	fi
done

# What make was told is for us, not for the makes below
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES PG_CONFIG
PG_SUPPORTED_VERSIONS=$(echo "${PG_SUPPORTED_VERSIONS:-installed}" | tr ' ' '\n')
export PG_SUPPORTED_VERSIONS

rm -rf "$out"
mkdir -p "$out"
"$root/packaging/dist.sh"
cp "$root/build/dist/gpusort-$version.tar.gz" "$out/gpusort_$version.orig.tar.gz"
tar -C "$out" -xzf "$out/gpusort_$version.orig.tar.gz"
cd "$out/gpusort-$version"
cp -r packaging/debian debian
# the same as in debian/rules
nvcc=$([ "${CUDA:-auto}" = no ] || command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
cat >debian/changelog <<CHANGES
gpusort ($version-1${nvcc:++cuda}) unstable; urgency=medium

  * See CHANGELOG.md.

 -- $(sed -n 's/^Maintainer: //p' debian/control.in)  $(git -C "$root" log -1 --format=%aD)
CHANGES
pg_buildext updatecontrol
dpkg-buildpackage -us -uc

cd "$out"
rm -rf "gpusort-$version"
echo
ls -1 "$PWD"/*.deb
if [ -n "$nvcc" ]; then
	echo "These packages sort on a GPU: $nvcc has compiled the CUDA device."
else
	echo "These packages have no code for a GPU, so the CPU sorts: there is no nvcc, or CUDA=no."
fi
