# Citus: tables whose shards lie in two workers.  gpusort sorts the shards there, and what
# they return in the coordinator; every answer is compared with that of PostgreSQL alone.
# The services end in the middle.  Shards are indexed, and move.  GPUSORT_NO_CITUS tells why
# the server has no Citus (test/lib/citus.sh); then there is nothing to do.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

plan skip_all => $ENV{GPUSORT_NO_CITUS} if $ENV{GPUSORT_NO_CITUS};

my @nodes = map {
	new_server($_, q(
		shared_preload_libraries = 'citus, gpusort'
		listen_addresses = '127.0.0.1'
		citus.node_conninfo = 'sslmode=disable'
		wal_level = logical
		max_wal_senders = 10
		max_replication_slots = 10
		max_connections = 100
		max_worker_processes = 40))
} qw(coordinator worker1 worker2);
my ($coordinator, @workers) = @nodes;

$_->safe_psql('postgres', 'CREATE EXTENSION citus; CREATE EXTENSION amcheck;') for @nodes;
$coordinator->safe_psql('postgres', sprintf "SELECT citus_set_coordinator_host('127.0.0.1', %d)", $coordinator->port);
$coordinator->safe_psql('postgres', sprintf "SELECT citus_add_node('127.0.0.1', %d)", $_->port) for @workers;
note($coordinator->safe_psql('postgres', 'SELECT citus_version()'));

# Settings of all sessions of some servers
sub settings
{
	my ($conf, @servers) = @_;

	for my $node (@servers)
	{
		$node->safe_psql('postgres', join ";\n", map { "ALTER SYSTEM SET $_ = '$conf->{$_}'" } sort keys %$conf);
		$node->reload;
		$node->poll_query_until('postgres',
			'SELECT ' . join ' AND ', map { "current_setting('$_') = '$conf->{$_}'" } sort keys %$conf)
		  or die 'the settings do not arrive';
	}
}

# d spreads rows over the shards; k and l have NULL, empty, and many equal texts, l also such that
# differ in case only.  o is of the same shards, so joins by d are done there; r is on all nodes.
$coordinator->safe_psql('postgres', q(
	CREATE TABLE f (id int, d int, g int, k text COLLATE "C", l text COLLATE "en_US.utf8", pad text);
	SELECT create_distributed_table('f', 'd', shard_count => 8);
	INSERT INTO f SELECT i, i % 997, nullif(i % 11, 5), '/usr/share/' || md5((i * 7 % 80000)::text),
			CASE WHEN i % 2 = 0 THEN initcap(left(md5((i % 900)::text), i % 9)) ELSE left(md5((i % 900)::text), i % 9) END,
			repeat('x', i % 100)
		FROM generate_series(1, 100000) AS i;
	UPDATE f SET k = NULL, l = NULL WHERE id % 500 = 1;
	CREATE TABLE o (d int, n numeric, t text COLLATE "C");
	SELECT create_distributed_table('o', 'd', colocate_with => 'f');
	INSERT INTO o SELECT i, i * 7919 % 1000 / 8.0, md5(i::text) FROM generate_series(1, 997) AS i;
	CREATE TABLE r (g int, name text);
	SELECT create_reference_table('r');
	INSERT INTO r SELECT i, 'group ' || i FROM generate_series(0, 10) AS i;
	CREATE TABLE small (id int, k text COLLATE "C");
	SELECT create_distributed_table('small', 'id', colocate_with => 'f');
	INSERT INTO small SELECT i, md5(i::text) FROM generate_series(1, 50) AS i;
	CREATE TABLE copied (id int, d int, k text COLLATE "C");
	SELECT create_distributed_table('copied', 'd', colocate_with => 'f');
	CREATE TABLE turned (n int, id int, k text COLLATE "C");
	SELECT create_distributed_table('turned', 'id', shard_count => 4, colocate_with => 'none');
	VACUUM ANALYZE f, o, r, small;));

#
# Each query, what may run before it, and where its plan must have gpusort's nodes: in the
# coordinator, in a task of a worker, or in both
#
my $hash_off = 'SET LOCAL enable_hashjoin = off; SET LOCAL enable_nestloop = off;';
my %queries = (
	'ORDER BY, C' => [ 'coordinator', 'SELECT id, k, pad FROM f ORDER BY k, id;' ],
	'ORDER BY, en_US' => [ 'coordinator', 'SELECT id, l FROM f ORDER BY l, id;' ],
	'ORDER BY, en_US, descending' => [ 'coordinator', 'SELECT id, g, l FROM f ORDER BY l DESC NULLS LAST, g NULLS FIRST, id DESC;' ],
	'ORDER BY, volatile' => [ 'coordinator', 'SELECT id, k, random() < 2 FROM f ORDER BY k, id;' ],
	'large LIMIT' => [ 'both', 'SELECT id, k FROM f ORDER BY k DESC, id LIMIT 60000;' ],
	'OFFSET' => [ 'both', 'SELECT id, l FROM f ORDER BY l, id LIMIT 60000 OFFSET 20000;' ],
	'one shard' => [ 'worker', 'SELECT id, k FROM f WHERE d = 17 ORDER BY k, id;' ],
	'DISTINCT' => [ 'both', 'SELECT DISTINCT k FROM f ORDER BY k;' ],
	'count(DISTINCT)' => [ 'coordinator', 'SELECT count(DISTINCT k), count(DISTINCT l) FROM f;' ],
	'count(DISTINCT) by group' => [ 'coordinator', 'SELECT g, count(DISTINCT k), count(DISTINCT l) FROM f GROUP BY g ORDER BY g;' ],
	'aggregates in shards' => [ 'both',
		q(SELECT d, count(DISTINCT k), string_agg(l, ',' ORDER BY l, id), percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM f GROUP BY d ORDER BY d;) ],
	'window in shards' => [ 'both',
		'SELECT id, rank() OVER (PARTITION BY d ORDER BY l), sum(id) OVER (PARTITION BY d ORDER BY k, id) FROM f ORDER BY id;' ],
	'window in the coordinator' => [ 'coordinator', 'SELECT id, dense_rank() OVER (PARTITION BY g ORDER BY l) FROM f ORDER BY id;' ],
	'GROUP BY' => [ 'coordinator', 'SELECT l, count(*), min(id) FROM f GROUP BY l ORDER BY l, 3;' ],
	'join in shards' => [ 'both', 'SELECT f.id, o.n, o.t FROM f JOIN o USING (d) ORDER BY o.n, o.t, f.id;', $hash_off ],
	'join with a table of all nodes' => [ 'both', 'SELECT f.id, r.name FROM f LEFT JOIN r USING (g) ORDER BY r.name, f.id LIMIT 50000;', $hash_off ],
	'join across shards' => [ 'coordinator', 'SELECT a.id, b.id FROM f AS a JOIN f AS b ON a.id = b.g WHERE b.id < 5000 ORDER BY a.id, b.id;',
		"$hash_off SET LOCAL citus.enable_repartition_joins = on;" ],
	'CTE' => [ undef, 'WITH c AS MATERIALIZED (SELECT k, id, d FROM f ORDER BY k, id LIMIT 30000)
		SELECT c.k, c.id, o.t FROM c JOIN o USING (d) ORDER BY c.k DESC, c.id;' ],
	'intermediate result' => [ 'worker', 'SELECT k, id FROM (SELECT k, id FROM f WHERE g < 9 OFFSET 0) AS s ORDER BY k, id;' ],
	'set operations' => [ 'worker', '(SELECT k FROM f WHERE g < 5) EXCEPT (SELECT k FROM f WHERE g > 8) ORDER BY 1;' ],
	'50 rows' => [ 'coordinator', 'SELECT * FROM small ORDER BY k;' ],
	'no row' => [ 'coordinator', 'SELECT id, k FROM f WHERE id < 0 ORDER BY k;' ],
);

sub in_transaction
{
	my ($settings) = @_;

	# workers hear of SET LOCAL only
	return defined $settings ? "BEGIN; SET LOCAL citus.propagate_set_commands = 'local'; $settings" : '';
}

settings({ 'gpusort.enabled' => 'off' }, @nodes);
my %expected;
for my $name (sort keys %queries)
{
	my (undef, $sql, $settings) = @{ $queries{$name} };

	$expected{$name} = stock($coordinator, in_transaction($settings) . $sql);
}
is(scalar(split /\n/, $expected{'ORDER BY, C'}), 100000, 'rows of all shards');
is(value($_, 'SELECT sorts FROM gpusort_stats'), '0', $_->name . ': gpusort does nothing') for @nodes;

# Which parts of a plan have gpusort's nodes
sub where_gpusort
{
	my ($plan) = @_;
	my %found;
	my $task_depth;

	for (split /\n/, $plan)
	{
		my $depth = length((/^( *)/)[0]);

		undef $task_depth if defined $task_depth && $depth <= $task_depth;
		$task_depth //= $depth if /->  Task$/;
		$found{ defined $task_depth ? 'worker' : 'coordinator' } = 1 if /Gpu[A-Z]/;
	}
	return keys %found == 2 ? 'both' : (keys %found)[0] // 'nowhere';
}

settings({ 'gpusort.enabled' => 'on', 'gpusort.force' => 'on', 'gpusort.min_rows' => 0 }, @nodes);
for my $mode (@modes)
{
	my ($mode_name, $mode_settings) = @$mode;
	my $local = $mode_settings =~ s/SET/SET LOCAL/gr;

	stats_reset($_) for @nodes;
	for my $name (sort keys %queries)
	{
		my ($where, $sql, $settings) = @{ $queries{$name} };
		my $before = in_transaction($local . ($settings // ''));

		is(where_gpusort(rows_of($coordinator, $before, "SET LOCAL citus.explain_all_tasks = on; EXPLAIN (COSTS OFF) $sql")),
			$where, "$mode_name, $name: plan")
		  if defined $where;
		same_order(rows_of($coordinator, $before, $sql), $expected{$name}, "$mode_name, $name: rows");
	}
	for my $node (@nodes)
	{
		cmp_ok(value($node, 'SELECT device_sorts FROM gpusort_stats'), '>=', 10, "$mode_name: sorts of " . $node->name);
		is(value($node, 'SELECT fallbacks FROM gpusort_stats'), '0', "$mode_name: no fallbacks of " . $node->name);
		released($node, "$mode_name, " . $node->name);
	}
}

# EXPLAIN (ANALYZE) of tasks is made by the workers
like(rows_of($coordinator, 'SET citus.explain_all_tasks = on;', 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) ' . $queries{'large LIMIT'}[1]),
	qr/GpuSort.*Rows Sorted: 100000.*Task.*GpuSort.*Rows Sorted: \d+.*Task.*Rows Sorted: \d+/s, 'EXPLAIN (ANALYZE)');

# By cost few rows do not go to the device, although Citus expects 100,000
settings({ 'gpusort.force' => 'off', 'gpusort.min_rows' => 20000 }, @nodes);
stats_reset($_) for @nodes;
for my $name ('50 rows', 'ORDER BY, en_US')
{
	same_order(rows_of($coordinator, '', $queries{$name}[1]), $expected{$name}, "by cost, $name");
}
is(value($coordinator, 'SELECT device_sorts FROM gpusort_stats'), '1', 'by cost: only the larger sort uses the device');
settings({ 'gpusort.force' => 'on', 'gpusort.min_rows' => 0 }, @nodes);

# Cursors, and prepared statements whose plans change from the sixth execution on
my @sorted = split /\n/, $expected{'ORDER BY, C'};
my $sorted = $queries{'ORDER BY, C'}[1] =~ s/;$//r;
{
	my $s = session($coordinator, '');
	my @by_shard = map { [ split /\|/, $_, 2 ] }
	  split /\n/, stock($coordinator, 'SELECT d, id, k FROM f ORDER BY k, id;');

	$s->query("BEGIN; DECLARE c SCROLL CURSOR FOR $sorted; DECLARE h CURSOR WITH HOLD FOR $sorted;");
	same_order($s->query('FETCH 30000 FROM c;'), join("\n", @sorted[ 0 .. 29999 ]), 'cursor, forward');
	same_order($s->query('FETCH BACKWARD 10000 FROM c;'), join("\n", reverse @sorted[ 19999 .. 29998 ]), 'cursor, backward');
	same_order($s->query('FETCH 100 FROM h;'), join("\n", @sorted[ 0 .. 99 ]), 'held cursor, first rows');
	$s->query('COMMIT;');
	same_order($s->query('FETCH ALL FROM h;'), join("\n", @sorted[ 100 .. $#sorted ]), 'held cursor, after the transaction');
	$s->query('CLOSE h; PREPARE p (int) AS SELECT id, k FROM f WHERE d > $1 ORDER BY k, id;
		PREPARE q (int) AS SELECT id, k FROM f WHERE d = $1 ORDER BY k, id;');
	for my $d (map { 130 * $_ } 1 .. 7)
	{
		same_order($s->query("EXECUTE p ($d);"), join("\n", map { $_->[1] } grep { $_->[0] > $d } @by_shard), "prepared, all shards, $d");
		same_order($s->query("EXECUTE q ($d);"), join("\n", map { $_->[1] } grep { $_->[0] == $d } @by_shard), "prepared, one shard, $d");
	}
	is($s->errors, '', 'cursors and prepared statements: no error');
	$s->quit;
}

#
# INSERT ... SELECT: inside the shards, through the coordinator, and from shards to others
#
for my $case (
	[ 'in shards', 'copied (id, d, k)', q(SELECT min(id), d, string_agg(k, ',' ORDER BY k, id) FROM f GROUP BY d), [ 0, 1 ] ],
	[ 'through the coordinator', 'turned (n, id, k)', 'SELECT row_number() OVER (ORDER BY k, id), id, k FROM f', [ 1, 0 ] ],
	[ 'to other shards', 'turned (n, id, k)', 'SELECT count(DISTINCT k), d, min(k) FROM f GROUP BY d', [ 0, 1 ] ])
{
	my ($name, $into, $select, $sorts) = @$case;
	my ($table, $columns) = $into =~ /^(\w+) \((.*)\)/;

	stats_reset($_) for @nodes;
	$coordinator->safe_psql('postgres', "INSERT INTO $into $select");
	cmp_ok($nodes[$_]->safe_psql('postgres', 'SELECT device_sorts FROM gpusort_stats'), '>=', $sorts->[$_],
		"INSERT ... SELECT $name: sorts of " . $nodes[$_]->name) for 0, 1;
	my $got = stock($coordinator, "SELECT $columns FROM $table ORDER BY 1, 2;");
	settings({ 'gpusort.enabled' => 'off' }, @nodes);
	same_order($got, stock($coordinator, "SELECT * FROM ($select) AS s ORDER BY 1, 2;"), "INSERT ... SELECT $name: rows");
	settings({ 'gpusort.enabled' => 'on' }, @nodes);
	$coordinator->safe_psql('postgres', "TRUNCATE $table");
}

#
# The service ends during a sort
#
sub lose
{
	my ($servers, $point, @names) = @_;

	for my $name (@names)
	{
		my (undef, $sql, $settings) = @{ $queries{$name} };
		my $what = join(' and ', map { $_->name } @$servers) . ", $point, $name";

		for (@$servers)
		{
			fault($_, $point);
			stats_reset($_);
		}
		same_order(rows_of($coordinator, in_transaction($settings), $sql), $expected{$name}, "$what: rows");
		like(join(' ', map { fallbacks($_) } @$servers), qr/"device lost"/, "$what: counted");
		for (@$servers)
		{
			fault_over($_, $what);
		}
	}
}

# ... in the coordinator, which keeps what the shards have returned, also if that was volatile
lose([$coordinator], $_, 'ORDER BY, C', 'ORDER BY, volatile', 'large LIMIT') for 'service_append:3', 'service_sort', 'service_fetch';
lose([$coordinator], 'service_fetch', 'DISTINCT', 'count(DISTINCT)', 'window in the coordinator');

# ... in a worker
lose([ $workers[0] ], $_, 'large LIMIT', 'window in shards') for 'service_append', 'service_sort', 'service_fetch';
lose([ $workers[1] ], 'service_sort', 'CTE', 'aggregates in shards', 'join in shards', 'DISTINCT');

# ... and wherever an intermediate result is sorted
lose(\@nodes, $_, 'intermediate result', 'set operations') for 'service_append', 'service_fetch';

# ... after some rows were returned: the shards' are not known to come again
{
	my ($cursor) = cursor($coordinator, $sorted, 30000, settings => $serial);

	end_service($coordinator);
	$cursor->query('FETCH ALL FROM c;');
	like($cursor->errors, qr/ERROR:  gpusort lost its device during a sort\nDETAIL:  Some sorted rows had been returned already/, 'cursor: error');
	$cursor->quit;
	wait_ready($coordinator);
	released($coordinator, 'cursor');
}

#
# Indexes of shards
#
sub index_builds
{
	my ($node) = @_;

	return $node->safe_psql('postgres', 'SELECT index_builds FROM gpusort_stats');
}

# All indexes of shards: how many
sub good_shards
{
	my ($node, $what) = @_;

	return good_indexes($node, "$what, " . $node->name, "i.indrelid::regclass::text ~ '^f_\\d+\$'", 'SET citus.override_table_visibility = off;');
}

stats_reset($_) for @nodes;
for my $sql ('CREATE INDEX f_k ON f (k, id)', 'CREATE INDEX f_l ON f (l DESC NULLS LAST, g) INCLUDE (id)',
	'CREATE UNIQUE INDEX f_d ON f (d, id)', 'CREATE INDEX CONCURRENTLY f_c ON f (lower(l))', 'REINDEX INDEX f_l')
{
	$coordinator->safe_psql('postgres', $sql);
}
for my $node (@workers)
{
	# those of the table itself, without rows, are built as well
	cmp_ok(index_builds($node), '>=', 5 * 4, 'index builds of ' . $node->name);
	is(good_shards($node, 'built'), 4 * 4, 'indexes of ' . $node->name);
	is(fallbacks($node), '{}', 'index builds: no fallbacks of ' . $node->name);
}

# The order that they have
my $by_index = in_transaction('SET LOCAL gpusort.enabled = off; SET LOCAL enable_sort = off; SET LOCAL enable_seqscan = off;');

sub by_index
{
	my ($what) = @_;

	like(rows_of($coordinator, $by_index, 'EXPLAIN ' . $queries{'large LIMIT'}[1]), qr/Task.*Index Only Scan/s, "$what: plan by index");
	same_order(rows_of($coordinator, $by_index, 'SELECT id, k FROM f ORDER BY k, id LIMIT 60000;'), join("\n", map { s/\|[^|]*$//r } @sorted[ 0 .. 59999 ]), "$what: by index");
}

by_index('built');

#
# A shard moves, with those of the same place: its indexes are built there anew; once
# the service ends meanwhile
#
for my $case ([ 'force_logical', undef ], [ 'block_writes', undef ], [ 'force_logical', 'service_sort' ])
{
	my ($mode, $point) = @$case;
	my $what = $mode . ($point ? ", $point" : '');
	my $target = $workers[1];

	fault($target, $point) if $point;
	stats_reset($target);
	$coordinator->safe_psql('postgres', sprintf q(
		SELECT citus_move_shard_placement(shardid, nodename, nodeport, '127.0.0.1', %1$d, shard_transfer_mode => '%2$s')
			FROM (SELECT * FROM citus_shards WHERE table_name = 'f'::regclass AND nodeport <> %1$d ORDER BY shardid LIMIT 1) AS s),
		$target->port, $mode);
	if ($point)
	{
		like(fallbacks($target), qr/"device lost"/, "move, $what: counted");
		fault($target, undef);
		wait_ready($target);
	}
	else
	{
		cmp_ok(index_builds($target), '>=', 4, "move, $what: index builds");
	}
	released($target, "move, $what");
	good_shards($target, "move, $what");
	by_index("move, $what");
	for my $name ('ORDER BY, C', 'large LIMIT', 'join in shards')
	{
		my (undef, $sql, $settings) = @{ $queries{$name} };

		same_order(rows_of($coordinator, in_transaction($settings), $sql), $expected{$name}, "move, $what, $name");
	}
}
is(good_shards($workers[1], 'moved'), 7 * 4, 'indexes have moved');

# A shard is split, which builds the indexes of its parts
{
	my $nodes = $coordinator->safe_psql('postgres', q(SELECT string_agg(nodeid::text, ',' ORDER BY nodeid) FROM pg_dist_node WHERE nodeport <> )
		  . $coordinator->port);

	stats_reset($_) for @workers;
	$coordinator->safe_psql('postgres', qq(
		SELECT citus_split_shard_by_split_points(shardid, ARRAY[((shardminvalue::bigint + shardmaxvalue::bigint) / 2)::text], ARRAY[$nodes], 'block_writes')
			FROM pg_dist_shard WHERE logicalrelid = 'f'::regclass ORDER BY shardid LIMIT 1));
	for (@workers)
	{
		cmp_ok(index_builds($_), '>=', 4, 'split: index builds of ' . $_->name);
		good_shards($_, 'split');
	}
	by_index('split');
	same_order(rows_of($coordinator, '', $queries{'ORDER BY, C'}[1]), $expected{'ORDER BY, C'}, 'split: rows');
}

# Citus's columnar tables
{
	my $rows = 'SELECT id, k FROM c ORDER BY k, id;';

	stats_reset($coordinator);
	$coordinator->safe_psql('postgres', q(
		CREATE EXTENSION IF NOT EXISTS citus_columnar;
		CREATE TABLE c (id int, k text COLLATE "C") USING columnar;
		INSERT INTO c SELECT id, k FROM f;
		CREATE INDEX c_k ON c (k, id);));
	# and those of catalogs
	cmp_ok(index_builds($coordinator), '>=', 1, 'columnar: index build');
	is(value($coordinator, 'SET enable_indexscan = off; SELECT count(bt_index_parent_check(\'c_k\'))'), 1, 'columnar: amcheck');
	like(rows_of($coordinator, 'SET enable_indexscan = off;', "EXPLAIN $rows"), qr/GpuSort.*ColumnarScan/s, 'columnar: plan');
	same_order(rows_of($coordinator, 'SET enable_indexscan = off;', $rows), join("\n", map { s/\|[^|]*$//r } @sorted), 'columnar: rows');
}

released($_, $_->name . ' at the end') for @nodes;
$_->stop for reverse @nodes;
done_testing();
