/* Latency of a load that depends on the previous one: one cycle through all cache lines of a block of memory. Prints
 * ns. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define LINE 64
#define LOADS 2000000

typedef struct line {
    struct line *next;
    char rest[LINE - sizeof(void *)];
} line;

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 64) << 20, count = bytes / LINE;
    line *lines = aligned_alloc((size_t)2 << 20, bytes < (2u << 20) ? 2u << 20 : bytes);
    size_t *order = malloc(count * sizeof *order);
    if (!lines || !order)
        return 1;
#ifdef MADV_HUGEPAGE
    madvise(lines, bytes, MADV_HUGEPAGE);
#endif
    uint64_t state = 1;
    for (size_t i = 0; i < count; i++) { /* a random order, each line once */
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t j = (state >> 33) % (i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (size_t i = 0; i < count; i++)
        lines[order[i]].next = &lines[order[(i + 1) % count]];
    line *at = lines;
    for (int i = 0; i < LOADS / 4; i++)
        at = at->next;
    double begin = cpu_ns();
    for (int i = 0; i < LOADS; i++)
        at = at->next;
    printf("%.1f\n", (cpu_ns() - begin) / LOADS + (at == NULL));
    return 0;
}
