/* The traffic manager of a switch: queues, admission, PFC accounting and the transmitters' timing.
 *
 * It has no clock and no events: whoever drives it (the event loop, a process on wall time) says what time it is, is
 * told through `wake` which port may have something to send, and asks tm_dequeue for it when the link is free.
 * Times are ns, sizes bytes. Depths are of what waits: a packet leaves its queue when its transmission starts.
 */
#ifndef P4CC_TM_H
#define P4CC_TM_H

#include <stdbool.h>
#include <stdint.h>

#include "switch.h"

#define TM_PRIORITIES 8
#define TM_MAX_PORT 0xffffu
#define TM_NO_LIMIT UINT64_MAX
#define TM_LENGTHS 16384 /* frame lengths below this have their duration tabled */
#define TM_MAX_DEPTH 0x7ffffu /* enq_qdepth and deq_qdepth are bit<19> */

/* How long frames take at a rate: ns + part / rate_bps, exactly. Shared by all links of that rate. */
typedef struct tm_rate {
    struct tm_rate *next;
    uint64_t rate_bps;
    uint32_t framing_bytes;
    struct tm_duration { uint64_t ns, part; } table[TM_LENGTHS];
} tm_rate;

/* A transmitter. The end of its last frame is end_ns + end_part / rate_bps: no rounding adds up over back-to-back frames. */
typedef struct tm_link {
    uint64_t end_ns, end_part;
    tm_rate *rate;
    uint64_t busy_ns;
} tm_link;

typedef struct tm_fifo {
    p4_packet *head, *tail;
} tm_fifo;

/* The packets of a queue by ingress port, and the ports that have some, in the order of their turn. */
typedef struct tm_rounds {
    uint32_t count, first, last;
    struct tm_turn { tm_fifo fifo; uint32_t next; } *from;
} tm_rounds;

/* What every packet touches is on the first cache line. */
typedef struct tm_queue {
    tm_fifo fifo;
    uint64_t bytes, since_ns;
    uint32_t packets, limit_packets;
    uint64_t limit_bytes;
    uint64_t enqueued_packets, enqueued_bytes;
    uint64_t dropped_packets, dropped_bytes;
    uint64_t byte_ns; /* integral of bytes up to since_ns */
    uint64_t max_bytes, recent_max_bytes;
    uint32_t max_packets;
    tm_rounds *rounds; /* NULL: plain FIFO */
} __attribute__((aligned(64))) tm_queue;

/* What an ingress port holds of a lossless priority, and what that port's transmitter was told of it by its peer. */
typedef struct tm_class {
    struct tm_class *next_xoff;
    struct tm_port *port;
    uint64_t shared, headroom; /* bytes */
    uint64_t paused_since_ns, paused_until_ns;
    uint64_t paused_ns, longest_ns;
    uint64_t pauses_sent, resumes_sent, refreshes_sent, pauses_received;
    uint64_t ingress_max_bytes, headroom_max_bytes;
} tm_class;

typedef struct tm_pfc {
    uint64_t xoff_bytes, xon_gap_bytes, headroom_bytes, reaction_ns; /* TM_NO_LIMIT headroom: as the buffer allows */
    double alpha; /* >= 0: dynamic threshold instead of xoff_bytes */
    uint32_t quanta;
    tm_class classes[TM_PRIORITIES];
} tm_pfc;

typedef struct tm_port {
    tm_link link;
    struct tm_switch *tm;      /* NULL: a host's */
    p4_packet *direct;  /* found the port idle, about to be sent */
    uint8_t nonempty, paused; /* masks of priorities */
    uint8_t lossless;   /* as an ingress port */
    uint8_t xoff;       /* what its peer should be told ... */
    uint8_t announced;  /* ... and what it was told */
    uint8_t refresh;    /* to be told again */
    bool scheduled;     /* the driver will come back when the link is free */
    bool serving;       /* inside the driver's loop for this port */
    uint32_t packets, limit_packets;
    uint64_t bytes, limit_bytes;
    uint64_t max_bytes, recent_max_bytes;
    uint32_t max_packets, number;
    uint64_t sent_packets, sent_bytes; /* PFC frames apart */
    tm_pfc *pfc;
    tm_queue queues[TM_PRIORITIES];
} tm_port;

typedef struct tm_switch {
    tm_port **ports; /* by number; NULL: there is none */
    uint32_t port_count, tick_ns, cell_bytes;
    uint8_t priorities; /* in use */
    bool managed;    /* there is a buffer limit, a dynamic threshold or PFC */
    bool dynamic_pfc;
    double alpha;    /* < 0: none */
    uint64_t buffer_bytes, reserved_bytes; /* TM_NO_LIMIT: unlimited; headroom comes out of it */
    uint64_t used_bytes, headroom_used_bytes, max_bytes;
    tm_class *xoff;
    void (*wake)(tm_port *port);
} tm_switch;

uint64_t tm_duration_fill(tm_rate *rate, uint32_t len, uint64_t *part);

/* When the transmitter is free again, rounded up. */
static inline uint64_t tm_link_free(const tm_link *l)
{
    return l->end_ns + (l->end_part != 0);
}

/* Sends a frame; returns when its last bit is out, rounded up. `contiguous`: it waited for the one before. */
static inline uint64_t tm_link_send(tm_link *l, uint64_t now, bool contiguous, uint32_t len)
{
    tm_rate *rate = l->rate;
    uint64_t start = now, part = 0, duration, rest;
    if (contiguous) {
        start = l->end_ns;
        part = l->end_part;
    }
    if (__builtin_expect(len < TM_LENGTHS && rate->table[len].ns, 1)) {
        duration = rate->table[len].ns;
        rest = rate->table[len].part;
    } else {
        duration = tm_duration_fill(rate, len, &rest);
    }
    part += rest;
    uint64_t end = start + duration;
    if (part >= rate->rate_bps) {
        part -= rate->rate_bps;
        end++;
    }
    l->busy_ns += end - start;
    l->end_ns = end;
    l->end_part = part;
    return end + (part != 0);
}

static inline uint32_t tm_priority(const p4_packet *p)
{
    return p->priority < TM_PRIORITIES ? p->priority : TM_PRIORITIES - 1;
}

static inline tm_port *tm_find(const tm_switch *t, uint32_t number)
{
    return number < t->port_count ? t->ports[number] : NULL;
}

static inline uint64_t tm_shared_used(const tm_switch *t)
{
    return t->used_bytes - t->headroom_used_bytes;
}

static inline uint64_t tm_shared_free(const tm_switch *t)
{
    uint64_t total = t->buffer_bytes == TM_NO_LIMIT ? TM_NO_LIMIT : t->buffer_bytes - t->reserved_bytes;
    uint64_t used = tm_shared_used(t);
    return total > used ? total - used : 0;
}

static inline uint32_t tm_depth(const tm_switch *t, const tm_queue *q)
{
    if (!q->packets)
        return 0;
    uint64_t n = t->cell_bytes ? (q->bytes + t->cell_bytes - 1) / t->cell_bytes : q->packets;
    return n < TM_MAX_DEPTH ? (uint32_t)n : TM_MAX_DEPTH;
}

static inline p4_tick tm_ticks(const tm_switch *t, uint64_t now)
{
    return t->tick_ns == 1 ? now : now / t->tick_ns;
}

/* Whether the port has something that may be sent now (PFC frames apart). */
static inline bool tm_ready(const tm_port *p)
{
    return p->direct || (p->nonempty & ~p->paused);
}

/* What must be told to the peer: priorities to announce as they are now. */
static inline uint8_t tm_pfc_due(const tm_port *p)
{
    return (p->xoff ^ p->announced) | p->refresh;
}

/* Takes the packet if there is room; else false, and it stays the caller's. */
bool tm_enqueue(tm_switch *t, tm_port *out, p4_packet *packet, uint64_t now);
/* The packet whose turn it is, or NULL. */
p4_packet *tm_dequeue(tm_port *out, uint64_t now);
/* Takes any packet out, paused or not, for a link that went down; NULL: empty. */
p4_packet *tm_flush(tm_port *out, uint64_t now);

void tm_port_init(tm_port *port, tm_switch *t, uint32_t number);
int tm_add_port(tm_switch *t, tm_port *port);  /* -1: no memory */
int tm_set_round_robin(tm_port *port, bool on); /* empty queues only; -1: no memory */
void tm_port_destroy(tm_port *port);    /* empty queues only */

/* PFC of a port: the peer's word about a priority of its transmitter. */
int tm_pfc_alloc(tm_port *port);        /* -1: no memory */
bool tm_pause(tm_port *port, uint32_t priority, uint64_t now, uint64_t until); /* true: it was not paused */
void tm_resume(tm_port *port, uint32_t priority, uint64_t now);
uint64_t tm_xoff_threshold(const tm_switch *t, const tm_pfc *pfc, uint64_t shared_used);
bool tm_below_xon(const tm_switch *t, const tm_pfc *pfc, uint64_t shared, uint64_t headroom, uint64_t shared_used);

#endif
