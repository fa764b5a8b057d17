/* What BfRuntime's tables can have besides p4src's programs: entries that age, groups, counts. */
#include <tna.p4>

header kind_t { bit<8> kind; bit<8> value; }
struct headers { kind_t h; }
struct metadata { }

parser IngressParse(packet_in packet, out headers hdr, out metadata meta, out ingress_intrinsic_metadata_t intrinsic) {
    state start { packet.extract(intrinsic); packet.advance(PORT_METADATA_SIZE); packet.extract(hdr.h); transition accept; }
}
control In(inout headers hdr, inout metadata meta, in ingress_intrinsic_metadata_t intrinsic,
           in ingress_intrinsic_metadata_from_parser_t parsed,
           inout ingress_intrinsic_metadata_for_deparser_t deparsed, inout ingress_intrinsic_metadata_for_tm_t tm) {
    DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) hits;
    ActionProfile(16) members;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) mix;
    ActionSelector(members, mix, SelectorMode_t.FAIR, 8, 4) groups;
    action send(bit<9> port) { hits.count(); tm.ucast_egress_port = port; }
    action go(bit<9> port) { tm.ucast_egress_port = port; }
    table fading {
        key = { hdr.h.kind : ternary; }
        actions = { send; }
        counters = hits;
        idle_timeout = true;
    }
    table spread {
        key = { hdr.h.kind : exact; hdr.h.value : selector; }
        actions = { go; }
        implementation = groups;
        idle_timeout = true;
    }
    apply { if (!fading.apply().hit) { spread.apply(); } }
}
control IngressDeparse(packet_out packet, inout headers hdr, in metadata meta,
                       in ingress_intrinsic_metadata_for_deparser_t deparsed) {
    apply { packet.emit(hdr); }
}
parser EgressParse(packet_in packet, out headers hdr, out metadata meta, out egress_intrinsic_metadata_t intrinsic) {
    state start { packet.extract(intrinsic); transition accept; }
}
control Out(inout headers hdr, inout metadata meta, in egress_intrinsic_metadata_t intrinsic,
            in egress_intrinsic_metadata_from_parser_t parsed,
            inout egress_intrinsic_metadata_for_deparser_t deparsed,
            inout egress_intrinsic_metadata_for_output_port_t port) {
    apply { }
}
control EgressDeparse(packet_out packet, inout headers hdr, in metadata meta,
                      in egress_intrinsic_metadata_for_deparser_t deparsed) {
    apply { packet.emit(hdr); }
}
Pipeline(IngressParse(), In(), IngressDeparse(), EgressParse(), Out(), EgressDeparse()) pipe;
Switch(pipe) main;
