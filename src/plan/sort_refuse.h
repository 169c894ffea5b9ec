/*-------------------------------------------------------------------------
 *
 * sort_refuse.h
 *	  Saying why a sort is left to PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_REFUSE_H
#define GS_SORT_REFUSE_H

#include "key/key.h"
#include "stats.h"

/* Count the refusal and report it at DEBUG1. */
extern void gs_refuse(GsRefused reason);
extern void gs_refuse_key(GsRefusal reason);

#endif							/* GS_SORT_REFUSE_H */
