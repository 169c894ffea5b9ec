# The files of the extension image (packaging/docker/extension_tree.sh), as CloudNativePG
# mounts them: a server that finds gpusort there, and nowhere else, with the
# settings of packaging/kubernetes/cluster.yaml.

use strict;
use warnings;

use File::Find;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use GpusortPackaging;
use GpusortTest;

my $node = PostgreSQL::Test::Cluster->new('image');

plan skip_all => 'PostgreSQL finds extensions in images from version 18 on' if $node->pg_version < 18;

my ($cluster, $database) = yaml('packaging/kubernetes/cluster.yaml');
my %spec = %{ $cluster->{spec}{postgresql} };
my $image = "$ENV{TESTDIR}/image";
my @files;

find(sub { push @files, $File::Find::name =~ s/^\Q$image\E\///r if -f }, $image);
is_deeply(
	[ sort grep { !/\.sql$/ } @files ],
	[
		'lib/gpusort.so',
		(map { "licenses/gpusort/$_" } 'Apache-2.0', 'BSD-3-Clause-CUB', 'LICENSE', 'third_party.md'),
		'share/extension/gpusort.control'
	],
	'files of the image');

# what the example asks of the server
is_deeply($spec{shared_preload_libraries}, ['gpusort'], 'cluster.yaml: preloaded');
is($spec{extensions}[0]{name}, 'gpusort', 'cluster.yaml: image');
is($database->{spec}{extensions}[0]{name}, 'gpusort', 'cluster.yaml: extension');
is($database->{spec}{cluster}{name}, $cluster->{metadata}{name}, 'cluster.yaml: the cluster of the database');

$node->init;
$node->append_conf('postgresql.conf', join "\n",
	(map { "$_ = '$spec{parameters}{$_}'" } sort keys %{ $spec{parameters} }),
	"shared_preload_libraries = '@{ $spec{shared_preload_libraries} }'",
	# in the place of CloudNativePG's own "$system:...": an installed gpusort is not to be found
	"extension_control_path = '$image/share'",
	"dynamic_library_path = '$image/lib:\$libdir'",
	# the test's machine may be small, or have a GPU that the test is not for
	"shared_buffers = 64MB",
	'gpusort.device = ' . ($cuda ? 'cuda' : 'host'), '');
$node->start;
is(value($node, 'SELECT string_agg(name, \' \') FROM pg_available_extensions'), 'gpusort', 'extensions to be found');
is(value($node, q(SELECT module_name, version FROM pg_get_loaded_modules() WHERE module_name = 'gpusort')),
	'gpusort|' . value($node, q(SELECT default_version FROM pg_available_extensions)), 'name and version of the library');
$node->safe_psql('postgres', q(
	CREATE EXTENSION gpusort;
	CREATE TABLE t AS SELECT i AS id, md5(i::text) AS k FROM generate_series(1, 50000) AS i;
	VACUUM (ANALYZE) t;));

for my $when ('first', 'after a restart')
{
	wait_ready($node);
	stats_reset($node);
	same_rows($node, $serial, 'SELECT id FROM t ORDER BY k COLLATE "C";', "$when: rows");
	$node->safe_psql('postgres', 'DROP INDEX IF EXISTS t_k; CREATE INDEX t_k ON t (k);');
	is(value($node, 'SELECT device_sorts, index_builds, fallbacks FROM gpusort_stats'), '2|1|0', "$when: on the device");
	is(value($node, 'SELECT gpu_sort_array(ARRAY[2, 1])'), '{1,2}', "$when: arrays");

	my $session = session($node);
	my %libraries = map { $_ => 1 } slurp_file("/proc/$session->{pid}/maps") =~ /(\S*gpusort\.so)$/gm;

	is_deeply([ keys %libraries ], ["$image/lib/gpusort.so"], "$when: the library of the image");
	$session->quit;
	$node->restart if $when eq 'first';
}
$node->stop;
done_testing();
