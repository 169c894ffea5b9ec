/*-------------------------------------------------------------------------
 *
 * group_sample.h
 *	  How many groups of equal keys a sort will have, guessed from its first rows.
 *
 * Two estimators are used, and the one that finds more groups is believed:
 *
 *	  Duj1	of Haas and Stokes, which ANALYZE uses (compute_distinct_stats()).  It is right where
 *			all groups are as large as each other, also where all rows are different
 *	  GEE	of Charikar, Chaudhuri, Motwani and Narasayya, "Towards estimation error guarantees for
 *			distinct values" (PODS 2000).  It finds more where few large groups hide many small ones
 *
 * Both suppose that the order of rows does not depend on their keys.  In tables that are only appended to,
 * rows of a group are often neighbours: lines by their order, events by their session.  Then new groups
 * keep coming, and a sample has the same part of the groups as of the rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GROUP_SAMPLE_H
#define GS_GROUP_SAMPLE_H

#include "chunk/chunk.h"

/* Each process looks first after this part of the expected rows, so that a wrong plan costs little. */
#define GS_GROUPS_FIRST_LOOK(rows)	((uint32) Max((rows) / 64, 1000))

typedef struct GsGroupSample GsGroupSample;

/* Allocates in CurrentMemoryContext, 64 kB. */
extern GsGroupSample *gs_groups_begin(void);

/* Adds the rows of a chunk, from number first on. */
extern void gs_groups_add(GsGroupSample *sample, const GsChunkWriter *chunk, uint32 first);

/*
 * Will this number of rows have fewer groups than this?  The rows are supposed to be like the sample.  first:
 * other looks will follow, so doubtful cases can wait.
 */
extern bool gs_groups_are_fewer(GsGroupSample *sample, double groups, double rows, bool first);

#endif							/* GS_GROUP_SAMPLE_H */
