--
-- What "make installcheck" runs against an installed server: is gpusort there, does it take sorts, and are the
-- answers PostgreSQL's?  If the server does not preload gpusort, only functions are tested (installcheck_1.out).
--
SET client_min_messages = warning;
\pset format unaligned
\pset tuples_only on
SELECT current_setting('shared_preload_libraries') ~ '\mgpusort\M' AS preloaded \gset

-- functions
SELECT gpu_sort_array(ARRAY[3, NULL, 1, 2]), gpu_sort_array(ARRAY['b', 'c', NULL, 'a'], true);
SELECT count(*) FROM gpusort_collation_check() WHERE broken;

\if :preloaded
-- the devices open soon after the server has started
DO $$
BEGIN
	FOR i IN 1 .. 600 LOOP
		EXIT WHEN NOT EXISTS (SELECT FROM gpusort_devices WHERE state = 'starting');
		PERFORM pg_sleep(0.1);
	END LOOP;
END
$$;
SELECT DISTINCT state, CASE WHEN state <> 'ready' THEN message END AS why FROM gpusort_devices;

CREATE TABLE installcheck_t AS
SELECT i, (i * 7919 % 10007 - 5000) AS n, md5((i % 4000)::text) COLLATE "C" AS c,
	CASE WHEN i % 11 > 0 THEN (i % 500) / 3.0 END AS f, ARRAY[i % 7, i % 5, i % 3] AS a
FROM generate_series(1, 20000) AS i;
ANALYZE installcheck_t;

-- a query's rows by PostgreSQL and with every sort forced onto gpusort, in order; and does the plan have the node?
CREATE FUNCTION installcheck(query text, node text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	stock text[];
	ours text[];
	plan text;
BEGIN
	SET LOCAL max_parallel_workers_per_gather = 0;
	SET LOCAL gpusort.min_rows = 0;
	SET LOCAL gpusort.enabled = off;
	EXECUTE format('SELECT array_agg(s::text) FROM (%s) s', query) INTO stock;
	SET LOCAL gpusort.enabled = on;
	SET LOCAL gpusort.force = on;
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	EXECUTE format('SELECT array_agg(s::text) FROM (%s) s', query) INTO ours;
	RETURN format('%s rows, %s, %s', cardinality(ours),
				  CASE WHEN ours = stock THEN 'in order' ELSE 'IN ANOTHER ORDER' END,
				  CASE WHEN plan ~ node THEN node ELSE 'no ' || node END);
END
$$;

SELECT query, installcheck(query, node)
FROM (VALUES
	(1, 'SELECT * FROM installcheck_t ORDER BY n, i', 'GpuSort'),
	(2, 'SELECT * FROM installcheck_t ORDER BY c DESC, f NULLS FIRST, i', 'GpuSort'),
	(3, 'SELECT * FROM installcheck_t ORDER BY f DESC, i LIMIT 100', 'GpuSort'),
	(4, 'SELECT i, rank() OVER (ORDER BY c, n) FROM installcheck_t ORDER BY c, n, i', 'GpuSort'),
	(5, 'SELECT t.i, u.i AS v FROM installcheck_t t JOIN installcheck_t u ON t.n = u.i ORDER BY t.c, t.i', 'GpuSort'),
	(6, 'SELECT i, gpu_sort_array(a, true) FROM installcheck_t', 'GpuArraySort'))
	AS q (number, query, node)
ORDER BY number;

-- an index: what a scan of it returns is in order
SET gpusort.min_rows = 0;
SET gpusort.force = on;
CREATE INDEX installcheck_idx ON installcheck_t (c, n, i);
RESET gpusort.force;
RESET gpusort.min_rows;
SET enable_sort = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT c, n, i FROM installcheck_t ORDER BY c, n, i;
SELECT count(*), bool_and(coalesce(previous <= s, true)) AS in_order
FROM (SELECT s, lag(s) OVER () AS previous FROM (SELECT c, n, i FROM installcheck_t ORDER BY c, n, i) AS s) AS t;

SELECT sorts > 0 AS sorts, index_builds > 0 AS index_builds, device_arrays + arrays > 0 AS arrays FROM gpusort_stats;
DROP TABLE installcheck_t;
DROP FUNCTION installcheck;
\else
\echo 'The server does not preload gpusort: its sorts were not tested.  Add gpusort to shared_preload_libraries and restart the server.'
\endif
