/*-------------------------------------------------------------------------
 *
 * plan_walk.h
 *	  Walking finished plans and queries.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_PLAN_WALK_H
#define GS_PLAN_WALK_H

#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"

/*
 * Call visit for each child of a node, wherever the node keeps it, the outer and
 * the inner one last; it may put another one in its place.  Init plans and subplans are not a node's
 * children: they stand in PlannedStmt->subplans.  Nor is Agg->chain, of which
 * the executor makes no nodes of their own.
 */
extern void gs_plan_visit_children(Plan *plan, void (*visit) (Plan **child, void *context),
								   void *context);

/* The same for the topmost node of each of a statement's plans, those of init plans and subplans last. */
extern void gs_plan_visit_all(PlannedStmt *stmt, void (*visit) (Plan **plan, void *context), void *context);

/* The highest plan_node_id of a statement's plans. */
extern int	gs_plan_last_node_id(PlannedStmt *stmt);

/* Does an Agg read its input once, in the order of its groups, or as one group, and return values? */
extern bool gs_plan_agg_is_simple(const Agg *agg);

/* The aggregates (Aggref) in an Agg's target list and filter. */
extern List *gs_plan_aggregates(const Agg *agg);

/*
 * May an aggregate without a sort of its own get its rows in another order?
 * PostgreSQL does that to those that it computes in parts, in parallel.
 */
extern bool gs_agg_ignores_order(const Aggref *agg);

/* An expression without what changes its type or collation only. */
extern Node *gs_plan_strip_relabel(Node *node);

/*
 * The typmod of an expression of type record in a node's target list, which tells the types of its fields
 * in this process.  -1: it neither is nor comes from a ROW(...).  plan: NULL for an expression of a query.
 */
extern int32 gs_plan_row_typmod(const Plan *plan, const Node *expr);

/* How many rows a node will be asked for, from the first one on. */
typedef struct GsBound
{
	double		expected;		/* GS_NO_BOUND: perhaps all */
	double		sure;			/* no more, as is known when planning; or GS_NO_BOUND */
	const Limit *limit;			/* the Limit above that will know no more, when execution starts; or NULL */
} GsBound;

#define GS_NO_BOUND	(-1.0)

extern const GsBound gs_no_bound;

/* The same of its children. */
extern GsBound gs_plan_bound_below(const Plan *plan, GsBound bound);

typedef enum GsVolatileScope
{
	GS_VOLATILE_ANYWHERE,

	/*
	 * All but functions in FROM: the plan tells which of these are called.  An extension
	 * may have put a scan of another kind in the place of such a function.
	 */
	GS_VOLATILE_BESIDE_SCANS,

	/*
	 * Also what is not volatile, and may change between two executions under one snapshot: all but immutable
	 * functions of PostgreSQL's own over columns of users' tables; and some of these.
	 */
	GS_MUTABLE_ANYWHERE
} GsVolatileScope;

/*
 * As contain_volatile_functions(), and true for what that does not see: functions
 * that compute an aggregate, and constraints of a domain.
 */
extern bool gs_query_is_volatile(const Query *parse, GsVolatileScope scope);

/* The same of an expression, or a list of them. */
extern bool gs_expr_is_volatile(Node *node);

#endif							/* GS_PLAN_WALK_H */
