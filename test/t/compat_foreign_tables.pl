# Sorts over foreign tables: a table whose four partitions lie in databases of another
# server.  gpusort sorts here, or there, or on both sides, and the service of either
# side ends in the middle.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $front = new_server('front');
my $back = new_server('back');
my @shards = map { "shard$_" } 1 .. 4;

$front->safe_psql('postgres', q(
	CREATE EXTENSION postgres_fdw;
	CREATE TABLE t (id int, g int, k text COLLATE "C") PARTITION BY HASH (id);
	CREATE SEQUENCE s;));
for my $i (0 .. $#shards)
{
	my $shard = $shards[$i];

	$back->safe_psql('postgres', "CREATE DATABASE $shard");
	$back->safe_psql('postgres', "ALTER DATABASE $shard SET gpusort.force = on;
		ALTER DATABASE $shard SET gpusort.min_rows = 0;
		ALTER DATABASE $shard SET max_parallel_workers_per_gather = 0;");

	# any row may be in any partition: nobody asks for a single one by its id
	$back->safe_psql($shard, qq(
		CREATE TABLE t (id int, g int, k text COLLATE "C");
		INSERT INTO t SELECT i, i * 7919 % 5, md5(i::text) || repeat('x', 200) FROM generate_series(1, 100000) AS i WHERE i % 4 = $i;
		INSERT INTO t SELECT NULL, NULL, NULL WHERE $i = 2;
		ANALYZE t;));
	$front->safe_psql('postgres', sprintf(q(
		CREATE SERVER %1$s FOREIGN DATA WRAPPER postgres_fdw
			OPTIONS (host '%2$s', port '%3$s', dbname '%1$s', fetch_size '5000');
		CREATE USER MAPPING FOR CURRENT_USER SERVER %1$s;
		CREATE FOREIGN TABLE t_%1$s PARTITION OF t FOR VALUES WITH (MODULUS 4, REMAINDER %4$d)
			SERVER %1$s OPTIONS (table_name 't');),
		$shard, $back->host, $back->port, $i));
}
$front->safe_psql('postgres', 'ANALYZE t;');

# The shards sort, and the rows are merged here; or all is sorted here
my $merge = 'SET gpusort.enabled = off; SET enable_sort = off;';
my $here = "$force $serial";
my $unique = 'SELECT left(k, 32), id, g FROM (SELECT * FROM t ORDER BY k, id OFFSET 0) AS s;';
my $ties = 'SELECT g, id, left(k, 32) FROM (SELECT * FROM t ORDER BY g OFFSET 0) AS s;';

like(rows_of($front, $merge, "EXPLAIN $unique"), qr/Merge Append/, 'plan of a merge');
like(rows_of($front, $here, "EXPLAIN $unique"), qr/Custom Scan \(GpuSort\).*Append.*Foreign Scan/s, 'plan of a sort here');

# What PostgreSQL alone returns, on both sides
my $expected = do
{
	$back->safe_psql('postgres', "ALTER DATABASE $_ SET gpusort.enabled = off") for @shards;
	my $rows = stock($front, $unique);
	$back->safe_psql('postgres', "ALTER DATABASE $_ RESET gpusort.enabled") for @shards;
	$rows;
};
is(scalar(split /\n/, $expected), 100001, 'rows of all partitions');
my $stock_ties = stock($front, $ties);

for my $case ([ 'merge', $merge ], [ 'sort here', $here ])
{
	my ($name, $settings) = @$case;

	stats_reset($_) for $front, $back;
	same_order(rows_of($front, $settings, $unique), $expected, "$name: rows");
	same_groups(rows_of($front, $settings, $ties), $stock_ties, "$name, equal keys");
	is(value($front, 'SELECT device_sorts, fallbacks FROM gpusort_stats'), $name eq 'merge' ? '0|0' : '2|0', "$name: sorts here");
	is(value($back, 'SELECT device_sorts, fallbacks FROM gpusort_stats'), $name eq 'merge' ? '8|0' : '0|0', "$name: sorts there");
}
released($_, 'nothing lost') for $front, $back;

# The input of a sort here is a foreign table's: it is asked for once more
same_despite($front, [ 'service_append:3', 'service_sort', 'service_fetch' ], $here, $unique, 'here', $expected, '{"device lost": 1}');

# One side's service ends after some rows
for my $case ([ 'merge', $merge, $back ], [ 'sort here', $here, $front ])
{
	my ($name, $settings, $node) = @$case;

	stats_reset($node);
	my ($cursor, $got) = cursor($front, $unique =~ s/;$//r, 15000, settings => $settings);
	end_service($node);
	$got .= "\n" . $cursor->query('FETCH ALL FROM c;');
	like($cursor->errors,
		qr/ERROR:  gpusort lost its device during a sort\nDETAIL:  Some sorted rows had been returned already/,
		"$name, cursor: error");
	$cursor->quit;
	wait_ready($node);
	released($node, "$name, cursor");
}

$front->stop;
$back->stop;
done_testing();
