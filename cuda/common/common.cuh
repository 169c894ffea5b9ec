/*-------------------------------------------------------------------------
 *
 * common.cuh
 *	  What all CUDA sources of gpusort share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_COMMON_CUH
#define GS_COMMON_CUH

#include "common/errors.cuh"
#include "common/handles.cuh"
#include "common/key_bytes.cuh"
#include "common/temp_storage.cuh"
#include "common/types.cuh"

#endif // GS_COMMON_CUH
