// How arguments are passed: copy-in, copy-out, and what that means for arguments that overlap.
#include "head.p4"

bit<8> next(inout bit<8> v) {
    v = v + 1;
    return v;
}

void swap(inout bit<16> p, inout bit<16> q) {
    bit<16> t = p;
    p = q;
    q = t;
}

void both(inout bit<8> p, inout bit<8> q) {
    p = p + 1;
    q = q + 16;
}

void both_of(inout bit<8> p, in bit<8> q) {
    p = p + q;
}

bit<8> find(in bit<8> v) {
    if (v < 10) { return 1; }
    if (v < 100) {
        if (v == 50) { return 50; }
        return 2;
    }
    return 3;
}

T same<T>(in T v) { return v; }

void fill(out data_t h) {
    h.setValid();
    h.op = 0xff;
    h.a = 1;
    h.b = 2;
    h.x = 3;
    h.y = 4;
    h.r = 5;
}

control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action bump(inout bit<8> v) {
        v = v + 1;
        hdr.data.a = 0x40; // the argument may be this very field
    }
    action late(in bit<8> v, out bit<8> w) {
        hdr.data.a = 0;
        w = v;
    }
    apply {
        std.egress_spec = 1;
        if (hdr.data.op == 1) { // evaluation from left to right
            hdr.data.r = (bit<32>)(hdr.data.a ++ next(hdr.data.a) ++ hdr.data.a ++ next(hdr.data.a));
        } else if (hdr.data.op == 2) { // by reference, nothing overlaps
            swap(hdr.data.x, hdr.data.y);
        } else if (hdr.data.op == 3) { // both arguments the same: the last copy-out wins
            both(hdr.data.a, hdr.data.a);
        } else if (hdr.data.op == 4) { // the body assigns to the argument behind the parameter's back
            bump(hdr.data.a);
        } else if (hdr.data.op == 5) { // an in parameter keeps its value
            late(hdr.data.a, hdr.data.b);
        } else if (hdr.data.op == 6) { // returns from within conditions
            hdr.data.a = find(hdr.data.a);
        } else if (hdr.data.op == 7) { // slices are l-values too
            swap(hdr.data.r[31:16], hdr.data.r[15:0]);
        } else if (hdr.data.op == 8) { // generic
            hdr.data.x = same<bit<16>>(hdr.data.y) + (bit<16>)same(hdr.data.a);
        } else if (hdr.data.op == 9) { // a header as out argument
            fill(hdr.data);
        } else if (hdr.data.op == 10) { // no evaluation where && or || decides
            if (hdr.data.a == 0 && next(hdr.data.b) != 0 || next(hdr.data.b) == 0) { hdr.data.x = 1; }
        } else if (hdr.data.op == 11) { // inout arguments are copied in before later arguments are evaluated
            both_of(hdr.data.a, next(hdr.data.a));
        }
    }
}

#include "main.p4"
