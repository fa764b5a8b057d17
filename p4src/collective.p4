// Layer-3 forwarding, RED/ECN marking at dequeue, and collectives in the network: requests are
// replicated down a group's tree, and their answers are combined on the way up (thesis, chapter 6).
//
// Tables: those of include/forwarding.p4, where the prefixes of groups lead to port BY_GROUP, and
//          of include/ecn.p4; tree_port ((group, tree, ingress port) -> child or parent);
//          answer_class.
// Counters: collective_drops, collective_absorbed, collective_made, collective_pruned
//          (docs/p4-programs.md). A contribution that leaves as the sum, or a request that leaves
//          as its answer, counts as absorbed, and the sum or the answer counts as made.
// Wire format: docs/wire-formats.md.
#include "include/prelude.p4"
#include "include/packets/collective.p4"

struct headers_t {
    ethernet_t   ethernet;
    ipv4_t       ipv4;
    udp_t        udp;
    bth_t        bth;
    collective_t collective;
    lanes_t      lanes;
}

struct metadata_t {
    common_metadata_t common;
    bit<63>           heard;  // children that need no copy of replicated packets
}

#include "include/ecn.p4"
#include "include/parser.p4"

#ifndef COLLECTIVE_SLOTS
#define COLLECTIVE_SLOTS 16384
#endif
const bit<32> SLOTS = COLLECTIVE_SLOTS;

@noWarn("unused")  // used by the control plane
const port_t BY_GROUP = 510;  // port of packets for a group, which the program's own stage forwards

const bit<16> LANES_BYTES = 128;
const bit<16> WITHOUT_LANES_BYTES = 60;  // bytes from the IPv4 header to the ICRC
const bit<16> WITH_LANES_BYTES = WITHOUT_LANES_BYTES + LANES_BYTES;
const bit<16> IPV4_BYTES = 20;

// Indices of collective_drops.
const bit<32> DROP_RANK = 0;       // the rank is beyond the members
const bit<32> DROP_OPERATOR = 1;   // the operator is unknown
const bit<32> DROP_LANES = 2;      // the packet is shorter than its lanes
const bit<32> DROP_SEQUENCE = 3;   // the sequence is 0
const bit<32> DROP_DIRECTION = 4;  // the direction does not fit the tree
const bit<32> DROP_STALE = 5;
const bit<32> DROP_DUPLICATE = 6;
const bit<32> COLLECTIVE_DROP_REASONS = 7;

const bit<32> CONTRIBUTIONS = 0;  // index of collective_absorbed; of results: collective_made
const bit<32> REQUESTS = 1;

@dropped["ingress", "rank", "operator", "lanes", "sequence", "direction", "stale", "duplicate"]
counter(COLLECTIVE_DROP_REASONS, CounterType.packets) collective_drops;
@absorbed["ingress", "contribution", "request"]
counter(2, CounterType.packets) collective_absorbed;
@made["ingress", "combined", "answer"]
counter(2, CounterType.packets) collective_made;
@absorbed["egress", "pruned"]
counter(1, CounterType.packets) collective_pruned;

// An operation has one of its initiator's slots: base + rank << window_bits + sequence mod
// 2^window_bits. Its state is the sequence (32 bits), whether a partial sum overflowed (1), and the
// children heard (63); a read's slot also has 32 lanes. Slots are never cleared. An initiator sends
// sequence s + W only when s is answered, so a slot is free whenever a newer sequence comes, and
// the first contribution overwrites it. All members of a push group together are one initiator
// (rank 0), with twice as many slots from the control plane: a member that has result s may push
// s + W.
//
// On hardware: a stateful ALU for each of 33 arrays (a slot's state and 32 lanes, read and written
// once per packet, at the same index), as many as 12 stages with 4 each have; adders with signed
// minimum and maximum, and an overflow flag for the next stage. Only an operator that is fixed at
// compile time fits. Shifts by a variable become table entries. A slot's state of 96 bits
// is a pair of 64-bit ALUs. SLOTS x 140 + 12 bytes are 2.4 MiB of SRAM.
register<bit<96>>(SLOTS) read_state;
register<bit<96>>(SLOTS) write_state;

#define EACH_LANE(WHAT)                                                     \
    WHAT(0) WHAT(1) WHAT(2) WHAT(3) WHAT(4) WHAT(5) WHAT(6) WHAT(7)         \
    WHAT(8) WHAT(9) WHAT(10) WHAT(11) WHAT(12) WHAT(13) WHAT(14) WHAT(15)   \
    WHAT(16) WHAT(17) WHAT(18) WHAT(19) WHAT(20) WHAT(21) WHAT(22) WHAT(23) \
    WHAT(24) WHAT(25) WHAT(26) WHAT(27) WHAT(28) WHAT(29) WHAT(30) WHAT(31)

#define LANE_REGISTER(i) register<bit<32>>(SLOTS) sums##i;

EACH_LANE(LANE_REGISTER)

// Actions on a slot's lanes besides the operators. Operators work lane by lane on 32 bits in
// two's complement: sum, min, max, and, or, xor. A sum wraps, so that any order gives the same
// bits; a partial sum that overflows sets the header's bit, which stays set.
const bit<4> KEEP = 14;  // the packet gets the sum
const bit<4> PUT = 15;   // the packet is the first, so its lanes are stored

// The new value of one lane, in the register and in the packet.
#define COMBINE_LANE(i)                                                            \
    sums##i.read(sum, slot);                                                       \
    if (how == COLLECTIVE_SUM) {                                                   \
        wrapped = sum + hdr.lanes.lane##i;                                         \
        overflows = overflows | ((sum ^ wrapped) & (hdr.lanes.lane##i ^ wrapped)); \
        sum = wrapped;                                                             \
    } else if (how == PUT) {                                                       \
        sum = hdr.lanes.lane##i;                                                   \
    } else if (how == COLLECTIVE_MIN) {                                            \
        if ((int<32>)hdr.lanes.lane##i < (int<32>)sum) {                           \
            sum = hdr.lanes.lane##i;                                               \
        }                                                                          \
    } else if (how == COLLECTIVE_MAX) {                                            \
        if ((int<32>)hdr.lanes.lane##i > (int<32>)sum) {                           \
            sum = hdr.lanes.lane##i;                                               \
        }                                                                          \
    } else if (how == COLLECTIVE_AND) {                                            \
        sum = sum & hdr.lanes.lane##i;                                             \
    } else if (how == COLLECTIVE_OR) {                                             \
        sum = sum | hdr.lanes.lane##i;                                             \
    } else if (how == COLLECTIVE_XOR) {                                            \
        sum = sum ^ hdr.lanes.lane##i;                                             \
    }                                                                              \
    hdr.lanes.lane##i = sum;                                                       \
    sums##i.write(slot, sum);

// The lanes of contributions to groups are the only payload that is parsed.
parser CollectiveParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    RoceParser() roce;

    state start {
        roce.apply(packet, hdr, meta, standard_metadata);
        transition select(meta.common.opcode) {
            OPCODE_COLLECTIVE_WRITE: parse_collective;
            OPCODE_COLLECTIVE_ACKNOWLEDGEMENT: parse_collective;
            OPCODE_READ_REDUCTION: parse_collective;
            OPCODE_PUSHED_RESULT: parse_collective;
            OPCODE_CONTRIBUTION: parse_contribution;
            OPCODE_PUSHED_CONTRIBUTION: parse_contribution;
            default: accept;
        }
    }

    state parse_collective {
        packet.extract(hdr.collective);
        transition accept;
    }

    @noWarn("uninitialized-use") @noWarn("invalid-header")  // an opcode implies an IPv4 header
    state parse_contribution {
        packet.extract(hdr.collective);
        transition select(hdr.collective.group, hdr.ipv4.total_len) {
            (0, _): accept;
            (_, 0 .. WITH_LANES_BYTES - 1): accept;
            default: parse_lanes;
        }
    }

    state parse_lanes {
        packet.extract(hdr.lanes);
        transition accept;
    }
}

// Ingress stage: send a packet of a group down or up its tree, or combine it.
//
// A packet's header names group and tree; group 0 is unicast, which is only routed.
//   write, read reduction   go up to the tree's root, which replicates them to its children, and
//                           these to theirs: switches or members
//   acknowledgements, contributions
//                           combine at each switch of the tree over its children; the last one
//                           leaves with the sum, towards the root, and from the root to the
//                           initiator. The others are absorbed. Those from the parent are complete
//   pushed contributions    combine likewise, without a request; at the root the last one becomes
//                           the pushed result, which is replicated
// Combined packets have the group as source (IPv4 and MAC).
//
// A packet that meets a slot:
//   an older sequence       is stale, and dropped
//   a child heard before    is a duplicate, and dropped
//   a request for a slot that is complete
//                           becomes its answer here, and leaves by the port that it came by
//   a request for one that is not
//                           goes only to children that have not been heard; egress drops the
//                           other copies
//   a contribution pushed again (retry) to a slot that is complete
//                           goes up with the sum; at the root the result goes back to that child
// So the loss of a partial result costs a repetition, never a second addition. Resetting registers
// costs repetitions, too; a push group cannot recover from that at its root, since members that
// have the result do not push again. A group, tree or port without an entry counts as DROP_NO_GROUP
// of ingress_drops: routed as unicast, a partial sum would pass for a result.
control Collective(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    bit<1>  from_child = 0;
    bit<63> own_bit = 0;
    bit<63> all_bits = 0;
    bit<32> base_slot = 0;
    bit<5>  window = 0;
    bit<16> ranks = 0;
    bit<1>  is_root = 0;
    bit<16> children = 0;
    port_t  up_port = 0;
    bit<6>  answer_dscp = 0;
    bit<3>  answer_priority = 0;

    bool    is_write;
    bool    is_request;
    bool    is_push;
    bit<32> slot;
    bit<96> state;
    bit<32> sequence;
    bit<1>  overflow;
    bit<63> heard;
    bit<4>  how = PUT;
    bit<32> sum;
    bit<32> wrapped;
    bit<32> overflows = 0;
    bool    complete;
    bool    lanes_change = false;
    bool    heard_changes = false;
    bool    leaves = false;  // true for the last contribution, or one pushed again
    bool    changes_class = false;

    action refuse(bit<32> reason) {
        collective_drops.count(reason);
        mark_to_drop(standard_metadata);
    }

    action no_entry() {
        ingress_drops.count(DROP_NO_GROUP);
        mark_to_drop(standard_metadata);
    }

    // number    of the child behind the port, from 0 to 62: its bit in `all`, and the instance of
    //           its copies
    // all       a bit for each child
    // members   the number of ranks
    // root      1: this switch is the tree's root
    // replicas  the multicast group of the children
    // up        the port towards the root
    action child(bit<6> number, bit<63> all, bit<32> base, bit<5> window_bits, bit<16> members,
                 bit<1> root, bit<16> replicas, port_t up) {
        from_child = 1;
        own_bit = (bit<63>)1 << number;
        all_bits = all;
        base_slot = base;
        window = window_bits;
        ranks = members;
        is_root = root;
        children = replicas;
        up_port = up;
    }

    action parent(bit<63> all, bit<32> base, bit<5> window_bits, bit<16> members,
                  bit<16> replicas) {
        all_bits = all;
        base_slot = base;
        window = window_bits;
        ranks = members;
        children = replicas;
    }

    table tree_port {
        key = {
            hdr.collective.group: exact @name("group");
            hdr.collective.tree: exact @name("tree");
            standard_metadata.ingress_port: exact @name("port");
        }
        actions = { child; parent; no_entry; }
        const default_action = no_entry();
        size = 65536;
    }

    // The class of answers made from requests, and of pushed results.
    action answer_with(bit<6> dscp, bit<3> priority) {
        answer_dscp = dscp;
        answer_priority = priority;
    }

    table answer_class {
        actions = { answer_with; }
        default_action = answer_with(0, 0);
    }

    action replicate() {
        standard_metadata.mcast_grp = children;
    }

    // From here on the packet has another class.
    action reclassify() {
        hdr.ipv4.dscp = answer_dscp;
        standard_metadata.priority = answer_priority;
    }

    action answered() {
        collective_absorbed.count(REQUESTS);
        collective_made.count(REQUESTS);
    }

    action come_from_group() {
        hdr.ipv4.src_addr = 8w239 ++ hdr.collective.tree ++ hdr.collective.group;
        hdr.ethernet.src_addr = 16w0x0200 ++ hdr.ipv4.src_addr;
        hdr.udp.checksum = 0;  // no checksum: it covers the lanes, which change
    }

    // A request returns to its sender.
    action turn_round() {
        hdr.ipv4.dst_addr = hdr.ipv4.src_addr;
        hdr.ethernet.dst_addr = hdr.ethernet.src_addr;
        come_from_group();
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    action become_contribution() {
        hdr.bth.opcode = OPCODE_CONTRIBUTION;
        hdr.lanes.setValid();
        hdr.ipv4.total_len = hdr.ipv4.total_len + LANES_BYTES;
        hdr.udp.length = hdr.udp.length + LANES_BYTES;
    }

    action become_result() {
        hdr.bth.opcode = OPCODE_PUSHED_RESULT;
        hdr.collective.retry = 0;
    }

    action become_acknowledgement() {
        hdr.bth.opcode = OPCODE_COLLECTIVE_ACKNOWLEDGEMENT;
        hdr.ipv4.total_len = WITHOUT_LANES_BYTES;
        hdr.udp.length = WITHOUT_LANES_BYTES - IPV4_BYTES;
        truncate((bit<32>)(ETHERNET_BYTES + WITHOUT_LANES_BYTES));
    }

    apply {
        if (hdr.collective.isValid() && hdr.collective.group != 0
            && standard_metadata.egress_spec != DROP_PORT) {
            is_write = hdr.bth.opcode == OPCODE_COLLECTIVE_WRITE
                || hdr.bth.opcode == OPCODE_COLLECTIVE_ACKNOWLEDGEMENT;
            is_request = hdr.bth.opcode == OPCODE_COLLECTIVE_WRITE
                || hdr.bth.opcode == OPCODE_READ_REDUCTION;
            is_push = hdr.bth.opcode == OPCODE_PUSHED_CONTRIBUTION;
            if (!tree_port.apply().hit) {
                // no_entry has counted it.
            } else if (hdr.collective.rank >= ranks) {
                refuse(DROP_RANK);
            } else if (hdr.collective.operator > COLLECTIVE_XOR) {
                refuse(DROP_OPERATOR);
            } else if (hdr.collective.sequence == 0) {
                refuse(DROP_SEQUENCE);
            } else if (hdr.bth.opcode == OPCODE_PUSHED_RESULT) {
                if (from_child == 0) {
                    replicate();
                } else {
                    refuse(DROP_DIRECTION);
                }
            } else if (is_request && from_child == 1 && is_root == 0) {
                standard_metadata.egress_spec = up_port;
            } else if (is_request || from_child == 1) {
                // The packet uses a slot.
                slot = base_slot + ((bit<32>)hdr.collective.rank << window)
                    + (hdr.collective.sequence & (((bit<32>)1 << window) - 1));
                if (is_write) {
                    write_state.read(state, slot);
                } else {
                    read_state.read(state, slot);
                }
                sequence = state[95:64];
                overflow = state[63:63];
                heard = state[62:0];
                if (hdr.collective.sequence > sequence) {
                    heard = 0;
                    overflow = 0;
                } else {
                    how = hdr.collective.operator;
                }
                complete = heard == all_bits;
                if (hdr.collective.sequence < sequence) {
                    refuse(DROP_STALE);
                } else if (is_request) {
                    if (complete) {
                        how = KEEP;
                        turn_round();
                        if (is_write) {
                            become_acknowledgement();
                        } else {
                            become_contribution();
                            lanes_change = true;
                        }
                        changes_class = true;
                        answered();
                    } else {
                        meta.heard = heard;
                        replicate();
                    }
                } else if (!is_write && !hdr.lanes.isValid()) {
                    refuse(DROP_LANES);
                } else if ((heard & own_bit) == 0) {
                    heard = heard | own_bit;
                    overflow = overflow | hdr.collective.overflow;
                    heard_changes = true;
                    lanes_change = !is_write;
                    leaves = heard == all_bits;
                    collective_absorbed.count(CONTRIBUTIONS);
                    if (leaves) {
                        collective_made.count(CONTRIBUTIONS);
                    } else {
                        mark_to_drop(standard_metadata);
                    }
                } else if (is_push && complete && hdr.collective.retry == 1) {
                    how = KEEP;
                    lanes_change = true;
                    leaves = true;
                    if (is_root == 1) {
                        meta.heard = ~own_bit;
                    }
                    answered();
                } else {
                    refuse(DROP_DUPLICATE);
                }
                if (lanes_change) {
                    EACH_LANE(COMBINE_LANE)
                    overflow = overflow | overflows[31:31];
                    hdr.collective.overflow = overflow;
                }
                if (heard_changes) {
                    state = hdr.collective.sequence ++ overflow ++ heard;
                    if (is_write) {
                        write_state.write(slot, state);
                    } else {
                        read_state.write(slot, state);
                    }
                }
                if (leaves) {
                    come_from_group();
                    if (is_root == 0) {
                        standard_metadata.egress_spec = up_port;
                    } else if (is_push) {
                        become_result();
                        changes_class = true;
                        replicate();
                    }
                }
                if (changes_class) {  // applied in one place: p4c gives a table one successor
                    answer_class.apply();
                    reclassify();
                }
            } else if (is_push) {
                refuse(DROP_DIRECTION);
            }
        }
    }
}

// Egress stage: copies for children that have been heard are dropped.
control CollectiveDeparture(inout headers_t hdr, inout metadata_t meta,
                            inout standard_metadata_t standard_metadata) {
    EcnMarking() marking;

    apply {
        // The rid of a copy for a child is the child's number, of 6 bits; BMv2 takes 8 of the
        // amount of a shift.
        if (meta.heard != 0
            && ((meta.heard >> (bit<8>)standard_metadata.egress_rid) & 1) == 1) {
            collective_pruned.count(0);
            mark_to_drop(standard_metadata);
        } else {
            marking.apply(hdr, meta, standard_metadata);
        }
    }
}

#define PARSER CollectiveParser
#define INGRESS_STAGE Collective
#define EGRESS_STAGE CollectiveDeparture

#include "include/switch.p4"
