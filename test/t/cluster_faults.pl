# CLUSTER whose device fails it, that ends with an error or a crash: PostgreSQL copies the table
# from the beginning, or the old table stays; nothing is left behind, on disk or in memory.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('cluster_faults', "gpusort.staging_memory = '8MB'\nwal_level = replica\nmax_wal_senders = 2\n");

$node->safe_psql('postgres', q(
	CREATE EXTENSION amcheck;
	CREATE EXTENSION pgstattuple;
	CREATE TABLE t (id int, k text COLLATE "C", v text) WITH (autovacuum_enabled = off);
	ALTER TABLE t ALTER v SET STORAGE EXTERNAL;
	INSERT INTO t SELECT i, md5((i / 2)::text), repeat(md5(i::text), CASE WHEN i % 100 = 0 THEN 100 ELSE 2 END) FROM generate_series(1, 60000) AS i;
	CREATE TABLE l (id int, k text COLLATE "en_US.utf8", v text) WITH (autovacuum_enabled = off);
	INSERT INTO l SELECT i, translate(md5((i / 2)::text), '0123456789', 'ÄäÖö- -ABé'), repeat('v', 100) FROM generate_series(1, 40000) AS i;
	CREATE FUNCTION bad(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
		BEGIN RETURN 1 / ($1 - current_setting('cluster.bad', true)::int); END $$;
	SET cluster.bad = 0;
	CREATE INDEX t_bad ON t (bad(id));
	ALTER TABLE t ADD COLUMN added text DEFAULT 'added';
	VACUUM (ANALYZE) t, l;
	CREATE INDEX t_id ON t (id);
	CREATE INDEX l_id ON l (id);
	CREATE INDEX t_k ON t (k, id);
	CREATE INDEX l_k ON l (k, id);));

my $stock = 'SET gpusort.enabled = off; SET cluster.bad = 0;';
my $cluster = 'SET gpusort.force = on; SET gpusort.index_build = off; SET cluster.bad = 0;';

# Rows as they lie, and the sizes of the table and its TOAST table
sub state_of
{
	my ($table) = @_;

	return value($node, "SET gpusort.enabled = off; SET synchronize_seqscans = off; SET max_parallel_workers_per_gather = 0;
		SELECT md5(string_agg(r::text, ' ')) || ' ' || pg_relation_size('$table') || ' ' || pg_relation_size(reltoastrelid)
		FROM (SELECT * FROM $table) AS r, pg_class AS c WHERE c.oid = '$table'::regclass GROUP BY reltoastrelid");
}

sub good
{
	my ($table, $expected, $what) = @_;

	is(state_of($table), $expected, "$what: rows");
	is(value($node, "SELECT * FROM verify_heapam('$table')"), '', "$what: verify_heapam");
	good_indexes($node, $what, "i.indrelid = '$table'::regclass OR i.indrelid = (SELECT reltoastrelid FROM pg_class WHERE oid = '$table'::regclass)",
		$stock);
	no_file_left($node, $what);
	released($node, $what);
}

my (%before, %after);
for my $table ('t', 'l')
{
	$node->safe_psql('postgres', "$stock CLUSTER $table USING ${table}_k");
	$after{$table} = state_of($table);
	$node->safe_psql('postgres', "$stock CLUSTER $table USING ${table}_id");
	$before{$table} = state_of($table);
}

#
# The device fails; in the sixth fetch after rows were written
#
$failures{'service_fetch:6'} = 'device lost';

for my $table ('t', 'l')
{
	for my $point ('none', sort keys %failures)
	{
		# a failing service takes two seconds to come back
		next if $table eq 'l' && $point !~ /^(none|service_sort|service_fetch:6)$/;

		my $what = "$table, $point";

		$node->safe_psql('postgres', "$stock CLUSTER $table USING ${table}_id");
		done_despite($node, $point, $cluster, "CLUSTER $table USING ${table}_k", 'device_sorts', $what);
		good($table, $after{$table}, $what);
	}
}

#
# Ended from outside
#
sub held
{
	my ($stage, $phase, $progress, $what) = @_;
	my $session = session($node, $cluster);

	fault($node, "service_hold_$stage");
	$session->send('CLUSTER t USING t_k;');
	waits($node, $session, $what, $phase);
	becomes($node, "phase = '$progress' FROM pg_stat_progress_cluster WHERE pid = $session->{pid}", "$what: progress");
	return $session;
}

my @stages = (
	[ 'append', 'feeding', 'seq scanning heap' ], [ 'sort', 'sorting', 'sorting tuples' ],
	[ 'fetch', 'returning rows', 'writing new heap' ]);

$node->safe_psql('postgres', "$stock CLUSTER t USING t_id");
$before{t} = state_of('t');
for my $stage (@stages)
{
	for my $way ('pg_cancel_backend', 'pg_terminate_backend')
	{
		my $what = "$stage->[1], $way";
		my $session = held(@$stage, $what);

		$node->safe_psql('postgres', "SELECT $way($session->{pid})");
		$session->receive;
		like($session->errors, qr/canceling statement|terminating connection/, "$what: error");
		$session->quit;
		fault($node, undef);
		good('t', $before{t}, $what);
	}
}

# wherever it happens to be
my $session = session($node, $cluster);

for (my $ms = 1; $ms <= 200; $ms += 9)
{
	$session->query("BEGIN; SET LOCAL statement_timeout = $ms; CLUSTER t USING t_k; ROLLBACK;");
}
unlike($session->errors, qr/(PANIC|FATAL|gpusort|server closed)/, 'at any time: errors');
good('t', $before{t}, 'at any time');

#
# Errors: the session, and PostgreSQL in it, go on with the table
#
my %errors = (
	'an expression' => [ 'SET cluster.bad = 777;', 'CLUSTER t USING t_bad', qr/division by zero/ ],
	'before the copy' => [ "SET gpusort.fault = 'cluster_planned';", 'CLUSTER t USING t_k', qr/fault/ ]);

for my $error (sort keys %errors)
{
	my ($settings, $sql, $message) = @{ $errors{$error} };

	for my $ways (
		[ 'alone', "$sql;" ],
		[ 'in a transaction', "BEGIN; SAVEPOINT s; $sql; ROLLBACK TO s; SELECT 'tuples ' || tuple_count FROM pgstattuple('t'); COMMIT;" ],
		[ 'caught', "DO \$\$ BEGIN BEGIN $sql; EXCEPTION WHEN OTHERS THEN RAISE WARNING '%', sqlerrm; END;
			RAISE WARNING 'tuples %', (SELECT tuple_count FROM pgstattuple('t')); END \$\$;" ])
	{
		my ($way, $command) = @$ways;
		my $what = "$error, $way";
		my $out = $session->query("$settings $command");
		my $messages = $session->errors;

		like($messages, $message, "$what: error");
		# heap_getnext() asks whether the table's functions are heap's
		like("$out $messages", qr/tuples 60000/, "$what: in the transaction") unless $way eq 'alone';
		is($session->query("RESET gpusort.fault; SET cluster.bad = 0; SELECT tuple_count FROM pgstattuple('t');"), '60000', "$what: afterwards");
		is($session->errors, '', "$what: no error afterwards");
		good('t', $before{t}, $what);
	}
}
stats_reset($node);
$session->query('BEGIN; CLUSTER t USING t_k; CLUSTER t USING t_id; COMMIT;');
is($session->errors, '', 'in the end: done');
is(value($node, 'SELECT device_sorts FROM gpusort_stats'), '2', 'in the end: by gpusort');
good('t', $before{t}, 'in the end');
$session->quit;

#
# A row that is dead, but not by the horizon of CLUSTER, which a transaction in another database holds back; VACUUM has
# removed its long value from the TOAST table.  PostgreSQL up to 19 ends with an error.
#
$node->safe_psql('postgres', q(
	CREATE TABLE lost (id int, v text) WITH (autovacuum_enabled = off);
	ALTER TABLE lost ALTER v SET STORAGE EXTERNAL;
	INSERT INTO lost SELECT i, repeat(md5(i::text), CASE WHEN i % 10 = 0 THEN 200 ELSE 1 END) FROM generate_series(1, 2000) AS i;
	ALTER TABLE lost ADD COLUMN n int;
	CREATE INDEX lost_id ON lost ((-id));));
my $elsewhere = session($node);
$elsewhere->query('\c template1');
$elsewhere->query('BEGIN; SELECT pg_current_xact_id();');
$node->safe_psql('postgres', q(
	UPDATE lost SET v = v || 'updated' WHERE id % 20 = 0;
	DELETE FROM lost WHERE id % 30 = 0;
	UPDATE lost SET n = 1 WHERE id % 50 = 0;));
my $lost_rows = 'SELECT md5(string_agg(r::text, chr(10) ORDER BY id)) FROM lost AS r';
my $lost_before = value($node, $lost_rows);
my $toast = value($node, "SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 'lost'::regclass");
$node->safe_psql('postgres', "VACUUM $toast");
stats_reset($node);
is(messages_of($node, "$cluster SET client_min_messages = warning; CLUSTER lost USING lost_id;"), '', 'lost value: no error');
is(value($node, 'SELECT device_sorts FROM gpusort_stats'), '1', 'lost value: by gpusort');
is(value($node, $lost_rows), $lost_before, 'lost value: rows');
is(value($node, "SELECT * FROM verify_heapam('lost')"), '', 'lost value: verify_heapam');
is(value($node, "SELECT dead_tuple_count FROM pgstattuple('lost')"), '27', 'lost value: dead rows with their values are copied');
$elsewhere->quit;
$node->safe_psql('postgres', 'DROP TABLE lost');

#
# Crashes.  They leave the files of transactions that had not ended, as they do without gpusort.
#
sub crash
{
	$node->stop('immediate');
	$node->start;
	fault($node, undef);
	wait_ready($node);
}

for my $stage (@stages)
{
	my $what = "crash while $stage->[1]";
	my $held = held(@$stage, $what);

	crash();
	$held->quit;
	is(state_of('t'), $before{t}, "$what: rows");
	is(value($node, "SELECT * FROM verify_heapam('t')"), '', "$what: verify_heapam");
}

# pages that were written before the device was lost, in WAL, and then without
for my $level ('replica', 'minimal')
{
	my $what = "crash, wal_level = $level";

	$node->append_conf('postgresql.conf', "wal_level = $level\nmax_wal_senders = 0\n");
	$node->restart;
	wait_ready($node);
	fault($node, 'service_fetch:6');
	stats_reset($node);
	is(rows_of($node, "$cluster SET client_min_messages = error;",
			'BEGIN; CREATE TABLE n AS SELECT * FROM t; CREATE INDEX n_k ON n (k, id); CLUSTER n USING n_k; COMMIT; CLUSTER t USING t_k;'),
		'', "$what: done");
	is(fallbacks($node), '{"device lost": 1}', "$what: counted");
	crash();
	is(state_of('t'), $after{t}, "$what: rows");
	like(state_of('n'), qr/^\Q@{[ $after{t} =~ m|^(\w+)| ]}\E /, "$what: rows of the new table");
	is(value($node, "SELECT * FROM verify_heapam('t')"), '', "$what: verify_heapam");
	is(value($node, "SELECT * FROM verify_heapam('n')"), '', "$what: verify_heapam of the new table");
	$node->safe_psql('postgres', "DROP TABLE n; $stock CLUSTER t USING t_id;");
}

$node->stop;
done_testing();
