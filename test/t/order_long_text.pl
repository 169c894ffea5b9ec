# Some text under a libc collation is longer than its key, and some has no key.  Ties are settled.  Rows without a key
# are put aside, and merged into the device's rows.  These tests do both while the device fails.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('long_text', '', init => [ '--encoding=UTF8', '--locale=C' ]);

# Pages of wide rows with short text, every second of which is followed by two
# equal long texts, and a group of texts without a key behind all others
$node->safe_psql('postgres', q(
	CREATE TABLE texts AS
		SELECT i AS id, md5(i::text) AS v FROM generate_series(1, 1600) AS i
		UNION ALL SELECT 10000 + i, md5((i / 2 * 2)::text) || repeat('-long', 1700) FROM generate_series(2, 1600) AS i
		UNION ALL SELECT 20000 + i, 'zz' || repeat(E'\u0301', 17000) FROM generate_series(1, 40) AS i;
	CREATE TABLE t (id int, v text COLLATE "en_US.utf8", m text, wide text) WITH (parallel_workers = 3);
	ALTER TABLE t ALTER wide SET STORAGE PLAIN;
	INSERT INTO t SELECT id, v, md5(v), rpad('', CASE WHEN id < 10000 THEN 8000 END, to_hex(id)) FROM texts ORDER BY id;
	VACUUM (ANALYZE) t;));

my $query = 'SELECT m, id, wide FROM t ORDER BY v';
my $expected = stock($node, "$query, id;");

# By v alone: equal ones may come in any order, but each comes once
sub same_but_ties
{
	my ($got, $what) = @_;
	my $by_id = join "\n",
	  map { $_->[0] }
	  sort { $a->[1] <=> $b->[1] || $a->[2] <=> $b->[2] } do
	{
		my ($group, $last) = (0, '');

		map {
			my ($md5, $id) = split /\|/;

			$group++ if $md5 ne $last;
			$last = $md5;
			[ $_, $group, $id // 0 ];
		} split /\n/, $got;
	};

	return same_order($by_id, $expected, $what);
}

for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	stats_reset($node);
	same_rows($node, $settings, "$query, id;", "$name: rows", $expected);
	same_but_ties(rows_of($node, "$force $settings", "$query;"), "$name: rows by text alone");
	is(fallbacks($node), '{}', "$name: on the device");
	released($node, $name);

	# all rows end in one tuplesort: those put aside too
	for my $case (
		[ 'device_memory', 'device memory exhausted' ], [ 'device_memory:3', 'device memory exhausted' ],
		[ 'device_memory_sort', 'device memory exhausted' ])
	{
		my ($point, $reason) = @$case;

		same_despite($node, [$point], $settings, "$query, id;", $name, $expected, qq({"$reason": 1}));
	}

	same_despite($node, ['service_append:2'], $settings, "$query, id;", $name, $expected, '{"device lost": 1}');

	# the service ends when some of the rows have been returned
	for my $point ('service_fetch:5', 'service_fetch:9')
	{
		fault($node, $point);
		like(messages_of($node, "$force $settings $query, id;"), qr/ERROR:  gpusort lost its device during a sort/, "$name, $point: error");
		fault_over($node, "$name, $point");
	}
}

$node->stop;
done_testing();
