/*-------------------------------------------------------------------------
 *
 * cluster_hook.h
 *	  Where gpusort enters CLUSTER and REPACK.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_CLUSTER_HOOK_H
#define GS_CLUSTER_HOOK_H

extern void gs_cluster_init(void);

#endif							/* GS_CLUSTER_HOOK_H */
