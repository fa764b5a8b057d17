// Trimming for v1model: a register counts the bytes of each queue (include/queue_bytes.p4).
//
// Table: traffic_manager_trims (port -> trimmed_dscp). Egress turns the rest of packets that the
//          traffic manager trims into trimmed packets.
// Counter: by egress port: cut_dropped (packets that the traffic manager cut, and that are not data
//          or have no entry in traffic_manager_trims).
#ifndef P4CC_TRIMMING_P4
#define P4CC_TRIMMING_P4

#define KEEP_DEPARTURES
#include "../queue_bytes.p4"

typedef bit<32> length_t;  // length of a packet

#define QUEUE_LIMIT queue_limit
#define QUEUED(name) name##_bytes
#define PACKET_BYTES standard_metadata.packet_length
#define TRUNCATE(packet_bytes) truncate((bit<32>)(packet_bytes));
#define ADMISSION_UNIT(name) Admission() name;

// How far a packet is longer than a limit; 0 if it is not.
control LengthExcess(in length_t packet_bytes, in length_t limit_bytes,
                     out length_t excess_bytes) {
    apply {
        excess_bytes = packet_bytes |-| limit_bytes;
    }
}

// Count a packet in, if there is room (include/queue_bytes.p4 has the counts).
//
// Every packet is either enqueued whole, trimmed, or dropped here. The traffic manager must hold at
// least the limits set here, and then never drops. If it loses a counted packet nevertheless, the
// count is corrected as described in include/queue_bytes.p4, and here: a queue that seems full, but
// that no packet has left for longer than it takes to drain, is empty.
//
// spread_bytes breaks phases (Handley et al., SIGCOMM 2017, 3.1). Flows at line rate send in step.
// Without it, the same flow would always get the space that a departure has freed. NDP's switch
// trims the newest packet or the last one in the queue. A program can trim only the newest, a
// traffic manager (traffic_manager_trims) both.
control Admission(inout metadata_t meta, in length_t packet_bytes, in bit<32> limit_bytes,
                  in bit<32> spread_bytes, in bit<48> drain_ticks,
                  in standard_metadata_t standard_metadata, out bool admitted) {
    bit<32> held_bytes;
    bit<32> kept_free_bytes;
    bit<48> departure;
    apply {
        meta.common.queue = QUEUE_OF(standard_metadata.egress_spec);
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

// First part of the egress stage: the packet leaves its queue, and meta.trimmed is known.
control Departure(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    QueueDeparture() departure;
    TrafficManagerTrims() trims;

    apply {
        departure.apply(hdr, meta, standard_metadata);
        if (meta.trimmed == 0) {
            trims.apply(hdr, meta, standard_metadata);
        }
    }
}

#endif
