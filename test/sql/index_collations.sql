--
-- Indexes on text whose order is not that of its bytes.
--
SET client_min_messages = warning;
CREATE SCHEMA index_collations;
SET search_path = index_collations, public;
\set ECHO none
\i sql/index_common.inc
\set ECHO all

CREATE TABLE t (id int, v text COLLATE "en_US.utf8", b char(20) COLLATE "en_US.utf8", w varchar COLLATE "en_US.utf8");
INSERT INTO t SELECT i, s, left(s, 20), left(s, 3)
	FROM (SELECT i, translate(left(md5(i::text), 1 + i % 9), '0123456789abcdef', '11a--A ,_bBc.''x9') AS s
		  FROM generate_series(1, 2000) AS i) x;
INSERT INTO t SELECT i, s, left(s, 20), left(s, 3)
	FROM (SELECT i, translate(left(md5(i::text), 1 + i % 7), '0123456789abcdef',
							  'aáàeéÉoöÖßsñn' || chr(769) || chr(776) || '-') AS s
		  FROM generate_series(1, 2000) AS i) x;
INSERT INTO t SELECT i, '/usr/share/doc/' || left(md5((i / 3)::text), 3) || CASE WHEN i % 2 = 0 THEN '.GZ' ELSE '.gz' END
	FROM generate_series(1, 1000) AS i;
INSERT INTO t VALUES (1, '', '', ''), (2, '', '', ''), (3, ' ', ' ', ' '), (4, '-', '-', '-'), (5, NULL, NULL, NULL);
SELECT * FROM index_directions('v');
SELECT * FROM index_directions('b');
SELECT index_check('CREATE INDEX %s ON t (v, id DESC)');
SELECT index_check('CREATE INDEX %s ON t (id, w DESC, v)');
SELECT index_check('CREATE INDEX %s ON t (w) INCLUDE (v)');
SELECT index_check('CREATE INDEX %s ON t ((ARRAY[v]))');
SELECT index_check('CREATE INDEX %s ON t (v COLLATE "C", w)');

-- texts that are small when compressed, and whose keys are cut off
INSERT INTO t SELECT i, repeat(md5(i::text), 400) FROM generate_series(1, 3) AS i;
SELECT index_check('CREATE INDEX %s ON t (v)');
SELECT index_check('CREATE INDEX %s ON t (id, v)');
SELECT index_check('CREATE INDEX %s ON t (v COLLATE "C")');

-- equal to the eye only, and equal
CREATE TABLE u (v text COLLATE "en_US.utf8");
INSERT INTO u VALUES ('a'), ('A'), ('á'), ('a-'), ('-a'), ('');
INSERT INTO u SELECT md5(i::text) FROM generate_series(1, 2000) AS i;
SET gpusort.index_build = on;
CREATE UNIQUE INDEX u_v ON u (v);
SELECT bt_index_parent_check('u_v', true, true);
DROP INDEX u_v;
INSERT INTO u VALUES ('á');
CREATE UNIQUE INDEX u_v ON u (v);

-- arrays
ALTER TABLE t RENAME TO words;
CREATE TABLE t (id int, a text[] COLLATE "en_US.utf8", c char(6)[] COLLATE "en_US.utf8");
INSERT INTO t SELECT x.id, ARRAY[left(x.v, 3), y.w, x.v], ARRAY[[x.b], [y.b]]::char(6)[]
	FROM (SELECT *, row_number() OVER (ORDER BY id, v COLLATE "C") AS n FROM words WHERE length(v) < 50) x
		JOIN (SELECT *, row_number() OVER (ORDER BY v COLLATE "C", id) AS n FROM words WHERE length(v) < 50) y USING (n);
INSERT INTO t SELECT id, a[1:2], c[1:1] FROM t WHERE id % 3 = 0;
INSERT INTO t SELECT id, ('[0:2]=' || a::text)::text[], c FROM t WHERE id % 7 = 0 AND cardinality(a) = 3;
INSERT INTO t VALUES (1, '{}', '{}'), (2, '{NULL}', '{NULL}'), (3, NULL, NULL), (4, '{""}', '{""}'), (5, '{a,NULL}', '{{a},{NULL}}');
SELECT * FROM index_directions('a');
SELECT * FROM index_directions('c');
SELECT index_check('CREATE INDEX %s ON t (c, id DESC, a COLLATE "de_DE.utf8")');
SELECT index_check('CREATE INDEX %s ON t (a) INCLUDE (c)');
SELECT index_check('CREATE INDEX %s ON t (a) WHERE id %% 2 = 0');
INSERT INTO t SELECT 1, ARRAY['x', repeat(md5(i::text), 400)], NULL FROM generate_series(1, 3) AS i;
SELECT index_check('CREATE INDEX %s ON t (a)');
CREATE TABLE v (a text[] COLLATE "en_US.utf8");
INSERT INTO v SELECT DISTINCT a FROM t WHERE id > 1;
CREATE UNIQUE INDEX v_a ON v (a);
SELECT bt_index_parent_check('v_a', true, true);
DROP INDEX v_a;
INSERT INTO v VALUES ('{á,NULL}'), ('{á,NULL}');
CREATE UNIQUE INDEX v_a ON v (a);
DROP TABLE t;
ALTER TABLE words RENAME TO t;

-- behind columns of varying width: numerics that are equal and not stored alike, and others
CREATE TABLE numbered (n numeric, b bytea, net inet, a numeric[], v text COLLATE "en_US.utf8", w varchar COLLATE "de_DE.utf8");
INSERT INTO numbered SELECT (ARRAY['1', '1.0', '1.00', '0', '-0.00', 'NaN', 'Infinity', '-Infinity', '12345.678', '1e200', '1e-200', NULL])[1 + i % 12]::numeric,
		decode(left(md5((i % 9)::text), 2 * (i % 5)), 'hex'), ('10.0.0.' || i % 4 || '/' || 24 + i % 9)::inet,
		(ARRAY[i % 2, NULL, 1.50])[1:i % 4], v, w
	FROM (SELECT (row_number() OVER (ORDER BY id, v COLLATE "C"))::int AS i, v, w FROM t WHERE length(v) < 50 OR v IS NULL) AS s;
ALTER TABLE t RENAME TO words;
ALTER TABLE numbered RENAME TO t;
SELECT * FROM index_directions('n, v');
SELECT index_check('CREATE INDEX %s ON t (v, n, w)');
SELECT index_check('CREATE INDEX %s ON t (n DESC NULLS LAST, w DESC, v, a)');
SELECT index_check('CREATE INDEX %s ON t (b, v)');
SELECT index_check('CREATE INDEX %s ON t (net, a DESC, v DESC) INCLUDE (n)');
SELECT index_check('CREATE INDEX %s ON t ((v COLLATE "C"), a, (ARRAY[n]), w)');
CREATE TABLE once (n numeric, v text COLLATE "en_US.utf8");
INSERT INTO once SELECT DISTINCT ON (n, v) n, v FROM t WHERE n IS NOT NULL AND v IS NOT NULL ORDER BY n, v;
CREATE UNIQUE INDEX once_n_v ON once (n, v);
SELECT bt_index_parent_check('once_n_v', true, true);
DROP INDEX once_n_v;
INSERT INTO once VALUES (7, 'Ab'), (7.0, 'ab'), (7.00, 'Ab');
CREATE UNIQUE INDEX once_n_v ON once (n, v);
DROP TABLE t;
ALTER TABLE words RENAME TO t;

-- ICU, where the server has it; also a collation that calls different texts equal
CREATE FUNCTION index_icu(collation_name text, ddl text, taken boolean) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_collation WHERE collname = collation_name AND collprovider = 'i') THEN
		RETURN CASE WHEN taken THEN 'same pages' ELSE 'same pages, postgres' END;
	END IF;
	RETURN index_check(ddl, taken);
END
$$;
DO $$
BEGIN
	CREATE COLLATION index_any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
EXCEPTION WHEN feature_not_supported THEN
	NULL;
END
$$;
SELECT index_icu('de-x-icu', 'CREATE INDEX %s ON t (v COLLATE "de-x-icu")', true);
SELECT index_icu('de-x-icu', 'CREATE INDEX %s ON t (v COLLATE "de-x-icu" DESC, b COLLATE "C")', true);
SELECT index_icu('index_any_case', 'CREATE INDEX %s ON t (v COLLATE index_any_case)', true);
SELECT index_icu('de-x-icu', 'CREATE INDEX %s ON t (w COLLATE "de-x-icu" DESC, v) WHERE length(v) < 50', true);
SELECT index_icu('index_any_case', 'CREATE INDEX %s ON t (w COLLATE index_any_case, b DESC, v) WHERE length(v) < 50', true);
DROP SCHEMA index_collations CASCADE;
