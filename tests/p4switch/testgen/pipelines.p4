// A packet from pipeline to pipeline: tests put statements in three places. What egress writes to `first.seen` is what
// they look at.
#include <core.p4>
#include <v1model.p4>

header first_t {
    bit<32> a;
    bit<32> seen;
}

header item_t {
    bit<64> value;
}

header options_t {
    bit<8>     kind;
    varbit<32> data;
}

header_union either_t {
    item_t one;
    item_t two;
}

struct headers_t {
    first_t   first;
    item_t    more;
    item_t    other;
    item_t[2] stack;
    either_t  either;
    options_t options;
}

struct metadata_t {
    @field_list(1) bit<32> kept;
    bit<32> lost;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.first);
        PARSER
        transition accept;
    }
}

control V(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 100;
        INGRESS
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        EGRESS
    }
}

control C(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
