# The server ends while a sort is under way, and comes back; the extension is
# dumped and restored.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('restart', '', rows => 50000);

$node->safe_psql('postgres', 'CREATE VIEW sorted AS SELECT id, k FROM t ORDER BY k');

my $query = 'SELECT id, k FROM t ORDER BY k;';
my $expected = stock($node, $query);

for my $mode ('fast', 'immediate')
{
	for my $stage ('sort', 'fetch')
	{
		my $sort = session($node, "$force $parallel");

		fault($node, "service_hold_$stage");
		$sort->send($query);
		ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM gpusort_activity
				WHERE phase IN (\'sorting\', \'returning rows\')'),
			"$mode, $stage: sort is under way");
		$node->safe_psql('postgres', 'ALTER SYSTEM RESET gpusort.fault');
		$node->stop($mode);
		$sort->receive;
		like($sort->errors, qr/terminating connection|server closed the connection/,
			"$mode, $stage: sort ends");
		$sort->quit;
		$node->start;
		wait_ready($node);
		released($node, "$mode, $stage");
		same_rows($node, $parallel, $query, "$mode, $stage: rows afterwards", $expected);
	}
}

# a restart with another size of staging memory
$node->append_conf('postgresql.conf', "gpusort.staging_memory = '16MB'");
fault($node, 'pin');
my $log_end = -s $node->logfile;
$node->restart;
wait_ready($node);
$node->wait_for_log(qr/gpusort could not pin its staging memory: fault point pin/, $log_end);
pass('the service starts before staging memory is pinned');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET gpusort.fault');
is(value($node, 'SELECT DISTINCT staging_total >> 20 FROM gpusort_devices'), '16', 'another size of staging memory');
same_rows($node, $serial, $query, 'rows with it', $expected);

#
# Dump and restore
#
my $dump = "${PostgreSQL::Test::Utils::tmp_check}/restart.sql";

$node->command_ok([ 'pg_dump', '-f', $dump, $node->connstr('postgres') ], 'pg_dump');
like(slurp_file($dump), qr/^CREATE EXTENSION IF NOT EXISTS gpusort/m, 'the dump creates the extension');
unlike(slurp_file($dump), qr/CREATE (FUNCTION|VIEW) .*gpusort/, '... and nothing of its contents');
$node->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE template0');
$node->command_ok(
	[ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $node->connstr('copy') ], 'restore');
is($node->safe_psql('copy', "SELECT DISTINCT state FROM gpusort_devices"), 'ready',
	'restored: the views work');
same_order($node->safe_psql('copy', "$force SELECT * FROM sorted"), $expected, 'restored: rows');
is($node->safe_psql('copy', 'DROP EXTENSION gpusort; SELECT 1'), '1', 'restored: can be dropped');

#
# A driver that never answers does not hold the server up for ever
#
fault($node, 'service_hang');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET gpusort.fault');
$node->stop('fast');
like(slurp_file($node->logfile), qr/gpusort service ends, as its devices or files do not answer/, 'hung: ended');
$node->start;
wait_ready($node);
same_rows($node, $serial, $query, 'hung: rows afterwards', $expected);

# ... nor one that never opens its device; exit() would run destructors of libraries beside it
my $exits = PostgreSQL::Test::Utils::tempdir() . '/loader';

$node->safe_psql('postgres', "ALTER SYSTEM SET gpusort.fault = 'device_open_hangs'");
{
	local %ENV = (%ENV, LD_DEBUG => 'files', LD_DEBUG_OUTPUT => $exits);
	$node->restart;
}
same_rows($node, $serial, $query, 'opening hangs: rows', $expected);
is(value($node, 'SELECT state FROM gpusort_devices'), 'starting', 'opening hangs: the view says so');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET gpusort.fault');
my ($hanging) = services($node) or die 'no service';
my $log = -s $node->logfile;
kill 'TERM', $hanging;
ok(eventually(sub { !-e "/proc/$hanging" }), 'opening hangs: the service ends');
is(value($node, 'SELECT 1'), '1', 'opening hangs: the server goes on');
like(slurp_file($node->logfile, $log), qr/\(PID $hanging\) exited with exit code 1$/m, 'opening hangs: no crash');
$node->stop('fast');
my $destructors = join '', map { slurp_file($_) } glob "$exits.*";
like($destructors, qr/calling fini: \S*gpusort/, 'opening hangs: destructors of other processes');
unlike($destructors, qr/^ *$hanging:\tcalling fini/m, 'opening hangs: not of the service');
$node->start;
wait_ready($node);

$node->stop;
done_testing();
