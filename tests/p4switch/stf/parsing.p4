// Sub-parsers, conditions and variables in states, lookahead of a struct, advance, varbit, verify, error values.
#include <core.p4>
#include <v1model.p4>

error { BadKind }

header kind_t { bit<8> kind; }
header pair_t { bit<8> p; bit<8> q; }
header options_t { bit<8> bytes; varbit<64> data; }
header report_t { bit<8> error_code; bit<8> seen; }

struct headers_t {
    report_t report;
    kind_t kind;
    pair_t first;
    pair_t second;
    options_t options;
}
struct meta_t { bit<8> seen; }
struct peek_t { bit<8> high; bit<4> low; bit<4> rest; }

parser pairs(packet_in pkt, out pair_t pair, inout bit<8> count)(bit<8> step) {
    bit<8> by = step;
    state start {
        pkt.extract(pair);
        count = count + by;
        transition select(pair.p == pair.q, pair.p) {
            (true, 0x07): again;
            default: accept;
        }
    }
    state again {
        by = by * 2;
        count = count + by;
        transition accept;
    }
}

parser parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    pairs(1) one;
    pairs(16) other;
    bit<8> kind;
    state start {
        pkt.extract(hdr.kind);
        kind = hdr.kind.kind;
        if (kind > 0x80) { kind = kind & 0x0f; meta.seen = 0x80; } else { meta.seen = 0; }
        transition select(kind) {
            1: two_pairs;
            2: skip;
            3: variable;
            4: checked;
            5: accept;
        }
    }
    state two_pairs {
        one.apply(pkt, hdr.first, meta.seen);
        other.apply(pkt, hdr.second, meta.seen);
        transition accept;
    }
    state skip {
        peek_t peek = pkt.lookahead<peek_t>();
        meta.seen = peek.high + (bit<8>)peek.low;
        pkt.advance(16);
        pkt.extract(hdr.first);
        transition accept;
    }
    state variable {
        pkt.extract(hdr.options, (bit<32>)pkt.lookahead<bit<8>>() * 8);
        transition accept;
    }
    state checked {
        verify(pkt.lookahead<bit<8>>() < 0x10, error.BadKind);
        pkt.extract(hdr.first);
        transition accept;
    }
}

control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        hdr.report.setValid();
        hdr.report.seen = meta.seen;
        if (std.parser_error == error.NoError) { hdr.report.error_code = 0; }
        else if (std.parser_error == error.BadKind) { hdr.report.error_code = 1; }
        else if (std.parser_error == error.PacketTooShort) { hdr.report.error_code = 2; }
        else { hdr.report.error_code = 9; }
    }
}

control verify_sums(inout headers_t hdr, inout meta_t meta) { apply { } }
control egress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply { } }
control update_sums(inout headers_t hdr, inout meta_t meta) { apply { } }
control deparse(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.report);
        pkt.emit(hdr.kind);
        pkt.emit(hdr.second);
        pkt.emit(hdr.first);
        pkt.emit(hdr.options);
    }
}

V1Switch(parse(), verify_sums(), ingress(), egress(), update_sums(), deparse()) main;
