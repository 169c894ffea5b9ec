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
-- Of tables of which a tenth has changed since the last ANALYZE it only prints an ANALYZE.
-- A query of a table may call functions of its owner (those of its indexes, say) with the rights of who asks.  So only
-- tables are counted whose owner has your rights anyway: run it as the role that owns them, as it will say.
-- preamble: the same in each of these scripts.  Names are PostgreSQL's own, whatever others have made, and no view of
-- others is read (from 15.8, 16.4 and 17.0 on)
\set QUIET on
SET search_path = pg_catalog, pg_temp;
SET standard_conforming_strings = on;
SELECT count(set_config(name, 'view', false)) > 0 AS guarded FROM pg_settings WHERE name = 'restrict_nonsystem_relation_kind' \gset
\pset footer off
\pset null '-'
-- end of preamble
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

SELECT $$
-- The rows of a table without children, or of one with all below it (inherited), as pg_stats has them
tree (root, member) AS (
	SELECT oid, oid FROM pg_class WHERE relkind IN ('r', 'p', 'm')
	UNION SELECT root, inhrelid FROM tree JOIN pg_inherits ON inhparent = member),
sizes AS (
	SELECT root, inherited, sum(reltuples) AS rows, sum(pg_stat_get_mod_since_analyze(c.oid)) AS changed
	FROM tree JOIN pg_class AS c ON c.oid = member CROSS JOIN (VALUES (false), (true)) AS v (inherited)
	WHERE c.relkind <> 'p' AND (inherited OR member = root) GROUP BY root, inherited),
owners AS (
	SELECT root, string_agg(DISTINCT quote_ident(r.rolname), ', ') FILTER (WHERE NOT pg_has_role(r.oid, m.oid, 'USAGE')) AS others
	FROM tree JOIN pg_class AS c ON c.oid = member JOIN pg_roles AS r ON r.oid = c.relowner
		JOIN pg_roles AS m ON m.rolname = current_user
	GROUP BY root),
columns AS (
	SELECT s.inherited, n_distinct, others, s.attname, attnum, rows, changed, changed > 0.1 * rows AS old, format('%I.%I', s.schemaname, s.tablename) AS name
	FROM pg_stats AS s JOIN pg_namespace AS n ON n.nspname = s.schemaname
		JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = s.tablename
		JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = s.attname
		JOIN sizes ON sizes.root = c.oid AND sizes.inherited = s.inherited
		JOIN owners ON owners.root = c.oid
	WHERE s.schemaname <> 'pg_catalog' AND s.schemaname <> 'information_schema' AND s.schemaname || '.' || s.tablename LIKE :'tables'
		AND c.relpersistence <> 't' AND sizes.rows >= :min_rows AND s.correlation IS NOT NULL
		AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisunique AND indisvalid AND indpred IS NULL
			AND indnkeyatts = 1 AND indkey[0] = a.attnum AND NOT (s.inherited AND c.relkind = 'r')))
$$ AS counted \gset

WITH RECURSIVE :counted
SELECT format('ANALYZE %s;  -- first, and ask again: %s changes since the last one, in %s rows', name, max(changed), max(rows))
FROM columns WHERE old GROUP BY name ORDER BY name;

WITH RECURSIVE :counted
SELECT format('-- %s tables of %s are not counted: run this as that role', count(DISTINCT name), others)
FROM columns WHERE NOT old AND others IS NOT NULL GROUP BY others ORDER BY others;

\if :guarded
WITH RECURSIVE :counted
SELECT format(
	'SELECT /* docs/distinct.sql */ format(%L,
		CASE WHEN counted > 0.1 * rows THEN trim_scale(round(-counted::numeric / rows, 6)) ELSE counted END, guess, counted, rows)
	FROM (SELECT count(DISTINCT %I) AS counted FROM %s OFFSET 0) AS c, (SELECT count(*) AS rows FROM %3$s) AS r,
		LATERAL (SELECT greatest(round(abs(%4$s) * CASE WHEN %4$s < 0 THEN rows ELSE 1 END), 1) AS guess) AS g
	WHERE counted > 0 AND (guess > 5 * counted OR counted > 5 * guess)',
	-- "%" in a name must not be a placeholder of the inner format()
	replace(format('ALTER TABLE %s ALTER COLUMN %I SET (%s = ', name, attname,
		CASE WHEN inherited THEN 'n_distinct_inherited' ELSE 'n_distinct' END), '%', '%%')
		|| '%s);  -- a guess of %s values, but there are %s in %s rows',
	attname, CASE WHEN inherited THEN '' ELSE 'ONLY ' END || name, n_distinct::text)
FROM columns WHERE NOT old AND others IS NULL ORDER BY name, inherited, attnum
\gexec
\echo '-- ANALYZE the tables of the commands above then: it keeps the numbers from now on. No commands: no guess is wrong.'
\else
\echo '-- Nothing was counted. Update this server first: only from 15.8, 16.4 and 17.0 on is a table safe against a view in its place.'
\endif
