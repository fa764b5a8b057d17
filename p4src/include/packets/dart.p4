// Made by `p4cc packets` from the declarations in host_agents: not to be edited.
#ifndef P4CC_PACKETS_DART_P4
#define P4CC_PACKETS_DART_P4

#include "roce.p4"

@noWarn("unused") const bit<8> OPCODE_ACK_WITH_SHARE = 0xE4;
@noWarn("unused") const bit<8> OPCODE_SHARE_NOTICE = 0xEB;
@noWarn("unused") const bit<8> OPCODE_LOOK_AHEAD = 0xEC;

@noWarn("unused") const bit<2> DART_SHARE_NO_CONGESTION = 0;
@noWarn("unused") const bit<2> DART_SHARE_RECEIVER_CONGESTION = 1;
@noWarn("unused") const bit<2> DART_SHARE_NON_RECEIVER_CONGESTION = 2;
// What a receiver tells a sender of Dart.
header dart_share_t {
    bit<12> version;  // increases by one when the sender's share changes
    bit<2>  state;  // of the receiver (figure 5)
    bit<14> n;  // number of senders that share the line rate
    bit<4>  receiver_rate_code;  // the receiver's line rate, as in an INT record; 0: not known
}

header look_ahead_t {
    bit<16> group;  // number of the incast
    bit<16> count;
}

header look_ahead_member_t {
    bit<16> nic;  // id of a NIC
}

#endif
