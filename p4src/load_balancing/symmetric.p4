// Symmetric ECMP: both directions of a pair of hosts take one path
//
// The control plane fills
//   ecmp_group  group_id -> a group of member(port)
//
// A path is a hash of the two addresses, the lower one first, and of the TTL, so that switches one
// behind the other do not split their flows alike: on a tree both directions have as many hops
// behind them where they choose. The switch's salt is not used, and all switches have to number
// their ports upwards alike. The multiplier: ecmp.p4.
#ifndef P4CC_SYMMETRIC_P4
#define P4CC_SYMMETRIC_P4

const bit<32> HASH_MULTIPLIER = 0x9E3779B1;

@symmetric
control LoadBalancer(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata, in bit<16> group_id,
                     in bit<16> group_size, in bit<32> salt, out bool found) {
    bit<32> ecmp_hash = 0;
    bit<32> lower;
    bit<32> upper;

    action_selector(HashAlgorithm.crc16, 4096, 16) ecmp_selector;

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
        lower = hdr.ipv4.src_addr;
        upper = hdr.ipv4.dst_addr;
        if (upper < lower) {
            lower = hdr.ipv4.dst_addr;
            upper = hdr.ipv4.src_addr;
        }
        hash(ecmp_hash, HashAlgorithm.crc32, 32w0, { lower, upper }, 64w0x1_0000_0000);
        ecmp_hash = (ecmp_hash ^ (bit<32>)hdr.ipv4.ttl) * HASH_MULTIPLIER;
        found = ecmp_group.apply().hit;
    }
}

#endif
