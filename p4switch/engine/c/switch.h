/* The seam between a P4 pipeline and what surrounds it (traffic manager, fabric, packet tests).
 *
 * A frame is what is on a wire; a packet is what a switch holds between ingress and egress.
 * Ownership: whoever is handed a pointer frees it or hands it on.
 */
#ifndef P4CC_SWITCH_H
#define P4CC_SWITCH_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t p4_tick; /* model time in ticks: ns in the virtual world, us to be BMv2 */

typedef struct p4_frame {
    struct p4_frame *next; /* for whoever holds the frame */
    uint32_t wire_len;     /* bytes on the wire, without preamble, gap and FCS */
    uint32_t data_len;     /* bytes present; the wire_len - data_len bytes after them are zeros */
    uint32_t cap;          /* bytes that data has room for */
    uint32_t tag;          /* the sender's flow, for traces and accounting; 0: none. Copies keep it */
    uint8_t data[];
} p4_frame;

typedef struct p4_packet {
    struct p4_packet *next;
    uint32_t len;          /* bytes the packet would have on the wire if it left now; what a queue is charged */
    uint32_t tag;
    uint32_t ingress_port;
    uint32_t egress_port;
    uint32_t priority;     /* v1model's standard_metadata.priority: 0 is the lowest */
    uint32_t enq_depth;    /* cells of the queue when this packet arrived (the traffic manager sets these four) */
    uint32_t deq_depth;    /* cells left behind when it left */
    p4_tick enq_time;
    p4_tick deq_time;
    /* the pipeline's own state follows */
} p4_packet;

typedef enum p4_drop_reason {
    P4_DROP_PROGRAM_INGRESS, /* mark_to_drop, or no egress port, in ingress */
    P4_DROP_PROGRAM_EGRESS,
    P4_DROP_BUFFER,          /* the traffic manager had no room */
    P4_DROP_NO_PORT,         /* sent to a port, group or session that does not exist */
    P4_DROP_LINK_DOWN,
    P4_DROP_HOPS,            /* resubmitted, recirculated or cloned too often */
    P4_DROP_REASONS
} p4_drop_reason;

/* What a pipeline needs from its surroundings. */
typedef struct p4_env {
    void *ctx;
    p4_frame *(*frame_new)(void *ctx, uint32_t cap);
    void (*frame_free)(void *ctx, p4_frame *frame);
    void (*enqueue)(void *ctx, p4_packet *packet); /* takes the packet */
    void (*drop)(void *ctx, uint32_t port, uint32_t tag, uint32_t len, p4_drop_reason reason); /* accounting only */
    void (*digest)(void *ctx, uint32_t list_id, const uint8_t *data, size_t len);
} p4_env;

typedef struct p4_switch p4_switch;

/* Parser, checksum verification, ingress. Takes the frame. Calls env->enqueue for every packet that results. */
void p4_switch_receive(p4_switch *sw, p4_frame *frame, uint32_t port, p4_tick now);

/* Egress, checksum update, deparser. Takes the packet. NULL: nothing leaves (dropped or recirculated). */
p4_frame *p4_switch_transmit(p4_switch *sw, p4_packet *packet, p4_tick now);

/* For a packet that is not to be transmitted, a drop-tail loss for instance. */
void p4_packet_free(p4_switch *sw, p4_packet *packet);

void p4_switch_set_env(p4_switch *sw, const p4_env *env);

#endif
