# Collations that change their order below existing indexes, as a new glibc or ICU
# does it: gpusort_collation_check() names exactly the indexes that amcheck finds
# broken, and gpusort_collation_repair() rebuilds these and no others.
# (index_collation_repair has what disturbs a repair.)
#
# The new glibc is another locale of the same name in the folder that LOCPATH names.
# The new ICU is another locale of the collation in its catalog.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $tmp = $PostgreSQL::Test::Utils::tmp_check;

# In Estonian z comes before t
for my $locale ([ 'en_US', 'old' ], [ 'et_EE', 'new' ])
{
	mkdir "$tmp/$locale->[1]";
	system_log('localedef', '-c', '-i', $locale->[0], '-f', 'UTF-8', "$tmp/$locale->[1]/changing.utf8");
	plan skip_all => 'there are no sources of locales' unless -d "$tmp/$locale->[1]/changing.utf8";
}
$ENV{LOCPATH} = "$tmp/locale";
rename "$tmp/old", "$tmp/locale" or die;

my $node = new_server('collation_change', "gpusort.enabled = maintenance\nmax_parallel_maintenance_workers = 2\nmin_parallel_index_scan_size = 1GB\nlog_min_messages = warning\n", init => [ '--locale=C', '--encoding=UTF8' ]);
my $icu = $node->safe_psql('postgres', "SELECT count(*) FROM pg_collation WHERE collname = 'en-x-icu'");
my $locale_column = $node->pg_version >= 17 ? 'colllocale' : 'colliculocale';

# The same tables under each collation: of the database, of libc, of ICU
my $objects = q(
	CREATE EXTENSION gpusort;
	CREATE EXTENSION amcheck;
	CREATE TYPE pair AS (n int, k text COLLATE changing);
	CREATE TYPE span AS RANGE (subtype = text, collation = changing);
	CREATE TABLE t (id int PRIMARY KEY, n int, k text COLLATE changing, v varchar COLLATE changing, c char(12) COLLATE changing,
		g text COLLATE changing, o text COLLATE changing, a text[] COLLATE changing, m name COLLATE changing, p pair, s span);
	INSERT INTO t SELECT i, i % 3, k, k, left(k, 12), left(k, 1), translate(k, 'z', 'a'), ARRAY['a', k], left(k, 40), (i % 5, k)::pair, span(k, NULL)
		FROM (SELECT i, CASE WHEN i % 50 = 0 THEN NULL ELSE translate(md5(i::text), '0123456789', 'rstuvzzxyk') END AS k
			FROM generate_series(1, 6000) AS i) AS x;
	CREATE INDEX b_text ON t (k);
	CREATE INDEX b_varchar ON t (v);
	CREATE INDEX b_char ON t (c);
	CREATE INDEX b_desc ON t (k DESC NULLS LAST);
	CREATE INDEX b_multi ON t (n, k DESC, id);
	CREATE INDEX b_include ON t (k) INCLUDE (n, o);
	CREATE UNIQUE INDEX b_unique ON t (k, id);
	CREATE INDEX b_equal ON t (g);
	CREATE INDEX b_equal_separate ON t (g) WITH (deduplicate_items = off);
	CREATE INDEX b_expression ON t ((k || 'x'));
	CREATE INDEX b_array ON t (a);
	CREATE INDEX b_name ON t (m);
	CREATE INDEX b_composite ON t (p);
	CREATE INDEX b_range ON t (s);
	CREATE INDEX b_partial ON t (k) WHERE n = 1;
	CREATE OPERATOR CLASS user_pattern_ops FOR TYPE text USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
		FUNCTION 1 bttextcmp(text, text);
	CREATE INDEX b_user_pattern ON t (k user_pattern_ops);
	CREATE INDEX c_condition ON t (id) WHERE k > 'tz';
	CREATE INDEX c_expression ON t ((k > 'tz' AND o IS NOT NULL));
	CREATE INDEX c_lower ON t (length(lower(k)));
	CREATE INDEX r_partial ON t (k) WHERE strpos(k, 'z') = 0 AND k <> 'z' AND k || 'x' <> 'z' AND k IN ('', k) AND k NOT LIKE '%z%';
	CREATE INDEX r_ordered ON t (o);
	CREATE INDEX r_unique_first ON t (id, k);
	CREATE INDEX r_none ON t (k) WHERE n = 5;
	CREATE INDEX x_bytes ON t (k COLLATE "C");
	CREATE INDEX x_pattern ON t (k text_pattern_ops, c bpchar_pattern_ops);
	CREATE INDEX x_hash ON t USING hash (k);
	CREATE INDEX u_array ON t USING gin (a);
	CREATE INDEX u_brin ON t USING brin (k);
	CREATE TABLE r_empty (k text COLLATE changing CONSTRAINT r_empty_key UNIQUE);
	CREATE TABLE l (k text COLLATE changing, v text COLLATE changing);
	CREATE INDEX b_long ON l (k, v);
	INSERT INTO l SELECT repeat(substr('stz', 1 + i % 3, 1), 1000 + i), repeat(md5(i::text), i % 60) FROM generate_series(1, 300) AS i;
	CREATE TABLE q (id int, k text COLLATE changing) PARTITION BY LIST (id);
	CREATE TABLE q1 PARTITION OF q FOR VALUES IN (1);
	CREATE TABLE q2 PARTITION OF q FOR VALUES IN (2);
	INSERT INTO q SELECT 1, k FROM t UNION ALL SELECT 2, o FROM t;
	CREATE INDEX part ON q (k);
	ALTER INDEX q1_k_idx RENAME TO b_part;
	ALTER INDEX q2_k_idx RENAME TO r_part;
	-- leaves are in either order, but not the keys between them
	CREATE TABLE h (k text COLLATE changing) WITH (autovacuum_enabled = off);
	INSERT INTO h SELECT substr('stz', 1 + i / 3000, 1) || i FROM generate_series(0, 8999) AS i;
	CREATE INDEX b_separator ON h (k);
	DELETE FROM h WHERE k LIKE 't%';
	CREATE FUNCTION is_whole(index regclass) RETURNS boolean LANGUAGE plpgsql AS
		'BEGIN PERFORM bt_index_check(index, true); RETURN true; EXCEPTION WHEN index_corrupted OR data_corrupted THEN RETURN false; END';
	-- what amcheck says of each index
	CREATE FUNCTION is_broken(index regclass) RETURNS boolean LANGUAGE plpgsql AS
		'BEGIN PERFORM bt_index_parent_check(index); RETURN false; EXCEPTION WHEN index_corrupted THEN RETURN true; END';);

# Names, as "b_text b_char", where a condition holds
sub names
{
	my ($database, $where, $all) = @_;

	# each index in spans, by workers
	return $node->safe_psql($database, "SET min_parallel_index_scan_size = 0; SELECT coalesce(string_agg(index::text, ' ' ORDER BY index::text COLLATE \"C\"), '')
		FROM gpusort_collation_check(" . ($all // '') . ") WHERE $where");
}

sub messages
{
	my ($database, $sql, $settings) = @_;
	my ($out, $err) = ('', '');

	$node->psql($database, "SET gpusort.force = on; SET gpusort.min_rows = 0; $sql", stdout => \$out, stderr => \$err);
	# PostgreSQL's own, of each collation in use
	$err =~ s/^(?:WARNING:  (?:collation|database) .* version mismatch|DETAIL:  The (?:collation|database) .*|HINT:  Rebuild all objects .*)\n//gm;
	$err =~ s/^psql:<stdin>:\d+: //gm;
	return $err;
}

my $all_changing = 'b_array b_char b_composite b_desc b_equal b_equal_separate b_expression b_include b_long b_multi b_name b_part b_partial'
	. ' b_range b_separator b_text b_unique b_user_pattern b_varchar';
my $computed = 'c_condition c_expression c_lower';
my $not_changing = 'r_empty_key r_none r_ordered r_part r_partial r_unique_first';

sub set_version
{
	my ($database, $version) = @_;

	$node->safe_psql($database, $database eq 'of_database'
		? "UPDATE pg_database SET datcollversion = $version WHERE datname = 'of_database'"
		: "UPDATE pg_collation SET collversion = $version WHERE collname = 'changing'");
}

sub check_change
{
	my ($database, $changing) = @_;

	stats_reset($node);
	is(names($database, 'broken'), $changing, "$database: those that are broken");
	is(names($database, 'NOT broken'), $not_changing, "$database: those that are not");
	is(names($database, 'broken IS NULL'), "$computed u_array u_brin", "$database: those that cannot be checked");
	is(names($database, 'broken <> is_broken(index) AND broken IS NOT NULL'), '', "$database: amcheck says the same");
	is(names($database, 'detail IS NULL AND broken IS DISTINCT FROM false'), '', "$database: all have a detail");

	is($node->safe_psql($database, "SELECT is_whole('c_condition'), is_whole('c_expression')"), 'f|f', "$database: conditions and expressions give other rows");
	my ($err, $log) = ('', -s $node->logfile);
	$node->psql($database, 'SET min_parallel_index_scan_size = 0; SELECT count(*) FROM gpusort_collation_check()', stderr => \$err);
	cmp_ok(scalar(my @warnings = $err =~ /version mismatch/g), '<=', 1, "$database: the check does not repeat PostgreSQL's warning to the client");
	unlike(slurp_file($node->logfile, $log), qr/parallel worker/, "$database: nor in the log");

	my $before = $node->safe_psql($database, "SELECT oid, relfilenode FROM pg_class WHERE relname ~ '^[rxu]_' ORDER BY 1");
	my $dry = messages($database, 'CALL gpusort_collation_repair(dry_run => true)');
	is(join(' ', sort $dry =~ /^NOTICE:  index public\.(\w+) is broken$/gm), $changing, "$database: a dry run names them");
	is(join(' ', sort $dry =~ /^NOTICE:  index public\.(\w+) has to be rebuilt$/gm), $computed, "$database: and those with such conditions and expressions");
	is(names($database, 'broken'), $changing, "$database: and leaves them as they are");

	$log = -s $node->logfile;
	$err = messages($database, 'CALL gpusort_collation_repair()');
	my @mismatches = slurp_file($node->logfile, $log) =~ /version mismatch/g;
	cmp_ok(scalar @mismatches, '<=', 1, "$database: workers do not repeat PostgreSQL's warning in the server's log");
	is(join(' ', sort $err =~ /^NOTICE:  rebuilt index public\.(\w+) in \d+\.\d ms$/gm), "$changing $computed", "$database: all are rebuilt");
	is($node->safe_psql($database, "SELECT is_whole('c_condition'), is_whole('c_expression')"), 't|t', "$database: those with conditions and expressions, too");
	unlike($err, qr/ERROR|could not rebuild/, "$database: without errors");
	is(join(' ', sort $err =~ /^WARNING:  could not check index public\.(\w+)$/gm), 'u_array u_brin', "$database: it warns of others");
	like($err, qr/^WARNING:  2 indexes are broken or were not checked/m, "$database: so the version is not recorded");
	is($node->safe_psql($database, "SELECT oid, relfilenode FROM pg_class WHERE relname ~ '^[rxu]_' ORDER BY 1"), $before,
		"$database: others are as they were");
	is(names($database, 'broken'), '', "$database: none is broken any more");
	cmp_ok(value($node, 'SELECT index_builds FROM gpusort_stats'), '>=', 12, "$database: gpusort has built them");

	$err = messages($database, 'DROP INDEX u_array, u_brin, c_condition, c_expression, c_lower; CALL gpusort_collation_repair()');
	like($err, qr/^NOTICE:  checked \d+ indexes, none is broken\nNOTICE:  recorded the new version of 1 collation$/, "$database: then it is recorded");
	is(names($database, 'true'), '', "$database: no index is listed");
	set_version($database, 'NULL');
	isnt(names($database, 'NOT broken'), '', "$database: they are listed where no version was recorded");
	$err = messages($database, 'CALL gpusort_collation_repair()');
	like($err, qr/^NOTICE:  checked \d+ indexes, none is broken\nNOTICE:  recorded the new version of 1 collation$/, "$database: it is recorded there, too");
	is(names($database, 'true'), '', "$database: no index is listed any more");
	is(messages($database, "CALL gpusort_collation_repair($_)"), 'NOTICE:  no index depends on a collation whose version differs from the one recorded',
		"$database: nothing is to be done ($_)") for '', 'dry_run => true';
	is(names($database, 'broken IS DISTINCT FROM false', 'true'), '', "$database: all that could be are right");
	is($node->safe_psql($database, "SELECT string_agg(i::regclass::text, ' ') FROM pg_index AS x, LATERAL (SELECT x.indexrelid) AS y (i)
		WHERE indrelid::regclass::text ~ '^(t|l|q.|h|r_empty)\$' AND i::regclass::text ~ '^[br]_' AND is_broken(i)"), '', "$database: amcheck, too");
}

# libc: of a column, and of the database
$node->safe_psql('postgres', 'CREATE DATABASE of_libc');
$node->safe_psql('of_libc', "CREATE COLLATION changing (provider = libc, locale = 'changing.utf8'); $objects");
$node->safe_psql('postgres', "CREATE DATABASE of_database LOCALE 'changing.utf8' TEMPLATE template0");
$node->safe_psql('of_database', $objects =~ s/COLLATE changing|, collation = changing//gr);
# jsonb has no collation of its own: it takes the database's
$node->safe_psql('of_database', q(CREATE TABLE j AS SELECT to_jsonb(k) AS k FROM t;
	CREATE INDEX b_jsonb ON j (k);
	CREATE INDEX b_jsonb_array ON j ((ARRAY[k]));
	CREATE INDEX x_jsonb_gin ON j USING gin (k);
	CREATE INDEX x_jsonb_hash ON j USING hash (k);));
# (names are of "C" unless something else is said)
my %changing = (of_libc => $all_changing, of_database => $all_changing =~ s/b_name //r =~ s/b_include\K/ b_jsonb b_jsonb_array/r);

for (sort keys %changing)
{
	$node->safe_psql($_, 'VACUUM h');
	is(names($_, 'true'), '', "$_: nothing has changed");
	is(names($_, 'broken', 'true'), '', "$_: all are in order");
	is(names($_, 'NOT broken', 'all_indexes => true') =~ s/\bt_pkey //r, "$changing{$_} $not_changing", "$_: and are known");
}
$node->stop;
rename "$tmp/locale", "$tmp/old" or die;
rename "$tmp/new", "$tmp/locale" or die;
$node->start;
wait_ready($node);

# glibc's version is that of the whole library: what an older one had recorded
set_version($_, "'2.0'") for sort keys %changing;
is($node->safe_psql('of_libc', q(SELECT collations, recorded, actual = ARRAY[pg_collation_actual_version('changing'::regcollation)],
		"table", constraint_name, size FROM gpusort_collation_check() WHERE index = 'r_empty_key'::regclass)),
	'{changing}|{2.0}|t|r_empty|r_empty_key|8192', 'the columns of a row');
check_change($_, $changing{$_}) for sort keys %changing;

SKIP:
{
	skip 'the server has no ICU', 1 unless $icu;
	$node->safe_psql('postgres', 'CREATE DATABASE of_icu');
	$node->safe_psql('of_icu', "CREATE COLLATION changing (provider = icu, locale = 'en'); $objects");
	$node->safe_psql('of_icu', 'VACUUM h');
	$node->safe_psql('of_icu', "UPDATE pg_collation SET $locale_column = 'et', collversion = '1.0' WHERE collname = 'changing'");
	check_change('of_icu', $all_changing);
}

# LLVM costs seconds.  (The first query loads LLVM where there is one.)
SKIP:
{
	my $loaded = q(SELECT pg_read_file('/proc/self/maps') ~ 'llvmjit');

	skip 'the server has no LLVM', 1 if $node->safe_psql('postgres', "SET jit = on; SELECT pg_jit_available(); $loaded") ne "t\nt";
	is($node->safe_psql('postgres', "SET jit = on; SELECT count(*) * 0 FROM gpusort_collation_check(); $loaded"), "0\nf", 'the check does without LLVM');
}
released($node, 'in the end');

$node->stop;
done_testing();
