#include <v1model.p4>

struct headers_t { }
struct meta_t { }
struct other_t { }

parser P(packet_in b, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control In(in headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control O(inout headers_t h, inout other_t m) { apply { } }
control D(packet_out b, in headers_t h) { apply { } }

V() top_level;                             // error: an instance of V cannot be made in the top level
V1Switch(P(), V(), I(), I(), V()) few;     // error: the constructor of 'V1Switch' takes 6 arguments, not 5
V1Switch(P(), V(), I(), I(), D(), D()) swapped;  // error: expected ComputeChecksum<headers_t, meta_t>
V1Switch(P(), V(), In(), I(), V(), D()) wrong;   // error: parameter 'h' must be inout, not in
V1Switch(P(), V(), I(), I(), O(), D()) mixed;    // error: expected ComputeChecksum<headers_t, meta_t>
V1Switch(P(), V(), I(), I(), V(), D()) main;
