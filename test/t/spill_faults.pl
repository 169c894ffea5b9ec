# Sorts larger than device memory: faults, limits and ends of all kinds while runs
# are written and ranges are read.  Afterwards nothing is left.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

# A GPU needs a little more for the least of sorts
my $memory = $cuda ? '5MB' : '3MB';
my $node = new_server('spill', "gpusort.device_memory = '$memory'\nlog_temp_files = 0\n"
	  . "client_connection_check_interval = '50ms'\ngpusort.wait_timeout = '60s'\n");

$node->safe_psql('postgres', q(
	CREATE TABLE t (id int, k text COLLATE "C", v text) WITH (parallel_workers = 3);
	INSERT INTO t SELECT i, md5(i::text), repeat(chr(65 + i % 26), 100) FROM generate_series(1, 60000) AS i;
	VACUUM (ANALYZE) t;));

my $query = 'SELECT id, k, v FROM t ORDER BY k';
my $expected = stock($node, "$query;");

# The temporary files that gpusort has now
sub files
{
	return grep { /gpusort/ } temp_files($node);
}

sub nothing_left
{
	my ($what) = @_;

	released($node, $what);
	ok(eventually(sub { !files() }), "$what: no files") or diag(join "\n", files());
}

# Does the query spill, and nothing fall back?
sub spills
{
	my ($settings, $what) = @_;

	stats_reset($node);
	same_rows($node, $settings, "$query;", "$what: rows", $expected);
	is(value($node, 'SELECT spilled_sorts, fallbacks FROM gpusort_stats'), '1|0', "$what: spilled");
	nothing_left($what);
}

spills($serial, 'serial');
spills($parallel, 'parallel');

#
# What PostgreSQL tells of temporary files
#
{
	my $log = -s $node->logfile;
	my ($files, $bytes) = split /\|/, value($node, q(SELECT temp_files, temp_bytes FROM pg_stat_database WHERE datname = 'postgres'));

	spills($serial, 'statistics');
	becomes($node, "temp_files > $files AND temp_bytes > $bytes + 6000000 FROM pg_stat_database WHERE datname = 'postgres'",
		'pg_stat_database counts');
	like(slurp_file($node->logfile, $log),
		qr/LOG:  temporary file: path "[^"]*pgsql_tmp[^"]*gpusort[^"]*", size [1-9]\d+/, 'log_temp_files tells');
}

#
# temp_tablespaces
#
{
	my $folder = PostgreSQL::Test::Utils::tempdir();

	$node->safe_psql('postgres', "CREATE TABLESPACE other LOCATION '$folder'");
	my ($cursor) = cursor($node, $query, 10, settings => "$force $serial SET temp_tablespaces = other;");
	my @files = files();
	ok(@files > 0, 'temp_tablespaces: files');
	is(scalar(grep { m{/base/} } @files), 0, 'temp_tablespaces: in the tablespace only');
	$cursor->quit;
	nothing_left('temp_tablespaces');
	$node->safe_psql('postgres', 'DROP TABLESPACE other');
}

#
# Limits and failures of files
#
like(rows_of($node, "$force $serial SET temp_file_limit = '2MB'; SET work_mem = '1MB';", "$query;"),
	qr/ERROR:  temporary file size exceeds "?temp_file_limit"? \(2048kB\)/, 'temp_file_limit');
nothing_left('temp_file_limit');
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	for my $case (
		[ 'spill_create', qr/42501.*ERROR|ERROR: .*could not create file "[^"]*gpusort[^"]*": Permission denied/ ],
		[ 'spill_write', qr/ERROR: .*could not write to file "[^"]*gpusort[^"]*": No space left on device/ ],
		[ 'spill_read', qr/ERROR: .*could not read from file "[^"]*gpusort[^"]*": Input\/output error/ ])
	{
		my ($point, $error) = @$case;

		fault($node, $point);
		like(rows_of($node, "$force $settings", "$query;"), $error, "$name, $point: error");
		fault($node, undef);
		nothing_left("$name, $point");
	}
	spills($settings, "$name, after failures");
}
{
	my $sort = session($node, "$force $serial");

	fault($node, 'spill_write');
	$sort->query("\\set VERBOSITY sqlstate\n$query;");
	like($sort->errors, qr/ERROR:  53100/, 'sqlstate of a full disk');
	fault($node, undef);
	$sort->quit;
	nothing_left('sqlstate');
}

#
# The disk is full while rows leave the device for another sort's: nothing is left there, whatever their backends do
# meanwhile.  The sizes are the host device's
#
if (!$cuda)
{
	# after a failure, such as those above, the service writes no cursor's rows for a minute
	$node->restart;
	wait_ready($node);

	my $log = -s $node->logfile;
	my $half = "SELECT id, k, v FROM t WHERE id <= 30000 ORDER BY k";
	my $rows = stock($node, "$half;");
	my $locks = session($node, 'SELECT pg_advisory_lock(1);');
	my $fed = session($node, "$force $serial");
	my @cursors;

	$node->safe_psql('postgres', "ALTER SYSTEM SET gpusort.device_memory = '16MB'");
	$node->reload;
	becomes($node, 'bool_and(memory_limit = 16 << 20) FROM gpusort_devices', 'full disk: limit');
	push @cursors, [ cursor($node, $half, 10) ] for 1 .. 2;
	$node->safe_psql('postgres', 'SELECT pg_sleep(1.5)');
	fault($node, 'spill_page:2');
	same_rows($node, $serial, "$query;", 'beside cursors on a full disk: rows', $expected);
	fault($node, undef);
	my @kept = slurp_file($node->logfile, $log) =~ /LOG:  gpusort keeps the rows of a cursor of process \d+ in memory: could not write to "[^"]*": No space left on device/g;
	is(scalar(@kept), 1, 'cursors on a full disk: the second one is not tried');
	ok(eventually(sub { !files() }, 10), 'cursors on a full disk: no files') or diag(join "\n", files());
	read_rest(@$_, $rows, 'a cursor on a full disk') for @cursors;
	nothing_left('cursors on a full disk');

	$fed->send("SELECT id, k, v FROM t WHERE id < 50000 OR pg_advisory_xact_lock_shared(1) IS NOT NULL ORDER BY k;");
	becomes($node, "wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $fed->{pid}", 'feeding on a full disk: waits');
	fault($node, 'spill_write:2');
	same_rows($node, $serial, "$query;", 'beside feeding on a full disk: rows', $expected);
	fault($node, undef);
	ok(eventually(sub { !files() }, 10), 'feeding on a full disk: no files') or diag(join "\n", files());
	$locks->quit;
	$fed->receive;
	like($fed->errors, qr/ERROR: .*could not write to file "[^"]*": No space left on device/, 'feeding on a full disk: error');
	$fed->quit;
	nothing_left('feeding on a full disk');
	$node->safe_psql('postgres', "ALTER SYSTEM RESET gpusort.device_memory");
	$node->reload;
	becomes($node, "bool_and(memory_limit >> 20 < 16) FROM gpusort_devices", 'full disk: limit as before');
}

#
# No more memory after runs were written: these rows come back, too
#
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	same_despite($node, [ 'device_memory:5', 'device_memory:9', 'device_memory_sort' ], $settings, "$query;", $name, $expected,
		'{"device memory exhausted": 1}');
	nothing_left("$name, memory");
}

#
# The service ends while rows are appended, runs and ranges sorted, pages fetched
#
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	for my $point ('service_append', 'service_append:3', 'service_append:6', 'service_sort', 'service_sort:3',
		'service_fetch', 'service_fetch:4', 'service_fetch:7')
	{
		fault($node, $point);
		my $got = rows_of($node, "$force $settings", "$query;");
		fault($node, undef);
		# the later ones come after the sort has returned rows
		if ($point =~ /fetch:/)
		{
			like($got, qr/ERROR:  gpusort lost its device during a sort/, "$name, $point: error");
		}
		else
		{
			same_order($got, $expected, "$name, $point: rows");
		}
		wait_ready($node);
		nothing_left("$name, $point");
	}
}

#
# Ended from outside
#
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;
	my $sort = session($node, "$force $settings");

	for (my $ms = 3; $ms <= 120; $ms += 9)
	{
		$sort->query("SET statement_timeout = $ms; COPY ($query) TO '/dev/null';");
	}
	unlike($sort->errors, qr/(PANIC|FATAL|gpusort|server closed)/, "$name, cancelled at any time: errors");
	$sort->quit;
	nothing_left("$name, cancelled at any time");

	for my $stage ('append', 'sort', 'fetch')
	{
		for my $way ('cancel', 'terminate')
		{
			fault($node, "service_hold_$stage:3");
			$sort = session($node, "$force $settings");
			$sort->send("$query;");
			$node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM gpusort_activity WHERE pid = $sort->{pid})");
			$node->safe_psql('postgres', "SELECT pg_sleep(0.3), pg_${way}_backend($sort->{pid})");
			$sort->receive;
			$sort->quit;
			nothing_left("$name, $way, $stage");
		}
	}
	fault($node, undef);
}

#
# Several sorts, and cursors that stop reading
#
{
	my @sizes = (60000, 50000, 40000, 30000, 20000, 5000);
	my @readers;
	my @stock = map { stock($node, "SELECT id, k, v FROM t WHERE id <= $_ ORDER BY k;") } @sizes;
	my @got;

	stats_reset($node);
	for my $i (0 .. $#sizes)
	{
		($readers[$i], $got[$i]) = cursor($node, "SELECT id, k, v FROM t WHERE id <= $sizes[$i] ORDER BY k", 3000, scroll => 'SCROLL');
	}
	same_rows($node, $serial, "$query;", 'beside open cursors: rows', $expected);
	for my $round (1 .. 4)
	{
		$got[$_] .= "\n" . $readers[$_]->query('FETCH 4000 FROM c;') for 0 .. $#sizes;
	}
	for my $i (0 .. $#sizes)
	{
		$got[$i] .= "\n" . $readers[$i]->query('FETCH ALL FROM c;');
		$got[$i] =~ s/\n+/\n/g;
		$got[$i] =~ s/\n$//;
		same_order($got[$i], $stock[$i], "cursor over $sizes[$i] rows");
		same_order(join("\n", reverse split /\n/, $readers[$i]->query('FETCH BACKWARD ALL FROM c;')),
			$stock[$i], "cursor over $sizes[$i] rows, backward");
	}
	is(fallbacks($node), '{}', 'several sorts: no fallbacks');
	$_->quit for @readers;
	nothing_left('several sorts');
}

# Sorts below a sort
{
	my $join = 'SELECT a.id, b.v FROM t AS a JOIN t AS b ON a.k = b.k ORDER BY a.id % 1000, a.id;';

	same_counted($node, "$serial SET enable_hashjoin = off; SET enable_nestloop = off;", $join, 'sorts below a sort');
	nothing_left('sorts below a sort');
}

#
# Files that a crash leaves are removed by the restart
#
for my $way ('service', 'server')
{
	my ($cursor) = cursor($node, $query, 10);

	ok(files() > 0, "crash of the $way: files before");
	if ($way eq 'service')
	{
		my $service = service_pid($node);

		kill 'KILL', $service;
		ok(restarted($node, $service), 'crash of the service: the server restarts');
	}
	else
	{
		$node->stop('immediate');
		$node->start;
	}
	$cursor->quit;
	wait_ready($node);
	nothing_left("crash of the $way");
	spills($serial, "after a crash of the $way");
}

$node->stop;
done_testing();
