#include "pool.h"

#include "slab.h"

#include <stdio.h>
#include <stdlib.h>

#define SLAB_BLOCKS (SLAB_BYTES / POOL_BLOCK) /* the first only links the slabs */

p4_frame *pool_grow(pool *p)
{
    char *slab = slab_new();
    *(void **)slab = p->slabs;
    p->slabs = slab;
    for (size_t i = SLAB_BLOCKS - 1; i > 1; i--) {
        p4_frame *f = (p4_frame *)(slab + i * POOL_BLOCK);
        f->next = p->spare;
        p->spare = f;
    }
    return (p4_frame *)(slab + POOL_BLOCK);
}

p4_frame *pool_large(pool *p, uint32_t cap)
{
    p4_frame *f = malloc(sizeof *f + cap);
    if (!f) {
        fputs("p4cc: out of memory\n", stderr);
        abort();
    }
    p->live++;
    f->cap = cap;
    return f;
}

void pool_put_large(pool *p, p4_frame *f)
{
    p->live--;
    free(f);
}

void pool_free_all(pool *p)
{
    slab_free_all(p->slabs);
    p->slabs = NULL;
    p->spare = NULL;
}
