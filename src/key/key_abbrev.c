/*-------------------------------------------------------------------------
 *
 * key_abbrev.c
 *	  Keys of types that src/key does not know, from their abbreviated keys.
 *
 * An operator class with sort support may offer abbreviated keys (utils/sortsupport.h).  These are
 * integers.  Their comparison tells the order of two values, or leaves it open.  If they compare as
 * unsigned integers do, they are keys, and the operator class's comparison settles ties.  PostGIS has such
 * a class for geometry.  We assume that the key of a value depends on the value alone, so that all
 * processes of a sort make the same key.
 *
 * Only the class's comparison function tells how they compare.  So it compares some thousand pairs of
 * numbers: neighbours around all powers of two, and numbers far apart.  If all pairs agree, the order is
 * taken as unsigned, since every bit of the numbers decides some pair.
 *
 * PostGIS's comparison finds 0 equal to all other numbers: nothing is known of such a value.  A comparison
 * may do so.  Values with that number then have no key.
 *
 * Tests: regress/keys_abbreviated, tap/compat_postgis
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "common/hashfn.h"
#include "utils/lsyscache.h"
#include "utils/sortsupport.h"

#include "base/string_sort.h"
#include "key/key_value.h"

/* Numbers that are compared: around each power of two, and others. */
#define N_PROBES	256
#define N_PARTNERS	16

struct GsKeyAbbreviation
{
	SortSupportData support;
	bool		zero_is_unknown;
};

static int
sign(int order)
{
	return (order > 0) - (order < 0);
}

/* Does the class compare its abbreviated keys as unsigned integers? */
static bool
is_unsigned_order(GsKeyAbbreviation *abbreviation)
{
	SortSupport support = &abbreviation->support;
	uint64		probes[N_PROBES];
	int			zero = support->comparator((Datum) 0, (Datum) 1, support);

	for (int i = 0; i < N_PROBES; i++)
	{
		uint64		power = UINT64CONST(1) << (i / 4);

		switch (i % 4)
		{
			case 0:
				probes[i] = power;
				break;
			case 1:
				probes[i] = power + 1;
				break;
			case 2:
				probes[i] = ~power;
				break;
			default:
				probes[i] = hash_bytes_uint32_extended(i, 0) | 1;
				break;
		}
	}
	qsort(probes, N_PROBES, sizeof(uint64), gs_string_compare_words);
	for (int i = 0; i < N_PROBES; i++)
	{
		if (sign(support->comparator((Datum) 0, (Datum) probes[i], support)) != sign(zero) ||
			sign(support->comparator((Datum) probes[i], (Datum) 0, support)) != -sign(zero))
			return false;
		for (int k = 0; k < N_PARTNERS; k++)
		{
			/* itself, the next ones, and some far away */
			uint64		other = probes[(k < 4 ? i + k : i + k * k * k) % N_PROBES];

			if (sign(support->comparator((Datum) probes[i], (Datum) other, support)) !=
				gs_string_compare_words(&probes[i], &other))
				return false;
		}
	}
	abbreviation->zero_is_unknown = zero == 0;
	return zero <= 0;
}

GsKeyAbbreviation *
gs_key_abbreviation_create(Oid sort_operator, Oid opfamily, Oid opcintype, Oid collation)
{
	GsKeyAbbreviation *abbreviation;
	SortSupport support;

	/* the family may lack all functions of the type; PostgreSQL reports that when it sorts */
	if (!OidIsValid(get_opfamily_proc(opfamily, opcintype, opcintype, BTSORTSUPPORT_PROC)))
		return NULL;
	abbreviation = palloc0(sizeof(GsKeyAbbreviation));
	support = &abbreviation->support;
	support->ssup_cxt = CurrentMemoryContext;
	support->ssup_collation = collation;
	support->abbreviate = true;
	PrepareSortSupportFromOrderingOp(sort_operator, support);
	if (sizeof(Datum) < sizeof(uint64) || support->abbrev_converter == NULL ||
		!is_unsigned_order(abbreviation))
	{
		pfree(abbreviation);
		return NULL;
	}
	return abbreviation;
}

bool
gs_key_abbreviate(GsKeyAbbreviation *abbreviation, Datum value, uint64 *key)
{
	*key = DatumGetUInt64(abbreviation->support.abbrev_converter(value, &abbreviation->support));
	return *key != 0 || !abbreviation->zero_is_unknown;
}
