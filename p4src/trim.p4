// Layer-3 forwarding, RED/ECN marking at dequeue, and packet trimming: a data packet that would
// find its queue full loses its payload and goes on in a queue of higher priority, marked by BTH
// opcode and DSCP.
//
// Tables: those of include/forwarding.p4 and include/ecn.p4, queue_limit ((port, priority) ->
//          trim_when_full or drop_when_full), and traffic_manager_trims (port -> trimmed_dscp). A
//          queue without an entry in queue_limit is the traffic manager's: it is neither counted
//          nor trimmed here. Egress turns the rest of packets that the traffic manager trims into
//          trimmed packets.
// Counters: by egress port: trimmed, trimmed_sent, trimmed_dropped (no room among the trimmed
//          either), queue_dropped (drop_when_full), cut_dropped (cut by the traffic manager, and
//          not data, or without an entry in traffic_manager_trims).
// Wire format: docs/wire-formats.md, "Trimmed data".
//
// On hardware the traffic manager trims (Trident 4, Spectrum 2, Tofino 2's deflect-on-drop).
// SONiC's settings size, DSCP and queue are trim_size_bytes, trim_dscp and trim_priority.
#include "include/prelude.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    bth_t      bth;
}

struct metadata_t {
    common_metadata_t common;
    bit<1>            trimmed;  // by this switch
}

#include "include/ecn.p4"
#define KEEP_DEPARTURES
#include "include/queue_bytes.p4"

const bit<16> UDP_OFFSET_BYTES = 34;

// Data packets are RC requests and read responses (BTH opcodes 0x00-0x10), and those that a
// protocol wraps in packets of its own (0xF0-0xF7). Others that find their queue full are dropped.
const bit<8> OPCODE_LAST_DATA = 0x10;
const bit<8> OPCODE_WRAPPED = 0xF0;
const bit<8> WRAPPED_MASK = 0xF8;

counter(MAX_PORTS, CounterType.packets) trimmed;

action make_trimmed(inout headers_t hdr, in bit<6> dscp) {
    hdr.bth.opcode = OPCODE_TRIMMED;
    hdr.ipv4.dscp = dscp;
}

action set_length(inout headers_t hdr, in bit<16> packet_bytes) {
    hdr.ipv4.total_len = packet_bytes - ETHERNET_BYTES;
    hdr.udp.length = packet_bytes - UDP_OFFSET_BYTES;
    hdr.udp.checksum = 0;  // none: the covered payload is gone
}

#define IS_DATA                                     \
    (hdr.bth.isValid()                              \
        && (hdr.bth.opcode <= OPCODE_LAST_DATA      \
            || (hdr.bth.opcode & WRAPPED_MASK) == OPCODE_WRAPPED))

// Count a packet in, if there is room (include/queue_bytes.p4 has the counts).
//
// Every packet is either enqueued whole, trimmed, or dropped here. The traffic manager must hold at
// least the limits set here, and then never drops. If it loses a counted packet nevertheless, the
// count is corrected as described in include/queue_bytes.p4, and here: a queue that seems full, but
// that no packet has left for longer than it takes to drain, is empty.
//
// spread_bytes breaks phases (Handley et al., SIGCOMM 2017, 3.1). Flows at line rate send in step.
// Without it, the same flow would always get the space that a departure has
// freed. NDP's switch trims the newest packet or the last one in the queue; a program reaches only
// the newest, a traffic manager that trims (traffic_manager_trims) both.
control Admission(inout metadata_t meta, in bit<32> packet_bytes, in bit<32> limit_bytes,
                  in bit<32> spread_bytes, in bit<48> drain_ticks,
                  in standard_metadata_t standard_metadata, out bool admitted) {
    bit<32> held_bytes;
    bit<32> kept_free_bytes;
    bit<48> departure;
    apply {
        queue_bytes.read(held_bytes, meta.common.queue);
        if (held_bytes + packet_bytes > limit_bytes) {
            last_departure.read(departure, meta.common.queue);
            if (standard_metadata.ingress_global_timestamp - departure > drain_ticks) {
                held_bytes = 0;
            }
        }
        admitted = held_bytes + packet_bytes <= limit_bytes;
        if (admitted && held_bytes + packet_bytes + spread_bytes > limit_bytes) {
            random(kept_free_bytes, 0, spread_bytes);
            admitted = held_bytes + packet_bytes + kept_free_bytes <= limit_bytes;
        }
        if (admitted) {
            COUNT_IN(held_bytes, packet_bytes)
        }
    }
}

// A stage of ingress.
control Trimming(inout headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    Admission() admission;
    Admission() trimmed_admission;

    bit<32> packet_bytes = 0;
    bit<32> limit = 0;
    bit<32> spread = 0;
    bit<32> trim_limit = 0;
    bit<16> trim_size = 0;
    bit<6>  dscp_of_trimmed = 0;
    bit<3>  priority_of_trimmed = 0;
    bit<48> drain_time = 0;
    bool    may_trim = false;
    bool    admitted = false;

    @dropped["ingress", "trimmed_queue_full"]
    counter(MAX_PORTS, CounterType.packets) trimmed_dropped;
    @dropped["ingress", "queue_full"]
    counter(MAX_PORTS, CounterType.packets) queue_dropped;

    // limit_bytes       what the queue may hold
    // spread_bytes      each packet leaves a random part of the limit free, from 0 to this
    // trim_size_bytes   a trimmed packet's length from the Ethernet header on; a shorter packet
    //                   keeps its length
    // trim_dscp, trim_priority, trim_limit_bytes
    //                   the mark, the queue of trimmed packets, and what that queue may hold
    // drain_ticks       ticks of the switch's clock after which a queue that nothing left is empty
    action trim_when_full(bit<32> limit_bytes, bit<32> spread_bytes, bit<16> trim_size_bytes,
                          bit<6> trim_dscp, bit<3> trim_priority, bit<32> trim_limit_bytes,
                          bit<48> drain_ticks) {
        limit = limit_bytes;
        spread = spread_bytes;
        may_trim = true;
        trim_size = trim_size_bytes;
        dscp_of_trimmed = trim_dscp;
        priority_of_trimmed = trim_priority;
        trim_limit = trim_limit_bytes;
        drain_time = drain_ticks;
    }

    action drop_when_full(bit<32> limit_bytes, bit<48> drain_ticks) {
        limit = limit_bytes;
        drain_time = drain_ticks;
    }

    table queue_limit {
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
        trimmed.count((bit<32>)standard_metadata.egress_spec);
    }

    action shorten() {
        truncate((bit<32>)trim_size);
        packet_bytes = (bit<32>)trim_size;
        set_length(hdr, trim_size);
    }

    apply {
        if (queue_limit.apply().hit) {
            packet_bytes = standard_metadata.packet_length;
            meta.common.queue = QUEUE_OF(standard_metadata.egress_spec);
            admission.apply(meta, packet_bytes, limit, spread, drain_time, standard_metadata,
                            admitted);
            if (!admitted && may_trim && IS_DATA) {
                mark_trimmed();
                if (packet_bytes > (bit<32>)trim_size) {
                    shorten();
                }
                meta.common.queue = QUEUE_OF(standard_metadata.egress_spec);
                trimmed_admission.apply(meta, packet_bytes, trim_limit, 0, drain_time,
                                        standard_metadata, admitted);
                if (!admitted) {
                    trimmed_dropped.count((bit<32>)standard_metadata.egress_spec);
                    mark_to_drop(standard_metadata);
                }
            } else if (!admitted) {
                queue_dropped.count((bit<32>)standard_metadata.egress_spec);
                mark_to_drop(standard_metadata);
            }
        }
    }
}

// A packet that the traffic manager trimmed is shorter than its IP packet.
control TrafficManagerTrims(inout headers_t hdr, inout metadata_t meta,
                            inout standard_metadata_t standard_metadata) {
    @dropped["egress", "queue_full"]
    counter(MAX_PORTS, CounterType.packets) cut_dropped;

    action trimmed_dscp(bit<6> dscp) {
        meta.trimmed = 1;
        make_trimmed(hdr, dscp);
        set_length(hdr, (bit<16>)standard_metadata.packet_length);
        trimmed.count((bit<32>)standard_metadata.egress_port);
    }

    action drop_cut() {
        cut_dropped.count((bit<32>)standard_metadata.egress_port);
        mark_to_drop(standard_metadata);
    }

    table traffic_manager_trims {
        key = { standard_metadata.egress_port: exact @name("port"); }
        actions = { trimmed_dscp; @defaultonly drop_cut; }
        const default_action = drop_cut();
        size = MAX_PORTS;
    }

    apply {
        bit<32> whole_bytes = (bit<32>)(hdr.ipv4.total_len + ETHERNET_BYTES);
        if (hdr.ipv4.isValid() && standard_metadata.packet_length < whole_bytes) {
            if (IS_DATA) {
                traffic_manager_trims.apply();
            } else {
                drop_cut();
            }
        }
    }
}

// Egress stage: trimmed packets are not marked.
control TrimmedDeparture(inout headers_t hdr, inout metadata_t meta,
                         inout standard_metadata_t standard_metadata) {
    QueueDeparture() departure;
    TrafficManagerTrims() trims;
    EcnMarking() marking;

    counter(MAX_PORTS, CounterType.packets) trimmed_sent;

    apply {
        departure.apply(hdr, meta, standard_metadata);
        if (meta.trimmed == 0) {
            trims.apply(hdr, meta, standard_metadata);
        }
        if (meta.trimmed == 1) {
            trimmed_sent.count((bit<32>)standard_metadata.egress_port);
        } else {
            marking.apply(hdr, meta, standard_metadata);
        }
    }
}

#define INGRESS_STAGE Trimming
#define EGRESS_STAGE TrimmedDeparture

#include "include/switch.p4"
