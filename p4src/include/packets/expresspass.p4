// Made by `p4cc packets` from the declarations in host_agents: not to be edited.
#ifndef P4CC_PACKETS_EXPRESSPASS_P4
#define P4CC_PACKETS_EXPRESSPASS_P4

#include "roce.p4"

@noWarn("unused") const bit<8> OPCODE_CREDIT = 0xEE;
@noWarn("unused") const bit<8> OPCODE_CREDIT_REQUEST = 0xEF;

// Credit of ExpressPass.
header credit_t {
    bit<32> number;  // counts the credits of a queue pair
}

// Credit request of ExpressPass, and its end.
header credit_request_t {
    bit<1>  stop;  // the sender has no more data
    bit<31> reserved;
}

#endif
