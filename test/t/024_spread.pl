# One sort on several devices: what outgrows a device's memory goes on on another one,
# runs stay where they were sorted, and ranges of them are sorted on all.
# They are the same device, opened three times.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('spread', "gpusort.devices = '0,0,0'\ngpusort.device_memory = '20MB'\n"
	  . "gpusort.wait_timeout = '60s'\n");

# t and few are larger than one device's memory and smaller than three; huge is larger
$node->safe_psql('postgres', q(
	CREATE EXTENSION amcheck;
	CREATE EXTENSION pageinspect;
	CREATE TABLE t (id int, k text COLLATE "C", e text COLLATE "en_US", f int8, v text) WITH (parallel_workers = 3);
	INSERT INTO t SELECT i, md5(i::text), CASE WHEN i % 100 = 0 THEN NULL ELSE upper(left(md5((i / 3)::text), 4)) || '-' || md5(i::text) END,
			hashint8(i), repeat(chr(65 + i % 26), 400)
		FROM generate_series(1, 60000) AS i;
	CREATE TABLE few (id int, k int, v text) WITH (parallel_workers = 3);
	INSERT INTO few SELECT i, i % 3, repeat(chr(65 + i % 26), 400) FROM generate_series(1, 60000) AS i;
	CREATE TABLE huge (id int, k text COLLATE "C", v text) WITH (parallel_workers = 3);
	INSERT INTO huge SELECT i, md5(i::text), repeat(chr(65 + i % 26), 700) FROM generate_series(1, 100000) AS i;
	CREATE SEQUENCE s;
	VACUUM (ANALYZE) t, few, huge;));

sub value
{
	return $node->safe_psql('postgres', $_[0]);
}

# all of the row is sorted, little is printed
sub query_of
{
	my ($table, $order) = @_;

	return "SELECT id, left(v, 3) FROM (SELECT id, v FROM $table ORDER BY $order OFFSET 0) AS s";
}

my $query = query_of('t', 'k');
my $expected = stock($node, "$query;");
my $huge = query_of('huge', 'k');
my $expected_huge = stock($node, "$huge;");

# Is the query spread, with the same rows, and does nothing fall back?
sub spreads
{
	my ($settings, $sql, $what, $rows, $files) = @_;

	stats_reset($node);
	same_rows($node, $settings, "$sql;", "$what: rows", $rows);
	is(value('SELECT spread_sorts, spilled_sorts, fallback_reasons FROM gpusort_stats'), '1|' . ($files // 0) . '|{}',
		"$what: spread" . ($files ? ', files' : ', no files'));
	released($node, $what);
}

#
# Kinds of keys
#
for my $way ([ 'serial', $serial ], [ 'parallel', $parallel ])
{
	my ($name, $settings) = @$way;

	spreads($settings, $query, "text, $name", $expected);
	spreads($settings, query_of('t', 'k DESC'), "text descending, $name");
	spreads($settings, query_of('t', 'f, id'), "fixed width, $name");
	spreads($settings, query_of('few', 'k, id DESC'), "few first keys, $name");

	# proven ranges are written
	spreads($settings, query_of('t', 'e, id'), "en_US, $name", undef, 1);
}

# the answer does not depend on the order of equal keys
for my $order ('k', '1')
{
	stats_reset($node);
	same_rows($node, $serial, "SELECT k, count(*), sum(id), count(DISTINCT v) FROM (SELECT * FROM few ORDER BY $order, v OFFSET 0) AS s GROUP BY k ORDER BY k;",
		"equal keys, ORDER BY $order");
}

like(rows_of($node, "$force $serial", "EXPLAIN (ANALYZE) $query;"), qr/ Device: \w+ [0-2], [0-2].*^ +Spread: [2-9] runs on devices, \d+ ranges$/ms,
	'EXPLAIN names the devices');
like(rows_of($node, "$force $serial", "EXPLAIN (ANALYZE, FORMAT JSON) $query;"),
	qr/"Device Numbers": \["[0-2]", "[0-2]".*"Runs On Devices": [2-9],\s+"Ranges": \d+/s, 'EXPLAIN in JSON');

$node->stop;
done_testing();
