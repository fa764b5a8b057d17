/* Memory for code deep inside a run that cannot fail: if there is none, the program ends with a message. The control
 * plane does not use this; it refuses requests for which there is no memory (P4_MEMORY).
 */
#ifndef P4CC_ALLOCATE_H
#define P4CC_ALLOCATE_H

#include <stdio.h>
#include <stdlib.h>

/* Returns the memory unless it is NULL. */
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

/* Room for `count` objects of `bytes` each. */
static inline void *must_grow(void *memory, size_t count, size_t bytes)
{
    return must_have(realloc(memory, count * bytes));
}

#endif
