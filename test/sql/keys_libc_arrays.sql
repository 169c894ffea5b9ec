--
-- Arrays of text under libc collations.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/compare.inc
\i sql/explain_lines.inc
\i sql/keys_common.inc
\i sql/keys_array.inc
\set ECHO all
SELECT setseed(0.25);

-- Elements that agree on level 1 or have none, on which strxfrm and strcoll
-- disagree, that begin with what ends a level; and few, so that arrays agree in
-- their first ones.
CREATE TABLE libc_words (word text);
INSERT INTO libc_words VALUES (''), (''), ('a'), ('A'), ('á'), ('Á'), ('ä'), ('a '), ('-a'), ('a-'), ('ab'), ('Ab'), ('a b'),
	('b'), ('111a'), ('11-1a'), ('111 c'), ('11 1c'), ('o' || chr(776)), ('ö'), ('oe'), (chr(776)), (chr(44032)), (chr(44033)),
	(chr(44032) || chr(45208)), (chr(128512)), (chr(128513)), (E'\x01'), (E'\x01é'), (E'\x02'), (E'a\x01b'), ('-'), (' ');
CREATE TABLE libc_a (id int, v text[] COLLATE "en_US.utf8", b char(3)[] COLLATE "en_US.utf8",
					 w varchar(12)[] COLLATE "de_DE.utf8", m name[] COLLATE "en_US.utf8", n int);
INSERT INTO libc_a
	SELECT i, keys_array(words, i % 2 = 0), keys_array(words::char(3)[], i % 3 = 0),
		   keys_array(words::varchar(12)[], true), keys_array(words::name[], false), i % 5
	FROM generate_series(1, 1500) AS i, (SELECT array_agg(word ORDER BY word COLLATE "C") FROM libc_words) AS w(words);
-- few elements: equal arrays, prefixes of each other, and other shapes of the same
INSERT INTO libc_a
	SELECT 2000 + i, keys_array('{a,A,"",NULL}'::text[], false), keys_array('{a,"a ",A}'::char(3)[], true),
		   keys_array('{"",-}'::varchar(12)[], false), keys_array('{é,É}'::name[], false), i % 5
	FROM generate_series(1, 700) AS i;
INSERT INTO libc_a VALUES
	(3001, '{}', '{}', '{}', '{}', 0), (3002, '{}', '{}', '{}', '{}', 1), (3003, NULL, NULL, NULL, NULL, 0),
	(3004, '{NULL}', '{NULL}', '{NULL}', '{NULL}', 0), (3005, '{NULL,NULL}', '{{NULL}}', '[0:0]={NULL}', '{{NULL,NULL}}', 0),
	(3006, '{""}', '{""}', '{""}', '{""}', 0), (3007, '{"",""}', '{{""}}', '[0:0]={""}', '[-1:0]={"",""}', 0);
ANALYZE libc_a;

SELECT * FROM four_orders('libc_a', 'v', 'v');
SELECT * FROM four_orders('libc_a', 'w', 'w');
SELECT * FROM four_orders('libc_a', 'm', 'm');
SELECT keys_rank('libc_a', 'b');
SELECT * FROM four_orders('keys_ranked', 'b', 'image');
SELECT * FROM four_orders('libc_a', 'v COLLATE "de_DE.utf8"', 'v');
SELECT * FROM four_orders('libc_a', 'v COLLATE "C.utf8"', 'v');
-- among others, of whatever kind
SELECT same_order('libc_a', 'v, id', 'id');
SELECT same_order('libc_a', 'v DESC, id DESC', 'id');
SELECT same_order('libc_a', 'n, v, id', 'id');
SELECT same_order('libc_a', 'n DESC NULLS LAST, v DESC NULLS LAST, b, w DESC, m, id', 'id');
SELECT same_order('libc_a', 'v[1], v, id', 'id');
SELECT same_order('libc_a', 'v[1:1], v[2:3] DESC NULLS LAST, id', 'id');
SELECT same_order('libc_a', 'left(v[1], 1) COLLATE "C", w, v[1] COLLATE "de_DE.utf8" DESC, id', 'id');
SELECT same_order('libc_a', 'v COLLATE "C.utf8" NULLS FIRST, v DESC, w, id', 'id');
SELECT same_order('libc_a', 'v, id::numeric', 'id');
SELECT same_order('libc_a', 'v, b COLLATE "C", ARRAY[id]', 'id');
-- behind what is in order by its bytes
SELECT same_order('libc_a', 'ARRAY[n], v, id', 'id');
SELECT same_order('libc_a', 'b COLLATE "C", v, id', 'id');

-- domains; and arrays of arrays, through one
CREATE DOMAIN libc_word AS text COLLATE "de_DE.utf8";
CREATE DOMAIN libc_list AS text[] COLLATE "en_US.utf8" CHECK (cardinality(VALUE) < 5000);
SELECT same_order('(SELECT id, v::libc_list AS v FROM libc_a) s', 'v DESC, id', 'id');
SELECT same_order('(SELECT id, v::libc_word[] AS v FROM libc_a) s', 'v COLLATE "en_US.utf8", v COLLATE "de_DE.utf8" DESC, id', 'id');
CREATE TABLE libc_nested (id int, v libc_list[] COLLATE "en_US.utf8");
WITH e AS (SELECT v::libc_list AS v FROM libc_a WHERE id BETWEEN 2001 AND 2015 OR id BETWEEN 3003 AND 3006 OR id < 4)
INSERT INTO libc_nested
	SELECT row_number() OVER (), v
	FROM (SELECT ARRAY[v] FROM e UNION ALL SELECT ARRAY[x.v, y.v] FROM e x, e y
		  UNION ALL SELECT ARRAY[x.v, y.v, x.v] FROM e x, e y) AS nested (v);
INSERT INTO libc_nested VALUES (1001, '{}'), (1002, NULL), (1003, '{NULL}'), (1004, '{"{}"}'), (1005, '{"{}","{}"}'), (1006, '{"{NULL}"}');
SELECT * FROM four_orders('libc_nested', 'v', 'v');
SELECT same_order('libc_nested', 'v DESC, id', 'id');
SELECT same_order('libc_nested', 'id % 2, v, v[1]::text COLLATE "en_US.utf8", id', 'id');

-- short headers, compressed, out of line, built on the way; too long for a key, which some
-- are by one element, some by many
CREATE TABLE libc_long_a (id int, v text[] COLLATE "en_US.utf8");
INSERT INTO libc_long_a SELECT i, ARRAY[md5((i / 4)::text), left('Aaáä', i % 4 + 1), md5(i::text)] FROM generate_series(1, 3000) AS i;
INSERT INTO libc_long_a SELECT 10000 + i, ARRAY['m', repeat('word ', 560 + i), 'x'] FROM generate_series(1, 60) AS i;
INSERT INTO libc_long_a SELECT 20000 + i, ARRAY['M', repeat('word ', 560 + 20 * i), 'x'] FROM generate_series(1, 60) AS i;
ALTER TABLE libc_long_a ALTER v SET STORAGE external;
INSERT INTO libc_long_a SELECT 30000 + i, array_fill('b-' || i % 3, ARRAY[500 + 40 * i]) || left('bBb', i % 3 + 1) FROM generate_series(1, 40) AS i;
INSERT INTO libc_long_a SELECT 40000 + i, array_fill('c'::text, ARRAY[1600 + i]) || chr(44032 + i * 7 % 11) FROM generate_series(1, 60) AS i;
INSERT INTO libc_long_a SELECT 50000 + i, array_fill(''::text, ARRAY[2725 + i]) FROM generate_series(1, 12) AS i;
INSERT INTO libc_long_a SELECT 60000 + i, array_fill(NULL::text, ARRAY[8182 + i]) || ARRAY[NULL, 'z'] FROM generate_series(1, 12) AS i;
INSERT INTO libc_long_a SELECT 70000 + i, ARRAY['e', repeat('long', 40000) || i % 2, 'x' || i] FROM generate_series(1, 4) AS i;
INSERT INTO libc_long_a VALUES (80001, NULL), (80002, '{}');
ANALYZE libc_long_a;
SELECT same_order('libc_long_a', 'v DESC', 'md5(v::text)');
SELECT same_order('libc_long_a', 'v, id', 'id');
SELECT same_order('libc_long_a', 'id % 3, v DESC, id', 'id');
SELECT same_order('(SELECT id, v::char(900)[] AS v FROM libc_long_a WHERE id % 10 = 1 AND id < 70000) s', 'v, id', 'id');
SELECT same_order('(SELECT id, v || ''x''::text AS v FROM libc_long_a WHERE id % 7 = 1 OR id > 10000) s', 'v, id', 'id');
SELECT same_order('(SELECT min(id) AS id, array_agg(v[2] ORDER BY id) AS v FROM libc_long_a WHERE cardinality(v) = 3 GROUP BY id / 5) s', 'v, id', 'id');

-- what takes sorted rows: a query's rows with gpusort off and on
CREATE FUNCTION same_rows(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	stock text[] := stock_rows(query);
BEGIN
	PERFORM set_config('gpusort.force', 'on', true);
	PERFORM set_config('gpusort.min_rows', '0', true);
	RETURN format('%s, %s', coalesce(rows_differ(query_rows(query), stock), 'same rows'),
				  CASE WHEN keys_taken(query) THEN 'gpusort' ELSE 'postgres' END);
END
$$;
SET enable_hashagg = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT same_rows('SELECT DISTINCT v FROM libc_a ORDER BY v');
SELECT same_rows('SELECT DISTINCT ON (v COLLATE "de_DE.utf8") v, id FROM libc_a ORDER BY v COLLATE "de_DE.utf8", id DESC');
SELECT same_rows('SELECT w, count(*), min(id) FROM libc_a GROUP BY w ORDER BY w');
SELECT same_rows('SELECT id, r FROM (SELECT id, rank() OVER (ORDER BY v) AS r FROM libc_a) x ORDER BY id');
SELECT same_rows('SELECT id, r, d, c FROM (SELECT id, rank() OVER w AS r, dense_rank() OVER w AS d, count(*) OVER w AS c
				  FROM libc_a WINDOW w AS (PARTITION BY n ORDER BY m DESC)) x ORDER BY id');
SELECT same_rows('SELECT count(*), sum(a.id), sum(b.id) FROM libc_a a JOIN libc_a b ON a.v = b.v');
SELECT same_rows('SELECT v FROM libc_a UNION SELECT w::text[] COLLATE "en_US.utf8" FROM libc_a ORDER BY 1');
SELECT same_rows('SELECT v FROM libc_long_a EXCEPT SELECT v FROM libc_long_a WHERE id % 2 = 0 ORDER BY 1');

-- on the device, with cut keys; fed by workers as well
SET gpusort.force = on;
SET gpusort.min_rows = 0;
SET max_parallel_workers_per_gather = 0;
SELECT gpusort_stats_reset();
CREATE FUNCTION explain_check(query text) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT regexp_replace(line, 'Settled: \d+', 'Settled: N')
	FROM explain_lines(query, 'Sort Key|Device|Fallback|Rows S') AS line;
$$;
SELECT explain_check('SELECT v FROM libc_a ORDER BY v');
SELECT explain_check('SELECT v FROM libc_long_a ORDER BY v DESC');
SELECT device_sorts, fallbacks FROM gpusort_stats;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
ALTER TABLE libc_a SET (parallel_workers = 2);
ALTER TABLE libc_long_a SET (parallel_workers = 2);
SELECT same_order('libc_a', 'v, id', 'id');
SELECT same_order('libc_a', 'w DESC, v, id', 'id');
SELECT same_order('libc_long_a', 'v, id', 'id');
SELECT fallbacks FROM gpusort_stats;

DROP TABLE libc_words, libc_a, libc_nested, libc_long_a, keys_ranked, keys_direction;
DROP DOMAIN libc_word, libc_list;
DROP FUNCTION same_rows, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
DROP FUNCTION explain_check, explain_lines, keys_array, four_orders, same_order, keys_taken, keys_rank;
