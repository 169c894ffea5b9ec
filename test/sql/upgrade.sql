--
-- What the extension consists of, and that an upgrade makes the same objects.
--
SET client_min_messages = warning;

CREATE VIEW upgrade_members AS
	SELECT pg_describe_object(d.classid, d.objid, 0) AS object,
		concat_ws(E'\n',
			obj_description(d.objid, d.classid::regclass::name),
			pg_get_userbyid(coalesce(p.proowner, c.relowner)),
			coalesce(p.proacl, c.relacl),
			(SELECT i.initprivs FROM pg_init_privs i
				WHERE i.objoid = d.objid AND i.classoid = d.classid AND i.objsubid = 0),
			-- rows and cost are in the definition
			pg_get_functiondef(p.oid), p.prosrc, p.probin,
			pg_get_viewdef(c.oid), c.reloptions,
			(SELECT string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod),
					a.attacl, col_description(c.oid, a.attnum)), E'\n' ORDER BY a.attnum)
				FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)) AS definition
	FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
	LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
	LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
	WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'gpusort';

DROP EXTENSION gpusort;
CREATE EXTENSION gpusort;
CREATE TABLE upgrade_new AS SELECT * FROM upgrade_members;
-- (from 19 on the row types of views are members as well)
SELECT object FROM upgrade_new WHERE object NOT LIKE 'type %' ORDER BY object COLLATE "C";
-- there is a way from each version to the current one
SELECT source, path FROM pg_extension_update_paths('gpusort')
WHERE target = (SELECT default_version FROM pg_available_extensions WHERE name = 'gpusort')
ORDER BY source;

DROP EXTENSION gpusort;
CREATE EXTENSION gpusort VERSION '0.1.0';
ALTER EXTENSION gpusort UPDATE;
SELECT extversion FROM pg_extension WHERE extname = 'gpusort';
-- what differs from the objects of a new installation
(TABLE upgrade_new EXCEPT TABLE upgrade_members) UNION ALL (TABLE upgrade_members EXCEPT TABLE upgrade_new);
-- and it works
SELECT state FROM gpusort_devices;
SELECT gpu_sort_array(ARRAY[3, 1, 2]);

-- in a schema of its own, which the search path lacks; the views are bound to the functions there
DROP EXTENSION gpusort;
CREATE SCHEMA upgrade_schema;
CREATE EXTENSION gpusort VERSION '0.1.0' SCHEMA upgrade_schema;
ALTER EXTENSION gpusort UPDATE;
SELECT object FROM upgrade_members WHERE object !~ ' upgrade_schema\.';
SELECT state FROM upgrade_schema.gpusort_devices;
ALTER EXTENSION gpusort SET SCHEMA public;
DROP EXTENSION gpusort;
CREATE EXTENSION gpusort SCHEMA upgrade_schema;
SELECT pg_get_viewdef('upgrade_schema.gpusort_stats'::regclass) ~ 'FROM upgrade_schema.gpusort_stats\(\)' AS bound;
DROP SCHEMA upgrade_schema CASCADE;
CREATE EXTENSION gpusort;

-- every column of the views has a comment
SELECT attrelid::regclass, attname FROM pg_attribute
WHERE attrelid IN ('gpusort_devices'::regclass, 'gpusort_stats'::regclass, 'gpusort_stat_reasons'::regclass,
	'gpusort_stat_times'::regclass, 'gpusort_activity'::regclass)
	AND attnum > 0 AND col_description(attrelid, attnum) IS NULL;

DROP VIEW upgrade_members;
DROP TABLE upgrade_new;
