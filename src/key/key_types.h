/*-------------------------------------------------------------------------
 *
 * key_types.h
 *	  Which types and collations have an encoding: the inside of key/, and
 *	  for arrays the elements that devices sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_TYPES_H
#define GS_KEY_TYPES_H

#include "device/device.h"
#include "key/key.h"
#include "key/key_libc.h"

/* An operator class whose order keys can express. */
typedef struct GsKeyType
{
	Oid			type;			/* its input type */
	Oid			opfamily;		/* InvalidOid: the type's default */
	GsKeyKind	kind;
	uint32		width;			/* bytes of an encoded value; 0: varies */
	bool		collated;		/* its order depends on the collation */
	GsElem		elem;			/* as an element of arrays; typlen is its width */
} GsKeyType;

/*
 * key_types.c: the row for an operator class, or NULL.  Then *refusal tells whether the type or the class is
 * not supported.
 */
extern const GsKeyType *gs_key_type_lookup(Oid type, Oid opfamily, GsRefusal *refusal);

/*
 * key_types.c: have values always the same image if they are equal by a btree operator family with this input
 * type?
 */
extern bool gs_key_equal_image(Oid opfamily, Oid type, Oid collation);

/*
 * key_collation.c: can keys express the collation's order?  If so, sets ICU's collator or libc's table.
 * Both are NULL if the text's bytes have that order.
 */
extern bool gs_key_collation_lookup(Oid collation, GsKeyCollator **collator,
									const GsLibcCollation **libc);

#endif							/* GS_KEY_TYPES_H */
