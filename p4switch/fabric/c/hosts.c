/* Events at a host: frames that arrive, frames that it sends, times at which it wants to be called. */
#include "hosts.h"

#include "pauses.h"
#include "prefetch.h"
#include "sending.h"

void net_host_wake_at(net *n, node *host, uint64_t time)
{
    if (host->away)
        return;
    host->wake_ns = time;
    if (time < host->hint_ns && time <= NET_MAX_TIME) {
        host->hint_ns = n->independent ? TIME_NEVER : time;
        net_host_due(n, host->place, time);
    }
}

/* Extends [first, last] to `now`, because independent hosts do not run in order of time. */
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
    frame->tag = flows_parse(frame, &key) ? flows_recent_tag(&n->flows, &host->recent, key) : 0;
    if (UNLIKELY(n->recorder.tracing) && frame->tag)
        frame->tag = record_start(n, host, frame, key);
    bool pfc = frame_is_pfc(frame);
    if (pfc) {
        n->ledger.pfc_sent++;
    } else {
        n->ledger.entered++;
        flow *row = flows_row(&n->flows, frame->tag);
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
    net_host_due(n, host->place, ready);
}

/* Handles a free link of a host: sends a frame if it has one, or finds out when to ask again. */
static int serve_host(net *n, node *host, bool contiguous)
{
    p4_frame *frame = NULL;
    uint64_t when = 0;
    for (int i = 0; i < 2; i++) { /* a second time if new data was posted in between */
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
    if (n->independent && n->phase == PHASE_HOSTS && host != n->current) { /* its time may be ahead or behind */
        net_host_wake_at(n, host, min_time(host->wake_ns, n->window_end));
        return 0;
    }
    if (n->midway) { /* its time may be behind */
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
        flow *row = flows_row(&n->flows, frame->tag);
        row->delivered_packets++;
        row->delivered_bytes += frame->wire_len;
        span(&row->first_delivered_ns, &row->last_delivered_ns, n->now);
        if (UNLIKELY(n->recorder.tracing))
            record_hop(n, host, HOP_RECEIVE, 0, -1, 0, frame->wire_len, frame->tag);
    }
    n->third_line |= sizeof *frame + frame->data_len > FRAME_FETCHED;
    int status = n->ops->receive(n, host, frame);
    pool_put(&n->pool, frame);
    if (status < 0) {
        net_host_wake_at(n, host, n->now);
        return -1;
    }
    return ask_host(n, host);
}

/* Runs all events at a host before `end`, or until it requests a stop. At one instant: calls, arrivals, the rest. */
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
            n->hosts.next[host->place].time = min_time(time, host->hold_ns);
        if (time >= end || time >= host->hold_ns || (n->stop && !n->independent)) {
            n->held |= host->hold_ns < end;
            n->on_brink |= host->hold_ns == end;
            return 0;
        }
        n->now = time;
        if (n->last < time)
            n->last = time;
        n->events++;
        if (time == call) {
            status = n->ops->call(n, heap_pop(&host->events).what);
        } else if (time == arrival) {
            p4_frame *frame = wire_first(in)->frame;
            in->head++;
            if (in->tail - in->head > HOST_FRAMES_AHEAD)
                prefetch_copied(n, wire_at(in, HOST_FRAMES_AHEAD)->frame);
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

void net_hold(net *n, node *host, uint64_t time)
{
    if (host->away)
        return;
    host->hold_ns = time;
    net_host_due(n, host->place, time);
}

void net_turn(net *n, node *host, uint64_t time)
{
    n->current = host;
    n->now = time;
    if (n->last < time)
        n->last = time;
}

int net_go_on(net *n, node *host)
{
    return host->away ? 0 : run_host(n, host, n->window_end);
}

int net_reports_after(net *n, uint64_t *time)
{
    uint64_t first = TIME_NEVER;
    for (uint32_t i = 0; i < n->hosts.count; i++) {
        node *host = n->hosts.list[i];
        if (n->hosts.next[i].time >= n->window_end || host->away)
            continue;
        uint64_t end = min_time(first, n->window_end);
        first = min_time(first, heap_time(&host->events));
        const wire *in = &host->port->peer->out;
        for (uint32_t later = 0; later < in->tail - in->head && wire_at(in, later)->time < end; later++) {
            int may = n->ops->may_report(n, host, wire_at(in, later)->frame);
            if (may < 0)
                return -1;
            if (may) {
                first = min_time(first, wire_at(in, later)->time);
                break;
            }
        }
    }
    *time = first;
    return 0;
}

int net_settle(net *n, uint64_t end, bool again)
{
    int status = n->ops->settle(n, end, again);
    n->waiting = status > 0;
    n->on_brink = false;
    return status < 0 ? -1 : 0;
}

int net_run_hosts(net *n, uint32_t side)
{
    n->phase = PHASE_HOSTS;
    if (n->independent) {
        uint64_t end = n->window_end;
        for (uint32_t i = net_next_place(&n->hosts, 0, side, end); i < n->hosts.count;
             i = net_next_place(&n->hosts, i + 1, side, end)) {
            prefetch_hosts(n, i + 1);
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
