/* Priority flow control with real frames: the time of its next event in the loop. */
#include "live.h"

void live_pfc_arrive(live *l, live_port *port, const uint8_t *data)
{
    port->pfc_received++;
    if (!port->tm.link.rate)
        return; /* the length of a pause is measured in bit times of a rate */
    pfc_apply(&port->tm, data, l->now);
    live_serve_touched(l);
}

p4_frame *live_pfc_frame(live *l, live_port *port)
{
    const uint32_t number = port->tm.number;
    const uint8_t source[6] = {0x02, 0x01, 0, 0, number >> 8 & 255, number & 255};
    p4_frame *frame = live_frame_new(l, PFC_BYTES);
    pfc_write(&port->tm, source, frame->data);
    frame->wire_len = frame->data_len = PFC_BYTES;
    pfc_sent(&port->tm, l->now, port->tm.link.rate ? port->tm.link.rate->rate_bps : 0);
    port->pfc_sent++;
    return frame;
}

void live_pfc_due(live *l, live_port *port, uint64_t now)
{
    const tm_pfc *pfc = port->tm.pfc;
    pfc_expire(&port->tm, now);
    if (pfc->refreshing && pfc->refresh_ns <= now)
        pfc_refresh(&port->tm);
    live_serve_touched(l);
}

uint64_t live_pfc_next(const live_port *port)
{
    const tm_pfc *pfc = port->tm.pfc;
    uint64_t end = pfc_first_end(&port->tm), refresh = pfc && pfc->refreshing ? pfc->refresh_ns : PFC_NEVER;
    return end < refresh ? end : refresh;
}
