/* What happens at a host: frames that arrive, frames that it sends, times at which it wants to be asked. */
#ifndef P4CC_HOSTS_H
#define P4CC_HOSTS_H

#include "net.h"

/* All hosts of a side up to the end of the window, which a callback may draw nearer. -1: the owner's error. */
int net_run_hosts(net *n, uint32_t side);
/* Lets the hosts go on that are held before `end`, up to the end of the window. -1: the owner's error. */
int net_settle(net *n, uint64_t end);
void net_host_wake_at(net *n, node *host, uint64_t time);

/* Something is due at the host in this place at `time`. */
static inline void net_host_due(net *n, uint32_t place, uint64_t time)
{
    if (n->independent)
        n->hosts.next[place].time = min_time(n->hosts.next[place].time, time);
    else
        wheel_push(n->wheel, time, (void *)(uintptr_t)place);
}

#endif
