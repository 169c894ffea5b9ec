--
-- Aggregates with DISTINCT or ORDER BY over rows that GpuSort has sorted.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/compare.inc
\set ECHO all
SET gpusort.min_rows = 200;
SET enable_incremental_sort = off;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;

CREATE TABLE agg_t (id int, g int, k int, p text COLLATE "C", f float8, n numeric, d date, v varchar(9),
	u text COLLATE "C");
INSERT INTO agg_t
	SELECT i, nullif(i % 7, 3), nullif(i * 31 % 400, 5),
		CASE WHEN i % 11 = 0 THEN NULL ELSE md5((i % 300)::text) END,
		CASE i % 6 WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN '-0' WHEN 2 THEN '0' WHEN 3 THEN 'infinity' WHEN 4 THEN i::float8 END,
		CASE i % 5 WHEN 0 THEN 1.0 WHEN 1 THEN 1.00 WHEN 2 THEN 'NaN' WHEN 3 THEN i::numeric / 7 END,
		'2026-01-01'::date + i % 90, (i % 50)::text,
		CASE WHEN i % 2 = 0 THEN 'a' ELSE 'A' END || i % 77
	FROM generate_series(1, 3000) AS i;
CREATE TABLE agg_p (LIKE agg_t) PARTITION BY HASH (id);
CREATE TABLE agg_p0 PARTITION OF agg_p FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE agg_p1 PARTITION OF agg_p FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO agg_p SELECT * FROM agg_t;
ANALYZE agg_p;
CREATE COLLATION agg_ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE agg_null (id int, k int, p text);
INSERT INTO agg_null SELECT i, NULL, NULL FROM generate_series(1, 500) AS i;
CREATE TABLE agg_empty (id int, k int, p text);
CREATE TABLE agg_one (id int, k int, p text);
INSERT INTO agg_one VALUES (1, 2, 'x');
ANALYZE agg_t, agg_null, agg_empty, agg_one;

-- aggregates of users
CREATE FUNCTION agg_join(state text, a text, b text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT state || a || b || ';'
$$;
CREATE AGGREGATE agg_strict(text, text) (sfunc = agg_join, stype = text, initcond = '');
CREATE FUNCTION agg_join_null(state text, a text, b text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT state || coalesce(a, '-') || coalesce(b, '-') || ';'
$$;
CREATE AGGREGATE agg_null_too(text, text) (sfunc = agg_join_null, stype = text, initcond = '');

-- How often EXPLAIN (VERBOSE) shows DISTINCT or ORDER BY in an aggregate of a query: what the
-- aggregate sorts by itself.  From PostgreSQL 16 on EXPLAIN does not tell, and 0 is the answer.
CREATE FUNCTION sorts_inside(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	line text;
	above text := '';
	n int := 0;
BEGIN
	IF current_setting('server_version_num')::int >= 160000 THEN
		RETURN 0;
	END IF;
	FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || query LOOP
		IF line ~ '^ *Output: ' AND above ~ 'Aggregate' THEN
			n := n + (SELECT count(*) FROM regexp_matches(line, 'DISTINCT| ORDER BY ', 'g'));
		END IF;
		above := line;
	END LOOP;
	RETURN n;
END
$$;

-- The rows that a query returns, with gpusort off and forced on, and whether GpuSort took part.
-- left_inside: sorts that stay in aggregates on PostgreSQL 15; later versions may sort for some
CREATE FUNCTION compare_aggs(query text, left_inside int DEFAULT 0) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	stock text[] := stock_rows(query);
	ours text[];
	inside int;
BEGIN
	PERFORM set_config('gpusort.force', 'on', true);
	ours := query_rows(query);
	inside := sorts_inside(query);
	IF current_setting('server_version_num')::int < 160000 AND inside <> left_inside THEN
		RETURN format('%s sorts inside aggregates, should be %s', inside, left_inside);
	END IF;
	RETURN coalesce(rows_differ(ours, stock),
					format('%s rows', coalesce(cardinality(ours), 0)) ||
					CASE WHEN left_inside > 0 THEN ''
						WHEN plan_lines(query, '\(GpuSort\)') > 0 THEN ', by GpuSort' ELSE ', no GpuSort' END);
END
$$;

-- DISTINCT
SELECT compare_aggs('SELECT count(DISTINCT k) FROM agg_t');
SELECT compare_aggs('SELECT count(DISTINCT p) FROM agg_t');
SELECT compare_aggs('SELECT count(DISTINCT p COLLATE "C"), array_agg(DISTINCT p COLLATE "C"), max(DISTINCT p COLLATE "C") FROM agg_t');
SELECT compare_aggs('SELECT sum(DISTINCT k), avg(DISTINCT k), count(DISTINCT k), array_agg(DISTINCT k), json_agg(DISTINCT k) FROM agg_t');
SELECT compare_aggs('SELECT string_agg(DISTINCT p, '','') FROM agg_t');
SELECT compare_aggs('SELECT string_agg(DISTINCT p, '','' ORDER BY p DESC NULLS FIRST), count(*) OVER () FROM agg_t');
SELECT compare_aggs('SELECT array_agg(DISTINCT k ORDER BY k DESC), sum(DISTINCT k) FROM agg_t', 1);
SELECT compare_aggs('SELECT array_agg(DISTINCT k ORDER BY k DESC NULLS LAST) FROM agg_t');
SELECT compare_aggs('SELECT count(DISTINCT lower(p)), array_agg(DISTINCT lower(p)) FROM agg_t');
SELECT compare_aggs('SELECT count(DISTINCT v), array_agg(DISTINCT v) FROM agg_t');
SELECT compare_aggs('SELECT count(DISTINCT d) FROM agg_t WHERE id > 2990');
SELECT compare_aggs('SELECT count(DISTINCT k) FROM agg_t WHERE k = 7', 1);
-- by group
SELECT compare_aggs('SELECT g, count(DISTINCT k) FROM agg_t GROUP BY g ORDER BY g');
SELECT compare_aggs('SELECT g, count(DISTINCT p), array_agg(DISTINCT p) FROM agg_t GROUP BY g ORDER BY g');
SELECT compare_aggs('SELECT p, g, array_agg(DISTINCT k) FROM agg_t GROUP BY p, g ORDER BY p, g');
SELECT compare_aggs('SELECT p, count(DISTINCT p), string_agg(DISTINCT p, p) FROM agg_t GROUP BY p ORDER BY p', 1);
SELECT compare_aggs('SELECT p, count(DISTINCT p) FROM agg_t GROUP BY p ORDER BY p');
SELECT compare_aggs('SELECT count(DISTINCT lower(p) COLLATE "C"), max(DISTINCT v COLLATE "C") FROM agg_t', 1);
SELECT compare_aggs('SELECT p, agg_strict(DISTINCT p, p) FROM agg_t GROUP BY p ORDER BY p');
SELECT compare_aggs('SELECT id, count(DISTINCT k) FROM agg_t GROUP BY id ORDER BY id');
SELECT compare_aggs('SELECT 1, count(DISTINCT k) FROM agg_t GROUP BY 1');
SELECT compare_aggs('SELECT g, count(DISTINCT k) FROM agg_t WHERE g = 2 GROUP BY g');
SELECT compare_aggs('SELECT k, count(DISTINCT v) FROM agg_t GROUP BY k HAVING count(DISTINCT v) > 1 AND min(DISTINCT v) < ''4'' ORDER BY count(DISTINCT v) DESC, k');
SELECT compare_aggs('SELECT g + 1, lower(p), count(DISTINCT k + g) FROM agg_t GROUP BY g + 1, lower(p) ORDER BY 1, 2');
-- values that are equal and not the same are counted, and not passed on in place of each other
SELECT compare_aggs('SELECT count(DISTINCT n), count(DISTINCT f) FROM agg_t', 1);
SELECT compare_aggs('SELECT count(DISTINCT n) FROM agg_t');
SELECT compare_aggs('SELECT count(DISTINCT f) FROM agg_t');
SELECT compare_aggs('SELECT g, count(DISTINCT f) FROM agg_t GROUP BY g ORDER BY g');
SELECT compare_aggs('SELECT trim_scale(sum(DISTINCT n)), count(DISTINCT n) FROM agg_t WHERE n < 3', 1);
-- rows with repeated values are wanted by other aggregates
SELECT compare_aggs('SELECT g, count(*), count(DISTINCT p), sum(k), max(DISTINCT p), array_agg(DISTINCT p), count(n) FROM agg_t GROUP BY g ORDER BY g');
SELECT compare_aggs('SELECT k, g, count(*), agg_null_too(DISTINCT p, v), agg_strict(DISTINCT p, v) FROM agg_t GROUP BY k, g ORDER BY k, g');
SELECT compare_aggs('SELECT k, max(id), count(DISTINCT n), sum(id) FILTER (WHERE id < 100) FROM agg_t GROUP BY k HAVING count(DISTINCT n) > 1 ORDER BY k');
SELECT compare_aggs('SELECT k, max(id), sum(DISTINCT n) FROM agg_t GROUP BY k ORDER BY k', 1);
SELECT compare_aggs('SELECT p, max(id), count(DISTINCT p), count(DISTINCT k) FROM agg_t GROUP BY p ORDER BY p', 1);
SELECT compare_aggs('SELECT count(*), array_agg(k ORDER BY k), array_agg(DISTINCT k) FROM agg_t');
SELECT compare_aggs('SELECT count(*), array_agg(id ORDER BY k, id), array_agg(DISTINCT k), count(DISTINCT g) FROM agg_t', 1);
SELECT compare_aggs('SELECT count(*), count(DISTINCT upper(p)), string_agg(DISTINCT upper(p), ''-'') FROM agg_t');
SELECT compare_aggs('SELECT count(*), count(DISTINCT u COLLATE agg_ci), max(id) FROM agg_t GROUP BY k ORDER BY k', 1);
SELECT compare_aggs('SELECT count(*), count(DISTINCT 1), count(DISTINCT k) FROM agg_t', 1);
SELECT compare_aggs('SELECT x, s.* FROM generate_series(1, 4) AS x, LATERAL (SELECT g, count(DISTINCT k + x), sum(id) FROM agg_t WHERE id < 300 * x GROUP BY g ORDER BY g) s');
SELECT compare_aggs('SELECT x, (SELECT count(DISTINCT p) + count(*) FROM agg_t WHERE k < x) FROM generate_series(0, 30) AS x');
SELECT compare_aggs('SELECT count(*), count(DISTINCT v), count(DISTINCT v) FROM agg_p');
SELECT compare_aggs('SELECT count(DISTINCT k), count(*) FROM agg_t');
SELECT compare_aggs('SELECT count(DISTINCT k), count(DISTINCT p) FROM agg_t', 1);
SELECT compare_aggs('SELECT count(DISTINCT k), count(DISTINCT k) FILTER (WHERE id < 10) FROM agg_t', 1);
SELECT compare_aggs('SELECT count(DISTINCT k) FILTER (WHERE id < 10) FROM agg_t', 1);
SELECT compare_aggs('SELECT g, count(DISTINCT k) FROM agg_t GROUP BY g HAVING count(k) > 3 ORDER BY g');

-- ORDER BY
SELECT compare_aggs('SELECT string_agg(p, '','' ORDER BY p) FROM agg_t');
SELECT compare_aggs('SELECT array_agg(id ORDER BY p DESC, id), count(*), sum(k), count(DISTINCT k) FROM agg_t', 1);
SELECT compare_aggs('SELECT array_agg(id ORDER BY k DESC NULLS LAST, id), array_agg(p ORDER BY k DESC NULLS LAST, id), array_agg(k ORDER BY k DESC NULLS LAST) FROM agg_t');
SELECT compare_aggs('SELECT array_agg(k ORDER BY k), array_agg(k ORDER BY k DESC) FROM agg_t', 1);
SELECT compare_aggs('SELECT array_agg(p ORDER BY k NULLS FIRST, id DESC), array_agg(p ORDER BY id), array_agg(k ORDER BY id) FROM agg_t', 1);
SELECT compare_aggs('SELECT array_agg(id ORDER BY n, id), array_agg(id ORDER BY f, id) FROM agg_t', 1);
SELECT compare_aggs('SELECT array_agg(id ORDER BY lower(p), id) FILTER (WHERE k < 100) FROM agg_t', 1);
SELECT compare_aggs('SELECT array_agg(id ORDER BY p COLLATE "C", id) FILTER (WHERE k < 100), array_agg(1 / nullif(id, 4) ORDER BY p, id) FILTER (WHERE id <> 4) FROM agg_t');
SELECT compare_aggs('SELECT array_agg(1 / (id - 4) ORDER BY 1 / (id - 4)) FILTER (WHERE id <> 4) FROM agg_t', 1);
SELECT compare_aggs('SELECT json_agg(v ORDER BY v::int, id), json_object_agg(id, k ORDER BY k, id) FROM agg_t', 1);
SELECT compare_aggs('SELECT array_agg(id ORDER BY length(p), upper(p), id) FROM agg_t');
SELECT compare_aggs('SELECT string_agg(p, '','' ORDER BY 1::text, id) FROM agg_t');
SELECT compare_aggs('SELECT array_agg(a ORDER BY id) FROM (SELECT id, ARRAY[k, g] AS a FROM agg_t) s');
-- by group
SELECT compare_aggs('SELECT g, array_agg(id ORDER BY k, id) FROM agg_t GROUP BY g ORDER BY g');
SELECT compare_aggs('SELECT g, array_agg(id ORDER BY g, k, id), array_agg(k ORDER BY k) FROM agg_t GROUP BY g ORDER BY g');
SELECT compare_aggs('SELECT g, p, string_agg(v, p ORDER BY d DESC, id), min(k) FROM agg_t GROUP BY g, p HAVING count(*) > 2 ORDER BY g, p');
SELECT compare_aggs('SELECT v, array_agg(p ORDER BY p COLLATE "C" DESC, id) FROM agg_t GROUP BY v ORDER BY v');
SELECT compare_aggs('SELECT p COLLATE "C", array_agg(id ORDER BY p, id) FROM agg_t GROUP BY p COLLATE "C" ORDER BY 1');
SELECT compare_aggs('SELECT trim_scale(n), array_agg(id ORDER BY id) FROM agg_t GROUP BY n ORDER BY n');
SELECT compare_aggs('SELECT id, array_agg(k ORDER BY k) FROM agg_t GROUP BY id ORDER BY id');
-- columns that are equal by the query
SELECT compare_aggs('SELECT s.k, array_agg(t.id ORDER BY t.k, t.id), count(*) FROM agg_t s JOIN agg_t t ON s.k = t.k AND s.id = t.id GROUP BY s.k ORDER BY s.k', 1);
SELECT compare_aggs('SELECT s.k, count(DISTINCT t.v), string_agg(DISTINCT t.v, '','') FROM agg_t s LEFT JOIN agg_t t ON s.id = t.id AND s.k = t.k GROUP BY s.k, t.k ORDER BY s.k, 2, 3');

-- no rows, one, NULLs alone
SELECT compare_aggs(format('SELECT count(DISTINCT k), array_agg(DISTINCT k) FROM %s', t)),
	compare_aggs(format('SELECT string_agg(p, '','' ORDER BY k, id), array_agg(p ORDER BY k, id) FROM %s', t)),
	compare_aggs(format('SELECT k, sum(DISTINCT id), string_agg(p, p ORDER BY id) FROM %s GROUP BY k', t)),
	compare_aggs(format('SELECT k, sum(DISTINCT id), count(DISTINCT id) FROM %s GROUP BY k', t))
FROM unnest(ARRAY['agg_null', 'agg_empty', 'agg_one']) AS t;

-- the columns of a DISTINCT that come from a subquery's
SELECT compare_aggs('SELECT count(DISTINCT k), sum(DISTINCT k) FROM (SELECT DISTINCT k, p FROM agg_t) s');
SELECT compare_aggs('SELECT array_agg(id ORDER BY p, id) FROM (SELECT id, p FROM agg_t ORDER BY p, id OFFSET 0) s');
SELECT compare_aggs('SELECT array_agg(id ORDER BY p DESC, id) FROM (SELECT id, p FROM agg_t ORDER BY p, id OFFSET 0) s');

-- what PostgreSQL's own sorts do: ordered sets, volatile functions, GROUPING SETS, windows, order
-- that somebody may see, types that gpusort does not sort
SELECT compare_aggs('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p), mode() WITHIN GROUP (ORDER BY k) FROM agg_t');
SELECT compare_aggs('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p), array_agg(id ORDER BY p, id) FROM agg_t');
SELECT compare_aggs('SELECT count(DISTINCT k + (random() < 0)::int) FROM agg_t', 1);
SELECT compare_aggs('SELECT array_agg(k + (random() < 0)::int ORDER BY k) FROM agg_t', 1);
SELECT compare_aggs('SELECT array_agg(k ORDER BY k, random()) FROM agg_t', 1);
SELECT compare_aggs('SELECT g, v, count(DISTINCT k), array_agg(k ORDER BY k) FROM agg_t GROUP BY GROUPING SETS ((g), (v), ()) ORDER BY 1, 2, 3', 2);
SELECT compare_aggs('SELECT g, rank() OVER (ORDER BY g), sum(count(DISTINCT k)) OVER (ORDER BY g) FROM agg_t GROUP BY g ORDER BY g');
SELECT compare_aggs('SELECT count(DISTINCT to_tsvector(''simple'', k::text)) FROM agg_t', 1);
SELECT compare_aggs('SELECT count(DISTINCT (k, g)) FROM agg_t');
SELECT compare_aggs('SELECT count(DISTINCT (SELECT max(u.k) FROM agg_one u WHERE u.id = t.k)) FROM agg_t t', 1);
SELECT plan_lines('SELECT array_agg(id), array_agg(p ORDER BY p) FROM agg_t', 'Unique');

-- aggregates of users, with several columns
SELECT compare_aggs('SELECT agg_strict(DISTINCT p, v), agg_null_too(DISTINCT p, v) FROM agg_t');
SELECT compare_aggs('SELECT agg_strict(DISTINCT p, v ORDER BY v, p), agg_null_too(DISTINCT p, v ORDER BY v, p) FROM agg_t');
SELECT compare_aggs('SELECT g, agg_strict(DISTINCT p, ''x''), agg_null_too(DISTINCT p, ''x'') FROM agg_t GROUP BY g ORDER BY g');
SELECT compare_aggs('SELECT agg_strict(p, v ORDER BY k, id), agg_null_too(p, v ORDER BY k, id) FROM agg_t');
SELECT compare_aggs('SELECT g, agg_strict(p, v ORDER BY v DESC, id), agg_null_too(v, p ORDER BY v DESC, id) FROM agg_t GROUP BY g ORDER BY g');

-- loops, subqueries, views, CTEs, set operations
CREATE VIEW agg_v AS SELECT g, count(DISTINCT p) AS n, array_agg(id ORDER BY k, id) AS a FROM agg_t GROUP BY g;
CREATE VIEW agg_w AS SELECT g, count(DISTINCT p) AS n FROM agg_t GROUP BY g;
SELECT compare_aggs('SELECT * FROM agg_v ORDER BY g', 1);
SELECT compare_aggs('SELECT * FROM agg_w WHERE g > 1 ORDER BY g');
SELECT compare_aggs('SELECT x, s.* FROM generate_series(1, 4) AS x, LATERAL (SELECT count(DISTINCT k + x), array_agg(DISTINCT k + x) FROM agg_t WHERE id < 300 * x) s');
SELECT compare_aggs('SELECT x, (SELECT string_agg(p, ''-'' ORDER BY k, p, id) FROM agg_t WHERE k = x) FROM generate_series(0, 30) AS x', 1);
SELECT compare_aggs('WITH c AS MATERIALIZED (SELECT g, array_agg(DISTINCT k) AS a FROM agg_t GROUP BY g) SELECT a.g, a.a = b.a FROM c a JOIN c b ON a.g = b.g ORDER BY a.g');
SELECT compare_aggs('SELECT count(DISTINCT k) FROM agg_t UNION ALL SELECT count(DISTINCT p) FROM agg_t UNION ALL SELECT count(DISTINCT id) FROM agg_t ORDER BY 1');
SELECT compare_aggs('SELECT count(DISTINCT s.n) FROM (SELECT count(DISTINCT k) AS n FROM agg_t GROUP BY g) s');

-- partitions, also aggregated one by one
SELECT compare_aggs('SELECT count(DISTINCT p) FROM agg_p');
SET enable_partitionwise_aggregate = on;
SELECT compare_aggs('SELECT id, array_agg(k ORDER BY k) FROM agg_p GROUP BY id ORDER BY id', 2);
RESET enable_partitionwise_aggregate;

-- text of the database's collation, and of libc's and ICU's
SELECT compare_aggs('SELECT count(DISTINCT v COLLATE "C.utf8"), string_agg(DISTINCT v COLLATE "C.utf8", '','') FROM agg_t');
SELECT compare_aggs('SELECT string_agg(p, '','' ORDER BY p COLLATE "en-x-icu", id) FROM agg_t');
SELECT compare_aggs('SELECT k, string_agg(p, '','' ORDER BY p COLLATE "en-x-icu") FROM agg_t GROUP BY k ORDER BY k');
SELECT compare_aggs('SELECT count(DISTINCT upper(p) COLLATE agg_ci) FROM agg_t', 1);
SELECT compare_aggs('SELECT lower((string_agg(DISTINCT x COLLATE agg_ci, '',''))) FROM (SELECT CASE WHEN id % 2 = 0 THEN upper(p) ELSE p END AS x FROM agg_t) s', 1);
-- groups by an equality that the order within them does not know
SELECT compare_aggs('SELECT lower(x COLLATE agg_ci), array_agg(id ORDER BY x COLLATE "C", id)
	FROM (SELECT id, CASE WHEN id % 2 = 0 THEN upper(p) ELSE p END AS x FROM agg_t) s GROUP BY x COLLATE agg_ci ORDER BY x COLLATE agg_ci', 1);
SELECT compare_aggs('SELECT lower(p COLLATE agg_ci), array_agg(id ORDER BY p COLLATE "C", id) FROM agg_t GROUP BY p COLLATE agg_ci ORDER BY p COLLATE agg_ci');
SELECT compare_aggs('SELECT lower(u COLLATE agg_ci), array_agg(id ORDER BY u COLLATE "C", id), array_agg(id ORDER BY u, id) FROM agg_t GROUP BY u COLLATE agg_ci ORDER BY u COLLATE agg_ci');
SELECT compare_aggs('SELECT lower(u COLLATE agg_ci), array_agg(id ORDER BY u COLLATE agg_ci, id) FROM agg_t GROUP BY u COLLATE agg_ci ORDER BY u COLLATE agg_ci', 1);
SELECT compare_aggs('SELECT lower(u COLLATE agg_ci), count(DISTINCT u), array_agg(DISTINCT u) FROM agg_t GROUP BY u COLLATE agg_ci ORDER BY u COLLATE agg_ci');
SELECT compare_aggs('SELECT lower(u COLLATE agg_ci), array_agg(id ORDER BY u COLLATE agg_ci USING ~<~, id) FROM agg_t GROUP BY u COLLATE agg_ci ORDER BY u COLLATE agg_ci', 1);
SELECT compare_aggs('SELECT u, count(DISTINCT u COLLATE agg_ci) FROM agg_t GROUP BY u ORDER BY u', 1);
SELECT compare_aggs('SELECT k, count(DISTINCT u COLLATE agg_ci) FROM agg_t GROUP BY k ORDER BY k', 1);

-- plans: with workers and without, and what is not worth while
CREATE FUNCTION plan_shape(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	lines text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		lines := lines || ltrim(line, ' ->') || E'\n';
	END LOOP;
	-- PostgreSQL 16 and later drop no rows below Agg: DISTINCT of sorted rows is Agg's, which stays then
	lines := regexp_replace(lines, 'Custom Scan \(GpuGroup\)\nDistinct Key: .*?\n', '', 'g');
	lines := replace(lines, E'Custom Scan (GpuGroup)\nGroup Key', E'GroupAggregate\nGroup Key');
	RETURN QUERY SELECT unnest(string_to_array(rtrim(lines, E'\n'), E'\n'));
END
$$;
SET gpusort.force = on;
SELECT plan_shape('SELECT g, count(DISTINCT k) FROM agg_t GROUP BY g');
SET max_parallel_workers_per_gather = 0;
SELECT plan_shape('SELECT count(DISTINCT p COLLATE "C") FROM agg_t');
SELECT plan_shape('SELECT g, array_agg(id ORDER BY k DESC NULLS LAST) FROM agg_t GROUP BY g');
SET gpusort.force = off;
SET gpusort.cost_factor = 0.01;
SELECT plan_lines('SELECT count(DISTINCT p) FROM agg_t', 'GpuSort');
SELECT plan_lines('SELECT count(DISTINCT p) FROM agg_t WHERE id < 100', 'GpuSort');
SELECT plan_lines('SELECT g, count(DISTINCT k) FROM agg_t GROUP BY g', 'GpuSort');
SELECT plan_lines('SELECT count(DISTINCT k) FROM agg_t', 'GpuSort');
SET gpusort.cost_factor = 1000;
SELECT plan_lines('SELECT count(DISTINCT p) FROM agg_t', 'GpuSort');
RESET gpusort.cost_factor;
SET gpusort.enabled = off;
SELECT plan_lines('SELECT count(DISTINCT p) FROM agg_t', 'GpuSort');
SET gpusort.enabled = on;
RESET max_parallel_workers_per_gather;

-- cursors and prepared statements
SET gpusort.force = on;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT g, count(DISTINCT k), sum(DISTINCT k) FROM agg_t GROUP BY g ORDER BY g;
FETCH 3 FROM c;
MOVE ABSOLUTE 0 FROM c;
FETCH 1 FROM c;
COMMIT;
SET plan_cache_mode = force_generic_plan;
PREPARE counts(int) AS SELECT count(DISTINCT p), array_agg(DISTINCT left(p, $1)) IS NULL FROM agg_t WHERE id < $1;
EXECUTE counts(1000);
EXECUTE counts(1);
EXECUTE counts(30);
PREPARE ordered(int) AS SELECT string_agg(v, ',' ORDER BY d DESC, id) FROM agg_t WHERE id < $1;
EXECUTE ordered(10);
EXECUTE ordered(0);
EXECUTE ordered(5);

DROP VIEW agg_v, agg_w;
DROP TABLE agg_t, agg_null, agg_empty, agg_one, agg_p;
DROP COLLATION agg_ci;
DROP AGGREGATE agg_strict(text, text);
DROP AGGREGATE agg_null_too(text, text);
DROP FUNCTION agg_join, agg_join_null, compare_aggs, sorts_inside, plan_shape, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
