// Keys of signed types: values, masks and ranges in entries, cases of a select and value sets.
#include <core.p4>
#include <v1model.p4>

enum int<8> step_t { down = -1, none = 0, up = 1 }

header data_t {
    bit<8> op;
    int<8> a;
    int<4> high;
    int<4> low;
    step_t step;
    bit<8> r;
}

struct headers_t {
    data_t data;
}

struct meta_t {
    bit<8> seen;
}

parser parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    value_set<int<8>>(4) near;
    value_set<step_t>(4) steps;
    state start {
        pkt.extract(hdr.data);
        transition select(hdr.data.op) {
            0x10: ranges;
            0x11: pairs;
            0x12: sets;
            0x13: plain;
            0x14: step_sets;
            0x15: step_ranges;
            default: accept;
        }
    }
    state ranges {
        transition select(hdr.data.a) {
            -3 .. 2: one;
            -128 .. -120: two;
            100 .. 127: three;
            -16 &&& -16: four;
            9 .. 4: five;
            default: accept;
        }
    }
    state pairs {
        transition select(hdr.data.high, hdr.data.low) {
            (-2 .. 1, -1): one;
            (-8 .. -8, 0 .. 7): two;
            (_, -8 .. 7): three;
        }
    }
    state sets {
        transition select(hdr.data.a) { near: one; default: accept; }
    }
    state plain {
        transition select(hdr.data.a) { -7: one; 7: two; default: accept; }
    }
    state step_sets {
        transition select(hdr.data.a) { steps: one; step_t.down: two; default: accept; }
    }
    state step_ranges {
        transition select(hdr.data.step) { -1 .. 1: one; near: two; -9: three; default: accept; }
    }
    state one { meta.seen = 1; transition accept; }
    state two { meta.seen = 2; transition accept; }
    state three { meta.seen = 3; transition accept; }
    state four { meta.seen = 4; transition accept; }
    state five { meta.seen = 5; transition accept; }
}

control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action put(bit<8> v) { hdr.data.r = v; }
    table over_zero {
        key = { hdr.data.a: range; hdr.data.step: range; }
        actions = { put; NoAction; }
        default_action = NoAction;
        const entries = {
            (-3 .. 2, step_t.down .. step_t.up): put(1);
            (-128 .. -120, _): put(2);
            (-3 .. 2, _): put(3);
            (3, 2 .. 127): put(4);
            (-128 .. 127, -5 .. -5): put(5);
        }
    }
    table with_priorities {
        key = { hdr.data.a: range; }
        actions = { put; NoAction; }
        default_action = NoAction;
        entries = {
            priority = 30: -1 .. 1: put(1);
            priority = 20: -100 .. 100: put(2);
            priority = 10: _: put(3);
        }
    }
    table prefixes {
        key = { hdr.data.a: lpm; }
        actions = { put; NoAction; }
        default_action = NoAction;
        const entries = {
            -16 &&& -16: put(1);
            -1: put(2);
            -128 &&& -128: put(3);
        }
    }
    table masks {
        key = { hdr.data.a: ternary; hdr.data.low: optional; }
        actions = { put; NoAction; }
        default_action = NoAction;
        const entries = {
            (-4 &&& -4, -1): put(1);
            (-5, _): put(2);
            (_, -8): put(3);
        }
    }
    table exactly {
        key = { hdr.data.a: exact; hdr.data.step: exact; }
        actions = { put; NoAction; }
        default_action = NoAction;
        const entries = {
            (-128, step_t.down): put(1);
            (127, step_t.up): put(2);
        }
    }
    apply {
        std.egress_spec = 1;
        switch (hdr.data.op) {
            1: { over_zero.apply(); }
            2: { with_priorities.apply(); }
            3: { prefixes.apply(); }
            4: { masks.apply(); }
            5: { exactly.apply(); }
            default: { hdr.data.r = meta.seen; }
        }
    }
}
#include "main.p4"
