/*-------------------------------------------------------------------------
 *
 * key_icu.c
 *	  Text under ICU collations: ICU's own sort key.
 *
 * The bytes are ICU's sort key, which ends with its only 0, and where the
 * collation is deterministic the text itself as PostgreSQL's tie-break.
 * The options of a collation are in the sort key: strength, case first, numeric,
 * tailored rules.  But where white space and punctuation are ignored
 * (alternate=shifted), ICU's comparison is not the order of its sort keys: marks
 * that follow what is ignored are ignored, too, and the comparison skips the
 * strings' common prefix without looking at what it was.  For example E'\n\x1f' is
 * less than E'\n\x01\u064b' by comparison, and greater by sort keys (ICU 72).
 * Such collations are refused.
 *
 * From PostgreSQL 16 on the server makes sort keys for us, pg_strnxfrm().
 * PostgreSQL 15 exports no such call, so there ICU is called directly: the
 * library that the server process has loaded anyway, found by name, because
 * ICU's functions carry its major version in their names and the machine that we
 * are built on need not have ICU, nor the same one.  Another library
 * that the process may have loaded as well is told apart by the version of the
 * collation that it reports, which must be what the server reports.
 * Collators are opened from the locale in the catalogs, as the server's are.
 *
 * ICU wants UTF-16.  What a server with UTF-8 as its encoding stores is valid
 * UTF-8, and so the conversion is a few lines here; with other encodings, and
 * PostgreSQL 15, the collation is refused.
 *
 * ucol_getSortKey() fills a buffer that is too small with the first bytes of
 * the sort key, which is what a key that is cut wants; PostgreSQL 15
 * abbreviates on that as well.  But it computes the rest nevertheless, 8 s for
 * text of 100 MB.  Of long text the first bytes come from ucol_nextSortKeyPart(),
 * which reads no more of it than it needs.  ICU does not promise that both
 * calls give the same bytes.  They do, as since ICU 53 they share the function that
 * writes them (CollationKeys::writeSortKeyUpToQuaternary); each collator is
 * asked to show it on samples, and one that cannot is never asked for parts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dlfcn.h>

#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "compat.h"
#include "key/key_value.h"

struct GsKeyCollator
{
	GsKeyCollator *next;
	Oid			collation;
	bool		usable;
	bool		deterministic;
	bool		parts;			/* put_first_bytes() may be used */
	void	   *handle;			/* a UCollator, or the server's locale */
};

/* Text longer than this is long, in bytes. */
#define LONG_TEXT			65536

/* All that were asked for in this process, the unusable ones too. */
static GsKeyCollator *collators = NULL;

static void *open_handle(Oid collation, HeapTuple tuple);
static bool put_sort_key(void *handle, GsVarBytes text, uint8 *dst, size_t room,
						 size_t *written);
static size_t put_first_bytes(void *handle, GsVarBytes text, uint8 *dst, size_t room);

/*
 * Does the collation ignore white space at level 1?  Then the key of a blank has
 * no weights of that level, and begins with a separator, or ends.
 */
static bool
is_shifted(void *handle)
{
	GsVarBytes	blank = {(const uint8 *) " ", 1};
	uint8		key[64];
	size_t		len;

	return !put_sort_key(handle, blank, key, sizeof(key), &len) || len == 0 || key[0] <= 1;
}

/*
 * Are the first bytes of sort keys the same, whichever way they are made?
 */
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
		/* the 0 at the end need not be in a part */
		for (size_t room = 1; room < len; room += 1 + room / 4)
			if (put_first_bytes(handle, text, first, room) != room ||
				memcmp(whole, first, room) != 0)
				return false;
	}
	return true;
}

GsKeyCollator *
gs_key_collator_open(Oid collation)
{
	GsKeyCollator *collator;
	bool		is_default = collation == DEFAULT_COLLATION_OID;
	bool		deterministic = true;
	char		provider;
	void	   *handle = NULL;
	HeapTuple	tuple;

	for (collator = collators; collator != NULL; collator = collator->next)
	{
		if (collator->collation == collation)
			return collator->usable ? collator : NULL;
	}

	tuple = is_default ? SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId)) :
		SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	if (!HeapTupleIsValid(tuple))
		return NULL;
	if (is_default)
		provider = ((Form_pg_database) GETSTRUCT(tuple))->datlocprovider;
	else
	{
		provider = ((Form_pg_collation) GETSTRUCT(tuple))->collprovider;
		deterministic = ((Form_pg_collation) GETSTRUCT(tuple))->collisdeterministic;
	}
	if (provider == COLLPROVIDER_ICU)
		handle = open_handle(collation, tuple);
	ReleaseSysCache(tuple);

	collator = MemoryContextAlloc(TopMemoryContext, sizeof(GsKeyCollator));
	collator->collation = collation;
	collator->usable = handle != NULL && !is_shifted(handle);
	collator->deterministic = deterministic;
	collator->parts = handle != NULL && GetDatabaseEncoding() == PG_UTF8 && parts_agree(handle);
	collator->handle = handle;
	collator->next = collators;
	collators = collator;
	return collator->usable ? collator : NULL;
}

bool
gs_key_collator_is_deterministic(const GsKeyCollator *collator)
{
	return collator->deterministic;
}

bool
gs_key_put_icu(GsKeyCollator *collator, GsVarBytes text, bool ends_key, uint8 *dst,
			   size_t room, size_t *written)
{
	size_t		tail;
	bool		all;

	if (unlikely(text.len > LONG_TEXT) && collator->parts &&
		put_first_bytes(collator->handle, text, dst, room) == room)
	{
		*written = room;
		return false;
	}
	if (!put_sort_key(collator->handle, text, dst, room, written))
		return false;
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

#ifdef GS_COMPAT_SORT_KEYS

/*
 * Sort keys from the server.
 */
static void *
open_handle(Oid collation, HeapTuple tuple)
{
	return gs_compat_sort_key_locale(collation);
}

/*
 * The server tells the length without the 0 at its end, and says nothing about
 * what it has written where that does not fit.
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

/* The versions that PostgreSQL 15 gives the locale's options to as they are. */
#define ICU_OLDEST			54
#define ICU_NEWEST			120

/* Text up to this length is converted on the stack. */
#define ICU_STACK_CHARS		1024

/* ICU's declarations, as far as they are needed; all are part of its ABI. */
typedef uint8 IcuVersion[4];
#define ICU_VERSION_STRING	20

typedef void *(*IcuOpen) (const char *locale, int *status);
typedef void (*IcuClose) (void *collator);
typedef void (*IcuGetVersion) (const void *collator, IcuVersion version);
typedef void (*IcuVersionToString) (const IcuVersion version, char *string);
typedef int32 (*IcuGetSortKey) (const void *collator, const uint16 *chars, int32 n,
								uint8 *result, int32 size);

/* ICU's iterator over UTF-8: some integers and pointers, 120 bytes. */
typedef struct IcuIterator
{
	uint64		space[32];
} IcuIterator;

typedef void (*IcuSetUtf8) (IcuIterator *iterator, const char *string, int32 length);
typedef int32 (*IcuNextSortKeyPart) (const void *collator, IcuIterator *iterator,
									 uint32 state[2], uint8 *result, int32 count,
									 int *status);

typedef struct Icu
{
	IcuOpen		open;
	IcuClose	close;
	IcuGetVersion get_version;
	IcuVersionToString version_to_string;
	IcuGetSortKey get_sort_key;
	IcuSetUtf8	set_utf8;
	IcuNextSortKeyPart next_sort_key_part;
} Icu;

/* The server's; all collators are its. */
static Icu	icu;

static char *locale_name(Oid collation, HeapTuple tuple);
static bool find_icu(int version, Icu *found);
static void *open_collator(const Icu *library, const char *locale, const char *server_version);
static size_t to_utf16(uint16 *dst, const uint8 *src, size_t len);

/*
 * The library is looked for with the first collation.
 */
static void *
open_handle(Oid collation, HeapTuple tuple)
{
	char	   *locale = locale_name(collation, tuple);
	char	   *server_version;
	void	   *handle = NULL;

	if (locale == NULL || GetDatabaseEncoding() != PG_UTF8)
		return NULL;

	server_version = gs_compat_icu_collation_version(locale);
	if (server_version == NULL)
		return NULL;
	if (icu.open != NULL)
		handle = open_collator(&icu, locale, server_version);
	for (int version = ICU_NEWEST; icu.open == NULL && version >= ICU_OLDEST; version--)
	{
		Icu			found;

		if (!find_icu(version, &found))
			continue;
		handle = open_collator(&found, locale, server_version);
		if (handle != NULL)
			icu = found;
	}
	pfree(server_version);
	pfree(locale);
	return handle;
}

/* The collation's or the database's ICU locale, allocated, or NULL. */
static char *
locale_name(Oid collation, HeapTuple tuple)
{
	Datum		name;
	bool		isnull;

	if (collation == DEFAULT_COLLATION_OID)
		name = SysCacheGetAttr(DATABASEOID, tuple, Anum_pg_database_daticulocale, &isnull);
	else
		name = SysCacheGetAttr(COLLOID, tuple, Anum_pg_collation_colliculocale, &isnull);
	return isnull ? NULL : TextDatumGetCString(name);
}

static void *
find_function(const char *name, int version)
{
	char		versioned[64];

	snprintf(versioned, sizeof(versioned), "%s_%d", name, version);
	return dlsym(RTLD_DEFAULT, versioned);
}

static bool
find_icu(int version, Icu *found)
{
	found->open = (IcuOpen) find_function("ucol_open", version);
	if (found->open == NULL)
		return false;
	found->close = (IcuClose) find_function("ucol_close", version);
	found->get_version = (IcuGetVersion) find_function("ucol_getVersion", version);
	found->version_to_string = (IcuVersionToString) find_function("u_versionToString", version);
	found->get_sort_key = (IcuGetSortKey) find_function("ucol_getSortKey", version);
	found->set_utf8 = (IcuSetUtf8) find_function("uiter_setUTF8", version);
	found->next_sort_key_part =
		(IcuNextSortKeyPart) find_function("ucol_nextSortKeyPart", version);
	return found->close != NULL && found->get_version != NULL &&
		found->version_to_string != NULL && found->get_sort_key != NULL &&
		found->set_utf8 != NULL && found->next_sort_key_part != NULL;
}

/* A collator, if it is of the version that the server's is. */
static void *
open_collator(const Icu *library, const char *locale, const char *server_version)
{
	int			status = 0;
	void	   *collator = library->open(locale, &status);
	IcuVersion	version;
	char		string[ICU_VERSION_STRING];

	/* negative ones are warnings */
	if (status > 0 || collator == NULL)
		return NULL;
	library->get_version(collator, version);
	library->version_to_string(version, string);
	if (strcmp(string, server_version) != 0)
	{
		library->close(collator);
		return NULL;
	}
	return collator;
}

static bool
put_sort_key(void *handle, GsVarBytes text, uint8 *dst, size_t room, size_t *written)
{
	uint16		space[ICU_STACK_CHARS];
	uint16	   *chars = space;
	int32		len;

	/* for empty text, which the compiler would warn of */
	space[0] = 0;

	/* no character takes more units of UTF-16 than bytes of UTF-8 */
	if (text.len > lengthof(space))
		chars = MemoryContextAllocHuge(CurrentMemoryContext, text.len * sizeof(uint16));
	len = icu.get_sort_key(handle, chars, to_utf16(chars, text.data, text.len), dst, room);
	if (chars != space)
		pfree(chars);

	/* less than 0 where the length is beyond int32 */
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
	IcuIterator iterator;
	uint32		state[2] = {0, 0};
	int			status = 0;
	int32		len;

	icu.set_utf8(&iterator, (const char *) text.data, text.len);
	len = icu.next_sort_key_part(handle, &iterator, state, dst, room, &status);
	return status > 0 || len < 0 ? 0 : len;
}

/*
 * Valid UTF-8 to UTF-16; whatever src holds, only its bytes are read and no
 * more than len units are written, whose number is returned.
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

#endif							/* GS_COMPAT_SORT_KEYS */
