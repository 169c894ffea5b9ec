--
-- jsonb: null, strings, numbers, booleans, arrays, objects, one inside of the other, and in what compares
-- rows, under each kind of collation that a database can have.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/results.inc
\set regression_database :DBNAME
\set ECHO all
CREATE DATABASE gpusort_jsonb TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C';
\c gpusort_jsonb
\set ECHO none
\i sql/keys_jsonb.inc
\c :regression_database
DROP DATABASE gpusort_jsonb;

-- text by glibc's tables
CREATE DATABASE gpusort_jsonb TEMPLATE template0 ENCODING 'UTF8' LOCALE 'en_US.utf8' LOCALE_PROVIDER libc;
\c gpusort_jsonb
\set ECHO none
\i sql/keys_jsonb.inc
\c :regression_database
DROP DATABASE gpusort_jsonb;

-- without ICU another collation stands in for its
SELECT EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu') AS has_icu
\gset
\if :has_icu
CREATE DATABASE gpusort_jsonb TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'de-u-kn';
\else
CREATE DATABASE gpusort_jsonb TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C';
\endif
\c gpusort_jsonb
\set ECHO none
\i sql/keys_jsonb.inc
\c :regression_database
DROP DATABASE gpusort_jsonb;
