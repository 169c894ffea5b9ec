#!/usr/bin/perl
# Sort the differences of a regression.diffs into three kinds:
#
#	plan	text of EXPLAIN that names GpuSort where Sort was, and what follows
#			from it (its own lines, indentation, width of the output)
#	ties	the same rows in another order, or rows that the query itself leaves
#			open: which row of equal ones comes first decides what window
#			functions, DISTINCT ON and LIMIT return
#	real	all else, printed in full
#
# Of the second kind, what differs in content and not in order only is accepted
# from tests that are known for it.
use strict;
use warnings;

# Tests whose queries return something else when equal rows come in another
# order, each looked at: window functions over peers, DISTINCT ON and LIMIT with
# ties, JSON_ARRAYAGG over a partition that has no order.
my %open_among_equals = map { $_ => 1 } qw(window tsrf limit sqljson);

my $plan_line = qr/
	(?: -> | \bSort\b | GpuSort | Custom\ Scan | Custom\ Plan\ Provider | Node\ Type | Parent\ Relationship
	  | Key: | Cond: | Filter: | QUERY\ PLAN | Workers | Output: | Scan | Rows | Device | Engine | Chunks
	  | Key\ Bytes | Row\ Bytes | Table\ Pages | Fallback | Aggregate | Gather | Unique | Limit | Append | Group | Incremental
	  | Presorted | SubPlan | InitPlan | CTE\  | One-Time | WindowAgg | Window\ Functions | LockRows | Result | Subplans\ Removed
	  | Merge\ Join | Nested\ Loop | Hash | Materialize | Memoize | Planning | explain_ | jsonb_pretty
	  | "[A-Z][A-Za-z ]+": | ^\s*[\[\]{}]+,?\s*\+?\s*$ | ^\s*"[^"]*",?\s*\+?\s*$ | Subquery | ProjectSet | Average | Peak
	  | Disabled: | Distinct: | Counted: | Window: | Storage: | Cache\ Key: | Cache\ Mode: | Index\ Searches: )
/x;

my ($file, @hunks);
while (my $line = <>)
{
	chomp $line;
	if ($line =~ /^diff /)
	{
		($file) = $line =~ m{([^/ ]+)\.out$};
		next;
	}
	next if $line =~ /^(---|\+\+\+) /;
	if ($line =~ /^@@/)
	{
		push @hunks, { file => $file, minus => [], plus => [], text => [] };
		next;
	}
	next unless @hunks;
	push @{ $hunks[-1]{text} }, $line;
	push @{ $hunks[-1]{minus} }, $1 if $line =~ /^-(.*)/;
	push @{ $hunks[-1]{plus} }, $1 if $line =~ /^\+(.*)/;
}

# what is left of lines when plans' texts and the frames of tables are taken away
sub rows
{
	my @rows = grep { !/$plan_line/ && !/^\s*$/ && !/^-[-+]*$/ && !/^\(\d+ rows?\)$/ } @_;
	s/\s+/ /g, s/^ | $//g for @rows;
	return sort @rows;
}

# Hunks that are as they should be: what they say, by the test that they are in.
my %expected = (

	# forced, a sort takes the place of an index scan, and evaluates the row
	# that divides by zero before it returns the first one
	psql => qr/1\/\(15-unique2\) from tenk1 order by unique2/,

	# looks for the memory of PostgreSQL's own sort
	sysviews => qr/name = 'Caller tuples'/,

	# asks for a property of the index scan at the top of a plan
	horizons => qr/pruner_|ll_commit|step ll_start/,
);

my %count = (plan => 0, ties => 0, real => 0);
my %left;						# by file: rows gone less rows come, by their text
my %unbalanced;					# by file: hunks with such rows
for my $hunk (@hunks)
{
	my $name = $hunk->{file};
	my $text = join("\n", @{ $hunk->{text} });
	my @minus = rows(@{ $hunk->{minus} });
	my @plus = rows(@{ $hunk->{plus} });

	if ($expected{$name} && $text =~ $expected{$name})
	{
		$count{plan}++;
	}
	elsif (join("\n", @minus) eq join("\n", @plus))
	{
		$count{ @minus ? 'ties' : 'plan' }++;
	}
	elsif ($open_among_equals{$name} && @minus == @plus && !grep { /ERROR|FATAL|WARNING/ } @plus)
	{
		$count{ties}++;
	}
	else
	{
		$left{$name}{$_}++ for @minus;
		$left{$name}{$_}-- for @plus;
		push @{ $unbalanced{$name} }, $hunk;
	}
}

# a row may have moved from one hunk of a test's output to another
for my $name (sort keys %unbalanced)
{
	if (!grep { $_ != 0 } values %{ $left{$name} })
	{
		$count{ties} += @{ $unbalanced{$name} };
		next;
	}
	for my $hunk (@{ $unbalanced{$name} })
	{
		$count{real}++;
		print "real: $name\n", map { "  $_\n" } @{ $hunk->{text} };
	}
}
print "$count{plan} differences in plans, $count{ties} in the order of equal rows, $count{real} real\n";
exit($count{real} > 0 || $ENV{ENABLED} ne 'on' && $count{plan} > 0);
