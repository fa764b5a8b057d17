// ECMP: a flow keeps its path, which is a hash of its 5-tuple and of the switch.
//
// The control plane fills
//   ecmp_group  group_id -> a group of member(port)
//
// Another UDP source port (an entropy) is another path. The salt is the switch's own. CRCs are
// linear: a salt that is hashed beside the tuple shifts every hash by the same constant, and
// switches one behind the other split their flows alike (polarization). The product with an odd
// constant breaks that up. Hardware would give each switch its own polynomial or seed instead, and
// needs no multiplier.
#ifndef P4CC_ECMP_P4
#define P4CC_ECMP_P4

const bit<32> HASH_MULTIPLIER = 0x9E3779B1;

control LoadBalancer(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata, in bit<16> group_id,
                     in bit<16> group_size, in bit<32> salt, out bool found) {
    bit<32> ecmp_hash = 0;

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

    action hash_flow(bit<32> ports) {
        hash(ecmp_hash, HashAlgorithm.crc32, 32w0,
             { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, ports },
             64w0x1_0000_0000);
        ecmp_hash = (ecmp_hash ^ salt) * HASH_MULTIPLIER;
    }

    apply {
        if (hdr.udp.isValid()) {
            hash_flow(hdr.udp.src_port ++ hdr.udp.dst_port);
        } else {
            hash_flow(0);
        }
        found = ecmp_group.apply().hit;
    }
}

#endif
