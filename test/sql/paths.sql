--
-- Paths over GpuSort against those that need no sort: the plans that the planner
-- chooses by cost, and their rows beside those of PostgreSQL alone.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/compare.inc
\set ECHO all
SET gpusort.min_rows = 1000;
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SET max_parallel_workers_per_gather = 0;

CREATE TABLE paths_t (id int, k int, p text COLLATE "C", e text, x float8, j tsvector);
INSERT INTO paths_t
	SELECT i, i % 10,
		   CASE WHEN i % 100 = 0 THEN NULL ELSE md5((i % 29000)::text) END,
		   md5((i % 28000)::text),
		   CASE i % 50 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN '0' WHEN 3 THEN '-Infinity' ELSE sin(i) END,
		   to_tsvector('simple', i::text)
	FROM generate_series(1, 30000) AS i;
CREATE INDEX paths_k ON paths_t (k);
CREATE TABLE paths_u AS SELECT id * 2 AS id, p, e FROM paths_t;
CREATE TABLE paths_few AS SELECT * FROM paths_t LIMIT 500;
VACUUM ANALYZE paths_t, paths_u, paths_few;

-- the plan with gpusort, and whether the rows are PostgreSQL's
CREATE FUNCTION compare(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	stock text[] := stock_rows(query, true);
	ours text[] := query_rows(query, true);
	plan text := plan_nodes(query);
BEGIN
	RETURN coalesce(rows_differ(ours, stock), format('same, %s rows: %s', coalesce(cardinality(stock), 0), plan));
END
$$;

-- is it the plan of PostgreSQL alone?
CREATE FUNCTION stays(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	ours text := plan_nodes(query);
	stock text;
BEGIN
	PERFORM set_config('gpusort.enabled', 'off', true);
	stock := plan_nodes(query);
	PERFORM set_config('gpusort.enabled', 'on', true);
	RETURN CASE WHEN ours = stock THEN 'stays' ELSE 'is ' || ours || ', was ' || stock END;
END
$$;

-- where sorts take little time, on every device
SET gpusort.cost_factor = 0.01;
-- many groups
SELECT compare('SELECT p, count(*) FROM paths_t GROUP BY p');
SELECT compare('SELECT p FROM paths_t GROUP BY p HAVING p > ''8''');
SELECT compare('SELECT e, k, min(x), max(p), sum(id) FROM paths_t GROUP BY e, k HAVING count(*) > 1');
SELECT compare('SELECT x, count(*), array_agg(id ORDER BY id) FROM paths_t GROUP BY x');
SELECT compare('SELECT lower(p), count(j) FROM paths_t GROUP BY lower(p)');
SELECT compare('SELECT a.p, array_agg(b.id ORDER BY b.id) FROM paths_t a JOIN paths_few b USING (id) GROUP BY a.p');
SELECT compare('SELECT f.k, p, count(*) FROM paths_t a, (VALUES (1), (2)) f(k) GROUP BY f.k, p');
SELECT compare('SELECT * FROM (SELECT e, count(*) AS n FROM paths_t GROUP BY e) s WHERE n > 1');
-- DISTINCT
SELECT compare('SELECT DISTINCT p FROM paths_t');
SELECT compare('SELECT DISTINCT e, x FROM paths_t');
SELECT compare('SELECT DISTINCT p, k + 1 FROM paths_t ORDER BY p DESC NULLS LAST LIMIT 100');
SELECT compare('SELECT DISTINCT ON (e) e, id FROM paths_t ORDER BY e, id DESC');
SELECT compare('SELECT DISTINCT count(*), p FROM paths_t GROUP BY p, e');
-- window functions: where an index has part of the order, too
SELECT compare('SELECT id, rank() OVER (ORDER BY k, p, id) FROM paths_t');
SELECT compare('SELECT id, sum(id) OVER (PARTITION BY k ORDER BY id), lag(id) OVER (ORDER BY e, id) FROM paths_t');
SELECT compare('SELECT k, count(*), rank() OVER (ORDER BY p) FROM paths_t GROUP BY k, p');
SELECT compare('SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY e ORDER BY id) AS r FROM paths_t) s WHERE r <= 1');
-- ORDER BY
SELECT compare('SELECT id, k, p FROM paths_t ORDER BY k, p');
-- joins whose hash tables would be too large
SELECT compare('SELECT a.id, b.id FROM paths_t a JOIN paths_u b ON a.p = b.p');
SELECT compare('SELECT a.id, b.id FROM paths_t a LEFT JOIN paths_u b ON a.p = b.p AND a.id = b.id');
SELECT compare('SELECT a.id, b.id FROM paths_t a FULL JOIN paths_u b ON a.p = b.p AND a.id = b.id');
SELECT compare('SELECT a.id FROM paths_t a WHERE NOT EXISTS (SELECT FROM paths_u b WHERE a.e = b.e AND a.id = b.id)');
SELECT compare('SELECT a.p, count(*), sum(b.id) FROM paths_t a JOIN paths_u b ON a.p = b.p GROUP BY a.p');

-- fed in parallel
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT compare('SELECT p, array_agg(id ORDER BY id) FROM paths_t GROUP BY p');
SELECT compare('SELECT DISTINCT e, p FROM paths_t');
SELECT compare('SELECT id, rank() OVER (ORDER BY k, p, id) FROM paths_t');
SELECT compare('SELECT a.id, b.id FROM paths_t a JOIN paths_u b ON a.p = b.p');
-- columns that only the sort needs: workers compute them, or there is no feed
SELECT compare('SELECT a.id, b.id FROM paths_t a JOIN paths_u b ON upper(a.p) = upper(b.p)');
CREATE FUNCTION paths_upper(t text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED AS $$ BEGIN RETURN upper(t); END $$;
SELECT compare('SELECT a.id, b.id FROM paths_t a JOIN paths_u b ON paths_upper(a.p) = upper(b.p)');
-- what comes back twice: cursors, parameters, rescans
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT p, count(*) FROM paths_t GROUP BY p;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
ROLLBACK;
PREPARE q (int) AS SELECT count(*), sum(n) FROM (SELECT p, count(*) AS n FROM paths_t WHERE id > $1 GROUP BY p) s;
SET plan_cache_mode = force_generic_plan;
EXECUTE q (0);
EXECUTE q (29998);
RESET plan_cache_mode;
SELECT compare('SELECT f.id, (SELECT count(*) FROM (SELECT DISTINCT p, e FROM paths_t WHERE id > f.id) s) FROM (SELECT id FROM paths_few ORDER BY id LIMIT 2) f');

-- where nothing changes, as sorts take much time: few groups
SET gpusort.cost_factor = 100;
SELECT stays('SELECT k, count(*) FROM paths_t GROUP BY k');
SELECT stays('SELECT k, array_agg(id) FROM paths_t GROUP BY k');
SELECT stays('SELECT DISTINCT k FROM paths_t');
SELECT stays('SELECT k / 2, count(*) FROM paths_t GROUP BY 1');
-- few rows
SELECT stays('SELECT p, count(*) FROM paths_few GROUP BY p');
SELECT stays('SELECT rank() OVER (ORDER BY p) FROM paths_few');
SELECT stays('SELECT a.id FROM paths_t a JOIN paths_few b ON a.p = b.p');
-- a hash table that fits into memory
SET work_mem = '64MB';
SELECT stays('SELECT p, count(*) FROM paths_t GROUP BY p');
SELECT stays('SELECT DISTINCT p FROM paths_t');
SET gpusort.cost_factor = 1;
SELECT stays('SELECT a.id FROM paths_t a JOIN paths_u b ON a.p = b.p');
-- where gpusort would take just as much time for one query, it does another
CREATE FUNCTION until_stays(query text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 0 .. 150 LOOP
		PERFORM set_config('gpusort.cost_factor', (0.01 * 1.08 ^ i)::text, false);
		IF plan_lines(query, 'GpuSort') = 0 THEN
			RETURN 'stays';
		END IF;
	END LOOP;
	RETURN 'is ' || plan_nodes(query);
END
$$;
SET max_parallel_workers_per_gather = 0;
-- values of one column, by value, are sorted without rows
SELECT until_stays('SELECT x FROM paths_t ORDER BY x');
SELECT compare('SELECT x, id FROM paths_t ORDER BY x, id');
SELECT compare('SELECT p FROM paths_t ORDER BY p');
-- few groups, and a hash table that the caches hold no longer
SELECT until_stays('SELECT k, count(*) FROM paths_t GROUP BY k');
SELECT compare('SELECT id, count(*) FROM paths_t GROUP BY id');
-- a heap of few rows; of many; of texts
SELECT until_stays('SELECT x, id FROM paths_t ORDER BY x LIMIT 10');
SELECT compare('SELECT x, id FROM paths_t ORDER BY x LIMIT 5000');
SELECT compare('SELECT p, id FROM paths_t ORDER BY p LIMIT 10');
-- aggregates sort values without rows, too, but not texts
SELECT until_stays('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM paths_t');
SELECT plan_nodes('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p) FROM paths_t');
SET gpusort.cost_factor = 100;
-- a limit above groups, windows and set operations: a heapsort does it
SELECT stays('SELECT p, count(*) FROM paths_t GROUP BY p ORDER BY 2, 1 LIMIT 1000');
SELECT stays('SELECT p, count(*) FROM paths_t GROUP BY p ORDER BY 2, 1 LIMIT 500 OFFSET 500');
SELECT stays('SELECT p, k, count(*) FROM paths_t GROUP BY ROLLUP (p, k) ORDER BY 3, 1, 2 LIMIT 1000');
SELECT stays('SELECT p FROM paths_t UNION ALL SELECT e FROM paths_u ORDER BY 1 LIMIT 1000');
SET gpusort.cost_factor = 0.01;
SELECT compare('SELECT p, count(*) FROM paths_t GROUP BY p ORDER BY 2, 1 LIMIT 20000');
SELECT compare('SELECT p, count(*) FROM paths_t GROUP BY p ORDER BY 2, 1 OFFSET 1000');
SELECT compare('SELECT p, count(*) FROM paths_t GROUP BY p ORDER BY 2, 1 LIMIT (SELECT 1000)');
SELECT compare('SELECT p, count(*) FROM paths_t GROUP BY p ORDER BY 2, 1 LIMIT NULL');
SET max_parallel_workers_per_gather = 0;
-- PostgreSQL expects a heapsort where the rows of the limit fit into work_mem; tuplesort.c needs
-- memory for more, and larger, rows, and sorts all of them by files if there is less
CREATE FUNCTION stock_sort(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	SET LOCAL gpusort.enabled = off;
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) ' || query LOOP
		IF line ~ 'Sort Method' THEN
			SET LOCAL gpusort.enabled = on;
			RETURN regexp_replace(line, '.*Sort Method: (.*)  .*', '\1');
		END IF;
	END LOOP;
END
$$;
SET work_mem = '512kB';
SELECT stock_sort('SELECT * FROM paths_t ORDER BY x, id LIMIT 1000'), until_stays('SELECT * FROM paths_t ORDER BY x, id LIMIT 1000');
SET work_mem = '140kB';
SELECT stock_sort('SELECT * FROM paths_t ORDER BY x, id LIMIT 1000'), compare('SELECT * FROM paths_t ORDER BY x, id LIMIT 1000');
-- rows that lie in the order hardly ever enter the heap
SET work_mem = '4MB';
SELECT until_stays('SELECT id, k FROM paths_t ORDER BY id LIMIT 6000');
SELECT compare('SELECT id, k FROM paths_t ORDER BY id DESC LIMIT 6000');
SET work_mem = '64kB';
SET gpusort.cost_factor = 1;
-- an index returns the rows all but in order
SET gpusort.cost_factor = 5;
CREATE INDEX paths_id ON paths_t (id);
SELECT stays('SELECT id, k, e FROM paths_t ORDER BY id, e');
DROP INDEX paths_id;
-- the order is there, or a small limit needs none
CREATE INDEX paths_p ON paths_t (p);
VACUUM ANALYZE paths_t;
SELECT stays('SELECT p, count(*) FROM paths_t GROUP BY p LIMIT 5');
SELECT stays('SELECT id, rank() OVER (ORDER BY p) FROM paths_t LIMIT 5');
SELECT stays('SELECT DISTINCT ON (k) k FROM paths_t ORDER BY k LIMIT 1');
-- gpusort.force takes the sorts of plans that PostgreSQL would compare, and no others
SET gpusort.force = on;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashagg = off;
SELECT plan_nodes('SELECT p FROM paths_t ORDER BY p');
SELECT plan_nodes('SELECT DISTINCT p FROM paths_t');
SELECT plan_nodes('SELECT DISTINCT ON (p) p, id FROM paths_t ORDER BY p, id');
SELECT plan_nodes('SELECT p, max(id) FROM paths_t GROUP BY p ORDER BY p');
SELECT plan_nodes('SELECT p FROM (SELECT p FROM paths_t ORDER BY p LIMIT 3000) s ORDER BY p');
SELECT plan_nodes('SELECT p FROM (SELECT p FROM paths_t ORDER BY p LIMIT 3000) s ORDER BY p DESC');
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT plan_nodes('SELECT e FROM (SELECT e FROM paths_t GROUP BY e) s ORDER BY e');
RESET enable_hashagg;
RESET gpusort.force;
-- types that are not sorted, grouping sets, what the user has switched off
SELECT stays('SELECT j, count(*) FROM paths_t GROUP BY j');
SELECT stays('SELECT DISTINCT j, e FROM paths_t');
SELECT stays('SELECT p, k, count(*) FROM paths_t GROUP BY GROUPING SETS ((p), (k))');
SELECT stays('SELECT a.id FROM paths_t a JOIN paths_u b ON to_tsvector(''simple'', a.id::text) = to_tsvector(''simple'', b.id::text)');
SET enable_sort = off;
SELECT stays('SELECT e, count(*) FROM paths_t GROUP BY e');
SELECT stays('SELECT a.id FROM paths_t a JOIN paths_u b ON a.e = b.e');
RESET enable_sort;
SET gpusort.min_rows = 40000;
SELECT stays('SELECT e, count(*) FROM paths_t GROUP BY e');

-- a hash table in memory that is larger than the caches
SET gpusort.cost_factor = 1;
SET gpusort.min_rows = 20000;
SET work_mem = '256MB';
CREATE TABLE paths_many AS SELECT md5(i::text) COLLATE "C" AS p FROM generate_series(1, 400000) AS i;
ANALYZE paths_many;
SELECT plan_nodes('SELECT p, count(*) FROM paths_many GROUP BY p');
SELECT plan_nodes('SELECT DISTINCT p FROM paths_many');

DROP TABLE paths_t, paths_u, paths_few, paths_many;
DROP FUNCTION compare, stays, until_stays, paths_upper, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
