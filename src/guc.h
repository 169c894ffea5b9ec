/*-------------------------------------------------------------------------
 *
 * guc.h
 *	  gpusort's settings.  Units are in the names.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GUC_H
#define GS_GUC_H

/* The most devices that a server can use. */
#define GS_MAX_DEVICES	16

typedef enum GsEnabled
{
	GS_ENABLED_OFF,
	GS_ENABLED_MAINTENANCE,		/* index builds and copies of tables; no query */
	GS_ENABLED_ON
} GsEnabled;

/* The value of gpusort.staging_memory with which the machine decides. */
#define GS_STAGING_BY_MACHINE	(-1)

typedef enum GsDeviceChoice
{
	GS_CHOOSE_AUTO,				/* CUDA where there is a GPU, else the host device */
	GS_CHOOSE_CUDA,
	GS_CHOOSE_HOST,
	GS_CHOOSE_OFF
} GsDeviceChoice;

/* for every user */
extern int	gs_guc_enabled;		/* a GsEnabled */
extern bool gs_guc_index_build;
extern bool gs_guc_log_refusals;
extern int	gs_guc_min_rows;
extern int	gs_guc_wait_timeout_ms;

/* for superusers, also for roles */
extern int	gs_guc_role_memory_kb;	/* 0: no limit */

/* for the server */
extern int	gs_guc_service_timeout_s;	/* 0: none */

/* at server start */
extern int	gs_guc_device;		/* a GsDeviceChoice */
extern char *gs_guc_devices;	/* numbers and UUIDs, or empty: all */
extern int	gs_guc_device_memory_mb;	/* 0: chosen by the device */
extern int	gs_guc_host_threads;	/* 0: one a core */
extern int	gs_guc_staging_memory_mb;	/* GS_STAGING_BY_MACHINE until gs_service_shmem_request() */

extern double gs_guc_cost_factor;	/* of times that the planner expects */

/* for developers */
extern int	gs_guc_engine;		/* a GsEngine */
extern bool gs_guc_force;
extern bool gs_guc_sorts_only;	/* only sorts, and no other nodes of gpusort */
extern bool gs_guc_check_order; /* compare all neighbours, not a sample */

/* Returns the number of devices in gpusort.devices; 0: the list is empty. */
extern int	gs_guc_count_devices(void);

/* preloading: settings of the server's start can still be defined */
extern void gs_guc_define(bool preloading);

#endif							/* GS_GUC_H */
