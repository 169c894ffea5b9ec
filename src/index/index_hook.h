/*-------------------------------------------------------------------------
 *
 * index_hook.h
 *	  Where gpusort enters PostgreSQL's index builds.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_INDEX_HOOK_H
#define GS_INDEX_HOOK_H

extern void gs_index_init(void);

#endif							/* GS_INDEX_HOOK_H */
