# README.md and docs/*.md: every SQL example runs and prints what they show;
# settings, views and their columns are those that they list; every command is
# run, or is named below with the reason why not.  (make lint checks links, files
# and targets of make.)

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortReadme;
use GpusortTest;

# The server of a new user: README.md's installation switches gpusort on
my $node = new_server('readme', "shared_preload_libraries = ''\n", stopped => 1);
my $tmp = $PostgreSQL::Test::Utils::tmp_check;

#
# Commands.  A code reference runs the command; a text says why it is not run.
#
my $needs_root = 'needs root and a network';
my $suite = 'a suite of the tests';
my @commands = (
	[ qr/^apt-get (install|purge|update)\b/, $needs_root ],
	[ qr/^make (deb|rpm|docker|cnpg)\b/, 'needs a network and much time; packaging/README.md' ],
	[ qr/^(DEMO_ROWS=\d+ )?make demo$/, 'builds a server of its own' ],
	[ qr/^make (test|check-\w+|lint|fuzz|bench)$/, $suite ],
	[ qr/^test\/(run|release|bench\/\w+)\.sh\b/, $suite ],
	[ qr/^make( (install|uninstall))?( PG_CONFIG=\.\.\.| CUDA=no)?$/, 'build/production runs it' ],
	[ qr/^make installcheck$/, 'build/installcheck runs it' ],
	[ qr/^nvidia-smi\b/, 'needs a GPU' ],
	[ qr/^(POSTGRES_PASSWORD=\w+ )?(docker|kubectl) /, 'needs a container engine, or Kubernetes' ],
	[ qr/^DATA_SOURCE_NAME=/, 'compat_monitoring does it' ],
	[ qr/^psql -X -d mydb (-U app )?-f docs\/(advise|distinct|gained|reindex)\.sql$/, 'docs_advise, docs_reindex or docs_shop runs it' ],
	[ qr/^sh docs\/collation\.sh /, 'docs_collation runs it' ],
	[ qr/^\S*gpusort-enable\b/, \&enable_gpusort ],
	[ qr/^V=\d+$/, 'the version of the two commands with apt-get' ],
	[ qr/^systemctl /, 'would restart the server of the machine' ],
	[ qr/^Device: /, 'needs several devices; devices_several has them' ],
	[ qr/^kill( -9| -STOP| -CONT)?( \d+)?$/, 'fault_service_lost, fault_killed and fault_stuck do it' ],
	[ qr/^pg_restore /, \&restore_dump ],
	[ qr/^pg_upgrade /, 'compat_pg_upgrade does it' ]);

# Does a text in backticks look like a command?
my $command = qr/^(?:[A-Z_]+=\S+ )*(?:apt-get|kill|make|nvidia-smi|pg_\w+ -|psql|systemctl|test\/)(?: |$|\S*\.sh)/;

sub try_command
{
	my ($item, $text) = @_;
	my ($known) = grep { $text =~ $_->[0] } @commands;

	return fail("$item->{file}:$item->{line}: $text: a command that this test does not know") unless $known;
	return $known->[1]->($item, $text) if ref $known->[1];
	note("not run: $text ($known->[1])");
}

# Make a collation sort as another one does, as an upgrade of ICU would: in Estonian
# z comes before t.  One index is then in the wrong order
sub break_index
{
	my $column = $node->pg_version >= 17 ? 'colllocale' : 'colliculocale';

	$node->safe_psql('postgres', $_) for 'DROP DATABASE IF EXISTS mydb', 'CREATE DATABASE mydb';
	$node->safe_psql('mydb', qq(
		CREATE EXTENSION gpusort;
		CREATE COLLATION upgraded (provider = icu, locale = 'en');
		CREATE TABLE t (p text COLLATE upgraded);
		INSERT INTO t VALUES ('s'), ('t'), ('z');
		CREATE INDEX t_p ON t (p);
		UPDATE pg_collation SET $column = 'et', collversion = '1.0' WHERE collname = 'upgraded';));
}

sub enable_gpusort
{
	my ($item, $text) = @_;
	my ($mode) = $text =~ /(\w+)$/;

	$node->command_ok([ 'sh', 'packaging/gpusort-enable', '-D', $node->data_dir, $mode ], $text);
	$node->restart;
	is($node->safe_psql('postgres', 'SHOW gpusort.enabled'), $mode, "$text: enabled");
}

sub restore_dump
{
	my ($item, $text) = @_;
	my $dump = "$tmp/readme.dump";

	$node->command_ok([ 'pg_dump', '-Fd', '-t', 'paths', '-f', $dump, $node->connstr('postgres') ], 'pg_dump');
	$node->safe_psql('postgres', 'CREATE DATABASE restored');
	stats_reset($node);
	$node->command_ok([ split(/ /, $text), '-d', $node->connstr('restored'), $dump ], $text);
	is($node->safe_psql('postgres', 'SELECT index_builds FROM gpusort_stats'),
		$node->safe_psql('restored', "SELECT count(*) FROM pg_indexes WHERE tablename = 'paths'"),
		"$text: gpusort built the indexes");
}

#
# SQL
#

# Where an example belongs to another database
sub database_of
{
	my ($sql) = @_;

	return $sql =~ /\bt_p\b|\bmydb\b|gpusort_collation/ ? 'mydb' : 'postgres';
}

# Differences between machines, devices and versions: times, pieces that the
# device gets, and what newer versions print besides
sub masked
{
	my ($text) = @_;

	for ($text)
	{
		s/rows=(\d+\.\d+)/sprintf 'rows=%.0f', $1/ge;
		s/\d+\.\d+/TIME/g;
		s/(Chunks: |Table Pages: |Batches: |on Device: )\d+/$1N/g;
		s/\d+ chunks/N chunks/g;
		s/\d+ by pages/N by pages/;
		s/\d+ threads?/N threads/g;
		s/\d+ MB/N MB/g;
		s/(Device: )\w+$|(Engine: ).*$/($1 \/\/ $2) . 'DEVICE'/gme;
		s/engine .*?(?=, \d)/engine DEVICE/g;
		s/^ *(?:Buffers|Planning|I\/O Timings|Index Searches):.*\n?//gm if !/Planning Time/ || $node->pg_version >= 18;
		s/\n+\z//;
	}
	return $text;
}

# The statements of a block, in one session for each output that it shows
sub run_sql
{
	my ($item, $text) = @_;
	my $session = '';

	break_index() if $text =~ /gpusort_collation_check/;
	$node->safe_psql('postgres', 'DROP EXTENSION IF EXISTS gpusort') if $text =~ /^CREATE EXTENSION gpusort/m;
	for my $step (steps($text))
	{
		my ($out, $err) = ('', '');
		my $what = "$item->{file}:$item->{line}: " . ($step->{sql} =~ s/\n.*//sr);
		my $status = $node->psql(database_of($text), $session . $step->{sql},
			stdout => \$out, stderr => \$err, on_error_stop => 1);
		my $messages = join '', map { "$_\n" } map { s/^psql:<stdin>:\d+: //r } split /\n/, $err;

		is($status, 0, $what) or diag($err);
		# what follows in the block is the same session's
		$session .= join '', $step->{sql} =~ /^SET .*;\n/gm;
		check_output($what, $step, $out, $messages);
	}
	if ($text =~ /^ALTER SYSTEM/m)
	{
		$node->restart;
	}
	wait_ready($node) if $text =~ /^CREATE EXTENSION gpusort/m;
}

sub check_output
{
	my ($what, $step, $out, $messages) = @_;
	my @comments = $step->{sql} =~ /;\s*-- (.*)$/gm;

	is($out, join("\n", @comments), "$what: result") if @comments;
	return if $step->{output} eq '';
	if ($step->{output} =~ /^(?:DEBUG|NOTICE):/)
	{
		# there may be other messages at this level
		my $expected = masked($step->{output});

		ok(index(masked($messages), $expected) >= 0, "$what: messages")
		  or diag("got:\n$messages\nexpected:\n$step->{output}");
	}
	else
	{
		# psql's margin of one blank
		is(masked($out), masked($step->{output} =~ s/^ //gmr), "$what: output");
	}
}

sub limit_device_memory
{
	my ($limit) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET gpusort.device_memory = '$limit'");
	$node->reload;
	$node->poll_query_until('postgres',
		'SELECT (memory_limit = 16 << 20) = ' . ($limit eq '0' ? 'false' : 'true') . ' FROM gpusort_devices')
	  or die 'the limit does not arrive';
}

# What a document shows without a command
sub check_message
{
	my ($item) = @_;
	my $expected = masked($item->{text});
	my $what = "$item->{file}:$item->{line}: " . ($item->{text} =~ s/\n.*//sr);

	if ($expected =~ /^LOG:/)
	{
		my $log = join "\n", map { s/^.*?(?=(?:LOG|DETAIL):)//r } split /\n/, masked(slurp_file($node->logfile));

		$expected =~ s/(sorts on ).*/$1/ if ($ENV{GPUSORT_TEST_DEVICE} // '') eq 'cuda';
		return ok(index($log, $expected =~ s/\n.*//sr) >= 0, "$what: in the log")
		  && like($log, qr/DETAIL:  Device memory: N MB of N MB; staging memory: N MB\./, "$what: detail");
	}

	if ($expected =~ /^Temporary Files:/)
	{
		my $pattern = $expected =~ s/\d+/\\d+/gr;

		limit_device_memory('16MB');
		like(rows_of($node, $force, 'EXPLAIN (ANALYZE) SELECT id, p FROM paths ORDER BY p;'),
			qr/^ *$pattern$/m, $what);
		return limit_device_memory('0');
	}

	# the one error: the device is lost, and random() would not return the same again
	my $err = '';

	fault($node, 'service_sort');
	$node->psql('postgres', "$force $serial SELECT random(), p FROM paths ORDER BY p;", stdout => \my $out, stderr => \$err);
	fault($node, undef);
	wait_ready($node);
	is($err =~ s/^psql:<stdin>:\d+: //gmr, $item->{text}, $what);
}

# A statement within a sentence
sub run_inline
{
	my ($item, $text) = @_;

	my ($out, $err) = ('', '');
	my $database = database_of($text);

	is($node->psql($database, $text, stdout => \$out, stderr => \$err, on_error_stop => 1), 0, "$item->{file}:$item->{line}: $text")
	  or diag($err);
	if ($text =~ /^ALTER SYSTEM/)
	{
		$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
		$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpusort'");
	}
}

#
# Names
#
sub check_names
{
	my ($item) = @_;
	my $what = "$item->{file}:$item->{line}: $item->{text}";

	if ($item->{text} =~ /^(gpusort\.\w+)(?: = (\w+))?$/)
	{
		my ($name, $value) = ($1, $2);

		is($node->safe_psql('postgres', "SELECT current_setting('$name', true) IS NOT NULL"), 't', $what);
		is($node->psql('postgres', "ALTER SYSTEM SET $name = $value"), 0, "$what: value") if defined $value;
		$node->safe_psql('postgres', "ALTER SYSTEM RESET $name") if defined $value;
	}
	elsif ($item->{text} =~ /^((?:gpusort|pg_stat)_\w+)(?:\.(\w+))?$/ && $1 ne 'pg_stat_statements')
	{
		is($node->psql('postgres', 'SELECT ' . ($2 // '*') . " FROM $1 LIMIT 0"), 0, $what);
	}
	elsif ($item->{text} =~ /^([a-z]+(?:_[a-z]+)+)(?: = \w+)?$/)
	{
		# any other name with an underscore is one that the server or a document knows
		is( $node->safe_psql('postgres', "SELECT
				EXISTS (SELECT FROM pg_settings WHERE name IN ('$1', 'gpusort.$1')) OR
				EXISTS (SELECT FROM pg_opclass WHERE opcname = '$1') OR
				EXISTS (SELECT FROM pg_roles WHERE rolname = '$1') OR
				EXISTS (SELECT FROM pg_collation WHERE collname = '$1') OR
				EXISTS (SELECT FROM pg_proc WHERE proname = '$1' OR '$1' = ANY (proargnames)) OR
				EXISTS (SELECT FROM pg_get_keywords() WHERE word = '$1') OR
				EXISTS (SELECT FROM pg_available_extensions WHERE name = '$1')"),
			't', $what) unless $1 =~ /^pg_(?:config|lsclusters|upgrade)$/;
	}
}

sub in_unit
{
	my ($value, $unit) = @_;
	my %factor = (MB => { MB => 1, GB => 1024 }, ms => { ms => 1, s => 1000 });

	return $value unless $unit && $value =~ /^(\d+)([A-Za-z]+)$/;
	return $1 * $factor{$unit}{$2};
}

my %settings;					# those that have been described

sub check_settings
{
	my ($table) = @_;
	my %change = (user => 'user', superuser => 'superuser', reload => 'sighup', restart => 'postmaster');

	for (@{ $table->{rows} })
	{
		my ($name, $default, $change) = @$_;

		$name =~ s/`//g;
		$settings{$name} = 1;
		my ($boot, $unit, $context) = split /\|/, $node->safe_psql('postgres',
			"SELECT boot_val, unit, context FROM pg_settings WHERE name = '$name'");

		$default = '' if $default eq 'empty';
		is(in_unit($default, $unit), $boot, "$table->{file}: $name: default");
		is($change{$change}, $context, "$table->{file}: $name: how it is changed");
	}
}

sub check_view
{
	my ($table, $view) = @_;
	my @columns = map { split /, /, $_->[0] } @{ $table->{rows} };

	is( join(' ', sort @columns),
		$node->safe_psql('postgres', "SELECT string_agg(attname, ' ' ORDER BY attname COLLATE \"C\")
			FROM pg_attribute WHERE attrelid = '$view'::regclass AND attnum > 0"),
		"$view: all columns");
}

#
# The files, each from its beginning to its end
#
my @items;
my %views;

for my $file ('README.md', sort glob('docs/*.md'))
{
	push @items, map { { %$_, file => $file } } items(slurp_file($file));
}

$node->start;
$node->safe_psql('postgres', 'CREATE ROLE some_role; CREATE TABLE t (p text);');
my $file = 'README.md';

for my $item (@items)
{
	my $text = $item->{text} // '';

	# docs/upgrade.md ends with the extension's end
	if ($item->{file} ne $file)
	{
		$file = $item->{file};
		$node->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS gpusort');
	}

	if ($item->{kind} eq 'block' && is_sql($text))
	{
		# an example may be one major version's
		run_sql($item, $text)
		  if $item->{before} !~ /\bOn PostgreSQL (\d+):$/ || $node->pg_version->major == $1;
	}
	elsif ($item->{kind} eq 'block' && $text =~ /^(?:LOG|ERROR|Temporary Files):/)
	{
		check_message($item);
	}
	elsif ($item->{kind} eq 'block')
	{
		try_command($item, $_) for grep { /\S/ } split /\n/, $text;
	}
	elsif ($item->{kind} eq 'table')
	{
		check_settings($item) if "@{ $item->{head} }[0, 1]" eq 'name default';
		if ($item->{head}[0] eq 'column')
		{
			my ($view) = $item->{before} =~ /^\*\*(gpusort_\w+)\*\*/;

			check_view($item, $view);
			$views{$view} = 1;
		}
	}
	elsif (is_sql($text) && $text =~ /;$|^SET \S+ = \S+$/)
	{
		run_inline($item, $text);
	}
	elsif ($text =~ $command)
	{
		try_command($item, $text);
	}
}

is(join(' ', sort keys %views), 'gpusort_activity gpusort_devices gpusort_stat_reasons gpusort_stat_times gpusort_stats', 'all views are described');
is( join(' ', sort keys %settings),
	$node->safe_psql('postgres', q(SELECT string_agg(name, ' ' ORDER BY name COLLATE "C")
		FROM pg_settings WHERE name LIKE 'gpusort.%' AND name <> 'gpusort.fault')),
	'all settings are described');

check_names($_) for grep { $_->{kind} eq 'code' } @items;

$node->stop;
done_testing();
