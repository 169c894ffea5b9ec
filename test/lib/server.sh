# Private PostgreSQL servers in a temporary directory, run by an ordinary user.
#
# Nothing here touches the system's installation.  The server's programs,
# libraries and shared files are copied below $work/install, under their own
# absolute paths: PostgreSQL finds its files relative to its programs, so the
# copy is a whole installation, and "make install DESTDIR=$work/install" puts
# the extension into it.
#
#	make_work_dir			sets work, goes there, and removes it when the script ends; makes locales
#							that the system lacks there (prerequisites.sh says which)
#	copy_server PG_CONFIG	copies a server
#	make_private_install	copies the server that PG_CONFIG names
#	start_server NAME CONF...	initdb, start; sets PGHOST, PGPORT (server_port, or 5432), PGUSER, PGDATABASE
#	wait_for_device NAME	until gpusort's service is ready, or has no device
#	stop_server NAME
#	as_user COMMAND...		runs COMMAND as the user that servers belong to
#	interruptible COMMAND...	runs COMMAND so that a signal to us ends it at once
#
# Sets: work, run (what that user may write), bindir, pkglibdir (in the copy).

# PostgreSQL refuses to run as root.  (as_user closes descriptor 9, which may
# hold run.sh's lock: a server that is left behind must not hold it.)
choose_user()
{
	server_user=
	if [ "$(id -u)" -eq 0 ]; then
		server_user=${GPUSORT_TEST_USER-postgres}
		if ! id "$server_user" >/dev/null 2>&1; then
			server_user=gpusort_test
			if ! id "$server_user" >/dev/null 2>&1; then
				echo "== creating the system user $server_user, because PostgreSQL refuses to run as root"
				useradd --system --user-group --no-create-home --home-dir /nonexistent \
					--shell /usr/sbin/nologin "$server_user" || exit 1
			fi
		fi
	fi
}

as_user()
{
	if [ -n "$server_user" ]; then
		setpriv --reuid="$server_user" --regid="$(id -gn "$server_user")" --init-groups \
			env HOME="$run" USER="$server_user" LOGNAME="$server_user" "$@" 9>&-
	else
		"$@" 9>&-
	fi
}

interruptible()
{
	local status

	"$@" &
	child=$!
	wait "$child"
	status=$?
	child=
	return $status
}

make_work_dir()
{
	local var

	# nothing of the caller's may reach our servers
	for var in $(env | sed -nE "s/^(PG[A-Z]+|LC_[A-Z]+|LANGUAGE|LOCPATH)=.*/\1/p"); do
		unset "$var"
	done
	# PostgreSQL's test modules take LC_ALL away; initdb then takes the encoding from LANG
	export LC_ALL=C LANG=C.UTF-8

	choose_user
	work=$(mktemp -d "${TMPDIR:-/tmp}/gpusort.XXXXXX") || exit 1
	trap clean_up EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	run=$work/run
	chmod 755 "$work"
	mkdir "$run"
	[ -z "$server_user" ] || chown "$server_user:" "$run"
	# the sources may lie where that user cannot go
	cd "$work" || exit 1
	[ -z "$(missing_locales)" ] || make_locales
}

# Locales that the system lacks, in our own folder.  Where LOCPATH is set glibc does not look into the
# system's archive of locales: so all that are wanted.  "locale -a", of which initdb makes collations,
# does not know of LOCPATH
make_locales()
{
	echo "== making locales that the system lacks, which takes a minute or more: $wanted_locales"
	mkdir "$work/locales" "$work/bin"
	printf '%s\n' $wanted_locales |
		xargs -P "$(nproc)" -I{} sh -c 'localedef -i {} -f UTF-8 "$0/{}.utf8" && echo {}' "$work/locales" | now_and_then
	[ "$(ls "$work/locales" | wc -l)" -eq "$(wc -w <<<"$wanted_locales")" ] || exit 1
	printf '#!/bin/sh\n%s "$@"\n[ "$*" != -a ] || ls "%s"\n' "$(command -v locale)" "$work/locales" >"$work/bin/locale"
	chmod -R a+rX "$work/locales" "$work/bin"
	chmod a+x "$work/bin/locale"
	export LOCPATH=$work/locales PATH=$work/bin:$PATH
}

# End a process and all that it started
kill_tree()
{
	local child

	for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
		kill_tree "$child"
	done
	kill -TERM "$1" 2>/dev/null
}

# Also ends the commands (child, ticker) and the servers that an interruption has left
clean_up()
{
	local status=$? file pid

	trap '' HUP INT TERM
	trap - EXIT
	[ -z "${ticker-}" ] || kill_tree "$ticker"
	if [ "$status" -gt 128 ] && [ -n "${child-}" ]; then
		for pid in $child; do
			kill_tree "$pid"
			wait "$pid" 2>/dev/null
		done
	fi
	for file in $(find "$run" -name postmaster.pid 2>/dev/null); do
		pid=$(head -1 "$file" 2>/dev/null)
		# only if that process still is the server of this directory
		if [ -n "$pid" ] && [ "$(readlink "/proc/$pid/cwd")" = "$(dirname "$file")" ]; then
			kill -QUIT "$pid" 2>/dev/null
			for _ in $(seq 50); do
				kill -0 "$pid" 2>/dev/null || break
				sleep 0.1
			done
		fi
	done
	# leave the directory before it goes
	cd /
	rm -rf "$work"
	exit "$status"
}

copy_server()
{
	local dir

	for dir in "$("$1" --bindir)" "$("$1" --pkglibdir)" "$("$1" --sharedir)"; do
		mkdir -p "$work/install$dir"
		tar -C "$dir" --exclude=./bitcode --exclude=./man --exclude='./gpusort*' \
			--exclude='./extension/gpusort*' -cf - . |
			tar -C "$work/install$dir" -xf - || return 1
	done
}

make_private_install()
{
	bindir=$work/install$("$PG_CONFIG" --bindir)
	pkglibdir=$work/install$("$PG_CONFIG" --pkglibdir)
	copy_server "$PG_CONFIG" || return 1
	if [ "$("$bindir/pg_config" --pkglibdir)" != "$pkglibdir" ]; then
		echo "the copy of PostgreSQL in $work/install does not find its own files" >&2
		return 1
	fi
	chmod -R a+rX "$work/install"
}

start_server()
{
	local name=$1 data=$run/$1
	shift

	if [ ! -e "$data/PG_VERSION" ]; then
		as_user "$bindir/initdb" -D "$data" -U postgres -E UTF8 --no-locale -A trust -N \
			>"$work/initdb-$name.log" 2>&1 || { cat "$work/initdb-$name.log" >&2; return 1; }
		as_user tee -a "$data/postgresql.conf" >/dev/null <<-CONF
			listen_addresses = ''
			unix_socket_directories = '$run'
			port = ${server_port:-5432}
			fsync = off
		CONF
	fi
	[ $# -eq 0 ] || printf '%s\n' "$@" | as_user tee -a "$data/postgresql.conf" >/dev/null
	if ! as_user "$bindir/pg_ctl" -D "$data" -l "$data.log" -w -t 60 start >/dev/null 2>&1; then
		echo "the server does not start:" >&2
		as_user tail -30 "$data.log" >&2
		return 1
	fi
	export PGHOST=$run PGPORT=${server_port:-5432} PGUSER=postgres PGDATABASE=postgres
	PATH=$bindir:$PATH
}

# The service opens its device soon after the server has started
wait_for_device()
{
	local name=$1

	for _ in $(seq 300); do
		as_user grep -qE 'gpusort sorts on|gpusort has no device' "$run/$name.log" && return
		sleep 0.1
	done
}

stop_server()
{
	as_user "$bindir/pg_ctl" -D "$run/$1" -m fast -w -t 60 stop >/dev/null
}
