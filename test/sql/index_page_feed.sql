--
-- Index builds feed the tuples of a page at once: which tuples an index has, their values and TIDs, on
-- pages of all kinds.
--
SET client_min_messages = warning;
CREATE SCHEMA index_page_feed;
SET search_path = index_page_feed, public;
\set ECHO none
\i sql/index_common.inc
\set ECHO all

-- columns of all alignments, dropped, added with a default and without, and NULLs
CREATE TABLE t (a bool, gone text, b int2, c "char", d int8, e text, f numeric, g uuid, h name, i int4, j text COLLATE "C", k float8)
	WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i % 3 = 0, repeat('x', i % 5), CASE WHEN i % 7 > 0 THEN i % 90 END, chr(65 + i % 20)::"char", i % 1000 * 10000000000,
	CASE WHEN i % 11 > 0 THEN md5((i % 400)::text) END, CASE WHEN i % 5 > 0 THEN i % 300 / 7.0 END, md5((i % 600)::text)::uuid, 'n' || i % 13,
	100 - i % 200, CASE WHEN i % 10 = 0 THEN repeat('x', i % 300) ELSE 'l' || i % 77 END, CASE WHEN i % 6 > 0 THEN i % 50 END
	FROM generate_series(1, 4000) AS i;
ALTER TABLE t DROP gone;
ALTER TABLE t ADD l int DEFAULT 42;
ALTER TABLE t ADD m text;
INSERT INTO t SELECT a, b, c, d, e, f, g, h, i, j, k, i % 30, left(e, 3) FROM t LIMIT 2000;
SELECT col, index_check(format('CREATE INDEX %%s ON t (%s)', col))
FROM unnest(ARRAY['i', 'k DESC', 'e, f', 'j', 'j DESC NULLS LAST, b', 'g, h', 'h, a, c', 'd) INCLUDE (f, e, b', 'c, i, i', 'l', 'm, i', 'i) INCLUDE (l',
				  'f NULLS FIRST, l DESC']) AS col;
VACUUM (FREEZE) t;
SELECT col, index_check(format('CREATE INDEX %%s ON t (%s)', col))
FROM unnest(ARRAY['i', 'k DESC', 'e, f', 'j', 'j DESC NULLS LAST, b', 'g, h', 'h, a, c', 'd) INCLUDE (f, e, b', 'c, i, i', 'l', 'm, i', 'i) INCLUDE (l',
				  'f NULLS FIRST, l DESC']) AS col;
-- defaults that are arrays, or long
ALTER TABLE t ADD n int[] DEFAULT '{3,1,3}', ADD o int[], ADD p text DEFAULT repeat('long ', 300);
SELECT index_check('CREATE INDEX %s ON t USING gin (n, o)');
SELECT index_check('CREATE INDEX %s ON t (p, i)');
-- whatever concerns more than columns comes from the scan
SELECT index_check('CREATE INDEX %s ON t (i, (b + 1))');
SELECT index_check('CREATE INDEX %s ON t (i) WHERE b > 30');

-- values that are compressed, out of line, or too large for a tuple as they are
DROP TABLE t;
CREATE TABLE t (a int, b text COLLATE "C", c text COLLATE "C", d bytea) WITH (autovacuum_enabled = off);
ALTER TABLE t ALTER c SET STORAGE EXTERNAL, ALTER d SET STORAGE PLAIN;
INSERT INTO t SELECT i, repeat(md5((i % 3)::text), i % 300), left(repeat(md5((i / 3)::text), 80), i * 3 % 2600), decode(repeat('ab', i % 200), 'hex')
	FROM generate_series(1, 1000) AS i;
VACUUM t;
SELECT index_check('CREATE INDEX %s ON t (b)');
SELECT index_check('CREATE INDEX %s ON t (c DESC, a)');
SELECT index_check('CREATE INDEX %s ON t (d, c)');
SELECT index_check('CREATE UNIQUE INDEX %s ON t (a) INCLUDE (b, d)');

-- HOT chains: their roots, and what is dead, locked, or was not to be
DROP TABLE t;
CREATE TABLE t (a int, b text, c int) WITH (fillfactor = 60, autovacuum_vacuum_threshold = 1000000, autovacuum_vacuum_insert_threshold = -1,
											autovacuum_analyze_threshold = 1000000);
INSERT INTO t SELECT i, md5((i / 2)::text), 0 FROM generate_series(1, 3000) AS i;
CREATE INDEX t_a ON t (a);
CREATE FUNCTION check_all() RETURNS TABLE (index text, result text, tuples bigint[], indcheckxmin bool[]) LANGUAGE plpgsql AS $$
BEGIN
	FOREACH index IN ARRAY ARRAY['UNIQUE INDEX %s ON t (a)', 'INDEX %s ON t (b)', 'INDEX %s ON t (c, b) INCLUDE (a)'] LOOP
		result := index_check('CREATE ' || index);
		SELECT array_agg(reltuples ORDER BY relname) INTO tuples FROM pg_class WHERE relname IN ('t', 'i_stock', 'i_ours');
		SELECT array_agg(i.indcheckxmin ORDER BY relname) INTO indcheckxmin
		FROM pg_index AS i JOIN pg_class ON pg_class.oid = indexrelid WHERE relname IN ('i_stock', 'i_ours');
		RETURN NEXT;
	END LOOP;
END
$$;
UPDATE t SET c = c + 1 WHERE a % 5 = 0;
DELETE FROM t WHERE a % 7 = 0;
SELECT * FROM check_all();
VACUUM t;
SELECT * FROM check_all();
-- chains whose root is a redirect, and pages that are all-visible and others
UPDATE t SET c = c + 1 WHERE a % 10 = 0 AND a < 1000;
SELECT * FROM check_all();
VACUUM t;
INSERT INTO t SELECT i, md5(i::text), 1 FROM generate_series(7, 1400, 7) AS i;
DELETE FROM t WHERE a BETWEEN 2000 AND 2100;
BEGIN;
UPDATE t SET c = c + 1 WHERE a % 11 = 0;
DELETE FROM t WHERE a % 4 = 0;
INSERT INTO t SELECT i, md5(i::text), 1 FROM generate_series(1, 3000) AS i;
ROLLBACK;
BEGIN;
SELECT count(*) FROM (SELECT FROM t WHERE a % 6 = 0 FOR UPDATE) AS locked;
SAVEPOINT s;
SELECT count(*) FROM (SELECT FROM t WHERE a % 9 = 0 FOR KEY SHARE) AS locked;
UPDATE t SET c = c + 1 WHERE a % 18 = 0;
ROLLBACK TO s;
SELECT * FROM check_all();
COMMIT;
SELECT * FROM check_all();
-- rows of the building transaction itself
BEGIN;
INSERT INTO t SELECT i, md5(i::text), 1 FROM generate_series(3001, 5000) AS i;
SELECT * FROM check_all();
UPDATE t SET c = c + 1 WHERE a % 3 = 0;
DELETE FROM t WHERE a % 8 = 0;
SELECT * FROM check_all();
DROP INDEX t_a, i_stock, i_ours;
UPDATE t SET b = b || 'x', c = c + 1 WHERE a % 2 = 0;
SELECT * FROM check_all();
COMMIT;
SELECT * FROM check_all();
SELECT index_check('CREATE INDEX %s ON t (b, a)'), max_parallel_maintenance_workers
FROM unnest(ARRAY[1, 3]) AS max_parallel_maintenance_workers, LATERAL set_config('max_parallel_maintenance_workers', max_parallel_maintenance_workers::text, false);
ALTER TABLE t SET (parallel_workers = 2);
SELECT * FROM check_all();
ALTER TABLE t SET (parallel_workers = 0);

-- the pages of concurrent builds, which see what their snapshot sees
DROP INDEX i_stock, i_ours;
UPDATE t SET c = c + 1 WHERE a % 4 = 0;
DELETE FROM t WHERE a % 9 = 1;
SET gpusort.index_build = off;
CREATE INDEX CONCURRENTLY i_stock ON t (b, c) INCLUDE (a);
SET gpusort.index_build = on;
SELECT index_builds AS before FROM gpusort_stats \gset
CREATE INDEX CONCURRENTLY i_ours ON t (b, c) INCLUDE (a);
SELECT index_builds - :before AS builds, index_difference('i_stock', 'i_ours') FROM gpusort_stats;
ALTER TABLE t SET (parallel_workers = 2);
REINDEX INDEX CONCURRENTLY i_ours;
SELECT index_builds - :before AS builds, index_difference('i_stock', 'i_ours') FROM gpusort_stats;
ALTER TABLE t SET (parallel_workers = 0);

-- duplicates, on all-visible pages and others, and those that do not count
DROP INDEX i_stock, i_ours;
VACUUM (FREEZE) t;
INSERT INTO t VALUES (2001, 'no', 0), (2001, 'such', 0);
CREATE UNIQUE INDEX i_ours ON t (a);
VACUUM (FREEZE) t;
CREATE UNIQUE INDEX i_ours ON t (a);
DELETE FROM t WHERE a = 2001;
CREATE UNIQUE INDEX i_ours ON t (a);
DROP INDEX i_ours;

-- the rows that statistics count
CREATE FUNCTION index_tuples_read(on_off text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	before bigint := pg_stat_get_xact_tuples_returned('t'::regclass);
BEGIN
	PERFORM set_config('gpusort.index_build', on_off, true);
	CREATE INDEX i_read ON t (b);
	DROP INDEX i_read;
	RETURN pg_stat_get_xact_tuples_returned('t'::regclass) - before;
END
$$;
SELECT index_tuples_read('off') AS stock \gset
SELECT index_tuples_read('on') AS ours \gset
SELECT :ours = :stock AS same_count, :ours >= count(*) AS all_rows FROM t;

-- a scan that is not where it should be is an error: one of all tuples, and one of those that a snapshot shows
CREATE TABLE guarded AS SELECT i AS a FROM generate_series(1, 3000) AS i;
SET gpusort.fault = 'page_repeated';
CREATE INDEX i_guarded ON guarded (a);
SET gpusort.fault = 'page_repeated:3';
CREATE INDEX i_guarded ON guarded (a);
SET gpusort.fault = 'page_ahead:2';
CREATE INDEX i_guarded ON guarded (a);
SET gpusort.fault = 'page_repeated:2';
CREATE INDEX CONCURRENTLY i_guarded ON guarded (a);
DROP INDEX i_guarded;
SET gpusort.fault = 'page_ahead:2';
CREATE INDEX CONCURRENTLY i_guarded ON guarded (a);
RESET gpusort.fault;
DROP SCHEMA index_page_feed CASCADE;
