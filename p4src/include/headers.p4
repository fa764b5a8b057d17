// Headers and types that all programs share. Layouts: docs/wire-formats.md.
#ifndef P4CC_HEADERS_P4
#define P4CC_HEADERS_P4

typedef bit<48> mac_addr_t;
typedef bit<32> ipv4_addr_t;
typedef bit<9>  port_t;

const bit<32> MAX_PORTS = 512;

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8>  IP_PROTOCOL_UDP = 17;
const bit<16> UDP_PORT_ROCEV2 = 4791;

const bit<16> ETHERNET_BYTES = 14;

header ethernet_t {
    mac_addr_t dst_addr;
    mac_addr_t src_addr;
    bit<16>    ether_type;
}

header ipv4_t {
    bit<4>      version;
    bit<4>      ihl;
    bit<6>      dscp;
    bit<2>      ecn;
    bit<16>     total_len;
    bit<16>     identification;
    bit<3>      flags;
    bit<13>     frag_offset;
    bit<8>      ttl;
    bit<8>      protocol;
    bit<16>     hdr_checksum;
    ipv4_addr_t src_addr;
    ipv4_addr_t dst_addr;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

// InfiniBand base transport header.
header bth_t {
    bit<8>  opcode;
    bit<1>  solicited_event;
    bit<1>  migration_request;
    bit<2>  pad_count;
    bit<4>  transport_version;
    bit<16> partition_key;
    bit<1>  fecn;
    bit<1>  becn;
    bit<6>  reserved;
    bit<24> dest_qp;
    bit<1>  ack_request;
    bit<7>  reserved2;
    bit<24> psn;
}

#endif
