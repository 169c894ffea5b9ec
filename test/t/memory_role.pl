# gpusort.role_memory: what the sorts of one role may hold on the devices together.  One role has
# a limit, by ALTER ROLE; another one has none.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $limit_mb = 16;
my $limit = $limit_mb << 20;

# 50 MB on a device, with what sorting takes
my $rows = 60000;

sub setup
{
	my ($name, $conf) = @_;
	my $node = new_server($name, $conf);

	$node->safe_psql('postgres', qq(
		CREATE EXTENSION amcheck;
		CREATE ROLE app LOGIN;
		CREATE ROLE free LOGIN;
		CREATE ROLE other;
		GRANT other TO app;
		ALTER ROLE app SET gpusort.role_memory = '${limit_mb}MB';
		GRANT ALL ON SCHEMA public TO app, free, other;
		CREATE TABLE t (id int, k text COLLATE "C", e text COLLATE "en_US", v text) WITH (parallel_workers = 3);
		INSERT INTO t SELECT i, md5(i::text), md5((i / 3)::text), repeat(chr(65 + i % 26), 500)
			FROM generate_series(1, $rows) AS i;
		CREATE TABLE arrays (id int, a int[]);
		INSERT INTO arrays SELECT i, (SELECT array_agg(hashint4(i * 100 + j)) FROM generate_series(1, 100) AS j)
			FROM generate_series(1, 20000) AS i;
		VACUUM (ANALYZE) t, arrays;
		GRANT SELECT ON t, arrays TO app, free, other;));
	return $node;
}

# As this role
sub rows_as
{
	my ($node, $role, $settings, $sql) = @_;
	local $ENV{PGUSER} = $role;

	return rows_of($node, "$force $settings", $sql);
}

sub session_as
{
	my ($node, $role, $settings) = @_;
	local $ENV{PGUSER} = $role;

	return session($node, "$force $settings");
}

# Run something in a session; the most that all sorts held on all devices meanwhile
sub most_held
{
	my ($watch, $session, $sql) = @_;
	my $most = 0;

	$session->send("$sql\n\\echo all done");
	while ($session->{out} !~ /(^|\n)all done\n/)
	{
		my $held = $watch->query('SELECT sum(memory_used) FROM gpusort_devices;');

		$most = $held if $held > $most;
		$session->{run}->pump_nb;
	}
	my $out = $session->receive;
	$out =~ s/(^|\n)all done\z//;

	# a cursor holds it still
	my $held = $watch->query('SELECT sum(memory_used) FROM gpusort_devices;');
	$most = $held if $held > $most;
	return ($out, $most);
}

# The same for a sort of which more than that is expected.  Where the machine is busy one may miss
# the moment, so it may take several times; the statistics are of the last
sub most_held_above
{
	my ($least, $node, @args) = @_;
	my ($out, $most);

	for (1 .. 10)
	{
		stats_reset($node);
		($out, $most) = most_held(@args);
		last if $most > $least;
	}
	return ($out, $most);
}

sub counts
{
	return value($_[0], 'SELECT spilled_sorts, limited_sorts, fallbacks FROM gpusort_stats');
}

sub query_of
{
	return "SELECT id, left(v, 3) FROM (SELECT id, v FROM t ORDER BY $_[0] OFFSET 0) AS s";
}

# little beyond the limit: what is not known until a job has ended
# a GPU takes more for ordering rows than the service foresees
my $slack = $cuda ? 4 << 20 : 1 << 20;
my $query = query_of('k');
my $expected;

for my $server ([ 'one', '' ], [ 'three', "gpusort.devices = '0,0,0'" ])
{
	my ($name, $conf) = @$server;
	my $node = setup("role_memory_$name", $conf);
	my $watch = session($node, '');

	$name = "$name: ";
	$expected //= stock($node, "$query;");

	# who may set it
	{
		is(rows_as($node, 'app', '', 'SHOW gpusort.role_memory;'), "${limit_mb}MB", "${name}the role's limit");
		like(rows_as($node, 'app', '', "SET gpusort.role_memory = '1GB';"), qr/permission denied to set parameter "gpusort.role_memory"/,
			"${name}the role may not raise it");
		like(rows_as($node, 'app', '', 'RESET gpusort.role_memory;'), qr/permission denied/, "${name}nor reset it");
		is(rows_as($node, 'free', '', 'SHOW gpusort.role_memory;'), '0', "${name}another role has none");
	}

	# sorts beyond the limit, of either role
	for my $way (@modes)
	{
		for my $order ('k', 'e, id')
		{
			my $what = "$name$way->[0], ORDER BY $order";
			my $sql = query_of($order);
			my $rows = $order eq 'k' ? $expected : stock($node, "$sql;");
			my ($got, $most);

			for my $role ('app', 'free')
			{
				my $session = session_as($node, $role, $way->[1]);
				my $least = $role eq 'app' ? $limit / 2 : 2 * $limit;

				($got, $most) = most_held_above($least, $node, $watch, $session, "$sql;");
				same_order($got, $rows, "$what, $role: rows");
				if ($role eq 'app')
				{
					is(counts($node), '1|1|0', "$what, $role: written out");
					cmp_ok($most, '<=', $limit + $slack, "$what, $role: bounded");
					cmp_ok($most, '>', $least, "$what, $role: but not by much");
				}
				else
				{
					is(counts($node), '0|0|0', "$what, $role: not written out");
					cmp_ok($most, '>', $least, "$what, $role: not bounded");
				}
				$session->quit;
				released($node, "$what, $role");
			}
		}
	}
	like(rows_as($node, 'app', $serial, "EXPLAIN (ANALYZE) $query;"), qr/^ +Limited By: gpusort\.role_memory$/m, "${name}EXPLAIN tells");
	like(rows_as($node, 'app', $serial, "EXPLAIN (ANALYZE, FORMAT JSON) $query;"), qr/"Limited By": "gpusort\.role_memory"/,
		"${name}EXPLAIN in JSON");
	unlike(rows_as($node, 'free', $serial, "EXPLAIN (ANALYZE) $query;"), qr/Limited/, "${name}EXPLAIN tells nothing of a sort without a limit");
	unlike(rows_as($node, 'app', $serial, 'EXPLAIN (ANALYZE) SELECT id FROM t WHERE id <= 5000 ORDER BY k;'), qr/Limited/,
		"${name}nor of one below it");

	# several sessions have one limit together, with SET ROLE as well; another role's sort has none
	{
		my $small = 'SELECT id, left(v, 3) FROM (SELECT id, v, k FROM t WHERE id <= 15000 ORDER BY k OFFSET 0) AS s';
		my $rows = stock($node, "$small;");
		my @sessions = (session_as($node, 'app', $serial), session_as($node, 'app', $serial),
			session_as($node, 'app', "$serial SET ROLE other;"), session_as($node, 'free', $serial));
		my @got;

		stats_reset($node);
		for my $i (0 .. 3)
		{
			my $most;

			($got[$i], $most) = most_held($watch, $sessions[$i], "BEGIN; DECLARE c CURSOR FOR $small; FETCH 100 FROM c;");
			cmp_ok($most, '<=', $limit + $slack, "${name}cursors of the role, $i: bounded") if $i < 3;
			cmp_ok($most, '>', 8 << 20, "${name}cursors of the role, $i: more than half");
		}
		my $pids = join ',', map { $_->{pid} } @sessions[ 0 .. 2 ];
		is(value($node, "SELECT bool_or(limited) FROM gpusort_activity WHERE pid IN ($pids)"), 't', "${name}view: limited");
		is(value($node, "SELECT bool_or(limited) FROM gpusort_activity WHERE pid = $sessions[3]->{pid}"), 'f', "${name}view: not limited");
		for my $i (0 .. 3)
		{
			read_rest($sessions[$i], $got[$i], $rows, "${name}cursor $i");
		}
		is(fallbacks($node), '{}', "${name}cursors: no fallbacks");
		released($node, "${name}cursors");
	}

	# what a session of the role holds without a limit does not count
	{
		my ($session) = cursor($node, $query, 100);
		my $small = 'SELECT id, left(v, 3) FROM (SELECT id, v, k FROM t WHERE id <= 8000 ORDER BY k OFFSET 0) AS s';

		stats_reset($node);
		same_rows($node, "$serial SET gpusort.role_memory = '${limit_mb}MB';", "$small;", "${name}beside a sort without a limit: rows");
		is(counts($node), '0|0|0', "${name}beside a sort without a limit: not limited");
		$session->quit;
		released($node, "${name}a sort without a limit");
	}

	# many at once
	{
		my @sessions = map { session_as($node, $_ % 4 == 3 ? 'free' : 'app', $_ % 2 ? $parallel : $serial) } (0 .. 7);

		stats_reset($node);
		$_->send("$query;") for @sessions;
		for my $i (0 .. $#sessions)
		{
			same_order($sessions[$i]->receive, $expected, "${name}eight at once, $i: rows");
			is($sessions[$i]->errors, '', "${name}eight at once, $i: no error");
			$sessions[$i]->quit;
		}
		is(counts($node), '6|6|0', "${name}eight at once: those of the role were written out");
		released($node, "${name}eight at once");
	}

	# two sorts of one query, one of which waits for the other
	stats_reset($node);
	my $join = 'SELECT a.id, b.id FROM (SELECT id, k, v FROM t) AS a JOIN (SELECT id, k, v FROM t) AS b USING (k) WHERE a.v >= b.v ORDER BY a.k';
	same_order(rows_as($node, 'app', "$serial SET enable_hashjoin = off; SET enable_nestloop = off;", "$join;"), stock($node, "$join;"),
		"${name}merge join: rows");
	is(fallbacks($node), '{}', "${name}merge join: no fallbacks");
	released($node, "${name}merge join");

	# cancelled while it waits, or is written
	for my $ms (50, 200, 400)
	{
		my $session = session_as($node, 'app', $serial);

		$session->send("$query;");
		value($node, "SELECT pg_sleep($ms / 1000.0), pg_cancel_backend($session->{pid})");
		$session->receive;
		$session->quit;
		released($node, "${name}cancelled after $ms ms");
	}

	# index builds
	stats_reset($node);
	value($node, "SET gpusort.role_memory = '${limit_mb}MB'; $force CREATE INDEX i ON t (k) INCLUDE (v)");
	is(value($node, 'SELECT index_builds FROM gpusort_stats') . '|' . counts($node), '1|1|1|0', "${name}index build: written out");
	good_indexes($node, "${name}index build", "c.relname = 'i'");
	released($node, "${name}index build");

	# room for hardly a chunk, or less: PostgreSQL sorts
	for my $case ([ '1MB', '{"role memory exhausted": 1}' ], [ '4MB', '{}' ])
	{
		my ($little, $fallbacks) = @$case;

		same_counted($node, "$serial SET gpusort.role_memory = '$little';", "$query;", "$name$little", $expected, $fallbacks);
		released($node, "$name$little");
	}
	like(rows_of($node, "$force $serial SET gpusort.role_memory = '1MB';", "EXPLAIN (ANALYZE) $query;"), qr/Fallback Reason: role memory exhausted/,
		"${name}EXPLAIN tells why PostgreSQL sorts");

	# files may not be written
	same_counted($node, "$serial SET gpusort.role_memory = '8MB'; SET temp_file_limit = '1MB'; SET work_mem = '256MB';", "$query;",
		"${name}no files", $expected, '{"temp_file_limit reached": 1}');
	released($node, "${name}no files");

	# arrays
	my $arrays = 'SELECT id, gpu_sort_array(a) FROM arrays';
	for my $case ([ '1MB', '{"role memory exhausted": 1}' ], [ '8MB', '{}' ])
	{
		my ($little, $fallbacks) = @$case;

		stats_reset($node);
		same_rows($node, "$serial SET gpusort.role_memory = '$little';", "$arrays;", "${name}arrays, $little: rows");
		like(fallbacks($node), $fallbacks eq '{}' ? qr/^\{\}$/ : qr/^\{"role memory exhausted": \d+\}$/, "${name}arrays, $little: fallbacks");
		released($node, "${name}arrays, $little");
	}

	# the backend frees a refused chunk before the service wakes it
	fault($node, 'service_slow_refusal');
	same_rows($node, "$serial SET gpusort.role_memory = '1MB'; SET statement_timeout = '60s';", "$arrays;", "${name}arrays, slowly refused");
	fault($node, undef);
	released($node, "${name}arrays, slowly refused");

	$watch->quit;
	$node->stop;
}

done_testing();
