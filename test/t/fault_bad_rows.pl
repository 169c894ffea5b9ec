# Rows that a device cannot read, jobs that it refuses, rows that get lost on the way: they concern
# one sort only, which PostgreSQL does, or does again.  The service and all other sorts go on.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

my $node = new_server('bad_rows', "ignore_checksum_failure = on\n", rows => 100000);

$node->safe_psql('postgres', q(
	CREATE FUNCTION make_indirect(text) RETURNS text LANGUAGE c STRICT IMMUTABLE AS 'bad_rows';
	CREATE TABLE numbers AS SELECT i FROM generate_series(1, 30000) AS i;
	CREATE TABLE damaged (id int, a text, k int) WITH (parallel_workers = 3);
	INSERT INTO damaged SELECT i, repeat('x', 10), i * 7919 % 30011 FROM generate_series(1, 30000) AS i;
	CREATE TABLE arrays AS SELECT i, ARRAY(SELECT (i * j) % 1009 FROM generate_series(1, 60) AS j) AS a FROM generate_series(1, 3000) AS i;
	CREATE TABLE zeroed AS SELECT i AS id, i::numeric AS n FROM generate_series(1, 30000) AS i;
	CREATE TABLE zeroed_text (id int, k text COLLATE "en_US.utf8");
	INSERT INTO zeroed_text SELECT i, i FROM generate_series(1, 30000) AS i;
	CREATE TABLE tiny AS SELECT i * 7919 % 30011 AS id FROM generate_series(1::bigint, 30000) AS i;
	CREATE TABLE networks AS SELECT '10.0.0.0/8'::inet AS n FROM generate_series(1, 3000) AS i;
	CREATE TABLE lapping AS SELECT i AS id, i * 7919 % 30011 AS k, i::bigint AS same FROM generate_series(1, 30000) AS i;
	CREATE TABLE lengths AS SELECT i AS id, i + 0.5 AS n FROM generate_series(1, 3000) AS i;
	CREATE TABLE objects AS SELECT i AS id, jsonb_build_object('k', i, 'v', 'text') AS j FROM generate_series(1, 3000) AS i;
	CREATE TABLE nested AS SELECT i AS id, jsonb_build_object('k', i, 'n', jsonb_build_object('x', i)) AS j FROM generate_series(1, 3000) AS i;
	VACUUM (ANALYZE, FREEZE) numbers, damaged, arrays, zeroed, zeroed_text, tiny, networks, lapping, lengths, objects, nested;));
my $lz4 = value($node, q(SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression')) eq 't';
$node->safe_psql('postgres', q(
	CREATE TABLE longer (h text COMPRESSION lz4 COLLATE "C");
	INSERT INTO longer SELECT repeat(chr(97 + 25 * k), 3000 + i + 2010 * k) FROM generate_series(1, 8) AS i, generate_series(0, 1) AS k ORDER BY i, k DESC;
	VACUUM FREEZE longer;)) if $lz4;

my $pid;

# Is the service still the same process, and its device in order?
sub unharmed
{
	my ($what) = @_;

	is(service_pid($node), $pid, "$what: same service");
	is(value($node, 'SELECT bool_and(state = $$ready$$) FROM gpusort_devices'), 't', "$what: devices");
	released($node, $what);
}

# How often does the log have a line, from a place on?
sub logged
{
	my ($from, $pattern) = @_;

	return scalar(() = slurp_file($node->logfile, $from) =~ /$pattern/g);
}

my $refused = qr/LOG:  gpusort cannot sort the rows of process \d+: /;

$pid = service_pid($node);

#
# Pointers of a kind that devices do not know: processes make the keys
#
for my $order ('i DESC', 'i DESC, v', 'v, i', 'v COLLATE "C", i')
{
	my $query = qq(SELECT v, i FROM (SELECT make_indirect(repeat('x', i % 50)) AS v, i FROM numbers OFFSET 0) AS s ORDER BY $order;);

	like(rows_of($node, "$force $serial", "EXPLAIN $query"), qr/GpuSort/, "pointers, $order: plan");
	same_counted($node, $serial, $query, "pointers, $order");
	unharmed("pointers, $order");
}

#
# Rows damaged on disk.  In one a text ends behind its row, so that the key would, too; another one is longer than its page.
#
{
	my (%is_damaged, %is_lapping);
	my $query = 'SELECT id, a IS NULL FROM (SELECT * FROM damaged ORDER BY k OFFSET 0) AS s;';
	my $is_good = sub { $_[0] =~ /^(\d+)/ && !$is_damaged{$1} };
	my $file = $node->data_dir . '/' . value($node, q(SELECT pg_relation_filepath('damaged')));
	my @zeroed = map { $node->data_dir . '/' . value($node, "SELECT pg_relation_filepath('$_')") } 'zeroed', 'zeroed_text';
	my $tiny = $node->data_dir . '/' . value($node, q(SELECT pg_relation_filepath('tiny')));
	my $networks = $node->data_dir . '/' . value($node, q(SELECT pg_relation_filepath('networks')));
	my $lapping = $node->data_dir . '/' . value($node, q(SELECT pg_relation_filepath('lapping')));
	my $lengths = $node->data_dir . '/' . value($node, q(SELECT pg_relation_filepath('lengths')));
	my $objects = $node->data_dir . '/' . value($node, q(SELECT pg_relation_filepath('objects')));
	my $nested = $node->data_dir . '/' . value($node, q(SELECT pg_relation_filepath('nested')));
	my $longer = $lz4 && $node->data_dir . '/' . value($node, q(SELECT pg_relation_filepath('longer')));
	my $page;

	$node->stop;
	open(my $fh, '+<:raw', $file) or die "$file: $!";
	sysseek($fh, 100 * 8192, 0);
	sysread($fh, $page, 8192) == 8192 or die "$file: too short";
	for my $item (1, 5)
	{
		my $at = 24 + 4 * ($item - 1);
		my $pointer = unpack('V', substr($page, $at, 4));
		my ($offset, $len) = ($pointer & 0x7fff, $pointer >> 17);
		my $hoff = unpack('C', substr($page, $offset + 22, 1));

		$is_damaged{unpack('V', substr($page, $offset + $hoff, 4))} = 1;
		if ($item == 1)
		{
			die 'not the last of its page' if $offset + $len < 8192 - 8;
			substr($page, $at, 4) = pack('V', $pointer + (64 << 17));
		}
		else
		{
			substr($page, $offset + $hoff + 4, 1) = chr(0xff);
		}
	}
	sysseek($fh, 100 * 8192, 0);
	syswrite($fh, $page) == 8192 or die "$file: $!";
	close($fh);

	# a numeric, and a text behind the rows that a backend keeps, whose headers tell that they are shorter than their headers
	for my $zeroed (@zeroed)
	{
		my $at = $zeroed eq $zeroed[1] ? 110 * 8192 : 0;

		open($fh, '+<:raw', $zeroed) or die "$zeroed: $!";
		sysseek($fh, $at, 0);
		sysread($fh, $page, 8192) == 8192 or die "$zeroed: too short";
		sysseek($fh, $at + (unpack('V', substr($page, 24, 4)) & 0x7fff) + 28, 0);
		syswrite($fh, "\0" x 4);
		close($fh);
	}

	# line pointers that tell of fewer bytes than a header has, the first one of a page among them
	open($fh, '+<:raw', $tiny) or die "$tiny: $!";
	sysseek($fh, 8192, 0);
	sysread($fh, $page, 8192) == 8192 or die "$tiny: too short";
	for my $item ([1, 8], [10, 1], [12, 8], [14, 16])
	{
		my $at = 24 + 4 * ($item->[0] - 1);

		substr($page, $at, 4) = pack('V', unpack('V', substr($page, $at, 4)) & 0x1ffff | $item->[1] << 17);
	}
	sysseek($fh, 8192, 0);
	syswrite($fh, $page) == 8192 or die "$tiny: $!";
	close($fh);

	# line pointers into other rows, and into the page's header
	open($fh, '+<:raw', $lapping) or die "$lapping: $!";
	for my $damage ([ 50, 5, 10, 24 ], [ 60, 5, 10, 16 ], [ 70, 2, 0, 16 ], [ 80, 5, 10, 0 ])
	{
		my ($block, $item, $other, $add) = @$damage;
		my $at = 24 + 4 * ($item - 1);

		sysseek($fh, $block * 8192, 0);
		sysread($fh, $page, 8192) == 8192 or die "$lapping: too short";
		$is_lapping{unpack('V', substr($page, (unpack('V', substr($page, $at, 4)) & 0x7fff) + 24, 4))} = 1;
		$add += unpack('V', substr($page, 24 + 4 * ($other - 1), 4)) & 0x7fff if $other > 0;
		substr($page, $at, 4) = pack('V', unpack('V', substr($page, $at, 4)) & ~0x7fff | $add);
		sysseek($fh, $block * 8192, 0);
		syswrite($fh, $page) == 8192 or die "$lapping: $!";
	}
	close($fh);

	# a numeric of 1 GB, a string of as many bytes in a jsonb (its header, that of the object, and then one of each key and value),
	# and an object in a jsonb that has as many keys
	for my $damage ([ $lengths, 28, 0xfffffff0 ], [ $objects, 28 + 1 + 4 + 4 * 3, 0x0fffffff ], [ $nested, 0, 0x2fffffff ])
	{
		open($fh, '+<:raw', $damage->[0]) or die "$damage->[0]: $!";
		sysread($fh, $page, 8192) == 8192 or die "$damage->[0]: too short";
		my $at = (unpack('V', substr($page, 24, 4)) & 0x7fff) + ($damage->[1] || 40);
		$at = index($page, "\x01\x00\x00\x20", $at) if $damage->[1] == 0;
		sysseek($fh, $at, 0);
		syswrite($fh, pack('V', $damage->[2]));
		close($fh);
	}

	# an address of IPv4 with 255 bits of network
	open($fh, '+<:raw', $networks) or die "$networks: $!";
	sysread($fh, $page, 8192) == 8192 or die "$networks: too short";
	sysseek($fh, (unpack('V', substr($page, 24, 4)) & 0x7fff) + 24 + 2, 0);
	syswrite($fh, "\xff");
	close($fh);

	# compressed texts whose headers tell of more bytes than they have, which PostgreSQL does not notice
	if ($lz4)
	{
		open($fh, '+<:raw', $longer) or die "$longer: $!";
		sysread($fh, $page, 8192) == 8192 or die "$longer: too short";
		for my $item (3, 7, 11)
		{
			my $header = (unpack('V', substr($page, 24 + 4 * $item, 4)) & 0x7fff) + 28;

			substr($page, $header, 4) = pack('V', unpack('V', substr($page, $header, 4)) + ($item == 7 ? 9000 : 2000 + $item));
		}
		sysseek($fh, 0, 0);
		syswrite($fh, $page) == 8192 or die "$longer: $!";
		close($fh);
	}
	$node->start;
	wait_ready($node);
	$pid = service_pid($node);

	my $good = join "\n", grep { $is_good->($_) } split /\n/, stock($node, $query);
	my ($cursor, $first) = cursor($node, 'SELECT id, k FROM t ORDER BY k', 100);

	is(scalar(keys %is_damaged), 2, 'two damaged rows');
	for my $mode (@modes)
	{
		my ($name, $settings) = @$mode;
		my $log = -s $node->logfile;

		stats_reset($node);
		my @rows = split /\n/, rows_of($node, "$force $settings", $query);

		is(scalar(@rows), 30000, "damaged, $name: as many rows");
		same_order(join("\n", grep { $is_good->($_) } @rows), $good, "damaged, $name: all others in order");
		is(fallbacks($node), '{"device refused rows": 1}', "damaged, $name: counted");
		is(logged($log, $refused), 1, "damaged, $name: said once");
	}
	read_rest($cursor, $first, stock($node, 'SELECT id, k FROM t ORDER BY k;'), 'another sort beside damaged rows');
	unharmed('damaged');

	for my $mode (@modes)
	{
		my ($name, $settings) = @$mode;

		$node->psql('postgres', "$force $settings SELECT count(*) FROM (SELECT id FROM zeroed ORDER BY n OFFSET 0) AS s;", stderr => \my $err);
		like($err, qr/ERROR:  a value of a sort column is damaged/, "$name: a damaged header");
		$node->psql('postgres', "$force $settings SELECT count(id), count(k) FROM (SELECT * FROM zeroed_text WHERE random() >= 0 ORDER BY k OFFSET 0) AS s;",
			stderr => \$err);
		like($err, qr/ERROR:  a value of a sort column is damaged/, "$name: a damaged header of text");
		$node->psql('postgres', "$force $settings SELECT count(*) FROM (SELECT n FROM networks ORDER BY n OFFSET 0) AS s;", stderr => \$err);
		like($err, qr/ERROR:  a value of a sort column is damaged/, "$name: a damaged network");
		for my $table ('objects', 'nested')
		{
			$node->psql('postgres', "$force $settings SELECT count(*) FROM (SELECT id FROM $table ORDER BY j OFFSET 0) AS s;", stderr => \$err);
			like($err, qr/ERROR:  a value of a sort column is damaged/, "$name: damaged jsonb, $table");
		}
		same_counted($node, "$force $settings SET gpusort.min_rows = 0;", 'SELECT id FROM lengths ORDER BY n;', "$name: a damaged length");
		same_counted($node, "$force $settings SET gpusort.min_rows = 0; SET parallel_leader_participation = off;", 'SELECT id FROM lengths ORDER BY n;', "$name: a damaged length, not in the leader");
	}
	unharmed('a damaged header');

	for my $mode (@modes)
	{
		my ($name, $settings) = @$mode;
		my $sql = 'SELECT id FROM tiny ORDER BY id;';

		same_rows($node, "$force $settings", $sql, "rows shorter than a header, $name", stock($node, $sql));
	}
	unharmed('rows shorter than a header');

	# what PostgreSQL reads there depends on what lies behind; from 19 on its assertions do not let it read
	my $is_asserted = value($node, q(SELECT current_setting('server_version_num')::int >= 190000 AND current_setting('debug_assertions')::bool)) eq 't';
	my @lapped = split /\n/, value($node, qq(SELECT string_agg(i || '|' || i * 7919 % 30011 || '|' || i, E'\n' ORDER BY i * 7919 % 30011) FROM generate_series(1, 30000) AS i WHERE i NOT IN (@{[ join ', ', keys %is_lapping ]})));

	for my $mode ($is_asserted ? () : @modes)
	{
		my ($name, $settings) = @$mode;
		my @rows = split /\n/, rows_of($node, "$force $settings", 'SELECT * FROM lapping ORDER BY k;');
		my $found = 0;

		is(scalar(@rows), 30000, "pointers into other rows, $name: as many rows");
		$found += $found < @lapped && $_ eq $lapped[$found] for @rows;
		is($found, scalar(@lapped), "pointers into other rows, $name: all others in order");
	}
	unharmed('pointers into other rows');

	for my $direction ($lz4 ? ('ASC', 'DESC') : ())
	{
		my $sql = "SELECT length(h), right(h, 1) FROM (SELECT h FROM longer ORDER BY h $direction OFFSET 0) AS s;";

		same_rows($node, "$force $serial SET gpusort.min_rows = 0;", $sql, "shorter than its header, $direction", stock($node, $sql));
	}
	if ($lz4)
	{
		$node->safe_psql('postgres', "CREATE EXTENSION amcheck; $force SET gpusort.min_rows = 0; CREATE INDEX longer_h ON longer (h);");
		is(value($node, q(SELECT bt_index_check('longer_h', true))), '', 'shorter than its header: index');
	}

	stats_reset($node);
	is(rows_of($node, $force, 'CREATE INDEX damaged_k ON damaged (k);'), '', 'damaged, index: built');
	unharmed('damaged, index');
}

#
# Jobs that a device refuses, or does wrong
#
my $query = 'SELECT id, k FROM t ORDER BY k;';
my $expected = stock($node, $query);

sub refused
{
	my ($point, $settings, $what, $reason) = @_;
	my $log = -s $node->logfile;

	same_despite($node, [ $point ], $settings, $query, $what, $expected, qq({"$reason": 1}));
	is(logged($log, $refused), 1, "$what, $point: said once");
	unharmed("$what, $point");
}

# a job that is refused after the sort has returned rows
sub refused_late
{
	my ($point, $settings, $what) = @_;

	fault($node, $point);
	like(messages_of($node, "$force $settings $query"), qr/^psql:<stdin>:\d+: ERROR:  gpusort lost its device.*\nDETAIL:  Some sorted rows had been returned/, "$what, $point: error");
	fault_over($node, "$what, $point");
	unharmed("$what, $point");
}

for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	refused('device_refuses', $settings, "refused, $name", 'device refused rows');
	refused('device_refuses:2', $settings, "refused, $name", 'device lost');
	refused_late('device_refuses:4', $settings, "refused, $name");
}

# ... while a sort returns rows that cannot be computed again
{
	fault($node, 'device_refuses:3');
	like(messages_of($node, "$force $serial SELECT id, k, random() FROM t ORDER BY k;"), qr/^psql:<stdin>:\d+: ERROR:  gpusort lost its device/, 'refused, volatile');
	fault_over($node, 'refused, volatile');
	unharmed('refused, volatile');
}

# ... of arrays, which are as they were
{
	my $sort = q(SELECT count(*), sum(hashtext(i || ':' || gpu_sort_array(a)::text)::bigint) FROM arrays;);
	my $sorted = stock($node, $sort);

	for my $point ('device_refuses', 'device_refuses:2')
	{
		my $log = -s $node->logfile;

		stats_reset($node);
		same_despite($node, [ $point ], $serial, $sort, 'refused arrays', $sorted);
		like(fallbacks($node), qr/"device refused rows": /, "refused arrays, $point: counted");
		is(logged($log, $refused), 1, "refused arrays, $point: said once");
	}
	unharmed('refused arrays');
}

#
# A row that gets lost on the way to the device: the sort is done again
#
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;
	my $log = -s $node->logfile;

	same_despite($node, [ 'service_lose_row', 'service_lose_row:4' ], $settings, $query, "lost row, $name", $expected, '{"device lost": 1}');
	is(logged($log, qr/gpusort gives up a sort of process \d+: the device has \d+ of 100000 rows/), 2, "lost row, $name: said");
}
unharmed('lost row');

#
# The same of sorts in files
#
$node->append_conf('postgresql.conf', "gpusort.device_memory = '" . ($cuda ? '5MB' : '3MB') . "'");
$node->reload;
stats_reset($node);
same_rows($node, $serial, $query, 'files: rows', $expected);
is(value($node, 'SELECT spilled_sorts, fallbacks FROM gpusort_stats'), '1|0', 'files: spilled');
refused($_, $serial, 'files', 'device lost') for 'device_refuses', 'device_refuses:2', 'device_refuses:3';
refused_late('device_refuses:6', $serial, 'files');
same_despite($node, [ 'service_lose_row:4' ], $serial, $query, 'files, lost row', $expected, '{"device lost": 1}');

# ... and of rows that come back, as temp_file_limit is met
same_counted($node, "$serial SET temp_file_limit = '1MB'; SET work_mem = '1GB';", $query, 'back from files', $expected, '{"temp_file_limit reached": 1}');
same_despite($node, [ 'service_lose_row:2' ], "$serial SET temp_file_limit = '1MB'; SET work_mem = '1GB';", $query, 'lost row, back from files', $expected);
unharmed('files');

#
# A mistake in the service itself ends it in order
#
same_despite($node, [ 'service_phase', 'service_phase:2' ], $serial, $query, 'wrong phase', $expected, '{"device lost": 1}');
is(logged(0, qr/FATAL:  gpusort session \d+ cannot change from phase \d+ to \d+/), 2, 'wrong phase: said');

$node->stop;
done_testing();
