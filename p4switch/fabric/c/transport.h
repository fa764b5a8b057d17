/* How the workers of one run reach each other: all at once, whenever all of them have come to the same point.
 *
 * What is below the interface is shared memory here; another one, between machines, has to do no more than this.
 */
#ifndef P4CC_TRANSPORT_H
#define P4CC_TRANSPORT_H

#include <stdint.h>

#include "record.h"

#define TRANSPORT_NOTICE_BYTES 128 /* at most */

typedef struct transport transport;

/* What came from a worker. */
typedef struct arrived {
    const char *data;
    uint64_t len;
} arrived;

struct transport {
    uint32_t rank, count;
    /* Waits for all. Every worker gets everyone's notice (`size` bytes each, by rank), and in in[i] what worker i had in
     * its out[rank], which is there until the next exchange; out is empty afterwards, and may be lent memory then that the
     * others see. -1: it is not to wait any longer, the owner knows why. */
    int (*exchange)(transport *t, const void *notice, uint32_t size, void *notices, buffer *out, arrived *in);
    void (*close)(transport *t);
};

/* Memory that all workers have mapped, zeros in the beginning; `bytes` of it, at least shared_memory_bytes(count).
 * `pause` is called again and again while the others are waited for: it sleeps until *word is no longer `value`, or for a
 * while; -1: do not wait any longer. NULL: no memory. */
transport *shared_memory_open(void *memory, uint64_t bytes, uint32_t rank, uint32_t count, uint32_t spins,
                              int (*pause)(void *owner, const uint32_t *word, uint32_t value), void *owner);
uint64_t shared_memory_bytes(uint32_t count);
/* What `pause` may sleep with: until *word is no longer `value` or someone wakes it, but at most so long. */
void shared_memory_sleep(const uint32_t *word, uint32_t value, uint32_t ms);

#endif
