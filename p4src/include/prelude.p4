// The first include of a program. The program then declares
//   headers_t   with ethernet, ipv4, udp, bth, and its other parsed headers, in this order
//   metadata_t  with common, and the values that its own stages pass to each other,
// includes and writes its stages, and ends with include/switch.p4. A stage is a control
//   control Name(inout headers_t hdr, inout metadata_t meta,
//                inout standard_metadata_t standard_metadata)
#ifndef P4CC_PRELUDE_P4
#define P4CC_PRELUDE_P4

#include <core.p4>

const bit<32> GROUPS = 1024;  // groups of ports of equal cost

#ifdef __TARGET_TOFINO__
#include "tofino/target.p4"
#else
#include "v1model/target.p4"
#endif
#include "headers.p4"

// Values that the stages of every switch pass to each other.
struct common_metadata_t {
    bit<8>  opcode;         // opcode in the BTH; 0 if the packet is not RoCEv2
    bit<32> queue;          // index of the queue that counts this packet (include/queue_bytes.p4)
    bit<32> counted_bytes;  // bytes that the packet counts there; 0: none
}

// @noWarn: no program uses all of these.
@noWarn("unused") const port_t DROP_PORT = 511;  // port to which mark_to_drop sends a packet

// The smallest charge of a link for a frame if headers are not charged.
@noWarn("unused") const bit<32> FLIT_BYTES = 16;

// Indices of the counter ingress_drops.
@noWarn("unused") const counter_index_t DROP_MALFORMED = 0;  // too short, or with IPv4 options
@noWarn("unused") const counter_index_t DROP_NOT_IPV4 = 1;
@noWarn("unused") const counter_index_t DROP_CHECKSUM = 2;  // the IPv4 header checksum is wrong
@noWarn("unused") const counter_index_t DROP_TTL = 3;
@noWarn("unused") const counter_index_t DROP_NO_ROUTE = 4;
@noWarn("unused") const counter_index_t DROP_NO_GROUP = 5;  // the multicast group does not exist
const bit<32> DROP_REASONS = 6;

// Their names in a run's ledger. A program has its own counters for packets that it drops, absorbs
// or makes.
@dropped["ingress", "malformed", "not_ipv4", "checksum", "ttl", "no_route", "no_group"]
PACKET_COUNTER(DROP_REASONS) ingress_drops;

#endif
