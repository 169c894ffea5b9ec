/*-------------------------------------------------------------------------
 *
 * order_sort.h
 *	  Sorting the keys of a run by their full order, with many threads.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ORDER_SORT_H
#define GS_ORDER_SORT_H

#include <string.h>

#include "device/device.h"
#include "device/host_threads.h"
#include "order/key_check.h"

/* What tells the order of keys, and when to give up telling it. */
typedef struct GsOrderJudge
{
	GsKeyLayout layout;
	locale_t	locales[GS_KEY_MAX_LOCALES];
	int			stop;			/* atomic; not 0: end soon */
} GsOrderJudge;

static inline bool
gs_order_stopped(const GsOrderJudge *judge)
{
	return __atomic_load_n(&judge->stop, __ATOMIC_RELAXED) != 0;
}

/* A key as fetch_keys gives it. */
static inline uint32_t
gs_entry_len(const uint8_t *entry)
{
	uint32_t	word;

	memcpy(&word, entry, sizeof(word));
	return word & GS_LENGTH_MASK;
}

static inline const uint8_t *
gs_entry_key(const uint8_t *entry)
{
	return entry + sizeof(uint32_t);
}

/* Bytes from an entry to the next one. */
static inline size_t
gs_entry_bytes(const uint8_t *entry)
{
	return sizeof(uint32_t) + (((size_t) gs_entry_len(entry) + 3) & ~(size_t) 3);
}

static inline bool
gs_entry_has_prefix(const uint8_t *entry, const uint8_t *prefix, uint32_t prefix_len)
{
	return gs_entry_len(entry) >= prefix_len &&
		memcmp(gs_entry_key(entry), prefix, prefix_len) == 0;
}

static inline int
gs_entry_compare(const GsOrderJudge *judge, const uint8_t *a, const uint8_t *b,
				 GsKeyCheckScratch *scratch)
{
	return gs_key_check_compare(&judge->layout, judge->locales,
								gs_entry_key(a), gs_entry_len(a),
								gs_entry_key(b), gs_entry_len(b), scratch);
}

/*
 * Sort n entries: order[i] becomes the number of the entry that belongs at
 * place i, equal ones staying as they are.  order and spare have room for n
 * each.  To be called on a thread of the pool.  Returns false where the judge
 * was stopped, or keys were found malformed; nothing can be said of order
 * then but that it may be freed.
 */
extern bool gs_order_sort(const GsOrderJudge *judge, GsHostPool *pool,
						  const uint8_t *const *entries, uint32_t n,
						  uint32_t *order, uint32_t *spare);

#endif							/* GS_ORDER_SORT_H */
