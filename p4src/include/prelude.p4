// What a program includes first. It then declares
//   headers_t   with ethernet, ipv4, udp, bth, and what else it parses, in this order
//   metadata_t  with common, and what else its own stages tell each other
// includes and writes the stages that it is made of, and ends with include/switch.p4. A stage is a control
//   control Name(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata)
#ifndef P4CC_PRELUDE_P4
#define P4CC_PRELUDE_P4

#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

// What the stages of every switch tell each other.
struct common_metadata_t {
    bit<8>  opcode;         // the BTH's; 0 for what is not RoCEv2
    bit<32> queue;          // index of the queue that this packet is counted in (include/queue_bytes.p4)
    bit<32> counted_bytes;  // and with how much; 0: not at all
}

// @noWarn: no program uses all of these.
@noWarn("unused") const port_t DROP_PORT = 511;  // where mark_to_drop sends a packet
@noWarn("unused") const bit<32> FLIT_BYTES = 16;  // what a link charges a frame at least, where headers are not charged

// Indices of the counter ingress_drops.
@noWarn("unused") const bit<32> DROP_MALFORMED = 0;    // shorter than its headers say, or IPv4 with options
@noWarn("unused") const bit<32> DROP_NOT_IPV4 = 1;
@noWarn("unused") const bit<32> DROP_CHECKSUM = 2;     // IPv4 header checksum
@noWarn("unused") const bit<32> DROP_TTL = 3;
@noWarn("unused") const bit<32> DROP_NO_ROUTE = 4;
@noWarn("unused") const bit<32> DROP_NO_GROUP = 5;     // a multicast group that leads nowhere
const bit<32> DROP_REASONS = 6;

// The names under which a run tells of them. A program has counters of its own for what it drops, absorbs or makes itself.
@dropped["ingress", "malformed", "not_ipv4", "checksum", "ttl", "no_route", "no_group"]
counter(DROP_REASONS, CounterType.packets) ingress_drops;

#endif
