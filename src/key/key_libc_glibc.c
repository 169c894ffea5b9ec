/*-------------------------------------------------------------------------
 *
 * key_libc_glibc.c
 *	  Reading a locale's order from glibc's tables (key_libc_glibc.h).
 *
 * Other C libraries have no such tables.  Their locales count as ordered by bytes, as musl's strcoll()
 * orders.  The proof checks that (key_libc_prove.c).
 *
 * Tests: unit/plain/test_key_libc, regress/keys_libc
 *
 *-------------------------------------------------------------------------
 */
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "key/key_libc_glibc.h"

#ifdef __GLIBC__

static uint32_t
read_number(nl_item item, locale_t locale)
{
	const char *value = nl_langinfo_l(item, locale);
	uint32_t	number;

	/* glibc keeps a union of a pointer and a number, which is its first bytes */
	memcpy(&number, &value, sizeof(number));
	return number;
}

static bool
add_sequence(GsGlibcTables *tables, const uint8_t *bytes, int len, uint32_t index, const char **why)
{
	GsGlibcSequence *sequence;

	if (!gs_grow((void **) &tables->sequences, (uint64_t) tables->n_sequences + 1,
					  &tables->max_sequences, sizeof(GsGlibcSequence)))
	{
		*why = "memory is short";
		return false;
	}
	sequence = &tables->sequences[tables->n_sequences];
	memset(sequence, 0, sizeof(*sequence));
	memcpy(sequence->bytes, bytes, len);
	sequence->len = len;
	sequence->order = tables->n_sequences++;
	sequence->index = index;
	return true;
}

/*
 * Adds the sequences of a range.  Their n last bytes go from first to last.  A byte behind the first byte
 * that differs takes all values that the encoding allows.
 */
static bool
add_range(GsGlibcTables *tables, uint8_t lead, const uint8_t *first, const uint8_t *last, int n,
		  const int32_t *indexes, bool utf8, const char **why)
{
	const uint8_t lowest = 0x80;
	const uint8_t highest = utf8 ? 0xbf : 0xff;
	uint8_t		bytes[GS_GLIBC_SEQUENCE];
	int			same = 0;

	while (same < n && first[same] == last[same])
		same++;
	bytes[0] = lead;
	memcpy(bytes + 1, first, n);
	for (;;)
	{
		int32_t		distance = 0;
		int			i;

		for (i = same; i < n; i++)
			distance = distance * 256 + bytes[i + 1] - first[i];
		if (!add_sequence(tables, bytes, n + 1, (uint32_t) indexes[distance], why))
			return false;
		if (memcmp(bytes + 1, last, n) >= 0)
			return true;
		for (i = n; i > 1 && bytes[i] >= highest; i--)
			bytes[i] = lowest;
		bytes[i]++;
	}
}

/* Adds the sequences of a list. */
static bool
add_list(GsGlibcTables *tables, uint8_t lead, const uint8_t *at, const int32_t *indirect, bool utf8,
		 const char **why)
{
	for (;;)
	{
		uint8_t		bytes[GS_GLIBC_SEQUENCE];
		int32_t		index;
		int			n;
		int			used;

		memcpy(&index, at, sizeof(index));
		n = at[sizeof(index)];
		at += sizeof(index) + 1;
		if (n >= GS_GLIBC_SEQUENCE)
		{
			*why = "a sequence of characters is too long";
			return false;
		}
		if (index >= 0)
		{
			bytes[0] = lead;
			memcpy(bytes + 1, at, n);
			if (!add_sequence(tables, bytes, n + 1, (uint32_t) index, why))
				return false;
			if (n == 0)
				return true;
			used = n;
		}
		else
		{
			if (!add_range(tables, lead, at, at + n, n, indirect - index, utf8, why))
				return false;
			used = 2 * n;
		}
		at += used + (4 - (used + 1) % 4) % 4;
	}
}

bool
gs_glibc_read(GsGlibcTables *tables, locale_t locale, bool utf8, const char **why)
{
	uint32_t	levels = read_number(_NL_COLLATE_NRULES, locale);
	const int32_t *table = (const int32_t *) nl_langinfo_l(_NL_COLLATE_TABLEMB, locale);
	const uint8_t *extra = (const uint8_t *) nl_langinfo_l(_NL_COLLATE_EXTRAMB, locale);
	const int32_t *indirect = (const int32_t *) nl_langinfo_l(_NL_COLLATE_INDIRECTMB, locale);

	memset(tables, 0, sizeof(*tables));
	if (levels == 0)
		return true;
	if (levels > 255)
	{
		*why = "its tables are of an unknown form";
		return false;
	}
	tables->levels = (int) levels;
	tables->rules = (const uint8_t *) nl_langinfo_l(_NL_COLLATE_RULESETS, locale);
	tables->weights = (const uint8_t *) nl_langinfo_l(_NL_COLLATE_WEIGHTMB, locale);
	for (int lead = 1; lead < 256; lead++)
	{
		uint8_t		byte = (uint8_t) lead;

		if (table[lead] >= 0 ? !add_sequence(tables, &byte, 1, (uint32_t) table[lead], why) :
			!add_list(tables, byte, extra - table[lead], indirect, utf8, why))
			return false;
	}
	return true;
}

#else

bool
gs_glibc_read(GsGlibcTables *tables, locale_t locale, bool utf8, const char **why)
{
	(void) locale;
	(void) utf8;
	(void) why;
	memset(tables, 0, sizeof(*tables));
	return true;
}

#endif

const uint8_t *
gs_glibc_weights(const GsGlibcTables *tables, uint32_t index, int level, int *n)
{
	const uint8_t *at = tables->weights + (index & 0xffffff);

	for (; level > 0; level--)
		at += 1 + at[0];
	*n = at[0];
	return at + 1;
}

uint32_t
gs_glibc_weight(const uint8_t **at)
{
	const uint8_t *bytes = *at;
	uint32_t	weight = bytes[0];
	int			n = 1;

	if (weight >= 0x80)
	{
		while (n < 6 && (bytes[0] & (0x80 >> n)) != 0)
			n++;
		weight &= 0x7fu >> n;
		for (int i = 1; i < n; i++)
			weight = weight << 6 | (bytes[i] & 0x3f);
	}
	*at = bytes + n;
	return weight;
}
