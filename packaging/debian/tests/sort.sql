-- Sorts, array sorts and index builds on the host device, compared with
-- PostgreSQL's own.

CREATE EXTENSION gpusort;
CREATE EXTENSION amcheck;

DO $$
BEGIN
	FOR i IN 1 .. 300 LOOP
		PERFORM pg_stat_clear_snapshot();
		EXIT WHEN (SELECT state = 'ready' FROM gpusort_devices);
		PERFORM pg_sleep(0.1);
	END LOOP;
	ASSERT (SELECT state = 'ready' AND kind = 'host' FROM gpusort_devices), 'there is no device';
END
$$;

CREATE TABLE rows AS
	SELECT i AS id, md5(i::text) AS p, ARRAY[i % 7, i % 5, i % 3] AS a
	FROM generate_series(1, 100000) AS i;
ANALYZE rows;
SET gpusort.force = on;
SET gpusort.min_rows = 0;

CREATE FUNCTION checksum(query text, by_gpusort boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	sum text;
BEGIN
	PERFORM set_config('gpusort.enabled', by_gpusort::text, true);
	EXECUTE format('SELECT md5(string_agg(q::text, '','')) FROM (%s OFFSET 0) AS q', query) INTO sum;
	RETURN sum;
END
$$;

DO $$
DECLARE
	query text;
	before bigint;
BEGIN
	FOREACH query IN ARRAY ARRAY[
		'SELECT id, p FROM rows ORDER BY p COLLATE "C"',
		'SELECT id, p FROM rows ORDER BY p, id DESC',
		'SELECT id FROM rows ORDER BY a, id'] LOOP
		before := (SELECT device_sorts FROM gpusort_stats);
		ASSERT checksum(query, true) = checksum(query, false), query;
		ASSERT (SELECT device_sorts > before AND fallbacks = 0 FROM gpusort_stats), 'no sort on the device: ' || query;
	END LOOP;
END
$$;

CREATE INDEX rows_p ON rows (p);
SELECT bt_index_check('rows_p', true);
DO $$
BEGIN
	ASSERT (SELECT index_builds = 1 FROM gpusort_stats), 'no index build on the device';
	ASSERT gpu_sort_array(ARRAY[3, 1, 2]) = ARRAY[1, 2, 3], 'gpu_sort_array()';
END
$$;

DROP EXTENSION gpusort;
\echo sorted on the host device
