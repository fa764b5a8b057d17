// Made by `p4cc packets` from the declarations in host_agents: not to be edited.
#ifndef P4CC_PACKETS_EQDS_P4
#define P4CC_PACKETS_EQDS_P4

#include "roce.p4"

@noWarn("unused") const bit<8> OPCODE_RTS = 0xE9;
@noWarn("unused") const bit<8> OPCODE_PULL = 0xEA;

// Request to send of EQDS.
header rts_t {
    bit<64> demand;  // [bytes] requested by the sender in total, without trimmed packets
}

// Pull of EQDS.
header pull_t {
    bit<64> granted;  // [bytes] granted in total, in steps of one full packet
}

#endif
