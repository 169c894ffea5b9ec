--
-- Text under libc collations behind columns of any other type: their keys must end
-- by themselves.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/compare.inc
\i sql/keys_common.inc
\set ECHO all

-- without ICU other collations stand in for its
SELECT EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu') AS has_icu
\gset
\if :has_icu
CREATE COLLATION behind_icu (provider = icu, locale = 'de-u-kn-true');
CREATE COLLATION behind_any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
\else
CREATE COLLATION behind_icu (locale = 'C');
CREATE COLLATION behind_any_case (locale = 'C');
\endif

-- Each type's awkward values, few of them, so that what stands behind decides.
-- The long ones are too long for a key, alone or with what follows.
CREATE TABLE behind_values (name text, list text[]);
INSERT INTO behind_values VALUES
	('n', ARRAY['0', '0.00', '-0.0', '1', '1.0', '1.000', '-1', '-1.00', '10', '10000', '9999.9999', '0.0001', '0.00010', 'NaN',
		'Infinity', '-Infinity', '1e244', '1e252', '-1e252', '1e-252', '1e131071', '-1e-16383', repeat('9', 1000), repeat('9', 1000) || '.10',
		'-' || repeat('9', 1000), repeat('7', 40000), repeat('7', 40000) || '.00']),
	('b', ARRAY['\x', '\x00', '\x0000', '\x0001', '\x01', '\x0100', '\xff', '\xff00', '\x00ff', '\x' || repeat('00', 3000), '\x' || repeat('ff', 9000)]),
	('net', ARRAY['0.0.0.0', '0.0.0.0/0', '255.255.255.255', '10.0.0.0/8', '10.0.0.0/9', '10.0.0.1/8', '10.0.0.1/31', '::', '::/0', '::1',
		'::1/127', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/1']),
	('bits', ARRAY['', '0', '1', '00', '01', '10', '00000000', '000000000', '11111111', '111111111', '000000001']),
	('o', ARRAY['', '0', '1', '0 0', '1 0', '4294967295', '0 4294967295', '257 65537 16777217']),
	('f', ARRAY['0', '-0', '1', '-1', 'NaN', 'Infinity', '-Infinity', '1e-40']),
	('t', ARRAY['', '', 'a', 'A', 'á', 'Á', 'a ', '-a', 'a-', 'ab', 'Ab', '111a', '11-1a', '111 c', '11 1c', 'o' || chr(776), 'ö', 'Ö', chr(776),
		chr(44032), chr(44032) || chr(45208), chr(128512), E'\x01', E'\x01é', E'\x02', '-', ' ', 'file 9', 'file 10', 'file 09', 'File 9',
		repeat('a-', 1400), repeat('A-', 1400), repeat('ab ', 3000), repeat('aB ', 3000)]);
CREATE FUNCTION behind_value(wanted text, i int, salt int) RETURNS text LANGUAGE sql AS $$
	SELECT list[1 + (hashint8extended(i, salt) & 4294967295) % cardinality(list)] FROM behind_values
	WHERE name = wanted AND (hashint8extended(i, salt + 100) & 15) <> 3
$$;
-- an array of up to three of them, of one dimension or two
CREATE FUNCTION behind_array(wanted text, i int, salt int) RETURNS text[] LANGUAGE sql AS $$
	SELECT CASE (hashint8extended(i, salt) & 15) % 6
		WHEN 0 THEN '{}' WHEN 1 THEN ARRAY[a] WHEN 2 THEN ARRAY[a, b] WHEN 3 THEN ARRAY[[a, b]] WHEN 4 THEN ARRAY[a, NULL, a] END
	FROM (SELECT behind_value(wanted, i, salt + 1) AS a, behind_value(wanted, i, salt + 2) AS b) AS s
$$;
CREATE DOMAIN behind_numbers AS numeric[];
CREATE DOMAIN behind_floats AS float4[];
CREATE TABLE behind_t AS
	SELECT i AS id, behind_value('n', i, 1)::numeric AS n, behind_value('b', i, 2)::bytea AS b, behind_value('net', i, 3)::inet AS net,
		network(behind_value('net', i, 4)::inet) AS cidr, behind_value('bits', i, 5)::varbit AS bits, behind_value('bits', i, 6)::bit(9) AS bit9,
		behind_value('o', i, 7)::oidvector AS o, behind_value('f', i, 8)::float8 AS f, behind_value('t', i, 9) COLLATE behind_icu AS icu,
		behind_value('t', i, 10) COLLATE behind_any_case AS any_case, behind_value('t', i, 11) COLLATE "C" AS c,
		behind_value('t', i, 12)::char(5) COLLATE behind_icu AS char_icu, behind_value('t', i, 13)::name COLLATE behind_icu AS name_icu,
		behind_array('n', i, 20)::numeric[] AS n_array, behind_array('b', i, 23)::bytea[] AS b_array, behind_array('net', i, 26)::inet[] AS net_array,
		behind_array('bits', i, 29)::varbit[] AS bits_array, behind_array('f', i, 32)::float8[] AS f_array, (ARRAY[i % 3, NULL, i % 2])[1:i % 4] AS i_array,
		behind_array('t', i, 38) COLLATE behind_icu AS icu_array, behind_array('t', i, 41) COLLATE behind_any_case AS any_case_array,
		behind_array('t', i, 44) COLLATE "C" AS c_array,
		CASE WHEN i % 7 > 0 THEN ARRAY(SELECT behind_array('n', i, 47 + 3 * j)::behind_numbers FROM generate_series(1, i % 4) AS j) END AS n_nested,
		CASE WHEN i % 7 > 1 THEN ARRAY(SELECT behind_array('f', i, 57 + 3 * j)::behind_floats FROM generate_series(1, i % 4) AS j) END AS f_nested,
		behind_value('t', i, 80) COLLATE "en_US.utf8" AS v, behind_value('t', i, 81) COLLATE "de_DE.utf8" AS w,
		behind_array('t', i, 82) COLLATE "en_US.utf8" AS v_array
	FROM generate_series(1, 600) AS i;
ANALYZE behind_t;

-- each of them before one text, and two, in all directions
SELECT result, count(*)
FROM unnest(ARRAY['n', 'b', 'net', 'cidr', 'bits', 'bit9', 'o', 'f', 'icu', 'any_case', 'c', 'char_icu', 'name_icu', 'n_array', 'b_array', 'net_array',
		'bits_array', 'f_array', 'i_array', 'icu_array', 'any_case_array', 'c_array', 'n_nested', 'f_nested']) AS k,
	unnest(ARRAY['%s, v, id', '%s DESC, v DESC NULLS LAST, id', '%s NULLS FIRST, v DESC, id', '%s DESC NULLS LAST, w NULLS FIRST, v, id']) AS f,
	same_order('behind_t', format(f, k), 'id') AS result
GROUP BY result;

-- several texts, and several columns before each
SELECT o, same_order('behind_t', o, 'id')
FROM unnest(ARRAY['v, n, w, id', 'v DESC, n DESC NULLS LAST, w, b, v_array, id', 'n % 3, net, v, bits DESC, o, w DESC, id',
	'icu, v, any_case DESC, w, n, id', 'v_array, n_array DESC, v, id', 'f_array DESC, icu_array, v_array DESC, f_nested, w, id',
	'round(n), lower(v), n DESC, v, id', 'n, id, v']) AS o;

-- what is equal ties: 1.0 and 1.00, -0 and 0, texts that a collation calls equal
CREATE FUNCTION behind_ties(keys text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM keys_rank('behind_t', keys);
	RETURN NEXT same_order('keys_ranked', keys, 'image');
	DROP TABLE keys_ranked;
END
$$;
SELECT k, behind_ties(k) FROM unnest(ARRAY['n, v', 'n DESC, v DESC', 'f, v', 'any_case, v', 'f_array, w', 'n_array DESC, v_array', 'v, any_case_array, w']) AS k;

-- other nodes than Sort: windows, DISTINCT, GROUP BY, merge joins, aggregates; two processes
CREATE FUNCTION behind_compare(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	stock text[] := stock_rows(query);
BEGIN
	RETURN coalesce(rows_differ(query_rows(query), stock), format('%s rows', cardinality(stock))) ||
		CASE WHEN plan_lines(query, 'Custom Scan') = 0 THEN ', postgres' ELSE '' END;
END
$$;
SET gpusort.force = on;
SET gpusort.min_rows = 0;
SET enable_hashagg = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_incremental_sort = off;
SELECT gpusort_stats_reset();
SELECT behind_compare('SELECT id, rank() OVER (ORDER BY n, v), dense_rank() OVER (PARTITION BY net ORDER BY n, v DESC) FROM behind_t ORDER BY id');
SELECT behind_compare('SELECT id, row_number() OVER (PARTITION BY n ORDER BY v, id), rank() OVER (PARTITION BY any_case ORDER BY w) FROM behind_t ORDER BY id');
SELECT behind_compare('SELECT DISTINCT trim_scale(n) AS n, v FROM behind_t ORDER BY n, v');
SELECT behind_compare('SELECT trim_scale(n), v, count(*), sum(id) FROM behind_t GROUP BY trim_scale(n), v ORDER BY 1, 2');
SELECT behind_compare('SELECT DISTINCT ON (n, v) id, v FROM behind_t ORDER BY n, v, id');
SELECT behind_compare('SELECT a.id AS a, b.id AS b FROM behind_t a JOIN behind_t b USING (n, v, c) ORDER BY a.id, b.id');
SELECT behind_compare('SELECT a.id AS a, b.id AS b FROM behind_t a FULL JOIN behind_t b ON a.icu = b.icu AND a.w = b.w AND a.id % 3 = b.id % 3 ORDER BY 1, 2');
SELECT behind_compare('SELECT trim_scale(n % 2), array_agg(id ORDER BY v, id), count(DISTINCT v) FROM behind_t GROUP BY trim_scale(n % 2) ORDER BY 1');
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
ALTER TABLE behind_t SET (parallel_workers = 2);
SELECT behind_compare('SELECT id FROM behind_t ORDER BY n, v, id');
SELECT behind_compare('SELECT id FROM behind_t ORDER BY icu DESC, w, n_array, v DESC, id');
SELECT device_sorts > 0 AS device_sorts, fallbacks FROM gpusort_stats;

DROP TABLE behind_t, behind_values, keys_direction;
DROP DOMAIN behind_numbers, behind_floats;
DROP COLLATION behind_icu, behind_any_case;
DROP FUNCTION behind_value, behind_array, behind_ties, behind_compare, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ, four_orders, same_order, keys_taken,
	keys_rank;
