# Text under libc collations: the service proves the order that the device
# guessed, repairs it, or gives the sort to PostgreSQL.  Disorder that is
# planted behind the device's back must never reach a row that is returned.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('order_check', '', init => [ '--encoding=UTF8', '--locale=C' ]);

# exact: runs of two texts each that agree on level 1 and that their bytes put
# into the right order; natural: many that the bytes, or level 1, do not; one:
# a single run, larger than what is looked at in one piece; arrays of both kinds
$node->safe_psql('postgres', q(
	CREATE TABLE exact (id int, v text) WITH (parallel_workers = 3);
	INSERT INTO exact SELECT i, md5((i / 2)::text) || CASE WHEN i % 2 = 0 THEN 'a' ELSE 'á' END
		FROM generate_series(1, 40000) AS i;
	CREATE TABLE "natural" (id int, v text) WITH (parallel_workers = 3);
	INSERT INTO "natural" SELECT i, translate(left(md5(i::text), 2 + i % 9), '0123456789abcdef',
			CASE i % 3 WHEN 0 THEN '111a--A ,_bBc.''x'
				WHEN 1 THEN 'aáàeéEoöOßsñn' || chr(769) || chr(776) || '-'
				ELSE '11--1aab  cd/.x_' END)
		FROM generate_series(1, 20000) AS i;
	INSERT INTO "natural" SELECT 20000 + i, p.prefix || i % 50 || p.suffix
		FROM generate_series(1, 5000) AS i,
			(VALUES ('', '111a'), ('', '11-1a'), ('', '111 c'), ('', '11 1c'), ('11-', 'a'), ('1 1', '-'),
				('o', chr(776) || 'e'), ('ö', 'e'), ('O' || chr(776), 'E'), ('', chr(769))) AS p (prefix, suffix);
	INSERT INTO "natural" SELECT 90000 + i, CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE '-' END
		FROM generate_series(1, 300) AS i;
	CREATE TABLE one (id int, v text) WITH (parallel_workers = 3);
	INSERT INTO one SELECT i, translate(lpad((i * 7919 % 65536)::bit(16)::text, 48, 'same'), '01', 'xX')
		FROM generate_series(1, 30000) AS i;
	CREATE TABLE exact_array (id int, v text[]) WITH (parallel_workers = 3);
	INSERT INTO exact_array SELECT i, ARRAY[md5((i / 8)::text), NULL, md5((i / 2)::text), CASE WHEN i % 2 = 0 THEN 'a' ELSE 'á' END]
		FROM generate_series(1, 30000) AS i;
	CREATE TABLE natural_array (id int, v text[]) WITH (parallel_workers = 3);
	INSERT INTO natural_array SELECT a.id, ARRAY[left(a.v, 1 + a.id % 3), b.v, a.v]
		FROM "natural" AS a JOIN "natural" AS b ON b.id = a.id / 2 WHERE a.id < 90000;
	INSERT INTO natural_array SELECT 90000 + id, v[1:id % 4] FROM natural_array WHERE id % 3 = 0;
	VACUUM (ANALYZE) exact, "natural", one, exact_array, natural_array;
	CREATE FUNCTION repaired(query text) RETURNS bigint LANGUAGE plpgsql AS $$
	DECLARE
		plan json;
	BEGIN
		EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
		RETURN plan -> 0 -> 'Plan' ->> 'Rows Repaired';
	END
	$$;));

sub repaired
{
	my ($settings, $query) = @_;

	$query =~ s/;$//;
	return rows_of($node, "$force $settings", "SELECT repaired(\$q\$$query\$q\$);");
}

for my $collation ('en_US.utf8', 'de_DE.utf8')
{
	my %query;

	for my $table ('exact', 'natural', 'one', $collation =~ /en/ ? ('exact_array', 'natural_array') : ())
	{
		for my $direction ('', ' DESC')
		{
			$query{"$table$direction"} =
			  qq(SELECT v, id FROM "$table" ORDER BY v COLLATE "$collation"$direction, id;);
		}
	}
	if ($collation =~ /en/)
	{
		$query{"$_ behind a number"} =
		  qq(SELECT v, id FROM "$_" ORDER BY (id / 2 % 5)::numeric DESC, v COLLATE "$collation", id;)
		  for 'exact', 'natural';
	}
	my %expected = map { $_ => stock($node, $query{$_}) } keys %query;

	for my $mode (@modes)
	{
		my ($mode_name, $settings) = @$mode;

		for my $name (sort keys %query)
		{
			my $what = "$collation, $mode_name, $name";
			my $query = $query{$name};
			my ($rows, $n);

			# as the device sorts
			stats_reset($node);
			same_rows($node, $settings, $query, "$what: rows", $expected{$name});
			is(value($node, 'SELECT device_sorts, fallbacks FROM gpusort_stats'), '1|0', "$what: on the device");
			$n = repaired($settings, $query);
			if ($name =~ /exact/)
			{
				is($n, 0, "$what: nothing to repair");
			}
			else
			{
				cmp_ok($n, '>', 0, "$what: rows were repaired");
			}
			released($node, $what);

			# two neighbours of one run are swapped, and swapped back
			fault($node, 'order_check_plant');
			same_counted($node, $settings, $query, "$what, disorder in a run", $expected{$name});
			is(repaired($settings, $query), 4, "$what, disorder in a run: repaired")
			  if $name =~ /exact/;
			released($node, "$what, disorder in a run");

			# two neighbours of different runs, where there are any
			if ($name =~ /^one/)
			{
				fault($node, undef);
				next;
			}
			fault($node, 'order_check_border');
			same_counted($node, $settings, $query, "$what, disorder of runs", $expected{$name}, '{"order not proven": 1}');
			like(rows_of($node, "$force $settings", "EXPLAIN (ANALYZE) $query"),
				qr/Device: none \(fallback\)\n.*Fallback Reason: order not proven\n.*Sort Method: \S/,
				"$what, disorder of runs: EXPLAIN ANALYZE tells the reason");
			released($node, "$what, disorder of runs");
			fault($node, undef);
		}
	}
}

# what is taken back from the device goes back into a cursor as well
fault($node, 'order_check_border');
for my $scroll ('', 'SCROLL')
{
	my $query = 'SELECT v, id FROM "natural" ORDER BY v COLLATE "en_US.utf8", id';

	same_order(
		rows_of($node, "$force $serial",
			"BEGIN; DECLARE c $scroll CURSOR FOR $query; FETCH 5000 FROM c; FETCH ALL FROM c;"),
		stock($node, "$query;"), "disorder of runs, $scroll cursor: rows");
}
fault($node, undef);

# Queries that are cancelled while their order is being checked, or repaired.
# Nothing is said of when, only of what is left.
for my $point ('', 'order_check_plant', 'order_check_border')
{
	fault($node, $point || undef);
	for my $ms (20, 40, 60, 80, 120, 160, 240)
	{
		rows_of($node, "$force $serial SET statement_timeout = $ms;",
			'SELECT count(v) FROM (SELECT v FROM one ORDER BY v COLLATE "en_US.utf8" OFFSET 0) s;');
	}
	released($node, 'cancelled' . ($point && ", $point"));
}
fault($node, undef);
same_rows($node, $serial, 'SELECT v, id FROM one ORDER BY v COLLATE "en_US.utf8", id;', 'after cancelled ones: rows');

$node->stop;
done_testing();
