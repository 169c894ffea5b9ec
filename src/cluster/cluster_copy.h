/*-------------------------------------------------------------------------
 *
 * cluster_copy.h
 *	  Copying a heap in the order of a btree index, sorted by the device.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_CLUSTER_COPY_H
#define GS_CLUSTER_COPY_H

#include "utils/rel.h"

/* A copy, as table_relation_copy_for_cluster() (access/tableam.h) is told and tells of it. */
typedef struct GsClusterCopy
{
	Relation	old_heap;
	Relation	new_heap;		/* new in this transaction, and empty */
	Relation	index;			/* a btree of old_heap */
	TransactionId oldest_xmin;
	TransactionId xid_cutoff;
	MultiXactId multi_cutoff;
	bool		scan_is_cheaper;	/* than a sort: reading the table by the index */
	double		tuples;			/* result: copied */
	double		vacuumed;		/* ... dead, and so not copied */
	double		recently_dead;	/* copied; dead, but some transaction may still see them */
} GsClusterCopy;

/* False: PostgreSQL is to copy the table.  new_heap is empty then, as before. */
extern bool gs_cluster_copy(GsClusterCopy *copy);

#endif							/* GS_CLUSTER_COPY_H */
