// Layer-3 forwarding, RED/ECN marking at dequeue, and Dart's in-order flow deflection (IOFD): where
// a queue is long, all packets of a short message take another path (Xue et al., "Dart",
// sections IV-A and IV-B, figure 7).
//
// Tables: those of include/forwarding.p4 and include/ecn.p4 (ecn_threshold in units of 64 bytes, of
//          the lanes' queues together); lane, iofd, candidate_group, normal_port, from_above and
//          to_above of Deflection; candidate and ingress_member of OtherPort.
// Counters: those of Deflection, by normal port.
// Wire format: docs/wire-formats.md. Beyond what ecn.p4 changes, the tokens and the DSCP change,
//          which the ICRC excludes, and the UDP checksum.
#include "include/prelude.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    bth_t      bth;
}

struct metadata_t {
    common_metadata_t common;
    bit<8>            queues;   // one bit for each priority that counts: the lanes, or its own
    bit<32>           waiting;  // sum of the bytes in those queues
}

#define MARKING_DEPTH ((depth_t)(meta.waiting >> 6))

#include "include/ecn.p4"
#include "include/queue_bytes.p4"

const bit<8> OPCODE_LAST_DATA = 0x10;

// RC opcodes by their place in a message; bit n is opcode n. SEND, RDMA WRITE and RDMA READ
// response, with and without immediate data.
const bit<32> FIRST_PACKETS = 0x0002041;
const bit<32> LAST_PACKETS = 0x000830C;
const bit<32> ONLY_PACKETS = 0x0010C30;

// The deflected flow table (DFT) has the messages that are deflected here, and the port that each
// takes. A key is IPv4 destination (32 bits), destination QP (24), zeros (5), tokens on arrival
// (3); 0: the entry is free. With the tokens in the key, a message that passes twice has an entry
// for each visit. An entry of the message alone (tokens_mask = 0, as printed) catches packets on
// the wrong visit, and messages arrive out of order.
const bit<32> DFT_ENTRIES = 16;
const bit<32> NO_ENTRY = 0xFFFF;

register<bit<64>>(DFT_ENTRIES) dft_key;
register<port_t>(DFT_ENTRIES) dft_port;
register<bit<48>>(DFT_ENTRIES) dft_used;  // time of the last match, in ticks

const bit<16> NO_INDEX = 0xFFFF;
const bit<16> NO_GROUP = 0xFFFF;

#define EACH_ENTRY(WHAT)                                            \
    WHAT(0) WHAT(1) WHAT(2) WHAT(3) WHAT(4) WHAT(5) WHAT(6) WHAT(7) \
    WHAT(8) WHAT(9) WHAT(10) WHAT(11) WHAT(12) WHAT(13) WHAT(14) WHAT(15)

#define MATCH(i)            \
    dft_key.read(known, i); \
    if (known == sought) {  \
        entry = i;          \
    }

#define FIND_PLACE(i)                                                   \
    if (entry == NO_ENTRY && i < usable_entries) {                      \
        dft_key.read(known, i);                                         \
        dft_used.read(used, i);                                         \
        if (known == 0) {                                               \
            entry = i;                                                  \
        } else if (silent == NO_ENTRY && now - used >= entry_timeout) { \
            silent = i;                                                 \
        }                                                               \
    }

#define ADD_QUEUE(i)                                                \
    if (meta.queues[i:i] == 1) {                                    \
        queue_bytes.read(held_bytes, (bit<32>)(port ++ (bit<3>)i)); \
        meta.waiting = meta.waiting + held_bytes;                   \
    }

control WaitingBytes(inout metadata_t meta, in port_t port) {
    bit<32> held_bytes;

    apply {
        meta.waiting = 0;
        ADD_QUEUE(0) ADD_QUEUE(1) ADD_QUEUE(2) ADD_QUEUE(3)
        ADD_QUEUE(4) ADD_QUEUE(5) ADD_QUEUE(6) ADD_QUEUE(7)
    }
}

// Draw a candidate that is neither the normal port nor the packet's ingress port.
//
// ingress_member  group, port -> came_by(index); ports outside the group are not listed
// candidate       group, index -> take_candidate(port); indices count from 0
control OtherPort(inout standard_metadata_t standard_metadata, in bit<16> group,
                  in bit<16> group_size, in bit<16> normal_index, out bool found, out port_t port) {
    bit<16> ingress_index = NO_INDEX;
    bit<16> lower;
    bit<16> upper;
    bit<16> others;
    bit<16> index;

    action came_by(bit<16> index_of_port) {
        ingress_index = index_of_port;
    }

    action take_candidate(port_t candidate_port) {
        port = candidate_port;
    }

    table ingress_member {
        key = {
            group: exact;
            standard_metadata.ingress_port: exact @name("port");
        }
        actions = { came_by; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 16384;
    }

    table candidate {
        key = {
            group: exact;
            index: exact;
        }
        actions = { take_candidate; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 16384;
    }

    apply {
        port = DROP_PORT;
        index = 0;
        ingress_member.apply();
        lower = normal_index;
        upper = ingress_index;
        if (ingress_index < normal_index) {
            lower = ingress_index;
            upper = normal_index;
        }
        others = group_size;
        if (lower != NO_INDEX) {
            others = others - 1;
        }
        if (upper != NO_INDEX && upper != lower) {
            others = others - 1;
        }
        found = others != 0;
        if (found) {
            random(index, 0, others - 1);
            if (index >= lower) {
                index = index + 1;
            }
            if (index >= upper && upper != lower) {
                index = index + 1;
            }
            candidate.apply();
        }
    }
}

// Ingress stage: deflect a packet, or leave it on its normal port, to which routing sends it.
//
// A packet has tokens (BTH): the number of switches that may still deflect it. A data packet with
// tokens whose normal port leads to a switch
//   1. takes the port of its entry if there is one; a message's last packet frees the entry;
//   2. otherwise, if it is a message's first packet and at least threshold_bytes wait at the normal
//      port, takes a random other candidate and makes an entry: a free one, or one that no packet
//      has matched for entry_timeout_ticks. A message of one packet needs no entry. If no entry is
//      available, there is no deflection.
// In both cases it spends a token. In the last lane nothing is deflected: an entry with its tokens
// belongs to another message there. Any packet of a lane, data or not,
//   3. changes to the next lane, with DSCP and priority, if it came from a higher tier and goes to
//      a higher tier.
// A lane is a queue (a priority) of each port. Without rule 3, packets that wait for each other
// under PFC may close a cycle. The paper has an escape lane without deflection, and does not say
// when a packet enters it; at each turn from down to up the dependencies of links and lanes have no
// cycles.
//
// In the paper entries never expire. So the entry of a message whose last packet was lost would
// remain forever.
//
// Operations assumed of the hardware, per data packet with tokens: a content-addressable memory of
// 16 entries of 64 bits that a packet searches and writes in one pass (v1model has none: registers,
// read one after the other), one draw of a random number, and the bytes that wait in the lanes of
// one port (include/queue_bytes.p4). Per other packet: three table look-ups. Nothing is
// recirculated.
control Deflection(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    WaitingBytes() waiting_bytes;
    OtherPort() other_port;
    QueueArrival() arrival;

    bit<1>  in_last_lane = 0;
    bit<6>  lane_dscp = 0;
    bit<3>  lane_priority = 0;
    bit<32> threshold = 0;
    bit<32> usable_entries = 0;
    bit<48> entry_timeout = 0;
    bit<3>  key_tokens = 0;
    bit<16> group = NO_GROUP;
    bit<16> group_size = 0;
    bit<16> normal_index = NO_INDEX;

    port_t  normal;
    port_t  port = DROP_PORT;
    bit<32> packets_of_part;  // bit of this packet's opcode
    bit<64> sought;  // key of this packet's message
    bit<64> known;
    bit<48> now;
    bit<48> used;
    bit<32> entry = NO_ENTRY;
    bit<32> silent = NO_ENTRY;
    bool    found = false;

    counter(MAX_PORTS, CounterType.packets) deflected;
    counter(MAX_PORTS, CounterType.packets) allocated;
    counter(MAX_PORTS, CounterType.packets) freed;
    counter(MAX_PORTS, CounterType.packets) expired;       // entries that replaced an expired one
    counter(MAX_PORTS, CounterType.packets) table_full;    // not deflected: no entry was available
    counter(MAX_PORTS, CounterType.packets) tokens_spent;  // deflected with the last token
    counter(MAX_PORTS, CounterType.packets) last_lane;     // not deflected: in the last lane

    // lanes   the priorities that are lanes; bit i is priority i
    // last    1: only packets that match an entry of the message alone are deflected in this lane
    // next_*  the next lane by rule 3, or the same lane
    action in_lane(bit<8> lanes, bit<1> last, bit<6> next_dscp, bit<3> next_priority) {
        meta.queues = lanes;
        in_last_lane = last;
        lane_dscp = next_dscp;
        lane_priority = next_priority;
    }

    // entries      of the DFT, at most 16
    // tokens_mask  7: the key includes the tokens; 0: it does not
    action settings(bit<32> threshold_bytes, bit<32> entries, bit<48> entry_timeout_ticks,
                    bit<3> tokens_mask) {
        threshold = threshold_bytes;
        usable_entries = entries;
        entry_timeout = entry_timeout_ticks;
        key_tokens = hdr.bth.tokens & tokens_mask;
    }

    // By IPv4 destination; no_candidates if packets are not deflected.
    action candidates(bit<16> group_id, bit<16> size) {
        group = group_id;
        group_size = size;
    }

    action no_candidates() {}

    // By group and port; outside() if the port is not in the group. Packets of ports that are not
    // listed are not deflected.
    action in_group(bit<16> index) {
        normal_index = index;
    }

    action outside() {}

    action deflect() {
        standard_metadata.egress_spec = port;
        hdr.bth.tokens = hdr.bth.tokens - 1;
        hdr.udp.checksum = 0;  // no checksum: it covers the BTH
        deflected.count((bit<32>)normal);
    }

    action change_lane() {
        hdr.ipv4.dscp = lane_dscp;
        standard_metadata.priority = lane_priority;
    }

    table lane {
        key = { standard_metadata.priority: exact @name("priority"); }
        actions = { in_lane; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 8;
    }

    table iofd {
        actions = { settings; @defaultonly NoAction; }
        default_action = NoAction();
    }

    table candidate_group {
        key = { hdr.ipv4.dst_addr: lpm @name("dst_addr"); }
        actions = { candidates; no_candidates; }
        default_action = no_candidates();
        size = 4096;
    }

    table normal_port {
        key = {
            group: exact;
            standard_metadata.egress_spec: exact @name("port");
        }
        actions = { in_group; outside; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 16384;
    }

    // Ingress and egress ports that lead to a switch of a higher tier.
    table from_above {
        key = { standard_metadata.ingress_port: exact @name("port"); }
        actions = { NoAction; }
        const default_action = NoAction();
        size = MAX_PORTS;
    }

    table to_above {
        key = { standard_metadata.egress_spec: exact @name("port"); }
        actions = { NoAction; }
        const default_action = NoAction();
        size = MAX_PORTS;
    }

    apply {
        meta.queues = 8w1 << standard_metadata.priority;
        if (standard_metadata.egress_spec != DROP_PORT && lane.apply().hit) {
            if (hdr.bth.isValid() && hdr.bth.tokens != 0 && hdr.bth.opcode <= OPCODE_LAST_DATA) {
                candidate_group.apply();
                if (normal_port.apply().hit) {
                    iofd.apply();
                    normal = standard_metadata.egress_spec;
                    now = standard_metadata.ingress_global_timestamp;
                    packets_of_part = 32w1 << hdr.bth.opcode;
                    sought = hdr.ipv4.dst_addr ++ hdr.bth.dest_qp ++ 5w0 ++ key_tokens;
                    if (in_last_lane == 0 || key_tokens == 0) {
                        EACH_ENTRY(MATCH)
                    }
                    if (entry != NO_ENTRY) {
                        found = true;
                        dft_port.read(port, entry);
                        if (packets_of_part & (LAST_PACKETS | ONLY_PACKETS) != 0) {
                            dft_key.write(entry, 0);
                            freed.count((bit<32>)normal);
                        } else {
                            dft_used.write(entry, now);
                        }
                    } else if (packets_of_part & (FIRST_PACKETS | ONLY_PACKETS) != 0) {
                        waiting_bytes.apply(meta, normal);
                        if (meta.waiting >= threshold) {
                            if (in_last_lane == 1) {
                                last_lane.count((bit<32>)normal);
                            } else {
                                other_port.apply(standard_metadata, group, group_size,
                                                 normal_index, found, port);
                                if (found && packets_of_part & FIRST_PACKETS != 0) {
                                    EACH_ENTRY(FIND_PLACE)
                                    if (entry == NO_ENTRY && silent != NO_ENTRY) {
                                        entry = silent;
                                        expired.count((bit<32>)normal);
                                    }
                                    found = entry != NO_ENTRY;
                                    if (found) {
                                        dft_key.write(entry, sought);
                                        dft_port.write(entry, port);
                                        dft_used.write(entry, now);
                                        allocated.count((bit<32>)normal);
                                    } else {
                                        table_full.count((bit<32>)normal);
                                    }
                                }
                            }
                        }
                    }
                    if (found) {
                        deflect();
                        if (hdr.bth.tokens == 0) {
                            tokens_spent.count((bit<32>)normal);
                        }
                    }
                }
            }
            if (from_above.apply().hit && to_above.apply().hit) {
                change_lane();
            }
        }
        arrival.apply(hdr, meta, standard_metadata);
    }
}

// Egress stage: mark packets of a lane by the total queue of all lanes.
control LanesDeparture(inout headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    QueueDeparture() departure;
    WaitingBytes() waiting_bytes;
    EcnMarking() marking;

    apply {
        departure.apply(hdr, meta, standard_metadata);
        if (hdr.ipv4.isValid() && hdr.ipv4.ecn != ECN_NOT_ECT) {
            waiting_bytes.apply(meta, standard_metadata.egress_port);
            marking.apply(hdr, meta, standard_metadata);
        }
    }
}

#define INGRESS_STAGE Deflection
#define EGRESS_STAGE LanesDeparture

#include "include/switch.p4"
