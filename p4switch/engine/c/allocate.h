/* Memory for what is too deep inside a run to be given up: without it the program ends, and says why. The control plane
 * does not use this: it refuses what there is no memory for (P4_MEMORY).
 */
#ifndef P4CC_ALLOCATE_H
#define P4CC_ALLOCATE_H

#include <stdio.h>
#include <stdlib.h>

/* The memory if there was some. */
static inline void *must_have(void *memory)
{
    if (__builtin_expect(!memory, 0)) {
        fputs("p4cc: out of memory\n", stderr);
        abort();
    }
    return memory;
}

static inline void *must_alloc(size_t bytes)
{
    return must_have(malloc(bytes));
}

/* Room for `count` things of `bytes` each. */
static inline void *must_grow(void *memory, size_t count, size_t bytes)
{
    return must_have(realloc(memory, count * bytes));
}

#endif
