--
-- Text under ICU collations of which only the first bytes of the sort key are
-- computed: more than 64 kB, up to 100 MB.
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
CREATE COLLATION huge_numeric (provider = icu, locale = 'en-u-kn-true');
CREATE COLLATION huge_upper (provider = icu, locale = 'en-u-kf-upper');
CREATE COLLATION huge_no_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);

-- Texts around the limit that differ at the beginning, beyond the longest key
-- or at the end only, in letters, case, accents or punctuation; short ones among them
CREATE TABLE keys_icu_huge (id int, v text COLLATE "und-x-icu");
INSERT INTO keys_icu_huge
	SELECT i, left(md5((i % 40)::text), i % 20) || repeat((ARRAY['éa-', 'Abc ', '19 ', 'ch', 'x'])[1 + i % 5], 30000 + i % 4 * 9000) ||
		(ARRAY['', 'e', 'E', 'é', '-', ' '])[1 + i % 6]
	FROM generate_series(1, 240) AS i;
INSERT INTO keys_icu_huge SELECT 1000 + i, left(md5((i % 40)::text), i % 33) FROM generate_series(1, 240) AS i;
INSERT INTO keys_icu_huge
	SELECT 2000 + i, repeat('-', 70000 + i % 3) || CASE i % 4 WHEN 0 THEN 'a' WHEN 1 THEN 'b' ELSE '' END
	FROM generate_series(1, 12) AS i;
INSERT INTO keys_icu_huge
	SELECT 3000 + i, repeat('Große Texte. ', 8000000) || i FROM generate_series(1, 2) AS i;
SELECT max(octet_length(v)) >> 20 AS mb FROM keys_icu_huge;
SELECT same_order('keys_icu_huge', 'v, id', 'id');
SELECT same_order('keys_icu_huge', 'v COLLATE huge_numeric, id', 'id');
SELECT same_order('keys_icu_huge', 'v COLLATE huge_upper DESC, id', 'id');
SELECT same_order('keys_icu_huge', 'v COLLATE huge_no_case, id', 'id');

DROP TABLE keys_icu_huge, keys_direction;
DROP COLLATION huge_numeric, huge_upper, huge_no_case;
DROP FUNCTION four_orders, same_order, keys_taken, keys_rank;
