/*-------------------------------------------------------------------------
 *
 * index_build.h
 *	  Building a btree index with the device.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_INDEX_BUILD_H
#define GS_INDEX_BUILD_H

#include "access/genam.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

/* In the place of btbuild(), which it calls where gpusort cannot build. */
extern IndexBuildResult *gs_index_build(Relation heap, Relation index, struct IndexInfo *info);

#endif							/* GS_INDEX_BUILD_H */
