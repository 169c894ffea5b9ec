/*-------------------------------------------------------------------------
 *
 * tuple_map.c
 *	  Which attributes of a table's tuples make rows and keys (tuple_map.h).
 *
 * Mirrors slot_deform_heap_tuple() (executor/execTuples.c), with these differences: it
 * fetches only the attributes that are needed, keeps no state between calls, and leaves
 * tuples that are older than a needed column to the caller.
 *
 * Tests: regress/page_feed
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tupmacs.h"

#include "chunk/tuple_map.h"
#include "compat.h"

GsTupleMap *
gs_tuple_map_create(TupleDesc table, TupleDesc rows, AttrNumber *sources,
					const Bitmapset *key_columns)
{
	GsTupleMap *map = palloc0(sizeof(GsTupleMap));
	int32		offset = 0;
	int			column = -1;

	map->whole = sources == NULL;
	map->tupdesc = rows;
	map->sources = sources;
	if (map->whole)
		while ((column = bms_next_member(key_columns, column)) >= 0)
			map->n_attrs = column;
	else
		for (int i = 0; i < rows->natts; i++)
			map->n_attrs = Max(map->n_attrs, sources[i]);

	map->attrs = palloc0(map->n_attrs * sizeof(GsMapAttr));
	map->attr_values = palloc0(map->n_attrs * sizeof(Datum));
	map->attr_isnull = palloc0(map->n_attrs * sizeof(bool));
	for (int i = 0; i < map->n_attrs; i++)
	{
		Form_pg_attribute att = TupleDescAttr(table, i);
		GsMapAttr *attr = &map->attrs[i];

		attr->len = att->attlen;
		attr->byval = att->attbyval;
		attr->align = att->attalign;
		attr->needed = map->whole && bms_is_member(i + 1, key_columns);

		/* a value of varying width is padded only if it has a long header */
		if (offset >= 0 && att->attlen == -1 && offset != att_align_nominal(offset, att->attalign))
			offset = -1;
		else if (offset >= 0)
			offset = att_align_nominal(offset, att->attalign);
		attr->offset = offset;
		offset = offset >= 0 && att->attlen > 0 ? offset + att->attlen : -1;
	}

	map->values = map->attr_values;
	map->isnull = map->attr_isnull;
	if (!map->whole)
	{
		map->values = palloc(rows->natts * sizeof(Datum));
		map->isnull = palloc(rows->natts * sizeof(bool));
		for (int i = 0; i < rows->natts; i++)
			map->attrs[sources[i] - 1].needed = true;
	}
	return map;
}

bool
gs_tuple_map_read(GsTupleMap *map, HeapTupleHeader tuple)
{
	const char *data = (const char *) tuple + tuple->t_hoff;
	bool		has_nulls = (tuple->t_infomask & HEAP_HASNULL) != 0;
	uint32		offset = 0;
	int			i = 0;

	if (unlikely(HeapTupleHeaderGetNatts(tuple) < map->n_attrs))
		return false;

	if (likely(!has_nulls))
	{
		const GsMapAttr *attr = map->attrs;

		for (; i < map->n_attrs && attr->offset >= 0; i++, attr++)
		{
			map->attr_isnull[i] = false;
			if (attr->needed)
				map->attr_values[i] = fetch_att(data + attr->offset, attr->byval, attr->len);
		}
		if (i > 0 && i < map->n_attrs)
			offset = att_addlength_pointer(attr[-1].offset, attr[-1].len, data + attr[-1].offset);
	}
	for (; i < map->n_attrs; i++)
	{
		const GsMapAttr *attr = &map->attrs[i];

		map->attr_isnull[i] = has_nulls && att_isnull(i, tuple->t_bits);
		if (map->attr_isnull[i])
		{
			map->attr_values[i] = (Datum) 0;
			continue;
		}
		offset = att_align_pointer(offset, attr->align, attr->len, data + offset);
		if (attr->needed)
			map->attr_values[i] = fetch_att(data + offset, attr->byval, attr->len);
		offset = att_addlength_pointer(offset, attr->len, data + offset);
	}

	if (!map->whole)
		for (i = 0; i < map->tupdesc->natts; i++)
		{
			map->values[i] = map->attr_values[map->sources[i] - 1];
			map->isnull[i] = map->attr_isnull[map->sources[i] - 1];
		}
	return true;
}
