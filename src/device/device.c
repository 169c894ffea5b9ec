/*-------------------------------------------------------------------------
 *
 * device.c
 *	  What all devices have in common: names of status codes and engines.
 *
 * Tests: unit/plain/test_device, regress/engines
 *
 *-------------------------------------------------------------------------
 */
#include "device/device.h"

/* For log lines: "could not sort on the device: <name>". */
const char *
gs_status_name(GsStatus status)
{
	static const char *const names[] = {
		[GS_OK] = "success",
		[GS_PENDING] = "pending",
		[GS_NO_DEVICE] = "no such device",
		[GS_NO_MEMORY] = "out of device memory",
		[GS_CANCELLED] = "cancelled",
		[GS_DEVICE_LOST] = "device lost",
		[GS_INVALID] = "invalid call",
		[GS_INTERNAL] = "internal device error"
	};

	return (uint32_t) status <= GS_INTERNAL ? names[status] : "unknown status";
}

uint32_t
gs_elem_bytes(GsElem elem)
{
	static const uint8_t bytes[GS_N_ELEMS] = {
		[GS_ELEM_UINT1] = 1,
		[GS_ELEM_INT2] = 2,
		[GS_ELEM_INT4] = 4,
		[GS_ELEM_UINT4] = 4,
		[GS_ELEM_FLOAT4] = 4,
		[GS_ELEM_INT8] = 8,
		[GS_ELEM_UINT8] = 8,
		[GS_ELEM_FLOAT8] = 8,
		[GS_ELEM_BYTES16] = 16
	};

	return (uint32_t) elem < GS_N_ELEMS ? bytes[elem] : 0;
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
