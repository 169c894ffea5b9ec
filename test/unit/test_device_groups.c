/*-------------------------------------------------------------------------
 *
 * test_device_groups.c
 *	  The conformance cases of the host device in control groups, which limit memory and cores.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_device.h"

#define GIB ((uint64_t) 1 << 30)
#define MAX_FILES 8

/* A case: files of /proc and /sys, and what a host device then has.  0: as much as without the files. */
typedef struct TestGroup
{
	const char *name;
	struct
	{
		const char *path;
		const char *content;
	}			files[MAX_FILES];
	uint64_t	memory_total;
	uint64_t	memory_limit;
	int			threads;
} TestGroup;

static const TestGroup groups[] = {
	{"version 2, nested", {
		{"proc/self/cgroup", "0::/system.slice/postgresql.service\n"},
		{"sys/fs/cgroup/system.slice/memory.max", "max\n"},
		{"sys/fs/cgroup/system.slice/postgresql.service/memory.max", "1073741824\n"},
		{"sys/fs/cgroup/system.slice/postgresql.service/memory.current", "0\n"},
		{"sys/fs/cgroup/system.slice/postgresql.service/cpu.max", "50000 100000\n"},
	}, GIB, GIB / 4, 1},
	{"version 2, the group above has the limits", {
		{"proc/self/cgroup", "0::/system.slice/postgresql.service\n"},
		{"sys/fs/cgroup/system.slice/memory.max", "1073741824\n"},
		{"sys/fs/cgroup/system.slice/memory.current", "1073741824\n"},
		{"sys/fs/cgroup/system.slice/memory.stat", "anon 7\ninactive_file 67108864\nactive_file 67108864\n"},
		{"sys/fs/cgroup/system.slice/cpu.max", "50000 100000\n"},
		{"sys/fs/cgroup/system.slice/postgresql.service/memory.max", "2147483648\n"},
		{"sys/fs/cgroup/system.slice/postgresql.service/memory.current", "0\n"},
		{"sys/fs/cgroup/system.slice/postgresql.service/cpu.max", "max 100000\n"},
	}, GIB, GIB / 16, 1},
	{"version 2, in a namespace", {
		{"proc/self/cgroup", "0::/\n"},
		{"sys/fs/cgroup/memory.max", "max\n"},
		{"sys/fs/cgroup/memory.high", "1073741824\n"},
		{"sys/fs/cgroup/cpu.max", "50000 100000\n"},
	}, GIB, GIB / 4, 1},
	{"version 2, names of the host", {
		{"proc/self/cgroup", "0::/docker/7f/postgresql.service\n"},
		{"sys/fs/cgroup/postgresql.service/memory.max", "1073741824\n"},
		{"sys/fs/cgroup/postgresql.service/cpu.max", "50000 100000\n"},
	}, GIB, GIB / 4, 1},
	{"version 1", {
		{"proc/self/cgroup", "9:cpuset:/\n8:memory:/a/b\n3:cpu,cpuacct:/a\n0::/c\n"},
		{"sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n"},
		{"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "1073741824\n"},
		{"sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "1073741824\n"},
		{"sys/fs/cgroup/memory/a/b/memory.stat", "inactive_file 0\ntotal_inactive_file 134217728\n"},
		{"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n"},
		{"sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"},
		{"sys/fs/cgroup/c/memory.max", "1048576\n"},
	}, GIB, GIB / 16, 1},
	{"version 1, names of the host", {
		{"proc/self/cgroup", "8:memory:/docker/7f\n3:cpuacct,cpu:/docker/7f\n"},
		{"sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n"},
		{"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n"},
		{"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
	}, GIB, GIB / 4, 1},
	{"version 1, no limits", {
		{"proc/self/cgroup", "8:memory:/a\n3:cpu:/\n"},
		{"sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n"},
		{"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
		{"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
	}, 0, 0, 0},
};

static void
write_file(const char *folder, const char *path, const char *content)
{
	char		command[1024];

	snprintf(command, sizeof(command), "f='%s/%s'; mkdir -p \"${f%%/*}\" && printf '%%s' '%s' >\"$f\"",
			 folder, path, content);
	CHECK(system(command) == 0, "%s", path);
}

/* Opens a host device that finds the files in a folder in place of /. */
static GsDeviceInfo
open_info(const char *folder)
{
	TestDevice	td;
	GsDeviceInfo info = {0};
	GsError		error;

	if (folder != NULL)
		setenv("GPUSORT_FAULT_CGROUP", folder, 1);
	if (CHECK(test_open(&td, &gs_device_host, 0, 0, &error) == GS_OK, "open: %s", error.message))
	{
		td.ops->info(td.device, &info);
		test_close(&td);
	}
	unsetenv("GPUSORT_FAULT_CGROUP");
	return info;
}

static void
case_folders(void)
{
	static const char name[] = "control groups: versions, ancestors, namespaces";
	char		folder[] = "/tmp/gpusort_groups.XXXXXX";
	char		command[64];
	GsDeviceInfo usual;

	if (!test_begin_case(name))
		return;
	snprintf(command, sizeof(command), "rm -rf %s", mkdtemp(folder));
	usual = open_info(folder);
	CHECK(usual.memory_total > 2 * GIB, "this machine has %llu bytes", (unsigned long long) usual.memory_total);
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
	{
		const TestGroup *g = &groups[i];
		GsDeviceInfo info;

		for (int j = 0; j < MAX_FILES && g->files[j].path != NULL; j++)
			write_file(folder, g->files[j].path, g->files[j].content);
		info = open_info(folder);
		CHECK(info.memory_total == (g->memory_total > 0 ? g->memory_total : usual.memory_total),
			  "%s: memory %llu", g->name, (unsigned long long) info.memory_total);
		CHECK(g->memory_limit > 0 ? info.memory_limit == g->memory_limit :
			  info.memory_limit > usual.memory_limit / 10 * 9,
			  "%s: limit %llu", g->name, (unsigned long long) info.memory_limit);
		CHECK(info.threads == (g->threads > 0 ? g->threads : usual.threads), "%s: %d threads", g->name, info.threads);
		CHECK(system(command) == 0, "%s", command);
	}
	test_end_case(name);
}

/* Makes a group with 1 GB within the group of this process's parent.  Exit status 1: it cannot. */
static const char enter_group[] =
	"g=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)\n"
	"[ -e $g/memory.limit_in_bytes ] || g=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)\n"
	"g=${g%/}/gpusort-test-$PPID\n"
	"{ mkdir $g && { echo 1G >$g/memory.limit_in_bytes || echo 1G >$g/memory.max; } &&\n"
	"	echo $PPID >$g/cgroup.procs; } 2>/dev/null || { rmdir $g 2>/dev/null; exit 1; }\n";
static const char leave_group[] =
	"g=$(sed -n -e 's|^[0-9]*:memory:|/sys/fs/cgroup/memory|p' -e 's|^0::|/sys/fs/cgroup|p' /proc/self/cgroup |\n"
	"	grep gpusort-test-$PPID)\n"
	"for p in $PPID $$; do echo $p >${g%/*}/cgroup.procs; done && rmdir $g\n";

/* Runs in a process of its own, which may be unable to leave the group. */
static void
case_real_group(void)
{
	static const char name[] = "a control group of this machine";
	pid_t		child;
	int			status;

	if (!test_begin_case(name))
		return;
	fflush(stdout);
	child = fork();
	if (child == 0)
	{
		GsDeviceInfo info;

		if (system(enter_group) != 0)
		{
			printf("# no group can be made here\n");
			fflush(stdout);
			_exit(0);
		}
		info = open_info(NULL);
		CHECK(info.memory_total == GIB, "memory %llu", (unsigned long long) info.memory_total);
		CHECK(info.memory_limit == GIB / 4, "limit %llu", (unsigned long long) info.memory_limit);
		CHECK(system(leave_group) == 0, "the group is left");
		fflush(stdout);
		_exit(test_failures > 0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the process in the group");
	test_end_case(name);
}

void
test_groups_cases(void)
{
	case_folders();
	case_real_group();
}
