--
-- Sorts of which the first rows of each group are enough: row_number() and rank() up to a
-- number, DISTINCT ON.  Each query runs by PostgreSQL alone, and by gpusort serially and in
-- parallel; "dropped" are the rows that the device has not returned.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/dropped.inc
\set ECHO all
SET gpusort.min_rows = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_hashagg = off;

SELECT CASE WHEN EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu') THEN 'und-x-icu' ELSE 'C' END AS icu
\gset
CREATE TYPE group_enum AS ENUM ('low', 'high', 'middle');
CREATE TABLE group_t (id int, k int, i8 bigint, f8 float8, n numeric, c text COLLATE "C", bp char(9) COLLATE "C",
	libc text COLLATE "en_US.utf8", icu text COLLATE :"icu", longer text COLLATE "en_US.utf8", long text COLLATE "C",
	e group_enum, u uuid, b bool, a int[], one int, own int, none int);
INSERT INTO group_t
	SELECT i, i % 7, CASE WHEN i % 50 > 0 THEN i % 90 - 45 END,
		CASE i % 9 WHEN 0 THEN float8 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN 0 WHEN 3 THEN '-infinity' WHEN 4 THEN NULL WHEN 5 THEN 'infinity' ELSE i % 40 END,
		CASE i % 9 WHEN 0 THEN numeric 'NaN' WHEN 1 THEN 0.00 WHEN 2 THEN 0 WHEN 3 THEN 1.0 WHEN 4 THEN 1.000 WHEN 5 THEN NULL ELSE (i % 30)::numeric / 8 END,
		CASE i % 60 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE left(md5((i % 200)::text), i % 12) END,
		CASE i % 60 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE left(md5((i % 50)::text), 2) || repeat(' ', i % 3) END,
		translate(left(md5((i % 300)::text), 3), '0123456789abcdef', '11a--A ,_bBc.''x9é'),
		translate(left(md5((i % 300)::text), 3), '0123456789abcdef', '11a--A ,_bBc.''x9é'),
		CASE WHEN i % 300 = 7 THEN repeat('word ', 2500) || i % 3 ELSE left(md5(i::text), 2) END,
		repeat('long', CASE WHEN i % 40 = 0 THEN 2100 ELSE 3 END) || (i % 30),
		(enum_range(NULL::group_enum))[1 + i % 3], md5((i % 70)::text)::uuid, nullif(i % 3, 2)::bool,
		CASE WHEN i % 11 > 0 THEN ARRAY[i % 4, nullif(i % 3, 1)] END, 1, i, NULL
	FROM generate_series(1, 3000) AS i;
VACUUM ANALYZE group_t;

-- the rows with a function's value in a range, by an order that is total
CREATE FUNCTION ranked(function text, by text, condition text) RETURNS text LANGUAGE sql AS $$
	SELECT compare(format('SELECT id, r FROM (SELECT id, %s OVER (%s) AS r FROM group_t) AS s WHERE %s ORDER BY id, r',
						  function, by, condition));
$$;

-- Every type as the group's, and as the order in it
CREATE TABLE group_columns (name text);
INSERT INTO group_columns VALUES ('k'), ('i8'), ('f8'), ('n'), ('c'), ('bp'), ('libc'), ('icu'), ('longer'), ('long'), ('e'), ('u'), ('b'), ('a'),
	('one'), ('own'), ('none');
SELECT name, ranked('row_number()', format('PARTITION BY %s ORDER BY id', name), 'r <= 2') FROM group_columns;
SELECT name, ranked('row_number()', format('PARTITION BY %s ORDER BY own DESC, id', name), 'r <= 2') FROM group_columns WHERE name <> 'own';
SELECT name, ranked('rank()', format('PARTITION BY %s ORDER BY k DESC', name), 'r < 3') FROM group_columns WHERE name <> 'k';
SELECT name, ranked('rank()', format('PARTITION BY k ORDER BY %s NULLS FIRST', name), 'r <= 3') FROM group_columns WHERE name <> 'k';
SELECT name, ranked('row_number()', format('PARTITION BY c ORDER BY %s DESC, id', name), 'r <= 3') FROM group_columns WHERE name <> 'c';
SELECT name, ranked('rank()', format('ORDER BY %s', name), 'r <= 5') FROM group_columns;
SELECT name, ranked('row_number()', format('ORDER BY %s, id', name), 'r <= 5') FROM group_columns;
SELECT name, compare(format('SELECT DISTINCT ON (g) id FROM (SELECT %s AS g, * FROM group_t) AS s ORDER BY g DESC NULLS LAST, id', name)) FROM group_columns;

-- Several columns, numbers and ways to write them
SELECT ranked('row_number()', 'PARTITION BY k, c ORDER BY i8, id', 'r <= 1');
SELECT ranked('row_number()', 'PARTITION BY icu, b, libc ORDER BY f8, id', 'r <= 1');
SELECT ranked('row_number()', 'PARTITION BY k ORDER BY i8, i8, id DESC', 'r = 1');
SELECT ranked('row_number()', 'PARTITION BY k ORDER BY i8, id', '5 >= r');
SELECT ranked('row_number()', 'PARTITION BY k ORDER BY i8, id', '5::int2 > r');
SELECT ranked('row_number()', 'PARTITION BY k ORDER BY i8, id', 'r < 0');
SELECT ranked('row_number()', 'PARTITION BY k ORDER BY i8, id', 'r <= 9223372036854775807');
SELECT ranked('row_number()', 'PARTITION BY k ORDER BY i8, id', 'r <= -9223372036854775808');
SELECT ranked('row_number()', 'PARTITION BY k ORDER BY i8, id', 'r <= 3000000000');
SELECT ranked('row_number()', 'PARTITION BY k ORDER BY i8, id', 'r <= 400 AND r < 7 AND id > 10');
SELECT ranked('row_number()', 'PARTITION BY k ORDER BY i8, id', 'r BETWEEN 3 AND 4');
SELECT ranked('rank()', 'PARTITION BY k ORDER BY i8', 'r <= 1');
SELECT ranked('rank()', 'PARTITION BY k ORDER BY i8, c', 'r <= 30');
SELECT ranked('rank()', 'PARTITION BY k ORDER BY k', 'r <= 3');
SELECT ranked('rank()', 'PARTITION BY k', 'r <= 3');
SELECT ranked('row_number()', 'PARTITION BY one ORDER BY id', 'r <= 3');
SELECT compare('SELECT id, r, d, n FROM (SELECT id, rank() OVER w AS r, dense_rank() OVER w AS d, row_number() OVER w AS n FROM group_t
	WINDOW w AS (PARTITION BY k ORDER BY c, id)) AS s WHERE n <= 4 AND r <= 6 ORDER BY id');
SELECT compare('SELECT DISTINCT ON (k) k, id FROM group_t ORDER BY k, c DESC, id LIMIT 3');
SELECT compare('SELECT DISTINCT ON (c, k) k, id FROM group_t ORDER BY k, c DESC, i8, id');
SELECT compare('SELECT DISTINCT ON (n) id FROM group_t ORDER BY n, id LIMIT 3');
SELECT compare('SELECT DISTINCT ON (libc) id FROM group_t ORDER BY libc, id LIMIT 30');
SELECT compare('SELECT DISTINCT ON (k) id FROM group_t ORDER BY k, libc, id LIMIT 3');
SELECT compare('SELECT DISTINCT ON (k, f8) id FROM group_t WHERE id < 0 ORDER BY k, f8, id');
SELECT compare('SELECT g, s.id FROM generate_series(1, 3) AS g, LATERAL (SELECT id FROM
	(SELECT id, row_number() OVER (PARTITION BY k % g ORDER BY c, id) AS r FROM group_t) AS t WHERE r <= 2) AS s ORDER BY g, id');

-- Where all rows count
SELECT keeps_all('SELECT k, i8, n FROM (SELECT k, i8, row_number() OVER w AS r, count(*) OVER w AS n FROM group_t WINDOW w AS (PARTITION BY k ORDER BY i8)) AS s WHERE r <= 3 ORDER BY k, i8, n');
SELECT keeps_all('SELECT id, next FROM (SELECT id, row_number() OVER w AS r, lead(id) OVER w AS next FROM group_t WINDOW w AS (PARTITION BY k ORDER BY i8, id)) AS s WHERE r <= 3 ORDER BY id');
SELECT keeps_all('SELECT id, last FROM (SELECT id, row_number() OVER w AS r, cume_dist() OVER w AS last FROM group_t WINDOW w AS (PARTITION BY k ORDER BY i8, id)) AS s WHERE r <= 3 ORDER BY id');
SELECT keeps_all('SELECT id FROM (SELECT id, dense_rank() OVER (PARTITION BY k ORDER BY i8, id) AS r FROM group_t) AS s WHERE r <= 3 ORDER BY id');
SELECT keeps_all('SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY i8, id) AS r FROM group_t) AS s WHERE r >= 300 ORDER BY id');
SELECT keeps_all('SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY i8, id) AS r FROM group_t) AS s WHERE r <> 3 ORDER BY id');
SELECT keeps_all('SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY i8, id) AS r FROM group_t) AS s WHERE r <= id % 5 ORDER BY id');
SELECT keeps_all('SELECT id, r, n FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY i8, id) AS r, count(*) OVER (PARTITION BY k, i8) AS n FROM group_t) AS s WHERE r <= 3 ORDER BY id');
SELECT keeps_all('SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY n ORDER BY i8, id) AS r FROM group_t) AS s WHERE r <= 3 ORDER BY id');
-- the sort for two windows is by more than the one's peers
SELECT compare('SELECT id, r, n FROM (SELECT id, rank() OVER (PARTITION BY k ORDER BY i8) AS r, row_number() OVER (PARTITION BY k ORDER BY i8, id) AS n FROM group_t) AS s WHERE r <= 2 ORDER BY id');

SET gpusort.force = on;
SET max_parallel_workers_per_gather = 0;
SELECT plan_nodes('SELECT DISTINCT ON (c) c, id FROM group_t ORDER BY c, k, id', 'Distinct:|First ');
SELECT plan_nodes('SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY c) AS r FROM group_t) AS s WHERE r <= 3', 'Distinct:|First ');
SELECT plan_nodes('SELECT * FROM (SELECT id, rank() OVER (PARTITION BY k ORDER BY c) AS r FROM group_t) AS s WHERE r < 3', 'Distinct:|First ');
SELECT plan_nodes('SELECT * FROM (SELECT id, row_number() OVER (ORDER BY c) AS r FROM group_t) AS s WHERE r <= 3', 'Distinct:|First ');
SELECT plan_nodes('SELECT DISTINCT ON (c) c, id FROM group_t ORDER BY c, k, id LIMIT 5', 'Distinct:|First ');
-- a cursor, backward and again
BEGIN;
DECLARE g SCROLL CURSOR FOR SELECT k, r FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY c, id) AS r FROM group_t) AS s WHERE r <= 2;
FETCH 3 FROM g;
FETCH ALL FROM g;
FETCH BACKWARD 2 FROM g;
MOVE ABSOLUTE 0 FROM g;
FETCH 2 FROM g;
COMMIT;

DROP TABLE group_t, group_columns;
DROP TYPE group_enum;
DROP FUNCTION dropped, compare, ranked, keeps_all, compare_modes, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
