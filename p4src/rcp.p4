// Layer-3 forwarding, and RCP's rate computation in front of every link: one rate for all flows,
// without state for any of them (Dukkipati et al., "Processor Sharing Flows in the Internet", IWQoS
// 2005, equation 2). A flow's rate packet is lowered to the rate of each link on its path, and the
// destination sends it back. Responses pass unchanged.
//
// Tables: those of include/forwarding.p4, and of include/v1model/rate_control.p4 or, for TNA and
// T2NA, include/tofino/rate_control.p4.
// Wire format: docs/wire-formats.md, "RCP". Rates are in kb/s.
#include "include/prelude.p4"
#include "include/packets/rcp.p4"

#ifdef __TARGET_TOFINO__
// Follows Ethernet's header in an update (include/tofino/rate_control.p4).
header rate_update_t {
    bit<8>  link_class;
    bit<32> excess_bytes;
}
#define RATE_UPDATE rate_update_t rate_update;
#else
#define RATE_UPDATE
#endif

struct headers_t {
    ethernet_t ethernet;
    RATE_UPDATE
    ipv4_t     ipv4;
    udp_t      udp;
    bth_t      bth;
    rcp_t      rcp;
}

struct metadata_t {
    common_metadata_t common;
}

#include "include/parser.p4"

parser RcpParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    RoceParser() roce;

    state start {
        roce.apply(packet, hdr, meta, standard_metadata);
        transition select(meta.common.opcode) {
            OPCODE_RATE: parse_rcp;
            default: accept;
        }
    }

    state parse_rcp {
        packet.extract(hdr.rcp);
        transition accept;
    }
}

#ifdef __TARGET_TOFINO__
#include "include/tofino/rate_control.p4"
#else
#include "include/v1model/rate_control.p4"
#endif

#include "include/switch.p4"
