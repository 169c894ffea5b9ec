# Indexes and tables that gpusort sorted survive crashes, and reach a standby.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $build = 'SET gpusort.force = on; SET gpusort.index_build = on;';
my $workers = "SET max_parallel_maintenance_workers = 3; SET maintenance_work_mem = '256MB';";

my $schema = q(
	CREATE EXTENSION amcheck;
	CREATE EXTENSION pageinspect;
	CREATE TABLE t (id int, k text COLLATE "C") WITH (parallel_workers = 3);
	INSERT INTO t SELECT i, md5((i / 2)::text) FROM generate_series(1, 50000) AS i;
	-- without a page's hole, which WAL does not hold, and the checksum, which a buffer's page may lack
	CREATE FUNCTION pages(index text) RETURNS text LANGUAGE sql AS $$
		SELECT count(*) || md5(string_agg(substring(page FROM 1 FOR 8) || substring(page FROM 11 FOR lower - 10) || substring(page FROM upper + 1), '' ORDER BY n))
		FROM generate_series(0, pg_relation_size(index::regclass) / current_setting('block_size')::int - 1) AS n,
			get_raw_page(index, 'main', n) AS page, page_header(page)
	$$;);

sub same_indexes
{
	my ($node, $what, $n) = @_;
	my $rows = q(SELECT count(*), md5(string_agg(k, ',' ORDER BY k COLLATE "C")) FROM t WHERE k > '');

	is(good_indexes($node, $what, "c.relname LIKE 'i\\_%'"), $n, "$what: $n indexes");
	is(value($node, "SET enable_seqscan = off; $rows"),
		value($node, "SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; $rows"),
		"$what: the index has the table's rows");
	$rows = "SELECT count(*), sum(id) FROM t WHERE ARRAY[k, 'x'] @> ARRAY[md5('5001'), 'x']";
	is(value($node, "SET enable_seqscan = off; $rows"), value($node, "SET enable_bitmapscan = off; $rows"),
		"$what: the GIN index has them");
}

# A server that is killed may have a fault point set
sub start_again
{
	my ($node) = @_;

	unlink $node->data_dir . '/postgresql.auto.conf';
	append_to_file($node->data_dir . '/postgresql.auto.conf', '');
	$node->start;
	wait_ready($node);
}

#
# The server is killed
#
for my $level ('minimal', 'replica')
{
	my $node = new_server("index_crash_$level", "wal_level = $level\nmax_wal_senders = 0\nfsync = on\n");
	my $space = PostgreSQL::Test::Utils::tempdir();

	$node->safe_psql('postgres', $schema);
	$node->safe_psql('postgres', "CREATE TABLESPACE space LOCATION '$space'");
	$node->safe_psql('postgres', "$build $workers
		CREATE INDEX i_t ON t (k);
		CREATE UNIQUE INDEX i_u ON t (id DESC) TABLESPACE space;
		CREATE INDEX i_g ON t USING gin ((ARRAY[k, 'x']));
		CREATE INDEX CONCURRENTLY i_c ON t (k, id) INCLUDE (id);
		BEGIN; CREATE TABLE n AS SELECT * FROM t; CREATE INDEX i_n ON n (k); CREATE INDEX i_ng ON n USING gin ((ARRAY[k, 'x'])); COMMIT;
		BEGIN; CREATE TABLE s AS SELECT * FROM t; SAVEPOINT a; CREATE INDEX i_s ON s (k); ROLLBACK TO a; CREATE INDEX i_s ON s (id); COMMIT;
		CREATE UNLOGGED TABLE x AS SELECT * FROM t; CREATE INDEX i_x ON x (k); CREATE INDEX ON x USING gin ((ARRAY[k]));
		CREATE TABLE e (a text); CREATE INDEX i_e ON e (a);
		REINDEX INDEX i_t; ALTER TABLE n ALTER id TYPE bigint; CLUSTER n USING i_n;");
	is(value($node, 'SELECT index_builds >= 15 FROM gpusort_stats'), 't', "$level: built by gpusort");
	$node->stop('immediate');
	$node->start;
	same_indexes($node, "$level, killed right after the build", 9);
	is(value($node, 'SELECT count(*) FROM x'), '0', "$level: the unlogged table is empty");
	is(value($node, "INSERT INTO x VALUES (1, 'a'); SELECT bt_index_parent_check('i_x', true, true)"),
		'', "$level: the unlogged table's index works");
	is(value($node, "SET enable_seqscan = off; SELECT count(*) FROM x WHERE ARRAY[k] @> ARRAY['a']"), '1', "$level: so does its GIN index");

	# with all pages on disk, or in WAL only
	$node->safe_psql('postgres', "$build $workers CREATE INDEX i_w ON t (id, k); DELETE FROM t WHERE id % 7 = 0; VACUUM t;
		INSERT INTO t SELECT i, md5(i::text) FROM generate_series(100001, 105000) AS i;");
	$node->stop('immediate');
	$node->start;
	wait_ready($node);
	same_indexes($node, "$level, killed after changes", 10);

	# while pages are written, and before
	for my $case ([ 'append', 'i_t ON t (k)' ], [ 'sort', 'i_t ON t (k)' ], [ 'fetch', 'i_t ON t (k)' ],
		[ 'fetch', "i_g ON t USING gin ((ARRAY[k, 'x']))" ])
	{
		my ($stage, $index) = @$case;
		my ($name) = $index =~ /^(\w+)/;

		fault($node, "service_hold_$stage" . ($stage eq 'sort' ? '' : ':3'));
		my $session = session($node, $build);

		$session->send("BEGIN; DROP INDEX $name; CREATE INDEX $index; COMMIT;");
		waits($node, $session, "$level, $name, $stage", '');
		$node->stop('immediate');
		$session->receive;
		$session->quit;
		start_again($node);
		same_indexes($node, "$level, $name, killed during $stage", 10);
	}

	# the service is lost while pages are written, then the server is killed
	fault($node, 'service_fetch:3');
	stats_reset($node);
	$node->safe_psql('postgres', "$build CREATE INDEX i_yg ON t USING gin ((ARRAY[k, 'y']));");
	is(fallbacks($node), '{"device lost": 1}', "$level: the device is lost");
	wait_ready($node);
	$node->safe_psql('postgres', "$build CREATE INDEX i_y ON t (k DESC);
		BEGIN; CREATE TABLE m AS SELECT * FROM t; CREATE INDEX i_m ON m (k); COMMIT;");
	$node->stop('immediate');
	start_again($node);
	same_indexes($node, "$level, killed after the service was", 13);
	$node->stop;
}

#
# A standby
#
{
	my $node = new_server('index_primary', "wal_level = replica\nmax_wal_senders = 4\nmax_replication_slots = 4\nwal_consistency_checking = all\nwal_keep_size = 4GB\n",
		stopped => 1);

	$node->append_conf('pg_hba.conf', "local replication all trust\nhost replication all 127.0.0.1/32 trust\n");
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
	wait_ready($node);
	$node->safe_psql('postgres', $schema);
	$node->backup('base');
	my $standby = PostgreSQL::Test::Cluster->new('index_standby');
	$standby->init_from_backup($node, 'base', has_streaming => 1);
	$standby->start;

	$node->safe_psql('postgres', "$build $workers
		CREATE INDEX i_t ON t (k);
		CREATE UNIQUE INDEX i_u ON t (id DESC);
		CREATE INDEX CONCURRENTLY i_c ON t (k, id);
		REINDEX INDEX CONCURRENTLY i_u;
		CREATE INDEX i_g ON t USING gin ((ARRAY[k, 'x']));
		BEGIN; CREATE TABLE n AS SELECT * FROM t; CREATE INDEX i_n ON n (k); CREATE INDEX i_ng ON n USING gin ((ARRAY[k, 'x'])); COMMIT;");
	# a table that is copied by the device, and one that PostgreSQL copies after the device was lost
	$node->safe_psql('postgres', 'CREATE TABLE c (id int, k text, v text); ALTER TABLE c ALTER v SET STORAGE EXTERNAL;
		INSERT INTO c SELECT id, k, repeat(md5(id::text), CASE WHEN id % 100 = 0 THEN 100 ELSE 3 END) FROM t;
		UPDATE c SET id = -id WHERE id % 9 = 0; DELETE FROM c WHERE id % 11 = 0; CREATE INDEX c_k ON c (k, id);
		CREATE TABLE d (LIKE c INCLUDING ALL); INSERT INTO d SELECT * FROM c;');
	stats_reset($node);
	$node->safe_psql('postgres', "$build CLUSTER c USING c_k;");
	fault($node, 'service_fetch:3');
	$node->safe_psql('postgres', "$build CLUSTER d USING d_k_id_idx;");
	is(value($node, 'SELECT device_sorts > 0 FROM gpusort_stats'), 't', 'CLUSTER by gpusort');
	is(fallbacks($node), '{"device lost": 1}', 'CLUSTER: the device is lost');
	wait_ready($node);
	$node->safe_psql('postgres', "$build CREATE INDEX i_y ON t (k DESC);");
	wait_ready($node);
	$node->safe_psql('postgres', "$build CREATE INDEX i_yg ON t USING gin ((ARRAY[k, 'y']));");
	fault($node, undef);
	$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
	for my $index ('i_t', 'i_u', 'i_c', 'i_n', 'i_y', 'i_g', 'i_ng', 'i_yg')
	{
		is(value($standby, "SELECT pages('$index')"),
			$node->safe_psql('postgres', "SELECT pages('$index')"), "standby: $index is the primary's");
		is(value($standby, "SELECT bt_index_check('$index', true)"), '', "standby: $index, amcheck") if $index !~ /g$/;
	}

	for my $table ('c', 'd')
	{
		my $rows = "SET synchronize_seqscans = off; SELECT count(*) || md5(string_agg(r::text, ' ')) FROM (SELECT * FROM $table) AS r";

		is(value($standby, $rows), value($node, $rows), "standby: rows of $table as they lie");
		is(value($standby, "SELECT * FROM verify_heapam('$table', check_toast := true)"), '', "standby: $table, verify_heapam");
	}

	# replay changes the pages, and compares them
	$node->safe_psql('postgres', "INSERT INTO t SELECT i, md5(i::text) FROM generate_series(100001, 105000) AS i; DELETE FROM t WHERE id % 7 = 0; VACUUM t;
		UPDATE c SET v = v || id WHERE id % 7 = 0; DELETE FROM d WHERE id % 7 = 0; VACUUM c, d;");
	$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
	$standby->promote;
	same_indexes($standby, 'promoted standby', 8);
	$standby->stop;
	$node->stop;
}

done_testing();
