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

#include "miscadmin.h"
#include "utils/jsonb.h"

#include "key/key_encode_numeric.h"
#include "key/key_value.h"

/* A key that is being written. */
typedef struct Output
{
	const GsKeyColumn *string;
	const char *value;			/* from here on ... */
	const char *value_end;		/* ... up to here */
	uint8	   *at;
	const uint8 *end;
} Output;

/* Raises an error if the value has fewer bytes. */
static inline void
check_bytes(const Output *output, const void *bytes, size_t len)
{
	const char *from = bytes;

	gs_key_check_damage(from >= output->value && from <= output->value_end &&
						len <= (size_t) (output->value_end - from));
}

static bool
put_scalar(Output *output, const JsonbValue *scalar)
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
	if (!gs_key_append(&output->at, output->end, &code, 1))
		return false;
	if (scalar->type == jbvString)
	{
		bytes.data = (const uint8 *) scalar->val.string.val;
		bytes.len = scalar->val.string.len;
		check_bytes(output, bytes.data, bytes.len);
		all = gs_key_put_fetched(output->string, bytes, output->at, output->end - output->at, &written);
	}
	else if (scalar->type == jbvNumeric)
	{
		check_bytes(output, scalar->val.numeric, VARHDRSZ);
		check_bytes(output, scalar->val.numeric, VARSIZE_ANY(scalar->val.numeric));
		bytes = gs_numeric_contents((struct varlena *) scalar->val.numeric);
		all = gs_key_put_numeric(output->at, output->end - output->at, bytes.data, bytes.len, &written);
	}
	output->at += written;
	return all;
}

static bool
put_count(Output *output, uint8 code, uint32 n)
{
	uint8		bytes[1 + sizeof(uint32)];

	bytes[0] = code;
	gs_key_put_uint32(bytes + 1, n);
	return gs_key_append(&output->at, output->end, bytes, sizeof(bytes));
}

/*
 * Write a container.  The iterator is not let into those in it: it would read what a damaged one tells of
 * itself, before anything could be checked.
 */
static bool
put_container(Output *output, JsonbContainer *container, bool is_root)
{
	const uint8 empty_root = GS_KEY_JSONB_EMPTY_ROOT;
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue	part;
	bool		all = true;

	check_stack_depth();
	check_bytes(output, container, offsetof(JsonbContainer, children));
	check_bytes(output, container->children,
				(JsonContainerIsObject(container) ? 2 : 1) * JsonContainerSize(container) * sizeof(JEntry));
	iterator = JsonbIteratorInit(container);
	while (all && (token = JsonbIteratorNext(&iterator, &part, true)) != WJB_DONE)
		switch (token)
		{
			case WJB_BEGIN_ARRAY:
				if (part.val.array.nElems == 0 && is_root)
					all = gs_key_append(&output->at, output->end, &empty_root, 1);
				else if (!part.val.array.rawScalar)
					all = put_count(output, GS_KEY_JSONB_ARRAY, part.val.array.nElems);
				break;
			case WJB_BEGIN_OBJECT:
				all = put_count(output, GS_KEY_JSONB_OBJECT, 2 * part.val.object.nPairs);
				break;
			case WJB_KEY:
			case WJB_VALUE:
			case WJB_ELEM:
				all = part.type == jbvBinary ? put_container(output, part.val.binary.data, false) :
					put_scalar(output, &part);
				break;
			case WJB_END_ARRAY:
			case WJB_END_OBJECT:
			case WJB_DONE:
				break;
		}
	return all;
}

bool
gs_key_put_jsonb(const GsKeyColumn *col, Datum value, uint8 *dst, size_t room, size_t *written)
{
	Jsonb	   *jsonb = DatumGetJsonbP(value);
	Output		output = {
		&col->element->column, (char *) jsonb, (char *) jsonb + VARSIZE(jsonb), dst, dst + room
	};
	bool		all = put_container(&output, &jsonb->root, true);

	*written = output.at - dst;
	return all;
}
