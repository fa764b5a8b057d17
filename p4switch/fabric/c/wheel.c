#include "wheel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLAB_CHUNKS 1024 /* the first only links the slabs */

static void out_of_memory(void)
{
    fputs("p4cc: out of memory\n", stderr);
    abort();
}

wheel *wheel_new(void)
{
    wheel *w = calloc(1, sizeof *w);
    if (w)
        w->heap_time = TIME_NEVER;
    return w;
}

void wheel_free(wheel *w)
{
    if (!w)
        return;
    for (chunk *slab = w->slabs, *next; slab; slab = next) {
        next = slab->next;
        free(slab);
    }
    free(w->heap);
    free(w);
}

chunk *wheel_grow(wheel *w)
{
    chunk *slab = aligned_alloc(sizeof *slab, SLAB_CHUNKS * sizeof *slab);
    if (!slab)
        out_of_memory();
    slab->next = w->slabs;
    w->slabs = slab;
    for (int i = SLAB_CHUNKS - 1; i > 1; i--) {
        slab[i].next = w->spare;
        w->spare = &slab[i];
    }
    return &slab[1];
}

static bool before(const heap_entry *a, const heap_entry *b)
{
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

void wheel_push_far(wheel *w, uint64_t time, event what)
{
    if (w->heap_len == w->heap_cap) {
        w->heap_cap = w->heap_cap ? 2 * w->heap_cap : 256;
        w->heap = realloc(w->heap, w->heap_cap * sizeof *w->heap);
        if (!w->heap)
            out_of_memory();
    }
    heap_entry e = {time, w->order++, what};
    uint64_t i = w->heap_len++;
    for (; i && before(&e, &w->heap[(i - 1) / 4]); i = (i - 1) / 4)
        w->heap[i] = w->heap[(i - 1) / 4];
    w->heap[i] = e;
    w->heap_time = w->heap[0].time;
}

static event heap_pop(wheel *w)
{
    event first = w->heap[0].what;
    heap_entry last = w->heap[--w->heap_len];
    uint64_t n = w->heap_len, i = 0;
    for (;;) {
        uint64_t child = 4 * i + 1, best = child;
        if (child >= n)
            break;
        for (uint64_t c = child + 1; c < child + 4 && c < n; c++)
            if (before(&w->heap[c], &w->heap[best]))
                best = c;
        if (!before(&w->heap[best], &last))
            break;
        w->heap[i] = w->heap[best];
        i = best;
    }
    if (n)
        w->heap[i] = last;
    w->heap_time = n ? w->heap[0].time : TIME_NEVER;
    return first;
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
    if (s == WHEEL_SLOTS)
        return w->heap_time; /* the heap holds nothing that is nearer than what the wheel could */
    return w->now + ((s - from) & (WHEEL_SLOTS - 1));
}

void wheel_open(wheel *w, uint64_t time)
{
    w->now = time;
    while (w->heap_time < time + WHEEL_SLOTS) {
        uint64_t when = w->heap_time;
        wheel_append(w, when, heap_pop(w));
    }
    w->at = w->slots[time & (WHEEL_SLOTS - 1)].head;
    w->index = 0;
    w->slot_open = true;
}

void wheel_close(wheel *w)
{
    uint32_t s = w->now & (WHEEL_SLOTS - 1);
    if (w->slots[s].head) {
        w->slots[s].tail->next = w->spare;
        w->spare = w->slots[s].head;
        w->slots[s].head = w->slots[s].tail = NULL;
        w->words[s / 64] &= ~(1ull << (s % 64));
        if (!w->words[s / 64])
            w->summary[s / 4096] &= ~(1ull << (s / 64 % 64));
    }
    w->at = NULL;
    w->slot_open = false;
}

void wheel_visit(wheel *w, void (*visit)(void *ctx, event *what), void *ctx)
{
    for (uint32_t s = 0; s < WHEEL_SLOTS; s++) {
        bool open = w->slot_open && s == (w->now & (WHEEL_SLOTS - 1));
        chunk *c = open ? w->at : w->slots[s].head;
        uint32_t i = open ? w->index : 0;
        for (; c; c = c->next, i = 0)
            for (; i < c->count; i++)
                visit(ctx, &c->events[i]);
    }
    for (uint64_t i = 0; i < w->heap_len; i++)
        visit(ctx, &w->heap[i].what);
}
