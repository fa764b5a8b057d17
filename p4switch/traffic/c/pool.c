#include "pool.h"

#include "slab.h"

#define SLAB_BLOCKS (SLAB_BYTES / POOL_BLOCK) /* the first only links the slabs */

static const uint32_t larger_cap[POOL_LARGER] = {2048, 4608, 10240};

void pool_grow(pool *p)
{
    char *slab = slab_new();
    *(void **)slab = p->slabs;
    p->slabs = slab;
    p->cap += SLAB_BLOCKS - 1;
    p->spare = must_have(realloc(p->spare, p->cap * sizeof(p4_frame *)));
    for (size_t i = SLAB_BLOCKS - 1; i; i--)
        p->spare[p->count++] = (p4_frame *)(slab + i * POOL_BLOCK);
}

/* The index of the larger size that has room for this many bytes; POOL_LARGER: there is none, or none is kept. */
static int larger_of(uint32_t cap)
{
    int i = POOL_CAP ? 0 : POOL_LARGER;
    while (i < POOL_LARGER && cap > larger_cap[i])
        i++;
    return i;
}

p4_frame *pool_large(pool *p, uint32_t cap)
{
    int i = larger_of(cap);
    p4_frame *f = i < POOL_LARGER ? p->larger[i] : NULL;
    p->live++;
    if (f) {
        p->larger[i] = f->next;
        return f;
    }
    if (i < POOL_LARGER)
        cap = larger_cap[i];
    f = must_alloc(sizeof *f + cap);
    f->cap = cap;
    return f;
}

void pool_put_large(pool *p, p4_frame *f)
{
    int i = larger_of(f->cap);
    p->live--;
    if (i == POOL_LARGER || f->cap != larger_cap[i]) {
        free(f);
        return;
    }
    f->next = p->larger[i];
    p->larger[i] = f;
}

void pool_free_all(pool *p)
{
    slab_free_all(p->slabs);
    free(p->spare);
    for (int i = 0; i < POOL_LARGER; i++)
        for (p4_frame *f; (f = p->larger[i]);) {
            p->larger[i] = f->next;
            free(f);
        }
    p->slabs = NULL;
    p->spare = NULL;
    p->count = p->cap = 0;
}
