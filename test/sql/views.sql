--
-- The extension's objects and settings.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/wait_closed.inc
\set ECHO all
SELECT extname, extversion, nspname, obj_description(e.oid, 'pg_extension')
FROM pg_extension e JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'gpusort';
\d gpusort_devices
\d gpusort_stats
\d gpusort_stat_reasons
\d gpusort_stat_times
\d gpusort_activity

SELECT wait_closed();
SELECT state, message IS NULL AS no_message, memory_limit > 0 AS has_memory,
	memory_used, staging_total, staging_used, sorts, service_pid > 0 AS has_pid,
	started < clock_timestamp() AS has_start
FROM gpusort_devices;
SELECT wait_closed();
SELECT count(*) FROM gpusort_activity;

SELECT name, setting, unit, context, vartype, min_val, max_val, enumvals
FROM pg_settings
WHERE name LIKE 'gpusort.%' AND name NOT IN ('gpusort.fault', 'gpusort.device', 'gpusort.devices')
ORDER BY name COLLATE "C";
SHOW gpusort.staging_memory;

-- settings of the server cannot be changed in a session
SET gpusort.device = 'off';
SET gpusort.staging_memory = '1GB';
SET gpusort.device_memory = '1GB';
-- nor can there be others of our prefix
SET gpusort.no_such_setting = 1;
SET gpusort.min_rows = -1;
RESET gpusort.min_rows;
SET gpusort.role_memory = '2GB';
SHOW gpusort.role_memory;
-- little is not none
SET gpusort.role_memory = '400kB';
SHOW gpusort.role_memory;
\set VERBOSITY sqlstate
SET gpusort.role_memory = -1;
\set VERBOSITY default
RESET gpusort.role_memory;

-- statistics: a sort in the process, one on the device, one refused
CREATE TABLE views_t AS SELECT i, md5(i::text) AS m FROM generate_series(1, 3000) AS i;
ANALYZE views_t;
SELECT gpusort_stats_reset();
SET gpusort.force = on;
SELECT i FROM views_t ORDER BY m COLLATE "C" LIMIT 1;
SELECT sorts, device_sorts, process_sorts, rows, fallbacks, refusals FROM gpusort_stats;
SET gpusort.min_rows = 1000;
SELECT i FROM views_t ORDER BY m COLLATE "C" LIMIT 1;
SELECT sorts, device_sorts, process_sorts, rows, bytes > 100000 AS bytes, fallbacks, refusals,
	stats_reset < clock_timestamp() AS reset
FROM gpusort_stats;

-- classes of rows and times: 10,000 rows are in the first one, one more is in the next
SELECT i FROM generate_series(1, 10000) AS i ORDER BY -i LIMIT 1;
SELECT i FROM generate_series(1, 10001) AS i ORDER BY -i LIMIT 1;
CREATE INDEX views_i ON views_t (i);
SELECT kind, max_rows, sum(sorts) AS sorts,
	bool_and(total_ms <= max_ms * sorts AND total_ms >= max_ms / 2 * sorts) AS within
FROM gpusort_stat_times GROUP BY kind, max_rows ORDER BY kind COLLATE "C", max_rows;
CLUSTER views_t USING views_i;
SELECT sorts = device_sorts + process_sorts AS all, index_builds > 1 AS index_builds,
	device_sorts = (SELECT sum(t.sorts) FROM gpusort_stat_times AS t WHERE kind <> 'process sort') AS device_sorts,
	(SELECT sum(t.sorts) FROM gpusort_stat_times AS t WHERE kind = 'table sort') AS table_sorts
FROM gpusort_stats;
SELECT gpusort_stats_reset();
SELECT count(*) FROM gpusort_stat_times;
-- a refusal is counted
EXPLAIN (COSTS OFF) SELECT i FROM views_t ORDER BY to_tsvector('simple', i::text);
SELECT kind, reason, count FROM gpusort_stat_reasons WHERE count > 0;
SET client_min_messages = debug1;
EXPLAIN (COSTS OFF) SELECT i FROM views_t ORDER BY to_tsvector('simple', i::text);
SET client_min_messages = warning;

-- an ordinary user sees the views, and may not reset
CREATE ROLE regress_gpusort_user;
SELECT wait_closed();
SET ROLE regress_gpusort_user;
SELECT count(*) FROM gpusort_stats;
SELECT count(*) FROM gpusort_stat_times;
SELECT kind, count(*) FROM gpusort_stat_reasons GROUP BY kind ORDER BY kind;
SELECT count(*) FROM gpusort_devices;
SELECT count(*) FROM gpusort_activity;
SELECT gpusort_stats_reset();
-- nor raise what its sorts may hold
SET gpusort.role_memory = '1GB';
RESET gpusort.role_memory;
RESET ROLE;

-- a sort now running shows, until its cursor is closed
BEGIN;
DECLARE c CURSOR FOR SELECT i FROM views_t ORDER BY m COLLATE "C";
FETCH 1 FROM c;
SELECT wait_closed();
SELECT pid = pg_backend_pid() AS mine, datname = current_database() AS here,
	usename = current_user AS me, phase, rows, bytes > 0 AS bytes, staging_bytes > 0 AS staging
FROM gpusort_activity;
-- others see that it is there, and no more
SET LOCAL ROLE regress_gpusort_user;
SELECT pid = pg_backend_pid() AS mine, datname = current_database() AS here, usename IS NOT NULL AS who,
	device, phase, rows, bytes, staging_bytes, runs, temp_bytes, limited, started
FROM gpusort_activity;
RESET ROLE;
GRANT pg_read_all_stats TO regress_gpusort_user;
SET LOCAL ROLE regress_gpusort_user;
SELECT phase, rows, bytes > 0 AS bytes FROM gpusort_activity;
RESET ROLE;
CLOSE c;
COMMIT;
DROP ROLE regress_gpusort_user;

-- functions that another version's script declared
CREATE FUNCTION views_old(OUT sorts bigint, OUT rows bigint) RETURNS record
	AS '$libdir/gpusort', 'gpusort_stats' LANGUAGE C VOLATILE STRICT;
SELECT * FROM views_old();
CREATE FUNCTION views_old_set(OUT pid int, OUT datid oid, OUT usesysid oid, OUT phase bigint, OUT rows bigint,
	OUT bytes bigint, OUT staging_bytes bigint, OUT started timestamptz) RETURNS SETOF record
	AS '$libdir/gpusort', 'gpusort_activity' LANGUAGE C VOLATILE STRICT;
SELECT * FROM views_old_set();
DROP FUNCTION views_old, views_old_set;
DROP TABLE views_t;
DROP FUNCTION wait_closed;
