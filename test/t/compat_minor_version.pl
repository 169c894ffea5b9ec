# One library for all minor versions: a server with the library that was built for another one, older and newer.
# GPUSORT_MINOR_SERVERS has two servers, each with the library that was built for the other one (test/lib/suites.sh).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my @folders = split /\n/, $ENV{GPUSORT_MINOR_SERVERS} // '';

plan skip_all => 'MINOR_SERVER names no server of another minor version' unless @folders;

# Symbols that a file needs or has, without weak symbols.  Symbols of other libraries have versions, and are left out.
sub symbols
{
	my ($which, $file) = @_;
	my ($out, $err) = run_command([ 'nm', '-D', $which, $file ]);

	return map { /^\S*\s+[^w] ([^\s@]+)$/ } map { s/^\s+/0 /r } split /\n/, $out;
}

my @nodes = map { PostgreSQL::Test::Cluster->new("minor$_", install_path => $folders[$_]) } 0, 1;
my @versions;

for my $i (0, 1)
{
	my ($version) = run_command([ $nodes[$i]->installed_command('postgres'), '--version' ]);

	push @versions, $version =~ /\) (\d+\S*)/;
}

# Minor versions may write values of composite types differently
my $types = q(
	CREATE TYPE pair AS (a int, b text COLLATE "C");
	CREATE TYPE nest AS (p pair, n numeric);
	CREATE TABLE pairs AS SELECT i, (hashint4(i) % 1000, md5(i::text))::pair AS p,
			((i % 9, 'x')::pair, i % 7)::nest AS n, (i % 5, repeat(md5((i % 50)::text), 100))::pair AS l
		FROM generate_series(1, 20000) AS i;
	ANALYZE pairs;);
my @queries = ('SELECT i FROM pairs ORDER BY p, i;', 'SELECT i FROM pairs ORDER BY n, i;', 'SELECT i FROM pairs WHERE i % 10 = 0 ORDER BY l, i;',
	'SELECT i FROM (SELECT i, (i % 3, p) AS r FROM pairs OFFSET 0) AS s ORDER BY r, i;',
	'SELECT i FROM pairs ORDER BY (p).b;');

for my $i (0, 1)
{
	my ($node, $version, $built) = ($nodes[$i], $versions[$i], $versions[1 - $i]);
	my $what = "built for $built, on $version";
	my %has = map { $_ => 1 } symbols('--defined-only', $node->installed_command('postgres'));

	is(join(' ', grep { !$has{$_} } symbols('--undefined-only', $node->config_data('--pkglibdir') . '/gpusort.so')),
		'', "$what: the server has all symbols");

	$node->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
	$node->append_conf('postgresql.conf', 'log_min_messages = warning');
	ok($node->start(fail_ok => 1), "$what: the server starts") or next;
	$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
	wait_ready($node);

	my $older = $version =~ s/.*\D//r < $built =~ s/.*\D//r;
	my $warning = () = slurp_file($node->logfile) =~ /WARNING:  gpusort was built for PostgreSQL \Q$built\E\b.*, which is newer than this server/g;

	is($warning, $older ? 1 : 0, "$what: the log tells of an older server");

	$node->safe_psql('postgres', $types);
	for my $query (@queries)
	{
		same_counted($node, $serial, $query, "$what, $query");
		my $plan = rows_of($node, "$force $serial", "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query");

		like($plan, qr/Device: (host|cuda)\b/, "$what, $query: on the device");
		unlike($plan, qr/Rows Settled/, "$what, $query: all rows have keys");
		is(value($node, 'SELECT device_sorts > 0 FROM gpusort_stats'), 't', "$what, $query: counted");
	}
	rows_of($node, $force, 'CREATE INDEX pairs_p ON pairs (p, n);');
	$node->safe_psql('postgres', 'CREATE EXTENSION amcheck');
	is(good_indexes($node, $what, "c.relname = 'pairs_p'"), 1, "$what: an index");
	$node->stop;
	unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal/, "$what: no crash");
}

done_testing();
