--
-- GROUPING SETS above a GpuSort: the first sort of an Agg with a chain, whose other sorts and aggregates stay PostgreSQL's.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/compare_nodes.inc
\set ECHO all
SET gpusort.min_rows = 200;
SET enable_hashagg = off;

CREATE TABLE gs_t (id int, a text COLLATE "C", b int, c numeric, d text COLLATE "en_US.utf8");
INSERT INTO gs_t
	SELECT i, CASE WHEN i % 11 = 0 THEN NULL WHEN i % 13 = 0 THEN '' ELSE md5((i % 40)::text) END, nullif(i % 7, 3),
		CASE i % 5 WHEN 0 THEN 1.0 WHEN 1 THEN 1.00 WHEN 2 THEN 'NaN' WHEN 3 THEN NULL ELSE i % 3 END,
		CASE i % 6 WHEN 0 THEN 'a-b' WHEN 1 THEN 'ab' WHEN 2 THEN 'A b' WHEN 3 THEN '' ELSE 'é' || i % 9 END
	FROM generate_series(1, 3000) AS i;
CREATE TABLE gs_empty (LIKE gs_t);
ANALYZE gs_t, gs_empty;

CREATE FUNCTION compare_sets(query text) RETURNS text LANGUAGE sql AS $$
	SELECT compare_nodes(query, 'GpuGroup', 'GpuPercentile', 'GpuSort');
$$;

-- columns that are NULL in some sets, the empty set, GROUPING(), an aggregate's argument, which is not NULL, HAVING, FILTER
SELECT t, compare_sets(format('SELECT a, b, count(*), sum(b), max(a) FROM %I GROUP BY GROUPING SETS ((a), (b))', t))
	FROM unnest(ARRAY['gs_t', 'gs_empty']) AS t;
SELECT t, compare_sets(format('SELECT a, b, c::text IS NULL, grouping(a, b), grouping(c), count(*), count(c), max(id) FROM %I GROUP BY CUBE (a, b, c)', t))
	FROM unnest(ARRAY['gs_t', 'gs_empty']) AS t;
SELECT compare_sets('SELECT a, b, count(*) FROM gs_t GROUP BY ROLLUP (a, b), ROLLUP (b, a)');
SELECT compare_sets('SELECT a, b, count(*) FROM gs_t GROUP BY ROLLUP (a, b) HAVING count(*) > 9 AND (b > 1 OR grouping(a) = 0)');
SELECT compare_sets('SELECT b, count(*) FROM gs_t GROUP BY GROUPING SETS ((b))');
SELECT compare_sets('SELECT count(*), max(b) FROM (SELECT * FROM gs_t ORDER BY a OFFSET 0) AS x GROUP BY GROUPING SETS ((), ())');
-- DISTINCT and ORDER BY in aggregates, ordered sets, whose direct arguments are NULL with their column
SELECT compare_sets('SELECT a, b, count(*) FILTER (WHERE id % 2 = 0), string_agg(d, '','' ORDER BY d, id), count(DISTINCT c), array_agg(id ORDER BY id DESC) FROM gs_t WHERE id < 900 GROUP BY GROUPING SETS ((a), (b), (d))');
SELECT compare_sets('SELECT a, b, percentile_disc(b / 7.0) WITHIN GROUP (ORDER BY id), rank(b) WITHIN GROUP (ORDER BY b) FROM gs_t GROUP BY GROUPING SETS ((a), (b), (a, c))');
SELECT compare_sets('SELECT a, percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM gs_t GROUP BY ROLLUP (a)');
-- the rows that are counted, dropped and grouped below are those of one set
SELECT compare_sets('SELECT a, b, count(*), sum(n) FROM (SELECT a, b, count(*) AS n FROM gs_t GROUP BY a, b, c) AS x GROUP BY GROUPING SETS ((a), (b))');
SELECT compare_sets('SELECT count(*) FROM (SELECT DISTINCT a, b FROM gs_t) AS x GROUP BY GROUPING SETS ((a), ())');

-- a sort that was read to its end holds no memory while another one is done
SET gpusort.force = on;
EXPLAIN (COSTS OFF) SELECT a, b, count(*), grouping(a) FROM gs_t GROUP BY GROUPING SETS ((a), (b)) ORDER BY b, a;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR (SELECT id, a FROM gs_t ORDER BY a, id OFFSET 0) UNION ALL (SELECT id, a FROM gs_t ORDER BY a, id OFFSET 0);
MOVE ALL FROM c;
SELECT count(*) FROM gpusort_activity WHERE phase <> 'closing';
COMMIT;
RESET gpusort.force;

DROP TABLE gs_t, gs_empty;
DROP FUNCTION compare_sets, compare_nodes, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
