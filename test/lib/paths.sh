# Real text to sort: file paths.
#
# collect_paths N FILE
#	Writes up to N distinct paths, one a line, in random but repeatable order,
#	and tells in FILE.source where they are from: DEMO_FILE where set; else the
#	contents of the distribution's packages, as its mirror lists them; else,
#	where no mirror answers soon, the files of this machine.

# One mirror's list into FILE: Debian has one a component, Ubuntu one in all
fetch_contents()
{
	local base=$1 release=$2 component=$3 arch=$4 file=$5 url

	for url in "$base/dists/$release/$component/Contents-$arch.gz" \
		"$base/dists/$release/Contents-$arch.gz"; do
		rm -f "$file"
		timeout 90 /usr/lib/apt/apt-helper -o Acquire::http::Timeout=5 \
			-o Acquire::https::Timeout=5 -o Acquire::Retries=0 \
			download-file "$url" "$file" >/dev/null 2>&1 && [ -s "$file" ] && return 0
	done
	return 1
}

package_paths()
{
	local n=$1 file=$2 base release component arch list=$2.gz

	[ -x /usr/lib/apt/apt-helper ] || return 1
	read -r base release component arch < <(apt-get indextargets \
		--format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(ARCHITECTURE)' 'Created-By: Packages' \
		2>/dev/null | grep -E '^https?://.* main ')
	[ -n "${arch-}" ] || return 1

	: >"$file"
	for arch in "$arch" all; do
		[ "$(wc -l <"$file")" -lt "$n" ] || break
		fetch_contents "${base%/}" "$release" "$component" "$arch" "$list" || break
		zcat "$list" | sed -E 's/[ 	]+[^ 	]+$//' >>"$file"
	done
	rm -f "$list"
	echo "the contents of $release's packages ($base)" >"$file.source"
	[ -s "$file" ]
}

machine_paths()
{
	timeout 120 find / -xdev \( -path /proc -o -path /sys -o -path "$work" \) -prune -o -print \
		2>/dev/null >"$1"
	echo "the files of this machine" >"$1.source"
	[ -s "$1" ]
}

collect_paths()
{
	local n=$1 file=$2

	if [ -n "${DEMO_FILE-}" ]; then
		cp "$DEMO_FILE" "$file.raw" || return 1
		echo "$DEMO_FILE" >"$file.raw.source"
	else
		package_paths "$n" "$file.raw" || machine_paths "$file.raw" || return 1
	fi
	# what a text value cannot hold, and what COPY would take for something else, stays out
	iconv -c -f UTF-8 -t UTF-8 "$file.raw" | grep -av '[[:cntrl:]]' | grep -a . | sort -u |
		shuf -n "$n" --random-source=<(yes gpusort) >"$file"
	mv "$file.raw.source" "$file.source"
	rm -f "$file.raw"
	[ -s "$file" ]
}
