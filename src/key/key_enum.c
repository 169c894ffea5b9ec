/*-------------------------------------------------------------------------
 *
 * key_enum.c
 *	  The order of an enum's labels.
 *
 * enum_cmp() compares label OIDs if both are even, and pg_enum's enumsortorder otherwise.  Even OIDs have
 * the order of enumsortorder.  So enumsortorder is the key of all labels.
 *
 * ALTER TYPE ADD VALUE may renumber the labels while a sort runs.  That keeps their order, but one sort
 * would mix two numberings.  So labels are read under the query's own snapshot, which its parallel workers
 * share.  In index builds, rows may be newer than that snapshot.  There a snapshot is used that is newer
 * than the rows (gs_key_has_labels).  A volatile function or a locked row may still have a label that is
 * newer than the snapshot.  It gets its present number.  If the other labels were renumbered meanwhile, it
 * has no number that fits, and the sort ends with an error that asks to try again.
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

/* In CurrentMemoryContext.  The labels are read when the first one is needed. */
GsKeyLabels *
gs_key_labels_create(Oid type)
{
	GsKeyLabels *labels = palloc0(sizeof(GsKeyLabels));

	labels->type = type;
	labels->context = CurrentMemoryContext;
	return labels;
}

/* Reads the type's labels, sorted by OID.  Returns their number. */
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

/* Reads the labels as they are now.  Raises an error if a known label has another number. */
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
