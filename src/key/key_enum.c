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
 * all the same, as a volatile function or a row that was locked may have, counts
 * as it does now.  If the labels known before were renumbered meanwhile, there is
 * no number for it, and the sort ends with an error that asks to try again.
 *
 * Tests: regress/keys_types, isolation/index_enum
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_enum.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "key/key_value.h"

typedef struct Label
{
	Oid			oid;			/* must be first: labels are compared by oid_cmp() */
	float4		order;
} Label;

struct GsKeyLabels
{
	Oid			type;
	MemoryContext context;
	Label	   *labels;			/* by OID; NULL: not read yet */
	int			n;
};

/* In CurrentMemoryContext; the labels are read when the first is needed. */
GsKeyLabels *
gs_key_labels_create(Oid type)
{
	GsKeyLabels *labels = palloc0(sizeof(GsKeyLabels));

	labels->type = type;
	labels->context = CurrentMemoryContext;
	return labels;
}

/* The type's labels, by OID; how many there are. */
static int
read_labels(const GsKeyLabels *labels, Snapshot snapshot, Label **labels_read)
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
	scan = systable_beginscan(catalog, EnumTypIdLabelIndexId, true, snapshot, 1, &key);
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

	qsort(found, n, sizeof(Label), oid_cmp);
	*labels_read = found;
	return n;
}

static const Label *
find_label(const Label *labels, int n, Oid oid)
{
	return n == 0 ? NULL : bsearch(&oid, labels, n, sizeof(Label), oid_cmp);
}

/* Go over to the labels as they are now, if those known have kept their numbers. */
static void
add_new_labels(GsKeyLabels *labels)
{
	Label	   *now;
	int			n = read_labels(labels, NULL, &now);

	for (int i = 0; i < labels->n; i++)
	{
		const Label *label = find_label(now, n, labels->labels[i].oid);

		if (label != NULL && label->order != labels->labels[i].order)
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("could not sort due to a concurrent change of type %s",
							format_type_be(labels->type)),
					 errhint("Retry the query.")));
	}
	pfree(labels->labels);
	labels->labels = now;
	labels->n = n;
}

float4
gs_key_label_order(GsKeyLabels *labels, Oid oid)
{
	const Label *label;

	if (unlikely(labels->labels == NULL))
		labels->n = read_labels(labels, ActiveSnapshotSet() ? GetActiveSnapshot() : NULL,
								&labels->labels);

	label = find_label(labels->labels, labels->n, oid);
	if (unlikely(label == NULL))
	{
		add_new_labels(labels);
		label = find_label(labels->labels, labels->n, oid);
		if (label == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
					 errmsg("invalid internal value for enum: %u", oid)));
	}
	return label->order;
}
