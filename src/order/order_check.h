/*-------------------------------------------------------------------------
 *
 * order_check.h
 *	  Proving, and repairing, the order of sorts whose keys only guess it.
 *
 * Keys that hold text of a libc collation (key_check.h) do not tell the
 * order by their bytes.  After such a sort has been performed, a check reads
 * all its keys in the device's order and compares each pair of neighbours as
 * PostgreSQL would.  That alone proves the order of rows, however the keys were
 * made.  Rows that are out of order are sorted again, run by run, and moved on the
 * device; the moved rows are read and compared once more.  If that does not lead to
 * a proof, the check claims nothing, and the sort has to be done in another way.
 *
 * A check takes turns with its caller, who calls gs_order_check_work()
 * whenever the device or the checker has notified it.  Nothing here waits,
 * and all functions are called from the thread that calls the device.
 *
 * Nothing here knows PostgreSQL; this header is plain C11.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ORDER_CHECK_H
#define GS_ORDER_CHECK_H

#include "device/device.h"
#include "order/key_check.h"

typedef enum GsVerdict
{
	GS_ORDER_PENDING,
	GS_ORDER_PROVEN,
	GS_ORDER_NOT_PROVEN,		/* use the sort's images, not its pages */
	GS_ORDER_DEVICE_LOST
} GsVerdict;

typedef struct GsOrderOutcome
{
	GsVerdict	verdict;
	GsError		reason;			/* why not PROVEN */
	uint64_t	rows_moved;
	double		ms;				/* since the check began */
} GsOrderOutcome;

/*
 * For a sort that is one range of a larger sort: the last key of the range before,
 * which must come before all keys of this range; NULL for the first range.  It must
 * not change until the verdict.
 */
typedef struct GsOrderRange
{
	const void *before;
	uint32_t	before_len;
} GsOrderRange;

typedef struct GsOrderCheck GsOrderCheck;

/*
 * Once, before all else.  notify is called on threads of the checker's own,
 * which have all signals blocked, with NULL; none runs before the first check.
 */
extern void gs_order_check_init(const GsDeviceOps *ops, void (*notify) (void *arg));

/*
 * Begin to check a sort of a device's that has been performed and of which nothing is
 * pending; until the verdict nobody else may use it.  range: NULL where it is all of a
 * sort.
 * Returns NULL where memory is short.
 */
extern GsOrderCheck *gs_order_check_begin(GsDevice *device, GsDeviceSort *sort,
										  const GsKeyLayout *layout, const GsOrderRange *range);

/* The last key of a PROVEN range, valid until the check is freed; NULL: the range has no rows. */
extern const void *gs_order_check_last(const GsOrderCheck *check, uint32_t *len);

/*
 * Take all checks a step further; true if any could be.
 */
extern bool gs_order_check_work(void);
extern void gs_order_check_outcome(const GsOrderCheck *check, GsOrderOutcome *outcome);

/* Make the verdict NOT_PROVEN soon; the sort should be cancelled as well. */
extern void gs_order_check_cancel(GsOrderCheck *check);

/* Free a check that has its verdict. */
extern void gs_order_check_end(GsOrderCheck *check);

/*
 * At the end: first stop the threads, then close the devices, which may still
 * write to the checker's memory, then free that.
 */
extern void gs_order_check_stop(void);
extern void gs_order_check_free(void);

#ifdef GPUSORT_FAULTS
/*
 * For tests, right after gs_order_check_begin: put two neighbouring rows,
 * among the first ones, into the wrong order; of one run, or of two.
 */
extern void gs_order_check_plant(GsOrderCheck *check, bool border);
#endif

#endif							/* GS_ORDER_CHECK_H */
