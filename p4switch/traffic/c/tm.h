/* The traffic manager of a switch: queues, admission, PFC accounting and the transmitters' timing.
 *
 * It has no clock and no events. Its driver (the event loop, or a process on wall time) supplies the time, learns
 * through `wake` which port may have something to send, and calls tm_dequeue when the link is free. Times are in ns,
 * sizes in bytes. Depths count waiting packets: a packet leaves its queue when its transmission starts.
 */
#ifndef P4CC_TM_H
#define P4CC_TM_H

#include <stdbool.h>
#include <stdint.h>

#include "fetch.h"
#include "link.h"
#include "switch.h"

#define TM_PRIORITIES 8
#define TM_QUEUES 128 /* queues of the highest priority, where it has several */
#define TM_MAX_PORT 0xffffu
#define TM_NO_LIMIT UINT64_MAX
#define TM_MAX_DEPTH 0x7ffffu /* enq_qdepth and deq_qdepth are bit<19> */
#define TM_DSCPS 64

/* The scheduler of a port's queues. Priorities that are not equal are strict, the highest first. */
typedef enum tm_arbiter {
    TM_STRICT,
    TM_OLDEST,       /* among equal priorities, the one whose head was enqueued first */
    TM_LEAST_RECENT, /* among equal priorities, the one that has waited longest for a turn */
} tm_arbiter;

/* Limits of a port's queues, and the order in which they are served. */
typedef struct tm_limits {
    uint64_t queue_bytes, port_bytes;
    uint32_t queue_packets, port_packets;
    bool round_robin; /* round robin over ingress ports; false: first in, first out */
} tm_limits;

#define TM_UNLIMITED ((tm_limits){TM_NO_LIMIT, TM_NO_LIMIT, UINT32_MAX, UINT32_MAX, false})

typedef struct tm_fifo {
    p4_packet *head, *tail;
} tm_fifo;

/* The packets of a queue by ingress port, and the ports that have some, in the order of their turn. */
typedef struct tm_rounds {
    uint32_t count, first, last;
    struct tm_turn { tm_fifo fifo; uint32_t next; } *from;
} tm_rounds;

/* The queues of the highest priority, by their numbers, if there are several. Among those that are not stopped, the
 * one with the highest number is served. Limits and thresholds apply to the priority. */
typedef struct tm_lanes {
    uint64_t nonempty[TM_QUEUES / 64], stopped[TM_QUEUES / 64]; /* masks of queues */
    struct tm_lane {
        tm_fifo fifo;
        uint64_t bytes, max_bytes, dropped_packets;
        uint32_t packets, max_packets;
    } of[TM_QUEUES];
} tm_lanes;

/* A token bucket. It has tokens if it will be full at most `depth_ns` from now. */
typedef struct tm_bucket {
    uint64_t full_ns, full_part; /* when it will be full; the part is in 1 / rate ns */
    uint64_t depth_ns;           /* time in which it is filled */
} tm_bucket;

/* The order in which a port serves its queues, where the control plane has set one: priorities, deficit weighted round
 * robin among queues of one priority that have weights, and token buckets. A packet needs a token, and takes as many
 * as its length requires. */
typedef struct tm_scheduler {
    p4_schedule set;
    tm_bucket guaranteed[P4_SCHEDULED], limit[P4_SCHEDULED + 1];
    uint32_t held; /* mask of the limits whose buckets have no tokens */
    uint64_t deficit[P4_SCHEDULED];  /* bytes that a queue may still send in its turn */
    uint8_t turn[2 * TM_PRIORITIES]; /* the queue whose turn it is, for each priority; guaranteed ones come last */
} tm_scheduler;

/* Trimming at a port: if a queue has no room for an arriving packet, that packet or the youngest one of the queue
 * loses its payload and continues in the queue of trimmed packets. */
typedef struct tm_trimming {
    uint8_t priorities; /* mask of priorities whose packets are trimmed */
    uint8_t into;       /* priority of the trimmed ones */
    bool dropping;      /* they are dropped instead */
    bool youngest;      /* a fair coin decides between both packets; else it is the arriving one */
    uint32_t bytes;     /* maximum length of a trimmed packet */
    link_chance coin;
    p4_packet *second[TM_PRIORITIES]; /* the packet in front of each queue's youngest, if there is one */
} tm_trimming;

/* Data that every packet uses are on the first cache line. */
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
    uint64_t served;   /* the port's turn in which it was served last */
} __attribute__((aligned(64))) tm_queue;

/* Bytes of a lossless priority from an ingress port, and the pauses that the peer has requested of that port's
 * transmitter. */
typedef struct tm_class {
    struct tm_class *next_xoff;
    struct tm_port *port;
    uint64_t shared, headroom; /* bytes */
    uint64_t paused_since_ns, paused_until_ns;
    uint64_t paused_ns, longest_ns;
    uint64_t pauses_sent, resumes_sent, refreshes_sent, pauses_received;
    uint64_t ingress_max_bytes, headroom_max_bytes;
} __attribute__((aligned(64))) tm_class;

typedef struct tm_pfc {
    uint64_t xoff_bytes, xon_gap_bytes, headroom_bytes, reaction_ns; /* TM_NO_LIMIT headroom: as the buffer allows */
    double alpha; /* >= 0: dynamic threshold instead of xoff_bytes */
    uint32_t quanta;
    bool refreshing;     /* pauses are to be renewed ... */
    uint64_t refresh_ns; /* ... at this time */
    tm_class classes[TM_PRIORITIES];
} tm_pfc;

typedef struct tm_port {
    link_end link;
    struct tm_switch *tm;      /* NULL: a host's */
    p4_packet *direct;  /* found the port idle, about to be sent */
    tm_trimming *trimming; /* NULL: packets without room are dropped */
    uint8_t nonempty, paused; /* masks of priorities */
    uint8_t stopped;    /* priorities whose packets the program or the scheduler has all stopped */
    uint8_t halted;     /* priorities that the program has stopped, each of which has one queue */
    uint8_t lossless;   /* as an ingress port */
    uint8_t xoff;       /* pauses that its peer should obey ... */
    uint8_t announced;  /* ... and those that were announced to it */
    uint8_t refresh;    /* pauses to be renewed */
    bool scheduled;     /* the driver will call again when the link is free */
    bool serving;       /* inside the driver's loop for this port */
    uint32_t packets, limit_packets;
    uint64_t bytes, limit_bytes;
    uint64_t max_bytes, recent_max_bytes;
    uint32_t max_packets, number;
    uint64_t sent_packets, sent_bytes; /* without PFC frames */
    uint64_t turns;     /* packets that have been dequeued */
    tm_pfc *pfc;
    tm_lanes *lanes;    /* of the highest priority; NULL: it has one queue */
    tm_scheduler *scheduler; /* NULL: strict priorities, or those that the switch's arbiter decides between */
    tm_queue queues[TM_PRIORITIES];
} tm_port;

typedef struct tm_switch {
    tm_port **ports; /* by number; NULL: there is none */
    uint32_t port_count, tick_ns, cell_bytes;
    uint32_t packet_bytes; /* bytes of a pipeline's packet that are prefetched before its turn */
    uint8_t priorities; /* in use */
    uint8_t equal;      /* mask of those that `arbiter` decides between */
    uint8_t arbiter;    /* a tm_arbiter */
    bool managed;    /* true with a buffer limit, a dynamic threshold or PFC */
    bool dynamic_pfc;
    bool coloured;   /* yellow_bytes or red_bytes is a limit */
    bool classified; /* class_of_dscp holds; else a packet's PFC class is the priority of its queue */
    uint8_t class_of_dscp[TM_DSCPS];
    double alpha;    /* < 0: none */
    uint64_t yellow_bytes, red_bytes; /* where `coloured`: of each queue, when a packet of the colour comes */
    uint64_t buffer_bytes, reserved_bytes; /* TM_NO_LIMIT: unlimited; headroom comes out of it */
    uint64_t used_bytes, headroom_used_bytes, max_bytes;
    tm_class *xoff;
    void (*wake)(tm_port *port);
    void (*hold)(tm_port *port, uint64_t until); /* tm_release has to be called then; requests add up */
    /* called when `packet` has entered or left a queue, which now has this many cells; NULL: no caller needs it */
    void (*changed)(tm_port *port, const p4_packet *packet, uint32_t queue, uint32_t cells);
} tm_switch;

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

static inline uint32_t tm_cells(const tm_switch *t, uint64_t bytes, uint32_t packets)
{
    if (!packets)
        return 0;
    uint64_t n = t->cell_bytes ? (bytes + t->cell_bytes - 1) / t->cell_bytes : packets;
    return n < TM_MAX_DEPTH ? (uint32_t)n : TM_MAX_DEPTH;
}

static inline p4_tick tm_ticks(const tm_switch *t, uint64_t now)
{
    return t->tick_ns == 1 ? now : now / t->tick_ns;
}

/* Whether the port has a packet that may be sent now (apart from PFC frames). */
static inline bool tm_ready(const tm_port *p)
{
    return p->direct || (p->nonempty & ~p->paused & ~p->stopped);
}

/* Priorities whose present state must be announced to the peer. */
static inline uint8_t tm_pfc_due(const tm_port *p)
{
    return (p->xoff ^ p->announced) | p->refresh;
}

/* The class in which a frame's sender would obey a pause. 802.1Qbb counts a packet by the class in which it arrived,
 * whatever queue it is put into. */
static inline uint8_t tm_class_of(const tm_switch *t, const p4_frame *frame)
{
    const uint8_t *d = frame->data;
    bool ipv4 = t->classified && frame->data_len > 15 && d[12] == 8 && d[13] == 0;
    return ipv4 ? t->class_of_dscp[d[15] >> 2] : 0;
}

/* Prefetches the frame of a waiting packet, which has itself been prefetched, and the packet behind it. */
FETCH void tm_fetch_behind(const tm_switch *t, const p4_packet *packet)
{
    prefetch_frame(packet->frame);
    if (packet->next)
        prefetch_lines(packet->next, t->packet_bytes);
}

/* Takes the packet. Returns the packets that have to be dropped as a result, which the caller owns: NULL, the packet
 * itself, or waiting packets that were to be trimmed, linked by `next`. */
p4_packet *tm_enqueue(tm_switch *t, tm_port *out, p4_packet *packet, uint64_t now);

/* As tm_enqueue, for a port that may not exist (NULL), or whose link may be down. *reason: why the returned packets are
 * dropped. */
static inline p4_packet *tm_admit(tm_switch *t, tm_port *out, bool up, p4_packet *packet, uint64_t now,
                                  p4_drop_reason *reason)
{
    *reason = out ? up ? P4_DROP_BUFFER : P4_DROP_LINK_DOWN : P4_DROP_NO_PORT;
    if (out && up)
        return tm_enqueue(t, out, packet, now);
    packet->next = NULL;
    return packet;
}

/* Readies a packet for egress without a queue, where its port does not exist. */
static inline void tm_pass(const tm_switch *t, p4_packet *packet, uint64_t now)
{
    packet->enq_time = packet->deq_time = tm_ticks(t, now);
    packet->enq_depth = packet->deq_depth = 0;
    packet->enq_state = packet->deq_state = 0;
}

/* The packet to send next, or NULL. */
p4_packet *tm_dequeue(tm_port *out, uint64_t now);
/* Removes any packet, paused or not, for a link that went down; NULL: empty. */
p4_packet *tm_flush(tm_port *out, uint64_t now);

/* Stops or restarts a queue of the port, below TM_QUEUES. If a priority cannot have several queues, because its
 * packets take turns or are trimmed, this is the queue of the priority. */
void tm_stop_queue(tm_port *port, uint32_t queue, bool stopped);

/* Sets the schedule of a port, or NULL for none, and returns whether the port was woken. Priorities are below
 * TM_PRIORITIES. If the highest priority cannot have several queues, the schedule of its first one applies. */
bool tm_set_schedule(tm_port *port, const p4_schedule *schedule, uint64_t now);
/* Restarts the queues whose token buckets have tokens again. Returns when the next one has; UINT64_MAX: none waits. */
uint64_t tm_release(tm_port *port, uint64_t now);

/* Packets for which there was no room, and cells of the waiting ones. */
typedef struct tm_counts {
    uint64_t dropped_packets, waiting_cells, most_cells;
} tm_counts;

tm_counts tm_count_port(const tm_port *port);
tm_counts tm_count_queue(const tm_port *port, uint32_t queue);

void tm_port_init(tm_port *port, tm_switch *t, uint32_t number);
int tm_add_port(tm_switch *t, tm_port *port);  /* -1: no memory */
int tm_set_round_robin(tm_port *port, bool on); /* empty queues only; -1: no memory */
int tm_set_limits(tm_port *port, const tm_limits *limits); /* the order of empty queues only; -1: no memory */
int tm_set_trimming(tm_port *port, const tm_trimming *trimming); /* empty queues, first in, first out; -1: no memory */
void tm_port_destroy(tm_port *port);    /* empty queues only */

/* PFC of a port: the peer's request for a priority of its transmitter. */
int tm_pfc_alloc(tm_port *port);        /* -1: no memory */
void tm_pause(tm_port *port, uint32_t priority, uint64_t now, uint64_t until);
void tm_resume(tm_port *port, uint32_t priority, uint64_t now);
uint64_t tm_xoff_threshold(const tm_switch *t, const tm_pfc *pfc, uint64_t shared_used);
bool tm_below_xon(const tm_switch *t, const tm_pfc *pfc, uint64_t shared, uint64_t headroom, uint64_t shared_used);

#endif
