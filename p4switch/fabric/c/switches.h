/* What happens at a switch: frames that arrive, what its pipeline asks for, ports that send, events of the ports. */
#ifndef P4CC_SWITCHES_H
#define P4CC_SWITCHES_H

#include "net.h"

/* Everything at the switches of a side before `end`. */
void net_run_switches(net *n, uint32_t side, uint64_t end);
/* What the pipeline of `at` is to find around it. */
void net_env_init(node *at, p4_env *env);
/* Something is to happen at a port of a switch. */
void net_push(net *n, net_port *port, uint64_t time, event_kind kind, void *arg);
/* The port may have something to send: tm_switch.wake. */
void net_wake(tm_port *port);
void net_serve_touched(net *n);

#endif
