-- What the cases of the differential tester share: collations of all kinds,
-- enums, domains.  Where the machine has no such locale, or the server no ICU,
-- the name stands for another collation.
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS fuzz CASCADE;
CREATE SCHEMA fuzz;
SET search_path = fuzz;

CREATE FUNCTION make_collation(name text, provider text, locale text, strength_only boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE COLLATION %I (provider = %s, locale = %L, deterministic = %s)',
				   name, provider, locale, (NOT strength_only)::text);
EXCEPTION WHEN OTHERS THEN
	RAISE WARNING 'no collation %, C in its place: %', locale, SQLERRM;
	EXECUTE format('CREATE COLLATION %I FROM "C"', name);
END
$$;
SELECT make_collation('fuzz_en', 'libc', 'en_US.UTF-8', false) \g /dev/null
SELECT make_collation('fuzz_de', 'libc', 'de_DE.UTF-8', false) \g /dev/null
SELECT make_collation('fuzz_libc_' || substr(locale, 1, 2), 'libc', locale || '.UTF-8', false)
	FROM unnest(ARRAY['cs_CZ', 'da_DK', 'hu_HU', 'ja_JP', 'ru_RU', 'tr_TR', 'zh_CN']) locale \g /dev/null
SELECT make_collation('fuzz_icu_' || locale, 'icu', locale, false)
	FROM unnest(ARRAY['cs', 'hu', 'ja', 'ru', 'tr', 'zh']) locale \g /dev/null
SELECT make_collation('fuzz_c_utf8', 'libc', 'C.UTF-8', false) \g /dev/null
SELECT make_collation('fuzz_icu', 'icu', 'und', false) \g /dev/null
SELECT make_collation('fuzz_danish', 'icu', 'da', false) \g /dev/null
SELECT make_collation('fuzz_numeric', 'icu', 'en-u-kn-true', false) \g /dev/null
SELECT make_collation('fuzz_upper', 'icu', 'en-u-kf-upper', false) \g /dev/null
SELECT make_collation('fuzz_shifted', 'icu', 'en-u-ka-shifted', false) \g /dev/null
SELECT make_collation('fuzz_no_case', 'icu', 'und-u-ks-level2', true) \g /dev/null
SELECT make_collation('fuzz_no_accents', 'icu', 'und-u-ks-level1', true) \g /dev/null
SELECT make_collation('fuzz_no_punctuation', 'icu', 'en-u-ka-shifted-ks-level1', true) \g /dev/null

-- Labels added later have places between the others
CREATE TYPE fuzz_mood AS ENUM ('m1', 'm2', 'm3', 'm15', 'm9');
ALTER TYPE fuzz_mood ADD VALUE 'm0' BEFORE 'm1';
CREATE TYPE fuzz_many AS ENUM ('m3', 'm9');
ALTER TYPE fuzz_many ADD VALUE 'm1' BEFORE 'm9';
ALTER TYPE fuzz_many ADD VALUE 'm2' BEFORE 'm9';
ALTER TYPE fuzz_many ADD VALUE 'm15' BEFORE 'm2';
ALTER TYPE fuzz_many ADD VALUE 'm0' AFTER 'm15';
CREATE DOMAIN fuzz_word AS text COLLATE fuzz_en;
CREATE DOMAIN fuzz_words AS text[] COLLATE fuzz_en;
CREATE DOMAIN fuzz_count AS int;
CREATE DOMAIN fuzz_amount AS numeric;
CREATE DOMAIN fuzz_state AS fuzz_mood;
CREATE TYPE fuzz_pair AS (a int, b text COLLATE fuzz_en);
CREATE TYPE fuzz_doc AS (n numeric, p fuzz_pair, d jsonb, m fuzz_mood);
