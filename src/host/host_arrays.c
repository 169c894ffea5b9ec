/*-------------------------------------------------------------------------
 *
 * host_arrays.c
 *	  Sorting the elements of arrays on one CPU core.
 *
 * An element becomes a code: an unsigned integer of its own size.  Codes have the order of the elements.
 * They are sorted, and become elements again.  The code of
 *
 *	  a signed integer	has the sign bit turned over;
 *	  a float			that is negative is its complement, of another one has
 *						the sign bit turned over, which puts NaNs without a sign
 *						on top and those with one at the bottom; the code of
 *						-infinity, taken off modulo 2^32 or 2^64, moves these to the
 *						top as well, and what is left is in the right order:
 *						-0 is directly below 0;
 *	  16 bytes			is their number with the first byte highest;
 *
 * For a descending order the code is complemented.  Each step has an inverse, so an element gets back
 * exactly its bits.
 *
 * Tests: unit/plain/test_device, regress/arrays
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>

#include "host/host_arrays.h"

/* The address of 16 bytes is only known to be a multiple of 8. */
__extension__ typedef unsigned __int128 Code16 __attribute__((aligned(8)));

#define GS_CODE uint8_t
#define GS_CODE_SORT sort_codes_1
#define GS_CODE_DIGITS 1
#define GS_CODE_RADIX 64
#include "host/host_array_sort.h"

#define GS_CODE uint16_t
#define GS_CODE_SORT sort_codes_2
#define GS_CODE_DIGITS 2
#define GS_CODE_RADIX 96
#include "host/host_array_sort.h"

#define GS_CODE uint32_t
#define GS_CODE_SORT sort_codes_4
#define GS_CODE_DIGITS 4
#define GS_CODE_RADIX 128
#include "host/host_array_sort.h"

#define GS_CODE uint64_t
#define GS_CODE_SORT sort_codes_8
#define GS_CODE_DIGITS 8
#define GS_CODE_RADIX 512
#include "host/host_array_sort.h"

/* Sixteen passes are no better than merging. */
#define GS_CODE Code16
#define GS_CODE_SORT sort_codes_16
#define GS_CODE_DIGITS 0
#include "host/host_array_sort.h"

#define SIGN2 UINT16_C(0x8000)
#define SIGN4 UINT32_C(0x80000000)
#define SIGN8 UINT64_C(0x8000000000000000)

/* Reverses the 16 bytes if the first one is not the highest. */
static Code16
swap_16(Code16 x)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return (Code16) __builtin_bswap64((uint64_t) x) << 64 | __builtin_bswap64((uint64_t) (x >> 64));
#else
	return x;
#endif
}

static void
sort_16(Code16 *a, size_t n, uint64_t flip, void *scratch, GsHostTick tick)
{
	Code16		flip_16 = (Code16) flip << 64 | flip;

	for (size_t i = 0; i < n; i++)
		a[i] = swap_16(a[i]) ^ flip_16;
	sort_codes_16(a, n, scratch, tick);
	for (size_t i = 0; i < n; i++)
		a[i] = swap_16(a[i] ^ flip_16);
}

void
gs_host_sort_elements(GsElem elem, bool descending, void *elements, size_t n, void *scratch,
					  GsHostTick tick)
{
	uint64_t	flip = descending ? UINT64_MAX : 0;

	if (n < 2)
		return;
	switch (elem)
	{
		case GS_ELEM_NONE:
			break;
		case GS_ELEM_UINT1:
			sort_codes_1_flipped(elements, n, (uint8_t) flip, scratch, tick);
			break;
		case GS_ELEM_INT2:
			sort_codes_2_flipped(elements, n, (uint16_t) flip ^ SIGN2, scratch, tick);
			break;
		case GS_ELEM_INT4:
			sort_codes_4_flipped(elements, n, (uint32_t) flip ^ SIGN4, scratch, tick);
			break;
		case GS_ELEM_UINT4:
			sort_codes_4_flipped(elements, n, (uint32_t) flip, scratch, tick);
			break;
		case GS_ELEM_FLOAT4:
			sort_codes_4_floats(elements, n, (uint32_t) flip, 8, scratch, tick);
			break;
		case GS_ELEM_INT8:
			sort_codes_8_flipped(elements, n, flip ^ SIGN8, scratch, tick);
			break;
		case GS_ELEM_UINT8:
			sort_codes_8_flipped(elements, n, flip, scratch, tick);
			break;
		case GS_ELEM_FLOAT8:
			sort_codes_8_floats(elements, n, flip, 11, scratch, tick);
			break;
		case GS_ELEM_BYTES16:
			sort_16(elements, n, flip, scratch, tick);
			break;
	}
}

GsStatus
gs_host_sort_arrays(const GsSortSpec *spec, void *chunk, uint32_t data_bytes, uint32_t n_arrays,
					const int *cancel, uint64_t *bytes, GsError *error)
{
	uint32_t	elem_bytes = gs_elem_bytes(spec->elem);
	uint32_t	largest = 0;
	uint64_t	sum = 0;
	void	   *scratch;

	for (uint32_t i = 0; i < n_arrays; i++)
	{
		const GsRecord *record = gs_chunk_record(chunk, spec->chunk_bytes, i);

		if (record->row_off % 8 != 0 || record->row_len % elem_bytes != 0 ||
			(uint64_t) record->row_off + record->row_len > data_bytes)
		{
			snprintf(error->message, sizeof(error->message),
					 "array %u of a chunk has %u bytes at %u of %u", i, record->row_len,
					 record->row_off, data_bytes);
			return GS_INVALID;
		}
		if (record->row_len > largest)
			largest = record->row_len;
		sum += record->row_len;
	}
	scratch = malloc((size_t) largest + 1);
	if (scratch == NULL)
	{
		snprintf(error->message, sizeof(error->message), "out of memory while sorting arrays");
		return GS_NO_MEMORY;
	}
	for (uint32_t i = 0; i < n_arrays && __atomic_load_n(cancel, __ATOMIC_RELAXED) == 0; i++)
	{
		const GsRecord *record = gs_chunk_record(chunk, spec->chunk_bytes, i);

		gs_host_sort_elements(spec->elem, spec->descending, (char *) chunk + record->row_off,
							  record->row_len / elem_bytes, scratch, NULL);
	}
	free(scratch);
	if (__atomic_load_n(cancel, __ATOMIC_RELAXED) != 0)
		return GS_CANCELLED;
	*bytes = sum;
	return GS_OK;
}
