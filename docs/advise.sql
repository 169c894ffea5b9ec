-- Does gpusort pay for this database?  It need not be installed, and nothing is changed:
--
--	psql -X -d mydb -f advise.sql
--	su postgres -c 'psql -X -d mydb' <advise.sql		as root
--
-- Two lists: index builds, from the catalogs, and statements, from pg_stat_statements.  Columns whose names end in "?" are
-- guesses, with a GPU and without (CPU).  Slow storage, and sorts that do not fit into the GPU's memory, gain less.
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

SELECT coalesce(current_setting('gpusort.device', true), '') = 'host' AS host \gset
\if :host
	\echo 'This server sorts on its CPU (gpusort.device = host): the columns of a GPU are not for it.'
	\echo
\endif

\echo '== Index builds: CREATE INDEX, REINDEX, restores. The 30 largest gains'
WITH :builds
SELECT oid::regclass AS index, keys, rows::bigint AS rows, pg_size_pretty(bytes) AS size, round(ms::numeric) AS "PostgreSQL ms?",
	round(gpu_ms::numeric) AS "GPU ms?", round(cpu_ms::numeric) AS "CPU ms?",
	CASE WHEN gpu_ms IS NOT NULL THEN pg_size_pretty(2 * bytes + 150 * rows::bigint) END AS "device memory?"
FROM builds WHERE rows >= 20000 AND kind <> 7 AND nspname <> 'pg_toast'
ORDER BY ms - CASE WHEN :'host' THEN cpu_ms ELSE gpu_ms END DESC NULLS LAST, bytes DESC, oid LIMIT 30;

\echo '"-": gpusort leaves such an index to PostgreSQL. The time of GIN depends on the number of keys, not of rows: it may be four'
\echo 'times as long, or a third. gpusort does not change how fast an index is when it is used.'
\echo

-- held: the same in advise.sql and gained.sql.  The owner of the extension's schema could rename it, and put another one in its
-- place, between two statements: its row is locked meanwhile, which only a superuser can
SELECT rolsuper AND NOT pg_is_in_recovery() AS held FROM pg_roles WHERE rolname = current_user \gset
\if :held
	BEGIN READ WRITE;
	SELECT count(*) FROM (SELECT FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace FOR KEY SHARE OF n) AS s \gset
\endif
-- end of held
SELECT count(*) > 0 AS loaded, min(format('%I.pg_stat_statements', n.nspname)) AS statements
FROM pg_extension AS e JOIN pg_depend AS d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
	JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE e.extname = 'pg_stat_statements' AND p.proname = 'pg_stat_statements'
	AND current_setting('pg_stat_statements.max', true) IS NOT NULL \gset
\if :loaded
\echo '== Statements that sort, and write temporary files or return many rows. The 30 largest gains'
WITH :builds,
statements AS (
	SELECT query, sum(calls) AS calls, sum(total_exec_time) / sum(calls) AS ms, sum(rows) / sum(calls) AS rows,
		sum(temp_blks_written) / sum(calls) * current_setting('block_size')::int / 1048576 AS temp_mb
	FROM :statements(true)
	WHERE dbid = (SELECT oid FROM database)
		AND query ~* '\m(order\s+by|distinct|over\s*\(|over\s+\w|group\s+by|within\s+group|union(?!\s+all))\M'
		AND query !~* '^\s*(explain|declare)\M|/\* docs/distinct[.]sql \*/'
	GROUP BY query HAVING sum(calls) > 0),
-- by the collation that it names, or the database's
named AS (
	SELECT *, coalesce((SELECT min(kind) FROM collations
		WHERE collname = name[array_length(name, 1)] AND (array_length(name, 1) = 1 OR nspname = name[1])),
		(SELECT kind FROM collations WHERE oid = 100)) AS kind
	FROM statements, LATERAL (SELECT parse_ident(substring(query FROM
		'(?i)\mcollate\s+((?:"(?:[^"]|"")+"|[[:alpha:]_][\w$]*)(?:\s*\.\s*(?:"(?:[^"]|"")+"|[[:alpha:]_][\w$]*))?)')) AS name) AS c
	WHERE temp_mb >= 1 OR rows >= 20000),
-- what it would take if its first column were a number, or text
guesses AS (
	SELECT * FROM named AS s, LATERAL (
		SELECT format('%s to %s', round(min(ms - sorting * (1 - 1 / gpu_sort))::numeric), round(max(ms - sorting * (1 - 1 / gpu_sort))::numeric)) AS gpu,
			format('%s to %s', round(min(ms - sorting * (1 - 1 / cpu_sort))::numeric), round(max(ms - sorting * (1 - 1 / cpu_sort))::numeric)) AS cpu,
			max(sorting * (1 - 1 / CASE WHEN :'host' THEN cpu_sort ELSE gpu_sort END)) AS saved, max(keys) FILTER (WHERE k.kind = s.kind) AS text
		FROM kinds AS k, LATERAL (SELECT least(ms, greatest(temp_mb * ms_per_temp_mb,
			CASE WHEN query ~* '\morder\s+by\M' THEN rows * us_per_row / 1000 ELSE 0 END)) AS sorting) AS t
		WHERE k.kind IN (1, s.kind)) AS g)
SELECT calls, round(ms::numeric) AS "ms a call", round(temp_mb) AS "temporary MB", round(rows) AS rows, gpu AS "GPU ms?", cpu AS "CPU ms?", text,
	pg_size_pretty(greatest(4 * temp_mb * 1048576, 300 * rows)::bigint) AS "device memory?",
	left(regexp_replace(query, '\s+', ' ', 'g'), 80) AS statement
FROM guesses WHERE saved > 0 ORDER BY calls * saved DESC, query LIMIT 30;

\echo 'The list cannot know whether a statement sorts by a number, or by text in the order of the collation that it names or of'
\echo 'the database: so each guess is a range. Temporary files may also be those of a hash join or of hashed groups, which'
\echo 'gpusort does not make faster. Sorts in memory of which few rows come back are not in the list: gpusort gains from some'
\echo '20,000 rows on. Statements of others are hidden from you without pg_read_all_stats.'
\else
\echo '== Statements: not known, because pg_stat_statements is not loaded, or not created in this database.'
\echo 'Add it to shared_preload_libraries, restart the server, CREATE EXTENSION pg_stat_statements, and ask again later.'
\endif
\if :held
	COMMIT;
\endif
