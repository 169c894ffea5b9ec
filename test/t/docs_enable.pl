# packaging/gpusort-enable: the libraries that a server loads afterwards, what it refuses, and that
# nothing is left when it is undone.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = PostgreSQL::Test::Cluster->new('enable');
my $data = $node->data_dir;
my $auto = "$data/postgresql.auto.conf";

# Exit status, and everything that was printed
sub script
{
	my (@options) = @_;
	my $out = '';

	IPC::Run::run([ 'sh', "$ENV{TESTDIR}/packaging/gpusort-enable", @options ], '<', \undef, '>&', \$out);
	return ($? >> 8, $out);
}

sub enabled
{
	my ($what, @options) = @_;
	my ($status, $out) = script(@options);

	is($status, 0, "$what: exit status") or diag($out);
	like($out, qr/^Restart it: +pg_ctl -D \Q$data\E restart$/m, "$what: says how to restart");
	$node->stop if $node->{_pid};
	$node->start;
	return $out;
}

# Refuses, with a message, and changes nothing
sub refused
{
	my ($what, $conf, $pattern) = @_;
	my $before = slurp_file($auto);

	$node->append_conf('postgresql.conf', $conf);
	my ($status, $out) = script('-D', $data);

	is($status, 1, "$what: exit status");
	like($out, $pattern, "$what: message");
	like($out, qr/Nothing was changed/, "$what: says that nothing was changed");
	is(slurp_file($auto), $before, "$what: nothing was changed");
}

sub loaded
{
	return join '|', map { value($node, "SELECT coalesce(current_setting('$_', true), '')") } 'shared_preload_libraries', 'gpusort.enabled';
}

$node->init;
$node->append_conf('postgresql.conf', qq(shared_preload_libraries = '"auto_explain", forgets_hook'\n));
$node->start;
$node->safe_psql('postgres', "ALTER SYSTEM SET work_mem = '5MB'");
my $before = slurp_file($auto);

like(enabled('by default', '-D', $data), qr/--undo -D \Q$data\E, and restart it$/m, 'says how to undo it');
is(loaded(), '"auto_explain", forgets_hook, gpusort|maintenance', 'behind the other libraries');
wait_ready($node) if $node->safe_psql('postgres', 'CREATE EXTENSION gpusort') eq '';
is(value($node, 'SHOW work_mem'), '5MB', 'other settings stay');
enabled('once more', '-D', $data, 'on');
is(loaded(), '"auto_explain", forgets_hook, gpusort|on', 'named once');
$node->safe_psql('postgres', "ALTER SYSTEM SET work_mem = '5MB'");
enabled('undone', '--undo', '-D', $data);
is(loaded(), '"auto_explain", forgets_hook|', 'undone: the other libraries');
is(slurp_file($auto), $before, 'undone: the file is as it was');

# in the files alone, and before a library that forgets it
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpusort, forgets_hook'\n");
$node->stop;
ok(!$node->start(fail_ok => 1), 'before a library that forgets its hook: no start');
like(slurp_file($node->logfile), qr/FATAL: /, 'before a library that forgets its hook: message');
enabled('stopped', '-D', $data);
is(loaded(), 'forgets_hook, gpusort|maintenance', 'put behind it');
enabled('undone in spite of a file', '--undo', '-D', $data);
is(loaded(), 'forgets_hook|', 'undone in spite of a file');
unlink $auto or die;
append_to_file($auto, $before);

refused('an unknown library', "shared_preload_libraries = 'no_such_library'\n",
	qr/could not access file "no_such_library"/);
refused('few workers', "shared_preload_libraries = ''\nmax_worker_processes = 1\n", qr/max_worker_processes/);
refused('huge pages', "max_worker_processes = 8\nhuge_pages = on\nshared_buffers = '1TB'\n",
	qr/ MB are available|huge pages, and the machine has/);
$node->stop;
refused('too much memory', "huge_pages = off\n", qr/ MB are available/);
is((script('-D', "$data/base"))[0], 1, 'no data folder');
is((script('-D', $data, 'perhaps'))[0], 1, 'no such mode');

done_testing();
