/*-------------------------------------------------------------------------
 *
 * machine.c
 *	  What the machine has, or its control group leaves: cores, memory, a clock.
 *
 * Tests: unit/plain/test_device, tap/fault_not_available
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/machine.h"

#define MAX_SLAB_BYTES ((size_t) 64 << 20)
#define HUGE_PAGE ((size_t) 2 << 20)

/* The machine's memory is checked once for this many reserved bytes. */
#define WATCH_BYTES ((uint64_t) 64 << 20)

struct GsSlab
{
	GsSlab *next;			/* made before it */
	char	   *memory;
	size_t		bytes;
	size_t		used;			/* multiple of 64 */
};

static const char *
root_folder(void)
{
#ifdef GPUSORT_FAULTS
	if (getenv("GPUSORT_FAULT_CGROUP") != NULL)
		return getenv("GPUSORT_FAULT_CGROUP");
#endif
	return "";
}

/*
 * Finds the folder of this process's control group.  The controller has a hierarchy of its own in version 1,
 * and shares one in version 2.  Returns the length of the topmost folder's path.
 */
static size_t
find_cgroup(const char *controller, char *folder)
{
	char		line[PATH_MAX + 256];
	char		list[128] = ",";
	char		wanted[16];
	char		name[PATH_MAX] = "";
	bool		is_own = false;
	size_t		top;
	FILE	   *file;

	snprintf(wanted, sizeof(wanted), ",%s,", controller);
	snprintf(line, sizeof(line), "%s/proc/self/cgroup", root_folder());
	file = fopen(line, "re");
	while (file != NULL && !is_own && fgets(line, sizeof(line), file) != NULL)
	{
		if (sscanf(line, "%*d:%100[^:]:", list + 1) == 1)
			is_own = strstr(strcat(list, ","), wanted) != NULL;
		if (is_own || strncmp(line, "0::", 3) == 0)
			(void) sscanf(line, "%*[^/]%4095[^\n]", name);
	}
	if (file != NULL)
		fclose(file);
	top = (size_t) snprintf(folder, PATH_MAX, "%s/sys/fs/cgroup%s%s", root_folder(),
							is_own ? "/" : "", is_own ? controller : "");

	/* a container may see only its own control groups, under names of the host */
	for (const char *rest = name; rest[0] == '/'; rest += 1 + strcspn(rest + 1, "/"))
	{
		strcpy(folder + top, rest);
		if (access(folder, F_OK) == 0)
			return top;
	}
	folder[top] = '\0';
	return top;
}

/* Returns the least value of a function for this process's control group and those above it. */
static uint64_t
least_of_cgroups(const char *controller, uint64_t (*of) (const char *folder))
{
	char		folder[2 * PATH_MAX];
	size_t		top = find_cgroup(controller, folder);
	uint64_t	least = of(folder);

	while (strlen(folder) > top)
	{
		uint64_t	value;

		*strrchr(folder, '/') = '\0';
		value = of(folder);
		if (value < least)
			least = value;
	}
	return least;
}

/* Returns the number behind a name at the start of a line, or otherwise if the file has no such line. */
static uint64_t
read_number(const char *folder, const char *file_name, const char *name, uint64_t otherwise)
{
	char		path[2 * PATH_MAX + 64];
	char		line[128];
	uint64_t	number;
	bool		found = false;
	FILE	   *file;

	snprintf(path, sizeof(path), "%s/%s", folder, file_name);
	file = fopen(path, "re");
	while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL)
		found = strncmp(line, name, strlen(name)) == 0 && sscanf(line + strlen(name), "%" SCNu64, &number) == 1;
	if (file != NULL)
		fclose(file);
	return found ? number : otherwise;
}

/* Returns the bytes that a control group may hold, or UINT64_MAX.  Above memory.high processes slow down. */
static uint64_t
cgroup_memory(const char *folder)
{
	uint64_t	most = read_number(folder, "memory.limit_in_bytes", "", UINT64_MAX);
	uint64_t	high = read_number(folder, "memory.high", "", UINT64_MAX);

	most = read_number(folder, "memory.max", "", most);
	return high < most ? high : most;
}

/* Returns the memory that a control group may still take, or UINT64_MAX. */
static uint64_t
cgroup_memory_left(const char *folder)
{
	uint64_t	most = cgroup_memory(folder);
	uint64_t	used = read_number(folder, "memory.usage_in_bytes", "", 0);
	uint64_t	cached;

	if (most == UINT64_MAX)
		return UINT64_MAX;

	/* the kernel drops cached files when a process needs memory; version 1 has totals */
	cached = read_number(folder, "memory.stat", "total_inactive_file ",
						 read_number(folder, "memory.stat", "inactive_file ", 0)) +
		read_number(folder, "memory.stat", "total_active_file ",
					read_number(folder, "memory.stat", "active_file ", 0));
	used = read_number(folder, "memory.current", "", used);
	used -= cached < used ? cached : used;
	return most > used ? most - used : 0;
}

uint64_t
gs_machine_total_memory(void)
{
	uint64_t	total = (uint64_t) sysconf(_SC_PHYS_PAGES) * (uint64_t) sysconf(_SC_PAGESIZE);
	uint64_t	most = least_of_cgroups("memory", cgroup_memory);

	return most < total ? most : total;
}

uint64_t
gs_machine_available_memory(uint64_t total)
{
	uint64_t	available = read_number("/proc", "meminfo", "MemAvailable:", total / 2048) * 1024;
	uint64_t	left = least_of_cgroups("memory", cgroup_memory_left);

#ifdef GPUSORT_FAULTS
	if (getenv("GPUSORT_FAULT_LOW_MEMORY") != NULL)
		return 0;
#endif
	return left < available ? left : available;
}

uint64_t
gs_machine_default_limit(uint64_t total)
{
	uint64_t	most = gs_machine_available_memory(total) / 2;

	return total / 4 < most ? total / 4 : most;
}

bool
gs_machine_may_reserve(uint64_t total, uint64_t bytes, uint64_t *unwatched, uint64_t *available)
{
	*unwatched += bytes;
	if (*unwatched < WATCH_BYTES)
		return true;
	*available = gs_machine_available_memory(total);
	if (*available < total / 10)
		return false;
	*unwatched = 0;
	return true;
}

/* Returns how many cores a control group may keep busy, or UINT64_MAX. */
static uint64_t
cgroup_cores(const char *folder)
{
	char		path[2 * PATH_MAX + 64];
	uint64_t	quota = read_number(folder, "cpu.cfs_quota_us", "", UINT64_MAX);
	uint64_t	period = read_number(folder, "cpu.cfs_period_us", "", 1);
	FILE	   *file;

	snprintf(path, sizeof(path), "%s/cpu.max", folder);
	file = fopen(path, "re");
	/* "max" in place of the quota: none */
	if (file != NULL)
	{
		(void) !fscanf(file, "%" SCNu64 " %" SCNu64, &quota, &period);
		fclose(file);
	}
	return quota == UINT64_MAX ? quota : (quota + period - 1) / period;
}

int
gs_machine_cores(void)
{
	cpu_set_t	set;
	long		cores;
	uint64_t	most = least_of_cgroups("cpu", cgroup_cores);

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		cores = CPU_COUNT(&set);
	else
		cores = sysconf(_SC_NPROCESSORS_ONLN);
	if ((uint64_t) cores > most)
		cores = (long) most;
	return cores > 0 ? (int) cores : 1;
}

bool
gs_grow(void **items, uint64_t n, uint64_t *room, size_t item_bytes)
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
gs_allocate(size_t bytes)
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
 * A slab is twice as large as the one before.  So small sorts take little memory, and many chunks take few
 * slabs.
 */
char *
gs_slab_allocate(GsSlab **slabs, size_t bytes, size_t first_bytes)
{
	GsSlab *slab = *slabs;
	size_t		slab_bytes = slab == NULL ? first_bytes : slab->bytes * 2;
	char	   *memory;

	bytes = (bytes + 63) & ~(size_t) 63;
	if (slab == NULL || slab->bytes - slab->used < bytes)
	{
		if (slab_bytes > MAX_SLAB_BYTES)
			slab_bytes = MAX_SLAB_BYTES;
		if (slab_bytes < bytes)
			slab_bytes = bytes;
		slab = calloc(1, sizeof(GsSlab));
		if (slab == NULL)
			return NULL;
		slab->memory = gs_allocate(slab_bytes);
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
gs_slabs_free(GsSlab **slabs)
{
	while (*slabs != NULL)
	{
		GsSlab *slab = *slabs;

		*slabs = slab->next;
		free(slab->memory);
		free(slab);
	}
}

double
gs_machine_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec * 1e3 + (double) now.tv_nsec / 1e6;
}
