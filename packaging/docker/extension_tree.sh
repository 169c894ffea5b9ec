#!/bin/sh
# The files of the extension image: what CloudNativePG mounts as
# /extensions/gpusort.  Builds in the current folder.
#
#	extension_tree.sh DIR [ARGUMENT OF MAKE]...
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$1
shift

# by the name that it had when it was built here, or all would be compiled anew
makefile=$root/Makefile
[ "$PWD" != "$root" ] || makefile=Makefile
make -f "$makefile" install DESTDIR="$dir" pkglibdir=/lib datadir=/share SCRIPTS_built= "$@"
install -d "$dir/licenses/gpusort"
install -m 644 "$root/LICENSE" "$root/docs/third_party.md" "$root"/packaging/licenses/* "$dir/licenses/gpusort/"
