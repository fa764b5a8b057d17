/* Priority flow control between the ports of the virtual network: arrivals of PFC frames, and ends of pauses. */
#include "pauses.h"

#include "sending.h"
#include "switches.h"

/* Sends the peer the present state of all priorities that are due. */
void net_send_pfc(net *n, net_port *port, bool contiguous)
{
    uint32_t node = port->node->index, number = port->tm.number;
    const uint8_t source[6] = {0x02, 0x01, node >> 8 & 255, node & 255, number >> 8 & 255, number & 255};
    p4_frame *frame = pool_get(&n->pool, PFC_BYTES);
    pfc_write(&port->tm, source, frame->data);
    frame->wire_len = frame->data_len = PFC_BYTES;
    frame->tag = 0;
    net_send(n, port, frame, contiguous, true);
    n->ledger.pfc_sent++;
    port->pfc_sent++;
    uint64_t refresh_ns = pfc_sent(&port->tm, n->now, port->peer->tm.link.rate->rate_bps);
    if (refresh_ns != PFC_NEVER)
        net_push(n, port, refresh_ns, EV_PFC_REFRESH, NULL);
}

void net_pfc_refresh(net *n, net_port *port)
{
    const tm_pfc *pfc = port->tm.pfc;
    if (pfc->refreshing && pfc->refresh_ns == n->now && port->up)
        pfc_refresh(&port->tm);
}

void net_pfc_arrive(net *n, net_port *port, p4_frame *frame)
{
    uint64_t reaction = port->tm.pfc ? port->tm.pfc->reaction_ns : 0;
    n->ledger.pfc_received++;
    port->pfc_received++;
    if (reaction)
        net_push(n, port, n->now + reaction, EV_PFC_APPLY, frame);
    else
        net_pfc_apply(n, port, frame);
}

static void arm(net *n, net_port *port, uint64_t time)
{
    if (time >= port->expire_ns)
        return;
    port->expire_ns = time;
    net_push(n, port, time, EV_PFC_EXPIRE, NULL);
}

/* Called after the port's pauses, which were `before`, have changed: incidents of ended pauses may be reported anew. */
static void note_pauses(net *n, net_port *port, uint8_t before)
{
    n->paused += (uint32_t)__builtin_popcount(port->tm.paused) - (uint32_t)__builtin_popcount(before);
    port->deadlocks &= port->tm.paused;
    port->storms &= port->tm.paused;
}

void net_pfc_apply(net *n, net_port *port, p4_frame *frame)
{
    uint8_t before = port->tm.paused;
    if (frame_is_pfc(frame)) {
        uint64_t first = pfc_apply(&port->tm, frame->data, n->now);
        if (first != PFC_NEVER)
            arm(n, port, first);
        n->pfc_used = true;
        note_pauses(n, port, before);
    }
    pool_put(&n->pool, frame);
}

void net_pfc_expire(net *n, net_port *port)
{
    uint8_t before = port->tm.paused;
    if (port->expire_ns != n->now)
        return; /* an earlier one has replaced it */
    port->expire_ns = TIME_NEVER;
    pfc_expire(&port->tm, n->now);
    note_pauses(n, port, before);
    if (port->tm.paused)
        arm(n, port, pfc_first_end(&port->tm));
}

void net_pfc_link_down(net *n, net_port *port)
{
    uint8_t before = port->tm.paused;
    pfc_forget(&port->tm, n->now);
    note_pauses(n, port, before);
}
