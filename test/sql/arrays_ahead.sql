--
-- GpuArraySort reads ahead of what it is asked for only where nobody can tell.
--
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
SET gpusort.force = on;
SET max_parallel_workers_per_gather = 0;

CREATE TABLE ahead (i int, a int[], t text);
INSERT INTO ahead
	SELECT i, (SELECT array_agg(hashint4(i + j)) FROM generate_series(1, 30) AS j), 'row ' || i
	FROM generate_series(1, 3000) AS i;
ANALYZE ahead;

CREATE TABLE ahead_copy (id serial, s int);

-- sees that a row is read: counts its calls, and says that it is stable
CREATE SEQUENCE ahead_calls;
CREATE FUNCTION ahead_seen(int) RETURNS int STABLE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM nextval('public.ahead_calls');
	RETURN $1;
END
$$;

-- how many rows commands, between which ;; stands, read with PostgreSQL alone, and with gpusort
CREATE FUNCTION ahead_reads(commands text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	enabled text;
	command text;
	n bigint[];
BEGIN
	FOREACH enabled IN ARRAY '{off,on}'::text[] LOOP
		PERFORM set_config('gpusort.enabled', enabled, true);
		DISCARD PLANS;
		PERFORM setval('ahead_calls', 1, false);
		FOREACH command IN ARRAY string_to_array(commands, ';;') LOOP
			EXECUTE command;
		END LOOP;
		n := n || (SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END FROM ahead_calls);
	END LOOP;
	RETURN CASE WHEN n[1] = n[2] THEN 'the same: ' || n[1] ELSE format('%s, should be %s', n[2], n[1]) END;
END
$$;

-- has a plan the node?
CREATE FUNCTION ahead_nodes(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	line text;
	n int := 0;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		n := n + (line ~ '\(GpuArraySort\)')::int;
	END LOOP;
	RETURN n;
END
$$;

--
-- Errors of rows that are not needed
--
RESET gpusort.force;
SET gpusort.min_rows = 300;
DO $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT i, gpu_sort_array(a) AS s, 10 / (i - 20) AS q FROM ahead LOOP
		EXIT WHEN r.i > 5;
	END LOOP;
END
$$;
SET gpusort.force = on;
SELECT (gpu_sort_array(ARRAY[i, 1 / (i - 20)]))[1] FROM ahead LIMIT 3;
SELECT (gpu_sort_array(a))[1] FROM ahead WHERE 10 / (i - 20) > -100 LIMIT 3;
SELECT i, length(gpu_sort_array(a)::text), 1 / (i - 20) AS q FROM ahead LIMIT 3;
SELECT i, (gpu_sort_array(a))[1] FROM ahead WHERE (gpu_sort_array(a))[1] IS NOT NULL AND 10 / (i - 20) > -100 LIMIT 3;
SELECT i FROM ahead WHERE i < 15 AND (gpu_sort_array(a))[1] IS NOT NULL OR i > 1 / (i - 20) LIMIT 3;
-- in an InitPlan, which runs when it is first needed
SELECT i, (gpu_sort_array(a))[1] FROM ahead WHERE i < 15 OR i > (SELECT 1 / min(k - k) FROM generate_series(1, 3) AS k) LIMIT 3;
-- in a window, a set, a join, a union
SELECT i, (gpu_sort_array(a))[1], row_number() OVER () FROM ahead WHERE 10 / (i - 20) > -100 LIMIT 3;
SELECT i, unnest((gpu_sort_array(a))[1:2]) FROM ahead WHERE 10 / (i - 20) > -100 LIMIT 3;
SELECT x.i FROM ahead x LEFT JOIN (VALUES (1)) v(i) ON x.i / (x.i - 20) = v.i WHERE (gpu_sort_array(x.a))[1] IS NOT NULL LIMIT 3;
SELECT i, (gpu_sort_array(a))[1] FROM ahead WHERE 10 / (i - 20) > -100 UNION ALL SELECT 1, 1 LIMIT 3;
SELECT 1 AS one WHERE EXISTS (SELECT FROM ahead WHERE 10 / (i - 20) > -100 AND (gpu_sort_array(a))[1] IS NOT NULL);
SELECT i, (SELECT (gpu_sort_array(y.a))[1] FROM ahead y WHERE 10 / (y.i - 20) > -100 AND y.i >= x.i LIMIT 1) FROM ahead x LIMIT 3;
WITH w AS MATERIALIZED (SELECT i, (gpu_sort_array(a))[1] AS s FROM ahead WHERE 10 / (i - 20) > -100) SELECT * FROM w LIMIT 3;
-- but where the row is needed there is an error
SELECT i, (gpu_sort_array(a))[1] FROM ahead WHERE 10 / (i - 20) > -100;
SELECT count(gpu_sort_array(a)) FROM ahead WHERE 10 / (i - 20) > -100;
SELECT i, (gpu_sort_array(a))[1], 10 / (i - 20) FROM ahead LIMIT 30;

--
-- Who asks for how many rows
--
CREATE FUNCTION ahead_loop(n int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT i, gpu_sort_array(a) FROM ahead WHERE ahead_seen(i) > 0 LOOP
		EXIT WHEN r.i >= n;
	END LOOP;
END
$$;
CREATE FUNCTION ahead_into() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	x int;
BEGIN
	SELECT (gpu_sort_array(a))[1] INTO x FROM ahead WHERE ahead_seen(i) > 0;
	RETURN x;
END
$$;
CREATE FUNCTION ahead_insert() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	x int;
BEGIN
	INSERT INTO ahead_copy (s) SELECT (gpu_sort_array(a))[1] FROM ahead WHERE ahead_seen(i) > 0 RETURNING s INTO x;
EXCEPTION
	WHEN too_many_rows THEN
		NULL;
END
$$;
CREATE FUNCTION ahead_cursor(n int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	c NO SCROLL CURSOR FOR SELECT i, sum((gpu_sort_array(a))[1]) OVER (ROWS 1 PRECEDING) FROM ahead WHERE ahead_seen(i) > 0;
	r record;
BEGIN
	OPEN c;
	FOR k IN 1 .. n LOOP
		FETCH c INTO r;
	END LOOP;
	CLOSE c;
END
$$;
CREATE FUNCTION ahead_return_query() RETURNS SETOF int LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT (gpu_sort_array(a))[1] FROM ahead WHERE ahead_seen(i) > 0;
END
$$;
-- volatile, so that they are not inlined
CREATE FUNCTION ahead_sql_set() RETURNS SETOF int VOLATILE LANGUAGE sql AS
	'SELECT (gpu_sort_array(a))[1] FROM ahead WHERE ahead_seen(i) > 0';
CREATE FUNCTION ahead_sql() RETURNS int VOLATILE LANGUAGE sql AS
	'SELECT (gpu_sort_array(a))[1] FROM ahead WHERE ahead_seen(i) > 0';

CREATE TEMP TABLE ahead_commands (n serial, command text);
INSERT INTO ahead_commands (command) VALUES
	('SELECT gpu_sort_array(a) FROM ahead WHERE ahead_seen(i) > 0'),
	('SELECT gpu_sort_array(a) FROM ahead WHERE ahead_seen(i) > 0 LIMIT 5'),
	('SELECT gpu_sort_array(a) FROM ahead WHERE ahead_seen(i) > 0 LIMIT 5 OFFSET 100'),
	('SELECT gpu_sort_array(a) FROM ahead WHERE ahead_seen(i) > 0 ORDER BY 1 FETCH FIRST 5 ROWS WITH TIES'),
	('SELECT gpu_sort_array(a) FROM (SELECT * FROM ahead WHERE ahead_seen(i) > 0 LIMIT 100) s LIMIT 70'),
	('SELECT gpu_sort_array(a) FROM (SELECT * FROM ahead WHERE ahead_seen(i) > 0 LIMIT 70) s LIMIT 100'),
	('SELECT i FROM (SELECT i, gpu_sort_array(a) AS s FROM ahead WHERE ahead_seen(i) > 0 LIMIT 500) s WHERE s[1] < 0 LIMIT 2'),
	('SELECT i FROM ahead WHERE ahead_seen(i) > 0 AND (gpu_sort_array(a))[i % 7 + 1] % 3 = 0 LIMIT 20'),
	('SELECT gpu_sort_array(a), ahead_seen(i) FROM ahead LIMIT 5'),
	('SELECT gpu_sort_array(ARRAY[1, ahead_seen(i)]) FROM ahead LIMIT 5'),
	('SELECT gpu_sort_array(a) FROM (SELECT * FROM ahead WHERE ahead_seen(i) > 0 OFFSET 3) s LIMIT 5'),
	('SELECT (gpu_sort_array(a))[1], count(*) OVER (ORDER BY i ROWS 1 PRECEDING), ahead_seen(i) FROM ahead LIMIT 5'),
	('SELECT (gpu_sort_array(a))[1], count(*) OVER (ROWS 1 PRECEDING) FROM ahead WHERE ahead_seen(i) > 0 LIMIT 5'),
	('SELECT gpu_sort_array(a), generate_series(1, 2) FROM ahead WHERE ahead_seen(i) > 0 LIMIT 5'),
	('SELECT (gpu_sort_array(a))[1], count(*) FROM (SELECT * FROM ahead ORDER BY i OFFSET 0) s WHERE ahead_seen(i) > 0 GROUP BY i, a LIMIT 5'),
	('SELECT * FROM (SELECT i, (gpu_sort_array(a))[1], row_number() OVER () AS n FROM ahead WHERE ahead_seen(i) > 0) s WHERE n < 7'),
	('SELECT 1 WHERE EXISTS (SELECT FROM ahead WHERE ahead_seen(i) > 0 AND (gpu_sort_array(a))[1] IS NOT NULL)'),
	('SELECT 1 IN (SELECT i FROM ahead WHERE ahead_seen(i) > 0 AND (gpu_sort_array(a))[1] + v < 0) FROM generate_series(1, 2) AS v'),
	('SELECT (SELECT (gpu_sort_array(a))[1] FROM ahead WHERE ahead_seen(i) >= v LIMIT 1) FROM (VALUES (1), (4)) v(v)'),
	('SELECT ARRAY(SELECT (gpu_sort_array(a))[1] FROM ahead WHERE ahead_seen(i) >= v LIMIT 2) FROM (VALUES (1), (4)) v(v)'),
	('SELECT s FROM (VALUES (1), (2)) v(v), LATERAL (SELECT (gpu_sort_array(a))[v] AS s FROM ahead WHERE ahead_seen(i) > 0) l LIMIT 5'),
	('WITH w AS MATERIALIZED (SELECT gpu_sort_array(a) FROM ahead WHERE ahead_seen(i) > 0) SELECT * FROM w LIMIT 5'),
	('WITH RECURSIVE r AS (SELECT 1 AS n, ARRAY[3, 1, 2] AS a UNION ALL SELECT ahead_seen(n) + 1, gpu_sort_array(a || -n) FROM r) SELECT * FROM r LIMIT 5'),
	('CREATE TABLE ahead_other AS SELECT gpu_sort_array(a) FROM ahead WHERE ahead_seen(i) > 0;; DROP TABLE ahead_other'),
	('CREATE MATERIALIZED VIEW ahead_view AS SELECT gpu_sort_array(a) FROM ahead WHERE ahead_seen(i) > 0;; DROP MATERIALIZED VIEW ahead_view'),
	('COPY (SELECT gpu_sort_array(a) FROM ahead WHERE ahead_seen(i) > 0) TO ''/dev/null'''),
	('INSERT INTO ahead_copy (s) SELECT (gpu_sort_array(a))[1] FROM ahead WHERE ahead_seen(i) > 0'),
	('WITH w AS (INSERT INTO ahead_copy (s) SELECT (gpu_sort_array(a))[1] FROM ahead WHERE ahead_seen(i) > 0 RETURNING s) SELECT * FROM w LIMIT 5'),
	('SELECT ahead_insert()'),
	('DO $d$ BEGIN PERFORM (gpu_sort_array(a))[1] FROM ahead WHERE ahead_seen(i) > 0; END $d$'),
	('SELECT ahead_loop(3)'),
	('SELECT ahead_loop(70)'),
	('SELECT ahead_into()'),
	('SELECT ahead_cursor(3)'),
	('SELECT * FROM ahead_return_query() LIMIT 5'),
	('SELECT ahead_sql_set() LIMIT 5'),
	('SELECT * FROM ahead_sql_set() LIMIT 5'),
	('SELECT ahead_sql()'),
	('DECLARE c NO SCROLL CURSOR FOR SELECT (gpu_sort_array(a))[1], count(*) OVER (ROWS 1 PRECEDING) FROM ahead WHERE ahead_seen(i) > 0;;'
		'FETCH 3 FROM c;; CLOSE c'),
	('DECLARE c NO SCROLL CURSOR FOR SELECT (gpu_sort_array(a))[1], count(*) OVER (ROWS 1 PRECEDING) FROM ahead WHERE ahead_seen(i) > 0;;'
		'FETCH 3 FROM c;; FETCH ALL FROM c;; CLOSE c'),
	('DECLARE c SCROLL CURSOR FOR SELECT (gpu_sort_array(a))[1], count(*) OVER (ROWS 1 PRECEDING) FROM ahead WHERE ahead_seen(i) > 0;;'
		'FETCH 3 FROM c;; FETCH BACKWARD 1 FROM c;; CLOSE c');
SELECT n, left(command, 75) AS command, ahead_reads(command) FROM ahead_commands ORDER BY n;

-- rows that another row may have an effect on are read one by one: currval() here is
-- nextval() of the same row
CREATE SEQUENCE ahead_seq;
CREATE TEMP TABLE ahead_numbers (n bigint, s int[]);
INSERT INTO ahead_numbers
	SELECT currval('ahead_seq') AS n, gpu_sort_array(a) AS s FROM ahead WHERE nextval('ahead_seq') > 0;
SELECT min(n), max(n), count(DISTINCT n) FROM ahead_numbers;
WITH w AS MATERIALIZED (SELECT i, a, nextval('ahead_seq') AS n FROM ahead LIMIT 200)
	SELECT count(*) FROM (SELECT currval('ahead_seq') AS m, gpu_sort_array(a) AS s, n FROM w OFFSET 0) s WHERE m = n;

--
-- Nodes that are there
--
SELECT command, ahead_nodes(command) FROM (VALUES
	('SELECT gpu_sort_array(a) FROM ahead'),
	('SELECT gpu_sort_array(a) FROM ahead LIMIT 1000'),
	('SELECT gpu_sort_array(a) FROM ahead WHERE i > 5 AND t < ''row 7'''),
	('SELECT gpu_sort_array(a), 10 / i AS d FROM ahead'),
	('SELECT gpu_sort_array(a), nextval(''ahead_seq'') FROM ahead'),
	('SELECT gpu_sort_array(a) FROM ahead WHERE i % 2 = 0'),
	('SELECT gpu_sort_array(a) FROM ahead WHERE i % 2 = 0 OFFSET 1'),
	('SELECT gpu_sort_array(a || i) FROM ahead'),
	('SELECT gpu_sort_array(a || i), generate_series(1, 2) FROM ahead'),
	('SELECT gpu_sort_array(ARRAY[i, 3]) FROM ahead'),
	('SELECT gpu_sort_array(a) FROM (SELECT * FROM ahead WHERE i % 2 = 0 ORDER BY t OFFSET 0) s'),
	('SELECT gpu_sort_array(a) FROM ahead WHERE random() < 0.5'),
	('SELECT sum((gpu_sort_array(a))[1]) FROM (SELECT * FROM ahead FOR UPDATE) s'),
	('SELECT gpu_sort_array(x.a) FROM ahead x JOIN ahead y ON y.i = x.i + 1'),
	('INSERT INTO ahead_copy (s) SELECT (gpu_sort_array(a))[1] FROM ahead WHERE i % 2 = 0'),
	('INSERT INTO ahead_copy (s) SELECT (gpu_sort_array(a))[1] FROM ahead WHERE i % 2 = 0 RETURNING s'),
	('SELECT gpu_sort_array(a) FROM ahead x WHERE i % 2 = 0 FOR UPDATE')) AS q(command);

-- in a loop, which may end early, the process sorts
SELECT gpusort_stats_reset();
DO $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT i, gpu_sort_array(a) AS s, a FROM ahead LOOP
		ASSERT r.s = (SELECT array_agg(x ORDER BY x) FROM unnest(r.a) AS x);
		EXIT WHEN r.i = 2400;
	END LOOP;
END
$$;
SELECT arrays BETWEEN 2400 AND 2500 AS some, device_arrays FROM gpusort_stats;
-- a query of which some rows are wanted at first, and then all
BEGIN;
DECLARE c NO SCROLL CURSOR FOR
	SELECT i, (gpu_sort_array(a))[1] = (SELECT min(x) FROM unnest(a) AS x) AS ok, count(*) OVER (ROWS 1 PRECEDING) FROM ahead WHERE i % 300 > 0;
SELECT gpusort_stats_reset();
FETCH 2 FROM c;
MOVE ALL FROM c;
CLOSE c;
SELECT arrays, device_arrays FROM gpusort_stats;
COMMIT;
-- arrays that no chunk has room for, among others
CREATE TABLE ahead_large AS
	SELECT i, (SELECT array_agg(hashint4(i + j)) FROM generate_series(1, CASE WHEN i % 3 = 0 THEN 300000 ELSE 10 END) AS j) AS a
	FROM generate_series(1, 20) AS i;
SELECT count(*), count(*) FILTER (WHERE s = (SELECT array_agg(x ORDER BY x) FROM unnest(a) AS x)) AS sorted
FROM (SELECT gpu_sort_array(a) AS s, a FROM ahead_large OFFSET 0) s;
DO $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT i, gpu_sort_array(a) AS s, a FROM ahead_large LOOP
		ASSERT r.s = (SELECT array_agg(x ORDER BY x) FROM unnest(r.a) AS x);
		EXIT WHEN r.i = 15;
	END LOOP;
END
$$;

-- workers: asked for all rows they use the device
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT gpusort_stats_reset();
EXPLAIN (COSTS OFF) SELECT gpu_sort_array(a) FROM ahead WHERE i % 2 = 0;
CREATE TABLE ahead_all AS SELECT gpu_sort_array(a) AS s FROM ahead WHERE i % 2 = 0;
SELECT arrays, device_arrays FROM gpusort_stats;
-- and asked for two they sort in the process: PL/pgSQL has the same plan, and a limit
-- outside of it
SELECT gpusort_stats_reset();
DO $$
DECLARE
	x int[];
BEGIN
	SELECT gpu_sort_array(a) INTO x FROM ahead WHERE i % 2 = 0;
	ASSERT cardinality(x) = 30;
END
$$;
SELECT device_arrays FROM gpusort_stats;

DROP TABLE ahead, ahead_copy, ahead_large, ahead_all;
DROP SEQUENCE ahead_seq, ahead_calls;
DROP FUNCTION ahead_seen, ahead_reads, ahead_nodes, ahead_loop, ahead_into, ahead_insert, ahead_cursor, ahead_return_query, ahead_sql_set, ahead_sql;
