/*-------------------------------------------------------------------------
 *
 * key_value.c
 *	  Writing values of a varying width.
 *
 * Values in line are read where they are, with either length of header.  The encodings of text and bytea
 * are never shorter than the value.  So their length tells before the fetch which slice can fit, and only
 * that is fetched.  All other values are fetched whole.  A bpchar ends where its trailing blanks begin, and
 * under an ICU collation the last character of a text may count before the first.
 *
 * Tests: regress/keys, regress/keys_types
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/inet.h"

#include "key/key_encode_numeric.h"
#include "key/key_libc.h"
#include "key/key_value.h"

/* A bpchar without its trailing blanks. */
static GsVarBytes
bpchar_bytes(struct varlena *value)
{
	GsVarBytes	bytes = gs_var_bytes(value, gs_var_length(value));

	while (bytes.len > 0 && bytes.data[bytes.len - 1] == ' ')
		bytes.len--;
	return bytes;
}

bool		gs_key_lacks_text = false;

/* Writes text that has been fetched, by its bytes or by its collation. */
bool
gs_key_put_fetched(const GsKeyColumn *col, GsVarBytes text, uint8 *dst, size_t room,
				   size_t *written)
{
	bool		ends_key = col->last && !col->desc;

	if (col->libc != NULL)
		return gs_libc_put(col->libc, dst, room, text.data, text.len, written, &gs_key_lacks_text);
	if (col->collator != NULL)
		return gs_key_put_icu(col->collator, text, ends_key, dst, room, written, &gs_key_lacks_text);
	if (ends_key)
		return gs_key_put_bytes(dst, room, text.data, text.len, written);
	return gs_key_put_text(dst, room, text.data, text.len, written);
}

/* Writes a value of a column that gs_key_is_plain(), ascending.  Only the part that fits is fetched. */
static inline bool
put_plain(const GsKeyColumn *col, struct varlena *value, uint8 *dst, size_t room, size_t *written)
{
	uint32		len = gs_var_length(value);
	bool		cut = len > room;
	GsVarBytes	bytes = gs_var_bytes(value, cut ? room : len);
	bool		all;

	cut = cut && bytes.len == room;
	if (col->last && !col->desc)
		all = gs_key_put_bytes(dst, room, bytes.data, bytes.len, written);
	else if (col->kind == GS_KEY_BYTEA)
		all = gs_key_put_escaped(dst, room, bytes.data, bytes.len, written);
	else
		all = gs_key_put_text(dst, room, bytes.data, bytes.len, written);
	return all && !cut;
}

GsVarBytes
gs_numeric_contents(struct varlena *value)
{
	GsVarBytes	bytes = gs_var_bytes(value, gs_var_length(value));
	uint16		header;

	gs_key_check_damage(bytes.len >= sizeof(header));
	memcpy(&header, bytes.data, sizeof(header));
	/* the long form has a weight */
	gs_key_check_damage((header & GS_NUMERIC_SHORT) != 0 || bytes.len >= sizeof(header) + sizeof(int16));
	return bytes;
}

static bool
put_inet(GsVarBytes bytes, uint8 *dst, size_t room, size_t *written)
{
	const inet_struct *address = (const inet_struct *) bytes.data;
	size_t		address_len = gs_key_inet_address_len(address->family);
	uint8		whole[GS_KEY_INET_MAX];
	uint8	   *at = dst;
	bool		all;

	gs_key_check_damage(bytes.len >= offsetof(inet_struct, ipaddr) + address_len &&
						address->bits <= 8 * address_len);
	all = gs_key_append(&at, dst + room, whole,
						gs_key_put_inet(whole, address->family, address->bits,
										address->ipaddr, address_len));
	*written = at - dst;
	return all;
}

/* The value is an int32, which may be unaligned, for the number of bits, and then the bits. */
static bool
put_bits(GsVarBytes bytes, uint8 *dst, size_t room, size_t *written)
{
	int32		n_bits;

	gs_key_check_damage(bytes.len >= sizeof(n_bits));
	memcpy(&n_bits, bytes.data, sizeof(n_bits));
	gs_key_check_damage(n_bits >= 0 && ((int64) n_bits + 7) / 8 <= bytes.len - sizeof(n_bits));
	return gs_key_put_bits(dst, room, bytes.data + sizeof(n_bits), n_bits, written);
}

/* Ordered by length, then by elements.  An oidvector is never toasted, and has no short header. */
static bool
put_oidvector(const oidvector *vector, uint8 *dst, size_t room, size_t *written)
{
	uint8	   *at = dst;
	uint8		bytes[sizeof(Oid)];
	bool		all;

	gs_key_put_uint32(bytes, vector->dim1);
	all = gs_key_append(&at, dst + room, bytes, sizeof(bytes));
	for (int i = 0; i < vector->dim1 && all; i++)
	{
		gs_key_put_uint32(bytes, vector->values[i]);
		all = gs_key_append(&at, dst + room, bytes, sizeof(bytes));
	}
	*written = at - dst;
	return all;
}

bool
gs_key_put_varying(const GsKeyColumn *col, Datum value, uint8 *dst, size_t room,
				   size_t *written)
{
	struct varlena *var = (struct varlena *) DatumGetPointer(value);
	GsVarBytes	bytes;
	bool		all = false;

	switch (col->kind)
	{
		case GS_KEY_TEXT:
		case GS_KEY_BYTEA:
			if (gs_key_is_plain(col))
				all = put_plain(col, var, dst, room, written);
			else
				all = gs_key_put_fetched(col, gs_var_bytes(var, gs_var_length(var)), dst, room,
										 written);
			break;
		case GS_KEY_BPCHAR:
			all = gs_key_put_fetched(col, bpchar_bytes(var), dst, room, written);
			break;
		case GS_KEY_NAME:
			bytes.data = (const uint8 *) DatumGetCString(value);
			bytes.len = strnlen(DatumGetCString(value), NAMEDATALEN);
			all = gs_key_put_fetched(col, bytes, dst, room, written);
			break;
		case GS_KEY_NUMERIC:
			bytes = gs_numeric_contents(var);
			all = gs_key_put_numeric(dst, room, bytes.data, bytes.len, written);
			break;
		case GS_KEY_INET:
			all = put_inet(gs_var_bytes(var, gs_var_length(var)), dst, room, written);
			break;
		case GS_KEY_BITS:
			all = put_bits(gs_var_bytes(var, gs_var_length(var)), dst, room, written);
			break;
		case GS_KEY_OIDVECTOR:
			all = put_oidvector((const oidvector *) var, dst, room, written);
			break;
		case GS_KEY_ARRAY:
			all = gs_key_put_array(col, value, dst, room, written);
			break;
		case GS_KEY_RANGE:
			all = gs_key_put_range(col, value, dst, room, written);
			break;
		case GS_KEY_JSONB:
			all = gs_key_put_jsonb(col, value, dst, room, written);
			break;
		case GS_KEY_RECORD:
		case GS_KEY_ABBREVIATED:
		case GS_KEY_BOOL:
		case GS_KEY_UINT8:
		case GS_KEY_INT16:
		case GS_KEY_INT32:
		case GS_KEY_INT64:
		case GS_KEY_UINT32:
		case GS_KEY_UINT64:
		case GS_KEY_FLOAT4:
		case GS_KEY_FLOAT8:
		case GS_KEY_TIMETZ:
		case GS_KEY_INTERVAL:
		case GS_KEY_RAW:
		case GS_KEY_TID:
		case GS_KEY_ENUM:
			Assert(false);
			*written = 0;
			break;
	}
	if (col->desc)
		gs_key_complement(dst, *written);
	return all;
}
