/* Events at a host: frames that arrive, frames that it sends, times at which it wants to be called. */
#ifndef P4CC_HOSTS_H
#define P4CC_HOSTS_H

#include "net.h"

/* Runs all hosts of a side up to the end of the window, which a callback may move closer. -1: error of the owner. */
int net_run_hosts(net *n, uint32_t side);
/* Runs the hosts that are held before `end`, up to the end of the window. -1: error of the owner. */
int net_settle(net *n, uint64_t end, bool again);
void net_host_wake_at(net *n, node *host, uint64_t time);

/* Notes that an event is due at the host at this index at `time`. */
static inline void net_host_due(net *n, uint32_t place, uint64_t time)
{
    if (n->independent)
        n->hosts.next[place].time = min_time(n->hosts.next[place].time, time);
    else
        wheel_push(n->wheel, time, (void *)(uintptr_t)place);
}

#endif
