/* sql/gpusort--0.2.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION gpusort" to load this file. \quit

-- Sorting the elements of arrays, as PostgreSQL 18's array_sort() does.

CREATE FUNCTION @extschema@.gpu_sort_array("array" anyarray)
RETURNS anyarray
AS 'MODULE_PATHNAME', 'gpusort_sort_array'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50;

CREATE FUNCTION @extschema@.gpu_sort_array("array" anyarray, descending boolean)
RETURNS anyarray
AS 'MODULE_PATHNAME', 'gpusort_sort_array'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50;

CREATE FUNCTION @extschema@.gpu_sort_array("array" anyarray, descending boolean, nulls_first boolean)
RETURNS anyarray
AS 'MODULE_PATHNAME', 'gpusort_sort_array'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50;

COMMENT ON FUNCTION @extschema@.gpu_sort_array(anyarray) IS
'the array with its elements in ascending order, NULLs last';
COMMENT ON FUNCTION @extschema@.gpu_sort_array(anyarray, boolean) IS
'the array with its elements in the order asked for, NULLs first where it descends';
COMMENT ON FUNCTION @extschema@.gpu_sort_array(anyarray, boolean, boolean) IS
'the array with its elements in the order asked for';

CREATE FUNCTION @extschema@.gpusort_stats_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'gpusort_stats_reset'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

REVOKE ALL ON FUNCTION @extschema@.gpusort_stats_reset() FROM PUBLIC;

-- New in 0.2.0.  The Makefile makes the upgrade script of the rest of this file.

CREATE FUNCTION @extschema@.gpusort_devices(
    OUT device integer,
    OUT kind text,
    OUT name text,
    OUT uuid text,
    OUT state text,
    OUT message text,
    OUT memory_total bigint,
    OUT memory_limit bigint,
    OUT memory_used bigint,
    OUT staging_total bigint,
    OUT staging_used bigint,
    OUT sorts integer,
    OUT service_pid integer,
    OUT started timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpusort_devices'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION @extschema@.gpusort_devices() IS
'the devices that sort: their state, and how much of their memory is in use';

CREATE VIEW @extschema@.gpusort_devices AS
    SELECT * FROM @extschema@.gpusort_devices();

COMMENT ON VIEW @extschema@.gpusort_devices IS
'the devices that sort: their state, and how much of their memory is in use';

COMMENT ON COLUMN @extschema@.gpusort_devices.device IS
'the device''s number: its place in gpusort.devices, or among all devices, from 0 on';
COMMENT ON COLUMN @extschema@.gpusort_devices.kind IS
'cuda or host';
COMMENT ON COLUMN @extschema@.gpusort_devices.name IS
'the device''s name';
COMMENT ON COLUMN @extschema@.gpusort_devices.uuid IS
'the device''s UUID';
COMMENT ON COLUMN @extschema@.gpusort_devices.state IS
'ready, starting, lost (it failed, or could not be opened), or off (there is no device)';
COMMENT ON COLUMN @extschema@.gpusort_devices.message IS
'why there is no device, or the device''s last failure';
COMMENT ON COLUMN @extschema@.gpusort_devices.memory_total IS
'bytes of memory that the device has';
COMMENT ON COLUMN @extschema@.gpusort_devices.memory_limit IS
'bytes of its memory that all sorts together may hold';
COMMENT ON COLUMN @extschema@.gpusort_devices.memory_used IS
'bytes of its memory that sorts hold now';
COMMENT ON COLUMN @extschema@.gpusort_devices.staging_total IS
'bytes of staging memory, which all devices share';
COMMENT ON COLUMN @extschema@.gpusort_devices.staging_used IS
'bytes of staging memory that sorts hold now';
COMMENT ON COLUMN @extschema@.gpusort_devices.sorts IS
'sorts that are open on the device now';
COMMENT ON COLUMN @extschema@.gpusort_devices.service_pid IS
'process id of the service';
COMMENT ON COLUMN @extschema@.gpusort_devices.started IS
'when the service started';

CREATE FUNCTION @extschema@.gpusort_stats(
    OUT sorts bigint,
    OUT device_sorts bigint,
    OUT process_sorts bigint,
    OUT index_builds bigint,
    OUT rows bigint,
    OUT bytes bigint,
    OUT spilled_sorts bigint,
    OUT temp_bytes bigint,
    OUT limited_sorts bigint,
    OUT arrays bigint,
    OUT device_arrays bigint,
    OUT staging_wait_ms double precision,
    OUT sort_wait_ms double precision,
    OUT fetch_wait_ms double precision,
    OUT fallbacks bigint,
    OUT refusals bigint,
    OUT stats_reset timestamptz)
RETURNS record
AS 'MODULE_PATHNAME', 'gpusort_stats'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION @extschema@.gpusort_stats() IS
'counters of what gpusort sorted, and of what it left to PostgreSQL';

CREATE VIEW @extschema@.gpusort_stats AS
    SELECT * FROM @extschema@.gpusort_stats();

COMMENT ON VIEW @extschema@.gpusort_stats IS
'counters of what gpusort sorted, and of what it left to PostgreSQL';

COMMENT ON COLUMN @extschema@.gpusort_stats.sorts IS
'sorts that gpusort completed';
COMMENT ON COLUMN @extschema@.gpusort_stats.device_sorts IS
'of these, sorts on the device';
COMMENT ON COLUMN @extschema@.gpusort_stats.process_sorts IS
'of these, small sorts in the backend';
COMMENT ON COLUMN @extschema@.gpusort_stats.index_builds IS
'indexes built; each counts as one of device_sorts, too';
COMMENT ON COLUMN @extschema@.gpusort_stats.rows IS
'rows in all these sorts';
COMMENT ON COLUMN @extschema@.gpusort_stats.bytes IS
'bytes of rows and keys that were sent to the device';
COMMENT ON COLUMN @extschema@.gpusort_stats.spilled_sorts IS
'sorts that outgrew the device''s memory and used temporary files';
COMMENT ON COLUMN @extschema@.gpusort_stats.temp_bytes IS
'bytes that these sorts wrote to temporary files';
COMMENT ON COLUMN @extschema@.gpusort_stats.limited_sorts IS
'sorts on the device that gpusort.role_memory held up, or moved to temporary files';
COMMENT ON COLUMN @extschema@.gpusort_stats.arrays IS
'arrays that GpuArraySort sorted';
COMMENT ON COLUMN @extschema@.gpusort_stats.device_arrays IS
'of these, arrays sorted on the device';
COMMENT ON COLUMN @extschema@.gpusort_stats.staging_wait_ms IS
'milliseconds that sessions waited for staging memory';
COMMENT ON COLUMN @extschema@.gpusort_stats.sort_wait_ms IS
'milliseconds that sessions waited for the device to sort';
COMMENT ON COLUMN @extschema@.gpusort_stats.fetch_wait_ms IS
'milliseconds that sessions waited for sorted rows';
COMMENT ON COLUMN @extschema@.gpusort_stats.fallbacks IS
'sorts, index builds and array queries that gpusort began and PostgreSQL completed';
COMMENT ON COLUMN @extschema@.gpusort_stats.refusals IS
'times that gpusort could not take a sort or an index build, and left it to PostgreSQL';
COMMENT ON COLUMN @extschema@.gpusort_stats.stats_reset IS
'when counting began';

CREATE FUNCTION @extschema@.gpusort_stat_reasons(
    OUT kind text,
    OUT reason text,
    OUT count bigint,
    OUT stats_reset timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpusort_stat_reasons'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION @extschema@.gpusort_stat_reasons() IS
'why gpusort left sorts to PostgreSQL, and how often';

CREATE VIEW @extschema@.gpusort_stat_reasons AS
    SELECT * FROM @extschema@.gpusort_stat_reasons();

COMMENT ON VIEW @extschema@.gpusort_stat_reasons IS
'why gpusort left sorts to PostgreSQL, and how often';

COMMENT ON COLUMN @extschema@.gpusort_stat_reasons.kind IS
'fallback (gpusort began, and PostgreSQL completed it) or refusal (gpusort could not take it)';
COMMENT ON COLUMN @extschema@.gpusort_stat_reasons.reason IS
'the reason';
COMMENT ON COLUMN @extschema@.gpusort_stat_reasons.count IS
'how often it was the reason';
COMMENT ON COLUMN @extschema@.gpusort_stat_reasons.stats_reset IS
'when counting began';

CREATE FUNCTION @extschema@.gpusort_stat_times(
    OUT kind text,
    OUT max_rows bigint,
    OUT max_ms bigint,
    OUT sorts bigint,
    OUT total_ms double precision,
    OUT stats_reset timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpusort_stat_times'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION @extschema@.gpusort_stat_times() IS
'how long the sorts that gpusort completed took, by how many rows they had';

CREATE VIEW @extschema@.gpusort_stat_times AS
    SELECT * FROM @extschema@.gpusort_stat_times();

COMMENT ON VIEW @extschema@.gpusort_stat_times IS
'how long the sorts that gpusort completed took, by how many rows they had';

COMMENT ON COLUMN @extschema@.gpusort_stat_times.kind IS
'device sort, process sort, index build, or table sort (CLUSTER, REPACK)';
COMMENT ON COLUMN @extschema@.gpusort_stat_times.max_rows IS
'sorts of at most so many rows, and of more than the next smaller number; NULL: more than all numbers';
COMMENT ON COLUMN @extschema@.gpusort_stat_times.max_ms IS
'sorts that took at most so many milliseconds, and more than the next smaller number; NULL: more than all numbers';
COMMENT ON COLUMN @extschema@.gpusort_stat_times.sorts IS
'how many sorts there were';
COMMENT ON COLUMN @extschema@.gpusort_stat_times.total_ms IS
'milliseconds that they took together';
COMMENT ON COLUMN @extschema@.gpusort_stat_times.stats_reset IS
'when counting began';

COMMENT ON FUNCTION @extschema@.gpusort_stats_reset() IS
'set the counters of gpusort_stats, gpusort_stat_reasons and gpusort_stat_times to zero';

CREATE FUNCTION @extschema@.gpusort_activity(
    OUT pid integer,
    OUT datid oid,
    OUT usesysid oid,
    OUT device integer,
    OUT phase text,
    OUT rows bigint,
    OUT bytes bigint,
    OUT staging_bytes bigint,
    OUT runs integer,
    OUT temp_bytes bigint,
    OUT limited boolean,
    OUT started timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpusort_activity'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION @extschema@.gpusort_activity() IS
'the sorts that hold device memory or staging memory now';

CREATE VIEW @extschema@.gpusort_activity AS
    SELECT a.pid, d.datname, u.rolname AS usename, a.device, a.phase, a.rows, a.bytes,
           a.staging_bytes, a.runs, a.temp_bytes, a.limited, a.started
    FROM @extschema@.gpusort_activity() AS a
    LEFT JOIN pg_catalog.pg_database AS d ON d.oid OPERATOR(pg_catalog.=) a.datid
    LEFT JOIN pg_catalog.pg_roles AS u ON u.oid OPERATOR(pg_catalog.=) a.usesysid;

COMMENT ON VIEW @extschema@.gpusort_activity IS
'the sorts that hold device memory or staging memory now';

COMMENT ON COLUMN @extschema@.gpusort_activity.pid IS
'process id of the session';
COMMENT ON COLUMN @extschema@.gpusort_activity.datname IS
'the session''s database';
COMMENT ON COLUMN @extschema@.gpusort_activity.usename IS
'the session''s user';
COMMENT ON COLUMN @extschema@.gpusort_activity.device IS
'the number of the device that sorts it; NULL: it has no rows yet';
COMMENT ON COLUMN @extschema@.gpusort_activity.phase IS
'what the sort is doing';
COMMENT ON COLUMN @extschema@.gpusort_activity.rows IS
'rows sent to the device so far';
COMMENT ON COLUMN @extschema@.gpusort_activity.bytes IS
'bytes of rows and keys sent to the device so far';
COMMENT ON COLUMN @extschema@.gpusort_activity.staging_bytes IS
'bytes of staging memory that the sort holds';
COMMENT ON COLUMN @extschema@.gpusort_activity.runs IS
'sorted runs written to temporary files so far';
COMMENT ON COLUMN @extschema@.gpusort_activity.temp_bytes IS
'bytes written to temporary files so far';
COMMENT ON COLUMN @extschema@.gpusort_activity.limited IS
'whether gpusort.role_memory has held it up, or moved it to temporary files';
COMMENT ON COLUMN @extschema@.gpusort_activity.started IS
'when the sort was opened on the device';

GRANT SELECT ON @extschema@.gpusort_devices, @extschema@.gpusort_stats, @extschema@.gpusort_stat_reasons,
    @extschema@.gpusort_stat_times, @extschema@.gpusort_activity TO PUBLIC;

CREATE FUNCTION @extschema@.gpusort_collation_check(
    all_indexes boolean DEFAULT false,
    OUT index regclass,
    OUT "table" regclass,
    OUT constraint_name name,
    OUT collations regcollation[],
    OUT recorded text[],
    OUT actual text[],
    OUT size bigint,
    OUT broken boolean,
    OUT detail text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpusort_collation_check'
LANGUAGE C VOLATILE STRICT;

COMMENT ON FUNCTION @extschema@.gpusort_collation_check(boolean) IS
'the indexes of this database whose collations have another version than recorded, or all that have one, and whether they are in order';

CREATE PROCEDURE @extschema@.gpusort_collation_repair(
    concurrently boolean DEFAULT true,
    dry_run boolean DEFAULT false)
AS 'MODULE_PATHNAME', 'gpusort_collation_repair'
LANGUAGE C;

COMMENT ON PROCEDURE @extschema@.gpusort_collation_repair(boolean, boolean) IS
'rebuild the indexes that new versions of collations have broken, and record the versions';

REVOKE ALL ON FUNCTION @extschema@.gpusort_collation_check(boolean) FROM PUBLIC;
REVOKE ALL ON PROCEDURE @extschema@.gpusort_collation_repair(boolean, boolean) FROM PUBLIC;

-- Somebody's overload can make a call of the function ambiguous, but there is only one view of the name
CREATE VIEW @extschema@.gpusort_collation_check AS
    SELECT * FROM @extschema@.gpusort_collation_check(false);

COMMENT ON VIEW @extschema@.gpusort_collation_check IS
'the indexes of this database whose collations have another version than recorded, and whether they are in order';
