/*-------------------------------------------------------------------------
 *
 * device.c
 *	  What all devices have in common: names of status codes and engines.
 *
 * Tests: unit/plain/test_device, regress/engines
 *
 *-------------------------------------------------------------------------
 */
#ifdef POSTGRES_H
#error "src/device is plain C and must not see postgres.h"
#endif

#include "device/device.h"

/* For log lines: "could not sort on the device: <name>". */
const char *
gs_status_name(GsStatus status)
{
	switch (status)
	{
		case GS_OK:
			return "success";
		case GS_PENDING:
			return "pending";
		case GS_NO_DEVICE:
			return "no such device";
		case GS_NO_MEMORY:
			return "out of device memory";
		case GS_CANCELLED:
			return "cancelled";
		case GS_DEVICE_LOST:
			return "device lost";
		case GS_INVALID:
			return "invalid call";
		case GS_INTERNAL:
			return "internal device error";
	}
	return "unknown status";
}

uint32_t
gs_elem_bytes(GsElem elem)
{
	switch (elem)
	{
		case GS_ELEM_NONE:
			break;
		case GS_ELEM_UINT1:
			return 1;
		case GS_ELEM_INT2:
			return 2;
		case GS_ELEM_INT4:
		case GS_ELEM_UINT4:
		case GS_ELEM_FLOAT4:
			return 4;
		case GS_ELEM_INT8:
		case GS_ELEM_UINT8:
		case GS_ELEM_FLOAT8:
			return 8;
		case GS_ELEM_BYTES16:
			return 16;
	}
	return 0;
}

const char *
gs_engine_name(GsEngine engine)
{
	static const char *const names[GS_N_ENGINES] = {
		[GS_ENGINE_AUTO] = "auto",
		[GS_ENGINE_RADIX2013] = "radix2013",
		[GS_ENGINE_MERGE2012] = "merge2012",
		[GS_ENGINE_RADIX2011] = "radix2011",
		[GS_ENGINE_ARRAYSORT2016] = "arraysort2016",
		[GS_ENGINE_STA] = "sta"
	};

	return (uint32_t) engine < GS_N_ENGINES ? names[engine] : NULL;
}
