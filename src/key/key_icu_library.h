/*-------------------------------------------------------------------------
 *
 * key_icu_library.h
 *	  The ICU that the server uses, called directly.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_ICU_LIBRARY_H
#define GS_KEY_ICU_LIBRARY_H

#include "key/key_icu_prove.h"
#include "key/key_icu_table.h"

/* ICU's iterator over UTF-8: some integers and pointers, 120 bytes. */
typedef struct GsIcuIterator
{
	uint64		space[32];
} GsIcuIterator;

/* ICU's functions for sort keys.  *status > 0 is an error. */
typedef struct GsIcuSortKeys
{
	int32		(*get) (const void *collator, const uint16 *chars, int32 n, uint8 *result,
						int32 size);
	void		(*set_utf8) (GsIcuIterator *iterator, const char *string, int32 length);
	int32		(*next_part) (const void *collator, GsIcuIterator *iterator, uint32 state[2],
							  uint8 *result, int32 count, int *status);
} GsIcuSortKeys;

/*
 * Returns a collator of a locale, of the server's version; NULL: there is none.  Raises the server's error
 * for a locale that the server does not know.
 */
extern void *gs_icu_open(const char *locale);
extern void gs_icu_close(void *collator);

/* Valid once a collator has been opened. */
extern const GsIcuSortKeys *gs_icu_sort_keys(void);
extern const GsIcuCharacterCalls *gs_icu_character_calls(void);

/* Returns the marks of ICU, from malloc(); NULL: memory is short. */
extern GsIcuMarks *gs_icu_make_marks(void);

/*
 * Returns a table of the collator's characters, proven on the sort keys of sort_key(); NULL: there is none.
 */
extern GsIcuTable *gs_icu_make_table(void *collator, GsIcuSortKey sort_key, void *arg);

#endif							/* GS_KEY_ICU_LIBRARY_H */
