// Made by `p4cc packets` from the declarations in host_agents: not to be edited.
#ifndef P4CC_PACKETS_COLLECTIVE_P4
#define P4CC_PACKETS_COLLECTIVE_P4

#include "roce.p4"

@noWarn("unused") const bit<8> OPCODE_COLLECTIVE_WRITE = 0xF8;
@noWarn("unused") const bit<8> OPCODE_COLLECTIVE_ACKNOWLEDGEMENT = 0xF9;
@noWarn("unused") const bit<8> OPCODE_READ_REDUCTION = 0xFA;
@noWarn("unused") const bit<8> OPCODE_CONTRIBUTION = 0xFB;
@noWarn("unused") const bit<8> OPCODE_PUSHED_CONTRIBUTION = 0xFC;
@noWarn("unused") const bit<8> OPCODE_PUSHED_RESULT = 0xFD;

@noWarn("unused") const bit<4> COLLECTIVE_SUM = 0;
@noWarn("unused") const bit<4> COLLECTIVE_MIN = 1;
@noWarn("unused") const bit<4> COLLECTIVE_MAX = 2;
@noWarn("unused") const bit<4> COLLECTIVE_AND = 3;
@noWarn("unused") const bit<4> COLLECTIVE_OR = 4;
@noWarn("unused") const bit<4> COLLECTIVE_XOR = 5;
// In-network collectives, directly after the BTH.
header collective_t {
    bit<4>  operator;
    bit<1>  retry;  // sent again
    bit<1>  overflow;  // a partial sum did not fit a lane
    bit<2>  reserved;
    bit<8>  tree;  // which of the group's trees, from 1; 0: unicast
    bit<16> group;  // 0: unicast
    bit<16> rank;  // the initiator's place in the group, from 0; 0 in pushed packets
    bit<16> valid_bytes;  // [bytes] of the payload
    // number of the operation, from 1: of this initiator and kind, or of the group's pushes
    bit<32> sequence;
    bit<32> address;  // [16 bytes] in the memory of each member
}

// Payload of a collective; lanes that are not used have the operator's identity.
header lanes_t {
    bit<32> lane0;
    bit<32> lane1;
    bit<32> lane2;
    bit<32> lane3;
    bit<32> lane4;
    bit<32> lane5;
    bit<32> lane6;
    bit<32> lane7;
    bit<32> lane8;
    bit<32> lane9;
    bit<32> lane10;
    bit<32> lane11;
    bit<32> lane12;
    bit<32> lane13;
    bit<32> lane14;
    bit<32> lane15;
    bit<32> lane16;
    bit<32> lane17;
    bit<32> lane18;
    bit<32> lane19;
    bit<32> lane20;
    bit<32> lane21;
    bit<32> lane22;
    bit<32> lane23;
    bit<32> lane24;
    bit<32> lane25;
    bit<32> lane26;
    bit<32> lane27;
    bit<32> lane28;
    bit<32> lane29;
    bit<32> lane30;
    bit<32> lane31;
}

#endif
