/*-------------------------------------------------------------------------
 *
 * index_kind.c
 *	  The kinds of indexes that gpusort builds (index_kind.h).
 *
 * Tests: regress/index_builds, regress/index_gin
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "index/index_kind.h"

const GsIndexKind *
gs_index_kind(Oid access_method)
{
	static const GsIndexKind *const kinds[] = {&gs_btree_kind, &gs_gin_kind};

	for (int i = 0; i < lengthof(kinds); i++)
		if (kinds[i]->access_method == access_method)
			return kinds[i];
	return NULL;
}
