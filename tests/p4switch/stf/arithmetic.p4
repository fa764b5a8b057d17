// Widths, signs, saturation, slices, concatenation, shifts, casts.
#include "head.p4"

const int LIMIT = 3 * 7 - 1;

control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        bit<8> a = hdr.data.a;
        bit<8> b = hdr.data.b;
        int<8> sa = (int<8>)a;
        int<8> sb = (int<8>)b;
        if (hdr.data.op == 1) { // wrap-around
            hdr.data.r = (bit<32>)((a + b) ++ (a - b) ++ (a * b) ++ (-a));
        } else if (hdr.data.op == 2) { // saturation
            hdr.data.r = (bit<32>)((a |+| b) ++ (a |-| b) ++ (bit<8>)(sa |+| sb) ++ (bit<8>)(sa |-| sb));
        } else if (hdr.data.op == 3) { // signed
            hdr.data.x = (bit<16>)(int<16>)sa;
            hdr.data.y = (bit<16>)((int<16>)sa * (int<16>)sb);
            hdr.data.r = (sa < sb ? 32w1 : 0) | ((sa >> 1) == -1 ? 32w2 : 0) | (-sa > sb ? 32w4 : 0);
        } else if (hdr.data.op == 4) { // bits
            hdr.data.r = (bit<32>)((a & b) ++ (a | b) ++ (a ^ b) ++ ~a);
        } else if (hdr.data.op == 5) { // slices
            hdr.data.r[31:28] = a[3:0];
            hdr.data.r[11:4] = b;
            hdr.data.x = hdr.data.r[19:4];
        } else if (hdr.data.op == 6) { // shifts by more than there is
            hdr.data.r = (bit<32>)((a << 3) ++ (a >> 3) ++ (a << b) ++ (a >> b));
            hdr.data.x = (bit<16>)(bit<8>)(sa >> b);
        } else if (hdr.data.op == 7) { // casts
            hdr.data.x = (bit<16>)(bit<1>)(a == b);
            hdr.data.y = (bit<16>)(bit<4>)a;
            hdr.data.r = (bit<32>)(bit<16>)(int<16>)sa;
        } else if (hdr.data.op == 8) { // compile-time integers
            hdr.data.r = LIMIT << 4;
            hdr.data.x = (a > 7 ? 16w0xabcd : 0)[11:0] ++ 4w0xe;
        } else if (hdr.data.op == 10) { // shifts by amounts that are themselves wide
            hdr.data.x = hdr.data.x << hdr.data.r;
            hdr.data.y = (bit<16>)((int<16>)hdr.data.y >> hdr.data.r);
        } else { // wide
            bit<72> wide = (a ++ hdr.data.r ++ hdr.data.r);
            wide = wide + 1;
            hdr.data.r = wide[71:40];
            hdr.data.x = (bit<16>)(wide >> 56);
            hdr.data.y = wide[15:0];
        }
    }
}

#include "main.p4"
