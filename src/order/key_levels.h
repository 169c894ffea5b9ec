/*-------------------------------------------------------------------------
 *
 * key_levels.h
 *	  Keys that hold text of a libc collation, without level 1.
 *
 * Level 1 of a text is about as long as the text, which follows it in the key
 * (key/key_layout.h), and for texts of ASCII characters it is mostly what the characters have
 * one by one.  So it can be left out and made again.  That is checked of each key: whatever
 * the collation does, the key that is made again is the same.
 *
 * Texts in arrays keep theirs.
 *
 * Nothing here knows PostgreSQL; this header is plain C11.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_LEVELS_H
#define GS_KEY_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

#include "key/key_layout.h"

typedef struct GsKeyLevels GsKeyLevels;

/* For keys of this layout.  NULL: they hold no such text, or memory or a locale is not to be had. */
extern GsKeyLevels *gs_key_levels_open(const GsKeyLayout *layout);
extern void gs_key_levels_close(GsKeyLevels *levels);

/*
 * Write a key without level 1 to dst, and return the bytes; 0: it would not be made again.  remake:
 * the reverse; 0: it needs more than room bytes, or is not what shorten writes.  levels is a GsKeyLevels.
 * Both may be called by several threads at once.
 */
extern uint32_t gs_key_levels_shorten(const void *levels, const uint8_t *key, uint32_t len,
									  uint8_t *dst);
extern uint32_t gs_key_levels_remake(const void *levels, const uint8_t *src, uint32_t len,
									 uint8_t *dst, uint32_t room);

#endif /* GS_KEY_LEVELS_H */
