# PostGIS: geometries are sorted by their abbreviated keys.  An empty geometry and POINT(0 0) have the abbreviated
# key that compares as equal to all others: such rows are put aside and merged in.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('node');

plan skip_all => 'PostGIS is not installed for this server'
	if !value($node, "SELECT count(*) FROM pg_available_extensions WHERE name = 'postgis'");

$node->safe_psql('postgres', q(
	CREATE EXTENSION postgis;
	CREATE TABLE geo (id int, part int, g geometry);
	INSERT INTO geo SELECT i, i % 3, ST_Point(hashint4(i) % 180, hashint4(i + 1) % 90, 4326) FROM generate_series(1, 20000) AS i;
	-- of one box, so that only the comparison tells them apart
	INSERT INTO geo SELECT 20000 + i, i % 3, ST_SetSRID(ST_GeomFromText(format('LINESTRING(0 0, %s 1, 9 9)', i % 9)), 4326)
		FROM generate_series(1, 2000) AS i;
	INSERT INTO geo SELECT 30000 + i, 1, ST_Buffer(ST_Point(i, i, 4326), 1, 64) FROM generate_series(1, 50) AS i;
	INSERT INTO geo SELECT 40000 + i, 1, NULL FROM generate_series(1, 20) AS i;
	CREATE TABLE hollow AS SELECT * FROM geo;
	INSERT INTO hollow SELECT 50000 + i, 2, 'POINT EMPTY' FROM generate_series(1, 3) AS i;
	INSERT INTO hollow VALUES (60000, 2, 'GEOMETRYCOLLECTION EMPTY');
	INSERT INTO hollow SELECT 60000 + i, i % 3, ST_Point(0, 0, 4326 * (i % 2)) FROM generate_series(1, 40) AS i;
	ANALYZE geo, hollow;));

for my $table ('geo', 'hollow')
{
	for my $order ('g, id', 'g DESC NULLS LAST, id', 'part, g DESC, id', 'g NULLS FIRST, part, id')
	{
		my $query = "SELECT id FROM $table ORDER BY $order";

		for my $settings ("$force $serial", "$force $parallel")
		{
			stats_reset($node);
			same_order(rows_of($node, $settings, $query), stock($node, $query), "$table by $order");
			is(value($node, 'SELECT device_sorts, fallbacks FROM gpusort_stats'), '1|0', 'who sorted');
		}
	}
}

my $distinct = 'SELECT count(DISTINCT g), count(*) FROM geo';
is(rows_of($node, "$force $serial", $distinct), stock($node, $distinct), 'count(DISTINCT)');
my $groups = 'SELECT count(*), min(id) FROM geo GROUP BY g ORDER BY g';
same_order(rows_of($node, "$force $serial SET enable_hashagg = off;", $groups), stock($node, $groups), 'GROUP BY');

# a cursor backward, and where nothing else is equal
my $back = 'BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id FROM hollow ORDER BY g DESC, id; MOVE LAST FROM c; FETCH BACKWARD 300 FROM c;';
same_order(rows_of($node, "$force $serial", $back), stock($node, $back), 'backward');

# an index as PostgreSQL builds it; one with empty geometries is PostgreSQL's
for my $table ('geo', 'hollow')
{
	stats_reset($node);
	$node->safe_psql('postgres', "CREATE EXTENSION IF NOT EXISTS amcheck; SET gpusort.min_rows = 0;
		CREATE INDEX ${table}_g ON $table (g);");
	is(value($node, 'SELECT index_builds, fallbacks FROM gpusort_stats'), $table eq 'geo' ? '1|0' : '0|1', 'who built');
	is(value($node, "SELECT bt_index_check('${table}_g', true)"), '', "index of $table");
}

# the device is lost in the middle
for my $query ('SELECT id FROM geo ORDER BY g, id', 'SELECT id FROM hollow ORDER BY g DESC, id', 'SELECT id FROM hollow ORDER BY g, id')
{
	same_despite($node, [ 'service_append:2', 'service_sort', 'service_fetch:1' ], "$force $serial", $query, 'lost',
		stock($node, $query), '{"device lost": 1}');
}
released($node, 'nothing lost');
$node->stop;
done_testing();
