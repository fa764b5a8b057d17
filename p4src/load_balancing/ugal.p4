// UGAL: each packet goes directly or takes its detour, by the queues of its first switch
//
// This is UGAL-L of dragonflies (Kim et al., "Technology-Driven, Highly-Scalable Dragonfly
// Topology", ISCA 2008), on detours as in valiant.p4.
//
// The control plane fills the tables of valiant.p4, with
//   departures   is_first for the prefixes of hosts at this switch
//   detours      is_exit if the direct paths leave the group here
//   detour       is_exit if the detour leaves the group here
// Operations assumed of the hardware: ingress reads how long two queues are, as in drill.p4.
#ifndef P4CC_UGAL_P4
#define P4CC_UGAL_P4

#include "../include/queue_bytes.p4"

#define LOAD_BALANCER_ENQUEUE QueueArrival
#define LOAD_BALANCER_DEQUEUE QueueDeparture

// A path directly to another group has one link between groups, and a detour has two. So a packet
// takes the detour if the queue there is shorter than half of the queue of the direct path, among
// the queues of the packet's own priority.
//
// No header says what a packet's first switch has chosen. Other switches of its sender's group send
// it out of the group if one of its two paths leaves there, and by their own queues if both do. A
// packet whose paths leave elsewhere, as after a failure in the group, goes on directly.
@per_packet
@detours
@adaptive
@v1model_only
control LoadBalancer(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata, in bit<16> group_id,
                     in bit<16> group_size, in bit<32> salt, out bool found) {
    bit<32> ports = 0;
    bit<32> common_salt = 0;
    bit<32> common_hash = 0;
    bit<32> ecmp_hash = 0;
    bit<16> count = 0;
    bit<16> number = 0;
    bit<32> direct_bytes;
    bit<32> detour_bytes;
    bool    has_detour = false;
    bool    may_go_directly = false;
    bool    may_take_detour = false;
    port_t  detour_port = 0;

    FlowHash() detour_hash;
    FlowHash() flow_hash;
    PORT_SELECTOR(ecmp_selector);

    action departs(bool is_first) {
        may_go_directly = is_first;
        may_take_detour = is_first;
    }

    table departures {
        key = { hdr.ipv4.src_addr: lpm @name("src_addr"); }
        actions = { departs; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

    action choose(bit<16> detours_count, bit<32> detours_salt, bool is_exit) {
        count = detours_count;
        common_salt = detours_salt;
        may_go_directly = may_go_directly || is_exit;
    }

    table detours {
        key = { group_id: exact; }
        actions = { choose; @defaultonly NoAction; }
        const default_action = NoAction();
        size = GROUPS;
    }

    action take(port_t port, bool is_exit) {
        detour_port = port;
        may_take_detour = may_take_detour || is_exit;
    }

    table detour {
        key = {
            group_id: exact;
            number: exact;
        }
        actions = { take; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 16384;
    }

    action member(port_t port) {
        standard_metadata.egress_spec = port;
    }

    table ecmp_group {
        key = {
            group_id: exact;
            ecmp_hash: selector;
        }
        actions = { member; }
        implementation = ecmp_selector;
        size = GROUPS;
    }

    apply {
        if (hdr.udp.isValid()) {
            ports = hdr.udp.src_port ++ hdr.udp.dst_port;
        }
        flow_hash.apply(hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, ports, salt,
                        ecmp_hash);
        found = ecmp_group.apply().hit;
        if (departures.apply().hit) {
            has_detour = detours.apply().hit;
        }
        if (has_detour) {
            detour_hash.apply(hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, ports,
                              common_salt, common_hash);
            // The upper half of the hash as a share of the count.
            number = (bit<16>)(((common_hash >> 16) * (bit<32>)count) >> 16);
            has_detour = detour.apply().hit;
        }
        if (has_detour && (may_take_detour || !found)) {
            if (found && may_go_directly) {
                queue_bytes.read(direct_bytes, QUEUE_OF(standard_metadata.egress_spec));
                queue_bytes.read(detour_bytes, QUEUE_OF(detour_port));
                if (detour_bytes < direct_bytes >> 1) {
                    standard_metadata.egress_spec = detour_port;
                }
            } else {
                standard_metadata.egress_spec = detour_port;
                found = true;
            }
        }
    }
}

#endif
