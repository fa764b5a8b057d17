// Layer-3 forwarding, and ACCurate's contention point in front of every link: max-min fair rates
// from three variables per link, without state for any flow.
//
// A flow sends one flow rate packet (FRP) a period on the path of its data. Each link lowers the
// packet's current rate and desired rate to its fair share. If a flow is much faster than its fair
// share, a copy of the packet is sent back from here (short-circuit notification). Responses pass
// unchanged.
//
// Tables: those of include/forwarding.p4; contention_point (port -> contend); multicast groups.
// Wire format: docs/wire-formats.md, "Flow rate packet". Rates are in kb/s.
#include "include/prelude.p4"
#include "include/packets/accurate.p4"
#include "include/quotient.p4"

// Multicast group (ingress port << 8) | egress port is for an FRP and its short-circuit copy. It
// has the egress port with instance 0, and the ingress port with this instance. Ports are below
// 256. A multicast copy keeps its priority; a clone would not.
const bit<16> SHORT_CIRCUIT_INSTANCE = 1;

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    bth_t      bth;
    frp_t      frp;
}

struct metadata_t {
    common_metadata_t common;
}

#include "include/parser.p4"

parser AccurateParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    RoceParser() roce;

    state start {
        roce.apply(packet, hdr, meta, standard_metadata);
        transition select(meta.common.opcode) {
            OPCODE_FRP: parse_frp;
            default: accept;
        }
    }

    state parse_frp {
        packet.extract(hdr.frp);
        transition accept;
    }
}

// Registers of a contention point, by egress port.
register<bit<48>>(MAX_PORTS) period_end_of;
register<bit<32>>(MAX_PORTS) fsr_of;         // fair share now; 0: not yet known
register<bit<32>>(MAX_PORTS) fsr_start_of;   // fair share at the period's start
register<bit<32>>(MAX_PORTS) fsr_before_of;  // least fair share in the previous period
register<bit<32>>(MAX_PORTS) m_of;           // flows bottlenecked here in this period
register<bit<32>>(MAX_PORTS) b_of;           // sum of the rates of flows bottlenecked elsewhere
register<bit<32>>(MAX_PORTS) b_max_of;       // largest rate among these
register<bit<32>>(MAX_PORTS) n_of;           // number of all flows
register<bit<32>>(MAX_PORTS) m_old_of;       // the same four values for the previous period
register<bit<32>>(MAX_PORTS) b_old_of;
register<bit<32>>(MAX_PORTS) b_max_old_of;
register<bit<32>>(MAX_PORTS) n_old_of;

#define CATCH_UP(k)                              \
    if (now - period_end >= (period << k)) {     \
        period_end = period_end + (period << k); \
    }

// Ingress stage: update the state of the link that an FRP is about to take, and the FRP's rates by
// that of the link.
//
// The contention point counts the flow as bottlenecked here (M) or elsewhere (its rate is added to
// B). When a period has ended, FSR = (C (1 - alpha) - B) / M. A flow-init and a flow-stop change M
// and B of the previous period, and FSR at once.
//
// This differs from the published rule in four places:
//   classes   a flow is local if min(FSR, FSR of the previous period) <= CR, with the lesser of
//             the FSRs that the period began and ended with. With FSR alone (corrected = 0, the
//             published rule) rates do not always settle.
//   periods   v1model has no timer, so a period ends with the first FRP after its time. If two or
//             more have passed, the state of all flows is unknown, and M = B = 0.
//   FSR <= 0  FSR is C (1 - alpha) over the number of flows, so that number is counted too.
//   M = 0     the fastest of the flows bottlenecked elsewhere counts as local. If there is no flow,
//             FSR = C (1 - alpha).
//
// Operations assumed of the hardware, per FRP and never per data packet: additions, subtractions,
// comparisons, shifts by constants and, for the short-circuit threshold, by amounts that the
// control plane sets. The quotient takes 25 consecutive steps (15 would suffice); a chip with fewer
// stages would look up 1/M and add shifted dividends. Registers are read and written once per
// packet.
control ContentionPoint(inout headers_t hdr, inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    Quotient(20) quotient;

    bit<32> capacity = 0;
    bit<48> period = 0;
    bit<48> phase = 0;
    bit<1>  corrected_rule = 0;
    bit<6>  threshold_up = 0;
    bit<6>  threshold_down = 0;

    bit<32> port;
    bit<48> now;
    bit<48> period_end;
    bit<32> fsr;
    bit<32> fsr_start;
    bit<32> fsr_before;
    bit<32> m;
    bit<32> b;
    bit<32> b_max;
    bit<32> n;
    bit<32> m_old;
    bit<32> b_old;
    bit<32> b_max_old;
    bit<32> n_old;
    bit<32> rate;
    bit<32> threshold;
    bit<32> dividend;
    bit<32> divisor;
    bit<64> share;
    bit<32> elsewhere;
    bool    new_period = false;
    bool    update = false;

    // capacity_kbps  C (1 - alpha)
    // period_ticks   the rate re-evaluation period (RRP), in ticks of the switch's clock
    // phase_ticks    added to the clock before periods are told apart; a period begins at each
    //                multiple of period_ticks
    // corrected      1: the rule above; 0: the published one
    // short_circuit_up, short_circuit_down
    //                notify when CR > 2^up FSR + 2^-down FSR; down = 63 leaves the second term out
    action contend(bit<32> capacity_kbps, bit<48> period_ticks, bit<48> phase_ticks,
                   bit<1> corrected, bit<6> short_circuit_up, bit<6> short_circuit_down) {
        capacity = capacity_kbps;
        period = period_ticks;
        phase = phase_ticks;
        corrected_rule = corrected;
        threshold_up = short_circuit_up;
        threshold_down = short_circuit_down;
    }

    table contention_point {
        key = { standard_metadata.egress_spec: exact @name("port"); }
        actions = { contend; @defaultonly NoAction; }
        const default_action = NoAction();
        size = MAX_PORTS;
    }

    action load() {
        period_end_of.read(period_end, port);
        fsr_of.read(fsr, port);
        fsr_start_of.read(fsr_start, port);
        fsr_before_of.read(fsr_before, port);
        m_of.read(m, port);
        b_of.read(b, port);
        b_max_of.read(b_max, port);
        n_of.read(n, port);
        m_old_of.read(m_old, port);
        b_old_of.read(b_old, port);
        b_max_old_of.read(b_max_old, port);
        n_old_of.read(n_old, port);
    }

    action store() {
        period_end_of.write(port, period_end);
        fsr_of.write(port, fsr);
        fsr_start_of.write(port, fsr_start);
        fsr_before_of.write(port, fsr_before);
        m_of.write(port, m);
        b_of.write(port, b);
        b_max_of.write(port, b_max);
        n_of.write(port, n);
        m_old_of.write(port, m_old);
        b_old_of.write(port, b_old);
        b_max_old_of.write(port, b_max_old);
        n_old_of.write(port, n_old);
    }

    action count_local() {
        m = m + 1;
        n = n + 1;
    }

    action count_elsewhere() {
        b = b |+| rate;
        n = n + 1;
    }

    apply {
        if (hdr.frp.isValid() && hdr.frp.response == 0 && contention_point.apply().hit) {
            port = (bit<32>)standard_metadata.egress_spec;
            now = standard_metadata.ingress_global_timestamp + phase;
            rate = hdr.frp.current_rate;
            load();

            // A flow-stop is classified like its flow before: by the share at the period's start,
            // // before others stopped, or, with the corrected rule, by the share announced later
            // if that is less.
            threshold = fsr_start;
            if (corrected_rule == 1) {
                if (fsr_before < threshold) {
                    threshold = fsr_before;
                }
                if (fsr < threshold) {
                    threshold = fsr;
                }
            }

            if (period_end - now - 1 >= period) {  // also true if the clock has restarted
                new_period = true;
                if (now - period_end < period && fsr != 0) {
                    m_old = m;
                    b_old = b;
                    b_max_old = b_max;
                    n_old = n;
                    // A flow that still has the share of the period's start is local even if a
                    // flow-stop has raised the share since.
                    fsr_before = fsr;
                    if (corrected_rule == 1 && fsr_start < fsr_before) {
                        fsr_before = fsr_start;
                    }
                } else {
                    m_old = 0;
                    b_old = 0;
                    b_max_old = 0;
                    n_old = 0;
                    fsr_before = capacity;
                    threshold = capacity;
                    CATCH_UP(19) CATCH_UP(18) CATCH_UP(17) CATCH_UP(16) CATCH_UP(15)
                    CATCH_UP(14) CATCH_UP(13) CATCH_UP(12) CATCH_UP(11) CATCH_UP(10)
                    CATCH_UP(9) CATCH_UP(8) CATCH_UP(7) CATCH_UP(6) CATCH_UP(5)
                    CATCH_UP(4) CATCH_UP(3) CATCH_UP(2) CATCH_UP(1) CATCH_UP(0)
                }
                period_end = period_end + period;
                m = 0;
                b = 0;
                b_max = 0;
                n = 0;
            }

            // Prompt update: as if the flow had started or stopped in the previous period.
            if (hdr.frp.kind == FRP_STOP) {
                update = true;
                n_old = n_old |-| 1;
                if (threshold <= rate) {
                    m_old = m_old |-| 1;
                } else {
                    b_old = b_old |-| rate;
                    if (b_max_old == rate) {
                        b_max_old = 0;  // the next largest is unknown; too small a share is safe
                    }
                }
                if (hdr.frp.counted == 1) {
                    n = n |-| 1;
                    if (threshold <= rate) {
                        m = m |-| 1;
                    } else {
                        b = b |-| rate;
                        if (b_max == rate) {
                            b_max = 0;
                        }
                    }
                }
            } else if (hdr.frp.kind == FRP_INIT) {
                update = true;
                threshold = fsr_before;
                if (corrected_rule == 1 && !new_period && fsr < threshold) {
                    threshold = fsr;
                }
                n_old = n_old + 1;
                if (threshold <= rate) {
                    m_old = m_old + 1;
                } else {
                    b_old = b_old |+| rate;
                    if (rate > b_max_old) {
                        b_max_old = rate;
                    }
                }
            }

            if (new_period || update) {
                // Equation 1 and its corner cases (section IV-A).
                divisor = m_old;
                elsewhere = b_old;
                if (m_old == 0) {
                    divisor = 1;
                    elsewhere = b_old |-| b_max_old;
                }
                if (m_old == 0 && b_old == 0) {
                    fsr = capacity;
                } else {
                    if (elsewhere < capacity) {
                        dividend = capacity - elsewhere;
                    } else {
                        dividend = capacity;
                        divisor = n_old;
                        if (n_old == 0) {
                            divisor = 1;  // more flows have stopped than were counted
                        }
                    }
                    quotient.apply((bit<64>)dividend, (bit<64>)divisor, share);
                    fsr = (bit<32>)share;
                }
                if (new_period) {
                    fsr_start = fsr;
                }
            }

            if (hdr.frp.kind != FRP_STOP) {
                if (hdr.frp.kind == FRP_PERIODIC) {
                    threshold = fsr;
                    if (corrected_rule == 1 && fsr_before < threshold) {
                        threshold = fsr_before;
                    }
                }
                if (threshold <= rate) {
                    count_local();
                } else {
                    count_elsewhere();
                    if (rate > b_max) {
                        b_max = rate;
                    }
                }
                if (fsr < rate) {
                    hdr.frp.current_rate = fsr;
                }
                if (fsr < hdr.frp.desired_rate) {
                    hdr.frp.desired_rate = fsr;
                }
                if ((bit<48>)rate
                    > ((bit<48>)fsr << threshold_up) + ((bit<48>)fsr >> threshold_down)) {
                    standard_metadata.mcast_grp =
                        standard_metadata.ingress_port[7:0] ++ standard_metadata.egress_spec[7:0];
                }
            }
            store();
        }
    }
}

// Egress stage: address the copy that notifies the source.
control ShortCircuit(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    // It goes back to the source like a response from the destination.
    action send_back() {
        mac_addr_t mac = hdr.ethernet.src_addr;
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = mac;
        ipv4_addr_t address = hdr.ipv4.src_addr;
        hdr.ipv4.src_addr = hdr.ipv4.dst_addr;
        hdr.ipv4.dst_addr = address;
        hdr.ipv4.ttl = 64;
        bit<24> qp = hdr.bth.dest_qp;
        hdr.bth.dest_qp = hdr.frp.source_qp;
        hdr.frp.source_qp = qp;
        hdr.frp.response = 1;
        hdr.frp.short_circuit = 1;
    }

    apply {
        if (standard_metadata.egress_rid == SHORT_CIRCUIT_INSTANCE && hdr.frp.isValid()) {
            send_back();
        }
    }
}

#define PARSER AccurateParser
#define INGRESS_STAGE ContentionPoint
#define EGRESS_STAGE ShortCircuit

#include "include/switch.p4"
