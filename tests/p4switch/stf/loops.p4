// Loops, in controls and in actions; switch.
#include "head.p4"

control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action sum() {
        for (bit<8> i in 1 .. hdr.data.a) {
            if (i == 7) { continue; }
            if (i == 9) { break; }
            hdr.data.r = hdr.data.r + (bit<32>)i;
        }
    }
    action cell(bit<8> v) { hdr.data.r = hdr.data.r + (bit<32>)v; }
    action one() { hdr.data.x = 1; }
    action two() { hdr.data.x = 2; }
    action three() { hdr.data.x = 3; }
    table cells {
        key = { meta.m : exact; }
        actions = { cell; }
        default_action = cell(0);
        const entries = { 1 : cell(10); 2 : cell(20); 3 : cell(30); }
    }
    table pick {
        key = { hdr.data.a : exact; }
        actions = { one; two; three; NoAction; }
        default_action = NoAction;
        const entries = { 1 : one(); 2 : two(); 3 : three(); }
    }
    apply {
        std.egress_spec = 1;
        if (hdr.data.op == 1) {
            sum();
        } else if (hdr.data.op == 2) { // a table in a loop
            for (meta.m = 0; meta.m < hdr.data.a; meta.m = meta.m + 1) { cells.apply(); }
        } else if (hdr.data.op == 3) { // to the end of the type's range
            for (bit<8> i in 250 .. 255) { hdr.data.r = hdr.data.r + 1; }
        } else if (hdr.data.op == 4) { // over values, nested
            for (bit<8> i in (list<bit<8>>){ 1, 2, 4 }) {
                for (bit<8> j in 0 .. 1) { hdr.data.r = hdr.data.r + (bit<32>)(i * 10 + j); }
            }
        } else if (hdr.data.op == 5) {
            switch (pick.apply().action_run) {
                one: { hdr.data.y = 1; }
                two:
                three: { hdr.data.y = 23; }
                default: { hdr.data.y = 9; }
            }
        } else {
            switch (hdr.data.a) {
                1:
                2: { hdr.data.y = 12; }
                3: { return; }
                default: { hdr.data.y = 0xff; }
            }
            hdr.data.r = 1;
        }
    }
}

#include "main.p4"
