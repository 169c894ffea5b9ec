/*-------------------------------------------------------------------------
 *
 * key_jsonb.c
 *	  Writing jsonb.
 *
 * jsonb_cmp() walks two values side by side, and stops where they differ.  The order of kinds is null,
 * string, number, false, true, array, object.  Arrays and objects are compared by their number of elements
 * first, and then by the elements.  An object has its keys, each followed by its value.  Strings and keys are
 * compared under the database's collation.  A scalar alone counts as an array of one element, which is less
 * than other arrays of one element.  So the empty array comes before all scalars, unless it is inside of
 * another value.  The bytes follow the walk.  Each value is a byte for its kind, and then
 *
 *		string			its own encoding
 *		number			its own encoding
 *		array, object	uint32: the number of its elements; an object's keys count, too
 *
 * Every encoding of a value ends by itself, and so does this one.
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

/* Each value begins with one of these. */
#define JSONB_EMPTY_ROOT	0x01
#define JSONB_NULL			0x02
#define JSONB_STRING		0x03
#define JSONB_NUMBER		0x04
#define JSONB_FALSE			0x05
#define JSONB_TRUE			0x06
#define JSONB_ARRAY			0x07
#define JSONB_OBJECT		0x08

/* A key that is being written. */
typedef struct Output
{
	const GsKeyColumn *string;
	const char *value;			/* the whole jsonb value */
	const char *value_end;
	uint8	   *at;
	const uint8 *end;
} Output;

/* Raises an error if the bytes are not all inside of the value. */
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
	uint8		code = JSONB_NULL;
	GsVarBytes	bytes;
	bool		all = true;

	if (scalar->type == jbvString)
		code = JSONB_STRING;
	else if (scalar->type == jbvNumeric)
		code = JSONB_NUMBER;
	else if (scalar->type == jbvBool)
		code = scalar->val.boolean ? JSONB_TRUE : JSONB_FALSE;
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
 * Writes a container.  The iterator does not enter containers inside of it: it would read their headers,
 * which may be damaged, before they are checked.
 */
static bool
put_container(Output *output, JsonbContainer *container, bool is_root)
{
	const uint8 empty_root = JSONB_EMPTY_ROOT;
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
					all = put_count(output, JSONB_ARRAY, part.val.array.nElems);
				break;
			case WJB_BEGIN_OBJECT:
				all = put_count(output, JSONB_OBJECT, 2 * part.val.object.nPairs);
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
