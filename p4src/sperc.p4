// Layer-3 forwarding, and s-PERC's rate computation in front of every link: max-min fair rates in
// proportion to weights, without state for any flow (Jose et al., SIGMETRICS 2019; algorithm 3 of
// the thesis, with 1RC and weights, algorithms 4 and 5). Responses pass unchanged.
//
// Tables: those of include/forwarding.p4, fair_share (port -> share), and old_weight and new_weight
//          (n -> 2^20 / n, rounded down, for n from 1 to 1023).
// Wire format: docs/wire-formats.md, "Control packet of s-PERC". Rates are in kb/s for each unit of
//          weight, and saturate at 32 bits: that value is no limit.
#include "include/prelude.p4"
#include "include/packets/sperc.p4"
#include "include/quotient.p4"

const bit<16> MAX_WEIGHT = 1023;
const bit<8>  MAX_SWITCHES = 6;  // on a path: two of the records belong to the source
const bit<32> NO_LIMIT = 0xFFFFFFFF;
const bit<16> EPOCHS_APART = 256;  // more than the epochs of packets in flight at a time

#ifndef SPERC_WINDOW_ENTRIES
#define SPERC_WINDOW_ENTRIES 16  // entries of a link's window table: a power of two
#endif

#ifndef SPERC_DIGITS
#define SPERC_DIGITS 20  // significant binary digits of b, from 10 to 20
#endif

// Indices of the counter speculative_drops.
const bit<32> DROP_SPECULATIVE = 0;  // more packets than its epoch lets through
const bit<32> DROP_NO_WINDOW = 1;    // no entry for its epoch

@dropped["ingress", "speculative", "no_window"]
counter(2, CounterType.packets) speculative_drops;

struct headers_t {
    ethernet_t        ethernet;
    ipv4_t            ipv4;
    udp_t             udp;
    bth_t             bth;
    sperc_t           sperc;
    sperc_record_t[8] records;  // the first is the record of this link
    speculative_t     speculative;
}

struct metadata_t {
    common_metadata_t common;
}

#include "include/parser.p4"

error {
    SpercFieldUnsupported  // a weight or a state is invalid, or there are too many switches
}

parser SpercParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    RoceParser() roce;

    state start {
        roce.apply(packet, hdr, meta, standard_metadata);
        transition select(meta.common.opcode) {
            OPCODE_SPERC: parse_sperc;
            OPCODE_SPECULATIVE &&& 0xF8: parse_speculative;
            default: accept;
        }
    }

    state parse_sperc {
        packet.extract(hdr.sperc);
        transition select(hdr.sperc.response) {
            0: parse_records;
            default: accept;
        }
    }

    state parse_speculative {
        packet.extract(hdr.speculative);
        verify(hdr.speculative.weight > 0, error.SpercFieldUnsupported);
        transition accept;
    }

    state parse_records {
        packet.extract(hdr.records.next);
        packet.extract(hdr.records.next);
        packet.extract(hdr.records.next);
        packet.extract(hdr.records.next);
        packet.extract(hdr.records.next);
        packet.extract(hdr.records.next);
        packet.extract(hdr.records.next);
        packet.extract(hdr.records.next);
        verify(hdr.sperc.switches_passed < MAX_SWITCHES, error.SpercFieldUnsupported);
        verify(hdr.sperc.old_weight > 0 && hdr.sperc.old_weight <= MAX_WEIGHT,
               error.SpercFieldUnsupported);
        verify(hdr.sperc.new_weight > 0 && hdr.sperc.new_weight <= MAX_WEIGHT,
               error.SpercFieldUnsupported);
        verify(hdr.sperc.speculative_weight > 0, error.SpercFieldUnsupported);
        verify(hdr.records[0].state <= SPERC_RECORD_B && hdr.records[1].state <= SPERC_RECORD_B &&
               hdr.records[2].state <= SPERC_RECORD_B && hdr.records[3].state <= SPERC_RECORD_B &&
               hdr.records[4].state <= SPERC_RECORD_B && hdr.records[5].state <= SPERC_RECORD_B &&
               hdr.records[6].state <= SPERC_RECORD_B && hdr.records[7].state <= SPERC_RECORD_B,
               error.SpercFieldUnsupported);
        transition accept;
    }
}

// Registers of a link, by egress port.
register<bit<48>>(MAX_PORTS) sum_e_of;
register<bit<32>>(MAX_PORTS) num_b_of;       // NumB in units of 2^-20
register<bit<32>>(MAX_PORTS) max_e_of;
register<bit<32>>(MAX_PORTS) max_e_next_of;  // MaxE': the maximum of this round
register<bit<48>>(MAX_PORTS) round_end_of;
register<bit<32>>(MAX_PORTS) interval_of;    // interval between control packets of a flow, ns

// The window table of 1RC. An entry has an epoch's number in its upper half and the window in
// packets in its lower half; 0: free. An epoch's first control packet, of any flow, stores
// the number of packets of rate b in an RTT. A flow that starts in this epoch has this number,
// divided by its weight, of speculative packets that pass, and at least one. Its control packet
// returns the least such number. An epoch that has lost its slot to a newer one has no entry: none
// of its packets pass, and let_through is 0. Epochs are numbered modulo 2^16; an entry that seems
// to be newer by EPOCHS_APART or more is an old one.
register<bit<32>>(MAX_PORTS * SPERC_WINDOW_ENTRIES) window_table;

#define SLOT(epoch) ((bit<32>)standard_metadata.egress_spec * SPERC_WINDOW_ENTRIES \
                     + ((bit<32>)(epoch) & (SPERC_WINDOW_ENTRIES - 1)))

#define LIMIT_BY(k)                                                   \
    if (hdr.records[k].ignore == 0 && hdr.records[k].b < elsewhere) { \
        elsewhere = hdr.records[k].b;                                 \
    }

// Ingress stage: update the state of the link that a control packet is about to take, and the
// packet's record of the link.
//
// A flow's control packet carries one record per link: the link's rate b, the flow's allocation x
// there, and its state. It is counted as bottlenecked here (B: 1/n in NumB) or elsewhere (E: x / n
// in SumE), or not counted yet (NEW_FLOW, which is E with x = 0). n divides the flow's rate. The
// link takes the flow into B, computes b = (c - SumE) / NumB, and puts it back into E if another
// link allows less. Other links ignore a b that is less than an allocation in E (MaxE), because
// that one will shrink.
//
// This differs from the published rule in five places:
//   comparisons  b is compared with MaxE and with what others allow as products with NumB, with a
//                tolerance. Exact comparisons let rounding move flows between E and B for ever.
//   MaxE         becomes the maximum of the last round, at the first control packet after its end;
//                0 if a whole round has passed since.
//   leaving      a flow is in B when it is removed, whatever it was before; a flow that is not
//                counted is not removed.
//   NEW_FLOW     is E with x = 0 for lines 8 to 13 of algorithm 4.
//   period       each counted flow adds to the interval that the link's flows keep between their
//                control packets.
//
// Operations assumed of the hardware, per control packet: additions, comparisons, the steps of
// include/quotient.p4, two look-ups of 1/n, and five multiplications (32 x 32 bits, or 32 x 20); a
// division of a window by a weight for a new flow. Per speculative packet: one multiplication of 24
// x 16 bits. A chip without multipliers would add logarithms from a table, with an error of 1%.
control FairShare(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    Quotient(SPERC_DIGITS) quotient;
    Quotient(20) part_of_window;

    bit<48> capacity = 0;
    bit<48> tolerance = 0;
    bit<48> round = 0;
    bit<32> control_interval = 0;
    bit<32> scale = 0;
    bit<32> old_part = 0;  // 1/n in units of 2^-20
    bit<32> new_part = 0;

    bit<32> port;
    bit<48> now;
    bit<48> sum_e;
    bit<32> num_b;
    bit<32> max_e;
    bit<32> max_e_next;
    bit<48> round_end;
    bit<32> interval;
    bit<64> wide;
    bit<32> b;
    bit<32> x;
    bit<32> elsewhere;  // e: the smallest rate that another link allows
    bit<2>  state;
    bit<1>  ignore;
    bit<32> slot;
    bit<32> entry;
    bit<16> later;      // number of epochs by which the entry is newer, modulo 2^16

    // capacity_kbps   c, below 2^43
    // tolerance_kbps  of comparisons
    // round_ticks     the least length of a round, in ticks of the switch's clock
    // control_ns      what a flow adds to the interval
    // window_scale    2^40 RTT / packet: packets for each kb/s
    action share(bit<48> capacity_kbps, bit<48> tolerance_kbps, bit<48> round_ticks,
                 bit<32> control_ns, bit<32> window_scale) {
        capacity = capacity_kbps;
        tolerance = tolerance_kbps;
        round = round_ticks;
        control_interval = control_ns;
        scale = window_scale;
    }

    action divide_by_old(bit<32> part) {
        old_part = part;
    }

    action divide_by_new(bit<32> part) {
        new_part = part;
    }

    table fair_share {
        key = { standard_metadata.egress_spec: exact @name("port"); }
        actions = { share; @defaultonly NoAction; }
        const default_action = NoAction();
        size = MAX_PORTS;
    }

    table old_weight {
        key = { hdr.sperc.old_weight: exact @name("n"); }
        actions = { divide_by_old; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 1024;
    }

    table new_weight {
        key = { hdr.sperc.new_weight: exact @name("n"); }
        actions = { divide_by_new; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 1024;
    }

    action load() {
        sum_e_of.read(sum_e, port);
        num_b_of.read(num_b, port);
        max_e_of.read(max_e, port);
        max_e_next_of.read(max_e_next, port);
        round_end_of.read(round_end, port);
        interval_of.read(interval, port);
    }

    action store() {
        sum_e_of.write(port, sum_e);
        num_b_of.write(port, num_b);
        max_e_of.write(port, max_e);
        max_e_next_of.write(port, max_e_next);
        round_end_of.write(port, round_end);
        interval_of.write(port, interval);
    }

    // This link's record goes to the end, and the next one's to the front.
    action write_record() {
        hdr.records.pop_front(1);
        hdr.records[7].setValid();
        hdr.records[7].b = b;
        hdr.records[7].x = x;
        hdr.records[7].state = state;
        hdr.records[7].ignore = ignore;
        hdr.records[7].reserved = 0;
        hdr.sperc.switches_passed = hdr.sperc.switches_passed + 1;
    }

    apply {
        if (hdr.sperc.isValid() && hdr.sperc.response == 0 && fair_share.apply().hit) {
            port = (bit<32>)standard_metadata.egress_spec;
            now = standard_metadata.ingress_global_timestamp;
            state = hdr.records[0].state;
            load();
            old_weight.apply();
            new_weight.apply();

            if (round_end - now - 1 >= round) {  // also true if the clock has restarted
                if (now - round_end < round) {
                    max_e = max_e_next;
                } else {
                    max_e = 0;
                }
                max_e_next = 0;
                round_end = now + round;
            }

            // Lines 5 to 8. The flow is in B from here on.
            if (state == SPERC_RECORD_B) {
                num_b = (num_b |-| old_part) |+| new_part;
            } else {
                if (state == SPERC_RECORD_E) {
                    wide = ((bit<64>)hdr.records[0].x * (bit<64>)old_part) >> 20;
                    sum_e = sum_e |-| (bit<48>)wide;
                } else {
                    interval = interval |+| control_interval;
                }
                num_b = num_b |+| new_part;
            }

            // B of a link holds 4,095 flows of weight 1, or more of less, and the interval 4.2 s.
            // Beyond these limits, the values would remain wrong.
            assert(num_b != 0xFFFFFFFF && interval != 0xFFFFFFFF);

            // Line 9.
            quotient.apply((bit<64>)(capacity |-| sum_e) << 20, (bit<64>)num_b, wide);
            b = NO_LIMIT;
            if (wide < (bit<64>)NO_LIMIT) {
                b = (bit<32>)wide;
            }

            // Lines 15 to 19 of algorithm 4.
            slot = SLOT(hdr.sperc.epoch);
            window_table.read(entry, slot);
            later = entry[31:16] - hdr.sperc.epoch;
            if (entry == 0 || later >= EPOCHS_APART) {
                wide = ((bit<64>)b * (bit<64>)scale) >> 40;
                entry = hdr.sperc.epoch ++ (bit<16>)wide;
                if (wide > 0xFFFF) {
                    entry = hdr.sperc.epoch ++ 16w0xFFFF;
                } else if (wide == 0) {
                    entry = hdr.sperc.epoch ++ 16w1;
                }
                later = 0;
                window_table.write(slot, entry);
            }
            if (state == SPERC_RECORD_NEW_FLOW) {
                if (later != 0) {
                    hdr.sperc.let_through = 0;
                } else if (hdr.sperc.let_through != 0) {
                    part_of_window.apply((bit<64>)entry[15:0],
                                         (bit<64>)hdr.sperc.speculative_weight, wide);
                    if (wide == 0) {
                        wide = 1;
                    }
                    if (wide < (bit<64>)hdr.sperc.let_through) {
                        hdr.sperc.let_through = (bit<24>)wide;
                    }
                }
            }

            // Lines 10 to 15.
            elsewhere = NO_LIMIT;
            LIMIT_BY(1) LIMIT_BY(2) LIMIT_BY(3) LIMIT_BY(4) LIMIT_BY(5) LIMIT_BY(6) LIMIT_BY(7)
            x = b;
            if (elsewhere < b) {
                x = elsewhere;
            }

            // Line 16.
            ignore = 0;
            if ((bit<64>)max_e * (bit<64>)num_b
                > (bit<64>)((capacity + tolerance) |-| sum_e) << 20) {
                ignore = 1;
            }

            // Lines 17 to 23.
            state = SPERC_RECORD_B;
            if (hdr.sperc.leaving == 1) {
                num_b = num_b - new_part;
                interval = interval |-| control_interval;
            } else if (elsewhere != NO_LIMIT &&
                       (bit<64>)elsewhere * (bit<64>)num_b
                       < (bit<64>)((capacity - tolerance) |-| sum_e) << 20) {
                state = SPERC_RECORD_E;
                wide = ((bit<64>)x * (bit<64>)new_part) >> 20;
                sum_e = sum_e |+| (bit<48>)wide;
                num_b = num_b - new_part;
                if (x > max_e) {
                    max_e = x;
                }
                if (x > max_e_next) {
                    max_e_next = x;
                }
            }

            if (interval > hdr.sperc.interval) {
                hdr.sperc.interval = interval;
            }
            write_record();
            store();
        }
    }
}

// Ingress stage: let a speculative packet pass, or drop it (algorithm 5).
control SpeculativeDrop(inout headers_t hdr, inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    bit<32> entry;
    bit<64> needed;  // the smallest entry with which this packet passes

    action drop(bit<32> reason) {
        speculative_drops.count(reason);
        mark_to_drop(standard_metadata);
    }

    apply {
        if (hdr.speculative.isValid() && standard_metadata.egress_spec != DROP_PORT) {
            window_table.read(entry, SLOT(hdr.speculative.epoch));
            // sequence >= entry / weight, rounded down, without the division
            needed = ((bit<64>)hdr.speculative.sequence + 1) * (bit<64>)hdr.speculative.weight;
            if (entry == 0 || entry[31:16] != hdr.speculative.epoch) {
                drop(DROP_NO_WINDOW);
            } else if (hdr.speculative.sequence != 0 && needed > (bit<64>)entry[15:0]) {
                drop(DROP_SPECULATIVE);
            }
        }
    }
}

control Isolation(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    FairShare() rates;
    SpeculativeDrop() speculative_drop;

    apply {
        rates.apply(hdr, meta, standard_metadata);
        speculative_drop.apply(hdr, meta, standard_metadata);
    }
}

#define PARSER SpercParser
#define INGRESS_STAGE Isolation

#include "include/switch.p4"
