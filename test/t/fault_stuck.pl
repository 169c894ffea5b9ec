# The service is stopped, or its GPU hangs.  After gpusort.service_timeout without any progress its sorts are lost, and
# PostgreSQL does them and all others, until the service moves again.  Till then nobody else gets the memory of lost sorts.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('stuck', "gpusort.service_timeout = '3s'\ngpusort.staging_memory = '8MB'\n", rows => 100000);
my $query = 'SELECT id, k FROM t ORDER BY k;';
my $expected = stock($node, $query);
my $service = service_pid($node);
my $state = 'SELECT min(state) FROM gpusort_devices';

sub moves_again
{
	my ($what) = @_;

	becomes($node, "state = 'ready' FROM gpusort_devices", "$what: the service is ready again");
	is(service_pid($node), $service, "$what: and the same");
	released($node, $what);
	same_counted($node, $serial, $query, "$what, then", $expected);
}

sub is_left_alone
{
	my ($what) = @_;

	is(value($node, $state), 'stuck', "$what: the view tells");
	unlike(value($node, "$force EXPLAIN $query"), qr/GpuSort/, "$what: the planner offers nothing");
	same_counted($node, $serial, $query, "$what, another sort", $expected);
	cmp_ok(value($node, 'SELECT staging_used FROM gpusort_devices'), '>', 0, "$what: memory of lost sorts is nobody's");
}

for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	my ($reader) = cursor($node, 'SELECT id, k FROM t ORDER BY k', 10, settings => "$force $settings");

	kill 'STOP', $service;
	same_counted($node, $settings, $query, "$name, stopped", $expected, '{"device lost": 1}');
	is_left_alone("$name, stopped");
	$reader->query('FETCH ALL FROM c;');
	like($reader->errors, qr/ERROR:  gpusort lost its device during a sort/, "$name, stopped, cursor that has returned rows: error");
	$reader->quit;
	kill 'CONT', $service;
	moves_again("$name, stopped");
}

# Arrays are copied back by the service, so a chunk of them may be half written
{
	my $arrays = session($node, $force);

	fault($node, 'service_hold_arrays');
	$arrays->send('SELECT count(gpu_sort_array(ARRAY[id, 1])) FROM t;');
	waits($node, $arrays, 'arrays');
	kill 'STOP', $service;
	$arrays->receive;
	like($arrays->errors, qr/ERROR:  gpusort lost its device during a sort/, 'arrays, stopped: an error');
	$arrays->quit;
	kill 'CONT', $service;
	fault($node, undef);
	moves_again('arrays, stopped');
}

# A GPU that hangs: the service runs
fault($node, 'device_hangs');
same_counted($node, $serial, $query, 'hanging device', $expected, '{"device lost": 1}');
is(value($node, $state), 'stuck', 'hanging device: the view tells');
unlike(value($node, "$force EXPLAIN $query"), qr/GpuSort/, 'hanging device: the planner offers nothing');
fault($node, undef);
moves_again('hanging device');

# A sort that takes long is not lost
{
	my $sort = session($node, "$force $serial");

	fault($node, 'service_hold_sort');
	stats_reset($node);
	$sort->send($query);
	waits($node, $sort, 'a long sort');
	sleep 9;
	is(value($node, $state), 'ready', 'a long sort: the service is ready');
	fault($node, undef);
	same_order($sort->receive, $expected, 'a long sort: rows');
	is(fallbacks($node), '{}', 'a long sort: no fallback');
	$sort->quit;
}

my $log = slurp_file($node->logfile);
like($log, qr/LOG:  gpusort service \(process $service\) has made no progress for 3 seconds/, 'the log tells');
is(scalar(() = $log =~ /has made no progress/g), 4, 'the log tells once each time');
is(scalar(() = $log =~ /LOG:  gpusort service goes on/g), 4, 'and when it is over');

# A service that cannot get a thread when the server starts is started again
value($node, q(ALTER SYSTEM SET gpusort.fault = 'device_threads'));
$node->restart;
becomes($node, "state = 'starting' AND message IS NOT NULL FROM gpusort_devices", 'without threads: starting');
value($node, 'ALTER SYSTEM RESET gpusort.fault');
$node->reload;
becomes($node, "state = 'ready' AND message IS NULL FROM gpusort_devices", 'with threads: ready');

$node->stop;
done_testing();
