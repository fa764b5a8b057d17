// Egress stage: RED/ECN marking at dequeue.
//
// A packet is never marked up to Kmin, always above Kmax, and with probability Pmax (q - Kmin) /
// (Kmax - Kmin) between. The depth q is what the packet leaves behind in its queue, in cells; a
// program that marks by another depth defines MARKING_DEPTH (a depth_t) first, in its own unit.
// Only ECN-capable packets are marked (RFC 3168). The counter ecn_marked has the marks of each
// port.
//
// Table: ecn_threshold (port, priority) -> red or no_marking; its default action holds where no
// entry is.
#ifndef P4CC_ECN_P4
#define P4CC_ECN_P4

// IPv4's ECN field (RFC 3168).
const bit<2> ECN_NOT_ECT = 0;
const bit<2> ECN_CE = 3;

#ifndef MARKING_DEPTH
#define MARKING_DEPTH standard_metadata.deq_qdepth
#endif

control EcnMarking(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    bit<32> red_span = 1;
    depth_t kmin = 0x7FFFF;  // never reached: without an entry no packet is marked
    depth_t kmax = 0x7FFFF;
    depth_t above_kmin = 0;
    depth_t above_kmax = 0;
    bool    wins = false;

    Excess() over_kmin;
    Excess() over_kmax;
    RedLottery() lottery;
    PACKET_COUNTER(MAX_PORTS) ecn_marked;

    action mark() {
        hdr.ipv4.ecn = ECN_CE;
        ecn_marked.count((counter_index_t)standard_metadata.egress_port);
    }

    // span = (Kmax - Kmin) / Pmax
    action red(depth_t kmin_cells, depth_t kmax_cells, bit<32> span) {
        kmin = kmin_cells;
        kmax = kmax_cells;
        red_span = span;
    }

    action no_marking() {}

    table ecn_threshold {
        key = {
            standard_metadata.egress_port: exact @name("port");
            standard_metadata.priority: exact @name("priority");
        }
        actions = { red; no_marking; }
        default_action = no_marking();
        size = 4096;
    }

    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.ecn != ECN_NOT_ECT && hdr.ipv4.ecn != ECN_CE) {
            ecn_threshold.apply();
            over_kmax.apply(MARKING_DEPTH, kmax, above_kmax);
            over_kmin.apply(MARKING_DEPTH, kmin, above_kmin);
            if (above_kmax != 0) {
                mark();
            } else if (above_kmin != 0) {
                lottery.apply(standard_metadata.egress_port, (bit<19>)MARKING_DEPTH, above_kmin,
                              red_span, wins);
                if (wins) {
                    mark();
                }
            }
        }
    }
}

#endif
