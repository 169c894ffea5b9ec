# Staging memory is used up by other sorts: a sort waits for some, for a while,
# and then PostgreSQL does it.

use strict;
use warnings;

use Time::HiRes qw(time);

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('staging_memory', "gpusort.staging_memory = '8MB'\n");

$node->safe_psql('postgres', q(
	CREATE TABLE t (id int, k text COLLATE "C") WITH (parallel_workers = 3);
	INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 100000) AS i;
	CREATE TABLE wide (id int, k text COLLATE "C") WITH (parallel_workers = 3);
	INSERT INTO wide SELECT i, md5(i::text) FROM generate_series(1, 40000) AS i;
	VACUUM (ANALYZE) t, wide;));

is($node->safe_psql('postgres', 'SELECT DISTINCT staging_total >> 20 FROM gpusort_devices'),
	'8', 'staging memory');

my $query = 'SELECT id, k FROM t ORDER BY k;';
my $expected = stock($node, $query);
my $open = 'BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id, k FROM t ORDER BY k; FETCH 1 FROM c;';

# A cursor that is being read holds its session and the pages ahead
sub open_cursors
{
	my @cursors;

	while (@cursors < 8)
	{
		my $cursor = session($node, "$force $serial SET gpusort.wait_timeout = '100ms';");

		push @cursors, $cursor;
		$cursor->query($open);
		last if fallbacks($node) ne '{}';
	}
	return @cursors;
}

sub waits
{
	my ($sort, $what) = @_;

	ok( $node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE pid = $sort->{pid} AND state = 'active' AND wait_event_type = 'Extension')"),
		"$what: waits");
}

#
# As many cursors as there is memory for, and one more
#
stats_reset($node);
my @cursors = open_cursors();
my $last = pop @cursors;

cmp_ok(scalar(@cursors), '>=', 1, 'sorts at once, at least');
cmp_ok(scalar(@cursors), '<=', 4, 'sorts at once, at most');
is(fallbacks($node), '{"staging memory exhausted": 1}', 'one more falls back');
is( $node->safe_psql('postgres', 'SELECT sum(sorts), bool_and(staging_used <= staging_total) FROM gpusort_devices'),
	@cursors . '|t', 'sessions are counted');
$last->query('COMMIT;');
$last->quit;

for my $mode ([ 'serial', $serial ], [ 'parallel', $parallel ])
{
	my ($name, $settings) = @$mode;

	for my $wait (0, 400)
	{
		my $start = time();

		stats_reset($node);
		same_rows($node, "$settings SET gpusort.wait_timeout = $wait;", $query,
			"$name, waits $wait ms: rows", $expected);
		cmp_ok(time() - $start, '>=', $wait / 1000, "$name, waits $wait ms: time");
		is(fallbacks($node), '{"staging memory exhausted": 1}', "$name, waits $wait ms: counted");
	}

	for my $case (
		[ 'cancel', 'pg_cancel_backend', qr/canceling statement due to user request/ ],
		[ 'terminate', 'pg_terminate_backend', qr/terminating connection/ ])
	{
		my ($way, $function, $error) = @$case;
		my $sort = session($node, "$force $settings SET gpusort.wait_timeout = '1h';");

		$sort->send($query);
		waits($sort, "$name, $way");
		$node->safe_psql('postgres', "SELECT $function($sort->{pid})");
		$sort->receive;
		like($sort->errors, $error, "$name, $way: ends the wait");
		$sort->quit;
	}

	# waits, until another one ends
	my $sort = session($node, "$force $settings SET gpusort.wait_timeout = '1h';");

	stats_reset($node);
	$sort->send($query);
	waits($sort, "$name, for another one's end");
	$cursors[-1]->query('CLOSE c; COMMIT;');
	same_order($sort->receive, $expected, "$name, for another one's end: rows");
	is(fallbacks($node), '{}', "$name, for another one's end: on the device");
	$sort->quit;
	$cursors[-1]->query($open);
}

# those that were there first are as they were
same_order($_->query('FETCH FIRST FROM c; FETCH ALL FROM c;'), $expected, 'cursor: rows')
  for @cursors;
$_->quit for @cursors;
released($node, 'after waiting');

#
# Little is left, but enough for a sort: of one large sort that is being read
# and a small one, two chunks remain
#
{
	my $large = session($node, "$force $serial $open");
	my $small = session($node, "$force $serial BEGIN;
		DECLARE c CURSOR FOR SELECT id, k FROM t WHERE id < 10 ORDER BY k; FETCH 1 FROM c;");

	# pages that are read ahead make room for one behind
	my $scroll = session($node, "$force $serial");

	stats_reset($node);
	$scroll->query($open);
	for my $rows (10000, 20000, 40000, 90000)
	{
		$scroll->query("MOVE ABSOLUTE $rows IN c;");
		same_order($scroll->query('FETCH FIRST FROM c; FETCH 9 FROM c;'),
			join("\n", (split /\n/, $expected)[0 .. 9]), "little left, back from row $rows");
	}

	# three pages, of which there is memory for the last two
	my $three = 'SELECT id, k FROM t WHERE id <= 40000 ORDER BY k';
	my $rows = stock($node, "$three;");

	$scroll->query("CLOSE c; DECLARE c SCROLL CURSOR FOR $three;");
	same_order($scroll->query('FETCH ALL FROM c;'), $rows, 'little left, three pages: rows');
	same_order($scroll->query('FETCH ABSOLUTE 0 FROM c; FETCH ALL FROM c;'), $rows,
		'little left, three pages: rows once more');
	is(fallbacks($node), '{}', 'little left, scrolling: on the device');
	$scroll->quit;

	# feeders do not wait for each other, whoever has the chunks
	my $timeout = "SET statement_timeout = '60s'; SET gpusort.wait_timeout = '10s';";
	my $wide = 'SELECT id, k, CASE WHEN id % 500 = 0 THEN repeat(k, 9000) END FROM wide ORDER BY k;';

	for my $mode ([ 'serial', $serial ], [ 'parallel', $parallel ])
	{
		my ($name, $settings) = @$mode;

		same_rows($node, "$settings $timeout", $query, "$name, little left: rows", $expected);
		same_rows($node, "$settings $timeout", $wide, "$name, little left: wide rows");
	}
	is(fallbacks($node), '{}', 'little left: on the device');
	$small->quit;
	$large->quit;
	released($node, 'little left');
}

#
# Workers sort within expressions while the sort that they feed has all the rest
#
{
	my $large = session($node, "$force $serial $open");
	my $timeout = "SET statement_timeout = '60s'; SET gpusort.wait_timeout = '1h';";

	$node->safe_psql('postgres', q(
		CREATE FUNCTION nested(int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
		BEGIN
			RETURN (SELECT i FROM (SELECT i FROM generate_series($1, $1 + 50) AS i ORDER BY i % 7, i OFFSET 3) AS s LIMIT 1);
		END $$;));
	stats_reset($node);
	is( rows_of($node, "$force $timeout SET max_parallel_maintenance_workers = 3; SET maintenance_work_mem = '256MB';",
			'CREATE INDEX n ON wide (nested(id)) WHERE id % 20 = 0;'),
		'', 'workers of an index build that sort');
	is($node->safe_psql('postgres', 'SELECT index_builds FROM gpusort_stats'), '1',
		'workers of an index build that sort: on the device');
	same_rows($node, "$parallel $timeout", 'SELECT nested(id) AS n, id FROM wide WHERE id % 20 = 0 ORDER BY n, id;',
		'workers of a query that sort: rows');
	$large->quit;
	released($node, 'workers that sort');
}

$node->stop;
done_testing();
