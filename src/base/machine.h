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

/* Cores that this process may use, or that its control group has time of. */
extern int	gs_host_cores(void);

/* Bytes of memory that the machine has, or this process's control group. */
extern uint64_t gs_host_total_memory(void);

/* Of `total` bytes, those that can be used without swapping. */
extern uint64_t gs_host_available_memory(uint64_t total);

/* What one user of the machine's memory may hold by default, of `total` bytes. */
extern uint64_t gs_host_default_limit(uint64_t total);

/*
 * May that user reserve the bytes, under the default limit?  If not, *available tells what the
 * machine has left.  *unwatched is kept for the caller, and begins at 0.
 */
extern bool gs_host_may_reserve(uint64_t total, uint64_t bytes, uint64_t *unwatched, uint64_t *available);

/* Milliseconds by a clock that nobody sets. */
extern double gs_host_now_ms(void);

/* Make room for n items of an array that grows by realloc(), to twice its size; false: no memory. */
extern bool gs_host_grow(void **items, uint64_t n, uint64_t *room, size_t item_bytes);

/*
 * Memory for much data: large pages where the system has them.  Returned by
 * free().
 */
extern void *gs_host_allocate(size_t bytes);

/*
 * Memory for many pieces that are given back together: begin with a NULL.
 * Pieces start at multiples of 64; the first slab has first_bytes or more.
 */
typedef struct GsHostSlab GsHostSlab;

extern char *gs_host_slab_allocate(GsHostSlab **slabs, size_t bytes, size_t first_bytes);
extern void gs_host_slabs_free(GsHostSlab **slabs);

#ifdef __cplusplus
}
#endif

#endif							/* GS_MACHINE_H */
