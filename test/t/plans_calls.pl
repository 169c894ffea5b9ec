# A query calls what it calls in PostgreSQL, and raises what it raises there.
#
# Queries with volatile functions, or expressions that raise errors, in all places (GpusortCalls.pm) run
# without gpusort and with it, under the same settings of the planner.  Rows, calls with their arguments,
# and errors must be the same.
#
# What is promised: PostgreSQL promises no number of calls.  It evaluates what stands in its plan, for the
# rows that come to the node.  So gpusort must do what PostgreSQL does with nodes of the same kinds in the
# same places: groups are sorted (enable_hashagg = off), joins are merged.  Where gpusort may choose between
# sorting and hashing, it must do what PostgreSQL does in one of the two.
#
# Not compared are
#
#	- calls before an error: rows that are equal in all sort keys come in any order
#	- calls and errors where it is open which rows a node reads before it stops: GpusortCalls.pm says where
#
# The environment:
#	CALLS_CASES, CALLS_SEED, CALLS_FIRST	how many queries (default 3000), from which seed (1), the first one
#
# The script of a query that fails is left in the log.  It runs in psql alone, as a superuser of an empty
# database of a server with gpusort; there functions raise a NOTICE for each call.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortCalls;
use GpusortTest;

my $cases = $ENV{CALLS_CASES} // 3000;
my $seed = $ENV{CALLS_SEED} // 1;
my $first = $ENV{CALLS_FIRST} // 1;
my $sessions = 2;
my $batch = 100;				# cases of one psql

# Of all runs.  Incremental sorts and joins by hashing stop at other rows.
my $begin = join "\n", 'CREATE TEMP SEQUENCE calls_seq;', 'GRANT ALL ON calls_seq TO calls_role;', 'SET ROLE calls_role;',
  # rows to delete: two sessions that delete the same ones could wait for each other
  'CREATE TEMP TABLE own AS TABLE u;',
  map({ "SET enable_$_ = off;" } 'incremental_sort', 'hashjoin', 'nestloop', 'material'),
  'SET plan_cache_mode = force_generic_plan;', 'SET client_min_messages = error;', '';
my $on = 'SET gpusort.enabled = on; SET gpusort.min_rows = 0; SET gpusort.sorts_only = off; SET gpusort.force = on;';
my %ways = (
	off => "$serial SET gpusort.enabled = off;",
	force => "$serial $on",
	sorts_only => "$serial $on SET gpusort.sorts_only = on;",
	parallel => "$parallel $on",
	cheap => "$serial $on SET gpusort.force = off; SET gpusort.cost_factor = 0;");

# A run.  What it prints is between marks.  The calls of built-in functions show in a sequence, the next
# random number and locks.
sub run_sql
{
	my ($q, $way, $hashes) = @_;
	my $sql = "\\echo \@run $q->{n}\n$ways{$way} SET enable_hashagg = $hashes;\n"
	  . "SELECT setval('calls_seq', 1, false), setseed(0.5), calls_list() \\g /dev/null\n\\echo \@rows\n";

	$sql .= "$_;\n\\echo \@state :SQLSTATE :LAST_ERROR_MESSAGE\n" for @{ $q->{statements} };
	$sql .= "$_;\n" for @{ $q->{cleanup} };
	$sql .= "\\echo \@calls\nSELECT calls_list(), (SELECT last_value FROM calls_seq), random(),"
	  . " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid());\n"
	  . "SELECT pg_advisory_unlock_all() \\g /dev/null\n";
	if ($way ne 'off')
	{
		my $explained = $q->{text} =~ s/\$(\d+)/$q->{parameters}[$1 - 1]/gr;

		$sql .= "\\echo \@plan\nEXPLAIN (COSTS OFF) $explained;\n";
	}
	return "$sql\\echo \@end\n";
}

# Without gpusort, once more if it may hash, and with it
sub runs_sql
{
	my ($q) = @_;

	return run_sql($q, 'off', 'off')
	  . ($q->{way} eq 'cheap' ? run_sql($q, 'off', 'on') . run_sql($q, 'cheap', 'on') : run_sql($q, $q->{way}, 'off'));
}

sub write_file
{
	my ($name, $text) = @_;

	open my $file, '>', $name or die "$name: $!";
	print $file $text;
	close $file;
}

my $node = new_server('plans_calls', "gpusort.check_order = off\nlog_min_messages = fatal\nlog_min_error_statement = panic\n");

value($node, "CREATE FUNCTION calls_note(text, int) RETURNS void LANGUAGE c AS 'calls';"
	  . " CREATE FUNCTION calls_list() RETURNS text LANGUAGE c AS 'calls';\n" . calls_setup());

my @queries = (calls_queries($seed, $first + $cases - 1))[ $first - 1 .. $first + $cases - 2 ];
my @batches;
push @batches, [ splice @queries, 0, $batch ] while @queries;

# Runs every second batch, or so
my $dir = PostgreSQL::Test::Utils::tempdir();
my $connection = $node->connstr('postgres');
my @pids;

for my $job (0 .. $sessions - 1)
{
	my $pid = fork // die "fork: $!";

	if ($pid == 0)
	{
		for my $i (grep { $_ % $sessions == $job } 0 .. $#batches)
		{
			write_file("$dir/$i.sql", $begin . join '', map { runs_sql($_) } @{ $batches[$i] });
			system("psql -XAtq -d '$connection' -f $dir/$i.sql >$dir/$i.out 2>/dev/null");
		}
		POSIX::_exit(0);
	}
	push @pids, $pid;
}
waitpid $_, 0 for @pids;

# What a run has printed
sub read_run
{
	my ($text, $q) = @_;
	my ($rows, $calls, $plan) = $text =~ /\@rows\n(.*?)^\@calls\n(.*?)^(?:\@plan\n(.*?)^)?\@end$/ms or return undef;
	my @states = map { /^00000/ ? '00000' : $_ } $rows =~ /^\@state (.*)$/mg;
	my @results = map { join "\n", $q->{ordered} ? $_ : sort split /\n/ } split /^\@state .*\n/m, $rows;

	return { rows => join("\n--\n", @results), errors => join("\n", @states), raises => scalar(grep { $_ ne '00000' } @states),
		calls => $calls, plan => $plan };
}

sub differences
{
	my ($q, $stock, $ours) = @_;

	return () if $q->{open} && $stock->{raises} && $ours->{raises};
	return $q->{loose} ? () : 'errors' if $stock->{errors} ne $ours->{errors};
	return () if $stock->{raises};
	return grep { $stock->{$_} ne $ours->{$_} } 'rows', $q->{loose} ? () : 'calls';
}

my $log = $PostgreSQL::Test::Utils::log_path;
my %seen = map { $_ => 0 } qw(raised called GpuGroup GpuPercentile GpuSort GpuWindow GpuArraySort),
  'Distinct', 'Counted', 'Counted Key', 'Groups Kept', 'Top Groups', 'Groups of Several Rows', 'First Rows', 'First Rows per Group',
  'First Ranks per Group';
my $failed = 0;

for my $i (0 .. $#batches)
{
	my %runs;

	for my $run (split /^(?=\@run \d+$)/m, slurp_file("$dir/$i.out"))
	{
		push @{ $runs{$1} }, $run if $run =~ /^\@run (\d+)$/m;
	}
	for my $q (@{ $batches[$i] })
	{
		my ($stock, @others) = map { read_run($_, $q) } @{ $runs{ $q->{n} } // [] };
		my $ours = pop @others;
		my @differ;

		if (!$stock || !$ours || @others != ($q->{way} eq 'cheap'))
		{
			@differ = 'ended';
			$stock = $ours = { ended => 'the session has ended' };
		}
		else
		{
			@differ = differences($q, $stock, $ours);
			@differ = () if grep { !differences($q, $_, $ours) } @others;
			$seen{raised}++ if $stock->{raises};
			$seen{called}++ if !$stock->{raises} && !$q->{loose} && $stock->{calls} =~ /\(/;
			$seen{$_}++ for grep { exists $seen{$_} } $ours->{plan} =~ /Custom Scan \((\w+)\)|^ *(\w[\w ]*): /mg;
		}
		next unless @differ;

		my $script = "$log/plans_calls_$q->{n}.sql";

		write_file($script, calls_notices() . calls_setup() . ($begin =~ s{messages = error}{messages = notice}r) . runs_sql($q));
		diag("query $q->{n} ($q->{mode}, $q->{way}; $script): other @differ\n$q->{text}");
		diag("$_ without gpusort: $stock->{$_}\n$_ with it: $ours->{$_}") for @differ;
		$failed++;
	}
}
is($failed, 0, "seed $seed: $cases queries call and raise what they do in PostgreSQL");

# Nothing is proved of what did not happen
note(join ', ', map { "$_: $seen{$_}" } sort keys %seen);
is(join(', ', grep { $seen{$_} == 0 } sort keys %seen), '', 'nothing is missing') if $cases >= 2000;
released($node, 'all queries');
$node->stop;
done_testing();
