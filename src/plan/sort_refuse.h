/*-------------------------------------------------------------------------
 *
 * sort_refuse.h
 *	  Saying why a sort is left to PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_REFUSE_H
#define GS_SORT_REFUSE_H

#include "stats.h"

/* Count the refusal and report it at DEBUG1. */
extern void gs_refuse(GsRefusal reason);

#endif							/* GS_SORT_REFUSE_H */
