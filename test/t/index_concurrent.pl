# Indexes are built while others write to the table, in all ways that allow it,
# and by several sessions at once.

use strict;
use warnings;

use IPC::Run ();

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('index_concurrent', "max_connections = 60\nmax_worker_processes = 20\nwal_level = replica\n");
my $has_repack = $node->safe_psql('postgres', 'SHOW server_version_num') >= 190000;
my $build = 'SET gpusort.force = on; SET gpusort.index_build = on;';
my $workers = "SET max_parallel_maintenance_workers = 3; SET maintenance_work_mem = '256MB';";

$node->safe_psql('postgres', q(
	CREATE EXTENSION amcheck;
	CREATE TABLE t (id int, k text COLLATE "C", n int) WITH (parallel_workers = 3, fillfactor = 80);
	INSERT INTO t SELECT i, md5(i::text), i % 100 FROM generate_series(1, 30000) AS i;
	CREATE UNIQUE INDEX t_id ON t (id);
	ALTER TABLE t ALTER id SET NOT NULL, REPLICA IDENTITY USING INDEX t_id;
	VACUUM (ANALYZE) t;));

#
# Writers all the time: HOT updates, others, deletions, insertions
#
my $script = $PostgreSQL::Test::Utils::tmp_check . '/index_concurrent';
append_to_file("$script.write", q(
\set id random(1, 30000)
\set other random(1, 30000)
BEGIN;
UPDATE t SET n = n + 1 WHERE id = :id;
UPDATE t SET k = md5(k) WHERE id = :other;
DELETE FROM t WHERE id = :other + 30000;
INSERT INTO t VALUES (:other + 30000, md5(:id::text), :id) ON CONFLICT DO NOTHING;
END;
));
my ($out, $err) = ('', '');
my $writers = IPC::Run::start(
	[ 'pgbench', '-n', '-c', '4', '-j', '1', '-T', '3600', '-f', "$script.write", $node->connstr('postgres') ],
	'>', \$out, '2>', \$err);

for my $mode ([ 'serial', 0 ], [ 'parallel', 3 ])
{
	my ($name, $table_workers) = @$mode;

	$node->safe_psql('postgres', "ALTER TABLE t SET (parallel_workers = $table_workers)");
	stats_reset($node);
	for my $sql (
		'CREATE INDEX CONCURRENTLY i_k ON t (k)',
		'CREATE INDEX CONCURRENTLY i_p ON t (n, k DESC) WHERE n % 2 = 0',
		'CREATE UNIQUE INDEX CONCURRENTLY i_u ON t (id, (n * 0))',
		'CREATE INDEX CONCURRENTLY i_g ON t USING gin ((ARRAY[n, id % 7]))',
		'CREATE INDEX i_h ON t USING gin ((ARRAY[left(k, 2)]))',
		'REINDEX INDEX CONCURRENTLY i_g',
		'REINDEX INDEX CONCURRENTLY i_k',
		'REINDEX TABLE CONCURRENTLY t',
		'CREATE INDEX i_l ON t (k, id)',
		'REINDEX INDEX i_l',
		'VACUUM (FULL) t',
		$has_repack ? ('REPACK t', 'REPACK (CONCURRENTLY) t') : (),
		'REINDEX TABLE CONCURRENTLY t')
	{
		is(rows_of($node, "$build $workers", $sql), '', "$name: $sql");
	}
	is(value($node, 'SELECT index_builds >= 20 FROM gpusort_stats'), 't', "$name: built by gpusort");
	is(fallbacks($node), '{}', "$name: no fallbacks");
	good_indexes($node, "$name, with the writers at work", "indrelid = 't'::regclass");
	for my $where ('ARRAY[n, id % 7] @> ARRAY[3]', "ARRAY[left(k, 2)] @> ARRAY['a7']")
	{
		my $rows = "SELECT count(*), sum(hashtext(t::text)::bigint) FROM t WHERE $where";
		my $begin = 'BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off;';

		like(value($node, "$begin EXPLAIN (COSTS OFF) $rows"), qr/Index Scan on i_[gh]/, "$name, $where: plan");
		like(value($node, "$begin $rows; SET LOCAL enable_bitmapscan = off; $rows"),
			qr/^(.+)\n\1$/, "$name, $where: the index has the table's rows");
	}
	is(value($node, "SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass AND NOT indisvalid"), '0', "$name: all are valid");
	$node->safe_psql('postgres', 'DROP INDEX i_k, i_p, i_u, i_l, i_g, i_h');
}
ok($writers->pumpable, 'the writers went on to the end');
$writers->kill_kill;
unlike($err, qr/(ERROR|FATAL|aborted)/, 'the writers had no errors');

#
# Many builds at once, of more sessions than staging memory has promises for
#
my @sessions = map { session($node, "$build $workers") } 1 .. 8;
for my $round (1 .. 3)
{
	my $i = 0;

	$_->send('CREATE INDEX i_' . ++$i . ' ON t (k, id, n);') for @sessions;
	$_->receive for @sessions;
	is(join('', map { $_->errors } @sessions), '', "eight builds, round $round: no errors");
	is(good_indexes($node, "eight builds, round $round", "c.relname ~ '^i_\\d'"), 8, "eight builds, round $round: all are there");
	$node->safe_psql('postgres', 'DROP INDEX ' . join(', ', map { "i_$_" } 1 .. 8));
}
$_->quit for @sessions;

#
# Indexes of one table are rebuilt at once, by sessions that have not opened them
#
$node->safe_psql('postgres', join(' ', map { "CREATE INDEX i_$_ ON t USING gin ((ARRAY[n, $_, id % 7]));" } 1 .. 4) . ' CREATE ROLE other;');
stats_reset($node);
@sessions = map { session($node, "$build $workers") } 1 .. 4;
my $i = 0;
$_->send('REINDEX INDEX i_' . ++$i . ';') for @sessions;
$_->receive for @sessions;
is(join('', map { $_->errors } @sessions), '', 'four GIN indexes at once: no errors');
is(value($node, "SELECT index_builds + (SELECT sum(count) FROM gpusort_stat_reasons WHERE kind = 'fallback') FROM gpusort_stats"),
	'4', 'four GIN indexes at once: gpusort builds');

# somebody holds the index: who may not rebuild it does not wait, who may does
my ($holder, $waiter, $stranger) = map { session($node, $build) } 1 .. 3;
$holder->query('BEGIN; REINDEX INDEX i_1;');
$stranger->query('SET ROLE other; REINDEX INDEX i_1;');
like($stranger->errors, qr/must be owner|permission denied/, 'a stranger does not wait for the lock');
$waiter->send('REINDEX INDEX i_1;');
$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND relation = 'i_1'::regclass") or die;
$holder->query('COMMIT;');
$waiter->receive;
is($holder->errors . $waiter->errors, '', 'the owner waits, and rebuilds');
good_indexes($node, 'rebuilt at once', "c.relname ~ '^i_\\d'");
$_->quit for @sessions, $holder, $waiter, $stranger;
released($node, 'in the end');

$node->stop;
done_testing();
