# The scripts of docs/ and the exporters' queries in a made-up shop of 40 tables, whose owner is no superuser, and has put
# an object of his own before each of PostgreSQL's: they say what is right, agree with each other, and call nothing of his.

use strict;
use warnings;

use IPC::Run ();

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use GpusortPackaging;
use GpusortTest;

my $docs = "$ENV{TESTDIR}/docs";
my $node = new_server('shop', "max_parallel_workers_per_gather = 0\nautovacuum = off\n");
my $major = $node->pg_version->major;
my $libxml = $node->psql('postgres', q(SELECT table_to_xml('pg_am', false, false, ''))) == 0;

plan skip_all => 'PostgreSQL was built without ICU'
  unless $node->safe_psql('postgres', "SELECT count(*) FROM pg_collation WHERE collname = 'en-x-icu'");

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_stat_statements, gpusort'\n");
$node->restart;
$node->safe_psql('postgres', 'CREATE ROLE merchant LOGIN; CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher; CREATE DATABASE shop OWNER merchant');
$node->safe_psql('shop', q(CREATE EXTENSION pg_stat_statements; CREATE EXTENSION gpusort; CREATE EXTENSION pg_trgm));

sub merchant
{
	return $node->safe_psql('shop', $_[0], extra_params => [ '-U', 'merchant' ]);
}

merchant(q(
	CREATE SCHEMA shop;
	CREATE COLLATION shop.german (provider = icu, locale = 'de');
	DO $$ BEGIN FOR i IN 1 .. 38 LOOP
		EXECUTE format('CREATE TABLE shop.%I AS SELECT i AS id, i %% 50 AS city, md5(i::text) COLLATE shop.german AS name, md5(i::text) AS code
			FROM generate_series(1, %s) AS i', 'table ' || i, 1000 + 25000 * (i % 2));
		EXECUTE format('CREATE INDEX %I ON shop.%I (id)', 'id ' || i, 'table ' || i);
		EXECUTE format('CREATE INDEX %I ON shop.%I (name)', 'name ' || i, 'table ' || i);
	END LOOP; END $$;
	CREATE TABLE shop.products (id int PRIMARY KEY, tags int[], title text, price numeric, note bpchar);
	INSERT INTO shop.products SELECT i, ARRAY[i, i % 100, i % 77], 'title ' || md5(i::text), i / 7.0, 'a' FROM generate_series(1, 30000) AS i;
	CREATE INDEX products_tags ON shop.products USING gin (tags);
	CREATE INDEX products_title ON shop.products USING gin (title gin_trgm_ops);
	CREATE INDEX products_note ON shop.products (note);
	CREATE TABLE shop.orders (id int, day date) PARTITION BY RANGE (id);
	CREATE TABLE shop.orders_1 PARTITION OF shop.orders FOR VALUES FROM (0) TO (100000);
	INSERT INTO shop.orders SELECT i, DATE '2026-01-01' + i % 300 FROM generate_series(1, 30000) AS i;
	CREATE INDEX orders_day ON shop.orders (day);
	ALTER TABLE shop.products ALTER price SET (n_distinct = 5);));
$node->safe_psql('shop', 'VACUUM ANALYZE');
merchant(q(SELECT name FROM shop."table 1" ORDER BY code COLLATE shop.German;));

#
# What the owner has made: relations, functions and operators of PostgreSQL's names, which count that they are called, and
# all sessions look for names there first
#
merchant(q(
	CREATE SCHEMA trap;
	GRANT USAGE ON SCHEMA trap, shop TO public;
	CREATE SEQUENCE trap.sprung;
	GRANT ALL ON SEQUENCE trap.sprung TO public;
	CREATE FUNCTION trap.spring() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN PERFORM pg_catalog.nextval(''trap.sprung''); RETURN true; END';
	CREATE PROCEDURE trap.create(command text) LANGUAGE plpgsql AS $$ BEGIN
		EXECUTE command;
	EXCEPTION WHEN OTHERS THEN NULL;
	END $$;
	SET check_function_bodies = off;
	DO $$
	DECLARE
		r record;
	BEGIN
		FOR r IN SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v') LOOP
			CALL trap.create(format('CREATE VIEW trap.%1$I AS SELECT * FROM pg_catalog.%1$I WHERE trap.spring()', r.relname));
			CALL trap.create(format('GRANT SELECT ON trap.%I TO public', r.relname));
		END LOOP;
		FOR r IN SELECT proname, oidvectortypes(proargtypes) AS arguments, CASE WHEN proretset THEN 'SETOF ' ELSE '' END || prorettype::regtype AS result
			FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND proallargtypes IS NULL AND provariadic = 0 LOOP
			CALL trap.create(format('CREATE FUNCTION trap.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', r.proname, r.arguments, r.result,
				'BEGIN PERFORM trap.spring(); ' || CASE WHEN r.result LIKE 'SETOF%' THEN 'RETURN; END' ELSE 'RETURN NULL; END' END));
		END LOOP;
		FOR r IN SELECT oprname, oprleft::regtype AS l, oprright::regtype AS r, proname FROM pg_operator JOIN pg_proc AS p ON p.oid = oprcode
			WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprleft <> 0 LOOP
			CALL trap.create(format('CREATE OPERATOR trap.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = trap.%I)', r.oprname, r.l, r.r, r.proname));
		END LOOP;
	END $$;
	ALTER DATABASE shop SET search_path = trap, pg_catalog, shop, public;
	ALTER DATABASE shop SET standard_conforming_strings = off;));

# As a superuser who looks for PostgreSQL's own first
sub superuser
{
	local $ENV{PGOPTIONS} = '-c search_path=pg_catalog,pg_temp';
	return $node->safe_psql('shop', $_[0]);
}

sub nothing_sprung
{
	my ($what) = @_;

	is(superuser('SELECT is_called FROM trap.sprung'), 'f', "$what: nothing of the owner's was called");
	superuser("SELECT setval('trap.sprung', 1, false)");
}

sub script
{
	my ($name, @params) = @_;
	my ($out, $err) = run_command([ 'psql', '-XAt', '-d', $node->connstr('shop'), '-v', 'min_rows=25000', @params, '-f', "$docs/$name.sql" ]);

	is($err, '', "$name: no error");
	nothing_sprung($name);
	return $out;
}

cmp_ok(superuser(q(SELECT count(*) FROM pg_class WHERE relnamespace = 'trap'::regnamespace)), '>', 100, 'relations');
cmp_ok(superuser(q(SELECT count(*) FROM pg_proc WHERE pronamespace = 'trap'::regnamespace)), '>', 2000, 'functions');
cmp_ok(superuser(q(SELECT count(*) FROM pg_operator WHERE oprnamespace = 'trap'::regnamespace)), '>', 600, 'operators');
$node->psql('shop', "SELECT relname = 'x' FROM pg_class LIMIT 1", stdout => \my $unused);
is(superuser('SELECT is_called FROM trap.sprung'), 't', 'a session that trusts names calls them');
superuser("SELECT setval('trap.sprung', 1, false)");

#
# What the scripts say
#
my $advice = script('advise');
my $reindex = script('reindex', '-v', 'collations=all');
my %advised = map { /^([^|]+)\|[^|]*\|\d+\|[^|]*\|(\d+)\|(\d+)\|(\d+)\|/ ? ($1 => [ $2, $3, $4 ]) : () } split /\n/, $advice;
my %listed = map { /^([^|]+)\|(?!15|16|17|18).*\|([\d.]+)\|([\d.]+)\|([\d.]+)$/ ? ($1 => [ $2, $3, $4 ]) : () } split /\n/, $reindex;
my @both = grep { $listed{$_} } keys %advised;

is((split /\|/, (grep { /\|GIN\|/ } split /\n/, $advice)[0])[0], 'shop.products_title', 'GIN is advised');
cmp_ok(scalar(keys %advised), '==', 30, 'thirty indexes are');
like($advice, qr/\|text of ICU\|[^|]*\|SELECT name FROM shop\."table 1" ORDER BY code COLLATE shop\.German/, 'and a statement');
cmp_ok(scalar(@both), '>', 10, 'many in both lists');
for my $i (0 .. 2)
{
	is(join(' ', grep { abs($advised{$_}[$i] / 1000 - $listed{$_}[$i]) > 0.051 } @both), '', 'both guess the same');
}
like($reindex, qr/^REINDEX INDEX CONCURRENTLY shop\.products_note;/m, 'an index that a release asks to rebuild');

# a superuser does not count tables of others: planning a query evaluates the functions of their indexes
merchant(q(SET search_path = pg_catalog; CREATE FUNCTION trap.constant() RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN PERFORM trap.spring(); RETURN 1; END';
	CREATE INDEX ON shop.products ((length(title) + trap.constant()));));
superuser("SELECT setval('trap.sprung', 1, false)");
like(script('distinct'), qr/^-- gpusort counts\n-- \d+ tables of merchant are not counted/m, 'tables of others');
merchant('SET search_path = pg_catalog; DROP FUNCTION trap.constant CASCADE');
superuser("SELECT setval('trap.sprung', 1, false)");

# a pair of commands for a statement of the role's, and of nobody else's
$node->safe_psql('shop', 'SELECT city FROM shop."table 3" ORDER BY name');
my $gained = script('gained', '-U', 'merchant');
like($gained, qr/^index build\|\d+\|\d+\.\d\|20/m, 'times');
my ($pair) = $gained =~ /^-- 1 calls, [\d.]+ ms and 26000 rows each\n(.*?ORDER BY code COLLATE shop\.German\n;\n.*?ORDER BY code COLLATE shop\.German\n;\n)/ms;
unlike($gained, qr/table 3/, 'no statement of others');
$ENV{PGOPTIONS} = '-c gpusort.force=on';
like($node->safe_psql('shop', $pair, extra_params => [ '-U', 'merchant' ]), qr/^Custom Scan \(GpuSort\).*^Sort /ms, 'with gpusort and without');
delete $ENV{PGOPTIONS};
superuser("SELECT setval('trap.sprung', 1, false)");

# the owner's tables are counted for the owner
like(script('distinct', '-U', 'merchant'), qr/^-- gpusort counts\nALTER TABLE shop\.products ALTER COLUMN price SET \(n_distinct = -1\);.*\n-- ANALYZE/m, 'a wrong guess');
superuser("SELECT setval('trap.sprung', 1, false)");

#
# The owner puts a view in the place of a table while distinct.sql counts
#
SKIP:
{
	skip('the server cannot forbid views', 2) if superuser(q(SELECT count(*) FROM pg_settings WHERE name = 'restrict_nonsystem_relation_kind')) eq '0';
	my $locker = do { local $ENV{PGOPTIONS} = '-c search_path=pg_catalog'; session($node, "\\connect shop\n") };
	my ($out, $err) = ('', '');

	$locker->query('BEGIN; LOCK TABLE shop."table 1";');
	my $counting = IPC::Run::start([ 'psql', '-XAt', '-U', 'merchant', '-d', $node->connstr('shop'), '-v', 'min_rows=25000', '-v', 'tables=shop.table%', '-f', "$docs/distinct.sql" ],
		'>', \$out, '2>', \$err);
	$node->poll_query_until('postgres', q(SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE '%docs/distinct.sql%' AND wait_event = 'relation' AND datname = 'shop')) or die;
	merchant(q(SET search_path = pg_catalog; ALTER TABLE shop."table 9" RENAME TO moved;
		CREATE VIEW shop."table 9" AS SELECT * FROM shop.moved WHERE trap.spring();));
	$locker->query('COMMIT;');
	$locker->quit;
	$counting->finish;
	like($err, qr/access to non-system view "table 9" is restricted/, 'a view in the place of a table');
	nothing_sprung('a view in the place of a table');
	merchant('SET search_path = pg_catalog; DROP VIEW shop."table 9"; ALTER TABLE shop.moved RENAME TO "table 9"');
}

#
# The owner puts another schema in the place of the extensions'
#
merchant(q(
	SET search_path = pg_catalog;
	ALTER SCHEMA public RENAME TO "Hidden schema";
	CREATE SCHEMA public;
	GRANT USAGE ON SCHEMA public, "Hidden schema" TO public;
	DO $$
	DECLARE
		r record;
	BEGIN
		FOR r IN SELECT relname, pg_get_viewdef(oid) AS text FROM pg_class WHERE relnamespace = '"Hidden schema"'::regnamespace AND relkind = 'v' LOOP
			EXECUTE format('CREATE VIEW public.%I AS SELECT * FROM (%s) AS v WHERE trap.spring()', r.relname, trim(';' FROM r.text));
			EXECUTE format('GRANT SELECT ON public.%I TO public', r.relname);
		END LOOP;
		CREATE PROCEDURE public.gpusort_collation_repair(concurrently boolean, dry_run boolean) LANGUAGE plpgsql AS 'BEGIN PERFORM trap.spring(); END';
		CREATE PROCEDURE "Hidden schema".gpusort_collation_repair(a boolean DEFAULT true, b boolean DEFAULT true, c boolean DEFAULT true)
			LANGUAGE plpgsql AS 'BEGIN PERFORM trap.spring(); END';
		CREATE FUNCTION public.pg_stat_statements(showtext boolean) RETURNS SETOF public.pg_stat_statements LANGUAGE plpgsql AS
			'BEGIN PERFORM trap.spring(); END';
	END $$;));
script($_) for 'advise', 'reindex', 'gained';

# or changes them again and again
$ENV{PGOPTIONS} = '-c search_path=pg_catalog';
my $changing = IPC::Run::start([ 'psql', '-XAtq', '-U', 'merchant', '-d', $node->connstr('shop'), '-c', q(DO $$ BEGIN LOOP
	ALTER SCHEMA public RENAME TO other;
	ALTER SCHEMA "Hidden schema" RENAME TO public;
	ALTER SCHEMA other RENAME TO "Hidden schema";
	COMMIT;
	EXIT WHEN EXISTS (SELECT FROM pg_class WHERE relname = 'enough');
	END LOOP; END $$) ], '>', \my $said, '2>&1');
delete $ENV{PGOPTIONS};
for (1 .. 5)
{
	for my $name ('advise', 'gained')
	{
		run_command([ 'psql', '-XAt', '-d', $node->connstr('shop'), '-f', "$docs/$name.sql" ]);
	}
}
merchant('CREATE TABLE shop.enough ()');
$changing->finish;
is($said // '', '', 'schemas have changed');
nothing_sprung('schemas that change');
merchant('SET search_path = pg_catalog; ALTER SCHEMA public RENAME TO other; ALTER SCHEMA "Hidden schema" RENAME TO public; ALTER SCHEMA other RENAME TO "Hidden schema"')
  if superuser(q(SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'gpusort')) eq 'public';

my ($out, $err) = run_command([ 'sh', "$docs/collation.sh", '-h', $node->host, '-p', $node->port ]);
like($out, qr/^== shop\nNOTICE:  no index depends on/m, 'collation.sh');
nothing_sprung('collation.sh');

# an overload makes a call of the documents ambiguous, but not the view that they name
merchant('CREATE FUNCTION "Hidden schema".gpusort_collation_check(a int DEFAULT 0) RETURNS int LANGUAGE sql AS $$SELECT 1$$');
is(superuser('SET search_path = "Hidden schema"; SELECT count(*) FROM gpusort_collation_check'), '0', 'a view');
nothing_sprung('a view');

my ($queries) = yaml('packaging/monitoring/queries.yaml');
for my $name (sort keys %$queries)
{
	($out, $err) = run_command([ 'psql', '-XAt', '-U', 'watcher', '-d', $node->connstr('shop'), '-c', $queries->{$name}{query} ]);
	$libxml ? cmp_ok(length $out, '>', 0, "$name: rows") : like($err, qr/unsupported XML feature/, "$name: no libxml");
	nothing_sprung($name);
}

$node->stop;
done_testing();
