/* Transmission of frames to the next node, and losses of frames. */
#ifndef P4CC_SENDING_H
#define P4CC_SENDING_H

#include "net.h"

/* Sends a frame by a port whose link is free. `contiguous`: it waited for the previous frame. */
void net_send(net *n, net_port *port, p4_frame *frame, bool contiguous, bool pfc);
/* Delivers a frame that another worker has sent by `port` to the peer at `time`. */
void net_put_on_wire(net *n, net_port *port, p4_frame *frame, uint64_t time, bool pfc);
/* Counts a packet that is lost at `at`; port: its destination; NULL: the node has no port `number`. */
void net_count_drop(net *n, node *at, net_port *port, uint32_t number, uint32_t tag, uint32_t len,
                    p4_drop_reason reason);
/* Counts a loss on a link; takes the frame. */
void net_lose_frame(net *n, net_port *from, p4_frame *frame, bool pfc, p4_drop_reason reason);

#endif
