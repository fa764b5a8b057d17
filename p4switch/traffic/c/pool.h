/* Frames, recycled. In the virtual world nearly all carry headers only and fit the smallest size. */
#ifndef P4CC_POOL_H
#define P4CC_POOL_H

#include "switch.h"

#define POOL_BLOCK 256 /* bytes of the smallest, with its head */
#define POOL_LARGER 3  /* sizes for whole frames */
#ifdef __SANITIZE_ADDRESS__
#define POOL_CAP 0 /* every frame from malloc, so that nothing out of bounds goes unseen */
#else
#define POOL_CAP (POOL_BLOCK - sizeof(p4_frame))
#endif

typedef struct pool {
    p4_frame *spare;
    void *slabs;
    uint64_t live; /* frames handed out and not yet given back */
    p4_frame *larger[POOL_LARGER];
} pool;

p4_frame *pool_grow(pool *p);                /* aborts without memory */
p4_frame *pool_large(pool *p, uint32_t cap); /* aborts without memory */
void pool_put_large(pool *p, p4_frame *f);
void pool_free_all(pool *p);                 /* those that were given back */

static inline p4_frame *pool_get(pool *p, uint32_t cap)
{
    if (cap > POOL_CAP || !POOL_CAP)
        return pool_large(p, cap);
    p4_frame *f = p->spare;
    if (f)
        p->spare = f->next;
    else
        f = pool_grow(p);
    p->live++;
    f->cap = POOL_CAP;
    return f;
}

static inline void pool_put(pool *p, p4_frame *f)
{
    if (f->cap > POOL_CAP || !POOL_CAP) {
        pool_put_large(p, f);
        return;
    }
    p->live--;
    f->next = p->spare;
    p->spare = f;
}

#endif
