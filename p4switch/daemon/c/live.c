#include "live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define NEVER LIVE_NEVER
#define REST_NS 500000 /* sleeping costs as much as a dozen frames */

uint64_t live_read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t live_clock(const live *l)
{
    return live_read_clock(CLOCK_MONOTONIC) - l->origin;
}

static p4_tick ticks(const live *l)
{
    return tm_ticks(&l->tm, l->now);
}

/* -- frames ------------------------------------------------------------------------------------------------------ */

p4_frame *live_frame_new(live *l, uint32_t cap)
{
    p4_frame *f = pool_get(&l->pool, cap);
    f->next = NULL;
    f->tag = 0;
    return f;
}

void live_frame_free(live *l, p4_frame *f)
{
    pool_put(&l->pool, f);
}

/* -- requests of the pipeline ---------------------------------------------------------------------------------- */

static p4_frame *env_frame_new(void *ctx, uint32_t cap) { return live_frame_new(ctx, cap); }
static void env_frame_free(void *ctx, p4_frame *frame) { live_frame_free(ctx, frame); }

static void count_drop(live *l, uint32_t port, p4_drop_reason reason)
{
    live_port *at = port < LIVE_MAX_PORTS ? l->ports[port] : NULL;
    (at ? at->drops : l->lost_drops)[reason]++;
}

static void env_drop(void *ctx, uint32_t port, uint32_t tag, uint32_t len, p4_drop_reason reason)
{
    (void)tag, (void)len;
    count_drop(ctx, port, reason);
}

/* Records a changed depth. Of several changes in one interval the last one is kept. */
static void log_depth(const live *l, live_port *port)
{
    live_log *log = &port->log;
    if (!l->log_interval || port->tm.bytes == (log->count ? log->entries[log->count - 1].bytes : 0))
        return;
    uint64_t interval = l->now / l->log_interval;
    if (!log->count || log->entries[log->count - 1].time / l->log_interval != interval) {
        if (log->count == log->room) {
            size_t room = log->room ? 2 * log->room : 256;
            log->entries = must_grow(log->entries, room, sizeof *log->entries);
            log->room = room;
        }
        log->count++;
    }
    log->entries[log->count - 1] = (struct live_depth){l->now, port->tm.bytes};
}

/* Runs egress for a packet to a port that does not exist, and drops what would leave. */
static void pass_without_port(live *l, p4_packet *packet, uint32_t number)
{
    tm_pass(&l->tm, packet, l->now);
    p4_frame *frame = p4_switch_transmit(l->sw, packet, ticks(l));
    if (frame) {
        count_drop(l, number, P4_DROP_NO_PORT);
        live_frame_free(l, frame);
    }
}

static void env_enqueue(void *ctx, p4_packet *packet)
{
    live *l = ctx;
    live_port *out;
    uint32_t number;
    p4_drop_reason reason;
    p4_packet *lost;
    packet->pfc_class = l->arriving;
    do {
        number = packet->egress_port;
        out = number < LIVE_MAX_PORTS ? l->ports[number] : NULL;
        lost = tm_admit(&l->tm, out ? &out->tm : NULL, out && !out->down, packet, l->now, &reason);
    } while (lost == packet && reason == P4_DROP_BUFFER && p4_switch_deflect(l->sw, &packet));
    if (!out) {
        pass_without_port(l, packet, number);
        return;
    }
    if (lost != packet)
        log_depth(l, out);
    for (p4_packet *next; lost; lost = next) {
        next = lost->next;
        count_drop(l, number, reason);
        p4_packet_free(l->sw, lost);
    }
}

static void env_digest(void *ctx, p4_switch *of, uint32_t list_id, const uint8_t *data, size_t len)
{
    live *l = ctx;
    p4_switch_learn(of, list_id, data, len);
    l->reported = true;
}

static p4_tick env_now(void *ctx)
{
    live *l = ctx;
    return tm_ticks(&l->tm, live_clock(l));
}

static void env_set_timer(void *ctx, p4_tick at)
{
    live *l = ctx;
    uint64_t time = at < LIVE_NEVER / l->tm.tick_ns ? at * l->tm.tick_ns : LIVE_NEVER;
    l->timer = time < l->timer ? time : l->timer;
}

/* Does what the pipeline wants to be done by now. */
void live_timer(live *l)
{
    l->timer = LIVE_NEVER;
    p4_switch_timer(l->sw, ticks(l));
    live_serve_touched(l);
}

static int env_stop_queue(void *ctx, uint32_t port, uint32_t queue, int stopped)
{
    live *l = ctx;
    live_port *out = port < LIVE_MAX_PORTS ? l->ports[port] : NULL;
    if (out)
        tm_stop_queue(&out->tm, queue, stopped);
    return out != NULL;
}

static int env_schedule(void *ctx, uint32_t port, const p4_schedule *schedule)
{
    live *l = ctx;
    return port < LIVE_MAX_PORTS && l->ports[port] && tm_set_schedule(&l->ports[port]->tm, schedule, l->now);
}

static void hold(tm_port *port, uint64_t until)
{
    live *l = live_port_of(port)->owner;
    l->release = until < l->release ? until : l->release;
}

/* Restarts the queues whose token buckets have tokens by now. */
void live_release(live *l)
{
    l->release = LIVE_NEVER;
    for (uint32_t i = 0; i < l->count; i++) {
        uint64_t next = tm_release(&l->ports[l->numbers[i]]->tm, l->now);
        l->release = next < l->release ? next : l->release;
    }
    live_serve_touched(l);
}

static void queue_changed(tm_port *port, const p4_packet *packet, uint32_t queue, uint32_t cells)
{
    const live *l = live_port_of(port)->owner;
    p4_switch_queue_changed(l->sw, packet, queue, cells, tm_ticks(&l->tm, l->now));
}

static void env_log(void *ctx, int failed, const char *text)
{
    live *l = ctx;
    if (l->env_before.log)
        l->env_before.log(l->env_before.ctx, failed, text);
    l->reported = true;
}

static void env_trace(void *ctx, const p4_trace_event *event)
{
    live *l = ctx;
    l->env_before.trace(l->env_before.ctx, event);
    l->reported = true;
}

/* -- sending ----------------------------------------------------------------------------------------------------- */

static bool pfc_due(const live_port *port)
{
    return !port->down && tm_pfc_due(&port->tm);
}

static void touch(live *l, live_port *port)
{
    port->touched = true;
    port->next_touched = NULL;
    if (l->touched)
        l->touched_last->next_touched = port;
    else
        l->touched = port;
    l->touched_last = port;
}

void live_touch(tm_port *tm)
{
    live_port *port = live_port_of(tm);
    if (tm->scheduled || tm->serving || port->touched)
        return;
    if (live_link_free(port) > port->owner->now)
        tm->scheduled = true; /* the loop checks it when the link is free */
    else
        touch(port->owner, port);
}

static void to_cpu(live *l, p4_frame *frame)
{
    if (l->cpu_count == LIVE_CPU_FRAMES) {
        l->cpu_dropped++;
        live_frame_free(l, frame);
        return;
    }
    frame->next = NULL;
    *l->cpu_last = frame;
    l->cpu_last = &frame->next;
    l->cpu_count++;
}

void live_leave(live *l, live_port *port, p4_frame *frame)
{
    if (port->socket.fd < 0) {
        to_cpu(l, frame);
        return;
    }
    port->batch[port->batched++] = frame;
    if (port->batched == LIVE_BATCH)
        live_flush(l, port);
}

static void send_frame(live *l, live_port *port, p4_frame *frame, bool contiguous)
{
    uint64_t end = l->now;
    if (port->tm.link.rate)
        end = link_send(&port->tm.link, l->now, contiguous, frame->wire_len);
    bool pfc = port->chance.loss && pfc_is_frame(frame->data, frame->data_len);
    if (link_loses(&port->chance)) {
        if (pfc)
            port->pfc_sent--;
        else
            port->drops[P4_DROP_LINK_LOSS]++;
        live_frame_free(l, frame);
        return;
    }
    port->tx_packets++;
    port->tx_bytes += frame->wire_len;
    end += port->delay_ns;
    if (end < port->least_ns)
        end = port->least_ns;
    if (port->loops && wire_empty(&port->wire))
        port->arrival = end;
    if (port->loops || end > l->now)
        wire_push(&port->wire, NULL, end, frame);
    else
        live_leave(l, port, frame);
}

void live_serve(live *l, live_port *port, bool contiguous)
{
    tm_port *tm = &port->tm;
    tm->serving = true;
    for (;;) {
        p4_frame *frame = NULL;
        if (pfc_due(port)) {
            frame = live_pfc_frame(l, port);
        } else {
            p4_packet *packet = tm_dequeue(tm, l->now);
            if (!packet)
                break;
            log_depth(l, port);
            l->arriving = packet->pfc_class;
            frame = p4_switch_transmit(l->sw, packet, ticks(l));
        }
        if (frame) {
            send_frame(l, port, frame, contiguous);
            if (port->tm.link.rate)
                break;
        }
    }
    tm->serving = false;
    if (tm_ready(tm) || pfc_due(port))
        live_touch(tm);
}

void live_serve_touched(live *l)
{
    for (live_port *port; (port = l->touched);) {
        l->touched = port->next_touched;
        port->touched = false;
        if (live_link_free(port) > l->now)
            live_touch(&port->tm);
        else
            live_serve(l, port, false);
    }
}

void live_arrive(live *l, live_port *port, p4_frame *frame)
{
    if (!l->sw) {
        l->no_pipeline++;
        live_frame_free(l, frame);
        return;
    }
    l->arriving = tm_class_of(&l->tm, frame);
    p4_switch_receive(l->sw, frame, port->tm.number, ticks(l));
    live_serve_touched(l);
}

/* The first frame on the wire of a port that loops arrives. */
void live_return(live *l, live_port *port)
{
    wire *w = &port->wire;
    p4_frame *frame = w->slots[w->head++ & w->mask].frame;
    port->arrival = wire_empty(w) ? NEVER : wire_first(w)->time;
    port->rx_packets++;
    port->rx_bytes += frame->wire_len;
    live_arrive(l, port, frame);
}

/* -- links that change --------------------------------------------------------------------------------------------- */

/* Frames that wait for the link or are on it count as dropped at its sending end, and as never sent. */
static void lose_all(live *l, live_port *port)
{
    for (p4_packet *p; (p = tm_flush(&port->tm, l->now));) {
        port->drops[P4_DROP_LINK_DOWN]++;
        p4_packet_free(l->sw, p);
    }
    log_depth(l, port);
    for (wire *w = &port->wire; !wire_empty(w); w->head++) {
        p4_frame *frame = wire_first(w)->frame;
        port->tx_packets--;
        port->tx_bytes -= frame->wire_len;
        if (pfc_is_frame(frame->data, frame->data_len))
            port->pfc_sent--;
        else
            port->drops[P4_DROP_LINK_DOWN]++;
        live_frame_free(l, frame);
    }
    if (port->loops)
        port->arrival = NEVER;
}

void live_apply_change(live *l, const live_change *c)
{
    if (c->time > l->now)
        l->now = c->time;
    live_port *port = c->port;
    uint64_t last = live_link_free(port) + port->delay_ns;
    if (c->delay_ns < port->delay_ns && last > port->least_ns)
        port->least_ns = last;
    live_set_link(l, port, c->rate_bps, c->delay_ns);
    if (!port->chance.state)
        port->chance = link_chance_of(c->loss, c->seed);
    port->chance.loss = link_loss(c->loss);
    if (c->down && !port->down) {
        lose_all(l, port);
        pfc_forget(&port->tm, l->now);
    }
    port->down = c->down;
    live_touch(&port->tm);
    live_serve_touched(l);
}

int live_change_link(live *l, const live_change *change)
{
    live_change *list = realloc(l->changes, (l->change_count + 1) * sizeof *list);
    if (!list)
        return -1;
    l->changes = list;
    uint32_t i = l->change_count++;
    for (; i > l->next_change && list[i - 1].time > change->time; i--)
        list[i] = list[i - 1];
    list[i] = *change;
    return 0;
}

/* -- other threads ------------------------------------------------------------------------------------------ */

void live_wake(live *l)
{
    uint64_t one = 1;
    if (write(l->wakeup, &one, sizeof one) < 0)
        return; /* it is already awake */
}

void live_lock(live *l)
{
    __atomic_add_fetch(&l->wanted, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&l->lock);
}

void live_unlock(live *l)
{
    if (!__atomic_sub_fetch(&l->wanted, 1, __ATOMIC_SEQ_CST))
        pthread_cond_broadcast(&l->turn);
    pthread_mutex_unlock(&l->lock);
}

/* -- building ---------------------------------------------------------------------------------------------------- */

live *live_new(uint32_t tick_ns, uint32_t cell_bytes, int32_t framing_bytes, uint64_t origin)
{
    live *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    pthread_mutexattr_t nested;
    pthread_condattr_t monotonic;
    pthread_mutexattr_init(&nested);
    pthread_mutexattr_settype(&nested, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&l->lock, &nested);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&l->turn, &monotonic);
    pthread_cond_init(&l->news, &monotonic);
    l->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->wakeup < 0) {
        free(l);
        return NULL;
    }
    l->tm = (tm_switch){.tick_ns = tick_ns, .cell_bytes = cell_bytes, .alpha = -1, .buffer_bytes = TM_NO_LIMIT,
                        .wake = live_touch, .hold = hold};
    l->limits = TM_UNLIMITED;
    l->framing_bytes = framing_bytes;
    l->cpu_last = &l->cpu_first;
    l->timer = l->release = LIVE_NEVER;
    l->origin = origin ? origin : live_read_clock(CLOCK_MONOTONIC);
    return l;
}

/* Modelled links have a quarter of their delay as slack; other links only have to be fast enough. */
static void set_rest(live *l)
{
    l->rest_ns = REST_NS;
    for (uint32_t i = 0; i < l->count; i++) {
        const live_port *port = l->ports[l->numbers[i]];
        if ((port->tm.link.rate || port->delay_ns) && port->delay_ns / 4 < l->rest_ns)
            l->rest_ns = port->delay_ns / 4;
    }
}

live_port *live_add_port(live *l, uint32_t number, const char *interface, uint32_t ring_slots, live_sender sender,
                         bool loops)
{
    if (number >= LIVE_MAX_PORTS || l->ports[number]) {
        errno = EEXIST;
        return NULL;
    }
    live_port *port = calloc(1, sizeof *port);
    if (!port)
        return NULL;
    port->owner = l;
    port->framing_bytes = l->framing_bytes;
    port->socket.fd = -1;
    port->arrival = NEVER;
    port->loops = loops;
    l->loops |= loops;
    int xdp_error = 0;
    if (interface) {
        strncpy(port->name, interface, sizeof port->name - 1);
        if (live_open(&port->socket, interface, ring_slots) < 0) {
            free(port);
            return NULL;
        }
        if (sender != LIVE_SEND_PACKET)
            port->xdp = live_xdp_open(interface, port->socket.mtu);
        xdp_error = port->xdp ? 0 : errno;
        if (sender == LIVE_SEND_XDP && !port->xdp) {
            live_close(&port->socket);
            free(port);
            errno = xdp_error;
            return NULL;
        }
    }
    tm_port_init(&port->tm, &l->tm, number);
    if (tm_set_limits(&port->tm, &l->limits) < 0 || tm_add_port(&l->tm, &port->tm) < 0) {
        tm_port_destroy(&port->tm);
        live_xdp_close(port->xdp);
        live_close(&port->socket);
        free(port);
        errno = ENOMEM;
        return NULL;
    }
    l->ports[number] = port;
    l->numbers[l->count++] = number;
    set_rest(l);
    errno = xdp_error;
    return port;
}

int live_set_link(live *l, live_port *port, uint64_t rate_bps, uint64_t delay_ns)
{
    link_rate *rate = rate_bps ? link_rate_of(&l->rates, rate_bps, port->framing_bytes) : NULL;
    if (rate_bps && !rate)
        return -1;
    link_set_rate(&port->tm.link, rate);
    port->delay_ns = delay_ns;
    set_rest(l);
    return 0;
}

void live_set_switch(live *l, p4_switch *sw)
{
    if (l->sw) {
        for (uint32_t i = 0; i < l->count; i++) {
            tm_port *port = &l->ports[l->numbers[i]]->tm;
            for (p4_packet *p; (p = tm_flush(port, l->now));)
                p4_packet_free(l->sw, p);
            tm_set_schedule(port, NULL, l->now);
        }
        p4_switch_set_env(l->sw, &l->env_before);
    }
    l->sw = sw;
    l->timer = LIVE_NEVER;
    if (sw) {
        l->tm.packet_bytes = p4_switch_packet_bytes(sw);
        l->tm.changed = p4_switch_watches_queues(sw) ? queue_changed : NULL;
        l->env_before = *p4_switch_get_env(sw);
        p4_env env = {.ctx = l, .loops = l->loops, .frame_new = env_frame_new, .frame_free = env_frame_free,
                      .enqueue = env_enqueue, .drop = env_drop, .digest = env_digest,
                      .stop_queue = env_stop_queue, .schedule = env_schedule, .now = env_now,
                      .set_timer = env_set_timer, .log = env_log,
                      .trace = l->env_before.trace ? env_trace : NULL};
        p4_switch_set_env(sw, &env);
    }
}

int live_inject(live *l, uint32_t number, const uint8_t *data, size_t len)
{
    live_port *port = number < LIVE_MAX_PORTS ? l->ports[number] : NULL;
    if (!port) {
        errno = ENODEV;
        return -1;
    }
    p4_frame *frame = live_frame_new(l, (uint32_t)len);
    frame->wire_len = frame->data_len = (uint32_t)len;
    memcpy(frame->data, data, len);
    uint64_t now = live_clock(l);
    if (live_catch_up(l, now) && now > l->now)
        l->now = now;
    live_arrive(l, port, frame);
    live_wake(l);
    return 0;
}

void live_free(live *l)
{
    live_set_switch(l, NULL);
    for (uint32_t i = 0; i < l->count; i++) {
        live_port *port = l->ports[l->numbers[i]];
        for (wire *w = &port->wire; !wire_empty(w); w->head++)
            live_frame_free(l, wire_first(w)->frame);
        for (uint32_t j = 0; j < port->batched; j++)
            live_frame_free(l, port->batch[j]);
        wire_free(&port->wire);
        free(port->log.entries);
        live_xdp_close(port->xdp);
        live_close(&port->socket);
        tm_port_destroy(&port->tm);
        free(port);
    }
    for (p4_frame *f; (f = l->cpu_first);) {
        l->cpu_first = f->next;
        live_frame_free(l, f);
    }
    pool_free_all(&l->pool);
    link_rates_free(l->rates);
    free(l->changes);
    free(l->tm.ports);
    close(l->wakeup);
    pthread_cond_destroy(&l->turn);
    pthread_cond_destroy(&l->news);
    pthread_mutex_destroy(&l->lock);
    free(l);
}
