#include "tm.h"

#include "allocate.h"

#include <stdlib.h>
#include <string.h>

static void fifo_put(tm_fifo *f, p4_packet *p)
{
    p->next = NULL;
    if (f->head)
        f->tail->next = p;
    else
        f->head = p;
    f->tail = p;
}

static p4_packet *fifo_get(tm_fifo *f)
{
    p4_packet *p = f->head;
    f->head = p->next;
    return p;
}

/* Room for one more ingress port; false without memory. */
static bool rounds_reserve(tm_rounds *r, uint32_t port)
{
    if (port < r->count)
        return true;
    if (port > TM_MAX_PORT)
        return false;
    struct tm_turn *from = realloc(r->from, (port + 1) * sizeof *from);
    if (!from)
        return false;
    memset(from + r->count, 0, (port + 1 - r->count) * sizeof *from);
    r->from = from;
    r->count = port + 1;
    return true;
}

static void rounds_append(tm_rounds *r, uint32_t port, bool others)
{
    if (others)
        r->from[r->last].next = port;
    else
        r->first = port;
    r->last = port;
}

/* --- several queues of the highest priority -------------------------------------------------------------------------- */

#define LANED (TM_PRIORITIES - 1)
#define LANE_BIT(queue) ((uint64_t)1 << (queue) % 64)

static bool takes_lanes(const tm_port *out)
{
    return !out->queues[LANED].rounds && !out->trimming;
}

/* The number of a packet's queue: its priority, or one of the queues of the highest priority. */
static uint32_t queue_number(const tm_port *out, const p4_packet *p)
{
    uint32_t priority = tm_priority(p), queue = p->queue % TM_QUEUES;
    return priority == LANED && queue > LANED && takes_lanes(out) ? queue : priority;
}

/* Waiting packets are in the first of them. */
static tm_lanes *lanes_of(tm_port *out)
{
    if (out->lanes)
        return out->lanes;
    tm_lanes *l = must_have(calloc(1, sizeof *l));
    tm_queue *q = &out->queues[LANED];
    l->of[LANED] = (struct tm_lane){q->fifo, q->bytes, q->max_bytes, q->dropped_packets, q->packets, q->max_packets};
    if (q->packets)
        l->nonempty[0] = LANE_BIT(LANED);
    q->fifo = (tm_fifo){0};
    return out->lanes = l;
}

#define PORT_LIMIT P4_SCHEDULED /* index of the bucket that limits the whole port */

/* Mask of the queues below 64 that the scheduler does not serve at present. */
static uint64_t disabled_queues(const tm_port *out)
{
    const tm_scheduler *s = out->scheduler;
    return s ? s->set.disabled | (s->held & ((1u << P4_SCHEDULED) - 1)) : 0;
}

static bool port_is_held(const tm_port *out)
{
    return out->scheduler && out->scheduler->held >> PORT_LIMIT & 1;
}

static void lanes_free(tm_port *out)
{
    free(out->lanes);
    out->lanes = NULL;
}

static void lane_put(tm_lanes *l, uint32_t queue, p4_packet *p)
{
    struct tm_lane *lane = &l->of[queue];
    fifo_put(&lane->fifo, p);
    lane->bytes += p->len;
    lane->packets++;
    if (lane->bytes > lane->max_bytes)
        lane->max_bytes = lane->bytes;
    if (lane->packets > lane->max_packets)
        lane->max_packets = lane->packets;
    l->nonempty[queue / 64] |= LANE_BIT(queue);
}

/* Mask of the queues from 64 i on that have packets and are not stopped. */
static uint64_t ready_lanes(const tm_port *out, uint32_t i)
{
    const tm_lanes *l = out->lanes;
    return l->nonempty[i] & ~l->stopped[i] & ~(i ? 0 : disabled_queues(out));
}

/* The highest of the queues with packets that is not stopped; TM_QUEUES: none. */
static uint32_t lane_ready(const tm_port *out)
{
    for (uint32_t i = TM_QUEUES / 64; i-- > 0;) {
        uint64_t ready = ready_lanes(out, i);
        if (ready)
            return 64 * i + 63 - (uint32_t)__builtin_clzll(ready);
    }
    return TM_QUEUES;
}

/* If all are stopped, as when a port is emptied, it is the lowest. */
static uint32_t lane_next(const tm_port *out)
{
    const tm_lanes *l = out->lanes;
    uint32_t queue = lane_ready(out);
    if (queue == TM_QUEUES)
        queue = l->nonempty[0] ? (uint32_t)__builtin_ctzll(l->nonempty[0]) : 64 + (uint32_t)__builtin_ctzll(l->nonempty[1]);
    return queue;
}

static p4_packet *lane_get(tm_lanes *l, uint32_t queue)
{
    struct tm_lane *lane = &l->of[queue];
    p4_packet *p = fifo_get(&lane->fifo);
    lane->bytes -= p->len;
    if (!--lane->packets)
        l->nonempty[queue / 64] &= ~LANE_BIT(queue);
    return p;
}

/* Updates whether the highest priority has only stopped packets. */
static void lanes_review(tm_port *out)
{
    if (!out->lanes || port_is_held(out))
        return;
    out->stopped &= ~(1u << LANED);
    if (out->queues[LANED].packets && lane_ready(out) == TM_QUEUES)
        out->stopped |= 1u << LANED;
}

/* Updates which priorities are stopped after a queue was stopped or restarted. Returns whether the port was woken. */
static bool stops_changed(tm_port *out)
{
    out->stopped = port_is_held(out) ? UINT8_MAX : (uint8_t)(out->halted | disabled_queues(out));
    lanes_review(out);
    bool wakes = !out->scheduled && !out->serving && tm_ready(out);
    if (wakes)
        out->tm->wake(out);
    return wakes;
}

static bool is_stopped(const tm_port *out, uint32_t queue)
{
    const tm_lanes *l = queue >= LANED ? out->lanes : NULL;
    if (!l || port_is_held(out))
        return out->stopped >> (queue < LANED ? queue : LANED) & 1;
    return (l->stopped[queue / 64] | (queue < 64 ? disabled_queues(out) : 0)) & LANE_BIT(queue);
}

void tm_stop_queue(tm_port *port, uint32_t queue, bool stopped)
{
    if (queue >= LANED && takes_lanes(port)) {
        uint64_t *mask = &lanes_of(port)->stopped[queue / 64];
        *mask = stopped ? *mask | LANE_BIT(queue) : *mask & ~LANE_BIT(queue);
    } else {
        uint8_t bit = (uint8_t)(1u << (queue < LANED ? queue : LANED));
        port->halted = (uint8_t)(stopped ? port->halted | bit : port->halted & ~bit);
    }
    stops_changed(port);
}

/* The depth of the queue that a packet is in, was in, or will enter. */
static uint32_t own_depth(const tm_port *out, const p4_packet *p, uint64_t *bytes)
{
    uint32_t priority = tm_priority(p);
    const tm_queue *q = &out->queues[priority];
    if (priority != LANED || !out->lanes) {
        *bytes = q->bytes;
        return tm_cells(out->tm, q->bytes, q->packets);
    }
    const struct tm_lane *lane = &out->lanes->of[queue_number(out, p)];
    *bytes = lane->bytes;
    return tm_cells(out->tm, lane->bytes, lane->packets);
}

/* Reports that a packet has entered or left its queue, to a `changed` that is not NULL. */
static __attribute__((noinline, cold)) void report_change(tm_port *out, const p4_packet *p)
{
    uint64_t bytes;
    out->tm->changed(out, p, queue_number(out, p), own_depth(out, p, &bytes));
}

/* --- colours --------------------------------------------------------------------------------------------------------- */

enum { GREEN, YELLOW, RED = 3 };

static uint8_t colour_state(const tm_switch *t, uint64_t bytes)
{
    return bytes > t->yellow_bytes ? 2 : bytes > t->red_bytes ? 1 : 0;
}

/* Whether a packet's colour admits it to a queue with this many bytes. */
static bool colour_admits(const tm_switch *t, const p4_packet *p, uint64_t bytes)
{
    if (p->color == GREEN)
        return true;
    return bytes + p->len <= t->yellow_bytes && (p->color == YELLOW || bytes + p->len <= t->red_bytes);
}

/* --- queues ---------------------------------------------------------------------------------------------------------- */

static void queue_put(tm_port *out, uint32_t number, p4_packet *p)
{
    if (number >= LANED && out->lanes) {
        lane_put(out->lanes, number, p);
        return;
    }
    tm_queue *q = &out->queues[number < LANED ? number : LANED];
    tm_rounds *r = q->rounds;
    if (!r) {
        fifo_put(&q->fifo, p);
        return;
    }
    if (!r->from[p->ingress_port].fifo.head)
        rounds_append(r, p->ingress_port, q->packets > 0);
    fifo_put(&r->from[p->ingress_port].fifo, p);
}

static p4_packet *queue_get(tm_port *out, uint32_t number)
{
    if (number >= LANED && out->lanes)
        return lane_get(out->lanes, number);
    tm_queue *q = &out->queues[number];
    tm_rounds *r = q->rounds;
    if (!r)
        return fifo_get(&q->fifo);
    uint32_t port = r->first;
    p4_packet *p = fifo_get(&r->from[port].fifo);
    bool alone = r->first == r->last;
    r->first = r->from[port].next;
    if (r->from[port].fifo.head)
        rounds_append(r, port, !alone);
    return p;
}

static void queue_account(tm_queue *q, uint64_t now)
{
    q->byte_ns += q->bytes * (now - q->since_ns);
    q->since_ns = now;
}

uint64_t tm_xoff_threshold(const tm_switch *t, const tm_pfc *pfc, uint64_t shared_used)
{
    if (pfc->alpha < 0)
        return pfc->xoff_bytes;
    uint64_t total = t->buffer_bytes - t->reserved_bytes;
    return total > shared_used ? (uint64_t)(pfc->alpha * (double)(total - shared_used)) : 0;
}

bool tm_below_xon(const tm_switch *t, const tm_pfc *pfc, uint64_t shared, uint64_t headroom, uint64_t shared_used)
{
    uint64_t xoff = tm_xoff_threshold(t, pfc, shared_used);
    uint64_t xon = xoff > pfc->xon_gap_bytes ? xoff - pfc->xon_gap_bytes : 0;
    return !headroom && shared <= xon;
}

static void xoff_set(tm_switch *t, tm_port *in, uint32_t priority)
{
    tm_class *c = &in->pfc->classes[priority];
    in->xoff |= 1u << priority;
    c->next_xoff = t->xoff;
    t->xoff = c;
    if (tm_pfc_due(in))
        t->wake(in);
}

/* Ends the pauses whose cause is gone. */
static void xoff_review(tm_switch *t)
{
    for (tm_class **link = &t->xoff, *c; (c = *link);) {
        tm_port *in = c->port;
        if (tm_below_xon(t, in->pfc, c->shared, c->headroom, tm_shared_used(t))) {
            *link = c->next_xoff;
            in->xoff &= ~(1u << (c - in->pfc->classes));
            in->refresh &= in->xoff;
            if (tm_pfc_due(in))
                t->wake(in);
        } else {
            link = &c->next_xoff;
        }
    }
}

/* Charges the buffer for a packet; false if there is no room. */
static bool buffer_charge(tm_switch *t, tm_queue *q, const p4_packet *p)
{
    tm_port *in = tm_find(t, p->ingress_port);
    uint32_t priority = p->pfc_class;
    bool fits = p->len <= tm_shared_free(t);
    if (in && in->lossless >> priority & 1) {
        tm_pfc *pfc = in->pfc;
        tm_class *c = &pfc->classes[priority];
        if (fits && c->shared + p->len <= tm_xoff_threshold(t, pfc, tm_shared_used(t))) {
            c->shared += p->len;
        } else if (pfc->headroom_bytes == TM_NO_LIMIT) {
            if (!fits)
                return false;
            c->shared += p->len;
        } else {
            if (c->headroom + p->len > pfc->headroom_bytes)
                return false;
            c->headroom += p->len;
            t->headroom_used_bytes += p->len;
            if (c->headroom > c->headroom_max_bytes)
                c->headroom_max_bytes = c->headroom;
        }
        if (c->shared + c->headroom > c->ingress_max_bytes)
            c->ingress_max_bytes = c->shared + c->headroom;
        t->used_bytes += p->len;
        if (!(in->xoff >> priority & 1)
            && (c->headroom || c->shared > tm_xoff_threshold(t, pfc, tm_shared_used(t))))
            xoff_set(t, in, priority);
    } else {
        if (!fits || (t->alpha >= 0 && (double)(q->bytes + p->len) > t->alpha * (double)tm_shared_free(t)))
            return false;
        t->used_bytes += p->len;
    }
    return true;
}

static void buffer_release(tm_switch *t, const p4_packet *p)
{
    tm_port *in = tm_find(t, p->ingress_port);
    uint32_t priority = p->pfc_class;
    t->used_bytes -= p->len;
    bool review = t->dynamic_pfc;
    if (in && in->lossless >> priority & 1) {
        tm_class *c = &in->pfc->classes[priority];
        uint64_t headroom = c->headroom < p->len ? c->headroom : p->len;
        c->headroom -= headroom;
        t->headroom_used_bytes -= headroom;
        c->shared -= p->len - headroom;
        review |= in->xoff >> priority & 1;
    }
    if (review && t->xoff)
        xoff_review(t);
}

static bool port_idle(const tm_port *p, uint32_t priority, uint32_t number, uint64_t now)
{
    return link_free_ns(&p->link) <= now && !p->scheduled && !p->serving && !p->direct && !(p->paused >> priority & 1)
        && !is_stopped(p, number) && !(p->nonempty & ~p->paused & ~p->stopped) && !tm_pfc_due(p);
}

/* Puts a packet into the queue of its priority; false: there is no room. */
static bool queue_packet(tm_switch *t, tm_port *out, p4_packet *p, uint64_t now)
{
    uint32_t priority = tm_priority(p), number = queue_number(out, p);
    tm_queue *q = &out->queues[priority];
    t->priorities |= 1u << priority;
    if (number > LANED)
        lanes_of(out);
    p->enq_time = tm_ticks(t, now);
    uint64_t found_bytes;
    p->enq_depth = own_depth(out, p, &found_bytes);
    if (t->coloured)
        p->enq_state = colour_state(t, found_bytes);
    if (port_idle(out, priority, number, now)) {
        out->direct = p;
    } else {
        if ((t->coloured && !colour_admits(t, p, found_bytes))
            || q->bytes + p->len > q->limit_bytes || q->packets >= q->limit_packets
            || out->bytes + p->len > out->limit_bytes || out->packets >= out->limit_packets
            || (q->rounds && !rounds_reserve(q->rounds, p->ingress_port))
            || (t->managed && !buffer_charge(t, q, p)))
            return false;
        if (!t->managed)
            t->used_bytes += p->len;
        if (t->used_bytes > t->max_bytes)
            t->max_bytes = t->used_bytes;
        queue_account(q, now);
        if (out->trimming && q->packets)
            out->trimming->second[priority] = q->fifo.tail;
        queue_put(out, number, p);
        out->nonempty |= 1u << priority;
        q->packets++;
        q->bytes += p->len;
        if (q->packets > q->max_packets)
            q->max_packets = q->packets;
        if (q->bytes > q->recent_max_bytes) {
            q->recent_max_bytes = q->bytes;
            if (q->bytes > q->max_bytes)
                q->max_bytes = q->bytes;
        }
        out->packets++;
        out->bytes += p->len;
        if (out->packets > out->max_packets)
            out->max_packets = out->packets;
        if (out->bytes > out->recent_max_bytes) {
            out->recent_max_bytes = out->bytes;
            if (out->bytes > out->max_bytes)
                out->max_bytes = out->bytes;
        }
        if (priority == LANED)
            lanes_review(out);
        if (t->changed)
            report_change(out, p);
        if ((out->paused | out->stopped) >> priority & 1)
            goto accepted;
    }
    if (!out->scheduled && !out->serving)
        t->wake(out);
accepted:
    q->enqueued_packets++;
    q->enqueued_bytes += p->len;
    return true;
}

/* Accounts for a packet that has left its queue. */
static void discharge(tm_port *out, tm_queue *q, const p4_packet *p)
{
    tm_switch *t = out->tm;
    q->bytes -= p->len;
    out->bytes -= p->len;
    out->packets--;
    if (!--q->packets)
        out->nonempty &= ~(1u << (q - out->queues));
    if (t->managed)
        buffer_release(t, p);
    else
        t->used_bytes -= p->len;
}

static p4_packet *dropped(tm_port *out, p4_packet *p)
{
    tm_queue *q = &out->queues[tm_priority(p)];
    q->dropped_packets++;
    q->dropped_bytes += p->len;
    if (out->lanes && q == &out->queues[LANED])
        out->lanes->of[queue_number(out, p)].dropped_packets++;
    p->next = NULL;
    return p;
}

/* Removes the youngest packet of a queue, if the packet in front of it is known and it has at least this length. */
static p4_packet *take_youngest(tm_port *out, tm_queue *q, uint32_t len, uint64_t now)
{
    p4_packet **second = &out->trimming->second[q - out->queues], *p = q->fifo.tail;
    if (q->packets < 2 || !*second || p->len < len)
        return NULL;
    queue_account(q, now);
    q->fifo.tail = *second;
    q->fifo.tail->next = NULL;
    *second = NULL;
    discharge(out, q, p);
    if (out->tm->changed)
        report_change(out, p);
    return p;
}

/* Trims or drops one packet of the full queue: the arriving one, or the youngest. Returns the dropped packets. A
 * shorter youngest packet would not make room. */
static p4_packet *trim(tm_switch *t, tm_port *out, p4_packet *p, uint64_t now)
{
    tm_trimming *how = out->trimming;
    tm_queue *q = &out->queues[tm_priority(p)];
    p4_packet *lost = NULL, *victim = NULL;
    if (how->youngest && link_draw(&how->coin) >> 63)
        victim = take_youngest(out, q, p->len, now);
    if (!victim)
        victim = p;
    else if (!queue_packet(t, out, p, now))
        lost = dropped(out, p);
    if (!how->dropping) {
        victim->priority = how->into;
        if (victim->len > how->bytes) {
            victim->len = how->bytes;
            victim->trimmed = 1;
        }
        if (queue_packet(t, out, victim, now))
            return lost;
    }
    dropped(out, victim)->next = lost;
    return victim;
}

p4_packet *tm_enqueue(tm_switch *t, tm_port *out, p4_packet *p, uint64_t now)
{
    uint32_t priority = tm_priority(p);
    if (!t->classified)
        p->pfc_class = (uint8_t)priority;
    if (queue_packet(t, out, p, now))
        return NULL;
    if (out->trimming && out->trimming->priorities >> priority & 1)
        return trim(t, out, p, now);
    return dropped(out, p);
}

/* The queue of a priority that is served first. */
static uint32_t first_queue(const tm_port *out, uint32_t priority)
{
    return priority == LANED && out->lanes ? lane_next(out) : priority;
}

static uint32_t queue_packets(const tm_port *out, uint32_t number)
{
    return number >= LANED && out->lanes ? out->lanes->of[number].packets : out->queues[number].packets;
}

static const p4_packet *head_of(const tm_port *out, uint32_t number)
{
    if (number >= LANED && out->lanes)
        return out->lanes->of[number].fifo.head;
    const tm_queue *q = &out->queues[number];
    return q->rounds ? q->rounds->from[q->rounds->first].fifo.head : q->fifo.head;
}

/* Whether `a` comes before `b`, where both are equal priorities with packets. */
static bool comes_before(const tm_port *out, uint32_t a, uint32_t b)
{
    if (out->tm->arbiter == TM_LEAST_RECENT)
        return out->queues[a].served < out->queues[b].served;
    return head_of(out, first_queue(out, a))->enq_time < head_of(out, first_queue(out, b))->enq_time;
}

/* The priority to serve next; among equal ones the higher in a tie. `ready` is not 0. */
static uint32_t next_priority(const tm_port *out, uint32_t ready)
{
    uint32_t first = 31 - (uint32_t)__builtin_clz(ready), equal = out->tm->equal;
    if (!(equal >> first & 1))
        return first;
    for (uint32_t rest = ready & equal & ~(1u << first); rest;) {
        uint32_t other = 31 - (uint32_t)__builtin_clz(rest);
        rest &= ~(1u << other);
        if (comes_before(out, other, first))
            first = other;
    }
    return first;
}

/* Rounds after which the deficit of a queue covers its first packet; in each it grows by the queue's weight. */
static uint64_t rounds_needed(const tm_port *out, uint32_t queue)
{
    const tm_scheduler *s = out->scheduler;
    uint64_t len = head_of(out, queue)->len, weight = s->set.weight[queue];
    return len > s->deficit[queue] ? (len - s->deficit[queue] + weight - 1) / weight : 0;
}

/* Chooses by deficit weighted round robin among the queues of a mask, which have weights and one priority. */
static uint32_t next_in_turn(tm_port *out, uint32_t priority, uint32_t mask)
{
    tm_scheduler *s = out->scheduler;
    uint32_t queue = s->turn[priority];
    if (!(mask >> queue & 1) || rounds_needed(out, queue)) {
        uint64_t rounds = UINT64_MAX;
        for (uint32_t rest = mask; rest; rest &= rest - 1) {
            uint64_t needed = rounds_needed(out, (uint32_t)__builtin_ctz(rest));
            rounds = needed < rounds ? needed : rounds;
        }
        for (uint32_t rest = mask; rounds > 1 && rest; rest &= rest - 1) {
            uint32_t each = (uint32_t)__builtin_ctz(rest);
            s->deficit[each] += (rounds - 1) * s->set.weight[each]; /* of rounds in which no packet is sent */
        }
        do {
            uint32_t behind = mask & ~((2u << queue) - 1);
            queue = (uint32_t)__builtin_ctz(behind ? behind : mask);
            s->deficit[queue] += s->set.weight[queue];
        } while (rounds_needed(out, queue));
        s->turn[priority] = (uint8_t)queue;
    }
    s->deficit[queue] -= head_of(out, queue)->len;
    return queue;
}

/* --- token buckets --------------------------------------------------------------------------------------------------- */

/* The first ns at which the bucket is full. */
static uint64_t full_ns(const tm_bucket *b)
{
    return b->full_ns + (b->full_part != 0);
}

/* The time from which on the bucket has tokens. */
static uint64_t opens_ns(const tm_bucket *b)
{
    return full_ns(b) > b->depth_ns ? full_ns(b) - b->depth_ns : 0;
}

static void bucket_set(tm_bucket *b, const p4_shaper *old, const p4_shaper *set)
{
    if (old->rate != set->rate)
        b->full_part = 0; /* in units of the old rate */
    uint64_t tokens = (uint64_t)set->burst * (set->packets ? 1 : 8);
    b->depth_ns = set->rate ? (uint64_t)((unsigned __int128)tokens * 1000000000u / set->rate) : 0;
    if (!set->rate)
        b->full_ns = 0;
}

static void bucket_take(tm_bucket *b, const p4_shaper *set, uint32_t len, uint64_t now)
{
    if (!set->rate)
        return;
    if (full_ns(b) < now) {
        b->full_ns = now;
        b->full_part = 0;
    }
    uint64_t work = (set->packets ? 1 : (uint64_t)len * 8) * 1000000000u + b->full_part;
    b->full_ns += work / set->rate;
    b->full_part = work % set->rate;
}

static bool is_guaranteed(const tm_scheduler *s, uint32_t queue, uint64_t now)
{
    return s->set.guaranteed[queue].rate && opens_ns(&s->guaranteed[queue]) <= now;
}

/* Holds the queue or the port of a bucket if it has no tokens. */
static void review_limit(tm_port *out, uint32_t limit, uint64_t now)
{
    tm_scheduler *s = out->scheduler;
    uint64_t opens = opens_ns(&s->limit[limit]);
    s->held &= ~(1u << limit);
    if (opens > now) {
        s->held |= 1u << limit;
        out->tm->hold(out, opens);
    }
}

/* Takes the tokens of a packet that leaves. A queue uses its guaranteed tokens first. */
static void take_tokens(tm_port *out, uint32_t queue, uint32_t len, uint64_t now)
{
    tm_scheduler *s = out->scheduler;
    if (queue < P4_SCHEDULED) {
        if (is_guaranteed(s, queue, now))
            bucket_take(&s->guaranteed[queue], &s->set.guaranteed[queue], len, now);
        bucket_take(&s->limit[queue], &s->set.limit[queue], len, now);
        review_limit(out, queue, now);
    }
    bucket_take(&s->limit[PORT_LIMIT], &s->set.limit[PORT_LIMIT], len, now);
    review_limit(out, PORT_LIMIT, now);
    if (s->held)
        stops_changed(out);
}

uint64_t tm_release(tm_port *port, uint64_t now)
{
    tm_scheduler *s = port->scheduler;
    uint64_t next = UINT64_MAX;
    for (uint32_t rest = s ? s->held : 0; rest; rest &= rest - 1) {
        uint32_t limit = (uint32_t)__builtin_ctz(rest);
        uint64_t opens = opens_ns(&s->limit[limit]);
        if (opens <= now)
            s->held &= ~(1u << limit);
        else if (opens < next)
            next = opens;
    }
    stops_changed(port);
    return next;
}

/* The queue to serve next by the schedule. `ready` is the mask of priorities that have one, and is not 0. */
static uint32_t scheduled_queue(tm_port *out, uint32_t ready, uint64_t now)
{
    const tm_scheduler *s = out->scheduler;
    uint64_t low = ready, high = 0; /* masks of queues */
    if (out->lanes && ready >> LANED & 1) {
        low = (ready & ~(1u << LANED)) | ready_lanes(out, 0);
        high = ready_lanes(out, 1);
    }
    if (high)
        return TM_QUEUES - 1 - (uint32_t)__builtin_clzll(high);
    if (low >> P4_SCHEDULED)
        return 63 - (uint32_t)__builtin_clzll(low);
    uint32_t first = 0, queues = 0; /* with this rank */
    for (uint32_t rest = (uint32_t)low; rest; rest &= rest - 1) {
        uint32_t queue = (uint32_t)__builtin_ctz(rest), priority = s->set.priority[queue];
        if (is_guaranteed(s, queue, now))
            priority = TM_PRIORITIES + s->set.guaranteed_priority[queue];
        uint32_t rank = 2 * priority + !s->set.weight[queue];
        if (rank > first)
            queues = 0;
        if (rank >= first) {
            first = rank;
            queues |= 1u << queue;
        }
    }
    return first & 1 ? 31 - (uint32_t)__builtin_clz(queues) : next_in_turn(out, first / 2, queues);
}

static uint32_t next_queue(tm_port *out, uint32_t ready, uint64_t now)
{
    return out->scheduler ? scheduled_queue(out, ready, now) : first_queue(out, next_priority(out, ready));
}

static p4_packet *take(tm_port *out, uint32_t number, uint64_t now)
{
    uint32_t priority = number < LANED ? number : LANED;
    tm_queue *q = &out->queues[priority];
    queue_account(q, now);
    p4_packet *p = queue_get(out, number);
    if (q->fifo.head)
        tm_fetch_behind(out->tm, q->fifo.head);
    discharge(out, q, p);
    if (priority == LANED)
        lanes_review(out);
    if (out->scheduler && number < P4_SCHEDULED && !queue_packets(out, number))
        out->scheduler->deficit[number] = 0;
    if (out->tm->changed)
        report_change(out, p);
    return p;
}

p4_packet *tm_dequeue(tm_port *out, uint64_t now)
{
    p4_packet *p = out->direct;
    if (p) {
        out->direct = NULL;
    } else {
        uint32_t ready = out->nonempty & ~out->paused & ~out->stopped;
        if (!ready)
            return NULL;
        p = take(out, next_queue(out, ready, now), now);
    }
    if (out->scheduler)
        take_tokens(out, queue_number(out, p), p->len, now);
    if (out->tm->arbiter == TM_LEAST_RECENT)
        out->queues[tm_priority(p)].served = ++out->turns;
    p->deq_time = tm_ticks(out->tm, now);
    uint64_t left_bytes;
    p->deq_depth = own_depth(out, p, &left_bytes);
    if (out->tm->coloured)
        p->deq_state = colour_state(out->tm, left_bytes);
    return p;
}

p4_packet *tm_flush(tm_port *out, uint64_t now)
{
    p4_packet *p = out->direct;
    if (p)
        out->direct = NULL;
    else if (out->nonempty)
        p = take(out, first_queue(out, (uint32_t)__builtin_ctz(out->nonempty)), now);
    return p;
}

static tm_counts counts_in_cells(const tm_switch *t, uint64_t dropped, uint64_t bytes, uint32_t packets,
                                 uint64_t max_bytes, uint32_t max_packets)
{
    return (tm_counts){dropped, tm_cells(t, bytes, packets), tm_cells(t, max_bytes, max_packets)};
}

tm_counts tm_count_port(const tm_port *p)
{
    tm_counts counts = counts_in_cells(p->tm, 0, p->bytes, p->packets, p->max_bytes, p->max_packets);
    for (int i = 0; i < TM_PRIORITIES; i++)
        counts.dropped_packets += p->queues[i].dropped_packets;
    return counts;
}

tm_counts tm_count_queue(const tm_port *port, uint32_t queue)
{
    const tm_switch *t = port->tm;
    if (queue >= LANED && port->lanes) {
        const struct tm_lane *l = &port->lanes->of[queue];
        return counts_in_cells(t, l->dropped_packets, l->bytes, l->packets, l->max_bytes, l->max_packets);
    }
    if (queue > LANED) /* such a queue has not been used */
        return (tm_counts){0};
    const tm_queue *q = &port->queues[queue];
    return counts_in_cells(t, q->dropped_packets, q->bytes, q->packets, q->max_bytes, q->max_packets);
}

void tm_port_init(tm_port *port, tm_switch *t, uint32_t number)
{
    memset(port, 0, sizeof *port);
    port->tm = t;
    port->number = number;
    tm_set_limits(port, &TM_UNLIMITED);
}

int tm_add_port(tm_switch *t, tm_port *port)
{
    if (port->number >= t->port_count) {
        tm_port **ports = realloc(t->ports, (port->number + 1) * sizeof *ports);
        if (!ports)
            return -1;
        memset(ports + t->port_count, 0, (port->number + 1 - t->port_count) * sizeof *ports);
        t->ports = ports;
        t->port_count = port->number + 1;
    }
    t->ports[port->number] = port;
    return 0;
}

int tm_set_round_robin(tm_port *port, bool on)
{
    if (on)
        lanes_free(port);
    for (int i = 0; i < TM_PRIORITIES; i++) {
        tm_queue *q = &port->queues[i];
        if (on && !q->rounds) {
            q->rounds = calloc(1, sizeof *q->rounds);
            if (!q->rounds)
                return -1;
        } else if (!on && q->rounds) {
            free(q->rounds->from);
            free(q->rounds);
            q->rounds = NULL;
        }
    }
    return 0;
}

int tm_set_limits(tm_port *port, const tm_limits *limits)
{
    port->limit_bytes = limits->port_bytes;
    port->limit_packets = limits->port_packets;
    for (int i = 0; i < TM_PRIORITIES; i++) {
        port->queues[i].limit_bytes = limits->queue_bytes;
        port->queues[i].limit_packets = limits->queue_packets;
    }
    return port->packets ? 0 : tm_set_round_robin(port, limits->round_robin);
}

int tm_set_trimming(tm_port *port, const tm_trimming *trimming)
{
    if (!port->trimming && !(port->trimming = malloc(sizeof *port->trimming)))
        return -1;
    *port->trimming = *trimming;
    lanes_free(port);
    return 0;
}

bool tm_set_schedule(tm_port *port, const p4_schedule *schedule, uint64_t now)
{
    if (!schedule && !port->scheduler)
        return false;
    if (!schedule) {
        free(port->scheduler);
        port->scheduler = NULL;
    } else {
        if (!port->scheduler)
            port->scheduler = must_have(calloc(1, sizeof *port->scheduler));
        tm_scheduler *s = port->scheduler;
        for (uint32_t i = 0; i < P4_SCHEDULED; i++)
            bucket_set(&s->guaranteed[i], &s->set.guaranteed[i], &schedule->guaranteed[i]);
        for (uint32_t i = 0; i <= PORT_LIMIT; i++)
            bucket_set(&s->limit[i], &s->set.limit[i], &schedule->limit[i]);
        s->set = *schedule;
        for (uint32_t i = 0; i <= PORT_LIMIT; i++)
            review_limit(port, i, now);
    }
    return stops_changed(port);
}

void tm_port_destroy(tm_port *port)
{
    tm_set_round_robin(port, false);
    lanes_free(port);
    free(port->scheduler);
    port->scheduler = NULL;
    free(port->trimming);
    port->trimming = NULL;
    free(port->pfc);
    port->pfc = NULL;
}

int tm_pfc_alloc(tm_port *port)
{
    if (port->pfc)
        return 0;
    port->pfc = aligned_alloc(_Alignof(tm_pfc), sizeof *port->pfc);
    if (!port->pfc)
        return -1;
    memset(port->pfc, 0, sizeof *port->pfc);
    port->pfc->alpha = -1;
    port->pfc->quanta = 65535;
    for (int i = 0; i < TM_PRIORITIES; i++)
        port->pfc->classes[i].port = port;
    return 0;
}

void tm_pause(tm_port *port, uint32_t priority, uint64_t now, uint64_t until)
{
    tm_class *c = &port->pfc->classes[priority];
    c->paused_until_ns = until;
    if (port->paused >> priority & 1)
        return;
    port->paused |= 1u << priority;
    c->paused_since_ns = now;
    c->pauses_received++;
}

void tm_resume(tm_port *port, uint32_t priority, uint64_t now)
{
    if (!(port->paused >> priority & 1))
        return;
    tm_class *c = &port->pfc->classes[priority];
    uint64_t lasted = now - c->paused_since_ns;
    port->paused &= ~(1u << priority);
    c->paused_ns += lasted;
    if (lasted > c->longest_ns)
        c->longest_ns = lasted;
    if (port->tm && !port->scheduled && !port->serving && tm_ready(port))
        port->tm->wake(port);
}
