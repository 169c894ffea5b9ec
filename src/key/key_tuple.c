/*-------------------------------------------------------------------------
 *
 * key_tuple.c
 *	  Which keys devices can make from tuples (device/tuple_key.h).
 *
 * Tests: regress/page_feed, unit/plain/test_device
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/itup.h"

#include "device/tuple_key.h"
#include "key/key.h"
#include "key/key_encode.h"
#include "key/key_libc.h"
#include "key/key_value.h"

StaticAssertDecl(SizeofMinimalTupleHeader == 15 && MINIMAL_TUPLE_OFFSET == 8 &&
				 offsetof(MinimalTupleData, t_infomask2) == 10 &&
				 offsetof(MinimalTupleData, t_infomask) == 12 &&
				 offsetof(MinimalTupleData, t_hoff) == 14 && HEAP_HASNULL == 1 &&
				 HEAP_NATTS_MASK == 0x7ff, "tuple_key.h knows minimal tuples");
StaticAssertDecl(VARTAG_ONDISK == GS_TUPLE_POINTER_TAG && VARHDRSZ_EXTERNAL == 2 &&
				 sizeof(varatt_external) == GS_TUPLE_POINTER_BYTES, "tuple_key.h knows TOAST pointers");
StaticAssertDecl(sizeof(ItemPointerData) == GS_TUPLE_TID_BYTES && offsetof(IndexTupleData, t_tid) == 0 &&
				 offsetof(IndexTupleData, t_info) == 6 && INDEX_NULL_MASK == 0x8000 &&
				 sizeof(IndexTupleData) == 8 &&
				 MAXALIGN(sizeof(IndexTupleData) + sizeof(IndexAttributeBitMapData)) == 16,
				 "tuple_key.h knows index tuples");
StaticAssertDecl(GS_TUPLE_MAX_BYTES + 2 * GS_TUPLE_COLUMNS < GS_KEY_MAX,
				 "keys that devices make are never cut off");

static const GsTextTable *
device_table(const GsKeyColumn *col)
{
	return col->libc != NULL ? gs_libc_device_table(col->libc) : gs_key_collator_device_table(col->collator);
}

/*
 * The kind by which a device encodes a column; -1: it cannot.  may_be_tid: the column may be the TID of
 * index tuples.
 */
static int
tuple_kind(const GsKeyColumn *col, bool may_be_tid)
{
	switch (col->kind)
	{
		case GS_KEY_BOOL:
		case GS_KEY_UINT8:
		case GS_KEY_UINT32:
		case GS_KEY_UINT64:
			return GS_TUPLE_UNSIGNED;
		case GS_KEY_INT16:
		case GS_KEY_INT32:
		case GS_KEY_INT64:
			return GS_TUPLE_SIGNED;
		case GS_KEY_FLOAT4:
		case GS_KEY_FLOAT8:
			return GS_TUPLE_FLOAT;
		case GS_KEY_RAW:
			return GS_TUPLE_BYTES;
		case GS_KEY_TID:
			return may_be_tid ? GS_TUPLE_TID : -1;
		case GS_KEY_TEXT:
			if (col->libc != NULL || col->collator != NULL)
				return device_table(col) != NULL ? GS_TUPLE_COLLATED : -1;
			return col->last && !col->desc ? GS_TUPLE_VARLENA : GS_TUPLE_TEXT;
		case GS_KEY_BYTEA:
			return col->last && !col->desc ? GS_TUPLE_VARLENA : -1;
		default:
			return -1;
	}
}

static bool
describe_keys(const GsKeyDesc *desc, TupleDesc tupdesc, bool index_tuples, GsTupleKeys *keys)
{
	int			n_attrs = index_tuples ? desc->max_attno - 1 : desc->max_attno;

#ifdef WORDS_BIGENDIAN
	return false;
#endif
	if (desc->abbreviated || desc->ended || desc->ncols > GS_TUPLE_COLUMNS ||
		n_attrs > GS_TUPLE_ATTRS)
		return false;
	keys->index_tuples = index_tuples;
	for (int i = 0; i < desc->ncols; i++)
	{
		const GsKeyColumn *col = &desc->cols[i];
		int			kind = tuple_kind(col, index_tuples && i == desc->ncols - 1);

		/* columns of other types that are stored in the same way are accepted, too */
		if (kind < 0)
			return false;
		if (kind != GS_TUPLE_TID &&
			TupleDescAttr(tupdesc, col->attno - 1)->attlen != (col->width > 0 ? (int) col->width : -1))
			return false;
		if (kind == GS_TUPLE_COLLATED)
		{
			const GsTextTable *table = device_table(col);

			/* a sort has one table */
			if (keys->table != NULL && keys->table != table)
				return false;
			keys->table = table;
			if (col->collator != NULL && gs_key_collator_is_deterministic(col->collator))
				keys->columns[i].tail = col->last && !col->desc ? GS_TUPLE_LAST_TAIL : GS_TUPLE_TEXT_TAIL;
		}
		keys->columns[i].attr = kind == GS_TUPLE_TID ? GS_TUPLE_NO_ATTR : col->attno - 1;
		keys->columns[i].kind = kind;
		keys->columns[i].null_byte = gs_key_null_byte(false, col->nulls_first);
		keys->columns[i].complement = col->desc ? 0xff : 0;
	}
	for (int i = 0; i < n_attrs; i++)
	{
		Form_pg_attribute attr = TupleDescAttr(tupdesc, i);

		if (attr->attlen < -1 || attr->attlen > GS_TUPLE_MAX_BYTES)
			return false;
		keys->attrs[i].len = attr->attlen;
		keys->attrs[i].align = att_align_nominal(1, attr->attalign);
	}
	keys->key_width = desc->fixed_width;
	keys->n_attrs = n_attrs;
	keys->n_columns = desc->ncols;
	return true;
}

void
gs_key_tuple_keys(const GsKeyDesc *desc, TupleDesc tupdesc, bool index_tuples, GsTupleKeys *keys)
{
	memset(keys, 0, sizeof(*keys));
	if (!describe_keys(desc, tupdesc, index_tuples, keys))
		memset(keys, 0, sizeof(*keys));
}
