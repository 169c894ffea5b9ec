-- How much does gpusort gain?  For the role of an application, which runs it in its database:
--
--	psql -X -d mydb -U app -f gained.sql
--
-- It prints gpusort's times, of all databases since its counters were reset, and the role's ten statements that sort and
-- take the most time by pg_stat_statements, as a pair to execute: with gpusort and without.  Nothing is changed, or executed.
-- preamble: the same in each of these scripts.  Names are PostgreSQL's own, whatever others have made, and no view of
-- others is read (from 15.8, 16.4 and 17.0 on)
\set QUIET on
SET search_path = pg_catalog, pg_temp;
SET standard_conforming_strings = on;
SELECT count(set_config(name, 'view', false)) > 0 AS guarded FROM pg_settings WHERE name = 'restrict_nonsystem_relation_kind' \gset
\pset footer off
\pset null '-'
-- end of preamble

-- held: the same in advise.sql and gained.sql.  The owner of the extension's schema could rename it, and put another one in its
-- place, between two statements: its row is locked meanwhile, which only a superuser can
SELECT rolsuper AND NOT pg_is_in_recovery() AS held FROM pg_roles WHERE rolname = current_user \gset
\if :held
	BEGIN READ WRITE;
	SELECT count(*) FROM (SELECT FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace FOR KEY SHARE OF n) AS s \gset
\endif
-- end of held
SELECT min(format('%I.%I', n.nspname, p.proname)) FILTER (WHERE p.proname = 'gpusort_stat_times') AS times,
	min(format('%I.%I', n.nspname, p.proname)) FILTER (WHERE p.proname = 'pg_stat_statements') AS statements,
	count(*) = 2 AND current_setting('pg_stat_statements.max', true) IS NOT NULL
		AND current_setting('gpusort.enabled', true) IS NOT NULL AS loaded
FROM pg_extension AS e JOIN pg_depend AS d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
	JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE (e.extname, p.proname) IN (('gpusort', 'gpusort_stat_times'), ('pg_stat_statements', 'pg_stat_statements')) \gset
\if :loaded
SELECT kind, sum(sorts) AS sorts, round((sum(total_ms) / 1000)::numeric, 1) AS "seconds in all", max(stats_reset)::timestamp(0) AS since
FROM :times() GROUP BY kind ORDER BY sum(total_ms) DESC;
\echo
\pset format unaligned
\pset fieldsep '\n'
\pset tuples_only on
-- only what reads, and without what psql would not read as the server has
SELECT format('-- %s calls, %s ms and %s rows each%s', calls, round(ms::numeric, 1), round(rows),
		CASE WHEN query ~ '[$]\d' THEN '; put values in the place of $1 and the like' ELSE '' END),
	'SET gpusort.enabled = on;', pair, 'SET gpusort.enabled = off;', pair, ''
FROM (SELECT query, sum(calls) AS calls, sum(total_exec_time) / sum(calls) AS ms, sum(rows) / sum(calls) AS rows
	FROM :statements(true)
	WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND userid = (SELECT oid FROM pg_roles WHERE rolname = current_user)
		AND query ~* '^\s*(select|with|table)\M' AND query !~* '\m(insert|update|delete|merge|into|gpusort_stat_times|pg_\w+)\M|\\'
		AND query ~* '\m(order\s+by|distinct|over\s*\(|over\s+\w|group\s+by|within\s+group|union(?!\s+all))\M'
	GROUP BY query HAVING sum(calls) > 0) AS s, format(E'EXPLAIN (ANALYZE, TIMING OFF) %s\n;', query) AS pair
ORDER BY calls * ms DESC LIMIT 10;
\else
\echo 'This database needs the extensions gpusort and pg_stat_statements, and the server must load both.'
\endif
\if :held
	COMMIT;
\endif
