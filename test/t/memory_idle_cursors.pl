# Cursors that nobody reads from hold no staging memory, and one role's sorts leave some to others',
# however many there are.

use strict;
use warnings;

use Test::More;

use GpusortTest;

my $node = new_server('idle_cursors', "gpusort.staging_memory = '8MB'\n", rows => 100000);

$node->safe_psql('postgres', q(
	CREATE ROLE hog LOGIN;
	CREATE ROLE other LOGIN;
	GRANT SELECT ON t TO hog, other;));

my $query = 'SELECT id, k FROM t ORDER BY k';
my $expected = stock($node, "$query;");
my @expected = split /\n/, $expected;
my @all;

sub session_of
{
	my ($role, $settings) = @_;
	my $session;

	{
		local $ENV{PGUSER} = $role;
		$session = session($node, "$force $serial SET statement_timeout = '150s'; $settings");
	}
	push @all, $session;
	return $session;
}

sub nothing_held
{
	my ($what) = @_;

	becomes($node, 'max(staging_used) = 0 FROM gpusort_devices', "$what: no staging memory is held");
}

# Another role's sort, which does not wait
sub other_sorts
{
	my ($what) = @_;
	my $session = session_of('other', 'SET gpusort.wait_timeout = 0;');

	stats_reset($node);
	same_order($session->query("$query;"), $expected, "$what: another role's rows");
	is(fallbacks($node), '{}', "$what: another role's sort is on the device");
	$session->quit;

	# the next one does not wait, either
	$node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM gpusort_activity WHERE usename = 'other')")
	  or die 'the sort is not closed';
}

#
# More cursors than chunks, of one session and of several
#
{
	my $many = session_of('hog', 'BEGIN;');
	my @cursors = ([ $many, 'c' ]);

	stats_reset($node);
	$many->query("DECLARE c SCROLL CURSOR FOR $query; FETCH 10 FROM c;");
	for my $i (1 .. 4)
	{
		$many->query("DECLARE c$i SCROLL CURSOR FOR $query; FETCH 10 FROM c$i;");
		push @cursors, [ $many, "c$i" ];
	}
	for (1 .. 7)
	{
		my $session = session_of('hog', "BEGIN; DECLARE c SCROLL CURSOR FOR $query; FETCH 10 FROM c;");

		push @cursors, [ $session, 'c' ];
	}
	is(fallbacks($node), '{}', '12 cursors: on the device');
	nothing_held('12 cursors');
	is(value($node, 'SELECT count(*), sum(staging_bytes) FROM gpusort_activity'), '12|0', '12 cursors: sessions');
	other_sorts('12 cursors');

	# all of them go on where they were, by turns
	my %got;

	for my $from (10, 5010, 15010, 60010)
	{
		my $n = { 10 => 5000, 5010 => 10000, 15010 => 45000, 60010 => 39990 }->{$from};

		for my $i (0 .. $#cursors)
		{
			my ($session, $name) = @{ $cursors[$i] };

			$got{$i} .= $session->query("FETCH $n FROM $name;") . "\n";
		}
	}
	my $rest = join("\n", @expected[ 10 .. 99999 ]) . "\n";

	is(scalar(grep { $_ ne $rest } values %got), 0, '12 cursors: rows, forward');
	for (@cursors)
	{
		my ($session, $name) = @$_;

		$session->query("MOVE ABSOLUTE 70000 IN $name;");
	}
	nothing_held('12 cursors, read to the end and back');
	my $wrong = 0;

	for (@cursors)
	{
		my ($session, $name) = @$_;

		$wrong += $session->query("FETCH BACKWARD 69999 FROM $name;") ne join("\n", reverse @expected[ 0 .. 69998 ]);
		$wrong += $session->query("FETCH ABSOLUTE 50000 FROM $name;") ne $expected[49999];
	}
	is($wrong, 0, '12 cursors: rows, backward');
	is(fallbacks($node), '{}', '12 cursors: nothing fell back');
	$_->quit for @all;
	@all = ();
	released($node, '12 cursors');
}

# The chunk of a page that was given up is another session's now, which has arrays sorted in it
{
	$node->safe_psql('postgres', q(
		CREATE TABLE arrays (id int, a int[]);
		INSERT INTO arrays SELECT i, ARRAY(SELECT (i * 7919 + j * 104729) % 1000 FROM generate_series(1, 20) AS j) FROM generate_series(1, 30000) AS i;
		GRANT SELECT ON arrays TO other;
		VACUUM (ANALYZE) arrays;));

	my $sums = 'SELECT (gpu_sort_array(a))[1] + (gpu_sort_array(a))[20], id FROM arrays';
	my $expected_sums = stock($node, "$sums;");
	my $reader = session_of('hog', "BEGIN; DECLARE c CURSOR FOR $query;");
	my $got = $reader->query('FETCH 20000 FROM c;') . "\n";

	nothing_held('pages given up');

	my @sorts = map { session_of('other', '') } 1 .. 3;

	stats_reset($node);
	$_->send("$sums;") for @sorts;
	same_order($_->receive, $expected_sums, 'pages given up: arrays') for @sorts;
	is(value($node, 'SELECT device_arrays > 0 FROM gpusort_stats'), 't', 'pages given up: arrays are in their chunks');
	$got .= $reader->query('FETCH ALL FROM c;');
	same_order($got, $expected, 'pages given up: rows');
	$_->quit for @all;
	@all = ();
	released($node, 'pages given up');
}

# The last row that was fetched is still needed: a merge join keeps rows of both sides
{
	my $join = 'SELECT a.id, b.id, a.k FROM t AS a JOIN t AS b USING (k) ORDER BY k';
	my $rows = stock($node, "$join;");
	my $session = session_of('hog', "SET enable_hashjoin = off; SET enable_nestloop = off; BEGIN; DECLARE c CURSOR FOR $join;");
	my $got = '';

	for my $n (1, 4, 30000, 30000, 'ALL')
	{
		$got .= $session->query("FETCH $n FROM c;") . "\n";
		nothing_held("merge join, $n rows");
	}
	is($got, "$rows\n", 'merge join: rows');
	$session->quit;
	@all = ();
}

# A query that is run at once, and whose client takes its time
{
	my $locks = session($node, 'SELECT pg_advisory_lock(1);');
	my $slow = session_of('hog', '');

	$slow->send("SELECT id, k FROM (SELECT id, k FROM t ORDER BY k OFFSET 0) AS s WHERE k > '0001' OR pg_advisory_xact_lock_shared(1) IS NOT NULL;");
	$node->poll_query_until('postgres', "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $slow->{pid}")
	  or die 'the query does not wait for its lock';
	nothing_held('slow reader');
	$locks->quit;
	same_order($slow->receive, $expected, 'slow reader: rows');
	$slow->quit;
	@all = ();
}

#
# Sorts of one role that are fed hold chunks, and take no more than their share
#
{
	my $locks = session($node, 'SELECT pg_advisory_lock(1);');
	my @fed;

	stats_reset($node);
	while (fallbacks($node) eq '{}' && @fed < 8)
	{
		my $session = session_of('hog', 'SET gpusort.wait_timeout = 0;');

		$session->send("SELECT id, k FROM t WHERE id < 100000 OR pg_advisory_xact_lock_shared(1) IS NOT NULL ORDER BY k;");
		$node->poll_query_until('postgres', "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $session->{pid}")
		  or die 'the sort does not wait for its lock';
		push @fed, $session;
	}
	is(fallbacks($node), '{"staging memory exhausted": 1}', "the role's share is used up");

	# one waits for that, and those of others do not wait behind it
	my $waits = session_of('hog', "SET gpusort.wait_timeout = '1h';");

	$waits->send("$query;");
	$node->poll_query_until('postgres', "SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $waits->{pid}")
	  or die 'the sort does not wait';
	other_sorts('share used up');
	other_sorts('share used up, once more');
	$locks->quit;
	same_order($_->receive, $expected, 'share used up: rows') for @fed, $waits;
	$_->quit for @fed, $waits;
	@all = ();
	released($node, 'share used up');
}

#
# Nor do they take more than a share of the sessions
#
{
	my $many = session_of('hog', "SET gpusort.wait_timeout = 0; BEGIN;");
	my $n = 0;

	stats_reset($node);
	while (fallbacks($node) eq '{}' && $n < 40)
	{
		$n++;
		$many->query("DECLARE c$n CURSOR FOR $query; FETCH 1 FROM c$n;");
	}
	is(fallbacks($node), '{"staging memory exhausted": 1}', 'cursors: sessions are used up');
	cmp_ok($n, '>', 12, 'cursors: sessions for more cursors than chunks');
	other_sorts('sessions used up');
	is($many->query("FETCH 2 FROM c1;"), join("\n", @expected[ 1 .. 2 ]), 'sessions used up: a cursor goes on');
	is($many->query("FETCH 2 FROM c$n;"), join("\n", @expected[ 1 .. 2 ]), 'sessions used up: so does the last one');
	$many->quit;
	released($node, 'sessions used up');
}

$node->stop;
done_testing();
