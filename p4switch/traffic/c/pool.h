/* Frames, recycled. In the virtual world nearly all carry headers only and fit the smallest size. */
#ifndef P4CC_POOL_H
#define P4CC_POOL_H

#include "switch.h"

#define POOL_BLOCK 256 /* bytes of the smallest size, including its head */
#define POOL_LARGER 3  /* sizes for whole frames */
#ifdef __SANITIZE_ADDRESS__
#define POOL_CAP 0 /* every frame is from malloc, so that no access out of bounds goes unnoticed */
#else
#define POOL_CAP (POOL_BLOCK - sizeof(p4_frame))
#endif

typedef struct pool {
    p4_frame **spare; /* a stack, so that the next frames are known without touching them */
    uint64_t count, cap;
    void *slabs;
    uint64_t live; /* frames in use */
    p4_frame *larger[POOL_LARGER];
} pool;

void pool_grow(pool *p);                     /* adds free frames; aborts without memory */
p4_frame *pool_large(pool *p, uint32_t cap); /* aborts without memory */
void pool_put_large(pool *p, p4_frame *f);
void pool_free_all(pool *p);                 /* returned frames */

static inline p4_frame *pool_get(pool *p, uint32_t cap)
{
    if (cap > POOL_CAP || !POOL_CAP)
        return pool_large(p, cap);
    if (!p->count)
        pool_grow(p);
    p4_frame *f = p->spare[--p->count];
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
    p->spare[p->count++] = f; /* there is room for all */
}

/* The frame that the pool hands out `ahead` frames after the next one, if it has that many. */
static inline const p4_frame *pool_peek(const pool *p, uint64_t ahead)
{
    return ahead < p->count ? p->spare[p->count - 1 - ahead] : NULL;
}

#endif
