// Entries that are not constant: more can be added among them (BMv2 does not allow that).
#include "head.p4"

control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action set(bit<8> v) { hdr.data.b = v; }
    table masks {
        key = { hdr.data.x : ternary; }
        actions = { set; NoAction; }
        default_action = NoAction;
        entries = {
            const priority = 30 : 0x0123 : set(1);
            priority = 10 : 0x0100 &&& 0x0f00 : set(2);
        }
    }
    table lowest {
        key = { hdr.data.x : ternary; }
        actions = { set; }
        default_action = set(0);
        largest_priority_wins = false;
        entries = {
            priority = 1 : 0x0123 : set(1);
            priority = 2 : 0x0100 &&& 0x0f00 : set(2);
        }
    }
    apply {
        std.egress_spec = 1;
        if (hdr.data.op == 1) { masks.apply(); } else { lowest.apply(); }
    }
}

#include "main.p4"
