--
-- The order of gpusort against PostgreSQL's own: numeric, name, enum, network
-- addresses, bit strings, tid, and what is an oid.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/keys_common.inc
\set ECHO all
SELECT setseed(0.5);

--
-- numeric: equal whatever the scale; infinities and NaN; both stored forms
--
CREATE TABLE keys_numeric (id int, v numeric);
INSERT INTO keys_numeric
	SELECT i, ((random() - 0.5) * 10 ^ (random() * 40 - 20))::numeric FROM generate_series(1, 500) i;
INSERT INTO keys_numeric
	SELECT 500 + i, round((random() - 0.5)::numeric * 10 ^ (i % 6)::numeric, i % 7) FROM generate_series(1, 500) i;
INSERT INTO keys_numeric
	SELECT 1000 + i, (floor(random() * 2000) - 1000) / 10 ^ (i % 4)::numeric FROM generate_series(1, 500) i;
INSERT INTO keys_numeric
	SELECT 1500 + i, s * (10 ^ e::numeric + d)
	FROM (SELECT row_number() OVER () AS i, s, e, d
		  FROM (VALUES (1), (-1)) s(s), generate_series(-20, 20) e, (VALUES (0), (1), (0.0001)) d(d)) x;
INSERT INTO keys_numeric SELECT 2000 + i, v::numeric FROM unnest(ARRAY[
	'0', '0.0', '-0', '0.00000000', '1', '1.0', '1.00', '1.0000000000', '-1', '-1.000', '10', '10000', '10000.0',
	'9999', '99990000', '9999.9999', '9999.99990001', '-9999.9999', '-9999.99990001', '0.1', '0.10', '0.0001',
	'0.00010', '0.00001', '-0.0001', '-0.00001', '100000000', '100000000.00000001', '-100000000',
	'NaN', 'NaN', 'Infinity', '-Infinity', 'inf', '-inf', '1e244', '1e245', '1e248', '1e252', '1e256', '1e260',
	'-1e244', '-1e248', '-1e252', '1e-240', '1e-244', '1e-248', '1e-252', '1e-256', '1e-260', '-1e-244', '-1e-252',
	'1.5e252', '1.50e252', '1e1000', '-1e1000', '1e-1000', '-1e-1000', '1e131071', '-1e131071', '1.1e131071',
	'1e-16383', '-1e-16383', '2e-16383', '123456789012345678901234567890', '123456789012345678901234567890.0',
	'123456789012345678901234567890.1', NULL, NULL]) WITH ORDINALITY u(v, i);
-- a long form of a value that others hold in the short form
INSERT INTO keys_numeric SELECT 2100 + i, round(i::numeric, 100) FROM generate_series(-3, 3) i;
INSERT INTO keys_numeric SELECT 2110 + i, i::numeric FROM generate_series(-3, 3) i;
SELECT * FROM four_orders('keys_numeric', 'v', 'trim_scale(v)');
SELECT a.direction AS first, b.direction AS second,
	   same_order('keys_numeric', format('trunc(v) %s, v %s, id', a.direction, b.direction), 'id')
FROM keys_direction a, keys_direction b ORDER BY a.n, b.n;
SELECT a.direction AS first, b.direction AS second,
	   same_order('keys_numeric', format('id %% 3 %s, v %s, id', a.direction, b.direction), 'id')
FROM keys_direction a, keys_direction b ORDER BY a.n, b.n;
CREATE TABLE keys_money (v numeric(12, 2), id int);
INSERT INTO keys_money SELECT random() * 1000 - 500, i FROM generate_series(1, 1000) i;
SELECT * FROM four_orders('keys_money', 'v', 'v');
-- digits beyond what a key holds, compressed and out of line
CREATE TABLE keys_digits (id int, v numeric);
ALTER TABLE keys_digits ALTER v SET STORAGE external;
INSERT INTO keys_digits
	SELECT i, (CASE WHEN i % 2 = 0 THEN '-' ELSE '' END || repeat('7', 16330 + i % 60) || '.' ||
			   repeat('3', i % 50 * 50) || i % 3)::numeric
	FROM generate_series(1, 200) i;
INSERT INTO keys_digits SELECT 200 + i, v FROM keys_digits, generate_series(1, 2) i WHERE id < 50;
INSERT INTO keys_digits SELECT 300 + i, (repeat('1', 130000) || '.' || repeat('0', 400) || i % 5)::numeric
	FROM generate_series(1, 20) i;
SELECT * FROM four_orders('keys_digits', 'v', 'md5(trim_scale(v)::text)');
SELECT same_order('keys_digits', 'id % 2, v DESC, id', 'id');

--
-- name
--
CREATE TABLE keys_names (v name, id int);
INSERT INTO keys_names SELECT left(md5((i / 2)::text), i % 33)::name, i FROM generate_series(1, 500) i;
INSERT INTO keys_names VALUES ('', 501), ('a', 502), ('a ', 503), (repeat('z', 63), 504), (repeat('z', 62), 505),
	(chr(233)::name, 506), (NULL, 507);
SELECT * FROM four_orders('keys_names', 'v', 'v');
SELECT * FROM four_orders('keys_names', 'v COLLATE "POSIX"', 'v');
SELECT same_order('keys_names', 'left(v, 1)::name DESC, v, id', 'id');
SELECT * FROM four_orders('(SELECT oid, relname FROM pg_class LIMIT 300) s', 'relname, oid', 'oid');

--
-- enum: labels that were added later have places of their own
--
CREATE TYPE keys_color AS ENUM ('red', 'green', 'blue');
ALTER TYPE keys_color ADD VALUE 'orange' BEFORE 'green';
ALTER TYPE keys_color ADD VALUE 'black' BEFORE 'red';
ALTER TYPE keys_color ADD VALUE 'white';
ALTER TYPE keys_color ADD VALUE 'yellow' BEFORE 'green';
ALTER TYPE keys_color ADD VALUE 'amber' AFTER 'orange';
CREATE DOMAIN keys_paint AS keys_color;
CREATE TABLE keys_enum (v keys_color, id int);
INSERT INTO keys_enum SELECT (enum_range(NULL::keys_color))[1 + i % 8], i FROM generate_series(1, 200) i;
INSERT INTO keys_enum VALUES (NULL, 201), (NULL, 202);
SELECT * FROM four_orders('keys_enum', 'v', 'v');
SELECT same_order('keys_enum', 'v DESC, id', 'id');
SELECT same_order('(SELECT v::keys_paint AS v, id FROM keys_enum) s', 'v, id', 'id');

--
-- inet and cidr
--
CREATE TABLE keys_net (v inet, c cidr);
INSERT INTO keys_net
	SELECT a, network(a)
	FROM (SELECT set_masklen(inet '10.0.0.0' + floor(random() * 2 ^ (i % 25))::bigint, (random() * 32)::int) AS a
		  FROM generate_series(1, 500) i) s;
INSERT INTO keys_net
	SELECT a, network(a)
	FROM (SELECT set_masklen(inet '2001:db8::' + floor(random() * 2 ^ (i % 62))::bigint, (random() * 128)::int) AS a
		  FROM generate_series(1, 500) i) s;
INSERT INTO keys_net SELECT a, network(a) FROM unnest(ARRAY[
	'0.0.0.0', '0.0.0.0/0', '255.255.255.255', '255.255.255.255/0', '255.255.255.255/1', '10.0.0.0/8', '10.0.0.0/9',
	'10.0.0.0', '10.0.0.1/8', '10.0.0.1/9', '10.0.0.1', '10.128.0.0/9', '10.127.255.255/9', '10.1.2.3/31', '10.1.2.2/31',
	'10.1.2.3/30', '10.1.2.0/30', '::', '::/0', '::1', '::1/0', '::1/127', '::ffff:10.0.0.1',
	'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/1',
	'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/127', NULL, NULL]::inet[]) a;
SELECT * FROM four_orders('keys_net', 'v', 'v');
SELECT * FROM four_orders('keys_net', 'c', 'c');
SELECT a.direction AS first, b.direction AS second,
	   same_order('keys_net', format('c %s, v %s', a.direction, b.direction), 'c, v')
FROM keys_direction a, keys_direction b ORDER BY a.n, b.n;

--
-- bit and bit varying
--
CREATE TABLE keys_bits (v varbit, b bit(11));
INSERT INTO keys_bits
	SELECT left((i * 2654435761)::bit(64)::text, i % 40)::varbit, (i * 7 % 2048)::bit(11) FROM generate_series(1, 500) i;
INSERT INTO keys_bits SELECT repeat('0', i)::varbit, 0::bit(11) FROM generate_series(0, 40) i;
INSERT INTO keys_bits SELECT repeat('1', i)::varbit, 2047::bit(11) FROM generate_series(0, 40) i;
INSERT INTO keys_bits SELECT (repeat('0', i) || '1')::varbit, 1::bit(11) FROM generate_series(0, 40) i;
INSERT INTO keys_bits VALUES (NULL, NULL), (NULL, NULL);
SELECT * FROM four_orders('keys_bits', 'v', 'v');
SELECT * FROM four_orders('keys_bits', 'b', 'b');
SELECT a.direction AS first, b.direction AS second,
	   same_order('keys_bits', format('substring(v from 1 for 9) %s, v %s, b', a.direction, b.direction), 'v, b')
FROM keys_direction a, keys_direction b ORDER BY a.n, b.n;
SELECT same_order('(SELECT repeat(''0'', 65600 - i % 50)::varbit || (i % 3)::bit(5) AS v FROM generate_series(1, 100) i) s',
				  'v', 'length(v), md5(v::text)');

--
-- tid, oid and what is stored as one
--
CREATE TABLE keys_tid (v tid);
INSERT INTO keys_tid SELECT format('(%s,%s)', floor(random() * 2 ^ (i % 32))::bigint, floor(random() * 2 ^ (i % 16)))::tid
	FROM generate_series(1, 500) i;
INSERT INTO keys_tid VALUES ('(0,0)'), ('(0,1)'), ('(1,0)'), ('(4294967295,65535)'), ('(4294967295,0)'),
	('(2147483648,1)'), ('(255,256)'), ('(256,255)'), (NULL), (NULL);
SELECT * FROM four_orders('keys_tid', 'v', 'v');
CREATE TABLE keys_oid (v oid, l oidvector, id int);
INSERT INTO keys_oid
	SELECT floor(random() * 2 ^ (i % 33))::bigint::oid,
		   (SELECT string_agg(floor(random() * 3)::text, ' ') FROM generate_series(1, i % 5))::oidvector, i
	FROM generate_series(1, 500) i;
INSERT INTO keys_oid VALUES (0, '', 501), (4294967295, '4294967295', 502), (1259, '0 4294967295', 503), (NULL, NULL, 504);
SELECT * FROM four_orders('(SELECT v::regclass AS v FROM keys_oid) s', 'v', 'v::oid');
SELECT same_order('(SELECT v::regtype AS v FROM keys_oid) s', 'v', 'v::oid');
SELECT same_order('(SELECT v::regprocedure AS v FROM keys_oid) s', 'v DESC', 'v::oid');
SELECT * FROM four_orders('keys_oid', 'l', 'l');
SELECT same_order('keys_oid', 'l DESC, v, id', 'id');

--
-- ranges: empty, without bounds, with and without their bounds; of fixed and varying width
--
CREATE TYPE keys_text_range AS RANGE (subtype = text, collation = "C");
CREATE TYPE keys_libc_range AS RANGE (subtype = text, collation = "en_US.utf8");
CREATE TYPE keys_array_range AS RANGE (subtype = int[]);
CREATE TYPE keys_pattern_range AS RANGE (subtype = text, subtype_opclass = text_pattern_ops);
CREATE DOMAIN keys_span AS numrange;
CREATE TABLE keys_range (id int, i int4range, n numrange, t tstzrange, d daterange, x keys_text_range, l keys_libc_range,
	a keys_array_range, p keys_pattern_range);
INSERT INTO keys_range
	SELECT k, int4range(low, high, b), numrange(low / 2.0, high / 2.00, b),
		tstzrange('2026-01-01Z'::timestamptz + low * interval '1 day', '2026-01-01Z'::timestamptz + high * interval '1 day', b),
		daterange(date '2026-01-01' + low, date '2026-01-01' + high, b),
		keys_text_range(chr(97 + low), repeat(chr(97 + high), high), b), keys_libc_range(chr(97 + low), chr(97 + high), b),
		keys_array_range(ARRAY[coalesce(low, 0), NULL], ARRAY[high], b), keys_pattern_range(chr(97 + low), chr(97 + high) || 'é', b)
	FROM (SELECT k, CASE WHEN k % 11 > 0 THEN k % 5 END AS low, CASE WHEN k % 13 > 0 THEN 5 + k % 4 END AS high,
				 (ARRAY['[]', '[)', '(]', '()'])[1 + k / 7 % 4] AS b FROM generate_series(1, 500) k) k;
INSERT INTO keys_range SELECT 500 + k, 'empty', 'empty', 'empty', 'empty', 'empty', 'empty', 'empty', 'empty' FROM generate_series(1, 3) k;
INSERT INTO keys_range SELECT 510 + k, '[-2147483648,2147483647)', '[NaN,NaN]', '[-infinity,infinity]', '(,)', '["",""]', '(,)', '[{},{}]', '(,)'
	FROM generate_series(1, 2) k;
INSERT INTO keys_range (id, n) VALUES (521, '[1,2)'), (522, '[1.0,2.00)'), (523, '(1.00,2]'), (524, NULL);
SELECT c.c AS "column", d.* FROM unnest('{i,t,d,x,a,p}'::text[]) WITH ORDINALITY c(c, n), LATERAL four_orders('keys_range', c, c) d ORDER BY n;
SELECT * FROM four_orders('keys_range', 'n', 'ARRAY[trim_scale(lower(n)), trim_scale(upper(n))]');
SELECT same_order('keys_range', 'l, id', 'id');
SELECT same_order('keys_range', 'n::keys_span DESC, id', 'id');
SELECT same_order('keys_range', 'x DESC, i, id', 'id');
-- text of a language, behind and before
SELECT same_order('keys_range', 'i, chr(97 + id % 3) COLLATE "en_US.utf8", id', 'id');
SELECT same_order('keys_range', 'chr(97 + id % 3) COLLATE "en_US.utf8", i, id', 'id');
SELECT same_order('keys_range', 'ARRAY[i, NULL, i] DESC, id', 'id');
-- bounds that are longer than a key
-- the key ends before it
SELECT same_order('keys_range', 'id % 7, l, id', 'id');
SELECT same_order('(SELECT keys_text_range(repeat(''b'', 8180 + i % 20), repeat(''c'', 1 + i % 7), ''[]'') AS v, i FROM generate_series(1, 200) i) s',
	'v DESC, i', 'i');

--
-- Fed by several processes
--
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT same_order('keys_numeric', 'v, id', 'id');
SELECT same_order('keys_enum', 'v DESC, id', 'id');
SELECT same_order('keys_net', 'v', 'v');
SELECT same_order('keys_range', 'i, n, id', 'id');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

DROP TABLE keys_numeric, keys_money, keys_digits, keys_names, keys_enum, keys_net, keys_bits, keys_tid, keys_oid, keys_range;
DROP DOMAIN keys_paint, keys_span;
DROP TYPE keys_color, keys_text_range, keys_libc_range, keys_array_range, keys_pattern_range;
DROP TABLE keys_direction;
DROP FUNCTION four_orders, same_order, keys_taken, keys_rank;
