#!/bin/sh
# Which indexes has a new glibc or ICU broken?  Asks all databases of a server, by gpusort_collation_repair(),
# which needs neither a GPU nor shared_preload_libraries: only gpusort's files, and a superuser.
#
#	collation.sh [--repair] [-h HOST] [-p PORT] [-U USER]	a running server; PGHOST and the like work as well
#	collation.sh [--repair] --start [-U USER]	a stopped server; the folder PGDATA has its data.  The script starts
#							it, lets nobody else connect, and stops it again
#
# Without --repair it only names what is broken.  With --repair it rebuilds that, and records the new versions.
# The databases need no extension, except on a standby.
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
	# pg_ctl gives them to a shell
	quoted=$(printf '%s' "$tmp" | sed "s/'/'\\\\''/g")
	"$bin/pg_ctl" -D "$PGDATA" -w -t 600 -l "$tmp/log" -o "-c listen_addresses= -c port=5432 -c ssl=off \
		-c unix_socket_directories='\"$quoted\"' -c hba_file='$quoted/hba' -c logging_collector=off \
		-c shared_preload_libraries=gpusort" start >/dev/null ||
		{ cat "$tmp/log" >&2; die "the server of $PGDATA does not start"; }
	# nothing else of the caller's says where a server is, or what it must be like
	for variable in $(env | sed -n 's/^\(PG[A-Z]*\)=.*/\1/p'); do
		case $variable in PGDATA | PGUSER | PGOPTIONS) ;; *) unset "$variable" ;; esac
	done
	export PGHOST="$tmp" PGPORT=5432 PGUSER="${PGUSER:-${POSTGRES_USER:-postgres}}"
}

finish()
{
	[ -z "$bin" ] || [ ! -e "$PGDATA/postmaster.pid" ] || "$bin/pg_ctl" -D "$PGDATA" -w -t 600 -m fast stop >/dev/null
	rm -rf "$tmp"
}

# psql's messages, which may have several lines, without its prefix, and without PostgreSQL's own warning, which asks to
# rebuild everything.  Leaves a file if something is broken, or was not checked
show()
{
	# an interrupt is psql's, whose last messages are read
	trap '' HUP INT TERM
	{ cat; echo END:; } | {
		quiet=off
		message=
		while IFS= read -r line; do
			line=${line#psql:<stdin>:*: }
			case $line in
				NOTICE:* | WARNING:* | ERROR:* | FATAL:* | DETAIL:* | HINT:* | END: | psql:* | 'index '* | 'table '* | 'a domain '*) ;;
				*)
					message="$message
$line"
					continue
					;;
			esac
			case $message in
				*' has a collation version mismatch' | *' has version mismatch' | *' until the server loads it at start')
					quiet=on ;;
				DETAIL:* | HINT:*) ;;
				*) quiet=off ;;
			esac
			if [ $quiet = off ] && [ -n "$message" ]; then
				printf '%s\n' "$message"
				case $repair,$message in
					*,WARNING:* | *,ERROR:*) : >"$tmp/broken" ;;
					*', none is broken' | *' is not broken') ;;
					off,*' is broken' | off,*' has to be rebuilt') : >"$tmp/broken" ;;
					*,*' is broken: '* | *,*' was not checked: '*) : >"$tmp/broken" ;;
				esac
			fi
			message=$line
		done
	}
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

# -h names the server: no address of the environment, or of a service there, goes before it
case " $*" in
	*' -h '*) address="?hostaddr=" ;;
	*) address= ;;
esac
# no setting of a role or database may make a superuser call somebody's function.  One that ends sessions, such as
# transaction_timeout, is status 2
export PGOPTIONS="${PGOPTIONS-} -c lc_messages=C -c client_min_messages=notice -c statement_timeout=0 \
	-c search_path=pg_catalog,pg_temp -c default_transaction_read_only=off -c role=none"
ask="psql -XAtq -v ON_ERROR_STOP=1"

# Each database as a URI, which goes before PGDATABASE and before a service of the environment, and its name to be shown
{
	PGDATABASE=${PGDATABASE:-postgres} $ask -F ' ' "$@" -d "postgresql:///$address" >"$tmp/databases" <<'SQL' || : >"$tmp/failed"
SELECT 'postgresql:///' || regexp_replace(encode(convert_to(datname, getdatabaseencoding()), 'hex'), '..', E'%\\&', 'g'),
	regexp_replace(datname, '[[:cntrl:]]', '?', 'g')
FROM pg_database WHERE datallowconn AND datconnlimit <> -2 ORDER BY datname;
SQL
} 2>&1 | show

while IFS=' ' read -r uri name; do
	printf '== %s\n' "$name"
	{
		$ask "$@" -d "$uri$address" -v repair=$repair -v start=$start <<'SQL' || : >"$tmp/failed"
-- nothing can be made on a standby: there only the extension's own view helps
SELECT min(format('%I.%I', n.nspname, c.relname)) AS view
FROM pg_extension AS e JOIN pg_depend AS d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
	JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE e.extname = 'gpusort' AND d.deptype = 'e' AND c.relname = 'gpusort_collation_check' AND pg_is_in_recovery() \gset
\if :{?view}
	SELECT format('%s %s: %s', coalesce('index ' || index, 'table ' || "table", 'a domain'),
		CASE WHEN broken THEN 'is broken' ELSE 'was not checked' END, detail)
	FROM :view WHERE broken IS NOT FALSE;
\else
	-- of this session alone: nobody can put another one in its place, and it ends with the session
	CREATE PROCEDURE pg_temp.repair(concurrently boolean, dry_run boolean)
		LANGUAGE C AS 'gpusort', 'gpusort_collation_repair';
	\set ON_ERROR_STOP off
	-- nobody else uses a server that was started for this
	CALL pg_temp.repair(concurrently => NOT :'start', dry_run => NOT :'repair');
\endif
SQL
	} 2>&1 | show
done <"$tmp/databases"

[ ! -e "$tmp/failed" ] || die "not all databases could be asked"
[ ! -e "$tmp/broken" ]
