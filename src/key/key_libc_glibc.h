/*-------------------------------------------------------------------------
 *
 * key_libc_glibc.h
 *	  Reading a locale's order from glibc's tables.
 *
 * nl_langinfo_l() returns pointers to a locale's compiled tables (items _NL_COLLATE_... of <langinfo.h>).
 * localedef writes them (locale/programs/ld-collate.c), and strcoll() reads them (locale/weight.h).
 * Their form has been the same since glibc 2.2; gs_libc_table_prove() shows that it still is.
 *
 *	  rules		A rule set has a byte for each level: 1 forward, 2 backward, 4 with positions.
 *	  table		An int32 for each first byte of a sequence.  It is a weight's index, or if negative the
 *				offset of a list in extra, times -1.
 *	  list		Its entries are the sequences that begin with that byte, padded to 4 bytes.  The first entry
 *				that matches counts.  An entry has an int32 x and a number n.  If x is not negative, x is a
 *				weight's index, and the n bytes behind the sequence's first byte follow.  If x is
 *				negative, the entry is a range: -x is an offset in indirect, and n bytes of the first
 *				sequence and n bytes of the last sequence follow.  The last entry has n = 0.
 *	  indirect	The indexes of a range's sequences, by their distance from the first sequence.
 *	  index		Its highest byte is the rule set.  The other bytes are an offset in weights.
 *	  weights	Each level has a number of bytes, and then these bytes.  A weight is coded as UTF-8 codes a
 *				character.
 *
 * Nothing here knows PostgreSQL; this header is plain C11.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_LIBC_GLIBC_H
#define GS_KEY_LIBC_GLIBC_H

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>

/* Tibetan and Lao contractions have the longest sequences. */
#define GS_GLIBC_SEQUENCE		24

#define GS_GLIBC_BACKWARD		2
#define GS_GLIBC_POSITION		4

typedef struct GsGlibcSequence
{
	uint8_t		bytes[GS_GLIBC_SEQUENCE];
	uint8_t		len;
	uint32_t	order;			/* the sequence of the lowest order counts, if several match */
	uint32_t	index;
} GsGlibcSequence;

typedef struct GsGlibcTables
{
	int			levels;			/* 0: the locale orders by bytes */
	const uint8_t *rules;
	const uint8_t *weights;
	GsGlibcSequence *sequences;
	uint32_t	n_sequences;
	uint64_t	max_sequences;
} GsGlibcTables;

/*
 * Reads a locale's tables.  Returns false if they cannot be read; *why then is a constant string.  The
 * caller frees the sequences in either case.
 */
extern bool gs_glibc_read(GsGlibcTables *tables, locale_t locale, bool utf8, const char **why);

/* Returns the n bytes of an index's weights at a level. */
extern const uint8_t *gs_glibc_weights(const GsGlibcTables *tables, uint32_t index, int level, int *n);

/* Returns the weight at *at, and moves *at behind it. */
extern uint32_t gs_glibc_weight(const uint8_t **at);

#endif							/* GS_KEY_LIBC_GLIBC_H */
