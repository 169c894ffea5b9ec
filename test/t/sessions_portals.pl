# Portals that are read in parts, as drivers do with a fetch size: several of
# them in turn in one transaction, of all kinds of plans, some left half read,
# with errors, faults and cancels in between; and SQL's cursors in
# subtransactions.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortProtocol;
use GpusortTest;

my $node = new_server('portals');

$node->safe_psql('postgres', q(
	CREATE TABLE t (id int, k text COLLATE "C", l text COLLATE "en_US.utf8", n numeric, a float4[])
		WITH (parallel_workers = 3);
	INSERT INTO t SELECT i, md5(i::text), initcap(md5((i * 7)::text)), hashint4(i) / 1000.0,
			ARRAY[hashint4(i), hashint4(-i), i % 5]
		FROM generate_series(1, 30000) AS i;
	CREATE FUNCTION fails_at(i int, at int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
		'BEGIN IF i = at THEN RAISE ''at row %'', i; END IF; RETURN i; END';
	VACUUM (ANALYZE) t;));

my @queries = (
	'SELECT id, k FROM t ORDER BY k',
	'SELECT id, l FROM t ORDER BY l, id DESC',
	'SELECT id, rank() OVER (ORDER BY n), row_number() OVER (ORDER BY n) FROM t',
	'SELECT id, gpu_sort_array(a), (gpu_sort_array(a))[2] FROM t',
	'SELECT n, count(*) OVER (ORDER BY n DESC), gpu_sort_array(a) FROM t ORDER BY n DESC',
	'SELECT x.id, y.id FROM t AS x JOIN t AS y ON x.k = y.k ORDER BY x.n, y.id');
my @expected = map { stock($node, "$_;") } @queries;
my $merge = 'SET enable_hashjoin = off; SET enable_nestloop = off;';

like(rows_of($node, "$force $serial", "EXPLAIN $queries[2]"), qr/GpuWindow.*GpuSort/s, 'plan with GpuWindow');
like(rows_of($node, "$force $serial", "EXPLAIN $queries[3]"), qr/GpuArraySort/, 'plan with GpuArraySort');

sub client
{
	my (@settings) = @_;
	my $client = GpusortProtocol->connect_to($node);

	$client->query($_) for $force, $merge, @settings;
	return $client;
}

# Open a portal for each query
sub open_portals
{
	my ($client, @numbers) = @_;

	$client->parse('', $queries[$_])->bind("p$_", '') for @numbers;
	return;
}

# How many sorts are on the device
sub held
{
	return value($node, 'SELECT count(*) FROM gpusort_activity');
}

# Read portals in turn, by other numbers of rows each time, up to all their ends
# or so many turns; the rows go into lists.
sub read_in_turn
{
	my ($client, $rows, $turns, @numbers) = @_;
	my @sizes = (1, 999, 7, 5000, 64, 2500);
	my %open = map { $_ => 1 } @numbers;

	for (my $turn = 0; %open && (!$turns || $turn < $turns); $turn++)
	{
		for my $i (sort keys %open)
		{
			my $answer = $client->fetch("p$i", $sizes[ ($turn + $i) % @sizes ]);

			push @{ $rows->[$i] }, @{ $answer->{rows} };
			delete $open{$i} if $answer->{end} ne 'suspended';
			return $answer if $answer->{end} eq 'error' || $answer->{end} eq 'gone';
		}
	}
	return;
}

sub same_portals
{
	my ($rows, $what, @numbers) = @_;

	for my $i (@numbers)
	{
		my @got = @{ $rows->[$i] // [] };
		my @wanted = split /\n/, $expected[$i];

		# without ORDER BY the order is the scan's
		@$_ = sort @$_ for $queries[$i] =~ /ORDER BY \S+( DESC|, \S+)*$/ ? () : (\@got, \@wanted);
		same_order(join("\n", @got), join("\n", @wanted), "$what: rows of portal $i");
	}
}

#
# All of them in turn, up to their ends
#
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;
	my $client = client($settings);
	my @rows;

	$client->query('BEGIN');
	open_portals($client, 0 .. $#queries);
	is(read_in_turn($client, \@rows, 3, 0 .. $#queries), undef, "$name: no error");
	cmp_ok(held(), '>=', 5, "$name: several sorts are on the device at once");

	# a request to cancel that comes while nothing runs
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($client->{pid})");
	is(read_in_turn($client, \@rows, 0, 0 .. $#queries), undef, "$name: no error up to the end");
	same_portals(\@rows, $name, 0 .. $#queries);
	is(scalar @{ $client->fetch('p0', 10)->{rows} }, 0, "$name: no rows behind the end");
	$client->close_portal("p$_") for 0 .. $#queries;
	is($client->ready->{error}, '', "$name: portals closed");
	released($node, "$name, transaction still open");
	$client->query('COMMIT');
	$client->quit;
}

#
# Half read, and left in each way there is
#
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;
	my $client = client($settings);
	my @rows;

	# closed
	$client->query('BEGIN');
	open_portals($client, 0 .. 3);
	read_in_turn($client, \@rows, 2, 0 .. 3);
	$client->close_portal("p$_") for 0 .. 3;
	$client->ready;
	released($node, "$name, closed half read");

	# Sync is no end within a transaction
	open_portals($client, 0 .. 3);
	@rows = ();
	read_in_turn($client, \@rows, 2, 0 .. 3);
	is($client->ready->{error}, '', "$name: Sync in the middle");
	is(read_in_turn($client, \@rows, 0, 0 .. 3), undef, "$name: reading goes on behind it");
	same_portals(\@rows, "$name, Sync in the middle", 0 .. 3);
	$client->query('COMMIT');
	released($node, "$name, COMMIT");

	# ... but without one it is
	open_portals($client, 0, 1, 3);
	read_in_turn($client, \@rows, 2, 0, 1, 3);
	cmp_ok(held(), '>', 0, "$name: portals of no transaction");
	$client->ready;
	released($node, "$name, Sync without a transaction");
	like($client->fetch('p0', 1)->{error}, qr/portal "p0" does not exist/, "$name: portals went with Sync");
	$client->ready;

	# the unnamed portal goes when it is bound again
	$client->query('BEGIN');
	$client->parse('', $queries[0])->bind('', '');
	$client->fetch('', 3);
	$client->parse('', 'SELECT 1')->bind('', '');
	is_deeply($client->fetch('', 0)->{rows}, ['1'], "$name: unnamed portal bound again");
	$client->ready;
	released($node, "$name, unnamed portal bound again");

	# an error of something else ends all, before the client says ROLLBACK
	open_portals($client, 0 .. 4);
	read_in_turn($client, \@rows, 2, 0 .. 4);
	like($client->parse('', 'SELECT fails_at(1, 1)')->bind('', '')->execute('')->ready->{error}, qr/at row 1$/, "$name: error in between");
	released($node, "$name, error in between");
	like($client->fetch('p1', 1)->{error}, qr/25P02/, "$name: transaction is aborted");
	$client->ready;
	$client->query('ROLLBACK');

	# terminated, and a client that disappears
	for my $way ('terminated', 'client gone')
	{
		my $other = client($settings);

		$other->query('BEGIN');
		open_portals($other, 0 .. 3);
		read_in_turn($other, \@rows, 2, 0 .. 3);
		if ($way eq 'terminated')
		{
			$node->safe_psql('postgres', "SELECT pg_terminate_backend($other->{pid})");
			like($other->fetch('p0', 1)->{error}, qr/57P01/, "$name: terminated");
		}
		else
		{
			close $other->{socket};
		}
		released($node, "$name, $way");
	}

	# left to the server's patience
	$client->query('BEGIN');
	open_portals($client, 0 .. 3);
	read_in_turn($client, \@rows, 1, 0 .. 3);
	$client->ready;
	$client->query("SET idle_in_transaction_session_timeout = '200ms'");
	like(GpusortProtocol::answer($client->receive('E'))->{error}, qr/25P03/, "$name: idle for too long");
	released($node, "$name, idle for too long");
}

#
# A portal fails in a subtransaction that is younger than itself: it is dead,
# but there until the transaction ends, and must hold nothing
#
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;
	my $client = client($settings);
	my @rows;

	$client->query('BEGIN');
	open_portals($client, 0, 1, 3);
	read_in_turn($client, \@rows, 1, 0, 1, 3);
	my $held = held();
	my @failing = (
		'SELECT fails_at(id, 25000) FROM (SELECT id, k FROM t ORDER BY k OFFSET 0) AS s',
		'SELECT id, fails_at(row_number() OVER (ORDER BY n)::int, 25000) FROM t',
		'SELECT id, fails_at(id, 25000), gpu_sort_array(a) FROM t',
		'SELECT id FROM t WHERE fails_at(id, 25000) > 0 ORDER BY k');
	for my $i (0 .. $#failing)
	{
		$client->parse('', $failing[$i])->bind("f$i", '');
		$client->fetch("f$i", 10) if $i < 3;
		$client->query('SAVEPOINT s');
		like($client->fetch("f$i", 0)->{error}, qr/at row 25000/, "$name: portal $i fails in a subtransaction");
		$client->ready;
		$client->query('ROLLBACK TO s');
		ok( eventually(sub { held() == $held }), "$name: failed portal $i holds nothing");
		like($client->fetch("f$i", 1)->{error}, qr/55000: portal "f$i" cannot be run/, "$name: and is dead");
		$client->ready;
		$client->query('ROLLBACK TO s');
	}
	is(read_in_turn($client, \@rows, 0, 0, 1, 3), undef, "$name: others are read on");
	same_portals(\@rows, "$name, beside failed ones", 0, 1, 3);

	# a cancel is an error like others
	fault($node, 'service_hold_fetch');
	open_portals($client, 4);
	$client->query('SAVEPOINT u');
	$client->execute('p4', 20000)->put('H', '')->send;
	waits($node, $client, "$name, portal");
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($client->{pid})");
	like(GpusortProtocol::answer($client->receive('EsC'))->{error}, qr/57014/, "$name: and is cancelled");
	$client->ready;
	fault($node, undef);
	$client->query('ROLLBACK TO u');
	$client->close_portal("p$_") for 0, 1, 3;
	$client->ready;
	released($node, "$name, failed portals, transaction still open");
	$client->query('COMMIT');
	$client->quit;
}

#
# A pipeline, with an error in its middle
#
{
	my $client = client($serial);

	$client->parse("s$_", $queries[$_]) for 0, 1;
	for my $round (1 .. 3)
	{
		$client->bind("a$round", 's0')->execute("a$round", 100 * $round);
		$client->bind("b$round", 's1')->execute("b$round", 10);
		$client->parse('', 'SELECT fails_at(1, 1)')->bind('', '')->execute('', 0) if $round == 2;
	}
	$client->sync->bind('', 's0')->execute('', 3)->sync;
	my $first = GpusortProtocol::answer($client->receive('Z'));
	my $second = GpusortProtocol::answer($client->receive('Z'));

	like($first->{error}, qr/at row 1$/, 'pipeline: error');
	my @text = split /\n/, $expected[0];
	my @libc = split /\n/, $expected[1];
	same_order(
		join("\n", @{ $first->{rows} }),
		join("\n", @text[ 0 .. 99 ], @libc[ 0 .. 9 ], @text[ 0 .. 199 ], @libc[ 0 .. 9 ]),
		'pipeline: rows before it');
	same_order(join("\n", @{ $second->{rows} }), join("\n", @text[ 0 .. 2 ]), 'pipeline: rows behind Sync');
	released($node, 'pipeline');
	$client->quit;
}

#
# Faults while portals are half read
#
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	for my $point ('service_fetch:2', 'service_append:4', 'service_sort:2', 'device_memory:3', 'device_memory_sort:2')
	{
		my $client = client($settings);
		my @numbers = (0, 1, 2, 3);
		my @rows;
		my $error;

		fault($node, $point);
		$client->query('BEGIN');
		open_portals($client, @numbers);
		$error = read_in_turn($client, \@rows, 0, @numbers);
		# a portal that has returned rows cannot do without the device that had them; perhaps none has
		if ($point =~ /^service/ && $error)
		{
			like($error->{error}, qr/gpusort lost its device during a sort/, "$name, $point: error");
			$client->ready;
			$client->query('ROLLBACK');
		}
		else
		{
			is($error, undef, "$name, $point: no error");
			same_portals(\@rows, "$name, $point", @numbers);
			$client->query('COMMIT');
		}
		$client->quit;
		fault_over($node, "$name, $point");
	}
}

#
# Workers.  PostgreSQL runs a plan without any if the client asks for a number of rows, and so did gpusort
#
{
	my $client = client($parallel, q(LOAD 'auto_explain'), 'SET auto_explain.log_min_duration = 0',
		'SET auto_explain.log_analyze = on', 'SET auto_explain.log_nested_statements = on');
	# "launched/..." of each Gather in the plans that were logged meanwhile
	my $workers = sub {
		my ($do) = @_;
		my $offset = -s $node->logfile;

		$do->();
		my $log = slurp_file($node->logfile, $offset);
		return join ' ', map { $_ > 0 ? 'some' : 'none' } $log =~ /Workers Launched: (\d+)/g;
	};
	# read a portal up to its end, so many rows at a time, and close it
	my $read = sub {
		my ($sql, $size) = @_;
		my @rows;

		$client->parse('', $sql)->bind('w', '');
		for (;;)
		{
			my $answer = $client->fetch('w', $size);

			push @rows, @{ $answer->{rows} };
			is($answer->{error}, '', "$sql: no error") if $answer->{error};
			last if $answer->{end} ne 'suspended';
		}
		$client->close_portal('w')->ready;
		return join "\n", @rows;
	};
	my $initplan = 'SELECT id FROM t WHERE n > (SELECT avg(n) FROM t AS u) ORDER BY k';
	my $later = 'SELECT id FROM t WHERE id < 0 UNION ALL (SELECT id FROM t ORDER BY k) UNION ALL (SELECT id FROM t ORDER BY l, id)';
	my $got;

	like(rows_of($node, "$force $parallel", "EXPLAIN $queries[0]"), qr/GpuSort.*Gather/s, 'plan with Gather');
	for my $sql ($queries[0], $queries[2])
	{
		my ($i) = grep { $queries[$_] eq $sql } 0 .. $#queries;

		is($workers->(sub { $got = $read->($sql, 1000) }), 'some', "$sql: workers though it is read in parts");
		my @rows;
		$rows[$i] = [ split /\n/, $got ];
		same_portals(\@rows, 'workers', $i);
	}
	is($workers->(sub { $read->('SELECT n, count(*) FROM (SELECT n FROM t WHERE id % 7 > 0 ORDER BY n) AS s GROUP BY n', 1) }),
		'some', 'workers below groups');

	# the InitPlan's Gather runs as PostgreSQL would run it; the order of the two lines is EXPLAIN's
	is($workers->(sub { $got = $read->($initplan, 1000) }), 'none some', 'workers behind an InitPlan that has workers, too');
	same_order($got, stock($node, "$initplan;"), 'rows behind an InitPlan');

	# sorts that begin in later Executes, after writes of the same transaction, which are not seen
	$client->query('BEGIN');
	is( $workers->(
			sub {
				$client->parse('', $later)->bind('w', '');
				$got = join "\n", @{ $client->fetch('w', 1)->{rows} };
				$client->query(q(INSERT INTO t VALUES (0, 'x', 'x', 0); SAVEPOINT s; DELETE FROM t WHERE id % 2 = 0));
				$got .= join "\n", '', @{ $client->fetch('w', 30000)->{rows} };
				$client->query('RELEASE s; CREATE TEMP TABLE made AS SELECT 1 AS a');
				$got .= join "\n", '', @{ $client->fetch('w', 40000)->{rows} };
				is($client->close_portal('w')->ready->{error}, '', 'writes between Executes');
			}),
		'none some some', 'workers of sorts that begin later');
	same_order($got, stock($node, "$later;"), 'rows of sorts that begin later');
	is($client->query('SELECT count(*) FROM t')->{rows}[0], 15000, 'the transaction can still write, and sees it');
	$client->query('ROLLBACK');

	# SQL and PL/pgSQL ask for some rows, too
	$client->query(q(CREATE FUNCTION first_of() RETURNS int LANGUAGE plpgsql AS
		'DECLARE i int; BEGIN SELECT id INTO i FROM (SELECT id, k FROM t ORDER BY k OFFSET 0) AS s; RETURN i; END'));
	is($workers->(sub { $got = $client->query('SELECT first_of()')->{rows}[0] }), 'some', 'workers of SELECT INTO');
	is($got, (split /\|/, $expected[0])[0], 'SELECT INTO');

	# a sort that begins again, for each outer row, or after it has lost its device: PostgreSQL warns of scans that
	# were left open
	$client->query(q(CREATE TABLE few AS SELECT i FROM generate_series(1, 3) AS i; CREATE INDEX t_n ON t (n);
		CREATE FUNCTION again(OUT r text) LANGUAGE plpgsql AS $$ BEGIN
			SELECT string_agg((i + 10000 IN (SELECT id FROM (SELECT id, k FROM t WHERE l > '' ORDER BY k OFFSET i * 0) AS s))::text, ',')
				INTO r FROM few; END $$;
		CREATE FUNCTION rescanned(OUT r bigint) LANGUAGE plpgsql AS $$ BEGIN
			SELECT sum(i * (SELECT count(*) FROM (SELECT id FROM t WHERE id > 0 UNION ALL SELECT id FROM t WHERE n > few.i ORDER BY id OFFSET 0) AS s
				WHERE s.id <> few.i)) INTO r FROM few; END $$));
	for my $function ('first_of', 'again', 'rescanned')
	{
		for my $fault (undef, 'service_sort')
		{
			my ($out, $err);

			fault($node, $fault) if $fault;
			$node->psql('postgres', "$force $parallel SELECT $function();", stdout => \$out, stderr => \$err);
			fault($node, undef) if $fault;
			wait_ready($node);
			is($err, '', "$function, " . ($fault // 'no fault') . ': no scan is left open');
			is($out, stock($node, "SELECT $function();"), "$function: result");
		}
	}
	$client->query('DROP INDEX t_n');

	# an error in a worker, in a subtransaction: parallel mode is over
	$client->query('BEGIN; SAVEPOINT s');
	$client->parse('', 'SELECT id FROM t WHERE fails_at(id, 25000) > 0 ORDER BY k')->bind('w', '');
	like($client->fetch('w', 5)->{error}, qr/at row 25000/, 'error in parallel mode');
	$client->ready;
	is($client->query('ROLLBACK TO s; UPDATE t SET id = id WHERE id = 1; COMMIT')->{error}, '', 'writes after an error in parallel mode');
	$client->quit;
	released($node, 'workers');
}

#
# SQL's cursors
#
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;
	my $session = session($node, "$force $settings");

	# WITH HOLD, in subtransactions of which some are rolled back
	$session->query("BEGIN; SAVEPOINT a; DECLARE a CURSOR WITH HOLD FOR $queries[0]; FETCH 5 FROM a; ROLLBACK TO a;");
	released($node, "$name, holdable cursor rolled back");
	my $got = $session->query("DECLARE b CURSOR WITH HOLD FOR $queries[0]; SAVEPOINT b; FETCH 7 FROM b;");
	$got .= "\n" . $session->query('ROLLBACK TO b; FETCH 8 FROM b;');
	$session->query("SAVEPOINT c; DECLARE c SCROLL CURSOR WITH HOLD FOR $queries[1]; FETCH 100 FROM c; RELEASE c; COMMIT;");
	released($node, "$name, held cursors");
	$got .= "\n" . $session->query('FETCH ALL FROM b;');
	same_order($got, $expected[0], "$name: holdable cursor, read in a subtransaction");
	same_order($session->query('FETCH ABSOLUTE 0 FROM c; FETCH ALL FROM c;'), $expected[1], "$name: scrollable one");
	$session->query('CLOSE ALL;');

	# kept by a loop that commits
	is($session->query(q(
			CREATE TABLE seen (id int);
			DO $$
			DECLARE r record; n int := 0;
			BEGIN
				FOR r IN SELECT id, k FROM t ORDER BY k LOOP
					INSERT INTO seen VALUES (r.id);
					n := n + 1;
					IF n % 10000 = 0 THEN COMMIT; END IF;
					IF n = 25000 THEN ROLLBACK; END IF;
				END LOOP;
			END $$;
			SELECT count(*), count(DISTINCT id) FROM seen; DROP TABLE seen;)),
		'25000|25000', "$name: a loop that commits and rolls back");
	is($session->errors, '', "$name: no errors");
	released($node, "$name, a loop that commits");

	# FETCH fails in a savepoint, and in a function's block
	$session->query('BEGIN; DECLARE f CURSOR FOR SELECT fails_at(id, 25000) FROM (SELECT id, k FROM t ORDER BY k OFFSET 0) AS s;
		FETCH 10 FROM f; SAVEPOINT s; FETCH ALL FROM f; ROLLBACK TO s;');
	like($session->errors, qr/at row 25000/, "$name: FETCH fails");
	released($node, "$name, FETCH failed in a subtransaction");
	is( $session->query(q(
			DO $$
			DECLARE c refcursor := 'g'; i int;
			BEGIN
				OPEN c FOR SELECT fails_at(id, 25000) FROM (SELECT id, k FROM t ORDER BY k OFFSET 0) AS s;
				BEGIN
					LOOP FETCH c INTO i; EXIT WHEN NOT FOUND; END LOOP;
				EXCEPTION WHEN raise_exception THEN NULL;
				END;
			END $$;
			SELECT count(*) FROM gpusort_activity WHERE pid = pg_backend_pid() AND phase <> 'closing';)),
		'0', "$name: a cursor variable of which FETCH fails");
	$session->query('COMMIT;');
	is($session->errors, '', "$name: no other errors");
	$session->quit;
	released($node, "$name, cursors");
}

$node->stop;
done_testing();
