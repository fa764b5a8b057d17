// Entries in the program, of all match kinds, and entries added by the test, with priorities.
#include "head.p4"

enum bit<8> color_t { red = 1, green = 2 }

control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action set(bit<8> v) { hdr.data.b = v; }
    action get(bit<8> v, bit<16> w) { hdr.data.b = v; hdr.data.x = w; }
    table exact_one {
        key = { hdr.data.a : exact; hdr.items[0].isValid() : exact; }
        actions = { set; @defaultonly get; }
        const default_action = get(0xff, 0x1234);
        const entries = { (1, false) : set(1); (2, false) : set(2); (2, true) : set(3); }
    }
    table prefixes {
        key = { hdr.data.r : lpm; }
        actions = { set; }
        default_action = set(0);
        const entries = {
            0x0a000000 &&& 0xff000000 : set(8);
            0x0a0b0000 &&& 0xffff0000 : set(16);
            0x0a0b0c0d : set(32);
        }
    }
    table masks {
        key = { hdr.data.x : ternary; hdr.data.a : optional; }
        actions = { set; NoAction; }
        default_action = NoAction;
        entries = {
            const priority = 10 : (0x0100 &&& 0x0f00, _) : set(1);
            priority = 30 : (0x0123, 5) : set(2);
            (_, 6) : set(3);
        }
    }
    table ranges {
        key = { hdr.data.a : range; (color_t)hdr.data.op : ternary @name("color"); }
        actions = { set; }
        default_action = set(0);
        const entries = {
            (5 .. 9, _) : set(5);
            (0 .. 20, color_t.green) : set(20);
            (_, _) : set(0xee);
        }
    }
    table added {
        key = { hdr.data.x : ternary; hdr.data.a : range; hdr.data.y[7:4] : exact @name("nibble"); }
        actions = { set; get; NoAction; }
        size = 8;
        default_action = NoAction;
    }
    apply {
        std.egress_spec = 1;
        if (hdr.data.op == 1) { exact_one.apply(); }
        else if (hdr.data.op == 2) { ranges.apply(); }
        else if (hdr.data.op == 3) { prefixes.apply(); }
        else if (hdr.data.op == 4) { masks.apply(); }
        else if (hdr.data.op == 5) { ranges.apply(); }
        else { added.apply(); }
    }
}

#include "main.p4"
