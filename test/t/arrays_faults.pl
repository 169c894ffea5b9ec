# gpu_sort_array() when things go wrong: whatever becomes of the service, the
# device or staging memory in the middle of a batch, all arrays come back
# sorted; and what was held is given back.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('arrays',
	"client_connection_check_interval = '50ms'\ngpusort.staging_memory = '8MB'\ngpusort.wait_timeout = 0\n");

# some arrays with NULLs, some out of line, one larger than a chunk
$node->safe_psql('postgres', q(
	CREATE TABLE t (id int, a float4[], b int8[]) WITH (parallel_workers = 3);
	INSERT INTO t SELECT i,
			(SELECT array_agg(hashint4(i * 64 + j)::float4) FROM generate_series(1, i % 60) AS j),
			(SELECT array_agg(CASE WHEN j % 9 > 0 THEN hashint4(i + j)::int8 END)
				FROM generate_series(1, CASE WHEN i % 100 = 0 THEN 2000 ELSE 7 END) AS j)
		FROM generate_series(1, 40000) AS i;
	INSERT INTO t SELECT 0, array_agg(hashint4(j)::float4), NULL FROM generate_series(1, 300000) AS j;
	ALTER TABLE t ALTER a SET STORAGE EXTERNAL;
	VACUUM (ANALYZE) t;));

# the answer tells what each row has, whatever the order of rows
my $query = q(SELECT count(*), sum(hashtext(id || ':' || gpu_sort_array(a)::text)::bigint),
	sum(hashtext(id || ':' || gpu_sort_array(b, true)::text)::bigint) FROM t;);
my $expected = stock($node, $query);
my $subselect = $query;
$subselect =~ s/gpu_sort_array\((\w+)(, true)?\)/"(SELECT array_agg(x ORDER BY x" . ($2 ? ' DESC' : '') . ") FROM unnest($1) AS x)"/ge;
is(stock($node, $subselect), $expected, 'in the process: as array_agg with ORDER BY');

sub arrays_on_device
{
	return value($node, 'SELECT device_arrays FROM gpusort_stats');
}

#
# With the device, and without it in every way
#
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	stats_reset($node);
	same_rows($node, $settings, $query, "$name: on the device", $expected);
	# processes that find staging memory taken sort in the process
	cmp_ok(arrays_on_device(), '>', $name eq 'serial' ? 40000 : 20000, "$name: many of them indeed");
	released($node, $name);

	for my $nth (1, 2, 5)
	{
		my $what = "$name, service lost at chunk $nth";

		stats_reset($node);
		fault($node, "service_arrays:$nth");
		same_rows($node, $settings, $query, $what, $expected);
		fault($node, undef);
		like(fallbacks($node), qr/"device lost"/, "$what: said so") if $name eq 'serial';
		wait_ready($node);
		released($node, $what);

		# arrays that the device has half written are not sorted in the process
		$what = "$name, device lost at chunk $nth";
		fault($node, "service_lose_arrays:$nth");
		like(rows_of($node, "$force $settings", $query), qr/ERROR:  gpusort lost its device during a sort/, $what);
		fault($node, undef);
		wait_ready($node);
		released($node, $what);

		$what = "$name, device memory full at chunk $nth";
		stats_reset($node);
		fault($node, "device_memory:$nth");
		same_rows($node, $settings, $query, $what, $expected);
		fault($node, undef);
		like(fallbacks($node), qr/"device memory exhausted"/, "$what: said so");
		released($node, $what);
	}

	stats_reset($node);
	same_rows($node, "$settings SET gpusort.fault = 'open';", $query, "$name, no service", $expected);
	like(fallbacks($node), qr/"service not running"/, "$name, no service: said so") if $name eq 'serial';
	is(arrays_on_device(), 0, "$name, no service: nothing on the device") if $name eq 'serial';
}

# the service ends while chunks are on their way, and none is lost or sorted half
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	fault($node, 'service_hold_arrays');
	my $session = session($node, "$force $settings");
	$session->send($query);
	becomes($node, "EXISTS (SELECT FROM gpusort_activity WHERE phase = 'sorting arrays' AND staging_bytes > 0)", "$name, service ended: arrays are waiting");
	kill 'TERM', service_pid($node);
	same_order($session->receive, $expected, "$name, service ended: all arrays sorted");
	fault($node, undef);
	is($session->errors, '', "$name, service ended: no errors");
	wait_ready($node);
	same_order($session->query($query), $expected, "$name, with the next service");
	$session->quit;
	released($node, "$name, service ended");
}

#
# Ended from outside in the middle of a batch
#
my $service = service_pid($node);
fault($node, 'service_hold_arrays');
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	for my $way (sort keys %ways)
	{
		my $what = "$name, $way";
		my ($end, $error) = @{ $ways{$way} };
		my $session = session($node, "$force $settings");

		ok( reaches($node, $session, $query,
				"EXISTS (SELECT FROM gpusort_activity WHERE phase = 'sorting arrays' AND staging_bytes > 0)", !$end),
			"$what: arrays are waiting");
		$end->($node, $session) if $end;
		if ($error)
		{
			$session->receive;
			like($session->errors, $error, "$what: error");
		}
		released($node, $what);
		$session->quit unless $way eq 'client gone';
	}
}
fault($node, undef);
is(service_pid($node), $service, 'the service went on through all that');

# at any time
{
	my $session = session($node, $force);

	for (my $ms = 1; $ms <= 60; $ms += 3)
	{
		$session->query("SET statement_timeout = $ms; $query");
	}
	unlike($session->errors, qr/(PANIC|FATAL|gpusort|server closed)/, 'at any time: errors');
	$session->quit;
	released($node, 'at any time');
}

#
# Staging memory for four sessions, and more queries than that: those that get
# none sort by themselves.
#
{
	my @sessions = map { session($node, "$force $parallel") } 1 .. 4;

	stats_reset($node);
	$_->send($query) for @sessions;
	same_order($_->receive, $expected, 'more queries than staging memory has room for') for @sessions;
	like(fallbacks($node), qr/"staging memory exhausted"/, 'some sorted by themselves');
	$_->quit for @sessions;
	released($node, 'more queries than staging memory has room for');
}

#
# Very large arrays: exact, in the process
#
is( rows_of($node, $force, q(SELECT (SELECT count(*) FROM unnest(a[1:10]) AS x WHERE x = 1), a[1], a[10000001], cardinality(a)
		FROM (SELECT gpu_sort_array(array_fill(2.5::float8, ARRAY[10000000]) || array_fill(1::float8, ARRAY[10000000])) AS a) s;)),
	'10|1|2.5|20000000',
	'20 million elements');
like(
	rows_of($node, $force, q(SELECT gpu_sort_array(array_fill(1::float8, ARRAY[134217727]));)),
	qr/ERROR: .*(array size exceeds|invalid memory alloc|out of memory)/,
	'more than an array can have');

# where there is a session for one kind of arrays only
my $holder = session($node, "$force $serial SET gpusort.fault = 'open:2';");
same_order($holder->query($query), $expected, 'one session of two: rows');
is($holder->errors, '', 'one session of two: no errors');
released($node, 'one session of two');
$holder->quit;

$node->stop;

#
# Without the service, and without being preloaded
#
for my $case ([ 'gpusort.device is off', "gpusort.device = 'off'" ],
	[ 'not preloaded', "shared_preload_libraries = ''" ])
{
	my ($what, $conf) = @$case;

	$node->append_conf('postgresql.conf', "$conf\n");
	$node->start;
	my $got = $node->safe_psql('postgres', $query);
	same_order($got, $expected, "$what: sorted in the process");
	$node->stop;
}

done_testing();
