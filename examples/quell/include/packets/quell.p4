// Made by `p4cc packets` from the declarations in host_agents: not to be edited.
#ifndef P4CC_PACKETS_QUELL_P4
#define P4CC_PACKETS_QUELL_P4

#include "roce.p4"

const bit<8> OPCODE_PROBE = 0xFE;

// Probe of Quell.
header probe_t {
    bit<1>  answer;  // on its way back to the sender
    bit<7>  reserved;
    bit<24> delay;  // [1.024 ns] the largest smoothed queueing delay so far
}

#endif
