#!/usr/bin/perl
# Circles of files: .c files of which each calls a function of the next one, and the last one of the first.
#
#	test/lib/circles.pl DIR [FILE ...]		prints each circle and its calls
#
# The files named, in DIR, may be a circle: a recursion.  If they are not, it says so.
#
# It reads sources, and needs no build.  The name of a function that is defined begins a line; the line
# before, its type, begins with static if other files cannot call it.  A file calls a function if it names it
# anywhere in its code, in a table, too.  What inline functions of headers name is named by each file that
# names them.
use strict;
use warnings;
use File::Find;

my ($root, @declared) = @ARGV;
my (%code, %file_of, %inline, %calls);

find({ no_chdir => 1, wanted => sub { $code{$_} = code($_) if /\.[ch]$/ } }, $root);
for my $file (grep { /\.c$/ } keys %code)
{
	while ($code{$file} =~ /^(\w[^\n;=]*)\n([a-z]\w+)\(/mg)
	{
		$file_of{$2} = $file unless $1 =~ /^(?:static|typedef)\b/;
	}
}
for my $header (grep { /\.h$/ } keys %code)
{
	while ($code{$header} =~ /^static inline [^\n;]*\n(\w+)\((.*?^\})/msg)
	{
		$inline{$1} = $2;
	}
}
for my $file (grep { /\.c$/ } keys %code)
{
	my @names = $code{$file} =~ /\b[a-z]\w+\b/g;
	my %seen;

	while (defined(my $name = shift @names))
	{
		next if $seen{$name}++;
		push @names, $inline{$name} =~ /\b[a-z]\w+\b/g if $inline{$name};
		my $target = $file_of{$name};
		$calls{$file}{$target}{$name} = 1 if $target && $target ne $file;
	}
}

# A file's text without comments and strings
sub code
{
	my ($file) = @_;
	local $/;

	open my $in, '<', $file or die "$file: $!\n";
	my $text = <$in>;
	$text =~ s{/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'}{ }gs;
	return $text;
}

# Tarjan's algorithm: sets of files each of which reaches all others of its set
my ($count, @stack, %number, %lowest, %on_stack, @circles) = (0);

sub visit
{
	my ($file) = @_;
	my @members;

	$number{$file} = $lowest{$file} = ++$count;
	push @stack, $file;
	$on_stack{$file} = 1;
	for my $target (sort keys %{ $calls{$file} })
	{
		visit($target) unless $number{$target};
		$lowest{$file} = $lowest{$target} if $on_stack{$target} && $lowest{$target} < $lowest{$file};
	}
	return if $lowest{$file} < $number{$file};
	do
	{
		push @members, pop @stack;
		delete $on_stack{ $members[-1] };
	} while $members[-1] ne $file;
	push @circles, [ sort @members ] if @members > 1;
}

for my $file (sort keys %calls)
{
	visit($file) unless $number{$file};
}
my $recursion = join ' ', sort map { "$root/$_" } @declared;

print "no recursion of $recursion\n" if @declared && !grep { "@$_" eq $recursion } @circles;
for my $circle (grep { "@$_" ne $recursion } @circles)
{
	my %member = map { $_ => 1 } @$circle;

	print "a circle of ", scalar @$circle, " files:\n";
	for my $file (@$circle)
	{
		print "\t$file calls ", join(', ', sort keys %{ $calls{$file}{$_} }), " of $_\n"
			for grep { $member{$_} } sort keys %{ $calls{$file} };
	}
}
