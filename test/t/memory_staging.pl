# Staging memory is used up by other sorts: a sort waits for some, for a while,
# and then PostgreSQL does it.

use strict;
use warnings;

use Time::HiRes qw(time);

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('staging_memory', "gpusort.staging_memory = '8MB'\n", rows => 100000);

$node->safe_psql('postgres', q(
	CREATE TABLE wide (id int, k text COLLATE "C") WITH (parallel_workers = 3);
	INSERT INTO wide SELECT i, md5(i::text) FROM generate_series(1, 40000) AS i;
	VACUUM (ANALYZE) wide;));

is(value($node, 'SELECT DISTINCT staging_total >> 20 FROM gpusort_devices'), '8', 'staging memory');

my $query = 'SELECT id, k FROM t ORDER BY k;';
my $expected = stock($node, $query);

# A sort that is being fed holds its chunks: its last row waits for a lock
my $locks = session($node);

sub block
{
	my ($session, $table) = @_;

	$locks->query("SELECT pg_advisory_lock($session->{pid});");
	$session->send("BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id, k FROM $table
		WHERE id < (SELECT max(id) FROM $table) OR pg_advisory_xact_lock_shared($session->{pid}) IS NOT NULL
		ORDER BY k; FETCH 1 FROM c;");
	$node->poll_query_until('postgres', "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $session->{pid}")
	  or die 'the sort does not wait for its lock';
}

sub unblock
{
	my ($session) = @_;

	$locks->query("SELECT pg_advisory_unlock($session->{pid});");
	$session->receive;
}

sub finish
{
	my ($session) = @_;

	unblock($session);
	$session->quit;
}

sub block_all
{
	my @sorts;

	while (@sorts < 8)
	{
		my $sort = session($node, "$force $serial SET gpusort.wait_timeout = '100ms';");

		push @sorts, $sort;
		block($sort, 't');
		last if fallbacks($node) ne '{}';
	}
	return @sorts;
}

#
# As many sorts as there is memory for, and one more
#
stats_reset($node);
my @sorts = block_all();
my $last = pop @sorts;

cmp_ok(scalar(@sorts), '>=', 1, 'sorts at once, at least');
cmp_ok(scalar(@sorts), '<=', 4, 'sorts at once, at most');
is(fallbacks($node), '{"staging memory exhausted": 1}', 'one more falls back');
is(value($node, 'SELECT sum(sorts), bool_and(staging_used <= staging_total) FROM gpusort_devices'), @sorts . '|t', 'sessions are counted');
finish($last);

for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	for my $wait (0, 400)
	{
		my $start = time();

		same_counted($node, "$settings SET gpusort.wait_timeout = $wait;", $query,
			"$name, waits $wait ms", $expected, '{"staging memory exhausted": 1}');
		cmp_ok(time() - $start, '>=', $wait / 1000, "$name, waits $wait ms: time");
	}

	for my $way ('cancel', 'terminate')
	{
		my ($end, $error) = @{ $ways{$way} };
		my $sort = session($node, "$force $settings SET gpusort.wait_timeout = '1h';");

		$sort->send($query);
		waits($node, $sort, "$name, $way");
		$end->($node, $sort);
		$sort->receive;
		like($sort->errors, $error, "$name, $way: ends the wait");
		$sort->quit;
	}

	# waits, until another one ends
	my $sort = session($node, "$force $settings SET gpusort.wait_timeout = '1h';");

	stats_reset($node);
	$sort->send($query);
	waits($node, $sort, "$name, for another one's end");
	unblock($sorts[-1]);
	$sorts[-1]->query('CLOSE c; COMMIT;');
	same_order($sort->receive, $expected, "$name, for another one's end: rows");
	is(fallbacks($node), '{}', "$name, for another one's end: on the device");
	cmp_ok(value($node, 'SELECT staging_wait_ms FROM gpusort_stats'), '>', 0, "$name, for another one's end: the wait is counted");
	$sort->quit;
	block($sorts[-1], 't');
}

# those that were there first are as they were
for my $sort (@sorts)
{
	unblock($sort);
	same_order($sort->query('FETCH FIRST FROM c; FETCH ALL FROM c;'), $expected, 'cursor: rows');
	$sort->quit;
}
released($node, 'after waiting');

#
# Little is left, but enough for a sort, beside one that is being fed
#
{
	my $large = session($node, "$force $serial");

	block($large, 't');
	stats_reset($node);

	# pages that are read ahead make room for one behind
	my ($scroll) = cursor($node, 'SELECT id, k FROM t ORDER BY k', 1, scroll => 'SCROLL');

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
	my $timeout = "SET statement_timeout = '150s'; SET gpusort.wait_timeout = '60s';";
	my $wide = 'SELECT id, k, CASE WHEN id % 500 = 0 THEN repeat(k, 9000) END FROM wide ORDER BY k;';

	for my $mode (@modes)
	{
		my ($name, $settings) = @$mode;

		same_rows($node, "$settings $timeout", $query, "$name, little left: rows", $expected);
		same_rows($node, "$settings $timeout", $wide, "$name, little left: wide rows");
	}
	is(fallbacks($node), '{}', 'little left: on the device');
	finish($large);
	released($node, 'little left');
}

#
# Many small sorts at once wait for each other, each in its turn
#
{
	my $script = $node->basedir . '/small.sql';

	$node->safe_psql('postgres', q(
		CREATE TABLE small (id int, k text COLLATE "C") WITH (parallel_workers = 2);
		INSERT INTO small SELECT i, md5(i::text) FROM generate_series(1, 5000) AS i;
		ANALYZE small;));
	for my $mode (@modes)
	{
		my ($name, $settings) = @$mode;

		append_to_file($script, "$force $settings SET gpusort.wait_timeout = '60s';\nSELECT id, k FROM small ORDER BY k;\n");
		stats_reset($node);
		$node->command_ok([ 'pgbench', '-n', '-c', '64', '-t', '2', '-f', $script, 'postgres' ],
			"$name, 64 sessions");
		is(value($node, 'SELECT device_sorts, fallbacks FROM gpusort_stats'), '128|0', "$name, 64 sessions: on the device");
		unlink $script;
		released($node, "$name, 64 sessions");
	}
}

#
# Workers sort within expressions while the sort that they feed has all the rest
#
{
	my $large = session($node, "$force $serial");
	my $timeout = "SET statement_timeout = '150s'; SET gpusort.wait_timeout = '1h';";

	$node->safe_psql('postgres', q(
		CREATE FUNCTION nested(int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
		BEGIN
			RETURN (SELECT i FROM (SELECT i FROM generate_series($1, $1 + 50) AS i ORDER BY i % 7, i OFFSET 3) AS s LIMIT 1);
		END $$;));
	block($large, 't');
	stats_reset($node);
	is( rows_of($node, "$force $timeout SET max_parallel_maintenance_workers = 3; SET maintenance_work_mem = '256MB';",
			'CREATE INDEX n ON wide (nested(id)) WHERE id % 20 = 0;'),
		'', 'workers of an index build that sort');
	is(value($node, 'SELECT index_builds FROM gpusort_stats'), '1', 'workers of an index build that sort: on the device');
	same_rows($node, "$parallel $timeout", 'SELECT nested(id) AS n, id FROM wide WHERE id % 20 = 0 ORDER BY n, id;',
		'workers of a query that sort: rows');
	finish($large);
	released($node, 'workers that sort');
}

#
# A session whose own cursors hold all of it waits once, and not again for each cursor
#
{
	my $cursors = session($node, "$force $serial SET gpusort.min_rows = 0; SET gpusort.wait_timeout = '50ms'; BEGIN;");

	stats_reset($node);
	for my $n (1 .. 400)
	{
		$cursors->query("DECLARE c$n CURSOR FOR SELECT id, k FROM wide WHERE id < 200 + $n ORDER BY md5(k); FETCH 1 FROM c$n;");
	}
	my ($count, $ms) = split /\|/, value($node, q(
		SELECT (SELECT sum(count) FROM gpusort_stat_reasons WHERE reason = 'staging memory exhausted'), staging_wait_ms FROM gpusort_stats));
	cmp_ok($count, '>', 20, 'cursors find no staging memory');
	cmp_ok($ms, '<', 25 * $count, 'few of them wait for it');
	$cursors->quit;
	released($node, 'cursors of a session');
}

$locks->quit;
$node->stop;
done_testing();
