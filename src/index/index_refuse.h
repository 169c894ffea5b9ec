/*-------------------------------------------------------------------------
 *
 * index_refuse.h
 *	  Which index builds, and copies of a table in an index's order, are left to
 *	  PostgreSQL, and why.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_INDEX_REFUSE_H
#define GS_INDEX_REFUSE_H

#include "index/index_kind.h"
#include "utils/rel.h"

/*
 * The index's keys where gpusort is to build it, else NULL; the reason is then
 * reported (sort_refuse.h) and, where it is not just the build's size, counted.
 */
extern GsKeyDesc *gs_index_accept(const GsIndexKind *kind, Relation heap, Relation index);

/*
 * The same where gpusort is to sort the table's rows by the index.  scan_is_cheaper: they are better read in
 * the index's order.
 */
extern GsKeyDesc *gs_index_accept_copy(Relation heap, Relation index, bool scan_is_cheaper);

#endif							/* GS_INDEX_REFUSE_H */
