// Symmetric ECMP: both directions of a pair of hosts take one path
//
// The control plane fills
//   ecmp_group  group_id -> a group of member(port)
//
// A path is a hash of the two addresses, the lower one first, and of the TTL, so that switches one
// behind the other do not split their flows alike: in a tree both directions have passed the same
// number of hops where a switch chooses. The switch's salt is not used, and all switches have to
// number their uplink ports in the same way.
#ifndef P4CC_SYMMETRIC_P4
#define P4CC_SYMMETRIC_P4

@symmetric[]
control LoadBalancer(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata, in bit<16> group_id,
                     in bit<16> group_size, in bit<32> salt, out bool found) {
    bit<32> ecmp_hash = 0;
    PairHash() pair_hash;
    PORT_SELECTOR(ecmp_selector);

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
        pair_hash.apply(hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.ttl, ecmp_hash);
        found = ecmp_group.apply().hit;
    }
}

#endif
