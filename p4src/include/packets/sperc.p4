// Made by `p4cc packets` from the declarations in host_agents: not to be edited.
#ifndef P4CC_PACKETS_SPERC_P4
#define P4CC_PACKETS_SPERC_P4

#include "roce.p4"

@noWarn("unused") const bit<8> OPCODE_SPERC = 0xE5;
@noWarn("unused") const bit<8> OPCODE_SPECULATIVE = 0xF0;

// Control packet of s-PERC: what is the flow's own.
header sperc_t {
    bit<1>  response;  // on its way back to the source
    bit<1>  leaving;  // the flow has sent all its data
    bit<6>  reserved;
    bit<8>  switches_passed;
    // in which the packet was sent: its source's clock, divided by the epoch's length
    bit<16> epoch;
    bit<16> old_weight;  // n in the flow's previous control packet; its weight is 1/n
    bit<16> new_weight;  // n in this packet
    bit<16> speculative_weight;  // n for speculative packets
    bit<24> let_through;  // the least number of speculative packets that a switch lets pass
    bit<24> source_qp;  // the sender's own queue pair, to which a response goes
    bit<32> interval;  // [ns] the largest of the links' intervals between control packets of a flow
}

@noWarn("unused") const bit<2> SPERC_RECORD_NEW_FLOW = 0;
@noWarn("unused") const bit<2> SPERC_RECORD_E = 1;
@noWarn("unused") const bit<2> SPERC_RECORD_B = 2;
// What a control packet of s-PERC knows of one link.
header sperc_record_t {
    bit<32> b;  // [kb/s] the link's bottleneck rate
    bit<32> x;  // [kb/s] the flow's allocation at the link
    bit<2>  state;  // of the flow at the link
    bit<1>  ignore;  // b is not valid
    bit<13> reserved;
}

// Speculative data packet of 1RC.
header speculative_t {
    bit<16> epoch;  // of the flow's start
    bit<16> weight;  // n for speculative packets
    bit<24> sequence;  // the packet's place among the speculative ones, from 0
    bit<8>  reserved;
}

#endif
