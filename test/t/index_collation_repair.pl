# What disturbs gpusort_collation_check() and gpusort_collation_repair(): others
# who write and vacuum, duplicates, locks, a cancel, a broken file, no service, no
# place for workers, callers without rights.  (index_collation_change has which
# indexes are named and rebuilt.)

use strict;
use warnings;

use IPC::Run ();

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('collation_repair', "max_connections = 40\n", init => [ '--locale=C', '--encoding=UTF8' ]);

plan skip_all => 'the server has no ICU'
  if $node->safe_psql('postgres', "SELECT count(*) FROM pg_collation WHERE collname = 'en-x-icu'") eq '0';

my $locale_column = $node->pg_version >= 17 ? 'colllocale' : 'colliculocale';
my $call = 'CALL gpusort_collation_repair';
my $state = q(SELECT string_agg(index::text || ' ' || coalesce(broken::text, 'unknown'), ', ' ORDER BY index::text) FROM gpusort_collation_check());

# Another order, in which z comes before t or after it, as by a new version
sub change
{
	my ($locale) = @_;

	$node->safe_psql('postgres', "UPDATE pg_collation SET $locale_column = '$locale', collversion = '1.0' WHERE collname = 'changing'");
}

sub messages
{
	my ($sql, @params) = @_;
	my ($out, $err) = ('', '');

	$node->psql('postgres', $sql, stdout => \$out, stderr => \$err, @params);
	return without_mismatch($err =~ s/^psql:<stdin>:\d+: //gmr) . "\n";
}

# PostgreSQL's own warning, of each collation in use
sub without_mismatch
{
	return $_[0] =~ s/^(?:.*WARNING:  collation .* version mismatch|DETAIL:  The collation .*|HINT:  Rebuild all objects .*)\n?//gmr;
}

sub all_right
{
	my ($what) = @_;

	is(value($node, $state) // '', '', "$what: nothing is left");
	good_indexes($node, $what, "c.relname ~ '^(t|u)_'");
	is(value($node, 'SELECT count(*) FROM pg_index WHERE NOT indisvalid'), '0', "$what: no invalid index");
}

sub workers
{
	return "(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'gpusort collation repair')";
}

$node->safe_psql('postgres', "CREATE EXTENSION amcheck; CREATE COLLATION changing (provider = icu, locale = 'en')");

#
# Writers and VACUUM while indexes are checked
#

# A page that was read is deleted, and new keys of its range go to the next page before that is read
$node->safe_psql('postgres', q(
	CREATE TABLE v (k text COLLATE changing);
	CREATE INDEX v_k ON v (k);
	INSERT INTO v SELECT substr('aaaaab', 1 + i / 100, 1) || i FROM generate_series(0, 599) AS i;
	DELETE FROM v WHERE k < 'b';));
my $checker = session($node, "SET gpusort.fault = 'check_page';");
$checker->send("SELECT broken, detail FROM gpusort_collation_check(true) WHERE index = 'v_k'::regclass;");
becomes($node, "EXISTS (SELECT FROM pg_stat_activity WHERE pid = $checker->{pid} AND wait_event = 'PgSleep'
	AND EXISTS (SELECT FROM pg_locks WHERE pg_locks.pid = $checker->{pid} AND relation = 'v_k'::regclass))", 'the check has read the first page');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) v');
$node->safe_psql('postgres', "INSERT INTO v SELECT 'a' || i FROM generate_series(1000, 1010) AS i");
is($checker->receive, 'f|', 'keys of a deleted page');
$checker->quit;
$node->safe_psql('postgres', 'DROP TABLE v');

$node->safe_psql('postgres', q(
	CREATE FUNCTION word(i int) RETURNS text IMMUTABLE LANGUAGE sql AS $$SELECT translate(md5(i::text), '0123456789', 'rstuvzzxyk')$$;
	CREATE TABLE t (id int, k text COLLATE changing);
	CREATE UNIQUE INDEX t_k ON t (k);
	CREATE INDEX t_id_k ON t ((id % 3), k DESC);
	CREATE TABLE u (k text COLLATE changing);
	CREATE INDEX u_k ON u (k);
	INSERT INTO t SELECT i, word(i) FROM generate_series(1, 20000) AS i;
	INSERT INTO u SELECT word(i) FROM generate_series(1, 5000) AS i;));

# All at once: pages are deleted, split and used again
my $script = $PostgreSQL::Test::Utils::tmp_check . '/collation_repair';
append_to_file("$script.churn", q(
\set first random(1, 20) * 1000
DELETE FROM t WHERE id BETWEEN :first AND :first + 1000;
VACUUM (INDEX_CLEANUP on) t;
INSERT INTO t SELECT i, word(i) FROM generate_series(:first, :first + 1000) AS i ON CONFLICT DO NOTHING;
));
append_to_file("$script.range", q(
\set first random(1, 100)
DELETE FROM u WHERE k LIKE 'range ' || :first || '%';
VACUUM (INDEX_CLEANUP on) u;
INSERT INTO u SELECT 'range ' || :first || repeat('.', i % 100) FROM generate_series(1, 3000) AS i;
));
append_to_file("$script.write", q(
\set id random(1, 40000)
DELETE FROM t WHERE id = :id;
INSERT INTO t VALUES (:id, word(:id)) ON CONFLICT DO NOTHING;
INSERT INTO u VALUES (word(:id));
));
my ($out, $err) = ('', '');

sub writers
{
	my (@scripts) = @_;

	($out, $err) = ('', '');
	return IPC::Run::start(
		[ 'pgbench', '-n', '-c', '4', '-j', '1', '-T', '3600', (map { ('-f', "$script.$_") } @scripts), $node->connstr('postgres') ],
		'>', \$out, '2>', \$err);
}

sub end_writers
{
	my ($writers, $what) = @_;

	ok($writers->pumpable, "$what: the writers went on to the end");
	$writers->kill_kill;
	unlike(without_mismatch($err), qr/(ERROR|FATAL|aborted)/, "$what: they had no errors");
}

my $writers = writers('churn', 'range');
my $wrong = '';
my $n = 0;

for (my $end = time + 4; time < $end; $n++)
{
	$wrong .= value($node, 'SELECT string_agg(index || coalesce(detail, \'\'), chr(10)) FROM gpusort_collation_check(true) WHERE broken IS DISTINCT FROM false');
}
note("$n checks");
is($wrong, '', 'checks beside writers and VACUUM find nothing wrong');
end_writers($writers, 'checks');

#
# A repair beside writers
#
change('et');
is(value($node, $state), 't_id_k true, t_k true, u_k true', 'all are broken');
# what a broken unique index lets in is another test
$node->safe_psql('postgres', 'DROP INDEX t_k; CREATE INDEX t_k ON t (k)');
$writers = writers('write');
my $messages = messages("$call()");
end_writers($writers, 'repair');
is(join(' ', sort $messages =~ /^NOTICE:  rebuilt index public\.(\w+)/gm), 't_id_k u_k', 'repair beside writers: those that are broken');
like($messages, qr/^NOTICE:  recorded the new version of 1 collation\n\z/m, 'repair beside writers: the version is recorded');
all_right('repair beside writers');

#
# Duplicates that a broken index has let in
#
$node->safe_psql('postgres', q(DELETE FROM t AS a USING t AS b WHERE a.k = b.k AND a.ctid > b.ctid; DROP INDEX t_k; CREATE UNIQUE INDEX t_k ON t (k)));
change('en');
$node->safe_psql('postgres', 'INSERT INTO t SELECT id + 1000000, k FROM t ON CONFLICT DO NOTHING');
is(value($node, 'SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT count(*) > 100 FROM (SELECT k FROM t GROUP BY k HAVING count(*) > 1) AS d'),
	't', 'there are duplicates');
for my $concurrently ('true', 'false')
{
	my $new = $concurrently eq 'true' ? '_ccnew' : '';

	$messages = messages("$call($concurrently)");
	like($messages, qr/^WARNING:  could not rebuild index public\.t_k\nDETAIL:  could not create unique index "t_k$new": Key \(k\)=\(\w+\) is duplicated\.\nHINT:  .*Remove them/m,
		"duplicates, $concurrently: it names one");
	like($messages, qr/^WARNING:  1 index is broken or was not checked/m, "duplicates, $concurrently: the version stays");
	is(value($node, $state), 't_id_k false, t_k true, u_k false', "duplicates, $concurrently: the others are rebuilt") unless $new;
	$node->safe_psql('postgres', 'DROP INDEX t_k_ccnew') if $new;
}
$node->safe_psql('postgres', 'DELETE FROM t WHERE id > 1000000');
messages("$call()");
all_right('without duplicates');

#
# A cancel in the middle: an old snapshot keeps REINDEX CONCURRENTLY waiting
#
for my $way ('cancel', 'terminate')
{
	change($way eq 'cancel' ? 'et' : 'en');
	my $reader = session($node);
	my $caller = session($node, 'SET client_min_messages = warning;');

	$reader->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM u LIMIT 1;');
	$caller->send("$call();");
	becomes($node, "count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'gpusort collation repair' AND wait_event = 'virtualxid'",
		"$way: a rebuild waits for a snapshot");
	my $worker = value($node, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'gpusort collation repair'");
	kill 'STOP', $worker;
	$ways{$way}[0]->($node, $caller);
	becomes($node, "NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $caller->{pid} AND state = 'active')",
		"$way: the caller does not wait for a worker that does not end");
	like(messages("SET lock_timeout = '1s'; $call()"), qr/already running/, "$way: so long the next call is refused");
	kill 'CONT', $worker;
	becomes($node, '0 = ' . workers(), "$way: the worker ends");
	$caller->receive;
	like(without_mismatch($caller->errors), $ways{$way}[1], "$way: the error");
	$caller->quit;
	$reader->query('COMMIT;');
	$reader->quit;
	is(value($node, q(SELECT count(*) FROM pg_index WHERE NOT indisvalid AND indexrelid::regclass::text ~ '_ccnew$')), '1', "$way: it has left an index");
	$messages = messages($call . ($way eq 'cancel' ? '()' : '(false)'));
	like($messages, qr/^WARNING:  index public\.\w+_ccnew is invalid, and was not checked$/m, "$way: which the next call names");
	unlike($messages, qr/ERROR|could not/, "$way: it goes on");
	$node->safe_psql('postgres', value($node, q(SELECT string_agg(format('DROP INDEX %s', indexrelid::regclass), ';') FROM pg_index WHERE NOT indisvalid)));
	all_right("after $way");
}

#
# Locks; settings of the caller; a cancel of the check
#
change('et');
my $locker = session($node);
$locker->query('BEGIN; LOCK TABLE u;');
like(messages("SET lock_timeout = '100ms'; $call()"),
	qr/^WARNING:  could not check index public\.u_k\nDETAIL:  canceling statement due to lock timeout$/m, 'lock_timeout is the caller\'s');
is(value($node, "SET lock_timeout = '100ms'; SELECT index, broken, detail FROM gpusort_collation_check() WHERE index = 'u_k'::regclass"),
	'u_k||canceling statement due to lock timeout', 'and the check goes on');
like(messages("SET statement_timeout = '100ms'; SELECT count(*) FROM gpusort_collation_check()"), qr/canceling statement due to statement timeout/, 'a cancel ends it');
$locker->query('COMMIT;');
$locker->quit;
like(messages("$call()"), qr/^NOTICE:  rebuilt index public\.u_k/m, 'the next call goes on');
all_right('after locks');

#
# Functions of an operator class run as the table's owner, restricted, under a safe search path
#
$node->safe_psql('postgres', q(
	CREATE ROLE alice;
	CREATE SCHEMA alice AUTHORIZATION alice;
	GRANT CREATE ON SCHEMA public TO alice;
	GRANT EXECUTE ON FUNCTION gpusort_collation_check(boolean) TO alice;
	GRANT EXECUTE ON PROCEDURE gpusort_collation_repair(boolean, boolean) TO alice;
	SET ROLE alice;
	CREATE FUNCTION alice.cmp(a text, b text) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS 'BEGIN RETURN bttextcmp(a, b); END';
	RESET ROLE;
	CREATE FUNCTION unqualified(a text, b text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN bttextcmp(a, b); END';
	CREATE OPERATOR CLASS alice.ops FOR TYPE text USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
		FUNCTION 1 alice.cmp(text, text);
	CREATE OPERATOR CLASS unqualified_ops FOR TYPE text USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
		FUNCTION 1 unqualified(text, text);
	CREATE TABLE alice.few AS SELECT word(i) COLLATE changing AS k FROM generate_series(1, 50) AS i;
	CREATE TABLE alice.many AS SELECT word(i) COLLATE changing AS k FROM generate_series(1, 20000) AS i;
	CREATE INDEX few_k ON alice.few (k alice.ops);
	CREATE INDEX many_k ON alice.many (k alice.ops);
	CREATE TABLE of_superuser AS TABLE alice.few;
	CREATE INDEX of_superuser_k ON of_superuser (k unqualified_ops);
	ALTER TABLE alice.few OWNER TO alice;
	ALTER TABLE alice.many OWNER TO alice;
	CREATE OR REPLACE FUNCTION unqualified(a text, b text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN helper(a, b); END';
	ALTER DATABASE postgres SET min_parallel_index_scan_size = 0;
	SET ROLE alice;
	CREATE FUNCTION alice.attack() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
		SET ROLE NONE;
		ALTER ROLE alice SUPERUSER;
	EXCEPTION WHEN insufficient_privilege OR invalid_parameter_value THEN NULL; END $$;
	CREATE FUNCTION public.helper(a text, b text) RETURNS int LANGUAGE plpgsql AS 'BEGIN PERFORM alice.attack(); RETURN bttextcmp(a, b); END';));

sub compares_by
{
	$node->safe_psql('postgres', "CREATE OR REPLACE FUNCTION alice.cmp(a text, b text) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS \$\$ BEGIN
		$_[0]; RETURN bttextcmp(a, b); END \$\$");
}

my $check = 'SELECT index, broken, detail FROM gpusort_collation_check(true) WHERE index';

compares_by("IF current_user <> 'alice' OR current_setting('search_path') <> 'pg_catalog, pg_temp' THEN RAISE '% %', current_user, current_setting('search_path'); END IF");
is(value($node, "$check = 'alice.many_k'::regclass"), 'alice.many_k|f|', 'role and search path');
compares_by('SET ROLE NONE');
like(value($node, "SET max_parallel_maintenance_workers = 0; SET ROLE alice; $check = 'alice.many_k'::regclass"),
	qr/^many_k\|\|cannot set parameter "role" within security-restricted operation/, 'SET ROLE NONE');
compares_by("IF current_setting('alice.leader') = pg_backend_pid()::text THEN PERFORM pg_sleep(0.001);
	ELSE RAISE 'a worker as %, %', current_user, current_setting('search_path'); END IF");
is(value($node, "DO \$\$ BEGIN PERFORM set_config('alice.leader', pg_backend_pid()::text, false); END \$\$; $check = 'alice.many_k'::regclass"),
	'alice.many_k||a worker as alice, pg_catalog, pg_temp', 'role and search path of workers');
compares_by('PERFORM alice.attack()');
for my $role ('', 'SET ROLE alice; ')
{
	for my $way ("$check = 'alice.few_k'::regclass", "$call(dry_run => true)", "$call()")
	{
		change($role ? 'et' : 'en') if $way =~ /repair/;
		messages("SET max_parallel_maintenance_workers = 0; $role$way");
		is(value($node, "SELECT rolsuper FROM pg_roles WHERE rolname = 'alice'; ALTER ROLE alice NOSUPERUSER"), 'f', "$role$way: alice is no superuser");
	}
}
compares_by('NULL');
is(value($node, "$check = 'of_superuser_k'::regclass"), 'of_superuser_k||function helper(text, text) does not exist', 'a name that is not qualified');
is(value($node, "SELECT rolsuper FROM pg_roles WHERE rolname = 'alice'"), 'f', 'a name that is not qualified: alice is no superuser');
$node->safe_psql('postgres', q(ALTER DATABASE postgres RESET min_parallel_index_scan_size; DROP OPERATOR FAMILY unqualified_ops USING btree CASCADE; DROP OPERATOR FAMILY alice.ops USING btree CASCADE;
	DROP TABLE of_superuser; DROP FUNCTION unqualified; DROP OWNED BY alice; DROP ROLE alice));
change('et');
messages("$call()");
all_right('after attacks');

#
# Where it cannot run, and who may not call it
#
like(messages("BEGIN; $call();"), qr/gpusort_collation_repair\(\) cannot run inside a transaction block/, 'in a transaction block');
like(messages("DO 'BEGIN $call(); END'; BEGIN; DO 'BEGIN $call(); END'"), qr/^ERROR:  gpusort_collation_repair\(\) cannot run inside a transaction block/m, 'in a function');
like(messages("$call(NULL);"), qr/must not be null/, 'null');
$node->safe_psql('postgres', 'CREATE ROLE app LOGIN; CREATE ROLE owner LOGIN; ALTER TABLE u OWNER TO owner');
like(messages("SELECT gpusort_collation_check()", extra_params => [ '-U', 'app' ]), qr/permission denied for function gpusort_collation_check/, 'no right to check');
like(messages("$call()", extra_params => [ '-U', 'app' ]), qr/permission denied for procedure gpusort_collation_repair/, 'no right to repair');
$node->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION gpusort_collation_check(boolean) TO owner;
	GRANT EXECUTE ON PROCEDURE gpusort_collation_repair(boolean, boolean) TO owner');
change('en');
$messages = messages("$call()", extra_params => [ '-U', 'owner' ]);
is(join(' ', $messages =~ /^NOTICE:  rebuilt index public\.(\w+)/gm), 'u_k', 'the owner of a table rebuilds its indexes');
is(join(' ', sort $messages =~ /^WARNING:  could not rebuild index public\.(\w+)\nDETAIL:  (?:must be owner of index|permission denied for index) t_/gm), 't_id_k t_k', 'and no others');
unlike($node->safe_psql('postgres', "SELECT string_agg(detail, ' ') FROM gpusort_collation_check()", extra_params => [ '-U', 'owner' ]), qr/key \(/,
	'nor are keys shown without the right to read them');
like(value($node, 'SELECT string_agg(detail, chr(10)) FROM gpusort_collation_check()'), qr/^key \(k\)=\(\w+\) of row \(\d+,\d+\) in block \d+ is followed by key \(k\)=\(\w+\)/m,
	'which the superuser is');

# A role that cannot connect, and does not own the collation
$node->safe_psql('postgres', q(CREATE ROLE keeper; ALTER TABLE u OWNER TO keeper;
	GRANT EXECUTE ON PROCEDURE gpusort_collation_repair(boolean, boolean) TO keeper;
	CREATE TABLE e (k text COLLATE changing, CONSTRAINT e_x EXCLUDE (k WITH =));
	INSERT INTO e VALUES ('t'), ('z');));
change('et');
$messages = messages("SET ROLE keeper; $call()");
is(join(' ', $messages =~ /^NOTICE:  rebuilt index public\.(\w+)/gm), 'u_k', 'a role that cannot connect rebuilds its indexes');
unlike($messages, qr/ERROR|ended early/, 'a role that cannot connect: its workers can');

# CONCURRENTLY cannot rebuild all
$messages = messages("$call()");
like($messages, qr/^WARNING:  could not rebuild index public\.e_x\nDETAIL:  .*\nHINT:  Call gpusort_collation_repair\(concurrently => false\)\.$/m,
	'an exclusion constraint: the hint');
like(messages("$call(false)"), qr/^NOTICE:  rebuilt index public\.e_x/m, 'and with its lock it is rebuilt');
$node->safe_psql('postgres', 'DROP TABLE e');
change('et');
$messages = messages("SET ROLE keeper; $call()");
like($messages, qr/^WARNING:  could not record the new version of 1 collation\n/m, 'a version that the caller may not record');
unlike($messages, qr/ERROR/, 'is no error');
$node->safe_psql('postgres', "UPDATE pg_collation SET collowner = 'keeper'::regrole, collversion = NULL WHERE collname = 'changing'");
like(messages("SET ROLE keeper; $call()"), qr/^WARNING:  could not record the new version of 1 collation\n/m, 'nor one where none was recorded');
$node->safe_psql('postgres', "UPDATE pg_collation SET collversion = '1.0' WHERE collname = 'changing'");
like(messages("SET ROLE keeper; $call()"), qr/^NOTICE:  recorded the new version of 1 collation\n/m, 'the owner may');
change('en');
$node->safe_psql('postgres', 'REINDEX INDEX u_k');

# A second repair at the same time.  An invalid index is neither checked nor rebuilt, and keeps no version from being recorded.
$node->safe_psql('postgres', q(CREATE INDEX u_bad ON u (k); UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'u_bad'::regclass));
change('et');
$locker = session($node);
$locker->query('BEGIN; LOCK TABLE u;');
my $caller = session($node, 'SET client_min_messages = error;');
$caller->send("$call();");
becomes($node, "count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'gpusort collation repair' AND wait_event = 'relation'", 'a check waits');
like(messages("$call()"), qr/^ERROR:  gpusort_collation_repair\(\) is already running in this database$/m, 'a second repair at the same time');
$locker->query('COMMIT;');
$locker->quit;
$caller->receive;
$caller->quit;
change('en');
$messages = messages("$call()");
like($messages, qr/^WARNING:  index public\.u_bad is invalid, and was not checked$/m, 'an invalid index is named');
unlike($messages, qr/broken or was not checked|rebuilt index public\.u_bad/, 'and no more');
like($messages, qr/^NOTICE:  recorded the new version of 1 collation$/m, 'the version is recorded');
$node->safe_psql('postgres', 'DROP INDEX u_bad');
change('et');
$node->safe_psql('postgres', 'REINDEX TABLE t');
change('en');
$node->safe_psql('postgres', 'REINDEX TABLE u');

# Other objects of the same names
is(value($node, "CREATE SCHEMA s; CREATE VIEW s.pg_index AS SELECT NULL; CREATE VIEW s.pg_class AS SELECT 1 / 0;
	CREATE FUNCTION s.pg_relation_size(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT 1 / 0';
	SET search_path = s, pg_catalog, public; $state"), 't_id_k true, t_k true, u_k false', 'the search path does not matter');

#
# Partitions; a broken file; no workers; not loaded at start
#
$node->safe_psql('postgres', q(CREATE TABLE parts (k text COLLATE changing) PARTITION BY RANGE (k);
	CREATE TABLE lists (k text COLLATE changing) PARTITION BY LIST (k);
	CREATE COLLATION vague (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
	CREATE TABLE vague_hashes (k text COLLATE vague) PARTITION BY HASH (k);
	CREATE TABLE choices (k text COLLATE changing) PARTITION BY LIST ((k > 'm'));
	UPDATE pg_collation SET collversion = '1.0' WHERE collname = 'vague';));
$node->stop;
my $file = $node->data_dir . '/' . do { $node->start; my $path = value($node, "SELECT pg_relation_filepath('t_id_k')"); $node->stop; $path };
open my $fh, '+<', $file or die;
seek $fh, 8192, 0;
print $fh "\0" x 8192;
close $fh;
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\nmax_worker_processes = 0\n");
$node->start;
like(value($node, "SELECT broken, detail FROM gpusort_collation_check() WHERE index = 't_id_k'::regclass"),
	qr/^\|index "t_id_k" contains unexpected zero page at block 1/, 'a broken file');
like(messages("$call()"), qr/^ERROR:  could not start a background worker\nHINT:  Increase max_worker_processes/m, 'no place for workers');
$node->append_conf('postgresql.conf', "max_worker_processes = 8\n");
$node->restart;
$messages = messages("$call()");
like($messages, qr/^NOTICE:  rebuilt index public\.t_k/m, 'gpusort is not loaded at start: PostgreSQL rebuilds');
like($messages, qr/^WARNING:  could not check index public\.t_id_k\nDETAIL:  index "t_id_k" contains unexpected zero page/m, 'a broken file is named');
is(join(' ', $messages =~ /^WARNING:  did not check partitions of table (\S+)\nDETAIL:  It depends on collation public\.\w+, which keeps/gm),
	'public.choices public.parts public.vague_hashes', 'partitions by range are named, and those whose equality depends on a collation');
$node->safe_psql('postgres', 'REINDEX INDEX t_id_k');
unlike(messages("$call()"), qr/recorded the new/, 'their collations keep their versions');
$node->safe_psql('postgres', 'DROP TABLE choices, parts, vague_hashes');
like(messages("$call()"), qr/^NOTICE:  recorded the new versions of 2 collations$/m, 'then all is right');

# An index's predicate or expression compares text, and so does a constraint
$node->safe_psql('postgres', q(CREATE TABLE e (id int, k text COLLATE changing CONSTRAINT below CHECK (k < 'zzzz'));
	INSERT INTO e SELECT i, 'k' || i FROM generate_series(1, 1000) AS i;
	CREATE INDEX e_partial ON e (id) WHERE k > 'k5'; CREATE INDEX e_expression ON e ((k > 'k5'));
	UPDATE pg_collation SET collversion = '1.0' WHERE collname = 'changing'));
is(value($node, q(SELECT string_agg(index::text, ' ' ORDER BY index::text) FROM gpusort_collation_check WHERE broken IS NULL AND detail LIKE 'Its condition or expressions depend%')),
	'e_expression e_partial', 'the check says why it checks no predicates and expressions');
$messages = messages("$call()");
like($messages, qr/^NOTICE:  rebuilt index public\.e_partial/m, 'a predicate that compares: the index is rebuilt');
like($messages, qr/^NOTICE:  rebuilt index public\.e_expression/m, 'an expression that compares too');
like($messages, qr/^WARNING:.*\bbelow\b/m, 'a constraint is named');
unlike($messages, qr/recorded the new version/, 'and keeps the version of its collation');
$node->safe_psql('postgres', 'ALTER TABLE e DROP CONSTRAINT below');
like(messages("$call()"), qr/^NOTICE:  recorded the new version of 1 collation$/m, 'without it the version is recorded');
$node->safe_psql('postgres', 'DROP TABLE e');

# Constraints and generated columns were computed under the old order.  Equality, lengths and the like do not heed a
# deterministic collation.  A domain's VALUE has the default collation.
$node->safe_psql('postgres', q(
	CREATE FUNCTION mine(text) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
	CREATE DOMAIN word AS text CONSTRAINT word_less CHECK (VALUE COLLATE changing < 'z') CONSTRAINT word_some CHECK (VALUE COLLATE changing <> '');
	CREATE TABLE c (id int, k text COLLATE changing, l text COLLATE changing, v text COLLATE vague, w word,
		g boolean GENERATED ALWAYS AS (k > l) STORED, h int GENERATED ALWAYS AS (length(k)) STORED,
		CONSTRAINT bad_less CHECK (k <= l), CONSTRAINT bad_between CHECK (k BETWEEN 'a' AND 'z'), CONSTRAINT bad_any CHECK (k > ANY ('{a,b}')),
		CONSTRAINT bad_greatest CHECK (greatest(k, l) = 'z'), CONSTRAINT bad_row CHECK (ROW(k, 1) < ROW(l, 2)), CONSTRAINT bad_array CHECK (ARRAY[k] < ARRAY[l]),
		CONSTRAINT bad_lower CHECK (k = lower(k)), CONSTRAINT bad_regex CHECK (k ~ '^[[:alpha:]]'), CONSTRAINT bad_mine CHECK (mine(k)),
		CONSTRAINT bad_vague CHECK (v = 'a'), CONSTRAINT good_equal CHECK (k <> l OR k IN ('a', 'b') OR k IS DISTINCT FROM 'c'),
		CONSTRAINT good_length CHECK (length(k) < 1000 AND id > 0), CONSTRAINT good_concat CHECK (k || 'x' <> 'y'),
		CONSTRAINT good_like CHECK (k LIKE 'a%'), CONSTRAINT good_bytes CHECK (k COLLATE "C" < 'z'));
	CREATE TABLE child () INHERITS (c);
	UPDATE pg_collation SET collversion = '1.0' WHERE collname IN ('changing', 'vague')));
$messages = messages("$call()");
is(join(' ', $messages =~ /^WARNING:  did not check (.*)$/gm), join(' ', 'column g of table public.c',
	(map { "constraint bad_$_ on table public.c" } qw(any array between greatest less lower mine regex row vague)), 'constraint word_less of domain public.word'),
	'constraints and generated columns are named');
is(value($node, q(SELECT string_agg(substring(detail FROM '^cannot check (.*)'), ' ' ORDER BY detail) FROM gpusort_collation_check WHERE index IS NULL)),
	join(' ', $messages =~ /^WARNING:  did not check (.*)$/gm), 'the check names the same');
unlike($messages, qr/recorded the new/, 'the versions stay');
$node->safe_psql('postgres', 'DROP TABLE c, child; DROP DOMAIN word; DROP FUNCTION mine');
like(messages("$call()"), qr/^NOTICE:  recorded the new versions of 2 collations$/m, 'without them the versions are recorded');

# An index that a REINDEX CONCURRENTLY is building is not read
$node->safe_psql('postgres', q(CREATE TABLE w (k text COLLATE changing); INSERT INTO w SELECT i FROM generate_series(1, 1000) AS i; CREATE INDEX w_k ON w (k);
	UPDATE pg_collation SET collversion = '1.0' WHERE collname = 'changing'));
$locker = session($node);
$locker->query('BEGIN; LOCK TABLE w IN ROW EXCLUSIVE MODE;');
my $builder = session($node, 'SET client_min_messages = error;');
$builder->send('REINDEX INDEX CONCURRENTLY w_k;');
becomes($node, "count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'REINDEX%' AND wait_event_type = 'Lock'", 'a rebuild waits');
unlike(value($node, $state), qr/ccnew/, 'an index that is being built is not read');
$messages = messages("$call()");
unlike($messages, qr/(?:check|rebu|built).*ccnew/, 'nor rebuilt');
like($messages, qr/^NOTICE:  recorded the new version of 1 collation$/m, 'and stands in the way of no version');
$locker->query('COMMIT;');
$locker->quit;
$builder->receive;
$builder->quit;
is(value($node, "SELECT string_agg(indexrelid::regclass::text, ' ') FROM pg_index WHERE indrelid = 'w'::regclass AND indisvalid"), 'w_k', 'the rebuild has ended');
all_right('in the end');

$node->stop;
done_testing();
