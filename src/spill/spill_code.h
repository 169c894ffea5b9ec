/*-------------------------------------------------------------------------
 *
 * spill_code.h
 *	  The compressed form in which records are written to temporary files.
 *
 * Files contain rows and keys, while PostgreSQL's own sort writes rows only.  But keys add little.  Rows
 * are in order, so a key begins with bytes of the key before it.  And a key is made from values that its row
 * contains.  So a record is written as its differences from the record before it, and from itself:
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
 * Numbers have 7 bits in each byte, the lowest bits first.  The high bit tells that more bytes follow.  A
 * row that begins with its own length, a uint32 as in PostgreSQL's minimal tuples, is written without it.
 * An empty row or key is written as its length alone.  The first record of a block follows an empty one, so
 * each block is read by itself.
 *
 * A row's source is its key.  If the key has few bytes, the source is the row before.  Common bytes are not
 * searched in every record, as columns have the same order in all of them.  The places found in one record
 * are tried in the next.  Each is counted from the end of the place before.  If they do not fit, they are
 * searched again.
 *
 * Pages are rows without keys.  Their entries, or their own lengths, tell where they end.
 *
 * Nothing that was read is trusted: a block that does not decode to as many records and bytes as were
 * written is refused.
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

/* The most bytes that the records of a chunk take. */
static inline size_t
gs_code_room(uint32_t chunk_bytes)
{
	return 2 * (size_t) chunk_bytes;
}

/*
 * Writes n records.  Record i is first[-i].  Their data are next to each other, from data + first->row_off
 * on.  Returns the bytes written to dst.
 */
extern size_t gs_code_records(const char *data, const GsRecord *first, uint32_t n, uint8_t *dst);

/*
 * Reads the records again.  Writes data_bytes bytes to data.  Offsets in records count from base.  False:
 * these are not such records.
 */
extern bool gs_decode_records(const uint8_t *src, size_t bytes, char *data, uint32_t data_bytes,
							  uint32_t base, GsRecord *first, uint32_t n);

/*
 * The same for a page of n rows.  0: its rows are not next to each other.  own_lengths: rows begin with
 * their own length, except rows with GS_ENTRY_EXTERNAL.
 */
extern size_t gs_code_page(const char *page, uint32_t page_bytes, uint32_t n, bool own_lengths,
						   uint8_t *dst);
extern bool gs_decode_page(const uint8_t *src, size_t bytes, char *page, uint32_t page_bytes,
						   uint32_t n);

#endif /* GS_SPILL_CODE_H */
