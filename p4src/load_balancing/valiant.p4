// Valiant: from its own group of switches a flow goes to another group at random; elsewhere ECMP
//
// This is Valiant routing of dragonflies (Kim et al., "Technology-Driven, Highly-Scalable Dragonfly
// Topology", ISCA 2008). Another UDP source port (an entropy) is another detour.
//
// The control plane fills
//   departures   prefixes of the hosts in this switch's group -> departs
//   detours      group_id -> choose(count, salt); the salt is the same in all switches
//   detour       (group_id, number) -> take(port)
//   ecmp_group   group_id -> a group of member(port): the ports that lead on directly
#ifndef P4CC_VALIANT_P4
#define P4CC_VALIANT_P4

// No header says whether a packet still has to take its detour: it has to if its sender is in this
// switch's group. All switches of a group number the detours to a destination alike and take a
// flow's number from the same hash, so they agree about its detour. The parameters is_first and
// is_exit are for ugal.p4.
@detours
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

    FlowHash() detour_hash;
    FlowHash() flow_hash;
    PORT_SELECTOR(ecmp_selector);

    @noWarn("unused")
    action departs(bool is_first) { }

    table departures {
        key = { hdr.ipv4.src_addr: lpm @name("src_addr"); }
        actions = { departs; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

    @noWarn("unused")
    action choose(bit<16> detours_count, bit<32> detours_salt, bool is_exit) {
        count = detours_count;
        common_salt = detours_salt;
    }

    table detours {
        key = { group_id: exact; }
        actions = { choose; @defaultonly NoAction; }
        const default_action = NoAction();
        size = GROUPS;
    }

    @noWarn("unused")
    action take(port_t port, bool is_exit) {
        standard_metadata.egress_spec = port;
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
        found = false;
        if (departures.apply().hit) {
            found = detours.apply().hit;
        }
        if (found) {
            detour_hash.apply(hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, ports,
                              common_salt, common_hash);
            // The upper half of the hash as a share of the count.
            number = (bit<16>)(((common_hash >> 16) * (bit<32>)count) >> 16);
            found = detour.apply().hit;
        } else {
            flow_hash.apply(hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, ports, salt,
                            ecmp_hash);
            found = ecmp_group.apply().hit;
        }
    }
}

#endif
