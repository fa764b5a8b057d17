// Trimming for T2NA: the ghost thread writes the depths of queues into registers for ingress.
//
// Depths are in cells. A packet is admitted if its queue, without it, is shorter than the limit,
// so a queue may exceed its limit by a packet. A packet that is trimmed asks for the depths of two
// queues, and a register is accessed once a packet, so there are two registers with all depths.
//
// Only the packet passes to egress, which recognizes a trimmed one by its opcode. So packets that
// other switches have trimmed are not marked either, and trimmed_sent counts them.
#ifndef P4CC_TRIMMING_P4
#define P4CC_TRIMMING_P4

#if __TARGET_TOFINO__ != 2
#error trim.p4: expected T2NA, because TNA does not show its queues to ingress
#endif

typedef bit<16> length_t;  // length of a packet, as wide as a header's field: both share containers
typedef bit<13> queue_index_t;  // pipe, and the queue's number in its pipe

const bit<32> QUEUES = 8192;

#define QUEUE_LIMIT queue_limit_cells
#define QUEUED(name) name##_cells
#define PACKET_BYTES (hdr.ipv4.total_len + ETHERNET_BYTES)
#define TRUNCATE(packet_bytes) standard_metadata.cut_bytes = (packet_bytes) + FCS_BYTES;
#define ADMISSION_UNIT(name) Admission(name##_depths) name;

Register<bit<32>, queue_index_t>(QUEUES) admission_depths;
Register<bit<32>, queue_index_t>(QUEUES) trimmed_admission_depths;

control QueueDepths(in ghost_intrinsic_metadata_t queue) {
    RegisterAction<bit<32>, queue_index_t, bit<32>>(admission_depths) keep = {
        void apply(inout bit<32> cells) {
            cells = (bit<32>)queue.qlength;
        }
    };

    RegisterAction<bit<32>, queue_index_t, bit<32>>(trimmed_admission_depths) keep_for_trimmed = {
        void apply(inout bit<32> cells) {
            cells = (bit<32>)queue.qlength;
        }
    };

    apply {
        keep.execute(queue.pipe_id ++ queue.qid);
        keep_for_trimmed.execute(queue.pipe_id ++ queue.qid);
    }
}

#define GHOST QueueDepths

// How far a packet is longer than a limit; 0 if it is not (as Excess of include/tofino/target.p4).
control LengthExcess(in length_t packet_bytes, in length_t limit_bytes,
                     out length_t excess_bytes) {
    action subtract() {
        excess_bytes = packet_bytes |-| limit_bytes;
    }

    @hidden
    table difference {
        actions = { subtract; }
        const default_action = subtract();
    }

    apply {
        difference.apply();
    }
}

// Decide whether a queue has room. `spread` is a mask: each packet leaves a random number of cells
// free, which has only bits of the mask (include/v1model/trimming.p4 gives the reason).
@noWarn("unused")  // the packet's bytes, and the time when the queue was last served
control Admission(inout metadata_t meta, in length_t packet_bytes, in bit<32> limit,
                  in bit<32> spread, in bit<48> drain_ticks,
                  in standard_metadata_t standard_metadata, out bool admitted)(
                  Register<bit<32>, queue_index_t> depths) {
    bit<32> cells;
    bit<32> room;

    Random<bit<32>>() draws;

    RegisterAction<bit<32>, queue_index_t, bit<32>>(depths) look = {
        void apply(inout bit<32> depth, out bit<32> result) {
            result = depth;
        }
    };

    apply {
        cells = look.execute(standard_metadata.egress_spec ++ 1w0 ++ standard_metadata.priority);
        room = draws.get() & spread;
        room = limit |-| room;
        room = room |-| cells;
        admitted = room != 0;
    }
}

// First part of the egress stage: meta.trimmed is known.
control Departure(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    apply {
        meta.trimmed = 0;
        if (meta.common.opcode == OPCODE_TRIMMED) {
            meta.trimmed = 1;
        }
    }
}

#endif
