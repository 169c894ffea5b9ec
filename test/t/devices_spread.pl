# One sort on several devices: what outgrows a device's memory goes on on another one,
# runs stay where they were sorted, and ranges of them are sorted on all.
# They are the same device, opened three times, or two devices (GPUSORT_TEST_DEVICES=0,1), one of them twice.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

# two devices where there are two
my $cuda = ($ENV{GPUSORT_TEST_DEVICE} // '') eq 'cuda';
my $devices = ($ENV{GPUSORT_TEST_DEVICES} // '') =~ /1/ ? '0,1,0' : '0,0,0';
my $node = new_server('spread', "gpusort.devices = '$devices'\ngpusort.device_memory = '20MB'\n"
	  . "gpusort.wait_timeout = '60s'\n");

# t and few are larger than one device's memory and smaller than three; huge is larger
$node->safe_psql('postgres', q(
	CREATE EXTENSION amcheck;
	CREATE EXTENSION pageinspect;
	CREATE TABLE t (id int, k text COLLATE "C", e text COLLATE "en_US", f int8, v text) WITH (parallel_workers = 3);
	INSERT INTO t SELECT i, md5(i::text), CASE WHEN i % 100 = 0 THEN NULL ELSE upper(left(md5((i / 3)::text), 4)) || '-' || md5(i::text) END,
			hashint8(i), repeat(chr(65 + i % 26), 400)
		FROM generate_series(1, 60000) AS i;
	CREATE TABLE few (id int, k int, v text) WITH (parallel_workers = 3);
	INSERT INTO few SELECT i, i % 3, repeat(chr(65 + i % 26), 400) FROM generate_series(1, 60000) AS i;
	CREATE TABLE huge (id int, k text COLLATE "C", v text) WITH (parallel_workers = 3);
	INSERT INTO huge SELECT i, md5(i::text), repeat(chr(65 + i % 26), 700) FROM generate_series(1, 100000) AS i;
	CREATE SEQUENCE s;
	VACUUM (ANALYZE) t, few, huge;));

sub value
{
	return $node->safe_psql('postgres', $_[0]);
}

# all of the row is sorted, little is printed
sub query_of
{
	my ($table, $order) = @_;

	return "SELECT id, left(v, 3) FROM (SELECT id, v FROM $table ORDER BY $order OFFSET 0) AS s";
}

my $query = query_of('t', 'k');
my $expected = stock($node, "$query;");
my $huge = query_of('huge', 'k');
my $expected_huge = stock($node, "$huge;");

# Is the query spread, with the same rows, and does nothing fall back?  files: it uses files, too;
# few: few rows are needed, and what is left of runs does not stay
sub spreads
{
	my ($settings, $sql, $what, $rows, $files, $few) = @_;

	stats_reset($node);
	same_rows($node, $settings, "$sql;", "$what: rows", $rows);
	is(value('SELECT spread_sorts, spilled_sorts, fallback_reasons FROM gpusort_stats'), ($few ? 0 : 1) . '|' . ($files // 0) . '|{}',
		"$what: " . ($few ? 'not spread' : 'spread') . ($files ? ', files' : ', no files'));
	released($node, $what);
}

#
# Kinds of keys
#
for my $way ([ 'serial', $serial ], [ 'parallel', $parallel ])
{
	my ($name, $settings) = @$way;

	spreads($settings, $query, "text, $name", $expected);
	spreads($settings, query_of('t', 'k DESC'), "text descending, $name");
	spreads($settings, query_of('t', 'f, id'), "fixed width, $name");
	spreads($settings, query_of('few', 'k, id DESC'), "few first keys, $name");

	# proven ranges are written
	spreads($settings, query_of('t', 'e, id'), "en_US, $name", undef, 1);
}

# the answer does not depend on the order of equal keys
for my $order ('k', '1')
{
	stats_reset($node);
	same_rows($node, $serial, "SELECT k, count(*), sum(id), count(DISTINCT v) FROM (SELECT * FROM few ORDER BY $order, v OFFSET 0) AS s GROUP BY k ORDER BY k;",
		"equal keys, ORDER BY $order");
}

like(rows_of($node, "$force $serial", "EXPLAIN (ANALYZE) $query;"), qr/ Device: \w+ [0-2], [0-2].*^ +Spread: [2-9] runs on devices, \d+ ranges$/ms,
	'EXPLAIN names the devices');
like(rows_of($node, "$force $serial", "EXPLAIN (ANALYZE, FORMAT JSON) $query;"),
	qr/"Device Numbers": \["[0-2]", "[0-2]".*"Runs On Devices": [2-9],\s+"Ranges": \d+/s, 'EXPLAIN in JSON');


#
# Parts of the rows
#
spreads($serial, "SELECT id, k, length(v) FROM (SELECT id, k, v FROM t ORDER BY k LIMIT 59000) AS s", 'LIMIT');
spreads($serial, "SELECT id, k, length(v) FROM (SELECT id, k, v FROM t ORDER BY k OFFSET 100 LIMIT 50) AS s", 'small LIMIT', undef, 1, 1);
spreads("$serial SET enable_hashagg = off;", 'SELECT k, left(v, 3) FROM (SELECT DISTINCT k, v COLLATE "C" AS v FROM few ORDER BY 1, 2 OFFSET 0) AS s', 'DISTINCT', undef, 1, 1);

# read again, backward, from the middle
for my $scroll ('', 'SCROLL')
{
	my $session = session($node, "$force $serial");
	my @rows = split /\n/, $expected;
	my $got = $session->query("BEGIN; DECLARE c $scroll CURSOR FOR $query; FETCH 100 FROM c;");

	is(value("SELECT cardinality(devices) > 1 FROM gpusort_activity WHERE pid = $session->{pid}"), 't', "cursor $scroll: view")
	  or diag(value('SELECT * FROM gpusort_activity'));
	$got .= "\n" . $session->query('FETCH 30000 FROM c;');
	if ($scroll ne '')
	{
		same_order($session->query('FETCH BACKWARD 29000 FROM c;'), join("\n", reverse @rows[ 1099 .. 30098 ]), 'backward');
		$session->query('MOVE FORWARD 29000 FROM c;');
	}

	# left open while another one needs the same devices
	spreads_beside("beside a cursor $scroll");
	$got .= "\n" . $session->query('FETCH ALL FROM c;');
	same_order($got, $expected, "cursor $scroll: rows");
	is($session->errors, '', "cursor $scroll: no error");
	$session->quit;
	released($node, "cursor $scroll");
}

sub spreads_beside
{
	my ($what) = @_;

	stats_reset($node);
	same_rows($node, $parallel, "$query;", "$what: rows", $expected);
	is(fallbacks($node), '{}', "$what: no fallbacks");
}

same_rows($node, "$serial SET enable_material = off; SET enable_memoize = off; SET enable_hashjoin = off; SET enable_mergejoin = off;",
	"SELECT n, count(*), sum(x.id::bigint * x.r) FROM generate_series(1, 3) AS n CROSS JOIN LATERAL "
	  . "(SELECT id, row_number() OVER (ORDER BY k) AS r, v FROM t OFFSET 0) AS x GROUP BY n ORDER BY n;", 'rescan');
released($node, 'rescan');

#
# More than all devices hold, and several at once
#
spreads($serial, $huge, 'huge, serial', $expected_huge, 1);
spreads($parallel, $huge, 'huge, parallel', $expected_huge, 1);
stats_reset($node);
{
	my @runs;

	for my $i (0 .. 5)
	{
		my $session = session($node, "$force " . ($i % 2 ? $parallel : $serial));
		my ($sql, $all) = $i == 4 ? ($huge, $expected_huge) : ($query, $expected);

		$session->send("$sql;");
		push @runs, [ $session, $all ];
	}
	for my $i (0 .. $#runs)
	{
		my ($session, $all) = @{ $runs[$i] };

		same_order($session->receive, $all, "six at once, $i: rows");
		is($session->errors, '', "six at once, $i: no error");
		$session->quit;
	}
	is(fallbacks($node), '{}', 'six at once: no fallbacks');
	released($node, 'six at once');
}

# the rows go back to PostgreSQL, also those of runs that have stayed
stats_reset($node);
fault($node, 'device_memory:50');
same_rows($node, $serial, "$huge;", 'chunks refused: rows', $expected_huge);
fault($node, undef);
is(fallbacks($node), '{"device memory exhausted": 1}', 'chunks refused: fallback');
released($node, 'chunks refused');

# cursors hold all memory: their runs are moved to files for who comes
{
	my @cursors;

	stats_reset($node);
	for (1 .. 3)
	{
		my $session = session($node, "$force $serial");

		push @cursors, [ $session, $session->query("BEGIN; DECLARE c CURSOR FOR $query; FETCH 100 FROM c;") ];
	}
	spreads_beside('beside three cursors');
	for my $cursor (@cursors)
	{
		my ($session, $got) = @$cursor;

		$got .= "\n" . $session->query('FETCH ALL FROM c;');
		same_order($got, $expected, 'one of three cursors: rows');
		is($session->errors, '', 'one of three cursors: no error');
		$session->quit;
	}
	is(fallbacks($node), '{}', 'three cursors: no fallbacks');
	released($node, 'three cursors');
}

# less memory than there was
{
	my $session = session($node, "$force $serial");
	my $got = $session->query("BEGIN; DECLARE c SCROLL CURSOR FOR $query; FETCH 40000 FROM c;");

	value("ALTER SYSTEM SET gpusort.device_memory = '12MB'");
	$node->reload;
	ok($node->poll_query_until('postgres', 'SELECT bool_and(memory_limit >> 20 = 12) FROM gpusort_devices'), 'less memory');
	$got .= "\n" . $session->query('FETCH ALL FROM c;');
	same_order($got, $expected, 'less memory: rows');
	same_order($session->query('MOVE ABSOLUTE 0 IN c; FETCH ALL FROM c;'), $expected, 'less memory: once more');
	is($session->errors, '', 'less memory: no error');
	$session->quit;
	value('ALTER SYSTEM RESET gpusort.device_memory');
	$node->reload;
	ok($node->poll_query_until('postgres', 'SELECT bool_and(memory_limit >> 20 = 20) FROM gpusort_devices'), 'as much as before');
	released($node, 'less memory');
}

# room for hardly a chunk on all devices
value("ALTER SYSTEM SET gpusort.device_memory = '" . ($cuda ? 5 : 3) . "MB'");
$node->reload;
ok($node->poll_query_until('postgres', 'SELECT bool_and(memory_limit >> 20 < 6) FROM gpusort_devices'), 'hardly any memory');
spreads($_, $query, 'hardly any memory', $expected, 1) for ($serial, $parallel);
value('ALTER SYSTEM RESET gpusort.device_memory');
$node->reload;
ok($node->poll_query_until('postgres', 'SELECT bool_and(memory_limit >> 20 = 20) FROM gpusort_devices'), 'enough memory');

#
# Index builds
#
for my $columns ('k', 'e, id', 'f DESC', 'k) INCLUDE (v')
{
	my $what = "index ($columns)";

	value("SET gpusort.index_build = off; CREATE INDEX i_stock ON t ($columns)");
	stats_reset($node);
	value("$force CREATE INDEX i_ours ON t ($columns)");
	is(value('SELECT index_builds, fallback_reasons FROM gpusort_stats'), '1|{}', "$what: built");
	cmp_ok(value('SELECT spread_sorts FROM gpusort_stats'), '==', 1, "$what: spread") if $columns =~ /INCLUDE/;
	is(value("SELECT bt_index_parent_check('i_ours', true, true)"), '', "$what: amcheck");
	is(value(q(
		SELECT count(*) FILTER (WHERE substring(get_raw_page('i_stock', 'main', n) FROM 11) <> substring(get_raw_page('i_ours', 'main', n) FROM 11)),
			pg_relation_size('i_stock') = pg_relation_size('i_ours')
		FROM generate_series(0, pg_relation_size('i_stock') / current_setting('block_size')::int - 1) AS n)), '0|t', "$what: same pages");
	value('DROP INDEX i_stock, i_ours');
	released($node, $what);
}

#
# The end, at any time
#
for my $way ('cancel', 'terminate')
{
	for my $ms (50, 150, 300, 600)
	{
		my $session = session($node, "$force $serial");

		$session->send("$huge;");
		value("SELECT pg_sleep($ms / 1000.0), pg_${way}_backend($session->{pid})");
		$session->receive;
		unlike($session->errors, qr/PANIC|crash/, "$way after $ms ms: no crash");
		$session->quit;
		released($node, "$way after $ms ms");
	}
}

# an open cursor ends
{
	my $session = session($node, "$force $serial");

	$session->query("BEGIN; DECLARE c CURSOR FOR $query; FETCH 100 FROM c;");
	$session->query('ROLLBACK;');
	released($node, 'rollback of a cursor');
	$session->quit;
}

#
# A device is lost while it holds a part
#
for my $nth (1, 10, 40, 100, 160)
{
	my $pid;

	$node->restart;
	wait_ready($node);
	$pid = service_pid($node);
	stats_reset($node);
	fault($node, "device_lost:$nth");
	same_rows($node, $nth % 20 ? $parallel : $serial, "$query;", "lost at $nth: rows", $expected);
	fault($node, undef);
	ok($node->poll_query_until('postgres', "SELECT bool_and(state = 'ready') FROM gpusort_devices"), "lost at $nth: tried again");
	is(service_pid($node), $pid, "lost at $nth: the service went on");
	spreads_beside("lost at $nth, one more");
	released($node, "lost at $nth");
}

# others go on, and only the sort that had a part there fails
{
	my $spread = session($node, "$force $serial");
	my $small = session($node, "$force $serial");
	my $got = $spread->query("BEGIN; DECLARE c CURSOR FOR $query; FETCH 100 FROM c;");
	my ($small_query, $rows) = ("SELECT id FROM t WHERE id <= 2000 ORDER BY k");
	my $other;

	$small_query = 'SELECT id FROM (SELECT id, v, k FROM t WHERE id <= 2000 ORDER BY k OFFSET 0) AS s';
	$rows = stock($node, "$small_query;");
	$other = $small->query("BEGIN; DECLARE c CURSOR FOR $small_query; FETCH 10 FROM c;");
	stats_reset($node);
	fault($node, 'device_lost');
	$got .= "\n" . $spread->query('FETCH ALL FROM c;');
	$other .= "\n" . $small->query('FETCH ALL FROM c;');
	same_order($got, $expected, 'a part is lost: rows');
	same_order($other, $rows, 'a part is lost: another sort');
	is($spread->errors . $small->errors, '', 'a part is lost: no error');
	fault($node, undef);
	$_->quit for ($spread, $small);
	is(fallbacks($node), '{"device lost": 1}', 'a part is lost: one sort fell back');
	ok($node->poll_query_until('postgres', "SELECT bool_and(state = 'ready') FROM gpusort_devices"), 'a part is lost: tried again');
	released($node, 'a part is lost');
}

# the input cannot be computed twice
{
	my ($out, $err);

	fault($node, 'device_lost');
	isnt($node->psql('postgres', "$force $serial SELECT count(*) FROM (SELECT k, v, nextval('s') FROM t ORDER BY k OFFSET 0) AS s;",
			stdout => \$out, stderr => \$err), 0, 'volatile: the documented error');
	like($err, qr/ERROR:  gpusort lost its device during a sort/, 'volatile: which one');
	fault($node, undef);
	ok($node->poll_query_until('postgres', "SELECT bool_and(state = 'ready') FROM gpusort_devices"), 'volatile: tried again');
	released($node, 'volatile');
}

# files that cannot be written, where runs have to leave their devices
for my $point ('spill_create', 'spill_write', 'spill_read')
{
	my ($out, $err) = ('', '');

	fault($node, $point);
	$node->psql('postgres', "$force $serial $huge;", stdout => \$out, stderr => \$err);
	like($err, qr/ERROR:  could not (create|write|read).*gpusort/, "$point: error");
	released($node, $point);
	same_rows($node, $serial, "$query;", "$point: a sort without files", $expected);
	fault($node, undef);
}


# a device is lost where a sort was fed last whose rows are all in files: that goes on
{
	my $session = session($node, "$force $serial");
	my $sql = query_of('t', 'e, id');
	my $rows = stock($node, "$sql;");
	my ($device, $got);

	for (1 .. 20)
	{
		$got = $session->query("BEGIN; DECLARE c CURSOR FOR $sql; FETCH 100 FROM c;");
		$device = value("SELECT device FROM gpusort_activity WHERE pid = $session->{pid}");
		last if $device == 1;
		$session->query('ROLLBACK;');
	}
	is($device, 1, 'in files: where it was fed last');
	fault($node, 'device_lost');
	for (1 .. 20)
	{
		value("$force $serial SELECT count(*) FROM (SELECT id, v, k FROM t WHERE id <= 2000 ORDER BY k OFFSET 0) AS s");
		last if value("SELECT bool_and(state = 'ready') FROM gpusort_devices") eq 'f';
	}
	fault($node, undef);
	stats_reset($node);
	$got .= "\n" . $session->query('FETCH ALL FROM c;');
	same_order($got, $rows, 'in files: rows');
	$session->quit;
	is(fallbacks($node), '{}', 'in files: no fallback');
	ok($node->poll_query_until('postgres', "SELECT bool_and(state = 'ready') FROM gpusort_devices"), 'in files: tried again');
	released($node, 'in files');
}

# Cursors that nobody reads hold both of two devices: one range that was read ahead, on another device than
# the range at hand, and runs that stayed.  All of that makes room for others.
$node->append_conf('postgresql.conf', "gpusort.devices = '" . substr($devices, 0, 3) . "'\n");
$node->restart;
wait_ready($node);
stats_reset($node);
{
	my @cursors = map { session($node, "$force $serial") } 1, 2;
	my $idle = query_of('t WHERE id <= 40000', 'k');
	my $expected_idle = stock($node, "$idle;");
	my @got = map { $_->query("BEGIN; DECLARE c CURSOR FOR $idle; FETCH 20000 FROM c;") } @cursors;

	same_rows($node, "$serial SET statement_timeout = '150s';", "$query;", 'beside idle cursors', $expected);
	for my $i (0, 1)
	{
		same_order($got[$i] . "\n" . $cursors[$i]->query('FETCH ALL FROM c;'), $expected_idle, "idle cursor $i: rows");
		is($cursors[$i]->errors, '', "idle cursor $i: no error");
		$cursors[$i]->quit;
	}
	is(fallbacks($node), '{}', 'idle cursors: no fallbacks');
	released($node, 'idle cursors');
}

$node->stop;
done_testing();
