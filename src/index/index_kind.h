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
#include "feed/feeder.h"
#include "index/page_output.h"
#include "key/key.h"
#include "nodes/execnodes.h"
#include "stats.h"
#include "utils/rel.h"

/* Makes index tuples of the rows that a scan of the table finds, and feeds them. */
typedef struct GsIndexFeed GsIndexFeed;
struct GsIndexFeed
{
	/*
	 * Feed the index tuples of one row; nothing if status is not GS_PUT_OK.  values and isnull are those
	 * of the index's columns.  alive: uniqueness matters for it.
	 */
	void		(*put) (GsIndexFeed *feed, ItemPointer tid, Datum *values, bool *isnull, bool alive);
	GsFeeder   *feeder;			/* the scan's */
	GsPut		status;			/* other than GS_PUT_OK, which is 0: feeding has failed */
	double		tuples;			/* that were fed */
};

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
	bool		feeds_tuples;	/* its rows are index tuples, whose TID ends the key */
	int			subphases[3];	/* of the progress view: scan, sort, writing */

	/*
	 * Keys in whose order write() wants the tuples of the index's first ncols key columns.  NULL and the
	 * reason where keys cannot express it.  Allocates in CurrentMemoryContext.
	 */
	GsKeyDesc  *(*key_desc) (Relation index, int ncols, GsRefusal *refusal);

	/* In CurrentMemoryContext; it feeds the keys of key_desc().  What it does not set is 0. */
	GsIndexFeed *(*feed_create) (Relation index, const IndexInfo *info);

	/*
	 * Make the index of a performed sort, in an empty relation.  output: ended if the answer is
	 * GS_FALLBACK_NONE; NULL if the kind has none.  With any other answer, the caller truncates the
	 * relation.
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
 * index_scan.c: the table's scan.  Every tuple to be indexed goes to the device, from this process and
 * parallel workers.
 */
typedef struct GsIndexScanResult
{
	GsPut		status;			/* OK, OVERFLOW or LOST; OK: all is fed */
	double		heap_tuples;
	double		index_tuples;
	double		paged_rows;		/* heap_tuples that were taken from pages, not from the scan */
	int			workers;		/* that were launched */
} GsIndexScanResult;

/*
 * Feed all tuples to client's session; with workers where asked for and to be
 * had.  Sets info->ii_BrokenHotChain as PostgreSQL's builds do.
 */
extern void gs_index_scan(const GsIndexKind *kind, Relation heap, Relation index, IndexInfo *info,
						  GsClient *client, const GsKeyDesc *desc, int workers,
						  GsIndexScanResult *result);

#endif							/* GS_INDEX_KIND_H */
