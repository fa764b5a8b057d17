#include "pfc.h"

#include <string.h>

#define QUANTUM_BITS 512
#define LEAST_BYTES 34 /* up to the last priority's quanta */
#define MASK_AT 17     /* which priorities a frame applies to */
#define QUANTA_AT 18   /* 16 bits each */

static const uint8_t destination[] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};
static const uint8_t type[] = {0x88, 0x08, 0x01, 0x01}; /* MAC control, PFC */

bool pfc_is_frame(const uint8_t *data, size_t len)
{
    return len >= LEAST_BYTES && !memcmp(data + 12, type, sizeof type);
}

uint64_t pfc_quanta_ns(uint32_t quanta, uint64_t rate_bps)
{
    uint64_t work = (uint64_t)quanta * QUANTUM_BITS * 1000000000u;
    if (!rate_bps)
        return 0;
    return work / rate_bps + (work % rate_bps != 0);
}

void pfc_write(const tm_port *port, const uint8_t source[6], uint8_t *data)
{
    uint8_t due = tm_pfc_due(port);
    uint32_t quanta = port->pfc->quanta;
    memset(data, 0, PFC_BYTES);
    memcpy(data, destination, sizeof destination);
    memcpy(data + 6, source, 6);
    memcpy(data + 12, type, sizeof type);
    data[MASK_AT] = due;
    for (int i = 0; i < TM_PRIORITIES; i++)
        if (due & port->xoff & 1 << i) {
            data[QUANTA_AT + 2 * i] = quanta >> 8 & 255;
            data[QUANTA_AT + 1 + 2 * i] = quanta & 255;
        }
}

uint64_t pfc_sent(tm_port *port, uint64_t now, uint64_t rate_bps)
{
    tm_pfc *pfc = port->pfc;
    for (int i = 0; i < TM_PRIORITIES; i++) {
        tm_class *c = &pfc->classes[i];
        uint8_t bit = (uint8_t)(1u << i);
        c->pauses_sent += (port->xoff & ~port->announced & bit) != 0;
        c->resumes_sent += (~port->xoff & port->announced & bit) != 0;
        c->refreshes_sent += (port->xoff & port->announced & port->refresh & bit) != 0;
    }
    port->announced = port->xoff;
    port->refresh = 0;
    if (!port->xoff || pfc->refreshing)
        return PFC_NEVER;
    pfc->refreshing = true;
    uint64_t after = pfc_quanta_ns(pfc->quanta, rate_bps) / 2;
    return pfc->refresh_ns = now + (after ? after : 1);
}

void pfc_refresh(tm_port *port)
{
    port->pfc->refreshing = false;
    port->refresh |= port->xoff & port->announced;
    if (port->refresh)
        port->tm->wake(port);
}

uint64_t pfc_apply(tm_port *port, const uint8_t *data, uint64_t now)
{
    uint64_t first = PFC_NEVER;
    if (tm_pfc_alloc(port) < 0)
        return first;
    for (uint32_t i = 0; i < TM_PRIORITIES; i++) {
        if (!(data[MASK_AT] >> i & 1))
            continue;
        uint32_t quanta = (uint32_t)data[QUANTA_AT + 2 * i] << 8 | data[QUANTA_AT + 1 + 2 * i];
        if (!quanta) {
            tm_resume(port, i, now);
            continue;
        }
        uint64_t until = now + pfc_quanta_ns(quanta, port->link.rate->rate_bps);
        tm_pause(port, i, now, until);
        if (until < first)
            first = until;
    }
    return first;
}

void pfc_expire(tm_port *port, uint64_t now)
{
    for (uint32_t i = 0; i < TM_PRIORITIES; i++)
        if (port->paused >> i & 1 && port->pfc->classes[i].paused_until_ns <= now)
            tm_resume(port, i, now);
}

uint64_t pfc_first_end(const tm_port *port)
{
    uint64_t first = PFC_NEVER;
    for (uint32_t i = 0; port->paused && i < TM_PRIORITIES; i++)
        if (port->paused >> i & 1 && port->pfc->classes[i].paused_until_ns < first)
            first = port->pfc->classes[i].paused_until_ns;
    return first;
}

void pfc_forget(tm_port *port, uint64_t now)
{
    for (uint32_t i = 0; i < TM_PRIORITIES; i++)
        tm_resume(port, i, now);
    port->announced = port->refresh = 0;
    if (port->pfc)
        port->pfc->refreshing = false;
}
