--
-- GpuArraySort: where the planner puts it, and that queries return the same
-- with it as without.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/compare.inc
\set ECHO all
SET gpusort.min_rows = 300;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_parallel_append = off;

CREATE TABLE arrays_t (id int, k int, a float4[], b int8[], txt text, big float4[]);
INSERT INTO arrays_t
	SELECT i, i % 17,
		CASE WHEN i % 10 > 0 THEN (SELECT array_agg((hashint4(i * 100 + j) % 1000)::float4)
			FROM generate_series(1, i % 30) AS j) END,
		(SELECT array_agg(CASE WHEN j % 4 > 0 OR i % 2 = 0 THEN hashint4(i + j)::int8 END) FROM generate_series(1, 5 + i % 7) AS j),
		md5(i::text),
		CASE WHEN i % 50 = 0 THEN (SELECT array_agg((hashint4(i + j) % 9999)::float4) FROM generate_series(1, 3000) AS j) END
	FROM generate_series(1, 2000) AS i;
ALTER TABLE arrays_t ADD PRIMARY KEY (id);
-- arrays as they may be stored: plain, compressed, out of line
CREATE TABLE arrays_stored (id int, main float4[], extended float4[], external float4[]);
ALTER TABLE arrays_stored ALTER main SET STORAGE MAIN, ALTER external SET STORAGE EXTERNAL;
INSERT INTO arrays_stored
	SELECT i, array_agg((j % 10)::float4), array_agg((j % 10)::float4), array_agg(hashint4(j)::float4)
	FROM generate_series(1, 40) AS i, generate_series(1, i * 50) AS j GROUP BY i;
CREATE TABLE arrays_other AS SELECT id, external FROM arrays_stored;
ALTER TABLE arrays_other ALTER external SET STORAGE EXTERNAL;
UPDATE arrays_other SET external = external || 0::float4;
VACUUM ANALYZE arrays_t, arrays_stored, arrays_other;

CREATE FUNCTION count_nodes(query text) RETURNS int LANGUAGE sql AS $$
	SELECT plan_lines(query, '\(GpuArraySort\)');
$$;

-- the same rows as without gpusort, serially and in parallel, on the device from the
-- first row on and not; and how many GpuArraySort nodes the two plans have
CREATE FUNCTION compare(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	stock text[];
	difference text;
	result text := '';
BEGIN
	PERFORM set_config('max_parallel_workers_per_gather', '0', true);
	stock := stock_rows(query, true);
	FOR workers IN 0 .. 1 LOOP
		PERFORM set_config('max_parallel_workers_per_gather', (workers * 2)::text, true);
		FOR forced IN 0 .. 1 LOOP
			PERFORM set_config('gpusort.force', forced::text, true);
			difference := rows_differ(query_rows(query, true), stock);
			IF difference IS NOT NULL THEN
				RETURN format('%s workers, %s', workers * 2, difference);
			END IF;
		END LOOP;
		result := result || ', ' || count_nodes(query);
	END LOOP;
	RETURN format('same (%s rows)%s', cardinality(stock), result);
END
$$;

CREATE FUNCTION arrays_lazy(int) RETURNS float4[] IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF $1 % 3 = 0 THEN
		RAISE EXCEPTION 'evaluated for %', $1;
	END IF;
	RETURN ARRAY[$1, 1];
END
$$;

CREATE TEMP TABLE arrays_queries (n serial, query text);
INSERT INTO arrays_queries (query) VALUES
	-- above scans
	('SELECT gpu_sort_array(a) FROM arrays_t'),
	('SELECT id, a, gpu_sort_array(a) AS s, txt FROM arrays_t'),
	('SELECT id, (gpu_sort_array(a))[1] + (gpu_sort_array(a, true))[1] AS s, gpu_sort_array(b, true, false) AS t FROM arrays_t'),
	('SELECT id, gpu_sort_array(big) AS s FROM arrays_t'),
	('SELECT id, gpu_sort_array(main) AS s, gpu_sort_array(extended, true) AS t, gpu_sort_array(external) AS u FROM arrays_stored'),
	('SELECT x.id, gpu_sort_array(CASE WHEN x.id % 2 = 0 THEN x.external ELSE y.external END) AS s
		FROM arrays_stored x JOIN arrays_other y USING (id)'),
	('SELECT id, gpu_sort_array(a || 5::float4) AS s FROM arrays_t'),
	('SELECT gpu_sort_array(gpu_sort_array(a), true) AS s FROM arrays_t'),
	('SELECT arrays_t, gpu_sort_array(b) AS s, ctid FROM arrays_t'),
	('SELECT 1 AS one, true AS t, gpu_sort_array(b, true) AS s, (gpu_sort_array(b, true))[1] AS u FROM arrays_t'),
	('SELECT gpu_sort_array(b::numeric[]) AS s FROM arrays_t'),
	('SELECT gpu_sort_array(ARRAY[txt, ''x'']) AS s FROM arrays_t'),
	('SELECT gpu_sort_array(ARRAY[ARRAY[id, k], ARRAY[k, id]]) AS s FROM arrays_t'),
	('SELECT id, gpu_sort_array(b) AS s FROM arrays_t WHERE id BETWEEN 100 AND 900 AND k < 5'),
	-- filters
	('SELECT id FROM arrays_t WHERE (gpu_sort_array(a))[1] < 0'),
	('SELECT id, gpu_sort_array(a) AS s FROM arrays_t WHERE k > 3 AND (gpu_sort_array(a))[1] < 0 AND txt < ''8'''),
	('SELECT id, 100 / k AS d FROM arrays_t WHERE k <> 0 AND (gpu_sort_array(b))[1] < 0'),
	('SELECT id, 100 / k AS d FROM arrays_t WHERE CASE WHEN (gpu_sort_array(b))[1] < 0 THEN k <> 0 END'),
	('SELECT id FROM arrays_t WHERE gpu_sort_array(a) IS NULL OR (gpu_sort_array(a))[2] IS NULL'),
	-- what is evaluated only sometimes
	('SELECT CASE WHEN id % 3 <> 0 THEN gpu_sort_array(arrays_lazy(id)) END AS s FROM arrays_t'),
	('SELECT id % 3 <> 0 AND (gpu_sort_array(arrays_lazy(id)))[1] = 1 AS s FROM arrays_t'),
	('SELECT COALESCE(CASE WHEN id % 3 = 0 THEN a END, gpu_sort_array(a), a) AS s FROM arrays_t'),
	('SELECT gpu_sort_array(arrays_lazy(id)) AS s FROM arrays_t WHERE (gpu_sort_array(b))[1] IS NOT NULL AND id % 3 = 1'),
	('SELECT id FROM arrays_t WHERE id % 3 <> 0 AND (gpu_sort_array(arrays_lazy(id)))[1] = 1'),
	('SELECT CASE k WHEN (gpu_sort_array(b))[1] THEN 1 WHEN 7 THEN (gpu_sort_array(b, true))[2] END AS s FROM arrays_t'),
	('SELECT sum((gpu_sort_array(arrays_lazy(id)))[2]) FILTER (WHERE id % 3 = 1) FROM arrays_t'),
	-- aggregates, groups, windows, sets
	('SELECT sum((gpu_sort_array(b))[1]), count(*) FROM arrays_t'),
	('SELECT k, sum((gpu_sort_array(b))[1]), max(txt) FROM arrays_t GROUP BY k'),
	('SELECT k, sum((gpu_sort_array(b))[1]) AS s FROM arrays_t GROUP BY k ORDER BY k'),
	('SELECT k, array_agg((gpu_sort_array(b, true, false))[1] ORDER BY id) FILTER (WHERE (gpu_sort_array(b))[2] > 0) FROM arrays_t GROUP BY k'),
	('SELECT k, gpu_sort_array(array_agg(id)) AS s FROM arrays_t GROUP BY k HAVING (gpu_sort_array(array_agg(id)))[1] > 3'),
	('SELECT gpu_sort_array(b) AS s, count(*) FROM arrays_t GROUP BY 1'),
	('SELECT (gpu_sort_array(b))[1] > 0 AS p, k, count(*), min(id) FROM arrays_t GROUP BY GROUPING SETS (1, (1, 2), ())'),
	('SELECT DISTINCT (gpu_sort_array(a))[1] FROM arrays_t'),
	('SELECT id, sum((gpu_sort_array(b))[1]) OVER (PARTITION BY k ORDER BY id ROWS 2 PRECEDING) AS s FROM arrays_t'),
	('SELECT id, gpu_sort_array(array_agg(id) OVER (PARTITION BY k)) AS s FROM arrays_t WHERE id < 300'),
	('SELECT id, rank() OVER (ORDER BY (gpu_sort_array(a))[1], id) AS s FROM arrays_t'),
	('SELECT id, unnest(gpu_sort_array(b)) AS s FROM arrays_t WHERE id < 300'),
	('SELECT id, gpu_sort_array(b) AS s, generate_series(1, k % 3) FROM arrays_t WHERE id < 300'),
	('SELECT id, x FROM arrays_t, unnest(gpu_sort_array(b)) AS x WHERE id < 100'),
	-- orders and limits
	('SELECT id FROM arrays_t ORDER BY gpu_sort_array(a) NULLS FIRST, id LIMIT 20'),
	('SELECT id, (gpu_sort_array(b))[2] AS s FROM arrays_t ORDER BY 2 OFFSET 5 LIMIT 200'),
	('SELECT id, (SELECT gpu_sort_array(b)) AS s FROM (SELECT * FROM arrays_t ORDER BY id LIMIT 700) t'),
	-- joins and subqueries
	('SELECT x.id, gpu_sort_array(x.a) AS s, gpu_sort_array(y.b) AS t FROM arrays_t x JOIN arrays_t y ON y.id = x.id + 1'),
	('SELECT x.id, y.s FROM arrays_t x LEFT JOIN (SELECT id, COALESCE(gpu_sort_array(a), ''{1}'') AS s FROM arrays_t WHERE k < 9) y ON y.id = x.id + 1'),
	('SELECT x.id FROM arrays_t x WHERE EXISTS (SELECT FROM arrays_t y WHERE y.id = x.k AND (gpu_sort_array(y.b))[1] < (gpu_sort_array(x.b))[1])'),
	('SELECT x.id, (SELECT (gpu_sort_array(y.b))[1] FROM arrays_t y WHERE y.id = x.k) AS s FROM arrays_t x WHERE x.id < 200'),
	('SELECT x.id, (SELECT sum((gpu_sort_array(y.b))[x.k]) FROM arrays_stored z, arrays_t y WHERE y.id <= x.k AND z.id < 3) AS s FROM arrays_t x WHERE x.id < 60'),
	('SELECT x.id, y.s FROM arrays_t x, LATERAL (SELECT gpu_sort_array(y.b || x.id::int8) AS s FROM arrays_t y WHERE y.id < x.k OFFSET 0) y WHERE x.id < 60'),
	('WITH c AS MATERIALIZED (SELECT id, gpu_sort_array(b) AS s FROM arrays_t) SELECT x.id, x.s, y.s AS t FROM c x JOIN c y ON x.id = y.id - 1'),
	('WITH RECURSIVE r(n, a) AS (SELECT 1, ''{5,3,9}''::int[] UNION ALL SELECT n + 1, gpu_sort_array(a || -n) FROM r WHERE n < 60) SELECT * FROM r'),
	('SELECT gpu_sort_array(b) AS s FROM arrays_t WHERE id < 50 UNION ALL SELECT gpu_sort_array(b, true) FROM arrays_t WHERE id > 1950'),
	('SELECT id IN (SELECT (gpu_sort_array(b))[1] FROM arrays_t) AS s FROM arrays_t'),
	('SELECT (gpu_sort_array(ARRAY[x, -x]))[1] AS s FROM generate_series(1, 500) AS x'),
	('SELECT gpu_sort_array(ARRAY[x, -x, 0]::oid[]) AS s, gpu_sort_array(ARRAY[x, -x, 0]) AS t FROM generate_series(1, 500) AS x'),
	('SELECT gpu_sort_array(v) AS s FROM (VALUES (ARRAY[2, 1]), (ARRAY[4, 3]), (NULL)) AS v(v)');
SELECT n, left(query, 60) AS query, compare(query) FROM arrays_queries ORDER BY n;

-- the shapes
SET max_parallel_workers_per_gather = 0;
EXPLAIN (VERBOSE, COSTS OFF)
SELECT id, (gpu_sort_array(a, true))[1], gpu_sort_array(b || 1::int8) FROM arrays_t WHERE k > 3 AND (gpu_sort_array(a))[1] < 0;
EXPLAIN (VERBOSE, COSTS OFF) SELECT k, sum((gpu_sort_array(b))[1]) FROM arrays_t GROUP BY k;
EXPLAIN (VERBOSE, COSTS OFF) SELECT unnest(gpu_sort_array(b)), id FROM arrays_t;
SET max_parallel_workers_per_gather = 2;
SELECT plan_nodes('SELECT sum((gpu_sort_array(b))[1]) FROM arrays_t', 'Array Sort');
SET max_parallel_workers_per_gather = 0;
SELECT plan_nodes('SELECT gpu_sort_array(a) FROM arrays_t LIMIT 10', 'Array Sort');
SET gpusort.enabled = off;
SELECT plan_nodes('SELECT sum((gpu_sort_array(b))[1]) FROM arrays_t', 'Array Sort');
RESET gpusort.enabled;

-- EXPLAIN ANALYZE, in workers too
CREATE FUNCTION explain_masked(query text, options text DEFAULT '') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (ANALYZE, COSTS OFF, SUMMARY OFF, BUFFERS OFF %s) ', options) || query LOOP
		line := regexp_replace(line, '(actual .*?)?rows=(\d+)(\.\d+)? loops=', 'rows=\2 loops=');
		line := regexp_replace(line, '[\d.]+ ms', 'N ms', 'g');
		line := regexp_replace(line, '(Batches|Batches on Device|Arrays on Device): \d+', '\1: N');
		line := regexp_replace(line, '(Device|Engine): (host|cuda|radix|bitonic|[a-z ]+)$', '\1: masked');
		RETURN NEXT line;
	END LOOP;
END
$$;
SET gpusort.force = on;
SELECT explain_masked('SELECT id, gpu_sort_array(b) FROM arrays_t');
SELECT explain_masked('SELECT id FROM arrays_t WHERE (gpu_sort_array(b))[1] < 0', ', TIMING OFF');
DO $$
DECLARE
	plan json;
	wanted text[] := '{Array Sort,Device,Arrays Sorted,Batches,Arrays on Device,Batches on Device,Engine,Copy In Time,Sort Time,Copy Out Time}';
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) SELECT id, gpu_sort_array(b) FROM arrays_t' INTO plan;
	ASSERT wanted <@ (SELECT array_agg(k) FROM json_object_keys(plan -> 0 -> 'Plan') AS k), plan::text;
END
$$;
-- arrays of workers count
SET max_parallel_workers_per_gather = 2;
SELECT line FROM explain_masked('SELECT sum((gpu_sort_array(b))[1]) FROM arrays_t') AS line WHERE line ~ 'Arrays Sorted';
SET max_parallel_workers_per_gather = 0;
SELECT gpusort_stats_reset();
SELECT count(gpu_sort_array(b)) FROM arrays_t;
SELECT arrays, device_arrays > 0 AS on_device, fallbacks FROM gpusort_stats;

-- volatile functions are called as often as without
CREATE SEQUENCE arrays_seq;
SELECT nextval('arrays_seq') > 0 AS ok, (gpu_sort_array(b))[2] FROM arrays_t ORDER BY id LIMIT 1;
SELECT currval('arrays_seq');
SELECT plan_nodes('SELECT nextval(''arrays_seq''), gpu_sort_array(b) FROM arrays_t', 'Array Sort');
CREATE TABLE arrays_copy (n int DEFAULT nextval('arrays_seq'), id int, s int8[]);
SELECT plan_nodes('INSERT INTO arrays_copy (id, s) SELECT id, gpu_sort_array(b) FROM arrays_t', 'Array Sort');
INSERT INTO arrays_copy (id, s) SELECT id, gpu_sort_array(b) FROM arrays_t;
SELECT count(*), max(n) - min(n) AS n, count(*) FILTER (WHERE s = gpu_sort_array(b)) AS right FROM arrays_copy JOIN arrays_t USING (id);
SELECT plan_nodes('UPDATE arrays_copy SET s = gpu_sort_array(s, true), n = id WHERE (gpu_sort_array(s))[1] < 0', 'Array Sort');
UPDATE arrays_copy SET s = gpu_sort_array(s, true), n = id WHERE (gpu_sort_array(s))[1] < 0;
SELECT count(*) AS wrong FROM arrays_copy JOIN arrays_t USING (id)
WHERE s IS DISTINCT FROM gpu_sort_array(b, s[1] > s[2] OR (gpu_sort_array(b))[1] < 0);
DELETE FROM arrays_copy WHERE (gpu_sort_array(s))[1] < 0;
SELECT count(*) = (SELECT count(*) FROM arrays_t WHERE NOT (gpu_sort_array(b))[1] < 0) AS same FROM arrays_copy;

-- so there is no GpuArraySort where reading ahead would call one too often, wherever the planner has put it;
-- 1: what is read ahead does not call it
CREATE FUNCTION arrays_inlined(float8) RETURNS float8 LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION arrays_nested() RETURNS float8 IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT 1 FROM arrays_t WHERE id = 1 / 0);
EXCEPTION WHEN division_by_zero THEN
	RETURN (SELECT count(gpu_sort_array(b)) FROM arrays_t WHERE k < 0 AND random() < 1);
END
$$;
SELECT query, count_nodes(format(query, 'pi()')) > 0 AS taken, count_nodes(format(query, 'random()')) AS volatile
FROM unnest(ARRAY[
	'SELECT gpu_sort_array(b), %s FROM arrays_t',
	'SELECT gpu_sort_array(b) FROM arrays_t WHERE k > %s',
	'SELECT gpu_sort_array(b) FROM arrays_t WHERE k > arrays_inlined(%s)',
	'SELECT gpu_sort_array(b) FROM arrays_t WHERE k > arrays_nested() + %s',
	'SELECT gpu_sort_array(b), (SELECT %s) FROM arrays_t',
	'SELECT gpu_sort_array(b), (SELECT min(y.id) FROM arrays_other y WHERE y.id > x.k + %s) FROM arrays_t x',
	'SELECT gpu_sort_array(b) FROM arrays_t WHERE k > (SELECT count(*) FROM arrays_other WHERE id > (SELECT %s))',
	'SELECT gpu_sort_array(b) FROM arrays_t x WHERE EXISTS (SELECT FROM arrays_other y WHERE y.id = x.k AND y.id > %s)',
	'SELECT gpu_sort_array(b) FROM arrays_t x WHERE id NOT IN (SELECT (id + %s)::int FROM arrays_other)',
	'SELECT gpu_sort_array(b) FROM arrays_t JOIN (SELECT id FROM arrays_other WHERE id > %s) y USING (id)',
	'SELECT gpu_sort_array(b) FROM arrays_t JOIN (SELECT id FROM arrays_other WHERE id > %s OFFSET 0) y USING (id)',
	'SELECT gpu_sort_array(b) FROM arrays_t JOIN (SELECT id FROM arrays_other WHERE id > (SELECT %s) OFFSET 0) y USING (id)',
	'SELECT gpu_sort_array(b) FROM arrays_t x LEFT JOIN arrays_other y ON x.id = y.id AND y.id > %s WHERE y.id > 0',
	'SELECT gpu_sort_array(b) FROM arrays_t, LATERAL (SELECT max(id) FROM arrays_other WHERE id > k + %s) y',
	'WITH c AS MATERIALIZED (SELECT id FROM arrays_other WHERE id > %s) SELECT gpu_sort_array(b) FROM arrays_t JOIN c USING (id)',
	'SELECT gpu_sort_array(b) FROM arrays_t WHERE k < 5 UNION ALL SELECT gpu_sort_array(b) FROM arrays_t WHERE k > 9 + %s',
	'SELECT gpu_sort_array(b) FROM arrays_t WHERE id IN (SELECT id FROM arrays_other EXCEPT SELECT id + 1 FROM arrays_other WHERE id > %s)',
	'SELECT gpu_sort_array(b) FROM arrays_t, generate_series(1, 1 + %s::int)',
	'SELECT gpu_sort_array(b) FROM arrays_t, (VALUES (1), (%s)) v',
	'SELECT gpu_sort_array(array_agg(id)) FROM arrays_t GROUP BY k HAVING count(*) > %s']) AS query;

-- cursors: scrolling, and where they stand
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, (gpu_sort_array(b))[1] > 0 FROM arrays_t;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
MOVE LAST FROM c;
FETCH PRIOR FROM c;
CLOSE c;
DECLARE c CURSOR FOR SELECT id, gpu_sort_array(s) FROM arrays_copy;
MOVE 5 FROM c;
DELETE FROM arrays_copy WHERE CURRENT OF c RETURNING id = (SELECT id FROM arrays_copy OFFSET 4 LIMIT 1) AS the_fifth;
CLOSE c;
DECLARE c CURSOR FOR SELECT id, sum((gpu_sort_array(b))[1]) OVER (ORDER BY id) > 0 FROM arrays_t;
FETCH 2 FROM c;
ROLLBACK;
-- what is open for out-of-line arrays outlives subtransactions that fail
BEGIN;
DECLARE c CURSOR FOR SELECT id, sum(s[1]) OVER (ORDER BY id) FROM (SELECT id, gpu_sort_array(external) AS s FROM arrays_stored) s;
SAVEPOINT s;
FETCH 2 FROM c;
ROLLBACK TO s;
FETCH 2 FROM c;
SAVEPOINT t;
MOVE 20 FROM c;
ROLLBACK TO t;
FETCH 1 FROM c;
COMMIT;
-- a loop stops early
DO $$
DECLARE
	r record;
	n int := 0;
BEGIN
	FOR r IN SELECT id, gpu_sort_array(b) AS s, b FROM arrays_t LOOP
		ASSERT r.s = (SELECT array_agg(x ORDER BY x) FROM unnest(r.b) AS x);
		n := n + 1;
		EXIT WHEN n = 700;
	END LOOP;
END
$$;

-- prepared statements: parameters, plans that are kept
PREPARE arrays_p(int, int8[]) AS
SELECT count(*), sum((gpu_sort_array(b || $2))[$1]) FROM arrays_t WHERE (gpu_sort_array(b))[$1] < 0;
SET plan_cache_mode = force_generic_plan;
EXECUTE arrays_p(1, '{1,-1}');
EXECUTE arrays_p(2, NULL);
SET gpusort.enabled = off;
EXECUTE arrays_p(1, '{1,-1}');
DISCARD PLANS;
EXECUTE arrays_p(1, '{1,-1}');
EXECUTE arrays_p(2, NULL);
RESET gpusort.enabled;
RESET plan_cache_mode;

-- row locks
BEGIN;
SELECT id, (gpu_sort_array(b))[1] > 0 AS s FROM arrays_t WHERE (gpu_sort_array(b))[1] > -1000000000 ORDER BY id LIMIT 2 FOR UPDATE;
ROLLBACK;

-- a security barrier holds: f sees no row that the view does not show
CREATE FUNCTION arrays_leak(int) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS $$
BEGIN
	IF $1 = 7 THEN
		RAISE EXCEPTION 'saw %', $1;
	END IF;
	RETURN true;
END
$$;
ALTER FUNCTION arrays_leak(int) STABLE;
CREATE VIEW arrays_view WITH (security_barrier) AS SELECT * FROM arrays_t WHERE (gpu_sort_array(ARRAY[id, 7]))[1] < 7 OR id = 8;
SELECT count(*) FROM arrays_view WHERE arrays_leak(id);

-- who may not call the function may not
REVOKE EXECUTE ON FUNCTION gpu_sort_array(anyarray) FROM PUBLIC;
CREATE ROLE regress_gpusort_arrays;
GRANT SELECT ON arrays_t TO regress_gpusort_arrays;
SET ROLE regress_gpusort_arrays;
SELECT gpu_sort_array(b) FROM arrays_t;
SELECT count(gpu_sort_array(b, true)) FROM arrays_t;
RESET ROLE;
GRANT EXECUTE ON FUNCTION gpu_sort_array(anyarray) TO PUBLIC;
DROP OWNED BY regress_gpusort_arrays;
DROP ROLE regress_gpusort_arrays;

-- each volatile expression has a value of its own
CREATE TABLE arrays_volatile (n bigint, m bigint, x float8, y float8, s int8[]);
SELECT count_nodes('INSERT INTO arrays_volatile SELECT nextval(''arrays_seq''), nextval(''arrays_seq''), random(), random(), gpu_sort_array(b) FROM arrays_t');
INSERT INTO arrays_volatile
	SELECT nextval('arrays_seq'), nextval('arrays_seq'), random(), random(), gpu_sort_array(b) FROM arrays_t;
SELECT count(*), count(*) FILTER (WHERE m = n + 1) AS next, count(*) FILTER (WHERE x = y) AS equal FROM arrays_volatile;
DROP TABLE arrays_volatile;

-- a window that ends early looks at its own columns
SELECT compare('SELECT * FROM (SELECT gpu_sort_array(b) AS s, row_number() OVER (ORDER BY id) AS n FROM arrays_t) w WHERE n <= 300');
SELECT compare('SELECT * FROM (SELECT gpu_sort_array(b) AS s, id, rank() OVER (PARTITION BY k ORDER BY id) AS n FROM arrays_t) w WHERE n <= 30');

-- arrays larger than a chunk between others; a view of volatile functions would have them
-- sorted in the process
CREATE FUNCTION arrays_sessions() RETURNS bigint STABLE LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT count(*) FROM gpusort_activity WHERE pid = pg_backend_pid() AND phase = 'sorting arrays');
END
$$;
SET work_mem = '1MB';
SELECT count(*) AS wrong, arrays_sessions() AS sessions
FROM (SELECT id, gpu_sort_array(l) AS s, gpu_sort_array(m, true) AS t, l, m FROM (
		SELECT i AS id, (SELECT array_agg(hashint4(j + i)) FROM generate_series(1, CASE WHEN i % 4 = 0 THEN 300000 ELSE i END) AS j) AS l,
			(SELECT array_agg(hashint4(j - i)) FROM generate_series(1, CASE WHEN i % 3 = 0 THEN 150000 ELSE 140000 END) AS j) AS m
		FROM generate_series(1, 12) AS i OFFSET 0) s OFFSET 0) s
WHERE s IS DISTINCT FROM (SELECT array_agg(x ORDER BY x) FROM unnest(l) AS x)
	OR t IS DISTINCT FROM (SELECT array_agg(x ORDER BY x DESC) FROM unnest(m) AS x);
RESET work_mem;

DROP VIEW arrays_view;
DROP FUNCTION count_nodes, compare, explain_masked, arrays_lazy, arrays_leak, arrays_inlined, arrays_nested,
	arrays_sessions;
DROP FUNCTION plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
DROP TABLE arrays_t, arrays_stored, arrays_other, arrays_copy;
DROP SEQUENCE arrays_seq;
