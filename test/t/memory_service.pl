# The memory of the service itself is what gpusort_devices says, and little more, while many cursors are in files and
# are read.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

# A GPU's driver takes memory of its own
plan skip_all => 'the memory is the host device\'s' if $cuda;

my $limit_mb = 100;
my $node = new_server('memory_service', "gpusort.device_memory = '${limit_mb}MB'\n", rows => 200000);
my $service = service_pid($node);

# The service's own memory, in MB
sub held
{
	slurp_file("/proc/$service/status") =~ /^RssAnon:\s+(\d+) kB/m or die 'the system does not tell RssAnon';
	return $1 / 1024;
}

my $at_start = held();

#
# 80 cursors, each of some 8 MB
#
{
	my @sessions = map { session($node, "$force $serial") } 1, 2;
	my $most = 0;

	$_->send(q(BEGIN;
		DO $$ DECLARE r record; c refcursor;
		BEGIN
			FOR i IN 1 .. 40 LOOP
				EXECUTE format('DECLARE c%s CURSOR FOR SELECT id, k FROM t WHERE id BETWEEN %s AND %s ORDER BY k, id', i, i * 1000, i * 1000 + 90000);
				c := 'c' || i;
				FETCH c INTO r;
			END LOOP;
			FOR j IN 1 .. 2 LOOP
				FOR i IN 1 .. 40 LOOP
					c := 'c' || i;
					MOVE FORWARD 20000 FROM c;
				END LOOP;
			END LOOP;
		END $$;)) for @sessions;

	my $active = "FROM pg_stat_activity WHERE state = 'active' AND pid IN ($sessions[0]{pid}, $sessions[1]{pid})";

	becomes($node, "count(*) = 2 $active", 'cursors in files: at work');
	do
	{
		my $now = held();

		$most = $now if $now > $most;
	} while (value($node, "SELECT count(*) $active") > 0);
	$_->receive for @sessions;
	is(join('', map { $_->errors } @sessions), '', 'cursors in files: no errors');
	is(value($node, "SELECT sum(temp_bytes) > 100 << 20 FROM pg_stat_activity JOIN gpusort_activity USING (pid)"), 't', 'cursors in files: written');
	cmp_ok($most - $at_start, '<=', $limit_mb * 1.7, 'cursors in files: memory of the service in MB');
	note("at most $most MB, $at_start MB at the start");
	$_->quit for @sessions;
	released($node, 'cursors in files');
}

$node->stop;
done_testing();
