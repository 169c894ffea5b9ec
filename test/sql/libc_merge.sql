-- A merge of partitions compares by strcoll(), which PostgreSQL does not count: under a libc
-- collation GpuSort takes its place where it would not under "C".
\pset format unaligned
\pset tuples_only on
SET max_parallel_workers_per_gather = 0;
SET gpusort.min_rows = 0;
CREATE TABLE merge_libc (id int, v text COLLATE "en_US.utf8") PARTITION BY HASH (id);
CREATE TABLE merge_few (id int, v text COLLATE "en_US.utf8") PARTITION BY HASH (id);
CREATE TABLE merge_c (id int, v text COLLATE "C") PARTITION BY HASH (id);
SELECT format('CREATE TABLE %s%s PARTITION OF %1$s FOR VALUES WITH (MODULUS 4, REMAINDER %2$s)', t, i)
FROM unnest(ARRAY['merge_libc', 'merge_few', 'merge_c']) AS t, generate_series(0, 3) AS i \gexec
INSERT INTO merge_libc SELECT i, '/usr/share/doc/' || md5(i::text) FROM generate_series(1, 10000) AS i;
INSERT INTO merge_libc VALUES (NULL, NULL), (0, NULL), (0, ''), (10001, '/usr/share/doc/'), (10002, '/usr/share/doc/');
INSERT INTO merge_c SELECT * FROM merge_libc;
INSERT INTO merge_few SELECT id, left(v, 16) FROM merge_libc;
CREATE INDEX ON merge_libc (v);
CREATE INDEX ON merge_few (v);
CREATE INDEX ON merge_c (v);
VACUUM ANALYZE merge_libc, merge_few, merge_c;
CREATE FUNCTION sorted_by(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		line := substring(line, 'Merge Append|GpuSort');
		EXIT WHEN line IS NOT NULL;
	END LOOP;
	RETURN line;
END $$;
-- on every device: where a sort has just become too slow under "C"
DO $$
BEGIN
	FOR i IN 0 .. 100 LOOP
		PERFORM set_config('gpusort.cost_factor', (0.05 * 1.1 ^ i)::text, false);
		EXIT WHEN sorted_by('SELECT v FROM merge_c ORDER BY v') = 'Merge Append';
	END LOOP;
END $$;
SELECT sorted_by('SELECT v FROM merge_c ORDER BY v');
SELECT sorted_by('SELECT v FROM merge_libc ORDER BY v');
-- equal texts are compared by their bytes
SELECT sorted_by('SELECT v FROM merge_few ORDER BY v');
-- without statistics texts are taken to be different
CREATE TABLE merge_new (id int, v text COLLATE "en_US.utf8") PARTITION BY HASH (id);
SELECT format('CREATE TABLE merge_new%s PARTITION OF merge_new FOR VALUES WITH (MODULUS 4, REMAINDER %1$s)', i) FROM generate_series(0, 3) AS i \gexec
INSERT INTO merge_new SELECT * FROM merge_libc;
CREATE INDEX ON merge_new (v);
SELECT format('ANALYZE merge_new%s', i) FROM generate_series(0, 3) AS i \gexec
SELECT sorted_by('SELECT v FROM merge_new ORDER BY v');
SELECT sorted_by('SELECT v FROM merge_libc0 UNION ALL SELECT v FROM merge_libc1 UNION ALL SELECT v FROM merge_libc2 UNION ALL SELECT v FROM merge_libc3 ORDER BY v');
DROP TABLE merge_new;
-- not if few rows are wanted, or gpusort costs much more
SELECT sorted_by('SELECT * FROM (SELECT v FROM merge_libc ORDER BY v LIMIT 10) s');
SELECT current_setting('gpusort.cost_factor') AS factor \gset
SET gpusort.cost_factor = 100;
SELECT sorted_by('SELECT v FROM merge_libc ORDER BY v');
SET gpusort.cost_factor = :factor;
-- the same rows
CREATE TABLE merged AS SELECT row_number() OVER () AS n, v FROM (SELECT v FROM merge_libc ORDER BY v OFFSET 0) s;
SET gpusort.enabled = off;
SELECT sorted_by('SELECT v FROM merge_libc ORDER BY v');
SELECT count(*), count(*) FILTER (WHERE m.v IS DISTINCT FROM s.v) AS differ
FROM merged m FULL JOIN (SELECT row_number() OVER () AS n, v FROM (SELECT v FROM merge_libc ORDER BY v OFFSET 0) x) s USING (n);
DROP TABLE merge_libc, merge_few, merge_c, merged;
DROP FUNCTION sorted_by;
