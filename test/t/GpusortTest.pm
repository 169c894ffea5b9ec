# What gpusort's TAP tests share: servers, sessions that stay open, fault
# points, and the checks that every test makes: rows in order as PostgreSQL
# alone returns them, and nothing held afterwards.

package GpusortTest;

use strict;
use warnings;

use Digest::MD5 qw(md5_hex);
use IPC::Run ();
use Time::HiRes qw(sleep time);

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use base 'Exporter';
our @EXPORT = qw(new_server fault wait_ready restarted released stats_reset fallbacks
  stock rows_of same_rows same_order session reaches service_pid eventually $force $serial $parallel);

# Makes gpusort take each sort
our $force = 'SET gpusort.force = on; SET gpusort.min_rows = 0;';
our $serial = 'SET max_parallel_workers_per_gather = 0;';
our $parallel = join ' ', map { "SET $_;" } (
	'max_parallel_workers_per_gather = 3', 'min_parallel_table_scan_size = 0',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0');

my $default_timeout = $PostgreSQL::Test::Utils::timeout_default || 180;

# A server with the extension, as the TEMP_CONFIG that run.sh wrote wants it,
# with more settings of the caller's; init: options for initdb.
sub new_server
{
	my ($name, $conf, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(extra => $params{init} // []);
	$node->append_conf('postgresql.conf', "restart_after_crash = on\n" . ($conf // ''));
	return $node if $params{stopped};
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
	wait_ready($node);
	return $node;
}

sub wait_ready
{
	my ($node) = @_;

	$node->poll_query_until('postgres', "SELECT bool_and(state = 'ready') FROM gpusort_devices")
	  or die 'the service does not come up';
}

# Waits until the server has restarted all of its processes after a crash, in
# which the service had that pid.  A process with a GPU takes a while to end, in
# which the server still answers.
sub restarted
{
	my ($node, $service) = @_;

	eventually(sub { $node->psql('postgres', 'SELECT 1') == 0 });
	return $node->poll_query_until('postgres',
		"SELECT bool_and(state = 'ready' AND service_pid <> $service) FROM gpusort_devices");
}

sub service_pid
{
	my ($node) = @_;

	return $node->safe_psql('postgres', 'SELECT max(service_pid) FROM gpusort_devices');
}

# Set or clear the server's fault point.  A backend that knows the new value
# was started after the service was told of it.
sub fault
{
	my ($node, $point) = @_;

	$node->safe_psql('postgres',
		$point
		? "ALTER SYSTEM SET gpusort.fault = '$point'"
		: 'ALTER SYSTEM RESET gpusort.fault');
	$node->reload;
	$node->poll_query_until('postgres',
		"SELECT current_setting('gpusort.fault') = '" . ($point // '') . "'")
	  or die 'the setting does not arrive';
}

# Nothing of the device, of staging memory or of sessions may be held any more.
sub released
{
	my ($node, $what) = @_;
	my $ok = $node->poll_query_until('postgres',
		"SELECT bool_and(sorts = 0 AND memory_used = 0 AND staging_used = 0)
			AND NOT EXISTS (SELECT FROM gpusort_activity)
			AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'parallel worker')
		FROM gpusort_devices");

	ok($ok, "$what: all is released");
	diag($node->safe_psql('postgres',
			'SELECT * FROM gpusort_devices; SELECT * FROM gpusort_activity')) unless $ok;
}

sub stats_reset
{
	my ($node) = @_;

	$node->safe_psql('postgres', 'SELECT gpusort_stats_reset()');
}

# The fallbacks counted since the last reset, as JSON
sub fallbacks
{
	my ($node) = @_;

	return $node->safe_psql('postgres', 'SELECT fallback_reasons FROM gpusort_stats');
}

# What a query returns, in order
sub rows_of
{
	my ($node, $settings, $query) = @_;
	my ($out, $err) = ('', '');
	my $status = $node->psql('postgres', "$settings\n$query",
		stdout => \$out, stderr => \$err, timeout => $default_timeout,
		extra_params => ['-q']);

	return $status == 0 ? $out : "failed ($status): $err";
}

sub stock
{
	my ($node, $query) = @_;

	my $rows = rows_of($node, 'SET gpusort.enabled = off;', $query);

	die "PostgreSQL alone $rows" if $rows =~ /^failed/;
	return $rows;
}

# Does the query return the same rows in the same order with gpusort as
# without?  The answer of PostgreSQL alone may be given by the caller.
sub same_rows
{
	my ($node, $settings, $query, $what, $expected) = @_;
	my $got = rows_of($node, "$force $settings", $query);

	$expected //= stock($node, $query);
	return same_order($got, $expected, $what);
}

# Not by is(), as there are many rows: tell where the first difference is.
sub same_order
{
	my ($got, $expected, $what) = @_;
	my $ok = ok($got eq $expected, $what);

	if (!$ok)
	{
		my @got = split /\n/, $got;
		my @expected = split /\n/, $expected;
		my $i = 0;

		$i++ while $i < @got && $i < @expected && $got[$i] eq $expected[$i];
		diag(sprintf "%d rows, %d expected; row %d is\n  %s\nand should be\n  %s",
			scalar(@got), scalar(@expected), $i,
			$got[$i] // '(none)', $expected[$i] // '(none)');
	}
	return $ok;
}

# Wait until a condition holds
sub eventually
{
	my ($condition, $seconds) = @_;
	my $end = time() + ($seconds // $default_timeout);

	until ($condition->())
	{
		return 0 if time() > $end;
		sleep 0.05;
	}
	return 1;
}

sub session
{
	return GpusortTest::Session->new(@_);
}

# Send a query, and wait until it is where a condition holds.  by_timeout: statement_timeout is
# to end it there; one that comes before, as on a busy machine, is tried again, twice as long.
sub reaches
{
	my ($node, $session, $query, $condition, $by_timeout) = @_;

	for (my $seconds = 1; $seconds < $default_timeout; $seconds *= 2)
	{
		my $there;

		$session->query("SET statement_timeout = '${seconds}s';") if $by_timeout;
		$session->send($query);
		eventually(sub { ($there = $node->safe_psql('postgres', "SELECT $condition") eq 't') || $session->done });
		return $there if $there || !$by_timeout;
		$session->receive;
		$session->errors;
	}
	return 0;
}

# A psql that stays connected
package GpusortTest::Session;

use strict;
use warnings;

sub new
{
	my ($class, $node, $settings) = @_;
	my $self = bless { in => '', out => '', err => '', n => 0 }, $class;

	$self->{timer} = IPC::Run::timeout($default_timeout);
	$self->{run} = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-f', '-' ],
		'<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{err}, $self->{timer});
	$self->{pid} = $self->query(($settings // '') . ' SELECT pg_backend_pid();');
	return $self;
}

# Send commands without waiting for them
sub send
{
	my ($self, $sql) = @_;

	$self->{n}++;
	$self->{in} .= "$sql\n\\echo done $self->{n}\n";
	while (length $self->{in} && $self->{run}->pumpable)
	{
		$self->{run}->pump_nb;
		Time::HiRes::sleep(0.002);
	}
}

# Have the commands sent ended?
sub done
{
	my ($self) = @_;

	$self->{run}->pump_nb if $self->{run}->pumpable;
	return !$self->{run}->pumpable || index("\n$self->{out}", "\ndone $self->{n}\n") >= 0;
}

# What the commands sent printed, once they have ended
sub receive
{
	my ($self) = @_;
	my $mark = "done $self->{n}\n";

	$self->{timer}->start($default_timeout);
	while (index("\n$self->{out}", "\n$mark") < 0)
	{
		last unless $self->{run}->pumpable;
		$self->{run}->pump;
	}
	$self->{timer}->reset;
	my $out = $self->{out};
	$self->{out} = '';
	$out =~ s/(^|\n)$mark\z/$1/;
	chomp $out;
	return $out;
}

sub query
{
	my ($self, $sql) = @_;

	$self->send($sql);
	return $self->receive;
}

# Errors and notices since the last call
sub errors
{
	my ($self) = @_;
	my $err = $self->{err};

	$self->{err} = '';
	return $err;
}

# End psql as a client that disappears
sub kill_client
{
	my ($self) = @_;

	$self->{run}->kill_kill;
}

sub quit
{
	my ($self) = @_;

	$self->{in} .= "\\q\n";
	eval { $self->{run}->finish };
}

1;
