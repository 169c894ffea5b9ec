/*-------------------------------------------------------------------------
 *
 * spill_code.h
 *	  The compressed form in which records are written to temporary files.
 *
 * Files hold rows and keys, where PostgreSQL's own sort writes rows only.  But the
 * key says little that is new.  Rows are in order, so a key begins with bytes of the
 * one before it; and the row holds the values that the key was made of.  So a record
 * is written as what tells it from the record before it and from itself:
 *
 *		flags				one byte, CODE_ below
 *		row's length		unless it is that of the record before
 *		key's length		likewise
 *		key					how many first bytes it shares with the key before; the others
 *		row					how many first bytes it shares with the row before; then, again
 *							and again until the row is complete: some bytes, preceded by their
 *							number; and a length and a place in the row's source, from where
 *							that many bytes are copied
 *
 * Numbers are of 7 bits a byte, the lowest first, the high bit saying that more
 * follow.  A row that begins with its own length, a uint32 as in PostgreSQL's minimal
 * tuples, is written without it.  An empty row or key is written as its length alone.  The first record
 * of a block follows an empty one, so each block is read by itself.
 *
 * A row's source is its key, or where that has few bytes or none, the row before.
 * Where they have bytes in common is not searched for in every record: columns
 * stand in the same order in all of them.  So the places found in one record are tried
 * in the next, each counted from the end of the one before, and looked for again where
 * they are not found.
 *
 * Pages are rows without keys, cut where their entries are, or by their own lengths.
 *
 * Nothing is believed of what was read: a block that does not decode to as many records
 * and bytes as were written is refused.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SPILL_CODE_H
#define GS_SPILL_CODE_H

#include "spill/spill.h"

#define CODE_EXTERNAL 0x01u
#define CODE_INEXACT 0x02u
#define CODE_OWN_LENGTH 0x04u /* the row began with it */
#define CODE_SAME_ROW_LEN 0x08u
#define CODE_SAME_KEY_LEN 0x10u
#define CODE_TIE 0x40u /* pages only */

static inline uint32_t
gs_round_up_8(uint32_t bytes)
{
	return (bytes + 7) & ~UINT32_C(7);
}

/* Bytes that records in so many bytes of a chunk take at most. */
static inline size_t
gs_code_room(uint32_t chunk_bytes)
{
	return 2 * (size_t) chunk_bytes;
}

/*
 * Write n records, of which record i is first[-i], whose data lie one after the other from
 * data + first->row_off on.  Returns the bytes written to dst.
 */
extern size_t gs_code_records(const char *data, const GsRecord *first, uint32_t n, uint8_t *dst);

/*
 * Read them again, data to where data points, as many bytes as there were; offsets in records are
 * counted from base on.  False: these are not such records.
 */
extern bool gs_decode_records(const uint8_t *src, size_t bytes, char *data, uint32_t data_bytes,
							  uint32_t base, GsRecord *first, uint32_t n);

/*
 * The same with a page of n rows; 0: its rows do not lie one after the other.  own_lengths: rows begin
 * with their own length, except those with GS_ENTRY_EXTERNAL.
 */
extern size_t gs_code_page(const char *page, uint32_t page_bytes, uint32_t n, bool own_lengths,
						   uint8_t *dst);
extern bool gs_decode_page(const uint8_t *src, size_t bytes, char *page, uint32_t page_bytes,
						   uint32_t n);

#endif /* GS_SPILL_CODE_H */
