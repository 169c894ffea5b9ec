--
-- max_parallel_maintenance_workers is the user's while indexes are built: what
-- runs within such a command sees no other value, and none stays behind.
--
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
SET gpusort.force = on;
CREATE SCHEMA index_settings;
SET search_path = index_settings, public;
CREATE TABLE t (a int, b text);
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 1000) AS i;

-- a build that fails while the setting is another one
CREATE FUNCTION fail_with_set(int) RETURNS int LANGUAGE plpgsql IMMUTABLE SET max_parallel_maintenance_workers = 3 AS $$
BEGIN
	RETURN 1 / ($1 - 500);
END
$$;
CREATE FUNCTION fail_after_set(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	PERFORM set_config('max_parallel_maintenance_workers', '3', false);
	RETURN 1 / ($1 - 500);
END
$$;
\set VERBOSITY terse
SET max_parallel_maintenance_workers = 0;
CREATE INDEX ON t (fail_with_set(a));
SHOW max_parallel_maintenance_workers;
SET max_parallel_maintenance_workers = 0;
CREATE INDEX ON t (fail_after_set(a));
SHOW max_parallel_maintenance_workers;
SET max_parallel_maintenance_workers = 0;
CREATE INDEX CONCURRENTLY failed ON t (fail_with_set(a));
SHOW max_parallel_maintenance_workers;
DROP INDEX failed;
SET max_parallel_maintenance_workers = 0;
BEGIN;
SAVEPOINT s;
CREATE INDEX ON t (fail_with_set(a));
ROLLBACK TO s;
SHOW max_parallel_maintenance_workers;
COMMIT;
SHOW max_parallel_maintenance_workers;
SET max_parallel_maintenance_workers = 1;
CREATE INDEX ON t (fail_with_set(a));
CREATE INDEX ON t (fail_after_set(a));
SHOW max_parallel_maintenance_workers;

-- what functions, queries and triggers see
CREATE FUNCTION setting() RETURNS text LANGUAGE sql STABLE AS $$
	SELECT current_setting('max_parallel_maintenance_workers')
$$;
CREATE TABLE seen (who text, workers text);
CREATE FUNCTION setting_of(int) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	RETURN current_setting('max_parallel_maintenance_workers');
END
$$;
CREATE FUNCTION setting_default() RETURNS int LANGUAGE plpgsql VOLATILE AS $$
BEGIN
	INSERT INTO seen VALUES ('default', setting());
	RETURN 1;
END
$$;
CREATE FUNCTION setting_trigger() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO seen VALUES (TG_EVENT || ', ' || TG_TAG, setting());
END
$$;
-- what an index has stored
CREATE FUNCTION stored() RETURNS text LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
	SELECT string_agg(n || ' times ' || v, ', ')
	FROM unnest(ARRAY['0', '1', '2']) AS v, LATERAL (SELECT count(*) AS n FROM t WHERE setting_of(a) = v) AS entries
	WHERE n > 0
$$;
CREATE FUNCTION settings_seen() RETURNS TABLE (who text, workers text) LANGUAGE plpgsql AS $$
DECLARE
	command text;
BEGIN
	FOREACH command IN ARRAY ARRAY[
		'CREATE INDEX t_setting ON t (setting_of(a))',
		'REINDEX INDEX t_setting',
		'REINDEX TABLE t',
		'CLUSTER t USING t_setting',
		'ALTER TABLE t ADD COLUMN c int DEFAULT setting_default()']
	LOOP
		EXECUTE command;
		INSERT INTO seen VALUES (command, stored());
	END LOOP;
	ALTER TABLE t DROP COLUMN c;
	DROP INDEX t_setting;
	REFRESH MATERIALIZED VIEW mv;
	INSERT INTO seen SELECT 'REFRESH MATERIALIZED VIEW mv', count(*) || ' times ' || v FROM mv GROUP BY v;
	RETURN QUERY SELECT s.who, string_agg(DISTINCT s.workers, ', ') FROM seen AS s GROUP BY s.who ORDER BY s.who COLLATE "C";
	DELETE FROM seen;
END
$$;
CREATE MATERIALIZED VIEW mv AS SELECT a, setting() AS v FROM t;
CREATE UNIQUE INDEX ON mv (a);
CREATE EVENT TRIGGER index_settings_start ON ddl_command_start
	WHEN TAG IN ('CREATE INDEX', 'ALTER TABLE', 'REFRESH MATERIALIZED VIEW') EXECUTE FUNCTION setting_trigger();
CREATE EVENT TRIGGER index_settings_end ON ddl_command_end
	WHEN TAG IN ('CREATE INDEX', 'ALTER TABLE', 'REFRESH MATERIALIZED VIEW') EXECUTE FUNCTION setting_trigger();
CREATE EVENT TRIGGER index_settings_rewrite ON table_rewrite EXECUTE FUNCTION setting_trigger();
SET max_parallel_maintenance_workers = 0;
SELECT * FROM settings_seen();
SET max_parallel_maintenance_workers = 1;
SELECT * FROM settings_seen();
ALTER TABLE t SET (parallel_workers = 2);
SET max_parallel_maintenance_workers = 2;
SELECT * FROM settings_seen();

SET max_parallel_maintenance_workers = 0;
CREATE INDEX CONCURRENTLY t_setting ON t (setting_of(a));
SELECT stored();
REINDEX INDEX CONCURRENTLY t_setting;
SELECT stored();
VACUUM (FULL) t;
SELECT stored();
SELECT DISTINCT * FROM seen ORDER BY who;
DROP EVENT TRIGGER index_settings_start;
DROP EVENT TRIGGER index_settings_end;
DROP EVENT TRIGGER index_settings_rewrite;
DROP SCHEMA index_settings CASCADE;
