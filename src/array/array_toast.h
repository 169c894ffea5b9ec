/*-------------------------------------------------------------------------
 *
 * array_toast.h
 *	  Reading many out-of-line values of one TOAST table.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAY_TOAST_H
#define GS_ARRAY_TOAST_H

#include "postgres.h"

struct varatt_external;
typedef struct GsToastReader GsToastReader;

/* Makes a reader in CurrentMemoryContext.  It opens a table at its first value. */
extern GsToastReader *gs_toast_reader_create(void);

/*
 * Reads a value that is stored out of line and not compressed to dst.  dst NULL: only checks whether the
 * whole value is there; assumes that for tables that are no heaps.
 */
extern bool gs_toast_read(GsToastReader *reader, const struct varatt_external *pointer,
						  struct varlena *dst);
extern void gs_toast_reader_close(GsToastReader *reader);

#endif							/* GS_ARRAY_TOAST_H */
