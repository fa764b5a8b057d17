#include <v1model.p4>

header h_t { bit<8> a; }
header v_t { varbit<16> v; }

void f(in bit<8> x, out bit<8> y) { y = x; }
T id<T>(in T x) { return x; }

control inner(inout bit<8> x)(bit<8> size) { apply { } }
parser sub(packet_in b) { state start { transition accept; } }

parser p(packet_in b, out h_t h, out v_t v) {
    state start {
        b.extract(h, 8);                   // error: 'extract' with a length needs a header with one varbit field, not 0
        b.extract(v);                      // error: v_t has a varbit field: 'extract' needs its length
        b.extract(h.a);                    // error: 'extract' needs a header, not bit<8>
        v = b.lookahead<v_t>();            // error: 'lookahead' needs a type of fixed width, not v_t
        b.lookahead();                     // error: type argument T of 'lookahead' cannot be inferred here
        h.a = b.lookahead();
        verify(h.a, error.NoMatch);        // error: expected bool for parameter 'check' of 'verify', not bit<8>
        transition accept;
    }
}

control c(packet_in b, inout bit<8> x, inout h_t h) {
    register<bit<8>>(16) r;
    register<bit<8>>((bit<32>)x) dynamic;  // error: the argument for parameter 'size' of the constructor of 'register'
    counter(16) few;                       // error: the constructor of 'counter' takes 2 arguments, not 1
    inner() unsized;                       // error: the constructor of 'inner' takes 1 argument, not 0
    inner(8) i;
    sub() s;                               // error: an instance of sub cannot be made in the declarations of a control
    action a(in bit<8> y) { t.apply(); }   // error: name 't' is not declared
    table t { actions = { NoAction; } }
    action u() { t.apply(); }              // error: a table can only be applied in the apply block of a control
    apply {
        f(1);                              // error: 'f' takes 2 arguments, not 1
        f(1, 2);                           // error: parameter 'y' of 'f' is out, so its argument must be assignable
        f(x = 1, x);                       // error: either all or none of the arguments of 'f' must be named
        f(x = 1, z = x);                   // error: 'f' has no parameter 'z'
        f(x = 1, x = 2);                   // error: argument 'x' is given twice
        f(y = x);                          // error: 'f' needs an argument for 'x'
        f(1, _);
        f(_, x);                           // error: '_' can only be passed for an out parameter, and 'x' is none
        x = id(1);                         // error: the argument for parameter 'x' of 'id' needs a width (as in 8w1)
        x = id<bit<8>>(1);
        x = id<bit<8>, bool>(1);           // error: 'id' takes 1 type arguments, not 2
        x();                               // error: 'x' is not a function or action
        h.isInvalid();                     // error: h_t has no method 'isInvalid'
        r.get(x, 0);                       // error: register<bit<8>> has no method 'get'
        r.read(h, 0);                      // error: expected bit<8> for parameter 'result' of 'read', not h_t
        i.apply();                         // error: 'inner' takes 1 argument, not 0
        inner.apply(x);                    // error: 'inner' has constructor parameters: make an instance first
        b.extract(h);                      // error: 'extract' can only be called in a parser
        verify(true, error.NoMatch);       // error: 'verify' can only be called in a parser
        t.apply(x);                        // error: applying a table takes no arguments
        static_assert(1 == 2, "no");       // error: static_assert failed: no
        mark_to_drop();
        mark_to_drop(x, x);                // error: no declaration of 'mark_to_drop' fits these arguments
    }
}

extern void fixed(in bit<8> x, bit<8> n);
extern ext { ext(); void m<T>(in T x, T n); }

bit<8> twice(bit<8> n) { return n + n; }
bit<8> nested(bit<8> n, in bit<8> x) {
    bit<8> y = twice(n + 1);
    return y + twice(x);                   // error: the argument for parameter 'n' of 'twice' must be known at compile time
}

control directionless(inout bit<8> x)(bit<8> given) {
    ext() e;
    const bit<8> two = 2;
    action a(bit<8> n) {
        x = twice(n);
        fixed(x, n);
    }
    action b(in bit<8> n) {
        x = twice(n);                      // error: the argument for parameter 'n' of 'twice' must be known at compile time
    }
    apply {
        x = twice(two) + twice(given) + twice(two + 1) + nested(1, x);
        x = twice(x);                      // error: the argument for parameter 'n' of 'twice' must be known at compile time
        x = twice(n = x);                  // error: the argument for parameter 'n' of 'twice' must be known at compile time
        x = twice(two + x);                // error: the argument for parameter 'n' of 'twice' must be known at compile time
        x = twice(twice(1));               // error: the argument for parameter 'n' of 'twice' must be known at compile time
        fixed(x, 1);
        fixed(x, x);                       // error: the argument for parameter 'n' of 'fixed' must be known at compile time
        e.m(x, two);
        e.m(x, x);                         // error: the argument for parameter 'n' of 'm' must be known at compile time
        a(x);
    }
}
