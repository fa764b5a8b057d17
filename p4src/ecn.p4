// Layer-3 forwarding, and RED/ECN marking. What DCQCN, DCTCP and every other ECN-driven protocol needs.
//
// Tables to fill: those of include/forwarding.p4 and include/ecn.p4 (ecn_threshold).
// Wire format: plain RoCEv2 (docs/wire-formats.md); only TTL, ECN and the IPv4 checksum change, all of which the ICRC excludes.
// On hardware: the same tables; a built-in WRED profile would do what include/ecn.p4 does.
#include "include/prelude.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    bth_t      bth;
}

struct metadata_t {
    common_metadata_t common;
}

#include "include/ecn.p4"

#define EGRESS_STAGE EcnMarking

#include "include/switch.p4"
