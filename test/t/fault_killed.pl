# Processes are killed in the middle of sorts and index builds, and the server
# is stopped in each way: what is left afterwards in shared memory, in the data
# directory and among temporary files is nothing, and all rows are there.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('killed', "synchronize_seqscans = off\ndynamic_shared_memory_type = mmap\n", rows => 40000);

$node->safe_psql('postgres', q(
	CREATE EXTENSION amcheck;
	CREATE TABLE big (id int, v text COLLATE "C", pad text);
	ALTER TABLE big ALTER pad SET STORAGE PLAIN;
	INSERT INTO big SELECT i, md5(i::text), '' FROM generate_series(1, 3000) AS i;
	VACUUM (ANALYZE) big;
	CHECKPOINT;));

my $query = 'SELECT id, k FROM t ORDER BY k';
my $expected = stock($node, "$query;");

# rows of 200 kB, which wait in a file of gpusort's own
my $large = "SELECT id, repeat(v, 6250) FROM big ORDER BY v LIMIT 300";

sub shm_segments
{
	return scalar(my @files = glob $node->data_dir . '/pg_dynshmem/*');
}

# Files of relations in the database, and of no relation
sub stray_files
{
	return $node->safe_psql('postgres', q(
		SELECT string_agg(f, ' ') FROM pg_ls_dir((SELECT 'base/' || oid FROM pg_database WHERE datname = 'postgres')) AS f
		WHERE f ~ '^t?[0-9_]+$' AND f !~ '^t' AND NOT EXISTS (SELECT FROM pg_class WHERE pg_relation_filenode(oid) = f::oid)));
}

my $segments = shm_segments();

sub nothing_left
{
	my ($what) = @_;

	released($node, $what);
	is(join(' ', temp_files($node)), '', "$what: no temporary files");
	is(shm_segments(), $segments, "$what: no shared memory segments");
}

my $build = "$force $parallel SET max_parallel_maintenance_workers = 2; CREATE INDEX i ON t (k);";
my @work = (
	[ 'sort, feeding', "service_hold_append", "$force $parallel $query;" ],
	[ 'sort, sorting', "service_hold_sort", "$force $serial $query;" ],
	[ 'index build, feeding', "service_hold_append", $build ],
	[ 'index build, reading back', "service_hold_fetch:2", $build ],
	[ 'large rows', "service_hold_fetch", "$force $serial $large;" ]);

#
# SIGKILL
#
for my $case (@work)
{
	my ($name, $point, $sql) = @$case;

	for my $victim ('service', 'backend', 'worker')
	{
		my $what = "$name, $victim killed";
		my $service = service_pid($node);
		my $session = session($node);
		my ($cursor) = cursor($node, $query, 10);
		my $pid = $victim eq 'service' ? $service : $session->{pid};

		fault($node, $point);
		$session->send($sql);
		waits($node, $session, $what, '');
		if ($victim eq 'worker')
		{
			$pid = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE leader_pid = $session->{pid} LIMIT 1");
		}
		if ($pid eq '')
		{
			pass("$what: has no workers");
			$node->safe_psql('postgres', "SELECT pg_cancel_backend($session->{pid})");
			$_->quit for $session, $cursor;
			fault($node, undef);
			next;
		}
		kill 'KILL', $pid;
		$session->receive;
		like($session->errors, qr/terminating connection|server closed the connection|connection to server was lost/, "$what: session ends");
		$_->quit for $session, $cursor;
		ok(restarted($node, $service), "$what: server is up again");
		fault($node, undef);
		nothing_left($what);
		same_rows($node, $parallel, "$query;", "$what: rows afterwards", $expected);
	}
}
# as after any crash: the files of relations that were being made
note('stray files after crashes: ' . stray_files());
$node->safe_psql('postgres', "$build SELECT bt_index_check('i', true); DROP INDEX i;");

#
# SIGTERM, which ends a query with an error at most
#
for my $case (@work)
{
	my ($name, $point, $sql) = @$case;
	my $what = "$name, worker terminated";
	my $service = service_pid($node);
	my $session = session($node);

	fault($node, $point);
	$session->send($sql);
	waits($node, $session, $what, '');
	my $pid = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE leader_pid = $session->{pid} LIMIT 1");
	if ($pid)
	{
		is(value($node, "SELECT pg_terminate_backend($pid)"), 't', "$what: terminated");
		fault($node, undef) unless $name =~ /feeding/;
		$session->receive;
		like($session->errors, qr/terminating (parallel worker|connection|background worker)/, "$what: error");
	}
	else
	{
		$node->safe_psql('postgres', "SELECT pg_cancel_backend($session->{pid})");
		$session->receive;
	}
	released($node, $what);
	is(join(' ', temp_files($node)), '', "$what: no temporary files");
	fault($node, undef);
	is($session->query("SELECT count(*) FROM pg_class WHERE relname = 'i';"), '0', "$what: no index");
	is($session->query("$force $parallel $query;"), $expected, "$what: rows afterwards");
	$session->quit;
	is(service_pid($node), $service, "$what: the service went on");
}

# the service is no session; pg_terminate_backend() knows it not
note('terminate service: ' . messages_of($node, 'SELECT pg_terminate_backend(max(service_pid)) FROM gpusort_devices'));
wait_ready($node);

#
# Stopped in each way, while a sort is under way
#
for my $stage ('append', 'sort', 'fetch')
{
	my $what = "smart stop, $stage";
	my $session = session($node, "$force $parallel");
	my ($other, $got) = cursor($node, $query, 100);

	fault($node, "service_hold_$stage");
	$session->send("$query;");
	waits($node, $session, $what, '');
	my $stop = IPC::Run::start([ 'pg_ctl', '-D', $node->data_dir, '-m', 'smart', '-w', '-t', '60', 'stop' ], '>', \my $stop_out, '2>', \my $stop_err);
	ok(eventually(sub { $node->psql('postgres', 'SELECT 1', stderr => \my $e) != 0 }), "$what: no new sessions");
	kill 'TERM', $other->query('SELECT max(service_pid) FROM gpusort_devices;') if $stage eq 'fetch';
	$got .= "\n" . $other->query('FETCH 500 FROM c;') if $stage ne 'fetch';
	$other->query("COMMIT; ALTER SYSTEM RESET gpusort.fault;") if $stage ne 'fetch';
	$other->query('SELECT pg_reload_conf();');
	if ($stage eq 'fetch')
	{
		$got .= "\n" . $other->query('FETCH 500 FROM c; COMMIT;') ;
		$other->query("ALTER SYSTEM RESET gpusort.fault;");
	}
	same_order($session->receive, $expected, "$what: rows");
	same_order($got, join("\n", (split /\n/, $expected)[0 .. 599]), "$what: rows of a cursor");
	is($session->errors . $other->errors, '', "$what: no errors");
	$_->quit for $session, $other;
	$stop->finish;
	is($stop->result(0), 0, "$what: the server stops");
	$node->{_pid} = undef;
	unlink $node->data_dir . '/postmaster.pid';
	is(join(' ', temp_files($node)), '', "$what: no temporary files");
	# other settings each time
	my %settings = (
		append => "gpusort.staging_memory = '8MB'",
		sort => 'gpusort.host_threads = 1',
		fetch => 'gpusort.device = off');
	$node->append_conf('postgresql.conf', "$settings{$stage}\n");
	$node->start;
	if ($stage eq 'fetch')
	{
		same_order(rows_of($node, $force, "$query;"), $expected, 'restarted without device: rows');
		$node->append_conf('postgresql.conf', "gpusort.device = host\n");
		$node->restart;
	}
	wait_ready($node);
	nothing_left($what);
	same_rows($node, $parallel, "$query;", "$what: rows with other settings", $expected);
}

$node->stop;
done_testing();
