/*-------------------------------------------------------------------------
 *
 * key_icu_prove.h
 *	  Are the sort keys of an ICU collation in the order of ICU's comparison?
 *
 * Protocol
 *	  1. gs_icu_find_marks, once
 *	  2. gs_icu_find_habits and gs_icu_prove for each collation
 *	  3. gs_icu_has_key for each text whose key does not come from a table (key_icu_table.h)
 *
 * Nothing here knows PostgreSQL; this header is plain C11.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_ICU_PROVE_H
#define GS_KEY_ICU_PROVE_H

#include "key/key_icu_table.h"

/* ICU's functions u_getIntPropertyValue() and ucol_openElements() to ucol_getOffset(). */
typedef struct GsIcuCharacterCalls
{
	int32_t		(*get_property) (int32_t c, int property);
	void	   *(*open_elements) (const void *collator, const uint16_t *chars, int32_t n, int *status);
	void		(*close_elements) (void *elements);
	void		(*set_offset) (void *elements, int32_t offset, int *status);
	int32_t		(*get_offset) (const void *elements);
} GsIcuCharacterCalls;

/* No mark or digit is this or greater. */
#define GS_ICU_MARKS			0x20000

/*
 * Marks are the characters that canonical ordering may move: their decomposition begins with a combining
 * class other than 0.  ICU's comparison does not step back in front of lost marks.
 */
typedef struct GsIcuMarks
{
	uint64_t	marks[GS_ICU_MARKS / 64];
	uint64_t	lost[GS_ICU_MARKS / 64];
	uint64_t	digits[GS_ICU_MARKS / 64];	/* except ASCII */
} GsIcuMarks;

/* What a collation does.  normalizes is also set if it ignores marks. */
typedef struct GsIcuHabits
{
	bool		normalizes;
	bool		numeric;
} GsIcuHabits;

/* root is ICU's root collation, with normalization: all collations step back in front of its marks. */
extern void gs_icu_find_marks(GsIcuMarks *marks, const GsIcuCharacterCalls *calls, const void *root);

/* May a text have a key?  text is valid UTF-8. */
extern bool gs_icu_has_key(const GsIcuMarks *marks, const GsIcuCharacterCalls *calls,
						   const GsIcuHabits *habits, const uint8_t *text, size_t len);

/* A collation.  A deterministic one orders equal texts by their bytes.  Functions may leave by longjmp(). */
typedef struct GsIcuProof
{
	GsIcuSortKey sort_key;
	int			(*compare) (void *arg, const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len);
	bool		(*has_key) (void *arg, const uint8_t *text, size_t len);
	void	   *arg;
	bool		deterministic;
} GsIcuProof;

/* Returns why the collation is refused; NULL: it is not. */
extern const char *gs_icu_prove(const GsIcuProof *proof);

/* Calls sort_key() only. */
extern void gs_icu_find_habits(const GsIcuProof *proof, GsIcuHabits *habits);

#endif							/* GS_KEY_ICU_PROVE_H */
