/*-------------------------------------------------------------------------
 *
 * key_libc_codes.c
 *	  Short codes for the weights of a level (key_libc_codes.h).
 *
 * A gap is a run of weights without a short one.  Codes of a gap have two bytes, and the gap gets as many
 * first bytes as its codes need.  If there are too few first bytes, the largest gaps get codes of three
 * bytes.
 *
 * Tests: unit/plain/test_key_libc
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "key/key_libc_codes.h"

/* Values of a code's second or third byte. */
#define VALUES					(256 - GS_CODE_LEAST)

typedef struct Gap
{
	uint32_t	n;				/* weights */
	int			leads;
	int			bytes;
} Gap;

typedef struct Gaps
{
	Gap			gaps[256 + 1];
	int			n;
	int			leads;			/* first bytes of all codes */
} Gaps;

bool
gs_codes_add(GsCodes *codes, uint32_t weight)
{
	if (!gs_grow((void **) &codes->codes, (uint64_t) codes->n + 1, &codes->max, sizeof(GsCode)))
		return false;
	codes->codes[codes->n] = (GsCode){.weight = weight};
	codes->n++;
	return true;
}

static int
compare_codes(const void *a, const void *b)
{
	uint32_t	x = ((const GsCode *) a)->weight;
	uint32_t	y = ((const GsCode *) b)->weight;

	return x < y ? -1 : x > y;
}

void
gs_codes_sort(GsCodes *codes)
{
	uint32_t	n = 0;

	if (codes->n == 0)
		return;
	qsort(codes->codes, codes->n, sizeof(GsCode), compare_codes);
	for (uint32_t i = 0; i < codes->n; i++)
		if (n == 0 || codes->codes[i].weight != codes->codes[n - 1].weight)
			codes->codes[n++] = codes->codes[i];
	codes->n = n;
}

static GsCode *
find_code(const GsCodes *codes, uint32_t weight)
{
	GsCode		key = {.weight = weight};

	return codes->n == 0 ? NULL :
		bsearch(&key, codes->codes, codes->n, sizeof(GsCode), compare_codes);
}

void
gs_codes_shorten(GsCodes *codes, uint32_t weight)
{
	GsCode	   *code = find_code(codes, weight);

	if (code != NULL)
		code->is_short = true;
}

/* Finds the gaps, and the length of their codes.  Returns false if most first bytes are too few. */
static bool
find_gaps(const GsCodes *codes, int most, Gaps *gaps)
{
	gaps->n = gaps->leads = 0;
	for (uint32_t i = 0; i < codes->n;)
	{
		Gap			gap = {.bytes = 2};

		for (; i < codes->n && !codes->codes[i].is_short; i++)
			gap.n++;
		if (gap.n > 0)
		{
			if (gaps->n == 256)
				return false;
			gap.leads = (int) ((gap.n + VALUES - 1) / VALUES);
			gaps->leads += gap.leads;
			gaps->gaps[gaps->n++] = gap;
		}
		for (; i < codes->n && codes->codes[i].is_short; i++)
			gaps->leads++;
	}
	while (gaps->leads > most)
	{
		Gap		   *largest = NULL;

		for (int i = 0; i < gaps->n; i++)
			if (gaps->gaps[i].bytes == 2 && (largest == NULL || gaps->gaps[i].n > largest->n))
				largest = &gaps->gaps[i];
		if (largest == NULL || largest->leads <= 1)
			return false;
		gaps->leads -= largest->leads;
		largest->bytes = 3;
		largest->leads = (int) ((largest->n + VALUES * VALUES - 1) / (VALUES * VALUES));
		gaps->leads += largest->leads;
	}
	return true;
}

int
gs_codes_count_leads(const GsCodes *codes, int most)
{
	Gaps		gaps;

	return find_gaps(codes, most, &gaps) ? gaps.leads : most + 1;
}

bool
gs_codes_assign(GsCodes *codes, int least, int most)
{
	Gaps		gaps;
	int			lead = least;
	int			next = 0;		/* gap */

	if (!find_gaps(codes, most - least + 1, &gaps))
		return false;
	for (uint32_t i = 0; i < codes->n;)
	{
		GsCode	   *code = &codes->codes[i];
		const Gap  *gap;

		if (code->is_short)
		{
			code->n = 1;
			code->bytes[0] = (uint8_t) lead++;
			i++;
			continue;
		}
		gap = &gaps.gaps[next++];
		for (uint32_t j = 0; j < gap->n; j++, code++)
		{
			uint32_t	rest = j;

			code->n = (uint8_t) gap->bytes;
			for (int k = gap->bytes - 1; k > 0; k--, rest /= VALUES)
				code->bytes[k] = (uint8_t) (GS_CODE_LEAST + rest % VALUES);
			code->bytes[0] = (uint8_t) (lead + (int) rest);
		}
		lead += gap->leads;
		i += gap->n;
	}
	return true;
}

int
gs_codes_put(const GsCodes *codes, uint32_t weight, uint8_t *dst)
{
	const GsCode *code = find_code(codes, weight);

	if (code == NULL)
		return 0;
	memcpy(dst, code->bytes, code->n);
	return code->n;
}

void
gs_codes_free(GsCodes *codes)
{
	free(codes->codes);
	memset(codes, 0, sizeof(*codes));
}
