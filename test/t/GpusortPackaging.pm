# Reads the YAML files of packaging/, by Python: Perl has no such module of its own.

package GpusortPackaging;

use strict;
use warnings;

use JSON::PP;
use Test::More;

use base 'Exporter';
our @EXPORT = qw(yaml);

# The documents of a file.  Without Python's yaml the test is skipped.
sub yaml
{
	my ($file) = @_;
	my $program = 'import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))';

	plan skip_all => "there is no Python with yaml to read $file" if system('python3 -c "import yaml" 2>/dev/null') != 0;

	open my $json, '-|', 'python3', '-c', $program, "$ENV{TESTDIR}/$file" or die "python3: $!";
	return @{ decode_json(join '', <$json>) };
}

1;
