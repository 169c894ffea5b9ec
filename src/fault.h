/*-------------------------------------------------------------------------
 *
 * fault.h
 *	  Fault points for tests; nothing of them exists in ordinary builds.
 *
 * In a build with FAULTS=1 the setting gpusort.fault is "POINT" or "POINT:N".  The fault happens when its
 * point is reached the Nth time after the setting was made (the first by default), and each time from then
 * on, until the setting changes.  Points in the service read the setting from the server's configuration
 * (ALTER SYSTEM, then pg_reload_conf()).
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
