#!/bin/bash
# Checks of the sources and of what was built from them.
#
#	test/lib/lint.sh BUILD_DIR		prints "ok - CHECK" or "not ok - CHECK" lines,
#									each failure with what was found above it
set -u
export LC_ALL=C

cd "$(dirname "$0")/../.." || exit 1
build=${1:-.}
status=0

# Run a check: it prints what it finds, and nothing where all is well
check()
{
	local title=$1 found
	shift

	found=$("$@" 2>&1)
	if [ -z "$found" ]; then
		echo "ok - $title"
	else
		echo "$found" | head -60
		echo "not ok - $title"
		status=1
	fi
}

sources()
{
	find "$@" -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) | sort
}

# ---- the layers ----

# Lower folders never include higher ones; folders of one rank do not include
# each other; nobody includes another one's _private.h.
#	check_ranks ROOT "FOLDER=RANK ..."
check_ranks()
{
	awk -v root="$1" -v ranks="$2" -v headers="$(ls "$1"/*/*.h "$1"/*/*/*.h "$1"/*/*.cuh 2>/dev/null | tr '\n' ' ')" '
	BEGIN {
		depth = split(root, part, "/") + 1
		top = part[1]
		n = split(ranks, pairs, " ")
		for (i = 1; i <= n; i++) {
			split(pairs[i], pair, "=")
			rank[pair[1]] = pair[2]
		}
		# others have folders of the same names: only what is ours counts
		n = split(headers, header, " ")
		for (i = 1; i <= n; i++)
			ours[header[i]] = 1
	}
	FNR == 1 {
		n = split(FILENAME, part, "/")
		own = n == depth ? "" : part[depth]
		if (own != "" && !(own in rank))
			print FILENAME ": a folder without a rank in this check"
	}
	/^[ \t]*#[ \t]*include[ \t]+"/ {
		split($0, quoted, "\"")
		split(top "/" quoted[2], part, "/")
		to = part[depth]
		if (!((top "/" quoted[2]) in ours) || !(to in rank) || to == own)
			next
		if (own == "")
			bad = FILENAME ~ /\.h$/ && to != "device"
		else
			bad = rank[to] >= rank[own]
		bad = bad || quoted[2] ~ /_private\.h$/
		if (bad)
			print FILENAME ":" FNR ": " $0
	}
	' $(sources "$1")
}

# Files of src/ itself: headers are for everyone and may include only device.h
# of the folders; .c files may include anything.
check_layers()
{
	check_ranks src "base=0 device=1 key=2 host=3 spill=3 chunk=3 service=4 client=5 feed=6 sort=7 array=7 plan=8 nodes=9 index=9 func=9 cluster=10"
}

check_node_layers()
{
	check_ranks src/nodes "common=0 sort=1 read=2 window=3 percentile=3 group=4 arrays=4"
}

check_cuda_layers()
{
	check_ranks cuda "common=0 block=1 rows=1 fixed=2 strings=2 arrays=2 papers=3 engine=4 device=5"
}

# The devices and temporary files know nothing of PostgreSQL
check_devices_pure()
{
	grep -nE '^[ \t]*#[ \t]*include[ \t]+["<](postgres|fmgr|c\.h|utils/|storage/|access/|nodes/|miscadmin)' \
		$(sources src/base src/device src/host src/spill cuda)
	grep -nE '^[ \t]*#[ \t]*include[ \t]+"(gpusort|guc|error|compat|stats|key/|spill/|chunk/|service/|client/|sort/|array/|plan/|nodes/|func/)' \
		$(sources src/base src/device src/host cuda)
}

# No test builds the device's benchmark: at least its C++ fits the headers
check_device_benchmark()
{
	local file

	command -v g++ >/dev/null || return 0
	for file in test/bench/device/*.cc; do
		g++ -std=c++17 -fsyntax-only -Wall -Wextra -Isrc -Icuda "$file" 2>&1
	done
}

# ... and the host device, the encoders and temporary files
# compile alone, as plain C11
check_pure_c11()
{
	for file in src/{base,device,host,spill}/*.[ch] src/key/key_encode.h src/key/key_encode_numeric.h \
		src/key/key_icu_{prove,table}.[ch] src/key/key_libc_*.[ch]; do
		gcc -std=c11 -pedantic -Wall -Wextra -Werror -Wno-unused-function -D_GNU_SOURCE \
			-Isrc -x c -include /dev/null -fsyntax-only "$file" 2>&1 |
			grep -v 'pragma once in main file'
	done
}

# Files call each other in one direction: no way along calls leads back.  The files named are one recursion,
# as arrays, ranges and jsonb hold values.
check_circles()
{
	perl test/lib/circles.pl src key/key_{array,jsonb,range,value}.c
}

# A header includes what it needs: it compiles alone, after postgres.h unless its folder is plain C
check_headers_alone()
{
	local include

	include=$("${PG_CONFIG:-pg_config}" --includedir-server)
	[ -e "$include/postgres.h" ] || return 0
	find src -name '*.h' | grep -vE '^src/(base|device|host|spill)/' |
		xargs -P "$(nproc)" -I{} gcc -fsyntax-only -Wall -Werror -D_GNU_SOURCE -Isrc -I"$include" \
			-include postgres.h -x c {} 2>&1 | grep -v 'pragma once in main file'
}

# All compiles with another C library, too: Alpine Linux has musl
check_musl()
{
	find src -name '*.c' | xargs -P "$(nproc)" -I{} musl-gcc -fsyntax-only -Wall -Werror -D_GNU_SOURCE -Isrc \
		-I"$("${PG_CONFIG:-pg_config}" --includedir-server)" -idirafter "/usr/include/$(gcc -print-multiarch)" \
		-idirafter /usr/include {} 2>&1
}

# Without the server's headers, whose macros it does not know: that takes 20 s of one core, and less if little has changed
check_cppcheck()
{
	mkdir -p build/cppcheck
	cppcheck --quiet --enable=warning,portability,performance --std=c11 -j "$(nproc)" -Isrc \
		--cppcheck-build-dir=build/cppcheck --suppressions-list=test/lib/cppcheck_suppressions \
		--template='{file}:{line}: {message} [{id}]' src 2>&1
}

# The extension's scripts mean the same objects whatever the search path is
check_pgspot()
{
	cat sql/*.in "sql/gpusort--$(sed -nE "s/^default_version *= *'(.*)'/\1/p" gpusort.control).sql" | pgspot | grep '^PS'
}

# What superusers run in databases of others calls PostgreSQL's functions and the extension's, and nobody else's.
# (What tests and packages run in servers of their own need not be safe.)
shipped_sql="$(ls docs/*.sql | tr '\n' ' ')docs/collation.sh packaging/monitoring/queries.yaml"

check_scripts()
{
	perl test/lib/scripts.pl rules $shipped_sql
}

check_scripts_pgspot()
{
	local file

	for file in $shipped_sql; do
		perl test/lib/scripts.pl sql "$file" | pgspot 2>&1 | grep -v '^$' |
			sed -n "s|^|$file: |; / Errors: 0 Warnings: 0 Unknown: 0/!p"
	done
}

check_versions_in_one_place()
{
	grep -n 'PG_VERSION_NUM' $(sources src | grep -vx src/compat.h)
}

# ---- the text ----

check_markers()
{
	grep -rnE 'TO''DO|FIX''ME|XX''X' --include='*.[ch]' --include='*.cu' --include='*.cuh' \
		--include='*.sh' --include='*.sql' --include='*.pl' --include='*.pm' --include='*.md' \
		src cuda sql test docs Makefile README.md CHANGELOG.md 2>/dev/null |
		grep -vE 'mktemp|X{6}'
}

check_white_space()
{
	local file

	grep -nE '[ 	]+$' $(sources src cuda test) | head -20
	for file in $(sources src cuda test); do
		# messages are not broken, so that they can be searched for
		expand -t4 "$file" | awk -v file="$file" 'length($0) > 110 && !/"/ {
			print file ":" NR ": longer than 110 columns" }'
		[ -z "$(tail -c1 "$file")" ] || echo "$file: no newline at its end"
	done
}

# clang-format's idea of a file against the file.  What it cannot be told is
# evened out in both: the amount of white space within a line (pgindent aligns
# declarations and comments), the blank in a declaration of a pointer to a
# function or before "..." or a compound literal's braces, an initializer's
# closing brace, where a statement is broken after a comma or at an operator,
# the lines of a macro.
even_out()
{
	perl -0pe '
		s/\(\*(\w*)\) \(/(*$1)(/g;
		s/, \.\.\./,.../g;
		s/\) \)/))/g;
		s/\]\) \{/]){/g;
		s/\s*\n\s*\};/};/g;
		s/(,|\(|&&|\|\||[+=<>?]|\s:)[ \t]*\n[ \t]*(?=\S)/$1 /g;
		s/[ \t]*\n[ \t]*(?=[?:] )/ /g;
		s{^([ \t]*#[ \t]*define(?:.*\\\n)*.*)$}{ $1 =~ s/^[ \t]+//gmr }gme;
		' "$@"
}

check_format()
{
	local file

	for file in $(sources src test/unit test/modules | grep '\.[ch]$'); do
		clang-format "$file" | even_out |
			diff -bu --label "$file" --label formatted <(even_out "$file") -
	done
}

check_cuda_format()
{
	local file

	for file in $(sources cuda) test/bench/device/streaming*; do
		clang-format --style=file:cuda/.clang-format "$file" | diff -u --label "$file" --label formatted "$file" -
	done
}

# ---- what belongs together ----

# gpusort.control has the version.  What cannot read it there says the same, and each version of CHANGELOG.md
# has a date, or none yet, and an upgrade script from the one before it
check_version_number()
{
	local version next= file

	version=$(sed -nE "s/^default_version *= *'(.*)'/\1/p" gpusort.control)
	[ "$(sed -nE '3s/^## ([0-9.]+) .*/\1/p' CHANGELOG.md)" = "$version" ] ||
		echo "CHANGELOG.md does not begin with version $version"
	[ "$(grep -cF "\"version\": \"$version\"" META.json)" -eq 2 ] ||
		echo "META.json's versions are not $version"
	grep -qF "\"sql/gpusort--$version.sql\"" META.json || echo "META.json does not name version $version's script"
	[ -e "sql/gpusort--$version.sql" ] || echo "no sql/gpusort--$version.sql"
	grep -qE "^Version ${version//./\\.}," README.md || echo "README.md is not of version $version"
	grep -nE 'gpusort(-extension:|[-_])[0-9]+\.[0-9]+\.[0-9]+' docs/*.md packaging/*/*.yaml | grep -vF "$version"
	grep -d skip -nE "\<${version//./\\.}\>" src/*.[ch] Makefile packaging/*.sh packaging/*/* | grep -vE '^packaging/kubernetes/'
	grep -E '^## ' CHANGELOG.md | grep -vE '^## [0-9.]+ \((unreleased|20[0-9]{2}-[0-9]{2}-[0-9]{2}(, not published)?)\)$'
	sed -nE 's/^## ([0-9.]+) .*/\1/p' CHANGELOG.md | while read -r version; do
		[ -z "$next" ] || [ -e "sql/gpusort--$version--$next.in" ] ||
			echo "no sql/gpusort--$version--$next.in"
		next=$version
	done
	for file in sql/*; do
		[ "$(head -1 "$file")" = "/* ${file%.*}.sql */" ] || echo "$file does not begin with its name"
	done
}

# Every input has an answer and every answer an input
check_answers()
{
	local file name

	for file in test/sql/*.sql test/specs/*.spec; do
		[ -e "$file" ] || continue
		name=$(basename "${file%.*}")
		[ -e "expected/$name.out" ] || echo "$file has no expected/$name.out"
	done
	for file in expected/*.out; do
		[ -e "$file" ] || continue
		name=$(basename "$file" .out)
		[ -e "test/sql/$name.sql" ] || [ -e "test/specs/$name.spec" ] ||
			[ -e "test/sql/${name%_[0-9]}.sql" ] || echo "$file has no input"
	done
	{ ls test/sql test/specs 2>/dev/null; } | sed -nE 's/\.(sql|spec)$//p' | sort | uniq -d |
		sed 's/$/ is both an SQL and an isolation test/'
}

# Every test has its line in test/parts, every line its test, and no test has two
check_parts()
{
	local listed here

	listed=$(awk '!/^#/ && NF && $2 !~ /^fuzz\// { print $2 }' test/parts | sort)
	here=$({
		printf '%s\n' lint/sources build/production build/dist build/arm64 build/installcheck unit/plain/engines unit/plain/test_streaming
		printf '%s\n' test/sql/*.sql | sed 's|^test/sql|regress|'
		printf '%s\n' test/specs/*.spec | sed 's|^test/specs|isolation|'
		printf '%s\n' test/t/*.pl | sed 's|^test/t|tap|'
		printf '%s\n' test/unit/test_key*.c test/unit/test_{device,spill}.c |
			sed -n 's|^test/unit/|unit/plain/|p; s|^unit/plain|unit/sanitized|p; /icu/!s|^unit/sanitized|unit/arm64|p'
	} | sed 's|\.[a-z]*$||' | sort)
	awk '!/^#/ && NF && (NF != 2 || $1 !~ /^(quick|rest)$/) { print "test/parts:" FNR ": " $0 }' test/parts
	uniq -d <<<"$listed" | sed 's|^|test/parts has twice: |'
	comm -13 <(uniq <<<"$listed") <(echo "$here") | sed 's|^|test/parts does not have |'
	comm -23 <(uniq <<<"$listed") <(echo "$here") | sed 's|^|test/parts has what is not there: |'
	for part in quick rest; do
		grep -q "^$part[[:space:]]*fuzz/" test/parts || echo "test/parts has no $part fuzz/ cases"
	done
}

# Each .c file of src names in its head tests that fail if it breaks
check_tests_named()
{
	local file names name

	for file in $(sources src | grep '\.c$'); do
		names=$(sed -n '/\*\//q; s/^ \* Tests: //p' "$file")
		[ -n "$names" ] || echo "$file: its head has no line \"Tests:\""
		for name in ${names//,/ }; do
			grep -qE "[[:space:]]$name\$" test/parts || echo "$file: test/parts has no test $name"
		done
	done
}

# Every setting is documented
check_settings_documented()
{
	local name

	for name in $(grep -ohE '"gpusort\.[a-z_]+"' src/guc.c 2>/dev/null | tr -d '"' | sort -u | grep -vx gpusort.h); do
		grep -qF "| \`$name\` |" docs/settings.md || grep -qF "\`$name\`" test/README.md ||
			echo "neither docs/settings.md nor, for developers, test/README.md describes $name"
	done
}

# The words that src/README.md explains are those of the headers that it names
check_words()
{
	sed -n '/^Words$/,/^Adding things$/p' src/README.md | grep -E '^    [a-z]' | while read -r word header _; do
		grep -qi "$word" "src/$header" || echo "src/$header does not know the word $word"
	done
}

# Every fault point is documented
check_fault_points_documented()
{
	local point

	for point in $(grep -rohE 'GS_FAULT\("[a-z_]+"' --include='*.c' src | cut -d'"' -f2 | sort -u); do
		grep -qF "\`$point\`" test/README.md || echo "test/README.md does not describe the fault point $point"
	done
}

# Every make target that documents and workflows name is there
check_make_targets()
{
	local target

	grep -ohE '(^ +|`|run: |&& )make [a-z-]+' README.md .github/*.md docs/*.md packaging/README.md test/README.md \
		.github/workflows/*.yml 2>/dev/null | sed 's/.*make //' | sort -u | while read -r target; do
		case $target in
			install|uninstall|installcheck|-*) ;;			# of PGXS
			*) grep -qE "^$target:" Makefile || echo "the Makefile has no target $target" ;;
		esac
	done
}

# YAML and JSON files can be read
check_yaml()
{
	python3 -c 'import yaml' 2>/dev/null || return 0
	python3 -c 'import sys, yaml
for file in sys.argv[1:]:
	try:
		list(yaml.safe_load_all(open(file)))
	except yaml.YAMLError as error:
		print(file, error)' $(ls META.json packaging/*/*.json packaging/*/*.yaml .github/*/*.yml 2>/dev/null)
}

# Every reason that the library gives is explained
check_reasons_documented()
{
	sed -n '/^gs_\(fallback\|refusal\)_name/,/^}/s/.*return "\(.*\)";/\1/p' src/stats.c | grep -vx none |
		sort -u | while read -r reason; do
		grep -qF "$reason" docs/*.md || echo "docs/ does not explain \"$reason\""
	done
}

# README's picture shows what the table of docs/measured.md says
check_picture()
{
	command -v python3 >/dev/null || return 0
	python3 test/bench/picture.py docs/measured.md | cmp -s - docs/speed.svg ||
		echo "docs/speed.svg is not what test/bench/picture.py docs/measured.md draws"
}

# The times of docs/measured.md's tables are those of one line of RESULTS.md, and their ratio is right
check_measured()
{
	perl -ne '
		BEGIN
		{
			open my $results, "<", "test/bench/RESULTS.md" or die;
			@lines = map { my %numbers = map { $_ => 1 } /\d+(?:\.\d+)?/g; \%numbers } <$results>;
		}
		$measured = 1 if /<!-- measured: begin/;
		$measured = 0 if /<!-- measured: end/;
		next unless $measured;
		while (/\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) (?=\|)/g)
		{
			my ($stock, $ours, $times) = ($1, $2, $3);

			grep { $_->{$stock} && $_->{$ours} } @lines or
				print "$ARGV:$.: test/bench/RESULTS.md has no $stock and $ours ms\n";
			abs($stock / $ours - $times) < 0.1 or
				print "$ARGV:$.: $stock / $ours is not $times\n";
		}
	' docs/measured.md
}

# The anchors of a document's headings, as GitHub makes them
anchors()
{
	sed -nE 's/^#+ //p' "$1" | tr 'A-Z' 'a-z' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}

# Links between documents lead somewhere, and so do names of scripts and tests
check_document_links()
{
	local document link file anchor

	for document; do
		grep -oE '\]\([^)]+\)' "$document" | sed 's/^](//; s/)$//' | grep -vE '^https?:' | sort -u |
			while read -r link; do
			file=${link%%#*}
			anchor=
			case $link in *'#'*) anchor=${link#*'#'} ;; esac
			file=${file:+$(dirname "$document")/$file}
			file=${file:-$document}
			if [ ! -e "$file" ]; then
				echo "$document links to $link, which is not there"
			elif [ -n "$anchor" ] && ! anchors "$file" | grep -qxF -- "$anchor"; then
				echo "$document links to $link, but there is no such heading"
			fi
		done
	done
}

check_links()
{
	local file

	check_document_links README.md CHANGELOG.md .github/*.md docs/*.md */README.md src/*.md src/*/README.md test/bench/*.md
	grep -ohE '`[^` ]*(test|packaging)/[a-z_/]+\.(sh|md|pl|sql|conf)' README.md docs/*.md */README.md src/*/README.md | tr -d '`' | sort -u |
		while read -r file; do
		[ -e "$file" ] || echo "documents name $file, which is not there"
	done
	grep -ohE 'test/run\.sh (tap|regress|unit|isolation)/[a-z0-9_/]+' README.md docs/*.md */README.md src/*/README.md | sed 's/.* //' |
		sort -u | while read -r file; do
		grep -qE "[[:space:]]$file$" test/parts || echo "documents name the test $file, which is not in test/parts"
	done
}

# So do those of the documents that packages install; links to files that only the sources have become text
check_packaged_links()
{
	local folder

	folder=$(mktemp -d)
	packaging/documents.sh "$folder"
	(cd "$folder" && check_document_links $(find . -name '*.md'))
	rm -r "$folder"
}

# ---- the library ----

# The linker hides all but entry points; every other name that is global
# within the library carries the prefix as well
check_exported_symbols()
{
	nm -D --defined-only "$build/gpusort.so" | awk '{ print $3 }' |
		grep -vxE '_PG_init|Pg_magic_func|pg_finfo_.*|gpusort_.*'
}

check_prefixes()
{
	# an object of link-time optimization that defines nothing is worth a message to nm
	nm --defined-only -g $(find "$build/src" -name '*.o') 2>/dev/null | awk 'NF == 3 && $2 ~ /[TDBRC]/ { print $3 }' |
		grep -vxE '_PG_init|Pg_magic_func|pg_finfo_.*|gpusort_.*|gs_.*' | sort -u
}

# It loads where there is no CUDA: neither runtime nor driver is linked to
check_libraries()
{
	ldd "$build/gpusort.so" | grep -E 'libcuda|libcudart|libnv|not found'
}

check "lower layers never include higher ones" check_layers
check "the same in nodes/" check_node_layers
check "the same in cuda/" check_cuda_layers
check "the devices and temporary files know nothing of PostgreSQL" check_devices_pure
check "the host device, the encoders and temporary files are plain C11" check_pure_c11
check "PG_VERSION_NUM is named in compat.h only" check_versions_in_one_place
check "no circle of files that call each other" check_circles
check "headers compile alone" check_headers_alone
check "the device's benchmark fits the headers" check_device_benchmark
check "no notes of unfinished work" check_markers
check "white space and line length" check_white_space
check "version numbers agree" check_version_number
check "tests and their answers pair up" check_answers
check "test/parts has every test once" check_parts
check "each file of src names its tests" check_tests_named
check "every setting is described" check_settings_documented
check "src/README.md explains words that headers use" check_words
check "docs/ explains every reason" check_reasons_documented
check "test/README.md describes every fault point" check_fault_points_documented
check "docs/speed.svg shows docs/measured.md's table" check_picture
check "measured times are those of test/bench/RESULTS.md" check_measured
check "links and files named in documents are there" check_links
check "links of the documents in packages, too" check_packaged_links
check "YAML and JSON files can be read" check_yaml
check "scripts that superusers run name what is safe" check_scripts
check "make targets of documents and workflows are there" check_make_targets
if [ -e "$build/gpusort.so" ]; then
	check "only entry points are exported" check_exported_symbols
	check "global names carry the prefix" check_prefixes
	check "the library needs no CUDA to load" check_libraries
fi
if command -v cppcheck >/dev/null; then
	check "cppcheck finds nothing" check_cppcheck
else
	echo "# cppcheck is not installed: static analysis not done"
fi
if command -v musl-gcc >/dev/null; then
	check "all compiles with musl" check_musl
else
	echo "# musl-gcc is not installed: not compiled with musl"
fi
if command -v pgspot >/dev/null; then
	check "pgspot finds nothing in the extension's scripts" check_pgspot
	check "nor in those that superusers run" check_scripts_pgspot
else
	echo "# pgspot is not installed: what scripts call is checked in part"
fi
if command -v clang-format >/dev/null; then
	check "clang-format: C" check_format
	[ ! -e cuda/.clang-format ] || check "clang-format: CUDA" check_cuda_format
else
	echo "# clang-format is not installed: formatting not checked"
fi
exit $status
