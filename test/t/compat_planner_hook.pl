# Another extension's planner hook, below gpusort's, that plans in a memory context of its own
# (test/modules/planner_context.c).

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('planner_hook', "shared_preload_libraries = 'planner_context, gpusort'\n", rows => 30000);

for my $query ('SELECT id FROM t ORDER BY k, id', 'SELECT left(k, 2) AS g, count(*) FROM t GROUP BY g ORDER BY g')
{
	like(rows_of($node, "$force $serial", "EXPLAIN (COSTS OFF) $query;"), qr/GpuSort/, "$query: plan");
	same_rows($node, "$force $serial", "$query;", "$query: rows");
}

$node->stop;
done_testing();
