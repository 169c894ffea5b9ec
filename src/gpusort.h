/*-------------------------------------------------------------------------
 *
 * gpusort.h
 *	  The few constants that the PostgreSQL side of gpusort shares.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_H
#define GPUSORT_H

#define GPUSORT_NAME		"gpusort"

/* Let plans with gpusort's nodes be read in this process.  plan_steps.c */
extern void gs_nodes_init(void);

/* gpusort.c calls these when gpusort is preloaded. */
extern void gs_service_register(void);	/* service_worker.c */
extern void gs_planner_init(void);	/* plan_steps.c */
extern void gs_cluster_init(void);	/* cluster.c */

/*
 * Size of a chunk of staging memory.  A row needs an eighth of it at most
 * (gs_max_row_bytes); larger rows travel beside the device (sort/sort_stored.c).
 */
#define GS_CHUNK_BYTES		((uint32) 1 << 20)

#endif							/* GPUSORT_H */
