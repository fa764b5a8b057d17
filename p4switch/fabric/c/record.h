/* Records made while the network runs: samples, hops of traced flows, captured frames, PFC incidents. */
#ifndef P4CC_RECORD_H
#define P4CC_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "flows.h"
#include "switch.h"

struct net;
struct net_port;
struct node;

typedef enum probe_kind {
    PROBE_DEPTH_BYTES,
    PROBE_DEPTH_PACKETS,
    PROBE_DEPTH_MAX_BYTES,
    PROBE_TX_BYTES,
    PROBE_PAUSED,
    PROBE_BUFFER_BYTES,
    PROBE_KINDS
} probe_kind;

typedef struct probe {
    probe_kind kind;
    struct node *node;
    struct net_port *port;
    int priority; /* -1: the whole port */
} probe;

typedef enum hop_event {
    HOP_SEND,
    HOP_RECEIVE,
    HOP_ENQUEUE,
    HOP_TRANSMIT,
    HOP_PIPELINE, /* depth_bytes: its offset in `events` */
    HOP_DROP      /* the kind plus the reason */
} hop_event;

typedef struct hop {
    uint64_t time_ns, depth_bytes, order;
    uint64_t packet; /* the source's IPv4 address and the packet's number at that source; 0: it belongs to no flow */
    uint32_t node, event, wire_len;
    int32_t port, priority, psn;
} hop;

typedef struct capture_head {
    uint64_t time_ns;
    uint32_t link, direction, wire_len, data_len; /* data_len bytes follow, padded to a multiple of 8 */
} capture_head;

typedef struct incident {
    uint64_t time_ns;
    uint32_t id, node, port, priority;
    bool deadlock;
} incident;

typedef struct buffer {
    char *data;
    uint64_t len, cap; /* bytes */
    bool lent;         /* the data belongs to another buffer until it becomes too small */
} buffer;

typedef struct recorder {
    probe *probes;
    uint32_t probe_count;
    uint64_t next_sample_ns, interval_ns; /* TIME_NEVER, 0: off */
    bool sampled;
    bool tracing, trace_all, trace_pipelines;
    uint32_t traced, trace_most;              /* number of packets so far, and its limit */
    uint64_t trace_from_ns, trace_until_ns;   /* interval of sending times of traced packets */
    buffer times, values; /* int64 */
    buffer hops;          /* hop */
    buffer events;        /* for HOP_PIPELINE: p4_trace_event and data, padded to a multiple of 8 */
    buffer frames;        /* capture_head and data */
    buffer incidents;     /* incident; rows of one id are one incident */
    uint32_t incident_count;
} recorder;

void *buffer_add(buffer *b, uint64_t len); /* room for len more bytes; aborts without memory */
void recorder_free(recorder *r);
void record_sample(struct net *n, uint64_t time_ns);
/* The tag of a packet of a flow that starts here: its own tag if it is traced, or else its flow's. */
uint32_t record_start(struct net *n, struct node *at, const p4_frame *frame, flow_key key);
void record_hop(struct net *n, const struct node *at, uint32_t event, int32_t port, int32_t priority, uint64_t depth,
                uint32_t wire_len, uint32_t tag);
void record_pipeline(struct net *n, const struct node *at, const p4_trace_event *event);
void record_frame(struct net *n, const struct net_port *port, const p4_frame *frame);
void record_incident(struct net *n, uint32_t id, bool deadlock, const struct net_port *port, uint32_t priority);

#endif
