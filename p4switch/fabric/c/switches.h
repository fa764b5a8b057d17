/* Events at a switch: frames that arrive, requests of its pipeline, ports that send, events of the ports. */
#ifndef P4CC_SWITCHES_H
#define P4CC_SWITCHES_H

#include "net.h"

/* Runs all events before `end` at the switches of a side. */
void net_run_switches(net *n, uint32_t side, uint64_t end);
/* The environment of the pipeline of `at`. */
void net_env_init(node *at, p4_env *env);
/* Schedules an event at a port of a switch. */
void net_push(net *n, net_port *port, uint64_t time, event_kind kind, void *arg);
/* The port may have something to send: tm_switch.wake. */
void net_wake(tm_port *port);
/* A token bucket of the port has no tokens before this time: tm_switch.hold. */
void net_hold_port(tm_port *port, uint64_t until);
/* Runs the code of the program that watches queues: tm_switch.changed. */
void net_queue_changed(tm_port *port, const p4_packet *packet, uint32_t queue, uint32_t cells);
void net_serve_touched(net *n);

#endif
