--
-- Aggregates that GpuGroup computes, in the place of GroupAggregate: against PostgreSQL's.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/compare_nodes.inc
\i sql/explain_lines.inc
\set ECHO all
SET gpusort.min_rows = 200;
SET enable_hashagg = off;
SET enable_incremental_sort = off;
SET TimeZone = 'UTC';

CREATE TABLE ga_t (id int, g int, s smallint, b bigint, p text COLLATE "C", v varchar(20) COLLATE "C", w bytea, d date,
	ts timestamp, tz timestamptz, f float8);
INSERT INTO ga_t
	SELECT i, nullif(i % 7, 3), nullif(hashint4(i) % 30000, 7), nullif(hashint4(i) % 50, 0)::bigint << 40,
		CASE WHEN i % 11 = 0 THEN NULL WHEN i % 13 = 0 THEN '' ELSE md5((i % 300)::text) END, 'v' || i % 90,
		CASE WHEN i % 5 = 0 THEN NULL ELSE decode(md5(i::text), 'hex') END,
		CASE i % 70 WHEN 1 THEN 'infinity'::date WHEN 2 THEN '-infinity' ELSE '2026-01-01'::date + hashint4(i) % 9000 END,
		CASE i % 70 WHEN 1 THEN 'infinity'::timestamp WHEN 2 THEN NULL ELSE '2026-01-01'::timestamp + hashint4(i) * interval '1 s' END,
		CASE i % 70 WHEN 1 THEN NULL WHEN 2 THEN '-infinity' ELSE '2026-01-01'::timestamptz - hashint4(i) * interval '1 s' END,
		CASE i % 4 WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN '-0' WHEN 2 THEN '0' END
	FROM generate_series(1, 3000) AS i;
CREATE TABLE ga_null (LIKE ga_t);
INSERT INTO ga_null (id, g) SELECT i, i % 3 FROM generate_series(1, 500) AS i;
CREATE TABLE ga_empty (LIKE ga_t);
CREATE TABLE ga_one (LIKE ga_t);
INSERT INTO ga_one SELECT * FROM ga_t WHERE id = 17;
CREATE TABLE ga_equal (LIKE ga_t);
INSERT INTO ga_equal SELECT t.* FROM ga_t AS t, generate_series(1, 700) WHERE id = 17;
-- rows that do not fit into chunks, and values out of line, some of them compressed
CREATE TABLE ga_big (g int, n int, p text COLLATE "C", w bytea);
ALTER TABLE ga_big ALTER p SET STORAGE EXTERNAL;
INSERT INTO ga_big
	SELECT i % 5, i, CASE WHEN i % 100 = 7 THEN repeat(md5(i::text), 10000) ELSE md5(i::text) END,
		CASE WHEN i % 90 = 4 THEN decode(repeat(md5(i::text), 3000), 'hex') ELSE decode(md5(i::text), 'hex') END
	FROM generate_series(1, 1000) AS i;
ANALYZE ga_t, ga_null, ga_empty, ga_one, ga_equal, ga_big;
CREATE COLLATION ga_ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);

CREATE FUNCTION compare_groups(query text) RETURNS text LANGUAGE sql AS $$
	SELECT compare_nodes(query, 'GpuGroup');
$$;

-- all that are computed without a call, over rows of all kinds
SELECT t, compare_groups(format('SELECT g, count(*), count(p), count(s), sum(s), sum(id), min(s), max(s), min(id), max(id), min(b), max(b), min(d), max(d), min(ts), max(ts), min(tz), max(tz), avg(s), avg(id), sum(f), string_agg(p, '', '' ORDER BY p, id), string_agg(v, NULL ORDER BY p, id), string_agg(w, ''\x00ff'' ORDER BY p, id), string_agg(p, '''' ORDER BY p, id) FROM %I GROUP BY g', t))
	FROM unnest(ARRAY['ga_t', 'ga_null', 'ga_empty', 'ga_one', 'ga_equal']) AS t;
SELECT t, compare_groups(format('SELECT count(*), count(p), sum(s), sum(id), min(b), max(d), string_agg(p, '', '' ORDER BY p) FROM %I', t))
	FROM unnest(ARRAY['ga_t', 'ga_null', 'ga_empty', 'ga_one', 'ga_equal']) AS t;
SELECT compare_groups('SELECT g, string_agg(p, '','' ORDER BY p), string_agg(w, ''--'' ORDER BY p), count(*) FROM ga_big GROUP BY g');
SELECT compare_groups('SELECT p, string_agg(w, '''' ORDER BY n), sum(n) FROM ga_big GROUP BY p');
SET work_mem = '64kB';
SELECT compare_groups('SELECT g, string_agg(p, '','' ORDER BY p) FROM ga_big GROUP BY g');
RESET work_mem;

-- groups by one key, by some of the sort's keys, and by all
SELECT compare_groups('SELECT p, sum(id), count(*) FROM ga_t GROUP BY p');
SELECT compare_groups('SELECT p, g, sum(id), max(b) FROM ga_t GROUP BY p, g');
SELECT compare_groups('SELECT id, sum(s), string_agg(p, ''x'') FROM ga_t GROUP BY id');
-- by a column under another type or collation
SELECT k, compare_groups(format('SELECT %s, count(*), sum(id) FROM ga_t GROUP BY %s', k, k))
	FROM unnest(ARRAY['v::text', 'v, v::text', 'v::text COLLATE "en_US.utf8", v', 'v::text COLLATE "C", v::text COLLATE "en_US.utf8"']) AS k;
SELECT compare_groups('SELECT sum(id) FROM ga_t GROUP BY v ORDER BY v DESC');
SELECT compare_groups('SELECT f + 0, sum(id) FROM ga_t GROUP BY f');
SELECT compare_groups('SELECT v, sum(x ORDER BY id), avg(id) + 1, avg(s) FROM (SELECT *, CASE WHEN id % 700 = 3 THEN ''inf'' WHEN id % 1100 = 5 THEN ''-inf'' WHEN v = ''v7'' THEN ''NaN'' ELSE id / 7::float8 END AS x FROM ga_t OFFSET 0) t GROUP BY v');
SELECT compare_groups('SELECT p COLLATE ga_ci, sum(id) FROM (SELECT id, CASE WHEN id % 2 = 0 THEN upper(p) ELSE p END COLLATE "C" AS p FROM ga_t) t GROUP BY p COLLATE ga_ci ORDER BY sum(id), min(id)');
-- sorted by bytes, grouped by another equality
SELECT compare_groups('SELECT count(*), sum(id), max(s) FROM (SELECT *, CASE WHEN id % 2 = 0 THEN ''x'' ELSE ''X'' END COLLATE ga_ci AS x FROM ga_t) t GROUP BY x ORDER BY x USING ~<~');
SELECT compare_groups('SELECT md5(string_agg(v, '','' ORDER BY id)), md5(array_agg(id ORDER BY id)::text) FROM (SELECT *, CASE WHEN id % 2 = 0 THEN ''x'' ELSE ''X'' END COLLATE ga_ci AS x FROM ga_t) t GROUP BY x ORDER BY x USING ~<~');
SELECT compare_groups('SELECT count(*) FROM (SELECT DISTINCT CASE WHEN id % 2 = 0 THEN ''x'' ELSE ''X'' END COLLATE ga_ci AS x FROM ga_t ORDER BY x USING ~<~) t');
SELECT compare_groups('SELECT id FROM (SELECT id, rank() OVER (ORDER BY x USING ~<~) AS r FROM (SELECT *, CASE WHEN id % 2 = 0 THEN ''x'' ELSE ''X'' END COLLATE ga_ci AS x FROM ga_t) t) t WHERE r <= 1 ORDER BY id');
SELECT compare_groups('SELECT p COLLATE "en-x-icu", sum(id), string_agg(v, '','' ORDER BY v) FROM ga_t GROUP BY p COLLATE "en-x-icu"');
SELECT compare_groups('SELECT g IS NULL, v, string_agg(p, '';'' ORDER BY p DESC NULLS LAST, id) FROM ga_t GROUP BY 1, 2');
SELECT compare_groups('SELECT DISTINCT ON (g) g, v, sum(id) FROM ga_t GROUP BY g, v ORDER BY g, v');

-- expressions of aggregates, HAVING, FILTER, casts
SELECT compare_groups('SELECT g + 1, sum(id) / count(*) + min(id), length(string_agg(v, ''+'' ORDER BY v)), count(*) FROM ga_t GROUP BY g');
SELECT compare_groups('SELECT v FROM ga_t GROUP BY v HAVING sum(id) % 2 = 0 AND min(v) < ''v5''');
SELECT compare_groups('SELECT v FROM ga_t GROUP BY v HAVING sum(id) % 2 = 0 AND count(*) > 5');
SELECT compare_groups('SELECT v, sum(id) FROM ga_t GROUP BY v HAVING false');
SELECT compare_groups('SELECT g, sum(id) FILTER (WHERE id % 3 = 0), count(*) FILTER (WHERE p > ''8''), string_agg(p, '','' ORDER BY p) FILTER (WHERE length(v) = 2), max(s) FILTER (WHERE false) FROM ga_t GROUP BY g');
-- DISTINCT of sorted rows; on 15 a GpuGroup drops equal rows, if all aggregates have the same DISTINCT
SELECT compare_groups('SELECT g, count(*), count(DISTINCT p), sum(id) FROM ga_t GROUP BY g');
SELECT left(compare_groups('SELECT g, count(DISTINCT p) FROM ga_t GROUP BY g'), 7);
SELECT compare_groups('SELECT g, v, count(DISTINCT s), sum(DISTINCT s), max(b) FROM ga_t GROUP BY g, v');
SELECT compare_groups('SELECT g, string_agg(DISTINCT v, p ORDER BY v, p), count(id) FROM ga_t GROUP BY g');
SELECT left(compare_groups('SELECT g, count(DISTINCT s) FILTER (WHERE id % 2 = 0), array_agg(DISTINCT s) FROM ga_t GROUP BY g'), 7);
SELECT compare_groups('SELECT sum(n), max(m) FROM (SELECT count(*)::int AS n, max(id) AS m FROM ga_t GROUP BY v) t');
SELECT compare_groups('SELECT g, s FROM (SELECT g, sum(id) AS s, row_number() OVER (ORDER BY g) AS r FROM ga_t GROUP BY g) t WHERE r > 2');

-- all others: states by value and by reference, that are NULL at first or not, of type internal, or expanded; several of
-- one argument; arguments that are expressions
SELECT t, compare_groups(format('SELECT g, sum(b), avg(b), avg(f), stddev(id), var_pop(id::numeric), count(*), max(id), bool_and(id > 3), bit_or(s), min(p), max(p), max(w::text), corr(f, id), sum(id + 1), sum(s * interval ''1 s''), string_agg(p, v ORDER BY p, id), array_agg(p ORDER BY p, id), array_agg(ARRAY[p, v] ORDER BY p, id), json_agg(v ORDER BY p, id), jsonb_object_agg(id, v ORDER BY p, id) FROM %I GROUP BY g', t))
	FROM unnest(ARRAY['ga_t', 'ga_null', 'ga_empty', 'ga_one', 'ga_equal']) AS t;
SELECT t, compare_groups(format('SELECT sum(b), avg(b), max(p), min(v), array_agg(p ORDER BY p), every(id > 3), count(*) FROM %I', t))
	FROM unnest(ARRAY['ga_t', 'ga_null', 'ga_empty', 'ga_one', 'ga_equal']) AS t;
SELECT compare_groups('SELECT id, sum(b), max(p), array_agg(v) FROM ga_t GROUP BY id');
SELECT compare_groups('SELECT g, md5(max(p)), md5(array_agg(p ORDER BY p, n)::text), length(min(w::text)) FROM ga_big GROUP BY g');
SELECT compare_groups('SELECT g, sum(b) FILTER (WHERE id % 3 = 0), count(*) FILTER (WHERE random() < 2), max(p) FILTER (WHERE false), sum(random()) >= 0 FROM ga_t GROUP BY g');
SELECT compare_groups('SELECT g, s FROM (SELECT g, sum(sum(b)) OVER (ORDER BY g) AS s FROM ga_t GROUP BY g) t WHERE s > 2');
SELECT compare_groups('SELECT v, max(r) FROM (SELECT v, lag(p) OVER (PARTITION BY v ORDER BY id) AS r FROM ga_t) t GROUP BY v');

-- aggregates of users: strict or not, polymorphic, variadic, with arguments for the final function only
CREATE FUNCTION ga_join(state text, a text, b text) RETURNS text LANGUAGE sql STRICT AS 'SELECT state || a || b || '';''';
CREATE FUNCTION ga_latest(state text, a text) RETURNS text LANGUAGE sql STRICT AS 'SELECT nullif(a, ''v7'')';
CREATE FUNCTION ga_any(state anyelement, VARIADIC a anyarray) RETURNS anyelement LANGUAGE sql AS 'SELECT coalesce(a[2], state)';
CREATE FUNCTION ga_type(state anyarray, a anyelement) RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN format(''%s of %s, %s'', pg_typeof(a), pg_typeof(state), state); END';
CREATE FUNCTION ga_push(state anyarray, a anyelement) RETURNS anyarray LANGUAGE sql AS 'SELECT state || a';
CREATE AGGREGATE ga_strict(text, text) (sfunc = ga_join, stype = text, initcond = '');
CREATE AGGREGATE ga_strict_null(text) (sfunc = ga_latest, stype = text);
CREATE AGGREGATE ga_variadic(VARIADIC anyarray) (sfunc = ga_any, stype = anyelement);
CREATE AGGREGATE ga_append(anyelement) (sfunc = ga_push, stype = anyarray, initcond = '{}', finalfunc = ga_type, finalfunc_extra);
CREATE AGGREGATE ga_expanded(anycompatible) (sfunc = array_append, stype = anycompatiblearray);
SELECT t, compare_groups(format('SELECT g, md5(ga_strict(p, v ORDER BY id)), ga_strict_null(v ORDER BY id), ga_variadic(v, p::varchar ORDER BY id), md5(ga_append(v ORDER BY id)), md5(ga_expanded(id ORDER BY id)::text), ga_expanded(s ORDER BY id) = array_agg(s ORDER BY id) FROM %I GROUP BY g', t))
	FROM unnest(ARRAY['ga_t', 'ga_null', 'ga_empty', 'ga_one', 'ga_equal']) AS t;
DROP AGGREGATE ga_append(anyelement), ga_expanded(anycompatible), ga_variadic(VARIADIC anyarray);

-- what functions ask about the aggregate that calls them (test/modules/agg_calls.c)
CREATE FUNCTION agg_calls_step(internal, int) RETURNS internal LANGUAGE c AS 'agg_calls';
CREATE FUNCTION agg_calls_text(internal) RETURNS text LANGUAGE c AS 'agg_calls';
CREATE FUNCTION agg_calls_rows(internal) RETURNS bigint LANGUAGE c AS 'agg_calls';
CREATE FUNCTION agg_calls_ended() RETURNS bigint LANGUAGE c AS 'agg_calls';
CREATE AGGREGATE agg_calls(int) (sfunc = agg_calls_step, stype = internal, finalfunc = agg_calls_text);
CREATE AGGREGATE agg_calls_too(int) (sfunc = agg_calls_step, stype = internal, finalfunc = agg_calls_rows);
SELECT compare_groups('SELECT g, agg_calls(id), max(id), agg_calls(s) FROM ga_t GROUP BY g');
SELECT compare_groups('SELECT g, max(id), agg_calls(id), count(*), agg_calls_too(id), agg_calls(s) FROM ga_t GROUP BY g');
SELECT compare_groups('SELECT agg_calls(id ORDER BY p), agg_calls_too(id ORDER BY p) FROM ga_empty');
SET gpusort.force = on;
SELECT agg_calls_ended() > 0;
SELECT v, agg_calls(id) FROM ga_t GROUP BY v LIMIT 2;
SELECT agg_calls_ended();
SELECT count(a) FROM (SELECT g, agg_calls(id) AS a FROM ga_t GROUP BY g) t;
SELECT agg_calls_ended();
SELECT id, agg_calls(id) OVER (ORDER BY id) FROM ga_t LIMIT 2;
RESET gpusort.force;
DROP AGGREGATE agg_calls(int), agg_calls_too(int);
DROP FUNCTION agg_calls_step, agg_calls_text, agg_calls_rows, agg_calls_ended, ga_any, ga_type, ga_push;

-- what stays with PostgreSQL's Agg: ordered sets, aggregates that sort, grouping sets, subplans
SELECT compare_groups('SELECT g, count(*), rank(5) WITHIN GROUP (ORDER BY id) FROM ga_t GROUP BY g');
SELECT compare_groups('SELECT g, string_agg(p, '','' ORDER BY p), string_agg(p, '','' ORDER BY p DESC) FROM ga_t GROUP BY g');
SELECT compare_groups('SELECT g, p, sum(id), grouping(g) FROM ga_t GROUP BY GROUPING SETS ((g, p), (g), ())');
SELECT compare_groups('SELECT g, grouping(g), sum(id) FROM ga_t GROUP BY g');
SELECT compare_groups('SELECT g, sum(id), (SELECT count(*) FROM ga_one WHERE ga_one.id < max(ga_t.id)) FROM ga_t GROUP BY g');
SELECT compare_groups('SELECT g, max(id + (SELECT count(*) FROM ga_one)) FROM ga_t GROUP BY g');
SELECT compare_groups('SELECT g, max(id + (SELECT count(*) FROM ga_one WHERE ga_one.g = ga_t.g)) FROM ga_t GROUP BY g');

-- errors, and where they come
SET gpusort.force = on;
SELECT g, 1 / (sum(id) - sum(id)) FROM ga_t GROUP BY g;
SELECT g, sum(id) FILTER (WHERE 1 / (id - 2000) >= 0) FROM ga_t GROUP BY g;
SELECT g, sum(x) FROM (SELECT g, id * 1e305::float8 AS x FROM ga_t OFFSET 0) t GROUP BY g;
SELECT g, avg(1 / (id - 2000)) FROM ga_t GROUP BY g;

-- plans
EXPLAIN (COSTS OFF) SELECT g, string_agg(p, ',' ORDER BY p), count(*) FROM ga_t GROUP BY g HAVING count(*) > 3;
EXPLAIN (COSTS OFF) SELECT count(*), g % 2, v FROM ga_t GROUP BY g % 2, v ORDER BY 2, 3 DESC;
SELECT explain_lines('SELECT v, sum(id) FROM ga_t GROUP BY v HAVING count(*) > 33', 'GpuGroup|GpuSort|Removed|Rows Sorted|Group');
-- all rows that were read are counted, also where not all are
SELECT explain_lines('SELECT v, sum(id) FROM ga_t GROUP BY v LIMIT 2', 'GpuGroup|GpuSort|Rows Sorted|Limit');
SELECT explain_lines('SELECT id, sum(id) OVER (ORDER BY p) FROM ga_t LIMIT 2', 'GpuWindow|GpuSort|Rows Sorted|Limit');

-- run again, by parameters and without; read by and by
SELECT x, y.* FROM generate_series(1, 3) AS x, LATERAL (SELECT g, sum(id) FILTER (WHERE id % 3 < x) AS a, count(*) FROM ga_t WHERE id > x * 100 GROUP BY g) AS y WHERE g = 2;
SELECT count(*), sum(a), max(b) FROM generate_series(1, 3) AS x LEFT JOIN LATERAL (SELECT g, sum(b + x) AS a, max(p) AS b FROM ga_t GROUP BY g OFFSET 0) AS y ON true;
SELECT count(*), sum(a) FROM generate_series(1, 3) AS x LEFT JOIN LATERAL (SELECT g, sum(id) FILTER (WHERE id % 3 < x) AS a FROM ga_t GROUP BY g OFFSET 0) AS y ON true;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT g, count(*), string_agg(v, ',' ORDER BY v) FROM (SELECT * FROM ga_t WHERE id <= 300 AND id % 50 < 3) t GROUP BY g;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
FETCH FIRST FROM c;
FETCH 2 FROM c;
FETCH LAST FROM c;
COMMIT;
PREPARE groups(int) AS SELECT g, sum(id), max(d) FROM ga_t WHERE id > $1 GROUP BY g ORDER BY g LIMIT 2;
SET plan_cache_mode = force_generic_plan;
EXECUTE groups(0);
EXECUTE groups(2000);
EXECUTE groups(5000);
RESET plan_cache_mode;

-- who may not call an aggregate may not have it computed
CREATE ROLE regress_ga;
GRANT SELECT ON ga_t TO regress_ga;
REVOKE EXECUTE ON FUNCTION sum(int) FROM public;
SET ROLE regress_ga;
SELECT g, sum(id) FROM ga_t GROUP BY g;
RESET ROLE;
GRANT EXECUTE ON FUNCTION sum(int) TO public;
-- the owner of an aggregate must be allowed to call its functions, who uses it need not be
REVOKE EXECUTE ON FUNCTION ga_join FROM public;
SET ROLE regress_ga;
SELECT g, length(ga_strict(p, v)) FROM ga_t WHERE id < 300 GROUP BY g;
RESET ROLE;
GRANT CREATE ON SCHEMA public TO regress_ga;
ALTER AGGREGATE ga_strict(text, text) OWNER TO regress_ga;
SELECT g, length(ga_strict(p, v)) FROM ga_t WHERE id < 300 GROUP BY g;
REVOKE EXECUTE ON FUNCTION ga_strict_null FROM public;
SET ROLE regress_ga;
SELECT g, ga_strict_null(v) FROM ga_t GROUP BY g;
RESET ROLE;
DROP AGGREGATE ga_strict(text, text), ga_strict_null(text);
DROP FUNCTION ga_join, ga_latest;
REVOKE CREATE ON SCHEMA public FROM regress_ga;
REVOKE SELECT ON ga_t FROM regress_ga;
DROP ROLE regress_ga;

-- texts are sorted by their bytes where nobody asks for another order, and equality is that of bytes
CREATE FUNCTION ga_sets(query text) RETURNS TABLE (line text) LANGUAGE plpgsql AS $$
BEGIN
	SET LOCAL gpusort.enabled = off;
	EXECUTE 'CREATE TEMP TABLE ga_stock AS ' || query;
	SET LOCAL gpusort.enabled = on;
	SET LOCAL gpusort.force = on;
	EXECUTE 'CREATE TEMP TABLE ga_ours AS ' || query;
	RETURN QUERY EXECUTE 'SELECT format(''%s rows, %s differ'', (SELECT count(*) FROM ga_ours), (SELECT count(*) FROM
		((SELECT * FROM ga_stock EXCEPT ALL SELECT * FROM ga_ours) UNION ALL (SELECT * FROM ga_ours EXCEPT ALL SELECT * FROM ga_stock)) AS d))';
	DROP TABLE ga_stock, ga_ours;
	RETURN QUERY SELECT * FROM explain_lines(query, 'Key:|Gpu|Agg|Unique');
END
$$;
CREATE TABLE ga_words AS
	SELECT i AS id, CASE WHEN i % 17 > 0 THEN w END COLLATE "en_US.utf8" AS e, w COLLATE "und-x-icu" AS u, w COLLATE ga_ci AS ci,
		(w || repeat(' ', i % 3))::char(9) COLLATE "en_US.utf8" AS c
	FROM (SELECT i, (ARRAY['a', 'A', 'ä', 'Z', 'z', 'a b', 'ab', 'a-b', ''])[1 + i % 9] || i % 40 AS w FROM generate_series(1, 3000) AS i) AS w;
ANALYZE ga_words;
SELECT * FROM ga_sets('SELECT e, count(*), min(id) FROM ga_words GROUP BY e');
SELECT * FROM ga_sets('SELECT u, e, string_agg(id::text, '','') FROM ga_words GROUP BY e, u, id');
SELECT * FROM ga_sets('SELECT c, count(*) FROM ga_words GROUP BY c HAVING count(*) > 1');
SELECT * FROM ga_sets('SELECT DISTINCT e, u FROM ga_words');
SELECT * FROM ga_sets('SELECT e FROM ga_words UNION SELECT u COLLATE "en_US.utf8" FROM ga_words');
SELECT * FROM ga_sets('SELECT ci, count(*) FROM ga_words GROUP BY ci');
SELECT * FROM ga_sets('SELECT e, count(*) FROM ga_words GROUP BY e ORDER BY e');
SELECT * FROM ga_sets('SELECT e, count(*), rank() OVER (ORDER BY e) FROM ga_words GROUP BY e');
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT regexp_replace(line, 'loops=\d+', 'loops=N') AS line FROM ga_sets('SELECT DISTINCT e, u FROM ga_words');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
-- the order of a subquery or view is the statement's, if nothing is above
SELECT * FROM ga_sets('SELECT * FROM (SELECT e, count(*) FROM ga_words GROUP BY e ORDER BY e) AS s');
SELECT * FROM ga_sets('WITH s AS (SELECT DISTINCT e FROM ga_words ORDER BY e) SELECT e FROM s');
SELECT * FROM ga_sets('SELECT DISTINCT e FROM (SELECT DISTINCT e, u FROM ga_words ORDER BY e, u) AS s');
DROP TABLE ga_words;
DROP FUNCTION ga_sets;

-- GROUPING SETS above a GpuSort: the first sort of an Agg with a chain, whose other sorts and aggregates stay PostgreSQL's
RESET enable_incremental_sort;
CREATE TABLE gs_t (id int, a text COLLATE "C", b int, c numeric, d text COLLATE "en_US.utf8");
INSERT INTO gs_t
	SELECT i, CASE WHEN i % 11 = 0 THEN NULL WHEN i % 13 = 0 THEN '' ELSE md5((i % 40)::text) END, nullif(i % 7, 3),
		CASE i % 5 WHEN 0 THEN 1.0 WHEN 1 THEN 1.00 WHEN 2 THEN 'NaN' WHEN 3 THEN NULL ELSE i % 3 END,
		CASE i % 6 WHEN 0 THEN 'a-b' WHEN 1 THEN 'ab' WHEN 2 THEN 'A b' WHEN 3 THEN '' ELSE 'é' || i % 9 END
	FROM generate_series(1, 3000) AS i;
CREATE TABLE gs_empty (LIKE gs_t);
ANALYZE gs_t, gs_empty;

CREATE FUNCTION compare_sets(query text) RETURNS text LANGUAGE sql AS $$
	SELECT compare_nodes(query, 'GpuGroup', 'GpuPercentile', 'GpuSort');
$$;

-- columns that are NULL in some sets, the empty set, GROUPING(), an aggregate's argument, which is not NULL, HAVING, FILTER
SELECT t, compare_sets(format('SELECT a, b, count(*), sum(b), max(a) FROM %I GROUP BY GROUPING SETS ((a), (b))', t))
	FROM unnest(ARRAY['gs_t', 'gs_empty']) AS t;
SELECT t, compare_sets(format('SELECT a, b, c::text IS NULL, grouping(a, b), grouping(c), count(*), count(c), max(id) FROM %I GROUP BY CUBE (a, b, c)', t))
	FROM unnest(ARRAY['gs_t', 'gs_empty']) AS t;
SELECT compare_sets('SELECT a, b, count(*) FROM gs_t GROUP BY ROLLUP (a, b), ROLLUP (b, a)');
SELECT compare_sets('SELECT a, b, count(*) FROM gs_t GROUP BY ROLLUP (a, b) HAVING count(*) > 9 AND (b > 1 OR grouping(a) = 0)');
SELECT compare_sets('SELECT b, count(*) FROM gs_t GROUP BY GROUPING SETS ((b))');
SELECT compare_sets('SELECT count(*), max(b) FROM (SELECT * FROM gs_t ORDER BY a OFFSET 0) AS x GROUP BY GROUPING SETS ((), ())');
-- DISTINCT and ORDER BY in aggregates, ordered sets, whose direct arguments are NULL with their column
SELECT compare_sets('SELECT a, b, count(*) FILTER (WHERE id % 2 = 0), string_agg(d, '','' ORDER BY d, id), count(DISTINCT c), array_agg(id ORDER BY id DESC) FROM gs_t WHERE id < 900 GROUP BY GROUPING SETS ((a), (b), (d))');
SELECT compare_sets('SELECT a, b, percentile_disc(b / 7.0) WITHIN GROUP (ORDER BY id), rank(b) WITHIN GROUP (ORDER BY b) FROM gs_t GROUP BY GROUPING SETS ((a), (b), (a, c))');
SELECT compare_sets('SELECT a, percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM gs_t GROUP BY ROLLUP (a)');
-- the rows that are counted, dropped and grouped below are those of one set
SELECT compare_sets('SELECT a, b, count(*), sum(n) FROM (SELECT a, b, count(*) AS n FROM gs_t GROUP BY a, b, c) AS x GROUP BY GROUPING SETS ((a), (b))');
SELECT compare_sets('SELECT count(*) FROM (SELECT DISTINCT a, b FROM gs_t) AS x GROUP BY GROUPING SETS ((a), ())');

-- a sort that was read to its end holds no memory while another one is done
SET gpusort.force = on;
EXPLAIN (COSTS OFF) SELECT a, b, count(*), grouping(a) FROM gs_t GROUP BY GROUPING SETS ((a), (b)) ORDER BY b, a;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR (SELECT id, a FROM gs_t ORDER BY a, id OFFSET 0) UNION ALL (SELECT id, a FROM gs_t ORDER BY a, id OFFSET 0);
MOVE ALL FROM c;
SELECT count(*) FROM gpusort_activity WHERE phase <> 'closing';
COMMIT;
RESET gpusort.force;

DROP TABLE ga_t, ga_null, ga_empty, ga_one, ga_equal, ga_big, gs_t, gs_empty;
DROP COLLATION ga_ci;
DROP FUNCTION compare_groups, compare_sets, explain_lines, compare_nodes, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
