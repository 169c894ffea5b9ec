# Choices of the differential tester.  All come from Perl's own generator, which
# is the same everywhere, so a seed always gives the same cases; hashes are
# never iterated over.

package FuzzRandom;

use strict;
use warnings;

use base 'Exporter';
our @EXPORT = qw(pick weighted chance between some quote);

# One of a list
sub pick
{
	return $_[int(rand(@_))];
}

# One of a list of pairs: value, weight
sub weighted
{
	my @pairs = @_;
	my $sum = 0;

	$sum += $pairs[ 2 * $_ + 1 ] for 0 .. @pairs / 2 - 1;
	my $at = rand($sum);
	while (@pairs > 2)
	{
		$at -= $pairs[1];
		last if $at < 0;
		splice @pairs, 0, 2;
	}
	return $pairs[0];
}

sub chance
{
	return rand() < $_[0];
}

sub between
{
	my ($low, $high) = @_;

	return $low + int(rand($high - $low + 1));
}

# Some of a list, each at most once, in random order
sub some
{
	my ($n, @list) = @_;
	my @result;

	push @result, splice(@list, int(rand(@list)), 1) while $n-- > 0 && @list;
	return @result;
}

# An SQL literal
sub quote
{
	my ($value) = @_;
	my $escaped = $value =~ s/'/''/gr;

	return "'$escaped'" unless $value =~ /[\\\x01-\x1f\x7f]/;
	$escaped =~ s/\\/\\\\/g;
	$escaped =~ s/([\x01-\x1f\x7f])/sprintf '\\x%02x', ord $1/ge;
	return "E'$escaped'";
}

1;
