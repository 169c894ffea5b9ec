# docs/advise.sql: what it says of indexes and statements, on a server that knows
# nothing of gpusort, without pg_stat_statements and with it.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('advise');

# Unaligned lines, with what psql said besides
sub advice
{
	my (@params) = @_;
	my ($out, $err) = run_command([ 'psql', '-XAt', '-v', 'ON_ERROR_STOP=1', @params,
			'-d', $node->connstr('postgres'), '-f', "$ENV{TESTDIR}/docs/advise.sql" ]);

	is($err, '', "no error (@params)");
	return $out;
}

$node->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
$node->append_conf('postgresql.conf', "autovacuum = off\nwork_mem = 1MB\n");
$node->start;
$node->safe_psql('postgres', q(
	CREATE DOMAIN word AS text COLLATE "en_US.utf8";
	CREATE TABLE t AS SELECT i AS n, md5(i::text) AS k, md5(i::text)::word AS w, md5(i::text) COLLATE "en-x-icu" AS u,
		to_jsonb(i) AS j, to_tsvector('simple', i::text) AS v, ARRAY[i, i + 1] AS a FROM generate_series(1, 30000) AS i;
	CREATE INDEX by_number ON t (n);
	CREATE INDEX by_bytes ON t (n, k);
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
		by_pattern => 'text by bytes',
		by_language => 'text of libc',
		by_icu => 'text of ICU',
		by_json => 'text by bytes',
		by_vector => 'not sorted by gpusort',
		by_keys => 'GIN'
	},
	'indexes and their keys');
like($text, qr/\nby_language\|.*\nby_icu\|/s, 'the largest gain comes first');
like($text, qr/^by_language\|text of libc\|30000\|\d+ kB\|0\.1\|0\.0\|10\.5\|\d+ kB$/m, 'times');
like($text, qr/^by_keys\|GIN\|30000\|\d+ kB\|-\|-\|8\.0\|\d+ kB$/m, 'no guess of seconds for GIN');
like($text, qr/^by_vector\|.*\|-\|-\|-\|-$/m, 'nothing for what gpusort leaves alone');
like($text, qr/pg_stat_statements is not loaded/, 'without pg_stat_statements');

# created, but not loaded
$node->safe_psql('postgres', 'CREATE SCHEMA "Stats"; CREATE EXTENSION pg_stat_statements SCHEMA "Stats"');
like(advice(), qr/pg_stat_statements is not loaded/, 'pg_stat_statements is not loaded');

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_stat_statements'\n");
$node->restart;
$node->safe_psql('postgres', q(
	CREATE ROLE reader LOGIN;
	GRANT USAGE ON SCHEMA "Stats" TO reader;
	SELECT "Stats".pg_stat_statements_reset();
	SELECT count(*) FROM (SELECT k FROM t ORDER BY k, u OFFSET 0) AS temporary;
	SELECT k FROM t ORDER BY n;
	SELECT count(*) FROM (SELECT n FROM t WHERE n < 100 ORDER BY k OFFSET 0) AS few;
	SELECT k FROM t;
	EXPLAIN (ANALYZE) SELECT k FROM t ORDER BY k, w;));
$text = advice();
like($text, qr/^1\|\d+\|[1-9]\d*\|1\|[1-9]\d*\|\d+\|\d+\|\d+ kB\|SELECT count.* ORDER BY k, u OFFSET/m, 'a sort in temporary files');
like($text, qr/^1\|\d+\|0\|30000\|\d+\|\d+\|\d+\|\d+ kB\|SELECT k FROM t ORDER BY n$/m, 'a sort of many rows');
is(scalar(() = $text =~ /\|SELECT|\|EXPLAIN/g), 2, 'no other statements');

# a role that may see nothing of others
unlike(advice('-U', 'reader'), qr/\|SELECT/, 'statements of others are hidden');

$node->stop;
done_testing();
