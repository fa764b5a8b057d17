// Functions of TNA and T2NA for stages. include/v1model/target.p4 has the same names for v1model.
//
// Nothing is multiplied; random numbers have the width of a field.
#ifndef P4CC_TARGET_P4
#define P4CC_TARGET_P4

#if __TARGET_TOFINO__ == 2
#include <t2na.p4>
#else
#include <tna.p4>
#endif

typedef bit<9> counter_index_t;
typedef bit<32> depth_t;  // cells; as wide as a container, in which a chip can compare
typedef bit<16> frame_bytes_t;  // bytes of a frame on a link, as wide as the length in IPv4

@noWarn("unused") const bit<16> FCS_BYTES = 4;  // a chip counts them as the packet's

#if __TARGET_TOFINO__ == 2
@noWarn("unused") const bit<9> GENERATOR_PORT = 6;
#else
@noWarn("unused") const bit<9> GENERATOR_PORT = 68;
#endif

// v1model's metadata, as far as stages use it; include/tofino/pipeline.p4 converts it from and to
// intrinsic metadata.
struct standard_metadata_t {
    bit<9>  ingress_port;
    bit<9>  egress_spec;
    bit<9>  egress_port;
    bit<3>  priority;
    bit<16> mcast_grp;
    bit<16> egress_rid;
    depth_t deq_qdepth;
    bit<48> ingress_global_timestamp;
    bit<48> egress_global_timestamp;
    bit<1>  checksum_error;
    bit<1>  malformed;
#if __TARGET_TOFINO__ == 2
    bit<16> cut_bytes;  // length to which ingress cuts the packet, with FCS; 0: it does not
#endif
}

void mark_to_drop(inout standard_metadata_t standard_metadata) {
    standard_metadata.egress_spec = 511;
}

#define PACKET_COUNTER(size) Counter<bit<32>, counter_index_t>(size, CounterType_t.PACKETS)
#define PORT_SELECTOR(name)                              \
    Hash<bit<16>>(HashAlgorithm_t.CRC16) name##_hash;    \
    ActionProfile(4096) name##_members;                  \
    ActionSelector(name##_members, name##_hash, SelectorMode_t.FAIR, 512, 1024) name
#define AT_LEAST(value, low) value = max(value, (frame_bytes_t)low);
#define TICKS_TO_NS(ticks, ns_q8) ((bit<64>)(ticks))

// The parser's checks of an IPv4 header. Ingress checks its version and length.
#define CHECKSUM_UNIT(name) Checksum() name;
#define CHECK_IPV4(name)   \
    name.add(hdr.ipv4);    \
    standard_metadata.checksum_error = (bit<1>)name.verify();
#define IS_MALFORMED (standard_metadata.malformed == 1)
#define IS_SHORTER_THAN(length) (false)  // ingress does not have a packet's length
#define IS_GENERATED (standard_metadata.ingress_port == GENERATOR_PORT)  // the chip made it

// Elements of a stack whose number, from 1 to MAX_COUNTED, is a field of the packet: a state for
// each. A loop needs the parser counter, but a chip's compiler takes that to pad short packets. A
// chip parses 160 bytes of a packet.
#define MAX_COUNTED 7
#define COUNTER_FIELD(left)
#define COUNT_FROM(left, number)
#define EXTRACT_ELEMENT(state_name, index, next_state, stack, number) \
    state state_name {                                                \
        packet.extract(stack.next);                                   \
        transition select(number) {                                   \
            index: accept;                                            \
            default: next_state;                                      \
        }                                                             \
    }
#define EXTRACT_COUNTED(first_state, stack, number, left)               \
    EXTRACT_ELEMENT(first_state, 1, first_state##_2, stack, number)     \
    EXTRACT_ELEMENT(first_state##_2, 2, first_state##_3, stack, number) \
    EXTRACT_ELEMENT(first_state##_3, 3, first_state##_4, stack, number) \
    EXTRACT_ELEMENT(first_state##_4, 4, first_state##_5, stack, number) \
    EXTRACT_ELEMENT(first_state##_5, 5, first_state##_6, stack, number) \
    EXTRACT_ELEMENT(first_state##_6, 6, first_state##_7, stack, number) \
    state first_state##_7 {                                             \
        packet.extract(stack.next);                                     \
        transition accept;                                              \
    }

// How far a number, such as a depth, is above a limit; 0 if it is not. A chip's conditions compare
// with constants only, and its compiler would put the difference into the condition if it were not
// a table's action.
control Excess(in depth_t depth, in depth_t limit, out depth_t excess) {
    action subtract() {
        excess = depth |-| limit;
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

// Hash of a flow. The sum with the switch's salt is not linear, as a CRC is, so that switches one
// behind the other do not split their flows alike when a selector hashes it again.
control FlowHash(in bit<32> src_addr, in bit<32> dst_addr, in bit<8> protocol, in bit<32> ports,
                 in bit<32> salt, out bit<32> value) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) crc;

    apply {
        value = crc.get({ src_addr, dst_addr, protocol, ports });
        value = value + salt;
    }
}

// Hash of two addresses, which is the same for both directions, and of the TTL, which differs
// between switches that follow each other.
control PairHash(in bit<32> src_addr, in bit<32> dst_addr, in bit<8> ttl, out bit<32> value) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) crc;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) ttl_crc;

    apply {
        value = crc.get({ min(src_addr, dst_addr), max(src_addr, dst_addr) });
        bit<32> salt = ttl_crc.get({ ttl });
        value = value + salt;
    }
}

// Number, from 0, of the next member of a group in turn.
control TakeTurn(in bit<16> group_id, in bit<16> group_size, out bit<16> member) {
    bit<16> last = 0;

    Register<bit<16>, bit<16>>(GROUPS) next_member;

    RegisterAction<bit<16>, bit<16>, bit<16>>(next_member) take = {
        void apply(inout bit<16> next, out bit<16> taken) {
            taken = next;
            if (next >= last) {
                next = 0;
            } else {
                next = next + 1;
            }
        }
    };

    apply {
        last = group_size - 1;
        member = take.execute(group_id);
    }
}

#ifdef LOSS_PPM
// Random loss of a packet: LOSS_PPM of a million, in parts of 2^20.
control LossLottery(out bool lost) {
    Random<bit<20>>() draws;
    Excess() excess;

    apply {
        bit<32> draw = (bit<32>)draws.get();
        bit<32> below;
        excess.apply((bit<32>)(1048576 * LOSS_PPM / 1000000), draw, below);
        lost = below != 0;
    }
}
#endif

// Random mark for a depth between Kmin and Kmax, with a table of probabilities by steps of depth.
//
// Table: red_probability (port, depth) -> chance(of_65536)
control RedLottery(in bit<9> port, in bit<19> depth, in depth_t above_kmin, in bit<32> span,
                   out bool wins) {
    Random<bit<16>>() draws;
    bit<16> draw = 0;
    bit<16> below = 0;

    action chance(bit<16> of_65536) {
        below = of_65536 |-| draw;
    }

    table red_probability {
        key = {
            port: ternary;
            depth: range;
        }
        actions = { chance; }
        default_action = chance(0);
        size = 2048;
    }

    apply {
        draw = draws.get();
        red_probability.apply();
        wins = below != 0;
    }
}

// Bytes that a port has sent before this packet, to which it adds its own.
control SentBytes(in bit<9> port, in frame_bytes_t bytes, out bit<32> before) {
    Register<bit<32>, bit<9>>(512) tx_bytes_of_port;

    RegisterAction<bit<32>, bit<9>, bit<32>>(tx_bytes_of_port) add = {
        void apply(inout bit<32> sent, out bit<32> result) {
            result = sent;
            sent = sent + (bit<32>)bytes;
        }
    };

    apply {
        before = add.execute(port);
    }
}

#endif
