/* The frames on a link, in order of arrival at its other end. */
#ifndef P4CC_WIRE_H
#define P4CC_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "slab.h"
#include "switch.h"

#define WIRE_SLOTS 16        /* slots to begin with, ... */
#define WIRE_SLOTS_ARENA 256 /* ... and up to here in the arena, if there is one */

/* Slots in use: [head, tail), each modulo the size of the ring. */
typedef struct wire {
    struct flight { uint64_t time; p4_frame *frame; } *slots;
    uint32_t head, tail, mask;
    bool owned; /* the slots are the heap's, not the arena's */
} wire;

/* Doubles the room. `from`: arena of small rings; NULL: the heap. Aborts without memory. It is out of line, so that
 * `wire_push` is short enough to be inlined. */
static __attribute__((noinline, cold, unused)) void wire_grow(wire *w, arena *from)
{
    uint32_t count = w->slots ? w->mask + 1 : 0, cap = count ? 2 * count : WIRE_SLOTS;
    bool owned = !from || cap > WIRE_SLOTS_ARENA;
    struct flight *slots = owned ? must_alloc(cap * sizeof *slots) : arena_new(from, cap * sizeof *slots);
    for (uint32_t i = 0; i < count; i++)
        slots[i] = w->slots[(w->head + i) & w->mask];
    if (w->owned)
        free(w->slots);
    *w = (wire){.slots = slots, .tail = count, .mask = cap - 1, .owned = owned};
}

/* Adds a frame whose last bit arrives at `time`, which is not before that of the previous frame. */
static inline void wire_push(wire *w, arena *from, uint64_t time, p4_frame *frame)
{
    if (!w->slots || w->tail - w->head > w->mask)
        wire_grow(w, from);
    w->slots[w->tail++ & w->mask] = (struct flight){time, frame};
}

static inline bool wire_empty(const wire *w)
{
    return w->head == w->tail;
}

/* The frame that arrives `later` frames after the first. */
static inline struct flight *wire_at(const wire *w, uint32_t later)
{
    return &w->slots[(w->head + later) & w->mask];
}

static inline struct flight *wire_first(const wire *w)
{
    return wire_at(w, 0);
}

static inline void wire_free(wire *w)
{
    if (w->owned)
        free(w->slots);
    *w = (wire){0};
}

#endif
