# When a sort by the host device pays: workers where cores are few, an index that returns the rows in order.
# The number of its threads stands for that of the cores.

use strict;
use warnings;

use File::Path qw(make_path);
use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('plans', "gpusort.device = host\ngpusort.host_threads = 2\n");

# rows lie in the order of id only in part, as if two sessions had inserted them
$node->safe_psql('postgres', q(
	CREATE TABLE t (id int, k text COLLATE "C", v text) WITH (parallel_workers = 2);
	INSERT INTO t SELECT i, md5(i::text), repeat('v', 100) FROM generate_series(1, 200000) AS i ORDER BY i % 100000, i;
	CREATE INDEX ON t (id);
	CREATE FUNCTION costly(int) RETURNS bool LANGUAGE plpgsql PARALLEL SAFE COST 1000 AS 'BEGIN RETURN $1 <> 0; END';
	VACUUM (ANALYZE) t;));

# The plan's nodes, the topmost first
sub nodes
{
	my ($query, $settings) = @_;
	my $plan = value($node, ($settings // '') . " EXPLAIN (COSTS OFF) $query");

	$plan =~ s/Custom Scan \((\w+)\)/$1/g;
	$plan =~ s/ (on|using) .*//g;
	return join ' < ', map { /^(?: *->  )?([A-Z][\w ]*)$/ ? $1 : () } split /\n/, $plan;
}

my $by_key = 'SELECT id, k FROM t ORDER BY k';
my $union = 'SELECT k FROM t UNION SELECT k FROM t AS u';

is(nodes($by_key), 'GpuSort < Seq Scan', 'ORDER BY: no workers');
unlike(nodes($union), qr/Gather/, 'UNION: no workers');
like(nodes($by_key, 'SET parallel_tuple_cost = 0;'), qr/GpuSort < Gather < Parallel GpuSortFeed/, 'workers that cost nothing');
like(nodes('SELECT id, k FROM t WHERE costly(id) ORDER BY k'), qr/GpuSort < Gather < Parallel GpuSortFeed/,
	'a scan that costs much');

# PostgreSQL takes it for so many rows, and each for a group
$node->safe_psql('postgres', q(
	CREATE TABLE g WITH (parallel_workers = 2) AS SELECT id, k FROM t;
	VACUUM (ANALYZE) g;
	UPDATE pg_class SET reltuples = 3000000 WHERE oid = 'g'::regclass;));
my $grouped = 'SELECT lower(k), count(*) FROM g GROUP BY 1';

is(nodes('SELECT k, count(*) FROM g GROUP BY 1'), 'GpuGroup < GpuSort < Seq Scan', 'GROUP BY a column: no workers');
like(nodes($grouped), qr/^GpuChoice < GpuGroup < GpuSort < Gather < Parallel GpuSortFeed/, 'workers evaluate an expression');

my $by_index = 'SELECT * FROM t ORDER BY id';

is(nodes($by_index), 'Index Scan', 'an index whose pages may be in memory');
is(nodes($by_index, 'SET enable_indexscan = off;'), 'GpuSort < Seq Scan', 'no index');
like(nodes($by_index, 'SET gpusort.force = on;'), qr/GpuSort/, 'forced');

$node->append_conf('postgresql.conf', 'gpusort.host_threads = 8');
$node->restart;
wait_ready($node);
like(nodes($by_key), qr/GpuSort < Gather < Parallel GpuSortFeed/, 'ORDER BY: workers where there are more cores');
like(nodes($union), qr/GpuSort < Gather/, 'UNION: the same');
like(nodes($grouped), qr/GpuSort < Gather .*Finalize HashAggregate < Gather < Partial HashAggregate/, 'GROUP BY: the same');

# a systemd unit that may use one core's time and 4 GB
my $root = PostgreSQL::Test::Utils::tempdir();
my $group = 'system.slice/postgresql.service';

make_path("$root/proc/self", "$root/sys/fs/cgroup/$group");
append_to_file("$root/proc/self/cgroup", "0::/$group\n");
append_to_file("$root/sys/fs/cgroup/$group/cpu.max", "50000 100000\n");
append_to_file("$root/sys/fs/cgroup/$group/memory.max", (4 << 30) . "\n");
$node->append_conf('postgresql.conf', "gpusort.host_threads = 0\ngpusort.staging_memory = -1");
$node->stop;
{
	local $ENV{GPUSORT_FAULT_CGROUP} = $root;
	$node->start;
}
wait_ready($node);
is(value($node, 'SELECT name, memory_total, memory_limit < memory_total / 3 FROM gpusort_devices'),
	'host, 1 thread|' . (4 << 30) . '|t', 'a control group: threads and memory');
is(value($node, q(SELECT current_setting('gpusort.staging_memory'), staging_total FROM gpusort_devices)),
	'128MB|' . (128 << 20), 'staging memory: a thirty-second of its memory');
my $log_end = -s $node->logfile;

$node->reload;
is(value($node, 'SHOW gpusort.staging_memory'), '128MB', 'the same after a reload');
unlike(slurp_file($node->logfile, $log_end), qr/cannot be changed/, 'the reload finds no change');
$node->stop;

done_testing();
