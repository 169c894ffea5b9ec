# docs/reindex.sql: in a database with an index of every kind it lists exactly those that a release note or a
# library asks to rebuild; its commands run.  As superuser and as another role, which owns one table.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = PostgreSQL::Test::Cluster->new('reindex');
my $file = "$ENV{TESTDIR}/docs/reindex.sql";

sub script
{
	my (@params) = @_;
	my ($out, $err) = run_command([ 'psql', '-XAt', '-v', 'ON_ERROR_STOP=1', @params,
			'-d', $node->connstr('mydb'), '-f', $file ]);

	# of a new library there is a warning
	unlike($err, qr/error/i, "no error (@params)");
	return $out;
}

# Index and number of a line's reason, which is told by words of it
my %words = (
	deduplicated => 'bpchar', 'VACUUM left' => 'gin', TOAST => 'toast', gist_trgm_ops => 'trgm', NaN => 'nan',
	'sorted bits' => 'bits', '14,653' => 'labels', 'ignores case' => 'case', 'text search' => 'words',
	'order of the database' => 'database', 'order of pg_catalog."en-x-icu"' => 'icu');

sub reasons
{
	my ($text) = @_;
	my @lines;

	for (grep { /\|/ } split /\n/, $text)
	{
		my ($index, $why, $rest) = /^([^|]*)\|([^|]*)\|(.*)$/;
		my @kinds = map { $words{$_} } grep { index($why, $_) >= 0 } keys %words;

		push @lines, "$index @kinds";
		# size and guesses
		push @lines, $_ unless $rest =~ /^\d+ (bytes|kB|MB)\|\d+\.\d\|\d+\.\d\|\d+\.\d$/;
	}
	return join "\n", sort @lines;
}

$node->init(extra => [ '--locale=en_US.utf8', '--encoding=UTF8' ]);
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->start;
my $major = $node->pg_version->major;
plan skip_all => 'PostgreSQL 18.6 with assertions stops at its own index of bpchar'
  if $node->safe_psql('postgres', q(SELECT current_setting('server_version_num') || current_setting('debug_assertions'))) eq '180006on';
my $icu = $node->safe_psql('postgres', "SELECT count(*) FROM pg_collation WHERE collname = 'en-x-icu'");

$node->safe_psql('postgres', 'CREATE ROLE owner LOGIN; CREATE DATABASE mydb');
my $name = '"My % schema"';
$node->safe_psql('mydb', qq(
	CREATE SCHEMA "Other ""one";
	CREATE EXTENSION pg_trgm SCHEMA "Other ""one";
	CREATE EXTENSION btree_gist SCHEMA "Other ""one";
	CREATE EXTENSION ltree SCHEMA "Other ""one";
	CREATE SCHEMA $name;
	SET search_path = $name, "Other ""one";
	CREATE DOMAIN five AS char(5);
	CREATE DOMAIN five_again AS five;
	CREATE DOMAIN free AS bpchar;
	CREATE TABLE t (c bpchar COLLATE "C", p bpchar, n char(5) COLLATE "C", d five COLLATE "C", e five_again COLLATE "C",
		f free COLLATE "C", m numeric, i int, k text COLLATE "C", s float8, r float4, b bit(3), w varbit, a int[], v tsvector, l ltree);
	INSERT INTO t SELECT 'a' || repeat(' ', i % 3), 'a', 'a', 'a', 'a', 'a', i, i, i, i, i, '101', '1', ARRAY[i], 'a', 'a.b'
		FROM generate_series(1, 1000) AS i;

	CREATE INDEX "y'bpchar" ON t (c);
	CREATE UNIQUE INDEX y_unique ON t (c, i);
	CREATE INDEX y_pattern ON t (c bpchar_pattern_ops, p bpchar_pattern_ops);
	CREATE INDEX y_domain ON t (f);
	CREATE INDEX y_expression ON t ((n::bpchar COLLATE "C"));
	CREATE INDEX y_gin ON t USING gin (a);
	CREATE INDEX y_gin_trgm ON t USING gin (k gin_trgm_ops);
	CREATE INDEX y_gin_words ON t USING gin (v);
	CREATE INDEX y_trgm ON t USING gist (i, k gist_trgm_ops);
	ALTER TABLE t ADD CONSTRAINT y_excluded EXCLUDE USING gist (s WITH =, i WITH =);
	CREATE INDEX y_float4 ON t USING gist (r);
	CREATE INDEX z_bit ON t USING gist (b);
	CREATE INDEX z_varbit ON t USING gist (w);
	CREATE INDEX y_ltree ON t (l);
	CREATE INDEX z_ltree ON t USING gist (l);

	CREATE INDEX x_length ON t (n);
	CREATE INDEX x_domain ON t (d);
	CREATE INDEX x_domain_again ON t (e);
	CREATE INDEX x_numeric ON t (c, m);
	CREATE INDEX x_include ON t (c) INCLUDE (i);
	CREATE INDEX x_option ON t (c) WITH (deduplicate_items = off);
	CREATE INDEX x_text ON t (k);
	CREATE INDEX x_hash ON t USING hash (p);
	CREATE INDEX x_int ON t USING gist (i);
	CREATE INDEX x_invalid ON t USING gin (a);
	UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'x_invalid'::regclass;
	CREATE TEMP TABLE temporary (a int[]);
	CREATE INDEX x_temporary ON temporary USING gin (a);

	CREATE TABLE q (a int[], i int) PARTITION BY LIST (i);
	CREATE TABLE q1 PARTITION OF q FOR VALUES IN (1);
	CREATE INDEX x_parent ON q USING gin (a);
	CREATE TABLE toasted (k text);
	CREATE TABLE not_toasted (k text);
	ALTER TABLE toasted OWNER TO owner;
	GRANT USAGE, CREATE ON SCHEMA $name TO owner;));
$node->safe_psql('mydb', qq(REINDEX TABLE CONCURRENTLY $name.toasted));
$node->safe_psql('mydb', qq(
	CREATE COLLATION $name.equal (provider = icu, locale = 'en', deterministic = false);
	CREATE TABLE $name.u (p bpchar COLLATE $name.equal, k text COLLATE "en-x-icu", t text);
	CREATE INDEX x_equal ON $name.u (p);
	CREATE INDEX i_text ON $name.u (k);)) if $icu;
my $toast = $node->safe_psql('mydb', qq(SELECT indexrelid::regclass FROM pg_index AS i JOIN pg_class AS t ON t.reltoastrelid = i.indrelid
	WHERE t.relname = 'toasted'));

my %asked = ("y'bpchar" => 'bpchar', y_unique => 'bpchar', y_pattern => 'bpchar', y_domain => 'bpchar', y_expression => 'bpchar',
	y_gin => 'gin', y_gin_trgm => 'gin', y_gin_words => 'gin', q1_a_idx => 'gin', y_trgm => 'trgm', y_excluded => 'nan',
	y_float4 => 'nan', y_ltree => 'labels');
my %newer = (z_bit => 'bits', z_varbit => 'bits', y_ltree => 'case', z_ltree => 'case');

sub expected
{
	my (%more) = @_;
	my @lines = "$toast toast";

	for my $list (\%asked, $major >= 18 ? \%newer : {}, \%more)
	{
		push @lines, map { ($_ =~ /\W/ ? qq($name."$_") : "$name.$_") . " $list->{$_}" } keys %$list;
	}
	return join "\n", sort @lines;
}

my $text = script();
is(reasons($text), expected(), 'indexes and reasons');
like($text, qr/^\d+ indexes, \d+ kB\. Guesses: PostgreSQL \d+\.\d s, gpusort \d+\.\d s on a GPU and \d+\.\d s on a CPU$/m, 'sums');
unlike($text, qr/then: ALTER/, 'no version of a collation is to be recorded');
is(reasons(script('-U', 'owner')), expected(), 'the same for another role');
$ENV{PGOPTIONS} = '-c standard_conforming_strings=off' if $major < 19;
is(reasons(script()), expected(), 'the same with backslashes in strings');
delete $ENV{PGOPTIONS};

# the commands; the role may run one of them
my @commands = grep { /^REINDEX/ } split /\n/, $text;
is(scalar @commands, scalar(() = expected() =~ /\n/g) + 1 - ($major >= 18 ? 1 : 0), 'a command for each index');
is(scalar(grep { !/ CONCURRENTLY / } @commands), 1, 'one cannot be built CONCURRENTLY');
ok((grep { /^REINDEX INDEX \Q$name.y_excluded\E;/ } @commands), 'the exclusion constraint');
unlike(script('-v', 'concurrently=no'), qr/^REINDEX .* CONCURRENTLY /m, 'commands without CONCURRENTLY');
my @own = grep { /^REINDEX/ && !/, as / } split /\n/, script('-U', 'owner');
like("@own", qr/^REINDEX TABLE CONCURRENTLY \Q$name.toasted\E;  -- \d+ bytes$/, 'the command of another role');
$node->safe_psql('mydb', $_) for @commands;
$node->safe_psql('mydb', "@own", extra_params => [ '-U', 'owner' ]);
is($node->safe_psql('mydb', "SELECT string_agg(indexrelid::regclass::text, ' ') FROM pg_index WHERE NOT indisvalid"), "$name.x_invalid", 'all have been built');
$toast = $node->safe_psql('mydb', qq(SELECT indexrelid::regclass FROM pg_index AS i JOIN pg_class AS t ON t.reltoastrelid = i.indrelid
	WHERE t.relname = 'toasted'));
is(reasons(script()), expected(), 'they are listed again');

#
# Collations
#
my %database = (y_locale => 'database', y_brin => 'database');

$node->safe_psql('mydb', qq(
	SET search_path = $name, "Other ""one";
	CREATE TABLE l (k text, p char(4), a text[]);
	CREATE INDEX y_locale ON l (k);
	CREATE INDEX y_brin ON l USING brin (k);
	CREATE INDEX x_byte_ops ON l (k text_pattern_ops, p bpchar_pattern_ops);
	CREATE INDEX x_hashed ON l USING hash (k);
	CREATE INDEX x_trigrams ON l (length(k));
	UPDATE pg_database SET datcollversion = '2.0' WHERE datname = 'mydb';
	UPDATE pg_collation SET collversion = '1.0' WHERE collname IN ('en-x-icu', 'C');));
$database{i_text} = 'icu' if $icu;
$text = script();
is(reasons($text), expected(%database), 'a new glibc, and a new ICU');
like($text, qr/\|libc \S+: the order of the database may have changed, recorded is 2\.0\|/, 'both versions');
like($text, qr/^-- then: ALTER DATABASE mydb REFRESH COLLATION VERSION;$/m, 'the version is to be recorded');
is(scalar(() = $text =~ /-- then/g), $icu ? 2 : 1, 'and that of ICU');
$node->safe_psql('mydb', 'ALTER DATABASE mydb REFRESH COLLATION VERSION');
$node->safe_psql('mydb', 'ALTER COLLATION "en-x-icu" REFRESH VERSION') if $icu;
is(reasons(script()), expected(), 'it is recorded');
like(reasons(script('-v', 'collations=all')), qr/\Q$name.y_locale\E database$/m, 'after pg_upgrade');

# nothing to say
$node->safe_psql('postgres', 'DROP DATABASE mydb');
$node->safe_psql('postgres', 'CREATE DATABASE mydb');
$text = script();
is(reasons($text), '', 'an empty database');
like($text, qr/^0 indexes/m, 'has no such index');
unlike($text, qr/Commands/, 'and no command');

# names that would end a comment, of a role that may create a schema
if ($icu)
{
	$node->safe_psql('mydb', q(
		CREATE ROLE "own
SELECT 1; --";
		CREATE COLLATION public."x
SELECT 2; --" (provider = icu, locale = 'en', version = '0');
		CREATE TABLE t (a text COLLATE public."x
SELECT 2; --");
		CREATE INDEX ON t (a);
		ALTER TABLE t OWNER TO "own
SELECT 1; --";
		CREATE ROLE stranger LOGIN;));
	for my $params ([], [ '-U', 'stranger' ])
	{
		my ($commands) = script(@$params) =~ /== Commands\n(.*)/s;

		unlike($commands, qr/^(?!REINDEX INDEX CONCURRENTLY public\.t_a_idx;|-- then: )./m, "only commands (@$params)");
		like($commands, qr/^-- then: ALTER COLLATION public\."x\?SELECT 2; --" REFRESH/m, 'the collation is named');
	}
}

$node->stop;
done_testing();
