# The types of the differential tester and their values.
#
# A type is a hash:
#	sql			as it is named in CREATE TABLE
#	nasty		values that ought to be tried: strings as the type's input function
#				takes them, or references to SQL expressions
#	random		one more such string
#	cast		a cast of such a string on its way to the type
#	formula		an SQL expression for a value of each row, from hashes of its number
#	long		SQL expressions of long values
#	collates	it has a collation
#	pattern		~<~ and ~>~ sort it
#	exprs		expressions over a column (%s), each with the kind of its result
#	compare_as	a cast to what has an equality operator
#	left		gpusort leaves it to PostgreSQL, if it is the first key
#
# random_type() makes them, also domains over others and arrays of others.

package FuzzTypes;

use strict;
use warnings;
use utf8;

use FuzzRandom;

use base 'Exporter';
our @EXPORT = qw(random_type long_type random_collation payload_type result_type);

# Letters whose order, or whose lack of one, has been somebody's mistake
my @alphabets = (
	[ 'a', 'b' ],
	[ split //, 'aAbBcC' ],
	[ split //, 'aAbB -_.,1' ],
	[ split //, '0123456789' ],
	[ split //, 'aáàâäåæAÁÀÂÄÅÆ' ],
	[ split //, 'eéèêëEÉÈoöÖøØœ' ],
	[ 'e', "e\x{301}", "\x{e9}", "e\x{300}", "\x{301}", "\x{300}", "\x{308}", "\x{327}", 'o', "o\x{308}" ],
	[ split //, q(-_ .,;:!?'"/()[]{}@$*&#%`^+<=>|~) ],
	[ 'a', 'b', split //, q(-_ '.) ],
	[ "\x{ac00}", "\x{ac01}", "\x{b098}", "\x{d7a3}", "\x{d55c}", "\x{1100}", "\x{1161}" ],
	[ "\x{1f600}", "\x{1f601}", "\x{1f468}\x{200d}\x{1f469}", "\x{1f1e9}\x{1f1ea}", "\x{2764}\x{fe0f}", 'a' ],
	[ "\x{4e2d}", "\x{6587}", "\x{4e00}", "\x{9fff}", "\x{306e}", "\x{30ce}", "\x{3042}", "\x{30a2}" ],
	[ split //, 'αβγΑΒΓωΩςσΣжЖёЁеЕйЙ' ],
	[ 'i', 'I', "\x{130}", "\x{131}", "i\x{307}", 'ss', "\x{df}", "\x{1e9e}", 'SS', 's' ],
	[ "\x01", "\x02", "\t", "\n", "\x1f", "\x7f", ' ', 'a', "\x{80}", "\x{9f}", "\x{a0}" ],
	[ "\x{fb01}", 'fi', "\x{1c4}", "\x{1c5}", "\x{1c6}", "\x{bd}", "\x{ff11}", '1', "\x{2460}", "\x{2167}" ],
	[ "\x{200b}", "\x{ad}", "\x{feff}", "\x{2060}", "\x{10ffff}", "\x{fffd}", "\x{e000}", 'a', "\x{10000}" ],
	[ 'a', map({ chr } 0x20d0 .. 0x20f0), "\x{488}", "\x{489}", "\x{301}", "\x1f" ],
	[ "\x{ff11}", "\x{ff10}", "\x{661}", "\x{660}", "\x{967}", '1', '0', 'a' ],
	[ "\x{e40}", "\x{e01}", "\x{e02}", "\x{e48}", "\x{e2d}", "\x{627}", "\x{628}", "\x{5d0}", "\x{5d1}", "\x{64b}" ],
	[ 'ch', 'c', 'h', 'll', 'l', 'dz', 'aa', 'a', 'Aa', "\x{e5}", 'z' ],
	[ '1', '2', '10', '01', '9', '007', 'file', 'File', '-', '.' ],
	# Czech, Danish, Hungarian, Turkish, Russian, Japanese, Chinese
	[ split //, 'aáčďeéěhcChiňořšťúůžŽlk ' ],
	[ 'aa', 'Aa', 'AA', 'AE', split //, 'åÅæøØäöüdð-' ],
	[ 'cs', 'dz', 'dzs', 'DZS', 'gy', 'Gy', 'ly', 'ny', 'sz', 'ssz', 'zs', 'ty', split //, 'csdzőöóűüú' ],
	[ split //, 'ıiIİşŞsSçCcğGgöoüuâ' ],
	[ split //, 'абвгдеёжзийклмнъыьэюяАБЁЙ -' ],
	[ split //, 'かがカガヵはばぱハバパーゝゞヽヾっッァア・、日本123' ],
	[ split //, '中文字符排序的一丁七万〇。，1aA' ],
	[ split //, 'aAbBcC' ],
	[ split //, 'abcdefghijklmnopqrstuvwxyz/._-ABC019' ],
);

sub word
{
	my ($alphabet, $longest) = @_;

	return join '', map { pick(@$alphabet) } 1 .. between(0, $longest);
}

sub text_random
{
	my $alphabet = pick(@alphabets);

	# a file's path now and then
	return '/usr/share/' . join('/', map { word($alphabets[-1], 9) } 1 .. between(1, 4))
	  if chance(0.1);
	return word($alphabet, weighted(2, 2, 5, 4, 12, 4, 60, 1));
}

# Values that begin alike
sub prefixes
{
	my $letter = pick('x', 'ab', "\x{e9}", '-a', "\x{ac00}");

	return map { $letter x $_ } 0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64;
}

sub text_formula
{
	my ($sql, $longest) = @_;
	my $letters = join '', map { join '', @$_ } some(3, @alphabets);

	$letters = substr($letters . 'abcdefghijklmnop', 0, 16);
	my $half = int(($longest + 1) / 2);
	return sub {
		my ($h) = @_;
		my $digits = $half > 16 ? "md5(@{[$h->()]}::text) || md5(@{[$h->()]}::text)" : "md5(@{[$h->()]}::text)";

		return "(translate(left($digits, (@{[$h->()]} & " . ($longest > 20 ? 63 : $longest > 8 ? 15 : 7)
		  . ")::int), '0123456789abcdef', " . quote($letters) . "))::$sql";
	};
}

my @text_nasty = ('', '', ' ', '  ', '-', '--', 'a', 'a ', ' a', 'A', 'aa', 'Aa', 'aA', 'AA', '111a', '11-1a', '111 c',
	'11 1c', 'co-op', 'coop', 'co op', "c\x{f4}te", "cot\x{e9}", "c\x{f4}t\x{e9}", 'cote', "\x{c5}", "A\x{30a}", "\x{212b}",
	"\x01", "\x7f", "a\x01", '10', '9', '010', '1e3', "stra\x{df}e", 'strasse', "\x{fffd}", "\x{10ffff}", "a\x{ad}",
	"\x{ac00}", "\x{ac01}", "\x{1f600}", "\x{301}", "\x{200b}",
	"\x{20e6}", "\x{20e6}\x1f", "a\x{20e6}\x{20de}\x{20ed}", "\x{488}", "a\x{488}\x{301}", "a\x{301}\x{20d0}", "\x1f", "4~w", "4~.w", 'NULL', '\\', '\\\\', '"', "'", '{}', '%', '_');

my @text_exprs = (
	[ 'lower(%s)', 'text' ], [ 'upper(%s)', 'text' ], [ 'left(%s, 2)', 'text' ], [ 'substr(%s, 2)', 'text' ],
	[ "%s || 'x'", 'text' ], [ 'reverse(%s)', 'text' ], [ 'length(%s)', 'plain' ], [ 'md5(%s)', 'text' ],
	[ 'ascii(%s)', 'plain' ], [ "coalesce(%s, 'm')", 'text' ], [ "nullif(%s, '')", 'text' ]);

# About as long as a key can be, beyond what a libc key can be, and beyond all.
# Not of letters that are all alike to a locale: strcoll() takes seconds there.
sub text_long
{
	my $letter = quote(pick('x', 'a-', "\x{e9}", '1', "\x{436}"));
	my $at = pick(1000, 2700, 3000, 4090, 8185, 8190, 8190, 20000, 120000);

	return map {
		my $tail = pick("''", "'a'", "'b'", "'-'", "'B'");
		\"repeat($letter, @{[$at + between(-8, 8)]}) || $tail"
	} 1 .. between(2, 6);
}

sub text_type
{
	my ($sql, $max) = @_;

	return {
		sql => $sql, nasty => [ @text_nasty, prefixes() ], random => \&text_random, formula => text_formula($sql, $max),
		long => $max > 100 ? [ text_long() ] : undef, collates => 1, pattern => 1, exprs => \@text_exprs, max => $max };
}

sub digits
{
	my ($n) = @_;

	return join '', map { int(rand(10)) } 1 .. $n;
}

sub numeric_random
{
	my $sign = pick('', '-');
	my $n = $sign . (digits(between(0, weighted(2, 3, 9, 3, 40, 1))) || '0');

	$n .= '.' . digits(between(1, weighted(2, 3, 12, 2, 60, 1))) if chance(0.6);
	$n .= '0' x between(0, 5) if $n =~ /\./;
	$n .= 'e' . between(-30, 30) if chance(0.2);
	return $n;
}

sub integer_type
{
	my ($sql, $bits) = @_;
	my %limits = (
		16 => [ '-32768', '32767' ],
		32 => [ '-2147483648', '2147483647' ],
		64 => [ '-9223372036854775808', '9223372036854775807' ]);

	return {
		sql => $sql,
		nasty => [ @{ $limits{$bits} }, 0, 1, -1, 127, 128, -128, 255, 256, -256, 32767, -32768, 32766 ],
		random => sub { between(-300, 300) },
		formula => sub { my ($h) = @_; my $low = 64 - $bits; "(@{[$h->()]} >> ($low + (@{[$h->()]} & " . ($bits - 1) . ")::int))::$sql" },
		exprs => [ [ '%s %% 7', 'plain' ], [ '%s > 0', 'plain' ], [ "coalesce(%s, 5)", 'plain' ], [ '%s::text', 'text' ] ] };
}

my @floats4 = qw(0 -0 1 -1 1.5 -1.5 NaN -NaN Infinity -Infinity 1e-45 -1e-45 1.1754942e-38 3.4028235e38 -3.4028235e38
  1.0000001 0.1 16777216 16777217);
my @floats8 = qw(0 -0 1 -1 1.5 -1.5 NaN -NaN Infinity -Infinity 4.9e-324 -4.9e-324 2.225e-308 1.7976931348623157e308
  -1.7976931348623157e308 1.0000000000000002 0.1 9007199254740993);

my @times = ('00:00', '24:00', '12:00', '12:00:00.000001', '23:59:59.999999', '00:00:00.000001');
my @moments = ('infinity', '-infinity', '2000-01-01', '1999-12-31 23:59:59.999999', '2000-01-01 00:00:00.000001', '1970-01-01',
	'4713-01-01 BC', '294276-12-31 23:59:59.999999', '0001-01-01', '0001-12-31 BC', '2024-02-29', '1900-02-28');

sub moment
{
	return sprintf '%04d-%02d-%02d %02d:%02d:%02d', between(1, 9999), between(1, 12), between(1, 28), between(0, 23),
	  between(0, 59), between(0, 59);
}

sub moment_formula
{
	my ($cast) = @_;

	return sub {
		my ($h) = @_;
		"(timestamp '2000-01-01' + (@{[$h->()]} >> 10) * interval '1 microsecond')::$cast";
	};
}

sub hex_random
{
	my ($n) = @_;

	return join '', map { sprintf '%02x', weighted(0, 3, 255, 2, 1, 1, between(0, 255), 6) } 1 .. $n;
}

sub inet_random
{
	my @pool = (0, 0, 10, 127, 128, 192, 255, between(0, 255));

	if (chance(0.5))
	{
		return join('.', map { pick(@pool) } 1 .. 4) . (chance(0.6) ? '/' . between(0, 32) : '');
	}
	return pick('2001:db8::', '::', 'fe80::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:')
	  . sprintf('%x', between(0, 65535)) . (chance(0.6) ? '/' . between(0, 128) : '');
}

sub bits_random
{
	my ($n) = @_;
	my $kind = pick(0, 1, 2);

	return join '', map { $kind == 2 ? pick(0, 1) : $kind } 1 .. $n;
}

# Functions, as some make choices of their own
my %scalars = (
	bool => sub { {
		sql => 'bool', nasty => [ 't', 'f' ], random => sub { pick('t', 'f') },
		formula => sub { "@{[$_[0]->()]} > 0" }, exprs => [ [ 'NOT %s', 'plain' ] ] } },
	int2 => sub { integer_type('int2', 16) },
	int4 => sub { integer_type('int4', 32) },
	int8 => sub { integer_type('int8', 64) },
	char => sub { {
		sql => '"char"', nasty => [ 'a', 'z', '', ' ', '~', \'(-1)::"char"', \'(-128)::"char"', \'127::"char"' ],
		random => sub { pick('a' .. 'z') }, formula => sub { "((@{[$_[0]->()]} & 255) - 128)::int::\"char\"" } } },
	float4 => sub { {
		sql => 'float4', nasty => \@floats4, random => sub { sprintf '%.4fe%d', rand(20) - 10, between(-30, 30) },
		formula => sub { "(@{[$_[0]->()]}::float8 * 10.0::float8 ^ ((@{[$_[0]->()]} & 31)::float8 - 30))::float4" },
		exprs => [ [ '-%s', 'plain' ], [ 'abs(%s)', 'plain' ] ] } },
	float8 => sub { {
		sql => 'float8', nasty => \@floats8, random => sub { sprintf '%.9fe%d', rand(20) - 10, between(-300, 290) },
		formula => sub { "@{[$_[0]->()]}::float8 * 10.0::float8 ^ ((@{[$_[0]->()]} & 255)::float8 - 200)" },
		exprs => [ [ '-%s', 'plain' ], [ 'abs(%s)', 'plain' ] ] } },
	numeric => sub { {
		sql => 'numeric',
		nasty => [ qw(0 0.0 -0 0.00000000 1 1.0 1.00 -1 -1.000 10 10000 10000.0 9999 99990000 9999.9999 9999.99990001 0.1 0.10
			  0.0001 0.00010 0.00001 -0.0001 NaN NaN Infinity -Infinity 1e244 1e245 1e252 -1e252 1e-244 1e-252 -1e-252 1e1000
			  -1e1000 1e-1000 1e131071 -1e131071 1e-16383 -1e-16383 123456789012345678901234567890
			  123456789012345678901234567890.0) ],
		random => \&numeric_random,
		formula => sub { "round(@{[$_[0]->()]}::numeric / 10 ^ (@{[$_[0]->()]} & 15)::numeric, (@{[$_[0]->()]} & 15)::int)" },
		long => [ \"(repeat('7', 16380) || '.' || repeat('3', 300))", \"(repeat('7', 16380) || '.' || repeat('3', 300) || '00')",
			\"(repeat('7', 16380) || '.' || repeat('3', 299) || '4')", \"('-' || repeat('7', 40000))" ],
		exprs => [ [ 'trunc(%s)', 'plain' ], [ '-%s', 'plain' ], [ 'abs(%s)', 'plain' ], [ 'left(%s::text, 30)', 'text' ] ] } },
	money => sub { {
		sql => 'money', nasty => [ '0', '-0.01', '0.01', '1', '-92233720368547758.08', '92233720368547758.07' ],
		random => sub { between(-500, 500) / 100 }, formula => sub { "(@{[$_[0]->()]} / 1000)::money" } } },
	date => sub { {
		sql => 'date', nasty => [ 'infinity', '-infinity', '2000-01-01', '1999-12-31', '4714-11-24 BC', '5874897-12-31', '0001-01-01' ],
		random => sub { substr moment(), 0, 10 }, formula => sub { "date '2000-01-01' + (@{[$_[0]->()]} % 700000)::int" } } },
	time => sub { {
		sql => 'time', nasty => \@times, random => sub { substr moment(), 11 }, formula => moment_formula('time') } },
	timetz => sub { {
		sql => 'timetz',
		nasty => [ '10:00+00', '11:00+01', '09:00-01', '10:00+15:59:59', '10:00-15:59:59', '24:00+00', '00:00+00', '00:00+12', '24:00-12' ],
		random => sub { substr(moment(), 11) . sprintf('%s%02d:%02d', pick('+', '-'), between(0, 14), pick(0, 0, 30, 45)) },
		formula => sub {
			my ($h) = @_;
			"(((timestamp '2000-01-01' + (@{[$h->()]} >> 30) * interval '1 second')::time::text || "
			  . "CASE WHEN @{[$h->()]} > 0 THEN '+' ELSE '-' END || (@{[$h->()]} & 7))::timetz)" } } },
	timestamp => sub { {
		sql => 'timestamp', nasty => \@moments, random => \&moment, formula => moment_formula('timestamp'),
		exprs => [ [ "date_trunc('month', %s)", 'plain' ] ] } },
	timestamptz => sub { {
		sql => 'timestamptz', nasty => [ grep { !/^(4713|294276)/ } @moments ], random => sub { moment() . pick('+00', '-07', '+05:30') },
		formula => moment_formula('timestamptz') } },
	interval => sub { {
		sql => 'interval',
		nasty => [ '0', '1 mon', '30 days', '29 days 24:00', '720:00', '-1 day', '-24:00', '1 mon -30 days', '00:00:00.000001', '178000000 years',
			'-178000000 years', '2147483647 days', '-2147483648 days', '2147483647 mons 2147483647 days', '-2147483648 mons -2147483648 days', '1 year',
			'12 mons', '360 days', '2562047788:00:54.775807', '-2562047788:00:54.775807' ],
		random => sub { sprintf '%d mons %d days %d:00', between(-3, 3), between(-95, 95), between(-50, 50) },
		formula => sub {
			my ($h) = @_;
			"make_interval(months => (@{[$h->()]} % 4)::int, days => (@{[$h->()]} % 100)::int, hours => 24 * (@{[$h->()]} % 100)::int)" } } },
	uuid => sub { {
		sql => 'uuid',
		nasty => [ '0' x 32, 'f' x 32, '0' x 31 . '1', '8' . '0' x 31, '7' . 'f' x 31 ], random => sub { hex_random(16) },
		formula => sub { "md5(@{[$_[0]->()]}::text)::uuid" }, exprs => [ [ '%s::text', 'text' ] ] } },
	macaddr => sub { {
		sql => 'macaddr', nasty => [ '00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff', '00:00:00:00:00:01', '80:00:00:00:00:00' ],
		random => sub { hex_random(6) }, formula => sub { "left(md5(@{[$_[0]->()]}::text), 12)::macaddr" } } },
	macaddr8 => sub { {
		sql => 'macaddr8', nasty => [ '0' x 16, 'f' x 16, '0' x 15 . '1', '8' . '0' x 15 ], random => sub { hex_random(8) },
		formula => sub { "left(md5(@{[$_[0]->()]}::text), 16)::macaddr8" } } },
	inet => sub { {
		sql => 'inet',
		nasty => [ '0.0.0.0', '0.0.0.0/0', '255.255.255.255', '255.255.255.255/0', '10.0.0.0/8', '10.0.0.0/9', '10.0.0.1/8', '10.0.0.1', '10.0.0.1/31',
			'10.0.0.1/30', '::', '::/0', '::1', '::1/127', '::ffff:10.0.0.1', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/1' ],
		random => \&inet_random,
		formula => sub {
			my ($h) = @_;
			"set_masklen(inet '0.0.0.0' + (@{[$h->()]} & 4294967295), (@{[$h->()]} & 31)::int + 1)" } } },
	cidr => sub { {
		sql => 'cidr', nasty => [ '0.0.0.0/0', '0.0.0.0/32', '10.0.0.0/8', '10.0.0.0/9', '10.128.0.0/9', '::/0', '::1/128', '::/1' ],
		random => sub { \"network(@{[quote(inet_random())]})" },
		formula => sub { my ($h) = @_; "network(set_masklen(inet '0.0.0.0' + (@{[$h->()]} & 4294967295), (@{[$h->()]} & 31)::int + 1))" } } },
	bit => sub {
		my $n = pick(1, 7, 8, 9, 16, 33, 64);
		return {
			sql => "bit($n)", nasty => [ '0' x $n, '1' x $n, '0' x ($n - 1) . '1', '1' . '0' x ($n - 1) ], random => sub { bits_random($n) },
			formula => sub { "substring((@{[$_[0]->()]})::bit(64) FROM 1 FOR $n)::bit($n)" } } },
	varbit => sub { {
		sql => 'varbit', nasty => [ '', '0', '1', '00', '01', '10', '0' x 8, '0' x 9, '1' x 8, '1' x 9, '0' x 8 . '1' ],
		random => sub { bits_random(between(0, 70)) }, long => [ map { \"(repeat('0', @{[65536 + $_]}) || '1')" } 0 .. 2 ],
		formula => sub { "substring((@{[$_[0]->()]})::bit(64) FROM 1 FOR (@{[$_[0]->()]} & 63)::int)::varbit" } } },
	pg_lsn => sub { {
		sql => 'pg_lsn', nasty => [ '0/0', '0/1', 'FFFFFFFF/FFFFFFFF', '1/0', '7FFFFFFF/FFFFFFFF', '80000000/0' ],
		random => sub { sprintf '%X/%X', between(0, 3), between(0, 300) },
		formula => sub { "'0/0'::pg_lsn + (@{[$_[0]->()]} & 9223372036854775807)::numeric" } } },
	xid8 => sub { {
		sql => 'xid8', nasty => [ 0, 1, '18446744073709551615', '9223372036854775808', '4294967296', '4294967295' ],
		random => sub { between(0, 1000) }, formula => sub { "(@{[$_[0]->()]} & 9223372036854775807)::text::xid8" } } },
	tid => sub { {
		sql => 'tid', nasty => [ '(0,0)', '(0,1)', '(1,0)', '(4294967295,65535)', '(4294967295,0)', '(255,256)', '(256,255)' ],
		random => sub { sprintf '(%d,%d)', between(0, 300), between(0, 300) },
		formula => sub { "format('(%s,%s)', @{[$_[0]->()]} & 4294967295, @{[$_[0]->()]} & 65535)::tid" } } },
	oid => sub { {
		sql => pick('oid', 'oid', 'regclass', 'regtype', 'regproc', 'regnamespace'), nasty => [ 0, 1, 4294967295, 2147483648, 16384 ],
		random => sub { between(20000, 90000) }, formula => sub { "(@{[$_[0]->()]} & 4294967295)::oid" } } },
	oidvector => sub { {
		sql => 'oidvector', nasty => [ '', '0', '1', '0 0', '1 0', '4294967295', '0 4294967295' ],
		random => sub { join ' ', map { between(0, 3) } 1 .. between(0, 5) },
		formula => sub { "((@{[$_[0]->()]} & 7) || ' ' || (@{[$_[0]->()]} & 7))::oidvector" } } },
	int2vector => sub { {
		sql => 'int2vector', nasty => [ '', '0', '1', '0 0', '1 0', '-32768 32767' ],
		random => sub { join ' ', map { between(-1, 2) } 1 .. between(0, 5) },
		formula => sub { "((@{[$_[0]->()]} & 7) || ' ' || (@{[$_[0]->()]} & 7))::int2vector" } } },
	bytea => sub { {
		sql => 'bytea', nasty => [ '\x', '\x00', '\x0000', '\x0001', '\x01', '\x0100', '\xff', '\xff00', '\xffff', '\x00ff', '\x61', '\x6100', '\x6101' ],
		random => sub { '\x' . hex_random(between(0, weighted(3, 3, 10, 3, 70, 1))) },
		long => [ map { \"decode(repeat('00', @{[4085 + between(0, 12)]}) || '$_', 'hex')" } '', '00', '01', 'ff' ],
		formula => sub { "decode(left(md5(@{[$_[0]->()]}::text), 2 * (@{[$_[0]->()]} & 15)::int), 'hex')" },
		exprs => [ [ 'substring(%s FROM 1 FOR 2)', 'plain' ], [ 'length(%s)', 'plain' ], [ "encode(%s, 'escape')", 'text' ] ] } },
	enum => sub { {
		sql => pick('fuzz_mood', 'fuzz_many'), nasty => [ 'm1', 'm2', 'm3', 'm0', 'm15', 'm9' ], random => sub { pick('m1', 'm2', 'm3', 'm0', 'm15', 'm9') },
		exprs => [ [ '%s::text', 'text' ] ] } },
	text => sub { text_type('text', 10000) },
	varchar => sub { my $n = pick(3, 20, 200); text_type("varchar($n)", $n) },
	bpchar => sub {
		my $n = pick(1, 5, 12, 40);
		my $type = text_type("char($n)", $n);

		$type->{exprs} = [ [ '%s::text', 'text' ], [ 'length(%s)', 'plain' ], [ 'left(%s::text, 2)', 'text' ] ];
		return $type;
	},
	name => sub {
		my $type = text_type('name', 15);

		$type->{exprs} = [ [ '%s::text', 'text' ], [ 'left(%s::text, 2)', 'text' ] ];
		$type->{pattern} = 0;
		return $type;
	},
	pair => sub { {
		sql => 'fuzz_pair', nasty => [ '(,)', '(0,)', '(,a)', '(0,"")', '(0,A)', '(0,a)', '(1,á)', '(-1,a-b)' ],
		random => sub { '(' . between(0, 3) . ',' . pick('a', 'A', 'b', 'á', 'a b', 'ab', '') . ')' },
		formula => sub { "((@{[$_[0]->()]} & 3)::int, md5((@{[$_[0]->()]} & 63)::text))::fuzz_pair" } } },
	doc => sub { {
		sql => 'fuzz_doc', nasty => [ '(,,,)', '(1,,,)', '(1.0,"(,)",,)', '(1,"(0,a)",{},m0)', '(1.00,"(0,a)",[],m1)', '(1,"(0,a)",{},)' ],
		random => sub { '(' . between(0, 2) . ',"(' . between(0, 1) . ',a)",[' . between(0, 3) . '],' . pick('m0', 'm1', '') . ')' },
		formula => sub { "((@{[$_[0]->()]} & 3)::numeric, NULL, to_jsonb(@{[$_[0]->()]} & 7), 'm1')::fuzz_doc" } } },
	jsonb => sub { {
		sql => 'jsonb', nasty => [ '{}', '[]', 'null', '1', '1.0', '-0', 'true', 'false', '"a"', '"A"', '"á"', '"a b"', '"ab"', '""', '"\\\\u0001"', '[[]]', '[1]', '["a"]', '["A"]',
			'{"a":1}', '{"A":1}', '{"a":"A"}', '{"A":"a"}', '{"a":{"b":["á",2]}}', '{"a":{"b":["a",2]}}' ],
		random => sub { my $v = pick(between(0, 5), '"' . pick('a', 'A', 'á', 'b', '-a') . '"'); pick($v, "[$v]", "[$v,1]", qq({"k":$v}), qq({"k":[$v],"l":2})) },
		formula => sub { "jsonb_build_array(@{[$_[0]->()]} & 7, md5((@{[$_[0]->()]} & 63)::text))" } } },
	tsvector => sub { {
		sql => 'tsvector', nasty => [ '', 'a', 'A', 'a:1', 'a:1A', 'b a' ], random => sub { pick('a', 'b', 'á') . ' ' . between(0, 5) },
		formula => sub { "to_tsvector('simple', (@{[$_[0]->()]} & 7)::text)" }, left => 1 } },
	int4range => sub { {
		sql => 'int4range', nasty => [ 'empty', '(,)', '[1,1]', '(,1)', '[1,)' ], random => sub { '[' . between(0, 5) . ',' . between(5, 9) . ')' },
		formula => sub { "int4range((@{[$_[0]->()]} & 7)::int, 10)" } } },
	numrange => sub { {
		sql => 'numrange', nasty => [ 'empty', '(,)', '[1,1]', '(1.0,2]', '[1.00,2)', '[1,2]', '(,1)', '[NaN,)' ],
		random => sub { pick('[', '(') . between(0, 5) . '.' . between(0, 3) . ',' . between(6, 9) . pick(']', ')') },
		formula => sub { "numrange((@{[$_[0]->()]} & 7)::numeric / 2, 10, '[]')" } } },
);

my @supported = grep { $_ ne 'tsvector' } sort keys %scalars;
my @text_like = qw(text text text varchar bpchar name);

# Collations of the schema fuzz, see setup.sql, and built-in ones.  fr-CA and numbers in tailored languages are left out:
# they compare these letters in a circle.
my @collations = ('"C"', '"POSIX"', 'ucs_basic', '"default"', 'fuzz_en', 'fuzz_en', 'fuzz_en', 'fuzz_de', 'fuzz_c_utf8', 'fuzz_icu', 'fuzz_icu',
	'fuzz_danish',
	map({ "fuzz_libc_$_" } qw(cs da hu ja ru tr zh)), map({ "fuzz_icu_$_" } qw(cs hu ja ru tr zh)),
	'fuzz_numeric', 'fuzz_upper', 'fuzz_shifted', 'fuzz_no_case', 'fuzz_no_accents', 'fuzz_no_punctuation');

sub random_collation
{
	return pick(@collations);
}

sub make_domain
{
	my ($name) = @_;
	my %domains = (
		fuzz_word => $scalars{text}, fuzz_count => $scalars{int4}, fuzz_amount => $scalars{numeric}, fuzz_state => $scalars{enum},
		fuzz_words => sub { make_array($scalars{text}->()) });
	my $type = $domains{$name}->();

	if ($name eq 'fuzz_state')
	{
		$type->{nasty} = [ 'm1', 'm2', 'm3', 'm0' ];
		$type->{random} = sub { pick('m1', 'm2', 'm3', 'm0') };
	}
	# functions and casts of the base type work on it
	# but there is no equality for domains over enums
	$type->{compare_as} = '::fuzz_mood' if $name eq 'fuzz_state';
	return { %$type, sql => $name, label => 'domain' };
}

# An element of an array's literal
sub element_random
{
	my ($type) = @_;
	my $value = chance(0.15) ? undef : chance(0.6) ? pick(@{ $type->{nasty} }) : $type->{random}->();

	return 'NULL' if !defined $value || ref $value;
	$value =~ s/(["\\])/\\$1/g;
	return "\"$value\"";
}

# The same elements in other shapes, or nearly so: what tells arrays apart last
sub array_variants
{
	my ($x, $y) = map { element_random($_[0]) } 1 .. 2;

	return ("{$x}", "{$x,$y}", "[0:1]={$x,$y}", "[-1:0]={$x,$y}", "[2:3]={$x,$y}", "{{$x,$y}}", "{{$x},{$y}}", "[1:1][0:1]={{$x,$y}}",
		"[0:0][1:2]={{$x,$y}}", "{$x,$y,NULL}", "{NULL,$x}", "{$y,$x}", "{{{$x,$y}}}");
}

# An array's literal, of any shape
sub array_random
{
	my ($type) = @_;
	my $n = weighted(0, 1, 1, 3, 2, 3, 3, 2, 4, 2, 6, 1, 40, 0.3);

	return '{}' if $n == 0;
	my @sizes = $n == 4 && chance(0.4) ? (2, 2) : $n == 6 && chance(0.5) ? (pick([ 2, 3 ], [ 3, 2 ]))->@* : ($n);
	@sizes = (1, @sizes) if chance(0.12);
	@sizes = (@sizes, 1) if chance(0.08);
	my @parts = map { element_random($type) } 1 .. $n;
	for my $size (reverse @sizes)
	{
		my @groups;

		push @groups, '{' . join(',', splice @parts, 0, $size) . '}' while @parts;
		@parts = @groups;
	}
	return $parts[0] unless chance(0.2);
	return join('', map { my $low = between(-2, 2); "[$low:@{[$low + $_ - 1]}]" } @sizes) . "=$parts[0]";
}

# Arrays longer than a key can be, by one of their elements or by all
sub array_long
{
	my ($element) = @_;
	my @arrays = map { "ARRAY['a', $$_, @{[quote(pick('', 'b', 'B'))]}]" } @{ $element->{long} };

	for (1 .. 3)
	{
		my $n = pick(400, 1300, 1630, 2720) + between(-5, 15);

		push @arrays, 'array_fill(' . quote(pick('a', 'A', '', 'ab')) . "::text, ARRAY[$n]) || ARRAY[" . quote(pick('', 'a', 'A')) . ']';
	}
	return map { \$_ } @arrays;
}

sub make_array
{
	my ($element) = @_;
	my $type = {
		sql => "$element->{sql}\[]", cast => $element->{max} ? '::text[]' : '', nasty => [ '{}', '{}', '{NULL}', '{NULL,NULL}', array_variants($element) ], random => sub { array_random($element) },
		collates => $element->{collates}, left => $element->{left}, label => $element->{collates} ? 'text[]' : 'array', of => $element,
		long => $element->{long} && $element->{collates} ? [ array_long($element) ] : undef,
		exprs => [ [ 'cardinality(%s)', 'plain' ], [ 'array_upper(%s, 1)', 'plain' ], [ '%s[1:2]', 'same' ] ] };
	my $formula = $element->{formula};

	if ($formula)
	{
		my $longest = pick(1, 3, 4, 20);

		$type->{formula} = sub {
			my ($h) = @_;
			'(ARRAY[' . join(', ', map { $formula->($h) } 1 .. $longest)
			  . "]::$type->{sql})[1:(@{[$h->()]} & 31)::int % ($longest + 1)]";
		};
	}
	return $type;
}

# A column's type.  With a label for the report: the type's name, "domain" or
# "array", or "text[]" of any text.
sub random_type
{
	my $name = chance(0.35) ? pick(@text_like) : pick(@supported);
	my $type;

	$name = 'tsvector' if chance(0.03);
	$name = 'jsonb' if chance(0.04);
	return make_domain(pick('fuzz_word', 'fuzz_words', 'fuzz_count', 'fuzz_amount', 'fuzz_state')) if chance(0.05);
	return make_array(chance(0.3) ? make_domain('fuzz_word') : $scalars{ pick(@text_like) }->()) if chance(0.06);
	$name = pick('float4', 'float8', 'int4', 'text', $name, $name) if chance(0.2);
	$type = { %{ $scalars{$name}->() }, label => $name };
	# int2vector and oidvector have no arrays that literals could be written for so; those of composite types are left
	return $type if $name =~ /vector|pair|doc/ || !chance(0.15);
	return make_array($type);
}

# A type with values that are longer than keys can be
sub long_type
{
	my $name = pick('text', 'text', 'varchar', 'bytea', 'numeric', 'varbit', 'array');

	return make_array($scalars{text}->()) if $name eq 'array';
	return $name eq 'varchar' ? { %{ text_type('varchar', 10000) }, label => $name } : { %{ $scalars{$name}->() }, label => $name };
}

# A type of columns that are only carried along
sub payload_type
{
	my $name = pick('text', 'text', 'jsonb', 'int4', 'numeric', 'bytea', 'float8', 'bool', 'timestamptz', 'int2', 'uuid');

	return { %{ $scalars{$name}->() }, label => $name };
}

# What an expression over a column gives: as far as the tester has to know it
sub result_type
{
	my ($column, $kind) = @_;

	return $column if $kind eq 'same';
	return { sql => 'text', collates => 1, pattern => 1, label => 'text' } if $kind eq 'text';
	return { sql => '', label => 'expression' };
}

1;
