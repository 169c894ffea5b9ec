/*-------------------------------------------------------------------------
 *
 * key_libc_glibc.h
 *	  What glibc knows of a locale's order, as its tables have it.
 *
 * nl_langinfo_l() returns pointers to a locale's compiled tables (items _NL_COLLATE_... of <langinfo.h>).
 * localedef writes them (locale/programs/ld-collate.c), and strcoll() reads them (locale/weight.h).
 * Their form has been the same since glibc 2.2; gs_libc_table_prove() shows that it still is.
 *
 *	  rules		for each rule set, a byte for each level: 1 forward, 2 backward, 4 with positions
 *	  table		for each first byte of a sequence: a weight's index, or less than 0: minus the offset of a
 *	  list
 *				in extra
 *	  list		of sequences that begin with that byte, the first that matches counts: an int32; a number n of
 *				bytes; if the int32 is not negative, a weight's index, these n bytes, which follow the
 *				first one; else minus an offset in indirect, n bytes of the range's first sequence, n of
 *				its last.  Then up to a multiple of 4.  The list ends with the sequence of the first byte
 *				alone, n = 0
 *	  indirect	the indexes of a range's sequences, by their distance from the first one
 *	  index		the rule set in the highest byte; below it an offset in weights
 *	  weights	for each level: a number of bytes, and so many bytes, which are weights in the form that
 *				UTF-8 has for characters
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

#define GS_GLIBC_FORWARD		1
#define GS_GLIBC_BACKWARD		2
#define GS_GLIBC_POSITION		4

typedef struct GsGlibcSequence
{
	uint8_t		bytes[GS_GLIBC_SEQUENCE];
	uint8_t		len;
	uint32_t	order;			/* of two that match, the one of the lower number counts */
	uint32_t	index;
} GsGlibcSequence;

typedef struct GsGlibcTables
{
	int			levels;			/* 0: the order is that of the bytes */
	const uint8_t *rules;
	const uint8_t *weights;
	GsGlibcSequence *sequences;
	uint32_t	n_sequences;
	uint32_t	max_sequences;
} GsGlibcTables;

/*
 * Read a locale's tables; false, and *why a constant string: they cannot be read.  The sequences are to be
 * freed in either case.
 */
extern bool gs_glibc_read(GsGlibcTables *tables, locale_t locale, bool utf8, const char **why);

/* The bytes of an index's weights of a level. */
extern const uint8_t *gs_glibc_weights(const GsGlibcTables *tables, uint32_t index, int level, int *n);

/* The weight that begins at *at, which moves behind it. */
extern uint32_t gs_glibc_weight(const uint8_t **at);

#endif							/* GS_KEY_LIBC_GLIBC_H */
