--
-- The order of gpusort against PostgreSQL's own: arrays.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/keys_common.inc
\i sql/keys_array.inc
\set ECHO all
SELECT setseed(0.5);

--
-- Every type of element, with few distinct values for many ties
--
CREATE TYPE keys_mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE keys_element (type text, elements text);
INSERT INTO keys_element VALUES
	('int2', '{-32768,-1,0,1,32767}'),
	('int4', '{-2147483648,-1,0,1,255,256,2147483647}'),
	('int8', '{-9223372036854775808,-1,0,1,4294967296,9223372036854775807}'),
	('float4', '{-Infinity,-1.5,-1e-45,-0,0,1e-45,1,1.5,Infinity,NaN}'),
	('float8', '{-Infinity,-1.5,-4.9e-324,-0,0,4.9e-324,1,1.5,Infinity,NaN}'),
	('bool', '{f,t}'),
	('"char"', '{a,b,"",z}'),
	('oid', '{0,1,4294967295}'),
	('numeric', '{-Infinity,-10000,-1,0,0.0,0.0001,1,1.00,10000,NaN,123456789012345678901234567890}'),
	('text COLLATE "C"', '{"",a,b,ab,"a b",aa,longer than the others}'),
	('varchar(10) COLLATE "C"', '{"",a,b,ab,aa}'),
	('char(5) COLLATE "C"', '{"",a,b,"ab ",ab,aa}'),
	('name', '{"",a,b,ab,aa}'),
	('bytea', '{"","\\\\x00","\\\\x0000","\\\\x0001","\\\\xff","\\\\xff00"}'),
	('bit(3)', '{000,001,101,111}'),
	('varbit', '{"",0,1,00,01,10,000000000}'),
	('date', '{-infinity,1999-12-31,2000-01-01,infinity}'),
	('time', '{00:00,12:00:00.000001,24:00}'),
	('timetz', '{10:00+00,11:00+01,09:00-01}'),
	('timestamp', '{-infinity,1999-12-31,2000-01-01,infinity}'),
	('timestamptz', '{-infinity,1999-12-31,2000-01-01,infinity}'),
	('interval', '{1 mon,30 days,29 days 24:00,-1 day,0}'),
	('uuid', '{00000000-0000-0000-0000-000000000000,00000000-0000-0000-0000-000000000001,ffffffff-ffff-ffff-ffff-ffffffffffff}'),
	('macaddr', '{00:00:00:00:00:00,00:00:00:00:00:01,ff:ff:ff:ff:ff:ff}'),
	('macaddr8', '{00:00:00:00:00:00:00:00,00:00:00:00:00:00:00:01,ff:ff:ff:ff:ff:ff:ff:ff}'),
	('inet', '{0.0.0.0,10.0.0.0/8,10.0.0.1/8,10.0.0.0/9,::,::1}'),
	('money', '{-1,0,1}'),
	('pg_lsn', '{0/0,0/1,FFFFFFFF/FFFFFFFF}'),
	('tid', '{"(0,1)","(1,0)","(4294967295,65535)"}'),
	('keys_mood', '{sad,ok,happy}'),
	('oidvector', '{"","1","2","1 2","0 4294967295"}');
CREATE FUNCTION keys_elements_order(type text, elements text)
RETURNS TABLE (direction text, result text) LANGUAGE plpgsql AS $$
DECLARE
	name text := split_part(type, ' COLLATE', 1);
BEGIN
	EXECUTE format('CREATE TABLE keys_one (id int, v %s)', regexp_replace(type, '( COLLATE.*)?$', '[]\1'));
	EXECUTE format('INSERT INTO keys_one SELECT i, keys_array(%L::%s[], i %% 2 = 0) FROM generate_series(1, 300) i',
				   elements, name);
	EXECUTE 'INSERT INTO keys_one VALUES (301, ''{}''), (302, ''{}''), (303, NULL), (304, NULL)';
	PERFORM keys_rank('keys_one', 'v');
	FOR direction, result IN SELECT o.direction, o.result FROM four_orders('keys_ranked', 'v', 'image') o LOOP
		RETURN NEXT;
	END LOOP;
	direction := 'among others';
	result := same_order('keys_ranked', 'id % 3, v DESC, id', 'id');
	RETURN NEXT;
	result := same_order('keys_ranked', 'v NULLS FIRST, id DESC', 'id');
	RETURN NEXT;
	DROP TABLE keys_one, keys_ranked;
END
$$;
SELECT type, o.* FROM keys_element, keys_elements_order(type, elements) o;

--
-- Two arrays: what ends one must not be mistaken for what begins the next
--
CREATE TABLE keys_two (id int, x int[], y text[] COLLATE "C");
INSERT INTO keys_two
	SELECT i, keys_array('{0,1,-1}'::int[], true), keys_array('{"",a,b}'::text[], true)
	FROM generate_series(1, 500) i;
SELECT a.direction AS first, b.direction AS second,
	   same_order('keys_two', format('x %s, y %s', a.direction, b.direction), 'x, y')
FROM keys_direction a, keys_direction b ORDER BY a.n, b.n;

--
-- Arrays as they come: short headers, compressed, out of line, built on the
-- way, and longer than a key
--
CREATE TABLE keys_vectors (id int, v float4[], w float8[]);
INSERT INTO keys_vectors
	SELECT i, ARRAY(SELECT floor(random() * 3)::float4 FROM generate_series(1, i % 40)), NULL
	FROM generate_series(1, 500) i;
INSERT INTO keys_vectors
	SELECT 500 + i, array_fill((i % 3)::float4, ARRAY[2040 + i % 12]), array_fill((i % 2)::float8, ARRAY[1020 + i % 8])
	FROM generate_series(1, 100) i;
ALTER TABLE keys_vectors ALTER v SET STORAGE external;
INSERT INTO keys_vectors
	SELECT 600 + i, array_fill((i % 3)::float4, ARRAY[2047]) || (i % 4)::float4,
		   array_fill((i % 2)::float8, ARRAY[1022]) || NULL::float8 || (i % 5)::float8
	FROM generate_series(1, 100) i;
SELECT * FROM four_orders('keys_vectors', 'v', 'v');
SELECT * FROM four_orders('keys_vectors', 'w', 'w');
SELECT same_order('keys_vectors', 'w DESC, v, id', 'id');
SELECT same_order('(SELECT array_append(v, 1) AS v FROM keys_vectors) s', 'v', 'v');
SELECT same_order('(SELECT array_agg(i % 7 ORDER BY i % 3, i) AS v FROM generate_series(1, 1000) i GROUP BY i / 10) s', 'v', 'v');
CREATE TABLE keys_words (id int, v text[] COLLATE "C");
INSERT INTO keys_words
	SELECT i, ARRAY[repeat('x', i % 3), repeat('y', 8100 + i % 100), repeat('z', i % 5)] FROM generate_series(1, 200) i;
SELECT * FROM four_orders('keys_words', 'v', 'md5(v::text)');

--
-- Domains, and arrays as elements through one
--
CREATE DOMAIN keys_ints AS int[];
CREATE TABLE keys_nested AS
	WITH e AS (SELECT unnest(ARRAY['{}', '{1}', '{1,2}', '{1,NULL}', '{{1,2}}', '[0:1]={1,2}', '{2}', NULL]::text[]))
	SELECT ARRAY[x.unnest::keys_ints] AS v FROM e x
	UNION ALL SELECT ARRAY[x.unnest::keys_ints, y.unnest::keys_ints] FROM e x, e y
	UNION ALL SELECT ARRAY[x.unnest::keys_ints, y.unnest::keys_ints, x.unnest::keys_ints] FROM e x, e y;
SELECT * FROM four_orders('keys_nested', 'v', 'v');
CREATE DOMAIN keys_vector AS float8[] CHECK (cardinality(VALUE) < 2000);
CREATE DOMAIN keys_percent AS numeric;
SELECT same_order('(SELECT w::keys_vector AS v FROM keys_vectors) s', 'v DESC', 'v');
SELECT same_order('(SELECT ARRAY[id % 5, id % 3]::keys_percent[] AS v FROM keys_vectors) s', 'v DESC', 'v');

--
-- int2vector is an array, from 0 on
--
SELECT same_order('(SELECT indkey AS v FROM pg_index LIMIT 100) s', 'v', 'v');

--
-- What is left to PostgreSQL: elements without an encoding
--
SELECT same_order('(SELECT ARRAY[to_jsonb(id % 5), ''1''] AS v FROM keys_vectors) s', 'v', 'v');
SELECT same_order('(SELECT ARRAY[ROW(id % 5, 1)] AS v FROM keys_vectors) s', 'v', 'v');
SELECT same_order('(SELECT ARRAY[int4range(1, 1 + id % 5)] AS v FROM keys_vectors) s', 'v', 'v');

--
-- Fed by several processes
--
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT same_order('keys_vectors', 'v, id', 'id');
SELECT same_order('keys_two', 'y DESC, x, id', 'id');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

DROP TABLE keys_element, keys_two, keys_nested, keys_vectors, keys_words;
DROP DOMAIN keys_ints, keys_vector, keys_percent;
DROP TYPE keys_mood CASCADE;
DROP FUNCTION keys_elements_order, keys_array;
DROP TABLE keys_direction;
DROP FUNCTION four_orders, same_order, keys_taken, keys_rank;
