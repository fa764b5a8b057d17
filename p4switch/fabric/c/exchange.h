/* Several workers that simulate one network together. Each has the whole network in its memory and runs some of the
 * nodes. They go through the same windows as a single worker. After each window they exchange the information that a
 * single worker would have read (the time of the next event, requests to stop), and the frames for other workers'
 * nodes. So the events are those of a single worker, including the order of all events of a node and the end of the
 * run.
 *
 * A frame is put on the wire of its link at the worker of its receiver, and never at the worker of its sender. So the
 * counts of ports and flows and the ledger are correct when those of all workers are added up.
 *
 * Hosts that are not independent all belong to one worker. It determines the callbacks and the ends of windows.
 */
#ifndef P4CC_EXCHANGE_H
#define P4CC_EXCHANGE_H

#include "net.h"
#include "transport.h"

/* The notice of a worker at a meeting; the combination of all notices is known to all. */
typedef struct notice {
    uint64_t next[2];    /* time of the next event, by side */
    uint64_t call;       /* the first callback that ends a window ... */
    uint64_t window_end, last, events;
    uint64_t known; /* time before which nothing starts at this worker that the others do not know */
    uint64_t careful; /* windows are one instant long from the latest of these times on */
    int64_t paused;
    bool own_call;       /* ... and whether only this worker has it */
    bool stop, deadlock, pfc_used, late, waiting, settled, on_brink, finished;
} notice;

/* Kinds of messages besides frames. */
typedef enum word_kind {
    WORD_FRAME,
    WORD_FLOW,     /* before a flow's first frame: its number at the sender, and its key */
    WORD_BROADCAST, /* from the owner to all; passed to net_ops.deliver */
    WORD_GATHERED, /* from the owner, who removes it */
    WORD_SUSPECT,  /* three kinds of watch.c */
    WORD_HELD,
    WORD_HOLDER,
} word_kind;

typedef struct word {
    uint32_t kind, bytes; /* size of the data that follows, padded to a multiple of 8 */
} word;

/* Table by the number of a flow; 0: no entry yet. */
typedef struct flow_numbers {
    uint32_t *list, count;
} flow_numbers;

typedef struct workers {
    transport *way;
    uint32_t rank, count;
    uint32_t *owner; /* by node */
    buffer *out; /* by rank */
    arrived *in;
    buffer *broadcast, *gathered, *watched; /* by rank: received words */
    flow_numbers *said, *known; /* by rank: flows announced to it; numbers of its flows at this worker */
    notice *notices;
    notice all;
    uint64_t sent[2]; /* first arrival among the frames on their way to others, by side */
    uint64_t events;  /* combined notice of the last meeting */
    uint32_t paused, meetings;
} workers;

/* Called before any event. NULL: no memory; afterwards net_free frees it, including the transport. `owner` is
 * copied. */
workers *workers_join(net *n, transport *way, const uint32_t *owner);
void workers_free(workers *w);
void workers_own_port(net *n, net_port *port);

/* A meeting of all workers: outgoing messages are delivered and `all` is renewed. -1: the wait was given up, or an
 * error of the owner. */
int workers_meet(net *n);
void workers_send(net *n, net_port *port, p4_frame *frame, uint64_t time, bool pfc);
/* Sends a message to a worker, or to all others. */
void workers_say(workers *w, uint32_t to, word_kind kind, const void *data, uint64_t bytes);
void workers_say_others(workers *w, word_kind kind, const void *data, uint64_t bytes);

/* The rank of a traced packet's hop at a node, which sorts the hops of one instant as a single worker would. Among
 * the events between two meetings, losses on others' wires come first. */
static inline uint64_t workers_order(const workers *w, const node *at, uint64_t count)
{
    return (uint64_t)w->meetings << 36 | (uint64_t)!at->away << 35 | (count & ((UINT64_C(1) << 35) - 1));
}

static inline arrived workers_all_of(const buffer *b)
{
    return (arrived){b->data, b->len};
}

/* The next message from *at on, followed by its data; NULL: no more. */
static inline const word *workers_next_word(arrived of, uint64_t *at)
{
    if (*at >= of.len)
        return NULL;
    const word *w = (const word *)(const void *)(of.data + *at);
    *at += sizeof *w + (w->bytes + 7u) / 8 * 8;
    return w;
}

#endif
