--
-- Sorts whose rows are not all needed: DISTINCT, GROUP BY, aggregates with DISTINCT,
-- LIMIT.  Each query runs by PostgreSQL alone, and by gpusort serially and in parallel;
-- "dropped" are the rows that the device has not returned.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/dropped.inc
\set ECHO all

-- Every type.  Of values that are equal and look different any one may be returned: shown as the same
CREATE TABLE fewer_columns (name text, shown text);
INSERT INTO fewer_columns VALUES ('k', 'k'), ('i8', 'i8'), ('f8', 'f8 + 0'), ('n', 'trim_scale(n)'), ('c', 'c'), ('bp', 'rtrim(bp)'), ('libc', 'libc'),
	('icu', 'icu'), ('long', 'md5(long)'), ('longer', 'md5(longer)'), ('span', 'extract(epoch FROM span)'), ('ttz', 'ttz'), ('e', 'e'), ('u', 'u'),
	('b', 'b'), ('a', 'a'), ('one', 'one'), ('own', 'own'), ('none', 'none');
SELECT name, compare(format('SELECT %s FROM (SELECT DISTINCT %2$s FROM dropped_t ORDER BY %2$s OFFSET 0) AS s', shown, name)) FROM fewer_columns;
SELECT name, compare(format('SELECT %s FROM (SELECT DISTINCT %2$s FROM dropped_t ORDER BY %2$s DESC OFFSET 0) AS s', shown, name)) FROM fewer_columns;
SELECT name, compare(format('SELECT %s FROM (SELECT %2$s FROM dropped_t GROUP BY %2$s ORDER BY %2$s NULLS FIRST OFFSET 0) AS s', shown, name)) FROM fewer_columns;
SELECT name, compare(format('SELECT count(DISTINCT %s) FROM dropped_t', name)) FROM fewer_columns;
SELECT name, compare(format('SELECT k, count(DISTINCT %s) FROM dropped_t GROUP BY k', name)) FROM fewer_columns WHERE name <> 'k';
SELECT name, compare(format('SELECT %s, id FROM (SELECT %2$s, id FROM dropped_t ORDER BY %2$s, id LIMIT 33 OFFSET 500) AS s', shown, name)) FROM fewer_columns;
SELECT name, compare(format('SELECT %s FROM (SELECT DISTINCT %2$s FROM dropped_t ORDER BY %2$s LIMIT 5 OFFSET 1) AS s', shown, name)) FROM fewer_columns;

-- Several columns, and some of them only
SELECT compare('SELECT DISTINCT k, i8, c FROM dropped_t');
SELECT compare('SELECT DISTINCT k, own FROM dropped_t');
SELECT compare('SELECT DISTINCT ON (c) c, k FROM dropped_t ORDER BY c, k');
SELECT compare('SELECT DISTINCT ON (c) c, k, id FROM dropped_t ORDER BY c, k, id');
SELECT compare('SELECT DISTINCT ON (c) c, k FROM dropped_t ORDER BY c, k DESC LIMIT 20');
SELECT compare('SELECT DISTINCT k, libc FROM dropped_t ORDER BY libc DESC, k LIMIT 40 OFFSET 10');
SELECT compare('SELECT count(*) FROM (SELECT c, i8 FROM dropped_t GROUP BY c, i8 HAVING i8 > 3 OFFSET 0) AS s');
SELECT compare('SELECT upper(c) FROM dropped_t GROUP BY c ORDER BY c LIMIT 7');
SELECT compare('SELECT sum(DISTINCT i8), count(DISTINCT i8), avg(DISTINCT i8) FROM dropped_t');
SELECT compare('SELECT k, string_agg(DISTINCT c, '','') FROM dropped_t GROUP BY k HAVING count(DISTINCT c) > 1');
SELECT compare('SELECT k % 3, sum(DISTINCT i8) FROM dropped_t GROUP BY k % 3 ORDER BY 1');
SELECT compare('SELECT DISTINCT c FROM dropped_t WHERE k > 100');
SELECT compare('SELECT count(DISTINCT c) FROM dropped_t WHERE k > 100');
SELECT compare('SELECT DISTINCT c FROM dropped_t WHERE id = 77');

-- Where all rows count.  PostgreSQL 15 may not sort for some of these
SELECT keeps_all('SELECT c, sum(id) FROM dropped_t GROUP BY c ORDER BY c');
SELECT keeps_all('SELECT count(DISTINCT c), count(*) FROM dropped_t');
SELECT keeps_all('SELECT count(DISTINCT c), sum(id) FROM dropped_t');
SELECT keeps_all('SELECT count(DISTINCT c), count(c) FROM dropped_t');
SELECT keeps_all('SELECT count(DISTINCT c) FILTER (WHERE k = 2) FROM dropped_t');
SELECT keeps_all('SELECT count(DISTINCT c), count(DISTINCT k) FROM dropped_t');
SELECT keeps_all('SELECT k, count(DISTINCT c), array_agg(i8 ORDER BY c, i8) FROM dropped_t GROUP BY k');
SELECT keeps_all('SELECT c, count(DISTINCT k), mode() WITHIN GROUP (ORDER BY i8) FROM dropped_t GROUP BY c ORDER BY c');
SELECT keeps_all('SELECT c, row_number() OVER (ORDER BY c) FROM dropped_t');
SELECT keeps_all('SELECT c FROM dropped_t WHERE k < 5 INTERSECT ALL SELECT c FROM dropped_t WHERE k > 2 ORDER BY c');
-- an order that tells apart what is equal
SELECT keeps_all('SELECT DISTINCT ON (own) own, k FROM dropped_t ORDER BY own, k DESC');
SELECT compare('SELECT c FROM (SELECT c, k FROM dropped_t ORDER BY c COLLATE "en_US.utf8", k OFFSET 0) AS s GROUP BY c ORDER BY c');

-- where PostgreSQL 18 sorts each part, and merges them
SELECT regexp_replace(compare('SELECT c FROM dropped_t WHERE k = 1 UNION SELECT c FROM dropped_t WHERE k < 3'), ',.*', '');

-- Limits that are none, or not known
SELECT keeps_all('SELECT id FROM dropped_t ORDER BY c, id LIMIT NULL');
SELECT keeps_all('SELECT id FROM dropped_t ORDER BY c, id LIMIT ALL OFFSET 2990');
SELECT keeps_all('SELECT id FROM dropped_t ORDER BY c, id LIMIT 3 OFFSET (SELECT 2)');
SELECT keeps_all('SELECT k FROM dropped_t ORDER BY k FETCH FIRST 10 ROWS WITH TIES');
SELECT keeps_all('SELECT sum(id) OVER (ORDER BY c, id) FROM dropped_t LIMIT 10');
SELECT keeps_all('SELECT generate_series(1, k) FROM (SELECT c, id, k FROM dropped_t ORDER BY c, id OFFSET 0) AS s LIMIT 10');
SELECT compare('SELECT id FROM dropped_t ORDER BY c, id LIMIT 0');
SELECT compare('SELECT id FROM dropped_t ORDER BY c, id LIMIT 1');
SELECT compare('SELECT id FROM dropped_t ORDER BY c, id LIMIT 2999');
SELECT compare('SELECT id FROM dropped_t ORDER BY c, id LIMIT 3000');
SELECT compare('SELECT id FROM dropped_t ORDER BY c, id LIMIT 9223372036854775807');
SELECT compare('SELECT id FROM dropped_t ORDER BY c, id OFFSET 2995 LIMIT 1000');
SELECT compare('SELECT id FROM (SELECT id, c FROM dropped_t ORDER BY c, id LIMIT 50) AS s ORDER BY id DESC LIMIT 20');
SELECT compare('SELECT s.id FROM generate_series(1, 3) AS g, LATERAL (SELECT id FROM dropped_t ORDER BY id % (2 + g), c DESC, id LIMIT 5 OFFSET 2) AS s');
SELECT compare('SELECT g, (SELECT id FROM dropped_t WHERE k = g ORDER BY c, id LIMIT 1) FROM generate_series(1, 5) AS g');
SELECT compare('SELECT x FROM (SELECT c AS x, id FROM dropped_t UNION ALL SELECT icu, id FROM dropped_t) AS s ORDER BY x COLLATE "C", id LIMIT 100');

SET gpusort.force = on;
SET max_parallel_workers_per_gather = 0;
SELECT plan_nodes('SELECT DISTINCT c FROM dropped_t LIMIT 10 OFFSET 5', 'Distinct:|First ');
-- a plan for any limit
SET plan_cache_mode = force_generic_plan;
PREPARE first_rows (int) AS SELECT id FROM dropped_t ORDER BY id DESC LIMIT $1;
EXECUTE first_rows (2);
EXECUTE first_rows (3);
EXECUTE first_rows (-1);
SELECT plan_nodes('EXECUTE first_rows (1)', 'Distinct:|First ');
SELECT coalesce(dropped('EXECUTE first_rows (3)'), 0), coalesce(dropped('EXECUTE first_rows (NULL)'), 0), coalesce(dropped('EXECUTE first_rows (2999)'), 0);
DEALLOCATE first_rows;
PREPARE first_rows (int, bigint) AS SELECT DISTINCT ON (k) k, id FROM dropped_t ORDER BY k, id LIMIT $1 * 2 + 1 OFFSET $2;
EXECUTE first_rows (1, 2);
EXECUTE first_rows (1, NULL);
SELECT plan_nodes('EXECUTE first_rows (1, 2)', 'Distinct:|First ');
SELECT dropped('EXECUTE first_rows (1, 2)'), dropped('EXECUTE first_rows (1, 9223372036854775807)');
DEALLOCATE first_rows;
-- what may be another number when it is asked for again
PREPARE first_rows (int) AS SELECT id FROM dropped_t ORDER BY id LIMIT $1 + abs(extract(epoch FROM now() - now()))::int;
EXECUTE first_rows (2);
SELECT coalesce(dropped('EXECUTE first_rows (2)'), 0);
DEALLOCATE first_rows;
PREPARE first_rows (int) AS SELECT g, s.id FROM generate_series(1, $1) AS g, LATERAL (SELECT id FROM dropped_t ORDER BY id % (2 + g), id LIMIT g) AS s;
EXECUTE first_rows (3);
SELECT coalesce(dropped('EXECUTE first_rows (3)'), 0);
DEALLOCATE first_rows;
-- each execution has its own
CREATE FUNCTION first_ids(m int) RETURNS int[] LANGUAGE plpgsql AS $$
BEGIN
	RETURN ARRAY(SELECT id FROM dropped_t ORDER BY c NULLS FIRST, id LIMIT m);
END
$$;
SELECT n, first_ids(n) FROM unnest(ARRAY[2, NULL, 1, 4]) AS n WHERE n IS NOT NULL;
SELECT cardinality(first_ids(NULL));
DROP FUNCTION first_ids;
RESET plan_cache_mode;
-- Unique and Group give way to GpuGroup, also where they compare some of the sort's columns only, or compute
SELECT plan_nodes('SELECT DISTINCT c, k FROM dropped_t', 'Distinct:|First ');
SELECT plan_nodes('SELECT n FROM dropped_t GROUP BY n', 'Distinct:|First ');
SELECT plan_nodes('SELECT DISTINCT ON (c) c, k FROM dropped_t ORDER BY c, k', 'Distinct:|First ');
SELECT plan_nodes('SELECT upper(c) FROM dropped_t GROUP BY c', 'Distinct:|First ');
SELECT compare('SELECT g, s.* FROM generate_series(1, 5) AS g, LATERAL (SELECT DISTINCT c, i8 FROM dropped_t WHERE k > g ORDER BY c, i8) AS s');
SELECT compare('SELECT g, trim_scale(s.n) FROM generate_series(0, 9) AS g, LATERAL (SELECT n FROM dropped_t WHERE k = g GROUP BY n ORDER BY n) AS s');
SELECT compare('SELECT c, array_agg(k) FROM (SELECT DISTINCT c, k FROM dropped_t ORDER BY c, k) AS s GROUP BY c ORDER BY c');
SELECT compare('SELECT t.c, u.k FROM (SELECT DISTINCT c FROM dropped_t) AS t JOIN (SELECT DISTINCT c, k FROM dropped_t) AS u ON t.c = u.c ORDER BY 1, 2');
SELECT compare('SELECT * FROM (SELECT DISTINCT own % 977 AS m, k FROM dropped_t) AS s WHERE EXISTS (SELECT FROM (SELECT DISTINCT i8 FROM dropped_t) AS u WHERE u.i8 = s.m) ORDER BY m, k');
-- cursors, to the end and back
BEGIN;
DECLARE f CURSOR FOR SELECT DISTINCT k FROM dropped_t;
FETCH 2 FROM f;
FETCH BACKWARD 1 FROM f;
ROLLBACK;
BEGIN;
DECLARE d SCROLL CURSOR FOR SELECT DISTINCT k FROM dropped_t;
FETCH 2 FROM d;
FETCH ALL FROM d;
FETCH BACKWARD 2 FROM d;
FETCH ABSOLUTE 3 FROM d;
DECLARE l SCROLL CURSOR FOR SELECT id FROM dropped_t ORDER BY id LIMIT 3 OFFSET 100;
FETCH ALL FROM l;
FETCH NEXT FROM l;
FETCH BACKWARD ALL FROM l;
FETCH NEXT FROM l;
COMMIT;
-- where PostgreSQL's sort has to sort so many first rows: windows ask for one more
SET gpusort.fault = 'open';
SELECT r, compare(format('SELECT * FROM (SELECT id, c, row_number() OVER (ORDER BY c, id) AS r FROM dropped_t) AS s WHERE r %s', r)) FROM unnest(ARRAY['< 3', '= 1', '<= 10 AND id > 5', '< 1', '<= 5000']) AS r;
SELECT r, compare(format('SELECT * FROM (SELECT c, rank() OVER (ORDER BY c) AS r FROM dropped_t) AS s WHERE r %s', r)) FROM unnest(ARRAY['< 3', '= 1', '<= 90', '< 1', '<= 5000']) AS r;
SELECT compare('SELECT * FROM (SELECT id, nth_value(id, 2) OVER (ORDER BY id) AS v, row_number() OVER (ORDER BY id) AS r FROM dropped_t) AS s WHERE r <= 3');
SELECT compare('SELECT id FROM dropped_t ORDER BY id LIMIT 5');
SELECT compare('SELECT DISTINCT k, c FROM dropped_t ORDER BY c, k LIMIT 5');
RESET gpusort.fault;
-- functions with effects are called for each row
CREATE SEQUENCE fewer_s;
SELECT count(*) FROM (SELECT DISTINCT k, nextval('fewer_s') > 0 AS called FROM dropped_t OFFSET 0) AS s;
SELECT currval('fewer_s');
RESET gpusort.force;

-- By cost: a large LIMIT, a DISTINCT of many different values, or a few
CREATE TABLE fewer_u AS SELECT i AS id, i % 10 AS few, md5(i::text) COLLATE "C" AS p FROM generate_series(1, 50000) AS i;
VACUUM ANALYZE fewer_u;
RESET gpusort.min_rows;
RESET enable_hashagg;
SET gpusort.cost_factor = 20;
SELECT plan_nodes('SELECT p FROM fewer_u ORDER BY p LIMIT 10', 'Distinct:|First ');
SELECT plan_nodes('SELECT DISTINCT few FROM fewer_u', 'Distinct:|First ');
RESET gpusort.cost_factor;
SELECT plan_nodes('SELECT p FROM fewer_u ORDER BY p LIMIT 20000', 'Distinct:|First ');
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT plan_nodes('SELECT DISTINCT p FROM fewer_u', 'Distinct:|First ');
DROP TABLE dropped_t, fewer_u, fewer_columns;
DROP TYPE dropped_enum;
DROP SEQUENCE fewer_s;
DROP FUNCTION dropped, compare, keeps_all;
DROP FUNCTION compare_modes, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
