/*-------------------------------------------------------------------------
 *
 * query_volatile.h
 *	  Has a query volatile functions, wherever they are called from?
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_QUERY_VOLATILE_H
#define GS_QUERY_VOLATILE_H

#include "nodes/parsenodes.h"

/*
 * As contain_volatile_functions(), and true for what that does not see: functions
 * that compute an aggregate, and constraints of a domain.
 */
extern bool gs_query_is_volatile(const Query *parse);

#endif							/* GS_QUERY_VOLATILE_H */
