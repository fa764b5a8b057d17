// Layer-3 forwarding: the checks of RFC 1812, longest prefix match, load balancing over paths of
// equal cost, and the priority from the DSCP. MAC addresses pass unchanged, since in a p4cc network
// they are functions of the IPv4 addresses.
//
// Tables: ipv4_lpm          prefix -> forward(port), or balance(group_id, group_size, salt)
//         dscp_to_priority  DSCP -> set_priority; without an entry the priority is 0, the lowest
//         and those of the load balancer for the ports of each group. The salt is the switch's own.
// With the macro MULTICAST a prefix may also lead to replicate(group), a copy to each port of a
// multicast group of the packet replication engine, or to no_group, for group addresses
// (239.0.0.0/8) without a group. include/prelude.p4 defines a stage.
#ifndef P4CC_FORWARDING_P4
#define P4CC_FORWARDING_P4

// The load balancer is one file: load_balancing/ecmp.p4, or NAME.p4 in the include path with the
// macro LOAD_BALANCER=NAME. It declares
//   control LoadBalancer(inout headers_t hdr, inout metadata_t meta,
//                        inout standard_metadata_t standard_metadata, in bit<16> group_id,
//                        in bit<16> group_size, in bit<32> salt, out bool found)
// which sets egress_spec to a port of the group. A group has at least two ports, and the priority
// is known. `found` is false where the group is not known. A load balancer that sends one flow over
// several paths has the annotation @per_packet; one that uses the same links in both directions
// between two hosts has @symmetric[]: without the brackets a chip's compiler reads it as a hash's
// annotation.
#define P4CC_FILE_OF(name) <name.p4>
#ifdef LOAD_BALANCER
#include P4CC_FILE_OF(LOAD_BALANCER)
#else
#include "../load_balancing/ecmp.p4"
#endif
#if defined(LOAD_BALANCER_PER_PACKET) || defined(LOAD_BALANCER_SYMMETRIC)
#error control LoadBalancer: expected @per_packet or @symmetric in place of the macro
#endif

control Ipv4Forwarding(inout headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    LoadBalancer() load_balancer;

    bit<16> balanced_group_id = 0;
    bit<16> balanced_group_size = 0;
    bit<32> balanced_salt = 0;
    bool    found = false;

    action drop(counter_index_t reason) {
        ingress_drops.count(reason);
        mark_to_drop(standard_metadata);
    }

    action forward(port_t port) {
        standard_metadata.egress_spec = port;
    }

    @noWarn("unused")  // not every load balancer needs all of these
    action balance(bit<16> group_id, bit<16> group_size, bit<32> salt) {
        balanced_group_id = group_id;
        balanced_group_size = group_size;
        balanced_salt = salt;
    }

    action no_route() {
        drop(DROP_NO_ROUTE);
    }

#ifdef MULTICAST
    action replicate(bit<16> group) {
        standard_metadata.mcast_grp = group;
    }

    action no_group() {
        drop(DROP_NO_GROUP);
    }
#endif

    action set_priority(bit<3> priority) {
        standard_metadata.priority = priority;
    }

    table ipv4_lpm {
        key = { hdr.ipv4.dst_addr: lpm @name("dst_addr"); }
        actions = {
            forward;
            balance;
            no_route;
#ifdef MULTICAST
            replicate;
            no_group;
#endif
        }
        default_action = no_route();
        size = 4096;
    }

    table dscp_to_priority {
        key = { hdr.ipv4.dscp: exact @name("dscp"); }
        actions = { set_priority; }
        default_action = set_priority(0);
        size = 64;
    }

    apply {
        if (IS_MALFORMED) {
            drop(DROP_MALFORMED);
        } else if (!hdr.ipv4.isValid()) {
            drop(DROP_NOT_IPV4);
        } else if (standard_metadata.checksum_error != 0) {
            drop(DROP_CHECKSUM);
        } else if (IS_SHORTER_THAN((bit<32>)hdr.ipv4.total_len + (bit<32>)ETHERNET_BYTES)) {
            drop(DROP_MALFORMED);
        } else if (hdr.ipv4.ttl <= 1) {
            drop(DROP_TTL);
        } else {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            dscp_to_priority.apply();
            switch (ipv4_lpm.apply().action_run) {
                balance: {
                    load_balancer.apply(hdr, meta, standard_metadata, balanced_group_id,
                                        balanced_group_size, balanced_salt, found);
                    if (!found) {
                        no_route();
                    }
                }
            }
        }
    }
}

#endif
