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
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
for my $object ('gpusort_devices', 'gpusort_stats', 'gpusort_activity', 'gpusort_stats_reset()')
{
	my ($out, $err);
	my $status =
	  $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT * FROM $object", stderr => \$err);

	is($status, 3, "not preloaded, $object: fails");
	like($err,
		qr/ERROR:  55000: gpusort must be loaded via shared_preload_libraries\nHINT:  Add gpusort to shared_preload_libraries and restart the server\./,
		"not preloaded, $object: error and hint");
}
inert('not preloaded');
is(rows_of($node, "LOAD 'gpusort'; SET gpusort.min_rows = 7; SET gpusort.enabled = off;",
		'SHOW gpusort.min_rows; SHOW gpusort.enabled;'),
	"7\noff", 'not preloaded: settings');
{
	my $err;

	$node->psql('postgres', "LOAD 'gpusort'; SHOW gpusort.device", stderr => \$err);
	is($err, '', 'not preloaded: server settings in the configuration do no harm');
}
same_rows($node, "LOAD 'gpusort'; $force", $query, 'not preloaded, but loaded: rows');
unlike(rows_of($node, "LOAD 'gpusort'; $force", "EXPLAIN $query"), qr/GpuSort/,
	'not preloaded, but loaded: no GpuSort');
$node->safe_psql('postgres', 'DROP EXTENSION gpusort');

#
# Preloaded and switched off
#
restart_with('gpusort', 'off');
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
inert('switched off');
is( $node->safe_psql('postgres',
		"SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'gpusort service'"),
	'0', 'switched off: no service');
is($node->safe_psql('postgres', 'SHOW gpusort.device'), 'off', 'switched off: setting');

#
# No device: auto says so in the view and in the log, and starts no service again
#
SKIP:
{
	skip 'this machine has a GPU', 14 if -e '/dev/nvidiactl';

	for my $device ('auto', 'cuda')
	{
		my $log = -s $node->logfile;

		restart_with('gpusort', $device);
		ok( $node->poll_query_until('postgres', "SELECT state = 'off' FROM gpusort_devices"),
			"$device without GPU: off");
		is( $node->safe_psql('postgres',
				'SELECT message IS NOT NULL, memory_limit, sorts, service_pid IS NULL
				FROM gpusort_devices'),
			't|0|0|t', "$device without GPU: message");
		inert("$device without GPU");
		like($node->safe_psql('postgres', 'SELECT refusal_reasons FROM gpusort_stats'),
			qr/"service not running": \d/, "$device without GPU: refusals counted");

		# the service of before would have been started again after 2 s
		sleep 3;
		my $lines = slurp_file($node->logfile, $log);
		my $level = $device eq 'auto' ? 'LOG' : 'WARNING';

		is(() = $lines =~ /$level:  gpusort has no device: \S/g, 1,
			"$device without GPU: told once in the log");
	}
}

$node->stop;
done_testing();
