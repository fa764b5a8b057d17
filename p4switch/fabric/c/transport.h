/* Transport between the workers of one run: all exchange at once, whenever all of them have reached the same point.
 *
 * The implementation here is shared memory; a transport between machines has to implement the same interface.
 */
#ifndef P4CC_TRANSPORT_H
#define P4CC_TRANSPORT_H

#include <stdint.h>

#include "record.h"

#define TRANSPORT_NOTICE_BYTES 128 /* maximum number of workers */

typedef struct transport transport;

/* Data received from a worker. */
typedef struct arrived {
    const char *data;
    uint64_t len;
} arrived;

struct transport {
    uint32_t rank, count;
    /* Waits for all workers. Every worker gets all notices (`size` bytes each, by rank), and in in[i] the data that
     * worker i had in its out[rank], which is valid until the next exchange; out is empty afterwards, and may borrow
     * memory that the others see. -1: the wait is given up, and the owner knows why. */
    int (*exchange)(transport *t, const void *notice, uint32_t size, void *notices, buffer *out, arrived *in);
    void (*close)(transport *t);
};

/* Memory that all workers have mapped, with zeros at the start; `bytes` of it, at least shared_memory_bytes(count).
 * `pause` is called repeatedly during the wait for others: it sleeps until *word is no longer `value`, or for a
 * while; it returns -1 to end the wait. NULL: no memory. */
transport *shared_memory_open(void *memory, uint64_t bytes, uint32_t rank, uint32_t count, uint32_t spins,
                              int (*pause)(void *owner, const uint32_t *word, uint32_t value), void *owner);
uint64_t shared_memory_bytes(uint32_t count);
/* A function with which `pause` may sleep: until *word is no longer `value` or another process wakes it, but at most
 * for this time. */
void shared_memory_sleep(const uint32_t *word, uint32_t value, uint32_t ms);

#endif
