# What gpusort's TAP tests share: servers, sessions that stay open, fault
# points, and the checks that every test makes: rows in order as PostgreSQL
# alone returns them, and nothing held afterwards.

package GpusortTest;

use strict;
use warnings;

use IPC::Run ();
use Time::HiRes qw(sleep time);

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use base 'Exporter';
our @EXPORT = qw(new_server value becomes fault fault_over wait_ready restarted released stats_reset fallbacks
  stock rows_of messages_of same_rows same_counted same_despite same_order same_groups session cursor read_rest
  reaches waiting waits service_pid services end_service eventually temp_files good_indexes no_file_left done_despite $force $serial $parallel @modes %ways %failures $cuda);

# Makes gpusort take each sort
our $force = 'SET gpusort.force = on; SET gpusort.min_rows = 0;';
our $serial = 'SET max_parallel_workers_per_gather = 0;';
our $parallel = join ' ', map { "SET $_;" } (
	'max_parallel_workers_per_gather = 3', 'min_parallel_table_scan_size = 0',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0');

our @modes = ([ 'serial', $serial ], [ 'parallel', $parallel ]);

our $cuda = ($ENV{GPUSORT_TEST_DEVICE} // '') eq 'cuda';

# Fault points by which the device fails a build or a copy, and the fallback that is counted
our %failures = (
	'open' => 'service not running',
	'service_append' => 'device lost', 'service_append:4' => 'device lost',
	'service_sort' => 'device lost',
	'service_fetch' => 'device lost',
	'device_memory' => 'device memory exhausted', 'device_memory:4' => 'device memory exhausted',
	'device_memory_sort' => 'device memory exhausted');

# Ways to end a session's query from outside, and the error that it gets
our %ways = (
	'cancel' => [
		sub { value($_[0], "SELECT pg_cancel_backend($_[1]->{pid})") },
		qr/ERROR:  canceling statement due to user request/ ],
	'statement_timeout' => [
		undef, qr/ERROR:  canceling statement due to statement timeout/ ],
	'terminate' => [
		sub { value($_[0], "SELECT pg_terminate_backend($_[1]->{pid})") },
		qr/FATAL:  terminating connection due to administrator command/ ],
	'client gone' => [ sub { $_[1]->kill_client }, undef ]);

my $default_timeout = $PostgreSQL::Test::Utils::timeout_default || 180;

# A server with the extension, as the TEMP_CONFIG that run.sh wrote wants it,
# with more settings of the caller's.  rows: of a table t, in which every k is another
# one.  init: options for initdb.
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
	$node->safe_psql('postgres', qq(
		CREATE TABLE t (id int, k text COLLATE "C") WITH (parallel_workers = 3);
		INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, $params{rows}) AS i;
		VACUUM (ANALYZE) t;)) if $params{rows};
	return $node;
}

sub value
{
	my ($node, $sql, @params) = @_;

	return $node->safe_psql('postgres', $sql, @params);
}

# Waits until a condition holds, which may have a FROM behind it
sub becomes
{
	my ($node, $condition, $what) = @_;

	return ok($node->poll_query_until('postgres', "SELECT $condition"), $what);
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

	# a psql that finds no server may be gone before it is given the query, which raises an error
	return eventually(sub {
		my $new = eval { $node->safe_psql('postgres',
			"SELECT bool_and(state = 'ready' AND service_pid <> $service) FROM gpusort_devices") };

		return ($new // '') eq 't';
	});
}

# Process ids of the server's services, as its postmaster's children: pg_stat_activity has none
sub services
{
	my ($node) = @_;
	my $postmaster = (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];
	my @services;

	for my $folder (glob '/proc/[0-9]*')
	{
		my ($stat, $title) = eval { (slurp_file("$folder/stat"), slurp_file("$folder/cmdline")) };

		push @services, $folder =~ s/.*\///r
		  if defined $title && $stat =~ /\) \S \Q$postmaster\E / && $title =~ /gpusort service/;
	}
	return @services;
}

sub service_pid
{
	my ($node) = @_;

	return $node->safe_psql('postgres', 'SELECT max(service_pid) FROM gpusort_devices');
}

# End the service as PostgreSQL does
sub end_service
{
	my ($node) = @_;
	my $pid = service_pid($node);

	kill 'TERM', $pid;
	eventually(sub { !kill 0, $pid });
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

# No fault any more: there is a service, and what sorts held was released
sub fault_over
{
	my ($node, $what) = @_;

	fault($node, undef);
	wait_ready($node);
	released($node, $what);
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

	return $node->safe_psql('postgres', "SELECT coalesce(jsonb_object_agg(reason, count), '{}')
		FROM gpusort_stat_reasons WHERE kind = 'fallback' AND count > 0");
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

# The errors, warnings and notices of commands
sub messages_of
{
	my ($node, $sql) = @_;
	my ($out, $err) = ('', '');

	$node->psql('postgres', $sql, stdout => \$out, stderr => \$err);
	return $err;
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

# ... and are these fallbacks counted?  None by default.
sub same_counted
{
	my ($node, $settings, $query, $what, $expected, $fallbacks) = @_;

	stats_reset($node);
	same_rows($node, $settings, $query, "$what: rows", $expected);
	is(fallbacks($node), $fallbacks // '{}', "$what: fallbacks");
}

# Does it return the same rows with each fault point of a list, and is nothing held afterwards?
sub same_despite
{
	my ($node, $points, $settings, $query, $what, $expected, $fallbacks) = @_;

	$expected //= stock($node, $query);
	for my $point (@$points)
	{
		fault($node, $point);
		defined $fallbacks
		  ? same_counted($node, $settings, $query, "$what, $point", $expected, $fallbacks)
		  : same_rows($node, $settings, $query, "$what, $point: rows", $expected);
		fault_over($node, "$what, $point");
	}
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

# Are it the same rows, each once, where their first column, a number, tells the order?
sub same_groups
{
	my ($got, $expected, $what) = @_;
	my @got = split /\n/, $got;
	my @expected = split /\n/, $expected;

	same_order(join("\n", map { /^(\d*)/ } @got), join("\n", map { /^(\d*)/ } @expected), "$what: order");
	return same_order(join("\n", sort @got), join("\n", sort @expected), "$what: each row once");
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

# A session with cursor c open, and the first n rows
sub cursor
{
	my ($node, $query, $n, %params) = @_;
	my $session = session($node, $params{settings} // "$force $serial");

	return ($session, $session->query('BEGIN; DECLARE c ' . ($params{scroll} // '') . " CURSOR FOR $query; FETCH $n FROM c;"));
}

# Read the others, and end the session.  Are all of them as expected?
sub read_rest
{
	my ($session, $got, $expected, $what) = @_;

	same_order($got . "\n" . $session->query('FETCH ALL FROM c;'), $expected, "$what: rows");
	is($session->errors, '', "$what: no error");
	$session->quit;
}

# That a session waits for the service, or for its workers; phase: of its sort, if there is to be one
sub waiting
{
	my ($session, $phase) = @_;
	my $sort = defined $phase ? "EXISTS (SELECT FROM gpusort_activity AS a WHERE a.pid = p.pid AND phase ~ '$phase')" : 'true';

	return "EXISTS (SELECT FROM pg_stat_activity AS p WHERE pid = $session->{pid}
		AND state = 'active' AND wait_event_type IN ('Extension', 'IPC') AND $sort)";
}

sub waits
{
	my ($node, $session, $what, $phase) = @_;

	becomes($node, waiting($session, $phase), "$what: waits");
}

# The temporary files that there are now, in all tablespaces
sub temp_files
{
	my $data = $_[0]->data_dir;

	return glob("$data/base/pgsql_tmp/* $data/pg_tblspc/*/*/pgsql_tmp/*");
}

# Is each file of the database that of a relation?
sub no_file_left
{
	my ($node, $what) = @_;

	$node->safe_psql('postgres', 'CHECKPOINT');
	is(value($node, q(SELECT f FROM pg_database AS d, pg_ls_dir('base/' || d.oid) AS f
		WHERE datname = current_database() AND f ~ '\d'
			AND substring(f FROM '^\d+')::oid NOT IN (
				SELECT pg_relation_filenode(oid) FROM pg_class WHERE pg_relation_filenode(oid) IS NOT NULL))),
		'', "$what: no file is left");
}

# Is a build or a copy done with one of %failures, or 'none', and counted?  counter: of those that gpusort did.
sub done_despite
{
	my ($node, $point, $settings, $sql, $counter, $what) = @_;
	my $reason = $failures{$point};

	fault($node, $point) if $reason;
	stats_reset($node);
	is(rows_of($node, $settings, $sql), '', "$what: done");
	is(fallbacks($node), $reason ? qq({"$reason": 1}) : '{}', "$what: counted");
	is(value($node, "SELECT $counter FROM gpusort_stats"), $reason ? '0' : '1', "$what: by gpusort or not");
	fault($node, undef);
	wait_ready($node);
}

# Are all valid btree and GIN indexes right, as amcheck sees them?  How many there are.  Of GIN
# amcheck knows from PostgreSQL 18 on.
sub good_indexes
{
	my ($node, $what, $where, $settings) = @_;
	my $gin = value($node, "SELECT to_regprocedure('gin_index_check(regclass)') IS NOT NULL") eq 't' ? 'gin_index_check(c.oid)::text' : "''";
	my $n = rows_of($node, $settings // '', "SELECT count(CASE amname WHEN 'btree' THEN bt_index_parent_check(c.oid, true, true)::text ELSE $gin END)
		FROM pg_class AS c JOIN pg_index AS i ON i.indexrelid = c.oid JOIN pg_am AS a ON a.oid = c.relam
		WHERE amname IN ('btree', 'gin') AND relkind = 'i' AND indisvalid AND " . ($where // 'true') . ';');

	like($n, qr/^\d+$/, "$what: amcheck");
	return $n;
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
	$self->{in} .= "$sql\n\\echo done $self->{n}\n\\warn done $self->{n}\n";
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
	while (index("\n$self->{out}", "\n$mark") < 0 || index("\n$self->{err}", "\n$mark") < 0)
	{
		last unless $self->{run}->pumpable;
		$self->{run}->pump;
	}
	$self->{timer}->reset;
	my $out = $self->{out};
	$self->{out} = '';
	$out =~ s/(^|\n)$mark\z/$1/;
	$self->{err} =~ s/^done \d+\n//mg;
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
