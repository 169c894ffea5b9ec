/*-------------------------------------------------------------------------
 *
 * forgets_hook.c
 *	  A library that forgets to call the hook of the libraries before it, as
 *	  plprofiler 4.2.1 does: these get no shared memory.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static void
shmem_request(void)
{
	RequestAddinShmemSpace(1024);
}

void
_PG_init(void)
{
	shmem_request_hook = shmem_request;
}
