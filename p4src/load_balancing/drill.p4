// DRILL: each packet takes the shortest of two random queues and of the last choice
//
// This is DRILL(2, 1) of Ghorbani et al., "DRILL: Micro Load Balancing for Low-latency Data Center
// Networks", SIGCOMM 2017, section 3.2, among the queues of the packet's own priority and with
// bytes in place of packets.
//
// The control plane fills both tables of include/group_member.p4.
// Operations assumed of the hardware: ingress reads how long three queues are
// (include/queue_bytes.p4 counts them, since v1model shows a queue to egress only), and draws two
// random numbers below a number that the control plane sets.
#ifndef P4CC_DRILL_P4
#define P4CC_DRILL_P4

#include "../include/group_member.p4"
#include "../include/queue_bytes.p4"

#define LOAD_BALANCER_ENQUEUE QueueArrival
#define LOAD_BALANCER_DEQUEUE QueueDeparture

register<port_t>(GROUPS) shortest_of_group;  // the last choice; 0: none yet

@per_packet
@v1model_only
control LoadBalancer(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata, in bit<16> group_id,
                     in bit<16> group_size, in bit<32> salt, out bool found) {
    GroupMember() first_member;
    GroupMember() second_member;

    bit<16> first;
    bit<16> second;
    port_t  port;
    bit<32> least_bytes;
    bit<32> bytes;

    apply {
        random(first, 0, group_size - 1);
        random(second, 0, group_size - 2);
        if (second >= first) {
            second = second + 1;  // so that the two members differ
        }
        first_member.apply(group_id, first, standard_metadata.egress_spec);
        found = standard_metadata.egress_spec != DROP_PORT;
        queue_bytes.read(least_bytes, QUEUE_OF(standard_metadata.egress_spec));
        second_member.apply(group_id, second, port);
        queue_bytes.read(bytes, QUEUE_OF(port));
        if (bytes < least_bytes) {
            least_bytes = bytes;
            standard_metadata.egress_spec = port;
        }
        shortest_of_group.read(port, (bit<32>)group_id);
        queue_bytes.read(bytes, QUEUE_OF(port));
        if (port != 0 && bytes < least_bytes) {
            standard_metadata.egress_spec = port;
        }
        shortest_of_group.write((bit<32>)group_id, standard_metadata.egress_spec);
    }
}

#endif
