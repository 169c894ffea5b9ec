--
-- row_number(), rank() and dense_rank() over sorted rows: GpuWindow against
-- WindowAgg.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/windows_common.inc
\set ECHO all
SET gpusort.min_rows = 200;

-- peers are left out of what is compared, as their order is not defined
SELECT compare_windows('SELECT p, rank() OVER (ORDER BY p), dense_rank() OVER (ORDER BY p) FROM win_t');
SELECT compare_windows('SELECT p, id, row_number() OVER (ORDER BY p, id) FROM win_t');
SELECT compare_windows('SELECT k, p, rank() OVER (PARTITION BY k ORDER BY p DESC NULLS LAST) * 2 AS r, upper(p) FROM win_t');
SELECT compare_windows('SELECT k, rank() OVER w, dense_rank() OVER w, row_number() OVER w FROM win_t WINDOW w AS (PARTITION BY k)');
SELECT compare_windows('SELECT k, rank() OVER (PARTITION BY k ORDER BY k) FROM win_t');
SELECT compare_windows('SELECT f + 0, rank() OVER (ORDER BY f), dense_rank() OVER (ORDER BY f) FROM win_t');
SELECT compare_windows('SELECT trim_scale(n), rank() OVER (ORDER BY n), dense_rank() OVER (ORDER BY n) FROM win_t');
SELECT compare_windows('SELECT md5(w), rank() OVER (ORDER BY w), length(w) FROM win_t');
SELECT compare_windows('SELECT k, p, rank() OVER (PARTITION BY k ORDER BY p), dense_rank() OVER (PARTITION BY k ORDER BY p, f) FROM win_t ORDER BY k, p, 3, 4');
SELECT compare_windows('SELECT rank() OVER (ORDER BY p) FROM win_t WHERE id < 0');
SELECT compare_windows('SELECT 1, row_number() OVER (ORDER BY p), row_number() OVER (ORDER BY p) FROM win_t');
SELECT compare_windows('SELECT count(*), sum(r) FROM (SELECT rank() OVER (ORDER BY p) AS r FROM win_t) s');
SELECT compare_windows('SELECT x, s.* FROM generate_series(1, 4) AS x, LATERAL (SELECT id, k + x AS kx, rank() OVER (PARTITION BY k ORDER BY p, id) AS r FROM win_t WHERE id < 300 * x) s');
SELECT compare_windows('SELECT x, (SELECT max(r) FROM (SELECT dense_rank() OVER (ORDER BY p) AS r FROM win_t WHERE k = x) s) FROM generate_series(0, 7) AS x');

-- what is not taken: frames with offsets, subplans
SELECT compare_windows('SELECT p, rank() OVER (ORDER BY p ROWS 1 PRECEDING) FROM win_t');
SELECT compare_windows('SELECT id, (SELECT min(k) FROM win_t u WHERE u.id = t.id), row_number() OVER (ORDER BY p, id) FROM win_t t WHERE id < 500');

SET gpusort.force = on;
EXPLAIN (VERBOSE, COSTS OFF)
	SELECT id, rank() OVER (PARTITION BY k ORDER BY p) + 1 AS r, dense_rank() OVER (PARTITION BY k ORDER BY p) FROM win_t;
SELECT explain_lines('SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY p) AS r FROM win_t WHERE id < 100) s', '.');

-- rescanned, what is below is not computed again: the function's values stay the same
CREATE SEQUENCE win_s;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SELECT count(*), max(v) FROM generate_series(1, 4) AS g LEFT JOIN
	(SELECT v, row_number() OVER (ORDER BY p, id) AS r
	 FROM (SELECT id, p, nextval('win_s') AS v FROM win_t WHERE id < 100 OFFSET 0) AS t) AS s ON r > g;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;

-- who may not call a function may not do so by GpuWindow
CREATE ROLE gpusort_win_user;
GRANT SELECT ON win_t TO gpusort_win_user;
REVOKE EXECUTE ON FUNCTION dense_rank() FROM public;
SET ROLE gpusort_win_user;
SELECT p, dense_rank() OVER (ORDER BY p) FROM win_t;
SELECT count(*) FROM (SELECT p, rank() OVER (ORDER BY p) FROM win_t OFFSET 0) s;
RESET ROLE;
GRANT EXECUTE ON FUNCTION dense_rank() TO public;
DROP OWNED BY gpusort_win_user;
DROP ROLE gpusort_win_user;

-- a cursor, backward and again, and a prepared statement's generic plan
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT p, id, row_number() OVER (ORDER BY p, id) FROM win_t WHERE id < 300;
MOVE FORWARD 200 FROM c;
FETCH 2 FROM c;
FETCH BACKWARD 2 FROM c;
MOVE ABSOLUTE 0 FROM c;
FETCH 1 FROM c;
COMMIT;
SET plan_cache_mode = force_generic_plan;
PREPARE ranks(int) AS SELECT max(r) FROM (SELECT rank() OVER (ORDER BY p) AS r FROM win_t WHERE id < $1) s;
EXECUTE ranks(1000);
EXECUTE ranks(10);
EXECUTE ranks(3000);

-- PostgreSQL 19's IGNORE NULLS and RESPECT NULLS are an error for these functions
CREATE FUNCTION treat_nulls(function name, clause text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('server_version_num')::int < 190000 THEN
		RETURN format('function %s does not allow RESPECT/IGNORE NULLS', function);
	END IF;
	PERFORM set_config('gpusort.force', 'on', true);
	EXECUTE format('SELECT max(r) FROM (SELECT %s() %s OVER (ORDER BY p) AS r FROM win_t) AS s', function, clause);
	RETURN 'no error';
EXCEPTION WHEN feature_not_supported THEN
	RETURN sqlerrm;
END
$$;
SELECT clause, treat_nulls(function, clause)
FROM unnest(ARRAY['row_number', 'rank', 'dense_rank']) AS function, unnest(ARRAY['IGNORE NULLS', 'RESPECT NULLS']) AS clause
ORDER BY 1, 2;

DROP TABLE win_t;
DROP SEQUENCE win_s;
DROP FUNCTION compare_windows, explain_lines, treat_nulls, compare_nodes, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
