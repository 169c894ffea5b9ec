# Where gpusort can do nothing, PostgreSQL works as ever: the library is not
# preloaded, it is switched off, or there is no device.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('not_available', "shared_preload_libraries = ''\nlog_min_messages = warning\n",
	stopped => 1);
my $query = 'SELECT i FROM generate_series(1, 30000) AS i ORDER BY md5(i::text) COLLATE "C";';

sub restart_with
{
	my ($libraries, $device) = @_;

	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'");
	$node->append_conf('postgresql.conf', "gpusort.device = $device");
	$node->restart;
}

# Plans and rows are PostgreSQL's own
sub inert
{
	my ($what) = @_;
	my $plan = rows_of($node, $force, "EXPLAIN (COSTS OFF) $query");

	like($plan, qr/^Sort$/m, "$what: PostgreSQL's Sort");
	unlike($plan, qr/GpuSort/, "$what: no GpuSort");
	same_rows($node, '', $query, "$what: rows");
}

#
# Not preloaded
#
$node->start;
like(messages_of($node, 'CREATE EXTENSION gpusort'),
	qr/WARNING:  gpusort sorts nothing until the server loads it at start\nHINT:  Add gpusort to shared_preload_libraries and restart the server\./,
	'not preloaded: CREATE EXTENSION warns');
for my $object ('gpusort_devices', 'gpusort_stats', 'gpusort_activity', 'gpusort_stats_reset()')
{
	like(messages_of($node, "\\set VERBOSITY verbose\nSELECT * FROM $object"),
		qr/ERROR:  55000: gpusort must be loaded via shared_preload_libraries\nHINT:  Add gpusort to shared_preload_libraries and restart the server\./,
		"not preloaded, $object: error and hint");
}
inert('not preloaded');
is(rows_of($node, "LOAD 'gpusort'; SET gpusort.min_rows = 7; SET gpusort.enabled = off;",
		'SHOW gpusort.min_rows; SHOW gpusort.enabled;'),
	"7\noff", 'not preloaded: settings');
is(messages_of($node, "LOAD 'gpusort'; SHOW gpusort.device"), '', 'not preloaded: server settings in the configuration do no harm');
same_rows($node, "LOAD 'gpusort'; $force", $query, 'not preloaded, but loaded: rows');
unlike(rows_of($node, "LOAD 'gpusort'; $force", "EXPLAIN $query"), qr/GpuSort/, 'not preloaded, but loaded: no GpuSort');
$node->safe_psql('postgres', 'DROP EXTENSION gpusort');

#
# Preloaded and switched off
#
restart_with('gpusort', 'off');
is(messages_of($node, 'CREATE EXTENSION gpusort'), '', 'switched off: CREATE EXTENSION does not warn');
inert('switched off');
is(scalar(services($node)), 0, 'switched off: no service');
is(value($node, 'SHOW gpusort.device'), 'off', 'switched off: setting');

#
# The service has no place among the workers
#
$node->append_conf('postgresql.conf', 'max_worker_processes = 0');
restart_with('gpusort', 'host');
is(value($node, 'SELECT state, message FROM gpusort_devices'),
	'off|max_worker_processes is too small for the gpusort service',
	'no worker: state and message');
inert('no worker');
$node->append_conf('postgresql.conf', 'max_worker_processes = 8');

#
# No GPU: the view and the log say so, and the service is not started again
#
SKIP:
{
	skip 'this machine has a GPU', 14 if -e '/dev/nvidiactl';

	for my $case ([ 'cuda', '' ], [ 'auto', '0' ])
	{
		my ($device, $devices) = @$case;
		my $log = -s $node->logfile;

		$node->append_conf('postgresql.conf', "gpusort.devices = '$devices'");
		restart_with('gpusort', $device);
		becomes($node, "state = 'off' FROM gpusort_devices", "$device without GPU: off");
		is(value($node, 'SELECT message IS NOT NULL, memory_limit, sorts, service_pid IS NULL
				FROM gpusort_devices'),
			't|0|0|t', "$device without GPU: message");
		inert("$device without GPU");
		cmp_ok(value($node, "SELECT count FROM gpusort_stat_reasons WHERE kind = 'refusal' AND reason = 'service not running'"),
			'>', 0, "$device without GPU: refusals counted");

		# the service of before would have been started again after 2 s
		sleep 3;
		my $lines = slurp_file($node->logfile, $log);

		is(() = $lines =~ /WARNING:  gpusort has no device: \S/g, 1,
			"$device without GPU: told once in the log");
	}
}

#
# ... but auto, unless GPUs are named, has the CPU sort, in no more memory than by default
#
SKIP:
{
	skip 'this machine has a GPU', 14 if -e '/dev/nvidiactl';

	my $log = -s $node->logfile;
	my $sort = 'SELECT id FROM cpu_t ORDER BY k';
	my $held = 'SELECT state, name, memory_limit <= memory_total / 4 FROM gpusort_devices';

	$node->append_conf('postgresql.conf', "gpusort.devices = ''\ngpusort.device_memory = '15TB'\nrestart_after_crash = on");
	restart_with('gpusort', 'auto');
	wait_ready($node);
	$node->safe_psql('postgres', 'CREATE TABLE cpu_t AS SELECT i AS id, md5(i::text) AS k FROM generate_series(1, 20000) AS i');
	my $name = $node->safe_psql('postgres', 'SELECT name FROM gpusort_devices');
	is(value($node, $held), "ready|$name|t", 'auto on the CPU: memory');
	like(value($node, "$force EXPLAIN (ANALYZE) $sort"), qr/Device: host/, 'auto on the CPU: sorts');
	my $lines = slurp_file($node->logfile, $log);
	my ($why) = $lines =~ /LOG:  gpusort has no GPU: (\S.*)\n.*DETAIL:  The CPU sorts instead/;
	ok($why, 'auto on the CPU: log');
	unlike($why, qr/\.cu/, 'auto on the CPU: no file of the sources');
	is(() = $lines =~ /HINT:  Set gpusort\.device to "cuda" /g, $why =~ /without CUDA/ ? 0 : 1, 'auto on the CPU: hint');
	like(value($node, 'SELECT message FROM gpusort_devices'), qr/^gpusort\.device_memory is 15728640 MB, but sorts may hold \d+ MB$/,
		'auto on the CPU: message about the limit');
	like($lines, qr/LOG:  gpusort\.device_memory is larger than the memory of the device\n.*DETAIL:  The setting is 15728640 MB; /, 'auto on the CPU: too high a limit');
	$node->append_conf('postgresql.conf', "gpusort.device_memory = '64MB'");
	$node->reload;
	becomes($node, "memory_limit = 64 << 20 FROM gpusort_devices", 'auto on the CPU: a limit below the default');
	is(value($node, 'SELECT message FROM gpusort_devices'), $why, 'auto on the CPU: message');

	# neither a new service nor a restart after a crash looks for a GPU again
	$log = -s $node->logfile;
	my $service = service_pid($node);
	is(join(' ', services($node)), $service, 'auto on the CPU: one service');
	kill 'KILL', $service;
	ok(restarted($node, $service), 'auto on the CPU: after a crash');
	like(value($node, "$force EXPLAIN (ANALYZE) $sort"), qr/Device: host/, 'auto on the CPU: sorts after a crash');
	$service = service_pid($node);
	kill 'TERM', $service;
	ok(restarted($node, $service), 'auto on the CPU: a new service');
	like(value($node, "$force EXPLAIN (ANALYZE) $sort"), qr/Device: host/, 'auto on the CPU: sorts with a new service');
	unlike(slurp_file($node->logfile, $log), qr/has no GPU/, 'auto on the CPU: told once in the log');
	is(value($node, 'SELECT message FROM gpusort_devices'), $why, 'auto on the CPU: message of a new service');
}

$node->stop;
done_testing();
