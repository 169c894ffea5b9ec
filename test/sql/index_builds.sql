--
-- Indexes built with gpusort are those that PostgreSQL builds, to the byte.
--
SET client_min_messages = warning;
CREATE SCHEMA index_builds;
SET search_path = index_builds, public;
\set ECHO none
\i sql/index_common.inc
\set ECHO all

CREATE TYPE index_mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE index_mood ADD VALUE 'content' BEFORE 'happy';
CREATE DOMAIN index_positive AS int CHECK (VALUE > 0);

-- Each value comes several times, each column is NULL now and then.
CREATE FUNCTION index_fill(n int) RETURNS TABLE (i int, h bigint, m text) LANGUAGE sql AS $$
	SELECT i, hashint8extended(i % (n / 2), 7), md5((i % (n / 2))::text) FROM generate_series(1, n) AS i
$$;
CREATE TABLE t AS
SELECT i, h AS int8, (h % 1000)::int4 AS int4, (h % 100)::int2 AS int2, h % 2 = 0 AS bool,
	chr((65 + abs(h % 20))::int)::"char" AS char1, abs(h % 10000)::int::oid AS oid,
	(abs(h / 3)::text)::xid8 AS xid8, '0/0'::pg_lsn + abs(h % 100000)::numeric AS pg_lsn,
	CASE h % 11 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN '0' WHEN 3 THEN 'inf' ELSE h::float8 / 1e10 END::float8 AS float8,
	CASE h % 11 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN '0' ELSE h::float4 / 1e10 END::float4 AS float4,
	(h % 1000)::int::money AS money, date '2026-11-21' + (h % 1000)::int AS date,
	time '00:00' + (abs(h) % 86400) * interval '1 s' AS time,
	(time '00:00' + (abs(h) % 86400) * interval '1 s')::text::time AT TIME ZONE 'UTC' AS timetz,
	timestamp '2026-11-21' + h % 100000 * interval '1 s' AS timestamp,
	timestamptz '2026-11-21 00:00+00' + h % 100000 * interval '1 s' AS timestamptz,
	h % 50 * interval '1 day' + h % 7 * interval '1 month' AS interval,
	format('(%s,%s)', abs(h % 300), 1 + abs(h % 40))::tid AS tid,
	(ARRAY['sad', 'ok', 'happy', 'content'])[1 + abs(h % 4)]::index_mood AS enum,
	m::uuid AS uuid, left(m, 12)::macaddr AS macaddr, left(m, 16)::macaddr8 AS macaddr8,
	left(m, (1 + abs(h % 30))::int) AS text, left(m, 5)::varchar(10) AS varchar,
	left(m, (1 + abs(h % 5))::int)::char(8) AS bpchar, left(m, (abs(h % 32))::int)::name AS name,
	decode(left(m, (2 * abs(h % 16))::int), 'hex') AS bytea,
	CASE h % 13 WHEN 0 THEN 'NaN' WHEN 1 THEN '1.00' WHEN 2 THEN '1.0' WHEN 3 THEN '-Infinity' ELSE h::numeric / 1000 END::numeric AS numeric,
	('10.' || abs(h % 4) || '.' || abs(h % 256) || '.' || abs(h % 77) || '/' || 20 + abs(h % 13))::inet AS inet,
	h::bit(37) AS bit, left(h::bit(37)::text, (abs(h % 37))::int)::varbit AS varbit,
	ARRAY[h % 3, NULL, h % 5] AS int_array, ARRAY[left(m, 1), left(m, 2)] AS text_array,
	(1 + abs(h % 50))::int::index_positive AS positive,
	CASE h % 31 WHEN 0 THEN 'empty' ELSE int4range((h % 40)::int, nullif(40 + h % 9, 40)::int) END AS int4range,
	numrange(h % 7 / 2.0, 9, (ARRAY['[]', '[)', '(]', '()'])[1 + abs(h % 4)]) AS numrange
FROM index_fill(4000);
DO $$
DECLARE
	col name;
	n int := 0;
BEGIN
	FOR col IN SELECT attname FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 1 ORDER BY attnum LOOP
		EXECUTE format('UPDATE t SET %I = NULL WHERE i %% 29 = %s', col, n % 29);
		n := n + 1;
	END LOOP;
END
$$;
VACUUM (FREEZE) t;

-- every type, in all four directions
SELECT col.attname, d.*
FROM pg_attribute AS col, LATERAL index_directions(quote_ident(col.attname)) AS d
WHERE attrelid = 't'::regclass AND attnum > 0
ORDER BY attnum, d.direction;
SELECT * FROM index_directions('text text_pattern_ops');
SELECT * FROM index_directions('varchar varchar_pattern_ops');
SELECT * FROM index_directions('bpchar bpchar_pattern_ops');
SELECT * FROM index_directions('(inet::cidr)');

-- several columns, INCLUDE, expressions, predicates
SELECT index_check('CREATE INDEX %s ON t (int2, text DESC)');
SELECT index_check('CREATE INDEX %s ON t (text, int4 DESC NULLS LAST, uuid)');
SELECT index_check('CREATE INDEX %s ON t (int4, int2)');
SELECT index_check('CREATE INDEX %s ON t (int4) INCLUDE (text, int8)');
SELECT index_check('CREATE INDEX %s ON t (text) INCLUDE (numeric)');
SELECT index_check('CREATE INDEX %s ON t (upper(text), (int4 + 1))');
SELECT index_check('CREATE INDEX %s ON t (text) WHERE int4 > 500');
SELECT index_check('CREATE INDEX %s ON t (int4) WHERE false');
SELECT index_check('CREATE INDEX %s ON t ((NULL::text))');
SELECT index_check(format('CREATE INDEX %%s ON t (%s)', string_agg(quote_ident(attname), ', ')))
FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum BETWEEN 2 AND 33;

-- storage parameters
SELECT ff, dedup, index_check(format('CREATE INDEX %%s ON t (int2) WITH (fillfactor = %s, deduplicate_items = %s)', ff, dedup))
FROM unnest(ARRAY[10, 50, 90, 100]) AS ff, unnest(ARRAY['on', 'off']) AS dedup;

-- opclasses of others
CREATE FUNCTION index_compare_backwards(int4, int4) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS index_backwards FOR TYPE int4 USING btree AS
	OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 index_compare_backwards(int4, int4);
CREATE OPERATOR CLASS index_same FOR TYPE int4 USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int4, int4);
SELECT index_check('CREATE INDEX %s ON t (int4 index_backwards)', taken => false);
SELECT index_check('CREATE INDEX %s ON t (int4 index_same)', taken => false);
SELECT index_check('CREATE INDEX %s ON t ((int4::text::jsonb))');
SELECT index_check('CREATE INDEX %s ON t (to_tsvector(''simple'', int4::text))', taken => false);
SELECT index_check('CREATE INDEX %s ON t (int4range(int2, 1000))');

-- unique
SELECT index_check('CREATE UNIQUE INDEX %s ON t (i)');
SELECT index_check('CREATE UNIQUE INDEX %s ON t (text, i)');
SELECT index_check('CREATE UNIQUE INDEX %s ON t (numeric, i DESC) INCLUDE (text)');
SELECT index_check('CREATE UNIQUE INDEX %s ON t ((CASE WHEN i = 17 THEN i END))');

DROP TABLE t;
CREATE TABLE t (a int, b text, c numeric, d float8);
SET gpusort.index_build = on;
\set VERBOSITY verbose
\set SHOW_CONTEXT never
INSERT INTO t SELECT i, md5(i::text), i, i FROM generate_series(1, 3000) AS i;
INSERT INTO t VALUES (1500, NULL, NULL, NULL), (NULL, md5('7'), NULL, NULL), (NULL, NULL, 44.000, NULL), (NULL, NULL, NULL, '-0'),
	(NULL, NULL, NULL, 0);
\set VERBOSITY default
CREATE UNIQUE INDEX i_ours ON t (a);
CREATE UNIQUE INDEX i_ours ON t (b);
CREATE UNIQUE INDEX i_ours ON t (c);
CREATE UNIQUE INDEX i_ours ON t (d);
CREATE UNIQUE INDEX i_ours ON t (abs(a), (a = 1500)) WHERE a > 1000;
ALTER TABLE t ADD CONSTRAINT t_a UNIQUE (a) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE t ADD CONSTRAINT t_a EXCLUDE USING btree (a WITH =);
CREATE UNIQUE INDEX CONCURRENTLY i_ours ON t (a);
REINDEX INDEX i_ours;
DROP INDEX i_ours;
CREATE UNIQUE INDEX i_ours ON t (a, b) NULLS NOT DISTINCT;
SELECT index_check('CREATE UNIQUE INDEX %s ON t (a, b)');
DELETE FROM t WHERE a IS NULL;
SELECT index_check('CREATE UNIQUE INDEX %s ON t (a, c) NULLS NOT DISTINCT');
-- as equal as the comparison function says, whatever the images are
CREATE TABLE u (a bpchar, b text COLLATE "und-x-icu", c numeric, d int[], e interval);
INSERT INTO u VALUES ('a', 'a', 1, '{1}', '1 day'), ('a  ', 'a', 1.00, '[2:2]={1}', '24 hours');
CREATE UNIQUE INDEX i_u ON u (a);
CREATE UNIQUE INDEX i_u ON u (a bpchar_pattern_ops);
CREATE UNIQUE INDEX i_u ON u (b, a);
CREATE UNIQUE INDEX i_u ON u (c, e);
CREATE UNIQUE INDEX i_u ON u (d);
DROP TABLE u;
-- the values of an index that one may not read do not show
CREATE ROLE regress_gpusort_owner;
ALTER TABLE t OWNER TO regress_gpusort_owner;
GRANT USAGE, CREATE ON SCHEMA index_builds TO regress_gpusort_owner;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
ALTER TABLE t FORCE ROW LEVEL SECURITY;
SET ROLE regress_gpusort_owner;
CREATE UNIQUE INDEX ON t (a);
RESET ROLE;
DROP TABLE t;
REVOKE ALL ON SCHEMA index_builds FROM regress_gpusort_owner;
DROP ROLE regress_gpusort_owner;

-- dead tuples that an old snapshot may still need, HOT chains, deletions of our own
CREATE TABLE t (a int, b text, c int) WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO t SELECT i, md5((i / 2)::text), 0 FROM generate_series(1, 3000) AS i;
BEGIN;
UPDATE t SET a = a WHERE a % 3 = 0;
UPDATE t SET c = c + 1 WHERE a % 5 = 0;
DELETE FROM t WHERE a % 7 = 0;
INSERT INTO t SELECT i, md5(i::text), 1 FROM generate_series(7, 3000, 7) AS i;
SELECT index_check('CREATE UNIQUE INDEX %s ON t (a)');
SELECT index_check('CREATE INDEX %s ON t (b, a)');
SELECT index_check('CREATE UNIQUE INDEX %s ON t ((a::numeric), (b < ''8''))');
SELECT count(*) FROM t WHERE a BETWEEN 100 AND 200;
ROLLBACK;
SELECT index_check('CREATE UNIQUE INDEX %s ON t (a)');

-- long values: compressed, out of line, equal in all that a key holds of them
DROP TABLE t;
CREATE TABLE t (a int, b text COLLATE "C", c text COLLATE "C");
ALTER TABLE t ALTER c SET STORAGE EXTERNAL;
INSERT INTO t SELECT i, repeat(md5((i % 3)::text), 200 + i % 100) || (i * 7919) % 613, left(repeat(md5((i / 3)::text), 50), 300 + i % 800)
	FROM generate_series(1, 1000) AS i;
SELECT index_check('CREATE INDEX %s ON t (b)');
SELECT index_check('CREATE INDEX %s ON t (b DESC, a)');
SELECT index_check('CREATE INDEX %s ON t (c)');
SELECT index_check('CREATE UNIQUE INDEX %s ON t (b, c, a)');
SELECT index_check('CREATE INDEX %s ON t (decode(md5(b), ''hex''), (c::bytea))');
INSERT INTO t SELECT * FROM t WHERE a = 77;
CREATE UNIQUE INDEX t_md5_a_idx ON t (md5(b), a);
SELECT index_check('CREATE INDEX %s ON t (b)');
DROP INDEX i_stock, i_ours;
CREATE FUNCTION index_error(ddl text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
BEGIN
	EXECUTE ddl;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT;
	RETURN message;
END
$$;
SELECT index_error('CREATE UNIQUE INDEX i_ours ON t (b, a)');
UPDATE t SET c = (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 150) AS i) WHERE a = 900;
SELECT index_error('CREATE INDEX i_ours ON t (c)');
UPDATE t SET c = (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 300) AS i) WHERE a = 900;
SELECT index_error('CREATE INDEX i_ours ON t (c)');
UPDATE t SET c = (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 80) AS i) WHERE a % 2 = 0;
SELECT index_check('CREATE INDEX %s ON t (c, a)');

-- few rows, none, and many levels
DROP TABLE t;
CREATE TABLE t (a int, b text COLLATE "C");
SELECT index_check('CREATE INDEX %s ON t (a)');
INSERT INTO t VALUES (1, 'one');
SELECT index_check('CREATE UNIQUE INDEX %s ON t (b)');
INSERT INTO t SELECT i, repeat(chr(65 + i % 26), 20) || repeat(md5(i::text), 30) || i FROM generate_series(1, 3000) AS i;
ALTER TABLE t ALTER b SET STORAGE EXTERNAL;
SELECT index_check('CREATE INDEX %s ON t (b) WITH (fillfactor = 10)');
TRUNCATE t;
SELECT index_difference('i_stock', 'i_ours') IS NULL AS same, index_blocks('i_ours') AS blocks;

-- small tables and system catalogs are PostgreSQL's
DROP TABLE t;
CREATE TABLE t AS SELECT i AS a FROM generate_series(1, 1000) AS i;
SET gpusort.force = off;
SELECT index_check('CREATE INDEX %s ON t (a)', taken => false);
SET gpusort.min_rows = 1000;
SELECT index_check('CREATE INDEX %s ON t (a)', taken => true);
SET gpusort.force = on;
SET client_min_messages = debug1;
REINDEX INDEX pg_class_oid_index;
SET client_min_messages = warning;
SET gpusort.enabled = off;
SELECT index_check('CREATE INDEX %s ON t (a)', taken => false);
RESET gpusort.enabled;

-- workers, and none at all
DROP TABLE t;
CREATE TABLE t (a int, b text);
INSERT INTO t SELECT i % 2000, md5((i % 300)::text) FROM generate_series(1, 20000) AS i;
DELETE FROM t WHERE a % 10 = 3;
CREATE FUNCTION index_workers(workers int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('ALTER TABLE t SET (parallel_workers = %s)', workers);
	RETURN workers;
END
$$;
SET max_parallel_maintenance_workers = 3;
SELECT index_workers(workers),
	index_check('CREATE INDEX %s ON t (b)'), index_check('CREATE INDEX %s ON t (a DESC) INCLUDE (b) WHERE a < 1500')
FROM generate_series(0, 3) AS workers;
-- PostgreSQL's, whether the session has built before or not
SET max_parallel_maintenance_workers = 0;
SELECT index_check('CREATE INDEX %s ON t (b)', taken => false);
DROP INDEX i_stock, i_ours;

-- the commands that build indexes; gpusort takes none of them, takes them without workers, with them
CREATE FUNCTION index_builds(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	before bigint;
	builds bigint;
BEGIN
	SELECT index_builds INTO before FROM gpusort_stats;
	EXECUTE command;
	SELECT index_builds - before INTO builds FROM gpusort_stats;
	PERFORM bt_index_parent_check(oid, true, true) FROM pg_class WHERE relname LIKE 'i\_%' AND relkind = 'i';
	RETURN builds || ' ' || command;
END
$$;
CREATE UNLOGGED TABLE u AS SELECT a, b FROM t;
CREATE TEMP TABLE v AS SELECT a, b FROM t;
CREATE TABLE p (a int, b text) PARTITION BY RANGE (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (1000);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (1000) TO (2000);
INSERT INTO p SELECT * FROM t;
CREATE MATERIALIZED VIEW mv AS SELECT a, b FROM u;
SET gpusort.index_build = on;
SELECT set_config('max_parallel_maintenance_workers', allowed::text, false) AS allowed, index_workers(workers),
	index_builds('CREATE INDEX i_b ON t (b)'),
	index_builds('REINDEX TABLE t'),
	index_builds('REINDEX INDEX i_b'),
	index_builds('CLUSTER t USING i_b'),
	index_builds('ALTER TABLE t ALTER a TYPE bigint'),
	index_builds('ALTER TABLE t ALTER a TYPE int'),
	index_builds('ALTER TABLE t ADD COLUMN id int GENERATED ALWAYS AS IDENTITY'),
	index_builds('ALTER TABLE t ADD CONSTRAINT i_id PRIMARY KEY (id)'),
	index_builds('TRUNCATE t'),
	index_builds('ALTER TABLE t DROP id'),
	index_builds('DROP INDEX i_b'),
	index_builds('INSERT INTO t SELECT * FROM u'),
	index_builds('CREATE INDEX i_u ON u (b)'),
	index_builds('CREATE INDEX i_v ON v (b)'),
	index_builds('DROP INDEX i_u, i_v'),
	index_builds('CREATE INDEX i_p ON p (b)'),
	index_builds('REINDEX TABLE p1'),
	index_builds('DROP INDEX i_p'),
	index_builds('CREATE INDEX i_mv ON mv (b)'),
	index_builds('REFRESH MATERIALIZED VIEW mv'),
	index_builds('DROP INDEX i_mv')
FROM (VALUES (0, 2), (2, 0), (2, 2)) AS v (allowed, workers)
\gx
ALTER TABLE t SET (parallel_workers = 0);
SELECT index_builds AS before FROM gpusort_stats \gset
CREATE INDEX CONCURRENTLY i_b ON t (b);
REINDEX INDEX CONCURRENTLY i_b;
VACUUM (FULL) t;
VACUUM t;
ALTER TABLE t SET (parallel_workers = 2);
CREATE INDEX CONCURRENTLY i_a ON t (a, b);
REINDEX TABLE CONCURRENTLY t;
REINDEX TABLE p;
VACUUM (FULL) t;
SELECT index_builds - :before AS builds FROM gpusort_stats;
-- in this session gpusort's function is in the relcache entry of i_b already
REINDEX INDEX i_a;
SELECT index_builds AS before FROM gpusort_stats \gset
SET max_parallel_maintenance_workers = 0;
REINDEX INDEX i_b;
REINDEX TABLE CONCURRENTLY t;
CREATE INDEX CONCURRENTLY i_c ON t (a);
VACUUM (FULL) t;
SELECT index_builds - :before AS builds FROM gpusort_stats;
RESET max_parallel_maintenance_workers;
SELECT bt_index_parent_check(oid, true, true) FROM pg_class WHERE relname IN ('i_a', 'i_b', 'i_c');

-- VACUUM FULL, CLUSTER, and what PostgreSQL 19 has in their place: the pages of the new indexes
SELECT current_setting('server_version_num')::int >= 190000 AS has_repack \gset
CREATE TABLE r (id int PRIMARY KEY, b name COLLATE "C", n int) WITH (autovacuum_enabled = off, parallel_workers = 2);
CREATE UNIQUE INDEX i_r_u ON r (b, id);
CREATE INDEX i_r_n ON r (n DESC) INCLUDE (b) WHERE id % 3 > 0;
INSERT INTO r SELECT i, md5((i * 7919 % 4000)::text), i % 50 FROM generate_series(1, 12000) AS i;
DELETE FROM r WHERE id % 4 = 0;
CREATE FUNCTION index_images() RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(index::text || ' ' || md5(pages), ', ' ORDER BY index::text)
	FROM (SELECT indexrelid::regclass AS index, string_agg(substring(get_raw_page(indexrelid::regclass::text, 'main', n) FROM 11), '' ORDER BY n) AS pages
		FROM pg_index, generate_series(0, index_blocks(indexrelid::regclass::text) - 1) AS n
		WHERE indrelid = 'r'::regclass GROUP BY indexrelid) AS i
$$;
\if :has_repack
\set whole 'REPACK'
\set ordered 'REPACK r USING INDEX i_r_u'
\set concurrent 'REPACK (CONCURRENTLY)'
\else
\set whole 'VACUUM (FULL)'
\set ordered 'CLUSTER r USING i_r_u'
\set concurrent 'VACUUM (FULL)'
\endif
\set ECHO none
\set rewrite :whole ' r'
\i sql/index_rewrite.inc
\set rewrite :ordered
\i sql/index_rewrite.inc
\set rewrite :concurrent ' r'
\i sql/index_rewrite.inc
\set ECHO all
SELECT bt_index_parent_check(indexrelid, true, true) FROM pg_index WHERE indrelid = 'r'::regclass;
SELECT index_builds AS before FROM gpusort_stats \gset
CREATE INDEX i_p ON p (b);
:whole p;
SELECT index_builds - :before AS builds FROM gpusort_stats;
DROP TABLE r;

-- what is not built is counted and told
SELECT gpusort_stats_reset();
SET client_min_messages = debug1;
CREATE INDEX i_j ON u (to_tsvector('simple', b)) WHERE false;
SET client_min_messages = warning;
SELECT index_builds, reason, count FROM gpusort_stats, gpusort_stat_reasons WHERE count > 0;
DROP SCHEMA index_builds CASCADE;
