// RCP's rate of a link for v1model: the first packet after an interval updates it.
//
// Table: rate_control (port -> control_rate).
//
// Operations assumed of the hardware: one addition to a register per packet; six multiplications of
// two variables (up to 32 x 32 bits) per update, four times in a round-trip time.
#ifndef P4CC_RATE_CONTROL_P4
#define P4CC_RATE_CONTROL_P4

#include "../queue_bytes.p4"

// Registers of a link, by egress port.
register<bit<32>>(MAX_PORTS) rate_of;     // R; 0: not computed yet, so R is C
register<bit<32>>(MAX_PORTS) arrived_of;  // Y since the last update
register<bit<48>>(MAX_PORTS) updated_of;  // time at which R was computed last

const bit<64> ONE = 0x10000;  // 1 as a value of alpha and f

// Ingress stage: compute the rate R of the link, and lower a rate packet to it.
//
//   R <- R (1 + (alpha (C T - Y) - beta q T / d) / (C d))
//
// C is the capacity, T the time since the last update, d the base round-trip time, Y the bytes that
// arrived for the link in T, as the link charges frames, and q the bytes that wait there
// (include/queue_bytes.p4).
//
// This differs from the published rule in three places:
//   T  is a constant there. v1model has no timer, so the first packet after T updates R, with the
//      time that has passed.
//   d  is the mean of the flows' reports there; here it is the network's base round-trip time.
//   f  the factor in brackets is kept from -1/2 to 1, so R at most halves and at most doubles. R
//      lies between min_kbps and C.
control RateControl(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    QueueArrival() arrival;

    bit<32> capacity_rate = 0;
    bit<32> least_rate = 0;
    bit<32> capacity_bytes = 0;
    bit<32> bdp = 0;
    bit<32> inverse = 0;
    bit<48> interval = 0;
    bit<48> rtt = 0;
    bit<32> alpha_part = 0;
    bit<32> beta_part = 0;
    bit<3>  data_priority = 0;
    bit<32> overhead = 0;

    bit<32> port;
    bit<48> now;
    bit<48> updated;
    bit<48> passed;
    bit<32> rate;
    bit<32> arrived;
    bit<32> bytes;
    bit<32> waiting;
    bit<64> more;  // bytes in units of 2^-16
    bit<64> less;
    bit<64> part;  // absolute value of f, in units of 2^-16

    // capacity        C, in bytes for each 2^16 ticks of the switch's clock
    // bdp_bytes       C d; inverse_bdp is 2^32 / bdp_bytes
    // interval_ticks  T, the least time from one update to the next
    // rtt_ticks       d
    // alpha           in units of 2^-16
    // beta_per_rtt    beta / d, in units of 2^-32 for each tick
    // priority        the class of data, whose queue is q
    // overhead_bytes  what the link charges a frame beyond its bytes; negative where headers are
    //                 not charged
    action control_rate(bit<32> capacity_kbps, bit<32> min_kbps, bit<32> capacity,
                        bit<32> bdp_bytes, bit<32> inverse_bdp, bit<48> interval_ticks,
                        bit<48> rtt_ticks, bit<32> alpha, bit<32> beta_per_rtt, bit<3> priority,
                        bit<32> overhead_bytes) {
        capacity_rate = capacity_kbps;
        least_rate = min_kbps;
        capacity_bytes = capacity;
        bdp = bdp_bytes;
        inverse = inverse_bdp;
        interval = interval_ticks;
        rtt = rtt_ticks;
        alpha_part = alpha;
        beta_part = beta_per_rtt;
        data_priority = priority;
        overhead = overhead_bytes;
    }

    table rate_control {
        key = { standard_metadata.egress_spec: exact @name("port"); }
        actions = { control_rate; @defaultonly NoAction; }
        const default_action = NoAction();
        size = MAX_PORTS;
    }

    apply {
        if (rate_control.apply().hit) {
            port = (bit<32>)standard_metadata.egress_spec;
            now = standard_metadata.ingress_global_timestamp;
            rate_of.read(rate, port);
            arrived_of.read(arrived, port);
            updated_of.read(updated, port);
            if (rate == 0) {
                rate = capacity_rate;
                rate_of.write(port, rate);
                updated = now;
                updated_of.write(port, now);
            }
            passed = now - updated;
            if (passed >= interval) {
                if (passed > rtt << 4) {
                    passed = rtt << 4;  // after a long idle time R doubles, or is C
                }
                queue_bytes.read(waiting,
                                 (bit<32>)(standard_metadata.egress_spec ++ data_priority));
                more = (bit<64>)alpha_part * (((bit<64>)capacity_bytes * (bit<64>)passed) >> 16);
                less = (bit<64>)alpha_part * (bit<64>)arrived
                    + (((((bit<64>)beta_part * (bit<64>)passed) >> 8) * (bit<64>)waiting) >> 8);
                if (more >= less) {
                    part = more - less;
                } else {
                    part = less - more;
                }
                if (part > (bit<64>)bdp << 16) {
                    part = (bit<64>)bdp << 16;
                }
                part = (part * (bit<64>)inverse) >> 32;
                if (more >= less) {
                    part = ((bit<64>)rate * part) >> 16;
                    if ((bit<64>)rate + part < (bit<64>)capacity_rate) {
                        rate = rate + (bit<32>)part;
                    } else {
                        rate = capacity_rate;
                    }
                } else {
                    if (part > ONE >> 1) {
                        part = ONE >> 1;
                    }
                    part = ((bit<64>)rate * part) >> 16;
                    rate = rate - (bit<32>)part;
                    if (rate < least_rate) {
                        rate = least_rate;
                    }
                }
                rate_of.write(port, rate);
                updated_of.write(port, now);
                arrived = 0;
            }
            bytes = standard_metadata.packet_length + overhead;
            if (bytes < FLIT_BYTES) {
                bytes = FLIT_BYTES;
            }
            arrived_of.write(port, arrived + bytes);
            if (hdr.rcp.isValid() && hdr.rcp.response == 0 && rate < hdr.rcp.rate) {
                hdr.rcp.rate = rate;
            }
        }
        arrival.apply(hdr, meta, standard_metadata);
    }
}

#define PARSER RcpParser
#define INGRESS_STAGE RateControl
#define EGRESS_STAGE QueueDeparture

#endif
