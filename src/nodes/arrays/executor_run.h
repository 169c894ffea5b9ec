/*-------------------------------------------------------------------------
 *
 * executor_run.h
 *	  How many rows the executor was asked for.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_EXECUTOR_RUN_H
#define GS_EXECUTOR_RUN_H

#include "nodes/execnodes.h"

extern void gs_executor_run_init(void);

/*
 * Is the query being run to its end, by what is running now?  Not where a
 * cursor fetches some rows, a PL/pgSQL loop, a SQL function that returns row by
 * row, and the like.
 */
extern bool gs_executor_runs_to_end(const EState *estate);

/*
 * And will it end then?  Not where a cursor fetches all rows; PostgreSQL 18 and later do not
 * tell that one apart.
 */
extern bool gs_executor_runs_once(const EState *estate);

#endif							/* GS_EXECUTOR_RUN_H */
