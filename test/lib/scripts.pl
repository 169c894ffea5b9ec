# The SQL that superusers run in databases where others own schemas: docs/*.sql, docs/collation.sh, and the exporters'
# queries.  What others have made there must not be called.
#
#	perl test/lib/scripts.pl rules FILE...	prints what breaks a rule:
#	- a psql script begins with the preamble, which sets the search path, and sets it nowhere else;
#	- a part "-- NAME: ..." to "-- end of NAME" is the same in all scripts that have it, and all have the preamble;
#	- a name that is put together from a variable is that of an extension's member, by pg_depend
#	perl test/lib/scripts.pl sql FILE	prints its statements as a server gets them, for pgspot

use strict;
use warnings;

my ($mode, @files) = @ARGV;
my %parts;

sub content
{
	open my $fh, '<', $_[0] or die "$_[0]: $!\n";
	local $/;
	return <$fh>;
}

# Without comments, and with the variables that hold parts of statements in their place
sub statements
{
	my ($file) = @_;
	my $text = content($file);
	my %bodies;

	if ($file =~ /\.yaml$/)
	{
		return join '', map { s/^ {4}//gmr . ";\n" } $text =~ /^  query: \|\n((?: {4}.*\n)+)/gm;
	}
	if ($file =~ /\.sh$/)
	{
		my ($path) = $text =~ /export PGOPTIONS=.*?-c search_path=(\S+)/s;

		$text = 'SET search_path = ' . ($path // 'public') . ";\n" . join '', $text =~ /<<'SQL'.*\n(.*?)^SQL$/gms;
	}
	$text =~ s/^\s*--.*\n//gm;
	$bodies{$2} = $1 while $text =~ s/^SELECT \$\$\n(.*?)\$\$ AS (\w+) \\gset\n//ms;
	1 while $text =~ s/(?<!:):(\w+)\b/$bodies{$1} \/\/ "\0$1"/ge;
	return $text;
}

sub rules
{
	my ($file) = @_;
	my $text = content($file);
	my $sql = statements($file) =~ s/^\s*\\echo\b.*\n//gmr;

	while ($text =~ /^-- (\w+): .*?^-- end of \1\n/gms)
	{
		my ($name, $part) = ($1, $&);

		$parts{$name} //= { file => $file, text => $part };
		print "$file: its part \"$name\" is not that of $parts{$name}{file}\n" if $part ne $parts{$name}{text};
	}
	if ($file =~ /\.sql$/)
	{
		print "$file does not begin with the preamble\n" unless $text =~ /\A(?:--.*\n)+?-- preamble: /;
		print "$file names the search path outside of the preamble\n" if $sql =~ /search_path.*search_path/s;
	}
	print "$file does not set a safe search path\n"
	  if $file !~ /\.yaml$/ && $sql !~ /\A(?:\s*\\set .*\n)*\s*SET search_path = pg_catalog, ?pg_temp;/;
	for my $name ($sql =~ /(?:\b(?:FROM|JOIN|CALL)\s+|(?=\0\w+\s*[.(]))\0(\w+)/gi)
	{
		my ($set) = grep { /\bAS $name\b/ } split /(?<=\\gset)\n/, $sql;

		print "$file: the name in :$name is not that of an extension's member\n"
		  unless ($set // '') =~ /.*(?:^|;)(.*)/s && $1 =~ /pg_depend.*deptype = 'e'/s;
	}
}

if ($mode eq 'rules')
{
	rules($_) for @files;
}
else
{
	my $sql = statements($files[0]);

	$sql =~ s/ ?\\(?:gset|gexec)\b.*/;/g;
	$sql =~ s/^\s*\\.*\n//gm;
	$sql =~ s/\0/extension./g;
	$sql =~ s/:(['"])(\w+)\1/$1$2$1/g;
	print $sql;
}
