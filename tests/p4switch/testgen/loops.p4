// Loops in a control and in an action; what packets cannot reach is marked, all else they can.
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8>  kind;
    bit<8>  rounds;
    bit<16> a;
}

struct headers_t {
    h_t first;
    h_t second;
}

struct metadata_t {
    bit<8>                fixed;
    bit<8>                sum;
    bit<8>                tripled;
    bit<8>                inner;
    bit<8>                seen;
    @field_list(1) bit<8> kept;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.first);
        meta.fixed = 3;
        transition accept;
    }
}

control V(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action triple(bit<8> rounds) {
        for (bit<8> i = 0; i < 3; i = i + 1) {
            meta.tripled = meta.tripled + 1;
            if (meta.tripled == 2) {
                hdr.first.a = 1;
            }
        }
    }

    table ways {
        key = { hdr.first.kind: exact; }
        actions = { triple; NoAction; }
        const default_action = NoAction();
    }

    apply {
        sm.egress_spec = 1;
        for (bit<8> i = 0; i < 5; i = i + 1) {
            meta.sum = meta.sum + i;
            if (i == 4 && meta.fixed == 3) {
                hdr.second.setValid();
                meta.seen = 1;
            }
            if (meta.fixed == 7) {
                hdr.first.a = 2; // never: the loop does not write it
            }
        }
        if (meta.sum == 10) {
            hdr.first.a = 3;
        }
        if (hdr.second.isValid() && meta.seen == 1) {
            hdr.first.a = 4;
        }
        for (bit<8> i = 0; i < 2; i = i + 1) {
            for (bit<8> j = 0; j < 2; j = j + 1) {
                if (i == 1 && j == 0) {
                    continue;
                }
                if (meta.inner == 2) {
                    hdr.first.a = 5;
                    break;
                }
                meta.inner = meta.inner + 1;
            }
        }
        if (meta.fixed == 7) {
            hdr.first.a = 6; // never: no loop writes it
        }
        ways.apply();
        if (meta.tripled == 3) {
            hdr.first.a = 7;
        }
        if (meta.kept == 2) {
            hdr.first.a = 8;
        } else if (hdr.first.kind == 9) {
            for (bit<8> i = 0; i < 2; i = i + 1) {
                meta.kept = meta.kept + 1;
            }
            resubmit_preserving_field_list(1);
        }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (meta.sum == 10 && meta.inner == 2) {
            hdr.first.a = 9;
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
