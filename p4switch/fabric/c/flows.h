/* Flows: mapping of (IPv4 source, IPv4 destination, BTH destination queue pair) to a tag, and counts of their
 * packets. */
#ifndef P4CC_FLOWS_H
#define P4CC_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "switch.h"

typedef struct flow {
    uint32_t src_ip, dst_ip, qp;
    int32_t host; /* host that first sent it, or that sent the traced packet; -1: none */
    uint64_t sent_packets, sent_bytes;
    uint64_t delivered_packets, delivered_bytes;
    uint64_t dropped_packets, dropped_bytes;
    int64_t first_sent_ns, last_sent_ns, first_delivered_ns, last_delivered_ns; /* -1: never */
    bool traced;     /* each of its packets has a row */
    uint32_t of;     /* for the row of a traced packet: its flow, which has all counts; 0: this is the row of a flow */
    uint32_t packet; /* for a traced packet: its number among those that the host sent, from 1 */
    int32_t psn;     /* packet sequence number of its BTH; -1: none */
} flow;

typedef struct flows {
    flow *rows; /* by tag; row 0 is for frames that belong to no flow */
    uint32_t count, cap;
    uint32_t *slots; /* hash table of tags */
    uint32_t slot_mask;
} flows;

typedef struct flow_key {
    uint32_t src_ip, dst_ip, qp;
    uint32_t packet; /* 0: the flow */
    int32_t host;    /* host that sent the packet, whatever its source address */
} flow_key;

/* Flows that a sender used last, indexed by a few bits of the key. */
#define RECENT_FLOWS 4
typedef struct recent_flows {
    struct recent_flow { flow_key key; uint32_t tag; } flows[RECENT_FLOWS];
} recent_flows;

int flows_init(flows *f); /* -1: no memory */
void flows_free(flows *f);
uint32_t flows_tag(flows *f, flow_key key); /* creates a flow if necessary; 0: no memory or no tags left */
/* The flow of a frame; false: none (no IPv4). Corrects wire_len to the IPv4 length, if that says more. */
bool flows_parse(p4_frame *frame, flow_key *key);
int32_t flows_psn(const p4_frame *frame); /* -1: none */

/* As flows_tag, for a sender with few flows at a time: finds those that it used last without the table. */
static inline uint32_t flows_recent_tag(flows *f, recent_flows *recent, flow_key key)
{
    struct recent_flow *place = &recent->flows[(key.qp ^ key.dst_ip) % RECENT_FLOWS];
    if (!place->tag || place->key.src_ip != key.src_ip || place->key.dst_ip != key.dst_ip || place->key.qp != key.qp)
        *place = (struct recent_flow){key, flows_tag(f, key)};
    return place->tag;
}

static inline flow *flows_row(const flows *f, uint32_t tag)
{
    const flow *row = &f->rows[tag < f->count ? tag : 0];
    return &f->rows[row->of ? row->of : (uint32_t)(row - f->rows)];
}

static inline uint32_t flow_hash(flow_key k)
{
    uint64_t h = ((uint64_t)k.src_ip << 32 | k.dst_ip) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 29 ^ k.qp ^ (uint64_t)k.packet << 24) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(h >> 32);
}

#endif
