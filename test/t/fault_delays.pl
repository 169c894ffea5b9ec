# Random delays (src/delay.h): whatever order the steps of the service, its threads and the
# backends come in, every query ends, with the right rows, and nothing is held afterwards.
#
# A server is started for each seed.  A query that takes longer than the deadline hangs: the
# test prints what the server knows of it and, where there is gdb, all stacks and the service's sessions.
#
#	DELAYS_SEEDS=FIRST-LAST	the seeds (default 1-6)
#	DELAYS_DEADLINE=SECONDS	for each query (default 120)

use strict;
use warnings;

use POSIX qw(WNOHANG);
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use GpusortTest;

my ($first, $last) = ($ENV{DELAYS_SEEDS} // '1-6') =~ /^(\d+)-(\d+)$/ or die 'DELAYS_SEEDS: FIRST-LAST';
my $deadline = $ENV{DELAYS_DEADLINE} // 120;
my $clients = 4;
my $statements = 9;				# of each client

my @conditions = (
	[ 'files' => "gpusort.device_memory = '2MB'" ],
	[ 'devices' => "gpusort.devices = '0,0'\ngpusort.device_memory = '4MB'" ],
	[ 'a device is lost' => "gpusort.devices = '0,0'\ngpusort.device_memory = '6MB'" ],
	[ 'little staging memory' => "gpusort.staging_memory = '8MB'\ngpusort.device_memory = '3MB'" ],
	[ 'a limit of the role' => "gpusort.role_memory = '4MB'\ngpusort.device_memory = '16MB'" ],
	[ 'the service is lost' => "gpusort.device_memory = '3MB'" ]);

delete $ENV{GPUSORT_DELAYS};
my $node = new_server('delays', "log_min_messages = warning\nclient_connection_check_interval = '20ms'\ngpusort.device_memory = '2MB'\ninclude_if_exists 'delays.conf'\n");

$node->safe_psql('postgres', q(
	CREATE TABLE t (id int, c text COLLATE "C", l text COLLATE "en_US.utf8", v text) WITH (parallel_workers = 2);
	INSERT INTO t SELECT i, md5(i::text), md5((i * 7)::text), repeat(chr(65 + i % 26), 100 + i % 90)
		FROM generate_series(1, 24000) AS i;
	CREATE TABLE arrays (id int, a int[]);
	INSERT INTO arrays SELECT i, (SELECT array_agg(hashint4(i * 64 + j)) FROM generate_series(1, 60) AS j)
		FROM generate_series(1, 6000) AS i;
	CREATE FUNCTION slow(id int) RETURNS bool IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS
		$$BEGIN IF id % 2500 = 0 THEN PERFORM pg_sleep(0.02); END IF; RETURN true; END$$;
	CREATE FUNCTION late(id int, ms int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS
		$$BEGIN PERFORM pg_sleep(CASE WHEN id = 23000 THEN ms / 1000.0 ELSE 0.3 END) WHERE id IN (4400, 8800, 13200, 17600, 23000);
			RETURN true; END$$;
	VACUUM (ANALYZE) t, arrays;));

# rows in order; all of each is sorted, and little printed.  No cast to text, nor convert_to(): after these a sort does not go on.
sub digest { "SELECT md5(string_agg(int4send(id) || int4send(ascii(v)), '')) FROM ($_[0]) AS s;" }

my $sort = digest('SELECT id, v FROM t ORDER BY c OFFSET 0');
my %sql = (
	sort => $sort,
	slow => digest('SELECT id, v FROM t WHERE slow(id) ORDER BY c OFFSET 0'),
	descending => digest('SELECT id, v FROM t WHERE id < 17000 ORDER BY c DESC OFFSET 0'),
	libc => digest('SELECT id, v FROM t WHERE slow(id) ORDER BY l OFFSET 0'),
	parallel => "$parallel $sort",
	libc_parallel => "$parallel " . digest('SELECT id, v FROM t ORDER BY l OFFSET 0'),
	few => digest('SELECT id, v FROM t WHERE id < 3000 ORDER BY c OFFSET 0'),
	window => digest('SELECT * FROM (SELECT id, v, row_number() OVER (ORDER BY c) AS n FROM t WHERE slow(id)) AS w WHERE n < 9000'),
	cursor => 'BEGIN; DECLARE c CURSOR FOR SELECT id, v FROM t WHERE slow(id) ORDER BY c; FETCH 2 FROM c;
		MOVE 9000 FROM c; FETCH 2 FROM c; MOVE 12000 FROM c; FETCH 2 FROM c; COMMIT;',
	idle => 'BEGIN; DECLARE c CURSOR FOR SELECT id, v FROM t ORDER BY c; FETCH 2 FROM c; SELECT pg_sleep(1.5);
		MOVE 15000 FROM c; FETCH 2 FROM c; COMMIT;',
	scroll => 'BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id, v FROM t ORDER BY c; MOVE 20000 FROM c; FETCH 2 FROM c;
		MOVE BACKWARD 15000 FROM c; FETCH 2 FROM c; COMMIT;',
	arrays => 'SELECT sum(hashtext(gpu_sort_array(a)::text)::bigint) FROM arrays;',
	index => 'CREATE TEMP TABLE i AS SELECT id, c, v FROM t WHERE id < 15000; CREATE INDEX ON i (c, v); DROP TABLE i;');
my @names = sort keys %sql;
my %expected = map { $_ => stock($node, $sql{$_}) } @names;

# A chunk is a run; the last one comes, and rows are asked for, while the service takes the
# step in which it has nothing of the session on the device
fault($node, 'service_slow_step');
for my $ms (map { $_ * 25 } 0 .. 12)
{
	same_rows($node, "$serial SET statement_timeout = '${deadline}s';",
		digest("SELECT id, v FROM t WHERE late(id, $ms) ORDER BY c OFFSET 0"), "last rows after $ms ms", $expected{sort});
}
fault($node, undef);

# A client's statements: some are cancelled on their way; the last one may leave
sub script
{
	my $script = '';

	for my $n (1 .. $statements)
	{
		my $name = $names[ rand @names ];
		my $cancel = rand() < 0.25;

		$script .= "RESET ALL; $force $serial\n\\echo == $name" . ($cancel ? ', cancelled' : '') . "\n";
		$script .= sprintf "SET statement_timeout = %d;\n", exp rand 7 if $cancel;
		# a time-out of a millisecond may end the statements that lift it, too
		$script .= "$sql{$name}\n" . "ROLLBACK;\nRESET statement_timeout;\n" x ($cancel ? 5 : 1);
	}
	$script .= "\\echo == left\nBEGIN; DECLARE c CURSOR FOR SELECT id, v FROM t ORDER BY c; FETCH 1 FROM c;
		SELECT pg_terminate_backend(pg_backend_pid());\n" if rand() < 0.3;
	return $script;
}

sub start_client
{
	my ($name, $script) = @_;
	my $file = "$PostgreSQL::Test::Utils::tmp_check/$name";

	append_to_file("$file.sql", $script);
	my $pid = fork // die "fork: $!";
	if ($pid == 0)
	{
		open STDOUT, '>', "$file.out" or die;
		open STDERR, '>&', \*STDOUT or die;
		exec 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-f', "$file.sql" or die;
	}
	return { pid => $pid, file => $file };
}

# The client's result of each statement; messages name the script's line
sub check_client
{
	my ($client, $what) = @_;
	my @wrong;

	for (split /^== /m, slurp_file("$client->{file}.out"))
	{
		my ($name, $cancelled, $got) = /^(\w+)(, cancelled)?\n(.*)\z/s or next;

		$got =~ s/^psql:\S+ WARNING:  there is no transaction in progress\n//mg;
		chomp $got;
		next if $name eq 'left' || $got eq $expected{$name};
		next if $cancelled && $got =~ /ERROR:  canceling statement due to/;
		# slow() is a function of a user, which may give other rows when they are read again
		next if $what =~ /lost/ && ($name =~ /arrays|scroll/ || $sql{$name} =~ /slow\(/) &&
			$got =~ /ERROR:  gpusort lost its device/;
		push @wrong, "$name" . ($cancelled // '') . ": $got";
	}
	is(join("\n", @wrong), '', "$what: results");
	unlink "$client->{file}.sql", "$client->{file}.out" unless @wrong;
}

sub overdue
{
	return $node->safe_psql('postgres', "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity
		WHERE backend_type = 'client backend' AND state = 'active' AND query_start < now() - interval '$deadline s'");
}

sub print_state
{
	my ($what) = @_;
	my $pids = $node->safe_psql('postgres', "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity
		WHERE pid <> pg_backend_pid() AND backend_type IN ('client backend', 'parallel worker')");
	my $service = service_pid($node);
	my ($out, $err);

	diag("$what: hangs");
	diag($node->safe_psql('postgres', "\\x on\nSELECT pid, backend_type, state, wait_event, now() - query_start AS since, query
		FROM pg_stat_activity WHERE backend_type IN ('client backend', 'parallel worker');
		SELECT * FROM gpusort_devices; SELECT * FROM gpusort_activity;"));
	for my $pid ($service, split / /, $pids)
	{
		my @print = $pid == $service ? map { ('-ex', "print $_") }
			('*gs_shared', '*gs_served@gs_n_served', '*gs_sessions@gs_n_served') : ();

		eval { IPC::Run::run([ 'gdb', '-batch', '-p', $pid, '-ex', 'set print elements 16',
			'-ex', 'thread apply all bt', @print ], '>', \$out, '2>', \$err); diag("process $pid:\n$out"); };
	}
}

# Wait for all; false: one hangs
sub wait_clients
{
	my ($what, @clients) = @_;

	while (@clients)
	{
		my $service = $what =~ /service/ && rand() < 0.1 ? service_pid($node) : '';

		kill 'TERM', $service if $service ne '';
		@clients = grep { waitpid($_->{pid}, WNOHANG) == 0 } @clients;
		sleep 0.1;
		my $pids = @clients ? overdue() : '';
		next if $pids eq '';
		print_state($what);
		$node->psql('postgres', 'SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()');
		return 0;
	}
	return 1;
}

for my $seed ($first .. $last)
{
	my ($condition, $conf) = @{ $conditions[ $seed % @conditions ] };
	my $what = "seed $seed, $condition";
	my @running;

	srand($seed);
	$node->stop;
	unlink $node->data_dir . '/delays.conf';
	append_to_file($node->data_dir . '/delays.conf', "$conf\n");
	{
		local $ENV{GPUSORT_DELAYS} = $seed;
		$node->start;
	}
	wait_ready($node);
	fault($node, 'device_lost:' . int(exp rand 6)) if $condition =~ /device is/;
	push @running, start_client("$seed-$_", script()) for 1 .. $clients;
	if (!ok(wait_clients($what, @running), "$what: all queries end"))
	{
		waitpid($_->{pid}, 0) for @running;
	}
	check_client($_, $what) for @running;
	fault($node, undef) if $condition =~ /device is/;
	released($node, $what);
	note(value($node, 'SELECT device_sorts, spilled_sorts, temp_bytes FROM gpusort_stats') . '|' . fallbacks($node));
}
$node->stop;
done_testing();
