/*-------------------------------------------------------------------------
 *
 * key_icu_library.c
 *	  The ICU that the server uses, called directly.
 *
 * The server process has loaded ICU anyway.  Its functions are found by name: the names contain ICU's major
 * version, and the machine that compiles gpusort may have another ICU, or none.  The process may have
 * loaded a second ICU.  The right one reports the same version of the collation as the server.  Collators
 * are opened from the locale in the catalogs, as the server opens its own.
 *
 * Tests: regress/keys_icu
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dlfcn.h>

#include "catalog/pg_collation.h"

#include "compat.h"
#include "key/key_icu_library.h"

/* The versions to which PostgreSQL passes the locale's options unchanged. */
#define ICU_OLDEST			54
#define ICU_NEWEST			120

/* ICU's declarations that are needed here.  All are part of its ABI. */
typedef uint8 IcuVersion[4];
#define ICU_VERSION_STRING	20

/* UColAttribute and UColAttributeValue */
#define ICU_CASE_FIRST				2
#define ICU_CASE_LEVEL				3
#define ICU_STRENGTH				5
#define ICU_NUMERIC_COLLATION		7

#define ICU_TERTIARY				2
#define ICU_OFF						16
#define ICU_LOWER_FIRST				24
#define ICU_UPPER_FIRST				25

typedef struct Icu
{
	void	   *(*open) (const char *locale, int *status);
	void		(*close) (void *collator);
	void		(*get_version) (const void *collator, IcuVersion version);
	void		(*version_to_string) (const IcuVersion version, char *string);
	int			(*get_attribute) (const void *collator, int attribute, int *status);
	void		(*get_contractions) (const void *collator, void *contractions, void *expansions,
									 int8 add_prefixes, int *status);
	void	   *(*set_open) (void);
	void		(*set_close) (void *set);
	int32		(*set_count) (const void *set);
	int32		(*set_item) (const void *set, int32 index, int32 *first, int32 *last,
							 uint16 *string, int32 capacity, int *status);
	GsIcuCharacterCalls characters;
	GsIcuSortKeys sort_keys;
} Icu;

/* The server's ICU.  All collators belong to it. */
static Icu	icu;

/* Finds a function of a version of ICU.  False: there is none. */
static bool
find_function(void *function, const char *name, int version)
{
	char		versioned[64];
	void	   *address;

	snprintf(versioned, sizeof(versioned), "%s_%d", name, version);
	address = dlsym(RTLD_DEFAULT, versioned);
	memcpy(function, &address, sizeof(address));
	return address != NULL;
}

static bool
find_icu(int version, Icu *found)
{
	return find_function(&found->open, "ucol_open", version) &&
		find_function(&found->close, "ucol_close", version) &&
		find_function(&found->get_version, "ucol_getVersion", version) &&
		find_function(&found->version_to_string, "u_versionToString", version) &&
		find_function(&found->get_attribute, "ucol_getAttribute", version) &&
		find_function(&found->get_contractions, "ucol_getContractionsAndExpansions", version) &&
		find_function(&found->set_open, "uset_openEmpty", version) &&
		find_function(&found->set_close, "uset_close", version) &&
		find_function(&found->set_count, "uset_getItemCount", version) &&
		find_function(&found->set_item, "uset_getItem", version) &&
		find_function(&found->characters.get_property, "u_getIntPropertyValue", version) &&
		find_function(&found->characters.open_elements, "ucol_openElements", version) &&
		find_function(&found->characters.close_elements, "ucol_closeElements", version) &&
		find_function(&found->characters.set_offset, "ucol_setOffset", version) &&
		find_function(&found->characters.get_offset, "ucol_getOffset", version) &&
		find_function(&found->sort_keys.get, "ucol_getSortKey", version) &&
		find_function(&found->sort_keys.set_utf8, "uiter_setUTF8", version) &&
		find_function(&found->sort_keys.next_part, "ucol_nextSortKeyPart", version);
}

/* Returns a collator, if its version is the server's. */
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

/* The first collation finds the library. */
void *
gs_icu_open(const char *locale)
{
	char	   *server_version = gs_compat_icu_collation_version(locale);
	void	   *collator = NULL;

	if (server_version == NULL)
		return NULL;
	if (icu.open != NULL)
		collator = open_collator(&icu, locale, server_version);
	for (int version = ICU_NEWEST; icu.open == NULL && version >= ICU_OLDEST; version--)
	{
		Icu			found;

		if (!find_icu(version, &found))
			continue;
		collator = open_collator(&found, locale, server_version);
		if (collator != NULL)
			icu = found;
	}
	pfree(server_version);
	return collator;
}

void
gs_icu_close(void *collator)
{
	icu.close(collator);
}

const GsIcuSortKeys *
gs_icu_sort_keys(void)
{
	return &icu.sort_keys;
}

const GsIcuCharacterCalls *
gs_icu_character_calls(void)
{
	return &icu.characters;
}

/* The root collation steps back in front of no other characters than all collations do. */
GsIcuMarks *
gs_icu_make_marks(void)
{
	int			status = 0;
	void	   *root = icu.open("@colNormalization=yes", &status);
	GsIcuMarks *marks = root != NULL ? calloc(1, sizeof(GsIcuMarks)) : NULL;

	if (marks != NULL)
		gs_icu_find_marks(marks, &icu.characters, root);
	if (root != NULL)
		icu.close(root);
	return marks;
}

/* ---- tables ---- */

/* Reads the options of a collator.  False: a table does not support them. */
static bool
read_options(const void *collator, GsIcuOptions *options)
{
	int			status = 0;
	int			strength = icu.get_attribute(collator, ICU_STRENGTH, &status);
	int			case_first = icu.get_attribute(collator, ICU_CASE_FIRST, &status);
	int			numeric = icu.get_attribute(collator, ICU_NUMERIC_COLLATION, &status);

	options->levels = strength + 1;
	options->case_first = case_first == ICU_LOWER_FIRST ? GS_ICU_LOWER_FIRST :
		case_first == ICU_UPPER_FIRST ? GS_ICU_UPPER_FIRST : GS_ICU_CASE_OFF;
	options->numeric = numeric != ICU_OFF;
	return strength >= 0 && strength <= ICU_TERTIARY &&
		icu.get_attribute(collator, ICU_CASE_LEVEL, &status) == ICU_OFF &&
		status <= 0;
}

/* Returns the code point at *at of UTF-16, and moves *at behind it. */
static uint32
next_code_point(const uint16 *string, int32 len, int32 *at)
{
	uint32		c = string[(*at)++];

	if ((c & 0xfc00) == 0xd800 && *at < len && (string[*at] & 0xfc00) == 0xdc00)
		c = 0x10000 + ((c & 0x3ff) << 10) + (string[(*at)++] & 0x3ff);
	return c;
}

/* Tells a table of an item of the set of contractions. */
static bool
forbid_item(GsIcuTable *table, const void *contractions, int32 item)
{
	uint16		string[256];
	int32		first;
	int32		last;
	int32		at = 0;
	int			status = 0;
	int32		len = icu.set_item(contractions, item, &first, &last, string, lengthof(string),
								   &status);
	uint32		c;

	/* a range of code points is no contraction */
	if (len < 2 || len > lengthof(string) || status > 0)
		return false;
	c = next_code_point(string, len, &at);
	return at < len && gs_icu_table_forbid(table, c, next_code_point(string, len, &at));
}

static bool
forbid_contractions(GsIcuTable *table, const void *collator)
{
	void	   *contractions = icu.set_open();
	int			status = 0;
	bool		all;

	if (contractions == NULL)
		return false;
	icu.get_contractions(collator, contractions, NULL, true, &status);
	all = status <= 0;
	for (int32 i = 0, n = icu.set_count(contractions); i < n && all; i++)
		all = forbid_item(table, contractions, i);
	icu.set_close(contractions);
	return all;
}

GsIcuTable *
gs_icu_make_table(void *collator, GsIcuSortKey sort_key, void *arg)
{
	GsIcuOptions options;
	GsIcuTable *table;
	volatile bool proven = false;

	if (!read_options(collator, &options))
		return NULL;
	table = gs_icu_table_create(&options, sort_key, arg);
	if (table == NULL)
		return NULL;
	/* sort_key may raise an error */
	PG_TRY();
	{
		proven = forbid_contractions(table, collator) && gs_icu_table_prove(table);
	}
	PG_FINALLY();
	{
		if (!proven)
			gs_icu_table_free(table);
	}
	PG_END_TRY();
	return proven ? table : NULL;
}
