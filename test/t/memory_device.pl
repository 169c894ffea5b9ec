# The device has no memory for a sort's rows: they are written out; or, where the device
# refuses for other reasons, those it holds come back, and PostgreSQL ends the sort.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('device_memory', "gpusort.device_memory = '32MB'\n", rows => 60000);

is(value($node, 'SELECT DISTINCT memory_limit >> 20 FROM gpusort_devices'), '32', 'limit of the device');

# wide: rows beyond what a chunk takes among short ones; large: more than fits
$node->safe_psql('postgres', q(
	CREATE TABLE wide (id int, k text COLLATE "C", v text) WITH (parallel_workers = 3);
	INSERT INTO wide SELECT i, md5(i::text), repeat(md5(i::text), i % 2000 / 1999 * 9000)
		FROM generate_series(1, 40000) AS i;
	CREATE TABLE large (id int, k text COLLATE "C", v text) WITH (parallel_workers = 3);
	INSERT INTO large SELECT i, md5(i::text), repeat(chr(65 + i % 26), 500)
		FROM generate_series(1, 120000) AS i;
	VACUUM (ANALYZE) wide, large;));

# a value that is stored outside its row is part of a sorted row only where it
# was computed
my @queries = (
	[ 'short rows', 'SELECT id, k FROM t ORDER BY k;' ],
	[ 'wide rows', q(SELECT id, k, v || '' FROM wide ORDER BY k;) ]);
my %expected = map { $_->[0] => stock($node, $_->[1]) } @queries;

for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	for (@queries)
	{
		my ($rows, $query) = @$_;

		same_despite($node, [ 'device_memory', 'device_memory:2', 'device_memory:4', 'device_memory_sort' ], $settings, $query,
			"$name, $rows", $expected{$rows}, '{"device memory exhausted": 1}');
		same_counted($node, $settings, $query, "$name, $rows", $expected{$rows});
		released($node, "$name, $rows");
	}

	# 70 MB of rows on a device that takes 32 MB
	my $large = 'SELECT id, k, v FROM large ORDER BY k';

	stats_reset($node);
	same_order(
		rows_of($node, "$force $settings", "BEGIN; DECLARE c CURSOR FOR $large; FETCH 20 FROM c;"),
		stock($node, "$large LIMIT 20;"), "$name, cursor over more than fits: first rows");
	same_rows($node, $settings, "$large;", "$name, more than fits: rows");
	is(value($node, 'SELECT spilled_sorts, fallbacks FROM gpusort_stats'), '2|0', "$name, more than fits: written out");
	released($node, "$name, more than fits");

	# the service itself has taken no harm
	same_counted($node, $settings, $queries[0][1], "$name: rows afterwards", $expected{'short rows'});
}

# EXPLAIN tells
fault($node, 'device_memory:3');
like(rows_of($node, "$force $serial", 'EXPLAIN (ANALYZE) SELECT id, k FROM t ORDER BY k;'),
	qr/Device: none \(fallback\)\n.*Fallback Reason: device memory exhausted\n.*Sort Method: \S/,
	'EXPLAIN ANALYZE tells the reason');
fault($node, undef);

# A sort that is written out beside one that is not
{
	my ($cursor, $got) = cursor($node, 'SELECT id, k FROM t ORDER BY k', 100);

	same_counted($node, $serial, 'SELECT id, k, v FROM large ORDER BY k;', 'beside another sort');
	read_rest($cursor, $got, $expected{'short rows'}, 'the other sort');
	released($node, 'two sorts');
}

# A reload changes the limit, to at most what the device has, and on the host device less; sorts that hold more keep it
sub set_limit
{
	my ($value, $limit_mb) = @_;
	my $most = "CASE kind WHEN 'host' THEN memory_total / 10 * 9 ELSE memory_total END";
	my $limit = $limit_mb > 0 ? "memory_limit = least(${limit_mb}::bigint << 20, $most)" : 'memory_limit >> 20 > 64';

	$node->safe_psql('postgres', "ALTER SYSTEM SET gpusort.device_memory = '$value'");
	$node->reload;
	becomes($node, "bool_and($limit) FROM gpusort_devices", "limit is set to $value");
}
{
	my $query = 'SELECT id, k FROM t ORDER BY k';
	my ($cursor, $got) = cursor($node, $query, 100);

	set_limit('1MB', 1);
	is(value($node, 'SELECT bool_or(memory_used > memory_limit) FROM gpusort_devices'), 't', 'a sort holds more than the new limit');
	same_counted($node, $serial, "$query;", 'low limit', $expected{'short rows'}, '{"device memory exhausted": 1}');
	read_rest($cursor, $got, $expected{'short rows'}, 'the sort that holds more');
	released($node, 'low limit');

	set_limit('256MB', 256);
	same_counted($node, $serial, 'SELECT id, k, v FROM large ORDER BY k;', 'high limit');
	set_limit('0', 0);
	released($node, 'high limit');
}

# A limit that the device does not have is reported, at a reload and at a start
{
	my $report = qr/LOG:  gpusort\.device_memory is larger than the memory of (?:the )?device(?: 0)?\n.*DETAIL:  The setting is 16777216 MB; the device has \d+ MB, and sorts may hold \d+ MB\.\n.*HINT:  Lower/;
	my $log = -s $node->logfile;

	set_limit('16TB', 16777216);
	ok(eventually(sub { slurp_file($node->logfile, $log) =~ $report }), 'reload: too high a limit is reported');
	like(value($node, 'SELECT message FROM gpusort_devices'), qr/^gpusort\.device_memory is 16777216 MB, but sorts may hold \d+ MB$/,
		'too high a limit: message');
	$log = -s $node->logfile;
	$node->restart;
	wait_ready($node);
	ok(eventually(sub { slurp_file($node->logfile, $log) =~ $report }), 'start: too high a limit is reported');
	$log = -s $node->logfile;
	set_limit('256MB', 256);
	$node->restart;
	wait_ready($node);
	unlike(slurp_file($node->logfile, $log), $report, 'a limit that the device has is not reported');
	is(value($node, 'SELECT message FROM gpusort_devices'), '', 'a limit that the device has: no message');

	my $error = rows_of($node, '', "ALTER SYSTEM SET gpusort.device_memory = '999TB';");
	like($error, qr/is outside the valid range for parameter "gpusort\.device_memory"/, 'no device has 999 TB');
}

$node->stop;
done_testing();
