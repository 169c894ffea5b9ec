#!/bin/sh
# Source archives of the last commit, build/dist/gpusort-VERSION.tar.gz and,
# as PGXN wants it, .zip.  What .gitattributes excludes is left out.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -nE "s/^default_version *= *'(.*)'/\1/p" "$root/gpusort.control")
out=$root/build/dist

if [ ! -e "$root/.git" ]; then
	echo "dist: $root is no git repository, and archives are made of commits" >&2
	exit 1
fi
if [ -n "$(git -C "$root" status --porcelain)" ]; then
	echo "dist: changes that are not committed are left out" >&2
fi
mkdir -p "$out"
for format in tar.gz zip; do
	git -C "$root" archive --prefix="gpusort-$version/" -o "$out/gpusort-$version.$format" HEAD
	echo "build/dist/gpusort-$version.$format"
done
