/*-------------------------------------------------------------------------
 *
 * key_icu_table.h
 *	  ICU's sort keys of plain texts, made from a table of characters.
 *
 * A table belongs to one collation.  It writes the bytes that ucol_getSortKey() writes.  It leaves to ICU
 * the texts for which it cannot.
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
 * The options of a collation that a table supports.  All others must be as in the root collation: no
 * character is ignored, secondary weights are forward, and there is no case level.
 */
typedef struct GsIcuOptions
{
	int			levels;			/* strength: 1 to 3 */
	GsIcuCaseFirst case_first;
	bool		numeric;
} GsIcuOptions;

/*
 * Returns ICU's sort key of a text of UTF-8, with the 0 at its end.  False: it does not fit into room
 * bytes.  The function may leave by longjmp().
 */
typedef bool (*GsIcuSortKey) (void *arg, const uint8_t *text, size_t len, uint8_t *key,
							  size_t room, size_t *key_len);

typedef struct GsIcuTable GsIcuTable;

/* Returns an empty table; NULL: memory is short. */
extern GsIcuTable *gs_icu_table_create(const GsIcuOptions *options, GsIcuSortKey sort_key,
									   void *arg);

/*
 * Tells the table that a contraction, or a prefix and its character, begins with these two code points.
 * Texts that have them side by side are left to ICU.  False: memory is short.
 */
extern bool gs_icu_table_forbid(GsIcuTable *table, uint32_t first, uint32_t second);

/*
 * Learns the most frequent characters, and compares the keys of some hundred texts with ICU's.  False: a
 * key differs, or the table knows too few characters.
 */
extern bool gs_icu_table_prove(GsIcuTable *table);

/*
 * Writes a text's sort key, with the 0 at its end.  False: the table does not serve for the text, or the
 * key may need more than room bytes.  Then dst may have been written to.
 */
extern bool gs_icu_table_put(GsIcuTable *table, const uint8_t *text, size_t len, uint8_t *dst,
							 size_t room, size_t *written);

extern void gs_icu_table_free(GsIcuTable *table);

/*
 * Learns all characters except ideographs and Hangul syllables, for devices.  The caller frees the result
 * by free().  NULL: memory is short.
 */
extern GsIcuCharacters *gs_icu_table_offer(GsIcuTable *table);

/* Set the bounds of all characters. */
extern void gs_icu_set_bounds(GsIcuCharacters *characters);

#endif							/* GS_KEY_ICU_TABLE_H */
