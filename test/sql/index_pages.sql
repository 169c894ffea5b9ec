--
-- Where pages of an index end, and what is on them: many shapes of tuples.
--
SET client_min_messages = warning;
CREATE SCHEMA index_pages;
SET search_path = index_pages, public;
\set ECHO none
\i sql/index_common.inc
\set ECHO all

-- Groups of equal keys of all sizes, keys of all lengths, and NULLs.  What
-- comes of a shape differs from shape to shape, but not from run to run.
CREATE TABLE t (a text COLLATE "C", b int, c text COLLATE "C", x bigint);
CREATE FUNCTION index_shape(shape int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	-- of 0 to 1, each its own
	r float8[] := (SELECT array_agg(hashint8extended(i, shape) / 2.0 ^ 64 + 0.5 ORDER BY i) FROM generate_series(1, 10) AS i);
	n int := 1 + r[1] ^ 3 * 8000;
	groups int := 1 + r[2] ^ 3 * n;
	width int := 1 + r[3] ^ 4 * 2600;
	steep float8 := 1 + 3 * r[4];
	columns text := (ARRAY['(a)', '(x)', '(b)', '(c, b)', '(a, x)', '(c)', '(b DESC, a)', '(x) INCLUDE (c)', '(a) INCLUDE (b)', '(b, c)'])[1 + shape % 10];
BEGIN
	TRUNCATE t;
	INSERT INTO t
	SELECT CASE WHEN i % 97 <> 5 THEN repeat(md5(v::text), 1 + (v * 7919) % width / 32) END, v % 7,
		CASE WHEN i % 5 <> 2 THEN left(md5((v / 2)::text), 3) END, v
	FROM (SELECT i, ((hashint8extended(i, shape + 1000) / 2.0 ^ 64 + 0.5) ^ steep * groups)::int AS v FROM generate_series(1, n) AS i) AS g;
	RETURN index_check(format('CREATE INDEX %%s ON t %s WITH (fillfactor = %s, deduplicate_items = %s)',
		columns, 10 + (r[5] * 90)::int, r[6] < 0.8));
END
$$;
SELECT index_shape(shape), count(*) FROM generate_series(1, 80) AS shape GROUP BY 1;

-- Equal tuples before a full page: the posting list goes to the next page
-- where the tuple alone would not.
DROP TABLE t;
CREATE TABLE t (a text COLLATE "C");
ALTER TABLE t ALTER a SET STORAGE EXTERNAL;
CREATE FUNCTION index_brim(width int, copies int, ff int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	TRUNCATE t;
	INSERT INTO t SELECT lpad(i::text, width, '0') FROM generate_series(1, 300) AS i, generate_series(1, 1 + i % copies);
	RETURN index_check(format('CREATE INDEX %%s ON t (a) WITH (fillfactor = %s)', ff));
END
$$;
SELECT index_brim(width, copies, ff), count(*)
FROM unnest(ARRAY[8, 9, 100, 251, 400, 785, 800, 1900]) AS width, unnest(ARRAY[2, 3, 40]) AS copies, unnest(ARRAY[10, 70, 100]) AS ff GROUP BY 1;

-- Equal values that are not stored alike: compressed or not, with long headers
-- and with short ones; also groups too large for a posting list.
CREATE TABLE u (n serial, a text COLLATE "C", b text COLLATE "C");
ALTER TABLE u ALTER b SET STORAGE PLAIN;
COPY u (a, b) FROM stdin;
A	A
A	B
A	C
\.
INSERT INTO u (a, b) SELECT repeat(chr(65 + i % 3), 2300), chr(65 + i % 5) FROM generate_series(1, 30) AS i;
ALTER TABLE u ALTER a SET STORAGE EXTERNAL;
INSERT INTO u (a, b) SELECT repeat(chr(65 + i % 3), 2300), chr(65 + i % 5) FROM generate_series(1, 60) AS i;
COPY u (a, b) FROM stdin;
A	A
A	B
A	C
\.
ALTER TABLE u ALTER a SET STORAGE EXTENDED;
ALTER TABLE u ALTER b SET STORAGE EXTENDED;
INSERT INTO u (a, b) SELECT repeat(chr(65 + i % 3), 2300), chr(65 + i % 5) FROM generate_series(1, 600) AS i;
SELECT count(DISTINCT size_of_a) AS sizes_of_a, count(DISTINCT size_of_b) AS sizes_of_b
FROM (SELECT pg_column_size(a) AS size_of_a, pg_column_size(b) AS size_of_b FROM u WHERE a BETWEEN 'A' AND 'B' AND b = 'A' OFFSET 0) AS s;
ALTER TABLE u ALTER a SET STORAGE EXTERNAL;
ALTER TABLE u ALTER b SET STORAGE PLAIN;
DROP TABLE t;
ALTER TABLE u RENAME TO t;
SELECT index_check('CREATE INDEX %s ON t (a)');
SELECT index_check('CREATE INDEX %s ON t (b)');
SELECT index_check('CREATE INDEX %s ON t (b, a)');
SELECT index_check('CREATE INDEX %s ON t (a, b) WITH (fillfactor = 100)');
SELECT index_check('CREATE INDEX %s ON t (a, n)');
SELECT index_check('CREATE INDEX %s ON t (b) INCLUDE (n)');

-- Unique indexes that a rewrite builds without a check have posting lists too.
DROP TABLE t;
CREATE TABLE t (a int, b int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT NULL, i FROM generate_series(1, 5000) AS i;
CREATE UNIQUE INDEX i_stock ON t (a);
CREATE UNIQUE INDEX i_ours ON t (a);
SELECT index_difference('i_stock', 'i_ours') IS NULL AS same, index_blocks('i_ours') AS blocks;
SET gpusort.index_build = off;
VACUUM (FULL) t;
CREATE TABLE stock AS SELECT n, get_raw_page('i_stock', 'main', n) AS page FROM generate_series(0, index_blocks('i_stock') - 1) AS n;
SET gpusort.index_build = on;
VACUUM (FULL) t;
SELECT bool_and(substring(page FROM 11) = substring(get_raw_page('i_ours', 'main', n) FROM 11)) AS same,
	count(*) = index_blocks('i_ours') AS as_many, count(*) AS blocks
FROM stock;

-- The upper levels split as well.
DROP TABLE t, stock;
CREATE TABLE t AS SELECT md5(i::text) || repeat(md5((i * 7)::text), 7) AS a FROM generate_series(1, 20000) AS i;
ALTER TABLE t ALTER a SET STORAGE PLAIN;
SELECT index_check('CREATE INDEX %s ON t (a COLLATE "C")');
SELECT level FROM bt_metap('i_ours');
SELECT index_check('CREATE INDEX %s ON t (a COLLATE "C") WITH (fillfactor = 10)');
SELECT level FROM bt_metap('i_ours');
DROP SCHEMA index_pages CASCADE;
