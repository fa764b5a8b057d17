// Layer-3 forwarding, and ExpressPass's limit on credits in front of every link: as many as those
// whose data the link can carry in the other direction (Cho et al., "Credit-Scheduled Delay-Bounded
// Congestion Control for Datacenters", SIGCOMM 2017, section 3). Credits beyond the limit are
// dropped; other packets pass. With load_balancing/symmetric.p4 data takes the path of its credits.
//
// Tables: those of include/forwarding.p4, and of include/v1model/credit_limit.p4. For TNA and T2NA
//         the limit is a meter (include/tofino/credit_limit.p4).
// Wire format: docs/wire-formats.md, "ExpressPass".
#include "include/prelude.p4"
#include "include/packets/expresspass.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    bth_t      bth;
}

struct metadata_t {
    common_metadata_t common;
}

// Index of the counter credit_drops.
const counter_index_t DROP_CREDIT = 0;

@dropped["ingress", "credit"]
PACKET_COUNTER(1) credit_drops;

#ifdef __TARGET_TOFINO__
#include "include/tofino/credit_limit.p4"
#else
#include "include/v1model/credit_limit.p4"
#endif

#define INGRESS_STAGE CreditLimit

#include "include/switch.p4"
