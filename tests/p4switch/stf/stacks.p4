// Header stacks, unions, local headers, header copies.
#include <core.p4>
#include <v1model.p4>

header head_t { bit<8> op; bit<8> i; bit<8> n; }
header item_t { bit<8> v; }
header wide_t { bit<16> w; }
header_union either_t { item_t small; wide_t big; }

struct headers_t {
    head_t head;
    item_t[4] items;
    either_t either;
}
struct meta_t { item_t kept; bit<8> last; }

parser parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.head);
        transition items;
    }
    state items {
        transition select(hdr.head.n) {
            0: rest;
            default: item;
        }
    }
    state item {
        pkt.extract(hdr.items.next);
        hdr.head.n = hdr.head.n - 1;
        meta.last = (bit<8>)hdr.items.lastIndex;
        meta.kept = hdr.items.last;
        transition select(hdr.items.last.v) {
            0xff: accept;
            default: items;
        }
    }
    state rest {
        transition select(pkt.lookahead<bit<8>>()) {
            0x10 .. 0x1f: small;
            0x80 &&& 0x80: big;
            default: accept;
        }
    }
    state small { pkt.extract(hdr.either.small); transition accept; }
    state big { pkt.extract(hdr.either.big); transition accept; }
}

control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    item_t spare;
    item_t[4] copy;
    apply {
        std.egress_spec = 1;
        if (spare.isValid()) { hdr.head.op = 0xee; } // a new variable is invalid
        if (hdr.head.op == 1) {
            hdr.items[hdr.head.i].v = 0x77;
        } else if (hdr.head.op == 2) {
            hdr.head.n = hdr.items[hdr.head.i].v;
        } else if (hdr.head.op == 3) {
            hdr.items.push_front(2);
            hdr.items[0] = { 0x33 };
        } else if (hdr.head.op == 4) {
            hdr.items.pop_front(1);
            hdr.head.n = meta.last;
        } else if (hdr.head.op == 5) { // swap
            spare = hdr.items[0];
            hdr.items[0] = hdr.items[1];
            hdr.items[1] = spare;
        } else if (hdr.head.op == 6) {
            copy = hdr.items;
            hdr.items[0].setInvalid();
            hdr.head.n = copy == hdr.items ? 8w1 : 0;
            hdr.items = copy;
            hdr.head.i = copy == hdr.items ? 8w1 : 0;
        } else if (hdr.head.op == 7) {
            hdr.head.n = (bit<8>)(bit<1>)(hdr.either.isValid() && hdr.either.big.isValid());
            hdr.either.small = { 0x99 };
        } else if (hdr.head.op == 8) {
            hdr.head.n = meta.kept.v;
            hdr.items[1] = {#};
        }
    }
}

control verify_sums(inout headers_t hdr, inout meta_t meta) { apply { } }
control egress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply { } }
control update_sums(inout headers_t hdr, inout meta_t meta) { apply { } }
control deparse(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }

V1Switch(parse(), verify_sums(), ingress(), egress(), update_sums(), deparse()) main;
