# A sort is ended from outside, at every stage and in every way there is: what
# it held is given back at once, and the service goes on serving others.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

# with so little staging memory, feeding has to wait for the device
my $node = new_server('cancel',
	"client_connection_check_interval = '50ms'\ngpusort.staging_memory = '8MB'\n", rows => 100000);

my $query = 'SELECT id, k FROM t ORDER BY k;';
my $expected = stock($node, $query);
my $service = service_pid($node);

my %phase = (append => 'feeding', sort => 'sorting', fetch => 'returning rows');

for my $stage ('append', 'sort', 'fetch')
{
	fault($node, "service_hold_$stage");
	for my $mode (@modes)
	{
		my ($name, $settings) = @$mode;

		for my $way (sort keys %ways)
		{
			my $what = "$name, $phase{$stage}, $way";
			my ($end, $error) = @{ $ways{$way} };
			my $sort = session($node, "$force $settings");

			ok(reaches($node, $sort, $query, waiting($sort, $phase{$stage}), !$end), "$what: at its stage");
			$end->($node, $sort) if $end;
			if ($error)
			{
				$sort->receive;
				like($sort->errors, $error, "$what: error");
			}
			becomes($node, "NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $sort->{pid} AND state = 'active')", "$what: ended");
			released($node, $what);
			$sort->quit unless $way eq 'client gone';
		}
	}
}
fault($node, undef);

#
# Waits that end are counted
#
for my $stage ('sort', 'fetch')
{
	my $sort = session($node, "$force $serial");

	fault($node, "service_hold_$stage");
	stats_reset($node);
	$sort->send($query);
	becomes($node, waiting($sort, $phase{$stage}), "$stage: waits");
	fault_over($node, $stage);
	$sort->receive;
	cmp_ok(value($node, "SELECT ${stage}_wait_ms FROM gpusort_stats"), '>', 0, "$stage: the wait is counted");
	$sort->quit;
}

#
# Interrupted wherever it happens to be
#
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;
	my $sort = session($node, "$force $settings");

	for (my $ms = 1; $ms <= 80; $ms += 3)
	{
		$sort->query("SET statement_timeout = $ms; SELECT count(*) FROM (SELECT id FROM t) AS x; "
			  . "BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT id, k FROM t ORDER BY k; COMMIT; "
			  . 'CLOSE ALL; ROLLBACK;');
		$sort->query("SET statement_timeout = $ms; COPY (SELECT id, k FROM t ORDER BY k) TO '/dev/null'; ");
	}
	unlike($sort->errors, qr/(PANIC|FATAL|gpusort|server closed)/, "$name, at any time: errors");
	$sort->quit;
	released($node, "$name, at any time");
}

#
# Interrupted all the time, by what is no cancel: a sort in the process goes on where it was
#
same_rows($node, "$serial RESET gpusort.min_rows; SET work_mem = '1GB'; SET client_connection_check_interval = '1ms'; SET statement_timeout = '150s';",
	"SELECT id FROM (SELECT id, repeat('x', 6000) || k AS v FROM t WHERE id <= 19000 ORDER BY v OFFSET 0) AS s;", 'connection checks');

#
# Errors of the query's own, of which the transaction goes on
#
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;
	my $sort = session($node, "$force $settings");

	for my $case (
		[ 'below the sort', 'SELECT id, k FROM t WHERE 1 / (id - 90000) < 2 ORDER BY k' ],
		[ 'above the sort', 'SELECT id, k FROM t ORDER BY k, 1 / (id - 90000) LIMIT 10' ])
	{
		$sort->query("BEGIN; SAVEPOINT s; $case->[1]; ROLLBACK TO s;");
		like($sort->errors, qr/division by zero/, "$name, error $case->[0]");
		released($node, "$name, error $case->[0], transaction still open");
		same_order($sort->query($query), $expected, "$name, error $case->[0]: sort afterwards");
		$sort->query('COMMIT;');
	}

	$sort->query('BEGIN; SAVEPOINT s; DECLARE c CURSOR FOR SELECT id, k FROM t ORDER BY k; FETCH 10 FROM c;');
	is(value($node, 'SELECT count(*) FROM gpusort_activity'), '1', "$name, cursor: open");
	$sort->query('ROLLBACK TO s;');
	released($node, "$name, cursor rolled back, transaction still open");
	$sort->query('COMMIT;');

	# caught in a function; the sort is half read
	is( $sort->query(q(
			DO $$
			DECLARE r record; n int := 0;
			BEGIN
				FOR r IN SELECT id, k FROM t ORDER BY k LOOP
					n := n + 1;
					IF n = 20000 THEN RAISE division_by_zero; END IF;
				END LOOP;
			EXCEPTION WHEN division_by_zero THEN
				NULL;
			END $$;
			SELECT 'caught';)),
		'caught', "$name, error in a function: caught");
	released($node, "$name, error in a function");
	$sort->quit;
}

# a query that reads but a part
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	same_rows($node, $settings, 'SELECT id, k FROM t ORDER BY k LIMIT 30;', "$name, LIMIT: rows");
	released($node, "$name, LIMIT");
}

is(service_pid($node), $service, 'the service is the same as at the start');
same_rows($node, $serial, $query, 'serial sort in the end', $expected);
same_rows($node, $parallel, $query, 'parallel sort in the end', $expected);
released($node, 'in the end');

$node->stop;
done_testing();
