#!/bin/sh
# Puts the documents that packages install into a folder.  Links to files that
# only the sources have become plain text.
set -eu

out=$1

mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/.."
tar -cf - README.md CHANGELOG.md docs packaging/kubernetes packaging/monitoring packaging/licenses test/bench/RESULTS.md |
	tar -C "$out" -xf -
find "$out" -name '*.md' -exec perl -pi -e '
	my ($folder) = $ARGV =~ /(.*\/)/;
	s{\[([^\[\]]+)\]\((?!https?:)([^()#]+)(?:#[^()]*)?\)}{-e "$folder$2" ? $& : $1}ge' {} +
