// All that a pipeline can ask of its traffic manager, chosen by the last byte of the IPv4 destination.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<8> version_ihl; bit<8> tos; bit<16> length; bit<16> id; bit<16> fragment;
    bit<8> ttl; bit<8> protocol; bit<16> checksum; bit<32> src; bit<32> dst;
}
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct meta_t { @field_list(1) bit<8> rounds; }
struct seen_t { bit<32> src; bit<9> port; }

parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        packet.extract(h.ethernet);
        transition select(h.ethernet.type) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 { packet.extract(h.ipv4); transition accept; }
}

control V(inout headers_t h, inout meta_t m) { apply { } }

control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        bit<8> what = h.ipv4.dst[7:0];
        s.priority = (bit<3>)(h.ipv4.tos >> 5);
        s.egress_spec = 1;
        if (what == 2) {
            s.mcast_grp = 1;
        } else if (what == 3) {
            clone_preserving_field_list(CloneType.I2E, 1, 1);
        } else if (what == 5 && m.rounds == 0) {
            m.rounds = 1;
            resubmit_preserving_field_list(1);
        } else if (what == 6) {
            mark_to_drop(s);
        } else if (what == 7) {
            digest<seen_t>(1, { h.ipv4.src, s.ingress_port });
        }
    }
}

control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        bit<8> what = h.ipv4.dst[7:0];
        if (what == 4 && m.rounds == 0) {
            m.rounds = 1;
            recirculate_preserving_field_list(1);
        } else if (what == 8 && s.instance_type == 0) {
            clone_preserving_field_list(CloneType.E2E, 1, 1);
        } else if (what == 9) {
            mark_to_drop(s);
        }
    }
}

control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h.ethernet); packet.emit(h.ipv4); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
