/* Several workers that go through one network together, each with all of it in its memory, and with some of its nodes to
 * run. They go through the same windows that one worker would go through: after each they tell each other what they would
 * have looked at (when something happens next, who wants to stop), and hand over the frames that leave for others' nodes.
 * So what happens is what happens with one worker, to the order of all events of a node, and to where the run ends.
 *
 * A frame is put on the wire of its link where its receiver is; on the other side it never was on it. What is counted at a
 * port or for a flow, and the ledger, are therefore right when all workers' are added up.
 *
 * Hosts that are not independent are all at one worker. It decides which callbacks there are, and where windows end.
 */
#ifndef P4CC_EXCHANGE_H
#define P4CC_EXCHANGE_H

#include "net.h"
#include "transport.h"

/* What each worker says at each meeting; joined, what is known of all. */
typedef struct notice {
    uint64_t next[2];    /* when something happens next, by side */
    uint64_t call;       /* the first callback that ends a window ... */
    uint64_t window_end, last, events;
    uint64_t known;      /* what hosts report before is known to all, in a window of which hosts are held */
    int64_t paused;
    bool own_call;       /* ... and whether it is this worker's alone */
    bool stop, deadlock, pfc_used, late, held;
} notice;

/* What is exchanged beside frames. */
typedef enum word_kind {
    WORD_FRAME,
    WORD_FLOW,     /* before the first frame of it: its number at the sender, and what it is */
    WORD_TOLD,     /* by the owner, to all; handed to net_ops.told */
    WORD_GATHERED, /* by the owner, who takes it out */
    WORD_SUSPECT,  /* three of watch.c */
    WORD_HELD,
    WORD_HOLDER,
} word_kind;

typedef struct word {
    uint32_t kind, bytes; /* of what follows, padded to a multiple of 8 */
} word;

/* By the number of a flow; 0: nothing yet. */
typedef struct flow_numbers {
    uint32_t *list, count;
} flow_numbers;

typedef struct workers {
    transport *way;
    uint32_t rank, count;
    uint32_t *owner; /* by node */
    buffer *out; /* by rank */
    arrived *in;
    buffer *told, *gathered, *watched; /* by rank: words that have come in */
    flow_numbers *said, *known; /* by rank: whether it was told of a flow; what number one of its flows has here */
    notice *notices;
    notice all;
    uint64_t sent[2]; /* the first arrival of what is on its way to others, by side */
    uint64_t events;  /* of all, at the last meeting */
    uint32_t paused, meetings;
} workers;

/* Before anything happened. NULL: no memory; it is net_free's afterwards, with the transport. `owner` is copied. */
workers *workers_join(net *n, transport *way, const uint32_t *owner);
void workers_free(workers *w);
void workers_own_port(net *n, net_port *port);

/* All are at the same point: what is out is handed over, `all` is renewed. -1: not to be waited for, or the owner's error. */
int workers_meet(net *n);
void workers_send(net *n, net_port *port, p4_frame *frame, uint64_t time, bool pfc);
/* To a worker, or to all others. */
void workers_say(workers *w, uint32_t to, word_kind kind, const void *data, uint64_t bytes);
void workers_say_others(workers *w, word_kind kind, const void *data, uint64_t bytes);

/* Of a traced packet's hop at a node: what sorts those of one instant as one worker would have them. Of what happens
 * between two meetings, losses on others' wires come first. */
static inline uint64_t workers_order(const workers *w, const node *at, uint64_t count)
{
    return (uint64_t)w->meetings << 36 | (uint64_t)!at->away << 35 | (count & ((UINT64_C(1) << 35) - 1));
}

static inline arrived workers_all_of(const buffer *b)
{
    return (arrived){b->data, b->len};
}

/* The next word from *at on; NULL: no more. Data follows it. */
static inline const word *workers_next_word(arrived of, uint64_t *at)
{
    if (*at >= of.len)
        return NULL;
    const word *w = (const word *)(const void *)(of.data + *at);
    *at += sizeof *w + (w->bytes + 7u) / 8 * 8;
    return w;
}

#endif
