--
-- GIN indexes built with gpusort are those that PostgreSQL builds in one process that has enough memory, to the byte.
--
SET client_min_messages = warning;
CREATE SCHEMA index_gin;
SET search_path = index_gin, public;
\set ECHO none
\i sql/index_common.inc
\set ECHO all
CREATE EXTENSION pg_trgm;
CREATE EXTENSION hstore;
CREATE EXTENSION intarray;
CREATE EXTENSION btree_gin;
CREATE TYPE gin_mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE gin_mood ADD VALUE 'content' BEFORE 'happy';

-- each value comes several times, beside NULL, empty values, and NULL elements
CREATE TABLE t (i int, h bigint, int2 int2[], int4 int4[], int8 int8[], oid oid[], float8 float8[], num numeric[], date date[], ts timestamptz[],
	uuid uuid[], enum gin_mood[], bytea bytea[], inet inet[], text_c text[] COLLATE "C", text_en text[] COLLATE "en_US.utf8",
	ts_vector tsvector, json jsonb, store hstore, txt text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, h, ARRAY[h % 100, i % 7, NULL], ARRAY[h % 4000, i % 3, i, i], ARRAY[h, i::int8 << 33, -i], ARRAY[abs(h % 900)::int, 4294967295],
	ARRAY[CASE h % 7 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN '0' ELSE (h % 1000) / 8.0 END::float8, 'inf'],
	ARRAY[CASE h % 7 WHEN 0 THEN 'NaN' WHEN 1 THEN 1.0 WHEN 2 THEN 1.00 ELSE (h % 1000) / 8.0 END::numeric, i],
	ARRAY[date '2026-11-25' + (h % 500)::int, 'infinity'], ARRAY[timestamptz '2026-11-25 00:00+00' + h % 5000 * interval '1 s'], ARRAY[m::uuid],
	ARRAY['ok', (ARRAY['sad', 'ok', 'happy', 'content'])[1 + abs(h % 4)]]::gin_mood[], ARRAY[decode(left(m, (2 * abs(h % 16))::int), 'hex'), ''],
	ARRAY[('10.' || abs(h % 4) || '.' || i % 256 || '.7/' || 20 + abs(h % 13))::inet], ARRAY[left(m, (h % 30)::int), 'x', ''],
	ARRAY[left(m, abs(h % 9)::int), upper(left(m, 4)), 'e-' || i % 50, U&'\00E9' || i % 30, ''],
	to_tsvector('simple', left(m, 6) || ' the word ' || i % 90), jsonb_build_object('a', i % 100, left(m, 2), ARRAY[i % 10, NULL], 'b', left(m, 1), 'c', true),
	hstore(left(m, 2), CASE WHEN i % 5 > 0 THEN 'v' || i % 40 END), left(m, abs(h % 33)::int) || ' ' || U&'\00FC\4E2D' || i % 20
FROM (SELECT i, hashint8extended(i % 3000, 7) AS h, md5((i % 3000)::text) AS m FROM generate_series(1, 6000) AS i) AS s;
DO $$
DECLARE
	col record;
	n int := 0;
BEGIN
	FOR col IN SELECT attname, format_type(atttypid, NULL) AS type FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 2 ORDER BY attnum LOOP
		EXECUTE format('UPDATE t SET %I = NULL WHERE i %% 29 = %s', col.attname, n % 29);
		IF col.type <> 'text' AND col.type <> 'jsonb' THEN
			EXECUTE format('UPDATE t SET %I = %L WHERE i %% 31 = %s', col.attname, CASE WHEN col.type LIKE '%[]' THEN '{}' ELSE '' END, n % 31);
		END IF;
		n := n + 1;
	END LOOP;
END
$$;
VACUUM t;

SELECT attname, index_check(format('CREATE INDEX %%s ON t USING gin (%I)', attname))
FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 2 AND attname <> 'txt' ORDER BY attnum;
SELECT col, index_check(format('CREATE INDEX %%s ON t USING gin (%s)', col))
FROM unnest(ARRAY['json jsonb_path_ops', 'txt gin_trgm_ops', 'int4 gin__int_ops', 'text_c COLLATE "en_US.utf8"', 'text_en COLLATE "C"',
				  'i', 'h, txt', 'int4, text_c, json', 'txt gin_trgm_ops, int8', 'i, h, int2, int4', 'ts_vector, store, text_en',
				  '(int4 || i)', 'to_tsvector(''simple''::regconfig, txt)', 'int4) WITH (fastupdate = off']) AS col;
SELECT index_check('CREATE INDEX %s ON t USING gin (int4) WHERE i %% 3 = 0');
SELECT index_check('CREATE INDEX %s ON t USING gin (int4) WHERE i < 0');
-- compared by a function that keys do not know
SELECT index_check('CREATE INDEX %s ON t USING gin ((h::numeric))', false);

-- posting trees: keys, NULL values and empty values in every row, alone and beside others
DROP TABLE t;
CREATE TABLE t (i int, same int[], nulls int[], empty text[], null_keys int[]) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, ARRAY[7, i % 2, i, 7], CASE WHEN i % 5000 = 0 THEN ARRAY[i] END, CASE WHEN i % 3000 > 0 THEN '{}'::text[] END,
	CASE WHEN i % 3 = 0 THEN ARRAY[NULL, NULL, i % 2] WHEN i % 3 = 1 THEN '{}' END
	FROM generate_series(1, 40000) AS i;
SELECT col, index_check(format('CREATE INDEX %%s ON t USING gin (%s)', col))
FROM unnest(ARRAY['same', 'nulls', 'empty', 'null_keys', 'same, nulls, empty, null_keys']) AS col;
-- many rows of few keys, and a run of keys that grows the tree by several levels
SELECT index_check('CREATE INDEX %s ON t USING gin ((ARRAY[lpad(i::text, 900, ''k'')]))');

-- TIDs of one key that take more than maintenance_work_mem come in pieces, which fill pages otherwise
CREATE TABLE pieces AS SELECT i, ARRAY[7, i] AS key, CASE WHEN i % 2 = 0 THEN ARRAY[8, NULL] END AS nulls FROM generate_series(1, 300000) AS i;
SET maintenance_work_mem = '1MB';
SELECT index_builds AS before FROM gpusort_stats \gset
CREATE INDEX pieces_gin ON pieces USING gin (key, nulls);
SELECT index_builds - :before AS builds FROM gpusort_stats;
RESET maintenance_work_mem;
CREATE INDEX whole_gin ON pieces USING gin (key, nulls);
SELECT index_difference('pieces_gin', 'whole_gin') IS NOT NULL AS in_pieces;
DROP INDEX whole_gin;
SET enable_seqscan = off;
SELECT count(*), sum(i) FROM pieces WHERE key @> '{7}';
SELECT count(*), sum(i) FROM pieces WHERE nulls OPERATOR(pg_catalog.@>) '{8}';
RESET enable_seqscan;
DROP TABLE pieces;

-- each NULL of a value is the same entry
CREATE TABLE nulls AS SELECT array_fill(NULL::int, ARRAY[1000]) || i AS a FROM generate_series(1, 10) AS i;
SELECT rows AS before FROM gpusort_stats \gset
CREATE INDEX ON nulls USING gin (a);
SELECT rows - :before AS entries FROM gpusort_stats;
DROP TABLE nulls;

-- equal keys of one value that differ in bytes
CREATE TABLE equal_keys AS SELECT array_agg(make_interval(days => n * half, hours => 24 * n * (1 - half))) AS a, array_agg(round(n, half)) AS b
	FROM (SELECT i, i * 5 + (h & 3) AS n, (h >> 2) & 1 AS half FROM generate_series(1, 40) AS i, generate_series(1, 20) AS k, hashint4(i * 20 + k) AS h) AS s
	GROUP BY i ORDER BY i;
ALTER TABLE t RENAME TO t_before;
ALTER TABLE equal_keys RENAME TO t;
SELECT index_check('CREATE INDEX %s ON t USING gin (a)');
SELECT index_check('CREATE INDEX %s ON t USING gin (b, a)');
DROP TABLE t;
ALTER TABLE t_before RENAME TO t;

-- dead rows, HOT chains, rows of this transaction
DELETE FROM t WHERE i % 10 = 3;
UPDATE t SET i = i + 1 WHERE i % 10 = 5;
BEGIN;
UPDATE t SET same = same || 11 WHERE i % 100 = 7;
INSERT INTO t SELECT -i, ARRAY[i, -i] FROM generate_series(1, 100) AS i;
SELECT index_check('CREATE INDEX %s ON t USING gin (same, null_keys)');
ROLLBACK;

-- long values: compressed, out of line, larger than an entry may be, longer than keys
DROP TABLE t;
CREATE TABLE t (a int[], b text[]);
ALTER TABLE t ALTER b SET STORAGE EXTERNAL;
INSERT INTO t SELECT ARRAY(SELECT j FROM generate_series(1, i * 37) AS j), ARRAY[repeat(i::text, 10), repeat('x', i * 20)] FROM generate_series(1, 300) AS i;
SELECT index_check('CREATE INDEX %s ON t USING gin (a)');
SELECT index_check('CREATE INDEX %s ON t USING gin (b)');
INSERT INTO t SELECT array_agg(i), array_agg(i::text) FROM generate_series(1, 300000) AS i;
SELECT index_check('CREATE INDEX %s ON t USING gin (a, b)');
INSERT INTO t SELECT NULL, ARRAY[repeat('y', 100000) || i] FROM generate_series(1, 2) AS i;
SELECT index_check('CREATE INDEX %s ON t USING gin (b)', false);
DROP INDEX i_stock, i_ours;
INSERT INTO t VALUES (NULL, ARRAY[(SELECT string_agg(md5(i::text), '') FROM generate_series(1, 100) AS i)]);
SET gpusort.index_build = off;
CREATE INDEX ON t USING gin (b);
SET gpusort.index_build = on;
CREATE INDEX ON t USING gin (b);

-- tables of other kinds
DROP TABLE t;
CREATE TABLE t (a int[]);
SELECT index_check('CREATE INDEX %s ON t USING gin (a)');
DROP TABLE t;
CREATE UNLOGGED TABLE t AS SELECT ARRAY[i, i % 3] AS a FROM generate_series(1, 1000) AS i;
SELECT index_check('CREATE INDEX %s ON t USING gin (a)');
DROP TABLE t;
CREATE TEMP TABLE t AS SELECT ARRAY[i, i % 3] AS a FROM generate_series(1, 1000) AS i;
SELECT index_check('CREATE INDEX %s ON t USING gin (a)');
DROP TABLE t;
CREATE TABLE t (a int[], b int) PARTITION BY RANGE (b);
CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (100);
CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (100) TO (200);
INSERT INTO t SELECT ARRAY[i, i % 3], i % 200 FROM generate_series(1, 1000) AS i;
SELECT index_builds AS before FROM gpusort_stats \gset
CREATE INDEX ON t USING gin (a);
SELECT index_builds - :before AS builds FROM gpusort_stats;

-- rebuilt beside a btree; what queries find, and what is added later
CREATE TABLE u (i int PRIMARY KEY, a int[]);
INSERT INTO u SELECT i, ARRAY[i % 1000, i % 7] FROM generate_series(1, 20000) AS i;
CREATE INDEX u_a ON u USING gin (a);
SELECT index_builds AS before FROM gpusort_stats \gset
REINDEX TABLE u;
SELECT index_builds - :before AS builds FROM gpusort_stats;
VACUUM FULL u;
SELECT index_builds - :before AS builds FROM gpusort_stats;
SET enable_seqscan = off;
INSERT INTO u SELECT i, ARRAY[i % 1000, i % 7] FROM generate_series(20001, 40000) AS i;
SELECT count(*), sum(i) FROM u WHERE a @> '{3,5}';
SELECT count(*), sum(i) FROM u WHERE a && '{3,5,999}';
DELETE FROM u WHERE i % 3 = 0;
VACUUM u;
SELECT count(*), sum(i) FROM u WHERE a && '{3,5,999}';
SET enable_seqscan = on;
SET enable_bitmapscan = off;
SELECT count(*), sum(i) FROM u WHERE a && '{3,5,999}';
RESET enable_bitmapscan;

-- rebuilt by name, in a session that has not built them: alone, and older than the table's first btree
CREATE TABLE alone (a int[]);
INSERT INTO alone SELECT ARRAY[i % 1000, i % 7] FROM generate_series(1, 20000) AS i;
SET gpusort.index_build = off;
CREATE INDEX alone_a ON alone USING gin (a);
CREATE INDEX alone_stock ON alone USING gin (a);
CREATE INDEX alone_b ON alone USING btree (a);
\c -
SET client_min_messages = warning;
SET gpusort.force = on;
SET search_path = index_gin, public;
SELECT index_builds AS before FROM gpusort_stats \gset
REINDEX INDEX alone_a;
SELECT index_builds - :before AS builds, index_difference('alone_a', 'alone_stock') AS difference FROM gpusort_stats;
\c -
SET client_min_messages = warning;
SET gpusort.force = on;
SET search_path = index_gin, public;
-- two GIN indexes, a btree, and that of the TOAST table
REINDEX TABLE index_gin.alone;
SELECT index_builds - :before AS builds, index_difference('alone_a', 'alone_stock') AS difference FROM gpusort_stats;
SET gpusort.index_build = off;
REINDEX INDEX alone_a;
REINDEX TABLE alone;
RESET gpusort.index_build;
SELECT index_builds - :before AS builds, index_difference('alone_a', 'alone_stock') AS difference FROM gpusort_stats;
BEGIN;
INSERT INTO alone VALUES ('{3,5}');
REINDEX INDEX alone_a;
SELECT relation::regclass, mode FROM pg_locks
WHERE pid = pg_backend_pid() AND relation IN ('alone'::regclass, 'alone_a'::regclass) ORDER BY 1, 2;
SET LOCAL enable_seqscan = off;
SELECT count(*), min(a), max(a) FROM alone WHERE a @> '{3,5}';
ROLLBACK;
SELECT count(*), min(a), max(a) FROM alone WHERE a @> '{3,5}';
SELECT index_builds - :before AS builds FROM gpusort_stats;
-- partitions', and what PostgreSQL refuses
REINDEX INDEX t_a_idx;
REINDEX TABLE t;
SET enable_seqscan = off;
SELECT count(*) FROM t WHERE a @> '{3}';
RESET enable_seqscan;
CREATE ROLE regress_gpusort_gin;
GRANT USAGE ON SCHEMA index_gin TO regress_gpusort_gin;
\set VERBOSITY sqlstate
REINDEX INDEX no_such;
REINDEX INDEX no_such.alone_a;
REINDEX INDEX alone;
REINDEX TABLE alone_a;
REINDEX INDEX postgres.index_gin.alone_a;
SET ROLE regress_gpusort_gin;
REINDEX INDEX alone_a;
RESET ROLE;
\set VERBOSITY default
DROP OWNED BY regress_gpusort_gin;
DROP ROLE regress_gpusort_gin;

SET client_min_messages = error;
DROP SCHEMA index_gin CASCADE;
