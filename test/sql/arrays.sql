--
-- gpu_sort_array() as a function: the order of every type, in the process and
-- by GpuArraySort, against array_agg(x ORDER BY x); what PostgreSQL 18's
-- array_sort() does with NULLs, bounds and dimensions; errors.
--
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
SET gpusort.min_rows = 0;
SET max_parallel_workers_per_gather = 0;

SELECT gpu_sort_array(ARRAY[3, 1, NULL, 2]) AS plain,
	gpu_sort_array(ARRAY[3, 1, NULL, 2], true) AS descending,
	gpu_sort_array(ARRAY[3, 1, NULL, 2], false) AS ascending,
	gpu_sort_array(ARRAY[3, 1, NULL, 2], false, true) AS nulls_first,
	gpu_sort_array(ARRAY[3, 1, NULL, 2], true, false) AS nulls_last;
SELECT gpu_sort_array(ARRAY['b', NULL, 'a', NULL]) AS text,
	gpu_sort_array(ARRAY['b', NULL, 'a', NULL], true) AS descending,
	gpu_sort_array(ARRAY[NULL, NULL]::float4[]) AS nulls,
	gpu_sort_array(ARRAY[NULL]::text[], true) AS one_null;

-- nothing to sort
SELECT gpu_sort_array('{}'::int[]) AS empty, gpu_sort_array('{7}'::int[]) AS one,
	gpu_sort_array('[4:4]={7}'::int[]) AS bound, gpu_sort_array(NULL::int[]) IS NULL AS null_array,
	gpu_sort_array('{2,1}'::int[], NULL) IS NULL AS null_direction,
	gpu_sort_array('{{2,1}}'::int[]) AS one_slice;

-- lower bounds; several dimensions
SELECT gpu_sort_array('[-1:1]={c,b,a}'::text[]) AS text, gpu_sort_array('[5:7]={3,NULL,1}'::int8[]) AS int8;
SELECT gpu_sort_array('{{3,1},{1,9},{1,2}}'::int[]) AS slices,
	gpu_sort_array('{{3,1},{1,9},{1,2}}'::int[], true) AS descending,
	gpu_sort_array('[2:3][-1:0]={{b,a},{a,NULL}}'::text[]) AS bounds,
	gpu_sort_array('{{{2,2},{1,1}},{{1,1},{9,9}}}'::int[]) AS deeper,
	gpu_sort_array('{{NULL,1},{1,NULL},{0,0}}'::float8[], false, true) AS slices_with_nulls;

-- floats as PostgreSQL compares them; values keep their looks
SELECT gpu_sort_array('{NaN,-Infinity,0,-1,Infinity,NaN,1e-40,-1e-40}'::float4[]) AS float4,
	gpu_sort_array('{NaN,-Infinity,0,-1,Infinity,NaN,5e-324,-5e-324}'::float8[], true) AS float8,
	gpu_sort_array(ARRAY[1.10, 1.1, -2, 'NaN', '-Infinity', 1.1000]::numeric[]) AS numeric;

-- collations: of the argument, and asked for
SELECT gpu_sort_array(ARRAY['b', 'B', 'a', 'A'] COLLATE "C") AS c,
	gpu_sort_array(ARRAY['b', 'B', 'a', 'A'] COLLATE "en_US.utf8") AS en_us;

-- the kinds of argument: domains, an array that is no array type, a variable
CREATE DOMAIN arrays_dint AS int CHECK (value > 0);
CREATE DOMAIN arrays_darr AS int[] CHECK (cardinality(value) < 5);
CREATE TYPE arrays_enum AS ENUM ('low', 'middle', 'high');
ALTER TYPE arrays_enum ADD VALUE 'lowest' BEFORE 'low';
SELECT gpu_sort_array('{3,1,2}'::arrays_dint[]) AS domain_elements,
	gpu_sort_array('{3,1,2}'::arrays_darr) AS domain,
	gpu_sort_array('3 1 2'::int2vector) AS int2vector,
	gpu_sort_array('{high,lowest,middle,low}'::arrays_enum[]) AS enum,
	gpu_sort_array(ARRAY[ROW(2, 'b'::text), ROW(1, 'c'::text), ROW(2, 'a'::text)])::text AS records,
	gpu_sort_array(ARRAY['pg_class', 'pg_type']::regclass[]) AS regclass_by_number;
-- int4 and oid differ in order, and the array knows what it holds
SELECT gpu_sort_array('{-1,1}'::int[]) AS int4, gpu_sort_array('{4294967295,1}'::oid[]) AS oid;
DO $$
DECLARE
	v float4[] := '{3,1,2}';
	w text[] := '{c,a}';
BEGIN
	v[5] := 0;
	w := w || 'b'::text;
	ASSERT gpu_sort_array(v) = '{0,1,2,3,NULL}'::float4[], gpu_sort_array(v)::text;
	ASSERT v = '{3,1,2,NULL,0}'::float4[], v::text;
	ASSERT gpu_sort_array(w, true) = '{c,b,a}'::text[], gpu_sort_array(w, true)::text;
	v := gpu_sort_array(v, true, false);
	ASSERT v = '{3,2,1,0,NULL}'::float4[], v::text;
END
$$;
CREATE TABLE arrays_default (a int[] DEFAULT gpu_sort_array(ARRAY[3, 1, 2]), CHECK (a = gpu_sort_array(a)));
INSERT INTO arrays_default DEFAULT VALUES;
INSERT INTO arrays_default VALUES ('{2,1}');
SELECT * FROM arrays_default;
CREATE INDEX ON arrays_default (gpu_sort_array(a));
DROP TABLE arrays_default;

-- what has no order
SELECT gpu_sort_array('{"{}","[]"}'::json[]);
SELECT gpu_sort_array(ARRAY['1', '2']::xid[]);
SELECT gpu_sort_array('{{1,2},{3,4}}'::xid[]);
SELECT gpu_sort_array(ARRAY[point '(1,2)']);
SELECT gpu_sort_array(ARRAY[point '(1,2)', point '(1,1)']);
-- PostgreSQL 19 has other details and hints
\set VERBOSITY terse
SELECT gpu_sort_array(3);
\set VERBOSITY default

--
-- Every type.  A set of values of each is put together to arrays of all sizes,
-- in an order that is not theirs, with duplicates and NULLs.
--
CREATE TABLE arrays_values (type text, v text[]);
INSERT INTO arrays_values VALUES
	('bool', '{t,f}'),
	('"char"', ARRAY['a', 'Z', '~', '0', ' ', E'\\377', E'\\200']),
	('int2', '{-32768,32767,0,1,-1,255,256,-256}'),
	('int4', '{-2147483648,2147483647,0,1,-1,65535,65536,-65536,7}'),
	('int8', '{-9223372036854775808,9223372036854775807,0,1,-1,4294967295,4294967296,-4294967296}'),
	('oid', '{0,1,4294967295,2147483648,2147483647,16384}'),
	('regtype', '{int4,text,bool,float8}'),
	('xid8', '{0,1,18446744073709551615,9223372036854775808}'),
	('pg_lsn', '{0/0,0/1,FFFFFFFF/FFFFFFFF,80000000/0,7FFFFFFF/FFFFFFFF}'),
	('money', '{-92233720368547758.08,92233720368547758.07,0,0.01,-0.01,12345.67}'),
	('float4', '{NaN,Infinity,-Infinity,0,-0,1,-1,1e-45,-1e-45,3.4e38,-3.4e38,1.5,0.1}'),
	('float8', '{NaN,Infinity,-Infinity,0,-0,1,-1,5e-324,-5e-324,1.7e308,-1.7e308,1.5,0.1}'),
	('numeric', '{NaN,Infinity,-Infinity,0,-0.0,1,1.0,-1,1e-100,-1e-100,1e100,-1e100,1.5}'),
	('date', '{-infinity,infinity,2000-01-01,1999-12-31,4713-01-01 BC,5874897-12-31}'),
	('time', '{00:00,24:00,12:34:56.789,23:59:59.999999}'),
	('timetz', '{00:00+00,24:00-15:59,12:34:56.789+02,12:34:56.789+01,00:00+15:59}'),
	('timestamp', '{-infinity,infinity,2000-01-01 00:00,1999-12-31 23:59:59.999999,4713-01-01 00:00 BC}'),
	('timestamptz', '{-infinity,infinity,2000-01-01 00:00+00,1999-12-31 23:59:59.999999+00}'),
	('interval', '{1 month,30 days,29 days,-1 day,0,100 years,720:00:01}'),
	('uuid', '{00000000-0000-0000-0000-000000000000,ffffffff-ffff-ffff-ffff-ffffffffffff,
		a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12,7fffffff-0000-0000-0000-000000000000}'),
	('macaddr', '{00:00:00:00:00:00,ff:ff:ff:ff:ff:ff,08:00:2b:01:02:03,80:00:00:00:00:00}'),
	('macaddr8', '{00:00:00:00:00:00:00:00,ff:ff:ff:ff:ff:ff:ff:ff,08:00:2b:01:02:03:04:05}'),
	('inet', '{10.0.0.1,10.0.0.0/8,255.255.255.255,::1,fe80::/10,0.0.0.0/0}'),
	('cidr', '{10.0.0.0/8,10.1.0.0/16,::/0,fe80::/10}'),
	('bytea', ARRAY['', E'\\x00', E'\\x0000', E'\\xff', E'\\x61', E'\\x6100']),
	('bit(4)', '{0000,1111,1000,0111}'),
	('varbit', '{0,1,10,01,111,"",0000000000}'),
	('text', '{"",a,A,b,ab,"a b",ä,z,Z,é,e,f,_,longer than eight bytes,longer than eight bytez}'),
	('varchar(30)', '{"",a,A,b,ab,"a b",ä,z,Z}'),
	('char(5)', '{"",a,"a ",b,ab,"a b"}'),
	('name', '{"",a,A,pg_class,pg_type}'),
	('arrays_enum', '{lowest,low,middle,high}'),
	('int4range', '{empty,"[1,5)","[1,4)","(,3)","[2,)"}'),
	('jsonb', '{1,null,"[]","{}",true,"[1]","{\"a\":1}"}'),
	('tid', '{"(0,0)","(4294967295,65535)","(1,2)","(1,3)"}');

CREATE FUNCTION arrays_compare(type text, v text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text := '';
	flags text;
	wrong text;
	lifted bool;
	line text;
BEGIN
	EXECUTE format('CREATE TEMP TABLE arrays_t AS
		SELECT i AS id, (SELECT array_agg(CASE WHEN hashint4(i * 1000 + j) %% 11 = 0 AND i %% 3 = 0 THEN NULL
				ELSE ($1)[1 + abs(hashint4(i * 1000 + j) %% %s)]::%s END ORDER BY j)
			FROM generate_series(1, i * i / 7) AS j) AS a
		FROM generate_series(0, 60) AS i', cardinality(v), type) USING v;
	FOREACH flags IN ARRAY ARRAY['', ', true', ', false, true', ', true, false'] LOOP
		-- in the process, then by the node
		FOR forced IN 0 .. 1 LOOP
			PERFORM set_config('gpusort.enabled', forced::text, true);
			PERFORM set_config('gpusort.force', forced::text, true);
			lifted := false;
			FOR line IN EXECUTE format('EXPLAIN SELECT id, a, gpu_sort_array(a%s) AS sorted FROM arrays_t', flags) LOOP
				lifted := lifted OR line LIKE '%GpuArraySort%';
			END LOOP;
			EXECUTE format('SELECT format(''id %%s: %%s instead of %%s'', id, sorted, expected) FROM (
					SELECT id, sorted, (SELECT array_agg(x ORDER BY x %s NULLS %s) FROM unnest(a) AS x) AS expected
					FROM (SELECT id, a, gpu_sort_array(a%s) AS sorted FROM arrays_t OFFSET 0) s) s
				WHERE sorted IS DISTINCT FROM expected ORDER BY id LIMIT 1',
				CASE WHEN flags LIKE ', true%' THEN 'DESC' END,
				CASE WHEN flags IN (', true', ', false, true') THEN 'FIRST' ELSE 'LAST' END,
				flags) INTO wrong;
			IF wrong IS NOT NULL THEN
				result := result || format('(a%s), %s: %s ', flags, forced, wrong);
			END IF;
		END LOOP;
	END LOOP;
	DROP TABLE arrays_t;
	RETURN CASE WHEN result = '' THEN 'same' ELSE result END || CASE WHEN lifted THEN ', on the device' ELSE '' END;
END
$$;
SELECT type, arrays_compare(type, v) FROM arrays_values ORDER BY type COLLATE "C";
SELECT arrays_compare('text COLLATE "C"', v) AS c, arrays_compare('text COLLATE "en_US.utf8"', v) AS en_us
FROM arrays_values WHERE type = 'text';

-- slices, on random arrays of two and three dimensions
SELECT count(*) AS wrong FROM (
	SELECT gpu_sort_array(a) AS sorted,
		(SELECT array_agg(x ORDER BY x) FROM (SELECT a[i:i] AS x FROM generate_subscripts(a, 1) AS i) s) AS expected
	FROM (SELECT (SELECT array_agg(ARRAY[hashint4(i + j) % 3, hashint4(i * j) % 3] ORDER BY j) FROM generate_series(1, i) j) AS a
		FROM generate_series(2, 50) AS i) s) s
WHERE array(SELECT unnest(sorted)) <> array(SELECT unnest(expected));

-- more than work_mem, by values that are compared
SET work_mem = '64kB';
SELECT gpu_sort_array(a) = (SELECT array_agg(x ORDER BY x) FROM unnest(a) AS x) AS text,
	gpu_sort_array(b, true) = (SELECT array_agg(x ORDER BY x DESC) FROM unnest(b) AS x) AS numeric,
	gpu_sort_array(c) = (SELECT array_agg(x ORDER BY x) FROM unnest(c) AS x) AS float8
FROM (SELECT array_agg(md5(i::text)) AS a, array_agg((hashint4(i) * 1.5)::numeric) AS b,
		array_agg(hashint4(i)::float8) AS c
	FROM generate_series(1, 20000) AS i) s;
RESET work_mem;

-- array_sort() itself, in versions that have it: values, bounds, dimensions
CREATE FUNCTION arrays_unlike_array_sort(type text, v text[]) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	result int := 0;
	n int;
BEGIN
	IF to_regprocedure('array_sort(anyarray, boolean, boolean)') IS NULL THEN
		RETURN 0;
	END IF;
	EXECUTE format('CREATE TEMP TABLE arrays_t AS
		SELECT i, (SELECT array_agg(CASE WHEN hashint4(i * 1000 + j) %% 11 <> 0 THEN ($1)[1 + abs(hashint4(i * 1000 + j) %% %1$s)]::%2$s END ORDER BY j)
			FROM generate_series(1, i) AS j) AS a
		FROM generate_series(0, 40) AS i', cardinality(v), type) USING v;
	FOR flags IN 0 .. 3 LOOP
		EXECUTE format('SELECT count(*)
			FROM (SELECT a FROM arrays_t
				UNION ALL
				SELECT (''[-1:'' || i - 2 || '']='' || a::text)::%s[] FROM arrays_t WHERE i > 0
				UNION ALL
				SELECT (SELECT array_agg(ARRAY[a[j], a[j + 1]] ORDER BY j) FROM generate_series(1, i - 1) AS j) FROM arrays_t) s,
				gpu_sort_array(a, $1, $2) AS ours, array_sort(a, $1, $2) AS stock
			WHERE ours IS DISTINCT FROM stock OR array_dims(ours) IS DISTINCT FROM array_dims(stock)',
			split_part(type, ' COLLATE', 1))
			INTO n USING flags % 2 = 1, flags / 2 = 1;
		result := result + n;
	END LOOP;
	DROP TABLE arrays_t;
	RETURN result;
END
$$;
SELECT sum(arrays_unlike_array_sort(type, v)) AS different FROM arrays_values;
SELECT arrays_unlike_array_sort('text COLLATE "C"', v) AS c, arrays_unlike_array_sort('text COLLATE "en_US.utf8"', v) AS en_us
FROM arrays_values WHERE type = 'text';

DROP FUNCTION arrays_compare, arrays_unlike_array_sort;
DROP TABLE arrays_values;
DROP DOMAIN arrays_dint, arrays_darr;
DROP TYPE arrays_enum;
