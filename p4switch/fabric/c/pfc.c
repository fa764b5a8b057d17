/* Priority flow control, IEEE 802.1Qbb: the frames, and what they do to a port. */
#include <string.h>

#include "net.h"

#define PFC_BYTES 60 /* without FCS */
#define QUANTUM_BITS 512

static uint64_t quanta_ns(uint32_t quanta, uint64_t rate_bps)
{
    uint64_t work = (uint64_t)quanta * QUANTUM_BITS * 1000000000u;
    return work / rate_bps + (work % rate_bps != 0);
}

/* Tells the peer the present state of all priorities that are due. */
p4_frame *pfc_frame(net *n, net_port *port)
{
    static const uint8_t destination[6] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};
    uint32_t node = port->node->index, number = port->tm.number, quanta = port->tm.pfc->quanta;
    uint8_t due = tm_pfc_due(&port->tm);
    p4_frame *frame = pool_get(&n->pool, PFC_BYTES);
    uint8_t *d = frame->data;
    memset(d, 0, PFC_BYTES);
    memcpy(d, destination, 6);
    const uint8_t source[6] = {0x02, 0x01, node >> 8 & 255, node & 255, number >> 8 & 255, number & 255};
    memcpy(d + 6, source, 6);
    d[12] = 0x88; /* MAC control */
    d[13] = 0x08;
    d[14] = 0x01; /* PFC */
    d[15] = 0x01;
    d[17] = due;
    for (int i = 0; i < TM_PRIORITIES; i++)
        if (due & port->tm.xoff & 1 << i) {
            d[18 + 2 * i] = quanta >> 8 & 255;
            d[19 + 2 * i] = quanta & 255;
        }
    frame->wire_len = frame->data_len = PFC_BYTES;
    frame->tag = 0;
    return frame;
}

/* The frame of pfc_frame is on its way. */
void pfc_sent(net *n, net_port *port)
{
    tm_port *tm = &port->tm;
    n->ledger.pfc_sent++;
    for (int i = 0; i < TM_PRIORITIES; i++) {
        tm_class *c = &tm->pfc->classes[i];
        uint8_t bit = 1u << i;
        c->pauses_sent += (tm->xoff & ~tm->announced & bit) != 0;
        c->resumes_sent += (~tm->xoff & tm->announced & bit) != 0;
        c->refreshes_sent += (tm->xoff & tm->announced & tm->refresh & bit) != 0;
    }
    tm->announced = tm->xoff;
    tm->refresh = 0;
    if (tm->xoff && !port->refreshing) {
        port->refreshing = true;
        uint64_t after = quanta_ns(tm->pfc->quanta, port->peer->tm.link.rate->rate_bps) / 2;
        net_push(n, port, n->now + (after ? after : 1), EV_PFC_REFRESH, NULL);
    }
}

void pfc_refresh(net *n, net_port *port)
{
    (void)n;
    port->refreshing = false;
    if (!port->tm.xoff || !port->up)
        return;
    port->tm.refresh |= port->tm.xoff & port->tm.announced;
    net_wake(&port->tm);
}

void pfc_arrive(net *n, net_port *port, p4_frame *frame)
{
    uint64_t reaction = port->tm.pfc ? port->tm.pfc->reaction_ns : 0;
    n->ledger.pfc_received++;
    if (reaction)
        net_push(n, port, n->now + reaction, EV_PFC_APPLY, frame);
    else
        pfc_apply(n, port, frame);
}

static void arm(net *n, net_port *port, uint64_t time)
{
    if (time >= port->expire_ns)
        return;
    port->expire_ns = time;
    net_push(n, port, time, EV_PFC_EXPIRE, NULL);
}

static void resume(net *n, net_port *port, uint32_t priority)
{
    if (!(port->tm.paused >> priority & 1))
        return;
    n->paused--;
    port->deadlocks &= ~(1u << priority);
    port->storms &= ~(1u << priority);
    tm_resume(&port->tm, priority, n->now);
}

void pfc_apply(net *n, net_port *port, p4_frame *frame)
{
    const uint8_t *d = frame->data;
    uint64_t now = n->now;
    if (!frame_is_pfc(frame) || tm_pfc_alloc(&port->tm) < 0) {
        pool_put(&n->pool, frame);
        return;
    }
    for (uint32_t i = 0; i < TM_PRIORITIES; i++) {
        if (!(d[17] >> i & 1))
            continue;
        uint32_t quanta = (uint32_t)d[18 + 2 * i] << 8 | d[19 + 2 * i];
        if (!quanta) {
            resume(n, port, i);
            continue;
        }
        uint64_t until = now + quanta_ns(quanta, port->tm.link.rate->rate_bps);
        if (tm_pause(&port->tm, i, now, until))
            n->paused++;
        arm(n, port, until);
    }
    n->pfc_used = true;
    pool_put(&n->pool, frame);
}

void pfc_expire(net *n, net_port *port)
{
    uint64_t now = n->now;
    if (port->expire_ns != now)
        return; /* another, earlier one has taken its place */
    port->expire_ns = TIME_NEVER;
    for (uint32_t i = 0; i < TM_PRIORITIES; i++) {
        if (!(port->tm.paused >> i & 1))
            continue;
        if (port->tm.pfc->classes[i].paused_until_ns <= now)
            resume(n, port, i);
        else
            arm(n, port, port->tm.pfc->classes[i].paused_until_ns);
    }
}

void pfc_link_down(net *n, net_port *port)
{
    for (uint32_t i = 0; i < TM_PRIORITIES; i++)
        resume(n, port, i);
    port->tm.announced = port->tm.refresh = 0;
}
