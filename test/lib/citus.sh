# Citus in the private installation, for test/t/compat_citus.pl and test/bench/cluster.sh.
#
# citus_missing PG_CONFIG
#	Prints why there is no Citus for that server; nothing where there is one: the server has
#	it, as where a package has installed it, or CITUS_SRC names a folder of its sources.
# install_citus PG_CONFIG DIR
#	Builds CITUS_SRC in DIR, where it stays for the next time, and installs it below
#	$work/install.  Neither CITUS_SRC nor the server is written to.  A server that has
#	Citus was copied with it.
#
#	CITUS_SRC=/path/to/citus PG_CONFIG=/usr/lib/postgresql/17/bin/pg_config test/run.sh tap/compat_citus
#
# Citus 14 builds with PostgreSQL 16 to 18 and the headers of libpq and OpenSSL, in 2 minutes on two cores;
# the test takes as long.  Citus is under the AGPL: nothing of it is part of gpusort.

server_has_citus()
{
	[ -e "$("$1" --sharedir)/extension/citus.control" ]
}

citus_missing()
{
	if ! server_has_citus "$1" && [ -z "${CITUS_SRC-}" ]; then
		echo "there is no Citus: CITUS_SRC is not set"
	fi
}

build_citus()
{
	local config=$1 dir=$2 source stamp

	source=$(cd "$CITUS_SRC" && pwd) && [ -x "$source/configure" ] || {
		echo "CITUS_SRC=$CITUS_SRC is no folder of Citus's sources"
		return 1
	}
	# another server, or other sources
	stamp="$("$config" --version) $("$config" --pkglibdir) $source $(cksum <"$source/configure")"
	if [ "$(cat "$dir/stamp" 2>/dev/null)" != "$stamp" ]; then
		rm -rf "$dir"
		mkdir -p "$dir"
		# the folder may have been built for another server, which leaves files everywhere
		tar -C "$source" --exclude=.git --exclude='*.o' --exclude='*.so' --exclude='*.bc' --exclude='*.a' \
			--exclude=Makefile.global --exclude=config.status --exclude=.deps -cf - . | tar -C "$dir" -xf - &&
			(cd "$dir" && ./configure PG_CONFIG="$config" --without-libcurl --without-lz4 --without-zstd) &&
			echo "$stamp" >"$dir/stamp" || return 1
	fi
	make -C "$dir" -j"$(nproc)" with_llvm=no &&
		make -C "$dir" install with_llvm=no DESTDIR="$work/install"
}

install_citus()
{
	server_has_citus "$1" || interruptible build_citus "$1" "$2" || return 1
	chmod -R a+rX "$work/install"
}
