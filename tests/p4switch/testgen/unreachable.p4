// What packets cannot reach, marked with the reason; all else they can.
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8>  kind;
    bit<8>  next;
    bit<16> a;
    bit<16> b;
}

struct headers_t {
    h_t first;
    h_t second;
    h_t third;
}

struct metadata_t {
    bit<8>                  left;
    @field_list(1) bit<8>   round;
    bit<8>                  lost;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.first);
        meta.left = 3;
        transition select(hdr.first.next) {
            1: second;
            2: third;
            default: accept;
        }
    }

    state second {
        packet.extract(hdr.second);
        transition accept;
    }

    state third {
        meta.left = 5;
        packet.extract(hdr.third);
        transition accept;
    }
}

control V(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<bit<16>>(4) kept;
    bit<16> value;
    bit<16> drawn;

    action forward(bit<9> port) {
        sm.egress_spec = port;
    }

    action once() {
        hdr.first.a = 1;
    }

    action unused() {
        hdr.first.a = 2; // never: action
    }

    table kinds {
        key = { hdr.first.kind: exact; }
        actions = { forward; once; @defaultonly unused; }
        const entries = {
            1: forward(2);
            2: once();
        }
        const default_action = forward(3);
    }

    apply {
        if (hdr.second.isValid() && hdr.third.isValid()) {
            hdr.first.a = 3; // never: validity
        }
        if (meta.left == 7) {
            hdr.first.a = 4; // never: metadata
        }
        if (hdr.third.isValid() && meta.left != 5) {
            hdr.first.a = 5; // never: both states set it
        }
        switch (kinds.apply().action_run) {
            once: {
                if (hdr.first.kind != 2) {
                    hdr.first.a = 6; // never, if an invalid header's field stays as it is
                }
            }
        }
        random(drawn, 10, 20);
        if (drawn > 20) {
            hdr.first.a = 7; // never: range
        }
        kept.read(value, 1);
        if (value == 77) {
            hdr.first.a = 8;
        }
        if (meta.round == 1 && sm.instance_type == 0) {
            hdr.first.a = 9; // never: only a packet that comes again has it
        }
        if (meta.round == 1) {
            hdr.first.a = 10;
            if (meta.lost == 1) {
                hdr.first.a = 11; // never: it is not carried along
            }
        } else if (hdr.first.kind == 9) {
            meta.round = 1;
            meta.lost = 1;
            resubmit_preserving_field_list(1);
        }
        if (hdr.second.isValid()) {
            if (hdr.second.a > hdr.second.b && hdr.second.b >= hdr.second.a) {
                hdr.first.a = 12; // never: arithmetic
            }
        }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.instance_type == 1) {
            hdr.first.b = 1; // never: nothing is cloned
        }
        if (sm.deq_qdepth > 5) {
            hdr.first.b = 2;
        }
        if (sm.egress_spec == 511) {
            hdr.first.b = 3; // never: egress begins with another port
        }
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
