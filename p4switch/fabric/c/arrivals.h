/* The frames that arrive at a switch within a window, sorted by time. */
#ifndef P4CC_ARRIVALS_H
#define P4CC_ARRIVALS_H

#include "switch.h"

typedef struct arrival {
    uint64_t time;
    p4_frame *frame;
    uint32_t port;
} arrival;

typedef struct arrivals {
    arrival *list, *spare; /* both have room for `cap` items */
    uint32_t count, cap;
} arrivals;

void arrivals_grow(arrivals *a); /* aborts without memory */
void arrivals_sort(arrivals *a); /* sorts by time; the order of equal times is kept */
void arrivals_free(arrivals *a);

static inline void arrivals_add(arrivals *a, arrival item)
{
    if (a->count == a->cap)
        arrivals_grow(a);
    a->list[a->count++] = item;
}

#endif
