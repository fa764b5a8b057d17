/* The environment of packet tests: frames from malloc, one FIFO without rates, no limits. */
#ifndef P4CC_PROCESS_H
#define P4CC_PROCESS_H

#include "switch.h"

typedef struct p4_fifo p4_fifo;

typedef struct p4_digest {
    struct p4_digest *next;
    uint32_t list_id;
    size_t len;
    uint8_t data[];
} p4_digest;

typedef struct p4_said {
    struct p4_said *next;
    int failed; /* an assert, else a log_msg */
    char text[];
} p4_said;

typedef struct p4_traced {
    struct p4_traced *next;
    p4_trace_event event; /* its data follows */
    uint8_t data[];
} p4_traced;

p4_fifo *p4_fifo_new(p4_switch *sw);
void p4_fifo_delete(p4_fifo *fifo); /* with all its contents */
const p4_env *p4_fifo_env(p4_fifo *fifo);

/* Whether events of packets are kept, in a pipeline built for tracing. */
void p4_fifo_set_tracing(p4_fifo *fifo, int on);

/* The queue depth in cells that every packet sees on arrival and departure; negative: the depth of this FIFO. */
void p4_fifo_set_depth(p4_fifo *fifo, int64_t depth);

/* Hands a frame to the switch as if it had arrived on `port`; -1: out of memory. */
int p4_fifo_inject(p4_fifo *fifo, uint32_t port, const uint8_t *data, uint32_t data_len, uint32_t wire_len, p4_tick now);

/* The next frame that leaves, and its port; NULL: there are no more. The caller frees it with free(). */
p4_frame *p4_fifo_next(p4_fifo *fifo, uint32_t *port, p4_tick now);

/* Packets lost because the queue was full; the counts of the switch do not include them. */
uint64_t p4_fifo_lost(const p4_fifo *fifo);

/* Drops the packets that are still queued. */
void p4_fifo_clear(p4_fifo *fifo);

void p4_fifo_learn(p4_fifo *fifo, uint32_t list_id, const uint8_t *data, size_t len);
/* Takes the digests seen so far, oldest first; freed one by one with free(). */
p4_digest *p4_fifo_digests(p4_fifo *fifo);
/* The number of digests that were discarded because too many were kept. */
uint64_t p4_fifo_lost_digests(const p4_fifo *fifo);

/* Takes the messages of the program so far, in the same way; *lost: the number of discarded messages. */
p4_said *p4_fifo_said(p4_fifo *fifo, uint64_t *lost);

/* Takes the trace in the same way. */
p4_traced *p4_fifo_traced(p4_fifo *fifo, uint64_t *lost);

#endif
