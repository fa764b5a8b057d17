/* Hosts to be checked, by time: one slot per nanosecond for the near future, a heap for the rest.
 *
 * The entries of an instant are in no particular order, and may be duplicates or without effect.
 */
#ifndef P4CC_WHEEL_H
#define P4CC_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap.h"

#define WHEEL_BITS 14
#define WHEEL_SLOTS (1u << WHEEL_BITS)
#define WHEEL_WORDS (WHEEL_SLOTS / 64)
#define CHUNK_ITEMS 14

typedef struct chunk {
    struct chunk *next;
    uint32_t count;
    void *items[CHUNK_ITEMS];
} chunk;

typedef struct wheel {
    uint64_t now; /* everything in the slots is in [now, now + WHEEL_SLOTS) */
    chunk *spare, *slabs;
    heap far;
    void **drained;
    uint32_t drained_cap;
    chunk *slots[WHEEL_SLOTS];
    uint64_t words[WHEEL_WORDS]; /* which slots are not empty, and which words are not zero */
    uint64_t summary[WHEEL_WORDS / 64];
} wheel;

wheel *wheel_new(void); /* NULL: no memory */
void wheel_free(wheel *w);
chunk *wheel_grow(wheel *w);                    /* a chunk from a new slab; aborts without memory */
uint64_t wheel_next_time(const wheel *w);       /* TIME_NEVER: empty */
/* Moves the clock to `time` <= wheel_next_time() and removes the entries that are due; valid until the next call. */
uint32_t wheel_drain(wheel *w, uint64_t time, void ***items);

static inline void wheel_put(wheel *w, uint64_t time, void *item)
{
    uint32_t s = time & (WHEEL_SLOTS - 1);
    chunk *c = w->slots[s];
    if (!c || c->count == CHUNK_ITEMS) {
        chunk *more = w->spare;
        if (more)
            w->spare = more->next;
        else
            more = wheel_grow(w);
        more->next = c;
        more->count = 0;
        c = w->slots[s] = more;
        w->words[s / 64] |= 1ull << (s % 64);
        w->summary[s / 4096] |= 1ull << (s / 64 % 64);
    }
    c->items[c->count++] = item;
}

/* time >= now */
static inline void wheel_push(wheel *w, uint64_t time, void *item)
{
    if (time - w->now < WHEEL_SLOTS)
        wheel_put(w, time, item);
    else
        heap_push(&w->far, (entry){time, 0, item});
}

#endif
