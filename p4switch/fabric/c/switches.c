/* Events at a switch: frames that arrive, requests of its pipeline, ports that send, events of the ports. */
#include "switches.h"

#include "pauses.h"
#include "prefetch.h"
#include "sending.h"

#define FRAMES_AHEAD 6 /* frames prefetched ahead */

/* Whether an IPv4 or IPv6 frame has ECN CE. */
static uint8_t has_ce(const p4_frame *frame)
{
    const uint8_t *d = frame->data;
    if (frame->data_len < 16)
        return 0;
    uint32_t type = (uint32_t)d[12] << 8 | d[13];
    uint32_t ecn = type == 0x0800 ? d[15] & 3u : type == 0x86dd ? d[15] >> 4 & 3u : 0;
    return ecn == 3;
}

/* -- requests of a pipeline -------------------------------------------------------------------------------------- */

net_port *net_find_port(const node *at, uint32_t number)
{
    if (!at->sw)
        return number == 0 ? at->port : NULL;
    tm_port *port = tm_find(&at->tm, number);
    return port ? net_port_of(port) : NULL;
}

static p4_frame *env_frame_new(void *ctx, uint32_t cap)
{
    return pool_get(&((node *)ctx)->net->pool, cap);
}

static void env_frame_free(void *ctx, p4_frame *frame)
{
    pool_put(&((node *)ctx)->net->pool, frame);
}

static void env_drop(void *ctx, uint32_t port, uint32_t tag, uint32_t len, p4_drop_reason reason)
{
    node *at = ctx;
    net_count_drop(at->net, at, net_find_port(at, port), port, tag, len, reason);
}

static bool is_among(const p4_packet *packet, const p4_packet *list)
{
    while (list && list != packet)
        list = list->next;
    return list;
}

/* Runs egress for a packet to a port that does not exist, and drops what would leave. */
static void pass_without_port(net *n, node *at, p4_packet *packet, uint32_t number)
{
    tm_pass(&at->tm, packet, n->now);
    p4_frame *frame = p4_switch_transmit(at->sw, packet, tm_ticks(&at->tm, n->now));
    if (frame) {
        net_count_drop(n, at, NULL, number, frame->tag, frame->wire_len, P4_DROP_NO_PORT);
        pool_put(&n->pool, frame);
    }
}

static void env_enqueue(void *ctx, p4_packet *packet)
{
    node *at = ctx;
    net *n = at->net;
    net_port *port;
    tm_port *out;
    uint32_t number;
    p4_drop_reason reason;
    p4_packet *lost;
    packet->pfc_class = at->arriving;
    packet->came_marked = at->arriving_marked;
    do {
        number = packet->egress_port;
        out = tm_find(&at->tm, number);
        port = out ? net_port_of(out) : NULL;
        lost = tm_admit(&at->tm, out, port && port->up, packet, n->now, &reason);
    } while (UNLIKELY(lost == packet) && reason == P4_DROP_BUFFER && p4_switch_deflect(at->sw, &packet));
    if (UNLIKELY(!out)) {
        pass_without_port(n, at, packet, number);
        return;
    }
    if (UNLIKELY(n->recorder.tracing) && !is_among(packet, lost)) {
        uint32_t priority = tm_priority(packet);
        uint64_t depth = out->direct == packet ? 0 : out->queues[priority].bytes - packet->len;
        record_hop(n, at, HOP_ENQUEUE, (int32_t)number, (int32_t)priority, depth, packet->len, packet->tag);
    }
    for (p4_packet *next; UNLIKELY(lost); lost = next) {
        next = lost->next;
        net_count_drop(n, at, port, number, lost->tag, lost->len, reason);
        p4_packet_free(at->sw, lost);
    }
}

static void env_digest(void *ctx, p4_switch *of, uint32_t list_id, const uint8_t *data, size_t len)
{
    (void)ctx;
    p4_switch_learn(of, list_id, data, len);
}

static void net_set_timer(net *n, node *at, uint64_t time);

static p4_tick env_now(void *ctx)
{
    const node *at = ctx;
    return tm_ticks(&at->tm, at->net->now);
}

static void env_set_timer(void *ctx, p4_tick tick)
{
    node *at = ctx;
    uint64_t time = tick < TIME_NEVER / at->tm.tick_ns ? tick * at->tm.tick_ns : TIME_NEVER;
    if (time < at->timer_ns) /* otherwise the pipeline asks again when it is called */
        net_set_timer(at->net, at, time > at->net->now ? time : at->net->now);
}

static int env_stop_queue(void *ctx, uint32_t port, uint32_t queue, int stopped)
{
    tm_port *out = tm_find(&((node *)ctx)->tm, port);
    if (out)
        tm_stop_queue(out, queue, stopped);
    return out != NULL;
}

static int env_schedule(void *ctx, uint32_t port, const p4_schedule *schedule)
{
    const node *at = ctx;
    tm_port *out = tm_find(&at->tm, port);
    return out && tm_set_schedule(out, schedule, at->net->now);
}

void net_queue_changed(tm_port *port, const p4_packet *packet, uint32_t queue, uint32_t cells)
{
    const node *at = net_port_of(port)->node;
    p4_switch_queue_changed(at->sw, packet, queue, cells, tm_ticks(&at->tm, at->net->now));
}

static void env_trace(void *ctx, const p4_trace_event *event)
{
    node *at = ctx;
    if (at->net->recorder.tracing)
        record_pipeline(at->net, at, event);
}

void net_env_init(node *at, p4_env *env)
{
    *env = (p4_env){
        .ctx = at, .loops = 1, .frame_new = env_frame_new, .frame_free = env_frame_free, .enqueue = env_enqueue,
        .drop = env_drop, .digest = env_digest, .stop_queue = env_stop_queue, .schedule = env_schedule, .now = env_now,
        .set_timer = env_set_timer, .trace = env_trace,
    };
}

/* -- ports ------------------------------------------------------------------------------------------------------- */

/* An event at the running switch: run_switch finds the first one that is left. */
static void due(net *n, const node *at, uint64_t time)
{
    if (at == n->current)
        return;
    agenda *next = &n->switches.next[at->place];
    next->time = min_time(next->time, time);
}

void net_push(net *n, net_port *port, uint64_t time, event_kind kind, void *arg)
{
    node *at = port->node;
    uint64_t order = n->order++ & UINT32_MAX;
    heap_push(&at->events, (entry){time, (uint64_t)kind << 48 | (uint64_t)port->tm.number << 32 | order, arg});
    due(n, at, time);
}

static void net_set_timer(net *n, node *at, uint64_t time)
{
    uint64_t order = n->order++ & UINT32_MAX;
    heap_push(&at->events, (entry){time, (uint64_t)EV_TIMER << 48 | order, NULL});
    at->timer_ns = time;
    due(n, at, time);
}

static void timer_event(net *n, node *at)
{
    if (n->now < at->timer_ns) /* it was called before, for a request of an earlier time */
        return;
    at->timer_ns = TIME_NEVER;
    p4_switch_timer(at->sw, tm_ticks(&at->tm, n->now));
}

void net_wake(tm_port *tm)
{
    net_port *port = net_port_of(tm);
    net *n = port->node->net;
    uint64_t ready = link_free_ns(&tm->link);
    if (tm->scheduled || tm->serving || port->touched)
        return;
    if (ready > n->now) {
        tm->scheduled = true;
        ready_add(&port->node->ready, tm->number, ready);
        due(n, port->node, ready);
        return;
    }
    if (n->touched_count == n->touched_cap) {
        n->touched_cap = n->touched_cap ? 2 * n->touched_cap : 16;
        n->touched = must_grow(n->touched, n->touched_cap, sizeof *n->touched);
    }
    port->touched = true;
    n->touched[n->touched_count++] = port;
}

void net_hold_port(tm_port *tm, uint64_t until)
{
    net_port *port = net_port_of(tm);
    net_push(port->node->net, port, until, EV_RELEASE, NULL);
}

/* Serves a free transmitter of a switch's port: PFC frames first, then the next packet. */
static void serve_switch(net *n, net_port *port, bool contiguous)
{
    node *at = port->node;
    tm_port *tm = &port->tm;
    tm->serving = true;
    for (;;) {
        if (UNLIKELY(net_pfc_due(port))) {
            net_send_pfc(n, port, contiguous);
            break;
        }
        p4_packet *packet = tm_dequeue(tm, n->now);
        if (!packet)
            break;
        uint32_t priority = tm_priority(packet);
        at->arriving = packet->pfc_class;
        uint8_t came_marked = at->arriving_marked = packet->came_marked;
        p4_frame *frame = p4_switch_transmit(at->sw, packet, tm_ticks(&at->tm, n->now));
        if (frame) {
            if (UNLIKELY(!came_marked && has_ce(frame))) /* the counter's cache line is touched for nothing else */
                port->marked++;
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
    for (uint32_t i = 0; i < n->touched_count; i++) { /* more may follow */
        net_port *port = n->touched[i];
        port->touched = false;
        if (link_free_ns(&port->tm.link) > n->now)
            net_wake(&port->tm);
        else
            serve_switch(n, port, false);
    }
    n->touched_count = 0;
}

/* -- arrivals and events ----------------------------------------------------------------------------------------- */

static void arrive_switch(net *n, node *at, uint32_t port, p4_frame *frame)
{
    if (UNLIKELY(n->recorder.tracing))
        record_hop(n, at, HOP_RECEIVE, (int32_t)port, -1, 0, frame->wire_len, frame->tag);
    at->arriving = tm_class_of(&at->tm, frame);
    at->arriving_marked = has_ce(frame);
    p4_switch_receive(at->sw, frame, port, tm_ticks(&at->tm, n->now));
}

#define EACH_BIT_PORT(at, bits, port) \
    for (uint64_t b_ = (bits); b_; b_ &= b_ - 1) \
        for (uint32_t i_ = (uint32_t)__builtin_ctzll(b_); i_ < (at)->tm.port_count; i_ += 64) \
            for (net_port *port = (at)->tm.ports[i_] ? net_port_of((at)->tm.ports[i_]) : NULL; port; port = NULL)

/* Takes the frames that arrive before `end` off the wires, in order of port; notes the remaining ones in `later`. */
static void gather(net *n, node *at, uint64_t ports, uint64_t end, agenda *later)
{
    if (ports & (ports - 1))
        prefetch_ports(at);
    n->arrivals.count = 0;
    EACH_BIT_PORT(at, ports, port) {
        wire *in = &port->peer->out;
        for (; !wire_empty(in); in->head++) {
            const struct flight *first = wire_first(in);
            if (first->time >= end) {
                later->time = min_time(later->time, first->time);
                later->ports |= 1ull << (i_ & 63);
                break;
            }
            arrivals_add(&n->arrivals, (arrival){first->time, first->frame, i_});
        }
    }
    arrivals_sort(&n->arrivals);
}

static void pfc_event(net *n, net_port *port, event_kind kind, void *arg)
{
    switch (kind) {
    case EV_PFC_ARRIVE:
        net_pfc_arrive(n, port, arg);
        break;
    case EV_PFC_APPLY:
        net_pfc_apply(n, port, arg);
        break;
    case EV_PFC_EXPIRE:
        net_pfc_expire(n, port);
        break;
    case EV_PFC_REFRESH:
        net_pfc_refresh(n, port);
        break;
    case EV_RELEASE: /* see switch_event */
    case EV_TIMER:
        break;
    }
}

static void switch_event(net *n, node *at, const entry *e)
{
    event_kind kind = (event_kind)(e->rank >> 48);
    tm_port *port = kind == EV_TIMER ? NULL : at->tm.ports[e->rank >> 32 & TM_MAX_PORT];
    if (kind == EV_TIMER)
        timer_event(n, at);
    else if (kind == EV_RELEASE)
        tm_release(port, n->now);
    else
        pfc_event(n, net_port_of(port), kind, e->what);
}

/* Runs all events at a switch before `end`. */
static void run_switch(net *n, node *at, uint64_t end)
{
    agenda *next = &n->switches.next[at->place], later = {TIME_NEVER, 0, next->side};
    uint64_t ports = next->ports;
    *next = later;
    gather(n, at, ports, end, &later);
    const arrival *in = n->arrivals.list, *last = in + n->arrivals.count;
    for (uint32_t i = 0; i < FRAMES_AHEAD && in + i < last; i++)
        prefetch_frame(in[i].frame);
    if (ports & (ports - 1))
        prefetch_behind(at);
    for (;;) {
        /* Order at one instant: PFC and timers, arrivals, ports whose links become free. */
        uint64_t pfc = heap_time(&at->events), arrival = in < last ? in->time : TIME_NEVER, ready = at->ready.first.time;
        uint64_t time = min_time(min_time(pfc, arrival), ready);
        if (time >= end)
            break;
        n->now = time;
        if (UNLIKELY(time == pfc)) {
            entry e = heap_pop(&at->events);
            switch_event(n, at, &e);
        } else if (time == arrival) {
            if (in + FRAMES_AHEAD < last)
                prefetch_frame(in[FRAMES_AHEAD].frame);
            arrive_switch(n, at, in->port, in->frame);
            in++;
        } else {
            net_port *port = net_port_of(at->tm.ports[at->ready.first.port]);
            ready_take(&at->ready);
            port->tm.scheduled = false;
            serve_switch(n, port, true);
        }
        n->events++;
        net_serve_touched(n);
    }
    if (n->last < n->now)
        n->last = n->now;
    next->time = min_time(min_time(next->time, later.time), min_time(heap_time(&at->events), at->ready.first.time));
    next->ports |= later.ports;
}

void net_run_switches(net *n, uint32_t side, uint64_t end)
{
    uint64_t now = n->now;
    n->phase = PHASE_SWITCHES;
    for (uint32_t i = net_next_place(&n->switches, 0, side, end), after; i < n->switches.count; i = after) {
        after = net_next_place(&n->switches, i + 1, side, end);
        if (after < n->switches.count)
            prefetch_switch(n->switches.list[after]);
        n->current = n->switches.list[i];
        run_switch(n, n->switches.list[i], end);
    }
    n->current = NULL;
    n->now = now;
}

void net_inject(net *n, node *at, uint32_t port, p4_frame *frame)
{
    flow_key key;
    frame->tag = flows_parse(frame, &key) ? flows_tag(&n->flows, key) : 0;
    if (n->recorder.tracing && frame->tag)
        frame->tag = record_start(n, at, frame, key);
    n->ledger.entered++;
    arrive_switch(n, at, port, frame);
    net_serve_touched(n);
}
