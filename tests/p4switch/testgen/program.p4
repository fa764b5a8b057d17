// One of each: what generated tests have to find a way through.
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8>  kind;
    bit<8>  count;
    bit<16> check;
    bit<32> a;
    bit<32> b;
}

header item_t {
    bit<8> value;
}

struct headers_t {
    h_t       h;
    item_t[3] items;
}

struct metadata_t {
    @field_list(1) bit<8> left;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    bit<8> left;

    state start {
        packet.extract(hdr.h);
        verify(hdr.h.count < 4, error.ParserInvalidArgument);
        left = hdr.h.count;
        transition select(hdr.h.kind, hdr.h.count) {
            (7, 0): accept;
            (7, _): item;
            default: accept;
        }
    }

    state item {
        packet.extract(hdr.items.next);
        left = left - 1;
        transition select(left) {
            0: accept;
            default: item;
        }
    }
}

control V(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.h.isValid(), { hdr.h.a, hdr.h.b }, hdr.h.check, HashAlgorithm.csum16);
    }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<bit<32>>(16) seen;
    bit<32> before;

    action forward(bit<9> port, bit<32> limit) {
        sm.egress_spec = port;
        if (hdr.h.a > limit) {
            hdr.h.b = hdr.h.b |-| limit;
        }
    }

    action drop() {
        mark_to_drop(sm);
    }

    table route {
        key = { hdr.h.a: lpm; hdr.h.kind: exact; }
        actions = { forward; drop; }
        default_action = drop();
    }

    action small() { hdr.h.b[7:0] = 1; }
    action large() { hdr.h.b[7:0] = 2; }

    table sizes {
        key = { hdr.h.b: range; hdr.h.count: ternary; }
        actions = { small; large; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (100 .. 200, _): small();
            (201 .. 0xFFFF, 1 &&& 1): large();
        }
    }

    apply {
        if (sm.parser_error != error.NoError) {
            hdr.h.setInvalid();
            sm.egress_spec = 2;
        } else if (sm.instance_type == 6) {
            sm.egress_spec = (bit<9>)meta.left + 3;
        } else if (sm.checksum_error == 0) {
            if (route.apply().hit) {
                switch (sizes.apply().action_run) {
                    small: { clone(CloneType.I2E, 5); }
                    large: { sm.mcast_grp = 9; }
                }
                seen.read(before, (bit<32>)hdr.h.a[3:0]);
                if (before * 3 == 0x2D) {
                    hdr.h.a = before;
                }
                seen.write((bit<32>)hdr.h.a[3:0], before + 1);
            }
        } else if (hdr.h.kind == 9) {
            meta.left = 4;
            resubmit_preserving_field_list(1);
        } else {
            hash(hdr.h.b, HashAlgorithm.crc32, 32w0, { hdr.h.a }, 32w64);
            sm.egress_spec = 1;
        }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.instance_type == 1) {
            hdr.h.kind = 0xC1;
            truncate(4);
        } else if (sm.instance_type == 5 && sm.egress_rid == 77) {
            recirculate_preserving_field_list(0);
            hdr.h.kind = 9;
        }
    }
}

control C(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.h.isValid() && hdr.h.kind == 7, { hdr.h.a, hdr.h.b }, hdr.h.check, HashAlgorithm.csum16);
    }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
