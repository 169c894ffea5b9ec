# Everything that building and testing gpusort needs on this machine.
#
# check_prerequisites
#	Sets and exports PG_CONFIG.  Packages that are missing are installed where this is
#	Debian or Ubuntu and we are root; otherwise the exact commands are
#	printed and the script ends.  Where nothing is missing nothing is touched,
#	and no network is needed.  build/installed_packages names what it has ever installed; sets
#	installed to what of it is there.
#
# now_and_then
#	Prints of what it reads a line every ten seconds: what a silent command is doing.
#
# PG_CONFIG, if set, names the server to use, and is then never replaced.

pg_major_min=15

# Is there all of a server that a build and a test run need?
pg_config_usable()
{
	local config=$1 bindir pgxs server

	bindir=$("$config" --bindir 2>/dev/null) || return 1
	pgxs=$("$config" --pgxs) || return 1
	server=$("$config" --includedir-server) || return 1
	[ "$(pg_config_major "$config")" -ge $pg_major_min ] || return 1
	[ -x "$bindir/postgres" ] && [ -x "$bindir/initdb" ] && [ -x "$bindir/psql" ] &&
		[ -e "$pgxs" ] && [ -e "$server/postgres.h" ] &&
		[ -x "$(pgxs_root "$config")/src/test/regress/pg_regress" ]
}

# 15 of "PostgreSQL 15.18 (Debian 15.18-0+deb12u1)", 19 of "PostgreSQL 19beta2"
pg_config_major()
{
	"$1" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/'
}

# 150018 of "PostgreSQL 15.18 (Debian 15.18-0+deb12u1)", as PG_VERSION_NUM
pg_config_number()
{
	awk '$2 == "PG_VERSION_NUM" { print $3 }' "$("$1" --includedir-server)"/pg_config.h
}

# The folder that holds PGXS's src/makefiles and src/test
pgxs_root()
{
	local pgxs

	pgxs=$("$1" --pgxs)
	echo "${pgxs%/src/makefiles/pgxs.mk}"
}

# The server on PATH, else the packaged one: 15 before all others, then the newest
find_pg_config()
{
	local candidate

	for candidate in "$(command -v pg_config)" /usr/lib/postgresql/15/bin/pg_config \
		$(ls -d /usr/lib/postgresql/*/bin/pg_config 2>/dev/null | sort -t/ -k5 -rn); do
		if [ -n "$candidate" ] && pg_config_usable "$candidate"; then
			echo "$candidate"
			return 0
		fi
	done
	return 1
}

# Which PostgreSQL to install: the one of which parts are here already,
# else 15 if the distribution has it, else its newest
choose_packaged_major()
{
	local major

	for major in 15 $(ls /usr/lib/postgresql 2>/dev/null | sort -rn); do
		if [ "$major" -ge $pg_major_min ] 2>/dev/null &&
			[ -x "/usr/lib/postgresql/$major/bin/postgres" ]; then
			echo "$major"
			return 0
		fi
	done
	if [ -n "$(apt-cache show postgresql-15 2>/dev/null)" ]; then
		echo 15
		return 0
	fi
	major=$(apt-cache pkgnames postgresql- 2>/dev/null |
		sed -nE 's/^postgresql-([0-9]+)$/\1/p' | sort -rn | head -1)
	[ -n "$major" ] && [ "$major" -ge $pg_major_min ] && echo "$major"
}

# The locales that tests of libc collations want
wanted_locales="en_US de_DE cs_CZ da_DK hu_HU ja_JP ru_RU tr_TR zh_CN"

# Prints the locales that the system lacks
missing_locales()
{
	local locale

	for locale in $wanted_locales; do
		locale -a 2>/dev/null | grep -qixE "$locale\.utf-?8" || echo $locale
	done
}

# Prints the packages that are missing, one a line
missing_packages()
{
	local major

	if [ -z "${PG_CONFIG-}" ] && ! find_pg_config >/dev/null; then
		major=$(choose_packaged_major)
		: "${major:=15}"
		printf '%s\n' "postgresql-$major" "postgresql-server-dev-$major"
	fi
	# from 18 on the server's headers that we need include ICU's; a unit test calls it
	[ -e /usr/include/unicode/ucol.h ] || echo libicu-dev
	command -v gcc >/dev/null || echo gcc
	[ -e /usr/include/stdio.h ] || echo libc6-dev
	command -v make >/dev/null || echo make
	if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
		command -v g++ >/dev/null || echo g++
	fi
	command -v prove >/dev/null || echo perl
	perl -MIPC::Run -e 1 2>/dev/null || echo libipc-run-perl
	perl -MTest::More -MTime::HiRes -e 1 2>/dev/null || echo perl
	if [ -n "$(missing_locales)" ] && [ ! -e /usr/share/i18n/locales/en_US ]; then
		echo locales
	fi
	[ "${want_arm64-}" != yes ] || missing_arm64_packages
}

# What compiles for arm64 and runs that: only continuous integration installs it
missing_arm64_packages()
{
	[ "$(uname -m)" != aarch64 ] || return 0
	command -v aarch64-linux-gnu-gcc >/dev/null || echo gcc-aarch64-linux-gnu
	command -v aarch64-linux-gnu-g++ >/dev/null || echo g++-aarch64-linux-gnu
	[ -e /usr/aarch64-linux-gnu/include/stdio.h ] || echo libc6-dev-arm64-cross
	command -v qemu-aarch64 >/dev/null || echo qemu-user
}

now_and_then()
{
	local line shown=-10 begun=$SECONDS

	while read -r line; do
		if [ $((SECONDS - shown)) -ge 10 ]; then
			echo "   $((SECONDS - begun)) s: ${line:0:90}"
			shown=$SECONDS
		fi
	done
}

no_cluster_folder=/etc/postgresql-common/createcluster.d

# Without the cluster that Debian's packages of a server make and start.  A subshell, whose traps remove
# the setting however it ends
install_packages()
(
	set -o pipefail
	folder=$no_cluster_folder
	trap 'rm -f $folder/gpusort.conf; rmdir -p --ignore-fail-on-non-empty $folder' EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	mkdir -p $folder && echo 'create_main_cluster = false' >$folder/gpusort.conf || exit 1
	DEBIAN_FRONTEND=noninteractive "$@" -q -o DPkg::Lock::Timeout=300 | now_and_then
)

update_lists()
{
	echo "== apt-get update"
	(set -o pipefail; apt-get update -q | now_and_then)
}

check_prerequisites()
{
	local packages install list=$root/build/installed_packages

	if [ -n "${PG_CONFIG-}" ] && ! pg_config_usable "$PG_CONFIG"; then
		echo "PG_CONFIG=$PG_CONFIG is not a whole PostgreSQL of $pg_major_min or later:" >&2
		echo "needed are the server, its headers, and PGXS with pg_regress." >&2
		exit 1
	fi

	packages=$(missing_packages | sort -u | tr '\n' ' ')
	install="apt-get install -y --no-install-recommends $packages"

	if [ -n "$packages" ]; then
		if ! command -v apt-get >/dev/null; then
			echo "Missing: $packages" >&2
			echo "(names as on Debian; or set PG_CONFIG to a PostgreSQL of your own)" >&2
			exit 1
		fi
		if [ "$(id -u)" -ne 0 ]; then
			echo "Something is missing. As root, install it with:" >&2
			echo >&2
			case $packages in
				*postgresql-[0-9]*)
					echo "    # the new server needs no cluster of its own" >&2
					echo "    mkdir -p $no_cluster_folder" >&2
					echo "    echo 'create_main_cluster = false' >$no_cluster_folder/gpusort.conf" >&2
					install+="; rm $no_cluster_folder/gpusort.conf"
					;;
			esac
			echo "    apt-get update" >&2
			echo "    $install" >&2
			echo >&2
			exit 1
		fi
	fi

	if [ -n "$packages" ]; then
		# Without package lists, or with old ones, names and files are wrong
		if ! apt-cache show $packages >/dev/null 2>&1; then
			update_lists || exit 1
			packages=$(missing_packages | sort -u | tr '\n' ' ')
			install="apt-get install -y --no-install-recommends $packages"
		fi
		echo "== Installing what is missing, which takes a minute or more"
		echo "$install"
		install_packages $install || { update_lists && install_packages $install; } || exit 1
		mkdir -p "${list%/*}"
		printf '%s\n' $packages >>"$list"
	fi
	installed=$(sort -u "$list" 2>/dev/null | while read -r packages; do
		dpkg -s "$packages" >/dev/null 2>&1 && printf '%s ' "$packages"
	done)

	if [ -z "${PG_CONFIG-}" ] && ! PG_CONFIG=$(find_pg_config); then
		echo "No whole PostgreSQL of $pg_major_min or later was found; set PG_CONFIG." >&2
		exit 1
	fi
	export PG_CONFIG
}
