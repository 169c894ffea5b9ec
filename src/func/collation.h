/*-------------------------------------------------------------------------
 *
 * collation.h
 *	  Indexes after a change of a collation's order, as a new glibc or ICU
 *	  brings it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_COLLATION_H
#define GS_COLLATION_H

#include "postgres.h"

/*
 * Are the keys of an index in the order that their operators and collations
 * have now?  Its functions run as the owner of its table.  *wrong, in the
 * current memory context: the first wrong place; NULL: there is none.  False:
 * there is no such index any more, or not yet.  An active snapshot is needed.
 */
extern bool gs_index_check(Oid index, char **wrong);

/*
 * Queries by SPI, which must be connected, under a search path that is safe:
 * the text may begin with GS_COLLATION_VERSIONS, $1 is whether collations
 * count whose recorded version is the actual one, and $2 is oids, an array; 0: NULL.
 */
extern void gs_collation_query(const char *query, bool all, Datum oids);

/*
 * WITH: differing (oid, recorded, actual, owner), the collations of this database.  Those of "C",
 * "POSIX" and PostgreSQL's own provider have no version that could change.
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
	"	WHERE CASE WHEN $1 THEN actual IS NOT NULL ELSE recorded IS DISTINCT FROM actual END)"

/* The indexes that depend on them, largest first: columns of gpusort_collation_check(), and valid. */
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
	GS_COLUMN_VALID				/* else no query uses it */
};

#endif							/* GS_COLLATION_H */
