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
 * Call visit for each child of a node, the outer and the inner child last.  visit may replace the child.
 * Init plans and subplans are not children: they are in PlannedStmt->subplans.  Nor is Agg->chain, for
 * which the executor makes no nodes.
 */
extern void gs_plan_visit_children(Plan *plan, void (*visit) (Plan **child, void *context),
								   void *context);

/* The same for the topmost node of each plan of a statement; init plans and subplans come last. */
extern void gs_plan_visit_all(PlannedStmt *stmt, void (*visit) (Plan **plan, void *context), void *context);

/* The highest plan_node_id of a statement's plans. */
extern int	gs_plan_last_node_id(PlannedStmt *stmt);

/* Does an Agg read its input once, in the order of its groups, or as one group, and return values? */
extern bool gs_plan_agg_is_simple(const Agg *agg);

/* The aggregates (Aggref) in an Agg's target list and filter. */
extern List *gs_plan_aggregates(const Agg *agg);

/*
 * May an aggregate without its own sort get its rows in another order?  PostgreSQL also changes the order for
 * aggregates that it can compute in parallel, in parts.
 */
extern bool gs_agg_ignores_order(const Aggref *agg);

/* An expression without RelabelType nodes around it. */
extern Node *gs_plan_strip_relabel(Node *node);

/*
 * The typmod of an expression of type record in a node's target list.  It identifies the types of the fields
 * in this process.  -1: the expression does not come from a ROW(...).  plan: NULL if it is a query's.
 */
extern int32 gs_plan_row_typmod(const Plan *plan, const Node *expr);

/* How many rows a node will be asked for, from the first one on. */
typedef struct GsBound
{
	double		expected;		/* an estimate; GS_NO_BOUND: perhaps all */
	double		sure;			/* the most, if known when planning; or GS_NO_BOUND */
	const Limit *limit;			/* a Limit above whose bound is known when execution starts; or NULL */
} GsBound;

#define GS_NO_BOUND	(-1.0)

extern const GsBound gs_no_bound;

/* How many rows its children will be asked for, if the node is asked for this many. */
extern GsBound gs_plan_bound_below(const Plan *plan, GsBound bound);

typedef enum GsVolatileScope
{
	GS_VOLATILE_ANYWHERE,

	/*
	 * Everything except functions in FROM.  Look for those in the plan: an extension may have replaced such
	 * a function by another kind of scan.
	 */
	GS_VOLATILE_BESIDE_SCANS
} GsVolatileScope;

/* Like contain_volatile_functions(), but also looks at the functions of aggregates, and at domains. */
extern bool gs_query_is_volatile(const Query *parse, GsVolatileScope scope);

/* The same for an expression, or a list of expressions. */
extern bool gs_expr_is_volatile(Node *node);

#endif							/* GS_PLAN_WALK_H */
