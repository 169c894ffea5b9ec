--
-- Sorts, groups and joins above scans of another extension, whose paths have none below
-- (test/modules/childless_scan.c): each query by PostgreSQL alone, as planned by cost, and forced.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/compare.inc
\set ECHO all
LOAD 'childless_scan';
CREATE TABLE childless_t AS SELECT i AS id, i % 40 AS g, md5(i::text) COLLATE "C" AS p, sin(i) AS x FROM generate_series(1, 3000) AS i;
CREATE TABLE childless_u AS SELECT g, md5(g::text) COLLATE "C" AS p FROM generate_series(1, 3000) AS g;
CREATE TABLE childless_none (id int, p text COLLATE "C");
VACUUM ANALYZE childless_t, childless_u, childless_none;
SET gpusort.min_rows = 300;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT plan_nodes('SELECT * FROM childless_t');

-- hashing is what sorting competes with, and its cost is found from the paths below
CREATE FUNCTION compare(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	stock text[];
	difference text;
BEGIN
	stock := stock_rows(query, true);
	FOR way IN 0 .. 3 LOOP
		PERFORM set_config('gpusort.force', (way % 2 = 1)::text, true);
		PERFORM set_config('enable_hashagg', (way < 2)::text, true);
		difference := rows_differ(query_rows(query, true), stock);
		IF difference IS NOT NULL THEN
			RETURN format('way %s, %s', way, difference);
		END IF;
		IF plan_lines(query, 'ChildlessScan') = 0 THEN
			RETURN 'another scan';
		END IF;
	END LOOP;
	RETURN format('same, %s rows', coalesce(cardinality(stock), 0));
END
$$;
SELECT compare('SELECT id, p FROM childless_t ORDER BY p');
SELECT compare('SELECT id, p FROM childless_t WHERE g > 3 ORDER BY p DESC LIMIT 10');
SELECT compare('SELECT * FROM childless_none ORDER BY p');
SELECT compare('SELECT DISTINCT p FROM childless_t');
SELECT compare('SELECT DISTINCT g FROM childless_t ORDER BY g');
SELECT compare('SELECT DISTINCT ON (g) g, p FROM childless_t ORDER BY g, p');
SELECT compare('SELECT g, count(*) FROM childless_t GROUP BY g ORDER BY count(*), g');
SELECT compare('SELECT p, count(*), sum(id) FROM childless_t GROUP BY p ORDER BY p');
SELECT compare('SELECT p FROM childless_t GROUP BY p');
SELECT compare('SELECT g, count(DISTINCT p) FROM childless_t GROUP BY g');
SELECT compare('SELECT count(DISTINCT p) FROM childless_t');
SELECT compare('SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY x), percentile_disc(0.4) WITHIN GROUP (ORDER BY x) FROM childless_t GROUP BY g');
SELECT compare('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p) FROM childless_t');
SELECT compare('SELECT g, array_agg(id ORDER BY p) FROM childless_t GROUP BY g');
SELECT compare('SELECT id, rank() OVER (PARTITION BY g ORDER BY p), sum(id) OVER (ORDER BY p) FROM childless_t');
SELECT compare('SELECT t.id, u.g FROM childless_t t JOIN childless_u u USING (p) ORDER BY p');
SELECT compare('SELECT u.p, count(*) FROM childless_t t JOIN childless_u u USING (g) GROUP BY u.p ORDER BY 1');
SELECT compare('SELECT DISTINCT t.g, u.p FROM childless_t t LEFT JOIN childless_u u USING (g)');
SELECT compare('SELECT id FROM childless_t WHERE p IN (SELECT p FROM childless_u) ORDER BY p');
SELECT compare('SELECT p FROM childless_t UNION SELECT p FROM childless_u ORDER BY p');
SELECT compare('SELECT p FROM childless_t INTERSECT SELECT p FROM childless_u');
SELECT compare('SELECT count(*) FROM (SELECT p, g FROM childless_t GROUP BY p, g) AS s');
SELECT compare('SELECT s.p FROM generate_series(1, 3) AS n, LATERAL (SELECT p FROM childless_t WHERE g = n ORDER BY p LIMIT 2) AS s');
SELECT compare('SELECT gpu_sort_array(array_agg(id)) FROM childless_t GROUP BY g');

-- a plan that sorts
SET gpusort.force = on;
SELECT plan_nodes('SELECT p, count(*) FROM childless_t GROUP BY p ORDER BY p');
DROP TABLE childless_t, childless_u, childless_none;
DROP FUNCTION compare, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
