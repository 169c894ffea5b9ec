# Commands that rebuild all of a database, with gpusort forced on: catalogs,
# TOAST tables and tables of all kinds, again and again, also after each other's
# failures.  Every btree index must then be right, by amcheck.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('whole_database');

$node->safe_psql('postgres', q(
	CREATE EXTENSION amcheck;
	CREATE SCHEMA s;
	CREATE TYPE colour AS ENUM ('red', 'green', 'blue');
	CREATE TABLE s.t (id int PRIMARY KEY, k text COLLATE "C", l text COLLATE "en_US.utf8", c colour, n numeric, a int[], big text,
		EXCLUDE (id WITH =)) WITH (parallel_workers = 2);
	ALTER TABLE s.t ALTER big SET STORAGE EXTERNAL;
	INSERT INTO s.t SELECT i, md5(i::text), nullif(left(md5((i * 7)::text), i % 9), ''),
			(enum_range(NULL::colour))[1 + i % 3], hashint4(i) / 7.0, ARRAY[i % 7, i % 5],
			CASE WHEN i % 50 = 0 THEN repeat(md5(i::text), 100) END
		FROM generate_series(1, 12000) AS i;
	CREATE INDEX t_k ON s.t (k DESC NULLS LAST, id) INCLUDE (n);
	CREATE INDEX t_l ON s.t (l, k);
	CREATE INDEX t_c ON s.t (c, n);
	CREATE INDEX t_a ON s.t (a, lower(k)) WHERE id % 3 = 0;
	CREATE INDEX t_h ON s.t USING hash (k);
	ALTER TYPE colour ADD VALUE 'amber' BEFORE 'green';
	CREATE TABLE s.p (id int, k text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
	CREATE TABLE s.p1 PARTITION OF s.p FOR VALUES FROM (0) TO (3000);
	CREATE TABLE s.p2 PARTITION OF s.p DEFAULT;
	INSERT INTO s.p SELECT i, md5(i::text) FROM generate_series(1, 6000) AS i;
	CREATE INDEX p_k ON s.p (k);
	CREATE UNLOGGED TABLE s.u AS SELECT * FROM s.p;
	CREATE UNIQUE INDEX u_id ON s.u (id DESC);
	CREATE MATERIALIZED VIEW s.m AS SELECT * FROM s.p;
	CREATE UNIQUE INDEX m_id ON s.m (id);
	CREATE INDEX m_k ON s.m (k);
	CLUSTER s.t USING t_k;
	UPDATE s.t SET n = n + 1, c = 'amber' WHERE id % 4 = 0;
	DELETE FROM s.t WHERE id % 11 = 0;));

my $query = 'SELECT * FROM s.t ORDER BY id;';
my $expected = stock($node, $query);

# Check all btree indexes of the database, catalogs' and TOAST tables' included
sub good_database
{
	my ($what) = @_;
	my $invalid = $node->safe_psql('postgres',
		"SELECT string_agg(indexrelid::regclass::text, ' ') FROM pg_index WHERE NOT (indisvalid AND indisready AND indislive)");

	is($invalid, '', "$what: all indexes are valid");
	cmp_ok(good_indexes($node, $what, "relpersistence <> 't'"), '>', 150, "$what: of many indexes");
	same_order(rows_of($node, 'SET enable_seqscan = off; SET enable_sort = off; SET gpusort.enabled = off;', $query), $expected, "$what: rows by index");
	is(value($node, "SELECT count(*) FROM pg_class WHERE relname ~ '_ccnew|_ccold|^pg_temp_\\d+\$'"), '0',
		"$what: nothing temporary is left");
}

good_database('at first');
for my $mode ([ 'serial', 0, 'SET max_parallel_maintenance_workers = 2;' ],
	[ 'parallel', 2, 'SET max_parallel_maintenance_workers = 2; SET min_parallel_table_scan_size = 0;' ])
{
	my ($name, $workers, $settings) = @$mode;

	$node->safe_psql('postgres', "ALTER TABLE s.t SET (parallel_workers = $workers)");
	for my $command ('REINDEX DATABASE postgres', 'REINDEX SYSTEM postgres', 'REINDEX SCHEMA s',
		'REINDEX SCHEMA CONCURRENTLY s', 'REINDEX DATABASE CONCURRENTLY postgres', 'VACUUM FULL', 'VACUUM (FULL, ANALYZE) pg_class, s.t, pg_index',
		'CLUSTER', 'REINDEX TABLE CONCURRENTLY pg_toast.TOAST', 'REINDEX TABLE s.p', 'REFRESH MATERIALIZED VIEW CONCURRENTLY s.m',
		'REFRESH MATERIALIZED VIEW s.m')
	{
		my $toast = $node->safe_psql('postgres', "SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 's.t'::regclass");
		my $sql = $command =~ s/pg_toast.TOAST/$toast/r;

		stats_reset($node);
		is($node->psql('postgres', "$force $settings\n$sql"), 0, "$name, $command");
		cmp_ok(value($node, 'SELECT index_builds FROM gpusort_stats'), '>', 0, "$name, $command: by gpusort")
		  unless $command =~ /SYSTEM/;
		good_database("$name, $command") if $command =~ /DATABASE|FULL|SYSTEM|SCHEMA C/;
		released($node, "$name, $command");
	}
}
good_database('in the end');

# the service ends in the middle of all that
for my $command ('REINDEX DATABASE postgres', 'REINDEX DATABASE CONCURRENTLY postgres', 'VACUUM FULL')
{
	fault($node, 'service_append:3');
	is($node->psql('postgres', "$force $command"), 0, "$command, service lost");
	fault($node, undef);
	wait_ready($node);
	good_database("$command, service lost");
	released($node, "$command, service lost");
}

$node->stop;
done_testing();
