/* Priority flow control between the ports of the virtual network: arrivals of PFC frames, ends of pauses, and queues
 * that are paused for too long.
 */
#ifndef P4CC_PAUSES_H
#define P4CC_PAUSES_H

#include "net.h"

void net_send_pfc(net *n, net_port *port, bool contiguous);
void net_pfc_arrive(net *n, net_port *port, p4_frame *frame);
void net_pfc_apply(net *n, net_port *port, p4_frame *frame);
void net_pfc_expire(net *n, net_port *port);
void net_pfc_refresh(net *n, net_port *port);
void net_pfc_link_down(net *n, net_port *port);

/* watch.c: checks for deadlocks and storms. -1: workers have failed. */
int pfc_watch(net *n);

static inline bool net_pfc_due(const net_port *port)
{
    return port->up && tm_pfc_due(&port->tm);
}

static inline bool frame_is_pfc(const p4_frame *frame)
{
    return pfc_is_frame(frame->data, frame->data_len);
}

#endif
