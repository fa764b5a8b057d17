// ExpressPass's limit on credits for v1model: a register for each link.
//
// Table: credit_limit (port -> limit).
//
// Operations assumed of the hardware, per credit: one register access, one product of two variables
// and a comparison.
#ifndef P4CC_CREDIT_LIMIT_P4
#define P4CC_CREDIT_LIMIT_P4

// The time at which the transmission time of all credits so far has passed, by egress port.
register<bit<64>>(MAX_PORTS) due_of;

// Ingress stage: let a credit pass if the time of the credits so far has passed.
//
// Each credit takes byte_ticks for each of its bytes. Credits differ in size at random, so that
// they do not synchronize with this limit. Credits may be ahead of their time by a burst. In the
// paper they wait in a queue of eight that is served at the rate. v1model limits neither length nor
// rate of one queue, so a burst of eight passes at once.
control CreditLimit(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    bit<64> per_byte = 0;
    bit<32> overhead = 0;
    bit<64> ahead = 0;
    bit<32> bytes;
    bit<64> now;
    bit<64> due;

    // byte_ticks      the time for each byte of a credit: that of a credit of mean size and of a
    //                 full data packet on the link, over the credit's size
    // overhead_bytes  what the link charges a frame beyond its bytes; negative where headers are
    //                 not charged
    // ahead_ticks     how far credits may run ahead: the burst less one
    // Both times are in units of 2^-16 ticks of the switch's clock.
    action limit(bit<64> byte_ticks, bit<32> overhead_bytes, bit<64> ahead_ticks) {
        per_byte = byte_ticks;
        overhead = overhead_bytes;
        ahead = ahead_ticks;
    }

    table credit_limit {
        key = { standard_metadata.egress_spec: exact @name("port"); }
        actions = { limit; @defaultonly NoAction; }
        const default_action = NoAction();
        size = MAX_PORTS;
    }

    apply {
        if (meta.common.opcode == OPCODE_CREDIT && credit_limit.apply().hit) {
            now = (bit<64>)standard_metadata.ingress_global_timestamp << 16;
            due_of.read(due, (bit<32>)standard_metadata.egress_spec);
            // A due time is ahead of the clock by the burst and one packet at most. A time that
            // seems to be further ahead is past, or older than the last wrap of the 48-bit clock.
            if (due - now > ahead + (per_byte << 16)) {
                due = now;
            }
            if (due - now > ahead) {
                credit_drops.count(DROP_CREDIT);
                mark_to_drop(standard_metadata);
            } else {
                bytes = standard_metadata.packet_length + overhead;
                if (bytes < FLIT_BYTES) {
                    bytes = FLIT_BYTES;
                }
                due_of.write((bit<32>)standard_metadata.egress_spec,
                             due + (bit<64>)bytes * per_byte);
            }
        }
    }
}

#endif
