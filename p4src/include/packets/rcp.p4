// Made by `p4cc packets` from the declarations in host_agents: not to be edited.
#ifndef P4CC_PACKETS_RCP_P4
#define P4CC_PACKETS_RCP_P4

#include "roce.p4"

@noWarn("unused") const bit<8> OPCODE_RATE = 0xED;

// Rate packet of RCP.
header rcp_t {
    bit<1>  response;  // on its way back to the source
    bit<31> reserved;
    bit<32> rate;  // [kb/s] the least rate of the links passed so far and the requested rate
}

#endif
