// Made by `p4cc packets` from the declarations in host_agents: not to be edited.
#ifndef P4CC_PACKETS_RCCC_P4
#define P4CC_PACKETS_RCCC_P4

#include "roce.p4"

@noWarn("unused") const bit<8> OPCODE_DATA_WITH_TARGET = 0xF0;
@noWarn("unused") const bit<8> OPCODE_TARGET = 0xE6;
@noWarn("unused") const bit<8> OPCODE_PULL_OF_QUANTA = 0xE7;

// Pull target of RCCC.
header pull_target_t {
    bit<32> target;  // [256 bytes] requested by the sender since the queue pair was opened
}

// Pull of RCCC.
header granted_quanta_t {
    bit<64> granted;  // [256 bytes] granted since the queue pair was opened
}

#endif
