--
-- CLUSTER and REPACK USING INDEX with gpusort: rows lie in the order in which PostgreSQL
-- alone puts them, and are all there.
--
SET client_min_messages = warning;
CREATE SCHEMA cluster;
SET search_path = cluster, public;
\set ECHO none
\i sql/results.inc
CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA public;
CREATE EXTENSION IF NOT EXISTS pageinspect SCHEMA public;
SET gpusort.force = on;
-- so that only sorts of tables are counted
SET gpusort.index_build = off;
SET max_parallel_workers_per_gather = 0;
SET synchronize_seqscans = off;
SELECT current_setting('server_version_num')::int >= 190000 AS has_repack \gset
\set ECHO all

-- a table's rows as they lie
CREATE FUNCTION cluster_rows(relation regclass) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	result text[];
BEGIN
	EXECUTE format('SELECT array_agg(r::text) FROM (SELECT * FROM %s) AS r', relation) INTO result;
	RETURN result;
END
$$;
CREATE FUNCTION cluster_sorted(list text[]) RETURNS text LANGUAGE sql SET gpusort.enabled = off AS $$
	SELECT md5(string_agg(r, ' ' ORDER BY r COLLATE "C")) FROM unnest(list) AS r
$$;
CREATE FUNCTION cluster_by(index regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	relation regclass := indrelid::regclass FROM pg_index WHERE indexrelid = index;
BEGIN
	EXECUTE format(CASE WHEN current_setting('server_version_num')::int >= 190000 THEN 'REPACK %s USING INDEX %s' ELSE 'CLUSTER %s USING %s' END,
		relation, index::text);
END
$$;
-- a table's pages, but for LSN and checksum
CREATE FUNCTION cluster_pages(relation regclass) RETURNS text LANGUAGE sql SET gpusort.enabled = off AS $$
	SELECT md5(string_agg(substring(get_raw_page(relation::text, 'main', n) FROM 11), '' ORDER BY n))
	FROM generate_series(0, pg_relation_size(relation) / current_setting('block_size')::int - 1) AS n
$$;
-- puts a table's rows into another order and clusters it by PostgreSQL or with gpusort
CREATE FUNCTION cluster_shuffled(index regclass, relation regclass, ours boolean) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('gpusort.enabled', 'off', true);
	EXECUTE format('CREATE INDEX shuffled ON %s (hashint4(id))', relation);
	PERFORM cluster_by('shuffled');
	DROP INDEX shuffled;
	PERFORM set_config('gpusort.enabled', ours::text, true);
	PERFORM cluster_by(index);
	RETURN cluster_pages(relation);
END
$$;
-- Clusters a table by an index, which must tell all rows apart, with gpusort, and then by PostgreSQL,
-- and once more with gpusort.  Only the first time there are dead rows, and rows older than columns.
CREATE FUNCTION cluster_check(index regclass, taken boolean DEFAULT true) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	relation regclass := indrelid::regclass FROM pg_index WHERE indexrelid = index;
	before text[] := cluster_rows(relation);
	ours text[];
	stock text[];
	n bigint;
	damage text;
	pages text;
BEGIN
	SELECT device_sorts INTO n FROM gpusort_stats;
	PERFORM cluster_by(index);
	SELECT device_sorts - n INTO n FROM gpusort_stats;
	IF n <> taken::int THEN
		RETURN format('%s sorts', n);
	END IF;
	ours := cluster_rows(relation);
	IF cluster_sorted(ours) IS DISTINCT FROM cluster_sorted(before) THEN
		RETURN 'other rows';
	END IF;
	SELECT string_agg(format('(%s,%s): %s', blkno, offnum, msg), '; ') INTO damage FROM verify_heapam(relation);
	PERFORM bt_index_check(indexrelid, true) FROM pg_index WHERE indrelid = relation;

	pages := cluster_shuffled(index, relation, false);
	stock := cluster_rows(relation);
	IF pages IS DISTINCT FROM cluster_shuffled(index, relation, true) THEN
		RETURN 'other pages';
	END IF;
	RETURN coalesce(damage, CASE WHEN ours IS NOT DISTINCT FROM stock THEN 'same order' ELSE 'ANOTHER ORDER' END
		|| CASE WHEN taken THEN '' ELSE ', postgres' END);
END
$$;

CREATE TYPE cluster_mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE cluster_mood ADD VALUE 'content' BEFORE 'happy';
CREATE TABLE t (id int, gone text, c text COLLATE "C", l text COLLATE "en_US.utf8", n numeric, f float8, d date, m cluster_mood, a int[], wide text);
INSERT INTO t
SELECT i, repeat('gone', i % 40), left(md5((i % 1000)::text), i % 9), left(translate(md5((i % 1000)::text), '0123456789', 'ÄäÖö- -ABé'), i % 13),
	CASE i % 11 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0.00' ELSE hashint4(i % 700)::numeric / 1000 END, CASE i % 7 WHEN 0 THEN '-0' ELSE hashint4(i % 70) / 3.0 END,
	date '2026-11-25' + hashint4(i) % 400, (ARRAY['sad', 'ok', 'happy', 'content'])[1 + i % 4]::cluster_mood, ARRAY[i % 3, NULL, i % 5], repeat(md5(i::text), i % 100)
FROM generate_series(1, 3000) AS i;
UPDATE t SET c = NULL WHERE id % 29 = 1;
UPDATE t SET l = NULL, n = NULL WHERE id % 31 = 1;
UPDATE t SET d = NULL, m = NULL, a = NULL WHERE id % 37 = 1;
DELETE FROM t WHERE id % 50 = 49;
ALTER TABLE t ADD COLUMN added text DEFAULT 'was not there', DROP COLUMN gone;
INSERT INTO t (id, c, l, added) SELECT i, 'c' || i % 10, 'l' || i % 10, NULL FROM generate_series(3001, 3100) AS i;
CREATE UNIQUE INDEX i_id ON t (id DESC);
CREATE INDEX i_c ON t (c, id);
CREATE INDEX i_l ON t (l DESC NULLS LAST, id) INCLUDE (c);
CREATE INDEX i_n ON t (n, f DESC, id);
CREATE INDEX i_d ON t (d NULLS FIRST, m DESC, id);
CREATE INDEX i_a ON t (a, l, id DESC);
CREATE INDEX i_e ON t ((id % 10) DESC, upper(l), lower(c), id);
SELECT i, cluster_check(i) FROM unnest(ARRAY['i_id', 'i_c', 'i_l', 'i_n', 'i_d', 'i_a', 'i_e']::regclass[]) AS i;
-- ICU, where the server has it
CREATE FUNCTION cluster_check_icu() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_collation WHERE collname = 'de-x-icu') THEN
		RETURN 'same order';
	END IF;
	CREATE INDEX i_icu ON t (l COLLATE "de-x-icu" NULLS FIRST, n DESC, id);
	RETURN cluster_check('i_icu');
END
$$;
SELECT cluster_check_icu();

-- rows that are equal keep their order
CREATE TABLE ties (id int, k int, filler text);
INSERT INTO ties SELECT i, hashint4(i) % 5, 'same length' FROM generate_series(1, 5000) AS i;
CREATE INDEX i_ties ON ties (k DESC);
SELECT cluster_by('i_ties');
SELECT count(*), bool_and(in_order) FROM (SELECT lag((-k, id)) OVER () < (-k, id) AS in_order FROM ties) AS t;

-- out of line, compressed, plain, more than a megabyte; no column that needs a TOAST table is left
CREATE TABLE big (id int PRIMARY KEY, k text, v text, e text);
ALTER TABLE big ALTER e SET STORAGE EXTERNAL, ALTER v SET STORAGE PLAIN;
INSERT INTO big SELECT i, md5(i::text), repeat('v', i % 50), repeat(md5((i + 1)::text), CASE WHEN i % 100 = 0 THEN 40000 ELSE i % 150 END) FROM generate_series(1, 400) AS i;
ALTER TABLE big ALTER v SET STORAGE EXTENDED;
UPDATE big SET v = v || repeat(v, 5000) WHERE id % 7 = 0;
UPDATE big SET e = e || 'more' WHERE id % 9 = 0;
DELETE FROM big WHERE id % 11 = 0;
CREATE INDEX i_big ON big (k, id);
CREATE FUNCTION big_contents() RETURNS text LANGUAGE sql AS $$
	SELECT count(*) || ' rows, ' || max(length(e)) || ', ' || md5(string_agg(id || k || md5(v) || md5(e), ' ' ORDER BY id)) FROM big
$$;
CREATE FUNCTION big_sizes() RETURNS text LANGUAGE sql AS $$
	SELECT pg_relation_size('big') || ' ' || pg_relation_size(reltoastrelid) FROM pg_class WHERE oid = 'big'::regclass
$$;
SELECT big_contents() AS contents \gset
SELECT cluster_by('i_big');
SELECT big_contents() = :'contents' AS same_contents, big_sizes() AS sizes \gset
SELECT cluster_check('i_big'), big_contents() = :'contents', big_sizes() = :'sizes', :'same_contents';
ALTER TABLE big DROP COLUMN v, DROP COLUMN e, ALTER k TYPE varchar(40);
SELECT cluster_check('i_big');
SELECT reltoastrelid <> 0 FROM pg_class WHERE oid = 'big'::regclass;

-- keys that are cut off, and keys that cannot be
CREATE TABLE long (id int, c text COLLATE "C", l text COLLATE "en_US.utf8");
INSERT INTO long SELECT i, repeat('x', 9000 + i % 3) || i % 7, repeat('y', 9000 + i % 3) || i % 7 FROM generate_series(1, 300) AS i;
INSERT INTO long SELECT i, 'x' || i % 20, 'y' || i % 20 FROM generate_series(301, 600) AS i;
CREATE INDEX i_long_c ON long (c, id);
CREATE INDEX i_long_l ON long (l, id);
SELECT cluster_check('i_long_c'), cluster_check('i_long_l', false);

-- chains of updates: of the transaction, of others, of one that was rolled back
CREATE TABLE chains (id int, k text COLLATE "C", n int) WITH (autovacuum_enabled = off, fillfactor = 60);
INSERT INTO chains SELECT i, md5(i::text), 0 FROM generate_series(1, 2000) AS i;
CREATE INDEX i_chains ON chains (k, id);
UPDATE chains SET n = n + 1 WHERE id % 2 = 0;
BEGIN;
UPDATE chains SET n = n + 1 WHERE id % 3 = 0;
UPDATE chains SET n = n + 1, k = md5(k) WHERE id % 6 = 0;
SAVEPOINT s;
UPDATE chains SET n = 100 WHERE id % 5 = 0;
DELETE FROM chains WHERE id % 7 = 1;
INSERT INTO chains SELECT i, md5(i::text), 100 FROM generate_series(3001, 3100) AS i;
ROLLBACK TO s;
DELETE FROM chains WHERE id % 9 = 1;
INSERT INTO chains SELECT i, md5(i::text), 7 FROM generate_series(4001, 4100) AS i;
SELECT count(*), sum(n), sum(id) FROM chains;
DECLARE before CURSOR FOR SELECT count(*), sum(n), sum(id) FROM chains;
UPDATE chains SET n = n + 1 WHERE id % 4 = 0;
CLOSE before;
SELECT cluster_by('i_chains');
SELECT count(*), sum(n), sum(id) FROM chains;
UPDATE chains SET n = n + 1 WHERE id % 4 = 0;
SELECT cluster_by('i_chains');
COMMIT;
SELECT count(*), sum(n), sum(id) FROM chains;
SELECT * FROM verify_heapam('chains');
SELECT cluster_check('i_chains');
-- all of it taken back
BEGIN;
DELETE FROM chains WHERE id > 1000;
SELECT cluster_by('i_chains');
ROLLBACK;
SELECT count(*), sum(n), sum(id) FROM chains;
SELECT cluster_check('i_chains');

-- temporary and unlogged tables, materialized views; in the transaction that makes the table
CREATE TEMP TABLE scratch AS SELECT i AS id, md5(i::text) AS k FROM generate_series(1, 1000) AS i;
CREATE INDEX i_scratch ON scratch (k, id);
CREATE UNLOGGED TABLE unlogged AS SELECT i AS id, md5(i::text) AS k FROM generate_series(1, 1000) AS i;
CREATE INDEX i_unlogged ON unlogged (k, id);
CREATE MATERIALIZED VIEW seen AS SELECT i AS id, md5(i::text) AS k FROM generate_series(1, 1000) AS i;
CREATE INDEX i_seen ON seen (k, id);
SELECT i, cluster_check(i) FROM unnest(ARRAY['i_scratch', 'i_unlogged', 'i_seen']::regclass[]) AS i;
BEGIN;
CREATE TABLE new (id int, k text);
INSERT INTO new SELECT i, md5(i::text) FROM generate_series(1, 1000) AS i;
CREATE INDEX i_new ON new (k, id);
SELECT cluster_check('i_new');
COMMIT;
CREATE TABLE nothing (id int, k text);
CREATE INDEX i_nothing ON nothing (k, id);
SELECT cluster_check('i_nothing');

-- all tables, partitions, and what sorts nothing
CREATE TABLE p (id int, k text) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (500);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (500) TO (2000);
INSERT INTO p SELECT i, md5(i::text) FROM generate_series(1, 1000) AS i;
CREATE INDEX i_p ON p (k, id);
SELECT device_sorts AS before FROM gpusort_stats \gset
\if :has_repack
REPACK p USING INDEX i_p;
\else
CLUSTER p USING i_p;
\endif
SELECT device_sorts - :before AS sorts FROM gpusort_stats;
SELECT bool_and(k < next) FROM (SELECT k, lead(k) OVER () AS next FROM p1) AS t;
-- with all caches discarded at every opportunity, where the server is built for that
SELECT set_config('debug_discard_caches', least(max_val::int, 1)::text, false) IS NOT NULL AS done FROM pg_settings WHERE name = 'debug_discard_caches';
\if :has_repack
REPACK p USING INDEX i_p;
\else
CLUSTER p USING i_p;
\endif
RESET debug_discard_caches;
SELECT bool_and(k < next) FROM (SELECT k, lead(k) OVER () AS next FROM p2) AS t;
UPDATE ties SET k = k + 1;
SELECT device_sorts AS before FROM gpusort_stats \gset
\if :has_repack
REPACK USING INDEX;
\else
CLUSTER;
\endif
SELECT device_sorts - :before > 10 AS sorts FROM gpusort_stats;
SELECT device_sorts AS before FROM gpusort_stats \gset
\if :has_repack
REPACK t;
REPACK (CONCURRENTLY) big USING INDEX i_big;
\else
VACUUM (FULL) t;
VACUUM (FULL) big;
\endif
CREATE INDEX i_gist ON ties USING gist (point(id, k));
CLUSTER ties USING i_gist;
SELECT device_sorts - :before AS sorts FROM gpusort_stats;

-- an index's functions fail: nothing has changed, and nothing stays behind
CREATE FUNCTION bad(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN 1 / ($1 - current_setting('cluster.bad', true)::int); END $$;
CREATE TABLE errors AS SELECT i AS id, md5(i::text) AS k FROM generate_series(1, 1000) AS i;
SET cluster.bad = 0;
CREATE INDEX i_errors ON errors (bad(id), id);
SET cluster.bad = 777;
SELECT pg_relation_filenode('errors') AS before \gset
\set VERBOSITY terse
CLUSTER errors USING i_errors;
DO $$
BEGIN
	PERFORM cluster_by('i_errors');
EXCEPTION WHEN division_by_zero THEN
	RAISE WARNING 'caught';
END
$$;
SELECT pg_relation_filenode('errors') = :before AS same_table;
SET cluster.bad = 0;
SELECT cluster_check('i_errors');

-- what is left to PostgreSQL
CREATE TABLE refused WITH (autovacuum_enabled = off) AS SELECT i AS id, to_tsvector('simple', (i % 10)::text) AS j, hashint4(i) AS h FROM generate_series(1, 1000) AS i;
CREATE INDEX i_refused ON refused (j, id);
CREATE INDEX i_refused_h ON refused (h, id);
SET client_min_messages = notice;
SET gpusort.log_refusals = on;
SELECT cluster_check('i_refused', false);
SET gpusort.force = off;
SELECT cluster_by('i_refused_h');
SET gpusort.min_rows = 0;
SELECT cluster_by('i_refused_h');
SET gpusort.enabled = off;
SELECT cluster_by('i_refused_h');
SET gpusort.enabled = on;
-- by cost: PostgreSQL would sort, or read rows in another order by the index, or rows in order
CREATE INDEX i_refused_other ON refused ((id % 10), id);
SELECT cluster_by('i_refused_other');
ANALYZE refused;
SET effective_cache_size = 8;
SET seq_page_cost = 100;
SET random_page_cost = 100;
SELECT cluster_check('i_refused_h');
SET cpu_operator_cost = 100;
SELECT cluster_check('i_refused_h');
RESET seq_page_cost;
RESET random_page_cost;
RESET cpu_operator_cost;
RESET effective_cache_size;
ANALYZE refused;
SELECT cluster_check('i_refused_h', false);
-- it is not asked
SET gpusort.force = on;
SET enable_indexscan = off;
SELECT cluster_check('i_refused_h', false);
RESET enable_indexscan;
SELECT cluster_check('i_refused_h');
SET client_min_messages = error;
DROP SCHEMA cluster CASCADE;
