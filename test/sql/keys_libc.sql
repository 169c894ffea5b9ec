--
-- Text under libc collations, by keys made from glibc's tables.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/explain_lines.inc
\i sql/keys_common.inc
\set ECHO all

-- Strings on which strxfrm and strcoll disagree, or that have little or no
-- primary weight; many that differ in case, accents and punctuation only.
CREATE TABLE libc_t (id int, v text COLLATE "en_US.utf8", b char(20) COLLATE "en_US.utf8", n int);
INSERT INTO libc_t
	SELECT i, s, left(s, 20), i % 5
	FROM (SELECT i, translate(left(md5(i::text), 1 + i % 9), '0123456789abcdef', '11a--A ,_bBc.''x9') AS s
		  FROM generate_series(1, 1500) AS i) x;
INSERT INTO libc_t
	SELECT 3000 + i, s, left(s, 20), i % 5
	FROM (SELECT i, translate(left(md5(i::text), 1 + i % 7), '0123456789abcdef',
							  'aáàeéÉoöÖßsñn' || chr(769) || chr(776) || '-') AS s
		  FROM generate_series(1, 1500) AS i) x;
INSERT INTO libc_t
	SELECT 6000 + i, s, left(s, 20), i % 5
	FROM (SELECT i, chr(44032 + (i * 7919) % 11172) || chr(128512 + i % 70) ||
				 CASE i % 3 WHEN 0 THEN '' WHEN 1 THEN 'x' ELSE chr(20000 + i) END AS s
		  FROM generate_series(1, 300) AS i) x;
INSERT INTO libc_t
	SELECT 7000 + i, s, left(s, 20), i % 5
	FROM (SELECT i, '/usr/share/doc/' || left(md5((i / 3)::text), 3) || CASE WHEN i % 2 = 0 THEN '.GZ' ELSE '.gz' END AS s
		  FROM generate_series(1, 1000) AS i) x;
INSERT INTO libc_t VALUES
	(9001, '', '', 0), (9002, '', '', 1), (9003, ' ', ' ', 0), (9004, '-', '-', 0), (9005, '--', '--', 0),
	(9006, '111a', '111a', 0), (9007, '11-1a', '11-1a', 0), (9008, '111 c', '111 c', 0), (9009, '11 1c', '11 1c', 0),
	(9010, NULL, NULL, 0), (9011, NULL, NULL, 1), (9012, E'\x01', E'\x01', 0), (9013, E'a\x01b', 'a', 0),
	(9014, E'\x7f', E'\x7f', 0), (9015, 'a', 'a', 0), (9016, 'A', 'A', 0), (9017, 'á', 'á', 0), (9018, 'Á', 'Á', 0),
	(9019, E'\x01éa\x01z', E'\x01éa\x01z', 0), (9020, E'\x01éb\x01y', E'\x01é', 0), (9021, E'\x01\x01é', E'\x01\x01', 0);
ANALYZE libc_t;

SELECT * FROM four_orders('libc_t', 'v', 'v');
SELECT * FROM four_orders('libc_t', 'b', 'b');
SELECT * FROM four_orders('libc_t', 'v COLLATE "C.utf8"', 'v');
SELECT same_order('libc_t', 'v, id', 'id');
SELECT same_order('libc_t', 'v DESC, id DESC', 'id');
SELECT same_order('libc_t', 'n, v, id', 'id');
SELECT same_order('libc_t', 'n DESC NULLS LAST, v DESC NULLS LAST, b, id', 'id');
SELECT same_order('libc_t', 'b, v DESC, id', 'id');
SELECT same_order('libc_t', 'left(v, 1) COLLATE "C", v, id', 'id');
SELECT same_order('libc_t', 'v, left(v, 1) COLLATE "C" DESC, id', 'id');
SELECT same_order('libc_t', 'lower(v), v, id', 'id');
SELECT same_order('libc_t', 'left(v, 1) COLLATE "de_DE.utf8", b DESC, v COLLATE "de_DE.utf8" DESC, id', 'id');
SELECT same_order('libc_t', 'left(v, 2) COLLATE "en_US.utf8", v COLLATE "de_DE.utf8", v, id', 'id');
SELECT same_order('libc_t', 'id::numeric, v', 'id');
-- as many columns as can be told apart, and one more
SELECT n, same_order('libc_t', string_agg('n % ' || i, ', ' ORDER BY i) || ', v DESC, b, id', 'id')
FROM unnest(ARRAY[20, 61, 62]) AS n, generate_series(1, n) AS i GROUP BY n ORDER BY n;
SELECT same_order('libc_t', 'v, b COLLATE "C", id', 'id');
SELECT same_order('libc_t', 'v, id::numeric', 'id');
SELECT same_order('libc_t', 'ARRAY[v], id', 'id');

SET gpusort.force = on;
SET gpusort.min_rows = 0;

-- what EXPLAIN says
CREATE FUNCTION explain_check(query text) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT explain_lines(query, 'Sort Key|Device|Fallback');
$$;
SELECT explain_check('SELECT v FROM libc_t ORDER BY v');
-- a locale without rules orders byte 01 like others
SELECT gpusort_stats_reset();
SELECT count(*)
FROM (SELECT * FROM (SELECT translate(left(md5(i::text), 5), '0123456789abcdef', E'\x01\x02ab\x7f \t-cdABC\nzy') AS v
					 FROM generate_series(1, 3000) AS i) x
	  ORDER BY v COLLATE "C.utf8" OFFSET 0) s;
SELECT device_sorts, fallbacks FROM gpusort_stats;
SET gpusort.min_rows = 100000;
SELECT explain_check('SELECT v FROM libc_t ORDER BY v');
DROP TABLE libc_t, keys_direction;
DROP FUNCTION explain_check, explain_lines, four_orders, same_order, keys_taken, keys_rank;
