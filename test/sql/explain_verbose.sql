--
-- EXPLAIN (VERBOSE) of every node in many shapes: each expression is printed as what it is.  $1 stands
-- for a parameter whose origin PostgreSQL does not find; with assertions it ends the server then.
--
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
CREATE SCHEMA explain_verbose;
SET search_path = explain_verbose, public;
CREATE TABLE t (a int, b text COLLATE "C", c float8, d int[], g int);
INSERT INTO t SELECT i, md5(i::text), i * 7919 % 1000, ARRAY[i, i % 10, 3], i % 10 FROM generate_series(1, 3000) AS i;
CREATE TABLE part (a int, b text COLLATE "C", c float8, g int) PARTITION BY RANGE (a);
CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (1000);
CREATE TABLE part2 (g int, c float8, b text COLLATE "C", a int);
ALTER TABLE part ATTACH PARTITION part2 FOR VALUES FROM (1000) TO (10000);
INSERT INTO part SELECT a, b, c, g FROM t;
CREATE VIEW vw AS SELECT a, upper(b) AS u, c FROM t;
CREATE INDEX ON t (g);
ANALYZE t, part;

-- our nodes in a query's plan, and lines with parameters; until 16 PostgreSQL names those of InitPlans so
CREATE FUNCTION explain_verbose(query text, OUT nodes text[], OUT wrong text[]) LANGUAGE plpgsql AS $$
DECLARE
	line text;
	lines text[] := '{}';
	known text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || query LOOP
		lines := lines || line;
		nodes := nodes || array(SELECT substring(line FROM 'Custom Scan \((\w+)\)') WHERE line ~ 'Custom Scan');
		known := concat(known, substring(line FROM '(?:InitPlan|CTE) .*\(returns (.*)\)'), ',');
	END LOOP;
	FOREACH line IN ARRAY lines LOOP
		IF EXISTS (SELECT FROM regexp_matches(line, '\$\d+', 'g') AS param
				   WHERE param[1] <> ALL (string_to_array(known, ','))) THEN
			wrong := wrong || line;
		END IF;
	END LOOP;
END
$$;

CREATE TABLE queries (n int GENERATED ALWAYS AS IDENTITY, query text);
INSERT INTO queries (query) VALUES
	('SELECT * FROM t ORDER BY b'),
	('SELECT a + 1, b || ''x'' FROM t ORDER BY b || ''x'', a'),
	('SELECT b, (SELECT max(a) FROM part) FROM t ORDER BY b'),
	('SELECT b FROM t ORDER BY (SELECT max(a) FROM part), b'),
	('SELECT b FROM t ORDER BY (SELECT max(p.a) FROM part p WHERE p.g = t.g), b'),
	('SELECT b, (SELECT max(p.a) FROM part p WHERE p.g = t.g) FROM t ORDER BY 2, 1'),
	('SELECT b, a IN (SELECT a FROM part) FROM t ORDER BY 2, 1'),
	('SELECT b, EXISTS (SELECT 1 FROM part p WHERE p.a = t.a) x FROM t ORDER BY x, 1'),
	('SELECT b, (a, g) IN (SELECT a, g FROM part) x FROM t ORDER BY x, 1'),
	('SELECT b, a = ANY (ARRAY(SELECT a FROM part)) x FROM t ORDER BY x, 1'),
	('SELECT b, ARRAY(SELECT p.b FROM part p WHERE p.g = t.g ORDER BY p.b) x FROM t ORDER BY 1'),
	('SELECT * FROM part ORDER BY b'),
	('SELECT * FROM part ORDER BY b LIMIT 2000 OFFSET 10'),
	('SELECT b, count(*) FROM part GROUP BY b ORDER BY count(*), b'),
	('SELECT t.b, p.c FROM t JOIN part p USING (a) ORDER BY p.b, t.c'),
	('SELECT t.b, p.c FROM t LEFT JOIN part p USING (b) ORDER BY p.c, t.c'),
	('SELECT t.b, p.c FROM t FULL JOIN part p USING (b) ORDER BY p.c, t.c'),
	('SELECT * FROM t, LATERAL (SELECT * FROM part p WHERE p.a > t.a ORDER BY p.b LIMIT 1000) x WHERE t.a < 5'),
	('SELECT * FROM t, LATERAL (SELECT p.b || t.b AS z FROM part p ORDER BY z LIMIT 1000 OFFSET t.a) x WHERE t.a < 5'),
	('SELECT * FROM t, LATERAL (SELECT DISTINCT p.b || t.b AS z FROM part p) x WHERE t.a < 5'),
	('SELECT * FROM t, LATERAL (SELECT percentile_disc(t.c/1000) WITHIN GROUP (ORDER BY p.b) AS z, count(*) FROM part p WHERE p.g = t.g) x WHERE t.a < 5'),
	('SELECT * FROM t, LATERAL (SELECT percentile_disc(t.c/1000) WITHIN GROUP (ORDER BY p.b || t.b) AS z FROM part p WHERE p.g = t.g GROUP BY p.g) x WHERE t.a < 5'),
	('SELECT * FROM t, LATERAL (SELECT b, row_number() OVER (PARTITION BY p.g ORDER BY p.b || t.b) AS z FROM part p WHERE p.g = t.g) x WHERE t.a < 5'),
	('SELECT * FROM t, LATERAL (SELECT count(DISTINCT p.b || t.b) AS z FROM part p) x WHERE t.a < 5'),
	('SELECT DISTINCT b FROM t'),
	('SELECT DISTINCT ON (g) g, b FROM t ORDER BY g, b DESC'),
	('SELECT count(DISTINCT b) FROM t'),
	('SELECT count(DISTINCT upper(b)) + 1 FROM t HAVING count(DISTINCT upper(b)) > (SELECT 3)'),
	('SELECT count(*) FROM (SELECT DISTINCT b FROM t) s'),
	('SELECT count(*) FROM (SELECT DISTINCT b, g FROM part) s'),
	('SELECT count(DISTINCT b) FROM part'),
	('SELECT b, count(*) FROM t GROUP BY b'),
	('SELECT b, g, count(*) + 1 FROM t GROUP BY b, g HAVING count(*) > (SELECT min(a) FROM t)'),
	('SELECT u, count(*) FROM vw GROUP BY u'),
	('SELECT g, count(DISTINCT b), sum(DISTINCT a) FROM t GROUP BY g'),
	('SELECT string_agg(b, '','' ORDER BY b) FROM t'),
	('SELECT g, string_agg(b, '','' ORDER BY c, b) FROM part GROUP BY g'),
	('SELECT array_agg(DISTINCT b ORDER BY b DESC) FILTER (WHERE g > (SELECT 3)) FROM t'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY b) FROM t'),
	('SELECT percentile_cont(ARRAY[0.1,0.9]) WITHIN GROUP (ORDER BY c), count(*), sum(a) FROM t'),
	('SELECT percentile_disc(0.4) WITHIN GROUP (ORDER BY b) || ''x'', max(a) + (SELECT 3) FROM part HAVING percentile_disc(0.4) WITHIN GROUP (ORDER BY b) > ''a'''),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY upper(b)) FILTER (WHERE g > (SELECT min(g) FROM t)), percentile_disc(0.1) WITHIN GROUP (ORDER BY upper(b)) FROM t'),
	('SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY c), percentile_disc(0.4) WITHIN GROUP (ORDER BY c) FROM t GROUP BY g'),
	('SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY c), count(*) FROM part GROUP BY g HAVING percentile_disc(0.4) WITHIN GROUP (ORDER BY c) > 3 ORDER BY 2'),
	('SELECT (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p.b) FROM part p WHERE p.g = t.g) FROM t ORDER BY 1'),
	('SELECT (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p.b) FROM part p) AS x, b FROM t ORDER BY b'),
	('SELECT * FROM t WHERE b > (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p.b) FROM part p) ORDER BY b'),
	('SELECT s.x + 1 FROM (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY a) AS x, count(*) FROM part OFFSET 0) s ORDER BY s.x'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p.b) FROM part p JOIN t USING (a)'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY b) x FROM part UNION ALL SELECT percentile_disc(0.4) WITHIN GROUP (ORDER BY b) FROM t ORDER BY x'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY b), sum(count(*)) OVER () FROM t'),
	('SELECT generate_series(1, percentile_disc(0.4) WITHIN GROUP (ORDER BY g)), max(b) FROM t'),
	('WITH w AS MATERIALIZED (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY b) x, count(*) n FROM part) SELECT w.x, t.b FROM w, t ORDER BY t.b, w.n'),
	('SELECT b, row_number() OVER (ORDER BY b), lag(c, 1) OVER (ORDER BY b) FROM t'),
	('SELECT b, sum(c) OVER w, rank() OVER w, first_value(a) OVER w FROM part WINDOW w AS (PARTITION BY g ORDER BY c, b)'),
	('SELECT sum(c + 1) OVER (PARTITION BY g ORDER BY b ROWS UNBOUNDED PRECEDING) / (SELECT max(c) FROM t), g FROM t ORDER BY 1'),
	('SELECT * FROM (SELECT b, g, row_number() OVER (PARTITION BY g ORDER BY b) r FROM t) s WHERE r <= 3'),
	('SELECT * FROM (SELECT b, g, rank() OVER (PARTITION BY g ORDER BY b) r FROM part) s WHERE r < 3 AND g > (SELECT 2)'),
	('SELECT b, sum(count(*)) OVER (ORDER BY b) FROM t GROUP BY b'),
	('SELECT b, sum(c) OVER (ORDER BY b), sum(c) OVER (ORDER BY g, b DESC) FROM t'),
	('SELECT lag(b, (SELECT 2)) OVER (ORDER BY c, b) FROM t'),
	('SELECT gpu_sort_array(d), b FROM t'),
	('SELECT gpu_sort_array(d || a) x, b FROM t WHERE g > (SELECT 1) ORDER BY b'),
	('SELECT sum((gpu_sort_array(d))[1]) FROM t'),
	('SELECT g, sum((gpu_sort_array(d))[1]) FROM t GROUP BY g HAVING sum((gpu_sort_array(d))[2]) > 3'),
	('SELECT sum((gpu_sort_array(d))[1]) OVER (ORDER BY b) FROM t'),
	('SELECT gpu_sort_array(t.d), p.b FROM t JOIN part p USING (a)'),
	('SELECT t.a, x.* FROM t, LATERAL (SELECT gpu_sort_array(u.d || t.a) z FROM t u WHERE u.g = t.g) x'),
	('SELECT gpu_sort_array(ARRAY(SELECT p.a FROM part p WHERE p.g = t.g)) FROM t'),
	('SELECT unnest(gpu_sort_array(d)) FROM t ORDER BY b'),
	('SELECT gpu_sort_array(array_agg(a)) FROM t GROUP BY b'),
	('SELECT b FROM t UNION SELECT b FROM part'),
	('SELECT b, g FROM t EXCEPT SELECT b, g FROM part'),
	('SELECT b, g FROM t INTERSECT ALL SELECT b, g FROM part'),
	('SELECT b FROM t UNION ALL SELECT b FROM part ORDER BY b'),
	('WITH RECURSIVE r (n, b) AS (SELECT a, b FROM t WHERE a < 100 UNION ALL (SELECT n + 1000, b FROM r WHERE n < 2000 ORDER BY b)) SELECT * FROM r ORDER BY b'),
	('WITH w AS MATERIALIZED (SELECT a, b FROM t ORDER BY b) SELECT * FROM w JOIN part p USING (a) ORDER BY p.b'),
	('SELECT * FROM generate_series(1, 1000) AS f (x) ORDER BY -x'),
	('SELECT * FROM (VALUES (1, ''a''), (2, ''b'')) v (x, y) ORDER BY y'),
	('SELECT b COLLATE "C", b FROM t ORDER BY b COLLATE "C"'),
	('SELECT t FROM t ORDER BY t.b'),
	('SELECT t.*, t FROM t ORDER BY t.b COLLATE "C" DESC, t.a'),
	('SELECT tableoid::regclass, ctid, b FROM part ORDER BY b'),
	('SELECT b FROM t ORDER BY b FOR UPDATE'),
	('SELECT CASE WHEN g > 3 THEN (SELECT max(b) FROM part p WHERE p.g = t.g) END x FROM t ORDER BY b'),
	('SELECT b, count(*) FILTER (WHERE a > (SELECT avg(a) FROM part)) FROM t GROUP BY b ORDER BY 2'),
	('SELECT g, b, grouping(g) FROM t GROUP BY ROLLUP (g, b)'),
	('SELECT x.b FROM t x WHERE x.a NOT IN (SELECT a FROM part ORDER BY b LIMIT 500) ORDER BY b'),
	('SELECT * FROM t a JOIN t b ON a.b = b.b AND a.c < b.c ORDER BY a.c'),
	('SELECT * FROM t a WHERE EXISTS (SELECT 1 FROM part p WHERE p.b = a.b) ORDER BY a.b'),
	('INSERT INTO t (a, b) SELECT a, b FROM part ORDER BY b RETURNING a'),
	('UPDATE t SET b = s.x FROM (SELECT a, first_value(b) OVER (ORDER BY b) x FROM part) s WHERE s.a = t.a RETURNING t.b'),
	('DELETE FROM t WHERE b IN (SELECT b FROM part ORDER BY c LIMIT 100) RETURNING b'),
	('MERGE INTO t USING (SELECT a, percentile_disc(0.5) WITHIN GROUP (ORDER BY b) x FROM part GROUP BY a) s ON s.a = t.a WHEN MATCHED THEN UPDATE SET b = s.x'),
	('SELECT a, b FROM t ORDER BY random(), b'),
	('SELECT b, string_agg(b, ''-'' ORDER BY c), max(a) + 1 FROM part GROUP BY b HAVING count(a) > 1'),
	('SELECT g, string_agg(b, '','' ORDER BY b), count(*) FILTER (WHERE c > 3) FROM t GROUP BY g'),
	('SELECT t.a, x.* FROM t, LATERAL (SELECT g, string_agg(p.b, '','' ORDER BY p.b), sum(a) FILTER (WHERE p.a > t.a) FROM part p GROUP BY g) x WHERE t.a < 5'),
	('WITH s AS MATERIALIZED (SELECT upper(b) AS u, string_agg(b, '','' ORDER BY a) AS x FROM t GROUP BY upper(b)) SELECT u, max(length(x)) FROM s GROUP BY u HAVING (SELECT max(a) FROM t) > 3'),
	('SELECT u, string_agg(u, '';'' ORDER BY c), count(*) FROM vw GROUP BY u ORDER BY max(a), u'),
	('SELECT a, (SELECT string_agg(p.b, '','' ORDER BY p.c) FROM part p WHERE p.a > t.a) FROM t');

SET gpusort.force = on;
SET gpusort.min_rows = 10;
SET gpusort.cost_factor = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
-- all queries serially and in parallel, with hashing and without, partition by partition and not
CREATE FUNCTION explain_all() RETURNS TABLE (n int, setting text, nodes text[], wrong text[]) LANGUAGE plpgsql AS $$
BEGIN
	FOR workers IN 0 .. 1 LOOP
		FOR hashing IN 0 .. 1 LOOP
			PERFORM set_config('max_parallel_workers_per_gather', (workers * 2)::text, true);
			PERFORM set_config(name, (hashing = 1)::text, true)
				FROM unnest(ARRAY['enable_hashagg', 'enable_hashjoin', 'enable_nestloop', 'enable_partitionwise_join', 'enable_partitionwise_aggregate']) AS name;
			RETURN QUERY SELECT q.n, format('%s workers, hashing %s', workers * 2, hashing), e.*
				FROM queries q, explain_verbose(q.query) e;
		END LOOP;
	END LOOP;
END
$$;
CREATE TABLE explained AS SELECT * FROM explain_all();
SELECT q.query, e.setting, line FROM explained e JOIN queries q USING (n), unnest(e.wrong) AS line ORDER BY n, setting;
SELECT node, count(DISTINCT n) > 3 AS often FROM explained, unnest(nodes) AS node GROUP BY node ORDER BY node COLLATE "C";

-- one of each
SET max_parallel_workers_per_gather = 0;
SET enable_hashagg = off;
EXPLAIN (VERBOSE, COSTS OFF) SELECT percentile_disc(0.4) WITHIN GROUP (ORDER BY b) || 'x', max(a) FROM part HAVING percentile_disc(0.4) WITHIN GROUP (ORDER BY b) > 'a';
EXPLAIN (VERBOSE, COSTS OFF) SELECT t.a, x.* FROM t, LATERAL (SELECT percentile_disc(t.c / 1000) WITHIN GROUP (ORDER BY p.b || t.b), count(*) FROM t p WHERE p.a % t.a = 1) x WHERE t.a < 5;
EXPLAIN (VERBOSE, COSTS OFF) SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY c) + 1 FROM t GROUP BY g ORDER BY 2;
EXPLAIN (VERBOSE, COSTS OFF) SELECT b, g, count(*) + 1 FROM t GROUP BY b, g HAVING count(*) > 1;
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(DISTINCT upper(b)) + 1 FROM part;
EXPLAIN (VERBOSE, COSTS OFF) SELECT t.a, x.* FROM t, LATERAL (SELECT string_agg(p.b, ',') || t.b, sum(a) FILTER (WHERE p.a > t.a) FROM part p GROUP BY g + 1 HAVING min(a) > 0) x WHERE t.a < 5;
EXPLAIN (VERBOSE, COSTS OFF) SELECT b, sum(c + 1) OVER w / 3, rank() OVER w FROM part WINDOW w AS (PARTITION BY g ORDER BY c, b);
EXPLAIN (VERBOSE, COSTS OFF) SELECT gpu_sort_array(d || a) x, b FROM t WHERE g > 3 ORDER BY b;
EXPLAIN (VERBOSE, COSTS OFF) SELECT sum((gpu_sort_array(d))[1]), percentile_disc(0.5) WITHIN GROUP (ORDER BY a) FROM t;
SELECT sum((gpu_sort_array(d))[1]), percentile_disc(0.5) WITHIN GROUP (ORDER BY a) FROM t;
SELECT sum((gpu_sort_array(d))[1]), percentile_disc(0.5) WITHIN GROUP (ORDER BY a) FROM t WHERE a < 0;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (VERBOSE, COSTS OFF) SELECT a + 1, upper(b) FROM t WHERE g > 3 ORDER BY upper(b), a;

DROP SCHEMA explain_verbose CASCADE;
