# Plans that live longer than what they were made for: prepared statements with
# generic plans while the service dies, types change, the extension goes and
# settings change; timeouts with open cursors; and sorts within functions that
# are called in the input of other sorts.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

# staging memory for four sorts at a time
my $node = new_server('prepared', "synchronize_seqscans = off\ngpusort.staging_memory = '8MB'\ngpusort.wait_timeout = '100ms'\n");

$node->safe_psql('postgres', q(
	CREATE TYPE colour AS ENUM ('red', 'green', 'blue');
	CREATE TABLE t (id int, k text COLLATE "C", c colour, a int[]) WITH (parallel_workers = 3);
	INSERT INTO t SELECT i, md5(i::text), (enum_range(NULL::colour))[1 + i % 3], ARRAY[i % 7, i % 5, i % 3]
		FROM generate_series(1, 20000) AS i;
	VACUUM (ANALYZE) t;
	-- each a sort of its own, in the input of the next one
	CREATE FUNCTION inner_3(n int) RETURNS text LANGUAGE plpgsql STABLE AS $$
	DECLARE r record; s text := '';
	BEGIN
		FOR r IN SELECT k FROM t WHERE id % 5 = n % 5 ORDER BY k DESC LOOP s := s || left(r.k, 1); EXIT WHEN length(s) > 3000; END LOOP;
		RETURN s;
	END $$;
	CREATE FUNCTION inner_2(n int) RETURNS text LANGUAGE plpgsql STABLE AS $$
	DECLARE r record; s text := '';
	BEGIN
		FOR r IN SELECT id, CASE WHEN id < 3 THEN inner_3(id + n) ELSE k END AS v FROM t ORDER BY v, id LOOP s := md5(s || r.v || r.id); END LOOP;
		RETURN s;
	END $$;
	CREATE FUNCTION inner_1(n int) RETURNS SETOF text LANGUAGE sql STABLE AS
		'SELECT CASE WHEN id IN (5, 15000) THEN inner_2(id + n) ELSE k END FROM t ORDER BY 1';
	CREATE FUNCTION inner_fails(n int) RETURNS text LANGUAGE plpgsql STABLE AS $$
	BEGIN
		BEGIN
			PERFORM 1 / (id - 15000) FROM (SELECT id FROM t ORDER BY k OFFSET 0) AS s;
		EXCEPTION WHEN division_by_zero THEN
			RETURN 'caught ' || n;
		END;
	END $$;));

#
# Sorts within sorts
#
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	for my $query ('SELECT v FROM inner_1(1) AS v ORDER BY v DESC;',
		'SELECT inner_1(2) AS v ORDER BY v;',
		"SELECT k, CASE WHEN id % 9999 = 1 THEN inner_fails(id) END AS f FROM t ORDER BY f, k DESC;",
		'SELECT id, (SELECT y.k FROM t AS y WHERE y.id > x.id ORDER BY y.k OFFSET 50 LIMIT 1) FROM t AS x WHERE id % 4000 = 0 ORDER BY 2;')
	{
		same_rows($node, $settings, $query, "$name, sorts within sorts: $query");
	}
	released($node, "$name, sorts within sorts");

	same_despite($node, [ 'service_append:4', 'service_sort:2', 'service_fetch', 'device_memory:5' ], $settings,
		'SELECT v FROM inner_1(1) AS v ORDER BY v DESC;', "$name, sorts within sorts");
}

#
# Prepared statements
#
my $by_text = 'SELECT id, k::text FROM t WHERE id > $1 ORDER BY t.k';
my $by_enum = 'SELECT c, id FROM t WHERE id > $1 ORDER BY c, id';
my $arrays = 'SELECT id, gpu_sort_array(a) FROM t WHERE id > $1 ORDER BY k';
my $stock_text = stock($node, $by_text =~ s/\$1/100/r . ';');
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;
	my $session = session($node, "$force $settings SET plan_cache_mode = force_generic_plan; SET synchronize_seqscans = off;
		PREPARE p (int) AS $by_text; PREPARE e (int) AS $by_enum; PREPARE a (int) AS $arrays;");
	my $same = sub {
		my ($what) = @_;

		for my $case ([ 'p', $by_text ], [ 'e', $by_enum ], [ 'a', $arrays ])
		{
			same_order($session->query("EXECUTE $case->[0] (100);"), stock($node, $case->[1] =~ s/\$1/100/r . ';'), "$name, $what: $case->[0]");
		}
		is($session->errors, '', "$name, $what: no errors");
	};

	$same->('first');
	kill 'TERM', service_pid($node);
	$same->('service has just ended');
	wait_ready($node);
	$same->('another service');
	$session->query('SET gpusort.enabled = off;');
	$same->('switched off');
	$session->query('SET gpusort.enabled = on;');
	$node->safe_psql('postgres', $name eq 'serial' ?
		"ALTER TYPE colour ADD VALUE 'amber' BEFORE 'green'" : "ALTER TYPE colour ADD VALUE 'grey' AFTER 'amber'");
	$node->safe_psql('postgres', "UPDATE t SET c = 'amber' WHERE id % 7 = 0");
	$same->('another label');
	$node->safe_psql('postgres', 'ALTER TABLE t ALTER k TYPE varchar COLLATE "C"');
	$same->('another type of the column');
	$node->safe_psql('postgres', 'ALTER TABLE t ALTER id TYPE bigint; ALTER TABLE t ALTER id TYPE int; ALTER TABLE t ALTER k TYPE text COLLATE "C"');
	$session->query('SET LOCAL work_mem = 64;');
	$session->errors;
	is($session->query("BEGIN; SET LOCAL work_mem = 64; SAVEPOINT s; SET LOCAL gpusort.min_rows = 30000; EXECUTE p (100); ROLLBACK TO s; COMMIT;"),
		$stock_text, "$name, work_mem of the transaction's own");

	# the extension goes: its function with it, but sorts do not need it
	$session->query('BEGIN; DECLARE c CURSOR FOR SELECT id, gpu_sort_array(a) FROM t ORDER BY k; FETCH 3 FROM c;');
	$session->query('DROP EXTENSION gpusort;');
	is($session->errors, '', "$name, extension dropped under a cursor: no error");
	is(scalar(my @l = split /\n/, $session->query('FETCH ALL FROM c;')), 19997, "$name, extension dropped: the cursor goes on");
	same_order($session->query('EXECUTE p (100);'), $stock_text, "$name, extension dropped: sort");
	$session->query('SAVEPOINT s; EXECUTE a (100);');
	like($session->errors, qr/function gpu_sort_array\(integer\[\]\) does not exist/, "$name, extension dropped: its function");
	$session->query('ROLLBACK;');
	$same->('after all');

	# temporary tables, remade under the plan
	is($session->query(q(CREATE TEMP TABLE x AS SELECT id, k FROM t; ANALYZE x; PREPARE x AS SELECT k FROM x ORDER BY k;
			CREATE TEMP TABLE y AS EXECUTE x; DROP TABLE x; CREATE TEMP TABLE x AS SELECT id, k FROM t WHERE id < 10000;
			CREATE UNIQUE INDEX ON x (k); EXPLAIN (COSTS OFF) EXECUTE x;)) =~ /Custom Scan|Index/ ? 1 : 0, 1, "$name, temporary tables: plan");
	same_order($session->query('EXECUTE x;'), stock($node, 'SELECT k FROM t WHERE id < 10000 ORDER BY k;'), "$name, temporary tables: rows");
	is($session->errors, '', "$name, temporary tables: no errors");
	released($node, "$name, prepared statements");

	# time runs out
	for my $case ([ 'statement_timeout', 'FETCH ALL FROM c; SELECT pg_sleep(30);', qr/statement timeout/ ],
		[ 'idle_in_transaction_session_timeout', '', qr/idle-in-transaction timeout/ ],
		[ 'transaction_timeout', '', qr/transaction timeout/ ])
	{
		my ($timeout, $sql, $error) = @$case;
		next unless $node->safe_psql('postgres', "SELECT count(*) FROM pg_settings WHERE name = '$timeout'");
		my $other = session($node, "$force $settings");

		$other->query("BEGIN; DECLARE c CURSOR FOR SELECT id, k FROM t ORDER BY k; DECLARE d CURSOR FOR SELECT gpu_sort_array(a), rank() OVER (ORDER BY k) FROM t;
			FETCH 5 FROM c; FETCH 5 FROM d; SET $timeout = '300ms'; $sql");
		released($node, "$name, $timeout");
		$other->query('SELECT 1;');
		like($other->errors, $error, "$name, $timeout: error");
		$other->quit;
	}
	$session->quit;
}

$node->stop;
done_testing();
