#include "arrivals.h"

#include "allocate.h"

#define FEW 24      /* up to this size, insertion sort alone is faster */
#define BUCKETS 128 /* powers of two; about one item per bucket is best */

void arrivals_grow(arrivals *a)
{
    uint32_t cap = a->cap ? 2 * a->cap : 256;
    a->list = must_grow(a->list, cap, sizeof *a->list);
    a->spare = must_grow(a->spare, cap, sizeof *a->spare);
    a->cap = cap;
}

void arrivals_free(arrivals *a)
{
    free(a->list);
    free(a->spare);
}

static void insertion_sort(arrival *list, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        if (list[i - 1].time <= list[i].time)
            continue;
        arrival item = list[i];
        uint32_t j = i;
        for (; j && list[j - 1].time > item.time; j--)
            list[j] = list[j - 1];
        list[j] = item;
    }
}

/* Sorts into buckets of equal span in order of time; the rest of the sorting is within each bucket. */
static void spread(arrivals *a, uint64_t base, int shift)
{
    uint32_t place[BUCKETS + 1] = {0};
    for (uint32_t i = 0; i < a->count; i++)
        place[((a->list[i].time - base) >> shift) + 1]++;
    for (uint32_t v = 1; v < BUCKETS; v++)
        place[v] += place[v - 1];
    for (uint32_t i = 0; i < a->count; i++)
        a->spare[place[(a->list[i].time - base) >> shift]++] = a->list[i];
    arrival *spread = a->spare;
    a->spare = a->list;
    a->list = spread;
}

void arrivals_sort(arrivals *a)
{
    if (a->count > FEW) {
        uint64_t base = a->list[0].time, top = base;
        for (uint32_t i = 1; i < a->count; i++) {
            uint64_t time = a->list[i].time;
            base = time < base ? time : base;
            top = time > top ? time : top;
        }
        int shift = 0;
        while ((top - base) >> shift >= BUCKETS)
            shift++;
        spread(a, base, shift);
    }
    insertion_sort(a->list, a->count);
}
