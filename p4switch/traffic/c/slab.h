/* Memory in large pieces, on large pages where the system has them: with thousands of ports and frames in use at the
 * same time, looking up small pages costs as much as fetching the data. */
#ifndef P4CC_SLAB_H
#define P4CC_SLAB_H

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "allocate.h"

#define SLAB_BYTES ((size_t)2 << 20)

/* An arena: allocates objects one after the other, and frees all of them at its end. */
typedef struct arena {
    void *slabs; /* each begins with a pointer to the one before */
    size_t used;
} arena;

/* Allocates a slab aligned to its size; aborts without memory. It is freed with free(). */
static inline void *slab_new(void)
{
    void *slab = must_have(aligned_alloc(SLAB_BYTES, SLAB_BYTES));
#ifdef MADV_HUGEPAGE
    madvise(slab, SLAB_BYTES, MADV_HUGEPAGE); /* only a hint */
#endif
    return slab;
}

/* Frees all slabs of a chain in which each begins with a pointer to the next. */
static inline void slab_free_all(void *slab)
{
    for (void *next; slab; slab = next) {
        next = *(void **)slab;
        free(slab);
    }
}

/* Zeroed memory on a cache line of its own, of at most half a slab. Aborts without memory. */
static inline void *arena_new(arena *a, size_t bytes)
{
    bytes = (bytes + 63) & ~(size_t)63;
    if (!a->slabs || a->used + bytes > SLAB_BYTES) {
        void *slab = slab_new();
        *(void **)slab = a->slabs;
        a->slabs = slab;
        a->used = 64;
    }
    void *at = (char *)a->slabs + a->used;
    a->used += bytes;
    return memset(at, 0, bytes);
}

#endif
