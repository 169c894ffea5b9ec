# Logical decoding and replication beside index builds and sorts: changes that
# are decoded while indexes are built, and rebuilt, are all there; a
# subscription's workers build and sort, too; and a connection of a walsender
# sorts like any other.  And a standby is promoted while it sorts.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use GpusortProtocol;
use GpusortTest;

sub replicating
{
	my ($name) = @_;
	my $node = new_server($name, '', stopped => 1);

	$node->append_conf('postgresql.conf', "wal_level = logical\nmax_wal_senders = 8\nmax_replication_slots = 8\n"
		  . "wal_retrieve_retry_interval = '100ms'\nsynchronize_seqscans = off\n");
	$node->append_conf('pg_hba.conf', "local replication all trust\n");
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION gpusort; CREATE EXTENSION amcheck');
	wait_ready($node);
	return $node;
}

my $node = replicating('publisher');
my $build = "$force $parallel SET max_parallel_maintenance_workers = 2;";

$node->safe_psql('postgres', q(
	CREATE TABLE t (id int PRIMARY KEY, k text COLLATE "C", n int) WITH (parallel_workers = 2, user_catalog_table = true);
	INSERT INTO t SELECT i, md5(i::text), 0 FROM generate_series(1, 20000) AS i;
	CREATE INDEX t_k ON t (k);
	VACUUM (ANALYZE) t;
	SELECT pg_create_logical_replication_slot('d', 'test_decoding');));

#
# Builds of all kinds, with changes before, within and beside them
#
my @builds = (
	'CREATE INDEX t_n ON t (n, k);', 'REINDEX TABLE t;', 'CREATE INDEX CONCURRENTLY t_c ON t (k DESC);',
	'REINDEX TABLE CONCURRENTLY t;', 'CLUSTER t USING t_k;', 'VACUUM FULL t;',
	'ALTER TABLE t ADD CONSTRAINT t_u UNIQUE (id, k);', 'BEGIN; INSERT INTO t VALUES (-1, \'in\', 0); CREATE INDEX t_x ON t (n); UPDATE t SET n = -5 WHERE id = -1; COMMIT;',
	'BEGIN; INSERT INTO t VALUES (-2, \'out\', 0); SAVEPOINT s; CREATE INDEX t_y ON t (n); ROLLBACK TO s; INSERT INTO t VALUES (-3, \'in\', 0); ROLLBACK;');
my $writer = session($node);
my $n = 0;

for my $sql (@builds)
{
	my $builder = session($node, $build);

	$builder->send($sql);
	for (1 .. 4)
	{
		$n++;
		$writer->query("UPDATE t SET n = $n WHERE id = $n; INSERT INTO t VALUES (100000 + $n, 'new', $n); DELETE FROM t WHERE id = 10000 + $n;");
	}
	$builder->receive;
	is($builder->errors . $writer->errors, '', "no error: $sql");
	$builder->quit;
}
is(good_indexes($node, 'builds', "indrelid = 't'::regclass"), 6, 'builds: indexes');

# each change is decoded once, in the order in which it was made, and no builds are
sub decoded
{
	return $node->safe_psql('postgres', q(SELECT data FROM pg_logical_slot_peek_changes('d', NULL, NULL, 'include-xids', '0', 'skip-empty-xacts', '1') WHERE data LIKE 'table%'));
}
my @wanted;
my $decoded = decoded();
my $changes = join "\n", grep { /INSERT: id\[integer\]:1\d{5}|UPDATE: id\[integer\]:[1-9]|DELETE/ } split /\n/, $decoded;
for my $i (1 .. $n)
{
	push @wanted, "UPDATE $i", 'INSERT ' . (100000 + $i), 'DELETE ' . (10000 + $i);
}
is(join("\n", map { /: (\w+): id\[integer\]:(\d+)/ ? "$1 $2" : $_ } grep { !/UPDATE: id\[integer\]:-|INSERT: id\[integer\]:-/ } split /\n/, $changes),
	join("\n", @wanted), 'decoded: each change once, in order');
is(scalar(() = $decoded =~ /id\[integer\]:-1 /g), 2, 'decoded: changes of the transaction that built an index');
unlike($decoded, qr/id\[integer\]:-[23] /, 'decoded: none that were rolled back');

#
# ORDER BY in a walsender's connection
#
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;
	my $client = GpusortProtocol->connect_to($node, replication => 'database');
	my $query = 'SELECT id, k FROM t ORDER BY k, id';

	$client->query($_) for map { "$_;" } grep { /\S/ } split /;/, "$force $settings";
	is_deeply($client->query('IDENTIFY_SYSTEM')->{error}, '', "walsender, $name: its own commands");
	like(join("\n", @{ $client->query("EXPLAIN $query")->{rows} }), qr/GpuSort/, "walsender, $name: plan");
	same_order(join("\n", @{ $client->query($query)->{rows} }), stock($node, "$query;"), "walsender, $name: rows");
	like($client->query("SELECT id, 1 / (n - 3) FROM (SELECT id, n FROM t ORDER BY k OFFSET 0) AS s")->{error}, qr/22012/, "walsender, $name: error");
	is($client->query('CREATE_REPLICATION_SLOT w TEMPORARY LOGICAL test_decoding')->{error}, '', "walsender, $name: slot");
	same_order(join("\n", @{ $client->query($query)->{rows} }), stock($node, "$query;"), "walsender, $name: rows with a slot");
	$client->quit;
	released($node, "walsender, $name");
}

#
# A crash in the middle of a build, with changes of the same transaction
#
{
	my $builder = session($node, $build);

	fault($node, 'service_hold_fetch');
	$builder->send("BEGIN; INSERT INTO t VALUES (-10, 'lost', 0); REINDEX INDEX t_n; COMMIT;");
	becomes($node, "count(*) = 1 FROM gpusort_activity WHERE phase = 'returning rows'", 'crash: a build waits');
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET gpusort.fault; CREATE TABLE after_all (i int PRIMARY KEY); INSERT INTO after_all VALUES (1);');
	$node->stop('immediate');
	$builder->receive;
	$builder->quit;
	$writer->quit;
	$node->start;
	wait_ready($node);
	my $again = decoded();
	is(join("\n", grep { !/after_all/ } split /\n/, $again), $decoded, 'crash: the same changes are decoded');
	like($again, qr/after_all/, 'crash: and the last one');
	is(good_indexes($node, 'crash', "c.relname = 't_n'"), 1, 'crash: the index is as before');
}

#
# A subscription: tables are copied, changes applied, with a trigger that sorts
#
my $subscriber = replicating('subscriber');
{
	my $connection = $node->connstr . ' dbname=postgres';

	$node->safe_psql('postgres', 'ALTER TABLE t RESET (user_catalog_table); CREATE PUBLICATION p FOR TABLE t');
	$subscriber->safe_psql('postgres', q(
		ALTER DATABASE postgres SET gpusort.force = on;
		ALTER DATABASE postgres SET gpusort.min_rows = 0;
		CREATE TABLE t (id int PRIMARY KEY, k text COLLATE "C", n bigint);
		CREATE INDEX t_k ON t (k);
		CREATE TABLE log (id int, place bigint, first text);
		CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SET search_path = public AS $$
		BEGIN
			INSERT INTO log SELECT NEW.id, r, min(k) OVER () FROM (SELECT id, k, rank() OVER (ORDER BY k DESC, id) AS r FROM t) AS s WHERE id = NEW.id;
			RETURN NULL;
		END $$;
		CREATE TRIGGER note AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION note();
		ALTER TABLE t ENABLE ALWAYS TRIGGER note;));
	$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '$connection' PUBLICATION p");
	# while it is copied
	$node->safe_psql('postgres', "$build REINDEX TABLE CONCURRENTLY t; UPDATE t SET n = -7 WHERE id <= 3;");
	$subscriber->psql('postgres', "$build CREATE INDEX CONCURRENTLY t_c ON t (n, k)");
	$subscriber->wait_for_subscription_sync($node, 's');
	$subscriber->safe_psql('postgres', "$build REINDEX TABLE CONCURRENTLY t;");
	kill 'TERM', service_pid($subscriber);
	$node->safe_psql('postgres', "UPDATE t SET n = -8 WHERE id BETWEEN 5 AND 9; DELETE FROM t WHERE id BETWEEN 50 AND 60; CLUSTER t USING t_k; UPDATE t SET n = -9 WHERE id BETWEEN 15 AND 19");
	$node->wait_for_catchup('s');
	wait_ready($subscriber);
	my $all = 'SELECT * FROM t ORDER BY k, id;';
	same_order(rows_of($subscriber, $force, $all), stock($node, $all), 'subscription: rows');
	is(value($subscriber, 'SELECT count(*) >= 10, bool_and(place > 0) FROM log'), 't|t', 'subscription: the trigger sorted in the apply worker');
	is(good_indexes($subscriber, 'subscription', "indrelid = 't'::regclass"), 3, 'subscription: indexes');
	released($subscriber, 'subscription');
	released($node, 'publication');
	$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION s');
	$subscriber->stop;
}

#
# A standby is promoted while it sorts, and reads a cursor
#
{
	$node->backup('base');
	my $standby = PostgreSQL::Test::Cluster->new('standby');
	$standby->init_from_backup($node, 'base', has_streaming => 1);
	$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = 0\nhot_standby_feedback = off\n");
	$standby->start;
	wait_ready($standby);
	$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));

	my $query = 'SELECT id, k FROM t ORDER BY k, id;';
	my $expected = stock($node, $query);

	# cancelled by recovery, in the middle
	my ($cursor) = cursor($standby, $query =~ s/;$//r, 5);
	$node->safe_psql('postgres', 'DELETE FROM t WHERE id = 77; VACUUM t; VACUUM FULL t;');
	$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
	released($standby, 'standby, conflict with recovery');
	$cursor->query('FETCH ALL FROM c;');
	like($cursor->errors, qr/conflict with recovery|connection/, 'standby, conflict with recovery: error');
	$cursor->quit;
	$expected = stock($node, $query);

	$standby->append_conf('postgresql.conf', "gpusort.fault = 'service_hold_sort'\n");
	$standby->reload;
	$standby->poll_query_until('postgres', "SELECT current_setting('gpusort.fault') <> ''");
	my $sort = session($standby, "$force $parallel");
	$sort->send($query);
	becomes($standby, "count(*) = 1 FROM gpusort_activity WHERE phase = 'sorting'", 'promotion: a sort is under way');
	$standby->promote;
	$standby->append_conf('postgresql.conf', "gpusort.fault = ''\n");
	$standby->reload;
	same_order($sort->receive, $expected, 'promotion: rows');
	is($sort->errors, '', 'promotion: no error');
	is($sort->query("$build CREATE INDEX t_z ON t (id, k); SELECT bt_index_check('t_z', true);"), '', 'promoted: the same session builds an index');
	is($sort->errors, '', 'promoted: no error');
	$sort->quit;
	released($standby, 'promotion');
	$standby->stop;
}

$node->stop;
done_testing();
