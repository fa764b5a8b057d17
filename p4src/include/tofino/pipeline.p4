// TNA's and T2NA's blocks around the stages of include/switch.p4.
//
// Only the packet passes from ingress to egress, which parses it again. For T2NA a stage may define
// GHOST, the name of its ghost thread, and set cut_bytes. A chip has two copies of the registers
// that the ghost thread and ingress share; its compiler chooses between them by the parameter
// `ghost`.
#ifndef P4CC_PIPELINE_P4
#define P4CC_PIPELINE_P4

#include "../checksum.p4"

struct side_t {
    metadata_t          stage;
    standard_metadata_t standard;
}

control Ipv4Checksum(inout headers_t hdr) {
    Checksum() ipv4_checksum;

    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.hdr_checksum = ipv4_checksum.update(IPV4_CHECKSUM_FIELDS);
        }
    }
}

parser IngressParser(packet_in packet, out headers_t hdr, out side_t side,
                     out ingress_intrinsic_metadata_t intrinsic) {
    PARSER() own;

    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        own.apply(packet, hdr, side.stage, side.standard);
        transition accept;
    }
}

control Ingress(inout headers_t hdr, inout side_t side, in ingress_intrinsic_metadata_t intrinsic,
                in ingress_intrinsic_metadata_from_parser_t parsed,
                inout ingress_intrinsic_metadata_for_deparser_t deparsed,
                inout ingress_intrinsic_metadata_for_tm_t tm
#ifdef GHOST
                , @noWarn("unused") in ghost_intrinsic_metadata_t ghost
#endif
                ) {
    SwitchIngress() stages;

    apply {
        side.standard.ingress_port = intrinsic.ingress_port;
        side.standard.ingress_global_timestamp = parsed.global_tstamp;
        if (parsed.parser_err != PARSER_ERROR_OK
            || hdr.ipv4.isValid() && (hdr.ipv4.version != 4 || hdr.ipv4.ihl != 5)) {
            side.standard.malformed = 1;
        }
        stages.apply(hdr, side.stage, side.standard);
        if (side.standard.egress_spec == DROP_PORT) {
            deparsed.drop_ctl = 1;
#ifdef MULTICAST
        } else if (side.standard.mcast_grp != 0) {
            tm.mcast_grp_a = side.standard.mcast_grp;
#endif
        } else {
            tm.ucast_egress_port = side.standard.egress_spec;
        }
        tm.qid = (QueueId_t)side.standard.priority;
#if __TARGET_TOFINO__ == 2
        if (side.standard.cut_bytes != 0) {
            deparsed.mtu_trunc_len = (bit<14>)side.standard.cut_bytes;
        }
#endif
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in side_t side,
                        in ingress_intrinsic_metadata_for_deparser_t deparsed) {
    Ipv4Checksum() checksum;

    apply {
        checksum.apply(hdr);
        packet.emit(hdr);
    }
}

parser EgressParser(packet_in packet, out headers_t hdr, out side_t side,
                    out egress_intrinsic_metadata_t intrinsic) {
    PARSER() own;

    state start {
        packet.extract(intrinsic);
        own.apply(packet, hdr, side.stage, side.standard);
        transition accept;
    }
}

control Egress(inout headers_t hdr, inout side_t side, in egress_intrinsic_metadata_t intrinsic,
               in egress_intrinsic_metadata_from_parser_t parsed,
               inout egress_intrinsic_metadata_for_deparser_t deparsed,
               inout egress_intrinsic_metadata_for_output_port_t port) {
    SwitchEgress() stages;

    apply {
        side.standard.egress_spec = intrinsic.egress_port;
        side.standard.egress_port = intrinsic.egress_port;
        side.standard.egress_rid = intrinsic.egress_rid;
        side.standard.priority = intrinsic.egress_qid[2:0];
        side.standard.deq_qdepth = (depth_t)intrinsic.deq_qdepth;
        side.standard.egress_global_timestamp = parsed.global_tstamp;
        stages.apply(hdr, side.stage, side.standard);
        if (side.standard.egress_spec == DROP_PORT) {
            deparsed.drop_ctl = 1;
        }
    }
}

control EgressDeparser(packet_out packet, inout headers_t hdr, in side_t side,
                       in egress_intrinsic_metadata_for_deparser_t deparsed) {
    Ipv4Checksum() checksum;

    apply {
        checksum.apply(hdr);
        packet.emit(hdr);
    }
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()
#ifdef GHOST
         , GHOST()
#endif
         ) pipe;

Switch(pipe) main;

#endif
