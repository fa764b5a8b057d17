// What a test decides besides entries: members of value sets (over fields, stacks and bits ahead), random numbers.
#include <core.p4>
#include <v1model.p4>

header kind_t { bit<4> family; bit<12> port; }
header item_t { bit<8> v; }
header report_t { bit<8> state; bit<8> draw; bit<8> other; }

struct headers_t {
    report_t report;
    kind_t kind;
    item_t[2] items;
}
struct meta_t { bit<8> state; }
struct pair_t { bit<4> family; bit<12> port; }
struct ahead_t { bit<8> v; bit<8> following; }

parser parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    value_set<pair_t>(4) services;
    value_set<ahead_t>(2) ahead;
    value_set<bit<1>>(1) parity;
    state start {
        pkt.extract(hdr.kind);
        transition select(hdr.kind.family, hdr.kind.port) {
            (0xF, 0): accept;
            services: service;
            default: item;
        }
    }
    state service { meta.state = 1; transition item; }
    state item {
        pkt.extract(hdr.items.next);
        transition select(hdr.items.last.v, pkt.lookahead<bit<8>>()) {
            ahead: known;
            default: tell_parity;
        }
    }
    state known { meta.state = meta.state + 2; transition tell_parity; }
    state tell_parity {
        transition select(hdr.kind.port[0:0]) {
            parity: last;
        }
    }
    state last { meta.state = meta.state + 4; transition accept; }
}

control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action draw() { random(hdr.report.draw, 10, 200); }
    table drawn { actions = { draw; } default_action = draw(); }
    apply {
        std.egress_spec = 1;
        hdr.report.setValid();
        hdr.report.state = meta.state;
        if (std.parser_error != error.NoError) { hdr.report.state = meta.state | 0x80; }
        drawn.apply();
        if (hdr.report.draw > 100) { hdr.report.draw = 1; } else { hdr.report.draw = 0; }
        random(hdr.report.other, 7, 7);
    }
}

control verify_sums(inout headers_t hdr, inout meta_t meta) { apply { } }
control egress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply { } }
control update_sums(inout headers_t hdr, inout meta_t meta) { apply { } }
control deparse(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.report); } }

V1Switch(parse(), verify_sums(), ingress(), egress(), update_sums(), deparse()) main;
