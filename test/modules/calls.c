/*-------------------------------------------------------------------------
 *
 * calls.c
 *	  For tests: a note of each call of a function, which outlives errors and transactions.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(calls_note);
PG_FUNCTION_INFO_V1(calls_list);

static char **notes = NULL;
static int	n_notes = 0;
static int	n_room = 0;

/* Notes "NAME(VALUE)". */
Datum
calls_note(PG_FUNCTION_ARGS)
{
	MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));

	if (n_notes == n_room)
	{
		n_room = n_room == 0 ? 1024 : 2 * n_room;
		notes = notes ? repalloc(notes, n_room * sizeof(char *)) : palloc(n_room * sizeof(char *));
	}
	notes[n_notes++] = PG_ARGISNULL(1) ? psprintf("%s()", name) : psprintf("%s(%d)", name, PG_GETARG_INT32(1));
	pfree(name);
	MemoryContextSwitchTo(caller);
	PG_RETURN_VOID();
}

static int
compare(const void *a, const void *b)
{
	return strcmp(*(char *const *) a, *(char *const *) b);
}

/* Forgets the notes, and returns them in the order of their text: "NAME(VALUE) COUNT, ...". */
Datum
calls_list(PG_FUNCTION_ARGS)
{
	StringInfoData list;
	int			same;

	initStringInfo(&list);
	if (n_notes > 0)
		qsort(notes, n_notes, sizeof(char *), compare);
	for (int i = 0; i < n_notes; i += same)
	{
		for (same = 1; i + same < n_notes && strcmp(notes[i], notes[i + same]) == 0; same++)
			;
		appendStringInfo(&list, "%s%s %d", i == 0 ? "" : ", ", notes[i], same);
	}
	for (int i = 0; i < n_notes; i++)
		pfree(notes[i]);
	n_notes = 0;
	PG_RETURN_TEXT_P(cstring_to_text(list.data));
}
