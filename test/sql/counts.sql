--
-- Aggregates that only count different rows: GpuGroup.  Each query runs by PostgreSQL alone,
-- and by gpusort serially and in parallel.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/compare_modes.inc
\set ECHO all
SET gpusort.min_rows = 0;
SET enable_hashagg = off;

SELECT CASE WHEN EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu') THEN 'und-x-icu' ELSE 'C' END AS icu
\gset
CREATE TABLE counts_t (id int, i8 bigint, f8 float8, n numeric, c text COLLATE "C", bp char(9) COLLATE "en_US.utf8",
	libc text COLLATE "en_US.utf8", icu text COLLATE :"icu", vc varchar COLLATE "en_US.utf8", long text COLLATE "C", span interval,
	b bool, a int[], ta text[] COLLATE "en_US.utf8", one int, own int, none text COLLATE "en_US.utf8");
INSERT INTO counts_t
	SELECT i, CASE WHEN i % 50 > 0 THEN i % 90 - 45 END,
		CASE i % 9 WHEN 0 THEN float8 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN 0 WHEN 3 THEN '-infinity' WHEN 4 THEN NULL WHEN 5 THEN 'infinity' ELSE i % 40 END,
		CASE i % 9 WHEN 0 THEN numeric 'NaN' WHEN 1 THEN 0.00 WHEN 2 THEN 0 WHEN 3 THEN 1.0 WHEN 4 THEN 1.000 WHEN 5 THEN NULL ELSE (i % 30)::numeric / 8 END,
		CASE i % 60 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE left(md5((i % 200)::text), i % 12) END,
		CASE i % 60 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE left(md5((i % 50)::text), 2) || repeat(' ', i % 3) END,
		-- many that differ in case, accent and punctuation only
		CASE WHEN i % 60 > 0 THEN translate(left(md5((i % 300)::text), 3), '0123456789abcdef', 'aAAa--A ,_bBB.''éé') END,
		translate(left(md5((i % 300)::text), 3), '0123456789abcdef', 'aAAa--A ,_bBB.''éé'),
		translate(left(md5((i % 300)::text), 3), '0123456789abcdef', 'aAAa--A ,_bBB.''éé') || repeat(' ', i % 2),
		CASE WHEN i % 40 <> 3 THEN repeat('long', CASE WHEN i % 40 = 0 THEN 2100 ELSE 3 END) || (i % 30) END,
		CASE i % 3 WHEN 0 THEN interval '30 days' WHEN 1 THEN interval '1 mon' ELSE interval '720 hours' END * (i % 4),
		nullif(i % 3, 2)::bool, CASE WHEN i % 11 > 0 THEN ARRAY[i % 4, nullif(i % 3, 1)] END,
		ARRAY[chr(97 + i % 3), upper(chr(97 + i % 5))], 1, i, NULL
	FROM generate_series(1, 3000) AS i;
VACUUM ANALYZE counts_t;

-- what an analyzed query's GpuGroup nodes counted by; NULL: there is none
CREATE FUNCTION counted_by(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON, COSTS OFF, TIMING OFF) ' || query INTO plan;
	RETURN (SELECT string_agg(coalesce(node ->> 'Counted By', CASE WHEN node ? 'Group Key' THEN 'groups' ELSE 'no row' END), ' ')
			FROM jsonb_path_query(plan, 'strict $.** ? (@."Custom Plan Provider" == "GpuGroup" && (exists (@."Counted Key") || exists (@."Group Key")))') AS node);
END
$$;

CREATE FUNCTION compare(query text) RETURNS text LANGUAGE sql AS $$
	SELECT regexp_replace(compare_modes(query, 'counted_by', false, ', '), 'rows, ', 'rows, counted by ');
$$;

-- every type, with NULLs and without
CREATE TABLE counts_columns (name text);
INSERT INTO counts_columns VALUES ('i8'), ('f8'), ('n'), ('c'), ('bp'), ('libc'), ('icu'), ('vc'), ('long'), ('span'), ('b'), ('a'), ('ta'), ('one'), ('own'), ('none');
SELECT name, compare(format('SELECT count(DISTINCT %s) FROM counts_t', name)) FROM counts_columns;
SELECT name, compare(format('SELECT count(DISTINCT %s) FROM counts_t WHERE %1$s IS NOT NULL', name)) FROM counts_columns;
SELECT name, compare(format('SELECT count(*) FROM (SELECT DISTINCT %s FROM counts_t) AS s', name)) FROM counts_columns;
SELECT name, compare(format('SELECT count(*) FROM (SELECT DISTINCT %s, c, i8 FROM counts_t) AS s', name)) FROM counts_columns;
SELECT compare(format('SELECT count(DISTINCT libc COLLATE %s), count(DISTINCT libc COLLATE %1$s) * 2 FROM counts_t', c)) FROM unnest(ARRAY['"C"', '"POSIX"', '"en_US.utf8"', '"de_DE.utf8"']) AS c;

-- no row, one row, NULL alone
SELECT compare('SELECT count(DISTINCT libc) FROM counts_t WHERE id < 0');
SELECT compare('SELECT count(DISTINCT libc) FROM counts_t WHERE id = 7');
SELECT compare('SELECT count(DISTINCT libc) FROM counts_t WHERE id = 60');
SELECT compare('SELECT count(*) FROM (SELECT DISTINCT libc, none FROM counts_t WHERE id = 60) AS s');
SELECT compare('SELECT count(*) FROM (SELECT DISTINCT libc FROM counts_t WHERE id < 0) AS s');

-- what is computed of the number
SELECT compare('SELECT count(DISTINCT libc) + 1, ''x'', count(DISTINCT libc)::text || ''y'' FROM counts_t HAVING count(DISTINCT libc) > 5');
SELECT compare('SELECT count(DISTINCT libc) FROM counts_t HAVING count(DISTINCT libc) < 5');
SELECT compare('SELECT count(DISTINCT libc) - (SELECT count(DISTINCT c) FROM counts_t) FROM counts_t');
SELECT compare('SELECT * FROM (SELECT count(DISTINCT libc) AS n FROM counts_t) AS x, (SELECT id FROM counts_t WHERE id < 4 ORDER BY id) AS y WHERE n > id');
-- once for each row above
SELECT compare('SELECT id, (SELECT count(DISTINCT libc) FROM counts_t AS i WHERE i.id % 7 < o.id) FROM (SELECT id FROM counts_t WHERE id < 4 ORDER BY id) AS o');
SELECT compare('SELECT id, n FROM (VALUES (1), (5), (5), (900)) AS o (id), LATERAL (SELECT count(*) FROM (SELECT DISTINCT libc, b FROM counts_t AS i WHERE i.id < o.id) AS s) AS x (n)');
-- with other things to count: not by this node
SELECT compare('SELECT count(DISTINCT libc), count(*) FROM counts_t');
SELECT compare('SELECT count(DISTINCT libc), count(DISTINCT c) FROM counts_t');
SELECT compare('SELECT count(DISTINCT libc) FILTER (WHERE id > 7) FROM counts_t');
SELECT left(compare('SELECT count(DISTINCT (libc, c)) FROM counts_t'), 4);
SELECT compare('SELECT sum(DISTINCT i8) FROM counts_t');
SELECT left(compare('SELECT b, count(DISTINCT libc) FROM counts_t GROUP BY b ORDER BY b'), 4);
SELECT compare('SELECT count(*) FROM (SELECT DISTINCT ON (c) c, id FROM counts_t ORDER BY c, id) AS s');
SELECT compare('SELECT count(*) FROM (SELECT DISTINCT libc FROM counts_t LIMIT 10) AS s');
SELECT compare('SELECT count(*) FROM (SELECT DISTINCT libc FROM counts_t) AS s WHERE libc > ''a''');
SELECT compare('SELECT count(*) FILTER (WHERE libc > ''a'') FROM (SELECT DISTINCT libc FROM counts_t) AS s');
SELECT compare('SELECT count(libc) FROM (SELECT DISTINCT libc FROM counts_t) AS s');

-- how many there are of each
SELECT name, compare(format('SELECT md5(%s::text), count(*) FROM counts_t GROUP BY %1$s ORDER BY %1$s', name)) FROM counts_columns WHERE name NOT IN ('f8', 'n', 'span');
SELECT name, compare(format('SELECT %s, count(*) FROM counts_t GROUP BY %1$s ORDER BY %1$s', shown)) FROM (VALUES ('f8', 'f8 + 0'), ('n', 'trim_scale(n)'), ('span', 'extract(epoch FROM span)')) AS x (name, shown);
SELECT name, compare(format('SELECT %s IS NULL, c, count(*), count(*) - 1 FROM counts_t GROUP BY %1$s, c ORDER BY %1$s, c', name)) FROM counts_columns;
SELECT compare('SELECT libc, count(*) FROM counts_t WHERE id < 0 GROUP BY libc');
SELECT compare('SELECT libc, count(*) FROM counts_t WHERE id = 5 GROUP BY libc');
SELECT compare('SELECT c, count(*) FROM counts_t GROUP BY c HAVING count(*) > 15 AND c > ''a'' ORDER BY c');
SELECT compare('SELECT c || count(*) FROM counts_t GROUP BY c ORDER BY count(*) DESC, c LIMIT 5');
SELECT compare('SELECT 1 FROM counts_t GROUP BY c HAVING count(*) > 15');
SELECT compare('SELECT c, n FROM (SELECT c, count(*) AS n FROM counts_t GROUP BY c ORDER BY c LIMIT 7 OFFSET 3) AS s');
SELECT compare('SELECT count(*) FROM (SELECT c, count(*) FROM counts_t GROUP BY c) AS s');
SELECT compare('SELECT id, s.* FROM (VALUES (1), (5), (5), (900)) AS o (id), LATERAL (SELECT c, count(*) FROM counts_t AS i WHERE i.id < o.id GROUP BY c ORDER BY c) AS s');
ALTER TABLE counts_t ADD PRIMARY KEY (id);
SELECT compare('SELECT id, libc, count(*) FROM counts_t GROUP BY id ORDER BY id');
-- not by this node: GROUPING(), columns of a subquery that are not the sort's
SELECT compare('SELECT c, count(*), grouping(c) FROM counts_t GROUP BY c ORDER BY c');
SELECT compare('SELECT count(DISTINCT k) FROM (SELECT * FROM (SELECT DISTINCT ON (c) c, ''x'' AS k FROM counts_t ORDER BY c) AS q UNION ALL SELECT c, c FROM counts_t WHERE false) AS s');
SELECT compare('SELECT count(DISTINCT k) FROM (SELECT DISTINCT ON (i8) i8, 7::bigint AS k FROM counts_t ORDER BY i8 OFFSET 0) AS s');
-- other aggregates, no aggregate, groups by fewer columns than are sorted by
SELECT compare('SELECT c, count(*), sum(id) FROM counts_t GROUP BY c ORDER BY c');
SELECT compare('SELECT c, count(i8) FROM counts_t GROUP BY c ORDER BY c');
SELECT compare('SELECT c, count(*) FILTER (WHERE id > 7) FROM counts_t GROUP BY c ORDER BY c');
SELECT left(compare('SELECT c, count(*), count(DISTINCT b) FROM counts_t GROUP BY c ORDER BY c'), 4);
SELECT compare('SELECT c, b, count(*) FROM counts_t GROUP BY ROLLUP (c, b) ORDER BY c, b');
-- groups larger than a page, and many small ones
CREATE TABLE counts_many AS SELECT CASE WHEN i % 3 = 0 THEN 'many' WHEN i % 3 = 1 THEN 'some ' || i % 900 ELSE i::text END COLLATE "C" AS c, i FROM generate_series(1, 120000) AS i;
VACUUM ANALYZE counts_many;
SELECT compare('SELECT c, count(*) FROM counts_many GROUP BY c ORDER BY c');
SELECT compare('SELECT c COLLATE "en_US.utf8", count(*) FROM counts_many GROUP BY 1 ORDER BY 1');
SELECT compare('SELECT count(DISTINCT c) FROM counts_many');
-- rows too large for a chunk; keys that are cut off; a GpuSort that returns fewer columns than it reads
CREATE TABLE counts_big (id int PRIMARY KEY, v text);
ALTER TABLE counts_big ALTER v SET STORAGE EXTERNAL;
INSERT INTO counts_big SELECT i, repeat('x', CASE WHEN i % 10 = 0 THEN 300000 ELSE i END) FROM generate_series(1, 300) AS i;
CREATE TABLE counts_aside AS SELECT ARRAY[CASE WHEN i % 7 = 0 THEN repeat('x', 20000) || i % 3 ELSE 'y' || i % 50 END COLLATE "C"] AS a FROM generate_series(1, 3000) AS i;
VACUUM ANALYZE counts_big, counts_aside;
SELECT compare('SELECT id, length(v), count(*) FROM counts_big GROUP BY id ORDER BY id');
SELECT compare('SELECT left(a[1], 3), count(*) FROM counts_aside GROUP BY a ORDER BY a');
SELECT compare('SELECT left(a[1], 3), count(*) FROM counts_aside WHERE length(a[1]) < 50 GROUP BY a ORDER BY a');
SELECT compare('SELECT n, count(*) FROM (SELECT i8 % 5 AS n, c FROM counts_t ORDER BY c, i8 LIMIT 2000) AS s GROUP BY n ORDER BY n');
SELECT compare('SELECT c, count(*), sum(count(*)) OVER (ORDER BY c), 7 FROM counts_t GROUP BY c ORDER BY c');
-- the aggregate's column is not the one that the subquery is sorted by
SET max_parallel_workers_per_gather = 0;
SELECT count(DISTINCT k) FROM (SELECT * FROM (SELECT DISTINCT ON (i) i, 7 AS k FROM counts_many ORDER BY i) AS q UNION ALL SELECT i, i FROM counts_many WHERE false) AS s;

-- the plan: texts are sorted by their bytes
SET gpusort.force = on;
SET max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS OFF, VERBOSE) SELECT count(DISTINCT libc) + 1 FROM counts_t HAVING count(DISTINCT libc) > 5;
EXPLAIN (COSTS OFF) SELECT count(*) FROM (SELECT DISTINCT libc, i8, ta FROM counts_t) AS s;
EXPLAIN (COSTS OFF, VERBOSE) SELECT c, b, count(*) + 1 FROM counts_t GROUP BY b, c HAVING count(*) > 5;
-- a cursor, a prepared statement, and rows that were kept in this process
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT count(DISTINCT libc) FROM counts_t;
FETCH 2 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH FIRST FROM c;
CLOSE c;
DECLARE c SCROLL CURSOR FOR SELECT i8, count(*) FROM counts_t GROUP BY i8 ORDER BY i8;
FETCH 2 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
CLOSE c;
COMMIT;
SET plan_cache_mode = force_generic_plan;
PREPARE q (int) AS SELECT count(DISTINCT libc) FROM counts_t WHERE id < $1;
EXECUTE q (0);
EXECUTE q (500);
EXECUTE q (10000);
SET gpusort.min_rows = 100000;
EXECUTE q (500);
DEALLOCATE q;
PREPARE q (int) AS SELECT b, count(*) FROM counts_t WHERE id < $1 GROUP BY b;
EXECUTE q (0);
EXECUTE q (500);
DEALLOCATE q;

-- a sort whose number is known holds no memory
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT count(DISTINCT c) FROM counts_t UNION ALL SELECT count(DISTINCT n) FROM counts_t
	UNION ALL SELECT count(*) FROM (SELECT c, i8 FROM counts_t GROUP BY c, i8 OFFSET 0) AS s UNION ALL SELECT count(*) FROM (SELECT DISTINCT c, bp FROM counts_t) AS s;
MOVE ALL FROM c;
SELECT count(*) FROM gpusort_activity WHERE phase <> 'closing';
COMMIT;

-- an Agg does not ask for the right to compare the values of a DISTINCT by one column, and no node asks a plan that was cached
BEGIN;
CREATE ROLE counts_r;
GRANT SELECT ON counts_t TO counts_r;
PREPARE cached AS SELECT count(DISTINCT n) FROM counts_t;
PREPARE cached_groups AS SELECT b, count(DISTINCT n) FROM counts_t GROUP BY b ORDER BY b;
PREPARE cached_numbers AS SELECT b, count(DISTINCT n), sum(i8) FROM counts_t GROUP BY b ORDER BY b;
SET LOCAL plan_cache_mode = force_generic_plan;
SET LOCAL gpusort.force = on;
EXECUTE cached;
EXECUTE cached_groups;
EXECUTE cached_numbers;
REVOKE EXECUTE ON FUNCTION pg_catalog.numeric_eq(numeric, numeric) FROM PUBLIC;
SET LOCAL ROLE counts_r;
EXECUTE cached;
EXECUTE cached_groups;
EXECUTE cached_numbers;
SELECT compare('SELECT count(DISTINCT n) FROM counts_t');
SELECT left(compare('SELECT b, count(DISTINCT n) FROM counts_t GROUP BY b ORDER BY b'), 11);
SELECT compare('SELECT b, count(DISTINCT n), min(DISTINCT id) FROM counts_t GROUP BY b ORDER BY b');
-- what PostgreSQL checks
CREATE FUNCTION pg_temp.refused(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text := '';
BEGIN
	FOR enabled IN 0 .. 1 LOOP
		PERFORM set_config('gpusort.enabled', enabled::text, true);
		BEGIN
			EXECUTE query;
			message := message || ' allowed';
		EXCEPTION WHEN insufficient_privilege THEN
			message := message || ' ' || sqlerrm;
		END;
	END LOOP;
	RETURN message;
END $$;
SELECT pg_temp.refused('SELECT ' || query) FROM unnest(ARRAY['n, count(*) FROM counts_t GROUP BY n', 'DISTINCT n FROM counts_t', 'count(*) FROM (SELECT DISTINCT n FROM counts_t) AS s',
	'count(DISTINCT (n, i8)) FROM counts_t', 'sum(i8) OVER (PARTITION BY n) FROM counts_t', 'row_number() OVER (ORDER BY n) FROM counts_t']) AS query;
ROLLBACK;
DEALLOCATE ALL;

DROP TABLE counts_t, counts_columns, counts_many;
DROP FUNCTION compare, counted_by, compare_modes, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
