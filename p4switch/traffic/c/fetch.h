/* Prefetching of data that is needed soon.
 *
 * gcc considers a function that only prefetches to have no effect, and drops calls that are not inlined early. So all
 * of them are declared FETCH.
 */
#ifndef P4CC_FETCH_H
#define P4CC_FETCH_H

#include "switch.h"

#define FETCH static inline __attribute__((always_inline))

#define FRAME_FETCHED 128 /* bytes of a frame, including its head, which are all present bytes of most frames */

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
