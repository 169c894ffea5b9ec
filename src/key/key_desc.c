/*-------------------------------------------------------------------------
 *
 * key_desc.c
 *	  From sort operators and collations to a description of keys.
 *
 * A sort operator is accepted only if it is the < or > of a btree operator class that has a row in
 * key_types.c.  PostgreSQL's sort also calls get_ordering_op_properties() to find the comparison function
 * of an operator.  So both mean the same class, even if somebody has put the operator into a class of his
 * own.  Then the family differs from the table's, and the sort is refused.  Elements of arrays are
 * described like columns.  Fields of composite types are columns.
 *
 * Tests: regress/keys, regress/keys_types, regress/keys_records
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_range.h"
#include "parser/parse_coerce.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "compat.h"
#include "device/device.h"
#include "guc.h"
#include "key/key_libc.h"
#include "key/key_types.h"
#include "key/key_value.h"

static GsKeyColumn *
add_column(GsKeyDesc *desc)
{
	Size		bytes = (desc->ncols + 1) * sizeof(GsKeyColumn);

	desc->cols = desc->cols ? repalloc(desc->cols, bytes) : palloc(bytes);
	memset(&desc->cols[desc->ncols], 0, sizeof(GsKeyColumn));
	return &desc->cols[desc->ncols];
}

/* The value that a value is, or contains. */
static const GsKeyColumn *
innermost(const GsKeyColumn *col)
{
	while (col->element != NULL)
		col = &col->element->column;
	return col;
}

static GsRefusal describe_value(GsKeyColumn *col, Oid opfamily, Oid opcintype, Oid collation, Oid type,
								int32 typmod);

/* Describes a value inside of another one.  It cannot be of a composite type. */
static GsRefusal
describe_nested(GsKeyColumn *col, Oid opfamily, Oid opcintype, Oid collation, Oid type)
{
	return opcintype == RECORDOID ? GS_REFUSE_TYPE :
		describe_value(col, opfamily, opcintype, collation, type, -1);
}

/* Elements are compared by their type's default operator class. */
static GsRefusal
describe_element(GsKeyColumn *col, Oid collation, Oid array_type)
{
	Oid			type = get_element_type(array_type);
	GsKeyElement *element;
	TypeCacheEntry *entry;

	if (!OidIsValid(type))
		return GS_REFUSE_TYPE;
	entry = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY);
	if (!OidIsValid(entry->btree_opf))
		return GS_REFUSE_TYPE;

	element = palloc0(sizeof(GsKeyElement));
	element->typlen = entry->typlen;
	element->typbyval = entry->typbyval;
	element->typalign = entry->typalign;
	col->element = element;
	return describe_nested(&element->column, entry->btree_opf, entry->btree_opintype, collation,
						   type);
}

/* Bounds are compared by the operator class of the range's type. */
static GsRefusal
describe_bounds(GsKeyColumn *col, Oid range_type)
{
	HeapTuple	tuple = SearchSysCache1(RANGETYPE, ObjectIdGetDatum(range_type));
	Oid			opclass;
	Oid			opfamily;
	Oid			bound_type;

	if (!HeapTupleIsValid(tuple))
		return GS_REFUSE_TYPE;
	opclass = ((Form_pg_range) GETSTRUCT(tuple))->rngsubopc;
	ReleaseSysCache(tuple);
	if (!get_opclass_opfamily_and_input_type(opclass, &opfamily, &bound_type))
		return GS_REFUSE_TYPE;
	col->element = palloc0(sizeof(GsKeyElement));
	col->element->range = lookup_type_cache(range_type, TYPECACHE_RANGE_INFO);
	return describe_nested(&col->element->column, opfamily, bound_type,
						   get_range_collation(range_type), get_range_subtype(range_type));
}

/* Strings in jsonb are compared under the database's collation. */
static GsRefusal
describe_strings(GsKeyColumn *col)
{
	TypeCacheEntry *entry = lookup_type_cache(TEXTOID, TYPECACHE_BTREE_OPFAMILY);

	col->element = palloc0(sizeof(GsKeyElement));
	return describe_value(&col->element->column, entry->btree_opf, entry->btree_opintype,
						  DEFAULT_COLLATION_OID, TEXTOID, -1);
}

/* Describes a value: of a column, or an element of an array. */
static GsRefusal
describe_value(GsKeyColumn *col, Oid opfamily, Oid opcintype, Oid collation, Oid type, int32 typmod)
{
	const GsKeyType *row;
	GsRefusal	refusal;

	row = gs_key_type_lookup(opcintype, opfamily, &refusal);
	if (row == NULL)
		return refusal;

	/* The datums are read as opcintype, so they must look like it. */
	if (!IsBinaryCoercible(type, opcintype))
		return GS_REFUSE_TYPE;

	if (row->collated && !gs_key_collation_lookup(collation, &col->collator, &col->libc))
		return GS_REFUSE_COLLATION;

	/*
	 * The pattern classes order by bytes, but their equality is the collation's.  So equal rows need not be
	 * neighbours, and nodes that look for groups of equal rows would go wrong.
	 */
	if (OidIsValid(row->opfamily) && OidIsValid(collation) &&
		!get_collation_isdeterministic(collation))
		return GS_REFUSE_OPCLASS;

	Assert(row->width <= GS_KEY_VALUE_MAX);
	Assert((row->width > 0) == (row->kind < GS_KEY_TEXT));
	col->type = opcintype;
	col->collation = collation;
	col->kind = row->kind;
	col->width = row->width;
	if (row->kind == GS_KEY_ENUM)
		col->labels = gs_key_labels_create(getBaseType(type));
	if (row->kind == GS_KEY_ARRAY)
		return describe_element(col, collation, getBaseType(type));
	if (row->kind == GS_KEY_RANGE)
		return describe_bounds(col, getBaseType(type));
	if (row->kind == GS_KEY_JSONB)
		return describe_strings(col);
	if (row->kind == GS_KEY_RECORD)
	{
		col->record = gs_key_record_create(getBaseType(type), typmod);
		return col->record ? GS_REFUSE_NONE : GS_REFUSE_TYPE;
	}
	return GS_REFUSE_NONE;
}

static GsRefusal
describe_fields(GsKeyDesc *desc, GsKeyRecord *record, bool descending)
{
	for (int i = 0; i < record->tupdesc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(record->tupdesc, i);
		TypeCacheEntry *entry;
		GsKeyColumn *col;
		GsRefusal	refusal;

		if (att->attisdropped)
			continue;
		entry = lookup_type_cache(att->atttypid, TYPECACHE_BTREE_OPFAMILY);
		if (!OidIsValid(entry->btree_opf))
			return GS_REFUSE_TYPE;
		col = add_column(desc);
		col->attno = i + 1;
		col->parent = record;
		col->desc = col->nulls_first = descending;
		refusal = describe_value(col, entry->btree_opf, entry->btree_opintype, att->attcollation,
								 att->atttypid, att->atttypmod);
		if (refusal != GS_REFUSE_NONE)
			return refusal;
		desc->ncols++;
		if (col->record)
			refusal = describe_fields(desc, col->record, descending);
		if (refusal != GS_REFUSE_NONE)
			return refusal;
	}
	return GS_REFUSE_NONE;
}

/* Adds a column of the sort, with the fields of a composite type.  Or returns why it has no encoding. */
static GsRefusal
describe_column(GsKeyDesc *desc, const GsColumns *columns, int i, Oid type, int32 typmod)
{
	GsKeyColumn *col = add_column(desc);
	Oid			sort_operator = columns->operators[i];
	Oid			collation = columns->collations[i];
	Oid			opfamily;
	Oid			opcintype;
	bool		descending;
	GsRefusal	refusal;

	Assert(columns->attnos[i] > 0);
	if (!gs_compat_ordering_op(sort_operator, &opfamily, &opcintype, &descending))
		return GS_REFUSE_OPCLASS;

	col->attno = columns->attnos[i];
	col->sort_operator = sort_operator;
	col->desc = descending;
	col->nulls_first = columns->nulls_first[i];
	refusal = describe_value(col, opfamily, opcintype, collation, type, typmod);
	if (refusal == GS_REFUSE_TYPE && IsBinaryCoercible(type, opcintype))
	{
		col->abbreviation = gs_key_abbreviation_create(sort_operator, opfamily, opcintype, collation);
		if (col->abbreviation == NULL)
			return refusal;
		col->type = opcintype;
		col->collation = collation;
		col->kind = GS_KEY_ABBREVIATED;
		refusal = GS_REFUSE_NONE;
	}
	if (refusal != GS_REFUSE_NONE)
		return refusal;
	desc->ncols++;
	return col->record ? describe_fields(desc, col->record, descending) : GS_REFUSE_NONE;
}

/* A composite column without a field in the key orders nothing. */
static bool
may_end_with_last(const GsKeyDesc *desc)
{
	return !desc->ended || !desc->cols[desc->ncols - 1].record;
}

GsKeyDesc *
gs_key_desc_create(const GsColumns *columns, const Oid *types, const int32 *typmods, bool may_end,
				   GsRefusal *refusal)
{
	GsKeyDesc  *desc = palloc0(sizeof(GsKeyDesc));
	const GsKeyColumn *left_out = NULL;
	int			tops = 0;
	uint32		width = 0;
	bool		fixed = true;

	Assert(columns->n > 0);
	*refusal = GS_REFUSE_NONE;
	for (int i = 0; i < columns->n && *refusal == GS_REFUSE_NONE; i++)
	{
		*refusal = describe_column(desc, columns, i, types[i], typmods ? typmods[i] : -1);
		/* comparing text without a collation is an error, which PostgreSQL reports */
		may_end &= *refusal != GS_REFUSE_COLLATION || OidIsValid(columns->collations[i]) ||
			!type_is_collatable(types[i]);
		if (*refusal == GS_REFUSE_NONE)
			desc->sort_cols++;
	}
	desc->ended = *refusal != GS_REFUSE_NONE;
	while (desc->ncols > 0 && !may_end_with_last(desc))
	{
		desc->ended = true;
		left_out = &desc->cols[--desc->ncols];
		if (*refusal == GS_REFUSE_NONE)
			*refusal = GS_REFUSE_COLLATION;
	}
	if (desc->ncols == 0 || (desc->ended && !may_end))
	{
		pfree(desc);
		return NULL;
	}
	*refusal = GS_REFUSE_NONE;
	desc->cols[desc->ncols - 1].last = true;
	for (int i = 0; i < desc->ncols; i++)
	{
		const GsKeyColumn *col = &desc->cols[i];

		desc->abbreviated |= col->kind == GS_KEY_ABBREVIATED;
		desc->has_libc |= innermost(col)->libc != NULL;
		desc->may_lack_key |= desc->abbreviated || desc->has_libc || innermost(col)->collator != NULL;
		if (col->parent == NULL)
		{
			tops++;
			desc->max_attno = Max(desc->max_attno, col->attno);
		}
		if (col->width == 0)
			fixed = false;
		width += 1 + col->width;
	}
	if (left_out)
		desc->sort_cols = Min(desc->sort_cols, left_out->parent ? tops - 1 : tops);
	desc->fixed_width = (fixed && width <= GS_KEY_FIXED_MAX) ? width : 0;
	return desc;
}

/* Tells how to find the end of a column's bytes.  Returns false if the layout alone does not tell. */
static bool
find_column_end(const GsKeyColumn *col, GsGroupColumn *column)
{
	*column = (GsGroupColumn){0};
	column->null_byte = gs_key_null_byte(true, col->nulls_first);
	column->end = col->desc ? 0xff : 0;
	if (col->last)
		column->width = UINT32_MAX;
	else if (col->width > 0)
		column->width = col->width;
	else if (col->element != NULL)
		return false;
	else if (col->kind == GS_KEY_TEXT || col->kind == GS_KEY_BPCHAR || col->kind == GS_KEY_NAME)
		column->n_ends = col->collator != NULL && gs_key_collator_is_deterministic(col->collator) ? 2 : 1;
	else
		return false;
	return true;
}

bool
gs_key_group(const GsKeyDesc *desc, int ncols, GsKeepGroup *group)
{
	if (desc->abbreviated || desc->ended)
		return false;
	Assert(ncols <= desc->sort_cols);
	for (int i = 0; i < desc->ncols; i++)
		if (desc->cols[i].record)
			return false;
	group->n_columns = 0;
	if (ncols == 0)
		return true;
	if (desc->fixed_width > 0)
	{
		/* NULLs are filled up */
		group->n_columns = 1;
		group->columns[0] = (GsGroupColumn){.null_byte = GS_NO_NULL_BYTE};
		for (int i = 0; i < ncols; i++)
			group->columns[0].width += 1 + desc->cols[i].width;
		group->columns[0].width--;
		return true;
	}
	if (ncols > GS_GROUP_COLUMNS)
		return false;
	for (int i = 0; i < ncols; i++)
		if (!find_column_end(&desc->cols[i], &group->columns[group->n_columns++]))
			return false;
	return true;
}

bool
gs_key_has_labels(const GsKeyDesc *desc)
{
	for (int i = 0; i < desc->ncols; i++)
	{
		if (innermost(&desc->cols[i])->labels != NULL)
			return true;
	}
	return false;
}

/* The sample has the first hundred rows, then one in 256. */
int
gs_key_sample(uint32 *n, int first, int last)
{
	int			skipped = *n < 100 || gs_guc_check_order ? 0 : (int) (-*n % 256);

	if (first >= last || skipped >= last - first)
	{
		*n += (uint32) Max(last - first, 0);
		return last;
	}
	*n += (uint32) skipped + 1;
	return first + skipped;
}

void
gs_key_distrust(const GsKeyDesc *desc, int column)
{
	int			number = -1;

	for (int i = 0; i < desc->ncols; i++)
	{
		/* fields belong to the column before them */
		number += desc->cols[i].parent == NULL;
		if ((column < 0 || column == number) && innermost(&desc->cols[i])->libc != NULL)
			gs_libc_distrust(innermost(&desc->cols[i])->libc);
	}
}
