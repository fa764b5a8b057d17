// One of everything that a v1model program can show to its controller.
#include <core.p4>
#include <v1model.p4>

const bit<32> CLONE_SESSION = 5;

header wide_t {
    bit<16> e;
    bit<32> l;
    bit<16> t;
    bit<8>  r;
    bit<8>  o;
    bit<16> kind;
}

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> hint;
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    wide_t       wide;
}

struct metadata_t {
    bit<2>  colour;
    bit<32> hash;
}

struct learn_t {
    bit<16> e;
    bit<9>  port;
}

parser EverythingParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    value_set<bit<16>>(4) kinds;

    state start {
        transition select(standard_metadata.ingress_port) {
            510: parse_packet_out;
            default: parse_wide;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_wide;
    }
    state parse_wide {
        packet.extract(hdr.wide);
        transition select(hdr.wide.kind) {
            kinds: known;
            default: accept;
        }
    }
    state known {
        hdr.wide.kind = 0xffff;
        transition accept;
    }
}

control EverythingVerify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control EverythingUpdate(inout headers_t hdr, inout metadata_t meta) { apply {} }

control EverythingIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<2>>(MeterType.bytes) rates;
    counter(4, CounterType.packets_and_bytes) cells;
    meter(4, MeterType.packets) limits;
    register<bit<32>>(4) words;
    register<int<12>>(2) signs;
    action_selector(HashAlgorithm.crc16, 64, 16) selector;
    action_profile(8) profile;

    action send(bit<9> port) { standard_metadata.egress_spec = port; }
    action drop() { mark_to_drop(standard_metadata); }
    action to_group(bit<16> group) { standard_metadata.mcast_grp = group; }
    action learn() {
        digest<learn_t>(1, { hdr.wide.e, standard_metadata.ingress_port });
    }
    action counted_send(bit<9> port) {
        hits.count();
        rates.read(meta.colour);
        standard_metadata.egress_spec = port;
    }
    action counted_drop() {
        hits.count();
        rates.read(meta.colour);
        mark_to_drop(standard_metadata);
    }

    table exact_one {
        key = { hdr.wide.e: exact @name("e"); }
        actions = { counted_send; counted_drop; @defaultonly NoAction; }
        default_action = NoAction();
        counters = hits;
        meters = rates;
        size = 16;
    }
    table lpm_one {
        key = { hdr.wide.l: lpm @name("l"); }
        actions = { send; drop; to_group; @tableonly learn; }
        default_action = drop();
        size = 1024;
    }
    table mixed {
        key = {
            hdr.wide.e: exact    @name("e");
            hdr.wide.l: lpm      @name("l");
            hdr.wide.t: ternary  @name("t");
            hdr.wide.r: range    @name("r");
            hdr.wide.o: optional @name("o");
        }
        actions = { send; drop; NoAction; }
        const default_action = NoAction();
        size = 1024;
    }
    table constant {
        key = { hdr.wide.t: ternary @name("t"); }
        actions = { send; drop; NoAction; }
        default_action = NoAction();
        const entries = {
            0x0100 &&& 0xff00: send(1);
            0x0000 &&& 0xf000: send(2);
        }
    }
    table preset {
        key = { hdr.wide.r: exact @name("r"); }
        actions = { send; drop; NoAction; }
        default_action = NoAction();
        size = 8;
        entries = {
            1: send(1);
            2: drop();
        }
    }
    table selected {
        key = { hdr.wide.o: exact @name("o"); hdr.wide.l: selector; }
        actions = { send; drop; @defaultonly NoAction; }
        implementation = selector;
        size = 32;
    }
    table profiled {
        key = { hdr.wide.o: exact @name("o"); }
        actions = { send; drop; @defaultonly NoAction; }
        implementation = profile;
        size = 32;
    }
    table keyless {
        actions = { send; drop; NoAction; }
        default_action = NoAction();
    }
    table fading {
        key = { hdr.wide.e: exact @name("e"); }
        actions = { send; NoAction; }
        default_action = NoAction();
        support_timeout = true;
        size = 16;
    }

    apply {
        bit<32> word;
        int<12> sign;
        bit<32> verdict;
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            words.read(word, 0);
            words.write(1, word + 1);
            signs.read(sign, 0);
            signs.write(1, sign);
            cells.count((bit<32>)(standard_metadata.ingress_port & 3));
            limits.execute_meter((bit<32>)(standard_metadata.ingress_port & 3), verdict);
            keyless.apply();
            lpm_one.apply();
            exact_one.apply();
            mixed.apply();
            constant.apply();
            preset.apply();
            selected.apply();
            profiled.apply();
            fading.apply();
            if (hdr.wide.o == 0xcc) {
                clone(CloneType.I2E, CLONE_SESSION);
            }
        }
    }
}

control EverythingEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.egress_port == 510) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard_metadata.ingress_port;
            hdr.packet_in.reason = 3;
        }
    }
}

control EverythingDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.wide);
    }
}

V1Switch(EverythingParser(), EverythingVerify(), EverythingIngress(), EverythingEgress(), EverythingUpdate(),
         EverythingDeparser()) main;
