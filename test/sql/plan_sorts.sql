--
-- The sorts that PostgreSQL makes on its own account: for window functions,
-- DISTINCT, grouping, merge joins, set operations, ordered appends.  Each query
-- runs with gpusort off and forced on, serially and in parallel.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/compare_modes.inc
\set ECHO all
SET gpusort.min_rows = 300;
SET enable_hashagg = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;

CREATE TABLE sorts_t (id int, k int, p text COLLATE "C", f float8);
INSERT INTO sorts_t
	SELECT i, i % 97, CASE WHEN i % 50 = 0 THEN NULL ELSE md5((i % 700)::text) END, (i % 31)::float8
	FROM generate_series(1, 5000) AS i;
CREATE TABLE sorts_part (id int, p text COLLATE "C") PARTITION BY RANGE (id);
CREATE TABLE sorts_part_1 PARTITION OF sorts_part FOR VALUES FROM (0) TO (2000);
CREATE TABLE sorts_part_2 PARTITION OF sorts_part FOR VALUES FROM (2000) TO (6000);
CREATE INDEX ON sorts_part_2 (p, id);
INSERT INTO sorts_part SELECT id, p FROM sorts_t;
ANALYZE sorts_t, sorts_part;

CREATE FUNCTION count_sorts(query text) RETURNS text LANGUAGE sql AS $$
	SELECT format('%s GpuSort, %s Sort', plan_lines(query, '\(GpuSort\)'), plan_lines(query, '(^|->  )Sort$'));
$$;

CREATE FUNCTION compare(query text) RETURNS text LANGUAGE sql AS $$
	SELECT compare_modes(query, 'count_sorts');
$$;

-- where the number of sorts depends on PostgreSQL's version
CREATE FUNCTION compare_only(query text) RETURNS text LANGUAGE sql AS $$
	SELECT regexp_replace(compare(query), '\d+ GpuSort, ', '', 'g');
$$;

-- a column that workers may not compute
CREATE FUNCTION sorts_upper(t text) RETURNS text LANGUAGE plpgsql PARALLEL RESTRICTED AS $$ BEGIN RETURN upper(t); END $$;
SELECT compare('SELECT p, k, sorts_upper(p) AS u, count(*) FROM sorts_t GROUP BY p, k, sorts_upper(p)');

-- window functions
SELECT compare('SELECT id, rank() OVER (ORDER BY p, id) AS r FROM sorts_t');
SELECT compare('SELECT id, row_number() OVER (PARTITION BY k ORDER BY id DESC) AS r, sum(id) OVER (ORDER BY p DESC NULLS LAST, id) AS s FROM sorts_t ORDER BY id');
SELECT compare('SELECT id, lag(id, 3) OVER w AS l, first_value(id) OVER w AS v FROM sorts_t WINDOW w AS (PARTITION BY f ORDER BY id ROWS BETWEEN 5 PRECEDING AND 5 FOLLOWING)');
-- DISTINCT and grouping
SELECT compare('SELECT DISTINCT p FROM sorts_t');
SELECT compare('SELECT DISTINCT ON (k) k, id FROM sorts_t ORDER BY k, id');
SELECT compare('SELECT p, count(*), min(id) FROM sorts_t GROUP BY p');
SELECT compare('SELECT k, f, count(*) FROM sorts_t GROUP BY GROUPING SETS ((k), (f), ()) ORDER BY 1, 2, 3');
SELECT compare('SELECT k, f, count(*) FROM sorts_t GROUP BY ROLLUP (k, f)');
SELECT compare('SELECT p, string_agg(id::text, '','' ORDER BY id DESC) FROM sorts_t GROUP BY p');
SELECT compare_only('SELECT count(DISTINCT p), count(DISTINCT k) FROM sorts_t');
-- merge joins: marks and restores with many equal keys, outer joins
SELECT compare('SELECT a.id, b.id FROM sorts_t a JOIN sorts_t b USING (p) WHERE a.id < 1000 ORDER BY a.id, b.id');
SELECT compare('SELECT count(*), sum(a.id), sum(b.id) FROM sorts_t a JOIN sorts_t b ON a.k = b.k');
SELECT compare('SELECT a.id, b.id FROM sorts_t a FULL JOIN sorts_part b ON a.id = b.id + 3000 AND a.p = b.p ORDER BY a.id, b.id');
SELECT compare('SELECT a.id FROM sorts_t a LEFT JOIN sorts_t b ON a.p = b.p AND b.id < 100 WHERE b.id IS NULL ORDER BY 1');
SELECT compare('SELECT a.id FROM sorts_t a WHERE p IN (SELECT p FROM sorts_t b WHERE b.k < 5) ORDER BY 1');
-- generated columns: PostgreSQL 18's are expressions
DO $$
BEGIN
	EXECUTE format('CREATE TABLE sorts_gen (id int, g int GENERATED ALWAYS AS (id * 7919 %% 1000) %1$s,
		t text COLLATE "C" GENERATED ALWAYS AS (overlay(''abcdefgh'' COLLATE "C" PLACING (id %% 90)::text FROM 2)) %1$s)',
		CASE WHEN current_setting('server_version_num')::int >= 180000 THEN 'VIRTUAL' ELSE 'STORED' END);
END
$$;
INSERT INTO sorts_gen SELECT id FROM sorts_t;
ANALYZE sorts_gen;
SELECT compare('SELECT g, t, id FROM sorts_gen ORDER BY t, g DESC, id');
SELECT compare('SELECT t, count(*), min(g) FROM sorts_gen GROUP BY t');
SELECT compare('SELECT id, rank() OVER (PARTITION BY g ORDER BY t, id) AS r FROM sorts_gen');
DROP TABLE sorts_gen;
-- set operations
SELECT compare_only('SELECT p, k FROM sorts_t WHERE id % 3 = 0 UNION SELECT p, k FROM sorts_t WHERE id % 5 = 0');
SELECT compare_only('SELECT k FROM sorts_t WHERE id < 900 EXCEPT SELECT k FROM sorts_t WHERE k % 7 = 0');
SELECT compare_only('SELECT p FROM sorts_t WHERE id < 1900 INTERSECT ALL SELECT p FROM sorts_t WHERE id % 2 = 0');
-- partitions: a sort below Merge Append, beside an index
SELECT compare('SELECT id, p FROM sorts_part ORDER BY p, id');
SELECT compare('SELECT id, p FROM sorts_part ORDER BY p, id LIMIT 700');
-- subqueries: init plans, correlated ones, CTEs
SELECT compare('SELECT (SELECT max(r) FROM (SELECT rank() OVER (ORDER BY p) AS r FROM sorts_t) x) AS m, k FROM sorts_t WHERE id < 5 ORDER BY k');
SELECT compare('SELECT k, (SELECT count(*) FROM (SELECT DISTINCT p FROM sorts_t u WHERE u.id % 97 <> t.k) x) AS n FROM sorts_t t WHERE id < 6 ORDER BY k');
SELECT compare_only('WITH c AS MATERIALIZED (SELECT DISTINCT p, k FROM sorts_t) SELECT a.p, b.k FROM c a JOIN c b ON a.p = b.p AND a.k = b.k ORDER BY 1, 2');
SELECT compare('SELECT t.k, s.p FROM (SELECT DISTINCT k FROM sorts_t WHERE k < 4) t, LATERAL (SELECT DISTINCT p FROM sorts_t u WHERE u.k >= t.k * 20) s ORDER BY 1, 2');

-- a sort is looked at where it has enough rows, whatever the plan around it costs: GpuSort nodes where
-- gpusort.min_rows is that number, one more, and forced.
CREATE FUNCTION around_min_rows(query text, OUT below int, OUT above int, OUT forced int, OUT cheaper_plan bool)
LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
	sort jsonb;
	cost float8;
	rows int;
BEGIN
	PERFORM set_config('gpusort.enabled', 'off', true);
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	sort := jsonb_path_query_first(plan, '$.** ? (@."Node Type" == "Sort")');
	cost := (sort ->> 'Total Cost')::float8 - (sort -> 'Plans' -> 0 ->> 'Total Cost')::float8;
	cheaper_plan := (plan -> 0 -> 'Plan' ->> 'Total Cost')::float8 < cost;
	PERFORM set_config('gpusort.enabled', 'on', true);
	rows := sort -> 'Plan Rows';
	PERFORM set_config('gpusort.min_rows', rows::text, true);
	below := plan_lines(query, '\(GpuSort\)');
	PERFORM set_config('gpusort.min_rows', (rows + 1)::text, true);
	above := plan_lines(query, '\(GpuSort\)');
	PERFORM set_config('gpusort.force', 'on', true);
	forced := plan_lines(query, '\(GpuSort\)');
	PERFORM set_config('gpusort.force', 'off', true);
END
$$;
SET max_parallel_workers_per_gather = 0;
SET gpusort.cost_factor = 0;
SELECT query, around_min_rows.* FROM unnest(ARRAY[
	'SELECT DISTINCT p FROM sorts_t',
	'SELECT id, p FROM sorts_t ORDER BY p',
	'SELECT id, sum(k) OVER (ORDER BY p) FROM sorts_t',
	'SELECT * FROM sorts_t a JOIN (SELECT id, k FROM sorts_t ORDER BY id OFFSET 0) b ON a.id = b.id',
	'SELECT k FROM sorts_t UNION ALL SELECT count(*) FROM sorts_t GROUP BY p LIMIT 10',
	'SELECT 1 WHERE EXISTS (SELECT k FROM sorts_t UNION ALL SELECT count(*) FROM sorts_t GROUP BY p)',
	'SELECT (SELECT k FROM sorts_t UNION ALL (SELECT count(*) FROM sorts_t GROUP BY p) LIMIT 1)',
	'WITH c AS MATERIALIZED (SELECT DISTINCT p FROM sorts_t) SELECT count(*) FROM c',
	'SELECT g, (SELECT count(*) FROM (SELECT DISTINCT p FROM sorts_t WHERE k <> g OFFSET 0) s) FROM generate_series(1, 2) AS g'
	]) AS query, around_min_rows(query);
RESET gpusort.cost_factor;

-- by cost and size: small sorts, and small limits of large ones, stay as they are
RESET gpusort.min_rows;
SET max_parallel_workers_per_gather = 0;
SELECT plan_nodes('SELECT DISTINCT p FROM sorts_t');
CREATE TABLE sorts_u AS SELECT i AS id, md5(i::text) COLLATE "C" AS p FROM generate_series(1, 50000) AS i;
ANALYZE sorts_u;
SELECT plan_nodes('SELECT DISTINCT p FROM sorts_u');
SELECT plan_nodes('SELECT rank() OVER (ORDER BY p) FROM sorts_u');
SET gpusort.cost_factor = 20;
SELECT plan_nodes('SELECT * FROM (SELECT * FROM sorts_u ORDER BY p LIMIT 10) s ORDER BY id');
RESET gpusort.cost_factor;
SELECT plan_nodes('SELECT count(*) FROM sorts_u a JOIN sorts_u b USING (p)');
-- a Gather Merge that computes what workers may not.  The rows of three workers are one more
-- than the table's, so no path is offered.
ALTER TABLE sorts_u SET (parallel_workers = 3);
SET max_parallel_workers_per_gather = 3;
SET parallel_leader_participation = off;
SET gpusort.min_rows = 50001;
EXPLAIN (COSTS OFF, VERBOSE) SELECT p, id, sorts_upper(p) AS u, count(*) FROM sorts_u GROUP BY p, id, sorts_upper(p);
SELECT compare('SELECT p, id, sorts_upper(p) AS u, count(*) FROM sorts_u GROUP BY p, id, sorts_upper(p)');
-- one at the top of a plan: names, and columns that are sorted by only
SET gpusort.cost_factor = 0;
SELECT plan_nodes('SELECT id AS number FROM sorts_u ORDER BY p');
CREATE TABLE sorts_names AS SELECT id AS number, -id AS other FROM sorts_u ORDER BY p;
SELECT attname FROM pg_attribute WHERE attrelid = 'sorts_names'::regclass AND attnum > 0 ORDER BY attnum;
DROP TABLE sorts_names;
RESET gpusort.cost_factor;
RESET parallel_leader_participation;
SET max_parallel_workers_per_gather = 0;
SET gpusort.enabled = off;
SELECT plan_nodes('SELECT count(*) FROM sorts_u a JOIN sorts_u b USING (p)');
DROP TABLE sorts_t, sorts_u, sorts_part;
DROP FUNCTION compare, compare_only, count_sorts, around_min_rows, sorts_upper, compare_modes, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
