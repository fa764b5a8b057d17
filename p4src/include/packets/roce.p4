// Made by `p4cc packets` from the declarations in host_agents: not to be edited.
#ifndef P4CC_PACKETS_ROCE_P4
#define P4CC_PACKETS_ROCE_P4

typedef bit<48> mac_addr_t;
typedef bit<32> ipv4_addr_t;

@noWarn("unused") const bit<8> OPCODE_SEND_FIRST = 0x00;
@noWarn("unused") const bit<8> OPCODE_SEND_MIDDLE = 0x01;
@noWarn("unused") const bit<8> OPCODE_SEND_LAST = 0x02;
@noWarn("unused") const bit<8> OPCODE_SEND_ONLY = 0x04;
@noWarn("unused") const bit<8> OPCODE_ACK = 0x11;
@noWarn("unused") const bit<8> OPCODE_CNP = 0x81;
@noWarn("unused") const bit<8> OPCODE_WITH_INT = 0xC0;
@noWarn("unused") const bit<8> OPCODE_SACK = 0xE0;
@noWarn("unused") const bit<8> OPCODE_SACK_WITH_INT = 0xE1;
@noWarn("unused") const bit<8> OPCODE_TRIMMED = 0xE2;
@noWarn("unused") const bit<8> OPCODE_NACK = 0xE3;
@noWarn("unused") const bit<8> OPCODE_CUMULATIVE_ACK = 0xFF;

header ethernet_t {
    mac_addr_t dst_addr;
    mac_addr_t src_addr;
    bit<16>    ether_type;
}

header ipv4_t {
    bit<4>      version;
    bit<4>      ihl;  // header length in words of 4 bytes
    bit<6>      dscp;
    bit<2>      ecn;
    bit<16>     total_len;  // [bytes]
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
    bit<16> src_port;  // entropy
    bit<16> dst_port;
    bit<16> length;  // [bytes]
    bit<16> checksum;
}

// InfiniBand base transport header.
header bth_t {
    bit<8>  opcode;
    bit<1>  solicited_event;  // of a NACK: the packet was trimmed at its last hop
    bit<1>  migration_request;
    bit<2>  pad_count;  // [bytes]
    bit<4>  transport_version;
    bit<16> partition_key;
    bit<1>  fecn;
    bit<1>  becn;  // the packet that this one answers had ECN CE
    // how often a switch may still deflect the packet (dart.p4); 0: it keeps to its path
    bit<3>  tokens;
    bit<3>  reserved;
    bit<24> dest_qp;  // the receiver's queue pair
    bit<1>  ack_request;
    bit<7>  reserved2;
    bit<24> psn;  // packet sequence number
}

@noWarn("unused") const bit<8> AETH_ACK = 0x1F;
@noWarn("unused") const bit<8> AETH_NAK_SEQUENCE = 0x60;
// InfiniBand ACK extended transport header.
header aeth_t {
    bit<8>  syndrome;
    bit<24> msn;  // number of messages completed
}

header cnp_t {
    bit<128> reserved;
}

// In-band telemetry, directly after the BTH; one record a hop follows.
header int_shim_t {
    bit<4>  hop_count;  // number of records
    bit<12> path_id;  // XOR of the ids of the recorded links
}

// What one hop reports.
header int_record_t {
    bit<4>  link_rate_code;  // rate of the link that the packet leaves on
    // [ns] model time at which the packet left the queue, modulo 2^24 (16.8 ms)
    bit<24> timestamp_ns;
    // [128 bytes] sent by the port before this packet, modulo 2^20 (134 MB: 1.3 ms at 800 Gb/s)
    bit<20> tx_units;
    bit<16> queue_cells;  // [cells] rest of the queue that the packet left, at most 65535
}

// Selective acknowledgement, after the AETH.
header sack_t {
    bit<24> first_missing_psn;  // PSN of the first packet missing: all before it have arrived
    bit<24> map_psn;  // PSN of the first packet in the map
    bit<64> map;  // bit i, from the least significant: packet `map_psn` + i has arrived early
}

// Acknowledgement of TCP's length without a block of SACK, after the AETH.
header cumulative_t {
    bit<24> first_missing_psn;  // as in a SACK; nothing has arrived early
    bit<8>  reserved;
}

#endif
