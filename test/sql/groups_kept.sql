--
-- Groups that the device drops: HAVING compares count(*) with a constant, or a Sort and a LIMIT want the groups that
-- have most rows.  Each query runs by PostgreSQL alone, and by gpusort serially and in parallel; "dropped" are
-- the rows that the device has not returned, of those whose groups it counts.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/compare_modes.inc
\set ECHO all
SET gpusort.min_rows = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_hashagg = off;

SELECT CASE WHEN EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu') THEN 'und-x-icu' ELSE 'C' END AS icu
\gset
-- some values are there once, others up to 90 times
CREATE TABLE kept_t (id int, i8 bigint, n numeric, c text COLLATE "C", libc text COLLATE "en_US.utf8", icu text COLLATE :"icu",
	long text COLLATE "C", b bool, one int, own int, none text COLLATE "en_US.utf8");
INSERT INTO kept_t
	SELECT i, CASE WHEN i % 50 > 0 THEN i % (i % 90 + 1) END,
		CASE i % 9 WHEN 0 THEN numeric 'NaN' WHEN 1 THEN 0.00 WHEN 2 THEN 0 WHEN 3 THEN 1.0 WHEN 4 THEN 1.000 WHEN 5 THEN NULL ELSE (i % (i % 90 + 1))::numeric / 8 END,
		CASE i % 60 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE left(md5((i % 200)::text), i % 12) END,
		CASE WHEN i % 60 > 0 THEN translate(left(md5((i % 300)::text), 3), '0123456789abcdef', 'aAAa--A ,_bBB.''éé') END,
		translate(left(md5((i % 300)::text), 3), '0123456789abcdef', 'aAAa--A ,_bBB.''éé'),
		CASE WHEN i % 40 <> 3 THEN repeat('long', CASE WHEN i % 40 = 0 THEN 2100 ELSE 3 END) || (i % 30) END,
		nullif(i % 3, 2)::bool, 1, i, NULL
	FROM generate_series(1, 3000) AS i;
VACUUM ANALYZE kept_t;

CREATE FUNCTION counted(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON, COSTS OFF, TIMING OFF) ' || query INTO plan;
	RETURN (SELECT sum(coalesce((node ->> 'Rows Dropped')::bigint, 0)) FROM jsonb_path_query(plan, 'strict $.** ? (@."Counted" == true)') AS node);
END
$$;

CREATE FUNCTION compare(query text) RETURNS text LANGUAGE sql AS $$
	SELECT regexp_replace(compare_modes(query, 'counted', false, ', '), 'rows, ', 'rows, dropped ');
$$;

-- every kind of key
CREATE TABLE kept_columns (name text, shown text);
INSERT INTO kept_columns VALUES ('i8', 'i8'), ('n', 'trim_scale(n)'), ('c', 'c'), ('libc', 'libc'), ('icu', 'icu'), ('long', 'md5(long)'), ('b', 'b'),
	('one', 'one'), ('own', 'own'), ('none', 'none');
SELECT name, compare(format('SELECT %s, count(*) FROM kept_t GROUP BY %s HAVING count(*) > 10 ORDER BY %2$s', shown, name)) FROM kept_columns;
SELECT name, compare(format('SELECT %s, count(*) FROM kept_t GROUP BY %1$s HAVING count(*) = 1 ORDER BY %1$s', shown)) FROM kept_columns WHERE name <> 'long';
SELECT name, compare(format('SELECT %s, c, count(*) FROM kept_t GROUP BY %1$s, c HAVING count(*) > 1 ORDER BY %1$s, c', shown)) FROM kept_columns WHERE name <> 'long';
-- every comparison, and every size of a number
SELECT cond, compare(format('SELECT c, count(*) FROM kept_t GROUP BY c HAVING %s ORDER BY c', cond)) FROM unnest(ARRAY[
	'count(*) > 1', 'count(*) >= 2', 'count(*) = 1', 'count(*) = 15', 'count(*) < 15', 'count(*) <= 1', 'count(*) <> 1', 'count(*) <> 15', '1 < count(*)', '2 >= count(*)',
	'count(*) BETWEEN 2 AND 14', 'count(*) > 3 AND count(*) < 3', 'count(*) > 0', 'count(*) > -7', 'count(*) < 0', 'count(*) = 0', 'count(*) <> 0', 'count(*) > NULL', 'count(*) > 1::smallint',
	'count(*) > 1::bigint', 'count(*) > 4294967294', 'count(*) > 4294967295', 'count(*) >= 4294967296', 'count(*) = 4294967297', 'count(*) < 4294967297', 'count(*) <> 4294967297',
	'count(*) > 9223372036854775807', 'count(*) <= 9223372036854775807', 'count(*) > -9223372036854775808', 'count(*) < -9223372036854775808',
	-- the first of them only, or none
	'count(*) > 1 AND c > ''a''', 'count(*) > 1 AND count(*) % 2 = 0', 'count(*) > 1 OR c IS NULL', 'NOT count(*) > 1', 'count(*) > 1.5', 'count(*) > length(c)',
	'count(*) > 2 AND count(*) > length(c)', 'count(*) FILTER (WHERE id > 7) > 1', 'count(DISTINCT id) > 1', 'count(*) > 1 AND sum(id) > 1', 'count(*) > (SELECT 1)']) AS cond;
-- nothing but the filter needs the number; an outer condition; a group is the whole table; no row
SELECT compare('SELECT c FROM kept_t GROUP BY c HAVING count(*) > 14 ORDER BY c');
SELECT compare('SELECT 1 FROM kept_t GROUP BY own HAVING count(*) > 1');
SELECT compare('SELECT * FROM (SELECT c, count(*) AS n FROM kept_t GROUP BY c) AS s WHERE n > 14 ORDER BY c');
SELECT compare('SELECT count(*), sum(n) FROM (SELECT c, count(*) AS n FROM kept_t GROUP BY c HAVING count(*) > 14) AS s');
SELECT compare('SELECT count(*) FROM kept_t HAVING count(*) > 1');
SELECT compare('SELECT c, count(*) FROM kept_t WHERE id < 0 GROUP BY c HAVING count(*) > 1');
SELECT compare('SELECT c, count(*) FROM kept_t GROUP BY c HAVING count(*) > 1 ORDER BY c LIMIT 7 OFFSET 3');
-- once for each row above, with another number each time
SELECT compare('SELECT o.id, s.* FROM (VALUES (1), (5), (5), (900)) AS o (id), LATERAL (SELECT c, count(*) FROM kept_t AS i WHERE i.id < o.id GROUP BY c HAVING count(*) > 1 ORDER BY c) AS s');
SELECT compare('SELECT o.n, s.* FROM (VALUES (1), (5), (14)) AS o (n), LATERAL (SELECT c, count(*) FROM kept_t GROUP BY c HAVING count(*) > o.n ORDER BY c) AS s');
SELECT compare('SELECT o.n, (SELECT count(*) FROM (SELECT c FROM kept_t GROUP BY c HAVING count(*) > 5) AS s WHERE s.c > o.n) FROM (VALUES (''1''), (''5''), (''a'')) AS o (n)');

-- the groups that have most rows
SELECT name, compare(format('SELECT %s, count(*) FROM kept_t GROUP BY %1$s ORDER BY count(*) DESC, %1$s LIMIT 5', shown)) FROM kept_columns WHERE name <> 'long';
SELECT n, compare(format('SELECT c, count(*) FROM kept_t GROUP BY c ORDER BY 2 DESC, 1 LIMIT %s', n)) FROM unnest(ARRAY['0', '1', '20', '100', '190', '5000', 'NULL', 'ALL', '5 OFFSET 15', '10000000000']) AS n;
SELECT compare('SELECT c FROM kept_t GROUP BY c HAVING count(*) > 5 ORDER BY count(*) DESC, c LIMIT 5');
SELECT compare('SELECT c FROM kept_t GROUP BY c HAVING count(*) >= 100 ORDER BY count(*) DESC, c LIMIT 5');
SELECT compare('SELECT c, b, count(*) FROM kept_t GROUP BY c, b ORDER BY count(*) DESC, b, c FETCH FIRST 3 ROWS ONLY');
-- other orders, other filters, rows above that are not asked for: not these
SELECT compare('SELECT c FROM kept_t GROUP BY c HAVING count(*) < 15 ORDER BY count(*) DESC, c LIMIT 5');
SELECT compare('SELECT c FROM kept_t GROUP BY c HAVING count(*) % 2 = 0 ORDER BY count(*) DESC, c LIMIT 5');
SELECT compare('SELECT c, count(*) FROM kept_t GROUP BY c ORDER BY count(*), c LIMIT 5');
SELECT compare('SELECT c, count(*) FROM kept_t GROUP BY c ORDER BY c, count(*) DESC LIMIT 5');
SELECT compare('SELECT c, count(*) FROM kept_t GROUP BY c ORDER BY -count(*), c LIMIT 5');
SELECT compare('SELECT i8, count(*) FROM kept_t GROUP BY i8 ORDER BY i8 DESC, count(*) DESC LIMIT 5');
SELECT compare('SELECT count(*) FROM kept_t GROUP BY c ORDER BY count(*) DESC FETCH FIRST 3 ROWS WITH TIES');
SELECT compare('SELECT c, generate_series(1, 0), count(*) FROM kept_t GROUP BY c ORDER BY count(*) DESC, c LIMIT 5');
SELECT compare('SELECT * FROM (SELECT c, count(*) AS n FROM kept_t GROUP BY c ORDER BY count(*) DESC, c) AS s WHERE c > ''e'' LIMIT 3');
SELECT compare('SELECT c, count(*), row_number() OVER (ORDER BY c) FROM kept_t GROUP BY c ORDER BY count(*) DESC, c LIMIT 3');

-- many groups and few, of many rows, and of so many that the work on one is shared
CREATE TABLE kept_many AS SELECT CASE WHEN i % 3 = 0 THEN 'many' WHEN i % 3 = 1 THEN 'some ' || i % 900 ELSE i::text END COLLATE "C" AS c, i FROM generate_series(1, 300000) AS i;
VACUUM ANALYZE kept_many;
SELECT cond, compare(format('SELECT c, count(*) FROM kept_many GROUP BY c HAVING count(*) %s ORDER BY c', cond)) FROM unnest(ARRAY['> 1', '= 1', '> 334', '> 99999', '> 100000']) AS cond;
SELECT n, compare(format('SELECT c, count(*) FROM kept_many GROUP BY c ORDER BY count(*) DESC, c LIMIT %s', n)) FROM unnest(ARRAY[1, 2, 300, 5000]) AS n;
-- keys that are cut off, rows beside the device's: all groups come
CREATE TABLE kept_aside AS SELECT ARRAY[CASE WHEN i % 7 = 0 THEN repeat('x', 20000) || i % 3 ELSE 'y' || i % 50 END COLLATE "C"] AS a FROM generate_series(1, 3000) AS i;
VACUUM ANALYZE kept_aside;
SELECT compare('SELECT left(a[1], 3), count(*) FROM kept_aside GROUP BY a HAVING count(*) > 51 ORDER BY a');
SELECT compare('SELECT left(a[1], 3), count(*) FROM kept_aside WHERE length(a[1]) < 50 GROUP BY a HAVING count(*) > 51 ORDER BY a');
SELECT compare('SELECT left(a[1], 3), count(*) FROM kept_aside GROUP BY a ORDER BY count(*) DESC, a LIMIT 3');

-- the plan
SET gpusort.force = on;
SET max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS OFF) SELECT c, b, count(*) FROM kept_t GROUP BY b, c HAVING count(*) > 5 AND 7 >= count(*) AND count(*) % 2 = 0;
EXPLAIN (COSTS OFF) SELECT c, count(*) FROM kept_t GROUP BY c ORDER BY count(*) DESC LIMIT 10 OFFSET 5;
-- not where other groups' expressions raise errors, or have effects
EXPLAIN (COSTS OFF) SELECT c, 1 / (count(*) - 88) AS e, count(*) FROM kept_t GROUP BY c ORDER BY count(*) DESC LIMIT 3;
EXPLAIN (COSTS OFF) SELECT c, count(*) FROM kept_t GROUP BY c HAVING count(*) > 3 ORDER BY count(*) DESC LIMIT 10;

-- and where PostgreSQL sorts by the number
SET gpusort.force = off;
EXPLAIN (COSTS OFF) SELECT c, count(*) FROM kept_many GROUP BY c ORDER BY count(*) DESC LIMIT 10;
SET gpusort.enabled = off;
CREATE TABLE kept_top AS SELECT c, count(*) FROM kept_many GROUP BY c ORDER BY count(*) DESC, c LIMIT 400;
SET gpusort.enabled = on;
SELECT count(*), count(*) FILTER (WHERE s = k) FROM (SELECT row_number() OVER () AS i, q::text AS s FROM (SELECT c, count(*) FROM kept_many GROUP BY c ORDER BY count(*) DESC, c LIMIT 400) AS q) AS x
	FULL JOIN (SELECT row_number() OVER () AS i, q::text AS k FROM kept_top AS q) AS y USING (i);
SET gpusort.force = on;

-- a cursor, prepared statements, and rows that were kept in this process
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT i8, count(*) FROM kept_t GROUP BY i8 HAVING count(*) > 60 ORDER BY i8;
FETCH 2 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ALL FROM c;
FETCH FIRST FROM c;
COMMIT;
SET plan_cache_mode = force_generic_plan;
PREPARE q (bigint) AS SELECT i8, count(*) FROM kept_t GROUP BY i8 HAVING count(*) > $1 ORDER BY i8;
EXPLAIN (COSTS OFF) EXECUTE q (60);
EXECUTE q (70);
EXECUTE q (75);
EXECUTE q (NULL);
EXECUTE q (9223372036854775807);
PREPARE top_groups (int) AS SELECT i8, count(*) FROM kept_t GROUP BY i8 ORDER BY count(*) DESC, i8 LIMIT $1;
EXPLAIN (COSTS OFF) EXECUTE top_groups (2);
EXECUTE top_groups (2);
EXECUTE top_groups (0);
EXECUTE top_groups (1);
SET gpusort.min_rows = 100000;
EXECUTE q (70);
EXECUTE top_groups (2);
DEALLOCATE ALL;
-- a function's parameter
SET gpusort.min_rows = 0;
CREATE FUNCTION kept_groups(wanted bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	groups bigint := 0;
	r record;
BEGIN
	FOR r IN SELECT i8 FROM kept_t GROUP BY i8 HAVING count(*) > wanted LOOP
		groups := groups + 1;
		wanted := 100;
	END LOOP;
	RETURN groups;
END
$$;
SELECT n, kept_groups(n) FROM unnest(ARRAY[0, 60, 75, NULL]) AS n;

DROP TABLE kept_t, kept_columns, kept_many, kept_aside, kept_top;
DROP FUNCTION kept_groups, compare, counted, compare_modes, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
