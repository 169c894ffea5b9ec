/*-------------------------------------------------------------------------
 *
 * tuple_map.c
 *	  Which attributes of a table's tuples make rows and keys (tuple_map.h).
 *
 * Mirrors slot_deform_heap_tuple() and slot_getmissingattrs() (executor/execTuples.c), but fetches only
 * needed attributes, and keeps no state between calls.
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
	int32		offset = 0;			/* -1: not known from here on */
	int			column = -1;

	map->whole = sources == NULL;
	map->tupdesc = rows;
	map->missing = table->constr ? table->constr->missing : NULL;
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
	map->offsets = palloc(map->n_attrs * sizeof(uint16));
	for (int i = 0; i < map->n_attrs; i++)
	{
		GsMapAttr *attr = &map->attrs[i];

		attr->form = gs_form_column(table, i);
		attr->needed = map->whole && bms_is_member(i + 1, key_columns);
		if (offset < 0 || offset > BLCKSZ || attr->form.len < 0)
		{
			offset = -1;
			continue;
		}
		map->offsets[i] = TYPEALIGN(attr->form.align, offset);
		offset = map->offsets[i] + attr->form.len;
		map->n_fixed = i + 1;
		map->fixed_end = offset;
	}

	map->values = map->attr_values;
	map->isnull = map->attr_isnull;
	if (!map->whole)
	{
		map->values = palloc(rows->natts * sizeof(Datum));
		map->isnull = palloc(rows->natts * sizeof(bool));
		map->columns = gs_form_columns(rows);
		HeapTupleHeaderSetNatts(&map->header, rows->natts);
		map->header.t_hoff = sizeof(MinimalTupleData) + MINIMAL_TUPLE_OFFSET;
		map->max_plain = sizeof(MinimalTupleData);
		for (int i = 0; i < rows->natts; i++)
		{
			int			len = map->columns[i].len;

			map->attrs[sources[i] - 1].needed = true;
			map->max_plain += len < 0 ? VARATT_SHORT_MAX : len + MAXIMUM_ALIGNOF;
			if (len < 0)
				map->header.t_infomask |= HEAP_HASVARWIDTH;
		}
	}
	while (map->first < map->n_fixed && !map->attrs[map->first].needed)
		map->first++;
	return map;
}

bool
gs_tuple_map_read(GsTupleMap *map, HeapTupleHeader tuple, uint32 tuple_len)
{
	const char *data = (const char *) tuple + tuple->t_hoff;
	uint32		end = tuple_len - tuple->t_hoff;
	const uint8 *nulls = (tuple->t_infomask & HEAP_HASNULL) ? tuple->t_bits : NULL;
	int			n = Min((int) HeapTupleHeaderGetNatts(tuple), map->n_attrs);
	int			n_fixed = Min(map->n_fixed, n);
	uint32		offset = 0;
	int			i = 0;

	if (unlikely(tuple->t_hoff > tuple_len || !gs_nulls_in_tuple(tuple)))
		return false;
	if (likely(nulls == NULL))
	{
		if (likely(n_fixed > 0) &&
			unlikely(map->offsets[n_fixed - 1] + map->attrs[n_fixed - 1].form.len > end))
			return false;
		for (i = map->first; i < n_fixed; i++)
		{
			const GsMapAttr *attr = &map->attrs[i];

			if (attr->needed)
			{
				map->attr_values[i] = fetch_att(data + map->offsets[i], attr->form.byval, attr->form.len);
				map->attr_isnull[i] = false;
			}
		}
		offset = map->fixed_end;
	}
	for (; i < n; i++)
	{
		const GsMapAttr *attr = &map->attrs[i];
		uint32		size;

		if (unlikely(nulls != NULL) && att_isnull(i, nulls))
		{
			map->attr_values[i] = (Datum) 0;
			map->attr_isnull[i] = true;
			continue;
		}
		if (unlikely(offset >= end))
			return false;
		/* a value of varying width is padded only if it has a long header, and padding is 0 */
		if (attr->form.len == -1 && likely(VARATT_IS_1B(data + offset) && !VARATT_IS_1B_E(data + offset)))
			size = VARSIZE_1B(data + offset);
		else
		{
			if (attr->form.len != -1 || !VARATT_NOT_PAD_BYTE(data + offset))
				offset = TYPEALIGN(attr->form.align, offset);
			if (unlikely(offset > end || (attr->form.len == -1 && end - offset < VARHDRSZ)))
				return false;
			if (attr->form.len > 0)
				size = attr->form.len;
			else
				size = attr->form.len == -1 ? VARSIZE_ANY(data + offset) :
					strnlen(data + offset, end - offset) + 1;
			if (unlikely(attr->form.len == -1 && size < VARHDRSZ))
				return false;
		}
		if (unlikely(size > end - offset))
			return false;
		if (attr->needed)
		{
			map->attr_values[i] = fetch_att(data + offset, attr->form.byval, attr->form.len);
			map->attr_isnull[i] = false;
		}
		offset += size;
	}
	for (i = n; unlikely(i < map->n_attrs); i++)
	{
		map->attr_isnull[i] = map->missing == NULL || !map->missing[i].am_present;
		map->attr_values[i] = map->attr_isnull[i] ? (Datum) 0 : map->missing[i].am_value;
	}

	if (!map->whole)
		for (i = 0; i < map->tupdesc->natts; i++)
		{
			int			source = map->sources[i] - 1;

			map->values[i] = map->attr_values[source];
			map->isnull[i] = map->attr_isnull[source];
		}
	return true;
}
