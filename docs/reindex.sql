-- Which indexes of this database do PostgreSQL's release notes, a changed glibc or ICU, and pg_upgrade ask to
-- rebuild?  As of 2026-11-28.  gpusort need not be installed, and nothing is changed:
--
--	psql -X -d mydb -f reindex.sql
--	psql -X -d mydb -v concurrently=no -f reindex.sql	commands that are faster, and block writes
--	psql -X -d mydb -v collations=all -f reindex.sql	after pg_upgrade from PostgreSQL 14 or earlier, which
--								records the new system's versions of collations in silence
--	su postgres -c 'psql -X -d mydb' <reindex.sql		as root
--
-- Sources: the release notes of 15.19, 15.20, 17.11, 17.12, 18.2 and 18.6, and those of 18 about pg_upgrade, were
-- read.  Those of 16.15, 16.16, 18.7 and 19 were not: the first three are taken to ask what their sisters of the same
-- day ask, and an index that pg_upgrade has brought to 19 to need what its old server asks.
--
-- The catalogs do not tell
--	- whether an index was rebuilt since: it is listed again.  Of a btree on bpchar pageinspect tells: then
--	  SELECT allequalimage FROM bt_metap('NAME') is false;
--	- whether deduplicate_items was on before it was off.  Such a btree on bpchar needs to be rebuilt, too, and is not
--	  listed;
--	- whether REINDEX CONCURRENTLY has built a TOAST index.  Those are listed whose OID does not follow their table's.
--
-- Not listed: invalid indexes, those of temporary tables and system catalogs; indexes whose condition or expression
-- compares under a collation, or whose type has text within (jsonb, composite types, ranges).
-- gpusort_collation_check() knows these.
--
-- Columns whose names end in "?" are guesses, in seconds, of builds without CONCURRENTLY, which scans the table twice
-- and waits for transactions.  Btrees: the times for a row of advise.sql.  GIN: 150 ms for a MB, where 50 to 600 were
-- measured.  Others: 200 ms.
\set QUIET on
\pset footer off
\pset null '-'

-- Is there a GPU?  "psql -v gpu=no" says so, or gpusort, if it is there
\if :{?gpu}
\else
	\set gpu yes
	SELECT count(*) > 0 AS known, min(relnamespace::regnamespace::text) AS gpusort FROM pg_class
	WHERE relname = 'gpusort_devices' AND current_setting('gpusort.enabled', true) IS NOT NULL \gset
	\if :known
		SELECT coalesce(bool_or(kind = 'cuda'), false) AS gpu FROM :gpusort.gpusort_devices \gset
	\endif
\endif
\if :{?concurrently}
\else
	\set concurrently yes
\endif
\if :{?collations}
\else
	\set collations changed
\endif

-- the releases of 2026-08 and 2026-11
SELECT major, major >= 19 AS is_19, aug, nov, split_part(current_setting('server_version'), ' ', 1) AS version,
	major < 19 AND minor < split_part(nov, '.', 2)::int AS outdated
FROM (SELECT current_setting('server_version_num')::int / 10000 AS major,
		current_setting('server_version_num')::int % 10000 AS minor) AS server
	JOIN (VALUES (15, 15, '15.19', '15.20'), (16, 16, '16.15', '16.16'), (17, 17, '17.11', '17.12'),
		(18, 99, '18.6', '18.7')) AS release (low, high, aug, nov) ON major BETWEEN low AND high \gset

SELECT $$
database AS (
	SELECT *, pg_encoding_max_length(encoding) AS char_bytes FROM pg_database WHERE datname = current_database()),
-- kind: as advise.sql has it; version: NULL, or the actual one where the recorded one is another
collations AS (
	SELECT oid, name, CASE WHEN provider = 'i' THEN 3
			WHEN provider = 'b' OR locale ~* '^(C|POSIX|C[.]UTF-?8)$' THEN 2 ELSE 4 END AS kind, deterministic,
		CASE WHEN (:'collations' = 'all' OR recorded IS DISTINCT FROM actual) AND provider IN ('c', 'i') THEN actual END AS version,
		coalesce(recorded, 'none') AS recorded, CASE provider WHEN 'i' THEN 'ICU' ELSE 'libc' END AS library
	FROM (SELECT c.oid, format('%I.%I', n.nspname, c.collname) AS name, c.collisdeterministic AS deterministic,
			CASE WHEN c.collprovider = 'd' THEN d.datlocprovider ELSE c.collprovider END AS provider,
			CASE WHEN c.collprovider = 'd' THEN d.datcollate ELSE c.collcollate END AS locale,
			CASE WHEN c.collprovider = 'd' THEN d.datcollversion ELSE c.collversion END AS recorded,
			CASE WHEN c.collprovider = 'd' THEN pg_database_collation_actual_version(d.oid)
				ELSE pg_collation_actual_version(c.oid) END AS actual
		FROM pg_collation AS c JOIN pg_namespace AS n ON n.oid = c.collnamespace, database AS d) AS c),
-- domains: the innermost one has the length
types (type, base, typmod) AS (
	SELECT oid, typbasetype, typtypmod FROM pg_type WHERE typtype = 'd'
	UNION ALL
	SELECT t.type, d.typbasetype, d.typtypmod FROM types AS t JOIN pg_type AS d ON d.oid = t.base AND d.typtype = 'd'),
columns AS (
	SELECT r.oid, i.indrelid, h.relkind, am.amname, o.opcname, o.opcfamily, o.opcintype, e.extname, a.attcollation,
		i.indnatts > i.indnkeyatts OR EXISTS (SELECT FROM pg_options_to_table(r.reloptions)
			WHERE option_name = 'deduplicate_items' AND NOT option_value::boolean) AS single,
		o.opcintype = 'bpchar'::regtype AND coalesce((SELECT max(typmod) FROM types WHERE type = a.atttypid), a.atttypmod) = -1
			AS any_length,
		o.opcintype = 'bpchar'::regtype OR EXISTS (SELECT FROM pg_amproc AS p WHERE p.amprocfamily = o.opcfamily
			AND p.amproclefttype = o.opcintype AND p.amprocrighttype = o.opcintype AND p.amprocnum = 4) AS equal_image,
		-- stored trigrams have no collation; PostgreSQL's pattern_ops and bloom_ops go by bytes
		(t.typcollation <> 0 OR t.oid = 'cstring'::regtype)
			AND o.opcfamily NOT IN (2095, 2097, 2229, 2231, 4573, 4579, 4586) AS collated
	FROM pg_index AS i JOIN pg_class AS r ON r.oid = i.indexrelid JOIN pg_class AS h ON h.oid = i.indrelid
		JOIN pg_am AS am ON am.oid = r.relam
		JOIN pg_attribute AS a ON a.attrelid = r.oid AND a.attnum <= i.indnkeyatts
		JOIN pg_type AS t ON t.oid = a.atttypid
		JOIN pg_opclass AS o ON o.oid = i.indclass[a.attnum - 1]
		LEFT JOIN pg_depend AS d ON d.classid = 'pg_opclass'::regclass AND d.objid = o.oid AND d.deptype = 'e'
		LEFT JOIN pg_extension AS e ON e.oid = d.refobjid
	WHERE r.relkind = 'i' AND r.relpersistence <> 't' AND i.indisvalid AND i.indislive AND r.oid >= 16384),
reasons (oid, number, why) AS (
	SELECT c.oid, 1, :'nov' || ': deduplicated bpchar without a length may return wrong trailing spaces'
	FROM columns AS c LEFT JOIN collations AS l ON l.oid = c.attcollation
	WHERE amname = 'btree' AND NOT single
	GROUP BY c.oid HAVING bool_or(any_length) AND bool_and(equal_image AND coalesce(deterministic, true))
	UNION
	SELECT oid, 2, :'nov' || ': GIN, if suspected: VACUUM left dead entries, or cut off pages'
	FROM columns WHERE amname = 'gin'
	UNION
	SELECT oid, 3, :'nov' || ': entries may be missing, if REINDEX CONCURRENTLY built this TOAST index'
	FROM columns WHERE relkind = 't' AND oid::bigint <> indrelid::bigint + 1
	UNION
	SELECT oid, 4, :'nov' || ': searches by gist_trgm_ops may miss rows'
	FROM columns WHERE extname = 'pg_trgm' AND opcname = 'gist_trgm_ops'
	UNION
	SELECT oid, 5, :'aug' || ': btree_gist, if there may be NaN: it was compared wrongly'
	FROM columns WHERE extname = 'btree_gist' AND opcname IN ('gist_float4_ops', 'gist_float8_ops')
	UNION
	SELECT oid, 6, :'aug' || ': btree_gist sorted bits wrongly: the index is slow, but right'
	FROM columns WHERE :major >= 18 AND extname = 'btree_gist' AND opcname IN ('gist_bit_ops', 'gist_vbit_ops')
	UNION
	SELECT oid, 7, :'aug' || ': ltree, if values have more than 14,653 labels: they were compared wrongly'
	FROM columns WHERE extname = 'ltree' AND amname = 'btree'
	UNION
	SELECT c.oid, 8, '18.2: ltree, if older: it ignores case in another way now'
	FROM columns AS c, database WHERE :major >= 18 AND extname = 'ltree' AND (datlocprovider <> 'c' OR char_bytes > 1)
	UNION
	SELECT c.oid, 9, '18: if pg_upgrade brought it from 17 or older: text search and trigrams use the database''s provider'
	FROM columns AS c, database WHERE :major >= 18 AND datlocprovider <> 'c'
		AND (extname = 'pg_trgm' OR opcintype IN ('tsvector'::regtype, 'tsquery'::regtype))
	UNION
	-- hashes are of the bytes, except under nondeterministic collations
	SELECT c.oid, 10, format('%s %s: the order %s %s', library, version,
		CASE l.oid WHEN 100 THEN 'of the database' ELSE 'of ' || name END, CASE WHEN version = recorded
			THEN 'may have changed, if pg_upgrade recorded this version' ELSE 'may have changed, recorded is ' || recorded END)
	FROM columns AS c JOIN collations AS l ON l.oid = c.attcollation
	WHERE collated AND version IS NOT NULL AND (amname <> 'hash' OR NOT deterministic)),
-- and the guesses
kinds (kind, us_per_row, ms_per_mb, gpu, cpu) AS (VALUES (1, 0.15, 0, 3.0, 1.2), (2, 0.55, 0, 4.8, 1.5), (3, 0.7, 0, 6.0, 1.0),
	(4, 2.0, 0, 10.5, 3.5), (5, 0, 150, 8.0, 3.0), (6, 0, 200, 1.0, 1.0), (7, 0.7, 0, 1.0, 1.0)),
indexes AS (
	SELECT r.oid, i.indrelid, h.relkind, format('%I.%I', n.nspname, r.relname) AS name, r.relowner, i.indisexclusion,
		pg_relation_size(r.oid) AS bytes,
		-- none after pg_upgrade to 17 or earlier
		CASE WHEN r.reltuples > 0 AND r.reltuples < 1e15 THEN r.reltuples ELSE pg_relation_size(r.oid) / 50 END AS rows,
		(SELECT max(CASE WHEN amname = 'gin' THEN 5 WHEN amname <> 'btree' THEN 6 WHEN extname IS NOT NULL THEN 7
			WHEN collated THEN l.kind WHEN c.attcollation <> 0 THEN 2 ELSE 1 END)
		FROM columns AS c LEFT JOIN collations AS l ON l.oid = c.attcollation WHERE c.oid = r.oid) AS kind
	FROM pg_class AS r JOIN pg_namespace AS n ON n.oid = r.relnamespace JOIN pg_index AS i ON i.indexrelid = r.oid
		JOIN pg_class AS h ON h.oid = i.indrelid
	WHERE r.oid IN (SELECT oid FROM reasons)),
guesses AS (
	SELECT i.*, ms / 1000 AS postgres_s,
		ms / 1000 / CASE WHEN rows < 20000 THEN 1 WHEN :'gpu'::boolean THEN gpu ELSE cpu END AS gpusort_s		-- gpusort.min_rows
	FROM (SELECT i.*, gpu, cpu, rows * us_per_row / 1000 + bytes * ms_per_mb / 1048576 AS ms FROM indexes AS i JOIN kinds USING (kind)) AS i)
$$ AS listed \gset

\if :outdated
	\echo This server is :version. Update it to :nov or later first: the older server makes the same mistakes again.
	\echo
\endif
\if :is_19
	\echo 'On PostgreSQL 19 what releases ask concerns only indexes that pg_upgrade, a beta or rc 1 has left.'
	\echo
\endif
\echo '== Indexes to rebuild, with the release or library that asks for it'
WITH RECURSIVE :listed
SELECT name AS index, why, pg_size_pretty(bytes) AS size,
	round(postgres_s::numeric, 1) AS "PostgreSQL s?", round(gpusort_s::numeric, 1) AS "gpusort s?"
FROM guesses JOIN reasons USING (oid) ORDER BY bytes DESC, name, number;

WITH RECURSIVE :listed
SELECT format('%s indexes, %s. Guesses: PostgreSQL %s s, gpusort %s s on a %s', count(*), pg_size_pretty(coalesce(sum(bytes), 0)),
	coalesce(round(sum(postgres_s)::numeric, 1), 0), coalesce(round(sum(gpusort_s)::numeric, 1), 0),
	CASE WHEN :'gpu'::boolean THEN 'GPU (psql -v gpu=no: on a CPU)' ELSE 'CPU' END) AS sum, count(*) > 0 AS any,
	coalesce(bool_or(kind = 5), false) AND :major < 18 AS gin,
	coalesce(bool_or(kind = 6), false) AS gist FROM guesses \gset
\echo :sum
\if :any
\if :gist
	\echo 'GiST, SP-GiST and BRIN indexes are not faster with gpusort.'
\endif
\if :gin
	\echo 'Before PostgreSQL 18 gpusort builds no GIN index CONCURRENTLY (index_builds.md).'
\endif
\echo 'An index that was rebuilt since is listed again: the catalogs do not tell. Btrees on character(n) are right, but amcheck'
\echo 'of' :nov 'or later says of old ones that their "metapage incorrectly indicates that deduplication is safe".'
\echo

\echo '== Commands'
\pset tuples_only on
\pset format unaligned
WITH RECURSIVE :listed
SELECT format('REINDEX %s %s%s;  -- %s%s',
	CASE WHEN hidden THEN 'TABLE' ELSE 'INDEX' END,
	-- there is no concurrent build for exclusion constraints
	CASE WHEN :'concurrently'::boolean AND NOT indisexclusion THEN 'CONCURRENTLY ' ELSE '' END,
	CASE WHEN hidden THEN (SELECT format('%I.%I', nspname, relname) FROM pg_class AS t JOIN pg_namespace AS n ON n.oid = t.relnamespace
		WHERE t.reltoastrelid = g.indrelid) ELSE name END,
	pg_size_pretty(bytes),
	-- a name must not end the comment
	CASE WHEN pg_has_role(relowner, 'USAGE') THEN '' ELSE ', as ' || regexp_replace(relowner::regrole::text, '[[:cntrl:]]', '?', 'g') END)
FROM guesses AS g, LATERAL (SELECT relkind = 't' AND NOT has_schema_privilege('pg_toast', 'USAGE') AS hidden) AS h
ORDER BY bytes DESC, name;

WITH RECURSIVE :listed
SELECT regexp_replace(CASE oid WHEN 100 THEN format('-- then: ALTER DATABASE %I REFRESH COLLATION VERSION;', current_database())
	ELSE format('-- then: ALTER COLLATION %s REFRESH VERSION;', name) END, '[[:cntrl:]]', '?', 'g')
FROM collations AS l WHERE version IS NOT NULL AND version IS DISTINCT FROM recorded
	AND oid IN (SELECT attcollation FROM columns WHERE collated) ORDER BY oid;
\pset tuples_only off
\pset format aligned
\endif
