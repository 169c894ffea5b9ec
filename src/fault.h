/*-------------------------------------------------------------------------
 *
 * fault.h
 *	  Fault points for tests; nothing of them exists in ordinary builds.
 *
 * In a build with FAULTS=1 the setting gpusort.fault holds "POINT" or
 * "POINT:N": the fault happens when its point is reached the Nth time (the
 * first by default) after the setting was made, and each time from then on
 * until it is changed.  Points in the service read the setting from the
 * server's configuration (ALTER SYSTEM, then pg_reload_conf()).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_FAULT_H
#define GS_FAULT_H

#ifdef GPUSORT_FAULTS

extern void gs_fault_define_setting(void);
extern bool gs_fault_reached(const char *point);

/* Does what follows when the point's fault is due. */
#define GS_FAULT(point) (gs_fault_reached(point))

#else

#define gs_fault_define_setting() ((void) 0)
#define GS_FAULT(point) (false)

#endif

#endif							/* GS_FAULT_H */
