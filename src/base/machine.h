/*-------------------------------------------------------------------------
 *
 * machine.h
 *	  What the machine has, or its control group leaves: cores, memory, a clock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_MACHINE_H
#define GS_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C"
{
#endif

/* Returns the number of cores that this process and its control group may use. */
extern int	gs_machine_cores(void);

/* Returns the bytes of memory of the machine, or of this process's control group if that has less. */
extern uint64_t gs_machine_total_memory(void);

/* Returns the bytes, of total, that can be used without swapping. */
extern uint64_t gs_machine_available_memory(uint64_t total);

/* Returns how many of `total` bytes one user of the machine's memory may hold by default. */
extern uint64_t gs_machine_default_limit(uint64_t total);

/*
 * May that user reserve the bytes, under the default limit?  If not, *available tells what the
 * machine has left.  *unwatched is kept for the caller, and begins at 0.
 */
extern bool gs_machine_may_reserve(uint64_t total, uint64_t bytes, uint64_t *unwatched, uint64_t *available);

/* Returns milliseconds of a monotonic clock. */
extern double gs_machine_now_ms(void);

/* Makes room for n items of an array, which grows by realloc() to twice its size.  False: no memory. */
extern bool gs_grow(void **items, uint64_t n, uint64_t *room, size_t item_bytes);

/* Returns memory for much data, in large pages if the system has them.  free() frees it. */
extern void *gs_allocate(size_t bytes);

/*
 * Memory for many pieces that are freed together.  *slabs begins as NULL.  Pieces start at multiples of 64.
 * The first slab has first_bytes or more.
 */
typedef struct GsSlab GsSlab;

extern char *gs_slab_allocate(GsSlab **slabs, size_t bytes, size_t first_bytes);
extern void gs_slabs_free(GsSlab **slabs);

#ifdef __cplusplus
}
#endif

#endif							/* GS_MACHINE_H */
