--
-- The order of gpusort against PostgreSQL's own, for every type that it takes.
--
-- same_order() runs one ordered query under both and compares the rows one by
-- one.  Rows that the operator class calls equal may come in any order, so
-- image is an expression that is the same for equal values, and different
-- for others.  "gpusort" says that the sort was taken, "postgres" that it was
-- left to PostgreSQL.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/keys_common.inc
\set ECHO all
SELECT setseed(0.5);

--
-- Integers and what is stored as one
--
CREATE TABLE keys_int (id int, v8 bigint, v4 int, v2 smallint);
INSERT INTO keys_int
	SELECT i, floor((random() - 0.5) * 2 ^ (random() * 62)), floor((random() - 0.5) * 2 ^ (random() * 31)),
		   floor((random() - 0.5) * 2 ^ (random() * 15))
	FROM generate_series(1, 1000) i;
INSERT INTO keys_int VALUES
	(1001, 0, 0, 0), (1002, -1, -1, -1), (1003, 1, 1, 1),
	(1004, 9223372036854775807, 2147483647, 32767),
	(1005, -9223372036854775808, -2147483648, -32768),
	(1006, 9223372036854775806, 2147483646, 32766),
	(1007, 255, 255, 255), (1008, 256, 256, 256), (1009, -256, -256, -256),
	(1010, 4294967296, 65536, NULL), (1011, NULL, NULL, NULL), (1012, NULL, NULL, NULL);
SELECT * FROM four_orders('keys_int', 'v8', 'v8');
SELECT * FROM four_orders('keys_int', 'v4', 'v4');
SELECT * FROM four_orders('keys_int', 'v2', 'v2');
SELECT * FROM four_orders('(SELECT v4 > 0 AS v FROM keys_int) b', 'v', 'v');
SELECT * FROM four_orders('(SELECT v4::oid AS v FROM keys_int) o', 'v', 'v');
SELECT * FROM four_orders('(SELECT v8::text::xid8 AS v FROM keys_int WHERE v8 >= 0 OR v8 IS NULL) x', 'v', 'v');
SELECT * FROM four_orders('(SELECT (v2 % 128)::int::"char" AS v FROM keys_int) c', 'v', 'v::int');
SELECT * FROM four_orders('(SELECT (v4::bigint)::money AS v FROM keys_int) m', 'v', 'v');
SELECT * FROM four_orders('(SELECT ''0/0''::pg_lsn + abs(v4::numeric) AS v FROM keys_int) l', 'v', 'v');

--
-- Floats: both zeroes are equal, every NaN is equal and above all else
--
CREATE TABLE keys_float (v8 float8, v4 float4);
INSERT INTO keys_float
	SELECT (random() - 0.5) * 10 ^ (random() * 300), (random() - 0.5) * 10 ^ (random() * 30)
	FROM generate_series(1, 1000);
INSERT INTO keys_float
	SELECT (random() - 0.5) * 10 ^ (random() * -300), (random() - 0.5) * 10 ^ (random() * -30)
	FROM generate_series(1, 1000);
INSERT INTO keys_float VALUES
	('0', '0'), ('-0', '-0'), ('NaN', 'NaN'), ('-NaN', '-NaN'), ('Infinity', 'Infinity'),
	('-Infinity', '-Infinity'), ('4.9e-324', '1.4e-45'), ('-4.9e-324', '-1.4e-45'),
	('2.225e-308', '1.1754942e-38'), ('-2.225e-308', '-1.1754942e-38'),
	('1.7976931348623157e308', '3.4028235e38'), ('-1.7976931348623157e308', '-3.4028235e38'),
	('1', '1'), ('-1', '-1'), ('1.0000000000000002', '1.0000001'), (NULL, NULL), (NULL, NULL);
-- no literal gives a NaN with its sign set; arithmetic on infinities does
INSERT INTO keys_float SELECT 'Infinity'::float8 - 'Infinity'::float8, 'Infinity'::float4 - 'Infinity'::float4;
INSERT INTO keys_float SELECT -('NaN'::float8), -('NaN'::float4);
SELECT * FROM four_orders('keys_float', 'v8', 'v8 + 0');
SELECT * FROM four_orders('keys_float', 'v4', 'v4 + 0::float4');

--
-- Dates and times
--
CREATE TABLE keys_time (d date, t time, ts timestamp, tz timestamptz, ttz timetz, i interval);
INSERT INTO keys_time
	SELECT ts::date, ts::time, ts, ts,
		   (ts::time::text || CASE WHEN random() < 0.5 THEN '+' ELSE '-' END || floor(random() * 15)::text)::timetz,
		   make_interval(months => floor(random() * 6 - 3)::int, days => floor(random() * 180 - 90)::int,
						 hours => 24 * floor(random() * 180 - 90)::int, secs => floor(random() * 3 - 1) / 1000000)
	FROM (SELECT timestamp '2000-01-01' + (random() - 0.5) * interval '600000 days' AS ts
		  FROM generate_series(1, 1000)) s;
INSERT INTO keys_time VALUES
	('infinity', '24:00', 'infinity', 'infinity', '24:00-12', '178000000 years'),
	('-infinity', '00:00', '-infinity', '-infinity', '00:00+15', '-178000000 years'),
	('4714-11-24 BC', '00:00:00.000001', '4714-11-24 00:00 BC', '4714-11-24 00:00+00 BC', '10:00+00', '1 mon'),
	('5874897-12-31', '23:59:59.999999', '294276-12-31 23:59:59.999999', '294276-12-31 23:59:59.999999+00', '11:00+01', '30 days'),
	('2000-01-01', '12:00', '2000-01-01', '2000-01-01', '09:00-01', '720 hours'),
	('1999-12-31', '11:59:59.999999', '1999-12-31 23:59:59.999999', '1999-12-31 23:59:59.999999', '12:00+02', '29 days 24:00'),
	('2000-01-02', '12:00:00.000001', '2000-01-01 00:00:00.000001', '2000-01-01 00:00:00.000001', '10:00:00.000001+00', '1 mon -1 days 23:59:59.999999'),
	('2000-01-01', '12:00', '2000-01-01', '2000-01-01', '10:00+00', '-1 mon'),
	('2000-01-01', '12:00', '2000-01-01', '2000-01-01', '10:00+00', '0'),
	('2000-01-01', '12:00', '2000-01-01', '2000-01-01', '10:00+00', '2147483647 days'),
	('2000-01-01', '12:00', '2000-01-01', '2000-01-01', '10:00+00', '-2147483648 days'),
	(NULL, NULL, NULL, NULL, NULL, NULL), (NULL, NULL, NULL, NULL, NULL, NULL);
SELECT * FROM four_orders('keys_time', 'd', 'd');
SELECT * FROM four_orders('keys_time', 't', 't');
SELECT * FROM four_orders('keys_time', 'ts', 'ts');
SELECT * FROM four_orders('keys_time', 'tz', 'tz');
SELECT * FROM four_orders('keys_time', 'ttz', 'ttz');
SELECT * FROM four_orders('keys_time', 'i', 'interval_hash(i)');

--
-- Bytes of a fixed length
--
CREATE TABLE keys_raw (u uuid, m macaddr, m8 macaddr8);
INSERT INTO keys_raw
	SELECT md5(i::text)::uuid, left(md5(i::text), 12)::macaddr, left(md5(i::text), 16)::macaddr8
	FROM generate_series(1, 1000) i;
INSERT INTO keys_raw VALUES
	('00000000-0000-0000-0000-000000000000', '00:00:00:00:00:00', '00:00:00:00:00:00:00:00'),
	('ffffffff-ffff-ffff-ffff-ffffffffffff', 'ff:ff:ff:ff:ff:ff', 'ff:ff:ff:ff:ff:ff:ff:ff'),
	('00000000-0000-0000-0000-000000000001', '00:00:00:00:00:01', '00:00:00:00:00:00:00:01'),
	('80000000-0000-0000-0000-000000000000', '80:00:00:00:00:00', '80:00:00:00:00:00:00:00'),
	('7fffffff-ffff-ffff-ffff-ffffffffffff', '7f:ff:ff:ff:ff:ff', '7f:ff:ff:ff:ff:ff:ff:ff'),
	(NULL, NULL, NULL), (NULL, NULL, NULL);
SELECT * FROM four_orders('keys_raw', 'u', 'u');
SELECT * FROM four_orders('keys_raw', 'm', 'm');
SELECT * FROM four_orders('keys_raw', 'm8', 'm8');

--
-- Text under collations that compare bytes; prefixes, and a small alphabet for
-- many ties
--
CREATE TABLE keys_text (id int, v text COLLATE "C", w varchar(50) COLLATE "POSIX", b char(12) COLLATE "C");
INSERT INTO keys_text
	SELECT i, s, s, left(s, 12)
	FROM (SELECT i, translate(left(md5(i::text), i % 7), '0123456789abcdef', E'aaabbbAA  \x01\x7f~~zz') AS s
		  FROM generate_series(1, 1000) i) x;
INSERT INTO keys_text
	SELECT 1000 + i, s, left(s, 50), left(s, 12)
	FROM (SELECT i, '/usr/share/' || (i % 3) || left(md5((i / 2)::text), i % 33) AS s
		  FROM generate_series(1, 1000) i) x;
INSERT INTO keys_text VALUES
	(2001, '', '', ''), (2002, '', '', ''), (2003, ' ', ' ', ' '), (2004, E'\x01', E'\x01', E'\x01'),
	(2005, 'a', 'a', 'a'), (2006, 'a ', 'a ', 'a '), (2007, E'a\t', E'a\t', E'a\t'), (2008, 'aa', 'aa', 'aa'),
	(2009, E'\x7f', E'\x7f', E'\x7f'), (2010, NULL, NULL, NULL), (2011, NULL, NULL, NULL),
	(2012, chr(233), chr(233), chr(233)), (2013, 'a' || chr(233), 'a' || chr(233), 'a' || chr(233));
SELECT * FROM four_orders('keys_text', 'v', 'v');
SELECT * FROM four_orders('keys_text', 'w', 'w');
SELECT * FROM four_orders('keys_text', 'b', 'b');
SELECT * FROM four_orders('keys_text', 'v COLLATE ucs_basic', 'v');
SELECT same_order('keys_text', 'v COLLATE "default" USING ~<~', 'v');
SELECT same_order('keys_text', 'v COLLATE "default" USING ~>~', 'v');
SELECT same_order('keys_text', 'b COLLATE "default" USING ~<~', 'b');

--
-- bytea: NUL is a byte like others
--
CREATE TABLE keys_bytea (v bytea);
INSERT INTO keys_bytea
	SELECT decode(translate(left(md5(i::text), 2 * (i % 6)), '23456789abcde', '000000001ff1f'), 'hex')
	FROM generate_series(1, 1000) i;
INSERT INTO keys_bytea VALUES
	(''), ('\x'), ('\x00'), ('\x0000'), ('\x000000'), ('\x0001'), ('\x01'), ('\x0100'), ('\xff'), ('\xff00'),
	('\xffff'), ('\xfe'), ('\x00ff'), ('\x61'), ('\x6100'), ('\x610001'), ('\x6101'), (NULL), (NULL);
SELECT * FROM four_orders('keys_bytea', 'v', 'v');

--
-- Several columns: what ends one must not be mistaken for what begins the
-- next
--
SELECT a.direction AS first, b.direction AS second,
	   same_order('keys_text', format('left(v, 2) %s, substr(v, 3) %s, id', a.direction, b.direction), 'id')
FROM keys_direction a, keys_direction b ORDER BY a.n, b.n;
SELECT a.direction AS first, b.direction AS second,
	   same_order('(SELECT row_number() OVER (ORDER BY v) AS id, substr(v, 1, 2) AS x, substr(v, 3) AS y FROM keys_bytea) s',
				  format('x %s, y %s', a.direction, b.direction), 'x, y')
FROM keys_direction a, keys_direction b ORDER BY a.n, b.n;
SELECT a.direction AS first, b.direction AS second,
	   same_order('keys_int', format('v2 %% 10 %s, v4 > 0 %s, v8', a.direction, b.direction), 'v2 % 10, v4 > 0, v8')
FROM keys_direction a, keys_direction b ORDER BY a.n, b.n;
SELECT same_order('keys_text', 'b, length(v) DESC, v, id', 'id');
SELECT same_order('keys_text', 'b DESC, v, w DESC, id', 'id');
SELECT same_order('keys_int', 'v2 DESC, v4, v8, id', 'id');

--
-- Long values, compressed and out of line.  Many are equal up to where a key
-- is cut, at 8192 bytes.
--
CREATE TABLE keys_long (id int, v text COLLATE "C", e text COLLATE "C", b bytea);
ALTER TABLE keys_long ALTER e SET STORAGE external;
INSERT INTO keys_long
	SELECT i, s, s, convert_to(s, 'SQL_ASCII')
	FROM (SELECT i, repeat('x', 8185 + i % 14) || CASE WHEN i % 3 = 0 THEN '' ELSE (i % 5)::text END AS s
		  FROM generate_series(1, 100) i) x;
INSERT INTO keys_long
	SELECT 100 + i, s, s, convert_to(s, 'SQL_ASCII')
	FROM (SELECT i, repeat('x', i * 150) || i % 3 || repeat(md5(i::text), i * 5 % 77) AS s
		  FROM generate_series(1, 100) i) x;
INSERT INTO keys_long
	SELECT 200 + i, s, s, decode(repeat('00', 4000 + i), 'hex')
	FROM (SELECT i, repeat('x', 200000) || i % 7 AS s FROM generate_series(1, 50) i) x;
INSERT INTO keys_long VALUES (251, '', '', ''), (252, NULL, NULL, NULL);
SELECT * FROM four_orders('keys_long', 'v', 'md5(v)');
SELECT * FROM four_orders('keys_long', 'e', 'md5(e)');
SELECT * FROM four_orders('keys_long', 'b', 'md5(b)');
SELECT same_order('keys_long', 'id % 2, v DESC, id', 'id');
SELECT same_order('keys_long', 'e, id DESC', 'id');
SELECT same_order('keys_long', 'b DESC, e, id DESC', 'id');

--
-- Domains are their base types
--
CREATE DOMAIN keys_name AS text COLLATE "C" CHECK (length(VALUE) < 100);
CREATE DOMAIN keys_count AS int;
SELECT same_order('(SELECT v::keys_name AS v FROM keys_text) s', 'v', 'v');
SELECT same_order('(SELECT id::keys_count AS v FROM keys_text) s', 'v DESC', 'v');

--
-- What is left to PostgreSQL
--
SELECT same_order('(SELECT jsonb_build_array(id) AS v FROM keys_text) s', 'v', 'v');
SELECT same_order('(SELECT id, ROW(id, v) AS v FROM keys_text) s', 'v', 'id');

--
-- None and one
--
SELECT same_order('(SELECT * FROM keys_text WHERE id = 1) s', 'v', 'v');
SELECT same_order('(SELECT * FROM keys_text WHERE id < 0) s', 'v', 'v');

--
-- Fed by several processes
--
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT same_order('keys_text', 'v DESC, id', 'id');
SELECT same_order('keys_long', 'v, id', 'id');
SELECT same_order('keys_float', 'v8', 'v8 + 0');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

DROP TABLE keys_int, keys_float, keys_time, keys_raw, keys_text, keys_bytea, keys_long, keys_direction;
DROP DOMAIN keys_name, keys_count;
DROP FUNCTION four_orders, same_order, keys_taken, keys_rank;
