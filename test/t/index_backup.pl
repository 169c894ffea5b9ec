# An incremental backup over indexes that gpusort has built, and a table that it has clustered, before and
# after the full backup: pg_combinebackup puts together what the primary has.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('backup_primary', "wal_level = replica\nmax_wal_senders = 4\nfull_page_writes = on\n", stopped => 1);

plan skip_all => 'there are incremental backups from version 17 on' if $node->pg_version < 17;

my @indexes = ('a_k', 'a_g', 'b_k', 'b_g', 'c_k');
my $rows = "SET synchronize_seqscans = off; SELECT count(*) || md5(string_agg(r::text, ' ')) FROM (SELECT * FROM %s) AS r";

$node->append_conf('postgresql.conf', "summarize_wal = on\n");
$node->append_conf('pg_hba.conf', "local replication all trust\nhost replication all 127.0.0.1/32 trust\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort; CREATE EXTENSION amcheck;');
wait_ready($node);
$node->safe_psql('postgres', "SET gpusort.min_rows = 0;
	CREATE TABLE a AS SELECT i AS id, md5(i::text) AS k FROM generate_series(1, 30000) AS i;
	CREATE TABLE b AS TABLE a; CREATE TABLE c AS TABLE a; ANALYZE;
	CREATE INDEX a_k ON a (k); CREATE INDEX a_g ON a USING gin ((ARRAY[k, 'x']));
	CREATE INDEX c_k ON c (k);");
$node->backup('full');
$node->safe_psql('postgres', "$force
	CREATE INDEX b_k ON b (k DESC); CREATE INDEX b_g ON b USING gin ((ARRAY[k, 'y']));
	CLUSTER c USING c_k; REINDEX INDEX a_g;
	INSERT INTO a SELECT i, md5(i::text) FROM generate_series(30001, 30500) AS i; DELETE FROM b WHERE id % 100 = 0;");
is(value($node, 'SELECT index_builds >= 6 FROM gpusort_stats'), 't', 'built by gpusort');
$node->backup('incremental', backup_options => [ '--incremental', $node->backup_dir . '/full/backup_manifest' ]);
ok((() = glob($node->backup_dir . '/incremental/base/*/INCREMENTAL.*')) > 0, 'parts of files are in the incremental backup');

my $restored = PostgreSQL::Test::Cluster->new('backup_restored');

$restored->init_from_backup($node, 'incremental', combine_with_prior => ['full']);
$restored->start;
for my $table ('a', 'b', 'c')
{
	is(value($restored, sprintf $rows, $table), value($node, sprintf $rows, $table), "rows of $table as they lie");
}
for my $index (@indexes)
{
	my $pages = "SELECT md5(pg_read_binary_file(pg_relation_filepath('$index'))::text)";

	$_->safe_psql('postgres', 'CHECKPOINT') for $node, $restored;
	is(value($restored, $pages), value($node, $pages), "$index: the same bytes");
	is(value($restored, "SELECT bt_index_check('$index', true)"), '', "$index: amcheck") if $index =~ /_k$/;
}
$restored->stop;
$node->stop;
done_testing();
