/*-------------------------------------------------------------------------
 *
 * sort_refuse.c
 *	  Saying why a sort is left to PostgreSQL (sort_refuse.h).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "planner/sort_refuse.h"

void
gs_refuse(GsRefused reason)
{
	gs_stats_refusal(reason);
	ereport(DEBUG1,
			(errmsg_internal("gpusort leaves a sort to PostgreSQL: %s", gs_refused_name(reason))));
}

void
gs_refuse_key(GsRefusal reason)
{
	switch (reason)
	{
		case GS_REFUSE_TYPE:
			gs_refuse(GS_REFUSED_TYPE);
			return;
		case GS_REFUSE_COLLATION:
			gs_refuse(GS_REFUSED_COLLATION);
			return;
		case GS_REFUSE_OPCLASS:
			gs_refuse(GS_REFUSED_OPCLASS);
			return;
		case GS_REFUSE_NONE:
		case GS_REFUSE_COUNT:
			break;
	}
	elog(ERROR, "unexpected refusal %d", (int) reason);
}
