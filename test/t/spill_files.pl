# Temporary files: how many bytes, beside those of PostgreSQL's own sorts; temp_file_limit; what is told of them.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

# A GPU needs a little more for the least of sorts
my $memory = $cuda ? '5MB' : '3MB';
my $node = new_server('temp_files', "gpusort.device_memory = '$memory'\n"
	  . "shared_preload_libraries = 'gpusort, pg_stat_statements'\n", init => [ '--encoding=UTF8', '--locale=C', '--allow-group-access' ]);

# Rows in no order: numbers, texts of no pattern, wide rows of which some is alike
$node->safe_psql('postgres', q(
	CREATE TABLE n AS SELECT hashint4(i) AS a, i AS b, i % 1000 AS c FROM generate_series(1, 150000) AS i;
	CREATE TABLE t AS SELECT i AS a, md5(i::text) AS t, i % 1000 AS c FROM generate_series(1, 80000) AS i;
	CREATE TABLE wide AS SELECT i AS a, md5(i::text) AS t, hashint4(i) AS h,
		md5((i * 3)::text) || md5((i * 7)::text) || md5((i * 11)::text) AS pad,
		timestamp '2020-01-01' + i * interval '1 s' AS ts, (i % 100)::numeric / 7 AS n, 'status' || i % 5 AS s
		FROM generate_series(1, 40000) AS i;
	VACUUM (ANALYZE) n, t, wide;));

# The bytes of all temporary files of a query
sub bytes_of
{
	my ($settings, $query) = @_;
	my $bytes = 'SELECT pg_stat_get_db_temp_bytes(oid) FROM pg_database WHERE datname = current_database()';
	my $before = $node->safe_psql('postgres', $bytes);

	$node->safe_psql('postgres', "$serial SET work_mem = '2MB'; $settings COPY ($query) TO '/dev/null'");
	$node->poll_query_until('postgres', "SELECT ($bytes) > $before") or return 0;
	return $node->safe_psql('postgres', "SELECT ($bytes) - $before");
}

#
# Files, and the folder that gpusort makes for the first one, have the modes of the server's
#
value($node, "$force $serial BEGIN; DECLARE c CURSOR FOR SELECT * FROM n ORDER BY a, b; MOVE 1 IN c;
	COPY (SELECT) TO PROGRAM 'stat -c %a base/pgsql_tmp base/pgsql_tmp/* | sort -u >modes'");
is(slurp_file($node->data_dir . '/modes'), "640\n750\n", 'modes');

#
# The bytes that gpusort writes, as a multiple of PostgreSQL's
#
for my $case (
	[ 1.6, 'SELECT * FROM n ORDER BY a, b' ],
	[ 1.6, 'SELECT * FROM n ORDER BY c DESC, a, b' ],
	[ 1.6, 'SELECT * FROM t ORDER BY t COLLATE "C"' ],
	[ 1.6, 'SELECT * FROM wide ORDER BY h, a' ],
	[ 1.6, 'SELECT * FROM wide ORDER BY n, a' ],
	[ 1.6, 'SELECT * FROM wide ORDER BY t COLLATE "C"' ],
	[ 2.5, 'SELECT * FROM t ORDER BY t COLLATE "en_US.utf8"' ],
	[ 2.5, 'SELECT * FROM wide ORDER BY t COLLATE "en_US.utf8" DESC' ],
	[ 2.5, 'SELECT * FROM wide ORDER BY s COLLATE "en_US.utf8", t COLLATE "de_DE.utf8"' ])
{
	my ($most, $query) = @$case;
	my $postgres = bytes_of('SET gpusort.enabled = off;', $query);
	my $gpusort = bytes_of($force, $query);

	cmp_ok($gpusort, '>', 0, "$query: spilled");
	cmp_ok($gpusort, '<', $most * $postgres, "$query: bytes");
	note sprintf('%s: %d and %d bytes, ratio %.2f', $query, $gpusort, $postgres, $gpusort / $postgres);
	same_rows($node, $serial, "$query;", "$query: rows");
}

#
# Temporary blocks
#
$node->safe_psql('postgres', 'CREATE EXTENSION pg_stat_statements');
for my $mode (@modes)
{
	my ($name, $settings) = @$mode;

	for my $query ('SELECT * FROM n ORDER BY a, b', 'SELECT * FROM t ORDER BY t COLLATE "en_US.utf8"')
	{
		my $plan = $node->safe_psql('postgres', "$force $settings EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) $query");
		my ($kb) = $plan =~ /Temporary Files: .* (\d+)kB/;
		my ($read, $written) = $plan =~ /Buffers: .*temp read=(\d+) written=(\d+)/;

		cmp_ok($written // 0, '>', $kb / 8 * 0.9 - 1, "$name, $query: EXPLAIN has blocks that were written");
		cmp_ok($read // 0, '>', $kb / 8 * 0.9 - 1, "$name, $query: and read");
		$node->safe_psql('postgres', "SELECT pg_stat_statements_reset(); $force $settings $query");
		is(value($node, 'SELECT bool_and(temp_blks_written > 100 AND temp_blks_read > 100) FROM pg_stat_statements'
				. q( WHERE query LIKE '%FROM _ ORDER BY%' AND query NOT LIKE '%EXPLAIN%')), 't', "$name, $query: pg_stat_statements has both");
	}
}

#
# temp_file_limit: where PostgreSQL alone answers
#
for my $case (
	# as a run is written; nothing may be written at all
	[ '512kB', '256MB', 'SELECT * FROM t ORDER BY t COLLATE "C"', 1 ],
	[ '0', '256MB', 'SELECT * FROM t ORDER BY t COLLATE "C"', 1 ],
	[ '512kB', '256MB', 'SELECT * FROM t ORDER BY t COLLATE "en_US.utf8"', 1 ],
	[ '512kB', '256MB', 'SELECT t.*, random() < 2 AS v FROM t ORDER BY t COLLATE "C"', 1 ],
	# fewer bytes than rows and keys have
	[ '6MB', '2MB', 'SELECT * FROM n ORDER BY a, b', 0 ])
{
	my ($limit, $work_mem, $query, $falls_back) = @$case;

	# with several processes the limit is that of all of them
	for my $mode (@modes)
	{
		my ($name, $settings) = @$mode;
		my $what = "$name, temp_file_limit $limit, $query";

		stats_reset($node);
		same_rows($node, "$settings SET temp_file_limit = '$limit'; SET work_mem = '$work_mem';", "$query;", "$what: rows");
		is(fallbacks($node), $falls_back ? '{"temp_file_limit reached": 1}' : '{}', "$what: fallbacks");
		released($node, $what);
	}
}

# It is a limit of each process, and one sorts what four would have sorted, here or after a fallback
for my $point (undef, 'device_memory', 'device_memory:3')
{
	my $query = 'SELECT * FROM t ORDER BY t COLLATE "en_US.utf8"';
	my $what = 'limit of four processes, ' . ($point // 'no fault');
	my $expected = stock($node, "$query;");

	fault($node, $point) if $point;
	stats_reset($node);
	same_rows($node, "$parallel SET temp_file_limit = '3MB'; SET work_mem = '1MB';", "$query;", "$what: rows", $expected);
	is(fallbacks($node), $point ? '{"device memory exhausted": 1}' : '{}', "$what: fallbacks");
	fault($node, undef) if $point;
	released($node, $what);
}

# A user's comparison function sees the limit that its user has set
$node->safe_psql('postgres', q(
	CREATE TYPE pair AS (a int);
	CREATE FUNCTION pair_cmp(pair, pair) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
	BEGIN
		IF current_setting('temp_file_limit') NOT IN ('-1', '20MB') THEN
			RAISE 'temp_file_limit is %', current_setting('temp_file_limit');
		END IF;
		RETURN btint4cmp($1.a, $2.a);
	END $$;) . join("\n", map { my ($name, $op) = @$_;
		"CREATE FUNCTION pair_$name(pair, pair) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT \$1.a $op \$2.a';
		CREATE OPERATOR #$op# (LEFTARG = pair, RIGHTARG = pair, FUNCTION = pair_$name);" }
		[ lt => '<' ], [ le => '<=' ], [ eq => '=' ], [ ge => '>=' ], [ gt => '>' ]) . q(
	CREATE OPERATOR CLASS pair_ops DEFAULT FOR TYPE pair USING btree AS
		OPERATOR 1 #<#, OPERATOR 2 #<=#, OPERATOR 3 #=#, OPERATOR 4 #>=#, OPERATOR 5 #>#, FUNCTION 1 pair_cmp(pair, pair);
	CREATE TABLE pairs WITH (parallel_workers = 3) AS SELECT i % 100 AS g, row(i % 7)::pair AS v, repeat('x', 50) AS p FROM generate_series(1, 40000) AS i;
	ANALYZE pairs;));
fault($node, 'device_memory');
stats_reset($node);
same_rows($node, "$parallel SET temp_file_limit = '20MB';", 'SELECT * FROM pairs ORDER BY g, v;', q(a user's comparison function));
is(fallbacks($node), '{"device memory exhausted": 1}', q(a user's comparison function: fallbacks));
fault($node, undef);
$node->safe_psql('postgres', 'DROP TABLE pairs; DROP TYPE pair CASCADE');

# ... and where it does not
like(rows_of($node, "$force $serial SET temp_file_limit = '1MB'; SET work_mem = '1MB';", 'SELECT * FROM t ORDER BY t COLLATE "C";'),
	qr/ERROR:  temporary file size exceeds "?temp_file_limit"? \(1024kB\)/, 'PostgreSQL meets temp_file_limit, too');
released($node, 'temp_file_limit');

# After an error the limit is the user's again
fault($node, 'device_memory');
my ($status, $limit, $error) = $node->psql('postgres', "$force $parallel SET temp_file_limit = '300kB'; SET work_mem = '1MB';
	COPY (SELECT * FROM n ORDER BY a, b) TO '/dev/null'; SHOW temp_file_limit;", on_error_stop => 0);
like($error, qr/temp_file_limit"? \(\d+kB\)/, 'a limit of four processes is met');
is($limit, '300kB', 'a limit of four processes: SHOW after the error');
fault($node, undef);
released($node, 'a limit of four processes');

# An index
for my $collation ('C', 'en_US.utf8')
{
	stats_reset($node);
	$node->safe_psql('postgres', qq($force SET temp_file_limit = '512kB'; SET maintenance_work_mem = '256MB'; CREATE INDEX i ON t (t COLLATE "$collation")));
	is(value($node, 'SET enable_seqscan = off; SET enable_bitmapscan = off;'
			. qq(SELECT count(*) FROM (SELECT t FROM t ORDER BY t COLLATE "$collation" OFFSET 0) AS s)), '80000', "index, $collation");
	$node->safe_psql('postgres', 'DROP INDEX i');
	released($node, "index, $collation");
}

#
# Few descriptors: the first sorts have files, all are answered
#
{
	# CUDA has dozens for itself
	my $limit = $cuda ? 150 : 48;
	my $query = 'SELECT * FROM t ORDER BY t COLLATE "C";';
	my $expected = stock($node, $query);
	my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	my @sessions = map { session($node, "$force $serial SET work_mem = '1MB';") } 1 .. ($cuda ? 80 : 25);

	# new processes have these limits
	system_or_bail('prlimit', '--pid', $postmaster, "--nofile=40:$limit");
	end_service($node);
	wait_ready($node);
	like(slurp_file('/proc/' . service_pid($node) . '/limits'), qr/^Max open files +$limit +$limit /m, 'the limit is raised');
	stats_reset($node);
	$_->send($query) for @sessions;
	same_order($_->receive, $expected, 'few descriptors: rows') for @sessions;
	is(join('', map { $_->errors } @sessions), '', 'few descriptors: no error');
	like(fallbacks($node), qr/"too many open files": [1-9]/, 'few descriptors: fallbacks');
	$_->quit for @sessions;
	released($node, 'few descriptors');
	same_counted($node, $serial, $query, 'descriptors are free again');
}

$node->stop;
done_testing();
