#include "wheel.h"

#include <string.h>

#define SLAB_CHUNKS 1024 /* the first only links the slabs */

wheel *wheel_new(void)
{
    return calloc(1, sizeof(wheel));
}

void wheel_free(wheel *w)
{
    if (!w)
        return;
    for (chunk *slab = w->slabs, *next; slab; slab = next) {
        next = slab->next;
        free(slab);
    }
    free(w->far.list);
    free(w->drained);
    free(w);
}

chunk *wheel_grow(wheel *w)
{
    chunk *slab = must_have(aligned_alloc(sizeof *slab, SLAB_CHUNKS * sizeof *slab));
    slab->next = w->slabs;
    w->slabs = slab;
    for (int i = SLAB_CHUNKS - 1; i > 1; i--) {
        slab[i].next = w->spare;
        w->spare = &slab[i];
    }
    return &slab[1];
}

/* The first slot in use at or after `from`, going round once, or WHEEL_SLOTS. */
static uint32_t find_slot(const wheel *w, uint32_t from)
{
    uint32_t word = from / 64;
    uint64_t bits = w->words[word] & (~0ull << (from % 64));
    if (bits)
        return word * 64 + (uint32_t)__builtin_ctzll(bits);
    for (uint32_t n = 0, i = (word + 1) % WHEEL_WORDS; n <= WHEEL_WORDS / 64; n++) {
        uint64_t some = w->summary[i / 64] & (~0ull << (i % 64));
        if (some) {
            i = i / 64 * 64 + (uint32_t)__builtin_ctzll(some);
            return i * 64 + (uint32_t)__builtin_ctzll(w->words[i]);
        }
        i = (i / 64 + 1) * 64 % WHEEL_WORDS;
    }
    return WHEEL_SLOTS;
}

uint64_t wheel_next_time(const wheel *w)
{
    uint32_t from = w->now & (WHEEL_SLOTS - 1);
    uint32_t s = find_slot(w, from);
    uint64_t far = heap_time(&w->far);
    if (s == WHEEL_SLOTS)
        return far;
    uint64_t near = w->now + ((s - from) & (WHEEL_SLOTS - 1));
    return near < far ? near : far;
}

uint32_t wheel_drain(wheel *w, uint64_t time, void ***items)
{
    uint32_t s = time & (WHEEL_SLOTS - 1), count = 0;
    w->now = time;
    while (heap_time(&w->far) < time + WHEEL_SLOTS) {
        uint64_t when = heap_time(&w->far);
        wheel_put(w, when, heap_pop(&w->far).what);
    }
    for (chunk *c = w->slots[s], *next; c; c = next) {
        next = c->next;
        if (count + c->count > w->drained_cap) {
            w->drained_cap = 2 * (count + c->count);
            w->drained = must_grow(w->drained, w->drained_cap, sizeof *w->drained);
        }
        memcpy(w->drained + count, c->items, c->count * sizeof *w->drained);
        count += c->count;
        c->next = w->spare;
        w->spare = c;
    }
    w->slots[s] = NULL;
    w->words[s / 64] &= ~(1ull << (s % 64));
    if (!w->words[s / 64])
        w->summary[s / 4096] &= ~(1ull << (s / 64 % 64));
    *items = w->drained;
    return count;
}
