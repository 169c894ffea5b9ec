--
-- Sorts in all the places where a query can have its ORDER BY, and what the
-- rest of the plan asks of them.  Each query runs with gpusort off and forced
-- on, serially and with parallel feed; the rows are compared one by one.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/wait_closed.inc
\i sql/compare.inc
\set ECHO all
SET gpusort.min_rows = 500;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;

CREATE TABLE plans_t (id int, k int, p text COLLATE "C", f float8);
INSERT INTO plans_t
	SELECT i, i % 97, CASE WHEN i % 50 = 0 THEN NULL ELSE md5((i % 700)::text) END,
		CASE i % 11 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' WHEN 2 THEN '-0' WHEN 3 THEN '0' ELSE sin(i) END
	FROM generate_series(1, 6000) AS i;
ANALYZE plans_t;

-- Runs query three ways; it must have a total order up to equal rows.
CREATE FUNCTION compare(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	stock text[] := stock_rows(query);
	difference text;
	taken boolean := false;
BEGIN
	PERFORM set_config('gpusort.force', 'on', true);
	FOR workers IN 0 .. 1 LOOP
		PERFORM set_config('max_parallel_workers_per_gather', (workers * 2)::text, true);
		taken := taken OR plan_lines(query, '\(GpuSort\)') > 0;
		difference := rows_differ(query_rows(query), stock);
		IF difference IS NOT NULL THEN
			RETURN format('%s workers, %s', workers * 2, difference);
		END IF;
	END LOOP;
	RETURN format('same (%s rows), %s', cardinality(stock), CASE WHEN taken THEN 'gpusort' ELSE 'postgres' END);
END
$$;

-- directions and NULLs
SELECT compare('SELECT p, id FROM plans_t ORDER BY p, id');
SELECT compare('SELECT p, id FROM plans_t ORDER BY p DESC, id');
SELECT compare('SELECT p, id FROM plans_t ORDER BY p NULLS FIRST, id DESC');
SELECT compare('SELECT p, id FROM plans_t ORDER BY p DESC NULLS LAST, id DESC');
SELECT compare('SELECT f + 0 AS f, k, id FROM plans_t ORDER BY f, k, id');
SELECT compare('SELECT f + 0 AS f, k, id FROM plans_t ORDER BY f DESC, k DESC NULLS LAST, id');
-- expressions, columns that are not returned, repeated and constant columns
SELECT compare('SELECT id FROM plans_t ORDER BY k % 7, length(p), id');
SELECT compare('SELECT p FROM plans_t ORDER BY id DESC');
SELECT compare('SELECT id, id AS again FROM plans_t ORDER BY id, id, again');
SELECT compare('SELECT id, k FROM plans_t WHERE k = 5 ORDER BY k, id');
SELECT compare('SELECT k, count(*), max(p) FROM plans_t GROUP BY k ORDER BY count(*) DESC, k');
SELECT compare('SELECT DISTINCT k, p FROM plans_t ORDER BY p, k');
SELECT compare('SELECT DISTINCT ON (k) k, id, p FROM plans_t ORDER BY k, id DESC');
-- no rows, one row
SELECT compare('SELECT * FROM plans_t WHERE id < 0 ORDER BY p');
SELECT compare('SELECT * FROM plans_t WHERE id = 77 ORDER BY p');
-- limits, offsets
SELECT compare('SELECT id FROM plans_t ORDER BY p, id LIMIT 10');
SELECT compare('SELECT id FROM plans_t ORDER BY p, id LIMIT 10 OFFSET 5990');
SELECT compare('SELECT p FROM plans_t ORDER BY p FETCH FIRST 130 ROWS WITH TIES');
-- joins, subqueries, CTEs, set operations, window functions, views
SELECT compare('SELECT t.id, u.id FROM plans_t t JOIN plans_t u ON t.k = u.id ORDER BY u.p, t.id, u.id');
SELECT compare('SELECT * FROM (SELECT id, p FROM plans_t ORDER BY p, id LIMIT 3000) s ORDER BY id DESC');
SELECT compare('WITH c AS MATERIALIZED (SELECT id, p FROM plans_t ORDER BY p, id) SELECT * FROM c');
SELECT compare('SELECT id, p FROM plans_t WHERE k < 40 UNION ALL SELECT id, p FROM plans_t WHERE k > 50 ORDER BY p, id');
SELECT compare('SELECT id, p FROM plans_t WHERE k < 40 UNION SELECT id, p FROM plans_t WHERE k > 20 ORDER BY p, id');
SELECT compare('SELECT k FROM plans_t EXCEPT SELECT id FROM plans_t WHERE id < 10 ORDER BY k DESC LIMIT 5');
SELECT compare('SELECT id, rank() OVER (ORDER BY p, id) FROM plans_t ORDER BY f, id');
SELECT compare('SELECT k, (SELECT count(*) FROM (SELECT 1 FROM plans_t u WHERE u.k = t.k ORDER BY u.p) s) FROM plans_t t WHERE id < 20 ORDER BY id');
SELECT compare('SELECT t.id, s.id FROM plans_t t, LATERAL (SELECT id FROM plans_t u WHERE u.k = t.k ORDER BY p, id LIMIT 3) s WHERE t.id < 200 ORDER BY t.id, s.id');
SELECT compare('SELECT t.id, s.n FROM plans_t t, LATERAL (SELECT count(*) AS n FROM (SELECT p FROM plans_t ORDER BY f OFFSET 0) x WHERE t.id > 0) s WHERE t.id < 4 ORDER BY t.id');
CREATE VIEW plans_v AS SELECT id, p FROM plans_t ORDER BY p, id;
SELECT compare('SELECT * FROM plans_v');
SELECT compare('SELECT generate_series(1, 2) AS g, id FROM plans_t ORDER BY id DESC, g');
SELECT compare('SELECT * FROM generate_series(1, 3000) AS g ORDER BY g % 100 DESC, g');
SELECT compare('SELECT * FROM (VALUES (3, ''c''), (1, ''a''), (2, NULL)) AS v (i, t) ORDER BY t COLLATE "C" DESC, i');
-- keys of many columns, and rows of many
SELECT compare('SELECT ' || string_agg('id % ' || i || ' AS c' || i, ', ' ORDER BY i) || ' FROM plans_t ORDER BY ' ||
	string_agg(i || CASE WHEN i % 2 = 0 THEN ' DESC' ELSE '' END, ', ' ORDER BY i))
FROM generate_series(1, 100) AS i;
SELECT compare('SELECT ' || string_agg(CASE i % 3 WHEN 0 THEN 'NULL::int' WHEN 1 THEN 'id' ELSE 'p' END || ' AS c' || i, ', ') ||
	' FROM plans_t WHERE id <= 1200 ORDER BY 1, 2')
FROM generate_series(1, 1600) AS i;

-- calls that look the same and have values of their own
CREATE SEQUENCE plans_s;
SET gpusort.force = on;
SELECT nextval('plans_s') AS a, nextval('plans_s') AS b FROM generate_series(1, 3) ORDER BY a DESC, b;

-- more columns than a row can have are PostgreSQL's error
DO $$
DECLARE
	columns text;
	sums text;
BEGIN
	SELECT string_agg(format('%s AS c%s', i, i), ', '), string_agg(format('a.c%s + b.c%s', i, i), ' + ')
		INTO columns, sums FROM generate_series(1, 900) AS i;
	EXECUTE format('WITH t AS MATERIALIZED (SELECT %s) SELECT row_number() OVER (ORDER BY a.c1), %s FROM t a, t b', columns, sums);
EXCEPTION WHEN too_many_columns THEN
	RAISE WARNING '%', SQLERRM;
END
$$;

-- a SCROLL cursor in all directions, across pages
SET max_parallel_workers_per_gather = 0;
CREATE TABLE plans_wide AS SELECT i AS id, repeat(chr(97 + i % 26), 1000) AS pad FROM generate_series(1, 6000) AS i;
ANALYZE plans_wide;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM plans_wide ORDER BY id % 100, pad COLLATE "C", id DESC;
CREATE FUNCTION pg_temp.at(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	got int;
	c refcursor := 'c';
BEGIN
	FETCH ABSOLUTE n FROM c INTO got;
	RETURN got;
END
$$;
CREATE TEMP TABLE places AS SELECT n, (n * 7919) % 6000 + 1 AS place FROM generate_series(1, 300) AS n;
CREATE TEMP TABLE found AS SELECT n, place, pg_temp.at(place) AS id FROM places ORDER BY n;
FETCH LAST FROM c;
FETCH NEXT FROM c;
FETCH PRIOR FROM c;
FETCH FIRST FROM c;
FETCH PRIOR FROM c;
FETCH NEXT FROM c;
FETCH BACKWARD ALL FROM c;
MOVE 3000 FROM c;
FETCH FORWARD 2 FROM c;
FETCH BACKWARD 3 FROM c;
COMMIT;
SET gpusort.enabled = off;
SELECT count(*) AS wrong FROM found JOIN
	(SELECT row_number() OVER (ORDER BY id % 100, pad COLLATE "C", id DESC) AS place, id FROM plans_wide) s USING (place)
WHERE found.id <> s.id;
SET gpusort.enabled = on;

-- a cursor WITH HOLD outlives its transaction; the sort does not
BEGIN;
DECLARE h CURSOR WITH HOLD FOR SELECT id FROM plans_t ORDER BY p DESC NULLS LAST, id;
FETCH 2 FROM h;
COMMIT;
SELECT wait_closed();
SELECT count(*) FROM gpusort_activity;
FETCH 2 FROM h;
CLOSE h;

-- two sorts at once, one left unfinished by a subtransaction's abort
BEGIN;
DECLARE a CURSOR FOR SELECT id FROM plans_t ORDER BY p, id;
FETCH 1 FROM a;
SAVEPOINT s;
DECLARE b CURSOR FOR SELECT id FROM plans_t ORDER BY f, id;
FETCH 1 FROM b;
SELECT wait_closed();
SELECT count(*) FROM gpusort_activity;
ROLLBACK TO s;
FETCH 2 FROM a;
SELECT 1 / 0;
ROLLBACK;
SELECT wait_closed();
SELECT count(*) FROM gpusort_activity;
SELECT staging_used, memory_used, sorts FROM gpusort_devices;

-- prepared statements, generic and custom plans
PREPARE q (int) AS SELECT id FROM plans_t WHERE k < $1 ORDER BY p, id LIMIT 3;
SET plan_cache_mode = force_generic_plan;
SELECT plan_nodes('EXECUTE q (50)', 'First Rows');
EXECUTE q (50);
EXECUTE q (90);
SET plan_cache_mode = force_custom_plan;
EXECUTE q (50);
RESET plan_cache_mode;

-- loops and functions
DO $$
DECLARE
	last text := '';
	r record;
	n int := 0;
BEGIN
	FOR r IN SELECT p FROM plans_t WHERE p IS NOT NULL ORDER BY p LOOP
		IF r.p < last COLLATE "C" THEN
			RAISE 'wrong order';
		END IF;
		last := r.p;
		n := n + 1;
	END LOOP;
	RAISE WARNING '% rows in order', n;
END
$$;

-- writing commands, and rows that are locked
CREATE TABLE plans_u (n serial, id int);
INSERT INTO plans_u (id) SELECT id FROM plans_t ORDER BY p DESC, id;
SELECT count(*) AS wrong FROM plans_u JOIN
	(SELECT row_number() OVER (ORDER BY p DESC, id) AS n, id FROM plans_t) s USING (n) WHERE plans_u.id <> s.id;
SELECT plan_nodes('SELECT id FROM plans_t ORDER BY p, id LIMIT 3 FOR UPDATE', 'First Rows');
BEGIN;
SELECT id FROM plans_t ORDER BY p, id LIMIT 3 FOR UPDATE;
COMMIT;
UPDATE plans_u SET n = s.n FROM (SELECT id, n FROM plans_u ORDER BY id LIMIT 1000) s WHERE s.id = plans_u.id;
CREATE TABLE plans_w AS SELECT * FROM plans_t ORDER BY f DESC, id;

-- gpusort.enabled reaches plans that are kept: of prepared statements and in PL/pgSQL
SET gpusort.force = on;
SET plan_cache_mode = force_generic_plan;
PREPARE kept AS SELECT k, count(*), rank() OVER (ORDER BY count(*)) FROM (SELECT DISTINCT p, k FROM plans_t) s GROUP BY k ORDER BY k;
CREATE FUNCTION kept() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	r record;
	n int := 0;
BEGIN
	FOR r IN SELECT p FROM plans_t ORDER BY p, id LOOP
		n := n + 1;
	END LOOP;
	RETURN n;
END
$$;
SELECT plan_lines('EXECUTE kept', 'Gpu') > 0 AS first, kept();
SELECT device_sorts + process_sorts AS before FROM gpusort_stats \gset
SET gpusort.enabled = off;
SELECT plan_lines('EXECUTE kept', 'Gpu') AS off, kept();
SELECT device_sorts + process_sorts - :before AS sorts FROM gpusort_stats;
SET gpusort.enabled = on;
SELECT plan_lines('EXECUTE kept', 'Gpu') > 0 AS on, kept();
SELECT device_sorts + process_sorts - :before AS sorts FROM gpusort_stats;
BEGIN;
SAVEPOINT s;
SET LOCAL gpusort.enabled = off;
SELECT plan_lines('EXECUTE kept', 'Gpu') AS off;
SELECT 1 / 0;
ROLLBACK TO s;
SELECT plan_lines('EXECUTE kept', 'Gpu') > 0 AS on;
-- a plan that is being executed stays
DECLARE c CURSOR FOR SELECT id FROM plans_t ORDER BY p, id;
FETCH 1 FROM c;
SET LOCAL gpusort.enabled = off;
FETCH 1 FROM c;
SELECT plan_lines('EXECUTE kept', 'Gpu') AS off;
COMMIT;
SELECT plan_lines('EXECUTE kept', 'Gpu') > 0 AS on;
-- workers take the setting over
SET gpusort.enabled = off;
SET max_parallel_workers_per_gather = 2;
SELECT plan_nodes('SELECT count(*) FROM plans_t WHERE id > 0');
SELECT count(*) FROM plans_t WHERE id > 0;
RESET max_parallel_workers_per_gather;
RESET gpusort.enabled;
DEALLOCATE kept;
RESET plan_cache_mode;

-- sorts without our nodes above them
SET gpusort.sorts_only = on;
SET max_parallel_workers_per_gather = 0;
SET enable_hashagg = off;
SELECT plan_nodes('SELECT p, rank() OVER (ORDER BY p) FROM plans_t');
SELECT plan_nodes('SELECT p, count(*) FROM plans_t GROUP BY p');
SELECT plan_nodes('SELECT DISTINCT p, id FROM plans_t');
SELECT plan_nodes('SELECT count(*) FROM (SELECT DISTINCT p, id FROM plans_t) s');
SELECT plan_lines('SELECT count(DISTINCT p), string_agg(p, '','' ORDER BY p) FROM plans_t', 'Gpu[^S]') AS aggregates,
	plan_lines('SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY f) FROM plans_t GROUP BY k', 'Gpu[^S]') AS percentiles,
	plan_lines('SELECT gpu_sort_array(ARRAY[id, k]) FROM plans_t ORDER BY p', 'Gpu[^S]') AS arrays;
RESET enable_hashagg;
RESET max_parallel_workers_per_gather;
RESET gpusort.sorts_only;
RESET gpusort.force;

-- dropped and added columns
ALTER TABLE plans_t DROP COLUMN k;
ALTER TABLE plans_t ADD COLUMN late int DEFAULT 42;
INSERT INTO plans_t (id, p) SELECT -i, md5(i::text) FROM generate_series(1, 1000) AS i;
SELECT compare('SELECT * FROM plans_t ORDER BY late, p DESC, id');
-- functions that planning calls change settings, when GpuSort's path has been made: the plan is finished all the same
CREATE FUNCTION plans_says(setting text, value text) RETURNS int LANGUAGE plpgsql STABLE AS $$
BEGIN
	PERFORM set_config(setting, value, true);
	RETURN 1;
END
$$;
CREATE FUNCTION changed(force text, setting text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	query text := format('SELECT a, b FROM (SELECT random() AS a, random() AS b FROM plans_t ORDER BY b, a OFFSET 0) s,'
						 ' (VALUES (1), (2)) v (one) WHERE one = plans_says(%L, ''off'')', setting);
	wrong int;
	sorts int;
BEGIN
	PERFORM set_config('gpusort.force', force, true);
	EXECUTE 'SELECT count(*) FILTER (WHERE b < before) FROM (SELECT b, lag(b) OVER () AS before FROM (' || query || ') r) s' INTO wrong;
	PERFORM set_config(setting, 'on', true);
	sorts := plan_lines(query, 'GpuSort');
	RETURN format('%s = %s, %s GpuSort, %s rows out of order', setting, current_setting(setting), sorts, wrong);
END
$$;
SET max_parallel_workers_per_gather = 0;
SET gpusort.cost_factor = 0;
SELECT changed('on', 'gpusort.enabled');
SELECT changed('off', 'gpusort.enabled');
SELECT changed('off', 'enable_sort');
DROP FUNCTION changed, plans_says;

-- an open sort holds memory for its rows, in this process as on the device, whatever work_mem is
CREATE FUNCTION holds_little(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c refcursor;
	row record;
	bytes int;
BEGIN
	PERFORM set_config('gpusort.enabled', 'on', true);
	OPEN c FOR EXECUTE query;
	FETCH c INTO row;
	PERFORM set_config('gpusort.enabled', 'off', true);
	SELECT sum(total_bytes) INTO bytes FROM pg_backend_memory_contexts WHERE name LIKE 'gpusort%';
	CLOSE c;
	RETURN CASE WHEN bytes < 4096 THEN 'none' WHEN bytes < 64 * 1024 THEN 'little' ELSE 'much' END;
END
$$;
SET gpusort.force = on;
SET work_mem = '64MB';
SELECT holds_little('SELECT p, id FROM plans_t WHERE id BETWEEN 1 AND 16 ORDER BY p, id');
SELECT holds_little('SELECT p, id FROM plans_t ORDER BY p, id');
SET gpusort.min_rows = 0;
SELECT holds_little('SELECT p, id FROM plans_t WHERE id BETWEEN 1 AND 16 ORDER BY p, id');
SELECT holds_little('SELECT p, id FROM plans_t ORDER BY p, id LIMIT 16');
DROP FUNCTION holds_little;
DROP TABLE plans_t, plans_wide, plans_u, plans_w CASCADE;
DROP SEQUENCE plans_s;
DROP FUNCTION kept, wait_closed, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
