// ECMP: a flow keeps its path, which is a hash of its 5-tuple and of the switch.
//
// The control plane fills
//   ecmp_group  group_id -> a group of member(port)
//
// Another UDP source port (an entropy) is another path. The salt is the switch's own (FlowHash of
// the target's file).
#ifndef P4CC_ECMP_P4
#define P4CC_ECMP_P4

control LoadBalancer(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata, in bit<16> group_id,
                     in bit<16> group_size, in bit<32> salt, out bool found) {
    bit<32> ecmp_hash = 0;

    FlowHash() flow_hash;
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
        bit<32> ports = 0;
        if (hdr.udp.isValid()) {
            ports = hdr.udp.src_port ++ hdr.udp.dst_port;
        }
        flow_hash.apply(hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, ports, salt,
                        ecmp_hash);
        found = ecmp_group.apply().hit;
    }
}

#endif
