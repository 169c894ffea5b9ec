/*-------------------------------------------------------------------------
 *
 * icu_key.h
 *	  The characters of an ICU collation, and ICU's sort keys of plain texts.
 *
 * key/key_icu_table.c explains the keys, and learns characters.  The host device calls gs_icu_put(), a GPU
 * writes the same bytes in its own way (text_key.h).  Feeders make the key if the table lacks a
 * character, or if two characters of the text begin a contraction.
 *
 * Nothing here knows PostgreSQL; this header is plain C11 and CUDA C++.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ICU_KEY_H
#define GS_ICU_KEY_H

#include "device/text_key.h"

/* A byte at the end of a run of weights with a compressed lead byte: the next weight is less, or greater. */
#define GS_ICU_COMPRESSION_LESS		0x03
#define GS_ICU_COMPRESSION_GREATER	0xff

/* Levels behind the first. */
#define GS_ICU_LOWER_LEVELS		2

/* The most bytes of a character's weights, at the first level and at the others. */
#define GS_ICU_MAX_PRIMARY		7
#define GS_ICU_MAX_WEIGHTS		4

/* gs_icu_put() writes keys with levels of no more bytes behind the first. */
#define GS_ICU_MAX_BYTES		4000

#define GS_ICU_PAGES			256
#define GS_ICU_PAGE				256 /* characters */

/* The order matters: from LEARNT on, a character is in the table. */
typedef enum GsIcuState
{
	GS_ICU_UNKNOWN,
	GS_ICU_REFUSED,
	GS_ICU_LEARNT,
	GS_ICU_PLAIN				/* ASCII, not the second character of a contraction, with one common weight
								 * at each level behind the first */
} GsIcuState;

/* A character's weights of a level: common weights, other weights, and then common weights. */
typedef struct GsIcuWeights
{
	uint8_t		before;
	uint8_t		after;			/* 0 if n is 0 */
	uint8_t		n;				/* bytes of other weights */
	bool		less;			/* the first of the other weights is less than the common weight */
	uint8_t		bytes[GS_ICU_MAX_WEIGHTS];
} GsIcuWeights;

typedef struct GsIcuCharacter
{
	uint8_t		state;			/* a GsIcuState */
	uint8_t		compressed;		/* the lead byte if it is compressed, else 0 */
	uint8_t		n_primary;
	uint8_t		primary[GS_ICU_MAX_PRIMARY + 2];	/* padded */
	GsIcuWeights lower[GS_ICU_LOWER_LEVELS];
} GsIcuCharacter;

typedef struct GsIcuCharacters
{
	GsTextTable text;			/* its pairs begin contractions */
	GsTextCounts counts[GS_ICU_LOWER_LEVELS];
	GsIcuCharacter bytes[256];	/* ASCII; the others stay unknown */
	uint16_t	page_of[GS_ICU_PAGES];	/* number of the page of other characters, by code point, from 1;
										 * 0: none */
	GsIcuCharacter pages[][GS_ICU_PAGE];
} GsIcuCharacters;

/*
 * Returns the character that text begins with, and sets its bytes and its code point.  NULL: the table
 * cannot have it.
 */
GS_TUPLE_INLINE const GsIcuCharacter *
gs_icu_find(const GsIcuCharacters *table, const uint8_t *text, size_t left, uint32_t *c, uint32_t *n_bytes)
{
	uint32_t	page;

	if (text[0] < GS_TEXT_ASCII)
	{
		*c = text[0];
		*n_bytes = 1;
		return &table->bytes[*c];
	}
	else if (text[0] >= 0xc2 && text[0] < 0xe0 && left >= 2)
	{
		*c = (uint32_t) (text[0] & 0x1f) << 6 | (text[1] & 0x3fu);
		*n_bytes = 2;
	}
	else if (text[0] >= 0xe0 && text[0] < 0xf0 && left >= 3)
	{
		*c = (uint32_t) (text[0] & 0x0f) << 12 | (text[1] & 0x3fu) << 6 | (text[2] & 0x3fu);
		*n_bytes = 3;
		if (*c < 0x800)
			return NULL;
	}
	else
		return NULL;
	page = table->page_of[*c / GS_ICU_PAGE];
	return page > 0 ? &table->pages[page - 1][*c % GS_ICU_PAGE] : NULL;
}

/* Writes a character's weights of a level behind the first. */
GS_TUPLE_INLINE void
gs_icu_level_weights(GsTextLevel *level, GsTextCounts counts, const GsIcuWeights *weights)
{
	level->common += weights->before;
	if (weights->n == 0)
		return;
	gs_text_level_common(level, counts, weights->less);
	for (uint32_t i = 0; i < weights->n; i++)
		gs_text_level_byte(level, weights->bytes[i]);
	level->common = weights->after;
}

#ifdef __cplusplus
extern "C"
{
#endif

/*
 * Writes a text's sort key, with the 0 at its end.  False: the table does not serve for the text, or the
 * key may need more than room bytes.  Then dst may have been written to.  *unknown is a character of the
 * text that the table does not know yet, or 0.
 */
extern bool gs_icu_put(const GsIcuCharacters *table, const uint8_t *text, size_t len, uint8_t *dst,
					   size_t room, size_t *written, uint32_t *unknown);

#ifdef __cplusplus
}
#endif

/* Counts or writes the levels of a text's key.  Returns false if the table lacks a character. */
GS_TUPLE_INLINE bool
gs_icu_key_read(const GsIcuCharacters *table, const uint8_t *text, uint32_t len, GsTextLevel *levels)
{
	const uint8_t *end = text + len;
	uint32_t	lead = 0;

	while (text < end)
	{
		uint32_t	c;
		uint32_t	n_bytes;
		const GsIcuCharacter *character = gs_icu_find(table, text, (size_t) (end - text), &c, &n_bytes);

		if (character == NULL || character->state < GS_ICU_LEARNT)
			return false;
		text += n_bytes;
		if (character->n_primary > 0)
		{
			uint32_t	spared = lead != 0 && character->compressed == lead;

			if (lead != 0 && !spared)
				gs_text_level_byte(&levels[0], character->primary[0] < lead ? GS_ICU_COMPRESSION_LESS :
								   GS_ICU_COMPRESSION_GREATER);
			for (uint32_t i = spared; i < character->n_primary; i++)
				gs_text_level_byte(&levels[0], character->primary[i]);
			lead = character->compressed;
		}
		for (int i = 0; i < GS_ICU_LOWER_LEVELS; i++)
			gs_icu_level_weights(&levels[i + 1], table->counts[i], &character->lower[i]);
	}
	for (int i = 0; i < GS_ICU_LOWER_LEVELS; i++)
		gs_text_level_common(&levels[i + 1], table->counts[i], true);
	return true;
}

#endif							/* GS_ICU_KEY_H */
