// Layer-3 forwarding and ECN marking, and a smoothed queueing delay for each port, which probes collect.
//
// Tables to fill: those of include/forwarding.p4 and include/ecn.p4, and
//   port_speed  port -> measure(ps_per_cell): how long a cell of the queue takes to leave
#include "include/prelude.p4"
#include "include/packets/quell.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    bth_t      bth;
    probe_t    probe;
}

struct metadata_t {
    common_metadata_t common;
}

#include "include/parser.p4"

parser ProbeParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    RoceParser() roce;

    state start {
        roce.apply(packet, hdr, meta, standard_metadata);
        transition select(meta.common.opcode) {
            OPCODE_PROBE: parse_probe;
            default: accept;
        }
    }

    state parse_probe {
        packet.extract(hdr.probe);
        transition accept;
    }
}

#include "include/ecn.p4"

const bit<32> PORTS = 512;
const bit<32> LONGEST = 0xFFFFFF;

register<bit<32>>(PORTS) smoothed_delay_of;  // one for each egress port, in units of 1.024 ns

control Delays(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    EcnMarking() marking;
    bit<48> ps_per_cell = 0;
    bit<32> smoothed;

    action measure(bit<32> ps) {
        ps_per_cell = (bit<48>)ps;
    }

    action no_measure() {}

    table port_speed {
        key = { standard_metadata.egress_port: exact @name("port"); }
        actions = { measure; no_measure; }
        default_action = no_measure();
        size = 512;
    }

    apply {
        marking.apply(hdr, meta, standard_metadata);
        if (port_speed.apply().hit) {
            bit<48> queue = (bit<48>)(bit<32>)standard_metadata.deq_qdepth;
            bit<32> delay = (bit<32>)((queue * ps_per_cell) >> 10);
            smoothed_delay_of.read(smoothed, (bit<32>)standard_metadata.egress_port);
            if (!hdr.probe.isValid()) {
                smoothed = smoothed - (smoothed >> 3) + (delay >> 3);
                smoothed_delay_of.write((bit<32>)standard_metadata.egress_port, smoothed);
            } else if (hdr.probe.answer == 0 && smoothed > (bit<32>)hdr.probe.delay) {
                hdr.probe.delay = smoothed > LONGEST ? (bit<24>)LONGEST : (bit<24>)smoothed;
            }
        }
    }
}

#define PARSER ProbeParser
#define EGRESS_STAGE Delays

#include "include/switch.p4"
