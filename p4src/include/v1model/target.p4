// Functions of v1model for stages. include/tofino/target.p4 has the same names for TNA and T2NA.
#ifndef P4CC_TARGET_P4
#define P4CC_TARGET_P4

#include <v1model.p4>

typedef bit<32> counter_index_t;
typedef bit<19> depth_t;  // a depth in cells
typedef bit<32> frame_bytes_t;  // bytes that a frame takes on a link

#define PACKET_COUNTER(size) counter(size, CounterType.packets)
#define PORT_SELECTOR(name) action_selector(HashAlgorithm.crc16, 4096, 16) name
#define AT_LEAST(value, low) if ((value) < (low)) { value = low; }
#define TICKS_TO_NS(ticks, ns_q8) (((bit<64>)(ticks) * (ns_q8)) >> 8)

// The parser's checks of an IPv4 header. The checksum has a block of its own.
#define CHECKSUM_UNIT(name)
#define CHECK_IPV4(name) \
    verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl == 5, error.Ipv4HeaderUnsupported);
#define IS_MALFORMED (standard_metadata.parser_error != error.NoError)
#define IS_SHORTER_THAN(length) ((length) > standard_metadata.packet_length)
#define IS_GENERATED (false)

// Elements of a stack whose number, from 1 to MAX_COUNTED, is a field of the packet: a loop that
// counts down.
#define MAX_COUNTED 14
#define COUNTER_FIELD(left) bit<4> left;
#define COUNT_FROM(left, number) meta.left = number;
#define EXTRACT_COUNTED(first_state, stack, number, left) \
    state first_state {                                   \
        packet.extract(stack.next);                       \
        meta.left = meta.left - 1;                        \
        transition select(meta.left) {                    \
            0: accept;                                    \
            default: first_state;                         \
        }                                                 \
    }

// How far a depth is above a limit; 0 if it is not.
control Excess(in depth_t depth, in depth_t limit, out depth_t excess) {
    apply {
        excess = depth |-| limit;
    }
}

// Hash of a flow. CRCs are linear: a salt that is hashed beside the tuple shifts every hash by the
// same constant, and switches one behind the other split their flows alike (polarization). The
// product with an odd constant breaks that up.
control FlowHash(in bit<32> src_addr, in bit<32> dst_addr, in bit<8> protocol, in bit<32> ports,
                 in bit<32> salt, out bit<32> value) {
    apply {
        hash(value, HashAlgorithm.crc32, 32w0, { src_addr, dst_addr, protocol, ports },
             64w0x1_0000_0000);
        value = (value ^ salt) * 0x9E3779B1;
    }
}

// Hash of two addresses, which is the same for both directions, and of the TTL.
control PairHash(in bit<32> src_addr, in bit<32> dst_addr, in bit<8> ttl, out bit<32> value) {
    apply {
        bit<32> lower = src_addr;
        bit<32> upper = dst_addr;
        if (upper < lower) {
            lower = dst_addr;
            upper = src_addr;
        }
        hash(value, HashAlgorithm.crc32, 32w0, { lower, upper }, 64w0x1_0000_0000);
        value = (value ^ (bit<32>)ttl) * 0x9E3779B1;
    }
}

// Number, from 0, of the next member of a group in turn.
control TakeTurn(in bit<16> group_id, in bit<16> group_size, out bit<16> member) {
    register<bit<16>>(GROUPS) next_member;

    apply {
        next_member.read(member, (bit<32>)group_id);
        bit<16> next = member + 1;
        if (next >= group_size) {
            next = 0;
        }
        next_member.write((bit<32>)group_id, next);
    }
}

#ifdef LOSS_PPM
// Random loss of a packet: LOSS_PPM of a million.
control LossLottery(out bool lost) {
    bit<32> draw;

    apply {
        random(draw, 0, 999999);
        lost = draw < LOSS_PPM;
    }
}
#endif

// Random mark for a depth between Kmin and Kmax: a number drawn evenly from 0 to span - 1 is below
// depth - Kmin with the wanted probability if span is (Kmax - Kmin) / Pmax, so nothing is
// multiplied or divided.
control RedLottery(in bit<9> port, in bit<19> depth, in depth_t above_kmin, in bit<32> span,
                   out bool wins) {
    bit<32> draw;

    apply {
        random(draw, 0, span - 1);
        wins = draw < (bit<32>)above_kmin;
    }
}

// Bytes that a port has sent before this packet, to which it adds its own.
control SentBytes(in bit<9> port, in frame_bytes_t bytes, out bit<32> before) {
    register<bit<32>>(512) tx_bytes_of_port;

    apply {
        tx_bytes_of_port.read(before, (bit<32>)port);
        tx_bytes_of_port.write((bit<32>)port, before + bytes);
    }
}

#endif
