/* Priority flow control, IEEE 802.1Qbb, with real frames. */
#include "live.h"

#include <string.h>

#define PFC_BYTES 60 /* without FCS */
#define QUANTUM_BITS 512
#define NEVER LIVE_NEVER

static const uint8_t pfc_head[] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};
static const uint8_t pfc_type[] = {0x88, 0x08, 0x01, 0x01}; /* MAC control, PFC */

bool live_is_pfc(const uint8_t *data, size_t len)
{
    return len >= 34 && !memcmp(data, pfc_head, 6) && !memcmp(data + 12, pfc_type, 4);
}

static uint64_t quanta_ns(const live_port *port, uint32_t quanta)
{
    const tm_rate *rate = port->tm.link.rate;
    if (!rate)
        return 0;
    return ((uint64_t)quanta * QUANTUM_BITS * 1000000000u + rate->rate_bps - 1) / rate->rate_bps;
}

void live_pfc_arrive(live *l, live_port *port, const uint8_t *data)
{
    port->pfc_received++;
    if (!port->tm.link.rate || tm_pfc_alloc(&port->tm) < 0)
        return; /* a pause is measured in bit times of a rate */
    for (uint32_t i = 0; i < TM_PRIORITIES; i++) {
        if (!(data[17] >> i & 1))
            continue;
        uint32_t quanta = (uint32_t)data[18 + 2 * i] << 8 | data[19 + 2 * i];
        if (quanta)
            tm_pause(&port->tm, i, l->now, l->now + quanta_ns(port, quanta));
        else if (port->tm.paused >> i & 1)
            tm_resume(&port->tm, i, l->now);
    }
    live_serve_touched(l);
}

p4_frame *live_pfc_frame(live *l, live_port *port)
{
    tm_port *tm = &port->tm;
    uint8_t due = tm_pfc_due(tm);
    uint32_t quanta = tm->pfc->quanta;
    p4_frame *frame = live_frame_new(l, PFC_BYTES);
    uint8_t *d = frame->data;
    memset(d, 0, PFC_BYTES);
    memcpy(d, pfc_head, sizeof pfc_head);
    const uint8_t source[6] = {0x02, 0x01, 0, 0, tm->number >> 8 & 255, tm->number & 255};
    memcpy(d + 6, source, sizeof source);
    memcpy(d + 12, pfc_type, sizeof pfc_type);
    d[17] = due;
    for (int i = 0; i < TM_PRIORITIES; i++) {
        tm_class *c = &tm->pfc->classes[i];
        uint8_t bit = (uint8_t)(1u << i);
        if (due & tm->xoff & bit) {
            d[18 + 2 * i] = quanta >> 8 & 255;
            d[19 + 2 * i] = quanta & 255;
        }
        c->pauses_sent += (tm->xoff & ~tm->announced & bit) != 0;
        c->resumes_sent += (~tm->xoff & tm->announced & bit) != 0;
        c->refreshes_sent += (tm->xoff & tm->announced & tm->refresh & bit) != 0;
    }
    frame->wire_len = frame->data_len = PFC_BYTES;
    tm->announced = tm->xoff;
    tm->refresh = 0;
    port->refreshing = tm->xoff != 0;
    if (port->refreshing)
        port->refresh_ns = l->now + quanta_ns(port, quanta) / 2 + 1;
    port->pfc_sent++;
    return frame;
}

void live_pfc_due(live *l, live_port *port, uint64_t now)
{
    tm_port *tm = &port->tm;
    for (uint32_t i = 0; i < TM_PRIORITIES; i++)
        if (tm->paused >> i & 1 && tm->pfc->classes[i].paused_until_ns <= now)
            tm_resume(tm, i, now);
    if (port->refreshing && port->refresh_ns <= now) {
        port->refreshing = false;
        tm->refresh |= tm->xoff & tm->announced;
        live_touch(tm);
    }
    live_serve_touched(l);
}

uint64_t live_pfc_next(const live_port *port)
{
    const tm_port *tm = &port->tm;
    uint64_t time = port->refreshing ? port->refresh_ns : NEVER;
    for (uint32_t i = 0; tm->paused && i < TM_PRIORITIES; i++)
        if (tm->paused >> i & 1 && tm->pfc->classes[i].paused_until_ns < time)
            time = tm->pfc->classes[i].paused_until_ns;
    return time;
}

void live_pfc_forget(live_port *port, uint64_t now)
{
    for (uint32_t i = 0; i < TM_PRIORITIES; i++)
        if (port->tm.paused >> i & 1)
            tm_resume(&port->tm, i, now);
    port->tm.announced = port->tm.refresh = 0;
    port->refreshing = false;
}
