#include <core.p4>

header h_t { bit<8> a; }
const bit<8> k = 1;
enum bit<8> e_t { one = 1 }

bit<8> no_return(in bit<8> x) {            // error: function 'no_return' does not return a value on all paths
    if (x == 1) { return 2; }
}

bit<8> returns(in bit<8> x) {
    if (x == 1) { return true; }           // error: expected bit<8> for the returned value, not bool
    x = 2;                                 // error: this cannot be assigned to: 'x' is an in parameter
    exit;                                  // error: 'exit' cannot be used in a function
    return;                                // error: 'return' needs a value of type bit<8>
}

parser p(packet_in b, out h_t h) {
    state start {
        b.extract(h);
        return;                            // error: 'return' cannot be used in a parser
        exit;                              // error: 'exit' cannot be used in a parser state
        transition accept;
    }
}

control c(inout bit<8> x, in h_t h, bit<8> none) {
    action a(bit<8> data) { data = 1; }    // error: this cannot be assigned to: 'data' is a parameter without direction
    table t {
        actions = { a; NoAction; }
        default_action = NoAction;
    }
    apply {
        k = 2;                             // error: this cannot be assigned to: it is a constant
        h.a = 1;                           // error: this cannot be assigned to: 'h' is an in parameter
        h.setValid();                      // error: 'setValid' changes its header, which it cannot here
        none = 2;                          // error: this cannot be assigned to: 'none' is a parameter without direction
        t = 1;                             // error: this cannot be assigned to: 't' is not a variable
        e_t e = e_t.one;
        e[3:0] = 1;                        // error: this cannot be assigned to: it is not a variable, a field or a part of one
        e[x+:4] = 1;                       // error: this cannot be assigned to: it is not a variable, a field or a part of one
        x[x+:4] = 8w1;                     // error: expected bit<4>, not bit<8>
        if (x) { }                         // error: expected bool for the condition of 'if', not bit<8>
        break;                             // error: 'break' can only be used in a 'for'
        return 1;                          // error: 'return' in the apply block of a control that returns nothing
        for (bit<8> i in 1 .. 3) { continue; }
        for (bit<8> i in x) { }            // error: bit<8> cannot be iterated over
        switch (t.apply().action_run) {    // error: 'default' must be the last label of a switch
            a: { }
            default: { }
            missing: { }                   // error: 'missing' is not an action of table 't'
            a: { }                         // error: duplicate label 'a'
        }
        switch (x) {
            1: { }
            x: { }                         // error: a label must be known at compile time
            true: { }                      // error: expected bit<8> for a label, not bool
            1: { }                         // error: duplicate label
        }
        switch (h) { }                     // error: 'switch' needs a number, an enum, a bool, an error or action_run
    }
}
