/*-------------------------------------------------------------------------
 *
 * key_icu.c
 *	  Text under ICU collations: ICU's own sort key.
 *
 * The bytes are ICU's sort key, which ends with its only 0, and where the
 * collation is deterministic the text itself as PostgreSQL's tie-break.
 * The options of a collation are in the sort key: strength, case first, numeric,
 * tailored rules.  But with some options, and for some characters, ICU's comparison disagrees with the sort
 * keys.  key_icu_prove.c finds out, once a server for each collation: it refuses the collation, or texts
 * with these characters have no key.  A process that finds no proof in shared memory makes one, and holds no
 * lock.
 *
 * ICU takes two microseconds for the sort key of a path.  For most texts a table of the
 * collation's characters gives the same bytes (key_icu_table.h).  The table costs as much to make
 * as some thousand sort keys, so a process makes it after its first TABLE_AFTER texts.
 * The table is for the options that most collations have.
 *
 * From PostgreSQL 16 on, the server makes sort keys (pg_strnxfrm()).  PostgreSQL 15 exports no such call,
 * so there gpusort calls ICU directly (key_icu_library.h).
 *
 * ICU takes UTF-16.  A server with the encoding UTF-8 stores valid UTF-8, so the conversion is a few lines
 * here.  With other encodings the collation is refused: most of them lack the texts that are compared.
 *
 * If the buffer is too small, ucol_getSortKey() fills it with the first bytes of the sort key.  That is
 * what a cut key needs, and PostgreSQL 15 abbreviates by it as well.  But ICU computes the rest
 * nevertheless: 8 s for text of 100 MB.  So if text is longer than the room, ucol_nextSortKeyPart() makes
 * the first bytes, and reads no more text than it needs.  An index of 20,000 texts of 54 kB took 1.4 s, and
 * 6.7 s by whole sort keys.  ICU does not promise that both calls give the same bytes.  They do, as since
 * ICU 53 both use CollationKeys::writeSortKeyUpToQuaternary.  Each collator is tested on samples, and if it
 * fails, it is never asked for parts.
 *
 * Tests: regress/keys_icu, regress/keys_icu_proof
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/varlena.h"

#include "compat.h"
#include "fault.h"
#include "key/key_icu_library.h"
#include "key/key_tables.h"
#include "key/key_value.h"

struct GsKeyCollator
{
	GsKeyCollator *next;
	Oid			collation;
	bool		known;			/* usable is set */
	bool		usable;
	bool		deterministic;
	GsIcuHabits habits;
	bool		parts;			/* put_first_bytes() may be used */
	void	   *handle;			/* a UCollator, or the server's locale */
	const char *locale;			/* NULL: there can be no table */
	uint32		n_texts;		/* keys made without a table, up to TABLE_AFTER */
	GsIcuTable *table;			/* or NULL */
	char	   *shared_name;	/* of the table for devices; NULL: there can be none, or it has been looked
								 * for */
	const GsTextTable *device_table;
};

/* Test builds make tables sooner, and compare all keys of tables with ICU's. */
#ifdef GPUSORT_FAULTS
#define TABLE_AFTER			50
#else
#define TABLE_AFTER			2000
#endif

/* Which texts have no key; NULL: no collator has been opened yet. */
static const GsIcuMarks *marks = NULL;

/* All collators that this process has asked for, also unusable ones. */
static GsKeyCollator *collators = NULL;

#ifdef GS_COMPAT_SORT_KEYS

/*
 * Sort keys from the server.
 */
static void *
open_handle(Oid collation, const char *locale)
{
	return gs_compat_sort_key_locale(collation);
}

/*
 * The server returns the length without the 0 at the end.  If the key does not fit, the contents of dst are
 * undefined.
 */
static bool
put_sort_key(void *handle, GsVarBytes text, uint8 *dst, size_t room, size_t *written)
{
	size_t		len = gs_compat_sort_key(dst, room, text.data, text.len, handle);
	uint8	   *whole;

	if (len < room)
	{
		*written = len + 1;
		return true;
	}
	whole = MemoryContextAllocHuge(CurrentMemoryContext, len + 1);
	gs_compat_sort_key(whole, len + 1, text.data, text.len, handle);
	memcpy(dst, whole, room);
	pfree(whole);
	*written = room;
	return false;
}

static size_t
put_first_bytes(void *handle, GsVarBytes text, uint8 *dst, size_t room)
{
	return gs_compat_sort_key_prefix(dst, room, text.data, text.len, handle);
}

#else

/*
 * Sort keys from ICU.
 */

/* Text up to this length is converted on the stack. */
#define ICU_STACK_CHARS		1024

/*
 * Converts valid UTF-8 to UTF-16, and returns the number of units written.  Whatever src contains, only its
 * bytes are read, and at most len units are written.
 */
static size_t
to_utf16(uint16 *dst, const uint8 *src, size_t len)
{
	const uint8 *end = src + len;
	uint16	   *start = dst;

	while (src < end)
	{
		size_t		left = end - src;
		uint32		c;

		while (left >= sizeof(uint64))
		{
			uint64		eight;

			memcpy(&eight, src, sizeof(eight));
			if (eight & UINT64CONST(0x8080808080808080))
				break;
			for (int i = 0; i < sizeof(eight); i++)
				dst[i] = src[i];
			src += sizeof(eight);
			dst += sizeof(eight);
			left -= sizeof(eight);
		}
		if (left == 0)
			break;

		c = *src++;
		if (c >= 0xf0 && left >= 4)
		{
			c = (c & 0x07) << 18 | (src[0] & 0x3f) << 12 | (src[1] & 0x3f) << 6 | (src[2] & 0x3f);
			src += 3;
			c -= 0x10000;
			*dst++ = 0xd800 | (c >> 10 & 0x3ff);
			c = 0xdc00 | (c & 0x3ff);
		}
		else if (c >= 0xe0 && left >= 3)
		{
			c = (c & 0x0f) << 12 | (src[0] & 0x3f) << 6 | (src[1] & 0x3f);
			src += 2;
		}
		else if (c >= 0xc0 && left >= 2)
		{
			c = (c & 0x1f) << 6 | (src[0] & 0x3f);
			src += 1;
		}
		*dst++ = c;
	}
	return dst - start;
}

static void *
open_handle(Oid collation, const char *locale)
{
	return locale == NULL ? NULL : gs_icu_open(locale);
}

static bool
put_sort_key(void *handle, GsVarBytes text, uint8 *dst, size_t room, size_t *written)
{
	uint16		space[ICU_STACK_CHARS];
	uint16	   *chars = space;
	int32		len;

	/* the compiler would warn of empty text */
	space[0] = 0;

	/* no character takes more units of UTF-16 than bytes of UTF-8 */
	if (text.len > lengthof(space))
		chars = MemoryContextAllocHuge(CurrentMemoryContext, text.len * sizeof(uint16));
	len = gs_icu_sort_keys()->get(handle, chars, to_utf16(chars, text.data, text.len), dst, room);
	if (chars != space)
		pfree(chars);

	/* less than 0: the length exceeds int32 */
	if (len == 0)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("could not make a sort key of %u bytes of text", text.len)));
	if (len < 0 || len > room)
	{
		*written = room;
		return false;
	}
	*written = len;
	return true;
}

static size_t
put_first_bytes(void *handle, GsVarBytes text, uint8 *dst, size_t room)
{
	GsIcuIterator iterator;
	uint32		state[2] = {0, 0};
	int			status = 0;
	int32		len;

	gs_icu_sort_keys()->set_utf8(&iterator, (const char *) text.data, text.len);
	len = gs_icu_sort_keys()->next_part(handle, &iterator, state, dst, room, &status);
	return status > 0 || len < 0 ? 0 : len;
}

#endif							/* GS_COMPAT_SORT_KEYS */

/* For the proof, and for tables. */
static bool
sort_key_of(void *arg, const uint8 *text, size_t len, uint8 *key, size_t room, size_t *key_len)
{
	GsKeyCollator *collator = arg;
	GsVarBytes	bytes = {text, len};

	if (GS_FAULT("icu_table"))
		ereport(ERROR, (errmsg("could not make a sort key of %zu bytes of text", len)));
	return put_sort_key(collator->handle, bytes, key, room, key_len);
}

static int
compare_texts(void *arg, const uint8 *a, size_t a_len, const uint8 *b, size_t b_len)
{
	GsKeyCollator *collator = arg;

	CHECK_FOR_INTERRUPTS();
	return varstr_cmp((const char *) a, a_len, (const char *) b, b_len, collator->collation);
}

static bool
has_key(void *arg, const uint8 *text, size_t len)
{
	GsKeyCollator *collator = arg;

	return gs_icu_has_key(marks, gs_icu_character_calls(), &collator->habits, text, len);
}

static void *
make_marks(void *arg, Size *size)
{
	*size = sizeof(GsIcuMarks);
	return gs_icu_make_marks();
}

/*
 * Are the collator's keys in the order of the server's comparison?  Nondeterministic collations have proofs
 * of their own, as these show which texts are equal.
 */
static bool
is_right(GsKeyCollator *collator, const char *locale, const char *rules)
{
	GsIcuProof	proof = {sort_key_of, compare_texts, has_key, collator, collator->deterministic};
	char	   *name = psprintf("%d:%s:%s", collator->deterministic, locale, rules == NULL ? "" : rules);
	uint64		hash[2];
	GsTableEntry *entry;
	const char *why;

	for (int i = 0; i < lengthof(hash); i++)
		hash[i] = hash_bytes_extended((unsigned char *) name, (int) strlen(name), i);
	pfree(name);
	if (marks == NULL)
		marks = gs_tables_get("marks of ICU", false, make_marks, NULL, &entry);
	if (marks == NULL)
		return false;
	gs_icu_find_habits(&proof, &collator->habits);
	switch (gs_tables_find_proof(hash))
	{
		case GS_PROOF_RIGHT:
			return true;
		case GS_PROOF_WRONG:
			return false;
		case GS_PROOF_NONE:
			break;
	}
	/* random rules that reorder scripts have passed the proof, although keys were in another order */
	why = rules && strstr(rules, "[reorder") ? "its rules reorder scripts" : gs_icu_prove(&proof);
	gs_tables_add_proof(hash, why == NULL ? GS_PROOF_RIGHT : GS_PROOF_WRONG);
	if (why != NULL)
		ereport(LOG,
				(errmsg("gpusort does not sort text under the ICU locale \"%s\"%s: %s", locale,
						rules == NULL ? "" : " with rules", why)));
	return why == NULL;
}

/* Do both ways of making sort keys give the same first bytes? */
static bool
parts_agree(void *handle)
{
	static const char *const samples[] = {
		"The quick brown fox, 1234567890 and 98.", "a", "",
		"\xc3\xa9t\xc3\xa9 \xc3\x84rger gro\xc3\x9f o\xcc\x88 \xc3\xb1 ch dz aa AA lj",
		"\xd0\x96\xd1\x83\xd0\xba \xce\xb1\xcf\x81\xcf\x87\xce\xae",
		"\xe6\xbc\xa2\xe5\xad\x97 \xe3\x81\x8b\xe3\x82\xab \xed\x95\x9c\xea\xb8\x80 \xf0\x9f\x98\x80"
	};
	uint8		whole[1024];
	uint8		first[1024];

	for (int i = 0; i < lengthof(samples); i++)
	{
		GsVarBytes	text;
		size_t		len;

		text.data = (const uint8 *) samples[i];
		text.len = strlen(samples[i]);
		if (!put_sort_key(handle, text, whole, sizeof(whole), &len))
			return false;
		/* a part may lack the 0 at the end */
		for (size_t room = 1; room < len; room += 1 + room / 4)
			if (put_first_bytes(handle, text, first, room) != room ||
				memcmp(whole, first, room) != 0)
				return false;
	}
	return true;
}

/* Opens a collator, and finds the library that the proof needs.  NULL: there is none. */
static void *
open_collator(Oid collation, const char *locale)
{
	bool		may_be = GetDatabaseEncoding() == PG_UTF8 && locale != NULL;
	void	   *handle = may_be ? open_handle(collation, locale) : NULL;

#ifdef GS_COMPAT_SORT_KEYS
	if (handle != NULL && marks == NULL)
	{
		void	   *library_collator = gs_icu_open(locale);

		if (library_collator == NULL)
			return NULL;
		gs_icu_close(library_collator);
	}
#endif
	return handle;
}

/* An error while a collator is proven leaves it unknown. */
GsKeyCollator *
gs_key_collator_open(Oid collation, const char *locale, const char *rules, bool deterministic)
{
	GsKeyCollator *collator;

	for (collator = collators; collator != NULL; collator = collator->next)
		if (collator->collation == collation)
			break;
	if (collator == NULL)
	{
		void	   *handle = open_collator(collation, locale);

		collator = MemoryContextAllocZero(TopMemoryContext, sizeof(GsKeyCollator));
		collator->collation = collation;
		collator->deterministic = deterministic;
		collator->handle = handle;
		if (handle != NULL && rules == NULL)
		{
			MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

			collator->locale = pstrdup(locale);
			collator->shared_name = psprintf("icu:%s", locale);
			MemoryContextSwitchTo(old);
		}
		collator->next = collators;
		collators = collator;
	}
	if (!collator->known)
	{
		collator->usable = collator->handle != NULL && is_right(collator, locale, rules);
		collator->parts = collator->usable && parts_agree(collator->handle);
		collator->known = true;
	}
	return collator->usable ? collator : NULL;
}

/* Makes the collator's table, once.  If that fails, it is not tried again. */
static void
make_table(GsKeyCollator *collator)
{
	const char *locale = collator->locale;
	void	   *library_collator;

	collator->locale = NULL;
	library_collator = gs_icu_open(locale);
	if (library_collator == NULL)
		return;
	/* making a sort key may fail, and none of this is PostgreSQL's memory */
	PG_TRY();
	{
		collator->table = gs_icu_make_table(library_collator, sort_key_of, collator);
	}
	PG_FINALLY();
	{
		gs_icu_close(library_collator);
	}
	PG_END_TRY();
	ereport(DEBUG1,
			(errmsg_internal(collator->table != NULL ?
							 "gpusort makes sort keys of ICU locale \"%s\" from a table" :
							 "gpusort has no table for sort keys of ICU locale \"%s\"", locale)));
}

#ifdef GPUSORT_FAULTS
/* A key made from the table must be ICU's. */
static void
check_table_key(GsKeyCollator *collator, GsVarBytes text, const uint8 *key, size_t len)
{
	uint8	   *icus = MemoryContextAllocHuge(CurrentMemoryContext, len);
	size_t		icus_len;

	if (!put_sort_key(collator->handle, text, icus, len, &icus_len) || icus_len != len ||
		memcmp(key, icus, len) != 0)
		elog(PANIC, "sort key from a table is not ICU's: \"%.*s\"", (int) text.len, text.data);
	pfree(icus);
}
#endif

/*
 * Writes a text's sort key from the collator's table.  False: there is no table, or it does not serve for
 * the text.
 */
static inline bool
put_from_table(GsKeyCollator *collator, GsVarBytes text, uint8 *dst, size_t room, size_t *written)
{
	if (unlikely(collator->table == NULL))
	{
		if (collator->locale == NULL || ++collator->n_texts < TABLE_AFTER)
			return false;
		make_table(collator);
		if (collator->table == NULL)
			return false;
	}
	if (!gs_icu_table_put(collator->table, text.data, text.len, dst, room, written))
		return false;
#ifdef GPUSORT_FAULTS
	check_table_key(collator, text, dst, *written);
#endif
	return true;
}

static void *
make_device_table(void *arg, Size *size)
{
	GsKeyCollator *collator = arg;
	GsIcuCharacters *characters = NULL;

	if (collator->table == NULL && collator->locale != NULL)
		make_table(collator);
	if (collator->table != NULL)
		characters = gs_icu_table_offer(collator->table);
	if (characters != NULL)
		*size = characters->text.size;
	return characters;
}

const GsTextTable *
gs_key_collator_device_table(GsKeyCollator *collator)
{
	char	   *name = collator->shared_name;
	GsTableEntry *entry;

	if (name != NULL)
	{
		collator->device_table = gs_tables_get(name, true, make_device_table, collator, &entry);
		collator->shared_name = NULL;
		pfree(name);
	}
	return collator->device_table;
}

bool
gs_key_collator_is_deterministic(const GsKeyCollator *collator)
{
	return collator->deterministic;
}

bool
gs_key_put_icu(GsKeyCollator *collator, GsVarBytes text, bool ends_key, uint8 *dst,
			   size_t room, size_t *written, bool *lacks)
{
	bool		is_long = text.len > room && collator->parts;
	size_t		tail;
	bool		all;

	/* tables have no marks, and digits only if numbers are not compared */
	if (unlikely(is_long) || !put_from_table(collator, text, dst, room, written))
	{
		if (!has_key(collator, text.data, text.len))
		{
			*written = 0;
			*lacks = true;
			return false;
		}
		if (is_long && put_first_bytes(collator->handle, text, dst, room) == room)
		{
			*written = room;
			return false;
		}
		if (!put_sort_key(collator->handle, text, dst, room, written))
			return false;
	}
	if (!collator->deterministic)
		return true;

	dst += *written;
	room -= *written;
	if (ends_key)
		all = gs_key_put_bytes(dst, room, text.data, text.len, &tail);
	else
		all = gs_key_put_text(dst, room, text.data, text.len, &tail);
	*written += tail;
	return all;
}
