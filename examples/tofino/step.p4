// A leaf-spine switch for Tofino: routes, ECMP, queues by DSCP, and an ECN mark on each packet that
// leaves THRESHOLD_CELLS or more in its queue.
//
// Tables: routes   prefix -> send(port), or spread(group), whose ports the selector has
//         members  group  -> send(port), one of several by the hash of the addresses and ports
//         queues   DSCP   -> set_queue(queue); without an entry queue 0, the lowest priority
#include <tna.p4>

#ifndef THRESHOLD_CELLS
#define THRESHOLD_CELLS 500  // a cell has 80 bytes
#endif

const bit<16> TYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_UDP = 17;
const bit<2> CONGESTION_EXPERIENCED = 3;

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> total_len;
    bit<16> identification;
    bit<3>  flags;
    bit<13> frag_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> hdr_checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
}

struct metadata_t {
    bit<16> group;
}

parser Headers(packet_in packet, out headers_t hdr) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol, hdr.ipv4.ihl) {
            (PROTOCOL_UDP, 5): parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

control Ipv4Checksum(inout headers_t hdr) {
    Checksum() sum;

    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.hdr_checksum = sum.update({
                hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len,
                hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.frag_offset, hdr.ipv4.ttl,
                hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr
            });
        }
    }
}

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta,
                     out ingress_intrinsic_metadata_t intrinsic) {
    Headers() headers;

    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        meta.group = 0;
        headers.apply(packet, hdr);
        transition accept;
    }
}

control Ingress(inout headers_t hdr, inout metadata_t meta,
                in ingress_intrinsic_metadata_t intrinsic,
                in ingress_intrinsic_metadata_from_parser_t parsed,
                inout ingress_intrinsic_metadata_for_deparser_t deparsed,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    Hash<bit<16>>(HashAlgorithm_t.CRC16) hash;
    ActionProfile(1024) ports;
    ActionSelector(ports, hash, SelectorMode_t.FAIR, 64, 1024) selector;

    action drop() {
        deparsed.drop_ctl = 1;
    }

    action send(PortId_t port) {
        tm.ucast_egress_port = port;
    }

    action spread(bit<16> group) {
        meta.group = group;
    }

    action set_queue(QueueId_t queue) {
        tm.qid = queue;
    }

    table routes {
        key = { hdr.ipv4.dst_addr: lpm @name("dst_addr"); }
        actions = { send; spread; drop; }
        default_action = drop();
        size = 4096;
    }

    table members {
        key = {
            meta.group: exact @name("group");
            hdr.ipv4.src_addr: selector;
            hdr.ipv4.dst_addr: selector;
            hdr.udp.src_port: selector;
            hdr.udp.dst_port: selector;
        }
        actions = { send; @defaultonly drop; }
        default_action = drop();
        implementation = selector;
        size = 1024;
    }

    table queues {
        key = { hdr.ipv4.dscp: exact @name("dscp"); }
        actions = { set_queue; }
        default_action = set_queue(0);
        size = 64;
    }

    apply {
        if (!hdr.ipv4.isValid() || hdr.ipv4.ttl <= 1) {
            drop();
        } else {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            queues.apply();
            switch (routes.apply().action_run) {
                spread: { members.apply(); }
            }
        }
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t deparsed) {
    Ipv4Checksum() checksum;

    apply {
        checksum.apply(hdr);
        packet.emit(hdr);
    }
}

parser EgressParser(packet_in packet, out headers_t hdr, out metadata_t meta,
                    out egress_intrinsic_metadata_t intrinsic) {
    Headers() headers;

    state start {
        packet.extract(intrinsic);
        meta.group = 0;
        headers.apply(packet, hdr);
        transition accept;
    }
}

control Egress(inout headers_t hdr, inout metadata_t meta, in egress_intrinsic_metadata_t intrinsic,
               in egress_intrinsic_metadata_from_parser_t parsed,
               inout egress_intrinsic_metadata_for_deparser_t deparsed,
               inout egress_intrinsic_metadata_for_output_port_t port) {
    Counter<bit<32>, PortId_t>(512, CounterType_t.PACKETS) marked;

    apply {
        bit<19> below = THRESHOLD_CELLS |-| intrinsic.deq_qdepth;
        if (hdr.ipv4.isValid() && hdr.ipv4.ecn != 0 && below == 0) {
            hdr.ipv4.ecn = CONGESTION_EXPERIENCED;
            marked.count(intrinsic.egress_port);
        }
    }
}

control EgressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                       in egress_intrinsic_metadata_for_deparser_t deparsed) {
    Ipv4Checksum() checksum;

    apply {
        checksum.apply(hdr);
        packet.emit(hdr);
    }
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser())
    pipe;

Switch(pipe) main;
