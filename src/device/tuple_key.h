/*-------------------------------------------------------------------------
 *
 * tuple_key.h
 *	  Keys that a device makes from rows.
 *
 * A record may come without its key (GS_KEY_MISSING) if its row is a minimal tuple or an index tuple of
 * PostgreSQL.  Then the device takes the tuple apart and writes the key, byte for byte like the encoders of
 * src/key.  A sort's GsTupleKeys tells where the columns are, and how they are encoded.  Both devices use
 * this code.  It is plain C11, and CUDA C++.
 *
 * A tuple (access/htup_details.h)
 *	  bytes  0 to 3		its length
 *	  bytes 10 and 11	number of attributes, in the low 11 bits
 *	  bytes 12 and 13	flags; bit 0: there is a bitmap of NULLs
 *	  byte  14			where the attributes begin, plus 8
 *	  from byte 15		the bitmap, a bit set for each attribute that is not NULL
 *
 * A tuple that is older than a column has fewer attributes.  The missing ones are NULL.
 *
 * An index tuple (access/itup.h)
 *	  bytes  0 to 5		the TID, in numbers of two bytes: block, higher half first, and offset
 *	  bytes  6 and 7	flags; bit 15: there is a bitmap of NULLs
 *	  from byte 8		the bitmap, of four bytes; the attributes begin at byte 16, without a bitmap at 8
 *
 * Attributes are aligned, except for those of varying width whose header is one byte.
 * Numbers are little-endian.
 *
 * A tuple may be damaged, so no byte outside of it is read, except by gs_text_key_bound() as it tells.  A
 * tuple that does not fit its description has no key.  Nor has one with pointers of kinds that tables do not
 * contain.  The feeder makes these keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_TUPLE_KEY_H
#define GS_TUPLE_KEY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "device/icu_key.h"
#include "device/libc_key.h"

/* If there are more attributes up to the key's last column, or more columns, feeders make the keys. */
#define GS_TUPLE_ATTRS		48
#define GS_TUPLE_COLUMNS	8

/* The most bytes of a row whose key a device makes. */
#define GS_TUPLE_MAX_BYTES	8160

/* How a column is encoded. */
typedef enum GsTupleKind
{
	GS_TUPLE_UNSIGNED,			/* a number, big-endian */
	GS_TUPLE_SIGNED,			/* a number, big-endian, with the sign bit flipped */
	GS_TUPLE_FLOAT,				/* IEEE bits that compare like numbers */
	GS_TUPLE_BYTES,				/* a fixed number of bytes */
	GS_TUPLE_VARLENA,			/* bytes of any number, which end the key */
	GS_TUPLE_TEXT,				/* bytes of any number, none of them 0, then 0 */
	GS_TUPLE_COLLATED,			/* text by a table (text_key.h) */
	GS_TUPLE_TID				/* the index tuple's TID, which is no attribute */
} GsTupleKind;

typedef struct GsTupleAttr
{
	int16_t		len;			/* in bytes; -1: varying */
	uint8_t		align;			/* 1, 2, 4 or 8 */
} GsTupleAttr;

#define GS_TUPLE_NO_ATTR	UINT8_MAX
#define GS_TUPLE_TID_BYTES	6

/* The bytes behind a text's key of a table. */
typedef enum GsTupleTail
{
	GS_TUPLE_NO_TAIL,
	GS_TUPLE_TEXT_TAIL,			/* the text, and then 0 */
	GS_TUPLE_LAST_TAIL			/* the text, which ends the key */
} GsTupleTail;

typedef struct GsTupleColumn
{
	uint8_t		attr;			/* from 0; TID: GS_TUPLE_NO_ATTR */
	uint8_t		kind;			/* a GsTupleKind */
	uint8_t		null_byte;		/* before a value; before a NULL, with its low bit flipped */
	uint8_t		complement;		/* 0xff: descending; 0: ascending */
	uint8_t		tail;			/* COLLATED: a GsTupleTail */
} GsTupleColumn;

/* n_columns is 0 where devices make no keys. */
typedef struct GsTupleKeys
{
	uint8_t		n_columns;
	uint8_t		n_attrs;		/* number, up to the last one that is a column */
	uint8_t		key_width;		/* bytes of every key, with zeroes for NULLs; 0: keys vary */
	bool		index_tuples;
	GsTupleColumn columns[GS_TUPLE_COLUMNS];
	GsTupleAttr attrs[GS_TUPLE_ATTRS];
	const GsTextTable *table;	/* of all columns of kind COLLATED */
} GsTupleKeys;

/* Where a column's value is. */
typedef struct GsTupleValue
{
	uint16_t	offset;
	uint16_t	len;
	bool		isnull;
	uint16_t	level_bytes[GS_TEXT_LEVELS];	/* COLLATED, on a GPU */
} GsTupleValue;

GS_TUPLE_INLINE uint32_t
gs_tuple_uint32(const uint8_t *at)
{
	return at[0] | (uint32_t) at[1] << 8 | (uint32_t) at[2] << 16 | (uint32_t) at[3] << 24;
}

/* A value out of line: a header of two bytes, whose second one tells the kind, and the value's place. */
#define GS_TUPLE_POINTER_TAG	18
#define GS_TUPLE_POINTER_BYTES	16

/*
 * Finds the value of the next attribute.  *offset is the end of the attribute before, and becomes the
 * value's place; *len becomes its bytes.  False: the value is damaged, or a pointer of another kind.
 * plain: the value is neither compressed nor out of line.
 */
GS_TUPLE_INLINE bool
gs_tuple_find(const GsTupleAttr *attr, const uint8_t *row, uint32_t row_len, uint32_t *offset,
			  uint32_t *len, bool *plain)
{
	uint32_t	aligned = (*offset + attr->align - 1) & ~(uint32_t) (attr->align - 1);

	*plain = true;
	if (attr->len >= 0)
	{
		*offset = aligned;
		*len = (uint32_t) attr->len;
	}
	else
	{
		/* padding is zero, and a header of one byte is not */
		if (*offset >= row_len)
			return false;
		if (row[*offset] == 0)
			*offset = aligned;
		if (*offset >= row_len)
			return false;
		if (row[*offset] == 1)
		{
			if (row_len - *offset < 2 || row[*offset + 1] != GS_TUPLE_POINTER_TAG)
				return false;
			*plain = false;
			*len = GS_TUPLE_POINTER_BYTES;
			*offset += 2;
		}
		else if (row[*offset] & 1)
		{
			*len = (row[*offset] >> 1) - 1u;
			*offset += 1;
		}
		else
		{
			uint32_t	header;

			if (row_len - *offset < 4)
				return false;
			header = gs_tuple_uint32(row + *offset);
			if (header >> 2 < 4)
				return false;
			*plain = (header & 2) == 0;
			*len = (header >> 2) - 4;
			*offset += 4;
		}
	}
	return *offset <= row_len && *len <= row_len - *offset;
}

/* Counts or writes the levels of a text's key, on a GPU.  Returns false if the table lacks a character. */
GS_TUPLE_INLINE bool
gs_text_key_read(const GsTextTable *table, const uint8_t *text, uint32_t len, GsTextLevel *levels,
				 bool *ambiguous)
{
	*ambiguous = false;
	if (table->kind == GS_TEXT_ICU)
		return gs_icu_key_read((const GsIcuCharacters *) table, text, len, levels);
	return gs_libc_key_read((const GsLibcTable *) table, text, len, levels, ambiguous);
}

/* Sets the bytes of each level of a text's key, and returns those of the key.  0: there is none. */
GS_TUPLE_INLINE uint32_t
gs_text_key_find(const GsTextTable *table, const uint8_t *text, uint32_t len, uint16_t *level_bytes)
{
	GsTextLevel levels[GS_TEXT_LEVELS] = {{NULL, 0, 0, 0}};
	uint32_t	bytes = 0;
	bool		ambiguous;

	if (!gs_text_key_read(table, text, len, levels, &ambiguous))
		return 0;
	for (int i = 0; i < GS_TEXT_LEVELS; i++)
	{
		level_bytes[i] = (uint16_t) levels[i].n;
		if (i < table->levels)
			bytes += levels[i].n + 1;
	}
	bytes += ambiguous ? len + 1 : 0;
	return bytes <= GS_TEXT_KEY_MAX ? bytes : 0;
}

/* Writes the key of a text whose levels were counted.  Returns its bytes. */
GS_TUPLE_INLINE uint32_t
gs_text_key_write(const GsTextTable *table, const uint8_t *text, uint32_t len, const uint16_t *level_bytes,
				  uint8_t *dst)
{
	GsTextLevel levels[GS_TEXT_LEVELS] = {{NULL, 0, 0, 0}};
	uint32_t	at = 0;
	bool		ambiguous;

	for (int i = 0; i < GS_TEXT_LEVELS; i++)
	{
		if (i >= table->levels)
			continue;
		levels[i].dst = dst + at;
		levels[i].room = level_bytes[i];
		at += level_bytes[i];
		dst[at++] = GS_TEXT_LEVEL_END;
	}
	(void) gs_text_key_read(table, text, len, levels, &ambiguous);
	if (ambiguous)
	{
		for (uint32_t i = 0; i < len; i++)
			dst[at++] = text[i];
		at++;
	}
	dst[at - 1] = GS_TEXT_KEY_END;
	return at;
}

/* Returns the bytes of a text's key, or on the host their bound; 0: there is no key. */
GS_TUPLE_INLINE uint32_t
gs_tuple_find_collated(const GsTextTable *table, const uint8_t *text, GsTupleValue *value)
{
#ifdef __CUDA_ARCH__
	return gs_text_key_find(table, text, value->len, value->level_bytes);
#else
	return gs_text_key_bound(table, text, value->len);
#endif
}

/* Finds the columns' values.  Returns the length of the key, or on the host its bound; 0: there is no key. */
GS_TUPLE_INLINE uint32_t
gs_tuple_key_find(const GsTupleKeys *keys, const uint8_t *row, uint32_t row_len,
				  GsTupleValue *values)
{
	uint32_t	bitmap = 15;
	uint32_t	offset;
	uint32_t	key_len = 0;
	uint32_t	n_attrs;
	bool		has_nulls;

	if (row_len < 16 || row_len > GS_TUPLE_MAX_BYTES)
		return 0;
	if (keys->index_tuples)
	{
		n_attrs = keys->n_attrs;
		has_nulls = (row[7] & 0x80) != 0;
		offset = has_nulls ? 16 : 8;
		bitmap = 8;
	}
	else
	{
		if (row[14] < 8)
			return 0;
		n_attrs = (row[10] | (uint32_t) row[11] << 8) & 0x7ff;
		has_nulls = (row[12] & 1) != 0;
		offset = row[14] - 8u;
	}
	if (has_nulls && row_len < bitmap + ((n_attrs < keys->n_attrs ? n_attrs : keys->n_attrs) + 7u) / 8)
		return 0;
	for (uint32_t c = 0; c < keys->n_columns; c++)
		if (keys->columns[c].kind == GS_TUPLE_TID)
		{
			values[c].offset = 0;
			values[c].len = GS_TUPLE_TID_BYTES;
			values[c].isnull = false;
			key_len += 1 + GS_TUPLE_TID_BYTES;
		}

	for (uint32_t i = 0; i < keys->n_attrs; i++)
	{
		bool		isnull = i >= n_attrs || (has_nulls && (row[bitmap + i / 8] >> i % 8 & 1) == 0);
		uint32_t	len = 0;
		bool		plain = true;

		if (!isnull && !gs_tuple_find(&keys->attrs[i], row, row_len, &offset, &len, &plain))
			return 0;
		for (uint32_t c = 0; c < keys->n_columns; c++)
		{
			if (keys->columns[c].attr != i)
				continue;
			if (!plain)
				return 0;
			values[c].offset = (uint16_t) offset;
			values[c].len = (uint16_t) len;
			values[c].isnull = isnull;
			key_len += 1;
			if (!isnull && keys->columns[c].kind == GS_TUPLE_COLLATED)
			{
				uint32_t	bytes = gs_tuple_find_collated(keys->table, row + offset, &values[c]);

				if (bytes > 0 && keys->columns[c].tail != GS_TUPLE_NO_TAIL)
					bytes += len + (keys->columns[c].tail == GS_TUPLE_TEXT_TAIL);

				if (bytes == 0)
					return 0;
				key_len += bytes;
			}
			else if (!isnull)
				key_len += len + (keys->columns[c].kind == GS_TUPLE_TEXT);
		}
		offset += len;
	}
	return keys->key_width > 0 ? keys->key_width : key_len;
}

/* Writes a number of len bytes, at most 8, big-endian. */
GS_TUPLE_INLINE void
gs_tuple_put_number(uint8_t *dst, const uint8_t *src, uint32_t len, GsTupleKind kind,
					uint8_t complement)
{
	uint64_t	sign = UINT64_C(1) << (len * 8 - 1);
	uint64_t	bits = 0;

	for (uint32_t i = len; i-- > 0;)
		bits = bits << 8 | src[i];
	if (kind == GS_TUPLE_SIGNED)
		bits ^= sign;
	else if (kind == GS_TUPLE_FLOAT)
	{
		uint64_t	infinity = len == 4 ? UINT64_C(0x7f800000) : UINT64_C(0x7ff0000000000000);
		uint64_t	nan = len == 4 ? UINT64_C(0x7fc00000) : UINT64_C(0x7ff8000000000000);
		uint64_t	magnitude = bits & (sign - 1);

		if (magnitude > infinity)
			bits = nan;
		else if (magnitude == 0)
			bits = 0;
		bits = bits & sign ? ~bits : bits | sign;
	}
	for (uint32_t i = len; i-- > 0; bits >>= 8)
		dst[i] = (uint8_t) (bits ^ complement);
}

/* Writes a text's key, at most room bytes.  Returns its length; 0: there is no key. */
GS_TUPLE_INLINE uint32_t
gs_tuple_put_collated(const GsTextTable *table, const uint8_t *text, const GsTupleValue *value,
					  GsLibcScratch *scratch, uint8_t *dst, uint32_t room)
{
#ifdef __CUDA_ARCH__
	return gs_text_key_write(table, text, value->len, value->level_bytes, dst);
#else
	size_t		written;
	uint32_t	unknown;
	bool		all;

	if (room > GS_TEXT_KEY_MAX)
		room = GS_TEXT_KEY_MAX;
	if (table->kind == GS_TEXT_ICU)
		all = gs_icu_put((const GsIcuCharacters *) table, text, value->len, dst, room, &written, &unknown);
	else
		all = gs_libc_table_put((const GsLibcTable *) table, scratch, text, value->len, dst, room,
								&written) == GS_LIBC_PUT_ALL;
	return all ? (uint32_t) written : 0;
#endif
}

/*
 * Writes the key of the values that were found.  Returns its length; 0: there is no key.  On the host, room
 * is GS_TEXT_SLACK bytes more than gs_tuple_key_find() returned, and scratch is needed if keys have a
 * table.
 */
GS_TUPLE_INLINE uint32_t
gs_tuple_key_write(const GsTupleKeys *keys, const uint8_t *row, const GsTupleValue *values,
				   GsLibcScratch *scratch, uint8_t *dst, uint32_t room)
{
	uint8_t    *start = dst;

	for (uint32_t c = 0; c < keys->n_columns; c++)
	{
		const GsTupleColumn *column = &keys->columns[c];
		const uint8_t *src = row + values[c].offset;
		uint32_t	len = values[c].len;

		if (values[c].isnull)
		{
			*dst++ = column->null_byte ^ 1;
			if (keys->key_width > 0)
				for (int32_t i = keys->attrs[column->attr].len; i > 0; i--)
					*dst++ = 0;
			continue;
		}
		*dst++ = column->null_byte;
		if (column->kind == GS_TUPLE_COLLATED)
		{
			uint32_t	bytes = gs_tuple_put_collated(keys->table, src, &values[c], scratch, dst,
													  room - (uint32_t) (dst - start));

			if (bytes == 0)
				return 0;
			if (column->tail != GS_TUPLE_NO_TAIL)
				for (uint32_t i = 0; i < len; i++)
					dst[bytes++] = src[i];
			if (column->tail == GS_TUPLE_TEXT_TAIL)
				dst[bytes++] = 0;
			for (uint32_t i = 0; i < bytes && column->complement != 0; i++)
				dst[i] = (uint8_t) ~dst[i];
			dst += bytes;
			continue;
		}
		if (column->kind <= GS_TUPLE_FLOAT)
			gs_tuple_put_number(dst, src, len, (GsTupleKind) column->kind, column->complement);
		else if (column->kind == GS_TUPLE_TID)
			for (uint32_t i = 0; i < GS_TUPLE_TID_BYTES; i++)
				dst[i] = src[i ^ 1] ^ column->complement;
		else
			for (uint32_t i = 0; i < len; i++)
				dst[i] = src[i] ^ column->complement;
		dst += len;
		if (column->kind == GS_TUPLE_TEXT)
			*dst++ = column->complement;
	}
	return (uint32_t) (dst - start);
}

#endif							/* GS_TUPLE_KEY_H */
