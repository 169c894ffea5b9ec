/*-------------------------------------------------------------------------
 *
 * key_levels.c
 *	  Leaving out level 1 of libc text in keys (key_levels.h).
 *
 *-------------------------------------------------------------------------
 */
#ifdef POSTGRES_H
#error "key_levels.c is plain C and must not see postgres.h"
#endif

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "order/key_check.h"
#include "order/key_levels.h"
#include "key/key_encode_numeric.h"

#define LEVEL_END 0x01
#define TEXT_END 0x00

#define N_CHARACTERS 128
#define WEIGHT_MAX 8
#define NO_WEIGHT 0x80 /* in place of a length: not known */

/* The weight of a character on level 1. */
typedef struct Weight
{
	uint8_t		len;
	uint8_t		bytes[WEIGHT_MAX]; /* zeroes behind len */
	uint8_t		mask[WEIGHT_MAX]; /* all ones where bytes are */
} Weight;

struct GsKeyLevels
{
	GsKeyLayout	layout;
	Weight		weights[GS_KEY_MAX_LOCALES][N_CHARACTERS];
};

/* A key that is being written. */
typedef struct Output
{
	uint8_t	   *at;
	uint8_t	   *end;
} Output;

static void
learn(Weight *weights, locale_t locale)
{
	weights[0].len = NO_WEIGHT;
	for (int c = 1; c < N_CHARACTERS; c++)
	{
		char		text[2] = {(char) c, 0};
		char		key[64];
		size_t		len = strxfrm_l(key, text, sizeof(key), locale);
		const char *end = len < sizeof(key) ? memchr(key, LEVEL_END, len) : NULL;

		if (end != NULL)
			len = (size_t) (end - key);
		if (len <= WEIGHT_MAX)
		{
			weights[c].len = (uint8_t) len;
			memcpy(weights[c].bytes, key, len);
			memset(weights[c].mask, 0xff, len);
		}
		else
			weights[c].len = NO_WEIGHT;
	}
}

GsKeyLevels *
gs_key_levels_open(const GsKeyLayout *layout)
{
	GsKeyLevels *levels = NULL;

	for (int i = 0; i < layout->n_parts; i++)
		if (layout->parts[i].kind == GS_PART_LIBC && layout->parts[i].depth == 0 && levels == NULL)
			levels = malloc(sizeof(GsKeyLevels));
	if (levels == NULL)
		return NULL;
	levels->layout = *layout;
	memset(levels->weights, 0, sizeof(levels->weights));
	for (int i = 0; i < layout->n_locales; i++)
	{
		locale_t	locale = newlocale(LC_COLLATE_MASK, layout->locales[i], (locale_t) 0);

		if (locale == (locale_t) 0)
		{
			free(levels);
			return NULL;
		}
		learn(levels->weights[i], locale);
		freelocale(locale);
	}
	return levels;
}

void
gs_key_levels_close(GsKeyLevels *levels)
{
	free(levels);
}

static bool
put(Output *output, const uint8_t *bytes, size_t n)
{
	if (n > (size_t) (output->end - output->at))
		return false;
	memcpy(output->at, bytes, n);
	output->at += n;
	return true;
}

/* Where there are 8 bytes, they are looked at, or written, together. */
static inline bool
begins_with(const uint8_t *at, const uint8_t *end, const Weight *weight, uint8_t flip)
{
	uint64_t	flips = flip != 0 ? UINT64_MAX : 0;
	uint64_t	bytes;
	uint64_t	wanted;
	uint64_t	mask;

	if (end - at < WEIGHT_MAX)
	{
		for (int i = 0; i < weight->len; i++)
			if (at[i] != (weight->bytes[i] ^ flip))
				return false;
		return true;
	}
	memcpy(&bytes, at, sizeof(bytes));
	memcpy(&wanted, weight->bytes, sizeof(wanted));
	memcpy(&mask, weight->mask, sizeof(mask));
	return ((bytes ^ wanted ^ flips) & mask) == 0;
}

static inline uint8_t *
put_weight(uint8_t *at, const uint8_t *end, const Weight *weight, uint8_t flip)
{
	if (end - at < WEIGHT_MAX)
		for (int i = 0; i < weight->len; i++)
			at[i] = weight->bytes[i] ^ flip;
	else
	{
		uint64_t	bytes;

		memcpy(&bytes, weight->bytes, sizeof(bytes));
		bytes ^= flip != 0 ? UINT64_MAX : 0;
		memcpy(at, &bytes, sizeof(bytes));
	}
	return at + weight->len;
}

/* The end of level 1 at `at`, if it is that of a text; NULL: it is not. */
static const uint8_t *
skip_level(const Weight *weights, const uint8_t *at, const uint8_t *end, const uint8_t *text,
		   const uint8_t *text_end, uint8_t flip)
{
	for (; text < text_end; text++)
	{
		uint8_t		c = *text ^ flip;
		const Weight *weight;

		if (c >= N_CHARACTERS)
			return NULL;
		weight = &weights[c];
		if (weight->len == NO_WEIGHT || weight->len > end - at)
			return NULL;
		if (!begins_with(at, end, weight, flip))
				return NULL;
		at += weight->len;
	}
	return at;
}

/* Level 1 of a text; false where it is not known, or there is no room. */
static bool
put_level(Output *output, const Weight *weights, const uint8_t *text, const uint8_t *text_end,
		  uint8_t flip)
{
	uint8_t	   *at = output->at; /* what is written may be output, for all the compiler knows */
	const uint8_t *end = output->end;

	for (; text < text_end; text++)
	{
		uint8_t		c = *text ^ flip;
		const Weight *weight;

		if (c >= N_CHARACTERS)
			return false;
		weight = &weights[c];
		if (weight->len == NO_WEIGHT || weight->len > end - at)
			return false;
		at = put_weight(at, end, weight, flip);
	}
	output->at = at;
	return true;
}

/* Copy a text without its level 1, which begins at `at`; returns where it ends; NULL: it is to stay. */
static const uint8_t *
shorten_text(const Weight *weights, const uint8_t *at, const uint8_t *end, uint8_t flip,
			 Output *output)
{
	const uint8_t *level_end = memchr(at, LEVEL_END ^ flip, (size_t) (end - at));
	const uint8_t *text = level_end != NULL ? level_end + 1 : end;
	const uint8_t *text_end = memchr(text, TEXT_END ^ flip, (size_t) (end - text));

	if (text_end == NULL || skip_level(weights, at, end, text, text_end, flip) != level_end ||
		!put(output, text, (size_t) (text_end + 1 - text)))
		return NULL;
	return text_end + 1;
}

/* The reverse. */
static const uint8_t *
remake_text(const Weight *weights, const uint8_t *at, const uint8_t *end, uint8_t flip,
			Output *output)
{
	const uint8_t *text_end = memchr(at, TEXT_END ^ flip, (size_t) (end - at));
	uint8_t		level_end = LEVEL_END ^ flip;

	if (text_end == NULL || !put_level(output, weights, at, text_end, flip) ||
		!put(output, &level_end, 1) || !put(output, at, (size_t) (text_end + 1 - at)))
		return NULL;
	return text_end + 1;
}

typedef const uint8_t *(*ConvertText)(const Weight *weights, const uint8_t *at,
									  const uint8_t *end, uint8_t flip, Output *output);

/* Copy a key with its texts converted; false: that cannot be. */
static bool
convert(const GsKeyLevels *levels, const uint8_t *key, uint32_t len, ConvertText convert_text,
		Output *output)
{
	const uint8_t *at = key;
	const uint8_t *end = key + len;

	for (int i = 0; i < levels->layout.n_parts; i++)
	{
		const GsKeyPart *part = &levels->layout.parts[i];
		uint32_t	next = (uint32_t) (at - key) + 1;

		if (part->kind == GS_PART_REST || part->depth > 0)
			break;
		if (at == end || *at > 1)
			return false;
		if (*at == gs_key_null_byte(true, part->nulls_first))
		{
			if (!put(output, at++, 1))
				return false;
			continue;
		}
		if (part->kind == GS_PART_LIBC)
		{
			if (!put(output, at, 1))
				return false;
			at = convert_text(levels->weights[part->locale], at + 1, end, part->desc ? 0xff : 0, output);
			if (at == NULL)
				return false;
			continue;
		}
		next = gs_key_check_plain_end(part, key, len, next);
		if (next > len || !put(output, at, (size_t) (key + next - at)))
			return false;
		at = key + next;
	}
	return put(output, at, (size_t) (end - at));
}

uint32_t
gs_key_levels_shorten(const void *levels, const uint8_t *key, uint32_t len, uint8_t *dst)
{
	Output		output = {dst, dst + len};

	if (!convert(levels, key, len, shorten_text, &output) || output.at == output.end)
		return 0;
	return (uint32_t) (output.at - dst);
}

uint32_t
gs_key_levels_remake(const void *levels, const uint8_t *src, uint32_t len, uint8_t *dst,
					 uint32_t room)
{
	Output		output = {dst, dst + room};

	return convert(levels, src, len, remake_text, &output) ? (uint32_t) (output.at - dst) : 0;
}
