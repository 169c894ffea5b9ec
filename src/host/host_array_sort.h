/*-------------------------------------------------------------------------
 *
 * host_array_sort.h
 *	  A template: sorting unsigned integers in ascending order.
 *
 * host_arrays.c includes it once for each width, with these macros set:
 *
 *	  GS_CODE		  the integer type
 *	  GS_CODE_SORT	  name of the function to be made:
 *					  void GS_CODE_SORT(GS_CODE *codes, size_t n, GS_CODE *scratch,
 *									   void (*tick) (void))
 *					  GS_CODE_SORT_flipped orders the integers with some of their bits
 *					  flipped, and GS_CODE_SORT_floats the bits of floats
 *	  GS_CODE_DIGITS  bytes of GS_CODE that a radix sort has to pass over
 *	  GS_CODE_RADIX	  numbers from which on it is the faster one
 *
 * Equal integers are the same, so the sort need not be stable.  Arrays that are in order already are found
 * first.  Short arrays are sorted by insertion in runs of sixteen, which are merged without branches that
 * depend on the data.  Longer arrays are sorted by a radix sort of 8-bit digits, the lowest first.  One
 * pass makes all counts, and digits that are the same everywhere are left out.
 *
 *-------------------------------------------------------------------------
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef GS_CODE

#define GS_CODE_PASTE_(a, b) a##b
#define GS_CODE_PASTE(a, b) GS_CODE_PASTE_(a, b)
#define GS_CODE_INSERT GS_CODE_PASTE(GS_CODE_SORT, _insert)
#define GS_CODE_MERGE GS_CODE_PASTE(GS_CODE_SORT, _merge)
#define GS_CODE_DIGIT_SORT GS_CODE_PASTE(GS_CODE_SORT, _digits)
#define GS_CODE_FLIPPED GS_CODE_PASTE(GS_CODE_SORT, _flipped)
#define GS_CODE_FLOATS GS_CODE_PASTE(GS_CODE_SORT, _floats)
#define GS_CODE_RUN 16

static void
GS_CODE_INSERT(GS_CODE *codes, size_t n)
{
	for (size_t i = 1; i < n; i++)
	{
		GS_CODE		code = codes[i];
		size_t		j = i;

		for (; j > 0 && codes[j - 1] > code; j--)
			codes[j] = codes[j - 1];
		codes[j] = code;
	}
}

static void
GS_CODE_MERGE(GS_CODE *codes, size_t n, GS_CODE *scratch, void (*tick) (void))
{
	GS_CODE    *from = codes;
	GS_CODE    *to = scratch;

	for (size_t i = 0; i < n; i += GS_CODE_RUN)
		GS_CODE_INSERT(codes + i, n - i < GS_CODE_RUN ? n - i : GS_CODE_RUN);
	for (size_t run = GS_CODE_RUN; run < n; run *= 2)
	{
		GS_CODE    *other = from;

		if (tick)
			tick();
		for (size_t i = 0; i < n; i += 2 * run)
		{
			GS_CODE    *a = from + i;
			GS_CODE    *a_end = from + (n - i < run ? n : i + run);
			GS_CODE    *b = a_end;
			GS_CODE    *b_end = from + (n - i < 2 * run ? n : i + 2 * run);
			GS_CODE    *out = to + i;

			while (a < a_end && b < b_end)
			{
				GS_CODE		x = *a;
				GS_CODE		y = *b;
				bool		second = y < x;

				*out++ = second ? y : x;
				a += !second;
				b += second;
			}
			memcpy(out, a, (size_t) (a_end - a) * sizeof(GS_CODE));
			out += a_end - a;
			memcpy(out, b, (size_t) (b_end - b) * sizeof(GS_CODE));
		}
		from = to;
		to = other;
	}
	if (from != codes)
		memcpy(codes, from, n * sizeof(GS_CODE));
}

#if GS_CODE_DIGITS > 0
static void
GS_CODE_DIGIT_SORT(GS_CODE *codes, size_t n, GS_CODE *scratch, void (*tick) (void))
{
	uint32_t	counts[GS_CODE_DIGITS][256];
	GS_CODE    *from = codes;
	GS_CODE    *to = scratch;

	memset(counts, 0, sizeof(counts));
	for (size_t i = 0; i < n; i++)
	{
		GS_CODE		code = codes[i];

		for (int d = 0; d < GS_CODE_DIGITS; d++)
			counts[d][(uint8_t) (code >> (8 * d))]++;
	}
	for (int d = 0; d < GS_CODE_DIGITS; d++)
	{
		uint32_t   *count = counts[d];
		uint32_t	first = 0;
		GS_CODE    *other = from;

		if (tick)
			tick();
		if (count[(uint8_t) (from[0] >> (8 * d))] == n)
			continue;
		for (int digit = 0; digit < 256; digit++)
		{
			uint32_t	here = count[digit];

			count[digit] = first;
			first += here;
		}
		for (size_t i = 0; i < n; i++)
		{
			GS_CODE		code = from[i];

			to[count[(uint8_t) (code >> (8 * d))]++] = code;
		}
		from = to;
		to = other;
	}
	if (from != codes)
		memcpy(codes, from, n * sizeof(GS_CODE));
}
#endif

static void
GS_CODE_SORT(GS_CODE *codes, size_t n, GS_CODE *scratch, void (*tick) (void))
{
	size_t		i = 1;

	while (i < n && codes[i - 1] <= codes[i])
		i++;
	if (i >= n)
		return;
#if GS_CODE_DIGITS > 0
	if (n >= GS_CODE_RADIX)
	{
		GS_CODE_DIGIT_SORT(codes, n, scratch, tick);
		return;
	}
#endif
	GS_CODE_MERGE(codes, n, scratch, tick);
}

#if GS_CODE_DIGITS > 0
static void
GS_CODE_FLIPPED(GS_CODE *a, size_t n, GS_CODE flip, void *scratch, void (*tick) (void))
{
	for (size_t i = 0; i < n; i++)
		a[i] ^= flip;
	GS_CODE_SORT(a, n, scratch, tick);
	for (size_t i = 0; i < n; i++)
		a[i] ^= flip;
}
#endif

#if GS_CODE_DIGITS >= 4
static void
GS_CODE_FLOATS(GS_CODE *a, size_t n, GS_CODE flip, int exponent_bits, void *scratch, void (*tick) (void))
{
	const int	top = 8 * GS_CODE_DIGITS - 1;
	const GS_CODE sign = (GS_CODE) 1 << top;
	const GS_CODE bias = (sign >> exponent_bits) - 1;	/* -infinity without it */

	for (size_t i = 0; i < n; i++)
		a[i] = ((a[i] ^ ((0 - (a[i] >> top)) | sign)) - bias) ^ flip;
	GS_CODE_SORT(a, n, scratch, tick);
	for (size_t i = 0; i < n; i++)
	{
		GS_CODE		y = (a[i] ^ flip) + bias;

		a[i] = y ^ (((y >> top) - 1) | sign);
	}
}
#endif

#undef GS_CODE
#undef GS_CODE_SORT
#undef GS_CODE_DIGITS
#undef GS_CODE_RADIX
#undef GS_CODE_PASTE_
#undef GS_CODE_PASTE
#undef GS_CODE_INSERT
#undef GS_CODE_MERGE
#undef GS_CODE_DIGIT_SORT
#undef GS_CODE_FLIPPED
#undef GS_CODE_FLOATS
#undef GS_CODE_RUN

#endif							/* GS_CODE */
