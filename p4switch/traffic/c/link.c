#include "link.h"

#include <stdlib.h>

link_rate *link_rate_of(link_rate **list, uint64_t rate_bps, int32_t framing_bytes)
{
    for (link_rate *r = *list; r; r = r->next)
        if (r->rate_bps == rate_bps)
            return r;
    link_rate *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->rate_bps = rate_bps;
    r->framing_bytes = framing_bytes;
    r->next = *list;
    return *list = r;
}

void link_rates_free(link_rate *list)
{
    for (link_rate *next; list; list = next) {
        next = list->next;
        free(list);
    }
}

uint64_t link_duration_fill(link_rate *rate, uint32_t len, uint64_t *part)
{
    int64_t charged = (int64_t)len + rate->framing_bytes;
    if (rate->framing_bytes < 0 && charged < LINK_LEAST_BYTES)
        charged = LINK_LEAST_BYTES;
    uint64_t work = (uint64_t)charged * 8 * 1000000000u;
    uint64_t ns = work / rate->rate_bps;
    *part = work % rate->rate_bps;
    if (len < LINK_LENGTHS)
        rate->table[len] = (struct link_duration){ns, *part};
    return ns;
}

void link_set_rate(link_end *l, link_rate *rate)
{
    l->end_ns = link_free_ns(l); /* the fraction was in units of the old rate */
    l->end_part = 0;
    l->rate = rate;
}
