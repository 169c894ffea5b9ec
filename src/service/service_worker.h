/*-------------------------------------------------------------------------
 *
 * service_worker.h
 *	  The gpusort service: the background worker that owns the device.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SERVICE_WORKER_H
#define GS_SERVICE_WORKER_H

/* Have the postmaster run the service; called while preloading. */
extern void gs_service_register(void);

extern PGDLLEXPORT void gpusort_service_main(Datum arg);

#endif							/* GS_SERVICE_WORKER_H */
