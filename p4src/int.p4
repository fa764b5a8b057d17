// Layer-3 forwarding and per-hop telemetry for HPCC (include/telemetry.p4).
//
// Tables: those of include/forwarding.p4, and port_telemetry of include/telemetry.p4.
// Wire format: docs/wire-formats.md, "INT shim".
#include "include/prelude.p4"
#include "include/telemetry.p4"

#define EGRESS_STAGE Telemetry

#include "include/switch.p4"
