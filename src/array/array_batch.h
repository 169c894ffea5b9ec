/*-------------------------------------------------------------------------
 *
 * array_batch.h
 *	  Sorting the arrays of many rows on the device, batch by batch.
 *
 * Calling protocol
 *	  1. gs_array_stream_begin, with the calls that each row has arrays for.
 *	  2. gs_array_batch_begin; gs_array_batch_put for each row, until it has no
 *		 room; gs_array_batch_submit.  Then the next batch: several may be on
 *		 their way.
 *	  3. gs_array_batch_finish, the oldest first: from now on the arrays that
 *		 put returned are sorted, and stay until gs_array_batch_end.
 *	  4. gs_array_stream_end, or reset the memory context that it was begun in.
 *
 * This process sorts the arrays that the device does not: the first arrays,
 * while there are few; arrays that the device cannot sort (several dimensions, too
 * large for a chunk); and all arrays if there is no device or no staging memory, or
 * the device is lost.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAY_BATCH_H
#define GS_ARRAY_BATCH_H

#include "array/array_sort.h"
#include "stats.h"

/* The arguments of a call of gpu_sort_array(), the same for every row. */
typedef struct GsArrayCall
{
	Oid			element_type;	/* known to devices; a row's array may have another one in its header */
	Oid			collation;
	bool		descending;
	bool		nulls_first;
} GsArrayCall;

/* What a stream did, for EXPLAIN. */
typedef struct GsArrayReport
{
	uint64		arrays;			/* sorted on the device or not */
	uint64		device_arrays;
	uint64		batches;
	uint64		device_batches;
	GsFallback	fallback;		/* the first, or GS_FALLBACK_NONE */
	char		engine[32];
	uint32		devices;		/* bit i: device i sorted; 0: there is one only */
	double		copy_in_ms;		/* device time */
	double		sort_ms;
	double		copy_out_ms;
} GsArrayReport;

typedef struct GsArrayStream GsArrayStream;
typedef struct GsArrayBatch GsArrayBatch;

extern GsArrayStream *gs_array_stream_begin(int n_calls, const GsArrayCall *calls);

/*
 * Begins a batch.  may_use_device: more than a few rows are expected.  NULL: there is no memory for another
 * batch until one has ended.  Never NULL if no batch is under way.
 */
extern GsArrayBatch *gs_array_batch_begin(GsArrayStream *stream, bool may_use_device);

/*
 * Adds a row's arrays, one for each call.  sorted[i] will be the result.  NULLs are skipped.  False: the
 * batch is full, and does not have the row.
 */
extern bool gs_array_batch_put(GsArrayBatch *batch, const Datum *arrays, const bool *nulls,
							   Datum *sorted);

/* Does the batch go to the device? */
extern bool gs_array_batch_on_device(const GsArrayBatch *batch);

extern void gs_array_batch_submit(GsArrayBatch *batch);
extern void gs_array_batch_finish(GsArrayBatch *batch);
extern void gs_array_batch_end(GsArrayBatch *batch);

extern void gs_array_report_add(GsArrayReport *total, const GsArrayReport *report);

/* Adds what the stream has done so far to *report. */
extern void gs_array_stream_report(const GsArrayStream *stream, GsArrayReport *report);
extern void gs_array_stream_end(GsArrayStream *stream);

#endif							/* GS_ARRAY_BATCH_H */
