// Round robin: the packets of a group take its ports in turn.
//
// The control plane fills include/group_member.p4.
//
// Operations assumed of the hardware: one register access (read, add or clear, write) a packet.
#ifndef P4CC_ROUND_ROBIN_P4
#define P4CC_ROUND_ROBIN_P4

#include "../include/group_member.p4"

register<bit<16>>(GROUPS) next_member;

@per_packet
control LoadBalancer(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata, in bit<16> group_id,
                     in bit<16> group_size, in bit<32> salt, out bool found) {
    GroupMember() members;

    bit<16> member;
    bit<16> next;

    apply {
        next_member.read(member, (bit<32>)group_id);
        next = member + 1;
        if (next >= group_size) {
            next = 0;
        }
        next_member.write((bit<32>)group_id, next);
        members.apply(group_id, member, standard_metadata.egress_spec);
        found = standard_metadata.egress_spec != DROP_PORT;
    }
}

#endif
