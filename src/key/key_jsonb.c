/*-------------------------------------------------------------------------
 *
 * key_jsonb.c
 *	  Writing jsonb.
 *
 * jsonb_cmp() walks two values side by side and stops where they differ: null is less than a string, then
 * numbers, false, true, arrays, objects.  Arrays and objects are compared by how much they hold before
 * what they hold, objects key by key, each with its value.  Strings, keys among them, are compared under
 * the database's collation.  A scalar alone counts as an array of one, which is less than other arrays of
 * one; so the empty array comes before all scalars, if it is not inside of something.  The same as bytes,
 * a value after the other as they are walked, each a byte and then
 *
 *		string			its own encoding
 *		number			its own encoding
 *		array, object	uint32, how many values follow that belong to it, an object's keys among them
 *
 * Every encoding of a value ends by itself, and so does this one.  order/key_check.c reads strings under
 * libc collations.
 *
 * Tests: regress/keys_jsonb
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/jsonb.h"

#include "key/key_encode_numeric.h"
#include "key/key_value.h"

static bool
put_container(uint8 code, uint32 n, uint8 **at, const uint8 *end)
{
	uint8		bytes[1 + sizeof(uint32)];

	bytes[0] = code;
	gs_key_put_uint32(bytes + 1, n);
	return gs_key_append(at, end, bytes, sizeof(bytes));
}

static bool
put_scalar(const GsKeyColumn *string, const JsonbValue *scalar, uint8 **at, const uint8 *end)
{
	size_t		written = 0;
	uint8		code = GS_KEY_JSONB_NULL;
	GsVarBytes	bytes;
	bool		all = true;

	if (scalar->type == jbvString)
		code = GS_KEY_JSONB_STRING;
	else if (scalar->type == jbvNumeric)
		code = GS_KEY_JSONB_NUMBER;
	else if (scalar->type == jbvBool)
		code = scalar->val.boolean ? GS_KEY_JSONB_TRUE : GS_KEY_JSONB_FALSE;
	if (!gs_key_append(at, end, &code, 1))
		return false;
	if (scalar->type == jbvString)
	{
		bytes.data = (const uint8 *) scalar->val.string.val;
		bytes.len = scalar->val.string.len;
		all = gs_key_put_fetched(string, bytes, *at, end - *at, &written);
	}
	else if (scalar->type == jbvNumeric)
	{
		bytes = gs_var_bytes((struct varlena *) scalar->val.numeric,
							 VARSIZE_ANY_EXHDR(scalar->val.numeric));
		all = gs_key_put_numeric(*at, end - *at, bytes.data, bytes.len, &written);
	}
	*at += written;
	return all;
}

bool
gs_key_put_jsonb(const GsKeyColumn *col, Datum value, uint8 **at, const uint8 *end)
{
	Jsonb	   *jsonb = DatumGetJsonbP(value);
	JsonbIterator *iterator = JsonbIteratorInit(&jsonb->root);
	const uint8 *start = *at;
	uint8		empty_root = GS_KEY_JSONB_EMPTY_ROOT;
	JsonbIteratorToken token;
	JsonbValue	part;
	bool		all = true;

	while (all && (token = JsonbIteratorNext(&iterator, &part, false)) != WJB_DONE)
		switch (token)
		{
			case WJB_BEGIN_ARRAY:
				if (part.val.array.nElems == 0 && *at == start)
					all = gs_key_append(at, end, &empty_root, 1);
				else if (!part.val.array.rawScalar)
					all = put_container(GS_KEY_JSONB_ARRAY, part.val.array.nElems, at, end);
				break;
			case WJB_BEGIN_OBJECT:
				all = put_container(GS_KEY_JSONB_OBJECT, 2 * part.val.object.nPairs, at, end);
				break;
			case WJB_KEY:
			case WJB_VALUE:
			case WJB_ELEM:
				all = put_scalar(&col->element->column, &part, at, end);
				break;
			case WJB_END_ARRAY:
			case WJB_END_OBJECT:
			case WJB_DONE:
				break;
		}
	return all;
}
