// The bytes in each queue, for ingress: v1model provides a queue's length to egress only.
//
// Ingress adds a packet's bytes to the register of its queue (QueueArrival, or a stage of the
// program's own), and egress subtracts the same number (QueueDeparture). If the traffic manager
// loses a counted packet, because its buffer is full or a link is down, the next packet that leaves
// an empty queue behind sets the count to 0. The same rule repairs an update that BMv2 loses, which
// runs ingress and egress in threads. Copies that the switch makes are not counted. Several stages
// of a program may use this file; a packet is counted once. Ingress and egress of hardware share no
// registers; include/tofino/trimming.p4 has a traffic manager that shows its queues to ingress.
#ifndef P4CC_QUEUE_BYTES_P4
#define P4CC_QUEUE_BYTES_P4

const bit<32> QUEUES = 4096;  // for 512 ports with 8 priorities

register<bit<32>>(QUEUES) queue_bytes;

#ifdef KEEP_DEPARTURES
register<bit<48>>(QUEUES) last_departure;  // ticks; or when the queue began to fill
#define KEEP_DEPARTURE(tick) last_departure.write(meta.common.queue, tick);
#else
#define KEEP_DEPARTURE(tick)
#endif

#define QUEUE_OF(port) ((bit<32>)((port) ++ standard_metadata.priority))

// Count a packet that found `held_bytes` in the queue meta.common.queue.
#define COUNT_IN(held_bytes, packet_bytes)                         \
    if (held_bytes == 0) {  /* draining begins here */             \
        KEEP_DEPARTURE(standard_metadata.ingress_global_timestamp) \
    }                                                              \
    meta.common.counted_bytes = packet_bytes;                      \
    queue_bytes.write(meta.common.queue, held_bytes + packet_bytes);

// Last stage of ingress: count what is sent to one port and is not counted yet.
@noWarn("unused")  // a program may have its own stage instead
control QueueArrival(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    bit<32> held_bytes;

    apply {
        if (meta.common.counted_bytes == 0 && standard_metadata.egress_spec != DROP_PORT
            && standard_metadata.mcast_grp == 0) {
            meta.common.queue = QUEUE_OF(standard_metadata.egress_spec);
            queue_bytes.read(held_bytes, meta.common.queue);
            COUNT_IN(held_bytes, standard_metadata.packet_length)
        }
    }
}

// First stage of egress: subtract a packet from the count.
control QueueDeparture(inout headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    bit<32> held_bytes;

    apply {
        if (meta.common.counted_bytes != 0) {
            queue_bytes.read(held_bytes, meta.common.queue);
            held_bytes = held_bytes |-| meta.common.counted_bytes;
            if (standard_metadata.deq_qdepth == 0) {
                held_bytes = 0;
            }
            queue_bytes.write(meta.common.queue, held_bytes);
            KEEP_DEPARTURE(standard_metadata.egress_global_timestamp)
            meta.common.counted_bytes = 0;
        }
    }
}

#endif
