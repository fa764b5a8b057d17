// Headers, parser and egress stage of a program with per-hop telemetry for HPCC.
//
// A data packet with an INT shim (BTH opcodes 0xC0 + n) gets one record per hop, at dequeue: link
// rate, time, bytes that the link carried before this packet, and the queue that it leaves behind.
// Acknowledgements (0xD1) carry the receiver's echo and pass unchanged, as does a packet whose
// record stack is full. A packet without a shim is only counted in the link's bytes.
//
// Table: port_telemetry (egress port -> telemetry).
// Wire format: docs/wire-formats.md, "INT shim".
#ifndef P4CC_TELEMETRY_P4
#define P4CC_TELEMETRY_P4

#ifndef INT_MAX_HOPS
#define INT_MAX_HOPS 8
#endif
#if INT_MAX_HOPS > MAX_COUNTED + 1
#error INT_MAX_HOPS: expected at most 8 for TNA and T2NA, and 15 for v1model
#endif

const bit<16> INT_RECORD_BYTES = 8;

const bit<8> OPCODE_ACK_WITH_INT = OPCODE_WITH_INT + OPCODE_ACK;

struct headers_t {
    ethernet_t                 ethernet;
    ipv4_t                     ipv4;
    udp_t                      udp;
    bth_t                      bth;
    int_shim_t                 int_shim;
    int_record_t[INT_MAX_HOPS] int_records;  // of earlier hops; the last element stays free
    int_record_t               int_record;   // this hop's record
}

struct metadata_t {
    common_metadata_t common;
    COUNTER_FIELD(records_left)
}

#include "parser.p4"

parser IntParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    RoceParser() roce;

    state start {
        roce.apply(packet, hdr, meta, standard_metadata);
        transition select(meta.common.opcode) {
            OPCODE_ACK_WITH_INT: accept;
            OPCODE_WITH_INT &&& 0xE0: parse_int_shim;
            default: accept;
        }
    }

    state parse_int_shim {
        packet.extract(hdr.int_shim);
        COUNT_FROM(records_left, hdr.int_shim.hop_count)
        transition select(hdr.int_shim.hop_count) {
            1 .. INT_MAX_HOPS - 1: parse_int_record;
            default: accept;
        }
    }

    EXTRACT_COUNTED(parse_int_record, hdr.int_records, hdr.int_shim.hop_count, records_left)
}

// A stage of egress.
control Telemetry(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    bit<4>  rate_code = 0;
    bit<16> own_id = 0;
    bit<16> shim = 0;  // hop_count and path_id
    bit<64> tick_scale = 0;
    frame_bytes_t overhead_bytes = 0;
    bit<32> tx_bytes = 0;
    frame_bytes_t bytes = 0;

    SentBytes() sent;

    // link_rate_code        the record's code of the link's rate
    // link_id               12 bits, XORed into the path id
    // tick_ns_q8            nanoseconds of model time in a tick of the switch's clock, times 256.
    //                       This is the only multiplication; a chip whose clock ticks in
    //                       nanoseconds drops it
    // frame_overhead_bytes  bytes that the link charges beyond those of a frame (preamble, gap,
    //                       FCS); negative if headers are not charged
    action telemetry(bit<4> link_rate_code, bit<12> link_id, bit<32> tick_ns_q8,
                     bit<32> frame_overhead_bytes) {
        rate_code = link_rate_code;
        own_id = (bit<16>)link_id;
        tick_scale = (bit<64>)tick_ns_q8;
        overhead_bytes = (frame_bytes_t)frame_overhead_bytes;
    }

    action no_telemetry() {}

    table port_telemetry {
        key = { standard_metadata.egress_port: exact @name("port"); }
        actions = { telemetry; no_telemetry; }
        default_action = no_telemetry();
        size = MAX_PORTS;
    }

    // Each of these is an action of its own, because a stage of a chip does a single operation on a
    // word. Both fields of the shim are in one word, and so are the rate and the time of a record.
    // All packets take the steps of the shim: a chip takes those in a condition after the sum.
    action copy_shim() {
        shim = hdr.int_shim.hop_count ++ hdr.int_shim.path_id;
    }

    action add_link_to_path() {
        shim = shim ^ own_id;
    }

    action count_hop() {
        shim = shim + 0x1000;
    }

    action copy_length() {
        bytes = (frame_bytes_t)hdr.ipv4.total_len;
    }

    action add_ethernet() {
        bytes = bytes + (frame_bytes_t)ETHERNET_BYTES;
    }

    action add_overhead() {
        bytes = bytes + overhead_bytes;
    }

    action add_record() {
        bytes = bytes + (frame_bytes_t)INT_RECORD_BYTES;
    }

    action record_rate() {
        hdr.int_record.link_rate_code = rate_code;
    }

    action append_record() {
        hdr.int_record.setValid();
        hdr.int_record.timestamp_ns =
            (bit<24>)TICKS_TO_NS(standard_metadata.egress_global_timestamp, tick_scale);
        hdr.int_record.queue_cells = (bit<16>)standard_metadata.deq_qdepth;
        hdr.int_shim.hop_count = shim[15:12];
        hdr.int_shim.path_id = shim[11:0];
        hdr.ipv4.total_len = hdr.ipv4.total_len + INT_RECORD_BYTES;
        hdr.udp.length = hdr.udp.length + INT_RECORD_BYTES;
        hdr.udp.checksum = 0;  // no checksum: the bytes that it covers have changed
    }

    apply {
        if (port_telemetry.apply().hit) {
            copy_shim();
            copy_length();
            add_link_to_path();
            add_ethernet();
            count_hop();
            add_overhead();
            if (hdr.int_shim.isValid() && hdr.int_shim.hop_count < INT_MAX_HOPS) {
                add_record();
                append_record();
                record_rate();
                if ((bit<19>)standard_metadata.deq_qdepth > 0xFFFF) {
                    hdr.int_record.queue_cells = 0xFFFF;
                }
            }
            AT_LEAST(bytes, FLIT_BYTES)
            sent.apply(standard_metadata.egress_port, bytes, tx_bytes);
            if (hdr.int_record.isValid()) {
                hdr.int_record.tx_units = tx_bytes[26:7];
            }
        }
    }
}

#define PARSER IntParser

#endif
