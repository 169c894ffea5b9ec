# pg_plan_advice of PostgreSQL 19: it describes plans with gpusort's nodes, and a plan
# stays the same under its own advice.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('plan_advice', "max_parallel_workers_per_gather = 0\n", rows => 30000);

plan skip_all => 'PostgreSQL has pg_plan_advice from version 19 on' if $node->pg_version->major < 19;

my $loaded = "LOAD 'pg_plan_advice'; SET pg_plan_advice.always_store_advice_details = on; $force";

for my $case (
	[ 'sort', 'SELECT id FROM t ORDER BY k, id', qr/GpuSort/ ],
	[ 'groups', 'SELECT left(k, 2) AS g, count(*) FROM t GROUP BY g ORDER BY g', qr/GpuSort/ ],
	[ 'merge join', 'SELECT a.id FROM t AS a JOIN t AS b ON a.k = b.k ORDER BY a.k', qr/Merge Join.*GpuSort.*GpuSort/s,
		'SET enable_hashjoin = off; SET enable_nestloop = off;' ],
	[ 'join of a sorted subquery', 'SELECT a.id FROM t AS a JOIN (SELECT id, k FROM t ORDER BY k LIMIT 25000) AS b USING (id) ORDER BY a.k',
		qr/GpuSort.*GpuSort/s ])
{
	my ($name, $query, $nodes, $settings) = @$case;

	$settings = $loaded . ($settings // '');
	my $explain = "EXPLAIN (COSTS OFF, PLAN_ADVICE) $query;";
	my ($plan, $advice) = split /^Generated Plan Advice:\n/m, $node->safe_psql('postgres', "$settings $explain");

	like($plan, $nodes, "$name: plan");
	my ($again, $feedback) = split /^Supplied Plan Advice:\n/m,
		$node->safe_psql('postgres', "$settings SET pg_plan_advice.advice = \$\$$advice\$\$; $explain");

	is($again, $plan, "$name: the same plan under its own advice");
	my @refused = grep { !/matched \*\/$/ } split /\n/, $feedback =~ s/^Generated.*//msr;

	is_deeply(\@refused, [], "$name: all advice is followed");
	same_rows($node, $settings, "$query;", "$name: rows");
}
$node->stop;
done_testing();
