# docs/collation.sh: it names the broken indexes of all databases and repairs them, on a server that does not load
# gpusort, on its standby, and on one that it starts itself; elsewhere it leaves nothing behind.
#
# The new ICU is another locale of the collation in its catalog: in Estonian z comes before t.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = PostgreSQL::Test::Cluster->new('collation');
my @databases = ('mydb', q(o'dd =db), "new\nline %41");
my %shown = map { $_ => s/\n/?/r } @databases;
my $above = qr/(?:(?!== ).*\n)*?/;
my $broken = qr/${above}^NOTICE:  index public\.t_p is broken\nDETAIL:  key \(p\)=\(t\) .* is followed by key \(p\)=\(z\) /m;

# Exit status, and everything that was printed
sub script
{
	my (@options) = @_;
	my $out = '';

	IPC::Run::run([ "$ENV{TESTDIR}/docs/collation.sh", @options ], '<', \undef, '>&', \$out);
	return ($? >> 8, $out);
}

sub says
{
	my ($what, $options, $status, @patterns) = @_;
	my ($got, $out) = script(@$options);

	is($got, $status, "$what: exit status") or diag($out);
	like($out, $_, "$what: message") for @patterns;
	unlike($out, qr/mismatch|sorts nothing/, "$what: no warning that says less");
}

sub sql
{
	my ($database, $sql) = @_;
	local $ENV{PGOPTIONS} = '-c search_path=public -c statement_timeout=0';
	my ($status, $out, $err) = $node->psql($database, $sql, on_error_stop => 1);

	is($status, 0, 'SQL') or diag($err);
	return $out;
}

# The order below an index changes
sub new_icu
{
	my $column = $node->pg_version >= 17 ? 'colllocale' : 'colliculocale';

	for (@databases)
	{
		sql($_, "UPDATE pg_collation SET $column = 'en' WHERE collname = 'upgraded'");
		sql($_, qq(
			REINDEX TABLE t;
			UPDATE pg_collation SET $column = 'et', collversion = '1.0' WHERE collname = 'upgraded';
			UPDATE pg_database SET datcollversion = '1.0' WHERE datname = current_database();));
	}
}

# What amcheck, the recorded versions and the catalogs say
sub state_of
{
	my ($database) = @_;
	local $ENV{PGOPTIONS} = '-c search_path=public -c statement_timeout=0';
	my ($status) = $node->psql($database, q(SELECT bt_index_check('t_p')));

	return ($status == 0 ? 'right' : 'broken') . ' ' . sql($database, q(
		SELECT CASE collversion WHEN pg_collation_actual_version(oid) THEN 'new' ELSE 'old' END
		FROM pg_collation WHERE collname = 'upgraded')) . ' '
	  . sql($database, q(SELECT count(*) FROM pg_extension WHERE extname = 'gpusort'))
	  . sql($database, q(SELECT count(*) FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = pronamespace
		WHERE probin ~ 'gpusort' AND nspname LIKE 'pg_temp%'));
}

$node->init(allows_streaming => 1, extra => [ '--encoding=UTF8', '--locale=en_US.utf8' ]);
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->start;
plan skip_all => 'PostgreSQL was built without ICU'
  unless $node->safe_psql('postgres', "SELECT count(*) FROM pg_collation WHERE collname = 'en-x-icu'");
$node->safe_psql('postgres', qq(CREATE DATABASE "$_")) for @databases;
$node->safe_psql('postgres', 'CREATE ROLE other LOGIN');
for (@databases)
{
	sql($_, q(
		CREATE EXTENSION amcheck;
		CREATE COLLATION upgraded (provider = icu, locale = 'en');
		CREATE TABLE t (p text COLLATE upgraded, d text);
		INSERT INTO t VALUES ('s'), ('t'), ('z');
		CREATE INDEX t_p ON t (p);
		CREATE INDEX t_d ON t (d);));
}
# one has the extension, and no schema that it could be in otherwise
sql($databases[1], q(CREATE SCHEMA "My schema"; CREATE EXTENSION gpusort SCHEMA "My schema";
	CREATE TABLE parts (k text COLLATE upgraded) PARTITION BY RANGE (k);
	CREATE TABLE below PARTITION OF parts FOR VALUES FROM (MINVALUE) TO ('t');
	CREATE TABLE above PARTITION OF parts FOR VALUES FROM ('t') TO (MAXVALUE);
	INSERT INTO parts VALUES ('s'), ('t'), ('z');));
$node->safe_psql('mydb', 'ALTER DATABASE mydb SET search_path = nowhere; ALTER DATABASE mydb SET statement_timeout = 1');
my @server = ('-h', $node->host, '-p', $node->port);

says('nothing has changed', \@server, 0, qr/^== mydb\nNOTICE:  no index depends on a collation whose version differs/m);

new_icu();
is(state_of('mydb'), 'broken old 00', 'an index is broken');
says('check', \@server, 1, qr/^== mydb\n$broken/m, qr/^== o'dd =db\n$broken/m, qr/^== new\?line %41\n$broken/m, qr/^== template1$/m);
is(state_of('mydb'), 'broken old 00', 'a check changes nothing');

# the environment may say where a server is, but not which database is asked, nor go before an option
{
	my $services = PostgreSQL::Test::Utils::tempdir() . '/services';

	append_to_file($services, "[s]\nhost=" . $node->host . "\nport=" . $node->port . "\ndbname=postgres\n[elsewhere]\nhostaddr=127.0.0.1\nport=1\n");
	local $ENV{PGSERVICEFILE} = $services;
	local $ENV{PGSERVICE} = 's';
	local $ENV{PGDATABASE} = 'template1';
	local $ENV{PGOPTIONS} = '-c search_path=nowhere -c client_min_messages=error -c standard_conforming_strings=off';
	delete local @ENV{qw(PGHOST PGPORT)};
	says('a service', [], 1, map { qr/^== \Q$shown{$_}\E\n$broken/m } @databases);
	$ENV{PGSERVICE} = 'elsewhere';
	local $ENV{PGHOSTADDR} = '127.0.0.1';
	says('a service and an address elsewhere', \@server, 1, map { qr/^== \Q$shown{$_}\E\n$broken/m } @databases);
}

# a standby, on which only databases with the extension can be asked
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
says('standby', [ '-h', $standby->host, '-p', $standby->port ], 2, qr/^== o'dd =db\n${above}index public\.t_p is broken: key /m, qr/^table public\.parts was not checked: cannot check partitions of table public\.parts; move its rows, as its owner: UPDATE /m, qr/cannot execute CREATE/);
$standby->stop;

# what it says of partitions moves their rows
my ($status, $out) = script(@server);
my ($move) = $out =~ /^HINT:  Move its rows, as its owner, and then refresh the version of the collation: (UPDATE .*)$/m;
is(sql($databases[1], "SELECT count(*) FROM above; $move; SELECT count(*) FROM above"), "2\n1", 'the command moves a row');
is(sql($databases[1], "SELECT string_agg(tableoid::regclass || ' ' || k, ', ' ORDER BY k) FROM parts"), 'below s, below z, above t', 'to where it belongs');
sql($databases[1], q(DROP TABLE parts;
	CREATE TABLE lone (k text COLLATE upgraded) PARTITION BY RANGE (k);
	CREATE TABLE rest PARTITION OF lone DEFAULT;
	INSERT INTO lone VALUES ('a');));
($status, $out) = script(@server);
($move) = $out =~ /(UPDATE .*)$/m;
is(sql($databases[1], "$move; SELECT count(*) FROM lone"), '1', 'a default partition alone has nothing to move');
sql($databases[1], 'DROP TABLE lone');

says('repair', [ '--repair', @server ], 0, qr/^== mydb\n$broken.*\nNOTICE:  rebuilt index public\.t_p/m, qr/^NOTICE:  recorded the new versions of 2 collations$/m);
is(state_of('mydb'), 'right new 00', 'repaired, without the extension');
is(state_of($databases[1]), 'right new 10', 'repaired, with it');
says('repaired', \@server, 0, qr/^== mydb\nNOTICE:  no index depends/m);

# versions alone
sql('mydb', q(
	CREATE INDEX t_p2 ON t (p);
	UPDATE pg_collation SET collversion = '1.0' WHERE collname = 'upgraded';));
says('two sound indexes', \@server, 0, qr/^== mydb\nNOTICE:  checked 2 indexes, none is broken/m);
is(state_of('mydb'), 'right old 00', 'nothing else has changed');
says('versions', [ '--repair', @server ], 0, qr/recorded the new version/);
sql('mydb', 'DROP INDEX t_p2');
says('a database is named', [ 'mydb', @server ], 2, qr/unknown argument mydb/);
says('an option of psql', [ @server, '-d', 'mydb' ], 2, qr/unknown argument -d/);
says('no server', [ '-h', $node->host, '-p', 1 ], 2, qr/connection to server .* failed/);
says('no superuser', [ @server, '-U', 'other' ], 2, qr/permission denied/);

# a constraint that a repair cannot look at
sql('mydb', q(ALTER TABLE public.t ADD CHECK (p > 'a')));
new_icu();
says('repair with a constraint', [ @server, '--repair' ], 1, qr/^WARNING:  did not check /m);
is(state_of('mydb'), 'right old 00', 'all but the version');
sql('mydb', q(ALTER TABLE public.t DROP CONSTRAINT t_p_check));

# its own server
new_icu();
$ENV{PGDATA} = $node->data_dir;
delete @ENV{qw(PGHOST PGPORT)};
says('the server runs', ['--start'], 2, qr/runs, or was killed/);
$node->stop;
{
	# and its socket in a folder with a blank
	my $folder = PostgreSQL::Test::Utils::tempdir_short() . "/a b'c";

	mkdir $folder;
	local $ENV{TMPDIR} = $folder;
	local $ENV{PGHOSTADDR} = '127.0.0.1';
	local $ENV{PGSSLMODE} = 'require';
	says('own server', ['--start'], 1, map { qr/^== \Q$shown{$_}\E\n$broken/m } @databases);
	opendir(my $dir, $folder) or die;
	is(join(' ', grep { !/^\./ } readdir $dir), '', 'nothing is left there');
}
says('own server, repair', [ '--repair', '--start' ], 0, qr/^NOTICE:  rebuilt index public\.t_p/m);
ok(!-e $node->data_dir . '/postmaster.pid', 'it has ended');
$ENV{PGDATA} = $PostgreSQL::Test::Utils::tmp_check;
says('no data', ['--start'], 2, qr/is no data folder/);
$node->start;
is(state_of('mydb'), 'right new 00', 'repaired by its own server');
says('help', ['--help'], 0, qr/^Which indexes has a new glibc or ICU broken\?/);

$node->stop;
done_testing();
