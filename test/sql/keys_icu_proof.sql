--
-- ICU collations whose comparison is not always the order of their sort keys: they are refused, or some texts have no key.
--
SELECT count(*) = 0 AS no_icu FROM pg_collation WHERE collprovider = 'i'
\gset
\if :no_icu
\quit
\endif
SET client_min_messages = warning;
\set ECHO none
\i sql/keys_common.inc
\set ECHO all

-- Marks before which ICU's comparison does not step back in some versions, marks out of order, digits and signs.  PostgreSQL's
-- first column has abbreviated keys, which may hide what its comparison says: so k is before the text.
CREATE TABLE keys_icu_marked (k int, id int, v text);
INSERT INTO keys_icu_marked
	SELECT k, n, v
	FROM generate_series(1, 4) AS k, unnest(ARRAY[U&'a\0345', U&'a\0345\1AC3', U&'\0365', U&'\0365\0D3B', U&'a\0323\0301', U&'a\0301\0323',
		U&'\00EA\0323', U&'\1EC7', 'a', 'b', 'ch', U&'\05E9\05C1\05BC\05B7']) WITH ORDINALITY AS u(v, n);
CREATE TABLE keys_icu_signs (k int, id int, v text);
INSERT INTO keys_icu_signs
	SELECT k, n, v FROM generate_series(1, 4) AS k, unnest(ARRAY['$', '0', '$5', '05', 'a']) WITH ORDINALITY AS u(v, n);
-- Runs of characters, which keys compress, before letters that differ in case or accent only
CREATE TABLE keys_icu_runs (k int, id int, v text);
INSERT INTO keys_icu_runs
	SELECT 1, row_number() OVER (), repeat(run, n) || letter || '1'
	FROM generate_series(0, 70) AS n, unnest(ARRAY['a', '-', U&'\00E4']) AS run, unnest(ARRAY['o', 'O', U&'\00F6']) AS letter;
-- Does an index by gpusort find the rows that PostgreSQL's finds?  With new marks some texts compare in a circle, and no
-- index finds all.
CREATE FUNCTION keys_found(source text, locale text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	stock int;
	found int;
BEGIN
	EXECUTE format('CREATE COLLATION keys_proof (provider = icu, locale = %L)', locale);
	FOREACH locale IN ARRAY ARRAY['off', 'on'] LOOP
		PERFORM set_config('gpusort.enabled', locale, true), set_config('gpusort.force', 'on', true),
			set_config('enable_seqscan', 'on', true);
		stock := found;
		EXECUTE format('CREATE INDEX keys_proof_index ON %I (k, v COLLATE keys_proof)', source);
		PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
		EXECUTE format('SELECT count(*) FROM %1$I t WHERE EXISTS (SELECT FROM %1$I o WHERE o.k = t.k AND o.v = t.v COLLATE keys_proof OFFSET 0)',
					   source) INTO found;
		DROP INDEX keys_proof_index;
	END LOOP;
	PERFORM set_config('enable_seqscan', 'on', true);
	locale := CASE WHEN found = stock THEN 'found' ELSE format('%s found, should be %s', found, stock) END || ', ' || same_order(format('(SELECT * FROM %I WHERE v !~ U&''[\0D3B\1AC3]'') s', source),
													'k, v COLLATE keys_proof DESC, id', 'id');
	DROP COLLATION keys_proof;
	RETURN locale;
END
$$;
SELECT locale, keys_found('keys_icu_marked', locale), keys_found('keys_icu_signs', locale)
FROM unnest(ARRAY['und', 'el', 'vi', 'hi', 'he', 'fa', 'nb', 'bo', 'cs-u-kk', 'en-u-kn', 'en-u-kr-grek-latn', 'en-u-kr-currency']) AS locale;

SELECT locale, keys_found('keys_icu_runs', locale)
FROM unnest(ARRAY['und', 'da', 'da-u-kc-true', 'mt-u-kc-true', 'en-u-kc-true', 'en-u-kc-true-kf-upper', 'en-u-kf-upper', 'en-u-kc-true-kf-lower-ks-level1']) AS locale;

-- The reasons, which the server's log has once.  Other tests do not name these locales so.
CREATE FUNCTION keys_sorted_by(locale text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	sorted_by text;
BEGIN
	EXECUTE format('CREATE COLLATION keys_proof (provider = icu, locale = %L)', locale);
	SET LOCAL gpusort.enabled = on;
	SET LOCAL gpusort.force = on;
	sorted_by := CASE WHEN keys_taken('SELECT v FROM keys_icu_marked ORDER BY v COLLATE keys_proof') THEN 'gpusort' ELSE 'postgres' END;
	DROP COLLATION keys_proof;
	RETURN sorted_by;
END
$$;
SET client_min_messages = log;
SELECT locale, keys_sorted_by(locale)
FROM unnest(ARRAY['th-u-kn-false', 'fr-CA-u-kn-false', 'und-u-kb-true-kn-false', 'und-u-ka-shifted-kn-false', 'und-u-kn-false-ks-identic',
	'sv-u-kf-false-kn', 'und-u-kn-false-kr-currency', 'und-u-kn-false-kr-latn-digit', 'und-u-kn-false-kr-grek-latn']) AS locale;
SET client_min_messages = warning;

-- rules of their own, from PostgreSQL 16 on
CREATE FUNCTION keys_rules(rules text, sorted_by text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	result boolean;
BEGIN
	IF current_setting('server_version_num')::int < 160000 THEN
		RETURN true;
	END IF;
	EXECUTE format('CREATE COLLATION keys_ruled (provider = icu, locale = ''und'', rules = %L)', rules);
	result := same_order('keys_icu_signs', 'v COLLATE keys_ruled, id', 'id') LIKE '%, ' || sorted_by AND
		same_order('keys_icu_signs', 'k, v COLLATE keys_ruled, id', 'id') LIKE 'same order%';
	DROP COLLATION keys_ruled;
	RETURN result;
END
$$;
SELECT keys_rules('&a < b << c', 'gpusort'), keys_rules('[import vi]', 'gpusort'), keys_rules('[reorder currency]', 'postgres'),
	keys_rules('[backwards 2]', 'postgres'), keys_rules('[alternate shifted]', 'postgres');

-- Under nondeterministic collations a text without a key may be equal to one that has a key.
CREATE COLLATION keys_equal_marks (provider = icu, locale = 'und-u-kk', deterministic = false);
CREATE COLLATION keys_equal_letters (provider = icu, locale = 'und-u-kn-ks-level1', deterministic = false);
CREATE TABLE keys_icu_equal (v text, m text COLLATE keys_equal_marks, l text COLLATE keys_equal_letters);
INSERT INTO keys_icu_equal
	SELECT s, s, s
	FROM (SELECT (i % 40) || (ARRAY[U&'\1EC7', U&'e\0302\0323', U&'\00EA\0323', 'e', U&'e\08D3', '1', U&'\FF11'])[1 + i % 7] AS s
		  FROM generate_series(1, 2000) AS i) x;
CREATE FUNCTION keys_equal(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	stock text;
	ours text;
BEGIN
	SET LOCAL enable_hashagg = off;
	SET LOCAL gpusort.enabled = off;
	EXECUTE 'SELECT array_agg(n ORDER BY n)::text FROM (' || query || ') s' INTO stock;
	SET LOCAL gpusort.enabled = on;
	SET LOCAL gpusort.force = on;
	FOR min_rows IN 0 .. 1 LOOP
		PERFORM set_config('gpusort.min_rows', (min_rows * 1000000)::text, true);
		EXECUTE 'SELECT array_agg(n ORDER BY n)::text FROM (' || query || ') s' INTO ours;
		IF stock IS DISTINCT FROM ours THEN
			RETURN false;
		END IF;
	END LOOP;
	RETURN true;
END
$$;
SELECT c AS column, keys_equal(format('SELECT count(*) AS n FROM keys_icu_equal GROUP BY %I', c)) AS groups,
	keys_equal(format('SELECT count(DISTINCT %I) AS n FROM keys_icu_equal', c)) AS distinct_count,
	keys_equal(format('SELECT count(*) AS n FROM (SELECT DISTINCT %I FROM keys_icu_equal) s', c)) AS distinct_rows,
	keys_equal(format('SELECT count(*) AS n FROM keys_icu_equal GROUP BY %I HAVING count(*) > 40', c)) AS having_count,
	keys_equal(format('SELECT rank() OVER (ORDER BY %I) AS n FROM keys_icu_equal', c)) AS ranks,
	keys_equal(format('SELECT n FROM (SELECT row_number() OVER (PARTITION BY %I) AS n FROM keys_icu_equal) s WHERE n <= 2', c)) AS firsts,
	keys_equal(format('SELECT n FROM (SELECT row_number() OVER (PARTITION BY %I) AS n FROM keys_icu_equal) s WHERE n > 1', c)) AS others
FROM unnest(ARRAY['m', 'l']) AS c;

-- A million characters: with a mark at the end, at the beginning, in the middle, in order and not.
CREATE TABLE keys_icu_million (k int, id int, v text COLLATE "vi-x-icu");
INSERT INTO keys_icu_million
	SELECT 0, i, CASE WHEN i % 5 = 0 THEN m ELSE '' END || repeat('é', 500000) || CASE WHEN i % 5 = 1 THEN m ELSE '' END ||
		repeat('ê', 500000) || CASE WHEN i % 5 IN (2, 3) THEN m ELSE '' END || i % 3
	FROM (SELECT i, (ARRAY[U&'\0323', U&'\1AC3', U&'\0301', U&'\08D3\0301'])[1 + i % 4] AS m FROM generate_series(1, 6) AS i) x;
SELECT same_order('keys_icu_million', 'k, v, id', 'id');

-- An error, or a cancelled query, leaves the collation unproven, and the next one proves it.
CREATE COLLATION keys_unproven (provider = icu, locale = 'sv-u-kn-false');
\set VERBOSITY terse
SET gpusort.fault = 'icu_table:1000';
SELECT same_order('keys_icu_marked', 'v COLLATE keys_unproven', 'v');
RESET gpusort.fault;
SELECT same_order('keys_icu_marked', 'k, v COLLATE keys_unproven, id', 'id');

DROP TABLE keys_icu_marked, keys_icu_signs, keys_icu_equal, keys_icu_million, keys_direction;
DROP COLLATION keys_equal_marks, keys_equal_letters, keys_unproven;
DROP FUNCTION keys_found, keys_sorted_by, keys_rules, keys_equal, four_orders, same_order, keys_taken, keys_rank;
