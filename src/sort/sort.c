/*-------------------------------------------------------------------------
 *
 * sort.c
 *	  The sort as its consumers see it: the way in.
 *
 * README.md has the ways from one place to another.  If the device is full, its rows are taken back one
 * by one, after all other rows have been put.
 *
 * Tests: regress/plans, tap/fault_service_lost
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "compat.h"
#include "feed/group_sample.h"
#include "guc.h"
#include "sort/sort_private.h"

GsKeyDesc *
gs_sort_key_desc(const GsColumns *keys, TupleDesc tupdesc, GsRefusal *refusal)
{
	Oid		   *types = palloc(keys->n * sizeof(Oid));
	int32	   *typmods = palloc(keys->n * sizeof(int32));
	GsKeyDesc  *desc;

	/*
	 * The planner matches columns to sort operators without regard to casts
	 * that change nothing: to sort by oid_column::int4 it takes the column
	 * itself.  So it is the operator that says what the datums are, but for
	 * operators of all arrays, enums or composite types.
	 */
	for (int i = 0; i < keys->n; i++)
	{
		Form_pg_attribute att = TupleDescAttr(tupdesc, keys->attnos[i] - 1);
		Oid			opfamily;
		bool		descending;

		typmods[i] = att->atttypmod;
		if (!gs_compat_ordering_op(keys->operators[i], &opfamily, &types[i], &descending) ||
			IsPolymorphicType(types[i]) || types[i] == RECORDOID)
			types[i] = att->atttypid;
	}
	desc = gs_key_desc_create(keys, types, typmods, true, refusal);
	pfree(types);
	pfree(typmods);
	return desc;
}

/* Are only the first keep.limit rows needed, so that a tuplesort may be bounded? */
static bool
is_bounded(const GsSort *sort)
{
	return sort->keep.limit > 0 && !sort->keep.unique && !sort->keep.counted && sort->keep.group_first == 0 &&
		!sort->random_access;
}

/* The tuplesort of a sort whose place becomes CPU. */
static void
make_tuplesort(GsSort *sort)
{
	MemoryContext old = MemoryContextSwitchTo(sort->context);

	sort->tuplesort = gs_aside_take(sort);
	sort->bound_left = PG_UINT64_MAX;
	if (sort->tuplesort == NULL && is_bounded(sort))
	{
		sort->bound_left = sort->keep.limit;
		sort->tuplesort = gs_stored_make_tuplesort(sort, TUPLESORT_ALLOWBOUNDED);
		tuplesort_set_bound(sort->tuplesort, (int64) sort->bound_left);
	}
	else if (sort->tuplesort == NULL)
		sort->tuplesort = gs_stored_make_tuplesort(sort, sort->access);
	MemoryContextSwitchTo(old);
}

static void
change_to_cpu(GsSort *sort, GsFallback reason)
{
	make_tuplesort(sort);
	sort->place = GS_SORT_CPU;
	sort->report.fallback = reason;
	gs_stats_fallback(reason);
	ereport(DEBUG1,
			(errmsg_internal("gpusort: PostgreSQL sorts instead of the device: %s", gs_fallback_name(reason))));
}

GsSort *
gs_sort_begin(const GsColumns *keys, TupleDesc tupdesc, int work_mem_kb, bool random_access,
			  bool rerun, const GsSortKeep *keep)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpusort sort",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GsSort	   *sort = palloc0(sizeof(GsSort));
	GsRefusal	refusal;

	INSTR_TIME_SET_CURRENT(sort->begun);
	sort->context = context;
	sort->scratch = AllocSetContextCreate(context, "gpusort row", ALLOCSET_DEFAULT_SIZES);
	sort->keys = keys;
	sort->tupdesc = tupdesc;
	sort->work_mem_kb = work_mem_kb;
	sort->random_access = random_access;
	sort->access = random_access ? TUPLESORT_RANDOMACCESS : TUPLESORT_NONE;
	sort->rerun = rerun;
	sort->keep = *keep;
	sort->desc = gs_sort_key_desc(keys, tupdesc, &refusal);
	sort->place = GS_SORT_LOCAL;
	sort->report.fallback = GS_FALLBACK_NONE;
	sort->row_slot = MakeSingleTupleTableSlot(tupdesc, &TTSOpsMinimalTuple);
	MemoryContextSwitchTo(old);

	/*
	 * The plan was made for columns that can be sorted; but the planner may
	 * have taken others that it knows to be equal, and a plan may be older
	 * than what it was made for.
	 */
	if (sort->desc == NULL)
		change_to_cpu(sort, GS_FALLBACK_KEYS);
	return sort;
}

/*
 * Put a row into the tuplesort; without a row, perform it.  Without gpusort, several processes would have
 * sorted, each with its own temp_file_limit.  So the tuplesort may use the sum of their limits, unless users'
 * functions compare rows: they can read the setting.
 */
static void
use_tuplesort(GsSort *sort, TupleTableSlot *slot)
{
	if (unlikely(temp_file_limit >= 0 && sort->processes > 1))
	{
		sort->file_limit = temp_file_limit;
		sort->raised = true;
		temp_file_limit = Min((int64) sort->file_limit * sort->processes, INT_MAX);
	}
	if (slot)
		tuplesort_puttupleslot(sort->tuplesort, slot);
	else
		tuplesort_performsort(sort->tuplesort);
	gs_sort_lower_limit(sort);
}

void
gs_sort_lower_limit(GsSort *sort)
{
	if (sort->raised)
		temp_file_limit = sort->file_limit;
	sort->raised = false;
}

/* tuplesort copies what it is given. */
static void
put_stored_row(GsSort *sort, const char *row, bool external)
{
	use_tuplesort(sort, gs_stored_slot(sort, row, external));
}

static void
put_chunk(GsSort *sort, char *memory, uint32 bytes, uint32 n_records)
{
	for (uint32 i = 0; i < n_records; i++)
	{
		GsRecord   *record = gs_chunk_record(memory, bytes, i);

		if ((uint64) record->row_off + (record->row_len & GS_LENGTH_MASK) > bytes)
			elog(ERROR, "a row of %u bytes lies outside of its chunk", record->row_len & GS_LENGTH_MASK);
		put_stored_row(sort, memory + record->row_off, (record->row_len & GS_ROW_EXTERNAL) != 0);
	}
}

/* Put the local rows of the chunks from this one on into the tuplesort, and free all local chunks. */
static void
put_local_rows(GsSort *sort, int first)
{
	for (int i = first; i < sort->local.n_chunks; i++)
		put_chunk(sort, sort->local.chunks[i].memory, sort->local.chunks[i].bytes, sort->local.chunks[i].n);
	gs_local_free(sort);
}

/* The device takes no more rows.  Its rows stay there until drain_device(); the feeder's come back now. */
static void
change_full_device_to_cpu(GsSort *sort)
{
	const char *row;
	bool		external;

	Assert(sort->place == GS_SORT_DEVICE);
	change_to_cpu(sort, gs_client_session(sort->client)->overflow_reason);
	while (sort->feeder && (row = gs_feeder_take_back(sort->feeder, &external)) != NULL)
		put_stored_row(sort, row, external);
}

/*
 * Sort local rows, whose keys are not enough, by a tuplesort.  That is a fallback only if there are many
 * rows: the local ones may be few because most have no key.
 */
static void
change_few_rows_to_cpu(GsSort *sort)
{
	if (sort->distrusted)
	{
		sort->report.fallback = GS_FALLBACK_ORDER;
		gs_stats_fallback(GS_FALLBACK_ORDER);
	}
	sort->report.rows = sort->local.rows + gs_aside_rows(sort);
	if (sort->aside && sort->report.rows >= (uint64) gs_guc_min_rows)
		change_to_cpu(sort, GS_FALLBACK_NO_KEY);
	else
	{
		make_tuplesort(sort);
		sort->place = GS_SORT_CPU;
	}
	put_local_rows(sort, 0);
}

static void
close_session(GsSort *sort)
{
	if (sort->client)
		gs_client_close(sort->client);
	sort->client = NULL;
	sort->feeder = NULL;
}

/*
 * The rows that the device must return, as far as keys can tell.  If the device drops rows by groups, it
 * need not look for equal rows.  If it should and cannot, it must not apply the limit.
 */
static GsKeep
rows_to_keep(GsSort *sort)
{
	GsKeep		keep = {.unique = sort->keep.unique, .counted = sort->keep.counted,
		.min_count = sort->keep.min_count, .max_count = sort->keep.max_count};

	*(sort->keep.counted ? &keep.top : &keep.limit) = sort->keep.limit;
	if (sort->keep.group_first > 0)
	{
		sort->drops_by_group = gs_key_group(sort->desc, sort->keep.group_cols, &keep.group);
		if (sort->drops_by_group)
		{
			keep.unique = false;
			keep.group.first = sort->keep.group_first;
			keep.group.ties = sort->keep.group_ties;
			keep.group.several = sort->keep.group_several;
		}
		else
			keep.limit = 0;
	}
	return keep;
}

void
gs_sort_watch_groups(GsSort *sort, double rows, double few)
{
	sort->group_rows = rows;
	sort->few_groups = few;
	sort->first_look = rows > 0 ? GS_GROUPS_FIRST_LOOK(rows) : 0;
}

bool
gs_sort_open_device(GsSort *sort, int feeders)
{
	MemoryContext old;
	GsSessionSpec spec = {0};
	GsFallback	reason;

	if (sort->place == GS_SORT_CPU)
		return false;
	Assert(sort->place == GS_SORT_LOCAL);
	/* users' functions may compare columns that keys do not hold, and can read temp_file_limit */
	sort->processes = sort->desc->ended || sort->desc->abbreviated ? 1 : feeders;
	old = MemoryContextSwitchTo(sort->context);
	spec.minimal_tuples = true;
	gs_key_tuple_keys(sort->desc, sort->tupdesc, false, &spec.sort.tuple_keys);
	spec.key_columns = sort->desc->ncols;
	spec.keep = rows_to_keep(sort);
	spec.group_rows = sort->group_rows;
	spec.few_groups = sort->few_groups;
	sort->client = gs_client_open(&spec, feeders, &reason);
	if (sort->client)
	{
		sort->feeder = gs_feeder_create(sort->client, sort->desc);
		sort->place = GS_SORT_DEVICE;
	}
	MemoryContextSwitchTo(old);

	if (sort->client == NULL && sort->group_rows > 0)
	{
		sort->declined = true;
		gs_stats_fallback(reason);
		return false;
	}
	if (sort->client == NULL)
	{
		change_to_cpu(sort, reason);
		put_local_rows(sort, 0);
		return false;
	}
	for (int i = 0; i < sort->local.n_chunks - 1 && sort->place == GS_SORT_DEVICE; i++)
	{
		switch (gs_feeder_put_chunk(sort->feeder, &sort->local.chunks[i]))
		{
			case GS_PUT_OVERFLOW:
				/* what is on the device stays there for the time being */
				change_full_device_to_cpu(sort);
				put_local_rows(sort, i);
				break;
			case GS_PUT_LOST:
				/* all rows are still here */
				close_session(sort);
				change_to_cpu(sort, GS_FALLBACK_LOST);
				put_local_rows(sort, 0);
				break;
			case GS_PUT_DECLINED:
				sort->declined = true;
				return false;
			default:
				break;
		}
	}
	if (sort->place == GS_SORT_DEVICE && sort->local.n_chunks > 0)
	{
		gs_local_grow(sort, GS_CHUNK_BYTES);
		gs_feeder_go_on(sort->feeder, &sort->local.chunks[--sort->local.n_chunks]);
	}
	gs_local_free(sort);
	return sort->place == GS_SORT_DEVICE;
}

GsClient *
gs_sort_client(const GsSort *sort)
{
	return sort->place == GS_SORT_DEVICE ? sort->client : NULL;
}

GsFeeder *
gs_sort_feeder(const GsSort *sort, const GsKeyDesc **desc)
{
	*desc = sort->desc;
	return sort->place == GS_SORT_DEVICE ? sort->feeder : NULL;
}

static GsSortStatus
put_device(GsSort *sort, TupleTableSlot *slot)
{
	GsPutRow	row = {.slot = slot};
	GsPut		put = gs_feeder_put(sort->feeder, &row);

	if (unlikely(put == GS_PUT_BIG && !gs_stored_has_key(sort, slot)))
		put = GS_PUT_LEFT;
	if (unlikely(put == GS_PUT_BIG))
	{
		GsBigStub	stub;

		row = gs_stored_write_big(sort, slot, &stub);
		put = gs_feeder_put(sort->feeder, &row);
	}
	if (likely(put == GS_PUT_OK))
		return GS_SORT_OK;
	if (put == GS_PUT_LOST)
		return GS_SORT_LOST;
	if (put == GS_PUT_DECLINED)
		return GS_SORT_DECLINED;
	if (put == GS_PUT_LEFT)
	{
		gs_aside_put(sort, slot);
		return GS_SORT_OK;
	}
	change_full_device_to_cpu(sort);
	use_tuplesort(sort, slot);
	return GS_SORT_OK;
}

/* Look for few groups in the local rows. */
static void
look_for_groups(GsSort *sort)
{
	MemoryContext old = MemoryContextSwitchTo(sort->context);
	GsGroupSample *sample = gs_groups_begin();

	for (int i = 0; i < sort->local.n_chunks; i++)
		gs_groups_add(sample, &sort->local.chunks[i], 0);
	sort->declined = gs_groups_are_fewer(sample, sort->few_groups, sort->group_rows, true);
	sort->first_look = 0;
	pfree(sample);
	MemoryContextSwitchTo(old);
}

GsSortStatus
gs_sort_put(GsSort *sort, TupleTableSlot *slot)
{
	Assert(sort->source == NULL);
	switch (sort->place)
	{
		case GS_SORT_LOCAL:
			gs_local_put(sort, slot);
			if (unlikely(sort->first_look > 0 && sort->local.rows >= sort->first_look))
				look_for_groups(sort);
			if (sort->declined)
				return GS_SORT_DECLINED;
			if (unlikely(gs_local_full(sort)))
				(void) gs_sort_open_device(sort, 1);
			return sort->declined ? GS_SORT_DECLINED : GS_SORT_OK;
		case GS_SORT_DEVICE:
			return put_device(sort, slot);
		case GS_SORT_CPU:
			use_tuplesort(sort, slot);
			return GS_SORT_OK;
	}
	pg_unreachable();
}

/* Copy what the session reports. */
static void
note_session(const GsSort *sort, GsSortReport *report)
{
	report->devices = gs_client_devices(sort->client);
	report->session = gs_client_session(sort->client)->outcome;
}

/* Take back all rows that the device holds or has refused, and close the session. */
static GsSortStatus
drain_device(GsSort *sort)
{
	GsClientStatus status = gs_client_perform(sort->client, false);
	const GsSession *session = gs_client_session(sort->client);
	uint64		rows = session->outcome.n_dropped;
	int			chunk;

	/* gs_client_decline() does nothing after an overflow */
	Assert(status != GS_CLIENT_DECLINED);
	if (status == GS_CLIENT_LOST)
		return GS_SORT_LOST;
	while ((chunk = gs_client_take_rejected(sort->client)) >= 0)
	{
		put_chunk(sort, gs_chunk_memory(chunk), GS_CHUNK_BYTES, gs_chunks[chunk].n_records);
		gs_client_give_chunk(sort->client, chunk);
	}
	if (session->outcome.n_images > 0)
	{
		/* nobody feeds any more, so the session's promise covers it */
		chunk = gs_client_try_chunk(sort->client);
		if (chunk < 0)
			return GS_SORT_LOST;
		for (uint64 i = 0; i < session->outcome.n_images; i++)
		{
			gs_client_request(sort->client, chunk, GS_FETCH_IMAGE, i);
			if (gs_client_wait(sort->client, chunk) != GS_CLIENT_OK)
				return GS_SORT_LOST;
			put_chunk(sort, gs_chunk_memory(chunk), GS_CHUNK_BYTES, gs_chunks[chunk].n_records);
			rows += gs_chunks[chunk].n_records;
			CHECK_FOR_INTERRUPTS();
		}
	}
	if (rows != session->rows)
	{
		elog(LOG, "gpusort got " UINT64_FORMAT " of " UINT64_FORMAT " rows back", rows, session->rows);
		return GS_SORT_LOST;
	}
	note_session(sort, &sort->report);
	gs_client_close(sort->client);
	sort->client = NULL;
	return GS_SORT_OK;
}

static GsSortStatus
perform_device(GsSort *sort)
{
	GsPut		fed = gs_feeder_finish(sort->feeder);
	GsClientStatus status;

	if (fed == GS_PUT_LOST)
		return GS_SORT_LOST;
	if (fed == GS_PUT_DECLINED)
		return GS_SORT_DECLINED;
	if (fed == GS_PUT_OVERFLOW)
	{
		change_full_device_to_cpu(sort);
		return GS_SORT_OK;
	}
	status = gs_client_perform(sort->client, sort->aside == NULL);
	if (status == GS_CLIENT_LOST)
		return GS_SORT_LOST;
	if (status == GS_CLIENT_DECLINED)
		return GS_SORT_DECLINED;
	note_session(sort, &sort->report);
	if (status == GS_CLIENT_OVERFLOW)
		change_full_device_to_cpu(sort);
	else if (sort->aside && gs_client_session(sort->client)->rows == 0)
	{
		close_session(sort);
		change_to_cpu(sort, GS_FALLBACK_NO_KEY);
	}
	return GS_SORT_OK;
}

GsSortStatus
gs_sort_perform(GsSort *sort, bool to_end)
{
	GsSortStatus status;
	MemoryContext old;

	Assert(sort->source == NULL);
	if (sort->place == GS_SORT_DEVICE)
	{
		status = perform_device(sort);
		if (status != GS_SORT_OK)
			return status;
	}
	else if (sort->place == GS_SORT_LOCAL &&
			 (sort->aside || sort->desc->abbreviated || sort->desc->ended || !gs_local_perform(sort)))
		change_few_rows_to_cpu(sort);
	if (sort->place == GS_SORT_CPU)
	{
		if (sort->client)
		{
			status = drain_device(sort);
			if (status != GS_SORT_OK)
				return status;
		}
		use_tuplesort(sort, NULL);
	}
	else if (sort->place == GS_SORT_LOCAL)
		sort->report.rows = sort->local.rows;
	else
	{
		old = MemoryContextSwitchTo(sort->context);
		sort->rows = gs_rows_of_session(sort->client, to_end);
		sort->first_of_equal = sort->keep.unique &&
			gs_client_session(sort->client)->inexact == 0;
		MemoryContextSwitchTo(old);
		if (sort->aside)
			gs_aside_perform(sort);
		sort->report.settled = gs_aside_rows(sort);
		sort->report.rows = sort->rows->n + sort->report.session.n_dropped + gs_aside_rows(sort);
		gs_client_count_sort(sort->client);
	}
	if (sort->report.fallback == GS_FALLBACK_NONE)
		gs_stats_sort(sort->place == GS_SORT_DEVICE ? GS_KIND_DEVICE : GS_KIND_PROCESS,
					  sort->report.rows, gs_stats_lap_ms(&sort->begun));
	return gs_output_begin(sort);
}

void
gs_sort_restart(GsSort *sort)
{
	if (!sort->rerun || sort->returned)
		ereport(ERROR,
				(errcode(ERRCODE_SYSTEM_ERROR),
				 errmsg("gpusort lost its device during a sort"),
				 sort->rerun ?
				 errdetail("Some sorted rows had been returned already.") :
				 errdetail("The sort's input cannot be computed a second time."),
				 errhint("Retry the query.")));
	gs_output_end(sort);
	if (sort->tuplesort)
		tuplesort_end(sort->tuplesort);
	sort->tuplesort = NULL;
	close_session(sort);
	gs_local_free(sort);
	change_to_cpu(sort, sort->distrusted ? GS_FALLBACK_ORDER : GS_FALLBACK_LOST);
}

void
gs_sort_report(const GsSort *sort, GsSortReport *report)
{
	*report = sort->report;
	report->place = sort->place;
	if (sort->client && sort->source != NULL)
		note_session(sort, report);
	if (sort->tuplesort && sort->source != NULL)
	{
		TuplesortInstrumentation stats;

		tuplesort_get_stats(sort->tuplesort, &stats);
		report->cpu_method = tuplesort_method_name(stats.sortMethod);
		report->cpu_space_type = tuplesort_space_type_name(stats.spaceType);
		report->cpu_space_kb = stats.spaceUsed;
	}
}

void
gs_sort_end(GsSort *sort)
{
	gs_output_end(sort);
	if (sort->tuplesort)
		tuplesort_end(sort->tuplesort);
	if (sort->big.file)
		BufFileClose(sort->big.file);
	ExecDropSingleTupleTableSlot(sort->row_slot);
	MemoryContextDelete(sort->context);
}
