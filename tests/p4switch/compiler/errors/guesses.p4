#include <core.p4>
#include <v1model.p4>

header ipv4_t { bit<8> ttl; bit<32> dst; }
struct headers_t { ipv4_t ipv4; ipv4_t[2] inner; }
struct meta_t { }
enum bit<8> color_t { RED = 1, GREEN = 2 }

parser p(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extrac(hdr.ipv4);           // error: packet_in has no method 'extrac' (did you mean 'extract'?)
        transition select(hdr.ipv4.tll) {  // error: ipv4_t has no member 'tll' (did you mean 'ttl'?)
            0: acept;                      // error: state 'acept' is not declared (did you mean 'accept'?)
            default: accept;
        }
    }
}

control c(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    action drop() { mark_to_drop(standard_metada); }  // error: (did you mean 'standard_metadata'?)
    action forward(bit<9> port) { standard_metadata.egres_spec = port; }  // error: (did you mean 'egress_spec'?)
    table route {
        key = { hdr.ipv4.dst: lmp; }       // error: match kind 'lmp' is not declared (did you mean 'lpm'?)
        actions = { dropp; forward; }      // error: action 'dropp' is not declared (did you mean 'drop'?)
    }
    apply {
        rout.apply();                      // error: name 'rout' is not declared (did you mean 'route'?)
        route.aply();                      // error: table route has no method 'aply' (did you mean 'apply'?)
        if (route.apply().hitt) { }        // error: has no member 'hitt' (did you mean 'hit'?)
        switch (route.apply().action_run) {
            foward: { }                    // error: is not an action of table 'route' (did you mean 'forward'?)
            default: { }
        }
        if (hdr.ipv4.isvalid()) { }        // error: ipv4_t has no method 'isvalid' (did you mean 'isValid'?)
        hdr.inner.push_fron(1);            // error: has no method 'push_fron' (did you mean 'push_front'?)
        color_t color = color_t.GREN;      // error: color_t has no member 'GREN' (did you mean 'GREEN'?)
        hdr.ipv4 = { ttl = 1, dst = 2, dts = 2 };  // error: ipv4_t has no field 'dts' (did you mean 'dst'?)
        bit<8> unlike = hdr.ipv4.checksum; // error: ipv4_t has no member 'checksum'
    }
}
