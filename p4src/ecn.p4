// Layer-3 forwarding with ECMP, and RED/ECN marking. What DCQCN, DCTCP and every other ECN-driven protocol needs.
//
// Tables to fill: those of include/forwarding.p4 (ipv4_lpm, ecmp_group, dscp_to_priority) and include/ecn.p4 (ecn_threshold).
// Wire format: plain RoCEv2 (docs/wire-formats.md); only TTL, ECN and the IPv4 checksum change, all of which the ICRC excludes.
// On hardware: the same tables; a built-in WRED profile would do what include/ecn.p4 does.
#include <core.p4>
#include <v1model.p4>
#include "include/headers.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    bth_t      bth;
}

struct metadata_t {
    bit<8> opcode;
}

#include "include/parser.p4"
#include "include/checksum.p4"
#include "include/forwarding.p4"
#include "include/ecn.p4"

parser EcnParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    RoceParser() roce;
    state start {
        roce.apply(packet, hdr, meta);
        transition accept;
    }
}

control EcnIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Ipv4Forwarding() forwarding;
    apply {
        forwarding.apply(hdr, standard_metadata);
    }
}

control EcnEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    EcnMarking() marking;
    apply {
        marking.apply(hdr, standard_metadata);
    }
}

control EcnDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(EcnParser(), VerifyIpv4Checksum(), EcnIngress(), EcnEgress(), UpdateIpv4Checksum(), EcnDeparser()) main;
