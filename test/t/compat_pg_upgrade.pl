# pg_upgrade of a database that uses all that gpusort has: indexes of all kinds
# that it built, objects of users that depend on the extension, settings of roles
# and databases.  GPUSORT_OLDER_SERVER is the older server, with gpusort in it
# (test/lib/suites.sh); without one there is nothing to do.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

plan skip_all => 'there is no older PostgreSQL' unless $ENV{GPUSORT_OLDER_SERVER};

# From 18 on initdb writes checksums, and both must do the same
my @init = (extra => [ '-k', '--locale=C', '--encoding=UTF8' ]);
my $old = PostgreSQL::Test::Cluster->new('older', install_path => $ENV{GPUSORT_OLDER_SERVER});

$old->init(@init);
$old->start;
$old->safe_psql('postgres', 'CREATE EXTENSION gpusort');
wait_ready($old);
note('from ' . $old->safe_psql('postgres', 'SHOW server_version'));

$old->safe_psql('postgres', q(
	SET gpusort.min_rows = 0;
	SET min_parallel_table_scan_size = 0;
	CREATE TYPE colour AS ENUM ('red', 'green', 'blue');
	CREATE DOMAIN amount AS numeric CHECK (VALUE < 1000000);
	CREATE TABLE t (id int PRIMARY KEY, c text COLLATE "C", l text COLLATE "en_US.utf8", u text COLLATE "en-x-icu",
		n amount, e colour, d timestamptz, a int[], w text[] COLLATE "en_US.utf8",
		s int[] GENERATED ALWAYS AS (gpu_sort_array(a, true)) STORED,
		CHECK (array_length(gpu_sort_array(a), 1) = 3));
	INSERT INTO t SELECT i, md5(i::text), nullif(left(md5((i * 7)::text), i % 9), ''), initcap(md5((i % 5000)::text)),
			hashint4(i) / 7.0 % 1000, (enum_range(NULL::colour))[1 + i % 3], timestamptz '2026-01-01 0:00Z' + i % 900 * interval '1 hour',
			ARRAY[i % 7, i % 5, i], ARRAY[left(md5(i::text), 3), 'b', 'B']
		FROM generate_series(1, 12000) AS i;
	UPDATE t SET n = NULL WHERE id % 10 = 0;
	CREATE INDEX t_c ON t (c);
	CREATE UNIQUE INDEX t_l ON t (l DESC NULLS LAST, id) INCLUDE (n);
	CREATE INDEX t_u ON t (u, d);
	CREATE INDEX t_n ON t (n DESC, e);
	CREATE INDEX t_a ON t (a);
	CREATE INDEX t_w ON t (w);
	CREATE INDEX t_lower ON t (lower(l), upper(u));
	CREATE INDEX t_sorted ON t (gpu_sort_array(a), s);
	CREATE INDEX t_part ON t (u) WHERE e = 'green' AND gpu_sort_array(a) > '{1}';
	CREATE TABLE p (id int, l text COLLATE "en_US.utf8", PRIMARY KEY (id)) PARTITION BY RANGE (id);
	CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (3000);
	CREATE TABLE p2 PARTITION OF p DEFAULT;
	INSERT INTO p SELECT id, l FROM t;
	CREATE INDEX p_l ON p (l, id);
	REINDEX TABLE p;

	CREATE ROLE app LOGIN;
	CREATE VIEW state AS SELECT d.device, d.state, s.index_builds, s.fallbacks FROM gpusort_devices AS d, gpusort_stats AS s;
	CREATE VIEW busy AS SELECT * FROM gpusort_activity;
	CREATE VIEW sorted AS SELECT id, gpu_sort_array(a) AS a FROM t;
	CREATE MATERIALIZED VIEW largest AS SELECT id, (gpu_sort_array(a, true))[1] AS a FROM t;
	CREATE UNIQUE INDEX largest_id ON largest (id);
	CREATE FUNCTION median(int[]) RETURNS int IMMUTABLE BEGIN ATOMIC SELECT (gpu_sort_array($1))[2]; END;
	CREATE FUNCTION builds() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT index_builds FROM gpusort_stats); END';
	GRANT EXECUTE ON FUNCTION gpusort_stats_reset() TO app;
	ALTER DATABASE postgres SET gpusort.min_rows = 1000;
	ALTER ROLE app SET gpusort.enabled = off;
	ALTER ROLE app IN DATABASE postgres SET gpusort.wait_timeout = '5s';

	CREATE DATABASE late;));
$old->safe_psql('late', q(
	CREATE EXTENSION gpusort VERSION '0.1.0';
	CREATE VIEW sorts AS SELECT sorts FROM gpusort_stats;));
cmp_ok(value($old, 'SELECT index_builds FROM gpusort_stats'), '>=', 15, 'gpusort built the indexes');

my @queries = (
	'SELECT * FROM t ORDER BY id;',
	'SELECT l, id FROM t ORDER BY l DESC NULLS LAST, id;',
	'SELECT u, d, id FROM t ORDER BY u, d, id;',
	'SELECT n, e, id FROM t ORDER BY n DESC, e, id;',
	'SELECT w, id FROM t ORDER BY w, id;',
	'SELECT lower(l), upper(u), id FROM t ORDER BY lower(l), upper(u), id;',
	'SELECT gpu_sort_array(a), s, id FROM t ORDER BY gpu_sort_array(a), s, id;',
	'SELECT * FROM p ORDER BY l, id;',
	'SELECT * FROM sorted ORDER BY id;',
	'SELECT * FROM largest ORDER BY a, id;');

# What must be the same before and after
my $state = q(
	SELECT extname, extversion FROM pg_extension WHERE extname = 'gpusort';
	SELECT (SELECT datname FROM pg_database WHERE oid = setdatabase), setrole::regrole,
			(SELECT string_agg(s, ' ' ORDER BY s) FROM unnest(setconfig) AS s WHERE s LIKE 'gpusort.%')
		FROM pg_db_role_setting ORDER BY 1, 2::text;
	SELECT oid::regprocedure, has_function_privilege('app', oid, 'EXECUTE') FROM pg_proc
		WHERE proname ~ '^gpu' ORDER BY oid::regprocedure::text;
	SELECT pg_describe_object(classid, objid, objsubid) FROM pg_depend
		WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'gpusort') AND deptype = 'e'
			AND classid <> 'pg_type'::regclass ORDER BY 1;
	SELECT indexrelid::regclass FROM pg_index WHERE indrelid::regclass::text ~ '^(t|p.?|largest)$'
		ORDER BY indexrelid::regclass::text;
	SELECT median('{9,1,5}');
	INSERT INTO t (id, a) VALUES (-1, '{3,1,2}') RETURNING s; DELETE FROM t WHERE id = -1;);
my %before = map { $_ => rows_of($old, 'SET gpusort.enabled = off;', $_) } @queries, $state;

$old->stop;

my $new = PostgreSQL::Test::Cluster->new('newer');

$new->init(@init);

sub upgrade
{
	my ($from, $to, @options) = @_;

	return ('pg_upgrade', '-d', $from->data_dir, '-D', $to->data_dir, '-b', $from->config_data('--bindir'),
		'-B', $to->config_data('--bindir'), '-s', $to->host, '-p', $from->port, '-P', $to->port, @options);
}

# Not all minor releases go together: a table without anything of gpusort's shows it
sub table_alone
{
	my $from = PostgreSQL::Test::Cluster->new('older_table', install_path => $ENV{GPUSORT_OLDER_SERVER});
	my $to = PostgreSQL::Test::Cluster->new('newer_table');

	for ($from, $to)
	{
		$_->init(@init);
		$_->append_conf('postgresql.conf', "shared_preload_libraries = ''");
	}
	$from->start;
	$from->safe_psql('postgres', 'CREATE TABLE t (id int)');
	$from->stop;
	return !system_log(upgrade($from, $to));
}

# It writes files where it is called
chdir $PostgreSQL::Test::Utils::tmp_check or die 'no directory';
command_ok([ upgrade($old, $new, '--check') ], 'pg_upgrade --check');
if (system_log(upgrade($old, $new)))
{
	ok(!table_alone(), 'pg_upgrade fails for tables without gpusort, too');
	note('nothing else is tested: take other releases');
	done_testing();
	exit;
}

$new->start;
wait_ready($new);
note('to ' . $new->safe_psql('postgres', 'SHOW server_version'));
is(rows_of($new, '', $state), $before{$state}, 'extension, settings, rights and objects are those of before');

$new->safe_psql('postgres', 'CREATE EXTENSION amcheck');

# All btree indexes, catalogs' too, which pg_upgrade has made anew
cmp_ok(good_indexes($new, 'after the upgrade'), '>', 150, 'of all indexes');
for (@queries)
{
	my $name = s/ ORDER BY.*//sr;

	same_order(rows_of($new, 'SET gpusort.enabled = off; SET enable_sort = off; SET enable_seqscan = off;', $_), $before{$_}, "$name: by index");
	same_rows($new, 'SET enable_indexscan = off; SET enable_indexonlyscan = off;', $_, "$name: sorted", $before{$_});
}
is(value($new, 'SELECT state FROM state'), 'ready', 'a view of the views');
is(value($new, 'SELECT count(*) FROM busy'), '0', 'another');
is(value($new, 'SELECT name, setting FROM pg_settings WHERE source = \'database\' AND name LIKE \'gpusort.%\''),
	'gpusort.min_rows|1000', 'the setting of the database takes effect');
is(value($new, 'SHOW gpusort.enabled; SHOW gpusort.wait_timeout; SELECT gpusort_stats_reset();', extra_params => [ '-U', 'app' ]),
	"off\n5s\n", 'those of the role, and its right');

# Indexes are built again, and gpusort does it
$new->safe_psql('postgres', 'SET gpusort.min_rows = 0; SET min_parallel_table_scan_size = 0; REINDEX TABLE t; REFRESH MATERIALIZED VIEW largest');
cmp_ok(value($new, 'SELECT builds()'), '>=', 10, 'gpusort builds the indexes again');
good_indexes($new, 'after REINDEX');

# What was not up to date stays as it is, until it is told
is($new->safe_psql('late', q(SELECT extversion FROM pg_extension WHERE extname = 'gpusort')), '0.1.0', 'an earlier version stays');
my $err = '';

$new->psql('late', 'SELECT * FROM sorts', stderr => \$err);
like($err, qr/extension gpusort has another version than its library/, 'its views ask for the update');
$new->psql('late', 'ALTER EXTENSION gpusort UPDATE', stderr => \$err);
like($err, qr/view sorts depends on view gpusort_stats/, 'users\' views on its views are in the way');
is($new->safe_psql('late', 'DROP VIEW sorts; ALTER EXTENSION gpusort UPDATE; SELECT state FROM gpusort_devices'),
	'ready', 'and it is updated without them');
released($new, 'at the end');

$new->stop;
done_testing();
