# Large rows, long keys, many rows, and none.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('large');

$node->safe_psql('postgres', q(
	CREATE TABLE large (id int, k text COLLATE "C") WITH (parallel_workers = 2);
	INSERT INTO large SELECT i, md5((i % 8)::text) FROM generate_series(1, 24) AS i;
	CREATE TABLE many (id int, one int) WITH (parallel_workers = 2);
	INSERT INTO many SELECT i, 1 FROM generate_series(1, 1000000) AS i;
	CREATE TABLE none (id int, k text COLLATE "C") WITH (parallel_workers = 2);
	VACUUM (ANALYZE) large, many, none;));

# The rows' digest, so that they need not travel
my $file = "${PostgreSQL::Test::Utils::tmp_check}/digest";

sub digest
{
	my ($settings, $query, $program) = @_;

	unlink $file;
	my $failed = rows_of($node, $settings, "COPY ($query) TO PROGRAM '$program > $file';");
	return $failed || slurp_file($file);
}

sub same_digest
{
	my ($query, $what, $program) = @_;
	my $expected = digest('SET gpusort.enabled = off;', $query, $program);

	like($expected, qr/^[0-9a-f]{32} /, "$what: PostgreSQL alone");
	for my $mode (@modes)
	{
		my ($name, $settings) = @$mode;

		stats_reset($node);
		is(digest("$force $settings", $query, $program), $expected, "$what, $name");
		is(value($node, 'SELECT device_sorts, fallbacks FROM gpusort_stats'),
			'1|0', "$what, $name: on the device")
		  unless $what eq 'no rows';
	}
	released($node, $what);
}

# one row of 200 MB among small ones
same_digest('SELECT id, CASE id WHEN 12 THEN repeat(k, 6250000) ELSE k END FROM large ORDER BY id DESC',
	'row of 200 MB', 'md5sum');

# keys of 3 MB that differ at their ends
same_digest('SELECT id FROM large ORDER BY repeat(k, 100000) COLLATE "C", id',
	'long keys', 'md5sum');

# a million rows, in every order
same_digest('SELECT id FROM many ORDER BY id', 'sorted', 'md5sum');
same_digest('SELECT id FROM many ORDER BY id DESC', 'reversed', 'md5sum');
same_digest('SELECT id FROM many ORDER BY one', 'all equal', 'LC_ALL=C sort | md5sum');

# none, and one
same_digest('SELECT id FROM none ORDER BY k', 'no rows', 'md5sum');
$node->safe_psql('postgres', "INSERT INTO none VALUES (1, 'one')");
same_digest('SELECT id FROM none ORDER BY k', 'one row', 'md5sum');

# whatever its size, a sort on the device needs no temporary file
my $temp_bytes = "SELECT pg_stat_get_db_temp_bytes(oid) FROM pg_database WHERE datname = 'postgres'";
my $before = $node->safe_psql('postgres', $temp_bytes);

unlike(digest("$force SET work_mem = '64kB';", 'SELECT id FROM many ORDER BY id DESC', 'md5sum'),
	qr/failed/, 'small work_mem: sorts');
is(value($node, $temp_bytes), $before, 'small work_mem: no temporary file');

$node->stop;
done_testing();
