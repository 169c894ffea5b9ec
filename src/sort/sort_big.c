/*-------------------------------------------------------------------------
 *
 * sort_big.c
 *	  Rows too large for a chunk (sort_big.h).
 *
 * Tests: regress/large, tap/order_large
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "commands/tablespace.h"
#include "common/hashfn.h"

#include "compat.h"
#include "sort/sort_big.h"

struct GsBigRows
{
	BufFile    *file;
	bool		at_end;			/* the file's position is where to write */
	int			end_fileno;
	off_t		end_offset;
};

uint64
gs_tuple_hash(const MinimalTupleData *tuple)
{
	/*
	 * From the header only the number of columns and the null bitmap: the flags
	 * of a row change when others lock or update it, and with hint bits.
	 */
	uint32		skip = offsetof(MinimalTupleData, t_hoff);

	return hash_bytes_extended((const unsigned char *) tuple + skip, tuple->t_len - skip,
							   HeapTupleHeaderGetNatts(tuple) << 1 |
							   ((tuple->t_infomask & HEAP_HASNULL) != 0));
}

GsBigRows *
gs_big_begin(void)
{
	GsBigRows  *big = palloc0(sizeof(GsBigRows));

	PrepareTempTablespaces();
	big->file = BufFileCreateTemp(false);
	big->at_end = true;
	return big;
}

void
gs_big_write(GsBigRows *big, TupleTableSlot *slot, GsBigStub *stub)
{
	bool		should_free;
	MinimalTuple tuple = ExecFetchSlotMinimalTuple(slot, &should_free);

	if (!big->at_end && BufFileSeek(big->file, big->end_fileno, big->end_offset, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not seek in temporary file")));
	big->at_end = true;

	memset(stub, 0, sizeof(*stub));
	BufFileTell(big->file, &stub->fileno, &stub->offset);
	stub->len = tuple->t_len;
	stub->hash = gs_tuple_hash(tuple);
	BufFileWrite(big->file, tuple, tuple->t_len);
	BufFileTell(big->file, &big->end_fileno, &big->end_offset);
	if (should_free)
		heap_free_minimal_tuple(tuple);
}

MinimalTuple
gs_big_read(GsBigRows *big, const GsBigStub *stub)
{
	MinimalTuple tuple = palloc(stub->len);

	big->at_end = false;
	if (BufFileSeek(big->file, stub->fileno, stub->offset, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not seek in temporary file")));
	gs_compat_read_exact(big->file, tuple, stub->len);
	return tuple;
}

void
gs_big_end(GsBigRows *big)
{
	BufFileClose(big->file);
	pfree(big);
}
