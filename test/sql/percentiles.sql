--
-- percentile_disc() and percentile_cont() over sorted rows: each query runs
-- with gpusort off and forced on, serially and in parallel.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/compare_modes.inc
\set ECHO all
SET gpusort.min_rows = 300;

CREATE TABLE percentiles_t (id int, g int, h text COLLATE "C", p text COLLATE "C", x float8, i int, n numeric, v interval, ts timestamp);
INSERT INTO percentiles_t
	SELECT i, i % 41, CASE WHEN i % 7 > 0 THEN 'h' || i % 7 END,
		   CASE WHEN i % 50 > 0 AND i % 41 > 0 THEN md5((i % 700)::text) END,
		   CASE i % 90 WHEN 0 THEN 'NaN' WHEN 2 THEN '0' WHEN 3 THEN '-Infinity' WHEN 4 THEN 'Infinity' WHEN 5 THEN NULL ELSE sin(i) * 1e6 END,
		   CASE WHEN i % 41 = 7 THEN NULL ELSE (i * 7919) % 313 END, (i % 500) / 7.0, make_interval(mins => (i * 37) % 5000, months => i % 3), '2026-01-01'::timestamp + make_interval(secs => i % 977)
	FROM generate_series(1, 6000) AS i;
-- groups of one row and of NULLs only, at the beginning and at the end
INSERT INTO percentiles_t VALUES (7001, -1, NULL, 'a', 1, 1, 1, '1 day', NULL), (7002, 99, 'z', NULL, NULL, NULL, NULL, NULL, NULL);
ANALYZE percentiles_t;

CREATE FUNCTION count_percentiles(query text) RETURNS text LANGUAGE sql AS $$
	SELECT plan_lines(query, '\(GpuPercentile\)') || ' GpuPercentile';
$$;

CREATE FUNCTION compare(query text) RETURNS text LANGUAGE sql AS $$
	SELECT compare_modes(query, 'count_percentiles', true);
$$;

-- each function, each kind of value
SELECT compare('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p) FROM percentiles_t');
SELECT compare(format('SELECT g, percentile_disc(%s) WITHIN GROUP (ORDER BY %s) FROM percentiles_t GROUP BY g', f, c))
	FROM unnest(ARRAY['p', 'x DESC', 'i NULLS FIRST', 'n', 'v', 'ts']) AS c, unnest(ARRAY['0.37']) AS f;
SELECT compare(format('SELECT h, percentile_cont(%s) WITHIN GROUP (ORDER BY %s) FROM percentiles_t GROUP BY h', f, c))
	FROM unnest(ARRAY['x', 'i DESC', 'v NULLS FIRST']) AS c, unnest(ARRAY['0', '0.123', '1']) AS f;
-- values of some rows, none or all of a group; other rows' are NULL
SELECT compare(format('SELECT g, %s FROM percentiles_t GROUP BY g', format(f, c)))
	FROM unnest(ARRAY['percentile_disc(0.3) WITHIN GROUP (ORDER BY CASE WHEN %s THEN p END DESC)',
		'percentile_cont(ARRAY[0.1, NULL, 0.9]) WITHIN GROUP (ORDER BY CASE WHEN %s THEN x END NULLS FIRST)']) AS f,
	unnest(ARRAY['id % 3 > 0', 'h IS NULL', 'x > 100', 'p IS NULL OR i % 3 = 1', 'g < -1', 'g = 2 AND id > 70']) AS c;
SELECT compare('SELECT t.g, (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN s.id > t.g * 100 THEN p END) FROM percentiles_t s) FROM (SELECT DISTINCT g FROM percentiles_t WHERE g < 4) t');
SELECT percentile_disc(2) WITHIN GROUP (ORDER BY CASE WHEN g < -1 THEN p END) FROM percentiles_t;
-- arrays of fractions: NULLs, repeated ones, none, two dimensions
SELECT compare(format('SELECT g, percentile_disc(%L::float8[]) WITHIN GROUP (ORDER BY p), percentile_disc(%L::float8[]) WITHIN GROUP (ORDER BY p DESC) FROM percentiles_t GROUP BY g', a, a))
	FROM unnest(ARRAY['{0.5,NULL,0.1,0.5,1,0}', '{}', '{NULL}', '{{0.2,0.8},{0.4,0.6}}']) AS a;
SELECT compare(format('SELECT g, percentile_disc(%L::float8[]) WITHIN GROUP (ORDER BY p) FROM percentiles_t GROUP BY g', a))
	FROM unnest(ARRAY['{0.5,NULL,0.1,0.5,1,0}', '{}', '{NULL}', '[3:4][1:2]={{0.2,0.8},{0.4,0.6}}']) AS a;
SELECT compare('SELECT percentile_cont(ARRAY[0.25, 0.5, NULL, 0.75, 0.999]) WITHIN GROUP (ORDER BY x) FROM percentiles_t');
SELECT compare('SELECT h, percentile_cont(ARRAY[0.25, 0.5]) WITHIN GROUP (ORDER BY v) FROM percentiles_t GROUP BY h');
-- several of them, and other aggregates; none of these is lost or counted twice
SELECT compare('SELECT g, h, percentile_cont(0.5) WITHIN GROUP (ORDER BY i), count(*), percentile_disc(0.9) WITHIN GROUP (ORDER BY i::float8), sum(i), max(p) FROM percentiles_t GROUP BY g, h');
SELECT compare('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY i), count(*), percentile_cont(0.9) WITHIN GROUP (ORDER BY i), sum(i) FROM percentiles_t');
SELECT compare('SELECT count(*), percentile_disc(0.2) WITHIN GROUP (ORDER BY p), min(i) FILTER (WHERE g > 5), percentile_disc(ARRAY[0.1]) WITHIN GROUP (ORDER BY p) FROM percentiles_t');
SELECT compare('SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY p) || count(*), percentile_disc(0.2) WITHIN GROUP (ORDER BY p) FROM percentiles_t GROUP BY g HAVING percentile_disc(0.2) WITHIN GROUP (ORDER BY p) > ''4'' AND count(*) > 3');
-- fractions that are not constants
SELECT compare('SELECT g, percentile_cont(g / 100.0) WITHIN GROUP (ORDER BY x) FROM percentiles_t WHERE g BETWEEN 0 AND 50 GROUP BY g');
SELECT compare('SELECT g, percentile_disc(NULLIF(g, 3) / 100.0) WITHIN GROUP (ORDER BY x), count(*) FROM percentiles_t WHERE g BETWEEN 0 AND 50 GROUP BY g');
SELECT compare('SELECT percentile_disc(NULL::float8) WITHIN GROUP (ORDER BY x), percentile_cont(NULL::float8[]) WITHIN GROUP (ORDER BY x) FROM percentiles_t');
-- expressions, no rows, NULLs only
SELECT compare('SELECT lower(h), percentile_disc(0.3) WITHIN GROUP (ORDER BY upper(p)), count(p) FROM percentiles_t GROUP BY lower(h)');
SELECT compare('SELECT percentile_disc(0.3) WITHIN GROUP (ORDER BY p), percentile_disc(0.4) WITHIN GROUP (ORDER BY p), count(*) FROM percentiles_t WHERE false');
SELECT compare('SELECT percentile_disc(0.3) WITHIN GROUP (ORDER BY p), percentile_disc(ARRAY[2]) WITHIN GROUP (ORDER BY p) FROM percentiles_t WHERE p IS NULL');
SELECT compare('SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY p) FROM percentiles_t WHERE id < 0 GROUP BY g');
-- rescans
SELECT compare('SELECT a.g, b.* FROM (SELECT DISTINCT g FROM percentiles_t WHERE g < 6) a, LATERAL (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x), count(*) FROM percentiles_t t WHERE t.g > a.g) b');
SELECT compare('SELECT a.g, (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p) FROM percentiles_t t WHERE t.g > a.g + 38) FROM (SELECT DISTINCT g FROM percentiles_t) a');
SELECT compare('SELECT a.g, b.* FROM (VALUES (0.1), (0.5)) a(g), LATERAL (SELECT percentile_cont(a.g) WITHIN GROUP (ORDER BY x) FROM percentiles_t) b');
-- where the functions stay in the aggregate
SELECT compare('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p), percentile_disc(0.5) WITHIN GROUP (ORDER BY x) FROM percentiles_t');
SELECT compare('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p), array_agg(id ORDER BY id) FROM percentiles_t');
SELECT compare('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p) FILTER (WHERE random() < 2) FROM percentiles_t');
SELECT compare('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p) FILTER (WHERE g > 3), percentile_disc(0.5) WITHIN GROUP (ORDER BY p) FROM percentiles_t');
SELECT compare('SELECT h, mode() WITHIN GROUP (ORDER BY p), max(p) FROM percentiles_t GROUP BY h HAVING count(*) > 1');
SELECT compare('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p), mode() WITHIN GROUP (ORDER BY p) FROM percentiles_t');
SELECT compare('SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY p) FROM percentiles_t GROUP BY ROLLUP (g)');
SELECT compare('SELECT rank(''7'') WITHIN GROUP (ORDER BY p) FROM percentiles_t');
SELECT compare('SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY g) FROM percentiles_t GROUP BY g');

SET gpusort.force = on;
SET max_parallel_workers_per_gather = 0;
-- the plans
SELECT plan_nodes('SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY i), count(*) FROM percentiles_t GROUP BY g', 'Functions');
SELECT plan_nodes('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p) FROM percentiles_t', 'Functions');
-- errors
SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY x) FROM percentiles_t;
SELECT percentile_disc('NaN'::float8) WITHIN GROUP (ORDER BY p) FROM percentiles_t WHERE false;
SELECT percentile_disc(ARRAY[0.1, -0.1]) WITHIN GROUP (ORDER BY p) FROM percentiles_t;
SELECT percentile_disc(ARRAY[0.1, -0.1]) WITHIN GROUP (ORDER BY p) FROM percentiles_t WHERE false;
CREATE ROLE percentiles_user;
GRANT SELECT ON percentiles_t TO percentiles_user;
-- the right to execute the function is asked for, the right to compare values is not
BEGIN;
SET LOCAL gpusort.force = on;
PREPARE cached AS SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p) FROM percentiles_t;
EXECUTE cached;
REVOKE EXECUTE ON FUNCTION pg_catalog.texteq(text, text) FROM PUBLIC;
SET LOCAL ROLE percentiles_user;
EXECUTE cached;
ROLLBACK;
DEALLOCATE cached;
REVOKE EXECUTE ON FUNCTION pg_catalog.percentile_disc(float8, anyelement) FROM PUBLIC;
SET ROLE percentiles_user;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p) FROM percentiles_t;
RESET ROLE;
GRANT EXECUTE ON FUNCTION pg_catalog.percentile_disc(float8, anyelement) TO PUBLIC;
DROP OWNED BY percentiles_user;
DROP ROLE percentiles_user;
-- Without groups a few of the rows are read, wherever they are: pages of many rows and of few; NULLs at
-- both ends, one of them, but one; keys that were cut off; PostgreSQL's own sort
CREATE TABLE percentiles_places (id int, p text COLLATE "C", x float8, cut text COLLATE "C");
INSERT INTO percentiles_places
	SELECT i, CASE WHEN i % 10 > 0 THEN left(md5(i::text), 3 + i % 20) || repeat('-', CASE WHEN md5(i::text) > 'e' THEN 500 ELSE 0 END) END,
		   hashint4(i), CASE WHEN i < 200 THEN repeat('x', 9000) || i % 30 ELSE md5(i::text) END
	FROM generate_series(1, 30000) AS i;
ANALYZE percentiles_places;
CREATE FUNCTION rows_read(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON, COSTS OFF, TIMING OFF) ' || query INTO plan;
	RETURN (SELECT CASE WHEN sum((node ->> 'Actual Rows')::numeric) < 100 THEN 'few' ELSE 'many' END
			FROM jsonb_path_query(plan, 'strict $.** ? (@."Custom Plan Provider" == "GpuSort")') AS node);
END
$$;
SELECT k, compare(format('SELECT percentile_disc(ARRAY[0.5, 0, 0.001, 1, 0.999, 0.5001, 0.2]) WITHIN GROUP (ORDER BY %s), count(*) FROM percentiles_places WHERE %s', k, w)), w
	FROM unnest(ARRAY['p', 'p DESC', 'p NULLS FIRST', 'x', 'cut']) AS k, unnest(ARRAY['true', 'id % 7 = 0', 'p IS NULL', 'id <= 10', 'id IN (10, 11)']) AS w;
SELECT n, compare(format('SELECT percentile_cont(ARRAY[0.5, 0, 1]) WITHIN GROUP (ORDER BY nullif(x, %s) %s) FROM percentiles_places',
		CASE n WHEN 1 THEN hashint4(9)::text ELSE 'x' END, o))
	FROM unnest(ARRAY[1, 2]) AS n, unnest(ARRAY['', 'DESC', 'NULLS FIRST']) AS o;
SELECT compare(format('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY CASE WHEN id = 77 THEN x END %s) FROM percentiles_places', o))
	FROM unnest(ARRAY['', 'DESC', 'NULLS FIRST']) AS o;
SELECT compare('SELECT t.f, (SELECT percentile_disc(t.f) WITHIN GROUP (ORDER BY p) FROM percentiles_places) FROM (VALUES (0.1), (NULL), (0.9), (0.3)) AS t (f)');
SELECT rows_read('SELECT percentile_disc(ARRAY[0.5, 0, 0.999]) WITHIN GROUP (ORDER BY p) FROM percentiles_places') AS wanted,
	   rows_read('SELECT percentile_disc(0.1) WITHIN GROUP (ORDER BY p), count(*) FROM percentiles_places') AS counted;

-- by cost: text is sorted, few rows and plain numbers are not
-- a sort whose values were found holds no memory, unless the rows may be wanted again
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY i) FROM percentiles_t
	UNION ALL SELECT percentile_disc(0.2) WITHIN GROUP (ORDER BY i) FROM percentiles_t GROUP BY g UNION ALL SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY i) FROM percentiles_t GROUP BY h HAVING count(*) > 1;
MOVE ALL FROM c;
SELECT count(*) FROM gpusort_activity WHERE phase <> 'closing';
COMMIT;
SET enable_material = off;
SELECT x, count(*), sum(p) FROM generate_series(1, 3) AS x LEFT JOIN (SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY id) AS p FROM percentiles_t GROUP BY g) AS s ON s.p > x GROUP BY x ORDER BY x;
RESET enable_material;
RESET gpusort.force;
SET gpusort.min_rows = 20000;
CREATE TABLE percentiles_many AS SELECT i AS id, i % 10 AS g, md5(i::text) COLLATE "C" AS p FROM generate_series(1, 50000) AS i;
ANALYZE percentiles_many;
SELECT plan_lines('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p) FROM percentiles_many', 'GpuPercentile') AS text,
	   plan_lines('SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY p) FROM percentiles_many GROUP BY g', 'GpuPercentile') AS grouped,
	   plan_lines('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p) FROM percentiles_t', 'GpuPercentile') AS few;

DROP TABLE percentiles_t, percentiles_many, percentiles_places;
DROP FUNCTION compare, count_percentiles, rows_read, compare_modes, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
