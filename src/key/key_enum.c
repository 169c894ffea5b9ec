/*-------------------------------------------------------------------------
 *
 * key_enum.c
 *	  The order of an enum's labels.
 *
 * enum_cmp() compares label OIDs where both are even, else pg_enum's
 * enumsortorder, and an even OID's place in that order is its place among the
 * even OIDs.  So enumsortorder is the key for all of them.
 *
 * ALTER TYPE ADD VALUE may renumber the labels while a sort runs, which keeps
 * their order but would mix two numberings in one sort.  Therefore they are
 * read under the query's own snapshot, which its parallel workers share, and
 * where rows are not the snapshot's, as in index builds, under one that is
 * newer than they (gs_key_has_labels).  A label that is newer than the snapshot
 * all the same, as a volatile function may return, is looked up as it is now.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_enum.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "key/key_value.h"

typedef struct Label
{
	Oid			oid;
	float4		order;
} Label;

struct GsKeyLabels
{
	Oid			type;
	MemoryContext context;
	Label	   *labels;			/* by OID; NULL: not read yet */
	int			n;
};

static void read_labels(GsKeyLabels *labels);
static float4 current_order(Oid oid);
static int	compare_labels(const void *a, const void *b);

/* In CurrentMemoryContext; the labels are read when the first is needed. */
GsKeyLabels *
gs_key_labels_create(Oid type)
{
	GsKeyLabels *labels = palloc0(sizeof(GsKeyLabels));

	labels->type = type;
	labels->context = CurrentMemoryContext;
	return labels;
}

float4
gs_key_label_order(GsKeyLabels *labels, Oid label)
{
	int			low = 0;
	int			high;

	if (unlikely(labels->labels == NULL))
		read_labels(labels);

	high = labels->n;
	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (labels->labels[middle].oid < label)
			low = middle + 1;
		else
			high = middle;
	}
	if (likely(low < labels->n && labels->labels[low].oid == label))
		return labels->labels[low].order;
	return current_order(label);
}

static void
read_labels(GsKeyLabels *labels)
{
	Relation	catalog = table_open(EnumRelationId, AccessShareLock);
	int			n_max = 64;
	Label	   *found = MemoryContextAlloc(labels->context, n_max * sizeof(Label));
	int			n = 0;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_enum_enumtypid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(labels->type));
	scan = systable_beginscan(catalog, EnumTypIdLabelIndexId, true,
							  ActiveSnapshotSet() ? GetActiveSnapshot() : NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_enum form = (Form_pg_enum) GETSTRUCT(tuple);

		if (n == n_max)
		{
			n_max *= 2;
			found = repalloc(found, n_max * sizeof(Label));
		}
		found[n].oid = form->oid;
		found[n].order = form->enumsortorder;
		n++;
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);

	qsort(found, n, sizeof(Label), compare_labels);
	labels->n = n;
	labels->labels = found;
}

static float4
current_order(Oid oid)
{
	HeapTuple	tuple = SearchSysCache1(ENUMOID, ObjectIdGetDatum(oid));
	float4		order;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid internal value for enum: %u", oid)));
	order = ((Form_pg_enum) GETSTRUCT(tuple))->enumsortorder;
	ReleaseSysCache(tuple);
	return order;
}

static int
compare_labels(const void *a, const void *b)
{
	Oid			x = ((const Label *) a)->oid;
	Oid			y = ((const Label *) b)->oid;

	return (x > y) - (x < y);
}
