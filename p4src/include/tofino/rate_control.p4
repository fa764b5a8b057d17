// RCP's rate of a link for TNA and T2NA. Packets count: ingress the bytes Y that arrive for a port,
// egress the depth q of the port's queue of data. In every interval T the packet generator makes an
// update for each port, which passes both and which egress drops:
//
//   excess <- Y - C T + beta T / (alpha d) q        R <- R (1 - alpha excess / (C d))
//
// Nothing is multiplied: the register `reduction_of` has the logarithm of C / R, and tables have the
// products and logarithms: queue_excess of q, log_change of the excess, link_rate of the register.
// The control plane chooses the logarithm's base, so that the register saturates at min_kbps.
#ifndef P4CC_RATE_CONTROL_P4
#define P4CC_RATE_CONTROL_P4

const bit<16> ETHERTYPE_RATE_UPDATE = 0x88B5;  // of local experiments (IEEE 802)

Register<bit<32>, port_t>(MAX_PORTS) arrived_of;    // Y so far, by egress port
Register<bit<32>, port_t>(MAX_PORTS) queued_of;     // q in cells, when a packet left last
Register<bit<32>, port_t>(MAX_PORTS) reduction_of;  // 0: R is C

parser RateParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    RcpParser() rcp;

    state start {
        rcp.apply(packet, hdr, meta, standard_metadata);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_RATE_UPDATE: parse_rate_update;
            default: accept;
        }
    }

    state parse_rate_update {
        packet.extract(hdr.rate_update);
        transition accept;
    }
}

// Ingress stage: count the bytes that arrive for a link, as it charges frames.
control RateControl(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    frame_bytes_t bytes = 0;

    RegisterAction<bit<32>, port_t, bit<32>>(arrived_of) add = {
        void apply(inout bit<32> arrived) {
            arrived = arrived + (bit<32>)bytes;
        }
    };

    // overhead_bytes  what the link charges a frame beyond its bytes; negative where headers are
    //                 not charged
    action add_overhead(frame_bytes_t overhead_bytes) {
        bytes = bytes + overhead_bytes;
    }

    table counted_port {
        key = { standard_metadata.egress_spec: exact @name("port"); }
        actions = { add_overhead; @defaultonly NoAction; }
        const default_action = NoAction();
        size = MAX_PORTS;
    }

    apply {
        bytes = hdr.ipv4.total_len + ETHERNET_BYTES;
        if (counted_port.apply().hit) {
            AT_LEAST(bytes, FLIT_BYTES)
            add.execute(standard_metadata.egress_spec);
        }
    }
}

// Egress stage: keep the depth of a queue of data, and lower a rate packet to the link's rate.
control RateLowering(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    bit<8>  class_of_link = 0;
    bit<32> reduction = 0;
    bit<32> rate = 0;

    RegisterAction<bit<32>, port_t, bit<32>>(queued_of) keep = {
        void apply(inout bit<32> cells) {
            cells = standard_metadata.deq_qdepth;
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

    table counted_queue {
        key = { standard_metadata.priority: exact @name("priority"); }
        actions = { keep_depth; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 8;
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

    action set_rate(bit<32> rate_kbps) {
        rate = rate_kbps;
    }

    table link_rate {
        key = {
            class_of_link: exact @name("link_class");
            reduction[31:20]: exact @name("reduction");
        }
        actions = { set_rate; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 16384;
    }

    apply {
        counted_queue.apply();
        if (hdr.rcp.isValid() && hdr.rcp.response == 0) {
            if (class_of_port.apply().hit) {
                reduction = look.execute(standard_metadata.egress_port);
                link_rate.apply();
                hdr.rcp.rate = min(hdr.rcp.rate, rate);
            }
        }
    }
}

// Ingress of an update: Y - C T of the port whose number it has.
control UpdateArrived(inout headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    bit<32> arrived = 0;
    bit<32> capacity = 0;

    RegisterAction<bit<32>, port_t, bit<32>>(arrived_of) take = {
        void apply(inout bit<32> arrived_now, out bit<32> result) {
            result = arrived_now;
            arrived_now = 0;
        }
    };

    // priority        that of the queue in which the update passes
    // capacity_bytes  C T
    action update(port_t port, bit<3> priority, bit<8> link_class, bit<32> capacity_bytes) {
        standard_metadata.egress_spec = port;
        standard_metadata.priority = priority;
        hdr.rate_update.link_class = link_class;
        capacity = capacity_bytes;
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
        if (port_of_update.apply().hit) {
            arrived = take.execute(standard_metadata.egress_spec);
            hdr.rate_update.excess_bytes = arrived - capacity;
        }
    }
}

// Egress of an update: the rest of the equation.
control UpdateRate(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    bit<32> cells = 0;
    bit<32> excess = 0;
    bit<32> change = 0;
    bit<1>  rises = 0;

    RegisterAction<bit<32>, port_t, bit<32>>(queued_of) look = {
        void apply(inout bit<32> cells_now, out bit<32> result) {
            result = cells_now;
        }
    };

    RegisterAction<bit<32>, port_t, bit<32>>(reduction_of) lower_rate = {
        void apply(inout bit<32> reduction) {
            reduction = reduction |+| change;
        }
    };

    RegisterAction<bit<32>, port_t, bit<32>>(reduction_of) raise_rate = {
        void apply(inout bit<32> reduction) {
            reduction = reduction |-| change;
        }
    };

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

    // `excess` is without its sign.
    table log_change {
        key = {
            hdr.rate_update.link_class: exact @name("link_class");
            rises: exact;
            excess: lpm;
        }
        actions = { set_change; }
        default_action = set_change(0);
        size = 8192;
    }

    apply {
        cells = look.execute(standard_metadata.egress_port);
        queue_excess.apply();
        if (excess[31:31] == 1) {
            negate();
        }
        log_change.apply();
        if (rises == 1) {
            raise_rate.execute(standard_metadata.egress_port);
        } else {
            lower_rate.execute(standard_metadata.egress_port);
        }
        mark_to_drop(standard_metadata);
    }
}

#define PARSER RateParser
#define INGRESS_STAGE RateControl
#define EGRESS_STAGE RateLowering
#define GENERATED rate_update
#define GENERATED_INGRESS UpdateArrived
#define GENERATED_EGRESS UpdateRate

#endif
