/*-------------------------------------------------------------------------
 *
 * test_device_arrays.c
 *	  The conformance cases of sort_arrays.
 *
 * What comes back is right if it is in the order of a comparison written down
 * here anew, with isnan() and <, and if it has the same bits as what went in,
 * each as often: sums of hashes of 64 bits tell.  Memory between the arrays must
 * not change.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test_device.h"

#define CHUNK_BYTES (1u << 20)

static const char *const elem_names[GS_N_ELEMS] = {
	"", "int2", "int4", "int8", "uint1", "uint4", "uint8", "float4", "float8", "bytes16"
};

/* ---- the right order ---- */

#define COMPARE(a, b) ((a) < (b) ? -1 : (a) > (b))

static int
compare_floats(double a, double b)
{
	if (isnan(a) || isnan(b))
		return COMPARE(isnan(a) != 0, isnan(b) != 0);
	return COMPARE(a, b);
}

static int
compare_elements(GsElem elem, const char *a, const char *b)
{
	union
	{
		int16_t		i2;
		int32_t		i4;
		int64_t		i8;
		uint8_t		u1;
		uint32_t	u4;
		uint64_t	u8;
		float		f4;
		double		f8;
		char		bytes[16];
	}			x,
				y;

	memcpy(&x, a, gs_elem_bytes(elem));
	memcpy(&y, b, gs_elem_bytes(elem));
	switch (elem)
	{
		case GS_ELEM_INT2:
			return COMPARE(x.i2, y.i2);
		case GS_ELEM_INT4:
			return COMPARE(x.i4, y.i4);
		case GS_ELEM_INT8:
			return COMPARE(x.i8, y.i8);
		case GS_ELEM_UINT1:
			return COMPARE(x.u1, y.u1);
		case GS_ELEM_UINT4:
			return COMPARE(x.u4, y.u4);
		case GS_ELEM_UINT8:
			return COMPARE(x.u8, y.u8);
		case GS_ELEM_FLOAT4:
			return compare_floats((double) x.f4, (double) y.f4);
		case GS_ELEM_FLOAT8:
			return compare_floats(x.f8, y.f8);
		case GS_ELEM_BYTES16:
			return memcmp(a, b, 16);
		case GS_ELEM_NONE:
			break;
	}
	return 0;
}

/* The same for the same elements in whatever order, else almost surely not. */
static uint64_t
hash_elements(const char *elements, uint32_t n, uint32_t width)
{
	uint64_t	sum = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	bits[2] = {0, 0};
		TestRandom	first;
		TestRandom	second;

		memcpy(bits, elements + (size_t) i * width, width);
		first = bits[0];
		second = bits[1] ^ test_random(&first);
		sum += test_random(&second);
	}
	return sum;
}

/* ---- inputs ---- */

typedef enum Shape
{
	SHAPE_RANDOM,				/* any bits */
	SHAPE_FEW,					/* of a few values, the nasty ones among them */
	SHAPE_EQUAL,
	SHAPE_SORTED,
	SHAPE_REVERSED,
	SHAPE_SKEWED,				/* most elements near one value */
	SHAPE_NARROW,				/* of a hundred values in succession */
	N_SHAPES
} Shape;

static const uint32_t nasty_4[] = {
	0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001,
	0x7fffffff, 0xffffffff, 1, 0x80000001, 0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff
};

static void
make_element(GsElem elem, Shape shape, uint32_t i, uint32_t n, char *dst, TestRandom *rng)
{
	uint32_t	width = gs_elem_bytes(elem);
	uint64_t	bits[2] = {test_random(rng), test_random(rng)};
	uint32_t	nasty = nasty_4[bits[1] % 16];

	switch (shape)
	{
		case SHAPE_FEW:
			if (width == 4)
				bits[0] = nasty;
			else if (width == 8)
			{
				/* the same values as floats of twice the width, and their payloads */
				bits[0] = (uint64_t) nasty << 32 | (nasty & 1);
				if ((nasty & 0x7f800000) == 0x7f800000)
					bits[0] |= UINT64_C(0x7ff0000000000000);
			}
			else
			{
				bits[0] %= 5;
				bits[1] %= 3;
			}
			break;
		case SHAPE_EQUAL:
			bits[0] = bits[1] = UINT64_C(0x4142434441424344);
			break;
		case SHAPE_SORTED:
		case SHAPE_REVERSED:
			bits[0] = shape == SHAPE_SORTED ? i : n - i;
			if (elem == GS_ELEM_BYTES16)
			{
				for (int b = 0; b < 16; b++)
					dst[b] = b < 12 ? 0 : (char) (bits[0] >> (8 * (15 - b)));
				return;
			}
			if (elem == GS_ELEM_FLOAT4)
			{
				float		f = (float) bits[0];

				memcpy(dst, &f, 4);
				return;
			}
			break;
		case SHAPE_SKEWED:
			if (test_below(rng, 50) > 0)
				bits[0] = bits[0] % 1000 + UINT64_C(0x4000000040000000);
			break;
		case SHAPE_NARROW:
			bits[0] = bits[0] % 100 + 1000;
			break;
		case SHAPE_RANDOM:
		case N_SHAPES:
			break;
	}
	memcpy(dst, bits, width);
}

/* A chunk of arrays, and what it was before it was sorted. */
typedef struct ArrayChunk
{
	char	   *bytes;
	char	   *before;
	uint32_t	chunk_bytes;
	uint32_t	data_bytes;
	uint32_t	n;
	GsJob		job;
} ArrayChunk;

static void
chunk_begin(ArrayChunk *c, uint32_t chunk_bytes)
{
	memset(c, 0, sizeof(*c));
	c->chunk_bytes = chunk_bytes;
	c->bytes = aligned_alloc(64, chunk_bytes);
	c->before = malloc(chunk_bytes);
	if (c->bytes == NULL || c->before == NULL)
		abort();
	memset(c->bytes, 0x5a, chunk_bytes);
}

static void
chunk_free(ArrayChunk *c)
{
	free(c->bytes);
	free(c->before);
}

/* Add an array of n elements at a multiple of 8; false where it has no room. */
static bool
chunk_add(ArrayChunk *c, GsElem elem, Shape shape, uint32_t n, TestRandom *rng)
{
	uint32_t	width = gs_elem_bytes(elem);
	uint32_t	at = ((c->data_bytes + 7) & ~7u) + test_below(rng, 4) / 3 * 8;
	GsRecord   *record = gs_chunk_record(c->bytes, c->chunk_bytes, c->n);

	if ((uint64_t) at + (uint64_t) n * width + (c->n + 1) * sizeof(GsRecord) > c->chunk_bytes)
		return false;
	for (uint32_t i = 0; i < n; i++)
		make_element(elem, shape, i, n, c->bytes + at + (size_t) i * width, rng);
	memset(record, 0, sizeof(*record));
	record->row_off = at;
	record->row_len = n * width;
	c->data_bytes = at + n * width;
	c->n++;
	return true;
}

static void
chunk_sort(ArrayChunk *c, TestDevice *td, GsDeviceSort *sort)
{
	memcpy(c->before, c->bytes, c->chunk_bytes);
	memset(&c->job, 0, sizeof(c->job));
	td->ops->sort_arrays(sort, c->bytes, c->data_bytes, c->n, &c->job);
}

/* Wait for a chunk and check it. */
static void
chunk_check(ArrayChunk *c, TestDevice *td, GsElem elem, bool descending, const char *what)
{
	uint32_t	width = gs_elem_bytes(elem);
	uint32_t	end = 0;

	test_wait(td, &c->job);
	if (!CHECK(gs_job_status(&c->job) == GS_OK, "%s: %s %s", what,
			   gs_status_name(gs_job_status(&c->job)), c->job.error.message))
		return;
	for (uint32_t i = 0; i < c->n; i++)
	{
		const GsRecord *record = gs_chunk_record(c->bytes, c->chunk_bytes, i);
		const char *after = c->bytes + record->row_off;
		const char *before = c->before + record->row_off;
		uint32_t	n = record->row_len / width;

		if (!CHECK(memcmp(c->bytes + end, c->before + end, record->row_off - end) == 0,
				   "%s: bytes before array %u were written", what, i))
			return;
		end = record->row_off + record->row_len;
		for (uint32_t j = 1; j < n; j++)
		{
			int			order = compare_elements(elem, after + (size_t) (j - 1) * width,
												 after + (size_t) j * width);

			if (!CHECK(descending ? order >= 0 : order <= 0,
					   "%s: element %u of %u of array %u is out of order", what, j, n, i))
				return;
		}
		if (!CHECK(hash_elements(after, n, width) == hash_elements(before, n, width),
				   "%s: array %u of %u elements has others than before", what, i, n))
			return;
	}
	CHECK(memcmp(c->bytes + end, c->before + end, c->chunk_bytes - end) == 0,
		  "%s: bytes after the arrays were written", what);
}

static GsDeviceSort *
open_arrays(TestDevice *td, GsElem elem, bool descending, uint32_t chunk_bytes)
{
	GsSortSpec	spec = {0};
	GsDeviceSort *sort = NULL;
	GsError		error = {{0}};
	GsStatus	status;

	spec.chunk_bytes = chunk_bytes;
	spec.engine = test_engine;
	spec.elem = elem;
	spec.descending = descending;
	status = td->ops->sort_open(td->device, &spec, &sort, &error);
	return CHECK(status == GS_OK, "sort_open: %s %s", gs_status_name(status), error.message)
		? sort : NULL;
}

/* ---- the cases ---- */

/* Lengths around everything that an implementation may cut at. */
static const uint32_t lengths[] = {
	0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 192, 193,
	255, 256, 257, 383, 384, 385, 511, 512, 513, 767, 768, 769, 1000, 1023, 1024, 1025, 1535, 1536,
	1537, 2000, 2047, 2048, 2049, 3000, 3071, 3072, 3073, 4000, 4095, 4096, 4097, 6000, 8191, 8192,
	8193, 12000, 16383, 16384, 16385, 20000, 32768, 50000, 65535, 100000, 262000
};

#define N_LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

/* Every length, in one chunk as many as have room, of every shape. */
static void
case_lengths(TestDevice *td, uint64_t seed)
{
	for (int elem = GS_ELEM_INT2; elem < GS_N_ELEMS; elem++)
	{
		TestRandom	rng = seed + (uint64_t) elem;
		char		name[64];

		snprintf(name, sizeof(name), "arrays of %s", elem_names[elem]);
		if (!test_begin_case(name))
			continue;
		for (int descending = 0; descending < 2; descending++)
		{
			GsDeviceSort *sort = open_arrays(td, (GsElem) elem, descending, CHUNK_BYTES);
			uint64_t	n_arrays = 0;
			uint64_t	n_bytes = 0;
			GsSortResult result;

			if (sort == NULL)
				continue;
			for (int shape = 0; shape < N_SHAPES; shape++)
			{
				uint32_t	next = 0;

				while (next < N_LENGTHS)
				{
					uint32_t	first = next;
					ArrayChunk	c;

					chunk_begin(&c, CHUNK_BYTES);
					while (next < N_LENGTHS &&
						   chunk_add(&c, (GsElem) elem, (Shape) shape, lengths[next], &rng))
						next++;
					if (c.n == 0)
					{
						/* No chunk has room for it. */
						chunk_free(&c);
						break;
					}
					chunk_sort(&c, td, sort);
					snprintf(name, sizeof(name), "lengths %u to %u, shape %d", lengths[first],
							 lengths[next - 1], shape);
					chunk_check(&c, td, (GsElem) elem, descending, name);
					n_arrays += c.n;
					for (uint32_t i = first; i < next; i++)
						n_bytes += (uint64_t) lengths[i] * gs_elem_bytes((GsElem) elem);
					chunk_free(&c);
				}
			}
			memset(&result, 0, sizeof(result));
			td->ops->result(sort, &result);
			CHECK(result.n_rows == n_arrays && result.row_bytes == n_bytes,
				  "%llu arrays of %llu bytes instead of %llu of %llu",
				  (unsigned long long) result.n_rows, (unsigned long long) result.row_bytes,
				  (unsigned long long) n_arrays, (unsigned long long) n_bytes);
			CHECK(result.engine != NULL && result.engine[0] != '\0', "the engine has no name");
			CHECK(result.copy_in_ms >= 0 && result.sort_ms >= 0 && result.copy_out_ms >= 0,
				  "a phase took less than no time");
			td->ops->sort_close(sort);
		}
		snprintf(name, sizeof(name), "arrays of %s", elem_names[elem]);
		test_end_case(name);
	}
}

/* One array that fills its chunk, and chunks of the smallest and other sizes. */
static void
case_full_chunks(TestDevice *td, uint64_t seed)
{
	TestRandom	rng = seed;

	if (!test_begin_case("arrays that fill a chunk"))
		return;
	for (int elem = GS_ELEM_INT2; elem < GS_N_ELEMS; elem++)
	{
		for (uint32_t chunk_bytes = 1024; chunk_bytes <= CHUNK_BYTES; chunk_bytes *= 4)
		{
			GsDeviceSort *sort = open_arrays(td, (GsElem) elem, false, chunk_bytes);
			uint32_t	n = (chunk_bytes - (uint32_t) sizeof(GsRecord)) / gs_elem_bytes((GsElem) elem);
			ArrayChunk	c;

			if (sort == NULL)
				continue;
			for (int shape = 0; shape < N_SHAPES; shape += 2)
			{
				chunk_begin(&c, chunk_bytes);
				while (!chunk_add(&c, (GsElem) elem, (Shape) shape, n, &rng))
					;			/* it may have begun at 8 */
				chunk_sort(&c, td, sort);
				chunk_check(&c, td, (GsElem) elem, false, "full chunk");
				chunk_free(&c);
			}
			td->ops->sort_close(sort);
		}
	}
	test_end_case("arrays that fill a chunk");
}

/* Arrays of a megabyte and short ones in one chunk. */
static void
case_long_and_short(TestDevice *td, uint64_t seed)
{
	static const GsElem elems[] = {GS_ELEM_UINT1, GS_ELEM_UINT4, GS_ELEM_FLOAT8, GS_ELEM_BYTES16};
	enum
	{
		N_ELEMS = sizeof(elems) / sizeof(elems[0])
	};
	TestRandom	rng = seed;

	if (!test_begin_case("long and short arrays"))
		return;
	for (int e = 0; e < N_ELEMS; e++)
	{
		uint32_t	chunk_bytes = 8 * CHUNK_BYTES;
		uint32_t	longest = (1u << 20) / gs_elem_bytes(elems[e]);
		bool		descending = elems[e] == GS_ELEM_BYTES16;
		GsDeviceSort *sort = open_arrays(td, elems[e], descending, chunk_bytes);

		if (sort == NULL)
			continue;
		for (int shape = 0; shape < N_SHAPES; shape++)
		{
			ArrayChunk	c;

			chunk_begin(&c, chunk_bytes);
			for (int i = 0; i < 3; i++)
			{
				chunk_add(&c, elems[e], (Shape) ((shape + i) % N_SHAPES), longest - (uint32_t) i, &rng);
				for (int j = 0; j < 1000; j++)
					chunk_add(&c, elems[e], (Shape) shape, test_below(&rng, 12), &rng);
				chunk_add(&c, elems[e], (Shape) shape, 1 + test_below(&rng, 30000), &rng);
			}
			chunk_sort(&c, td, sort);
			chunk_check(&c, td, elems[e], descending, "long and short");
			chunk_free(&c);
		}
		td->ops->sort_close(sort);
	}
	test_end_case("long and short arrays");
}

/* Many chunks of arrays of all lengths at once, which must end in order. */
static void
case_in_flight(TestDevice *td, uint64_t seed)
{
	enum
	{
		N_CHUNKS = 40
	};
	static const GsElem elems[] = {GS_ELEM_FLOAT4, GS_ELEM_INT8, GS_ELEM_BYTES16};
	TestRandom	rng = seed;

	if (!test_begin_case("many chunks of arrays at once"))
		return;
	for (int e = 0; e < 3; e++)
	{
		GsDeviceSort *sort = open_arrays(td, elems[e], e == 1, CHUNK_BYTES / 4);
		ArrayChunk	chunks[N_CHUNKS];

		if (sort == NULL)
			continue;
		for (int i = 0; i < N_CHUNKS; i++)
		{
			uint32_t	most = 1u << (1 + test_below(&rng, 14));

			chunk_begin(&chunks[i], CHUNK_BYTES / 4);
			if (i % 13 != 7)	/* that one is empty */
				while (chunk_add(&chunks[i], elems[e], SHAPE_RANDOM, test_below(&rng, most), &rng))
					;
		}
		for (int i = 0; i < N_CHUNKS; i++)
			chunk_sort(&chunks[i], td, sort);
		for (int i = N_CHUNKS - 1; i > 0; i--)
		{
			GsStatus	later = gs_job_status(&chunks[i].job);

			CHECK(later == GS_PENDING || gs_job_status(&chunks[i - 1].job) != GS_PENDING,
				  "chunk %d ended before chunk %d", i, i - 1);
		}
		for (int i = 0; i < N_CHUNKS; i++)
		{
			chunk_check(&chunks[i], td, elems[e], e == 1, "one of many");
			chunk_free(&chunks[i]);
		}
		td->ops->sort_close(sort);
	}
	test_end_case("many chunks of arrays at once");
}

static void
case_cancel(TestDevice *td, uint64_t seed)
{
	enum
	{
		N_CHUNKS = 8
	};
	TestRandom	rng = seed;

	if (!test_begin_case("cancelled arrays"))
		return;
	for (int round = 0; round < 6; round++)
	{
		GsDeviceSort *sort = open_arrays(td, GS_ELEM_FLOAT8, false, CHUNK_BYTES);
		ArrayChunk	chunks[N_CHUNKS];

		if (sort == NULL)
			break;
		for (int i = 0; i < N_CHUNKS; i++)
		{
			chunk_begin(&chunks[i], CHUNK_BYTES);
			while (chunk_add(&chunks[i], GS_ELEM_FLOAT8, SHAPE_RANDOM, 1 + test_below(&rng, 9000), &rng))
				;
		}
		for (int i = 0; i < N_CHUNKS; i++)
		{
			if (i == round)
				td->ops->cancel(sort);
			chunk_sort(&chunks[i], td, sort);
		}
		if (round % 2 == 1)
		{
			struct timespec pause = {0, (long) test_below(&rng, 5000000)};

			nanosleep(&pause, NULL);
		}
		for (int i = 0; i < N_CHUNKS; i++)
		{
			GsStatus	status;

			test_wait(td, &chunks[i].job);
			status = gs_job_status(&chunks[i].job);
			CHECK(status == GS_CANCELLED || (status == GS_OK && i < round),
				  "chunk %d, cancelled before chunk %d: %s", i, round, gs_status_name(status));
			if (status == GS_OK)
				chunk_check(&chunks[i], td, GS_ELEM_FLOAT8, false, "before cancel");
			chunk_free(&chunks[i]);
		}
		td->ops->sort_close(sort);
	}
	test_end_case("cancelled arrays");
}

static void
expect_invalid(TestDevice *td, ArrayChunk *c, const char *what)
{
	test_wait(td, &c->job);
	CHECK(gs_job_status(&c->job) == GS_INVALID && c->job.error.message[0] != '\0', "%s: %s", what,
		  gs_status_name(gs_job_status(&c->job)));
}

static void
case_misuse(TestDevice *td, uint64_t seed)
{
	TestRandom	rng = seed;
	GsDeviceSort *sort;
	GsDeviceSort *none = NULL;
	GsSortSpec	spec = {0};
	GsError		error = {{0}};
	GsStatus	status;
	ArrayChunk	c;
	GsRecord   *record;
	GsRecord	good;

	if (!test_begin_case("misuse of arrays"))
		return;
	spec.chunk_bytes = CHUNK_BYTES;
	spec.elem = (GsElem) GS_N_ELEMS;
	status = td->ops->sort_open(td->device, &spec, &none, &error);
	CHECK(status == GS_INVALID && error.message[0] != '\0' && none == NULL,
		  "elements of no known kind: %s", gs_status_name(status));
	chunk_begin(&c, CHUNK_BYTES);
	for (int i = 0; i < 10; i++)
		chunk_add(&c, GS_ELEM_INT4, SHAPE_RANDOM, 100, &rng);
	spec.elem = GS_ELEM_NONE;
	status = td->ops->sort_open(td->device, &spec, &none, &error);
	if (CHECK(status == GS_OK, "sort_open: %s", gs_status_name(status)))
	{
		chunk_sort(&c, td, none);
		expect_invalid(td, &c, "arrays given to a sort of rows");
		td->ops->sort_close(none);
	}
	sort = open_arrays(td, GS_ELEM_INT4, false, CHUNK_BYTES);
	if (sort != NULL)
	{
		record = gs_chunk_record(c.bytes, CHUNK_BYTES, 4);
		good = *record;
		record->row_len = 402;
		chunk_sort(&c, td, sort);
		expect_invalid(td, &c, "half an element");
		*record = good;
		record->row_off += 4;
		chunk_sort(&c, td, sort);
		expect_invalid(td, &c, "an array at no multiple of 8");
		*record = good;
		record->row_len = c.data_bytes;
		chunk_sort(&c, td, sort);
		expect_invalid(td, &c, "an array beyond the end");
		*record = good;
		record->row_off = 0xfffffff8;
		chunk_sort(&c, td, sort);
		expect_invalid(td, &c, "an array far beyond the end");
		*record = good;
		c.job = (GsJob){0};
		td->ops->sort_arrays(sort, c.bytes, CHUNK_BYTES - 8, 1, &c.job);
		expect_invalid(td, &c, "arrays and records that overlap");
		c.job = (GsJob){0};
		td->ops->append(sort, c.bytes, c.data_bytes, c.n, 0, &c.job);
		expect_invalid(td, &c, "append to a sort of arrays");
		c.job = (GsJob){0};
		td->ops->perform(sort, GS_FORMAT_ROWS, NULL, &c.job);
		expect_invalid(td, &c, "perform of a sort of arrays");
		c.job = (GsJob){0};
		td->ops->fetch(sort, 0, c.bytes, &c.job);
		expect_invalid(td, &c, "fetch from a sort of arrays");

		/* None of this has done any harm. */
		chunk_sort(&c, td, sort);
		chunk_check(&c, td, GS_ELEM_INT4, false, "after misuse");
		td->ops->sort_close(sort);
	}
	chunk_free(&c);
	test_end_case("misuse of arrays");
}

void
test_arrays_cases(TestDevice *td, uint64_t seed)
{
	GsDeviceInfo info;

	case_lengths(td, seed);
	case_full_chunks(td, seed);
	case_long_and_short(td, seed);
	case_in_flight(td, seed);
	case_cancel(td, seed);
	case_misuse(td, seed);
	memset(&info, 0, sizeof(info));
	td->ops->info(td->device, &info);
	if (test_begin_case("arrays leave no memory in use"))
	{
		CHECK(info.memory_used == 0, "%llu bytes used after all sorts of arrays",
			  (unsigned long long) info.memory_used);
		test_end_case("arrays leave no memory in use");
	}
}

/* With too little memory for one chunk jobs end so, and nothing is lost. */
void
test_arrays_memory(const GsDeviceOps *ops, int threads, uint64_t seed)
{
	TestRandom	rng = seed;
	TestDevice	td;
	GsDeviceSort *sort;
	GsError		error;
	GsStatus	status;
	ArrayChunk	c;

	if (!test_begin_case("memory limit for arrays"))
		return;
	status = test_open(&td, ops, CHUNK_BYTES / 4, threads, &error);
	if (CHECK(status == GS_OK, "open: %s %s", gs_status_name(status), error.message))
	{
		sort = open_arrays(&td, GS_ELEM_INT8, false, CHUNK_BYTES);
		if (sort != NULL)
		{
			chunk_begin(&c, CHUNK_BYTES);
			chunk_add(&c, GS_ELEM_INT8, SHAPE_RANDOM, CHUNK_BYTES / 16, &rng);
			chunk_sort(&c, &td, sort);
			test_wait(&td, &c.job);
			CHECK(gs_job_status(&c.job) == GS_NO_MEMORY && c.job.error.message[0] != '\0',
				  "half a megabyte in a quarter: %s", gs_status_name(gs_job_status(&c.job)));
			CHECK(memcmp(c.bytes, c.before, CHUNK_BYTES) == 0, "a refused chunk was written");
			chunk_free(&c);
			td.ops->sort_close(sort);
		}
		test_close(&td);
	}
	test_end_case("memory limit for arrays");
}
