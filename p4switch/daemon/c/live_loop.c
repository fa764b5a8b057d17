/* The loop of a switch in real time: the order of events, and the time to wait for the next one. */
#include "live.h"

#include <poll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_A_ROUND 256 /* before sockets are written and other threads may take the lock */
#define MIN_REST_EVENTS 8  /* frames expected during a rest that make it worthwhile */
#define MAX_REST_EVENTS 128 /* this is a quarter of one port's ring */
#define NEVER LIVE_NEVER

static void record_lag(live *l, uint64_t lag_ns)
{
    int bucket = lag_ns ? 63 - __builtin_clzll(lag_ns) : 0;
    l->lag[bucket < LIVE_LAG_BUCKETS ? bucket : LIVE_LAG_BUCKETS - 1]++;
    l->lag_sum_ns += lag_ns;
    if (lag_ns > l->lag_max_ns)
        l->lag_max_ns = lag_ns;
}

bool live_catch_up(live *l, uint64_t until)
{
    for (int events = 0; events < EVENTS_A_ROUND; events++) {
        live_port *first = NULL;
        uint64_t time = until;
        bool arrival = false;
        for (uint32_t i = 0; i < l->count; i++) {
            live_port *port = l->ports[l->numbers[i]];
            if (port->arrival <= time && (!arrival || port->arrival < time)) {
                first = port;
                time = port->arrival;
                arrival = true;
            }
            if (port->tm.scheduled && live_link_free(port) <= time && (!first || live_link_free(port) < time)) {
                first = port;
                time = live_link_free(port);
                arrival = false;
            }
        }
        if (l->timer <= time) {
            l->now = l->timer > l->now ? l->timer : l->now;
            live_timer(l);
            l->events++;
            continue;
        }
        if (l->release <= time) {
            l->now = l->release > l->now ? l->release : l->now;
            live_release(l);
            l->events++;
            continue;
        }
        if (l->next_change < l->change_count && l->changes[l->next_change].time <= time) {
            live_apply_change(l, &l->changes[l->next_change++]);
            l->events++;
            continue;
        }
        if (!first)
            return true;
        l->events++;
        if (time > l->now)
            l->now = time;
        if (arrival) {
            (first->loops ? live_return : live_receive)(l, first);
            continue;
        }
        first->tm.scheduled = false;
        live_serve(l, first, true);
        live_serve_touched(l);
    }
    return false;
}

/* Frames whose last bit has reached the other end of the link. */
static void deliver_due(live *l, uint64_t until)
{
    if (l->holds)
        return;
    for (uint32_t i = 0; i < l->count; i++) {
        live_port *port = l->ports[l->numbers[i]];
        wire *w = &port->wire;
        while (!port->loops && !wire_empty(w) && wire_first(w)->time <= until) {
            struct flight *flight = &w->slots[w->head++ & w->mask];
            record_lag(l, until - flight->time);
            live_leave(l, port, flight->frame);
        }
    }
}

/* The time of the next event without an arriving frame. A frame that waits for its link may be taken late, as long
 * as it leaves in time. */
static uint64_t next_due(const live *l)
{
    uint64_t time = l->timer < l->release ? l->timer : l->release;
    for (uint32_t i = 0; i < l->count; i++) {
        const live_port *port = l->ports[l->numbers[i]];
        const wire *w = &port->wire;
        if (port->tm.scheduled && live_link_free(port) + port->delay_ns / 2 < time)
            time = live_link_free(port) + port->delay_ns / 2;
        if (!l->holds && !wire_empty(w) && wire_first(w)->time < time)
            time = wire_first(w)->time;
        if (live_pfc_next(port) < time)
            time = live_pfc_next(port);
    }
    if (l->next_change < l->change_count && l->changes[l->next_change].time < time)
        time = l->changes[l->next_change].time;
    return time;
}

/* The present time. The kernel's clock, which stamps frames, is read at the same time because it may be set. */
static uint64_t read_clocks(live *l)
{
    uint64_t now = live_clock(l);
    l->kernel_origin = live_read_clock(CLOCK_REALTIME) - now;
    l->clocks_read = now;
    return now;
}

/* One round. Returns false if there is more to do at once. */
static bool work(live *l)
{
    uint64_t now = read_clocks(l);
    for (uint32_t i = 0; i < l->count; i++)
        if (l->ports[l->numbers[i]]->socket.fd >= 0)
            live_peek(l, l->ports[l->numbers[i]]);
    bool done = live_catch_up(l, now);
    if (done && now > l->now)
        l->now = now;
    for (uint32_t i = 0; done && i < l->count; i++)
        if (l->ports[l->numbers[i]]->tm.pfc)
            live_pfc_due(l, l->ports[l->numbers[i]], now);
    deliver_due(l, live_clock(l));
    for (uint32_t i = 0; i < l->count; i++)
        if (l->ports[l->numbers[i]]->batched)
            live_flush(l, l->ports[l->numbers[i]]);
    if (l->cpu_first || l->reported)
        pthread_cond_broadcast(&l->news);
    return done;
}

/* How long coming frames should wait in their rings for others, like interrupt coalescing of network cards. 0: so
 * little happens that each frame is served at once. */
static uint64_t rest(const live *l, uint64_t now)
{
    uint64_t events = l->events - l->waited_events, elapsed = now - l->waited_at;
    if (events * l->rest_ns < MIN_REST_EVENTS * elapsed)
        return 0;
    uint64_t enough = events ? MAX_REST_EVENTS * elapsed / events : 0;
    return enough < l->rest_ns ? enough : l->rest_ns;
}

static void wait_for_work(const live *l, struct pollfd *fds, uint32_t count, uint64_t due)
{
    struct timespec timeout = {0, 0};
    uint64_t now = live_clock(l);
    if (due != NEVER && due > now) {
        timeout.tv_sec = (time_t)((due - now) / 1000000000u);
        timeout.tv_nsec = (long)((due - now) % 1000000000u);
    }
    if (ppoll(fds, count, due == NEVER ? NULL : &timeout, NULL) <= 0)
        return;
    uint64_t value;
    if (fds[0].revents && read(l->wakeup, &value, sizeof value) < 0)
        return;
    for (uint32_t i = 1; i < count; i++) {
        int error;
        socklen_t len = sizeof error;
        /* the interface went down: the error has to be read, or poll would never wait again */
        if (fds[i].revents & POLLERR)
            getsockopt(fds[i].fd, SOL_SOCKET, SO_ERROR, &error, &len);
    }
}

void live_loop(live *l)
{
    struct pollfd fds[LIVE_MAX_PORTS + 1];
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        while (__atomic_load_n(&l->wanted, __ATOMIC_SEQ_CST) && !l->stop)
            pthread_cond_wait(&l->turn, &l->lock);
        uint64_t events = l->events;
        if (!work(l))
            continue;
        uint64_t due = next_due(l), now = live_clock(l);
        uint32_t count = 1;
        fds[0] = (struct pollfd){l->wakeup, POLLIN, 0};
        uint64_t resting = rest(l, now);
        if (resting)
            due = now + resting < due ? now + resting : due;
        else if (l->events != events) /* more frames may have arrived in the meantime */
            continue;
        l->waited_at = now;
        l->waited_events = l->events;
        for (uint32_t i = 0; !resting && i < l->count; i++)
            if (l->ports[l->numbers[i]]->socket.fd >= 0)
                fds[count++] = (struct pollfd){l->ports[l->numbers[i]]->socket.fd, POLLIN, 0};
        pthread_mutex_unlock(&l->lock);
        wait_for_work(l, fds, count, due);
        pthread_mutex_lock(&l->lock);
    }
    pthread_mutex_unlock(&l->lock);
}
