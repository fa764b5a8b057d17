// Lengths that the packet says, an index into a stack, and what the parser makes of mistakes in them.
#include <core.p4>
#include <v1model.p4>

header length_t {
    bit<8> bits;
    bit<8> index;
}

header options_t {
    varbit<24> data;
}

header item_t {
    bit<8> value;
}

struct headers_t {
    length_t  length;
    options_t options;
    item_t[2] items;
}

struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.length);
        packet.extract(hdr.options, (bit<32>)hdr.length.bits);
        verify(hdr.length.bits != 16, error.NoMatch);
        packet.extract(hdr.items.next);
        packet.extract(hdr.items.next);
        transition accept;
    }
}

control V(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    bit<8> which;

    apply {
        sm.egress_spec = 1;
        which = 0;
        if (sm.parser_error == error.PacketTooShort) {
            which = 1;
        } else if (sm.parser_error == error.HeaderTooShort) {
            which = 2;
        } else if (sm.parser_error == error.ParserInvalidArgument) {
            which = 3;
        } else if (sm.parser_error == error.NoMatch) {
            which = 4;
        } else if (sm.parser_error == error.ParserTimeout) {
            which = 5; // never
        } else {
            hdr.items[hdr.length.index].value = 7;
        }
        hdr.length.index = which;
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { }
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
