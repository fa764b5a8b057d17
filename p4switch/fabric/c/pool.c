#include "pool.h"

#include <stdio.h>
#include <stdlib.h>

#define SLAB_BLOCKS 4096 /* the first only links the slabs */

static void out_of_memory(void)
{
    fputs("p4cc: out of memory\n", stderr);
    abort();
}

p4_frame *pool_grow(pool *p)
{
    char *slab = aligned_alloc(POOL_BLOCK, (size_t)POOL_BLOCK * SLAB_BLOCKS);
    if (!slab)
        out_of_memory();
    *(void **)slab = p->slabs;
    p->slabs = slab;
    for (int i = SLAB_BLOCKS - 1; i > 1; i--) {
        p4_frame *f = (p4_frame *)(slab + (size_t)i * POOL_BLOCK);
        f->next = p->spare;
        p->spare = f;
    }
    return (p4_frame *)(slab + POOL_BLOCK);
}

p4_frame *pool_large(pool *p, uint32_t cap)
{
    p4_frame *f = malloc(sizeof *f + cap);
    if (!f)
        out_of_memory();
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
    for (void *slab = p->slabs, *next; slab; slab = next) {
        next = *(void **)slab;
        free(slab);
    }
    p->slabs = NULL;
    p->spare = NULL;
}
