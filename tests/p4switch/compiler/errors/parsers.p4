#include <core.p4>

header h_t { bit<8> a; bit<16> b; }

parser p(packet_in b, out h_t h) {
    value_set<bit<8>>(4) small;
    value_set<tuple<bit<8>, bit<16>>>(4) both;
    value_set<h_t>(4) headers;             // error: a value set cannot have elements of type h_t
    value_set<bit<8>>(0) empty;            // error: the size of a value set must be positive, not 0
    state start {
        b.extract(h);
        transition select(h.a, h.b) {
            (1, 2): next;
            (1, 2, 3): next;               // error: this case has 3 keys, but 'select' has 2
            (true, _): next;               // error: expected bit<8> for the key, not bool
            (1 &&& h.a, 2): next;          // error: the parts of a mask or range must be known at compile time
            both: next;
            small: next;                   // error: expected a value set with elements of type (bit<8>, bit<16>)
            default: nowhere;              // error: state 'nowhere' is not declared
        }
    }
    state next {
        transition select(h.a) {
            small: accept;
            1 .. 3: accept;
            _: reject;
        }
    }
    state next {                           // error: 'next' is already declared (line 22)
        transition accept;
    }
    state accept {                         // error: state 'accept' is built in and cannot be declared
        transition reject;
    }
    state whole {
        transition select(h) {             // error: a key of 'select' cannot have type h_t
            default: accept;
        }
    }
}

parser no_start(packet_in b) {             // error: parser 'no_start' has no state 'start'
    state first { transition accept; }
}

parser endless(packet_in b) {              // error: parser 'endless' never reaches 'accept' or 'reject'
    state start { transition more; }
    state more { transition start; }
}
