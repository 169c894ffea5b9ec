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

/* A reader in CurrentMemoryContext; it opens tables as it comes to them. */
extern GsToastReader *gs_toast_reader_create(void);

/* Read a value that is stored out of line and not compressed to dst. */
extern void gs_toast_read(GsToastReader *reader, const struct varatt_external *pointer,
						  struct varlena *dst);

/* Are all chunks of a value in its TOAST table?  Taken for granted if that is no heap. */
extern bool gs_toast_is_there(GsToastReader *reader, const struct varatt_external *pointer);
extern void gs_toast_reader_close(GsToastReader *reader);

#endif							/* GS_ARRAY_TOAST_H */
