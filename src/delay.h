/*-------------------------------------------------------------------------
 *
 * delay.h
 *	  Random delays for tests; nothing of them exists in ordinary builds.
 *
 * In a build with FAULTS=1, the environment variable GPUSORT_DELAYS=SEED makes a server sleep at some
 * GS_DELAY() points: a microsecond to 50 ms, short sleeps as often as long ones.  So the steps of two
 * processes or threads come in any order.  The seed chooses the places that sleep every second time; the
 * others sleep every 64th time.
 *
 * Plain C, because threads sleep here as well as processes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_DELAY_H
#define GS_DELAY_H

#ifdef GPUSORT_FAULTS

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* splitmix64 */
static inline uint64_t
gs_delay_random(uint64_t *state)
{
	uint64_t	x = (*state += UINT64_C(0x9e3779b97f4a7c15));

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static inline void
gs_delay(const char *file, int line)
{
	static __thread uint64_t state = 0;
	const char *seed = getenv("GPUSORT_DELAYS");
	const char *slash = strrchr(file, '/');
	uint64_t	place;
	long		us;

	if (seed == NULL)
		return;
	file = slash ? slash : file;
	place = (uint64_t) atoi(seed) << 32;
	if (state == 0)
		state = place ^ (uint64_t) getpid() ^ (uint64_t) (uintptr_t) &state;
	place |= (uint64_t) line;
	for (; *file; file++)
		place = place * 31 + (uint64_t) *file;
	if (gs_delay_random(&state) % (gs_delay_random(&place) % 16 == 0 ? 2 : 64) != 0)
		return;
	us = 1L << gs_delay_random(&state) % 16;
	us += (long) (gs_delay_random(&state) % (uint64_t) us) / 2;
	usleep((useconds_t) us);
}

#define GS_DELAY() gs_delay(__FILE__, __LINE__)

#else

#define GS_DELAY() ((void) 0)

#endif

#endif							/* GS_DELAY_H */
