# Takes a Markdown file apart into what a test can run or look up.
#
#	items($text)	a list, in the file's order, of
#		{ kind => 'block', line, before, text }	an indented block, without its indentation
#		{ kind => 'code', line, text }		`text` within a paragraph or a table
#		{ kind => 'table', line, before, head, rows }
#											head and each row: cells
#					before: the paragraph above
#	steps($text)	a block of SQL: a list of { sql, output } in which output is what the
#					block shows below the statements
#	is_sql($text)	does it begin with an SQL statement?

package GpusortReadme;

use strict;
use warnings;

use base 'Exporter';
our @EXPORT = qw(items steps is_sql);

my $verb = qr/(?:ALTER|ANALYZE|CALL|CREATE|DROP|EXPLAIN|GRANT|INSERT|REINDEX|RESET|SELECT|SET|SHOW)\b/;

sub cells
{
	my ($row) = @_;

	# a column's separator, but not the operator ||
	return map { s/^\s+|\s+$//gr } split /(?<!\|)\|(?!\|)/, $row =~ s/^\s*\||\|\s*$//gr;
}

sub items
{
	my ($text) = @_;
	my @lines = split /\n/, $text;
	my @items;
	my $prose = '';				# the paragraph so far, its lines joined
	my $prose_line = 0;
	my $before = '';

	my $end_prose = sub {
		while ($prose =~ /`([^`]+)`/g)
		{
			push @items, { kind => 'code', line => $prose_line, text => $1 };
		}
		$before = $prose if $prose ne '';
		$prose = '';
	};

	for (my $i = 0; $i < @lines; $i++)
	{
		if ($lines[$i] =~ /^( {4,})\S/ && $prose eq '')
		{
			my ($first, @block) = ($i);

			# blank lines belong to it if more of it follows
			my $indent = $lines[$i] =~ /^ {7}\S/ ? 7 : 4;
			while ($i < @lines && $lines[$i] =~ /^(?: {$indent}|\s*$)/)
			{
				push @block, $lines[$i] =~ s/^ {0,$indent}//r;
				$i++;
			}
			$i--;
			push @items, { kind => 'block', line => $first + 1, before => $before, text => join("\n", @block) =~ s/\s+\z//r };
		}
		elsif ($lines[$i] =~ /^\s*\|/)
		{
			$end_prose->();
			my %table = (kind => 'table', line => $i + 1, before => $before, rows => []);

			$table{head} = [ cells($lines[$i]) ];
			for ($i += 2; $i < @lines && $lines[$i] =~ /^\s*\|/; $i++)
			{
				push @{ $table{rows} }, [ cells($lines[$i]) ];
				push @items, map { { kind => 'code', line => $i + 1, text => $_ } } $lines[$i] =~ /`([^`]+)`/g;
			}
			$i--;
			push @items, \%table;
		}
		elsif ($lines[$i] =~ /^\s*$/)
		{
			$end_prose->();
		}
		else
		{
			$prose_line = $i + 1 if $prose eq '';
			$prose .= ($prose eq '' ? '' : ' ') . $lines[$i] =~ s/^\s+//r;
		}
	}
	$end_prose->();
	return @items;
}

sub is_sql
{
	my ($text) = @_;

	return $text =~ /\A$verb/;
}

sub steps
{
	my ($text) = @_;
	my @steps;
	my $within = 0;				# a statement has begun and not ended

	for (split /\n/, $text)
	{
		if ($within || is_sql($_))
		{
			push @steps, { sql => '', output => '' } if !@steps || $steps[-1]{output} ne '';
			$steps[-1]{sql} .= "$_\n";
			$within = !/;\s*(?:--.*)?$/;
		}
		else
		{
			$steps[-1]{output} .= "$_\n" unless /^\s*$/;
		}
	}
	return @steps;
}

1;
