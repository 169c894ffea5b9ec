/*-------------------------------------------------------------------------
 *
 * array_toast.c
 *	  Reading many out-of-line values of one TOAST table (array_toast.h).
 *
 * For each value PostgreSQL opens the TOAST table, finds and opens its valid index, and begins a scan
 * (heap_fetch_toast_slice()).  For values of a few kB that takes as long as reading them.  Here everything
 * stays open from value to value, like the relations of a plan's scan, and only the scan begins anew.
 *
 * Values are read under the snapshot that PostgreSQL uses, and chunks are checked in the same way.
 *
 * Tests: regress/arrays_plans
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/genam.h"
#include "access/heaptoast.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/toast_internals.h"
#include "catalog/pg_am.h"
#include "executor/tuptable.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"

#include "array/array_toast.h"
#include "compat.h"

struct GsToastReader
{
	MemoryContext context;
	Oid			relid;			/* InvalidOid: none is open */
	Relation	table;
	Relation	index;			/* NULL: the table is not a heap */
	IndexScanDesc scan;
	TupleTableSlot *slot;
	SnapshotData snapshot;		/* of the scan */
};

GsToastReader *
gs_toast_reader_create(void)
{
	GsToastReader *reader = palloc0(sizeof(GsToastReader));

	reader->context = CurrentMemoryContext;
	return reader;
}

void
gs_toast_reader_close(GsToastReader *reader)
{
	if (!OidIsValid(reader->relid))
		return;
	if (reader->index)
	{
		ExecDropSingleTupleTableSlot(reader->slot);
		index_endscan(reader->scan);
		index_close(reader->index, AccessShareLock);
	}
	table_close(reader->table, AccessShareLock);
	reader->relid = InvalidOid;
	reader->index = NULL;
}

static void
open_table(GsToastReader *reader, Oid relid)
{
	MemoryContext old = MemoryContextSwitchTo(reader->context);

	reader->table = table_open(relid, AccessShareLock);
	reader->relid = relid;
	if (reader->table->rd_rel->relam == HEAP_TABLE_AM_OID)
	{
		reader->index = index_open(toast_get_valid_index(relid, AccessShareLock), AccessShareLock);
		reader->scan = gs_compat_index_beginscan(reader->table, reader->index,
												 gs_compat_toast_snapshot(&reader->snapshot), 1);
		reader->slot = table_slot_create(reader->table, NULL);
	}
	MemoryContextSwitchTo(old);
}

/* Returns the number of the chunk in the slot, and the place of its data. */
static int32
get_chunk(GsToastReader *reader, Oid value, char **data, int32 *bytes)
{
	bool		isnull;
	int32		number = DatumGetInt32(slot_getattr(reader->slot, 2, &isnull));
	struct varlena *chunk = (struct varlena *) DatumGetPointer(slot_getattr(reader->slot, 3, &isnull));

	if (!VARATT_IS_EXTENDED(chunk))
	{
		*bytes = VARSIZE(chunk) - VARHDRSZ;
		*data = VARDATA(chunk);
	}
	else if (VARATT_IS_SHORT(chunk) && !VARATT_IS_EXTERNAL(chunk))
	{
		*bytes = VARSIZE_SHORT(chunk) - VARHDRSZ_SHORT;
		*data = VARDATA_SHORT(chunk);
	}
	else
		elog(ERROR, "found toasted toast chunk for toast value %u in %s",
			 value, RelationGetRelationName(reader->table));
	return number;
}

/*
 * Reads the chunks of a value.  dst NULL: counts them, and returns false if some are missing, which
 * otherwise is an error.
 */
static bool
read_chunks(GsToastReader *reader, Oid value, int32 bytes, char *dst)
{
	int32		n_chunks = (bytes - 1) / TOAST_MAX_CHUNK_SIZE + 1;
	int32		next = 0;
	ScanKeyData key;

	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(value));
	reader->scan->xs_snapshot = gs_compat_toast_snapshot(&reader->snapshot);
	index_rescan(reader->scan, &key, 1, NULL, 0);
	while (index_getnext_slot(reader->scan, ForwardScanDirection, reader->slot))
	{
		char	   *data;
		int32		chunk_bytes;
		int32		number = get_chunk(reader, value, &data, &chunk_bytes);
		int32		expected = Min(bytes - next * TOAST_MAX_CHUNK_SIZE, TOAST_MAX_CHUNK_SIZE);

		if (dst == NULL)
		{
			next++;
			continue;
		}
		if (number != next || next >= n_chunks)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg_internal("unexpected chunk number %d (expected %d of %d) for toast value %u in %s",
									 number, next, n_chunks, value,
									 RelationGetRelationName(reader->table))));
		if (chunk_bytes != expected)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg_internal("unexpected chunk size %d (expected %d) in chunk %d of %d for toast value %u in %s",
									 chunk_bytes, expected, number, n_chunks, value,
									 RelationGetRelationName(reader->table))));
		memcpy(dst + number * TOAST_MAX_CHUNK_SIZE, data, chunk_bytes);
		next++;
	}
	if (next != n_chunks && dst)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg_internal("missing chunk number %d for toast value %u in %s",
								 next, value, RelationGetRelationName(reader->table))));
	return next == n_chunks;
}

bool
gs_toast_read(GsToastReader *reader, const struct varatt_external *pointer, struct varlena *dst)
{
	int32		bytes = VARATT_EXTERNAL_GET_EXTSIZE(*pointer);

	if (reader->relid != pointer->va_toastrelid)
	{
		gs_toast_reader_close(reader);
		open_table(reader, pointer->va_toastrelid);
	}
	if (dst)
		SET_VARSIZE(dst, bytes + VARHDRSZ);
	if (reader->index && bytes > 0)
		return read_chunks(reader, pointer->va_valueid, bytes, dst ? VARDATA(dst) : NULL);
	if (dst && bytes > 0)
		table_relation_fetch_toast_slice(reader->table, pointer->va_valueid, bytes, 0, bytes, dst);
	return true;
}
