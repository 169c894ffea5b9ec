--
-- The order of gpusort against PostgreSQL's own: text under ICU collations.
--
-- A server without ICU ends the test here.
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
SELECT setseed(0.5);

-- With tailorings of every kind; the strength says which strings are equal
-- where the collation is not deterministic.
CREATE TABLE keys_collation (n int, name text, locale text, deterministic boolean);
INSERT INTO keys_collation VALUES
	(1, 'keys_root', 'und', true),
	(2, 'keys_danish', 'da', true),
	(3, 'keys_czech', 'cs', true),
	(4, 'keys_german_phonebook', 'de-u-co-phonebk', true),
	(5, 'keys_chinese', 'zh', true),
	(6, 'keys_japanese', 'ja', true),
	(7, 'keys_thai', 'th', true),
	(8, 'keys_canadian_french', 'fr-CA', true),
	(9, 'keys_numeric', 'en-u-kn-true', true),
	(10, 'keys_upper_first', 'en-u-kf-upper', true),
	(11, 'keys_shifted', 'en-u-ka-shifted', true),
	(12, 'keys_shifted_quaternary', 'en-u-ka-shifted-ks-level4', true),
	(13, 'keys_identical', 'und-u-ks-identic', true),
	(14, 'keys_backwards', 'und-u-kb-true', true),
	(15, 'keys_latin_last', 'und-u-kr-digit-cyrl-latn', true),
	(16, 'keys_old_style', 'en@colStrength=secondary', true),
	(17, 'keys_no_case', 'und-u-ks-level2', false),
	(18, 'keys_no_accents', 'und-u-ks-level1', false),
	(19, 'keys_case_only', 'und-u-ks-level1-kc-true', false),
	(20, 'keys_no_zeroes', 'en-u-kn-true', false),
	(21, 'keys_no_punctuation', 'en-u-ka-shifted-ks-level1', false);
SELECT format('CREATE COLLATION %I (provider = icu, locale = %L, deterministic = %s)', name, locale, deterministic::text)
FROM keys_collation ORDER BY n
\gexec

-- Words of a small alphabet, and of many scripts
CREATE TABLE keys_icu_text (id int, v text, b char(14), w varchar(40));
CREATE FUNCTION keys_word(letters text[], longest int) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(letters[1 + floor(random() * cardinality(letters))], ''), '')
	FROM generate_series(1, floor(random() * (longest + 1))::int)
$$;
INSERT INTO keys_icu_text
	SELECT i, s, left(s, 14), left(s, 40)
	FROM (SELECT i, keys_word(ARRAY['a', 'A', 'b', 'B', ' ', '-', '1', '0', '_', 'e', 'é', 'É', E'e\u0301', 'ch', 'aa'], i % 6) AS s
		  FROM generate_series(1, 600) i) x;
INSERT INTO keys_icu_text
	SELECT 600 + i, s, left(s, 14), left(s, 40)
	FROM (SELECT i, keys_word(ARRAY['z', 'Å', 'ä', 'ae', 'ß', 'ss', 'Ж', 'ж', 'ё', 'Ω', 'ω', '中', '文', 'の', 'ノ', '한',
									'글', 'ไ', 'ท', 'ا', 'א', '😀', '👩‍👧', E'\u0300', E'\u200b', E'\x01', '.', '/', '１', '½', 'ﬁ', 'Ǆ'], i % 9) AS s
		  FROM generate_series(1, 600) i) x;
INSERT INTO keys_icu_text
	SELECT 1200 + i, s, left(s, 14), left(s, 40)
	FROM (SELECT i, '/usr/share/file-' || (i % 120) || CASE WHEN i % 2 = 0 THEN '.TXT' ELSE '.txt' END AS s
		  FROM generate_series(1, 300) i) x;
INSERT INTO keys_icu_text SELECT 1500 + i, s, left(s, 14), left(s, 40)
	FROM unnest(ARRAY['', '', ' ', '  ', 'a', 'a ', 'A', 'aa', 'côte', 'coté', 'côté', 'cote', 'Cote', 'résumé', 'resume',
		'Resume', 'co-op', 'coop', 'co op', '10', '9', '010', '1e3', 'I', 'İ', 'ı', 'i', E'i\u0307', 'straße', 'strasse',
		E'\uFFFD', U&'\+10FFFF', E'a\u00ad', E'\n\x1f', E'\n\x01\u064b', NULL, NULL]) WITH ORDINALITY u(s, i);

CREATE FUNCTION keys_collations()
RETURNS TABLE (collation_name text, direction text, result text) LANGUAGE plpgsql AS $$
BEGIN
	FOR collation_name IN SELECT c.name FROM keys_collation c ORDER BY n LOOP
		PERFORM keys_rank('keys_icu_text', format('v COLLATE %I', collation_name));
		FOR direction, result IN SELECT o.direction, o.result
			FROM four_orders('keys_ranked', format('v COLLATE %I', collation_name), 'image') o LOOP
			RETURN NEXT;
		END LOOP;
		direction := 'among others';
		result := same_order('keys_ranked', format('id %% 2, left(w, 2) COLLATE %1$I DESC, v COLLATE %1$I, id', collation_name), 'id');
		RETURN NEXT;
		DROP TABLE keys_ranked;
		direction := 'char(n)';
		PERFORM keys_rank('keys_icu_text', format('b COLLATE %I', collation_name));
		result := same_order('keys_ranked', format('b COLLATE %I, w COLLATE %1$I DESC, v COLLATE "C", id', collation_name), 'id');
		RETURN NEXT;
		result := same_order('keys_ranked', format('b COLLATE %I DESC', collation_name), 'image');
		RETURN NEXT;
		DROP TABLE keys_ranked;
	END LOOP;
END
$$;
SELECT * FROM keys_collations();

-- name, domains, arrays
CREATE DOMAIN keys_word_domain AS text COLLATE keys_danish;
SELECT same_order('(SELECT v::name COLLATE keys_czech AS v FROM keys_icu_text) s', 'v', 'v');
SELECT same_order('(SELECT v::keys_word_domain AS v FROM keys_icu_text) s', 'v DESC', 'v');
CREATE TABLE keys_icu_array (id int, v text[], image bigint);
INSERT INTO keys_icu_array
	SELECT a.id, ARRAY[left(a.v, 2), b.v, left(a.v, 1)]
	FROM keys_icu_text a JOIN keys_icu_text b ON a.id = (b.id * 7) % 1000;
SELECT * FROM four_orders('keys_icu_array', 'v COLLATE keys_danish', 'v');
SELECT keys_rank('(SELECT id, v FROM keys_icu_array) s', 'v COLLATE keys_no_accents');
SELECT * FROM four_orders('keys_ranked', 'v COLLATE keys_no_accents', 'image');
SELECT same_order('keys_ranked', 'v COLLATE keys_no_accents, v DESC, id', 'id');
DROP TABLE keys_ranked;

-- Long text, whose sort keys do not fit, compressed and out of line
CREATE TABLE keys_icu_long (id int, v text COLLATE keys_root, e text COLLATE keys_root);
ALTER TABLE keys_icu_long ALTER e SET STORAGE external;
INSERT INTO keys_icu_long
	SELECT i, s, s
	FROM (SELECT i, repeat('x', 8140 + i % 60) || CASE WHEN i % 3 = 0 THEN '' ELSE (i % 5)::text END AS s
		  FROM generate_series(1, 200) i) x;
INSERT INTO keys_icu_long
	SELECT 200 + i, s, s
	FROM (SELECT i, repeat('xé-', i * 30) || i % 3 || repeat(md5(i::text), i * 5 % 77) AS s
		  FROM generate_series(1, 200) i) x;
INSERT INTO keys_icu_long
	SELECT 400 + i, s, s
	FROM (SELECT i, repeat('Été', 30000) || i % 7 AS s FROM generate_series(1, 20) i) x;
SELECT * FROM four_orders('keys_icu_long', 'v', 'md5(v)');
SELECT * FROM four_orders('keys_icu_long', 'e', 'md5(e)');
SELECT same_order('keys_icu_long', 'id % 2, v DESC, id', 'id');
SELECT same_order('keys_icu_long', 'v COLLATE keys_no_case, id', 'id');

-- Fed by several processes
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT same_order('keys_icu_text', 'v COLLATE keys_shifted DESC, id', 'id');
SELECT same_order('keys_icu_text', 'v COLLATE keys_no_case, id', 'id');
SELECT same_order('keys_icu_long', 'v, id', 'id');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

DROP TABLE keys_icu_array;

-- Sort keys from a table of characters, and those that there is none for
CREATE TABLE keys_icu_words (id int, v text, b char(20));
INSERT INTO keys_icu_words
	SELECT i, s, left(s, 20)
	FROM (SELECT i, keys_word(ARRAY['Straße ', 'ch', 'C', 'h', 'ccs', 'c''h', 'dzs', 'll', 'aa', 'Å', 'nj', '-', '10', '9', ' ',
									'été ', 'Привет', 'ё', 'мир', 'Ж', 'αβγ', 'Ω', '中文', '字', 'かな', 'カー', 'ー', 'ハ', '한글', E'\u0301', 'ไท',
									'½', '①', '１', 'æ', 'Œ', 'ﬁ', E'\u00ad', E'\u200b', E'\u20e6', E'\u20de\u20ed', E'\u0488', E'\x1f', '😀', 'ą́', 'ا', 'ب', 'אב', '„', '“'], 1 + i % 12) AS s
		  FROM generate_series(1, 4000) i) x;
-- Marks of combining class 0 behind others, ignorable characters, digits behind the same digit.  PostgreSQL's first column
-- has abbreviated keys, which may hide what its comparison says: so 0 is before this one.
CREATE TABLE keys_icu_marks (zero int, id int, v text);
INSERT INTO keys_icu_marks
	SELECT 0, i, s
	FROM unnest(ARRAY[E'\u20E6', E'\u20E6\x1F', E'\u20E6\u20DE\u20ED\u20D9\u20EE\u20E8\u20E1', E'\u20DC', E'\u20DC\u20DE', E'a\u0488',
		E'a\u0488\u0489', E'a\u0301\x1F\u0488', '１０１', '１２', E'\u0661\u0660\u0661', E'\u0661\u0662', '101', '12'])
		WITH ORDINALITY u(s, i);
CREATE FUNCTION keys_words()
RETURNS TABLE (locale text, ascending text, descending text, marks text) LANGUAGE plpgsql AS $$
BEGIN
	FOREACH locale IN ARRAY ARRAY['und', 'da', 'cs', 'hu', 'es-u-co-trad', 'br', 'hr', 'zh', 'ja', 'ko', 'th', 'tr', 'lt', 'fr-CA',
		'und-u-kn', 'da-u-kn', 'und-u-kf-upper', 'und-u-kf-lower', 'und-u-kr-cyrl-digit-latn', 'en-u-kr-grek-latn-digit', 'und-u-kc', 'und-u-kk',
		'und-u-kv-symbol', 'und-u-ks-level1', 'und-u-ks-level2', 'und-u-ks-level4'] LOOP
		EXECUTE format('CREATE COLLATION keys_words (provider = icu, locale = %L)', locale);
		ascending := same_order('keys_icu_words', 'v COLLATE keys_words, id', 'id');
		descending := same_order('keys_icu_words', 'b COLLATE keys_words DESC, v COLLATE keys_words, id', 'id');
		marks := same_order('keys_icu_marks', 'v COLLATE keys_words, id', 'id') || ', ' ||
			same_order('keys_icu_marks', 'zero, v COLLATE keys_words, id', 'id');
		RETURN NEXT;
		DROP COLLATION keys_words;
	END LOOP;
END
$$;
SELECT * FROM keys_words();
SET gpusort.enabled = on;
SET gpusort.force = on;
SET gpusort.min_rows = 1000000;
CREATE COLLATION keys_new (provider = icu, locale = 'de-u-co-phonebk');
CREATE COLLATION keys_case_level (provider = icu, locale = 'und-u-kc');
SET client_min_messages = debug1;
SELECT count(*) FROM (SELECT v FROM keys_icu_words ORDER BY v COLLATE keys_new OFFSET 0) s;
SELECT count(*) FROM (SELECT v FROM keys_icu_words ORDER BY v COLLATE keys_case_level OFFSET 0) s;
SET client_min_messages = warning;
RESET gpusort.enabled;
RESET gpusort.force;
RESET gpusort.min_rows;
DROP COLLATION keys_new, keys_case_level;
DROP TABLE keys_icu_words, keys_icu_marks;
DROP FUNCTION keys_words;

-- A database whose own collation is ICU's
\set regression_database :DBNAME
CREATE DATABASE gpusort_keys_icu TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu
	ICU_LOCALE 'sv-u-kf-upper';
\c gpusort_keys_icu
SET client_min_messages = warning;
\set ECHO none
\i sql/keys_common.inc
\set ECHO all
SELECT setseed(0.5);
CREATE TABLE keys_default (id int, v text, b char(9), n name);
INSERT INTO keys_default
	SELECT i, s, s, s
	FROM (SELECT i, translate(left(md5(i::text), i % 9), '0123456789abcdef', 'aAåÅäÄöÖvwVW-zZ ') AS s
		  FROM generate_series(1, 1000) i) x;
INSERT INTO keys_default VALUES (1001, '', '', ''), (1002, NULL, NULL, NULL);
SELECT * FROM four_orders('keys_default', 'v', 'v');
SELECT * FROM four_orders('keys_default', 'b', 'b');
SELECT * FROM four_orders('keys_default', 'v COLLATE "C"', 'v');
SELECT same_order('keys_default', 'n COLLATE "default"', 'n');
SELECT same_order('keys_default', 'n', 'n');
SELECT same_order('keys_default', 'left(v, 1), v DESC, id', 'id');
SELECT same_order('(SELECT string_to_array(v, ''a'') AS v FROM keys_default) s', 'v', 'v');
\c :regression_database
SET client_min_messages = warning;
DROP DATABASE gpusort_keys_icu;
-- an error while a table of characters is made, in a session that has none yet
\set VERBOSITY terse
SET gpusort.fault = 'icu_table:300';
SELECT same_order('keys_icu_text', 'v COLLATE keys_root', 'v');
RESET gpusort.fault;
SELECT same_order('keys_icu_text', 'v COLLATE keys_root', 'v');
SELECT same_order('keys_icu_text', 'v COLLATE keys_danish', 'v');
\set VERBOSITY default
DROP DOMAIN keys_word_domain;
DROP TABLE keys_icu_text, keys_icu_long, keys_direction;
SELECT format('DROP COLLATION %I', name) FROM keys_collation ORDER BY n
\gexec
DROP TABLE keys_collation;
DROP FUNCTION keys_collations, keys_word, four_orders, same_order, keys_taken, keys_rank;
