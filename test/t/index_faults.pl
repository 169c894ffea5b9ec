# Index builds whose device fails them, that are ended from outside, or find the
# disk full: PostgreSQL's build takes over or the command fails, and no file and
# no half of an index stays behind.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

# small WAL segments, so that files can be limited to less than the index's size
my $node = new_server('index_faults', "gpusort.staging_memory = '8MB'\ncompute_query_id = on\n",
	init => ['--wal-segsize=1']);

$node->safe_psql('postgres', q(
	CREATE EXTENSION amcheck;
	CREATE EXTENSION pageinspect;
	CREATE TABLE t (id int, k text COLLATE "C") WITH (parallel_workers = 3);
	INSERT INTO t SELECT i, md5((i / 2)::text) FROM generate_series(1, 100000) AS i;
	CREATE TABLE l (id int, k text COLLATE "en_US.utf8") WITH (parallel_workers = 3);
	INSERT INTO l SELECT i, translate(md5((i / 2)::text), '0123456789', 'ÄäÖö- -ABé') FROM generate_series(1, 50000) AS i;
	CREATE TABLE g (id int, k text COLLATE "C", n int) WITH (parallel_workers = 3);
	INSERT INTO g SELECT i, md5((i / 2)::text), i % 10 FROM generate_series(1, 50000) AS i;
	CREATE TABLE a AS SELECT i AS id FROM generate_series(1, 100000) AS i;
	ALTER TABLE a ADD COLUMN k text COLLATE "C", ADD COLUMN d int DEFAULT 7;
	VACUUM (ANALYZE) t, l, g, a;
	CREATE INDEX stock_t ON t (k, id);
	CREATE INDEX stock_l ON l (k, id);
	SET gpusort.index_build = off;
	SET max_parallel_maintenance_workers = 0;
	CREATE INDEX stock_g ON g USING gin ((ARRAY[k, left(k, 3), n::text]));
	CREATE FUNCTION pages(index text) RETURNS text LANGUAGE sql AS $$
		SELECT count(*) || md5(string_agg(substring(get_raw_page(index, 'main', n) FROM 11), '' ORDER BY n))
		FROM generate_series(0, pg_relation_size(index::regclass) / current_setting('block_size')::int - 1) AS n
	$$;));

my %stock = map { $_ => $node->safe_psql('postgres', "SELECT pages('stock_$_')") } ('t', 'l', 'g');
my %on = (t => 't (k, id)', l => 'l (k, id)', g => 'g USING gin ((ARRAY[k, left(k, 3), n::text]))');
my $build = 'SET gpusort.force = on; SET gpusort.index_build = on;';
my @modes = (
	[ 'serial', join('', map { "ALTER TABLE $_ SET (parallel_workers = 0);" } 't', 'l', 'g'), 0 ],
	[ 'parallel', join('', map { "ALTER TABLE $_ SET (parallel_workers = 3);" } 't', 'l', 'g')
		. "SET max_parallel_maintenance_workers = 3; SET maintenance_work_mem = '256MB';", 3 ]);
my $same_query = q(bool_and(w.query_id = l.query_id)
	FROM pg_stat_activity AS w JOIN pg_stat_activity AS l ON l.pid = w.leader_pid
	WHERE w.backend_type = 'parallel worker' AND w.state = 'active');

sub clean
{
	my ($what) = @_;

	no_file_left($node, $what);
	is(value($node, "SELECT relname FROM pg_class WHERE relname LIKE 'i\\_%'"), '', "$what: no index is left");
	released($node, $what);
}

sub good_index
{
	my ($table, $what, $other_pages) = @_;

	is(good_indexes($node, $what, "c.relname = 'i_$table'"), 1, "$what: amcheck");
	is(value($node, "SELECT pages('i_$table')"), $stock{$table}, "$what: pages") unless $other_pages;
	$node->safe_psql('postgres', "DROP INDEX i_$table");
	clean($what);
}

clean('at the start');

for my $mode (@modes)
{
	my ($name, $settings, $workers) = @$mode;

	like(messages_of($node, "$build $settings SET client_min_messages = debug1; CREATE INDEX i_t ON t (k, id); DROP INDEX i_t;"),
		qr/gpusort built index "i_t": 100000 tuples, $workers workers, 9[89]\d{3} by pages/, "$name: workers and pages");
}
like(messages_of($node, "$build SET client_min_messages = debug1; CREATE INDEX i_a ON a (k, d, id); DROP TABLE a;"),
	qr/gpusort built index "i_a": 100000 tuples, \d workers, 99\d{3} by pages/, 'tuples that are older than columns');

#
# The device fails
#
$failures{'service_fetch:3'} = 'device lost';

for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	for my $table ('t', 'l', 'g')
	{
		for my $point ('none', sort keys %failures)
		{
			# a failing service takes two seconds to come back
			next if $table ne 't' && $point !~ /^(none|service_sort|service_fetch:3)$/;
			next if $table eq 'g' && $point eq 'service_sort';

			my $what = "$name, $table, $point";

			done_despite($node, $point, "$build $settings", "CREATE INDEX i_$table ON $on{$table}", 'index_builds', $what);
			# PostgreSQL's own pages depend on its workers
			good_index($table, $what, $table eq 'g' && $point ne 'none' && $name eq 'parallel');
		}
	}
}

# where WAL is not written for a new table's index
for my $point ('service_fetch:3', 'service_append:4')
{
	fault($node, $point);
	is( rows_of($node, $build, 'BEGIN; CREATE TABLE n AS SELECT * FROM t; CREATE INDEX i_n ON n (k, id); COMMIT;'),
		'', "new table, $point: built");
	fault($node, undef);
	wait_ready($node);
	good_indexes($node, "new table, $point", "c.relname = 'i_n'");
	$node->safe_psql('postgres', 'DROP TABLE n');
	clean("new table, $point");
}

# every device of the table's scan fails, of a concurrent build as well
fault($node, 'service_fetch:3');
is( rows_of($node, $build, 'CREATE INDEX CONCURRENTLY i_t ON t (k, id); REINDEX INDEX CONCURRENTLY i_t;'),
	'', 'concurrent build: built');
fault($node, undef);
wait_ready($node);
good_index('t', 'concurrent build');

# duplicates are found whoever builds
for my $point ('none', 'service_fetch', 'device_memory')
{
	fault($node, $point) unless $point eq 'none';
	like(rows_of($node, $build, 'CREATE UNIQUE INDEX i_t ON t (k)'),
		qr/could not create unique index "i_t".*Key \(k\)=\(\w+\) is duplicated/s,
		"unique, $point: error");
	fault($node, undef) unless $point eq 'none';
	wait_ready($node);
	clean("unique, $point");
}

#
# Ended from outside
#
for my $case (
	[ 'append', 'feeding', 'scanning table' ], [ 'sort', 'sorting', 'sorting live tuples' ],
	[ 'fetch', 'returning rows', 'loading tuples in tree' ])
{
	my ($stage, $phase, $progress) = @$case;

	fault($node, "service_hold_$stage");
	for my $mode (@modes)
	{
		my ($name, $settings) = @$mode;

		for my $way ('pg_cancel_backend', 'pg_terminate_backend')
		{
			my $what = "$name, $phase, $way";
			my $session = session($node, "$build $settings");

			$session->send('CREATE INDEX i_t ON t (k, id);');
			waits($node, $session, $what, $phase);
			# the service knows of the phase before the session wakes up
			becomes($node, "phase = 'building index: $progress' FROM pg_stat_progress_create_index WHERE pid = $session->{pid}",
				"$what: progress");
			becomes($node, $same_query, "$what: the workers' query")
			  if $name eq 'parallel' && $stage eq 'append';
			$node->safe_psql('postgres', "SELECT $way($session->{pid})");
			$session->receive;
			like($session->errors, qr/canceling statement|terminating connection/, "$what: error");
			$session->quit;
			clean($what);
		}

		my $session = session($node, "$build $settings");

		$session->send("CREATE INDEX i_g ON $on{g};");
		waits($node, $session, "$name, GIN, $phase", $phase);
		becomes($node, "phase ~ '^building index' FROM pg_stat_progress_create_index WHERE pid = $session->{pid}", "$name, GIN, $phase: progress");
		$node->safe_psql('postgres', "SELECT pg_cancel_backend($session->{pid})");
		$session->receive;
		like($session->errors, qr/canceling statement/, "$name, GIN, $phase: error");
		$session->quit;
		clean("$name, GIN, $phase");
	}
}
fault($node, undef);

# wherever it happens to be
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;
	my $session = session($node, "$build $settings");

	for (my $ms = 1; $ms <= 300; $ms += 12)
	{
		$session->query("SET statement_timeout = $ms; CREATE INDEX i_t ON t (k, id); DROP INDEX IF EXISTS i_t;
			CREATE INDEX i_g ON $on{g}; DROP INDEX IF EXISTS i_g;");
	}
	unlike($session->errors, qr/(PANIC|FATAL|gpusort|server closed)/, "$name, at any time: errors");
	$session->query('SET statement_timeout = 0; DROP INDEX IF EXISTS i_t, i_g;');
	$session->quit;
	clean("$name, at any time");
}

#
# Errors of the index's own expressions, in the leader or a worker
#
$node->safe_psql('postgres', q(CREATE FUNCTION bad(int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
	AS $$ BEGIN RETURN 1 / ($1 - 77777); END $$;));
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	like(rows_of($node, "$build $settings", 'CREATE INDEX i_t ON t (bad(id))'), qr/division by zero/, "$name, expression: error");
	clean("$name, expression");
}

# caught in a function, which goes on and looks
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	for my $ddl ('CREATE UNIQUE INDEX i_t ON t (k)', 'CREATE INDEX i_t ON t (bad(id))')
	{
		is( rows_of($node, "$build $settings SET client_min_messages = warning;", qq(
				DO \$\$
				BEGIN
					BEGIN
						$ddl;
					EXCEPTION WHEN unique_violation OR division_by_zero THEN
						NULL;
					END;
					FOR i IN 1 .. 2000 LOOP
						EXIT WHEN NOT EXISTS (SELECT FROM gpusort_activity);
						PERFORM pg_sleep(0.05);
					END LOOP;
					IF EXISTS (SELECT FROM gpusort_activity) THEN
						RAISE 'the build is still there';
					END IF;
				END
				\$\$;)),
			'', "$name, $ddl, caught: released in the same transaction");
		clean("$name, caught");
	}
}

# left in a transaction that has failed and waits for its ROLLBACK
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	for my $ddl ('CREATE UNIQUE INDEX i_t ON t (k)', 'CREATE INDEX i_t ON t (bad(id))')
	{
		for my $begin ('BEGIN;', 'BEGIN; SAVEPOINT s;')
		{
			my $session = session($node, "$build $settings");

			$session->query("$begin $ddl;");
			like($session->errors, qr/duplicated|division by zero/, "$name, $begin $ddl: error");
			released($node, "$name, $begin $ddl, not rolled back");
			$session->query('ROLLBACK;');
			$session->quit;
		}
	}
}

#
# Disk full
#
SKIP:
{
	skip 'prlimit is not to be had', 6 unless grep { -x "$_/prlimit" } split /:/, $ENV{PATH};

	my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;

	for my $mode (@modes)
	{
		my ($name, $settings) = @$mode;

		# sessions and workers begin with the limits of the postmaster
		system_or_bail('prlimit', '--pid', $postmaster, '--fsize=3145728:');
		for my $table ('t', 'g')
		{
			like(rows_of($node, "$build $settings", "CREATE INDEX i_$table ON $on{$table}"),
				qr/ERROR:  could not (extend|write).*: (File too large|wrote only)/, "$name, $table, disk full: error");
		}
		system_or_bail('prlimit', '--pid', $postmaster, '--fsize=unlimited:');
		clean("$name, disk full");
	}
}

# it was none of the service's fault
stats_reset($node);
is(rows_of($node, $build, 'CREATE INDEX i_t ON t (k, id)'), '', 'in the end: built');
is(fallbacks($node), '{}', 'in the end: by gpusort');
good_index('t', 'in the end');

$node->stop;
done_testing();
