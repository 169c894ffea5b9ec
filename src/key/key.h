/*-------------------------------------------------------------------------
 *
 * key.h
 *	  The columns of a sort as one byte string per row.
 *
 * A GsKeyDesc says how the sort columns of a tuple become a key: a byte
 * string whose memcmp order (a prefix before the longer string) is the order
 * that PostgreSQL would put the tuples in.  The bytes of one column are
 *
 *		null byte | value, complemented for DESC
 *
 * with nothing after the null byte of a NULL, except that keys of a fixed
 * width are filled up with zeroes.  Equal keys mean equal to the operator
 * class, column by column, unless one of them is marked inexact; then, and
 * only then, the columns' own operators must settle the tie.
 *
 * Keys end before the first column that cannot be in them, if it is not the sort's first one.  Then all
 * are inexact.
 *
 * A value of a composite type is a column of its own, which has no bytes behind its null byte, and one
 * column for each field (key_record.c).
 *
 * Protocol
 *	  1. gs_key_desc_create, while planning and again in every process that
 *		 runs the sort; where it returns NULL, the sort is PostgreSQL's.
 *	  2. slot_getsomeattrs(slot, desc->max_attno); gs_key_write with the
 *		 slot's arrays, for every tuple.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_H
#define GS_KEY_H

#include "access/attnum.h"
#include "executor/tuptable.h"
#include "stats.h"

/* Longest key in bytes; what is beyond is cut off and the key inexact. */
#define GS_KEY_MAX			8192

/* Widest key, with its first bytes for NULLs, that is treated as one of fixed width: a uuid's is wider. */
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
	/* from here on of varying width */
	GS_KEY_TEXT,				/* varlena without NUL */
	GS_KEY_BPCHAR,				/* varlena without NUL, trailing blanks do not
								 * count */
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
	GS_KEY_ABBREVIATED			/* by the operator class; ends the key, which
								 * is inexact */
} GsKeyKind;

/* Columns that rows are compared by, as plan nodes have them. */
typedef struct GsColumns
{
	int			n;
	AttrNumber *attnos;
	Oid		   *operators;		/* that sort, or of equality */
	Oid		   *collations;
	bool	   *nulls_first;	/* NULL: nothing is sorted by them */
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
	uint32		width;			/* bytes of a value, without the null byte; 0:
								 * varies */
	GsKeyLabels *labels;		/* of an enum, else NULL */
	GsKeyCollator *collator;	/* of text whose order is not that of its
								 * bytes, else NULL */
	const struct GsLibcCollation *libc; /* of text under a libc collation,
										 * else NULL */
	GsKeyElement *element;		/* of an array; the bounds of a range; the
								 * strings of jsonb; else NULL */
	GsKeyAbbreviation *abbreviation;	/* else NULL */
	GsKeyRecord *record;		/* of a composite type, else NULL */
	GsKeyRecord *parent;		/* that it is a field of; NULL: it is the input tuple's */
} GsKeyColumn;

typedef struct GsKeyDesc
{
	int			ncols;			/* with the fields of composite types */
	int			sort_cols;		/* the sort's first columns that keys hold as a whole; where it has
								 * more, the key ends before them */
	uint32		fixed_width;	/* bytes of every key, null bytes included; 0:
								 * keys vary in length */
	bool		has_libc;		/* a column is, or holds, text under a libc collation; such text may have no
								 * key */
	bool		abbreviated;	/* a column is: keys are inexact, and a value of it may have no key */
	bool		ended;			/* keys end before the sort's last column: they are inexact */
	AttrNumber	max_attno;		/* highest attno of the columns */
	GsKeyColumn *cols;
} GsKeyDesc;

/*
 * key_desc.c
 */

/*
 * Describe the keys of a sort by these columns; types are theirs in the input tuple (domains and other
 * binary-coercible types included), and typmods say what columns of type record hold; NULL: there are
 * none.  may_end: keys need not hold all columns.
 * Returns a descriptor allocated in CurrentMemoryContext, for this process alone, and
 * sets *refusal to GS_REFUSE_NONE, or NULL and the reason.  Reads the system caches only,
 * and opens the ICU collators that the session has not used yet.
 */
extern GsKeyDesc *gs_key_desc_create(const GsColumns *columns, const Oid *types, const int32 *typmods,
									 bool may_end, GsRefusal *refusal);

/*
 * Where the first ncols columns end in keys, for a device that is to keep the first rows of each
 * group of rows that are equal in them: sets n_columns and columns of *group.  False: their
 * encodings do not tell, or the keys do not tell the order of a group's rows.
 */
extern bool gs_key_group(const GsKeyDesc *desc, int ncols, struct GsKeepGroup *group);

/*
 * How a device makes these keys from minimal tuples of this description, or from index tuples: then the last
 * column is their TID (device/tuple_key.h).
 * n_columns is 0 if it cannot.
 */
extern void gs_key_tuple_keys(const GsKeyDesc *desc, TupleDesc tupdesc, bool index_tuples,
							  struct GsTupleKeys *keys);

/*
 * Do keys hold labels of enums?  Their numbers are read by the active snapshot,
 * which must be no older than the rows, and the same in all processes.
 */
extern bool gs_key_has_labels(const GsKeyDesc *desc);

/*
 * Returns the first row of the sample among rows from first to last - 1, or last.  Rows of the sample are
 * compared with their neighbours, if keys hold libc text.  *n counts the rows up to the returned one.
 */
extern int	gs_key_sample(uint32 *n, int first, int last);

/*
 * The sample was out of order: from now on no sort trusts the libc collation of a column of the sort, from 0;
 * -1: of all columns.
 */
extern void gs_key_distrust(const GsKeyDesc *desc, int column);

/*
 * key_write.c
 */

/*
 * Write a tuple's key to dst and return its length.  values and isnull are
 * indexed by attno - 1 (slot->tts_values and slot->tts_isnull).
 *
 * If the key would need more than capacity bytes and capacity is less than
 * GS_KEY_MAX, returns GS_KEY_NO_ROOM; dst may have been written to.  The caller
 * then tries again with at least GS_KEY_MAX, which always succeeds: a key
 * longer than GS_KEY_MAX is cut there, and *inexact set.  If a value has no key, it
 * returns GS_KEY_NONE, whatever the capacity.
 *
 * The first value of an enum reads pg_enum.
 *
 * Compressed and out-of-line values are fetched into CurrentMemoryContext and
 * not freed: call this in a context that is reset every few rows.  If a value is
 * longer than the room left, only the part that fits is fetched.
 */
extern uint32 gs_key_write(const GsKeyDesc *desc, const Datum *values,
						   const bool *isnull, uint8 *dst, uint32 capacity,
						   bool *inexact);

#endif							/* GS_KEY_H */
