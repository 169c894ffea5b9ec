--
-- Text under libc collations that is longer than what a key can hold, or has no key.
-- Rows without a key are put aside, and merged into the device's rows.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/explain_lines.inc
\i sql/keys_common.inc
\set ECHO all

-- 10000 short texts, and long ones that stand between them, before and behind
-- all, agree with short ones as far as these go, with each other up to the
-- end, or altogether
CREATE TABLE long_t (id int, v text COLLATE "en_US.utf8", n int);
INSERT INTO long_t SELECT i, md5(i::text), i % 3 FROM generate_series(1, 10000) AS i;
INSERT INTO long_t SELECT 20000 + i, repeat('word ', 600) || i % 40, i % 3 FROM generate_series(1, 100) AS i;
INSERT INTO long_t SELECT 30000 + length, repeat('a', length), 0
	FROM unnest(ARRAY[3000, 6000, 7160, 7165, 7166, 7167, 7168, 7170, 8185, 8188, 8190, 8191, 8192, 8193, 8200]) AS length;
CREATE TABLE longer_t (LIKE long_t);
INSERT INTO longer_t SELECT * FROM long_t;
INSERT INTO longer_t SELECT 40000 + i, md5(i::text) || repeat(' X', 6000) || i, 0 FROM generate_series(1, 20) AS i;
INSERT INTO longer_t SELECT 50000 + i, repeat('Long-', 4000) || CASE i % 4 WHEN 0 THEN 'a' WHEN 1 THEN 'A' WHEN 2 THEN 'á' ELSE '' END, i % 3
	FROM generate_series(1, 40) AS i;
INSERT INTO longer_t SELECT 60000 + i, (SELECT string_agg(md5((i * j)::text), ' ') FROM generate_series(1, 400) AS j), i % 3
	FROM generate_series(1, 20) AS i;
INSERT INTO longer_t VALUES
	(70001, repeat('0', 1000000), 0), (70002, repeat('zzzz', 250000), 0), (70003, repeat('zzzz', 250000) || 'Z', 0),
	(70004, repeat('-', 20000), 0),
	(70007, E'\x01' || repeat('q', 9000), 0), (70008, NULL, 0), (70009, '', 0);
-- texts without a key: some are equal, and some differ behind the marks
INSERT INTO longer_t SELECT 80000 + i, chr(97 + i % 3) || repeat(E'\u0301', 17000) || i % 2, i % 3 FROM generate_series(1, 8) AS i;
ANALYZE long_t, longer_t;

-- all have keys, then some have none
SELECT * FROM four_orders('long_t', 'v', 'md5(v)');
SELECT * FROM four_orders('longer_t', 'v', 'md5(v)');
SELECT same_order('longer_t', 'v, id', 'id');
SELECT same_order('longer_t', 'v DESC, id DESC', 'id');
SELECT same_order('longer_t', 'ARRAY[n::text, v], id', 'id');
SELECT same_order('longer_t', 'ROW(n, v), id', 'id');
SELECT same_order('longer_t', 'n, v, id', 'id');
SELECT same_order('longer_t', 'n DESC, v DESC NULLS LAST, id', 'id');
SELECT same_order('(SELECT id, v::char(20000) AS v FROM longer_t WHERE id % 10 = 1) s', 'v, id', 'id');
-- a key may be too long because of what follows the text
SELECT same_order('longer_t', 'n::text COLLATE "en_US.utf8", v COLLATE "C", id', 'id');
-- nothing but long ones, the first half of them the same
SELECT same_order('(SELECT id, repeat(''prefix'', 1500) || v AS v FROM longer_t WHERE id < 100) s', 'v, id', 'id');
-- values that are part of the row, some too large for a chunk
SELECT same_order('(SELECT id, v || '''' AS v FROM longer_t WHERE id % 7 = 1 OR id > 40000) s', 'v, id', 'id');

-- few compared, and on the device
SET gpusort.force = on;
SET gpusort.min_rows = 0;
SET max_parallel_workers_per_gather = 0;
SELECT gpusort_stats_reset();
CREATE FUNCTION explain_long(query text) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT explain_lines(query, 'Device:|Fallback|Rows S');
$$;
SELECT explain_long('SELECT v FROM long_t ORDER BY v');
SELECT explain_long('SELECT v FROM longer_t ORDER BY v');
SELECT explain_long('SELECT repeat(v, 300) COLLATE "en_US.utf8" AS v FROM long_t WHERE id < 100 ORDER BY v');
SELECT device_sorts, fallbacks FROM gpusort_stats;
-- rows that are alone in their partition on the device, as the others are put aside
CREATE VIEW later_t AS
	SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY id % 80000 ORDER BY v, id) AS r FROM longer_t WHERE id <= 10000 OR id > 80000) AS s
	WHERE r > 1;
SELECT explain_long('TABLE later_t');
SELECT count(*) FROM later_t;
DROP VIEW later_t;
-- most rows are put aside, and stand singly among the others
SELECT same_order('(SELECT id, CASE WHEN id % 3 > 0 THEN repeat(v, 300) ELSE v END COLLATE "en_US.utf8" AS v FROM long_t WHERE id < 3000) s', 'v, id', 'id');

-- fed by workers as well
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
ALTER TABLE longer_t SET (parallel_workers = 2);
SELECT gpusort_stats_reset();
SELECT same_order('longer_t', 'v, id', 'id');
SELECT fallbacks FROM gpusort_stats;
SET max_parallel_workers_per_gather = 0;

-- backward, by a cursor, and mark and restore, by a merge join
CREATE FUNCTION walk(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c refcursor;
	r record;
	result text := '';
BEGIN
	OPEN c SCROLL FOR EXECUTE query;
	FOR pass IN 1 .. 2 LOOP
		LOOP
			FETCH c INTO r;
			EXIT WHEN NOT FOUND;
			result := result || ' ' || r.id;
		END LOOP;
		MOVE RELATIVE -50 FROM c;
		FOR i IN 1 .. 20 LOOP
			FETCH PRIOR FROM c INTO r;
			result := result || ' ' || r.id;
		END LOOP;
		MOVE ABSOLUTE 10000 FROM c;
	END LOOP;
	CLOSE c;
	RETURN md5(result);
END
$$;
SET gpusort.enabled = off;
CREATE TABLE stock_long AS
	SELECT walk('SELECT id FROM longer_t ORDER BY v, id') AS walked,
		(SELECT md5(string_agg(id::text, ' ')) FROM (SELECT id FROM longer_t ORDER BY v, id LIMIT 10500) s) AS limited,
		(SELECT count(*) || ' ' || sum(a.id) FROM longer_t a JOIN longer_t b ON a.v = b.v) AS joined;
SET gpusort.enabled = on;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT walk('SELECT id FROM longer_t ORDER BY v, id') = walked AS walked,
	(SELECT md5(string_agg(id::text, ' ')) FROM (SELECT id FROM longer_t ORDER BY v, id LIMIT 10500) s) = limited AS limited,
	(SELECT count(*) || ' ' || sum(a.id) FROM longer_t a JOIN longer_t b ON a.v = b.v) = joined AS joined
FROM stock_long;

DROP TABLE long_t, longer_t, stock_long, keys_direction;
DROP FUNCTION walk, explain_long, explain_lines, four_orders, same_order, keys_taken, keys_rank;
