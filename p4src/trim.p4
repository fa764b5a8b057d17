// Layer-3 forwarding, RED/ECN marking at dequeue, and packet trimming: a data packet that would
// find its queue full loses its payload and goes on in a queue of higher priority, marked by BTH
// opcode and DSCP.
//
// Tables: those of include/forwarding.p4 and include/ecn.p4, and queue_limit ((port, priority) ->
//          trim_when_full or drop_when_full), which for T2NA is queue_limit_cells. A queue without
//          an entry there is the traffic manager's: it is neither counted nor trimmed here.
// Counters: by egress port: trimmed, trimmed_sent, trimmed_dropped (no room among the trimmed
//          either), queue_dropped (drop_when_full).
// Wire format: docs/wire-formats.md, "Host frames".
#include "include/prelude.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    bth_t      bth;
}

struct metadata_t {
    common_metadata_t common;
    bit<1>            trimmed;  // trimmed by this switch
}

#include "include/ecn.p4"

const bit<16> UDP_OFFSET_BYTES = 34;

// Data packets are RC requests and read responses (BTH opcodes 0x00-0x10), and those that a
// protocol wraps in packets of its own (0xF0-0xF7). Others that find their queue full are dropped.
const bit<8> OPCODE_LAST_DATA = 0x10;
const bit<8> OPCODE_WRAPPED = 0xF0;
const bit<8> WRAPPED_MASK = 0xF8;

PACKET_COUNTER(MAX_PORTS) trimmed;

action make_trimmed(inout headers_t hdr, in bit<6> dscp) {
    hdr.bth.opcode = OPCODE_TRIMMED;
    hdr.ipv4.dscp = dscp;
}

action set_length(inout headers_t hdr, in bit<16> packet_bytes) {
    hdr.ipv4.total_len = packet_bytes - ETHERNET_BYTES;
    hdr.udp.length = packet_bytes - UDP_OFFSET_BYTES;
    hdr.udp.checksum = 0;  // no checksum: the payload that it covers is gone
}

#define IS_DATA                                     \
    (hdr.bth.isValid()                              \
        && (hdr.bth.opcode <= OPCODE_LAST_DATA      \
            || (hdr.bth.opcode & WRAPPED_MASK) == OPCODE_WRAPPED))

// How ingress knows what a queue holds. On other hardware the traffic manager trims (Trident 4,
// Spectrum 2). SONiC's settings size, DSCP and queue are trim_size_bytes, trim_dscp and
// trim_priority.
#ifdef __TARGET_TOFINO__
#include "include/tofino/trimming.p4"
#else
#include "include/v1model/trimming.p4"
#endif

// A stage of ingress.
control Trimming(inout headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    ADMISSION_UNIT(admission)
    ADMISSION_UNIT(trimmed_admission)
    LengthExcess() over_size;

    length_t packet_bytes = 0;
    bit<32> limit = 0;
    bit<32> spread = 0;
    bit<32> trim_limit = 0;
    bit<16> trim_size = 0;
    length_t cut_off = 0;  // bytes of the packet beyond trim_size
    bit<6>  dscp_of_trimmed = 0;
    bit<3>  priority_of_trimmed = 0;
    bit<48> drain_time = 0;
    bool    may_trim = false;
    bool    admitted = false;

    @dropped["ingress", "trimmed_queue_full"]
    PACKET_COUNTER(MAX_PORTS) trimmed_dropped;
    @dropped["ingress", "queue_full"]
    PACKET_COUNTER(MAX_PORTS) queue_dropped;

    // limit             what the queue may hold; limits and spread are in bytes, for T2NA in cells
    // spread            each packet leaves a random part of the limit free, from 0 to this
    // trim_size_bytes   a trimmed packet's length from the Ethernet header on; a shorter packet
    //                   keeps its length
    // trim_dscp, trim_priority, trim_limit
    //                   the mark, the queue of trimmed packets, and what that queue may hold
    // drain_ticks       ticks of the switch's clock after which a queue that nothing left is empty
    action trim_when_full(bit<32> QUEUED(limit), bit<32> QUEUED(spread), bit<16> trim_size_bytes,
                          bit<6> trim_dscp, bit<3> trim_priority, bit<32> QUEUED(trim_limit),
                          bit<48> drain_ticks) {
        limit = QUEUED(limit);
        spread = QUEUED(spread);
        may_trim = true;
        trim_size = trim_size_bytes;
        dscp_of_trimmed = trim_dscp;
        priority_of_trimmed = trim_priority;
        trim_limit = QUEUED(trim_limit);
        drain_time = drain_ticks;
    }

    action drop_when_full(bit<32> QUEUED(limit), bit<48> drain_ticks) {
        limit = QUEUED(limit);
        drain_time = drain_ticks;
    }

    table QUEUE_LIMIT {
        key = {
            standard_metadata.egress_spec: exact @name("port");
            standard_metadata.priority: exact @name("priority");
        }
        actions = { trim_when_full; drop_when_full; @defaultonly NoAction; }
        const default_action = NoAction();
        size = QUEUES;
    }

    action mark_trimmed() {
        meta.trimmed = 1;
        make_trimmed(hdr, dscp_of_trimmed);
        standard_metadata.priority = priority_of_trimmed;
    }

    action shorten() {
        TRUNCATE(trim_size)
        packet_bytes = (length_t)trim_size;
        set_length(hdr, trim_size);
    }

    apply {
        if (QUEUE_LIMIT.apply().hit) {
            packet_bytes = PACKET_BYTES;
            admission.apply(meta, packet_bytes, limit, spread, drain_time, standard_metadata,
                            admitted);
            if (!admitted && may_trim && IS_DATA) {
                mark_trimmed();
                trimmed.count((counter_index_t)standard_metadata.egress_spec);
                over_size.apply(packet_bytes, (length_t)trim_size, cut_off);
                if (cut_off != 0) {
                    shorten();
                }
                trimmed_admission.apply(meta, packet_bytes, trim_limit, 0, drain_time,
                                        standard_metadata, admitted);
                if (!admitted) {
                    trimmed_dropped.count((counter_index_t)standard_metadata.egress_spec);
                    mark_to_drop(standard_metadata);
                }
            } else if (!admitted) {
                queue_dropped.count((counter_index_t)standard_metadata.egress_spec);
                mark_to_drop(standard_metadata);
            }
        }
    }
}

// Egress stage: trimmed packets are not marked.
control TrimmedDeparture(inout headers_t hdr, inout metadata_t meta,
                         inout standard_metadata_t standard_metadata) {
    Departure() departure;
    EcnMarking() marking;

    PACKET_COUNTER(MAX_PORTS) trimmed_sent;

    apply {
        departure.apply(hdr, meta, standard_metadata);
        if (meta.trimmed == 1) {
            trimmed_sent.count((counter_index_t)standard_metadata.egress_port);
        } else {
            marking.apply(hdr, meta, standard_metadata);
        }
    }
}

#define INGRESS_STAGE Trimming
#define EGRESS_STAGE TrimmedDeparture

#include "include/switch.p4"
