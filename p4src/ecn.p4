// Layer-3 forwarding and RED/ECN marking, for DCQCN, DCTCP and every other ECN-driven protocol.
//
// Tables: those of include/forwarding.p4, and ecn_threshold of include/ecn.p4.
// Wire format: plain RoCEv2 (docs/wire-formats.md). Only the TTL, the ECN field and the IPv4
//          checksum change, which the ICRC excludes.
//
// On hardware the tables are the same; a built-in WRED profile can replace include/ecn.p4.
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
