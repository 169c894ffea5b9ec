--
-- Large values: rows too large for a chunk, keys too long for the device,
-- values that are compressed or out of line.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/wait_closed.inc
\i sql/results.inc
\set ECHO all
SET gpusort.force = on;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 0;

CREATE FUNCTION run_hash(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE 'SELECT count(*) || '' rows, '' || md5(string_agg(md5(s::text), '''')) FROM (' || query || ') s' INTO result;
	RETURN result;
END
$$;

-- Off, in the process, on the device, and on the device with parallel feed.
CREATE FUNCTION compare_large(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	stock text;
	rows int;
	workers int;
BEGIN
	PERFORM set_config('gpusort.enabled', 'off', true);
	stock := run_hash(query);
	PERFORM set_config('gpusort.enabled', 'on', true);
	FOREACH rows IN ARRAY ARRAY[1000000, 0] LOOP
		FOREACH workers IN ARRAY ARRAY[0, 2] LOOP
			PERFORM set_config('gpusort.min_rows', rows::text, true);
			PERFORM set_config('max_parallel_workers_per_gather', workers::text, true);
			IF run_hash(query) <> stock THEN
				RETURN format('differs with gpusort.min_rows = %s, %s workers', rows, workers);
			END IF;
		END LOOP;
	END LOOP;
	RETURN 'same, ' || split_part(stock, ',', 1);
END
$$;

-- keys that agree on more bytes than the device takes, and rows that are larger than a chunk
CREATE TABLE large_t (id int, p text, q text);
ALTER TABLE large_t ALTER p SET STORAGE EXTERNAL;
INSERT INTO large_t
	SELECT i, repeat('x', 8000 + i % 400) || (i * 7919 % 1000), CASE WHEN i % 100 = 0 THEN repeat('y', 1000) END
	FROM generate_series(1, 1500) AS i;
ANALYZE large_t;
SELECT compare_large('SELECT id, length(p) FROM large_t ORDER BY p COLLATE "C", id');
SELECT compare_large('SELECT id, p FROM large_t ORDER BY p COLLATE "C" DESC, id');
SELECT compare_large('SELECT id FROM large_t ORDER BY q COLLATE "C", p COLLATE "C", id');
SELECT compare_large('SELECT id FROM large_t ORDER BY p::bytea DESC, id');
SELECT compare_large('SELECT id, repeat(q, 200) AS big FROM large_t ORDER BY id % 10, p COLLATE "C", id');
SELECT compare_large('SELECT id, repeat(q, 200) AS big FROM large_t ORDER BY repeat(q, 200) COLLATE "C", id');
SELECT compare_large('SELECT id, repeat(p, 20) AS big FROM large_t WHERE id < 300 ORDER BY id DESC');

-- a scroll cursor over keys that had to be settled, and over large rows
SET gpusort.min_rows = 0;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, length(repeat(q, 200)) FROM large_t ORDER BY p COLLATE "C", id;
FETCH 2 FROM c;
FETCH LAST FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ABSOLUTE 700 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH FIRST FROM c;
COMMIT;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, length(big) FROM (SELECT id, repeat(q, 200) AS big FROM large_t OFFSET 0) s ORDER BY id DESC;
FETCH 2 FROM c;
FETCH ABSOLUTE 101 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH FORWARD 2 FROM c;
COMMIT;

-- one value of many megabytes
SELECT id, length(big) FROM
	(SELECT i AS id, repeat(chr(65 + i), CASE i WHEN 2 THEN 50000000 ELSE 10 END) AS big FROM generate_series(1, 4) AS i OFFSET 0) s
ORDER BY big COLLATE "C" DESC;
SELECT wait_closed();
SELECT count(*) FROM gpusort_activity;
DROP TABLE large_t;
DROP FUNCTION wait_closed;
