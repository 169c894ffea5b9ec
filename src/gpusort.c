/*-------------------------------------------------------------------------
 *
 * gpusort.c
 *	  Where PostgreSQL loads gpusort.
 *
 * If preloaded, gpusort requests shared memory, registers its service and hooks into the planner.  If
 * loaded into one session only (LOAD, or one of its SQL functions), it only defines its settings, as there
 * is no service.
 *
 * Tests: tap/fault_not_available, regress/views
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/extension.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"

#include "compat.h"
#include "gpusort.h"
#include "guc.h"
#include "index/index_build.h"
#include "key/key_tables.h"
#include "nodes/common/gpunode.h"
#include "service/service_shmem.h"
#include "stats.h"

PG_MODULE_MAGIC_EXT(.name = "gpusort", .version = CppAsString2(GPUSORT_VERSION));

void		_PG_init(void);

static shmem_request_hook_type previous_shmem_request = NULL;
static shmem_startup_hook_type previous_shmem_startup = NULL;

static void
shmem_request(void)
{
	if (previous_shmem_request)
		previous_shmem_request();
	gs_service_shmem_request();
	gs_stats_shmem_request();
	gs_tables_shmem_request();
}

static void
shmem_startup(void)
{
	if (previous_shmem_startup)
		previous_shmem_startup();
	gs_service_shmem_startup();
	gs_stats_shmem_startup();
	gs_tables_shmem_startup();
}

void
_PG_init(void)
{
	bool		preloading = process_shared_preload_libraries_in_progress;

	gs_guc_define(preloading);

	/* plans with our nodes come to parallel workers before anything else */
	gs_nodes_init();
	if (!preloading)
	{
		/* whoever creates the extension means to use it */
		if (creating_extension)
			ereport(WARNING,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("gpusort sorts nothing until the server loads it at start"),
					 errhint("Add gpusort to shared_preload_libraries and restart the server.")));
		return;
	}

	if (gs_compat_server_is_older())
		ereport(WARNING,
				(errmsg("gpusort was built for PostgreSQL %s, which is newer than this server", PG_VERSION),
				 errhint("Update the server, which has bugs that the newer version does not have.")));
	previous_shmem_request = shmem_request_hook;
	shmem_request_hook = shmem_request;
	previous_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = shmem_startup;
	if (gs_guc_device == GS_CHOOSE_OFF)
		return;
	gs_service_register();
	gs_planner_init();
	gs_executor_run_init();
	gs_index_init();
	gs_cluster_init();
}
