/* sql/gpusort--0.1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION gpusort" to load this file. \quit

-- The device that sorts, and how much of it is in use.

CREATE FUNCTION gpusort_devices(
    OUT kind text,
    OUT name text,
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

COMMENT ON FUNCTION gpusort_devices() IS
'the device that sorts, and how much of it is in use';

CREATE VIEW gpusort_devices AS
    SELECT * FROM gpusort_devices();

COMMENT ON VIEW gpusort_devices IS
'the device that sorts, and how much of it is in use';

-- What gpusort did since the last reset, and why it did not.

CREATE FUNCTION gpusort_stats(
    OUT sorts bigint,
    OUT device_sorts bigint,
    OUT process_sorts bigint,
    OUT index_builds bigint,
    OUT rows bigint,
    OUT bytes bigint,
    OUT arrays bigint,
    OUT device_arrays bigint,
    OUT fallbacks bigint,
    OUT fallback_reasons jsonb,
    OUT refusals bigint,
    OUT refusal_reasons jsonb,
    OUT stats_reset timestamptz)
RETURNS record
AS 'MODULE_PATHNAME', 'gpusort_stats'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpusort_stats() IS
'what gpusort did since the last reset, and why it did not';

CREATE VIEW gpusort_stats AS
    SELECT * FROM gpusort_stats();

COMMENT ON VIEW gpusort_stats IS
'what gpusort did since the last reset, and why it did not';

CREATE FUNCTION gpusort_stats_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'gpusort_stats_reset'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpusort_stats_reset() IS
'set the counters of gpusort_stats to zero';

REVOKE ALL ON FUNCTION gpusort_stats_reset() FROM PUBLIC;

-- The sorts that hold something of the device or of staging memory now.

CREATE FUNCTION gpusort_activity(
    OUT pid integer,
    OUT datid oid,
    OUT usesysid oid,
    OUT phase text,
    OUT rows bigint,
    OUT bytes bigint,
    OUT staging_bytes bigint,
    OUT started timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpusort_activity'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpusort_activity() IS
'the sorts that are now running on the device';

CREATE VIEW gpusort_activity AS
    SELECT a.pid, d.datname, u.rolname AS usename, a.phase, a.rows, a.bytes,
           a.staging_bytes, a.started
    FROM gpusort_activity() AS a
    LEFT JOIN pg_catalog.pg_database AS d ON d.oid = a.datid
    LEFT JOIN pg_catalog.pg_roles AS u ON u.oid = a.usesysid;

COMMENT ON VIEW gpusort_activity IS
'the sorts that are now running on the device';

-- Sorting the elements of arrays, as PostgreSQL 18's array_sort() does.

CREATE FUNCTION gpu_sort_array("array" anyarray)
RETURNS anyarray
AS 'MODULE_PATHNAME', 'gpusort_sort_array'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50;

CREATE FUNCTION gpu_sort_array("array" anyarray, descending boolean)
RETURNS anyarray
AS 'MODULE_PATHNAME', 'gpusort_sort_array'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50;

CREATE FUNCTION gpu_sort_array("array" anyarray, descending boolean, nulls_first boolean)
RETURNS anyarray
AS 'MODULE_PATHNAME', 'gpusort_sort_array'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50;

COMMENT ON FUNCTION gpu_sort_array(anyarray) IS
'the array with its elements in ascending order, NULLs last';
COMMENT ON FUNCTION gpu_sort_array(anyarray, boolean) IS
'the array with its elements in the order asked for, NULLs first where it descends';
COMMENT ON FUNCTION gpu_sort_array(anyarray, boolean, boolean) IS
'the array with its elements in the order asked for';

GRANT SELECT ON gpusort_devices, gpusort_stats, gpusort_activity TO PUBLIC;
