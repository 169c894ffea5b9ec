# Several devices: sorts spread over them; one that is lost takes its own sorts
# with it and no others, and is tried again by a new service; the settings that name them.
# They are the same device, opened three times.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('devices', "gpusort.devices = '0, 0,0'\ngpusort.device_memory = '32MB'\nlog_min_messages = warning\n");

# t: more pages than a reader asks for ahead; large: more than fits
$node->safe_psql('postgres', q(
	CREATE TABLE t (id int, k text COLLATE "C", v text) WITH (parallel_workers = 3);
	INSERT INTO t SELECT i, md5(i::text), repeat(chr(65 + i % 26), 400) FROM generate_series(1, 16000) AS i;
	CREATE TABLE large (id int, k text COLLATE "C", v text) WITH (parallel_workers = 3);
	INSERT INTO large SELECT i, md5(i::text), repeat(chr(65 + i % 26), 700)
		FROM generate_series(1, 80000) AS i;
	CREATE TABLE arrays (id int, a int[]) WITH (parallel_workers = 3);
	INSERT INTO arrays SELECT i, (SELECT array_agg(hashint4(i * 64 + j)) FROM generate_series(1, 60) AS j)
		FROM generate_series(1, 20000) AS i;
	CREATE SEQUENCE s;
	VACUUM (ANALYZE) t, large, arrays;));

# all of the row is sorted, little is printed
my $query = 'SELECT id, k, left(v, 3) FROM (SELECT id, k, v FROM t ORDER BY k OFFSET 0) AS s';
my $large = 'SELECT id, k, left(v, 3) FROM (SELECT id, k, v FROM large ORDER BY k OFFSET 0) AS s';
my $array_query = 'SELECT sum(hashtext(id || gpu_sort_array(a)::text)::bigint) FROM arrays;';
my $expected = stock($node, "$query;");
my $expected_large = stock($node, "$large;");
my $expected_arrays = stock($node, $array_query);
my $pid = service_pid($node);

sub states
{
	return value($node, "SELECT string_agg(state, ' ' ORDER BY device) FROM gpusort_devices");
}

sub wait_states
{
	my ($states, $what) = @_;

	ok(eventually(sub { states() eq $states }), $what) or diag(states());
}

# The service goes on without a device that was lost; a reload has it start again, with all
sub tried_again
{
	my ($what) = @_;

	is(service_pid($node), $pid, "$what: the service went on");
	fault($node, undef);
	wait_states('ready ready ready', "$what: tried again");
	$pid = service_pid($node);
}

# Cursors of so many sorts, with the device of each and what was read
sub open_cursors
{
	my ($n, $sql) = @_;
	my @cursors;

	for (1 .. $n)
	{
		my ($session, $got) = cursor($node, $sql, 100);

		push @cursors, { session => $session, got => $got,
			device => value($node, "SELECT device FROM gpusort_activity WHERE pid = $session->{pid}") };
	}
	return @cursors;
}

sub read_to_end
{
	my ($cursor, $what, $all) = @_;

	read_rest($cursor->{session}, $cursor->{got}, $all // $expected, $what);
}

# the device of a cursor that has returned rows is lost
sub fails_to_end
{
	my ($cursor, $what) = @_;
	my $session = $cursor->{session};

	$session->query('FETCH ALL FROM c;');
	like($session->errors, qr/ERROR:  gpusort lost its device during a sort/, "$what: error");
	$session->quit;
}

# as many of the same sort as there are ways to run it; lost: those that have returned rows already may fail
sub run_many
{
	my ($n, $what, $lost) = @_;
	my @runs;

	for my $i (0 .. $n - 1)
	{
		my $session = session($node, "$force " . ($i % 2 ? $parallel : $serial));
		my ($sql, $all) = $i % 5 == 4 ? ("$large;", $expected_large) : ("$query;", $expected);

		$session->send($sql);
		push @runs, [ $session, $all ];
	}
	for my $i (0 .. $#runs)
	{
		my ($session, $all) = @{ $runs[$i] };
		my $got = $session->receive;
		my $errors = $session->errors;

		if ($lost && $errors ne '')
		{
			like($errors, qr/^[^\n]*ERROR:  gpusort lost its device during a sort\nDETAIL:  Some sorted rows/, "$what, sort $i: error");
		}
		else
		{
			same_order($got, $all, "$what, sort $i: rows");
			is($errors, '', "$what, sort $i: no error");
		}
		$session->quit;
	}
}

#
# Sorts spread
#
is(value($node, 'SELECT string_agg(device::text, $$,$$ ORDER BY device) FROM gpusort_devices'), '0,1,2', 'a row for each device');
is(value($node, 'SELECT DISTINCT state, memory_limit >> 20, staging_total >> 20 FROM gpusort_devices'), 'ready|32|64',
	'each device has its own limit');
{
	my @cursors = open_cursors(9, $query);

	is(value($node, "SELECT string_agg(n::text, ',') FROM (SELECT count(*) AS n FROM gpusort_activity GROUP BY device ORDER BY device) AS s"),
		'3,3,3', 'sorts spread');
	is(value($node, "SELECT string_agg(sorts::text, ',' ORDER BY device) FROM gpusort_devices"), '3,3,3', 'and are counted');
	is(value($node, 'SELECT count(*) FROM gpusort_devices WHERE memory_used > 0'), 3, 'they hold memory of each');
	read_to_end($_, "device $_->{device}") for @cursors;
	released($node, 'spread');
}
like(rows_of($node, "$force $serial", "EXPLAIN (ANALYZE) $query;"), qr/ Device: \w+ [0-2]$/m, 'EXPLAIN names the device');
like(rows_of($node, "$force $serial", "EXPLAIN (ANALYZE, FORMAT JSON) $query;"),
	qr/"Device": "\w+",\s+"Device Numbers": \["[0-2]"\]/, 'EXPLAIN in JSON');
like(messages_of($node, "$force $serial SET client_min_messages = debug1; $query;"), qr/gpusort sorted: device [0-2], engine /,
	'so does the message');
stats_reset($node);
run_many(10, 'many');
is(fallbacks($node), '{}', 'many: no fallbacks');
released($node, 'many');

# arrays, of each process
same_counted($node, $_->[1], $array_query, "arrays, $_->[0]", $expected_arrays) for (@modes);
like(rows_of($node, "$force $parallel", "EXPLAIN (ANALYZE) $array_query;"), qr/ Device: \w+ \d, \d/, 'arrays: on several devices');
released($node, 'arrays');

#
# Larger than a device's memory: each sort stays on its device, with temporary files
#
for my $way (@modes)
{
	stats_reset($node);
	same_rows($node, $way->[1], "$large;", "large, $way->[0]: rows", $expected_large);
	is(value($node, 'SELECT spilled_sorts, fallbacks FROM gpusort_stats'), '1|0', "large, $way->[0]: in files");
	released($node, "large, $way->[0]");
}
stats_reset($node);
{
	my @cursors = open_cursors(4, $large);

	is(value($node, 'SELECT count(DISTINCT device) FROM gpusort_activity'), 3, 'large sorts use all');
	run_many(5, 'beside large cursors');
	read_to_end($_, "large, device $_->{device}", $expected_large) for @cursors;
	is(value($node, 'SELECT spilled_sorts >= 5, fallbacks FROM gpusort_stats'), 't|0', 'large: written out');
	released($node, 'large');
}

# cursors that nobody reads hold all devices, with ranges that were read ahead: these make room for others
stats_reset($node);
{
	my @cursors = open_cursors(6, $large);

	same_rows($node, $serial, "$large;", 'beside idle cursors', $expected_large);
	read_to_end($_, "idle, device $_->{device}", $expected_large) for @cursors;
	is(fallbacks($node), '{}', 'idle cursors: no fallbacks');
	released($node, 'idle cursors');
}

#
# A device is lost: its sorts only
#
{
	my $log = -s $node->logfile;
	my @cursors = open_cursors(9, $query);
	my @lost = grep { $_->{device} == 1 } @cursors;
	my @others = grep { $_->{device} != 1 } @cursors;

	is(scalar @lost, 3, 'sorts on the device');
	stats_reset($node);
	fault($node, 'device_lost');
	fails_to_end($lost[0], 'lost, the one that notices');
	like(states(), qr/^ready (lost|ready) ready$/, 'the others are ready');
	fault($node, undef);

	# new sorts go to the others
	my @new = open_cursors(3, $query);
	is(scalar(grep { $_->{device} == 1 } @new), 0, 'no new sort uses it');

	fails_to_end($_, 'lost, read later') for @lost[1, 2];
	read_to_end($_, "not lost, device $_->{device}") for @others;
	is(states(), 'ready lost ready', 'it is out of use while sorts are open');
	is(service_pid($node), $pid, 'the service went on');
	read_to_end($_, 'new') for @new;
	is(fallbacks($node), '{}', 'its sorts had returned rows');
	wait_states('ready ready ready', 'then it is tried again');
	isnt(service_pid($node), $pid, 'by another service');
	$pid = service_pid($node);
	like(slurp_file($node->logfile, $log),
		qr/LOG:  gpusort lost device 1: fault point device_lost.*LOG:  gpusort service restarts to open device 1 again.*LOG:  gpusort sorts on device 1, /s,
		'the log says so');
	@new = open_cursors(3, $query);
	is(scalar(grep { $_->{device} == 1 } @new), 1, 'a new sort uses it');
	read_to_end($_, 'with all again') for @new;
	released($node, 'lost');
}

# at any time, while many sort
for my $nth (1, 7, 20, 60)
{
	fault($node, "device_lost:$nth");
	run_many(10, "lost at $nth", 1);
	same_rows($node, $serial, "$query;", "lost at $nth, one more", $expected);
	tried_again("lost at $nth");
	released($node, "lost at $nth");
}

# the input cannot be computed twice
{
	my $errors = 0;

	fault($node, 'device_lost:3');
	for (1 .. 3)
	{
		my $err = messages_of($node, "$force $serial SELECT id, k, nextval('s') FROM t ORDER BY k;");

		$errors++ if $err ne '';
		like($err, qr/^$|ERROR:  gpusort lost its device during a sort/, 'volatile: the documented error or none');
	}
	is($errors, 1, 'volatile: one of three was on the device');
	tried_again('volatile');
	released($node, 'volatile');
}

# arrays: what the device had is lost, with the error that says so; else they are sorted
{
	fault($node, 'device_lost');
	for (1 .. 3)
	{
		my $got = rows_of($node, "$force $serial", $array_query);

		ok($got eq $expected_arrays || $got =~ /gpusort lost its device.*returned sorted arrays/s, 'arrays, lost');
	}
	tried_again('arrays, lost');
	same_rows($node, $serial, $array_query, "arrays, afterwards $_", $expected_arrays) for 1 .. 3;
	released($node, 'arrays, lost');
}

#
# Sessions end while a device is lost
#
for my $way ('cancel', 'terminate')
{
	my @runs;

	fault($node, 'device_lost:5');
	for my $i (0 .. 5)
	{
		my $session = session($node, "$force " . ($i % 2 ? $parallel : $serial));

		$session->send("$large;");
		push @runs, $session;
	}
	value($node, "SELECT pg_sleep(0.1), pg_${way}_backend($_->{pid})") for @runs;
	for my $session (@runs)
	{
		$session->receive;
		unlike($session->errors, qr/PANIC|server closed the connection unexpectedly.*crash/, "$way: no crash");
		$session->quit;
	}
	tried_again($way);
	released($node, $way);
}

#
# A device that cannot be opened again stays out of use, until the next reload
#
{
	my @cursors = open_cursors(3, $query);
	my ($lost) = grep { $_->{device} == 1 } @cursors;

	fault($node, 'device_lost');
	fails_to_end($lost, 'before opening fails');
	fault($node, 'device_open');
	is(states(), 'ready lost ready', 'not tried while sorts are open');
	is(service_pid($node), $pid, 'the service goes on while sorts are open');
	read_to_end($_, 'while a device is lost') for grep { $_ != $lost } @cursors;
	becomes($node, "message = 'fault point device_open' FROM gpusort_devices WHERE device = 1", 'opening fails');
	wait_states('ready lost ready', 'the view says so');
	isnt(service_pid($node), $pid, 'of a new service');
	$pid = service_pid($node);
	same_rows($node, $serial, "$query;", "without the device $_", $expected) for 1 .. 3;
	released($node, 'opening fails');
	tried_again('opening fails');
}

# Without a reload that happens once the service has run for a while: here at once
{
	local $ENV{GPUSORT_FAULT_RESTART} = 1;

	$node->restart;
	wait_ready($node);
	$pid = service_pid($node);
	fault($node, 'device_lost');
	same_rows($node, $serial, "$query;", "after a while, $_", $expected) for 1 .. 3;
	becomes($node, "bool_and(service_pid <> $pid) FROM gpusort_devices", 'after a while: another service');
	fault($node, 'device_open');
	$node->restart;
	wait_states('ready lost ready', 'after a while: not opened');
	$pid = service_pid($node);
	same_rows($node, $serial, "$query;", "after a while, not opened, $_", $expected) for 1 .. 3;
	tried_again('after a while, not opened');
}

#
# Settings
#
sub restart_with
{
	my ($devices) = @_;

	$node->stop if $node->{_pid};
	$node->append_conf('postgresql.conf', "gpusort.devices = '$devices'\n");
	return $node->start(fail_ok => 1);
}

for my $case (
	[ 'first', qr/DETAIL:  "first" is neither the number of a device nor its UUID/ ],
	[ '0,GPU-12', qr/DETAIL:  "GPU-12" is neither the number.*HINT:  Numbers begin at 0; "nvidia-smi -L" lists the UUIDs/s ],
	[ '-1', qr/DETAIL:  "-1" is neither the number/ ],
	[ '0,,0', qr/DETAIL:  List syntax is invalid/ ],
	[ join(',', (0) x 17), qr/DETAIL:  A server can use 16 devices at most/ ])
{
	my ($devices, $error) = @$case;

	like(messages_of($node, "ALTER SYSTEM SET gpusort.devices = '$devices'"), qr/ERROR:  invalid value for parameter "gpusort.devices".*$error/s, "gpusort.devices = '$devices': error");
}
ok(restart_with('first'), 'a wrong setting in the configuration');
like(slurp_file($node->logfile), qr/WARNING:  invalid value for parameter "gpusort.devices": "first".*DETAIL:  "first" is neither/s,
	'a wrong setting in the configuration: the log says so');
wait_ready($node);
like(states(), qr/^ready( ready)*$/, 'a wrong setting in the configuration: all devices');

my $uuid = 'GPU-01234567-89ab-cdef-0123-456789abcdef';
ok(restart_with("0,77,$uuid"), 'devices that are not there');
wait_states('ready lost lost', 'the one that is there sorts');
like(value($node, 'SELECT message FROM gpusort_devices WHERE device = 1'), qr/there is no \w+ device 77/, 'message: number');
is(value($node, 'SELECT message FROM gpusort_devices WHERE device = 2'), "there is no device $uuid", 'message: UUID');
like(slurp_file($node->logfile), qr/WARNING:  gpusort could not open device 1: there is no .*HINT:  gpusort.devices is "0,77,/s, 'log');
same_rows($node, $parallel, "$query;", 'with the one', $expected);

ok(restart_with('77'), 'no device at all');
becomes($node, "state = 'off' AND message ~ 'there is no .* device 77' FROM gpusort_devices", 'the service is off');
is(value($node, 'SELECT count(*) FROM gpusort_devices'), 1, 'one row');

# the last device that is left ends the service
ok(restart_with('77,0'), 'one of two devices');
wait_states('lost ready', 'the second one sorts');
$pid = service_pid($node);
fault($node, 'device_lost');
same_rows($node, $serial, "$query;", 'the last device lost: rows', $expected);
fault($node, undef);
becomes($node, "bool_and(service_pid <> $pid) FROM gpusort_devices", 'a new service');
wait_states('lost ready', 'which has the device');
same_rows($node, $serial, "$query;", 'the new service: rows', $expected);
released($node, 'the last device');

$node->stop;
done_testing();
