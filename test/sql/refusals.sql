--
-- gpusort.log_refusals: what is left to PostgreSQL, and why, with the columns.
--
\pset format unaligned
\pset tuples_only on
SET client_min_messages = notice;
SET max_parallel_workers_per_gather = 0;
SET enable_incremental_sort = off;
CREATE TYPE refusals_pair AS (a int, b int);
CREATE TABLE refusals_t (id int, p text COLLATE "C", j tsvector, n numeric, pair refusals_pair);
INSERT INTO refusals_t
	SELECT i, md5(i::text), to_tsvector('simple', i::text), i / 7.0, row(i, i)::refusals_pair FROM generate_series(1, 3000) AS i;
ANALYZE refusals_t;
-- plans a query: what is said of it counts, and the plan itself is not the same on all versions
CREATE FUNCTION plan(query text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE 'EXPLAIN ' || query;
END
$$;
DO $$
BEGIN
	IF EXISTS (SELECT FROM pg_settings WHERE name = 'enable_presorted_aggregate') THEN
		PERFORM set_config('enable_presorted_aggregate', 'off', false);
	END IF;
END
$$;

-- off: nothing is said
SELECT plan($$SELECT id FROM refusals_t ORDER BY j$$);
SET gpusort.log_refusals = on;
SET gpusort.min_rows = 1000;

-- what gpusort cannot sort: the number of the column, its type, its collation
SET gpusort.force = on;
SELECT count(*) FROM (SELECT id FROM refusals_t ORDER BY j, p OFFSET 0) AS s;
SELECT plan($$SELECT t.id FROM refusals_t t JOIN refusals_t u USING (id) ORDER BY ARRAY[u.pair], t.id$$);
SELECT plan($$SELECT id FROM refusals_t ORDER BY p USING ~<~$$);
SELECT plan($$SELECT id FROM refusals_t WHERE id IN (SELECT id FROM refusals_t ORDER BY strip(j) LIMIT 3)$$);
CREATE INDEX refusals_i ON refusals_t (id, j);
RESET gpusort.force;

-- what PostgreSQL does faster
SELECT plan($$SELECT id FROM refusals_t WHERE id < 100 ORDER BY p DESC, id$$);
SELECT plan($$SELECT id FROM refusals_t ORDER BY p LIMIT 10$$);
-- the rows of all processes, the leader with what it does beside merging
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT plan($$SELECT id FROM refusals_t ORDER BY p LIMIT 10$$);
RESET min_parallel_table_scan_size;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
SET max_parallel_workers_per_gather = 0;
SET gpusort.cost_factor = 1000000;
SELECT plan($$SELECT id FROM refusals_t ORDER BY p$$);
RESET gpusort.cost_factor;
SET gpusort.min_rows = 5000;
CREATE INDEX refusals_i3 ON refusals_t (id);
-- a new table has no rows to leave
CREATE TABLE refusals_new (id int PRIMARY KEY, p text);
SET gpusort.min_rows = 1000;

-- what gpusort takes no part in
SELECT plan($$SELECT count(DISTINCT n + 1), sum(id) FROM refusals_t GROUP BY p || 'x'$$);
SELECT plan($$SELECT id % 10, count(*) FROM refusals_t GROUP BY 1$$);
SET enable_incremental_sort = on;
SELECT plan($$SELECT * FROM (SELECT id, p FROM refusals_t ORDER BY id LIMIT 2000) AS s ORDER BY id, p$$);
SET enable_hashagg = off;
SELECT plan($$SELECT count(*) FROM refusals_t GROUP BY GROUPING SETS ((p), (n))$$);
-- a sort that gpusort does
SET gpusort.force = on;
SELECT plan($$SELECT id FROM refusals_t ORDER BY p$$);
RESET gpusort.force;
-- nothing is said of statements that only read catalogs
SELECT plan($$SELECT relname FROM pg_class ORDER BY relpages$$);
SELECT plan($$SELECT table_name FROM information_schema.tables ORDER BY table_name$$);
SELECT plan($$SELECT id FROM refusals_t, (SELECT relname FROM pg_class LIMIT 1) AS c ORDER BY j$$);

DROP FUNCTION plan;
DROP TABLE refusals_t;
DROP TYPE refusals_pair;
