#!/usr/bin/perl
# The differential tester: random tables, random queries on them, each run by
# PostgreSQL alone and with gpusort, and compared.
#
#	fuzz.pl --seed N --first N --count N --jobs N --log DIR		run cases
#	fuzz.pl --seed N --first N --count 1 --print				print a case
#	fuzz.pl --summary DIR										what was run, in all
#
# The server is the one that the environment names (PGHOST and so on); run.sh's
# suite "fuzz" starts it.  A case is one table and some queries; case and seed
# determine it.  Each case is an SQL script, which psql runs.  The one of a case
# that fails is left in DIR, and runs by itself: "psql -f".
#
# What counts as the same, for each row: the sort keys are equal by the operator
# class, that is IS NOT DISTINCT FROM each other under the key's collation.  A
# sort that orders rows correctly has the same sequence of such classes as any
# other one.  Besides, the rows as a whole must be the same ones, where the query
# does not leave open which of equal ones it returns.

use strict;
use warnings;
no warnings 'nonchar';

use File::Basename qw(dirname);
use Getopt::Long;
use Time::HiRes qw(time);

use lib dirname(__FILE__);
use FuzzRandom;
use FuzzQuery;
use FuzzTable;

my %option = (seed => 1, first => 1, count => 1, jobs => 1, log => '.');
GetOptions(\%option, 'seed=i', 'first=i', 'count=i', 'jobs=i', 'log=s', 'print', 'summary=s')
  or die "usage: see the head of $0\n";
# not "encoding(UTF-8)", which does not let U+10FFFF pass
binmode STDOUT, ':utf8';
STDOUT->autoflush(1);

# ---- a case as a script ----

sub settings_sql
{
	my ($q) = @_;
	my @ours = ('gpusort.enabled = on', "gpusort.min_rows = $q->{min_rows}");

	# the planner has no other choice, or gpusort's sorts cost nothing
	push @ours, $q->{cheap} ? 'gpusort.cost_factor = 0' : 'gpusort.force = on';
	push @ours, 'gpusort.sorts_only = on' if $q->{sorts_only};
	return join ' ', map { "SET $_;" } @ours;
}

# The rows of a result by their number, with what must be the same of each
sub numbered
{
	my ($q, $table) = @_;

	return "SELECT row_number() OVER (ORDER BY ctid) AS n, * FROM $table" unless $q->{hidden};
	return 'SELECT r.n, k.* FROM (SELECT row_number() OVER (ORDER BY ctid) AS n, id'
	  . " FROM $table) AS r LEFT JOIN fuzz_keys AS k USING (id)";
}

sub compare_sql
{
	my ($q, $i) = @_;
	my @different = ('stock.n IS NULL', 'ours.n IS NULL');

	for my $name (@{ $q->{sequence} })
	{
		# $name may have a collation behind it
		push @different, "stock.$name IS DISTINCT FROM ours.$name";
	}
	my $different = '(' . join(' OR ', @different) . ')';
	my $sum = sub { "(SELECT (count(*), sum(hashtextextended(r::text, 0)::numeric)) FROM $_[0] AS r)" };
	my $rows =
	    $q->{rows} eq 'same' ? $sum->('fuzz_stock') . ' IS DISTINCT FROM ' . $sum->('fuzz_ours')
	  : $q->{rows} eq 'subset' ? 'EXISTS (SELECT r::text FROM fuzz_ours AS r EXCEPT ALL SELECT r::text FROM fuzz_full AS r)'
	  : 'false';
	my $check = $q->{check} ? join ' AND ', map { $q->{check} =~ s/%R/$_/gr } 'fuzz_stock', 'fuzz_ours' : 'true';
	my $both = '(' . numbered($q, 'fuzz_stock') . ') AS stock FULL JOIN (' . numbered($q, 'fuzz_ours') . ') AS ours ON ours.n = stock.n';

	return <<SQL;
SELECT count(stock.n) AS stock, count(ours.n) AS ours, count(*) FILTER (WHERE $different) AS differing,
	coalesce(min(coalesce(stock.n, ours.n)) FILTER (WHERE $different), 0) AS first, $rows AS other_rows, NOT ($check) AS contradiction
FROM $both
\\gset
\\echo \@result $i :stock :ours :differing :other_rows :contradiction
SELECT :differing > 0 AS show_order, :'other_rows'::bool AS show_rows
\\gset
\\if :show_order
\\echo the first differing row, and those around it: without gpusort | with it
SELECT CASE WHEN coalesce(stock.n, ours.n) = :first THEN '>>' END, left(stock::text, 1000), left(ours::text, 1000)
FROM $both WHERE coalesce(stock.n, ours.n) BETWEEN :first - 1 AND :first + 1 ORDER BY coalesce(stock.n, ours.n);
\\endif
\\if :show_rows
\\echo rows that only one of both has: without gpusort, then with it
(SELECT left(r::text, 1000) FROM fuzz_stock AS r EXCEPT ALL SELECT left(r::text, 1000) FROM fuzz_ours AS r) LIMIT 3;
(SELECT left(r::text, 1000) FROM fuzz_ours AS r EXCEPT ALL SELECT left(r::text, 1000) FROM @{[$q->{full} ? 'fuzz_full' : 'fuzz_stock']} AS r) LIMIT 3;
\\endif
SQL
}

sub query_sql
{
	my ($q, $i) = @_;
	my @settings = @{ $q->{settings} };
	my $sql = "\n-- query $i: $q->{shape}\n\\echo \@query $i\n";

	$sql .= "$_\n" for @{ $q->{setup} // [] };
	$sql .= join(' ', map { "SET $_;" } @settings) . "\n";
	if ($q->{hidden})
	{
		my $k = 0;

		$sql .= 'CREATE TABLE fuzz_keys AS SELECT id'
		  . join('', map { ', ' . $_->{expr} . ' AS k' . ++$k } @{ $q->{key} }) . " FROM t;\n";
	}
	$sql .= "CREATE TABLE fuzz_full AS $q->{full};\n" if $q->{full};
	$sql .= ($_ =~ s/%R/fuzz_stock/gr) . "\n" for @{ $q->{run} };
	$sql .= settings_sql($q) . "\n\\echo \@plan $i\n";
	# what is inserted into must be there
	$sql .= ($q->{run}[0] =~ s/%R/fuzz_ours/gr) . "\n" if $q->{explain} =~ /%R/;
	$sql .= 'EXPLAIN (VERBOSE, COSTS OFF) ' . ($q->{explain} =~ s/%R/fuzz_ours/gr) . ";\n\\echo \@end\n";
	$sql .= "DROP TABLE fuzz_ours_raw;\n" if $q->{explain} =~ /%R/;
	$sql .= ($_ =~ s/%R/fuzz_ours/gr) . "\n" for @{ $q->{run} };
	$sql .= "RESET ALL; SET search_path = :schema, fuzz, public; SET client_min_messages = warning;\n"
	  . "SET gpusort.enabled = off; SET max_parallel_workers_per_gather = 0;\n";
	for my $statement (@{ $q->{finish} // [] })
	{
		$sql .= ($statement =~ s/%R/$_/gr) . "\n" for 'fuzz_stock', 'fuzz_ours';
	}
	$sql .= compare_sql($q, $i);
	$sql .= 'DROP TABLE fuzz_stock, fuzz_ours' . ($q->{hidden} ? ', fuzz_keys' : '') . ($q->{full} ? ', fuzz_full' : '') . ";\n";
	$sql .= "$_\n" for @{ $q->{cleanup} // [] };
	return $sql;
}

# A case: its table, its queries, and its script
sub make_case
{
	my ($n) = @_;

	srand($option{seed} * 1_000_003 + $n);
	my $table = random_table();
	my @queries = map { random_query($table) } 1 .. between(2, 4);
	my $i = 0;
	# not at random: cases stay what they were
	$queries[$_]{sorts_only} = ($n + $_) % 4 == 0 for 0 .. $#queries;
	my $sql = <<SQL;
-- seed $option{seed}, case $n: $table->{rows} rows
\\set ON_ERROR_STOP on
\\set schema fuzz_case_$n
\\pset format unaligned
\\pset tuples_only on
SET client_min_messages = warning;
SET gpusort.enabled = off;
CREATE SCHEMA :schema;
SET search_path = :schema, fuzz, public;

SQL
	$sql .= join("\n", @{ $table->{sql} }) . "\n";
	$sql .= query_sql($_, ++$i) for @queries;
	$sql .= "\nSET client_min_messages = error;\nDROP SCHEMA :schema CASCADE;\n\\echo \@done\n";
	return { n => $n, table => $table, queries => \@queries, sql => $sql };
}

sub setup_sql
{
	open my $file, '<:utf8', dirname(__FILE__) . '/setup.sql' or die "setup.sql: $!\n";
	local $/;
	return <$file>;
}

# ---- running it ----

sub write_file
{
	my ($name, @text) = @_;

	open my $file, '>:utf8', $name or die "$name: $!\n";
	print $file @text;
	close $file or die "$name: $!\n";
}

sub read_psql
{
	my (@arguments) = @_;

	open my $psql, '-|', 'psql', '-XAtq', @arguments or die "psql: $!\n";
	local $/;
	my $output = <$psql> // '';
	close $psql;
	return $output;
}

# Run a case and return what there is to report, a line for each query:
#	case	query	shape	keys' labels	state	rows	taken	left
sub run_case
{
	my ($n) = @_;
	my $case = make_case($n);
	my $script = "$option{log}/case-$n.sql";
	my $output = "$option{log}/case-$n.out";
	my (@lines, $failed);

	write_file($script, $case->{sql});
	my $status = system("psql -Xq -f '$script' >'$output' 2>&1");
	open my $file, '<', $output or die "$output: $!\n";
	my $text = do { local $/; <$file> };
	close $file;

	my $i = 0;
	for my $q (@{ $case->{queries} })
	{
		$i++;
		my ($plan) = $text =~ /^\@plan $i\n(.*?)^\@end$/ms;
		my ($stock, $ours, $differing, $others, $contradiction) = $text =~ /^\@result $i (\d+) (\d+) (\d+) (\w) (\w)$/m;
		my $state =
		    !defined $stock ? 'error'
		  : $differing > 0 ? 'order'
		  : $others ne 'f' ? 'rows'
		  : $contradiction ne 'f' ? 'contradiction'
		  : 'ok';

		push @lines, join "\t", $n, $i, $q->{shape}, join(' ', @{ $q->{labels} }), $state, $ours // 0,
		  ($plan // '') =~ /\(GpuSort\)/ ? 1 : 0, $q->{left} ? 1 : 0;
		$failed = 1 if $state ne 'ok';
		last if $state eq 'error';
	}
	$failed = 1 if $status != 0 || $text !~ /^\@done$/m;
	if ($failed)
	{
		write_file($script, setup_sql(), $case->{sql});
		push @lines, join "\t", $n, 0, 'case', '', 'error', 0, 0, 0 unless grep { (split /\t/)[4] ne 'ok' } @lines;
	}
	else
	{
		unlink $script, $output;
	}
	return @lines;
}

# A part of the cases in this process
sub work
{
	my ($job) = @_;

	open my $file, '>>:utf8', "$option{log}/results-$job.txt" or die "results: $!\n";
	$file->autoflush(1);
	for my $n (grep { $_ % $option{jobs} == $job } $option{first} .. $option{first} + $option{count} - 1)
	{
		print $file "$_\n" for run_case($n);
	}
	close $file;
}

sub show_failure
{
	my ($n, @failed) = @_;
	my $output = "$option{log}/case-$n.out";

	for my $line (@failed)
	{
		my (undef, $i, $shape, $labels, $state) = split /\t/, $line;

		print "not ok - seed $option{seed}, case $n, query $i ($shape; keys: $labels): $state\n";
	}
	open my $file, '<:utf8', $output or return;
	my @text = map { substr $_, 0, 400 } grep { !(/^\@plan/ .. /^\@end/) && !/^\@/ } <$file>;
	close $file;
	print map { '    ' . s/^psql:\S*?(\d+): /line $1: /r } @text[ 0 .. (@text > 14 ? 13 : $#text) ];
	print "    again: psql -f $option{log}/case-$n.sql\n";
}

# Nothing may be held when all sorts have ended
sub check_released
{
	my $held = '';

	for (1 .. 100)
	{
		$held = read_psql('-c', "SELECT sorts, memory_used, staging_used FROM gpusort_devices
			WHERE state <> 'ready' OR sorts > 0 OR memory_used > 0 OR staging_used > 0
			UNION ALL SELECT 0, 0, 0 FROM gpusort_activity");
		return 1 if $held eq '';
		select undef, undef, undef, 0.1;
	}
	print "not ok - after cases $option{first} and up: still held (sorts, device memory, staging memory): $held";
	return 0;
}

sub run_all
{
	my $start = time;
	my (@pids, %failed, $queries, $rows, $bad);
	my $cases = $option{count};

	write_file("$option{log}/setup.sql", setup_sql());
	system("psql -Xq -v ON_ERROR_STOP=1 -f '$option{log}/setup.sql' 2>&1") == 0 or die "setup.sql failed\n";
	unlink "$option{log}/setup.sql";
	unlink "$option{log}/results-$_.txt" for 0 .. $option{jobs} - 1;
	read_psql('-c', 'SET client_min_messages = warning; CREATE EXTENSION IF NOT EXISTS gpusort; SELECT gpusort_stats_reset()');
	my $service = read_psql('-c', 'SELECT DISTINCT service_pid FROM gpusort_devices');
	for my $job (0 .. $option{jobs} - 1)
	{
		my $pid = fork // die "fork: $!\n";

		if ($pid == 0)
		{
			work($job);
			exit 0;
		}
		push @pids, $pid;
	}
	for my $pid (@pids)
	{
		waitpid $pid, 0;
		$bad++ if $?;
	}

	open my $all, '>>:utf8', "$option{log}/results.txt" or die "results.txt: $!\n";
	for my $job (0 .. $option{jobs} - 1)
	{
		open my $file, '<:utf8', "$option{log}/results-$job.txt" or next;
		while (my $line = <$file>)
		{
			my ($n, undef, undef, undef, $state, $n_rows) = split /\t/, $line;

			print $all $line;
			$queries++;
			$rows += $n_rows;
			push @{ $failed{$n} }, $line if $state ne 'ok';
		}
		close $file;
		unlink "$option{log}/results-$job.txt";
	}
	my $stats = read_psql('-c', q(SELECT device_sorts, process_sorts, rows, fallbacks, (SELECT coalesce(jsonb_object_agg(reason, count), '{}')
		FROM gpusort_stat_reasons WHERE kind = 'fallback' AND count > 0) FROM gpusort_stats));
	print $all "stats\t", $stats =~ s/\|/\t/gr;
	close $all;

	show_failure($_, @{ $failed{$_} }) for sort { $a <=> $b } keys %failed;
	$bad++ unless check_released();
	if ($service ne read_psql('-c', 'SELECT DISTINCT service_pid FROM gpusort_devices'))
	{
		print "not ok - the service is not the one that it was\n";
		$bad++;
	}
	printf "cases %d to %d: %d queries, %d rows compared, %.0f s\n", $option{first}, $option{first} + $cases - 1, $queries // 0,
	  $rows // 0, time - $start;
	printf "%d passed, %d failed\n", $cases - keys %failed, scalar(keys %failed) + ($bad // 0);
	exit(%failed || $bad ? 1 : 0);
}

# ---- what was run in all ----

# A run in which gpusort took few sorts, or never one by some type, proves
# little, and fails.
sub summary
{
	my (%shape, %label, %case, %reasons, @stats, $rows, $device, $fallbacks, $sorts, $gpusort_rows, $bad);

	open my $all, '<:utf8', "$option{summary}/results.txt" or die "results.txt: $!\n";
	while (my $line = <$all>)
	{
		chomp $line;
		if ($line =~ s/^stats\t//)
		{
			my ($on_device, $in_process, $n_rows, $n_fallbacks, $why) = split /\t/, $line;

			$device += $on_device;
			$sorts += $on_device + $in_process;
			$gpusort_rows += $n_rows;
			$fallbacks += $n_fallbacks;
			$reasons{$1} += $2 while $why =~ /"([^"]+)": (\d+)/g;
			next;
		}
		my ($n, undef, $shape, $labels, undef, $n_rows, $taken, $left) = split /\t/, $line;

		$case{$n} = 1;
		$rows += $n_rows;
		next if $left;
		$shape{$_}[0]++, $shape{$_}[1] += $taken for $shape, 'all';
		next if $labels =~ / /;
		$label{$labels}[0]++, $label{$labels}[1] += $taken;
	}
	my $share = sub { my ($of) = @_; join ', ', map { "$_ $of->{$_}[1]/$of->{$_}[0]" } sort keys %$of };
	printf "%d cases, %d rows compared; gpusort completed %d sorts of %d rows, %d of them on the device, and fell back in %d%s\n",
	  scalar(keys %case), $rows, $sorts, $gpusort_rows, $device, $fallbacks,
	  %reasons ? ' (' . join(', ', map { "$_: $reasons{$_}" } sort keys %reasons) . ')' : '';
	print "queries that gpusort sorted for, by shape: ", $share->(\%shape), "\n";
	print "those with one key, by type: ", $share->(\%label), "\n";

	my ($queries, $taken) = @{ $shape{all} // [ 0, 0 ] };
	my @complaints;
	if (keys(%case) >= 20)
	{
		push @complaints, 'gpusort sorted for few queries only' if $taken < 0.8 * $queries;
		push @complaints, 'the device sorted little' if $device < 0.5 * $queries;
		push @complaints, 'most sorts fell back' if $fallbacks > $sorts;
		push @complaints, "no sort by $_ was taken" for grep { $label{$_}[0] >= 5 && $label{$_}[1] == 0 && $_ ne 'tsvector' } sort keys %label;
	}
	print "not ok - $_\n" for @complaints;
	print scalar(@complaints) ? '0 passed, ' . @complaints . " failed\n" : "1 passed, 0 failed\n";
	exit(@complaints ? 1 : 0);
}

if ($option{summary})
{
	summary();
}
elsif ($option{print})
{
	print setup_sql(), make_case($option{first})->{sql};
}
else
{
	run_all();
}
