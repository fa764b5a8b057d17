/* The seam between a P4 pipeline and its environment (traffic manager, fabric, packet tests).
 *
 * A frame is on a wire; a packet is inside a switch, between ingress and egress. Ownership: the receiver of a pointer
 * frees it or hands it on. Only one thread may run at a time, because switches of one program share a pool of packets.
 */
#ifndef P4CC_SWITCH_H
#define P4CC_SWITCH_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t p4_tick; /* model time in ticks: ns in the virtual world, us for compatibility with BMv2 */

typedef struct p4_frame {
    struct p4_frame *next; /* for the owner of the frame */
    uint32_t wire_len;     /* bytes on the wire, without preamble, gap and FCS */
    uint32_t data_len;     /* bytes present; the wire_len - data_len bytes after them are zeros */
    uint32_t cap;          /* capacity of data in bytes */
    uint32_t tag;          /* the sender's flow, for traces and accounting; 0: none. Copies keep it */
    uint8_t data[];
} p4_frame;

typedef struct p4_packet {
    struct p4_packet *next;
    p4_frame *frame;       /* port of arrival, and port of departure */
    /* bytes that the packet would have on the wire if it left now; a queue is charged for these */
    uint32_t len;
    uint32_t tag;
    uint32_t ingress_port;
    uint32_t egress_port;
    uint32_t priority;     /* the queue of the port in which it waits: 0 is the lowest */
    uint32_t enq_depth;    /* cells of the queue when this packet arrived; depths and times are the traffic manager's */
    uint32_t deq_depth;    /* cells in the queue when this packet left */
    uint8_t pfc_class;     /* 802.1Qbb priority of the frame that it arrived in; used by the driver */
    uint8_t queue;         /* order among packets of the highest priority: 0 (as 7) or 7 to 127, the higher first */
    uint8_t came_marked : 1; /* that frame had ECN CE; used by the driver */
    uint8_t trimmed : 1;   /* the traffic manager has trimmed it to len bytes */
    uint8_t color : 2;     /* 0 is green, 1 yellow, 3 red */
    /* state of the queue: below the colours' thresholds (0), above red's (1), also above yellow's (2) */
    uint8_t enq_state : 2;
    uint8_t deq_state : 2;
    p4_tick enq_time;
    p4_tick deq_time;
    /* the pipeline's own state follows */
} p4_packet;

typedef enum p4_drop_reason {
    P4_DROP_PROGRAM_INGRESS, /* ingress dropped it, or assigned no egress port */
    P4_DROP_PROGRAM_EGRESS,
    P4_DROP_BUFFER,          /* the traffic manager had no room */
    P4_DROP_NO_PORT,         /* sent to a port, group or session that does not exist */
    P4_DROP_LINK_DOWN,
    P4_DROP_LINK_LOSS,       /* lost at random on a link */
    P4_DROP_HOPS,            /* its frame was resubmitted, recirculated and cloned too often (over P4_MAX_HOPS times) */
    P4_DROP_ENDLESS,         /* a loop of a control or an action did not end (in P4_MAX_STEPS steps) */
    P4_DROP_REASONS
} p4_drop_reason;

#define P4_MAX_HOPS 1024 /* per frame: for all packets together that derive from it */
#define P4_MAX_STEPS 100000 /* per packet */

/* Events of a packet inside a pipeline, reported only by pipelines built for tracing. A point is a place of the
 * program, identified by its number in p4switch.engine.points, which also defines how data is read. */
typedef enum p4_trace_kind {
    P4_TRACE_RECEIVE,      /* value: port, extra: wire length, data: the frame as far as it is present */
    P4_TRACE_STATE,        /* point: parser state */
    P4_TRACE_EXTRACT,      /* value: slot of the header, extra: bytes of its varbit field, data: as in memory */
    P4_TRACE_TRANSITION,   /* value: number of words of data that the select key has */
    P4_TRACE_PARSER_ERROR, /* value: error code */
    P4_TRACE_CHECKSUM,     /* value: whether it is right */
    P4_TRACE_PIPELINE,     /* value: 0 ingress, 1 egress; extra: 1 at its end */
    P4_TRACE_TABLE,        /* value: handle or -1, extra: priority or prefix, data: see trace_table */
    P4_TRACE_ACTION,       /* value: member of the profile or -1, data: its arguments, as in memory */
    P4_TRACE_STATEMENT,    /* data: its changes, p4_trace_change */
    P4_TRACE_CONDITION,    /* value: 0 or 1 */
    P4_TRACE_REGISTER,     /* value: index, extra: 1 if written, data: the cell before, and now if written */
    P4_TRACE_COUNTER,      /* value: index, data: the p4_counter after it */
    P4_TRACE_METER,        /* value: index, extra: colour */
    P4_TRACE_LOG,          /* value: 1 if an assertion failed, data: text */
    P4_TRACE_DIGEST,       /* value: id of the learn list, data: its fields */
    P4_TRACE_ENQUEUE,      /* value: port, extra: length */
    P4_TRACE_DEQUEUE,      /* value: port, extra: cells left in the queue */
    P4_TRACE_CLONE,        /* value: session, extra: number of the copy */
    P4_TRACE_MULTICAST,    /* value: group */
    P4_TRACE_RESUBMIT,
    P4_TRACE_RECIRCULATE,
    P4_TRACE_DROP,         /* value: p4_drop_reason */
    P4_TRACE_EMIT,         /* value: slot of the header, extra: bytes */
    P4_TRACE_TRANSMIT,     /* value: port, extra: wire length, data: the frame as far as it is present */
    P4_TRACE_EXTERN,       /* value: index, data: the cell after it */
    P4_TRACE_GENERATE,     /* value: application of the packet generator, extra: number of the copy */
    P4_TRACE_STOP_QUEUE,   /* value: port, extra: twice the queue, and 1 if it is stopped */
    P4_TRACE_KINDS
} p4_trace_kind;

#define P4_NO_POINT UINT32_MAX

typedef struct p4_trace_event {
    uint32_t pipe;      /* of the switch, in which it occurred */
    p4_trace_kind kind;
    uint32_t tag;       /* of the frame */
    uint32_t packet;    /* number of the frame received or packet of a timer, from 0; 0 or the number of a copy of it */
    uint32_t copy;
    uint32_t point;     /* P4_NO_POINT: none */
    uint32_t size;      /* of data */
    p4_tick now;
    int64_t value;
    int64_t extra;
    const void *data;   /* valid during the call */
} p4_trace_event;

/* A change of a metadata field or a packet header; its bytes before and after follow. */
typedef struct p4_trace_change {
    uint32_t cell;
    uint16_t varbytes_before, varbytes_now;
    uint8_t was_valid, is_valid;
    uint16_t pad;
} p4_trace_change;

typedef struct p4_switch p4_switch;

/* A token bucket that packets empty and time fills. */
typedef struct p4_shaper {
    uint64_t rate;    /* bits a second, or packets a second; 0: there is no bucket */
    uint32_t burst;   /* size of the bucket in bytes, or in packets */
    uint32_t packets; /* true: tokens are packets */
} p4_shaper;

/* Order in which a port serves its first queues. A higher priority comes first. Among queues of one priority, those
 * without a weight come first, the highest number before others, and the rest share the link by their weights. Queues
 * below their guaranteed rate come before all others, in the order of their guaranteed priorities. */
#define P4_SCHEDULED 16
typedef struct p4_schedule {
    uint8_t priority[P4_SCHEDULED], guaranteed_priority[P4_SCHEDULED];
    uint16_t weight[P4_SCHEDULED];
    uint16_t disabled; /* mask of queues that are not served */
    p4_shaper guaranteed[P4_SCHEDULED];
    p4_shaper limit[P4_SCHEDULED + 1]; /* of each queue, and at last of the port */
} p4_schedule;

/* Functions that a pipeline needs from its environment. */
typedef struct p4_env {
    void *ctx;
    int loops; /* frames that leave a loopback port reach the switch again; else the pipeline itself takes them back */
    /* the caller sets wire_len, data_len, tag and data of a new frame; cap is at least the requested size */
    p4_frame *(*frame_new)(void *ctx, uint32_t cap);
    void (*frame_free)(void *ctx, p4_frame *frame);
    void (*enqueue)(void *ctx, p4_packet *packet); /* takes the packet */
    void (*drop)(void *ctx, uint32_t port, uint32_t tag, uint32_t len, p4_drop_reason reason); /* accounting only */
    /* `of` is the switch that sends the digest, a pipe of the one that the environment belongs to; see
     * p4_switch_learn. */
    void (*digest)(void *ctx, p4_switch *of, uint32_t list_id, const uint8_t *data, size_t len);
    /* Stops or restarts a queue of a port. Returns 0 if there is no such port. NULL: there are no queues. */
    int (*stop_queue)(void *ctx, uint32_t port, uint32_t queue, int stopped);
    /* Sets the schedule of a port if the port exists; NULL: no weights, and a queue's priority is its number. Returns 1
     * if the port may send a packet for that reason, once p4_switch_timer has been called. */
    int (*schedule)(void *ctx, uint32_t port, const p4_schedule *schedule);
    /* The present time, and a request for p4_switch_timer at a later one; requests add up. NULL: time stands still. */
    p4_tick (*now)(void *ctx);
    void (*set_timer)(void *ctx, p4_tick at);
    void (*trace)(void *ctx, const p4_trace_event *event); /* may be NULL */
    /* Reports messages of log_msg (failed is 0), and each assert or assume that fails, with its place in the source.
     * text is valid during the call. NULL: there is no listener. */
    void (*log)(void *ctx, int failed, const char *text);
} p4_env;

/* A switch has one pipe, or a list of them (p4_switch_join), each a switch of its own with tables and registers of
 * its own. A port belongs to one pipe. The functions below take the first pipe and concern the whole switch: a frame
 * is handled by the pipe of its port, and a packet in a queue belongs to the pipe of that queue's port. */

/* Makes these switches the pipes of the first one, 2^port_bits ports each, with its environment. A switch that one of
 * them was a pipe of ends. They have to be of one architecture. Returns 0 or an error of control.h. */
int p4_switch_join(p4_switch *const *pipes, uint32_t count, uint32_t port_bits);

/* Parser, checksum verification, ingress. Takes the frame. Calls env->enqueue for every resulting packet. */
void p4_switch_receive(p4_switch *sw, p4_frame *frame, uint32_t port, p4_tick now);

/* Egress, checksum update, deparser. Takes the packet. Returns NULL if no frame leaves (dropped or recirculated).
 * May call env->enqueue, for clones and recirculated packets. */
p4_frame *p4_switch_transmit(p4_switch *sw, p4_packet *packet, p4_tick now);

/* Size of a packet with all its state, so that a driver can prefetch a waiting packet. */
uint32_t p4_switch_packet_bytes(const p4_switch *sw);

/* Announces that the switch will be needed soon: fetches it into the cache, and a little later the data for its
 * pipeline's lookups. With hundreds of switches this is quicker than waiting for one cache miss after the other. */
void p4_switch_prefetch(const p4_switch *sw);
void p4_switch_prefetch_tables(const p4_switch *sw);

/* Called for a packet that a queue had no room for. 1: the pipeline sends it to another queue, which is now that of
 * *packet, perhaps another packet, and may have no room either; 0: it is to be dropped. A packet is sent to another
 * queue only once. */
int p4_switch_deflect(p4_switch *sw, p4_packet **packet);

/* Whether the program has code that runs when a queue changes; its environment then has to call the function below. */
int p4_switch_watches_queues(const p4_switch *sw);

/* A queue of a port has this many cells, now that `packet` has entered or left it. */
void p4_switch_queue_changed(p4_switch *sw, const p4_packet *packet, uint32_t queue, uint32_t cells, p4_tick now);

/* Does what is due by now: see env->set_timer. May call env->enqueue. */
void p4_switch_timer(p4_switch *sw, p4_tick now);

/* A cell of an extern object or of the packet path was written from outside; the pipeline sets its timers anew. */
void p4_switch_state_changed(p4_switch *pipe);

/* The environment has a new port, which the pipeline sets up. */
void p4_switch_port_added(p4_switch *sw, uint32_t port);

/* Frees a packet that will not be transmitted, for instance after a drop-tail loss. */
void p4_packet_free(p4_switch *sw, p4_packet *packet);

/* Sets the environment, which is copied. Without one, frames go to and from the switch's own FIFO (see
 * Switch.process). */
void p4_switch_set_env(p4_switch *sw, const p4_env *env);

/* The environment that was set last, or the switch's own: for an environment that passes on some calls (messages) or
 * restores the old one. */
const p4_env *p4_switch_get_env(const p4_switch *sw);

/* Keeps a digest for the controller of a pipe. */
void p4_switch_learn(p4_switch *pipe, uint32_t list_id, const uint8_t *data, size_t len);

/* Counts for conservation: received + cloned + multicast = transmitted + dropped (for whatever reason) + packets
 * held by the environment. */
typedef struct p4_switch_counts {
    uint64_t received;    /* frames handed to p4_switch_receive */
    uint64_t cloned;      /* packets made by clones, */
    uint64_t multicast;   /* ... and by multicast groups, beyond the one that arrived */
    uint64_t transmitted; /* frames returned by p4_switch_transmit */
    uint64_t dropped;     /* packets reported to env->drop by the pipeline */
} p4_switch_counts;

p4_switch_counts p4_switch_get_counts(const p4_switch *sw);

/* The number of failed asserts and assumes; *first: the first of them as passed to env->log, or NULL. */
uint64_t p4_switch_failed_asserts(const p4_switch *sw, const char **first);

#endif
