// Layer-3 forwarding, RED/ECN marking, and per-hop telemetry: for protocols of both kinds in one
// network, such as DCQCN beside HPCC.
//
// Tables: those of include/forwarding.p4, ecn_threshold of include/ecn.p4, and port_telemetry of
//         include/telemetry.p4.
// Wire format: docs/wire-formats.md, "INT shim"; packets without one are plain RoCEv2.
#include "include/prelude.p4"
#include "include/telemetry.p4"
#include "include/ecn.p4"

// A stage of egress. Both look at the queue that the packet leaves behind.
control MarkingAndTelemetry(inout headers_t hdr, inout metadata_t meta,
                            inout standard_metadata_t standard_metadata) {
    EcnMarking() marking;
    Telemetry() telemetry;

    apply {
        marking.apply(hdr, meta, standard_metadata);
        telemetry.apply(hdr, meta, standard_metadata);
    }
}

#define EGRESS_STAGE MarkingAndTelemetry

#include "include/switch.p4"
