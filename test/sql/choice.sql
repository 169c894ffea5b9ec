--
-- Groups whose number is a guess: GpuChoice sorts or hashes, as the first rows tell.  Each query
-- runs by PostgreSQL alone, and by gpusort serially and in parallel.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/compare.inc
\set ECHO all
SET gpusort.min_rows = 1000;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET work_mem = '64MB';

CREATE TABLE choice_t (id int, k text COLLATE "C", l text COLLATE "en_US.utf8", total numeric, x float8);
INSERT INTO choice_t
	SELECT i, md5(i::text), 'No ' || CASE WHEN i % 2 = 0 THEN i ELSE i % 90 END, i % 1000 / 4.0,
		CASE WHEN i % 1000 > 0 THEN i % 9 END
	FROM generate_series(1, 100000) AS i;
VACUUM ANALYZE choice_t;
CREATE TABLE choice_parts (id int, k text COLLATE "C") PARTITION BY HASH (id);
CREATE TABLE choice_parts_0 PARTITION OF choice_parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE choice_parts_1 PARTITION OF choice_parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO choice_parts SELECT id, k FROM choice_t;
VACUUM ANALYZE choice_parts;

-- what an analyzed query's GpuChoice nodes chose; NULL: there is none
CREATE FUNCTION chosen(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON, COSTS OFF, TIMING OFF) ' || query INTO plan;
	RETURN (SELECT string_agg(coalesce(node ->> 'Chosen', 'not executed'), ' ')
			FROM jsonb_path_query(plan, 'strict $.** ? (@."Custom Plan Provider" == "GpuChoice")') AS node);
END
$$;

-- from some thousand groups on sorting is to be faster, on every device: multiplies gpusort's times
CREATE FUNCTION few_are_thousands(query text, times int DEFAULT 1) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	FOR i IN 0 .. 50 LOOP
		PERFORM set_config('gpusort.cost_factor', (0.01 * 1.25 ^ i)::text, false);
		EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
		EXIT WHEN jsonb_path_query_first(plan, 'strict $.**."Least Groups"')::int > 2000;
	END LOOP;
	RETURN set_config('gpusort.cost_factor', (times * current_setting('gpusort.cost_factor')::float8)::text, false);
END
$$;
CREATE FUNCTION choice_nodes(query text, details text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM few_are_thousands(query);
	RETURN plan_nodes(query, details);
END
$$;

-- serially and in parallel, also where a query is a part of another one that is rescanned
CREATE FUNCTION compare(query text, ordered boolean DEFAULT false) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	stock text[];
	difference text;
	result text[];
BEGIN
	stock := stock_rows(query, NOT ordered);
	FOR workers IN 0 .. 2 BY 2 LOOP
		PERFORM set_config('max_parallel_workers_per_gather', workers::text, true), few_are_thousands(query);
		difference := rows_differ(query_rows(query, NOT ordered), stock);
		IF difference IS NOT NULL THEN
			RETURN format('%s workers: %s', workers, difference);
		END IF;
		result := result || coalesce(chosen(query), 'no choice');
	END LOOP;
	RETURN format('same, %s rows, %s', coalesce(cardinality(stock), 0), array_to_string(result, ', '));
END
$$;

-- few groups: workers may hash them in two phases, where PostgreSQL supposes many and would not; not under DISTINCT
SELECT choice_nodes('SELECT lower(k), count(*) FROM choice_t GROUP BY 1');
SELECT choice_nodes('SELECT DISTINCT lower(k) FROM choice_t');

-- many groups and few
SELECT compare('SELECT lower(k), count(*) FROM choice_t GROUP BY 1');
SELECT compare('SELECT left(k, 1), count(*) FROM choice_t GROUP BY 1');
SELECT compare('SELECT left(k, 2), sum(total), max(l), string_agg(DISTINCT NULL::text, '','') FROM choice_t GROUP BY 1');
SELECT compare('SELECT upper(l), avg(total), count(x) FROM choice_t GROUP BY 1');
SELECT compare('SELECT id % 7, l || ''.'', stddev(total) FROM choice_t GROUP BY 1, 2');
SELECT compare('SELECT id % 7, left(k, 1), min(k) FROM choice_t GROUP BY 1, 2');
SELECT compare('SELECT total * 2, array_agg(id ORDER BY id) FROM choice_t GROUP BY 1');
SELECT compare('SELECT -x, count(*) FROM choice_t GROUP BY 1');
SELECT compare('SELECT left(k, 2) FROM choice_t GROUP BY 1');
SELECT compare('SELECT DISTINCT left(k, 1), id % 3 FROM choice_t');
SELECT compare('SELECT DISTINCT lower(k) FROM choice_t');
SELECT compare('SELECT DISTINCT ON (left(k, 1)) left(k, 1), id % 3 FROM choice_t ORDER BY 1, 2', true);

-- nothing is known of the first rows: one group, then many; many, then one
CREATE TABLE choice_front AS SELECT CASE WHEN i <= 50000 THEN 'one' ELSE i::text END COLLATE "C" AS k FROM generate_series(1, 100000) AS i;
CREATE TABLE choice_back AS SELECT CASE WHEN i > 50000 THEN 'one' ELSE i::text END COLLATE "C" AS k FROM generate_series(1, 100000) AS i;
VACUUM ANALYZE choice_front, choice_back;
SELECT split_part(compare('SELECT lower(k), count(*) FROM choice_front GROUP BY 1'), ' rows', 1);
SELECT split_part(compare('SELECT lower(k), count(*) FROM choice_back GROUP BY 1'), ' rows', 1);

-- few groups are found early, before the first chunk is full, also where rows come by pages
CREATE FUNCTION rows_fed(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	PERFORM few_are_thousands(query);
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON, COSTS OFF, TIMING OFF) ' || query INTO plan;
	RETURN jsonb_path_query_first(plan, 'strict $.**."Rows Fed"');
END
$$;
CREATE TABLE choice_pages AS SELECT i % 100 AS a, i % 100 AS b FROM generate_series(1, 100000) AS i;
ALTER TABLE choice_pages ALTER a SET (n_distinct = -1);
VACUUM ANALYZE choice_pages;
SELECT choice_nodes('SELECT a, b, count(*) FROM choice_pages GROUP BY a, b');
SELECT chosen('SELECT a, b, count(*) FROM choice_pages GROUP BY a, b');
SELECT rows_fed('SELECT a, b, count(*) FROM choice_pages GROUP BY a, b') < 15000 AS by_pages,
	rows_fed('SELECT a + 1, b, count(*) FROM choice_pages GROUP BY 1, 2') < 15000 AS by_rows;

-- nor where one feeder has found few groups, and another one comes by few rows: it hears of that at its next one
CREATE FUNCTION choice_seldom(id int, leader int) RETURNS boolean LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
	IF pg_backend_pid() <> leader THEN
		RETURN true;
	END IF;
	RETURN id % 100 = 0 AND pg_sleep(0.01) IS NOT NULL;
END
$$;
SELECT rows_fed(format('SELECT left(k, 1), count(*) FROM choice_t WHERE choice_seldom(id, %s) GROUP BY 1', pg_backend_pid())) < 2500 AS soon;

-- groups whose rows are neighbours keep coming; large ones are few all the same, and so are those that one key hides
CREATE TABLE choice_lines AS SELECT i / 4 AS g, i FROM generate_series(1, 100000) AS i;
VACUUM ANALYZE choice_lines;
SELECT compare('SELECT g + 0, count(*) FROM choice_lines GROUP BY 1');
SELECT compare('SELECT ''No '' || g, count(*) FROM choice_lines GROUP BY 1');
SELECT compare('SELECT i / 1000, count(*) FROM choice_lines GROUP BY 1');
SELECT DISTINCT chosen(format('SELECT CASE WHEN i %% 10 > 0 THEN %s ELSE i / 10 * 7919 %% 300 END, count(*) FROM choice_lines GROUP BY 1', k))
	FROM generate_series(1000, 1031) AS k;

-- a choice has a sort to do: what it does in case of few groups is not left to PostgreSQL
SELECT few_are_thousands('SELECT lower(k), count(*) FROM choice_t GROUP BY 1', 2) > 0 AS changed;
SET client_min_messages = notice;
SET gpusort.log_refusals = on;
SELECT plan_nodes('SELECT lower(k), count(*) FROM choice_t GROUP BY 1');
SELECT plan_nodes('SELECT left(s.k, 1), count(*) FROM (SELECT k FROM choice_t OFFSET 0) s GROUP BY 1');
RESET gpusort.log_refusals;
SET client_min_messages = warning;

-- nobody sees the order of groups at the top
SELECT choice_nodes('SELECT upper(l), count(*) FROM choice_t GROUP BY 1', 'Sort Key');
SELECT choice_nodes('SELECT DISTINCT upper(l) FROM choice_t', 'Sort Key');
SELECT choice_nodes('SELECT upper(l), count(*) FROM choice_t GROUP BY 1 ORDER BY 1', 'Sort Key');

-- combinations that ANALYZE has counted are no guess
CREATE STATISTICS choice_few (ndistinct) ON a, b FROM choice_pages;
CREATE STATISTICS choice_few_expr (ndistinct) ON (a % 10), (b + 1) FROM choice_pages;
CREATE STATISTICS choice_many (ndistinct) ON (lower(k)), id, total FROM choice_t;
ANALYZE choice_pages, choice_t;
SELECT few_are_thousands('SELECT lower(k), count(*) FROM choice_t GROUP BY 1') > 0 AS changed;
SELECT plan_lines('SELECT a, b, count(*) FROM choice_pages GROUP BY a, b', 'Gpu') AS few,
	plan_lines('SELECT a % 10, b + 1, count(*) FROM choice_pages GROUP BY 1, 2', 'Gpu') AS few_expressions;
SET gpusort.cost_factor = 0.01;
SELECT plan_nodes('SELECT lower(k), id, count(*) FROM choice_t GROUP BY 1, 2');
-- a column that nobody counts
SELECT choice_nodes('SELECT a, p.ctid, count(*) FROM choice_pages p GROUP BY 1, 2');
DROP STATISTICS choice_few, choice_few_expr, choice_many;

-- HAVING, an order that is wanted of both plans, limits
SELECT compare('SELECT left(k, 2), count(*) FROM choice_t GROUP BY 1 HAVING count(*) > 230');
SELECT compare('SELECT lower(k), count(*) FROM choice_t GROUP BY 1 HAVING count(*) > 1');
SELECT compare('SELECT left(k, 2), count(*) FROM choice_t GROUP BY 1 ORDER BY 1', true);
SELECT compare('SELECT left(k, 2), count(*) FROM choice_t GROUP BY 1 ORDER BY 1 DESC LIMIT 3', true);
SELECT compare('SELECT lower(k), count(*) FROM choice_t GROUP BY 1 ORDER BY 1 LIMIT 3 OFFSET 50000', true);
SELECT compare('SELECT lower(k), count(*), rank() OVER (ORDER BY lower(k)) FROM choice_t GROUP BY 1 ORDER BY 3', true);
SELECT compare('SELECT left(k, 2), count(*), rank() OVER (ORDER BY left(k, 2)) FROM choice_t GROUP BY 1 ORDER BY 3', true);
SELECT compare('SELECT DISTINCT left(k, 2) FROM choice_t ORDER BY 1', true);
SELECT compare('SELECT sum(n) FROM (SELECT left(k, 2), count(*) AS n FROM choice_t GROUP BY 1) s');

-- inputs: nothing, partitions, joins, WITH queries, parameters, subqueries
SELECT compare('SELECT lower(k), count(*) FROM choice_t WHERE id < 0 GROUP BY 1');
SELECT compare('SELECT lower(k), count(*) FROM choice_parts GROUP BY 1');
SELECT compare('SELECT left(k, 2), count(*) FROM choice_parts GROUP BY 1');
SELECT compare('SELECT left(k, 2), count(*) FROM choice_parts WHERE id > (SELECT min(id) FROM choice_t) GROUP BY 1');
SELECT compare('SELECT left(k, 2), count(*), (SELECT max(id) FROM choice_t) FROM choice_t a WHERE EXISTS (SELECT FROM choice_t b WHERE b.id = a.id + 1) GROUP BY 1');
SELECT compare('SELECT left(k, 2) || (SELECT v FROM (VALUES (id % 2)) AS s (v)), count(*) FROM choice_t GROUP BY 1');

-- each execution of the inner query finds out for itself, until few groups were found
SELECT compare('SELECT n, g FROM generate_series(1, 3) AS n, LATERAL (SELECT count(*) FROM (SELECT left(k, 2 + n * 3) FROM choice_t WHERE id > n GROUP BY 1) s) t (g)');
SELECT compare('SELECT n, g FROM generate_series(1, 3) AS n, LATERAL (SELECT count(*) FROM (SELECT left(k, 10 - n * 3) FROM choice_t WHERE id > n GROUP BY 1) s) t (g)');

-- cursors
BEGIN;
DECLARE few SCROLL CURSOR FOR SELECT left(k, 2), count(*) FROM choice_t GROUP BY 1 ORDER BY 1;
FETCH 2 FROM few;
FETCH BACKWARD 1 FROM few;
DECLARE many CURSOR FOR SELECT lower(k), count(*) FROM choice_t GROUP BY 1 ORDER BY 1;
FETCH 2 FROM many;
MOVE 40000 FROM many;
CLOSE few;
FETCH 1 FROM many;
COMMIT;

-- a plan that is kept
PREPARE grouped (int) AS SELECT count(*) FROM (SELECT left(k, $1) FROM choice_t GROUP BY 1) s;
SET plan_cache_mode = force_generic_plan;
EXECUTE grouped (1);
EXECUTE grouped (30);
EXECUTE grouped (1);
DEALLOCATE grouped;
RESET plan_cache_mode;

-- an input that must not be begun twice is not sorted on a guess
CREATE SEQUENCE choice_s;
SELECT few_are_thousands('SELECT lower(k), count(*) FROM choice_t GROUP BY 1', 2) > 0 AS changed;
SELECT plan_lines('SELECT left(k, 1), count(*) FROM choice_t WHERE nextval(''choice_s'') > 0 GROUP BY 1', 'Gpu(Choice|Sort)') AS volatile,
	plan_lines('SELECT left(s.k, 1), count(*) FROM (SELECT k FROM choice_t OFFSET 0) s GROUP BY 1', 'Gpu(Choice|Sort)') AS subquery,
	plan_lines('SELECT i % 10, count(*) FROM generate_series(1, 60000) AS i GROUP BY 1', 'Gpu(Choice|Sort)') AS function;
-- nor is there a choice where all are to be sorted, or PostgreSQL must sort, too
SET gpusort.force = on;
SELECT plan_lines('SELECT left(k, 1), count(*) FROM choice_t GROUP BY 1', 'GpuChoice') AS forced;
RESET gpusort.force;
SELECT plan_lines('SELECT left(k, 1), count(DISTINCT id) FROM choice_t GROUP BY 1', 'GpuChoice') AS distinct_aggregate;

-- a first row whose key is too long is put aside; it is no reason to decline, least of all where nobody may
CREATE TABLE choice_long AS SELECT i, CASE WHEN i = 1 THEN repeat(md5(i::text), 250) ELSE md5(i::text) END COLLATE "en_US.utf8" AS p
	FROM generate_series(1, 30000) AS i;
VACUUM ANALYZE choice_long;
SELECT compare('SELECT p, rank() OVER (ORDER BY p) FROM choice_long', true);
SELECT compare('SELECT p || ''.'', count(*) FROM choice_long GROUP BY 1');

-- where no session is to be had PostgreSQL's plan is executed
SET gpusort.fault = 'open';
SELECT compare('SELECT lower(k), count(*) FROM choice_t GROUP BY 1');
RESET gpusort.fault;

-- to print the plan that was not executed takes no memory for all groups that it expects
CREATE TABLE choice_sum AS SELECT i FROM generate_series(1, 1000) AS i;
VACUUM ANALYZE choice_sum;
\c -
SET work_mem = '64MB';
SET max_parallel_workers_per_gather = 0;
CREATE FUNCTION peak_kb() RETURNS int LANGUAGE sql AS
	'SELECT substring(pg_read_file(''/proc/self/status'', 0, 10000) FROM ''VmHWM:\s+(\d+)'')::int';
CREATE VIEW choice_none AS SELECT a.i * b.i, count(*) FROM choice_sum a, choice_sum b WHERE a.i + b.i < 0 GROUP BY 1;
TABLE choice_none;
-- a first EXPLAIN maps the server's code, which counts, too
SELECT chosen('SELECT i, count(*) FROM choice_sum WHERE i < 0 GROUP BY 1');
SELECT few_are_thousands('TABLE choice_none') > 0 AS changed;
SELECT peak_kb() AS before \gset
SELECT chosen('TABLE choice_none');
SELECT peak_kb() - :before < 4096 AS small;
DROP VIEW choice_none;

-- what was declined is gone
\set ECHO none
\i sql/wait_closed.inc
\set ECHO all
SELECT wait_closed();
SELECT count(*) FROM gpusort_activity;
DROP TABLE choice_t, choice_long, choice_parts, choice_front, choice_back, choice_pages, choice_lines, choice_sum;
DROP SEQUENCE choice_s;
DROP FUNCTION wait_closed, compare, chosen, few_are_thousands, choice_nodes, rows_fed, choice_seldom, peak_kb, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
