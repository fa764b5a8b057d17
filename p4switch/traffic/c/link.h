/* A transmitter and the rate it sends at, exact to the fraction of a ns. */
#ifndef P4CC_LINK_H
#define P4CC_LINK_H

#include <stdbool.h>
#include <stdint.h>

#define LINK_LENGTHS 16384 /* durations of frame lengths below this are in a table */

#define LINK_LEAST_BYTES 16  /* minimum charge of a frame where headers are not charged: one flit */

/* Durations of frames at a rate: ns + part / rate_bps. Shared by all links of that rate. */
typedef struct link_rate {
    struct link_rate *next;
    uint64_t rate_bps;
    /* preamble, gap and FCS, which are not part of a frame; negative: headers that are not charged */
    int32_t framing_bytes;
    struct link_duration { uint64_t ns, part; } table[LINK_LENGTHS];
} link_rate;

/* The end of its last frame is end_ns + end_part / rate_bps, so that rounding does not accumulate over back-to-back
 * frames. */
typedef struct link_end {
    uint64_t end_ns, end_part;
    link_rate *rate; /* NULL: it has no rate, and is always free */
    uint64_t busy_ns;
} link_end;

/* Whether a link loses a frame at random: `loss` in 2^-53. The draws follow from the seed alone (splitmix64). */
typedef struct link_chance {
    uint64_t loss, state;
} link_chance;

static inline uint64_t link_loss(double share)
{
    return (uint64_t)(share * 9007199254740992.0);
}

static inline uint64_t link_draw(link_chance *c)
{
    uint64_t z = (c->state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* Consecutive seeds give unrelated draws. */
static inline link_chance link_chance_of(double share, uint64_t seed)
{
    link_chance c = {link_loss(share), seed};
    c.state = link_draw(&c);
    return c;
}

static inline bool link_loses(link_chance *c)
{
    return c->loss && link_draw(c) >> 11 < c->loss;
}

/* The element of the list with this rate, created if there is none. NULL: no memory. */
link_rate *link_rate_of(link_rate **list, uint64_t rate_bps, int32_t framing_bytes);
void link_rates_free(link_rate *list);
uint64_t link_duration_fill(link_rate *rate, uint32_t len, uint64_t *part);
/* Changes the rate; the end of the frame being sent does not change. */
void link_set_rate(link_end *l, link_rate *rate);

/* The time at which the transmitter is free again, rounded up. */
static inline uint64_t link_free_ns(const link_end *l)
{
    return l->end_ns + (l->end_part != 0);
}

/* Sends a frame; returns the time at which its last bit is sent, rounded up. `contiguous`: it waited for the
 * previous frame. */
static inline uint64_t link_send(link_end *l, uint64_t now, bool contiguous, uint32_t len)
{
    link_rate *rate = l->rate;
    uint64_t start = now, part = 0, duration, rest;
    if (contiguous) {
        start = l->end_ns;
        part = l->end_part;
    }
    if (__builtin_expect(len < LINK_LENGTHS && (rate->table[len].ns | rate->table[len].part), 1)) {
        duration = rate->table[len].ns;
        rest = rate->table[len].part;
    } else {
        duration = link_duration_fill(rate, len, &rest);
    }
    part += rest;
    uint64_t end = start + duration;
    if (part >= rate->rate_bps) {
        part -= rate->rate_bps;
        end++;
    }
    l->busy_ns += end - start;
    l->end_ns = end;
    l->end_part = part;
    return end + (part != 0);
}

#endif
