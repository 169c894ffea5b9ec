/*-------------------------------------------------------------------------
 *
 * fault.c
 *	  Fault points for tests (fault.h).
 *
 * Tests: tap/fault_service_lost
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/guc.h"

#include "fault.h"

#ifdef GPUSORT_FAULTS

static char *fault_setting = NULL;
static int	fault_countdown = 0;

static void
assign_fault(const char *newval, void *extra)
{
	const char *colon = newval ? strchr(newval, ':') : NULL;

	fault_countdown = colon ? atoi(colon + 1) : 1;
}

void
gs_fault_define_setting(void)
{
	DefineCustomStringVariable("gpusort.fault",
							   "Makes a fault happen at a named point.",
							   NULL,
							   &fault_setting, "",
							   PGC_USERSET, GUC_NOT_IN_SAMPLE,
							   NULL, assign_fault, NULL);
}

bool
gs_fault_reached(const char *point)
{
	size_t		len = strlen(point);

	if (fault_setting == NULL || fault_setting[0] == '\0' ||
		strncmp(fault_setting, point, len) != 0 ||
		(fault_setting[len] != '\0' && fault_setting[len] != ':'))
		return false;
	if (fault_countdown > 1)
	{
		fault_countdown--;
		return false;
	}
	return true;
}

#endif							/* GPUSORT_FAULTS */
