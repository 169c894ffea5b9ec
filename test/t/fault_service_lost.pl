# The service ends while a sort is under way, at every stage: the sort is done
# again without the device and returns each row once and in order, or, where
# its input must not be computed twice, or the sort has returned rows already, says so in
# one clear error.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('service_lost', '', rows => 100000);

$node->safe_psql('postgres', q(
	CREATE TABLE ties (g int, id int, pad text) WITH (parallel_workers = 3, fillfactor = 50);
	INSERT INTO ties SELECT i * 7919 % 7, i, repeat('x', 70) FROM generate_series(1, 60000) AS i;
	CREATE SEQUENCE s;
	CREATE FUNCTION twice(i int) RETURNS int LANGUAGE plpgsql VOLATILE AS
		'BEGIN RETURN 2 * i; END';
	VACUUM (ANALYZE) ties;));

my $query = 'SELECT id, k FROM t ORDER BY k;';
my $expected = stock($node, $query);

like(rows_of($node, "$force $parallel", "EXPLAIN $query"), qr/GpuSortFeed/, 'parallel plan');
unlike(rows_of($node, "$force $serial", "EXPLAIN $query"), qr/GpuSortFeed/, 'serial plan');
same_rows($node, "$force $serial", $query, 'serial, nothing lost', $expected);
same_rows($node, "$force $parallel", $query, 'parallel, nothing lost', $expected);
released($node, 'nothing lost');

# ... and the message that names what sorted, once
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;
	my $err = messages_of($node, "$force $settings SET client_min_messages = debug1; $query");

	is(scalar(() = $err =~ /gpusort sorted: /g), 1, "$name: one message");
	like($err, qr/gpusort sorted: (?:device \d+, )?engine [^:,]+$/m, "$name: message");
}

#
# A sort that can be done again
#
my @points = ('service_append:6', 'service_sort', 'service_fetch');
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	same_despite($node, [ $name eq 'parallel' ? 'service_append' : (), @points ], $settings, $query, $name, $expected, '{"device lost": 1}');
	stats_reset($node);
	same_rows($node, $settings, $query, "$name: rows of the new service", $expected);
	is(value($node, 'SELECT device_sorts, fallbacks FROM gpusort_stats'), '1|0', "$name: the new service sorted them");
}

#
# Rows were returned already
#
sub lost_despite
{
	my ($points, $settings, $sql, $what) = @_;

	for my $point (@$points)
	{
		fault($node, $point);
		like(messages_of($node, "\\set VERBOSITY verbose\n$force $settings\n$sql"),
			qr/ERROR:  58000: gpusort lost its device during a sort\nDETAIL:  Some sorted rows had been returned already\.\nHINT:  Retry the query\./,
			"$what, $point: error");
		fault_over($node, "$what, $point");
	}
}

for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	lost_despite([ 'service_fetch:5' ], $settings, 'SELECT g, id, pad FROM ties ORDER BY g;', $name);
}

# ... and not yet: they are put in order first, since their keys end before the last column
same_despite($node, [ 'service_sort', 'service_fetch' ], $serial, q(SELECT id / 3 AS g, CASE id % 3 WHEN 0 THEN int4multirange '{[-2,2]}' WHEN 1 THEN '{[-1,2]}' ELSE '{[0,1]}' END AS j, pad FROM ties ORDER BY g, j;), 'ended keys');

#
# One row of each group of equal ones, or some of each
#
my $pairs = '(SELECT k, id FROM t UNION ALL SELECT k, -id FROM t) AS u';
my $numbered = "(SELECT k, id, row_number() OVER (PARTITION BY k ORDER BY id) AS n FROM $pairs) AS s";
for my $case (
	[ 'distinct rows', "SELECT DISTINCT k FROM $pairs ORDER BY k;", 'Distinct: true' ],
	[ 'first rows of groups', "SELECT DISTINCT ON (k) k, id FROM $pairs ORDER BY k, id;", 'First Rows per Group: 1' ],
	[ 'first rows by number', "SELECT k, id FROM $numbered WHERE n = 1;", 'First Rows per Group: 1' ])
{
	my ($what, $sql, $shown) = @$case;
	my $stock = stock($node, $sql);

	like(rows_of($node, "$force $serial", "EXPLAIN $sql"), qr/$shown/, "$what: plan");
	for my $mode (@modes)
	{
		my ($name, $settings) = @$mode;

		same_despite($node, [ 'service_append:6', 'service_sort' ], $settings, $sql, "$name, $what", $stock);
		lost_despite([ 'service_fetch:5' ], $settings, $sql, "$name, $what");
	}
}

# ... and one row of some groups
for my $case (
	[ 'groups by count', "SELECT k, count(*) FROM $pairs GROUP BY k HAVING count(*) = 2 ORDER BY k;", 'Groups Kept: .*Counted: true' ],
	[ 'top groups', "SELECT k, count(*) FROM $pairs GROUP BY k ORDER BY count(*) DESC, k LIMIT 20;", 'Top Groups: 20' ])
{
	my ($what, $sql, $shown) = @$case;
	my $settings = "SET enable_hashagg = off; $serial";

	like(rows_of($node, "$force $settings", "EXPLAIN $sql"), qr/$shown/s, "$what: plan");
	same_despite($node, [ 'service_sort', 'service_fetch' ], $settings, $sql, $what);
	lost_despite([ 'service_fetch:5' ], $settings, $sql, $what) if $what eq 'groups by count';
}

# ... and the first rows, of which PostgreSQL's sort keeps as many when it does all again
same_despite($node, [ 'service_sort', 'service_fetch' ], $serial, 'SELECT id, k FROM t ORDER BY k LIMIT 70000;', 'limit');

# ... and nodes above that take rows from pages
for my $case (
	[ GpuWindow => 'SELECT k, sum(id) OVER (ORDER BY k), lag(id) OVER (ORDER BY k, id) FROM t;' ],
	[ GpuGroup => "SELECT k, string_agg(k, ',' ORDER BY id), sum(id) FROM t GROUP BY k ORDER BY k;" ],
	[ GpuGroup => 'SELECT k, count(*) FROM (SELECT * FROM t UNION ALL SELECT * FROM t WHERE id % 3 = 0) AS u GROUP BY k ORDER BY k;' ])
{
	my ($above, $sql) = @$case;
	my $settings = "SET enable_hashagg = off; $serial";

	like(rows_of($node, "$force $settings", "EXPLAIN $sql"), qr/$above.*GpuSort/s, "$above: plan");
	same_despite($node, [ 'service_fetch' ], $settings, $sql, $above);
	lost_despite([ 'service_fetch:6' ], $settings, $sql, $above);
}

# ... and cursors, which may be scrolled back
for my $fetched ('100', '100 FROM c; FETCH BACKWARD 10')
{
	my ($cursor) = cursor($node, 'SELECT id, k FROM t ORDER BY k', $fetched, scroll => 'SCROLL');

	end_service($node);
	$cursor->query("\\set VERBOSITY verbose\nFETCH ALL FROM c;");
	like($cursor->errors, qr/ERROR:  58000: gpusort lost its device.*HINT:  Retry/s, "cursor, $fetched: error");
	$cursor->quit;
	wait_ready($node);
	released($node, "cursor, $fetched");
}

# Long keys are settled before the first row of a scrollable cursor returns
{
	my $long = q(SELECT id FROM t WHERE id <= 5000
		ORDER BY repeat('long', 2400) || k COLLATE "C");

	fault($node, 'service_fetch:2');
	my ($cursor, $got) = cursor($node, $long, 'ALL', scroll => 'SCROLL');
	same_order($got, stock($node, "$long;"), 'long keys, scrollable cursor: rows');
	is($cursor->errors, '', 'long keys, scrollable cursor: no error');
	$cursor->quit;
	fault_over($node, 'long keys');
}

#
# The input cannot be computed twice
#
$node->safe_psql('postgres', q(
	CREATE TABLE one AS SELECT 1 AS n;
	CREATE DOMAIN counted AS int CHECK (nextval('s') > 0);
	CREATE FUNCTION counted_add(bigint, int) RETURNS bigint VOLATILE LANGUAGE sql AS
		$$SELECT $1 + $2 FROM nextval('s')$$;
	CREATE FUNCTION counted_rows() RETURNS SETOF int VOLATILE ROWS 100000 LANGUAGE plpgsql AS
		'BEGIN PERFORM nextval(''s''); RETURN QUERY SELECT generate_series(1, 100000); END';
	CREATE AGGREGATE counted_sum(int) (SFUNC = counted_add, STYPE = bigint, INITCOND = '0');));
for my $case (
	[ 'nextval', "SELECT id, k, nextval('s') FROM t ORDER BY k;", 'service_append:3' ],
	[ 'nextval', "SELECT id, k, nextval('s') FROM t ORDER BY k;", 'service_fetch:2' ],
	[ 'nextval in a subquery', "SELECT id, k, (SELECT nextval('s') WHERE id > 0) FROM t ORDER BY k;", 'service_append:3' ],
	[ 'volatile', 'SELECT id, k FROM t WHERE twice(id) > 0 ORDER BY k;', 'service_sort' ],
	[ 'volatile constraint', 'SELECT id::counted, k FROM t ORDER BY k;', 'service_append:3' ],
	[ 'volatile aggregate', 'SELECT k, counted_sum(id) AS n FROM t GROUP BY k ORDER BY n, k;', 'service_sort' ],
	[ 'volatile scan', 'SELECT i, md5(i::text) FROM counted_rows() AS i ORDER BY -i;', 'service_append:3' ],
	[ 'volatile scan', 'SELECT i, k FROM t JOIN counted_rows() AS i ON i = id ORDER BY k;', 'service_sort' ],
	[ 'for update in a subquery', 'SELECT id, k, (SELECT n FROM one WHERE id > 0 FOR UPDATE) FROM t ORDER BY k;', 'service_append:3' ],
	[ 'for update', 'SELECT id, k FROM t ORDER BY k FOR UPDATE;', 'service_append' ],
	[ 'for update, not the last step', 'SELECT count(*) FROM (SELECT id, k FROM t ORDER BY k FOR UPDATE) AS locked;', 'service_append' ])
{
	my ($name, $sql, $point) = @$case;

	fault($node, $point);
	$node->safe_psql('postgres', 'ALTER SEQUENCE s RESTART');
	my $err = messages_of($node, "\\set VERBOSITY verbose\n$force\n$sql");

	like($err,
		qr/ERROR:  58000: gpusort lost its device during a sort\nDETAIL:  The sort's input cannot be computed a second time\.\nHINT:  Retry the query\./,
		"$name, $point: error");
	is(() = $err =~ /ERROR/g, 1, "$name, $point: one error");
	cmp_ok(value($node, 'SELECT last_value FROM s'), '<=', 100000, "$name, $point: input computed once");
	fault_over($node, "$name, $point");
	same_rows($node, '', 'SELECT id, k FROM t ORDER BY k;', "$name, $point: retry", $expected)
	  if $name eq 'for update';
}

#
# A volatile function in FROM that the plan does not call, as where an extension has
# put a scan of its own in the place of such a function
#
{
	my $sql = 'SELECT id, k FROM t LEFT JOIN (SELECT DISTINCT i FROM counted_rows() AS i) AS c ON c.i = t.id ORDER BY k;';

	unlike(rows_of($node, "$force $serial", "EXPLAIN $sql"), qr/Function Scan/, 'no function scan');
	same_despite($node, [ 'service_append:3', 'service_fetch' ], $serial, $sql, 'volatile function not called', $expected, '{"device lost": 1}');
}

#
# A signal ends the service while sorts wait for it
#
for my $stage ('append', 'sort', 'fetch')
{
	my $pid = service_pid($node);
	my $sort = session($node, "$force $parallel");

	fault($node, "service_hold_$stage");
	$sort->send($query);
	waits($node, $sort, "SIGTERM, $stage");
	kill 'TERM', $pid;
	same_order($sort->receive, $expected, "SIGTERM, $stage: rows");
	is($sort->errors, '', "SIGTERM, $stage: no error");
	$sort->quit;
	fault_over($node, "SIGTERM, $stage");
}

#
# A service that is killed takes the server's other processes with it, as any
# process does that is attached to shared memory
#
{
	my $pid = service_pid($node);
	my $sort = session($node, "$force $serial");

	fault($node, 'service_hold_sort');
	$sort->send($query);
	becomes($node, "count(*) = 1 FROM gpusort_activity WHERE phase = 'sorting'", 'SIGKILL: a sort is under way');
	kill 'KILL', $pid;
	$sort->receive;
	like($sort->errors, qr/terminating connection|server closed the connection/,
		'SIGKILL: the server restarts');
	$sort->quit;
	ok(restarted($node, $pid), 'SIGKILL: a new service');
	fault($node, undef);
	released($node, 'SIGKILL');
	same_rows($node, $serial, $query, 'SIGKILL: serial sort afterwards', $expected);
	same_rows($node, $parallel, $query, 'SIGKILL: parallel sort afterwards', $expected);
	released($node, 'SIGKILL, after new sorts');
}

$node->stop;
done_testing();
