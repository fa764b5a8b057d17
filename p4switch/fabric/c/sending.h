/* Frames on their way to the next node, and those that are lost. */
#ifndef P4CC_SENDING_H
#define P4CC_SENDING_H

#include "net.h"

/* Sends a frame by a port whose link is free. `contiguous`: it waited for the one before. */
void net_send(net *n, net_port *port, p4_frame *frame, bool contiguous, bool pfc);
/* A frame that another worker has sent by `port` reaches the peer at `time`. */
void net_put_on_wire(net *n, net_port *port, p4_frame *frame, uint64_t time, bool pfc);
/* Counts a packet that is lost at `at`; port: where it was to go, NULL: `number` is none of its ports. */
void net_count_drop(net *n, node *at, net_port *port, uint32_t number, uint32_t tag, uint32_t len,
                    p4_drop_reason reason);
/* On a link; takes the frame. */
void net_lose_frame(net *n, net_port *from, p4_frame *frame, bool pfc, p4_drop_reason reason);

#endif
