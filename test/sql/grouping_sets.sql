--
-- GROUPING SETS with several sorts, which GpuGroupingSets has GpuSorts do: against PostgreSQL's chain.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/compare_nodes.inc
\set ECHO all
SET gpusort.min_rows = 200;
SET enable_hashagg = off;

CREATE TABLE gs_t (id int, a text COLLATE "C", b int, c numeric, d text COLLATE "en_US.utf8", e float8);
INSERT INTO gs_t
	SELECT i, CASE WHEN i % 11 = 0 THEN NULL WHEN i % 13 = 0 THEN '' ELSE md5((i % 40)::text) END, nullif(i % 7, 3),
		CASE i % 5 WHEN 0 THEN 1.0 WHEN 1 THEN 1.00 WHEN 2 THEN 'NaN' WHEN 3 THEN NULL ELSE i % 3 END,
		CASE i % 6 WHEN 0 THEN 'a-b' WHEN 1 THEN 'ab' WHEN 2 THEN 'A b' WHEN 3 THEN '' ELSE 'é' || i % 9 END,
		CASE i % 4 WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN '-0' WHEN 2 THEN '0' END
	FROM generate_series(1, 3000) AS i;
CREATE TABLE gs_null (LIKE gs_t);
INSERT INTO gs_null (id) SELECT i FROM generate_series(1, 500) AS i;
CREATE TABLE gs_empty (LIKE gs_t);
CREATE TABLE gs_one (LIKE gs_t);
INSERT INTO gs_one SELECT * FROM gs_t WHERE id = 17;
CREATE TABLE gs_equal (LIKE gs_t);
INSERT INTO gs_equal SELECT t.* FROM gs_t AS t, generate_series(1, 700) WHERE id = 17;
ANALYZE gs_t, gs_null, gs_empty, gs_one, gs_equal;

CREATE FUNCTION compare_sets(query text) RETURNS text LANGUAGE sql AS $$
	SELECT compare_nodes(query, 'GpuGroupingSets', 'GpuSort');
$$;

-- sets, columns that are NULL in some, the empty set, GROUPING(), over rows of all kinds
SELECT t, compare_sets(format('SELECT a, b, count(*), sum(id) FROM %I GROUP BY GROUPING SETS ((a), (b))', t))
	FROM unnest(ARRAY['gs_t', 'gs_null', 'gs_empty', 'gs_one', 'gs_equal']) AS t;
SELECT t, compare_sets(format('SELECT a, b, c::text IS NULL, grouping(a, b), grouping(c), count(*), count(c), max(id) FROM %I GROUP BY CUBE (a, b, c)', t))
	FROM unnest(ARRAY['gs_t', 'gs_null', 'gs_empty', 'gs_one', 'gs_equal']) AS t;
SELECT t, compare_sets(format('SELECT d, e, b, count(*), count(a), min(id), grouping(b, d, e) FROM %I GROUP BY GROUPING SETS ((d, e), (b, d), (e), ())', t))
	FROM unnest(ARRAY['gs_t', 'gs_null', 'gs_empty', 'gs_one', 'gs_equal']) AS t;
-- the same column in an aggregate's argument is not NULL; expressions, HAVING, FILTER, ORDER BY, DISTINCT in aggregates
SELECT compare_sets('SELECT a, b, sum(b), max(a), count(a || b) FROM gs_t GROUP BY GROUPING SETS ((a), (b))');
SELECT compare_sets('SELECT upper(a) AS u, b + 1, coalesce(b + 1, -1), count(*) FROM gs_t GROUP BY GROUPING SETS ((upper(a)), (b + 1))');
SELECT compare_sets('SELECT a, b, count(*) FROM gs_t GROUP BY GROUPING SETS ((a), (b)) HAVING count(*) > 90 AND (b > 1 OR grouping(a) = 0)');
SELECT compare_sets('SELECT a, b, count(*) FILTER (WHERE id % 2 = 0), string_agg(d, '','' ORDER BY d, id), count(DISTINCT c), array_agg(id ORDER BY id DESC) FROM gs_t WHERE id < 900 GROUP BY GROUPING SETS ((a), (b), (d))');
SELECT compare_sets('SELECT a, b, percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM gs_t GROUP BY GROUPING SETS ((a), (b))');
-- direct arguments are NULL with their column
SELECT compare_sets('SELECT a, b, percentile_disc(b / 7.0) WITHIN GROUP (ORDER BY id), rank(b) WITHIN GROUP (ORDER BY b) FROM gs_t GROUP BY GROUPING SETS ((a), (b), (a, c))');
SELECT compare_sets('SELECT a, b, count(*) FROM gs_t GROUP BY ROLLUP (a, b), ROLLUP (b, a)');
SELECT compare_sets('SELECT a, count(*) FROM gs_t GROUP BY GROUPING SETS ((a), (a, b), (a, c), (c))');
SELECT compare_sets('SELECT a, b, count(*) FROM gs_t GROUP BY GROUPING SETS ((a), (b)) ORDER BY b DESC, a NULLS FIRST, count(*)');
SELECT compare_sets('SELECT * FROM (SELECT a, b, count(*) AS n, row_number() OVER (ORDER BY a, b) AS r FROM gs_t GROUP BY GROUPING SETS ((a), (b))) AS x WHERE r <= 9');
SELECT compare_sets('SELECT a, b, count(*) FROM gs_t GROUP BY GROUPING SETS ((a), (b)) LIMIT 3');
-- above joins, unions, other groups, and of each other
SELECT compare_sets('SELECT t.a, u.b, count(*) FROM gs_t AS t JOIN gs_one AS u ON t.b = u.b GROUP BY GROUPING SETS ((t.a), (u.b))');
SELECT compare_sets('SELECT a, b, sum(n) FROM (SELECT a, b, count(*) AS n FROM gs_t GROUP BY a, b UNION ALL SELECT a, b, id FROM gs_one) AS x GROUP BY GROUPING SETS ((a), (b))');
SELECT compare_sets('SELECT a, b, count(*), sum(n) FROM (SELECT a, b, count(*) AS n FROM gs_t GROUP BY GROUPING SETS ((a, b), (b, c))) AS x GROUP BY GROUPING SETS ((a), (b))');
SELECT compare_sets('SELECT r, b, count(*) FROM (SELECT rank() OVER (ORDER BY a) AS r, b FROM gs_t) AS x GROUP BY GROUPING SETS ((r), (b))');
-- with an index, in whose order the input comes
CREATE INDEX gs_i ON gs_t (b);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT compare_sets('SELECT b, c, count(*) FROM gs_t WHERE b IS NOT NULL GROUP BY GROUPING SETS ((b), (c))');
SELECT compare_sets('SELECT b, b % 2, count(*) FROM gs_t WHERE b > 0 GROUP BY GROUPING SETS ((b), (b % 2))');
RESET enable_seqscan;
RESET enable_bitmapscan;
-- the rows that are kept do not fit into memory
SET work_mem = '64kB';
SELECT compare_sets('SELECT a, b, d, count(*), max(id) FROM gs_t GROUP BY GROUPING SETS ((a), (b), (d))');
RESET work_mem;
-- parallel
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT compare_sets('SELECT a, b, count(*), max(id) FROM gs_t GROUP BY GROUPING SETS ((a), (b))');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
-- what stays with PostgreSQL's: subplans, one sort, sets by hashing, too, gpu_sort_array(), which has a node of its own
SELECT compare_sets('SELECT a, b, (SELECT max(u.id) FROM gs_one AS u WHERE u.b = t.b), count(*) FROM gs_t AS t GROUP BY GROUPING SETS ((a), (b))');
SELECT compare_sets('SELECT a, b, count(*) FROM gs_t GROUP BY ROLLUP (a, b)');
SELECT compare_sets('SELECT a, b, gpu_sort_array(array_agg(id)) FROM gs_t GROUP BY GROUPING SETS ((a), (b))');
SET enable_hashagg = on;
SELECT compare_sets('SELECT a, b, count(*) FROM gs_t GROUP BY GROUPING SETS ((a), (b))');
SET enable_hashagg = off;
-- an init plan, a volatile column, functions of the group's columns
SELECT compare_sets('SELECT a, b, count(*) + (SELECT max(id) FROM gs_one) FROM gs_t GROUP BY GROUPING SETS ((a), (b)) HAVING count(*) > (SELECT min(id) FROM gs_one)');
SET gpusort.force = on;
SELECT count(*), count(r) FROM (SELECT a, b, min(random()) AS r FROM gs_t GROUP BY GROUPING SETS ((a), (b))) AS x;

-- plans
EXPLAIN (COSTS OFF) SELECT a, b, count(*), grouping(a) FROM gs_t GROUP BY GROUPING SETS ((a), (b)) ORDER BY b, a;
EXPLAIN (COSTS OFF, VERBOSE) SELECT b + 1 AS b, upper(a) AS u, count(*), grouping(upper(a)), max(b) FROM (SELECT * FROM gs_t UNION ALL SELECT * FROM gs_one) AS x
	GROUP BY GROUPING SETS ((b + 1), (upper(a)), ()) HAVING count(*) > 1;

-- run again, by parameters and without; read by and by
SELECT x, y.* FROM generate_series(1, 3) AS x, LATERAL (SELECT b, id % 2 AS o, count(*), sum(id) FILTER (WHERE id % 3 < x) AS s FROM gs_t WHERE id > x * 1000 GROUP BY GROUPING SETS ((b), (id % 2))) AS y
	WHERE y.b = 2 OR y.o = 1;
SELECT count(*), sum(s) FROM generate_series(1, 3) AS x LEFT JOIN LATERAL
	(SELECT b, sum(id) FILTER (WHERE id % 3 < x) AS s FROM gs_t GROUP BY GROUPING SETS ((b), (c)) OFFSET 0) AS y ON true;
SELECT x, (SELECT sum(n) FROM (SELECT b, c, count(*) AS n FROM gs_t GROUP BY GROUPING SETS ((b), (c)) LIMIT x) AS y) FROM generate_series(1, 12, 3) AS x;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT b, id % 2 AS o, count(*) FROM gs_t GROUP BY GROUPING SETS ((b), (id % 2));
FETCH 9 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH FIRST FROM c;
FETCH LAST FROM c;
COMMIT;
-- sorts of sets that have been returned hold nothing
BEGIN;
DECLARE c CURSOR FOR SELECT a, b, c, d, count(*) FROM gs_t GROUP BY CUBE (a, b, c, d);
MOVE ALL FROM c;
SELECT count(*) FROM gpusort_activity WHERE pid = pg_backend_pid();
COMMIT;
PREPARE sets(int) AS SELECT b, id % 2 AS o, count(*) FROM gs_t WHERE id > $1 GROUP BY GROUPING SETS ((b), (id % 2)) ORDER BY 1, 2 LIMIT 3;
SET plan_cache_mode = force_generic_plan;
EXECUTE sets(0);
EXECUTE sets(2000);
EXECUTE sets(5000);
RESET plan_cache_mode;
RESET gpusort.force;

-- a sort that was read to its end holds no memory while the others are done; nor does one below another node
SELECT compare_sets('SELECT a, b, c::text IS NULL, d, e IS NULL, id % 2, count(*) FROM gs_t GROUP BY CUBE (a, b, c, d, e, id % 2)');
SET gpusort.force = on;
BEGIN;
DECLARE c CURSOR FOR SELECT a, b, c, d, e, id % 2, count(*) FROM gs_t GROUP BY CUBE (a, b, c, d, e, id % 2);
MOVE ALL FROM c;
FETCH 1 FROM c;
SELECT count(*) FROM gpusort_activity WHERE phase <> 'closing';
CLOSE c;
DECLARE c NO SCROLL CURSOR FOR (SELECT id, a FROM gs_t ORDER BY a, id OFFSET 0) UNION ALL (SELECT id, a FROM gs_t ORDER BY a, id OFFSET 0);
MOVE ALL FROM c;
SELECT count(*) FROM gpusort_activity WHERE phase <> 'closing';
COMMIT;
RESET gpusort.force;

-- by cost: not for few rows
EXPLAIN (COSTS OFF) SELECT b, c, count(*) FROM gs_one GROUP BY GROUPING SETS ((b), (c));
DROP TABLE gs_t, gs_null, gs_empty, gs_one, gs_equal;
DROP FUNCTION compare_sets, compare_nodes, plan_lines, query_rows, stock_rows, rows_differ;
