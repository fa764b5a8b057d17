// v1model's blocks around the stages of include/switch.p4.
#ifndef P4CC_PIPELINE_P4
#define P4CC_PIPELINE_P4

#include "../checksum.p4"

control SwitchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(PARSER(), VerifyIpv4Checksum(), SwitchIngress(), SwitchEgress(), UpdateIpv4Checksum(),
         SwitchDeparser()) main;

#endif
