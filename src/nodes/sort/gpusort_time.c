/*-------------------------------------------------------------------------
 *
 * gpusort_time.c
 *	  How long a path takes, by the model of sort_cost.h (gpusort_path.h).
 *
 * The model knows paths that sort, paths that hash groups, and the paths above these.  Any other path takes
 * the time that PostgreSQL's cost stands for.
 *
 * Tests: regress/paths, regress/choice, tap/plans_host
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "executor/nodeAgg.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "compat.h"
#include "nodes/sort/gpuchoice.h"
#include "nodes/sort/gpusort_path.h"
#include "plan/sort_cost.h"

const Path *
gs_path_below(const Path *path)
{
	switch (nodeTag(path))
	{
		case T_AggPath:
			return ((const AggPath *) path)->subpath;
		case T_GroupPath:
			return ((const GroupPath *) path)->subpath;
		case T_WindowAggPath:
			return ((const WindowAggPath *) path)->subpath;
		case T_SortPath:
		case T_IncrementalSortPath:
			return ((const SortPath *) path)->subpath;
		case T_ProjectionPath:
			return ((const ProjectionPath *) path)->subpath;
		case T_GatherPath:
			return ((const GatherPath *) path)->subpath;
		case T_GatherMergePath:
			return ((const GatherMergePath *) path)->subpath;
		case T_CustomPath:
			/* a path of another extension may have no path below */
			if (((const CustomPath *) path)->methods != &gs_sort_path_methods &&
				((const CustomPath *) path)->methods != &gs_feed_path_methods &&
				((const CustomPath *) path)->methods != &gs_choice_path_methods)
				return NULL;
			return linitial(((const CustomPath *) path)->custom_paths);
		default:
			return gs_compat_unique_input(path);
	}
}

const Path *
gs_path_sort(const Path *path)
{
	while (path && (IsA(path, ProjectionPath) || gs_compat_unique_input(path)))
		path = gs_path_below(path);
	return path && IsA(path, CustomPath) &&
		((const CustomPath *) path)->methods == &gs_sort_path_methods ? path : NULL;
}

/* A path at the bottom.  PostgreSQL charges each process for all pages, as if a disk were the limit. */
static GsTime
time_of_scan(const Path *path)
{
	Cost		pages = path->pathtype == T_SeqScan && path->parallel_workers > 0 ?
		seq_page_cost * path->parent->pages * (1.0 - 1.0 / gs_processes(path->parallel_workers)) : 0;
	double		last = gs_time_of(Max(path->total_cost - pages, 0)) +
		gs_time_expressions(path->rows, path->pathtarget->exprs);

	return (GsTime){gs_time_of(path->startup_cost), last, last};
}

/* Add what a path costs, by PostgreSQL, beyond the one below. */
static GsTime
add_cost(GsTime time, const Path *path, const Path *below, double factor)
{
	double		own = factor * gs_time_of(path->total_cost - below->total_cost);

	time.first += factor * gs_time_of(Max(path->startup_cost - below->startup_cost, 0));
	time.last = Max(time.last + own, time.first);
	time.cpu += own;
	return time;
}

/* How many of a list's expressions vary in width? */
static int
count_texts(const AggPath *agg)
{
	int			texts = 0;
	ListCell   *lc;

	foreach(lc, agg->groupClause)
	{
		const SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Oid			left;
		Oid			right;

		op_input_types(clause->eqop, &left, &right);
		texts += get_typlen(left) < 0;
	}
	return texts;
}

/* Has the hash table states of aggregates?  The hash table of a DISTINCT has none. */
static bool
has_states(const PlannerInfo *root, const AggPath *path)
{
	return root->aggtransinfos != NIL &&
		!list_member_ptr(root->upper_rels[UPPERREL_DISTINCT], path->path.parent) &&
		!list_member_ptr(root->upper_rels[UPPERREL_PARTIAL_DISTINCT], path->path.parent);
}

static double
time_of_hash(const GsPathTimes *context, const AggPath *agg)
{
	const PlannerInfo *root = context->root;
	bool		states = has_states(root, agg);
	int			n_states = states ? list_length(root->aggtransinfos) : 0;
	GsHash		hash = {.rows = agg->subpath->rows, .groups = agg->numGroups,
						.entry_bytes = hash_agg_entry_size(n_states, agg->subpath->pathtarget->width,
														   agg->transitionSpace),
						.columns = list_length(agg->groupClause), .texts = count_texts(agg),
						.transitions = states ? gs_time_transitions(root, false) : 0,
						.large_states = states && agg->transitionSpace > 0};

	if (context->groups > 0)
		hash.groups = Min(hash.groups, context->groups);
	return gs_time_hash(&hash);
}

static GsTime
time_of_agg(const GsPathTimes *context, const AggPath *agg, GsTime time)
{
	const PlannerInfo *root = context->root;
	double		rows = agg->subpath->rows;
	double		own;

	if (agg->aggstrategy == AGG_MIXED)
		return add_cost(time, &agg->path, agg->subpath, 1.0);
	if (agg->aggstrategy == AGG_HASHED)
		own = time_of_hash(context, agg);
	else
		own = gs_time_group(root, rows, gs_path_sort(agg->subpath) != NULL);
	/* what aggregates sort by themselves, because their rows do not come in order */
	if (context->sorts > 0 && !gs_path_sort(agg->subpath))
	{
		const List *args = context->agg->args;
		const Expr *arg = args == NIL ? NULL : linitial_node(TargetEntry, args)->expr;
		GsSortInput values = {.rows = rows, .columns = list_length(args)};

		if (list_length(args) > 0)
		{
			values.type = exprType((const Node *) arg);
			values.collation = exprCollation((const Node *) arg);
			own += context->sorts * (gs_time_inner_sort(&values, agg->numGroups) +
									 gs_time_expressions(rows, list_make1(unconstify(Expr *, arg))));
		}
	}
	time.last += own;
	time.cpu += own;
	if (agg->aggstrategy != AGG_SORTED)
		time.first = time.last;
	return time;
}

/*
 * A merge compares without abbreviated keys, and PostgreSQL's costs do not tell that.  It compares equal
 * texts by their bytes.  In each stream the rows of one text come together.  The model assumes that most
 * streams have each text.
 */
static GsTime
time_of_merge_append(const GsPathTimes *context, const MergeAppendPath *path, double limit)
{
	PlannerInfo *root = context->root;
	GsTime		time = {0};
	GsSortInput rows = gs_rows_of_path(root, &path->path, path->path.pathkeys);
	const PathKey *key = linitial_node(PathKey, path->path.pathkeys);
	const EquivalenceMember *member = linitial(key->pk_eclass->ec_members);
	int			streams = list_length(path->subpaths);
	EstimationInfo estimate;
	double		texts;
	double		own;
	ListCell   *lc;

	foreach(lc, path->subpaths)
	{
		GsTime		part = gs_time_of_path(context, lfirst(lc), limit);

		time.first += part.first;
		time.last += part.last;
		time.cpu += part.cpu;
	}
	/* a set operation's columns are of no table; of UNION ALL's and of parents' there may be no statistics */
	if (!root->parse->setOperations)
	{
		texts = estimate_num_groups(root, list_make1(member->em_expr), rows.rows, NULL, &estimate);
		if ((estimate.flags & SELFLAG_USED_DEFAULT) == 0)
			rows.rows = Min(rows.rows, streams * texts);
	}
	/* at each level of its heap, a row is compared with two others */
	own = 2.0 * rows.rows * log2(Max(streams, 2)) * gs_time_comparison(&rows);
	time.last += own;
	time.cpu += own;
	return time;
}

/* Adds what the Gather of a partial path takes. */
static GsTime
add_gather(const Path *path, const Path *partial, GsTime time)
{
	double		own = gs_time_of(path->total_cost - partial->total_cost - parallel_setup_cost);

	time.cpu = time.cpu * gs_processes(partial->parallel_workers) + own;
	time.last += own;
	gs_time_add_workers(&time, partial->parallel_workers);
	return time;
}

GsTime
gs_time_of_path(const GsPathTimes *context, const Path *path, double limit)
{
	const Path *below = gs_path_below(path);
	double		limit_below = limit;
	GsTime		time;
	GsSortInput rows;

	if (IsA(path, CustomPath) && ((const CustomPath *) path)->methods == &gs_sort_path_methods)
		return ((const GsSortPath *) path)->time;
	if (IsA(path, MergeAppendPath) && path->pathkeys != NIL)
		return time_of_merge_append(context, (const MergeAppendPath *) path, limit);
	if (below == NULL)
		return time_of_scan(path);
	/* the bound of a Limit passes through these */
	if (!IsA(path, ProjectionPath) && !IsA(path, GatherMergePath))
		limit_below = -1;
	time = gs_time_of_path(context, below, limit_below);
	switch (nodeTag(path))
	{
		case T_AggPath:
			return time_of_agg(context, (const AggPath *) path, time);
		case T_SortPath:
			rows = gs_rows_of_path(context->root, below, path->pathkeys);
			gs_time_add_sort(&time, &rows, limit);
			return time;
		case T_IncrementalSortPath:
			rows = gs_rows_of_path(context->root, below, path->pathkeys);
			return add_cost(time, path, below, gs_sort_factor(&rows));
		case T_GatherPath:
		case T_GatherMergePath:
			return add_gather(path, below, time);
		case T_CustomPath:
			return time;
		case T_ProjectionPath:
			time.last += gs_time_expressions(path->rows, path->pathtarget->exprs) -
				gs_time_expressions(path->rows, below->pathtarget->exprs);
			time.cpu = Max(time.cpu, time.last);
			return time;
		default:
			return add_cost(time, path, below, 1.0);
	}
}
