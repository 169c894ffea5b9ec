/*-------------------------------------------------------------------------
 *
 * key_levels.c
 *	  Leaving out level 1 of libc text in keys (key_levels.h).
 *
 * Tests: unit/plain/test_key_check, regress/spill
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

#define N_BYTES 256
#define WEIGHT_MAX 8
#define NO_WEIGHT 0x80 /* in place of a length: not known */

/* The longest level 1 that is left out.  Keys are no longer: see GsSpillShorten. */
#define LEVEL_MAX 8192

/* The weights of characters on level 1. */
typedef struct Weights
{
	uint8_t		lens[N_BYTES];
	uint64_t	bytes[N_BYTES]; /* as they lie in memory; zeroes behind the length */
} Weights;

struct GsKeyLevels
{
	GsKeyLayout	layout;
	Weights		weights[GS_KEY_MAX_LOCALES];
};

/* A key that is being written. */
typedef struct Output
{
	uint8_t	   *at;
	uint8_t	   *end;
} Output;

static void
learn(Weights *weights, locale_t locale)
{
	memset(weights, 0, sizeof(*weights));
	memset(weights->lens, NO_WEIGHT, sizeof(weights->lens));
	/* other bytes are parts of characters */
	for (int c = 1; c < 128; c++)
	{
		char		text[2] = {(char) c, 0};
		char		key[64];
		size_t		len = strxfrm_l(key, text, sizeof(key), locale);
		const char *end = len < sizeof(key) ? memchr(key, LEVEL_END, len) : NULL;

		if (end != NULL)
			len = (size_t) (end - key);
		if (len > WEIGHT_MAX)
			continue;
		weights->lens[c] = (uint8_t) len;
		memcpy(&weights->bytes[c], key, len);
	}
}

GsKeyLevels *
gs_key_levels_open(const GsKeyLayout *layout)
{
	GsKeyLevels *levels = NULL;

	for (int i = 0; i < layout->n_parts && layout->parts[i].depth == 0 && !layout->parts[i].jsonb; i++)
		if (layout->parts[i].kind == GS_PART_LIBC && levels == NULL)
			levels = malloc(sizeof(GsKeyLevels));
	if (levels == NULL)
		return NULL;
	levels->layout = *layout;
	for (int i = 0; i < layout->n_locales; i++)
	{
		locale_t	locale = newlocale(LC_COLLATE_MASK, layout->locales[i], (locale_t) 0);

		if (locale == (locale_t) 0)
		{
			free(levels);
			return NULL;
		}
		learn(&levels->weights[i], locale);
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

/*
 * Make level 1 of a text, complemented where flip is 0xff, in level, which has room for
 * LEVEL_MAX + WEIGHT_MAX bytes.  Returns its bytes; SIZE_MAX: it is not known, or longer than LEVEL_MAX.
 *
 * All bytes of a weight's room are written, and those behind it overwritten: that
 * takes less time than a look at its length.
 */
static size_t
make_level(const Weights *weights, const uint8_t *text, const uint8_t *text_end, uint8_t flip,
		   uint8_t *level)
{
	uint64_t	flips = flip != 0 ? UINT64_MAX : 0;
	uint8_t		seen = 0;
	size_t		n = 0;

	for (; text < text_end && n <= LEVEL_MAX; text++)
	{
		uint8_t		c = *text ^ flip;
		uint64_t	bytes = weights->bytes[c] ^ flips;
		uint8_t		len = weights->lens[c];

		memcpy(level + n, &bytes, sizeof(bytes));
		seen |= len;
		n += len & ~NO_WEIGHT;
	}
	return (seen & NO_WEIGHT) || n > LEVEL_MAX ? SIZE_MAX : n;
}

/* Copy a text without its level 1, which begins at `at`; returns where it ends; NULL: it is to stay. */
static const uint8_t *
shorten_text(const Weights *weights, const uint8_t *at, const uint8_t *end, uint8_t flip,
			 Output *output)
{
	const uint8_t *level_end = memchr(at, LEVEL_END ^ flip, (size_t) (end - at));
	const uint8_t *text = level_end != NULL ? level_end + 1 : end;
	const uint8_t *text_end = memchr(text, TEXT_END ^ flip, (size_t) (end - text));
	uint8_t		level[LEVEL_MAX + WEIGHT_MAX];

	if (text_end == NULL ||
		make_level(weights, text, text_end, flip, level) != (size_t) (level_end - at) ||
		memcmp(level, at, (size_t) (level_end - at)) != 0 ||
		!put(output, text, (size_t) (text_end + 1 - text)))
		return NULL;
	return text_end + 1;
}

/* The reverse. */
static const uint8_t *
remake_text(const Weights *weights, const uint8_t *at, const uint8_t *end, uint8_t flip,
			Output *output)
{
	const uint8_t *text_end = memchr(at, TEXT_END ^ flip, (size_t) (end - at));
	uint8_t		level_end = LEVEL_END ^ flip;
	uint8_t		level[LEVEL_MAX + WEIGHT_MAX];
	size_t		n = text_end != NULL ? make_level(weights, at, text_end, flip, level) : SIZE_MAX;

	if (n == SIZE_MAX || !put(output, level, n) || !put(output, &level_end, 1) ||
		!put(output, at, (size_t) (text_end + 1 - at)))
		return NULL;
	return text_end + 1;
}

typedef const uint8_t *(*ConvertText)(const Weights *weights, const uint8_t *at,
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

		if (part->kind == GS_PART_REST || part->depth > 0 || part->jsonb)
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
			at = convert_text(&levels->weights[part->locale], at + 1, end, part->desc ? 0xff : 0, output);
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
