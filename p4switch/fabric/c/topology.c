/* Building a network, changing it, and counting its contents. */
#include "exchange.h"
#include "hosts.h"
#include "pauses.h"
#include "sending.h"
#include "switches.h"

/* -- building ---------------------------------------------------------------------------------------------------- */

net *net_new(const net_ops *ops, void *owner)
{
    net *n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    n->ops = ops;
    n->company = &net_alone;
    n->wheel = wheel_new();
    if (!n->wheel || flows_init(&n->flows) < 0) {
        net_free(n);
        return NULL;
    }
    n->owner = owner;
    n->tick_ns = 1;
    n->lookahead_ns = TIME_NEVER;
    n->recorder.next_sample_ns = TIME_NEVER;
    n->watch_interval_ns = 100000;
    n->storm_ns = 1000000;
    n->stop_on_deadlock = true;
    return n;
}

static void free_frames(net *n, net_port *port)
{
    for (wire *w = &port->out; !wire_empty(w); w->head++)
        pool_put(&n->pool, wire_first(w)->frame);
    for (p4_packet *p; port->node->sw && (p = tm_flush(&port->tm, n->now));)
        p4_packet_free(port->node->sw, p);
}

static void free_node(net *n, node *at)
{
    for (uint32_t i = 0; at->sw && i < at->events.count; i++) {
        event_kind kind = (event_kind)(at->events.list[i].rank >> 48);
        if (kind == EV_PFC_ARRIVE || kind == EV_PFC_APPLY)
            pool_put(&n->pool, at->events.list[i].what);
    }
    if (at->sw)
        p4_switch_set_env(at->sw, &at->env_before);
    n->ops->release(at);
    free(at->events.list);
    ready_free(&at->ready);
    free(at->tm.ports);
    free(at->pfc);
    free(at->name);
    free(at);
}

static void free_list(nodes *of)
{
    free(of->list);
    free(of->next);
}

void net_free(net *n)
{
    if (!n)
        return;
    workers_free(n->workers);
    EACH_END(n, port)
        free_frames(n, port);
    for (uint32_t i = 0; i < n->all.count; i++)
        free_node(n, n->all.list[i]);
    EACH_END(n, port) {
        tm_port_destroy(&port->tm);
        wire_free(&port->out);
    }
    free(n->ends);
    free_list(&n->all);
    free_list(&n->hosts);
    free_list(&n->switches);
    link_rates_free(n->rates);
    arrivals_free(&n->arrivals);
    free(n->touched);
    free(n->calls.list);
    recorder_free(&n->recorder);
    flows_free(&n->flows);
    pool_free_all(&n->pool);
    slab_free_all(n->arena.slabs);
    wheel_free(n->wheel);
    free(n);
}

static bool list_reserve(nodes *of)
{
    if (of->count < of->cap)
        return true;
    uint32_t cap = of->cap ? 2 * of->cap : 64;
    node **list = realloc(of->list, cap * sizeof *list);
    if (list)
        of->list = list;
    agenda *next = realloc(of->next, cap * sizeof *next);
    if (next)
        of->next = next;
    if (!list || !next)
        return false;
    of->cap = cap;
    return true;
}

static uint32_t list_add(nodes *of, node *at)
{
    of->list[of->count] = at;
    of->next[of->count] = (agenda){TIME_NEVER, 0, 0};
    return of->count++;
}

node *net_add_node(net *n, p4_switch *sw)
{
    nodes *of = sw ? &n->switches : &n->hosts;
    node *at = calloc(1, sizeof *at);
    if (!at || !list_reserve(&n->all) || !list_reserve(of)) {
        free(at);
        return NULL;
    }
    at->net = n;
    at->sw = sw;
    at->index = list_add(&n->all, at);
    at->place = list_add(of, at);
    at->wake_ns = at->hint_ns = at->hold_ns = at->timer_ns = TIME_NEVER;
    at->ready.first = READY_NONE;
    at->tm = (tm_switch){
        .tick_ns = n->tick_ns, .cell_bytes = 80, .alpha = -1, .buffer_bytes = TM_NO_LIMIT, .wake = net_wake,
        .hold = net_hold_port,
    };
    at->limits = TM_UNLIMITED;
    if (sw) {
        p4_env env;
        at->tm.packet_bytes = p4_switch_packet_bytes(sw);
        at->tm.changed = p4_switch_watches_queues(sw) ? net_queue_changed : NULL;
        at->before = p4_switch_get_counts(sw);
        at->env_before = *p4_switch_get_env(sw);
        net_env_init(at, &env);
        p4_switch_set_env(sw, &env);
    }
    return at;
}

static net_port *new_port(net *n, node *at, uint32_t number, uint64_t rate_bps, int32_t framing_bytes)
{
    net_port *port = arena_new(&n->arena, sizeof *port);
    tm_port_init(&port->tm, at->sw ? &at->tm : NULL, number);
    port->node = at;
    port->up = true;
    port->expire_ns = TIME_NEVER;
    port->tm.link.rate = link_rate_of(&n->rates, rate_bps, framing_bytes);
    if (!port->tm.link.rate || tm_set_limits(&port->tm, &at->limits) < 0 || (at->pfc && tm_pfc_alloc(&port->tm) < 0)
        || (at->sw && !ready_reserve(&at->ready, number + 1))) {
        tm_port_destroy(&port->tm);
        return NULL;
    }
    return port;
}

net_port *net_connect(net *n, node *a, uint32_t a_port, node *b, uint32_t b_port, const uint64_t rate_bps[2],
                      uint64_t delay_ns, double loss, uint64_t seed, int32_t framing_bytes)
{
    if (n->link_count == n->link_cap) {
        uint32_t cap = n->link_cap ? 2 * n->link_cap : 64;
        net_port **ends = realloc(n->ends, 2ull * cap * sizeof *ends);
        if (!ends)
            return NULL;
        n->ends = ends;
        n->link_cap = cap;
    }
    bool loops = a == b && a_port == b_port;
    net_port *end[2] = {new_port(n, a, a_port, rate_bps[0], framing_bytes), NULL};
    end[1] = loops ? end[0] : new_port(n, b, b_port, rate_bps[1], framing_bytes);
    if (!end[0] || !end[1] || (a->sw && tm_add_port(&a->tm, &end[0]->tm) < 0)
        || (b->sw && tm_add_port(&b->tm, &end[1]->tm) < 0))
        return NULL;
    for (int i = 0; i < 2; i++) {
        net_port *port = end[i], *peer = end[!i];
        if (port->node->sw)
            p4_switch_port_added(port->node->sw, port->tm.number);
        port->peer = peer;
        port->link = n->link_count;
        port->direction = (uint32_t)i;
        port->delay_ns = delay_ns;
        port->chance = link_chance_of(loss, seed + 2 * n->link_count + (uint64_t)i);
        port->unusual = loss > 0;
        port->hop_ns = delay_ns + peer->node->latency_ns;
        port->to = peer->node->place;
        port->to_port = peer->node->sw ? 1ull << (peer->tm.number & 63) : 0;
        n->ends[2 * n->link_count + (uint32_t)i] = port;
        if (!port->node->sw)
            port->node->port = port;
        if (n->workers)
            workers_own_port(n, port);
    }
    n->link_count++;
    n->sides = 0;
    if (delay_ns < n->lookahead_ns)
        n->lookahead_ns = delay_ns;
    net_end_window(n, n->now); /* it was determined for the links at that time */
    for (int i = 0; i < 2; i++)
        if (!end[i]->node->sw)
            net_host_wake_at(n, end[i]->node, n->now); /* so that it is asked for the first time */
    return end[0];
}

/* -- changes ----------------------------------------------------------------------------------------------------- */

/* Removes the PFC frames that were on their way to a port. */
static void lose_pfc(net *n, net_port *port)
{
    heap *events = &port->node->events, kept = {NULL, 0, 0};
    for (uint32_t i = 0; i < events->count; i++) {
        entry e = events->list[i];
        event_kind kind = (event_kind)(e.rank >> 48);
        if ((e.rank >> 32 & TM_MAX_PORT) != port->tm.number || (kind != EV_PFC_ARRIVE && kind != EV_PFC_APPLY))
            heap_push(&kept, e);
        else if (kind == EV_PFC_ARRIVE)
            net_lose_frame(n, port->peer, e.what, true, P4_DROP_LINK_DOWN);
        else
            pool_put(&n->pool, e.what);
    }
    free(events->list);
    *events = kept;
}

static void port_down(net *n, net_port *port)
{
    port->up = false;
    for (wire *w = &port->out; !wire_empty(w); w->head++)
        net_lose_frame(n, port, wire_first(w)->frame, frame_is_pfc(wire_first(w)->frame), P4_DROP_LINK_DOWN);
    if (!port->node->sw)
        return;
    lose_pfc(n, port);
    net_pfc_link_down(n, port);
    for (p4_packet *p; (p = tm_flush(&port->tm, n->now));) {
        net_count_drop(n, port->node, port, port->tm.number, p->tag, p->len, P4_DROP_LINK_DOWN);
        p4_packet_free(port->node->sw, p);
    }
}

void net_link_up(net *n, uint32_t link, bool up)
{
    net_port *end[2] = {n->ends[2 * link], n->ends[2 * link + 1]};
    if (end[0]->up == up)
        return;
    for (int i = 0; i < 2; i++) {
        if (!up) {
            port_down(n, end[i]);
        } else {
            end[i]->up = true;
            if (end[i]->node->sw && net_pfc_due(end[i]))
                net_wake(&end[i]->tm);
        }
    }
    net_serve_touched(n);
}

int net_link_rate(net *n, uint32_t link, int direction, uint64_t rate_bps)
{
    link_rate *rate = link_rate_of(&n->rates, rate_bps, n->ends[2 * link]->tm.link.rate->framing_bytes);
    if (!rate)
        return -1;
    for (int i = 0; i < 2; i++)
        if (direction == i || direction < 0)
            link_set_rate(&n->ends[2 * link + (uint32_t)i]->tm.link, rate);
    return 0;
}

/* No node is inside a window, so all frames of the last window have been sent. After the delay became shorter, a
 * frame does not overtake earlier ones. */
void net_link_delay(net *n, uint32_t link, uint64_t delay_ns)
{
    for (int i = 0; i < 2; i++) {
        net_port *port = n->ends[2 * link + (uint32_t)i];
        uint64_t last = link_free_ns(&port->tm.link) + port->hop_ns;
        if (delay_ns < port->delay_ns && last > port->least_ns) {
            port->least_ns = last;
            port->unusual = true;
        }
        port->hop_ns = port->hop_ns - port->delay_ns + delay_ns;
        port->delay_ns = delay_ns;
    }
    n->lookahead_ns = min_time(n->lookahead_ns, delay_ns);
    net_end_window(n, n->now);
}

void net_link_loss(net *n, uint32_t link, double loss)
{
    for (int i = 0; i < 2; i++) {
        net_port *port = n->ends[2 * link + (uint32_t)i];
        port->chance.loss = link_loss(loss);
        port->unusual = true; /* `reaches` determines whether it stays so */
    }
}

/* -- the ledger -------------------------------------------------------------------------------------------------- */

static uint64_t chain_length(const p4_packet *p)
{
    uint64_t count = 0;
    for (; p; p = p->next)
        count++;
    return count;
}

static uint64_t count_queued(const tm_port *port)
{
    uint64_t count = port->direct != NULL;
    for (int i = 0; i < TM_PRIORITIES; i++) {
        const tm_queue *q = &port->queues[i];
        count += chain_length(q->fifo.head);
        for (uint32_t j = 0; q->rounds && j < q->rounds->count; j++)
            count += chain_length(q->rounds->from[j].fifo.head);
    }
    for (uint32_t j = 0; port->lanes && j < TM_QUEUES; j++)
        count += chain_length(port->lanes->of[j].fifo.head);
    return count;
}

void net_received(const net_port *port, uint64_t *packets, uint64_t *bytes)
{
    const net_port *peer = port->peer;
    *packets = peer->tm.sent_packets - peer->lost_packets;
    *bytes = peer->tm.sent_bytes - peer->lost_bytes;
    for (uint32_t at = peer->out.head; at != peer->out.tail; at++) {
        const p4_frame *frame = peer->out.slots[at & peer->out.mask].frame;
        if (!frame_is_pfc(frame)) {
            --*packets;
            *bytes -= frame->wire_len;
        }
    }
}

net_counts net_count(net *n)
{
    net_counts c = {0};
    for (uint32_t i = 0; i < n->switches.count; i++) {
        const node *at = n->switches.list[i];
        const p4_switch_counts now = p4_switch_get_counts(at->sw);
        c.cloned += now.cloned - at->before.cloned;
        c.multicast += now.multicast - at->before.multicast;
        for (uint32_t j = 0; j < at->events.count; j++)
            c.pfc_on_wire += (event_kind)(at->events.list[j].rank >> 48) == EV_PFC_ARRIVE;
    }
    EACH_END(n, port) {
        const wire *w = &port->out;
        c.queued += count_queued(&port->tm);
        for (uint32_t at = w->head; at != w->tail; at++) {
            bool pfc = frame_is_pfc(w->slots[at & w->mask].frame);
            c.on_wire += !pfc;
            c.pfc_on_wire += pfc;
        }
    }
    return c;
}
