--
-- Sorts larger than device memory: written out in runs, read back by ranges.
--
SET client_min_messages = warning;
SET gpusort.min_rows = 0;
SET max_parallel_workers_per_gather = 0;
\set ECHO none
\i sql/wait_closed.inc
\i sql/index_common.inc
\set ECHO all
SET gpusort.force = off;

CREATE FUNCTION set_device_memory(mb text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	bytes bigint := pg_size_bytes(mb);
BEGIN
	FOR i IN 1 .. 2000 LOOP
		IF (SELECT bool_and(CASE WHEN bytes > 0 THEN memory_limit = bytes ELSE memory_limit > 64 * 1024 * 1024 END) FROM gpusort_devices) THEN
			RETURN;
		END IF;
		PERFORM pg_sleep(0.05);
	END LOOP;
	RAISE 'the limit does not change';
END
$$;
-- so that a chunk or two are more than the device takes; a GPU needs a little more
SELECT CASE kind WHEN 'cuda' THEN '5MB' ELSE '3MB' END AS memory FROM gpusort_devices \gset
ALTER SYSTEM SET gpusort.device_memory = :'memory';
SELECT pg_reload_conf();
SELECT set_device_memory(:'memory');

-- The ids of a query's rows in their order, and what all rows have in them.
-- stock: by PostgreSQL alone; else all sorts are gpusort's.
CREATE FUNCTION spill_rows(query text, stock boolean, OUT ids int[], OUT content numeric) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('gpusort.enabled', CASE WHEN stock THEN 'off' ELSE 'on' END, true);
	PERFORM set_config('gpusort.force', CASE WHEN stock THEN 'off' ELSE 'on' END, true);
	EXECUTE format('SELECT array_agg(id), sum(hashtextextended(s::text, 0)) FROM (%s) AS s', query) INTO ids, content;
END
$$;

CREATE FUNCTION spill_fallbacks() RETURNS bigint LANGUAGE sql AS $$
	SELECT fallbacks FROM gpusort_stats
$$;

-- Two queries, by gpusort and by PostgreSQL: in what their rows differ.
CREATE FUNCTION spill_compare(query text, stock_query text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	stock record;
	ours record;
	spilled bigint;
	fallbacks bigint := spill_fallbacks();
BEGIN
	SELECT * INTO stock FROM spill_rows(coalesce(stock_query, query), true);
	SELECT spilled_sorts INTO spilled FROM gpusort_stats;
	SELECT * INTO ours FROM spill_rows(query, false);
	SELECT spilled_sorts - spilled INTO spilled FROM gpusort_stats;
	IF ours.ids IS DISTINCT FROM stock.ids THEN
		RETURN (SELECT format('%s rows of %s, row %s is %s, should be %s', cardinality(ours.ids), cardinality(stock.ids), n, o, s)
				FROM unnest(ours.ids, stock.ids) WITH ORDINALITY AS u (o, s, n) WHERE o IS DISTINCT FROM s ORDER BY n LIMIT 1);
	END IF;
	IF ours.content IS DISTINCT FROM stock.content THEN
		RETURN 'the rows are not what they were';
	END IF;
	RETURN format('same %s rows, %s', cardinality(ours.ids), CASE WHEN spilled > 0 THEN 'spilled' ELSE 'in memory' END) ||
		CASE WHEN spill_fallbacks() > fallbacks THEN ', by PostgreSQL' ELSE '' END;
END
$$;

-- One table's rows by some columns; equal ones in the order of the scan.
CREATE FUNCTION spill_order(order_by text, source text DEFAULT 'spill_t') RETURNS text LANGUAGE sql AS $$
	SELECT spill_compare(format('SELECT * FROM %s ORDER BY %s', source, order_by),
						 format('SELECT * FROM %s ORDER BY %s, ctid', source, order_by))
$$;

CREATE TABLE spill_t (id int, i8 bigint, f8 float8, c text COLLATE "C", n numeric, u uuid, a int[], few int, one int, sorted int, reversed int)
	WITH (autovacuum_enabled = off);
INSERT INTO spill_t
	SELECT i, CASE WHEN i % 101 <> 0 THEN h END,
		CASE i % 50 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN 0 WHEN 3 THEN '-infinity' WHEN 4 THEN NULL ELSE h / 1e9 END,
		left(md5(h::text), 2 + i % 20),
		CASE i % 50 WHEN 0 THEN 'NaN' WHEN 1 THEN 0.00 WHEN 2 THEN 1e100 WHEN 3 THEN NULL ELSE (h % 100000)::numeric / 7 END,
		md5((h % 40000)::text)::uuid,
		CASE WHEN i % 70 <> 3 THEN ARRAY[h % 50, nullif(h % 3, 1), i % 1000]::int[] END,
		i % 5, 1, i / 10, (40000 - i) / 10
	FROM (SELECT i, hashint8extended(i, 0) AS h FROM generate_series(1, 40000) AS i) AS g;
VACUUM (ANALYZE) spill_t;
SELECT gpusort_stats_reset();

SELECT k, spill_order(k) FROM unnest(ARRAY['i8', 'f8', 'c', 'n', 'u', 'a', 'few', 'one', 'sorted', 'reversed']) AS k;
SELECT k, spill_order(k) FROM unnest(ARRAY['i8 DESC', 'f8 DESC NULLS LAST', 'c DESC', 'few DESC, c', 'few, n DESC NULLS LAST, f8 NULLS FIRST',
	'c, u DESC', 'one, few, a DESC']) AS k;
SELECT spill_compare('SELECT id, i8, c FROM spill_t WHERE id < 3000 ORDER BY i8, id');
SELECT spill_compare('SELECT * FROM spill_t ORDER BY c, id LIMIT 30000');
SELECT spill_compare('SELECT * FROM spill_t ORDER BY c, id OFFSET 35000 LIMIT 10');
-- rows that are alone in a run, and not in their partition
SELECT k, spill_compare(format('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY %s ORDER BY id) AS r FROM spill_t) AS s WHERE r > 1', k))
	FROM unnest(ARRAY['u', 'c', 'c, few', 'sorted, few']) AS k;

-- values at places: through all ranges
SELECT spill_compare(format('SELECT 1 AS id, percentile_disc(ARRAY[0.5, 0, 0.9, 1]) WITHIN GROUP (ORDER BY %s) FROM spill_t, generate_series(1, 2)', k))
FROM unnest(ARRAY['c', 'i8 DESC', 'f8']) AS k;
SELECT spill_compare(format('SELECT few AS id, percentile_disc(ARRAY[0.5, 0, 0.9, 1]) WITHIN GROUP (ORDER BY %s), percentile_disc(0.4) WITHIN GROUP (ORDER BY %s) FROM spill_t GROUP BY few ORDER BY few', k, k)),
	spill_compare(format('SELECT few AS id, percentile_disc(ARRAY[0.3, 0.4]) WITHIN GROUP (ORDER BY %s), count(*), max(u::text) FROM spill_t GROUP BY few ORDER BY few', k))
FROM unnest(ARRAY['c', 'i8 DESC', 'f8 NULLS FIRST']) AS k;

-- Text by rules, whose keys may not be an order to cut into ranges: libc; keys longer than those of the device; rows larger than those of chunks; rows without a key
SELECT CASE WHEN EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu') THEN 'und-x-icu' ELSE 'C' END AS icu
\gset
CREATE TABLE spill_text (id int, libc text COLLATE "en_US.utf8", icu text COLLATE :"icu", long text COLLATE "C", longer text COLLATE "en_US.utf8", pad text);
INSERT INTO spill_text
	SELECT i, s, s, repeat('long', CASE WHEN i % 40 = 0 THEN 2100 ELSE 3 END) || (i % 300),
		CASE WHEN i % 300 = 7 THEN repeat('word ', 2500) || i % 10 ELSE md5(i::text) END, repeat('-', 160)
	FROM (SELECT i, translate(left(md5(i::text), 1 + i % 9), '0123456789abcdef', '11a--A ,_bBc.''x9é') AS s FROM generate_series(1, 12000) AS i) AS g;
VACUUM (ANALYZE) spill_text;
SELECT k, spill_compare('SELECT * FROM spill_text ORDER BY ' || k)
FROM unnest(ARRAY['libc, id', 'libc DESC, id DESC', 'icu, id', 'icu DESC, id', 'long, id', 'long DESC, id', 'longer, id', 'longer DESC, libc, id',
	'round(id / 2000.0), libc, id', '(id % 7)::numeric DESC, libc DESC, id', 'id / 7.0, libc', 'left(icu, 1), libc, id DESC', 'icu DESC, libc, id',
	'ARRAY[id % 3, 0.5], longer, id']) AS k;
SELECT k, spill_compare('SELECT *, CASE WHEN id % 300 = 0 THEN repeat(md5(id::text), 6000) END AS large FROM spill_text ORDER BY ' || k)
FROM unnest(ARRAY['id % 100, libc, id', 'long, id', 'longer, id']) AS k;

-- A cursor that goes back and forth
CREATE FUNCTION spill_scroll(query text, steps int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	stock int[] := (SELECT ids FROM spill_rows(query, true));
	n int := cardinality(stock);
	at int := 0;
	c refcursor;
	id int;
BEGIN
	PERFORM set_config('gpusort.enabled', 'on', true), set_config('gpusort.force', 'on', true);
	OPEN c SCROLL FOR EXECUTE query;
	FOR step IN 1 .. steps LOOP
		CASE floor(random() * 6)
			WHEN 0 THEN
				at := floor(random() * (n + 2));
				FETCH ABSOLUTE at FROM c INTO id;
			WHEN 1 THEN
				at := n - (1 + floor(random() * n))::int + 1;
				FETCH ABSOLUTE at - n - 1 FROM c INTO id;
			WHEN 2 THEN
				MOVE FORWARD 700 FROM c;
				FETCH PRIOR FROM c INTO id;
				at := least(at + 700, n + 1) - 1;
			WHEN 3 THEN
				MOVE BACKWARD 700 FROM c;
				FETCH NEXT FROM c INTO id;
				at := greatest(at - 700, 0) + 1;
			WHEN 4 THEN
				FETCH RELATIVE 0 FROM c INTO id;
			WHEN 5 THEN
				FETCH PRIOR FROM c INTO id;
				at := greatest(at - 1, 0);
		END CASE;
		IF id IS DISTINCT FROM stock[at] THEN
			RETURN format('step %s: row %s is %s, should be %s', step, at, id, stock[at]);
		END IF;
	END LOOP;
	CLOSE c;
	RETURN 'same rows';
END
$$;
SELECT setseed(0.25);
SELECT spill_scroll('SELECT * FROM spill_t ORDER BY c, id', 150);
SELECT spill_scroll('SELECT * FROM spill_text ORDER BY libc DESC, id', 60);
SELECT spill_scroll('SELECT * FROM spill_text ORDER BY long, id', 60);

-- Merge joins that come back to equal keys, nested loops that begin again, windows, DISTINCT
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT spill_compare('SELECT a.id + b.id AS id FROM (SELECT id, one FROM spill_t WHERE id % 8000 = 5) AS a JOIN spill_t AS b USING (one) ORDER BY a.id, b.id');
SELECT spill_compare('SELECT a.id, a.c, b.n FROM spill_t AS a JOIN spill_t AS b ON a.c = b.c AND a.few = b.few ORDER BY a.id, b.id');
SET enable_mergejoin = off;
SET enable_nestloop = on;
SET enable_material = off;
SELECT spill_compare('SELECT s.id FROM generate_series(1, 3) AS g LEFT JOIN (SELECT id, c FROM spill_t ORDER BY c, id OFFSET 0) AS s ON s.id > g');
SELECT spill_compare('SELECT s.id FROM generate_series(1, 3) AS g, LATERAL (SELECT id, c FROM spill_t ORDER BY id % (2 + g), c DESC, id OFFSET g) AS s');
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
SELECT spill_compare('SELECT id, rank() OVER (PARTITION BY few ORDER BY c), dense_rank() OVER (PARTITION BY few ORDER BY c) FROM spill_t ORDER BY id');
SELECT spill_compare('SELECT id, row_number() OVER (ORDER BY u, id) FROM spill_t');
SELECT spill_compare('SELECT DISTINCT i8, c, id FROM spill_t ORDER BY i8, c, id');
SELECT regexp_replace(spill_compare('SELECT count(*) AS id, few FROM spill_t GROUP BY few ORDER BY few'), ', .*', '');
SELECT spill_compare('SELECT count(*) AS id, c FROM spill_t GROUP BY c ORDER BY c');
SET enable_hashagg = off;
SELECT spill_compare('SELECT count(*) AS id, c FROM spill_t GROUP BY c HAVING count(*) > 1 ORDER BY c');
SELECT spill_compare('SELECT count(*) AS id, c FROM spill_t GROUP BY c ORDER BY count(*) DESC, c LIMIT 10');
RESET enable_hashagg;
SELECT spill_compare('SELECT DISTINCT ON (few, c) id, c FROM spill_t ORDER BY few, c, id');

-- Rows that are not needed: equal ones of one run and of several, those beyond a limit.
-- In how many runs rows are written, and so how many are dropped, depends on the time.
CREATE FUNCTION spill_dropped(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
	result text := regexp_replace(spill_compare(query), ', (spilled|in memory)', '');
BEGIN
	PERFORM set_config('gpusort.force', 'on', true);
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
	RETURN result || (SELECT format(', most %s', CASE WHEN sum((node ->> 'Rows Dropped')::int) > max((node ->> 'Rows Sorted')::int) * 0.9 THEN 'dropped' ELSE 'kept' END)
					  FROM jsonb_path_query(plan, 'strict $.** ? (@."Custom Plan Provider" == "GpuSort")') AS node);
END
$$;
SELECT spilled_sorts AS spilled FROM gpusort_stats
\gset
SELECT spill_dropped('SELECT DISTINCT few AS id FROM spill_t ORDER BY few');
SELECT spill_dropped('SELECT DISTINCT left(c, 3) COLLATE "C" AS p, few AS id FROM spill_t ORDER BY p, few');
SELECT spill_dropped('SELECT DISTINCT id FROM spill_t ORDER BY id');
SELECT spill_dropped('SELECT DISTINCT i8, f8, n, few AS id FROM spill_t ORDER BY few, i8, f8, n');
SELECT spill_dropped('SELECT count(DISTINCT u) AS id FROM spill_t');
SELECT spill_dropped('SELECT few AS id, count(DISTINCT n) FROM spill_t GROUP BY few');
SELECT spill_dropped('SELECT DISTINCT ON (few) few AS id, left(c, 1) AS c FROM spill_t ORDER BY few, left(c, 1) DESC');
SELECT spill_dropped('SELECT DISTINCT ON (few, left(c, 1)) few, id FROM spill_t ORDER BY few, left(c, 1), id');
SELECT spill_dropped('SELECT id, r FROM (SELECT id, row_number() OVER (PARTITION BY few ORDER BY c, id) AS r FROM spill_t) AS s WHERE r <= 5');
SELECT spill_dropped('SELECT id, r FROM (SELECT min(id) OVER (PARTITION BY few, r) AS id, r FROM (SELECT few, id, rank() OVER (PARTITION BY few ORDER BY left(c, 2)) AS r FROM spill_t) AS s WHERE r <= 5) AS s ORDER BY id');
SELECT spill_dropped('SELECT id, r FROM (SELECT id, row_number() OVER (PARTITION BY left(libc, 1) ORDER BY icu, id) AS r FROM spill_text) AS s WHERE r <= 5');
SET enable_hashagg = off;
SELECT spill_dropped('SELECT DISTINCT u, length(u::text) AS id FROM spill_t LIMIT 100 OFFSET 30');
RESET enable_hashagg;
SELECT spill_dropped('SELECT DISTINCT libc, length(libc) AS id FROM spill_text ORDER BY libc');
-- such long keys need a little more beside the locale's table, which a GPU has a copy of
SELECT CASE kind WHEN 'cuda' THEN '6MB' ELSE '3MB' END AS more FROM gpusort_devices \gset
ALTER SYSTEM SET gpusort.device_memory = :'more';
SELECT pg_reload_conf();
SELECT set_device_memory(:'more');
SELECT spill_dropped('SELECT DISTINCT libc, pad, id % 10 AS id FROM spill_text ORDER BY libc, id % 10, pad');
ALTER SYSTEM SET gpusort.device_memory = :'memory';
SELECT pg_reload_conf();
SELECT set_device_memory(:'memory');
SELECT spill_dropped('SELECT DISTINCT icu, length(icu) AS id FROM spill_text ORDER BY icu DESC LIMIT 2000');
SELECT spill_dropped('SELECT DISTINCT long, length(long) AS id FROM spill_text ORDER BY long');
SELECT spill_dropped('SELECT DISTINCT long, id % 10 AS id, pad FROM spill_text ORDER BY id % 10, long, pad');
SELECT spill_dropped('SELECT DISTINCT longer, length(longer) AS id FROM spill_text ORDER BY longer');
SELECT spill_dropped('SELECT * FROM spill_t ORDER BY c, id LIMIT 100 OFFSET 20');
SELECT spill_dropped('SELECT * FROM spill_t ORDER BY one, id DESC LIMIT 1');
SELECT spill_dropped('SELECT * FROM spill_text ORDER BY libc, id LIMIT 700');
SELECT spill_dropped('SELECT * FROM spill_text ORDER BY long, id LIMIT 700');
SELECT spilled_sorts - :spilled > 10 AS spilled FROM gpusort_stats;

-- Fed by several processes
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT spill_compare('SELECT * FROM spill_t ORDER BY ' || k) FROM unnest(ARRAY['c, id', 'f8 DESC, id']) AS k;
SELECT spill_compare('SELECT * FROM spill_text ORDER BY ' || k) FROM unnest(ARRAY['libc, id', 'long, id', 'longer, id']) AS k;
SELECT spill_dropped('SELECT DISTINCT few AS id FROM spill_t ORDER BY few');
SELECT spill_dropped('SELECT * FROM spill_t ORDER BY c, id LIMIT 100');
SET max_parallel_workers_per_gather = 0;

-- Indexes
CREATE TABLE t AS SELECT * FROM spill_t;
SELECT spilled_sorts AS spilled FROM gpusort_stats
\gset
SELECT k, index_check(format('CREATE INDEX %%s ON t (%s)', k)) FROM unnest(ARRAY['c', 'few, n DESC', 'one', 'a, f8']) AS k;
SELECT index_check('CREATE UNIQUE INDEX %s ON t (u, id)');
-- One of them may fit, as devices differ in what they set aside
SELECT spilled_sorts - :spilled >= 4 AS spilled FROM gpusort_stats;
INSERT INTO t (id) VALUES (20000);
CREATE UNIQUE INDEX i_unique ON t (id);
DROP TABLE t;
ALTER TABLE spill_text RENAME TO t;
SELECT index_check('CREATE INDEX %s ON t (libc)');
SELECT index_check('CREATE INDEX %s ON t (icu, libc DESC)');

-- Keys that many blocks share: pieces of ranges without rows behind ones that are refused
CREATE TABLE spill_same (id int, c text);
ALTER TABLE spill_same ALTER c SET STORAGE EXTERNAL;
INSERT INTO spill_same SELECT i, repeat('q', 8000 + (i % 9) * 100) || md5((i % 50)::text) || i FROM generate_series(1, 4000) AS i;
SET gpusort.force = on;
SET statement_timeout = '150s';
SELECT count(*) FROM (SELECT c, id FROM spill_same WHERE id < 2000 ORDER BY c COLLATE "C", id) AS s;
SELECT count(*) FROM (SELECT c, id FROM spill_same ORDER BY c COLLATE "C", id) AS s;
RESET statement_timeout;
RESET gpusort.force;
DROP TABLE spill_same;

-- What is told of it
\set ECHO none
\i sql/explain_lines.inc
\set ECHO all
SELECT regexp_replace(l, '\d+', 'N', 'g') FROM explain_lines('SELECT * FROM spill_t ORDER BY c', 'Device|Temporary') AS l;
SELECT fallbacks, temp_bytes > 10000000 AS temp_bytes FROM gpusort_stats;
SELECT wait_closed();
SELECT count(*) FROM gpusort_activity;
SELECT count(*) FROM pg_ls_tmpdir() WHERE name LIKE '%gpusort%';
SELECT sorts, memory_used FROM gpusort_devices;

DROP TABLE t, spill_t;
ALTER SYSTEM RESET gpusort.device_memory;
SELECT pg_reload_conf();
SELECT set_device_memory('0');
DROP FUNCTION set_device_memory, spill_rows, spill_fallbacks, spill_compare, spill_order, spill_scroll, wait_closed, explain_lines,
	index_blocks, index_difference, index_check, index_directions;
