#include "record.h"

#include <string.h>

#include "allocate.h"
#include "exchange.h"

void *buffer_add(buffer *b, uint64_t len)
{
    if (b->cap - b->len < len) {
        const char *lent = b->lent ? b->data : NULL;
        b->cap = 2 * b->cap + len + 4096;
        b->data = must_grow(lent ? NULL : b->data, b->cap, 1);
        if (lent)
            memcpy(b->data, lent, b->len);
        b->lent = false;
    }
    void *at = b->data + b->len;
    b->len += len;
    return at;
}

void recorder_free(recorder *r)
{
    free(r->probes);
    free(r->times.data);
    free(r->values.data);
    free(r->hops.data);
    free(r->events.data);
    free(r->frames.data);
    free(r->incidents.data);
}

static int64_t measure(const probe *p)
{
    net_port *port = p->port;
    tm_queue *q = p->priority >= 0 ? &port->tm.queues[p->priority] : NULL;
    uint64_t value = 0;
    switch (p->kind) {
    case PROBE_DEPTH_BYTES:
        value = q ? q->bytes : port->tm.bytes;
        break;
    case PROBE_DEPTH_PACKETS:
        value = q ? q->packets : port->tm.packets;
        break;
    case PROBE_DEPTH_MAX_BYTES:
        value = q ? q->recent_max_bytes : port->tm.recent_max_bytes;
        break;
    case PROBE_TX_BYTES:
        value = port->tm.sent_bytes;
        break;
    case PROBE_PAUSED:
        value = q ? port->tm.paused >> p->priority & 1 : port->tm.paused;
        break;
    case PROBE_BUFFER_BYTES:
        value = p->node->tm.used_bytes;
        break;
    case PROBE_KINDS:
        break;
    }
    return (int64_t)value;
}

/* Nodes that other workers run are sampled there. */
static void keep_own_probes(recorder *r)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->probe_count; i++)
        if (!r->probes[i].node->away)
            r->probes[kept++] = r->probes[i];
    r->probe_count = kept;
}

void record_sample(net *n, uint64_t time_ns)
{
    recorder *r = &n->recorder;
    if (!r->sampled)
        keep_own_probes(r);
    r->sampled = true;
    *(int64_t *)buffer_add(&r->times, sizeof(int64_t)) = (int64_t)time_ns;
    int64_t *row = buffer_add(&r->values, r->probe_count * sizeof *row);
    for (uint32_t i = 0; i < r->probe_count; i++)
        row[i] = measure(&r->probes[i]);
    for (uint32_t i = 0; i < r->probe_count; i++)
        if (r->probes[i].kind == PROBE_DEPTH_MAX_BYTES) {
            tm_port *port = &r->probes[i].port->tm;
            port->recent_max_bytes = port->bytes;
            for (int j = 0; j < TM_PRIORITIES; j++)
                port->queues[j].recent_max_bytes = port->queues[j].bytes;
        }
}

uint32_t record_start(net *n, node *at, const p4_frame *frame, flow_key key)
{
    recorder *r = &n->recorder;
    flows *f = &n->flows;
    bool in_time = n->now >= r->trace_from_ns && n->now < r->trace_until_ns;
    if (!(r->trace_all || f->rows[frame->tag].traced) || !in_time || r->traced >= r->trace_most)
        return frame->tag;
    key.packet = at->traced + 1;
    key.host = (int32_t)at->index;
    uint32_t tag = flows_tag(f, key);
    if (!tag)
        return frame->tag;
    at->traced++;
    r->traced++;
    f->rows[tag].psn = flows_psn(frame);
    return tag;
}

/* Whether events of packets with this tag are recorded. */
static bool is_told(const net *n, uint32_t tag)
{
    return n->flows.rows[tag].of || (!tag && n->recorder.trace_all);
}

void record_hop(net *n, const node *at, uint32_t event, int32_t port, int32_t priority, uint64_t depth,
                uint32_t wire_len, uint32_t tag)
{
    recorder *r = &n->recorder;
    if (!is_told(n, tag))
        return;
    const flow *row = &n->flows.rows[tag];
    uint64_t count = r->hops.len / sizeof(hop);
    hop h = {
        .time_ns = n->now, .depth_bytes = depth, .node = at->index, .event = event, .wire_len = wire_len,
        .packet = row->of ? (uint64_t)row->host << 32 | row->packet : 0, .psn = row->psn,
        .port = port, .priority = priority,
        .order = n->workers ? workers_order(n->workers, at, count) : count,
    };
    *(hop *)buffer_add(&r->hops, sizeof h) = h;
}

/* Records an event of a pipeline that was built for tracing. */
void record_pipeline(net *n, const node *at, const p4_trace_event *event)
{
    recorder *r = &n->recorder;
    if (!r->trace_pipelines || !is_told(n, event->tag))
        return;
    uint64_t begin = r->events.len;
    char *to = buffer_add(&r->events, sizeof *event + (event->size + 7u) / 8 * 8);
    memcpy(to, event, sizeof *event);
    if (event->size)
        memcpy(to + sizeof *event, event->data, event->size);
    record_hop(n, at, HOP_PIPELINE, -1, -1, begin, 0, event->tag);
}

void record_frame(net *n, const net_port *port, const p4_frame *frame)
{
    uint32_t len = frame->data_len < port->snap_bytes ? frame->data_len : port->snap_bytes;
    char *at = buffer_add(&n->recorder.frames, sizeof(capture_head) + (len + 7) / 8 * 8);
    *(capture_head *)at = (capture_head){n->now, port->link, port->direction, frame->wire_len, len};
    memcpy(at + sizeof(capture_head), frame->data, len);
}

void record_incident(net *n, uint32_t id, bool deadlock, const net_port *port, uint32_t priority)
{
    *(incident *)buffer_add(&n->recorder.incidents, sizeof(incident)) = (incident){
        .time_ns = n->now, .id = id, .node = port->node->index, .port = port->tm.number, .priority = priority,
        .deadlock = deadlock,
    };
}
