// The ports of a group by number, for load balancers that choose by themselves.
//
// Table: group_member (group_id, member) -> take(port), once for each use in a program; members
// count from 0.
#ifndef P4CC_GROUP_MEMBER_P4
#define P4CC_GROUP_MEMBER_P4

control GroupMember(in bit<16> group_id, in bit<16> member, out port_t chosen) {
    action take(port_t port) {
        chosen = port;
    }

    table group_member {
        key = {
            group_id: exact;
            member: exact;
        }
        actions = { take; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 16384;
    }

    apply {
        chosen = DROP_PORT;
        group_member.apply();
    }
}

#endif
