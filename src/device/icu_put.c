/*-------------------------------------------------------------------------
 *
 * icu_put.c
 *	  Writing ICU's sort keys by a table of characters (icu_key.h).
 *
 * key/key_icu_table.c explains why these are ICU's sort keys.
 *
 * Tests: unit/plain/test_key_icu, regress/keys_icu
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "device/icu_key.h"

/*
 * Writes a character's primary weights.  lead is the last lead byte if the next weight may leave it out,
 * else 0.  Writes up to GS_ICU_MAX_PRIMARY + 2 bytes, whatever it returns.  It has no branches, as the
 * processor could not predict them.
 */
static inline uint8_t *
put_primary(uint8_t *at, const GsIcuCharacter *character, uint32_t *lead)
{
	uint32_t	compressed = *lead != 0;
	uint32_t	spared = compressed & (character->compressed == *lead);
	uint32_t	n = character->n_primary - spared;

	*at = character->primary[0] < *lead ? GS_ICU_COMPRESSION_LESS : GS_ICU_COMPRESSION_GREATER;
	*lead = character->compressed;
	at += compressed - spared;
	memcpy(at, character->primary + spared, GS_ICU_MAX_PRIMARY + 1);
	return at + n;
}

bool
gs_icu_put(const GsIcuCharacters *table, const uint8_t *text, size_t len, uint8_t *dst, size_t room,
		   size_t *written, uint32_t *unknown)
{
	const uint8_t *end = text + len;
	uint8_t    *at = dst;
	uint8_t    *last;
	uint8_t		bytes[GS_ICU_LOWER_LEVELS][GS_ICU_MAX_BYTES];
	GsTextLevel lower[GS_ICU_LOWER_LEVELS];
	uint32_t	previous = 0;
	uint32_t	lead = 0;

	*unknown = 0;
	if (room < GS_ICU_MAX_PRIMARY + 2)
		return false;
	last = dst + room - (GS_ICU_MAX_PRIMARY + 2);
	for (int i = 0; i < GS_ICU_LOWER_LEVELS; i++)
		lower[i] = (GsTextLevel){&bytes[i][0], GS_ICU_MAX_BYTES, 0, 0};

	for (;;)
	{
		const uint8_t *start = text;
		const uint8_t *stop = end;
		const GsIcuCharacter *character;
		uint32_t	c;
		uint32_t	n_bytes;

		if (at > last)
			return false;
		if ((size_t) (last - at) / (GS_ICU_MAX_PRIMARY + 1) < (size_t) (end - text))
			stop = text + (last - at) / (GS_ICU_MAX_PRIMARY + 1);
		while (text < stop && table->bytes[*text].state == GS_ICU_PLAIN)
			at = put_primary(at, &table->bytes[*text++], &lead);
		if (text > start)
			previous = text[-1];
		for (int i = 0; i < GS_ICU_LOWER_LEVELS; i++)
			lower[i].common += (uint32_t) (text - start);
		if (text == end)
			break;

		character = gs_icu_find(table, text, (size_t) (end - text), &c, &n_bytes);
		if (character == NULL || gs_text_is_pair(&table->text, previous, c))
			return false;
		if (character->state < GS_ICU_LEARNT)
		{
			if (character->state == GS_ICU_UNKNOWN)
				*unknown = c;
			return false;
		}
		text += n_bytes;
		previous = c;
		if (character->n_primary > 0)
			at = put_primary(at, character, &lead);
		for (int i = 0; i < GS_ICU_LOWER_LEVELS; i++)
			gs_icu_level_weights(&lower[i], table->counts[i], &character->lower[i]);
	}

	for (int i = 0; i + 1 < table->text.levels; i++)
	{
		/* the byte that ends a level is less than the common weight */
		gs_text_level_common(&lower[i], table->counts[i], true);
		if (lower[i].n > GS_ICU_MAX_BYTES || room - (size_t) (at - dst) <= lower[i].n)
			return false;
		*at++ = GS_TEXT_LEVEL_END;
		memcpy(at, bytes[i], lower[i].n);
		at += lower[i].n;
	}
	if (room == (size_t) (at - dst))
		return false;
	*at++ = GS_TEXT_KEY_END;
	*written = (size_t) (at - dst);
	return true;
}
