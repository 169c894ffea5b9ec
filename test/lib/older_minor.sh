#!/bin/sh
# Fetches an older minor version of Debian's PostgreSQL.  The archive keeps the version of the last point release
# beside the version of the last security update.
#
#	older_minor.sh PG_CONFIG DIR	unpacks it in DIR, and prints its pg_config; prints nothing if PG_CONFIG is of
#									no package, or if there is no other version
set -u

bindir=$("$1" --bindir)
major=${bindir#/usr/lib/postgresql/}
major=${major%/bin}
[ "$bindir" = "/usr/lib/postgresql/$major/bin" ] && command -v apt-get >/dev/null || exit 0
version=$(apt-cache madison "postgresql-server-dev-$major" 2>/dev/null | awk -F' *[|] *' '/ Packages$/ { print $2 }' | sort -V | head -1)
[ -n "$version" ] && [ "$version" != "$(dpkg-query -W -f '${Version}' "postgresql-server-dev-$major" 2>/dev/null)" ] || exit 0

rm -rf "$2"
mkdir -p "$2" && cd "$2" || exit 0
for package in postgresql postgresql-client postgresql-server-dev; do
	apt-get download -q "$package-$major=$version" >/dev/null 2>&1 || exit 0
done
for file in *.deb; do
	dpkg -x "$file" . || exit 0
done
rm -f ./*.deb
echo "$2$bindir/pg_config"
