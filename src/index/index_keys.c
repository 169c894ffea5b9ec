/*-------------------------------------------------------------------------
 *
 * index_keys.c
 *	  The columns of a btree index as keys of a sort (index_keys.h).
 *
 * Tests: regress/index_builds, regress/index_collations
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "index/index_keys.h"

/*
 * The sort operator of a key column.  An operator may be in several families,
 * each with a comparison function of its own: keys speak of the one that
 * gs_compat_ordering_op() finds, and that must be the index's.
 */
static bool
column_operator(Relation index, int i, bool descending, Oid *sort_operator)
{
	Oid			opfamily = index->rd_opfamily[i];
	Oid			opcintype = index->rd_opcintype[i];
	Oid			found_family;
	Oid			found_type;
	bool		found_descending;

	*sort_operator = get_opfamily_member(opfamily, opcintype, opcintype,
										 descending ? BTGreaterStrategyNumber : BTLessStrategyNumber);
	return OidIsValid(*sort_operator) &&
		gs_compat_ordering_op(*sort_operator, &found_family, &found_type, &found_descending) &&
		found_family == opfamily && found_type == opcintype && found_descending == descending;
}

/* The index's first nkeys columns, and the TID. */
static GsKeyDesc *
describe_columns(Relation index, int nkeys, GsRefusal *refusal)
{
	AttrNumber	attnos[INDEX_MAX_KEYS + 1];
	Oid			operators[INDEX_MAX_KEYS + 1];
	Oid			collations[INDEX_MAX_KEYS + 1];
	bool		nulls_first[INDEX_MAX_KEYS + 1];
	Oid			types[INDEX_MAX_KEYS + 1];

	for (int i = 0; i < nkeys; i++)
	{
		int16		option = index->rd_indoption[i];

		if (!column_operator(index, i, (option & INDOPTION_DESC) != 0, &operators[i]))
		{
			*refusal = GS_REFUSE_OPCLASS;
			return NULL;
		}
		attnos[i] = i + 1;
		collations[i] = index->rd_indcollation[i];
		nulls_first[i] = (option & INDOPTION_NULLS_FIRST) != 0;

		/* arrays and enums: which ones is the column's to say */
		types[i] = index->rd_opcintype[i];
		if (IsPolymorphicType(types[i]))
			types[i] = TupleDescAttr(RelationGetDescr(index), i)->atttypid;
	}
	attnos[nkeys] = nkeys + 1;
	operators[nkeys] = TIDLessOperator;
	collations[nkeys] = InvalidOid;
	nulls_first[nkeys] = false;
	types[nkeys] = TIDOID;
	return gs_key_desc_create(nkeys + 1, attnos, operators, collations, nulls_first, types, refusal);
}

GsKeyDesc *
gs_index_key_desc(Relation index, GsRefusal *refusal)
{
	return describe_columns(index, IndexRelationGetNumberOfKeyAttributes(index), refusal);
}

int
gs_index_refused_column(Relation index)
{
	int			nkeys = 1;
	GsRefusal	refusal;

	while (nkeys < IndexRelationGetNumberOfKeyAttributes(index) &&
		   describe_columns(index, nkeys, &refusal) != NULL)
		nkeys++;
	return nkeys - 1;
}
