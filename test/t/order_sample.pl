# A wrong weight in the table of a libc locale: the sample of neighbours finds it.  The answer is then PostgreSQL's,
# or an error if rows were returned already, and no later sort trusts the locale.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('order_sample', "gpusort.check_order = off\n", init => [ '--encoding=UTF8', '--locale=C' ]);
my $fault = "SET gpusort.fault = 'libc_weight';";
my $warning = qr/WARNING:  gpusort does not sort text under the libc locale "en_US.utf8" any more/;

# The wrong weights of m and n put rows of mixed out of order everywhere, and rows of late only at the end
value($node, q(
	CREATE EXTENSION amcheck;
	CREATE TABLE mixed (id int, v text COLLATE "en_US.utf8") WITH (parallel_workers = 3);
	INSERT INTO mixed SELECT i, translate(md5(i::text), '0123456789abcdef', 'mnmnmnmnopqrstuv')
		FROM generate_series(1, 40000) AS i;
	CREATE TABLE late (id int, v text COLLATE "en_US.utf8") WITH (parallel_workers = 3);
	INSERT INTO late SELECT i, CASE WHEN i <= 30000 THEN 'a' ELSE 'z' END ||
			translate(md5(i::text), '0123456789abcdef', CASE WHEN i <= 30000 THEN '0123456789abcdef' ELSE 'mnmnmnmnmnmnmnmn' END)
		FROM generate_series(1, 60000) AS i;
	CREATE FUNCTION slow(v text) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS
		'BEGIN PERFORM pg_sleep(0.001); RETURN v; END';
	VACUUM (ANALYZE) mixed, late;));

# The server trusts all locales again
sub start_anew
{
	$node->restart;
	wait_ready($node);
	stats_reset($node);
}

# The output and the messages of statements
sub run_sql
{
	my ($sql) = @_;
	my ($out, $err) = ('', '');

	$node->psql('postgres', $sql, stdout => \$out, stderr => \$err, extra_params => ['-q']);
	return ($out, $err);
}

my $expected = stock($node, 'SELECT v, id FROM mixed ORDER BY v, id;');

for my $mode (@modes)
{
	my ($name, $settings) = @$mode;
	my ($rows, $messages);

	start_anew();
	($rows, $messages) = run_sql("$force $settings $fault SELECT v, id FROM mixed ORDER BY v, id;");
	ok($rows eq $expected, "$name: the answer is PostgreSQL's");
	like($messages, $warning, "$name: a warning tells of it");
	is(fallbacks($node), '{"order not trusted": 1}', "$name: it is counted");

	# in another session
	($rows, $messages) = run_sql("$force $settings SELECT v, id FROM mixed ORDER BY v, id;");
	ok($rows eq $expected && $messages !~ /WARNING/, "$name: later sorts are PostgreSQL's");
	unlike(value($node, "$force $settings EXPLAIN SELECT v FROM mixed ORDER BY v"), qr/GpuSort/, "$name: so are plans");
	like(value($node, "$force $settings EXPLAIN SELECT v FROM mixed ORDER BY v COLLATE \"de_DE.utf8\""), qr/GpuSort/,
		"$name: other locales are trusted");
	is(fallbacks($node), '{"order not trusted": 1}', "$name: nothing more is counted");
	released($node, $name);
}

# Few rows, sorted in the process
{
	my $query = 'SELECT v, id FROM mixed WHERE id < 300 ORDER BY v, id;';
	my $few = stock($node, $query);
	my ($rows, $messages);

	start_anew();
	($rows, $messages) = run_sql("SET gpusort.force = on; SET gpusort.min_rows = 1000; $serial $fault $query");
	ok($rows eq $few, 'few rows: the answer is PostgreSQL\'s');
	like($messages, $warning, 'few rows: a warning');
	is(fallbacks($node), '{"order not trusted": 1}', 'few rows: counted');
}

# Found after rows were returned: an error, and the next try is PostgreSQL's
{
	my $query = 'SELECT v, id FROM late ORDER BY v, id;';
	my $right = stock($node, $query);
	my ($rows, $messages);

	start_anew();
	(undef, $messages) = run_sql("$force $serial $fault $query");
	like($messages, qr/ERROR:  gpusort found rows out of order under a libc collation/, 'late: an error');
	like($messages, $warning, 'late: a warning');
	($rows, $messages) = run_sql("$force $serial $query");
	ok($rows eq $right && $messages eq '', 'late: the next try is PostgreSQL\'s');
}

# A percentile skips the rows before its place: the page that it comes to is looked at as well
{
	my $query = 'SELECT percentile_disc(0.8) WITHIN GROUP (ORDER BY v) FROM late;';
	my $right = stock($node, $query);
	my ($rows, $messages);

	start_anew();
	(undef, $messages) = run_sql("$force $serial $fault $query");
	like($messages, qr/ERROR:  gpusort found rows out of order under a libc collation/, 'skipped rows: an error');
	($rows, $messages) = run_sql("$force $serial $query");
	ok($rows eq $right && $messages eq '', 'skipped rows: the next try is PostgreSQL\'s');
}

# Index builds
for my $index ('CREATE INDEX mixed_v ON mixed (v)', 'CREATE UNIQUE INDEX mixed_v ON mixed (v DESC, id)',
	'CREATE INDEX mixed_v ON mixed USING gin ((string_to_array(v, \'p\')) COLLATE "en_US.utf8")')
{
	my (undef, $messages);

	start_anew();
	(undef, $messages) = run_sql("$force $fault $index;");
	like($messages, $warning, "$index: a warning");
	is(fallbacks($node), '{"order not trusted": 1}', "$index: counted");
	is(value($node, "SELECT bt_index_check('mixed_v', true)"), '', "$index: is in order") if $index !~ /gin/;
	value($node, 'DROP INDEX mixed_v');
}

# Another session distrusts a locale after the leader of a sort has begun to feed, and before its workers begin.  All rows
# must have keys of the same columns
my $slow_rows = "FROM late WHERE id <= 3000 AND slow(v) <> '' ORDER BY id % 2, v, id";
for my $case ([ "SELECT v, id $slow_rows", stock($node, "SELECT v, id $slow_rows;") ],
	[ 'CREATE INDEX late_v ON late (slow(v), id) WHERE id <= 3000', '' ])
{
	my ($statement, $answer) = @$case;

	start_anew();
	my $sorter = session($node, "$force $parallel $fault SET max_parallel_maintenance_workers = 2;");
	my $other = session($node, "$force $serial $fault");
	my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;

	$sorter->query('EXPLAIN SELECT v FROM late ORDER BY v;');
	kill 'STOP', $postmaster;
	$sorter->send("$statement;");
	ok(eventually(sub { $other->query("SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = $sorter->{pid};") eq 't' }),
		"$statement: the leader has begun");
	$other->query('SELECT v FROM mixed ORDER BY v;');
	kill 'CONT', $postmaster;
	ok($sorter->receive eq $answer, "$statement: the answer");
	like($other->errors, $warning, "$statement: the other session's warning");
	is($sorter->errors, '', "$statement: no error");
	$_->quit for $sorter, $other;
}
is(value($node, "SELECT bt_index_check(indexrelid, true) FROM pg_index WHERE indexrelid = to_regclass('late_v')"), '',
	'the index is in order');

# Without the fault nothing of this happens
start_anew();
same_rows($node, $serial, 'SELECT v, id FROM mixed ORDER BY v, id;', 'a right table', $expected);
is(fallbacks($node), '{}', 'a right table: no fallback');
released($node, 'at the end');

$node->stop;
done_testing();
