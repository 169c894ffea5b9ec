/*-------------------------------------------------------------------------
 *
 * index_kind.h
 *	  The kinds of indexes that gpusort builds: what an access method adds to
 *	  the build that all have in common (index_build.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_INDEX_KIND_H
#define GS_INDEX_KIND_H

#include "access/amapi.h"
#include "access/itup.h"
#include "feed/feeder.h"
#include "index/page_output.h"
#include "key/key.h"
#include "nodes/execnodes.h"
#include "stats.h"
#include "utils/rel.h"

/* The columns that tuples are sorted by: one more than the index's at each end, see gs_index_key_desc(). */
#define GS_INDEX_SORT_COLUMNS	(INDEX_MAX_KEYS + 2)

/* Makes index tuples of the rows that a scan of the table finds, and feeds them. */
typedef struct GsIndexFeed GsIndexFeed;
struct GsIndexFeed
{
	/*
	 * Feed the index tuples of one row; do nothing if status is not GS_PUT_OK.  values and isnull are those
	 * of the index's columns.  alive: uniqueness is checked for the row.
	 */
	void		(*put) (GsIndexFeed *feed, ItemPointer tid, Datum *values, bool *isnull, bool alive);
	GsFeeder   *feeder;			/* the scan's */
	GsPut		status;			/* not GS_PUT_OK, which is 0: feeding has failed */
	double		tuples;			/* number of tuples fed */
	GsPutRow	row;			/* its key is made of the values below */
	Datum		key_values[GS_INDEX_SORT_COLUMNS];
	bool		key_isnull[GS_INDEX_SORT_COLUMNS];
};

/* Feed an index tuple, which gets this TID; its key's values are set. */
static inline void
gs_index_feed_put(GsIndexFeed *feed, IndexTuple tuple, ItemPointer tid)
{
	tuple->t_tid = *tid;
	feed->row.bytes = tuple;
	feed->row.n_bytes = IndexTupleSize(tuple);
	feed->status = gs_feeder_put(feed->feeder, &feed->row);
	feed->tuples += 1;
}

/* The order of one of the index's columns. */
typedef struct GsIndexOrder
{
	Oid			type;
	Oid			sort_operator;
	Oid			collation;
	bool		nulls_first;
} GsIndexOrder;

/* The result of writing an index. */
typedef struct GsIndexWritten
{
	double		tuples;			/* as PostgreSQL's build would count them */
	uint64		settled;		/* tuples that were put in order by comparison */
} GsIndexWritten;

typedef struct GsIndexKind
{
	Oid			access_method;
	ambuild_function build;		/* PostgreSQL's own */
	bool		has_output;		/* its pages are written by a GsPageOutput */
	bool		feeds_tuples;	/* its rows are index tuples whose keys devices can make */
	bool		numbers_columns;	/* if it has several columns, each tuple is of one of them */
	int			subphases[3];	/* numbers of the progress view: scan, sort, writing */

	/* The order of column i, from 0.  False: keys cannot express it. */
	bool		(*column_order) (Relation index, int i, GsIndexOrder *order);

	/* Makes a feed with the keys of gs_index_key_desc(), in CurrentMemoryContext.  Unused fields are 0. */
	GsIndexFeed *(*feed_create) (Relation index, const IndexInfo *info);

	/*
	 * Write a performed sort as an index into an empty relation.  output: NULL if the kind has none.  After
	 * GS_FALLBACK_NONE it has been ended; after any other answer, the caller truncates the relation.
	 */
	GsFallback	(*write) (Relation heap, Relation index, const IndexInfo *info, GsClient *client,
						  const GsKeyDesc *desc, GsPageOutput *output, GsIndexWritten *written);
} GsIndexKind;

extern const GsIndexKind gs_btree_kind;	/* btree_kind.c */
extern const GsIndexKind gs_gin_kind;	/* gin_kind.c */

/* The kind of an access method; NULL: gpusort does not build its indexes. */
static inline const GsIndexKind *
gs_index_kind(Oid access_method)
{
	if (access_method == gs_btree_kind.access_method)
		return &gs_btree_kind;
	return access_method == gs_gin_kind.access_method ? &gs_gin_kind : NULL;
}

/*
 * index_scan.c: the keys by which tuples are sorted for write().  Their columns, numbered from 1: the tuple's
 * column if the kind has numbers_columns and there are several; the index's first ncols key columns; the heap
 * TID.  NULL and the reason: keys cannot express the order.  Allocates in CurrentMemoryContext.
 */
extern GsKeyDesc *gs_index_key_desc(const GsIndexKind *kind, Relation index, int ncols, GsRefusal *refusal);

/*
 * index_scan.c: the table's scan.  Every tuple to be indexed goes to the device, from this process and
 * parallel workers.
 */
typedef struct GsIndexScanResult
{
	GsPut		status;			/* OK, OVERFLOW or LOST; OK: all is fed */
	double		heap_tuples;
	double		index_tuples;
	double		paged_rows;		/* heap_tuples that were taken from pages, not from the scan */
	int			workers;		/* number of workers launched */
} GsIndexScanResult;

/*
 * Feed all tuples to client's session, with up to this many workers.  Sets info->ii_BrokenHotChain as
 * PostgreSQL's builds do.
 */
extern void gs_index_scan(const GsIndexKind *kind, Relation heap, Relation index, IndexInfo *info,
						  GsClient *client, const GsKeyDesc *desc, int workers,
						  GsIndexScanResult *result);

#endif							/* GS_INDEX_KIND_H */
