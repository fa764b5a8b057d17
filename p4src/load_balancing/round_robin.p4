// Round robin: the packets of a group take its ports in turn.
//
// The control plane fills include/group_member.p4.
//
// Operations assumed of the hardware: one register access (read, add or clear, write) a packet.
#ifndef P4CC_ROUND_ROBIN_P4
#define P4CC_ROUND_ROBIN_P4

#include "../include/group_member.p4"

@per_packet
control LoadBalancer(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata, in bit<16> group_id,
                     in bit<16> group_size, in bit<32> salt, out bool found) {
    GroupMember() members;

    TakeTurn() turns;

    bit<16> member;

    apply {
        turns.apply(group_id, group_size, member);
        members.apply(group_id, member, standard_metadata.egress_spec);
        found = standard_metadata.egress_spec != DROP_PORT;
    }
}

#endif
