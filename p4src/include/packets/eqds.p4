// Made by `p4cc packets` from the declarations in host_agents: not to be edited.
#ifndef P4CC_PACKETS_EQDS_P4
#define P4CC_PACKETS_EQDS_P4

#include "roce.p4"

@noWarn("unused") const bit<8> OPCODE_RTS = 0xE9;
@noWarn("unused") const bit<8> OPCODE_PULL = 0xEA;

// Request to send of EQDS.
header rts_t {
    bit<64> demand;  // [bytes] what the sender wants pulled, without what was trimmed
}

// Pull of EQDS.
header pull_t {
    bit<64> granted;  // [bytes] what the receiver has granted, in steps of one full packet
}

#endif
