#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFETCH_AHEAD 3
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static flow *flow_of(net *n, uint32_t tag)
{
    return &n->flows.rows[tag < n->flows.count ? tag : 0];
}

/* -- losses ------------------------------------------------------------------------------------------------------ */

static void count_drop(net *n, node *at, net_port *port, uint32_t number, uint32_t tag, uint32_t len,
                       p4_drop_reason reason)
{
    n->ledger.drops[reason]++;
    if (port) {
        port->drops[reason]++;
        port->drop_bytes += len;
    } else {
        at->lost_drops[reason]++;
        at->lost_bytes += len;
    }
    flow *row = flow_of(n, tag);
    row->dropped_packets++;
    row->dropped_bytes += len;
    if (UNLIKELY(n->recorder.tracing))
        record_hop(n, at, HOP_DROP + reason, (int32_t)number, -1, 0, len, tag);
}

static void lose_frame(net *n, net_port *from, p4_frame *frame, bool pfc)
{
    if (pfc)
        n->ledger.pfc_lost++;
    else
        count_drop(n, from->node, from, from->tm.number, frame->tag, frame->wire_len, P4_DROP_LINK_DOWN);
    pool_put(&n->pool, frame);
}

/* -- what a pipeline asks for ------------------------------------------------------------------------------------ */

static p4_frame *env_frame_new(void *ctx, uint32_t cap)
{
    return pool_get(&((node *)ctx)->net->pool, cap);
}

static void env_frame_free(void *ctx, p4_frame *frame)
{
    pool_put(&((node *)ctx)->net->pool, frame);
}

net_port *net_find_port(const node *at, uint32_t number)
{
    if (!at->sw)
        return number == 0 ? at->port : NULL;
    tm_port *port = tm_find(&at->tm, number);
    return port ? net_port_of(port) : NULL;
}

static void env_drop(void *ctx, uint32_t port, uint32_t tag, uint32_t len, p4_drop_reason reason)
{
    node *at = ctx;
    count_drop(at->net, at, net_find_port(at, port), port, tag, len, reason);
}

static void env_enqueue(void *ctx, p4_packet *packet)
{
    node *at = ctx;
    net *n = at->net;
    tm_port *out = tm_find(&at->tm, packet->egress_port);
    net_port *port = out ? net_port_of(out) : NULL;
    p4_drop_reason reason = P4_DROP_NO_PORT;
    if (port && port->up) {
        uint64_t depth = out->queues[tm_priority(packet)].bytes;
        uint32_t number = packet->egress_port, priority = tm_priority(packet), len = packet->len, tag = packet->tag;
        if (tm_enqueue(&at->tm, out, packet, n->wheel->now)) {
            if (UNLIKELY(n->recorder.tracing))
                record_hop(n, at, HOP_ENQUEUE, (int32_t)number, (int32_t)priority, depth, len, tag);
            return;
        }
        reason = P4_DROP_BUFFER;
    } else if (port) {
        reason = P4_DROP_LINK_DOWN;
    }
    count_drop(n, at, port, packet->egress_port, packet->tag, packet->len, reason);
    p4_packet_free(at->sw, packet);
}

static void env_digest(void *ctx, uint32_t list_id, const uint8_t *data, size_t len)
{
    const p4_env *before = &((node *)ctx)->env_before;
    if (before->digest)
        before->digest(before->ctx, list_id, data, len);
}

void net_adopt(node *at, p4_switch *sw)
{
    at->sw = sw;
    at->before = *p4_switch_get_counts(sw);
    at->env_before = *p4_switch_get_env(sw);
    p4_switch_set_env(sw, &(p4_env){
        .ctx = at, .frame_new = env_frame_new, .frame_free = env_frame_free, .enqueue = env_enqueue, .drop = env_drop,
        .digest = env_digest,
    });
}

/* -- sending ----------------------------------------------------------------------------------------------------- */

void net_wake(tm_port *tm)
{
    net_port *port = net_port_of(tm);
    net *n = port->node->net;
    uint64_t ready = tm_link_free(&tm->link);
    if (tm->scheduled || tm->serving || port->touched)
        return;
    if (ready > n->wheel->now) {
        tm->scheduled = true;
        wheel_push(n->wheel, ready, net_event(EV_READY, port, NULL));
        return;
    }
    port->touched = true;
    port->next_touched = NULL;
    if (n->touched)
        n->touched_last->next_touched = port;
    else
        n->touched = port;
    n->touched_last = port;
}

void net_send(net *n, net_port *port, p4_frame *frame, bool contiguous, bool pfc)
{
    uint64_t end = tm_link_send(&port->tm.link, n->wheel->now, contiguous, frame->wire_len);
    if (!pfc) {
        port->tx_packets++;
        port->tx_bytes += frame->wire_len;
    }
    if (UNLIKELY(port->snap_bytes))
        record_frame(n, port, frame);
    if (UNLIKELY(!port->up)) {
        lose_frame(n, port, frame, pfc);
        return;
    }
    if (UNLIKELY(pfc))
        wheel_push(n->wheel, end + port->delay_ns, net_event(EV_ARRIVE_PFC, port->peer, frame));
    else
        wheel_push(n->wheel, end + port->hop_ns, net_event(EV_ARRIVE, port->peer, frame));
}

/* The transmitter of a switch's port is free: PFC frames first, then the packet whose turn it is. */
static void serve_switch(net *n, net_port *port, bool contiguous)
{
    node *at = port->node;
    tm_port *tm = &port->tm;
    tm->serving = true;
    for (;;) {
        if (UNLIKELY(net_pfc_due(port))) {
            net_send(n, port, pfc_frame(n, port), contiguous, true);
            pfc_sent(n, port);
            break;
        }
        p4_packet *packet = tm_dequeue(tm, n->wheel->now);
        if (!packet)
            break;
        uint32_t priority = tm_priority(packet);
        p4_frame *frame = p4_switch_transmit(at->sw, packet, tm_ticks(&at->tm, n->wheel->now));
        if (frame) {
            if (UNLIKELY(n->recorder.tracing))
                record_hop(n, at, HOP_TRANSMIT, (int32_t)tm->number, (int32_t)priority, tm->queues[priority].bytes,
                           frame->wire_len, frame->tag);
            net_send(n, port, frame, contiguous, false);
            break;
        }
    }
    tm->serving = false;
    if (tm_ready(tm) || net_pfc_due(port))
        net_wake(tm);
}

void net_serve_touched(net *n)
{
    for (net_port *port; (port = n->touched);) {
        n->touched = port->next_touched;
        port->touched = false;
        if (tm_link_free(&port->tm.link) > n->wheel->now)
            net_wake(&port->tm);
        else
            serve_switch(n, port, false);
    }
}

static void host_wake_at(net *n, net_port *port, uint64_t time)
{
    if (time > NET_MAX_TIME || time >= port->timer_ns)
        return;
    port->timer_ns = time;
    wheel_push(n->wheel, time, net_event(EV_WAKE, port, NULL));
}

/* The host's link is free: sends what it has, or finds out when to ask again. */
static int serve_host(net *n, net_port *port, bool contiguous)
{
    node *host = port->node;
    p4_frame *frame = NULL;
    uint64_t when = 0;
    for (int i = 0; !frame; i++) {
        if (n->ops->next_frame(n, host, &frame) < 0)
            goto failed;
        if (frame)
            break;
        if (n->ops->next_wakeup(n, host, &when) < 0)
            goto failed;
        if (when > n->wheel->now) {
            host_wake_at(n, port, when);
            return 0;
        }
        if (i) { /* once may be: it was told of something new in between */
            n->ops->idle_but_due(n, host, when);
            goto failed;
        }
    }
    flow_key key;
    frame->tag = flows_parse(frame, &key) ? flows_tag(&n->flows, key) : 0;
    bool pfc = frame_is_pfc(frame);
    if (pfc) {
        n->ledger.pfc_sent++;
    } else {
        n->ledger.entered++;
        flow *row = flow_of(n, frame->tag);
        row->sent_packets++;
        row->sent_bytes += frame->wire_len;
        row->last_sent_ns = (int64_t)n->wheel->now;
        if (row->first_sent_ns < 0) {
            row->first_sent_ns = row->last_sent_ns;
            row->host = (int32_t)host->index;
        }
        if (UNLIKELY(n->recorder.tracing))
            record_hop(n, host, HOP_SEND, 0, -1, 0, frame->wire_len, frame->tag);
    }
    net_send(n, port, frame, contiguous, pfc);
    port->tm.scheduled = true;
    wheel_push(n->wheel, tm_link_free(&port->tm.link), net_event(EV_READY, port, NULL));
    return 0;
failed: /* it is asked again when the run goes on */
    host_wake_at(n, port, n->wheel->now);
    return -1;
}

static int ask_host(net *n, net_port *port)
{
    return port->tm.scheduled ? 0 : serve_host(n, port, false);
}

int net_kick(net *n, node *host)
{
    return host->port ? ask_host(n, host->port) : 0;
}

/* -- arriving ---------------------------------------------------------------------------------------------------- */

static void arrive_switch(net *n, node *at, uint32_t port, p4_frame *frame)
{
    if (UNLIKELY(n->recorder.tracing))
        record_hop(n, at, HOP_RECEIVE, (int32_t)port, -1, 0, frame->wire_len, frame->tag);
    p4_switch_receive(at->sw, frame, port, tm_ticks(&at->tm, n->wheel->now));
}

static int arrive_host(net *n, net_port *port, p4_frame *frame, bool pfc)
{
    if (pfc) {
        n->ledger.pfc_received++;
    } else {
        n->ledger.delivered++;
        flow *row = flow_of(n, frame->tag);
        row->delivered_packets++;
        row->delivered_bytes += frame->wire_len;
        row->last_delivered_ns = (int64_t)n->wheel->now;
        if (row->first_delivered_ns < 0)
            row->first_delivered_ns = row->last_delivered_ns;
        if (UNLIKELY(n->recorder.tracing))
            record_hop(n, port->node, HOP_RECEIVE, 0, -1, 0, frame->wire_len, frame->tag);
    }
    int status = n->ops->receive(n, port->node, frame);
    pool_put(&n->pool, frame);
    if (status < 0) {
        host_wake_at(n, port, n->wheel->now);
        return -1;
    }
    return ask_host(n, port);
}

void net_inject(net *n, node *at, uint32_t port, p4_frame *frame)
{
    flow_key key;
    frame->tag = flows_parse(frame, &key) ? flows_tag(&n->flows, key) : 0;
    n->ledger.entered++;
    arrive_switch(n, at, port, frame);
    net_serve_touched(n);
}

/* -- the loop ---------------------------------------------------------------------------------------------------- */

static int dispatch(net *n, event e)
{
    net_port *port = net_subject(e);
    int status = 0;
    switch (net_kind(e)) {
    case EV_ARRIVE:
        port->rx_packets++;
        port->rx_bytes += ((p4_frame *)e.arg)->wire_len;
        if (!port->node->sw)
            return arrive_host(n, port, e.arg, false);
        arrive_switch(n, port->node, port->tm.number, e.arg);
        break;
    case EV_READY:
        port->tm.scheduled = false;
        if (!port->node->sw)
            return serve_host(n, port, true);
        serve_switch(n, port, true);
        break;
    case EV_WAKE:
        if (port->timer_ns != n->wheel->now)
            return 0; /* another, earlier one has taken its place */
        port->timer_ns = TIME_NEVER;
        return ask_host(n, port);
    case EV_ARRIVE_PFC:
        if (!port->node->sw)
            return arrive_host(n, port, e.arg, true);
        pfc_arrive(n, port, e.arg);
        break;
    case EV_PFC_APPLY:
        pfc_apply(n, port, e.arg);
        break;
    case EV_PFC_EXPIRE:
        pfc_expire(n, port);
        break;
    case EV_PFC_REFRESH:
        pfc_refresh(n, port);
        break;
    case EV_PFC_WATCH:
        pfc_watch(n);
        break;
    case EV_CALL:
        status = n->ops->call(n, e.arg);
        break;
    case EV_NONE:
        return 0;
    }
    net_serve_touched(n);
    return status;
}

static void prefetch(const wheel *w)
{
    const event *e = wheel_peek(w, PREFETCH_AHEAD);
    if (!e)
        return;
    const char *port = (const char *)net_subject(*e);
    __builtin_prefetch(port);
    __builtin_prefetch(port + 64);
    if (e->arg) {
        __builtin_prefetch(e->arg);
        __builtin_prefetch((const char *)e->arg + 64);
    }
}

static void sample_until(net *n, uint64_t time)
{
    recorder *r = &n->recorder;
    while (r->next_sample_ns <= time) {
        record_sample(n, r->next_sample_ns);
        r->next_sample_ns += r->interval_ns;
    }
}

net_status net_run(net *n, uint64_t until, uint64_t budget)
{
    wheel *w = n->wheel;
    n->stop = n->deadlock = false;
    for (uint64_t left = budget;;) {
        if (!w->slot_open) {
            uint64_t time = wheel_next_time(w);
            if (time > until || time == TIME_NEVER) {
                if (until > NET_MAX_TIME)
                    return NET_IDLE;
                sample_until(n, until);
                wheel_open(w, until);
                wheel_close(w);
                return time == TIME_NEVER ? NET_IDLE : NET_UNTIL;
            }
            if (UNLIKELY(n->recorder.next_sample_ns <= time))
                sample_until(n, time);
            wheel_open(w, time);
        }
        for (event *next; (next = wheel_take(w));) {
            event e = *next;
            prefetch(w);
            n->events++;
            if (UNLIKELY(dispatch(n, e) < 0))
                return NET_ERROR;
            if (UNLIKELY(n->stop))
                return n->deadlock ? NET_DEADLOCK : NET_STOPPED;
            if (UNLIKELY(!--left))
                return NET_BUDGET;
        }
        wheel_close(w);
    }
}

/* -- links that change ------------------------------------------------------------------------------------------- */

struct cut {
    net *n;
    net_port *port;
};

static void cut_event(void *ctx, event *e)
{
    struct cut *cut = ctx;
    event_kind kind = net_kind(*e);
    if (net_subject(*e) != cut->port)
        return;
    if (kind == EV_ARRIVE || kind == EV_ARRIVE_PFC)
        lose_frame(cut->n, cut->port->peer, e->arg, kind == EV_ARRIVE_PFC);
    else if (kind == EV_PFC_APPLY)
        pool_put(&cut->n->pool, e->arg);
    else
        return;
    *e = (event){EV_NONE, NULL};
}

static void port_down(net *n, net_port *port)
{
    port->up = false;
    wheel_visit(n->wheel, cut_event, &(struct cut){n, port});
    if (!port->node->sw)
        return;
    pfc_link_down(n, port);
    for (p4_packet *p; (p = tm_flush(&port->tm, n->wheel->now));) {
        count_drop(n, port->node, port, port->tm.number, p->tag, p->len, P4_DROP_LINK_DOWN);
        p4_packet_free(port->node->sw, p);
    }
}

void net_link_up(net *n, uint32_t link, bool up)
{
    net_port *a = n->ends[2 * link], *b = n->ends[2 * link + 1];
    if (a->up == up)
        return;
    if (!up) {
        port_down(n, a);
        port_down(n, b);
    } else {
        a->up = b->up = true;
        for (int i = 0; i < 2; i++) {
            net_port *port = i ? b : a;
            if (port->node->sw && net_pfc_due(port))
                net_wake(&port->tm);
        }
    }
    net_serve_touched(n);
}

static tm_rate *find_rate(net *n, uint64_t rate_bps)
{
    for (tm_rate *r = n->rates; r; r = r->next)
        if (r->rate_bps == rate_bps)
            return r;
    tm_rate *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->rate_bps = rate_bps;
    r->framing_bytes = n->framing_bytes;
    r->next = n->rates;
    return n->rates = r;
}

int net_link_rate(net *n, uint32_t link, int direction, uint64_t rate_bps)
{
    tm_rate *rate = find_rate(n, rate_bps);
    if (!rate)
        return -1;
    for (int i = 0; i < 2; i++) {
        tm_link *l = &n->ends[2 * link + (uint32_t)i]->tm.link;
        if (direction == i || direction < 0) {
            l->end_ns = tm_link_free(l); /* the fraction was in units of the old rate */
            l->end_part = 0;
            l->rate = rate;
        }
    }
    return 0;
}

/* -- building ---------------------------------------------------------------------------------------------------- */

net *net_new(const net_ops *ops, void *owner)
{
    net *n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    n->wheel = wheel_new();
    if (!n->wheel || flows_init(&n->flows) < 0) {
        net_free(n);
        return NULL;
    }
    n->ops = ops;
    n->owner = owner;
    n->tick_ns = 1;
    n->recorder.next_sample_ns = TIME_NEVER;
    n->watch_interval_ns = 100000;
    n->storm_ns = 1000000;
    n->stop_on_deadlock = true;
    return n;
}

static void sweep_event(void *ctx, event *e)
{
    event_kind kind = net_kind(*e);
    if (kind == EV_ARRIVE || kind == EV_ARRIVE_PFC || kind == EV_PFC_APPLY)
        pool_put(&((net *)ctx)->pool, e->arg);
    *e = (event){EV_NONE, NULL};
}

void net_free(net *n)
{
    if (!n)
        return;
    if (n->wheel)
        wheel_visit(n->wheel, sweep_event, n);
    for (uint32_t i = 0; i < 2 * n->link_count; i++) {
        net_port *port = n->ends[i];
        for (p4_packet *p; port->node->sw && (p = tm_flush(&port->tm, n->wheel->now));)
            p4_packet_free(port->node->sw, p);
    }
    for (uint32_t i = 0; i < 2 * n->link_count; i++) {
        tm_port_destroy(&n->ends[i]->tm);
        free(n->ends[i]);
    }
    free(n->ends);
    for (uint32_t i = 0; i < n->node_count; i++) {
        if (n->nodes[i]->sw)
            p4_switch_set_env(n->nodes[i]->sw, &n->nodes[i]->env_before);
        n->ops->release(n->nodes[i]);
        free(n->nodes[i]->tm.ports);
        free(n->nodes[i]->pfc);
        free(n->nodes[i]->name);
        free(n->nodes[i]);
    }
    free(n->nodes);
    for (tm_rate *r = n->rates, *next; r; r = next) {
        next = r->next;
        free(r);
    }
    recorder_free(&n->recorder);
    flows_free(&n->flows);
    pool_free_all(&n->pool);
    wheel_free(n->wheel);
    free(n);
}

node *net_add_node(net *n)
{
    if (n->node_count == n->node_cap) {
        uint32_t cap = n->node_cap ? 2 * n->node_cap : 64;
        node **nodes = realloc(n->nodes, cap * sizeof *nodes);
        if (!nodes)
            return NULL;
        n->nodes = nodes;
        n->node_cap = cap;
    }
    node *at = calloc(1, sizeof *at);
    if (!at)
        return NULL;
    at->net = n;
    at->index = n->node_count;
    at->tm = (tm_switch){
        .tick_ns = n->tick_ns, .cell_bytes = 80, .alpha = -1, .buffer_bytes = TM_NO_LIMIT, .wake = net_wake,
    };
    at->queue_bytes = at->port_bytes = TM_NO_LIMIT;
    at->queue_packets = at->port_packets = UINT32_MAX;
    return n->nodes[n->node_count++] = at;
}

static net_port *new_port(net *n, node *at, uint32_t number, uint64_t rate_bps)
{
    net_port *port = aligned_alloc(_Alignof(net_port), sizeof *port);
    if (!port)
        return NULL;
    memset(port, 0, sizeof *port);
    tm_port_init(&port->tm, at->sw ? &at->tm : NULL, number);
    port->node = at;
    port->up = true;
    port->timer_ns = TIME_NEVER;
    port->tm.link.rate = find_rate(n, rate_bps);
    port->tm.limit_bytes = at->port_bytes;
    port->tm.limit_packets = at->port_packets;
    for (int i = 0; i < TM_PRIORITIES; i++) {
        port->tm.queues[i].limit_bytes = at->queue_bytes;
        port->tm.queues[i].limit_packets = at->queue_packets;
    }
    if (!port->tm.link.rate || (at->round_robin && tm_set_round_robin(&port->tm, true) < 0)
        || (at->pfc && tm_pfc_alloc(&port->tm) < 0)) {
        tm_port_destroy(&port->tm);
        free(port);
        return NULL;
    }
    return port;
}

net_port *net_connect(net *n, node *a, uint32_t a_port, node *b, uint32_t b_port, const uint64_t rate_bps[2],
                      uint64_t delay_ns)
{
    if (n->link_count == n->link_cap) {
        uint32_t cap = n->link_cap ? 2 * n->link_cap : 64;
        net_port **ends = realloc(n->ends, 2ull * cap * sizeof *ends);
        if (!ends)
            return NULL;
        n->ends = ends;
        n->link_cap = cap;
    }
    net_port *end[2] = {new_port(n, a, a_port, rate_bps[0]), new_port(n, b, b_port, rate_bps[1])};
    if (!end[0] || !end[1] || (a->sw && tm_add_port(&a->tm, &end[0]->tm) < 0)
        || (b->sw && tm_add_port(&b->tm, &end[1]->tm) < 0))
        return NULL;
    for (int i = 0; i < 2; i++) {
        net_port *port = end[i];
        port->peer = end[!i];
        port->link = n->link_count;
        port->direction = (uint32_t)i;
        port->delay_ns = delay_ns;
        port->hop_ns = delay_ns + end[!i]->node->latency_ns;
        if (!port->node->sw) {
            port->node->port = port;
            host_wake_at(n, port, n->wheel->now); /* to be asked for the first time */
        }
        n->ends[2 * n->link_count + (uint32_t)i] = port;
    }
    n->link_count++;
    return end[0];
}

/* -- the ledger -------------------------------------------------------------------------------------------------- */

struct tally {
    uint64_t on_wire, pfc_on_wire;
};

static void tally_event(void *ctx, event *e)
{
    struct tally *t = ctx;
    t->on_wire += net_kind(*e) == EV_ARRIVE;
    t->pfc_on_wire += net_kind(*e) == EV_ARRIVE_PFC;
}

static uint64_t chain_length(const p4_packet *p)
{
    uint64_t count = 0;
    for (; p; p = p->next)
        count++;
    return count;
}

void net_count(net *n, uint64_t *queued, uint64_t *on_wire, uint64_t *pfc_on_wire, uint64_t *copied)
{
    struct tally t = {0, 0};
    wheel_visit(n->wheel, tally_event, &t);
    *on_wire = t.on_wire;
    *pfc_on_wire = t.pfc_on_wire;
    *copied = *queued = 0;
    for (uint32_t i = 0; i < n->node_count; i++)
        if (n->nodes[i]->sw)
            *copied += p4_switch_get_counts(n->nodes[i]->sw)->copied - n->nodes[i]->before.copied;
    for (uint32_t i = 0; i < 2 * n->link_count; i++) {
        const tm_port *port = &n->ends[i]->tm;
        *queued += port->direct != NULL;
        for (int j = 0; j < TM_PRIORITIES; j++) {
            const tm_queue *q = &port->queues[j];
            *queued += chain_length(q->fifo.head);
            for (uint32_t k = 0; q->rounds && k < q->rounds->count; k++)
                *queued += chain_length(q->rounds->from[k].fifo.head);
        }
    }
}
