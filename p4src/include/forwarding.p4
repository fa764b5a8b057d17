// Layer-3 forwarding: the checks of RFC 1812, longest prefix match, ECMP, priority from the DSCP.
//
// MAC addresses pass unchanged: in a p4cc network they are functions of the IPv4 addresses.
//
// The control plane fills
//   ipv4_lpm          prefix -> forward(port), or ecmp(group_id, salt)
//   ecmp_group        group_id -> a group of forward(port) members
//   dscp_to_priority  DSCP -> set_priority; what is not listed has priority 0, the lowest
//
// ECMP picks a member by a hash over the 5-tuple, so a flow keeps its path, and another UDP source port (an entropy)
// is another path. The salt is the switch's own. CRCs are linear: a salt that is hashed beside the tuple shifts every
// hash by the same constant, and switches one behind the other split their flows alike (polarization). The product
// with an odd constant breaks that up. Hardware would give each switch its own polynomial or seed instead, and
// needs no multiplier.
#ifndef P4CC_FORWARDING_P4
#define P4CC_FORWARDING_P4

// Indices of the counter ingress_drops.
const bit<32> DROP_MALFORMED = 0;    // shorter than its headers say, or IPv4 with options
const bit<32> DROP_NOT_IPV4 = 1;
const bit<32> DROP_CHECKSUM = 2;     // IPv4 header checksum
const bit<32> DROP_TTL = 3;
const bit<32> DROP_NO_ROUTE = 4;
const bit<32> DROP_REASONS = 8;

const bit<32> HASH_MULTIPLIER = 0x9E3779B1;

control Ipv4Forwarding(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    bit<16> ecmp_group_id = 0;
    bit<32> ecmp_salt = 0;
    bit<32> ecmp_hash = 0;

    counter(DROP_REASONS, CounterType.packets) ingress_drops;
    action_selector(HashAlgorithm.crc16, 4096, 16) ecmp_selector;

    action drop(bit<32> reason) {
        ingress_drops.count(reason);
        mark_to_drop(standard_metadata);
    }

    action forward(port_t port) {
        standard_metadata.egress_spec = port;
    }

    action ecmp(bit<16> group_id, bit<32> salt) {
        ecmp_group_id = group_id;
        ecmp_salt = salt;
    }

    action no_route() {
        drop(DROP_NO_ROUTE);
    }

    action set_priority(bit<3> priority) {
        standard_metadata.priority = priority;
    }

    table ipv4_lpm {
        key = { hdr.ipv4.dst_addr: lpm @name("dst_addr"); }
        actions = { forward; ecmp; no_route; }
        default_action = no_route();
        size = 4096;
    }

    table ecmp_group {
        key = {
            ecmp_group_id: exact @name("group_id");
            ecmp_hash: selector;
        }
        actions = { forward; }
        implementation = ecmp_selector;
        size = 1024;
    }

    table dscp_to_priority {
        key = { hdr.ipv4.dscp: exact @name("dscp"); }
        actions = { set_priority; }
        default_action = set_priority(0);
        size = 64;
    }

    action hash_flow(bit<32> ports) {
        hash(ecmp_hash, HashAlgorithm.crc32, 32w0,
             { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, ports },
             64w0x1_0000_0000);
        ecmp_hash = (ecmp_hash ^ ecmp_salt) * HASH_MULTIPLIER;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError) {
            drop(DROP_MALFORMED);
        } else if (!hdr.ipv4.isValid()) {
            drop(DROP_NOT_IPV4);
        } else if (standard_metadata.checksum_error != 0) {
            drop(DROP_CHECKSUM);
        } else if ((bit<32>)(hdr.ipv4.total_len) + (bit<32>)ETHERNET_BYTES > standard_metadata.packet_length) {
            drop(DROP_MALFORMED);
        } else if (hdr.ipv4.ttl <= 1) {
            drop(DROP_TTL);
        } else {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            dscp_to_priority.apply();
            switch (ipv4_lpm.apply().action_run) {
                ecmp: {
                    if (hdr.udp.isValid()) {
                        hash_flow(hdr.udp.src_port ++ hdr.udp.dst_port);
                    } else {
                        hash_flow(0);
                    }
                    if (!ecmp_group.apply().hit) {
                        no_route();
                    }
                }
            }
        }
    }
}

#endif
