// One header, and a parser for it; each test brings a control `ingress` and ends with main.p4.
#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> op;
    bit<8> a;
    bit<8> b;
    bit<16> x;
    bit<16> y;
    bit<32> r;
}

header item_t {
    bit<8> v;
}

struct headers_t {
    data_t data;
    item_t[4] items;
}

struct meta_t {
    bit<8> m;
}

parser parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.data);
        transition accept;
    }
}
