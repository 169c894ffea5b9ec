--
-- UNION by GpuSort paths: each query runs by PostgreSQL alone, and by gpusort serially and in parallel.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/compare_modes.inc
\set ECHO all
SET gpusort.min_rows = 0;

CREATE TABLE unions_a (id int, c text COLLATE "C", d text COLLATE "en_US.utf8", f float8, j json);
INSERT INTO unions_a
	SELECT nullif(i % 700, 3), CASE WHEN i % 30 > 0 THEN left(md5((i % 400)::text), i % 9) END,
		   translate(left(md5((i % 300)::text), 3), '0123456789abcdef', 'aAAa--A ,_bBB.''éé'),
		   CASE i % 20 WHEN 0 THEN 'NaN' WHEN 1 THEN NULL WHEN 2 THEN '-infinity' ELSE (i % 90)::float8 END, '{}'
	FROM generate_series(1, 4000) AS i;
CREATE TABLE unions_b AS SELECT id + 300 AS id, reverse(c) COLLATE "C" AS c, d, f / 2 AS f, j FROM unions_a WHERE id % 3 > 0;
ANALYZE unions_a, unions_b;

-- GpuSort nodes, feeds below them, PostgreSQL's hashing and sorts
CREATE FUNCTION count_nodes(query text) RETURNS text LANGUAGE sql AS $$
	SELECT format('%s, %s fed, %s others', plan_lines(query, '\(GpuSort\)'), plan_lines(query, '\(GpuSortFeed\)'),
				  plan_lines(query, 'HashAggregate|-> *Sort$'));
$$;

CREATE FUNCTION compare(query text, ordered boolean DEFAULT false) RETURNS text LANGUAGE sql AS $$
	SELECT compare_modes(query, 'count_nodes', NOT ordered);
$$;

SELECT hash, k, compare(format('SELECT %s FROM unions_a UNION SELECT %s FROM unions_b', k, k))
FROM (VALUES ('on'), ('off')) AS h (hash), set_config('enable_hashagg', hash, false),
	unnest(ARRAY['id', 'c', 'd', 'f', 'id, c', 'd, f, id', '1', 'upper(c), id']) AS k;
RESET enable_hashagg;
-- other types, more inputs, of which some have no partial path, or no rows; UNION ALL within; one input
SELECT compare('SELECT id FROM unions_a UNION SELECT f FROM unions_b UNION SELECT id::numeric FROM unions_a');
SELECT compare('SELECT c FROM unions_a UNION (SELECT d FROM unions_a UNION ALL SELECT c FROM unions_b) UNION VALUES (''x''), (NULL)');
SELECT split_part(compare('SELECT c FROM unions_a WHERE false UNION SELECT c FROM unions_b'), ';', 1);
SELECT split_part(compare('SELECT c FROM unions_a WHERE false UNION SELECT c FROM unions_b WHERE false'), ';', 1);
SELECT compare('SELECT c, random() < 2 FROM unions_a UNION SELECT c, true FROM unions_b');
SELECT compare('SELECT count(*), c FROM unions_a GROUP BY c UNION SELECT id, c FROM unions_b');
-- below and above other nodes
SELECT compare('SELECT count(*) FROM (SELECT id, c FROM unions_a UNION SELECT id, c FROM unions_b) AS u');
SELECT compare('SELECT c, id FROM unions_a UNION SELECT c, id FROM unions_b ORDER BY c DESC, id LIMIT 300', true);
SELECT compare('SELECT id FROM unions_a UNION SELECT id FROM unions_b ORDER BY 1 OFFSET 5', true);
SELECT compare('SELECT id FROM unions_a INTERSECT (SELECT id FROM unions_b UNION SELECT length(c) FROM unions_a)');
SELECT compare('(SELECT id FROM unions_a UNION SELECT id FROM unions_b) EXCEPT SELECT length(c) FROM unions_a');
SELECT compare('SELECT id::bigint, f FROM unions_a INTERSECT (SELECT id, f FROM unions_b UNION SELECT length(c), id FROM unions_a)');
SELECT compare('(SELECT id, c FROM unions_a UNION SELECT id, c FROM unions_b) EXCEPT ALL SELECT length(c)::numeric, c FROM unions_a');
SELECT compare('SELECT id, id FROM unions_a UNION SELECT id, length(c) FROM unions_b');
SELECT compare('SELECT generate_series(1, id % 3) FROM unions_a UNION SELECT id FROM unions_b');
SELECT compare('SELECT u.c, n FROM (SELECT c FROM unions_a UNION SELECT c FROM unions_b) AS u JOIN (SELECT c, count(*) AS n FROM unions_b GROUP BY c) AS b USING (c)');
SELECT compare('SELECT n, (SELECT count(*) FROM (SELECT id FROM unions_a WHERE id > n UNION SELECT id FROM unions_b) AS u) FROM generate_series(1, 500, 100) AS n');
SELECT compare('WITH RECURSIVE r AS (SELECT 1 AS id UNION SELECT id % 50 + 1 FROM r) SELECT * FROM r');
-- no order; no equality
SELECT compare('SELECT ctid::text::xid FROM (SELECT ''7'' AS ctid FROM unions_a) AS x UNION SELECT ''8''::xid FROM unions_b');
SELECT id, j FROM unions_a UNION SELECT id, j FROM unions_b;

-- by cost
SET gpusort.min_rows = 1000;
SET max_parallel_workers_per_gather = 2;
SELECT plan_lines('SELECT c FROM unions_a WHERE id < 10 UNION SELECT c FROM unions_b WHERE id < 310', 'Gpu') AS few;
INSERT INTO unions_a SELECT i, md5(i::text) FROM generate_series(1, 200000) AS i;
ANALYZE unions_a;
SELECT plan_lines('SELECT id, c FROM unions_a UNION SELECT id, c FROM unions_b', 'Gpu') > 0 AS many;
SELECT plan_nodes('SELECT id, c FROM unions_a UNION SELECT id, c FROM unions_b');

-- few different rows are hashed in less time; many are known to be there by the statistics of one column
SET work_mem = '64MB';
CREATE TABLE unions_few AS SELECT i % 7 AS g, i AS id FROM generate_series(1, 100000) AS i;
ANALYZE unions_few;
-- on every device: where sorting the few just takes more
DO $$
BEGIN
	FOR i IN 0 .. 150 LOOP
		PERFORM set_config('gpusort.cost_factor', (0.05 * 1.08 ^ i)::text, false);
		EXIT WHEN plan_lines('SELECT g, g + 1 FROM unions_few UNION SELECT g, g + 1 FROM unions_few', 'Gpu') = 0;
	END LOOP;
END $$;
SELECT k, plan_lines(format('SELECT %s FROM unions_few UNION SELECT %s FROM unions_few', k, k), 'Gpu') > 0 AS gpusort
FROM unnest('{g,"g, g + 1",id % 5,id,"g, id"}'::text[]) AS k;

DROP TABLE unions_a, unions_b, unions_few;
DROP FUNCTION compare, count_nodes, compare_modes, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
