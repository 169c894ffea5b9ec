--
-- gpusort.enabled = maintenance: index builds and CLUSTER are gpusort's, and every plan is PostgreSQL's.
--
SET client_min_messages = warning;
\set ECHO none
\i sql/wait_closed.inc
\i sql/compare.inc
\set ECHO all
\set VERBOSITY terse
SET gpusort.force = on;
SET gpusort.min_rows = 0;
CREATE TABLE maintenance_t (id int, k int, p text COLLATE "C", a int[]) WITH (parallel_workers = 2, autovacuum_enabled = off);
INSERT INTO maintenance_t SELECT i, i % 97, md5((i % 700)::text), ARRAY[i % 7, i % 5, i % 3] FROM generate_series(1, 6000) AS i;
ANALYZE maintenance_t;
CREATE FUNCTION plan_text(enabled text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	lines text[];
BEGIN
	PERFORM set_config('gpusort.enabled', enabled, true);
	FOR line IN EXECUTE 'EXPLAIN (VERBOSE) ' || query LOOP
		lines := lines || line;
	END LOOP;
	RETURN array_to_string(lines, E'\n');
END
$$;

-- other words of a boolean setting, and others
SELECT word, set_config('gpusort.enabled', word, false)
FROM unnest('{false,TRUE,no,yes,0,1,off,Maintenance,on}'::text[]) AS word;
SET gpusort.enabled TO DEFAULT;
SHOW gpusort.enabled;
SET gpusort.enabled = half;

-- plans are those of PostgreSQL alone, with their costs
SELECT query, plan_text('on', query) ~ 'Gpu' AS on, plan_text('maintenance', query) ~ 'Gpu' AS maintenance,
	plan_text('maintenance', query) = plan_text('off', query) AS same
FROM (VALUES
	('SELECT id FROM maintenance_t ORDER BY p, id'),
	('SELECT id FROM maintenance_t ORDER BY p, id LIMIT 3'),
	('SELECT p, count(*) FROM maintenance_t GROUP BY p ORDER BY p'),
	('SELECT DISTINCT p, k FROM maintenance_t'),
	('SELECT count(DISTINCT p) FROM maintenance_t'),
	('SELECT id, rank() OVER (PARTITION BY k ORDER BY p) FROM maintenance_t'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM maintenance_t'),
	('SELECT id FROM maintenance_t UNION SELECT k FROM maintenance_t'),
	('SELECT string_agg(p, '''' ORDER BY p) FROM maintenance_t GROUP BY k'),
	('SELECT s.id FROM (SELECT * FROM maintenance_t ORDER BY k OFFSET 1) AS s JOIN maintenance_t AS t USING (p)'),
	('SELECT gpu_sort_array(a) FROM maintenance_t'),
	('INSERT INTO maintenance_t SELECT * FROM maintenance_t ORDER BY p')) AS v (query);

-- queries within commands are PostgreSQL's, too; index builds and CLUSTER are gpusort's
SET gpusort.enabled = maintenance;
SET gpusort.log_refusals = on;
SET client_min_messages = notice;
CREATE FUNCTION did(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	before gpusort_stats;
	since gpusort_stats;
	tables bigint := (SELECT coalesce(sum(sorts), 0) FROM gpusort_stat_times WHERE kind = 'table sort');
BEGIN
	SELECT * INTO before FROM gpusort_stats;
	EXECUTE command;
	SELECT * INTO since FROM gpusort_stats;
	RETURN format('%s sorts, %s of them builds, %s of tables, %s arrays on the device, %s refusals',
				  since.sorts - before.sorts, since.index_builds - before.index_builds,
				  (SELECT coalesce(sum(sorts), 0) FROM gpusort_stat_times WHERE kind = 'table sort') - tables,
				  since.device_arrays - before.device_arrays, since.refusals - before.refusals);
END
$$;
SELECT command, did(command) FROM unnest(ARRAY[
	'CREATE TABLE maintenance_u AS SELECT id, gpu_sort_array(a) AS a, rank() OVER (ORDER BY p) FROM maintenance_t ORDER BY p',
	'CREATE MATERIALIZED VIEW maintenance_m AS SELECT DISTINCT id, length(p) AS p FROM maintenance_t ORDER BY p, id',
	'CREATE UNIQUE INDEX maintenance_m_id ON maintenance_m (id)',
	'REFRESH MATERIALIZED VIEW maintenance_m',
	'CREATE INDEX maintenance_i ON maintenance_t (p)',
	'ALTER TABLE maintenance_t ADD PRIMARY KEY (id)',
	'REINDEX INDEX maintenance_i',
	'REINDEX TABLE maintenance_t',
	'CLUSTER maintenance_t USING maintenance_i',
	'ANALYZE maintenance_t',
	'SET LOCAL gpusort.index_build = off; CREATE INDEX ON maintenance_t (k)',
	'SET LOCAL gpusort.index_build = on; CREATE INDEX ON maintenance_t USING gin (to_tsvector(''simple'', p))',
	'SET LOCAL gpusort.enabled = off; CREATE INDEX ON maintenance_t (k)',
	'SET LOCAL gpusort.enabled = maintenance; SET LOCAL max_parallel_maintenance_workers = 0; CREATE INDEX ON maintenance_t (k)'
	]) WITH ORDINALITY AS v (command, n) ORDER BY n;
SELECT index_builds AS before FROM gpusort_stats \gset
CREATE INDEX CONCURRENTLY maintenance_c ON maintenance_t (p, id);
REINDEX INDEX CONCURRENTLY maintenance_c;
VACUUM FULL maintenance_m;
SELECT index_builds - :before AS builds FROM gpusort_stats;
-- refused keys of an index are told of, those of a query are not
CREATE INDEX ON maintenance_t ((p::tsvector));
SELECT count(*) FROM (SELECT id FROM maintenance_t ORDER BY p::tsvector OFFSET 1) AS s;
SET client_min_messages = warning;
RESET gpusort.log_refusals;
SELECT a FROM maintenance_u WHERE id = 4;
SET gpusort.index_build = off;
SELECT count(*) AS wrong FROM (SELECT p, lag(p) OVER (ORDER BY ctid) AS before FROM maintenance_t) AS s WHERE p < before;
RESET gpusort.index_build;

-- kept plans follow the setting; an open cursor does not
SET gpusort.enabled = on;
SET plan_cache_mode = force_generic_plan;
SET max_parallel_workers_per_gather = 0;
PREPARE kept AS SELECT id FROM maintenance_t ORDER BY p, id;
SELECT plan_lines('EXECUTE kept', 'Gpu') AS nodes;
SET gpusort.enabled = maintenance;
SELECT plan_lines('EXECUTE kept', 'Gpu') AS nodes;
SET gpusort.enabled = on;
SELECT plan_lines('EXECUTE kept', 'Gpu') AS nodes;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM maintenance_t ORDER BY p, id;
FETCH 1 FROM c;
SET LOCAL gpusort.enabled = maintenance;
FETCH 1 FROM c;
SELECT plan_lines('EXECUTE kept', 'Gpu') AS nodes;
COMMIT;
SELECT plan_lines('EXECUTE kept', 'Gpu') AS nodes;
DEALLOCATE kept;
RESET plan_cache_mode;

-- workers take the setting over
SET gpusort.enabled = maintenance;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE FUNCTION maintenance_enabled(int) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$ SELECT current_setting('gpusort.enabled') $$;
SELECT plan_nodes('SELECT DISTINCT maintenance_enabled(id) FROM maintenance_t') ~ 'Gather' AS parallel;
SELECT DISTINCT maintenance_enabled(id) FROM maintenance_t;
DROP MATERIALIZED VIEW maintenance_m;
DROP TABLE maintenance_t, maintenance_u;
DROP FUNCTION plan_text, did, maintenance_enabled, wait_closed, plan_lines, plan_nodes, query_rows, stock_rows, rows_differ;
