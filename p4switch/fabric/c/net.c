#include "net.h"
#include "exchange.h"
#include "prefetch.h"

#define FRAMES_AHEAD 6      /* to be fetched, at a switch, ... */
#define FRAMES_AHEAD_HOST 2 /* ... and at a host, which takes longer for each */
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static flow *flow_of(net *n, uint32_t tag)
{
    return &n->flows.rows[tag < n->flows.count ? tag : 0];
}

static uint64_t min_time(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* -- losses ------------------------------------------------------------------------------------------------------ */

void net_count_drop(net *n, node *at, net_port *port, uint32_t number, uint32_t tag, uint32_t len,
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

void net_lose_frame(net *n, net_port *from, p4_frame *frame, bool pfc)
{
    if (pfc) {
        n->ledger.pfc_lost++;
    } else {
        from->lost_packets++;
        from->lost_bytes += frame->wire_len;
        net_count_drop(n, from->node, from, from->tm.number, frame->tag, frame->wire_len, P4_DROP_LINK_DOWN);
    }
    pool_put(&n->pool, frame);
}

/* -- what a pipeline asks for ------------------------------------------------------------------------------------ */

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

static void env_enqueue(void *ctx, p4_packet *packet)
{
    node *at = ctx;
    net *n = at->net;
    tm_port *out = tm_find(&at->tm, packet->egress_port);
    net_port *port = out ? net_port_of(out) : NULL;
    uint32_t number = packet->egress_port, priority = tm_priority(packet), len = packet->len, tag = packet->tag;
    uint64_t depth = UNLIKELY(n->recorder.tracing) && out ? out->queues[priority].bytes : 0;
    packet->pfc_class = at->arriving;
    p4_drop_reason reason = tm_admit(&at->tm, out, port && port->up, packet, n->now);
    if (reason == P4_DROP_REASONS) {
        if (UNLIKELY(n->recorder.tracing))
            record_hop(n, at, HOP_ENQUEUE, (int32_t)number, (int32_t)priority, depth, len, tag);
        return;
    }
    net_count_drop(n, at, port, packet->egress_port, packet->tag, packet->len, reason);
    p4_packet_free(at->sw, packet);
}

static void env_digest(void *ctx, uint32_t list_id, const uint8_t *data, size_t len)
{
    const p4_env *before = &((node *)ctx)->env_before;
    if (before->digest)
        before->digest(before->ctx, list_id, data, len);
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
        .ctx = at, .frame_new = env_frame_new, .frame_free = env_frame_free, .enqueue = env_enqueue, .drop = env_drop,
        .digest = env_digest, .trace = env_trace,
    };
}

/* -- sending ----------------------------------------------------------------------------------------------------- */

void net_push(net *n, net_port *port, uint64_t time, event_kind kind, void *arg)
{
    node *at = port->node;
    uint64_t order = kind < EV_ARRIVE ? n->order++ & UINT32_MAX : 0;
    heap_push(&at->events, (entry){time, (uint64_t)kind << 48 | (uint64_t)port->tm.number << 32 | order, arg});
    agenda *next = &n->switches.next[at->place];
    next->time = min_time(next->time, time);
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
        net_push(n, port, ready, EV_READY, NULL);
        return;
    }
    if (n->touched_count == n->touched_cap) {
        n->touched_cap = n->touched_cap ? 2 * n->touched_cap : 16;
        n->touched = must_have(realloc(n->touched, n->touched_cap * sizeof *n->touched));
    }
    port->touched = true;
    n->touched[n->touched_count++] = port;
}

/* The frame's last bit is in at `time`, which is no earlier than that of the one before. */
static inline void put_on_wire(net *n, net_port *port, p4_frame *frame, uint64_t time)
{
    wire_push(&port->out, &n->arena, time, frame);
    if (port->to_port || n->independent) {
        agenda *next = port->to_port ? &n->switches.next[port->to] : &n->hosts.next[port->to];
        next->time = min_time(next->time, time);
        next->ports |= port->to_port;
    } else {
        wheel_push(n->wheel, time, (void *)(uintptr_t)port->to);
    }
}

void net_put_on_wire(net *n, net_port *port, p4_frame *frame, uint64_t time, bool pfc)
{
    if (!port->up)
        net_lose_frame(n, port, frame, pfc);
    else if (pfc && port->to_port)
        net_push(n, port->peer, time, EV_PFC_ARRIVE, frame);
    else
        put_on_wire(n, port, frame, time);
}

/* What is not simply put on the wire: the link is down, it leads to another worker, or the frame is for the port. */
static void send_elsewhere(net *n, net_port *port, p4_frame *frame, uint64_t end, bool pfc)
{
    uint64_t time = end + (pfc && port->to_port ? port->delay_ns : port->hop_ns);
    if (port->up && port->away)
        workers_send(n, port, frame, time, pfc);
    else
        net_put_on_wire(n, port, frame, time, pfc);
}

void net_send(net *n, net_port *port, p4_frame *frame, bool contiguous, bool pfc)
{
    uint64_t end = link_send(&port->tm.link, n->now, contiguous, frame->wire_len);
    if (!pfc) {
        port->tm.sent_packets++;
        port->tm.sent_bytes += frame->wire_len;
    }
    if (UNLIKELY(port->captured))
        record_frame(n, port, frame);
    if (UNLIKELY(pfc || port->away || !port->up))
        send_elsewhere(n, port, frame, end, pfc);
    else
        put_on_wire(n, port, frame, end + port->hop_ns);
}

/* The transmitter of a switch's port is free: PFC frames first, then the packet whose turn it is. */
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
        p4_frame *frame = p4_switch_transmit(at->sw, packet, tm_ticks(&at->tm, n->now));
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
    for (uint32_t i = 0; i < n->touched_count; i++) { /* there may come more */
        net_port *port = n->touched[i];
        port->touched = false;
        if (link_free_ns(&port->tm.link) > n->now)
            net_wake(&port->tm);
        else
            serve_switch(n, port, false);
    }
    n->touched_count = 0;
}

/* -- switches ---------------------------------------------------------------------------------------------------- */

static void arrive_switch(net *n, node *at, uint32_t port, p4_frame *frame)
{
    if (UNLIKELY(n->recorder.tracing))
        record_hop(n, at, HOP_RECEIVE, (int32_t)port, -1, 0, frame->wire_len, frame->tag);
    at->arriving = tm_class_of(&at->tm, frame);
    p4_switch_receive(at->sw, frame, port, tm_ticks(&at->tm, n->now));
}

#define EACH_BIT_PORT(at, bits, port) \
    for (uint64_t b_ = (bits); b_; b_ &= b_ - 1) \
        for (uint32_t i_ = (uint32_t)__builtin_ctzll(b_); i_ < (at)->tm.port_count; i_ += 64) \
            for (net_port *port = (at)->tm.ports[i_] ? net_port_of((at)->tm.ports[i_]) : NULL; port; port = NULL)

/* Takes the frames that arrive before `end` off the wires, in order of port; notes in `later` what stays there. */
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

static void other_event(net *n, net_port *port, event_kind kind, void *arg)
{
    switch (kind) {
    case EV_READY:
        port->tm.scheduled = false;
        serve_switch(n, port, true);
        break;
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
    case EV_ARRIVE:
        break;
    }
}

/* Everything at a switch before `end`. */
static void run_switch(net *n, node *at, uint64_t end)
{
    agenda *next = &n->switches.next[at->place], later = {TIME_NEVER, 0, next->side};
    uint64_t ports = next->ports;
    *next = later;
    gather(n, at, ports, end, &later);
    const arrival *in = n->arrivals.list, *last = in + n->arrivals.count;
    for (uint32_t i = 0; i < FRAMES_AHEAD && in + i < last; i++)
        prefetch_frame(in[i].frame);
    for (;;) {
        /* Of one instant, arrivals come before READY and after everything else. */
        uint64_t time = heap_time(&at->events);
        bool arrives = in < last && (in->time < time || (in->time == time && at->events.list[0].rank >> 48 > EV_ARRIVE));
        if (arrives) {
            n->now = in->time;
            if (in + FRAMES_AHEAD < last)
                prefetch_frame(in[FRAMES_AHEAD].frame);
            arrive_switch(n, at, in->port, in->frame);
            in++;
        } else {
            if (time >= end)
                break;
            entry e = heap_pop(&at->events);
            n->now = time;
            other_event(n, net_port_of(at->tm.ports[e.rank >> 32 & TM_MAX_PORT]), (event_kind)(e.rank >> 48), e.what);
        }
        n->events++;
        net_serve_touched(n);
    }
    if (n->last < n->now)
        n->last = n->now;
    next->time = min_time(min_time(next->time, later.time), heap_time(&at->events));
    next->ports |= later.ports;
}

/* The next node from place `i` on that has something to do before `end` and is on this side; of->count: none. */
static uint32_t next_place(const nodes *of, uint32_t i, uint32_t side, uint64_t end)
{
    while (i < of->count && (of->next[i].time >= end || of->next[i].side != side))
        i++;
    return i;
}

static void run_switches(net *n, uint32_t side, uint64_t end)
{
    uint64_t now = n->now;
    n->phase = PHASE_SWITCHES;
    for (uint32_t i = next_place(&n->switches, 0, side, end), after; i < n->switches.count; i = after) {
        after = next_place(&n->switches, i + 1, side, end);
        if (after < n->switches.count)
            prefetch_switch(n->switches.list[after]);
        run_switch(n, n->switches.list[i], end);
    }
    n->now = now;
}

void net_sync(net *n)
{
    if (n->phase != PHASE_HOSTS || n->independent)
        return;
    if (n->workers) {
        fputs("p4cc: a host's callback looks at the network, which other workers have\n", stderr);
        abort();
    }
    run_switches(n, 0, n->now + 1);
    n->phase = PHASE_HOSTS;
}

/* -- hosts ------------------------------------------------------------------------------------------------------- */

/* Something is due at the host at `time`. */
static inline void look_at_host(net *n, node *host, uint64_t time)
{
    if (n->independent) {
        agenda *next = &n->hosts.next[host->place];
        next->time = min_time(next->time, time);
    } else {
        wheel_push(n->wheel, time, (void *)(uintptr_t)host->place);
    }
}

void net_host_wake_at(net *n, node *host, uint64_t time)
{
    if (host->away)
        return;
    host->wake_ns = time;
    if (time < host->hint_ns && time <= NET_MAX_TIME) {
        host->hint_ns = n->independent ? TIME_NEVER : time;
        look_at_host(n, host, time);
    }
}

/* Widens [first, last] to `now`: independent hosts do not come in order of time. */
static void span(int64_t *first, int64_t *last, uint64_t now)
{
    int64_t time = (int64_t)now;
    if (*first < 0 || time < *first)
        *first = time;
    if (time > *last)
        *last = time;
}

static void send_from_host(net *n, node *host, p4_frame *frame, bool contiguous)
{
    net_port *port = host->port;
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
        span(&row->first_sent_ns, &row->last_sent_ns, n->now);
        if (row->host < 0)
            row->host = (int32_t)host->index;
        if (UNLIKELY(n->recorder.tracing))
            record_hop(n, host, HOP_SEND, 0, -1, 0, frame->wire_len, frame->tag);
    }
    net_send(n, port, frame, contiguous, pfc);
    uint64_t ready = link_free_ns(&port->tm.link);
    port->tm.scheduled = true;
    host->wake_ns = TIME_NEVER;
    look_at_host(n, host, ready);
}

/* The host's link is free: sends what it has, or finds out when to ask again. */
static int serve_host(net *n, node *host, bool contiguous)
{
    p4_frame *frame = NULL;
    uint64_t when = 0;
    for (int i = 0; i < 2; i++) { /* twice, if it was told of something new in between */
        if (n->ops->next_frame(n, host, &frame) < 0)
            goto failed;
        if (frame) {
            send_from_host(n, host, frame, contiguous);
            return 0;
        }
        if (n->ops->next_wakeup(n, host, &when) < 0)
            goto failed;
        if (when > n->now) {
            net_host_wake_at(n, host, when <= NET_MAX_TIME ? when : TIME_NEVER);
            return 0;
        }
    }
    n->ops->idle_but_due(n, host, when);
failed: /* it is asked again when the run goes on */
    net_host_wake_at(n, host, n->now);
    return -1;
}

static int ask_host(net *n, node *host)
{
    return host->port->tm.scheduled ? 0 : serve_host(n, host, false);
}

int net_kick(net *n, node *host)
{
    if (!host->port || host->away)
        return 0;
    if (n->independent && n->phase == PHASE_HOSTS && host != n->current) { /* it may be ahead in time, or behind */
        net_host_wake_at(n, host, min_time(host->wake_ns, n->window_end));
        return 0;
    }
    if (n->midway) { /* it may be behind */
        net_host_wake_at(n, host, min_time(host->wake_ns, n->now));
        return 0;
    }
    return ask_host(n, host);
}

static int arrive_host(net *n, node *host, p4_frame *frame)
{
    if (UNLIKELY(frame_is_pfc(frame))) {
        n->ledger.pfc_received++;
    } else {
        n->ledger.delivered++;
        flow *row = flow_of(n, frame->tag);
        row->delivered_packets++;
        row->delivered_bytes += frame->wire_len;
        span(&row->first_delivered_ns, &row->last_delivered_ns, n->now);
        if (UNLIKELY(n->recorder.tracing))
            record_hop(n, host, HOP_RECEIVE, 0, -1, 0, frame->wire_len, frame->tag);
    }
    int status = n->ops->receive(n, host, frame);
    pool_put(&n->pool, frame);
    if (status < 0) {
        net_host_wake_at(n, host, n->now);
        return -1;
    }
    return ask_host(n, host);
}

/* Everything at a host before `end`, or until it says stop. Of one instant: calls, arrivals, the rest. */
static int run_host(net *n, node *host, uint64_t end)
{
    net_port *port = host->port;
    n->current = host;
    wire *in = &port->peer->out;
    for (;;) {
        uint64_t arrival = wire_empty(in) ? TIME_NEVER : wire_first(in)->time;
        uint64_t ready = port->tm.scheduled ? link_free_ns(&port->tm.link) : TIME_NEVER;
        uint64_t call = heap_time(&host->events);
        uint64_t time = min_time(min_time(arrival, ready), min_time(host->wake_ns, call));
        int status;
        if (n->independent)
            n->hosts.next[host->place].time = time;
        if (time >= end || (n->stop && !n->independent))
            return 0;
        n->now = time;
        if (n->last < time)
            n->last = time;
        n->events++;
        if (time == call) {
            status = n->ops->call(n, heap_pop(&host->events).what);
        } else if (time == arrival) {
            p4_frame *frame = wire_first(in)->frame;
            in->head++;
            if (in->tail - in->head > FRAMES_AHEAD_HOST)
                prefetch_frame(in->slots[(in->head + FRAMES_AHEAD_HOST) & in->mask].frame);
            status = arrive_host(n, host, frame);
        } else if (time == ready) {
            port->tm.scheduled = false;
            status = serve_host(n, host, true);
        } else {
            host->wake_ns = TIME_NEVER;
            status = ask_host(n, host);
        }
        if (UNLIKELY(status < 0))
            return -1;
    }
}

static int by_value(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)*(void *const *)a, y = (uintptr_t)*(void *const *)b;
    return x < y ? -1 : x > y;
}

static void sort_places(void **places, uint32_t count)
{
    if (count > 32) { /* all started at once */
        qsort(places, count, sizeof *places, by_value);
        return;
    }
    for (uint32_t i = 1; i < count; i++) {
        void *place = places[i];
        uint32_t j = i;
        for (; j && (uintptr_t)places[j - 1] > (uintptr_t)place; j--)
            places[j] = places[j - 1];
        places[j] = place;
    }
}

/* The hosts that are due at `time`, in order. */
static int run_hosts_at(net *n, uint64_t time)
{
    void **due;
    int status = 0;
    uint32_t count = wheel_drain(n->wheel, time, &due), done = 0;
    sort_places(due, count);
    for (; done < count && !status && !n->stop; done++) {
        if (done && due[done - 1] == due[done])
            continue;
        node *host = n->hosts.list[(uintptr_t)due[done]];
        if (host->hint_ns <= time)
            host->hint_ns = TIME_NEVER;
        status = run_host(n, host, time + 1);
        if (host->wake_ns != TIME_NEVER)
            net_host_wake_at(n, host, host->wake_ns);
    }
    for (uint32_t i = done ? done - 1 : 0; i < count && (status || n->stop); i++)
        wheel_push(n->wheel, time, due[i]);
    return status;
}

/* All hosts of a side up to the end of the window, which a callback may draw nearer. */
static int run_hosts(net *n, uint32_t side)
{
    n->phase = PHASE_HOSTS;
    if (n->independent) {
        uint64_t end = n->window_end;
        for (uint32_t i = next_place(&n->hosts, 0, side, end); i < n->hosts.count;
             i = next_place(&n->hosts, i + 1, side, end)) {
            prefetch_hosts(&n->hosts, i + 1);
            if (run_host(n, n->hosts.list[i], end) < 0)
                return -1;
        }
        return 0;
    }
    while (!n->stop) {
        uint64_t time = wheel_next_time(n->wheel);
        if (time >= n->window_end)
            break;
        if (run_hosts_at(n, time) < 0)
            return -1;
    }
    return 0;
}

/* -- the loop ---------------------------------------------------------------------------------------------------- */

void net_end_window(net *n, uint64_t time)
{
    if (n->phase == PHASE_HOSTS && time < n->window_end)
        n->window_end = time > n->now ? time : n->now + 1;
}

void net_at(net *n, uint64_t time, void *arg, node *host, bool own)
{
    if (n->independent && n->phase == PHASE_HOSTS && host != n->current && time < n->window_end)
        time = n->window_end; /* others may be ahead */
    heap *calls = host && host->port ? &host->events : &n->calls;
    heap_push(calls, (entry){time, n->order++ << 1 | own, arg});
    if (calls == &n->calls)
        net_end_window(n, time);
    else
        look_at_host(n, host, time);
}

void net_inject(net *n, node *at, uint32_t port, p4_frame *frame)
{
    flow_key key;
    frame->tag = flows_parse(frame, &key) ? flows_tag(&n->flows, key) : 0;
    n->ledger.entered++;
    arrive_switch(n, at, port, frame);
    net_serve_touched(n);
}

static uint64_t earliest(const nodes *of, uint32_t side)
{
    uint64_t time = TIME_NEVER;
    for (uint32_t i = 0; i < of->count; i++)
        if (of->next[i].side == side)
            time = min_time(time, of->next[i].time);
    return time;
}

uint64_t net_next_time(const net *n, uint32_t side)
{
    return min_time(n->independent ? earliest(&n->hosts, side) : wheel_next_time(n->wheel), earliest(&n->switches, side));
}

/* When something happens next on a side, and which callback is next, wherever that is. */
static uint64_t next_time(const net *n, uint32_t side)
{
    return n->workers ? n->workers->all.next[side] : net_next_time(n, side);
}

static uint64_t next_call(const net *n)
{
    return n->workers ? n->workers->all.call : heap_time(&n->calls);
}

/* All workers come to this point; false: the run has failed. */
static bool meet(net *n)
{
    if (n->workers && !n->failed)
        n->failed = workers_meet(n) < 0;
    return !n->failed;
}

static void sample_until(net *n, uint64_t time)
{
    recorder *r = &n->recorder;
    while (r->next_sample_ns <= time) {
        record_sample(n, r->next_sample_ns);
        r->next_sample_ns += r->interval_ns;
    }
}

/* When paused queues are looked at next: at multiples of the interval. */
static uint64_t watch_after(const net *n, uint64_t time)
{
    return (time / n->watch_interval_ns + 1) * n->watch_interval_ns;
}

/* Whether both sides have come to the same time. */
static bool level(const net *n)
{
    return n->sides != 2 || n->done[0] == n->done[1];
}

/* A side that is not ahead goes through everything before `end`. After an error it stays where it was. */
static void advance(net *n, uint32_t side, uint64_t end)
{
    n->window_end = end;
    n->failed = run_hosts(n, side) < 0;
    n->midway = n->failed && n->independent;
    if (!n->independent && (n->failed || n->stop)) /* it was the last one at this instant */
        n->window_end = n->now + 1;
    if (!n->independent && n->workers)
        meet(n); /* where the window ends */
    if (!n->midway) {
        run_switches(n, side, n->window_end);
        n->done[side] = n->window_end;
    }
    n->phase = PHASE_NONE;
    n->current = NULL;
    meet(n);
    n->now = n->last;
}

static uint64_t after(uint64_t time, uint64_t ns)
{
    return time < TIME_NEVER - ns ? time + ns : TIME_NEVER;
}

/* Lets the side that is behind go as far as it may: nothing from the other one gets to it before `end`. */
static void run_window(net *n, uint64_t until)
{
    uint64_t link = n->lookahead_ns < NET_MAX_WINDOW_NS ? n->lookahead_ns : NET_MAX_WINDOW_NS;
    uint32_t side = !level(n) && n->done[1] < n->done[0];
    uint64_t end = after(n->done[side], link ? link : 1), watch = watch_after(n, n->done[side]);
    if (n->sides == 2) {
        uint64_t own = next_time(n, side), other = next_time(n, !side), ahead = n->done[!side];
        if (!level(n) && min_time(own, other) >= ahead) { /* nothing happens before both are at the same time */
            n->done[side] = ahead;
            return;
        }
        other = min_time(other, after(own, link));
        end = after(other > ahead ? other : ahead, link);
        watch = watch > ahead ? watch : ahead; /* the other one has gone on before there was PFC */
    }
    if (until < end)
        end = until + 1;
    end = min_time(end, min_time(next_call(n), n->recorder.next_sample_ns));
    if (n->sides == 2 && end < n->done[!side]) /* asked for after an error; from there on it has done nothing */
        n->done[!side] = end;
    advance(n, side, n->pfc_used ? min_time(end, watch) : end);
}

/* Lets the side that is behind catch up. */
static void make_level(net *n)
{
    uint32_t side = n->done[1] < n->done[0];
    if (!level(n))
        advance(n, side, n->done[!side]);
}

/* Runs what happens next when both sides are at the same time; NET_BUDGET: there is more to do. */
static net_status run_next(net *n, uint64_t until)
{
    uint64_t time = next_time(n, 0);
    if (n->sides == 2)
        time = min_time(time, next_time(n, 1));
    uint64_t call = next_call(n), next = min_time(time, call);
    if (n->paused && watch_after(n, n->now) <= min_time(next, until)) {
        n->now = n->last = watch_after(n, n->now);
        sample_until(n, n->now);
        n->failed = pfc_watch(n) < 0;
    } else if (next > until || next == TIME_NEVER) {
        if (until <= NET_MAX_TIME) {
            sample_until(n, until);
            n->now = n->last = until;
        }
        return next == TIME_NEVER ? NET_IDLE : NET_UNTIL;
    } else if (sample_until(n, next), call <= time) {
        n->now = n->last = call;
        n->events++;
        if (n->workers)
            n->workers->events++; /* of all: each counts it */
        if (workers_call_here(n))
            n->failed = n->ops->call(n, heap_pop(&n->calls).what) < 0;
        meet(n);
    } else {
        n->done[0] = n->done[1] = time;
        run_window(n, until);
    }
    return NET_BUDGET;
}

net_status net_run(net *n, uint64_t until, uint64_t budget)
{
    n->stop = n->deadlock = n->midway = false;
    if (!meet(n)) {
        n->failed = false;
        return NET_ERROR;
    }
    if (n->workers ? n->workers->all.late : n->late)
        return NET_WALL;
    uint64_t first = n->events;
    for (;;) {
        if (level(n)) {
            if (!n->sides) {
                net_find_sides(n);
                if (!meet(n)) { /* what is next was asked by side */
                    n->failed = false;
                    return NET_ERROR;
                }
            }
            net_status status = run_next(n, until);
            if (status != NET_BUDGET)
                return status;
        } else {
            run_window(n, until);
        }
        bool over = n->stop || n->events - first >= budget;
        if (over && !n->failed)
            make_level(n);
        if (n->failed) {
            n->failed = false;
            return NET_ERROR;
        }
        if (n->stop)
            return n->deadlock ? NET_DEADLOCK : NET_STOPPED;
        if (over)
            return NET_BUDGET;
    }
}
