--
-- What EXPLAIN says, in all formats, without the numbers.
--
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
CREATE FUNCTION explain_masked(options text, query text) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	IF options ~ 'ANALYZE' THEN
		options := 'BUFFERS OFF, ' || options;
	END IF;
	FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
		-- PostgreSQL 18 has fractions of rows, and tells of disabled nodes
		line := regexp_replace(line, '(rows=|Rows"?[:>] ?)(\d+)\.00', '\1\2', 'g');
		line := regexp_replace(line, ',?\n[ "<]*Disabled[">:][^\n,]*', '', 'g');
		CONTINUE WHEN line ~ '^ *Disabled: ';
		line := regexp_replace(line, '\d+\.\d+', 'N.N', 'g');
		line := regexp_replace(line, '((Key[ -]Bytes|Row[ -]Bytes|Table[ -]Pages)"?[:>]\s*)\d+', '\1N', 'g');
		line := regexp_replace(line, '(Memory|Disk): \d+kB', '\1: NkB');
		line := regexp_replace(line, 'Device: (cuda|host)$', 'Device: D');
		line := regexp_replace(line, '(Device": "|Device: "|<Device>)(cuda|host)', '\1D');
		line := regexp_replace(line, '(Engine(": "|: "|>|: ))[a-z0-9, -]+', '\1E');
		CONTINUE WHEN line ~ '(Planning Time|Execution Time|Planning-Time|Execution-Time)';
		RETURN NEXT line;
	END LOOP;
END
$$;

CREATE TABLE explain_t AS
	SELECT i AS id, 'p' || (i * 7919 % 5000) AS p FROM generate_series(1, 5000) AS i;
ANALYZE explain_t;
SET gpusort.force = on;
SET gpusort.min_rows = 1000;
SET max_parallel_workers_per_gather = 0;

-- the sort key, as Sort prints it
EXPLAIN (COSTS OFF) SELECT * FROM explain_t ORDER BY id;
EXPLAIN (COSTS OFF) SELECT * FROM explain_t ORDER BY id DESC NULLS LAST, p COLLATE "C" NULLS FIRST;
EXPLAIN (COSTS OFF, VERBOSE) SELECT p FROM explain_t ORDER BY id + 1, p COLLATE "POSIX" DESC;
EXPLAIN (COSTS OFF) SELECT t.p FROM explain_t t JOIN explain_t u USING (id) ORDER BY t.p COLLATE "C", u.id;
EXPLAIN (COSTS OFF) SELECT p, count(*) FROM explain_t GROUP BY p ORDER BY count(*) DESC, p COLLATE "C";
EXPLAIN (COSTS OFF) SELECT id FROM explain_t ORDER BY p USING ~>~;
SET gpusort.enabled = off;
EXPLAIN (COSTS OFF) SELECT * FROM explain_t ORDER BY id DESC NULLS LAST, p COLLATE "C" NULLS FIRST;
EXPLAIN (COSTS OFF, VERBOSE) SELECT p FROM explain_t ORDER BY id + 1, p COLLATE "POSIX" DESC;
EXPLAIN (COSTS OFF) SELECT t.p FROM explain_t t JOIN explain_t u USING (id) ORDER BY t.p COLLATE "C", u.id;
EXPLAIN (COSTS OFF) SELECT p, count(*) FROM explain_t GROUP BY p ORDER BY count(*) DESC, p COLLATE "C";
EXPLAIN (COSTS OFF) SELECT id FROM explain_t ORDER BY p USING ~>~;
SET gpusort.enabled = on;

-- on the device
SELECT explain_masked('ANALYZE, COSTS OFF, SUMMARY OFF',
	'SELECT * FROM explain_t ORDER BY p COLLATE "C"');
SELECT explain_masked('ANALYZE, COSTS OFF, SUMMARY OFF, TIMING OFF',
	'SELECT * FROM explain_t ORDER BY p COLLATE "C"');
SELECT explain_masked('ANALYZE, COSTS OFF, SUMMARY OFF, FORMAT JSON',
	'SELECT * FROM explain_t ORDER BY p COLLATE "C"');
SELECT explain_masked('ANALYZE, COSTS OFF, SUMMARY OFF, FORMAT YAML',
	'SELECT * FROM explain_t ORDER BY p COLLATE "C"');
SELECT explain_masked('ANALYZE, COSTS OFF, SUMMARY OFF, FORMAT XML',
	'SELECT * FROM explain_t ORDER BY p COLLATE "C"');
-- with all details: by VERBOSE, and from PostgreSQL 18 on by an option of gpusort
SELECT CASE WHEN current_setting('server_version_num')::int >= 180000 THEN 'GPUSORT' ELSE 'VERBOSE' END AS all_details \gset
SELECT line FROM unnest(ARRAY['VERBOSE', :'all_details', :'all_details' || ' off']) AS option,
	explain_masked(format('ANALYZE, COSTS OFF, SUMMARY OFF, TIMING OFF, %s', option),
		'SELECT * FROM explain_t ORDER BY p COLLATE "C"') AS line
WHERE line ~ 'Device|Engine|Bytes|Chunks|Pages';
-- in the process
SELECT explain_masked('ANALYZE, COSTS OFF, SUMMARY OFF',
	'SELECT * FROM explain_t WHERE id < 100 ORDER BY p COLLATE "C"');
SELECT explain_masked('ANALYZE, COSTS OFF, SUMMARY OFF, FORMAT JSON',
	'SELECT * FROM explain_t WHERE id < 100 ORDER BY p COLLATE "C"');
-- never run
SELECT explain_masked('ANALYZE, COSTS OFF, SUMMARY OFF',
	'SELECT * FROM (SELECT * FROM explain_t ORDER BY p COLLATE "C") s LIMIT 0');

-- with parallel feed
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET gpusort.cost_factor = 0;
EXPLAIN (COSTS OFF) SELECT * FROM explain_t ORDER BY p COLLATE "C";
SELECT line FROM explain_masked('ANALYZE, COSTS OFF, SUMMARY OFF, TIMING OFF',
	'SELECT * FROM explain_t ORDER BY p COLLATE "C"') AS line
WHERE line !~ 'Launched|Seq Scan|Chunks|GpuSortFeed';
-- of several executions the last one's rows
SELECT line FROM explain_masked('ANALYZE, COSTS OFF, SUMMARY OFF, TIMING OFF',
	'SELECT * FROM generate_series(0, 2) AS n, LATERAL (SELECT id FROM (SELECT id FROM explain_t ORDER BY p COLLATE "C" OFFSET 0) t WHERE id % 3 = n OFFSET 0) s') AS line
WHERE line ~ 'Rows Sorted|Rows Fed';

-- costs decide: a small sort and a small limit stay PostgreSQL's
RESET gpusort.cost_factor;
RESET gpusort.min_rows;
SET gpusort.force = off;
SET max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS OFF) SELECT * FROM explain_t ORDER BY p COLLATE "C";
SET gpusort.min_rows = 1000;
SET gpusort.cost_factor = 20;
EXPLAIN (COSTS OFF) SELECT * FROM explain_t ORDER BY p COLLATE "C" LIMIT 10;
RESET gpusort.cost_factor;
CREATE TABLE explain_u AS SELECT i AS id, md5(i::text) AS p FROM generate_series(1, 50000) AS i;
ANALYZE explain_u;
EXPLAIN (COSTS OFF) SELECT * FROM explain_u ORDER BY p COLLATE "C";
SET gpusort.cost_factor = 20;
EXPLAIN (COSTS OFF) SELECT * FROM explain_u ORDER BY p COLLATE "C" LIMIT 10;
RESET gpusort.cost_factor;
EXPLAIN (COSTS OFF) SELECT * FROM explain_u ORDER BY p COLLATE "C" LIMIT 40000;
SET enable_sort = off;
SELECT explain_masked('COSTS OFF', 'SELECT * FROM explain_u ORDER BY p COLLATE "C"');
RESET enable_sort;
CREATE INDEX ON explain_u (id);
EXPLAIN (COSTS OFF) SELECT * FROM explain_u ORDER BY id;
DROP TABLE explain_t, explain_u;
DROP FUNCTION explain_masked;
