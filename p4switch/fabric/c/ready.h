/* Times at which the links of a switch's ports become free again, for each port that waits for it. They are taken by
 * time, then by port.
 *
 * A switch has a few dozen ports, and every packet that has to wait uses this twice. A heap has unpredictable branches;
 * so there is a minimum for every eight ports, and a minimum of these.
 */
#ifndef P4CC_READY_H
#define P4CC_READY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "heap.h"

#define READY_GROUP 8

typedef struct ready_turn {
    uint64_t time; /* TIME_NEVER: none */
    uint64_t port;
} ready_turn;

typedef struct ready {
    ready_turn first;   /* minimum of all ports */
    uint64_t *times;    /* by port */
    ready_turn *groups; /* minimum of each group */
    uint32_t ports;     /* there is room for, a multiple of READY_GROUP */
} ready;

#define READY_NONE ((ready_turn){TIME_NEVER, 0})

/* Notes that no port from `port` on, the first one of a group, waits. */
static inline void ready_empty(ready *r, uint32_t port)
{
    for (uint32_t i = port; i < r->ports; i++)
        r->times[i] = TIME_NEVER;
    for (uint32_t i = port / READY_GROUP; i < r->ports / READY_GROUP; i++)
        r->groups[i] = READY_NONE;
}

/* Makes room for ports below `ports`; false if there is no memory. */
static inline bool ready_reserve(ready *r, uint32_t ports)
{
    ports = (ports + READY_GROUP - 1) / READY_GROUP * READY_GROUP;
    if (ports <= r->ports)
        return true;
    uint64_t *times = realloc(r->times, ports * sizeof *times);
    if (times)
        r->times = times;
    ready_turn *groups = realloc(r->groups, ports / READY_GROUP * sizeof *groups);
    if (groups)
        r->groups = groups;
    if (!times || !groups)
        return false;
    uint32_t had = r->ports;
    r->ports = ports;
    ready_empty(r, had);
    return true;
}

static inline void ready_free(ready *r)
{
    free(r->times);
    free(r->groups);
    *r = (ready){.first = READY_NONE};
}

static inline bool ready_before(ready_turn a, ready_turn b)
{
    return a.time != b.time ? a.time < b.time : a.port < b.port;
}

static inline void ready_clear(ready *r)
{
    ready_empty(r, 0);
    r->first = READY_NONE;
}

/* Adds a port that does not wait yet. */
static inline void ready_add(ready *r, uint32_t port, uint64_t time)
{
    ready_turn turn = {time, port}, *group = &r->groups[port / READY_GROUP];
    r->times[port] = time;
    if (ready_before(turn, *group))
        *group = turn;
    if (ready_before(turn, r->first))
        r->first = turn;
}

/* Removes and returns the first one, which exists. */
static inline void ready_take(ready *r)
{
    uint64_t port = r->first.port, from = port / READY_GROUP * READY_GROUP;
    ready_turn least = READY_NONE;
    r->times[port] = TIME_NEVER;
    for (uint64_t i = from; i < from + READY_GROUP; i++) {
        bool earlier = r->times[i] < least.time;
        least.port = earlier ? i : least.port;
        least.time = earlier ? r->times[i] : least.time;
    }
    r->groups[port / READY_GROUP] = least;
    least = READY_NONE;
    for (uint32_t i = 0; i < r->ports / READY_GROUP; i++) {
        bool earlier = r->groups[i].time < least.time;
        least.port = earlier ? r->groups[i].port : least.port;
        least.time = earlier ? r->groups[i].time : least.time;
    }
    r->first = least;
}

#endif
