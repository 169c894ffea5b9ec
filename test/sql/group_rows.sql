--
-- Sorts of which the first rows of each group are enough: row_number() and rank() up to a
-- number, DISTINCT ON.  Each query runs by PostgreSQL alone, and by gpusort serially and in
-- parallel; "dropped" are the rows that the device has not returned.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/dropped.inc
\set ECHO all

-- the rows with a function's value in a range, by an order that is total
CREATE FUNCTION ranked(function text, by text, condition text) RETURNS text LANGUAGE sql AS $$
	SELECT compare(format('SELECT id, r FROM (SELECT id, %s OVER (%s) AS r FROM dropped_t) AS s WHERE %s ORDER BY id, r',
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
SELECT name, compare(format('SELECT DISTINCT ON (g) id FROM (SELECT %s AS g, * FROM dropped_t) AS s ORDER BY g DESC NULLS LAST, id', name)) FROM group_columns;

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
SELECT compare('SELECT id, r, d, n FROM (SELECT id, rank() OVER w AS r, dense_rank() OVER w AS d, row_number() OVER w AS n FROM dropped_t
	WINDOW w AS (PARTITION BY k ORDER BY c, id)) AS s WHERE n <= 4 AND r <= 6 ORDER BY id');
SELECT compare('SELECT DISTINCT ON (k) k, id FROM dropped_t ORDER BY k, c DESC, id LIMIT 3');
SELECT compare('SELECT DISTINCT ON (c, k) k, id FROM dropped_t ORDER BY k, c DESC, i8, id');
SELECT compare('SELECT DISTINCT ON (n) id FROM dropped_t ORDER BY n, id LIMIT 3');
SELECT compare('SELECT DISTINCT ON (libc) id FROM dropped_t ORDER BY libc, id LIMIT 30');
SELECT compare('SELECT DISTINCT ON (k) id FROM dropped_t ORDER BY k, libc, id LIMIT 3');
SELECT compare('SELECT DISTINCT ON (k, f8) id FROM dropped_t WHERE id < 0 ORDER BY k, f8, id');
SELECT compare('SELECT g, s.id FROM generate_series(1, 3) AS g, LATERAL (SELECT id FROM
	(SELECT id, row_number() OVER (PARTITION BY k % g ORDER BY c, id) AS r FROM dropped_t) AS t WHERE r <= 2) AS s ORDER BY g, id');

-- Where all rows count
SELECT keeps_all('SELECT k, i8, n FROM (SELECT k, i8, row_number() OVER w AS r, count(*) OVER w AS n FROM dropped_t WINDOW w AS (PARTITION BY k ORDER BY i8)) AS s WHERE r <= 3 ORDER BY k, i8, n');
SELECT keeps_all('SELECT id, next FROM (SELECT id, row_number() OVER w AS r, lead(id) OVER w AS next FROM dropped_t WINDOW w AS (PARTITION BY k ORDER BY i8, id)) AS s WHERE r <= 3 ORDER BY id');
SELECT keeps_all('SELECT id, last FROM (SELECT id, row_number() OVER w AS r, cume_dist() OVER w AS last FROM dropped_t WINDOW w AS (PARTITION BY k ORDER BY i8, id)) AS s WHERE r <= 3 ORDER BY id');
SELECT keeps_all('SELECT id FROM (SELECT id, dense_rank() OVER (PARTITION BY k ORDER BY i8, id) AS r FROM dropped_t) AS s WHERE r <= 3 ORDER BY id');
SELECT keeps_all('SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY i8, id) AS r FROM dropped_t) AS s WHERE r >= 300 ORDER BY id');
SELECT keeps_all('SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY i8, id) AS r FROM dropped_t) AS s WHERE r <> 3 ORDER BY id');
SELECT keeps_all('SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY i8, id) AS r FROM dropped_t) AS s WHERE r <= id % 5 ORDER BY id');
SELECT keeps_all('SELECT id, r, n FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY i8, id) AS r, count(*) OVER (PARTITION BY k, i8) AS n FROM dropped_t) AS s WHERE r <= 3 ORDER BY id');
SELECT keeps_all('SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY n ORDER BY i8, id) AS r FROM dropped_t) AS s WHERE r <= 3 ORDER BY id');
-- the sort for two windows is by more than the one's peers
SELECT compare('SELECT id, r, n FROM (SELECT id, rank() OVER (PARTITION BY k ORDER BY i8) AS r, row_number() OVER (PARTITION BY k ORDER BY i8, id) AS n FROM dropped_t) AS s WHERE r <= 2 ORDER BY id');

-- No row that is alone in its partition: every third row has an equal one, with other zeros, scales and intervals
ALTER TABLE dropped_t ADD few int;
UPDATE dropped_t SET few = id;
INSERT INTO dropped_t SELECT (jsonb_populate_record(t, jsonb_build_object('id', -id, 'n', n * 1.000, 'f8', f8, 'span', justify_days(span)))).*
	FROM dropped_t AS t WHERE id % 3 = 0;
INSERT INTO group_columns VALUES ('span'), ('ttz'), ('few');
VACUUM ANALYZE dropped_t;
SELECT name, ranked('row_number()', format('PARTITION BY %s, few ORDER BY id', name), 'r > 1') FROM group_columns;
SELECT name, ranked('count(*)', format('PARTITION BY few, %s', name), 'r > 1') FROM group_columns;
SELECT name, ranked('count(*)', format('PARTITION BY %s', name), 'r >= 2') FROM group_columns;
SELECT name, ranked('rank()', format('PARTITION BY %s ORDER BY k', name), 'r > 1') FROM group_columns;
SELECT ranked('row_number()', 'PARTITION BY few ORDER BY i8, id', '1 < r');
SELECT ranked('row_number()', 'PARTITION BY few ORDER BY i8, id', 'r = 2::int2');
SELECT ranked('row_number()', 'PARTITION BY few ORDER BY i8, id', 'r BETWEEN 2 AND 3');
SELECT ranked('row_number()', 'PARTITION BY few ORDER BY i8, id', '2::int8 <= r AND id % 2 = 0');
SELECT ranked('dense_rank()', 'PARTITION BY few ORDER BY id', 'r > 1');
SELECT ranked('count(*)', 'PARTITION BY few ORDER BY id', 'r > 1');
SELECT ranked('count(*)', 'PARTITION BY few ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING', 'r > 1');
SELECT ranked('count(*)', 'PARTITION BY few', 'r > 100');
SELECT compare('SELECT id, r, l, s FROM (SELECT id, row_number() OVER w AS r, lag(id) OVER w AS l, count(i8) OVER w AS s FROM dropped_t
	WINDOW w AS (PARTITION BY few ORDER BY id)) AS s WHERE r > 1 ORDER BY id');
-- what might be noticed: other aggregates, expressions, conditions before (tap/plans_calls has many more)
SELECT keeps_all('SELECT id, s FROM (SELECT id, row_number() OVER w AS r, sum(i8) OVER w AS s FROM dropped_t WINDOW w AS (PARTITION BY few ORDER BY id)) AS s WHERE r > 1 ORDER BY id');
SELECT keeps_all('SELECT id, s FROM (SELECT id, row_number() OVER (PARTITION BY few ORDER BY id) AS r, 1000 / (id + 1) AS s FROM dropped_t) AS s WHERE r > 1 ORDER BY id');
SELECT keeps_all('SELECT id FROM (SELECT id, c, row_number() OVER (PARTITION BY few ORDER BY id) AS r FROM dropped_t) AS s WHERE c ~ '''' AND r > 1 ORDER BY id');
SELECT compare('SELECT t.id FROM dropped_t AS t JOIN (SELECT id, row_number() OVER (PARTITION BY few, c ORDER BY id) AS r FROM dropped_t) AS s ON s.id = t.id WHERE s.r > 1 ORDER BY 1');
SELECT keeps_all('SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY few ORDER BY id) AS r FROM dropped_t) AS s WHERE r > 0 ORDER BY id');
SELECT keeps_all('SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY few ORDER BY id) AS r FROM dropped_t) AS s WHERE r >= 1 OR id = 3 ORDER BY id');
SELECT keeps_all('SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY few ORDER BY id) AS r FROM dropped_t) AS s WHERE r > 1 OR id % 7 = 0 ORDER BY id');
SELECT compare('SELECT id, n FROM (SELECT id, row_number() OVER (PARTITION BY few ORDER BY id) AS r, count(*) OVER (PARTITION BY few, c) AS n FROM dropped_t) AS s WHERE n > 1 ORDER BY id');
SELECT keeps_all('SELECT id, l FROM (SELECT id, count(*) OVER (PARTITION BY few) AS n, lag(id) OVER (ORDER BY few, id) AS l FROM dropped_t) AS s WHERE n > 1 ORDER BY id');
SELECT keeps_all('SELECT id FROM (SELECT id, random() > 2 AS never, row_number() OVER (PARTITION BY few ORDER BY id) AS r FROM dropped_t) AS s WHERE r > 1 ORDER BY id');
SELECT keeps_all('SELECT id FROM (SELECT id, (SELECT random() > 2 WHERE few > 0) AS never, row_number() OVER (PARTITION BY few ORDER BY id) AS r FROM dropped_t) AS s WHERE r > 1 ORDER BY id');
SELECT keeps_all('SELECT id FROM (SELECT id, sum(1) OVER (PARTITION BY few) AS r FROM dropped_t) AS s WHERE r > 1 ORDER BY id');

SET gpusort.force = on;
SET max_parallel_workers_per_gather = 0;
SELECT plan_nodes('SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY few ORDER BY c) AS r FROM dropped_t) AS s WHERE r > 1', 'Groups of|First ');
SELECT plan_nodes('SELECT * FROM (SELECT id, count(*) OVER (PARTITION BY few) AS r FROM dropped_t) AS s WHERE r > 1', 'Groups of|First ');
SELECT plan_nodes('SELECT DISTINCT ON (c) c, id FROM dropped_t ORDER BY c, k, id', 'Distinct:|First ');
SELECT plan_nodes('SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY c) AS r FROM dropped_t) AS s WHERE r <= 3', 'Distinct:|First ');
SELECT plan_nodes('SELECT * FROM (SELECT id, rank() OVER (PARTITION BY k ORDER BY c) AS r FROM dropped_t) AS s WHERE r < 3', 'Distinct:|First ');
SELECT plan_nodes('SELECT * FROM (SELECT id, row_number() OVER (ORDER BY c) AS r FROM dropped_t) AS s WHERE r <= 3', 'Distinct:|First ');
SELECT plan_nodes('SELECT DISTINCT ON (c) c, id FROM dropped_t ORDER BY c, k, id LIMIT 5', 'Distinct:|First ');
-- a cursor, backward and again
BEGIN;
DECLARE g SCROLL CURSOR FOR SELECT k, r FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY c, id) AS r FROM dropped_t) AS s WHERE r <= 2;
FETCH 3 FROM g;
FETCH ALL FROM g;
FETCH BACKWARD 2 FROM g;
MOVE ABSOLUTE 0 FROM g;
FETCH 2 FROM g;
COMMIT;

DROP TABLE dropped_t, group_columns;
DROP TYPE dropped_enum;
DROP FUNCTION dropped, compare, ranked, keeps_all, compare_modes, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
