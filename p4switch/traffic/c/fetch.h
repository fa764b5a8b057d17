/* Fetching what is needed soon into the cache.
 *
 * To gcc a function that only fetches has no effect: a call that is not inlined at once is left out. So all are FETCH.
 */
#ifndef P4CC_FETCH_H
#define P4CC_FETCH_H

#include "switch.h"

#define FETCH static inline __attribute__((always_inline))

#define FRAME_FETCHED 128 /* bytes of a frame, with its head: as many as most have present */

FETCH void prefetch_frame(const p4_frame *frame)
{
    __builtin_prefetch(frame);
    __builtin_prefetch((const char *)frame + 64);
}

FETCH void prefetch_lines(const void *at, size_t size)
{
    for (size_t line = 0; line < size; line += 64)
        __builtin_prefetch((const char *)at + line, 1);
}

#endif
