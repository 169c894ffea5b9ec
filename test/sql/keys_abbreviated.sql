--
-- Types that src/key does not know, whose operator class has abbreviated keys: copies of built-in
-- types.  Those of uuid and macaddr compare as unsigned integers do, those of numeric do not.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/keys_common.inc
CREATE FUNCTION copy_type(base text, support text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	copy text := 'copied_' || base;
	operators text := '';
	op record;
BEGIN
	EXECUTE format('CREATE TYPE %s', copy);
	EXECUTE format('CREATE FUNCTION %1$s_in(cstring) RETURNS %1$s IMMUTABLE STRICT LANGUAGE internal AS ''%2$s''', copy,
				   (SELECT typinput::oid::regproc FROM pg_type WHERE typname = base));
	EXECUTE format('CREATE FUNCTION %1$s_out(%1$s) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS ''%2$s''', copy,
				   (SELECT typoutput::oid::regproc FROM pg_type WHERE typname = base));
	EXECUTE format('CREATE TYPE %1$s (INPUT = %1$s_in, OUTPUT = %1$s_out, LIKE = %2$s)', copy, base);
	FOR op IN
		SELECT o.oprname, o.oprcode::regproc AS code, a.amopstrategy AS n
		FROM pg_operator o JOIN pg_amop a ON a.amopopr = o.oid
		WHERE a.amopmethod = 403 AND a.amoplefttype = base::regtype AND a.amoprighttype = a.amoplefttype
		ORDER BY n
	LOOP
		EXECUTE format('CREATE FUNCTION %1$s_%2$s(%1$s, %1$s) RETURNS boolean IMMUTABLE STRICT LANGUAGE internal AS ''%3$s''',
					   copy, op.n, op.code);
		EXECUTE format('CREATE OPERATOR %1$s (FUNCTION = %2$s_%3$s, LEFTARG = %2$s, RIGHTARG = %2$s)', op.oprname, copy, op.n);
		operators := operators || format('OPERATOR %s %s, ', op.n, op.oprname);
	END LOOP;
	EXECUTE format('CREATE FUNCTION %1$s_cmp(%1$s, %1$s) RETURNS int IMMUTABLE STRICT LANGUAGE internal AS ''%2$s_cmp''', copy, base);
	EXECUTE format('CREATE FUNCTION %1$s_support(internal) RETURNS void IMMUTABLE STRICT LANGUAGE internal AS ''%2$s''', copy, support);
	EXECUTE format('CREATE OPERATOR CLASS %1$s_ops DEFAULT FOR TYPE %1$s USING btree AS %2$s FUNCTION 1 %1$s_cmp(%1$s, %1$s),
		FUNCTION 2 (%1$s, %1$s) %1$s_support(internal)', copy, operators);
END
$$;
\set ECHO all
SELECT copy_type('uuid', 'uuid_sortsupport');
SELECT copy_type('macaddr', 'macaddr_sortsupport');
SELECT copy_type('numeric', 'numeric_sortsupport');

-- the first 8 bytes come several times, so that the rest decides
CREATE TABLE copied AS
	SELECT i AS id, CASE WHEN i % 50 > 0 THEN left(md5((i / 2 % 400)::text), 16) || left(md5((i % 7)::text), 16) END::copied_uuid AS u,
		CASE WHEN i % 60 > 0 THEN left(md5((i % 900)::text), 12) END::copied_macaddr AS m, (i * 7 % 1000)::text::copied_numeric AS n,
		left(md5((i % 30)::text), 4) COLLATE "C" AS p
	FROM generate_series(1, 3000) AS i;
INSERT INTO copied SELECT 3000 + i, ('00000000-0000-0000-0000-00000000000' || i % 3)::copied_uuid, '00:00:00:00:00:00', '0', '' FROM generate_series(1, 9) i;
INSERT INTO copied SELECT 3010 + i, ('ffffffff-ffff-ffff-ffff-fffffffffff' || i % 3)::copied_uuid, 'ff:ff:ff:ff:ff:ff', '0', '' FROM generate_series(1, 9) i;
ANALYZE copied;
SELECT * FROM four_orders('copied', 'u', 'u');
SELECT * FROM four_orders('copied', 'm', 'm');
SELECT * FROM four_orders('copied', 'n', 'n');
SELECT a.direction AS first, b.direction AS second,
	   same_order('copied', format('u %s, id %s', a.direction, b.direction), 'id')
FROM keys_direction a, keys_direction b ORDER BY a.n, b.n;
SELECT same_order('copied', 'p DESC, u DESC, m, id', 'id');
SELECT same_order('copied', 'p COLLATE "en_US.utf8", u, id', 'id');
SELECT same_order('copied', 'u, p COLLATE "en_US.utf8", id', 'id');
SELECT same_order('(SELECT DISTINCT ON (u) u FROM copied ORDER BY u) s', 'u', 'u');
SELECT same_order('(SELECT u, count(*) AS n, max(id) AS last FROM copied GROUP BY u) s', 'u, n, last', 'last');
SELECT same_order('(SELECT id, row_number() OVER (ORDER BY u, id) AS k, count(*) OVER (PARTITION BY u) AS n FROM copied) s', 'k', 'id || ''/'' || n');
SELECT same_order('(SELECT * FROM copied ORDER BY u, id OFFSET 30 LIMIT 70) s', 'id', 'id');
-- behind a text that leaves the key no room for all of them
CREATE TABLE copied_long AS
	SELECT i AS id, repeat('x', 8175 + i % 16) COLLATE "C" AS p, md5((i * 7)::text)::copied_uuid AS u FROM generate_series(1, 800) AS i;
ANALYZE copied_long;
SELECT same_order('copied_long', 'p, u', 'id');
SELECT same_order('copied_long', 'p DESC, u DESC', 'id');
DROP TABLE copied_long;

-- a cursor forward and backward
SET gpusort.force = on;
SET gpusort.min_rows = 0;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, u FROM copied WHERE id > 2990 ORDER BY u DESC NULLS LAST, id;
FETCH 3 FROM c;
MOVE LAST FROM c;
FETCH BACKWARD 3 FROM c;
COMMIT;

-- indexes
CREATE EXTENSION IF NOT EXISTS amcheck;
CREATE INDEX copied_u ON copied (u, m DESC);
SELECT bt_index_check('copied_u', true);
CREATE INDEX copied_gin ON copied USING gin ((ARRAY[u, NULL, u]));
DROP TABLE copied;

-- a member of an operator family that lacks the functions of its type
CREATE TYPE copied_int8;
CREATE FUNCTION copied_int8_in(cstring) RETURNS copied_int8 IMMUTABLE STRICT LANGUAGE internal AS 'int8in';
CREATE FUNCTION copied_int8_out(copied_int8) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS 'int8out';
CREATE TYPE copied_int8 (INPUT = copied_int8_in, OUTPUT = copied_int8_out, LIKE = int8);
CREATE FUNCTION copied_int8_lt(copied_int8, copied_int8) RETURNS boolean IMMUTABLE STRICT LANGUAGE internal AS 'int8lt';
CREATE FUNCTION copied_int8_eq(copied_int8, copied_int8) RETURNS boolean IMMUTABLE STRICT LANGUAGE internal AS 'int8eq';
CREATE OPERATOR < (FUNCTION = copied_int8_lt, LEFTARG = copied_int8, RIGHTARG = copied_int8);
CREATE OPERATOR = (FUNCTION = copied_int8_eq, LEFTARG = copied_int8, RIGHTARG = copied_int8, MERGES);
ALTER OPERATOR FAMILY integer_ops USING btree ADD OPERATOR 1 < (copied_int8, copied_int8), OPERATOR 3 = (copied_int8, copied_int8);
EXPLAIN (COSTS OFF) SELECT * FROM (SELECT n, n::int8::text::copied_int8 AS i FROM keys_direction) AS s ORDER BY i USING <, n;
ALTER OPERATOR FAMILY integer_ops USING btree DROP OPERATOR 1 (copied_int8, copied_int8), OPERATOR 3 (copied_int8, copied_int8);
DROP TYPE copied_int8 CASCADE;
DROP TABLE keys_direction;
DROP TYPE copied_uuid, copied_macaddr, copied_numeric CASCADE;
DROP FUNCTION copy_type, four_orders, same_order, keys_taken, keys_rank;
