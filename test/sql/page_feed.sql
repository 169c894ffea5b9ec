--
-- Scans of tables that are fed page by page, and keys that the device makes: tables of all
-- shapes, with gpusort off and forced on, serially and in parallel.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/compare_modes.inc
\set ECHO all
SET gpusort.min_rows = 100;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SET work_mem = '64kB';

-- the sum of a number in a plan's lines
CREATE FUNCTION plan_number(query text, name text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	line text;
	n int := 0;
BEGIN
	SET LOCAL gpusort.force = on;
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		n := n + coalesce(substring(line FROM name || ': (\d+)')::int, 0);
	END LOOP;
	RETURN n;
END
$$;
-- what sorts a query
CREATE FUNCTION sorted_by(query text) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN plan_lines(query, 'GpuSort\M') > 0 THEN 'gpusort' ELSE 'PostgreSQL' END;
$$;
-- The same, and if that takes many chunks of 1 MB, how many.  Each of three processes may begin one, and rows with their
-- keys may take three times the pages that were read.
CREATE FUNCTION sorted_in_room(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	chunks int := 0;
	pages int := 0;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		chunks := chunks + coalesce(substring(line FROM 'Chunks: (\d+)')::int, 0);
		pages := greatest(pages, coalesce(substring(line FROM 'shared.* hit=(\d+)')::int, 0) + coalesce(substring(line FROM 'shared.* read=(\d+)')::int, 0));
	END LOOP;
	RETURN sorted_by(query) || CASE WHEN chunks > 3 + 3 * pages / 128 THEN format(', %s chunks of %s pages', chunks, pages) ELSE '' END;
END
$$;
CREATE FUNCTION check_feed(query text, told text DEFAULT 'sorted_in_room') RETURNS text LANGUAGE sql AS $$
	SELECT compare_modes(query, told);
$$;

-- did pages go whole?  Only dense ones do
CREATE FUNCTION table_pages(query text) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN plan_number(query, 'Table Pages') > 0 THEN 'some' ELSE 'none' END;
$$;

-- every alignment before the columns, NULLs, and each kind of key
CREATE TABLE pages_t (a bool, b int2, c "char", d int8, e text COLLATE "C", f float8, g uuid, h float4,
					  i oid, j bytea, k int4, l text COLLATE "C", m timestamptz, n varchar(10) COLLATE "C", o name);
INSERT INTO pages_t
	SELECT i % 3 = 0, CASE WHEN i % 7 > 0 THEN i % 90 - 45 END, chr(65 + i % 20)::"char", (i % 1000 - 500) * 10000000000,
		   CASE WHEN i % 11 > 0 THEN repeat(chr(97 + i % 5), i % 9) || md5((i % 400)::text) END,
		   CASE i % 6 WHEN 0 THEN 'NaN' WHEN 1 THEN -0.0 WHEN 2 THEN '-Infinity' WHEN 3 THEN NULL ELSE i % 50 - 25 END,
		   md5((i % 600)::text)::uuid, CASE i % 5 WHEN 0 THEN 'Infinity' WHEN 1 THEN 0 WHEN 2 THEN -0.0 ELSE i % 30 END,
		   4294967295 - i % 100, CASE WHEN i % 4 > 0 THEN decode(md5((i % 300)::text), 'hex') END, 100 - i % 200,
		   CASE WHEN i % 10 = 0 THEN repeat('x', i % 300) ELSE 'l' || i % 77 END, '2020-01-01'::timestamptz + i % 333 * interval '1 hour',
		   CASE WHEN i % 3 > 0 THEN (i % 40)::text END, 'n' || i % 13
	FROM generate_series(1, 4000) AS i;
SELECT col, check_feed(format('SELECT t.* FROM pages_t t ORDER BY %s, t::text', col))
FROM unnest(ARRAY['e', 'e DESC', 'e NULLS FIRST, d', 'd DESC, e', 'a, b, c', 'f, h', 'f DESC NULLS LAST, i DESC', 'g', 'g DESC, l', 'j', 'j DESC',
				  'h DESC, j', 'k, n', 'n, k', 'm DESC, e DESC', 'l, e, n', 'b NULLS FIRST, l DESC', 'o, k', 'c DESC, d']) AS col;

-- keys alone, and first rows; what the device makes is what the process makes
SELECT check_feed('SELECT e FROM pages_t ORDER BY e');
SELECT check_feed('SELECT l, k FROM pages_t ORDER BY k DESC, l');
SELECT check_feed('SELECT k, l, k AS again, a FROM pages_t ORDER BY l, k, a');
SELECT check_feed('SELECT DISTINCT l FROM pages_t ORDER BY l');
SELECT check_feed('SELECT count(DISTINCT e), count(DISTINCT g), count(DISTINCT k) FROM pages_t');
SELECT check_feed('SELECT DISTINCT ON (k) k, d, t::text FROM pages_t t ORDER BY k, d DESC, t::text');
SELECT check_feed('SELECT n, count(*), sum(k) FROM pages_t GROUP BY n ORDER BY n');

-- columns under another type or collation
SELECT check_feed('SELECT n::text, k::oid, l::bpchar FROM pages_t ORDER BY n::text COLLATE "C" DESC, l::bpchar, k');
SELECT check_feed('SELECT k, sum(d) OVER (ORDER BY n COLLATE "POSIX", k) FROM pages_t ORDER BY n COLLATE "POSIX", k');
SELECT check_feed('SELECT l COLLATE "POSIX", count(*) FROM pages_t GROUP BY 1 ORDER BY 1');

-- rows are the table's tuples, or columns of them
CREATE TABLE pages_two (id int, p text COLLATE "C");
INSERT INTO pages_two SELECT i, md5((i % 3000)::text) FROM generate_series(1, 5000) AS i;
SELECT table_pages('SELECT id, p FROM pages_two ORDER BY p, id');
SELECT table_pages('SELECT p FROM pages_two ORDER BY p');
SELECT check_feed('SELECT id, p FROM pages_two ORDER BY p, id');

-- conditions
SELECT table_pages('SELECT id, p FROM pages_two WHERE id % 10 > 0 ORDER BY p, id');
SELECT table_pages('SELECT id, p FROM pages_two WHERE id % 10 = 0 ORDER BY p, id');
SELECT table_pages('SELECT id, p FROM pages_two WHERE id % 10 > 0 AND random() >= 0 ORDER BY p, id');
SELECT table_pages('SELECT id, p FROM pages_two t WHERE (SELECT t.id % 10 > 0) ORDER BY p, id');
SELECT check_feed('SELECT id, p FROM pages_two WHERE id % 10 > 0 ORDER BY p, id');
SELECT check_feed('SELECT id, p FROM pages_two WHERE id % 10 = 0 ORDER BY p, id');
SELECT check_feed('SELECT p, id FROM pages_two WHERE id % 3 > 0 AND p > ''7'' ORDER BY p, id');
SELECT check_feed('SELECT id, p FROM pages_two WHERE id < 0 ORDER BY p, id');
SELECT check_feed('SELECT id, p FROM pages_two t WHERE ctid <> ''(3,5)'' AND tableoid = ''pages_two''::regclass AND (t.*) IS NOT NULL ORDER BY p, id');
SELECT check_feed('SELECT id, p FROM pages_two t WHERE EXISTS (SELECT 1 WHERE t.id % 10 > 0) ORDER BY p, id');
SELECT check_feed('SELECT x, s.* FROM generate_series(1, 3) AS x, LATERAL (SELECT id, p FROM pages_two WHERE id % (x + 1) = 0 ORDER BY p, id OFFSET 500 LIMIT 2) s');
SET max_parallel_workers_per_gather = 0;
SET gpusort.force = on;
SELECT id FROM pages_two WHERE 1 / (id - 4000) < 5 ORDER BY p, id;
RESET gpusort.force;
SELECT plan_number('SELECT id, p FROM pages_two WHERE id % 10 > 2 ORDER BY p, id', 'Rows Removed by Filter');
RESET max_parallel_workers_per_gather;

-- expressions and system columns come row by row
SELECT table_pages('SELECT id, p, length(p) FROM pages_two ORDER BY p, id');
SELECT check_feed('SELECT id, p, length(p) FROM pages_two ORDER BY p, id');
SELECT check_feed('SELECT ctid, p FROM pages_two ORDER BY p, ctid');
SELECT check_feed('SELECT tableoid::regclass, p, id FROM pages_two ORDER BY p, id');

-- deleted and updated rows, HOT chains, pages that are nearly empty
UPDATE pages_two SET p = p || 'u' WHERE id % 3 = 0;
DELETE FROM pages_two WHERE id BETWEEN 1000 AND 2500 AND id % 10 > 0;
SELECT check_feed('SELECT id, p FROM pages_two ORDER BY p, id');
VACUUM pages_two;
SELECT check_feed('SELECT id, p FROM pages_two ORDER BY p, id');
UPDATE pages_two SET id = id + 10000 WHERE id % 4 = 0;
SELECT check_feed('SELECT id, p FROM pages_two ORDER BY id DESC');

-- columns that were added, with and without a default, and dropped
ALTER TABLE pages_two ADD COLUMN q text COLLATE "C" DEFAULT 'new';
ALTER TABLE pages_two ADD COLUMN r int;
SELECT check_feed('SELECT id, p, q, r FROM pages_two ORDER BY q, r, p, id');
SELECT check_feed('SELECT * FROM pages_two ORDER BY r, id');
INSERT INTO pages_two SELECT i, 'v' || i % 10, 'q' || i % 7, i % 5 FROM generate_series(20000, 21000) AS i;
SELECT check_feed('SELECT * FROM pages_two ORDER BY q, r, p, id');
SELECT check_feed('SELECT r, q FROM pages_two ORDER BY r DESC, q');
ALTER TABLE pages_two DROP COLUMN p;
SELECT check_feed('SELECT * FROM pages_two ORDER BY q, r, id');
SELECT check_feed('SELECT * FROM pages_two ORDER BY id');

-- rows whose values are copied as they are, and on the same pages others: values that are NULL, have a long header, are
-- compressed or out of line, and tuples that are older than columns
CREATE TABLE pages_plain (id int, a int2, b text COLLATE "C", gone text, c int8, d text COLLATE "C", e bool, f varchar COLLATE "C", g uuid,
						  h text COLLATE "C");
ALTER TABLE pages_plain ALTER h SET STORAGE EXTERNAL;
CREATE PROCEDURE pages_plain_fill(first int) LANGUAGE sql AS $$
	INSERT INTO pages_plain (id, a, b, c, d, e, f, g, h)
	SELECT i, nullif(i % 17, 1), CASE i % 11 WHEN 0 THEN NULL WHEN 1 THEN repeat(md5((i % 70)::text), 5) WHEN 2 THEN '' ELSE left(md5(i::text), i % 20) END,
		   nullif(i % 19, 2), CASE i % 29 WHEN 0 THEN NULL WHEN 1 THEN repeat(md5((i % 7)::text), 90) ELSE 'd' || i % 33 END,
		   CASE WHEN i % 31 > 0 THEN i % 3 = 0 END, CASE WHEN i % 23 > 0 THEN repeat('f', i % 130) END, CASE WHEN i % 37 > 0 THEN md5((i % 50)::text)::uuid END,
		   CASE i % 41 WHEN 0 THEN NULL WHEN 1 THEN repeat('h', 3000 + i % 5) ELSE 'h' || i % 9 END
	FROM generate_series(first, first + 2999) AS i
$$;
CREATE FUNCTION check_plain(keys text[]) RETURNS TABLE (key text, whole text, columns text) LANGUAGE sql AS $$
	SELECT key, check_feed(format('SELECT * FROM pages_plain ORDER BY %s, id', key)),
		   check_feed(format('SELECT f, id, b, id AS again, g, e, a, c, d FROM pages_plain ORDER BY %s, id', key))
	FROM unnest(keys) AS key
$$;
CALL pages_plain_fill(1);
SELECT * FROM check_plain(ARRAY['a', 'b DESC', 'c NULLS FIRST', 'd', 'e, f', 'f DESC, b', 'g', 'b, d, f, a']);
ALTER TABLE pages_plain DROP gone, ADD i text COLLATE "C" DEFAULT 'new', ADD j int;
CALL pages_plain_fill(3001);
UPDATE pages_plain SET i = 'i' || id % 7, j = nullif(id % 8, 3) WHERE id % 10 < 5;
SELECT * FROM check_plain(ARRAY['a', 'b DESC', 'c NULLS FIRST', 'd', 'e, f', 'f DESC, b', 'g', 'b, d, f, a']);
SELECT check_feed('SELECT * FROM pages_plain ORDER BY h, id');
SELECT check_feed('SELECT * FROM pages_plain ORDER BY i DESC, j, b, id');
SELECT check_feed('SELECT j, id, h, i FROM pages_plain ORDER BY i, j DESC, id');
SELECT check_feed('SELECT id, f, b FROM pages_plain WHERE id % 20 > 13 ORDER BY f, b, id');
SELECT check_feed('SELECT * FROM pages_plain WHERE id % 20 = 13 ORDER BY f, b, id');
-- ... and rows that are too large for a device to make their keys, with tuples that are not
SELECT check_feed(format('SELECT b, id, %s FROM pages_plain WHERE id %% 9 = 0 ORDER BY b, id', string_agg('g AS g' || i, ', ')), 'sorted_by')
FROM generate_series(1, 600) AS i;

-- so many times a condition is evaluated; the function must not be volatile
CREATE SEQUENCE evaluations;
CREATE FUNCTION counted(ok boolean) RETURNS boolean STABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('evaluations'); RETURN ok; END $$;
CREATE FUNCTION evaluations(query text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	PERFORM setval('evaluations', 1, false);
	IF plan_number(query, 'Chunks') = 0 THEN
		RETURN NULL;
	END IF;
	RETURN nextval('evaluations') - 1;
END
$$;

-- tuples that are older than a column of the key, all of them or some: their pages are copied once
CREATE TABLE pages_old AS SELECT i AS id, i % 100 AS n FROM generate_series(1, 20000) AS i;
ALTER TABLE pages_old ADD COLUMN k int;
ALTER TABLE pages_old ADD COLUMN t text COLLATE "C";
SELECT check_feed('SELECT * FROM pages_old ORDER BY k, id DESC');
SELECT check_feed('SELECT * FROM pages_old WHERE n < 90 ORDER BY t, k NULLS FIRST, n, id');
SELECT evaluations('SELECT * FROM pages_old WHERE counted(n < 90) ORDER BY k, id');
INSERT INTO pages_old SELECT i, i % 50, CASE WHEN i % 4 > 0 THEN i % 30 END FROM generate_series(20001, 22000) AS i;
UPDATE pages_old SET t = 't' || id % 7 WHERE id % 5 = 0;
SELECT check_feed('SELECT * FROM pages_old ORDER BY k, id DESC');
SELECT check_feed('SELECT * FROM pages_old ORDER BY t DESC NULLS LAST, k DESC, id');
SELECT check_feed('SELECT t, k FROM pages_old WHERE n < 90 ORDER BY k, t, n, id');
SELECT check_feed('SELECT k, count(*), count(t) FROM pages_old GROUP BY k ORDER BY k');
SELECT evaluations('SELECT * FROM pages_old WHERE counted(n < 90) ORDER BY k, id');
-- ... with a default, also a long one
ALTER TABLE pages_old ADD COLUMN d name DEFAULT 'default';
ALTER TABLE pages_old ADD COLUMN l text COLLATE "C" DEFAULT repeat('long ', 40);
SELECT check_feed('SELECT d, k, id FROM pages_old ORDER BY d, k, id');
SELECT check_feed('SELECT md5(l), d, id FROM (SELECT l, d, id FROM pages_old WHERE n < 10 ORDER BY l, d DESC, id OFFSET 0) s');
INSERT INTO pages_old SELECT i, i % 50, i, 't', 'd' || i, 'l' || i FROM generate_series(23001, 24000) AS i;
SELECT check_feed('SELECT id, d, length(l) FROM (SELECT id, d, l FROM pages_old WHERE n < 10 ORDER BY l DESC, id OFFSET 0) s');
SELECT evaluations('SELECT id, d, t FROM pages_old WHERE counted(n < 90) ORDER BY d, id');
-- ... one that is too large for a chunk
CREATE TABLE pages_big_default AS SELECT i AS id FROM generate_series(1, 30) AS i;
ALTER TABLE pages_big_default ADD COLUMN l text DEFAULT repeat('l', 600000), ADD COLUMN m text DEFAULT repeat('m', 600000);
INSERT INTO pages_big_default SELECT i, 'l' || i FROM generate_series(100, 300) AS i;
SELECT check_feed('SELECT id, md5(l), md5(m) FROM (SELECT * FROM pages_big_default ORDER BY id DESC OFFSET 0) s', 'sorted_by');
SELECT check_feed('SELECT id, md5(m) FROM (SELECT m, id FROM pages_big_default ORDER BY id DESC OFFSET 0) s', 'sorted_by');

-- libc texts whose keys are cut off: all of a page, or some
CREATE TABLE pages_libc (id int, t text COLLATE "en_US.utf8", n int);
INSERT INTO pages_libc SELECT i, md5(i::text) || repeat(' long', CASE WHEN i > 200 THEN 2500 ELSE 0 END), i % 10 FROM generate_series(1, 2600) AS i;
SELECT regexp_replace(check_feed('SELECT id, md5(t) FROM (SELECT * FROM pages_libc ORDER BY t, id OFFSET 0) s'), ', \d+ chunks of \d+ pages', '', 'g');
SELECT regexp_replace(check_feed('SELECT id, md5(t) FROM (SELECT t, id FROM pages_libc WHERE n > 0 ORDER BY t, id OFFSET 0) s'), ', \d+ chunks of \d+ pages', '', 'g');
INSERT INTO pages_libc SELECT i, md5(i::text) || repeat(' long', CASE i % 3 WHEN 0 THEN 2500 ELSE i % 5 END), i % 10 FROM generate_series(2601, 4000) AS i;
SELECT regexp_replace(check_feed('SELECT id, md5(t) FROM (SELECT * FROM pages_libc ORDER BY t, id OFFSET 0) s'), ', \d+ chunks of \d+ pages', '', 'g');
SELECT regexp_replace(check_feed('SELECT id, md5(t) FROM (SELECT t, id FROM pages_libc WHERE n > 0 ORDER BY t, id OFFSET 0) s'), ', \d+ chunks of \d+ pages', '', 'g');
SELECT regexp_replace(check_feed('SELECT id, md5(t) FROM (SELECT * FROM pages_libc WHERE n > 0 UNION ALL SELECT * FROM pages_libc WHERE n = 7 ORDER BY t, id OFFSET 0) s'), ', \d+ chunks of \d+ pages', '', 'g');
SELECT evaluations('SELECT * FROM pages_libc WHERE counted(n > 0) ORDER BY t, id');
SET max_parallel_workers_per_gather = 0;
SELECT plan_number('SELECT * FROM pages_libc WHERE n > 0 ORDER BY t, id', 'Rows Removed by Filter');
RESET max_parallel_workers_per_gather;
CREATE TABLE pages_lateral AS SELECT id, t FROM pages_libc WHERE id % 20 = 0;
SELECT check_feed('SELECT x, s.id FROM generate_series(1, 3) AS x, LATERAL (SELECT id, t FROM pages_lateral WHERE id > x ORDER BY t, id OFFSET x * 10 LIMIT 100) s');

-- a scan that is not where it should be is an error, whatever PostgreSQL's next release keeps of it
SET gpusort.force = on;
SET max_parallel_workers_per_gather = 0;
SET gpusort.fault = 'page_repeated';
SELECT * FROM pages_two ORDER BY id;
SET gpusort.fault = 'page_repeated:3';
SELECT * FROM pages_two WHERE id > 0 ORDER BY id;
SET gpusort.fault = 'page_ahead';
SELECT * FROM pages_two ORDER BY id;
SET gpusort.fault = 'page_ahead:4';
SELECT * FROM pages_two WHERE id > 0 ORDER BY id;
RESET gpusort.fault;
RESET gpusort.force;
RESET max_parallel_workers_per_gather;

-- keys that are compressed or out of line, and rows too large for a chunk
CREATE TABLE pages_long (id int, p text COLLATE "C", q text);
INSERT INTO pages_long SELECT i, CASE i % 4 WHEN 0 THEN repeat(md5((i % 50)::text), 200) ELSE md5(i::text) END, 'q' FROM generate_series(1, 1500) AS i;
INSERT INTO pages_long SELECT i, (SELECT string_agg(md5((i * j)::text), '') FROM generate_series(1, 300) AS j), NULL FROM generate_series(2000, 2040) AS i;
SELECT check_feed('SELECT id, md5(p), q FROM (SELECT * FROM pages_long ORDER BY p, id) s');
SELECT check_feed('SELECT id, length(p) FROM (SELECT p, id FROM pages_long ORDER BY p, id) s');
-- values before the key that are, which the device steps over
CREATE TABLE pages_before AS SELECT id, p AS long, md5(id::text) COLLATE "C" AS p FROM pages_long;
SELECT gpusort_stats_reset();
SELECT check_feed('SELECT id, md5(long), p FROM (SELECT * FROM pages_before ORDER BY p) s');
SELECT check_feed('SELECT id, length(long) FROM (SELECT p, long, id FROM pages_before ORDER BY p) s');
SELECT fallbacks FROM gpusort_stats;
ALTER TABLE pages_long ALTER p SET STORAGE PLAIN;
INSERT INTO pages_long SELECT i, repeat(md5(i::text), 230), 'plain' FROM generate_series(3000, 3060) AS i;
SELECT check_feed('SELECT id, md5(p), q FROM (SELECT * FROM pages_long ORDER BY p, id) s');

-- keys of both kinds in the pages of many chunks
CREATE TABLE pages_mixed (id int, p text COLLATE "C");
INSERT INTO pages_mixed SELECT i, CASE i % 20 WHEN 0 THEN repeat('x', 3300) || lpad(i::text, 6, '0') ELSE md5(i::text) END FROM generate_series(1, 60000) AS i;
SELECT check_feed('SELECT id FROM (SELECT id, p FROM pages_mixed ORDER BY p OFFSET 0) s', 'sorted_by');

-- more columns before the key than a device knows, and a key of many columns
DO $$
BEGIN
	EXECUTE format('CREATE TABLE pages_wide (%s, p text COLLATE "C")', (SELECT string_agg(format('c%s int', i), ', ') FROM generate_series(1, 60) AS i));
	EXECUTE format('INSERT INTO pages_wide SELECT %s, md5(i::text) FROM generate_series(1, 1000) AS i', (SELECT string_agg(format('i %% %s', i + 1), ', ') FROM generate_series(1, 60) AS i));
END
$$;
SELECT check_feed('SELECT * FROM pages_wide ORDER BY p');
SELECT check_feed('SELECT * FROM pages_wide ORDER BY c1, c2, c3, c4, c5, c6, c7, c8, c9, p');
SELECT check_feed('SELECT c7, c60 FROM pages_wide ORDER BY c7, c60');

-- orders whose keys processes make: languages, numbers of any length, char(n)
CREATE TABLE pages_kinds (t text COLLATE "en-x-icu", n numeric, c char(12) COLLATE "C", i interval, id int);
INSERT INTO pages_kinds SELECT chr(65 + i % 50) || i % 90, (i % 500 - 250) / 7.0, 'c' || i % 33, i % 44 * interval '1 day 3 hours', i FROM generate_series(1, 3000) AS i;
SELECT col, check_feed(format('SELECT * FROM pages_kinds ORDER BY %s, id', col)) FROM unnest(ARRAY['t', 't DESC', 'n', 'n DESC, t', 'c', 'i, n']) AS col;

-- the tables below a partitioned one, and inherited ones
CREATE TABLE pages_part (id int, p text COLLATE "C") PARTITION BY RANGE (id);
CREATE TABLE pages_part_1 PARTITION OF pages_part FOR VALUES FROM (0) TO (2000);
CREATE TABLE pages_part_2 (p text COLLATE "C", gone int, id int);
ALTER TABLE pages_part_2 DROP COLUMN gone;
ALTER TABLE pages_part ATTACH PARTITION pages_part_2 FOR VALUES FROM (2000) TO (6000);
INSERT INTO pages_part SELECT i, md5((i % 900)::text) FROM generate_series(1, 5000) AS i;
SELECT check_feed('SELECT * FROM pages_part ORDER BY p, id');
SELECT table_pages('SELECT * FROM pages_part ORDER BY p, id');
SELECT check_feed('SELECT p FROM pages_part WHERE id % 5 > 1 ORDER BY p');
SELECT check_feed('SELECT id, q FROM pages_two UNION ALL SELECT 7, ''x'' UNION ALL SELECT id, p FROM pages_part_1 WHERE id > 10 ORDER BY q, id');
SELECT check_feed('SELECT p, id FROM (SELECT p, id FROM pages_before UNION ALL (SELECT p, id FROM pages_part WHERE id > 10 OFFSET 0)) s ORDER BY p, id');

-- a scan that is run again
SELECT check_feed('SELECT x, s.* FROM generate_series(1, 3) AS x, LATERAL (SELECT id, p FROM pages_part_1 ORDER BY p, id OFFSET x * 600 LIMIT 2) s');
-- ... many times, which takes no more memory each time
CREATE FUNCTION executor_bytes(x int) RETURNS bigint VOLATILE LANGUAGE sql AS $$
	SELECT sum(used_bytes)::bigint FROM pg_backend_memory_contexts WHERE name = 'ExecutorState' AND x % 100 = 1;
$$;
SET gpusort.force = on;
SET max_parallel_workers_per_gather = 0;
SELECT max(bytes) - min(bytes) < 30000, sum(id) > 0
FROM (SELECT executor_bytes(x) AS bytes, id FROM generate_series(1, 401) AS x, LATERAL (SELECT id FROM pages_part_1 WHERE id <> x ORDER BY p OFFSET 1990 LIMIT 1) s) s;
RESET gpusort.force;
RESET max_parallel_workers_per_gather;
DROP FUNCTION executor_bytes;

-- rows are counted as before
SELECT pg_stat_force_next_flush();
SELECT seq_tup_read AS before FROM pg_stat_user_tables WHERE relname = 'pages_kinds' \gset
SET gpusort.force = on;
SELECT count(*) FROM (SELECT * FROM pages_kinds ORDER BY id OFFSET 0) s;
SELECT pg_stat_force_next_flush();
SELECT seq_tup_read - :before FROM pg_stat_user_tables WHERE relname = 'pages_kinds';

DROP FUNCTION counted, evaluations, check_plain, check_feed, sorted_in_room, sorted_by, table_pages, plan_number, compare_modes, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
DROP TABLE pages_t, pages_two, pages_plain, pages_before, pages_long, pages_wide, pages_kinds, pages_part, pages_old, pages_big_default, pages_libc, pages_lateral;
DROP PROCEDURE pages_plain_fill;
DROP SEQUENCE evaluations;
