/*-------------------------------------------------------------------------
 *
 * sort_refuse.c
 *	  Saying why a sort is left to PostgreSQL (sort_refuse.h).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan/sort_refuse.h"

void
gs_refuse(GsRefusal reason)
{
	gs_stats_refusal(reason);
	ereport(DEBUG1,
			(errmsg_internal("gpusort leaves a sort to PostgreSQL: %s", gs_refusal_name(reason))));
}
