# docs/advise.sql: what it says of indexes and statements, on a server that knows
# nothing of gpusort, without pg_stat_statements and with it; and what docs/distinct.sql
# counts.  Then both on the same server with gpusort.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = PostgreSQL::Test::Cluster->new('advise');

# Unaligned lines
sub script
{
	my ($name, @params) = @_;
	my ($out, $err) = run_command([ 'psql', '-XAt', '-v', 'ON_ERROR_STOP=1', @params,
			'-d', $node->connstr('postgres'), '-f', "$ENV{TESTDIR}/docs/$name.sql" ]);

	is($err, '', "no error ($name @params)");
	return $out =~ s/^public\.//gmr;
}

sub advice
{
	return script('advise', @_);
}

$node->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\nwork_mem = 1MB\n");
$node->start;
$node->safe_psql('postgres', q(
	CREATE DOMAIN word AS text COLLATE "en_US.utf8";
	CREATE TABLE t AS SELECT i AS n, md5(i::text) AS k, md5(i::text)::word AS w, md5(i::text) COLLATE "en-x-icu" AS u,
		to_jsonb(i) AS j, to_tsvector('simple', i::text) AS v, ARRAY[i, i + 1] AS a FROM generate_series(1, 30000) AS i;
	CREATE INDEX by_number ON t (n);
	CREATE INDEX by_bytes ON t (n, k);
	CREATE INDEX by_code_points ON t (k COLLATE "C.utf8");
	CREATE INDEX by_pattern ON t (w text_pattern_ops);
	CREATE INDEX by_language ON t (n, w);
	CREATE INDEX by_icu ON t (u);
	CREATE INDEX by_json ON t (j);
	CREATE INDEX by_vector ON t (v);
	CREATE INDEX by_array ON t (a);
	CREATE INDEX by_keys ON t USING gin (a);
	CREATE INDEX small ON t (n) WHERE n < 1000;
	CREATE INDEX other ON t USING hash (n);
	VACUUM ANALYZE t;));

my $text = advice();
my %kind = $text =~ /^(\w+)\|([^|]*)\|30000\|/gm;

is_deeply(
	\%kind,
	{
		by_number => 'numbers, times, bytes',
		by_array => 'numbers, times, bytes',
		by_bytes => 'text by bytes',
		by_code_points => 'text by bytes',
		by_pattern => 'text by bytes',
		by_language => 'text of libc',
		by_icu => 'text of ICU',
		by_json => 'text by bytes',
		by_vector => 'not sorted by gpusort',
		by_keys => 'GIN'
	},
	'indexes and their keys');
like($text, qr/\nby_language\|.*\nby_icu\|/s, 'the largest gain comes first');
like($text, qr/^by_language\|text of libc\|30000\|\d+ kB\|60\|6\|17\|\d+ kB$/m, 'times of PostgreSQL, with a GPU and without');
like($text, qr/\nby_keys\|GIN\|30000\|\d+ kB\|[1-9]\d\d\|\d\d\|\d\d+\|\d+ kB\nby_language\|/, 'GIN by its size, which is the largest gain');
like($text, qr/^by_vector\|.*\|21\|-\|-\|-$/m, 'nothing for what gpusort leaves alone');
like($text, qr/pg_stat_statements is not loaded/, 'without pg_stat_statements');

# created, but not loaded
$node->safe_psql('postgres', 'CREATE SCHEMA "Stats"; CREATE EXTENSION pg_stat_statements SCHEMA "Stats"');
like(advice(), qr/pg_stat_statements is not loaded/, 'pg_stat_statements is not loaded');

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_stat_statements'\n");
$node->restart;
$node->safe_psql('postgres', q(
	CREATE ROLE reader LOGIN;
	CREATE COLLATION german (provider = icu, locale = 'de');
	CREATE COLLATION "Stats".german (provider = libc, locale = 'en_US.utf8');
	CREATE COLLATION "Stats"."By "" bytes" FROM "C";
	GRANT USAGE ON SCHEMA "Stats" TO reader;
	SELECT "Stats".pg_stat_statements_reset();
	SELECT count(*) FROM (SELECT k FROM t ORDER BY k, u OFFSET 0) AS temporary;
	SELECT k FROM t ORDER BY n;
	SELECT count(*) FROM (SELECT n FROM t WHERE n < 100 ORDER BY k OFFSET 0) AS few;
	SELECT k FROM t ORDER BY w COLLATE "en_US.utf8";
	SELECT w FROM t ORDER BY w COLLATE German;
	SELECT u FROM t ORDER BY u COLLATE "Stats" . german;
	SELECT j FROM t ORDER BY k COLLATE "Stats"."By "" bytes", n DESC;
	SELECT /* COLLATE "" */ v FROM t ORDER BY n;
	SELECT k FROM t;
	EXPLAIN (ANALYZE) SELECT k FROM t ORDER BY k, w;));
$text = advice();
my $range = qr/\|\d+ to \d+\|\d+ to \d+\|/;
like($text, qr/^1\|\d+\|[1-9]\d*\|1${range}text by bytes\|\d+ kB\|SELECT count.* ORDER BY k, u OFFSET/m, 'a sort in temporary files');
like($text, qr/^1\|\d+\|0\|30000${range}text by bytes\|\d+ kB\|SELECT k FROM t ORDER BY n$/m, 'a sort of many rows');
like($text, qr/^1\|\d+\|\d+\|30000${range}text of libc\|\d+ kB\|SELECT k FROM t ORDER BY w COLLATE/m, 'a sort in the order of a language');
like($text, qr/^1\|.*${range}text of ICU\|\d+ kB\|SELECT w FROM t ORDER BY w COLLATE German/m, 'a name without quotes');
like($text, qr/^1\|.*${range}text of libc\|\d+ kB\|SELECT u FROM t ORDER BY u COLLATE "Stats" \. german/m, 'a name with a schema');
like($text, qr/^1\|.*${range}text by bytes\|\d+ kB\|SELECT j FROM t ORDER BY k COLLATE/m, 'a name with a quote');
is(scalar(() = $text =~ /\|SELECT|\|EXPLAIN/g), 7, 'no other statements');

# a role that may see nothing of others
unlike(advice('-U', 'reader'), qr/\|SELECT/, 'statements of others are hidden');

#
# docs/distinct.sql: wrong numbers that an earlier ALTER TABLE has left
#
$node->safe_psql('postgres', q(
	CREATE SCHEMA "My % schema";
	CREATE TABLE "My % schema"."a'b" AS SELECT i AS id, i % 10000 AS "n % 'x", i % 300 AS few, i % 400 AS near, '{}'::json AS j,
		CASE WHEN i % 2 = 0 THEN 'a' || i END AS half FROM generate_series(1, 30000) AS i;
	CREATE UNIQUE INDEX ON "My % schema"."a'b" (id);
	ALTER TABLE "My % schema"."a'b" ALTER id SET (n_distinct = 3), ALTER "n % 'x" SET (n_distinct = 7),
		ALTER few SET (n_distinct = -0.9), ALTER near SET (n_distinct = 100), ALTER half SET (n_distinct = 2000);
	CREATE TABLE parts (k int, v int) PARTITION BY LIST (k);
	CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
	CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
	INSERT INTO parts SELECT 1 + i % 2, i FROM generate_series(1, 40000) AS i;
	ALTER TABLE parts ALTER v SET (n_distinct_inherited = 3);
	ALTER TABLE parts_1 ALTER v SET (n_distinct = 3);
	CREATE TABLE parent (v int UNIQUE);
	CREATE TABLE child () INHERITS (parent);
	INSERT INTO parent SELECT generate_series(1, 20000);
	INSERT INTO child SELECT generate_series(1, 20000);
	ALTER TABLE parent ALTER v SET (n_distinct_inherited = 3);
	CREATE TABLE "old %" WITH (autovacuum_enabled = off) AS SELECT i % 7 AS v FROM generate_series(1, 30000) AS i;
	CREATE TABLE few AS SELECT CASE WHEN i % 20 = 0 THEN i END AS v FROM generate_series(1, 30000) AS i;));
$node->safe_psql('postgres', 'ANALYZE');
$node->safe_psql('postgres', 'UPDATE few SET v = NULL WHERE v IS NOT NULL');
$node->safe_psql('postgres', q(UPDATE "old %" SET v = n FROM (SELECT count(*) AS n FROM t) AS t; SELECT pg_stat_force_next_flush()));
my $wrong = <<'SQL';
ANALYZE public."old %";  -- first, and ask again: 30000 changes since the last one, in 30000 rows
ALTER TABLE "My % schema"."a'b" ALTER COLUMN "n % 'x" SET (n_distinct = -0.333333);  -- a guess of 7 values, but there are 10000 in 30000 rows
ALTER TABLE "My % schema"."a'b" ALTER COLUMN few SET (n_distinct = 300);  -- a guess of 27000 values, but there are 300 in 30000 rows
ALTER TABLE "My % schema"."a'b" ALTER COLUMN half SET (n_distinct = -0.5);  -- a guess of 2000 values, but there are 15000 in 30000 rows
ALTER TABLE public.parent ALTER COLUMN v SET (n_distinct_inherited = -0.5);  -- a guess of 3 values, but there are 20000 in 40000 rows
ALTER TABLE public.parts ALTER COLUMN v SET (n_distinct_inherited = -1);  -- a guess of 3 values, but there are 40000 in 40000 rows
SQL
my $end = "-- ANALYZE the tables of the commands above then: it keeps the numbers from now on. No commands: no guess is wrong.";

is(script('distinct', '-v', 'min_rows=25000'), "-- gpusort is not loaded: PostgreSQL counts, which is slower\n$wrong$end", 'columns whose number is wrong');
is(script('distinct'), "-- gpusort is not loaded: PostgreSQL counts, which is slower\n$end", 'tables are too small');
like(script('distinct', '-v', 'min_rows=1', '-v', 'tables=public.parts%1'), qr/PostgreSQL counts.*\nALTER TABLE public\.parts_1 .*\n\Q$end\E\z/, 'a partition');

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpusort'\ngpusort.device = host\n");
$node->restart;
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
wait_ready($node);
like(advice(), qr/^This server sorts on its CPU/, 'there is no GPU for gpusort');
my $commands = script('distinct', '-v', 'min_rows=25000');
is($commands, "-- gpusort counts\n$wrong$end", 'gpusort counts the same');
cmp_ok($node->safe_psql('postgres', 'SELECT sorts FROM gpusort_stats'), '>', 0, 'and sorts');
$node->safe_psql('postgres', "$commands\nANALYZE");
is(script('distinct', '-v', 'min_rows=25000'), "-- gpusort counts\n$end", 'then all numbers are right');
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_stat_statements, gpusort'\n");
$node->restart;
$node->safe_psql('postgres', 'SELECT "Stats".pg_stat_statements_reset()');
script('distinct', '-v', 'min_rows=1');
cmp_ok($node->safe_psql('postgres', q{SELECT count(*) FROM "Stats".pg_stat_statements WHERE query LIKE '%count(DISTINCT%'}), '>', 3, 'distinct.sql counts');
unlike(advice(), qr/\|SELECT/, 'and advise.sql does not show how');
$node->safe_psql('postgres', 'ALTER SYSTEM SET gpusort.enabled = maintenance; SELECT pg_reload_conf()');
$node->poll_query_until('postgres', q(SELECT current_setting('gpusort.enabled') <> 'on')) or die;
is(script('distinct', '-v', 'min_rows=25000'), "-- gpusort.enabled is maintenance: PostgreSQL counts, which is slower\n$end", 'queries are not for gpusort');

$node->stop;
done_testing();
