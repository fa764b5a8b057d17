// RCP's rate of a link for TNA and T2NA. Packets only count: ingress the bytes Y that arrive for a
// port, egress the depth q of the port's queue of data. In every interval T the packet generator
// makes an update for each port, which passes both; egress drops it:
//
//   excess <- Y - C T + beta T / (alpha d) q        R <- R (1 - alpha excess / (C d))
//
// Nothing is multiplied: the register reduction_of has the logarithm of C / R, and tables have the
// products and logarithms: queue_excess of q, log_change of the excess, link_rate of the register.
// The control plane chooses the logarithm's base, so that the register saturates at min_kbps.
#ifndef P4CC_RATE_CONTROL_P4
#define P4CC_RATE_CONTROL_P4

#include "../forwarding.p4"

const bit<16> ETHERTYPE_RATE_UPDATE = 0x88B5;  // EtherType for local experiments (IEEE 802)

Register<bit<32>, port_t>(MAX_PORTS) arrived_of;    // Y so far, by egress port
Register<bit<32>, port_t>(MAX_PORTS) queued_of;     // q in cells, when the last packet left
Register<bit<32>, port_t>(MAX_PORTS) reduction_of;  // logarithm of C / R; 0: R is C

parser RateParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    RcpParser() rcp;

    state start {
        transition select(packet.lookahead<ethernet_t>().ether_type) {
            ETHERTYPE_RATE_UPDATE: parse_rate_update;
            default: parse_other;
        }
    }

    state parse_rate_update {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.rate_update);
        transition accept;
    }

    state parse_other {
        rcp.apply(packet, hdr, meta, standard_metadata);
        transition accept;
    }
}

// In place of forwarding: an update goes to the port of its number.
control UpdateForwarding(inout headers_t hdr, inout metadata_t meta,
                         inout standard_metadata_t standard_metadata) {
    Ipv4Forwarding() forwarding;

    // priority        that of the queue in which the update passes
    // capacity_bytes  C T
    action update(port_t port, bit<3> priority, bit<8> link_class, bit<32> capacity_bytes) {
        standard_metadata.egress_spec = port;
        standard_metadata.priority = priority;
        hdr.rate_update.link_class = link_class;
        hdr.rate_update.excess_bytes = capacity_bytes;
    }

    action no_update() {
        mark_to_drop(standard_metadata);
    }

    // The packet generator writes the number of the packet in front of the bytes of its buffer.
    table port_of_update {
        key = { hdr.ethernet.dst_addr[15:0]: exact @name("number"); }
        actions = { update; @defaultonly no_update; }
        const default_action = no_update();
        size = MAX_PORTS;
    }

    apply {
        if (hdr.rate_update.isValid() && IS_GENERATED) {
            port_of_update.apply();
        } else {
            forwarding.apply(hdr, meta, standard_metadata);
        }
    }
}

// Ingress stage: count the bytes that arrive for a link, as it charges frames. An update takes
// them. A chip's compiler places a register's accesses into one stage if they are of one table.
control RateControl(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    frame_bytes_t bytes = 0;
    bit<32> arrived = 0;

    RegisterAction<bit<32>, port_t, bit<32>>(arrived_of) add = {
        void apply(inout bit<32> arrived_now) {
            arrived_now = arrived_now + (bit<32>)bytes;
        }
    };

    RegisterAction<bit<32>, port_t, bit<32>>(arrived_of) take = {
        void apply(inout bit<32> arrived_now, out bit<32> result) {
            result = arrived_now;
            arrived_now = 0;
        }
    };

    // What links charge a frame beyond its bytes; negative where headers are not charged. All links
    // of a switch charge the same, so that the sum does not wait for the packet's port.
    action add_overhead(frame_bytes_t overhead_bytes) {
        bytes = bytes + overhead_bytes;
    }

    table frame_overhead {
        actions = { add_overhead; }
        default_action = add_overhead(0);
    }

    action add_bytes() {
        add.execute(standard_metadata.egress_spec);
    }

    action take_bytes() {
        arrived = take.execute(standard_metadata.egress_spec);
    }

    table arrivals {
        key = { hdr.rate_update.isValid(): exact; }
        actions = { add_bytes; take_bytes; }
        const default_action = add_bytes();
        const entries = {
            true: take_bytes();
        }
        size = 1;
    }

    apply {
        bytes = hdr.ipv4.total_len + ETHERNET_BYTES;
        frame_overhead.apply();
        AT_LEAST(bytes, FLIT_BYTES)
        arrivals.apply();
        if (hdr.rate_update.isValid()) {
            hdr.rate_update.excess_bytes = arrived - hdr.rate_update.excess_bytes;
        }
    }
}

// Egress stage: keep the depth of a queue of data, lower a rate packet to the link's rate, and
// change the rate by an update.
control RateLowering(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    bit<8>  class_of_link = 0;  // 0: a port without a link
    bit<32> cells = 0;
    bit<32> excess = 0;
    bit<1>  rises = 0;
    bit<32> change = 0;
    bit<32> reduction = 0;

    RegisterAction<bit<32>, port_t, bit<32>>(queued_of) keep = {
        void apply(inout bit<32> cells_now) {
            cells_now = standard_metadata.deq_qdepth;
        }
    };

    RegisterAction<bit<32>, port_t, bit<32>>(queued_of) ask = {
        void apply(inout bit<32> cells_now, out bit<32> result) {
            result = cells_now;
        }
    };

    RegisterAction<bit<32>, port_t, bit<32>>(reduction_of) lower = {
        void apply(inout bit<32> reduction_now) {
            reduction_now = reduction_now |+| change;
        }
    };

    RegisterAction<bit<32>, port_t, bit<32>>(reduction_of) raise = {
        void apply(inout bit<32> reduction_now) {
            reduction_now = reduction_now |-| change;
        }
    };

    RegisterAction<bit<32>, port_t, bit<32>>(reduction_of) look = {
        void apply(inout bit<32> reduction_now, out bit<32> result) {
            result = reduction_now;
        }
    };

    action keep_depth() {
        keep.execute(standard_metadata.egress_port);
    }

    action ask_depth() {
        cells = ask.execute(standard_metadata.egress_port);
    }

    table queue_depth {
        key = {
            hdr.rate_update.isValid(): exact @name("is_update");
            standard_metadata.priority: exact @name("priority");
        }
        actions = { keep_depth; ask_depth; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 16;
    }

    action add_queue(bit<32> excess_bytes) {
        excess = hdr.rate_update.excess_bytes + excess_bytes;
    }

    table queue_excess {
        key = { cells: lpm; }
        actions = { add_queue; }
        default_action = add_queue(0);
        size = 2048;
    }

    action negate() {
        excess = 0 - excess;
        rises = 1;
    }

    action set_change(bit<32> log_change) {
        change = log_change;
    }

    // `excess` is without its sign, so it is below 2^31. All such numbers have 1665 prefixes of 7
    // significant bits, and each of 4 classes has some of these for both signs.
    table log_change {
        key = {
            hdr.rate_update.link_class: exact @name("link_class");
            rises: exact;
            excess: lpm;
        }
        actions = { set_change; }
        default_action = set_change(0);
        size = 13320;
    }

    // Links of a class have the same C and d.
    action set_class(bit<8> link_class) {
        class_of_link = link_class;
    }

    table class_of_port {
        key = { standard_metadata.egress_port: exact @name("port"); }
        actions = { set_class; @defaultonly NoAction; }
        const default_action = NoAction();
        size = MAX_PORTS;
    }

    action lower_rate() {
        lower.execute(standard_metadata.egress_port);
    }

    action raise_rate() {
        raise.execute(standard_metadata.egress_port);
    }

    action look_at_rate() {
        reduction = look.execute(standard_metadata.egress_port);
    }

    table rate_access {
        key = {
            hdr.rate_update.isValid(): exact;
            rises: exact;
        }
        actions = { lower_rate; raise_rate; look_at_rate; }
        const default_action = look_at_rate();
        const entries = {
            (true, 0): lower_rate();
            (true, 1): raise_rate();
        }
        size = 2;
    }

    action lower_to(bit<32> rate_kbps) {
        hdr.rcp.rate = min(hdr.rcp.rate, rate_kbps);
    }

    table link_rate {
        key = {
            class_of_link: exact @name("link_class");
            reduction[31:20]: exact @name("reduction");
        }
        actions = { lower_to; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 16384;
    }

    apply {
        queue_depth.apply();
        class_of_port.apply();
        if (hdr.rate_update.isValid()) {
            queue_excess.apply();
            if (excess[31:31] == 1) {
                negate();
            }
            log_change.apply();
            mark_to_drop(standard_metadata);
        }
        rate_access.apply();
        if (hdr.rcp.isValid() && hdr.rcp.response == 0) {
            link_rate.apply();
        }
    }
}

#define PARSER RateParser
#define FORWARDING UpdateForwarding
#define INGRESS_STAGE RateControl
#define EGRESS_STAGE RateLowering

#endif
