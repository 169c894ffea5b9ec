/*-------------------------------------------------------------------------
 *
 * host_machine.c
 *	  What the machine has for the host device: cores, memory, a clock.
 *
 * Tests: unit/plain/test_device, tap/fault_not_available
 *
 *-------------------------------------------------------------------------
 */
#ifdef POSTGRES_H
#error "src/device is plain C and must not see postgres.h"
#endif

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "host_machine.h"

#define MAX_SLAB_BYTES ((size_t) 64 << 20)
#define HUGE_PAGE ((size_t) 2 << 20)

struct GsHostSlab
{
	GsHostSlab *next;			/* made before it */
	char	   *memory;
	size_t		bytes;
	size_t		used;			/* multiple of 64 */
};

/* A file of this control group: what a container may use. */
static FILE *
open_group(const char *name)
{
	const char *group = "/sys/fs/cgroup";
	char		path[256];

#ifdef GPUSORT_FAULTS
	if (getenv("GPUSORT_FAULT_CGROUP") != NULL)
		group = getenv("GPUSORT_FAULT_CGROUP");
#endif
	snprintf(path, sizeof(path), "%s/%s", group, name);
	return fopen(path, "re");
}

/* The number behind a name, and what follows it, in a file of such lines, which is closed; or 0. */
static uint64_t
read_named(FILE *file, const char *name)
{
	char		line[128];
	size_t		len = strlen(name);
	uint64_t	number = 0;

	if (file == NULL)
		return 0;
	while (number == 0 && fgets(line, sizeof(line), file) != NULL)
	{
		if (strncmp(line, name, len) == 0)
			number = strtoull(line + len, NULL, 10);
	}
	fclose(file);
	return number;
}

/* The number in a group's file of one line; UINT64_MAX if there is none. */
static uint64_t
read_number(const char *name)
{
	FILE	   *file = open_group(name);
	char		line[64];
	uint64_t	number = UINT64_MAX;

	if (file == NULL)
		return number;
	if (fgets(line, sizeof(line), file) != NULL && line[0] >= '0' && line[0] <= '9')
		number = strtoull(line, NULL, 10);
	fclose(file);
	return number;
}

uint64_t
gs_host_total_memory(void)
{
	uint64_t	total = (uint64_t) sysconf(_SC_PHYS_PAGES) * (uint64_t) sysconf(_SC_PAGESIZE);
	uint64_t	group_max = read_number("memory.max");

	return group_max < total ? group_max : total;
}

/* What is left to this control group; UINT64_MAX where nothing limits it. */
static uint64_t
group_memory_left(void)
{
	uint64_t	group_max = read_number("memory.max");
	uint64_t	group_now = read_number("memory.current");
	uint64_t	cached;

	if (group_max == UINT64_MAX || group_now == UINT64_MAX)
		return UINT64_MAX;

	/* cached files count as used, but make room for whatever needs it */
	cached = read_named(open_group("memory.stat"), "inactive_file ") +
		read_named(open_group("memory.stat"), "active_file ");
	group_now -= cached < group_now ? cached : group_now;
	return group_max > group_now ? group_max - group_now : 0;
}

uint64_t
gs_host_available_memory(uint64_t total)
{
	uint64_t	available = read_named(fopen("/proc/meminfo", "re"), "MemAvailable:") * 1024;
	uint64_t	left = group_memory_left();

#ifdef GPUSORT_FAULTS
	if (getenv("GPUSORT_FAULT_LOW_MEMORY") != NULL)
		return 0;
#endif
	if (available == 0)
		available = total / 2;
	return left < available ? left : available;
}

/* As many as this control group's share of processor time; LONG_MAX where nothing limits it. */
static long
group_cores(void)
{
	FILE	   *file = open_group("cpu.max");
	long		quota;
	long		period;
	long		cores = LONG_MAX;

	if (file == NULL)
		return cores;
	/* "max" in place of the quota: none */
	if (fscanf(file, "%ld %ld", &quota, &period) == 2 && quota > 0 && period > 0)
		cores = (quota + period - 1) / period;
	fclose(file);
	return cores;
}

int
gs_host_cores(void)
{
	cpu_set_t	set;
	long		cores;
	long		most = group_cores();

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		cores = CPU_COUNT(&set);
	else
		cores = sysconf(_SC_NPROCESSORS_ONLN);
	if (cores > most)
		cores = most;
	return cores > 0 ? (int) cores : 1;
}

bool
gs_host_grow(void **items, uint64_t n, uint64_t *room, size_t item_bytes)
{
	uint64_t	larger = *room * 2 > n ? *room * 2 : n;
	void	   *moved;

	if (n <= *room)
		return true;
	moved = realloc(*items, larger * item_bytes);
	if (moved == NULL)
		return false;
	*items = moved;
	*room = larger;
	return true;
}

void *
gs_host_allocate(size_t bytes)
{
	void	   *memory = NULL;
	bool		huge = bytes >= 2 * HUGE_PAGE;

	if (posix_memalign(&memory, huge ? HUGE_PAGE : 64, bytes > 0 ? bytes : 1) != 0)
		return NULL;
	if (huge)
		(void) madvise(memory, bytes & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
	return memory;
}

/*
 * A slab is as large as all before it together, so that small sorts take
 * little, and many chunks few slabs.
 */
char *
gs_host_slab_allocate(GsHostSlab **slabs, size_t bytes, size_t first_bytes)
{
	GsHostSlab *slab = *slabs;
	size_t		slab_bytes = slab == NULL ? first_bytes : slab->bytes * 2;
	char	   *memory;

	bytes = (bytes + 63) & ~(size_t) 63;
	if (slab == NULL || slab->bytes - slab->used < bytes)
	{
		if (slab_bytes > MAX_SLAB_BYTES)
			slab_bytes = MAX_SLAB_BYTES;
		if (slab_bytes < bytes)
			slab_bytes = bytes;
		slab = calloc(1, sizeof(GsHostSlab));
		if (slab == NULL)
			return NULL;
		slab->memory = gs_host_allocate(slab_bytes);
		if (slab->memory == NULL)
		{
			free(slab);
			return NULL;
		}
		slab->bytes = slab_bytes;
		slab->next = *slabs;
		*slabs = slab;
	}
	memory = slab->memory + slab->used;
	slab->used += bytes;
	return memory;
}

void
gs_host_slabs_free(GsHostSlab **slabs)
{
	while (*slabs != NULL)
	{
		GsHostSlab *slab = *slabs;

		*slabs = slab->next;
		free(slab->memory);
		free(slab);
	}
}

double
gs_host_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec * 1e3 + (double) now.tv_nsec / 1e6;
}
