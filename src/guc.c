/*-------------------------------------------------------------------------
 *
 * guc.c
 *	  All of gpusort's settings, in one place.
 *
 * Tests: regress/views, tap/docs_examples
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>
#include <float.h>
#include <limits.h>

#include "access/parallel.h"
#include "utils/guc.h"
#include "utils/plancache.h"
#include "utils/varlena.h"

#include "compat.h"
#include "device/device.h"
#include "fault.h"
#include "gpusort.h"
#include "guc.h"

/* 16 TB: more than any device has, so that a wrong unit is noticed. */
#define MAX_DEVICE_MEMORY_MB	(16 * 1024 * 1024)

/* Memory of one chunk of any rows, and for ordering them.  3 MB were enough in all trials. */
#define LEAST_ROLE_MEMORY_KB	4096

#define MIN_STAGING_MEMORY_MB	8

/* Documented in test/README.md; users need to know nothing of these settings. */
#define FOR_DEVELOPERS	(GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE)

int			gs_guc_enabled = GS_ENABLED_ON;
bool		gs_guc_index_build = true;
bool		gs_guc_log_refusals = false;
int			gs_guc_min_rows = 20000;
int			gs_guc_wait_timeout_ms = 1000;
int			gs_guc_role_memory_kb = 0;
int			gs_guc_service_timeout_s = 60;

int			gs_guc_device = GS_CHOOSE_AUTO;
char	   *gs_guc_devices = NULL;
int			gs_guc_device_memory_mb = 0;
int			gs_guc_host_threads = 0;
int			gs_guc_staging_memory_mb = GS_STAGING_BY_MACHINE;

double		gs_guc_cost_factor = 1.0;

int			gs_guc_engine = GS_ENGINE_AUTO;
bool		gs_guc_force = false;
bool		gs_guc_sorts_only = false;
bool		gs_guc_check_order = false;

/*
 * Hidden entries are other words of boolean settings, as in PostgreSQL's own enums that once were booleans.
 */
static const struct config_enum_entry enabled_choices[] = {
	{"off", GS_ENABLED_OFF, false},
	{"maintenance", GS_ENABLED_MAINTENANCE, false},
	{"on", GS_ENABLED_ON, false},
	{"true", GS_ENABLED_ON, true},
	{"false", GS_ENABLED_OFF, true},
	{"yes", GS_ENABLED_ON, true},
	{"no", GS_ENABLED_OFF, true},
	{"1", GS_ENABLED_ON, true},
	{"0", GS_ENABLED_OFF, true},
	{"t", GS_ENABLED_ON, true},
	{"f", GS_ENABLED_OFF, true},
	{"y", GS_ENABLED_ON, true},
	{"n", GS_ENABLED_OFF, true},
	{NULL, 0, false}
};

static const struct config_enum_entry device_choices[] = {
	{"auto", GS_CHOOSE_AUTO, false},
	{"cuda", GS_CHOOSE_CUDA, false},
	{"host", GS_CHOOSE_HOST, false},
	{"off", GS_CHOOSE_OFF, false},
	{NULL, 0, false}
};

/* Filled by gs_guc_define(); the last entry ends it */
#ifdef GS_WITH_PAPERS
static struct config_enum_entry engine_choices[GS_N_ENGINES + 1];
#endif

/*
 * Users switch gpusort off if an order is wrong.  So cached plans of prepared statements and PL/pgSQL are
 * dropped, too.
 */
static void
assign_enabled(int newval, void *extra)
{
	if (newval != gs_guc_enabled)
		ResetPlanCache();
}

/* Is the item the number of a device, or of the form of a UUID? */
static bool
names_device(const char *item)
{
	const char *form = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	size_t		digits = strspn(item, "0123456789");

	if (digits > 0)
		return item[digits] == '\0' && digits <= 4;
	if (pg_strncasecmp(item, "GPU-", 4) != 0 && pg_strncasecmp(item, "MIG-", 4) != 0)
		return false;
	item += 4;
	while (*form && (*form == 'x' ? isxdigit((unsigned char) *item) : *item == '-'))
	{
		form++;
		item++;
	}
	return *form == '\0' && *item == '\0';
}

/* At a reload, -1 means the size chosen at the server's start, so it changes nothing. */
static bool
check_staging_memory(int *newval, void **extra, GucSource source)
{
	if (*newval == GS_STAGING_BY_MACHINE)
		*newval = gs_guc_staging_memory_mb;
	else
		*newval = Max(*newval, MIN_STAGING_MEMORY_MB);
	return true;
}

static bool
check_devices(char **newval, void **extra, GucSource source)
{
	char	   *copy = pstrdup(*newval);
	List	   *items;
	ListCell   *lc;
	bool		good = SplitGUCList(copy, ',', &items);

	if (!good)
		GUC_check_errdetail("List syntax is invalid.");
	else if (list_length(items) > GS_MAX_DEVICES)
	{
		GUC_check_errdetail("A server can use %d devices at most.", GS_MAX_DEVICES);
		good = false;
	}
	foreach(lc, items)
	{
		if (!good || names_device(lfirst(lc)))
			continue;
		GUC_check_errdetail("\"%s\" is neither the number of a device nor its UUID.", (char *) lfirst(lc));
		GUC_check_errhint("Numbers begin at 0; \"nvidia-smi -L\" lists the UUIDs, which begin with GPU- or MIG-.");
		good = false;
	}
	list_free(items);
	pfree(copy);
	return good;
}

/*
 * Warns when the value is set.  After an error, roles would have no limit instead of one that is too small.
 */
static bool
check_role_memory(int *newval, void **extra, GucSource source)
{
	if (*newval > 0 && *newval < LEAST_ROLE_MEMORY_KB && !InitializingParallelWorker &&
		(source == PGC_S_TEST || source >= PGC_S_INTERACTIVE))
		ereport(WARNING,
				(errmsg("gpusort.role_memory of %d kB has no room for a sort's first rows", *newval),
				 errhint("PostgreSQL does such sorts. Set it to 4 MB or more, or to 0 for no limit.")));
	return true;
}

int
gs_guc_count_devices(void)
{
	int			n = gs_guc_devices[0] != '\0';

	for (const char *p = gs_guc_devices; *p; p++)
		if (*p == ',')
			n++;
	return n;
}

static void
define_server_settings(void)
{
	DefineCustomEnumVariable("gpusort.device",
							 "Selects the device that sorts.",
							 "\"cuda\" uses GPUs, and leaves all sorts to PostgreSQL if there is none. "
							 "\"host\" sorts on the CPU, on threads of the gpusort service. "
							 "\"auto\" uses GPUs, or the CPU if the server starts without one.",
							 &gs_guc_device, GS_CHOOSE_AUTO, device_choices,
							 PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("gpusort.devices",
							   "Selects the GPUs that sort, by number or UUID.",
							   "The default, an empty list, means all that CUDA shows. A device that is listed "
							   "several times is opened as often, as if it were several devices.",
							   &gs_guc_devices, "",
							   PGC_POSTMASTER, GUC_LIST_INPUT, check_devices, NULL, NULL);
	DefineCustomIntVariable("gpusort.device_memory",
							"Sets the maximum memory of each device that all sorts together may hold.",
							"Sorts that need more use temporary files. Zero means the default: four fifths of "
							"the GPU's free memory, or a quarter of the machine's memory for the host device.",
							&gs_guc_device_memory_mb, 0, 0, MAX_DEVICE_MEMORY_MB,
							PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.service_timeout",
							"Sets after how long without any progress of gpusort's service PostgreSQL sorts instead.",
							"Open sorts are lost then, and run again where that is possible. Zero means that sorts wait.",
							&gs_guc_service_timeout_s, 60, 0, INT_MAX / 1000,
							PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.host_threads",
							"Sets the number of threads of the host device.",
							"Zero means one for each processor core.",
							&gs_guc_host_threads, 0, 0, 1024,
							PGC_POSTMASTER, FOR_DEVELOPERS, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.staging_memory",
							"Sets the size of the shared memory through which rows go to the device and back.",
							"-1 means 32 MB for each core, from 256 MB to 2 GB; a thirty-second of the "
							"machine's memory, or 64 MB, bounds it.",
							&gs_guc_staging_memory_mb, GS_STAGING_BY_MACHINE,
							GS_STAGING_BY_MACHINE, 64 * 1024,
							PGC_POSTMASTER, GUC_UNIT_MB, check_staging_memory, NULL, NULL);
}

void
gs_guc_define(bool preloading)
{
	DefineCustomEnumVariable("gpusort.enabled",
							 "Enables sorts and index builds by gpusort.",
							 "\"maintenance\" enables index builds, CLUSTER and REPACK, and changes no query's plan.",
							 &gs_guc_enabled, GS_ENABLED_ON, enabled_choices,
							 PGC_USERSET, GUC_EXPLAIN, NULL, assign_enabled, NULL);
	DefineCustomBoolVariable("gpusort.index_build",
							 "Enables builds of btree and GIN indexes by gpusort.",
							 NULL,
							 &gs_guc_index_build, true,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.log_refusals",
							 "Reports each sort and index build that gpusort leaves to PostgreSQL, with the reason.",
							 NULL,
							 &gs_guc_log_refusals, false,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.min_rows",
							"Sets the minimum number of rows for a sort on the device.",
							"PostgreSQL, or the backend itself, sorts fewer rows.",
							&gs_guc_min_rows, 20000, 0, INT_MAX,
							PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.wait_timeout",
							"Sets how long a sort waits for staging memory before PostgreSQL sorts instead.",
							"The time counts from when another sort in the queue got some; a sort waits "
							"at most ten times as long. Zero means not to wait.",
							&gs_guc_wait_timeout_ms, 1000, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS | FOR_DEVELOPERS, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.role_memory",
							"Sets the maximum memory of all devices that the sorts of a role together may hold.",
							"A sort that would need more uses temporary files, its own or those of the role's "
							"other sorts. Zero means no limit.",
							&gs_guc_role_memory_kb, 0, 0, MAX_KILOBYTES,
							PGC_SUSET, GUC_UNIT_KB, check_role_memory, NULL, NULL);

	DefineCustomRealVariable("gpusort.cost_factor",
							 "Multiplies the time that the planner expects a sort by gpusort to take.",
							 NULL,
							 &gs_guc_cost_factor, 1.0, 0, 1e6,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);

#ifdef GS_WITH_PAPERS
	for (int i = 0; i < GS_N_ENGINES; i++)
	{
		engine_choices[i].name = gs_engine_name((GsEngine) i);
		engine_choices[i].val = i;
	}
	DefineCustomEnumVariable("gpusort.engine",
							 "Selects the algorithm by which a GPU sorts.",
							 "All but \"auto\" are published algorithms, for comparison.",
							 &gs_guc_engine, GS_ENGINE_AUTO, engine_choices,
							 PGC_SUSET, GUC_EXPLAIN | FOR_DEVELOPERS, NULL, NULL, NULL);
#endif
	DefineCustomBoolVariable("gpusort.force",
							 "Makes gpusort take every sort that it supports, regardless of cost and size.",
							 "This is for tests and benchmarks.",
							 &gs_guc_force, false,
							 PGC_USERSET, GUC_EXPLAIN | FOR_DEVELOPERS, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.sorts_only",
							 "Makes gpusort sort only, below PostgreSQL's own nodes.",
							 "This is for developers.",
							 &gs_guc_sorts_only, false,
							 PGC_USERSET, FOR_DEVELOPERS, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.check_order",
							 "Compares all neighbours in the order of a libc collation, instead of a sample.",
							 "This is for tests.",
							 &gs_guc_check_order, false,
							 PGC_USERSET, FOR_DEVELOPERS, NULL, NULL, NULL);
	gs_fault_define_setting();

	/*
	 * If gpusort is not preloaded, its server settings may still be in the configuration.  They cause no
	 * warning.
	 */
	if (preloading)
	{
		define_server_settings();
		MarkGUCPrefixReserved(GPUSORT_NAME);
	}
}
