/* Looks at paused queues now and then: which have stood still for too long, and which wait for each other. */
#include <stdlib.h>

#include "net.h"

/* A paused queue that is not empty. */
typedef struct suspect {
    net_port *port;
    uint32_t priority;
    bool stuck;
} suspect;

typedef struct suspects {
    suspect *list;
    uint32_t count, cap;
} suspects;

static void suspect_add(suspects *s, net_port *port, uint32_t priority)
{
    if (s->count == s->cap) {
        uint32_t cap = s->cap ? 2 * s->cap : 64;
        suspect *list = realloc(s->list, cap * sizeof *list);
        if (!list)
            return; /* then it is not reported */
        s->list = list;
        s->cap = cap;
    }
    s->list[s->count++] = (suspect){port, priority, true};
}

static uint64_t chain_bytes(const p4_packet *p, uint32_t from)
{
    uint64_t bytes = 0;
    for (; p; p = p->next)
        if (p->ingress_port == from)
            bytes += p->len;
    return bytes;
}

/* What a queue holds that came in at port `from`. */
static uint64_t held_of(const tm_queue *q, uint32_t from)
{
    if (!q->rounds)
        return chain_bytes(q->fifo.head, from);
    return from < q->rounds->count ? chain_bytes(q->rounds->from[from].fifo.head, from) : 0;
}

/* The stuck queue at `s`'s peer that holds packets which came from `s`, or NULL. */
static suspect *blocked_by(const suspects *all, const suspect *s)
{
    for (uint32_t i = 0; i < all->count; i++) {
        suspect *other = &all->list[i];
        if (other->stuck && other->port->node == s->port->peer->node && other->priority == s->priority
            && held_of(&other->port->tm.queues[other->priority], s->port->peer->tm.number))
            return other;
    }
    return NULL;
}

/* Whether the pause on `s` lasts even when all that is not stuck has drained. */
static bool stays_paused(const suspects *all, const suspect *s)
{
    net_port *peer = s->port->peer;
    if (!peer->node->sw || !(peer->tm.xoff >> s->priority & 1))
        return false;
    const tm_switch *t = &peer->node->tm;
    const tm_class *c = &peer->tm.pfc->classes[s->priority];
    uint64_t held = 0, in_switch = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        const suspect *other = &all->list[i];
        if (!other->stuck || other->port->node != peer->node)
            continue;
        const tm_queue *q = &other->port->tm.queues[other->priority];
        in_switch += q->bytes;
        if (other->priority == s->priority)
            held += held_of(q, peer->tm.number);
    }
    uint64_t drained = c->shared + c->headroom - held;
    uint64_t headroom = c->headroom > drained ? c->headroom - drained : 0;
    uint64_t used = in_switch < tm_shared_used(t) ? in_switch : tm_shared_used(t);
    return held && !tm_below_xon(t, peer->tm.pfc, held - headroom, headroom, used);
}

/* Reports one cycle among the stuck queues, each of which waits for another one. */
static void report_cycle(net *n, const suspects *all, suspect *from)
{
    uint32_t id = n->recorder.incident_count;
    suspect *at = from;
    for (uint32_t i = 0; i < all->count && at; i++) /* after this many steps we are on the cycle */
        at = blocked_by(all, at);
    if (!at || at->port->deadlocks >> at->priority & 1)
        return;
    suspect *first = at;
    do {
        record_incident(n, id, true, at->port, at->priority);
        at->port->deadlocks |= 1u << at->priority;
        at = blocked_by(all, at);
    } while (at && at != first);
    n->recorder.incident_count++;
    if (n->stop_on_deadlock)
        n->stop = n->deadlock = true;
}

static void find_deadlock(net *n, suspects *all)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < all->count; i++) {
            suspect *s = &all->list[i];
            if (s->stuck && !stays_paused(all, s)) {
                s->stuck = false;
                changed = true;
            }
        }
    }
    for (uint32_t i = 0; i < all->count; i++)
        if (all->list[i].stuck)
            report_cycle(n, all, &all->list[i]);
}

void pfc_watch(net *n)
{
    suspects all = {NULL, 0, 0};
    uint64_t now = n->now;
    for (uint32_t i = 0; i < 2 * n->link_count; i++) {
        net_port *port = n->ends[i];
        for (uint32_t j = 0; port->tm.paused && j < TM_PRIORITIES; j++) {
            if (!(port->tm.paused >> j & 1))
                continue;
            uint64_t lasted = now - port->tm.pfc->classes[j].paused_since_ns;
            if (lasted >= n->watch_interval_ns && port->tm.queues[j].packets)
                suspect_add(&all, port, j);
        }
    }
    find_deadlock(n, &all);
    for (uint32_t i = 0; i < all.count; i++) {
        net_port *port = all.list[i].port;
        uint32_t priority = all.list[i].priority;
        if (now - port->tm.pfc->classes[priority].paused_since_ns > n->storm_ns && !(port->storms >> priority & 1)) {
            record_incident(n, n->recorder.incident_count++, false, port, priority);
            port->storms |= 1u << priority;
        }
    }
    free(all.list);
}
