#!/bin/sh
# Which indexes has a new glibc or ICU broken?  Asks all databases of a server, by gpusort_collation_repair(),
# which needs neither a GPU nor shared_preload_libraries: only gpusort's files, and a superuser.
#
#	collation.sh [--repair] [-h HOST] [-p PORT] [-U USER]	a running server; PGHOST and the like work as well
#	collation.sh [--repair] --start [-U USER]	a stopped server; the folder PGDATA has its data.  The script starts
#							it, lets nobody else connect, and stops it again
#
# Without --repair it only names what is broken.  With --repair it rebuilds that, and records the new versions.
# A database without the extension has it while this runs, in a schema gpusort_collation.
#
# The image of "make docker" has this command as gpusort-collation, for the volume of a stopped container:
#
#	docker run --rm -v VOLUME:/var/lib/postgresql/data gpusort:17 gpusort-collation --start
#
# (VOLUME:/var/lib/postgresql from PostgreSQL 18 on).  Its PostgreSQL and its Debian must be those of the image
# that goes on with the volume: another Debian has another glibc.
#
# Exit status: 0, nothing is broken, or no longer; 1, something is, or was not checked; 2, it failed.
set -u

die()
{
	echo "collation: $*" >&2
	exit 2
}

start_server()
{
	# process ids do not tell whether a server runs in another container
	[ ! -e "$PGDATA/postmaster.pid" ] ||
		die "the server of $PGDATA runs, or was killed. Stop it; if it was killed, start it before"
	major=$(cat "$PGDATA/PG_VERSION") || die "$PGDATA is no data folder"
	for bin in "$(dirname "$(command -v pg_ctl || echo /)")" "/usr/lib/postgresql/$major/bin" "/usr/pgsql-$major/bin"; do
		[ ! -x "$bin/pg_ctl" ] || break
	done
	[ -x "$bin/pg_ctl" ] || die "there is no pg_ctl of PostgreSQL $major"
	echo 'local all all trust' >"$tmp/hba"
	set -- listen_addresses= port=5432 unix_socket_directories="$tmp" hba_file="$tmp/hba" ssl=off \
		logging_collector=off shared_preload_libraries=gpusort
	"$bin/pg_ctl" -D "$PGDATA" -w -t 600 -l "$tmp/log" -o "$(printf -- '-c %s ' "$@")" start >/dev/null ||
		{ cat "$tmp/log" >&2; die "the server of $PGDATA does not start"; }
	export PGHOST="$tmp" PGPORT=5432 PGUSER="${PGUSER:-${POSTGRES_USER:-postgres}}"
}

finish()
{
	[ -z "$bin" ] || [ ! -e "$PGDATA/postmaster.pid" ] || "$bin/pg_ctl" -D "$PGDATA" -w -t 600 -m fast stop >/dev/null
	rm -rf "$tmp"
}

# psql's messages without its prefix, and without PostgreSQL's own warning, which asks to rebuild everything.
# Leaves a file if something is broken, or was not checked
show()
{
	quiet=off
	# an interrupt is psql's, whose last messages are read
	trap '' HUP INT TERM
	while IFS= read -r line; do
		line=${line#psql:<stdin>:*: }
		case $line in
			*' has a collation version mismatch' | *' has version mismatch' | *' until the server loads it at start')
				quiet=on ;;
			DETAIL:* | HINT:*) ;;
			*) quiet=off ;;
		esac
		[ $quiet = off ] || continue
		printf '%s\n' "$line"
		case $repair,$line in
			*,WARNING:* | *,ERROR:*) : >"$tmp/broken" ;;
			*', none is broken' | *' is not broken') ;;
			off,*' is broken' | off,*' has to be rebuilt') : >"$tmp/broken" ;;
			off,*' is broken: '* | off,*' was not checked: '*) : >"$tmp/broken" ;;
		esac
	done
}

repair=off
start=off
value=
for arg; do
	shift
	case $value$arg in
		=*) set -- "$@" "$arg"; value= ;;
		--repair) repair=on ;;
		--start) start=on ;;
		--help) sed -n '2,/^[^#]/s/^#[[:space:]]\{0,1\}//p' "$0"; exit ;;
		-h | -p | -U) set -- "$@" "$arg"; value="=" ;;
		*) die "unknown argument $arg. It asks all databases; only -h, -p and -U go to psql" ;;
	esac
done
[ -z "$value" ] || die "the last argument has no value"
[ $start = off ] || [ -n "${PGDATA-}" ] || die "PGDATA is not set"
case $start,$* in
	on,*-h\ * | on,*-p\ *) die "-h and -p are not for a server that is started" ;;
esac

if [ $start = on ] && [ "$(id -u)" -eq 0 ]; then
	# PostgreSQL refuses to run as root
	[ $repair = off ] || set -- --repair "$@"
	exec setpriv --reuid="$(stat -c %u "$PGDATA")" --regid="$(stat -c %g "$PGDATA")" --clear-groups \
		sh "$0" --start "$@"
fi

bin=
tmp=$(mktemp -d) || exit 2
trap finish EXIT
trap 'exit 2' HUP INT TERM
[ $start = off ] || start_server

# no setting of a role or database may end this, or make a superuser call somebody's function
export PGOPTIONS="${PGOPTIONS-} -c lc_messages=C -c client_min_messages=notice -c statement_timeout=0 \
	-c search_path=pg_catalog -c default_transaction_read_only=off -c role=none"
ask="psql -XAtq -v ON_ERROR_STOP=1"

# (libpq takes PGDATABASE as it is, but its option as a connection string if it looks like one)
{
	PGDATABASE=${PGDATABASE:-postgres} $ask "$@" -c "SELECT datname FROM pg_database WHERE datallowconn AND datconnlimit <> -2 ORDER BY datname" \
		>"$tmp/databases" || : >"$tmp/failed"
} 2>&1 | show

while IFS= read -r database; do
	echo "== $database"
	{
		PGDATABASE=$database $ask "$@" -v repair=$repair -v start=$start <<'SQL' || : >"$tmp/failed"
-- an earlier run that was killed may have left its schema
SELECT pg_is_in_recovery() AS standby, count(*) = 0 AS missing,
	count(*) = 0 OR bool_or(extnamespace = to_regnamespace('gpusort_collation')) AS ours FROM pg_extension WHERE extname = 'gpusort' \gset
\if :missing
	BEGIN;
	CREATE SCHEMA gpusort_collation;
	CREATE EXTENSION gpusort SCHEMA gpusort_collation;
	COMMIT;
\endif
SELECT extnamespace::regnamespace AS schema FROM pg_extension WHERE extname = 'gpusort' \gset
\if :standby
	SELECT format('index %s %s: %s', index, CASE WHEN broken THEN 'is broken' ELSE 'was not checked' END, detail)
	FROM :schema.gpusort_collation_check() WHERE broken IS NOT FALSE;
\else
	\set ON_ERROR_STOP off
	-- nobody else uses a server that was started for this
	CALL :schema.gpusort_collation_repair(concurrently => NOT :'start', dry_run => NOT :'repair');
	\set ON_ERROR_STOP on
	\if :ours
		DROP EXTENSION gpusort;
		DROP SCHEMA gpusort_collation;
	\endif
\endif
SQL
	} 2>&1 | show
done <"$tmp/databases"

[ ! -e "$tmp/failed" ] || die "not all databases could be asked"
[ ! -e "$tmp/broken" ]
