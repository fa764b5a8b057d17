/* Prefetching of data that is needed next. With hundreds of switches nothing of a node is in the cache when its turn
 * comes, and one cache miss after the other would cost more than the work itself.
 */
#ifndef P4CC_PREFETCH_H
#define P4CC_PREFETCH_H

#include "fetch.h"
#include "net.h"

#define PREFETCH_SLOTS 64 /* of a wire's ring */
#define HOST_FRAMES_AHEAD 2 /* a host takes longer for each than a switch */

/* Data that a wire's next user needs of its ring: the slots in use, or the next free ones. */
FETCH void prefetch_slots(const wire *w, uint32_t from, uint32_t count)
{
    for (uint32_t i = 0; w->slots && i <= count && i <= PREFETCH_SLOTS; i += 64 / sizeof *w->slots)
        __builtin_prefetch(&w->slots[(from + i) & w->mask], 1);
}

/* Frames on their way to a port, and room for as many outgoing ones. */
FETCH void prefetch_rings(const net_port *port)
{
    const wire *in = &port->peer->out, *out = &port->out;
    prefetch_slots(in, in->head, in->tail - in->head);
    prefetch_slots(out, out->tail, in->tail - in->head);
}

#define EACH_PORT(at, port) \
    for (uint32_t i_ = 0; i_ < (at)->tm.port_count; i_++) \
        for (net_port *port = (at)->tm.ports[i_] ? net_port_of((at)->tm.ports[i_]) : NULL; port; port = NULL)

/* The packets that are next in their queues. */
#define EACH_HEAD(at, head) \
    EACH_PORT(at, port_) \
        for (uint32_t p_ = port_->tm.nonempty; p_; p_ &= p_ - 1) \
            for (const p4_packet *head = port_->tm.queues[__builtin_ctz(p_)].fifo.head; head; head = NULL)

/* All data that a switch is about to use, fetched in parallel. */
FETCH void prefetch_ports(const node *at)
{
    EACH_PORT(at, port) {
        prefetch_lines(port, offsetof(net_port, tm.queues));
        for (uint32_t p = at->tm.priorities; p; p &= p - 1)
            prefetch_lines(&port->tm.queues[__builtin_ctz(p)], sizeof(tm_queue));
    }
    p4_switch_prefetch_tables(at->sw);
    EACH_PORT(at, port) {
        __builtin_prefetch(&port->peer->out, 1);
        if (!port->tm.pfc)
            continue;
        __builtin_prefetch(port->tm.pfc);
        for (uint32_t p = port->tm.lossless; p; p &= p - 1)
            prefetch_lines(&port->tm.pfc->classes[__builtin_ctz(p)], sizeof(tm_class));
    }
    EACH_PORT(at, port)
        prefetch_rings(port);
    EACH_HEAD(at, head)
        prefetch_lines(head, at->tm.packet_bytes);
}

/* Data behind the heads of its queues, after those have arrived in the cache. */
FETCH void prefetch_behind(const node *at)
{
    EACH_HEAD(at, head)
        tm_fetch_behind(&at->tm, head);
}

/* A switch that runs next. */
FETCH void prefetch_switch(const node *at)
{
    prefetch_lines(at, sizeof *at);
    prefetch_lines(at->tm.ports, at->tm.port_count * sizeof(tm_port *));
    prefetch_lines(at->ready.times, at->ready.ports * sizeof *at->ready.times);
    prefetch_lines(at->ready.groups, at->ready.ports / READY_GROUP * sizeof *at->ready.groups);
    p4_switch_prefetch(at->sw);
}

/* A frame for a host, which is copied as far as it is present: an ACK with telemetry of five links takes three cache
 * lines. */
FETCH void prefetch_copied(const net *n, const p4_frame *frame)
{
    prefetch_frame(frame);
    if (n->third_line)
        __builtin_prefetch((const char *)frame + FRAME_FETCHED);
}

/* Hosts that run next, for each further one a pointer less: node, port, the peer's wire, the rings, the frames. */
FETCH void prefetch_hosts(const net *n, uint32_t next)
{
    const nodes *of = &n->hosts;
    const net_port *port;
    if (next + 4 < of->count)
        prefetch_lines(of->list[next + 4], sizeof(node));
    if (next + 3 < of->count && (port = of->list[next + 3]->port))
        prefetch_lines(port, offsetof(net_port, tm.queues));
    if (next + 2 < of->count && (port = of->list[next + 2]->port))
        __builtin_prefetch(&port->peer->out, 1);
    if (next + 1 < of->count && (port = of->list[next + 1]->port))
        prefetch_rings(port);
    if (next < of->count && (port = of->list[next]->port)) {
        const wire *in = &port->peer->out;
        for (uint32_t i = 0; i <= HOST_FRAMES_AHEAD && i < in->tail - in->head; i++)
            prefetch_copied(n, wire_at(in, i)->frame);
    }
}

#endif
