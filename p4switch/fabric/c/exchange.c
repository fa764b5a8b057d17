#include "exchange.h"
#include "prefetch.h"
#include "sending.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 64
#define RINGS_AHEAD 6 /* frames, whose ports are prefetched as many steps earlier */
#define WORDS_AHEAD_BYTES 1024
#define ROOM_AHEAD 4  /* frames of the pool, to be filled */

typedef struct crossing {
    uint64_t time;
    uint32_t end; /* the side of the link that sent it */
    uint32_t tag; /* the sender's number of the flow; 0: none */
    uint32_t wire_len, data_len;
    bool pfc;
} crossing;

typedef struct crossing_flow {
    uint32_t tag;
    flow_key key;
    int32_t psn;
} crossing_flow;

/* -- owners of nodes --------------------------------------------------------------------------------------------- */

void workers_own_port(net *n, net_port *port)
{
    const uint32_t *owner = n->workers->owner;
    port->away = !port->node->away && owner[port->peer->node->index] != n->workers->rank;
}

/* Nothing is due at the node any more, because it belongs to another worker. */
static void give_away(net *n, node *at)
{
    agenda *next = at->sw ? &n->switches.next[at->place] : &n->hosts.next[at->place];
    at->away = true;
    at->wake_ns = at->hint_ns = TIME_NEVER;
    at->events.count = 0;
    ready_clear(&at->ready);
    next->time = TIME_NEVER;
    next->ports = 0;
}

static const net_company together;

workers *workers_join(net *n, transport *way, const uint32_t *owner)
{
    workers *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->way = way;
    w->rank = way->rank;
    w->count = way->count;
    w->owner = malloc((n->all.count + 1) * sizeof *w->owner);
    w->out = calloc(4 * w->count, sizeof *w->out);
    w->in = calloc(w->count, sizeof *w->in);
    w->said = calloc(w->count, sizeof *w->said);
    w->known = calloc(w->count, sizeof *w->known);
    w->notices = calloc(w->count, sizeof *w->notices);
    if (!w->owner || !w->out || !w->in || !w->said || !w->known || !w->notices) {
        workers_free(w);
        return NULL;
    }
    w->broadcast = w->out + w->count;
    w->gathered = w->broadcast + w->count;
    w->watched = w->gathered + w->count;
    w->sent[0] = w->sent[1] = TIME_NEVER;
    w->events = n->events;
    w->paused = n->paused;
    memcpy(w->owner, owner, n->all.count * sizeof *owner);
    n->workers = w;
    n->company = &together;
    bool hosts = false;
    for (uint32_t i = 0; i < n->all.count; i++) {
        if (owner[i] != w->rank)
            give_away(n, n->all.list[i]);
        else
            hosts |= !n->all.list[i]->sw;
    }
    for (uint32_t i = 0; i < 2 * n->link_count; i++)
        workers_own_port(n, n->ends[i]);
    if (!hosts) { /* every node that it can report to belongs to another worker */
        wheel_free(n->wheel);
        n->wheel = must_have(wheel_new());
    }
    return w;
}

void workers_free(workers *w)
{
    if (!w)
        return;
    for (uint32_t i = 0; w->out && i < 4 * w->count; i++)
        if (!w->out[i].lent)
            free(w->out[i].data);
    for (uint32_t i = 0; w->said && w->known && i < w->count; i++) {
        free(w->said[i].list);
        free(w->known[i].list);
    }
    w->way->close(w->way);
    free(w->out);
    free(w->in);
    free(w->said);
    free(w->known);
    free(w->notices);
    free(w->owner);
    free(w);
}

/* -- messages and frames ------------------------------------------------------------------------------------------ */

static char *add_word(buffer *to, uint32_t kind, uint64_t bytes)
{
    char *at = buffer_add(to, sizeof(word) + (bytes + 7) / 8 * 8);
    *(word *)(void *)at = (word){kind, (uint32_t)bytes};
    return at + sizeof(word);
}

void workers_say(workers *w, uint32_t to, word_kind kind, const void *data, uint64_t bytes)
{
    memcpy(add_word(&w->out[to], kind, bytes), data, bytes);
}

void workers_say_others(workers *w, word_kind kind, const void *data, uint64_t bytes)
{
    for (uint32_t to = 0; to < w->count; to++)
        if (to != w->rank)
            workers_say(w, to, kind, data, bytes);
}

static uint32_t side_of(const net *n, const net_port *port)
{
    return (port->to_port ? n->switches.next : n->hosts.next)[port->to].side;
}

static uint32_t *number_of(flow_numbers *of, uint32_t tag)
{
    if (tag >= of->count) {
        uint32_t count = 2 * tag + 64;
        of->list = must_grow(of->list, count, sizeof *of->list);
        memset(of->list + of->count, 0, (count - of->count) * sizeof *of->list);
        of->count = count;
    }
    return &of->list[tag];
}

/* Describes the flow that a number stands for, once to each worker. */
static void say_flow(net *n, uint32_t to, uint32_t tag)
{
    uint32_t *said = number_of(&n->workers->said[to], tag);
    if (*said)
        return;
    *said = tag;
    const flow *row = &n->flows.rows[tag];
    crossing_flow announced = {tag, {row->src_ip, row->dst_ip, row->qp, row->packet, row->host}, row->psn};
    workers_say(n->workers, to, WORD_FLOW, &announced, sizeof announced);
}

void workers_send(net *n, net_port *port, p4_frame *frame, uint64_t time, bool pfc)
{
    workers *w = n->workers;
    uint32_t rank = w->owner[port->peer->node->index];
    if (frame->tag)
        say_flow(n, rank, frame->tag);
    char *to = add_word(&w->out[rank], WORD_FRAME, sizeof(crossing) + frame->data_len);
    *(crossing *)(void *)to = (crossing){
        .time = time, .end = 2 * port->link + port->direction, .tag = frame->tag, .wire_len = frame->wire_len,
        .data_len = frame->data_len, .pfc = pfc,
    };
    memcpy(to + sizeof(crossing), frame->data, frame->data_len);
    if (!pfc) {
        port->lost_packets++; /* as seen from here */
        port->lost_bytes += frame->wire_len;
    }
    uint64_t *first = &w->sent[side_of(n, port)];
    *first = min_time(*first, time);
    pool_put(&n->pool, frame);
}

static void take_frame(net *n, uint32_t rank, const crossing *c)
{
    net_port *from = n->ends[c->end];
    const p4_frame *room = pool_peek(&n->pool, ROOM_AHEAD);
    if (room)
        prefetch_lines(room, 2 * LINE_BYTES);
    p4_frame *frame = pool_get(&n->pool, c->data_len);
    frame->wire_len = c->wire_len;
    frame->data_len = c->data_len;
    frame->tag = c->tag ? *number_of(&n->workers->known[rank], c->tag) : 0;
    memcpy(frame->data, c + 1, c->data_len);
    if (!c->pfc) {
        from->lost_packets--;
        from->lost_bytes -= c->wire_len;
    }
    net_put_on_wire(n, from, frame, c->time, c->pfc);
}

/* Fetches frames some steps before they are taken, because the order of links defeats hardware prefetching. */
static void look_ahead(const net *n, arrived in, uint64_t *at, bool ring)
{
    const word *next = workers_next_word(in, at);
    if (!next || next->kind != WORD_FRAME)
        return;
    const net_port *from = n->ends[((const crossing *)(const void *)(next + 1))->end];
    if (ring) {
        prefetch_slots(&from->out, from->out.tail, 0);
    } else {
        prefetch_lines((const char *)next + WORDS_AHEAD_BYTES, 2 * LINE_BYTES); /* written by another core */
        prefetch_lines(from, LINE_BYTES);
        __builtin_prefetch(&from->lost_packets, 1);
    }
}

static void take_words(net *n, uint32_t from)
{
    workers *w = n->workers;
    arrived in = w->in[from];
    uint64_t at = 0, ring_at = 0, port_at = 0;
    for (int i = 0; i < RINGS_AHEAD; i++)
        look_ahead(n, in, &port_at, false);
    for (int i = 0; i < RINGS_AHEAD; i++) {
        look_ahead(n, in, &port_at, false);
        look_ahead(n, in, &ring_at, true);
    }
    for (const word *next; (next = workers_next_word(in, &at));) {
        look_ahead(n, in, &port_at, false);
        look_ahead(n, in, &ring_at, true);
        if (next->kind == WORD_FRAME) {
            take_frame(n, from, (const crossing *)(const void *)(next + 1));
            continue;
        }
        if (next->kind == WORD_FLOW) {
            const crossing_flow *announced = (const crossing_flow *)(const void *)(next + 1);
            uint32_t tag = *number_of(&w->known[from], announced->tag) = flows_tag(&n->flows, announced->key);
            n->flows.rows[tag].psn = announced->psn;
            continue;
        }
        buffer *to = next->kind == WORD_BROADCAST ? w->broadcast : next->kind == WORD_GATHERED ? w->gathered : w->watched;
        memcpy(add_word(&to[from], next->kind, next->bytes), next + 1, next->bytes);
    }
}

/* -- meetings ---------------------------------------------------------------------------------------------------- */

static uint64_t next_time_of_all(const net *n, uint32_t side)
{
    return n->workers->all.next[side];
}

static uint64_t next_call_of_all(const net *n)
{
    return n->workers->all.call;
}

static bool late_anywhere(const net *n)
{
    return n->workers->all.late;
}

/* Every worker counts this event, so it is not among the events of one worker since the last meeting. */
static void count_call_of_all(net *n)
{
    n->events++;
    n->workers->events++;
}

static bool call_is_here(const net *n)
{
    const workers *w = n->workers;
    bool theirs = false; /* whether the first callback of a worker is one that only it has */
    for (uint32_t i = 0; i < w->count; i++)
        if (w->notices[i].own_call && w->notices[i].call == w->all.call)
            theirs = i != w->rank;
    return !theirs;
}

static void join_notices(net *n)
{
    workers *w = n->workers;
    notice all = w->notices[0];
    for (uint32_t i = 1; i < w->count; i++) {
        const notice *one = &w->notices[i];
        for (int side = 0; side < 2; side++)
            all.next[side] = min_time(all.next[side], one->next[side]);
        all.call = min_time(all.call, one->call);
        all.known = min_time(all.known, one->known);
        all.careful = all.careful > one->careful ? all.careful : one->careful;
        all.window_end = min_time(all.window_end, one->window_end);
        all.last = all.last > one->last ? all.last : one->last;
        all.events += one->events;
        all.paused += one->paused;
        all.stop |= one->stop;
        all.deadlock |= one->deadlock;
        all.pfc_used |= one->pfc_used;
        all.late |= one->late;
        all.waiting |= one->waiting;
        all.settled |= one->settled;
        all.on_brink |= one->on_brink;
        all.finished &= one->finished;
    }
    w->all = all;
    n->window_end = all.window_end;
    n->last = all.last;
    n->events = w->events += all.events;
    n->paused = w->paused = (uint32_t)((int64_t)w->paused + all.paused);
    n->stop |= all.stop || all.finished;
    n->finished &= !all.finished; /* this stops one run */
    n->deadlock |= all.deadlock;
    n->pfc_used |= all.pfc_used;
    n->waiting = all.waiting || (all.settled && all.on_brink);
    n->behind = all.settled && !n->settled;
    n->on_brink = all.on_brink;
    n->careful_ns = all.careful;
    n->known_ns = min_time(all.known, all.window_end - all.on_brink);
}

int workers_meet(net *n)
{
    workers *w = n->workers;
    notice own = {
        .next = {TIME_NEVER, TIME_NEVER},
        .call = heap_time(&n->calls), .own_call = n->calls.count && n->calls.list[0].rank & NET_OWN_CALL,
        .window_end = n->window_end, .last = n->last, .events = n->events - w->events,
        .paused = (int64_t)n->paused - (int64_t)w->paused, .stop = n->stop, .deadlock = n->deadlock,
        .pfc_used = n->pfc_used, .late = n->late, .waiting = n->waiting, .settled = n->settled,
        .on_brink = n->on_brink, .finished = n->finished, .known = TIME_NEVER,
        .careful = n->careful_ns,
    };
    if (n->settles && net_reports_after(n, &own.known) < 0)
        return -1;
    own.known = min_time(own.known, n->waits_ns);
    for (uint32_t side = 0; side < (n->sides == 1 ? 1 : 2); side++)
        own.next[side] = min_time(net_next_time(n, side), w->sent[side]);
    if (w->way->exchange(w->way, &own, sizeof own, w->notices, w->out, w->in) < 0)
        return -1;
    w->sent[0] = w->sent[1] = TIME_NEVER;
    w->meetings++;
    join_notices(n);
    bool any = false;
    for (uint32_t from = 0; from < w->count; from++) {
        take_words(n, from);
        any |= w->broadcast[from].len > 0;
    }
    return any ? n->ops->deliver(n) : 0;
}

static void refuse_to_catch_up(net *n)
{
    (void)n;
    fputs("p4cc: a host's callback looks at the network, which other workers have\n", stderr);
    abort();
}

static const net_company together = {
    next_time_of_all, next_call_of_all, call_is_here, count_call_of_all, late_anywhere, workers_meet,
    refuse_to_catch_up,
};
