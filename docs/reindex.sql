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
-- Columns whose names end in "?" are guesses, in seconds, of builds without CONCURRENTLY, which scans the table twice and
-- waits for transactions: by PostgreSQL, and by gpusort with a GPU and without (CPU).
-- preamble: the same in each of these scripts.  Names are PostgreSQL's own, whatever others have made, and no view of
-- others is read (from 15.8, 16.4 and 17.0 on)
\set QUIET on
SET search_path = pg_catalog, pg_temp;
SET standard_conforming_strings = on;
SELECT count(set_config(name, 'view', false)) > 0 AS guarded FROM pg_settings WHERE name = 'restrict_nonsystem_relation_kind' \gset
\pset footer off
\pset null '-'
-- end of preamble
-- builds: the same in advise.sql and reindex.sql.  A guess of PostgreSQL's time goes by the rows of a btree, by the megabytes
-- of a GIN index, by the megabytes of a sort's temporary files.  gpu_ and cpu_: how many times as fast gpusort is, on an H200
-- host with 16 cores, up to 8 workers and all data in memory, and on 2 cores without a GPU (docs/measured.md)
SELECT $$
kinds (kind, keys, us_per_row, ms_per_mb, gpu_build, cpu_build, ms_per_temp_mb, gpu_sort, cpu_sort) AS (VALUES
	(1, 'numbers, times, bytes', 0.15, 0, 3.0, 1.2, 6, 3.0, 1.8),		-- 7.3 million integers: 1071 and 352 ms
	(2, 'text by bytes', 0.55, 0, 4.8, 1.5, 8, 7.0, 2.0),				-- 7.3 million paths: 4004 and 831 ms
	(3, 'text of ICU', 0.7, 0, 6.0, 1.7, 11, 12.0, 3.5),
	(4, 'text of libc', 2.0, 0, 10.5, 3.5, 30, 26.0, 9.0),				-- 1 to 3.6 us a row
	(5, 'GIN', 0, 150, 8.0, 3.0, NULL, NULL, NULL),						-- 50 to 600 ms, in one process of PostgreSQL
	(6, 'not sorted by gpusort', 0.7, 0, NULL, NULL, NULL, NULL, NULL),
	(7, 'not a btree or GIN', 0, 200, NULL, NULL, NULL, NULL, NULL)),
database AS (
	SELECT *, pg_encoding_max_length(encoding) AS char_bytes FROM pg_database WHERE datname = current_database()),
collations AS (
	SELECT c.oid, nspname, collname, collisdeterministic AS deterministic, provider, CASE WHEN provider = 'i' THEN 3
		WHEN provider = 'b' OR locale ~* '^(C|POSIX|C[.]UTF-?8)$' THEN 2 ELSE 4 END AS kind
	FROM pg_collation AS c JOIN pg_namespace AS n ON n.oid = c.collnamespace, database AS d, LATERAL (
		SELECT CASE WHEN collprovider = 'd' THEN d.datlocprovider ELSE collprovider END AS provider,
			CASE WHEN collprovider = 'd' THEN d.datcollate ELSE collcollate END AS locale) AS l),
index_kinds AS (
	SELECT r.oid, max(CASE WHEN am.amname = 'gin' THEN 5 WHEN am.amname <> 'btree' THEN 7
		WHEN element.typtype NOT IN ('c', 'e', 'r') AND element.typname NOT IN ('text', 'varchar', 'bpchar', 'name',
			'int2', 'int4', 'int8', 'float4', 'float8', 'numeric', 'money', 'date', 'time', 'timetz', 'timestamp',
			'timestamptz', 'interval', 'bytea', 'bool', 'char', 'uuid', 'bit', 'varbit', 'inet', 'cidr', 'macaddr',
			'macaddr8', 'oid', 'tid', 'xid8', 'pg_lsn', 'geometry', 'jsonb') AND element.typname NOT LIKE 'reg%' THEN 6
		-- its strings are of the database's collation; the times are those of text
		WHEN element.typname = 'jsonb' THEN (SELECT kind FROM collations WHERE oid = 100)
		WHEN i.indcollation[n] = 0 THEN 1
		WHEN o.opcname LIKE '%pattern_ops' THEN 2
		ELSE c.kind END) AS kind
	FROM pg_index AS i JOIN pg_class AS r ON r.oid = i.indexrelid AND r.relkind = 'i' AND r.oid >= 16384
		JOIN pg_am AS am ON am.oid = r.relam
		CROSS JOIN generate_series(0, i.indnkeyatts - 1) AS n
		JOIN pg_opclass AS o ON o.oid = i.indclass[n]
		JOIN pg_attribute AS a ON a.attrelid = i.indexrelid AND a.attnum = n + 1
		JOIN pg_type AS type ON type.oid = a.atttypid
		JOIN pg_type AS base ON base.oid = coalesce(nullif(type.typbasetype, 0), type.oid)
		JOIN pg_type AS element ON element.oid = CASE WHEN base.typcategory = 'A' THEN base.typelem ELSE base.oid END
		LEFT JOIN collations AS c ON c.oid = i.indcollation[n]
	GROUP BY r.oid),
builds AS (
	SELECT b.*, keys, ms, ms / CASE WHEN rows < 20000 THEN 1 ELSE gpu_build END AS gpu_ms,		-- gpusort.min_rows
		ms / CASE WHEN rows < 20000 THEN 1 ELSE cpu_build END AS cpu_ms
	FROM (SELECT r.oid, n.nspname, r.relname, r.relowner, kind, bytes,
			-- there is no number after pg_upgrade to 17 or earlier
			CASE WHEN r.reltuples > 0 AND r.reltuples < 1e15 THEN r.reltuples ELSE bytes / 50 END AS rows
		FROM index_kinds JOIN pg_class AS r USING (oid) JOIN pg_namespace AS n ON n.oid = r.relnamespace,
			LATERAL (SELECT pg_relation_size(r.oid) AS bytes) AS s) AS b
		JOIN kinds AS k USING (kind), LATERAL (SELECT rows * us_per_row / 1000 + bytes * ms_per_mb / 1048576 AS ms) AS g)
$$ AS builds \gset
-- end of builds

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
-- version: NULL, or the actual one where the recorded one is another
versions AS (
	SELECT l.oid, format('%I.%I', nspname, l.collname) AS name, deterministic, CASE provider WHEN 'i' THEN 'ICU' ELSE 'libc' END AS library,
		coalesce(recorded, 'none') AS recorded, CASE WHEN :'collations' = 'all' OR recorded IS DISTINCT FROM actual THEN actual END AS version
	FROM collations AS l JOIN pg_collation AS c USING (oid), database AS d, LATERAL (
		SELECT CASE WHEN collprovider = 'd' THEN datcollversion ELSE collversion END AS recorded,
			CASE WHEN collprovider = 'd' THEN pg_database_collation_actual_version(d.oid)
				ELSE pg_collation_actual_version(c.oid) END AS actual) AS v
	WHERE provider IN ('c', 'i')),
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
	FROM columns AS c JOIN versions AS l ON l.oid = c.attcollation
	WHERE collated AND version IS NOT NULL AND (amname <> 'hash' OR NOT deterministic)),
listed AS (
	SELECT b.*, format('%I.%I', nspname, relname) AS name, indrelid, indisexclusion, relkind,
		coalesce(gpu_ms, ms) AS gpu, coalesce(cpu_ms, ms) AS cpu
	FROM builds AS b JOIN pg_index AS i ON i.indexrelid = b.oid JOIN (SELECT oid AS indrelid, relkind FROM pg_class) AS h USING (indrelid)
	WHERE b.oid IN (SELECT oid FROM reasons))
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
WITH RECURSIVE :builds, :listed
SELECT name AS index, why, pg_size_pretty(bytes) AS size, round(ms::numeric / 1000, 1) AS "PostgreSQL s?",
	round(gpu::numeric / 1000, 1) AS "GPU s?", round(cpu::numeric / 1000, 1) AS "CPU s?"
FROM listed JOIN reasons USING (oid) ORDER BY bytes DESC, name, number;

WITH RECURSIVE :builds, :listed
SELECT format('%s indexes, %s. Guesses: PostgreSQL %s s, gpusort %s s on a GPU and %s s on a CPU', count(*), pg_size_pretty(coalesce(sum(bytes), 0)),
	coalesce(round(sum(ms)::numeric / 1000, 1), 0), coalesce(round(sum(gpu)::numeric / 1000, 1), 0),
	coalesce(round(sum(cpu)::numeric / 1000, 1), 0)) AS sum, count(*) > 0 AS any,
	coalesce(bool_or(kind = 5), false) AND :major < 18 AS gin,
	coalesce(bool_or(kind = 7), false) AS gist FROM listed \gset
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
WITH RECURSIVE :builds, :listed
SELECT format('REINDEX %s %s%s;  -- %s%s',
	CASE WHEN hidden THEN 'TABLE' ELSE 'INDEX' END,
	-- there is no concurrent build for exclusion constraints
	CASE WHEN :'concurrently'::boolean AND NOT indisexclusion THEN 'CONCURRENTLY ' ELSE '' END,
	CASE WHEN hidden THEN (SELECT format('%I.%I', nspname, relname) FROM pg_class AS t JOIN pg_namespace AS n ON n.oid = t.relnamespace
		WHERE t.reltoastrelid = g.indrelid) ELSE name END,
	pg_size_pretty(bytes),
	-- a name must not end the comment
	CASE WHEN pg_has_role(relowner, 'USAGE') THEN '' ELSE ', as ' || regexp_replace(relowner::regrole::text, '[[:cntrl:]]', '?', 'g') END)
FROM listed AS g, LATERAL (SELECT relkind = 't' AND NOT has_schema_privilege('pg_toast', 'USAGE') AS hidden) AS h
ORDER BY bytes DESC, name;

WITH RECURSIVE :builds, :listed
SELECT regexp_replace(CASE oid WHEN 100 THEN format('-- then: ALTER DATABASE %I REFRESH COLLATION VERSION;', current_database())
	ELSE format('-- then: ALTER COLLATION %s REFRESH VERSION;', name) END, '[[:cntrl:]]', '?', 'g')
FROM versions AS l WHERE version IS NOT NULL AND version IS DISTINCT FROM recorded
	AND oid IN (SELECT attcollation FROM columns WHERE collated) ORDER BY oid;
\pset tuples_only off
\pset format aligned
\endif
