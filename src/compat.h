/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  Differences between PostgreSQL versions, and the only file that names
 *	  PG_VERSION_NUM.
 *
 * Wrappers have the newest version's meaning.  On older versions they leave out what these lack.  If older
 * versions only have another name, or other parameters, the newest version's name stands for them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_COMPAT_H
#define GS_COMPAT_H

#include "access/stratnum.h"
#include "access/toast_internals.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_collation.h"
#include "executor/executor.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "nodes/primnodes.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "postmaster/bgworker_internals.h"
#include "storage/buffile.h"
#include "storage/latch.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"
#include "utils/wait_event.h"

/* PostgreSQL 16 took the access to variable-length values out of postgres.h. */
#if PG_VERSION_NUM >= 160000
#include "catalog/pg_proc.h"
#include "varatt.h"
#endif
#if PG_VERSION_NUM >= 170000
#include "storage/bulk_write.h"
#endif

/*
 * PostgreSQL 18 divided commands/explain.h.  Before PostgreSQL 18, utils/pg_locale.h needs ICU's headers if
 * the server was built with ICU, and some machines lack these.
 */
#if PG_VERSION_NUM >= 180000
#include "commands/defrem.h"
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#include "utils/pg_locale.h"
#else
#include "commands/explain.h"
#endif
#if PG_VERSION_NUM < 190000
#include "optimizer/plancat.h"
#endif

#if PG_VERSION_NUM < 150000
#error "gpusort needs PostgreSQL 15 or later"
#endif

/*
 * gpusort writes index pages and changes finished plans.  So a version may be wrong for it although
 * everything compiles.  Users get an error.  A developer who tries a new version defines the macro, and
 * runs the tests.
 */
#if PG_VERSION_NUM >= 200000 && !defined(GPUSORT_UNKNOWN_VERSION)
#error "gpusort knows PostgreSQL 15 to 19; to try a later one: make COPT=-DGPUSORT_UNKNOWN_VERSION"
#endif

/* From PostgreSQL 18 on pg_get_loaded_modules() shows a library's name and version. */
#if PG_VERSION_NUM < 180000
#define PG_MODULE_MAGIC_EXT(...)	PG_MODULE_MAGIC
#endif

/* Is the server older than the headers?  Only minor versions differ. */
static inline bool
gs_compat_server_is_older(void)
{
	return atoi(GetConfigOption("server_version_num", false, false)) < PG_VERSION_NUM;
}

/* Was a static background worker registered?  Legal in the postmaster. */
static inline bool
gs_compat_worker_registered(const char *name)
{
#if PG_VERSION_NUM >= 180000
	dlist_iter	iter;

	dlist_foreach(iter, &BackgroundWorkerList)
	{
		const RegisteredBgWorker *rw = dlist_container(RegisteredBgWorker, rw_lnode, iter.cur);
#else
	slist_iter	iter;

	slist_foreach(iter, &BackgroundWorkerList)
	{
		const RegisteredBgWorker *rw = slist_container(RegisteredBgWorker, rw_lnode, iter.cur);
#endif

		if (strcmp(rw->rw_worker.bgw_name, name) == 0)
			return true;
	}
	return false;
}

/*
 * Does EXPLAIN print the names of columns with those of their tables?  In PostgreSQL 18 the range table has
 * an entry for GROUP BY, which does not count.
 */
static inline bool
gs_compat_explain_prefix(const ExplainState *es)
{
#if PG_VERSION_NUM >= 180000
	return es->rtable_size > 1 || es->verbose;
#else
	return list_length(es->rtable) > 1 || es->verbose;
#endif
}

/* EXPLAIN's option GPUSORT.  Extensions have options since PostgreSQL 18. */
#if PG_VERSION_NUM >= 180000
static inline void
gs_compat_explain_option(ExplainState *es, DefElem *option, ParseState *pstate)
{
	SetExplainExtensionState(es, GetExplainExtensionId("gpusort"), defGetBoolean(option) ? es : NULL);
}
#endif

static inline void
gs_compat_register_explain_option(void)
{
#if PG_VERSION_NUM >= 190000
	RegisterExtensionExplainOption("gpusort", gs_compat_explain_option, GUCCheckBooleanExplainOption);
#elif PG_VERSION_NUM >= 180000
	RegisterExtensionExplainOption("gpusort", gs_compat_explain_option);
#endif
}

static inline bool
gs_compat_has_explain_option(ExplainState *es)
{
#if PG_VERSION_NUM >= 180000
	return GetExplainExtensionState(es, GetExplainExtensionId("gpusort")) != NULL;
#else
	return false;
#endif
}

#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()

/* of utils/pg_locale.h */
extern bool lc_collate_is_c(Oid collation);
#endif

/*
 * Does the collation, which must be valid, compare text bytewise?  PostgreSQL 18 has no lc_collate_is_c();
 * the locale tells that.
 */
static inline bool
gs_compat_collation_is_c(Oid collation)
{
#if PG_VERSION_NUM >= 180000
	return pg_newlocale_from_collation(collation)->collate_is_c;
#else
	return lc_collate_is_c(collation);
#endif
}

/*
 * The btree operator family that a sort operator belongs to, the type that
 * it takes, and whether it is the family's >.  PostgreSQL 18 speaks of
 * CompareType where it spoke of strategies.
 */
static inline bool
gs_compat_ordering_op(Oid sort_operator, Oid *opfamily, Oid *opcintype, bool *descending)
{
#if PG_VERSION_NUM >= 180000
	CompareType order;

	if (!get_ordering_op_properties(sort_operator, opfamily, opcintype, &order))
		return false;
	*descending = order == COMPARE_GT;
#else
	int16		strategy;

	if (!get_ordering_op_properties(sort_operator, opfamily, opcintype, &strategy))
		return false;
	*descending = strategy == BTGreaterStrategyNumber;
#endif
	return true;
}

/*
 * PostgreSQL 18 counts the disabled nodes of a path, and compares these counts before costs.  Before, costs
 * included a penalty.
 */
static inline void
gs_compat_inherit_disabled(Path *path, const Path *child)
{
#if PG_VERSION_NUM >= 180000
	path->disabled_nodes = child->disabled_nodes;
#endif
}

/* Has a path more disabled nodes than another one? */
static inline bool
gs_compat_more_disabled(const Path *path, const Path *than)
{
#if PG_VERSION_NUM >= 180000
	return path->disabled_nodes > than->disabled_nodes;
#else
	return false;
#endif
}

/* Copies the number of disabled nodes of a plan, itself included. */
static inline void
gs_compat_copy_disabled(Plan *plan, const Plan *like)
{
#if PG_VERSION_NUM >= 180000
	plan->disabled_nodes = like->disabled_nodes;
#endif
}

/* The operator that a pathkey sorts values of a type by; InvalidOid: there is none. */
static inline Oid
gs_compat_pathkey_operator(const PathKey *key, Oid type)
{
#if PG_VERSION_NUM >= 180000
	return get_opfamily_member_for_cmptype(key->pk_opfamily, type, type, key->pk_cmptype);
#else
	return get_opfamily_member(key->pk_opfamily, type, type, key->pk_strategy);
#endif
}

/* The GROUP BY columns that plans are made for.  PostgreSQL 16 leaves out redundant ones. */
#if PG_VERSION_NUM >= 160000
#define gs_compat_group_clause(root)	((root)->processed_groupClause)
#else
#define gs_compat_group_clause(root)	((root)->parse->groupClause)
#endif

/* One of the Aggrefs that an AggInfo is for, which are all equal. */
#if PG_VERSION_NUM >= 160000
#define gs_compat_agg_of(info)	linitial_node(Aggref, (info)->aggrefs)
#else
#define gs_compat_agg_of(info)	((info)->representative_aggref)
#endif

/* PostgreSQL 18 has incremental sorts below merge joins; without sorts there are none. */
#if PG_VERSION_NUM >= 180000
#define gs_compat_initial_cost_mergejoin(root, space, type, clauses, outer, inner, extra) \
	initial_cost_mergejoin((root), (space), (type), (clauses), (outer), (inner), NIL, NIL, 0, \
						   (extra))
#define gs_compat_create_mergejoin_path(root, rel, type, space, extra, outer, inner, pathkeys, \
										clauses) \
	create_mergejoin_path((root), (rel), (type), (space), (extra), (outer), (inner), \
						  (extra)->restrictlist, (pathkeys), NULL, (clauses), NIL, NIL, 0)
#else
#define gs_compat_initial_cost_mergejoin(root, space, type, clauses, outer, inner, extra) \
	initial_cost_mergejoin((root), (space), (type), (clauses), (outer), (inner), NIL, NIL, \
						   (extra))
#define gs_compat_create_mergejoin_path(root, rel, type, space, extra, outer, inner, pathkeys, \
										clauses) \
	create_mergejoin_path((root), (rel), (type), (space), (extra), (outer), (inner), \
						  (extra)->restrictlist, (pathkeys), NULL, (clauses), NIL, NIL)
#endif

/*
 * Sort keys of text under ICU collations.  PostgreSQL 16 and later make them.
 */
#if PG_VERSION_NUM >= 160000
#define GS_COMPAT_SORT_KEYS 1

#if PG_VERSION_NUM < 180000
struct pg_locale_struct;
extern struct pg_locale_struct *pg_newlocale_from_collation(Oid collation);
extern bool pg_strxfrm_enabled(struct pg_locale_struct *locale);
extern size_t pg_strnxfrm(char *dest, size_t destsize, const char *src, size_t srclen,
						  struct pg_locale_struct *locale);
extern size_t pg_strnxfrm_prefix(char *dest, size_t destsize, const char *src, size_t srclen,
								 struct pg_locale_struct *locale);
#endif

/* NULL: the collation has no trusted sort keys. */
static inline void *
gs_compat_sort_key_locale(Oid collation)
{
	struct pg_locale_struct *locale = pg_newlocale_from_collation(collation);

	return pg_strxfrm_enabled(locale) ? locale : NULL;
}

/* Returns the length, without the 0 at the end.  If it is not less than size, dst is undefined. */
static inline size_t
gs_compat_sort_key(uint8 *dst, size_t size, const uint8 *src, size_t len, void *locale)
{
	return pg_strnxfrm((char *) dst, size, (const char *) src, len,
					   (struct pg_locale_struct *) locale);
}

/* Writes the first size bytes of the sort key, or all.  Returns their number. */
static inline size_t
gs_compat_sort_key_prefix(uint8 *dst, size_t size, const uint8 *src, size_t len, void *locale)
{
	return pg_strnxfrm_prefix((char *) dst, size, (const char *) src, len,
							  (struct pg_locale_struct *) locale);
}
#endif

/* The version of an ICU locale's collation, which identifies the server's ICU. */
#if PG_VERSION_NUM < 180000
extern char *get_collation_actual_version(char provider, const char *locale);
#endif

static inline char *
gs_compat_icu_collation_version(const char *locale)
{
	return get_collation_actual_version(COLLPROVIDER_ICU, locale);
}

/*
 * The catalogs' columns that hold an ICU locale were renamed in 17.  Since 16 collations
 * may have rules of their own as well.
 */
#if PG_VERSION_NUM < 170000
#define Anum_pg_collation_colllocale	Anum_pg_collation_colliculocale
#define Anum_pg_database_datlocale	Anum_pg_database_daticulocale
#endif
#if PG_VERSION_NUM >= 160000
#define GS_COMPAT_COLLATION_RULES	1
#endif

/*
 * Wait events.  Named ones came with PostgreSQL 17; before it, all waits of
 * extensions show as Extension.
 */
typedef enum GsWait
{
	GS_WAIT_SERVICE_MAIN,		/* the service waits for work */
	GS_WAIT_STAGING,			/* for staging memory that other sorts hold */
	GS_WAIT_FEED,				/* for the device to take what was fed */
	GS_WAIT_SORT,				/* for the device to sort */
	GS_WAIT_FETCH,				/* for sorted rows */
	GS_WAIT_TABLE				/* for the table of a collation that another process makes */
} GsWait;

static inline uint32
gs_compat_wait_event(GsWait wait)
{
#if PG_VERSION_NUM >= 170000
	static const char *const names[] = {
		"GpusortServiceMain", "GpusortStaging", "GpusortFeed", "GpusortSort", "GpusortFetch",
		"GpusortTable"
	};
	static uint32 events[lengthof(names)];

	if (events[wait] == 0)
		events[wait] = WaitEventExtensionNew(names[wait]);
	return events[wait];
#else
	return PG_WAIT_EXTENSION;
#endif
}

/* PostgreSQL 17 has resource owners for wait event sets. */
#if PG_VERSION_NUM >= 170000
#define gs_compat_create_wait_event_set(n) CreateWaitEventSet(NULL, (n))
#else
#define gs_compat_create_wait_event_set(n) CreateWaitEventSet(TopMemoryContext, (n))
#endif

/*
 * The next datum of a tuplesort; by reference it is a copy, in
 * CurrentMemoryContext.  PostgreSQL 16 lets callers do without the copy.
 */
#if PG_VERSION_NUM >= 160000
#define gs_compat_tuplesort_getdatum(sort, value, isnull) \
	tuplesort_getdatum((sort), true, true, (value), (isnull), NULL)
#else
#define gs_compat_tuplesort_getdatum(sort, value, isnull) \
	tuplesort_getdatum((sort), true, (value), (isnull), NULL)
#endif

/*
 * The snapshot that out-of-line values are read by; space is where it may be
 * put.  PostgreSQL 18 has it in a place of its own.
 */
static inline Snapshot
gs_compat_toast_snapshot(SnapshotData *space)
{
#if PG_VERSION_NUM >= 180000
	return get_toast_snapshot();
#else
	init_toast_snapshot(space);
	return space;
#endif
}

/* The path of a Unique node, and its child; NULL: it is no such path. */
#if PG_VERSION_NUM >= 190000
#define gs_compat_unique_path(root, rel, child, n_columns, rows) \
	((Path *) create_unique_path(root, rel, child, n_columns, rows))
#define gs_compat_unique_input(path) \
	(IsA(path, UniquePath) ? ((const UniquePath *) (path))->subpath : NULL)
#else
#define gs_compat_unique_path(root, rel, child, n_columns, rows) \
	((Path *) create_upper_unique_path(root, rel, child, n_columns, rows))
#define gs_compat_unique_input(path) \
	(IsA(path, UpperUniquePath) ? ((const UpperUniquePath *) (path))->subpath : NULL)
#endif

/* An Append of paths that each process runs whole, and of partial ones. */
#if PG_VERSION_NUM >= 190000
#define gs_compat_append_path(root, rel, whole, partial, workers, parallel_aware) \
	((Path *) create_append_path(root, rel, \
								 (AppendPathInput){.subpaths = (whole), .partial_subpaths = (partial)}, \
								 NIL, NULL, workers, parallel_aware, -1))
#else
#define gs_compat_append_path(root, rel, whole, partial, workers, parallel_aware) \
	((Path *) create_append_path(root, rel, whole, partial, NIL, NULL, workers, parallel_aware, -1))
#endif

/* Run a program that has no result, as the transitions of an Agg for a row. */
#if PG_VERSION_NUM < 180000
static inline void
ExecEvalExprNoReturnSwitchContext(ExprState *program, ExprContext *econtext)
{
	bool		isnull;

	(void) ExecEvalExprSwitchContext(program, econtext, &isnull);
}
#endif

/*
 * Does an aggregate sort its input itself, rather than get it sorted?  (16 and later)  With DISTINCT it then
 * compares each input with the last one, which a new group must forget.
 */
#if PG_VERSION_NUM >= 160000
#define GS_COMPAT_PRESORTED_AGGREGATES 1
#define gs_compat_aggref_sorts(agg) \
	(((agg)->aggorder != NIL || (agg)->aggdistinct != NIL) && !(agg)->aggpresorted)
#define gs_compat_forget_last_input(trans)	((trans)->haslast = false)
#else
#define gs_compat_aggref_sorts(agg)	((agg)->aggorder != NIL || (agg)->aggdistinct != NIL)
#define gs_compat_forget_last_input(trans)	((void) 0)
#endif

/* The cost of PostgreSQL's sort of some rows, without its input. */
static inline Cost
gs_compat_cost_sort(double rows, int width, int sort_mem)
{
	Path		path = {0};

#if PG_VERSION_NUM >= 180000
	cost_sort(&path, NULL, NIL, 0, 0.0, rows, width, 0.0, sort_mem, -1.0);
#else
	cost_sort(&path, NULL, NIL, 0.0, rows, width, 0.0, sort_mem, -1.0);
#endif
	return path.total_cost;
}

/*
 * Fetches a composite value.  Since the minor versions of November 2026 DatumGetHeapTupleHeader() is a
 * function, and tells heap_deform_tuple() the version of the value's type.  Before, it was a macro.  The
 * function is a weak symbol here, which is NULL on older servers.  So one library runs on all minor versions.
 */
#undef DatumGetHeapTupleHeader
extern struct HeapTupleHeaderData *DatumGetHeapTupleHeader(Datum value) __attribute__((weak));

static inline struct HeapTupleHeaderData *
gs_compat_record(Datum value)
{
	return DatumGetHeapTupleHeader ? DatumGetHeapTupleHeader(value) :
		(struct HeapTupleHeaderData *) PG_DETOAST_DATUM(value);
}

/* Has a domain constraints? */
#if PG_VERSION_NUM >= 190000
#define gs_compat_domain_has_constraints(type)	DomainHasConstraints(type, NULL)
#else
#define gs_compat_domain_has_constraints(type)	DomainHasConstraints(type)
#endif

/*
 * The parameters of a planner hook.  PostgreSQL 19 adds the EXPLAIN that the plan
 * is for.
 */
#if PG_VERSION_NUM >= 190000
#define gs_compat_planner_params \
	Query *parse, const char *query_string, int cursor_options, ParamListInfo params, \
	ExplainState *explain
#define gs_compat_planner_args	parse, query_string, cursor_options, params, explain
#else
#define gs_compat_planner_params \
	Query *parse, const char *query_string, int cursor_options, ParamListInfo params
#define gs_compat_planner_args	parse, query_string, cursor_options, params
#endif

/*
 * The hook that sees each relation of a query when the planner has read its
 * catalogs: what it gets and passes on.  rel->relid and root tell all that we
 * need.  PostgreSQL 19 has another one, which is called a little later, and for
 * subqueries and functions too.
 */
#if PG_VERSION_NUM >= 190000
#define gs_compat_relation_hook			build_simple_rel_hook
#define gs_compat_relation_hook_type	build_simple_rel_hook_type
#define gs_compat_relation_params		PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *entry
#define gs_compat_relation_args			root, rel, entry
#else
#define gs_compat_relation_hook			get_relation_info_hook
#define gs_compat_relation_hook_type	get_relation_info_hook_type
#define gs_compat_relation_params \
	PlannerInfo *root, Oid relation, bool inh_parent, RelOptInfo *rel
#define gs_compat_relation_args			root, relation, inh_parent, rel
#endif

/*
 * Does a call say RESPECT NULLS or IGNORE NULLS?  PostgreSQL 19 has these; the
 * functions that do not take them say so when they run.
 */
static inline bool
gs_compat_null_treatment(const WindowFunc *call)
{
#if PG_VERSION_NUM >= 190000
	return call->ignore_nulls != NO_NULLTREATMENT;
#else
	return false;
#endif
}

/* Check the right to execute a function. */
static inline void
gs_compat_check_execute(Oid function, Oid role, ObjectType type)
{
#if PG_VERSION_NUM >= 160000
	AclResult	result = object_aclcheck(ProcedureRelationId, function, role, ACL_EXECUTE);
#else
	AclResult	result = pg_proc_aclcheck(function, role, ACL_EXECUTE);
#endif

	if (result != ACLCHECK_OK)
		aclcheck_error(result, type, get_func_name(function));
	InvokeFunctionExecuteHook(function);
}

/* May a role REINDEX a table? */
static inline bool
gs_compat_may_reindex(Oid table, Oid role)
{
#if PG_VERSION_NUM >= 170000
	return pg_class_aclcheck(table, role, ACL_MAINTAIN) == ACLCHECK_OK;
#elif PG_VERSION_NUM >= 160000
	return object_ownercheck(RelationRelationId, table, role);
#else
	return pg_class_ownercheck(table, role);
#endif
}

/* The parameters of an ExecutorRun hook.  PostgreSQL 18 dropped execute_once. */
#if PG_VERSION_NUM >= 180000
#define gs_compat_executor_run_params	QueryDesc *query, ScanDirection direction, uint64 count
#define gs_compat_executor_run_args		query, direction, count
#define gs_compat_executor_run_once		true
#else
#define gs_compat_executor_run_params \
	QueryDesc *query, ScanDirection direction, uint64 count, bool execute_once
#define gs_compat_executor_run_args		query, direction, count, execute_once
#define gs_compat_executor_run_once		execute_once
#endif

/* Does index_build() ask the planner for workers? */
#if PG_VERSION_NUM >= 180000
#define gs_compat_build_asks_planner(access_method) true
#else
#define gs_compat_build_asks_planner(access_method) ((access_method) != GIN_AM_OID)
#endif

/* The phases of a GIN index's build in the progress view; before PostgreSQL 18 they have no names. */
#if PG_VERSION_NUM >= 180000
#define GS_COMPAT_GIN_PHASE_SCAN	PROGRESS_GIN_PHASE_INDEXBUILD_TABLESCAN
#define GS_COMPAT_GIN_PHASE_SORT	PROGRESS_GIN_PHASE_PERFORMSORT_2
#define GS_COMPAT_GIN_PHASE_WRITE	PROGRESS_GIN_PHASE_MERGE_2
#else
#define GS_COMPAT_GIN_PHASE_SCAN	2
#define GS_COMPAT_GIN_PHASE_SORT	5
#define GS_COMPAT_GIN_PHASE_WRITE	6
#endif

/* PostgreSQL 18 counts the searches of index scans; 19 has options of scans. */
#if PG_VERSION_NUM >= 190000
#define gs_compat_index_beginscan(table, index, snapshot, n_keys) \
	index_beginscan((table), (index), (snapshot), NULL, (n_keys), 0, SO_NONE)
#define gs_compat_table_beginscan_parallel(table, shared) \
	table_beginscan_parallel((table), (shared), SO_NONE)
#elif PG_VERSION_NUM >= 180000
#define gs_compat_index_beginscan(table, index, snapshot, n_keys) \
	index_beginscan((table), (index), (snapshot), NULL, (n_keys), 0)
#else
#define gs_compat_index_beginscan(table, index, snapshot, n_keys) \
	index_beginscan((table), (index), (snapshot), (n_keys), 0)
#endif
#if PG_VERSION_NUM < 190000
#define gs_compat_table_beginscan_parallel(table, shared) \
	table_beginscan_parallel((table), (shared))
#endif

/* PostgreSQL 19 lets a scan's slot be made with flags. */
#if PG_VERSION_NUM >= 190000
#define gs_compat_init_scan_slot(estate, node, tupdesc, ops) \
	ExecInitScanTupleSlot((estate), (node), (tupdesc), (ops), 0)
#else
#define gs_compat_init_scan_slot(estate, node, tupdesc, ops) \
	ExecInitScanTupleSlot((estate), (node), (tupdesc), (ops))
#endif

/* Raises an error if the file is too short. */
#if PG_VERSION_NUM < 160000
static inline void
BufFileReadExact(BufFile *file, void *data, size_t size)
{
	if (BufFileRead(file, data, size) != size)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read from temporary file: %m")));
}
#endif

/*
 * Writing a relation's pages past shared buffers.  PostgreSQL 17 has an
 * interface for it.
 */
#if PG_VERSION_NUM >= 170000
#define GS_COMPAT_BULK_WRITE 1
#endif

/* How log_newpages() identifies a relation: PostgreSQL 16 renamed the type. */
#if PG_VERSION_NUM >= 160000
#define gs_compat_relation_locator(rel) (&(rel)->rd_locator)
#else
#define gs_compat_relation_locator(rel) (&(rel)->rd_node)
#endif

/* Before a page is written.  PostgreSQL 19 gave it a name without "in place". */
#if PG_VERSION_NUM >= 190000
#define gs_compat_page_set_checksum(page, blkno) PageSetChecksum((page), (blkno))
#else
#define gs_compat_page_set_checksum(page, blkno) PageSetChecksumInplace((page), (blkno))
#endif

/* The largest item of a btree leaf.  Since PostgreSQL 18 a constant. */
#if PG_VERSION_NUM >= 180000
#define gs_compat_btree_item_max(page) ((void) (page), BTMaxItemSize)
#else
#define gs_compat_btree_item_max(page) BTMaxItemSize(page)
#endif

/* The leftmost leaf, locked for reading; invalid: the index has no page yet. */
#if PG_VERSION_NUM >= 170000
#define gs_compat_bt_leftmost(index, level)	_bt_get_endpoint((index), (level), false)
#else
#define gs_compat_bt_leftmost(index, level)	_bt_get_endpoint((index), (level), false, NULL)
#endif

/* Before PostgreSQL 18 a strategy number tells the direction. */
#if PG_VERSION_NUM >= 180000
#define gs_compat_index_sort_support(index, descending, key) \
	PrepareSortSupportFromIndexRel((index), (descending), (key))
#else
#define gs_compat_index_sort_support(index, descending, key) \
	PrepareSortSupportFromIndexRel((index), \
								   (descending) ? BTGreaterStrategyNumber : BTLessStrategyNumber, (key))
#endif

/* Until the GUC nest level ends. */
#if PG_VERSION_NUM < 170000
#define RestrictSearchPath() \
	((void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION, \
							  GUC_ACTION_SAVE, true, 0, false))
#endif

/* Run a command of a portal that returns nothing. */
#if PG_VERSION_NUM >= 180000
#define gs_compat_portal_run(portal) \
	((void) PortalRun((portal), FETCH_ALL, true, None_Receiver, None_Receiver, NULL))
#else
#define gs_compat_portal_run(portal) \
	((void) PortalRun((portal), FETCH_ALL, true, true, None_Receiver, None_Receiver, NULL))
#endif

/* The counter of pgstat_count_heap_getnext(); where pgstat_should_count_relation(). */
#if PG_VERSION_NUM >= 160000
#define gs_compat_tuples_returned(table) ((table)->pgstat_info->counts.tuples_returned)
#else
#define gs_compat_tuples_returned(table) ((table)->pgstat_info->t_counts.t_tuples_returned)
#endif

/*
 * The line pointer behind which a heap scan of all tuples goes on.  Since PostgreSQL 16 it is a field of
 * its own.
 */
#if PG_VERSION_NUM >= 160000
#define gs_compat_scan_offset(scan) ((scan)->rs_coffset)
#else
#define gs_compat_scan_offset(scan) ((scan)->rs_ctup.t_self.ip_posid)
#endif

/*
 * A table access method's copying of a table for CLUSTER, REPACK and VACUUM FULL: what it gets and passes on.
 * PostgreSQL 19 adds the snapshot of a concurrent one.
 */
#if PG_VERSION_NUM >= 190000
#define gs_compat_copy_params \
	Relation old_heap, Relation new_heap, Relation index, bool use_sort, TransactionId oldest_xmin, \
	Snapshot snapshot, TransactionId *xid_cutoff, MultiXactId *multi_cutoff, double *tuples, \
	double *vacuumed, double *recently_dead
#define gs_compat_copy_args \
	old_heap, new_heap, index, use_sort, oldest_xmin, snapshot, xid_cutoff, multi_cutoff, tuples, \
	vacuumed, recently_dead
#define gs_compat_copy_concurrent	(snapshot != NULL)
#define gs_compat_is_cluster(stmt)	IsA(stmt, RepackStmt)
#define gs_compat_beginscan(heap, snapshot)	table_beginscan((heap), (snapshot), 0, NULL, SO_NONE)
#else
#define gs_compat_copy_params \
	Relation old_heap, Relation new_heap, Relation index, bool use_sort, TransactionId oldest_xmin, \
	TransactionId *xid_cutoff, MultiXactId *multi_cutoff, double *tuples, double *vacuumed, \
	double *recently_dead
#define gs_compat_copy_args \
	old_heap, new_heap, index, use_sort, oldest_xmin, xid_cutoff, multi_cutoff, tuples, vacuumed, \
	recently_dead
#define gs_compat_copy_concurrent	false
#define gs_compat_is_cluster(stmt)	IsA(stmt, ClusterStmt)
#define gs_compat_beginscan(heap, snapshot)	table_beginscan((heap), (snapshot), 0, NULL)
#endif

/* Its progress. */
#if PG_VERSION_NUM < 190000
#define PROGRESS_REPACK_PHASE						PROGRESS_CLUSTER_PHASE
#define PROGRESS_REPACK_PHASE_SEQ_SCAN_HEAP			PROGRESS_CLUSTER_PHASE_SEQ_SCAN_HEAP
#define PROGRESS_REPACK_PHASE_SORT_TUPLES			PROGRESS_CLUSTER_PHASE_SORT_TUPLES
#define PROGRESS_REPACK_PHASE_WRITE_NEW_HEAP		PROGRESS_CLUSTER_PHASE_WRITE_NEW_HEAP
#define PROGRESS_REPACK_TOTAL_HEAP_BLKS				PROGRESS_CLUSTER_TOTAL_HEAP_BLKS
#define PROGRESS_REPACK_HEAP_BLKS_SCANNED			PROGRESS_CLUSTER_HEAP_BLKS_SCANNED
#define PROGRESS_REPACK_HEAP_TUPLES_SCANNED			PROGRESS_CLUSTER_HEAP_TUPLES_SCANNED
#define PROGRESS_REPACK_HEAP_TUPLES_INSERTED		PROGRESS_CLUSTER_HEAP_TUPLES_WRITTEN
#endif

#endif							/* GS_COMPAT_H */
