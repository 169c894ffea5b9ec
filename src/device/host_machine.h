/*-------------------------------------------------------------------------
 *
 * host_machine.h
 *	  What the machine has for the host device: cores and memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_HOST_MACHINE_H
#define GS_HOST_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* Cores that this process may use. */
extern int	gs_host_cores(void);

/* Of `total` bytes, those that can be used without swapping. */
extern uint64_t gs_host_available_memory(uint64_t total);

/*
 * Memory for much data: large pages where the system has them.  Returned by
 * free().
 */
extern void *gs_host_allocate(size_t bytes);

#endif							/* GS_HOST_MACHINE_H */
