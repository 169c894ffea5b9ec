--
-- Window functions other than ranks over sorted rows: GpuWindow against WindowAgg.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/windows_common.inc
\set ECHO all
SET gpusort.min_rows = 200;

-- aggregates by the default frame, whose end is the last peer
SELECT compare_windows('SELECT p, sum(id) OVER (ORDER BY p) FROM win_t');
SELECT compare_windows('SELECT k, p, count(*) OVER w, count(p) OVER w, sum(id) OVER w, avg(id) OVER w, min(p) OVER w, max(p) OVER w, max(w::text) OVER w FROM win_t WINDOW w AS (PARTITION BY k ORDER BY p)');
SELECT compare_windows('SELECT n, sum(n) OVER w, avg(n) OVER w, stddev(id) OVER w, bool_and(id > 3) OVER w FROM (SELECT id, trim_scale(n) AS n FROM win_t) t WINDOW w AS (ORDER BY n)');
SELECT compare_windows('SELECT f + 0, count(*) OVER w, min(f + 0) OVER w, sum(f + 0) OVER w FROM win_t WINDOW w AS (ORDER BY f DESC)');
SELECT compare_windows('SELECT k, sum(id) FILTER (WHERE id % 3 = 0) OVER w, count(*) FILTER (WHERE p > ''8'') OVER w, max(p) FILTER (WHERE false) OVER w FROM win_t WINDOW w AS (PARTITION BY k ORDER BY id)');
SELECT compare_windows('SELECT id, array_agg(id) OVER (PARTITION BY k ORDER BY id), string_agg(left(p, 1), '','') OVER (PARTITION BY k ORDER BY id) FROM win_t WHERE id < 300');
SELECT compare_windows('SELECT id, sum(sum(id)) OVER (ORDER BY p, id) FROM win_t GROUP BY p, id');
SELECT compare_windows('SELECT count(*) OVER (ORDER BY p) FROM win_t WHERE id < 0');
SELECT compare_windows('SELECT sum(id) OVER (PARTITION BY id ORDER BY p) FROM win_t');
SELECT compare_windows('SELECT max(s), count(*) FROM (SELECT sum(id) OVER (ORDER BY p) AS s FROM win_t) t');

-- other frames that begin with the partition, and none that do not
SELECT compare_windows('SELECT id, sum(id) OVER w, max(p) OVER w, last_value(p) OVER w, first_value(p) OVER w FROM win_t WINDOW w AS (PARTITION BY k ORDER BY p, id ROWS UNBOUNDED PRECEDING)');
SELECT compare_windows('SELECT p, sum(id) OVER (ORDER BY p GROUPS UNBOUNDED PRECEDING) FROM win_t');
SELECT compare_windows('SELECT k, sum(id) OVER w, avg(n) OVER w, count(p) OVER w, max(w::text) OVER w FROM win_t WINDOW w AS (PARTITION BY k)');
SELECT compare_windows('SELECT k, p, sum(id) OVER w, last_value(p) OVER w FROM win_t WINDOW w AS (PARTITION BY k ORDER BY p ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)');
SELECT compare_windows('SELECT k, p, sum(id) OVER (PARTITION BY k ORDER BY p RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM win_t');
SELECT compare_windows('SELECT sum(id) OVER (ORDER BY id ROWS 2 PRECEDING) FROM win_t');
SELECT compare_windows('SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) FROM win_t');
SELECT compare_windows('SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM win_t');
SELECT compare_windows('SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) FROM win_t');
SELECT compare_windows('SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) FROM win_t');

-- lag(), lead()
SELECT compare_windows('SELECT id, lag(p) OVER w, lead(p) OVER w, lag(id, 3) OVER w, lead(id, 3, -id) OVER w FROM win_t WINDOW w AS (PARTITION BY k ORDER BY p, id)');
SELECT compare_windows('SELECT id, lag(p, 0) OVER w, lag(p, -2, ''none'') OVER w, lead(w, -1) OVER w, lag(p, NULL) OVER w, lead(p, NULL, ''x'') OVER w FROM win_t WINDOW w AS (PARTITION BY k ORDER BY p, id)');
SELECT compare_windows('SELECT id, lag(id + 1, 1000, id) OVER w, lead(p || ''x'', 100000) OVER w, lead(p, 2147483647, p) OVER w, lag(p, -2147483648, p) OVER w FROM win_t WINDOW w AS (ORDER BY p, id)');
SELECT compare_windows('SELECT id, lag(id, id % 3) OVER (ORDER BY id) FROM win_t');
SELECT compare_windows('SELECT id, lag(id, (SELECT 2)) OVER (ORDER BY p, id) FROM win_t');
SELECT compare_windows('SELECT x, s.* FROM generate_series(-2, 2) AS x, LATERAL (SELECT id, lag(p, x, x::text) OVER (PARTITION BY k ORDER BY p, id), lead(id, x) OVER (PARTITION BY k ORDER BY p, id) FROM win_t WHERE id < 300) s');

-- first_value(), last_value() by the default frame
SELECT compare_windows('SELECT k, p, first_value(p) OVER w, last_value(p) OVER w, first_value(upper(p)) OVER w FROM win_t WINDOW w AS (PARTITION BY k ORDER BY p)');
SELECT compare_windows('SELECT id, first_value(w) OVER w, last_value(w) OVER w, first_value(id) OVER w, last_value(id) OVER w FROM win_t WINDOW w AS (ORDER BY p, id)');
SELECT compare_windows('SELECT k, last_value(k) OVER (PARTITION BY k), first_value(k) OVER (PARTITION BY k) FROM win_t');

-- what counts the partition's rows
SELECT compare_windows('SELECT id, ntile(4) OVER w, ntile(1) OVER w, ntile(429) OVER w, ntile(100000) OVER w FROM win_t WINDOW w AS (PARTITION BY k ORDER BY p, id)');
SELECT compare_windows('SELECT id, ntile(id % 5) OVER (ORDER BY id) FROM win_t WHERE id > 0');
SELECT compare_windows('SELECT id, ntile(nullif(id, id / 4 * 4 + 1)) OVER (PARTITION BY id / 4 ORDER BY id), ntile(NULL) OVER (PARTITION BY id / 4 ORDER BY id) FROM win_t');
SELECT compare_windows('SELECT p, percent_rank() OVER w, cume_dist() OVER w FROM win_t WINDOW w AS (ORDER BY p)');
SELECT compare_windows('SELECT k, p, percent_rank() OVER w, cume_dist() OVER w, rank() OVER w, dense_rank() OVER w, count(*) OVER w FROM win_t WINDOW w AS (PARTITION BY k ORDER BY p)');
SELECT compare_windows('SELECT id, percent_rank() OVER w, cume_dist() OVER w, ntile(2) OVER w, lag(id) OVER w FROM win_t WINDOW w AS (PARTITION BY id ORDER BY p)');
SELECT compare_windows('SELECT k, cume_dist() OVER (PARTITION BY k), percent_rank() OVER (PARTITION BY k) FROM win_t');

-- several, and one above the other
SELECT compare_windows('SELECT id, row_number() OVER w, rank() OVER w, sum(id) OVER w, lag(p) OVER w, lead(p, 2) OVER w, ntile(3) OVER w, first_value(id) OVER w, sum(id) OVER w + rank() OVER w FROM win_t WINDOW w AS (PARTITION BY k ORDER BY p, id)');
SELECT compare_windows('SELECT id, lag(p) OVER w, rank() OVER w, dense_rank() OVER w, count(*) OVER w, last_value(p) OVER w FROM win_t WINDOW w AS (PARTITION BY k ORDER BY p, id)');
SELECT compare_windows('SELECT p, k, sum(id) OVER (PARTITION BY k ORDER BY p), lag(k) OVER (PARTITION BY k), count(*) OVER (ORDER BY p) FROM win_t ORDER BY 1, 2, 3, 4, 5');
SELECT compare_windows('SELECT id, sum(s) OVER (ORDER BY p, id), lead(s) OVER (ORDER BY p DESC, id) FROM (SELECT id, p, sum(id) OVER (PARTITION BY k ORDER BY p, id) AS s FROM win_t) t ORDER BY 1');
SELECT compare_windows('SELECT sum(id) OVER (), id FROM (SELECT id, row_number() OVER (ORDER BY p) FROM win_t ORDER BY p, id OFFSET 0) t');

-- run conditions: by the topmost window, with and without partitions, and below another one
SELECT compare_windows('SELECT * FROM (SELECT p, rank() OVER (ORDER BY p) AS r, sum(id) OVER (ORDER BY p) FROM win_t) s WHERE r < 400');
SELECT compare_windows('SELECT * FROM (SELECT k, id, row_number() OVER (PARTITION BY k ORDER BY p, id) AS r FROM win_t) s WHERE r <= 3');
SELECT compare_windows('SELECT * FROM (SELECT k, id, lag(id) OVER w, lead(id, 2) OVER w, row_number() OVER w AS r FROM win_t WINDOW w AS (PARTITION BY k ORDER BY p, id)) s WHERE r <= 3');
SELECT compare_windows('SELECT * FROM (SELECT k, p, count(*) OVER (PARTITION BY k ORDER BY p) AS c, dense_rank() OVER (PARTITION BY k ORDER BY p) AS d FROM win_t) s WHERE c <= 50 AND d < 4');
SELECT compare_windows('SELECT * FROM (SELECT id, row_number() OVER (ORDER BY p, id) AS r, count(*) OVER (PARTITION BY k ORDER BY id DESC, p) AS c FROM win_t) s WHERE r <= 900 ORDER BY id');
SELECT compare_windows('SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY p, id) AS r, lead(id) OVER (PARTITION BY k) AS l, count(*) OVER (PARTITION BY k) AS c FROM (SELECT * FROM win_t ORDER BY k, p, id) t) s WHERE r <= 20');
SELECT compare_windows('SELECT * FROM (SELECT id, rank() OVER w AS r, percent_rank() OVER w AS q, ntile(10) OVER w AS t FROM win_t WINDOW w AS (PARTITION BY k ORDER BY p, id)) s WHERE q < 0.1 AND t <= 2');
SELECT compare_windows('SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY p, id) AS r FROM win_t) s WHERE r <= NULL');
SELECT compare_windows('SELECT x, s.* FROM generate_series(0, 4) AS x, LATERAL (SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY p, id) AS r FROM win_t) t WHERE r <= x) s');
CREATE SEQUENCE win_s;
SELECT compare_windows('SELECT * FROM (SELECT k, id, row_number() OVER (PARTITION BY k ORDER BY p, id ROWS UNBOUNDED PRECEDING) AS r, nextval(''win_s'') * 0 AS z FROM win_t) s WHERE r <= 3');
DROP SEQUENCE win_s;

-- groups and partitions that are too large for work_mem
SET work_mem = '64kB';
SELECT compare_windows('SELECT k, sum(id) OVER w, max(w::text) OVER w, last_value(k) OVER w, rank() OVER w FROM win_t WINDOW w AS (ORDER BY k)');
SELECT compare_windows('SELECT k, sum(id) OVER w, count(*) OVER w, lag(k) OVER w, lead(k, 5) OVER w, cume_dist() OVER w FROM win_t WINDOW w AS (ORDER BY k)');
SELECT compare_windows('SELECT id, w, lag(w, 700) OVER s, lead(p, 700) OVER s, ntile(7) OVER s, first_value(w) OVER s FROM win_t WINDOW s AS (ORDER BY p, id)');
SELECT compare_windows('SELECT id, lag(w, 100) OVER s, sum(id) OVER s, last_value(id) OVER s FROM win_t WINDOW s AS (PARTITION BY k ORDER BY p, id)');
SELECT compare_windows('SELECT k / 4, sum(id) OVER s, max(w::text) OVER s FROM win_t WINDOW s AS (PARTITION BY k / 4)');
SELECT compare_windows('SELECT * FROM (SELECT id, w, lead(w, 50) OVER s, row_number() OVER s AS r FROM win_t WINDOW s AS (PARTITION BY k ORDER BY p, id)) t WHERE r < 200');
SELECT compare_windows('SELECT id, r, lead(r, 700) OVER s, lag(r + 1, 3) OVER s, sum(r) OVER s, lag(r + 1) OVER (PARTITION BY k ORDER BY p, id), sum(r) OVER (PARTITION BY p) FROM (SELECT id, k, p, rank() OVER (PARTITION BY k ORDER BY p) AS r FROM win_t) t WINDOW s AS (ORDER BY k DESC, id)');
RESET work_mem;

-- many pages of the device, as w travels with the rows: rows that are at hand in one, and groups and
-- partitions that go on in the next
CREATE TABLE win_pages AS SELECT i AS id, i % 97 % 13 % 5 AS k, (i * 7919) % 4001 AS u, i % 601 % 83 * (i % 2) AS g,
	repeat(chr(97 + i % 26), 1200 + i % 500) AS w FROM generate_series(1, 4000) AS i;
ANALYZE win_pages;
SELECT compare_windows('SELECT u, w, rank() OVER s, sum(id) OVER s, sum(id::bigint) OVER s, count(*) OVER s, last_value(u) OVER s FROM win_pages WINDOW s AS (ORDER BY u)');
SELECT compare_windows('SELECT g, rank() OVER s, dense_rank() OVER s, sum(id) OVER s, count(*) OVER s, max(w) OVER s, last_value(g) OVER s FROM win_pages WINDOW s AS (ORDER BY g)');
SELECT compare_windows('SELECT k, u, w, rank() OVER s, sum(id) OVER s, lead(id) OVER s, lead(w, 3) OVER s, lag(id) OVER s, lag(w) OVER s FROM win_pages WINDOW s AS (PARTITION BY k ORDER BY u)');
SELECT compare_windows('SELECT w IS NULL, k, g, rank() OVER s, row_number() OVER s, sum(id) OVER s, lead(g) OVER s, lag(g, 2) OVER s FROM win_pages WINDOW s AS (PARTITION BY k ORDER BY g)');
SELECT compare_windows('SELECT u / 9, sum(id) OVER s, max(w) OVER s, count(*) OVER s, last_value(u / 9) OVER s, cume_dist() OVER s FROM win_pages WINDOW s AS (PARTITION BY u / 9)');
SELECT compare_windows('SELECT w IS NULL, u, count(*) OVER (PARTITION BY u / 2000), lead(u, 2) OVER (PARTITION BY u / 7 ORDER BY u), lead(u, 5, -1) OVER (PARTITION BY u / 7 ORDER BY u) FROM win_pages');
SELECT compare_windows('SELECT u, w, lead(w, 700) OVER s, lead(u, 1) OVER s, lag(u, 64) OVER s, lag(u, 65) OVER s, sum(id) OVER s FROM win_pages WINDOW s AS (ORDER BY u)');
SELECT compare_windows('SELECT w IS NULL, g, sum(id) OVER (ORDER BY g ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING), percent_rank() OVER (ORDER BY g) FROM win_pages');
SELECT compare_windows('SELECT w IS NULL, k, u, ntile(3) OVER s, lead(u) OVER s, sum(id) OVER s FROM win_pages WINDOW s AS (PARTITION BY k, g ORDER BY u)');
SELECT compare_windows('SELECT s.*, lead(x) OVER (ORDER BY u) FROM (SELECT w IS NULL AS no, u, lag(ARRAY[u, g]) OVER (ORDER BY u) AS x, count(*) OVER (ORDER BY u) FROM win_pages) s');
SELECT compare_windows('SELECT s.*, lag(x) OVER (ORDER BY u), lead(x) OVER (ORDER BY u) FROM (SELECT w IS NULL AS no, u, array_agg(u) OVER (PARTITION BY u / 5 ORDER BY u) AS x FROM win_pages) s');
SELECT compare_windows('SELECT * FROM (SELECT w IS NULL, k, u, lag(u + 1) OVER s AS l, sum(id) OVER s, rank() OVER s AS r FROM win_pages WINDOW s AS (PARTITION BY k ORDER BY u)) t WHERE r <= 500');
SELECT compare_windows('SELECT * FROM (SELECT w IS NULL, k, u, lag(u + 1, 3) OVER s AS l, lead(u) OVER s, rank() OVER s AS r, ntile(2) OVER (PARTITION BY g ORDER BY u) FROM win_pages WINDOW s AS (PARTITION BY k ORDER BY u)) t WHERE r <= 500 ORDER BY u');
SELECT compare_windows('SELECT x, s.* FROM generate_series(1, 3) AS x, LATERAL (SELECT w IS NULL, u, lag(u) OVER s, lead(u, x) OVER s, sum(id) OVER s FROM win_pages WHERE u < 900 WINDOW s AS (PARTITION BY k ORDER BY u)) s');

-- keys that tell more or less than the window asks, keys that are cut off, rows too large for a page, and NULLs
SELECT compare_windows('SELECT w IS NULL, k, g, rank() OVER (ORDER BY k), count(*) OVER (PARTITION BY k ORDER BY g), sum(id) OVER (ORDER BY k, g) FROM win_pages ORDER BY 2, 3, 4, 5, 6');
SELECT compare_windows('SELECT w IS NULL, k, u, rank() OVER s, sum(id) OVER s FROM win_pages WHERE k = 2 WINDOW s AS (PARTITION BY k ORDER BY u)');
SELECT compare_windows('SELECT l, count(*) OVER s, rank() OVER s, lead(l) OVER s, lag(l) OVER s FROM (SELECT repeat(w, 8) || g AS l FROM win_pages WHERE id < 1500) t WINDOW s AS (ORDER BY l)');
SELECT compare_windows('SELECT u, length(l), length(lead(l) OVER s), length(lag(l) OVER s), sum(u) OVER s, length(lead(l, 2) OVER s) FROM (SELECT u, CASE WHEN u % 100 = 0 THEN repeat(''y'', 150000) ELSE ''n'' END AS l FROM win_pages) t WINDOW s AS (ORDER BY u)');
SELECT compare_windows('SELECT n, lag(n) OVER s, lag(n, 3, -1) OVER s, lead(n) OVER s, sum(n) OVER s, rank() OVER s, lag(t) OVER s FROM (SELECT nullif(u, g) AS n, nullif(left(w, 2), ''bb'') AS t FROM win_pages) t WINDOW s AS (ORDER BY t, n)');
SELECT compare_windows('SELECT t, rank() OVER s, count(*) OVER s, lead(t) OVER s FROM (SELECT CASE WHEN u % 3 = 0 THEN upper(left(w, 5)) ELSE left(w, 5 + g % 3) END COLLATE "en_US.utf8" AS t FROM win_pages) t WINDOW s AS (ORDER BY t)');
SELECT compare_windows('SELECT t::text, rank() OVER s, count(*) OVER s, lead(t::text) OVER s FROM (SELECT left(w, g % 4)::char(5) COLLATE "C" AS t FROM win_pages) t WINDOW s AS (PARTITION BY t)');

-- columns that only the sort needs go no further
SET gpusort.force = on;
EXPLAIN (VERBOSE, COSTS OFF) SELECT lag(id) OVER (PARTITION BY k ORDER BY p) FROM win_t;
EXPLAIN (VERBOSE, COSTS OFF) SELECT lag(p) OVER (PARTITION BY k ORDER BY p) || k FROM win_t;
SELECT compare_windows('SELECT lag(id) OVER (PARTITION BY k ORDER BY p, id) FROM win_t');
SELECT compare_windows('SELECT lag(p) OVER (PARTITION BY k ORDER BY p) || k FROM win_t');

-- aggregates of users
CREATE FUNCTION win_longest(state text, value text) RETURNS text LANGUAGE plpgsql STRICT AS
	$$ BEGIN RETURN CASE WHEN value = 'end' THEN NULL WHEN length(value) > length(state) THEN value ELSE state END; END $$;
CREATE AGGREGATE win_longest(text) (SFUNC = win_longest, STYPE = text);
CREATE FUNCTION win_note(state text, value anyelement) RETURNS text LANGUAGE sql AS $$ SELECT right(state || coalesce(value::text, '-'), 20) $$;
CREATE FUNCTION win_note_end(state text, value anyelement) RETURNS anyarray LANGUAGE plpgsql AS $$ BEGIN RETURN ARRAY[value, value]; END $$;
CREATE AGGREGATE win_note(anyelement) (SFUNC = win_note, STYPE = text, INITCOND = 'begin:', FINALFUNC = win_note_end, FINALFUNC_EXTRA);
CREATE AGGREGATE win_note_all(anyelement) (SFUNC = win_note, STYPE = text, INITCOND = 'begin:');
CREATE AGGREGATE win_shut(anyelement) (SFUNC = win_note, STYPE = text, INITCOND = '', FINALFUNC = upper, FINALFUNC_MODIFY = READ_WRITE);
SELECT compare_windows('SELECT id, win_longest(CASE id WHEN 80 THEN ''end'' WHEN 7 THEN NULL ELSE left(p, id % 30) END) OVER (PARTITION BY k ORDER BY id) FROM win_t');
SELECT compare_windows('SELECT k, p, win_longest(p) OVER (PARTITION BY k ORDER BY p DESC), win_longest(left(p, 5)) OVER (PARTITION BY k ORDER BY p DESC) FROM win_t');
SELECT compare_windows('SELECT id, win_note(p::text) OVER w, win_note(id) OVER w, win_note_all(k) OVER w FROM win_t WINDOW w AS (PARTITION BY k ORDER BY id)');
SELECT compare_windows('SELECT id, win_note_all(id) OVER (PARTITION BY k ORDER BY id), win_note_all(NULL::int) OVER (PARTITION BY k ORDER BY id) FROM win_t');
SET gpusort.force = on;
SELECT win_shut(id) OVER (ORDER BY p) FROM win_t;

-- errors come at the same row
CREATE FUNCTION rows_before_error(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c refcursor;
	r record;
	n int := 0;
BEGIN
	OPEN c NO SCROLL FOR EXECUTE query;
	LOOP
		FETCH c INTO r;
		EXIT WHEN NOT found;
		n := n + 1;
	END LOOP;
	RETURN format('%s rows', n);
EXCEPTION WHEN OTHERS THEN
	RETURN format('%s rows, %s', n, sqlerrm);
END
$$;
CREATE FUNCTION compare_errors(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	ours text;
	stock text;
BEGIN
	PERFORM set_config('gpusort.enabled', 'off', true);
	stock := rows_before_error(query);
	PERFORM set_config('gpusort.enabled', 'on', true);
	ours := rows_before_error(query);
	RETURN CASE WHEN ours = stock THEN format('%s, %s GpuWindow', ours, plan_lines(query, '\(GpuWindow\)'))
		ELSE format('%s, should be %s', ours, stock) END;
END
$$;
SELECT compare_errors('SELECT id, sum(1 / (id - 1000)) OVER (ORDER BY id) FROM win_t');
SELECT compare_errors('SELECT id / 10, sum(1 / (id - 1005)) OVER (ORDER BY id / 10) FROM win_t');
SELECT compare_errors('SELECT id, sum(1 / (id - 1000)) OVER w, lead(id, 10) OVER w FROM win_t WINDOW w AS (ORDER BY id)');
SELECT compare_errors('SELECT id, lead(1 / (id - 1000), 10) OVER w, lead(id, 100) OVER w FROM win_t WINDOW w AS (ORDER BY id)');
SELECT compare_errors('SELECT id, lead(1 / (id - 5), 10) OVER w FROM win_t WINDOW w AS (ORDER BY id)');
SELECT compare_errors('SELECT id, lag(1 / (id - 1000), 10) OVER w FROM win_t WINDOW w AS (ORDER BY id)');
SELECT compare_errors('SELECT id, lag(1 / (id - 3000), 10) OVER w FROM win_t WINDOW w AS (ORDER BY id)');
SELECT compare_errors('SELECT id, lag(id, 10, 1 / (id - 5)) OVER w FROM win_t WINDOW w AS (ORDER BY id)');
SELECT compare_errors('SELECT id, lag(id, 10, 1 / (id - 50)) OVER w FROM win_t WINDOW w AS (ORDER BY id)');
SELECT compare_errors('SELECT id, first_value(1 / (id - 50)) OVER w, last_value(1 / (id - 500)) OVER w FROM win_t WINDOW w AS (ORDER BY id)');
SELECT compare_errors('SELECT id, last_value(1 / (id - 99)) OVER w, last_value(1 / (id - 105)) OVER w FROM win_t WINDOW w AS (ORDER BY id / 10)');
SELECT compare_errors('SELECT id, ntile(id - 1000) OVER w FROM win_t WINDOW w AS (PARTITION BY id / 10 ORDER BY id)');
SELECT compare_errors('SELECT id, lag(id, 1 / (id - id)) OVER w FROM win_t WINDOW w AS (ORDER BY id)');
SELECT compare_errors('SELECT id, lag(id, 1 / (SELECT 0)) OVER w FROM win_t WINDOW w AS (ORDER BY id)');
SELECT compare_errors('SELECT id, sum(9223372036854775800 + id) OVER w FROM win_t WINDOW w AS (ORDER BY id)');
SELECT compare_errors('SELECT id, sum(1 / (id - 1000)) FILTER (WHERE id <> 1000) OVER w FROM win_t WINDOW w AS (ORDER BY id)');

-- volatile arguments and the rest of what stays with WindowAgg, and why
SET gpusort.log_refusals = on;
SET client_min_messages = notice;
SELECT plan_lines('SELECT sum(random()) OVER (ORDER BY id) FROM win_t', 'WindowAgg');
SELECT plan_lines('SELECT lag(id, k) OVER (ORDER BY id) FROM win_t', 'WindowAgg');
SELECT plan_lines('SELECT nth_value(id, 3) OVER (ORDER BY id) FROM win_t', 'WindowAgg');
SELECT plan_lines('SELECT rank() OVER (ORDER BY id ROWS 3 PRECEDING) FROM win_t', 'WindowAgg');
SELECT plan_lines('SELECT sum(id) OVER (ORDER BY id ROWS CURRENT ROW) FROM win_t', 'WindowAgg');
SELECT plan_lines('SELECT (SELECT t.id + t.k OFFSET 0), sum(id) OVER (ORDER BY id) FROM win_t t', 'WindowAgg');
EXPLAIN SELECT win_shut(id) OVER (ORDER BY id) FROM win_t;
SELECT plan_lines('SELECT * FROM (SELECT random(), rank() OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS r FROM win_t) s WHERE r < 9', 'WindowAgg');
SELECT plan_lines('SELECT * FROM (SELECT random(), count(*) OVER (ORDER BY id) AS c FROM win_t) s WHERE c < 9', 'WindowAgg');
SELECT plan_lines('SELECT gpu_sort_array(ARRAY[id, k]), rank() OVER (ORDER BY id) AS r FROM win_t', 'WindowAgg');
RESET gpusort.log_refusals;
SET client_min_messages = warning;

-- what EXPLAIN shows, and how many rows are read
EXPLAIN (VERBOSE, COSTS OFF)
	SELECT id, sum(id) FILTER (WHERE k > 2) OVER w + 1 AS s, count(*) OVER w, lag(p, 2, 'x') OVER w, first_value(k) OVER w
	FROM win_t WINDOW w AS (PARTITION BY k ORDER BY p);
SELECT explain_lines('SELECT * FROM (SELECT id, row_number() OVER (ORDER BY p, id) AS r FROM win_t) s WHERE r <= 3', 'GpuWindow|GpuSort|Condition|Filter');
SELECT explain_lines('SELECT * FROM (SELECT id, count(*) OVER (ORDER BY k) AS c FROM win_t) s WHERE c <= 900', 'GpuWindow|GpuSort|Condition|Filter');
SELECT explain_lines('SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY p, id) AS r FROM win_t) s WHERE r <= 3', 'GpuWindow|GpuSort|Condition|Filter');
SELECT explain_lines('SELECT * FROM (SELECT id, row_number() OVER (ORDER BY p, id) AS r, count(*) OVER (PARTITION BY k ORDER BY id DESC, p) AS c FROM win_t) s WHERE r <= 900 AND c < 40', 'GpuWindow|GpuSort|Condition|Filter');
SELECT explain_lines('SELECT id, lead(id, 3) OVER (ORDER BY p, id) FROM win_t LIMIT 5', 'GpuWindow|GpuSort|Condition|Filter');

-- who may not call a function may not do so by GpuWindow; a transition function is the owner's to call
CREATE ROLE gpusort_win_user;
GRANT SELECT ON win_t TO gpusort_win_user;
REVOKE EXECUTE ON FUNCTION win_longest(text), lag(anyelement) FROM public;
SET ROLE gpusort_win_user;
SELECT win_longest(p) OVER (ORDER BY p) FROM win_t;
SELECT lag(p) OVER (ORDER BY p) FROM win_t;
RESET ROLE;
GRANT EXECUTE ON FUNCTION win_longest(text), lag(anyelement) TO public;
REVOKE EXECUTE ON FUNCTION win_longest(text, text) FROM public;
SET ROLE gpusort_win_user;
SELECT max(m) FROM (SELECT win_longest(p) OVER (ORDER BY p) AS m FROM win_t) s;
RESET ROLE;
ALTER AGGREGATE win_longest(text) OWNER TO gpusort_win_user;
SELECT win_longest(p) OVER (ORDER BY p) FROM win_t;
ALTER AGGREGATE win_longest(text) OWNER TO current_user;
DROP OWNED BY gpusort_win_user;
DROP ROLE gpusort_win_user;

-- rows that are too large for a page are not at hand before they are read
CREATE TABLE win_few (id int, g int, k int);
INSERT INTO win_few SELECT i, i % 10, i % 3 FROM generate_series(1, 600) AS i;
ANALYZE win_few;
CREATE VIEW win_big AS SELECT id, g, k, CASE WHEN id % 7 = 0 THEN repeat('y', 140000 + id) ELSE 'x' END AS big FROM win_few OFFSET 0;
SELECT compare_windows('SELECT g, count(big) OVER w, sum(id) OVER w FROM win_big WINDOW w AS (ORDER BY g)');
SELECT compare_windows('SELECT g, count(big) OVER w, sum(id) OVER w FROM win_big WINDOW w AS (PARTITION BY g)');
SELECT compare_windows('SELECT id, g, length(last_value(big) OVER w), sum(length(big)) OVER w FROM win_big WINDOW w AS (ORDER BY g, id)');
SELECT compare_windows('SELECT id, g, length(last_value(big) OVER w) FROM win_big WINDOW w AS (PARTITION BY g ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)');
SELECT compare_windows('SELECT id, length(lead(big, 1) OVER w), length(lead(big, 3) OVER w), lead(id, 5) OVER w FROM win_big WINDOW w AS (ORDER BY id)');
SELECT compare_windows('SELECT id, length(lead(big, 2) OVER w), lead(id, 3) OVER w FROM win_big WINDOW w AS (PARTITION BY g ORDER BY id)');
SELECT compare_windows('SELECT g, k, percent_rank() OVER w, cume_dist() OVER w, count(big) OVER w FROM win_big WINDOW w AS (PARTITION BY g ORDER BY k)');

-- a cursor, backward and again, and a prepared statement's generic plan
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, sum(id) OVER w, lead(id, 2) OVER w FROM win_t WHERE id < 300 WINDOW w AS (ORDER BY p, id);
MOVE FORWARD 200 FROM c;
FETCH 2 FROM c;
FETCH BACKWARD 2 FROM c;
MOVE ABSOLUTE 0 FROM c;
FETCH 1 FROM c;
COMMIT;
SET plan_cache_mode = force_generic_plan;
PREPARE lags(int, bigint) AS SELECT count(*), sum(l) FROM (SELECT lag(id, $1, 0) OVER w AS l, row_number() OVER w AS r FROM win_t WINDOW w AS (ORDER BY p, id)) s WHERE r <= $2;
EXPLAIN (COSTS OFF) EXECUTE lags(1, 10);
EXECUTE lags(1, 10);
EXECUTE lags(-1, 10);
EXECUTE lags(20, 1000);
EXECUTE lags(NULL, 100);
EXECUTE lags(1, NULL);

DROP VIEW win_big;
DROP TABLE win_t, win_pages, win_few;
DROP AGGREGATE win_longest(text), win_note(anyelement), win_note_all(anyelement), win_shut(anyelement);
DROP FUNCTION win_longest, win_note, win_note_end, compare_windows, compare_errors, rows_before_error, explain_lines, compare_nodes, plan_lines, plan_nodes,
	query_rows, stock_rows, rows_differ;
