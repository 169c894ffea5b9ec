# What tap/plans_calls runs: queries with a noisy expression in all places.
#
# A noisy expression has its argument's value.  It notes that it was called, or raises an error for one
# value.  A template has places for such expressions:
#
#	{x}		an expression, of type int
#	{=5}	the same of a constant, which is a parameter if the statement is prepared
#	{,x}	one more column of a select list, or nothing
#	{&x}	a condition and AND, or nothing
#	{x&}	the same, AND first
#	{%x}	an aggregate: sum(), or one that is noisy
#
# and @B or @C where a base relation goes: columns a, b, t.  A query is a base in a template, with noise
# at one or two of the places of both.  Queries return the same rows with each right plan, if they are right:
# rows that are equal in what orders them, or chooses some of them, are equal in all.

package GpusortCalls;

use strict;
use warnings;

use FuzzRandom;

use base 'Exporter';
our @EXPORT = qw(calls_setup calls_queries calls_notices);

# ---- what queries need ----

# Values that stand for a place: 1001 and 1003 are alone in their groups, 53 is the third of its group,
# 61 the first of two, 5 one of many; -3 comes first, and NULL last
my %victims = (lone => '1001, 1003', third => '53', pair => '61', many => '5', first => '-3');

sub calls_setup
{
	my $sql = <<'SQL';
CREATE FUNCTION v(int) RETURNS int LANGUAGE plpgsql COST 1 AS 'BEGIN PERFORM calls_note(''v'', $1); RETURN $1; END';
CREATE FUNCTION v_strict(int) RETURNS int STRICT LANGUAGE plpgsql COST 1 AS 'BEGIN PERFORM calls_note(''v_strict'', $1); RETURN $1; END';
CREATE FUNCTION v_sql(int) RETURNS int LANGUAGE sql AS 'SELECT v($1)';
CREATE FUNCTION v_sql_kept(int) RETURNS int LANGUAGE sql STRICT SET work_mem = '5MB' AS 'SELECT v($1)';
CREATE OPERATOR ~@ (FUNCTION = v, RIGHTARG = int);
CREATE TYPE boxed AS (n int);
CREATE FUNCTION box_noisy(int) RETURNS boxed LANGUAGE plpgsql COST 1 AS 'BEGIN PERFORM calls_note(''box'', $1); RETURN ROW($1)::boxed; END';
CREATE CAST (int AS boxed) WITH FUNCTION box_noisy(int);
CREATE FUNCTION is_v(int) RETURNS bool LANGUAGE plpgsql COST 1 AS 'BEGIN PERFORM calls_note(''is_v'', $1); RETURN true; END';
CREATE FUNCTION is_v_cheap(int) RETURNS bool LANGUAGE plpgsql COST 0.5 AS 'BEGIN PERFORM calls_note(''is_v_cheap'', $1); RETURN $1 IS DISTINCT FROM 4; END';
CREATE FUNCTION v_check(int) RETURNS bool LANGUAGE plpgsql COST 1 AS 'BEGIN PERFORM calls_note(''check'', $1); RETURN true; END';
CREATE DOMAIN noisy_int AS int CHECK (v_check(VALUE));
CREATE FUNCTION leaky(int) RETURNS bool LANGUAGE plpgsql COST 1 AS 'BEGIN PERFORM calls_note(''leaky'', $1); RETURN $1 IS DISTINCT FROM 9; END';
CREATE FUNCTION raise_null(int) RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql COST 1 AS 'BEGIN IF $1 IS NULL THEN RAISE ''raised at NULL''; END IF; RETURN $1; END';
CREATE FUNCTION v_step(bigint, int) RETURNS bigint LANGUAGE plpgsql COST 1 AS 'BEGIN PERFORM calls_note(''step'', $2); RETURN coalesce($1, 0) + coalesce($2, 0); END';
CREATE FUNCTION v_strict_step(bigint, int) RETURNS bigint STRICT LANGUAGE plpgsql COST 1 AS 'BEGIN PERFORM calls_note(''strict step'', $2); RETURN $1 + $2; END';
CREATE FUNCTION plain_step(bigint, int) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT coalesce($1, 0) + coalesce($2, 0)';
CREATE FUNCTION v_final(bigint) RETURNS bigint LANGUAGE plpgsql COST 1 AS 'BEGIN PERFORM calls_note(''final'', $1::int); RETURN $1; END';
CREATE FUNCTION v_combine(bigint, bigint) RETURNS bigint LANGUAGE plpgsql COST 1 AS 'BEGIN PERFORM calls_note(''combine'', 0); RETURN $1 + $2; END';
CREATE AGGREGATE sum_v_step(int) (sfunc = v_step, stype = bigint);
CREATE AGGREGATE sum_v_strict(int) (sfunc = v_strict_step, stype = bigint, initcond = '0');
CREATE AGGREGATE sum_v_final(int) (sfunc = plain_step, stype = bigint, finalfunc = v_final);
CREATE AGGREGATE sum_v_combine(int) (sfunc = v_step, stype = bigint, combinefunc = v_combine, finalfunc = v_final, parallel = safe);
CREATE FUNCTION r_final(bigint) RETURNS bigint IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql COST 1 AS 'BEGIN IF $1 IN (1003, 2, 5) THEN RAISE ''final raised at %'', $1; END IF; RETURN $1; END';
CREATE AGGREGATE sum_r_final(int) (sfunc = plain_step, stype = bigint, finalfunc = r_final);
SQL
	for my $name (sort keys %victims)
	{
		# $$1: one value is raised for each victim's name, so that the first row that raises does not matter
		$sql .= <<SQL;
CREATE FUNCTION raise_$name(int) RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql COST 1 AS 'BEGIN IF \$1 IN ($victims{$name}) THEN RAISE ''raised at $name''; END IF; RETURN \$1; END';
CREATE FUNCTION raise_v_$name(int) RETURNS int PARALLEL SAFE LANGUAGE plpgsql COST 1 AS 'BEGIN IF \$1 IN ($victims{$name}) THEN RAISE ''raised at $name''; END IF; RETURN \$1; END';
CREATE FUNCTION is_not_$name(int) RETURNS bool IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql COST 1 AS 'BEGIN IF \$1 IN ($victims{$name}) THEN RAISE ''raised at $name''; END IF; RETURN true; END';
CREATE FUNCTION r_step_$name(bigint, int) RETURNS bigint IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql COST 1 AS 'BEGIN IF \$2 IN ($victims{$name}) THEN RAISE ''step raised at $name''; END IF; RETURN coalesce(\$1, 0) + coalesce(\$2, 0); END';
CREATE AGGREGATE sum_r_step_$name(int) (sfunc = r_step_$name, stype = bigint);
CREATE DOMAIN not_$name AS int CHECK (VALUE NOT IN ($victims{$name}));
SQL
	}
	return $sql . <<'SQL';
CREATE TABLE u (a int, b int, t text COLLATE "C") WITH (fillfactor = 20);
INSERT INTO u (a, b) SELECT i % 23, (i * i) % 37 FROM generate_series(1, 120) AS i;
INSERT INTO u (a, b) SELECT i % 23, (i * i) % 37 FROM generate_series(1, 20) AS i;
INSERT INTO u (a, b) VALUES (1000, 1), (1001, 2), (1002, 1003), (-3, -3), (NULL, 5), (7, NULL), (NULL, NULL), (50, 51), (50, 52), (50, 53), (60, 61), (60, 62);
UPDATE u SET t = 't' || coalesce((a * 7 + b) % 11, 3);
VACUUM FULL ANALYZE u;
CREATE TABLE p (a int, b int, t text COLLATE "C") PARTITION BY HASH (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE p2 PARTITION OF p FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO p SELECT * FROM u;
CREATE TABLE rls AS SELECT * FROM u;
ALTER TABLE rls ENABLE ROW LEVEL SECURITY;
CREATE POLICY leaky_rows ON rls USING (leaky(a));
CREATE VIEW barrier WITH (security_barrier) AS SELECT a, b, t FROM u WHERE leaky(b);
CREATE VIEW barrier_several WITH (security_barrier) AS
	SELECT * FROM (SELECT a, b, t, row_number() OVER (PARTITION BY a ORDER BY b, t) AS r FROM u) AS w WHERE r > 1;
-- no statistics: the number of groups is a guess
CREATE TABLE unknown (a int, b int, t text COLLATE "C");
INSERT INTO unknown SELECT * FROM u;
CREATE TABLE target (a int, b bigint);
ANALYZE p, rls;
CREATE ROLE calls_role;
GRANT ALL ON ALL TABLES IN SCHEMA public TO calls_role;
GRANT CREATE ON SCHEMA public TO calls_role;
GRANT pg_write_server_files TO calls_role;
SQL
}

# In place of the library: a NOTICE for each call
sub calls_notices
{
	return <<'SQL';
CREATE FUNCTION calls_note(text, int) RETURNS void LANGUAGE plpgsql AS 'BEGIN RAISE NOTICE ''%(%)'', $1, $2; END';
CREATE FUNCTION calls_list() RETURNS text LANGUAGE sql AS 'SELECT ''see the notices''::text';
SQL
}

# ---- noise ----

# Of an int expression, the same value
my @volatile = (
	'v(%s)', 4, 'v_strict(%s)', 1, 'v_sql(%s)', 1, 'v_sql_kept(%s)', 1, '(~@ (%s))', 1, '(((%s)::boxed).n)', 1,
	'((%s)::noisy_int::int)', 2, '(SELECT v(%s))', 1, '(SELECT v(w.a) FROM (SELECT %s AS a OFFSET 0) AS w)', 1,
	'CASE WHEN (%s) %% 2 = 0 THEN v(%1$s) ELSE %1$s END', 1, 'coalesce(v(%s), -7)', 1,
	"CASE WHEN nextval('calls_seq') > 0 THEN %s END", 1, 'CASE WHEN random() >= 0 THEN %s END', 1,
	'CASE WHEN pg_try_advisory_lock(pg_backend_pid(), %s) THEN %1$s END', 1);
my @raising = (
	(map { ("raise_$_(%s)", 1, "raise_v_$_(%s)", 0.5, "((%s)::not_$_\::int)", 0.5) } sort keys %victims),
	'raise_null(%s)', 1, '((%s) + 0 / ((%1$s) - 1001))', 2, '((%s) + 0 / ((%1$s) - 53))', 1, '((%s) + 0 / ((%1$s) - 61))', 1,
	'(SELECT raise_lone(%s))', 0.5);
my @noisy_aggregates = (
	'sum_v_step', 2, 'sum_v_strict', 1, 'sum_v_final', 2, 'sum_v_combine', 1, 'sum_r_final', 1,
	map { ("sum_r_step_$_", 0.5) } sort keys %victims);

# A noisy expression of an expression.  A constant is no row's value.
sub noisy
{
	my ($x) = @_;
	my $format = weighted(@volatile, $x =~ /^\d+$/ ? () : @raising);

	return sprintf $format, $x;
}

# PostgreSQL evaluates conditions in the order of their costs, and those of one cost as they are written
sub noisy_condition
{
	my ($x) = @_;
	my $condition = weighted('is_v(%s)', 4, 'is_v_cheap(%s)', 1, (map { ("is_not_$_(%s)", 0.5) } sort keys %victims),
		'NOISY IS DISTINCT FROM -1', 3, 'NOISY IS DISTINCT FROM 4', 1, 'NOISY > -100', 1, 'coalesce(NOISY, 0) % 3 <> 1', 1);

	return $condition =~ s/%s/$x/r =~ s/NOISY/noisy($x)/er;
}

# ---- base relations ----

my @base = (
	'u AS u', 3, 'p AS u', 1, 'rls AS u', 1, 'barrier AS u', 1, 'unknown AS u', 1,
	'(SELECT a, b, t FROM u UNION ALL SELECT b, {a}, t FROM u) AS u', 1,
	'(SELECT {a} AS a, b, t FROM u UNION SELECT b, {a}, t FROM u) AS u', 1,
	'(SELECT {a} AS a, b, t FROM u EXCEPT SELECT b, a, t FROM u WHERE {&a}a > 5) AS u', 1,
	'(SELECT a, {b} AS b, t FROM u INTERSECT ALL SELECT a, b, t FROM u WHERE {&a}b < 30) AS u', 1,
	'(SELECT a, b, t FROM u WHERE {&a}true OFFSET 0) AS u', 1,
	'(SELECT {a} AS a, {b} AS b, t FROM u) AS u', 1,
	'(SELECT DISTINCT a, {b} AS b, t FROM u WHERE {&b}true) AS u', 1,
	'(SELECT {a} AS a, {b} AS b, t FROM (SELECT DISTINCT a, b, t FROM u) AS d) AS u', 1,
	'(SELECT DISTINCT ON (a) a, {b} AS b, t FROM u ORDER BY a, b DESC, t) AS u', 1,
	'(SELECT a, b, t FROM u GROUP BY a, b, t HAVING {&a}count(*) > {=0}) AS u', 1,
	'(SELECT a, count(*)::int AS b, min(t) AS t{,a} FROM u GROUP BY a HAVING count(*) > {=1}{a&}) AS u', 1,
	'(SELECT a, b, t FROM (SELECT a, {b} AS b, t, row_number() OVER (PARTITION BY a ORDER BY b, t) AS r FROM u) AS w WHERE {&a}r <= {=2}) AS u', 1,
	'(SELECT a, b, t FROM (SELECT a, {b} AS b, t{,a}, row_number() OVER (PARTITION BY a ORDER BY b, t) AS r FROM u) AS w WHERE {&a}r > {=1}{b&}) AS u', 1,
	'(SELECT a, b, t FROM (SELECT a, {b} AS b, t, rank() OVER (PARTITION BY a ORDER BY b) AS r FROM u) AS w WHERE {&b}r < {=3}) AS u', 1,
	'(SELECT a, {b} AS b, t FROM (SELECT a, {b} AS b, t, count(*) OVER (PARTITION BY a) AS r FROM u) AS w WHERE {&a}r > {=1}{b&}) AS u', 1,
	'(SELECT a, {b} AS b, t FROM u ORDER BY b, a, t LIMIT {=40} OFFSET {=3}) AS u', 1,
	'(SELECT a, b, t FROM barrier_several AS w WHERE {&a}true) AS u', 1,
	'(SELECT x.a, y.b, y.t FROM u AS x JOIN u AS y ON x.a = y.b AND x.t = y.t{x.a&}) AS u', 1,
	'(WITH c AS MATERIALIZED (SELECT a, {b} AS b, t FROM u WHERE {&a}true) SELECT * FROM c) AS u', 1,
	'(WITH c AS (SELECT a, {b} AS b, t FROM u WHERE {&a}true) SELECT * FROM c) AS u', 1,
	"(VALUES (1, 2, 't1'), (1, {3}, 't2'), (1001, {1003}, 't'), (2, NULL, 't4'), (2, 5, 't')) AS u (a, b, t)", 0.5,
	'(SELECT x.a, l.b, l.t FROM (SELECT DISTINCT a FROM u WHERE {&a}a < 12) AS x, LATERAL (SELECT {y.b} AS b, y.t FROM u AS y WHERE y.a = x.a ORDER BY b, t LIMIT {=3}) AS l) AS u', 1,
	'(SELECT g % 7 AS a, {g % 5} AS b, NULL::text AS t FROM generate_series(1, {=60}) AS g) AS u', 0.5);

# ---- queries ----

# An "o" says that the rows' order is that of the query
my @top = (
	# numbers of rows, groups and values
	'SELECT count(*) FROM @B WHERE {&a}true',
	'SELECT count(*) FROM (SELECT {a} AS x FROM @B) AS s',
	'SELECT count(*) FROM (SELECT {a} AS x FROM (SELECT DISTINCT {a} AS a FROM @B) AS d) AS s',
	'SELECT count(*) FROM (SELECT {a} AS x FROM (SELECT DISTINCT a, b FROM @B) AS d WHERE {&a}true) AS s',
	'SELECT count(*) FROM (SELECT a{,a} FROM (SELECT DISTINCT a, {b} AS b FROM @B) AS d OFFSET 0) AS s',
	'SELECT count(*) FROM (SELECT {a} FROM (SELECT a FROM @B UNION SELECT {b} FROM @C) AS d) AS s',
	'SELECT count(*) FROM (SELECT {a} FROM (SELECT a FROM @B EXCEPT SELECT {b} FROM @C) AS d) AS s',
	'SELECT count(*) FROM (SELECT {1} FROM (SELECT a FROM @B GROUP BY a HAVING {&a}true) AS d) AS s',
	'SELECT count(*) FROM (SELECT DISTINCT ON (a) {b} AS x, a FROM @B ORDER BY a, b, t) AS s',
	'SELECT count({a}) FROM (SELECT DISTINCT a{,a} FROM @B) AS s',
	'SELECT count(*) FILTER (WHERE {&a}a > 2) FROM (SELECT DISTINCT a FROM @B) AS s',
	'SELECT count(*), {1} FROM (SELECT DISTINCT a, b FROM @B) AS s',
	'SELECT {count(*)::int} FROM (SELECT DISTINCT a, b FROM @B) AS s HAVING {&1}count(*) > {=1}{2&}',
	'SELECT count(DISTINCT {a}) FROM @B',
	'SELECT {count(DISTINCT a)::int} FROM @B WHERE {&b}true HAVING {&1}true',
	'SELECT count(DISTINCT a), {%b} FROM @B',
	'SELECT count(DISTINCT {a}), sum(DISTINCT {a}), count(DISTINCT a) FILTER (WHERE {&b}true) FROM @B',
	'SELECT a, count(DISTINCT {b}){,a} FROM @B GROUP BY a HAVING {&a}count(*) > {=1} ORDER BY a o',
	'SELECT a, sum(DISTINCT {b}), max({b}) FROM @B GROUP BY a ORDER BY a o',
	# groups
	'SELECT {a}, count(*) FROM @B GROUP BY a HAVING {&a}count(*) > {=1}{a&} ORDER BY a o',
	'SELECT a, {count(*)::int} FROM @B GROUP BY a HAVING {&count(*)::int}count(*) >= {=2}{count(*)::int&}',
	'SELECT a, b, count(*){,a} FROM @B GROUP BY a, b HAVING count(*) = {=1} AND {&b}true ORDER BY a, b o',
	'SELECT a, count(*){,a} FROM @B GROUP BY a ORDER BY count(*) DESC, a LIMIT {=5} o',
	'SELECT {a}, {count(*)::int} FROM @B GROUP BY a ORDER BY count(*) DESC, a LIMIT {=5} o',
	'SELECT a, count(*) FROM @B GROUP BY a ORDER BY count(*) DESC, {a} LIMIT {=5} OFFSET {=1} o',
	'SELECT a, count(*) FROM @B GROUP BY a HAVING {&a}true ORDER BY count(*) DESC, a LIMIT {=4} o',
	'SELECT * FROM (SELECT a, count(*) AS n{,a} FROM @B GROUP BY a) AS s WHERE {&a}n > {=1}{a&} ORDER BY n DESC, a LIMIT {=5} o',
	'SELECT {a}, b, count(*) FROM @B GROUP BY {a}, b',
	'SELECT a, {%b} FROM @B GROUP BY a HAVING {%b} > {=3} ORDER BY a o',
	'SELECT a, count(*), {%b} FROM @B GROUP BY a HAVING count(*) > {=1} ORDER BY a o',
	'SELECT a, {%b} FROM @B GROUP BY a HAVING {&a}count(*) > {=1} ORDER BY a LIMIT {=4} o',
	"SELECT a, string_agg({b}::text, ',' ORDER BY b, t), {%b} FROM \@B GROUP BY a ORDER BY a o",
	"SELECT string_agg(DISTINCT {a}::text, ','), count(*) FILTER (WHERE {&b}true) FROM \@B",
	'SELECT a, array_agg({b} ORDER BY {b}, t) FROM @B GROUP BY a HAVING {&a}true',
	'SELECT a, count(*) FILTER (WHERE {&b}b > 3), {%b} FROM @B GROUP BY a ORDER BY a o',
	'SELECT {a} FROM @B GROUP BY a HAVING {&a}true ORDER BY a LIMIT {=6} o',
	'SELECT {a} FROM @B GROUP BY a',
	'SELECT a, b, count(*), {%b} FROM @B GROUP BY ROLLUP (a, b) HAVING {&a}count(*) > {=1}',
	'SELECT a + 0, count(*), {%b} FROM @B WHERE {&a}true GROUP BY a + 0 HAVING {&a + 0}count(*) > {=1} ORDER BY a + 0 o',
	'SELECT a, count(DISTINCT b), {%b}, max({b}), sum({a}) FILTER (WHERE {&b}true) FROM @B GROUP BY a ORDER BY a o',
	'SELECT a, {%DISTINCT b}, count(DISTINCT b) FROM @B GROUP BY a ORDER BY a o',
	'SELECT {%DISTINCT a}, {%b ORDER BY b, t} FROM @B',
	'SELECT a, {%b} FILTER (WHERE {&b}true), mode() WITHIN GROUP (ORDER BY {b}) FROM @B GROUP BY a',
	# DISTINCT
	'SELECT DISTINCT a + b FROM @B WHERE {&a}true ORDER BY a + b LIMIT {=5} o',
	'SELECT count(*) FROM (SELECT {1} FROM (SELECT DISTINCT lower(t), a + 0 FROM @B WHERE {&b}true) AS d) AS s',
	'SELECT DISTINCT {a}, b FROM @B WHERE {&b}true',
	'SELECT DISTINCT a{,a} FROM @B ORDER BY a LIMIT {=4} o',
	'SELECT {a} FROM (SELECT DISTINCT a, t FROM @B) AS s WHERE {&a}true ORDER BY a, t LIMIT {=7} o',
	'SELECT DISTINCT ON (a) a, {b} FROM @B ORDER BY a, b, t o',
	'SELECT DISTINCT ON (a) a, b FROM @B ORDER BY a, {b} DESC, t LIMIT {=9} o',
	# windows
	'SELECT a, x{,b} FROM (SELECT a, b, {b} AS x, row_number() OVER (PARTITION BY a ORDER BY b, t) AS r FROM @B) AS s WHERE {&a}r > {=1}{b&}',
	'SELECT count(*) FROM (SELECT a, {b} AS x, row_number() OVER (PARTITION BY a ORDER BY b, t) AS r FROM @B) AS s WHERE {&x}r > {=1}',
	'SELECT count(*) FROM (SELECT a, {b} AS x{,a}, count(*) OVER (PARTITION BY a) AS r FROM @B OFFSET 0) AS s WHERE {&x}r >= {=2}{x&}',
	'SELECT a, b FROM (SELECT a, b{,b}, row_number() OVER (PARTITION BY a ORDER BY b, t) AS r FROM @B) AS s WHERE {&a}r <= {=2}{b&}',
	'SELECT a, b, x FROM (SELECT a, b, {a} AS x, row_number() OVER (PARTITION BY a ORDER BY b, t) AS r FROM @B) AS s WHERE r = {=1}{a&}',
	'SELECT a, b, r, x FROM (SELECT a, b, {b} AS x, rank() OVER (PARTITION BY a ORDER BY b) AS r FROM @B) AS s WHERE {&b}r < {=3}',
	'SELECT a, b, r, x FROM (SELECT a, b, {b} AS x, dense_rank() OVER (PARTITION BY a ORDER BY b) AS r FROM @B) AS s WHERE {&b}r >= {=2}',
	'SELECT a, b, r FROM (SELECT a, b{,a}, row_number() OVER (ORDER BY b, a, t) AS r FROM @B) AS s WHERE {&a}r <= {=7} ORDER BY r o',
	'SELECT a, r FROM (SELECT a, b{,a}, row_number() OVER (PARTITION BY a ORDER BY b, t) AS r FROM @B) AS s WHERE r BETWEEN {=2} AND {=3}{a&}',
	'SELECT b, q FROM (SELECT b, {%b} OVER (PARTITION BY a ORDER BY b, t) AS q, row_number() OVER (PARTITION BY a ORDER BY b, t) AS r FROM @B) AS s WHERE r > {=1}',
	'SELECT b, q FROM (SELECT b, {%b} OVER (PARTITION BY a ORDER BY b, t) AS q, row_number() OVER (PARTITION BY a ORDER BY b, t) AS r FROM @B) AS s WHERE r <= {=2}',
	'SELECT sum(q) FROM (SELECT sum({b}) OVER (PARTITION BY a) AS q, count(*) OVER (PARTITION BY a) AS r FROM @B) AS s WHERE r > {=1}',
	'SELECT q FROM (SELECT sum(b) FILTER (WHERE {&b}true) OVER (PARTITION BY a) AS q, count(*) OVER (PARTITION BY a) AS r FROM @B) AS s WHERE r > {=1}',
	'SELECT a, lag({b}, {=1}) OVER (PARTITION BY a ORDER BY b, t), lead(b, {=2}, {a}) OVER (PARTITION BY a ORDER BY b, t) FROM @B',
	'SELECT b, q FROM (SELECT b, lag({b}, {=1}) OVER (PARTITION BY a ORDER BY b, t) AS q, row_number() OVER (PARTITION BY a ORDER BY b, t) AS r FROM @B) AS s WHERE r > {=1}',
	'SELECT first_value({b}) OVER w, last_value(b) OVER w, nth_value({b}, {=2}) OVER w, ntile({=3}) OVER w FROM @B WINDOW w AS (PARTITION BY a ORDER BY b, t)',
	'SELECT count(*) FROM (SELECT row_number() OVER (PARTITION BY {a} ORDER BY {b}, t) AS r FROM @B) AS s WHERE r > {=1}',
	'SELECT q, r FROM (SELECT rank() OVER (PARTITION BY b ORDER BY a, t) AS q, row_number() OVER (PARTITION BY a ORDER BY b, t) AS r{,a} FROM @B) AS s WHERE {&q::int}r > {=1}{q::int&}',
	'SELECT q, r FROM (SELECT rank() OVER (PARTITION BY b ORDER BY a) AS q, rank() OVER (PARTITION BY a ORDER BY b) AS r{,a} FROM @B) AS s WHERE q <= {=2} AND {&r::int}r <= {=1}',
	'SELECT a, n, r FROM (SELECT a, count(*) AS n, rank() OVER (ORDER BY count(*) DESC, a) AS r{,a} FROM @B GROUP BY a HAVING {&a}count(*) > {=1}) AS s WHERE r <= {=6} ORDER BY r o',
	'WITH c AS MATERIALIZED (SELECT a, {b} AS x, row_number() OVER (PARTITION BY a ORDER BY b, t) AS r FROM @B) SELECT count(*) FROM c WHERE {&x}r > {=1}',
	'SELECT DISTINCT a, r FROM (SELECT a{,b}, count(*) OVER (PARTITION BY a) AS r FROM @B) AS s WHERE {&a}r > {=1}',
	# percentiles
	'SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY {a}) FROM @B WHERE {&b}true',
	'SELECT percentile_cont({=1}::float8 / 2) WITHIN GROUP (ORDER BY a), {%b}, {count(*)::int} FROM @B HAVING {&1}true',
	'SELECT a, percentile_disc(0.5) WITHIN GROUP (ORDER BY {b}){,a} FROM @B GROUP BY a HAVING {&a}count(*) > {=1} ORDER BY a o',
	'SELECT a, percentile_disc(ARRAY[0.2, 0.7]) WITHIN GROUP (ORDER BY b), {%b}, count(*) FILTER (WHERE {&b}true) FROM @B GROUP BY a ORDER BY a LIMIT {=5} o',
	# ORDER BY and LIMIT
	'SELECT a, b{,a} FROM @B ORDER BY a, b, t LIMIT {=3} o',
	'SELECT {a}, b FROM @B WHERE {&b}true ORDER BY b, a, t o',
	'SELECT a, b FROM @B ORDER BY {b}, a, t LIMIT {=5} OFFSET {=2} o',
	'SELECT a, b{,b} FROM @B ORDER BY a, b, t FETCH FIRST {=3} ROWS WITH TIES',
	'SELECT count(*) FROM (SELECT a FROM @B ORDER BY {b}, a) AS s',
	'SELECT count(*) FROM (SELECT {a} AS x FROM @B ORDER BY b, a, t LIMIT {=9}) AS s WHERE {&x}true',
	'SELECT x FROM (SELECT {a} AS x FROM (SELECT a FROM @B ORDER BY b, a, t) AS q) AS s LIMIT {=4} o',
	# subqueries
	'SELECT EXISTS (SELECT {a} FROM @B WHERE {&b}true ORDER BY {b}, a, t)',
	'SELECT (SELECT count(*) FROM @C WHERE u.a = q.b{u.b&}) FROM (SELECT b FROM @B) AS q',
	'SELECT q.a, (SELECT count(*) FROM (SELECT DISTINCT {u.a}, u.b FROM @C WHERE u.b > q.a) AS z) FROM (SELECT DISTINCT a FROM @B WHERE a < 9) AS q',
	'SELECT count(*) FROM @B WHERE u.a IN (SELECT {a} FROM (SELECT a FROM u GROUP BY a HAVING count(*) > {=1}{a&}) AS h)',
	'SELECT ARRAY(SELECT {a} FROM @B WHERE {&a}true ORDER BY a, b, t LIMIT {=6})',
	'SELECT g, s.* FROM generate_series(1, {=3}) AS g, LATERAL (SELECT a, count(*){,a} FROM @B WHERE a % g = 0 GROUP BY a HAVING count(*) > {=1}) AS s',
	'SELECT g, s.* FROM generate_series(1, {=3}) AS g LEFT JOIN LATERAL (SELECT x, r FROM (SELECT {b} AS x, row_number() OVER (PARTITION BY a ORDER BY b, t) AS r FROM @B) AS w WHERE r > {=1} OFFSET 0) AS s ON s.r > g',
	# set operations, joins
	'SELECT count(*) FROM (SELECT {a} FROM @B INTERSECT SELECT {b} FROM @C) AS s',
	'SELECT {a}, b FROM @B EXCEPT ALL SELECT {b}, a FROM @C',
	'SELECT {a} AS a FROM @B UNION SELECT {b} FROM @C ORDER BY a LIMIT {=4} o',
	'SELECT count(*) FROM (SELECT a, b FROM @B) AS x JOIN (SELECT a, b{,a} FROM @C) AS y ON x.a = y.b{x.b&}',
	'SELECT count(*) FROM (SELECT {a} AS a FROM (SELECT DISTINCT a FROM @B) AS d) AS x LEFT JOIN (SELECT DISTINCT b FROM @C) AS y ON x.a = y.b',
	# arrays
	'SELECT a, gpu_sort_array(array_agg({b})){,a} FROM @B GROUP BY a HAVING {&a}true ORDER BY a LIMIT {=5} o',
	'SELECT gpu_sort_array(ARRAY[{a}, {b}, 3]){,a} FROM @B WHERE {&a}true ORDER BY a, b, t LIMIT {=5} o',
	'SELECT count(*) FROM (SELECT gpu_sort_array(ARRAY[a, b]) AS x{,a} FROM @B OFFSET 0) AS s WHERE {&1}x[1] > {=3}',
	'SELECT count(*) FROM (SELECT CASE WHEN a > 5 THEN gpu_sort_array(ARRAY[{a}, b]) END AS x FROM @B OFFSET 0) AS s WHERE {&1}x[1] > {=3}',
	'SELECT a, coalesce(nullif(b, 3)::text, gpu_sort_array(ARRAY[{a}, 2])::text) FROM @B WHERE {&a}(a > 5 OR (gpu_sort_array(ARRAY[{b}, a]))[1] > 3)',
	'SELECT a, b{,b} FROM @B WHERE {&a}(gpu_sort_array(ARRAY[{a}, b]))[1] > {=2}{b&}',
	'SELECT a, array_agg(gpu_sort_array(ARRAY[{b}, a, 3]) ORDER BY b, t), sum((gpu_sort_array(ARRAY[b, {a}]))[1]) FILTER (WHERE {&b}b > 4) FROM @B GROUP BY a',
	'SELECT a, (gpu_sort_array(array_agg({b})))[2]{,a} FROM @B GROUP BY a HAVING {&a}(gpu_sort_array(array_agg(b)))[1] > {=1}{a&}',
	'SELECT a, unnest(gpu_sort_array(ARRAY[{a}, b])){,a} FROM @B WHERE {&a}true',
	'SELECT (gpu_sort_array(ARRAY[row_number() OVER (PARTITION BY a ORDER BY b, t)::int, {b}]))[1]{,b} FROM @B',
	# what changes tables, or locks rows
	'INSERT INTO target SELECT a, count(*) FROM @B GROUP BY a HAVING {&a}count(*) > {=1} RETURNING {target.a}, b',
	'INSERT INTO target SELECT (gpu_sort_array(ARRAY[{a}, b]))[1], {b} FROM @B RETURNING a, b',
	'SELECT a, b{,a} FROM u WHERE {&a}true ORDER BY {b}, a, t LIMIT {=7} FOR SHARE',
	'INSERT INTO target SELECT {a}, r FROM (SELECT a{,b}, row_number() OVER (PARTITION BY a ORDER BY b, t) AS r FROM @B) AS s WHERE {&a}r > {=1} RETURNING a, b',
	'DELETE FROM own AS d USING (SELECT a, b, t{,b}, row_number() OVER (PARTITION BY a ORDER BY b, t) AS r FROM @B) AS s WHERE d.a = s.a AND d.b = s.b AND {&s.a}s.r > {=1}{d.b&} RETURNING d.a, d.b');

my $place = qr/\{([^{}]+)\}/;

# A template with its bases in it
sub expand
{
	my ($top, @bases) = @_;
	my $text = $top;

	$text =~ s/\@B/$bases[0]/;
	$text =~ s/\@C/$bases[1]/;
	return $text;
}

# A base relation, now and then with another one below
sub random_base
{
	my $base = weighted(@base);

	if (chance(0.2))
	{
		my $below = weighted(@base);

		$base =~ s/FROM u(?= WHERE| GROUP| ORDER| UNION| EXCEPT| INTERSECT|\))/FROM $below/;
	}
	return $base;
}

# Put noise into some of the places, and nothing, or parameters, into the others
sub fill
{
	my ($text, $chosen, $parameters, $is_ordered) = @_;
	my $i = 0;
	my $columns = 0;

	$text =~ s{$place}{
		my $what = $1;
		my $is_noisy = $chosen->{ $i++ };
		my $result;

		if ($what =~ /^,(.*)/)
		{
			my $list = weighted(noisy($1), 10, 'unnest(ARRAY[' . noisy($1) . '])', 1, $is_ordered ? ("nextval('calls_seq')", 1) : ());
			$result = $is_noisy ? ", $list AS more" . ++$columns : '';
		}
		elsif ($what =~ /^&(.*)/) { $result = $is_noisy ? noisy_condition($1) . ' AND ' : ''; }
		elsif ($what =~ /^(.*)&$/) { $result = $is_noisy ? ' AND ' . noisy_condition($1) : ''; }
		elsif ($what =~ /^%(.*)/) { $result = ($is_noisy ? weighted(@noisy_aggregates) : 'sum') . "($1)"; }
		elsif ($what =~ /^=(.*)/)
		{
			if ($is_noisy) { $result = noisy($1); }
			elsif ($parameters) { push @$parameters, $1; $result = '$' . @$parameters; }
			else { $result = $1; }
		}
		else { $result = $is_noisy ? noisy($what) : $what; }
		$result;
	}ge;
	return $text;
}

# How it is run: statements, and what an error may have left to be cleaned up
sub set_statements
{
	my ($q) = @_;
	# which rows come first is known only in an order
	my $n = $q->{stops} ? between(1, 6) : 1000;
	my @run;

	$q->{cleanup} = [];
	if ($q->{mode} eq 'undone')
	{
		@run = ('BEGIN', $q->{text});
		$q->{cleanup} = ['ROLLBACK'];
	}
	elsif ($q->{mode} eq 'cursor')
	{
		my $hold = chance(0.2);
		my $scroll = $q->{ordered} && chance(0.2);

		@run = ('BEGIN', 'DECLARE c ' . ($scroll ? 'SCROLL ' : '') . 'CURSOR ' . ($hold ? 'WITH HOLD ' : '') . "FOR $q->{text}",
			$hold ? 'COMMIT' : (), "FETCH $n FROM c", $scroll ? 'FETCH BACKWARD 3 FROM c' : (), "FETCH $n FROM c", 'CLOSE c');
		$q->{cleanup} = $hold ? [ 'ROLLBACK', 'CLOSE c' ] : ['ROLLBACK'];
	}
	elsif ($q->{mode} eq 'prepared')
	{
		my $execute = sub { 'EXECUTE q' . (@_ ? '(' . join(', ', @_) . ')' : ''); };
		my @values = @{ $q->{parameters} };

		@run = ('PREPARE q' . (@values ? '(' . join(', ', map { 'int' } @values) . ')' : '') . " AS $q->{text}",
			$execute->(@values), $execute->(map { chance(0.2) ? 'NULL' : $_ + 1 } @values));
		$q->{cleanup} = ['DEALLOCATE ALL'];
	}
	elsif ($q->{mode} eq 'loop')
	{
		my $keep = "set_config('calls.rows', current_setting('calls.rows') || the_row::text || chr(10), false)";

		@run = ("SET calls.rows = ''", "DO \$loop\$ DECLARE the_row record; n_rows int := 0; BEGIN FOR the_row IN $q->{text} LOOP\n"
			  . "\tPERFORM $keep; n_rows := n_rows + 1; EXIT WHEN n_rows = $n;\nEND LOOP; END \$loop\$", "SELECT current_setting('calls.rows')");
	}
	elsif ($q->{mode} eq 'made')
	{
		@run = ("CREATE TEMP TABLE made AS SELECT * FROM ($q->{text}) AS q", 'SELECT * FROM made');
		$q->{cleanup} = ['DROP TABLE IF EXISTS made'];
	}
	elsif ($q->{mode} eq 'analyze')
	{
		@run = ("DO \$analyze\$ DECLARE the_row record; BEGIN FOR the_row IN EXPLAIN (ANALYZE, TIMING OFF) $q->{text} LOOP END LOOP; END \$analyze\$");
	}
	else
	{
		# not to psql, which does not tell of an error in a COPY
		@run = $q->{mode} eq 'copy' ? "COPY ($q->{text}) TO '/dev/null'" : $q->{text};
	}
	$q->{statements} = \@run;
}

# Other conditions that mean nearly the same
sub vary
{
	my ($text) = @_;

	$text =~ s/(?<!\.)\br > \{=1\}/pick('r > {=1}', 'r > {=1}', 'r >= {=2}', '{=1} < r', 'r = {=2}', 'r <> {=1}', 'r > {=1}::smallint')/ge;
	$text =~ s/count\(\*\) > \{=1\}/pick('count(*) > {=1}', 'count(*) > {=1}', 'count(*) >= {=2}', '{=1} < count(*)', 'count(*) BETWEEN {=2} AND {=5}', 'count(*) = {=1}', 'count(*) < {=6}')/ge;
	$text =~ s/LIMIT \{=\d+\}/LIMIT {=0}/ if chance(0.02);
	return $text;
}

# A query: number, template of a statement, bases, number of places that are certainly noisy
sub make
{
	my ($n, $top, $bases, @certain) = @_;
	my $text = expand($top, @$bases);

	$text = vary($text) unless @certain;
	my $q = { n => $n, parameters => [] };
	my $places = () = $text =~ /$place/g;
	my %chosen = map { $_ => 1 } @certain;

	$q->{ordered} = $text =~ s/ o$//;
	$chosen{ between(0, $places - 1) } = 1 if !@certain || chance(0.15);
	$q->{mode} = weighted('plain', 10, 'cursor', 3, 'prepared', 4, 'loop', 2, 'made', 1, 'copy', 1, 'analyze', 1);
	$q->{mode} = 'undone' if $text =~ /^(INSERT|DELETE)|FOR SHARE$/;
	# gpusort takes all sorts; takes sorts only; has paths that cost nothing, beside hashing; with workers
	$q->{way} = weighted('force', 7, 'sorts_only', 1, 'cheap', 2, 'parallel', 0.7);
	# PostgreSQL 15 sorts the rows of a group inside of an Agg, which gpusort and later versions do below it,
	# before the first group.  And which row of a partition without an order comes first is open.  So where
	# such a query stops early, it is open what it has evaluated; and else, which of two errors comes first.
	$q->{open} = $text =~ /\(DISTINCT |\{%(DISTINCT|\w+ ORDER)|_agg\([^()]*(\(.*?\))?[^()]* ORDER BY|WITHIN GROUP|PARTITION BY a\)/;
	$q->{stops} = $q->{ordered} && !$q->{open};
	# Workers are ahead of a node that stops.  A merge join stops where one side ends, and which of its sides
	# is sorted below it, all of it, is a matter of costs.
	$q->{loose} = ($q->{open} || $q->{way} eq 'parallel') && ($q->{stops} || $text =~ /LIMIT|EXISTS/)
	  || $text =~ /(?<!LEFT )JOIN|\bIN \(/;
	$q->{text} = fill($text, \%chosen, $q->{mode} eq 'prepared' ? $q->{parameters} : undef, $q->{ordered});
	# PostgreSQL lets a leader evaluate a CHECK, which may call what it lets no leader call
	$q->{way} = 'force' if $q->{way} eq 'parallel' && $q->{text} =~ /noisy_int/;
	set_statements($q);
	return $q;
}

# The places of a template without its bases, as numbers in the whole
sub own_places
{
	my ($top, @bases) = @_;
	my $marked = expand($top, map { (my $b = $_) =~ s/$place/{!}/g; $b } @bases);
	my $i = -1;

	return grep { defined } map { $i++; $_ eq '!' ? undef : $i } $marked =~ /$place/g;
}

# n queries: first each place of each template and of each base, then random ones
sub calls_queries
{
	my ($seed, $count) = @_;
	my (@todo, @queries);
	my @bases = map { $base[ 2 * $_ ] } 0 .. @base / 2 - 1;

	srand($seed);
	for my $top (@top)
	{
		for my $at (0 .. (() = $top =~ /$place/g) - 1)
		{
			push @todo, sub {
				my @b = $_[0] % 2 ? (random_base(), random_base()) : ('u AS u', 'u AS u');
				return ($top, \@b, (own_places($top, @b))[$at]);
			} for 1 .. 3;
		}
	}
	for my $b (@bases)
	{
		for my $at (0 .. (() = $b =~ /$place/g) - 1)
		{
			push @todo, sub {
				my $top = pick(grep { /\@B/ } @top);
				my $skip = () = ($top =~ /^(.*?)\@B/)[0] =~ /$place/g;
				return ($top, [ $b, random_base() ], $skip + $at);
			} for 1 .. 4;
		}
	}
	# in any order, so that a run of few has some of all
	@todo = some(scalar(@todo), @todo);
	for my $n (1 .. $count)
	{
		push @queries, make($n, $n <= @todo ? $todo[ $n - 1 ]->($n) : (pick(@top), [ random_base(), random_base() ]));
	}
	return @queries;
}

1;
