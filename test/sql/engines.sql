--
-- Every engine that gpusort.engine names, against PostgreSQL's own order.  On
-- the host device, which has one engine, the setting must do no harm.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/keys_common.inc
\set ECHO all

CREATE TABLE engines_t AS
SELECT i,
	(i * 7919 % 10007 - 5000)::int AS small,
	((i * 7919 % 10007) * 123456789012)::bigint AS large,
	md5((i % 4000)::text)::uuid AS id,
	('/usr/share/' || repeat(md5((i % 7)::text), i % 3) || '/' || md5((i % 6000)::text)) COLLATE "C" AS path,
	repeat('A', i % 101) COLLATE "C" AS comb,
	decode(repeat('00', i % 5) || lpad(to_hex(i % 3), 2, '0') || repeat('00', i % 4), 'hex') AS zeros,
	CASE WHEN i % 3 > 0 THEN 'equal' END COLLATE "C" AS equal
FROM generate_series(1, 12000) AS i;
ANALYZE engines_t;

-- The engine that a query's sort shows is the one that was asked for; where
-- keys differ in length, radix2011 leaves them to another one, and radix2013 where they end with NULs.
CREATE FUNCTION engine_shown(engine text, order_by text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
	shown text;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) SELECT i FROM engines_t ORDER BY ' || order_by INTO plan;
	shown := jsonb_path_query_first(plan, '$.**.Engine') #>> '{}';
	RETURN shown = engine OR shown = 'host radix' OR
		(shown IS NOT NULL AND shown <> ALL (ARRAY['radix2013', 'merge2012']) AND
		 (engine IN ('auto', 'radix2011', 'arraysort2016', 'sta') OR (engine = 'radix2013' AND order_by = 'zeros')));
END
$$;

-- pg_settings does not show the setting
CREATE FUNCTION engines() RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	hint text;
BEGIN
	SET gpusort.engine = 'other';
EXCEPTION WHEN invalid_parameter_value THEN
	GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
	RETURN string_to_array(rtrim(split_part(hint, ': ', 2), '.'), ', ');
END
$$;

SELECT engine, order_by,
	set_config('gpusort.engine', engine, false) = engine AS set,
	same_order('engines_t', order_by, 'row(' || trim(regexp_replace(order_by, 'DESC', '', 'g')) || ')') AS result,
	engine_shown(engine, order_by) AS shown
FROM unnest(engines()) WITH ORDINALITY AS e (engine, n),
	unnest(ARRAY['small', 'large DESC', 'id, small', 'path', 'comb', 'zeros', 'equal', 'equal, path DESC'])
	WITH ORDINALITY AS o (order_by, m)
ORDER BY n, m;
RESET gpusort.engine;

-- a slow engine holds a device that all sessions share: superusers alone may choose one
CREATE ROLE regress_engines;
SET ROLE regress_engines;
SET gpusort.engine = 'sta';
RESET ROLE;
DROP ROLE regress_engines;
DROP TABLE engines_t, keys_direction;
DROP FUNCTION engines, engine_shown, four_orders, same_order, keys_taken, keys_rank;
