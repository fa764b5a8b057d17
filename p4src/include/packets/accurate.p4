// Made by `p4cc packets` from the declarations in host_agents: not to be edited.
#ifndef P4CC_PACKETS_ACCURATE_P4
#define P4CC_PACKETS_ACCURATE_P4

#include "roce.p4"

@noWarn("unused") const bit<8> OPCODE_FRP = 0xE8;

@noWarn("unused") const bit<2> FRP_PERIODIC = 0;
@noWarn("unused") const bit<2> FRP_INIT = 1;
@noWarn("unused") const bit<2> FRP_STOP = 2;
// Flow rate packet of ACCurate.
header frp_t {
    bit<2>  kind;
    bit<1>  response;  // on its way back to the source
    bit<1>  short_circuit;  // a response that a contention point sent, not the destination
    // of a flow-stop: the flow has sent a periodic FRP or a flow-init in this period
    bit<1>  counted;
    bit<3>  reserved;
    bit<24> source_qp;  // the sender's own queue pair, to which a response goes
    bit<32> current_rate;  // [kb/s] CR
    bit<32> desired_rate;  // [kb/s] DR
}

#endif
