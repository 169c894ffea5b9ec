/*-------------------------------------------------------------------------
 *
 * key_icu_table.h
 *	  ICU's sort keys of plain texts, made from a table of characters.
 *
 * A table belongs to one collation.  What it writes is what ucol_getSortKey()
 * writes, byte by byte; texts that it cannot do that for it leaves to ICU.
 *
 * Protocol
 *	  1. gs_icu_table_create
 *	  2. gs_icu_table_forbid for each contraction of the collation
 *	  3. gs_icu_table_prove; where that fails, gs_icu_table_free
 *	  4. gs_icu_table_put, any number of times; it learns characters as they come
 *
 * Nothing here knows PostgreSQL; this header is plain C11.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_ICU_TABLE_H
#define GS_KEY_ICU_TABLE_H

#include "device/icu_key.h"

typedef enum GsIcuCaseFirst
{
	GS_ICU_CASE_OFF,
	GS_ICU_LOWER_FIRST,
	GS_ICU_UPPER_FIRST
} GsIcuCaseFirst;

/*
 * The options of a collation that a table can be made for.  All others must be as they
 * are in the root collation: nothing is ignored, secondary weights forward, no case level.
 */
typedef struct GsIcuOptions
{
	int			levels;			/* strength: 1 to 3 */
	GsIcuCaseFirst case_first;
	bool		numeric;
} GsIcuOptions;

/*
 * ICU's sort key of a text of UTF-8, with the 0 at its end; false where it does not
 * fit into room bytes.  May not return, by longjmp().
 */
typedef bool (*GsIcuSortKey) (void *arg, const uint8_t *text, size_t len, uint8_t *key,
							  size_t room, size_t *key_len);

typedef struct GsIcuTable GsIcuTable;

/* An empty table; NULL where memory is short. */
extern GsIcuTable *gs_icu_table_create(const GsIcuOptions *options, GsIcuSortKey sort_key,
									   void *arg);

/*
 * A contraction, or a prefix and its character, begins with these two code points:
 * texts where the one follows the other are ICU's.  False where memory is short.
 */
extern bool gs_icu_table_forbid(GsIcuTable *table, uint32_t first, uint32_t second);

/*
 * Learn the most frequent characters, and compare the keys of some hundred texts with ICU's.
 * False where one is not the same, or where the table is good for too little.
 */
extern bool gs_icu_table_prove(GsIcuTable *table);

/*
 * Write a text's sort key, with the 0 at its end.  False where the text is not for the
 * table, or the key may need more than room bytes; then dst may have been written to.
 */
extern bool gs_icu_table_put(GsIcuTable *table, const uint8_t *text, size_t len, uint8_t *dst,
							 size_t room, size_t *written);

extern void gs_icu_table_free(GsIcuTable *table);

/*
 * Learn all characters but ideographs and Hangul syllables, for devices.  The caller frees the result by
 * free(); NULL where memory is short.
 */
extern GsIcuCharacters *gs_icu_table_offer(GsIcuTable *table);

/* Set the bounds of all characters. */
extern void gs_icu_set_bounds(GsIcuCharacters *characters);

#endif							/* GS_KEY_ICU_TABLE_H */
