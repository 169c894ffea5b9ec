--
-- What the extension consists of, and its upgrade.  CREATE EXTENSION executes the upgrade scripts, too.
--
SET client_min_messages = warning;

CREATE VIEW upgrade_members AS
	SELECT pg_describe_object(d.classid, d.objid, 0) AS object
	FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
	WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'gpusort';

DROP EXTENSION gpusort;
CREATE EXTENSION gpusort;
-- (from 19 on the row types of views are members as well)
SELECT object FROM upgrade_members WHERE object NOT LIKE 'type %' ORDER BY object COLLATE "C";
-- there is a way from each version to the current one
SELECT source, path FROM pg_extension_update_paths('gpusort')
WHERE target = (SELECT default_version FROM pg_available_extensions WHERE name = 'gpusort')
ORDER BY source;

DROP EXTENSION gpusort;
CREATE EXTENSION gpusort VERSION '0.1.0';
ALTER EXTENSION gpusort UPDATE;
SELECT extversion FROM pg_extension WHERE extname = 'gpusort';
-- and it works
SELECT state FROM gpusort_devices;
SELECT gpu_sort_array(ARRAY[3, 1, 2]);

-- every column of the views has a comment
SELECT attrelid::regclass, attname FROM pg_attribute
WHERE attrelid IN ('gpusort_devices'::regclass, 'gpusort_stats'::regclass, 'gpusort_stat_reasons'::regclass,
	'gpusort_stat_times'::regclass, 'gpusort_activity'::regclass)
	AND attnum > 0 AND col_description(attrelid, attnum) IS NULL;

DROP VIEW upgrade_members;
