/*-------------------------------------------------------------------------
 *
 * collation.h
 *	  Indexes after a new glibc or ICU has changed a collation's order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_COLLATION_H
#define GS_COLLATION_H

#include "postgres.h"

/*
 * Check whether the keys of an index are in the present order of their operators and
 * collations.  The index's functions run as the owner of its table.  *wrong is set to the first wrong
 * place, in the current memory context, or NULL.  False: the index was dropped, or is not
 * ready.  Requires an active snapshot.
 */
extern bool gs_index_check(Oid index, char **wrong);

/*
 * Run a query by SPI, which must be connected, with a safe search path.  The text may begin with
 * GS_COLLATION_VERSIONS.  $1 is all: collations count even if their recorded version is the actual one.  $2
 * is the array oids; 0: NULL.
 */
extern void gs_collation_query(const char *query, bool all, Datum oids);

/*
 * WITH: differing (oid, recorded, actual, owner), the collations of this database.  Those of "C",
 * "POSIX" and PostgreSQL's own provider have no version that could change.
 *
 * computed (class, object, subobject, coll), the objects whose content was computed under one of these
 * collations.  Key columns do not count.  The objects are conditions and expressions of indexes (class
 * pg_index), CHECK constraints, stored generated columns, and partitioned tables.  A function heeds a
 * deterministic collation if it serves an ordering operator, compares, changes case, takes a regular
 * expression, or is not built in.  MINMAXEXPR and ROWCOMPAREEXPR have no function, and always compare.
 */
#define GS_COLLATION_VERSIONS \
	"WITH RECURSIVE version AS (" \
	"	SELECT oid, collversion AS recorded, pg_collation_actual_version(oid) AS actual," \
	"		collisdeterministic, collowner AS owner" \
	"	FROM pg_collation WHERE collprovider IN ('c', 'i')" \
	"		AND collencoding IN (-1, pg_char_to_encoding(getdatabaseencoding()))" \
	"	UNION ALL" \
	"	SELECT 100, datcollversion, pg_database_collation_actual_version(oid), true, datdba" \
	"	FROM pg_database WHERE datname = current_database() AND datlocprovider IN ('c', 'i'))," \
	"differing AS (" \
	"	SELECT * FROM version" \
	"	WHERE CASE WHEN $1 THEN actual IS NOT NULL ELSE recorded IS DISTINCT FROM actual END)," \
	"expression (class, object, subobject, tree) AS (" \
	"	SELECT 'pg_index'::regclass, i.indexrelid, 0, concat(i.indpred, i.indexprs)" \
	"	FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid" \
	"	WHERE c.relkind = 'i' AND c.relpersistence <> 't' AND i.indislive" \
	"	UNION ALL" \
	"	SELECT 'pg_constraint'::regclass, oid, 0, conbin::text FROM pg_constraint" \
	"	WHERE contype = 'c' AND coninhcount = 0" \
	"	UNION ALL" \
	"	SELECT 'pg_class'::regclass, a.attrelid, a.attnum, d.adbin::text" \
	"	FROM pg_attrdef AS d JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum" \
	"	WHERE a.attgenerated = 's' AND a.attinhcount = 0" \
	"	UNION ALL" \
	"	SELECT 'pg_class'::regclass, partrelid, 0, partexprs::text FROM pg_partitioned_table)," \
	"computed (class, object, subobject, coll) AS (" \
	"	SELECT e.class, e.object, e.subobject, d.oid" \
	"	FROM expression AS e," \
	"		regexp_matches(e.tree, '[{][A-Z]+ ([^{}]*):inputcollids? [(]?o? ?([0-9 ]+)', 'g') AS node," \
	"		CAST(substring(node[1] FROM 'funcid ([0-9]+)') AS oid) AS func, differing AS d" \
	"	WHERE d.oid::text = ANY (string_to_array(node[2], ' '))" \
	"		AND (NOT d.collisdeterministic OR func IS NULL OR func >= 16384" \
	"			OR EXISTS (SELECT FROM pg_amop AS a JOIN pg_operator AS o ON o.oid = a.amopopr" \
	"				WHERE a.amopmethod = 403 AND a.amopstrategy <> 3 AND o.oprcode = func)" \
	"			OR EXISTS (SELECT FROM pg_proc AS p WHERE p.oid = func" \
	"				AND p.prosrc ~ '(cmp|larger|smaller|iclike|icnlike)$|regex" \
	"|^(lower|upper|initcap|casefold|width_bucket_array|array_sort.*)$'))" \
	"	UNION" \
	"	SELECT 'pg_class'::regclass, p.partrelid, 0, d.oid" \
	"	FROM pg_partitioned_table AS p, unnest(p.partcollation) AS k (oid) JOIN differing AS d USING (oid)" \
	"	WHERE p.partstrat = 'r' OR NOT d.collisdeterministic)"

/* Lists the indexes that depend on these collations, largest first.  Columns: the enum below. */
extern const char gs_collation_indexes[];

enum
{
	GS_COLUMN_INDEX = 1,
	GS_COLUMN_TABLE,
	GS_COLUMN_CONSTRAINT,
	GS_COLUMN_COLLATIONS,
	GS_COLUMN_RECORDED,
	GS_COLUMN_ACTUAL,
	GS_COLUMN_SIZE,
	GS_COLUMN_VALID,			/* false: no query uses the index */
	GS_COLUMN_COMPUTED			/* its condition or an expression was computed under the collation */
};

#define GS_COLLATION_COMPUTED \
	"Its condition or expressions depend on a collation of another version, and are not checked."

/* Lists the other objects of "computed".  Columns: the same up to GS_COLUMN_SIZE, without an index, and: */
extern const char gs_collation_objects[];

enum
{
	GS_COLUMN_NAME = GS_COLUMN_SIZE + 1,
	GS_COLUMN_MOVE,				/* of a partitioned table: the command that moves rows to their partitions */
	GS_COLUMN_NAMES				/* the collations, as one text */
};

#endif							/* GS_COLLATION_H */
