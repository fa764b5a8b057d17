/* A 4-ary heap of future events, by time, then by rank. */
#ifndef P4CC_HEAP_H
#define P4CC_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "allocate.h"

#define TIME_NEVER UINT64_MAX

static inline uint64_t min_time(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

typedef struct entry {
    uint64_t time, rank;
    void *what;
} entry;

typedef struct heap {
    entry *list;
    uint32_t count, cap;
} heap;

static inline bool entry_before(const entry *a, const entry *b)
{
    return a->time != b->time ? a->time < b->time : a->rank < b->rank;
}

static inline uint64_t heap_time(const heap *h)
{
    return h->count ? h->list[0].time : TIME_NEVER;
}

static inline void heap_push(heap *h, entry e)
{
    if (h->count == h->cap) {
        h->cap = h->cap ? 2 * h->cap : 16;
        h->list = must_grow(h->list, h->cap, sizeof *h->list);
    }
    uint32_t i = h->count++;
    for (; i && entry_before(&e, &h->list[(i - 1) / 4]); i = (i - 1) / 4)
        h->list[i] = h->list[(i - 1) / 4];
    h->list[i] = e;
}

/* Replaces the first element by `e`. */
static inline void heap_replace(heap *h, entry e)
{
    entry *list = h->list;
    uint32_t n = h->count, i = 0;
    for (uint32_t child; (child = 4 * i + 1) < n;) {
        uint32_t best = child;
        for (uint32_t c = child + 1; c < child + 4 && c < n; c++)
            if (entry_before(&list[c], &list[best]))
                best = c;
        if (!entry_before(&list[best], &e))
            break;
        list[i] = list[best];
        i = best;
    }
    list[i] = e;
}

static inline entry heap_pop(heap *h)
{
    entry first = h->list[0];
    h->count--;
    if (h->count)
        heap_replace(h, h->list[h->count]);
    return first;
}

#endif
