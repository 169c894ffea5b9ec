--
-- Composite types, whose fields are columns of the key, and keys that end before a column that has none:
-- tsvector, multiranges, composite types with such fields.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/keys_common.inc
\set ECHO all
CREATE TYPE records_pair AS (a int, b text COLLATE "C");
CREATE TYPE records_wide AS (gone int, n numeric, t text COLLATE "en_US.utf8", p records_pair, i text COLLATE "und-x-icu", f float8, v int[]);
CREATE TYPE records_doc AS (a int, d tsvector, b int);
CREATE TYPE records_only_doc AS (d tsvector, a int);
CREATE TYPE records_empty AS ();
CREATE DOMAIN records_domain AS records_pair CHECK ((VALUE).a IS DISTINCT FROM 99);
CREATE TYPE records_enum AS ENUM ('z', 'a', 'm');
CREATE TYPE records_labels AS (e records_enum, l records_enum);
ALTER TYPE records_wide DROP ATTRIBUTE gone;

-- NULLs as values, as fields, as all fields
CREATE TABLE records (id int, g int, p records_pair, w records_wide, d records_doc, o records_only_doc, e records_empty,
	dom records_domain, l records_labels, ps records_pair[], doc tsvector, ts tsvector, mr int4multirange, en text COLLATE "en_US.utf8");
INSERT INTO records
	SELECT i, i / 5, CASE WHEN i % 9 > 0 THEN pair END,
		   CASE WHEN i % 10 > 0 THEN (NULLIF(i * 7 % 5, 0) / 2.0, CASE WHEN i % 4 > 0 THEN (ARRAY['Bar', 'bar', 'foo', 'b-ar', 'é'])[i % 5 + 1] END,
								 CASE WHEN i % 6 > 0 THEN pair END, (ARRAY['x', 'X', 'ß', ''])[i % 4 + 1], (ARRAY['NaN', '-0', '0', 'inf'])[i % 4 + 1], ARRAY[i % 3, NULL])::records_wide END,
		   CASE WHEN i % 7 > 0 THEN (NULLIF(i % 30, 0), NULLIF(doc, '1'), i % 3)::records_doc END,
		   (doc, i % 5)::records_only_doc, CASE WHEN i % 3 > 0 THEN ROW()::records_empty END,
		   CASE WHEN i % 3 > 0 THEN pair END, CASE WHEN i % 8 > 0 THEN ((ARRAY['z', 'a', 'm', NULL])[i % 4 + 1], 'm')::records_labels END,
		   ARRAY[pair, NULL], CASE WHEN i % 11 > 0 THEN doc END, ('w' || i % 40 || ' x' || i % 3)::tsvector,
		   int4multirange(int4range(i % 20, 30), int4range(40, 41 + i % 7)), (ARRAY['Bar', 'bar', 'foo', 'b-ar', 'é', NULL])[i % 6 + 1]
	FROM (SELECT i, CASE WHEN i % 2 > 0 THEN (i * 5 % 40, left(md5((i % 50)::text), 1 + i % 6))::records_pair ELSE (NULLIF(i % 4, 0), NULL)::records_pair END AS pair,
				 (CASE i % 3 WHEN 0 THEN '' ELSE 'k ' END || i * 3 % 17)::tsvector AS doc
		  FROM generate_series(1, 2000) AS i) AS s;
INSERT INTO records (id) SELECT 2000 + i FROM generate_series(1, 20) AS i;
-- values of a megabyte, compressed and out of line; keys too long, with and without libc text
INSERT INTO records (id, g, p, w) SELECT 2100 + i, i % 3, (1, repeat('x', 1000000) || i % 4)::records_pair, (1, repeat('é', 20000) || i % 4, NULL, '', 0, '{}')::records_wide
	FROM generate_series(1, 6) AS i;
INSERT INTO records (id, g, d) SELECT 2200 + i, i % 3, (i % 2, array_to_tsvector(ARRAY(SELECT 'y' || j FROM generate_series(1, 40000) AS j) || (i % 4)::text), i % 5)::records_doc FROM generate_series(1, 6) AS i;
ANALYZE records;

-- composite types; the image is the rank by PostgreSQL
\set ECHO none
CREATE FUNCTION record_orders(key text) RETURNS TABLE (direction text, result text) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM keys_rank('records', key);
	RETURN QUERY SELECT * FROM four_orders('keys_ranked', key, 'image');
	DROP TABLE keys_ranked;
END
$$;
\set ECHO all
SELECT * FROM record_orders('p');
SELECT * FROM record_orders('w');
SELECT * FROM record_orders('d');
SELECT * FROM record_orders('o');
SELECT * FROM record_orders('e');
SELECT * FROM record_orders('dom');
SELECT * FROM record_orders('l');
SELECT * FROM record_orders('ps');
SELECT a.direction AS first, b.direction AS second,
	   same_order('records', format('p %s, w %s, id', a.direction, b.direction), 'id'),
	   same_order('records', format('w %s, d %s, id', a.direction, b.direction), 'id')
FROM keys_direction a, keys_direction b ORDER BY a.n, b.n;
SELECT same_order('records', 'g, e, p DESC, en, id', 'id');
SELECT same_order('records', 'en, p, id', 'id');
SELECT same_order('(SELECT * FROM records WHERE id <= 2000) s', '(w).p, (w).t DESC, dom, id', 'id');
SELECT same_order('(SELECT r FROM records AS r WHERE id <= 2000) s', 'r', '(r).id');
-- two keys on one column, the second by the values' images
SELECT same_order('(SELECT i, ROW(round((i % 50)::numeric, i % 3)) AS r FROM generate_series(1, 2000) AS i) s', o, 'i')
	FROM (VALUES ('r, r USING *<, i'), ('r DESC, r USING *>, i')) AS v(o);

-- rows of type record, of which the plan tells what they hold, and others
CREATE TABLE records_parts (id int, g int, p records_pair, en text COLLATE "en_US.utf8") PARTITION BY HASH (id);
CREATE TABLE records_part0 PARTITION OF records_parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE records_part1 (en text COLLATE "en_US.utf8", g int, p records_pair, id int);
ALTER TABLE records_parts ATTACH PARTITION records_part1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO records_parts SELECT id, g, p, en FROM records;
ANALYZE records_parts;
SELECT same_order(format('(%s) s', q), o, i) FROM (VALUES
	('SELECT (g, p) AS r, id FROM records', 'r, id', 'id'), ('SELECT (en, doc, id) AS r, id FROM records', 'r DESC NULLS LAST', 'id'),
	('SELECT (NULLIF(id % 3, 0), (en, NULLIF(g % 5, 1)), l) AS r, id FROM records OFFSET 0', 'r DESC, id', 'id'),
	('SELECT CASE WHEN id % 4 > 0 THEN (g, p) END AS r, id FROM records', 'r, id', 'id'),
	('SELECT (g % 9, doc) AS r, id FROM records UNION ALL SELECT (g % 9, doc), -id FROM records', 'r, id', 'id'),
	('SELECT (g::numeric(5, 2), en) AS r, id FROM records UNION ALL SELECT (g::numeric, en), -id FROM records', 'r, id', 'id'),
	('SELECT (g, en) AS r, id FROM records UNION ALL SELECT NULL::record, -id FROM records', 'r, id', 'id'),
	('SELECT (p, en) AS r, id FROM records_parts', 'r, id', 'id'), ('SELECT DISTINCT (g, en) AS r FROM records_parts', 'r', 'r'),
	('SELECT DISTINCT (g % 9, p) AS r FROM records', 'r', 'r'), ('SELECT DISTINCT (g % 9, doc) AS r FROM records', 'r', 'r'),
	('SELECT (g % 9, en) AS r, count(*), min(id) FROM records GROUP BY 1', 'r', 'r::text || min'),
	('SELECT count(DISTINCT (g % 9, en)) AS a, count(*) AS b FROM records', 'a', 'a::text || b'),
	('SELECT g % 4 AS g, count(DISTINCT (g % 9, p)) AS n FROM records GROUP BY 1', 'g', 'g::text || n'),
	('SELECT id, rank() OVER (PARTITION BY (g % 9, en) ORDER BY doc, id) AS n FROM records', 'id', 'n')) AS v(q, o, i);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT same_order('(SELECT (g, p, en) AS r, id FROM records) s', 'r, id', 'id');
SELECT same_order('(SELECT DISTINCT (g % 9, w) AS r FROM records) s', 'r', 'md5(r::text)');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- ended keys
SELECT a.direction AS first, b.direction AS second,
	   same_order('records', format('g %s, doc %s, id', a.direction, b.direction), 'id'),
	   same_order('records', format('en %s, doc %s, id', a.direction, b.direction), 'id')
FROM keys_direction a, keys_direction b ORDER BY a.n, b.n;
SELECT same_order('records', format('%s, id', k), 'id')
FROM unnest(ARRAY['g, ts', 'g DESC, mr DESC', 'p, doc', 'w, ts, doc', 'g, o', 'g, ps', 'g, e, doc, en', 'int4range(g, g), en', 'en, int4range(g, g), doc', '(w).v, doc']) AS k;
SELECT same_order('records', k, 'id') FROM unnest(ARRAY['doc, id', 'ts, id', 'o, id']) AS k;
-- one run of thousands of rows
SELECT same_order('records', 'id / 10000, doc, id', 'id');

-- what reads the rows
SELECT same_order(format('(%s) s', q), o, o) FROM (VALUES
	('SELECT DISTINCT p FROM records', 'p'), ('SELECT DISTINCT w FROM records', 'w'), ('SELECT DISTINCT d FROM records', 'd'),
	('SELECT DISTINCT g, doc FROM records', 'g, doc'), ('SELECT DISTINCT en, doc FROM records', 'en, doc'),
	('SELECT DISTINCT ON (g, doc) g, doc, id FROM records ORDER BY g, doc, id DESC', 'g, doc, id'),
	('SELECT DISTINCT ON (p) p, g, id FROM records ORDER BY p, g, id DESC', 'p, g, id'),
	('SELECT DISTINCT ON (g) g, p, id FROM records ORDER BY g, p DESC, id', 'g, p, id'),
	('SELECT p, count(*), sum(id) FROM records GROUP BY p', 'p, count, sum'),
	('SELECT g, doc, count(*), max(id) FROM records GROUP BY g, doc', 'g, doc, count, max'),
	('SELECT g, doc FROM records UNION SELECT g + 1, doc FROM records', 'g, doc'),
	('SELECT p, w FROM records INTERSECT SELECT p, w FROM records WHERE id > 500', 'p, w'),
	('SELECT id, g, row_number() OVER (PARTITION BY g ORDER BY doc, id) AS n FROM records', 'g, n, id'),
	('SELECT id, p, rank() OVER (PARTITION BY p ORDER BY doc) AS n, count(*) OVER (PARTITION BY p) AS c FROM records', 'p, n, c, id'),
	('SELECT * FROM (SELECT id, p, row_number() OVER (PARTITION BY p ORDER BY g, doc, id) AS n FROM records) w WHERE n <= 2', 'p, n, id'),
	('SELECT id, g, doc FROM records ORDER BY g, doc, id LIMIT 150 OFFSET 700', 'g, doc, id'),
	('SELECT g, doc FROM records ORDER BY g, doc FETCH FIRST 42 ROWS WITH TIES', 'g, doc'),
	('SELECT p FROM records ORDER BY p DESC FETCH FIRST 42 ROWS WITH TIES', 'p'),
	('SELECT g % 7 AS g, array_agg(id ORDER BY doc, id) AS ids, string_agg(en, '','' ORDER BY p, id) AS s FROM records GROUP BY 1', 'g, ids, s'),
	('SELECT g % 7 AS g, count(DISTINCT p) AS p, count(DISTINCT doc) AS d FROM records GROUP BY 1', 'g, p, d'),
	('SELECT count(DISTINCT p) AS p FROM records', 'p'), ('SELECT count(DISTINCT w) AS w FROM records', 'w'), ('SELECT count(DISTINCT d) AS d FROM records', 'd'),
	('SELECT g % 3 AS g, percentile_disc(ARRAY[0, 0.3, 1]) WITHIN GROUP (ORDER BY doc) AS v, percentile_disc(0.4) WITHIN GROUP (ORDER BY p) AS m FROM records GROUP BY 1', 'g, v, m')) AS v(q, o);
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT same_order(format('(%s) s', q), o, o) FROM (VALUES
	('SELECT r.id, s.id AS other FROM records r JOIN records s ON r.g = s.g AND r.doc = s.doc', 'id, other'),
	('SELECT r.id, s.id AS other FROM records r LEFT JOIN records s ON r.p = s.p AND r.id % 2 = s.id', 'id, other'),
	('SELECT r.id, s.id AS other FROM records r JOIN records s ON r.w = s.w', 'id, other')) AS v(q, o);
RESET enable_hashjoin;
RESET enable_nestloop;

-- cursors
SET gpusort.force = on;
SET gpusort.min_rows = 0;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, g, doc FROM records WHERE id BETWEEN 500 AND 560 ORDER BY g DESC, doc, id;
FETCH 3 FROM c;
MOVE LAST FROM c;
FETCH BACKWARD 4 FROM c;
MOVE ABSOLUTE 20 FROM c;
FETCH BACKWARD 2 FROM c;
COMMIT;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, p FROM records WHERE id BETWEEN 500 AND 520 ORDER BY p, id;
MOVE LAST FROM c;
FETCH BACKWARD 3 FROM c;
COMMIT;

-- a type that changes between two executions
CREATE TYPE records_changing AS (a int);
CREATE TABLE records_changed (id int, c records_changing);
INSERT INTO records_changed SELECT i, ROW(i % 3)::records_changing FROM generate_series(1, 6) AS i;
PREPARE changing AS SELECT id, c FROM records_changed ORDER BY c, id DESC LIMIT 4;
EXPLAIN (COSTS OFF) EXECUTE changing;
EXECUTE changing;
ALTER TYPE records_changing ADD ATTRIBUTE b text COLLATE "en_US.utf8";
INSERT INTO records_changed VALUES (31, (0, 'z')), (32, (0, 'é')), (33, (0, 'F')), (34, (NULL, 'x'));
EXECUTE changing;
ALTER TYPE records_changing DROP ATTRIBUTE a;
EXECUTE changing;
ALTER TYPE records_changing ADD ATTRIBUTE j tsvector, ADD ATTRIBUTE k int;
INSERT INTO records_changed VALUES (35, ('a', '', 1)), (36, ('a', '1', 2)), (37, ('a', '1', 1));
EXECUTE changing;
DEALLOCATE changing;
SELECT same_order('records_changed', 'c, id', 'id');
SELECT same_order('records_changed', 'c DESC, id', 'id');
RESET gpusort.force;
RESET gpusort.min_rows;

-- values of other types than the column's, as C functions can make them (test/modules/bad_rows.c): with
-- other fields, or with others among those that were dropped
CREATE TYPE records_mixed AS (a int, gone bytea, b int);
CREATE TYPE records_dropped AS (a int, gone bigint, b int);
CREATE TYPE records_more AS (a int, b int, c int);
ALTER TYPE records_mixed DROP ATTRIBUTE gone;
ALTER TYPE records_dropped DROP ATTRIBUTE gone;
CREATE FUNCTION make_row(int, regtype) RETURNS records_mixed LANGUAGE c STRICT AS 'bad_rows';
CREATE TABLE records_odd AS SELECT i * 7919 % 601 AS id, make_row(i, t) AS c
	FROM generate_series(1, 600) AS i, LATERAL (SELECT (ARRAY['records_mixed', 'records_dropped', 'records_more'])[1 + i % 3]::regtype AS t) AS types;
SET gpusort.force = on;
SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM records_odd ORDER BY c, id OFFSET 0) AS s \gset process_
SET gpusort.min_rows = 0;
EXPLAIN (COSTS OFF) SELECT id FROM records_odd ORDER BY c, id;
SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM records_odd ORDER BY c, id OFFSET 0) AS s \gset device_
SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM records_odd ORDER BY c DESC, id OFFSET 0) AS s \gset reverse_
SET gpusort.enabled = off;
SELECT md5(string_agg(id::text, ',')) = :'process_md5' AS in_process, md5(string_agg(id::text, ',')) = :'device_md5' AS on_device
	FROM (SELECT id FROM records_odd ORDER BY c, id OFFSET 0) AS s;
SELECT md5(string_agg(id::text, ',')) = :'reverse_md5' AS on_device FROM (SELECT id FROM records_odd ORDER BY c DESC, id OFFSET 0) AS s;
RESET gpusort.min_rows;
RESET gpusort.enabled;
RESET gpusort.force;

-- indexes: with composite types; an index whose keys would be inexact is PostgreSQL's
CREATE EXTENSION IF NOT EXISTS amcheck;
SET gpusort.force = on;
SET client_min_messages = notice;
SET gpusort.log_refusals = on;
CREATE INDEX records_index ON records (g, l, dom DESC) WHERE id <= 2000;
SELECT bt_index_check('records_index', true);
CREATE INDEX records_docs ON records (g, doc) WHERE id <= 2000;
CREATE INDEX records_gin ON records USING gin (ps) WHERE id <= 2000;
RESET gpusort.log_refusals;
SET client_min_messages = warning;
RESET gpusort.force;

-- values of before an ALTER TYPE, of servers that notice
CREATE TYPE records_altered AS (a int, b int);
CREATE FUNCTION sort_altered(enabled boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	made records_altered[] := ARRAY(SELECT (i % 7, i)::records_altered FROM generate_series(1, 1000) AS i);
BEGIN
	ALTER TYPE records_altered ALTER ATTRIBUTE a TYPE bigint;
	PERFORM set_config('gpusort.enabled', enabled::text, true), set_config('gpusort.force', 'on', true), set_config('gpusort.min_rows', '0', true);
	PERFORM count(*) FROM (SELECT x FROM (SELECT unnest(made) AS x) AS s ORDER BY x OFFSET 3) AS s;
	RETURN 'sorted';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLERRM;
END
$$;
SELECT current_setting('composite_type_mismatch', true) IS NULL OR
	(sort_altered(true) LIKE '%was altered%' AND sort_altered(true) = sort_altered(false)) AS noticed;
DROP FUNCTION sort_altered;
DROP TYPE records_altered;

-- by cost: a GpuSort unless nearly everything is left to settle
CREATE TABLE records_many AS SELECT i AS id, i / 2 AS g, i % 10 AS few, int4multirange(int4range(i * 7 % 1000, NULL)) AS doc FROM generate_series(1, 30000) AS i;
ANALYZE records_many;
EXPLAIN (COSTS OFF) SELECT * FROM records_many ORDER BY g, doc;
EXPLAIN (COSTS OFF) SELECT * FROM records_many ORDER BY few, doc;
EXPLAIN (COSTS OFF) SELECT DISTINCT g, doc, id FROM records_many ORDER BY g, doc, id;
SET client_min_messages = notice;
SET gpusort.log_refusals = on;
SET enable_hashjoin = off;
EXPLAIN (COSTS OFF) SELECT * FROM records_many ORDER BY few, doc;
RESET gpusort.log_refusals;
SET client_min_messages = warning;
DROP TABLE records, records_parts, records_changed, records_many, records_odd, keys_direction;
DROP TYPE records_mixed, records_dropped, records_more, records_pair, records_wide, records_doc, records_only_doc, records_empty, records_labels, records_enum, records_changing CASCADE;
DROP FUNCTION record_orders, four_orders, same_order, keys_taken, keys_rank;
