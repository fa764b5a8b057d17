/* Transmission of frames to the next node, and losses of frames. */
#include "sending.h"

#include "exchange.h"
#include "hosts.h"
#include "switches.h"

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
    flow *row = flows_row(&n->flows, tag);
    row->dropped_packets++;
    row->dropped_bytes += len;
    if (UNLIKELY(n->recorder.tracing))
        record_hop(n, at, HOP_DROP + reason, (int32_t)number, -1, 0, len, tag);
}

void net_lose_frame(net *n, net_port *from, p4_frame *frame, bool pfc, p4_drop_reason reason)
{
    if (pfc) {
        n->ledger.pfc_lost++;
    } else {
        from->lost_packets++;
        from->lost_bytes += frame->wire_len;
        net_count_drop(n, from->node, from, from->tm.number, frame->tag, frame->wire_len, reason);
    }
    pool_put(&n->pool, frame);
}

/* -- wires ------------------------------------------------------------------------------------------------------- */

/* Puts a frame on a wire; its last bit arrives at `time`, which is not before that of the previous frame. */
static inline void put_on_wire(net *n, net_port *port, p4_frame *frame, uint64_t time)
{
    wire_push(&port->out, &n->arena, time, frame);
    if (port->to_port) {
        agenda *next = &n->switches.next[port->to];
        next->time = min_time(next->time, time);
        next->ports |= port->to_port;
    } else {
        net_host_due(n, port->to, time);
    }
}

void net_put_on_wire(net *n, net_port *port, p4_frame *frame, uint64_t time, bool pfc)
{
    if (!port->up)
        net_lose_frame(n, port, frame, pfc, P4_DROP_LINK_DOWN);
    else if (pfc && port->to_port)
        net_push(n, port->peer, time, EV_PFC_ARRIVE, frame);
    else
        put_on_wire(n, port, frame, time);
}

/* Whether and when a link delivers a frame to its other end. */
static bool reaches(net_port *port, uint64_t *time)
{
    if (link_loses(&port->chance))
        return false;
    if (*time < port->least_ns)
        *time = port->least_ns;
    else
        port->unusual = port->chance.loss > 0;
    return true;
}

/* Handles frames that are not simply put on the wire: the link is down or may lose the frame, it leads to another
 * worker, or the frame is a PFC frame for the port. */
static void send_elsewhere(net *n, net_port *port, p4_frame *frame, uint64_t end, bool pfc)
{
    uint64_t time = end + (pfc && port->to_port ? port->delay_ns : port->hop_ns);
    if (port->up && port->unusual && !reaches(port, &time))
        net_lose_frame(n, port, frame, pfc, P4_DROP_LINK_LOSS);
    else if (port->up && port->away)
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
    if (UNLIKELY(pfc || port->away || port->unusual || !port->up))
        send_elsewhere(n, port, frame, end, pfc);
    else
        put_on_wire(n, port, frame, end + port->hop_ns);
}
