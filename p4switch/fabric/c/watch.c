/* Periodic check of paused queues: which have been paused for too long, and which wait for each other. */
#include <stdlib.h>
#include <string.h>

#include "exchange.h"
#include "pauses.h"

/* A paused queue that is not empty, and how much of it arrived at which port. */
typedef struct suspect {
    net_port *port;
    uint32_t priority;
    uint64_t bytes, since_ns;
    uint64_t first_held, held_count;
    bool stuck;
} suspect;

typedef struct held {
    uint64_t port, bytes;
} held;

typedef struct suspects {
    suspect *list;
    uint32_t count;
    buffer rows, held; /* suspect, held */
} suspects;

/* A suspect with its held bytes, or a port that has paused its peer, in the form sent to other workers. */
typedef struct far_suspect {
    uint32_t end, priority;
    uint64_t bytes, since_ns;
    uint8_t deadlocks, storms;
} far_suspect;

typedef struct far_holder {
    uint32_t end;
    uint8_t xoff;
    uint64_t used_bytes, headroom_used_bytes, shared[TM_PRIORITIES], headroom[TM_PRIORITIES];
} far_holder;

static void held_add(suspects *all, uint64_t first, uint32_t port, uint64_t bytes)
{
    held *list = (held *)(void *)all->held.data;
    for (uint64_t i = first; i < all->held.len / sizeof *list; i++)
        if (list[i].port == port) {
            list[i].bytes += bytes;
            return;
        }
    *(held *)buffer_add(&all->held, sizeof(held)) = (held){port, bytes};
}

static void held_add_chain(suspects *all, uint64_t first, const p4_packet *p)
{
    for (; p; p = p->next)
        held_add(all, first, p->ingress_port, p->len);
}

static void suspect_add(suspects *all, net_port *port, uint32_t priority)
{
    const tm_queue *q = &port->tm.queues[priority];
    uint64_t first = all->held.len / sizeof(held);
    if (!q->rounds)
        held_add_chain(all, first, q->fifo.head);
    for (uint32_t i = 0; q->rounds && i < q->rounds->count; i++)
        held_add_chain(all, first, q->rounds->from[i].fifo.head);
    *(suspect *)buffer_add(&all->rows, sizeof(suspect)) = (suspect){
        port, priority, q->bytes, port->tm.pfc->classes[priority].paused_since_ns, first,
        all->held.len / sizeof(held) - first, true,
    };
}

/* The bytes of a queue that arrived at port `from`. */
static uint64_t held_of(const suspects *all, const suspect *s, uint32_t from)
{
    const held *list = (const held *)(const void *)all->held.data + s->first_held;
    for (uint64_t i = 0; i < s->held_count; i++)
        if (list[i].port == from)
            return list[i].bytes;
    return 0;
}

/* The stuck queue at `s`'s peer that holds packets from `s`, or NULL. */
static suspect *blocked_by(const suspects *all, const suspect *s)
{
    for (uint32_t i = 0; i < all->count; i++) {
        suspect *other = &all->list[i];
        if (other->stuck && other->port->node == s->port->peer->node && other->priority == s->priority
            && held_of(all, other, s->port->peer->tm.number))
            return other;
    }
    return NULL;
}

/* Whether the pause on `s` lasts even when all queues that are not stuck have drained. */
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
        in_switch += other->bytes;
        if (other->priority == s->priority)
            held += held_of(all, other, peer->tm.number);
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

/* -- with other workers ------------------------------------------------------------------------------------------ */

static uint32_t end_of(const net_port *port)
{
    return 2 * port->link + port->direction;
}

static void tell_of_suspects(net *n, const suspects *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        const suspect *s = &all->list[i];
        far_suspect report = {end_of(s->port), s->priority, s->bytes, s->since_ns, s->port->deadlocks, s->port->storms};
        workers_say_others(n->workers, WORD_SUSPECT, &report, sizeof report);
        workers_say_others(n->workers, WORD_HELD, (const held *)(const void *)all->held.data + s->first_held,
                           s->held_count * sizeof(held));
    }
    EACH_END(n, port) {
        if (!port->tm.xoff)
            continue;
        const tm_switch *tm = &port->node->tm;
        far_holder report = {end_of(port), port->tm.xoff, tm->used_bytes, tm->headroom_used_bytes, {0}, {0}};
        for (int j = 0; j < TM_PRIORITIES; j++) {
            report.shared[j] = port->tm.pfc->classes[j].shared;
            report.headroom[j] = port->tm.pfc->classes[j].headroom;
        }
        workers_say_others(n->workers, WORD_HOLDER, &report, sizeof report);
    }
}

/* Adds the contents of others' ports; afterwards removes them again. */
static void set_holder(net *n, const far_holder *report)
{
    net_port *port = n->ends[report->end];
    port->tm.xoff = report->xoff;
    port->node->tm.used_bytes = report->used_bytes;
    port->node->tm.headroom_used_bytes = report->headroom_used_bytes;
    for (int j = 0; j < TM_PRIORITIES; j++) {
        port->tm.pfc->classes[j].shared = report->shared[j];
        port->tm.pfc->classes[j].headroom = report->headroom[j];
    }
}

static void hear_of_suspects(net *n, suspects *all)
{
    for (uint32_t from = 0; from < n->workers->count; from++) {
        uint64_t at = 0;
        for (const word *next; (next = workers_next_word(workers_all_of(&n->workers->watched[from]), &at));) {
            if (next->kind == WORD_HOLDER) {
                set_holder(n, (const far_holder *)(const void *)(next + 1));
            } else if (next->kind == WORD_SUSPECT) {
                const far_suspect *report = (const far_suspect *)(const void *)(next + 1);
                const word *held_by = workers_next_word(workers_all_of(&n->workers->watched[from]), &at);
                net_port *port = n->ends[report->end];
                port->deadlocks = report->deadlocks;
                port->storms = report->storms;
                *(suspect *)buffer_add(&all->rows, sizeof(suspect)) = (suspect){
                    port, report->priority, report->bytes, report->since_ns, all->held.len / sizeof(held),
                    held_by->bytes / sizeof(held), true,
                };
                memcpy(buffer_add(&all->held, held_by->bytes), held_by + 1, held_by->bytes);
            }
        }
    }
}

static void forget_holders(net *n)
{
    for (uint32_t from = 0; from < n->workers->count; from++) {
        uint64_t at = 0;
        for (const word *next; (next = workers_next_word(workers_all_of(&n->workers->watched[from]), &at));)
            if (next->kind == WORD_HOLDER)
                set_holder(n, &(far_holder){.end = ((const far_holder *)(const void *)(next + 1))->end});
        n->workers->watched[from].len = 0;
    }
}

static int by_end_and_priority(const void *a, const void *b)
{
    const suspect *x = a, *y = b;
    uint32_t p = end_of(x->port), q = end_of(y->port);
    return p != q ? (p < q ? -1 : 1) : x->priority < y->priority ? -1 : x->priority > y->priority;
}

static void list_suspects(suspects *all)
{
    all->list = (suspect *)(void *)all->rows.data;
    all->count = (uint32_t)(all->rows.len / sizeof *all->list);
}

/* The suspects of all workers, in order. */
static int share_suspects(net *n, suspects *all)
{
    tell_of_suspects(n, all);
    if (workers_meet(n) < 0)
        return -1;
    hear_of_suspects(n, all);
    list_suspects(all);
    if (all->count)
        qsort(all->list, all->count, sizeof *all->list, by_end_and_priority);
    return 0;
}

/* -- the watch --------------------------------------------------------------------------------------------------- */

static void judge(net *n, suspects *all)
{
    find_deadlock(n, all);
    for (uint32_t i = 0; i < all->count; i++) {
        net_port *port = all->list[i].port;
        uint32_t priority = all->list[i].priority;
        if (n->now - all->list[i].since_ns > n->storm_ns && !(port->storms >> priority & 1)) {
            record_incident(n, n->recorder.incident_count++, false, port, priority);
            port->storms |= 1u << priority;
        }
    }
}

int pfc_watch(net *n)
{
    suspects all = {.count = 0};
    EACH_END(n, port) {
        for (uint32_t j = 0; port->tm.paused && j < TM_PRIORITIES; j++) {
            if (!(port->tm.paused >> j & 1))
                continue;
            uint64_t lasted = n->now - port->tm.pfc->classes[j].paused_since_ns;
            if (lasted >= n->watch_interval_ns && port->tm.queues[j].packets)
                suspect_add(&all, port, j);
        }
    }
    list_suspects(&all);
    int status = n->workers ? share_suspects(n, &all) : 0;
    if (!status)
        judge(n, &all);
    if (n->workers)
        forget_holders(n);
    free(all.rows.data);
    free(all.held.data);
    return status;
}
