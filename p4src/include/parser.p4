// Parser of Ethernet, IPv4, UDP and BTH. A program includes this after it has declared headers_t
// and metadata_t (include/prelude.p4), and continues from meta.common.opcode, which is 0 for
// packets that are not RoCEv2.
#ifndef P4CC_PARSER_P4
#define P4CC_PARSER_P4

error {
    Ipv4HeaderUnsupported  // not version 4, or options are present
}

parser RoceParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    CHECKSUM_UNIT(ipv4_checksum)

    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        CHECK_IPV4(ipv4_checksum)
        // Only a datagram's first fragment has a UDP header.
        transition select(hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (0, IP_PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            UDP_PORT_ROCEV2: parse_bth;
            default: accept;
        }
    }

    state parse_bth {
        packet.extract(hdr.bth);
        meta.common.opcode = hdr.bth.opcode;
        transition accept;
    }
}

#endif
