/*-------------------------------------------------------------------------
 *
 * key.h
 *	  The columns of a sort as one byte string per row.
 *
 * A GsKeyDesc says how the sort columns of a tuple become a key.  A key is a byte string.  The order of
 * memcmp(), with a prefix before the longer string, is the order in which PostgreSQL would put the tuples.
 * The bytes of one column are
 *
 *		null byte | value, complemented for DESC
 *
 * A NULL has its null byte only.  In keys of a fixed width, zeroes follow it.  Equal keys mean that the
 * operator class finds all columns equal, unless one of the keys is marked inexact.  The columns' own
 * operators must settle ties of inexact keys, and no others.
 *
 * Keys end before the first column that has no encoding.  All keys are inexact then.  The sort's first
 * column must have one.
 *
 * A composite type is a column of its own, which has a null byte only.  Each of its fields is a column
 * behind it (key_record.c).
 *
 * Protocol
 *	  1. gs_key_desc_create, while planning and again in every process that
 *		 runs the sort.  If it returns NULL, PostgreSQL sorts.
 *	  2. For every tuple: slot_getsomeattrs(slot, desc->max_attno), and
 *		 gs_key_write with the slot's arrays.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_H
#define GS_KEY_H

#include "access/attnum.h"
#include "executor/tuptable.h"
#include "stats.h"

/* Longest key in bytes.  Longer keys are cut off, and inexact. */
#define GS_KEY_MAX			8192

/*
 * The widest key of fixed width, null bytes included.  A uuid's key is wider, and so counts as one of
 * varying width.
 */
#define GS_KEY_FIXED_MAX	16

/* gs_key_write() returns these if the key does not fit, or if the row has no key. */
#define GS_KEY_NO_ROOM		UINT32_MAX
#define GS_KEY_NONE			(UINT32_MAX - 1)

/* How a column's value becomes bytes. */
typedef enum GsKeyKind
{
	GS_KEY_BOOL,
	GS_KEY_UINT8,
	GS_KEY_INT16,
	GS_KEY_INT32,
	GS_KEY_INT64,
	GS_KEY_UINT32,
	GS_KEY_UINT64,
	GS_KEY_FLOAT4,
	GS_KEY_FLOAT8,
	GS_KEY_TIMETZ,
	GS_KEY_INTERVAL,
	GS_KEY_RAW,					/* fixed-size bytes passed by reference */
	GS_KEY_TID,
	GS_KEY_ENUM,
	/* from here on, kinds of varying width */
	GS_KEY_TEXT,				/* varlena without NUL */
	GS_KEY_BPCHAR,				/* varlena without NUL; trailing blanks are ignored */
	GS_KEY_NAME,				/* up to the first NUL */
	GS_KEY_BYTEA,				/* varlena with any bytes */
	GS_KEY_NUMERIC,
	GS_KEY_INET,
	GS_KEY_BITS,				/* bit and varbit */
	GS_KEY_OIDVECTOR,
	GS_KEY_ARRAY,
	GS_KEY_RANGE,
	GS_KEY_JSONB,
	GS_KEY_RECORD,				/* its fields are the next columns */
	GS_KEY_ABBREVIATED			/* abbreviated key of the operator class; ends the key, which is inexact */
} GsKeyKind;

/* Columns by which rows are compared, as in plan nodes. */
typedef struct GsColumns
{
	int			n;
	AttrNumber *attnos;
	Oid		   *operators;		/* sort operators, or equality operators */
	Oid		   *collations;
	bool	   *nulls_first;	/* NULL: the columns are compared for equality only */
} GsColumns;

typedef struct GsKeyLabels GsKeyLabels; /* key_enum.c */
typedef struct GsKeyCollator GsKeyCollator; /* key_icu.c */
typedef struct GsKeyElement GsKeyElement;	/* key_value.h */
typedef struct GsKeyAbbreviation GsKeyAbbreviation; /* key_abbrev.c */
typedef struct GsKeyRecord GsKeyRecord; /* key_value.h */
struct GsLibcCollation;			/* key_libc.h */
struct GsKeepGroup;				/* device.h */
struct GsTupleKeys;				/* device/tuple_key.h */

typedef struct GsKeyColumn
{
	AttrNumber	attno;			/* in the input tuple or the record, from 1 */
	Oid			type;			/* input type of the operator class */
	Oid			collation;		/* as the sort has it */
	Oid			sort_operator;
	GsKeyKind	kind;
	bool		desc;
	bool		nulls_first;
	bool		last;			/* the key's last column */
	uint32		width;			/* bytes of a value, null byte excluded; 0: varies */
	GsKeyLabels *labels;		/* of an enum, else NULL */
	GsKeyCollator *collator;	/* of text under an ICU collation, else NULL */
	const struct GsLibcCollation *libc; /* of text under a libc collation,
										 * else NULL */
	GsKeyElement *element;		/* of an array; the bounds of a range; the
								 * strings of jsonb; else NULL */
	GsKeyAbbreviation *abbreviation;	/* else NULL */
	GsKeyRecord *record;		/* of a composite type, else NULL */
	GsKeyRecord *parent;		/* the record whose field it is; NULL: the column is the input tuple's */
} GsKeyColumn;

typedef struct GsKeyDesc
{
	int			ncols;			/* including the fields of composite types */
	int			sort_cols;		/* number of the sort's columns that keys hold completely; keys end before
								 * the others */
	uint32		fixed_width;	/* bytes of every key, null bytes included; 0:
								 * keys vary in length */
	bool		has_libc;		/* a column is, or contains, text under a libc collation */
	bool		abbreviated;	/* a column is of kind ABBREVIATED: keys are inexact */
	bool		may_lack_key;	/* values of one of these, or text under an ICU collation, may have no key */
	bool		ended;			/* keys end before the sort's last column, and are inexact */
	AttrNumber	max_attno;		/* highest attno of the columns */
	GsKeyColumn *cols;
} GsKeyDesc;

/*
 * key_desc.c
 */

/*
 * Describes the keys of a sort by these columns.  types are the columns' types in the input tuple; domains
 * and other binary-coercible types may stand for the operator class's type.  typmods tell the fields of
 * columns of type record; NULL: there are none.  may_end: keys may end before the last column.  Returns a
 * descriptor in CurrentMemoryContext, for this process alone, and sets *refusal to GS_REFUSE_NONE.  Or
 * returns NULL, and *refusal is the reason.  Only reads the system caches, and opens the ICU collators that
 * the session has not used yet.
 */
extern GsKeyDesc *gs_key_desc_create(const GsColumns *columns, const Oid *types, const int32 *typmods,
									 bool may_end, GsRefusal *refusal);

/*
 * Tells where the first ncols columns end in keys.  A device that keeps the first rows of each group needs
 * it: rows with equal values in these columns are one group.  Sets n_columns and columns of *group.
 * Returns false if the encodings do not tell where columns end, or if keys do not order a group's rows.
 */
extern bool gs_key_group(const GsKeyDesc *desc, int ncols, struct GsKeepGroup *group);

/*
 * Tells how a device makes these keys from minimal tuples of this description, or from index tuples.  The
 * last column of index tuples' keys is the TID (device/tuple_key.h).  n_columns is 0 if a device cannot make
 * them.
 */
extern void gs_key_tuple_keys(const GsKeyDesc *desc, TupleDesc tupdesc, bool index_tuples,
							  struct GsTupleKeys *keys);

/*
 * Do keys contain labels of enums?  Their numbers are read by the active snapshot, which must be no older
 * than the rows, and the same in all processes.
 */
extern bool gs_key_has_labels(const GsKeyDesc *desc);

/*
 * Returns the first row of the sample among rows from first to last - 1, or last.  Rows of the sample are
 * compared with their neighbours, if keys contain libc text.  *n counts the rows up to the returned one.
 */
extern int	gs_key_sample(uint32 *n, int first, int last);

/*
 * The sample was out of order.  From now on no sort trusts the libc collation of this column of the sort,
 * counted from 0; -1: of all columns.
 */
extern void gs_key_distrust(const GsKeyDesc *desc, int column);

/*
 * key_write.c
 */

/*
 * Write a tuple's key to dst and return its length.  values and isnull are
 * indexed by attno - 1 (slot->tts_values and slot->tts_isnull).
 *
 * Returns GS_KEY_NO_ROOM if the key needs more than capacity bytes, and capacity is less than GS_KEY_MAX.
 * dst may have been written to.  The caller tries again with a capacity of GS_KEY_MAX, which always
 * succeeds: a longer key is cut off there, and *inexact is set.  Returns GS_KEY_NONE if a value has no key,
 * whatever the capacity.
 *
 * Reads pg_enum at the first value of an enum.
 *
 * Compressed and out-of-line values are fetched into CurrentMemoryContext, and not freed.  So the caller
 * resets that context every few rows.  If a value is longer than the room left, only a part of it is
 * fetched.
 */
extern uint32 gs_key_write(const GsKeyDesc *desc, const Datum *values,
						   const bool *isnull, uint8 *dst, uint32 capacity,
						   bool *inexact);

#endif							/* GS_KEY_H */
