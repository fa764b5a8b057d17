/* Pending events in (time, order of insertion).
 *
 * A wheel of one slot a nanosecond, each slot a chain of chunks, holds what is near; a 4-ary heap holds the rest and
 * feeds the wheel as the clock moves on. An event enters the wheel as soon as its time is within the horizon, so
 * before any later insertion for the same instant: the order in a slot is the order of insertion.
 */
#ifndef P4CC_WHEEL_H
#define P4CC_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WHEEL_BITS 14
#define WHEEL_SLOTS (1u << WHEEL_BITS)
#define WHEEL_WORDS (WHEEL_SLOTS / 64)
#define CHUNK_EVENTS 7
#define TIME_NEVER UINT64_MAX

typedef struct event {
    uintptr_t subject; /* a pointer of which the low four bits say what happens to it */
    void *arg;
} event;

typedef struct chunk {
    struct chunk *next;
    uint32_t count;
    event events[CHUNK_EVENTS];
} chunk;

typedef struct heap_entry {
    uint64_t time, order;
    event what;
} heap_entry;

typedef struct wheel {
    uint64_t now;
    uint64_t heap_time; /* of the heap's first, TIME_NEVER if it is empty */
    chunk *at;          /* where the current slot is being read */
    uint32_t index;
    bool slot_open; /* the slot of `now` is being read */
    chunk *spare;
    chunk *slabs;
    heap_entry *heap;
    uint64_t heap_len, heap_cap, order;
    struct { chunk *head, *tail; } slots[WHEEL_SLOTS];
    uint64_t words[WHEEL_WORDS]; /* which slots are not empty, and which words are not zero */
    uint64_t summary[WHEEL_WORDS / 64];
} wheel;

wheel *wheel_new(void); /* NULL: no memory */
void wheel_free(wheel *w);
chunk *wheel_grow(wheel *w);                                /* a chunk from a new slab; aborts without memory */
void wheel_push_far(wheel *w, uint64_t time, event what);
uint64_t wheel_next_time(const wheel *w);                   /* of the first event after what is open, or TIME_NEVER */
void wheel_open(wheel *w, uint64_t time);                   /* moves the clock to `time` <= wheel_next_time() */
void wheel_close(wheel *w);                                 /* after the slot's last event */
/* Every pending event, in no particular order; the visitor may change it. */
void wheel_visit(wheel *w, void (*visit)(void *ctx, event *what), void *ctx);

static inline chunk *wheel_chunk(wheel *w)
{
    chunk *c = w->spare;
    if (c)
        w->spare = c->next;
    else
        c = wheel_grow(w);
    c->next = NULL;
    c->count = 0;
    return c;
}

static inline void wheel_append(wheel *w, uint64_t time, event what)
{
    uint32_t s = time & (WHEEL_SLOTS - 1);
    chunk *c = w->slots[s].tail;
    if (!c) {
        c = w->slots[s].head = w->slots[s].tail = wheel_chunk(w);
        w->words[s / 64] |= 1ull << (s % 64);
        w->summary[s / 4096] |= 1ull << (s / 64 % 64);
    } else if (c->count == CHUNK_EVENTS) {
        c = c->next = w->slots[s].tail = wheel_chunk(w);
    }
    c->events[c->count++] = what;
}

/* time >= now */
static inline void wheel_push(wheel *w, uint64_t time, event what)
{
    if (time - w->now < WHEEL_SLOTS)
        wheel_append(w, time, what);
    else
        wheel_push_far(w, time, what);
}

/* The next event of the open slot, or NULL. What it points to is valid until the next call. */
static inline event *wheel_take(wheel *w)
{
    chunk *c = w->at;
    if (!c)
        return NULL;
    if (w->index == c->count) {
        if (!c->next)
            return NULL;
        c = w->at = c->next;
        w->index = 0;
    }
    return &c->events[w->index++];
}

/* An event that comes soon after the one just taken, or NULL: for prefetching. */
static inline const event *wheel_peek(const wheel *w, uint32_t ahead)
{
    const chunk *c = w->at;
    uint32_t i = w->index - 1 + ahead;
    if (i < c->count)
        return &c->events[i];
    if (c->next && i - c->count < c->next->count)
        return &c->next->events[i - c->count];
    return NULL;
}

#endif
