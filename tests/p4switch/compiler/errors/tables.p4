#include <v1model.p4>

header h_t { bit<8> a; bit<32> ip; }

control c(inout h_t h, inout bit<8> x) {
    action set(inout bit<8> y, bit<8> v) { y = v; }
    action data(bit<8> v) { x = v; }
    action late(bit<8> v, in bit<8> y) { }  // error: parameter 'y' has a direction, so it must come before 'v'
    table keys {
        key = {
            h.a: exact;
            h.ip: nearest;                 // error: match kind 'nearest' is not declared
            h: exact;                      // error: a key cannot have type h_t
            5: exact;                      // error: a key needs a width (as in 8w1)
        }
        actions = { NoAction; }
    }
    table actions_ {
        key = { h.a: exact; }
        actions = {
            data;
            data;                          // error: action 'data' is listed twice
            set;                           // error: action 'set' in this list takes 1 argument, not 0
            missing;                       // error: action 'missing' is not declared
            x;                             // error: 'x' is not an action
            NoAction(1);                   // error: action 'NoAction' in this list takes 0 arguments, not 1
        }
        default_action = data;             // error: action 'data' takes 1 argument, not 0
    }
    table bound {
        actions = { set(x); data(1); }     // error: parameter 'v' of action 'data' is given by the control plane, not here
        default_action = set(h.a, 1);      // error: argument 'y' of 'set' must be the same as in the list of actions
    }
    table other {
        actions = { data; }
        default_action = NoAction();       // error: the default action is 'NoAction', which is not among the actions
        size = x;                          // error: the size of a table must be an integer known at compile time
        counters = x;                      // error: property 'counters' must be an extern instance, not bit<8>
    }
    table entries_ {
        key = { h.a: exact; h.ip: lpm; x: ternary; }
        actions = { data; NoAction; }
        const entries = {
            (1, 0x0a000000 &&& 0xff000000, _): data(1);
            (1, 2): data(1);               // error: this entry has 2 keys, but table 'entries_' has 3
            (1 &&& 1, 2, 3): data(1);      // error: a mask cannot be matched with exact
            (1, 2 &&& 0xff00ff00, 3): data(1);  // error: 0xff00ff00 is not the mask of a prefix, which lpm needs
            (1, 2, 1 .. 3): data(1);       // error: a range cannot be matched with ternary
            (x, 2, 3): data(1);            // error: a key of an entry must be known at compile time
            (true, 2, 3): data(1);         // error: expected bit<8> for the key, not bool
            (1, 2, 3): data();             // error: action 'data' takes 1 argument, not 0
            (1, 2, 3): data(x);            // error: the argument for parameter 'v' of action 'data' must be known
            (1, 2, 3): set(x, 1);          // error: the action of this entry is 'set', which is not among the actions
        }
    }
    table keyless {                        // error: table 'keyless' has entries, but no key
        actions = { data; }
        const entries = { 1: data(1); }
    }
    table doubled {
        key = { h.a: exact; }
        actions = { data; }
        const entries = {
            1: data(1);
            1: data(2);                    // error: an entry before this one has the same key
        }
    }
    table delta {
        actions = { data; }
        priority_delta = 0;                // error: 'priority_delta' must be positive, not 0
    }
    table prioritised {                    // error: an entry of table 'prioritised' would have priority -1
        key = { h.a: ternary; }
        actions = { data; }
        entries = { priority = 0: 1: data(1); 2: data(2); }
    }
    table scoped {
        key = { h.a: exact; }
        actions = { @defaultonly data; @tableonly NoAction; }
        default_action = NoAction;         // error: action 'NoAction' is @tableonly, so it cannot be the default action
        const entries = {
            1: data(1);                    // error: action 'data' is @defaultonly, so no entry can have it
            2: NoAction;
        }
    }
    table scoped_ {
        key = { h.a: exact; }
        actions = { @defaultonly data; NoAction; }
        default_action = data(1);
        entries = {
            1: data(1);                    // error: action 'data' is @defaultonly, so no entry can have it
            2: NoAction;
        }
    }
    table implicit {
        key = { h.a: exact; }
        actions = {
            @tableonly NoAction;           // error: action 'NoAction' is @tableonly, so the table needs another default action
            @defaultonly @tableonly data;  // error: action 'data' is @defaultonly and @tableonly, so nothing can have it
        }
    }
    table ranges {
        key = { h.a: range; }
        actions = { NoAction; }
        const entries = {
            9 .. 4: NoAction;              // error: the range 9 .. 4 is empty: its low end is above its high end
            4 .. 4: NoAction;
            1 .. 256: NoAction;            // error: the range 1 .. 0 is empty: its low end is above its high end
        }
    }
    table signed_ranges {
        key = { (int<8>)h.a: range @name("k"); }
        actions = { NoAction; }
        entries = {
            2 .. -3: NoAction;             // error: the range 2 .. -3 is empty: its low end is above its high end
            -3 .. 2: NoAction;
        }
    }
    apply { }
}
