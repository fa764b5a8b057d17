// Sub-controls: one instance applied twice keeps its tables; exit copies out; tables applied in several places.
#include "head.p4"

control add(inout bit<8> v, in bit<8> by)(bit<8> scale) {
    bit<8> amount;
    action set_amount(bit<8> n) { amount = n * scale + by; }
    table amounts {
        key = { v : exact; }
        actions = { set_amount; NoAction; }
        default_action = NoAction;
    }
    apply {
        amount = 1;
        amounts.apply();
        v = v + amount;
    }
}

control outer(inout bit<8> v) {
    add(10) inner;
    apply {
        inner.apply(v, 0);
        v = v ^ 0x80;
    }
}

control leave(inout bit<8> v, inout bit<8> w) {
    action stop() {
        v = 0xee;
        exit;
    }
    action go_on() { v = 0xaa; }
    table choose {
        key = { v : exact; }
        actions = { stop; go_on; }
        default_action = go_on;
        const entries = { 7 : stop(); }
    }
    apply {
        choose.apply();
        w = w + 1;
        if (w == 9) { exit; }
        w = w + 1;
    }
}

control filter(inout standard_metadata_t std, in bit<8> v) {
    action drop() { mark_to_drop(std); }
    action send(bit<9> port) { std.egress_spec = port; }
    table ports {
        key = { v : exact; }
        actions = { drop; send; }
        default_action = drop;
        const entries = { 1 : send(1); }
    }
    apply { ports.apply(); }
}

control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    add(1) adder;
    outer() twice;
    leave() leaver;
    filter() filters;

    action mark(bit<16> n) { hdr.data.x = n; }
    table marks {
        key = { hdr.data.a : exact; }
        actions = { mark; NoAction; }
        default_action = NoAction;
        const entries = { 1 : mark(0x1111); }
    }
    apply {
        std.egress_spec = 1;
        if (hdr.data.op == 1) {
            adder.apply(hdr.data.a, 0);
            adder.apply(hdr.data.b, 1);
        } else if (hdr.data.op == 2) {
            twice.apply(hdr.data.a);
            twice.apply(hdr.data.b);
        } else if (hdr.data.op == 3) {
            // Both arguments overlap, so that exit has to copy out.
            leaver.apply(hdr.data.x[7:0], hdr.data.x[15:8]);
            hdr.data.y = 0xffff;
        } else if (hdr.data.op == 4) {
            if (marks.apply().hit) { hdr.data.y = 1; } else { hdr.data.y = 2; }
        } else if (hdr.data.op == 5) {
            if (!marks.apply().hit) { hdr.data.y = 3; }
            hdr.data.r = 5;
        } else if (hdr.data.op == 6) {
            bool found = marks.apply().hit;
            hdr.data.r = found ? 32w6 : 0;
        } else if (hdr.data.op == 8) {
            filters.apply(std, hdr.data.a);
            if (hdr.data.b != 0) { filters.apply(std, hdr.data.b); }
        } else {
            marks.apply();
            hdr.data.r = 7;
        }
    }
}

#include "main.p4"
