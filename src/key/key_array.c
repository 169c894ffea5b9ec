/*-------------------------------------------------------------------------
 *
 * key_array.c
 *	  Writing arrays.
 *
 * array_cmp() compares the elements in storage order, up to the length of the shorter array.  NULL equals
 * NULL, and is above all else.  It then compares the numbers of elements, the numbers of dimensions, the
 * length of each dimension and each lower bound.  The same as bytes:
 *
 *		each element		01 and its own encoding; 02 where it is NULL
 *		end					00
 *		dimensions			one byte
 *		lengths				uint32 each, but not of the only one, which the
 *							elements tell
 *		lower bounds		int32 each
 *
 * Encodings of floats leave codes free below -infinity and above NaN.  So arrays of floats need no byte
 * before each element.  All zeroes are the end, and all ones are NULL, each as wide as an element.
 *
 * Every encoding of an element ends by itself, and so does this one.  So elements may be arrays, through a
 * domain.
 *
 * An array with a short header is copied to an aligned place.  Most small arrays in a table have a short
 * header.
 *
 * Tests: regress/keys_arrays
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tupmacs.h"
#include "utils/array.h"

#include "key/key_value.h"

/* Marks before elements, and behind the last one. */
#define ARRAY_END		0x00
#define ARRAY_VALUE		0x01
#define ARRAY_NULL		0x02

/* Bytes of the longest tail: the end, dimensions, lengths, lower bounds. */
#define ARRAY_TAIL_MAX		(sizeof(uint64) + 1 + MAXDIM * 2 * sizeof(uint32))

/* Room for an array with a short header. */
typedef union ShortArray
{
	ArrayType	header;
	char		bytes[VARATT_SHORT_MAX + VARHDRSZ];
	double		align;
} ShortArray;

/* Do the elements' encodings leave codes for the end and NULL? */
static inline bool
is_float(const GsKeyColumn *col)
{
	return col->kind == GS_KEY_FLOAT4 || col->kind == GS_KEY_FLOAT8;
}

/* The array, flat, in line, uncompressed and aligned. */
static const ArrayType *
fetch_array(Datum value, ShortArray *space)
{
	struct varlena *var = (struct varlena *) DatumGetPointer(value);
	uint32		len;

	if (VARATT_IS_EXTERNAL(var) || !VARATT_IS_SHORT(var))
		return (const ArrayType *) detoast_attr(var);

	len = VARSIZE_SHORT(var) - VARHDRSZ_SHORT;
	SET_VARSIZE(&space->header, len + VARHDRSZ);
	gs_key_copy((uint8 *) space->bytes + VARHDRSZ, (const uint8 *) VARDATA_SHORT(var), len);
	return &space->header;
}

/*
 * Writes elements of a fixed width, without NULLs.  There is room for them.  Integers and floats have loops
 * of their own, which take a quarter of the time.  Returns the end of the elements in the array.
 */
static const char *
put_fixed_elements(const GsKeyElement *element, const char *data, int n, uint8 *dst)
{
	const GsKeyColumn *col = &element->column;

	switch (col->kind)
	{
		case GS_KEY_INT32:
			for (int i = 0; i < n; i++)
			{
				*dst++ = ARRAY_VALUE;
				gs_key_put_int32(dst, ((const int32 *) data)[i]);
				dst += sizeof(int32);
			}
			return data + n * sizeof(int32);
		case GS_KEY_INT64:
			for (int i = 0; i < n; i++)
			{
				*dst++ = ARRAY_VALUE;
				gs_key_put_int64(dst, ((const int64 *) data)[i]);
				dst += sizeof(int64);
			}
			return data + n * sizeof(int64);
		case GS_KEY_FLOAT4:
			for (int i = 0; i < n; i++)
				gs_key_put_float4(dst + i * sizeof(float4), ((const float4 *) data)[i]);
			return data + n * sizeof(float4);
		case GS_KEY_FLOAT8:
			for (int i = 0; i < n; i++)
				gs_key_put_float8(dst + i * sizeof(float8), ((const float8 *) data)[i]);
			return data + n * sizeof(float8);
		default:
			break;
	}
	for (int i = 0; i < n; i++)
	{
		*dst++ = ARRAY_VALUE;
		gs_key_put_fixed(col, fetch_att(data, element->typbyval, element->typlen), dst);
		dst += col->width;
		data = att_addlength_pointer(data, element->typlen, data);
		data = (const char *) att_align_nominal(data, element->typalign);
	}
	return data;
}

/* The same where not all elements fit.  width: bytes of an element. */
static bool
put_first_elements(const GsKeyElement *element, const char *data, size_t width, uint8 **at,
				   const uint8 *end)
{
	int			fit = (end - *at) / width;
	uint8		whole[1 + GS_KEY_VALUE_MAX];

	data = put_fixed_elements(element, data, fit, *at);
	*at += fit * width;
	(void) put_fixed_elements(element, data, 1, whole);
	return gs_key_append(at, end, whole, width);
}

/* Elements of any type, with and without NULLs. */
static bool
put_elements(const GsKeyElement *element, const ArrayType *array, int n, uint8 **at,
			 const uint8 *end)
{
	static const uint8 null_float[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	static const uint8 null_mark = ARRAY_NULL;
	static const uint8 value_mark = ARRAY_VALUE;
	const uint8 *bitmap = ARR_NULLBITMAP(array);
	const char *data = ARR_DATA_PTR(array);
	bool		marked = !is_float(&element->column);
	const uint8 *null = marked ? &null_mark : null_float;
	size_t		null_width = marked ? 1 : element->column.width;
	bool		all = true;

	for (int i = 0; i < n && all; i++)
	{
		if (bitmap != NULL && (bitmap[i / 8] >> i % 8 & 1) == 0)
		{
			all = gs_key_append(at, end, null, null_width);
			continue;
		}
		all = (!marked || gs_key_append(at, end, &value_mark, 1)) &&
			gs_key_put_value(&element->column, fetch_att(data, element->typbyval, element->typlen),
							  at, end);
		data = att_addlength_pointer(data, element->typlen, data);
		data = (const char *) att_align_nominal(data, element->typalign);
	}
	return all;
}

static bool
put_tail(const ArrayType *array, size_t end_width, uint8 **at, const uint8 *end)
{
	uint8		tail[ARRAY_TAIL_MAX];
	size_t		len = end_width;
	int			n_dims = ARR_NDIM(array);

	memset(tail, ARRAY_END, end_width);
	tail[len++] = (uint8) n_dims;
	for (int i = 0; n_dims > 1 && i < n_dims; i++)
	{
		gs_key_put_uint32(tail + len, ARR_DIMS(array)[i]);
		len += sizeof(uint32);
	}
	for (int i = 0; i < n_dims; i++)
	{
		gs_key_put_int32(tail + len, ARR_LBOUND(array)[i]);
		len += sizeof(int32);
	}
	return gs_key_append(at, end, tail, len);
}

bool
gs_key_put_array(const GsKeyColumn *col, Datum value, uint8 *dst, size_t room, size_t *written)
{
	const GsKeyElement *element = col->element;
	ShortArray	space;
	const ArrayType *array = fetch_array(value, &space);
	int			n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	const uint8 *end = dst + room;
	uint8	   *at = dst;
	bool		marked = !is_float(&element->column);
	size_t		width = element->column.width + marked;
	bool		all = true;

	if (element->column.width == 0 || ARR_HASNULL(array))
		all = put_elements(element, array, n, &at, end);
	else if (n * width > room)
		all = put_first_elements(element, ARR_DATA_PTR(array), width, &at, end);
	else
	{
		(void) put_fixed_elements(element, ARR_DATA_PTR(array), n, at);
		at += n * width;
	}
	if (all)
		all = put_tail(array, marked ? 1 : element->column.width, &at, end);
	*written = at - dst;
	return all;
}
