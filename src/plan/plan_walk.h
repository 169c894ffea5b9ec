/*-------------------------------------------------------------------------
 *
 * plan_walk.h
 *	  Walking a finished plan.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_PLAN_WALK_H
#define GS_PLAN_WALK_H

#include "nodes/plannodes.h"

/*
 * Call visit for each child of a node, wherever the node keeps it, the outer and
 * the inner one last; it may put another one in its place.  Init plans and subplans are not a node's
 * children: they stand in PlannedStmt->subplans.  Nor is Agg->chain, of which
 * the executor makes no nodes of their own.
 */
extern void gs_plan_visit_children(Plan *plan, void (*visit) (Plan **child, void *context),
								   void *context);

/* The highest plan_node_id of a statement's plans. */
extern int	gs_plan_last_node_id(const PlannedStmt *stmt);

/*
 * Does an expression contain anything that execution could change, except volatile functions?
 * Parameters that the client gave do not change.
 */
extern bool gs_plan_expr_may_change(Node *expr);

/* An expression without what changes its type or collation only. */
extern Node *gs_plan_strip_relabel(Node *node);

/* No Limit above that a node would learn of. */
#define GS_NO_BOUND	(-1.0)

/*
 * How many rows a node's children will be asked for, where the node itself is
 * asked for bound.
 */
extern double gs_plan_bound_below(const Plan *plan, double bound);

/* The same where it is known when planning that no tuple beyond it is asked for. */
extern double gs_plan_sure_bound_below(const Plan *plan, double bound);

/*
 * The Limit that a node's children have above them where its numbers are known when execution
 * starts, and not before; NULL: none.  limit: that of the node itself.
 */
extern const Limit *gs_plan_limit_below(const Plan *plan, const Limit *limit);

#endif							/* GS_PLAN_WALK_H */
