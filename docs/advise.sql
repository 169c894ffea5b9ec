-- Does gpusort pay for this database?  It need not be installed, and nothing is changed:
--
--	psql -X -d mydb -f advise.sql
--	su postgres -c 'psql -X -d mydb' <advise.sql		as root
--
-- Two lists: index builds, from the catalogs, and statements, from pg_stat_statements.  Columns whose names end
-- in "?" are guesses: the number of rows, or of megabytes in temporary files, times what the table below says of the kind
-- of key.  Its times were measured on an H200 host with 16 cores, up to 8 workers and all data in memory (docs/measured.md),
-- and without a GPU on 2 cores.  Devices that make the keys of ICU and libc needed 0.46 to 0.74 of the times before on an
-- H100.  The build factor of ICU does not count that.  Slow storage, and sorts that do not fit into the GPU's memory, gain less.
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
\if :gpu
	\echo 'Guesses for a server with a GPU.  For one without: psql -v gpu=no'
\else
	\echo 'Guesses for a server without a GPU, whose CPU sorts.'
\endif
\echo

SELECT $$
kinds (kind, keys, us_per_row, ms_per_mb, build, sort) AS (
	SELECT kind, keys, us_per_row, ms_per_mb, CASE WHEN :'gpu'::boolean THEN gpu[1] ELSE cpu[1] END,
		CASE WHEN :'gpu'::boolean THEN gpu[2] ELSE cpu[2] END
	-- with a GPU, and without one: index builds, and sorts, are so many times as fast
	FROM (VALUES
		(1, 'numbers, times, bytes', 0.15, 6, ARRAY[3.0, 3.0], ARRAY[1.2, 1.8]),	-- 7.3 million integers: 1071 and 352 ms
		(2, 'text by bytes', 0.55, 8, ARRAY[4.8, 7.0], ARRAY[1.5, 2.0]),			-- 7.3 million paths: 4004 and 831 ms
		(3, 'text of ICU', 0.7, 11, ARRAY[6.0, 12.0], ARRAY[2.0, 3.5]),				-- with a GPU only sorts were measured
		(4, 'text of libc', 2.0, 30, ARRAY[17.0, 26.0], ARRAY[6.0, 9.0]),			-- 1 to 3.6 us a row
		(5, 'GIN', NULL, NULL, ARRAY[8.0], ARRAY[3.0]),								-- beside one process of PostgreSQL
		(6, 'not sorted by gpusort', NULL, NULL, NULL, NULL)) AS v (kind, keys, us_per_row, ms_per_mb, gpu, cpu)),
database AS (
	SELECT datlocprovider AS provider, datcollate AS locale FROM pg_database WHERE datname = current_database()),
collations AS (
	SELECT oid, collname, CASE WHEN provider = 'i' THEN 3
			WHEN provider = 'b' OR locale ~* '^(C|POSIX|C\.UTF-?8)$' THEN 2 ELSE 4 END AS kind
	FROM (SELECT c.oid, collname, CASE WHEN collprovider = 'd' THEN d.provider ELSE collprovider END AS provider,
			CASE WHEN collprovider = 'd' THEN d.locale ELSE collcollate END AS locale
		FROM pg_collation AS c, database AS d) AS c)
$$ AS kinds \gset

\echo '== Index builds: CREATE INDEX, REINDEX, restores. The 30 largest gains'
WITH :kinds,
columns AS (
	SELECT i.indexrelid, am.amname,
		CASE WHEN element.typtype NOT IN ('c', 'e', 'r') AND element.typname NOT IN ('text', 'varchar', 'bpchar', 'name',
				'int2', 'int4', 'int8', 'float4', 'float8', 'numeric', 'money', 'date', 'time', 'timetz', 'timestamp',
				'timestamptz', 'interval', 'bytea', 'bool', 'char', 'uuid', 'bit', 'varbit', 'inet', 'cidr', 'macaddr',
				'macaddr8', 'oid', 'tid', 'xid8', 'pg_lsn', 'geometry', 'jsonb') AND element.typname NOT LIKE 'reg%' THEN 6
			-- its strings are of the database's collation; the times are those of text
			WHEN element.typname = 'jsonb' THEN (SELECT kind FROM collations AS c WHERE c.oid = 100)
			WHEN i.indcollation[n] = 0 THEN 1
			WHEN o.opcname LIKE '%pattern_ops' THEN 2
			ELSE (SELECT kind FROM collations AS c WHERE c.oid = i.indcollation[n])
		END AS kind
	FROM pg_index AS i JOIN pg_class AS r ON r.oid = i.indexrelid AND r.relkind = 'i'
		JOIN pg_am AS am ON am.oid = r.relam AND am.amname IN ('btree', 'gin')
		CROSS JOIN generate_series(0, i.indnkeyatts - 1) AS n
		JOIN pg_opclass AS o ON o.oid = i.indclass[n]
		JOIN pg_attribute AS a ON a.attrelid = i.indexrelid AND a.attnum = n + 1
		JOIN pg_type AS type ON type.oid = a.atttypid
		JOIN pg_type AS base ON base.oid = coalesce(nullif(type.typbasetype, 0), type.oid)
		JOIN pg_type AS element ON element.oid = CASE WHEN base.typcategory = 'A' THEN base.typelem ELSE base.oid END
	WHERE r.relnamespace <> 'pg_catalog'::regnamespace AND r.relnamespace <> 'pg_toast'::regnamespace),
indexes AS (
	SELECT r.oid, r.reltuples, pg_relation_size(r.oid) AS bytes, CASE WHEN amname = 'gin' THEN 5 ELSE c.kind END AS kind
	FROM (SELECT indexrelid, amname, max(kind) AS kind FROM columns GROUP BY indexrelid, amname) AS c
		JOIN pg_class AS r ON r.oid = c.indexrelid
	WHERE r.reltuples >= 20000)			-- gpusort.min_rows
SELECT oid::regclass AS index, keys, reltuples::bigint AS rows, pg_size_pretty(bytes) AS size,
	round((reltuples * us_per_row / 1000)::numeric) AS "PostgreSQL ms?",
	round((reltuples * us_per_row / 1000 / build)::numeric) AS "gpusort ms?",
	build AS "times as fast?",
	CASE WHEN build IS NOT NULL THEN pg_size_pretty(2 * bytes + 150 * reltuples::bigint) END AS "device memory?"
FROM indexes JOIN kinds USING (kind)
ORDER BY reltuples * us_per_row * (1 - 1 / build) DESC NULLS LAST, bytes DESC, oid LIMIT 30;

\echo '"-" in the last columns: gpusort leaves such an index to PostgreSQL. In the columns of milliseconds alone: GIN, whose time'
\echo 'depends on the number of keys, not of rows. gpusort does not change how fast an index is when it is used.'
\echo

SELECT n.nspname AS schema, current_setting('pg_stat_statements.max', true) IS NOT NULL AS loaded
FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'pg_stat_statements'
UNION ALL SELECT '', false LIMIT 1 \gset

\if :loaded
\echo '== Statements that sort, and write temporary files or return many rows. The 30 largest gains'
WITH :kinds,
statements AS (
	SELECT query, sum(calls) AS calls, sum(total_exec_time) / sum(calls) AS ms, sum(rows) / sum(calls) AS rows,
		sum(temp_blks_written) / sum(calls) * current_setting('block_size')::int / 1048576 AS temp_mb,
		-- the collation that it names, or the database's
		coalesce((SELECT min(kind) FROM collations WHERE collname = substring(query FROM '(?i)\mCOLLATE\s+"([^"]+)"')),
			(SELECT kind FROM collations WHERE oid = 100)) AS kind
	FROM :"schema".pg_stat_statements AS s
	WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND query ~* '\m(order\s+by|distinct|over\s*\(|over\s+\w|group\s+by|within\s+group|union(?!\s+all))\M'
		AND query !~* '^\s*(explain|declare)\M'
	GROUP BY query),
-- what it would save if its first column were a number, or text
guesses AS (
	SELECT * FROM statements AS s, LATERAL (
		SELECT max(saved) FILTER (WHERE k.kind = 1) AS number, max(saved) FILTER (WHERE k.kind = s.kind) AS text,
			max(keys) FILTER (WHERE k.kind = s.kind) AS keys
		FROM (SELECT kind, keys, least(ms, greatest(temp_mb * ms_per_mb,
				CASE WHEN query ~* '\morder\s+by\M' THEN rows * us_per_row / 1000 ELSE 0 END)) * (1 - 1 / sort) AS saved FROM kinds) AS k) AS g
	WHERE temp_mb >= 1 OR rows >= 20000)
SELECT calls, round(ms::numeric) AS "ms a call", round(temp_mb) AS "temporary MB", round(rows) AS rows,
	format('%s to %s', round((ms - greatest(number, text))::numeric), round((ms - least(number, text))::numeric)) AS "gpusort ms?", keys AS text,
	format('%s to %s', round((calls * least(number, text))::numeric), round((calls * greatest(number, text))::numeric)) AS "saved ms in all?",
	pg_size_pretty(greatest(4 * temp_mb * 1048576, 300 * rows)::bigint) AS "device memory?",
	left(regexp_replace(query, '\s+', ' ', 'g'), 80) AS statement
FROM guesses WHERE greatest(number, text) > 0 ORDER BY calls * greatest(number, text) DESC, query LIMIT 30;

\echo 'The list cannot know whether a statement sorts by a number, or by text in the order of the collation that it names or of'
\echo 'the database: so each guess is a range. Temporary files may also be those of a hash join or of hashed groups, which'
\echo 'gpusort does not make faster. Sorts in memory of which few rows come back are not in the list: gpusort gains from some'
\echo '20,000 rows on. Statements of others are hidden from you without pg_read_all_stats.'
\else
\echo '== Statements: not known, because pg_stat_statements is not loaded, or not created in this database.'
\echo 'Add it to shared_preload_libraries, restart the server, CREATE EXTENSION pg_stat_statements, and ask again later.'
\endif
