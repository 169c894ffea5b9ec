/*-------------------------------------------------------------------------
 *
 * func_collation_check.c
 *	  The SQL function gpusort_collation_check(): which indexes depend on a
 *	  collation whose version differs from the recorded one, and which of these
 *	  indexes are in a wrong order?
 *
 * An index depends on the collations of its key columns.  It also depends on collations within
 * jsonb, composite types and ranges, and arrays or domains of these.
 * Operator classes that compare bytes, or store no text, do not depend on any.
 *
 * Is a btree in order?
 *
 * The leaf pages are read from left to right.  Each key is compared with the one before it, by
 * the operator class's comparison under the index's present collation.  A page's high key
 * counts as a key after the page's tuples and before those of the next page.  Inner keys are
 * copies of leaf high keys.  So if the leaves are in order, every level is.
 * (amcheck proves that they are copies.  A change of order cannot change that.)  A
 * high key may be truncated: a column that it lacks, or the TID, is less than every value.
 *
 * Other sessions may write meanwhile.  Pages are copied under a share lock, and only one is
 * locked at a time.  Changes to pages that were read do not matter, with one exception.  If the
 * page before is deleted, new tuples of its range go to the next page.  There they are less
 * than the high key that we remember.  So a wrong order of two pages counts only if the left
 * page is still in use after the right one was read.  Tuples never move left otherwise.
 * Deleted pages keep their right links, and are not used again while our snapshot is held.
 *
 * The leaves of a large index are divided into spans, which begin at leaves that have a downlink.  Parallel
 * workers take the spans from the left.  A span ends with the first key of the next span.  If the next span's
 * first page has been deleted meanwhile, no right link leads to it.  Then the span ends with a later one, and
 * some pages are read twice.
 *
 * Tests: tap/index_collation_change, tap/index_collation_repair
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/itup.h"
#include "access/nbtree.h"
#include "access/parallel.h"
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_proc_d.h"
#include "catalog/pg_type_d.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "optimizer/paths.h"
#include "port/atomics.h"
#include "storage/bufmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/rls.h"
#include "utils/sortsupport.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "fault.h"
#include "func/collation.h"
#include "gpusort.h"

/* Leaves of a span: a span begins at each downlink of this number. */
#define SPAN_LEAVES 16

#define KEY_SPANS 1

/* A key on a leaf page. */
typedef struct Place
{
	IndexTuple	tuple;
	BlockNumber block;
	bool		high_key;
} Place;

typedef struct Walk
{
	Relation	index;
	bool		shows_keys;		/* descriptions show keys */
	int			n_keys;
	SortSupport keys;
	bool		has_tids;		/* equal keys are in the order of their TIDs */
	BufferAccessStrategy ring;
	MemoryContext context;		/* for memory of comparisons, reset for each page */
	Place		last;			/* the key before; tuple NULL: none */
} Walk;

/* The workers' shared memory. */
typedef struct Spans
{
	Oid			index;
	uint32		n;
	pg_atomic_uint32 next;		/* the next span to be taken */
	pg_atomic_uint32 wrong;		/* the leftmost span in a wrong order; n: none */
	BlockNumber starts[FLEXIBLE_ARRAY_MEMBER];
} Spans;

PG_FUNCTION_INFO_V1(gpusort_collation_check);
PGDLLEXPORT void gpusort_collation_span_worker(dsm_segment *segment, shm_toc *toc);

static void
begin_walk(Walk *walk, Relation index, bool shows_keys)
{
	bool		equal_image;

	walk->index = index;
	walk->shows_keys = shows_keys;
	walk->n_keys = IndexRelationGetNumberOfKeyAttributes(index);
	walk->keys = palloc0(walk->n_keys * sizeof(SortSupportData));
	walk->ring = GetAccessStrategy(BAS_BULKREAD);
	walk->context = AllocSetContextCreate(CurrentMemoryContext, "gpusort index check",
										  ALLOCSET_DEFAULT_SIZES);
	walk->last.tuple = NULL;
	_bt_metaversion(index, &walk->has_tids, &equal_image);
	for (int i = 0; i < walk->n_keys; i++)
	{
		SortSupport key = &walk->keys[i];

		key->ssup_cxt = CurrentMemoryContext;
		key->ssup_collation = index->rd_indcollation[i];
		key->ssup_nulls_first = (index->rd_indoption[i] & INDOPTION_NULLS_FIRST) != 0;
		key->ssup_attno = i + 1;
		gs_compat_index_sort_support(index, (index->rd_indoption[i] & INDOPTION_DESC) != 0, key);
	}
}

/* Copy a page. */
static void
read_page(Walk *walk, BlockNumber block, uint32 level, Page page)
{
	BTPageOpaque opaque;
	Buffer		buffer;

	CHECK_FOR_INTERRUPTS();
	buffer = ReadBufferExtended(walk->index, MAIN_FORKNUM, block, RBM_NORMAL, walk->ring);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	_bt_checkpage(walk->index, buffer);
	memcpy(page, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	opaque = BTPageGetOpaque(page);
	if (!P_IGNORE(opaque) && (opaque->btpo_level != level || P_ISLEAF(opaque) != (level == 0)))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\": block %u is not of level %u",
						RelationGetRelationName(walk->index), block, level)));
}

static IndexTuple
get_tuple(Walk *walk, BlockNumber block, Page page, OffsetNumber offset)
{
	ItemId		item = PageGetItemId(page, offset);

	if (!ItemIdHasStorage(item) || ItemIdGetLength(item) < sizeof(IndexTupleData) ||
		ItemIdGetOffset(item) + ItemIdGetLength(item) > BLCKSZ - sizeof(BTPageOpaqueData))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\": item %u of block %u lies outside of its page",
						RelationGetRelationName(walk->index), offset, block)));
	return (IndexTuple) PageGetItem(page, item);
}

/* Compare neighbours: is the right one less? */
static bool
is_wrong(Walk *walk, IndexTuple left, IndexTuple right)
{
	TupleDesc	tupdesc = RelationGetDescr(walk->index);
	int			n_left = Min(BTreeTupleGetNAtts(left, walk->index), walk->n_keys);
	int			n_right = Min(BTreeTupleGetNAtts(right, walk->index), walk->n_keys);
	ItemPointer left_tid,
				right_tid;

	for (int i = 0; i < Min(n_left, n_right); i++)
	{
		bool		left_null,
					right_null;
		Datum		left_value = index_getattr(left, i + 1, tupdesc, &left_null);
		Datum		right_value = index_getattr(right, i + 1, tupdesc, &right_null);
		int			result = ApplySortComparator(left_value, left_null, right_value, right_null,
												 &walk->keys[i]);

		if (result != 0)
			return result > 0;
	}
	if (!walk->has_tids || n_left != n_right)
		return walk->has_tids && n_left > n_right;
	left_tid = BTreeTupleIsPivot(left) ? BTreeTupleGetHeapTID(left) : BTreeTupleGetMaxHeapTID(left);
	right_tid = BTreeTupleGetHeapTID(right);
	if (left_tid == NULL || right_tid == NULL)
		return left_tid != NULL;
	return ItemPointerCompare(left_tid, right_tid) > 0;
}

/* Was a page deleted since it was read? */
static bool
is_gone(Walk *walk, BlockNumber block)
{
	PGAlignedBlock page;

	read_page(walk, block, 0, page.data);
	return P_IGNORE(BTPageGetOpaque((Page) page.data));
}

static char *
describe(Walk *walk, const Place *place)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
	ItemPointer tid;
	char	   *key = NULL;

	if (place->high_key)
		return psprintf("the high key of block %u", place->block);
	index_deform_tuple(place->tuple, RelationGetDescr(walk->index), values, nulls);
	if (walk->shows_keys)
		key = BuildIndexValueDescription(walk->index, values, nulls);
	tid = BTreeTupleGetHeapTID(place->tuple);
	return psprintf("key %s%sof row (%u,%u) in block %u", key ? key : "", key ? " " : "",
					ItemPointerGetBlockNumberNoCheck(tid), ItemPointerGetOffsetNumberNoCheck(tid),
					place->block);
}

/* Take the next key.  Returns the text of the error if it is in a wrong order. */
static char *
step(Walk *walk, Place next)
{
	Place	   *last = &walk->last;

	if (last->tuple != NULL && is_wrong(walk, last->tuple, next.tuple) &&
		(last->block == next.block || !is_gone(walk, last->block)))
		return psprintf("%s is followed by %s", describe(walk, last), describe(walk, &next));
	*last = next;
	return NULL;
}

/* Take all keys of a page, or only the first tuple's. */
static char *
walk_page(Walk *walk, BlockNumber block, Page page, bool only_first)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber first = P_FIRSTDATAKEY(opaque);
	OffsetNumber max = only_first ? first : PageGetMaxOffsetNumber(page);
	char	   *error = NULL;

	for (OffsetNumber i = first; i <= max && error == NULL; i++)
		error = step(walk, (Place){get_tuple(walk, block, page, i), block, false});
	if (!P_RIGHTMOST(opaque) && !only_first && error == NULL)
		error = step(walk, (Place){get_tuple(walk, block, page, P_HIKEY), block, true});
	return error;
}

/* Does a span behind the i'th one begin with this block?  Looks at all only if the next one is late. */
static bool
begins_later_span(const Spans *spans, uint32 i, BlockNumber block, uint32 n_walked)
{
	uint32		end = n_walked > SPAN_LEAVES ? spans->n : Min(i + 2, spans->n);

	while (++i < end)
		if (spans->starts[i] == block)
			return true;
	return false;
}

/* Walk the leaves from a block on: of the i'th span or, without spans, all.  NULL: they are in order. */
static char *
walk_leaves(Walk *walk, BlockNumber block, const Spans *spans, uint32 i)
{
	PGAlignedBlock *page = palloc(sizeof(PGAlignedBlock));
	PGAlignedBlock *spare = palloc(sizeof(PGAlignedBlock)); /* the page before, with walk->last */
	bool		last = false;
	bool		ended = false;
	char	   *error = NULL;

	walk->last.tuple = NULL;
	for (uint32 n = 0; block != P_NONE && !ended && error == NULL; n++)
	{
		BTPageOpaque opaque;

		last |= spans != NULL && begins_later_span(spans, i, block, n);
		read_page(walk, block, 0, page->data);
		opaque = BTPageGetOpaque((Page) page->data);
		if (!P_IGNORE(opaque))
		{
			MemoryContext old = MemoryContextSwitchTo(walk->context);
			PGAlignedBlock *read = page;

			/* if the page has no tuples, the later span's first key is on a page behind it */
			ended = last && PageGetMaxOffsetNumber((Page) page->data) >= P_FIRSTDATAKEY(opaque);
			error = walk_page(walk, block, page->data, ended);
			MemoryContextSwitchTo(old);
			if (error)
				error = pstrdup(error);
			MemoryContextReset(walk->context);
			page = spare;
			spare = read;
			if (GS_FAULT("check_page"))
				DirectFunctionCall1(pg_sleep, Float8GetDatum(2.0));
		}
		block = opaque->btpo_next;
	}
	pfree(page);
	pfree(spare);
	return error;
}

/* The leftmost block of a level; P_NONE: the index is empty, and has no page yet. */
static BlockNumber
leftmost(Relation index, uint32 level)
{
	Buffer		buffer = gs_compat_bt_leftmost(index, level);
	BlockNumber block;

	if (!BufferIsValid(buffer))
		return P_NONE;
	block = BufferGetBlockNumber(buffer);
	UnlockReleaseBuffer(buffer);
	return block;
}

/* Find the beginnings of spans, in the pages above the leaves. */
static Spans *
make_spans(Walk *walk)
{
	uint32		n_max = RelationGetNumberOfBlocks(walk->index) / SPAN_LEAVES + 2;
	Spans	   *spans = palloc(offsetof(Spans, starts) + n_max * sizeof(BlockNumber));
	PGAlignedBlock page;
	BTPageOpaque opaque;
	uint32		n_links = 0;

	spans->index = RelationGetRelid(walk->index);
	spans->n = 0;
	for (BlockNumber block = leftmost(walk->index, 1); block != P_NONE; block = opaque->btpo_next)
	{
		read_page(walk, block, 1, page.data);
		opaque = BTPageGetOpaque((Page) page.data);
		if (P_IGNORE(opaque))
			continue;
		for (OffsetNumber i = P_FIRSTDATAKEY(opaque); i <= PageGetMaxOffsetNumber((Page) page.data); i++)
			if (n_links++ % SPAN_LEAVES == 0 && spans->n < n_max)
				spans->starts[spans->n++] = BTreeTupleGetDownLink(get_tuple(walk, block, page.data, i));
	}
	pg_atomic_init_u32(&spans->next, 0);
	pg_atomic_init_u32(&spans->wrong, spans->n);
	return spans;
}

/* Take spans until all are taken, or a span to the left is in a wrong order. */
static void
walk_spans(Walk *walk, Spans *spans)
{
	uint32		i;

	while ((i = pg_atomic_fetch_add_u32(&spans->next, 1)) < pg_atomic_read_u32(&spans->wrong))
		if (walk_leaves(walk, spans->starts[i], spans, i) != NULL)
		{
			uint32		wrong = pg_atomic_read_u32(&spans->wrong);

			while (i < wrong && !pg_atomic_compare_exchange_u32(&spans->wrong, &wrong, i))
				;
		}
}

void
gpusort_collation_span_worker(dsm_segment *segment, shm_toc *toc)
{
	Spans	   *spans = shm_toc_lookup(toc, KEY_SPANS, false);
	Relation	index = relation_open(spans->index, AccessShareLock);
	Walk		walk;

	begin_walk(&walk, index, false);
	walk_spans(&walk, spans);
	relation_close(index, AccessShareLock);
}

/* As many workers as PostgreSQL would use to scan the index; 0: they may not compare keys, or it is small. */
static int
count_workers(Relation index)
{
	RelOptInfo	rel = {.reloptkind = RELOPT_BASEREL, .rel_parallel_workers = -1};

	if (_bt_getrootheight(index) == 0)
		return 0;				/* the root is a leaf */
	for (int i = 1; i <= IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (func_parallel(index_getprocid(index, i, BTORDER_PROC)) != PROPARALLEL_SAFE)
			return 0;
	return compute_parallel_worker(&rel, -1, RelationGetNumberOfBlocks(index),
								   max_parallel_maintenance_workers);
}

/* The leftmost span in a wrong order; spans->n: there is none. */
static uint32
find_wrong_span(Walk *walk, const Spans *spans, int n_workers)
{
	Size		bytes = offsetof(Spans, starts) + spans->n * sizeof(BlockNumber);
	ParallelContext *context;
	Spans	   *shared;
	uint32		wrong;
	int			nest_level = NewGUCNestLevel();

	/* Workers take over these settings.  Their warnings of a version mismatch would say nothing new. */
	(void) set_config_option("client_min_messages", "error", PGC_SUSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("log_min_messages", "error", PGC_SUSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	EnterParallelMode();
	context = CreateParallelContext(GPUSORT_NAME, "gpusort_collation_span_worker", n_workers);
	shm_toc_estimate_chunk(&context->estimator, bytes);
	shm_toc_estimate_keys(&context->estimator, 1);
	InitializeParallelDSM(context);
	shared = shm_toc_allocate(context->toc, bytes);
	memcpy(shared, spans, bytes);
	shm_toc_insert(context->toc, KEY_SPANS, shared);
	LaunchParallelWorkers(context);
	walk_spans(walk, shared);
	WaitForParallelWorkersToFinish(context);
	wrong = pg_atomic_read_u32(&shared->wrong);
	DestroyParallelContext(context);
	ExitParallelMode();
	AtEOXact_GUC(false, nest_level);
	return wrong;
}

/* Returns the first wrong place of an index; NULL: it is in order. */
static char *
find_wrong(Relation index, bool shows_keys)
{
	int			n_workers = count_workers(index);
	Walk		walk;
	Spans	   *spans = NULL;

	begin_walk(&walk, index, shows_keys);
	if (n_workers > 0)
		spans = make_spans(&walk);
	if (spans != NULL && spans->n > 1)
	{
		uint32		wrong = find_wrong_span(&walk, spans, Min(n_workers, (int) spans->n - 1));
		char	   *error;

		if (wrong == spans->n)
			return NULL;
		error = walk_leaves(&walk, spans->starts[wrong], spans, wrong);
		if (error != NULL)
			return error;
		/* the index was changed meanwhile */
	}
	return walk_leaves(&walk, leftmost(index, 0), NULL, 0);
}

/*
 * Does the same as the table's owner, like REINDEX, because the operator class's functions may be the
 * owner's.  Parallel workers take over user id, context and settings.  After an error the subtransaction's
 * end restores them.
 */
static char *
find_wrong_as_owner(Relation table, Relation index)
{
	bool		shows_keys =
		pg_class_aclcheck(RelationGetRelid(table), GetUserId(), ACL_SELECT) == ACLCHECK_OK &&
		check_enable_rls(RelationGetRelid(table), InvalidOid, true) != RLS_ENABLED;
	int			nest_level = NewGUCNestLevel();
	Oid			user;
	int			context;
	char	   *error;

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(table->rd_rel->relowner, context | SECURITY_RESTRICTED_OPERATION);
	RestrictSearchPath();
	error = find_wrong(index, shows_keys);
	AtEOXact_GUC(false, nest_level);
	SetUserIdAndSecContext(user, context);
	return error;
}

bool
gs_index_check(Oid oid, char **wrong)
{
	/* lock the table first, as all commands do */
	Oid			table_oid = IndexGetRelation(oid, true);
	Relation	table = OidIsValid(table_oid) ? try_relation_open(table_oid, AccessShareLock) : NULL;
	Relation	index;
	bool		exists;

	*wrong = NULL;
	if (table == NULL)
		return false;
	index = try_relation_open(oid, AccessShareLock);

	/*
	 * An index that is not ready is being built, or its build has failed.  A build writes pages past shared
	 * buffers.  If we read an empty page meanwhile, it would stay in a buffer.
	 */
	exists = index && index->rd_index->indrelid == table_oid && index->rd_index->indisready;
	if (exists)
	{
		if (index->rd_rel->relam != BTREE_AM_OID)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("only btree indexes can be checked")));
		*wrong = find_wrong_as_owner(table, index);
	}
	if (index)
		relation_close(index, AccessShareLock);
	relation_close(table, AccessShareLock);
	return exists;
}

/* The same, but catches errors except a cancel, and returns the error's text.  NULL: no error. */
static char *
try_check(Oid index, bool *exists, char **wrong)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	char	   *volatile message = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		*exists = gs_index_check(index, wrong);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		if (error->sqlerrcode == ERRCODE_QUERY_CANCELED)
			ReThrowError(error);
		message = error->message;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return message;
}

const char	gs_collation_indexes[] = GS_COLLATION_VERSIONS
	", part (index, am, type, coll) AS ("
	/* stored trigrams have no collation; names are stored as cstring, which has none either, but heed it */
	"	SELECT i.indexrelid, c.relam, a.atttypid,"
	"		CASE WHEN t.typcollation <> 0 OR t.oid = 'cstring'::regtype THEN a.attcollation END"
	"	FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid"
	"	JOIN pg_attribute AS a ON a.attrelid = i.indexrelid AND a.attnum <= i.indnkeyatts"
	"	JOIN pg_type AS t ON t.oid = a.atttypid"
	"	JOIN pg_opclass AS o ON o.oid = i.indclass[a.attnum - 1]"
	"	WHERE c.relkind = 'i' AND c.relpersistence <> 't' AND i.indislive"
	/* PostgreSQL's families that go by bytes: pattern_ops of btree and hash, bloom_ops of BRIN */
	"		AND o.opcfamily NOT IN (2095, 2097, 2229, 2231, 4573, 4579, 4586)"
	"	UNION"
	"	SELECT p.index, p.am, inner_part.type, inner_part.coll"
	"	FROM part AS p JOIN pg_type AS t ON t.oid = p.type, LATERAL ("
	"		SELECT a.atttypid, a.attcollation FROM pg_attribute AS a"
	"			WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped"
	"		UNION ALL"
	"		SELECT r.rngsubtype, r.rngcollation FROM pg_range AS r WHERE t.oid IN (r.rngtypid, r.rngmultitypid)"
	"		UNION ALL"
	/* jsonb compares strings under the database's collation */
	"		SELECT 0::oid, 100::oid WHERE t.oid = 'jsonb'::regtype"
	"		UNION ALL"
	"		SELECT t.typelem, 0::oid WHERE t.typcategory = 'A'"
	"		UNION ALL"
	"		SELECT t.typbasetype, 0::oid WHERE t.typtype = 'd') AS inner_part (type, coll)),"
	"affected AS ("
	"	SELECT p.index, array_agg(d.oid::regcollation ORDER BY d.oid) AS collations,"
	"		array_agg(d.recorded ORDER BY d.oid) AS recorded, array_agg(d.actual ORDER BY d.oid) AS actual,"
	"		bool_or(p.computed) AS computed"
	"	FROM (SELECT index, coll, bool_or(computed) AS computed FROM ("
	"		SELECT p.index, p.coll, false FROM part AS p JOIN differing AS d ON d.oid = p.coll"
	/* hashes are of the bytes, except under nondeterministic collations */
	"			WHERE p.am <> (SELECT oid FROM pg_am WHERE amname = 'hash') OR NOT d.collisdeterministic"
	"		UNION ALL"
	"		SELECT object, coll, true FROM computed WHERE class = 'pg_index'::regclass) AS u (index, coll, computed)"
	"		GROUP BY index, coll) AS p JOIN differing AS d ON d.oid = p.coll"
	"	GROUP BY p.index) "
	"SELECT a.index::regclass, i.indrelid::regclass,"
	"	(SELECT conname FROM pg_constraint WHERE conindid = a.index AND contype IN ('p', 'u', 'x')),"
	"	a.collations, a.recorded, a.actual, pg_relation_size(a.index),"
	"	i.indisvalid, a.computed "
	"FROM affected AS a JOIN pg_index AS i ON i.indexrelid = a.index "
	"ORDER BY 7 DESC NULLS LAST, a.index";

const char	gs_collation_objects[] = GS_COLLATION_VERSIONS
	", other AS ("
	"	SELECT CASE WHEN class = 'pg_class'::regclass THEN object ELSE n.conrelid END AS relation, n.conname,"
	"		class = 'pg_class'::regclass AND subobject = 0 AS partitioned,"
	"		pg_describe_object(class, object, subobject)"
	"		|| coalesce(' of domain ' || nullif(n.contypid, 0)::regtype, '') AS name, coll"
	"	FROM computed LEFT JOIN pg_constraint AS n ON class = 'pg_constraint'::regclass AND n.oid = object"
	"	WHERE class <> 'pg_index'::regclass) "
	"SELECT NULL, nullif(relation, 0)::regclass, conname, array_agg(d.oid::regcollation ORDER BY d.oid),"
	"	array_agg(recorded ORDER BY d.oid), array_agg(actual ORDER BY d.oid), NULL,"
	"	CASE WHEN partitioned THEN 'partitions of ' ELSE '' END || name,"
	/* an UPDATE of any column moves a row; pruning does not look into IS NOT TRUE */
	"	CASE WHEN partitioned THEN (SELECT format('UPDATE %s SET %I = %2$I WHERE CASE tableoid %s END IS NOT TRUE;',"
	"		root, (SELECT attname FROM pg_attribute WHERE attrelid = root AND attnum > 0 AND NOT attisdropped"
	"			AND attgenerated = '' AND attidentity <> 'a' ORDER BY attnum LIMIT 1),"
	"		string_agg(format('WHEN %L::regclass THEN %s', relid::text,"
	"			coalesce(pg_get_partition_constraintdef(relid), 'true')), ' '))"
	"		FROM pg_partition_root(relation) AS root, pg_partition_tree(root) WHERE isleaf GROUP BY root) END,"
	"	string_agg(d.oid::regcollation::text, ', ' ORDER BY d.oid) "
	"FROM other JOIN differing AS d ON d.oid = coll "
	"GROUP BY relation, conname, partitioned, name ORDER BY name";

void
gs_collation_query(const char *query, bool all, Datum oids)
{
	int			nest_level = NewGUCNestLevel();
	Oid			types[] = {BOOLOID, OIDARRAYOID};
	Datum		values[] = {BoolGetDatum(all), oids};

	RestrictSearchPath();
	/* LLVM would take a second or more for a query of some milliseconds */
	(void) set_config_option("jit", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	if (SPI_execute_with_args(query, 2, types, values, oids ? "  " : " n", false, 0) < 0)
		elog(ERROR, "a query of the catalogs failed");
	AtEOXact_GUC(false, nest_level);
}

/* gpusort_collation_check([all_indexes boolean]) */
Datum
gpusort_collation_check(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	enum
	{
		BROKEN = GS_COLUMN_SIZE,
		DETAIL,
		N_COLUMNS
	};
	Datum		values[GS_COLUMN_NAMES];
	bool		nulls[GS_COLUMN_NAMES];

	InitMaterializedSRF(fcinfo, 0);
	SPI_connect();
	gs_collation_query(gs_collation_indexes, PG_GETARG_BOOL(0), (Datum) 0);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool		exists = true;
		char	   *wrong = NULL,
				   *message;

		heap_deform_tuple(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, values, nulls);
		if (DatumGetBool(values[GS_COLUMN_COMPUTED - 1]))
			message = GS_COLLATION_COMPUTED;
		else
			message = try_check(DatumGetObjectId(values[GS_COLUMN_INDEX - 1]), &exists, &wrong);
		if (!exists)
			continue;
		values[BROKEN] = BoolGetDatum(wrong != NULL);
		nulls[BROKEN] = message != NULL;
		nulls[DETAIL] = message == NULL && wrong == NULL;
		if (!nulls[DETAIL])
			values[DETAIL] = CStringGetTextDatum(message ? message : wrong);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	gs_collation_query(gs_collation_objects, PG_GETARG_BOOL(0), (Datum) 0);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		char	   *move = SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, GS_COLUMN_MOVE);

		heap_deform_tuple(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, values, nulls);
		nulls[BROKEN] = true;
		values[DETAIL] = CStringGetTextDatum(psprintf("cannot check %s%s%s", TextDatumGetCString(values[GS_COLUMN_NAME - 1]),
													  move ? "; move its rows, as its owner: " : "", move ? move : ""));
		nulls[DETAIL] = false;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	SPI_finish();
	return (Datum) 0;
}
