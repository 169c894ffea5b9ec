# Fifty connections sort at once, more than there is staging memory for, while
# settings change and the extension comes and goes.

use strict;
use warnings;

use IPC::Run ();

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('concurrency', "max_connections = 80\n");

# Raises an error unless all rows come once, and in order
$node->safe_psql('postgres', q(
	CREATE TABLE t (id int, k text COLLATE "C") WITH (parallel_workers = 2);
	INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 60000) AS i;
	CREATE INDEX ON t (id);
	VACUUM (ANALYZE) t;
	CREATE FUNCTION check_sort(first int, last int) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		r record;
		previous text COLLATE "C" := '';
		n bigint := 0;
		total bigint := 0;
	BEGIN
		FOR r IN SELECT id, k FROM t WHERE id BETWEEN first AND last ORDER BY k LOOP
			IF r.k <= previous OR r.k <> md5(r.id::text) THEN
				RAISE 'row % follows %', r, previous;
			END IF;
			previous := r.k;
			n := n + 1;
			total := total + r.id;
		END LOOP;
		IF n <> last - first + 1 OR total <> n * (first + last) / 2 THEN
			RAISE '% rows of %', n, last - first + 1;
		END IF;
	END $$;));

my $query = 'SELECT id, k FROM t ORDER BY k;';
my $expected = stock($node, $query);
my $service = service_pid($node);

my $script = $PostgreSQL::Test::Utils::tmp_check . '/concurrency';
append_to_file("$script.check", q(
\set first random(1, 30000)
\set last :first + random(0, 30000)
SELECT check_sort(:first, :last);
));

# closes with pages on their way
append_to_file("$script.leave", q(
\set n random(1, 2000)
BEGIN;
DECLARE c CURSOR FOR SELECT id, k FROM t ORDER BY k;
MOVE :n IN c;
CLOSE c;
DECLARE c SCROLL CURSOR FOR SELECT id, k FROM t WHERE id % 2 = 0 ORDER BY k;
MOVE 20000 IN c;
MOVE ABSOLUTE 1 IN c;
END;
));
append_to_file("$script.small", "SELECT check_sort(:client_id + 1, :client_id + 3);\n");

stats_reset($node);
my ($out, $err) = ('', '');
local $ENV{PGOPTIONS} = '-c gpusort.force=on';
my $bench = IPC::Run::start(
	[ 'pgbench', '-n', '-c', 50, '-j', 2, '-t', 6, '-f', "$script.check\@3", '-f', "$script.leave\@2",
		'-f', "$script.small\@1", $node->connstr('postgres') ],
	'<', \undef, '>', \$out, '2>', \$err);
my @sorts = map { session($node, "$force $parallel") } 1 .. 4;
my $rounds = 0;
my @wrong;

while ($bench->pumpable && $rounds < 1000)
{
	$_->send($query) for @sorts;

	my $min_rows = $rounds % 3 * 10000;
	$node->safe_psql('postgres', 'DROP EXTENSION gpusort; CREATE EXTENSION gpusort');
	$node->safe_psql('postgres', "ALTER SYSTEM SET gpusort.min_rows = $min_rows");
	$node->safe_psql('postgres', 'ALTER SYSTEM SET gpusort.enabled = '
		  . ($rounds % 4 == 3 ? 'off' : 'on'));
	$node->reload;
	push @wrong, grep { $_->receive ne $expected } @sorts;
	$bench->pump_nb;
	$rounds++;
}
$bench->finish;

is($bench->result(0), 0, 'pgbench: exit status');
is($err =~ s/^pgbench \(.*\n//r, '', 'pgbench: no error');
like($out, qr{number of transactions actually processed: 300/300}, 'pgbench: all transactions');
cmp_ok($rounds, '>', 0, 'settings changed meanwhile');
is(scalar(@wrong), 0, 'rows of the parallel sorts');
is(join('', map { $_->errors } @sorts), '', 'no errors of the parallel sorts');
$_->quit for @sorts;

$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
$node->reload;
released($node, 'after fifty connections');
is(value($node, 'SELECT device_sorts > 50 FROM gpusort_stats'), 't', 'the device sorted');
is(service_pid($node), $service, 'by one and the same service');
same_rows($node, $parallel, $query, 'rows afterwards', $expected);
released($node, 'in the end');

$node->stop;
done_testing();
