-- Which columns have a wrong n_distinct?  Only psql is needed, and nothing is changed:
--
--	psql -X -d mydb -f distinct.sql [-v tables='public.%'] [-v min_rows=100000]
--	su postgres -c 'psql -X -d mydb' <distinct.sql		as root
--
-- PostgreSQL guesses from a sample how many different values a column has.  Where the guess is off by more
-- than 5 times, its plans may be poor, and ANALYZE alone does not help.  This script counts the values: each column of
-- each table that is LIKE "tables" and has so many rows, one after the other.  It prints the commands that set the
-- number.  Read them, execute them, and ANALYZE the tables.  gpusort does the counting in a fraction of the time.
-- Left out: columns with a unique index, and types that ANALYZE does not sort, such as json, point and ranges.
\set QUIET on
\pset format unaligned
\pset tuples_only on
\if :{?tables}
\else
	\set tables '%'
\endif
\if :{?min_rows}
\else
	\set min_rows 100000
\endif

SELECT CASE WHEN current_setting('gpusort.enabled', true) IS NULL THEN '-- gpusort is not loaded: PostgreSQL counts, which is slower'
	WHEN current_setting('gpusort.enabled') <> 'on' THEN '-- gpusort.enabled is ' || current_setting('gpusort.enabled') || ': PostgreSQL counts, which is slower'
	ELSE '-- gpusort counts' END;

-- The rows of a table without children, or of one with all below it (inherited), as pg_stats has them
WITH RECURSIVE tree (root, member) AS (
	SELECT oid, oid FROM pg_class WHERE relkind IN ('r', 'p', 'm')
	UNION SELECT root, inhrelid FROM tree JOIN pg_inherits ON inhparent = member),
sizes AS (
	SELECT root, inherited, sum(reltuples) AS rows
	FROM tree JOIN pg_class AS c ON c.oid = member CROSS JOIN (VALUES (false), (true)) AS v (inherited)
	WHERE c.relkind <> 'p' AND (inherited OR member = root) GROUP BY root, inherited)
SELECT format(
	'SELECT format(%L, CASE WHEN counted > 0.1 * rows THEN trim_scale(round(-counted::numeric / rows, 6)) ELSE counted END, guess, counted, rows)
	FROM (SELECT count(DISTINCT %I) AS counted FROM %s OFFSET 0) AS c, (SELECT count(*) AS rows FROM %3$s) AS r,
		LATERAL (SELECT greatest(round(abs(%4$s) * CASE WHEN %4$s < 0 THEN rows ELSE 1 END), 1) AS guess) AS g
	WHERE guess > 5 * counted OR counted > 5 * guess',
	-- "%" in a name must not be a placeholder of the inner format()
	replace(format('ALTER TABLE %I.%I ALTER COLUMN %I SET (%s = ', s.schemaname, s.tablename, s.attname,
		CASE WHEN s.inherited THEN 'n_distinct_inherited' ELSE 'n_distinct' END), '%', '%%')
		|| '%s);  -- a guess of %s values, but there are %s in %s rows',
	s.attname, CASE WHEN s.inherited THEN '' ELSE 'ONLY ' END || format('%I.%I', s.schemaname, s.tablename), s.n_distinct::text)
FROM pg_stats AS s JOIN pg_namespace AS n ON n.nspname = s.schemaname
	JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = s.tablename
	JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = s.attname
	JOIN sizes ON sizes.root = c.oid AND sizes.inherited = s.inherited
WHERE s.schemaname <> 'pg_catalog' AND s.schemaname <> 'information_schema' AND s.schemaname || '.' || s.tablename LIKE :'tables'
	AND c.relpersistence <> 't' AND sizes.rows >= :min_rows AND s.correlation IS NOT NULL
	AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisunique AND indisvalid AND indpred IS NULL
		AND indnkeyatts = 1 AND indkey[0] = a.attnum AND NOT (s.inherited AND c.relkind = 'r'))
ORDER BY s.schemaname, s.tablename, s.inherited, a.attnum
\gexec
\echo '-- ANALYZE the tables of the commands above then: it keeps the numbers from now on. No commands: no guess is wrong.'
